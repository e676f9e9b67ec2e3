"""What ``verbose`` shows: a bar where the terminal or the notebook can draw one, or else lines."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

from hardmargin.monitor import Event, Listener

#: Fits that take less are not shown.
LEAST_SECONDS = 1.0


@contextmanager
def shown(name: str, verbose: float) -> Iterator[Listener]:
    """Show the progress of a fit that is not short, as a listener hears it.

    Parameters
    ----------
    name : str
        What is fitted.
    verbose : float
        Positive; more than 1 always prints lines.
    """
    bar = _Bar.if_possible(name) if verbose == 1 else None
    if bar is None:
        yield progress_lines(name, verbose)
        return
    try:
        yield bar.tell
    finally:
        bar.stop()


class _Bar:
    """One bar of rich, which appears when a fit takes long."""

    def __init__(self, name: str, progress: Any) -> None:
        self._name, self._progress, self._lock = name, progress, Lock()
        self._task: Any = None

    @classmethod
    def if_possible(cls, name: str) -> _Bar | None:
        """Make a bar, if rich is installed and there is somewhere to draw it."""
        try:
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
        except ImportError:
            return None
        console = Console(stderr=True)
        if not (console.is_terminal or console.is_jupyter):
            return None
        text = TextColumn("{task.description}")
        return cls(
            name,
            Progress(
                text,
                BarColumn(bar_width=24),
                TimeElapsedColumn(),
                console=console,
                transient=True,
            ),
        )

    def tell(self, event: Event) -> None:
        """Draw the state of the fit."""
        if event.seconds < LEAST_SECONDS:
            return
        with self._lock:  # threads report
            if self._task is None:
                self._progress.start()
                self._task = self._progress.add_task(self._name, total=None)
            parts = [_place(event), f"{event.what} {event.value:.3g}", _time_left(event)]
            is_counted = event.n_machines > 1
            self._progress.update(
                self._task,
                description=f"{self._name}: {', '.join(part for part in parts if part)}",
                total=event.n_machines if is_counted else None,
                completed=event.machine if is_counted else 0,
            )

    def stop(self) -> None:
        """Take the bar away."""
        if self._task is not None:
            self._progress.stop()


def _place(event: Event) -> str:
    """Where the fit is: a candidate that is tried, or a machine and its stage."""
    if event.detail:
        return event.detail
    place = f"stage {event.stage:,}"
    if event.n_machines > 1:
        return f"{event.unit} {event.machine + 1} of {event.n_machines}, {place}"
    return place


def _time_left(event: Event) -> str:
    """How long it will take, where that is known: cells are alike, machines are not."""
    if event.unit != "cell" or not event.seconds_left or event.n_machines <= 1 or event.detail:
        return ""
    return f"about {event.seconds_left:.0f} s left"


def progress_lines(name: str, verbose: float) -> Listener:
    """Make a listener that prints a line per second, or `verbose` times as often.

    Candidates tried while something is chosen are always printed.
    """
    last = 0.0

    def tell(event: Event) -> None:
        nonlocal last
        if not event.detail:
            if event.stage == 0 or event.seconds - last < 1.0 / verbose:
                return
            last = event.seconds
        left = _time_left(event)
        place = f"{left}, {_place(event)}" if left else _place(event)
        print(
            f"[{name}] {event.seconds:.0f} s: {place}, {event.what} {event.value:.3g}", flush=True
        )

    return tell
