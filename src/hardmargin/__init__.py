"""Kernel SVMs with nothing to tune."""

from hardmargin.classifiers import GreedySVC

__all__ = ["GreedySVC"]
__version__ = "0.1.0"
