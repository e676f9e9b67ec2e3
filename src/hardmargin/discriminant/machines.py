"""The machines of a discriminant analysis, one class against the others, by any of its solvers."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray

from hardmargin.budget import COLUMNS_SHARE, CORE_SHARE, memory_bytes
from hardmargin.classifiers.run import Run, for_each
from hardmargin.kernel_columns import KernelColumns
from hardmargin.kernel_matrix import StoredMatrix, kernel_matrix
from hardmargin.kernels import FloatArray, Kernel, Precision, Rows
from hardmargin.solvers.ball import BallOptions, solve_balls
from hardmargin.solvers.dense_machine import DenseOptions
from hardmargin.solvers.directions import LinearSpan
from hardmargin.solvers.lagrangian import Inverse, lagrangian_machines
from hardmargin.solvers.newton import halves, newton_machines
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
    if mda.solver in N_MATRICES:
        prepare, n_threads = _exact, 1  # BLAS has the threads
    else:
        prepare, n_threads = _core, min(int(effective_n_jobs(mda.n_jobs)), len(classes))
    solve = prepare(mda, kernel, X, weights, dtype, n_threads)

    def one(c: int, run: Run) -> list[BallSolution]:
        labels = np.where(codes == c, 1.0, -1.0)
        return solve(labels, np.random.default_rng(seeds[c]), run)

    what = "relative gap" if mda.solver in N_MATRICES else "violation"
    return for_each(mda, classes, one, what, n_threads=n_threads)


_Solve = Callable[[FloatArray, np.random.Generator, Run], list[BallSolution]]


def _core(
    mda: Any,
    kernel: Kernel,
    X: Rows,
    weights: FloatArray | None,
    dtype: Precision,
    n_threads: int,
) -> _Solve:
    """Core sets, on kernel columns that all classes share."""
    budget = memory_bytes(mda.memory_limit)
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
        memory_bytes=int(CORE_SHARE * budget) // n_threads,
        moment_rows=mda.moment_rows,
    )

    def solve(labels: FloatArray, random: np.random.Generator, run: Run) -> list[BallSolution]:
        left = run.deadline - time.monotonic()
        return solve_balls(
            columns,
            labels,
            mda.n_directions,
            constraint=mda.constraint,
            weights=weights,
            options=replace(options, max_seconds=max(left, 0.0) if np.isfinite(left) else None),
            random=random,
            keep_going=run.keep_going,
        )

    return solve


def _exact(
    mda: Any,
    kernel: Kernel,
    X: Rows,
    weights: FloatArray | None,
    dtype: Precision,
    n_threads: int,
) -> _Solve:
    """Exact solvers, on a kernel matrix that all classes share."""
    matrix = _stored(mda, kernel, X, dtype)
    options = DenseOptions(C=mda.C, tol=tolerance(mda), moment_rows=mda.moment_rows)
    span = LinearSpan.of(kernel, X) if mda.n_directions > 1 else None
    matrices: list[StoredMatrix] = []
    inverses: list[Inverse] = []

    def solve(labels: FloatArray, random: np.random.Generator, run: Run) -> list[BallSolution]:
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
            if not inverses:
                inverses.append(Inverse.of(matrix, mda.C, weights, run.keep_going))
            return lagrangian_machines(inverses[0], labels, mda.n_directions, **arguments)
        if not matrices:
            matrices.extend(halves(matrix.values))
        return newton_machines(matrices, labels, mda.n_directions, **arguments)

    return solve


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
