r"""L2-SVMs under constraints, solved to their optimum by Newton steps on the primal problem.

.. math:: \min_{w, b} \|w\|^2 + b^2 + C \sum_i w_i \max(0, 1 - y_i f(x_i))^2
          \quad : \quad u_q'w = 0,

eq. (1) of Tsang, Kocsor & Kwok (MCS-06), is piecewise quadratic. With
:math:`w = \sum_i \alpha_i y_i \varphi(x_i)` (and its parts along the :math:`u_q` left out):

1. The active rows A are those with a margin :math:`y_i f(x_i)` below 1.
2. If A stayed as it is, the optimum would have :math:`Q_{AA}\bar\alpha_A = 1` and
   :math:`\bar\alpha = 0` elsewhere; Q as in ``l2_svm.py``.
3. The positive part of :math:`\bar\alpha` bounds the optimum from both sides; stop (``"optimal"``)
   when the two are within ``tol`` of each other. That is so at the latest when A is the active
   set of :math:`\bar\alpha` itself.
4. Go from alpha towards :math:`\bar\alpha` to the minimum along the line: it lies between two of
   the points where rows become active or cease to be.

The objective falls at every step and there are finitely many A, so this ends; usually after five to
ten steps. It is the method of Keerthi & DeCoste (JMLR 2005) and Mangasarian (2002) with kernels.

Step 2 dominates the cost. Two things keep it cheap. The first active set comes from a problem with
half of the rows, and so on down (Chapelle, Neural Computation 2007), so that rows far from the
plane never enter a factorisation. (Starting from the machine before, which has one constraint
fewer, takes four to ten times as long.) And where A has changed little since :math:`Q_{BB}` was
factored for some B, the solution is corrected by the Schur complement of the rows that left and
joined.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hardmargin.kernels import FloatArray
from hardmargin.kernels.matrix import DenseKernel, StoredMatrix
from hardmargin.monitor import Monitor, Stopped
from hardmargin.solvers.core_sets.dense import (
    DenseMachine,
    DenseOptions,
    Trained,
    cholesky,
    solve_dense,
    triangular,
)
from hardmargin.solvers.core_sets.l2_svm import L2Solution, bounds_of
from hardmargin.solvers.problem import Problem

#: A problem is not halved if that would leave fewer rows than this.
SMALLEST_HALF = 250

#: The gap to which the problem on a part of the rows is solved.
HALF_TOL = 0.03

#: Limit on the iterations by default.
MAX_STAGES = 200

#: Share of the active rows that may have changed before Q is factored again.
_SCHUR_SHARE = 0.25

#: Error of the margins of active rows beyond which a factorisation is not good enough.
_MAX_RESIDUAL = 1e-8


def solve(
    problem: Problem[DenseKernel],
    options: DenseOptions | None = None,
    monitor: Monitor | None = None,
) -> list[L2Solution]:
    """Train the machines of a problem, and for each of them as many directions as requested.

    Parameters
    ----------
    problem : Problem of DenseKernel
        The kernel must be positive semi-definite. All rows take part in every machine, and each
        machine has rows of both classes.
    options : DenseOptions, optional
        How to run.
    monitor : Monitor, optional
        Receives every stage, with the relative gap.

    Returns
    -------
    list of L2Solution
        Those of the first machine first.
    """
    run = options or DenseOptions()
    # The kernel matrices of all rows, of every second, of every fourth, ...
    matrices = [problem.values.matrix]
    while matrices[-1].n_rows >= 2 * SMALLEST_HALF:
        matrices.append(StoredMatrix(np.ascontiguousarray(matrices[-1].values[::2, ::2])))
    return solve_dense(
        problem,
        run,
        monitor or Monitor(),
        lambda machine, monitor: train(machine, matrices, run, monitor),
    )


def train(
    machine: DenseMachine,
    matrices: Sequence[StoredMatrix],
    options: DenseOptions,
    monitor: Monitor,
) -> Trained:
    """Train one machine on some of the rows, then on twice as many, and finally on all."""
    max_stages = MAX_STAGES if options.max_stages is None else options.max_stages
    alpha, reason = np.zeros(0), "optimal"
    n_stages = n_factored = 0
    for level in reversed(range(len(matrices))):
        every = slice(None, None, 2**level)
        part = DenseMachine(
            matrices[level], machine.labels[every], machine.slack[every], machine.F[every]
        )
        start = np.zeros(len(part.labels))
        start[: 2 * len(alpha) : 2] = alpha
        tol = HALF_TOL if level else options.tol
        alpha, stages, factored, reason = _minimise(part, start, tol, n_stages, max_stages, monitor)
        n_stages, n_factored = stages, n_factored + factored
        if reason not in ("optimal", "rounding"):  # more rows would not end otherwise
            whole = np.zeros(len(machine.labels))
            whole[every] = alpha
            alpha = whole
            break
    return alpha, n_stages, n_factored, reason


def _minimise(
    machine: DenseMachine,
    alpha: FloatArray,
    tol: float,
    n_stages: int,
    max_stages: int,
    monitor: Monitor,
) -> Trained:
    """Solve the problem, starting from some multipliers."""
    equations = _ActiveEquations(machine, monitor)
    best, best_gap, gap = np.maximum(alpha, 0.0), np.inf, 1.0
    margins = machine.margins(alpha) if alpha.any() else np.zeros(len(alpha))
    active: NDArray[np.intp] | None = None
    reason = "rounding"
    try:
        while True:
            # 1. The active rows.
            before, active = active, np.flatnonzero(margins < 1.0)
            if before is not None and np.array_equal(before, active):
                break
            if n_stages >= max_stages:
                reason = "max_stages"
                break
            if not monitor.go_on(n_stages, gap):
                raise Stopped
            n_stages += 1
            # 2. The optimum if they stayed as they are.
            target, target_margins = equations.solve(active)
            # 3. Its bounds.
            positive = np.maximum(target, 0.0)
            its_margins = machine.margins(positive) if (target < 0).any() else target_margins
            gap = 1.0
            if positive.any():
                gap = bounds_of(positive, its_margins, machine.slack).gap
            if gap < best_gap:
                best, best_gap = positive, gap
            if gap <= tol:
                reason = "optimal"
                break
            # 4. The minimum along the line.
            step = step_length(alpha, margins, target, target_margins, machine.slack)
            if not step > 0:
                break
            alpha = alpha + step * (target - alpha)
            margins = margins + step * (target_margins - margins)
    except Stopped:
        reason = monitor.stop_reason
    except np.linalg.LinAlgError:
        reason = "indefinite"
    return best, n_stages, equations.n_factored, reason


class _ActiveEquations:
    """Solves ``Q_AA alpha_A = 1`` for one A after another."""

    def __init__(self, machine: DenseMachine, monitor: Monitor) -> None:
        self.machine = machine
        self.monitor = monitor
        self.n_factored = 0
        self.rows: NDArray[np.intp] = np.empty(0, dtype=np.intp)  # B
        self.L = np.empty((0, 0))

    def solve(self, active: NDArray[np.intp]) -> tuple[FloatArray, FloatArray]:
        """Return alpha of all rows, and the margins it gives."""
        if len(active) == 0:
            nothing = np.zeros(len(self.machine.labels))
            return nothing, nothing
        n_changed = len(np.setxor1d(self.rows, active, assume_unique=True))
        if n_changed <= _SCHUR_SHARE * len(active):
            alpha = self._corrected(active)
            margins = self.machine.margins(alpha)
            g = margins[active] + self.machine.slack[active] * alpha[active]
            if np.abs(1.0 - g).max(initial=0.0) <= _MAX_RESIDUAL:
                return alpha, margins
        self.n_factored += 1
        self.L = np.empty((0, 0))  # two at a time would need twice the memory
        self.L, self.rows = cholesky(self.machine.Q(active), self.monitor), active
        alpha = np.zeros(len(self.machine.labels))
        alpha[active] = self._solve(np.ones(len(active)))
        return alpha, self.machine.margins(alpha)

    def _solve(self, right: FloatArray) -> FloatArray:
        return triangular(self.L, triangular(self.L, right), transposed=True)

    def _corrected(self, active: NDArray[np.intp]) -> FloatArray:
        """Correct alpha for the rows that left B (their alpha is 0) or joined it."""
        left = np.searchsorted(self.rows, np.setdiff1d(self.rows, active, assume_unique=True))
        joined = np.setdiff1d(active, self.rows, assume_unique=True)
        border = np.zeros((len(self.rows), len(left) + len(joined)), order="F")
        border[left, np.arange(len(left))] = 1.0
        border[:, len(left) :] = self.machine.block(self.rows, joined)
        V = triangular(self.L, border)
        u = triangular(self.L, np.ones(len(self.rows)))
        schur = -(V.T @ V)
        schur[len(left) :, len(left) :] += self.machine.Q(joined)
        right = -(V.T @ u)
        right[len(left) :] += 1.0
        try:
            z = np.linalg.solve(schur, right)
        except np.linalg.LinAlgError:  # the residual will show it
            z = np.full(len(right), np.nan)
        alpha = np.zeros(len(self.machine.labels))
        alpha[self.rows] = triangular(self.L, u - V @ z, transposed=True)
        alpha[self.rows[left]] = 0.0
        alpha[joined] = z[len(left) :]
        return alpha


def step_length(
    alpha: FloatArray,
    margins: FloatArray,
    target: FloatArray,
    target_margins: FloatArray,
    slack: FloatArray,
) -> float:
    """Find the minimum of the primal objective on the way from alpha to the target and beyond.

    Half of the derivative along the way is p + q t, where p and q change as rows become active or
    cease to be.
    """
    change = target_margins - margins
    is_active = margins < 1.0
    squared_norm, inner = alpha @ margins, target @ margins
    of_p, of_q = (margins - 1.0) * change / slack, change**2 / slack
    p = inner - squared_norm + of_p[is_active].sum()
    q = squared_norm - 2.0 * inner + target @ target_margins + of_q[is_active].sum()

    flips = np.flatnonzero(np.where(is_active, change > 0, change < 0))
    places = (1.0 - margins[flips]) / change[flips]
    order = np.argsort(places)
    flips, places = flips[order], places[order]
    sign = np.where(is_active[flips], -1.0, 1.0)
    p_of_parts = p + np.concatenate([[0.0], np.cumsum(sign * of_p[flips])])
    q_of_parts = q + np.concatenate([[0.0], np.cumsum(sign * of_q[flips])])
    beyond = p_of_parts[:-1] + q_of_parts[:-1] * places >= 0
    part = int(beyond.argmax()) if beyond.any() else len(places)
    if not q_of_parts[part] > 0:
        return 0.0
    return float(-p_of_parts[part] / q_of_parts[part])
