"""Predictions after every stage."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

from numpy.typing import NDArray

from hardmargin.estimators._base.one_model import on_one_model
from hardmargin.kernels import FloatArray


class _Staged(Protocol):
    """A classifier with scores of every stage."""

    classes_: NDArray[Any]

    def staged_decision_function(self, X: Any) -> Iterator[FloatArray]:
        """Scores after every stage, as `decision_function` gives them at the end."""


# A method of the classifiers that name it in their body.
@on_one_model
def staged_predict(self: _Staged, X: Any) -> Iterator[NDArray[Any]]:
    """Predictions after every stage.

    Parameters
    ----------
    X : (n_samples, n_features) array, data frame or sparse matrix
        Rows.

    Yields
    ------
    (n_samples,) array
    """
    for scores in self.staged_decision_function(X):
        winners = (scores >= 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        yield self.classes_[winners]
