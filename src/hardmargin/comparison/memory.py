"""The largest memory of a process, from now on."""

from __future__ import annotations

import sys
from pathlib import Path

#: Linux says here what a process has, and forgets its peak where a 5 is written.
STATUS, FORGET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


class PeakMemory:
    """The memory that this process takes beyond what it has at the beginning.

    The peak that ``getrusage`` knows is that of the process which started this one too, if that is
    larger, and of what was read before; it serves where there is no other.
    """

    def __init__(self) -> None:
        try:
            FORGET.write_text("5")
            self._before = _from_status("VmRSS")
        except OSError:
            self._before = None
        self._peak_before = _of_usage()

    def megabytes(self) -> float | None:
        """Return the difference between the peak and the beginning; None if it is not known."""
        if self._before is not None and (peak := _from_status("VmHWM")) is not None:
            return max(peak - self._before, 0.0)
        peak = _of_usage()
        if peak is None or self._peak_before is None or peak <= self._peak_before:
            return None
        return peak - self._peak_before


def _from_status(name: str) -> float | None:
    """Read a line of what Linux says, in megabytes."""
    for line in STATUS.read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024 / 1e6
    return None


def _of_usage() -> float | None:
    if sys.platform == "win32":
        return None
    import resource

    unit = 1e6 if sys.platform == "darwin" else 1e3
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
