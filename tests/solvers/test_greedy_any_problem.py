"""The greedy solver on any small problem."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from problems.two_class import DISTANCE, KERNELS, NAMED, STEP_TOL, gram, solve


def assert_greedy(solution, K, y, max_visits):
    """Every stage is a best one up to rounding, which must hold even if rows tie."""
    n, k = len(y), K.diagonal()
    g, alpha, visits = -np.ones(n), np.zeros(n), np.zeros(n)
    for i, step in zip(solution.history["row"], solution.history["step"], strict=True):
        steps = np.where(k > 0, -g / np.where(k > 0, k, 1), 0)
        steps = np.maximum(steps, -alpha if max_visits > 1 else 0)
        steps[(visits >= max_visits) & (steps > 0)] = 0
        gains = np.abs(steps) if (k == 1).all() else -(steps * g + steps**2 * k / 2)
        large = np.abs(steps) * k > (STEP_TOL if max_visits > 1 else 0)
        rounding = 1e-12 * (1 + np.abs(K).max() * alpha.max()) / k[i]
        assert gains[i] >= (gains * large).max() - rounding * (1 + np.abs(g).max())
        assert step == pytest.approx(steps[i], abs=rounding)
        alpha[i] += step
        visits[i] += 1
        g = g + step * y * y[i] * K[:, i]


@st.composite
def grid_problems(draw):
    """Rows on a coarse grid: duplicates, opposite labels on one spot, constant columns."""
    n = draw(st.integers(2, 24))
    d = draw(st.integers(1, 7))
    values = st.sampled_from([0.0, 1.0, -2.0, 0.5])
    X = np.array(draw(st.lists(st.lists(values, min_size=d, max_size=d), min_size=n, max_size=n)))
    y = np.array(draw(st.lists(st.sampled_from([-1.0, 1.0]), min_size=n, max_size=n)))
    if draw(st.booleans()):
        X[:, draw(st.integers(0, d - 1))] = 7.0
    y[:2] = [1.0, -1.0]
    return X, y


ONE_VISIT = st.tuples(st.sampled_from(NAMED), st.just(1))
MORE_VISITS = st.tuples(st.sampled_from([*DISTANCE, "linear", "poly"]), st.sampled_from([2, 64]))
ANY_PROBLEM = given(problem=grid_problems(), how=ONE_VISIT | MORE_VISITS)


@ANY_PROBLEM
@settings(deadline=None, max_examples=150)
@example(problem=(np.zeros((4, 1)), np.array([1.0, -1.0, 1.0, -1.0])), how=("rbf", 64))
def test_every_stage_is_a_best_one(problem, how):
    (X, y), (name, max_visits) = problem, how
    solution = solve(KERNELS[name], X, y, max_visits=max_visits)
    assert_greedy(solution, gram(KERNELS[name], X), y, max_visits)


@given(problem=grid_problems(), name=st.sampled_from(NAMED))
@settings(deadline=None, max_examples=100)
def test_duplicates_are_chosen_in_order(problem, name):
    X, y = problem
    order = solve(KERNELS[name], X, y).history["row"]
    spots = np.unique(np.column_stack([X, y]), axis=0, return_inverse=True)[1].ravel()
    for spot in np.unique(spots):
        taken = order[spots[order] == spot]
        assert taken.tolist() == np.flatnonzero(spots == spot)[: len(taken)].tolist()


@given(problem=grid_problems(), name=st.sampled_from(DISTANCE), max_visits=st.sampled_from([1, 4]))
@settings(deadline=None, max_examples=100)
def test_lazy_equals_fused_on_ties(problem, name, max_visits):
    X, y = problem
    fused, lazy = (
        solve(KERNELS[name], X, y, max_visits=max_visits, method=m, block_rows=8)
        for m in ("fused", "lazy")
    )
    assert fused.history["row"].tolist() == lazy.history["row"].tolist()


@ANY_PROBLEM
@settings(deadline=None, max_examples=100)
def test_paths_are_finite(problem, how):
    name, max_visits = how
    solution = solve(KERNELS[name], *problem, max_visits=max_visits)
    assert np.isfinite(
        [*solution.history["step"], *solution.history["loss"], solution.squared_norm]
    ).all()
