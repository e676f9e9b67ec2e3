"""The L2-SVM by core sets as a classifier."""

from __future__ import annotations

from collections.abc import Collection
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils._param_validation import Interval

from hardmargin.estimators._base.classifier import KernelClassifier
from hardmargin.estimators._base.estimator import COUNT, publish
from hardmargin.estimators._base.options import Choice
from hardmargin.kernels import KernelFunction
from hardmargin.kernels.columns import KernelColumns
from hardmargin.resources import (
    COLUMNS_SHARE,
    CORE_ROW_BYTES,
    CORE_SHARE,
    enough_memory,
    planned_bytes,
)
from hardmargin.solvers.core_sets import core_vector
from hardmargin.solvers.core_sets.core_vector import CoreVectorOptions, Stopping
from hardmargin.solvers.problem import Problem
from hardmargin.warn import warn_caller


class CoreVectorSVC(KernelClassifier):
    """Core vector machine: an SVM with squared slacks, on a small core set of the rows.

    Minimises ``||w||^2 + b^2 + C sum(slack^2)``, which is equivalent to a minimum enclosing ball
    [1]_. Rows that random samples find too close to the plane join a core set. Training ends when a
    pass over all rows certifies that the objective is within about ``2 * tol`` of the optimum. A
    looser `tol` needs fewer rows.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the squared slacks; a smaller C regularises more.
    gamma : float or {"scale", "spread", "pairwise"}, default="pairwise"
        Width of the kernel. ``"scale"`` is scikit-learn's 1 / (n_features * X.var()),
        ``"spread"`` 1 / mean squared distance to the mean, ``"pairwise"``, as in [2]_, 1 / mean
        squared distance between rows.
    kernel : {"rbf", "laplacian", "matern32", "matern52", "linear", "cosine", "poly", \
"sigmoid", "precomputed"} or callable, default="rbf"
        The kernel; it should be positive semi-definite.
    degree : float, default=3
        Degree of the ``"poly"`` kernel.
    coef0 : float, default=0.0
        Constant in the ``"poly"`` and ``"sigmoid"`` kernels.
    tol : float, default=0.05
        Training ends when ``lower_bound_ >= (1 - tol) ** 2 * objective_``, a relative gap of about
        ``2 * tol``. This happens at the latest when no margin falls short of the common margin by
        more than this share.
    stopping : {"margin", "radius"}, default="margin"
        ``"margin"`` certifies `tol` by a pass over all rows. ``"radius"`` is the rule of the
        papers, with `eps` and samples of 59 rows. It needs no such pass, but for large C or many
        rows it may stop much too early (with a warning if `tol` is not met). It requires equal
        weights and a kernel whose k(x, x) is constant.
    eps : float, default=1e-5
        For ``stopping="radius"``: how far outside the ball rows may lie, relative to its radius.
    max_stages : int or None, default=None
        Limit on how often the core set of a machine grows.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, which multiply the sample weights.
    multi_class : {"ovo", "ovr"}, default="ovo"
        One machine per pair of classes, or one per class against the rest; the second also where
        `max_time` is below 1.2 ms per pair, with a warning.
    dtype : {"auto", "float32", "float64"}, default="auto"
        Precision of kernel values. ``"auto"`` is float64 up to 5,000 rows and float32 above.
    memory_limit : str, number or None, default=None
        Memory limit of a fit, such as ``"2GB"`` or a number of bytes; None is half the free memory.
        It limits the size of the core sets.
    n_jobs : int or None, default=None
        Number of threads: over machines and kernel values in ``fit``, over rows in ``predict``. The
        model does not depend on it.
    max_time : float or None, default=None
        Seconds after which ``fit`` returns the model so far, with a warning.
    verbose : int, default=0
        Print the progress of long fits.
    random_state : int, RandomState instance or None, default=None
        Seed for the samples of rows; None is a fixed seed.

    Attributes
    ----------
    classes_ : (n_classes,) array
        The labels.
    lower_bound_, objective_ : float or array
        The optimum of the objective lies between these two.
    certificate_ : float or array
        Relative gap between them.
    core_size_ : int or array
        Number of rows in the core set; those with a coefficient are support rows.
    weight_norm_ : float or array
        ``||w||``.
    n_iter_ : int, or array of them for many classes
        Number of times that the core set grew.
    n_kernel_evaluations_ : int or array
        Number of kernel values evaluated for a machine, not counting those that earlier machines
        had evaluated; always counted as if the machines were trained one after another.
    stop_reason_ : str or array
        ``"certified"``, ``"radius"``, ``"core_full"`` (`memory_limit` allows no larger core set),
        ``"rounding"`` (`tol` is finer than the precision of kernel values), ``"indefinite"`` (the
        kernel is not positive semi-definite), ``"stalled"`` (the kernel matrix is too close to
        singular for this C), ``"max_stages"`` or ``"max_time"``.
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
        Weights of the features, for the linear kernel only.
    gamma_ : float
        The kernel's gamma as a number.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : array
        Names of the features, if X has them.

    Notes
    -----
    Scale the features first. As slacks are squared, every row within the margin has a coefficient.
    With noisy labels, a small C or a narrow kernel, most rows have one, and training time grows
    with the square of their number.

    See Also
    --------
    GreedySVC : Faster on many rows, without a C.
    EnsembleSVC : Has nothing to tune.

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
        stopping: Stopping = "margin",
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
            n_rows, n_machines = len(training.codes), len(training.machines)
            budget = planned_bytes(self.memory_limit, CORE_ROW_BYTES * n_rows)
            columns_share, core_share = COLUMNS_SHARE, CORE_SHARE
            if n_machines == 1:  # one machine reuses columns too rarely for keeping them to pay
                columns_share, core_share = 0.0, COLUMNS_SHARE + CORE_SHARE
            columns = KernelColumns(
                training.kernel,
                training.X,
                dtype=training.dtype,
                memory_bytes=int(columns_share * budget),
                n_jobs=self.n_jobs,
            )
            weights = training.row_weights() if training.is_weighted else None
            seeds = self._new_generator().randint(2**31 - 1, size=n_machines)
            solutions = core_vector.solve(
                Problem(columns, training.codes, training.machines, weights),
                CoreVectorOptions(
                    C=self.C,
                    tol=self.tol,
                    stopping=self.stopping,
                    eps=self.eps,
                    max_stages=self.max_stages,
                    seeds=seeds.tolist(),
                    memory_bytes=int(core_share * budget),
                    keeps_directions=False,
                ),
                monitor.part("violation", n_machines=n_machines),
            )
            reasons = {s.stop_reason for s in solutions}
            enough = ""
            if "core_full" in reasons:
                most = columns.bytes_of_core_set(training.n_rows_of_largest)
                enough = enough_memory(int(most / core_share), CORE_ROW_BYTES * n_rows)
            warn_if_unfinished(reasons, self.tol, "lower C, or use another kernel", enough)
            gaps = [s.certificate for s in solutions if s.stop_reason == "radius"]
            if max(gaps, default=0.0) > 1.0 - (1.0 - self.tol) ** 2:
                warn_caller(
                    f"stopping='radius' stopped when the objective may still be {max(gaps):.0%} "
                    "from its optimum, which is common for large C; use stopping='margin'."
                )
            publish(
                self,
                solutions,
                "objective",
                "lower_bound",
                "core_size",
                "n_kernel_evaluations",
                weight_norm_=lambda s: float(s.weight_norm),
            )
            self._store(training, solutions)
        return self


def warn_if_unfinished(
    reasons: Collection[str], tol: float, if_indefinite: str, enough: str
) -> None:
    """Warn about core sets that stopped uncertified, and say which parameter to change.

    `enough` says how much memory is enough for core sets of all rows, if memory limited one.
    """
    for reason, message in (
        (
            "core_full",
            "Training stopped because memory_limit allows no larger core set; raise memory_limit "
            f"({enough} for all rows), or raise tol to need fewer rows.",
        ),
        (
            "rounding",
            f"tol={tol} is finer than the precision of the kernel values allows; raise tol, or use "
            "dtype='float64'.",
        ),
        (
            "indefinite",
            "The kernel is not positive semi-definite, so training has no optimum to approach; "
            f"{if_indefinite}.",
        ),
        (
            "stalled",
            "Training made no more progress, as the kernel matrix is too close to singular for "
            "this C; scale the features, or lower C.",
        ),
        ("max_stages", "Training stopped at max_stages; raise it, or raise tol to stop earlier."),
        ("max_time", "Training stopped at max_time; raise it, or raise tol to stop earlier."),
    ):
        if reason in reasons:
            warn_caller(message)
