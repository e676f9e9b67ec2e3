"""Margin-maximising discriminant analysis, and the stacked ensemble on top of it."""

from hardmargin.discriminant.analysis import MarginDiscriminantAnalysis
from hardmargin.discriminant.diversified import DiversifiedSVC

__all__ = ["DiversifiedSVC", "MarginDiscriminantAnalysis"]
