"""The greedy stagewise SVM as a classifier."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from numbers import Real
from os import PathLike
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval

from hardmargin.estimators._base.classifier import Training
from hardmargin.estimators._base.estimator import COUNT, one_or_all, publish
from hardmargin.estimators._base.one_model import on_one_model
from hardmargin.estimators._base.options import Choice
from hardmargin.estimators._base.self_tuning import SelfTuningClassifier
from hardmargin.estimators._base.staged import staged_predict
from hardmargin.estimators._base.watching import ENDED_BY
from hardmargin.kernels import (
    GAMMA_RULES,
    NAMED_KERNELS,
    FloatArray,
    Kernel,
    KernelFunction,
    Rows,
    as_blocks,
    is_sparse,
)
from hardmargin.kernels.blocks import MadeRows
from hardmargin.kernels.precision import precision
from hardmargin.monitor import Monitor
from hardmargin.resources import give_back_if_limited, planned_bytes
from hardmargin.scaling import MixedScaling, Scaling, find_row_scaling
from hardmargin.selection.folds import (
    MAX_FOLDED_ROWS,
    MAX_SEARCHED_ROWS,
    QUICK_ROWS,
    make_folds,
    warn_of_shortage,
)
from hardmargin.selection.greedy import GreedyChoice, choose_greedy
from hardmargin.selection.greedy_sources import Source, greedy_sources
from hardmargin.selection.greedy_trials import VISITS, GreedyTask
from hardmargin.selection.growing import Growth
from hardmargin.selection.rows import TrainingRows
from hardmargin.selection.sigmoids import platt
from hardmargin.selection.thresholds import cut_machines
from hardmargin.selection.weights import log_weight_ratio
from hardmargin.solvers import greedy
from hardmargin.solvers.greedy import METHODS, GreedyOptions, GreedySolution
from hardmargin.warn import warn_caller

#: Number of stages whose kernel columns the staged methods hold at once.
STAGES_AT_ONCE = 128

#: Share of `max_time` that choosing may take.
CHOOSING_SHARE = 0.5

#: A fit that Ctrl-C or a callback ends while it chooses may train the best choice for this long.
SECONDS_TO_FINISH = 1.0

#: Machines that stopped for these reasons are shorter than those that held-out rows have judged.
EARLY_ENDS = {"max_time", *ENDED_BY}

#: Up to this many rows, a fit takes about this many times as long as with a quick choice.
COSTS_OF_FOLDS = ((QUICK_ROWS, 1.0), (MAX_SEARCHED_ROWS, 3.0), (MAX_FOLDED_ROWS, 3.0))

#: The most training rows that a sigmoid is fitted to if no rows were held out.
MAX_THRESHOLD_ROWS = 5_000

#: A slope below this means that the scores say nothing about the classes.
LEAST_SLOPE = 1e-3

#: Log-likelihood that held-out rows promise too much, as sigmoids and all choices follow them.
COST_OF_CHOICE = 3.0

#: Memory per row and machine that solvers do not count: held-out scores of some trials, and stages.
BYTES_PER_MACHINE_ROW = 80


class ScaledRows(NamedTuple):
    """All rows, scaled in one way.

    Attributes
    ----------
    X : rows
        The rows.
    scaling : Scaling, MixedScaling or None
        How they were scaled, if they were.
    is_standardized : bool
        Whether all columns were scaled.
    """

    X: Rows
    scaling: Scaling | MixedScaling | None = None
    is_standardized: bool = False


class Cut(NamedTuple):
    """Where the scores of the machines are cut into two sides.

    Attributes
    ----------
    thresholds : (n_machines,) array
        Scores above them are positive.
    slopes : (n_machines,) array
        Slopes of the sigmoids of held-out scores; empty if no rows were held out.
    machines : list of GreedySolution
        The machines, with the thresholds as intercepts.
    trust : (n_judged,) array
        How far the sigmoids are trusted; empty if no rows were held out.
    """

    thresholds: FloatArray
    slopes: FloatArray
    machines: list[GreedySolution]
    trust: FloatArray


class GreedySVC(SelfTuningClassifier):
    """Support vector classifier trained by greedy stages, with nothing to tune.

    Algorithm 1 of TNN-08 [1]_: the hard-margin dual is lowered one multiplier at a time, each
    stage choosing the row whose step lowers it most. Each row is visited at most once, or a few
    times. Stopping there is what regularises: there is no constant C. Training keeps to the
    published order of selection and takes a small fraction of an ordinary SVM's time.

    By default the kernel, its width, the number of visits and the threshold are chosen in ``fit``
    by the log-loss of held-out rows, and so is whether features are standardised, and whether
    columns are scaled by their relevance. The held-out scores also give probabilities.
    ``GreedySVC(gamma=g, max_visits=1, threshold=0)`` is the paper's machine.

    Parameters
    ----------
    gamma : "cv", float or {"scale", "spread", "pairwise"}, default="cv"
        Width of the kernel. ``"cv"`` chooses it by the log-loss of held-out rows, from powers of
        two times ``"spread"``. ``"scale"`` is scikit-learn's 1 / (n_features * X.var()),
        ``"spread"`` 1 / mean squared distance to the mean, ``"pairwise"`` 1 / mean squared distance
        between rows.
    kernel : {"cv", "rbf", "laplacian", "matern32", "matern52", "linear", "cosine", "poly", \
"sigmoid", "precomputed"} or callable, default="cv"
        The kernel. ``"cv"`` chooses between RBF and Laplacian kernels, and a linear one where rows
        are sparse or have more columns than there are rows; above 1,000 columns only between RBF
        and linear. With a given `gamma` it is RBF. ``"cv"`` also scales the columns of dense rows
        by their relevance, where that lowers the log-loss of held-out rows by a hundredth. Above
        100,000 rows there is neither a Laplacian kernel nor relevance, as both would take too long.
        A callable takes two sets of rows and returns the matrix of values. Indefinite kernels are
        fine.
    degree : float, default=3
        Degree of the ``"poly"`` kernel.
    coef0 : float, default=0.0
        Constant in the ``"poly"`` and ``"sigmoid"`` kernels.
    max_visits : "cv" or int, default="cv"
        How often a row may be chosen. 1 is the paper's algorithm; with more visits, multipliers can
        also shrink again, and training goes on until no step exceeds `step_tol`. ``"cv"`` chooses
        among 1, 4 and 64, together with kernel and gamma.
    step_tol : float, default=0.02
        With more than one visit, training ends when no step exceeds this.
    max_stages : int or None, default=None
        Limit on the stages of each machine. None allows one per row (times its sample weight), or
        eight with more than one visit.
    threshold : "auto" or float, default="auto"
        Scores above it are predicted as the second class; in the paper it is 0. ``"auto"`` is also
        0, unless rows are held out to choose `gamma` or `max_visits`. It is then the threshold of a
        sigmoid fitted to the held-out scores, if that raises their log-likelihood by more than a
        quarter (with many classes, by more than one, and without more errors).
    standardize : "auto" or bool, default="auto"
        Shift and scale every feature to mean 0 and variance 1 (only scale, if rows are sparse);
        features with only two values are scaled to values 1 apart. Features that a few huge values
        would flatten are clipped, with a warning. ``"auto"`` does so if gamma is ``"cv"`` and the
        kernel is not a callable; it also tries the features as they are, and uses those if they
        lower the log-loss of held-out rows (up to 2,500 rows, by a twentieth; they are not tried if
        features are clipped). Columns of numbers beside those of text are then brought to a tenth
        of the size of the text. A precomputed kernel is never changed.
    categorical_features : "from_dtype", array-like or None, default="from_dtype"
        Columns of categories, which become one column of zeros and ones per category: those whose
        type in a pandas or polars data frame says so (categories, and strings with at most 64
        different values). A list of column names, column numbers or booleans adds others. More
        strings than 64, or categories than 255, up to 100,000, become what they say about the
        classes: the log-odds of the classes among their rows. None treats no column as categories.
        Categories that `fit` did not see are allowed in predictions.
    cv : int, splitter or iterable of (train, test) indices, default=5
        How rows are held out for ``"cv"``: the number of shuffled stratified folds, with copies of
        a row in the same fold and at least two rows of every class in each (there are fewer folds
        if need be), any splitter of scikit-learn, or pairs of train and test indices. Splitters
        that need groups use those passed to ``fit``, whose notes say how to pass them through
        ``cross_val_score`` and searches.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes. They do not affect training, but move the threshold: by the log
        ratio of the weights, divided by the slope of a sigmoid fitted to the held-out scores, or to
        the training scores if no rows were held out.
    multi_class : {"ovo", "ovr"}, default="ovo"
        One machine per pair of classes, or one per class against the rest; the second also where
        `max_time` is below 0.1 ms per pair, with a warning.
    method : {"auto", "fused", "lazy", "bits", "lazy-bits"}, default="auto"
        How kernel values are evaluated: every column as it comes (``"fused"``), only where the next
        choice can depend on it (``"lazy"``), with two-valued columns packed as bits (``"bits"``),
        or both. All give the same model; ``"auto"`` uses what the data allow, and switches if that
        turns out to be slower.
    dtype : {"auto", "float32", "float64"}, default="auto"
        Precision of kernel values. ``"auto"`` is float64 up to 5,000 rows and float32 above;
        gradients and sums are always float64. ``"float64"`` reproduces the algorithm step by step.
        Above 500 rows, float32 is used while choosing, unless this is ``"float64"``.
    memory_limit : str, number or None, default=None
        Memory limit of a fit, such as ``"2GB"`` or a number of bytes; None is half the free memory.
    n_jobs : int or None, default=None
        Number of threads: over splits and candidates while choosing, over machines in the final
        fit, over rows in ``predict``. The model does not depend on it.
    max_time : float or None, default=None
        Seconds that ``fit`` may take. If gamma is ``"cv"``, 250 rows are fitted first, then larger
        and larger parts, as time allows. If all rows are reached, the model is the same as without
        a limit, and only some time went to the smaller fits. Otherwise it is the best of these
        fits, by the log-loss of rows set aside, with a warning; `n_samples_fit_` is the number of
        its rows. (Choices for a part of the rows are quicker: they are made on 1,000 rows.) If
        gamma is given (unless the categories of the rows would take 64 MB as numbers), or there are
        fewer than 500 rows (or 40 per class), all rows are fitted, and the model is that of the
        stages so far; choosing may take half of the time.
    on_interrupt : {"raise", "keep"}, default="raise"
        What Ctrl-C does. ``"raise"`` leaves the estimator as it was before `fit`; ``"keep"`` ends
        `fit` with the model so far and a warning, and a second Ctrl-C raises.
    checkpoint : str, path or None, default=None
        A file to which finished steps of the fit, and the states of unfinished machines, are
        written every few seconds. If the fit ends early (Ctrl-C, a killed process, `max_time`), the
        same call reads them and resumes; the model is the same as without the break. The file is
        deleted at the end. It holds pickled objects: do not use files that others could have
        written.
    verbose : int, default=0
        Print the progress of long fits.
    random_state : int, RandomState instance or None, default=None
        Seed for the folds, for the subsamples on which choices for large data are made, and for the
        rows to which `class_weight` fits its sigmoid if a machine has more than 5,000. None is a
        fixed seed, so that fits are reproducible. The order of the rows matters more than the seed:
        among equal steps the lowest row is chosen.

    Attributes
    ----------
    classes_ : (n_classes,) array
        The labels.
    kernel_ : str
        Name of the kernel; ``"callable"`` if it is a function.
    max_visits_ : int
        Number of visits that a row may have.
    standardized_ : bool
        Whether features are standardised.
    threshold_ : float, or array for many classes
        Threshold of each machine.
    cv_results_ : dict of arrays
        The candidates: ``kernel``, ``gamma``, ``max_visits``, ``standardized``, whether columns are
        scaled by relevance (``has_relevance``), the numbers of rows and splits used (``n_rows``,
        ``n_splits``), and the ``log_loss`` of the held-out rows, under sigmoids fitted to their
        scores (averaged over the machines). `cv_results_`, `cv_log_loss_`, `cv_error_` and their
        standard errors exist only if gamma or max_visits is ``"cv"``.
    cv_log_loss_, cv_error_ : float
        Log-loss of the probabilities and share of wrong predictions on the held-out rows, weighted
        by sample and class weights; NaN if no rows could be held out, or if the final fit was ended
        early. As the same rows made the choice, three units of log-likelihood are added to their
        sum of losses (less where the probabilities are close to the shares of the classes); errors
        are a little too low. With a column of many categories both are too high, as held-out rows
        are coded from fewer rows than new ones.
    cv_log_loss_std_error_, cv_error_std_error_ : float
        Standard errors of these means: how far other rows of the same kind would move them. A row
        that was held out several times counts once. NaN where the means are.
    relevance_ : (n_features,) array
        How much each column moves the log-odds, relative to the most relevant one. If several
        columns were made from one (to mark missing values, for instance), it is the largest of
        their relevances. Only where columns are scaled by it.

        It is not importance: a column may move the log-odds without making them better, as an
        identifier does. Importance is what ``sklearn.inspection.permutation_importance`` measures
        on rows set aside.
    encoded_relevance_ : (n_columns,) array
        The same for every column that kernels see; ``get_feature_names_out()`` has their names. All
        categories of a feature have the same relevance.
    feature_importances_ : (n_features,) array
        The relevance of the features, as shares that sum to one, under the name that
        ``SelectFromModel`` looks for. It is not importance either.
    n_samples_fit_ : int
        Rows that the model was trained on: all rows of positive weight, unless `max_time` was too
        short for them.
    support_ : (n_support,) array
        Rows with a coefficient: in order of selection for two classes, else sorted.
    support_vectors_ : (n_support, n_features) array or CSR matrix
        Those rows, standardised if `standardized_`; empty for a precomputed kernel.
    n_support_ : (n_classes,) array
        Support rows of each class.
    dual_coef_ : (n_machines, n_support) array, or CSR array for many classes
        Multiplier times label.
    intercept_ : (n_machines,) array
        Minus the threshold.
    coef_ : (n_machines, n_features) array
        Weights of the (standardised) features, for the linear kernel only.
    n_iter_ : int, or array of them for many classes
        Number of stages.
    loss_path_ : array, or list of them for many classes
        Dual objective after each stage.
    stage_indices_, stage_steps_ : array, or list of them for many classes
        The row of each stage, and the change of its multiplier.
    weight_norm_ : float or array
        ``||w||``, from eq. (28) of TNN-08.
    vc_bound_ : float or array
        Bound on the VC dimension, eq. (26): ``min(R^2 ||w||^2, n) + 1``, where the sphere around
        the origin with ``R^2 = max k(x, x)`` encloses all rows.
    certificate_ : float or array
        Largest step still open when training stopped.
    n_kernel_evaluations_ : int or array
        Number of kernel values evaluated.
    stop_reason_ : str or array
        ``"converged"``, ``"exhausted"`` (every row was visited as often as it may be),
        ``"max_stages"``, ``"max_time"``, ``"interrupt"`` or ``"callback"``.
    method_ : str or array
        The method used last.
    gamma_ : float
        The kernel's gamma as a number.
    is_categorical_ : (n_features,) bool array or None
        The columns of categories; None if there are none.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : array
        Names of the features, if X has them.

    Notes
    -----
    All machines share one kernel and one number of visits: those with the least log-loss of
    held-out rows, where each machine's scores go through a sigmoid of its own. Kernels and views of
    the rows are compared on two splits first; all splits decide between the best. The relevance of
    the columns is found by a first machine on the training rows of each split, so that it has not
    seen the rows that judge it; the final fit uses the mean over the splits.

    Above 2,500 rows, a subsample of 2,000 is searched. The best candidates there are then tried on
    a single split, on growing parts of up to four tenths of all rows. More than one visit is then
    kept only if it clearly helps and is not too slow. Up to 20,000 rows, three splits of all rows
    give threshold and probabilities, unless that would be slow; otherwise they come from the last
    held-out rows, at most 10,000.

    The probability of a machine's positive side is a sigmoid of its margin, so it is at least one
    half exactly where that side is predicted. With many classes and held-out rows,
    ``decision_function`` is the sum of a class's pairwise probabilities, made steeper;
    ``predict_proba`` ranks classes in the same order, and its values come from the mean logs of the
    same probabilities.

    A row of sample weight w may be chosen w times as often; the fractional part of w scales its
    last step. For whole weights and ``max_visits=1`` this equals repeating rows (up to ties); with
    more visits it is approximate. Weights in the hundreds are slow: divide them by their mean.

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
    0.99
    >>> clf.predict_proba(X[400:402]).round(1)
    array([[1., 0.],
           [0., 1.]])

    The machine of the paper:

    >>> paper = GreedySVC(gamma=1e-6, max_visits=1, threshold=0).fit(X[:400], y[:400])
    >>> paper.stop_reason_
    'converged'
    """

    _relevance_needs = (
        "kernel='cv', gamma='cv' and dense rows that are standardised, and that scaled columns "
        "have a lower log-loss on held-out rows"
    )

    _seconds_of_machine = 0.0001

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **SelfTuningClassifier._parameter_constraints,
        "gamma": [
            Interval(Real, 0, None, closed="neither"),
            Choice({"cv", *GAMMA_RULES}),
        ],
        "kernel": [Choice({"cv", *NAMED_KERNELS, "precomputed"}), callable],
        "max_visits": [Choice({"cv"}), COUNT],
        "step_tol": [Interval(Real, 0, None, closed="left")],
        "max_stages": [COUNT, None],
        "on_interrupt": [Choice({"raise", "keep"})],
        "checkpoint": [str, PathLike, None],
        "threshold": [Choice({"auto"}), Interval(Real, None, None, closed="neither")],
        "standardize": [Choice({"auto"}), "boolean"],
        "categorical_features": [Choice({"from_dtype"}), "array-like", None],
        "cv": ["cv_object"],
        "method": [Choice(METHODS)],
    }

    def __init__(
        self,
        gamma: float | str = "cv",
        *,
        kernel: str | KernelFunction = "cv",
        degree: float = 3,
        coef0: float = 0.0,
        max_visits: int | str = "cv",
        step_tol: float = 0.02,
        max_stages: int | None = None,
        threshold: float | str = "auto",
        standardize: bool | str = "auto",
        categorical_features: Any = "from_dtype",
        cv: Any = 5,
        class_weight: dict[Any, float] | str | None = None,
        multi_class: str = "ovo",
        method: str = "auto",
        dtype: str = "auto",
        memory_limit: str | float | None = None,
        n_jobs: int | None = None,
        max_time: float | None = None,
        on_interrupt: str = "raise",
        checkpoint: str | PathLike[str] | None = None,
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
        self.categorical_features = categorical_features
        self.cv = cv
        self.class_weight = class_weight
        self.multi_class = multi_class
        self.method = method
        self.dtype = dtype
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.max_time = max_time
        self.on_interrupt = on_interrupt
        self.checkpoint = checkpoint
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Train on rows X with labels y.

        Parameters
        ----------
        X : (n_samples, n_features) array, data frame or sparse matrix
            Training rows: numbers, of which some may be missing (NaN) unless rows are sparse, and
            categories; for ``kernel="precomputed"`` the (n_samples, n_samples) kernel matrix.
        y : (n_samples,) array
            Labels: strings, integers, booleans or categories.
        sample_weight : (n_samples,) array, optional
            Row weights: a weight of two counts the row twice, a weight of zero leaves it out.
            Weights that add up to less than ``(sum w)**2 / sum(w**2)``, the effective number of
            rows, are scaled up to it, so that normalised weights do not look like too few rows.
        groups : (n_samples,) array, optional
            Group of each row, for a splitter given as `cv`; the notes say how to pass them through
            ``cross_val_score`` and searches.

        Returns
        -------
        self

        Notes
        -----
        If an outer splitter needs groups as well as `cv`, both must get them. Without metadata
        routing, that takes two arguments::

            cross_val_score(clf, X, y, cv=GroupKFold(5), groups=g, params={"groups": g})

        passes the first to the splitter and the second to ``fit``; ``cross_validate`` and
        ``cross_val_predict`` do the same. In a pipeline, the second is prefixed with the name of
        the step: ``params={"greedysvc__groups": g}``. A search keeps ``groups`` for its own
        splitter, so that only a pipeline can be searched::

            pipeline = make_pipeline(GreedySVC(cv=GroupKFold(3)))
            search = GridSearchCV(pipeline, grid, cv=GroupKFold(5))
            search.fit(X, y, groups=g, greedysvc__groups=g)

        With ``sklearn.set_config(enable_metadata_routing=True)`` one argument serves both, if the
        classifier requests it, in a pipeline or not::

            clf = GreedySVC(cv=GroupKFold(3)).set_fit_request(groups=True)
            cross_val_score(clf, X, y, cv=GroupKFold(5), params={"groups": g})
            GridSearchCV(clf, grid, cv=GroupKFold(5)).fit(X, y, groups=g)
        """
        with self._fitting() as monitor:
            random = self._new_generator()
            rows = self._read_table(X, y, sample_weight, groups, random)
            growth = self._growth(rows) if monitor.has_limit else None
            fit_rows = type(self)._fit_rows
            with self._resumed(rows, groups, monitor):
                self.n_samples_fit_ = self._fit_in_time(
                    rows, groups, growth, fit_rows, random, monitor
                )
        return self

    def _growth(self, rows: TrainingRows) -> Growth | None:
        """Say how a fit in limited time may grow to these rows."""
        if self.gamma != "cv" and not isinstance(rows.X, MadeRows):
            return None  # a given gamma suits the rows that there are
        cost = next((cost for most, cost in COSTS_OF_FOLDS if rows.n_rows <= most), 1.0)
        return Growth.to(rows.n_rows, len(rows.classes), cost_of_all=cost)

    def _fit_rows(
        self, rows: TrainingRows, groups: Any, random: np.random.RandomState, monitor: Monitor
    ) -> int:
        views = self._scale(rows)
        training = self._training(
            rows._replace(X=views[0].X),
            kernel="rbf" if self.kernel == "cv" else self.kernel,
            gamma="spread" if self.gamma == "cv" else self.gamma,
        )
        n_bytes = BYTES_PER_MACHINE_ROW * training.n_machine_rows
        options = GreedyOptions(
            step_tol=self.step_tol,
            max_stages=self.max_stages,
            method=self.method,
            memory_bytes=planned_bytes(self.memory_limit, n_bytes),
            n_threads=effective_n_jobs(self.n_jobs),
        )
        if self._holds_out:
            visits = VISITS if self.max_visits == "cv" else (int(self.max_visits),)
            sources = self._sources(training, views)
            part = monitor.part("log-loss", share=CHOOSING_SHARE)
            task = GreedyTask(training, options, visits, part, rows.is_part)
            choice = self._choose(task, sources, groups, random)
        else:
            choice = GreedyChoice(training.values, training.values, int(self.max_visits))
        training = replace(training, values=choice.values)
        solutions = self._solve(training, choice, options, monitor)
        cut = self._cut(training, solutions, choice, random)
        self._keep(training, views, choice, solutions, cut, random)
        return rows.n_rows

    def _scale(self, rows: TrainingRows) -> list[ScaledRows]:
        """Scale the rows as `standardize` says; "auto" may choose the second view."""
        scales = self.standardize
        if scales == "auto":  # only if gamma is chosen
            scales = self.gamma == "cv" and not callable(self.kernel)
        as_they_came = ScaledRows(rows.X)
        if not scales or self.kernel == "precomputed":
            return [as_they_came]
        most_bytes = self._most_row_bytes
        scaling = find_row_scaling(rows.X, rows.weights, self.get_feature_names_out, most_bytes)
        X = as_blocks(rows.X, most_bytes).map(scaling.transform)
        views = [ScaledRows(X, scaling, is_standardized=True)]
        if self.standardize != "auto" or not scaling.is_plain or scaling.is_identity:
            return views
        if isinstance(scaling, MixedScaling):
            of_dense = replace(scaling, standardized=False)
            as_they_came = ScaledRows(as_blocks(rows.X).map(of_dense.transform), of_dense)
        return [*views, as_they_came]

    @property
    def _holds_out(self) -> bool:
        return bool(self.gamma == "cv" or self.max_visits == "cv")

    def _sources(self, training: Training, views: list[ScaledRows]) -> list[Source]:
        """Pair kernels with the views that have values of the same precision."""
        dtype, first = training.dtype, views[0]
        same = [v.X for v in views[1:] if precision(v.X, self.dtype, training.kernel) == dtype]
        return greedy_sources(
            training,
            [first.X, *same],
            chooses_kernel=self.kernel == "cv" and self.gamma == "cv",
            tunes_gamma=self.gamma == "cv",
            is_centred=first.is_standardized and not is_sparse(first.X),
            may_round=self.dtype != "float64",
        )

    def _choose(
        self, task: GreedyTask, sources: list[Source], groups: Any, random: np.random.RandomState
    ) -> GreedyChoice:
        """Choose source, gamma and visits by held-out rows; warn if that is not as it should be."""
        X, codes = task.problem.values.X, task.problem.codes
        folds = make_folds(self.cv, X, codes, groups=groups, random_state=random)
        choice = choose_greedy(task, sources, folds, random)
        give_back_if_limited()  # of trials
        if choice.held_out is None:
            reason = folds.shortage or "no split has rows of two classes to train on and to score"
            if len(choice.table["log_loss"]):
                reason = "no candidate has finite scores"
            if choice.is_cut_short:
                reason = "max_time was too short, or the fit was interrupted"
            warn_caller(
                f"Nothing could be chosen by cross-validation: {reason}. The model has gamma "
                f"{choice.kernel.gamma:.3g}, max_visits {choice.max_visits}, and its probabilities "
                "are the frequencies of the classes, moved by the decision.",
                UserWarning,
            )
        elif choice.is_cut_short:
            warn_caller(
                "The choice of kernel, gamma and visits was ended early, by max_time, Ctrl-C or "
                f"a callback, after {len(choice.table['gamma'])} candidates."
            )
        elif folds.shortage:
            warn_of_shortage(folds)
        return choice

    def _solve(
        self, training: Training, choice: GreedyChoice, options: GreedyOptions, monitor: Monitor
    ) -> list[GreedySolution]:
        """Train the machines on all rows; warn of those that are not what was asked for."""
        problem = replace(training, values=choice.seen)
        monitor = monitor.to_finish(SECONDS_TO_FINISH)  # if the choice was ended early
        monitor = monitor.part("largest open step", n_machines=len(training.machines))
        solve = partial(greedy.solve, problem, replace(options, max_visits=choice.max_visits))
        solutions = monitor.once_from_state("machines", solve)
        reasons = {s.stop_reason for s in solutions}
        for limit, advice in (
            ("max_stages", "raise max_stages; to stop earlier, raise step_tol"),
            ("max_time", "raise max_time"),
        ):
            # Visits were chosen with the same limit, so nothing was cut short.
            is_expected = limit == "max_stages" and self.max_visits == "cv" and not self.max_stages
            if limit in reasons and not is_expected:
                largest = max(s.certificate for s in solutions if s.stop_reason == limit)
                warn_caller(
                    f"Training stopped at {limit} with steps up to {largest:.3g} still open; the "
                    f"model is that of the stages so far. To continue, {advice}."
                )
        if any(s.n_stages == 0 for s in solutions):
            warn_caller(
                "No row could be chosen, as k(x, x) <= 0 for all of them: the machine predicts a "
                "constant. Change the kernel, or its gamma and coef0."
            )
        return solutions

    def _cut(
        self,
        training: Training,
        solutions: list[GreedySolution],
        choice: GreedyChoice,
        random: np.random.RandomState,
    ) -> Cut:
        """Place the threshold of every machine, moved by the weights of the classes."""
        own = training.class_weights
        ratios = [log_weight_ratio(training, own, m) for m in range(len(solutions))]
        fixed = None if self.threshold == "auto" else float(self.threshold)
        if choice.held_out is not None:
            thresholds, slopes, trust = cut_machines(
                choice.held_out, training.weights, ratios, fixed, choice.reach
            )
        else:
            thresholds, slopes = np.full(len(solutions), fixed or 0.0), np.empty(0)
            trust = np.empty(0)
            for m, (solution, ratio) in enumerate(zip(solutions, ratios, strict=True)):
                if ratio:
                    thresholds[m] += ratio / self._slope(training, m, solution, random)
        cuts = zip(solutions, thresholds.tolist(), strict=True)
        machines = [replace(s, intercept=-t) if t else s for s, t in cuts]
        return Cut(thresholds, slopes, machines, trust)

    def _slope(
        self,
        training: Training,
        machine: int,
        solution: GreedySolution,
        random: np.random.RandomState,
    ) -> float:
        """Slope of a sigmoid fitted to the scores that a machine gives to its training rows.

        With P = sigmoid(A f + B), weighting the negative class w times as much as the positive one
        moves the best threshold by log(w) / A.
        """
        sample, rows = training.rows_of(machine), solution.rows
        if len(sample) > MAX_THRESHOLD_ROWS:
            sample = random.permutation(sample)[:MAX_THRESHOLD_ROWS]
        queries = training.X[sample]
        scores = training.kernel.expand(
            queries[:, rows] if training.kernel.name == "precomputed" else queries,
            training.X[rows],
            solution.coefficients[None, :],
            dtype=training.dtype,
            n_jobs=self.n_jobs,
        )[:, 0]
        positive = training.labels_of(machine)[sample] > 0
        weights = None if training.weights is None else training.weights[sample]
        return max(float(platt(scores, positive, weights).slopes[0]), LEAST_SLOPE)

    def _keep(
        self,
        training: Training,
        views: list[ScaledRows],
        choice: GreedyChoice,
        solutions: list[GreedySolution],
        cut: Cut,
        random: np.random.RandomState,
    ) -> None:
        """Store the model, and what led to it."""
        view = views[choice.view]
        self._scaling_, self.standardized_ = view.scaling, view.is_standardized
        self.kernel_, self.max_visits_ = choice.kernel.name, choice.max_visits
        self._keep_paths(training, solutions)
        self.threshold_ = one_or_all(cut.thresholds.tolist())
        self._store(training, cut.machines)
        if choice.relevance is not None:
            self._store_relevance(choice.relevance)
        if not self._holds_out:
            return
        table = dict(choice.table)
        is_standardized = np.array([view.is_standardized for view in views])[table.pop("view")]
        self.cv_results_ = {**table, "standardized": is_standardized}
        if choice.held_out is None:
            self._use_frequencies(training)
        else:
            rows = np.unique(choice.held_out.rows)
            n_rows = len(rows) if training.weights is None else training.weights[rows].sum()
            optimism = COST_OF_CHOICE * float(cut.trust.mean()) / float(n_rows)
            self._calibrate(training, choice.held_out, cut.slopes, random, optimism)
        if choice.held_out is None or not EARLY_ENDS.isdisjoint(s.stop_reason for s in solutions):
            self.cv_log_loss_ = self.cv_error_ = float("nan")  # what was judged is not the model
            self.cv_log_loss_std_error_ = self.cv_error_std_error_ = float("nan")

    def _keep_paths(self, training: Training, solutions: list[GreedySolution]) -> None:
        publish(
            self,
            solutions,
            "n_kernel_evaluations",
            "method",
            loss_path_=lambda s: s.history["loss"],
            stage_steps_=lambda s: s.history["step"],
            weight_norm_=lambda s: float(np.sqrt(s.squared_norm)),
        )
        self.stage_indices_ = one_or_all([s.history["row"] for s in solutions])
        self.vc_bound_ = one_or_all(
            [
                min(s.squared_radius * s.squared_norm, float(n_rows)) + 1.0
                for s, n_rows in zip(solutions, training.machine_sizes, strict=True)
            ]
        )
        # The staged methods also need labels, and visited rows whose multiplier fell back to zero.
        self._stage_signs_ = [
            sides[training.codes[s.history["row"]]].astype(np.float64)
            for s, sides in zip(solutions, training.sides, strict=True)
        ]
        visited = np.concatenate([s.history["row"] for s in solutions])
        self._given_back_ = np.setdiff1d(visited, np.concatenate([s.rows for s in solutions]))
        self._given_back_vectors_: Any = None
        if training.kernel.name != "precomputed":
            rows = as_blocks(training.X, self._most_row_bytes)
            self._given_back_vectors_ = rows[self._given_back_]

    def _number_rows(self, rows: NDArray[np.intp]) -> None:
        super()._number_rows(rows)
        paths = [self.stage_indices_] if len(self.classes_) == 2 else self.stage_indices_
        self.stage_indices_ = one_or_all([rows[path].astype(np.int32) for path in paths])
        self._given_back_ = rows[self._given_back_].astype(np.int32)

    @on_one_model
    def staged_decision_function(self, X: Any) -> Iterator[FloatArray]:
        """Scores after every stage, as `decision_function` gives them at the end.

        Stage t of several machines applies the first t steps of each machine, or all if it has
        fewer.

        Yields
        ------
        (n_samples,) array, or (n_samples, n_classes) for more than two classes
        """
        for margins in self._staged_margins(self._check_rows(X)):
            scores = self._scores(margins)
            yield scores[:, 1] if len(self.classes_) == 2 else scores

    staged_predict = staged_predict

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
