"""Several kernels on the same support rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import effective_n_jobs

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
)
from hardmargin.kernels.views import View


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
