"""What a kernel is, and what can be done with one.

A :class:`Kernel` is a name (or a function) with its numbers settled. It evaluates blocks, columns
and the diagonal of a kernel matrix, multiplies by that matrix without storing it, and expands
sums of kernel functions, which is what every machine of this package predicts with.

The named kernels run in the compiled core, tile by tile, on dense or CSR rows of either float type
in any memory order; rows are never converted or copied whole.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, TypeAlias

import numpy as np
import scipy.sparse as sp
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray

from hardmargin import _core
from hardmargin.kernels.blocks import BLOCK_BYTES, FileRows, as_blocks, column_ends
from hardmargin.kernels.views import View
from hardmargin.monitor import Stopped
from hardmargin.resources import multiply, new_array

Rows: TypeAlias = Any  # a dense array or a CSR matrix of float32 or float64
Precision: TypeAlias = Literal["float32", "float64"]
FloatArray: TypeAlias = NDArray[np.float64]
KernelFunction: TypeAlias = Callable[[Any, Any], ArrayLike]

#: Called now and then during a long evaluation, which it ends by raising ``Stopped``.
Check: TypeAlias = Callable[[], None]

NAMED_KERNELS = (
    "rbf",
    "laplacian",
    "matern32",
    "matern52",
    "linear",
    "cosine",
    "poly",
    "sigmoid",
)

#: Kernels ``exp(-gamma * distance)``, among which ``kernel="cv"`` chooses: one matrix of distances
#: serves every gamma.
DISTANCE_KERNELS = ("rbf", "laplacian")

#: Named kernels that have no gamma.
KERNELS_WITHOUT_GAMMA = ("linear", "cosine")
GAMMA_RULES = ("scale", "spread", "pairwise")

#: The distances that kernels decay with. All of these are one where the distance is zero.
METRICS = {
    "rbf": "sqeuclidean",
    "laplacian": "cityblock",
    "matern32": "sqeuclidean",
    "matern52": "sqeuclidean",
}

#: Squares of larger features overflow float32.
MAX_FLOAT32_FEATURE = 1e18

#: Sparse rows of more columns than this are not packed.
_MAX_PACKED_COLUMNS = 4_096

#: Rows with at least this many columns of more than two values are wide; rows looked at for that.
_LEAST_WIDE = 64
_ROWS_JUDGED = 256

#: A metric is stored for at most this many rows, and if at least this share of its columns may be
#: needed.
_MAX_METRIC_ROWS = 20_000
_LEAST_COLUMNS = 1 / 16

#: Largest memory of a row in a machine, without its columns.
_BYTES_PER_ROW = 80

#: Numbers that variances are computed from at a time.
_NUMBERS_AT_ONCE = 1_000_000

#: Makes arrays that the compiled core can read; those that came over a network may not be.
aligned: Callable[..., NDArray[Any]] = partial(np.require, requirements="A")

# The diagonal of a kernel function is cut from blocks: few calls, and few values in excess.
_ROWS_PER_CALL = 64


@dataclass(frozen=True)
class Kernel:
    """A kernel with its numbers settled.

    Parameters
    ----------
    name : {"rbf", "laplacian", "matern32", "matern52", "linear", "cosine", "poly", "sigmoid", \
"precomputed", "callable"}
        ``exp(-gamma ||x-z||^2)``, ``exp(-gamma ||x-z||_1)``, ``(1 + s) exp(-s)`` with
        ``s = sqrt(3 gamma) ||x-z||``, ``(1 + s + s^2/3) exp(-s)`` with
        ``s = sqrt(5 gamma) ||x-z||``, ``x'z``, ``x'z / (||x|| ||z||)`` (0 for rows of zeros),
        ``(gamma x'z + coef0)^degree``, ``tanh(gamma x'z + coef0)``; with ``"precomputed"`` the
        rows handed in are rows of the kernel matrix, with ``"callable"`` `function` is called.
        ``"sqeuclidean"`` and ``"cityblock"`` are the distances in the first two, for `block`.
    gamma, degree, coef0 : float
        As above.
    function : callable, optional
        ``function(X, Z)`` returns the matrix of kernel values.
    view : View, optional
        What the kernel sees of the rows; by default, the rows as they are.

    Examples
    --------
    >>> import numpy as np
    >>> from hardmargin.kernels import Kernel
    >>> kernel = Kernel("rbf", gamma=0.5)
    >>> X = np.array([[0.0, 0.0], [1.0, 1.0]])
    >>> kernel.block(X).round(4)
    array([[1.    , 0.3679],
           [0.3679, 1.    ]])
    >>> kernel.product(X, np.ones(2)).round(4)
    array([1.3679, 1.3679])
    """

    name: str
    gamma: float = 1.0
    degree: float = 3.0
    coef0: float = 0.0
    function: KernelFunction | None = None
    view: View | None = None

    def __post_init__(self) -> None:
        known = (*NAMED_KERNELS, "precomputed", "callable")
        if self.name not in (*known, *METRICS.values()):
            raise ValueError(f"kernel must be one of {known} or a callable, got {self.name!r}.")

    @property
    def has_unit_diagonal(self) -> bool:
        """Whether ``k(x, x) = 1`` for every x."""
        return self.name in METRICS

    @property
    def spec(self) -> _core.KernelSpec:
        """The kernel in the form that the compiled core needs."""
        return (self.name, float(self.gamma), float(self.coef0), float(self.degree))

    def block(
        self,
        X: Rows,
        Z: Rows | None = None,
        *,
        dtype: Precision = "float64",
        n_jobs: int | None = None,
        out: NDArray[Any] | None = None,
        check: Check | None = None,
    ) -> NDArray[Any]:
        """Kernel values of all rows of X against all rows of Z (of X itself by default).

        If `out` is given, they are written to it, in its precision. A kernel function is called
        once, and `check` not at all.
        """
        if self.view is not None:
            X, Z = self.view.of(X), None if Z is None else self.view.of(Z)
        if self.name in ("precomputed", "callable"):
            is_function = self.name == "callable"
            values = self._call(X, X if Z is None else Z) if is_function else _dense(X)
            if out is None:
                return values
            out[:] = in_precision(values, out.dtype)
            return out
        Z = X if Z is None else Z
        rows = as_core_matrix(X)
        others = rows if Z is X else as_core_matrix(Z)  # of the same rows, half is evaluated
        if X.shape[1] != Z.shape[1]:
            raise ValueError(
                f"A kernel needs rows of equal length, got {X.shape[1]} and {Z.shape[1]} features."
            )
        if out is None:
            out = new_array((X.shape[0], Z.shape[0]), dtype)
        fill = _core.block_float32 if out.dtype == np.float32 else _core.block_float64
        fill(self.spec, rows, others, out, effective_n_jobs(n_jobs), check)
        return out

    def columns(
        self,
        X: Rows,
        indices: ArrayLike,
        *,
        dtype: Precision = "float64",
        n_jobs: int | None = None,
    ) -> NDArray[Any]:
        """Columns of the kernel matrix of X."""
        chosen = np.asarray(indices)
        if self.name == "precomputed":
            return _dense(X[:, chosen])
        return self.block(X, X[chosen], dtype=dtype, n_jobs=n_jobs)

    def diagonal(self, X: Rows) -> FloatArray:
        """``k(x, x)`` of every row."""
        if self.has_unit_diagonal:
            return np.ones(X.shape[0])
        if self.name in METRICS.values():
            return np.zeros(X.shape[0])
        X = X if self.view is None else self.view.of(X)
        if self.name == "precomputed":
            return np.asarray(X.diagonal(), dtype=np.float64)
        if self.name == "callable":
            parts = (X[i : i + _ROWS_PER_CALL] for i in range(0, X.shape[0], _ROWS_PER_CALL))
            return np.concatenate([self._call(part, part).diagonal() for part in parts])
        if is_sparse(X):
            X = X.astype(np.float64, copy=False)  # float32 may not hold squares
            products = np.asarray(X.multiply(X).sum(axis=1)).ravel()
        else:
            products = np.einsum("ij,ij->i", X, X, dtype=np.float64)
        if self.name == "linear":
            return products
        if self.name == "cosine":
            return _has_entries(X).astype(np.float64)
        with np.errstate(over="ignore", invalid="ignore"):  # callers check that values are finite
            inner = self.gamma * products + self.coef0
            return inner**self.degree if self.name == "poly" else np.tanh(inner)

    def product(
        self,
        X: Rows,
        V: ArrayLike,
        Z: Rows | None = None,
        *,
        dtype: Precision = "float64",
        n_jobs: int | None = None,
        check: Check | None = None,
    ) -> FloatArray:
        """``K(X, Z) @ V`` for one or several right-hand sides, without storing K."""
        right = np.asarray(V, dtype=np.float64)
        Z = X if Z is None else Z
        sums = self.expand(X, Z, np.atleast_2d(right.T), dtype=dtype, n_jobs=n_jobs, check=check)
        return sums[:, 0] if right.ndim == 1 else sums

    def expand(
        self,
        Q: Rows,
        S: Rows,
        coef: Any,
        *,
        dtype: Precision = "float64",
        n_jobs: int | None = None,
        check: Check | None = None,
    ) -> FloatArray:
        """Evaluate sums of kernel functions: ``K(Q, S) @ coef.T``, K tile by tile.

        Parameters
        ----------
        Q, S : rows
            Queries and support rows. For a precomputed kernel, Q holds the kernel values of the
            queries against the support rows and S is ignored.
        coef : (n_machines, n_support) array or CSR matrix
            One expansion per row. Where most are zero, a support row costs only for the machines it
            is part of; support rows of the same machines should be next to each other.
        dtype : {"float32", "float64"}
            Precision of kernel values.
        n_jobs : int, optional
            Threads.
        check : callable, optional
            Called now and then; it may raise ``Stopped``. Not for a precomputed kernel.
        """
        if self.view is not None:
            Q, S = self.view.of(Q), self.view.of(S)
        if self.name == "precomputed":
            if is_sparse(Q) or is_sparse(coef):
                return np.asarray(_dense(Q @ coef.T), dtype=np.float64)
            return np.asarray(multiply(Q, coef.T, n_jobs=n_jobs), dtype=np.float64)
        if coef.shape[1] != S.shape[0]:
            raise ValueError(
                f"coef has {coef.shape[1]} coefficients per machine for {S.shape[0]} support rows."
            )
        if Q.shape[1] != S.shape[1]:
            raise ValueError(
                f"A kernel needs rows of equal length, got {Q.shape[1]} and {S.shape[1]} features."
            )
        if self.name == "callable":
            return self._expand_by_blocks(Q, S, coef, check)
        out = np.empty((Q.shape[0], coef.shape[0]))
        _core.expand(
            self.spec,
            as_core_matrix(Q),
            as_core_matrix(S),
            *by_support_row(coef),
            out,
            dtype,
            effective_n_jobs(n_jobs),
            check,
        )
        return out

    def _expand_by_blocks(self, Q: Rows, S: Rows, coef: Any, check: Check | None) -> FloatArray:
        out = np.empty((Q.shape[0], coef.shape[0]))
        step = max(1, 4_000_000 // max(S.shape[0], 1))
        for begin in range(0, Q.shape[0], step):
            if check is not None:
                check()
            part = slice(begin, begin + step)
            out[part] = self._call(Q[part], S) @ coef.T
        return out

    def _call(self, X: Rows, Z: Rows) -> FloatArray:
        assert self.function is not None
        values = np.asarray(self.function(X, Z), dtype=np.float64)
        if values.shape != (X.shape[0], Z.shape[0]):
            raise ValueError(
                f"kernel returned an array of shape {values.shape} for {X.shape[0]} and "
                f"{Z.shape[0]} rows; it must return one value per pair, here "
                f"{(X.shape[0], Z.shape[0])}."
            )
        return values


@dataclass(frozen=True, eq=False)
class MetricMatrix:
    """What a kernel is a function of, between all rows: distances, or products for ``"linear"``.

    Attributes
    ----------
    kernel : {"rbf", "laplacian", "linear"}
        The kernel; its gamma is still open.
    values : (n, n) array
        Squared Euclidean or Manhattan distances, or products.
    """

    kernel: str
    values: NDArray[Any]

    @classmethod
    def of(
        cls,
        kernel: str,
        X: Rows,
        dtype: Precision,
        n_jobs: int | None,
        check: Check | None = None,
    ) -> MetricMatrix:
        """Evaluate it between all rows; `check` may raise ``Stopped``."""
        metric = Kernel(METRICS.get(kernel, kernel))
        return cls(kernel, metric.block(X, dtype=dtype, n_jobs=n_jobs, check=check))

    def block(self, gamma: float, rows: NDArray[Any], others: NDArray[Any]) -> NDArray[Any]:
        """Kernel values between some rows and others."""
        block: NDArray[Any] = self.values[np.ix_(rows, others)]
        if self.kernel == "linear":
            return block
        block *= -gamma
        np.exp(block, out=block)
        return block

    def core_source(self, gamma: float) -> tuple[_core.Matrix, _core.KernelSpec | None, None]:
        """Where the compiled core gets kernel values from; the matrix is symmetric."""
        columns: NDArray[Any] = self.values.T  # stored one after another
        return columns, None if self.kernel == "linear" else ("decay", gamma, 0.0, 1.0), None


def _is_wide(X: Rows) -> bool:
    """Whether a kernel value costs more than reading a stored one, judged by some of the rows.

    Columns of two values cost next to nothing, as the compiled core packs them into bits.
    """
    if is_sparse(X) and X.shape[1] > _MAX_PACKED_COLUMNS:
        return True
    some = _dense(X[:: max(1, X.shape[0] // _ROWS_JUDGED)])
    return int(column_ends(some).has_others.sum()) >= _LEAST_WIDE


@dataclass(frozen=True)
class KernelRows:
    """Rows and the kernel between them; solvers evaluate the values they need.

    Attributes
    ----------
    kernel : Kernel
        The kernel.
    X : rows
        Rows, or the whole kernel matrix for a precomputed kernel.
    dtype : {"float32", "float64"}
        Precision of kernel values.
    metric : MetricMatrix or None
        What the kernel is a function of, between all rows, if that is stored.
    """

    kernel: Kernel
    X: Rows
    dtype: Precision = "float64"
    metric: MetricMatrix | None = None

    def __post_init__(self) -> None:
        if self.metric is not None and self.metric.kernel != self.kernel.name:
            raise ValueError(
                f"These are stored values of {self.metric.kernel!r}, not of {self.kernel.name!r}."
            )

    def some(self, rows: NDArray[Any]) -> KernelRows:
        """Return some of the rows, and of a precomputed kernel the values between them."""
        is_matrix = self.kernel.name == "precomputed"
        return replace(
            self,
            X=self.X[np.ix_(rows, rows)] if is_matrix else as_blocks(self.X)[rows],
            metric=None,
        )

    def about_mean(self, weights: FloatArray) -> KernelRows:
        """Return dense rows relative to their weighted mean, and the products between them."""
        blocks, metric = as_blocks(self.X), self.metric
        shares = (weights / weights.sum()).astype(blocks.dtype)
        mean = np.sum(blocks.each(lambda part, own: own @ part, shares), axis=0)
        if metric is not None and metric.kernel == "linear":
            means = metric.values @ shares.astype(metric.values.dtype)
            values = metric.values - means[:, None] - (means - np.average(means, weights=weights))
            metric = replace(metric, values=values.astype(self.dtype, copy=False))
        return replace(self, X=blocks.map(lambda part: part - mean), metric=metric)

    def with_metric(
        self,
        memory_bytes: int,
        n_columns: int | None = None,
        n_jobs: int | None = None,
        check: Check | None = None,
    ) -> KernelRows:
        """Evaluate and store the metric, if that costs less than the columns that are needed.

        Blocks of wide or sparse rows are products of matrices, many times as fast as one column
        after another. The metric serves every gamma.

        Parameters
        ----------
        memory_bytes : int
            Memory that the metric may take, and the rows while it is evaluated.
        n_columns : int, optional
            Columns needed at most; all by default.
        n_jobs : int, optional
            Threads.
        check : callable, optional
            Called now and then; if it raises ``Stopped``, there is no metric.
        """
        n, d = self.X.shape
        item = np.dtype(self.dtype).itemsize
        packed = 0 if is_sparse(self.X) else n * d * item
        if (
            self.metric is not None
            or self.kernel.name not in (*DISTANCE_KERNELS, "linear")
            or self.kernel.view is not None
            or n > _MAX_METRIC_ROWS
            or n * n * item + packed > memory_bytes
            or (n_columns is not None and n_columns < n * _LEAST_COLUMNS)
            or d < _LEAST_WIDE
            or not _is_wide(self.X)
        ):
            return self
        try:
            metric = MetricMatrix.of(self.kernel.name, self.X, self.dtype, n_jobs, check)
        except Stopped:
            return self
        return replace(self, metric=metric)

    def expand(
        self,
        queries: NDArray[Any],
        support: NDArray[Any],
        coef: Any,
        *,
        n_jobs: int | None = None,
    ) -> FloatArray:
        """Expand sums as `Kernel.expand` does; queries and support rows are given by number."""
        kernel, X = self.kernel, self.X
        if self.metric is not None:
            values = self.metric.block(kernel.gamma, support, queries)
            if is_sparse(coef):
                return np.asarray((coef @ values).T, dtype=np.float64)
            sums = multiply(coef.astype(values.dtype), values, n_jobs=n_jobs)
            return np.asarray(sums.T, dtype=np.float64)
        if kernel.name == "precomputed":
            return kernel.expand(X[queries][:, support], None, coef, n_jobs=n_jobs)
        blocks = as_blocks(X)
        Q, S = blocks[queries], blocks[support]
        return kernel.expand(Q, S, coef, dtype=self.dtype, n_jobs=n_jobs)

    @property
    def core_source(
        self,
    ) -> tuple[_core.Matrix, _core.KernelSpec | None, Callable[[int], FloatArray] | None]:
        """Where the compiled core gets kernel values from: the matrix, the kernel, a function."""
        if self.metric is not None:
            return self.metric.core_source(self.kernel.gamma)
        kernel, X, view = self.kernel, self.X, self.kernel.view
        if view is not None:
            kernel, X = replace(kernel, view=None), as_blocks(X).map(view.of)

        def column(row: int) -> FloatArray:
            return np.ascontiguousarray(kernel.columns(X, [row])[:, 0])

        named = kernel.name not in ("precomputed", "callable")
        return (
            as_core_matrix(X),
            kernel.spec if named else None,
            column if kernel.name == "callable" else None,
        )

    def core_error(self, error: ValueError, method: str = "auto") -> ValueError:
        """Say what an error of the compiled core means for the estimators' parameters."""
        if isinstance(error, _core.MemoryTooSmall):
            instead = " or use dtype='float32'" if self.dtype == "float64" else ""
            return ValueError(
                f"memory_limit is too small: these rows take {error.args[1]} bytes in training; "
                f"raise memory_limit{instead}."
            )
        return ValueError(
            f"method={method!r} needs a distance kernel and at least five columns that take "
            "two values each, the same step apart, not in many small groups; method='auto' "
            "works on any data."
        )

    def machines_at_once(
        self, n_threads: int, memory_bytes: int, *, share_rows: bool = True
    ) -> int:
        """How many threads the memory is enough for if each machine is to be trained as if alone.

        Each thread has a share of the memory. The compiled core sorts the rows of a machine only if
        there is room for that, and so trains it in another order than without.

        Parameters
        ----------
        n_threads, memory_bytes : int
            The number of threads and the memory available.
        share_rows : bool
            Whether all machines have one copy of the rows, as the core packs them.
        """
        packed, X = 0, self.X
        if self.kernel.name not in ("precomputed", "callable") and self.metric is None:
            n_columns = min(X.shape[1], _MAX_PACKED_COLUMNS) if is_sparse(X) else X.shape[1]
            packed = int(X.shape[0] * n_columns * np.dtype(self.dtype).itemsize)
        each = packed + _BYTES_PER_ROW * int(X.shape[0])
        if share_rows:
            memory_bytes -= packed
        else:
            each += packed
        return max(1, min(n_threads, memory_bytes // max(each, 1)))


def make_kernel(
    kernel: str | KernelFunction,
    X: Rows,
    *,
    gamma: float | str = "scale",
    degree: float = 3,
    coef0: float = 0.0,
    sample_weight: FloatArray | None = None,
) -> Kernel:
    """Turn the parameters of a kernel into numbers, based on the rows that it will see.

    Rows of weight zero are ignored.
    """
    if callable(kernel):
        return Kernel("callable", function=kernel)
    if kernel in ("precomputed", *KERNELS_WITHOUT_GAMMA):
        return Kernel(kernel)
    if sample_weight is not None and not sample_weight.all():
        present = sample_weight > 0
        X, sample_weight = as_blocks(X)[present], sample_weight[present]
    value = resolve_gamma(gamma, X, kernel=kernel, sample_weight=sample_weight)
    made = Kernel(kernel, gamma=value, degree=degree, coef0=coef0)
    if kernel == "poly" and float(degree) % 1 != 0:
        _check_powers(made, X)
    return made


def _check_powers(kernel: Kernel, X: Rows) -> None:
    """Refuse a fractional degree if its base may be negative."""
    values = X.data if is_sparse(X) else X
    least = 0.0
    if values.min(initial=0.0) < 0:  # x'z is no less than minus the largest x'x
        with np.errstate(over="ignore", invalid="ignore"):
            least = -kernel.gamma * float(Kernel("linear").diagonal(X).max())
    if least + kernel.coef0 < 0:
        raise ValueError(
            f"degree={kernel.degree} is not a whole number, and gamma * x'z + coef0 may be "
            "negative on these rows, where such a power is undefined; use a whole degree, "
            "non-negative features, or a larger coef0."
        )


def by_support_row(coef: Any) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Coefficients, one expansion per row, in the form that the compiled core needs."""
    starts: NDArray[Any]
    machines: NDArray[Any]
    if is_sparse(coef):
        columns = coef.tocsc()
        starts, machines, values = columns.indptr, columns.indices, columns.data
    else:  # a sparse array would take several times as long where coefficients are few
        support, machines = np.nonzero(coef.T)
        starts = np.searchsorted(support, np.arange(coef.shape[1] + 1))
        values = coef.T[support, machines]
    return (
        starts.astype(np.int64, copy=False),
        machines.astype(np.int32, copy=False),
        values.astype(np.float64, copy=False),
    )


def resolve_gamma(
    gamma: float | str,
    X: Rows,
    *,
    kernel: str = "rbf",
    sample_weight: FloatArray | None = None,
) -> float:
    """Turn a rule for gamma into a number.

    Parameters
    ----------
    gamma : float or {"scale", "spread", "pairwise"}
        ``"scale"`` is scikit-learn's 1 / (n_features * X.var()); ``"spread"`` 1 / mean squared
        distance to the mean; ``"pairwise"`` 1 / mean squared distance between all ordered pairs of
        rows. For the Laplacian kernel the last two use L1 distances in place of squared ones.
        Where all rows are equal every rule gives 1.
    X : rows
        What the kernel sees; sparse rows stay sparse.
    sample_weight : array, optional
        Weights of the rows in all means.
    """
    if not isinstance(gamma, str):
        return float(gamma)
    if gamma not in GAMMA_RULES:
        raise ValueError(f"gamma must be a positive number or one of {GAMMA_RULES}, got {gamma!r}.")
    X = canonical(X) if is_sparse(X) else X
    w = np.ones(X.shape[0]) if sample_weight is None else sample_weight
    w = w / w.sum()
    n, d = X.shape
    step = max(1, _NUMBERS_AT_ONCE // max(d, 1))  # rows that are copied at a time
    parts = [slice(begin, begin + step) for begin in range(0, n, step)]
    with np.errstate(over="ignore", invalid="ignore"):
        if is_sparse(X):
            mean = np.asarray(w @ X, dtype=np.float64).ravel()
        else:  # sums in another memory order would round differently
            mean = sum((w[part] @ np.ascontiguousarray(X[part]) for part in parts), np.zeros(d))
        rounding = 1e-14 * float(np.abs(mean).max(initial=0.0))
        if kernel == "laplacian" and gamma != "scale":
            width = _absolute_width(gamma, X, w)
        else:
            rounding *= rounding
            if is_sparse(X):
                variance = _sparse_variance(X, w, mean)
            else:
                blocks = (np.ascontiguousarray(X[part]) - mean for part in parts)
                variance = sum(
                    (w[part] @ block**2 for part, block in zip(parts, blocks, strict=True)),
                    np.zeros(d),
                )
            if gamma == "scale":
                width = float(d * (variance.mean() + ((mean - mean.mean()) ** 2).mean()))
            else:
                width = float(variance.sum()) * (1 if gamma == "spread" else 2)
    if not np.isfinite(width):
        values = X.data if is_sparse(X) else X
        raise ValueError(
            f"gamma={gamma!r} cannot be computed for features as large as "
            f"{float(np.abs(values).max(initial=0.0)):.2g}; scale them, or give a number."
        )
    # The width of equal rows is zero, except for rounding.
    return float(min(1.0 / width, 1e308)) if width > d * rounding else 1.0


def _sparse_variance(X: Rows, w: FloatArray, mean: FloatArray) -> FloatArray:
    n, d = X.shape
    weight = np.repeat(w, np.diff(X.indptr))
    stored = np.bincount(X.indices, weights=weight * (X.data - mean[X.indices]) ** 2, minlength=d)
    is_full = np.bincount(X.indices, minlength=d) == n
    rest = np.where(is_full, 0.0, 1.0 - np.bincount(X.indices, weights=weight, minlength=d))
    return stored + np.maximum(rest, 0.0) * mean**2


def _absolute_width(gamma: str, X: Rows, w: FloatArray) -> float:
    """Mean L1 distance that a rule divides by; entries that are not stored are zero."""
    if gamma == "pairwise" and not is_sparse(X) and (w == w[0]).all():
        # As below, where rows have equal weights, so that values alone are sorted.
        below = np.arange(1, len(w)) / len(w)
        is_file = isinstance(as_blocks(X), FileRows)
        step = max(1, BLOCK_BYTES // (8 * len(w))) if is_file else X.shape[1]
        widths = []
        for begin in range(0, X.shape[1], step):
            columns = np.asarray(X[:, begin : begin + step].T, dtype=np.float64, order="C")
            widths.append(np.diff(np.sort(columns), axis=1) @ (below * (1.0 - below)))
        return float(2.0 * np.concatenate(widths).sum())
    if is_sparse(X):
        return _sparse_absolute_width(gamma, X, w)
    width = 0.0
    for k in range(X.shape[1]):
        values = np.asarray(X[:, k], dtype=np.float64)
        if gamma == "spread":  # the mean of |x - mean x|
            width += float(w @ np.abs(values - w @ values))
            continue
        # The mean of |x_i - x_j| over all ordered pairs, from the sorted values.
        order = np.argsort(values)
        below = np.cumsum(w[order])[:-1]
        width += float(2.0 * (below * (1.0 - below) * np.diff(values[order])).sum())
    return width


def _sparse_absolute_width(gamma: str, X: Rows, w: FloatArray) -> float:
    """Do the same for all columns at once, as there may be many."""
    n, d = X.shape
    values, shares = X.data.astype(np.float64), np.repeat(w, np.diff(X.indptr))
    rest = np.maximum(1.0 - np.bincount(X.indices, weights=shares, minlength=d), 0.0)
    is_full = np.bincount(X.indices, minlength=d) == n
    rest[is_full] = 0.0
    if gamma == "spread":
        mean = np.bincount(X.indices, weights=shares * values, minlength=d)
        return float(shares @ np.abs(values - mean[X.indices]) + rest @ np.abs(mean))
    # Every column has one more entry, for all zeros; in full columns it is any of the others.
    zeros = np.zeros(d)
    zeros[X.indices] = np.where(is_full[X.indices], values, 0.0)
    x, v = np.append(values, zeros), np.append(shares, rest)
    columns = np.append(X.indices, np.arange(d))
    order = np.lexsort((x, columns))
    x, columns, total = x[order], columns[order], np.cumsum(v[order])
    is_last = np.append(columns[1:] != columns[:-1], True)
    below = total - np.append(0.0, total[is_last][:-1])[columns]
    gaps = np.where(is_last, 0.0, np.diff(x, append=0.0))
    return float(2.0 * (below * (1.0 - below) * gaps).sum())


def as_core_matrix(X: Rows) -> _core.Matrix:
    """Rows in the form that the compiled core needs."""
    if not is_sparse(X):
        return X if X.flags.aligned else aligned(X)
    if X.format != "csr":
        raise TypeError(f"Sparse rows must be in CSR format, got {X.format!r}; use X.tocsr().")
    X = canonical(X)
    return aligned(X.data), aligned(X.indices, np.int32), aligned(X.indptr, np.int64), X.shape[1]


def is_sparse(X: Any) -> bool:
    """Whether rows are a sparse matrix or array of SciPy, or blocks of them."""
    return sp.issparse(X) or getattr(X, "holds_sparse", False)


def largest_size(X: Rows) -> float:
    """Absolute value of the largest number of all rows."""
    numbers = X.data if is_sparse(X) else X
    return float(max(numbers.max(initial=0.0), -numbers.min(initial=0.0)))


def canonical(X: Rows) -> Rows:
    """Sparse rows with every entry stored once, their indices checked; dense ones as they are."""
    if not is_sparse(X):
        return X
    check_indices(X)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def check_indices(X: Rows) -> None:
    """Refuse a sparse matrix whose indices point outside of it: compiled code would crash."""
    X.check_format(full_check=True)
    # SciPy misses a last one that is negative; a difference to it might overflow.
    if (X.indptr[1:] < X.indptr[:-1]).any():
        raise ValueError("indptr must not decrease")


def in_precision(values: NDArray[Any], dtype: Any) -> NDArray[Any]:
    """Convert a kernel's values, unless some are too large."""
    try:
        with np.errstate(over="raise"):
            return values.astype(dtype, copy=False)
    except FloatingPointError:
        raise ValueError(
            f"dtype={np.dtype(dtype).name!r} cannot hold kernel values as large as "
            f"{np.abs(values).max():.3g}; scale the kernel or use dtype='float64'."
        ) from None


def _has_entries(X: Rows) -> NDArray[np.bool_]:
    """Tell which rows are not zero everywhere."""
    is_there = X.astype(bool).sum(axis=1) if is_sparse(X) else np.any(X, axis=1)
    return np.asarray(is_there, dtype=bool).ravel()


def _dense(X: Rows) -> NDArray[Any]:
    """Rows, or a block of values, as a dense array."""
    return np.asarray(X.toarray() if is_sparse(X) else X)
