"""The greedy stagewise SVM as a classifier."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval

from hardmargin.estimators._base.classifier import KernelClassifier
from hardmargin.estimators._base.greedy_chooser import Chosen, GreedyChooser
from hardmargin.estimators._base.options import Choice
from hardmargin.estimators._base.problem import Expansion, Problem
from hardmargin.estimators._base.staged import StagedMixin
from hardmargin.estimators._base.threshold import cut_machines, training_threshold
from hardmargin.estimators._base.validation import COUNT
from hardmargin.estimators._base.warn import warn_caller
from hardmargin.kernels import GAMMA_RULES, FloatArray, Kernel, KernelFunction
from hardmargin.solvers.greedy import METHODS, solve_greedy
from hardmargin.solvers.solution import GreedySolution

#: Stages whose kernel columns the staged methods hold at once.
STAGES_AT_ONCE = 128


class GreedySVC(StagedMixin, GreedyChooser):
    """Support vector classifier trained by greedy stages, with nothing to tune.

    Algorithm 1 of TNN-08 [1]_: the hard-margin dual is lowered one multiplier at a time, each
    stage choosing the row whose step lowers it most. Each row is visited once at most, or a few
    times; that it stops there is what regularises, there is no constant C. Training is exact (the
    published order of selection) and takes a small fraction of an ordinary SVM's time.

    By default the features are standardised and the kernel width, the number of visits and the
    threshold are chosen in ``fit`` by cross-validation; the held-out scores also give
    probabilities. ``GreedySVC(gamma=g, max_visits=1, threshold=0)`` is the paper's machine.

    Parameters
    ----------
    gamma : "cv", float or {"scale", "spread", "pairwise"}, default="cv"
        Width of the kernel. ``"cv"`` chooses it by the log-loss of held-out rows, from powers of
        two times ``"spread"``. ``"scale"`` is scikit-learn's 1 / (n_features * X.var()),
        ``"spread"`` 1 / mean squared distance to the mean, ``"pairwise"`` 1 / mean squared distance
        between rows.
    kernel : {"rbf", "laplacian", "linear", "poly", "sigmoid", "precomputed"} or callable, \
default="rbf"
        The kernel; a callable takes two sets of rows and returns the matrix of values. Indefinite
        kernels are fine.
    degree : float, default=3
        Degree of the ``"poly"`` kernel.
    coef0 : float, default=0.0
        Constant in the ``"poly"`` and ``"sigmoid"`` kernels.
    max_visits : "cv" or int, default="cv"
        How often a row may be chosen. 1 is the paper's algorithm; with more, rows can also give
        back, and training goes on until no step exceeds `step_tol`. ``"cv"`` chooses among 1, 4 and
        64, together with gamma.
    step_tol : float, default=0.02
        With more than one visit, the step that ends training.
    max_stages : int or None, default=None
        Limit on the stages of each machine. None allows one a row (times its sample weight), with
        more than one visit 8.
    threshold : "auto" or float, default="auto"
        Scores above it go to the second class; the paper's machines have 0. ``"auto"`` is 0 too
        unless rows are held out, to choose `gamma` or `max_visits`: it is then that of a sigmoid
        fitted to the held-out scores, where this lowers their errors by more than the square root
        of their number.
    standardize : "auto" or bool, default="auto"
        Shift and scale every feature to mean 0 and variance 1 (scale only, for sparse rows); those
        that take two values only, to values 1 apart. Features that a few huge values would flatten
        are clipped, with a warning. ``"auto"`` does so where gamma is ``"cv"``, but not for
        a callable; above 20,000 rows it compares with the features as they are, and
        takes what is better. A precomputed kernel is never changed.
    cv : int, splitter or iterable of (train, test) indices, default=5
        The splits that ``"cv"`` chooses by; a number stands for shuffled folds, stratified by
        class, with copies of a row in the same fold. Splitters that need groups take those given to
        ``fit``, whose notes say how to hand them on from ``cross_val_score`` and searches.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes. They leave training alone and move the threshold, by the log ratio
        of the weights over the slope of a sigmoid fitted to the held-out scores, or to the training
        scores where none were held out.
    multi_class : {"ovo", "ovr"}, default="ovo"
        One machine a pair of classes, or one a class against the rest.
    method : {"auto", "fused", "lazy", "bits", "lazy-bits"}, default="auto"
        How kernel values are evaluated: every column as it comes (``"fused"``), only where the next
        choice can depend on it (``"lazy"``), with two-valued columns packed as bits (``"bits"``),
        or both. All give the same model; ``"auto"`` takes what the data allow and changes over
        when it does not pay.
    dtype : {"auto", "float32", "float64"}, default="auto"
        Precision of kernel values. ``"auto"`` is float64 up to 5,000 rows and float32 above;
        gradients and sums are always float64. float64 reproduces the algorithm step by step.
        Choosing takes float32 from 500 rows on, unless this is ``"float64"``.
    memory_limit : str, number or None, default=None
        Memory for a fit, as ``"2GB"`` or in bytes; None is half of the free memory.
    n_jobs : int or None, default=None
        Threads over splits and candidates while choosing, over the machines of many classes in the
        last fit, and over rows in ``predict``. The model does not depend on it.
    max_time : float or None, default=None
        Seconds after which ``fit`` returns the model so far, with a warning. Half of it is for
        choosing.
    verbose : int, default=0
        Print the progress of long fits.
    random_state : int, RandomState instance or None, default=None
        Shuffles the folds and draws the subsamples that large sets are chosen on, and the rows that
        `class_weight` fits its sigmoid on when a machine has more than 5,000. None always draws
        the same, so that fits can be repeated. The order of the rows matters as well, and more than
        the seed: among equal steps the lowest row is chosen.

    Attributes
    ----------
    classes_ : (n_classes,) array
        The labels.
    max_visits_ : int
        Visits that a row may have.
    standardized_ : bool
        Whether features are standardised.
    threshold_ : float, or array for many classes
        Threshold of each machine.
    cv_results_ : dict of arrays
        What was tried: ``gamma``, ``max_visits``, ``standardized``, ``n_rows`` that took part, and
        ``log_loss`` of the held-out rows, under sigmoids fitted to their scores (averaged over the
        machines). This and the next two exist where gamma or max_visits is ``"cv"``.
    cv_log_loss_, cv_error_ : float
        Log-loss of the probabilities and share of wrong predictions of the rows held out, weighted
        by sample and class weights; NaN where no rows could be held out, or `max_time` ended the
        last fit. They are those the choice was made by, and so a little too good.
    support_ : (n_support,) array
        Rows with a coefficient: in order of selection for two classes, else sorted.
    support_vectors_ : (n_support, n_features) array or CSR matrix
        Those rows, standardised where the option says so; empty for a precomputed kernel.
    n_support_ : (n_classes,) array
        Support rows of each class.
    dual_coef_ : (n_machines, n_support) array, or CSR array for many classes
        Multiplier times label.
    intercept_ : (n_machines,) array
        Minus the threshold.
    coef_ : (n_machines, n_features) array
        For the linear kernel; of the standardised features where the option says so.
    n_iter_ : int, or array of them for many classes
        Stages.
    loss_path_ : array, or list of them for many classes
        Dual objective after each stage.
    stage_indices_, stage_steps_ : array, or list of them for many classes
        The row of each stage, and the change of its multiplier.
    weight_norm_ : float or array
        ``||w||``, from eq. (28) of TNN-08.
    vc_bound_ : float or array
        Bound on the VC dimension, eq. (26): ``min(R^2 ||w||^2, n) + 1``, where the sphere around
        the origin with ``R^2 = max k(x, x)`` holds all rows.
    certificate_ : float or array
        Largest step still open when training stopped.
    n_kernel_evaluations_ : int or array
        Kernel values evaluated.
    stop_reason_ : str or array
        ``"converged"``, ``"exhausted"`` (every row was visited as often as it may be),
        ``"max_stages"`` or ``"max_time"``.
    method_ : str or array
        The method in use at the end.
    gamma_ : float
        The kernel's gamma as a number.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : array
        Names of the features, where X has them.

    Notes
    -----
    One gamma and one number of visits serve all machines: those with the least log-loss of held-out
    rows, each machine's scores going through a sigmoid of its own. From 2,500 rows on most of the
    search is on a subsample. Above 20,000 rows choosing takes about as long as one to three fits:
    a single split is followed on growing subsamples, up to four tenths of all rows, more than one
    visit is kept only if it clearly pays and is not too slow, and threshold and probabilities come
    from the last rows held out, 10,000 at most.

    The probability of a machine's positive side is a sigmoid of its margin, so it is at least one
    half exactly where that side is predicted. With many classes and held-out rows,
    ``decision_function`` is the sum of a class's pairwise probabilities, made steeper;
    ``predict_proba`` has the order of it, and values from the mean logs of the same probabilities.

    A row of sample weight w may be chosen w times as often; a fraction left over scales its last
    step. For whole weights and ``max_visits=1`` this equals repeating rows (up to ties); with more
    visits it is approximate. Weights in the hundreds take long: divide them by their mean.

    References
    ----------
    .. [1] L. Bo, L. Wang and L. Jiao, "Training Hard-Margin Support Vector Machines Using Greedy
       Stagewise Algorithm", IEEE Transactions on Neural Networks, 2008.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from hardmargin import GreedySVC
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> clf = GreedySVC(random_state=0).fit(X[:400], y[:400])
    >>> round(clf.score(X[400:], y[400:]), 2)
    0.98
    >>> clf.predict_proba(X[400:402]).round(1)
    array([[1., 0.],
           [0., 1.]])

    The machine of the paper:

    >>> paper = GreedySVC(gamma=1e-6, max_visits=1, threshold=0).fit(X[:400], y[:400])
    >>> paper.stop_reason_
    'converged'
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **KernelClassifier._parameter_constraints,
        "gamma": [
            Interval(Real, 0, None, closed="neither"),
            Choice({"cv", *GAMMA_RULES}),
        ],
        "max_visits": [Choice({"cv"}), COUNT],
        "step_tol": [Interval(Real, 0, None, closed="left")],
        "max_stages": [COUNT, None],
        "threshold": [Choice({"auto"}), Interval(Real, None, None, closed="neither")],
        "standardize": [Choice({"auto"}), "boolean"],
        "cv": ["cv_object"],
        "method": [Choice(METHODS)],
    }

    def __init__(
        self,
        gamma: float | str = "cv",
        *,
        kernel: str | KernelFunction = "rbf",
        degree: float = 3,
        coef0: float = 0.0,
        max_visits: int | str = "cv",
        step_tol: float = 0.02,
        max_stages: int | None = None,
        threshold: float | str = "auto",
        standardize: bool | str = "auto",
        cv: Any = 5,
        class_weight: dict[Any, float] | str | None = None,
        multi_class: str = "ovo",
        method: str = "auto",
        dtype: str = "auto",
        memory_limit: str | float | None = None,
        n_jobs: int | None = None,
        max_time: float | None = None,
        verbose: int = 0,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.gamma = gamma
        self.kernel = kernel
        self.degree = degree
        self.coef0 = coef0
        self.max_visits = max_visits
        self.step_tol = step_tol
        self.max_stages = max_stages
        self.threshold = threshold
        self.standardize = standardize
        self.cv = cv
        self.class_weight = class_weight
        self.multi_class = multi_class
        self.method = method
        self.dtype = dtype
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.max_time = max_time
        self.verbose = verbose
        self.random_state = random_state

    def staged_decision_function(self, X: Any) -> Iterator[FloatArray]:
        """Scores after every stage, as `decision_function` gives them at the end.

        Stage t of several machines applies the first t steps of each, or all it has.

        Yields
        ------
        (n_samples,) array, or (n_samples, n_classes) for more than two classes
        """
        for margins in self._staged_margins(self._check_rows(X)):
            scores = self._scores(margins)
            yield scores[:, 1] if len(self.classes_) == 2 else scores

    def _staged_margins(self, Q: Any) -> Iterator[FloatArray]:
        two_classes = len(self.classes_) == 2
        paths = [self.stage_indices_] if two_classes else self.stage_indices_
        changes = [self.stage_steps_] if two_classes else self.stage_steps_
        margins = np.tile(self.intercept_, (Q.shape[0], 1))
        at_once = max(1, STAGES_AT_ONCE // len(paths))
        for begin in range(0, max(map(len, paths)), at_once):
            chunks = [path[begin : begin + at_once] for path in paths]
            rows, column = np.unique(np.concatenate(chunks), return_inverse=True)
            columns = np.split(column, np.cumsum([len(c) for c in chunks])[:-1])
            values = self._path_columns(Q, rows)
            for t in range(max(map(len, chunks))):
                for m, at in enumerate(columns):
                    if t < len(at):
                        signed = self._stage_signs_[m][begin + t] * changes[m][begin + t]
                        margins[:, m] += signed * values[:, at[t]]
                yield margins.copy()

    def _path_columns(self, Q: Any, rows: NDArray[np.int32]) -> NDArray[Any]:
        """Kernel values of queries against rows of the paths, given by their training index."""
        if self._kernel_.name == "precomputed":
            return np.asarray(Q[:, rows])
        assert isinstance(self._kernel_, Kernel)
        kept = np.concatenate([self.support_, self._given_back_])
        order = np.argsort(kept)
        at = order[np.searchsorted(kept, rows, sorter=order)]
        is_support = at < len(self.support_)
        values = np.empty((Q.shape[0], len(rows)), dtype=self._dtype_)
        for among, vectors, first in (
            (is_support, self.support_vectors_, 0),
            (~is_support, self._given_back_vectors_, len(self.support_)),
        ):
            if among.any():
                values[:, among] = self._kernel_.block(
                    Q, vectors[at[among] - first], dtype=self._dtype_, n_jobs=self.n_jobs
                )
        return values

    def _solve(self, problem: Problem) -> list[Expansion]:
        assert isinstance(problem, Chosen)
        assert isinstance(problem.kernel, Kernel)
        solutions = solve_greedy(
            problem.kernel,
            problem.X,
            problem.codes,
            problem.machines,
            weights=problem.weights,
            options=replace(
                self._options(problem),
                max_visits=problem.max_visits,
                max_seconds=problem.seconds,
            ),
            report=self._reporter(len(problem.machines)),
        )
        self._warn_if_cut_short(solutions)
        self._keep_paths(problem, solutions)
        expansions = [self._expansion(problem, m, s) for m, s in enumerate(solutions)]
        self._slopes_ = None
        self.max_visits_ = problem.max_visits
        fixed = None if self.threshold == "auto" else float(self.threshold)
        held_out = None if problem.choice is None else problem.choice.held_out
        if held_out is not None:
            cuts = cut_machines(problem, held_out, fixed)
            self._slopes_ = np.array([cut.slope for cut in cuts])
            thresholds = [cut.threshold for cut in cuts]
        else:
            thresholds = [
                training_threshold(problem, m, e, fixed or 0.0, problem.random_state, self.n_jobs)
                for m, e in enumerate(expansions)
            ]
        self.threshold_ = thresholds[0] if len(thresholds) == 1 else np.array(thresholds)
        return [
            replace(e, intercept=-t if t else 0.0)
            for e, t in zip(expansions, thresholds, strict=True)
        ]

    def _store(self, problem: Problem, machines: list[Expansion]) -> None:
        super()._store(problem, machines)
        assert isinstance(problem, Chosen)
        if problem.choice is not None and problem.choice.held_out is not None:
            self._fit_probabilities(problem, problem.choice.held_out, problem.random_state)
            if "max_time" in np.atleast_1d(self.stop_reason_):  # not the model that was judged
                self.cv_log_loss_ = self.cv_error_ = float("nan")

    def _expansion(self, problem: Problem, machine: int, solution: GreedySolution) -> Expansion:
        kept = solution.multipliers != 0
        rows, alpha = solution.support[kept], solution.multipliers[kept]
        coefficients = np.where(problem.is_positive(machine)[problem.codes[rows]], alpha, -alpha)
        return Expansion(rows, coefficients, 0.0)

    def _warn_if_cut_short(self, solutions: list[GreedySolution]) -> None:
        reasons = {s.stop_reason for s in solutions}
        for limit, advice in (
            ("max_stages", "raise max_stages, or step_tol to stop earlier"),
            ("max_time", "raise max_time"),
        ):
            # Chosen visits were chosen with the same limit: nothing was cut short.
            is_expected = limit == "max_stages" and self.max_visits == "cv" and not self.max_stages
            if limit in reasons and not is_expected:
                largest = max(s.violation for s in solutions if s.stop_reason == limit)
                warn_caller(
                    f"Training stopped at {limit} with steps up to {largest:.3g} still open; the "
                    f"model is that of the stages so far. To go on, {advice}."
                )
        if any(s.n_stages == 0 for s in solutions):
            warn_caller(
                "No row could be chosen, as k(x, x) <= 0 for all of them: the machine predicts a "
                "constant. Change the kernel, or its gamma and coef0."
            )

    def _keep_paths(self, problem: Problem, solutions: list[GreedySolution]) -> None:
        class_sizes = np.bincount(problem.codes[problem.codes >= 0])
        sizes = np.array(
            [class_sizes[[*negative, *positive]].sum() for negative, positive in problem.machines]
        )
        radii = np.array([s.squared_radius for s in solutions])
        norms = np.array([s.squared_norm for s in solutions])

        def one_or_all(values: Any) -> Any:
            return values[0] if len(solutions) == 1 else values

        self.n_iter_ = one_or_all(np.array([s.n_stages for s in solutions]))
        self.loss_path_ = one_or_all([s.losses for s in solutions])
        self.stage_indices_ = one_or_all([s.stage_indices for s in solutions])
        self.stage_steps_ = one_or_all([s.stage_steps for s in solutions])
        self.weight_norm_ = one_or_all(np.sqrt(norms))
        self.vc_bound_ = one_or_all(np.minimum(radii * norms, sizes) + 1.0)
        self.certificate_ = one_or_all(np.array([s.violation for s in solutions]))
        self.n_kernel_evaluations_ = one_or_all(
            np.array([s.n_kernel_evaluations for s in solutions])
        )
        self.stop_reason_ = one_or_all(np.array([s.stop_reason for s in solutions]))
        self.method_ = one_or_all(np.array([s.method for s in solutions]))
        if len(solutions) == 1:
            self.n_iter_ = int(self.n_iter_)
            self.n_kernel_evaluations_ = int(self.n_kernel_evaluations_)
            self.stop_reason_, self.method_ = str(self.stop_reason_), str(self.method_)
            self.weight_norm_, self.vc_bound_, self.certificate_ = (
                float(v) for v in (self.weight_norm_, self.vc_bound_, self.certificate_)
            )

        # What the staged methods need beyond that: labels, and rows that gave everything back.
        self._stage_signs_ = [
            np.where(problem.is_positive(m)[problem.codes[s.stage_indices]], 1.0, -1.0)
            for m, s in enumerate(solutions)
        ]
        visited = np.concatenate([s.support for s in solutions])
        holds = np.concatenate([s.multipliers != 0 for s in solutions])
        self._given_back_ = np.setdiff1d(visited[~holds], visited[holds])
        self._given_back_vectors_: Any = None
        if problem.kernel.name != "precomputed":
            self._given_back_vectors_ = problem.X[self._given_back_]
