"""The L2-SVM by core sets as a classifier."""

from __future__ import annotations

import time
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval

from hardmargin.estimators._base.classifier import KernelClassifier
from hardmargin.estimators._base.matrix import one_or_all
from hardmargin.estimators._base.options import Choice
from hardmargin.estimators._base.problem import Expansion, Problem
from hardmargin.estimators._base.run import Run, for_each
from hardmargin.estimators._base.validation import COUNT
from hardmargin.estimators._base.warn import warn_caller, warn_unfinished_core_set
from hardmargin.kernels import KernelFunction
from hardmargin.kernels.columns import KernelColumns, core_sets_at_once, shared_evaluations
from hardmargin.memory import COLUMNS_SHARE, CORE_SHARE, memory_bytes
from hardmargin.randomness import random_numbers
from hardmargin.solvers.core_sets.core_vector import BallOptions, Stopping, solve_ball
from hardmargin.solvers.problem import finite_diagonal
from hardmargin.solvers.solution import BallSolution


class CoreVectorSVC(KernelClassifier):
    """Core vector machine: an SVM with squared slacks, on a small core set of the rows.

    Minimises ``||w||^2 + b^2 + C sum(slack^2)``, which is a minimum enclosing ball [1]_. Rows join
    a core set as random samples find them too close to the plane, and training ends when a pass
    over all rows certifies the objective to be within about ``2 * tol`` of the optimum. The looser
    `tol` is, the fewer rows are looked at closely.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the squared slacks; less of it regularises more.
    gamma : float or {"scale", "spread", "pairwise"}, default="pairwise"
        Width of the kernel. ``"scale"`` is scikit-learn's 1 / (n_features * X.var()),
        ``"spread"`` 1 / mean squared distance to the mean, ``"pairwise"``, as in [2]_, 1 / mean
        squared distance between rows.
    kernel : {"rbf", "laplacian", "linear", "poly", "sigmoid", "precomputed"} or callable, \
default="rbf"
        The kernel; it should be positive semi-definite.
    degree : float, default=3
        Degree of the ``"poly"`` kernel.
    coef0 : float, default=0.0
        Constant in the ``"poly"`` and ``"sigmoid"`` kernels.
    tol : float, default=0.05
        Training ends when ``lower_bound_`` is at least ``(1 - tol) ** 2`` of ``objective_``, which
        is a gap of about ``2 * tol``: at the latest when no margin is short of the common one by
        more than this share.
    stopping : {"margin", "radius"}, default="margin"
        ``"radius"`` is the rule of the papers, with `eps` and samples of 59 rows. It needs no pass
        over all rows to end, stops at times much too early for large C or many rows (there is a
        warning where `tol` is not met), and needs a kernel whose k(x, x) is constant and equal
        weights.
    eps : float, default=1e-5
        For ``stopping="radius"``: what the radius of the ball may be short of, relative to it.
    max_stages : int or None, default=None
        Limit on the times that the core set of a machine grows.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, which multiply the sample weights.
    multi_class : {"ovo", "ovr"}, default="ovo"
        One machine a pair of classes, or one a class against the rest.
    dtype : {"auto", "float32", "float64"}, default="auto"
        Precision of kernel values: float64 up to 5,000 rows and float32 above.
    memory_limit : str, number or None, default=None
        Memory for a fit, as ``"2GB"`` or in bytes; None is half of the free memory. It limits the
        size of the core sets.
    n_jobs : int or None, default=None
        Threads over the machines of many classes and over kernel values in ``fit``, and over rows
        in ``predict``. The model does not depend on it.
    max_time : float or None, default=None
        Seconds after which ``fit`` returns the model so far, with a warning.
    verbose : int, default=0
        Print the progress of long fits.
    random_state : int, RandomState instance or None, default=None
        Draws the samples of rows; None always draws the same.

    Attributes
    ----------
    classes_ : (n_classes,) array
        The labels.
    lower_bound_, objective_ : float or array
        The optimum of the objective is between these two.
    certificate_ : float or array
        Relative gap between them.
    core_size_ : int or array
        Rows in the core set, of which those with a coefficient are support rows.
    weight_norm_ : float or array
        ``||w||``.
    n_iter_ : int, or array of them for many classes
        Times that the core set grew.
    n_kernel_evaluations_ : int or array
        Kernel values evaluated for a machine; what an earlier machine left behind is not counted,
        also where machines were trained at the same time.
    stop_reason_ : str or array
        ``"certified"``, ``"radius"``, ``"core_full"`` (the memory holds no larger core set),
        ``"rounding"`` (`tol` is beyond the precision), ``"indefinite"`` (the kernel is not positive
        semi-definite), ``"stalled"`` (the kernel matrix is too close to singular for this C),
        ``"max_stages"`` or ``"max_time"``.
    support_ : (n_support,) array
        Rows with a coefficient.
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

    Notes
    -----
    Scale the features first. Every row within the margin has a coefficient, as slacks are squared:
    with noisy labels, a small C or a narrow kernel that is most of them, and training takes time in
    proportion to their square.

    See Also
    --------
    GreedySVC : Faster on many rows, without a C.
    EnsembleSVC : Nothing to tune.

    References
    ----------
    .. [1] I. W. Tsang, J. T. Kwok and P.-M. Cheung, "Core Vector Machines: Fast SVM Training on
       Very Large Data Sets", JMLR 6, 2005.
    .. [2] I. W. Tsang, A. Kocsor and J. T. Kwok, "Diversified SVM Ensembles for Large Data Sets",
       ECML 2006.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import StandardScaler
    >>> from hardmargin import CoreVectorSVC
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> clf = CoreVectorSVC(C=1.0, tol=0.05).fit(StandardScaler().fit_transform(X), y)
    >>> clf.stop_reason_, bool(clf.certificate_ < 0.1)
    ('certified', True)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **KernelClassifier._parameter_constraints,
        "C": [Interval(Real, 0, None, closed="neither")],
        "tol": [Interval(Real, 0, 1, closed="neither")],
        "stopping": [Choice({"margin", "radius"})],
        "eps": [Interval(Real, 0, None, closed="neither")],
        "max_stages": [COUNT, None],
    }

    def __init__(
        self,
        C: float = 1.0,
        *,
        gamma: float | str = "pairwise",
        kernel: str | KernelFunction = "rbf",
        degree: float = 3,
        coef0: float = 0.0,
        tol: float = 0.05,
        stopping: str = "margin",
        eps: float = 1e-5,
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
        self.C = C
        self.gamma = gamma
        self.kernel = kernel
        self.degree = degree
        self.coef0 = coef0
        self.tol = tol
        self.stopping = stopping
        self.eps = eps
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
        finite_diagonal(problem.kernel, problem.X, problem.codes, squared=True)
        n_machines = len(problem.machines)
        budget = memory_bytes(self.memory_limit)
        for_columns, for_core = COLUMNS_SHARE, CORE_SHARE
        if n_machines == 1:  # which looks at a column too few times for that to be worth memory
            for_columns, for_core = 0.0, COLUMNS_SHARE + CORE_SHARE
        n_at_once = core_sets_at_once(
            self._threads(), n_machines, len(problem.codes), problem.dtype, budget
        )
        columns = KernelColumns(
            problem.kernel,
            problem.X,
            dtype=problem.dtype,
            memory_bytes=int(for_columns * budget),
            n_jobs=self.n_jobs if n_at_once == 1 else 1,
        )
        is_weighted = problem.weights is not None or problem.class_weights is not None
        weights = self._row_weights(problem) if is_weighted else None
        seeds = random_numbers(self.random_state).randint(2**31 - 1, size=n_machines)
        tasks = [columns.for_task() for _ in range(n_machines)]

        stopping: Stopping = "margin" if self.stopping == "margin" else "radius"

        def solve(machine: int, run: Run) -> BallSolution:
            left = run.deadline - time.monotonic()
            return solve_ball(
                tasks[machine],
                problem.labels_of(machine),
                weights=weights,
                options=BallOptions(
                    C=self.C,
                    tol=self.tol,
                    stopping=stopping,
                    eps=self.eps,
                    max_stages=self.max_stages,
                    max_seconds=max(left, 0.0) if np.isfinite(left) else None,
                    memory_bytes=int(for_core * budget),
                ),
                random=np.random.default_rng(seeds[machine]),
                keep_going=run.keep_going,
            )

        solutions = for_each(self, range(n_machines), solve, "violation", n_threads=n_at_once)
        self._warn(solutions)
        self.objective_ = one_or_all([s.objective for s in solutions])
        self.lower_bound_ = one_or_all([s.lower_bound for s in solutions])
        self.certificate_ = one_or_all([s.gap for s in solutions])
        self.core_size_ = one_or_all([s.core_size for s in solutions])
        self.weight_norm_ = one_or_all([float(s.weight_norm) for s in solutions])
        self.n_iter_ = one_or_all([s.n_stages for s in solutions])
        shared = [n for (n,) in shared_evaluations(tasks)]
        self.n_kernel_evaluations_ = one_or_all(
            [s.n_kernel_evaluations - n for s, n in zip(solutions, shared, strict=True)]
        )
        self.stop_reason_ = one_or_all([s.stop_reason for s in solutions])
        return [Expansion(s.rows, s.coefficients, s.intercept) for s in solutions]

    def _warn(self, solutions: list[BallSolution]) -> None:
        reasons = {s.stop_reason for s in solutions}
        warn_unfinished_core_set(reasons, self.tol, "lower C, or use another kernel")
        worst = max((s.gap for s in solutions if s.stop_reason == "radius"), default=0.0)
        if worst > 1.0 - (1.0 - self.tol) ** 2:
            warn_caller(
                f"stopping='radius' stopped where the objective may be {worst:.0%} away from its "
                "optimum, which is usual for large C; lower eps, or use stopping='margin'."
            )
