"""Weights of rows and classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hardmargin.kernels import FloatArray
from hardmargin.solvers.problem import Problem

#: The largest weight is between one over this and this, and no other is smaller than it by a larger
#: factor: sums of weights and of their squares then neither overflow nor vanish.
MAX_WEIGHT = 1e75


def moderate(weights: FloatArray) -> FloatArray:
    """Scale extreme weights so that they can be added up and squared.

    Parameters
    ----------
    weights : (n,) array
        Not negative.
    """
    largest = float(weights.max(initial=0.0))
    if largest == 0:
        return weights
    bounded = min(max(largest, 1.0 / MAX_WEIGHT), MAX_WEIGHT)
    scaled = weights if largest == bounded else weights / largest * bounded
    return np.where(weights > 0, np.maximum(scaled, bounded / MAX_WEIGHT), 0.0)


def row_weights(
    codes: NDArray[np.int32], weights: FloatArray | None, class_weights: FloatArray | None
) -> FloatArray:
    """Sample weights, times the weights of the classes; zero for rows that take no part."""
    present = codes >= 0
    found = np.where(present, 1.0 if weights is None else weights, 0.0)
    if class_weights is None:
        return found if weights is None else moderate(found)
    found[present] *= class_weights[codes[present]]
    return moderate(found)


def log_weight_ratio(
    problem: Problem[Any], class_weights: FloatArray | None, machine: int
) -> float | None:
    """Log of the mean class weight of the negative side over that of the positive side."""
    if class_weights is None:
        return None
    rows = problem.rows_of(machine)
    codes = problem.codes[rows]
    weights = np.ones(len(rows)) if problem.weights is None else problem.weights[rows]
    is_positive = problem.sides[machine, codes] > 0
    negative, positive = (
        np.average(class_weights[codes[side]], weights=weights[side])
        for side in (~is_positive, is_positive)
    )
    return float(np.log(negative / positive))
