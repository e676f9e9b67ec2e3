"""Progress of a long run: a bar in a terminal, plain lines elsewhere."""

from __future__ import annotations

import importlib.util
import sys
from contextlib import ExitStack
from typing import Any, Self, TextIO

__all__ = ["Progress"]


class Progress:
    """Report how many tasks are done; a context manager.

    Shows rich's bar if rich is installed and the stream is a terminal.

    Parameters
    ----------
    n_tasks : int
        How many there are.
    stream : file, optional
        Where to write; the standard error if not given.
    quiet : bool, default=False
        Whether to write nothing.

    Examples
    --------
    >>> with Progress(2, stream=sys.stdout) as progress:
    ...     progress.done("tnn08/gs/a1a", "0.3 s")
    [1/2] tnn08/gs/a1a: 0.3 s
    """

    def __init__(self, n_tasks: int, stream: TextIO | None = None, quiet: bool = False) -> None:
        self.n_tasks = n_tasks
        self.stream = sys.stderr if stream is None else stream
        self.quiet = quiet
        self.n_done = 0
        self._bar: Any = None
        self._exits = ExitStack()

    def __enter__(self) -> Self:
        if not self.quiet and self.stream.isatty():
            self._bar = self._exits.enter_context(rich_bar(self.stream)) if has_rich() else None
        if self._bar is not None:
            self._task = self._bar.add_task("", total=self.n_tasks)
        return self

    def __exit__(self, *exception: object) -> None:
        self._exits.close()

    def now(self, key: str) -> None:
        """Show which task runs.

        Parameters
        ----------
        key : str
            Its name.
        """
        if self._bar is not None:
            self._bar.update(self._task, description=key)

    def done(self, key: str, remark: str | None) -> None:
        """Count one more task.

        Parameters
        ----------
        key : str
            Its name.
        remark : str or None
            How long it took, or what went wrong; None only counts it.
        """
        self.n_done += 1
        if remark is None:
            if self._bar is not None:
                self._bar.update(self._task, advance=1)
            return
        line = f"{key}: {remark}"
        if self._bar is not None:
            self._bar.console.print(line, markup=False, highlight=False)
            self._bar.update(self._task, advance=1)
        elif not self.quiet:
            print(f"[{self.n_done}/{self.n_tasks}] {line}", file=self.stream, flush=True)


def has_rich() -> bool:
    """Whether rich is installed.

    Returns
    -------
    bool
    """
    return importlib.util.find_spec("rich") is not None


def rich_bar(stream: TextIO) -> Any:
    """Make rich's bar.

    Parameters
    ----------
    stream : file
        Where to draw it.

    Returns
    -------
    rich.progress.Progress
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=None),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    return Bar(*columns, console=Console(file=stream))
