"""The machines of a discriminant analysis, one class against the others, by any of its solvers."""

from __future__ import annotations

import time
from dataclasses import replace
from threading import Lock
from typing import Any, Literal

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray

from hardmargin.estimators._base.run import Run, for_each
from hardmargin.kernels import FloatArray, Kernel, Precision, Rows
from hardmargin.kernels.columns import KernelColumns, core_sets_at_once, shared_evaluations
from hardmargin.kernels.matrix import StoredMatrix, kernel_matrix
from hardmargin.memory import COLUMNS_SHARE, CORE_SHARE, memory_bytes, tasks_at_once
from hardmargin.solvers.core_sets.core_vector import BallOptions, solve_balls
from hardmargin.solvers.core_sets.dense import DenseOptions
from hardmargin.solvers.core_sets.directions import LinearSpan
from hardmargin.solvers.core_sets.lagrangian import Inverse, lagrangian_machines
from hardmargin.solvers.core_sets.newton import halves, newton_machines
from hardmargin.solvers.solution import BallSolution

Solver = Literal["core", "exact", "lagrangian", "nystroem"]

#: Matrices of all rows by all rows that an exact solver has at a time, at most.
N_MATRICES = {"exact": 3, "lagrangian": 2}

#: What ``tol="auto"`` stands for.
DEFAULT_TOL = {"core": 0.05, "nystroem": 0.05, "exact": 1e-6, "lagrangian": 1e-6}


def train_machines(
    mda: Any,
    kernel: Kernel,
    X: Rows,
    codes: NDArray[np.int32],
    weights: FloatArray | None,
    dtype: Precision,
    random: np.random.RandomState,
) -> list[list[BallSolution]]:
    """Train the machines of each class of a discriminant analysis; two classes share theirs.

    Parameters
    ----------
    mda : MarginDiscriminantAnalysis
        Its parameters say how.
    kernel : Kernel
        The kernel.
    X : rows
        Rows of positive weight, or the kernel matrix between them.
    codes : (n,) array
        Their classes.
    weights : (n,) array or None
        Their weights.
    dtype : {"float32", "float64"}
        Precision of the kernel values.
    random : RandomState
        Draws samples of rows.
    """
    n_classes = int(codes.max()) + 1
    classes = range(1 if n_classes == 2 else 0, n_classes)
    seeds = random.randint(2**31 - 1, size=n_classes)
    tasks = [(np.where(codes == c, 1.0, -1.0), np.random.default_rng(seeds[c])) for c in classes]
    train = _exact if mda.solver in N_MATRICES else _core
    return train(mda, kernel, X, weights, dtype, tasks)


_Tasks = list[tuple[FloatArray, np.random.Generator]]


def _core(
    mda: Any,
    kernel: Kernel,
    X: Rows,
    weights: FloatArray | None,
    dtype: Precision,
    tasks: _Tasks,
) -> list[list[BallSolution]]:
    """Core sets, on kernel columns that all classes share."""
    budget = memory_bytes(mda.memory_limit)
    n_threads = core_sets_at_once(
        int(effective_n_jobs(mda.n_jobs)), len(tasks), int(X.shape[0]), dtype, budget
    )
    columns = KernelColumns(
        kernel,
        X,
        dtype=dtype,
        memory_bytes=int(COLUMNS_SHARE * budget),
        n_jobs=mda.n_jobs if n_threads == 1 else 1,
    )
    options = BallOptions(
        C=mda.C,
        tol=tolerance(mda),
        stopping=mda.stopping,
        eps=mda.eps,
        memory_bytes=int(CORE_SHARE * budget),
        moment_rows=mda.moment_rows,
    )
    columns_of = [columns.for_task() for _ in tasks]

    def solve(task: int, run: Run) -> list[BallSolution]:
        labels, random = tasks[task]
        left = run.deadline - time.monotonic()
        return solve_balls(
            columns_of[task],
            labels,
            mda.n_directions,
            constraint=mda.constraint,
            weights=weights,
            options=replace(options, max_seconds=max(left, 0.0) if np.isfinite(left) else None),
            random=random,
            keep_going=run.keep_going,
        )

    found = for_each(mda, range(len(tasks)), solve, "violation", n_threads=n_threads)
    return [
        [
            replace(s, n_kernel_evaluations=s.n_kernel_evaluations - n)
            for s, n in zip(solutions, shared, strict=False)  # the last machine may have vanished
        ]
        for solutions, shared in zip(found, shared_evaluations(columns_of), strict=True)
    ]


def _exact(
    mda: Any,
    kernel: Kernel,
    X: Rows,
    weights: FloatArray | None,
    dtype: Precision,
    tasks: _Tasks,
) -> list[list[BallSolution]]:
    """Exact solvers, on a kernel matrix that all classes share."""
    matrix = _stored(mda, kernel, X, dtype)
    options = DenseOptions(C=mda.C, tol=tolerance(mda), moment_rows=mda.moment_rows)
    span = LinearSpan.of(kernel, X) if mda.n_directions > 1 else None
    matrices: list[StoredMatrix] = []
    inverses: list[Inverse] = []
    preparing = Lock()

    def solve(task: int, run: Run) -> list[BallSolution]:
        labels, random = tasks[task]
        arguments: dict[str, Any] = {
            "constraint": mda.constraint,
            "weights": weights,
            "options": options,
            "random": random,
            "keep_going": run.keep_going,
            "span": span,
        }
        # The first class prepares for all, while the clock runs.
        if mda.solver == "lagrangian":
            with preparing:
                if not inverses:
                    inverses.append(Inverse.of(matrix, mda.C, weights, run.keep_going))
            return lagrangian_machines(inverses[0], labels, mda.n_directions, **arguments)
        with preparing:
            if not matrices:
                matrices.extend(halves(matrix.values))
        return newton_machines(matrices, labels, mda.n_directions, **arguments)

    one = 8 * int(X.shape[0]) ** 2  # which every class beyond the first needs more
    left = memory_bytes(mda.memory_limit) - (N_MATRICES[mda.solver] - 1) * one
    n_threads = tasks_at_once(int(effective_n_jobs(mda.n_jobs)), len(tasks), one, left)
    return for_each(mda, range(len(tasks)), solve, "relative gap", n_threads=n_threads)


def _stored(mda: Any, kernel: Kernel, X: Rows, dtype: Precision) -> StoredMatrix:
    """Evaluate the kernel matrix, if the memory allows what will be done with it."""
    n = int(X.shape[0])
    needed, budget = N_MATRICES[mda.solver] * 8 * n * n, memory_bytes(mda.memory_limit)
    if needed > budget:
        raise ValueError(
            f"solver={mda.solver!r} needs {needed / 1e9:.3g} GB for the kernel matrix of {n:,} "
            f"rows and what is made of it; memory_limit leaves {budget / 1e9:.3g}. Raise "
            "memory_limit, or use solver='core', which needs a small part of the matrix."
        )
    matrix = kernel_matrix(kernel, X, dtype=dtype, memory_bytes=needed, n_jobs=mda.n_jobs)
    assert isinstance(matrix, StoredMatrix)
    values = np.asarray(matrix.values, dtype=np.float64)
    if not np.isfinite([values.min(), values.max()]).all():
        raise ValueError("The kernel's values must be finite; some are NaN or infinite.")
    return StoredMatrix(values)


def tolerance(mda: Any) -> float:
    """Turn `tol` into a number."""
    return DEFAULT_TOL[mda.solver] if mda.tol == "auto" else float(mda.tol)
