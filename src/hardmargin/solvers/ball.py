r"""L2-SVMs by core sets, one after another: Tsang, Kocsor & Kwok, MCS 2006 (MCS-06).

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
   :math:`\mu = \alpha'g/\sum\alpha`, join S.
3. Solve the problem on S from where it was, two multipliers at a time: the one whose g is furthest
   from 1, and the one that gains most together with it (second-order selection; the sum of
   :math:`\alpha` is free, so a step is the minimum over both).
4. When a sample has no such row, price all rows. Those found are the candidates from then on; when
   there are none, stop: ``"certified"``.

A full pass that finds none proves :math:`p \le p^* \le p/(1-\delta)^2` with :math:`p = 1/d`; in
general :math:`p^* \le d/(\min_i s_i)^2`, s = Qa. The paper's own rule (``stopping="radius"``) looks
at one sample of 59, until a sample lies within :math:`(1 + \epsilon)R`, :math:`R^2 = \kappa - d`,
of the centre; :math:`\kappa = k(x,x) + 1 + 1/C` must be a constant. (Until then more rows are
priced, and more than one joins, as above.) That error is relative to R and not to p, and a single
sample misses rare rows: for large C it may stop far from the optimum, and the bounds then say so.

The steps within S are in the compiled core (``core/src/ball.cpp``).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hardmargin import _core
from hardmargin.kernel_columns import KernelColumns, aligned_zeros
from hardmargin.kernels import FloatArray
from hardmargin.solvers.solution import BallSolution, BallStop

Constraint = Literal["orthogonal", "uncorrelated", "uncorrelated-centred"]
Stopping = Literal["margin", "radius"]
IndexArray = NDArray[np.int64]

CONSTRAINTS = ("orthogonal", "uncorrelated", "uncorrelated-centred")

#: Rows priced at a time, and those of them that may join the core set.
SAMPLE_ROWS, JOINING_ROWS = 944, 160

#: The paper's sample: with 95 % probability it has one of the 5 % of rows that are furthest.
RADIUS_SAMPLE_ROWS = 59

#: Share of the tolerance that the core set's own solution may leave open.
INNER_SHARE = 0.15

#: Steps within a core set that should do in any case: so many, and so many a row.
MIN_MAX_STEPS, STEPS_A_ROW = 1_000_000, 1_000

#: A machine whose ||w||^2 is this small, relative to what it was before the constraints, vanishes.
_VANISHING = {"float32": 1e-5, "float64": 1e-8}

#: Smaller weights than one over this count as that.
_LARGEST_SLACK = 1e15

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
    eps: float = 1e-3
    max_stages: int | None = None
    max_seconds: float | None = None
    memory_bytes: int = 2**30
    moment_rows: int | None = None


@dataclass(frozen=True)
class Directions:
    """Orthonormal directions that a machine must be orthogonal to.

    Attributes
    ----------
    projections : (n, n_directions) array
        F: what every row is projected to.
    coefficients : (n, n_directions) array
        Each direction as an expansion over the rows.
    """

    projections: FloatArray
    coefficients: FloatArray

    @classmethod
    def none(cls, n_rows: int) -> Directions:
        """No direction at all."""
        return cls(np.zeros((n_rows, 0)), np.zeros((n_rows, 0)))

    def __len__(self) -> int:
        return int(self.projections.shape[1])

    def followed_by(self, projection: FloatArray, coefficients: FloatArray) -> Directions:
        """One direction more."""
        return Directions(
            np.column_stack([self.projections, projection]),
            np.column_stack([self.coefficients, coefficients]),
        )


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
    machine = _Machine(
        columns,
        np.asarray(labels, dtype=np.float64),
        weights,
        Directions.none(columns.n_rows) if directions is None else directions,
        options or BallOptions(),
        np.random.default_rng(0) if random is None else random,
        keep_going or (lambda stage, violation: True),
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
    directions = Directions.none(columns.n_rows)
    solutions: list[BallSolution] = []
    while len(solutions) < n_machines:
        if options.max_seconds is not None:
            options = replace(options, max_seconds=max(deadline - time.monotonic(), 0.0))
        solution = solve_ball(
            columns,
            labels,
            weights=weights,
            directions=directions,
            options=options,
            random=random,
            keep_going=keep_going,
        )
        if solution.weight_norm == 0 and solutions:
            break
        solutions.append(solution)
        if solution.weight_norm == 0 or solution.stop_reason == "max_time":
            break
        if len(solutions) < n_machines:
            directions = constrain(
                columns, directions, solution, labels, constraint, weights, options, random
            )
    return solutions


def constrain(
    columns: KernelColumns,
    directions: Directions,
    solution: BallSolution,
    labels: FloatArray,
    constraint: Constraint = "orthogonal",
    weights: FloatArray | None = None,
    options: BallOptions | None = None,
    random: np.random.Generator | None = None,
) -> Directions:
    """Add the direction that later machines must be orthogonal to, once there is this machine."""
    if constraint == "orthogonal":
        return directions.followed_by(solution.projections, solution.direction)
    options = options or BallOptions()
    rows = np.flatnonzero(labels)
    if options.moment_rows is not None and options.moment_rows < len(rows):
        random = np.random.default_rng(0) if random is None else random
        rows = np.sort(random.choice(rows, options.moment_rows, replace=False))
    mass = np.ones(len(rows)) if weights is None else weights[rows]
    moment = solution.projections[rows]
    if constraint == "uncorrelated-centred":
        moment = moment - mass @ moment / mass.sum()
    # Phi H Phi' w as an expansion, made orthogonal to the others (twice, against rounding).
    coefficients = np.zeros(columns.n_rows)
    coefficients[rows] = mass * moment
    for _ in range(2):
        along = directions.projections.T @ coefficients
        coefficients -= directions.coefficients @ along
    support = np.flatnonzero(coefficients)
    projection = columns.product(support, coefficients[support])
    squared_norm = float(coefficients @ projection)
    if not squared_norm > 0:
        return directions
    norm = np.sqrt(squared_norm)
    return directions.followed_by(projection / norm, coefficients / norm)


class _CoreSet:
    """Rows that take part so far, with Q between them, their multipliers and g = Q alpha."""

    def __init__(self, capacity: int, dtype: str) -> None:
        self.capacity = capacity
        self.dtype = dtype
        self.rows = np.empty(0, dtype=np.int64)
        self.alpha = np.empty(0)
        self.gradient = np.empty(0)
        self._values = aligned_zeros((0, 0), dtype)

    @property
    def Q(self) -> NDArray[Any]:
        """Q between the rows."""
        n = len(self.rows)
        return self._values[:n, :n]

    def extend(self, rows: IndexArray, block: NDArray[Any], gradient: FloatArray) -> None:
        """Let rows join, with their part of Q (against the rows before, then themselves)."""
        n, total = len(self.rows), len(self.rows) + len(rows)
        if total > len(self._values):
            size = min(max(2 * total, 512), self.capacity)
            size = -(-max(size, total) // 16) * 16  # the compiled core reads 16 at a time
            values = aligned_zeros((size, size), self.dtype)
            values[:n, :n] = self.Q
            self._values = values
        self._values[n:total, :total] = block
        self._values[:n, n:total] = block[:, :n].T
        self.rows = np.concatenate([self.rows, rows])
        self.alpha = np.concatenate([self.alpha, np.zeros(len(rows))])
        self.gradient = np.concatenate([self.gradient, gradient])

    def improve(
        self,
        tol: float,
        largest_mass: float,
        max_seconds: float,
        report: Callable[[int, int, float], None],
    ) -> tuple[int, float, str]:
        """Solve the problem on these rows from where it is: steps, violation, how it ended."""
        step = _core.core_set_steps_float32
        if self.dtype == "float64":
            step = _core.core_set_steps_float64
        return step(
            self.Q,
            self.alpha,
            self.gradient,
            tol=tol,
            largest_mass=largest_mass,
            max_steps=max(MIN_MAX_STEPS, STEPS_A_ROW * len(self.rows)),
            max_seconds=max_seconds,
            report=report,
        )


class _Stopped(Exception):
    """Whoever asked for the machine no longer wants to wait."""


class _Machine:
    """One machine in the making; g and alpha are on the scale where g is 1 at the optimum."""

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
        self.slack = np.full(columns.n_rows, 1.0 / options.C)
        if weights is not None:
            self.slack[self.rows] /= weights[self.rows]
            # Rows that weigh next to nothing must not overflow Q.
            np.minimum(self.slack, _LARGEST_SLACK / options.C, out=self.slack)
        if options.stopping == "radius":
            self.kappa = self._constant_diagonal()
        self.n_stages = self.n_steps = 0
        self.n_evaluations_before = columns.n_evaluations
        itemsize = np.dtype(columns.dtype).itemsize
        room = int(np.sqrt(0.8 * options.memory_bytes / itemsize))  # while Q grows there are two
        self.core = _CoreSet(max(room // 16 * 16, 64), columns.dtype)
        self.in_core = np.zeros(columns.n_rows, dtype=bool)
        self.candidates: IndexArray | None = None  # what the last full pass found

    def run(self) -> BallSolution:
        pair = [self.random.choice(self.rows[self.y[self.rows] == side]) for side in (-1.0, 1.0)]
        self.join(np.array(pair, dtype=np.int64), np.zeros(2))
        is_margin = self.options.stopping == "margin"
        reason: BallStop | None = self.improve()
        n_repeats = 0
        while reason is None:
            reason = self.limit()
            if reason is not None:
                break
            joining, gradient = self.price()
            if len(joining) == 0 and not is_margin:
                reason = "radius"
            elif len(joining) == 0 and (self.candidates is None or len(self.candidates) == 0):
                g = self.full_pass()
                least = (1.0 - self.options.tol) * self.mu
                found = self.rows[(g < least) & ~self.in_core[self.rows]]
                self.candidates = found
                if len(found) == 0:
                    if g.min() >= least or n_repeats == _MAX_REPEATS:
                        reason = "certified" if g.min() >= least else "rounding"
                    else:  # the core set's own gradients had drifted
                        n_repeats += 1
                        reason = self.improve()
            elif len(joining):
                if len(self.core.rows) + len(joining) > self.core.capacity:
                    joining = joining[: self.core.capacity - len(self.core.rows)]
                    gradient = gradient[: len(joining)]
                if len(joining) == 0:
                    reason = "core_full"
                else:
                    self.join(joining, gradient)
                    self.n_stages += 1
                    reason = self.improve()
        return self.solution(reason)

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
        g: FloatArray = self.y[rows] * (scores + self.y[self.core.rows] @ self.core.alpha)
        return g

    def price(self) -> tuple[IndexArray, FloatArray]:
        """Find rows that should join the core set in a sample, the worst first, with their g."""
        sample = self.sample(SAMPLE_ROWS)
        g = np.empty(0)
        if self.options.stopping == "radius":  # the first part decides whether there is a second
            first = self.random.permutation(sample)[:RADIUS_SAMPLE_ROWS]
            g = self.gradient_at(first, self.scores_at(first))
            if not (g < self.least_gradient()).any():
                return first[:0], g[:0]
        if len(sample) == 0:
            return sample, g
        g = self.gradient_at(sample, self.scores_at(sample))
        wanted = g < self.least_gradient()
        if self.candidates is not None:
            self.candidates = np.setdiff1d(self.candidates, sample[~wanted], assume_unique=True)
        sample, g = sample[wanted], g[wanted]
        worst = np.argsort(g, kind="stable")[:JOINING_ROWS]
        return sample[worst], g[worst]

    def least_gradient(self) -> float:
        """Rows with less of it should join."""
        if self.options.stopping == "margin":
            return (1.0 - self.options.tol) * self.mu
        # ||centre - row||^2 = kappa + d - 2 s; here both d and s are 1 / sum(alpha) times as large
        mass = float(self.core.alpha.sum())
        d = self.mu / mass
        allowed = (1.0 + self.options.eps) ** 2 * (self.kappa - d)
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

    def full_pass(self) -> FloatArray:
        """G of all rows, afresh; the core set's own follow."""
        g = np.zeros(self.columns.n_rows)
        self.scores = self.scores_at(self.rows)
        g[self.rows] = self.gradient_at(self.rows, self.scores)
        core = self.core
        g[core.rows] += self.slack[core.rows] * core.alpha
        core.gradient = g[core.rows]
        of_machine: FloatArray = g[self.rows]
        return of_machine

    # --- the core set ----------------------------------------------------------------------------

    def join(self, rows: IndexArray, gradient: FloatArray) -> None:
        """Let rows join the core set."""
        self.columns.keep(rows)
        together = np.concatenate([self.core.rows, rows])
        block = self.columns.block(rows, together).astype(self.columns.dtype)
        block -= (self.F[rows] @ self.F[together].T).astype(block.dtype)
        block += 1.0
        block *= np.outer(self.y[rows], self.y[together]).astype(block.dtype)
        own = (np.arange(len(rows)), len(self.core.rows) + np.arange(len(rows)))
        squares = np.einsum("ij,ij->i", self.F[rows], self.F[rows])
        block[own] = self.columns.diagonal[rows] - squares + 1.0 + self.slack[rows]
        self.core.extend(rows, block, gradient)
        self.in_core[rows] = True
        if self.candidates is not None:
            self.candidates = self.candidates[~self.in_core[self.candidates]]

    def improve(self) -> BallStop | None:
        """Solve the problem on the core set; the reason if that did not succeed."""
        tol = INNER_SHARE * self.options.tol
        if self.options.stopping == "radius" and self.core.alpha.any():
            # As much of g as a change of the radius by eps stands for.
            open_gradient = self.mu - self.least_gradient()
            tol = INNER_SHARE * float(np.clip(open_gradient / self.mu, 1e-6, 1.0))

        def report(done: int, steps: int, violation: float) -> None:
            if not self.keep_going(self.n_stages, violation):
                raise _Stopped

        # w = 0 bounds the optimum, which is the sum of alpha, if Q is positive semi-definite.
        most = 4.0 * float((1.0 / self.slack[self.core.rows]).sum())
        left = self.deadline - time.monotonic()
        try:
            steps, _, reason = self.core.improve(tol, most, left, report)
        except _Stopped:
            return "max_time"
        self.n_steps += steps
        reasons: dict[str, BallStop | None] = {
            "converged": None,
            "diverged": "indefinite",
            "max_steps": "max_stages",
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

    def solution(self, reason: BallStop) -> BallSolution:
        if not self.core.alpha.any():  # stopped before the first step
            self.core.alpha[:] = 1.0
            self.core.gradient = self.core.Q.sum(axis=0, dtype=np.float64)
        g = self.full_pass()
        alpha, mu, core = self.core.alpha, self.mu, self.core
        product = float(alpha @ core.gradient)
        if product > 0:
            lower = float(alpha.sum()) ** 2 / product
        else:  # an indefinite kernel
            lower, mu = 0.0, 1.0
        least = float(g.min())
        upper = product / least**2 if min(least, product) > 0 else np.inf
        # The optimum along alpha has g = 1 in the mean.
        alpha = alpha / mu
        support, c = self.support()
        c = c / mu
        # The primal objective of this very machine bounds the optimum too.
        slacks = self.slack[core.rows] * alpha
        squared_norm = float(alpha @ (core.gradient / mu - slacks))
        margins = g / mu
        margins[np.searchsorted(self.rows, core.rows)] -= slacks
        missing = np.maximum(1.0 - margins, 0.0)
        upper = min(upper, squared_norm + float((missing**2 / self.slack[self.rows]).sum()))

        f, direction, norm = self.direction(support, c, mu)
        order = np.argsort(support)
        return BallSolution(
            rows=support[order].astype(np.int32),
            coefficients=c[order],
            intercept=float(c.sum()),
            lower_bound=lower,
            objective=max(upper, lower),
            weight_norm=norm,
            projections=f,
            direction=direction,
            core_size=len(core.rows),
            n_stages=self.n_stages,
            n_steps=self.n_steps,
            n_kernel_evaluations=self.columns.n_evaluations - self.n_evaluations_before,
            stop_reason=reason,
        )

    def direction(
        self, support: IndexArray, c: FloatArray, mu: float
    ) -> tuple[FloatArray, FloatArray, float]:
        """Return the projections on w of length one, its expansion, and its length."""
        f, expansion = np.zeros(self.columns.n_rows), np.zeros(self.columns.n_rows)
        f[self.rows] = self.scores / mu
        expansion[support] = c
        before = self.F.T @ expansion
        squared_norm_before = float(expansion @ f + before @ before)
        expansion -= self.directions.coefficients @ before
        # What rounding has left along the directions.
        rest = self.F.T @ expansion
        expansion -= self.directions.coefficients @ rest
        f[self.rows] -= self.F[self.rows] @ rest
        squared_norm = float(c @ f[support])
        if squared_norm <= _VANISHING[self.columns.dtype] * squared_norm_before:
            return np.zeros_like(f), np.zeros_like(f), 0.0
        norm = float(np.sqrt(squared_norm))
        return f / norm, expansion / norm, norm

    def _constant_diagonal(self) -> float:
        """Kappa, eq. (6)."""
        diagonal = (self.columns.diagonal + 1.0 + self.slack)[self.rows]
        if np.ptp(diagonal) > 1e-9 * np.abs(diagonal).max():
            raise ValueError(
                "stopping='radius' needs a kernel with the same k(x, x) for all rows ('rbf' or "
                "'laplacian') and equal weights; stopping='margin' takes any."
            )
        return float(diagonal.mean())
