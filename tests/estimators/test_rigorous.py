"""RigorousSVC: the C-SVM whose norm is given."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from hardmargin import GreedySVC, HardMarginSVC, PathSVC, RigorousSVC
from hardmargin.solvers import greedy


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X)[:140], y[:140]


@pytest.mark.parametrize("norm_bound", [0.5, 2.0, 8.0])
def test_is_the_svm_of_its_C(cancer, norm_bound):
    X, y = cancer
    clf = RigorousSVC(norm_bound, gamma=0.05).fit(X, y)
    assert clf.weight_norm_ == pytest.approx(norm_bound, rel=1e-9)
    svc = SVC(C=clf.C_, gamma=0.05, tol=1e-9).fit(X, y)
    scores = clf.decision_function(X)
    # The bias is not unique if no row is between its bounds.
    atol = 1e-5 * max(clf.C_, 1)
    np.testing.assert_allclose(
        scores - clf.intercept_, svc.decision_function(X) - svc.intercept_, atol=atol
    )
    slacks = np.maximum(0, 1 - np.where(y == 1, scores, -scores))
    assert clf.slack_sum_ == pytest.approx(slacks.sum(), rel=1e-8)


def test_no_plane_of_its_norm_has_less_slack(cancer):
    """Compare with planes on the way to other SVMs, scaled to the same norm."""
    X, y = cancer
    clf = RigorousSVC(3.0, gamma=0.05).fit(X, y)
    signs = np.where(y == 1, 1.0, -1.0)
    path = PathSVC(1.0, gamma=0.05).fit(X, y)
    for C in (0.3, 0.8, 1.2, 3.0):
        other = path.at(C * clf.C_)
        f = (other.decision_function(X) - other.intercept_) * 3.0 / other.weight_norm_
        best = min(np.maximum(0, 1 - signs * (f + b)).sum() for b in np.linspace(-3, 3, 200))
        assert best >= clf.slack_sum_ - 1e-9


@pytest.mark.parametrize("norm_bound", [0.5, 3.0, "greedy"])
def test_without_intercept_it_has_the_least_slack_of_its_norm(cancer, norm_bound):
    """Multipliers prove it: sum(alpha) - ||w|| A <= C * slack for every plane with ||w|| <= A."""
    X, y = cancer
    clf = RigorousSVC(norm_bound, gamma=0.05, fit_intercept=False).fit(X, y)
    assert clf.intercept_ == [0.0]
    assert clf.weight_norm_ == pytest.approx(clf.norm_bound_, rel=1e-9)
    scores = np.where(y == 1, 1, -1) * clf.decision_function(X)
    assert clf.slack_sum_ == pytest.approx(np.maximum(0, 1 - scores).sum(), rel=1e-8)
    lower = (np.abs(clf.dual_coef_).sum() - clf.norm_bound_**2) / clf.C_
    assert clf.slack_sum_ == pytest.approx(lower, rel=1e-6)


def test_weight_norm_is_that_of_the_expansion(cancer):
    X, y = cancer
    clf = RigorousSVC(4.0, kernel="linear").fit(X, y)
    assert np.linalg.norm(clf.coef_) == pytest.approx(4.0, rel=1e-6)


def test_a_bound_beyond_the_hard_margin_gives_the_hard_margin(cancer):
    X, y = cancer
    hard = HardMarginSVC(0.05, tol=1e-9).fit(X, y)
    clf = RigorousSVC(1.1 * hard.weight_norm_, gamma=0.05).fit(X, y)
    assert clf.stop_reason_ == "hard_margin"
    np.testing.assert_allclose(clf.decision_function(X), hard.decision_function(X), atol=1e-5)


@pytest.mark.parametrize("weight", [None, 2.0])
def test_greedy_norm(cancer, weight):
    X, y = cancer
    w = None if weight is None else np.where(np.arange(len(y)) % 4 == 0, 0.0, 1.0)
    greedy = GreedySVC("scale", max_visits=1, standardize=False).fit(X, y, sample_weight=w)
    clf = RigorousSVC().fit(X, y, sample_weight=w)
    assert clf.norm_bound_ == pytest.approx(greedy.weight_norm_)
    assert clf.weight_norm_ == pytest.approx(greedy.weight_norm_, rel=1e-6)


@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
def test_many_classes_have_a_norm_each(multi_class):
    X, y = load_iris(return_X_y=True)
    X, y = X[::3], y[::3]
    clf = RigorousSVC(multi_class=multi_class).fit(X, y)
    assert clf.norm_bound_.shape == clf.C_.shape == (3,)
    assert (clf.weight_norm_ <= clf.norm_bound_ * (1 + 1e-9)).all()
    assert clf.score(X, y) > 0.9


def test_a_matrix_of_kernel_values(cancer):
    X, y = cancer
    plain = RigorousSVC(kernel="linear").fit(X, y)
    given = RigorousSVC(kernel="precomputed").fit(X @ X.T, y)
    assert pytest.approx(plain.C_, rel=1e-6) == given.C_


def test_classes_that_overlap_may_not_reach_the_bound():
    X = np.array([[0.0], [0.0], [1.0], [1.0], [1.0]])
    y = [0, 1, 0, 1, 1]
    with pytest.warns(ConvergenceWarning, match="C_max"):
        clf = RigorousSVC(100.0, gamma=1.0).fit(X, y)
    assert clf.weight_norm_ < 100
    assert np.isfinite(clf.decision_function(X)).all()


def test_no_time_for_the_path(cancer):
    X, y = cancer
    with pytest.warns(ConvergenceWarning, match="regularisation path stopped at max_time"):
        clf = RigorousSVC(2.0, max_time=1e-9).fit(X, y)
    assert clf.stop_reason_ == "max_time"
    assert np.isfinite(clf.decision_function(X)).all()


def test_no_time_for_the_bound(cancer, monkeypatch):
    solve = greedy.solve

    def late(*arguments):
        return [replace(solution, stop_reason="max_time") for solution in solve(*arguments)]

    monkeypatch.setattr(greedy, "solve", late)
    with pytest.warns(ConvergenceWarning, match="give the bound stopped at max_time"):
        RigorousSVC().fit(*cancer)


def test_no_row_that_a_greedy_machine_could_choose(cancer):
    _, y = cancer
    with pytest.warns(ConvergenceWarning, match=r"have no rows, as k\(x, x\) <= 0"):
        clf = RigorousSVC(kernel="precomputed").fit(np.zeros((len(y), len(y))), y)
    assert clf.norm_bound_ == clf.weight_norm_ == 0.0


def test_a_tiny_bound_gives_an_almost_flat_plane(cancer):
    X, y = cancer
    clf = RigorousSVC(1e-6).fit(X, y)
    assert clf.weight_norm_ == pytest.approx(1e-6)


def test_without_room_for_the_path_no_greedy_machine_is_trained(cancer, monkeypatch):
    monkeypatch.setattr(greedy, "solve", lambda *_: pytest.fail("too early"))
    with pytest.raises(ValueError, match="raise memory_limit"):
        RigorousSVC(memory_limit="10kB").fit(*cancer)
