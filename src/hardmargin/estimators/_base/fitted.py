"""What fitted estimators are made of, for those who do more than predict with them.

Saving, ONNX, compression, displays and clusters look into a model by these functions alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hardmargin.cells.experts import Experts
from hardmargin.estimators._base.categories import Categories
from hardmargin.estimators._base.classifier import KernelClassifier
from hardmargin.estimators._base.estimator import KernelEstimator
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


def categories_of(estimator: KernelEstimator) -> Categories | None:
    """How columns of categories turn into numbers."""
    return estimator._categories_


def filling_of(classifier: KernelClassifier) -> Filling | None:
    """How missing numbers are filled."""
    return classifier._filling_


def kernel_of(estimator: KernelEstimator) -> Kernel | KernelSum | None:
    """Return the kernel; None for a mixture of experts, which have their own."""
    return getattr(estimator, "_kernel_", None)


def is_mixture(classifier: KernelClassifier) -> bool:
    """Whether a classifier predicts with a mixture of experts."""
    return isinstance(classifier._model, Experts)


def experts_in(classifier: KernelClassifier) -> Experts:
    """Return the experts of a mixture."""
    assert isinstance(classifier._model, Experts)
    return classifier._model


def machines_in(classifier: KernelClassifier) -> Machines:
    """Return the machines of a classifier that is no mixture."""
    return classifier._machines


def calibration_of(
    classifier: KernelClassifier,
) -> Calibration | Frequencies | LogProbabilities | None:
    """How margins turn into probabilities, where rows were held out."""
    return classifier._calibration_


def division_of(classifier: KernelClassifier) -> str:
    """How machines divide the classes: ``"ovo"`` or ``"ovr"``."""
    return classifier._division


def losses_of(classifier: Any) -> Losses:
    """Return the held-out losses of a vote."""
    losses: Losses = classifier._losses_
    return losses


def filled_rows(classifier: KernelClassifier, X: Any) -> Rows:
    """Validate and fill rows, without scaling them."""
    return classifier._filled_queries(X)


def checked_rows(classifier: KernelClassifier, X: Any) -> Rows:
    """Validate, fill and scale rows."""
    return classifier._check_rows(X)


def margins_of(classifier: KernelClassifier, seen: Rows) -> FloatArray:
    """Scores of all machines, of shape (n, n_machines); of all classes for a mixture."""
    return classifier._margins(seen)


def scores_of(classifier: KernelClassifier, margins: FloatArray) -> FloatArray:
    """Scores of the classes, of shape (n, n_classes)."""
    return classifier._scores(margins)


def by_class_of(classifier: KernelClassifier) -> NDArray[np.intp]:
    """Return the order of the support rows by class."""
    return classifier._by_class_


def keep_machines(classifier: KernelClassifier, machines: Machines) -> None:
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
