"""The SVM with bias by multiplicative updates as a classifier."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval

from hardmargin.estimators._base.classifier import KernelClassifier, Training
from hardmargin.estimators._base.estimator import COUNT, publish
from hardmargin.estimators._base.matrix import solve_on_matrices
from hardmargin.estimators._base.one_model import on_one_model
from hardmargin.estimators._base.options import Choice
from hardmargin.estimators._base.staged import staged_predict
from hardmargin.kernels import FloatArray, KernelFunction, is_sparse
from hardmargin.resources import memory_bytes, single_threaded_blas
from hardmargin.solvers import multiplicative
from hardmargin.solvers.multiplicative import MultiplicativeOptions, MultiplicativeSolution
from hardmargin.solvers.planes import support
from hardmargin.warn import warn_caller

#: Multiplicative updates never reach zero: multipliers below this share of the largest are on their
#: way there, and change decisions by less than any sensible `tol`.
SMALLEST_SUPPORT = 1e-6

#: ``support_bound_`` holds with probability one minus this.
DELTA = 0.05

#: Share of the memory limit that the multipliers of all stages may take.
STAGES_SHARE = 0.125

#: Number of coefficients that the staged methods expand at once.
COEFFICIENTS_AT_ONCE = 4_000_000


class MultiplicativeSVC(KernelClassifier):
    """Hard-margin support vector classifier trained by multiplicative updates.

    The algorithm of ESANN-99 [1]_: every epoch multiplies each multiplier of the dual by
    ``exp(eta * (1 - y * f(x)))``, with the bias in closed form. It converges to the hard-margin
    SVM, that of ``SVC(C=inf)``. An epoch takes one product with the kernel matrix. A few dozen
    epochs reach most of the margin; the last 0.1 % takes a few thousand.

    Parameters
    ----------
    gamma : float or {"scale", "spread", "pairwise"}, default="scale"
        Width of the kernel. ``"scale"`` is scikit-learn's 1 / (n_features * X.var()),
        ``"spread"`` 1 / mean squared distance to the mean, ``"pairwise"`` 1 / mean squared distance
        between rows.
    kernel : {"rbf", "laplacian", "matern32", "matern52", "linear", "cosine", "poly", \
"sigmoid", "precomputed"} or callable, default="rbf"
        The kernel; a callable takes two sets of rows and returns the matrix of values.
    degree : float, default=3
        Degree of the ``"poly"`` kernel.
    coef0 : float, default=0.0
        Constant in the ``"poly"`` and ``"sigmoid"`` kernels.
    learning_rate : float or "auto", default="auto"
        The rate eta. In the paper it is fixed; training is slow if it is too small and diverges if
        it is too large. ``"auto"`` undoes an epoch that lowers the dual objective and halves the
        rate; all other epochs raise it by a tenth. This keeps it near the largest rate that
        converges.
    tol : float, default=1e-3
        Relative gap between the primal and the dual objective that ends training.
    max_stages : int, default=10_000
        Limit on the epochs of each machine.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, which multiply the sample weights. They only change the start.
    multi_class : {"ovo", "ovr"}, default="ovo"
        One machine per pair of classes, or one per class against the rest; the second also where
        `max_time` is below 1.2 ms per pair, with a warning.
    dtype : {"auto", "float32", "float64"}, default="auto"
        Precision of kernel values. ``"auto"`` is float64 up to 5,000 rows and float32 above;
        multipliers and sums are always float64.
    memory_limit : str, number or None, default=None
        Memory limit of a fit, such as ``"2GB"`` or a number of bytes; None is half the free memory.
        A kernel matrix that does not fit in half of it is recomputed in every epoch, with a
        warning. The multipliers of all epochs, for the staged methods, may take an eighth of it.
    n_jobs : int or None, default=None
        Number of threads: over machines and kernel values in ``fit``, over rows in ``predict``. The
        model does not depend on it.
    max_time : float or None, default=None
        Seconds after which ``fit`` returns the model so far, with a warning. Without time for the
        kernel matrix and one product with it, that is the start, whose margin is NaN.
    verbose : int, default=0
        Print the progress of long fits.
    random_state : int, RandomState instance or None, default=None
        Has no effect, as nothing is random; all estimators accept it.

    Attributes
    ----------
    classes_ : (n_classes,) array
        The labels.
    support_ : (n_support,) array
        Rows whose multiplier exceeds 1e-6 times the machine's largest, in ascending order.
    support_vectors_ : (n_support, n_features) array or CSR matrix
        Those rows; empty for a precomputed kernel.
    n_support_ : (n_classes,) array
        Support rows of each class.
    dual_coef_ : (n_machines, n_support) array, or CSR array for many classes
        Multiplier times label, on the usual scale: support rows have the score +1 or -1.
    intercept_ : (n_machines,) array
        The bias that balances the least margins of the two classes or, if the plane does not
        separate them, their mean margins weighted by the multipliers.
    coef_ : (n_machines, n_features) array
        Weights of the features, for the linear kernel only.
    n_iter_ : int, or array of them for many classes
        Number of epochs. As in the paper, the start does not count: the paths below begin with it
        and have one entry more.
    margin_path_ : array, or list of them for many classes
        Distance of the nearest training row from the plane of each epoch, negative while the
        plane does not separate the classes. It rises to 1 / ||w||.
    objective_path_ : array, or list of them for many classes
        Dual objective of each epoch.
    error_path_ : array, or list of them for many classes
        Number of training rows that the plane of each epoch misclassifies.
    learning_rate_ : float or array
        The rate of the last epoch.
    certificate_ : float or array
        Relative gap between the last plane's bounds on the optimum: 0 at the optimum, 1 if the
        plane does not separate the classes.
    weight_norm_ : float or array
        ``||w||``.
    margin_ : float or array
        The last value of `margin_path_`.
    support_bound_ : float or array
        Bound on the error on new rows that holds with 95 % confidence (section 2 of the paper):
        ``(d log2(e p / d) + log2(p / 0.05)) / (p - d)`` for d support rows out of p. It is at most
        1, and exactly 1 if a training row is misclassified, as the bound does not hold then.
    stop_reason_ : str or array
        ``"converged"``, ``"not_separable"`` (the classes overlap for this kernel; the model is
        that of the epoch with the fewest training errors, and the paths end there),
        ``"diverged"`` (the fixed learning rate is too large; the model and the paths end at the
        best epoch), ``"stalled"`` (rounding allows no further progress), ``"max_stages"`` or
        ``"max_time"``.
    gamma_ : float
        The kernel's gamma as a number.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : array
        Names of the features, if X has them.

    Notes
    -----
    Sample weights and `class_weight` set the first multipliers, in proportion within each class. A
    weight of two counts the row twice in every epoch. But the optimum of a hard margin does not
    depend on positive weights, so a converged model does not either.

    The training rows and the multipliers of every epoch are kept for the staged methods, within an
    eighth of `memory_limit`.

    References
    ----------
    .. [1] N. Cristianini, C. Campbell and J. Shawe-Taylor, "A Multiplicative Updating Algorithm for
       Training Support Vector Machines", European Symposium on Artificial Neural Networks (ESANN),
       1999.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from hardmargin import MultiplicativeSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = MultiplicativeSVC().fit(X[:100], y[:100])
    >>> clf.stop_reason_, bool(clf.certificate_ <= 1e-3), clf.score(X[:100], y[:100])
    ('converged', True, 1.0)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **KernelClassifier._parameter_constraints,
        "learning_rate": [Interval(Real, 0, None, closed="neither"), Choice({"auto"})],
        "tol": [Interval(Real, 0, 1, closed="left")],
        "max_stages": [COUNT],
    }

    def __init__(
        self,
        gamma: float | str = "scale",
        *,
        kernel: str | KernelFunction = "rbf",
        degree: float = 3,
        coef0: float = 0.0,
        learning_rate: float | str = "auto",
        tol: float = 1e-3,
        max_stages: int = 10_000,
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
        self.learning_rate = learning_rate
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
            Row weights: a weight of two counts the row twice, a weight of zero leaves it out.

        Returns
        -------
        self
        """
        with self._fitting() as monitor:
            training = self._training(self._check_training(X, y, sample_weight))
            rate, n_machines = self.learning_rate, len(training.machines)
            every = np.flatnonzero(training.codes >= 0)
            room = int(STAGES_SHARE * memory_bytes(self.memory_limit)) - _size(training, every)
            options = MultiplicativeOptions(
                learning_rate="auto" if isinstance(rate, str) else float(rate),
                tol=self.tol,
                max_stages=self.max_stages,
                keep_planes=max(room // n_machines, 0),
                smallest_kept=SMALLEST_SUPPORT,
            )
            part = monitor.part("relative gap", n_machines=n_machines)
            solutions = solve_on_matrices(multiplicative.solve, self, training, options, part)
            self._warn_of(solutions)
            publish(
                self,
                solutions,
                margin_path_=lambda s: s.history["margin"],
                objective_path_=lambda s: s.history["objective"],
                error_path_=lambda s: s.history["error"],
                learning_rate_=lambda s: s.last_rate,
                weight_norm_=lambda s: float(np.sqrt(s.squared_norm)),
                margin_=lambda s: float(s.history["margin"][-1]),
                support_bound_=_support_bound,
            )
            self._keep_stages(training, every, solutions)
            self._store(training, [_without_small(s) for s in solutions])
        return self

    @on_one_model
    def staged_decision_function(self, X: Any) -> Iterator[FloatArray]:
        """Scores at the start and after every epoch, as `decision_function` gives them at the end.

        Each plane has the bias that its own margins give. Stage t of several machines is epoch t of
        each machine, or its last epoch if it has fewer; stage 0 is the start.

        Yields
        ------
        (n_samples,) array, or (n_samples, n_classes) for more than two classes
        """
        Q = self._check_rows(X)
        if self._stages_ is None:
            raise AttributeError(
                "There are no staged decisions: the multipliers of all epochs did not fit in an "
                "eighth of memory_limit and were not kept. Raise memory_limit and fit again."
            )
        if self._kernel_.name == "precomputed":
            Q = Q[:, self._stage_rows_]
        lengths = [stages.shape[0] for stages in self._stages_]
        at_once = COEFFICIENTS_AT_ONCE // (len(lengths) * len(self._stage_rows_))
        at_once = max(1, min(at_once, max(lengths)))
        for begin in range(0, max(lengths), at_once):
            stages = np.arange(begin, min(begin + at_once, max(lengths)))
            parts = [np.minimum(stages, n - 1) for n in lengths]
            coefficients = sp.vstack(
                [of_machine[part] for of_machine, part in zip(self._stages_, parts, strict=True)],
                format="csr",
            )
            with single_threaded_blas():
                sums = self._kernel_.expand(
                    Q,
                    self._stage_vectors_,
                    coefficients.astype(np.float64),
                    dtype=self._dtype_,
                    n_jobs=self.n_jobs,
                )
            sums = sums.reshape(-1, len(lengths), len(stages))
            for i in range(len(stages)):
                biases = [b[part[i]] for b, part in zip(self._stage_biases_, parts, strict=True)]
                scores = self._scores(sums[:, :, i] + np.array(biases))
                yield scores[:, 1] if len(self.classes_) == 2 else scores

    staged_predict = staged_predict

    def _keep_stages(
        self,
        training: Training,
        every: NDArray[Any],
        solutions: Sequence[MultiplicativeSolution],
    ) -> None:
        """Keep the planes over all rows of positive weight, if every machine has kept its own."""
        self._stage_rows_, self._stage_vectors_ = every.astype(np.int32), None
        self._stage_biases_ = [s.history["bias"] for s in solutions]
        planes = [_spread_out(s, every) for s in solutions if s.planes is not None]
        self._stages_: list[Any] | None = planes if len(planes) == len(solutions) else None
        if self._stages_ is not None and training.kernel.name != "precomputed":
            self._stage_vectors_ = training.X[every]

    def _warn_of(self, solutions: Sequence[MultiplicativeSolution]) -> None:
        in_order = sorted(solutions, key=lambda s: s.certificate)
        gaps = {s.stop_reason: s.certificate for s in in_order}
        if "not_separable" in gaps:
            warn_caller(
                "Training stopped because the classes overlap for this kernel: no plane separates "
                "them by a margin. The model is that of the epoch with the fewest training errors. "
                "Use EnsembleSVC or GreedySVC, which allow errors. A larger gamma would separate "
                "the rows, but would also fit the noise in the labels."
            )
        if "diverged" in gaps:
            tried = max(s.n_tried for s in solutions if s.stop_reason == "diverged")
            warn_caller(
                f"learning_rate={self.learning_rate!r} is too large: training was abandoned after "
                f"{tried} epochs, and the model is that of the best one. Lower learning_rate, or "
                "set it to 'auto'."
            )
        if "stalled" in gaps:
            warn_caller(
                f"Training stopped at a relative gap of {gaps['stalled']:.3g}: rounding allows no "
                "further progress. Raise tol, or use dtype='float64'."
            )
        for limit in ("max_stages", "max_time"):
            if limit in gaps:
                advice = f"Raise {limit} to continue, or raise tol to stop earlier."
                if gaps[limit] >= 1:  # not even separated: a looser tol would not end training
                    advice = (
                        "It does not separate the classes yet. Raise gamma to make that easier; "
                        "HardMarginSVC gets there faster, EnsembleSVC does not need to."
                    )
                warn_caller(
                    f"Training stopped at {limit} with a relative gap of {gaps[limit]:.3g}; the "
                    f"model is that of the epochs so far. {advice}"
                )


def _spread_out(solution: MultiplicativeSolution, every: NDArray[Any]) -> Any:
    """Planes of a machine, over the rows of all machines."""
    planes: Any = solution.planes
    columns = np.searchsorted(every, solution.rows).astype(np.int32)
    entries = (planes.data, columns[planes.indices], planes.indptr)
    return sp.csr_array(entries, shape=(planes.shape[0], len(every)))


def _without_small(solution: MultiplicativeSolution) -> MultiplicativeSolution:
    kept = support(solution.coefficients, SMALLEST_SUPPORT)
    return replace(
        solution, rows=solution.rows[kept], coefficients=solution.coefficients[kept], planes=None
    )


def _support_bound(solution: MultiplicativeSolution) -> float:
    """Bound the error by the number of rows from which the machine can be rebuilt."""
    p, d = len(solution.rows), len(support(solution.coefficients, SMALLEST_SUPPORT))
    if solution.history["error"][-1] > 0 or d >= p:
        return 1.0
    return float(min(1.0, (d * np.log2(np.e * p / d) + np.log2(p / DELTA)) / (p - d)))


def _size(training: Training, rows: NDArray[Any]) -> int:
    """Bytes that a copy of some rows takes."""
    if training.kernel.name == "precomputed":
        return 0
    values = training.X.data if is_sparse(training.X) else training.X
    return int(values.nbytes * len(rows) // max(training.X.shape[0], 1))
