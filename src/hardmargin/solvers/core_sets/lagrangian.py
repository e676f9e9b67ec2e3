r"""L2-SVMs under constraints by the Lagrangian SVM's fixed point: MMDA as it was published.

Tsang, Kocsor & Kwok (MCS-06), section 3.2, after Mangasarian & Musicant (JMLR 2001). The optimum
of the dual (2), eq. (9), has :math:`Q\alpha = 1 + \mu` with :math:`0 \le \mu \perp \alpha \ge 0`,
which holds if and only if :math:`\mu = (\mu - \tau\alpha)_+`. Hence, from :math:`\mu = 0`:

1. :math:`\alpha \leftarrow Q^{-1}(1 + \mu)`.
2. Alpha's positive part bounds the optimum from both sides (``l2_svm.py``); stop (``"optimal"``)
   when the two are within ``tol`` of each other. They are evaluated less and less often, as they
   take another product.
3. :math:`\mu \leftarrow (\mu - \tau\alpha)_+`.

This converges at a linear rate for :math:`0 < \tau < 2/C`. The paper has :math:`\tau = 1.9/C`.
With weights, the smallest value on the diagonal, :math:`1/(C \max w)`, replaces 1/C.

The paper's G has the constraints as further rows and columns; without them (their multipliers
gamma follow from alpha) it is Q of ``l2_svm.py``. All classes and machines share one inverse:
:math:`Q = Y (P - FF') Y` with the labels Y = diag(y) and :math:`P = K + 11' + \mathrm{diag}(1/(C
w))`, so that

.. math:: Q^{-1} = Y \left(P^{-1} + P^{-1}F (I - F'P^{-1}F)^{-1} F'P^{-1}\right) Y,

and step 1 is one product with :math:`P^{-1}`, which is several times faster than solving with a
factor of P.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import blas, lapack

from hardmargin.kernels import FloatArray
from hardmargin.kernels.matrix import DenseKernel
from hardmargin.monitor import Monitor, Stopped
from hardmargin.solvers.core_sets.dense import (
    DenseMachine,
    DenseOptions,
    Trained,
    cholesky,
    solve_dense,
)
from hardmargin.solvers.core_sets.l2_svm import L2Solution, bounds_of, slack_of
from hardmargin.solvers.problem import Problem

#: The paper's C times tau.
TAU_SCALE = 1.9

#: Limit on the iterations by default.
MAX_STAGES = 10_000

#: Rounding prevails once multipliers add up to this many times what the optimum allows.
LARGEST_MASS = 1e6

#: Iterations between evaluations of the bounds, relative to those so far.
LOOK_SHARE = 0.03


@dataclass(frozen=True, kw_only=True)
class LagrangianOptions(DenseOptions):
    """Options beyond those that Newton has as well.

    Attributes
    ----------
    tau_scale : float
        C times tau, between 0 and 2. The paper's 1.9 takes several times as many iterations as 1.5
        on some data, and fewer on others.
    """

    tau_scale: float = TAU_SCALE


def solve(
    problem: Problem[DenseKernel],
    options: LagrangianOptions | None = None,
    monitor: Monitor | None = None,
) -> list[L2Solution]:
    """Train the machines of a problem, and for each of them as many directions as requested.

    Parameters
    ----------
    problem : Problem of DenseKernel
        The kernel must be positive semi-definite. All rows take part in every machine, and each
        machine has rows of both classes.
    options : LagrangianOptions, optional
        How to run.
    monitor : Monitor, optional
        Receives every iteration, with the relative gap.

    Returns
    -------
    list of L2Solution
        Those of the first machine first.
    """
    run, clock = options or LagrangianOptions(), monitor or Monitor()
    K = problem.values.matrix.values
    try:
        inverse, failure = invert(K, run.C, problem.weights, clock), ""
    except np.linalg.LinAlgError:
        inverse, failure = np.empty((0, 0)), "indefinite"
    except Stopped:
        inverse, failure = np.empty((0, 0)), clock.stop_reason

    def train_one(machine: DenseMachine, monitor: Monitor) -> Trained:
        if failure:
            return np.zeros(len(machine.labels)), 0, 0, failure
        return train(machine, inverse, run, monitor)

    return solve_dense(problem, run, clock, train_one)


def invert(K: FloatArray, C: float, weights: FloatArray | None, monitor: Monitor) -> FloatArray:
    """Invert ``P = K + 11' + diag(1 / (C w))``: its lower triangle, in Fortran order.

    A kernel that is not positive semi-definite raises ``LinAlgError``.
    """
    P = np.array(K, order="F")
    P += 1.0
    P[np.diag_indices(len(P))] += slack_of(len(P), C, weights)
    cholesky(P, monitor)
    inverse, _ = lapack.dpotri(P, lower=True, overwrite_c=True)
    return np.asarray(inverse)


def train(
    machine: DenseMachine, inverse: FloatArray, options: LagrangianOptions, monitor: Monitor
) -> Trained:
    """Train one machine with the inverse of P."""
    y, F, slack = machine.labels, machine.F, machine.slack
    n = len(y)
    tau = options.tau_scale * float(slack.min())
    max_stages = MAX_STAGES if options.max_stages is None else options.max_stages
    PF = np.array([_times(inverse, f) for f in F.T]).T.reshape(F.shape)
    capacitance = np.eye(F.shape[1]) - F.T @ PF
    if (np.linalg.eigvalsh(capacitance) <= 0).any():
        return np.zeros(n), 0, 0, "rounding"
    correction = np.linalg.solve(capacitance, PF.T).T
    # The optimum is the sum of alpha, and w = 0 bounds it.
    largest_mass = LARGEST_MASS * float((1.0 / slack).sum())
    mu, alpha, gap = np.zeros(n), np.zeros(n), 1.0
    reason = "max_stages"
    n_stages = next_look = 0
    while n_stages < max_stages:
        if not monitor.go_on(n_stages, gap):
            reason = monitor.stop_reason
            break
        # 1. alpha = Q^-1 (1 + mu)
        Pv = _times(inverse, y * (1.0 + mu))
        before, alpha = alpha, y * (Pv + correction @ (F.T @ Pv))
        n_stages += 1
        if not np.abs(alpha).sum() <= largest_mass:
            alpha, reason = before, "rounding"
            break
        # 2. The bounds.
        if n_stages >= next_look:
            next_look = n_stages + max(1, int(LOOK_SHARE * n_stages))
            positive = np.maximum(alpha, 0.0)
            gap = bounds_of(positive, machine.margins(positive), slack).gap
            if gap <= options.tol:
                reason = "optimal"
                break
        # 3. mu = (mu - tau alpha)_+
        next_mu = np.maximum(mu - tau * alpha, 0.0)
        if np.array_equal(next_mu, mu):
            reason = "rounding"
            break
        mu = next_mu
    return np.maximum(alpha, 0.0), n_stages, 1, reason


def _times(inverse: FloatArray, v: FloatArray) -> FloatArray:
    return np.asarray(blas.dsymv(1.0, inverse, v, lower=True))
