"""Probabilities where no rows were held out: frequencies of classes, moved by the decision.

Scores of training rows say nothing about how sure a decision is, and a machine may be no better
than chance. What is known is how frequent the classes are, and which of them a row is more like.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hardmargin.kernels import FloatArray
from hardmargin.selection.calibration import class_scores

#: By this share, a class is less likely than an equally frequent one that ranks before it.
TILT = 1e-6


@dataclass(frozen=True)
class Frequencies:
    """How margins turn into decisions, and frequencies of classes into probabilities.

    Attributes
    ----------
    shares : (n_classes,) array
        How frequent the classes are.
    multi_class : {"ovo", "ovr"}
        How machines divide the classes.

    Examples
    --------
    >>> import numpy as np
    >>> from hardmargin.selection.frequencies import Frequencies
    >>> found = Frequencies(np.array([0.8, 0.2]), "ovo").probabilities(np.array([[-2.0], [2.0]]))
    >>> found.round(3)
    array([[0.8, 0.2],
           [0.5, 0.5]])
    """

    shares: FloatArray
    multi_class: str

    @classmethod
    def of(
        cls, codes: NDArray[np.int32], weights: FloatArray, n_classes: int, multi_class: str
    ) -> Frequencies:
        """Count classes, and one more row of each, so that none is impossible."""
        present = codes >= 0
        mass = np.bincount(codes[present], weights=weights[present], minlength=n_classes) + 1.0
        return cls(mass / mass.sum(), multi_class)

    @property
    def tilts(self) -> FloatArray:
        """What the probability of each rank is multiplied by."""
        return np.asarray((1.0 - TILT) ** np.arange(len(self.shares)))

    def scores(self, margins: FloatArray) -> FloatArray:
        """Decisions of shape (n, n_classes)."""
        return class_scores(margins, len(self.shares), self.multi_class)

    def probabilities(self, margins: FloatArray) -> FloatArray:
        """Probabilities of shape (n, n_classes), in the order of the decisions.

        A class counts as at least as frequent as every class that ranks behind it.
        """
        scores = self.scores(margins)
        if len(self.shares) == 2:  # of equal scores, the second is predicted
            ranks = np.where(margins >= 0, [[1, 0]], [[0, 1]])
        else:
            ranks = np.argsort(-scores, axis=1, kind="stable")
        frequent = np.maximum.accumulate(self.shares[ranks][:, ::-1], axis=1)[:, ::-1] * self.tilts
        found = np.empty_like(scores)
        np.put_along_axis(found, ranks, frequent / frequent.sum(axis=1, keepdims=True), axis=1)
        return found
