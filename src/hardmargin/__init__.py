"""Kernel SVMs with nothing to tune."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hardmargin import datasets
    from hardmargin.estimators.core_vector import CoreVectorSVC
    from hardmargin.estimators.discriminant import MarginDiscriminantAnalysis
    from hardmargin.estimators.diversified import DiversifiedSVC
    from hardmargin.estimators.enclosing_ball import MinimumEnclosingBall
    from hardmargin.estimators.ensemble import EnsembleSVC
    from hardmargin.estimators.greedy import GreedySVC
    from hardmargin.estimators.hard_margin import HardMarginSVC
    from hardmargin.estimators.multiplicative import MultiplicativeSVC
    from hardmargin.estimators.parzen import ParzenClassifier
    from hardmargin.estimators.path import PathSVC
    from hardmargin.estimators.rho import RhoSVC
    from hardmargin.estimators.rho_ensemble import RhoEnsembleSVC
    from hardmargin.estimators.rigorous import RigorousSVC
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
    "RhoEnsembleSVC",
    "RhoSVC",
    "RigorousSVC",
    "compress",
    "datasets",
]
__version__ = "0.2.0"

# Imported on first use: importing all of them takes a quarter of a second.
_MODULES = {
    "CoreVectorSVC": "estimators.core_vector",
    "DiversifiedSVC": "estimators.diversified",
    "EnsembleSVC": "estimators.ensemble",
    "GreedySVC": "estimators.greedy",
    "HardMarginSVC": "estimators.hard_margin",
    "MarginDiscriminantAnalysis": "estimators.discriminant",
    "MinimumEnclosingBall": "estimators.enclosing_ball",
    "MultiplicativeSVC": "estimators.multiplicative",
    "ParzenClassifier": "estimators.parzen",
    "PathSVC": "estimators.path",
    "RhoEnsembleSVC": "estimators.rho_ensemble",
    "RhoSVC": "estimators.rho",
    "RigorousSVC": "estimators.rigorous",
    "compress": "reduction",
}
_SUBPACKAGES = {"datasets", "displays", "io", "kernels", "solvers"}


def __getattr__(name: str) -> Any:
    if name in _SUBPACKAGES:
        return importlib.import_module(f"hardmargin.{name}")
    if name not in _MODULES:
        raise AttributeError(f"module 'hardmargin' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"hardmargin.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
