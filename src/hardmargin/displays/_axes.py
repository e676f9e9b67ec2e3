"""What all displays share: axes to draw on, and the fitted model inside a pipeline."""

from __future__ import annotations

from typing import Any

from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted


def axes_to_use(ax: Any) -> Any:
    """Return the axes that were given, or new ones."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError("Displays need matplotlib: pip install 'hardmargin[plot]'.") from None
    return plt.subplots(layout="constrained")[1] if ax is None else ax


def final_step(estimator: Any, needed: str, who_has_it: str) -> Any:
    """Return the last step of a pipeline, or the estimator, if it has what is needed.

    Parameters
    ----------
    estimator : estimator or Pipeline
        Fitted.
    needed : str
        A fitted attribute or a method.
    who_has_it : str
        Which estimators have it, for the error.
    """
    check_is_fitted(estimator)
    final = estimator[-1] if isinstance(estimator, Pipeline) else estimator
    if not hasattr(final, needed):
        raise ValueError(
            f"This {type(final).__name__} has no {needed}, which this display shows: it needs "
            f"{who_has_it}."
        )
    return final


def number_of_machine(machine: int, n_machines: int) -> int:
    """Check that there is such a machine."""
    if not 0 <= machine < n_machines:
        raise ValueError(f"machine must be 0 to {n_machines - 1}, got {machine}.")
    return machine
