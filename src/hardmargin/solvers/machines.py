"""What the solvers of the compiled core are handed: two-class machines and a source of values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from hardmargin import _core
from hardmargin.kernels import FloatArray, Kernel, Rows, as_core_matrix

#: Classes on the negative side, and on the positive.
Machine: TypeAlias = tuple[Sequence[int], Sequence[int]]


def finite_diagonal(kernel: Kernel, X: Rows, classes: NDArray[np.int32]) -> FloatArray | None:
    """``k(x, x)`` of every row, finite where a row has a class; None where all are one."""
    if kernel.has_unit_diagonal:
        return None
    diagonal = kernel.diagonal(X)
    if not np.isfinite(diagonal[classes >= 0]).all():
        if kernel.name in ("callable", "precomputed"):
            raise ValueError(
                "The kernel's values k(x, x) must be finite; some are NaN or infinite."
            )
        raise ValueError(
            f"kernel={kernel.name!r} overflows on these rows: k(x, x) is not finite for some; "
            "scale the features (for instance with StandardScaler) or lower degree, gamma or coef0."
        )
    return diagonal


def core_source(
    kernel: Kernel, X: Rows
) -> tuple[_core.Matrix, _core.KernelSpec | None, Callable[[int], FloatArray] | None]:
    """Where the compiled core takes kernel values from: the matrix, the kernel, a function."""

    def column(row: int) -> FloatArray:
        return np.ascontiguousarray(kernel.columns(X, [row])[:, 0])

    named = kernel.name not in ("precomputed", "callable")
    return (
        as_core_matrix(X),
        kernel.spec if named else None,
        column if kernel.name == "callable" else None,
    )
