"""Which precision of kernel values suits rows, and whether a kernel tells them apart at all."""

from __future__ import annotations

import numpy as np

from hardmargin.kernels.blocks import as_blocks
from hardmargin.kernels.kernel import (
    MAX_FLOAT32_FEATURE,
    METRICS,
    FloatArray,
    Kernel,
    Precision,
    Rows,
    largest_size,
)
from hardmargin.warn import warn_caller

#: Up to this many rows ``dtype="auto"`` evaluates kernels in float64.
MAX_FLOAT64_ROWS = 5_000

#: The largest number of float32.
MAX_FLOAT32 = float(np.finfo(np.float32).max)

#: Rows that are compared with each other to see whether a kernel distinguishes rows.
ROWS_TO_TELL_APART = 64

#: A kernel is flat if gamma times the distance is less than this for nearly all pairs of rows.
FLAT = 1e-4


def precision(X: Rows, dtype: str, kernel: Kernel) -> Precision:
    """Return the precision of kernel values that `dtype` stands for."""
    if dtype == "float64" or (dtype == "auto" and X.shape[0] <= MAX_FLOAT64_ROWS):
        return "float64"
    if kernel.name in ("precomputed", "callable"):
        return "float32"
    largest = largest_size(X)
    if largest <= MAX_FLOAT32_FEATURE and (
        dtype == "float32"  # solvers refuse values that it cannot hold
        or kernel.has_unit_diagonal
        or np.abs(kernel.diagonal(X)).max(initial=0.0) <= MAX_FLOAT32
    ):
        return "float32"
    if dtype == "auto":
        return "float64"
    raise ValueError(
        f"dtype='float32' cannot hold squares of features as large as {largest:.3g}; scale "
        "the features or use dtype='float64'."
    )


def warn_if_flat(kernel: Kernel, X: Rows, weights: FloatArray | None) -> None:
    """Warn if the kernel cannot distinguish rows: nothing can then be learned from them."""
    if kernel.name in ("precomputed", "callable"):
        return
    X = X if weights is None or weights.all() else as_blocks(X)[weights > 0]
    metric = kernel.name if kernel.name in METRICS else "laplacian"
    some = np.unique(np.linspace(0, X.shape[0] - 1, ROWS_TO_TELL_APART).astype(np.intp))
    with np.errstate(all="ignore"):
        apart = Kernel(METRICS[metric]).block(X[some])[np.triu_indices(len(some), 1)]
        nearly_all = kernel.gamma * np.quantile(apart, 0.9) if len(apart) else 0.0
    if not apart.any() and (Kernel(metric).block(X, X[:1]) == 1).all():
        if X.shape[0] > 1:
            warn_caller(
                "All rows look the same to the kernel, so they all get the same prediction: the "
                "features are constant, or so small that their squares vanish. Scale them up.",
                UserWarning,
            )
    elif metric == kernel.name and 0 < nearly_all < FLAT:
        warn_caller(
            f"Nearly all rows look the same to the {kernel.name} kernel: its gamma of "
            f"{kernel.gamma:.3g} is too small for the distances between them, perhaps because a "
            "few distant rows dominate the rule for gamma. Remove or clip those, standardise the "
            "features, or raise gamma.",
            UserWarning,
        )
