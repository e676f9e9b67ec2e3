"""What a classifier hands to its solver, and what it gets back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hardmargin.kernels import FloatArray, Kernel, Precision, Rows
from hardmargin.solvers.problem import Machine

IntArray = NDArray[np.int32]


@dataclass(frozen=True)
class Problem:
    """A validated fit.

    Attributes
    ----------
    X : rows
        All rows, those of weight zero included.
    codes : (n,) int32 array
        Class of each row, as an index into ``classes``; -1 where the weight is zero.
    classes : array
        Labels.
    weights : (n,) array or None
        Sample weights; None where all are one.
    class_weights : (n_classes,) array or None
        What ``class_weight`` gives each class.
    kernel : Kernel
        With its numbers settled on the rows of positive weight.
    machines : list of (negative classes, positive classes)
        The two-class problems.
    dtype : {"float32", "float64"}
        Precision of the kernel values.
    groups : array or None
        What splitters keep together, as it came.
    """

    X: Rows
    codes: IntArray
    classes: NDArray[Any]
    weights: FloatArray | None
    class_weights: FloatArray | None
    kernel: Kernel
    machines: list[Machine]
    dtype: Precision
    groups: Any = None

    def is_positive(self, machine: int) -> NDArray[np.bool_]:
        """Whether each class is on the positive side of a machine."""
        side = np.zeros(len(self.classes), dtype=bool)
        side[self.machines[machine][1]] = True
        return side

    def rows_of(self, machine: int) -> NDArray[np.intp]:
        """Rows that take part in a machine."""
        taking_part = np.zeros(len(self.classes) + 1, dtype=bool)  # the last: code -1, left out
        for side in self.machines[machine]:
            taking_part[side] = True
        return np.flatnonzero(taking_part[self.codes])

    def labels_of(self, machine: int) -> FloatArray:
        """+1 and -1 for the rows of a machine, 0 for all others."""
        of_class = np.zeros(len(self.classes) + 1)  # the last: code -1, left out
        for label, side in zip((-1.0, 1.0), self.machines[machine], strict=True):
            of_class[list(side)] = label
        return of_class[self.codes]


@dataclass(frozen=True)
class Expansion:
    """One fitted machine: rows with a coefficient (alpha * y), and the intercept.

    With several kernels, the coefficients are of shape (n_kernels, n_rows).
    """

    rows: IntArray
    coefficients: FloatArray
    intercept: float
