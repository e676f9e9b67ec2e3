r"""An SVM at one point of its regularisation path, and the moves that lead along it.

With :math:`c_i = \alpha_i y_i` and :math:`f = Kc + b`, an SVM is optimal for the upper bounds
:math:`u_i = C w_i` where :math:`\sum c_i = 0`, and every row is

- *above*: :math:`\alpha_i = 0` and :math:`y_i f_i \ge 1`,
- *below*: :math:`\alpha_i = u_i` and :math:`y_i f_i \le 1`, or
- in the *elbow* E: :math:`0 \le \alpha_i \le u_i` and :math:`y_i f_i = 1`.

While C grows and no row changes its place, all of this is linear in C: rows below pull with
:math:`h = \sum_{below} w_i y_i K_i`, and the elbow answers with

.. math:: K_{EE}\,\dot c_E + \dot b = -h_E, \qquad \sum \dot c_E = -\sum_{below} w_i y_i.

The path begins at C = 0 with the same moves: there the larger class is all elbow, and how it
shares the sum of the smaller class is a problem with bounds w, the margin 0 in place of 1, and a
sum that falls from its excess to zero.

Ties and rows that depend on others in feature space make elbows singular and steps of no length.
Rows in the affine hull of the elbow are never added to it: they change places with one of its rows,
which leaves f alone. Steps are chosen by Harris's rule: among the events within the tolerance, the
one of the fastest row.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hardmargin.kernels import FloatArray
from hardmargin.solvers.regularization_path.elbow import Elbow

#: What margins may be short of, and multipliers relative to their bound: along the path, and at its
#: start, whose errors grow with C.
TOLERANCE, START_TOLERANCE = 1e-10, 1e-14

#: Squared distance from the affine hull of the elbow, relative to the kernel's scale, below which a
#: row counts as a part of it.
_DEPENDENT = 1e-12

#: What multipliers may be beyond their bounds, relative to these.
_BEYOND = 1e-9

_EPS = float(np.finfo(np.float64).eps)


class Stuck(Exception):
    """Rounding leaves no way on."""


class Inexact(Stuck):
    """Rounding leaves a violation that is larger than it should be."""


@dataclass(frozen=True)
class Direction:
    """Rates of change along the path: of the bias, of c on the elbow, and of f on all rows."""

    intercept: float
    elbow: FloatArray
    f: FloatArray
    noise: float


class MarginState:
    """A solution, and which rows are above, below and on the margin.

    Parameters
    ----------
    K : (n, n) array
        Kernel matrix, its typical value one.
    labels : (n,) array
        +1 and -1, 0 for rows that are scored only.
    weights : (n,) array
        Weights of the slacks, their mean one.
    offset : (n,) array or float
        What f has beside the expansion and the bias.
    """

    def __init__(
        self,
        K: FloatArray,
        labels: FloatArray,
        weights: FloatArray,
        offset: FloatArray | float = 0.0,
    ) -> None:
        self.K, self.y, self.w, self.offset = K, labels, weights, offset
        self.on_exchange: Callable[[int, float], None] | None = None
        self.elbow = Elbow(K)
        self.alpha = np.zeros(len(labels))  # of the rows in the elbow
        self.side = np.zeros(len(labels))  # +1 above, -1 below, 0 in the elbow or not of interest
        self.f = np.zeros(len(labels))
        self.b = 0.0
        self.level, self.growth = 1.0, 0.0  # bounds are level * w, and grow by growth * w
        self.tolerance = START_TOLERANCE
        self.margin = 0.0
        self.total, self.total_rate = 0.0, 0.0  # what c is to add up to, and how fast that changes
        self.pull, self.pull_total = np.zeros(len(labels)), 0.0

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
        """How far each row is from changing its side; negative where it should have."""
        return self.side * (self.y * self.f - self.margin)

    def off_margin(self) -> float:
        """How far the elbow is from the margin."""
        rows = self.elbow.rows
        return float(np.abs(self.y[rows] * self.f[rows] - self.margin).max(initial=0.0))

    def violation(self) -> float:
        """Return the largest violation of the optimality conditions.

        Of margins; of the sum of c, relative to that of the multipliers; and of bounds, relative
        to these, where it is more than the 1e-9 that rows may be beyond them.
        """
        rows, below = self.elbow.rows, self.is_below
        upper, alpha = self.level * self.w[rows], self.alpha[rows]
        total = self.level * float(self.w[below] @ self.y[below]) + float(alpha @ self.y[rows])
        size = self.level * float(self.w[below].sum()) + float(np.abs(alpha).sum())
        beyond = (np.maximum(-alpha, alpha - upper) / np.maximum(upper, 1e-300)).max(initial=0.0)
        parts = (
            self.off_margin(),
            -float(self.slack().min()),
            abs(total - self.total) / (size or 1.0),
            float(beyond) if beyond > _BEYOND else 0.0,
        )
        # Rounding may leave no number at all.
        return max(parts) if math.isfinite(sum(parts)) else math.inf

    def refresh(self) -> None:
        """Evaluate f and the pull anew: many updates leave rounding behind."""
        self.f = product(self.K, self.coefficients()) + self.b + self.offset
        below = self.is_below
        if self.growth:
            self.pull = product(self.K, np.where(below, self.w * self.y, 0.0))
            self.pull_total = float((self.w * self.y)[below].sum())

    def copy_of(self, other: MarginState) -> None:
        """Become the same solution as another, whose elbow is not shared but made anew."""
        self.alpha, self.side, self.f = other.alpha.copy(), other.side.copy(), other.f.copy()
        self.b, self.level, self.total = other.b, other.level, other.total
        self.pull, self.pull_total = other.pull.copy(), other.pull_total
        self.elbow = other.elbow.copy()

    def direction(self) -> Direction:
        """How the solution moves while every row keeps its place; the elbow must not be empty."""
        rows, elbow = self.elbow.rows, self.elbow
        total = self.total_rate - self.pull_total
        db, dc = elbow.solve(total, -self.pull[rows])
        df = elbow.expand(dc) + self.pull + db
        noise = 64 * _EPS * (np.abs(self.pull).max() + abs(db) + np.abs(dc).sum())
        for _ in range(3):
            residual = df[rows]
            if np.abs(residual).max() <= noise and abs(dc.sum() - total) <= noise:
                break
            more_b, more_c = elbow.solve(total - dc.sum(), -residual)
            db, dc = db + more_b, dc + more_c
            df = elbow.expand(dc) + self.pull + db
        df[rows] = 0.0
        return Direction(db, dc, df, float(noise))

    def next_event(self, d: Direction, room: float) -> tuple[float, int]:
        """Return how far it is to the next event, and its row; the room and -1 if none comes."""
        rows = self.elbow.rows
        w, alpha = self.w[rows], self.alpha[rows]
        rates = d.elbow * self.y[rows]
        # A kind of event each: rows reach the margin; elbow rows reach zero, or their upper bound.
        slack = np.concatenate([self.slack(), alpha, self.level * w - alpha])
        speed = np.concatenate([-self.side * self.y * d.f, -rates, rates - self.growth * w])
        least = np.concatenate([np.full(len(self.y), d.noise), 64 * _EPS * w, 64 * _EPS * w])
        unit = np.concatenate([np.full(len(self.y), 1.0 / (self.level or 1.0)), w, w])
        moving = np.flatnonzero(speed > least)
        slack, speed, unit = slack[moving], speed[moving], unit[moving]
        slack = np.maximum(slack, 0.0)
        times = slack / speed
        limit = ((slack + self.tolerance * self.level * unit) / speed).min(initial=np.inf)
        if times.min(initial=np.inf) >= room:
            return room, -1
        near = np.flatnonzero(times <= limit)
        chosen = near[(speed[near] / unit[near]).argmax()]
        index = moving[chosen] - len(self.y)
        row = moving[chosen] if index < 0 else rows[index % len(rows)]
        return min(float(times[chosen]), room), int(row)

    def move(self, d: Direction, step: float) -> None:
        """Go along a direction.

        Along the path f is evaluated from where that leads. To add up rates that are zero on the
        elbow would keep f there on the margin, whatever rounding has done to the multipliers.
        """
        rows = self.elbow.rows
        self.alpha[rows] += step * d.elbow * self.y[rows]
        self.b += step * d.intercept
        self.level += step * self.growth
        self.total += step * self.total_rate
        if self.growth:
            own = self.elbow.expand(self.alpha[rows] * self.y[rows])
            self.f = self.level * self.pull + own + (self.b + self.offset)
        else:
            self.f += step * d.f

    def change_place(self, row: int) -> None:
        """Have a row leave the elbow to the nearer bound, or enter it."""
        if self.side[row] == 0:
            self.leave(row)
        else:
            self.enter(row)

    def leave(self, row: int) -> None:
        """Take a row out of the elbow, at the bound that it is nearer to."""
        upper = self.level * self.w[row]
        to_upper = self.alpha[row] > upper / 2
        change = (upper if to_upper else 0.0) - self.alpha[row]
        if change:
            self.f += change * self.y[row] * self.K[row]
        self.elbow.remove(int(np.flatnonzero(self.elbow.rows == row)[0]))
        self._put(row, -1.0 if to_upper else 1.0)

    def enter(self, row: int) -> None:
        """Put a row into the elbow, from the bound that it is at."""
        sign = float(self.side[row])  # its multiplier goes up from zero, or down from its bound
        if sign == 0:
            raise Stuck
        self._put(row, 0.0)
        self.alpha[row] = 0.0 if sign > 0 else self.level * self.w[row]
        self._admit(row, sign)

    def rebuild(self) -> None:
        """Make the elbow anew of the rows between their bounds, and evaluate everything."""
        rows = self.elbow.rows.copy()
        self.elbow = Elbow(self.K)
        for row in rows:
            self._admit(int(row), -1.0)
        self.refresh()

    def _admit(self, row: int, sign: float) -> None:
        """Add a row to the elbow; one that depends on the elbow takes the place of others."""
        z, distance = self.elbow.reach(row)
        if distance < -_DEPENDENT and self.elbow.refresh():  # only rounding makes it negative
            z, distance = self.elbow.reach(row)
        if self.on_exchange is not None and not distance > _DEPENDENT:
            self.on_exchange(row, sign)
        while not distance > _DEPENDENT:
            # Along this direction f stays as it is, but for rounding.
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

    def correct(self) -> None:
        """Put the elbow back on the margin, where rounding has moved it."""
        if self.elbow.size == 0:
            return
        rows = self.elbow.rows
        upper = self.level * self.w[rows]
        before = self.alpha[rows], self.f.copy(), self.b
        for _ in range(2):
            self._step_to_margin(*self._to_margin(), 1.0)
        beyond = np.maximum(-self.alpha[rows], self.alpha[rows] - upper)
        # A row that has just come in may be beyond its bound by rounding, no other.
        if not (beyond <= _BEYOND * upper).all():
            self.alpha[rows], self.f, self.b = before
            raise Inexact

    def optimise(self, max_steps: int) -> None:
        """Solve the problem at this level from any feasible start, by an active set.

        Where rounding keeps it from an end, less will do as the steps pass.
        """
        for step in range(max_steps):
            if self.elbow.size == 0 and not self.seed_elbow():
                return
            blocked = self._towards_margin()
            if blocked is not None:
                self.leave(blocked)
                continue
            slack = self.slack()
            worst = int(slack.argmin())
            if slack[worst] >= -self.tolerance * 10.0 ** (4 * step // max_steps - 1):
                return
            self.enter(worst)
        raise Stuck

    def seed_elbow(self) -> bool:
        """Put a row into an empty elbow; False if a bias suits all rows without one."""
        lower, upper = self.bias_limits()
        least, largest = lower.max(initial=-np.inf), upper.min(initial=np.inf)
        if least <= largest:
            self.shift(min(max(self.b, least), largest) - self.b)
            return False
        row = int(lower.argmax())
        self.shift(float(least) - self.b)
        self.enter(row)
        return True

    def bias_limits(self) -> tuple[FloatArray, FloatArray]:
        """Limits that each row sets to b, from below and from above; infinite where none."""
        limit = self.b + self.margin * self.y - self.f
        side = self.side * self.y
        return np.where(side > 0, limit, -np.inf), np.where(side < 0, limit, np.inf)

    def shift(self, change: float) -> None:
        """Change the bias alone."""
        self.b += change
        self.f += change

    def _towards_margin(self) -> int | None:
        """Go to where the elbow is on the margin; return the row whose bound ends it earlier."""
        db, dc = self._to_margin()
        rows = self.elbow.rows
        step, first = self._room(rows, dc * self.y[rows])
        self._step_to_margin(db, dc, min(step, 1.0))
        return first if step < 1.0 else None

    def _to_margin(self) -> tuple[float, FloatArray]:
        """How b and c have to change to put the elbow on the margin."""
        rows = self.elbow.rows
        total = self.total - float(self.coefficients().sum())
        return self.elbow.solve(total, self.margin * self.y[rows] - self.f[rows])

    def _step_to_margin(self, db: float, dc: FloatArray, step: float) -> None:
        rows = self.elbow.rows
        self.alpha[rows] += step * dc * self.y[rows]
        self.f += step * (self.elbow.expand(dc) + db)
        self.b += step * db

    def _room(self, rows: NDArray[np.intp], rates: FloatArray) -> tuple[float, int]:
        """How far multipliers can move before the first reaches a bound, and which does."""
        upper = self.level * self.w[rows]
        slack = np.where(rates < 0, self.alpha[rows], upper - self.alpha[rows])
        speed = np.abs(rates)
        moving = speed > 1e-100  # times of less would overflow
        if not moving.any():
            return np.inf, -1
        times = np.full(len(rows), np.inf)
        # Bounds that are hardly overstepped do not count.
        np.divide(slack + _EPS * upper, speed, out=times, where=moving)
        first = int(times.argmin())
        return max(float(slack[first] / speed[first]), 0.0), int(rows[first])

    def _put(self, row: int, side: float) -> None:
        """Note where a row is; those below pull at f as their bounds grow."""
        if self.growth:
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
