r"""The minimum enclosing ball by core sets: Tsang, Kwok & Cheung, JMLR 2005; MCS-06, section 3.

.. math:: \min R^2 + C \sum_i w_i \xi_i^2 \quad : \quad
          \|\varphi(x_i) - z\|^2 \le R^2 + \xi_i,

eq. (4) without constraints on the centre z, with weights and slacks; without slacks (C infinite)
every row is in the ball. With :math:`D_{ij} = \|\varphi(x_i) - \varphi(x_j)\|^2`, its dual,
eq. (5), is

.. math:: \max_{a} \tfrac{1}{2} a'Da - \sum_i \frac{a_i^2}{4 C w_i}
          \quad : \quad a \ge 0, \; \sum_i a_i = 1,

:math:`z = \sum_i a_i \varphi(x_i)` and :math:`\xi_i = a_i / (2 C w_i)`: the excess of all rows
together, :math:`\sum_i w_i \xi_i`, is :math:`1/(2C)`. For any constant c this is the minimum of
:math:`d = a'Qa`,

.. math:: Q_{ij} = c - D_{ij}/2 + [i = j] / (4 C w_i),

and for c above the squared radius d is positive, so that
:math:`\min \tfrac{1}{2}\alpha'Q\alpha - \alpha'1`, :math:`\alpha \ge 0`, has the same solution up
to its scale: the problem of ``core_vector.py`` with all labels +1, c for the bias and
:math:`-D/2` for the kernel, which its core sets solve. (On all of space Q may be indefinite; among
:math:`\alpha \ge 0` there is one minimum nevertheless, as d is convex on the simplex, and no two
rows are indefinite together.) No diagonal has to be constant, eq. (6), as that of :math:`-D/2` is.

1. The core set S starts with a random row, the row furthest from it, and the one furthest from
   that. Their distances give c: no radius is larger than the largest distance from one row, nor
   than that from the origin.
2. Rows outside the ball by more than the tolerance join S, 3. the problem on S is solved, and
   4. all rows are looked at, as in :mod:`hardmargin.solvers.core_sets.core_vector`.

For any a, :math:`c - d` is at most the optimum :math:`p^*`; and the best R for the centre z, which
needs the distances of all rows, gives an objective of at least :math:`p^*`. Training ends when the
two differ by at most :math:`((1 + \epsilon)^2 - 1)s`, where s is the size of the lower bound:
without slacks the radius is then known to :math:`1 + \epsilon`. (A very small C makes :math:`R^2`
and the bound negative; where the bound passes zero, s is half of the mean of the squared distances,
weighted by a.) The papers' rule (``stopping="radius"``) looks at one sample of 59 rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hardmargin.kernels import FloatArray
from hardmargin.kernels.columns import KernelColumns
from hardmargin.solvers.core_sets.core_set import IndexArray
from hardmargin.solvers.core_sets.core_vector import INNER_SHARE, BallOptions, CoreSetMachine
from hardmargin.solvers.core_sets.directions import Directions
from hardmargin.solvers.solution import BallStop, EnclosingSolution

#: c relative to what the squared radius is at most: d must not vanish.
_SPARE = 1.5

#: A smaller C counts as this, in the unit of the distances.
_LEAST_C = 1e-100

#: Closer than this, relative to g, no core set is solved.
_LEAST_INNER_TOL = 1e-12

#: Units in the last place that a sum of kernel values may be wrong by.
_ROUNDING_UNITS = 16


class HalfDistances(KernelColumns):
    """Minus half of the squared distances between rows, in place of the kernel.

    Parameters are those of :class:`~hardmargin.kernels.columns.KernelColumns`. Values are in units
    of about the largest k(x, x), so that their squares do not overflow.

    Examples
    --------
    >>> import numpy as np
    >>> from hardmargin.kernels import Kernel
    >>> from hardmargin.solvers.core_sets.enclosing_ball import HalfDistances
    >>> columns = HalfDistances(Kernel("linear"), np.array([[1.0], [2.0], [4.0]]))
    >>> columns.unit * columns.product([0], [-2.0])
    array([0., 1., 9.])
    """

    def __init__(self, *args: Any, **parameters: Any) -> None:
        super().__init__(*args, **parameters)
        largest = float(np.abs(self.diagonal[np.isfinite(self.diagonal)]).max(initial=0.0))
        #: A power of two, which takes no digits from the values.
        self.unit = float(np.exp2(np.floor(np.log2(largest)))) if largest > 0 else 1.0
        #: k(x, x) / 2 of every row.
        self.halves = self.diagonal / self.unit / 2
        self.diagonal = np.zeros(self.n_rows)

    def located(
        self, rows: NDArray[np.int64], columns: NDArray[np.int64]
    ) -> tuple[NDArray[Any], NDArray[np.int64], NDArray[np.int64]]:
        """Values of some rows against some columns, as the kernel's are."""
        values, slots, places = super().located(rows, columns)
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


def solve_enclosing(
    columns: HalfDistances,
    weights: FloatArray | None = None,
    *,
    options: BallOptions | None = None,
    random: np.random.Generator | None = None,
    keep_going: Callable[[int, float], bool] | None = None,
) -> EnclosingSolution:
    """Find the ball.

    Parameters
    ----------
    columns : HalfDistances
        The kernel, positive semi-definite, between all rows.
    weights : (n,) array, optional
        Weights of the slacks; a weight of two equals the row twice, one of zero its absence.
    options : BallOptions, optional
        How to run: an infinite C has no slacks, and `tol`, as `eps`, is relative to the radius.
    random : numpy Generator, optional
        Draws the samples.
    keep_going : callable, optional
        Called with (stage, relative violation); the ball so far is returned when it says no.

    Returns
    -------
    EnclosingSolution
    """
    present = np.ones(columns.n_rows) if weights is None else (weights > 0).astype(np.float64)
    ball = _Ball(
        columns,
        present,
        weights,
        options or BallOptions(C=np.inf, tol=0.01),
        np.random.default_rng(0) if random is None else random,
        keep_going or (lambda stage, violation: True),
    )
    solution = ball.enclosing(ball.search())
    columns.give_back(ball.core.values)
    return solution


class _Ball(CoreSetMachine):
    """A ball in the making."""

    def __init__(
        self,
        columns: HalfDistances,
        present: FloatArray,
        weights: FloatArray | None,
        options: BallOptions,
        random: np.random.Generator,
        keep_going: Callable[[int, float], bool],
    ) -> None:
        # C has the inverse unit of squared distances.
        options = replace(options, C=max(float(options.C) * columns.unit, _LEAST_C))
        nowhere = Directions.none(columns.n_rows)
        super().__init__(columns, present, weights, nowhere, options, random, keep_going)
        self.slack /= 4.0
        self.tol = options.eps if options.stopping == "radius" else options.tol
        self.halves, self.unit = columns.halves, columns.unit
        self.start, furthest = self.spread_rows()
        most = min(furthest, 2 * float(self.halves[self.rows].max()))
        largest = 2 * float(np.abs(self.halves[self.rows]).max())
        self.rounding = _ROUNDING_UNITS * float(np.finfo(columns.dtype).eps) * largest
        # Rows that are all in one place leave c any value.
        self.bias = _SPARE * most if most > self.rounding else max(largest, 1.0)
        self.least_d = self.bias - max(most, 0.0)

    def spread_rows(self) -> tuple[IndexArray, float]:
        """Rows to start with, and a squared distance that one row has all others within."""
        found = [int(self.random.choice(self.rows))]
        reach = []
        for _ in range(2):
            away = -2 * self.columns.product(found[-1:], [1.0])[self.rows]
            if not np.isfinite(away).all():
                raise ValueError("The kernel's values must be finite; some are NaN or infinite.")
            reach.append(float(away.max()))
            found.append(int(self.rows[away.argmax()]))
        return np.array(list(dict.fromkeys(found)), dtype=np.int64), min(reach)

    def starting_rows(self) -> IndexArray:
        """Return a random row, the row furthest from it, and the one furthest from that."""
        return self.start

    # --- pricing ---------------------------------------------------------------------------------

    def dual(self) -> tuple[float, float, float]:
        """Return the sum of alpha, d, and the part of d that is the slacks'."""
        core = self.core
        mass = float(core.alpha.sum())
        slacks = float(core.alpha @ (self.slack[core.rows] * core.alpha)) / mass**2
        return mass, float(core.alpha @ core.gradient) / mass**2, slacks

    def open_distance(self) -> float:
        """Squared distance that the tolerance leaves open."""
        _, d, slacks = self.dual()
        lower = self.bias - d
        return ((1.0 + self.tol) ** 2 - 1.0) * max(abs(lower), (lower + slacks) / 2)

    def least_gradient(self) -> float:
        """Rows with less of it are outside the ball by more than the tolerance."""
        mass, d, _ = self.dual()
        return (d - self.open_distance() / 2) * mass

    def inner_tol(self) -> float:
        """Return what the core set's own solution may leave open, relative to g."""
        if not self.core.alpha.any():
            return INNER_SHARE * min(self.tol, 1.0)
        _, d, _ = self.dual()
        if not d > 0:
            return INNER_SHARE
        share = self.open_distance() / (2 * d)
        return INNER_SHARE * float(np.clip(share, _LEAST_INNER_TOL, 1.0))

    def largest_mass(self) -> float:
        """Bound what the sum of alpha gets to if the kernel is positive semi-definite."""
        # The objective, never above that of alpha = 0, keeps it below 2 / d.
        return 4.0 / self.least_d

    def squared_distances(self, g: FloatArray) -> FloatArray:
        """From the centre, of rows whose g, less what is their slack's, is given."""
        mass, d, slacks = self.dual()
        away: FloatArray = self.bias + (d - slacks) - g * (2 / mass)
        return away

    def all_squared_distances(self) -> FloatArray:
        """From the centre, of all rows, after a full pass."""
        # Not from g, in which large slacks would drown them.
        halves = np.zeros(self.columns.n_rows)
        halves[self.rows] = self.scores / self.core.alpha.sum()
        mean_half = float(self.core.alpha @ halves[self.core.rows] / self.core.alpha.sum())
        away: FloatArray = mean_half - 2 * halves[self.rows]
        return away

    def best_radius(self, away: FloatArray, slack: FloatArray) -> tuple[float, float]:
        """Squared radius that is best for the centre, and the objective with it."""
        if np.isinf(self.options.C):
            largest = float(away.max())
            return largest, largest
        order = np.argsort(-away, kind="stable")
        away, weight = away[order], 1.0 / (4.0 * slack[order])
        # 1 = 2 sum_i w_i (away_i - r)_+, which is the largest such sum over any of the rows.
        r = float(((np.cumsum(weight * away) - 0.5) / np.cumsum(weight)).max())
        return r, r + float(weight @ np.maximum(away - r, 0.0) ** 2)

    def bounds(self, rows: IndexArray, g: FloatArray) -> tuple[float, float]:
        """Bounds of the optimum from g of all rows, or estimates from g of some outside."""
        core = self.core
        if len(rows) == len(self.rows):
            away, slack = self.all_squared_distances(), self.slack[rows]
        else:
            n_outside = len(self.rows) - len(core.rows)
            if self.candidates is not None:
                n_outside = len(self.candidates)
            own_slack = self.slack[core.rows]
            own = core.gradient - own_slack * core.alpha
            away = self.squared_distances(np.concatenate([own, g]))
            # Each row of the sample stands for several.
            slack = np.concatenate([own_slack, self.slack[rows] * len(rows) / n_outside])
        _, d, _ = self.dual()
        lower = self.bias - d
        _, upper = self.best_radius(away, slack)
        return lower, max(upper, lower)

    def certified(self, bounds: tuple[float, float]) -> bool:
        """Whether the optimum is known as closely as the tolerance asks for."""
        lower, upper = bounds
        is_point = np.isinf(self.options.C) and upper <= self.rounding
        return is_point or upper - lower <= self.open_distance()

    def _constant_diagonal(self) -> float:
        """Every row is at distance zero from itself."""
        return 0.0

    # --- the result ------------------------------------------------------------------------------

    def enclosing(self, reason: BallStop) -> EnclosingSolution:
        """Return the ball so far."""
        self.settle()
        reason = self.proven(reason)
        away = self.all_squared_distances()
        if away.min() < -max(self.rounding, 1e-6 * np.abs(away).max()):
            reason = "indefinite"
        lower, upper = self.bounds(self.rows, self.g)
        if np.isinf(self.options.C):  # rounding may take the radius of a point below zero
            lower, upper = max(lower, 0.0), max(upper, 0.0)
        squared_radius, _ = self.best_radius(away, self.slack[self.rows])
        support, alpha = self.support()
        order = np.argsort(support)
        support, a = support[order], alpha[order] / alpha.sum()
        full = np.zeros(self.columns.n_rows)
        full[self.rows] = away
        return EnclosingSolution(
            rows=support.astype(np.int32),
            coefficients=a,
            squared_radius=self.unit * squared_radius,
            furthest=self.unit * float(away.max()),
            # a'Ka = a'diag(K) - a'Da / 2, which is the mean of the squared distances
            squared_norm=self.unit * float(a @ (2 * self.halves - full)[support]),
            lower_bound=self.unit * lower,
            objective=self.unit * upper,
            rounding=self.unit * self.rounding,
            core_size=len(self.core.rows),
            n_stages=self.n_stages,
            n_steps=self.n_steps,
            n_kernel_evaluations=self.columns.n_evaluations - self.n_evaluations_before,
            stop_reason=reason,
        )
