r"""A core set: the rows that take part so far, and the problem on them alone.

That is to find multipliers :math:`\alpha \ge 0` with :math:`g = Q\alpha` equal to 1 where they are
positive and at least 1 elsewhere; see ``core_vector.py`` for what Q is. Steps on two
multipliers at a time are in the compiled core (``core/src/ball.cpp``).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hardmargin import _core
from hardmargin.kernels import FloatArray
from hardmargin.solvers.core_sets.pivoting import solve_by_pivoting

IndexArray = NDArray[np.int64]

#: Steps within a core set that should do in any case: so many, and so many a row.
MIN_MAX_STEPS, STEPS_A_ROW = 1_000_000, 1_000

#: Steps after which a core set of at most so many rows is solved by pivoting instead.
MIN_FEW_STEPS, FEW_STEPS_A_ROW = 20_000, 50
MAX_PIVOTING_ROWS = 6_000


class CoreSet:
    """Rows that take part so far, with Q between them, their multipliers and g = Q alpha."""

    def __init__(self, values: NDArray[Any], capacity: int) -> None:
        self.capacity = capacity
        self.rows = np.empty(0, dtype=np.int64)
        self.alpha = np.empty(0)
        self.gradient = np.empty(0)
        self.values = values

    @property
    def Q(self) -> NDArray[Any]:
        """Q between the rows."""
        n = len(self.rows)
        return self.values[:n, :n]

    def extend(
        self,
        rows: IndexArray,
        gradient: FloatArray,
        kernel_values: tuple[NDArray[Any], IndexArray, IndexArray],
        labels: FloatArray,
        projections: FloatArray,
        bias: float,
        diagonal: FloatArray,
    ) -> None:
        """Let rows join: `labels` and `projections` are of all rows, `diagonal` is theirs."""
        is_single = self.values.dtype == np.float32
        join = _core.join_core_set_float32 if is_single else _core.join_core_set_float64
        join(
            *kernel_values,
            labels=labels,
            projections=projections,
            bias=bias,
            diagonal=diagonal,
            Q=self.values,
        )
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
        is_single = self.values.dtype == np.float32
        step = _core.core_set_steps_float32 if is_single else _core.core_set_steps_float64
        deadline = time.monotonic() + max_seconds

        def take(max_steps: int) -> tuple[int, float, str]:
            return step(
                self.Q,
                self.alpha,
                self.gradient,
                tol=tol,
                largest_mass=largest_mass,
                max_steps=max_steps,
                max_seconds=deadline - time.monotonic(),
                report=report,
            )

        n = len(self.rows)
        most = max(MIN_MAX_STEPS, STEPS_A_ROW * n)
        few = max(MIN_FEW_STEPS, FEW_STEPS_A_ROW * n)
        steps, violation, reason = take(few if n <= MAX_PIVOTING_ROWS else most)
        if reason == "max_steps" and n <= MAX_PIVOTING_ROWS:
            if self.pivot(tol, lambda: report(0, steps, violation)):
                return steps, tol, "converged"
            more, violation, reason = take(most)
            steps += more
        return steps, violation, reason

    def pivot(self, tol: float, poll: Callable[[], None]) -> bool:
        """Solve the problem where steps do not get anywhere, as Q is close to singular."""
        Q = self.Q.astype(np.float64)
        alpha = solve_by_pivoting(Q, self.alpha > 0, tol, poll)
        if alpha is None:
            return False
        self.alpha, self.gradient = alpha, Q @ alpha
        return bool(np.abs(1.0 - self.gradient[alpha > 0]).max(initial=0.0) <= tol)
