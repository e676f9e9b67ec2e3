"""The regularisation path of the C-SVM, against certificates, optimisers and SVC."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.soft_margin import dual_objective, duality_gap, leave_one_out_bound, soft_margin
from sklearn.svm import SVC

from hardmargin.monitor import Monitor
from hardmargin.solvers.problem import Problem
from hardmargin.solvers.regularization_path import (
    RegularizationPathOptions,
    ScaledKernel,
    solve,
    start,
    tracer,
)
from hardmargin.solvers.regularization_path.state import Stuck


def kernel_of(X, kernel, gamma=0.5):
    if kernel == "linear":
        return X @ X.T
    return np.exp(-gamma * ((X[:, None] - X[None]) ** 2).sum(-1))


def solve_one(K, y, w=None, *, copies=None, monitor=None, **options):
    problem = Problem.two_class(ScaledKernel.of(K, copies), y, w)
    (solution,) = solve(problem, RegularizationPathOptions(**options), monitor)
    return solution


def trace(K, y, w=None, **options):
    return solve_one(K, y, w, **options).path


def noisy(n=60, d=2, seed=0, shift=0.4):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.where(X[:, 0] + rng.normal(size=n) > shift, 1.0, -1.0)


def violation(K, y, w, C, alpha, intercept):
    """Violation of the optimality conditions, on the scale of the margins."""
    scores = y * (K @ (alpha * y) + intercept)
    may_grow, may_fall = alpha < C * w * (1 - 1e-9), alpha > 1e-9 * C * w
    short = (1 - scores[may_grow]).max(initial=0.0)
    return max(short, (scores[may_fall] - 1).max(initial=0.0))


def assert_optimal(path, K, y, w, between=True):
    """Check every breakpoint after C = 0, and between each and the next."""
    for k in range(len(path)):
        Cs = [path.C[k]]
        if between and k + 1 < len(path):
            Cs.append((path.C[k] + path.C[k + 1]) / 2)
        for C in Cs:
            if C > 0:
                alpha, intercept = path.at(C)
                assert violation(K, y, w, C, alpha, intercept) < 1e-8
                gap = duality_gap(K, y, w, C, alpha, intercept)
                assert gap <= 1e-7 * max(C * w.sum(), alpha.sum())


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("weighted", [False, True])
def test_every_breakpoint_is_optimal(kernel, weighted):
    X, y = noisy()
    w = np.random.default_rng(1).uniform(0.5, 2, size=len(y)) if weighted else np.ones(len(y))
    K = kernel_of(X, kernel)
    path = trace(K, y, w)
    assert_optimal(path, K, y, w)
    assert path.violation < 1e-8
    assert path.n_restarts == 0


@pytest.mark.parametrize("C", [1e-3, 0.02, 0.3, 1.0, 7.0, 500.0])
def test_any_C_is_svc(C):
    X, y = noisy(80)
    K = kernel_of(X, "rbf")
    w = np.random.default_rng(1).uniform(0.5, 2, size=len(y))
    alpha, intercept = trace(K, y, w).at(C)
    svc = SVC(C=C, kernel="precomputed", tol=1e-10).fit(K, y, sample_weight=w)
    dual_coef = np.zeros(len(y))
    dual_coef[svc.support_] = svc.dual_coef_[0]
    atol = 1e-5 * max(C, 1)  # its kernel values are float32
    np.testing.assert_allclose(K @ (alpha * y), K @ dual_coef, atol=atol)
    if (np.minimum(alpha, C * w - alpha) > 1e-6 * C).any():  # otherwise b is free
        assert intercept == pytest.approx(svc.intercept_[0], abs=atol)


def test_breakpoints_ascend_and_norms_grow():
    X, y = noisy()
    path = trace(kernel_of(X, "rbf"), y)
    assert path.C[0] == 0.0
    assert (np.diff(path.C) >= 0).all()
    assert (np.diff(path.squared_norm) >= 0).all()
    assert (np.diff(path.slack_sum) <= 1e-9).all()


def test_numbers_of_the_breakpoints():
    X, y = noisy()
    K = kernel_of(X, "rbf")
    path = trace(K, y)
    for k in range(1, len(path), 7):
        alpha, b = path.multipliers(k), path.intercept[k]
        f = K @ (alpha * y) + b
        assert path.squared_norm[k] == pytest.approx((alpha * y) @ K @ (alpha * y), rel=1e-8)
        assert path.slack_sum[k] == pytest.approx(np.maximum(0, 1 - y * f).sum(), abs=1e-8)
        assert path.error[k] == pytest.approx(np.mean((f >= 0) != (y > 0)))
        assert path.loo_bound[k] == pytest.approx(leave_one_out_bound(K, y, alpha, b))
        assert path.n_support[k] == np.count_nonzero(alpha)


def test_the_leave_one_out_bound_between_breakpoints():
    X, y = noisy()
    K = kernel_of(X, "rbf")
    path = trace(K, y)
    for C in np.geomspace(path.C[1] / 5, path.C[-1], 50):
        known = path.loo_bound[0] + path.loo_change[path.loo_C <= C].sum()
        assert known == pytest.approx(leave_one_out_bound(K, y, *path.at(C)))


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_norms_between_breakpoints_and_back(share):
    X, y = noisy()
    K = kernel_of(X, "rbf")
    path = trace(K, y)
    for k in range(0, len(path) - 1, 5):
        C = path.C[k] + share * (path.C[k + 1] - path.C[k])
        c = path.at(C)[0] * y
        assert path.squared_norm_at(C) == pytest.approx(c @ K @ c, rel=1e-8, abs=1e-12)
        assert path.C_of_norm(path.squared_norm_at(C)) == pytest.approx(C, rel=1e-4)


def test_the_norm_at_the_end_of_a_path_and_beyond_is_its_last():
    X, y = noisy()
    path = trace(kernel_of(X, "rbf"), y)
    for C in (path.C[-1], 2 * path.C[-1]):
        assert path.squared_norm_at(C) == path.squared_norm[-1]


def test_a_separable_path_ends_at_the_hard_margin():
    X = np.array([[0.0, 0.0], [0.0, 5.0], [3.0, 1.0]])
    y = np.array([-1.0, -1.0, 1.0])
    path = trace(X @ X.T, y)
    assert path.stop_reason == "hard_margin"
    assert np.sqrt(path.squared_norm[-1]) == pytest.approx(1 / 1.5)
    assert path.at(1e9)[0] == pytest.approx(path.multipliers(-1))


@pytest.mark.parametrize("counts", [(2, 2), (1, 6), (7, 3)])
def test_before_the_first_event_multipliers_are_proportional_to_C(counts):
    X, _ = noisy(sum(counts))
    y = np.repeat([1.0, -1.0], counts)
    path = trace(kernel_of(X, "rbf"), y)
    first = path.C[1]
    np.testing.assert_allclose(path.at(first / 4)[0], path.multipliers(1) / 4, atol=1e-12)
    assert path.intercept[0] == np.sign(y.sum())


def test_rows_that_are_only_scored_have_their_crossings():
    X, y = noisy(60)
    K = kernel_of(X, "rbf")
    labels = np.where(np.arange(60) < 40, y, 0.0)
    path = trace(K, labels)
    for C in np.geomspace(path.C[1], path.C[-1], 20):
        alpha, b = path.at(C)
        assert not alpha[40:].any()
        flips = np.bincount(path.crossing_row[path.crossing_C <= C], minlength=60)
        said = (path.intercept[0] >= 0) ^ (flips % 2 == 1)
        np.testing.assert_array_equal(said[40:], (K @ (alpha * labels) + b)[40:] >= 0)


ROWS = st.integers(2, 14)


@st.composite
def hard_cases(draw):
    """Few points on a grid: duplicates of both labels, ties, constant columns, any balance."""
    n = draw(ROWS)
    grid = st.integers(0, draw(st.integers(0, 3)))
    X = np.array(draw(st.lists(st.tuples(grid, grid), min_size=n, max_size=n)), dtype=float)
    y = np.array(draw(st.lists(st.sampled_from([-1.0, 1.0]), min_size=n, max_size=n)))
    y[:2] = [-1.0, 1.0]
    w = np.array(draw(st.lists(st.integers(1, 3), min_size=n, max_size=n)), dtype=float)
    return X, y, w, draw(st.sampled_from(["linear", "rbf"]))


@settings(max_examples=100, deadline=None)
@given(hard_cases())
def test_ties_and_singular_elbows(case):
    X, y, w, kernel = case
    K = kernel_of(X, kernel)
    path = trace(K, y, w)
    assert path.stop_reason in ("hard_margin", "C_max")
    assert_optimal(path, K, y, w)


@settings(max_examples=15, deadline=None)
@given(hard_cases(), st.floats(0.01, 10))
def test_the_optimiser_finds_nothing_better(case, C):
    X, y, w, kernel = case
    K = kernel_of(X, kernel)
    alpha, _ = trace(K, y, w).at(C)
    best = dual_objective(K, y, soft_margin(K, y, w, C))
    assert dual_objective(K, y, alpha) >= best - 1e-6 * max(best, C)


@pytest.mark.parametrize("n", [20, 80, 300])
def test_many_copies(n):
    """As in titanic, where few points come with both labels hundreds of times."""
    rng = np.random.default_rng(n)
    X = rng.integers(0, 2, size=(n, 3)).astype(float)
    y = np.where(rng.random(n) < 0.2 + 0.5 * X[:, 0], 1.0, -1.0)
    K, w = kernel_of(X, "rbf"), np.ones(n)
    path = trace(K, y, w)
    assert path.stop_reason == "C_max"
    assert_optimal(path, K, y, w, between=n < 100)


def test_a_weight_of_two_is_the_row_twice():
    X, y = noisy(40)
    w = np.random.default_rng(0).integers(1, 4, size=40)
    K = kernel_of(X, "rbf")
    twice = np.repeat(np.arange(40), w)
    one = trace(K, y, w.astype(float), copies=w.astype(float))
    many = trace(K[np.ix_(twice, twice)], y[twice])
    for C in (0.01, 0.1, 1.0, 10.0):
        alpha, b = one.at(C)
        alphas, bs = many.at(C)
        np.testing.assert_allclose(np.bincount(twice, weights=alphas), alpha, atol=1e-8)
        assert bs == pytest.approx(b, abs=1e-8)
        bounds = [p.loo_bound[0] + p.loo_change[p.loo_C <= C].sum() for p in (one, many)]
        assert bounds[0] == pytest.approx(bounds[1])


@pytest.mark.parametrize("scale", [2.0**-30, 2.0**30])
def test_scales_of_kernel_and_weights_only_scale_C(scale):
    X, y = noisy(40)
    K = kernel_of(X, "linear") + 1e4  # far from the origin, which the bias compensates
    plain = trace(K, y)
    scaled = trace(K * scale, y, np.full(40, scale), C_max=1e4 / scale**2)
    np.testing.assert_allclose(scaled.C * scale**2, plain.C, rtol=1e-4)
    np.testing.assert_allclose(scaled.error, plain.error)


def test_equal_rows_have_a_path_of_one_piece():
    y = np.array([1.0, 1.0, -1.0, -1.0])
    path = trace(np.ones((4, 4)), y)
    assert path.stop_reason == "C_max"
    assert path.squared_norm[-1] == 0.0


@pytest.mark.parametrize("n_failures", [1, 5])
def test_a_blocked_path_continues_after_solving_again(monkeypatch, n_failures):
    X, y = noisy(40)
    K = kernel_of(X, "rbf")
    plain = trace(K, y)
    honest, calls = tracer.next_event, []

    def blocked(state, room):
        calls.append(room)
        if len(calls) % 9 == 0 and len(calls) <= 9 * n_failures:
            raise Stuck
        return honest(state, room)

    monkeypatch.setattr(tracer, "next_event", blocked)
    path = trace(K, y)
    assert 1 <= path.n_restarts <= n_failures
    assert path.stop_reason == plain.stop_reason
    assert_optimal(path, K, y, np.ones(40), between=False)
    for C in (0.1, 1.0, 10.0):
        np.testing.assert_allclose(path.at(C)[0], plain.at(C)[0], atol=1e-5)


def test_the_start_by_an_active_set_is_the_same(monkeypatch):
    X, y = noisy(40, shift=0.8)
    K = kernel_of(X, "rbf")
    plain = trace(K, y)

    def blocked(state, room):
        raise Stuck

    monkeypatch.setattr(start, "next_event", blocked)
    path = trace(K, y)
    np.testing.assert_allclose(path.C, plain.C, rtol=1e-7)


def test_an_indefinite_kernel_gives_a_finite_path():
    X, y = noisy(30)
    K = np.tanh(X @ X.T - 1.0)
    path = trace(K, y, C_max=100.0)
    assert np.isfinite(path.intercept).all()
    assert np.isfinite(path.at(path.C[-1])[0]).all()


def clocked(stages):
    """A monitor whose clock counts stages, and whose time is up after some of them."""
    now = [0.0]
    return Monitor(stages, [lambda event: now.__setitem__(0, event.stage)], clock=lambda: now[0])


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"max_stages": 5}, "max_stages"),
        ({"monitor": clocked(7)}, "max_time"),
        ({"monitor": Monitor(listeners=[lambda event: event.stage == 7])}, "callback"),
    ],
)
def test_limits_leave_a_path_that_is_valid_as_far_as_it_goes(options, reason):
    X, y = noisy()
    K = kernel_of(X, "rbf")
    path = trace(K, y, **options)
    assert path.stop_reason == reason
    assert path.n_stages == options.get("max_stages", 7)
    assert_optimal(path, K, y, np.ones(len(y)))


@pytest.mark.parametrize(
    ("monitor", "reason"),
    [
        (Monitor(max_seconds=0), "max_time"),
        (Monitor(listeners=[lambda event: True]), "callback"),
    ],
)
def test_no_time_for_a_start_leaves_the_larger_class(monitor, reason):
    X, y = noisy()
    solution = solve_one(kernel_of(X, "rbf"), y, monitor=monitor)
    assert solution.stop_reason == solution.path.stop_reason == reason
    alpha, intercept = solution.path.at(1.0)
    assert not alpha.any()
    assert len(solution.rows) == 0
    assert intercept == solution.intercept == np.sign(y.sum())


def test_time_that_is_up_during_the_start():
    X, y = noisy(shift=1.0)
    ticks = iter(range(1000))
    path = trace(kernel_of(X, "rbf"), y, monitor=Monitor(5, clock=lambda: next(ticks)))
    assert path.stop_reason == "max_time"
    assert len(path) == 1
    assert path.intercept[0] == np.sign(y.sum())


@pytest.mark.parametrize("keep_multipliers", [True, False])
def test_the_solution_is_the_end_of_the_path(keep_multipliers):
    X, y = noisy()
    K = kernel_of(X, "rbf")
    solution = solve_one(K, y, C_max=2.0, keep_multipliers=keep_multipliers)
    alpha, intercept = trace(K, y, C_max=2.0).at(2.0)
    np.testing.assert_array_equal(solution.rows, np.flatnonzero(alpha))
    np.testing.assert_allclose(solution.coefficients, (alpha * y)[solution.rows], rtol=1e-12)
    assert solution.intercept == intercept
    assert solution.certificate == solution.path.violation
    assert solution.n_stages == solution.path.n_stages


def test_one_path_per_machine():
    X, _ = noisy(60)
    codes = np.arange(60, dtype=np.int32) % 3
    K = kernel_of(X, "rbf")
    machines = [([0], [1]), ([0], [2]), ([0, 1], [2])]
    solutions = solve(
        Problem(ScaledKernel.of(K), codes, machines), RegularizationPathOptions(C_max=10.0)
    )
    for machine, (negative, positive) in enumerate(machines):
        labels = np.isin(codes, positive) * 1.0 - np.isin(codes, negative)
        path = solutions[machine].path
        np.testing.assert_array_equal(path.labels, labels)
        alpha, intercept = path.at(1.0)
        taking_part = labels != 0
        w = np.ones(taking_part.sum())
        its_K = K[np.ix_(taking_part, taking_part)]
        worst = violation(its_K, labels[taking_part], w, 1.0, alpha[taking_part], intercept)
        assert worst < 1e-8


def test_the_path_can_end_at_a_norm():
    X, y = noisy()
    K = kernel_of(X, "rbf")
    path = trace(K, y, max_squared_norm=2.0)
    assert path.stop_reason == "norm"
    assert path.squared_norm_at(path.C_of_norm(2.0)) == pytest.approx(2.0)


def test_multipliers_that_were_not_kept():
    X, y = noisy(20)
    path = trace(kernel_of(X, "rbf"), y, keep_multipliers=False)
    with pytest.raises(ValueError, match="without keeping"):
        path.multipliers(0)
    with pytest.raises(ValueError, match="negative"):
        path.place(-1.0)
