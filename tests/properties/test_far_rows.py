"""Rows far from all others get the shares of the classes, never certainty."""

import warnings

import numpy as np
import pytest
from scipy.special import expit
from sklearn.datasets import make_moons

from hardmargin import GreedySVC

RANDOM = np.random.default_rng(0)
KERNELS = ("rbf", "laplacian", "matern32", "matern52")


def apart():
    y = np.arange(100) % 2
    return RANDOM.normal(size=(100, 2)) + 20 * y[:, None], y


def rare():
    X = RANDOM.normal(size=(150, 4))
    return X, (X[:, 0] + 0.3 * RANDOM.normal(size=150) > 1).astype(int)


def in_a_line():
    X = RANDOM.normal(size=(100, 3))
    return X, (X[:, 0] > 0).astype(int)


def noise():
    return RANDOM.normal(size=(100, 10)), RANDOM.integers(0, 2, 100)


PROBLEMS = {
    "moons": make_moons(120, noise=0.2, random_state=0),
    "apart": apart(),
    "rare": rare(),
    "in a line": in_a_line(),
    "noise": noise(),
}


def fitted(problem, **parameters):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return GreedySVC(max_visits="cv", random_state=0, **parameters).fit(*PROBLEMS[problem])


def rows_at(problem, distance):
    """Rows in all directions, so many times the spread away."""
    X, _ = PROBLEMS[problem]
    along = np.random.default_rng(1).normal(size=(20, X.shape[1]))
    along /= np.linalg.norm(along, axis=1)[:, None]
    return X.mean(axis=0) + distance * X.std(axis=0) * along


def log_odds(share):
    return np.log(share / (1 - share))


@pytest.mark.once_per("kernel", "problem")
@pytest.mark.parametrize("kernel", ["cv", *KERNELS])
@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("distance", [1e4, 1e6, 1e8])
def test_with_a_chosen_gamma_they_have_about_the_shares(kernel, problem, distance):
    model = fitted(problem, kernel=kernel)
    found = log_odds(model.predict_proba(rows_at(problem, distance))[:, 1])
    assert np.ptp(found) < 1e-6  # nothing tells them apart
    shares = log_odds(PROBLEMS[problem][1].mean())
    assert min(0.0, shares - 2.1) < found[0] < max(0.0, shares + 2.1) + 1e-6


@pytest.mark.once_per("kernel", "gamma")
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("gamma", [1.0, 1e2, 1e8])
@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("distance", [1e2, 1e4, 1e8])
def test_with_a_given_gamma_they_have_what_the_threshold_says(kernel, gamma, problem, distance):
    model = fitted(problem, kernel=kernel, gamma=gamma, standardize=True)
    found = model.predict_proba(rows_at(problem, distance))[:, 1]
    slope, threshold = model._calibration_.slopes[0], model.threshold_
    np.testing.assert_allclose(found, expit(-slope * threshold), atol=1e-6)
    assert 0.05 < found.min() <= found.max() < 0.95
    decisions = model.decision_function(rows_at(problem, distance))
    np.testing.assert_array_equal(found >= 0.5, decisions >= 0)


@pytest.mark.parametrize("distance", [10.0, 30.0])
@pytest.mark.parametrize("problem", PROBLEMS)
def test_nearer_rows_are_not_certain(problem, distance):
    """Kernels have not decayed there altogether, but have little left to say."""
    found = fitted(problem).predict_proba(rows_at(problem, distance))
    assert 1e-3 < found.min() <= found.max() < 1 - 1e-3
