"""What fitted estimators are made of, for those who do more than predict with them.

Saving, ONNX, compression, displays and clusters look into a model by these functions alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hardmargin.cells.experts import Experts
from hardmargin.estimators._base.categories import Categories
from hardmargin.estimators._base.missing import Filling
from hardmargin.kernels import FloatArray, Kernel, KernelSum, Rows
from hardmargin.prediction import Machines
from hardmargin.selection.calibration import Calibration
from hardmargin.selection.frequencies import Frequencies
from hardmargin.selection.mixture import LogProbabilities
from hardmargin.selection.vote import Losses
from hardmargin.solvers.problem import IntArray

#: Attributes of a mixture that `keep_experts` sets.
OF_EXPERTS = {"_experts_", "support_", "n_support_", "_by_class_"}


def categories_of(estimator: Any) -> Categories | None:
    """How columns of categories turn into numbers."""
    found: Categories | None = estimator._categories_
    return found


def filling_of(classifier: Any) -> Filling | None:
    """How missing numbers are filled."""
    found: Filling | None = classifier._filling_
    return found


def kernel_of(estimator: Any) -> Kernel | KernelSum | None:
    """Return the kernel; None for a mixture of experts, which have their own."""
    found: Kernel | KernelSum | None = getattr(estimator, "_kernel_", None)
    return found


def is_mixture(classifier: Any) -> bool:
    """Whether a classifier predicts with a mixture of experts."""
    return isinstance(classifier._model, Experts)


def experts_in(classifier: Any) -> Experts:
    """Return the experts of a mixture."""
    found: Experts = classifier._model
    return found


def machines_in(classifier: Any) -> Machines:
    """Return the machines of a classifier that is no mixture."""
    found: Machines = classifier._machines
    return found


def calibration_of(classifier: Any) -> Calibration | Frequencies | LogProbabilities | None:
    """How margins turn into probabilities, where rows were held out."""
    found: Calibration | Frequencies | LogProbabilities | None = classifier._calibration_
    return found


def division_of(classifier: Any) -> str:
    """How machines divide the classes: ``"ovo"`` or ``"ovr"``."""
    found: str = classifier._division
    return found


def losses_of(classifier: Any) -> Losses:
    """Return the held-out losses of a vote."""
    found: Losses = classifier._losses_
    return found


def filled_rows(classifier: Any, X: Any) -> Rows:
    """Validate and fill rows, without scaling them."""
    rows: Rows = classifier._filled_queries(X)
    return rows


def checked_rows(classifier: Any, X: Any) -> Rows:
    """Validate, fill and scale rows."""
    rows: Rows = classifier._check_rows(X)
    return rows


def margins_of(classifier: Any, seen: Rows) -> FloatArray:
    """Scores of all machines, of shape (n, n_machines); of all classes for a mixture."""
    margins: FloatArray = classifier._margins(seen)
    return margins


def scores_of(classifier: Any, margins: FloatArray) -> FloatArray:
    """Scores of the classes, of shape (n, n_classes)."""
    scores: FloatArray = classifier._scores(margins)
    return scores


def by_class_of(classifier: Any) -> NDArray[np.intp]:
    """Return the order of the support rows by class."""
    order: NDArray[np.intp] = classifier._by_class_
    return order


def keep_machines(classifier: Any, machines: Machines) -> None:
    """Let a classifier predict with other machines."""
    classifier._keep_machines(machines)


def keep_experts(
    classifier: Any, experts: Experts, support: tuple[IntArray, IntArray, NDArray[np.intp]]
) -> None:
    """Let a mixture predict with other experts.

    Parameters
    ----------
    classifier : EnsembleSVC
        The mixture.
    experts : Experts
        Those that take part.
    support : tuple of arrays
        Their support rows, how many each class has, and their order by class.
    """
    classifier._experts_ = experts
    classifier.support_, classifier.n_support_, classifier._by_class_ = support
