"""Least and largest values of columns, and whether there are others: wherever the rows live."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from hardmargin.kernels import as_blocks, blocks, column_ends

WHOLE = st.integers(-2, 2).map(float)


def naive(X, weights):
    X = X if weights is None else X[weights > 0]
    values = [set(column) for column in X.T]
    return [(min(v), max(v), len(v - {min(v), max(v)}) > 0) for v in values]


@pytest.mark.parametrize("form", [np.asarray, np.asfortranarray, sp.csr_array, blocks.FileRows])
@settings(deadline=None)
@given(data=st.data())
def test_ends_are_those_of_the_values(form, data):
    X = data.draw(arrays(float, st.tuples(st.integers(1, 9), st.integers(1, 4)), elements=WHOLE))
    weights = data.draw(st.none() | arrays(float, len(X), elements=st.sampled_from([0.0, 0.5, 2])))
    if weights is not None:
        weights[0] = 1.0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "BLOCK_BYTES", 8 * 2 * X.shape[1])  # two rows of a file
        found = column_ends(form(X), weights)
    assert list(zip(*found, strict=True)) == naive(X, weights)


def test_columns_of_many_rows_are_compared_a_few_rows_at_a_time(monkeypatch):
    monkeypatch.setattr(blocks, "_NUMBERS_AT_ONCE", 4)
    X = np.column_stack([np.arange(9) % 2, np.arange(9), np.ones(9)])
    assert column_ends(X).has_others.tolist() == [False, True, False]


def test_a_column_with_a_gap_has_other_values():
    X = np.array([[0.0, 1.0], [1.0, np.nan], [0.0, 1.0]])
    assert column_ends(X).has_others.tolist() == [False, True]


def test_rows_without_any_weight_are_refused():
    with pytest.raises(ValueError, match="No row has a positive weight"):
        column_ends(np.ones((3, 2)), np.zeros(3))


def test_rows_that_all_have_weight_are_not_copied():
    X = np.ones((5, 2))
    assert as_blocks(X).each(lambda rows: rows, among=np.full(5, 0.5))[0] is X


def test_rows_without_weight_and_blocks_without_others_are_left_out(monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 32)  # two rows of two columns
    X, weights = np.arange(12.0).reshape(6, 2), np.array([0.0, 2.0, 0.0, 0.0, 1.0, 3.0])
    in_blocks = as_blocks(X, most_bytes=32)
    found = in_blocks.each(
        lambda rows, w: (rows[:, 0].tolist(), w.tolist()), weights, among=weights
    )
    assert found == [([2.0], [2.0]), ([8.0, 10.0], [1.0, 3.0])]
