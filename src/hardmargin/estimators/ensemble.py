"""The ensemble of partially trained SVMs as a classifier."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from hardmargin.estimators._base.options import Choice
from hardmargin.estimators._base.planes import PlanesClassifier
from hardmargin.estimators._base.problem import Expansion, Problem
from hardmargin.estimators._base.scaling import StandardizeMixin
from hardmargin.estimators._base.tuned import TunedMixin
from hardmargin.estimators._base.validation import COUNT
from hardmargin.kernels import GAMMA_RULES, NAMED_KERNELS, FloatArray, KernelFunction
from hardmargin.kernels.low_rank import LANDMARKS, LowRankMatrix
from hardmargin.solvers.rho import ProjectionOptions
from hardmargin.solvers.staged_vote import LOSSES

#: Limit on the stages of the published path.
MAX_PUBLISHED_STAGES = 10_000


class EnsembleSVC(StandardizeMixin, TunedMixin, PlanesClassifier):
    """Ensemble of partially trained hard-margin SVMs, with nothing to tune.

    Multiplicative updates with an adaptive rate move a weighted Parzen window towards the
    hard-margin SVM [1]_. Every plane on the way is a partially trained SVM, and all of them vote.
    Stopping early is what regularises: there is no constant C.

    How long the path is, and the kernel, are chosen inside ``fit``: one machine a fold goes the
    same path on the same kernel matrix, and its scores of the rows held out say how good every
    stage is. Stages and kernels (RBF and Laplacian of several widths) then vote, weighted by their
    held-out log-loss; the same scores give the
    probabilities. See ``hardmargin.solvers.staged_vote``.

    Parameters
    ----------
    n_stages : "cv", "eps" or int, default="cv"
        ``"cv"`` weighs all stages by their held-out loss; a number ends the path after so many;
        ``"eps"`` ends it where the paper does, when epsilon falls below `eps_stop`.
    kernel : {"cv", "rbf", "laplacian", "linear", "poly", "sigmoid", "precomputed"} or callable, \
default="cv"
        The kernel; ``"cv"`` weighs RBF and Laplacian ones (with a fixed `gamma`, RBF alone). A
        callable takes two sets of rows and returns the matrix of values. It should be positive
        semi-definite.
    gamma : float or {"cv", "scale", "spread", "pairwise"}, default="cv"
        Width of the kernel. ``"cv"`` weighs several; ``"spread"``, the paper's, is 1 / mean squared
        distance to the mean; ``"scale"`` is scikit-learn's, ``"pairwise"`` 1 / mean squared
        distance between rows.
    cv : int, splitter or iterable of splits, default=5
        How rows are held out: shuffled stratified folds (by three shuffles up to 500 rows, copies
        of a row in the same fold), or any splitter of scikit-learn, or pairs of train and test
        indices. Splitters that need groups take those given to ``fit``, whose notes say how to hand
        them on from ``cross_val_score`` and searches.
    degree : float, default=3
        Degree of the ``"poly"`` kernel.
    coef0 : float, default=0.0
        Constant in the ``"poly"`` and ``"sigmoid"`` kernels.
    eps_start, eps_stop : float, default=0.1 and 0.005
        The first epsilon of the published path, and the one that ends it.
    max_stages : int or None, default=None
        Limit on the stages of each machine, whatever `n_stages` is; None is 150 where they are
        chosen, 10,000 on the published path, and none where `n_stages` is a number.
    loss : {"logistic", "exponential"}, default="logistic"
        What the vote descends on; ``"exponential"`` is the paper's. The logistic loss does not let
        single rows outweigh all others.
    fit_intercept : bool, default=True
        Train with a bias; each class then holds half of the weight. The paper has none.
    standardize : bool, default=True
        Shift and scale every feature to mean 0 and variance 1 (scale only, for sparse rows); those
        that take two values only, to values 1 apart. Features that a few huge values would flatten
        are clipped, with a warning.
    rank : int, float, "auto" or None, default="auto"
        Approximate the kernel through landmark rows: so many, or as many as leave this share of
        its trace. ``"auto"`` does so for machines of more than 10,000 rows, or where the memory
        asks for it, and raises the rank while that lowers the held-out loss; the published path it
        leaves exact. A stage then takes time in proportion to the rows, and prediction needs the
        landmarks alone. None is exact.
    landmarks : {"random", "kmeans++", "cholesky", "greedy"}, default="random"
        How landmarks are found; ``"greedy"`` takes the rows that GreedySVC chooses first.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes. They multiply the odds of the classes: probabilities and decisions
        move, and the ranking of the rows stays as it is. On the published path they multiply the
        sample weights.
    multi_class : {"ovo", "ovr"}, default="ovo"
        One machine a pair of classes, or one a class against the rest.
    dtype : {"auto", "float32", "float64"}, default="auto"
        Precision of kernel values. While stages are chosen ``"auto"`` holds them in float64 up to
        500 rows, in float32 up to 1,500 and in 16 bits above; predictions and the published path
        have float64 up to 5,000 rows and float32 above.
    memory_limit : str, number or None, default=None
        Memory for a fit, as ``"2GB"`` or in bytes; None is half of the free memory. On the
        published path, a kernel matrix that does not fit is evaluated anew at every stage.
    n_jobs : int or None, default=None
        Threads over kernels or over the machines of many classes in ``fit``, and over rows in
        ``predict``. The model does not depend on it.
    max_time : float or None, default=None
        Seconds after which ``fit`` returns the model so far, with a warning. It is looked at before
        every stage; distances, a kernel matrix and one product with it are always made.
    verbose : int, default=0
        Print the progress of long fits.
    random_state : int, RandomState instance or None, default=None
        Shuffles the folds, and draws the landmarks. None always draws the same, so that fits can be
        repeated; other numbers show how much the model depends on the shuffle. With
        ``cv=RepeatedStratifiedKFold(n_splits=5, n_repeats=5)`` it depends less, and takes longer.

    Attributes
    ----------
    classes_ : (n_classes,) array
        The labels.
    kernel_weights_ : structured array
        What voted: ``machine``, ``kernel``, ``gamma`` and ``share``, one record for each kernel
        with a share of a machine's vote, kernels in the order of their shares of all votes.
        ``pandas.DataFrame`` takes it as it is. Only where something was chosen, like the next five.
    cv_table_ : structured array
        How every stage was judged: ``machine``, ``kernel``, ``gamma``, ``stage`` and ``log_loss``
        on held-out rows, each stage at its own best temperature.
    cv_log_loss_, cv_error_ : float
        Log-loss and share of errors on held-out rows, weighted by sample and class weights.
    temperature_ : float or array
        Factor of the decision in the probability ``1 / (1 + exp(-2 * temperature * decision))``.
    n_stages_, n_iter_ : int, or array of them for many classes
        Stages of the longest path, or of the published one.
    stage_weights_ : array, or list of them for many classes
        The rate of every stage: the weight of its plane in the vote. On the published path only,
        like the next five.
    stage_intercepts_ : array, or list of them for many classes
        The bias of every stage; zeros without `fit_intercept`.
    rho_path_ : array, or list of them for many classes
        The objective ``rho_bar`` of every plane, one more than stages; it never rises.
    eps_path_ : array, or list of them for many classes
        Epsilon at every stage.
    rho_lower_bound_ : float or array
        The optimum is between this and the end of `rho_path_`.
    certificate_ : float or array
        Relative gap between the two. It certifies the last plane; the vote is meant to stop early.
        At low rank it is that of the approximate kernel.
    stop_reason_ : str or array
        Of the kernel with the largest share: ``"patience"`` (the held-out loss had not fallen for a
        while), ``"outrun"`` (it fell behind others), ``"n_stages"``, ``"rho_zero"`` (no step helps,
        or no margin is left), ``"max_stages"`` or ``"max_time"``; on the published path also
        ``"eps"`` and ``"eta_zero"`` (no rate moves the plane).
    rank_ : int or None
        Rank of the approximation.
    support_ : (n_support,) array
        All rows of positive weight, or the landmarks.
    support_vectors_ : (n_support, n_features) array or CSR matrix
        Those rows, standardised where the option says so; empty for a precomputed kernel.
    n_support_ : (n_classes,) array
        Support rows of each class.
    dual_coef_ : (n_machines, n_kernels * n_support) array, or CSR array for many classes
        Coefficients of the vote: of all support rows with the first kernel of `kernel_weights_`,
        then with the next other one, and so on.
    intercept_ : (n_machines,) array
        Bias of the vote.
    coef_ : (n_machines, n_features) array
        For the linear kernel; of the standardised features where the option says so.
    gamma_ : float
        Gamma of the kernel, of that with the largest share if there are several.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : array
        Names of the features, where X has them.

    See Also
    --------
    GreedySVC : For more than some ten thousand rows.
    compress : Fewer support rows, for faster predictions.
    RhoSVC : The last plane of the published path.
    ParzenClassifier : The first.

    Notes
    -----
    The paper's own algorithm, stage by stage, is ``EnsembleSVC(n_stages="eps", kernel="rbf",
    gamma="spread", loss="exponential", fit_intercept=False, standardize=False)``: with the
    exponential loss, and nothing left to choose, the published path is taken. It has the staged
    methods, and no probabilities.

    A row of weight two equals the row twice, up to rounding, if both copies are in the same folds.
    With many classes, machines are in the order of scikit-learn's pairs: (0, 1), (0, 2), ..; the
    decision is the sum of a class's pairwise probabilities, made steeper. ``predict_proba`` has its
    order, and values from the mean logs of the same probabilities.

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

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PlanesClassifier._parameter_constraints,
        "n_stages": [Choice({"cv", "eps"}), COUNT],
        "kernel": [Choice({"cv", *NAMED_KERNELS, "precomputed"}), callable],
        "gamma": [Interval(Real, 0, None, closed="neither"), Choice({"cv", *GAMMA_RULES})],
        "cv": ["cv_object"],
        "max_stages": [COUNT, None],
        "loss": [Choice(LOSSES)],
        "standardize": ["boolean"],
        "landmarks": [Choice({*LANDMARKS, "greedy"})],
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
        eps_start: float = 0.1,
        eps_stop: float = 0.005,
        max_stages: int | None = None,
        loss: str = "logistic",
        fit_intercept: bool = True,
        standardize: bool = True,
        rank: int | float | str | None = "auto",
        landmarks: str = "random",
        class_weight: dict[Any, float] | str | None = None,
        multi_class: str = "ovo",
        dtype: str = "auto",
        memory_limit: str | float | None = None,
        n_jobs: int | None = None,
        max_time: float | None = None,
        verbose: int = 0,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_stages = n_stages
        self.kernel = kernel
        self.gamma = gamma
        self.cv = cv
        self.degree = degree
        self.coef0 = coef0
        self.eps_start = eps_start
        self.eps_stop = eps_stop
        self.max_stages = max_stages
        self.loss = loss
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.rank = rank
        self.landmarks = landmarks
        self.class_weight = class_weight
        self.multi_class = multi_class
        self.dtype = dtype
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.max_time = max_time
        self.verbose = verbose
        self.random_state = random_state

    def staged_decision_function(self, X: Any) -> Iterator[FloatArray]:
        """Scores after every stage of the published path, as `decision_function` gives them.

        Stage t of several machines is stage t of each, or its last: for many classes that is not
        the model of ``n_stages=t``, whose machines all go on to stage t.

        Yields
        ------
        (n_samples,) array, or (n_samples, n_classes) for more than two classes
        """
        check_is_fitted(self)
        if hasattr(self, "kernel_weights_"):
            raise AttributeError(
                "A vote over several kernels has no stages of its own; cv_table_ has the held-out "
                "losses of all stages. The published path has staged predictions: set n_stages, "
                "kernel, gamma and loss='exponential'."
            )
        return super().staged_decision_function(X)

    def _holds_out(self) -> bool:
        # The paper's algorithm runs where its loss is asked for and nothing is left to choose.
        return self.loss != "exponential" or "cv" in (
            self.n_stages,
            self.gamma,
            self.kernel if isinstance(self.kernel, str) else "",
        )

    def _solve(self, problem: Problem) -> list[Expansion]:
        if not self._holds_out():
            return self._published(problem)
        if self.n_stages == "eps":
            raise ValueError(
                "n_stages='eps' is for the published path, which has nothing to choose and the "
                "exponential loss: set kernel, gamma and loss='exponential' too (the paper has "
                "kernel='rbf', gamma='spread', fit_intercept=False, standardize=False), or take "
                "n_stages='cv'."
            )
        return self._solve_by_votes(problem)

    def _published(self, problem: Problem) -> list[Expansion]:
        self._slopes_ = None
        n_stages = None if self.n_stages == "eps" else int(self.n_stages)
        # A number of stages that was asked for needs no other limit.
        limit = MAX_PUBLISHED_STAGES if n_stages is None else n_stages
        options = ProjectionOptions(
            eps_start=self.eps_start,
            eps_stop=self.eps_stop,
            n_stages=n_stages,
            max_stages=limit if self.max_stages is None else int(self.max_stages),
            fit_intercept=self.fit_intercept,
        )
        return self._expansions(problem, options, last=False)

    def _low_rank(self, problem: Problem) -> LowRankMatrix | None:
        if self.rank == "auto":
            self.rank_ = None
            return None
        if self.landmarks == "greedy":
            raise ValueError("landmarks='greedy' is not for the published path.")
        return super()._low_rank(problem)

    def _staged_coefficients(self, planes: Any, machine: int) -> tuple[Any, Any]:
        many = len(self.classes_) > 2
        rates = self.stage_weights_[machine] if many else self.stage_weights_
        biases = self.stage_intercepts_[machine] if many else self.stage_intercepts_
        if len(rates) == 0:
            return planes[:1], self.intercept_[[machine]]
        total = np.cumsum(rates)
        coefficients = np.cumsum(rates[:, None] * planes[: len(rates)], axis=0) / total[:, None]
        # The first bias, which stands for the classes' sizes, is what the others leave over.
        first = self.intercept_[machine] * total[-1] - rates @ biases
        return coefficients, (first + np.cumsum(rates * biases)) / total
