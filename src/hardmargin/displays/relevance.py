"""How much each column moves the decision."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hardmargin.displays._axes import axes_to_use, final_step
from hardmargin.kernels import FloatArray


class RelevanceDisplay:
    """Bars of the columns' relevance, the most relevant on top.

    They show how much each column moves the log-odds, not what it is worth: an identifier has a bar
    too. ``sklearn.inspection.permutation_importance`` measures on rows set aside what is lost
    without a column.

    Parameters
    ----------
    relevance : (n_columns,) array
        The numbers, in descending order.
    names : (n_columns,) array
        Names of the columns.
    n_others : int, default=0
        Columns that are not shown.

    Attributes
    ----------
    ax_, figure_
        Matplotlib's axes and figure.
    bars_ : BarContainer
        The bars.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from hardmargin import EnsembleSVC
    >>> from hardmargin.displays import RelevanceDisplay
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> display = RelevanceDisplay.from_estimator(EnsembleSVC().fit(X, y))
    >>> display.names[0][:5]
    'petal'
    """

    def __init__(self, relevance: FloatArray, names: NDArray[Any], n_others: int = 0) -> None:
        self.relevance = relevance
        self.names = names
        self.n_others = n_others

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, n_columns: int = 20, ax: Any = None, **bar_kwargs: Any
    ) -> Self:
        """Draw the relevance of a fitted model's columns.

        Parameters
        ----------
        estimator : classifier or Pipeline
            Fitted, with ``relevance_``.
        n_columns : int, default=20
            The most columns to show.
        ax : matplotlib axes, optional
            Where to draw.
        **bar_kwargs
            Passed to ``ax.barh``.

        Returns
        -------
        RelevanceDisplay
        """
        model = final_step(
            estimator, "relevance_", "EnsembleSVC or GreedySVC with relevance, on dense rows"
        )
        if n_columns < 1:
            raise ValueError(f"n_columns must be at least 1, got {n_columns}.")
        names = getattr(model, "feature_names_in_", None)
        if names is None:
            names = np.array([f"column {j}" for j in range(len(model.relevance_))])
        order = np.argsort(-model.relevance_, kind="stable")[:n_columns]
        display = cls(model.relevance_[order], names[order], len(model.relevance_) - len(order))
        return display.plot(ax=ax, **bar_kwargs)

    def plot(self, *, ax: Any = None, **bar_kwargs: Any) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where; new ones by default.
        **bar_kwargs
            Passed to ``ax.barh``.

        Returns
        -------
        self
        """
        ax = axes_to_use(ax)
        places = np.arange(len(self.relevance))[::-1]
        self.bars_ = ax.barh(places, self.relevance, **bar_kwargs)
        ax.set_yticks(places, [str(name) for name in self.names])
        more = f" ({self.n_others} more columns)" if self.n_others else ""
        label = f"relevance: how much a column moves the log-odds{more}"
        ax.set(xlabel=label, xlim=(0, 1.05 * max(float(self.relevance.max()), 1e-12)))
        self.ax_, self.figure_ = ax, ax.figure
        return self
