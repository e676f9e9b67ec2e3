r"""The minimum enclosing ball by core sets: Tsang, Kwok & Cheung, JMLR 2005; MCS-06, section 3.

.. math:: \min R^2 + C \sum_i w_i \xi_i^2 \quad : \quad
          \|\varphi(x_i) - z\|^2 \le R^2 + \xi_i,

eq. (4) without constraints on the centre z, with weights and slacks; without slacks (C infinite)
every row is in the ball. With :math:`D_{ij} = \|\varphi(x_i) - \varphi(x_j)\|^2`, its dual,
eq. (5), is

.. math:: \max_{a} \tfrac{1}{2} a'Da - \sum_i \frac{a_i^2}{4 C w_i}
          \quad : \quad a \ge 0, \; \sum_i a_i = 1,

with :math:`z = \sum_i a_i \varphi(x_i)` and :math:`\xi_i = a_i / (2 C w_i)`. The excess of all
rows together, :math:`\sum_i w_i \xi_i`, is :math:`1/(2C)`. For any constant c this is the
minimum of :math:`d = a'Qa`,

.. math:: Q_{ij} = c - D_{ij}/2 + [i = j] / (4 C w_i),

and for c above the squared radius d is positive, so that
:math:`\min \tfrac{1}{2}\alpha'Q\alpha - \alpha'1`, :math:`\alpha \ge 0`, has the same solution up
to its scale: the problem of ``core_set.py`` with all labels +1, c for the bias and :math:`-D/2`
for the kernel. (Q may be indefinite, but for :math:`\alpha \ge 0` there is only one minimum, as d
is convex on the simplex, and Q is not indefinite on any two rows.) The kernel need not have a
constant diagonal, eq. (6), because :math:`-D/2` always has one.

1. The core set S starts with a random row, the row furthest from it, and the one furthest from
   that. Their distances give c: the radius is at most the largest distance from any one row, or
   from the origin.
2. Some rows outside the ball by more than the tolerance join S.
3. Solve the problem on S.
4. Check all rows when a sample has none that should join. Steps 2 to 4 are those of
   :mod:`hardmargin.solvers.core_sets.core_vector`.

For any a, :math:`c - d` is at most the optimum :math:`p^*`; and the best R for the centre z, which
needs the distances of all rows, gives an objective of at least :math:`p^*`. Training ends when the
two differ by at most :math:`((1 + \epsilon)^2 - 1)s`, where s is the size of the lower bound:
without slacks the radius is then known to :math:`1 + \epsilon`. (A very small C makes :math:`R^2`
and the bound negative; where the bound passes zero, s is half of the mean of the squared distances,
weighted by a.) The papers' rule (``stopping="radius"``) looks at one sample of 59 rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hardmargin.kernels import FloatArray, Kernel, Precision, Rows
from hardmargin.kernels.columns import KernelColumns
from hardmargin.kernels.diagonal import check_diagonal
from hardmargin.monitor import Monitor
from hardmargin.solvers.core_sets.core_set import CoreSet, IndexArray, Limits, Priced
from hardmargin.solvers.core_sets.core_vector import INNER_SHARE, grow
from hardmargin.solvers.core_sets.l2_svm import slack_of
from hardmargin.solvers.problem import Problem, Solution

#: c relative to an upper bound on the squared radius: d must not vanish.
_SPARE = 1.5

#: A smaller C is raised to this, in the unit of the distances.
_LEAST_C = 1e-100

#: No core set is solved more accurately than this, relative to g.
_LEAST_INNER_TOL = 1e-12

#: Units in the last place that a sum of kernel values may be wrong by.
_ROUNDING_UNITS = 16


@dataclass(frozen=True, kw_only=True)
class BallOptions:
    """How to run.

    Attributes
    ----------
    C : float
        Weight of the squared slacks; infinite for a ball without any.
    tol : float
        epsilon, relative to the radius.
    by_radius : bool
        Stop by the papers' rule.
    max_stages : int or None
        Limit on how often the core set grows.
    memory_bytes : int
        For Q on the core set, which limits its size.
    seed : int
        Of the random numbers that draw samples.
    """

    C: float = np.inf
    tol: float = 0.01
    by_radius: bool = False
    max_stages: int | None = None
    memory_bytes: int = 2**30
    seed: int = 0


@dataclass(frozen=True, kw_only=True)
class BallSolution(Solution):
    """A ball around rows: its centre is ``sum_i coefficients_i phi(x_i)``.

    The coefficients are positive and add up to one. The certificate is the relative gap between
    `lower_bound` and `objective`.

    Attributes
    ----------
    squared_radius : float
        Of the ball around this centre: the largest squared distance of a row if the ball is hard,
        else the best for this centre, which a very small C makes negative.
    furthest : float
        The largest squared distance of a row.
    squared_norm : float
        ``||centre||^2``.
    lower_bound, objective : float
        The optimum is between these two.
    rounding : float
        Possible error of squared distances.
    core_size : int
        Rows in the core set.
    n_stages, n_steps, n_kernel_evaluations, stop_reason
        As for :class:`~hardmargin.solvers.core_sets.l2_svm.L2Solution`.
    """

    squared_radius: float
    furthest: float
    squared_norm: float
    lower_bound: float
    objective: float
    rounding: float
    core_size: int
    n_steps: int


class HalfDistances(KernelColumns):
    """Minus half of the squared distances between rows, in place of the kernel.

    Parameters are those of :class:`~hardmargin.kernels.columns.KernelColumns`, and a mask of the
    rows that take part. Values are in units of about the largest k(x, x), so that their squares do
    not overflow.

    Examples
    --------
    >>> import numpy as np
    >>> from hardmargin.kernels import Kernel
    >>> from hardmargin.solvers.core_sets.enclosing_ball import HalfDistances
    >>> columns = HalfDistances(Kernel("linear"), np.array([[1.0], [2.0], [4.0]]))
    >>> columns.unit * columns.product([0], [-2.0])
    array([0., 1., 9.])
    """

    def __init__(
        self,
        kernel: Kernel,
        X: Rows,
        among: NDArray[np.bool_] | None = None,
        *,
        dtype: Precision = "float64",
        **parameters: Any,
    ) -> None:
        check_diagonal(kernel, X, among, dtype=dtype)
        super().__init__(kernel, X, dtype=dtype, **parameters)
        largest = float(np.abs(self.diagonal[np.isfinite(self.diagonal)]).max(initial=0.0))
        #: A power of two, so that dividing by it does not round.
        self.unit = float(np.exp2(np.floor(np.log2(largest)))) if largest > 0 else 1.0
        #: k(x, x) / 2 of every row.
        self.halves = self.diagonal / self.unit / 2
        self.diagonal = np.zeros(self.n_rows)

    def keep(
        self, rows: NDArray[np.int64], columns: NDArray[np.int64]
    ) -> tuple[NDArray[Any], NDArray[np.int64], NDArray[np.int64]]:
        """Keep kernel values of some rows, and look up their distances from some others."""
        values, slots, places = super().keep(rows, columns)
        block = values[np.ix_(slots, places)].astype(np.float64) / self.unit
        block -= self.halves[rows, np.newaxis]
        block -= self.halves[columns]
        return block.astype(self.dtype), np.arange(len(rows)), np.arange(len(columns))

    def product(
        self, columns: ArrayLike, coef: ArrayLike, rows: NDArray[np.int64] | None = None
    ) -> FloatArray:
        """``-D[rows][:, columns] @ coef / 2``; all rows by default."""
        columns = np.asarray(columns, dtype=np.int64)
        right = np.asarray(coef, dtype=np.float64)
        sums = super().product(columns, right, rows) / self.unit
        sums -= (self.halves if rows is None else self.halves[rows]) * right.sum()
        sums -= self.halves[columns] @ right
        return sums


def solve(
    problem: Problem[HalfDistances],
    options: BallOptions | None = None,
    monitor: Monitor | None = None,
) -> list[BallSolution]:
    """Find the ball around the rows of a problem's one machine.

    Parameters
    ----------
    problem : Problem of HalfDistances
        The kernel must be positive semi-definite, and all rows be on the positive side of the
        machine. Weights are those of the slacks; a weight of two equals having the row twice.
    options : BallOptions, optional
        How to run.
    monitor : Monitor, optional
        Receives every stage, with the largest error of g among the rows with a coefficient.

    Returns
    -------
    list of one BallSolution
    """
    run = options or BallOptions()
    columns, labels = problem.values, problem.labels_of(0)
    n_before = columns.n_evaluations
    random = np.random.default_rng(run.seed)
    rows = np.flatnonzero(labels)
    # C has the inverse unit of squared distances.
    C = max(float(run.C) * columns.unit, _LEAST_C)
    slack = slack_of(columns.n_rows, C, problem.weights, columns.dtype) / 4.0
    # 1. Rows to start with, and c.
    start, reach = _spread_rows(columns, rows, random)
    largest = 2 * float(np.abs(columns.halves[rows]).max())
    rounding = _ROUNDING_UNITS * float(np.finfo(columns.dtype).eps) * largest
    most = min(reach, 2 * float(columns.halves[rows].max()))
    # If all rows coincide, any c will do.
    c = _SPARE * most if most > rounding else max(largest, 1.0)
    goal = BallGoal(run.tol, bool(np.isinf(C)), c, c - max(most, 0.0), rounding)
    with columns.workspace(len(rows), run.memory_bytes) as matrix:
        core = CoreSet(columns, labels, slack, np.zeros((len(labels), 0)), c, matrix)
        # 2. to 4. (``core_vector.py``)
        reason, n_stages, priced = grow(
            core, goal, start, run.by_radius, run.max_stages, random, monitor or Monitor()
        )
        return [_solution(core, goal, priced, columns, n_before, n_stages, reason)]


def _spread_rows(
    columns: HalfDistances, rows: IndexArray, random: np.random.Generator
) -> tuple[IndexArray, float]:
    """Find rows to start with, and a squared distance within which one row has all others."""
    found = [int(random.choice(rows))]
    reach = []
    for _ in range(2):
        away = -2 * columns.product(found[-1:], [1.0])[rows]
        if not np.isfinite(away).all():
            raise ValueError("The kernel's values must be finite; some are NaN or infinite.")
        reach.append(float(away.max()))
        found.append(int(rows[away.argmax()]))
    return np.array(list(dict.fromkeys(found)), dtype=np.int64), min(reach)


@dataclass(frozen=True)
class BallGoal:
    """A ball that is known to be as small as the tolerance requires.

    Attributes
    ----------
    tol : float
        epsilon.
    is_hard : bool
        Whether there are no slacks.
    c : float
        The constant that makes d positive.
    least_d : float
        A lower bound on d.
    rounding : float
        Possible error of squared distances.
    """

    tol: float
    is_hard: bool
    c: float
    least_d: float
    rounding: float

    def dual(self, core: CoreSet) -> tuple[float, float, float]:
        """Return d, the slacks' part of d, and the gap that the tolerance allows.

        The gap is a squared distance.
        """
        mass = float(core.alpha.sum())
        d = float(core.alpha @ core.gradient) / mass**2
        slacks = float(core.alpha @ (core.slack[core.rows] * core.alpha)) / mass**2
        lower = self.c - d
        allowed = ((1.0 + self.tol) ** 2 - 1.0) * max(abs(lower), (lower + slacks) / 2)
        return d, slacks, allowed

    def limits(self, core: CoreSet) -> Limits:
        """Return what the tolerance allows: rows with a smaller g are outside by more than that."""
        # The objective, never above that of alpha = 0, keeps the sum of alpha below 2 / d.
        most = 4.0 / self.least_d
        if not core.alpha.any():
            return Limits(np.nan, INNER_SHARE * min(self.tol, 1.0), most)
        d, _, allowed = self.dual(core)
        least = (d - allowed / 2) * float(core.alpha.sum())
        if not d > 0:
            return Limits(least, INNER_SHARE, most)
        share = float(np.clip(allowed / (2 * d), _LEAST_INNER_TOL, 1.0))
        return Limits(least, INNER_SHARE * share, most)

    def squared_distances(self, core: CoreSet, priced: Priced) -> FloatArray:
        """Squared distances of all rows from the centre."""
        # Not computed from g, where large slacks would swamp them.
        halves = np.zeros(len(core.y))
        halves[priced.rows] = priced.scores / core.alpha.sum()
        mean_half = float(core.alpha @ halves[core.rows] / core.alpha.sum())
        return mean_half - 2 * halves[priced.rows]

    def best_radius(self, away: FloatArray, slack: FloatArray) -> tuple[float, float]:
        """Squared radius that is best for the centre, and the objective with it."""
        if self.is_hard:
            largest = float(away.max())
            return largest, largest
        order = np.argsort(-away, kind="stable")
        away, weight = away[order], 1.0 / (4.0 * slack[order])
        # r solves 1 = 2 sum_i w_i (away_i - r)_+: the largest solution over the k furthest rows.
        r = float(((np.cumsum(weight * away) - 0.5) / np.cumsum(weight)).max())
        return r, r + float(weight @ np.maximum(away - r, 0.0) ** 2)

    def is_certified(self, core: CoreSet, priced: Priced, n_outside: int | None = None) -> bool:
        """Whether the optimum is known as closely as required, or seems to be by a sample."""
        d, slacks, allowed = self.dual(core)
        slack = core.slack[priced.rows]
        if n_outside is None:
            away = self.squared_distances(core, priced)
        else:
            own = core.slack[core.rows]
            margins = np.concatenate([core.gradient - own * core.alpha, priced.margins])
            away = self.c + (d - slacks) - margins * (2 / float(core.alpha.sum()))
            # Each row of the sample stands for several.
            slack = np.concatenate([own, slack * len(slack) / n_outside])
        lower = self.c - d
        _, upper = self.best_radius(away, slack)
        return (self.is_hard and upper <= self.rounding) or max(upper, lower) - lower <= allowed


def _solution(
    core: CoreSet,
    goal: BallGoal,
    priced: Priced,
    columns: HalfDistances,
    n_before: int,
    n_stages: int,
    reason: str,
) -> BallSolution:
    """Return the ball so far; `n_before` kernel values had been evaluated before it."""
    away, unit = goal.squared_distances(core, priced), columns.unit
    squared_radius, upper = goal.best_radius(away, core.slack[priced.rows])
    lower = goal.c - goal.dual(core)[0]
    upper = max(upper, lower)
    if away.min() < -max(goal.rounding, 1e-6 * np.abs(away).max()):
        reason = "indefinite"
    if goal.is_hard:  # rounding may take the radius of a point below zero
        lower, upper = max(lower, 0.0), max(upper, 0.0)
    has_mass = core.alpha > 0
    order = np.argsort(core.rows[has_mass])
    support = core.rows[has_mass][order]
    a = core.alpha[has_mass][order] / core.alpha[has_mass].sum()
    full = np.zeros(columns.n_rows)
    full[priced.rows] = away
    scale = max(abs(upper), abs(lower))
    return BallSolution(
        rows=support.astype(np.int32),
        coefficients=a,
        squared_radius=unit * squared_radius,
        furthest=unit * float(away.max()),
        # a'Ka = a'diag(K) - a'Da / 2, which is the mean of the squared distances
        squared_norm=unit * float(a @ (2 * columns.halves - full)[support]),
        lower_bound=unit * lower,
        objective=unit * upper,
        certificate=(upper - lower) / scale if scale > goal.rounding else 0.0,
        rounding=unit * goal.rounding,
        core_size=len(core.rows),
        n_stages=n_stages,
        n_steps=core.n_steps,
        n_kernel_evaluations=columns.n_evaluations - n_before,
        stop_reason=reason,
    )
