"""The rigorous SVM as a classifier."""

from __future__ import annotations

from dataclasses import replace
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from joblib import effective_n_jobs
from sklearn.utils._param_validation import Interval

from hardmargin.estimators._base.classifier import Training
from hardmargin.estimators._base.estimator import one_or_all
from hardmargin.estimators._base.options import Choice
from hardmargin.estimators._base.regularization_paths import (
    RegularizationPathClassifier,
    follow_paths,
    memory_of_path,
    warn_of_paths,
)
from hardmargin.kernels import KernelFunction
from hardmargin.monitor import Monitor
from hardmargin.resources import memory_bytes, planned_bytes
from hardmargin.selection.sigmoids import as_rows
from hardmargin.solvers import greedy
from hardmargin.solvers.greedy import GreedyOptions
from hardmargin.solvers.regularization_path import RegularizationPathOptions
from hardmargin.warn import warn_caller

#: Share of the time that the greedy machines, which give the bound, may take.
GREEDY_SHARE = 0.5


class RigorousSVC(RegularizationPathClassifier):
    """Rigorous SVM: the least sum of slacks among planes of bounded norm.

    Minimises ``sum(slack)`` subject to ``||w|| <= norm_bound`` [1]_. This is a C-SVM
    whose C is found on the regularisation path: ``||w||`` grows with C, and on every piece its
    square is a quadratic in C. In TNN-08 [2]_ the bound is the norm at which `GreedySVC` stops, to
    show how close that comes to the best plane of its norm.

    Parameters
    ----------
    norm_bound : float or "greedy", default="greedy"
        Bound on ``||w||``. ``"greedy"`` takes it from a `GreedySVC` as published (each row chosen
        once, no scaling) on the same rows and kernel; with many classes each machine has its own.
        A bound beyond the norm of the hard margin gives the hard margin.
    gamma : float or {"scale", "spread", "pairwise"}, default="scale"
        Width of the kernel. ``"scale"`` is scikit-learn's 1 / (n_features * X.var()),
        ``"spread"`` 1 / mean squared distance to the mean, ``"pairwise"`` 1 / mean squared distance
        between rows.
    kernel : {"rbf", "laplacian", "matern32", "matern52", "linear", "cosine", "poly", \
"sigmoid", "precomputed"} or callable, default="rbf"
        The kernel; it should be positive semi-definite.
    degree : float, default=3
        Degree of the ``"poly"`` kernel.
    coef0 : float, default=0.0
        Constant in the ``"poly"`` and ``"sigmoid"`` kernels.
    fit_intercept : bool, default=True
        Whether the SVM has a bias. Problem (29) of TNN-08 has none.
    C_max : float, default=1e6
        The C at which the search ends at the latest. If the classes overlap, a large bound may be
        out of reach for any C: the SVM is then that of C_max, with a warning.
    max_stages : int or None, default=None
        Limit on the events of a regularisation path; None allows 10,000, or 100 per row if that is
        more.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, which multiply the sample weights; both weight the slacks.
    multi_class : {"ovo", "ovr"}, default="ovo"
        One machine per pair of classes, or one per class against the rest; the second also where
        `max_time` is below 1.2 ms per pair, with a warning.
    dtype : {"auto", "float32", "float64"}, default="auto"
        Precision of kernel values in predictions. ``"auto"`` is float64 up to 5,000 rows and
        float32 above. Regularisation paths always use float64.
    memory_limit : str, number or None, default=None
        Memory limit of a fit, such as ``"2GB"`` or a number of bytes; None is half the free memory.
        A regularisation path needs up to four matrices of the size of the kernel matrix.
    n_jobs : int or None, default=None
        Number of threads: over machines in ``fit``, over rows in ``predict``. The model does not
        depend on it.
    max_time : float or None, default=None
        Seconds after which the regularisation path ends where it is, with a warning. The greedy
        machines may take half of them. Without time for the kernel matrix it ends at C = 0, where
        the larger class is always predicted.
    verbose : int, default=0
        Print the progress of long fits.
    random_state : int, RandomState instance or None, default=None
        Has no effect, as nothing is random; all estimators accept it.

    Attributes
    ----------
    C_ : float or array
        The C of the equivalent C-SVM; the least, if there are several.
    norm_bound_ : float or array
        The bound.
    weight_norm_ : float or array
        ``||w||``: the bound, or less if it is not reached.
    slack_sum_ : float or array
        The objective: the weighted sum of the slacks.
    path_ : RegularizationPath, or list of them for many classes
        The regularisation path as far as it was followed; see `PathSVC`.
    path_rows_ : array, or list of them for many classes
        The rows of X on a regularisation path: those of its machine's classes with positive weight.
    loo_path_ : array, or list of them for many classes
        The leave-one-out bound at the breakpoints.
    certificate_ : float or array
        Largest violation of the optimality conditions, at breakpoints and between them.
    n_iter_ : int, or array of them for many classes
        Number of events on the regularisation path.
    stop_reason_ : str or array
        Why the regularisation path ended: ``"norm"`` (the bound is reached), ``"hard_margin"``,
        ``"C_max"``, ``"stalled"`` (rounding, or a kernel that is not positive semi-definite),
        ``"max_stages"`` or ``"max_time"``.
    classes_ : (n_classes,) array
        The labels.
    support_ : (n_support,) array
        Rows with a coefficient.
    support_vectors_ : (n_support, n_features) array or CSR matrix
        Those rows; empty for a precomputed kernel.
    n_support_ : (n_classes,) array
        Support rows of each class.
    dual_coef_ : (n_machines, n_support) array, or CSR array for many classes
        Multiplier times label in the C-SVM.
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
    PathSVC : The whole regularisation path.
    GreedySVC : The source of the bound in TNN-08.

    References
    ----------
    .. [1] J. Bi and V. N. Vapnik, "Learning with Rigorous Support Vector Machines", COLT 2003.
    .. [2] L. Bo, L. Wang and L. Jiao, "Training Hard-Margin Support Vector Machines Using Greedy
       Stagewise Algorithm", IEEE Transactions on Neural Networks 19, 2008.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import StandardScaler
    >>> from hardmargin import RigorousSVC
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> clf = RigorousSVC(norm_bound=5.0).fit(StandardScaler().fit_transform(X), y)
    >>> round(clf.weight_norm_, 6), clf.stop_reason_
    (5.0, 'norm')
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **RegularizationPathClassifier._parameter_constraints,
        "norm_bound": [Choice({"greedy"}), Interval(Real, 0, None, closed="neither")],
    }

    def __init__(
        self,
        norm_bound: float | str = "greedy",
        *,
        gamma: float | str = "scale",
        kernel: str | KernelFunction = "rbf",
        degree: float = 3,
        coef0: float = 0.0,
        fit_intercept: bool = True,
        C_max: float = 1e6,
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
        self.norm_bound = norm_bound
        self.gamma = gamma
        self.kernel = kernel
        self.degree = degree
        self.coef0 = coef0
        self.fit_intercept = fit_intercept
        self.C_max = C_max
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
            Row weights: a weight of two counts the row twice, a weight of zero leaves it out.

        Returns
        -------
        self
        """
        with self._fitting() as monitor:
            training = self._training(self._check_training(X, y, sample_weight))
            # Greedy machines are of no use without room for the regularisation path.
            memory_of_path(training, memory_bytes(self.memory_limit))
            if self.norm_bound == "greedy":
                bounds = self._greedy_norms(training, monitor)
            else:
                bounds = [float(self.norm_bound)] * len(training.machines)
            with np.errstate(over="ignore", under="ignore"):  # an infinite square bounds nothing
                squares: list[float] = np.square(bounds).tolist()
            options = [
                RegularizationPathOptions(
                    C_max=self.C_max, max_stages=self.max_stages, max_squared_norm=square
                )
                for square in squares
            ]
            machines = follow_paths(self, training, options, monitor)
            warn_of_paths(machines)
            paths = [machine.whole.path for machine in machines]
            if any(path.stop_reason == "C_max" for path in paths):
                warn_caller(
                    f"No C up to C_max={self.C_max:g} gives a norm as large as norm_bound; raise "
                    "C_max, or lower norm_bound."
                )
            self.norm_bound_ = one_or_all(bounds)
            self._keep_paths(training, [machine.whole for machine in machines])
            Cs = [path.C_of_norm(square) for path, square in zip(paths, squares, strict=True)]
            self._store_at(training, paths, Cs)
        return self

    def _greedy_norms(self, training: Training, monitor: Monitor) -> list[float]:
        """Return the norms at which the published `GreedySVC` stops."""
        weights = None if training.weights is None else as_rows(training.weights)
        options = GreedyOptions(
            memory_bytes=planned_bytes(self.memory_limit), n_threads=effective_n_jobs(self.n_jobs)
        )
        n_machines = len(training.machines)
        part = monitor.part("largest open step", n_machines=n_machines, share=GREEDY_SHARE)
        values = replace(training.values, dtype="float64")  # like the paths
        solutions = greedy.solve(replace(training, values=values, weights=weights), options, part)
        if any(s.stop_reason == "max_time" for s in solutions):
            warn_caller(
                "The greedy machines that give the bound stopped at max_time; raise max_time, or "
                "set norm_bound to a number."
            )
        elif any(s.n_stages == 0 for s in solutions):
            warn_caller(
                "The greedy machines that give the bound have no rows, as k(x, x) <= 0 for all "
                "rows; change the kernel, or its gamma and coef0."
            )
        return [float(np.sqrt(s.squared_norm)) for s in solutions]
