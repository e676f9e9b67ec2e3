"""The rules for gamma against brute force over all pairs of rows."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from oracles.kernels import gamma_rule

from hardmargin.kernels import GAMMA_RULES, Kernel, make_kernel, resolve_gamma

every_rule = pytest.mark.parametrize("rule", GAMMA_RULES)
every_kernel = pytest.mark.parametrize("kernel", ["rbf", "laplacian", "poly", "sigmoid"])

HOLDERS = {
    "dense": np.asarray,
    "Fortran": np.asfortranarray,
    "csr_array": sp.csr_array,
    "csr_matrix": sp.csr_matrix,
}


def rows(n: int = 23, d: int = 4) -> np.ndarray:
    generator = np.random.default_rng(0)
    return generator.normal(size=(n, d)) * (generator.random((n, d)) < 0.6) * np.arange(1, d + 1)


@pytest.mark.once_per("kernel", "rule")
@every_rule
@every_kernel
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("holder", HOLDERS)
def test_rule_agrees_with_oracle(rule, kernel, weighted, holder):
    X = rows()
    weights = np.random.default_rng(1).exponential(size=len(X)) if weighted else None
    gamma = resolve_gamma(rule, HOLDERS[holder](X), kernel=kernel, sample_weight=weights)
    expected = gamma_rule(rule, X, kernel=kernel, sample_weight=weights)
    np.testing.assert_allclose(gamma, expected, rtol=1e-12)


@every_rule
@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
@settings(max_examples=40, deadline=None)
@given(
    X=arrays(
        np.float64, st.tuples(st.integers(1, 12), st.integers(1, 3)), elements=st.integers(-9, 9)
    ),
    weights=st.lists(st.integers(1, 5), min_size=12, max_size=12),
)
def test_rule_for_any_rows_agrees_with_oracle(rule, kernel, X, weights):
    w = np.array(weights[: len(X)], dtype=np.float64)
    gamma = resolve_gamma(rule, X, kernel=kernel, sample_weight=w)
    expected = gamma_rule(rule, X, kernel=kernel, sample_weight=w)
    np.testing.assert_allclose(gamma, expected, rtol=1e-11)


@every_rule
@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
@pytest.mark.parametrize("holder", HOLDERS)
def test_weight_of_two_equals_the_row_twice(rule, kernel, holder):
    X, weights = rows(), np.random.default_rng(2).integers(0, 4, size=23)
    weighted = resolve_gamma(
        rule, HOLDERS[holder](X), kernel=kernel, sample_weight=weights.astype(np.float64)
    )
    repeated = resolve_gamma(rule, HOLDERS[holder](np.repeat(X, weights, axis=0)), kernel=kernel)
    np.testing.assert_allclose(weighted, repeated, rtol=1e-12)


@every_rule
@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
def test_entries_stored_in_two_halves_count_once(rule, kernel):
    X = sp.csr_array(rows())
    halves = sp.csr_array(
        (np.repeat(X.data / 2, 2), np.repeat(X.indices, 2), 2 * X.indptr), shape=X.shape
    )
    gamma = resolve_gamma(rule, halves, kernel=kernel)
    np.testing.assert_allclose(gamma, gamma_rule(rule, X, kernel=kernel), rtol=1e-12)


def test_scale_is_that_of_scikit_learn():
    X = rows()
    np.testing.assert_allclose(resolve_gamma("scale", X), 1 / (X.shape[1] * X.var()))


@every_rule
@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
@pytest.mark.parametrize("offset", [1e6, -1e6])
def test_distance_rules_do_not_suffer_far_from_the_origin(rule, kernel, offset):
    X = rows() + offset
    gamma = resolve_gamma(rule, X, kernel=kernel)
    np.testing.assert_allclose(gamma, gamma_rule(rule, X, kernel=kernel), rtol=1e-9)


@every_rule
@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
def test_rule_for_float32_rows_is_computed_in_float64(rule, kernel):
    X = rows().astype(np.float32)
    gamma = resolve_gamma(rule, X, kernel=kernel)
    np.testing.assert_allclose(gamma, gamma_rule(rule, X, kernel=kernel), rtol=1e-12)


@every_rule
@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
@pytest.mark.parametrize("value", [0.0, 0.1])
def test_rule_gives_one_where_all_entries_are_equal(rule, kernel, value):
    assert resolve_gamma(rule, np.full((7, 3), value), kernel=kernel) == 1.0


def test_number_stays_as_it_is():
    assert resolve_gamma(0.25, rows()) == 0.25


def test_unknown_rule_is_refused():
    with pytest.raises(ValueError, match=r"gamma must be .*'auto'"):
        resolve_gamma("auto", rows())


def test_make_kernel_resolves_the_rule_on_the_rows():
    X = rows()
    kernel = make_kernel("poly", X, gamma="spread", degree=2, coef0=0.5)
    assert kernel == Kernel("poly", gamma=resolve_gamma("spread", X), degree=2, coef0=0.5)


@pytest.mark.parametrize("rule", ["scale", "spread", "pairwise"])
@pytest.mark.parametrize("factor", [1e160, 1e200, 1e308])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_a_rule_for_gamma_refuses_features_beyond_its_range(rule, factor, form):
    X = form(factor * np.array([[0.0, 1.0], [1.0, 0.5], [-1.0, 0.0]]))
    message = f"gamma='{rule}' cannot be computed for features as large"
    with pytest.raises(ValueError, match=message):
        resolve_gamma(rule, X)


@pytest.mark.parametrize("rule", ["spread", "pairwise"])
def test_the_width_of_wide_sparse_rows_takes_no_loop_over_columns(rule):
    X = sp.random_array((40, 300_000), density=1e-3, format="csr", rng=0)
    X = sp.hstack([X, sp.csr_array(np.ones((40, 1)) + np.eye(40, 1))], format="csr")
    used, n_calls = np.unique(X.indices), 0

    def count(frame, event, argument):
        nonlocal n_calls
        n_calls += 1

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        found = resolve_gamma(rule, X, kernel="laplacian")
    finally:
        sys.setprofile(before)
    assert n_calls < 10_000
    assert found == pytest.approx(
        resolve_gamma(rule, X[:, used].toarray(), kernel="laplacian"), rel=1e-9
    )


@pytest.mark.parametrize(("coef0", "is_refused"), [(0.99, True), (1.01, False)])
def test_a_fractional_power_needs_a_base_that_is_not_negative(coef0, is_refused):
    rows = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 0.5]])  # x'z is no less than -1
    if is_refused:
        with pytest.raises(ValueError, match=r"degree=2\.5"):
            make_kernel("poly", rows, gamma=1.0, degree=2.5, coef0=coef0)
    else:
        assert make_kernel("poly", rows, gamma=1.0, degree=2.5, coef0=coef0).degree == 2.5
