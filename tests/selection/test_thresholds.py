"""Where scores are cut: at Platt's threshold, if it is worth it, or at zero."""

import numpy as np
import pytest
from scipy.optimize import minimize

from hardmargin.selection.calibration import HeldOut
from hardmargin.selection.thresholds import (
    LEAST_GAIN,
    LEAST_GAIN_OF_MANY,
    LEAST_GAIN_OF_SHARES,
    cut_machines,
)

POSITIVE = np.arange(400) % 2 == 0


def shifted(shift):
    """Scores that are best cut at `shift`."""
    noise = 0.7 * np.random.default_rng(0).normal(size=400)
    return np.where(POSITIVE, 1.0, -1.0) + noise + shift


def cut(scores, n_machines=1, positive=POSITIVE, log_ratio=None, threshold=None):
    """Return the threshold and the slope of the first of equal machines."""
    n = len(scores)
    held_out = HeldOut(
        np.tile(np.arange(n), n_machines),
        np.tile(scores, n_machines),
        np.tile(positive, n_machines),
        np.repeat(np.arange(n_machines), n),
    )
    thresholds, slopes, _ = cut_machines(held_out, None, [log_ratio] * n_machines, threshold)
    assert len(set(thresholds)) == len(set(slopes)) == 1
    return thresholds[0], slopes[0]


def best_sigmoid(scores):
    """Minimise Platt's loss; return slope, offset, and the gain over the best one without offset.

    The gain is in the likelihood of the labels.
    """
    n = len(scores) // 2
    target = np.where(POSITIVE, (n + 1) / (n + 2), 1 / (n + 2))

    def loss(slope, offset, labels):
        z = slope * scores + offset
        return float((np.logaddexp(0, z) - labels * z).sum())

    slope, offset = minimize(lambda t: loss(*t, target), [1.0, 0.0], tol=1e-10).x
    [plain] = minimize(lambda t: loss(*t, 0.0, target), [1.0], tol=1e-10).x
    return slope, offset, loss(plain, 0.0, POSITIVE) - loss(slope, offset, POSITIVE)


def n_errors(scores, threshold):
    return np.sum((scores >= threshold) != POSITIVE)


def shift_of_gain(gain):
    """Find the shift at which Platt's threshold gains so much."""
    low, high = 0.0, 1.0
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (middle, high) if best_sigmoid(shifted(middle))[2] < gain else (low, middle)
    return low


@pytest.mark.parametrize(
    ("n_machines", "least_gain"), [(1, LEAST_GAIN), (2, LEAST_GAIN_OF_MANY)], ids=["one", "many"]
)
def test_platts_threshold_is_taken_if_it_gains_enough(n_machines, least_gain):
    little, enough = (shifted(shift_of_gain(share * least_gain)) for share in (0.95, 1.05))
    assert cut(little, n_machines)[0] == 0.0
    slope, offset, _ = best_sigmoid(enough)
    np.testing.assert_allclose(cut(enough, n_machines), (-offset / slope, slope), rtol=1e-3)


#: A sigmoid that suits both sides is cut near 1.
UNEVEN = np.where(POSITIVE, 3.0, -1.0)


def test_of_several_machines_it_is_taken_if_it_makes_as_many_errors():
    slope, offset, gain = best_sigmoid(UNEVEN)
    assert gain > LEAST_GAIN_OF_MANY
    assert n_errors(UNEVEN, -offset / slope) == n_errors(UNEVEN, 0.0) == 0
    assert cut(UNEVEN, 2)[0] == pytest.approx(-offset / slope, rel=1e-3)


def test_of_several_machines_it_is_not_taken_if_it_makes_more_errors():
    scores = UNEVEN.copy()
    scores[:20:2], scores[20:30:2], scores[1:6:2] = 0.3, -1.0, 3.0
    slope, offset, gain = best_sigmoid(scores)
    assert gain > LEAST_GAIN_OF_MANY
    assert n_errors(scores, -offset / slope) > n_errors(scores, 0.0)
    assert cut(scores, 1)[0] == pytest.approx(-offset / slope, rel=1e-3)
    assert cut(scores, 2)[0] == 0.0


def test_where_it_is_not_taken_the_slope_suits_zero():
    scores = shifted(shift_of_gain(0.5 * LEAST_GAIN))
    target = np.where(POSITIVE, 201 / 202, 1 / 202)
    best = minimize(lambda t: (np.logaddexp(0, t * scores) - target * t * scores).sum(), [1.0])
    assert cut(scores)[1] == pytest.approx(best.x[0], rel=1e-3)


def test_a_given_ratio_moves_platts_threshold_whatever_it_gains():
    scores = shifted(shift_of_gain(0.5 * LEAST_GAIN))
    slope, offset, _ = best_sigmoid(scores)
    found = cut(scores, log_ratio=2.0)
    np.testing.assert_allclose(found, ((2.0 - offset) / slope, slope), rtol=1e-3)


def test_a_given_threshold_is_moved_by_a_ratio_alone():
    scores = shifted(0.8)
    slope, _, _ = best_sigmoid(scores)
    assert cut(scores, threshold=0.5)[0] == 0.5
    assert cut(scores, threshold=0.5, log_ratio=2.0)[0] == pytest.approx(0.5 + 2.0 / slope, 1e-3)


@pytest.mark.parametrize(
    ("n_negative", "n_machines", "is_far"),
    [(200, 1, False), (320, 1, True), (210, 2, False), (235, 2, False), (320, 2, True)],
)
def test_scores_that_say_nothing_predict_the_larger_class_if_it_is_clearly_larger(
    n_negative, n_machines, is_far
):
    positive = np.arange(400) >= n_negative
    scores = np.where(np.arange(400) % 2 == 0, 1.0, -1.0) - 0.5 * positive
    share = n_negative / 400
    gain = 400 * (np.log(2) + share * np.log(share) + (1 - share) * np.log(1 - share))
    assert is_far == (gain > (LEAST_GAIN if n_machines == 1 else LEAST_GAIN_OF_SHARES))
    with pytest.warns(UserWarning, match="say nothing"):
        threshold, slope = cut(scores, n_machines, positive)
    assert slope > 0
    assert (threshold > scores.max()) == is_far
    assert (threshold == 0.0) != is_far
