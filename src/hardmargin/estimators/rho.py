"""The rho-SVM as a classifier."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Self

import numpy as np
from joblib import effective_n_jobs
from sklearn.utils._param_validation import Interval, Real
from sklearn.utils.metaestimators import available_if

from hardmargin.estimators._base.classifier import KernelClassifier, Training
from hardmargin.estimators._base.estimator import publish
from hardmargin.estimators._base.one_model import on_one_model
from hardmargin.estimators._base.options import Choice
from hardmargin.estimators._base.planes import (
    PATH_CONSTRAINTS,
    plane_stages,
    publish_path,
    staged_decisions,
    train_planes,
)
from hardmargin.estimators._base.staged import staged_predict
from hardmargin.estimators.hard_margin import warn_if_unfinished
from hardmargin.kernels import FloatArray, KernelFunction
from hardmargin.monitor import Monitor
from hardmargin.resources import memory_bytes
from hardmargin.solvers import hard_margin
from hardmargin.solvers.hard_margin import HardMarginOptions, HardMarginSolution

#: Pairwise steps that ``solver="smo"`` may take per stage of `max_stages`.
STEPS_PER_STAGE = 1_000


def _has_stages(estimator: RhoSVC) -> bool:
    if estimator.solver == "multiplicative":
        return True
    raise AttributeError(
        "Only solver='multiplicative' has stages; solver='smo' goes straight to the optimum."
    )


class RhoSVC(KernelClassifier):
    """Hard-margin SVM in the form of the rho-SVM, trained by adaptive multiplicative updates.

    Its multipliers add up to one. It is the last plane of the path whose planes all vote in
    `RhoEnsembleSVC` [1]_. On noisy data a hard margin overfits, and the vote is the better
    classifier.

    Parameters
    ----------
    gamma : float or {"scale", "spread", "pairwise"}, default="spread"
        Width of the kernel: ``"spread"``, the paper's, is 1 / mean squared distance to the mean,
        ``"scale"`` scikit-learn's, ``"pairwise"`` 1 / mean squared distance between rows.
    kernel : {"rbf", "laplacian", "matern32", "matern52", "linear", "cosine", "poly", \
"sigmoid", "precomputed"} or callable, default="rbf"
        The kernel; it should be positive semi-definite.
    degree : float, default=3
        Degree of the ``"poly"`` kernel.
    coef0 : float, default=0.0
        Constant in the ``"poly"`` and ``"sigmoid"`` kernels.
    solver : {"multiplicative", "smo"}, default="multiplicative"
        Algorithm 1 of the paper, which stops before the optimum; or pairwise steps, which reach it
        to within `tol`, many times faster.
    eps_start, eps_stop : float, default=0.1 and 0.005
        The first epsilon of the path, and the one that ends it.
    tol : float, default=1e-3
        Relative gap that ends ``solver="smo"``.
    max_stages : int, default=10_000
        Limit on the stages of each machine (for ``"smo"``, in thousands of pairwise steps).
    fit_intercept : bool, default=False
        Whether to train with a bias; each class then has half of the weight. The paper has no bias.
    rank : int, float, "auto" or None, default=None
        Approximate the kernel through landmark rows, as in `RhoEnsembleSVC`; only with
        ``solver="multiplicative"``.
    landmarks : {"random", "kmeans++", "cholesky"}, default="random"
        How landmarks are chosen.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, which multiply the sample weights. They change the start of the
        path, and so its end if it stops early; the optimum does not depend on them.
    multi_class : {"ovo", "ovr"}, default="ovo"
        One machine per pair of classes, or one per class against the rest; the second also where
        `max_time` is below 1.2 ms per pair, with a warning.
    dtype : {"auto", "float32", "float64"}, default="auto"
        Precision of kernel values. ``"auto"`` is float64 up to 5,000 rows and float32 above.
    memory_limit : str, number or None, default=None
        Memory limit of a fit, such as ``"2GB"`` or a number of bytes; None is half the free memory.
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
    rho_ : float or array
        The final objective: the squared norm of the plane, which at the optimum is also its margin.
        Divided by it, the multipliers are those of the standard hard-margin SVM.
    rho_lower_bound_ : float or array
        The optimum lies between this and `rho_`.
    certificate_ : float or array
        Relative gap between the two.
    n_iter_ : int, or array of them for many classes
        Number of stages, or of pairwise steps.
    stop_reason_ : str or array
        ``"eps"``, ``"converged"`` (``"smo"``), ``"rho_zero"`` (the classes overlap: no margin is
        left), ``"eta_zero"`` (no rate moves the plane), ``"max_stages"`` or ``"max_time"``.
    n_stages_, stage_weights_, stage_intercepts_, rho_path_, eps_path_, cosine_path_ : see \
`RhoEnsembleSVC`
        The path; only with ``solver="multiplicative"``.
    rank_ : int or None
        Rank of the approximation; None if there is none, or if there was no time for one.
    support_ : (n_support,) array
        Rows with a coefficient; with multiplicative updates, every row has one.
    support_vectors_ : (n_support, n_features) array or CSR matrix
        Those rows; empty for a precomputed kernel.
    n_support_ : (n_classes,) array
        Support rows of each class.
    dual_coef_ : (n_machines, n_support) array, or CSR array for many classes
        Multiplier times label.
    intercept_ : (n_machines,) array
        The bias.
    coef_ : (n_machines, n_features) array
        Weights of the features, for the linear kernel only.
    gamma_ : float
        The kernel's gamma as a number.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : array
        Names of the features, if X has them.

    See Also
    --------
    RhoEnsembleSVC : The vote of all planes.
    HardMarginSVC : The optimum on the standard scale, with bias.

    Notes
    -----
    The published steps overshoot, so that rounding errors grow from stage to stage. Where the same
    rows come in another order or format, the last plane of ``solver="multiplicative"`` may
    therefore differ, and so may some of its predictions; the vote of `RhoEnsembleSVC` hardly does.
    ``solver="smo"`` gives the same plane to within `tol`.

    References
    ----------
    .. [1] I. W. Tsang and J. T. Kwok, "Ensembles of Partially Trained SVMs with Multiplicative
       Updates", IJCAI 2007.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from hardmargin import RhoSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = RhoSVC(solver="smo").fit(X[:100], y[:100])
    >>> clf.stop_reason_, bool(clf.certificate_ < 0.01)
    ('converged', True)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **KernelClassifier._parameter_constraints,
        **PATH_CONSTRAINTS,
        "solver": [Choice({"multiplicative", "smo"})],
        "tol": [Interval(Real, 0, 1, closed="neither")],
    }

    def __init__(
        self,
        gamma: float | str = "spread",
        *,
        kernel: str | KernelFunction = "rbf",
        degree: float = 3,
        coef0: float = 0.0,
        solver: str = "multiplicative",
        eps_start: float = 0.1,
        eps_stop: float = 0.005,
        tol: float = 1e-3,
        max_stages: int = 10_000,
        fit_intercept: bool = False,
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
        self.gamma = gamma
        self.kernel = kernel
        self.degree = degree
        self.coef0 = coef0
        self.solver = solver
        self.eps_start = eps_start
        self.eps_stop = eps_stop
        self.tol = tol
        self.max_stages = max_stages
        self.fit_intercept = fit_intercept
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
            training = self._training(self._check_training(X, y, sample_weight))
            if self.solver == "smo":
                self._store(training, self._optima(training, monitor))
            else:
                planes, self.rank_ = train_planes(self, training, monitor)
                publish_path(self, planes, rho_=lambda s: float(s.history["rho"][-1]))
                self._store(training, planes)
                self._stages_ = plane_stages(planes, self.support_)
        return self

    @available_if(_has_stages)
    @on_one_model
    def staged_decision_function(self, X: Any) -> Iterator[FloatArray]:
        """Scores after every stage, as `decision_function` gives them at the end.

        The first is the plane after one update; the one before it is `ParzenClassifier`. Stage t of
        several machines is stage t of each machine, or its last stage if it has fewer.
        With many classes this is not the model of ``max_stages=t``, whose machines all reach stage
        t.

        Yields
        ------
        (n_samples,) array, or (n_samples, n_classes) for more than two classes
        """
        yield from staged_decisions(self, X)

    staged_predict = available_if(_has_stages)(staged_predict)

    def _optima(self, training: Training, monitor: Monitor) -> list[HardMarginSolution]:
        """Train all machines by pairwise steps."""
        if self.rank is not None:
            raise ValueError(
                f"rank={self.rank!r} needs solver='multiplicative'; solver='smo' always uses the "
                "whole kernel, so set rank=None."
            )
        options = HardMarginOptions(
            fit_intercept=self.fit_intercept,
            tol=self.tol,
            max_stages=STEPS_PER_STAGE * self.max_stages,
            memory_bytes=memory_bytes(self.memory_limit),
            n_threads=effective_n_jobs(self.n_jobs),
        )
        part = monitor.part("violation", n_machines=len(training.machines))
        solutions = hard_margin.solve(training, options, part)
        warn_if_unfinished({s.stop_reason for s in solutions})
        self.rank_ = None
        publish(self, solutions, "rho", "rho_lower_bound")
        return solutions
