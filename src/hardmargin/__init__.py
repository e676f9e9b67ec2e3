"""Kernel SVMs with nothing to tune."""

from hardmargin.classifiers import (
    CoreVectorSVC,
    EnsembleSVC,
    GreedySVC,
    HardMarginSVC,
    MultiplicativeSVC,
    ParzenClassifier,
    PathSVC,
    RhoSVC,
    RigorousSVC,
)
from hardmargin.discriminant import DiversifiedSVC, MarginDiscriminantAnalysis
from hardmargin.enclosing_ball import MinimumEnclosingBall
from hardmargin.reduction import compress

__all__ = [
    "CoreVectorSVC",
    "DiversifiedSVC",
    "EnsembleSVC",
    "GreedySVC",
    "HardMarginSVC",
    "MarginDiscriminantAnalysis",
    "MinimumEnclosingBall",
    "MultiplicativeSVC",
    "ParzenClassifier",
    "PathSVC",
    "RhoSVC",
    "RigorousSVC",
    "compress",
]
__version__ = "0.1.0"
