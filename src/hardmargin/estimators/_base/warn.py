"""Warnings that point at the line that called the package."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Collection

from sklearn.exceptions import ConvergenceWarning


def warn_caller(message: str, category: type[Warning] = ConvergenceWarning) -> None:
    """Warn as if the caller's own line did, however deep in the package this is."""
    frame, level = inspect.currentframe(), 1
    while frame is not None and frame.f_globals.get("__name__", "").startswith("hardmargin."):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=max(level - 1, 1) + 1)


def warn_unfinished_core_set(reasons: Collection[str], tol: float, if_indefinite: str) -> None:
    """Warn of core sets that stopped before their certificate; say which knob to turn."""
    for reason, message in (
        (
            "core_full",
            "Training stopped where the memory holds no larger core set; raise memory_limit, "
            "or tol to need fewer rows.",
        ),
        (
            "rounding",
            f"tol={tol} is beyond the precision of the kernel values; raise tol, or use "
            "dtype='float64'.",
        ),
        (
            "indefinite",
            "The kernel is not positive semi-definite, and training has no optimum to go to; "
            f"{if_indefinite}.",
        ),
        (
            "stalled",
            "Training stopped where it gets nowhere, as the kernel matrix is too close to singular "
            "for this C; scale the features, or lower C.",
        ),
        ("max_stages", "Training stopped at max_stages; raise it, or tol to stop earlier."),
        ("max_time", "Training stopped at max_time; raise it, or tol to stop earlier."),
    ):
        if reason in reasons:
            warn_caller(message)
