"""Weights of experts: those that suit rows held out best, with nothing for what does not help."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import log_softmax

from hardmargin.selection.mixture import (
    LARGEST_WEIGHT,
    SPREAD_OF_SUM,
    LogProbabilities,
    mixed,
    mixture_weights,
)


def problem(n=500, n_classes=2, seed=0):
    """Log-odds that made the classes, and the classes."""
    random = np.random.default_rng(seed)
    truth = log_softmax(1.5 * random.normal(size=(n, n_classes)), axis=1)
    draws = random.uniform(size=(n, 1))
    codes = (np.exp(truth).cumsum(axis=1)[:, :-1] < draws).sum(axis=1)
    return truth, codes.astype(np.int32)


def noise_of(n=500, n_classes=2, seed=9):
    return log_softmax(np.random.default_rng(seed).normal(size=(n, n_classes)), axis=1)


def loss_of(logs, codes, weights=None):
    return -np.average(logs[np.arange(len(codes)), codes], weights=weights)


def naive_loss(at, logs, codes, weights):
    """Log-loss of a mixture and the prior of its sum, row by row."""
    total = 0.0
    for i, c in enumerate(codes):
        scores = sum(a * own[i] for a, own in zip(at, logs, strict=True))
        total -= weights[i] * (scores[c] - np.log(np.exp(scores).sum()))
    return total / weights.sum() + (sum(at) - 1) ** 2 / (2 * SPREAD_OF_SUM**2 * weights.sum())


def of_rows(codes):
    return np.ones(len(codes))


# --- the minimum ----------------------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_weights_minimise_the_naive_loss(n_classes):
    truth, codes = problem(120, n_classes)
    logs = [0.5 * truth, truth + noise_of(120, n_classes), noise_of(120, n_classes, 3)]
    weights = np.random.default_rng(1).uniform(0.5, 2.0, size=120)
    expected = minimize(
        naive_loss,
        np.full(3, 0.3),
        (logs, codes, weights),
        method="L-BFGS-B",
        bounds=[(0, LARGEST_WEIGHT)] * 3,
    )
    found, _ = mixture_weights(logs, codes, weights)
    np.testing.assert_allclose(found, expected.x, atol=5e-3)


def test_the_loss_is_that_of_the_mixture():
    truth, codes = problem()
    logs, weights = [truth, noise_of()], np.random.default_rng(1).uniform(size=500)
    found, loss = mixture_weights(logs, codes, weights)
    assert loss == pytest.approx(loss_of(mixed(logs, found), codes, weights))


@given(
    n=st.integers(1, 60),
    n_classes=st.integers(2, 4),
    n_experts=st.integers(1, 4),
    sharpness=st.floats(0.01, 8.0),
    seed=st.integers(0, 10_000),
)
@example(n=2, n_classes=2, n_experts=2, sharpness=0.75, seed=1)
@settings(deadline=None, max_examples=60)
def test_no_expert_alone_is_better(n, n_classes, n_experts, sharpness, seed):
    truth, codes = problem(n, n_classes, seed)
    random = np.random.default_rng(seed)
    logs = [
        np.maximum(log_softmax(truth + sharpness * random.normal(size=truth.shape), axis=1), -11.5)
        for _ in range(n_experts)
    ]
    found, loss = mixture_weights(logs, codes, of_rows(codes))
    assert ((found >= 0) & (found <= LARGEST_WEIGHT)).all()
    assert loss <= min(loss_of(mixed([own], [1.0]), codes) for own in logs) + 5e-3


# --- which experts --------------------------------------------------------------------------------


def test_the_truth_alone_keeps_its_weight():
    truth, codes = problem(4000)
    found, _ = mixture_weights([truth], codes, of_rows(codes))
    assert found[0] == pytest.approx(1.0, abs=0.1)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_useless_experts_have_nearly_no_weight(n_classes):
    truth, codes = problem(4000, n_classes)
    useless = [noise_of(4000, n_classes, 1), np.full_like(truth, -np.log(n_classes))]
    found, loss = mixture_weights([truth, *useless], codes, of_rows(codes))
    assert found[1] < 0.05
    assert loss == pytest.approx(loss_of(truth, codes), abs=0.01)


def test_experts_that_are_wrong_have_no_weight():
    truth, codes = problem(2000)
    found, _ = mixture_weights([truth, -truth], codes, of_rows(codes))
    assert found[1] == 0.0


def test_copies_of_an_expert_share_its_weight():
    truth, codes = problem(2000)
    found, _ = mixture_weights([truth, truth], codes, of_rows(codes))
    np.testing.assert_allclose(found[0], found[1], rtol=1e-6)


def test_an_expert_that_is_too_sure_is_held_back():
    truth, codes = problem(2000)
    found, _ = mixture_weights([4.0 * truth], codes, of_rows(codes))
    assert found[0] == pytest.approx(0.25, abs=0.05)


@pytest.mark.parametrize("n", [50, 5000])
def test_experts_that_never_err_do_not_become_too_sure(n):
    _, codes = problem(n)
    sure = np.where(codes[:, None] == np.arange(2), np.log(0.999), np.log(0.001))
    found, _ = mixture_weights([sure, sure], codes, of_rows(codes))
    assert found.sum() < 2.0


def test_experts_that_never_err_are_believed():
    _, codes = problem(1000)
    sure = np.where(codes[:, None] == np.arange(2), np.log(0.999), np.log(0.001))
    found, _ = mixture_weights([sure, noise_of(1000)], codes, of_rows(codes))
    assert found[0] > 0.9


def test_labels_of_noise_leave_nothing():
    codes = np.random.default_rng(0).integers(2, size=2000).astype(np.int32)
    logs = [noise_of(2000, 2, seed) for seed in range(3)]
    found, loss = mixture_weights(logs, codes, of_rows(codes))
    assert found.sum() < 0.2
    assert loss == pytest.approx(np.log(2), abs=0.01)


# --- rows -----------------------------------------------------------------------------------------


def test_whole_weights_are_copies():
    truth, codes = problem(200)
    logs, counts = [0.6 * truth, noise_of(200)], np.arange(200) % 3
    copies = np.repeat(np.arange(200), counts)
    weighted = mixture_weights(logs, codes, counts.astype(float))
    copied = mixture_weights([own[copies] for own in logs], codes[copies], np.ones(len(copies)))
    np.testing.assert_allclose(weighted[0], copied[0], atol=1e-4)
    assert weighted[1] == pytest.approx(copied[1])


def test_single_precision_is_enough():
    truth, codes = problem()
    logs = [truth, noise_of()]
    single, _ = mixture_weights([own.astype(np.float32) for own in logs], codes, of_rows(codes))
    np.testing.assert_allclose(single, mixture_weights(logs, codes, of_rows(codes))[0], atol=1e-3)


# --- decisions ------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [2, 3])
def test_mixtures_have_probabilities(n_classes):
    logs = [noise_of(50, n_classes, seed) for seed in range(2)]
    found = LogProbabilities().probabilities(mixed(logs, np.array([2.0, 0.7])))
    np.testing.assert_allclose(found.sum(axis=1), 1.0)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_decisions_have_the_order_of_probabilities(n_classes):
    logs = noise_of(50, n_classes)
    scores = LogProbabilities().scores(logs)
    np.testing.assert_array_equal(np.argsort(scores, axis=1), np.argsort(logs, axis=1))


def test_the_decision_of_two_classes_is_their_log_odds():
    logs = noise_of(50)
    probabilities = LogProbabilities().probabilities(logs)
    odds = np.log(probabilities[:, 1] / probabilities[:, 0])
    np.testing.assert_allclose(LogProbabilities().scores(logs)[:, 1], odds)


# --- what experts have chosen ---------------------------------------------------------------------


def test_an_expert_whose_loss_is_too_low_counts_less():
    truth, codes = problem()
    free, least = mixture_weights([truth], codes, of_rows(codes))
    [dear], loss = mixture_weights([truth], codes, of_rows(codes), [0.1])
    assert 0 < dear < free[0]
    assert loss == pytest.approx(loss_of(mixed([truth], [dear]), codes) + 0.1 * dear)
    assert loss > least


def test_an_expert_that_gains_less_than_its_cost_has_no_weight():
    truth, codes = problem()
    logs = [log_softmax(0.05 * truth, axis=1)]
    gain = np.log(2) - mixture_weights(logs, codes, of_rows(codes))[1]
    found, loss = mixture_weights(logs, codes, of_rows(codes), [2 * gain])
    assert found < 0.7
    assert loss >= np.log(2) - gain
