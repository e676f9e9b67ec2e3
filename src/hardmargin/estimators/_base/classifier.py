"""What all classifiers of the package share.

Predictions come from the machines (``prediction/machines.py``), which are kept as plain numpy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from hardmargin.estimators._base.estimator import KernelEstimator
from hardmargin.estimators._base.labels import score
from hardmargin.estimators._base.missing import Filling
from hardmargin.estimators._base.one_model import on_one_model
from hardmargin.estimators._base.options import Choice
from hardmargin.kernels import (
    FloatArray,
    Kernel,
    KernelFunction,
    KernelSum,
    Precision,
    Rows,
    View,
    as_blocks,
    linear_weights,
    make_kernel,
)
from hardmargin.kernels.blocks import FileRows
from hardmargin.kernels.precision import precision, warn_if_flat
from hardmargin.prediction import Machines, Model
from hardmargin.prediction.machines import finite_scores
from hardmargin.resources import queries_at_once, single_threaded_blas
from hardmargin.scaling import MixedScaling, Scaling
from hardmargin.selection.calibration import (
    Calibration,
    HeldOut,
    calibrate,
    class_scores,
    winning_codes,
)
from hardmargin.selection.frequencies import Frequencies
from hardmargin.selection.judging import judge
from hardmargin.selection.mixture import LogProbabilities
from hardmargin.selection.plan import LEAST_SECONDS, too_many_pairs
from hardmargin.selection.rows import TrainingRows
from hardmargin.selection.sigmoids import platt_slope
from hardmargin.selection.weights import moderate, row_weights
from hardmargin.solvers.problem import Expansion, KernelRows, Problem, machines_of
from hardmargin.warn import warn_caller


@dataclass(frozen=True, kw_only=True)
class Training(Problem[KernelRows]):
    """A classification problem, ready for a solver.

    Its `weights` are those of the samples alone: where class weights only move thresholds, solvers
    must not see them. Other solvers are given `row_weights`, which has both.

    Attributes
    ----------
    classes : (n_classes,) array
        Labels of the classes.
    class_weights : (n_classes,) array or None
        Weights of the classes.
    """

    classes: NDArray[Any] = field(default_factory=lambda: np.empty(0))
    class_weights: FloatArray | None = None

    @property
    def X(self) -> Rows:
        """The rows."""
        return self.values.X

    @property
    def kernel(self) -> Kernel:
        """The kernel."""
        return self.values.kernel

    @property
    def dtype(self) -> Precision:
        """Precision of kernel values."""
        return self.values.dtype

    @property
    def is_weighted(self) -> bool:
        """Whether samples or classes have weights."""
        return self.weights is not None or self.class_weights is not None

    def row_weights(self) -> FloatArray:
        """Sample weights, times the weights of the classes."""
        return row_weights(self.codes, self.weights, self.class_weights)


def _tells_probabilities(classifier: KernelClassifier) -> bool:
    """Whether a classifier has ``predict_proba``; if not, the error says what to do."""
    is_fitted = hasattr(classifier, "classes_")
    if classifier._calibration_ is not None if is_fitted else classifier._holds_out:
        return True
    raise AttributeError(
        f"This {type(classifier).__name__} has no predict_proba: no rows were held out in fit to "
        "base probabilities on. Wrap it in sklearn.calibration.CalibratedClassifierCV."
    )


class KernelClassifier(ClassifierMixin, KernelEstimator):
    """Base of the kernel classifiers: predictions, and what ``fit`` prepares and stores."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **KernelEstimator._parameter_constraints,
        "class_weight": [Choice({"balanced"}), dict, None],
        "multi_class": [Choice({"ovo", "ovr"})],
    }

    #: A machine takes about this long, however few rows it has and however short the time.
    _seconds_of_machine: ClassVar[float] = LEAST_SECONDS

    #: How machines divide the classes, where that is not what ``multi_class`` says.
    _division_: str | None = None

    #: How missing values are filled, where an estimator does that.
    _filling_: Filling | None = None

    #: How rows are scaled before the kernel sees them.
    _scaling_: Scaling | MixedScaling | None = None

    #: What linear kernels see, and the weights of its columns.
    _weights_: list[tuple[View | None, NDArray[Any]]] | None = None

    #: How margins turn into decisions and probabilities, where rows were held out.
    _calibration_: Calibration | Frequencies | LogProbabilities | None = None

    def __init__(
        self,
        gamma: float | str = "scale",
        *,
        kernel: str | KernelFunction = "rbf",
        degree: float = 3,
        coef0: float = 0.0,
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
        self.class_weight = class_weight
        self.multi_class = multi_class
        self.dtype = dtype
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.max_time = max_time
        self.verbose = verbose
        self.random_state = random_state

    @on_one_model
    def decision_function(self, X: Any) -> FloatArray:
        """Scores of rows: for two classes positive where ``classes_[1]`` is predicted.

        Returns
        -------
        (n_samples,) array, or (n_samples, n_classes) for more than two classes
            For one-vs-one, votes plus confidences that break ties; where there is
            ``predict_proba``, scores in the order of the probabilities.
        """
        scores = self._of_margins(X, self._scores)
        return scores[:, 1] if len(self.classes_) == 2 else scores

    @on_one_model
    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the class of every row.

        Returns
        -------
        (n_samples,) array
        """
        winners = self._of_margins(X, lambda margins: winning_codes(self._scores(margins)))
        predicted: NDArray[Any] = self.classes_[winners]
        return predicted

    score = score

    @available_if(_tells_probabilities)
    @on_one_model
    def predict_proba(self, X: Any) -> FloatArray:
        """Probabilities of the classes, where rows were held out in ``fit``.

        Parameters
        ----------
        X : (n_samples, n_features) array, data frame or sparse matrix
            Rows.

        Returns
        -------
        (n_samples, n_classes) array
            Columns in the order of ``classes_``. Rows sum to one and agree with
            ``decision_function``. Where the rows or the time were too few to hold any out, which
            ``fit`` warns of, they are the frequencies of the classes, moved by the decision: a
            class is at least as likely as those that rank behind it.
        """
        _tells_probabilities(self)  # it may have been fitted again since the method was looked up
        return self._of_margins(X, self._chances)

    @available_if(_tells_probabilities)
    @on_one_model
    def predict_log_proba(self, X: Any) -> FloatArray:
        """Logarithms of the probabilities, where rows were held out in ``fit``.

        Parameters
        ----------
        X : (n_samples, n_features) array, data frame or sparse matrix
            Rows.

        Returns
        -------
        (n_samples, n_classes) array
            Columns in the order of ``classes_``; minus infinity where a probability is zero.
        """
        with np.errstate(divide="ignore"):
            logs: FloatArray = np.log(self.predict_proba(X))
        return logs

    @property
    @on_one_model
    def coef_(self) -> FloatArray:
        """Weights of the features, one row per machine; for ``kernel="linear"`` only.

        Where an estimator standardises, they are those of the standardised features.
        """
        check_is_fitted(self)
        used = vars(self).get("_kernel_")
        if used is None or used.name != "linear":
            named = self.kernel if used is None else used.name
            raise AttributeError(f"coef_ exists for kernel='linear' only, not {named!r}.")
        coef = np.array(self._machines.linear[0][1], dtype=np.float64)
        coef.flags.writeable = False  # changing it would not change decisions
        return coef

    @on_one_model
    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Names of the columns that kernels see, and that ``support_vectors_`` has.

        A number keeps the name of its column. A category's name follows that of its column, as in
        ``"colour_red"``; of two categories, the second stands for both. The indicators of missing
        numbers come last, as in ``"age_missing"``.

        Parameters
        ----------
        input_features : array-like of str, optional
            Names of the input columns, if X had none in ``fit``; ``"x0"``, ``"x1"``, ... otherwise.

        Returns
        -------
        (n_columns,) array of str objects
        """
        check_is_fitted(self, "n_features_in_")
        names = [str(name) for name in _check_feature_names_in(self, input_features)]
        if self._categories_ is not None:
            names = self._categories_.names(names)
        if self._filling_ is not None:
            names += [f"{names[j]}_missing" for j in self._filling_.indicated]
        return np.array(names, dtype=object)

    @property
    def _origins(self) -> NDArray[np.intp]:
        """The input column that each column seen by kernels comes from."""
        origins = np.arange(self.n_features_in_)
        if self._categories_ is not None:
            origins = self._categories_.origins
        if self._filling_ is not None:
            origins = np.concatenate([origins, origins[self._filling_.indicated]])
        return origins

    @property
    def _division(self) -> str:
        """How machines divide the classes: ``"ovo"`` or ``"ovr"``."""
        if self._division_ is not None:
            return self._division_
        return "ovr" if self.multi_class == "ovr" else "ovo"

    def _has_too_many_pairs(self, n_classes: int) -> bool:
        """Whether `max_time` is too short for a machine per pair of classes, however few rows.

        With a checkpoint it never is: another call, perhaps with more time, resumes the fit.
        """
        if getattr(self, "checkpoint", None) is not None:
            return False
        return too_many_pairs(n_classes, self._seconds_of_machine, self.max_time)

    def _divide(self, n_classes: int, division: str) -> None:
        """Settle how machines divide the classes; warn if it is not what ``multi_class`` asks."""
        if division == self.multi_class:
            return
        self._division_ = division
        if self.multi_class == "ovo":
            warn_caller(
                "max_time is too short for a machine per pair of classes, "
                f"{n_classes * (n_classes - 1) // 2:,} in all, so there is one per class, as with "
                "multi_class='ovr'. Raise max_time for pairs."
            )

    @property
    def _holds_out(self) -> bool:
        """Whether ``fit`` would hold rows out, which reliable probabilities need."""
        return False

    def _training(
        self,
        rows: TrainingRows,
        *,
        kernel: str | KernelFunction | None = None,
        gamma: float | str | None = None,
    ) -> Training:
        """Make the kernel (from the estimator's parameters, or those given) and the machines."""
        X, codes, classes, weights, *_ = rows
        settled = make_kernel(
            self.kernel if kernel is None else kernel,
            X,
            gamma=self.gamma if gamma is None else gamma,
            degree=self.degree,
            coef0=self.coef0,
            sample_weight=weights,
        )
        values = KernelRows(settled, X, precision(X, self.dtype, settled))
        warn_if_flat(settled, X, weights)
        if self._division_ is None and self._has_too_many_pairs(len(classes)):
            self._divide(len(classes), "ovr")
        weights, class_weights = rows.positive_weights, None
        if self.class_weight is not None:
            class_weights = self._class_weights(classes, codes, weights)
        machines = machines_of(len(classes), self._division)
        return Training(
            values, codes, machines, weights, classes=classes, class_weights=class_weights
        )

    def _class_weights(
        self, classes: NDArray[Any], codes: NDArray[np.int32], weights: FloatArray | None
    ) -> FloatArray:
        """Turn ``class_weight`` into one number per class."""
        present = codes >= 0
        if self.class_weight == "balanced":
            mass = np.bincount(
                codes[present],
                weights=None if weights is None else weights[present],
                minlength=len(classes),
            )
            return np.asarray(mass.sum() / (len(classes) * mass), dtype=np.float64)
        given: FloatArray = compute_class_weight(
            self.class_weight, classes=classes, y=classes[codes[present]]
        ).astype(np.float64)
        if not (np.isfinite(given) & (given > 0)).all():
            raise ValueError(
                f"class_weight must be positive and finite for every class, got {given.tolist()}."
            )
        return moderate(given)

    def _store(
        self,
        training: Training,
        machines: Sequence[Expansion],
        kernel: Kernel | KernelSum | None = None,
    ) -> None:
        """Store what predictions need; `kernel` is the machines' own, if not the training's."""
        self.classes_ = training.classes
        self._keep_machines(
            Machines.of(
                machines,
                training.kernel if kernel is None else kernel,
                as_blocks(training.X, self._most_row_bytes),
                training.codes,
                len(training.classes),
                training.dtype,
            )
        )

    def _keep_machines(self, machines: Machines) -> None:
        """Keep machines as attributes, from which `_machines` puts them together again."""
        self.support_ = machines.support
        self.support_vectors_ = machines.support_vectors
        self.n_support_ = machines.n_support
        self.dual_coef_ = machines.coefficients
        self.intercept_ = machines.intercepts
        self.gamma_ = machines.kernel.gamma
        self._kernel_ = machines.kernel
        self._weights_ = machines.linear
        self._dtype_ = machines.dtype
        self._by_class_ = machines.by_class

    @property
    def _machines(self) -> Machines:
        """The machines, with the attributes as they are."""
        linear = self._weights_
        if linear is None:  # a model of an earlier version
            linear = linear_weights(self._kernel_, self.support_vectors_, self.dual_coef_)
        return Machines(
            self.support_,
            self.support_vectors_,
            self.n_support_,
            self._by_class_,
            self.dual_coef_,
            self.intercept_,
            self._kernel_,
            self._dtype_,
            linear,
            self._scaling_,
        )

    @property
    def _model(self) -> Model:
        """What predicts."""
        return self._machines

    def _calibrate(
        self,
        training: Training,
        held_out: HeldOut,
        slopes: FloatArray,
        random: np.random.RandomState,
        optimism: float,
    ) -> None:
        """Fit the probabilities to the rows held out, and judge the classifier by them."""
        judged = judge(
            held_out,
            slopes,
            self.intercept_,
            lambda some: self._margins(training.X[some]),
            training,
            self._division,
            training.class_weights,
            random,
        ).after_choice(optimism)
        self._calibration_ = judged.calibration
        self.cv_log_loss_, self.cv_error_ = judged.log_loss, judged.error
        self.cv_log_loss_std_error_ = judged.log_loss_std_error
        self.cv_error_std_error_ = judged.error_std_error

    def _use_frequencies(self, training: Training) -> None:
        """Take frequencies of classes for probabilities, as no rows were held out."""
        codes, n_classes = training.codes, len(training.classes)
        self._calibration_ = Frequencies.of(
            codes, training.row_weights(), n_classes, self._division
        )

    def _calibrate_on(self, X: Rows, codes: NDArray[np.int32], weights: FloatArray | None) -> None:
        """Fit probabilities to rows that took no part in training, scaled like those that did."""
        margins, machines = self._margins(X), machines_of(len(self.classes_), self._division)
        slopes = np.full(len(machines), np.nan)
        for m, (negative, positive) in enumerate(machines):
            is_positive = np.isin(codes, positive)
            own = is_positive | np.isin(codes, negative)
            if is_positive.any() and not is_positive[own].all():
                mass = None if weights is None else weights[own]
                slopes[m] = platt_slope(margins[own, m], is_positive[own], mass)
        if np.isnan(slopes).all():
            return
        slopes[np.isnan(slopes)] = np.nanmedian(slopes)
        calibration = Calibration(slopes, len(self.classes_), self._division)
        self._calibration_, *_ = calibrate(calibration, margins, codes, weights)

    def _check_rows(self, X: Any) -> Rows:
        """Validate queries, and fill and scale them like the rows of ``fit``."""
        return self._scaled(self._filled_queries(X))

    def _filled_queries(self, X: Any) -> Rows:
        """Validate and fill queries."""
        rows = self._check_queries(X)
        if self._filling_ is None:
            return rows
        return self._filling_.transform(rows, self.get_feature_names_out)

    def _scaled(self, rows: Rows) -> Rows:
        """Scale queries like the rows of ``fit``."""
        return self._model.seen(rows)

    def _margins(self, Q: Rows) -> FloatArray:
        """Scores of all machines, of shape (n, n_machines)."""
        return finite_scores(self._model.margins(Q, self.n_jobs), self.kernel)

    def _probabilities(self, Q: Rows) -> FloatArray:
        """Probabilities of the classes, of shape (n, n_classes)."""
        return np.concatenate([self._chances(margins) for _, margins in self._margins_in_parts(Q)])

    def _chances(self, margins: FloatArray) -> FloatArray:
        """Probabilities of the classes, from the scores of the machines."""
        assert self._calibration_ is not None
        return self._calibration_.probabilities(margins)

    def _scores(self, margins: FloatArray) -> FloatArray:
        """Scores of the classes, of shape (n, n_classes)."""
        if self._calibration_ is not None:
            return self._calibration_.scores(margins)
        return class_scores(margins, len(self.classes_), self._division)

    @property
    def _query_bytes(self) -> int:
        """Memory that a prediction takes, per query."""
        return self._model.query_bytes

    def _of_margins(self, X: Any, function: Callable[[FloatArray], NDArray[Any]]) -> NDArray[Any]:
        """Apply a function to the scores of all machines, a part of the queries at a time.

        Large files, and rows that take much of a limited memory, are also validated and scaled in
        parts.
        """
        blocks = [X]
        is_plain = isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype != object
        if is_plain and isinstance(rows := as_blocks(X, self._most_row_bytes), FileRows):
            blocks = rows.each(lambda block: block)
        return np.concatenate(
            [
                function(margins)
                for block in blocks
                for _, margins in self._margins_in_parts(self._check_rows(block))
            ]
        )

    def _margins_in_parts(self, Q: Rows) -> Iterator[tuple[slice, FloatArray]]:
        """Evaluate as many queries at a time as fit the memory limit."""
        step = queries_at_once(Q.shape[0], self._query_bytes, self.memory_limit)
        with single_threaded_blas():
            for begin in range(0, Q.shape[0], step):
                part = slice(begin, min(begin + step, Q.shape[0]))
                yield part, self._margins(Q[part])
