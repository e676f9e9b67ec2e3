"""The estimators: validation, labels, weights, multi-class; no loops over samples."""

from hardmargin.classifiers.core_vector import CoreVectorSVC
from hardmargin.classifiers.ensemble import EnsembleSVC
from hardmargin.classifiers.greedy import GreedySVC
from hardmargin.classifiers.hard_margin import HardMarginSVC
from hardmargin.classifiers.multiplicative import MultiplicativeSVC
from hardmargin.classifiers.parzen import ParzenClassifier
from hardmargin.classifiers.path import PathSVC
from hardmargin.classifiers.rho import RhoSVC
from hardmargin.classifiers.rigorous import RigorousSVC

__all__ = [
    "CoreVectorSVC",
    "EnsembleSVC",
    "GreedySVC",
    "HardMarginSVC",
    "MultiplicativeSVC",
    "ParzenClassifier",
    "PathSVC",
    "RhoSVC",
    "RigorousSVC",
]
