"""Fits in limited time: few rows first, then more; the best of these fits is the model.

1. The rows are put in a random order, and some at its end are set aside.
2. Models of more and more rows are fitted as long as there is time (``selection/growing.py``). Rows
   are drawn by class, so that each model has rows of every class, and none has a row that is set
   aside, unless it has all rows.
3. The rows set aside judge the models. A model of all rows is the one that a fit without a limit
   would give, and is used if it was finished in time; otherwise cross-validation judges it.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from numbers import Integral
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hardmargin.kernels import as_blocks
from hardmargin.monitor import Monitor
from hardmargin.resources import give_back_memory
from hardmargin.selection.calibration import log_loss
from hardmargin.selection.folds import Folds, make_folds, random_ranks, subsample
from hardmargin.selection.frequencies import Frequencies
from hardmargin.selection.growing import MAX_ROWS_ASIDE, Growth, growing_sizes
from hardmargin.selection.rows import TrainingRows
from hardmargin.warn import Warned, held_back

if TYPE_CHECKING:
    from hardmargin.estimators._base.self_tuning import SelfTuningClassifier

#: Trains a model on rows that have been read, in place; returns how many of them it has seen.
FitRows: TypeAlias = Callable[[Any, TrainingRows, Any, np.random.RandomState, Monitor], int]


@dataclass(frozen=True)
class GrownFit:
    """A model of some rows, or of all.

    Attributes
    ----------
    model : SelfTuningClassifier
        The model; its attributes refer to all rows.
    warnings : list of Warned
        What its fit warned of.
    random : RandomState
        The generator, as its fit has left it.
    """

    model: SelfTuningClassifier
    warnings: list[Warned]
    random: np.random.RandomState


def best_in_time(
    estimator: SelfTuningClassifier,
    rows: TrainingRows,
    groups: Any,
    growth: Growth,
    fit_rows: FitRows,
    random: np.random.RandomState,
    monitor: Monitor,
) -> GrownFit:
    """Fit more and more rows, and return the best model.

    Each fit has a copy of the generator, so that a model of all rows is that of a fit without a
    limit.
    """
    codes = rows.codes
    ranks = random_ranks(codes, copy.deepcopy(random))
    aside = np.flatnonzero((codes >= 0) & ~subsample(codes, ranks, growth.largest_part))
    aside = aside[np.argsort(ranks[aside])][:MAX_ROWS_ASIDE]
    folds = None
    if not (estimator.cv is None or isinstance(estimator.cv, Integral)):
        folds = make_folds(estimator.cv, rows.X, codes, groups=groups)
        groups = None
    fit_some = partial(_fit_some, estimator, rows, folds, groups, fit_rows)
    best, least = None, math.inf
    for size in growing_sizes(growth, monitor):
        # The first fit must leave a model, however short the time; others count if they end.
        watch = monitor if best is None else monitor.undivided()
        give_back_memory()  # memory that smaller fits have freed would count towards this one
        if size < growth.n_rows:
            some = np.flatnonzero(subsample(codes, ranks, size))
            fit = fit_some(some, copy.deepcopy(random), watch.without_checkpoint())
            loss = _judge(fit.model, rows, aside)
            if best is None or loss < least:
                best, least = fit, loss
            continue
        fit = fit_some(None, copy.deepcopy(random), watch)
        is_finished = monitor.seconds_left > 0
        if best is None or is_finished or fit.model.cv_log_loss_ < best.model.cv_log_loss_:
            best = fit
    assert best is not None  # the first fit is always made
    return best


def _fit_some(
    estimator: SelfTuningClassifier,
    rows: TrainingRows,
    folds: Folds | None,
    groups: Any,
    fit_rows: FitRows,
    some: NDArray[np.intp] | None,
    random: np.random.RandomState,
    monitor: Monitor,
) -> GrownFit:
    """Fit a copy of the estimator, which has read the table, to some rows; None is all rows.

    Splits that were given, or made by a splitter, are those of all rows in every fit.
    """
    model = copy.copy(estimator)
    if folds is not None:
        which = slice(None) if some is None else some
        pairs = zip(folds.train, folds.test, strict=True)
        model.cv = [(train[which], test[which]) for train, test in pairs]
    if some is None:
        rows = rows.all_made()
    else:
        if estimator.kernel == "precomputed":
            X = rows.X[np.ix_(some, some)]
        else:
            X = as_blocks(rows.X, estimator._most_row_bytes)[some]
        rows = TrainingRows(
            X,
            rows.codes[some],
            rows.classes,
            None if rows.weights is None else rows.weights[some],
            is_part=True,
        )
    with held_back() as held:
        model.n_samples_fit_ = fit_rows(model, rows, groups, random, monitor)
    if some is not None:
        model._number_rows(some)
    return GrownFit(model, held, random)


def _judge(model: SelfTuningClassifier, rows: TrainingRows, aside: NDArray[np.intp]) -> float:
    """Log-loss of the rows set aside, weighted.

    A model that held out none itself is calibrated by them, and worse than any other: nothing in it
    was chosen.
    """
    codes, X = rows.codes[aside], model._scaled(rows.X[aside])
    weights = np.ones(len(aside)) if rows.weights is None else rows.weights[aside]
    if model.class_weight is not None:
        weights = weights * model._class_weights(rows.classes, rows.codes, rows.weights)[codes]
    if isinstance(model._calibration_, Frequencies):
        model._calibrate_on(X, codes, weights)
        return math.inf
    return log_loss(model._probabilities(X), codes, weights)
