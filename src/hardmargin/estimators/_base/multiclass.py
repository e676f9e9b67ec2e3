"""Many classes as many two-class machines, and back."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from hardmargin.kernels import FloatArray
from hardmargin.solvers.problem import Machine


def machines_of(n_classes: int, multi_class: str) -> list[Machine]:
    """Negative and positive classes of every machine, pairs in scikit-learn's order."""
    if n_classes == 2 or multi_class == "ovo":
        return [([i], [j]) for i, j in combinations(range(n_classes), 2)]
    everyone = range(n_classes)
    return [([other for other in everyone if other != c], [c]) for c in everyone]


def class_scores(margins: FloatArray, n_classes: int, multi_class: str) -> FloatArray:
    """Scores of shape (n, n_classes) from the machines' margins of shape (n, n_machines).

    One-vs-one: a vote a pair, and confidences squeezed into less than half a vote to settle ties,
    as in scikit-learn.
    """
    if multi_class == "ovr":
        return margins
    by_machine = np.ascontiguousarray(margins.T)
    votes = np.zeros((n_classes, margins.shape[0]))
    confidence = np.zeros_like(votes)
    for margin, (i, j) in zip(by_machine, combinations(range(n_classes), 2), strict=True):
        wins = margin >= 0
        votes[j] += wins
        votes[i] += ~wins
        confidence[j] += margin
        confidence[i] -= margin
    scores: FloatArray = votes + confidence / (3 * (np.abs(confidence) + 1))
    return scores.T
