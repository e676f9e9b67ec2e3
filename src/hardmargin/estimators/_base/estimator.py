"""What all estimators share: validation, tags and budgets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from inspect import signature
from numbers import Integral, Real
from operator import attrgetter
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import (
    check_array,
    check_is_fitted,
    check_X_y,
    validate_data,
)

from hardmargin.estimators._base.bad_input import explain
from hardmargin.estimators._base.categories import Categories, EncodedTable
from hardmargin.estimators._base.columns import (
    column_kinds,
    columns_of,
    is_data_frame,
    readable,
    refuse_lazy_frame,
    refuse_no_rows,
    refuse_no_table,
    without_na,
)
from hardmargin.estimators._base.labels import (
    check_label_type,
    check_weights,
    labelled,
    plain_labels,
    refuse_missing_labels,
    refuse_mixed_labels,
)
from hardmargin.estimators._base.one_model import in_one_step, is_fitted_name
from hardmargin.estimators._base.options import Choice
from hardmargin.estimators._base.watching import (
    ENDED_BY,
    CallbackSupportMixin,
    callback_listener,
    first_interrupt_ends,
    with_callbacks,
)
from hardmargin.kernels import (
    GAMMA_RULES,
    NAMED_KERNELS,
    FloatArray,
    Rows,
    canonical,
    check_indices,
    is_sparse,
)
from hardmargin.kernels.blocks import MadeRows
from hardmargin.monitor import Monitor
from hardmargin.progress import shown
from hardmargin.resources import (
    ROWS_SHARE,
    freed_at_once,
    give_back_memory,
    memory_bytes,
    single_threaded_blas,
)
from hardmargin.selection.rows import TrainingRows
from hardmargin.solvers.problem import Solution
from hardmargin.warn import warn_caller

#: Counts that parameters may give: they fit the integers of the compiled core.
COUNT = Interval(Integral, 1, 2**62, closed="both")

#: Threads: a number of them, or -1 for one per core, -2 for one less, and so on.
N_JOBS = (
    Interval(Integral, 1, 2**31 - 1, closed="both"),
    Interval(Integral, -(2**31), -1, closed="both"),
)


class KernelEstimator(CallbackSupportMixin, BaseEstimator):
    """Base of all estimators.

    ``fit`` is one sequence within ``with self._fitting() as monitor:``: validate, scale, choose,
    solve, calibrate, store. It replaces an earlier model in one step (``one_model.py``); methods
    that read the model are marked with ``@on_one_model``.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "gamma": [Interval(Real, 0, None, closed="neither"), Choice(GAMMA_RULES)],
        "kernel": [Choice({*NAMED_KERNELS, "precomputed"}), callable],
        "degree": [Interval(Real, 0, None, closed="left")],
        "coef0": [Interval(Real, None, None, closed="neither")],
        "dtype": [Choice({"auto", "float32", "float64"})],
        "memory_limit": [str, Interval(Real, 0, None, closed="neither"), None],
        "n_jobs": [*N_JOBS, None],
        "max_time": [Interval(Real, 0, None, closed="neither"), None],
        "verbose": ["verbose"],
        "random_state": ["random_state"],
    }

    #: Whether missing numbers are filled after validation.
    _fills_missing: ClassVar[bool] = False

    #: How columns of categories turn into numbers; None if there are no such columns.
    _categories_: Categories | None = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "fit" in cls.__dict__:  # it ends what its callbacks began
            cls.fit = in_one_step(with_callbacks(cls.__dict__["fit"]))

    @contextmanager
    def _fitting(self) -> Iterator[Monitor]:
        """Wrap a fit, which begins without the attributes of an earlier one.

        With ``on_interrupt="keep"``, Ctrl-C ends it with the model so far.
        """
        for name in filter(is_fitted_name, vars(self).copy()):
            del self.__dict__[name]
        has_callbacks = bool(getattr(self, "_skl_callbacks", None))
        listeners = [callback_listener(self)] if has_callbacks else []
        try:
            self._validate_params()
            with single_threaded_blas(), ExitStack() as around:
                if self.memory_limit is not None:
                    memory_bytes(self.memory_limit)  # not every fit needs it, but predictions do
                    around.enter_context(freed_at_once())
                if self.verbose:
                    progress = shown(type(self).__name__, self.verbose)
                    listeners.insert(0, around.enter_context(progress))
                monitor = Monitor(self.max_time, listeners)
                if getattr(self, "on_interrupt", "raise") == "keep":
                    around.enter_context(first_interrupt_ends(monitor))
                yield monitor
                if monitor.stop_reason in ENDED_BY:
                    reason = ENDED_BY[monitor.stop_reason]
                    warn_caller(f"{reason}: the model is the one found so far.")
            if has_callbacks:
                self._callback_fit_ctx.call_on_fit_task_end(estimator=self)
        except KeyboardInterrupt:
            give_back_memory()  # of threads: they may never use it again
            raise

    def _new_generator(self) -> np.random.RandomState:
        """Make the generator of a fit, as ``random_state`` says; None is a fixed seed.

        A fit does so once, and passes it along: a seed would begin again. (With None, a model
        should not change from fit to fit on the same rows. To see how much another shuffle changes
        it, users give a number.)
        """
        seed = 0 if self.random_state is None else self.random_state
        generator: np.random.RandomState = check_random_state(seed)
        return generator

    @property
    def _most_row_bytes(self) -> float:
        """Copies of rows that take more are put into temporary files, if memory is limited."""
        if self.memory_limit is None:
            return np.inf
        return ROWS_SHARE * memory_bytes(self.memory_limit)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Load a model; parameters that its version did not have get their defaults."""
        known = signature(type(self)).parameters.values()
        super().__setstate__({**{p.name: p.default for p in known}, **state})

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.kernel != "precomputed"
        tags.input_tags.pairwise = self.kernel == "precomputed"
        tags.input_tags.allow_nan = self._fills_missing and self.kernel != "precomputed"
        return tags

    def _check_training(self, X: Any, y: Any, sample_weight: Any) -> TrainingRows:
        """Validate rows, labels and weights; there must be at least two classes."""
        if isinstance(y, list | tuple):
            refuse_missing_labels(y)  # among strings, NaN would become the string "nan"
        y = plain_labels(y)
        try:
            X, known = self._validated(X, y=y)
            check_label_type(known)
            labels, codes = np.unique(known, return_inverse=True)
        except (TypeError, ValueError):
            refuse_missing_labels(y)
            refuse_mixed_labels(y)
            raise
        return labelled(X, labels, codes, sample_weight, type(self).__name__)

    def _check_unlabelled(self, X: Any, sample_weight: Any) -> tuple[Rows, FloatArray | None]:
        """Validate rows and weights; at least one row must have a positive weight."""
        X = self._validated(X)
        weights = None if sample_weight is None else check_weights(X, sample_weight)
        if weights is not None and not weights.any():
            raise ValueError(
                f"{type(self).__name__} needs rows of positive weight; sample_weight has none."
            )
        return X, weights

    def _makes_rows_late(self, table: EncodedTable) -> bool:
        """Whether rows of a table turn into numbers only when they are needed."""
        return False

    def _check_queries(self, X: Any) -> Rows:
        """Validate the query rows of a fitted estimator."""
        check_model(self)
        return self._validated(X, reset=False)

    def _validated(self, X: Any, **options: Any) -> Any:
        """Validate rows, and labels where there are some, as scikit-learn does."""
        is_precomputed = self.kernel == "precomputed"
        fills = self._fills_missing and not is_precomputed
        checks = {
            "accept_sparse": False if is_precomputed else "csr",
            "dtype": [np.float64, np.float32],
            "ensure_all_finite": "allow-nan" if fills and not is_sparse(X) else True,
        }
        refuse_lazy_frame(X)
        X = readable(X)
        refuse_no_rows(X, type(self).__name__)
        refuse_no_table(X)
        if fills and is_data_frame(X):
            column_kinds(X, columns_of(self._categories_))  # dates would be taken for numbers
        X = without_na(X, columns_of(self._categories_))
        try:
            with np.errstate(over="ignore", invalid="ignore"):  # NaN is found by a sum
                if self._categories_ is None:
                    validated = validate_data(self, X, **checks, **options)
                else:
                    reset = options.pop("reset", True)
                    validate_data(self, X, reset=reset, skip_check_array=True)
                    check = check_X_y if "y" in options else partial(check_array, input_name="X")
                    table = self._categories_.read(X)
                    if reset and self._makes_rows_late(table):
                        given = (
                            np.zeros((len(table), 1)) if table.numbers is None else table.numbers
                        )
                        _, *labels = check(given, estimator=self, **checks, **options)
                        validated = MadeRows(table), *labels
                    else:
                        validated = check(table[:], estimator=self, **checks, **options)
        except (TypeError, ValueError) as error:
            if is_precomputed and "features" in str(error):
                error.add_note(
                    "With kernel='precomputed', pass the kernel values of the rows against all "
                    "training rows: shape (n_rows, n_training_rows)."
                )
            explain(error, X, self._categories_, fills=fills)
            raise
        rows, *labels = validated if "y" in options else (validated,)
        rows = canonical(rows) if is_sparse(rows) else rows
        if is_precomputed and options.get("reset", True) and rows.shape[0] != rows.shape[1]:
            raise ValueError(
                "kernel='precomputed' takes the square matrix of kernel values between all "
                f"training rows as X, got shape {rows.shape}."
            )
        return (rows, *labels) if labels else rows


def check_model(estimator: BaseEstimator) -> None:
    """Refuse an estimator that is not fitted, or whose sparse attributes are damaged.

    SciPy does not look at the indices of sparse matrices, and would crash on wrong ones.
    """
    check_is_fitted(estimator)
    for name, value in vars(estimator).items():
        for part in value if isinstance(value, list) else [value]:
            if not is_sparse(part):
                continue
            try:
                check_indices(part)
            except ValueError as error:
                raise ValueError(
                    f"{name} of this {type(estimator).__name__} is damaged: {error}. Fit it again, "
                    "or load it from a file that is whole."
                ) from None


def one_or_all(values: Sequence[Any]) -> Any:
    """Return the only machine's value; for many machines, an array, or a list of paths."""
    if len(values) == 1:
        return values[0]
    return list(values) if isinstance(values[0], np.ndarray) else np.array(values)


def publish(
    estimator: BaseEstimator,
    solutions: Sequence[Solution],
    *fields: str,
    **values: Callable[[Any], Any],
) -> None:
    """Set attributes of an estimator from the solutions of its machines.

    There are always ``certificate_``, ``n_iter_`` and ``stop_reason_``.

    Parameters
    ----------
    estimator : estimator
        Gets the attributes.
    solutions : sequence of Solution
        One per machine.
    *fields : str
        Fields of a solution that become attributes too, with an underscore.
    **values : callable
        Further attributes, as functions of a solution.
    """
    for field in ("certificate", "stop_reason", *fields):
        values[f"{field}_"] = attrgetter(field)
    values["n_iter_"] = attrgetter("n_stages")
    for name, value in values.items():
        setattr(estimator, name, one_or_all([value(solution) for solution in solutions]))
