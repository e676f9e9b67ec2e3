"""Margin-maximising discriminant analysis: supervised features from orthogonal SVMs."""

from __future__ import annotations

from contextlib import suppress
from numbers import Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from joblib import effective_n_jobs
from sklearn.utils._param_validation import Interval

from hardmargin.estimators._base.estimator import COUNT, KernelEstimator
from hardmargin.estimators._base.one_model import Projector
from hardmargin.estimators._base.options import Choice
from hardmargin.kernels import (
    FloatArray,
    Kernel,
    KernelFunction,
    Precision,
    Rows,
    make_kernel,
)
from hardmargin.kernels.columns import KernelColumns
from hardmargin.kernels.diagonal import check_diagonal
from hardmargin.kernels.low_rank import LowRankMatrix, low_rank_matrix
from hardmargin.kernels.matrix import dense_kernel
from hardmargin.kernels.precision import precision, warn_if_flat
from hardmargin.monitor import Monitor, Stopped
from hardmargin.prediction.machines import finite_scores
from hardmargin.resources import (
    COLUMNS_SHARE,
    CORE_ROW_BYTES,
    CORE_SHARE,
    enough_memory,
    memory_bytes,
    planned_bytes,
    single_threaded_blas,
    tasks_at_once,
)
from hardmargin.solvers.core_sets import core_vector, lagrangian, newton
from hardmargin.solvers.core_sets.core_vector import CoreVectorOptions, Stopping
from hardmargin.solvers.core_sets.dense import DenseOptions
from hardmargin.solvers.core_sets.l2_svm import CONSTRAINTS, Constraint, L2Solution, Scope
from hardmargin.solvers.core_sets.lagrangian import LagrangianOptions
from hardmargin.solvers.problem import KernelRows, Problem, machines_of
from hardmargin.warn import warn_caller

Solver = Literal["core", "newton", "lagrangian", "nystroem"]

#: The most matrices of the size of the kernel matrix that a solver holds at a time.
N_MATRICES = {"newton": 3, "lagrangian": 2}

#: Values of ``tol="auto"``.
DEFAULT_TOL = {"core": 0.05, "nystroem": 0.05, "newton": 1e-6, "lagrangian": 1e-6}

#: Advice for machines that stopped uncertified.
ADVICE = {
    "core_full": "raise memory_limit ({enough} for all rows), or raise tol to need fewer rows",
    "rounding": "raise tol, lower C, or use dtype='float64'",
    "indefinite": "the kernel is not positive semi-definite; use another, or lower C",
    "stalled": "scale the features, or lower C",
    "radius": "use stopping='margin'",
    "max_stages": "raise tol, lower C, or use solver='newton'",
    "max_time": "raise max_time, or tol",
}


class MarginDiscriminantAnalysis(Projector, KernelEstimator):
    """Margin-maximising discriminant analysis: features that separate the classes.

    Each class has an L2-SVM against all others, and more SVMs whose planes must be orthogonal to
    (or whose projections must be uncorrelated with) those before [1]_. A row's features are its
    projections onto these directions. They are found by core sets [2]_, with each machine certified
    to be close to its optimum, or by solvers that go to the optimum itself.

    Parameters
    ----------
    n_directions : int, default=1
        Directions per class (two classes share theirs); fewer if the next machine would improve on
        w = 0 by less than a millionth.
    C : float, default=1.0
        Weight of the squared slacks; a smaller C regularises more.
    gamma : float or {"scale", "spread", "pairwise"}, default="pairwise"
        Width of the kernel. ``"scale"`` is scikit-learn's 1 / (n_features * X.var()),
        ``"spread"`` 1 / mean squared distance to the mean, ``"pairwise"`` 1 / mean squared distance
        between rows.
    kernel : {"rbf", "laplacian", "matern32", "matern52", "linear", "cosine", "poly", \
"sigmoid", "precomputed"} or callable, default="rbf"
        The kernel; it should be positive semi-definite.
    degree : float, default=3
        Degree of the ``"poly"`` kernel.
    coef0 : float, default=0.0
        Constant in the ``"poly"`` and ``"sigmoid"`` kernels.
    constraint : {"orthogonal", "uncorrelated", "uncorrelated-centred"}, default="orthogonal"
        The directions of a class are orthogonal to each other in feature space, or the projections
        of the training rows onto them are: ``"uncorrelated"`` uses the projections as they are,
        ``"uncorrelated-centred"`` subtracts their means.
    scope : {"class", "all"}, default="class"
        Whether a direction must be orthogonal to (or uncorrelated with) the earlier ones of its own
        class, or of all classes, which is another possible reading of section 4.1 of the paper
        [2]_. With ``"all"`` the classes take turns, on one thread, and their machines have more
        support rows.
    solver : {"core", "newton", "lagrangian", "nystroem"}, default="core"
        ``"core"`` finds the directions by core sets. ``"newton"`` takes Newton steps on the whole
        kernel matrix, to the optimum. ``"lagrangian"`` is the fixed-point iteration of the
        Lagrangian SVM, as published [2]_, on the inverse of that matrix: it finds the same optimum
        more slowly, especially for large C. These two are the dense solvers. ``"nystroem"`` uses
        core sets on an approximation of the kernel through `rank` landmark rows, which are then the
        only support rows: there are fewer of them, at some cost in accuracy.
    rank : int, default=400
        Number of landmarks of ``solver="nystroem"``.
    tol : float or "auto", default="auto"
        Core sets end when ``lower_bound_ >= (1 - tol) ** 2 * objective_``, dense solvers
        when the relative gap between the primal and the dual objective is at most `tol`.
        ``"auto"`` is 0.05 for core sets and 1e-6 for dense solvers.
    stopping : {"margin", "radius"}, default="margin"
        When core sets are complete: certified by a pass over all rows, or by the rule of the paper,
        with `eps` and samples of 59 rows, as in `CoreVectorSVC`. Dense solvers need no such rule.
    eps : float, default=1e-5
        For ``stopping="radius"``: how far outside the ball rows may lie, relative to its radius.
    moment_rows : int or None, default=10_000
        Number of rows that estimate the moments of the uncorrelated constraints; None is all.
    dtype : {"auto", "float32", "float64"}, default="auto"
        Precision of kernel values. ``"auto"`` is float64 up to 5,000 rows and float32 above, and
        always float64 with the dense solvers. Sums are always float64.
    memory_limit : str, number or None, default=None
        Memory limit of a fit, such as ``"2GB"`` or a number of bytes; None is half the free memory.
        If a dense solver needs more, ``fit`` raises an error.
    n_jobs : int or None, default=None
        Number of threads: over classes in ``fit``, over rows in ``transform``. The directions do
        not depend on it.
    max_time : float or None, default=None
        Seconds after which ``fit`` returns the directions so far, with a warning. Without time for
        the matrices of the dense solvers or of ``"nystroem"``, these are directions of core sets of
        a few rows.
    verbose : int, default=0
        Print the progress of long fits.
    random_state : int, RandomState instance or None, default=None
        Seed for the samples of rows and the landmarks; None is a fixed seed.

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
        Those rows; empty for a precomputed kernel.
    intercepts_ : (n_components,) array
        Where each machine's plane cuts its direction: a row is on the positive side if its feature
        plus this is positive.
    lower_bound_, objective_ : (n_components,) arrays
        The optimum of each machine lies between these two; with ``solver="nystroem"``, the optimum
        for the approximate kernel.
    core_size_ : (n_components,) array
        Number of rows in each core set; all rows with the dense solvers.
    n_kernel_evaluations_ : (n_components,) array
        Number of kernel values evaluated for each machine, not counting those that earlier machines
        had evaluated; always counted as if the machines were trained one after another. The dense
        solvers evaluate all values for the first machine.
    stop_reason_ : (n_components,) array
        As in `CoreVectorSVC`, or ``"optimal"`` with the dense solvers.
    gamma_ : float
        The kernel's gamma as a number.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : array
        Names of the features, if X has them.

    Notes
    -----
    Scale the features first. Projections (onto directions of length one) are small numbers, so that
    classifiers that depend on scale need a `StandardScaler` after this as well. Orthogonal
    directions may have correlated projections; the other constraints make them uncorrelated.

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
        **KernelEstimator._parameter_constraints,
        "n_directions": [COUNT],
        "C": [Interval(Real, 0, None, closed="neither")],
        "constraint": [Choice(CONSTRAINTS)],
        "scope": [Choice({"class", "all"})],
        "solver": [Choice(DEFAULT_TOL)],
        "rank": [COUNT],
        "tol": [Interval(Real, 0, 1, closed="neither"), Choice({"auto"})],
        "stopping": [Choice({"margin", "radius"})],
        "eps": [Interval(Real, 0, None, closed="neither")],
        "moment_rows": [COUNT, None],
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
        scope: Scope = "class",
        solver: Solver = "core",
        rank: int = 400,
        tol: float | str = "auto",
        stopping: Stopping = "margin",
        eps: float = 1e-5,
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
        self.scope = scope
        self.solver = solver
        self.rank = rank
        self.tol = tol
        self.stopping = stopping
        self.eps = eps
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
            Training rows; for ``kernel="precomputed"`` the (n_samples, n_samples) kernel matrix.
        y : (n_samples,) array
            Labels: strings, integers, booleans or categories.
        sample_weight : (n_samples,) array, optional
            Row weights: a weight of two counts the row twice, a weight of zero leaves it out.

        Returns
        -------
        self
        """
        with self._fitting() as monitor:
            X, codes, self.classes_, weights, *_ = self._check_training(X, y, sample_weight)
            random = self._new_generator()
            self._kernel_: Kernel = make_kernel(
                self.kernel,
                X,
                gamma=self.gamma,
                degree=self.degree,
                coef0=self.coef0,
                sample_weight=weights,
            )
            self.gamma_ = self._kernel_.gamma
            warn_if_flat(self._kernel_, X, weights)
            is_wide = self.dtype == "auto" and self.solver in N_MATRICES
            self._dtype_: Precision = precision(
                X, "float64" if is_wide else self.dtype, self._kernel_
            )
            rows = KernelRows(self._kernel_, X, self._dtype_)
            present = np.flatnonzero(codes >= 0)
            if len(present) < len(codes):  # a weight of zero leaves a row out
                rows, codes = rows.some(present), codes[present]
                weights = None if weights is None else weights[present]
            X = rows.X
            low_rank = self._low_rank(X, random, monitor) if self.solver == "nystroem" else None
            if low_rank is not None:
                # A kernel of low rank is the linear one of its factor.
                rows = KernelRows(Kernel("linear"), low_rank.factor, self._dtype_)
            machines = machines_of(len(self.classes_), "ovr")
            problem = Problem(rows, codes, machines, weights)
            solutions, enough = self._train(problem, random, monitor)

            own_classes = self.classes_[-len(machines) :]
            self.direction_classes_ = own_classes[[s.machine for s in solutions]]
            norms = np.array([s.weight_norm for s in solutions])
            intercepts = np.array([s.intercept for s in solutions])
            self.intercepts_ = intercepts / np.where(norms > 0, norms, 1.0)
            self.lower_bound_ = np.array([s.lower_bound for s in solutions])
            self.objective_ = np.array([s.objective for s in solutions])
            self.core_size_ = np.array([s.core_size for s in solutions])
            self.n_kernel_evaluations_ = np.array([s.n_kernel_evaluations for s in solutions])
            if self.solver in N_MATRICES:
                self.n_kernel_evaluations_[0] = self.core_size_[0] ** 2
            self.stop_reason_ = np.array([s.stop_reason for s in solutions])
            if not ADVICE.keys().isdisjoint(self.stop_reason_):
                self._warn_uncertified(enough)
            expansions = np.array([s.direction for s in solutions])
            if low_rank is not None:
                support = low_rank.landmarks.astype(np.intp)
                self.directions_ = low_rank.coefficients(expansions.T).T
            else:
                support = np.flatnonzero(expansions.any(axis=0))
                self.directions_ = expansions[:, support]
            self.support_ = present[support].astype(np.int32)
            is_precomputed = self.kernel == "precomputed"
            self.support_vectors_: Rows = np.empty((0, 0)) if is_precomputed else X[support]
        return self

    def transform(self, X: Any) -> FloatArray:
        """Project rows onto the directions.

        Parameters
        ----------
        X : (n_samples, n_features) array or sparse matrix
            Rows; for ``kernel="precomputed"`` their kernel values against all training rows.

        Returns
        -------
        (n_samples, n_components) array
        """
        return self._projections(X)

    def _projections(self, X: Any) -> FloatArray:
        """Project rows; an array, however scikit-learn is configured."""
        queries = self._check_queries(X)
        if self.kernel == "precomputed":
            queries = queries[:, self.support_]
        with single_threaded_blas():
            projections = self._kernel_.expand(
                queries,
                self.support_vectors_,
                self.directions_,
                dtype=self._dtype_,
                n_jobs=self.n_jobs,
            )
        return finite_scores(projections, self.kernel)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    @property
    def _n_features_out(self) -> int:
        return len(self.directions_)

    @property
    def _tol(self) -> float:
        """`tol` as a number."""
        return DEFAULT_TOL[self.solver] if self.tol == "auto" else float(self.tol)

    def _low_rank(
        self, X: Rows, random: np.random.RandomState, monitor: Monitor
    ) -> LowRankMatrix | None:
        """Approximate the kernel; without time for that, core sets use the kernel itself."""
        # Core sets square the values, but only know the kernel of the approximation.
        check_diagonal(self._kernel_, X, squared=True, dtype=self._dtype_)
        with suppress(Stopped):
            return low_rank_matrix(
                self._kernel_,
                X,
                min(self.rank, X.shape[0]),
                dtype=self._dtype_,
                memory_bytes=memory_bytes(self.memory_limit),
                n_jobs=self.n_jobs,
                random_state=random,
                monitor=monitor,
            )
        return None

    def _train(
        self, problem: Problem[KernelRows], random: np.random.RandomState, monitor: Monitor
    ) -> tuple[list[L2Solution], str]:
        """Train the machines of each class; return how much memory is enough, if it was short."""
        rows, n, n_machines = problem.values, len(problem.codes), len(problem.machines)
        seeds = random.randint(2**31 - 1, size=len(self.classes_))[-n_machines:]
        options: dict[str, Any] = {
            "C": self.C,
            "tol": self._tol,
            "n_directions": self.n_directions,
            "constraint": self.constraint,
            "scope": self.scope,
            "moment_rows": self.moment_rows,
            "seeds": seeds.tolist(),
        }
        if self.solver in N_MATRICES:
            found = self._train_on_matrix(problem, options, monitor)
            if found is not None:
                return found, ""
        budget = planned_bytes(self.memory_limit, CORE_ROW_BYTES * n)
        columns = KernelColumns(
            rows.kernel,
            rows.X,
            dtype=rows.dtype,
            memory_bytes=int(COLUMNS_SHARE * budget),
            n_jobs=self.n_jobs,
        )
        solutions = core_vector.solve(
            Problem(columns, problem.codes, problem.machines, problem.weights),
            CoreVectorOptions(
                **options,
                stopping=self.stopping,
                eps=self.eps,
                memory_bytes=int(CORE_SHARE * budget),
            ),
            monitor.part("violation", n_machines=n_machines),
        )
        if all(s.stop_reason != "core_full" for s in solutions):
            return solutions, ""
        most = int(columns.bytes_of_core_set(n) / CORE_SHARE)
        return solutions, enough_memory(most, CORE_ROW_BYTES * n)

    def _train_on_matrix(
        self, problem: Problem[KernelRows], options: dict[str, Any], monitor: Monitor
    ) -> list[L2Solution] | None:
        """Train the machines on the whole kernel matrix, as many at once as the memory allows.

        None if there is no time to evaluate the matrix; core sets of a few rows do without it.
        """
        n, n_machines = len(problem.codes), len(problem.machines)
        budget = memory_bytes(self.memory_limit)
        matrix_bytes = 8 * n * n  # every class beyond the first needs another such matrix
        spare = budget - N_MATRICES[self.solver] * matrix_bytes
        if spare < 0:
            raise ValueError(
                f"solver={self.solver!r} needs {(budget - spare) / 1e9:.3g} GB for the kernel "
                f"matrix of {n:,} rows and matrices of its size; memory_limit leaves "
                f"{budget / 1e9:.3g} GB. Raise memory_limit, or use solver='core', which needs "
                "only a small part of the matrix."
            )
        at_once = tasks_at_once(
            effective_n_jobs(self.n_jobs), n_machines, matrix_bytes, spare + matrix_bytes
        )
        options = {**options, "machines_at_once": at_once}
        monitor = monitor.part("relative gap", n_machines=n_machines)
        dense = dense_kernel(problem.values, n_jobs=self.n_jobs, monitor=monitor)
        if dense is None:
            return None
        whole = Problem(dense, problem.codes, problem.machines, problem.weights)
        if self.solver == "lagrangian":
            return lagrangian.solve(whole, LagrangianOptions(**options), monitor)
        return newton.solve(whole, DenseOptions(**options), monitor)

    def _warn_uncertified(self, enough: str) -> None:
        """Warn about machines that are not certified; `enough` is the memory that would do."""
        is_close = self.lower_bound_ >= (1.0 - self._tol) ** 2 * self.objective_
        is_done = ~np.isin(self.stop_reason_, list(ADVICE))
        is_done |= (self.stop_reason_ == "radius") & is_close
        reasons = sorted(set(self.stop_reason_[~is_done].tolist()))
        if reasons:
            advice = [ADVICE[reason].format(enough=enough) for reason in reasons]
            warn_caller(
                "Some directions are not certified to be within tol (stop_reason_: "
                f"{', '.join(reasons)}): {'; '.join(advice)}."
            )
