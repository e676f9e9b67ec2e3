r"""The dense solvers, Newton and Lagrangian: L2-SVMs with the whole kernel matrix in memory.

.. math:: \max_{\alpha \ge 0} 2 \alpha'1 - \alpha'Q\alpha, \qquad
          Q_{ij} = y_i y_j (k_{ij} - F_i'F_j + 1) + [i = j] / (C w_i),

as in ``l2_svm.py``. The margins :math:`y_i f(x_i)` are :math:`Q\alpha` without the slacks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas, lapack

from hardmargin.kernels import FloatArray
from hardmargin.kernels.matrix import DenseKernel, StoredMatrix
from hardmargin.monitor import Monitor
from hardmargin.solvers.core_sets.l2_svm import (
    L2Options,
    L2Problem,
    L2Solution,
    slack_of,
    train_machines,
)
from hardmargin.solvers.problem import Problem

#: Rows and columns that are factored at a time, so that Ctrl-C can interrupt in between.
_BLOCK = 1024

#: Share of rows with a multiplier below which it is faster to copy their part of the matrix.
_FEW = 0.15


@dataclass(frozen=True, kw_only=True)
class DenseOptions(L2Options):
    """Options beyond those that all solvers of L2-SVMs have.

    Attributes
    ----------
    tol : float
        Largest relative gap between the primal and the dual objective.
    machines_at_once : int
        Machines of the problem that are trained at the same time.
    """

    machines_at_once: int = 1


@dataclass(frozen=True)
class DenseMachine:
    """One machine: its part of the problem, and products with it.

    Attributes
    ----------
    matrix : StoredMatrix
        The kernel between all rows, in float64.
    labels : (n,) array
        +1 and -1.
    slack : (n,) array
        ``1 / (C w_i)``.
    F : (n, n_directions) array
        Projections of the rows on the directions that the machine must be orthogonal to.
    """

    matrix: StoredMatrix
    labels: FloatArray
    slack: FloatArray
    F: FloatArray

    def scores(self, alpha: FloatArray) -> FloatArray:
        """``w'phi(x)`` of all rows."""
        c = self.labels * alpha
        support = np.flatnonzero(c)
        scores: FloatArray
        if len(support) < _FEW * len(c):
            scores = c[support] @ self.matrix.values[support]
        else:
            scores = self.matrix.product(c)
        return scores - self.F @ (self.F.T @ c)

    def margins(self, alpha: FloatArray) -> FloatArray:
        """``y f(x)`` of all rows, the bias included."""
        margins: FloatArray = self.labels * (self.scores(alpha) + self.labels @ alpha)
        return margins

    def block(self, rows: NDArray[np.intp], columns: NDArray[np.intp]) -> FloatArray:
        """Q between some rows and others, without the slacks, in Fortran order."""
        F, y = self.F, self.labels
        # The matrix is symmetric: this order needs no copy afterwards.
        block: FloatArray = self.matrix.values[np.ix_(columns, rows)].T
        if F.shape[1] and block.size:
            block = blas.dgemm(
                -1.0, F[rows], F[columns], 1.0, block, trans_b=True, overwrite_c=True
            )
        block += 1.0
        block *= y[rows, np.newaxis]
        block *= y[columns]
        return block

    def Q(self, rows: NDArray[np.intp]) -> FloatArray:
        """Q between some rows."""
        block = self.block(rows, rows)
        block[np.diag_indices(len(rows))] += self.slack[rows]
        return block


#: What a solver of one machine returns: multipliers, stages, factorisations, why it ended.
Trained = tuple[FloatArray, int, int, str]


def solve_dense(
    problem: Problem[DenseKernel],
    options: DenseOptions,
    monitor: Monitor,
    train: Callable[[DenseMachine, Monitor], Trained],
) -> list[L2Solution]:
    """Train the machines of a problem on its kernel matrix, with a solver for one machine."""
    matrix = problem.values.matrix
    found = train_machines(
        problem,
        options,
        slack_of(matrix.n_rows, options.C, problem.weights),
        partial(_train_one, matrix, train),
        lambda _, rows, coefficients: np.asarray(coefficients @ matrix.values[rows]),
        monitor,
        options.machines_at_once,
    )
    return [solution for of_machine in found for solution in of_machine]


def _train_one(
    matrix: StoredMatrix,
    train: Callable[[DenseMachine, Monitor], Trained],
    l2: L2Problem,
    monitor: Monitor,
) -> L2Solution:
    machine = DenseMachine(matrix, l2.labels, l2.slack, l2.F)
    alpha, n_stages, n_steps, reason = train(machine, monitor)
    if not alpha.any():  # stopped before the first step
        alpha = np.ones(len(alpha))
    return l2.solution(
        alpha,
        machine.scores(alpha),
        core_rows=np.arange(len(alpha)),
        n_stages=n_stages,
        n_steps=n_steps,
        stop_reason=reason,
    )


def cholesky(Q: FloatArray, monitor: Monitor) -> FloatArray:
    """Overwrite a positive definite matrix in Fortran order with its lower Cholesky factor.

    Values above the diagonal stay as they are. Raises ``LinAlgError`` if the matrix is not positive
    definite, and ``Stopped`` if the monitor says so between blocks.
    """
    n = len(Q)
    for begin in range(0, n, _BLOCK):
        end = min(begin + _BLOCK, n)
        for k in range(0, begin, _BLOCK):
            monitor.check()
            done = slice(k, k + _BLOCK)
            Q[begin:, begin:end] = blas.dgemm(
                -1.0, Q[begin:, done], Q[begin:end, done], 1.0, Q[begin:, begin:end], trans_b=True
            )
        factor, failed = lapack.dpotrf(Q[begin:end, begin:end], lower=True)
        if failed:
            raise np.linalg.LinAlgError("The matrix is not positive definite.")
        Q[begin:end, begin:end] = factor
        if end < n:
            monitor.check()
            Q[end:, begin:end] = blas.dtrsm(
                1.0, factor, Q[end:, begin:end], side=True, lower=True, trans_a=True
            )
    return Q


def triangular(L: FloatArray, right: FloatArray, *, transposed: bool = False) -> NDArray[Any]:
    """Solve with a factor that :func:`cholesky` has made, or with its transpose."""
    solved, _ = lapack.dtrtrs(L, right, lower=True, trans=transposed)
    return np.asarray(solved)
