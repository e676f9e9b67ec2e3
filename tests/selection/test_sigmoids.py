"""Sigmoids and softmaxes fitted to scores."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, log_softmax

from hardmargin.selection.sigmoids import (
    SLOPE_BOUNDS,
    TAU_BOUNDS,
    platt,
    platt_slope,
    softmax_scale,
)


def noisy_scores(n=300, seed=0):
    rng = np.random.default_rng(seed)
    positive = rng.random(n) < 0.3
    return 1.5 * positive + rng.normal(size=n), positive


def naive_loss(z, positive, weights):
    n_positive, n_negative = weights[positive].sum(), weights[~positive].sum()
    target = np.where(positive, (n_positive + 1) / (n_positive + 2), 1 / (n_negative + 2))
    return weights @ (np.logaddexp(0, z) - target * z)


@pytest.mark.parametrize("weighted", [False, True])
def test_platt_is_the_minimum_of_its_loss(weighted):
    scores, positive = noisy_scores()
    weights = np.random.default_rng(1).uniform(0.5, 2, len(scores)) if weighted else None
    counts = np.ones(len(scores)) if weights is None else weights
    best = minimize(lambda t: naive_loss(t[0] * scores + t[1], positive, counts), [0, 0], tol=1e-10)
    fit = platt(scores, positive, weights)
    np.testing.assert_allclose([fit.slopes[0], fit.offsets[0]], best.x, rtol=1e-4)


@pytest.mark.parametrize("shift", [-20.0, -4.0, 0.0, 4.0])
def test_the_offset_stays_within_reach_of_the_odds_of_the_classes(shift):
    scores, positive = noisy_scores()
    scores = scores + shift
    odds = np.log((positive.sum() + 1) / ((~positive).sum() + 1))
    bounds = [(None, None), (odds - 1.5, odds + 1.5)]
    best = minimize(
        lambda t: naive_loss(t[0] * scores + t[1], positive, np.ones(300)) / 300,
        [0, odds],
        bounds=bounds,
        tol=1e-14,
    )
    fit = platt(scores, positive, reach=1.5)
    np.testing.assert_allclose([fit.slopes[0], fit.offsets[0]], best.x, rtol=1e-3)
    assert (platt(scores, positive).offsets == fit.offsets) == (shift == 0)


def test_reach_leaves_other_machines_alone():
    scores, positive = noisy_scores()
    twice = np.concatenate([scores, scores + 20])
    found = platt(twice, np.tile(positive, 2), None, np.array([0, 300, 600]), reach=1.5)
    alone = [platt(some, positive, reach=1.5) for some in (scores, scores + 20)]
    for name in ("slopes", "offsets", "log_losses"):
        expected = np.concatenate([getattr(fit, name) for fit in alone])
        np.testing.assert_allclose(getattr(found, name), expected, rtol=1e-4)


def test_platt_returns_the_log_loss_of_the_labels():
    scores, positive = noisy_scores()
    fit = platt(scores, positive)
    p = expit(fit.slopes * scores + fit.offsets)
    assert fit.log_losses[0] == pytest.approx(-np.log(np.where(positive, p, 1 - p)).mean())


def test_platt_of_wrong_scores_has_a_negative_slope():
    scores, positive = noisy_scores()
    assert platt(-scores, positive).slopes[0] < 0


def test_platt_of_separated_scores_is_finite():
    scores = np.array([-2.0, -1.0, 1.0, 2.0])
    assert 0 < platt(scores, scores > 0).slopes[0] < 10


@pytest.mark.parametrize("size", [1e-200, 1e-9, 1e9, 1e200])
def test_platt_does_not_depend_on_the_unit_of_the_scores(size):
    scores, positive = noisy_scores()
    plain, scaled = platt(scores, positive), platt(size * scores, positive)
    np.testing.assert_allclose(scaled.slopes * size, plain.slopes, rtol=1e-6)
    np.testing.assert_allclose(scaled.offsets, plain.offsets, rtol=1e-6)
    np.testing.assert_allclose(scaled.log_losses, plain.log_losses, rtol=1e-6)


def test_platt_of_equal_scores_is_the_share_of_the_class():
    positive = np.arange(10) < 3
    fit = platt(np.zeros(10), positive)
    assert expit(fit.offsets[0]) == pytest.approx(0.3, abs=0.05)


def test_machines_together_are_the_machines_alone():
    parts = [noisy_scores(n, seed=n) for n in (20, 50, 300)]
    scores, positive = (np.concatenate(values) for values in zip(*parts, strict=True))
    together = platt(scores, positive, None, np.array([0, 20, 70, 370]))
    alone = [platt(*part) for part in parts]
    for name in ("slopes", "offsets", "log_losses"):
        expected = np.concatenate([getattr(fit, name) for fit in alone])
        np.testing.assert_allclose(getattr(together, name), expected, rtol=1e-5)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_slope_is_the_minimum_of_its_loss(weighted):
    scores, positive = noisy_scores()
    margins = scores - 0.7
    weights = np.random.default_rng(1).uniform(0.5, 2, len(scores)) if weighted else None
    counts = np.ones(len(scores)) if weights is None else weights
    best = minimize(lambda t: naive_loss(t[0] * margins, positive, counts), [1.0], tol=1e-10)
    assert platt_slope(margins, positive, weights) == pytest.approx(best.x[0], rel=1e-4)


def test_rows_that_are_held_out_three_times_count_once():
    scores, positive = noisy_scores()
    few, few_positive = scores[:20], positive[:20]
    once = platt_slope(few, few_positive)
    assert platt_slope(np.tile(few, 3), np.tile(few_positive, 3), copies=3) == pytest.approx(once)
    assert platt_slope(np.tile(few, 3), np.tile(few_positive, 3)) > 1.001 * once


def test_the_slope_of_wrong_scores_is_small_and_positive():
    scores, positive = noisy_scores()
    slope = platt_slope(-scores, positive)
    assert slope == pytest.approx(SLOPE_BOUNDS[0] / np.abs(scores).max())


@pytest.mark.parametrize("size", [1e-9, 1.0, 1e9])
def test_the_slope_of_separated_scores_is_finite(size):
    margins = size * np.array([-2.0, -1.0, 1.0, 2.0])
    assert 0.5 < size * platt_slope(margins, margins > 0) < 10


def test_the_slope_of_equal_scores_is_finite():
    assert 0 < platt_slope(np.zeros(5), np.arange(5) < 2) < np.inf


def decisions(n=400, k=4, seed=0):
    rng = np.random.default_rng(seed)
    codes = rng.integers(k, size=n)
    return rng.normal(size=(n, k)) + 2 * np.eye(k)[codes], codes


@pytest.mark.parametrize("weighted", [False, True])
def test_tau_has_the_least_log_loss(weighted):
    scores, codes = decisions()
    weights = np.random.default_rng(1).uniform(0.5, 2, len(codes)) if weighted else None
    counts = np.ones(len(codes)) if weights is None else weights
    tau = softmax_scale(scores, codes, weights)

    total = counts.sum()
    targets = np.full(scores.shape, 1 / (total + 2) / (scores.shape[1] - 1))
    targets[np.arange(len(codes)), codes] = (total + 1) / (total + 2)

    def loss(t):
        return -counts @ (targets * log_softmax(t * scores, axis=1)).sum(axis=1)

    assert loss(tau) <= min(loss(0.98 * tau), loss(1.02 * tau))


def test_tau_stays_small_where_no_row_is_wrong():
    codes = np.arange(60) % 3
    tau = softmax_scale(np.eye(3)[codes], codes)
    doubt = 1 - np.exp(tau) / (np.exp(tau) + 2)
    assert doubt == pytest.approx(1 / 62, rel=0.01)


def test_tau_of_noise_and_of_certainty_is_bounded():
    scores, codes = decisions()
    assert softmax_scale(-scores, codes) >= TAU_BOUNDS[0]
    assert softmax_scale(np.eye(4)[codes], codes) <= TAU_BOUNDS[1]
