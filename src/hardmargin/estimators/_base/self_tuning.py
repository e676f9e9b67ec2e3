"""What the two self-tuning classifiers share.

They read tables as they come, say which columns are relevant, keep finished steps in a checkpoint,
and fit as many rows as there is time for.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from importlib.metadata import version
from numbers import Integral
from operator import itemgetter
from os import PathLike
from types import CodeType
from typing import Any, ClassVar

import numpy as np
import sklearn
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from hardmargin.checkpoint import Checkpoint, arrays_of, fingerprint
from hardmargin.estimators._base.categories import Categories, EncodedTable, find_categories
from hardmargin.estimators._base.classifier import KernelClassifier
from hardmargin.estimators._base.effects import learn_effects
from hardmargin.estimators._base.growing import FitRows, best_in_time
from hardmargin.estimators._base.missing import count_missing, find_filling
from hardmargin.estimators._base.one_model import fitted_attributes, on_one_model
from hardmargin.kernels import FloatArray, as_blocks
from hardmargin.kernels.blocks import MadeRows
from hardmargin.monitor import Monitor
from hardmargin.selection.folds import given_folds
from hardmargin.selection.growing import Growth
from hardmargin.selection.rows import TrainingRows
from hardmargin.selection.sigmoids import as_rows
from hardmargin.warn import warn_caller

#: Parameters that do not change the result.
WITHOUT_EFFECT = {"checkpoint", "client", "max_time", "n_jobs", "on_interrupt", "verbose"}

#: Tables that take more bytes as numbers are large.
LARGE_TABLE = 2**26


class SelfTuningClassifier(KernelClassifier):
    """Base of the classifiers that tune themselves."""

    _fills_missing = True

    #: What a fit needs to scale columns by their relevance, as the end of a sentence.
    _relevance_needs: ClassVar[str]

    categorical_features: Any
    checkpoint: str | PathLike[str] | None
    cv: Any

    @property
    @on_one_model
    def feature_importances_(self) -> FloatArray:
        """Relevance of the columns, as shares that sum to one.

        It has this name for ``SelectFromModel``, and is not importance: see ``relevance_``.
        """
        check_is_fitted(self)
        if not hasattr(self, "relevance_"):
            raise AttributeError(
                f"This {type(self).__name__} has no feature_importances_, since it scaled no "
                f"columns by their relevance. That needs {self._relevance_needs}."
            )
        return np.asarray(self.relevance_ / self.relevance_.sum())

    def _read_table(
        self, X: Any, y: Any, sample_weight: Any, groups: Any, random: np.random.RandomState
    ) -> TrainingRows:
        """Validate a table, turn its categories into numbers, and fill its missing numbers."""
        if not (isinstance(X, np.ndarray) and isinstance(self.categorical_features, str)):
            self._categories_ = find_categories(X, self.categorical_features)
        return self._filled(self._check_training(X, y, sample_weight), groups, random)

    def _makes_rows_late(self, table: EncodedTable) -> bool:
        """Whether rows wait until a fit needs them: there may be no time for all of a large table.

        Splitters, checkpoints and effects of many categories look at all rows first, and models of
        a part are judged by their probabilities.
        """
        is_plain = self.cv is None or isinstance(self.cv, Integral)
        is_plain = is_plain and self.checkpoint is None and self.memory_limit is None
        is_large = table.nbytes > LARGE_TABLE and not table.categories.has_effects
        return is_plain and is_large and self.max_time is not None and self._holds_out

    def _filled(
        self, rows: TrainingRows, groups: Any, random: np.random.RandomState
    ) -> TrainingRows:
        """Fill the missing numbers of a table whose categories are numbers already.

        Numbers of many categories become what the categories say about the classes.

        Its weights are scaled to count rows: choices need the number of rows, which normalised
        weights hide.
        """
        if rows.weights is not None:
            rows = rows.with_weights(as_rows(rows.weights))
        self.is_categorical_: NDArray[np.bool_] | None = None
        if self._categories_ is not None:
            self.is_categorical_ = np.isin(
                np.arange(self.n_features_in_), self._categories_.columns
            )
        if self.kernel == "precomputed":
            return rows
        if self._categories_ is not None and self._categories_.has_effects:
            rows = self._with_effects(rows, self._categories_, groups, random)
        most_bytes = self._most_row_bytes
        n_missing = None
        if isinstance(rows.X, MadeRows) and rows.weights is None:
            n_missing = _missing_numbers(rows.X.X)
        self._filling_ = find_filling(
            rows.X, rows.weights, self.get_feature_names_out, most_bytes, n_missing
        )
        if self._filling_ is None or self._filling_.is_idle:
            return rows
        names = self.get_feature_names_out()
        fill = partial(self._filling_.transform, feature_names=lambda: names)
        return rows._replace(X=as_blocks(rows.X, most_bytes).map(fill))

    def _with_effects(
        self,
        rows: TrainingRows,
        categories: Categories,
        groups: Any,
        random: np.random.RandomState,
    ) -> TrainingRows:
        """Replace the numbers of many categories by what the categories say about the classes."""
        if isinstance(self.cv, Iterator):
            raise ValueError(
                "Columns of many categories need splits that can be read again; turn them into a "
                "list: cv=list(cv)."
            )
        blocks, codes = as_blocks(rows.X), rows.codes
        is_number = categories.of_effects
        numbers = blocks.each(itemgetter((slice(None), is_number)))
        folds = given_folds(self.cv, rows.X, codes, groups)
        values = np.concatenate(numbers).astype(np.intp)
        tables, encoded = learn_effects(values, codes, rows.weights, folds, random)
        names = [] if len(rows.classes) == 2 else list(map(str, rows.classes))
        self._categories_ = categories.with_effects(tables, names)
        columns = self._categories_.of_effects
        into = partial(_put, columns=columns, others=~is_number)
        return rows._replace(X=blocks.mapped(into, np.hstack(encoded), len(columns)))

    def _store_relevance(self, relevance: FloatArray) -> None:
        """Keep the relevance of the columns that kernels see, and of the input columns."""
        self.encoded_relevance_ = relevance
        self.relevance_ = np.zeros(self.n_features_in_)
        np.maximum.at(self.relevance_, self._origins, relevance)

    def _number_rows(self, rows: NDArray[np.intp]) -> None:
        """Make attributes of a model of some rows refer to all rows.

        Parameters
        ----------
        rows : (n_some,) int array
            Numbers of its rows among all rows, ascending.
        """
        self.support_ = rows[self.support_].astype(np.int32)

    @contextmanager
    def _resumed(self, rows: TrainingRows, groups: Any, monitor: Monitor) -> Iterator[None]:
        """Let a fit with a checkpoint use the steps that it has made before, and keep its steps."""
        if self.checkpoint is None:
            yield
            return
        monitor.checkpoint = Checkpoint(self.checkpoint, self._name_of_fit(rows, groups))
        try:
            yield
        except BaseException:
            monitor.checkpoint.write()
            raise
        if monitor.seconds_left > 0 and not monitor.was_cut_short:
            monitor.checkpoint.remove()
        else:
            monitor.checkpoint.write()

    def _name_of_fit(self, rows: TrainingRows, groups: Any) -> str:
        """Name this fit: fits with another result have another name."""
        weights = np.empty(0) if rows.weights is None else rows.weights
        parameters = self.get_params(deep=False)
        described = [
            (name, _described(parameters[name]))
            for name in sorted(parameters)
            if name not in WITHOUT_EFFECT
        ]
        among = [] if groups is None else [np.asarray(groups)]
        labels = [rows.classes, rows.codes, weights, *among]
        versions = [version("hardmargin"), np.__version__, sklearn.__version__]
        return fingerprint(
            [type(self).__name__, *versions, *described, *arrays_of(rows.X), *labels]
        )

    def _fit_in_time(
        self,
        rows: TrainingRows,
        groups: Any,
        growth: Growth | None,
        fit_rows: FitRows,
        random: np.random.RandomState,
        monitor: Monitor,
    ) -> int:
        """Train on as many rows as there is time for; return how many the model has seen.

        Without `growth`, that is all of them.
        """
        if growth is None:
            return fit_rows(self, rows.all_made(), groups, random, monitor)
        best = best_in_time(self, rows, groups, growth, fit_rows, random, monitor)
        self.__dict__.update(fitted_attributes(best.model))
        random.set_state(best.random.get_state())  # one that users gave moves on with every fit
        n_known: int = self.n_samples_fit_
        is_part = n_known < growth.n_rows
        for message, category in best.warnings:
            if is_part and "max_time" in message:
                continue  # the warning below says more
            warn_caller(message, category)
        if is_part:
            warn_caller(
                f"max_time={self.max_time:g} is too short for all rows: the model was trained on "
                f"{n_known:,} of {growth.n_rows:,}. Raise max_time to use more of them."
            )
        return n_known


def _missing_numbers(table: EncodedTable) -> NDArray[np.intp]:
    """Count the missing values of every column of numbers; those of categories have none."""
    counts = np.zeros(table.shape[1], dtype=np.intp)
    if table.numbers is not None:
        counts[table.are_numbers] = count_missing(table.numbers)
    return counts


def _put(
    X: FloatArray, encoded: FloatArray, columns: NDArray[np.bool_], others: NDArray[np.bool_]
) -> FloatArray:
    """Put encoded columns among those columns of rows that stay as they are."""
    out = np.empty((len(X), len(columns)), dtype=X.dtype)
    out[:, columns], out[:, ~columns] = encoded, X[:, others]
    return out


def _described(value: Any) -> Any:
    """Return what a parameter looks like, the same in every process."""
    if isinstance(value, np.random.RandomState):
        return fingerprint(value.get_state())
    if callable(value) and hasattr(value, "__qualname__"):
        if "<" in value.__qualname__:  # all lambdas of a module have one name
            raise ValueError(
                "checkpoint needs functions that can be told apart, so lambdas and functions "
                "within functions cannot be used; define the kernel at the top of a module."
            )
        name, code = f"{value.__module__}.{value.__qualname__}", getattr(value, "__code__", None)
        if code is None:
            return name
        constants = [one for one in code.co_consts if not isinstance(one, CodeType)]
        return [name, code.co_code, constants]
    if isinstance(value, list | tuple):
        return [_described(one) for one in value]
    if isinstance(value, np.ndarray):
        return fingerprint([value])
    if isinstance(value, Iterator):
        raise ValueError(
            "checkpoint needs splits that can be read again; turn them into a list: cv=list(cv)."
        )
    return repr(value)
