"""Low-rank kernel matrices: landmarks, residuals, and expansions that collapse on landmarks."""

import numpy as np
import pytest
import scipy.sparse as sp
from oracles.kernels import kernel_matrix as gram

from hardmargin.kernels import Kernel
from hardmargin.kernels.low_rank import LANDMARKS, low_rank_matrix
from hardmargin.monitor import Monitor, Stopped

RNG = np.random.default_rng(0)
X = RNG.normal(size=(70, 3))
RBF = Kernel("rbf", gamma=0.4)
K = gram(RBF, X)
V = RNG.normal(size=(70, 4))
QUERIES = RNG.normal(size=(11, 3))

every_landmarks = pytest.mark.parametrize("landmarks", LANDMARKS)


def random(seed=0):
    return np.random.RandomState(seed)


def approximation(matrix):
    Z = matrix.factor.astype(np.float64)
    return Z @ Z.T


# --- how well it approximates --------------------------------------------------------------------


@every_landmarks
@pytest.mark.parametrize(
    "name", ["rbf", "laplacian", "matern32", "matern52", "linear", "cosine", "poly"]
)
def test_full_rank_is_exact(landmarks, name):
    kernel = Kernel(name, gamma=0.4, degree=2, coef0=1.0)
    values = gram(kernel, X)
    matrix = low_rank_matrix(kernel, X, 70, landmarks=landmarks)
    np.testing.assert_allclose(approximation(matrix), values, atol=1e-6 * values.max())


@every_landmarks
def test_a_rank_above_the_number_of_rows_is_exact(landmarks):
    matrix = low_rank_matrix(RBF, X, 1000, landmarks=landmarks)
    np.testing.assert_allclose(approximation(matrix), K, atol=1e-8)


@every_landmarks
@pytest.mark.parametrize("rank", [1, 5, 20, 50])
def test_the_residual_is_the_trace_left_over(landmarks, rank):
    matrix = low_rank_matrix(RBF, X, rank, landmarks=landmarks)
    left_over = np.linalg.norm(K - approximation(matrix), "nuc") / np.trace(K)
    assert matrix.residual == pytest.approx(left_over, rel=1e-6)


@every_landmarks
def test_the_factor_is_that_of_nystroem(landmarks):
    matrix = low_rank_matrix(RBF, X, 12, landmarks=landmarks)
    S = matrix.landmarks
    expected = K[:, S] @ np.linalg.solve(K[np.ix_(S, S)], K[S])
    np.testing.assert_allclose(approximation(matrix), expected, atol=1e-9)


@every_landmarks
def test_a_linear_kernel_needs_no_more_than_its_features(landmarks):
    matrix = low_rank_matrix(Kernel("linear"), X, 10, landmarks=landmarks)
    np.testing.assert_allclose(approximation(matrix), X @ X.T, atol=1e-10)


@every_landmarks
def test_the_rank_is_the_number_of_landmarks(landmarks):
    matrix = low_rank_matrix(RBF, X, 12, landmarks=landmarks)
    assert (matrix.rank, len(matrix.landmarks), matrix.n_rows) == (12, 12, 70)


@every_landmarks
def test_landmarks_are_sorted_and_distinct(landmarks):
    chosen = low_rank_matrix(RBF, X, 30, landmarks=landmarks, random_state=random(3)).landmarks
    assert (np.diff(chosen) > 0).all()


@every_landmarks
def test_rounding_draws_no_landmark_twice(landmarks):
    wide, rows = Kernel("rbf", gamma=1e-3), np.repeat(X, 2, axis=0)
    chosen = low_rank_matrix(wide, rows, 100, landmarks=landmarks, dtype="float32").landmarks
    assert (np.diff(chosen) > 0).all()


@every_landmarks
def test_the_diagonal_is_that_of_the_approximation(landmarks):
    matrix = low_rank_matrix(RBF, X, 8, landmarks=landmarks)
    np.testing.assert_allclose(matrix.diagonal, approximation(matrix).diagonal(), rtol=1e-12)


# --- which landmarks -----------------------------------------------------------------------------


def naive_pivots(K, rank):
    """Pivoted Cholesky on the whole Schur complement."""
    rest, pivots = K.copy(), []
    for _ in range(rank):
        p = int(rest.diagonal().argmax())
        pivots.append(p)
        rest = rest - np.outer(rest[:, p], rest[p]) / rest[p, p]
        rest[p], rest[:, p] = 0.0, 0.0
    return pivots


@pytest.mark.parametrize("rank", [1, 2, 7, 25])
@pytest.mark.parametrize("name", ["rbf", "poly"])
def test_cholesky_pivots(rank, name):
    kernel = Kernel(name, gamma=0.4, degree=5, coef0=1.0)
    matrix = low_rank_matrix(kernel, X, rank, landmarks="cholesky")
    assert matrix.landmarks.tolist() == sorted(naive_pivots(gram(kernel, X), rank))


def test_cholesky_pivots_beyond_the_first_block():
    rows = np.random.default_rng(1).normal(size=(320, 6))
    matrix = low_rank_matrix(RBF, rows, 300, landmarks="cholesky")
    assert matrix.landmarks.tolist() == sorted(naive_pivots(gram(RBF, rows), 300))


@pytest.mark.parametrize("landmarks", ["random", "kmeans++"])
def test_the_seed_draws_the_landmarks(landmarks):
    one, same, other = (
        low_rank_matrix(RBF, X, 9, landmarks=landmarks, random_state=random(s)).landmarks.tolist()
        for s in (1, 1, 2)
    )
    assert one == same != other


@pytest.mark.parametrize("seed", range(5))
def test_kmeans_draws_from_every_cluster(seed):
    clusters = np.repeat(np.arange(6), 50)
    rows = 100.0 * clusters[:, None] + np.random.default_rng(0).normal(scale=1e-3, size=(300, 1))
    matrix = low_rank_matrix(RBF, rows, 6, landmarks="kmeans++", random_state=random(seed))
    assert clusters[matrix.landmarks].tolist() == list(range(6))


# --- tolerances ----------------------------------------------------------------------------------

WIDE = Kernel("rbf", gamma=0.05)
MANY = np.random.default_rng(2).normal(size=(300, 4))


@every_landmarks
@pytest.mark.parametrize("tolerance", [0.2, 0.05, 0.01, 0.0001])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_tolerance_is_met(landmarks, tolerance, dtype):
    matrix = low_rank_matrix(WIDE, MANY, tolerance, landmarks=landmarks, dtype=dtype)
    assert matrix.residual <= tolerance


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_more_landmarks_leave_less(dtype):
    residuals = [low_rank_matrix(WIDE, MANY, r, dtype=dtype).residual for r in (20, 40, 80, 160)]
    assert (np.diff(residuals) < 0).all()


def test_cholesky_takes_no_more_pivots_than_the_tolerance_needs():
    matrix = low_rank_matrix(WIDE, MANY, 0.05, landmarks="cholesky")
    fewer = low_rank_matrix(WIDE, MANY, matrix.rank - 1, landmarks="cholesky")
    assert matrix.residual <= 0.05 < fewer.residual


@every_landmarks
def test_auto_leaves_a_hundredth(landmarks):
    assert low_rank_matrix(WIDE, MANY, "auto", landmarks=landmarks).residual <= 0.01


@every_landmarks
def test_auto_has_a_limit(landmarks, monkeypatch):
    monkeypatch.setattr("hardmargin.kernels.low_rank.AUTO_RANK", 40)
    narrow = Kernel("rbf", gamma=50.0)
    assert low_rank_matrix(narrow, MANY, "auto", landmarks=landmarks).rank == 40


@every_landmarks
def test_a_tolerance_goes_as_far_as_the_memory_allows(landmarks):
    narrow = Kernel("rbf", gamma=50.0)
    room = 3 * 8 * 300 * 20
    matrix = low_rank_matrix(narrow, MANY, 0.001, landmarks=landmarks, memory_bytes=room)
    assert matrix.rank == 20


def test_a_rank_beyond_the_memory_is_refused():
    with pytest.raises(ValueError, match=r"rank=50 .*memory_limit .*lower rank to 20"):
        low_rank_matrix(RBF, MANY, 50, memory_bytes=3 * 8 * 300 * 20)


def test_float32_takes_half_of_the_memory():
    room = 3 * 4 * 300 * 20
    matrix = low_rank_matrix(RBF, MANY, 20, dtype="float32", memory_bytes=room)
    assert len(matrix.landmarks) == 20


# --- products, expansions, parts -----------------------------------------------------------------


@pytest.mark.parametrize("right", [V[:, 0], V[:, :1], V], ids=["1-d", "1", "4"])
def test_products(right):
    matrix = low_rank_matrix(RBF, X, 12)
    np.testing.assert_allclose(matrix.product(right), approximation(matrix) @ right, atol=1e-12)


@every_landmarks
@pytest.mark.parametrize("kernel", [RBF, Kernel("laplacian", gamma=0.2), Kernel("linear")])
def test_expansions_collapse_on_the_landmarks(landmarks, kernel):
    matrix = low_rank_matrix(kernel, X, 12, landmarks=landmarks)
    collapsed = gram(kernel, X, X[matrix.landmarks]) @ matrix.coefficients(V[:, 0])
    np.testing.assert_allclose(collapsed, matrix.product(V[:, 0]), atol=1e-8)


def test_queries_see_the_collapsed_expansion():
    matrix = low_rank_matrix(RBF, X, 12)
    at_landmarks = gram(RBF, QUERIES, X[matrix.landmarks])
    expected = at_landmarks @ matrix.collapse @ (matrix.factor.T @ V[:, 0])
    np.testing.assert_allclose(at_landmarks @ matrix.coefficients(V[:, 0]), expected, atol=1e-10)


SOME = np.array([0, 4, 5, 33, 69])


def test_a_part_has_the_approximation_of_its_rows():
    matrix = low_rank_matrix(RBF, X, 12)
    part = approximation(matrix.restrict(SOME))
    np.testing.assert_allclose(part, approximation(matrix)[np.ix_(SOME, SOME)], rtol=1e-12)


def test_a_part_collapses_like_the_whole():
    matrix = low_rank_matrix(RBF, X, 12)
    whole = np.zeros(70)
    whole[SOME] = V[:5, 0]
    np.testing.assert_allclose(
        matrix.restrict(SOME).coefficients(V[:5, 0]), matrix.coefficients(whole), atol=1e-9
    )


def test_a_part_has_the_diagonal_of_its_rows():
    matrix = low_rank_matrix(RBF, X, 12)
    np.testing.assert_array_equal(matrix.restrict(SOME).diagonal, matrix.diagonal[SOME])


@every_landmarks
def test_landmarks_are_among_the_rows_that_take_part(landmarks):
    rows = np.arange(1, 70, 2)
    assert np.isin(
        low_rank_matrix(RBF, X, 12, landmarks=landmarks, rows=rows).landmarks, rows
    ).all()


@every_landmarks
def test_other_rows_change_nothing(landmarks):
    rows = np.arange(1, 70, 2)
    some = low_rank_matrix(RBF, X, 12, landmarks=landmarks, rows=rows)
    alone = low_rank_matrix(RBF, X[rows], 12, landmarks=landmarks)
    np.testing.assert_allclose(some.factor, alone.factor, atol=1e-12)


def test_rows_in_any_order():
    rows = np.random.default_rng(5).permutation(70)
    matrix = low_rank_matrix(RBF, X, 70, rows=rows)
    np.testing.assert_allclose(approximation(matrix), K[np.ix_(rows, rows)], atol=1e-8)


# --- any kind of input ---------------------------------------------------------------------------


@every_landmarks
def test_precomputed_equals_the_kernel(landmarks):
    matrix = low_rank_matrix(Kernel("precomputed"), K, 12, landmarks=landmarks)
    expected = low_rank_matrix(RBF, X, 12, landmarks=landmarks)
    np.testing.assert_allclose(approximation(matrix), approximation(expected), atol=1e-9)


def test_precomputed_some_of_the_rows():
    matrix = low_rank_matrix(Kernel("precomputed"), K, 5, rows=SOME)
    np.testing.assert_allclose(approximation(matrix), K[np.ix_(SOME, SOME)], atol=1e-10)


@every_landmarks
def test_callable_equals_the_kernel(landmarks):
    kernel = Kernel("callable", function=lambda A, B: gram(RBF, A, B))
    matrix = low_rank_matrix(kernel, X, 12, landmarks=landmarks)
    expected = low_rank_matrix(RBF, X, 12, landmarks=landmarks)
    np.testing.assert_allclose(approximation(matrix), approximation(expected), atol=1e-9)


@every_landmarks
def test_sparse_equals_dense(landmarks):
    matrix = low_rank_matrix(RBF, sp.csr_array(X), 12, landmarks=landmarks)
    expected = low_rank_matrix(RBF, X, 12, landmarks=landmarks)
    np.testing.assert_allclose(approximation(matrix), approximation(expected), atol=1e-9)


@every_landmarks
def test_float32_is_close(landmarks):
    matrix = low_rank_matrix(RBF, X, 12, landmarks=landmarks, dtype="float32")
    S = matrix.landmarks
    expected = K[:, S] @ np.linalg.solve(K[np.ix_(S, S)], K[S])
    np.testing.assert_allclose(approximation(matrix), expected, atol=1e-4)


def test_float32_has_a_float32_factor():
    assert low_rank_matrix(RBF, X, 12, dtype="float32").factor.dtype == np.float32


@every_landmarks
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_duplicates_leave_a_finite_factor(landmarks, dtype):
    copies = np.repeat(X[:6], 5, axis=0)
    matrix = low_rank_matrix(RBF, copies, 20, landmarks=landmarks, dtype=dtype)
    np.testing.assert_allclose(approximation(matrix), gram(RBF, copies), atol=1e-4)


@pytest.mark.parametrize("landmarks", ["kmeans++", "cholesky"])
def test_copies_are_no_landmarks(landmarks):
    copies = np.repeat(X[:6], 5, axis=0)
    assert len(low_rank_matrix(RBF, copies, 20, landmarks=landmarks).landmarks) == 6


@every_landmarks
def test_rows_that_are_all_equal(landmarks):
    matrix = low_rank_matrix(RBF, np.ones((9, 2)), 4, landmarks=landmarks)
    np.testing.assert_allclose(approximation(matrix), 1.0, rtol=1e-12)


@every_landmarks
def test_a_kernel_of_zeros_is_refused(landmarks):
    with pytest.raises(ValueError, match="rank=None"):
        low_rank_matrix(Kernel("linear"), np.zeros((9, 2)), 4, landmarks=landmarks)


@every_landmarks
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_kernels_that_are_not_finite_are_refused(landmarks, value):
    kernel = Kernel("callable", function=lambda A, B: np.full((len(A), len(B)), value))
    with pytest.raises(ValueError, match="finite"), np.errstate(invalid="ignore"):
        low_rank_matrix(kernel, X, 5, landmarks=landmarks)


def test_a_monitor_may_stop_it():
    with pytest.raises(Stopped):
        low_rank_matrix(RBF, X, 5, monitor=Monitor(max_seconds=0))
