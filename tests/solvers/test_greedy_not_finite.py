"""Kernel values that are not finite are refused: none may pass for the mark of a spent row."""

import numpy as np
import pytest
from problems.greedy_core import WAYS, N, X, run_values

from hardmargin.kernels import Kernel, KernelRows
from hardmargin.solvers import greedy
from hardmargin.solvers.greedy import GreedyOptions
from hardmargin.solvers.problem import Problem

K = Kernel("rbf", gamma=1.0).block(X)
Y = np.where(X[:, 0] > 0, 1, -1)
EAGER = {name: way for name, way in WAYS.items() if "method" not in way}


def with_far_rows(wrong):
    return np.where(np.abs(X[:, None, 0] - X[:, 0]) > 1.0, wrong, K)


@pytest.mark.parametrize("way", EAGER)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite_are_refused_by_every_rule(way, dtype, wrong):
    with pytest.raises(greedy.NotFinite, match="must be finite"):
        run_values(with_far_rows(wrong), dtype=dtype, **EAGER[way])


@pytest.mark.parametrize("way", EAGER)
def test_one_value_is_enough(way):
    first = run_values(K, **EAGER[way]).rows[0]
    for wrong in (np.nan, np.inf):
        values, other = K.copy(), (first + N // 2) % N
        values[first, other] = values[other, first] = wrong
        with pytest.raises(greedy.NotFinite):
            run_values(values, **EAGER[way])


@pytest.mark.parametrize("max_stages", [1, 5])
def test_a_path_that_is_cut_short_is_no_exception(max_stages):
    with pytest.raises(greedy.NotFinite):
        run_values(with_far_rows(np.inf), max_stages=max_stages)


def test_values_that_float32_cannot_hold_are_refused():
    problem = Problem.two_class(KernelRows(Kernel("precomputed"), 1e39 * K, "float32"), Y)
    with pytest.raises(ValueError, match="cannot hold kernel values"):
        greedy.solve(problem)


@pytest.mark.parametrize("max_visits", [1, 5])
def test_the_solver_refuses_them(max_visits):
    rows = KernelRows(Kernel("precomputed"), with_far_rows(np.inf))
    with pytest.raises(ValueError, match="must be finite; some are NaN or infinite"):
        greedy.solve(Problem.two_class(rows, Y), GreedyOptions(max_visits=max_visits))


@pytest.mark.parametrize("way", EAGER)
def test_large_values_are_accepted_while_they_are_finite(way):
    options = EAGER[way] | {"diagonal": 1e300 * np.ones(N)}
    assert np.isfinite(run_values(1e300 * K, **options).multipliers).all()
