"""The protocol of all solvers: ``solve(problem, options, monitor)``, one Solution per machine.

A :class:`Problem` is one or several two-class machines on the same rows, with a source of kernel
values that suits the solver: rows and a kernel, a kernel matrix, or its columns. Options are a
frozen dataclass of the solver's own; the :class:`~hardmargin.monitor.Monitor` decides when to stop.

Two kinds of solvers return more than one Solution per machine: ``staged_vote.py`` a list of them,
one for each kernel, and those of L2-SVMs in ``core_sets`` one for each direction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, combinations
from typing import Any, Generic, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hardmargin.kernels import FloatArray
from hardmargin.kernels import KernelRows as KernelRows

#: Classes on the negative side, and on the positive.
Machine: TypeAlias = tuple[Sequence[int], Sequence[int]]

#: What a solver reads kernel values from.
Values = TypeVar("Values")

IntArray: TypeAlias = NDArray[np.int32]


@dataclass(frozen=True)
class Problem(Generic[Values]):
    """Two-class machines on the same rows.

    Attributes
    ----------
    values : KernelRows, KernelMatrix, DenseKernel, KernelColumns or ScaledKernel
        Where kernel values come from; every solver states which it needs.
    codes : (n,) int32 array
        Class of each row; -1 for rows that take no part.
    machines : list of (negative classes, positive classes)
        The two-class problems.
    weights : (n,) array or None
        Weights of the rows; None weighs all alike.
    """

    values: Values
    codes: IntArray
    machines: Sequence[Machine]
    weights: FloatArray | None = None

    @classmethod
    def two_class(
        cls, values: Values, labels: ArrayLike, weights: ArrayLike | None = None
    ) -> Problem[Values]:
        """Make a problem of one machine from labels +1 and -1; rows of label 0 take no part."""
        y = np.asarray(labels)
        codes = np.where(y == 0, -1, y > 0).astype(np.int32)
        w = None if weights is None else np.asarray(weights, dtype=np.float64)
        return Problem(values, codes, [([0], [1])], w)

    @cached_property
    def sides(self) -> NDArray[np.int8]:
        """The side that each class is on in every machine: -1, +1, or 0 for neither."""
        # There may be tens of thousands of pairs, which loops in Python would take long to go over.
        parts = list(chain.from_iterable(self.machines))  # negative and positive classes in turn
        code = np.fromiter(chain.from_iterable(parts), dtype=np.intp)
        part = np.repeat(np.arange(len(parts)), np.fromiter(map(len, parts), dtype=np.intp))
        machine, side = part // 2, np.where(part % 2, 1, -1)
        n_classes = max(int(self.codes.max(initial=-1)), int(code.max())) + 1
        sides = np.zeros((len(self.machines), n_classes), dtype=np.int8)
        sides[machine, code] = side
        return sides

    @property
    def n_classes(self) -> int:
        """Number of classes, with or without rows."""
        return int(self.sides.shape[1])

    @property
    def machine_sizes(self) -> NDArray[np.intp]:
        """Number of rows of every machine."""
        n_rows = np.bincount(self.codes[self.codes >= 0], minlength=self.n_classes)
        return np.asarray((self.sides != 0) @ n_rows)

    @property
    def n_machine_rows(self) -> int:
        """Rows of all machines together: a row counts in every machine that it takes part in."""
        return int(self.machine_sizes.sum())

    @property
    def n_rows_of_largest(self) -> int:
        """Rows of the machine that has the most."""
        return int(self.machine_sizes.max())

    @cached_property
    def _sides_and_none(self) -> NDArray[np.int8]:
        """The sides, and a last column of zeros for code -1, which is left out."""
        return np.pad(self.sides, [(0, 0), (0, 1)])

    def labels_of(self, machine: int) -> FloatArray:
        """+1 and -1 for the rows of a machine, 0 for all others."""
        return np.asarray(self._sides_and_none[machine, self.codes], dtype=np.float64)

    def rows_of(self, machine: int) -> NDArray[np.intp]:
        """Rows that take part in a machine."""
        return np.asarray(self._sides_and_none[machine, self.codes].nonzero()[0])


@dataclass(frozen=True, kw_only=True)
class Expansion:
    """One machine: ``f(x) = sum_i coefficients_i k(x_i, x) + intercept`` over some rows.

    Attributes
    ----------
    rows : (n_support,) int array
        Rows with a coefficient.
    coefficients : (n_support,) array
        Multipliers times labels; one row per kernel where several kernels add up.
    intercept : float
        The bias.
    """

    rows: IntArray
    coefficients: FloatArray
    intercept: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Solution(Expansion):
    """What a solver returns for one machine; subclasses add fields of their algorithm.

    Attributes
    ----------
    certificate : float
        A bound on the distance from the optimum, as defined in the solver's module.
    stop_reason : str
        Why training ended: a reason of the solver's own, or :attr:`Monitor.stop_reason`.
    n_stages : int
        Accepted updates.
    n_kernel_evaluations : int
        Kernel values evaluated, where the solver evaluates them itself.
    history : dict of arrays
        What was recorded at every stage, by name.
    """

    certificate: float
    stop_reason: str
    n_stages: int
    n_kernel_evaluations: int = 0
    history: dict[str, NDArray[Any]] = field(default_factory=dict)


def machines_of(n_classes: int, multi_class: str) -> list[Machine]:
    """Negative and positive classes of every machine, pairs in scikit-learn's order."""
    if n_classes == 2 or multi_class == "ovo":
        return [([i], [j]) for i, j in combinations(range(n_classes), 2)]
    everyone = range(n_classes)
    return [([other for other in everyone if other != c], [c]) for c in everyone]
