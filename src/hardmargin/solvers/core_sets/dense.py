r"""An L2-SVM under constraints whose kernel matrix is in memory: what the exact solvers share.

.. math:: \max_{\alpha \ge 0} 2 \alpha'1 - \alpha'Q\alpha, \qquad
          Q_{ij} = y_i y_j (k_{ij} - F_i'F_j + 1) + [i = j] / (C w_i),

as in ``core_vector.py``. The margins :math:`y_i f(x_i)` are :math:`Q\alpha` without the slacks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas, lapack

from hardmargin.kernels import FloatArray
from hardmargin.kernels.matrix import StoredMatrix
from hardmargin.solvers.core_sets.directions import (
    Constraint,
    Directions,
    LinearSpan,
    constrain,
    solve_in_turn,
)
from hardmargin.solvers.core_sets.result import machine_result, slack_of
from hardmargin.solvers.solution import BallSolution, BallStop

KeepGoing = Callable[[int, float], bool]

#: Rows and columns that a factorisation takes at a time, so that Ctrl-C is heard in between.
_BLOCK = 1024

#: Share of rows with a multiplier below which it is faster to copy their part of the matrix.
_FEW = 0.15


@dataclass(frozen=True)
class DenseOptions:
    """How to run.

    Attributes
    ----------
    C : float
        Weight of the squared slacks.
    tol : float
        Largest relative gap between the primal and the dual objective.
    max_stages : int or None
        Limit on the iterations of a machine; None is the solver's own.
    moment_rows : int or None
        Rows that estimate the moments of the uncorrelated constraints; None is all.
    """

    C: float = 1.0
    tol: float = 1e-6
    max_stages: int | None = None
    moment_rows: int | None = None


class Stopped(Exception):
    """Whoever asked for the machine no longer wants to wait."""


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
    directions : Directions
        What the machine must be orthogonal to.
    span : LinearSpan or None
        For a linear kernel, where directions are more exact as vectors.
    """

    matrix: StoredMatrix
    labels: FloatArray
    slack: FloatArray
    directions: Directions
    span: LinearSpan | None = None

    def scores(self, alpha: FloatArray) -> FloatArray:
        """``w'phi(x)`` of all rows."""
        F, c = self.directions.projections, self.labels * alpha
        support = np.flatnonzero(c)
        scores: FloatArray
        if len(support) < _FEW * len(c):
            scores = c[support] @ self.matrix.values[support]
        else:
            scores = self.matrix.product(c)
        return scores - F @ (F.T @ c)

    def margins(self, alpha: FloatArray) -> FloatArray:
        """``y f(x)`` of all rows, the bias included."""
        margins: FloatArray = self.labels * (self.scores(alpha) + self.labels @ alpha)
        return margins

    def block(self, rows: NDArray[np.intp], columns: NDArray[np.intp]) -> FloatArray:
        """Q between some rows and others, without the slacks, in Fortran's order."""
        F, y = self.directions.projections, self.labels
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

    def result(
        self, alpha: FloatArray, n_stages: int, n_steps: int, reason: BallStop
    ) -> BallSolution:
        """Make the machine of some multipliers."""
        if not alpha.any():  # stopped before the first step
            alpha = np.ones(len(alpha))
        return machine_result(
            alpha,
            self.scores(alpha),
            self.labels,
            self.slack,
            self.directions,
            self.span,
            core_size=len(alpha),
            n_stages=n_stages,
            n_steps=n_steps,
            n_kernel_evaluations=0,
            stop_reason=reason,
        )


def dense_machines(
    solve_one: Callable[[DenseMachine], BallSolution],
    matrix: StoredMatrix,
    labels: FloatArray,
    n_machines: int,
    *,
    constraint: Constraint,
    weights: FloatArray | None,
    options: DenseOptions,
    random: np.random.Generator | None,
    span: LinearSpan | None,
) -> list[BallSolution]:
    """Train machines one after another with a solver of one."""
    y = np.asarray(labels, dtype=np.float64)
    slack = slack_of(len(y), options.C, weights)

    def product(columns: NDArray[np.intp], coefficients: FloatArray) -> FloatArray:
        return np.asarray(coefficients @ matrix.values[columns])

    return solve_in_turn(
        lambda directions: solve_one(DenseMachine(matrix, y, slack, directions, span)),
        lambda directions, solution: constrain(
            directions,
            solution,
            y,
            product,
            constraint=constraint,
            weights=weights,
            moment_rows=options.moment_rows,
            random=random,
        ),
        Directions.none(len(y)),
        n_machines,
    )


def cholesky(Q: FloatArray, poll: Callable[[], None]) -> FloatArray:
    """Overwrite a positive definite matrix in Fortran's order by its lower Cholesky factor.

    `poll` is called between blocks and may raise. What is above the diagonal stays as it is. A
    matrix that is not positive definite raises ``LinAlgError``.
    """
    n = len(Q)
    for begin in range(0, n, _BLOCK):
        end = min(begin + _BLOCK, n)
        for k in range(0, begin, _BLOCK):
            poll()
            done = slice(k, k + _BLOCK)
            Q[begin:, begin:end] = blas.dgemm(
                -1.0, Q[begin:, done], Q[begin:end, done], 1.0, Q[begin:, begin:end], trans_b=True
            )
        factor, failed = lapack.dpotrf(Q[begin:end, begin:end], lower=True)
        if failed:
            raise np.linalg.LinAlgError("The matrix is not positive definite.")
        Q[begin:end, begin:end] = factor
        if end < n:
            poll()
            Q[end:, begin:end] = blas.dtrsm(
                1.0, factor, Q[end:, begin:end], side=True, lower=True, trans_a=True
            )
    return Q


def triangular(L: FloatArray, right: FloatArray, *, transposed: bool = False) -> NDArray[Any]:
    """Solve with a factor that :func:`cholesky` has made, or with its transpose."""
    solved, _ = lapack.dtrtrs(L, right, lower=True, trans=transposed)
    return np.asarray(solved)
