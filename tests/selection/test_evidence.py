"""How many rows weights stand for."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from hardmargin.selection.sigmoids import as_rows

WHOLE = arrays(np.float64, st.integers(1, 30), elements=st.integers(0, 50).map(float))
ANY = arrays(np.float64, st.integers(1, 30), elements=st.floats(1e-3, 1e3))


@given(WHOLE)
def test_whole_numbers_count_rows(weights):
    np.testing.assert_allclose(as_rows(weights), weights)


@given(ANY)
def test_the_sum_is_that_of_the_weights_or_the_effective_number_of_rows(weights):
    effective = weights.sum() ** 2 / (weights**2).sum()
    assert as_rows(weights).sum() == pytest.approx(max(weights.sum(), effective))


@given(ANY)
def test_ratios_stay(weights):
    np.testing.assert_allclose(as_rows(weights) / as_rows(weights)[0], weights / weights[0])


@pytest.mark.parametrize("size", [5e-324, 1e-300, 1e-10, 1.0])
def test_equal_weights_are_rows_whatever_their_size(size):
    np.testing.assert_array_equal(as_rows(np.full(7, size)), np.ones(7))


def test_the_largest_weights_do_not_overflow():
    np.testing.assert_array_equal(as_rows(np.full(7, 1e300)), np.full(7, 1e300))


def test_no_weight_is_no_row():
    np.testing.assert_array_equal(as_rows(np.zeros(3)), np.zeros(3))
