"""Boosted Parzen windows: equal to the rho-SVM where section 3.1 of IJCAI-07 says so."""

import numpy as np
import pytest
from problems.rho import best_of, problem, rows_and_labels, solve, two_class
from scipy.special import softmax

from hardmargin import RhoEnsembleSVC, RhoSVC
from hardmargin.monitor import Monitor, Stopped
from hardmargin.solvers import boosting
from hardmargin.solvers.boosting import BoostingOptions
from hardmargin.solvers.problem import Problem

EQUAL = {"rtol": 0, "atol": 1e-10}
EPS = (0.1, 0.005)


def boost(K, y, *, weights=None, monitor=None, **options):
    [solution] = boosting.solve(two_class(K, y, weights), BoostingOptions(**options), monitor)
    return solution


def path(K, y, **options):
    """The rho-SVM's solution and its multipliers at every plane."""
    solution = solve(K, y, **options)
    return solution, y * solution.planes


# --- Algorithm 1 is boosting with relative precision ---------------------------------------------


def test_relative_precision_is_algorithm_1_stage_by_stage():
    K, y = problem()
    solution, planes = path(K, y, n_stages=20)
    boosted = boost(K, y, eps=EPS, n_stages=20)
    np.testing.assert_allclose(boosted.distributions, planes, **EQUAL)
    np.testing.assert_allclose(boosted.history["step"], solution.history["rate"], rtol=1e-10)
    np.testing.assert_allclose(boosted.history["edge"], solution.history["rho"], **EQUAL)
    np.testing.assert_allclose(
        boosted.ensemble.coefficients, solution.ensemble.coefficients, **EQUAL
    )
    assert boosted.certificate == pytest.approx(solution.certificate)
    assert len(set(solution.history["epsilon"])) > 1  # both undid a stage on the way


def test_every_stage_of_the_whole_path():
    """Each stage from the same distribution, as rounding drives two runs apart in many stages."""
    K, y = problem(100, seed=1)
    solution, planes = path(K, y)
    assert len(solution.history["rate"]) > 50
    for t, (rate, epsilon) in enumerate(
        zip(solution.history["rate"], solution.history["epsilon"], strict=True)
    ):
        stage = boost(K, y, weights=planes[t], eps=(epsilon, 0.0), n_stages=1)
        assert stage.history["precision"][0] == pytest.approx(
            stage.history["edge"][0] * epsilon / (1 + epsilon)
        )
        np.testing.assert_allclose(stage.distributions[1], planes[t + 1], **EQUAL)
        # Newton's method may end with a rate that is accurate to six digits.
        assert stage.history["step"][0] == pytest.approx(rate, rel=1e-6)


def test_the_target_is_the_papers_rho_t():
    K, y = problem()
    solution, _ = path(K, y, n_stages=20)
    boosted = boost(K, y, eps=EPS, n_stages=20)
    np.testing.assert_allclose(
        boosted.history["target"], solution.history["rho"][:-1] / (1 + solution.history["epsilon"])
    )
    assert (np.diff(boosted.history["edge"]) <= 0).all()


def test_the_bound_on_the_stages():
    K, y = problem()
    boosted = boost(K, y, eps=EPS, n_stages=10_000)
    assert (
        len(boosted.history["step"]) <= 2 * np.log(len(y)) / boosted.history["precision"].min() ** 2
    )


def test_weights_are_the_first_distribution():
    K, y = problem()
    weights = np.random.default_rng(0).uniform(0.5, 2, len(y))
    _, planes = path(K, y, weights=weights, n_stages=8)
    boosted = boost(K, y, weights=weights, eps=EPS, n_stages=8)
    np.testing.assert_allclose(boosted.distributions, planes, **EQUAL)


def test_the_classifiers_are_the_last_window_and_the_vote():
    X, y = rows_and_labels()
    setting = {"kernel": "rbf", "gamma": 0.3}
    K = np.exp(-0.3 * ((X[:, None] - X) ** 2).sum(axis=2))
    boosted = boost(K, y, eps=EPS, n_stages=10)
    vote = RhoEnsembleSVC(10, **setting).fit(X, y)
    np.testing.assert_allclose(
        vote.decision_function(X), K @ boosted.ensemble.coefficients, atol=1e-10
    )
    rho = RhoSVC(**setting).fit(X, y)
    staged = list(rho.staged_decision_function(X))[:10]
    np.testing.assert_allclose(staged, (y * boosted.distributions[1:]) @ K, atol=1e-10)


# --- section 2.2 is AdaBoost with the optimum for its target -------------------------------------


def test_the_known_optimum_is_adaboost_with_a_target():
    K, y = problem()
    rho = best_of()
    solution, planes = path(K, y, constraint="equality", rho=rho, n_stages=60, tol=1e-9)
    boosted = boost(K, y, target=rho, n_stages=60)
    np.testing.assert_allclose(boosted.distributions, planes, **EQUAL)
    np.testing.assert_allclose(boosted.history["step"], solution.history["rate"], rtol=1e-10)
    assert (boosted.history["step"] >= 0).all()


def test_adaboost_makes_the_last_window_worthless():
    """Eq. (20) with target 0: under the next distribution, the window has no edge."""
    K, y = problem()
    boosted = boost(K, y, n_stages=5)
    margins = y * ((boosted.distributions * y) @ K)
    for before, after in zip(margins, boosted.distributions[1:], strict=False):
        assert after @ before == pytest.approx(0, abs=1e-14)


# --- where they part -----------------------------------------------------------------------------


def test_a_constant_nu_equals_algorithm_1_for_one_stage():
    K, y = problem()
    _, planes = path(K, y, n_stages=3)
    nu = boost(K, y, eps=EPS, n_stages=1).history["precision"][0]
    boosted = boost(K, y, nu=nu, n_stages=3)
    np.testing.assert_allclose(boosted.distributions[1], planes[1], **EQUAL)
    assert np.abs(boosted.distributions[2] - planes[2]).max() > 1e-6
    np.testing.assert_allclose(boosted.history["precision"], nu)


def test_the_closed_form_has_shorter_steps():
    K, y = problem()
    searched, bound = (
        boost(K, y, nu=0.002, n_stages=1, step=step) for step in ("line_search", "bound")
    )
    assert 0 < bound.history["step"][0] < searched.history["step"][0]
    edge, target = bound.history["edge"][0], bound.history["target"][0]
    expected = 0.5 * np.log((1 + edge) / (1 - edge)) - 0.5 * np.log((1 + target) / (1 - target))
    assert bound.history["step"][0] == pytest.approx(expected)
    margins = y * (K @ (y * bound.distributions[0]))
    np.testing.assert_allclose(bound.distributions[1], softmax(-bound.history["step"][0] * margins))


# --- the ends ------------------------------------------------------------------------------------


def test_a_window_that_reaches_its_target():
    K, y = np.eye(4), np.array([1.0, 1.0, -1.0, -1.0])
    boosted = boost(K, y)
    assert boosted.stop_reason == "unreachable"
    assert len(boosted.history["step"]) == 0
    np.testing.assert_allclose(boosted.ensemble.coefficients, 0.25 * y)


def test_a_target_above_every_edge():
    assert boost(*problem(), target=0.9).stop_reason == "no_edge"


def test_overlapping_classes_have_no_edge():
    y = np.array([1.0, -1.0])
    assert boost(np.ones((2, 2)), y, eps=EPS).stop_reason == "no_edge"


def test_the_relative_precision_ends_the_path():
    boosted = boost(*problem(), eps=EPS, n_stages=10_000)
    solution, _ = path(*problem())
    assert boosted.stop_reason == solution.stop_reason == "eps"


def test_the_time_ends_the_path():
    boosted = boost(*problem(), monitor=Monitor(max_seconds=0))
    assert (boosted.stop_reason, boosted.n_stages) == ("max_time", 0)


def test_rows_without_weight_take_no_part():
    K, y = problem()
    weights = np.ones(len(y))
    weights[::4] = 0.0
    rows = np.flatnonzero(weights)
    boosted = boost(K, y, weights=weights, eps=EPS, n_stages=5)
    alone = boost(K[np.ix_(rows, rows)], y[rows], eps=EPS, n_stages=5)
    np.testing.assert_array_equal(boosted.rows, rows)
    np.testing.assert_allclose(boosted.distributions, alone.distributions, **EQUAL)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"nu": 0.1, "eps": EPS}, "are two targets"),
        ({"step": "closed"}, "step='closed' must be 'line_search' or 'bound'"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        boost(*problem(), **options)


def test_the_bound_needs_a_bounded_kernel():
    K, y = problem()
    with pytest.raises(ValueError, match="needs a kernel with values within"):
        boost(100 * K, y, step="bound", nu=0.1)


# --- ends -----------------------------------------------------------------------------------------


class _ShortOfTime:
    """A kernel matrix that has time for some products."""

    def __init__(self, K, n_products):
        self.K, self.n_rows, self.n_left = K, len(K), n_products

    def product(self, V):
        if self.n_left == 0:
            raise Stopped
        self.n_left -= 1
        return self.K @ V


@pytest.mark.parametrize("n_products", [1, 2, 4])
def test_it_returns_the_windows_that_there_was_time_for(n_products):
    K, y = problem()
    [found] = boosting.solve(
        Problem.two_class(_ShortOfTime(K, n_products), y), BoostingOptions(n_stages=9), Monitor()
    )
    expected = boost(K, y, n_stages=n_products - 1)
    assert (found.stop_reason, found.n_stages) == ("max_time", n_products - 1)
    np.testing.assert_allclose(found.distributions, expected.distributions, **EQUAL)
    np.testing.assert_allclose(found.ensemble.coefficients, expected.ensemble.coefficients, **EQUAL)


def test_without_time_for_a_product_it_returns_the_start():
    K, y = problem()
    weights = np.arange(1.0, len(y) + 1)
    [found] = boosting.solve(Problem.two_class(_ShortOfTime(K, 0), y, weights))
    assert (found.stop_reason, found.n_stages, found.certificate) == ("max_time", 0, 1.0)
    np.testing.assert_allclose(found.coefficients, y * weights / weights.sum())
    np.testing.assert_array_equal(found.ensemble.coefficients, found.coefficients)


@pytest.mark.parametrize("labels", [[1.0, 1.0], [-1.0, -1.0], [1.0, 0.0], [0.0, 0.0]])
def test_both_labels_are_needed(labels):
    with pytest.raises(ValueError, match="both labels"):
        boost(np.eye(2), np.array(labels))
