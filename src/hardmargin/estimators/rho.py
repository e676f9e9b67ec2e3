"""The rho-SVM as a classifier."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils._param_validation import Interval, Real
from sklearn.utils.metaestimators import available_if

from hardmargin.estimators._base.classifier import KernelClassifier, Training
from hardmargin.estimators._base.estimator import one_or_all
from hardmargin.estimators._base.options import Choice
from hardmargin.estimators._base.planes import (
    PATH_CONSTRAINTS,
    plane_stages,
    staged_decisions,
    train_planes,
)
from hardmargin.estimators._base.staged import StagedMixin
from hardmargin.estimators.hard_margin import warn_if_unfinished
from hardmargin.kernels import FloatArray, KernelFunction
from hardmargin.monitor import Monitor
from hardmargin.resources import memory_bytes
from hardmargin.solvers import hard_margin
from hardmargin.solvers.hard_margin import HardMarginOptions, HardMarginSolution

#: Pairwise steps of ``solver="smo"`` for every stage that `max_stages` allows.
STEPS_PER_STAGE = 1_000


def _has_stages(estimator: RhoSVC) -> bool:
    if estimator.solver == "multiplicative":
        return True
    raise AttributeError(
        "Only solver='multiplicative' has stages; solver='smo' goes to the optimum at once."
    )


class RhoSVC(StagedMixin, KernelClassifier):
    """Hard-margin SVM in the form of the rho-SVM, trained by adaptive multiplicative updates.

    Its multipliers add up to one. It is the plane at the end of the path on which `RhoEnsembleSVC`
    lets all planes vote [1]_. On noisy data a hard margin overfits, and the vote is the better
    classifier.

    Parameters
    ----------
    gamma : float or {"scale", "spread", "pairwise"}, default="spread"
        Width of the kernel: ``"spread"``, the paper's, is 1 / mean squared distance to the mean,
        ``"scale"`` scikit-learn's, ``"pairwise"`` 1 / mean squared distance between rows.
    kernel : {"rbf", "laplacian", "linear", "poly", "sigmoid", "precomputed"} or callable, \
default="rbf"
        The kernel; it should be positive semi-definite.
    degree : float, default=3
        Degree of the ``"poly"`` kernel.
    coef0 : float, default=0.0
        Constant in the ``"poly"`` and ``"sigmoid"`` kernels.
    solver : {"multiplicative", "smo"}, default="multiplicative"
        Algorithm 1 of the paper, which stops some way before the optimum; or pairwise steps, which
        reach it to `tol`, and many times faster.
    eps_start, eps_stop : float, default=0.1 and 0.005
        The first epsilon of the path, and the one that ends it.
    tol : float, default=1e-3
        Relative gap at which ``solver="smo"`` ends.
    max_stages : int, default=10_000
        Limit on the stages of each machine (for ``"smo"``, on thousands of pairwise steps).
    fit_intercept : bool, default=False
        Train with a bias; each class then holds half of the weight. The paper has none.
    rank : int, float, "auto" or None, default=None
        Approximate the kernel through landmark rows, as in `RhoEnsembleSVC`; for
        ``solver="multiplicative"``.
    landmarks : {"random", "kmeans++", "cholesky"}, default="random"
        How landmarks are found.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, which multiply the sample weights. They change where a path starts
        and so what is reached when it stops early; the optimum does not depend on them.
    multi_class : {"ovo", "ovr"}, default="ovo"
        One machine per pair of classes, or one per class against the rest.
    dtype : {"auto", "float32", "float64"}, default="auto"
        Precision of kernel values: float64 up to 5,000 rows and float32 above.
    memory_limit : str, number or None, default=None
        Memory for a fit, as ``"2GB"`` or in bytes; None is half of the free memory.
    n_jobs : int or None, default=None
        Threads over the machines of many classes and over kernel values in ``fit``, and over rows
        in ``predict``. The model does not depend on it.
    max_time : float or None, default=None
        Seconds after which ``fit`` returns the model so far, with a warning. It is looked at before
        every stage; the kernel matrix and one product with it are always made.
    verbose : int, default=0
        Print the progress of long fits.
    random_state : int, RandomState instance or None, default=None
        Draws the landmarks; None always draws the same.

    Attributes
    ----------
    classes_ : (n_classes,) array
        The labels.
    rho_ : float or array
        The objective at the end: the squared norm of the plane, and its margin at the optimum.
        Multipliers of the standard hard-margin SVM are those here divided by it.
    rho_lower_bound_ : float or array
        The optimum is between this and `rho_`.
    certificate_ : float or array
        Relative gap between the two.
    n_iter_ : int, or array of them for many classes
        Stages, or pairwise steps.
    stop_reason_ : str or array
        ``"eps"``, ``"converged"`` (``"smo"``), ``"rho_zero"`` (the classes overlap: no margin is
        left), ``"eta_zero"`` (no rate moves the plane), ``"max_stages"`` or ``"max_time"``.
    n_stages_, stage_weights_, stage_intercepts_, rho_path_, eps_path_ : see `RhoEnsembleSVC`
        The path; for ``solver="multiplicative"``.
    rank_ : int or None
        Rank of the approximation.
    support_ : (n_support,) array
        Rows with a coefficient. Multiplicative updates leave every row one.
    support_vectors_ : (n_support, n_features) array or CSR matrix
        Those rows; empty for a precomputed kernel.
    n_support_ : (n_classes,) array
        Support rows of each class.
    dual_coef_ : (n_machines, n_support) array, or CSR array for many classes
        Multiplier times label.
    intercept_ : (n_machines,) array
        The bias.
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
    RhoEnsembleSVC : The vote of all planes.
    HardMarginSVC : The optimum on the standard scale, with bias.

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
            Labels of any type.
        sample_weight : (n_samples,) array, optional
            Weights; a weight of two equals the row twice, a weight of zero its absence.

        Returns
        -------
        self
        """
        with self._fitting() as monitor:
            training = self._training(self._check_training(X, y, sample_weight))
            if self.solver == "smo":
                self._store(training, self._optima(training, monitor))
            else:
                planes = train_planes(self, training, monitor)
                self.rho_ = one_or_all([float(s.history["rho"][-1]) for s in planes])
                self._store(training, planes)
                self._stages_ = plane_stages(planes, self.support_)
        return self

    @available_if(_has_stages)
    def staged_decision_function(self, X: Any) -> Iterator[FloatArray]:
        """Scores after every stage, as `decision_function` gives them at the end.

        Stage t of several machines is stage t of each, or its last: for many classes that is not
        the model of ``max_stages=t``, whose machines all go on to stage t.

        Yields
        ------
        (n_samples,) array, or (n_samples, n_classes) for more than two classes
        """
        yield from staged_decisions(self, X)

    staged_predict = available_if(_has_stages)(StagedMixin.staged_predict)

    def _optima(self, training: Training, monitor: Monitor) -> list[HardMarginSolution]:
        """Train all machines by pairwise steps."""
        if self.rank is not None:
            raise ValueError(
                f"rank={self.rank!r} needs solver='multiplicative'; solver='smo' has the whole "
                "kernel, with rank=None."
            )
        options = HardMarginOptions(
            fit_intercept=self.fit_intercept,
            tol=self.tol,
            max_stages=STEPS_PER_STAGE * self.max_stages,
            memory_bytes=memory_bytes(self.memory_limit),
            n_threads=self._threads(),
        )
        part = monitor.part("violation", n_machines=len(training.machines))
        solutions = hard_margin.solve(training, options, part)
        warn_if_unfinished({s.stop_reason for s in solutions})
        self.rank_ = None
        self.rho_ = one_or_all([s.rho for s in solutions])
        self.rho_lower_bound_ = one_or_all([s.rho_lower_bound for s in solutions])
        self.certificate_ = one_or_all([s.certificate for s in solutions])
        self.n_iter_ = one_or_all([s.n_stages for s in solutions])
        self.stop_reason_ = one_or_all([s.stop_reason for s in solutions])
        return solutions
