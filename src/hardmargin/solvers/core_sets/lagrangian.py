r"""L2-SVMs under constraints by the Lagrangian SVM's fixed point: MMDA as it was published.

Tsang, Kocsor & Kwok (MCS 2006), section 3.2, after Mangasarian & Musicant (JMLR 2001). The optimum
of the dual (2), eq. (9), has :math:`Q\alpha = 1 + \mu` with :math:`0 \le \mu \perp \alpha \ge 0`,
which is so if and only if :math:`\mu = (\mu - \tau\alpha)_+`. Hence

.. math:: \mu \leftarrow (\mu - \tau\alpha)_+, \qquad \alpha \leftarrow Q^{-1}(1 + \mu),

from :math:`\alpha = Q^{-1}1`; it converges at a linear rate for :math:`0 < \tau < 2/C`. The paper
has :math:`\tau = 1.9/C`. With weights the smallest of the diagonal, :math:`1/(C \max w)`, stands
for 1/C.

The paper's G has the constraints as further rows and columns; without them (their multipliers
gamma follow from alpha) it is Q of ``core_vector.py``. All classes and machines share one inverse:
:math:`Q = Y (P - FF') Y` with the labels Y = diag(y) and :math:`P = K + 11' + \mathrm{diag}(1/(C
w))`, so that

.. math:: Q^{-1} = Y \left(P^{-1} + P^{-1}F (I - F'P^{-1}F)^{-1} F'P^{-1}\right) Y,

and an iteration is one product with :math:`P^{-1}`, which is several times faster than solving with
a factor of P. The two bounds on the optimum (``result.py``) are those of alpha's
positive part; they take another product, and are looked at more and more seldom.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import blas, lapack

from hardmargin.kernels import FloatArray
from hardmargin.kernels.matrix import StoredMatrix
from hardmargin.solvers.core_sets.dense import (
    DenseMachine,
    DenseOptions,
    KeepGoing,
    Stopped,
    cholesky,
    dense_machines,
)
from hardmargin.solvers.core_sets.directions import Constraint, LinearSpan
from hardmargin.solvers.core_sets.result import bounds_of, slack_of
from hardmargin.solvers.solution import BallSolution, BallStop

#: The paper's C times tau.
TAU_SCALE = 1.9

#: Iterations that should do in any case.
MAX_STAGES = 10_000

#: Multipliers that add up to so many times what they may at the optimum show that rounding has won.
LARGEST_MASS = 1e6

#: Iterations without a look at the bounds, relative to those before.
LOOK_SHARE = 0.03


@dataclass(frozen=True)
class Inverse:
    """The inverse of ``P = K + 11' + diag(1 / (C w))``, which the machines of all classes share.

    Attributes
    ----------
    matrix : StoredMatrix
        The kernel matrix K, in float64.
    values : (n, n) array or None
        Lower triangle of the inverse, in Fortran's order; None where it could not be had.
    failure : str or None
        Why not: ``"indefinite"`` or ``"max_time"``.
    """

    matrix: StoredMatrix
    values: FloatArray | None
    failure: BallStop | None = None

    @classmethod
    def of(
        cls,
        matrix: StoredMatrix,
        C: float = 1.0,
        weights: FloatArray | None = None,
        keep_going: KeepGoing | None = None,
    ) -> Inverse:
        """Invert, unless the kernel is not positive semi-definite."""

        def poll() -> None:
            if keep_going is not None and not keep_going(0, 1.0):
                raise Stopped

        P = np.array(matrix.values, order="F")
        P += 1.0
        P[np.diag_indices(len(P))] += slack_of(len(P), C, weights)
        try:
            cholesky(P, poll)
        except np.linalg.LinAlgError:
            return cls(matrix, None, "indefinite")
        except Stopped:
            return cls(matrix, None, "max_time")
        inverse, _ = lapack.dpotri(P, lower=True, overwrite_c=True)
        return cls(matrix, inverse)

    def product(self, v: FloatArray) -> FloatArray:
        """Multiply with a vector."""
        return np.asarray(blas.dsymv(1.0, self.values, v, lower=True))


def lagrangian_machines(
    inverse: Inverse,
    labels: FloatArray,
    n_machines: int = 1,
    *,
    constraint: Constraint = "orthogonal",
    weights: FloatArray | None = None,
    options: DenseOptions | None = None,
    tau_scale: float = TAU_SCALE,
    random: np.random.Generator | None = None,
    keep_going: KeepGoing | None = None,
    span: LinearSpan | None = None,
) -> list[BallSolution]:
    """Train machines one after another, each under the constraints that those before it make.

    Parameters
    ----------
    inverse : Inverse
        Of the kernel matrix, for the same C and weights.
    labels, n_machines, constraint, weights, options, random, keep_going, span
        As for `newton_machines`.
    tau_scale : float
        C times tau, between 0 and 2. The paper's 1.9 takes several times as many iterations as 1.5
        on some data, and fewer on others.

    Returns
    -------
    list of BallSolution
    """
    options = options or DenseOptions()

    def solve_one(machine: DenseMachine) -> BallSolution:
        return _solve(inverse, machine, options, tau_scale, keep_going or (lambda stage, gap: True))

    return dense_machines(
        solve_one,
        inverse.matrix,
        labels,
        n_machines,
        constraint=constraint,
        weights=weights,
        options=options,
        random=random,
        span=span,
    )


def _solve(
    inverse: Inverse,
    machine: DenseMachine,
    options: DenseOptions,
    tau_scale: float,
    keep_going: KeepGoing,
) -> BallSolution:
    n = len(machine.labels)
    if inverse.failure is not None:
        return machine.result(np.zeros(n), 0, 0, inverse.failure)
    y, F, slack = machine.labels, machine.directions.projections, machine.slack
    tau = tau_scale * float(slack.min())
    max_stages = MAX_STAGES if options.max_stages is None else options.max_stages
    PF = np.array([inverse.product(f) for f in F.T]).T.reshape(F.shape)
    capacitance = np.eye(F.shape[1]) - F.T @ PF
    if (np.linalg.eigvalsh(capacitance) <= 0).any():
        return machine.result(np.zeros(n), 0, 0, "rounding")
    correction = np.linalg.solve(capacitance, PF.T).T

    def solve_with_Q(right: FloatArray) -> FloatArray:
        Pv = inverse.product(y * right)
        alpha: FloatArray = y * (Pv + correction @ (F.T @ Pv))
        return alpha

    # The optimum is the sum of alpha, and w = 0 bounds it.
    largest_mass = LARGEST_MASS * float((1.0 / slack).sum())
    mu = np.zeros(n)
    alpha, gap = np.zeros(n), 1.0
    reason: BallStop = "max_stages"
    n_stages = next_look = 0
    while n_stages < max_stages:
        if not keep_going(n_stages, gap):
            reason = "max_time"
            break
        before, alpha = alpha, solve_with_Q(1.0 + mu)
        n_stages += 1
        if not np.abs(alpha).sum() <= largest_mass:
            alpha, reason = before, "rounding"
            break
        if n_stages >= next_look:
            next_look = n_stages + max(1, int(LOOK_SHARE * n_stages))
            positive = np.maximum(alpha, 0.0)
            gap = bounds_of(positive, machine.margins(positive), slack).gap
            if gap <= options.tol:
                reason = "optimal"
                break
        next_mu = np.maximum(mu - tau * alpha, 0.0)
        if np.array_equal(next_mu, mu):
            reason = "rounding"
            break
        mu = next_mu
    return machine.result(np.maximum(alpha, 0.0), n_stages, 1, reason)
