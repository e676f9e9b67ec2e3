"""Two-class machines as one expansion: support rows once, and a row of coefficients per machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from hardmargin.kernels import (
    FloatArray,
    Kernel,
    KernelFunction,
    KernelSum,
    Precision,
    RowBlocks,
    Rows,
    View,
    as_blocks,
    is_sparse,
    linear_weights,
)
from hardmargin.resources import multiply
from hardmargin.scaling import MixedScaling, Scaling
from hardmargin.solvers.problem import Expansion, IntArray

#: Sums of larger terms, kernel values times coefficients, overflow float32.
MAX_FLOAT32_TERM = 1e30


@dataclass(frozen=True)
class Machines:
    """Machines that share their support rows.

    Attributes
    ----------
    support : (n_support,) int array
        Which training rows are support rows.
    support_vectors : rows
        The support rows; empty for a precomputed kernel.
    n_support : (n_classes,) int array
        How many of them each class has.
    by_class : (n_support,) int array
        Their order by class. Rows of a class take part in the same machines, and are cheap to
        expand if contiguous.
    coefficients : (n_machines, n_kernels * n_support) array, or CSR array for many classes
        Of all support rows with the first kernel, then with the second, and so on.
    intercepts : (n_machines,) array
        Biases.
    kernel : Kernel or KernelSum
        The kernels.
    dtype : {"float32", "float64"}
        Precision of their values.
    linear : list of (View or None, (n_machines, n_columns) array)
        What each linear kernel sees of the rows, and the weights of that.
    scaling : Scaling, MixedScaling or None
        How rows are scaled before.
    """

    support: IntArray
    support_vectors: Rows
    n_support: IntArray
    by_class: NDArray[np.intp]
    coefficients: Any
    intercepts: FloatArray
    kernel: Kernel | KernelSum
    dtype: Precision
    linear: list[tuple[View | None, NDArray[Any]]]
    scaling: Scaling | MixedScaling | None = None

    @classmethod
    def of(
        cls,
        machines: Sequence[Expansion],
        kernel: Kernel | KernelSum,
        X: Rows | RowBlocks,
        codes: IntArray,
        n_classes: int,
        dtype: Precision,
        scaling: Scaling | MixedScaling | None = None,
    ) -> Machines:
        """Gather what machines have found.

        Parameters
        ----------
        machines : sequence of Expansion
            The machines, on rows X.
        kernel : Kernel or KernelSum
            Their kernels.
        X : rows or RowBlocks
            Training rows.
        codes : (n,) int array
            Their classes.
        n_classes : int
            Number of classes.
        dtype : {"float32", "float64"}
            Precision that suits the rows.
        scaling : Scaling, MixedScaling or None
            How they were scaled.
        """
        coefficients: Any
        if n_classes == 2:
            support, coefficients = machines[0].rows, machines[0].coefficients.reshape(1, -1)
        else:
            support = np.unique(np.concatenate([m.rows for m in machines]))
            coefficients = _side_by_side(machines, support)
        is_precomputed = kernel.name == "precomputed"
        vectors = np.empty((0, 0)) if is_precomputed else as_blocks(X)[support]
        intercepts = np.array([m.intercept for m in machines])
        values = coefficients.data if is_sparse(coefficients) else coefficients
        largest = float(np.abs(values).max(initial=0.0))
        if not np.isfinite([largest, *intercepts]).all():
            raise ValueError(
                "Training overflowed, and the model is not finite; scale the features (for "
                "instance with StandardScaler), the kernel or the weights."
            )
        if isinstance(kernel, Kernel) and kernel.name == "poly":  # only its values can be large
            diagonal = kernel.diagonal(vectors)
            largest *= max(float(np.abs(diagonal).max(initial=0.0)), 1.0)
        own = codes[support]
        return cls(
            support.astype(np.int32, copy=False),
            vectors,
            np.bincount(own, minlength=n_classes).astype(np.int32),
            np.argsort(own, kind="stable"),
            coefficients,
            intercepts,
            kernel,
            "float64" if largest > MAX_FLOAT32_TERM else dtype,
            linear_weights(kernel, vectors, coefficients),
            scaling,
        )

    @property
    def query_bytes(self) -> int:
        """Memory that a prediction takes, per query."""
        needed = 8 * (3 * self.intercepts.size + 4 * len(self.n_support))
        if self.kernel.name in ("precomputed", "callable"):
            needed += 8 * len(self.support)
        elif not is_sparse(self.support_vectors):  # for views of the rows
            needed += 16 * self.support_vectors.shape[1]
        return needed

    def seen(self, rows: Rows) -> Rows:
        """Scale rows that came without gaps."""
        return rows if self.scaling is None else self.scaling.transform(rows)

    def margins(self, Q: Rows, n_jobs: int | None) -> FloatArray:
        """Scores of scaled rows by all machines, of shape (n, n_machines)."""
        sums = np.tile(np.asarray(self.intercepts, dtype=np.float64), (Q.shape[0], 1))
        with np.errstate(over="ignore", invalid="ignore"):
            for view, weights in self.linear:
                seen = Q if view is None else view.of(Q)
                if is_sparse(seen):
                    sums += seen @ weights.T
                else:
                    sums += multiply(seen, weights.T, n_jobs=n_jobs)
        if self.kernel.name != "linear":
            sums += self._expanded(Q, n_jobs)
        return sums

    def keeping(
        self, kept: NDArray[np.intp], coefficients: Any, intercepts: FloatArray
    ) -> Machines:
        """Return the same machines on some of the support rows, with other coefficients."""
        support, n_support, by_class = some_of(kept, self.support, self.n_support, self.by_class)
        vectors = self.support_vectors
        if self.kernel.name != "precomputed":
            vectors = vectors[kept]
        return replace(
            self,
            support=support,
            support_vectors=vectors,
            n_support=n_support,
            by_class=by_class,
            coefficients=coefficients,
            intercepts=intercepts,
            linear=linear_weights(self.kernel, vectors, coefficients),
        )

    def facing(self, Q: Rows, which: Any = slice(None)) -> tuple[Rows, Rows]:
        """Return queries and support rows in the form that the kernel needs."""
        if self.kernel.name == "precomputed":
            return Q[:, self.support[which]], None
        return Q, self.support_vectors[which]

    def _expanded(self, Q: Rows, n_jobs: int | None) -> FloatArray:
        """Add up kernel values, except those of linear kernels."""
        kernel, n = self.kernel, len(self.support)
        order: Any = slice(None) if len(self.n_support) == 2 else self.by_class
        columns = order
        if isinstance(kernel, KernelSum):
            used = [k for k, one in enumerate(kernel.kernels) if one.name != "linear"]
            if not used:
                return np.zeros((Q.shape[0], 1))
            if len(used) < len(kernel.kernels) or len(self.n_support) > 2:
                columns = np.concatenate([k * n + np.arange(n)[order] for k in used])
                kernel = KernelSum(tuple(kernel.kernels[k] for k in used))
        queries, support = self.facing(Q, order)
        return kernel.expand(
            queries, support, self.coefficients[:, columns], dtype=self.dtype, n_jobs=n_jobs
        )


def finite_scores(scores: FloatArray, kernel: str | KernelFunction) -> FloatArray:
    """Refuse rows whose scores are not finite."""
    if np.isfinite(scores).all():
        return scores
    name = "the kernel" if callable(kernel) else f"kernel={kernel!r}"
    raise ValueError(
        f"Some rows have no finite score, as {name} is not finite on them; scale them like the "
        "rows passed to fit."
    )


def some_of(
    kept: NDArray[np.intp], support: IntArray, n_support: IntArray, by_class: NDArray[np.intp]
) -> tuple[IntArray, IntArray, NDArray[np.intp]]:
    """Return some of the support rows, how many each class has, and their order by class."""
    codes = np.empty(len(support), dtype=np.intp)
    codes[by_class] = np.repeat(np.arange(len(n_support)), n_support)
    sizes = np.bincount(codes[kept], minlength=len(n_support)).astype(np.int32)
    return support[kept], sizes, np.argsort(codes[kept], kind="stable")


def _side_by_side(machines: Sequence[Expansion], support: NDArray[Any]) -> sp.csr_array:
    """Coefficients of all machines: of the first kernel on all support rows, then of the second."""
    data, columns, sizes = [], [], [0]
    if all(machine.coefficients.ndim == 1 for machine in machines):
        rows = np.concatenate([machine.rows for machine in machines])
        starts = np.cumsum([0, *(len(machine.rows) for machine in machines)])
        values = np.concatenate([machine.coefficients for machine in machines])
        found = (values, np.searchsorted(support, rows), starts)
        return sp.csr_array(found, shape=(len(machines), len(support)))
    for machine in machines:
        places = np.searchsorted(support, machine.rows)
        of_kernels = np.atleast_2d(machine.coefficients)
        used = [k for k, c in enumerate(of_kernels) if len(of_kernels) == 1 or c.any()]
        data += [of_kernels[k] for k in used]
        columns += [k * len(support) + places for k in used]
        sizes.append(len(used) * len(places))
    n_kernels = len(np.atleast_2d(machines[0].coefficients))
    return sp.csr_array(
        (
            np.concatenate([np.empty(0), *data]),  # machines without coefficients have none
            np.concatenate([np.empty(0, dtype=np.intp), *columns]),
            np.cumsum(sizes),
        ),
        shape=(len(machines), n_kernels * len(support)),
    )
