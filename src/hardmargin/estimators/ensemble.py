"""The ensemble of partially trained SVMs that tunes itself."""

from __future__ import annotations

import copy
import math
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from numbers import Integral, Real
from os import PathLike
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from scipy.special import log_softmax
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from hardmargin.estimators import expert_training
from hardmargin.estimators._base.classifier import Training
from hardmargin.estimators._base.estimator import COUNT, TrainingRows, one_or_all
from hardmargin.estimators._base.one_model import on_one_model
from hardmargin.estimators._base.options import Choice
from hardmargin.estimators._base.self_tuning import SelfTuningClassifier
from hardmargin.estimators.expert_training import (
    Here,
    Workplace,
    train_experts,
    warn_of_little_memory,
)
from hardmargin.estimators.experts import (
    TABLE,
    Experts,
    Mixture,
    as_cells_see,
)
from hardmargin.kernels import (
    DISTANCE_KERNELS,
    GAMMA_RULES,
    NAMED_KERNELS,
    FloatArray,
    Kernel,
    KernelFunction,
    KernelSum,
    Rows,
    as_blocks,
    column_ends,
    is_sparse,
)
from hardmargin.kernels.low_rank import LANDMARKS, Landmarks
from hardmargin.kernels.precision import MAX_FLOAT32_FEATURE
from hardmargin.monitor import Monitor
from hardmargin.resources import planned_bytes
from hardmargin.scaling import (
    MixedScaling,
    Scaling,
    find_mixed_scaling,
    find_row_scaling,
)
from hardmargin.selection.first_look import (
    SAMPLE_ROWS,
    Look,
    first_look,
    is_open,
    is_text,
    sample_rows,
)
from hardmargin.selection.folds import (
    MAX_SEARCHED_ROWS,
    QUICK_ROWS,
    Folds,
    given_folds,
    make_folds,
    warn_of_shortage,
)
from hardmargin.selection.kernel_vote import KEPT_MATRICES, KernelVote
from hardmargin.selection.mixture import LogProbabilities
from hardmargin.selection.vote import SHARES, Losses, VoteResult
from hardmargin.solvers.problem import Problem, finite_diagonal, machines_of
from hardmargin.solvers.staged_vote import MAX_STAGES, StagedVoteOptions
from hardmargin.warn import held_back, warn_caller

#: Up to this many rows, folds are made from several shuffles. That costs little there, and makes
#: the model depend a third less on how the rows happen to be shuffled (benchmarks/seeds.py). Parts
#: of more rows are shuffled once, as larger ones are: their time tells how long those take.
MAX_SHUFFLED_ROWS = 500
N_SHUFFLES = 3

#: A machine of a few rows takes about this long, with all its kernels. ``multi_class="auto"`` takes
#: one per class where `max_time` leaves less for each pair.
SECONDS_OF_PAIR = 0.004

#: Share of the time left that the first look at a sample may take.
SHARE_OF_LOOK = 0.3

#: Experts on all rows are started if there is time for this share of their predicted time. (The
#: prediction comes from votes on samples, and is several times too high.) Stopped in time, they are
#: better than a single vote that takes as long: in cells that were not reached, the vote on a
#: sample decides.
LEAST_SHARE_OF_EXPERTS = 0.06

#: Relevance has seen the labels of the rows held out: their log-loss is too low by about this times
#: the root of the number of different scales, divided by the number of rows. (Measured: with this
#: correction it is right on average over the sets of benchmarks/accuracy.py.)
LEAK = 0.9

#: A machine with more rows is replaced by experts or, if there must be one machine, approximated.
MAX_STORED_ROWS = 10_000

#: Up to the first number of rows, a fit takes about the second number of times as long as one whose
#: first vote is quick (measured on 1,000 to 9,000 rows). Where that vote leaves out rows, it also
#: leaves out kernels, which saves time.
COSTS_OF_FIRST_VOTE = (
    (QUICK_ROWS, 1.0),
    (MAX_SEARCHED_ROWS, 2.75),
    (MAX_STORED_ROWS, 1.75),
    (math.inf, 3.5),
)

#: With as many classes and no more rows (per class, and in all), one machine per class is better
#: than one per pair (benchmarks/classes.py). With more rows it takes several times as long.
MANY_CLASSES = 10
FEW_PER_CLASS = 50
FEW_ROWS = 2_500

#: Fitted attributes of a single vote, which a mixture of experts does not have.
_OF_ONE_VOTE = (
    "dual_coef_",
    "support_vectors_",
    "intercept_",
    "gamma_",
    "kernel_weights_",
    "temperature_",
    "n_stages_",
    "n_iter_",
    "stop_reason_",
    "_losses_",
)


class Plan(NamedTuple):
    """How a fit treats its rows.

    Attributes
    ----------
    standardized : bool
        Whether to standardise them.
    is_linear : bool
        Whether linear kernels alone vote, through a weight per column.
    multi_class : {"ovo", "ovr"}
        How machines divide the classes.
    largest : int
        Rows of the largest machine.
    """

    standardized: bool
    is_linear: bool
    multi_class: str
    largest: int


class EnsembleSVC(SelfTuningClassifier):
    """Ensemble of partially trained hard-margin SVMs, with nothing to tune.

    Multiplicative updates with an adaptive rate move a weighted Parzen window towards the
    hard-margin SVM [1]_. Every plane on the way is a partially trained SVM, and all of them vote.
    Stopping early is what regularises: there is no constant C.

    The length of the path and the kernel are chosen inside ``fit``: one machine per fold follows
    the same path on the same kernel matrix, and its scores of the held-out rows show how good every
    stage is. Stages and kernels (RBF and Laplacian of several widths) then vote, weighted by their
    held-out log-loss; the same scores give the probabilities. See
    ``hardmargin.solvers.staged_vote``.

    Tables have skewed columns, and columns that do not matter. So there are two views of the rows:
    standardised, and as the normal scores of the columns' ranks. In both, every column is scaled by
    its relevance, which is how much it moved the log-odds of a first, smaller vote.

    Text (sparse rows of more than 1,000 columns) has neither views nor relevance, and no experts.
    A sample then decides whether to standardise, and whether RBF kernels are worth their time: if
    not, or if a machine would have more than 10,000 rows, a linear kernel votes alone. It needs one
    weight per column instead of a kernel matrix, so all rows can be used.

    Where a machine (with many classes, the machine of one pair) would have more than 10,000 rows,
    the model is a mixture of experts: one vote as above on a sample of up to 10,000 rows, and trees
    whose cells have machines of their own, so that time grows in proportion to the number of rows.
    What suits the data is found on held-out rows; `experts_` shows it. See
    ``hardmargin.estimators.experts`` and ``hardmargin.cells``.

    Parameters
    ----------
    n_stages : "cv" or int, default="cv"
        ``"cv"`` weights all stages by their held-out loss; a number ends the path after that many
        stages.
    kernel : {"cv", "rbf", "laplacian", "linear", "poly", "sigmoid", "precomputed"} or callable, \
default="cv"
        The kernel; it should be positive semi-definite. ``"cv"`` weights RBF and Laplacian kernels
        (with a fixed `gamma`, only RBF) and, where rows are sparse or have more than 1,000 columns
        and fewer rows than that, linear ones. A callable takes two sets of rows and returns the
        matrix of values.
    gamma : float or {"cv", "scale", "spread", "pairwise"}, default="cv"
        Width of the kernel. ``"cv"`` weights several widths; ``"spread"``, the paper's, is 1 / mean
        squared distance to the mean; ``"scale"`` is scikit-learn's, ``"pairwise"`` 1 / mean squared
        distance between rows.
    cv : int, splitter or iterable of splits, default=5
        How rows are held out: the number of shuffled stratified folds (from three shuffles up to
        500 rows, with copies of a row in the same fold and at least two rows of every class in
        each, so that there are fewer folds if need be), any splitter of scikit-learn, or pairs of
        train and test indices. Splitters that need groups use those passed to ``fit``, whose notes
        say how to pass them through ``cross_val_score`` and searches.
    degree : float, default=3
        Degree of the ``"poly"`` kernel.
    coef0 : float, default=0.0
        Constant in the ``"poly"`` and ``"sigmoid"`` kernels.
    max_stages : int or None, default=None
        Limit on the stages of each machine, whatever `n_stages` is. None is a limit of 150 if
        `n_stages` is ``"cv"``, and no limit if it is a number.
    fit_intercept : bool, default=True
        Whether to train with a bias; each class then has half of the weight. The paper has no bias.
    standardize : "auto" or bool, default="auto"
        Shift and scale every feature to mean 0 and variance 1 (only scale, if rows are sparse);
        features with only two values are scaled to values 1 apart. Features that a few huge values
        would flatten are clipped, with a warning. ``"auto"`` standardises, except where rows are
        sparse or all have the same norm: up to 2,000 of them are then also tried as they came, and
        the held-out loss decides; `standardized_` shows the result. (If `gamma` is a number, or the
        kernel a callable, nothing is compared.) Columns of numbers beside those of text are brought
        to a tenth of the size of the text, unless this is False.
    categorical_features : "from_dtype", array-like or None, default="from_dtype"
        Columns of categories, which become one column of zeros and ones per category: those whose
        type in a pandas or polars data frame says so (categories, and strings with at most 64
        different values). A list of column names, column numbers or booleans adds others. More
        strings than 64, or categories than 255, up to 100,000, become what they say about the
        classes: the log-odds of the classes among their rows. None treats no column as categories.
        Categories that `fit` did not see are allowed in predictions.
    views : {"auto", "standardized", "rank"}, default="auto"
        What the kernels see: standardised rows, normal scores of the columns' ranks, or both. It
        takes effect where dense rows are standardised, kernel and gamma leave a choice among RBF or
        Laplacian kernels, and the kernels are not approximated; elsewhere there is one plain view.
    relevance : bool, default=True
        Scale the columns of the views by their relevance.
    rank : int, float, "auto" or None, default="auto"
        Approximate the kernel through landmark rows: an int is their number; a float is the share
        of the kernel's trace that may be left over. ``"auto"`` approximates if memory requires it
        and, with ``max_cell_rows=None``, above 10,000 rows; it raises the rank while that lowers
        the held-out loss. A stage then takes time in proportion to the rows, and prediction only
        needs the landmarks. None never approximates, and trains one machine on any number of rows.
        In a mixture of experts, this is the rank of the vote on a sample, which then has up to
        30,000 rows.
    landmarks : {"random", "kmeans++", "cholesky", "greedy"}, default="random"
        How landmarks are chosen; ``"greedy"`` uses the rows that GreedySVC chooses first.
    max_cell_rows : int or None, default=1000
        Where a machine would have more than 10,000 rows and kernel and gamma leave a choice, trees
        divide the rows into cells of about this many, each with machines of its own. Larger cells
        take longer, and are sometimes better. None trains one machine on all rows.
    n_trees : int or "auto", default="auto"
        Number of trees; ``"auto"`` adds up to three, as long as each lowers the held-out loss by
        half a percent.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes. They multiply the odds of the classes: probabilities and decisions
        change, the ranking of the rows does not.
    multi_class : {"auto", "ovo", "ovr"}, default="auto"
        One machine per pair of classes, or one per class against the rest. ``"auto"`` is
        ``"ovr"`` on text, where `kernel` is ``"cv"`` or ``"linear"``; with ten classes or more
        that have few rows, at most 50 per class and 2,500 in all; and where `max_time` is too short
        for all pairs, below 4 ms for each. It is ``"ovo"`` otherwise. Below 1.2 ms per pair
        ``"ovo"`` has one machine per class too, with a warning.
    dtype : {"auto", "float32", "float64"}, default="auto"
        Precision of kernel values. In training, ``"auto"`` stores them in float64 up to 500 rows,
        in float32 up to 700 and in 16 bits above; in predictions, it is float64 up to 5,000 rows
        and float32 above.
    memory_limit : str, number or None, default=None
        Memory limit of a fit, such as ``"2GB"`` or a number of bytes; None is half the free memory.
    n_jobs : int or None, default=None
        Number of threads: over kernels, machines or cells in ``fit``, over rows in ``predict``. The
        model does not depend on it.
    max_time : float or None, default=None
        Seconds that ``fit`` may take. 250 rows are fitted first, then larger and larger parts, as
        time allows. If all rows are reached, the model is the same as without a limit, and only
        some time went to the smaller fits. Otherwise it is the best of these fits, by the log-loss
        of rows set aside, with a warning; `n_samples_fit_` is the number of its rows. (On a part of
        the rows, the first vote uses 1,000 rows instead of 2,000.) With fewer than 500 rows (or 40
        per class), all of them are fitted, and the model is that of the stages so far.
    on_interrupt : {"raise", "keep"}, default="raise"
        What Ctrl-C does. ``"raise"`` leaves the estimator as it was before `fit`; ``"keep"`` ends
        `fit` with the model so far and a warning, and a second Ctrl-C raises.
    checkpoint : str, path or None, default=None
        A file to which finished steps of the fit are written every few seconds. If the fit ends
        early (Ctrl-C, a killed process, `max_time`), the same call reads them and resumes; the
        model is the same as without the break. The file is deleted at the end. It holds pickled
        objects: do not use files that others could have written.
    verbose : int, default=0
        Print the progress of long fits.
    random_state : int, RandomState instance or None, default=None
        Seed for the folds and the landmarks; None is a fixed seed, so that fits are reproducible.
        Other seeds show how much the model depends on the shuffle; with
        ``cv=RepeatedStratifiedKFold(n_splits=5, n_repeats=5)`` it depends less, and takes longer.

    Attributes
    ----------
    classes_ : (n_classes,) array
        The labels.
    experts_ : structured array
        What votes: ``kind``, ``rows``, ``cells``, ``weight`` and held-out ``log_loss``, one record
        per expert. ``"whole"`` is a vote as described above (the only expert up to 10,000 rows);
        trees cut the rows at a ``"column"`` or across a ``"direction"``. Log-probabilities of the
        experts are multiplied by the weights and added up, so that weights need not sum to one; an
        expert of weight zero was trained, but does not vote. With more than 10,000 rows there are
        no attributes of a single machine, such as `dual_coef_`.
    kernel_weights_ : structured array
        The kernels that vote: ``machine``, ``view``, ``kernel``, ``gamma`` and ``share``, one
        record for each kernel with a share of a machine's vote, sorted by the kernels' shares of
        all votes. ``pandas.DataFrame(kernel_weights_)`` works. Each gamma applies to a view whose
        columns are scaled by relevance; passing it as `gamma` would give a different kernel.
    cv_table_ : structured array
        The assessment of every stage: ``machine``, ``view``, ``kernel``, ``gamma``, ``stage`` and
        ``log_loss`` on held-out rows, each stage at its own best temperature.
    cv_log_loss_, cv_error_ : float
        Log-loss and share of errors on held-out rows, weighted by sample and class weights.
        Relevance has seen the labels of these rows. Where it is used, the log-loss is therefore
        raised by 0.9 times the root of the number of different scales, divided by the number of
        rows, which makes up for that on average; the error is not raised. That is not enough where
        there are more columns than rows, so a warning says so.
    relevance_ : (n_features,) array
        How much each column moves the log-odds, relative to the most relevant one, on average over
        the views. If several columns were made from one (to mark missing values, for instance), it
        is the largest of their relevances. ``pandas.Series(relevance_, feature_names_in_)`` has the
        names. Only where relevance was used.

        It is not importance: a column may move the log-odds without making them better, as an
        identifier does. Importance is what ``sklearn.inspection.permutation_importance`` measures
        on rows set aside.
    encoded_relevance_ : (n_columns,) array
        The same for every column that kernels see; ``get_feature_names_out()`` has their names. All
        categories of a feature have the same relevance.
    feature_importances_ : (n_features,) array
        The relevance of the features, as shares that sum to one, under the name that
        ``SelectFromModel`` looks for. It is not importance either.
    standardized_ : bool
        Whether the features were standardised.
    temperature_ : float or array
        Factor of the decision in the probability ``1 / (1 + exp(-2 * temperature * decision))``.
    n_stages_, n_iter_ : int, or array of them for many classes
        Number of stages of the longest path.
    stop_reason_ : str or array
        Why the path of the kernel with the largest share ended: ``"patience"`` (the held-out loss
        had not fallen for a while), ``"outrun"`` (it fell behind others), ``"n_stages"``,
        ``"rho_zero"`` (no step helps), ``"max_stages"`` or ``"max_time"``.
    rank_ : int or None
        Rank of the approximation.
    n_samples_fit_ : int
        Rows that the model was trained on: all rows of positive weight, unless `max_time` was too
        short for them.
    support_ : (n_support,) array
        All rows that the model was trained on, or the landmarks.
    support_vectors_ : (n_support, n_features) array or CSR matrix
        Those rows, standardised if `standardized_`; empty for a precomputed kernel.
    n_support_ : (n_classes,) array
        Support rows of each class.
    dual_coef_ : (n_machines, n_kernels * n_support) array, or CSR array for many classes
        Coefficients of the vote: for all support rows with the first kernel of `kernel_weights_`,
        then with the next different kernel, and so on.
    intercept_ : (n_machines,) array
        Bias of the vote.
    coef_ : (n_machines, n_features) array
        Weights of the (standardised) features, for the linear kernel only.
    gamma_ : float
        The kernel's gamma as a number; if there are several kernels, that of the one with the
        largest share.
    is_categorical_ : (n_features,) bool array or None
        The columns of categories; None if there are none.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : array
        Names of the features, if X has them.

    See Also
    --------
    GreedySVC : Smaller models with faster predictions.
    compress : Fewer support rows, for faster predictions.
    RhoEnsembleSVC : The published algorithm, stage by stage.

    Notes
    -----
    A row of weight two counts as two copies of it, up to rounding, if both are in the same folds.
    With many classes, machines are in the order of scikit-learn's pairs: (0, 1), (0, 2), ... The
    decision is then the sum of a class's pairwise probabilities, made steeper. ``predict_proba``
    ranks classes in the same order; its values come from the mean logs of the same probabilities.
    The decision of a mixture of experts is its log-odds or, for many classes, its
    log-probabilities.

    References
    ----------
    .. [1] I. W. Tsang and J. T. Kwok, "Ensembles of Partially Trained SVMs with Multiplicative
       Updates", IJCAI 2007.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from hardmargin import EnsembleSVC
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> clf = EnsembleSVC().fit(X[:400], y[:400])
    >>> round(clf.score(X[400:], y[400:]), 3)
    0.982
    >>> clf.predict_proba(X[400:402]).round(2)
    array([[1.  , 0.  ],
           [0.01, 0.99]])
    """

    _relevance_needs = (
        "relevance=True, dense rows that are standardised, gamma='cv', and an RBF or Laplacian "
        "kernel that is not approximated"
    )

    #: The mixture, where there are many rows.
    _experts_: Experts | None = None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **SelfTuningClassifier._parameter_constraints,
        "n_stages": [Choice({"cv"}), COUNT],
        "kernel": [Choice({"cv", *NAMED_KERNELS, "precomputed"}), callable],
        "gamma": [Interval(Real, 0, None, closed="neither"), Choice({"cv", *GAMMA_RULES})],
        "cv": ["cv_object"],
        "max_stages": [COUNT, None],
        "on_interrupt": [Choice({"raise", "keep"})],
        "checkpoint": [str, PathLike, None],
        "fit_intercept": ["boolean"],
        "standardize": [Choice({"auto"}), "boolean"],
        "categorical_features": [Choice({"from_dtype"}), "array-like", None],
        "views": [Choice({"auto", "standardized", "rank"})],
        "relevance": ["boolean"],
        "rank": [COUNT, Interval(Real, 0, 1, closed="neither"), Choice({"auto"}), None],
        "landmarks": [Choice({*LANDMARKS, "greedy"})],
        "max_cell_rows": [Interval(Integral, 50, None, closed="left"), None],
        "n_trees": [COUNT, Choice({"auto"})],
        "multi_class": [Choice({"auto", "ovo", "ovr"})],
    }

    def __init__(
        self,
        n_stages: int | str = "cv",
        *,
        kernel: str | KernelFunction = "cv",
        gamma: float | str = "cv",
        cv: Any = 5,
        degree: float = 3,
        coef0: float = 0.0,
        max_stages: int | None = None,
        fit_intercept: bool = True,
        standardize: bool | str = "auto",
        categorical_features: Any = "from_dtype",
        views: str = "auto",
        relevance: bool = True,
        rank: int | float | str | None = "auto",
        landmarks: Landmarks | Literal["greedy"] = "random",
        max_cell_rows: int | None = 1000,
        n_trees: int | str = "auto",
        class_weight: dict[Any, float] | str | None = None,
        multi_class: str = "auto",
        dtype: str = "auto",
        memory_limit: str | float | None = None,
        n_jobs: int | None = None,
        max_time: float | None = None,
        on_interrupt: str = "raise",
        checkpoint: str | PathLike[str] | None = None,
        verbose: int = 0,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_stages = n_stages
        self.kernel = kernel
        self.gamma = gamma
        self.cv = cv
        self.degree = degree
        self.coef0 = coef0
        self.max_stages = max_stages
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.categorical_features = categorical_features
        self.views = views
        self.relevance = relevance
        self.rank = rank
        self.landmarks = landmarks
        self.max_cell_rows = max_cell_rows
        self.n_trees = n_trees
        self.class_weight = class_weight
        self.multi_class = multi_class
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
        the step: ``params={"ensemblesvc__groups": g}``. A search keeps ``groups`` for its own
        splitter, so that only a pipeline can be searched::

            pipeline = make_pipeline(EnsembleSVC(cv=GroupKFold(3)))
            search = GridSearchCV(pipeline, grid, cv=GroupKFold(5))
            search.fit(X, y, groups=g, ensemblesvc__groups=g)

        With ``sklearn.set_config(enable_metadata_routing=True)`` one argument serves both, if the
        classifier requests it, in a pipeline or not::

            clf = EnsembleSVC(cv=GroupKFold(3)).set_fit_request(groups=True)
            cross_val_score(clf, X, y, cv=GroupKFold(5), params={"groups": g})
            GridSearchCV(clf, grid, cv=GroupKFold(5)).fit(X, y, groups=g)
        """
        if isinstance(self.n_stages, str) and self.n_stages == "eps":
            raise ValueError(
                "n_stages='eps' belongs to the published algorithm, RhoEnsembleSVC; here n_stages "
                "must be 'cv' or a number."
            )
        with self._fitting() as monitor:
            random = self._new_generator()
            rows = self._read_table(X, y, sample_weight, groups, random)
            if self._needs_experts(rows, self._first_plan(rows)):  # also without time for all rows
                warn_of_little_memory(self, rows)
            train = self._fit_in_time if monitor.has_limit else self._fit_rows
            with nullcontext() if self.checkpoint is None else self._resumed(rows, groups, monitor):
                self.n_samples_fit_ = train(rows, groups, random, monitor)
        return self

    @property
    def _grows(self) -> bool:
        return True

    def _largest_part(self, rows: TrainingRows) -> int:
        """Return the most rows of a part; more would be approximated, and no better."""
        plan = self._first_plan(rows)
        if self.rank != "auto" or self._is_text(rows.X) or self._needs_experts(rows, plan):
            return len(rows.codes)
        return int(MAX_STORED_ROWS * (rows.codes >= 0).sum() / plan.largest)

    def _cost_of_all(self, rows: TrainingRows) -> float:
        """Return the cost of a longer first vote; at low rank, time grows less with the rows."""
        n_rows = int((rows.codes >= 0).sum())
        longer = next(cost for most, cost in COSTS_OF_FIRST_VOTE if n_rows <= most)
        if self._is_text(rows.X) or self._needs_experts(rows, self._first_plan(rows)):
            longer = 1.0
        return longer * min(1.0, self._largest_part(rows) / n_rows)

    def _time_growth(self, rows: TrainingRows) -> tuple[int | None, int, float]:
        plan = self._first_plan(rows)
        if plan.is_linear:
            return SAMPLE_ROWS, SAMPLE_ROWS, 1.0
        if self._needs_experts(rows, plan):
            return MAX_STORED_ROWS, expert_training.FIRST_ROWS, LEAST_SHARE_OF_EXPERTS
        return None, 1, 1.0

    def _fit_rows(
        self, rows: TrainingRows, groups: Any, random: np.random.RandomState, monitor: Monitor
    ) -> int:
        folds = given_folds(self.cv, rows.X, rows.codes, groups)
        plan = self._plan(rows, folds, random, monitor)
        if self._needs_experts(rows, plan):
            mixture = self._fit_experts(rows, folds, random, monitor, plan, Here(self.n_jobs))
            if mixture is not None:
                n_known = mixture.n_known
                self._store_experts(mixture, rows)
                return n_known
        self._fit_vote(rows, folds, random, monitor, plan)
        return int((rows.codes >= 0).sum())

    def _first_plan(self, rows: TrainingRows) -> Plan:
        """Plan what the parameters and the kind of rows settle, without a look at a sample."""
        has_words, multi_class = self._is_text(rows.X), self.multi_class
        if multi_class == "auto":
            is_late = self._has_too_many_pairs(len(rows.classes), SECONDS_OF_PAIR)
            multi_class = "ovr" if has_words or is_late or _has_small_classes(rows) else "ovo"
        elif self._has_too_many_pairs(len(rows.classes)):
            multi_class = "ovr"
        machines = machines_of(len(rows.classes), multi_class)
        largest = Problem(rows.X, rows.codes, machines).n_rows_of_largest
        is_linear = self.kernel == "linear" and is_sparse(rows.X)
        if has_words and self.kernel == self.gamma == "cv":
            is_linear = not self._vote.memory_for(largest).is_enough
        is_scaled = self.standardize is not False and self.kernel != "precomputed"
        return Plan(is_scaled, is_linear, multi_class, largest)

    def _plan(
        self,
        rows: TrainingRows,
        folds: Folds | None,
        random: np.random.RandomState,
        monitor: Monitor,
    ) -> Plan:
        """Plan the fit: whether to standardise, and whether linear kernels vote alone.

        Where that is open, on sparse rows and rows that all have the same norm, a sample decides.
        """
        plan = self._first_plan(rows)
        may_stay = self.standardize == "auto" and plan.standardized
        has_choice = isinstance(self.gamma, str) and isinstance(self.kernel, str)
        chooses_scaling = may_stay and has_choice and is_open(rows.X)
        is_small = (rows.codes >= 0).sum() <= SAMPLE_ROWS  # all kernels can be tried on all rows
        can_choose = self.gamma == "cv" and not (plan.is_linear or is_small)
        chooses_kernel = can_choose and self._is_text(rows.X)
        if not (chooses_scaling or chooses_kernel):
            return plan
        part = monitor.part(share=SHARE_OF_LOOK)
        # The look takes nothing from the fit's generator, so that folds do not depend on it.
        own = copy.deepcopy(random)
        look = self._look_at_sample(rows, folds, own, part, plan, chooses_scaling)
        if look is None:
            return plan
        is_linear = plan.is_linear or (chooses_kernel and look.is_linear)
        return plan._replace(standardized=look.standardized, is_linear=is_linear)

    def _look_at_sample(
        self,
        rows: TrainingRows,
        folds: Folds | None,
        random: np.random.RandomState,
        monitor: Monitor,
        plan: Plan,
        chooses_scaling: bool,
    ) -> Look | None:
        """Compare kernels on a sample, as it came and standardised; None if none can be judged."""
        X, codes, classes, weights, _ = rows
        sample = sample_rows(X, codes, weights, self.cv, folds, random)
        seen = {}
        for standardized in sorted({plan.standardized and not chooses_scaling, plan.standardized}):
            with held_back():  # the scaling of all rows warns
                scaling = self._find_scaling(sample.X, sample.weights, standardized)
            seen[standardized] = (
                sample.X if scaling is None else as_blocks(sample.X).map(scaling.transform)
            )
        vote = replace(self._vote, kernel="linear") if plan.is_linear else self._vote
        make_kernels = partial(vote.plain_kernels, with_linear=True)
        machines = machines_of(len(classes), plan.multi_class)
        return first_look(sample, seen, make_kernels, machines, vote.options, monitor)

    def _find_scaling(
        self,
        X: Rows,
        weights: FloatArray | None,
        standardized: bool,
        most_bytes: float = math.inf,
    ) -> Scaling | MixedScaling | None:
        """Find how to scale rows; None if they stay as they came."""
        if self.standardize is False or self.kernel == "precomputed":
            return None
        names = self.get_feature_names_out
        if standardized:
            return find_row_scaling(X, weights, names, most_bytes)
        return find_mixed_scaling(X, weights, names, standardized=False)

    def _is_text(self, X: Rows) -> bool:
        """Whether to treat rows as text: linear kernels may vote alone, one class against all."""
        return is_text(X) and self.kernel in ("cv", "linear")

    def _fit_vote(
        self,
        rows: TrainingRows,
        folds: Folds | None,
        random: np.random.RandomState,
        monitor: Monitor,
        plan: Plan,
    ) -> tuple[NDArray[np.intp], FloatArray]:
        """Train on all rows; return which were held out, and their held-out probabilities."""
        self.standardized_ = plan.standardized
        self._divide(len(rows.classes), plan.multi_class)
        self._scaling_ = self._find_scaling(
            rows.X, rows.weights, plan.standardized, self._most_row_bytes
        )
        if self._scaling_ is not None:
            seen = as_blocks(rows.X, self._most_row_bytes).map(self._scaling_.transform)
            rows = rows._replace(X=seen)
        training = self._training(  # a kernel of medium width shows whether any can tell rows apart
            rows,
            kernel="rbf" if self.kernel == "cv" else self.kernel,
            gamma="spread" if self.gamma == "cv" else self.gamma,
        )
        if folds is None:
            is_shuffled = not rows.is_part and (rows.codes >= 0).sum() <= MAX_SHUFFLED_ROWS
            n_shuffles = N_SHUFFLES if is_shuffled else 1
            folds = make_folds(
                self.cv, training.X, training.codes, n_shuffles=n_shuffles, random_state=random
            )
        if folds.shortage:
            _warn_of_folds(folds)
        if not training.kernel.has_unit_diagonal:
            finite_diagonal(training.kernel, training.X, training.codes)
        problem = Problem(training.X, training.codes, training.machines, training.weights)
        monitor = monitor.part("held-out loss", n_machines=len(training.machines))
        if plan.is_linear and self.rank in (None, "auto"):
            linear = Kernel("linear")
            voted = self._vote.of_one_kernel(linear, problem, training.dtype, folds, monitor)
        else:
            voted = self._vote.of_all(
                problem,
                training.dtype,
                folds,
                random,
                monitor,
                has_views=self._has_views,
                is_quick=rows.is_part,
            )
        self._store_votes(training, voted)
        held_out = voted.held_out
        held = np.empty(0, dtype=np.intp), np.empty((0, len(training.classes)))
        if len(held_out.rows):
            slopes = np.array([vote.slope for vote in voted.votes])
            held = self._calibrate(training, held_out, slopes, random)
            if voted.relevance is not None:  # which has seen the labels of the rows held out
                w, n_rows = training.weights, int((rows.codes >= 0).sum())
                n_scales = len(np.unique(voted.relevance))
                leak = LEAK * np.sqrt(n_scales) / (n_rows if w is None else w.sum())
                self.cv_log_loss_ += float(leak)
                if n_scales > n_rows:
                    _warn_of_leak(n_scales, n_rows)
        else:
            self._use_frequencies(training)
        reasons = {path.stop_reason for vote in voted.votes for path in vote.paths}
        if "max_time" in reasons:
            warn_caller("Training stopped at max_time; the model is that of the stages so far.")
        elif "max_stages" in reasons and self.max_stages is not None:
            self._warn_of_max_stages()
        n_blind = sum(len(vote.held_rows) == 0 for vote in voted.votes)
        if n_blind and not folds.shortage:
            _warn_of_blind_machines(n_blind, len(voted.votes))
        return held

    def _needs_experts(self, rows: TrainingRows, plan: Plan) -> bool:
        """Whether some machine has too many rows for a vote without approximation."""
        if self.max_cell_rows is None or self.rank is None or plan.is_linear:
            return False
        if self.gamma != "cv" or self.n_stages != "cv":
            return False
        if self.kernel not in ("cv", *DISTANCE_KERNELS):
            return False
        if not plan.standardized:
            low, high, _ = column_ends(rows.X)
            if max(high.max(initial=0.0), -low.min(initial=0.0)) > MAX_FLOAT32_FEATURE:
                return False
        return plan.largest > MAX_STORED_ROWS

    def _fit_experts(
        self,
        rows: TrainingRows,
        folds: Folds | None,
        random: np.random.RandomState,
        monitor: Monitor,
        plan: Plan,
        workplace: Workplace,
    ) -> Mixture | None:
        """Train experts on parts of the rows, wherever they live; None if none can be judged."""
        self.standardized_ = plan.standardized
        self._divide(len(rows.classes), plan.multi_class)
        self._scaling_ = self._find_scaling(
            rows.X, rows.weights, plan.standardized, self._most_row_bytes
        )
        class_weights = None
        if self.class_weight is not None:
            class_weights = self._class_weights(rows.classes, rows.codes, rows.weights)
        monitor = monitor.part("held-out loss")
        mixture = train_experts(self, rows, folds, class_weights, random, monitor, workplace)
        if mixture is None:
            return None
        self._calibration_ = LogProbabilities()
        self._class_weights_ = class_weights
        self.classes_ = rows.classes
        self.rank_: int | None = None
        if mixture.relevance is not None:
            self._store_relevance(mixture.relevance)
        self.cv_log_loss_, self.cv_error_ = mixture.log_loss, mixture.error
        return mixture

    def _store_experts(self, mixture: Mixture, rows: TrainingRows) -> None:
        """Store what predictions need."""
        self._experts_ = mixture.finished()
        self.support_ = self._experts_.support_rows()
        codes = rows.codes[self.support_]
        self.n_support_ = np.bincount(codes, minlength=len(rows.classes)).astype(np.int32)
        self._by_class_ = np.argsort(codes, kind="stable").astype(np.int32)

    def _fit_part(
        self, part: TrainingRows, monitor: Monitor
    ) -> tuple[NDArray[np.intp], FloatArray]:
        """Train on rows that another estimator has read."""
        self.n_features_in_ = part.X.shape[1]
        folds, random = given_folds(self.cv, part.X, part.codes), self._new_generator()
        plan = self._plan(part, folds, random, monitor)
        return self._fit_vote(part, folds, random, monitor, plan)

    @property
    @on_one_model
    def cv_table_(self) -> NDArray[Any]:
        """Held-out log-loss of every stage that was judged, of every machine and kernel."""
        check_is_fitted(self)
        if self._experts_ is not None:
            raise self._no_single_vote("cv_table_")
        return self._losses_.table()

    @property
    @on_one_model
    def experts_(self) -> NDArray[Any]:
        """What votes: kind, rows, cells, weight, and the log-loss on rows held out."""
        check_is_fitted(self)
        if self._experts_ is not None:
            return self._experts_.table
        only = ("whole", self.n_samples_fit_, 1, 1.0, self.cv_log_loss_)
        return np.array([only], dtype=TABLE)

    def __getattr__(self, name: str) -> Any:
        """Say why an attribute is missing; called for those that are."""
        if name in _OF_ONE_VOTE and self.__dict__.get("_experts_") is not None:
            raise self._no_single_vote(name)
        return self.__getattribute__(name)  # raises the error that led here

    def _no_single_vote(self, name: str) -> AttributeError:
        return AttributeError(
            f"This EnsembleSVC has no {name}: trained on many rows, it is a mixture of experts "
            "that have many machines, see experts_. max_cell_rows=None trains one machine."
        )

    @property
    def _holds_out(self) -> bool:
        return True

    @property
    def _query_bytes(self) -> int:
        if self._experts_ is None:
            return super()._query_bytes
        n_experts = len(self._experts_.weights)
        return int(12 * self._experts_.support.shape[1] + 16 * n_experts * len(self.classes_))

    def _scaled(self, rows: Rows) -> Rows:
        return super()._scaled(rows) if self._experts_ is None else rows

    def _margins(self, Q: Rows) -> FloatArray:
        if self._experts_ is None:
            return super()._margins(Q)
        scaled = as_cells_see(super()._scaled(Q))
        logs = self._experts_.log_probabilities(Q, scaled, self.n_jobs)
        if self._class_weights_ is not None:  # they multiply the odds
            logs = log_softmax(logs + np.log(self._class_weights_), axis=1)
        return logs

    @property
    def _has_views(self) -> bool:
        """Whether the kernels see dense rows through views."""
        return (
            self.standardized_ and self.gamma == "cv" and self.kernel in ("cv", *DISTANCE_KERNELS)
        )

    @property
    def _vote(self) -> KernelVote:
        limit = planned_bytes(self.memory_limit)
        n_stages = None if self.n_stages == "cv" else int(self.n_stages)
        # A given number of stages needs no other limit.
        most = MAX_STAGES if n_stages is None else n_stages
        return KernelVote(
            kernel=self.kernel,
            gamma=self.gamma,
            degree=self.degree,
            coef0=self.coef0,
            views=self.views,
            relevance=self.relevance,
            rank=self.rank,
            landmarks=self.landmarks,
            dtype=self.dtype,
            n_jobs=self.n_jobs,
            memory_bytes=limit,
            max_stored_rows=MAX_STORED_ROWS,
            options=StagedVoteOptions(
                fit_intercept=self.fit_intercept,
                n_stages=n_stages,
                max_stages=most if self.max_stages is None else int(self.max_stages),
                memory_bytes=min(limit // 4, KEPT_MATRICES),
                n_threads=effective_n_jobs(self.n_jobs),
            ),
        )

    def _store_votes(self, training: Training, voted: VoteResult) -> None:
        """Keep the kernels that vote, in the order of their shares."""
        kernels, votes, relevance, self.rank_ = voted
        total = np.sum([vote.shares for vote in votes], axis=0)
        used = [int(k) for k in np.argsort(-total, kind="stable") if total[k] > 0]
        machines = []
        for m, vote in enumerate(votes):
            # Class weights multiply the odds, which moves the threshold.
            ratio = None if training.class_weights is None else training.log_weight_ratio(m)
            threshold = (ratio or 0.0) / vote.slope
            machines.append(
                replace(
                    vote, coefficients=vote.coefficients[used], intercept=vote.intercept - threshold
                )
            )
        chosen = [kernels[k] for k in used]
        self._store(training, machines, chosen[0] if len(used) == 1 else KernelSum(tuple(chosen)))
        rows_are = "standardized" if self.standardized_ else "raw"
        self._losses_ = Losses.of(kernels, votes, rows_are)
        shares = [
            (m, *self._losses_.candidates[k], vote.shares[k])
            for k in used
            for m, vote in enumerate(votes)
            if vote.shares[k] > 0
        ]
        self.kernel_weights_ = np.array(shares, dtype=SHARES)
        self.n_stages_ = one_or_all([max(p.n_stages for p in v.paths) for v in votes])
        self.n_iter_ = self.n_stages_
        self.stop_reason_ = one_or_all([v.paths[int(v.shares.argmax())].stop_reason for v in votes])
        self.temperature_ = one_or_all([vote.slope / 2 for vote in votes])
        self.cv_log_loss_ = self.cv_error_ = float("nan")
        if relevance is not None:
            self._store_relevance(relevance)

    def _warn_of_max_stages(self) -> None:
        what = "while their held-out loss still fell"
        if self.n_stages != "cv":
            what = f"before n_stages={self.n_stages}"
        warn_caller(
            f"Some paths stopped at max_stages={self.max_stages} {what}; raise max_stages to "
            "continue."
        )


def _has_small_classes(rows: TrainingRows) -> bool:
    """Whether there are many classes of few rows: pairs then have too few to learn from."""
    n_rows, n_classes = int((rows.codes >= 0).sum()), len(rows.classes)
    return n_classes >= MANY_CLASSES and n_rows <= min(FEW_PER_CLASS * n_classes, FEW_ROWS)


def _warn_of_blind_machines(n_blind: int, n_machines: int) -> None:
    warn_caller(
        f"cv holds out no rows of both classes for {n_blind} of {n_machines} machines, so "
        "nothing could be chosen for them; use other splits.",
        UserWarning,
    )


def _warn_of_leak(n_columns: int, n_rows: int) -> None:
    warn_caller(
        f"There are more columns ({n_columns:,}) than rows ({n_rows:,}). Their relevance was "
        "found with the labels of all rows, also of those held out, so cv_log_loss_, cv_error_ and "
        "probabilities are too confident. relevance=False makes them fair, as does GreedySVC.",
        UserWarning,
    )


def _warn_of_folds(folds: Folds) -> None:
    if len(folds.train) == 0:
        warn_caller(
            f"Nothing could be chosen by cross-validation: {folds.shortage}. The model has a "
            "kernel of medium width and few stages, and its probabilities are the "
            "frequencies of the classes, moved by the decision.",
            UserWarning,
        )
    else:
        warn_of_shortage(folds)
