"""The hard-margin SVM as a classifier."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from joblib import effective_n_jobs
from sklearn.utils._param_validation import Interval

from hardmargin.estimators._base.classifier import KernelClassifier
from hardmargin.estimators._base.estimator import COUNT, publish
from hardmargin.kernels import KernelFunction
from hardmargin.resources import planned_bytes
from hardmargin.solvers import hard_margin
from hardmargin.solvers.hard_margin import HardMarginOptions, HardMarginSolution
from hardmargin.warn import warn_caller


class HardMarginSVC(KernelClassifier):
    """Hard-margin SVM: the plane with the widest margin, with a certificate.

    This is the limit of an SVM for large C. Pairwise steps (SMO with second-order selection) find
    the nearest points of the two classes' convex hulls or, without a bias, the point of the hull
    nearest to the origin. `MultiplicativeSVC` and `RhoSVC` converge to the same plane. On noisy
    data a hard margin overfits; `EnsembleSVC` and `GreedySVC` stop early instead.

    Parameters
    ----------
    gamma : float or {"scale", "spread", "pairwise"}, default="scale"
        Width of the kernel. ``"scale"`` is scikit-learn's 1 / (n_features * X.var()),
        ``"spread"`` 1 / mean squared distance to the mean, ``"pairwise"`` 1 / mean squared distance
        between rows.
    kernel : {"rbf", "laplacian", "matern32", "matern52", "linear", "cosine", "poly", \
"sigmoid", "precomputed"} or callable, default="rbf"
        The kernel; it should be positive semi-definite and separate the classes.
    degree : float, default=3
        Degree of the ``"poly"`` kernel.
    coef0 : float, default=0.0
        Constant in the ``"poly"`` and ``"sigmoid"`` kernels.
    fit_intercept : bool, default=True
        Whether the plane has a bias.
    tol : float, default=1e-3
        Training ends when no support row's margin exceeds the least margin by more than this share;
        the relative gap of the objective is then at most about twice `tol`.
    max_stages : int or None, default=None
        Limit on the pairwise steps of each machine; None allows at least ten million.
    class_weight : dict, "balanced" or None, default=None
        Has no effect, as a hard margin does not depend on positive weights; accepted for the sake
        of tools that set it.
    multi_class : {"ovo", "ovr"}, default="ovo"
        One machine per pair of classes, or one per class against the rest; the second also where
        `max_time` is below 0.1 ms per pair, with a warning.
    dtype : {"auto", "float32", "float64"}, default="auto"
        Precision of kernel values. ``"auto"`` is float64 up to 5,000 rows and float32 above.
    memory_limit : str, number or None, default=None
        Memory limit of a fit, such as ``"2GB"`` or a number of bytes; None is half the free memory.
    n_jobs : int or None, default=None
        Number of threads: over machines in ``fit``, over rows in ``predict``. The model does not
        depend on it.
    max_time : float or None, default=None
        Seconds after which ``fit`` returns the model so far, with a warning.
    verbose : int, default=0
        Print the progress of long fits.
    random_state : int, RandomState instance or None, default=None
        Has no effect, as nothing is random; all estimators accept it.

    Attributes
    ----------
    classes_ : (n_classes,) array
        The labels.
    margin_ : float or array
        Distance of the nearest rows from the plane in feature space, ``1 / ||w||``.
    weight_norm_ : float or array
        ``||w||``.
    certificate_ : float or array
        Relative gap between ``||w||^2`` and the bound on its optimum.
    n_iter_ : int, or array of them for many classes
        Number of pairwise steps.
    n_kernel_evaluations_ : int or array
        Number of kernel values evaluated.
    stop_reason_ : str or array
        ``"converged"``, ``"rho_zero"`` (the kernel does not separate the classes),
        ``"max_stages"`` or ``"max_time"``.
    support_ : (n_support,) array
        Rows with a coefficient.
    support_vectors_ : (n_support, n_features) array or CSR matrix
        Those rows; empty for a precomputed kernel.
    n_support_ : (n_classes,) array
        Support rows of each class.
    dual_coef_ : (n_machines, n_support) array, or CSR array for many classes
        Multiplier times label, on the scale where the nearest rows score +1 and -1.
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

    Notes
    -----
    A sample weight of zero leaves a row out; positive weights do not change the optimum.

    Examples
    --------
    >>> import numpy as np
    >>> from hardmargin import HardMarginSVC
    >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [2.0, 0.0], [2.0, 1.0]])
    >>> clf = HardMarginSVC(kernel="linear").fit(X, [0, 0, 1, 1])
    >>> round(clf.margin_, 3), clf.stop_reason_
    (1.0, 'converged')
    """

    _seconds_of_machine = 0.0001

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **KernelClassifier._parameter_constraints,
        "fit_intercept": ["boolean"],
        "tol": [Interval(Real, 0, 1, closed="neither")],
        "max_stages": [COUNT, None],
    }

    def __init__(
        self,
        gamma: float | str = "scale",
        *,
        kernel: str | KernelFunction = "rbf",
        degree: float = 3,
        coef0: float = 0.0,
        fit_intercept: bool = True,
        tol: float = 1e-3,
        max_stages: int | None = None,
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
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_stages = max_stages
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
            Row weights: a weight of zero leaves the row out. Positive weights have no effect on a
            hard margin, but rules for gamma use them.

        Returns
        -------
        self
        """
        with self._fitting() as monitor:
            training = self._training(self._check_training(X, y, sample_weight))
            options = HardMarginOptions(
                fit_intercept=self.fit_intercept,
                tol=self.tol,
                max_stages=self.max_stages,
                memory_bytes=planned_bytes(self.memory_limit),
                n_threads=effective_n_jobs(self.n_jobs),
            )
            part = monitor.part("violation", n_machines=len(training.machines))
            solutions = hard_margin.solve(training, options, part)
            warn_if_unfinished({s.stop_reason for s in solutions})
            margins = [_margin(s) for s in solutions]
            publish(
                self,
                solutions,
                "n_kernel_evaluations",
                weight_norm_=_weight_norm,
                margin_=lambda s: 1.0 / _weight_norm(s),
            )
            # Divided by the margin, the nearest rows score +1 and -1.
            scaled = [
                replace(s, coefficients=s.coefficients / m, intercept=s.intercept / m)
                for s, m in zip(solutions, margins, strict=True)
            ]
            self._store(training, scaled)
        return self


def warn_if_unfinished(reasons: Collection[str]) -> None:
    """Warn about hard-margin machines that did not reach their optimum."""
    for reason, message in (
        (
            "rho_zero",
            "The kernel does not separate the classes: there is no margin to maximise. Use "
            "EnsembleSVC or GreedySVC, which stop early. A narrower kernel (a larger gamma) would "
            "separate them, but would also fit the noise in the labels.",
        ),
        ("max_stages", "Training stopped at max_stages; raise it, or raise tol to stop earlier."),
        ("max_time", "Training stopped at max_time; raise it, or raise tol to stop earlier."),
    ):
        if reason in reasons:
            warn_caller(message)


def _weight_norm(solution: HardMarginSolution) -> float:
    """``||w||`` of the plane on which the nearest rows score +1 and -1."""
    return 1.0 / float(np.sqrt(_margin(solution)))


def _margin(solution: HardMarginSolution) -> float:
    """Margin of the plane; 1 if there is none, which keeps the scale of the simplex."""
    return solution.rho if solution.stop_reason != "rho_zero" and solution.rho > 0 else 1.0
