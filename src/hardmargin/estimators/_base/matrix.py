"""Training on whole kernel matrices: stored, streamed or of low rank."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, TypeVar

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval

from hardmargin.estimators._base.classifier import KernelClassifier, Training
from hardmargin.estimators._base.estimator import COUNT
from hardmargin.estimators._base.options import Choice
from hardmargin.kernels.diagonal import check_diagonal
from hardmargin.kernels.low_rank import LANDMARKS, LowRankMatrix, low_rank_matrix
from hardmargin.kernels.matrix import KernelMatrix, kernel_matrix
from hardmargin.monitor import Monitor, Stopped
from hardmargin.resources import memory_bytes, tasks_at_once
from hardmargin.solvers.problem import Problem, Solution
from hardmargin.warn import warn_caller

#: Share of the memory limit that a kernel matrix may take; the rest is for copies and vectors.
MATRIX_SHARE = 0.5

#: Valid parameters of a low-rank kernel.
LOW_RANK_CONSTRAINTS: dict[str, list[Any]] = {
    "rank": [COUNT, Interval(Real, 0, 1, closed="neither"), Choice({"auto"}), None],
    "landmarks": [Choice(LANDMARKS)],
}

Options = TypeVar("Options")
AnySolution = TypeVar("AnySolution", bound=Solution)


def low_rank_of(
    classifier: KernelClassifier, training: Training, monitor: Monitor
) -> LowRankMatrix | None:
    """Approximate the kernel of all rows of positive weight, if `rank` is set and there is time."""
    rank: Any = classifier.rank
    if rank is None:
        return None
    try:
        return low_rank_matrix(
            training.kernel,
            training.X,
            int(rank) if isinstance(rank, Integral) else rank,
            landmarks=classifier.landmarks,
            rows=np.flatnonzero(training.codes >= 0),
            dtype=training.dtype,
            memory_bytes=memory_bytes(classifier.memory_limit),
            n_jobs=classifier.n_jobs,
            random_state=classifier._new_generator(),
            monitor=monitor,
        )
    except Stopped:
        return None


def solve_on_matrices(
    solve: Callable[[Problem[KernelMatrix], Options, Monitor], list[AnySolution]],
    classifier: KernelClassifier,
    training: Training,
    options: Options,
    monitor: Monitor,
    *,
    low_rank: LowRankMatrix | None = None,
    together: bool = False,
) -> list[AnySolution]:
    """Train all machines: on one kernel matrix if all use the same rows, else on one each.

    Parameters
    ----------
    solve : callable
        The solver.
    classifier : KernelClassifier
        Its memory limit and threads apply.
    training : Training
        The machines.
    options : object
        Options of the solver.
    monitor : Monitor
        The clock of the fit.
    low_rank : LowRankMatrix, optional
        Approximation of the kernel between all rows of positive weight.
    together : bool
        Whether the solver trains machines that use the same rows together, sharing products.

    Returns
    -------
    list of Solution
        Over the rows of `training`.
    """
    # Here for all machines, as the matrix of the last may be evaluated after hours of training.
    check_diagonal(training.kernel, training.X, training.codes >= 0, dtype=training.dtype)
    every = np.flatnonzero(training.codes >= 0)
    weights, machines = training.row_weights(), training.machines
    rows_of = [training.rows_of(m) for m in range(len(machines))]
    n_at_once = min(effective_n_jobs(classifier.n_jobs), len(machines))
    is_shared = all(len(rows) == len(every) for rows in rows_of)
    if not is_shared and low_rank is None:
        largest = max(len(rows) for rows in rows_of)
        each = largest**2 * np.dtype(training.dtype).itemsize
        n_at_once = tasks_at_once(n_at_once, len(machines), each, _budget(classifier))

    def problem_of(
        rows: NDArray[Any], n_jobs: int | None, monitor: Monitor
    ) -> Problem[KernelMatrix]:
        matrix = _matrix(classifier, training, rows, n_jobs, low_rank, monitor)
        return Problem(matrix, training.codes[rows], machines, weights[rows])

    shared = problem_of(every, classifier.n_jobs, monitor) if is_shared else None
    if shared is not None and together:
        solutions = solve(shared, options, monitor.part(n_machines=1))
    else:
        n_jobs = classifier.n_jobs if n_at_once == 1 else 1

        def train(machine: int, part: Monitor) -> AnySolution:
            problem = shared or problem_of(rows_of[machine], n_jobs, part)
            return solve(replace(problem, machines=[machines[machine]]), options, part)[0]

        solutions = monitor.each(train, len(machines), n_at_once)
    return [
        replace(solution, rows=rows[solution.rows].astype(np.int32))
        for solution, rows in zip(solutions, rows_of, strict=True)
    ]


def _budget(classifier: KernelClassifier) -> int:
    return int(MATRIX_SHARE * memory_bytes(classifier.memory_limit))


def _matrix(
    classifier: KernelClassifier,
    training: Training,
    rows: NDArray[Any],
    n_jobs: int | None,
    low_rank: LowRankMatrix | None,
    monitor: Monitor,
) -> KernelMatrix:
    """Make the kernel matrix of some rows, and warn if it does not fit in memory."""
    if low_rank is not None:
        every = np.flatnonzero(training.codes >= 0)
        if len(rows) < len(every):
            low_rank = low_rank.restrict(np.searchsorted(every, rows))
        return replace(low_rank, n_jobs=n_jobs)
    matrix = kernel_matrix(
        training.kernel,
        training.X,
        None if len(rows) == training.X.shape[0] else rows,
        dtype=training.dtype,
        memory_bytes=_budget(classifier),
        n_jobs=n_jobs,
        monitor=monitor,
    )
    needed = len(rows) ** 2 * np.dtype(training.dtype).itemsize
    if needed > _budget(classifier) and training.kernel.name != "precomputed":
        advice = "raise memory_limit" + (
            ", or approximate it with rank='auto'" if hasattr(classifier, "rank") else ""
        )
        warn_caller(
            f"The kernel matrix of {len(rows):,} rows would take {needed / 1e9:.3g} GB; "
            f"memory_limit leaves {_budget(classifier) / 1e9:.3g} GB for it. It is recomputed at "
            f"every stage, which is slow: {advice}. GreedySVC does not need it.",
            UserWarning,
        )
    return matrix
