"""What is kept of a regularisation path: its breakpoints, and where scores change their sign."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hardmargin.kernels import FloatArray
from hardmargin.solvers.regularization_path.state import MarginState

PathStop = Literal["hard_margin", "C_max", "norm", "stalled", "max_stages", "max_time"]


@dataclass(frozen=True, repr=False)
class RegularizationPath:
    """The path of one machine; arrays have an entry a breakpoint, in ascending order of C.

    Between breakpoints multipliers, intercepts and decisions are linear in C. The first breakpoint
    is C = 0. A value of C is there twice where rows exchanged multipliers, at which the decisions
    stay the same.

    Attributes
    ----------
    C : array
        Where the pieces meet.
    intercept : array
        The bias; at C = 0 the label of the larger class, or 0 where both weigh the same.
    elbow_size : int array
        Rows on the margin.
    n_support : int array
        Rows with a multiplier.
    error : array
        Weighted share of training rows on the wrong side.
    loo_bound : array
        Weighted share of training rows with ``alpha_i k(x_i, x_i) >= y_i f(x_i)``: a bound on
        the leave-one-out error (Evgeniou, Pontil & Elisseeff, 2004), strictly so without bias.
        Copies of a row share their multipliers evenly.
    squared_norm : array
        ``||w||^2``, which grows with C.
    inner_product : array
        Of the w of a breakpoint and the next; of the last with itself.
    slack_sum : array
        Weighted sum of the slacks, which falls with C.
    labels, weights : arrays, one entry a row
        The machine's labels (0 for rows that were only scored) and weights.
    elbow_starts, elbow_rows, elbow_multipliers : arrays
        ``elbow_rows[elbow_starts[k] : elbow_starts[k + 1]]`` are on the margin from breakpoint k
        on, with these multipliers at k.
    change_starts, change_rows : arrays
        Rows that come to their upper bound, or leave it, at each breakpoint.
    crossing_C, crossing_row : arrays
        Where the decisions of scored rows change their sign; ascending in C.
    loo_C, loo_change : arrays
        Where the leave-one-out bound changes, from its value at C = 0 on, and by how much. The
        bound is kept only with the multipliers.
    violation : float
        Certificate: the largest violation of the optimality conditions, at breakpoints and between
        them.
    n_stages, n_restarts : int
        Events, and how often the problem was solved anew.
    stop_reason : {"hard_margin", "C_max", "norm", "stalled", "max_stages", "max_time"}
        ``"hard_margin"``: larger C change nothing any more. ``"norm"``: ``||w||`` is as large as
        was asked for. ``"stalled"``: rounding, or a kernel that is not positive semi-definite; the
        path holds as far as it goes.
    """

    C: FloatArray
    intercept: FloatArray
    elbow_size: NDArray[np.intp]
    n_support: NDArray[np.intp]
    error: FloatArray
    loo_bound: FloatArray
    squared_norm: FloatArray
    inner_product: FloatArray
    slack_sum: FloatArray
    labels: FloatArray
    weights: FloatArray
    elbow_starts: NDArray[np.intp]
    elbow_rows: NDArray[np.int32]
    elbow_multipliers: FloatArray
    change_starts: NDArray[np.intp]
    change_rows: NDArray[np.int32]
    crossing_C: FloatArray
    crossing_row: NDArray[np.intp]
    loo_C: FloatArray
    loo_change: FloatArray
    violation: float
    n_stages: int
    n_restarts: int
    stop_reason: PathStop

    def __len__(self) -> int:
        return len(self.C)

    def __repr__(self) -> str:
        return (
            f"<RegularizationPath of {np.count_nonzero(self.labels)} rows: {len(self)} breakpoints "
            f"up to C = {self.C[-1]:.4g}, {self.stop_reason}>"
        )

    def multipliers(self, breakpoint: int) -> FloatArray:
        """Return alpha of all rows at a breakpoint.

        Rounding may put some beyond their bounds, by 1e-9 of these at most: cut off there, they
        would no longer add up.
        """
        if len(self.elbow_starts) == 0:
            raise ValueError("This path was traced without keeping its multipliers.")
        k = range(len(self))[breakpoint]
        changes = self.change_rows[: self.change_starts[k + 1]]
        is_bound = np.bincount(changes, minlength=len(self.labels)) % 2 == 1
        alpha = np.where(is_bound, self.C[k] * self.weights, 0.0)
        elbow = slice(self.elbow_starts[k], self.elbow_starts[k + 1])
        alpha[self.elbow_rows[elbow]] = self.elbow_multipliers[elbow]
        return alpha

    def at(self, C: float) -> tuple[FloatArray, float]:
        """Return alpha and the intercept at any C; beyond the last, those of the last."""
        k, share = self.place(C)
        alpha, intercept = self.multipliers(k), float(self.intercept[k])
        if share > 0:
            alpha += share * (self.multipliers(k + 1) - alpha)
            intercept += share * (float(self.intercept[k + 1]) - intercept)
        return alpha, intercept

    def place(self, C: float) -> tuple[int, float]:
        """Return the piece that C is in, and how far along it that is, between 0 and 1."""
        k = int(np.searchsorted(self.C, C, side="right")) - 1
        if k < 0:
            raise ValueError(f"C must not be negative, got {C}.")
        if k == len(self) - 1:
            return k, 0.0
        return k, float((C - self.C[k]) / (self.C[k + 1] - self.C[k]))

    def slack_sum_at(self, C: float) -> float:
        """Weighted sum of the slacks at any C."""
        k, share = self.place(C)
        after = self.slack_sum[min(k + 1, len(self) - 1)]
        return float((1 - share) * self.slack_sum[k] + share * after)

    def squared_norm_at(self, C: float) -> float:
        """``||w||^2`` at any C."""
        k, share = self.place(C)
        if share == 0:
            return float(self.squared_norm[k])
        rest = 1 - share
        square = (
            rest**2 * self.squared_norm[k]
            + 2 * share * rest * self.inner_product[k]
            + share**2 * self.squared_norm[k + 1]
        )
        return max(float(square), 0.0)  # a kernel may be indefinite

    def C_of_norm(self, squared_norm: float) -> float:
        """Return the least C whose ``||w||^2`` is this; the last C if none is so large."""
        k = int(np.searchsorted(self.squared_norm, squared_norm, side="left"))
        if k == 0:
            return float(self.C[0])
        if k == len(self):
            return float(self.C[-1])
        first, last = self.squared_norm[k - 1], self.squared_norm[k]
        # |(1 - s) u + s v|^2 as a quadratic in s, which grows from s = 0 to 1.
        linear = max(self.inner_product[k - 1] - first, 0.0)
        square = max(last - first - 2 * linear, 0.0)
        missing = squared_norm - first
        root = linear + np.sqrt(linear**2 + square * missing)
        share = min(missing / root, 1.0) if root > 0 else 1.0
        return float(self.C[k - 1] + share * (self.C[k] - self.C[k - 1]))


class OwnShare:
    """What a row contributes to its own score, ``alpha_i k(x_i, x_i)``, on average over its copies.

    Parameters
    ----------
    diagonal : (n,) array
        The values ``k(x, x)``.
    twins : (n,) int array
        The first row that is the same point.
    labels : (n,) array
        Copies are of one label.
    copies : (n,) array or None
        How many rows each row stands for; weights below one count as one.
    """

    def __init__(
        self,
        diagonal: FloatArray,
        twins: NDArray[np.intp],
        labels: FloatArray,
        copies: FloatArray | None,
    ) -> None:
        # Labels +1, -1 and 0 of one point are three groups.
        self.group = np.unique(3 * twins + labels.astype(np.intp) % 3, return_inverse=True)[1]
        counts = np.bincount(self.group, weights=copies)
        self.share = (diagonal / np.maximum(counts, 1.0)[self.group]).astype(np.float64)

    def __call__(self, alpha: FloatArray) -> FloatArray:
        """Return the contributions."""
        return np.asarray(np.bincount(self.group, weights=alpha)[self.group] * self.share)


@dataclass(frozen=True)
class LastBreakpoint:
    """The solution that a piece begins with: its C, c, f, and room to the bound.

    The room is what rows are correct by beyond their own share, in the leave-one-out bound.
    """

    C: float
    c: FloatArray
    f: FloatArray
    room: FloatArray


class Recorder:
    """Keeps breakpoints while a path is traced, on the scale of the problem as it was given."""

    def __init__(
        self,
        means: FloatArray,
        labels: FloatArray,
        weights: FloatArray,
        own_share: OwnShare,
        *,
        alpha_unit: float,
        C_unit: float,
        keep_multipliers: bool,
    ) -> None:
        self.means, self.labels, self.own_share = means, labels, own_share
        self.weights = np.where(labels != 0, weights, 0.0)
        self.mass = self.weights / self.weights.sum()
        self.spread = float(np.abs(means - means.mean()).max())
        self.alpha_unit, self.C_unit = alpha_unit, C_unit
        self.keep = keep_multipliers
        self.scored = np.flatnonzero(labels == 0)
        self.squared_norm = 0.0
        self.last: LastBreakpoint | None = None
        self.scalars: list[tuple[float, ...]] = []
        self.products: list[float] = []
        self.elbows: list[tuple[NDArray[np.int32], FloatArray]] = []
        self.changes: list[NDArray[np.int32]] = []
        self.crossings: list[tuple[FloatArray, NDArray[np.intp]]] = []
        self.loo_changes: list[tuple[FloatArray, FloatArray]] = []
        self.was_below = np.zeros(len(labels), dtype=bool)

    def breakpoint(self, state: MarginState) -> float:
        """Keep the solution as it is, and what happens between the last one and this.

        Returns the largest violation on the way, or what margins of the kernel as it was given
        differ by from those of the centred one, where c does not quite add up to zero.
        """
        y = self.labels
        c = state.coefficients() * self.alpha_unit
        scores = y * state.f
        below = state.is_below
        alpha = c * y
        wrong = np.where(y > 0, state.f < 0, state.f >= 0)
        room = scores - self.own_share(alpha) if self.keep else np.ones(len(y))
        elbow = state.elbow.rows
        C = state.level * self.C_unit
        values = state.f - state.b  # the bias has no part in w
        norm = max(float(c @ values), 0.0)
        self.squared_norm = norm
        now = LastBreakpoint(C, c, state.f.copy(), room)
        on_the_way = abs(float(c.sum())) * self.spread
        if self.last is not None:
            self.products[-1] = float(self.last.c @ values)
            self._piece(self.last, now)
            between = self._violation_between(self.last, C, c, state.f)
            on_the_way = max(on_the_way, between)
        self.last = now
        self.products.append(norm)
        self.scalars.append(
            (
                C,
                state.b - float(self.means @ c),
                len(elbow),
                int(np.count_nonzero(c)),
                float(self.mass @ wrong),
                float(self.mass @ (room <= 0)),
                norm,
                float(self.weights[below] @ (1.0 - scores[below])),
            )
        )
        if self.keep:
            self.elbows.append((elbow.astype(np.int32), alpha[elbow]))
            self.changes.append(np.flatnonzero(below != self.was_below).astype(np.int32))
            self.was_below = below
        return on_the_way

    def between(self, state: MarginState) -> float:
        """Return the largest violation on the way from the last breakpoint to a solution.

        Rows that are at the same bound at both ends violate no more in between. All others are off
        their bounds there, and so should be on the margin at both ends.
        """
        if self.last is None:
            return 0.0
        c = state.coefficients() * self.alpha_unit
        return self._violation_between(self.last, state.level * self.C_unit, c, state.f)

    def _violation_between(
        self, last: LastBreakpoint, C: float, c: FloatArray, f: FloatArray
    ) -> float:
        if C <= last.C:  # nothing is in between
            return 0.0
        twice_alpha, twice_upper = (last.c + c) * self.labels, (last.C + C) * self.weights
        rounding = 1e-9 * twice_upper
        free = (twice_alpha > rounding) & (twice_alpha < twice_upper - rounding)
        y = self.labels[free]
        ends = (y * last.f[free] - 1.0, y * f[free] - 1.0)
        return float(np.abs(ends).max(initial=0.0))

    def _piece(self, last: LastBreakpoint, now: LastBreakpoint) -> None:
        """Keep what changes along a piece, on which all that is compared here is linear."""
        if self.keep:
            rows = np.flatnonzero(((last.room <= 0) != (now.room <= 0)) & (self.labels != 0))
            if len(rows):
                signs = np.where(now.room[rows] <= 0, 1.0, -1.0)
                where = self._where(last, now, last.room[rows], now.room[rows])
                self.loo_changes.append((where, signs * self.mass[rows]))
        if len(self.scored):
            before, after = last.f[self.scored], now.f[self.scored]
            crosses = np.flatnonzero((before >= 0) != (after >= 0))
            where = self._where(last, now, before[crosses], after[crosses])
            self.crossings.append((where, self.scored[crosses]))

    def _where(
        self, last: LastBreakpoint, now: LastBreakpoint, before: FloatArray, after: FloatArray
    ) -> FloatArray:
        """Return the C at which values of different signs are zero."""
        share = before / (before - after)
        return last.C + share * (now.C - last.C)

    def path(self, C_end: float, **results: Any) -> RegularizationPath:
        """Put everything together; a C that rounding alone keeps from C_end is C_end."""
        C, intercept, size, support, error, loo, norm, slack = map(
            np.array, zip(*self.scalars, strict=True)
        )
        C[np.abs(C - C_end) <= 1e-14 * C_end] = C_end
        elbow_rows = [rows for rows, _ in self.elbows]
        crossing_C = np.concatenate([np.empty(0), *(C for C, _ in self.crossings)])
        crossing_row = np.concatenate(
            [np.empty(0, dtype=np.intp), *(rows for _, rows in self.crossings)]
        )
        order = np.argsort(crossing_C, kind="stable")
        loo_C = np.concatenate([np.empty(0), *(C for C, _ in self.loo_changes)])
        loo_change = np.concatenate([np.empty(0), *(change for _, change in self.loo_changes)])
        loo_order = np.argsort(loo_C, kind="stable")
        no_rows = np.empty(0, dtype=np.int32)
        return RegularizationPath(
            C=C,
            intercept=intercept,
            elbow_size=size.astype(np.intp),
            n_support=support.astype(np.intp),
            error=error,
            loo_bound=loo,
            squared_norm=np.maximum.accumulate(norm),  # rounding can make it fall
            inner_product=np.array(self.products),
            slack_sum=slack,
            labels=self.labels,
            weights=self.weights,
            elbow_starts=_starts(elbow_rows),
            elbow_rows=np.concatenate([no_rows, *elbow_rows]),
            elbow_multipliers=np.concatenate([np.empty(0), *(alpha for _, alpha in self.elbows)]),
            change_starts=_starts(self.changes),
            change_rows=np.concatenate([no_rows, *self.changes]),
            crossing_C=crossing_C[order],
            crossing_row=crossing_row[order],
            loo_C=loo_C[loo_order],
            loo_change=loo_change[loo_order],
            **results,
        )


def _starts(parts: list[NDArray[np.int32]]) -> NDArray[np.intp]:
    if not parts:
        return np.empty(0, dtype=np.intp)
    return np.cumsum([0, *(len(part) for part in parts)], dtype=np.intp)
