"""Views: the rows as one scaling shows them to a kernel.

A view is a function of the standardised rows. It may replace the values of a column by the normal
scores of their ranks, which skewed columns and outliers need, and scale the columns by their
relevance, so that columns that do not matter no longer set rows apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from hardmargin import _core
from hardmargin.kernels.blocks import column_ends

if TYPE_CHECKING:  # a kernel has a view
    from hardmargin.kernels.kernel import FloatArray

#: Normal scores are no further than this from the middle.
LARGEST_SCORE = 2.5

#: The scores of a column are interpolated between at most this many of its values.
MAX_KNOTS = 256


@dataclass(frozen=True, eq=False)
class Ranks:
    """How the values of columns turn into normal scores, by interpolation.

    Attributes
    ----------
    columns : (n_columns,) int array
        Columns that are changed: those with more than two values.
    starts : (n_columns + 1,) int array
        Where the knots of each of them begin, and where the last ones end.
    values, scores : (n_knots,) arrays
        Ascending values of the columns, one column after another, and their scores.
    """

    columns: NDArray[np.intp]
    starts: NDArray[np.intp]
    values: FloatArray
    scores: FloatArray

    @classmethod
    def of(cls, X: NDArray[Any], weights: FloatArray | None = None) -> Ranks:
        """Rank the values of every column; equal values have the middle of their ranks.

        Parameters
        ----------
        X : (n, d) array
            Rows.
        weights : (n,) array, optional
            How often each row counts.
        """
        w = np.ones(len(X)) if weights is None else weights
        columns, sizes, values, scores = [], [0], [], []
        for j in np.flatnonzero(column_ends(X).has_others):
            distinct, inverse = np.unique(X[:, j], return_inverse=True)
            mass = np.bincount(inverse, weights=w)
            distinct, mass = distinct[mass > 0], mass[mass > 0]
            if len(distinct) <= 2:
                continue
            share = np.clip((np.cumsum(mass) - mass / 2) / mass.sum(), 0.0, 1.0)
            score = np.clip(ndtri(share), -LARGEST_SCORE, LARGEST_SCORE)
            knots = np.arange(len(distinct))
            if len(knots) > MAX_KNOTS:
                at = np.linspace(share[0], share[-1], MAX_KNOTS)
                knots = np.unique(np.searchsorted(share, at).clip(max=len(knots) - 1))
            of_all = np.interp(distinct, distinct[knots], score[knots])
            mean = float(np.average(of_all, weights=mass))
            deviation = float(np.sqrt(np.average((of_all - mean) ** 2, weights=mass))) or 1.0
            columns.append(j)
            sizes.append(len(knots))
            values.append(distinct[knots].astype(np.float64))
            scores.append((score[knots] - mean) / deviation)
        nothing = np.empty(0)
        return cls(
            np.array(columns, dtype=np.intp),
            np.cumsum(sizes),
            np.concatenate([nothing, *values]),
            np.concatenate([nothing, *scores]),
        )

    def transform(self, X: NDArray[Any]) -> NDArray[Any]:
        """Replace the values of the columns by their scores."""
        ranked = np.array(X, dtype=np.float64, order="C")
        _core.interpolate_columns(ranked, self.columns, self.starts, self.values, self.scores)
        return ranked


@dataclass(frozen=True, eq=False)
class View:
    """The rows as one scaling shows them.

    Attributes
    ----------
    name : str
        What the rows are: ``"standardized"``, ``"rank"``, or ``"raw"``.
    ranks : Ranks or None
        How values turn into scores; None leaves them as they are.
    scales : (n_features,) array or None
        What every column is then multiplied by; None is one for all.
    """

    name: str
    ranks: Ranks | None = None
    scales: FloatArray | None = None

    def of(self, X: Any) -> Any:
        """Return rows as this view shows them."""
        X = X if self.ranks is None else self.ranks.transform(X)
        return X if self.scales is None else X * self.scales
