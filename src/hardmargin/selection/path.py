"""Which C of a regularisation path: by rows held out, or by the leave-one-out bound."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hardmargin.kernels import FloatArray
from hardmargin.selection.folds import Folds
from hardmargin.solvers.path_record import RegularizationPath


@dataclass(frozen=True)
class Curve:
    """Errors along a path.

    Attributes
    ----------
    C : array
        Ascending.
    error : array
        Share of the weight that is misclassified, from each C to the next.
    """

    C: FloatArray
    error: FloatArray

    def best(self) -> tuple[float, float]:
        """Return a C of least error and that error.

        Of the ranges of C that have it, the one is taken that is longest on a logarithmic scale,
        and of its values the one next to the middle.
        """
        is_best = self.error <= self.error.min() + 1e-12
        edges = np.flatnonzero(np.diff(np.concatenate([[False], is_best, [False]]).astype(int)))
        starts, ends = edges[::2], edges[1::2] - 1
        places = np.log(np.maximum(self.C, np.finfo(np.float64).tiny))
        after = np.minimum(ends + 1, len(places) - 1)
        longest = int((places[after] - places[starts]).argmax())
        first, last = starts[longest], ends[longest]
        middle = (places[first] + places[last]) / 2
        nearest = first + int(np.abs(places[first : last + 1] - middle).argmin())
        return float(self.C[nearest]), float(self.error[nearest])


def loo_curve(path: RegularizationPath, C_min: float | None) -> Curve:
    """Return the leave-one-out bound at the breakpoints from C_min on."""
    kept = _range(path.C, path.C[min(1, len(path) - 1)] if C_min is None else C_min)
    return Curve(path.C[kept], path.loo_bound[kept])


def held_out_curve(
    path: RegularizationPath,
    parts: Sequence[tuple[RegularizationPath, NDArray[np.bool_]]],
    positive: NDArray[np.bool_],
    weights: FloatArray,
    C_min: float | None,
) -> Curve:
    """Return the held-out error at all breakpoints that every path has come to.

    Parameters
    ----------
    path : RegularizationPath
        Of all rows.
    parts : sequence of (RegularizationPath, bool array)
        Paths that were trained on a part of the rows each, and the rows that are scored.
    positive : (n,) bool array
        Labels.
    weights : (n,) array
        What each row counts.
    C_min : float or None
        The least C of the curve; None stands for the first event.
    """
    everyone = [path, *(p for p, _ in parts)]
    # A hard margin stays what it is for all larger C.
    last = min((p.C[-1] for p in everyone if p.stop_reason != "hard_margin"), default=np.inf)
    grid = np.unique(np.concatenate([p.C for p in everyone]))
    grid = grid[grid <= last]
    first = min(p.C[min(1, len(p) - 1)] for p in everyone) if C_min is None else C_min
    grid = grid[_range(grid, first)]
    wrong = np.zeros(len(grid))
    mass = 0.0
    for part, scored in parts:
        counts = np.where(scored, weights, 0.0)
        wrong += _errors(part, positive, counts)[np.searchsorted(part.crossing_C, grid, "right")]
        mass += float(counts.sum())
    return Curve(grid, wrong / mass)


def _errors(
    path: RegularizationPath, positive: NDArray[np.bool_], weights: FloatArray
) -> FloatArray:
    """Weight that is misclassified before the first change of a sign, after it, and so on."""
    says_positive = np.full(len(positive), path.intercept[0] >= 0)
    is_wrong = says_positive != positive
    changes = np.empty(len(path.crossing_C))
    for k, row in enumerate(path.crossing_row):
        changes[k] = -weights[row] if is_wrong[row] else weights[row]
        is_wrong[row] = not is_wrong[row]
    start = float(weights[says_positive != positive].sum())
    return start + np.concatenate([[0.0], np.cumsum(changes)])


def _range(C: FloatArray, first: float) -> slice:
    """Values from `first` on, or at least the last of them."""
    return slice(min(int(np.searchsorted(C, first)), len(C) - 1), None)


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
