"""Warnings that point at the line that called the package."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

from sklearn.exceptions import ConvergenceWarning

#: Modules whose lines are not the caller's: ours, those of scikit-learn that call ``fit``, and what
#: ends our context managers.
INSIDE = ("hardmargin.", "sklearn.callback.", "contextlib")


class Warned(NamedTuple):
    """What a fit warned of."""

    message: str
    category: type[Warning]


#: Where warnings go while they are held back.
_HELD_BACK: ContextVar[list[Warned] | None] = ContextVar("held_back", default=None)


def warn_caller(message: str, category: type[Warning] = ConvergenceWarning) -> None:
    """Warn as if from the caller's own line, however deep in the package this is."""
    held = _HELD_BACK.get()
    if held is not None:
        held.append(Warned(message, category))
        return
    frame, level = inspect.currentframe(), 1
    while frame is not None and frame.f_globals.get("__name__", "").startswith(INSIDE):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=max(level - 1, 1) + 1)


@contextmanager
def held_back() -> Iterator[list[Warned]]:
    """Collect the package's own warnings within the block, instead of showing them.

    ``warnings.catch_warnings`` is not for fits: before Python 3.14 it also hides what other threads
    warn of and, where blocks overlap, it can leave the filters of the whole process changed.

    Examples
    --------
    >>> from hardmargin.warn import held_back, warn_caller
    >>> with held_back() as held:
    ...     warn_caller("Too short.")
    >>> held[0].message
    'Too short.'
    """
    held: list[Warned] = []
    token = _HELD_BACK.set(held)
    try:
        yield held
    finally:
        _HELD_BACK.reset(token)
