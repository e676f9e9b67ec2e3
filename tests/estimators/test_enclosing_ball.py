"""MinimumEnclosingBall."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from oracles.core_vector import enclosing_ball
from problems.clock import Clock, set_clock
from scipy.spatial.distance import cdist
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import roc_auc_score
from sklearn.svm import OneClassSVM

from hardmargin import MinimumEnclosingBall
from hardmargin.kernels import resolve_gamma


@pytest.fixture(scope="module")
def cloud():
    return np.random.default_rng(0).normal(size=(200, 4))


@pytest.fixture(scope="module")
def many():
    return np.random.default_rng(1).normal(size=(4_000, 5))


def hard(gamma="pairwise", **parameters):
    return MinimumEnclosingBall(gamma, C=None, **parameters)


def linear(**parameters):
    defaults = {"C": None, "tol": 1e-7, "random_state": 0}
    return MinimumEnclosingBall(kernel="linear", **{**defaults, **parameters})


# --- known balls ---------------------------------------------------------------------------------


def test_points_of_a_circle():
    angle = np.linspace(0, 2 * np.pi, 50)
    X = np.column_stack([3 + 2 * np.cos(angle), -1 + 2 * np.sin(angle)])
    ball = linear().fit(X)
    assert ball.radius_ == pytest.approx(2, rel=1e-6)
    np.testing.assert_allclose(ball.center_, [3, -1], atol=1e-3)


@pytest.mark.parametrize(
    ("corners", "center", "radius", "n_support"),
    [
        ([[0, 0], [4, 0], [2, 1]], [2, 0], 2, 2),  # obtuse: the longest side is a diameter
        ([[0, 0], [2, 0], [1, 3**0.5]], [1, 3**-0.5], 2 * 3**-0.5, 3),
        ([[0, 0], [6, 0], [0, 8]], [3, 4], 5, 2),
    ],
)
def test_triangles(corners, center, radius, n_support):
    X = np.array([*corners, center])
    ball = linear(tol=1e-9).fit(X)
    assert ball.radius_ == pytest.approx(radius, rel=1e-8)
    np.testing.assert_allclose(ball.center_, center, atol=1e-6)
    assert (ball.dual_coef_ > 1e-6).sum() == n_support
    np.testing.assert_allclose(ball.score_samples([center]), 0, atol=1e-6)
    np.testing.assert_allclose(ball.score_samples(X[:3])[:2], -radius, rtol=1e-6)


def test_corners_of_a_cube():
    X = np.array(np.meshgrid(*[[0.0, 2.0]] * 3)).reshape(3, -1).T
    ball = linear(tol=1e-9).fit(X)
    assert ball.radius_ == pytest.approx(3**0.5)
    np.testing.assert_allclose(ball.center_, 1.0, atol=1e-6)


# --- the optimum ---------------------------------------------------------------------------------


@pytest.mark.parametrize("C", [None, 1.0, 0.05])
def test_is_the_smallest_ball(cloud, C):
    X = cloud[:80]
    ball = MinimumEnclosingBall(0.2, C=C, tol=1e-8).fit(X)
    K = np.exp(-0.2 * cdist(X, X, "sqeuclidean"))
    optimum, a = enclosing_ball(K, np.inf if C is None else C)
    assert ball.objective_ == pytest.approx(optimum, rel=1e-6)
    assert ball.lower_bound_ == pytest.approx(optimum, rel=1e-6)
    squares = 1 + a @ K @ a - 2 * K @ a
    np.testing.assert_allclose(ball.score_samples(X), -np.sqrt(squares), atol=1e-4)
    if C is None:
        assert ball.radius_ == pytest.approx(optimum**0.5)
    else:
        assert ball.radius_ < optimum**0.5
        excess = np.maximum(squares - ball.radius_**2, 0)
        assert excess.sum() == pytest.approx(1 / (2 * C), rel=1e-3)


@pytest.mark.parametrize("tol", [0.1, 0.01, 1e-4])
@pytest.mark.parametrize(
    "kernel", ["rbf", "laplacian", "matern32", "matern52", "linear", "cosine", "poly"]
)
def test_certificate_holds(cloud, kernel, tol):
    ball = hard(kernel=kernel, tol=tol, coef0=1.0).fit(cloud)
    assert ball.stop_reason_ == "certified"
    assert ball.lower_bound_ <= ball.objective_ <= ball.lower_bound_ * (1 + tol) ** 2
    assert ball.certificate_ == pytest.approx(1 - ball.lower_bound_ / ball.objective_)
    assert ball.radius_**2 == pytest.approx(ball.objective_)
    assert ball.dual_coef_.shape == (1, len(ball.support_))
    assert ball.dual_coef_.sum() == pytest.approx(1)
    assert ball.core_size_ >= len(ball.support_)
    np.testing.assert_array_equal(ball.support_vectors_, cloud[ball.support_])


def test_gamma_rule(cloud):
    assert hard("pairwise").fit(cloud).gamma_ == resolve_gamma("pairwise", cloud)


def test_is_a_one_class_svm(cloud):
    """A soft ball of an RBF kernel orders rows as the mean of its support rows does."""
    X = np.vstack([cloud, cloud[:10] + 5])
    ours = MinimumEnclosingBall(0.1, C=0.05).fit(X).score_samples(X)
    theirs = OneClassSVM(gamma=0.1, nu=0.1).fit(X).score_samples(X)
    assert np.corrcoef(ours.argsort().argsort(), theirs.argsort().argsort())[0, 1] > 0.95


def test_finds_outliers(cloud):
    rng = np.random.default_rng(5)
    inside, outside = rng.normal(size=(100, 4)), rng.normal(size=(100, 4)) * 4
    ball = MinimumEnclosingBall("pairwise", C=0.1).fit(cloud)
    scores = ball.decision_function(np.vstack([inside, outside]))
    assert roc_auc_score(np.arange(200) < 100, scores) > 0.9


# --- which rows are outside ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "kernel", ["rbf", "laplacian", "matern32", "matern52", "linear", "cosine", "poly"]
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_training_rows_are_inside_a_hard_ball(many, kernel, dtype):
    ball = hard(kernel=kernel, dtype=dtype).fit(many)
    assert (ball.predict(many) == 1).all()
    for row in ball.support_[:5]:  # also when predicted alone
        assert ball.predict(many[[row]]) == [1]
    assert ball.offset_ == pytest.approx(-ball.radius_, rel=1e-3)
    assert -ball.score_samples(many).min() == pytest.approx(ball.radius_, rel=1e-4)
    if kernel == "linear":
        assert ball.predict(many[:1] + 100) == [-1]


def test_support_rows_are_outside_a_soft_ball(cloud):
    ball = MinimumEnclosingBall("pairwise", C=0.1, tol=1e-8).fit(cloud)
    outside = np.flatnonzero(ball.predict(cloud) == -1)
    np.testing.assert_array_equal(outside, ball.support_[ball.dual_coef_[0] > 1e-5])


@pytest.mark.parametrize("share", [0.01, 0.1, 0.5])
def test_contamination_is_the_share_outside(many, share):
    ball = MinimumEnclosingBall("pairwise", C=0.01, contamination=share)
    labels = ball.fit_predict(many)
    assert np.mean(labels == -1) == pytest.approx(share, abs=1 / len(many))
    np.testing.assert_array_equal(labels, ball.predict(many))
    assert ball.offset_ == pytest.approx(np.quantile(ball.score_samples(many), share))


def test_contamination_counts_rows_as_often_as_they_weigh(cloud):
    w = np.arange(len(cloud)) % 3
    parameters = {"C": 0.1, "gamma": 0.2, "tol": 1e-9, "contamination": 0.2}
    weighted = MinimumEnclosingBall(**parameters).fit(cloud, sample_weight=w)
    repeated = MinimumEnclosingBall(**parameters).fit(np.repeat(cloud, w, axis=0))
    assert weighted.offset_ == pytest.approx(repeated.offset_, abs=1e-6)


def test_scores_decisions_and_labels_agree(cloud):
    ball = MinimumEnclosingBall("pairwise", C=0.1).fit(cloud)
    decisions = ball.decision_function(cloud)
    np.testing.assert_allclose(decisions, ball.score_samples(cloud) - ball.offset_)
    np.testing.assert_array_equal(ball.predict(cloud), np.where(decisions >= 0, 1, -1))


# --- input ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
@pytest.mark.parametrize("C", [None, 0.1])
def test_sparse_rows_give_the_same_ball(cloud, kernel, C):
    X = np.where(np.abs(cloud) > 0.5, cloud, 0.0)
    dense = MinimumEnclosingBall("pairwise", kernel=kernel, C=C, tol=1e-8).fit(X)
    sparse = MinimumEnclosingBall("pairwise", kernel=kernel, C=C, tol=1e-8).fit(sp.csr_array(X))
    scale = dense.radius_
    np.testing.assert_allclose(
        dense.score_samples(X), sparse.score_samples(sp.csr_array(X)), atol=1e-3 * scale
    )
    assert sparse.radius_ == pytest.approx(dense.radius_, rel=1e-6)
    if kernel == "linear":
        np.testing.assert_allclose(dense.center_, sparse.center_, atol=1e-3 * scale)


@pytest.mark.parametrize("C", [None, 0.1])
def test_precomputed_kernel(cloud, C):
    K = np.exp(-0.2 * cdist(cloud, cloud, "sqeuclidean"))
    plain = MinimumEnclosingBall(0.2, C=C, tol=1e-8).fit(cloud)
    stored = MinimumEnclosingBall(kernel="precomputed", C=C, tol=1e-8).fit(K)
    called = MinimumEnclosingBall(
        kernel=lambda X, Z: np.exp(-0.2 * cdist(X, Z, "sqeuclidean")), C=C, tol=1e-8
    ).fit(cloud)
    new = cloud[:20] + 0.3
    K_new = np.exp(-0.2 * cdist(new, cloud, "sqeuclidean"))
    for scores in (stored.score_samples(K_new), called.score_samples(new)):
        np.testing.assert_allclose(scores, plain.score_samples(new), atol=1e-4)
    assert stored.support_vectors_.shape == (0, 0)


def test_precomputed_kernel_of_another_diagonal(cloud):
    ball = MinimumEnclosingBall(kernel="precomputed", C=0.01, contamination=0.1, tol=1e-8)
    labels = ball.fit_predict(cloud @ cloud.T)
    plain = MinimumEnclosingBall(kernel="linear", C=0.01, contamination=0.1, tol=1e-8)
    np.testing.assert_array_equal(labels, plain.fit_predict(cloud))
    with pytest.raises(ValueError, match="fit_predict"):
        ball.predict(cloud @ cloud.T)


def test_precisions_agree(many):
    single, double = (hard(dtype=d).fit(many) for d in ("float32", "float64"))
    assert single.radius_ == pytest.approx(double.radius_, rel=0.01)
    np.testing.assert_allclose(
        single.score_samples(many), double.score_samples(many), atol=0.05 * double.radius_
    )


def test_rows_far_from_the_origin(cloud):
    near, far = linear().fit(cloud), linear().fit(cloud + 1e7)
    assert far.stop_reason_ == "certified"
    assert far.radius_ == pytest.approx(near.radius_, rel=1e-6)
    np.testing.assert_allclose(far.center_, near.center_ + 1e7, atol=1e-3)
    assert (far.predict(cloud + 1e7) == 1).all()


def test_weights(cloud):
    w = np.arange(len(cloud)) % 3
    parameters = {"C": 0.1, "gamma": 0.2, "tol": 1e-8}
    weighted = MinimumEnclosingBall(**parameters).fit(cloud, sample_weight=w)
    repeated = MinimumEnclosingBall(**parameters).fit(np.repeat(cloud, w, axis=0))
    np.testing.assert_allclose(
        weighted.decision_function(cloud), repeated.decision_function(cloud), atol=1e-4
    )
    hard = linear().fit(cloud, sample_weight=w)
    absent = linear().fit(cloud[w > 0])
    np.testing.assert_allclose(hard.center_, absent.center_, atol=1e-3)


@pytest.mark.parametrize("C", [None, 0.1])
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize("n", [1, 2, 20])
def test_equal_rows(n, kernel, C):
    X = np.full((n, 2), 0.7)
    ball = MinimumEnclosingBall("pairwise", kernel=kernel, C=C).fit(X)
    assert ball.radius_ == pytest.approx(0, abs=1e-7)
    assert ball.certificate_ < 0.03
    assert (ball.predict(X) == 1).all()
    assert ball.predict([[5.0, 5.0]]) == [-1]


def test_huge_values():
    X = np.array([[1e150, 0.0], [-1e150, 0.0], [0.0, 1e149]])
    assert linear().fit(X).radius_ == pytest.approx(1e150)
    assert hard().fit(X).stop_reason_ == "certified"
    soft = linear(C=1e-299).fit(X)
    assert 0 < soft.lower_bound_ <= soft.objective_ <= soft.lower_bound_ * (1 + 1e-6)
    with pytest.raises(ValueError, match="overflows"):
        linear().fit(1e10 * X)


def test_a_very_small_C_says_so(cloud):
    with pytest.warns(UserWarning, match="raise C"):
        ball = MinimumEnclosingBall("pairwise", C=1e-6).fit(cloud)
    assert ball.radius_ == 0
    assert (ball.predict(cloud) == -1).all()


@pytest.mark.parametrize(
    ("X", "weights", "parameters", "message"),
    [
        (np.array([[np.nan], [1.0]]), None, {}, "NaN"),
        (np.ones((0, 2)), None, {}, "0 sample"),
        (np.ones((3, 2)), None, {"kernel": "precomputed"}, "square matrix"),
        (np.ones((3, 2)), np.zeros(3), {}, "zero|positive weight"),
        (np.ones((3, 2)), -np.ones(3), {}, "[Nn]egative"),
        (np.ones((3, 2)), None, {"contamination": 0.6}, "contamination"),
        (np.ones((3, 2)), None, {"C": 0.0}, "C"),
        (np.ones((3, 2)), None, {"stopping": "margin"}, "stopping"),
    ],
)
def test_bad_input(X, weights, parameters, message):
    ball = MinimumEnclosingBall(**parameters)
    before = dict(vars(ball))
    with pytest.raises(ValueError, match=message):
        ball.fit(X, sample_weight=weights)
    assert vars(ball) == before


def test_center_is_for_the_linear_kernel(cloud):
    with pytest.raises(NotFittedError):
        _ = linear().center_
    with pytest.raises(AttributeError, match="linear"):
        _ = MinimumEnclosingBall().fit(cloud).center_


# --- limits --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "reason"),
    [
        ({"max_stages": 1}, "max_stages"),
        ({"max_time": 1e-9}, "max_time"),
        ({"memory_limit": 2_000_000}, "core_full"),
        ({"tol": 1e-12, "dtype": "float32"}, "rounding"),
    ],
)
def test_limits_give_a_ball_and_a_warning(many, parameters, reason):
    X = many[:300] if reason == "rounding" else many
    word = {"core_full": "memory_limit", "rounding": "float64"}.get(reason, reason)
    with pytest.warns(ConvergenceWarning, match=word):
        ball = hard(5.0, **{"tol": 1e-5, **parameters}).fit(X)
    assert ball.stop_reason_ == reason
    assert (ball.predict(X) == 1).all()
    assert ball.lower_bound_ <= ball.objective_ < np.inf


def test_time_is_kept(many, monkeypatch):
    clock = Clock(step=0.01)
    set_clock(monkeypatch, clock)
    with pytest.warns(ConvergenceWarning, match="max_time"):
        hard(5.0, tol=1e-9, max_time=0.2).fit(many)
    assert clock.now < 0.3


def test_radius_rule(many):
    with pytest.warns(ConvergenceWarning, match="missed rows"):
        ball = hard(stopping="radius", random_state=0).fit(many)
    assert ball.stop_reason_ == "radius"
    assert ball.lower_bound_ <= ball.objective_ <= 1.5 * ball.lower_bound_
    assert (ball.predict(many) == 1).all()
    certified = hard(random_state=0).fit(many)
    assert ball.n_kernel_evaluations_ <= certified.n_kernel_evaluations_


@pytest.mark.parametrize("C", [None, 0.05, "auto"])
def test_the_same_seed_gives_the_same_ball(many, C):
    a, b = (
        MinimumEnclosingBall("pairwise", C=C, random_state=3).fit(many).dual_coef_ for _ in range(2)
    )
    np.testing.assert_array_equal(a, b)


def test_threads_and_pickles_give_the_same_scores(many):
    one = hard(random_state=0).fit(many)
    two = hard(random_state=0, n_jobs=2).fit(many)
    np.testing.assert_allclose(one.score_samples(many), two.score_samples(many), rtol=1e-9)
    again = pickle.loads(pickle.dumps(one))
    np.testing.assert_array_equal(again.score_samples(many), one.score_samples(many))


# --- any rows ------------------------------------------------------------------------------------

CLOUDS = st.integers(1, 4).flatmap(
    lambda d: st.integers(1, 30).flatmap(
        lambda n: arrays(np.float64, (n, d), elements=st.integers(-50, 50).map(float))
    )
)


@settings(max_examples=60, deadline=None)
@given(X=CLOUDS, kernel=st.sampled_from(["rbf", "linear"]), tol=st.sampled_from([0.1, 0.01, 1e-5]))
def test_any_rows_are_enclosed(X, kernel, tol):
    ball = hard(kernel=kernel, tol=tol, random_state=0).fit(X)
    assert ball.stop_reason_ == "certified"
    assert (ball.predict(X) == 1).all()
    assert ball.lower_bound_ <= ball.objective_ + 1e-12
    assert ball.objective_ <= max(ball.lower_bound_ * (1 + tol) ** 2, 1e-11)
    if kernel == "linear":
        span = np.sqrt(cdist(X, X, "sqeuclidean").max())
        assert span / 2 <= ball.radius_ * (1 + 1e-9) + 1e-6
        assert ball.radius_ <= span / 2**0.5 * (1 + tol) + 1e-6  # Jung's theorem


@settings(max_examples=40, deadline=None)
@given(X=CLOUDS, shift=st.integers(-10_000, 10_000))
def test_the_ball_moves_with_its_rows(X, shift):
    here, there = linear(tol=1e-6).fit(X), linear(tol=1e-6).fit(X + shift)
    assert there.radius_ == pytest.approx(here.radius_, rel=3e-6, abs=1e-6)
    np.testing.assert_allclose(there.center_ - shift, here.center_, atol=4e-3 * here.radius_ + 1e-6)


def test_ties_on_the_surface_give_a_warning():
    X = np.tile([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]], (10, 1))
    with pytest.warns(UserWarning, match="tie on the ball's surface"):
        linear(contamination=0.2, tol=1e-9).fit(X)


@pytest.mark.parametrize("name", ["negative", "random"])
def test_kernels_that_are_not_positive_give_a_warning(name):
    X = np.random.default_rng(0).normal(size=(40, 40))
    K = -np.exp(-cdist(X, X) / 9) if name == "negative" else X + X.T
    with pytest.warns(ConvergenceWarning, match="not positive semi-definite"):
        ball = hard(kernel="precomputed").fit(K)
    assert ball.stop_reason_ == "indefinite"
