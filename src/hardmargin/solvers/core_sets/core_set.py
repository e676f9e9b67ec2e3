r"""A core set: the rows that take part so far, and the problem on them alone.

.. math:: \max_{\alpha \ge 0} 2 \alpha'1 - \alpha'Q\alpha, \qquad
          Q_{ij} = y_i y_j (k_{ij} - F_i'F_j + b) + [i = j] s_i

asks for multipliers with :math:`g = Q\alpha` equal to 1 where they are positive and at least 1
elsewhere. ``core_vector.py`` has b = 1 and defines F and s; ``enclosing_ball.py`` has another
b, and no F. Steps on two multipliers at a time are compiled (``core/src/core_set.cpp``).
"""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from hardmargin import _core
from hardmargin.kernels import FloatArray
from hardmargin.kernels.columns import KernelColumns
from hardmargin.monitor import Monitor, Stopped
from hardmargin.solvers.core_sets.pivoting import solve_by_pivoting

IndexArray = NDArray[np.int64]

#: Limit on the steps within a core set: the first number, or the second per row if that is more.
MIN_MAX_STEPS, STEPS_PER_ROW = 1_000_000, 1_000

#: After this many steps (in all, or per row if that is more), a core set of at most
#: MAX_PIVOTING_ROWS rows is solved by pivoting instead.
MIN_FEW_STEPS, FEW_STEPS_PER_ROW = 20_000, 50
MAX_PIVOTING_ROWS = 6_000

#: Rows that join at a time where memory limits the core set.
JOINED_AT_ONCE = 128


class Limits(NamedTuple):
    """What the tolerance allows, for the current multipliers.

    Attributes
    ----------
    least_gradient : float
        Rows with a smaller g should join.
    inner_tol : float
        How far the core set's own solution may be off, relative to g.
    largest_mass : float
        Upper bound on the sum of alpha if Q is positive semi-definite.
    """

    least_gradient: float
    inner_tol: float
    largest_mass: float


class Priced(NamedTuple):
    """Rows, and what the current multipliers make of them.

    Attributes
    ----------
    rows : int array
        All rows that may join, in ascending order, or a sample of those that have not.
    scores : array
        Their ``w'phi(x)``.
    margins : array
        Their ``y f(x)``, which is g where a row has not joined.
    """

    rows: IndexArray
    scores: FloatArray
    margins: FloatArray


class Goal(Protocol):
    """When a core set is large enough."""

    def limits(self, core: CoreSet) -> Limits:
        """Return what the tolerance allows; without multipliers there is no least gradient."""

    def is_certified(self, core: CoreSet, priced: Priced, n_outside: int | None = None) -> bool:
        """Whether all rows prove that the tolerance is met.

        With `n_outside`, whether a sample of that many rows outside the core set suggests it.
        """


class CoreSet:
    """Rows that take part so far, with Q between them.

    Parameters
    ----------
    columns : KernelColumns
        The kernel between all rows.
    labels : (n,) array
        y: +1 and -1, and 0 for rows that are left out.
    slack : (n,) array
        s.
    projections : (n, n_directions) array
        F.
    bias : float
        b.
    matrix : (capacity, padded capacity) array
        Room for Q.

    Attributes
    ----------
    all_rows : int array
        Rows that may join.
    rows : int array
        Rows that have joined, in that order.
    places : (n,) int array
        Where each row is among them; -1 for rows that have not joined.
    alpha, gradient : arrays
        Their multipliers, and g.
    n_steps : int
        Steps on two multipliers.
    """

    def __init__(
        self,
        columns: KernelColumns,
        labels: FloatArray,
        slack: FloatArray,
        projections: FloatArray,
        bias: float,
        matrix: NDArray[Any],
    ) -> None:
        self.columns, self.matrix = columns, matrix
        self.y, self.slack, self.F, self.bias = labels, slack, projections, bias
        self.all_rows = np.flatnonzero(labels)
        self.rows = np.empty(0, dtype=np.int64)
        self.places = np.full(len(labels), -1, dtype=np.int64)
        self.alpha, self.gradient = np.empty(0), np.empty(0)
        self.n_steps = 0

    def join(self, rows: IndexArray, gradient: FloatArray) -> None:
        """Let rows join, with their g; where memory limits Q, a few at a time.

        Columns that are not kept would otherwise take as much memory as Q.
        """
        is_single = self.matrix.dtype == np.float32
        fill = _core.join_core_set_float32 if is_single else _core.join_core_set_float64
        is_limited = len(self.matrix) < len(self.all_rows)
        step = JOINED_AT_ONCE if is_limited else max(len(rows), 1)
        for begin in range(0, len(rows), step):
            some = rows[begin : begin + step]
            together = np.concatenate([self.rows, some])
            squares = np.einsum("ij,ij->i", self.F[some], self.F[some])
            fill(
                *self.columns.keep(some, together),
                labels=self.y[together],
                projections=self.F[together],
                bias=self.bias,
                diagonal=self.columns.diagonal[some] - squares + self.bias + self.slack[some],
                Q=self.matrix,
            )
            self.rows = together
        self.places[self.rows] = np.arange(len(self.rows))
        self.alpha = np.concatenate([self.alpha, np.zeros(len(rows))])
        self.gradient = np.concatenate([self.gradient, gradient])

    def price(self, rows: IndexArray) -> Priced:
        """Price rows anew: what this gives for members replaces their g, which drifts in steps."""
        has_mass = self.alpha > 0
        support = self.rows[has_mass]
        c = self.y[support] * self.alpha[has_mass]
        is_all = len(rows) == self.columns.n_rows
        scores = self.columns.product(support, c, None if is_all else rows)
        scores -= self.F[rows] @ (self.F[support].T @ c)
        if not np.isfinite(scores).all():
            raise ValueError("The kernel's values must be finite; some are NaN or infinite.")
        margins = self.y[rows] * (scores + self.bias * (self.y[self.rows] @ self.alpha))
        is_own = self.places[rows] >= 0
        own = self.places[rows[is_own]]
        self.gradient[own] = margins[is_own] + self.slack[rows[is_own]] * self.alpha[own]
        return Priced(rows, scores, margins)

    def solve(self, limits: Limits, stage: int, monitor: Monitor) -> str | None:
        """Solve the problem on these rows, starting from the current multipliers.

        Parameters
        ----------
        limits : Limits
            How far g may be off, and the mass beyond which Q is not positive semi-definite.
        stage : int
            For the monitor.
        monitor : Monitor
            Ends the steps.

        Returns
        -------
        str or None
            Why the problem was not solved; None if it was.
        """
        n, tol = len(self.rows), limits.inner_tol
        Q = self.matrix[:n, :n]
        is_single = Q.dtype == np.float32
        # Listeners are called with the stage, not with single steps.
        heard: Any = SimpleNamespace(
            seconds_left=monitor.seconds_left,
            report=lambda _, n_steps, violation: monitor.go_on(stage, violation),
        )
        step = partial(
            _core.core_set_steps_float32 if is_single else _core.core_set_steps_float64,
            self.matrix,
            self.alpha,
            self.gradient,
            tol=tol,
            largest_mass=limits.largest_mass,
            monitor=heard,
        )
        few, most = max(MIN_FEW_STEPS, FEW_STEPS_PER_ROW * n), max(MIN_MAX_STEPS, STEPS_PER_ROW * n)
        may_pivot = n <= MAX_PIVOTING_ROWS
        try:
            n_steps, _, reason = step(max_steps=few if may_pivot else most)
            self.n_steps += n_steps
            if reason == "max_steps" and may_pivot:
                reason = "converged"
                if not self._pivot(Q.astype(np.float64), tol, monitor):
                    heard.seconds_left = monitor.seconds_left
                    n_steps, _, reason = step(max_steps=most)
                    self.n_steps += n_steps
        except Stopped:
            reason = "max_time"
        if not self.alpha.any():  # stopped before the first step
            self.alpha[:] = 1.0
            self.gradient[:] = Q.sum(axis=0, dtype=np.float64)
        if reason == "max_time":
            return monitor.stop_reason
        return {"converged": None, "diverged": "indefinite", "max_steps": "stalled"}[reason]

    def _pivot(self, Q: FloatArray, tol: float, monitor: Monitor) -> bool:
        """Solve the problem where steps make no progress, as Q is close to singular."""
        alpha = solve_by_pivoting(Q, self.alpha > 0, tol, monitor)
        if alpha is None:
            return False
        self.alpha[:], self.gradient[:] = alpha, Q @ alpha
        return bool(np.abs(1.0 - self.gradient[alpha > 0]).max(initial=0.0) <= tol)
