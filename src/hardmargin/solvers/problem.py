"""What the solvers of the compiled core are handed: two-class machines and a source of values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from hardmargin import _core
from hardmargin.kernels import FloatArray, Kernel, Rows, as_core_matrix, is_sparse
from hardmargin.memory import tasks_at_once

#: Classes on the negative side, and on the positive.
Machine: TypeAlias = tuple[Sequence[int], Sequence[int]]

#: Sparse rows of more columns than this are not packed.
_MAX_PACKED_COLUMNS = 4_096

#: What a row takes in a machine at most, columns aside.
_BYTES_A_ROW = 80

#: Kernels whose largest k(x, x) is smaller, but not zero, would make coefficients overflow.
LEAST_KERNEL_VALUE = 1e-250

#: Squares of larger kernel values, and sums of these, overflow.
LARGEST_SQUARED_VALUE = 1e150


def finite_diagonal(
    kernel: Kernel, X: Rows, classes: NDArray[np.int32], *, squared: bool = False
) -> FloatArray | None:
    """``k(x, x)`` of every row, of a size that solvers can use where a row has a class.

    Parameters
    ----------
    kernel : Kernel
        Any kernel.
    X : rows
        Rows, or the kernel matrix for a precomputed kernel.
    classes : (n,) int32 array
        Class of every row; negative for rows that take no part.
    squared : bool
        Whether the solver squares kernel values.

    Returns
    -------
    (n,) array, or None where all values are one
    """
    if kernel.has_unit_diagonal:
        return None
    diagonal = kernel.diagonal(X)
    own = kernel.name in ("callable", "precomputed")
    sizes = np.abs(diagonal[classes >= 0])
    if not np.isfinite(sizes).all():
        if own:
            raise ValueError(
                "The kernel's values k(x, x) must be finite; some are NaN or infinite."
            )
        raise ValueError(
            f"kernel={kernel.name!r} overflows on these rows: k(x, x) is not finite for some; "
            "scale the features (for instance with StandardScaler) or lower degree, gamma or coef0."
        )
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


def machines_at_once(
    kernel: Kernel,
    X: Rows,
    *,
    exact: bool,
    n_threads: int,
    memory_bytes: int,
    share_rows: bool = True,
) -> int:
    """Threads that the memory is enough for, so that a machine is trained as it would be alone.

    Each thread has a share of the memory, and the compiled core trains a machine that has room to
    sort its rows in another order than one that has not.

    Parameters
    ----------
    kernel, X
        What machines are trained on.
    exact : bool
        Whether kernel values are float64.
    n_threads, memory_bytes : int
        What there is.
    share_rows : bool
        Whether all machines have one copy of the rows, as the core packs them.
    """
    packed = 0
    if kernel.name not in ("precomputed", "callable"):
        n_columns = min(X.shape[1], _MAX_PACKED_COLUMNS) if is_sparse(X) else X.shape[1]
        packed = int(X.shape[0] * n_columns * (8 if exact else 4))
    each = packed + _BYTES_A_ROW * int(X.shape[0])
    if share_rows:
        memory_bytes -= packed
    else:
        each += packed
    return tasks_at_once(n_threads, n_threads, each, memory_bytes)


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
