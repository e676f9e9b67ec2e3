"""The clock of a fit: its time limit, Ctrl-C, progress, and whoever wants it to end early.

Every solver takes one :class:`Monitor` and asks it before each stage whether to go on. Loops in
Python call :meth:`Monitor.go_on`, long steps call :meth:`Monitor.check` in between, and the
compiled core reads :attr:`Monitor.seconds_left` and calls :meth:`Monitor.report` now and then. A
solver that is told to stop returns what it has, with :attr:`Monitor.stop_reason`.

Listeners hear of every stage: progress lines, progress bars and callbacks are listeners.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from hardmargin.parallel import single_threaded_blas

Result = TypeVar("Result")


class Stopped(Exception):
    """A long step was told to stop: the solver keeps what it had before the step."""


@dataclass(frozen=True)
class Event:
    """What a listener hears.

    Attributes
    ----------
    what : str
        The name of `value`, for instance ``"held-out loss"``.
    stage : int
        Stage of the machine at work.
    value : float
        The number that says how far it is.
    machine, n_machines : int
        Machines that are done, and those there are in all.
    seconds : float
        Time since the fit began.
    """

    what: str
    stage: int
    value: float
    machine: int
    n_machines: int
    seconds: float


#: Returns True to end the fit with the model so far.
Listener: TypeAlias = Callable[[Event], bool | None]


class _Fit:
    """What all monitors of one fit share."""

    def __init__(self, listeners: Sequence[Listener], clock: Callable[[], float]) -> None:
        self.listeners, self.clock = tuple(listeners), clock
        self.start = clock()
        self.is_cancelled = self.is_stopped = False


class Monitor:
    """Tells the solvers of one fit whether to go on.

    Parameters
    ----------
    max_seconds : float or None
        Time limit, from now on.
    listeners : sequence of callables
        Each hears an :class:`Event` at every stage, and may return True to end the fit.
    clock : callable
        Gives the time in seconds.

    Examples
    --------
    >>> from hardmargin.monitor import Monitor
    >>> monitor = Monitor(listeners=[lambda event: event.stage == 2])
    >>> [monitor.go_on(stage, 0.5) for stage in range(4)]
    [True, True, False, False]
    >>> monitor.stop_reason
    'callback'
    """

    def __init__(
        self,
        max_seconds: float | None = None,
        listeners: Sequence[Listener] = (),
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._fit = _Fit(listeners, clock)
        self._deadline = math.inf if max_seconds is None else self._fit.start + max_seconds
        self._what, self._n_machines, self._n_done = "violation", 1, 0

    def part(
        self,
        what: str | None = None,
        *,
        n_machines: int | None = None,
        share: float = 1.0,
    ) -> Monitor:
        """Make the monitor of a part of the fit.

        Parameters
        ----------
        what : str, optional
            Name of the values that the part reports.
        n_machines : int, optional
            Machines that the part trains.
        share : float
            Share of the time left that the part may take.
        """
        part = Monitor.__new__(Monitor)
        part._fit = self._fit
        part._what = self._what if what is None else what
        part._n_machines = self._n_machines if n_machines is None else n_machines
        part._n_done = 0
        part._deadline = self._deadline
        if share < 1.0:
            part._deadline = self._fit.clock() + share * self.seconds_left
        return part

    @property
    def seconds_left(self) -> float:
        """Time that is left, infinite without a limit, and none for a fit that was stopped."""
        if self._fit.is_stopped or self._fit.is_cancelled:
            return 0.0
        return max(self._deadline - self._fit.clock(), 0.0)

    @property
    def has_limit(self) -> bool:
        """Whether there is a time limit."""
        return self._deadline < math.inf

    @property
    def stop_reason(self) -> str:
        """Why a fit was told to stop: ``"max_time"``, or ``"callback"`` by a listener."""
        return "callback" if self._fit.is_stopped else "max_time"

    def go_on(self, stage: int, value: float) -> bool:
        """Report a stage; say whether there is time for another one."""
        return self.report(self._n_done, stage, value) and self.seconds_left > 0

    def check(self) -> None:
        """Raise :class:`Stopped` where a long step should not go on."""
        if self.seconds_left <= 0:
            raise Stopped

    def report(self, n_done: int, stage: int, value: float) -> bool:
        """Tell the listeners of a stage; say whether nobody wants the fit to end."""
        fit = self._fit
        if fit.listeners:
            seconds = fit.clock() - fit.start
            event = Event(self._what, stage, value, n_done, self._n_machines, seconds)
            for listener in fit.listeners:
                if listener(event):
                    fit.is_stopped = True
        return not (fit.is_stopped or fit.is_cancelled)

    def each(
        self, function: Callable[[int, Monitor], Result], n_tasks: int, n_threads: int = 1
    ) -> list[Result]:
        """Call a function with every task's number, on threads; Ctrl-C ends all of them."""

        def call(task: int) -> Result:
            with single_threaded_blas():
                result = function(task, self)
            self._n_done += 1
            return result

        if min(n_threads, n_tasks) <= 1:
            return [call(task) for task in range(n_tasks)]
        with ThreadPoolExecutor(min(n_threads, n_tasks)) as pool:
            try:
                return list(pool.map(call, range(n_tasks)))
            except BaseException:
                self._fit.is_cancelled = True
                pool.shutdown(wait=True, cancel_futures=True)
                raise


def progress_lines(name: str, verbose: float) -> Listener:
    """Make a listener that prints a line every other second, or `verbose` times as often."""
    last = 0.0

    def tell(event: Event) -> None:
        nonlocal last
        if event.stage == 0 or event.seconds - last < 2.0 / verbose:
            return
        last = event.seconds
        machine = f", machine {event.machine + 1} of {event.n_machines}"
        print(
            f"[{name}] {event.seconds:.0f} s{machine if event.n_machines > 1 else ''}: "
            f"stage {event.stage:,}, {event.what} {event.value:.3g}",
            flush=True,
        )

    return tell
