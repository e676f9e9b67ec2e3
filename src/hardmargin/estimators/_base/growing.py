"""Fits in limited time: of few rows first, then of more, and the best of them is the model.

1. The rows are put in a random order, and some at its end are set aside.
2. Models of more and more rows are fitted as long as there is time (``selection/growing.py``). They
   are drawn by class, so that each has rows of every class, and none has a row that is set aside,
   unless it has all rows.
3. The rows set aside judge the models. A model of all rows is the one that a fit without a limit
   would give, and is used if it was finished in time; otherwise cross-validation judges it.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from numbers import Integral
from os import PathLike
from typing import Any

import numpy as np
import sklearn
from numpy.typing import NDArray

from hardmargin.checkpoint import Checkpoint, arrays_of, fingerprint
from hardmargin.estimators._base.classifier import KernelClassifier
from hardmargin.estimators._base.estimator import TrainingRows, random_numbers
from hardmargin.kernels.blocks import some_rows
from hardmargin.monitor import Monitor
from hardmargin.resources import give_back_memory
from hardmargin.selection.calibration import log_loss
from hardmargin.selection.folds import (
    ROWS_PER_CLASS,
    Folds,
    make_folds,
    random_ranks,
    subsample,
)
from hardmargin.selection.growing import FIRST_ROWS, Growth, growing_sizes
from hardmargin.warn import Warned, held_back, warn_caller

#: Share of the rows that is set aside to compare models, and the most rows.
SHARE_ASIDE = 0.1
MAX_ROWS_ASIDE = 2_000

#: Parameters that do not change the result.
WITHOUT_EFFECT = {"checkpoint", "max_time", "n_jobs", "on_interrupt", "verbose"}

#: A first fit of more than this share of the rows would save too little time.
LARGEST_FIRST_SHARE = 0.5


class GrowingClassifier(KernelClassifier):
    """Base of classifiers whose time limit decides how many rows they are trained on.

    They have the parameter ``checkpoint``.
    """

    checkpoint: str | PathLike[str] | None

    @property
    def _grows(self) -> bool:
        """Whether to train on fewer rows where there is no time for all of them."""
        raise NotImplementedError

    def _fit_rows(self, rows: TrainingRows, groups: Any, monitor: Monitor) -> int:
        """Train on rows that have been read; return how many of them the model has seen."""
        raise NotImplementedError

    def _largest_part(self, rows: TrainingRows) -> int:
        """Return the most rows that are worth fitting if not all are."""
        return len(rows.codes)

    def _cost_of_all(self, rows: TrainingRows) -> float:
        """Return the time that all rows take, relative to a part that would have as many."""
        return 1.0

    def _linear(self, rows: TrainingRows) -> tuple[int | None, int, float]:
        """Return above how many rows time grows in proportion, and how (see `Growth`)."""
        return None, 1, 1.0

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
        assert self.checkpoint is not None
        monitor.checkpoint = Checkpoint(self.checkpoint, self._name_of_fit(rows, groups))
        try:
            yield
        except BaseException:
            monitor.checkpoint.write()
            raise
        if monitor.seconds_left > 0:
            monitor.checkpoint.remove()
        else:
            monitor.checkpoint.write()

    def _name_of_fit(self, rows: TrainingRows, groups: Any) -> str:
        """Tell this fit from others that have another result."""
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

    def _fit_in_time(self, rows: TrainingRows, groups: Any, monitor: Monitor) -> int:
        """Train on as many rows as there is time for; return how many the model has seen."""
        n_rows = int((rows.codes >= 0).sum())
        first = max(FIRST_ROWS, ROWS_PER_CLASS * len(rows.classes))
        if not self._grows or first > LARGEST_FIRST_SHARE * n_rows:
            return self._fit_rows(rows, groups, monitor)
        largest = n_rows - min(math.ceil(SHARE_ASIDE * n_rows), MAX_ROWS_ASIDE)
        largest = max(min(largest, self._largest_part(rows)), first)
        growth = Growth(n_rows, largest, first, self._cost_of_all(rows), *self._linear(rows))
        best = _best_in_time(self, rows, groups, growth, monitor)
        self.__dict__.update({k: v for k, v in vars(best.model).items() if k.endswith("_")})
        mine, used = self.random_state, best.model.random_state
        if isinstance(mine, np.random.RandomState) and isinstance(used, np.random.RandomState):
            mine.set_state(used.get_state())  # it moves on with every fit
        n_known: int = self.n_samples_fit_
        is_part = n_known < n_rows
        for message, category in best.warnings:
            if is_part and "max_time" in message:
                continue  # the warning below says more
            warn_caller(message, category)
        if is_part:
            warn_caller(
                f"max_time={self.max_time:g} is too short for all rows: the model was trained on "
                f"{n_known:,} of {n_rows:,}. Raise max_time to use more of them."
            )
        return n_known


def _described(value: Any) -> Any:
    """Return what a parameter looks like, the same in every process."""
    if isinstance(value, np.random.RandomState):
        return fingerprint(value.get_state())
    if callable(value) and hasattr(value, "__qualname__"):
        return f"{value.__module__}.{value.__qualname__}"
    if isinstance(value, list | tuple):
        return [_described(one) for one in value]
    if isinstance(value, np.ndarray):
        return fingerprint([value])
    if isinstance(value, Iterator):
        raise ValueError(
            "checkpoint needs splits that can be read again; turn them into a list: cv=list(cv)."
        )
    return repr(value)


@dataclass(frozen=True)
class _Fit:
    """A model of some rows, or of all.

    Attributes
    ----------
    model : GrowingClassifier
        The model; its attributes refer to all rows.
    warnings : list of Warned
        What its fit warned of.
    """

    model: GrowingClassifier
    warnings: list[Warned]


def _best_in_time(
    estimator: GrowingClassifier, rows: TrainingRows, groups: Any, growth: Growth, monitor: Monitor
) -> _Fit:
    """Fit more and more rows, and return the best model."""
    codes = rows.codes
    ranks = random_ranks(codes, random_numbers(copy.deepcopy(estimator.random_state)))
    aside = np.flatnonzero((codes >= 0) & ~subsample(codes, ranks, growth.largest_part))
    aside = aside[np.argsort(ranks[aside])][:MAX_ROWS_ASIDE]
    folds = None
    if not (estimator.cv is None or isinstance(estimator.cv, Integral)):
        folds = make_folds(estimator.cv, rows.X, codes, groups=groups)
        groups = None
    best, least = None, math.inf
    for size in growing_sizes(growth, monitor):
        # The first fit must leave a model, however short the time; others count if they end.
        watch = monitor if best is None else monitor.undivided()
        give_back_memory()  # what smaller fits have freed would count on top of this one
        if size < growth.n_rows:
            some = np.flatnonzero(subsample(codes, ranks, size))
            fit = _fit_some(estimator, rows, some, folds, groups, watch)
            loss = _loss(fit.model, rows, aside)
            if best is None or loss < least:
                best, least = fit, loss
            continue
        fit = _fit_some(estimator, rows, None, folds, groups, watch)
        is_finished = monitor.seconds_left > 0
        if best is None or is_finished or fit.model.cv_log_loss_ < best.model.cv_log_loss_:
            best = fit
    assert best is not None  # the first fit is always made
    return best


def _fit_some(
    estimator: GrowingClassifier,
    rows: TrainingRows,
    some: NDArray[np.intp] | None,
    folds: Folds | None,
    groups: Any,
    monitor: Monitor,
) -> _Fit:
    """Fit a copy of the estimator, which has read the table, to some rows; None is all rows.

    Splits that were given, or made by a splitter, are those of all rows in every fit.
    """
    model = copy.copy(estimator)
    model.random_state = copy.deepcopy(estimator.random_state)
    if folds is not None:
        which = slice(None) if some is None else some
        pairs = zip(folds.train, folds.test, strict=True)
        model.cv = [(train[which], test[which]) for train, test in pairs]
    if some is not None:
        if estimator.kernel == "precomputed":
            X = rows.X[np.ix_(some, some)]
        else:
            X = some_rows(rows.X, some, estimator._most_row_bytes)
        rows = TrainingRows(
            X,
            rows.codes[some],
            rows.classes,
            None if rows.weights is None else rows.weights[some],
            is_part=True,
        )
    with held_back() as held:
        model.n_samples_fit_ = model._fit_rows(rows, groups, monitor)
    if some is not None:
        model._number_rows(some)
    return _Fit(model, held)


def _loss(model: GrowingClassifier, rows: TrainingRows, aside: NDArray[np.intp]) -> float:
    """Log-loss of the rows set aside, weighted; infinite for a model without probabilities."""
    if model._calibration_ is None:
        return math.inf
    codes, X = rows.codes[aside], rows.X[aside]
    weights = np.ones(len(aside)) if rows.weights is None else rows.weights[aside]
    if model.class_weight is not None:
        weights = weights * model._class_weights(rows.classes, rows.codes, rows.weights)[codes]
    return log_loss(model._probabilities(model._scaled(X)), codes, weights)
