"""The rigorous SVM as a classifier."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval

from hardmargin.estimators._base.matrix import one_or_all
from hardmargin.estimators._base.options import Choice
from hardmargin.estimators._base.problem import Expansion, Problem
from hardmargin.estimators._base.regularization_paths import PathClassifier
from hardmargin.estimators._base.warn import warn_caller
from hardmargin.estimators.greedy import GreedySVC
from hardmargin.kernels import FloatArray, KernelFunction
from hardmargin.solvers.regularization_path.tracer import PathOptions


class RigorousSVC(PathClassifier):
    """Rigorous SVM: the least sum of slacks among planes of bounded norm.

    Minimises ``sum(slack)`` subject to ``||w|| <= norm_bound`` [1]_, with a bias. That is a C-SVM,
    whose C is found on the regularisation path: ``||w||`` grows with C, and on every piece its
    square is a quadratic in C. In TNN-08 [2]_ the bound is the norm that `GreedySVC` stops at, to
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
    kernel : {"rbf", "laplacian", "linear", "poly", "sigmoid", "precomputed"} or callable, \
default="rbf"
        The kernel; it should be positive semi-definite.
    degree : float, default=3
        Degree of the ``"poly"`` kernel.
    coef0 : float, default=0.0
        Constant in the ``"poly"`` and ``"sigmoid"`` kernels.
    C_max : float, default=1e6
        Where the search ends at the latest. Where classes overlap, no C reaches a bound that is
        large enough: then the SVM is that of C_max, with a warning.
    max_stages : int or None, default=None
        Limit on the events of a path; None allows 10,000, or 100 a row if that is more.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, which multiply the sample weights, those of the slacks.
    multi_class : {"ovo", "ovr"}, default="ovo"
        One machine a pair of classes, or one a class against the rest.
    dtype : {"auto", "float32", "float64"}, default="auto"
        Precision of kernel values in predictions: float64 up to 5,000 rows and float32 above. Paths
        always have float64.
    memory_limit : str, number or None, default=None
        Memory for a fit, as ``"2GB"`` or in bytes; None is half of the free memory. A path needs up
        to four matrices of the size of the kernel matrix.
    n_jobs : int or None, default=None
        Threads over the machines of many classes in ``fit``, and over rows in ``predict``. The
        model does not depend on it.
    max_time : float or None, default=None
        Seconds after which the path ends where it is, with a warning.
    verbose : int, default=0
        Print the progress of long fits.
    random_state : int, RandomState instance or None, default=None
        Has no effect, as nothing is drawn; all estimators share it.

    Attributes
    ----------
    C_ : float or array
        The C of the C-SVM that this is; the least there is.
    norm_bound_ : float or array
        The bound.
    weight_norm_ : float or array
        ``||w||``: the bound, or less where it is not reached.
    slack_sum_ : float or array
        The objective: the weighted sum of the slacks.
    path_ : RegularizationPath, or list of them for many classes
        The path as far as it was followed; see `PathSVC`.
    path_rows_ : array, or list of them for many classes
        The rows of X that a path has: those of its classes, but for weights of zero.
    loo_path_ : array, or list of them for many classes
        The leave-one-out bound at its breakpoints.
    certificate_ : float or array
        Largest violation of the conditions of optimality, at breakpoints and between them.
    n_iter_ : int, or array of them for many classes
        Events on the path.
    stop_reason_ : str or array
        Why the path ended: ``"norm"`` (the bound is reached), ``"hard_margin"``, ``"C_max"``,
        ``"stalled"`` (rounding, or a kernel that is not positive semi-definite), ``"max_stages"``
        or ``"max_time"``.
    classes_ : (n_classes,) array
        The labels.
    support_ : (n_support,) array
        Rows with a coefficient.
    support_vectors_ : (n_support, n_features) array or CSR matrix
        Those rows; empty for a precomputed kernel.
    n_support_ : (n_classes,) array
        Support rows of each class.
    dual_coef_ : (n_machines, n_support) array, or CSR array for many classes
        Multiplier times label, of the C-SVM.
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
    PathSVC : The whole path.
    GreedySVC : Where the bound of TNN-08 comes from.

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
        **PathClassifier._parameter_constraints,
        "norm_bound": [Choice({"greedy"}), Interval(Real, 0, None, closed="neither")],
    }

    _only_of_the_choice = ("norm_bound_", "loo_path_")

    def __init__(
        self,
        norm_bound: float | str = "greedy",
        *,
        gamma: float | str = "scale",
        kernel: str | KernelFunction = "rbf",
        degree: float = 3,
        coef0: float = 0.0,
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

    def _solve(self, problem: Problem) -> list[Expansion]:
        bounds = self._bounds(problem)
        with np.errstate(over="ignore", under="ignore"):  # an infinite square is no bound
            squared: list[float] = np.square(bounds).tolist()

        def options(machine: int) -> PathOptions:
            return PathOptions(
                C_max=self.C_max,
                max_stages=self.max_stages,
                max_squared_norm=squared[machine],
            )

        paths = [machine.whole for machine in self._trace(problem, options)]
        self._keep(problem, paths)
        self.norm_bound_ = one_or_all([float(bound) for bound in bounds])
        if any(path.stop_reason == "C_max" for path in paths):
            warn_caller(
                f"No C up to C_max={self.C_max:g} has a norm as large as norm_bound; raise C_max, "
                "or lower norm_bound."
            )
        Cs = [path.C_of_norm(norm) for path, norm in zip(paths, squared, strict=True)]
        return self._expansions(problem, paths, Cs)

    def _bounds(self, problem: Problem) -> FloatArray:
        """Bound of every machine."""
        if self.norm_bound != "greedy":
            return np.full(len(problem.machines), float(self.norm_bound))
        greedy = GreedySVC(
            problem.kernel.gamma,
            max_visits=1,
            standardize=False,
            kernel=self.kernel,
            degree=self.degree,
            coef0=self.coef0,
            multi_class=self.multi_class,
            dtype=problem.dtype,
            memory_limit=self.memory_limit,
            n_jobs=self.n_jobs,
            max_time=self.max_time,
        )
        present = (problem.codes >= 0).astype(np.float64)
        weights = present if problem.weights is None else problem.weights
        greedy.fit(problem.X, problem.codes, sample_weight=weights)
        return np.atleast_1d(np.asarray(greedy.weight_norm_, dtype=np.float64))
