"""Where scores are cut: at Platt's threshold, if it is worth it, or at zero."""

import numpy as np
import pytest
from scipy.optimize import minimize

from hardmargin.selection.calibration import HeldOut
from hardmargin.selection.constant import LEAST_TRUST
from hardmargin.selection.sigmoids import platt, platt_slope
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


# --- the constant votes, too ---------------------------------------------------------------------


def faint(effect=0.7):
    """Scores that say a little about the classes."""
    random = np.random.default_rng(1)
    positive = random.random(60) < 0.3
    return effect * positive + random.normal(size=60), positive


def naive_trust(scores, positive, weights, slope, offset):
    """How likely the labels are under the sigmoid, and under the shares of the classes."""
    z, n = slope * scores + offset, weights.sum()
    share = (weights[positive].sum() + 0.5) / (n + 1)
    of_sigmoid = weights @ (positive * z - np.logaddexp(0, z))
    of_shares = weights @ np.where(positive, np.log(share), np.log(1 - share))
    return 1 / (1 + np.exp(-0.3 * (of_sigmoid - of_shares - 4)))


def cuts(scores, positive, weights=None, **parameters):
    machines = np.zeros(len(scores), dtype=np.intp)
    held_out = HeldOut(np.arange(len(scores)), scores, positive, machines)
    parameters = {"log_ratios": [None], **parameters}
    return cut_machines(held_out, weights, **parameters)


@pytest.mark.parametrize("weighted", [False, True])
def test_log_odds_are_drawn_towards_the_shares(weighted):
    scores, positive = faint()
    weights = np.random.default_rng(0).integers(1, 4, 60).astype(float)
    weights = weights if weighted else np.ones(60)
    fit = platt(scores, positive, weights)
    trust = naive_trust(scores, positive, weights, fit.slopes[0], fit.offsets[0])
    assert 0.1 < trust < 0.9
    found = cuts(scores, positive, weights if weighted else None)
    of_shares = np.log((weights[positive].sum() + 1) / (weights[~positive].sum() + 1))
    np.testing.assert_allclose(found.trust, trust, rtol=1e-6)
    np.testing.assert_allclose(found.slopes, trust * fit.slopes, rtol=1e-6)
    offset = trust * fit.offsets + (1 - trust) * of_shares
    np.testing.assert_allclose(found.thresholds, -offset / found.slopes, rtol=1e-6)


def test_a_weight_of_two_is_the_row_twice():
    scores, positive = faint()
    weights = np.random.default_rng(0).integers(1, 4, 60)
    repeated = (np.repeat(values, weights) for values in (scores, positive))
    for one, other in zip(
        cuts(scores, positive, weights.astype(float)), cuts(*repeated), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-6)


def test_rows_that_are_held_out_again_are_no_more_evidence():
    scores, positive = faint(1.0)
    machines = np.zeros(180, dtype=np.intp)
    rows = np.tile(np.arange(60), 3)
    again = HeldOut(rows, np.tile(scores, 3), np.tile(positive, 3), machines)
    once = cuts(scores, positive).trust
    np.testing.assert_allclose(cut_machines(again, None, [None]).trust, once, rtol=0.05)
    thrice = cuts(*(np.tile(values, 3) for values in (scores, positive))).trust
    assert thrice > 1.5 * once


def test_class_weights_move_drawn_log_odds_by_their_ratio():
    scores, positive = faint()
    plain, moved = (cuts(scores, positive, log_ratios=[ratio]) for ratio in (0.0, 1.5))
    np.testing.assert_array_equal(plain.slopes, moved.slopes)
    np.testing.assert_allclose(plain.slopes * (moved.thresholds - plain.thresholds), 1.5)


def test_a_given_threshold_keeps_every_label():
    scores, positive = faint()
    found = cuts(scores, positive, threshold=0.7)
    assert found.thresholds == [0.7]
    slope = platt_slope(scores - 0.7, positive)
    trust = naive_trust(scores, positive, np.ones(60), slope, -0.7 * slope)
    np.testing.assert_allclose(found.slopes, max(trust, LEAST_TRUST) * slope, rtol=1e-6)


def test_clear_scores_are_trusted():
    found = cuts(shifted(0.5), POSITIVE)
    assert found.trust > 1 - 1e-9


def test_log_odds_at_zero_are_within_reach_of_the_shares():
    random = np.random.default_rng(0)
    positive = random.random(200) < 0.2
    scores = np.where(positive, 1.0, -1.0) + 0.3 * random.normal(size=200) - 3
    near, free = (cuts(scores, positive, reach=reach) for reach in (2.0, np.inf))
    shares = np.log((positive.sum() + 1) / ((~positive).sum() + 1))
    assert -free.slopes * free.thresholds > shares + 3
    np.testing.assert_allclose(-near.slopes * near.thresholds, shares + 2, atol=0.2)
