"""Kernels: rows, gamma rules and values; also matrices, columns and low-rank factors."""

from hardmargin.kernels.blocks import RowBlocks, as_blocks, column_ends
from hardmargin.kernels.kernel import (
    DISTANCE_KERNELS,
    GAMMA_RULES,
    METRICS,
    NAMED_KERNELS,
    Check,
    FloatArray,
    Kernel,
    KernelFunction,
    KernelRows,
    Precision,
    Rows,
    aligned,
    as_core_matrix,
    canonical,
    check_indices,
    is_sparse,
    make_kernel,
    resolve_gamma,
)
from hardmargin.kernels.kernel_sum import KernelSum, linear_weights
from hardmargin.kernels.views import Ranks, View

__all__ = [
    "DISTANCE_KERNELS",
    "GAMMA_RULES",
    "METRICS",
    "NAMED_KERNELS",
    "Check",
    "FloatArray",
    "Kernel",
    "KernelFunction",
    "KernelRows",
    "KernelSum",
    "Precision",
    "Ranks",
    "RowBlocks",
    "Rows",
    "View",
    "aligned",
    "as_blocks",
    "as_core_matrix",
    "canonical",
    "check_indices",
    "column_ends",
    "is_sparse",
    "linear_weights",
    "make_kernel",
    "resolve_gamma",
]
