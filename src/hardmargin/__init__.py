"""Kernel SVMs with nothing to tune."""

from hardmargin.classifiers import (
    EnsembleSVC,
    GreedySVC,
    HardMarginSVC,
    MultiplicativeSVC,
    ParzenClassifier,
    RhoSVC,
)
from hardmargin.reduction import compress

__all__ = [
    "EnsembleSVC",
    "GreedySVC",
    "HardMarginSVC",
    "MultiplicativeSVC",
    "ParzenClassifier",
    "RhoSVC",
    "compress",
]
__version__ = "0.1.0"
