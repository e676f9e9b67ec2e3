r"""An SVM at one point of its regularisation path, and the changes that lead along it.

With :math:`c_i = \alpha_i y_i` and :math:`f = Kc + b`, an SVM is optimal for the upper bounds
:math:`u_i = C w_i` where :math:`\sum c_i = 0`, and every row is

- *above*: :math:`\alpha_i = 0` and :math:`y_i f_i \ge 1`,
- *below*: :math:`\alpha_i = u_i` and :math:`y_i f_i \le 1`, or
- in the *elbow* E: :math:`0 \le \alpha_i \le u_i` and :math:`y_i f_i = 1`.

The start at C = 0 is found by the same changes: there all rows of the larger class are on the
margin, and how they share the weight of the smaller class is a problem with bounds w, the margin 0
in place of 1, and a sum that falls from its excess to zero. An SVM without bias has b = 0 and no
condition on the sum.

Rows that depend on others in feature space would make elbows singular. Those in the affine hull of
the elbow are never added to it: they change places with one of its rows, which leaves f unchanged.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hardmargin.kernels import FloatArray
from hardmargin.monitor import Monitor
from hardmargin.solvers.regularization_path.elbow import Elbow

#: Squared distance from the affine hull of the elbow, relative to the kernel's scale, below which a
#: row counts as a part of it.
_DEPENDENT = 1e-12

#: How far multipliers may be beyond their bounds, relative to the bounds.
_BEYOND = 1e-9

#: Changes of bias and multipliers, in units of the kernel, that only rounding causes.
_DIVERGED = 1e100

_EPS = float(np.finfo(np.float64).eps)


class Stuck(Exception):
    """Rounding blocks the way, or causes too large a violation."""


class Direction(NamedTuple):
    """Rates of change along the way: of the bias, of c on the elbow, and of f on all rows."""

    bias: float
    elbow: FloatArray
    f: FloatArray


class Snapshot(NamedTuple):
    """Everything needed to restore a state."""

    alpha: FloatArray
    side: FloatArray
    bias: float
    level: float
    elbow: NDArray[np.intp]


@dataclass(frozen=True)
class Conditions:
    """The conditions that a solution has to satisfy; by default those of the regularisation path.

    Attributes
    ----------
    K : (n, n) array
        Kernel matrix, its typical value one.
    y, w : (n,) arrays
        Labels +1 and -1, 0 for rows that are only scored; weights of the slacks, their mean one.
    margin : float
        ``y f`` of rows on the margin.
    growth, total_rate : float
        How fast C and the sum of c grow along the way.
    offset : (n,) array or float
        The part of f besides the expansion and the bias.
    tolerance : float
        How far margins may be short, and multipliers beyond their bounds, relative to these.
    has_bias : bool
        Whether there is a bias; without one, c may add up to anything.
    """

    K: FloatArray
    y: FloatArray
    w: FloatArray
    margin: float = 1.0
    growth: float = 1.0
    total_rate: float = 0.0
    offset: FloatArray | float = 0.0
    tolerance: float = 1e-10
    has_bias: bool = True


class MarginState:
    """A solution, and which rows are above, below and on the margin.

    Parameters
    ----------
    conditions : Conditions
        What it has to satisfy.
    side : (n,) array
        +1 above, -1 below, 0 in the elbow or for rows that are only scored.
    level, bias, total : float
        C (the bounds are ``level * w``), b, and what c has to add up to.
    alpha, elbow : (n,) array and Elbow, optional
        The rows on the margin and their multipliers; none by default.
    """

    def __init__(
        self,
        conditions: Conditions,
        side: FloatArray,
        level: float,
        bias: float = 0.0,
        total: float = 0.0,
        alpha: FloatArray | None = None,
        elbow: Elbow | None = None,
    ) -> None:
        self.conditions = conditions
        self.K, self.y, self.w = conditions.K, conditions.y, conditions.w
        self.side, self.level, self.b, self.total = side, level, bias, total
        self.alpha = np.zeros(len(side)) if alpha is None else alpha
        self.elbow = Elbow(self.K, conditions.has_bias) if elbow is None else elbow
        self.refresh()

    @property
    def is_below(self) -> NDArray[np.bool_]:
        """Whether each row is at its upper bound."""
        return self.side < 0

    def coefficients(self) -> FloatArray:
        """Return c, the multipliers times the labels."""
        c = np.where(self.is_below, self.level * self.w * self.y, 0.0)
        rows = self.elbow.rows
        c[rows] = self.alpha[rows] * self.y[rows]
        return c

    def slack(self) -> FloatArray:
        """How far each row is from changing its side; negative where it should have done so."""
        return self.side * (self.y * self.f - self.conditions.margin)

    def off_margin(self) -> float:
        """How far the elbow is from the margin."""
        rows = self.elbow.rows
        return float(np.abs(self.y[rows] * self.f[rows] - self.conditions.margin).max(initial=0.0))

    def bias_limits(self) -> tuple[FloatArray, FloatArray]:
        """Limits that each row sets on b, from below and from above; infinite if there is none."""
        limit = self.b + self.conditions.margin * self.y - self.f
        side = self.side * self.y
        return np.where(side > 0, limit, -np.inf), np.where(side < 0, limit, np.inf)

    def violation(self) -> float:
        """Return the largest violation of the optimality conditions.

        The conditions are on the margins; the sum of c, relative to that of the multipliers; and
        the bounds, relative to these, which rows may exceed by 1e-9.
        """
        rows, below = self.elbow.rows, self.is_below
        upper, alpha = self.level * self.w[rows], self.alpha[rows]
        total = self.level * float(self.w[below] @ self.y[below]) + float(alpha @ self.y[rows])
        size = self.level * float(self.w[below].sum()) + float(np.abs(alpha).sum())
        beyond = (np.maximum(-alpha, alpha - upper) / np.maximum(upper, 1e-300)).max(initial=0.0)
        parts = (
            self.off_margin(),
            -float(self.slack().min()),
            abs(total - self.total) / (size or 1.0) if self.conditions.has_bias else 0.0,
            float(beyond) if beyond > _BEYOND else 0.0,
        )
        # Rounding may lead to NaN or infinity.
        return max(parts) if math.isfinite(sum(parts)) else math.inf

    def refresh(self) -> None:
        """Recompute f and the pull, as rounding accumulates over many updates."""
        self.f = product(self.K, self.coefficients()) + self.b + self.conditions.offset
        self.pull, self.pull_total = np.zeros(len(self.y)), 0.0
        if self.conditions.growth:
            below = self.is_below
            self.pull = product(self.K, np.where(below, self.w * self.y, 0.0))
            self.pull_total = float((self.w * self.y)[below].sum())

    def refresh_all(self) -> bool:
        """Recompute the inverse of the elbow, too; False where that fails."""
        self.refresh()
        return self.elbow.size == 0 or self.elbow.refresh()

    def snapshot(self) -> Snapshot:
        """Return what is needed to restore this state."""
        rows = self.elbow.rows.copy()
        return Snapshot(self.alpha.copy(), self.side.copy(), self.b, self.level, rows)

    def back_to(self, snapshot: Snapshot) -> MarginState | None:
        """Return an earlier state; None where its elbow cannot be inverted."""
        alpha, side, bias, level, rows = snapshot
        elbow = Elbow.of(self.K, rows, self.conditions.has_bias)
        if elbow is None:
            return None
        return MarginState(
            self.conditions, side.copy(), level, bias, self.total, alpha.copy(), elbow
        )

    def rescaled(self, ratio: float, monitor: Monitor) -> MarginState:
        """Return a copy with another C and multipliers in proportion, and a rebuilt elbow.

        Raises Stopped if time runs out.
        """
        state = copy.copy(self)
        state.level, state.alpha = ratio * self.level, ratio * self.alpha
        state.side, state.f, state.pull = self.side.copy(), self.f.copy(), self.pull.copy()
        state.elbow = Elbow(self.K, self.conditions.has_bias)
        for row in self.elbow.rows:
            monitor.check()
            state._admit(int(row), -1.0, *state._reach(int(row)))
        state.refresh()
        return state

    def require_total(self, total: float) -> None:
        """Set what c has to add up to."""
        self.total = total

    def shift(self, change: float) -> None:
        """Change the bias alone."""
        self.b += change
        self.f += change

    def move(self, d: Direction, step: float) -> None:
        """Go along a direction.

        Along the regularisation path, f is evaluated from the new multipliers. Adding up its rates,
        which are zero on the elbow, would keep f on the margin there, whatever rounding has done to
        the multipliers.
        """
        rows, conditions = self.elbow.rows, self.conditions
        self.alpha[rows] += step * d.elbow * self.y[rows]
        self.b += step * d.bias
        self.level += step * conditions.growth
        self.total += step * conditions.total_rate
        if conditions.growth:
            own = self.elbow.expand(self.alpha[rows] * self.y[rows])
            self.f = self.level * self.pull + own + (self.b + conditions.offset)
        else:
            self.f += step * d.f

    def change_place(self, row: int, before_exchange: Callable[[], None] | None = None) -> None:
        """Let a row leave the elbow for its nearer bound, or enter the elbow."""
        if self.side[row] == 0:
            self.leave(row)
        else:
            self.enter(row, before_exchange)

    def leave(self, row: int) -> None:
        """Take a row out of the elbow, at the bound that it is nearer to."""
        upper = self.level * self.w[row]
        to_upper = self.alpha[row] > upper / 2
        change = (upper if to_upper else 0.0) - self.alpha[row]
        if change:
            self.f += change * self.y[row] * self.K[row]
        self.elbow.remove(row)
        self._put(row, -1.0 if to_upper else 1.0)

    def enter(self, row: int, before_exchange: Callable[[], None] | None = None) -> None:
        """Put a row into the elbow, from the bound that it is at.

        A row that depends on the elbow takes over multipliers from others; `before_exchange` is
        called before that.
        """
        sign = float(self.side[row])  # its multiplier goes up from zero, or down from its bound
        if sign == 0:
            raise Stuck
        z, distance = self._reach(row)
        if before_exchange is not None and not distance > _DEPENDENT:
            before_exchange()
        self._put(row, 0.0)
        self.alpha[row] = 0.0 if sign > 0 else self.level * self.w[row]
        self._admit(row, sign, z, distance)

    def correct(self) -> None:
        """Put the elbow back on the margin, where rounding has moved it.

        Raises Stuck, and changes nothing, where that would lead beyond bounds.
        """
        if self.elbow.size == 0:
            return
        rows = self.elbow.rows
        upper = self.level * self.w[rows]
        before = self.alpha[rows], self.f.copy(), self.b
        try:
            for _ in range(2):
                self._step_to_margin(*self._to_margin(), 1.0)
            beyond = np.maximum(-self.alpha[rows], self.alpha[rows] - upper)
            # Only a row that has just entered may be beyond its bound, by rounding.
            if not (beyond <= _BEYOND * upper).all():
                raise Stuck
        except Stuck:
            self.alpha[rows], self.f, self.b = before
            raise

    def towards_margin(self) -> int | None:
        """Go to where the elbow is on the margin; return the row whose bound stops that, if any."""
        db, dc = self._to_margin()
        rows = self.elbow.rows
        step, first = self._room(rows, dc * self.y[rows])
        self._step_to_margin(db, dc, min(step, 1.0))
        return first if step < 1.0 else None

    def _to_margin(self) -> tuple[float, FloatArray]:
        """How b and c have to change to put the elbow on the margin.

        Raises Stuck where rounding has spoiled the inverse: steps would lead further and further
        away.
        """
        rows = self.elbow.rows
        total = self.total - float(self.coefficients().sum())
        db, dc = self.elbow.solve(total, self.conditions.margin * self.y[rows] - self.f[rows])
        if not max(abs(db), np.abs(dc).max(initial=0.0)) < _DIVERGED:
            raise Stuck
        return db, dc

    def _step_to_margin(self, db: float, dc: FloatArray, step: float) -> None:
        rows = self.elbow.rows
        self.alpha[rows] += step * dc * self.y[rows]
        self.f += step * (self.elbow.expand(dc) + db)
        self.b += step * db

    def _reach(self, row: int) -> tuple[FloatArray, float]:
        """Return :meth:`Elbow.reach` of a row; recompute the inverse if rounding spoils it."""
        z, distance = self.elbow.reach(row)
        if distance < -_DEPENDENT and self.elbow.refresh():  # only rounding makes it negative
            z, distance = self.elbow.reach(row)
        return z, distance

    def _admit(self, row: int, sign: float, z: FloatArray, distance: float) -> None:
        """Add a row to the elbow; one that depends on the elbow takes the place of others."""
        while not distance > _DEPENDENT:
            # Along this direction f stays the same, except for rounding.
            rows = self.elbow.rows
            change = -sign * self.y[row] * z[1:]
            step, first = self._room(rows, change * self.y[rows])
            own_room = self.level * self.w[row] - self.alpha[row] if sign > 0 else self.alpha[row]
            step = min(step, own_room)
            self.alpha[rows] += step * change * self.y[rows]
            self.alpha[row] += sign * step
            self.b -= step * sign * self.y[row] * z[0]
            self.f += step * (self.elbow.expand(change) + sign * self.y[row] * (self.K[row] - z[0]))
            if step == own_room:
                self._put(row, -sign)
                return
            self.leave(first)
            z, distance = self.elbow.reach(row)
        self.elbow.add(row, z, distance)

    def _room(self, rows: NDArray[np.intp], rates: FloatArray) -> tuple[float, int]:
        """How far multipliers can move before the first reaches a bound, and which does."""
        upper = self.level * self.w[rows]
        slack = np.where(rates < 0, self.alpha[rows], upper - self.alpha[rows])
        speed = np.abs(rates)
        moving = speed > 1e-100  # times at lower speeds would overflow
        if not moving.any():
            return np.inf, -1
        times = np.full(len(rows), np.inf)
        # Exceeding a bound by rounding alone does not count.
        np.divide(slack + _EPS * upper, speed, out=times, where=moving)
        first = int(times.argmin())
        return max(float(slack[first] / speed[first]), 0.0), int(rows[first])

    def _put(self, row: int, side: float) -> None:
        """Record where a row is; rows below pull on f as their bounds grow."""
        if self.conditions.growth:
            change = (side < 0) - float(self.side[row] < 0)
            if change:
                pull = change * self.w[row] * self.y[row]
                self.pull += pull * self.K[row]
                self.pull_total += pull
        self.side[row] = side


def product(K: FloatArray, c: FloatArray) -> FloatArray:
    """Multiply with a vector that may be sparse."""
    used = np.flatnonzero(c)
    if 2 * len(used) > len(c):
        return np.asarray(K @ c)
    return np.asarray(c[used] @ K[used])
