"""What a kernel is: rows, gamma rules, values; matrices, columns and low rank beside them."""

from hardmargin.kernels.gamma import GAMMA_RULES, resolve_gamma
from hardmargin.kernels.kernel import (
    DISTANCE_KERNELS,
    NAMED_KERNELS,
    Kernel,
    KernelFunction,
    KernelSum,
    distances,
    make_kernel,
)
from hardmargin.kernels.rows import (
    FloatArray,
    Precision,
    Rows,
    as_core_matrix,
    canonical,
    is_sparse,
)

__all__ = [
    "DISTANCE_KERNELS",
    "GAMMA_RULES",
    "NAMED_KERNELS",
    "FloatArray",
    "Kernel",
    "KernelFunction",
    "KernelSum",
    "Precision",
    "Rows",
    "as_core_matrix",
    "canonical",
    "distances",
    "is_sparse",
    "make_kernel",
    "resolve_gamma",
]
