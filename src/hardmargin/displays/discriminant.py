"""Rows along discriminant directions."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hardmargin.displays._axes import axes_to_use, final_step
from hardmargin.kernels import FloatArray


class DiscriminantDisplay:
    """Rows projected onto two directions, coloured by class.

    Parameters
    ----------
    projections : (n_samples, 2) array
        Where the rows are.
    y : (n_samples,) array
        Their labels.
    names : pair of str
        What the directions are called.

    Attributes
    ----------
    ax_, figure_
        Matplotlib's axes and figure.
    points_ : list of PathCollection
        One per class.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from hardmargin import MarginDiscriminantAnalysis
    >>> from hardmargin.displays import DiscriminantDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> directions = MarginDiscriminantAnalysis(n_directions=1).fit(X, y)
    >>> DiscriminantDisplay.from_estimator(directions, X, y).projections.shape
    (150, 2)
    """

    def __init__(
        self,
        projections: FloatArray,
        y: NDArray[Any],
        names: tuple[str, str] = ("direction 0", "direction 1"),
    ) -> None:
        self.projections = projections
        self.y = y
        self.names = names

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        directions: tuple[int, int] = (0, 1),
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Draw rows along two directions of a fitted transformer.

        Parameters
        ----------
        estimator : MarginDiscriminantAnalysis or Pipeline
            Fitted.
        X, y : rows and labels
            Which rows.
        directions : pair of int, default=(0, 1)
            Columns of ``transform``.
        ax : matplotlib axes, optional
            Where to draw.
        **kwargs
            Passed to ``ax.scatter``.

        Returns
        -------
        DiscriminantDisplay
        """
        model = final_step(estimator, "direction_classes_", "MarginDiscriminantAnalysis")
        found = np.asarray(estimator.transform(X))  # it may be a data frame
        n = found.shape[1]
        if n < 2:
            raise ValueError("There is a single direction; raise n_directions to draw two.")
        if any(not 0 <= d < n for d in directions):
            raise ValueError(f"directions must be 0 to {n - 1}, got {directions}.")
        first, second = directions
        names = (
            f"direction {first}, of class {model.direction_classes_[first]}",
            f"direction {second}, of class {model.direction_classes_[second]}",
        )
        return cls.from_predictions(y, found[:, list(directions)], names=names, ax=ax, **kwargs)

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        projections: Any,
        *,
        names: tuple[str, str] = ("direction 0", "direction 1"),
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Draw projections that are known.

        Parameters
        ----------
        y_true : (n_samples,) array
            Labels.
        projections : (n_samples, 2) array
            Where the rows are.
        names : pair of str
            What the directions are called.
        ax : matplotlib axes, optional
            Where to draw.
        **kwargs
            Passed to ``ax.scatter``.

        Returns
        -------
        DiscriminantDisplay
        """
        places, labels = np.asarray(projections, dtype=np.float64), np.asarray(y_true)
        if places.ndim != 2 or places.shape[1] != 2 or len(places) != len(labels):
            raise ValueError(
                f"Projections of shape {places.shape} are not two numbers for each of "
                f"{len(labels)} labels."
            )
        return cls(places, labels, names).plot(ax=ax, **kwargs)

    def plot(self, *, ax: Any = None, **kwargs: Any) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where; new ones by default.
        **kwargs
            Passed to ``ax.scatter``.

        Returns
        -------
        self
        """
        ax = axes_to_use(ax)
        classes = np.unique(self.y)
        colours: list[Any] = [f"C{k}" for k in range(10)]
        if len(classes) > len(colours):
            import matplotlib

            spectrum = matplotlib.colormaps["turbo"]
            colours = [spectrum(k / (len(classes) - 1)) for k in range(len(classes))]
        self.points_ = [
            ax.scatter(
                *self.projections[self.y == label].T,
                **{"s": 16, "alpha": 0.8, "color": colour, "label": str(label), **kwargs},
            )
            for label, colour in zip(classes, colours, strict=False)
        ]
        ax.set(xlabel=self.names[0], ylabel=self.names[1])
        ax.legend(title="class", ncols=1 + len(classes) // 12)
        self.ax_, self.figure_ = ax, ax.figure
        return self
