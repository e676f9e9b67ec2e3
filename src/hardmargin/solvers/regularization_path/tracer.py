r"""The entire regularisation path of the C-SVM (Hastie, Rosset, Tibshirani & Zhu, JMLR 2004).

.. math:: \min_{w, b, \xi} \tfrac12 \|w\|^2 + C \sum_i w_i \xi_i
          \quad : \quad y_i (w'\varphi(x_i) + b) \ge 1 - \xi_i, \ \xi_i \ge 0

for all C at once: its multipliers and bias are piecewise linear in C (the paper has them divided by
C, which are piecewise linear in 1/C). A piece ends where a row reaches the margin, or where the
multiplier of a row on the margin reaches 0 or its bound :math:`C w_i`.

1. Start at C = 0 (section 3.2): b is the label of the larger class, whose rows share the weight of
   the smaller class so that :math:`\|w\|` is least. Where both weigh the same there is nothing to
   share, and b is free until two rows meet the margin (section 3.1).
2. Find how the solution moves while every row keeps its place (section 3.3), and go to the next
   event (section 3.4).
3. Let the row of that event change its place. If no row is left on the margin, b is free again;
   if none is left inside, stop (``"hard_margin"``): larger C change nothing.

``path_start.py`` has step 1, ``margin_state.py`` steps 2 and 3, and what is done about ties and
singular elbows. f is evaluated from the multipliers at every breakpoint, and only what satisfies
the conditions of optimality is kept: both ends of a piece, which then holds in between as all of it
is linear. Where rounding spoils the end of a piece, or blocks the way (a row changes its place over
and over), the problem is solved anew by an active set, there or at a slightly larger C
(``n_restarts`` counts these).

Certificate: the largest violation of the conditions of optimality, of all breakpoints and pieces
that are kept. It is below 1e-8, unless rounding alone makes for more: where C times the largest
weight is beyond about 1e7 in units of the kernel, or where a kernel is so smooth that planes of
almost no slope share out the rows. A path ends (``"stalled"``) where it would be above 1e-4.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from hardmargin.kernels import FloatArray
from hardmargin.solvers.regularization_path.elbow import Elbow
from hardmargin.solvers.regularization_path.record import (
    OwnShare,
    PathStop,
    Recorder,
    RegularizationPath,
)
from hardmargin.solvers.regularization_path.start import OutOfTime, share_excess
from hardmargin.solvers.regularization_path.state import (
    TOLERANCE,
    Direction,
    Inexact,
    MarginState,
    Stuck,
    product,
)

KeepGoing: TypeAlias = Callable[[int, float], bool]

_EPS = float(np.finfo(np.float64).eps)

#: Events between evaluations of the inverse and the pull from scratch.
_REFRESH_EVERY = 100

#: Largest violation that is not worth solving anew, and the largest that ends no path where that
#: does not help.
MAX_VIOLATION, _BEARABLE = 1e-8, 1e-4

#: Events allowed by default: so many in any case, and so many a row.
MIN_MAX_STAGES, STAGES_A_ROW = 10_000, 100

#: Shares of C that are skipped where rounding blocks the way, one after another until one does.
_SKIPS = tuple(1e-8 * 16.0**k for k in range(5))

#: Kernels of this size, or of one over it, have no path: their products with multipliers overflow.
LARGEST_SCALE = 1e150

#: In units of the kernel and the weights, smaller C count as the one, and larger as the other.
_LEAST_C, _LARGEST_C = 1e-100, 1e20

#: Quarters of a way that are tried, each of the one before.
_N_SHORTER = 30


@dataclass(frozen=True)
class CentredKernel:
    """A kernel matrix, centred and scaled: with a bias, no SVM can tell the difference.

    Attributes
    ----------
    values : (n, n) array
        ``(K_ij - means_i - means_j + constant) / scale``.
    means : (n,) array
        Means of the rows of K.
    scale : float
        Mean of the diagonal after centring.
    diagonal : (n,) array
        Of K itself.
    twins : (n,) int array
        The first row that is the same point in feature space.
    """

    values: FloatArray
    means: FloatArray
    scale: float
    diagonal: FloatArray
    twins: NDArray[np.intp]


def centred_kernel(K: FloatArray) -> CentredKernel:
    """Centre and scale a symmetric kernel matrix (into a copy)."""
    diagonal = K.diagonal().copy()
    with np.errstate(over="ignore", invalid="ignore"):
        means = K.mean(axis=1)
        values = np.add.outer(means, means)
        np.subtract(K, values, out=values)
        values += means.mean()
        scale = float(values.diagonal().mean())
    if not np.isfinite(scale):  # a single value that is not finite makes it so
        raise ValueError(
            "The kernel's values, and sums of them, must be finite; some are NaN or infinite."
        )
    if scale <= 4 * _EPS * np.abs(diagonal).mean():  # all rows are the same
        first = np.zeros(len(K), dtype=np.intp)
        return CentredKernel(np.zeros_like(values), means, 1.0, diagonal, first)
    if not 1.0 / LARGEST_SCALE <= scale <= LARGEST_SCALE:
        raise ValueError(
            f"Squared distances between rows in the kernel's space are of size {scale:.2g}, beyond "
            "the precision of a path; scale the features, or choose another gamma."
        )
    values /= scale
    own = values.diagonal()
    twins = np.empty(len(K), dtype=np.intp)
    for i, row in enumerate(values):
        twins[i] = (own + own[i] - 2 * row <= 1e-12).argmax()
    return CentredKernel(values, means, scale, diagonal, twins)


@dataclass(frozen=True)
class PathOptions:
    """How to run.

    Attributes
    ----------
    C_max : float
        Where the path ends at the latest.
    max_stages : int or None
        Limit on the events; None stands for 10,000, or 100 a row if that is more.
    keep_multipliers : bool
        Whether the multipliers of the breakpoints are kept.
    max_squared_norm : float
        The path ends once ``||w||^2`` is so large.
    """

    C_max: float = 1e4
    max_stages: int | None = None
    keep_multipliers: bool = True
    max_squared_norm: float = float("inf")


def trace_path(
    kernel: CentredKernel,
    labels: FloatArray,
    weights: FloatArray,
    *,
    options: PathOptions | None = None,
    copies: FloatArray | None = None,
    keep_going: KeepGoing | None = None,
) -> RegularizationPath:
    """Follow the path from C = 0.

    Parameters
    ----------
    kernel : CentredKernel
        Of all rows, positive semi-definite.
    labels : (n,) array
        +1 and -1 for training rows, of which both must be there; 0 for rows that are only scored.
    weights : (n,) array
        Weights of the slacks, positive for training rows.
    options : PathOptions, optional
        How to run.
    copies : (n,) array, optional
        How many rows each row stands for, in the leave-one-out bound; one by default.
    keep_going : callable, optional
        Called with (stage, C) at every stage; the path so far is returned when it says no.

    Returns
    -------
    RegularizationPath
    """
    options = options or PathOptions()
    return _Tracer(kernel, labels, weights, options, copies).run(
        keep_going or (lambda stage, C: True)
    )


@dataclass(frozen=True)
class _Leg:
    """Where a piece began, and how it went on."""

    alpha: FloatArray
    side: FloatArray
    bias: float
    level: float
    rows: NDArray[np.intp]
    direction: Direction
    step: float

    @classmethod
    def of(cls, state: MarginState, d: Direction, step: float) -> _Leg:
        """Keep this for a state that is about to move."""
        rows = state.elbow.rows.copy()
        return cls(state.alpha.copy(), state.side.copy(), state.b, state.level, rows, d, step)

    def restore(self, state: MarginState) -> bool:
        """Go back to the beginning; False where the elbow can not be inverted."""
        state.alpha, state.side = self.alpha.copy(), self.side.copy()
        state.b, state.level = self.bias, self.level
        state.elbow = Elbow.of(state.K, self.rows)
        state.refresh()
        return state.elbow.refresh()


class _Tracer:
    """One path in the making; its C is that of the scaled kernel and weights."""

    def __init__(
        self,
        kernel: CentredKernel,
        labels: FloatArray,
        weights: FloatArray,
        options: PathOptions,
        copies: FloatArray | None,
    ) -> None:
        training = labels != 0
        mean_weight = float(weights[training].mean())
        self.K, self.y = kernel.values, labels
        self.w = np.where(training, weights / mean_weight, 0.0)
        self.unit = 1.0 / (kernel.scale * mean_weight)
        self.C_end = float(options.C_max)
        self.C_max = min(max(self.C_end / self.unit, _LEAST_C), _LARGEST_C)
        if self.C_max in (_LEAST_C, _LARGEST_C):
            self.C_end = self.C_max * self.unit
        n = int(training.sum())
        self.max_stages = options.max_stages or max(MIN_MAX_STAGES, STAGES_A_ROW * n)
        self.max_squared_norm = options.max_squared_norm
        self.state = MarginState(self.K, self.y, self.w)
        self.record = Recorder(
            kernel.means,
            labels,
            weights,
            OwnShare(kernel.diagonal, kernel.twins, labels, copies),
            alpha_unit=1.0 / kernel.scale,
            C_unit=self.unit,
            keep_multipliers=options.keep_multipliers,
        )
        self.n_stages = self.n_restarts = 0
        self.violation = self.here = 0.0  # of all that is kept, and of the state
        self.leg: _Leg | None = None
        self.blocked, self.n_skipped = 0.0, 0  # where the way was last blocked, and what was tried
        self.allowed = MAX_VIOLATION

    def run(self, keep_going: KeepGoing) -> RegularizationPath:
        reason = self._start(keep_going)
        state = self.state
        idle = 0
        while reason is None:
            if self.n_stages >= self.max_stages:
                reason = "max_stages"
            elif not keep_going(self.n_stages, state.level * self.unit):
                reason = "max_time"
            elif not state.is_below.any():
                reason = "hard_margin"
            elif self.record.squared_norm >= self.max_squared_norm:
                reason = "norm"
            elif state.level >= self.C_max * (1 - 4 * _EPS):
                reason = "C_max"
            if reason is not None:
                break
            self.n_stages += 1
            try:
                step = self._one_event()
                idle = idle + 1 if step <= 1e-14 * state.level else 0
                if idle > 50 + 2 * int((np.abs(state.slack()) < 1e-9).sum()):
                    raise Stuck
            except Stuck:
                idle = 0
                if not self._solve_anew():
                    reason = "stalled"
        if reason != "stalled":
            self._keep()
        return self.record.path(
            C_end=self.C_end,
            violation=self.violation,
            n_stages=self.n_stages,
            n_restarts=self.n_restarts,
            stop_reason=reason,
        )

    def _one_event(self) -> float:
        """Go to the next event, or to C_max; returns how far that was."""
        state = self.state
        room = self.C_max - state.level
        if state.elbow.size == 0:
            d, step, row = self._free_bias(room)
        else:
            d = state.direction()
            step, row = state.next_event(d, room)
        self._go(d, step, row)
        return step

    def _go(self, d: Direction, step: float, row: int) -> None:
        """Go along a direction to the event of a row."""
        if step > 0:
            self._keep()
            self.leg = _Leg.of(self.state, d, step)
            self.state.move(d, step)
        # Corrections come before the event: a row that has just come in may move far by these, and
        # would be off the margin and off its bound on the way here.
        if self.n_stages % _REFRESH_EVERY == 0 or self.state.off_margin() > MAX_VIOLATION / 10:
            self._check(evaluate=True)
        if row >= 0:
            self.state.change_place(row)
        self._check()

    def _keep(self) -> None:
        """Keep a breakpoint, and how far it and the way to it are from the optimum."""
        on_the_way = self.record.breakpoint(self.state)
        self.violation = max(self.violation, self.here, on_the_way)
        self.leg = None

    def _keep_before(self, row: int, sign: float) -> None:
        """Keep the solution before a row takes multipliers over from others at the same C."""
        state = self.state
        state.side[row] = sign
        try:
            self._check()
            self._keep()
        finally:
            state.side[row] = 0.0

    def _free_bias(self, room: float) -> tuple[Direction, float, int]:
        """Go to where the limits that the rows set to b meet; there the elbow begins anew.

        Limits from above are concave in C, those from below convex: so b may go straight there.
        """
        state = self.state
        lower, upper = state.bias_limits()
        # f without bias grows by the pull, and the limits fall by it.
        step, largest = room, float(np.abs(state.pull).max())
        for _ in range(len(lower)):
            low, high = lower - step * state.pull, upper - step * state.pull
            i, j = int(low.argmax()), int(high.argmin())
            rounding = 1e-14 * (1.0 + step * largest)
            if not low[i] > high[j] + rounding:
                break
            closing = state.pull[j] - state.pull[i]
            sooner = max((upper[j] - lower[i]) / closing, 0.0) if closing > 0 else 0.0
            if sooner >= step:
                break
            step = sooner
        low_end, high_end = lower[i] - step * state.pull[i], upper[j] - step * state.pull[j]
        meets = step < room
        end = low_end if meets else min(max(state.b, low_end), high_end)
        if step == 0.0:
            state.shift(float(end) - state.b)
            return Direction(0.0, np.zeros(0), state.pull, 0.0), 0.0, i if meets else -1
        rate = (float(end) - state.b) / step
        return Direction(rate, np.zeros(0), state.pull + rate, 0.0), step, i if meets else -1

    def _check(self, *, evaluate: bool = False) -> None:
        """Put right what rounding has done, with everything evaluated from scratch."""
        state = self.state
        self.here = state.violation()
        if self.here > MAX_VIOLATION / 10 or evaluate:
            state.refresh()
            if state.elbow.size and not state.elbow.refresh():
                raise Stuck
            state.correct()
            state.refresh()  # corrections may be less than multipliers can tell apart
            self.here = state.violation()
        if self.here > self.allowed:
            raise Inexact

    def _solve_anew(self) -> bool:
        """Solve the problem by an active set, here or at a slightly larger C.

        Of the solutions that are found, the first that will do is taken, with a straight way to it
        from the last breakpoint. If none will, the best is, unless it is too far from the optimum.
        Then the last way is shortened; if that does not help either, this returns False, and the
        path ends at the last breakpoint.
        """
        state = self.state
        self.n_restarts += 1
        self.here = state.violation()
        again = state.level <= self.blocked * (1 + 10 * _SKIPS[self.n_skipped])
        self.n_skipped = min(self.n_skipped + 1, len(_SKIPS) - 1) if again else 0
        self.blocked = state.level
        ratios = [1.0 + skip for skip in _SKIPS[self.n_skipped :]]
        if self.here <= self.allowed:  # a solution, but no way on from it
            self._keep()
        elif self.record.last is None or self.record.last.C > 0:
            ratios = [1.0, *ratios] if self.n_skipped < 2 else ratios
        else:  # the first piece may as well be shorter
            ratios = [0.25**k for k in range(6)]
        before, best, least = self._copy(), self._copy(), float("inf")
        on_exchange, state.on_exchange = state.on_exchange, None
        largest = self.C_max / before.level if before.level else 1.0
        for ratio in sorted({min(ratio, largest) for ratio in ratios}, key=lambda r: abs(r - 1)):
            state.copy_of(before)
            state.level *= ratio
            state.alpha *= ratio
            with suppress(Stuck):
                state.rebuild()
                state.optimise(max(200, 4 * len(self.y)))
            state.refresh()
            violation = max(state.violation(), self.record.between(state))
            if violation < least:
                best, least = self._copy(), violation
            if least <= MAX_VIOLATION:
                break
        state.copy_of(best)
        state.on_exchange = on_exchange
        self.here = state.violation()
        if least > _BEARABLE:
            return self._shorten()
        self.violation = max(self.violation, least)
        self.allowed = min(max(MAX_VIOLATION, 2 * least), _BEARABLE)
        return True

    def _shorten(self) -> bool:
        """Go a part of the last way only, as rounding grows with C; False if none will do."""
        leg, self.leg = self.leg, None
        if leg is None:
            return False
        state, step = self.state, leg.step
        for _ in range(_N_SHORTER):
            step *= 0.25
            if step <= 1e-3 * leg.level or not leg.restore(state):
                break
            state.move(leg.direction, step)
            state.refresh()
            self.here = state.violation()
            if self.here <= _BEARABLE:
                self.allowed = min(max(MAX_VIOLATION, 2 * self.here), _BEARABLE)
                return True
        return False

    def _copy(self) -> MarginState:
        copy = MarginState(self.K, self.y, self.w)
        copy.margin = copy.growth = 1.0
        copy.copy_of(self.state)
        return copy

    def _start(self, keep_going: KeepGoing) -> PathStop | None:
        """Step 1: from C = 0 to the first event; returns why to stop if there is none."""
        state = self.state
        state.margin = state.growth = 1.0
        state.tolerance = TOLERANCE
        state.level = 0.0
        try:
            shared = share_excess(self.K, self.y, self.w, keep_going)
        except OutOfTime:
            state.shift(float(np.sign((self.w * self.y).sum())))
            return "max_time"
        if shared is None:
            state.side = -np.abs(self.y)
        else:
            state.side, state.elbow = shared.side, shared.elbow
            minority = (self.y != 0) & (shared.y == 0)
            state.side[minority] = -1.0
            state.shift(float(np.sign(shared.y.sum())))
        state.pull = product(self.K, np.where(state.is_below, self.w * self.y, 0.0))
        state.pull_total = float((self.w * self.y)[state.is_below].sum())
        state.on_exchange = self._keep_before
        if state.elbow.size == 0:
            d, step, row = self._free_bias(self.C_max)
        else:
            assert shared is not None
            rows = state.elbow.rows
            d = Direction(shared.b, shared.alpha[rows] * self.y[rows], shared.f, 0.0)
            # Rows of the larger class keep their places; the others come from the far side.
            speed = np.where(minority, self.y * shared.f, 0.0)
            times = np.full(len(speed), np.inf)
            np.divide(2.0, speed, out=times, where=speed > 0)
            row = int(times.argmin())
            step = min(float(times[row]), self.C_max)
            row = row if times[row] < self.C_max else -1
        try:
            self._go(d, step, row)
        except Stuck:
            return None if self._solve_anew() else "stalled"
        return None
