"""Several kernels on the same support rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray

from hardmargin import _core
from hardmargin.kernels.kernel import (
    DISTANCE_KERNELS,
    METRICS,
    FloatArray,
    Kernel,
    Precision,
    Rows,
    as_core_matrix,
    by_support_row,
    is_sparse,
)
from hardmargin.kernels.views import View
from hardmargin.resources import single_threaded_blas

#: Weights of linear kernels are stored in float32 if they are more than this.
_MOST_DOUBLES = 2**24

#: Machines whose weights are computed at once, where rows are sparse.
_MACHINES_AT_ONCE = 16


@dataclass(frozen=True)
class KernelSum:
    """Several kernels on the same support rows, whose expansions add up.

    Parameters
    ----------
    kernels : tuple of Kernel
        Each has coefficients of its own; the one that matters most comes first.

    Examples
    --------
    >>> import numpy as np
    >>> from hardmargin.kernels import Kernel, KernelSum
    >>> both = KernelSum((Kernel("rbf", gamma=1.0), Kernel("laplacian", gamma=1.0)))
    >>> S = np.array([[0.0], [1.0]])
    >>> both.expand(S, S, np.array([[1.0, 0.0, 0.0, 2.0]])).round(4).ravel()
    array([1.7358, 2.3679])
    """

    kernels: tuple[Kernel, ...]

    name = "sum"

    @property
    def gamma(self) -> float:
        """Gamma of the first kernel."""
        return self.kernels[0].gamma

    def expand(
        self,
        Q: Rows,
        S: Rows,
        coef: Any,
        *,
        dtype: Precision = "float64",
        n_jobs: int | None = None,
    ) -> FloatArray:
        """Evaluate sums of kernel functions.

        Parameters
        ----------
        Q, S : rows
            Queries and support rows.
        coef : (n_machines, n_kernels * n_support) array or CSR matrix
            The coefficients of the first kernel, then those of the second, and so on.
        """
        n = S.shape[0]
        if coef.shape[1] != len(self.kernels) * n:
            raise ValueError(
                f"coef has {coef.shape[1]} coefficients per machine for {n} support rows and "
                f"{len(self.kernels)} kernels."
            )
        parts = [coef[:, k * n : (k + 1) * n] for k in range(len(self.kernels))]
        out = np.zeros((Q.shape[0], coef.shape[0]))
        if Q.shape[1] != S.shape[1]:
            raise ValueError(
                f"A kernel needs rows of equal length, got {Q.shape[1]} and {S.shape[1]} features."
            )
        # Kernels of one name and view decay with the same distances.
        alike: dict[tuple[str, View | None], list[int]] = {}
        seen: dict[View | None, tuple[Rows, Rows]] = {None: (Q, S)}
        for k, kernel in enumerate(self.kernels):
            alike.setdefault((kernel.name, kernel.view), []).append(k)
            if kernel.view is not None and kernel.view not in seen:
                seen[kernel.view] = kernel.view.of(Q), kernel.view.of(S)
        for (name, view), of_name in alike.items():
            if name not in DISTANCE_KERNELS:
                for k in of_name:
                    out += self.kernels[k].expand(Q, S, parts[k], dtype=dtype, n_jobs=n_jobs)
                continue
            queries, support = seen[view]
            _core.expand_decays(
                METRICS[name],
                [self.kernels[k].gamma for k in of_name],
                as_core_matrix(queries),
                as_core_matrix(support),
                [by_support_row(parts[k]) for k in of_name],
                out,
                dtype,
                effective_n_jobs(n_jobs),
            )
        return out


def linear_weights(
    kernel: Kernel | KernelSum, S: Rows, coef: Any
) -> list[tuple[View | None, NDArray[Any]]]:
    """Weights of the columns that the linear kernels of an expansion add up to.

    Parameters
    ----------
    kernel : Kernel or KernelSum
        The kernels.
    S : rows
        Support rows.
    coef : (n_machines, n_kernels * n_support) array or CSR matrix
        Their coefficients.

    Returns
    -------
    list of (View or None, (n_machines, n_columns) array)
        One pair per linear kernel: what it sees of the rows, and the weights of that.
    """
    kernels = kernel.kernels if isinstance(kernel, KernelSum) else (kernel,)
    n = S.shape[0]
    return [
        (
            one.view,
            _weights(S if one.view is None else one.view.of(S), coef[:, k * n : (k + 1) * n]),
        )
        for k, one in enumerate(kernels)
        if one.name == "linear"
    ]


def _weights(S: Rows, coef: Any) -> NDArray[Any]:
    """Add up the rows times their coefficients, of every machine."""
    if not is_sparse(S):
        with single_threaded_blas():
            return np.asarray(coef @ S, dtype=np.float64)
    n_machines, n_columns = coef.shape[0], S.shape[1]
    is_large = n_machines * n_columns > _MOST_DOUBLES
    weights = np.empty((n_machines, n_columns), dtype=np.float32 if is_large else np.float64)
    for begin in range(0, n_machines, _MACHINES_AT_ONCE):
        part = coef[begin : begin + _MACHINES_AT_ONCE]
        dense = part.toarray() if is_sparse(part) else part
        weights[begin : begin + _MACHINES_AT_ONCE] = (S.T @ dense.T).T
    return weights
