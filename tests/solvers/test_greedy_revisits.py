"""The greedy solver when rows may be visited again."""

import numpy as np
import pytest
from problems.two_class import (
    INDEFINITE,
    KERNELS,
    alpha_of,
    assert_same_path,
    mixed,
    oracle,
    small,
    solve,
    sparse,
)


@pytest.mark.parametrize("max_visits", [2, 4, 64])
@pytest.mark.parametrize("name", KERNELS)
def test_path_with_revisits(name, max_visits):
    X, y = (a[:80] for a in small())
    # An indefinite kernel's objective has no minimum, and the steps grow without bound.
    options = {"max_visits": max_visits, "max_stages": 20 if name in INDEFINITE else None}
    assert_same_path(solve(KERNELS[name], X, y, **options), oracle(KERNELS[name], X, y, **options))


@pytest.mark.parametrize("max_visits", [4, 64])
def test_path_of_wide_csr_rows_with_revisits(max_visits):
    X, y = sparse(5000, 0.01)
    assert_same_path(
        solve(KERNELS["rbf"], X, y, max_visits=max_visits),
        oracle(KERNELS["rbf"], X, y, max_visits=max_visits),
    )


def test_no_row_is_raised_more_often_than_allowed():
    solution = solve(KERNELS["rbf"], *mixed(), max_visits=4)
    raised = solution.history["row"][solution.history["step"] > 0]
    assert np.bincount(raised).max() <= 4


def test_multipliers_stay_nonnegative_with_revisits():
    solution = solve(KERNELS["rbf"], *mixed(), max_visits=64)
    alpha = np.zeros(len(mixed()[1]))
    np.add.at(alpha, solution.history["row"], solution.history["step"])
    assert alpha.min() >= -1e-12


def test_rows_that_gave_everything_back_have_no_multiplier():
    X, y = small()
    solution = solve(KERNELS["rbf"], X, y, max_visits=64)
    alpha = alpha_of(solution, len(y))
    assert (y[solution.rows] * solution.coefficients > 0).all()
    assert set(solution.rows) == set(np.flatnonzero(alpha > 1e-12))
