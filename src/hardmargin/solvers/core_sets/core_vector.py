r"""L2-SVMs by core sets, one after another: Tsang, Kocsor & Kwok, ECML 2006 (MCS-06).

.. math:: \min \|w\|^2 + b^2 + C \sum_i w_i \xi_i^2 \quad : \quad
          y_i (w'\varphi(x_i) + b) \ge 1 - \xi_i, \quad u_q'w = 0,

eq. (1) with weights, where the orthonormal :math:`u_q` belong to earlier machines. With F the
projections :math:`u_q'\varphi(x_i)`, its dual is

.. math:: \max_{\alpha \ge 0} 2 \alpha'1 - \alpha'Q\alpha, \qquad
          Q_{ij} = y_i y_j (k_{ij} - F_i'F_j + 1) + [i = j] / (C w_i),

which is a minimum enclosing ball with constraints on its centre, eqs. (4)-(11): on the simplex,
:math:`a = \alpha/\sum\alpha` minimises :math:`d = a'Qa`, and the optimum of (1) is
:math:`p^* = 1/\min d`.

1. The core set S starts with one row of each class, and :math:`\alpha` at their optimum.
2. Price a random sample of the other rows: :math:`g_i = Q_{iS}\alpha_S`, which is at least 1 at the
   optimum. The worst of those below :math:`(1 - \delta)\mu`, with
   :math:`\mu = \alpha'g/\sum\alpha`, join S. Samples grow with S, so that stages stay few.
3. Solve the problem on S from where it was, two multipliers at a time: the one whose g is furthest
   from 1, and the one that gains most together with it (second-order selection; the sum of
   :math:`\alpha` is free, so a step is the minimum over both).
4. When a sample has no such row, or lets expect that the tolerance is met, price all rows. Those
   found are the candidates from then on; when the bounds are close enough, stop: ``"certified"``.

For any :math:`\alpha`, :math:`p = 1/d \le p^*`; and :math:`p^*` is at most
:math:`d/(\min_i s_i)^2`, s = Qa, and at most the primal objective of the machine itself. Training
ends when a full pass proves :math:`p \le p^* \le p/(1-\delta)^2`: at the latest when no row is
below :math:`(1 - \delta)\mu`, and on noisy rows, where the slacks of those left out add up to
little, much earlier.

The paper's own rule (``stopping="radius"``) looks at one sample of 59, until a sample lies within
:math:`(1 + \epsilon)R`, :math:`R^2 = \kappa - d`, of the centre; :math:`\kappa = k(x,x) + 1 + 1/C`
must be a constant. (Until then more rows are priced, and more than one joins, as above.) That error
is relative to R and not to p, and a single sample misses rare rows: for large C it may stop far
from the optimum, and the bounds then say so.

S and the problem on it are in :mod:`hardmargin.solvers.core_sets.core_set`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from hardmargin.kernels import FloatArray
from hardmargin.kernels.columns import KernelColumns
from hardmargin.solvers.core_sets.core_set import CoreSet, IndexArray
from hardmargin.solvers.core_sets.directions import (
    Constraint,
    Directions,
    LinearSpan,
    constrain,
    solve_in_turn,
)
from hardmargin.solvers.core_sets.result import bounds_of, least_gain, machine_result, slack_of
from hardmargin.solvers.solution import BallSolution, BallStop

Stopping = Literal["margin", "radius"]

#: Rows priced at a time, and those of them that may join the core set: so many at first, and
#: more, in proportion to the core set, as it grows.
SAMPLE_ROWS, JOINING_ROWS = 944, 160
JOINING_SHARE = 0.15

#: Stored columns are read in cache lines: a sample of one in so many rows costs as much as all.
ROWS_A_LINE = 16

#: The paper's sample: with 95 % probability it has one of the 5 % of rows that are furthest.
RADIUS_SAMPLE_ROWS = 59

#: Share of the tolerance that the core set's own solution may leave open.
INNER_SHARE = 0.15

#: A larger share of the radius allows any row to be anywhere, and its square would overflow.
_LARGEST_EPS = 1e100

#: Slacks are no larger where Q is held in float32.
_LARGEST_FLOAT32_SLACK = 1e30

#: Rows that a core set may have in any case.
_LEAST_ROOM = 64

#: Times that rounding alone may send the core set's solution back.
_MAX_REPEATS = 3


@dataclass(frozen=True)
class BallOptions:
    """How to run.

    Attributes
    ----------
    C : float
        Weight of the squared slacks.
    tol : float
        delta: margins may be so much too small, relative to the common one.
    stopping : {"margin", "radius"}
        The certified rule, or the paper's.
    eps : float
        What the radius may be short of, relative to it; for ``stopping="radius"``.
    max_stages : int or None
        Limit on the times that the core set grows.
    max_seconds : float or None
        Time for one machine; what there is by then is returned.
    memory_bytes : int
        For Q on the core set, which limits its size.
    moment_rows : int or None
        Rows that estimate the moments of the uncorrelated constraints; None is all.
    """

    C: float = 1.0
    tol: float = 0.05
    stopping: Stopping = "margin"
    eps: float = 1e-5
    max_stages: int | None = None
    max_seconds: float | None = None
    memory_bytes: int = 2**30
    moment_rows: int | None = None


def solve_ball(
    columns: KernelColumns,
    labels: FloatArray,
    *,
    weights: FloatArray | None = None,
    directions: Directions | None = None,
    options: BallOptions | None = None,
    random: np.random.Generator | None = None,
    keep_going: Callable[[int, float], bool] | None = None,
) -> BallSolution:
    """Train one machine.

    Parameters
    ----------
    columns : KernelColumns
        The kernel, positive semi-definite, between all rows.
    labels : (n,) array
        +1 and -1; 0 leaves a row out. Both classes need rows.
    weights : (n,) array, optional
        Weights of the slacks, positive; a weight of two equals the row twice.
    directions : Directions, optional
        What the machine must be orthogonal to.
    options : BallOptions, optional
        How to run.
    random : numpy Generator, optional
        Draws the samples.
    keep_going : callable, optional
        Called with (stage, relative violation); the machine so far is returned when it says no.

    Returns
    -------
    BallSolution
    """
    machine = CoreSetMachine(
        columns,
        np.asarray(labels, dtype=np.float64),
        weights,
        Directions.none(columns.n_rows) if directions is None else directions,
        options or BallOptions(),
        np.random.default_rng(0) if random is None else random,
        keep_going or _always,
    )
    return machine.run()


def solve_balls(
    columns: KernelColumns,
    labels: FloatArray,
    n_machines: int,
    *,
    constraint: Constraint = "orthogonal",
    weights: FloatArray | None = None,
    options: BallOptions | None = None,
    random: np.random.Generator | None = None,
    keep_going: Callable[[int, float], bool] | None = None,
) -> list[BallSolution]:
    """Train machines one after another, each under the constraints that those before it make.

    Parameters
    ----------
    columns, labels, weights, options, random, keep_going
        As for :func:`solve_ball`; the time limit is for all machines together.
    n_machines : int
        How many; fewer are returned when nothing is left for w.
    constraint : {"orthogonal", "uncorrelated", "uncorrelated-centred"}
        Directions are orthogonal, or (section 3.3) the projections of the rows are: as they are,
        or less their means, which makes them uncorrelated.

    Returns
    -------
    list of BallSolution
        Where the first machine vanishes it is returned all the same.
    """
    options = options or BallOptions()
    random = np.random.default_rng(0) if random is None else random
    deadline = np.inf if options.max_seconds is None else time.monotonic() + options.max_seconds
    span = LinearSpan.of(columns.kernel, columns.X) if n_machines > 1 else None
    core: IndexArray | None = None

    def solve_one(directions: Directions) -> BallSolution:
        nonlocal core
        left = max(deadline - time.monotonic(), 0.0)
        machine = CoreSetMachine(
            columns,
            labels,
            weights,
            directions,
            replace(options, max_seconds=left if np.isfinite(left) else None),
            random,
            keep_going or _always,
        )
        machine.span = span
        solution = machine.run(core)
        # Rows that were close to the plane mostly are so again.
        core = machine.core.rows
        return solution

    def constrained(directions: Directions, solution: BallSolution) -> Directions:
        return constrain(
            directions,
            solution,
            labels,
            columns.product,
            constraint=constraint,
            weights=weights,
            moment_rows=options.moment_rows,
            random=random,
        )

    return solve_in_turn(solve_one, constrained, Directions.none(columns.n_rows), n_machines)


def _always(stage: int, violation: float) -> bool:
    return True


class _Stopped(Exception):
    """Whoever asked for the machine no longer wants to wait."""


class CoreSetMachine:
    """One machine in the making; g and alpha are on the scale where g is 1 at the optimum.

    What is the L2-SVM's own, and another problem of the same form has its own of: `bias`,
    `starting_rows`, `least_gradient`, `inner_tol`, `largest_mass`, `bounds` and `certified`.
    """

    #: What Q has besides the kernel's values.
    bias = 1.0

    #: For a linear kernel, where directions are more exact as vectors.
    span: LinearSpan | None = None

    def __init__(
        self,
        columns: KernelColumns,
        labels: FloatArray,
        weights: FloatArray | None,
        directions: Directions,
        options: BallOptions,
        random: np.random.Generator,
        keep_going: Callable[[int, float], bool],
    ) -> None:
        self.columns = columns
        self.y = labels
        self.rows = np.flatnonzero(labels)
        self.directions = directions
        self.F = directions.projections
        self.options = options
        self.random = random
        self.keep_going = keep_going
        self.deadline = np.inf
        if options.max_seconds is not None:
            self.deadline = time.monotonic() + options.max_seconds
        self.slack = slack_of(columns.n_rows, options.C, weights)
        if columns.dtype == "float32":  # which Q is held in
            self.slack = np.minimum(self.slack, _LARGEST_FLOAT32_SLACK)
        if options.stopping == "radius":
            self.kappa = self._constant_diagonal()
        self.n_stages = self.n_steps = self.n_repeats = 0
        self.share_wanted = 1.0  # of the last sample
        self.is_fresh = False
        columns.begin_machine()
        self.n_evaluations_before = columns.n_evaluations
        itemsize = np.dtype(columns.dtype).itemsize
        room = max(int(np.sqrt(options.memory_bytes / itemsize)), _LEAST_ROOM)
        room = min(room, len(self.rows))
        self.core = CoreSet(columns.borrow(room), room)
        self.in_core = np.zeros(columns.n_rows, dtype=bool)
        self.candidates: IndexArray | None = None  # what the last full pass found

    def run(self, start: IndexArray | None = None) -> BallSolution:
        """Train it, from some rows on."""
        solution = self.solution(self.search(start))
        self.columns.give_back(self.core.values)
        return solution

    def search(self, start: IndexArray | None = None) -> BallStop:
        """Let the core set grow until there is a reason to stop."""
        if start is None:
            start = self.starting_rows()
        self.join(start, np.zeros(len(start)))
        reason: BallStop | None = self.improve()
        while reason is None:
            reason = self.limit()
            if reason is None:
                joining, gradient, reason = self.price()
                if reason is None:
                    reason = self.grow(joining, gradient)
        return reason

    def starting_rows(self) -> IndexArray:
        """One row of each class."""
        pair = [self.random.choice(self.rows[self.y[self.rows] == side]) for side in (-1.0, 1.0)]
        return np.array(pair, dtype=np.int64)

    # --- pricing ---------------------------------------------------------------------------------

    @property
    def mu(self) -> float:
        """Common margin: the mean of g weighted by alpha."""
        return float(self.core.alpha @ self.core.gradient / self.core.alpha.sum())

    def support(self) -> tuple[IndexArray, FloatArray]:
        """Rows with a multiplier, and their coefficients."""
        has_mass = self.core.alpha > 0
        rows = self.core.rows[has_mass]
        return rows, self.y[rows] * self.core.alpha[has_mass]

    def scores_at(self, rows: IndexArray) -> FloatArray:
        """``w'phi(x)``, on the scale of alpha."""
        support, c = self.support()
        whole = len(rows) == self.columns.n_rows
        scores = self.columns.product(support, c, None if whole else rows)
        scores -= self.F[rows] @ (self.F[support].T @ c)
        if not np.isfinite(scores).all():
            raise ValueError("The kernel's values must be finite; some are NaN or infinite.")
        return scores

    def gradient_at(self, rows: IndexArray, scores: FloatArray) -> FloatArray:
        """``Q alpha`` without the slacks, which rows outside of the core set do not have."""
        shift = self.bias * (self.y[self.core.rows] @ self.core.alpha)
        g: FloatArray = self.y[rows] * (scores + shift)
        return g

    def price(self) -> tuple[IndexArray, FloatArray, BallStop | None]:
        """Find rows that should join the core set, the worst first, with their g; or the end."""
        if self.options.stopping == "radius":
            few = self.sample(RADIUS_SAMPLE_ROWS)
            g = self.gradient_at(few, self.scores_at(few))
            if not (g < self.least_gradient()).any():
                return few[:0], g[:0], "radius"
            joining, gradient = self.price_sample()
            return joining, gradient, None
        if self.columns.n_kept > 0:
            all_as_cheap = ROWS_A_LINE * self.sample_size >= len(self.rows)
        else:
            all_as_cheap = self.candidates is None and 2 * self.sample_size >= len(self.rows)
        if all_as_cheap:
            return self.price_all()
        joining, gradient = self.price_sample()
        if len(joining) == 0 or self.certified(self.estimated_bounds):
            return self.price_all()
        return joining, gradient, None

    def price_sample(self) -> tuple[IndexArray, FloatArray]:
        """Find rows that should join in a sample."""
        sample = self.sample(self.sample_size)
        if len(sample) == 0:
            return sample, np.empty(0)
        g = self.gradient_at(sample, self.scores_at(sample))
        wanted = g < self.least_gradient()
        self.share_wanted = float(wanted.mean())
        self.estimated_bounds = self.bounds(sample, g)
        if self.candidates is not None:
            self.candidates = np.setdiff1d(self.candidates, sample[~wanted], assume_unique=True)
        return self.worst(sample[wanted], g[wanted])

    def price_all(self) -> tuple[IndexArray, FloatArray, BallStop | None]:
        """Find rows that should join among all, if they do not prove that there is no need."""
        self.full_pass()
        if self.certified(self.bounds(self.rows, self.g)):
            return self.rows[:0], np.empty(0), "certified"
        is_candidate = (self.g < self.least_gradient()) & ~self.in_core[self.rows]
        self.candidates = self.rows[is_candidate]
        if len(self.candidates) == 0:  # the core set's own gradients had drifted
            self.n_repeats += 1
            return (
                self.candidates,
                np.empty(0),
                "rounding" if self.n_repeats > _MAX_REPEATS else None,
            )
        some = np.flatnonzero(is_candidate)
        if len(some) > self.sample_size:
            some = self.random.choice(some, self.sample_size, replace=False)
        return *self.worst(self.rows[some], self.g[some]), None

    def worst(self, rows: IndexArray, g: FloatArray) -> tuple[IndexArray, FloatArray]:
        """As many of the rows as may join at once, those of least g."""
        order = np.argsort(g, kind="stable")[: self.n_joining]
        return rows[order], g[order]

    @property
    def n_joining(self) -> int:
        """Rows that may join at once."""
        return max(JOINING_ROWS, int(JOINING_SHARE * len(self.core.rows)))

    @property
    def sample_size(self) -> int:
        """Rows to price at once."""
        # Where few are found to be wanted, the next sample is larger.
        enough = 2 * self.n_joining / max(self.share_wanted, 1e-9)
        if self.options.stopping == "radius":  # which has no use for rare rows
            enough = min(enough, 4 * self.n_joining)
        return max(SAMPLE_ROWS, int(min(enough, len(self.rows))))

    def least_gradient(self) -> float:
        """Rows with less of it should join."""
        if self.options.stopping == "margin":
            return (1.0 - self.options.tol) * self.mu
        # ||centre - row||^2 = kappa + d - 2 s; here both d and s are 1 / sum(alpha) times as large
        mass = float(self.core.alpha.sum())
        d = self.mu / mass
        allowed = (1.0 + min(self.options.eps, _LARGEST_EPS)) ** 2 * (self.kappa - d)
        return (self.kappa + d - allowed) / 2 * mass

    def sample(self, size: int) -> IndexArray:
        """Draw rows that are not in the core set, from the candidates once there are some."""
        if self.candidates is not None:
            if len(self.candidates) <= size:
                return self.candidates
            return self.random.choice(self.candidates, size, replace=False)
        if len(self.rows) - len(self.core.rows) <= 2 * size:
            rest = self.rows[~self.in_core[self.rows]]
            return self.random.permutation(rest)[:size]
        drawn = np.unique(self.random.integers(len(self.rows), size=size))
        drawn = self.rows[drawn]
        return drawn[~self.in_core[drawn]]

    def full_pass(self) -> None:
        """Evaluate the scores and g of all rows afresh; the core set's own follow."""
        g = np.zeros(self.columns.n_rows)
        self.scores = self.scores_at(self.rows)
        g[self.rows] = self.gradient_at(self.rows, self.scores)
        core = self.core
        g[core.rows] += self.slack[core.rows] * core.alpha
        core.gradient = g[core.rows]
        self.g = g[self.rows]
        self.is_fresh = True

    def bounds(self, rows: IndexArray, g: FloatArray) -> tuple[float, float]:
        """Bounds of the optimum from g of all rows, or estimates from g of some outside."""
        core = self.core
        of_core = self.slack[core.rows]
        if len(rows) == len(self.rows):
            alpha = np.zeros(self.columns.n_rows)
            alpha[core.rows] = core.alpha
            alpha, slack = alpha[rows], self.slack[rows]
            bounds = bounds_of(alpha, g - slack * alpha, slack)
        else:
            n_outside = len(self.rows) - len(core.rows)
            if self.candidates is not None:
                n_outside = len(self.candidates)
            # Each row of the sample stands for several.
            share = len(rows) / n_outside
            bounds = bounds_of(
                np.concatenate([core.alpha, np.zeros(len(rows))]),
                np.concatenate([core.gradient - of_core * core.alpha, g]),
                np.concatenate([of_core, share * self.slack[rows]]),
            )
        return bounds.lower, bounds.upper

    def certified(self, bounds: tuple[float, float]) -> bool:
        """Whether the optimum is known as closely as the tolerance asks for."""
        lower, upper = bounds
        if not (lower > 0 and upper * (1.0 - self.options.tol) ** 2 <= lower):
            return False
        if len(self.directions) == 0:
            return True
        # Whether the constraints leave anything for w must be known too.
        gain = least_gain(self.y[self.rows], self.slack[self.rows])
        return upper < gain or lower >= gain

    # --- the core set ----------------------------------------------------------------------------

    def join(self, rows: IndexArray, gradient: FloatArray) -> None:
        """Let rows join the core set."""
        self.columns.keep(rows)
        together = np.concatenate([self.core.rows, rows])
        squares = np.einsum("ij,ij->i", self.F[rows], self.F[rows])
        self.core.extend(
            rows,
            gradient,
            self.columns.located(rows, together),
            labels=self.y[together],
            projections=self.F[together],
            bias=self.bias,
            diagonal=self.columns.diagonal[rows] - squares + self.bias + self.slack[rows],
        )
        self.in_core[rows] = True
        if self.candidates is not None:
            self.candidates = self.candidates[~self.in_core[self.candidates]]

    def grow(self, joining: IndexArray, gradient: FloatArray) -> BallStop | None:
        """Let rows join as far as the memory goes, and solve the problem with them."""
        room = self.core.capacity - len(self.core.rows)
        if room == 0 and len(joining):
            return "core_full"
        if len(joining):
            self.join(joining[:room], gradient[:room])
            self.n_stages += 1
        return self.improve()

    def inner_tol(self) -> float:
        """Return what the core set's own solution may leave open, relative to g."""
        if self.options.stopping == "radius" and self.core.alpha.any():
            # As much of g as a change of the radius by eps stands for.
            open_gradient = self.mu - self.least_gradient()
            return INNER_SHARE * float(np.clip(open_gradient / self.mu, 1e-6, 1.0))
        return INNER_SHARE * self.options.tol

    def largest_mass(self) -> float:
        """Bound what the sum of alpha gets to if Q is positive semi-definite."""
        # w = 0 bounds the optimum, which is the sum of alpha.
        return 4.0 * float((1.0 / self.slack[self.core.rows]).sum())

    def improve(self) -> BallStop | None:
        """Solve the problem on the core set; the reason if that did not succeed."""
        tol, most = self.inner_tol(), self.largest_mass()

        def report(done: int, steps: int, violation: float) -> None:
            if not self.keep_going(self.n_stages, violation):
                raise _Stopped

        left = self.deadline - time.monotonic()
        try:
            self.is_fresh = False
            steps, _, reason = self.core.improve(tol, most, left, report)
        except _Stopped:
            return "max_time"
        self.n_steps += steps
        reasons: dict[str, BallStop | None] = {
            "converged": None,
            "diverged": "indefinite",
            "max_steps": "stalled",
            "max_time": "max_time",
        }
        return reasons[reason]

    def limit(self) -> BallStop | None:
        """Say which limit has been reached."""
        max_stages = self.options.max_stages
        if max_stages is not None and self.n_stages >= max_stages:
            return "max_stages"
        violation = float(np.abs(1.0 - self.core.gradient[self.core.alpha > 0]).max(initial=0.0))
        if time.monotonic() >= self.deadline or not self.keep_going(self.n_stages, violation):
            return "max_time"
        return None

    # --- the result ------------------------------------------------------------------------------

    def settle(self) -> None:
        """Have multipliers, and the scores of all rows that belong to them."""
        core = self.core
        if not core.alpha.any():  # stopped before the first step
            core.alpha[:] = 1.0
            core.gradient = core.Q.sum(axis=0, dtype=np.float64)
        if not self.is_fresh:
            self.full_pass()

    def proven(self, reason: BallStop) -> BallStop:
        """Say that it is certified where a limit was reached but the bounds are close enough."""
        if reason in ("radius", "indefinite"):
            return reason
        return "certified" if self.certified(self.bounds(self.rows, self.g)) else reason

    def solution(self, reason: BallStop) -> BallSolution:
        """Return the machine so far."""
        self.settle()
        reason = self.proven(reason)
        alpha, scores = np.zeros(self.columns.n_rows), np.zeros(self.columns.n_rows)
        alpha[self.core.rows] = self.core.alpha
        scores[self.rows] = self.scores
        return machine_result(
            alpha,
            scores,
            self.y,
            self.slack,
            self.directions,
            self.span,
            core_size=len(self.core.rows),
            n_stages=self.n_stages,
            n_steps=self.n_steps,
            n_kernel_evaluations=self.columns.n_evaluations - self.n_evaluations_before,
            stop_reason=reason,
        )

    def _constant_diagonal(self) -> float:
        """Kappa, eq. (6)."""
        diagonal = (self.columns.diagonal + 1.0 + self.slack)[self.rows]
        if np.ptp(diagonal) > 1e-9 * np.abs(diagonal).max():
            raise ValueError(
                "stopping='radius' needs a kernel with the same k(x, x) for all rows ('rbf' or "
                "'laplacian') and equal weights; stopping='margin' takes any."
            )
        return float(diagonal.mean())
