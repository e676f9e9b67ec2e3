"""How exact means over held-out rows are."""

import numpy as np
import pytest
from scipy.stats import sem

from hardmargin.selection.standard_error import standard_error

RANDOM = np.random.default_rng(0)
VALUES, ROWS = RANDOM.exponential(size=50), RANDOM.permutation(200)[:50]


def test_of_plain_rows_it_is_the_usual_one():
    assert standard_error(VALUES, ROWS) == pytest.approx(sem(VALUES))


def test_of_errors_it_is_that_of_a_share():
    is_wrong = np.arange(400) < 100
    assert standard_error(is_wrong, np.arange(400)) == pytest.approx(
        np.sqrt(0.25 * 0.75 / 399), rel=1e-10
    )


def test_a_row_that_is_held_out_again_is_one_row():
    again = np.concatenate([VALUES + 0.5, VALUES - 0.5, VALUES[:20]])
    rows = np.concatenate([ROWS, ROWS, ROWS[:20]])
    assert standard_error(again, rows) == pytest.approx(sem(VALUES))


def test_a_weight_of_two_is_the_row_twice():
    weights = RANDOM.integers(1, 4, 50)
    expected = standard_error(np.repeat(VALUES, weights), np.arange(weights.sum()))
    assert standard_error(VALUES, ROWS, weights.astype(float)) == pytest.approx(expected)


def test_the_scale_of_normalised_weights_does_not_matter():
    assert standard_error(VALUES, ROWS, np.full(50, 0.02)) == pytest.approx(sem(VALUES))


def test_a_row_of_most_weight_leaves_few_rows():
    weights = np.where(np.arange(50) < 2, 1.0, 1e-9)
    assert standard_error(VALUES, ROWS, weights) == pytest.approx(sem(VALUES[:2]), rel=1e-3)


@pytest.mark.parametrize("n", [0, 1])
def test_below_two_rows_nothing_is_known(n):
    assert np.isnan(standard_error(VALUES[:n], ROWS[:n]))
