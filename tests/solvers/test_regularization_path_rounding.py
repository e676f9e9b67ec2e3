"""The regularisation path where rounding matters: smooth kernels, near copies, huge scales."""

import numpy as np
import pytest

from hardmargin.solvers.problem import Problem
from hardmargin.solvers.regularization_path import RegularizationPathOptions, ScaledKernel, solve
from hardmargin.solvers.regularization_path.elbow import Elbow
from hardmargin.solvers.regularization_path.state import Conditions, MarginState, Stuck


def rbf(X, gamma):
    return np.exp(-gamma * ((X[:, None] - X[None]) ** 2).sum(-1))


def on_a_line(seed, gamma):
    """One feature that says nothing about the label, and classes of different sizes."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(70, 1))
    y = np.where(rng.random(70) < 0.35, 1.0, -1.0)
    return rbf(X, 1 / X.var() if gamma is None else gamma), y


def near_copies(seed, distance):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(60, 2)), rng.integers(0, 2, 60)
    X = np.r_[X, X + distance * rng.normal(size=X.shape)]
    return rbf(X, 1 / (2 * X.var())), np.where(np.r_[y, rng.permutation(y)] > 0, 1.0, -1.0)


def violation(K, y, C, alpha, intercept):
    """Violation of optimality: of the margins, and of the sum relative to the multipliers."""
    scores = y * (K @ (alpha * y) + intercept)
    short = (1 - scores[alpha < C * (1 - 1e-9)]).max(initial=0.0)
    over = (scores[alpha > 1e-9 * C] - 1).max(initial=0.0)
    return max(short, over, abs(alpha @ y) / alpha.sum())


def worst(path, K, y):
    """The largest violation at breakpoints and halfway between them."""
    Cs = np.unique(np.r_[path.C, (path.C[1:] + path.C[:-1]) / 2])
    at_breakpoints = [
        violation(K, y, path.C[k], path.multipliers(k), path.intercept[k])
        for k in range(len(path))
        if path.C[k] > 0
    ]
    return max([0.0, *at_breakpoints, *(violation(K, y, C, *path.at(C)) for C in Cs if C > 0)])


def traced(K, y, C_max=1e4):
    (solution,) = solve(
        Problem.two_class(ScaledKernel.of(K), y), RegularizationPathOptions(C_max=C_max)
    )
    return solution.path


# Of these, one had a wrong first piece, and the others ended at C = 0.
@pytest.mark.parametrize("seed", [4, 0, 5, 21, 39])
def test_the_first_piece_of_a_wide_kernel(seed):
    K, y = on_a_line(seed, 1e-3)
    path = traced(K, y)
    assert path.stop_reason == "C_max"
    assert worst(path, K, y) <= 1e-8
    alpha, _ = path.at(100.0)
    assert abs(alpha @ y) <= 1e-9 * alpha.sum()


@pytest.mark.parametrize(
    "problem",
    [
        *((on_a_line, seed, gamma) for seed in (8, 1, 2, 9) for gamma in (None, 0.3, 1e-3)),
        *((near_copies, seed, distance) for seed in (2, 3, 4) for distance in (1e-8, 1e-5)),
    ],
)
def test_the_certificate_is_true(problem):
    make, seed, parameter = problem
    K, y = make(seed, parameter)
    path = traced(K, y)
    found = worst(path, K, y)
    assert found <= 1e-8 or path.violation >= found / 2
    assert path.stop_reason == "C_max"


@pytest.mark.parametrize(("seed", "distance"), [(2, 1e-8), (1, 1e-5)])
def test_near_copies_are_no_reason_for_a_violation(seed, distance):
    K, y = near_copies(seed, distance)
    assert worst(traced(K, y), K, y) <= 1e-8


@pytest.mark.parametrize("seed", range(4))
def test_the_certificate_of_an_indefinite_kernel_is_true(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 2))
    y = np.where(rng.random(60) < 0.4, 1.0, -1.0)
    K = np.tanh(X @ X.T - 1.0)
    path = traced(K, y)
    found = worst(path, K, y)
    assert found <= 1e-8 or path.violation >= found / 2


@pytest.mark.parametrize("scale", [1e5, 1e10])
def test_a_path_ends_where_rounding_does(scale):
    """In units of the kernel, C_max is 1e14 and more."""
    rng = np.random.default_rng(0)
    X = scale * rng.normal(size=(60, 3))
    y = np.where(rng.random(60) < 0.4, 1.0, -1.0)
    K = X @ X.T
    path = traced(K, y)
    assert path.stop_reason == "stalled"
    assert 1e6 < path.C[-1] * scale**2 < 1e13
    assert path.violation <= 1e-4
    assert worst(path, K, y) <= 4e-4


def test_the_norm_of_a_breakpoint_is_that_of_its_multipliers():
    K, y = on_a_line(8, None)
    path = traced(K, y, C_max=300.0)
    for k in range(len(path)):
        c = path.multipliers(k) * y
        assert path.squared_norm[k] == pytest.approx(c @ K @ c, rel=1e-6, abs=1e-9)


def test_scored_rows_cross_where_the_problem_is_solved_again():
    K, y = near_copies(3, 1e-5)
    labels = np.where(np.arange(len(y)) % 3 == 0, 0.0, y)
    path = traced(K, labels)
    for C in np.geomspace(path.C[1], path.C[-1], 40):
        alpha, b = path.at(C)
        f = K @ (alpha * labels) + b
        flips = np.bincount(path.crossing_row[path.crossing_C <= C], minlength=len(y))
        said = (path.intercept[0] >= 0) ^ (flips % 2 == 1)
        clear = (labels == 0) & (np.abs(f) > 1e-6)
        np.testing.assert_array_equal(said[clear], f[clear] >= 0)


@pytest.mark.parametrize("way", ["correct", "towards_margin"])
def test_a_spoiled_inverse_changes_nothing(way):
    K, y = np.eye(2), np.array([1.0, -1.0])
    elbow = Elbow.of(K, np.arange(2))
    elbow._inverse *= 1e300
    state = MarginState(Conditions(K, y, np.ones(2)), np.zeros(2), 1.0, elbow=elbow)
    with pytest.raises(Stuck):
        getattr(state, way)()
    assert not state.alpha.any()
    assert state.b == 0
