"""Margin-maximising discriminant analysis, and the stacked ensemble on top of it."""

from hardmargin.discriminant.analysis import MarginDiscriminantAnalysis

__all__ = ["MarginDiscriminantAnalysis"]
