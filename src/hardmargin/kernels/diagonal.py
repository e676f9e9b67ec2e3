"""The values k(x, x): whoever evaluates a kernel for training checks them first."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hardmargin.kernels.kernel import FloatArray, Kernel, Precision, Rows, in_precision

#: Kernels whose largest k(x, x) is smaller, but not zero, would make coefficients overflow.
LEAST_KERNEL_VALUE = 1e-250

#: Squares of larger kernel values, and sums of such squares, overflow.
LARGEST_SQUARED_VALUE = 1e150


def check_diagonal(
    kernel: Kernel,
    X: Rows,
    among: NDArray[Any] | None = None,
    *,
    squared: bool = False,
    dtype: Precision = "float64",
) -> FloatArray | None:
    """Refuse sizes of ``k(x, x)`` that solvers cannot use; return ``k(x, x)`` of every row.

    Parameters
    ----------
    kernel : Kernel
        Any kernel.
    X : rows
        Rows, or the kernel matrix for a precomputed kernel.
    among : bool or int array, optional
        The rows that take part, as a mask or by their numbers; all by default.
    squared : bool
        Whether the solver squares kernel values.
    dtype : {"float32", "float64"}
        Precision of the values in training; it must hold them.

    Returns
    -------
    (n,) array, or None where all values are one
    """
    if kernel.has_unit_diagonal:
        return None
    diagonal = kernel.diagonal(X)
    own = kernel.name in ("callable", "precomputed")
    sizes = np.abs(diagonal if among is None else diagonal[among])
    if kernel.name == "cosine" and (sizes == 1).all():  # no row is zero
        return None
    if not np.isfinite(sizes).all():
        if own:
            raise ValueError(
                "The kernel's values k(x, x) must be finite; some are NaN or infinite."
            )
        raise ValueError(
            f"kernel={kernel.name!r} overflows on these rows: k(x, x) is not finite for some; "
            "scale the features (for instance with StandardScaler) or lower degree, gamma or coef0."
        )
    in_precision(sizes, dtype)
    largest = float(sizes.max(initial=0.0))
    advice = "scale the kernel" if own else "scale the features (for instance with StandardScaler)"
    if squared and largest > LARGEST_SQUARED_VALUE:
        raise ValueError(
            f"The kernel's values k(x, x) go up to {largest:.2g}, whose square overflows; {advice}."
        )
    if 0 < largest < LEAST_KERNEL_VALUE:
        raise ValueError(
            f"The kernel's values k(x, x) are at most {largest:.2g}, too small for coefficients to "
            f"be finite; {advice}."
        )
    return diagonal
