"""The SVM for every C at once: ``solve`` follows its regularisation path."""

from hardmargin.solvers.regularization_path.kernel import ScaledKernel
from hardmargin.solvers.regularization_path.record import RegularizationPath
from hardmargin.solvers.regularization_path.tracer import (
    RegularizationPathOptions,
    RegularizationPathSolution,
    solve,
)

__all__ = [
    "RegularizationPath",
    "RegularizationPathOptions",
    "RegularizationPathSolution",
    "ScaledKernel",
    "solve",
]
