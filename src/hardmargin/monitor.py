"""The clock of a fit: its time limit, Ctrl-C, progress, and callbacks that end it early.

Every solver takes one :class:`Monitor` and asks it before each stage whether to go on. Loops in
Python call :meth:`Monitor.go_on`, long steps call :meth:`Monitor.check` in between, and the
compiled core reads :attr:`Monitor.seconds_left` and calls :meth:`Monitor.report` now and then. A
solver that is told to stop returns what it has, with :attr:`Monitor.stop_reason`.

Listeners are called at every stage: progress lines, progress bars and callbacks are listeners.
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from threading import Event as Flag
from typing import TypeAlias, TypeVar

from hardmargin.checkpoint import Checkpoint, Unfinished
from hardmargin.resources import single_threaded_blas, worker_threads

Result = TypeVar("Result")
Other = TypeVar("Other")


class Stopped(Exception):
    """A long step was told to stop: the solver keeps what it had before the step."""


@dataclass(frozen=True)
class Event:
    """What a listener receives.

    Attributes
    ----------
    what : str
        The name of `value`, for instance ``"held-out loss"``.
    stage : int
        Stage of the machine being trained.
    value : float
        The number that shows its progress.
    machine, n_machines : int
        Number of machines that are done, and of all machines.
    seconds : float
        Time since the fit began.
    detail : str
        The candidate being tried, while something is chosen.
    unit : str
        What machines are called: ``"cell"`` where each cell has some of them.
    seconds_left : float
        Estimated time for the remaining machines, if they are like the finished ones; None until
        one is finished.
    """

    what: str
    stage: int
    value: float
    machine: int
    n_machines: int
    seconds: float
    detail: str = ""
    unit: str = "machine"
    seconds_left: float | None = None


#: Returns True to end the fit with the model so far.
Listener: TypeAlias = Callable[[Event], bool | None]


class Monitor:
    """Tells the solvers of one fit whether to go on.

    Parameters
    ----------
    max_seconds : float or None
        Time limit, from now on.
    listeners : sequence of callables
        Each receives an :class:`Event` at every stage, and may return True to end the fit.
    clock : callable, optional
        Returns the time in seconds; None is ``time.monotonic``.

    Attributes
    ----------
    checkpoint : Checkpoint or None
        Where finished steps are kept.
    unfinished : Unfinished or None
        The machines of the current step, which can resume from their states.

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
        clock: Callable[[], float] | None = None,
    ) -> None:
        self.checkpoint: Checkpoint | None = None
        self.unfinished: Unfinished | None = None
        self._listeners, self._clock = tuple(listeners), clock or time.monotonic
        self._start = self._clock()
        self._deadline = math.inf if max_seconds is None else self._start + max_seconds
        self._whole: Monitor | None = None
        self._is_divided = True
        self._ended_by: str | None = None
        self._out_of_time = "max_time"
        self._is_cancelled = False
        self._cut_short = Flag()  # shared by all parts
        self._what, self._n_machines, self._n_done = "violation", 1, 0
        self._unit, self._begun = "machine", self._start

    def part(
        self,
        what: str | None = None,
        *,
        n_machines: int | None = None,
        unit: str | None = None,
        share: float = 1.0,
    ) -> Monitor:
        """Make the monitor of a part of the fit.

        Parameters
        ----------
        what : str, optional
            Name of the values that the part reports.
        n_machines : int, optional
            Machines that the part trains.
        unit : str, optional
            What they are called.
        share : float
            Share of the time left that the part may take; `undivided` monitors ignore it.
        """
        part = copy.copy(self)
        part._whole = self
        part._n_done = 0
        part._what = self._what if what is None else what
        part._n_machines = self._n_machines if n_machines is None else n_machines
        part._unit, part._begun = unit or self._unit, self._clock()
        if share < 1.0 and self._is_divided:
            part._deadline = self._clock() + share * self.seconds_left
        return part

    def undivided(self) -> Monitor:
        """Make a monitor whose parts may each take all of the time left.

        It is for fits that are useless unless they end in time: no part of them is cut short while
        there is still time.
        """
        whole = self.part()
        whole._is_divided = False
        return whole

    def without_checkpoint(self) -> Monitor:
        """Make a monitor for another fit within this one, as of some of the rows.

        Its steps have the names of those of the whole fit, and other results.
        """
        other = self.part()
        other.checkpoint, other._cut_short = None, Flag()
        return other

    def to_finish(self, seconds: float) -> Monitor:
        """Make a monitor for what a fit that was ended early still needs; otherwise return self.

        Parameters
        ----------
        seconds : float
            Time that this may take.
        """
        if self._may_go_on or self._is_cancelled:
            return self
        last = Monitor(seconds, clock=self._clock)  # without a checkpoint: it is not the whole fit
        last._out_of_time = self.stop_reason
        return last

    @property
    def seconds_left(self) -> float:
        """Time that is left: infinite without a limit, 0 for a fit that is to end."""
        return max(self._deadline - self._clock(), 0.0) if self._may_go_on else 0.0

    @property
    def has_limit(self) -> bool:
        """Whether there is a time limit."""
        return self._deadline < math.inf

    @property
    def stop_reason(self) -> str:
        """Why a solver was told to stop: ``"max_time"``, or what `end` was given."""
        if self._ended_by is not None:
            return self._ended_by
        return self._out_of_time if self._whole is None else self._whole.stop_reason

    def go_on(self, stage: int, value: float) -> bool:
        """Report a stage; return whether there is time for another one."""
        return self.report(self._n_done, stage, value) and self.seconds_left > 0

    def once(self, step: str, compute: Callable[[], Result]) -> Result:
        """Return the result of a step: from the checkpoint, if the same fit has made it before.

        Once a step was cut short, the checkpoint rests: later steps may build on that step, and
        then differ from those of a fit that has the time.

        Parameters
        ----------
        step : str
            Its name; unique among steps that threads may take at the same time.
        compute : callable
            Makes the result.
        """
        if self.checkpoint is None or self.was_cut_short:
            return self._watched(compute)
        watched = partial(self._watched, compute)
        result: Result = self.checkpoint.step(step, watched, lambda: not self.was_cut_short)
        return result

    def _watched(self, compute: Callable[[], Result]) -> Result:
        """Make a step, and note whether it was cut short."""
        try:
            return compute()
        finally:
            if self.seconds_left <= 0:
                self.note_cut()

    @property
    def was_cut_short(self) -> bool:
        """Whether a step of the fit was cut short."""
        return self._cut_short.is_set()

    def note_cut(self) -> None:
        """Note that a step of the fit was cut short."""
        self._cut_short.set()

    def knows(self, step: str) -> bool:
        """Whether the checkpoint has the result of the next step of that name."""
        if self.checkpoint is None or self.was_cut_short:
            return False
        return self.checkpoint.knows(step)

    def once_from_state(self, step: str, compute: Callable[[Monitor], Result]) -> Result:
        """Return the result of a step whose machines can resume from a state, as `once` does.

        Parameters
        ----------
        step : str
            Its name.
        compute : callable
            Makes the result; its monitor has the states as `unfinished`.
        """
        part = self.part()
        if self.checkpoint is not None and not self.was_cut_short:
            part.unfinished = self.checkpoint.unfinished(step)
        return self.once(step, lambda: compute(part))

    def check(self) -> None:
        """Raise :class:`Stopped` if a long step should not go on."""
        if self.seconds_left <= 0:
            raise Stopped

    def report(self, n_done: int, stage: int, value: float, detail: str = "") -> bool:
        """Call the listeners with a stage; return False if one of them ends the fit."""
        if self._listeners:
            now, n_all = self._clock(), self._n_machines
            n_done = max(n_done, self._n_done)
            left = (now - self._begun) / n_done * (n_all - n_done) if n_done else None
            seconds = now - self._start
            event = Event(
                self._what, stage, value, n_done, n_all, seconds, detail, self._unit, left
            )
            if any([listener(event) for listener in self._listeners]):
                self.end("callback")
        return self._may_go_on

    def each(
        self, function: Callable[[int, Monitor], Result], n_tasks: int, n_threads: int = 1
    ) -> list[Result]:
        """Call a function with every task's number, on threads; one that fails ends all of them."""
        tasks = self.part()
        if min(n_threads, n_tasks) <= 1:
            results = []
            with single_threaded_blas():
                for task in range(n_tasks):
                    results.append(function(task, tasks))
                    tasks._n_done += 1
            return results
        with worker_threads(min(n_threads, n_tasks)) as pool:
            try:
                running = [
                    pool.submit(copy_context().run, function, task, tasks)
                    for task in range(n_tasks)
                ]
                for done in as_completed(running):
                    done.result()  # raises what a task raised
                    tasks._n_done += 1  # counted by this thread alone
                return [task.result() for task in running]
            except BaseException:
                tasks._is_cancelled = True
                pool.shutdown(wait=True, cancel_futures=True)
                raise

    def both(
        self,
        here: Callable[[Monitor], Result],
        beside: Callable[[Monitor], Other],
        n_threads: int = 1,
    ) -> tuple[Result, Other]:
        """Call two functions, the second on another thread; if the first fails, both end."""
        tasks = self.part()
        if n_threads <= 1:
            return here(tasks), beside(tasks)
        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(copy_context().run, beside, tasks)
            try:
                return here(tasks), running.result()
            except BaseException:
                tasks._is_cancelled = True
                raise

    @property
    def _may_go_on(self) -> bool:
        """Whether neither this part nor the whole fit was stopped; ignores the time."""
        if self._ended_by is not None or self._is_cancelled:
            return False
        return self._whole is None or self._whole._may_go_on

    def end(self, reason: str) -> None:
        """End the whole fit, with the model so far.

        Parameters
        ----------
        reason : str
            ``"callback"`` if a listener wants it, ``"interrupt"`` after Ctrl-C.
        """
        self._ended_by = reason
        if self._whole is not None:
            self._whole.end(reason)
