"""Kernel SVMs with nothing to tune."""

from hardmargin.classifiers import (
    CoreVectorSVC,
    EnsembleSVC,
    GreedySVC,
    HardMarginSVC,
    MultiplicativeSVC,
    ParzenClassifier,
    RhoSVC,
)
from hardmargin.reduction import compress

__all__ = [
    "CoreVectorSVC",
    "EnsembleSVC",
    "GreedySVC",
    "HardMarginSVC",
    "MultiplicativeSVC",
    "ParzenClassifier",
    "RhoSVC",
    "compress",
]
__version__ = "0.1.0"
