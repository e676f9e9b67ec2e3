"""The estimators: validation, labels, weights, multi-class; no loops over samples."""

from hardmargin.classifiers.greedy import GreedySVC

__all__ = ["GreedySVC"]
