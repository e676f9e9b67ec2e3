"""``--max-time``: one limit for a whole command, reading and writing included."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import click

#: Seconds to save a model: at least, per byte of its rows, and the largest share of what is left.
SAVING, SAVING_PER_BYTE, MOST_FOR_SAVING = 0.2, 6e-8, 1 / 3

#: What a fit gets that has no time left, which stops it as soon as there is a model.
NO_TIME = 1e-3


class Deadline:
    """The end of the time that a command may take.

    Parameters
    ----------
    seconds : float or None
        From the start of the command; None is no limit.
    begin : float
        When the command started, by the clock.
    clock : callable, optional
        Returns seconds.
    """

    def __init__(
        self, seconds: float | None, begin: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.seconds = seconds
        self._begin, self._clock = begin, clock

    def left(self) -> float | None:
        """Return the seconds that are left, perhaps fewer than none; None is no limit."""
        return None if self.seconds is None else self.seconds - (self._clock() - self._begin)

    def for_fit(self, X: Any) -> float | None:
        """Return the seconds that a fit may take if its model, with all rows, is saved after."""
        left = self.left()
        if left is None:
            return None
        n_bytes = float(12 * X.nnz if hasattr(X, "nnz") else 8 * X.shape[0] * X.shape[1])
        saving = min(MOST_FOR_SAVING * left, SAVING + SAVING_PER_BYTE * n_bytes)
        return float(max(left - saving, NO_TIME))


def deadline_of(seconds: float | None) -> Deadline:
    """Return the deadline of the command that runs."""
    begin: float = click.get_current_context().obj
    return Deadline(seconds, begin)
