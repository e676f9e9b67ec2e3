"""The rho-SVM by multiplicative updates: weights, several machines, matrices, and planes."""

import numpy as np
import pytest
from problems.rho import RBF, alpha_of, dozen, problem, rows_and_labels, solve, weights_of

from hardmargin.kernels.low_rank import low_rank_matrix
from hardmargin.kernels.matrix import StoredMatrix, StreamedMatrix, kernel_matrix
from hardmargin.solvers import rho
from hardmargin.solvers.problem import Problem
from hardmargin.solvers.rho import RhoOptions

BIAS = pytest.mark.parametrize("bias", [False, True], ids=["no bias", "bias"])


# --- weights, machines, matrices ------------------------------------------------------------------


@BIAS
def test_a_weight_of_two_is_the_row_twice(bias):
    K, y = problem()
    twice = np.array([3, 3, 8, 8, 21, 21])
    rows = np.concatenate([np.delete(np.arange(len(y)), [3, 8, 21]), twice])
    weights = np.ones(len(y))
    weights[[3, 8, 21]] = 2.0
    weighted = solve(K, y, weights=weights, fit_intercept=bias, n_stages=12)
    copied = solve(K[np.ix_(rows, rows)], y[rows], fit_intercept=bias, n_stages=12)
    sums = np.bincount(rows, copied.ensemble.coefficients, minlength=len(y))
    np.testing.assert_allclose(weighted.ensemble.coefficients, sums, rtol=1e-6)


@BIAS
def test_a_weight_of_zero_is_absence(bias):
    K, y = problem()
    weights = weights_of(len(y))
    weights[::4] = 0.0
    rows = np.flatnonzero(weights)
    weighted = solve(K, y, weights=weights, fit_intercept=bias, n_stages=12)
    absent = solve(
        K[np.ix_(rows, rows)], y[rows], weights=weights[rows], fit_intercept=bias, n_stages=12
    )
    np.testing.assert_allclose(alpha_of(weighted), alpha_of(absent), rtol=1e-9)


def test_a_label_of_zero_is_absence():
    K, y = problem()
    rows = np.arange(0, len(y), 2)
    some = np.zeros(len(y))
    some[rows] = y[rows]
    alone = solve(K[np.ix_(rows, rows)], y[rows], n_stages=12)
    np.testing.assert_allclose(alpha_of(solve(K, some, n_stages=12)), alpha_of(alone), rtol=1e-9)


def test_rows_are_those_that_take_part():
    K, y = problem()
    some, weights = y.copy(), np.ones(len(y))
    some[:5], weights[5:10] = 0.0, 0.0
    np.testing.assert_array_equal(
        solve(K, some, weights=weights, n_stages=1).rows, np.arange(10, len(y))
    )


@pytest.mark.parametrize("scale", [1e-300, 1e300])
def test_the_scale_of_the_weights_changes_nothing(scale):
    K, y = problem()
    w = weights_of(len(y))
    scaled, plain = (solve(K, y, weights=v, n_stages=12) for v in (scale * w, w))
    np.testing.assert_allclose(alpha_of(scaled), alpha_of(plain), rtol=1e-6)


@BIAS
def test_the_least_of_weights_leaves_a_finite_path(bias):
    K, y = problem()
    weights = np.ones(len(y))
    weights[:30] = 5e-324
    solution = solve(K, y, weights=weights, fit_intercept=bias, n_stages=12)
    vote = solution.ensemble
    assert np.isfinite([*solution.coefficients, *vote.coefficients, vote.intercept]).all()


def several():
    """Three classes in machines of one against the others, and one without the last class."""
    K, _ = problem()
    X, _ = rows_and_labels()
    codes = np.digitize(X[:, 1], [-0.4, 0.4]).astype(np.int32)
    machines = [([1, 2], [0]), ([0, 2], [1]), ([0], [1])]
    return Problem(StoredMatrix(K), codes, machines, weights_of(len(K)))


@BIAS
@pytest.mark.parametrize("machine", range(3))
def test_several_machines_equal_one_by_one(bias, machine):
    every = several()
    options = {"fit_intercept": bias, "n_stages": 12}
    together = rho.solve(every, RhoOptions(**options))[machine]
    alone = solve(every.values, every.labels_of(machine), weights=every.weights, **options)
    np.testing.assert_array_equal(together.rows, alone.rows)
    np.testing.assert_allclose(together.coefficients, alone.coefficients, rtol=1e-9)


def test_a_machine_that_ends_leaves_the_others_running():
    K, y = problem()
    codes = np.where(y > 0, 1, 0).astype(np.int32)
    codes[:2] = [2, 3]  # a machine of two rows, which ends at once
    every = Problem(StoredMatrix(K), codes, [([0, 2], [1, 3]), ([2], [3])])
    solutions = rho.solve(every)
    alone = solve(K, every.labels_of(0))
    assert solutions[1].n_stages < 5
    assert solutions[0].history["rho"][-1] == pytest.approx(alone.history["rho"][-1], rel=0.05)


@BIAS
def test_streamed_equals_stored(bias):
    X, y = rows_and_labels()
    solution = solve(StreamedMatrix(RBF, X), y, fit_intercept=bias, n_stages=12)
    np.testing.assert_allclose(alpha_of(solution), alpha_of(dozen(bias)), rtol=1e-6)


@BIAS
@pytest.mark.parametrize("landmarks", ["random", "kmeans++", "cholesky"])
def test_low_rank_at_full_rank_equals_the_full_kernel(bias, landmarks):
    X, y = rows_and_labels()
    matrix = low_rank_matrix(RBF, X, len(X), landmarks=landmarks)
    solution = solve(matrix, y, fit_intercept=bias, n_stages=12)
    np.testing.assert_allclose(alpha_of(solution), alpha_of(dozen(bias)), rtol=1e-5)


def test_float32_values_lead_along_the_same_path():
    X, y = rows_and_labels()
    solution = solve(kernel_matrix(RBF, X, dtype="float32"), y, n_stages=12)
    np.testing.assert_allclose(solution.history["rho"], dozen().history["rho"], rtol=1e-4)


# --- planes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"n_stages": 12}, {"fit_intercept": True}])
def test_every_plane_is_kept(options):
    solution = solve(*problem(), **options)
    assert len(solution.planes) == solution.n_stages + 1
    np.testing.assert_array_equal(solution.planes[-1], solution.coefficients)


def test_kept_planes_are_those_of_the_objectives():
    K, _ = problem()
    solution = dozen()
    planes = solution.planes
    np.testing.assert_allclose(np.einsum("ti,ij,tj->t", planes, K, planes), solution.history["rho"])


def test_the_ensemble_is_the_mean_of_all_planes_but_the_last():
    solution = solve(*problem())
    rates = solution.history["rate"]
    vote = rates @ solution.planes[:-1] / rates.sum()
    np.testing.assert_allclose(solution.ensemble.coefficients, vote, rtol=1e-10)


def test_planes_of_several_machines_are_over_their_rows():
    solutions = rho.solve(several(), RhoOptions(keep_planes=2**30))
    expected = [(s.n_stages + 1, len(s.rows)) for s in solutions]
    assert [s.planes.shape for s in solutions] == expected


@pytest.mark.parametrize("n_stages", [3, 40])
def test_planes_on_a_low_rank_matrix_are_over_its_landmarks(n_stages):
    X, y = rows_and_labels()
    matrix = low_rank_matrix(RBF, X, 8)
    weights = weights_of(len(y))
    weights[::5] = 0.0
    solution = solve(matrix, y, weights=weights, n_stages=n_stages)
    assert solution.planes.shape == (n_stages + 1, len(matrix.landmarks))
    last = np.zeros(len(y))
    last[solution.rows] = solution.coefficients
    np.testing.assert_allclose(solution.planes[-1], matrix.coefficients(last), rtol=1e-9)


def test_many_planes_are_float32(monkeypatch):
    expected = dozen().planes
    monkeypatch.setattr("hardmargin.solvers.planes.MAX_FLOAT64_BYTES", 8 * 60 * 6)
    planes = dozen().planes
    assert planes.dtype == np.float32
    np.testing.assert_allclose(planes, expected, rtol=1e-6)


@pytest.mark.parametrize(("n_bytes", "is_kept"), [(8 * 60 * 13, True), (8 * 60 * 13 - 1, False)])
def test_planes_are_kept_while_they_fit(n_bytes, is_kept):
    assert (dozen(keep_planes=n_bytes).planes is not None) == is_kept


def test_no_planes_are_kept_unless_asked_for():
    assert RhoOptions().keep_planes == 0
    assert dozen(keep_planes=0).planes is None
