r"""L2-SVMs under constraints to their optimum, by Newton steps on the primal problem.

.. math:: \min_{w, b} \|w\|^2 + b^2 + C \sum_i w_i \max(0, 1 - y_i f(x_i))^2
          \quad : \quad u_q'w = 0,

eq. (1) of Tsang, Kocsor & Kwok (MCS 2006), is piecewise quadratic. With
:math:`w = \sum_i \alpha_i y_i \varphi(x_i)` (and its parts along the :math:`u_q` left out):

1. The active rows A are those with a margin :math:`y_i f(x_i)` below 1.
2. If A stayed as it is, the optimum would have :math:`Q_{AA}\bar\alpha_A = 1` and
   :math:`\bar\alpha = 0` elsewhere; Q as in ``core_vector.py``.
3. The positive part of :math:`\bar\alpha` bounds the optimum from both sides; stop (``"optimal"``)
   when the two are within ``tol`` of each other. That is so at the latest where A is the active
   set of :math:`\bar\alpha` itself.
4. Go from alpha towards :math:`\bar\alpha` to the minimum along the line, which is found exactly
   among the points where rows become active or cease to be.

The objective falls at every step and there are finitely many A, so this ends; usually after five to
ten steps. It is the method of Keerthi & DeCoste (JMLR 2005) and Mangasarian (2002) with kernels.

Step 2 is what costs. Two things keep it cheap. The first active set comes from a problem with half
of the rows, and so on down (Chapelle, Neural Computation 2007), so that rows far from the plane
never are in a factorisation. (From the machine before, which has one constraint less, it takes four
to ten times as long.) And where A has changed little since :math:`Q_{BB}` was factored for
some B, the rows that left and joined are put right by their Schur complement.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from hardmargin.kernels import FloatArray
from hardmargin.kernels.matrix import StoredMatrix
from hardmargin.solvers.core_sets.dense import (
    DenseMachine,
    DenseOptions,
    KeepGoing,
    Stopped,
    cholesky,
    dense_machines,
    triangular,
)
from hardmargin.solvers.core_sets.directions import Constraint, Directions, LinearSpan
from hardmargin.solvers.core_sets.result import bounds_of
from hardmargin.solvers.solution import BallSolution, BallStop

#: Fewer rows are not halved any further.
SMALLEST_HALF = 250

#: The gap to which the problem on a part of the rows is solved.
HALF_TOL = 0.03

#: Iterations that should do in any case.
MAX_STAGES = 200

#: Share of the active rows that may have changed before Q is factored afresh.
_SCHUR_SHARE = 0.25

#: Error of the margins of active rows beyond which a factorisation is not good enough.
_MAX_RESIDUAL = 1e-8


def halves(values: FloatArray) -> list[StoredMatrix]:
    """Kernel matrices of all rows, of every second, of every fourth, .."""
    matrices = [StoredMatrix(values)]
    while matrices[-1].n_rows >= 2 * SMALLEST_HALF:
        matrices.append(StoredMatrix(np.ascontiguousarray(matrices[-1].values[::2, ::2])))
    return matrices


def newton_machines(
    matrices: Sequence[StoredMatrix],
    labels: FloatArray,
    n_machines: int = 1,
    *,
    constraint: Constraint = "orthogonal",
    weights: FloatArray | None = None,
    options: DenseOptions | None = None,
    random: np.random.Generator | None = None,
    keep_going: KeepGoing | None = None,
    span: LinearSpan | None = None,
) -> list[BallSolution]:
    """Train machines one after another, each under the constraints that those before it make.

    Parameters
    ----------
    matrices : sequence of StoredMatrix
        The kernel matrix and its :func:`halves`, positive semi-definite and in float64. Machines
        of several classes may share them.
    labels : (n,) array
        +1 and -1. Both classes need rows.
    n_machines : int
        How many; fewer are returned when nothing is left for w.
    constraint : {"orthogonal", "uncorrelated", "uncorrelated-centred"}
        As in `solve_balls`.
    weights : (n,) array, optional
        Weights of the slacks, positive; a weight of two equals the row twice.
    options : DenseOptions, optional
        How to run.
    random : numpy Generator, optional
        Draws the rows of the moments.
    keep_going : callable, optional
        Called with (stage, relative gap); the machine so far is returned when it says no.
    span : LinearSpan, optional
        For a linear kernel, where directions are more exact as vectors.

    Returns
    -------
    list of BallSolution
    """
    options = options or DenseOptions()

    def solve_one(machine: DenseMachine) -> BallSolution:
        return _Newton(options, keep_going or (lambda stage, gap: True)).run(machine, matrices)

    return dense_machines(
        solve_one,
        matrices[0],
        labels,
        n_machines,
        constraint=constraint,
        weights=weights,
        options=options,
        random=random,
        span=span,
    )


class _Newton:
    """One machine in the making."""

    def __init__(self, options: DenseOptions, keep_going: KeepGoing) -> None:
        self.options = options
        self.keep_going = keep_going
        self.max_stages = MAX_STAGES if options.max_stages is None else options.max_stages
        self.n_stages = self.n_steps = 0
        self.gap = 1.0

    def run(self, machine: DenseMachine, matrices: Sequence[StoredMatrix]) -> BallSolution:
        alpha = np.zeros(0)
        reason: BallStop = "optimal"
        for level in reversed(range(len(matrices))):
            every = slice(None, None, 2**level)
            F = machine.directions.projections[every]
            part = DenseMachine(
                matrices[level],
                machine.labels[every],
                machine.slack[every],
                Directions(F, np.empty((0, F.shape[1]))),
            )
            start = np.zeros(len(part.labels))
            start[: 2 * len(alpha) : 2] = alpha
            alpha, reason = self.solve(part, start, HALF_TOL if level else self.options.tol)
            if reason in ("max_time", "max_stages", "indefinite"):
                whole = np.zeros(len(machine.labels))
                whole[every] = alpha
                alpha = whole
                break
        return machine.result(alpha, self.n_stages, self.n_steps, reason)

    def poll(self) -> None:
        if not self.keep_going(self.n_stages, self.gap):
            raise Stopped

    def solve(
        self, machine: DenseMachine, alpha: FloatArray, tol: float
    ) -> tuple[FloatArray, BallStop]:
        """Solve the problem from some multipliers on: multipliers, and how it ended."""
        equations = _ActiveEquations(machine, self.poll)
        best, best_gap = np.maximum(alpha, 0.0), np.inf
        margins = machine.margins(alpha) if alpha.any() else np.zeros(len(alpha))
        active: NDArray[np.intp] | None = None
        reason: BallStop = "rounding"
        try:
            while True:
                # 1.
                before, active = active, np.flatnonzero(margins < 1.0)
                if before is not None and np.array_equal(before, active):
                    break
                if self.n_stages >= self.max_stages:
                    reason = "max_stages"
                    break
                self.poll()
                self.n_stages += 1
                # 2.
                target, target_margins = equations.solve(active)
                # 3.
                positive = np.maximum(target, 0.0)
                its_margins = target_margins
                if (target < 0).any():
                    its_margins = machine.margins(positive)
                self.gap = 1.0
                if positive.any():
                    self.gap = bounds_of(positive, its_margins, machine.slack).gap
                if self.gap < best_gap:
                    best, best_gap = positive, self.gap
                if self.gap <= tol:
                    reason = "optimal"
                    break
                # 4.
                step = step_length(alpha, margins, target, target_margins, machine.slack)
                if not step > 0:
                    break
                alpha = alpha + step * (target - alpha)
                margins = margins + step * (target_margins - margins)
        except Stopped:
            reason = "max_time"
        except np.linalg.LinAlgError:
            reason = "indefinite"
        self.n_steps += equations.n_factored
        return best, reason


class _ActiveEquations:
    """Solves ``Q_AA alpha_A = 1`` for one A after another."""

    def __init__(self, machine: DenseMachine, poll: Callable[[], None]) -> None:
        self.machine = machine
        self.poll = poll
        self.n_factored = 0
        self.rows: NDArray[np.intp] = np.empty(0, dtype=np.intp)  # B
        self.L = np.empty((0, 0))

    def solve(self, active: NDArray[np.intp]) -> tuple[FloatArray, FloatArray]:
        """Alpha of all rows, and the margins that it makes."""
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
        self.L, self.rows = cholesky(self.machine.Q(active), self.poll), active
        alpha = np.zeros(len(self.machine.labels))
        alpha[active] = self._solve(np.ones(len(active)))
        return alpha, self.machine.margins(alpha)

    def _solve(self, right: FloatArray) -> FloatArray:
        return triangular(self.L, triangular(self.L, right), transposed=True)

    def _corrected(self, active: NDArray[np.intp]) -> FloatArray:
        """Put the rows right that left B (their alpha is 0) or joined it."""
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
        except np.linalg.LinAlgError:  # the residual will say so
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
