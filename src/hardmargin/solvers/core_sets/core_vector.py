r"""L2-SVMs by core sets, one after another: Tsang, Kocsor & Kwok, ECML 2006 (MCS-06).

.. math:: \min \|w\|^2 + b^2 + C \sum_i w_i \xi_i^2 \quad : \quad
          y_i (w'\varphi(x_i) + b) \ge 1 - \xi_i, \quad u_q'w = 0,

eq. (1) with weights, has the dual :math:`\max_{\alpha \ge 0} 2 \alpha'1 - \alpha'Q\alpha`, with Q
as in ``l2_svm.py``. It is a minimum enclosing ball with constraints on its centre, eqs. (4)-(11):
on the simplex, :math:`a = \alpha/\sum\alpha` minimises :math:`d = a'Qa`, and the optimum of (1) is
:math:`p^* = 1/\min d`. For each of the directions :math:`u_q`:

1. The core set S starts with one row of each class, or with that of the direction before, as
   mostly the same rows are close to the plane again.
2. Price a random sample of the other rows: :math:`g_i = Q_{iS}\alpha_S`, which is at least 1 at the
   optimum. The worst of those below :math:`(1 - \delta)\mu`, with
   :math:`\mu = \alpha'g/\sum\alpha`, join S. Samples grow with S, so that stages stay few.
3. Solve the problem on S from where it was, two multipliers at a time: the one whose g is furthest
   from 1, and the one that gains most together with it (second-order selection; the sum of
   :math:`\alpha` is free, so a step is the minimum over both).
4. When a sample has no such row, or suggests that the tolerance is met, price all rows. Those
   found are the candidates from then on; when the bounds are close enough, stop: ``"certified"``.
5. Add the machine's direction to those that the next one must be orthogonal to
   (``l2_svm.py``, which has the loop over directions).

For any :math:`\alpha`, :math:`p = 1/d \le p^*`; and :math:`p^*` is at most
:math:`d/(\min_i s_i)^2`, s = Qa, and at most the primal objective of the machine itself. Training
ends when a full pass proves :math:`p \le p^* \le p/(1-\delta)^2`: at the latest when no row is
below :math:`(1 - \delta)\mu`, and on noisy rows, where the slacks of those left out add up to
little, much earlier.

The paper's own rule (``stopping="radius"``) checks one sample of 59, until a sample lies within
:math:`(1 + \epsilon)R`, :math:`R^2 = \kappa - d`, of the centre; :math:`\kappa = k(x,x) + 1 + 1/C`
must be a constant. (Until then more rows are priced, and more than one joins, as above.) That error
is relative to R and not to p, and a single sample misses rare rows: for large C it may stop far
from the optimum, which the bounds then show.

Steps 2 to 4 are also those of the minimum enclosing ball (``enclosing_ball.py``), which has another
:class:`~hardmargin.solvers.core_sets.core_set.Goal`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hardmargin.kernels import FloatArray
from hardmargin.kernels.columns import ROWS_PER_CACHE_LINE, KernelColumns
from hardmargin.kernels.diagonal import check_diagonal
from hardmargin.monitor import Monitor
from hardmargin.solvers.core_sets.core_set import CoreSet, Goal, IndexArray, Limits, Priced
from hardmargin.solvers.core_sets.l2_svm import (
    L2Options,
    L2Problem,
    L2Solution,
    bounds_of,
    slack_of,
    train_machines,
)
from hardmargin.solvers.problem import Problem

Stopping = Literal["margin", "radius"]

#: Rows priced at a time, and how many of them may join the core set: these numbers at first, and
#: more, in proportion to the core set, as it grows.
SAMPLE_ROWS, JOINING_ROWS = 944, 160
JOINING_SHARE = 0.15

#: The paper's sample: with 95 % probability it has one of the 5 % of rows that are furthest.
RADIUS_SAMPLE_ROWS = 59

#: Share of the tolerance by which the core set's own solution may be off.
INNER_SHARE = 0.15

#: A larger eps would allow rows anywhere, and its square would overflow.
_LARGEST_EPS = 1e100

#: Fewer kernel values than this say nothing about how long others will take.
_LEAST_TIMED = 100_000

#: How often a core set may be solved again because of rounding alone.
_MAX_REPEATS = 3


@dataclass(frozen=True, kw_only=True)
class CoreVectorOptions(L2Options):
    """Options beyond those that all solvers of L2-SVMs have.

    Attributes
    ----------
    tol : float
        delta: how much margins may be too small, relative to the common margin.
    stopping : {"margin", "radius"}
        The certified rule, or the paper's.
    eps : float
        How far the radius may fall short, relative to it; for ``stopping="radius"``.
    max_stages : int or None
        Limit on how often the core set grows.
    memory_bytes : int
        For Q on core sets, which limits their size and how many machines are trained at once.
    keeps_directions : bool
        Whether solutions have `projections` and `direction`, which are numbers for all rows.
    """

    tol: float = 0.05
    stopping: Stopping = "margin"
    eps: float = 1e-5
    memory_bytes: int = 2**30
    keeps_directions: bool = True


def solve(
    problem: Problem[KernelColumns],
    options: CoreVectorOptions | None = None,
    monitor: Monitor | None = None,
) -> list[L2Solution]:
    """Train the machines of a problem, and for each of them as many directions as requested.

    Parameters
    ----------
    problem : Problem of KernelColumns
        The kernel must be positive semi-definite, and each machine must have rows of both classes.
    options : CoreVectorOptions, optional
        How to run.
    monitor : Monitor, optional
        Receives every stage, with the largest error of g among the rows with a multiplier.

    Returns
    -------
    list of L2Solution
        Those of the first machine first.
    """
    run, columns = options or CoreVectorOptions(), problem.values
    check_diagonal(columns.kernel, columns.X, problem.codes >= 0, squared=True, dtype=columns.dtype)
    tasks, at_once = columns.for_tasks(len(problem.machines), run.memory_bytes)
    found = train_machines(
        problem,
        run,
        slack_of(columns.n_rows, run.C, problem.weights, columns.dtype),
        partial(train, tasks, run),
        lambda machine, rows, coefficients: tasks[machine].product(rows, coefficients),
        monitor or Monitor(),
        at_once,
    )
    return _count_once(found, tasks) if len(tasks) > 1 else found[0]


def train(
    tasks: Sequence[KernelColumns], options: CoreVectorOptions, l2: L2Problem, monitor: Monitor
) -> L2Solution:
    """Train one machine, on the columns of its task."""
    columns = tasks[l2.machine]
    n_before = columns.n_evaluations
    by_radius = options.stopping == "radius"
    kappa = _constant_diagonal(columns.diagonal, l2) if by_radius else np.nan
    if l2.before is not None:
        start = l2.before.core_rows
    else:
        sides = (np.flatnonzero(l2.labels == side) for side in (-1.0, 1.0))
        start = np.array([l2.random.choice(side) for side in sides], dtype=np.int64)
    n_rows = int(np.count_nonzero(l2.labels))
    with columns.workspace(n_rows, options.memory_bytes) as matrix:
        core = CoreSet(columns, l2.labels, l2.slack, l2.F, 1.0, matrix)
        goal = MarginGoal(l2, options, kappa)
        reason, n_stages, priced = grow(
            core, goal, start, by_radius, options.max_stages, l2.random, monitor
        )
        alpha, scores = np.zeros((2, columns.n_rows))
        alpha[core.rows], scores[priced.rows] = core.alpha, priced.scores
        solution = l2.solution(
            alpha,
            scores,
            core_rows=core.rows,
            n_stages=n_stages,
            n_steps=core.n_steps,
            n_kernel_evaluations=columns.n_evaluations - n_before,
            stop_reason=reason,
        )
    if options.keeps_directions:
        return solution
    return replace(solution, projections=np.empty(0), direction=np.empty(0))


def _constant_diagonal(diagonal: FloatArray, l2: L2Problem) -> float:
    """Kappa, eq. (6)."""
    squares = (diagonal + 1.0 + l2.slack)[l2.labels != 0]
    if np.ptp(squares) > 1e-9 * np.abs(squares).max():
        raise ValueError(
            "stopping='radius' needs a kernel with the same k(x, x) for all rows ('rbf' or "
            "'laplacian') and equal weights; stopping='margin' works with any."
        )
    return float(squares.mean())


def grow(
    core: CoreSet,
    goal: Goal,
    start: IndexArray,
    by_radius: bool,
    max_stages: int | None,
    random: np.random.Generator,
    monitor: Monitor,
) -> tuple[str, int, Priced]:
    """Let the core set grow until its goal is met.

    Returns
    -------
    reason : str
        Why it ended.
    n_stages : int
        How often it grew.
    full : Priced
        All rows, for the last multipliers.
    """
    outside = RowsOutside(core, by_radius, random)
    n_stages, n_repeats, pace = 0, 0, 0.0  # pace: seconds per kernel value when rows are priced
    full: Priced | None = None  # all rows, if they are priced for the current multipliers
    # 1. Start.
    core.join(start, np.zeros(len(start)))
    reason = core.solve(goal.limits(core), n_stages, monitor)
    while reason is None:
        if n_stages == max_stages:
            reason = "max_stages"
            break
        # All rows are priced at the end: stages must leave the time for that.
        left, last = monitor.seconds_left, pace * len(core.all_rows) * len(core.rows)
        if not monitor.go_on(n_stages, _violation(core)) or left <= last:
            reason = monitor.stop_reason
            break
        # 2. Price a sample, if that costs less than all rows.
        needs_all = not (by_radius or outside.is_sample_cheaper)
        if not needs_all:
            least = goal.limits(core).least_gradient
            if by_radius and not _finds_any(core, outside, least):  # the paper's rule
                reason = "radius"
                break
            rows, n_outside = outside.draw(outside.sample_size)
            priced = core.price(rows)
            n_values = len(rows) * int(np.count_nonzero(core.alpha))
            if monitor.has_limit and n_values >= _LEAST_TIMED:
                pace = (left - monitor.seconds_left) / n_values
            is_wanted = priced.margins < least
            wanted, outside = np.flatnonzero(is_wanted), outside.after(rows, is_wanted)
            needs_all = not by_radius and (
                len(wanted) == 0 or goal.is_certified(core, priced, n_outside)
            )
        # 4. Price all rows.
        if needs_all:
            priced = full = core.price(core.all_rows)
            if goal.is_certified(core, full):
                reason = "certified"
                break
            wanted, outside = outside.after_all(full, goal.limits(core).least_gradient)
            n_repeats += len(wanted) == 0  # the core set's own gradients had drifted
            if n_repeats > _MAX_REPEATS:
                reason = "rounding"
                break
        # The worst of those found join.
        room = len(core.matrix) - len(core.rows)
        if len(wanted) and room == 0:
            reason = "core_full"
            break
        if len(wanted):
            _join_worst(core, priced, wanted, min(outside.n_joining, room))
            n_stages += 1
        # 3. Solve the problem with them.
        part = monitor.part(share=1.0 - last / left) if 0 < last < left < np.inf else monitor
        reason, full = core.solve(goal.limits(core), n_stages, part), None
    if full is None:
        full = core.price(core.all_rows)
    return _last_reason(core, goal, reason, full), n_stages, full


def _last_reason(core: CoreSet, goal: Goal, reason: str, full: Priced) -> str:
    """Return why growing ended; a limit may have been reached where bounds are close enough."""
    if reason not in ("certified", "radius", "indefinite") and goal.is_certified(core, full):
        return "certified"
    return reason


def _violation(core: CoreSet) -> float:
    """Return the largest error of g among the rows with a multiplier."""
    return float(np.abs(1.0 - core.gradient[core.alpha > 0]).max(initial=0.0))


def _finds_any(core: CoreSet, outside: RowsOutside, least: float) -> bool:
    """Whether a small sample has a row that should join."""
    few, _ = outside.draw(RADIUS_SAMPLE_ROWS)
    return bool((core.price(few).margins < least).any())


def _join_worst(core: CoreSet, priced: Priced, wanted: NDArray[np.intp], n_joining: int) -> None:
    """Let those join that are furthest from what they should be."""
    order = np.argsort(priced.margins[wanted], kind="stable")
    worst = wanted[order[:n_joining]]
    core.join(priced.rows[worst], priced.margins[worst])


@dataclass(frozen=True)
class RowsOutside:
    """The rows outside a core set, as far as they are known; some of them join it.

    Attributes
    ----------
    core : CoreSet
        The core set.
    by_radius : bool
        Whether to stop by the paper's rule.
    random : numpy Generator
        Draws samples.
    candidates : int array or None
        Those that the last pass over all rows found, without those that samples ruled out since.
    share_wanted : float
        Share of the last sample that should have joined.
    """

    core: CoreSet
    by_radius: bool
    random: np.random.Generator
    candidates: IndexArray | None = None
    share_wanted: float = 1.0

    @property
    def n_joining(self) -> int:
        """Rows that may join at once."""
        return max(JOINING_ROWS, int(JOINING_SHARE * len(self.core.rows)))

    @property
    def is_sample_cheaper(self) -> bool:
        """Whether a sample costs less to price than all rows."""
        n_rows = len(self.core.all_rows)
        if self.core.columns.is_kept.any():  # a sample reads every cache line of its columns
            return ROWS_PER_CACHE_LINE * self.sample_size < n_rows
        return self.candidates is not None or 2 * self.sample_size < n_rows

    @property
    def sample_size(self) -> int:
        """Rows to price at once."""
        # Where few rows of a sample should join, the next one is larger.
        enough = 2 * self.n_joining / max(self.share_wanted, 1e-9)
        if self.by_radius:  # which has no use for rare rows
            enough = min(enough, 4 * self.n_joining)
        return max(SAMPLE_ROWS, int(min(enough, len(self.core.all_rows))))

    def draw(self, size: int) -> tuple[IndexArray, int]:
        """Draw rows, from the candidates once there are some; also count what it draws from."""
        core, random = self.core, self.random
        if self.candidates is not None:
            rest = self.candidates[core.places[self.candidates] < 0]
            some = rest if len(rest) <= size else random.choice(rest, size, replace=False)
            return some, len(rest)
        n_outside = len(core.all_rows) - len(core.rows)
        if n_outside <= 2 * size:
            rest = core.all_rows[core.places[core.all_rows] < 0]
            return random.permutation(rest)[:size], n_outside
        drawn = core.all_rows[np.unique(random.integers(len(core.all_rows), size=size))]
        return drawn[core.places[drawn] < 0], n_outside

    def after(self, sample: IndexArray, is_wanted: NDArray[np.bool_]) -> RowsOutside:
        """Return what is known of these rows once a sample of them is priced."""
        if len(sample) == 0:
            return self
        candidates = self.candidates
        if candidates is not None:
            candidates = np.setdiff1d(candidates, sample[~is_wanted], assume_unique=True)
        return replace(self, candidates=candidates, share_wanted=float(is_wanted.mean()))

    def after_all(self, full: Priced, least: float) -> tuple[NDArray[np.intp], RowsOutside]:
        """Return which of all rows should join, a sample if they are many, and what is known."""
        is_outside = self.core.places[full.rows] < 0
        wanted = np.flatnonzero((full.margins < least) & is_outside)
        known = replace(self, candidates=full.rows[wanted])
        if len(wanted) > known.sample_size:
            wanted = self.random.choice(wanted, known.sample_size, replace=False)
        return wanted, known


@dataclass(frozen=True)
class MarginGoal:
    """An L2-SVM whose bounds are as close as the tolerance requires.

    Attributes
    ----------
    l2 : L2Problem
        The machine.
    options : CoreVectorOptions
        The tolerance.
    kappa : float
        For the radius rule.
    """

    l2: L2Problem
    options: CoreVectorOptions
    kappa: float

    def limits(self, core: CoreSet) -> Limits:
        """Return what the tolerance allows."""
        options, kappa = self.options, self.kappa
        # w = 0 bounds the optimum, which is the sum of alpha.
        most = 4.0 * float((1.0 / core.slack[core.rows]).sum())
        if not core.alpha.any():
            return Limits(np.nan, INNER_SHARE * options.tol, most)
        mass = float(core.alpha.sum())
        mu = float(core.alpha @ core.gradient / mass)
        if options.stopping == "margin":
            return Limits((1.0 - options.tol) * mu, INNER_SHARE * options.tol, most)
        # ||centre - row||^2 = kappa + d - 2 s; here both d and s are 1 / sum(alpha) times as large
        d = mu / mass
        allowed = (1.0 + min(options.eps, _LARGEST_EPS)) ** 2 * (kappa - d)
        least = (kappa + d - allowed) / 2 * mass
        # The part of g that corresponds to a change of the radius by eps.
        return Limits(least, INNER_SHARE * float(np.clip((mu - least) / mu, 1e-6, 1.0)), most)

    def is_certified(self, core: CoreSet, priced: Priced, n_outside: int | None = None) -> bool:
        """Whether the optimum is known as closely as required, or seems to be by a sample."""
        slack = core.slack[priced.rows]
        if n_outside is None:
            alpha = np.zeros(len(core.y))
            alpha[core.rows] = core.alpha
            bounds = bounds_of(alpha[priced.rows], priced.margins, slack)
        else:
            own, n = core.slack[core.rows], len(slack)
            bounds = bounds_of(
                np.concatenate([core.alpha, np.zeros(n)]),
                np.concatenate([core.gradient - own * core.alpha, priced.margins]),
                # Each row of the sample stands for several.
                np.concatenate([own, n / n_outside * slack]),
            )
        lower, upper = bounds.lower, bounds.upper
        if not (lower > 0 and upper * (1.0 - self.options.tol) ** 2 <= lower):
            return False
        if not self.l2.F.size:
            return True
        # It must also be known whether the constraints leave anything for w.
        gain = self.l2.least_gain()
        return upper < gain or lower >= gain


def _count_once(
    found: Sequence[Sequence[L2Solution]], tasks: Sequence[KernelColumns]
) -> list[L2Solution]:
    """Count every kernel value once, as if the machines had been trained in turn."""
    counted = []
    is_there = np.zeros(tasks[0].n_rows, dtype=bool)
    for solutions, task in zip(found, tasks, strict=True):
        seen = np.zeros(task.n_rows, dtype=bool)
        for solution in solutions:
            kept = solution.core_rows[task.is_kept[solution.core_rows]]
            n_shared = int((is_there[kept] & ~seen[kept]).sum()) * task.n_rows
            n_evaluations = solution.n_kernel_evaluations - n_shared
            counted.append(replace(solution, n_kernel_evaluations=n_evaluations))
            seen[kept] = True
        is_there |= task.is_kept
    return counted
