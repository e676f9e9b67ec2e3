"""The memory that a call may use."""

from __future__ import annotations

import re

from hardmargin.free_memory import free_memory

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
    >>> from hardmargin.budget import memory_bytes
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
    >>> from hardmargin.budget import tasks_at_once
    >>> tasks_at_once(8, 3, 100, 1_000), tasks_at_once(8, 3, 100, 250), tasks_at_once(8, 3, 100, 9)
    (3, 2, 1)
    """
    return max(1, min(n_threads, n_tasks, n_bytes // max(bytes_each, 1)))
