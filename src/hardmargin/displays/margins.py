"""How far rows are from the decision boundary."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hardmargin.displays._axes import axes_to_use, final_step
from hardmargin.kernels import FloatArray


class MarginDistributionDisplay:
    """Cumulative share of the rows by their margin: below zero they are on the wrong side.

    The margin of a row is its score times its class (-1 or 1) or, with many classes, the score of
    its class minus the largest of the others.

    Parameters
    ----------
    margins : (n_samples,) array
        In ascending order.
    name : str or None, default=None
        What the curve is called.

    Attributes
    ----------
    ax_, figure_
        Matplotlib's axes and figure.
    line_ : Line2D
        The curve.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from hardmargin import GreedySVC
    >>> from hardmargin.displays import MarginDistributionDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> display = MarginDistributionDisplay.from_estimator(GreedySVC().fit(X, y), X, y)
    >>> bool((display.margins > 0).mean() > 0.9)
    True
    """

    def __init__(self, margins: FloatArray, name: str | None = None) -> None:
        self.margins = margins
        self.name = name

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        name: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the margins of rows under a fitted classifier.

        Parameters
        ----------
        estimator : classifier or Pipeline
            Fitted, with ``decision_function``.
        X, y : rows and labels
            Which rows.
        name : str, optional
            What the curve is called; the class of the classifier by default.
        ax : matplotlib axes, optional
            Where to draw.
        **kwargs
            Passed to ``ax.plot``.

        Returns
        -------
        MarginDistributionDisplay
        """
        final = final_step(estimator, "decision_function", "a classifier with scores")
        return cls.from_predictions(
            y,
            estimator.decision_function(X),
            classes=final.classes_,
            name=type(final).__name__ if name is None else name,
            ax=ax,
            **kwargs,
        )

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        scores: Any,
        *,
        classes: Any = None,
        name: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the margins that scores give.

        Parameters
        ----------
        y_true : (n_samples,) array
            Labels.
        scores : (n_samples,) array, or (n_samples, n_classes) for more than two classes
            What ``decision_function`` returns.
        classes : array, optional
            The labels in the order of the scores; the sorted ones of `y_true` by default.
        name : str, optional
            What the curve is called.
        ax : matplotlib axes, optional
            Where to draw.
        **kwargs
            Passed to ``ax.plot``.

        Returns
        -------
        MarginDistributionDisplay
        """
        margins = margins_of(y_true, scores, classes)
        return cls(np.sort(margins), name).plot(ax=ax, **kwargs)

    def plot(self, *, ax: Any = None, **kwargs: Any) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where; new ones by default.
        **kwargs
            Passed to ``ax.plot``.

        Returns
        -------
        self
        """
        ax = axes_to_use(ax)
        share = np.arange(1, len(self.margins) + 1) / len(self.margins)
        (self.line_,) = ax.plot(
            self.margins, share, **{"drawstyle": "steps-post", "label": self.name, **kwargs}
        )
        ax.axvline(0.0, color="0.6", linewidth=1, zorder=0)
        ax.set(xlabel="margin (below 0: wrong)", ylabel="share of the rows", ylim=(0, 1.02))
        if self.line_.get_label() and not str(self.line_.get_label()).startswith("_"):
            ax.legend()
        self.ax_, self.figure_ = ax, ax.figure
        return self


def margins_of(y_true: Any, scores: Any, classes: Any = None) -> FloatArray:
    """Compute how far rows are on the right side."""
    y_true, scores = np.asarray(y_true), np.asarray(scores, dtype=np.float64)
    labels: NDArray[Any] = np.unique(y_true) if classes is None else np.asarray(classes)
    if len(scores) != len(y_true):
        raise ValueError(f"There are {len(y_true)} labels, but scores of {len(scores)} rows.")
    codes = np.searchsorted(labels, y_true)
    if (labels[np.minimum(codes, len(labels) - 1)] != y_true).any():
        raise ValueError("Some labels are not among the classes.")
    if scores.ndim == 1:
        if len(labels) != 2:
            raise ValueError(f"Scores in one column are those of two classes, not {len(labels)}.")
        return np.asarray(np.where(codes == 1, scores, -scores))
    if scores.shape[1] != len(labels):
        raise ValueError(
            f"Scores have {scores.shape[1]} columns, but there are {len(labels)} classes."
        )
    rows = np.arange(len(scores))
    others = scores.copy()
    others[rows, codes] = -np.inf
    margins: FloatArray = scores[rows, codes] - others.max(axis=1)
    return margins
