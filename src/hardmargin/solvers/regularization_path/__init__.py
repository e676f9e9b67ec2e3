"""The SVM for every C at once: ``solve`` follows its regularisation path."""

from hardmargin.solvers.regularization_path.kernel import CentredKernel
from hardmargin.solvers.regularization_path.record import RegularizationPath
from hardmargin.solvers.regularization_path.tracer import (
    RegularizationPathOptions,
    RegularizationPathSolution,
    solve,
)

__all__ = [
    "CentredKernel",
    "RegularizationPath",
    "RegularizationPathOptions",
    "RegularizationPathSolution",
    "solve",
]
