"""What is kept of a regularisation path: its breakpoints, and where scores change their sign."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hardmargin.kernels import FloatArray
from hardmargin.solvers.regularization_path.kernel import ScaledKernel
from hardmargin.solvers.regularization_path.state import MarginState

#: Fields that are joined end to end from the arrays kept at the breakpoints.
_ARRAYS = {
    **dict.fromkeys(("elbow_rows", "change_rows"), np.int32),
    **dict.fromkeys(("elbow_multipliers", "crossing_C", "loo_C", "loo_change"), np.float64),
    "crossing_row": np.intp,
}


@dataclass(frozen=True, repr=False)
class RegularizationPath:
    """The regularisation path of one machine.

    Arrays have one entry per breakpoint, in ascending order of C. Between breakpoints multipliers,
    intercepts and decisions are linear in C. The first breakpoint is C = 0. A value of C appears
    twice where rows exchanged multipliers, which leaves the decisions the same.

    Attributes
    ----------
    C : array
        Where the pieces meet.
    intercept : array
        The bias; at C = 0 the label of the larger class, or 0 where both weigh the same. Zero
        throughout for SVMs without bias.
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
        Of w at a breakpoint and w at the next one; at the last, of w with itself.
    slack_sum : array
        Weighted sum of the slacks, which falls with C.
    labels, weights : (n,) arrays
        The machine's labels (0 for rows that were only scored) and weights.
    elbow_starts, elbow_rows, elbow_multipliers : arrays
        ``elbow_rows[elbow_starts[k] : elbow_starts[k + 1]]`` are on the margin from breakpoint k
        on, with these multipliers at k.
    change_starts, change_rows : arrays
        Rows that reach or leave their upper bound at each breakpoint.
    crossing_C, crossing_row : arrays
        Where the decisions of scored rows change their sign; ascending in C.
    loo_C, loo_change : arrays
        Where the leave-one-out bound changes, starting from its value at C = 0, and by how much.
        The bound is kept only with the multipliers.
    violation : float
        Certificate: the largest violation of the optimality conditions, at breakpoints and between
        them.
    n_stages, n_restarts : int
        Number of events, and how often the problem was solved anew.
    stop_reason : str
        ``"hard_margin"``: a larger C changes nothing. ``"norm"``: ``||w||`` has reached the limit
        that was given. ``"C_max"``, ``"max_stages"`` or the monitor's: so has C, or another
        limit. ``"stalled"``: rounding, or a kernel that is not positive semi-definite; the
        breakpoints up to there hold.
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
    stop_reason: str

    def __len__(self) -> int:
        return len(self.C)

    def __repr__(self) -> str:
        return (
            f"<RegularizationPath of {np.count_nonzero(self.labels)} rows: {len(self)} breakpoints "
            f"up to C = {self.C[-1]:.4g}, {self.stop_reason}>"
        )

    def multipliers(self, breakpoint: int) -> FloatArray:
        """Return alpha of all rows at a breakpoint.

        Rounding may put some beyond their bounds, by at most 1e-9 of the bound; they are not
        clipped, since their sum would then be wrong.
        """
        if len(self.elbow_starts) == 0:
            raise ValueError("This regularisation path was traced without keeping its multipliers.")
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
        """Return the least C whose ``||w||^2`` is this; the last C if none is that large."""
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


class Breakpoint(NamedTuple):
    """A solution on the scale of the problem as it was given."""

    C: float
    c: FloatArray
    f: FloatArray
    intercept: float


class Recorder:
    """Keeps breakpoints while a regularisation path is followed.

    They are on the scale of the problem as it was given: C is `C_unit` times that of the states.
    """

    def __init__(
        self,
        kernel: ScaledKernel,
        labels: FloatArray,
        weights: FloatArray,
        C_unit: float,
        keep_multipliers: bool,
    ) -> None:
        self.means, self.labels, self.own_share = kernel.means, labels, kernel.own_share(labels)
        self.weights = np.where(labels != 0, weights, 0.0)
        self.mass = self.weights / self.weights.sum()
        self.spread = float(np.abs(kernel.means - kernel.means.mean()).max())
        self.alpha_unit, self.C_unit, self.keep = 1.0 / kernel.scale, C_unit, keep_multipliers
        self.scored = np.flatnonzero(labels == 0)
        self.last: Breakpoint | None = None
        self.last_room = np.empty(0)
        self.was_below = np.zeros(len(labels), dtype=bool)
        self.squared_norm = 0.0
        self.kept: dict[str, list[Any]] = defaultdict(list)  # by field of RegularizationPath
        self._keep(**{name: np.empty(0, dtype=dtype) for name, dtype in _ARRAYS.items()})

    def breakpoint(self, state: MarginState) -> float:
        """Keep the current solution, and what happens between the last one and this.

        Returns the largest violation on the way. Where c does not quite add up to zero, margins
        with the given kernel differ from those with the centred one; that difference counts, too.
        """
        now, last, y = self._point(state), self.last, self.labels
        alpha, scores, below = now.c * y, y * now.f, state.is_below
        # How far each score exceeds the row's own share: the leave-one-out bound counts the rows
        # where it does not.
        room = scores - self.own_share(alpha) if self.keep else np.ones(len(y))
        values = now.f - state.b  # the bias has no part in w
        self.squared_norm = max(float(now.c @ values), 0.0)
        violation = abs(float(now.c.sum())) * self.spread
        if last is not None:
            self.kept["inner_product"][-1] = float(last.c @ values)
            self._piece(last, now, room)
            violation = max(violation, self._violation_between(last, now))
        self._keep(
            C=now.C,
            intercept=now.intercept,
            elbow_size=state.elbow.size,
            n_support=np.count_nonzero(now.c),
            error=self.mass @ np.where(y > 0, now.f < 0, now.f >= 0),
            loo_bound=self.mass @ (room <= 0),
            squared_norm=self.squared_norm,
            inner_product=self.squared_norm,
            slack_sum=self.weights[below] @ (1.0 - scores[below]),
        )
        if self.keep:
            elbow = state.elbow.rows
            self._keep(
                elbow_rows=elbow.astype(np.int32),
                elbow_multipliers=alpha[elbow],
                change_rows=np.flatnonzero(below != self.was_below).astype(np.int32),
            )
        self.last, self.last_room, self.was_below = now, room, below
        return violation

    def between(self, state: MarginState) -> float:
        """Return the largest violation on the way from the last breakpoint to a solution."""
        return 0.0 if self.last is None else self._violation_between(self.last, self._point(state))

    def path(
        self, C_end: float, violation: float, n_stages: int, n_restarts: int, stop_reason: str
    ) -> RegularizationPath:
        """Assemble what was kept; a C that differs from C_end only by rounding becomes C_end."""
        kept: dict[str, Any] = {
            name: np.concatenate(values) if name in _ARRAYS else np.array(values)
            for name, values in self.kept.items()
        }
        kept["C"][np.abs(kept["C"] - C_end) <= 1e-14 * C_end] = C_end
        kept["squared_norm"] = np.maximum.accumulate(kept["squared_norm"])  # despite rounding
        for place, what in (("crossing_C", "crossing_row"), ("loo_C", "loo_change")):
            order = np.argsort(kept[place], kind="stable")
            kept[place], kept[what] = kept[place][order], kept[what][order]
        for name in ("elbow", "change"):
            sizes = [len(rows) for rows in self.kept[f"{name}_rows"]] if self.keep else []
            kept[f"{name}_starts"] = np.cumsum(sizes, dtype=np.intp)
        return RegularizationPath(
            **kept,
            labels=self.labels,
            weights=self.weights,
            violation=violation,
            n_stages=n_stages,
            n_restarts=n_restarts,
            stop_reason=stop_reason,
        )

    def _keep(self, **values: Any) -> None:
        for name, value in values.items():
            self.kept[name].append(value)

    def _point(self, state: MarginState) -> Breakpoint:
        c = state.coefficients() * self.alpha_unit
        intercept = state.b - float(self.means @ c)
        return Breakpoint(state.level * self.C_unit, c, state.f.copy(), intercept)

    def _violation_between(self, last: Breakpoint, now: Breakpoint) -> float:
        """Return the largest violation between two solutions.

        Rows at the same bound at both ends violate the conditions no more in between. All others
        are off their bounds there, and so should be on the margin at both ends.
        """
        if now.C <= last.C:  # nothing is in between
            return 0.0
        twice_alpha, twice_upper = (last.c + now.c) * self.labels, (last.C + now.C) * self.weights
        rounding = 1e-9 * twice_upper
        free = (twice_alpha > rounding) & (twice_alpha < twice_upper - rounding)
        y = self.labels[free]
        ends = (y * last.f[free] - 1.0, y * now.f[free] - 1.0)
        return float(np.abs(ends).max(initial=0.0))

    def _piece(self, last: Breakpoint, now: Breakpoint, room: FloatArray) -> None:
        """Keep where signs change along a piece, on which scores and room are linear."""

        def zeros(before: FloatArray, after: FloatArray) -> FloatArray:
            """Return the C at which values of different signs are zero."""
            share = before / (before - after)
            return np.asarray(last.C + share * (now.C - last.C))

        if self.keep:
            before = self.last_room
            rows = np.flatnonzero(((before <= 0) != (room <= 0)) & (self.labels != 0))
            change = np.where(room[rows] <= 0, self.mass[rows], -self.mass[rows])
            self._keep(loo_C=zeros(before[rows], room[rows]), loo_change=change)
        if len(self.scored):
            rows = self.scored[(last.f[self.scored] >= 0) != (now.f[self.scored] >= 0)]
            self._keep(crossing_C=zeros(last.f[rows], now.f[rows]), crossing_row=rows)
