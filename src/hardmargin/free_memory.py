"""The memory that is free on this machine, or in the container that the process runs in."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple


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
