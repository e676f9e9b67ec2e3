"""Training rows, labels, weights and queries, as all estimators of the package take them."""

from __future__ import annotations

from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from hardmargin.estimators._base.problem import IntArray
from hardmargin.estimators._base.warn import warn_caller
from hardmargin.kernels import (
    DISTANCE_KERNELS,
    FloatArray,
    Kernel,
    KernelFunction,
    Precision,
    Rows,
    canonical,
    distances,
    is_sparse,
    make_kernel,
)

#: Up to this many rows ``dtype="auto"`` evaluates kernels in float64.
MAX_EXACT_ROWS = 5_000

#: Squares of larger features overflow float32.
MAX_FLOAT32_FEATURE = 1e18

#: The largest weight is between one over this and this, and no other is smaller by more than this:
#: sums of weights and of their squares then neither overflow nor vanish.
MAX_WEIGHT = 1e75

#: Counts that parameters may give: they fit the integers of the compiled core.
COUNT = Interval(Integral, 1, 2**62, closed="both")

#: Threads: a number of them, or -1 for one per core, -2 for one less, and so on.
N_JOBS = (
    Interval(Integral, 1, 2**31 - 1, closed="both"),
    Interval(Integral, -(2**31), -1, closed="both"),
)


#: Rows that are compared with each other to see whether a kernel tells rows apart.
ROWS_TO_TELL_APART = 64

#: A kernel is flat if gamma times the distance is less than this for nearly all pairs of rows.
FLAT = 1e-4


class TrainingRows(NamedTuple):
    """What ``fit`` was given.

    Attributes
    ----------
    X : rows
        The rows, or the kernel matrix between them.
    codes : (n,) int32 array
        Class of every row, from 0; -1 for rows of weight zero.
    classes : (n_classes,) array
        Labels of the classes.
    weights : (n,) array or None
        Sample weights.
    """

    X: Rows
    codes: IntArray
    classes: NDArray[Any]
    weights: FloatArray | None


def check_training_rows(estimator: Any, X: Any, y: Any, sample_weight: Any) -> TrainingRows:
    """Validate rows, labels and weights; at least two classes must be there."""
    X, y = _validated(estimator, X, y, y_numeric=False)
    X = _square_if_precomputed(estimator, X)
    check_classification_targets(y)
    weights = _weights(X, sample_weight)
    present = slice(None) if weights is None else weights > 0
    classes = np.unique(y[present])
    if len(classes) < 2:
        found = "no class" if len(classes) == 0 else f"only one class ({classes[0]})"
        raise ValueError(
            f"{type(estimator).__name__} needs rows of positive weight from at least two classes; "
            f"y has {found}."
        )
    codes = np.searchsorted(classes, y).astype(np.int32)
    if weights is not None:
        codes[weights == 0] = -1
    return TrainingRows(X, codes, classes, weights)


def check_unlabelled_rows(
    estimator: Any, X: Any, sample_weight: Any
) -> tuple[Rows, FloatArray | None]:
    """Validate rows and weights; at least one row must weigh something."""
    X = _square_if_precomputed(estimator, _validated(estimator, X))
    weights = _weights(X, sample_weight)
    if weights is not None and not weights.any():
        raise ValueError(
            f"{type(estimator).__name__} needs rows of positive weight; sample_weight has none."
        )
    return X, weights


def check_queries(estimator: Any, X: Any) -> Rows:
    """Validate rows that a fitted estimator is asked about."""
    check_is_fitted(estimator)
    is_precomputed = estimator.kernel == "precomputed"
    try:
        with np.errstate(over="ignore", invalid="ignore"):  # a sum looks for NaN in large features
            X = validate_data(
                estimator,
                X,
                reset=False,
                accept_sparse=False if is_precomputed else "csr",
                dtype=[np.float64, np.float32],
            )
    except ValueError as error:
        _suggest_preprocessing(error)
        if is_precomputed and "features" in str(error):
            error.add_note(
                "With kernel='precomputed', pass the kernel values of the rows against all "
                "training rows: shape (n_rows, n_training_rows)."
            )
        raise
    return canonical(X)


def kernel_of_rows(
    name: str | KernelFunction,
    X: Rows,
    weights: FloatArray | None,
    *,
    gamma: float | str,
    degree: float,
    coef0: float,
) -> Kernel:
    """Settle the kernel; rows of weight zero have no say in its gamma."""
    if weights is not None:
        is_there = weights > 0
        X = X if is_there.all() else X[is_there]
        weights = weights[is_there]
    with np.errstate(over="ignore", invalid="ignore"):
        kernel = make_kernel(
            name, X, gamma=gamma, degree=degree, coef0=coef0, sample_weight=weights
        )
        if kernel.name == "poly" and float(degree) % 1 != 0:
            _check_powers(kernel, X)
    return kernel


def finite_scores(scores: FloatArray, kernel: str | KernelFunction) -> FloatArray:
    """Refuse rows whose scores are not finite."""
    if np.isfinite(scores).all():
        return scores
    name = "the kernel" if callable(kernel) else f"kernel={kernel!r}"
    raise ValueError(
        f"Some rows have no finite score, as {name} is not finite on them; scale them as the rows "
        "of fit."
    )


def warn_if_flat(kernel: Kernel, X: Rows, weights: FloatArray | None) -> None:
    """Warn where the kernel can not tell rows apart: nothing can be learned from them then."""
    if kernel.name in ("precomputed", "callable"):
        return
    X = X if weights is None or weights.all() else X[weights > 0]
    metric = kernel.name if kernel.name in DISTANCE_KERNELS else "laplacian"
    some = np.unique(np.linspace(0, X.shape[0] - 1, ROWS_TO_TELL_APART).astype(np.intp))
    with np.errstate(all="ignore"):
        apart = distances(X[some], metric)[np.triu_indices(len(some), 1)]
        nearly_all = kernel.gamma * np.quantile(apart, 0.9) if len(apart) else 0.0
    if not apart.any() and (Kernel(metric).block(X, X[:1]) == 1).all():
        if X.shape[0] > 1:
            warn_caller(
                "All rows look the same to the kernel, so that all get the same prediction: the "
                "features are constant, or so small that their squares vanish. Scale them up.",
                UserWarning,
            )
    elif metric == kernel.name and 0 < nearly_all < FLAT:
        warn_caller(
            f"Nearly all rows look the same to the {kernel.name} kernel, as its gamma of "
            f"{kernel.gamma:.3g} is too small for the distances between them; or a few rows are so "
            "far off that a rule for gamma sees only those. Remove or clip them, standardise the "
            "features, or raise gamma.",
            UserWarning,
        )


def precision(X: Rows, dtype: str, kernel: str | KernelFunction) -> Precision:
    """Precision of the kernel values that `dtype` stands for."""
    if dtype == "float64" or (dtype == "auto" and X.shape[0] <= MAX_EXACT_ROWS):
        return "float64"
    values = X.data if is_sparse(X) else X
    largest = max(values.max(), -values.min()) if values.size else 0.0
    if largest <= MAX_FLOAT32_FEATURE or kernel == "precomputed" or callable(kernel):
        return "float32"
    if dtype == "auto":
        return "float64"
    raise ValueError(
        f"dtype='float32' can not hold squares of features as large as {largest:.3g}; scale "
        "the features or use dtype='float64'."
    )


def _validated(estimator: Any, X: Any, y: Any = "no_validation", **options: Any) -> Any:
    """Validate rows, and labels where there are some, as scikit-learn does."""
    try:
        with np.errstate(over="ignore", invalid="ignore"):  # a sum looks for NaN in large features
            return validate_data(
                estimator,
                X,
                y,
                accept_sparse=False if estimator.kernel == "precomputed" else "csr",
                dtype=[np.float64, np.float32],
                **options,
            )
    except ValueError as error:
        _suggest_preprocessing(error)
        raise


def _square_if_precomputed(estimator: Any, X: Rows) -> Rows:
    X = canonical(X)
    if estimator.kernel == "precomputed" and X.shape[0] != X.shape[1]:
        raise ValueError(
            "kernel='precomputed' takes the square matrix of kernel values between all "
            f"training rows as X, got shape {X.shape}."
        )
    return X


def _check_powers(kernel: Kernel, X: Rows) -> None:
    """Refuse a fractional degree where the number to be raised to it may be negative."""
    values = X.data if is_sparse(X) else X
    least = 0.0
    if values.min(initial=0.0) < 0:  # x'z is no less than minus the largest x'x
        least = -kernel.gamma * float(Kernel("linear").diagonal(X).max())
    if least + kernel.coef0 < 0:
        raise ValueError(
            f"degree={kernel.degree} is no whole number, and gamma * x'z + coef0 may be negative "
            "on these rows, which then has no power; use a whole degree, features that are not "
            "negative, or a larger coef0."
        )


def _weights(X: Rows, sample_weight: Any) -> FloatArray | None:
    if sample_weight is None:
        return None
    with np.errstate(over="ignore"):
        weights: FloatArray = _check_sample_weight(
            sample_weight, X, dtype=np.float64, ensure_non_negative=True
        )
    return moderate(weights)


def moderate(weights: FloatArray) -> FloatArray:
    """Bring extreme weights to where they can be added up and squared.

    Ratios stay as they are, but for weights so much smaller than the largest that they count for
    nothing; these stay positive, as zero is absence.
    """
    largest = float(weights.max(initial=0.0))
    if largest == 0:
        return weights
    bounded = min(max(largest, 1.0 / MAX_WEIGHT), MAX_WEIGHT)
    scaled = weights if largest == bounded else weights / largest * bounded
    return np.where(weights > 0, np.maximum(scaled, bounded / MAX_WEIGHT), 0.0)


def _suggest_preprocessing(error: ValueError) -> None:
    message = str(error)
    if "NaN" in message:
        error.add_note(
            "Missing values can be filled in a pipeline: "
            "make_pipeline(SimpleImputer(), StandardScaler(), ...)."
        )
    elif "could not convert string" in message:
        error.add_note(
            "Columns of text or categories can be encoded in a pipeline, for instance with skrub: "
            "make_pipeline(TableVectorizer(), ...)."
        )
