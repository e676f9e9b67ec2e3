"""The ensemble of partially trained SVMs that tunes itself."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral, Real
from os import PathLike
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from hardmargin.cells.experts import TABLE, Experts, Mixture
from hardmargin.cells.training import Here, Workplace, train_experts, warn_of_little_memory
from hardmargin.estimators._base.estimator import COUNT, one_or_all
from hardmargin.estimators._base.one_model import on_one_model
from hardmargin.estimators._base.options import Choice
from hardmargin.estimators._base.self_tuning import SelfTuningClassifier
from hardmargin.kernels import GAMMA_RULES, NAMED_KERNELS, KernelFunction
from hardmargin.kernels.low_rank import LANDMARKS, Landmarks
from hardmargin.monitor import Monitor
from hardmargin.prediction import Model
from hardmargin.selection.fitted_vote import FittedVote
from hardmargin.selection.folds import given_folds
from hardmargin.selection.mixture import LogProbabilities
from hardmargin.selection.plan import Budget, Plan, plan, settled
from hardmargin.selection.rows import TrainingRows


class OfOneVote:
    """A fitted attribute that a mixture of experts does not have.

    It is read where the estimator has no attribute of this name, and says why.
    """

    def __init__(self, name: str = "") -> None:
        self.name = name

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = self.name or name

    def __get__(self, model: EnsembleSVC | None, owner: type) -> Any:
        if model is None:
            return self
        if model._experts_ is None:  # it is not fitted
            raise AttributeError(f"{owner.__name__!r} object has no attribute {self.name!r}")
        raise AttributeError(
            f"This EnsembleSVC has no {self.name}: trained on many rows, it is a mixture of "
            "experts that have many machines, see experts_. max_cell_rows=None trains one machine."
        )


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
    its relevance, which is how much it moved the log-odds of a first, smaller vote, less what
    chance would move. Every split finds the relevance of its own training rows, unless there are so
    few columns for the rows that it makes no difference. The shares of the classes vote, too: where
    nothing can be learned, they are the probabilities.

    Text (sparse rows of more than 1,000 columns) has neither views nor relevance, and no experts.
    A sample then decides whether to standardise, and whether RBF kernels are worth their time: if
    not, or if a machine would have more than 10,000 rows, a linear kernel votes alone. It needs one
    weight per column instead of a kernel matrix, so all rows can be used.

    Where a machine (with many classes, the machine of one pair) would have more than 10,000 rows,
    the model is a mixture of experts: one vote as above on a sample of up to 10,000 rows, and trees
    whose cells have machines of their own, so that time grows in proportion to the number of rows.
    What suits the data is found on held-out rows; `experts_` shows it. See
    ``hardmargin.cells.experts`` and ``hardmargin.cells``.

    Parameters
    ----------
    n_stages : "cv" or int, default="cv"
        ``"cv"`` weights all stages by their held-out loss; a number ends the path after that many
        stages.
    kernel : {"cv", "rbf", "laplacian", "matern32", "matern52", "linear", "cosine", "poly", \
"sigmoid", "precomputed"} or callable, default="cv"
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
        Log-loss and share of errors on held-out rows, weighted by sample and class weights: what
        new rows of the same kind get. As the same rows chose kernels and stages, up to two units of
        log-likelihood are added to their sum of losses (less where the probabilities are close to
        the shares of the classes), and the error of two classes is raised by what they take off it
        on noise. Where rows are many and columns few, relevance has seen the labels of all rows;
        the log-loss is then raised by 0.9 times the root of the number of different scales, divided
        by the number of rows, which is at most 0.003 for two classes. With a column of many
        categories, both are too high, as held-out rows are coded from fewer rows than new ones.
    cv_log_loss_std_error_, cv_error_std_error_ : float
        Standard errors of these means: how far other rows of the same kind would move them. A row
        that was held out several times counts once. NaN where the means are.
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
    0.994
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

    dual_coef_: Any = OfOneVote()
    support_vectors_: Any = OfOneVote()
    intercept_: Any = OfOneVote()
    gamma_: Any = OfOneVote()
    kernel_weights_: Any = OfOneVote()
    temperature_: Any = OfOneVote()
    n_stages_: Any = OfOneVote()
    n_iter_: Any = OfOneVote()
    stop_reason_: Any = OfOneVote()
    _losses_: Any = OfOneVote("cv_table_")

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
            budget = Budget.of(self.memory_limit)
            of_all = plan(rows, self, budget)
            if of_all.has_cells:  # also without time for all rows
                warn_of_little_memory(of_all, rows)
            growth = of_all.growth(rows) if monitor.has_limit else None

            def fit_rows(
                model: EnsembleSVC,
                some: TrainingRows,
                groups: Any,
                random: np.random.RandomState,
                monitor: Monitor,
            ) -> int:
                own = plan(some, model, budget) if some.is_part else of_all
                return model._fit_rows(some, groups, random, monitor, own)

            with self._resumed(rows, groups, monitor):
                self.n_samples_fit_ = self._fit_in_time(
                    rows, groups, growth, fit_rows, random, monitor
                )
        return self

    def _fit_rows(
        self,
        rows: TrainingRows,
        groups: Any,
        random: np.random.RandomState,
        monitor: Monitor,
        first: Plan,
    ) -> int:
        """Train on rows that have been read; return how many of them the model has seen."""
        mixture = self._fit_at(Here(self.n_jobs), rows, groups, random, monitor, first)
        if mixture is None:
            return rows.n_rows
        n_known = mixture.n_known
        self._store_experts(mixture, rows)
        return n_known

    def _fit_at(
        self,
        workplace: Workplace,
        rows: TrainingRows,
        groups: Any,
        random: np.random.RandomState,
        monitor: Monitor,
        first: Plan,
    ) -> Mixture | None:
        """Train where the rows are; return the mixture, if it is one, whose experts stay there."""
        rows = self._completed(rows)
        folds = given_folds(self.cv, rows.X, rows.codes, groups)
        own = settled(first, rows, folds, random, monitor)
        self._divide(len(rows.classes), own.multi_class)
        mixture = None
        if own.has_cells:
            mixture = train_experts(rows, own, folds, self._of_sample, workplace, random, monitor)
        if mixture is None:
            self._store_vote(workplace.fit_vote(rows, own, folds, random, monitor))
        else:
            self._store_mixture(mixture, rows, own)
        return mixture

    def _completed(self, rows: TrainingRows) -> TrainingRows:
        """Add the weights of the classes, and names of the columns, to rows that were read."""
        class_weights = None
        if self.class_weight is not None:
            class_weights = self._class_weights(rows.classes, rows.codes, rows.weights)
        return rows._replace(class_weights=class_weights, feature_names=self.get_feature_names_out)

    def _of_sample(self, voted: FittedVote) -> EnsembleSVC:
        """Make a classifier of the vote on a sample, with the parameters that predictions need."""
        names = ("kernel", "dtype", "memory_limit", "n_jobs")
        model = type(self)(**{name: getattr(self, name) for name in names})
        model.n_features_in_ = voted.n_columns
        model._divide(len(voted.classes), voted.plan.multi_class)
        model._store_vote(voted)
        return model

    def _store_vote(self, voted: FittedVote) -> None:
        """Keep a vote: what predictions need, and what it found."""
        self.classes_ = voted.classes
        self.standardized_, self._scaling_ = voted.plan.standardized, voted.machines.scaling
        self._keep_machines(voted.machines)
        self._calibration_ = voted.judged.calibration
        self.cv_log_loss_, self.cv_error_ = voted.judged.log_loss, voted.judged.error
        self.cv_log_loss_std_error_ = voted.judged.log_loss_std_error
        self.cv_error_std_error_ = voted.judged.error_std_error
        self.kernel_weights_, self._losses_ = voted.shares, voted.losses
        self.n_stages_ = self.n_iter_ = one_or_all(voted.n_stages)
        self.stop_reason_ = one_or_all(voted.stop_reasons)
        self.temperature_ = one_or_all([slope / 2 for slope in voted.slopes.tolist()])
        self.rank_: int | None = voted.rank
        if voted.relevance is not None:
            self._store_relevance(voted.relevance)

    def _store_mixture(self, mixture: Mixture, rows: TrainingRows, own: Plan) -> None:
        """Keep what a mixture found, but not the experts, which may be elsewhere."""
        self.classes_ = rows.classes
        self.standardized_, self._scaling_ = own.standardized, mixture.scaling
        self._calibration_ = LogProbabilities()
        self.cv_log_loss_, self.cv_error_ = mixture.log_loss, mixture.error
        self.cv_log_loss_std_error_ = mixture.log_loss_std_error
        self.cv_error_std_error_ = mixture.error_std_error
        self.rank_ = None
        if mixture.relevance is not None:
            self._store_relevance(mixture.relevance)

    def _store_experts(self, mixture: Mixture, rows: TrainingRows) -> None:
        """Keep the experts that take part."""
        self._experts_ = mixture.finished()
        self.support_ = self._experts_.support_rows()
        codes = rows.codes[self.support_]
        self.n_support_ = np.bincount(codes, minlength=len(rows.classes)).astype(np.int32)
        self._by_class_ = np.argsort(codes, kind="stable").astype(np.int32)

    @property
    @on_one_model
    def cv_table_(self) -> NDArray[Any]:
        """Held-out log-loss of every stage that was judged, of every machine and kernel."""
        check_is_fitted(self)
        table: NDArray[Any] = self._losses_.table()
        return table

    @property
    @on_one_model
    def experts_(self) -> NDArray[Any]:
        """What votes: kind, rows, cells, weight, and the log-loss on rows held out."""
        check_is_fitted(self)
        if isinstance(self._model, Experts):
            return self._model.table
        only = ("whole", self.n_samples_fit_, 1, 1.0, self.cv_log_loss_)
        return np.array([only], dtype=TABLE)

    @property
    def _holds_out(self) -> bool:
        return True

    @property
    def _model(self) -> Model:
        return self._machines if self._experts_ is None else self._experts_

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Load a model; mixtures of earlier versions did not know how rows are scaled."""
        super().__setstate__(state)
        if isinstance(before := state.get("_experts_"), Experts) and "_class_weights_" in state:
            class_weights = state["_class_weights_"]
            del self._class_weights_
            self._experts_ = replace(
                before, scaling=state["_scaling_"], class_weights=class_weights
            )
