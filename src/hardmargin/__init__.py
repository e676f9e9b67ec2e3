"""Kernel SVMs with nothing to tune."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hardmargin import datasets
    from hardmargin.classifiers.core_vector import CoreVectorSVC
    from hardmargin.classifiers.ensemble import EnsembleSVC
    from hardmargin.classifiers.greedy import GreedySVC
    from hardmargin.classifiers.hard_margin import HardMarginSVC
    from hardmargin.classifiers.multiplicative import MultiplicativeSVC
    from hardmargin.classifiers.parzen import ParzenClassifier
    from hardmargin.classifiers.path import PathSVC
    from hardmargin.classifiers.rho import RhoSVC
    from hardmargin.classifiers.rigorous import RigorousSVC
    from hardmargin.discriminant.analysis import MarginDiscriminantAnalysis
    from hardmargin.discriminant.diversified import DiversifiedSVC
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
    "datasets",
]
__version__ = "0.1.0"

# Loaded when first asked for: all of them together take a quarter of a second.
_MODULES = {
    "CoreVectorSVC": "classifiers.core_vector",
    "DiversifiedSVC": "discriminant.diversified",
    "EnsembleSVC": "classifiers.ensemble",
    "GreedySVC": "classifiers.greedy",
    "HardMarginSVC": "classifiers.hard_margin",
    "MarginDiscriminantAnalysis": "discriminant.analysis",
    "MinimumEnclosingBall": "enclosing_ball",
    "MultiplicativeSVC": "classifiers.multiplicative",
    "ParzenClassifier": "classifiers.parzen",
    "PathSVC": "classifiers.path",
    "RhoSVC": "classifiers.rho",
    "RigorousSVC": "classifiers.rigorous",
    "compress": "reduction",
}


def __getattr__(name: str) -> Any:
    if name == "datasets":
        return importlib.import_module("hardmargin.datasets")
    if name not in _MODULES:
        raise AttributeError(f"module 'hardmargin' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"hardmargin.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
