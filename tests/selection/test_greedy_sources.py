"""What the greedy stagewise SVM chooses its kernel values from."""

import numpy as np
import pytest
import scipy.sparse as sp

from hardmargin.kernels import make_kernel
from hardmargin.selection.greedy_sources import (
    HANDICAP_AS_THEY_CAME,
    MAX_EXACT_ROWS,
    greedy_sources,
    row_weights,
)
from hardmargin.solvers.problem import KernelRows, Problem

X = np.random.default_rng(0).normal(size=(60, 4))
CODES = np.repeat([0, 1], 30).astype(np.int32)


def problem(rows=X, kernel="rbf", codes=CODES, weights=None):
    values = KernelRows(make_kernel(kernel, rows, gamma="spread"), rows)
    return Problem(values, codes, [([0], [1])], weights)


def sources(views, chooses_kernel=True, is_centred=True, may_round=True, **parameters):
    return greedy_sources(
        problem(views[0], **parameters),
        views,
        chooses_kernel=chooses_kernel,
        tunes_gamma=True,
        is_centred=is_centred,
        may_round=may_round,
    )


def kernels(found):
    return [(source.view, source.values.kernel.name) for source in found]


def test_every_view_has_every_kernel():
    found = sources([X, 2 * X])
    assert kernels(found) == [(0, "rbf"), (0, "laplacian"), (1, "rbf"), (1, "laplacian")]
    np.testing.assert_array_equal(found[2].values.X, 2 * X)
    assert found[2].values.kernel.gamma == pytest.approx(found[0].values.kernel.gamma / 4)


def test_the_first_view_has_no_handicap_and_may_be_scaled():
    first, second = sources([X, 2 * X])[::2]
    assert (first.handicap, second.handicap) == (1.0, HANDICAP_AS_THEY_CAME)
    assert (first.can_scale, second.can_scale) == (True, False)
    assert (first.is_centred, second.is_centred) == (True, False)


def test_sparse_and_wide_rows_may_have_a_linear_kernel():
    assert (0, "linear") in kernels(sources([sp.csr_array(X)], is_centred=False))
    assert (0, "linear") in kernels(sources([X[:3]], codes=CODES[28:31]))


def test_a_given_kernel_is_the_only_one():
    found = sources([X], chooses_kernel=False, kernel="poly")
    assert kernels(found) == [(0, "poly")]
    assert not found[0].can_scale


def test_linear_kernels_have_no_gamma():
    found = sources([sp.csr_array(X)], is_centred=False)
    tuned = {source.values.kernel.name: source.tunes_gamma for source in found}
    assert tuned == {"rbf": True, "laplacian": True, "linear": False}


@pytest.mark.parametrize(
    ("factor", "may_round", "dtype"),
    [(1.0, True, "float32"), (1.0, False, "float64"), (1e30, True, "float64")],
)
def test_many_rows_of_ordinary_size_are_rounded(factor, may_round, dtype):
    many = factor * np.tile(X, (MAX_EXACT_ROWS // len(X) + 1, 1))
    codes = np.resize(CODES, len(many))
    found = sources([many], codes=codes, may_round=may_round)
    assert {source.values.dtype for source in found} == {dtype}


def test_rows_without_a_part_have_no_weight():
    hidden = np.where(np.arange(60) % 2 == 0, CODES, -1).astype(np.int32)
    assert row_weights(problem()) is None
    np.testing.assert_array_equal(row_weights(problem(codes=hidden)), hidden >= 0)
    weights = np.arange(60.0)
    expected = np.where(hidden >= 0, weights, 0.0)
    np.testing.assert_array_equal(row_weights(problem(codes=hidden, weights=weights)), expected)
