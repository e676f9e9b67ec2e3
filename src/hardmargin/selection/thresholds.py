"""Where held-out scores are cut, and how steep their sigmoids are.

1. Platt's sigmoid is fitted to the held-out scores of every machine, and another one that is one
   half at a score of zero, or at a threshold that is given. Scores of zero are those of rows far
   from all others: Platt's log-odds there stay near those of the shares of the classes.
2. The constant votes, too (``constant.py``). As far as a sigmoid is not trusted, its log-odds are
   drawn towards those of the shares of the classes; without Platt's offset, towards zero.
3. Platt's threshold is used if its sigmoid, drawn like this, is clearly better.
4. Class weights move the threshold.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from hardmargin.kernels import FloatArray
from hardmargin.selection.calibration import HeldOut
from hardmargin.selection.constant import trust
from hardmargin.selection.sigmoids import SLOPE_BOUNDS, as_rows, platt, platt_slope
from hardmargin.warn import warn_caller

#: Platt's threshold is used if it raises the log-likelihood of the held-out rows by more than this.
#: With several machines the gain must be larger, with no more errors: they add up in the decision.
LEAST_GAIN = 0.25
LEAST_GAIN_OF_MANY = 1.0

#: The same for machines, of several, whose scores say nothing about the classes.
LEAST_GAIN_OF_SHARES = 10.0

#: Log-likelihood that a sigmoid must gain to be trusted as much as the shares of the classes: it
#: has two numbers, and the best of many settings.
COST = 4.0


class Cuts(NamedTuple):
    """Sigmoids of machines: ``P(positive) = sigmoid(slope * (score - threshold))``.

    Attributes
    ----------
    thresholds, slopes : (n_machines,) arrays
        Of all machines; slopes are positive.
    trust : (n_judged,) array
        How far the sigmoids of machines with held-out scores are trusted.
    """

    thresholds: FloatArray
    slopes: FloatArray
    trust: FloatArray


class _Line(NamedTuple):
    """Log-odds ``slope * score + offset``.

    Attributes
    ----------
    slope, offset : float
        Of the log-odds.
    trust : float
        How far they were trusted.
    loss : float
        Negative log-likelihood of the labels.
    """

    slope: float
    offset: float
    trust: float
    loss: float

    @property
    def threshold(self) -> float:
        return -self.offset / self.slope


class _Scores:
    """Held-out scores of one machine."""

    def __init__(self, held_out: HeldOut, part: slice, weights: FloatArray | None) -> None:
        self.scores, self.positive = held_out.scores[part], held_out.positive[part]
        self.weights = weights
        self.rows = np.ones(len(self.scores)) if weights is None else as_rows(weights)
        # A row that is held out several times is one row.
        turns = len(self.scores) / len(np.unique(held_out.rows[part]))
        self.n_positive, self.n_negative = (
            float(self.rows[side].sum()) / turns for side in (self.positive, ~self.positive)
        )
        self.log_odds = float(np.log((self.n_positive + 1) / (self.n_negative + 1)))

    def slope_around(self, threshold: float) -> float:
        """Slope of the sigmoid that is one half at a threshold."""
        return platt_slope(self.scores - threshold, self.positive, self.weights)

    def around(self, threshold: float) -> _Line:
        """Log-odds that are zero at a threshold, drawn towards zero."""
        slope = self.slope_around(threshold)
        return self.drawn(slope, -slope * threshold, 0.0)

    def drawn(self, slope: float, offset: float, constant: float) -> _Line:
        """Draw log-odds towards a constant, as far as they are not trusted."""
        n_rows = self.rows.sum()
        loss = self._loss(slope, offset) / n_rows
        share = float(trust(loss, self.n_positive, self.n_negative, cost=COST))
        slope, offset = share * slope, share * offset + (1.0 - share) * constant
        return _Line(slope, offset, share, self._loss(slope, offset))

    def _loss(self, slope: float, offset: float) -> float:
        z = slope * self.scores + offset
        return float(self.rows @ (np.logaddexp(0, z) - self.positive * z))

    def errors(self, threshold: float) -> float:
        """Rows on the wrong side of a threshold."""
        return float(self.rows[(self.scores >= threshold) != self.positive].sum())


def cut_machines(
    held_out: HeldOut,
    weights: FloatArray | None,
    log_ratios: Sequence[float | None],
    threshold: float | None = None,
    reach: float = np.inf,
) -> Cuts:
    """Choose thresholds and slopes of all machines by their held-out scores.

    Parameters
    ----------
    held_out : HeldOut
        The scores, machine after machine.
    weights : (n_rows,) array or None
        How many rows each row stands for.
    log_ratios : sequence of float or None
        For every machine, the log of the weight of the negative class over that of the positive
        one. It moves the threshold, which is then always Platt's.
    threshold : float or None
        A fixed threshold. Otherwise Platt's is used where it raises the likelihood (with several
        machines, if clearly and without more errors), and zero elsewhere. Platt's may do harm
        for rows far from all others, whose scores are 0. Where scores say nothing about the
        classes, one that is far away takes its place, so that the larger class is predicted.
    reach : float
        How far Platt's log-odds at a score of zero may be from those of the shares of the classes.
    """
    judged, starts = np.unique(held_out.machines, return_index=True)
    starts = np.append(starts, len(held_out.machines))
    of_scores = None if weights is None else weights[held_out.rows]
    fit = platt(held_out.scores, held_out.positive, of_scores, starts, reach)  # 1.
    thresholds, slopes = np.full((2, len(log_ratios)), np.nan)
    shares = np.empty(len(judged))
    for k, m in enumerate(judged):
        part = slice(starts[k], starts[k + 1])
        its = _Scores(held_out, part, None if of_scores is None else of_scores[part])
        platts = float(fit.slopes[k]), float(fit.offsets[k])
        if threshold is not None:
            found = _around(its, threshold, platts[0], log_ratios[m])
        else:
            found = _chosen(its, *platts, log_ratios[m], is_only=len(log_ratios) == 1)
        thresholds[m], slopes[m], shares[k] = found
    if n_reversed := int((fit.slopes <= 0).sum()):
        which = f" of {n_reversed} of {len(judged)} machines" if len(judged) > 1 else ""
        warn_caller(
            f"The held-out scores{which} say nothing about the classes: probabilities are close to "
            f"{'one half' if threshold is not None else 'the shares of the classes'}. Are the "
            "labels right?",
            UserWarning,
        )
    # Machines without held-out rows are assumed to be like the others.
    thresholds[np.isnan(slopes)] = threshold or 0.0
    slopes[np.isnan(slopes)] = np.nanmedian(slopes)
    return Cuts(thresholds, slopes, shares)


def _around(
    its: _Scores, threshold: float, slope: float, log_ratio: float | None
) -> tuple[float, float, float]:
    """Return a given threshold, moved by class weights, with its slope and its trust."""
    line = its.around(threshold)
    if slope <= 0 or log_ratio is None:
        return threshold, line.slope, line.trust
    moved = threshold + log_ratio / (line.trust * slope)  # 4.
    return moved, line.trust * its.slope_around(moved), line.trust


def _chosen(
    its: _Scores, slope: float, offset: float, log_ratio: float | None, *, is_only: bool
) -> tuple[float, float, float]:
    """Choose between Platt's threshold and zero; return it, with its slope and its trust."""
    least_gain = LEAST_GAIN_OF_MANY
    if slope <= 0:  # only the shares of the classes mean something
        slope = SLOPE_BOUNDS[0] / float(np.abs(its.scores).max() or 1.0)
        offset, least_gain = its.log_odds, LEAST_GAIN_OF_SHARES
    platts = its.drawn(slope, offset, its.log_odds)  # 2.
    if log_ratio is not None:
        return platts.threshold + log_ratio / platts.slope, platts.slope, platts.trust  # 4.
    plain = its.around(0.0)
    gain = plain.loss - platts.loss  # 3.
    is_safe = gain > least_gain and its.errors(platts.threshold) <= its.errors(0.0)
    if is_safe or (is_only and gain > LEAST_GAIN):
        return platts.threshold, platts.slope, platts.trust
    return 0.0, plain.slope, plain.trust
