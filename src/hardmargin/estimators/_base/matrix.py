"""What the classifiers share whose solvers multiply with the whole kernel matrix at every stage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval

from hardmargin.estimators._base.classifier import KernelClassifier
from hardmargin.estimators._base.options import Choice
from hardmargin.estimators._base.problem import Problem
from hardmargin.estimators._base.validation import COUNT
from hardmargin.estimators._base.warn import warn_caller
from hardmargin.kernels.low_rank import LANDMARKS, LowRankMatrix, low_rank_matrix
from hardmargin.kernels.matrix import KernelMatrix, StreamedMatrix, kernel_matrix
from hardmargin.memory import memory_bytes, tasks_at_once
from hardmargin.randomness import random_numbers
from hardmargin.solvers.problem import finite_diagonal

#: Share of the memory limit that a kernel matrix may take; the rest is for copies and vectors.
MATRIX_SHARE = 0.5


class MatrixClassifier(KernelClassifier):
    """Base of the classifiers that solve on a stored, streamed or low-rank kernel matrix."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **KernelClassifier._parameter_constraints,
        "rank": [
            COUNT,
            Interval(Real, 0, 1, closed="neither"),
            Choice({"auto"}),
            None,
        ],
        "landmarks": [Choice(LANDMARKS)],
        "max_stages": [COUNT],
    }

    def _low_rank(self, problem: Problem) -> LowRankMatrix | None:
        """Approximate the kernel of all rows, where `rank` asks for it."""
        self.rank_: int | None = None
        rank = getattr(self, "rank", None)
        if rank is None:
            return None
        factored = low_rank_matrix(
            problem.kernel,
            problem.X,
            int(rank) if isinstance(rank, Integral) else rank,
            landmarks=self.landmarks,
            rows=np.flatnonzero(problem.codes >= 0),
            dtype=problem.dtype,
            memory_bytes=memory_bytes(self.memory_limit),
            n_jobs=self.n_jobs,
            random_state=random_numbers(self.random_state),
        )
        self.rank_ = factored.rank
        return factored

    def _matrix(
        self,
        problem: Problem,
        rows: NDArray[Any],
        low_rank: LowRankMatrix | None,
        *,
        n_jobs: int | None,
    ) -> KernelMatrix:
        """Make the kernel matrix of a machine's rows."""
        finite_diagonal(problem.kernel, problem.X, problem.codes)
        if low_rank is not None:
            every = np.flatnonzero(problem.codes >= 0)
            if len(rows) < len(every):
                low_rank = low_rank.restrict(np.searchsorted(every, rows))
            return replace(low_rank, n_jobs=n_jobs)
        budget = int(MATRIX_SHARE * memory_bytes(self.memory_limit))
        matrix = kernel_matrix(
            problem.kernel,
            problem.X,
            None if len(rows) == problem.X.shape[0] else rows,
            dtype=problem.dtype,
            memory_bytes=budget,
            n_jobs=n_jobs,
        )
        if isinstance(matrix, StreamedMatrix):
            needed = len(rows) ** 2 * np.dtype(problem.dtype).itemsize
            advice = "raise memory_limit" + (
                ", or set rank (400, say) to approximate it" if hasattr(self, "rank") else ""
            )
            warn_caller(
                f"The kernel matrix of {len(rows):,} rows would take {needed / 1e9:.3g} GB; "
                f"memory_limit leaves {budget / 1e9:.3g} for it. It is evaluated anew at every "
                f"stage, which is slow: {advice}. GreedySVC does not need it.",
                UserWarning,
            )
        return matrix

    def _machines_at_once(self, problem: Problem, low_rank: LowRankMatrix | None) -> int:
        """How many machines may be trained at once: each has its own kernel matrix."""
        n_machines = len(problem.machines)
        if low_rank is not None:
            return min(self._threads(), n_machines)
        largest = max(len(problem.rows_of(m)) for m in range(n_machines))
        return tasks_at_once(
            self._threads(),
            n_machines,
            largest**2 * np.dtype(problem.dtype).itemsize,
            int(MATRIX_SHARE * memory_bytes(self.memory_limit)),
        )


def one_or_all(values: Sequence[Any]) -> Any:
    """Two classes: the machine's own value; many classes: an array, or a list of paths."""
    if len(values) == 1:
        return values[0]
    return list(values) if isinstance(values[0], np.ndarray) else np.array(values)
