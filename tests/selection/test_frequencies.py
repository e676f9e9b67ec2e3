"""Frequencies of classes as probabilities: they agree with every decision."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from hardmargin.selection.calibration import winning_codes
from hardmargin.selection.frequencies import Frequencies

SHARES = st.lists(st.floats(0.001, 1.0), min_size=2, max_size=5).map(
    lambda some: np.array(some) / sum(some)
)
MARGINS = st.floats(-5, 5) | st.just(0.0)


@given(SHARES, st.sampled_from(["ovo", "ovr"]), st.data())
def test_probabilities_have_the_order_of_decisions(shares, multi_class, data):
    k = len(shares)
    n_machines = 1 if k == 2 else k if multi_class == "ovr" else k * (k - 1) // 2
    margins = data.draw(hnp.arrays(np.float64, (4, n_machines), elements=MARGINS))
    model = Frequencies(shares, multi_class)
    scores, found = model.scores(margins), model.probabilities(margins)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    assert (found > 0).all()
    np.testing.assert_array_equal(found.argmax(axis=1), winning_codes(scores))
    if k == 2:
        np.testing.assert_array_equal(found[:, 1] >= 0.5, margins[:, 0] >= 0)
    for row, chances in zip(scores, found, strict=True):
        order = np.argsort(row)
        assert (np.diff(chances[order])[np.diff(row[order]) > 0] > 0).all()


def test_the_decision_for_a_frequent_class_keeps_the_frequencies():
    found = Frequencies(np.array([0.7, 0.2, 0.1]), "ovr").probabilities(np.array([[3.0, 2.0, 1.0]]))
    np.testing.assert_allclose(found, [[0.7, 0.2, 0.1]], rtol=1e-5)


def test_a_rare_class_that_is_predicted_is_as_likely_as_the_most_frequent_one():
    found = Frequencies(np.array([0.9, 0.1]), "ovo").probabilities(np.array([[0.0], [1.0]]))
    np.testing.assert_allclose(found, 0.5, atol=1e-6)


def test_rows_count_by_their_weights_and_no_class_is_impossible():
    codes, weights = np.array([0, 0, 1, -1], dtype=np.int32), np.array([1.0, 2.0, 0.5, 7.0])
    shares = Frequencies.of(codes, weights, 3, "ovo").shares
    assert shares == pytest.approx(np.array([4.0, 1.5, 1.0]) / 6.5)
