"""How much too low a held-out error is, where the same rows have made choices."""

import numpy as np
import pytest
from scipy.special import expit

from hardmargin.selection.constant import trust
from hardmargin.selection.optimism import (
    error_of_choices,
    errors_of_constant,
    gain_of_trust,
    honest_error,
)


@pytest.mark.parametrize("deviation", [0.1, 0.3])
def test_log_odds_that_are_right_lower_loss_and_error_alike(deviation):
    log_odds = deviation * np.random.default_rng(0).normal(size=200_000)
    p = expit(log_odds)
    gain = np.log(2) + np.mean(p * np.log(p) + (1 - p) * np.log(1 - p))
    lowered = 0.5 - np.minimum(p, 1 - p).mean()
    assert error_of_choices(gain, gain) == pytest.approx(lowered, rel=0.02)


def test_the_cost_of_choices_matters_less_the_more_is_gained():
    found = [error_of_choices(gain, 0.01) for gain in (0.01, 0.02, 0.1, 0.5)]
    assert found == sorted(found, reverse=True)
    assert error_of_choices(-0.1, 0.01) == 0.0


def test_no_error_is_raised_above_that_of_a_constant_or_lowered():
    assert honest_error(0.49, 0.1, 0.5) == 0.5
    assert honest_error(0.52, 0.1, 0.5) == 0.52
    assert honest_error(0.0, 0.1, 0.5) == 0.0
    assert np.isnan(honest_error(float("nan"), 0.1, 0.5))


def test_the_gain_is_that_which_made_the_trust():
    loss = np.log(2) - 3.0 / 100
    share = trust([loss], [50], [50], cost=2.0)
    assert gain_of_trust(share, 2.0) == pytest.approx(3.0, abs=0.02)


def test_a_majority_counts_on_new_rows_if_it_is_no_chance():
    assert errors_of_constant(52, 48) == (0.48, 0.5)
    counted, on_new = errors_of_constant(300, 100)
    assert counted == 0.25
    assert on_new == pytest.approx(0.25, abs=1e-3)
