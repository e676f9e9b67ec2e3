"""The memory that a call may use."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

_PATTERN = re.compile(r"\s*([0-9]*\.?[0-9]+)\s*([KMGT]?)(i?)B?\s*", re.IGNORECASE)

#: Share of the free memory that a fit may use when nothing else is said.
DEFAULT_SHARE = 0.5

#: Shares of the memory limit that core sets take: for kernel columns, and for Q between their rows.
COLUMNS_SHARE, CORE_SHARE = 0.5, 0.25


def memory_bytes(memory_limit: float | str | None) -> int:
    """Turn ``memory_limit`` into bytes.

    Parameters
    ----------
    memory_limit : str, number or None
        ``"2GB"``, ``"500 MB"``, a number of bytes, or None for half of the memory that is free, on
        the machine or within the limit of the container.

    Examples
    --------
    >>> from hardmargin.memory import memory_bytes
    >>> memory_bytes("1.5GB")
    1500000000
    """
    if memory_limit is None:
        return int(DEFAULT_SHARE * free_memory())
    if isinstance(memory_limit, str):
        match = _PATTERN.fullmatch(memory_limit)
        size = _bytes_of(match) if match else 0.0
    else:
        size = float(memory_limit)
    if not 0 < size < 2**63:
        raise ValueError(
            "memory_limit must be a positive number of bytes, a string such as '2GB', or None; "
            f"got {memory_limit!r}."
        )
    return int(size)


def _bytes_of(match: re.Match[str]) -> float:
    """Read a number with its unit: MB is a million bytes, MiB 2**20."""
    number, unit, is_binary = match.groups()
    power = " KMGT".index(unit.upper() or " ")
    return float(number) * (1024.0 if is_binary else 1000.0) ** power


def tasks_at_once(n_threads: int, n_tasks: int, bytes_each: int, n_bytes: int) -> int:
    """How many tasks may run at once: as many as have the memory that each may need, or one.

    Examples
    --------
    >>> from hardmargin.memory import tasks_at_once
    >>> tasks_at_once(8, 3, 100, 1_000), tasks_at_once(8, 3, 100, 250), tasks_at_once(8, 3, 100, 9)
    (3, 2, 1)
    """
    return max(1, min(n_threads, n_tasks, n_bytes // max(bytes_each, 1)))


def free_memory(root: Path = Path("/")) -> int:
    """Bytes that can be used before the machine, or a cgroup limit, runs out of memory.

    Parameters
    ----------
    root : path
        Where ``proc`` and ``sys`` are.
    """
    return min([_of_machine(root), *(group.free() for group in _limited_groups(root))])


def _of_machine(root: Path) -> int:
    """Free physical memory, or a quarter of all of it where the system does not tell."""
    for line in _lines(root / "proc/meminfo"):
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return _physical() // 4


class _Group(NamedTuple):
    """A control group with a limit, and what its files are called."""

    folder: Path
    limit: int
    usage: str
    cache: str

    def free(self) -> int:
        """Limit less usage; file pages that can be dropped are free."""
        used = int(next(_lines(self.folder / self.usage), "0"))
        stat = dict(line.split() for line in _lines(self.folder / "memory.stat"))
        return max(self.limit - used + int(stat.get(self.cache, 0)), 0)


@cache
def _limited_groups(root: Path) -> list[_Group]:
    """Find the groups of this process, and those above them, that limit its memory."""
    found = []
    for line in _lines(root / "proc/self/cgroup"):
        hierarchy, controllers, path = line.strip().split(":", 2)
        if hierarchy == "0":  # version 2
            top, names = "sys/fs/cgroup", ("memory.max", "memory.current", "inactive_file")
        elif "memory" in controllers.split(","):
            top = "sys/fs/cgroup/memory"
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
        else:
            continue
        group = Path(path.lstrip("/"))
        # In a container the path may be the host's: the top of what is mounted is then the group.
        for folder in {root / top / group, *(root / top / p for p in group.parents)}:
            limit = next(_lines(folder / names[0]), "").strip()
            if limit.isdigit() and int(limit) < _physical():
                found.append(_Group(folder, int(limit), *names[1:]))
    return found


def _physical() -> int:
    return int(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))


def _lines(file: Path) -> Iterator[str]:
    try:
        with open(file, encoding="ascii") as lines:
            yield from lines
    except OSError:
        return
