"""The choice of C on a regularisation path: by rows held out, or by the leave-one-out bound."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hardmargin.kernels import FloatArray
from hardmargin.selection.folds import Folds
from hardmargin.solvers.regularization_path import RegularizationPath


@dataclass(frozen=True)
class ErrorCurve:
    """An error as a function of C, which is a step function.

    Attributes
    ----------
    C : array
        Where the error changes, ascending; the last is the end of the range.
    error : array
        Share of the weight that is misclassified, from each C to the next.
    """

    C: FloatArray
    error: FloatArray

    def best(self) -> tuple[float, float]:
        """Return a C of least error and that error.

        It is the middle of the longest range of C that has this error, on a logarithmic scale.
        """
        is_best = self.error <= self.error.min() + 1e-12
        edges = np.flatnonzero(np.diff(np.concatenate([[False], is_best, [False]]).astype(int)))
        starts, ends = edges[::2], np.minimum(edges[1::2], len(self.C) - 1)
        places = np.log(np.maximum(self.C, np.finfo(np.float64).tiny))  # C may be 0
        longest = int((places[ends] - places[starts]).argmax())
        first, last = starts[longest], ends[longest]
        middle = float(np.exp((places[first] + places[last]) / 2))
        return middle if first < last else float(self.C[first]), float(self.error[first])

    def at(self, C: float) -> float:
        """Return the error at a C of the range."""
        return float(self.error[max(int(np.searchsorted(self.C, C, side="right")) - 1, 0)])


#: Where rows are held out once only, the choice of C is judged by this many parts of them.
PARTS_OF_ONE_SPLIT = 5


class HeldOutChoice(NamedTuple):
    """The C chosen by rows held out, the error of this choice, and the error at every C."""

    C: float
    error: float
    curve: ErrorCurve


def by_rows_held_out(
    path: RegularizationPath,
    parts: Sequence[tuple[RegularizationPath, NDArray[np.bool_]]],
    positive: NDArray[np.bool_],
    weights: FloatArray,
    C_min: float | None,
) -> HeldOutChoice:
    """Choose a C as in :func:`held_out_curve`; without parts, by the leave-one-out bound."""
    if not parts:
        none = np.empty(0)
        return HeldOutChoice(loo_curve(path, C_min).best()[0], float("nan"), ErrorCurve(none, none))
    curve = held_out_curve(path, parts, positive, weights, C_min)
    error = error_of_choice(path, parts, positive, weights, C_min)
    return HeldOutChoice(curve.best()[0], error, curve)


def error_of_choice(
    path: RegularizationPath,
    parts: Sequence[tuple[RegularizationPath, NDArray[np.bool_]]],
    positive: NDArray[np.bool_],
    weights: FloatArray,
    C_min: float | None,
) -> float:
    """Return the held-out error of a C that has not seen the rows that judge it.

    The least error over all C is lower than that of new rows, as C was chosen to suit the rows held
    out. So the rows of every split are judged at the C that the other splits choose; where there is
    one split only, its rows are divided. Parameters are those of :func:`held_out_curve`.
    """
    scored = np.array([rows for _, rows in parts])
    group = np.where(scored.any(axis=0), scored.argmax(axis=0), -1)
    if len(np.unique(group[group >= 0])) == 1:
        for side in (positive, ~positive):
            at = np.flatnonzero((group >= 0) & side)
            group[at] = np.arange(len(at)) % PARTS_OF_ONE_SPLIT
    wrong = mass = 0.0
    for g in np.unique(group[group >= 0]):
        of_group, of_others = (
            [(part, rows & which) for part, rows in parts]
            for which in (group == g, (group >= 0) & (group != g))
        )
        own, others = (
            sum(float(weights[rows].sum()) for _, rows in some) for some in (of_group, of_others)
        )
        if own == 0 or others == 0:
            continue
        C, _ = held_out_curve(path, of_others, positive, weights, C_min).best()
        wrong += own * held_out_curve(path, of_group, positive, weights, C_min).at(C)
        mass += own
    return wrong / mass if mass else float("nan")


def loo_curve(path: RegularizationPath, C_min: float | None) -> ErrorCurve:
    """Return the leave-one-out bound from C_min on."""
    first = _least_C(path) if C_min is None else C_min
    return _curve(path.loo_C, path.loo_bound[0], path.loo_change, 1.0, first, float(path.C[-1]))


def held_out_curve(
    path: RegularizationPath,
    parts: Sequence[tuple[RegularizationPath, NDArray[np.bool_]]],
    positive: NDArray[np.bool_],
    weights: FloatArray,
    C_min: float | None,
) -> ErrorCurve:
    """Return the held-out error for all C that every regularisation path reaches.

    Parameters
    ----------
    path : RegularizationPath
        The regularisation path of all rows.
    parts : sequence of (RegularizationPath, bool array)
        Those that were each trained on a part of the rows, and the rows that they score.
    positive : (n,) bool array
        Labels.
    weights : (n,) array
        Weight of each row in the error.
    C_min : float or None
        The least C of the curve; None is a tenth of that of the first event.
    """
    everyone = [path, *(p for p, _ in parts)]
    # A hard margin stays the same for all larger C.
    last = min((p.C[-1] for p in everyone if p.stop_reason != "hard_margin"), default=np.inf)
    last = min(float(last), max(float(p.C[-1]) for p in everyone))
    first = min(_least_C(p) for p in everyone) if C_min is None else C_min
    places, changes = [], []
    start = mass = 0.0
    for part, scored in parts:
        counts = np.where(scored, weights, 0.0)
        at_start, change = _errors(part, positive, counts)
        start, mass = start + at_start, mass + float(counts.sum())
        places.append(part.crossing_C)
        changes.append(change)
    C, change = np.concatenate(places), np.concatenate(changes)
    order = np.argsort(C, kind="stable")
    return _curve(C[order], start, change[order], mass, first, last)


def _least_C(path: RegularizationPath) -> float:
    """Return a C before the first event, where b still moves away from the larger class."""
    return float(path.C[min(1, len(path) - 1)]) / 10


def _errors(
    path: RegularizationPath, positive: NDArray[np.bool_], weights: FloatArray
) -> tuple[float, FloatArray]:
    """Weight that is misclassified at C = 0, and what every change of sign adds to it."""
    is_wrong = (path.intercept[0] >= 0) != positive
    start = float(weights[is_wrong].sum())
    changes = np.empty(len(path.crossing_C))
    for k, row in enumerate(path.crossing_row):
        changes[k] = -weights[row] if is_wrong[row] else weights[row]
        is_wrong[row] = not is_wrong[row]
    return start, changes


def _curve(
    places: FloatArray, start: float, changes: FloatArray, mass: float, first: float, last: float
) -> ErrorCurve:
    """Add up changes, as shares of the mass, and cut the range."""
    first = min(first, last)
    wrong = start + np.concatenate([[0.0], np.cumsum(changes)])
    values = np.maximum(wrong, 0.0) / mass  # rounding can make a sum of weights negative
    inside = (places > first) & (places < last)
    C = np.concatenate([[first], np.unique(places[inside]), [last]])
    return ErrorCurve(C, values[np.searchsorted(places, C, side="right")])


def validation_split(
    codes: NDArray[np.int32], fraction: float, random_state: np.random.RandomState
) -> Folds:
    """Hold out a share of every class, at least one row; classes of a single row stay in training.

    Parameters
    ----------
    codes : (n,) int array
        Class of each row, -1 for rows that take no part.
    fraction : float
        Share of the rows.
    random_state : RandomState
        Draws them.
    """
    test = np.zeros(len(codes), dtype=bool)
    for code in range(codes.max() + 1):
        rows = np.flatnonzero(codes == code)
        size = min(max(round(fraction * len(rows)), 1), len(rows) - 1)
        test[random_state.permutation(rows)[:size]] = True
    if not test.any():
        none = np.zeros((0, len(codes)), dtype=bool)
        return Folds(none, none, "every class has a single row")
    return Folds((~test & (codes >= 0))[np.newaxis], test[np.newaxis])
