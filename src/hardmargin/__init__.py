"""Kernel SVMs with nothing to tune."""

from hardmargin.classifiers import (
    EnsembleSVC,
    GreedySVC,
    HardMarginSVC,
    MultiplicativeSVC,
    ParzenClassifier,
    RhoSVC,
)

__all__ = [
    "EnsembleSVC",
    "GreedySVC",
    "HardMarginSVC",
    "MultiplicativeSVC",
    "ParzenClassifier",
    "RhoSVC",
]
__version__ = "0.1.0"
