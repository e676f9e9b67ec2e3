"""Where a machine's scores are cut, and how steep its probabilities are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hardmargin.estimators._base.problem import Expansion, Problem
from hardmargin.estimators._base.warn import warn_caller
from hardmargin.kernels import FloatArray
from hardmargin.selection.calibration import platt, platt_slope
from hardmargin.selection.evidence import as_rows
from hardmargin.selection.held_out import HeldOut

#: Rows that a slope is fitted to where none were held out.
MAX_THRESHOLD_ROWS = 5_000

#: A slope below this says that the scores tell nothing of the classes.
LEAST_SLOPE = 1e-3


@dataclass(frozen=True)
class Cut:
    """One machine's decision and probability: ``sigmoid(slope * (score - threshold))``.

    Attributes
    ----------
    threshold : float
        Scores from it on go to the positive side.
    slope : float
        Of the sigmoid, positive.
    is_reversed : bool
        Whether larger scores are no sign of the positive side.
    """

    threshold: float
    slope: float
    is_reversed: bool = False


def cut_scores(
    scores: FloatArray,
    positive: NDArray[np.bool_],
    weights: FloatArray | None,
    *,
    threshold: float | None = None,
    log_ratio: float | None = None,
) -> Cut:
    """Settle a machine's threshold and slope on scores that were held out.

    Parameters
    ----------
    scores : (n,) array
        Held-out scores.
    positive : (n,) bool array
        Their side.
    weights : (n,) array or None
        How many rows each stands for.
    threshold : float or None
        A threshold that is fixed. Else Platt's is taken if it clearly lowers the number of errors,
        by more than its own square root: elsewhere than here it may do harm, as far from all rows
        the scores are 0.
    log_ratio : float or None
        Log of the weight of the negative class over that of the positive one. It moves the
        threshold, and Platt's is then taken in any case.
    """
    slope, offset, _ = platt(scores, positive, weights)
    if slope <= 0:
        at = threshold or 0.0
        return Cut(at, platt_slope(scores - at, positive, weights), is_reversed=True)
    if threshold is not None:
        at = threshold + (log_ratio or 0.0) / slope
        return Cut(at, platt_slope(scores - at, positive, weights))
    if log_ratio is not None:
        return Cut((log_ratio - offset) / slope, slope)
    at = -offset / slope
    errors = _error_mass(scores, positive, weights)
    if errors - _error_mass(scores - at, positive, weights) > np.sqrt(errors):
        return Cut(at, slope)
    return Cut(0.0, platt_slope(scores, positive, weights))


def cut_machines(problem: Problem, held_out: HeldOut, threshold: float | None) -> list[Cut]:
    """Settle thresholds and slopes of all machines, by their held-out scores."""
    found: dict[int, Cut] = {}
    for m in np.unique(held_out.machines).tolist():
        of_machine = held_out.machines == m
        weights = None
        if problem.weights is not None:
            weights = problem.weights[held_out.rows[of_machine]]
        found[m] = cut_scores(
            held_out.scores[of_machine],
            held_out.positive[of_machine],
            weights,
            threshold=threshold,
            log_ratio=log_weight_ratio(problem, m),
        )
    if n_reversed := sum(cut.is_reversed for cut in found.values()):
        which = f" of {n_reversed} of {len(found)} machines" if len(found) > 1 else ""
        warn_caller(
            f"The held-out scores{which} tell nothing of the classes: probabilities are close to "
            "one half. Are the labels right?",
            UserWarning,
        )
    # Machines that no held-out rows could judge are taken to be like the others.
    typical = Cut(threshold or 0.0, float(np.median([cut.slope for cut in found.values()])))
    return [found.get(m, typical) for m in range(len(problem.machines))]


def log_weight_ratio(problem: Problem, machine: int) -> float | None:
    """Log of what ``class_weight`` gives the negative side over the positive, on average."""
    if problem.class_weights is None:
        return None
    rows = problem.rows_of(machine)
    codes = problem.codes[rows]
    weights = np.ones(len(rows)) if problem.weights is None else problem.weights[rows]
    is_positive = problem.is_positive(machine)[codes]
    negative, positive = (
        np.average(problem.class_weights[codes[side]], weights=weights[side])
        for side in (~is_positive, is_positive)
    )
    return float(np.log(negative / positive))


def training_threshold(
    problem: Problem,
    machine: int,
    expansion: Expansion,
    threshold: float,
    random_state: np.random.RandomState,
    n_jobs: int | None,
) -> float:
    """Move a threshold as ``class_weight`` asks for, by scores of the training rows.

    With ``P = sigmoid(A f + B)``, weighing the negative class w times as much as the positive one
    moves the best threshold by ``log(w) / A``.
    """
    log_ratio = log_weight_ratio(problem, machine)
    if not log_ratio:
        return threshold
    sample = problem.rows_of(machine)
    if len(sample) > MAX_THRESHOLD_ROWS:
        sample = random_state.permutation(sample)[:MAX_THRESHOLD_ROWS]
    queries, rows = problem.X[sample], expansion.rows
    scores = problem.kernel.expand(
        queries[:, rows] if problem.kernel.name == "precomputed" else queries,
        problem.X[rows],
        expansion.coefficients[None, :],
        dtype=problem.dtype,
        n_jobs=n_jobs,
    )[:, 0]
    positive = problem.is_positive(machine)[problem.codes[sample]]
    weights = None if problem.weights is None else problem.weights[sample]
    slope, _, _ = platt(scores, positive, weights)
    return threshold + log_ratio / max(slope, LEAST_SLOPE)


def _error_mass(
    margins: FloatArray, positive: NDArray[np.bool_], weights: FloatArray | None
) -> float:
    wrong = (margins >= 0) != positive
    return float(wrong.sum() if weights is None else as_rows(weights)[wrong].sum())
