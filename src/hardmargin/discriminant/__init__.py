"""Margin-maximising discriminant analysis, and the stacked ensemble on top of it."""
