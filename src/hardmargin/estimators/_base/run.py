"""Several machines of one fit: on threads, with a clock, and with a word now and then."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
from joblib import effective_n_jobs

from hardmargin.parallel import single_threaded_blas

Result = TypeVar("Result")


class Run:
    """The clock of one fit, which its solvers ask at every stage."""

    def __init__(self, estimator: Any, n_tasks: int, what: str) -> None:
        self.deadline = np.inf
        if estimator.max_time is not None:
            self.deadline = time.monotonic() + estimator.max_time
        self.cancelled = False
        self.n_done = 0
        self._report = reporter(estimator, n_tasks, what)

    def keep_going(self, stage: int, value: float) -> bool:
        """Whether there is time for another stage."""
        if self._report is not None:
            self._report(self.n_done, stage, value)
        return not self.cancelled and time.monotonic() < self.deadline


def for_each(
    estimator: Any,
    tasks: Sequence[int],
    run: Callable[[int, Run], Result],
    what: str,
    *,
    n_threads: int | None = None,
) -> list[Result]:
    """Run all tasks, on `n_jobs` threads unless told otherwise; Ctrl-C stops every one of them."""
    if n_threads is None:
        n_threads = int(effective_n_jobs(estimator.n_jobs))
    n_threads = min(n_threads, len(tasks))
    state = Run(estimator, len(tasks), what)

    def one(task: int) -> Result:
        with single_threaded_blas():
            result = run(task, state)
        state.n_done += 1
        return result

    if n_threads == 1:
        return [one(task) for task in tasks]
    with ThreadPoolExecutor(n_threads) as pool:
        try:
            return list(pool.map(one, tasks))
        except BaseException:
            state.cancelled = True
            pool.shutdown(wait=True, cancel_futures=True)
            raise


def reporter(
    estimator: Any, n_machines: int, what: str
) -> Callable[[int, int, float], None] | None:
    """Make a function that prints a line every other second, if ``verbose`` asks for it."""
    if not estimator.verbose:
        return None
    start = last = time.monotonic()

    def report(machines_done: int, stage: int, value: float) -> None:
        nonlocal last
        now = time.monotonic()
        if stage == 0 or now - last < 2.0 / float(estimator.verbose):
            return
        last = now
        done = f", machine {machines_done + 1} of {n_machines}" if n_machines > 1 else ""
        print(
            f"[{type(estimator).__name__}] {now - start:.0f} s{done}: stage {stage:,}, "
            f"{what} {value:.3g}",
            flush=True,
        )

    return report
