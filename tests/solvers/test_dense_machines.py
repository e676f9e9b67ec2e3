"""L2-SVMs under constraints to the optimum, by Newton steps and by the Lagrangian fixed point."""

import functools

import numpy as np
import pytest
from oracles.core_vector import l2_svm, l2_svms
from problems.two_class import KERNELS, gram, small

from hardmargin.kernels import Kernel
from hardmargin.kernels.columns import KernelColumns
from hardmargin.kernels.matrix import dense_kernel
from hardmargin.monitor import Monitor, Stopped
from hardmargin.solvers.core_sets import core_vector, dense, lagrangian, newton
from hardmargin.solvers.core_sets.core_vector import CoreVectorOptions
from hardmargin.solvers.core_sets.dense import DenseOptions, cholesky, triangular
from hardmargin.solvers.core_sets.l2_svm import CONSTRAINTS
from hardmargin.solvers.core_sets.lagrangian import LagrangianOptions
from hardmargin.solvers.core_sets.newton import step_length
from hardmargin.solvers.problem import KernelRows, Problem

CONSTRAINT = pytest.mark.parametrize("constraint", CONSTRAINTS)
SOLVER = pytest.mark.parametrize("solver", ["newton", "lagrangian"])
C_VALUES = pytest.mark.parametrize("C", [0.1, 1, 100, 1000])


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch):
    """Few rows use the code for many: halves of halves, and several blocks per factorisation."""
    monkeypatch.setattr(newton, "SMALLEST_HALF", 40)
    monkeypatch.setattr(dense, "_BLOCK", 64)


@functools.cache
def rows():
    X, y = small(n=300, d=4)
    return gram(KERNELS["rbf"], X), y


def solve(
    solver, K, y, n_machines=1, constraint="orthogonal", weights=None, monitor=None, **options
):
    options.update(n_directions=n_machines, constraint=constraint)
    kernel = dense_kernel(KernelRows(Kernel("precomputed"), K))
    problem = Problem.two_class(kernel, y, weights)
    if solver == "newton":
        return newton.solve(problem, DenseOptions(**options), monitor)
    return lagrangian.solve(problem, LagrangianOptions(**options), monitor)


def constraints_of(solutions, constraint):
    """The expansions that the next machine must be orthogonal to."""
    if constraint == "orthogonal":
        return np.column_stack([s.direction for s in solutions])
    f = [s.projections for s in solutions]
    if constraint == "uncorrelated-centred":
        f = [v - v.mean() for v in f]
    return np.column_stack(f)


# --- the optimum ---------------------------------------------------------------------------------


@CONSTRAINT
@C_VALUES
def test_newton_finds_the_machines_of_the_oracle(C, constraint):
    K, y = rows()
    solutions = solve("newton", K, y, 5, constraint, C=C, tol=1e-9)
    assert len(solutions) == 5
    for solution, best in zip(solutions, l2_svms(K, y, 5, constraint, C), strict=True):
        assert solution.stop_reason == "optimal"
        assert solution.certificate < 1e-9  # primal = dual
        assert solution.objective == pytest.approx(best.primal, rel=1e-5)
        np.testing.assert_allclose(solution.projections, best.scores / best.norm, atol=1e-3)
        assert solution.weight_norm == pytest.approx(best.norm, rel=1e-4)
        assert solution.core_size == 300


@C_VALUES
def test_newton_ends_at_the_optimum_itself(C):
    K, y = rows()
    [solution] = solve("newton", K, y, C=C, tol=1e-12)
    best = l2_svm(K, y, C)
    alpha = np.zeros(len(y))
    alpha[solution.rows] = y[solution.rows] * solution.coefficients
    assert solution.certificate < 1e-12
    np.testing.assert_allclose(alpha, best.alpha, atol=1e-9 * best.alpha.max())
    assert solution.intercept == pytest.approx(best.intercept, abs=1e-9)


@CONSTRAINT
@pytest.mark.parametrize("C", [0.1, 1, 100])
def test_both_solvers_agree(C, constraint):
    K, y = rows()
    newton_steps = solve("newton", K, y, 3, constraint, C=C, tol=1e-9)
    fixed_point = solve("lagrangian", K, y, 3, constraint, C=C, tol=1e-9)
    for a, b in zip(newton_steps, fixed_point, strict=True):
        assert b.stop_reason == "optimal"
        assert b.objective == pytest.approx(a.objective, rel=1e-5)
        np.testing.assert_allclose(b.projections, a.projections, atol=1e-4)


@pytest.mark.parametrize("n_machines", [1, 2])
def test_fixed_point_for_large_C(n_machines):
    K, y = rows()
    found = solve("lagrangian", K, y, n_machines, C=1000, tol=1e-2)
    for solution, best in zip(found, l2_svms(K, y, n_machines, "orthogonal", 1000), strict=True):
        assert solution.stop_reason == "optimal"
        assert solution.objective == pytest.approx(best.primal, rel=2e-2)


@CONSTRAINT
@SOLVER
@pytest.mark.parametrize("C", [0.1, 1, 100])
def test_directions_meet_their_constraints(C, solver, constraint):
    K, y = rows()
    solutions = solve(solver, K, y, 4, constraint, C=C, tol=1e-3)
    W = np.column_stack([s.direction for s in solutions])
    np.testing.assert_allclose(np.diag(W.T @ K @ W), 1.0, atol=1e-8)
    for q in range(1, 4):
        U = constraints_of(solutions[:q], constraint)
        norms = np.sqrt(np.einsum("iq,ij,jq->q", U, K, U))
        assert np.abs(U.T @ K @ W[:, q] / norms).max() < 1e-8


@SOLVER
@pytest.mark.parametrize("tol", [0.3, 0.05, 1e-3])
def test_bounds_hold_at_any_tolerance(solver, tol):
    K, y = rows()
    best = l2_svm(K, y, 100)
    [solution] = solve(solver, K, y, C=100, tol=tol)
    assert solution.certificate <= tol
    assert solution.lower_bound <= best.objective * (1 + 1e-9)
    assert solution.objective >= best.objective * (1 - 1e-9)
    alpha = y[solution.rows] * solution.coefficients
    assert (alpha > 0).all()


def test_core_sets_find_the_same_machines():
    X, y = small(n=300, d=4)
    problem = Problem.two_class(KernelColumns(KERNELS["rbf"], X), y)
    core = core_vector.solve(problem, CoreVectorOptions(n_directions=3, tol=1e-7))
    for a, b in zip(solve("newton", *rows(), 3), core, strict=True):
        np.testing.assert_allclose(a.projections, b.projections, atol=2e-3)
        assert a.objective == pytest.approx(b.objective, rel=1e-4)


@SOLVER
@pytest.mark.parametrize("C", [1.0, 100.0])
def test_weights_against_the_oracle(solver, C):
    K, y = rows()
    w = np.random.default_rng(0).uniform(0.1, 5, size=len(y))
    solutions = solve(solver, K, y, 2, weights=w, C=C)
    for solution, best in zip(solutions, l2_svms(K, y, 2, "orthogonal", C, w), strict=True):
        assert solution.objective == pytest.approx(best.primal, rel=1e-4)


@SOLVER
@CONSTRAINT
def test_a_weight_of_two_is_the_row_twice(solver, constraint):
    K, y = rows()
    K, y = K[:60, :60], y[:60]
    w = np.where(np.arange(60) % 3 == 0, 2.0, 1.0)
    twice = np.repeat(np.arange(60), w.astype(int))
    weighted = solve(solver, K, y, 3, constraint, weights=w, tol=1e-10)
    repeated = solve(solver, K[np.ix_(twice, twice)], y[twice], 3, constraint, tol=1e-10)
    for a, b in zip(weighted, repeated, strict=True):
        np.testing.assert_allclose(a.projections[twice], b.projections, atol=1e-4)


# --- their parts ---------------------------------------------------------------------------------


def test_step_length_is_the_minimum_along_the_line():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(30, 10))
    M, slack = A @ A.T, rng.uniform(0.01, 1, size=30)
    alpha, target = rng.uniform(size=(2, 30))

    def objective(t):
        a = alpha + t * (target - alpha)
        return a @ M @ a + (np.maximum(1 - M @ a, 0) ** 2 / slack).sum()

    if objective(1e-6) > objective(0):
        alpha, target = target, alpha
    step = step_length(alpha, M @ alpha, target, M @ target, slack)
    grid = np.linspace(0, 2 * step, 2001)
    assert step > 0
    assert objective(step) <= min(objective(t) for t in grid) + 1e-12
    assert step == pytest.approx(grid[np.argmin([objective(t) for t in grid])], abs=2 * grid[1])


def test_few_changes_need_no_factorisation():
    K, y = rows()
    [solution] = solve("newton", K, y, C=100)
    assert solution.n_steps < solution.n_stages


def test_cholesky_in_blocks():
    A = np.random.default_rng(0).normal(size=(150, 200))
    Q = np.asfortranarray(A @ A.T)
    expected = np.linalg.cholesky(Q)
    L = cholesky(Q.copy(order="F"), Monitor())
    np.testing.assert_allclose(np.tril(L), expected, atol=1e-10)
    np.testing.assert_allclose(triangular(L, A[:, 0]), np.linalg.solve(expected, A[:, 0]))
    with pytest.raises(np.linalg.LinAlgError):
        cholesky(-Q, Monitor())


@pytest.mark.parametrize(("tau_scale", "at_most"), [(1.9, 250), (1.5, 40)])
def test_iterations_of_the_fixed_point(tau_scale, at_most):
    K, y = rows()
    [solution] = solve("lagrangian", K, y, C=1, tol=1e-8, tau_scale=tau_scale)
    assert solution.stop_reason == "optimal"
    assert 5 < solution.n_stages < at_most


# --- odd problems and limits ---------------------------------------------------------------------


@SOLVER
@pytest.mark.parametrize("C", [1.0, 1e4])
def test_equal_rows_of_opposite_labels(solver, C):
    X = np.array([[0.0], [0.0], [1.0], [1.0], [1.0]])
    y = np.array([1.0, -1.0, 1.0, -1.0, 1.0])
    K = gram(KERNELS["rbf"], X)
    [solution] = solve(solver, K, y, C=C, tol=1e-6)
    assert solution.stop_reason == "optimal"
    assert solution.objective == pytest.approx(l2_svm(K, y, C).primal, rel=1e-5)


@SOLVER
def test_an_indefinite_kernel_is_detected(solver):
    K = 5 * (-np.ones((20, 20)) - np.eye(20))
    y = np.where(np.arange(20) % 2, 1.0, -1.0)
    [solution] = solve(solver, K, y, C=10.0)
    assert solution.stop_reason == "indefinite"
    assert solution.lower_bound == 0.0
    assert np.isfinite(solution.direction).all()


@SOLVER
def test_machines_end_where_w_vanishes(solver):
    X, y = small(n=80, d=3)
    K = gram(KERNELS["linear"], X[:, :2])
    solutions = solve(solver, K, y, 5)
    assert len(solutions) == 2
    W = np.column_stack([s.direction for s in solutions])
    np.testing.assert_allclose(W.T @ K @ W, np.eye(2), atol=1e-5)


def test_one_row_per_class():
    K = gram(KERNELS["rbf"], np.array([[0.0], [1.0]]))
    solutions = solve("newton", K, np.array([-1.0, 1.0]), 5)
    assert solutions[0].stop_reason == "optimal"
    assert 1 <= len(solutions) <= 2


@SOLVER
def test_stages_are_limited(solver):
    [solution] = solve(solver, *rows(), C=1000, max_stages=3)
    assert (solution.stop_reason, solution.n_stages) == ("max_stages", 3)
    assert 0 < solution.lower_bound < solution.objective


@SOLVER
@pytest.mark.parametrize("n_allowed", [0, 3])
def test_a_listener_may_stop_it(solver, n_allowed):
    calls = []

    def stop(event):
        calls.append(event)
        return len(calls) > n_allowed

    solutions = solve(solver, *rows(), 3, C=1000, monitor=Monitor(listeners=[stop]))
    assert [s.stop_reason for s in solutions] == ["callback"]
    assert len(calls) == n_allowed + 1
    assert np.isfinite(solutions[0].projections).all()


@SOLVER
def test_ctrl_c_leaves_no_time_for_another_direction(solver):
    calls = []

    def interrupt(event):
        calls.append(event)
        if len(calls) > 3:
            monitor.end("interrupt")

    monitor = Monitor(listeners=[interrupt])
    solutions = solve(solver, *rows(), 3, C=1000, monitor=monitor)
    assert [s.stop_reason for s in solutions] == ["interrupt"]
    assert len(calls) == 4


@SOLVER
def test_without_time_there_is_still_a_machine(solver):
    [solution] = solve(solver, *rows(), 3, monitor=Monitor(max_seconds=0.0))
    assert (solution.stop_reason, solution.n_stages) == ("max_time", 0)
    assert np.isfinite(solution.projections).all()


def test_a_matrix_is_given_up_without_time():
    X, _ = small(n=300, d=4)
    rows = KernelRows(KERNELS["rbf"], X)
    assert dense_kernel(rows, monitor=Monitor(max_seconds=0.0)) is None
    np.testing.assert_allclose(dense_kernel(rows).matrix.values, gram(KERNELS["rbf"], X))


def test_a_tolerance_beyond_the_precision_says_so():
    [solution] = solve("newton", *rows(), C=1000, tol=1e-300)
    assert solution.stop_reason in ("optimal", "rounding")
    assert solution.certificate < 1e-12


def test_a_factorisation_can_be_stopped():
    with pytest.raises(Stopped):
        cholesky(np.asfortranarray(np.eye(150)), Monitor(max_seconds=0.0))
