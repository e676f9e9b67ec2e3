"""Views that have not seen the labels of the rows held out: relevance found anew for every split.

Relevance that is found with the labels of all rows makes held-out scores too good: the more columns
for every row, the more. So the machine of every split finds its own, with its training rows.

1. The columns of a first vote are the machines of all rows, of every split, and of shuffled labels.
   They share kernel matrices, but each has coefficients of its own.
2. Squared derivatives of their log-odds, less what shuffled labels move, are relevance
   (``relevance.py``): one vector for all rows, which scales the view that predicts, and one for
   every split, whose view judges.
3. A kernel of a scaled view then has one matrix per column. Its width is that of its own view.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hardmargin.kernels import FloatArray, Kernel, View, column_ends
from hardmargin.selection.relevance import (
    Sensed,
    column_scales,
    mean_squares,
    relative,
    without_chance,
)
from hardmargin.selection.vote import Vote, unit_gamma

#: Columns of shuffled labels in the first vote.
N_SHUFFLES = 2


@dataclass(frozen=True)
class SplitViews:
    """Scaled views: those that predict, and those of the splits.

    Attributes
    ----------
    of_splits : dict of View to tuples of View
        The views of the splits, by the scaled view of all rows.
    scaled : dict of View to View
        The scaled view of all rows, by the view without scales.
    relevance : (d,) array
        How much each column matters with the labels of all rows, the largest being one.
    """

    of_splits: dict[View, tuple[View, ...]]
    scaled: dict[View, View]
    relevance: FloatArray

    def kernels_of_splits(
        self, kernel: Kernel, X: NDArray[np.float64], weights: FloatArray
    ) -> list[Kernel]:
        """Return what the splits use in place of a kernel; X are rows of positive weights."""
        assert kernel.view is not None
        width = kernel.gamma / unit_gamma(kernel.name, kernel.view.of(X), weights)
        return [
            replace(kernel, view=view, gamma=width * unit_gamma(kernel.name, view.of(X), weights))
            for view in self.of_splits[kernel.view]
        ]


def find_split_views(
    views: Sequence[View],
    kernels: Sequence[Kernel],
    votes: Sequence[Vote],
    n_splits: int,
    X: NDArray[np.float64],
    weights: FloatArray,
    n_rows: float,
    random_state: np.random.RandomState,
) -> SplitViews | None:
    """Find the relevance of all rows and of every split, and scale the views by it.

    Parameters
    ----------
    views : sequence of View
        Without scales.
    kernels : sequence of Kernel
        The kernels of the first vote.
    votes : sequence of Vote
        Their votes, one per machine, with the coefficients of all columns.
    n_splits : int
        Number of splits; the columns after theirs have shuffled labels.
    X, weights : arrays
        The rows, and their weights.
    n_rows : float
        Number of rows, as the weights count them.
    random_state : RandomState
        Draws a direction.

    Returns
    -------
    SplitViews, or None where no view moves the log-odds
    """
    low, high, is_many_valued = column_ends(X, weights)
    machines = [_columns_of(vote) for vote in votes]
    columns = [list(of_column) for of_column in zip(*machines, strict=True)]
    of_splits, scaled, known = {}, {}, []
    for view in views:
        squares = mean_squares(view, kernels, columns, X, weights, random_state)
        if squares is None:
            continue
        own, of_shuffled = np.split(squares, [1 + n_splits])
        fair = without_chance(own, of_shuffled, low < high, is_many_valued, n_rows)
        relevance = relative(fair)
        known.append(relevance[0])
        first, *others = (
            replace(view, scales=column_scales(of_column, is_many_valued))
            for of_column in relevance
        )
        scaled[view], of_splits[first] = first, tuple(others)
    if not known:
        return None
    mean = np.mean(known, axis=0)
    return SplitViews(of_splits, scaled, mean / mean.max())


def _columns_of(vote: Vote) -> list[Sensed]:
    """Return the machine of all rows, those of the splits, and those of shuffled labels."""
    paths = [path.of_columns for path in vote.paths if path.of_columns is not None]
    coefficients = np.einsum("k,kcn->ckn", vote.shares, np.array(paths))
    return [Sensed(vote.rows, own, vote.slope) for own in coefficients]
