"""The record of training rows that everything that chooses works on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hardmargin.kernels import FloatArray, Rows
from hardmargin.kernels.blocks import MadeRows
from hardmargin.solvers.problem import IntArray


def _no_names() -> NDArray[Any]:
    return np.empty(0, dtype=object)


class TrainingRows(NamedTuple):
    """What ``fit`` was given, validated.

    Attributes
    ----------
    X : rows
        The rows, or the kernel matrix between them.
    codes : (n,) int32 array
        Class of every row, from 0; -1 for rows of weight zero.
    classes : (n_classes,) array
        Labels of the classes.
    weights : (n,) array or None
        Sample weights, where they are not all one.
    is_part : bool
        Whether these are a part of the rows, as there may be no time for all of them.
    class_weights : (n_classes,) array or None
        Factors of the classes' odds, where an estimator has them.
    feature_names : callable
        Returns the names of the columns, for warnings.
    """

    X: Rows
    codes: IntArray
    classes: NDArray[Any]
    weights: FloatArray | None
    is_part: bool = False
    class_weights: FloatArray | None = None
    feature_names: Callable[[], NDArray[Any]] = _no_names

    @property
    def n_rows(self) -> int:
        """Number of rows that take part."""
        return int((self.codes >= 0).sum())

    def with_weights(self, weights: FloatArray | None) -> TrainingRows:
        """Return the same with other weights: None where all are one."""
        is_plain = weights is None or bool((weights == 1).all())
        return self._replace(weights=None if is_plain else weights)

    @property
    def positive_weights(self) -> FloatArray | None:
        """Weights for those who leave out rows of code -1: None where all others weigh one."""
        if self.weights is None or (self.weights[self.weights > 0] == 1).all():
            return None
        return self.weights

    def all_made(self) -> TrainingRows:
        """Return the same with all rows made, if they were to be made when needed."""
        return self._replace(X=self.X[:]) if isinstance(self.X, MadeRows) else self
