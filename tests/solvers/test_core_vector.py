"""L2-SVMs by core sets against quadratic programs."""

import functools
import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from oracles.core_vector import core_set_steps, enclosing_ball, l2_svm, l2_svms
from problems.clock import Clock
from problems.two_class import KERNELS, gram, small

from hardmargin import _core
from hardmargin.kernels import Kernel
from hardmargin.kernels.columns import KernelColumns
from hardmargin.monitor import Monitor
from hardmargin.solvers.core_sets import core_vector
from hardmargin.solvers.core_sets.core_set import CoreSet
from hardmargin.solvers.core_sets.core_vector import CoreVectorOptions
from hardmargin.solvers.core_sets.l2_svm import CONSTRAINTS, L2Problem, constrained, slack_of
from hardmargin.solvers.problem import Problem

KERNEL = KERNELS["rbf"]
CONSTRAINT = pytest.mark.parametrize("constraint", CONSTRAINTS)


def rows(n=208):
    return small(n=n, d=4)


def solve(X, y, n_machines=1, constraint="orthogonal", weights=None, kernel=KERNEL, **options):
    options = CoreVectorOptions(n_directions=n_machines, constraint=constraint, **options)
    return core_vector.solve(Problem.two_class(KernelColumns(kernel, X), y, weights), options)


def solve_one(columns, y, monitor=None, **options):
    [solution] = core_vector.solve(
        Problem.two_class(columns, y), CoreVectorOptions(**options), monitor
    )
    return solution


@functools.cache
def solved(C, constraint, tol):
    return solve(*rows(), 5, constraint, C=C, tol=tol)


@functools.cache
def matrix():
    return gram(KERNEL, rows()[0])


def constraints_of(solutions, constraint, weights=None):
    """The expansions that the next machine must be orthogonal to."""
    if constraint == "orthogonal":
        return np.column_stack([s.direction for s in solutions])
    w = np.ones(len(solutions[0].projections)) if weights is None else weights
    f = [s.projections for s in solutions]
    if constraint == "uncorrelated-centred":
        f = [v - w @ v / w.sum() for v in f]
    return np.column_stack([w * v for v in f])


# --- the optimum ---------------------------------------------------------------------------------


@pytest.mark.once_per("C", "constraint")
@pytest.mark.parametrize("tol", [0.05, 1e-4])
@CONSTRAINT
@pytest.mark.parametrize("C", [0.1, 1, 100, 1000])
def test_objective_is_within_the_certificate(C, constraint, tol):
    _, y = rows()
    solutions = solved(C, constraint, tol)
    assert len(solutions) == 5
    for q, solution in enumerate(solutions):
        before = constraints_of(solutions[:q], constraint) if q else None
        best = l2_svm(matrix(), y, C, constraints=before)
        assert best.primal == pytest.approx(best.objective, rel=1e-8)  # at the optimum
        assert solution.stop_reason == "certified"
        assert solution.lower_bound <= best.objective * (1 + 1e-7)
        assert solution.objective >= best.objective * (1 - 1e-7)
        assert solution.objective <= solution.lower_bound / (1 - tol) ** 2 * (1 + 1e-9)


@CONSTRAINT
@pytest.mark.parametrize("C", [0.1, 1, 100, 1000])
def test_directions_meet_their_constraints(C, constraint):
    solutions = solved(C, constraint, 0.05)
    W = np.column_stack([s.direction for s in solutions])
    np.testing.assert_allclose(np.diag(W.T @ matrix() @ W), 1.0, atol=1e-6)
    for q in range(1, 5):
        U = constraints_of(solutions[:q], constraint)
        inner = U.T @ matrix() @ W[:, q]
        norms = np.sqrt(np.einsum("iq,ij,jq->q", U, matrix(), U))
        assert np.abs(inner / norms).max() < 1e-8


@CONSTRAINT
@pytest.mark.parametrize("C", [0.1, 1, 100])
def test_machines_are_those_of_the_oracle(C, constraint):
    _, y = rows()
    solutions = solve(*rows(), 3, constraint, C=C, tol=1e-7)
    for solution, best in zip(solutions, l2_svms(matrix(), y, 3, constraint, C), strict=True):
        assert solution.objective == pytest.approx(best.primal, rel=1e-4)
        np.testing.assert_allclose(solution.projections, best.scores / best.norm, atol=2e-3)


@pytest.mark.parametrize("C", [0.1, 1, 100, 1000])
def test_multipliers_are_the_optimum(C):
    _, y = rows()
    [solution] = solve(*rows(), C=C, tol=1e-8)
    best = l2_svm(matrix(), y, C)
    alpha = np.zeros(len(y))
    alpha[solution.rows] = y[solution.rows] * solution.coefficients
    np.testing.assert_allclose(alpha, best.alpha, atol=1e-5 * best.alpha.max())
    assert solution.intercept == pytest.approx(best.intercept, abs=1e-5)
    assert solution.weight_norm == pytest.approx(best.norm, rel=1e-6)
    assert solution.certificate < 1e-7  # primal = dual


@CONSTRAINT
def test_what_is_reported_follows_from_the_coefficients(constraint):
    solutions = solve(*rows(), 2, constraint, tol=0.05)
    for s in solutions:
        scores = matrix() @ s.direction * s.weight_norm
        np.testing.assert_allclose(s.projections * s.weight_norm, scores, atol=1e-9)
    first = np.zeros(len(scores))
    first[solutions[0].rows] = solutions[0].coefficients
    np.testing.assert_allclose(first, solutions[0].direction * solutions[0].weight_norm)
    assert solutions[0].intercept == pytest.approx(first.sum())


@pytest.mark.parametrize("name", ["laplacian", "linear", "poly", "callable"])
def test_any_positive_kernel(name):
    X, y = small(n=120)
    kernel = KERNELS[name]
    [solution] = solve(X, y, kernel=kernel, tol=1e-5)
    best = l2_svm(gram(kernel, X), y)
    assert solution.lower_bound == pytest.approx(best.objective, rel=1e-4)


def test_sources_of_kernel_values_agree():
    X, y = small(n=120)
    [dense] = solve(X, y, tol=1e-6)
    [sparse] = solve(sp.csr_array(X), y, tol=1e-6)
    [stored] = solve(gram(KERNEL, X), y, kernel=Kernel("precomputed"), tol=1e-6)
    for other in (sparse, stored):
        np.testing.assert_array_equal(other.rows, dense.rows)
        np.testing.assert_allclose(other.coefficients, dense.coefficients, atol=1e-5)


# --- core sets -----------------------------------------------------------------------------------


@functools.cache
def many(n=6000):
    X, y = small(n=n, d=4, seed=3)
    return X, y


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_few_of_many_rows(dtype):
    X, y = many()
    clear = np.abs(np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] / 2) > 0.5
    X, y = X[clear], np.sign(np.sin(2 * X[clear, 0]) + X[clear, 1] * X[clear, 2] / 2)
    columns = KernelColumns(KERNEL, X, dtype=dtype)
    solution = solve_one(columns, y, C=100.0, tol=0.02)
    assert solution.stop_reason == "certified"
    assert solution.core_size < len(y) / 2
    assert solution.n_kernel_evaluations == len(y) * solution.core_size
    K = gram(KERNEL, X)
    alpha = np.zeros(len(y))
    alpha[solution.rows] = y[solution.rows] * solution.coefficients
    g = y * (K @ (y * alpha) + solution.intercept) + alpha / 100.0
    assert solution.lower_bound == pytest.approx(alpha.sum() ** 2 / (alpha @ g), rel=1e-4)
    missing = np.maximum(1 - (g - alpha / 100.0), 0)
    primal = alpha @ (g - alpha / 100.0) + 100 * missing @ missing
    assert solution.objective <= primal * (1 + 1e-4)
    assert solution.objective * (1 - 0.02) ** 2 <= solution.lower_bound


def test_columns_are_shared_by_machines():
    X, y = rows()
    columns = KernelColumns(KERNEL, X)
    first, again = core_vector.solve(Problem(columns, (y > 0).astype(np.int32), [([0], [1])] * 2))
    assert first.n_kernel_evaluations > 0
    assert again.n_kernel_evaluations == 0
    np.testing.assert_array_equal(first.coefficients, again.coefficients)


@pytest.mark.parametrize("kept", [0, 10])
def test_columns_that_do_not_fit_are_evaluated_again(kept):
    X, y = rows()
    scarce = KernelColumns(KERNEL, X, memory_bytes=8 * 208 * kept)
    options = CoreVectorOptions(n_directions=2, tol=0.01)
    solutions = core_vector.solve(Problem.two_class(scarce, y), options)
    for a, b in zip(solutions, solve(X, y, 2, tol=0.01), strict=True):
        assert a.stop_reason == b.stop_reason == "certified"
        assert max(a.lower_bound, b.lower_bound) <= min(a.objective, b.objective)
        assert a.n_kernel_evaluations > b.n_kernel_evaluations


def test_a_core_set_beyond_the_memory_stops_there():
    X, y = many()
    solution = solve_one(KernelColumns(KERNEL, X), y, memory_bytes=8 * 300 * 300)
    assert solution.stop_reason == "core_full"
    assert solution.core_size <= 300
    assert np.isfinite(solution.objective)
    assert solution.lower_bound < solution.objective


def test_rows_that_join_a_limited_core_set_a_few_at_a_time_have_the_same_values(monkeypatch):
    X, y = rows()
    found = []
    for at_once in (7, 1_000):
        monkeypatch.setattr("hardmargin.solvers.core_sets.core_set.JOINED_AT_ONCE", at_once)
        columns, nowhere = KernelColumns(KERNEL, X, memory_bytes=0), np.zeros((len(y), 0))
        core = CoreSet(columns, y, np.full(len(y), 0.1), nowhere, 1.0, np.zeros((112, 112)))
        core.join(np.arange(0, 200, 2), np.arange(100.0))
        found.append((core.matrix[:100, :100], core.rows, core.gradient))
    for few, many_at_once in zip(*found, strict=True):
        np.testing.assert_allclose(few, many_at_once, rtol=1e-12)


def test_prices_are_those_of_the_oracle_and_renew_the_gradients_of_members():
    X, y = rows()
    y = np.where(np.arange(len(y)) % 5, y, 0.0)  # rows that are left out
    columns, nowhere = KernelColumns(KERNEL, X), np.zeros((len(y), 0))
    core = CoreSet(columns, y, np.full(len(y), 0.1), nowhere, 1.0, np.zeros((112, 112)))
    members, alpha = np.array([101, 7, 52, 3]), np.zeros(len(y))
    core.join(members, np.full(4, 9.0))
    core.alpha[:] = alpha[members] = [1.0, 2.0, 0.0, 3.0]
    margins = y * ((matrix() + 1.0) @ (y * alpha))
    sample = np.array([4, 1, 2])
    np.testing.assert_allclose(core.price(sample).margins, margins[sample])
    np.testing.assert_array_equal(core.gradient, 9.0)
    full = core.price(core.all_rows)
    np.testing.assert_array_equal(full.rows, np.flatnonzero(y))
    np.testing.assert_allclose(full.scores, (matrix() @ (y * alpha))[full.rows])
    np.testing.assert_allclose(full.margins, margins[full.rows])
    np.testing.assert_allclose(core.gradient, (margins + 0.1 * alpha)[members])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_steps_solve_the_core_set_as_the_oracle_does(dtype):
    rng = np.random.default_rng(0)
    A = rng.normal(size=(48, 30))
    columns = KernelColumns(KERNEL, A, dtype=dtype)
    with columns.workspace(48, 2**20) as Q:  # which begins on a cache line
        Q[:] = A @ A.T / 30 + np.eye(48) / 10
    expected, g = np.zeros(48), np.zeros(48)
    core_set_steps(Q.astype(float), expected, g, tol=1e-6, max_steps=10_000)
    alpha, g = np.zeros(48), np.zeros(48)
    step = getattr(_core, f"core_set_steps_{dtype}")
    steps, violation, reason = step(
        Q,
        alpha,
        g,
        tol=1e-6,
        largest_mass=1e9,
        max_steps=10_000,
        monitor=None,
    )
    assert 0 < steps < 10_000
    assert reason == "converged"
    assert violation <= 1e-6
    np.testing.assert_allclose(alpha, expected, atol=1e-4)
    np.testing.assert_allclose(g, Q @ alpha, atol=1e-5)


# --- the radius rule -----------------------------------------------------------------------------


def test_the_optimum_is_the_smallest_ball():
    X, y = small(n=40)
    K = gram(KERNEL, X)
    squared_radius, a = enclosing_ball(np.outer(y, y) * (K + 1) + np.eye(len(y)))
    best = l2_svm(K, y)
    assert 3 - 1 / best.objective == pytest.approx(squared_radius, rel=1e-6)
    np.testing.assert_allclose(best.alpha / best.alpha.sum(), a, atol=1e-4)


@pytest.mark.parametrize("eps", [1e-2, 1e-4])
def test_radius_is_within_eps(eps):
    X, y = small(n=40)  # samples of 59 include all of them
    [solution] = solve(X, y, stopping="radius", eps=eps)
    squared_radius, _ = enclosing_ball(np.outer(y, y) * (gram(KERNEL, X) + 1) + np.eye(len(y)))
    assert solution.stop_reason == "radius"
    found = 3 - 1 / solution.lower_bound
    assert found <= squared_radius * (1 + 1e-8)
    assert found * (1 + eps) ** 2 >= squared_radius * (1 - 1e-3 * eps)


def test_radius_rule_reports_bounds_that_hold_for_large_C():
    X, y = rows(300)
    best = l2_svm(gram(KERNEL, X), y, 1000)
    [solution] = solve(X, y, C=1000.0, stopping="radius", eps=1e-2)
    assert solution.lower_bound <= best.objective * (1 + 1e-7)
    assert solution.objective >= best.objective * (1 - 1e-7)
    assert solution.certificate > 0.05  # it reports that it is far from the optimum


def test_radius_rule_needs_a_constant_diagonal():
    X, y = small(n=40)
    with pytest.raises(ValueError, match="stopping='margin'"):
        solve(X, y, kernel=KERNELS["poly"], stopping="radius")
    with pytest.raises(ValueError, match="equal weights"):
        solve(X, y, weights=np.linspace(1, 2, 40), stopping="radius")


# --- weights and odd problems --------------------------------------------------------------------


@CONSTRAINT
def test_a_weight_of_two_is_the_row_twice(constraint):
    X, y = small(n=60)
    w = np.where(np.arange(60) % 3 == 0, 2.0, 1.0)
    twice = np.repeat(np.arange(60), w.astype(int))
    weighted = solve(X, y, 3, constraint, weights=w, tol=1e-7)
    repeated = solve(X[twice], y[twice], 3, constraint, tol=1e-7)
    for a, b in zip(weighted, repeated, strict=True):
        assert a.objective == pytest.approx(b.objective, rel=1e-4)
        np.testing.assert_allclose(a.projections[twice], b.projections, atol=2e-3)


@pytest.mark.parametrize("C", [1.0, 1000.0])
def test_weights_against_the_oracle(C):
    X, y = rows()
    w = np.random.default_rng(0).uniform(0.1, 5, size=len(y))
    [solution] = solve(X, y, weights=w, C=C, tol=1e-6)
    assert solution.objective == pytest.approx(l2_svm(matrix(), y, C, w).primal, rel=1e-5)


def test_rows_of_label_zero_are_left_out():
    X, y = rows()
    there = np.arange(len(y)) % 3 > 0
    [some] = solve(X, np.where(there, y, 0.0), tol=1e-7)
    [alone] = solve(X[there], y[there], tol=1e-7)
    assert some.objective == pytest.approx(alone.objective, rel=1e-6)
    np.testing.assert_allclose(some.projections[there], alone.projections, atol=1e-5)
    assert not some.projections[~there].any()


@pytest.mark.parametrize("C", [1.0, 1e6])
def test_equal_rows_of_opposite_labels(C):
    X = np.array([[0.0], [0.0], [1.0], [1.0], [1.0]])
    y = np.array([1.0, -1.0, 1.0, -1.0, 1.0])
    [solution] = solve(X, y, C=C, tol=1e-6)
    assert solution.stop_reason == "certified"
    assert solution.objective == pytest.approx(l2_svm(gram(KERNEL, X), y, C).primal, rel=1e-4)


def test_an_indefinite_kernel_is_detected():
    K = -np.ones((20, 20)) - np.eye(20)
    y = np.where(np.arange(20) % 2, 1.0, -1.0)
    [solution] = solve(5 * K, y, kernel=Kernel("precomputed"), C=10.0)
    assert solution.stop_reason == "indefinite"
    assert np.isfinite(solution.coefficients).all()
    assert solution.lower_bound == 0.0


def test_one_row_per_class():
    X, y = np.array([[0.0], [1.0]]), np.array([-1.0, 1.0])
    solutions = solve(X, y, 5)
    assert solutions[0].stop_reason == "certified"
    assert solutions[0].objective == pytest.approx(l2_svm(gram(KERNEL, X), y).primal)
    assert len(solutions) <= 2  # the rows span two directions


def test_machines_end_where_w_vanishes():
    X, y = small(n=80, d=3)
    X = X[:, :2]
    solutions = solve(X, y, 5, kernel=Kernel("linear"), tol=1e-3)
    assert len(solutions) == 2
    W = np.column_stack([s.direction for s in solutions])
    np.testing.assert_allclose(W.T @ gram(Kernel("linear"), X) @ W, np.eye(2), atol=1e-5)


def test_moments_of_some_rows():
    X, y = rows()
    columns = KernelColumns(KERNEL, X)
    nowhere = np.zeros((len(y), 0))
    one = L2Problem(y, slack_of(len(y), 1.0, None), nowhere, nowhere)
    options = CoreVectorOptions(constraint="uncorrelated", moment_rows=50)
    first = core_vector.train([columns], options, one, Monitor())
    some = constrained(one, first, options, None, lambda _, *terms: columns.product(*terms))
    assert np.count_nonzero(some.U) == 50
    second = core_vector.train([columns], options, some, Monitor())
    inner = some.U[:, 0] @ second.projections
    assert abs(inner) < 1e-9


# --- limits --------------------------------------------------------------------------------------


def test_stages_are_limited():
    X, y = many()
    solution = solve_one(KernelColumns(KERNEL, X), y, max_stages=2)
    assert (solution.stop_reason, solution.n_stages) == ("max_stages", 2)
    assert solution.lower_bound < solution.objective < np.inf


def test_time_is_limited():
    X, y = many()
    seconds = itertools.count(0.0, 0.1)
    monitor = Monitor(max_seconds=1.0, clock=lambda: next(seconds))
    solution = solve_one(KernelColumns(KERNEL, X), y, monitor, C=1e6, tol=1e-9)
    assert solution.stop_reason == "max_time"
    assert next(seconds) < 5
    assert np.isfinite(solution.coefficients).all()


def test_time_is_left_to_price_all_rows(monkeypatch):
    X, y = many()
    clock, plain = Clock(), CoreSet.price

    def price(self, rows):
        clock.now += 1e-6 * len(rows) * int(np.count_nonzero(self.alpha))
        return plain(self, rows)

    monkeypatch.setattr(CoreSet, "price", price)
    monkeypatch.setattr(core_vector, "_LEAST_TIMED", 1_000)
    monitor = Monitor(max_seconds=1.0, clock=clock)
    solution = solve_one(KernelColumns(KERNEL, X, memory_bytes=0), y, monitor, C=1e6, tol=1e-9)
    assert solution.stop_reason == "max_time"
    assert 0.2 < clock.now < 1.1


def test_a_listener_may_stop_it():
    X, y = many()
    monitor = Monitor(listeners=[lambda event: event.stage == 3])
    solution = solve_one(KernelColumns(KERNEL, X), y, monitor)
    assert (solution.stop_reason, solution.n_stages) == ("callback", 3)


def test_the_same_seed_gives_the_same_machine():
    X, y = many()
    a, b = (solve_one(KernelColumns(KERNEL, X), y, seeds=[7]) for _ in range(2))
    np.testing.assert_array_equal(a.rows, b.rows)
    np.testing.assert_array_equal(a.coefficients, b.coefficients)


def test_a_problem_can_be_solved_again():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    problem = Problem.two_class(KernelColumns(Kernel("rbf"), X), np.sign(X[:, 0]))
    [first], [second] = (core_vector.solve(problem) for _ in range(2))
    assert first.n_kernel_evaluations == second.n_kernel_evaluations > 0
    np.testing.assert_array_equal(first.direction, second.direction)
