"""The ensemble of partially trained SVMs, as in IJCAI-07."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Self

import numpy as np

from hardmargin.estimators._base.classifier import KernelClassifier
from hardmargin.estimators._base.estimator import COUNT
from hardmargin.estimators._base.one_model import on_one_model
from hardmargin.estimators._base.options import Choice
from hardmargin.estimators._base.planes import (
    PATH_CONSTRAINTS,
    publish_path,
    staged_decisions,
    train_planes,
    vote_stages,
)
from hardmargin.estimators._base.staged import staged_predict
from hardmargin.kernels import FloatArray, KernelFunction, as_blocks
from hardmargin.scaling import find_scaling


class RhoEnsembleSVC(KernelClassifier):
    """Ensemble of partially trained hard-margin SVMs, as published.

    The algorithm of IJCAI-07 [1]_, stage by stage: multiplicative updates with an adaptive rate
    move a weighted Parzen window towards the hard-margin SVM, and every plane on the way is a
    partially trained SVM. All of them vote, weighted by their rates; the vote descends on the
    exponential loss. Stopping early is what regularises: there is no constant C.

    Parameters
    ----------
    n_stages : "eps" or int, default="eps"
        ``"eps"`` ends the path where the paper does, when epsilon falls below `eps_stop`; a number
        ends it after that many stages.
    gamma : float or {"scale", "spread", "pairwise"}, default="spread"
        Width of the kernel: ``"spread"``, the paper's, is 1 / mean squared distance to the mean,
        ``"scale"`` scikit-learn's, ``"pairwise"`` 1 / mean squared distance between rows.
    kernel : {"rbf", "laplacian", "matern32", "matern52", "linear", "cosine", "poly", \
"sigmoid", "precomputed"} or callable, default="rbf"
        The kernel; a callable takes two sets of rows and returns the matrix of values. It should be
        positive semi-definite.
    degree : float, default=3
        Degree of the ``"poly"`` kernel.
    coef0 : float, default=0.0
        Constant in the ``"poly"`` and ``"sigmoid"`` kernels.
    eps_start, eps_stop : float, default=0.1 and 0.005
        The first epsilon of the path, and the one that ends it.
    max_stages : int, default=10_000
        Limit on the stages of each machine, whatever `n_stages` is.
    fit_intercept : bool, default=False
        Whether to train with a bias; each class then has half of the weight. The paper has no bias.
    standardize : bool, default=False
        Shift and scale every feature to mean 0 and variance 1 (only scale, if rows are sparse);
        features with only two values are scaled to values 1 apart. Features that a few huge values
        would flatten are clipped, with a warning.
    rank : int, float, "auto" or None, default=None
        Approximate the kernel through landmark rows: an int is their number; a float is the share
        of the kernel's trace that may be left over; ``"auto"`` is 1 % with at most 1,000 landmarks.
        A stage then takes time in proportion to the rows, and prediction only needs the landmarks.
        None uses the whole kernel.
    landmarks : {"random", "kmeans++", "cholesky"}, default="random"
        How landmarks are chosen.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, which multiply the sample weights.
    multi_class : {"ovo", "ovr"}, default="ovo"
        One machine per pair of classes, or one per class against the rest; the second also where
        `max_time` is below 1.2 ms per pair, with a warning.
    dtype : {"auto", "float32", "float64"}, default="auto"
        Precision of kernel values. ``"auto"`` is float64 up to 5,000 rows and float32 above.
    memory_limit : str, number or None, default=None
        Memory limit of a fit, such as ``"2GB"`` or a number of bytes; None is half the free memory.
        A kernel matrix that does not fit in half of it is recomputed at every stage, with a
        warning. The planes of all stages, for the staged methods, may take an eighth of it.
    n_jobs : int or None, default=None
        Number of threads: over machines and kernel values in ``fit``, over rows in ``predict``. The
        model does not depend on it.
    max_time : float or None, default=None
        Seconds after which ``fit`` returns the model so far, with a warning. Without time for the
        kernel matrix and one product with it, that is the Parzen window of all rows, and its
        objective in `rho_path_` is NaN. A kernel function is called once for the whole matrix.
    verbose : int, default=0
        Print the progress of long fits.
    random_state : int, RandomState instance or None, default=None
        Seed for the landmarks; None is a fixed seed.

    Attributes
    ----------
    classes_ : (n_classes,) array
        The labels.
    n_stages_, n_iter_ : int, or array of them for many classes
        Number of stages.
    stage_weights_ : array, or list of them for many classes
        The rate of every stage: the weight of its plane in the vote.
    stage_intercepts_ : array, or list of them for many classes
        The bias of every stage; zeros without `fit_intercept`.
    rho_path_ : array, or list of them for many classes
        The objective ``rho_bar`` of every plane; there is one more plane than stages. It never
        rises.
    eps_path_ : array, or list of them for many classes
        Epsilon at every stage.
    cosine_path_ : array, or list of them for many classes
        Cosine of the angle between the planes before and after every stage, eq. (17) of the paper:
        it tends to 1 as the path converges.
    rho_lower_bound_ : float or array
        The optimum lies between this and the end of `rho_path_`.
    certificate_ : float or array
        Relative gap between the two. It certifies the last plane, not the vote, which is meant to
        stop early. At low rank it is that of the approximate kernel.
    stop_reason_ : str or array
        ``"eps"``, ``"n_stages"``, ``"rho_zero"`` (the classes overlap: no margin is left),
        ``"eta_zero"`` (no rate moves the plane), ``"max_stages"`` or ``"max_time"``.
    rank_ : int or None
        Rank of the approximation; None if there is none, or if there was no time for one.
    support_ : (n_support,) array
        All rows of positive weight, or the landmarks.
    support_vectors_ : (n_support, n_features) array or CSR matrix
        Those rows, standardised if `standardize` is set; empty for a precomputed kernel.
    n_support_ : (n_classes,) array
        Support rows of each class.
    dual_coef_ : (n_machines, n_support) array, or CSR array for many classes
        Coefficients of the vote.
    intercept_ : (n_machines,) array
        Bias of the vote.
    coef_ : (n_machines, n_features) array
        Weights of the (standardised) features, for the linear kernel only.
    gamma_ : float
        The kernel's gamma as a number.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : array
        Names of the features, if X has them.

    See Also
    --------
    EnsembleSVC : Chooses stages and kernels by held-out rows, and has probabilities.
    RhoSVC : The last plane of the path.
    ParzenClassifier : The first plane of the path.

    Notes
    -----
    There are no probabilities, as no rows are held out. A row of weight two counts as two copies of
    it, up to rounding. The planes of all stages are kept for the staged methods, within an eighth
    of `memory_limit`.

    The published steps overshoot, so that rounding errors grow from stage to stage: where the same
    rows come in another order or format, decisions after a dozen stages agree to ten digits, but
    whole paths may end some stages apart, and their decisions differ by a few percent.

    References
    ----------
    .. [1] I. W. Tsang and J. T. Kwok, "Ensembles of Partially Trained SVMs with Multiplicative
       Updates", IJCAI 2007.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from hardmargin import RhoEnsembleSVC
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> clf = RhoEnsembleSVC(standardize=True).fit(X[:400], y[:400])
    >>> clf.stop_reason_, round(clf.score(X[400:], y[400:]), 3)
    ('eps', 0.982)
    >>> errors = [(p != y[400:]).mean() for p in clf.staged_predict(X[400:])]
    >>> len(errors) == clf.n_stages_
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **KernelClassifier._parameter_constraints,
        **PATH_CONSTRAINTS,
        "n_stages": [Choice({"eps"}), COUNT],
        "standardize": ["boolean"],
    }

    def __init__(
        self,
        n_stages: int | str = "eps",
        *,
        gamma: float | str = "spread",
        kernel: str | KernelFunction = "rbf",
        degree: float = 3,
        coef0: float = 0.0,
        eps_start: float = 0.1,
        eps_stop: float = 0.005,
        max_stages: int = 10_000,
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
        self.gamma = gamma
        self.kernel = kernel
        self.degree = degree
        self.coef0 = coef0
        self.eps_start = eps_start
        self.eps_stop = eps_stop
        self.max_stages = max_stages
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

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train on rows X with labels y.

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
            rows = self._check_training(X, y, sample_weight)
            if self.standardize and self.kernel != "precomputed":
                self._scaling_ = find_scaling(rows.X, rows.weights, self.get_feature_names_out)
                rows = rows._replace(X=as_blocks(rows.X).map(self._scaling_.transform))
            training = self._training(rows)
            n_stages = None if self.n_stages == "eps" else int(self.n_stages)
            solutions, self.rank_ = train_planes(self, training, monitor, n_stages)
            publish_path(self, solutions)
            self._store(training, [s.ensemble for s in solutions])
            self._stages_ = vote_stages(solutions, self.support_)
        return self

    @on_one_model
    def staged_decision_function(self, X: Any) -> Iterator[FloatArray]:
        """Scores after every stage, as `decision_function` gives them at the end.

        Stage t of several machines is stage t of each machine, or its last stage if it has fewer.
        With many classes this is not the model of ``n_stages=t``, whose machines all reach stage t.

        Yields
        ------
        (n_samples,) array, or (n_samples, n_classes) for more than two classes
        """
        yield from staged_decisions(self, X)

    staged_predict = staged_predict
