"""Probabilities of estimators that hold rows out in fit."""

from __future__ import annotations

from abc import abstractmethod
from itertools import combinations
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

from hardmargin.estimators._base.classifier import KernelClassifier
from hardmargin.estimators._base.problem import Problem
from hardmargin.estimators._base.warn import warn_caller
from hardmargin.kernels import FloatArray
from hardmargin.selection.calibration import softmax_scale
from hardmargin.selection.evidence import as_rows
from hardmargin.selection.folds import Folds
from hardmargin.selection.held_out import HeldOut

#: Rows that the softmax of many classes is fitted to.
MAX_SCALED_ROWS = 5_000

#: How much steeper the pairs' sigmoids are in the decision between many classes.
STEEPER = 4.0

#: Smaller probabilities count as this.
_LEAST = 1e-9

#: The largest probability of a side that is not predicted.
_BELOW_HALF = float(np.nextafter(0.5, 0.0))


class ProbabilityMixin(KernelClassifier):
    """``predict_proba`` from the slopes of the machines' sigmoids, where ``fit`` could find any.

    A machine's probability of its positive side is ``sigmoid(slope * margin)``. With many classes
    the decision is the sum of a class's probabilities over its pairs, made steeper: a pair that has
    nothing to do with a row should not whisper. The probabilities are the softmax of the mean log
    of a class's pairwise probabilities, sharpened by tau and given out in the order of the
    decision. (Each does better at its own task than the other would: over 18 data sets 15.9 %
    errors against 16.4, and a log-loss of .42 against .48.)

    In ``fit``, subclasses set ``_slopes_`` (None where nothing was held out) and, once the machines
    are stored, call `_fit_probabilities`.
    """

    _slopes_: FloatArray | None
    _tau_: float
    cv_error_: float
    cv_log_loss_: float

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Train on rows X with labels y.

        Parameters
        ----------
        X : (n_samples, n_features) array or sparse matrix
            Training rows; for ``kernel="precomputed"`` the (n_samples, n_samples) kernel matrix.
        y : (n_samples,) array
            Labels of any type.
        sample_weight : (n_samples,) array, optional
            Weights; a weight of two equals the row twice, a weight of zero its absence. Weights
            that add up to less than ``(sum w)**2 / sum(w**2)``, the effective number of rows, are
            scaled up to it, so that normalised weights do not look like too few rows.
        groups : (n_samples,) array, optional
            Rows that belong together, for a splitter that is given as `cv`; the notes say how they
            come through ``cross_val_score`` and searches.

        Returns
        -------
        self

        Notes
        -----
        Where a splitter outside needs groups as well as `cv`, both must get them. Without metadata
        routing, these are two arguments::

            cross_val_score(clf, X, y, cv=GroupKFold(5), groups=g, params={"groups": g})

        hands the first to the splitter and the second to ``fit``; ``cross_validate`` and
        ``cross_val_predict`` do the same. In a pipeline the second has the name of the step,
        ``params={"ensemblesvc__groups": g}``. A search keeps what is called groups for its own
        splitter, so that only a pipeline can be searched::

            pipeline = make_pipeline(EnsembleSVC(cv=GroupKFold(3)))
            search = GridSearchCV(pipeline, grid, cv=GroupKFold(5))
            search.fit(X, y, groups=g, ensemblesvc__groups=g)

        With ``sklearn.set_config(enable_metadata_routing=True)`` one argument is for both, if the
        classifier asks for it, in a pipeline or not::

            clf = EnsembleSVC(cv=GroupKFold(3)).set_fit_request(groups=True)
            cross_val_score(clf, X, y, cv=GroupKFold(5), params={"groups": g})
            GridSearchCV(clf, grid, cv=GroupKFold(5)).fit(X, y, groups=g)
        """
        return self._fit(X, y, sample_weight, groups)

    @abstractmethod
    def _holds_out(self) -> bool:
        """Whether ``fit`` would hold rows out, with the parameters as they are."""

    def _counted(self, weights: FloatArray) -> FloatArray:
        # Choices rest on a number of rows, which normalised weights would hide.
        return as_rows(weights)

    def _has_probabilities(self) -> bool:
        return self._slopes_ is not None if hasattr(self, "_slopes_") else self._holds_out()

    def _probabilities(self, margins: FloatArray) -> FloatArray:
        assert self._slopes_ is not None
        if len(self.classes_) == 2:
            positive = machine_probabilities(margins, self._slopes_)
            return np.hstack([1.0 - positive, positive])
        values = softmax(self._tau_ * self._mean_logs(margins), axis=1)
        return in_order_of(self._scores(margins), values)

    def _mean_logs(self, margins: FloatArray) -> FloatArray:
        """Mean log of each class's probabilities in its machines."""
        assert self._slopes_ is not None
        likely = machine_probabilities(margins, self._slopes_)
        logs, of_others = (np.log(np.maximum(p, _LEAST)) for p in (likely, 1.0 - likely))
        if self.multi_class == "ovr":
            return logs
        n_classes = len(self.classes_)
        return sums_over_pairs(logs, of_others, n_classes) / (n_classes - 1)

    def _fit_probabilities(
        self, problem: Problem, held_out: HeldOut, random_state: np.random.RandomState
    ) -> None:
        """Settle how sharp the probabilities are, and judge the whole by the rows held out."""
        margins, rows = self._held_out_margins(problem, held_out, random_state)
        codes, weights = problem.codes[rows], self._row_weights(problem)[rows]
        self._tau_ = 1.0
        if len(self.classes_) > 2:
            self._tau_ = softmax_scale(self._mean_logs(margins), codes, weights)
        scores = self._scores(margins)
        winners = scores[:, 1] >= 0 if scores.shape[1] == 2 else scores.argmax(axis=1)
        own = self._probabilities(margins)[np.arange(len(codes)), codes]
        losses = -np.log(np.maximum(own, np.finfo(np.float64).tiny))
        self.cv_log_loss_ = float(np.average(losses, weights=weights))
        self.cv_error_ = float(np.average(winners != codes, weights=weights))

    def _held_out_margins(
        self, problem: Problem, held_out: HeldOut, random_state: np.random.RandomState
    ) -> tuple[FloatArray, NDArray[np.intp]]:
        """Margins of held-out rows in all machines, and which rows they are.

        A row that was held out several times is there as often: a mean of its margins would look
        better than any margin to come. A machine that has nothing to do with a row's class never
        trained on it: it scores the row as it is in the end.
        """
        if len(self.classes_) == 2:
            return held_out.scores[:, None] + self.intercept_, held_out.rows
        turns = _turns(held_out)
        rows = np.unique(held_out.rows)
        if len(rows) > MAX_SCALED_ROWS:
            rows = np.sort(random_state.permutation(rows)[:MAX_SCALED_ROWS])
        in_the_end = self._margins(problem.X[rows])
        position = np.full(len(problem.codes), -1)
        position[rows] = np.arange(len(rows))
        margins, of_margins = [], []
        for turn in range(int(turns.max()) + 1):
            is_of_turn = (turns == turn) & (position[held_out.rows] >= 0)
            at, machines = position[held_out.rows[is_of_turn]], held_out.machines[is_of_turn]
            of_turn = in_the_end.copy()
            of_turn[at, machines] = held_out.scores[is_of_turn] + self.intercept_[machines]
            there = np.unique(at)
            margins.append(of_turn[there])
            of_margins.append(rows[there])
        return np.concatenate(margins), np.concatenate(of_margins)

    def _scores(self, margins: FloatArray) -> FloatArray:
        if self._slopes_ is None or len(self.classes_) == 2:
            return super()._scores(margins)
        if self.multi_class == "ovr":
            return machine_probabilities(margins, self._slopes_)
        likely = machine_probabilities(margins, STEEPER * self._slopes_)
        return sums_over_pairs(likely, 1.0 - likely, len(self.classes_))


def _turns(held_out: HeldOut) -> NDArray[np.intp]:
    """How often the row of each score was held out before, in the same machine."""
    n = len(held_out.rows)
    order = np.lexsort((np.arange(n), held_out.rows, held_out.machines))
    machines, rows = held_out.machines[order], held_out.rows[order]
    is_first = np.ones(n, dtype=bool)
    is_first[1:] = (machines[1:] != machines[:-1]) | (rows[1:] != rows[:-1])
    begins = np.maximum.accumulate(np.where(is_first, np.arange(n), 0))
    turns = np.empty(n, dtype=np.intp)
    turns[order] = np.arange(n) - begins
    return turns


def machine_probabilities(margins: FloatArray, slopes: FloatArray) -> FloatArray:
    """Probabilities of the machines' positive sides: at least a half exactly where it is chosen."""
    with np.errstate(over="ignore"):
        positive = np.asarray(expit(slopes * margins), dtype=np.float64)
    return np.where(margins < 0, np.minimum(positive, _BELOW_HALF), positive)


def sums_over_pairs(of_positive: FloatArray, of_negative: FloatArray, n_classes: int) -> FloatArray:
    """Add up what the machine of every pair says of its two classes."""
    sums = np.zeros((n_classes, len(of_positive)))
    for m, (i, j) in enumerate(combinations(range(n_classes), 2)):
        sums[j] += of_positive[:, m]
        sums[i] += of_negative[:, m]
    return sums.T


def in_order_of(scores: FloatArray, values: FloatArray) -> FloatArray:
    """Give out each row's values so that the largest goes to the largest score, and so on."""
    ordered = np.empty_like(values)
    # Among equal scores the first is the one that is predicted.
    ranks = np.argsort(-scores, axis=1, kind="stable")
    np.put_along_axis(ordered, ranks, -np.sort(-values, axis=1), axis=1)
    return ordered


def warn_of_shortage(folds: Folds) -> None:
    """Say what is wrong with the splits, if anything is."""
    if folds.shortage:
        warn_caller(f"Cross-validation is less than it should be: {folds.shortage}.", UserWarning)
