"""The ensemble of partially trained SVMs as a classifier."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.preprocessing import StandardScaler
from sklearn.utils._param_validation import Interval, StrOptions

from hardmargin.classifiers.planes import PlanesClassifier
from hardmargin.classifiers.problem import Expansion, Problem
from hardmargin.kernels import FloatArray, KernelFunction, Rows, is_sparse
from hardmargin.solvers.projection import ProjectionOptions


class EnsembleSVC(PlanesClassifier):
    """Ensemble of partially trained hard-margin SVMs, with no C to tune.

    Multiplicative updates with an adaptive rate move a weighted Parzen window towards the
    hard-margin SVM [1]_. Every plane on the way is a partially trained SVM; all of them vote,
    weighted by the rates. The vote descends on the exponential loss, and stopping early is what
    regularises: there is no constant C.

    Parameters
    ----------
    n_stages : "eps" or int, default="eps"
        ``"eps"`` ends the path where the paper does, when epsilon falls below `eps_stop`; a number
        ends it after so many stages.
    kernel : {"rbf", "laplacian", "linear", "poly", "sigmoid", "precomputed"} or callable, \
default="rbf"
        The kernel; a callable takes two sets of rows and returns the matrix of values. It should be
        positive semi-definite.
    gamma : float or {"scale", "spread", "pairwise"}, default="spread"
        Width of the kernel. ``"spread"``, the paper's, is 1 / mean squared distance to the mean;
        ``"scale"`` is scikit-learn's, ``"pairwise"`` 1 / mean squared distance between rows.
    degree : float, default=3
        Degree of the ``"poly"`` kernel.
    coef0 : float, default=0.0
        Constant in the ``"poly"`` and ``"sigmoid"`` kernels.
    eps_start, eps_stop : float, default=0.1 and 0.005
        The first epsilon of the path, and the one that ends it.
    max_stages : int, default=10_000
        Limit on the stages of each machine where `n_stages` is ``"eps"``.
    loss : {"exponential"}, default="exponential"
        The paper's loss.
    fit_intercept : bool, default=False
        Train with a bias; each class then holds half of the weight. The paper has none.
    standardize : bool, default=False
        Shift and scale every feature to mean 0 and variance 1 (scale only, for sparse rows).
    rank : int, float, "auto" or None, default=None
        Approximate the kernel through landmark rows: so many, or as many as leave this share of
        its trace; ``"auto"`` leaves 1 % or takes 1,000. A stage then takes time in proportion to
        the rows, and prediction needs the landmarks alone. None is exact.
    landmarks : {"random", "kmeans++", "cholesky"}, default="random"
        How landmarks are found.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, which multiply the sample weights.
    multi_class : {"ovo", "ovr"}, default="ovo"
        One machine a pair of classes, or one a class against the rest.
    dtype : {"auto", "float32", "float64"}, default="auto"
        Precision of kernel values: float64 up to 5,000 rows and float32 above.
    memory_limit : str, number or None, default=None
        Memory for a fit, as ``"2GB"`` or in bytes; None is half of the free memory. A kernel matrix
        that does not fit is evaluated anew at every stage.
    n_jobs : int or None, default=None
        Threads over the machines of many classes and within products in ``fit``, and over rows in
        ``predict``.
    max_time : float or None, default=None
        Seconds after which ``fit`` returns the model so far, with a warning. It is looked at before
        every stage; the kernel matrix and one product with it are always made.
    verbose : int, default=0
        Print the progress of long fits.
    random_state : int, RandomState instance or None, default=None
        Draws the landmarks.

    Attributes
    ----------
    classes_ : (n_classes,) array
        The labels.
    n_stages_, n_iter_ : int, or array of them for many classes
        Stages, and members of the vote.
    stage_weights_ : array, or list of them for many classes
        The rate of every stage: the weight of its plane in the vote.
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
        ``"eps"``, ``"n_stages"``, ``"rho_zero"`` (the classes overlap: no margin is left),
        ``"eta_zero"`` (no rate moves the plane), ``"max_stages"`` or ``"max_time"``.
    rank_ : int or None
        Rank of the approximation.
    support_ : (n_support,) array
        All rows of positive weight, or the landmarks.
    support_vectors_ : (n_support, n_features) array or CSR matrix
        Those rows, standardised where the option says so; empty for a precomputed kernel.
    n_support_ : (n_classes,) array
        Support rows of each class.
    dual_coef_ : (n_machines, n_support) array, or CSR array for many classes
        Coefficients of the vote.
    intercept_ : (n_machines,) array
        Bias of the vote.
    coef_ : (n_machines, n_features) array
        For the linear kernel.
    gamma_ : float
        The kernel's gamma as a number.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : array
        Names of the features, where X has them.

    See Also
    --------
    RhoSVC : The last plane of the same path.
    ParzenClassifier : The first.
    GreedySVC : For more than some ten thousand rows.

    Notes
    -----
    A row of weight two equals the row twice, up to rounding. Rounding grows along the path: the
    number of stages depends on it (the last halvings of epsilon do), and late in a long path a few
    predictions may too.

    With many classes, machines are in the order of scikit-learn's pairs: (0, 1), (0, 2), ..

    References
    ----------
    .. [1] I. W. Tsang and J. T. Kwok, "Ensembles of Partially Trained SVMs with Multiplicative
       Updates", IJCAI 2007.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import StandardScaler
    >>> from hardmargin import EnsembleSVC
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = StandardScaler().fit_transform(X)
    >>> clf = EnsembleSVC().fit(X[:400], y[:400])
    >>> clf.stop_reason_
    'eps'
    >>> round(clf.score(X[400:], y[400:]), 3)
    0.982
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PlanesClassifier._parameter_constraints,
        "n_stages": [StrOptions({"eps"}), Interval(Integral, 1, None, closed="left")],
        "loss": [StrOptions({"exponential"})],
        "standardize": ["boolean"],
    }

    def __init__(
        self,
        n_stages: int | str = "eps",
        *,
        kernel: str | KernelFunction = "rbf",
        gamma: float | str = "spread",
        degree: float = 3,
        coef0: float = 0.0,
        eps_start: float = 0.1,
        eps_stop: float = 0.005,
        max_stages: int = 10_000,
        loss: str = "exponential",
        fit_intercept: bool = False,
        standardize: bool = False,
        rank: int | float | str | None = None,
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

    def _solve(self, problem: Problem) -> list[Expansion]:
        options = ProjectionOptions(
            eps_start=self.eps_start,
            eps_stop=self.eps_stop,
            n_stages=None if self.n_stages == "eps" else int(self.n_stages),
            # A number of stages that was asked for needs no other limit.
            max_stages=self.max_stages if self.n_stages == "eps" else int(self.n_stages),
            fit_intercept=self.fit_intercept,
        )
        return self._expansions(problem, options, last=False)

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

    def _fit_scaling(self, X: Rows, sample_weight: FloatArray | None) -> Rows:
        self._scaler_ = None
        if not self.standardize or self.kernel == "precomputed":
            return X
        scaler = StandardScaler(with_mean=not is_sparse(X))
        with np.errstate(over="ignore", invalid="ignore"):
            scaler.fit(X, sample_weight=sample_weight)
        if not np.isfinite(scaler.var_).all():
            raise ValueError(
                "standardize=True can not hold the squares of features as large as these; scale "
                "the features, or use standardize=False."
            )
        self._scaler_ = scaler
        return scaler.transform(X)

    def _scaled(self, X: Rows) -> Rows:
        return X if self._scaler_ is None else self._scaler_.transform(X)
