"""What all classifiers of the package share.

``fit`` validates rows, labels and weights, settles the kernel, splits the classes into two-class
machines, has a solver train them, and keeps the result as plain numpy: support rows once, and one
row of coefficients a machine. ``predict`` is one expansion over all machines at once.
"""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from collections.abc import Callable, Iterator
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils._param_validation import Interval
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from hardmargin.estimators._base.multiclass import class_scores, machines_of
from hardmargin.estimators._base.options import Choice
from hardmargin.estimators._base.problem import Expansion, IntArray, Problem
from hardmargin.estimators._base.run import reporter
from hardmargin.estimators._base.validation import (
    N_JOBS,
    check_queries,
    check_training_rows,
    finite_scores,
    kernel_of_rows,
    moderate,
    precision,
    warn_if_flat,
)
from hardmargin.kernels import (
    GAMMA_RULES,
    NAMED_KERNELS,
    FloatArray,
    Kernel,
    KernelFunction,
    KernelSum,
    Precision,
    Rows,
    is_sparse,
)
from hardmargin.memory import memory_bytes
from hardmargin.parallel import multiply, single_threaded_blas

#: Sums of kernel values times larger coefficients overflow float32.
MAX_FLOAT32_COEFFICIENT = 1e30


def _tells_probabilities(classifier: KernelClassifier) -> bool:
    """Whether a classifier has ``predict_proba``; if not, the error says what to do."""
    if classifier._has_probabilities():
        return True
    raise AttributeError(
        f"This {type(classifier).__name__} has no predict_proba: no rows were held out in fit to "
        "base probabilities on. Wrap it in sklearn.calibration.CalibratedClassifierCV."
    )


class KernelClassifier(ClassifierMixin, BaseEstimator, metaclass=ABCMeta):
    """Base of the kernel classifiers; subclasses train the machines in ``_solve``."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "gamma": [Interval(Real, 0, None, closed="neither"), Choice(GAMMA_RULES)],
        "kernel": [Choice({*NAMED_KERNELS, "precomputed"}), callable],
        "degree": [Interval(Real, 0, None, closed="left")],
        "coef0": [Interval(Real, None, None, closed="neither")],
        "class_weight": [Choice({"balanced"}), dict, None],
        "multi_class": [Choice({"ovo", "ovr"})],
        "dtype": [Choice({"auto", "float32", "float64"})],
        "memory_limit": [str, Interval(Real, 0, None, closed="neither"), None],
        "n_jobs": [*N_JOBS, None],
        "max_time": [Interval(Real, 0, None, closed="neither"), None],
        "verbose": ["verbose"],
        "random_state": ["random_state"],
    }

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
        return self._fit(X, y, sample_weight)

    def _fit(self, X: Any, y: Any, sample_weight: Any, groups: Any = None) -> Self:
        """Fit; `groups` are for estimators that split the rows themselves."""
        before = self.__dict__.copy()
        for name in before:
            if name.endswith("_"):  # of an earlier fit, perhaps with other parameters
                del self.__dict__[name]
        try:
            self._validate_params()
            memory_bytes(self.memory_limit)  # which not every fit asks for, but predictions do
            with single_threaded_blas():
                problem = self._prepare(X, y, sample_weight, groups)
                self._store(problem, self._solve(problem))
        except BaseException:
            # A fit that fails or is interrupted leaves the estimator as it was.
            self.__dict__.clear()
            self.__dict__.update(before)
            raise
        return self

    def decision_function(self, X: Any) -> FloatArray:
        """Scores of rows: for two classes positive where ``classes_[1]`` is predicted.

        Returns
        -------
        (n_samples,) array, or (n_samples, n_classes) for more than two classes
            For one-vs-one the votes with confidences that settle ties.
        """
        rows = self._check_rows(X)
        scores = np.empty((rows.shape[0], len(self.classes_)))
        for part, of_part in self._scores_in_parts(rows):
            scores[part] = of_part
        return scores[:, 1] if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the class of every row.

        Returns
        -------
        (n_samples,) array
        """
        rows = self._check_rows(X)
        winners = np.empty(rows.shape[0], dtype=np.intp)
        for part, scores in self._scores_in_parts(rows):
            winners[part] = scores[:, 1] >= 0 if scores.shape[1] == 2 else scores.argmax(axis=1)
        predicted: NDArray[Any] = self.classes_[winners]
        return predicted

    @available_if(_tells_probabilities)
    def predict_proba(self, X: Any) -> FloatArray:
        """Probabilities of the classes, where rows were held out in ``fit``.

        Parameters
        ----------
        X : (n_samples, n_features) array or sparse matrix
            Rows.

        Returns
        -------
        (n_samples, n_classes) array
            Columns in the order of ``classes_``. Rows sum to one and agree with
            ``decision_function``.
        """
        rows = self._check_rows(X)
        probabilities = np.empty((rows.shape[0], len(self.classes_)))
        for part, margins in self._margins_in_parts(rows):
            probabilities[part] = self._probabilities(margins)
        return probabilities

    @available_if(_tells_probabilities)
    def predict_log_proba(self, X: Any) -> FloatArray:
        """Logarithms of the probabilities, where rows were held out in ``fit``.

        Parameters
        ----------
        X : (n_samples, n_features) array or sparse matrix
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
    def coef_(self) -> FloatArray:
        """Weights of the features, one row per machine; for ``kernel="linear"`` only.

        Where an estimator standardises, they are those of the standardised features.
        """
        check_is_fitted(self)
        if self.kernel != "linear":
            raise AttributeError(f"coef_ exists for kernel='linear' only, not {self.kernel!r}.")
        with single_threaded_blas():
            product = self.dual_coef_ @ self.support_vectors_
        coef = np.asarray(product.toarray() if is_sparse(product) else product, dtype=np.float64)
        coef.flags.writeable = False  # a change would change no decision
        return coef

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.kernel != "precomputed"
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags

    @abstractmethod
    def _solve(self, problem: Problem) -> list[Expansion]:
        """Train all machines, and set the attributes that are the algorithm's own."""

    def _has_probabilities(self) -> bool:
        """Whether ``fit`` holds rows out, which honest probabilities need."""
        return False

    def _probabilities(self, margins: FloatArray) -> FloatArray:
        """Turn margins of all machines into probabilities of the classes."""
        raise AssertionError("only classifiers that hold rows out have probabilities")

    def _prepare(self, X: Any, y: Any, sample_weight: Any, groups: Any = None) -> Problem:
        X, codes, classes, weights = check_training_rows(self, X, y, sample_weight)
        if weights is not None:
            weights = self._counted(weights)
            if (weights == 1).all():
                weights = None
        X = self._fit_scaling(X, weights)
        kernel = kernel_of_rows(
            self._kernel_name(),
            X,
            weights,
            gamma=self._gamma_rule(),
            degree=self.degree,
            coef0=self.coef0,
        )
        warn_if_flat(kernel, X, weights)
        if weights is not None and (weights[weights > 0] == 1).all():
            weights = None
        return Problem(
            X=X,
            codes=codes,
            classes=classes,
            weights=weights,
            class_weights=self._class_weights(classes, codes, weights),
            kernel=kernel,
            machines=machines_of(len(classes), self.multi_class),
            dtype=self._precision(X),
            groups=groups,
        )

    def _counted(self, weights: FloatArray) -> FloatArray:
        """Return the weights as the machines take them: as they came."""
        return weights

    def _kernel_name(self) -> str | KernelFunction:
        """Return the kernel, or where a choice of it starts."""
        return "rbf" if self.kernel == "cv" else self.kernel

    def _gamma_rule(self) -> float | str:
        """Return what the kernel is first made with: `gamma`, or where a choice of it starts."""
        return "spread" if self.gamma == "cv" else self.gamma

    def _class_weights(
        self, classes: NDArray[Any], codes: IntArray, weights: FloatArray | None
    ) -> FloatArray | None:
        if self.class_weight is None:
            return None
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

    def _row_weights(self, problem: Problem) -> FloatArray:
        """Sample weights, times the weights of the classes."""
        weights = np.ones(len(problem.codes)) if problem.weights is None else problem.weights.copy()
        weights[problem.codes < 0] = 0.0
        if problem.class_weights is not None:
            present = problem.codes >= 0
            weights[present] *= problem.class_weights[problem.codes[present]]
        return moderate(weights)

    def _precision(self, X: Rows) -> Precision:
        return precision(X, self.dtype, self.kernel)

    def _store(self, problem: Problem, machines: list[Expansion]) -> None:
        two_classes = len(problem.classes) == 2
        if two_classes:
            support = machines[0].rows
            self.dual_coef_: Any = machines[0].coefficients.reshape(1, -1)
        else:
            support = np.unique(np.concatenate([m.rows for m in machines]))
            self.dual_coef_ = _side_by_side(machines, support)
        self.classes_ = problem.classes
        self.support_ = support.astype(np.int32, copy=False)
        if problem.kernel.name == "precomputed":
            self.support_vectors_: Rows = np.empty((0, 0))
        else:
            self.support_vectors_ = problem.X[support]
        codes = problem.codes[support]
        self.n_support_ = np.bincount(codes, minlength=len(problem.classes)).astype(np.int32)
        self.intercept_ = np.array([m.intercept for m in machines])
        values = self.dual_coef_.data if is_sparse(self.dual_coef_) else self.dual_coef_
        largest = float(np.abs(values).max(initial=0.0))
        if not np.isfinite([largest, *self.intercept_]).all():
            raise ValueError(
                "Training overflowed, and the model is not finite; scale the features (for "
                "instance with StandardScaler), the kernel or the weights."
            )
        self.gamma_ = problem.kernel.gamma
        self._kernel_: Kernel | KernelSum = problem.kernel
        self._dtype_: Precision = "float64" if largest > MAX_FLOAT32_COEFFICIENT else problem.dtype
        # Rows of one class take part in the same machines: side by side they are cheap to expand.
        self._by_class_ = np.argsort(codes, kind="stable")

    def _check_rows(self, X: Any) -> Rows:
        return self._scaled(check_queries(self, X))

    def _fit_scaling(self, X: Rows, sample_weight: FloatArray | None) -> Rows:
        """Settle how rows are scaled before the kernel sees them, and scale these: not at all."""
        return X

    def _scaled(self, X: Rows) -> Rows:
        """Scale rows as in fit."""
        return X

    def _support_rows(self, Q: Rows, which: Any = slice(None)) -> tuple[Rows, Rows]:
        """Return queries and support rows as the kernel takes them."""
        if self._kernel_.name == "precomputed":
            return Q[:, self.support_[which]], None
        return Q, self.support_vectors_[which]

    def _margins(self, Q: Rows) -> FloatArray:
        """Scores of all machines, of shape (n, n_machines)."""
        if self._kernel_.name == "linear":
            coef = self.coef_.T
            with np.errstate(over="ignore", invalid="ignore"):
                products = Q @ coef if is_sparse(Q) else multiply(Q, coef, n_jobs=self.n_jobs)
                scores = np.asarray(products + self.intercept_, dtype=np.float64)
            return finite_scores(scores, self.kernel)
        order: Any = slice(None) if len(self.classes_) == 2 else self._by_class_
        columns = order
        if isinstance(self._kernel_, KernelSum) and len(self.classes_) > 2:
            n = len(self.support_)
            columns = np.concatenate([k * n + order for k in range(len(self._kernel_.kernels))])
        queries, support = self._support_rows(Q, order)
        sums = self._kernel_.expand(
            queries,
            support,
            self.dual_coef_[:, columns],
            dtype=self._dtype_,
            n_jobs=self.n_jobs,
        )
        sums += self.intercept_
        return finite_scores(sums, self.kernel)

    def _scores(self, margins: FloatArray) -> FloatArray:
        if len(self.classes_) == 2:
            return np.column_stack([-margins[:, 0], margins[:, 0]])
        return class_scores(margins, len(self.classes_), self.multi_class)

    def _scores_in_parts(self, Q: Rows) -> Iterator[tuple[slice, FloatArray]]:
        for part, margins in self._margins_in_parts(Q):
            yield part, self._scores(margins)

    def _margins_in_parts(self, Q: Rows) -> Iterator[tuple[slice, FloatArray]]:
        """Evaluate as many queries at a time as fit the memory limit."""
        per_row = 8 * (3 * self.intercept_.size + 4 * len(self.classes_))
        if self._kernel_.name in ("precomputed", "callable"):
            per_row += 8 * len(self.support_)
        step = max(1024, memory_bytes(self.memory_limit) // 4 // per_row)
        with single_threaded_blas():
            for begin in range(0, Q.shape[0], step):
                part = slice(begin, min(begin + step, Q.shape[0]))
                yield part, self._margins(Q[part])

    def _threads(self) -> int:
        return int(effective_n_jobs(self.n_jobs))

    def _reporter(
        self, n_machines: int, what: str = "largest open step"
    ) -> Callable[[int, int, float], None] | None:
        return reporter(self, n_machines, what)


def _side_by_side(machines: list[Expansion], support: NDArray[Any]) -> sp.csr_array:
    """Coefficients of all machines: all support rows of the first kernel, then of the second, .."""
    data, columns, sizes = [], [], [0]
    for machine in machines:
        places = np.searchsorted(support, machine.rows)
        of_kernels = np.atleast_2d(machine.coefficients)
        used = [k for k, c in enumerate(of_kernels) if len(of_kernels) == 1 or c.any()]
        data += [of_kernels[k] for k in used]
        columns += [k * len(support) + places for k in used]
        sizes.append(len(used) * len(places))
    n_kernels = len(np.atleast_2d(machines[0].coefficients))
    return sp.csr_array(
        (
            np.concatenate([np.empty(0), *data]),  # machines that say nothing have none
            np.concatenate([np.empty(0, dtype=np.intp), *columns]),
            np.cumsum(sizes),
        ),
        shape=(len(machines), n_kernels * len(support)),
    )
