"""The diversified SVM ensemble: orthogonal machines, and a classifier trained on top of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from numbers import Integral
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.model_selection import check_cv
from sklearn.utils._param_validation import HasMethods
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    _raise_for_params,
    _routing_enabled,
    process_routing,
)
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _check_method_params, check_is_fitted, has_fit_parameter

from hardmargin.estimators._base.estimator import KernelEstimator
from hardmargin.estimators._base.labels import score
from hardmargin.estimators._base.one_model import Projector, on_one_model
from hardmargin.estimators._base.options import Choice
from hardmargin.estimators._base.second_layer import (
    RESPONSES,
    fit_second_layer,
    second_layer,
    shifts_and_scales,
)
from hardmargin.estimators.discriminant import MarginDiscriminantAnalysis, Solver
from hardmargin.kernels import FloatArray, KernelFunction, Rows, as_blocks
from hardmargin.monitor import Monitor
from hardmargin.resources import (
    CORE_ROW_BYTES,
    give_back_if_limited,
    planned_bytes,
    single_threaded_blas,
)
from hardmargin.selection.folds import (
    ROWS_PER_CLASS,
    Folds,
    make_folds,
    random_ranks,
    subsample,
)
from hardmargin.selection.growing import Growth, growing_sizes
from hardmargin.solvers.core_sets.core_vector import Stopping
from hardmargin.solvers.core_sets.l2_svm import Constraint, Scope
from hardmargin.warn import Warned, held_back, warn_caller

#: Share of `max_time` for the first layers; the rest is for projections and the second layer.
FIRST_SHARE = 0.7

#: With a time limit, the second layer is first trained on this many rows, for this long at least.
LEAST_LAYER_ROWS, LEAST_SECONDS = 1_000, 0.1

#: Parameters that are passed on to the first layer unchanged.
FIRST_LAYER = (
    "n_directions",
    "C",
    "gamma",
    "kernel",
    "degree",
    "coef0",
    "constraint",
    "scope",
    "solver",
    "rank",
    "tol",
    "stopping",
    "eps",
    "moment_rows",
    "dtype",
    "memory_limit",
    "n_jobs",
    "verbose",
)


def _final_has(method: str) -> Callable[[DiversifiedSVC], bool]:
    """Whether the second layer has a method, before ``fit`` and after it."""

    def check(self: DiversifiedSVC) -> bool:
        final = getattr(self, "final_estimator_", self.final_estimator)
        if RESPONSES.get(final) == method if isinstance(final, str) else hasattr(final, method):
            return True
        hint = ""
        if method == "predict_proba":
            hint = "; for probabilities wrap it in sklearn.calibration.CalibratedClassifierCV"
        raise AttributeError(f"final_estimator={self.final_estimator!r} has no {method}{hint}.")

    return check


class DiversifiedSVC(Projector, ClassifierMixin, KernelEstimator):
    """Diversified SVM ensemble: machines orthogonal to each other, and a classifier on top.

    The first layer is `MarginDiscriminantAnalysis`: `n_directions` machines per class, which
    separate it from all others, each orthogonal to those before it. The second layer is trained on
    the projections of the rows onto these directions [1]_.

    Parameters
    ----------
    n_directions : int, default=3
        Machines per class (two classes share theirs); fewer if more would not help. The
        paper has 1, 3 and 5.
    final_estimator : {"svm", "mlp", "cvm", "vote"} or classifier, default="svm"
        The second layer. ``"svm"`` is the SVM of scikit-learn's `SVC`, with C = 1 and 1 / gamma the
        mean squared distance between projections, trained by a solver of ours, ``"mlp"`` a network
        with ten hidden units, ``"cvm"`` `CoreVectorSVC` with the same C and gamma, for more rows
        than ``"svm"`` can handle. These three see the projections scaled to a standard deviation of
        one, ``"mlp"`` also with their means subtracted. ``predict_proba`` exists for ``"mlp"`` and
        for classifiers that have it. With ``"vote"`` the machines vote and
        nothing is trained. The paper does so with bagged SVMs; here it is much worse, as each
        additional orthogonal machine says less about the class: on scikit-learn's digits it has 3 %
        errors with one machine per class and 11 % with five, where a trained layer has 2 %. Named
        layers with a ``decision_function`` predict the class of its largest score; a classifier
        given as an object uses its own ``predict``.
    cv : int, splitter, iterable of splits or None, default=None
        None trains the second layer on the projections of the rows that the machines were trained
        on, as in the paper. Otherwise it is trained on projections of held-out rows: a first layer
        is fitted for each split, and another on all rows for predictions. An integer is the number
        of stratified folds. Rows that are never held out do not train the second layer; for rows
        held out more than once, their mean projections are used. ``"vote"`` needs no splits.
    C : float, default=1.0
        Weight of the squared slacks in the first layer; a smaller C regularises more.
    gamma : float or {"scale", "spread", "pairwise"}, default="pairwise"
        Width of the first layer's kernel. ``"scale"`` is scikit-learn's
        1 / (n_features * X.var()), ``"spread"`` 1 / mean squared distance to the mean,
        ``"pairwise"`` 1 / mean squared distance between rows.
    kernel : {"rbf", "laplacian", "matern32", "matern52", "linear", "cosine", "poly", \
"sigmoid", "precomputed"} or callable, default="rbf"
        The first layer's kernel; it should be positive semi-definite.
    degree : float, default=3
        Degree of the ``"poly"`` kernel.
    coef0 : float, default=0.0
        Constant in the ``"poly"`` and ``"sigmoid"`` kernels.
    constraint : {"orthogonal", "uncorrelated", "uncorrelated-centred"}, default="orthogonal"
        The machines of a class are orthogonal to each other in feature space, or the projections of
        the training rows onto them are: ``"uncorrelated"`` uses the projections as they are,
        ``"uncorrelated-centred"`` subtracts their means.
    scope : {"class", "all"}, default="class"
        Whether these constraints hold within each class, or between the machines of all classes.
    solver : {"core", "newton", "lagrangian", "nystroem"}, default="core"
        How the machines are trained, as in `MarginDiscriminantAnalysis`.
    rank : int, default=400
        Number of landmarks of ``solver="nystroem"``.
    tol : float or "auto", default="auto"
        How close to its optimum a machine is trained, as in `MarginDiscriminantAnalysis`.
    stopping : {"margin", "radius"}, default="margin"
        When core sets are complete: certified by a pass over all rows, or by the rule of the paper,
        with `eps` and samples of 59 rows, as in `CoreVectorSVC`.
    eps : float, default=1e-5
        For ``stopping="radius"``: how far outside the ball rows may lie, relative to its radius.
    moment_rows : int or None, default=10_000
        Number of rows that estimate the moments of the uncorrelated constraints; None is all.
    dtype : {"auto", "float32", "float64"}, default="auto"
        Precision of the first layer's kernel values. ``"auto"`` is float64 up to 5,000 rows and
        float32 above.
    memory_limit : str, number or None, default=None
        Memory limit of a fit, such as ``"2GB"`` or a number of bytes; None is half the free memory.
    n_jobs : int or None, default=None
        Number of threads: over classes in ``fit``, over rows in ``predict``; splits are processed
        one after another. The model does not depend on it.
    max_time : float or None, default=None
        Seconds that ``fit`` may take. The first layers may take most of them, and keep the machines
        so far, with a warning. The second layer is trained on some rows first, then on as many as
        there is time for, with a warning if these are not all rows; only ``"mlp"``, and a
        classifier given as an object, may exceed the limit on the first, smallest part.
    verbose : int, default=0
        Print the progress of long fits of the first layer.
    random_state : int, RandomState instance or None, default=None
        Seed for the samples of rows, the landmarks and the network; None is a fixed seed.

    Attributes
    ----------
    classes_ : (n_classes,) array
        The labels.
    discriminant_ : MarginDiscriminantAnalysis
        The first layer, fitted on all rows.
    estimators_ : list
        Contains only the first layer; the attribute's name is that of `StackingClassifier`.
    final_estimator_ : classifier
        The second layer.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : array
        Names of the features, if X has them.

    See Also
    --------
    MarginDiscriminantAnalysis : The first layer.
    CoreVectorSVC : A single machine per pair of classes.

    Notes
    -----
    Rows that the machines were trained on can look better separated than new rows. With `cv` the
    second layer sees held-out rows, which avoids this, at the cost of a first layer for each split.
    At C = 1 the machines hardly overfit, and on digits `cv` gains nothing and sometimes loses a
    little; with C = 100 and noisy labels it helps. All directions have length one, with their class
    on the positive side, so that projections from different splits are comparable.

    Ctrl-C ends a fit within a second, unless a classifier given as an object does not react to it.

    References
    ----------
    .. [1] I. W. Tsang, A. Kocsor and J. T. Kwok, "Diversified SVM Ensembles for Large Data Sets",
       ECML 2006.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.model_selection import train_test_split
    >>> from hardmargin import DiversifiedSVC
    >>> X, y = load_digits(return_X_y=True)
    >>> X_train, X_test, y_train, y_test = train_test_split(X, y, train_size=600, random_state=0)
    >>> clf = DiversifiedSVC(random_state=0).fit(X_train, y_train)
    >>> clf.transform(X_test).shape, bool(clf.score(X_test, y_test) > 0.96)
    ((1197, 30), True)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **MarginDiscriminantAnalysis._parameter_constraints,
        "final_estimator": [Choice(RESPONSES), HasMethods(["fit", "predict"])],
        "cv": ["cv_object"],
    }

    def __init__(
        self,
        n_directions: int = 3,
        *,
        final_estimator: Any = "svm",
        cv: Any = None,
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
        self.final_estimator = final_estimator
        self.cv = cv
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

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None, **params: Any
    ) -> Self:
        """Train both layers on rows X with labels y.

        Parameters
        ----------
        X : (n_samples, n_features) array or sparse matrix
            Training rows; for ``kernel="precomputed"`` the (n_samples, n_samples) kernel matrix.
        y : (n_samples,) array
            Labels: strings, integers, booleans or categories.
        sample_weight : (n_samples,) array, optional
            Row weights in both layers: a weight of two counts the row twice (except for the random
            steps of ``"mlp"``), a weight of zero leaves it out. With metadata routing, a classifier
            given as `final_estimator` gets them only if it requests them.
        groups : (n_samples,) array, optional
            Group of each row, for a splitter given as `cv`. With metadata routing, pipelines and
            searches pass them on after ``set_fit_request(groups=True)``.
        **params : dict
            With metadata routing: metadata that a classifier given as `final_estimator` requests.

        Returns
        -------
        self
        """
        with self._fitting() as monitor:
            given = self._check_training(X, y, sample_weight)
            X, codes, self.classes_, *_ = given
            y, present, weights = self.classes_[codes], codes >= 0, given.positive_weights
            final_params = self._final_params(weights, sample_weight, groups, params)
            if self.cv is None and groups is not None and "groups" not in final_params:
                raise ValueError(
                    "groups were given, but cv=None makes no splits; use a splitter that uses "
                    "groups, such as cv=GroupKFold(5)."
                )
            folds = self._folds(X, codes, groups)
            seed = self._new_generator().randint(2**31 - 1)

            first = monitor.part(share=FIRST_SHARE)
            held_out: list[_HeldOut] = []
            n_rows = [*folds.train.sum(axis=1), present.sum()]
            for k, (train, test) in enumerate(zip(folds.train, folds.test, strict=True)):
                mda = self._first_layer(_share(first, n_rows[k:]), seed)
                of_train = None if weights is None else weights[train]
                mda.fit(self._part(X, train, train), y[train], of_train)
                Z = mda._projections(self._part(X, test, train))
                held_out.append(_HeldOut(test, Z, _machines(mda)))
            mda = self._first_layer(_share(first, n_rows[-1:]), seed)
            is_absent = weights is None and not present.all()
            mda.fit(X, y, present.astype(np.float64) if is_absent else weights)
            mda.set_params(max_time=self.max_time)
            self.discriminant_ = mda
            self.estimators_ = [mda]

            if held_out:
                used, Z = _mean_projections(held_out, _machines(mda))
                projected = _Projections(Z)
            else:
                used, rows = present, np.flatnonzero(present)

                def project(some: NDArray[np.intp]) -> FloatArray:
                    if len(some) == X.shape[0]:
                        return mda._projections(X)
                    return mda._projections(as_blocks(X, self._most_row_bytes)[rows[some]])

                projected = _Projections(np.empty((len(rows), len(mda.directions_))), project)
            second = self._second_layer(
                projected,
                codes[used],
                None if weights is None else weights[used],
                _check_method_params(X, final_params, np.flatnonzero(used)),
                seed,
                monitor,
            )
            self._shifts_, self._scales_ = second.shifts, second.scales
            self.final_estimator_ = second.layer
            if hasattr(self, "feature_names_in_"):  # from now on it may be given data frames
                mda.feature_names_in_ = self.feature_names_in_
        return self

    def transform(self, X: Any) -> FloatArray:
        """Project rows onto the machines' directions: the second layer's input, before scaling.

        Parameters
        ----------
        X : (n_samples, n_features) array or sparse matrix
            Rows.

        Returns
        -------
        (n_samples, n_machines) array
        """
        check_is_fitted(self)
        return self.discriminant_._projections(X)

    score = score

    @on_one_model
    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the class of every row.

        Parameters
        ----------
        X : (n_samples, n_features) array or sparse matrix
            Rows.

        Returns
        -------
        (n_samples,) array
        """
        predicted: NDArray[Any] = self._ask("predict", X)
        return predicted

    @available_if(_final_has("decision_function"))
    @on_one_model
    def decision_function(self, X: Any) -> FloatArray:
        """Scores of the second layer; shares of the votes if ``final_estimator="vote"``.

        Parameters
        ----------
        X : (n_samples, n_features) array or sparse matrix
            Rows.

        Returns
        -------
        (n_samples,) array, or (n_samples, n_classes) for more than two classes
        """
        scores: FloatArray = self._ask("decision_function", X)
        return scores

    @available_if(_final_has("predict_proba"))
    @on_one_model
    def predict_proba(self, X: Any) -> FloatArray:
        """Probabilities of the second layer.

        Parameters
        ----------
        X : (n_samples, n_features) array or sparse matrix
            Rows.

        Returns
        -------
        (n_samples, n_classes) array
        """
        probabilities: FloatArray = self._ask("predict_proba", X)
        return probabilities

    @available_if(_final_has("predict_proba"))
    @on_one_model
    def predict_log_proba(self, X: Any) -> FloatArray:
        """Logarithms of the probabilities of the second layer.

        Parameters
        ----------
        X : (n_samples, n_features) array or sparse matrix
            Rows.

        Returns
        -------
        (n_samples, n_classes) array
            Minus infinity where a probability is zero.
        """
        with np.errstate(divide="ignore"):
            logs: FloatArray = np.log(self.predict_proba(X))
        return logs

    def get_metadata_routing(self) -> MetadataRouter:
        """Return how metadata is routed.

        Returns
        -------
        MetadataRouter
        """
        return (
            MetadataRouter(owner=type(self).__name__)
            .add_self_request(self)
            .add(
                final_estimator=self.final_estimator,
                method_mapping=MethodMapping().add(caller="fit", callee="fit"),
            )
        )

    @property
    def _n_features_out(self) -> int:
        return len(self.discriminant_.directions_)

    def _ask(self, method: str, X: Any) -> Any:
        check_is_fitted(self)
        Z = self.discriminant_._projections(X)
        with single_threaded_blas():
            return getattr(self.final_estimator_, method)((Z - self._shifts_) / self._scales_)

    def _final_params(
        self, weights: FloatArray | None, sample_weight: Any, groups: Any, params: dict[str, Any]
    ) -> dict[str, Any]:
        """Metadata for the fit of the second layer, for all rows, used or not."""
        layer = second_layer(self.final_estimator)
        given = {"sample_weight": sample_weight, "groups": groups}
        if _routing_enabled():
            given = {name: value for name, value in given.items() if value is not None}
            routed = process_routing(self, "fit", **given, **params)
            if not isinstance(self.final_estimator, str):
                return dict(routed["final_estimator"]["fit"])
        else:
            _raise_for_params(params, self, "fit")
        if weights is None:
            return {}
        if not has_fit_parameter(layer, "sample_weight"):
            raise ValueError(
                f"sample_weight was given, but final_estimator={self.final_estimator!r} takes no "
                "weights; use another final_estimator, or fit without weights."
            )
        return {"sample_weight": weights}

    def _first_layer(self, max_time: float | None, seed: int) -> MarginDiscriminantAnalysis:
        """Make a first layer, not yet fitted."""
        return MarginDiscriminantAnalysis(
            **{name: getattr(self, name) for name in FIRST_LAYER},
            max_time=max_time,
            random_state=seed,
        )

    def _second_layer(
        self,
        projected: _Projections,
        codes: NDArray[np.int32],
        weights: FloatArray | None,
        final_params: dict[str, Any],
        seed: int,
        monitor: Monitor,
    ) -> _Second:
        """Train the second layer on all rows or, with a time limit, on as many as it allows."""
        n_rows, best = len(codes), None
        sizes: Iterable[int] = [n_rows]
        if monitor.has_limit:
            least = max(LEAST_LAYER_ROWS, ROWS_PER_CLASS * len(self.classes_))
            sizes = growing_sizes(Growth(n_rows, n_rows, least), monitor)
        ranks = random_ranks(codes, np.random.RandomState(seed))
        for size in sizes:
            is_whole = size >= n_rows
            some = np.arange(n_rows) if is_whole else np.flatnonzero(subsample(codes, ranks, size))
            max_time = max(monitor.seconds_left, LEAST_SECONDS) if monitor.has_limit else None
            second = self._second_layer_on(
                some, projected, codes, weights, final_params, seed, max_time
            )
            if best is None or not second.is_cut:
                best = second
        assert best is not None  # the first fit is always made
        for message, category in best.warnings:
            warn_caller(message, category)
        if best.n_rows < n_rows:
            warn_caller(
                f"max_time={self.max_time:g} is too short for all rows: the second layer was "
                f"trained on {best.n_rows:,} of {n_rows:,}. Raise max_time to use more of them."
            )
        return best

    def _second_layer_on(
        self,
        some: NDArray[np.intp],
        projected: _Projections,
        codes: NDArray[np.int32],
        weights: FloatArray | None,
        final_params: dict[str, Any],
        seed: int,
        max_time: float | None,
    ) -> _Second:
        """Train the second layer on some rows."""
        mda, Z = self.discriminant_, projected.of(some)
        give_back_if_limited()  # of the first layer, and of second layers before this one
        of_some = None if weights is None else weights[some]
        shifts, scales = shifts_and_scales(self.final_estimator, Z, of_some)
        Z = (Z - shifts) / scales
        limit = self.memory_limit
        if limit is not None:
            limit = planned_bytes(limit, CORE_ROW_BYTES * len(codes))
        layer = second_layer(
            self.final_estimator,
            Z,
            sample_weight=of_some,
            machine_classes=mda.direction_classes_,
            intercepts=mda.intercepts_,
            memory_limit=limit,
            n_jobs=self.n_jobs,
            max_time=max_time,
            random_state=seed,
        )
        params = final_params
        if len(some) < len(codes):
            params = _check_method_params(codes, final_params, some)
        with held_back() as held:
            fit_second_layer(layer, Z, self.classes_[codes[some]], **params)
        is_cut = isinstance(self.final_estimator, str) and "max_time" in np.atleast_1d(
            getattr(layer, "stop_reason_", "")
        )
        if isinstance(layer, KernelEstimator) and isinstance(self.final_estimator, str):
            layer.set_params(max_time=self.max_time)
        return _Second(layer, shifts, scales, len(some), is_cut, held)

    def _part(self, X: Rows, rows: NDArray[np.bool_], trained_on: NDArray[np.bool_]) -> Rows:
        """Return some rows; of a kernel matrix, their values against the rows trained on."""
        return X[rows][:, trained_on] if self.kernel == "precomputed" else X[rows]

    def _folds(self, X: Rows, codes: NDArray[np.int32], groups: Any) -> Folds:
        """Return the splits; none if the second layer is trained in sample."""
        none = np.zeros((0, len(codes)), dtype=bool)
        cv = self.cv
        if cv is None or (isinstance(self.final_estimator, str) and self.final_estimator == "vote"):
            return Folds(none, none)
        if isinstance(cv, Integral) and groups is None:
            cv = check_cv(cv, codes[codes >= 0], classifier=True)
        folds = make_folds(cv, X, codes, groups=groups)
        name = f"cv={self.cv!r}" if isinstance(self.cv, Integral) else "cv"
        for k, train in enumerate(folds.train):
            self._check_classes(codes[train], f"to train on in split {k} of {name}")
        held_out = folds.test.any(axis=0)
        self._check_classes(codes[held_out], f"that {name} holds out for the second layer")
        # A split that holds nothing out is of no use.
        useful = folds.test.any(axis=1)
        return Folds(folds.train[useful], folds.test[useful])

    def _check_classes(self, codes: NDArray[np.int32], where: str) -> None:
        missing = np.setdiff1d(np.arange(len(self.classes_)), codes)
        if len(missing):
            raise ValueError(
                f"Class {self.classes_[missing[0]]!s} has no rows {where}; lower cv, or use "
                "splits with rows of every class on both sides."
            )


class _HeldOut(NamedTuple):
    """Projections of the rows that one split holds out.

    Attributes
    ----------
    test : (n,) bool array
        Which rows these are.
    Z : (n_test, n_machines) array
        Their projections.
    machines : list of (label, int)
        Class of each machine, and its index within the class.
    """

    test: NDArray[np.bool_]
    Z: FloatArray
    machines: list[tuple[Any, int]]


class _Second(NamedTuple):
    """A second layer.

    Attributes
    ----------
    layer : classifier
        The fitted classifier.
    shifts, scales : (n_machines,) arrays
        How projections are scaled for it.
    n_rows : int
        Rows that it was trained on.
    is_cut : bool
        Whether its time was up before it was finished.
    warnings : list of Warned
        What its fit warned of.
    """

    layer: Any
    shifts: FloatArray
    scales: FloatArray
    n_rows: int
    is_cut: bool
    warnings: list[Warned]


class _Projections:
    """Projections of the rows that train the second layer, made when they are needed.

    Parameters
    ----------
    Z : (n, n_machines) array
        Projections.
    project : callable, optional
        Fills in the projections of some rows; by default all are known.
    """

    def __init__(
        self, Z: FloatArray, project: Callable[[NDArray[np.intp]], FloatArray] | None = None
    ) -> None:
        self._Z, self._project = Z, project
        self._is_known = np.full(len(Z), project is None)

    def of(self, some: NDArray[np.intp]) -> FloatArray:
        """Return the projections of some rows."""
        new = some[~self._is_known[some]]
        if self._project is not None and len(new):
            self._Z[new] = self._project(new)
            self._is_known[new] = True
        return self._Z[some]


def _share(monitor: Monitor, n_rows: Sequence[int]) -> float | None:
    """Seconds for the first of several fits, in proportion to their rows.

    Time that a fit does not use goes to the fits after it.
    """
    if not monitor.has_limit:
        return None
    return float(max(n_rows[0] / sum(n_rows) * monitor.seconds_left, 1e-3))


def _machines(mda: MarginDiscriminantAnalysis) -> list[tuple[Any, int]]:
    """Class of each machine, and its index within the class."""
    labels = mda.direction_classes_.tolist()
    return [(label, labels[:k].count(label)) for k, label in enumerate(labels)]


def _mean_projections(
    held_out: list[_HeldOut], machines: list[tuple[Any, int]]
) -> tuple[NDArray[np.bool_], FloatArray]:
    """Return which rows were ever held out, and their mean projections onto `machines`.

    If a split has no such machine, its projections are zero there.
    """
    counts = np.sum([part.test for part in held_out], axis=0)
    sums = np.zeros((len(counts), len(machines)))
    for part in held_out:
        for column, machine in enumerate(machines):
            if machine in part.machines:
                sums[part.test, column] += part.Z[:, part.machines.index(machine)]
    used = counts > 0
    return used, sums[used] / counts[used, None]
