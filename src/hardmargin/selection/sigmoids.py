"""Probabilities from held-out scores: sigmoids for two classes, a softmax for many.

Platt's sigmoid is ``P(positive) = 1 / (1 + exp(-(A f + B)))``. Its targets are drawn in by one row
per class, so that scores that separate the classes keep a finite slope (Platt 1999; Lin, Lin & Weng
2007). Sigmoids are fitted by Newton's method with a bounded number of steps; weights count rows, as
in `as_rows`.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import expit, logsumexp

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

#: Slopes, times the largest score, lie between these; at the lower one, scores mean nothing.
SLOPE_BOUNDS = (1e-3, 1e6)

#: The softmax of many classes is sharpened or flattened by a factor between these.
TAU_BOUNDS = (1e-2, 1e3)

_MAX_NEWTON_STEPS = 50
_MAX_HALVINGS = 30
_TOLERANCE = 1e-10

# Newton's method ends at gains per row below this: about its square is left to gain.
_GAIN = 1e-7
_ROUNDING = 1e-13


def as_rows(weights: FloatArray) -> FloatArray:
    r"""Scale weights so that they add up to the number of rows they stand for.

    That is :math:`\max(\sum w, (\sum w)^2 / \sum w^2)`. Whole numbers count rows and stay as they
    are, so that a weight of two equals having the row twice. The second term is the effective
    number of rows, which does not depend on the scale of the weights: weights that were normalised,
    to add up to one for instance, still count as that many rows.

    Parameters
    ----------
    weights : (n,) array
        Not negative.

    Examples
    --------
    >>> import numpy as np
    >>> from hardmargin.selection.sigmoids import as_rows
    >>> as_rows(np.array([1.0, 2.0, 1.0]))
    array([1., 2., 1.])
    >>> as_rows(np.array([0.25, 0.25, 0.25, 0.25]))
    array([1., 1., 1., 1.])
    """
    largest = float(weights.max(initial=0.0))
    if largest == 0:
        return weights
    shares = weights / largest  # their squares neither overflow nor vanish together
    return shares * max(largest, float(shares.sum() / (shares @ shares)))


@dataclass(frozen=True)
class Sigmoids:
    """Platt's sigmoids of several machines.

    Attributes
    ----------
    slopes, offsets : (n_machines,) arrays
        A and B; A is negative where the scores are wrong more often than not.
    log_losses : (n_machines,) array
        Weighted mean negative log-likelihood of the labels.
    """

    slopes: FloatArray
    offsets: FloatArray
    log_losses: FloatArray


def platt(
    scores: FloatArray,
    positive: BoolArray,
    weights: FloatArray | None = None,
    starts: NDArray[np.intp] | None = None,
    reach: float = np.inf,
) -> Sigmoids:
    """Fit ``P(positive) = sigmoid(A * score + B)`` to the scores of every machine.

    Parameters
    ----------
    scores : (n,) array
        Scores of rows that the machines were not trained on, one machine after another.
    positive : (n,) bool array
        Their labels.
    weights : (n,) array, optional
        How many rows each stands for.
    starts : (n_machines + 1,) int array, optional
        Where each machine's rows begin, and where the last one's end; none is empty. None means
        that there is one machine.
    reach : float
        How far the log-odds at a score of zero may be from those of the shares of the classes.

    Examples
    --------
    >>> import numpy as np
    >>> from hardmargin.selection.sigmoids import platt
    >>> scores = np.array([-2.0, -1.0, 1.0, 2.0])
    >>> fit = platt(scores, scores > 0)
    >>> fit.slopes.round(2), fit.log_losses.round(2)
    (array([0.67]), array([0.32]))
    """
    starts = np.array([0, len(scores)]) if starts is None else starts
    begins = starts[:-1]
    machine: Any = slice(None)  # the numbers of a single machine are spread over its rows
    if len(starts) > 2:
        machine = np.repeat(np.arange(len(starts) - 1), np.diff(starts))

    def total(values: FloatArray) -> FloatArray:
        sums: FloatArray = np.add.reduceat(values, begins)
        return sums

    rows = np.ones(len(scores))
    if weights is not None:
        parts = [as_rows(weights[a:b]) for a, b in pairwise(starts)]
        rows = np.concatenate(parts)
    n_positive, n_negative = total(rows * positive), total(rows * ~positive)
    w = rows / (n_positive + n_negative)[machine]
    target = np.where(
        positive, ((n_positive + 1) / (n_positive + 2))[machine], (1 / (n_negative + 2))[machine]
    )
    # Scores of unit size put the two unknowns on the same scale.
    scale = np.maximum(np.maximum.reduceat(np.abs(scores), begins), 1e-300)
    s = scores / scale[machine]

    def losses(z: FloatArray, goal: FloatArray | BoolArray) -> FloatArray:
        return total(w * (np.logaddexp(0, z) - goal * z))

    def fitted(a: FloatArray, b: FloatArray, moves: BoolArray) -> tuple[FloatArray, FloatArray]:
        """Slopes and offsets of the least loss; offsets only where they move."""
        z = a[machine] * s + b[machine]
        value = losses(z, target)
        for _ in range(_MAX_NEWTON_STEPS):
            p = expit(z)
            slack, curvature = w * (p - target), w * p * (1 - p)
            grad_a, grad_b = total(slack * s), total(slack) * moves
            aa, ab, bb = total(curvature * s * s), total(curvature * s) * moves, total(curvature)
            ridge = 1e-10 * (aa + bb) + 1e-300
            aa, bb = aa + ridge, bb + ridge
            determinant = np.maximum(aa * bb - ab * ab, 1e-300)
            step_a = (bb * grad_a - ab * grad_b) / determinant
            step_b = (aa * grad_b - ab * grad_a) / determinant
            length = np.ones(len(a))
            for _ in range(_MAX_HALVINGS):
                z = (a - length * step_a)[machine] * s + (b - length * step_b)[machine]
                after = losses(z, target)
                worse = after > value + _ROUNDING
                if not worse.any():
                    break
                length[worse] /= 2
            else:
                length[worse] = 0.0
                z = (a - length * step_a)[machine] * s + (b - length * step_b)[machine]
                after = losses(z, target)
            a, b = a - length * step_a, b - length * step_b
            gain, value = value - after, after
            if (gain <= _GAIN).all():
                break
        return a, b

    log_odds = np.log((n_positive + 1) / (n_negative + 1))
    a, b = fitted(np.zeros(len(scale)), log_odds, np.ones(len(scale), dtype=bool))
    is_out = np.abs(b - log_odds) > reach
    if is_out.any():  # the loss is convex: the best offset within reach is at its end
        b = np.clip(b, log_odds - reach, log_odds + reach)
        a, b = fitted(np.where(is_out, 0.0, a), b, ~is_out)
    z = a[machine] * s + b[machine]
    return Sigmoids(a / scale, b, losses(z, positive))


def platt_slope(
    margins: FloatArray,
    positive: BoolArray,
    weights: FloatArray | None = None,
    copies: float = 1.0,
) -> float:
    """Fit ``P(positive) = sigmoid(A * margin)``, with A > 0 and bounded.

    Parameters
    ----------
    margins : (n,) array
        Scores minus the threshold.
    positive : (n,) bool array
        Their labels.
    weights : (n,) array, optional
        How many rows each stands for.
    copies : float
        How often each row occurs, on average; it still counts only once.

    Examples
    --------
    >>> import numpy as np
    >>> from hardmargin.selection.sigmoids import platt_slope
    >>> margins = np.array([-2.0, -1.0, 1.0, 2.0])
    >>> round(platt_slope(margins, margins > 0), 2)
    0.67
    """
    w = np.ones(len(margins)) if weights is None else as_rows(weights)
    n_positive, n_negative = w[positive].sum() / copies, w[~positive].sum() / copies
    target = np.where(positive, (n_positive + 1) / (n_positive + 2), 1 / (n_negative + 2))
    largest = float(np.abs(margins).max(initial=0.0)) or 1.0
    scaled = margins / largest

    def derivatives(log_slope: float) -> tuple[float, float]:
        """First and second derivative of the loss, which is convex in the slope."""
        slope = np.exp(log_slope)
        p = expit(slope * scaled)
        return (
            float((w * (p - target)) @ scaled),
            float((w * p * (1 - p)) @ (scaled * scaled)),
        )

    low, high = (float(np.log(bound)) for bound in SLOPE_BOUNDS)
    if derivatives(low)[0] >= 0:
        return SLOPE_BOUNDS[0] / largest
    if derivatives(high)[0] <= 0:
        return SLOPE_BOUNDS[1] / largest
    # Newton on the slope itself, kept within a bracket of the root that only shrinks.
    at = 0.0
    for _ in range(_MAX_NEWTON_STEPS):
        first, second = derivatives(at)
        if first > 0:
            high = at
        else:
            low = at
        newton = np.exp(at) - first / max(second, 1e-300)
        following = np.log(newton) if newton > 0 else low
        if not low < following < high:
            following = (low + high) / 2
        if abs(following - at) <= _TOLERANCE:
            break
        at = float(following)
    return float(np.exp(at)) / largest


def softmax_scale(
    decisions: FloatArray, codes: NDArray[np.integer], weights: FloatArray | None = None
) -> float:
    """Fit ``P = softmax(tau * decision)``: the tau of the least log-loss.

    The targets are drawn in as Platt's are, so that tau stays small where no row is wrong.

    Parameters
    ----------
    decisions : (n, n_classes) array
        Scores of rows; the largest is that of the predicted class.
    codes : (n,) int array
        Their classes.
    weights : (n,) array, optional
        How many rows each stands for.

    Examples
    --------
    >>> import numpy as np
    >>> from hardmargin.selection.sigmoids import softmax_scale
    >>> decisions = np.array([[2.0, 1, 0], [0, 2, 1], [1, 0, 2], [2, 1, 0]])
    >>> round(softmax_scale(decisions, np.array([0, 1, 2, 1])), 2)
    0.97
    """
    w = np.ones(len(codes)) if weights is None else as_rows(weights)
    own = decisions[np.arange(len(codes)), codes]
    n_classes = decisions.shape[1]
    doubt = 1.0 / (w.sum() + 2.0)  # one row in all may have been of another class
    others = (decisions.sum(axis=1) - own) / (n_classes - 1)
    aim = (1.0 - doubt) * own + doubt * others

    def log_loss(log_tau: float) -> float:
        scaled = np.exp(log_tau) * decisions
        return float(w @ (logsumexp(scaled, axis=1) - np.exp(log_tau) * aim))

    low, high = (float(np.log(bound)) for bound in TAU_BOUNDS)
    found = minimize_scalar(log_loss, bounds=(low, high), method="bounded", options={"xatol": 1e-4})
    return float(np.exp(found.x))
