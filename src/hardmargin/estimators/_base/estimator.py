"""What all estimators share: validation, tags, budgets, and fits that fail without a trace."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from hardmargin.estimators._base.options import Choice
from hardmargin.kernels import (
    DISTANCE_KERNELS,
    GAMMA_RULES,
    NAMED_KERNELS,
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
from hardmargin.monitor import Monitor, progress_lines
from hardmargin.resources import memory_bytes, single_threaded_blas
from hardmargin.selection.sigmoids import as_rows
from hardmargin.solvers.problem import IntArray
from hardmargin.warn import warn_caller

#: Up to this many rows ``dtype="auto"`` evaluates kernels in float64.
MAX_FLOAT64_ROWS = 5_000

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
    """What ``fit`` was given, validated.

    Attributes
    ----------
    X : rows
        The rows, or the kernel matrix between them.
    codes : (n,) int32 array
        Class of every row, from 0; -1 for rows of weight zero.
    classes : (n_classes,) array
        Labels of the classes.
    weights : (n,) array or None
        Sample weights, where they are not all one.
    """

    X: Rows
    codes: IntArray
    classes: NDArray[Any]
    weights: FloatArray | None

    def as_evidence(self) -> TrainingRows:
        """Count weights in rows, which choices rest on, and normalised weights hide."""
        if self.weights is None:
            return self
        weights = as_rows(self.weights)
        return self._replace(weights=None if (weights == 1).all() else weights)


class KernelEstimator(BaseEstimator):
    """Base of all estimators.

    ``fit`` is one sequence within ``with self._fitting() as monitor:``: validate, scale, choose,
    solve, calibrate, store.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "gamma": [Interval(Real, 0, None, closed="neither"), Choice(GAMMA_RULES)],
        "kernel": [Choice({*NAMED_KERNELS, "precomputed"}), callable],
        "degree": [Interval(Real, 0, None, closed="left")],
        "coef0": [Interval(Real, None, None, closed="neither")],
        "dtype": [Choice({"auto", "float32", "float64"})],
        "memory_limit": [str, Interval(Real, 0, None, closed="neither"), None],
        "n_jobs": [*N_JOBS, None],
        "max_time": [Interval(Real, 0, None, closed="neither"), None],
        "verbose": ["verbose"],
        "random_state": ["random_state"],
    }

    @contextmanager
    def _fitting(self) -> Iterator[Monitor]:
        """Surround a fit: one that fails or is interrupted leaves the estimator as it was."""
        before = self.__dict__.copy()
        for name in before:
            if name.endswith("_"):  # of an earlier fit, perhaps with other parameters
                del self.__dict__[name]
        try:
            self._validate_params()
            memory_bytes(self.memory_limit)  # which not every fit asks for, but predictions do
            lines = [progress_lines(type(self).__name__, self.verbose)] if self.verbose else []
            with single_threaded_blas():
                yield Monitor(self.max_time, lines)
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.kernel != "precomputed"
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags

    def _threads(self) -> int:
        """Threads that a fit may use."""
        return int(effective_n_jobs(self.n_jobs))

    def _check_training(self, X: Any, y: Any, sample_weight: Any) -> TrainingRows:
        """Validate rows, labels and weights; at least two classes must be there."""
        X, y = self._validated(X, y=y, y_numeric=False)
        check_classification_targets(y)
        weights = None if sample_weight is None else check_weights(X, sample_weight)
        classes = np.unique(y if weights is None else y[weights > 0])
        if len(classes) < 2:
            found = "no class" if len(classes) == 0 else f"only one class ({classes[0]})"
            raise ValueError(
                f"{type(self).__name__} needs rows of positive weight from at least two classes; "
                f"y has {found}."
            )
        codes = np.searchsorted(classes, y).astype(np.int32)
        if weights is not None:
            codes[weights == 0] = -1
            weights = None if (weights == 1).all() else weights
        return TrainingRows(X, codes, classes, weights)

    def _check_unlabelled(self, X: Any, sample_weight: Any) -> tuple[Rows, FloatArray | None]:
        """Validate rows and weights; at least one row must weigh something."""
        X = self._validated(X)
        weights = None if sample_weight is None else check_weights(X, sample_weight)
        if weights is not None and not weights.any():
            raise ValueError(
                f"{type(self).__name__} needs rows of positive weight; sample_weight has none."
            )
        return X, weights

    def _check_queries(self, X: Any) -> Rows:
        """Validate rows that a fitted estimator is asked about."""
        check_is_fitted(self)
        return self._validated(X, reset=False)

    def _validated(self, X: Any, **options: Any) -> Any:
        """Validate rows, and labels where there are some, as scikit-learn does."""
        is_precomputed = self.kernel == "precomputed"
        try:
            with np.errstate(over="ignore", invalid="ignore"):  # a sum looks for NaN among them
                validated = validate_data(
                    self,
                    X,
                    accept_sparse=False if is_precomputed else "csr",
                    dtype=[np.float64, np.float32],
                    **options,
                )
        except ValueError as error:
            _add_advice(error, is_precomputed)
            raise
        rows, *labels = validated if "y" in options else (validated,)
        rows = canonical(rows) if is_sparse(rows) else rows
        if is_precomputed and options.get("reset", True) and rows.shape[0] != rows.shape[1]:
            raise ValueError(
                "kernel='precomputed' takes the square matrix of kernel values between all "
                f"training rows as X, got shape {rows.shape}."
            )
        return (rows, *labels) if labels else rows

    def _settle_kernel(
        self,
        X: Rows,
        weights: FloatArray | None,
        *,
        kernel: str | KernelFunction | None = None,
        gamma: float | str | None = None,
    ) -> Kernel:
        """Turn the kernel's parameters, or those given, into numbers.

        Rows of weight zero have no say in gamma.
        """
        if weights is not None:
            is_there = weights > 0
            X = X if is_there.all() else X[is_there]
            weights = weights[is_there]
        with np.errstate(over="ignore", invalid="ignore"):
            settled = make_kernel(
                self.kernel if kernel is None else kernel,
                X,
                gamma=self.gamma if gamma is None else gamma,
                degree=self.degree,
                coef0=self.coef0,
                sample_weight=weights,
            )
            if settled.name == "poly" and float(self.degree) % 1 != 0:
                _check_powers(settled, X)
        return settled


def one_or_all(values: Sequence[Any]) -> Any:
    """Two classes: the machine's own value; many classes: an array, or a list of paths."""
    if len(values) == 1:
        return values[0]
    return list(values) if isinstance(values[0], np.ndarray) else np.array(values)


def check_weights(X: Rows, sample_weight: Any) -> FloatArray:
    """Validate sample weights, and bring extreme ones to where they can be added up."""
    with np.errstate(over="ignore"):
        weights: FloatArray = _check_sample_weight(
            sample_weight, X, dtype=np.float64, ensure_non_negative=True
        )
    return moderate(weights)


def moderate(weights: FloatArray) -> FloatArray:
    """Bring extreme weights to where they can be added up and squared.

    Parameters
    ----------
    weights : (n,) array
        Not negative.
    """
    largest = float(weights.max(initial=0.0))
    if largest == 0:
        return weights
    bounded = min(max(largest, 1.0 / MAX_WEIGHT), MAX_WEIGHT)
    scaled = weights if largest == bounded else weights / largest * bounded
    return np.where(weights > 0, np.maximum(scaled, bounded / MAX_WEIGHT), 0.0)


def precision(X: Rows, dtype: str, kernel: str | KernelFunction) -> Precision:
    """Precision of the kernel values that `dtype` stands for."""
    if dtype == "float64" or (dtype == "auto" and X.shape[0] <= MAX_FLOAT64_ROWS):
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


def _add_advice(error: ValueError, is_precomputed: bool) -> None:
    """Add to an error of scikit-learn what would help."""
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
    elif is_precomputed and "features" in message:
        error.add_note(
            "With kernel='precomputed', pass the kernel values of the rows against all "
            "training rows: shape (n_rows, n_training_rows)."
        )


def random_numbers(random_state: int | np.random.RandomState | None) -> np.random.RandomState:
    """Turn ``random_state`` into a generator; None always gives the same one.

    A model that changes from fit to fit, on the same rows, is a surprise and not a feature. How
    much another shuffle would change it is for the user to ask, by a number.

    Parameters
    ----------
    random_state : int, RandomState instance or None
        As scikit-learn takes it, but for None.

    Examples
    --------
    >>> from hardmargin.estimators._base.estimator import random_numbers
    >>> random_numbers(None).randint(10, size=3) == random_numbers(None).randint(10, size=3)
    array([ True,  True,  True])
    """
    generator: np.random.RandomState = check_random_state(
        0 if random_state is None else random_state
    )
    return generator
