"""Warnings that point at the line that called the package."""

from __future__ import annotations

import inspect
import warnings

from sklearn.exceptions import ConvergenceWarning

#: Modules whose lines are not the caller's: ours, those of scikit-learn that call ``fit``, and what
#: ends our context managers.
INSIDE = ("hardmargin.", "sklearn.callback.", "contextlib")


def warn_caller(message: str, category: type[Warning] = ConvergenceWarning) -> None:
    """Warn as if the caller's own line did, however deep in the package this is."""
    frame, level = inspect.currentframe(), 1
    while frame is not None and frame.f_globals.get("__name__", "").startswith(INSIDE):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=max(level - 1, 1) + 1)
