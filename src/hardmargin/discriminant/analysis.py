"""Margin-maximising discriminant analysis: supervised features from orthogonal SVMs."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from hardmargin.budget import limited_blas, memory_bytes
from hardmargin.classifiers.base import MAX_EXACT_ROWS
from hardmargin.classifiers.warn import warn_caller
from hardmargin.kernel_columns import KernelColumns
from hardmargin.kernels import (
    GAMMA_RULES,
    NAMED_KERNELS,
    FloatArray,
    Kernel,
    KernelFunction,
    Precision,
    Rows,
    canonical,
    make_kernel,
)
from hardmargin.solvers.ball import CONSTRAINTS, BallOptions, Constraint, solve_balls
from hardmargin.solvers.lowrank import LowRankMatrix, low_rank_matrix
from hardmargin.solvers.machines import finite_diagonal
from hardmargin.solvers.solution import BallSolution

#: Shares of the memory limit: for kernel columns, and for Q on the core sets.
COLUMNS_SHARE, CORE_SHARE = 0.5, 0.25


class MarginDiscriminantAnalysis(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Margin-maximising discriminant analysis: features that separate the classes.

    For each class an L2-SVM against all others, and further ones whose planes must be orthogonal
    to (or whose projections must be uncorrelated with) those before [1]_. A row's features are its
    projections on these directions. They are found by core sets [2]_, each machine within a
    certified distance of its optimum.

    Parameters
    ----------
    n_directions : int, default=1
        Directions for each class (two classes share theirs); fewer where nothing is left.
    C : float, default=1.0
        Weight of the squared slacks; less of it regularises more.
    gamma : float or {"scale", "spread", "pairwise"}, default="pairwise"
        Width of the kernel. ``"scale"`` is scikit-learn's 1 / (n_features * X.var()),
        ``"spread"`` 1 / mean squared distance to the mean, ``"pairwise"`` 1 / mean squared distance
        between rows.
    kernel : {"rbf", "laplacian", "linear", "poly", "sigmoid"} or callable, default="rbf"
        The kernel; it should be positive semi-definite.
    degree : float, default=3
        Degree of the ``"poly"`` kernel.
    coef0 : float, default=0.0
        Constant in the ``"poly"`` and ``"sigmoid"`` kernels.
    constraint : {"orthogonal", "uncorrelated", "uncorrelated-centred"}, default="orthogonal"
        What the directions of a class are to each other: orthogonal in feature space, or with
        orthogonal projections of the training rows, as they are or less their means.
    solver : {"core", "nystroem"}, default="core"
        The kernel itself, or its approximation through `rank` landmark rows, which all directions
        are then expansions of: fewer support rows, at some cost in accuracy.
    rank : int, default=400
        Landmarks of ``solver="nystroem"``.
    tol : float, default=0.05
        No margin is short of the common one by more than this share of it.
    moment_rows : int or None, default=10_000
        Rows that estimate the moments of the uncorrelated constraints; None is all.
    dtype : {"auto", "float32", "float64"}, default="auto"
        Precision of kernel values: float64 up to 5,000 rows and float32 above.
    memory_limit : str, number or None, default=None
        Memory for a fit, as ``"2GB"`` or in bytes; None is half of the free memory.
    n_jobs : int or None, default=None
        Threads over classes in ``fit`` and over rows in ``transform``.
    max_time : float or None, default=None
        Seconds after which ``fit`` returns the directions so far, with a warning.
    verbose : int, default=0
        Has no effect so far; all estimators share it.
    random_state : int, RandomState instance or None, default=None
        Draws the samples of rows, and the landmarks.

    Attributes
    ----------
    classes_ : (n_classes,) array
        The labels.
    directions_ : (n_components, n_support) array
        Each direction, of length one, as coefficients of the support rows.
    direction_classes_ : (n_components,) array
        The class that each direction separates from the others.
    support_ : (n_support,) array
        Rows with a coefficient.
    support_vectors_ : (n_support, n_features) array or CSR matrix
        Those rows.
    intercepts_ : (n_components,) array
        Where each machine's plane cuts its direction: a row is on the positive side where its
        feature plus this is positive.
    lower_bound_, objective_ : (n_components,) arrays
        The optimum of each machine is between these two.
    core_size_ : (n_components,) array
        Rows in each core set.
    n_kernel_evaluations_ : (n_components,) array
        Kernel values evaluated for each machine, beyond those that were there.
    stop_reason_ : (n_components,) array
        As in `CoreVectorSVC`.
    gamma_ : float
        The kernel's gamma as a number.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : array
        Names of the features, where X has them.

    See Also
    --------
    CoreVectorSVC : The first machine alone, as a classifier.

    References
    ----------
    .. [1] A. Kocsor, K. Kovacs and C. Szepesvari, "Margin Maximizing Discriminant Analysis", ECML
       2004.
    .. [2] I. W. Tsang, A. Kocsor and J. T. Kwok, "Diversified SVM Ensembles for Large Data Sets",
       ECML 2006.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from hardmargin import MarginDiscriminantAnalysis
    >>> X, y = load_iris(return_X_y=True)
    >>> MarginDiscriminantAnalysis(n_directions=2).fit_transform(X, y).shape
    (150, 6)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_directions": [Interval(Integral, 1, None, closed="left")],
        "C": [Interval(Real, 0, None, closed="neither")],
        "gamma": [Interval(Real, 0, None, closed="neither"), StrOptions(set(GAMMA_RULES))],
        "kernel": [StrOptions(set(NAMED_KERNELS)), callable],
        "degree": [Interval(Real, 0, None, closed="left")],
        "coef0": [Interval(Real, None, None, closed="neither")],
        "constraint": [StrOptions(set(CONSTRAINTS))],
        "solver": [StrOptions({"core", "nystroem"})],
        "rank": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, 1, closed="neither")],
        "moment_rows": [Interval(Integral, 1, None, closed="left"), None],
        "dtype": [StrOptions({"auto", "float32", "float64"})],
        "memory_limit": [str, Interval(Real, 0, None, closed="neither"), None],
        "n_jobs": [Integral, None],
        "max_time": [Interval(Real, 0, None, closed="neither"), None],
        "verbose": ["verbose"],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_directions: int = 1,
        *,
        C: float = 1.0,
        gamma: float | str = "pairwise",
        kernel: str | KernelFunction = "rbf",
        degree: float = 3,
        coef0: float = 0.0,
        constraint: Constraint = "orthogonal",
        solver: Literal["core", "nystroem"] = "core",
        rank: int = 400,
        tol: float = 0.05,
        moment_rows: int | None = 10_000,
        dtype: str = "auto",
        memory_limit: str | float | None = None,
        n_jobs: int | None = None,
        max_time: float | None = None,
        verbose: int = 0,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_directions = n_directions
        self.C = C
        self.gamma = gamma
        self.kernel = kernel
        self.degree = degree
        self.coef0 = coef0
        self.constraint = constraint
        self.solver = solver
        self.rank = rank
        self.tol = tol
        self.moment_rows = moment_rows
        self.dtype = dtype
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.max_time = max_time
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Find the directions of rows X with labels y.

        Parameters
        ----------
        X : (n_samples, n_features) array or sparse matrix
            Training rows.
        y : (n_samples,) array
            Labels of any type.
        sample_weight : (n_samples,) array, optional
            Weights; a weight of two equals the row twice, a weight of zero its absence.

        Returns
        -------
        self
        """
        before = self.__dict__.copy()
        try:
            self._validate_params()
            rows, codes, weights = self._check(X, y, sample_weight)
            with limited_blas(int(effective_n_jobs(self.n_jobs))):
                self._fit(rows, codes, weights)
        except BaseException:
            # A fit that fails or is interrupted leaves the estimator as it was.
            self.__dict__.clear()
            self.__dict__.update(before)
            raise
        return self

    def transform(self, X: Any) -> FloatArray:
        """Project rows on the directions.

        Parameters
        ----------
        X : (n_samples, n_features) array or sparse matrix
            Rows.

        Returns
        -------
        (n_samples, n_components) array
        """
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, accept_sparse="csr", dtype=[np.float64, np.float32])
        with limited_blas(int(effective_n_jobs(self.n_jobs))):
            return self._kernel_.expand(
                canonical(X),
                self.support_vectors_,
                self.directions_,
                dtype=self._dtype_,
                n_jobs=self.n_jobs,
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags

    @property
    def _n_features_out(self) -> int:
        return len(self.directions_)

    def _check(
        self, X: Any, y: Any, sample_weight: Any
    ) -> tuple[Rows, NDArray[np.intp], FloatArray | None]:
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32])
        check_classification_targets(y)
        weights = None
        if sample_weight is not None:
            weights = _check_sample_weight(
                sample_weight, X, dtype=np.float64, ensure_non_negative=True
            )
        present = np.ones(len(y), dtype=bool) if weights is None else weights > 0
        self.classes_ = np.unique(y[present])
        if len(self.classes_) < 2:
            raise ValueError(
                f"{type(self).__name__} needs rows of positive weight from at least two classes; "
                f"y has {len(self.classes_)} class."
            )
        codes = np.where(present, np.searchsorted(self.classes_, y), -1)
        return canonical(X), codes, weights

    def _fit(self, X: Rows, codes: NDArray[np.intp], weights: FloatArray | None) -> None:
        present = codes >= 0
        random = check_random_state(self.random_state)
        self._kernel_: Kernel = make_kernel(
            self.kernel,
            X if present.all() else X[present],
            gamma=self.gamma,
            degree=self.degree,
            coef0=self.coef0,
            sample_weight=None if weights is None else weights[present],
        )
        self.gamma_ = self._kernel_.gamma
        finite_diagonal(self._kernel_, X, codes.astype(np.int32))
        exact = self.dtype == "float64" or (self.dtype == "auto" and len(codes) <= MAX_EXACT_ROWS)
        self._dtype_: Precision = "float64" if exact else "float32"
        budget = memory_bytes(self.memory_limit)
        machine_classes = range(1 if len(self.classes_) == 2 else 0, len(self.classes_))
        n_at_once = min(int(effective_n_jobs(self.n_jobs)), len(machine_classes))

        low_rank: LowRankMatrix | None = None
        kernel, rows = self._kernel_, X
        if self.solver == "nystroem":
            low_rank = low_rank_matrix(
                self._kernel_,
                X,
                min(self.rank, int(present.sum())),
                rows=np.flatnonzero(present),
                dtype=self._dtype_,
                memory_bytes=budget,
                n_jobs=self.n_jobs,
                random_state=random,
            )
            # A kernel of low rank is the linear one of its factor.
            kernel, rows = Kernel("linear"), low_rank.factor
            codes = codes[present]
            weights = None if weights is None else weights[present]
        columns = KernelColumns(
            kernel,
            rows,
            dtype=self._dtype_,
            memory_bytes=int(COLUMNS_SHARE * budget),
            n_jobs=self.n_jobs if n_at_once == 1 else 1,
        )
        options = BallOptions(
            C=self.C,
            tol=self.tol,
            max_seconds=self.max_time,
            memory_bytes=int(CORE_SHARE * budget) // n_at_once,
            moment_rows=self.moment_rows,
        )
        seeds = random.randint(2**31 - 1, size=len(self.classes_))

        def solve(c: int, keep_going: Callable[[int, float], bool]) -> list[BallSolution]:
            return solve_balls(
                columns,
                np.where(codes == c, 1.0, np.where(codes >= 0, -1.0, 0.0)),
                self.n_directions,
                constraint=self.constraint,
                weights=weights,
                options=options,
                random=np.random.default_rng(seeds[c]),
                keep_going=keep_going,
            )

        found = _for_each(machine_classes, solve, n_at_once, self.max_time)
        solutions = [s for of_class in found for s in of_class]
        of_class = [c for c, s in zip(machine_classes, found, strict=True) for _ in s]
        self.direction_classes_ = self.classes_[of_class]
        expansions = np.array([s.direction for s in solutions])
        if low_rank is not None:
            self.support_ = low_rank.landmarks
            self.directions_ = low_rank.coefficients(expansions.T).T
        else:
            self.support_ = np.flatnonzero(expansions.any(axis=0)).astype(np.int32)
            self.directions_ = expansions[:, self.support_]
        self.support_vectors_ = X[self.support_]
        norms = np.array([s.weight_norm for s in solutions])
        intercepts = np.array([s.intercept for s in solutions])
        self.intercepts_ = intercepts / np.where(norms > 0, norms, 1.0)
        self.lower_bound_ = np.array([s.lower_bound for s in solutions])
        self.objective_ = np.array([s.objective for s in solutions])
        self.core_size_ = np.array([s.core_size for s in solutions])
        self.n_kernel_evaluations_ = np.array([s.n_kernel_evaluations for s in solutions])
        self.stop_reason_ = np.array([s.stop_reason for s in solutions])
        reasons = sorted(set(self.stop_reason_.tolist()) - {"certified"})
        if reasons:
            warn_caller(
                f"Some directions are not certified to be within tol (stop_reason_: "
                f"{', '.join(reasons)}); raise tol, max_time or memory_limit."
            )


def _for_each(
    classes: range,
    solve: Callable[[int, Callable[[int, float], bool]], list[BallSolution]],
    n_threads: int,
    max_time: float | None,
) -> list[list[BallSolution]]:
    """Solve for all classes on some threads; Ctrl-C stops every one of them."""
    deadline = np.inf if max_time is None else time.monotonic() + max_time
    cancelled = False

    def keep_going(stage: int, violation: float) -> bool:
        return not cancelled and time.monotonic() < deadline

    if n_threads == 1:
        return [solve(c, keep_going) for c in classes]
    with limited_blas(1), ThreadPoolExecutor(n_threads) as pool:
        try:
            return list(pool.map(lambda c: solve(c, keep_going), classes))
        except BaseException:
            cancelled = True
            pool.shutdown(wait=True, cancel_futures=True)
            raise
