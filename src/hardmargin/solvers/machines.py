"""What the solvers of the compiled core are handed: two-class machines and a source of values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from hardmargin import _core
from hardmargin.budget import tasks_at_once
from hardmargin.kernels import FloatArray, Kernel, Rows, as_core_matrix, is_sparse

#: Classes on the negative side, and on the positive.
Machine: TypeAlias = tuple[Sequence[int], Sequence[int]]

#: Sparse rows of more columns than this are not packed.
_MAX_PACKED_COLUMNS = 4_096

#: What a row takes in a machine at most, columns aside.
_BYTES_A_ROW = 80


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
