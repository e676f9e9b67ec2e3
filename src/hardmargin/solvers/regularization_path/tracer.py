r"""The entire regularisation path of the C-SVM (Hastie, Rosset, Tibshirani & Zhu, JMLR 2004).

.. math:: \min_{w, b, \xi} \tfrac12 \|w\|^2 + C \sum_i w_i \xi_i
          \quad : \quad y_i (w'\varphi(x_i) + b) \ge 1 - \xi_i, \ \xi_i \ge 0

for all C at once, with the bias b or, if the kernel says so, without: its multipliers and bias are
piecewise linear in C (the paper divides them by C, which makes them so in 1/C). A piece ends where
a row reaches the margin, or where the multiplier of a row on the margin reaches 0 or its bound
:math:`C w_i`.

1. Start at C = 0 (``start.py``). The bias is the label of the larger class, whose rows share the
   weight of the smaller class so that :math:`\|w\|` is least (section 3.2). Where both weigh the
   same there is nothing to share, and b is free until two rows meet the margin (section 3.1).
2. Find how the solution moves while every row keeps its place (section 3.3), and the next event
   along the way (section 3.4; ``events.py``).
3. Go there, and let the row of that event change its place (``state.py``). If no row is left on the
   margin, b is free again.
4. If no row is left inside the margin, stop (``"hard_margin"``): a larger C changes nothing.
   Otherwise go on with step 2.

f is evaluated from the multipliers at every breakpoint, and a breakpoint is kept only if it
satisfies the conditions of optimality. A piece whose two ends satisfy them does so in between as
well, because everything is linear. Where rounding spoils the end of a piece, or blocks the way (a
row changes its place over and over), the problem is solved anew by an active set, there or at a
slightly larger C (``active_set.py``; ``n_restarts`` counts these).

Certificate: the largest violation of the conditions of optimality, over all breakpoints and pieces
that are kept. It is below 1e-8, unless rounding alone causes more: where C times the largest
weight is beyond about 1e7 in units of the kernel, or where a kernel is so smooth that almost flat
functions separate the rows. Where it would be above 1e-4, the regularisation path ends
(``"stalled"``).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hardmargin.monitor import Monitor, Stopped
from hardmargin.solvers.problem import Problem, Solution
from hardmargin.solvers.regularization_path.active_set import solved_anew
from hardmargin.solvers.regularization_path.events import Event, next_event
from hardmargin.solvers.regularization_path.kernel import ScaledKernel
from hardmargin.solvers.regularization_path.record import Recorder, RegularizationPath
from hardmargin.solvers.regularization_path.start import first_event
from hardmargin.solvers.regularization_path.state import Conditions, MarginState, Snapshot, Stuck

#: Events after which the inverse and the pull are evaluated from scratch.
_REFRESH_EVERY = 100

#: The problem is solved anew at violations above the first; where that does not help, the
#: regularisation path ends at violations above the second.
_MAX_VIOLATION, _BEARABLE = 1e-8, 1e-4

#: Events allowed by default: the first number, or the second per row if that is more.
_MIN_MAX_STAGES, _STAGES_PER_ROW = 10_000, 100

#: Shares of C to skip where rounding blocks the way, tried one after another until one helps.
_SKIPS = tuple(1e-8 * 16.0**k for k in range(5))

#: Limits to which the last C is clipped, in units of the kernel and the weights.
_LEAST_C, _LARGEST_C = 1e-100, 1e20

#: How often a way is cut to a quarter of its length before the regularisation path is given up.
_N_SHORTER = 30

_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class RegularizationPathOptions:
    """How to run.

    Attributes
    ----------
    C_max : float
        Where the regularisation path ends at the latest.
    max_stages : int or None
        Limit on the events; None is 10,000, or 100 per row if that is more.
    keep_multipliers : bool
        Whether the multipliers of the breakpoints are kept, and the leave-one-out bound.
    max_squared_norm : float
        The regularisation path ends once ``||w||^2`` is as large as this.
    """

    C_max: float = 1e4
    max_stages: int | None = None
    keep_multipliers: bool = True
    max_squared_norm: float = float("inf")


@dataclass(frozen=True, kw_only=True)
class RegularizationPathSolution(Solution):
    """The SVM that a regularisation path ends with; the certificate is its largest violation.

    Attributes
    ----------
    path : RegularizationPath
        All breakpoints.
    """

    path: RegularizationPath


def solve(
    problem: Problem[ScaledKernel],
    options: RegularizationPathOptions | None = None,
    monitor: Monitor | None = None,
) -> list[RegularizationPathSolution]:
    """Follow the regularisation path of every machine from C = 0.

    Parameters
    ----------
    problem : Problem
        Its kernel should be positive semi-definite. Rows that take no part in a machine are scored
        along its regularisation path; the others need positive weights, and both classes need rows.
    options : RegularizationPathOptions, optional
        How to run.
    monitor : Monitor, optional
        Receives the C of every event; the regularisation path so far is returned when it says stop.

    Returns
    -------
    list of RegularizationPathSolution
    """
    options, monitor = options or RegularizationPathOptions(), monitor or Monitor()
    machines = range(len(problem.machines))
    return [_Tracer(problem, machine, options, monitor).run() for machine in machines]


class _Tracer:
    """One regularisation path being traced; its C is that of the scaled kernel and weights."""

    def __init__(
        self,
        problem: Problem[ScaledKernel],
        machine: int,
        options: RegularizationPathOptions,
        monitor: Monitor,
    ) -> None:
        kernel, labels = problem.values, problem.labels_of(machine)
        weights = np.ones(len(labels)) if problem.weights is None else problem.weights
        training = labels != 0
        mean_weight = float(weights[training].mean())
        w = np.where(training, weights / mean_weight, 0.0)
        self.unit = 1.0 / (kernel.scale * mean_weight)
        self.C_end = float(options.C_max)
        self.C_max = min(max(self.C_end / self.unit, _LEAST_C), _LARGEST_C)
        if self.C_max in (_LEAST_C, _LARGEST_C):
            self.C_end = self.C_max * self.unit
        n = int(training.sum())
        self.max_stages = options.max_stages or max(_MIN_MAX_STAGES, _STAGES_PER_ROW * n)
        self.max_squared_norm, self.monitor = options.max_squared_norm, monitor
        self.record = Recorder(kernel, labels, weights, self.unit, options.keep_multipliers)
        # The SVM before the start: no multipliers, and always the larger class.
        bias = float(np.sign((w * labels).sum())) if kernel.has_bias else 0.0
        conditions = Conditions(kernel.values, labels, w, has_bias=kernel.has_bias)
        self.state = MarginState(conditions, np.zeros(len(labels)), level=0.0, bias=bias)
        self.leg: tuple[Snapshot, Event] | None = None  # the start and the event of the last piece
        self.n_stages = self.n_restarts = 0
        self.violation = self.here = 0.0  # of everything kept, and of the state
        self.blocked, self.n_skipped = 0.0, 0  # where the way was last blocked, and the last skip
        self.allowed = _MAX_VIOLATION
        self.is_lost = False  # whether it ends at the last breakpoint, not at the state

    def run(self) -> RegularizationPathSolution:
        # 1.
        reason = self._start()
        idle = 0
        while reason is None and (reason := self._reason_to_stop()) is None:
            self.n_stages += 1
            try:
                # 2.
                event = next_event(self.state, self.C_max - self.state.level)
                # 3.
                self._go(event)
                idle = idle + 1 if event.step <= 1e-14 * self.state.level else 0
                if idle > 50 + 2 * int((np.abs(self.state.slack()) < 1e-9).sum()):
                    raise Stuck
            except Stuck:
                idle = 0
                reason = self._restart()
        if not self.is_lost:
            self._keep()
        return self._solution(reason)

    def _solution(self, reason: str) -> RegularizationPathSolution:
        """Assemble the regularisation path, and the SVM that it ends with."""
        end = self.record.last
        assert end is not None
        rows = np.flatnonzero(end.c)
        return RegularizationPathSolution(
            rows=rows.astype(np.int32),
            coefficients=end.c[rows],
            intercept=end.intercept,
            certificate=self.violation,
            stop_reason=reason,
            n_stages=self.n_stages,
            path=self.record.path(
                self.C_end, self.violation, self.n_stages, self.n_restarts, reason
            ),
        )

    def _start(self) -> str | None:
        """Go from C = 0 to the first event; return why to stop if there is none."""
        try:
            if not self.monitor.go_on(0, 0.0):
                return self.monitor.stop_reason
            self.state, event = first_event(self.state.conditions, self.C_max, self.monitor)
            self._go(event)
        except Stopped:
            return self.monitor.stop_reason
        except Stuck:
            return self._restart()
        return None

    def _restart(self) -> str | None:
        """Go on where rounding blocks the way; return why to stop if that is impossible."""
        try:
            if self._solve_anew():
                return None
            reason = "stalled"
        except Stopped:
            reason = self.monitor.stop_reason
        self.is_lost = self.record.last is not None
        return reason

    def _reason_to_stop(self) -> str | None:
        """Return why to stop: step 4, or a limit."""
        state = self.state
        if self.n_stages >= self.max_stages:
            return "max_stages"
        if not self.monitor.go_on(self.n_stages, state.level * self.unit):
            return self.monitor.stop_reason
        if not state.is_below.any():  # 4.
            return "hard_margin"
        if self.record.squared_norm >= self.max_squared_norm:
            return "norm"
        return "C_max" if state.level >= self.C_max * (1 - 4 * _EPS) else None

    def _go(self, event: Event) -> None:
        """Go to an event, and let its row change its place."""
        state = self.state
        if event.step > 0:
            self._keep()
            self.leg = state.snapshot(), event
            state.move(event.direction, event.step)
        # Corrections come before the event. They may move a row that has just entered a long way,
        # which would then have been off both the margin and its bound on the way here.
        if self.n_stages % _REFRESH_EVERY == 0 or state.off_margin() > _MAX_VIOLATION / 10:
            self._check(evaluate=True)
        if event.row >= 0:
            state.change_place(event.row, before_exchange=self._keep_checked)
        self._check()

    def _check(self, *, evaluate: bool = False) -> None:
        """Correct for rounding, with everything evaluated from scratch."""
        state = self.state
        self.here = state.violation()
        if self.here > _MAX_VIOLATION / 10 or evaluate:
            if not state.refresh_all():
                raise Stuck
            state.correct()
            state.refresh()  # corrections may be smaller than the spacing of the multipliers
            self.here = state.violation()
        if self.here > self.allowed:
            raise Stuck

    def _keep(self) -> None:
        """Keep a breakpoint, and the largest violation at it and on the way to it."""
        on_the_way = self.record.breakpoint(self.state)
        self.violation = max(self.violation, self.here, on_the_way)
        self.leg = None

    def _keep_checked(self) -> None:
        """Keep the solution before rows exchange multipliers at the same C."""
        self._check()
        self._keep()

    def _solve_anew(self) -> bool:
        """Solve the problem by an active set, here or at a slightly larger C.

        The first solution that is accurate enough is accepted, with a straight way to it from the
        last breakpoint. If none is, the best one is accepted, unless it is too far from the
        optimum: then the last way is shortened. If that does not help either, this returns False,
        and the regularisation path ends at the last breakpoint. It also ends there if time runs out
        (Stopped).
        """
        self.n_restarts += 1
        self.here = self.state.violation()
        ratios = self._ratios()
        if self.here <= self.allowed:  # a solution, but no way on from it
            self._keep()
        best, least = self.state, float("inf")
        for ratio in ratios:
            state = solved_anew(self.state, self.monitor, ratio)
            violation = max(state.violation(), self.record.between(state))
            if violation < least:
                best, least = state, violation
            if least <= _MAX_VIOLATION:
                break
        if least > _BEARABLE:
            return self._shorten()
        self._take(best, least)
        self.violation = max(self.violation, least)
        return True

    def _ratios(self) -> list[float]:
        """Return the C at which to solve anew, as ratios to the state's C, the nearest first.

        Where the way is blocked again soon after, larger shares of C are skipped.
        """
        level, last = self.state.level, self.record.last
        again = level <= self.blocked * (1 + 10 * _SKIPS[self.n_skipped])
        self.n_skipped = min(self.n_skipped + 1, len(_SKIPS) - 1) if again else 0
        self.blocked = level
        ratios = [1.0 + skip for skip in _SKIPS[self.n_skipped :]]
        if self.here > self.allowed:
            if last is not None and last.C == 0:  # the first piece may as well be shorter
                ratios = [0.25**k for k in range(6)]
            elif self.n_skipped < 2:
                ratios = [1.0, *ratios]
        largest = self.C_max / level if level else 1.0
        return sorted({min(ratio, largest) for ratio in ratios}, key=lambda ratio: abs(ratio - 1))

    def _shorten(self) -> bool:
        """Go only a part of the last way, as rounding grows with C; False if that does not help."""
        if self.leg is None:
            return False
        (snapshot, event), self.leg = self.leg, None
        step = event.step
        for _ in range(_N_SHORTER):
            step *= 0.25
            state = None if step <= 1e-3 * snapshot.level else self.state.back_to(snapshot)
            if state is None:
                break
            state.move(event.direction, step)
            state.refresh()
            violation = state.violation()
            if violation <= _BEARABLE:
                self._take(state, violation)
                return True
        return False

    def _take(self, state: MarginState, violation: float) -> None:
        """Continue from another state, whose violation is bearable."""
        self.state, self.here = state, state.violation()
        self.allowed = min(max(_MAX_VIOLATION, 2 * violation), _BEARABLE)
