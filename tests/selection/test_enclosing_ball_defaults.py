"""What MinimumEnclosingBall() chooses by itself."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist, pdist
from sklearn.metrics import roc_auc_score

from hardmargin import MinimumEnclosingBall
from hardmargin.selection.enclosing_ball import fence, near_gamma, quantile

N_OUTLIERS = 20


def contaminated(d=2, n=400, seed=0):
    """Normal rows, the last ones uniform in a box around them."""
    rng = np.random.default_rng(seed)
    inliers = rng.normal(size=(n - N_OUTLIERS, d))
    return np.vstack([inliers, rng.uniform(-8, 8, size=(N_OUTLIERS, d))])


def is_inlier(X):
    return np.arange(len(X)) < len(X) - N_OUTLIERS


@pytest.fixture(scope="module")
def cloud():
    return np.random.default_rng(1).normal(size=(300, 3))


def drawing(seed=0):
    return np.random.RandomState(seed)


# --- outliers ------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [2, 10, 30])
def test_outliers_have_the_lowest_scores(d):
    X = contaminated(d)
    ball = MinimumEnclosingBall(random_state=0).fit(X)
    assert roc_auc_score(is_inlier(X), ball.score_samples(X)) > 0.95


@pytest.mark.parametrize("d", [2, 10, 30])
def test_most_outliers_are_found(d):
    X = contaminated(d)
    labels = MinimumEnclosingBall(random_state=0).fit_predict(X)
    assert np.mean(labels[~is_inlier(X)] == -1) > 0.75


@pytest.mark.parametrize("d", [2, 10, 30])
def test_few_clean_rows_are_called_outliers(d):
    X = np.random.default_rng(0).normal(size=(500, d))
    assert np.mean(MinimumEnclosingBall(random_state=0).fit_predict(X) == -1) < 0.1


def test_few_new_rows_are_called_outliers():
    X, new = np.random.default_rng(0).normal(size=(2, 500, 5))
    assert np.mean(MinimumEnclosingBall(random_state=0).fit(X).predict(new) == -1) < 0.1


@pytest.mark.parametrize("share", [0.01, 0.05, 0.2])
def test_contamination_is_the_share_of_training_rows(share):
    X = contaminated(5)
    labels = MinimumEnclosingBall(contamination=share, random_state=0).fit_predict(X)
    assert np.mean(labels == -1) == pytest.approx(share, abs=1 / len(X))


def test_a_small_cluster_apart_is_outlying():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(380, 5)), rng.uniform(3, 7, size=(N_OUTLIERS, 5))])
    ball = MinimumEnclosingBall(random_state=0).fit(X)
    assert roc_auc_score(is_inlier(X), ball.score_samples(X)) > 0.98


# --- gamma ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kernel", "metric"), [("rbf", "sqeuclidean"), ("laplacian", "cityblock")])
def test_a_tenth_of_the_pairs_are_near(cloud, kernel, metric):
    width = 1 / near_gamma(cloud, None, drawing(), kernel=kernel)
    assert np.mean(pdist(cloud, metric) < width) == pytest.approx(0.1, abs=1e-4)


def test_the_default_gamma_is_near(cloud):
    assert MinimumEnclosingBall().fit(cloud).gamma_ == near_gamma(cloud, None, drawing())


def test_sparse_rows_have_the_same_gamma(cloud):
    X = np.where(np.abs(cloud) > 0.5, cloud, 0.0)
    sparse = near_gamma(sp.csr_array(X), None, drawing())
    assert sparse == pytest.approx(near_gamma(X, None, drawing()))


def test_gamma_counts_rows_as_often_as_they_weigh(cloud):
    w = np.arange(len(cloud)) % 3.0
    repeated = near_gamma(np.repeat(cloud, w.astype(int), axis=0), None, drawing())
    assert near_gamma(cloud, w, drawing()) == pytest.approx(repeated)


def test_far_rows_hardly_change_gamma(cloud):
    far = np.vstack([cloud, cloud[:15] + 1000])
    change = near_gamma(far, None, drawing()) / near_gamma(cloud, None, drawing())
    assert change == pytest.approx(1, abs=0.15)


def test_gamma_of_many_rows_is_that_of_some():
    X = np.random.default_rng(0).normal(size=(20_000, 3))
    some, all_of_some = near_gamma(X, None, drawing()), near_gamma(X[:1000], None, drawing())
    assert some == pytest.approx(all_of_some, rel=0.1)


def test_equal_rows_have_a_gamma():
    assert near_gamma(np.full((5, 2), 0.7), None, drawing()) == 1


def test_features_too_large_for_gamma():
    with pytest.raises(ValueError, match="gamma='near' cannot be computed for features as large"):
        MinimumEnclosingBall().fit([[1e160], [-1e160]])


# --- C -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_rows_exceed_the_ball_by_a_tenth_of_the_variance(cloud, kernel):
    ball = MinimumEnclosingBall(kernel=kernel, tol=1e-8).fit(cloud)
    K = cloud @ cloud.T
    if kernel == "rbf":
        K = np.exp(-ball.gamma_ * cdist(cloud, cloud, "sqeuclidean"))
    variance = np.diagonal(K).mean() - K.mean()
    excess = np.maximum(ball.score_samples(cloud) ** 2 - ball.radius_**2, 0)
    assert excess.mean() == pytest.approx(0.1 * variance, rel=1e-3)


def test_units_do_not_matter(cloud):
    here, there = (
        MinimumEnclosingBall(kernel="linear", tol=1e-8).fit(scale * cloud) for scale in (1, 1e5)
    )
    np.testing.assert_array_equal(here.predict(cloud), there.predict(1e5 * cloud))


@pytest.mark.parametrize("contamination", ["auto", 0.1])
def test_a_weight_of_two_is_the_row_twice(cloud, contamination):
    w = np.arange(len(cloud)) % 3
    ball = MinimumEnclosingBall(contamination=contamination, tol=1e-9)
    weighted = ball.fit(cloud, sample_weight=w).decision_function(cloud)
    repeated = ball.fit(np.repeat(cloud, w, axis=0)).decision_function(cloud)
    np.testing.assert_allclose(weighted, repeated, atol=1e-6)


def test_the_optimum_is_bounded(cloud):
    ball = MinimumEnclosingBall(tol=1e-4).fit(cloud)
    assert ball.stop_reason_ == "certified"
    assert ball.lower_bound_ <= ball.objective_ <= ball.lower_bound_ * (1 + 1e-4) ** 2


def test_C_given_is_C_used(cloud):
    auto = MinimumEnclosingBall(tol=1e-8).fit(cloud)
    given = MinimumEnclosingBall(C=auto.C_, tol=1e-8).fit(cloud)
    np.testing.assert_allclose(auto.score_samples(cloud), given.score_samples(cloud), atol=1e-6)


# --- many rows -----------------------------------------------------------------------------------


@pytest.fixture
def few_drawn(monkeypatch):
    monkeypatch.setattr("hardmargin.estimators.enclosing_ball.MAX_ROWS", 100)


def test_many_rows_are_drawn_from(few_drawn, cloud):
    ball = MinimumEnclosingBall(tol=1e-8, random_state=0).fit(cloud)
    assert 50 < len(ball.support_) <= 100
    np.testing.assert_array_equal(ball.support_vectors_, cloud[ball.support_])


def test_a_precomputed_kernel_is_drawn_from(few_drawn, cloud):
    named = MinimumEnclosingBall(0.3, tol=1e-8, random_state=0).fit(cloud)
    K = np.exp(-0.3 * cdist(cloud, cloud, "sqeuclidean"))
    stored = MinimumEnclosingBall(kernel="precomputed", tol=1e-8, random_state=0).fit(K)
    np.testing.assert_array_equal(stored.support_, named.support_)


def test_rows_of_no_weight_are_not_drawn(few_drawn, cloud):
    w = np.arange(len(cloud)) % 2
    ball = MinimumEnclosingBall(random_state=0).fit(cloud, sample_weight=w)
    assert (w[ball.support_] > 0).all()


def test_a_C_given_is_for_all_rows(few_drawn, cloud):
    assert len(MinimumEnclosingBall(C=0.02, tol=1e-8).fit(cloud).support_) > 100


# --- the fence -----------------------------------------------------------------------------------


def test_fence_of_squares():
    squares = np.arange(101.0)
    assert fence(squares, np.ones(101), np.inf) == pytest.approx(50 + 4 * 25)


def test_fence_below_a_bound():
    squares = 1 - np.exp(-np.linspace(0, 2, 101))
    assert fence(squares, np.ones(101), 1.0) == pytest.approx(1 - np.exp(-3))


def test_fence_of_rows_most_of_which_are_equally_far():
    squares = np.r_[np.ones(90), np.linspace(1, 2, 10)]
    assert 1 < fence(squares, np.ones(100), np.inf) < 2


def test_a_precomputed_kernel_has_the_same_fence(cloud):
    named = MinimumEnclosingBall(0.3, tol=1e-8).fit(cloud)
    K = np.exp(-0.3 * cdist(cloud, cloud, "sqeuclidean"))
    stored = MinimumEnclosingBall(kernel="precomputed", tol=1e-8).fit(K)
    assert stored.offset_ == pytest.approx(named.offset_, abs=1e-6)


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize("n", [1, 2, 20])
def test_equal_rows_are_inside(n, kernel):
    X = np.full((n, 2), 0.7)
    assert (MinimumEnclosingBall(kernel=kernel).fit_predict(X) == 1).all()


def test_quantile_counts_values_as_often_as_they_weigh():
    values, w = np.array([3.0, 1.0, 2.0]), np.array([1, 2, 3])
    expected = np.quantile(np.repeat(values, w), 0.3)
    assert quantile(values, w.astype(float), 0.3) == pytest.approx(expected)
