"""PathSVC: the SVM of every C, and the choice among them."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GroupKFold, KFold
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from hardmargin import HardMarginSVC, PathSVC
from hardmargin.selection.regularization_path import ErrorCurve, validation_split
from hardmargin.solvers import regularization_path
from hardmargin.solvers.regularization_path import active_set, events
from hardmargin.solvers.regularization_path.state import Stuck


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X)[:140], y[:140]


@pytest.fixture(scope="module")
def fitted(cancer):
    return PathSVC(random_state=0).fit(*cancer)


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return X[::2, :2], y[::2]


@pytest.mark.parametrize("C", [0.005, 0.1, 1.0, 20.0])
def test_at_is_svc(cancer, fitted, C):
    X, y = cancer
    svc = SVC(C=C, tol=1e-9).fit(X, y)
    atol = 1e-5 * max(C, 1)
    np.testing.assert_allclose(
        fitted.at(C).decision_function(X), svc.decision_function(X), atol=atol
    )


def test_without_intercept_it_ends_with_the_hard_margin_without_one(cancer):
    X, y = cancer
    clf = PathSVC("loo", gamma=0.1, fit_intercept=False, C_max=1e6).fit(X, y)
    hard = HardMarginSVC(0.1, fit_intercept=False, tol=1e-9).fit(X, y)
    assert clf.stop_reason_ == "hard_margin"
    assert clf.certificate_ < 1e-8
    assert clf.intercept_ == [0.0]
    last = clf.at(1e6)
    assert last.intercept_ == [0.0]
    assert last.weight_norm_ == pytest.approx(hard.weight_norm_, rel=1e-6)
    np.testing.assert_allclose(last.decision_function(X), hard.decision_function(X), atol=1e-5)


def test_without_intercept_cross_validation_works(iris):
    clf = PathSVC(fit_intercept=False, random_state=0).fit(*iris)
    assert not clf.intercept_.any()
    assert clf.score(*iris) > 0.7


def test_at_is_light_and_fitted(cancer, fitted):
    X, y = cancer
    model = fitted.at(0.5)
    assert model.C_ == 0.5
    assert len(pickle.dumps(model)) < len(pickle.dumps(fitted))
    assert not hasattr(model, "cv_error_")
    assert hasattr(fitted, "cv_error_")
    with pytest.raises(AttributeError, match="without the regularisation path"):
        model.at(1.0)
    given = PathSVC(0.5).fit(X, y)
    assert given.C_ == 0.5
    np.testing.assert_allclose(given.decision_function(X), model.decision_function(X), atol=1e-9)
    assert given.weight_norm_ == pytest.approx(model.weight_norm_)


def test_beyond_the_path_is_the_hard_margin(cancer, fitted):
    X, y = cancer
    assert fitted.stop_reason_ == "hard_margin"
    hard = HardMarginSVC(tol=1e-9).fit(X, y)
    last = fitted.at(1e9)
    assert fitted.path_.C[-1] == last.C_
    np.testing.assert_allclose(last.decision_function(X), hard.decision_function(X), atol=1e-6)


@pytest.mark.parametrize("C", [0.0, np.nan, "x", None, [1.0, 2.0]])
def test_at_needs_a_positive_C(fitted, C):
    with pytest.raises(ValueError, match="C must be a positive number, got"):
        fitted.at(C)


def test_beyond_a_path_that_ended_early_is_another_svm(cancer):
    short = PathSVC(0.01, C_max=0.1).fit(*cancer)
    with pytest.warns(UserWarning, match=r"ended at C = 0\.1 \(C_max\): .* not of C = 5"):
        assert pytest.approx(0.1) == short.at(5.0).C_


def test_a_C_beyond_C_max_can_be_asked_for(cancer):
    X, y = cancer
    assert PathSVC(2.0, C_max=0.1).fit(X, y).C_ == 2.0


@pytest.mark.parametrize("weighted", [False, True])
def test_cross_validation_is_that_of_svc(cancer, weighted):
    X, y = cancer[0][:, :4], cancer[1]
    w = np.random.default_rng(0).uniform(0.2, 2, size=len(y)) if weighted else np.ones(len(y))
    splits = list(KFold(3).split(X))
    clf = PathSVC(cv=splits, C_max=10.0, gamma=0.25).fit(X, y, sample_weight=w)
    curve = clf.cv_results_
    assert clf.cv_error_ >= curve["error"].min()
    at_choice = curve["error"][np.searchsorted(curve["C"], clf.C_, side="right") - 1]
    assert at_choice == curve["error"].min()
    for C in (0.05, 0.5, clf.C_):
        wrong = 0.0
        for train, test in splits:
            svc = SVC(C=C, gamma=0.25, tol=1e-8).fit(X[train], y[train], sample_weight=w[train])
            wrong += w[test] @ (svc.predict(X[test]) != y[test])
        place = np.searchsorted(curve["C"], C, side="right") - 1
        assert curve["error"][place] == pytest.approx(wrong / w.sum())


@pytest.mark.parametrize("weighted", [False, True])
def test_rows_of_a_split_are_judged_at_the_C_that_other_splits_choose(cancer, weighted):
    X, y = cancer[0][:, :4], cancer[1]
    w = np.random.default_rng(0).uniform(0.2, 2, size=len(y)) if weighted else np.ones(len(y))
    splits = list(KFold(3).split(X))
    limits = {"C_min": 0.01, "C_max": 10.0, "gamma": 0.25}
    wrong = 0.0
    for train, test in splits:
        # The rows of this split train in the others, but are not held out there.
        others = [(a, b) for a, b in splits if b is not test]
        C = PathSVC(cv=others, **limits).fit(X, y, sample_weight=w).C_
        svc = SVC(C=C, gamma=0.25, tol=1e-8).fit(X[train], y[train], sample_weight=w[train])
        wrong += w[test] @ (svc.predict(X[test]) != y[test])
    clf = PathSVC(cv=splits, **limits).fit(X, y, sample_weight=w)
    assert clf.cv_error_ == pytest.approx(wrong / w.sum())


@pytest.mark.parametrize("selection", ["cv", "validation"])
def test_the_error_of_noise_is_that_of_a_coin(selection):
    errors = []
    for seed in range(20):
        random = np.random.default_rng(seed)
        X, y = random.normal(size=(60, 5)), random.permutation(np.repeat([0, 1], 30))
        clf = PathSVC(selection, random_state=0).fit(X, y)
        errors.append((clf.cv_error_, np.min(clf.cv_results_["error"])))
    promised, least = np.mean(errors, axis=0)
    assert promised == pytest.approx(0.5, abs=0.05)
    assert least < 0.45


def test_threads_change_nothing(cancer, fitted):
    two = PathSVC(random_state=0, n_jobs=2).fit(*cancer)
    assert pytest.approx(fitted.C_) == two.C_
    assert two.cv_error_ == fitted.cv_error_


def test_least_leave_one_out_bound(cancer):
    X, y = cancer
    clf = PathSVC("loo").fit(X, y)
    at_least = clf.loo_path_[clf.path_.C[1] / 10 <= clf.path_.C].min()
    signs = np.where(y == 1, 1.0, -1.0)
    alpha, _ = clf.path_.at(clf.C_)
    bound = np.mean(signs * clf.decision_function(X) <= alpha)  # k(x, x) is one
    assert bound <= at_least + 1e-12
    assert not hasattr(clf, "cv_error_")


def test_validation_holds_out_a_share_of_every_class(cancer):
    codes = np.repeat([0, 1, 2, 3], [50, 10, 1, 2]).astype(np.int32)
    folds = validation_split(codes, 0.2, np.random.RandomState(0))
    assert np.bincount(codes[folds.test[0]], minlength=4).tolist() == [10, 2, 0, 1]
    assert not (folds.train & folds.test).any()
    clf = PathSVC("validation", random_state=0).fit(*cancer)
    assert 0 <= clf.cv_error_ < 0.2
    assert clf.C_ == PathSVC("validation", random_state=0).fit(*cancer).C_


def test_path_error_is_that_of_every_breakpoint(cancer, fitted):
    X, y = cancer
    errors = fitted.path_error(X, y)
    np.testing.assert_allclose(errors, fitted.path_.error, atol=1e-12)
    k = len(errors) // 2
    other = np.roll(y, 1)
    expected = 1 - fitted.at(fitted.path_.C[k]).score(X, other)
    assert fitted.path_error(X, other)[k] == pytest.approx(expected)
    weights = (np.arange(len(y)) < 10) * 1.0
    assert fitted.path_error(X, other, weights)[k] == pytest.approx(
        fitted.path_error(X[:10], other[:10])[k]
    )


def test_C_min_and_C_max_limit_the_choice(cancer):
    clf = PathSVC("loo", C_min=3.0, C_max=4.0).fit(*cancer)
    assert 3.0 <= clf.C_ <= 4.0
    assert clf.path_.C[-1] == pytest.approx(4.0)
    with pytest.raises(ValueError, match="C_min"):
        PathSVC(C_min=3.0, C_max=2.0).fit(*cancer)


def test_many_classes_have_a_C_each(iris):
    X, y = iris
    clf = PathSVC(gamma=0.5, C_max=100.0, random_state=0).fit(X, y)
    assert clf.C_.shape == clf.cv_error_.shape == (3,)
    assert len(clf.path_) == len(clf.cv_results_) == len(clf.loo_path_) == 3
    for rows, pair in zip(clf.path_rows_, ({0, 1}, {0, 2}, {1, 2}), strict=True):
        assert set(y[rows]) == pair
    svc = SVC(C=2.0, gamma=0.5, tol=1e-8).fit(X, y)
    np.testing.assert_array_equal(clf.at(2.0).predict(X), svc.predict(X))
    with pytest.raises(ValueError, match="two classes"):
        clf.path_error(X, y)


def test_kernels_given_as_matrix_or_function(cancer):
    X, y = cancer
    gamma = 0.05

    def rbf(A, B):
        return np.exp(-gamma * ((A[:, None] - B[None]) ** 2).sum(-1))

    K = rbf(X, X)
    plain = PathSVC(1.0, gamma=gamma, C_max=1.0).fit(X, y)
    for model, rows in (
        (PathSVC(1.0, kernel="precomputed", C_max=1.0), K),
        (PathSVC(1.0, kernel=rbf, C_max=1.0), X),
        (PathSVC(1.0, gamma=gamma, C_max=1.0), sp.csr_array(X)),
    ):
        model.fit(rows, y)
        np.testing.assert_allclose(
            model.decision_function(rows), plain.decision_function(X), atol=1e-8
        )
        np.testing.assert_allclose(model.path_error(rows, y), plain.path_.error, atol=1e-12)


def test_rows_of_weight_zero_are_absent(cancer):
    X, y = cancer
    w = np.where(np.arange(len(y)) % 3 == 0, 0.0, 1.0)
    weighted = PathSVC("loo", gamma=0.05, C_max=10.0).fit(X, y, sample_weight=w)
    chosen = PathSVC("loo", gamma=0.05, C_max=10.0).fit(X[w > 0], y[w > 0])
    assert pytest.approx(chosen.C_) == weighted.C_
    np.testing.assert_allclose(
        weighted.decision_function(X), chosen.decision_function(X), atol=1e-8
    )
    assert (w[weighted.support_] > 0).all()
    np.testing.assert_array_equal(weighted.path_rows_, np.flatnonzero(w))


def test_a_bias_that_is_free_is_in_the_middle_of_its_range():
    # Before the first event of classes of equal weight, any bias between two limits is optimal.
    X, y = np.array([[0.0], [1.0], [2.0], [4.0]]), np.array([0, 0, 1, 1])
    svm = PathSVC(0.01, kernel="linear", C_max=0.01).fit(X, y)
    f = svm.decision_function(X) - svm.intercept_
    assert svm.intercept_[0] == pytest.approx(-(f[y == 0].min() + f[y == 1].max()) / 2)


def test_a_free_bias_does_not_depend_on_how_copies_are_given():
    X, y = np.array([[0.0], [1.0], [2.0], [4.0]]), np.array([0, 0, 1, 1])
    weights = np.array([2, 1, 1, 2])
    weighted = PathSVC(0.01, C_max=0.01).fit(X, y, sample_weight=weights)
    repeated = PathSVC(0.01, C_max=0.01, gamma=weighted.gamma_)
    repeated.fit(X.repeat(weights, axis=0), y.repeat(weights))
    np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X))


def test_class_weights_multiply_C(cancer):
    X, y = cancer
    clf = PathSVC(0.1, class_weight="balanced").fit(X, y)
    svc = SVC(C=0.1, class_weight="balanced", tol=1e-9).fit(X, y)
    np.testing.assert_allclose(clf.decision_function(X), svc.decision_function(X), atol=1e-5)


def test_groups_go_to_the_splitter(cancer):
    X, y = cancer
    groups = np.arange(len(y)) // 4
    PathSVC(cv=GroupKFold(2), C_max=1.0).fit(X, y, groups=groups)
    with pytest.raises(ValueError, match="groups"):
        PathSVC(cv=5).fit(X, y, groups=groups)


def test_too_few_rows_to_hold_out():
    X, y = np.arange(5.0)[:, None], np.array([0, 0, 0, 1, 1])
    with pytest.warns(UserWarning, match="leave-one-out"):
        clf = PathSVC().fit(X, y)
    assert np.isnan(clf.cv_error_)
    assert np.isfinite(clf.decision_function(X)).all()


@pytest.mark.parametrize(("limit", "value"), [("max_stages", 3), ("max_time", 1e-9)])
def test_limits_give_a_model_and_a_warning_that_names_them(cancer, limit, value):
    X, y = cancer
    with pytest.warns(ConvergenceWarning, match=limit):
        clf = PathSVC(**{limit: value}).fit(X, y)
    assert clf.stop_reason_ == limit
    assert np.isfinite(clf.decision_function(X)).all()


def test_a_path_that_never_began_does_not_advise_a_lower_C_max(cancer):
    with pytest.warns(
        ConvergenceWarning, match="always predicts the same class, so raise max_time"
    ):
        PathSVC(max_time=1e-9).fit(*cancer)


def test_a_split_that_ends_early_is_told_apart(cancer, monkeypatch):
    solve = regularization_path.solve

    def early(problem, options, monitor):
        if (problem.codes < 0).any():
            options = replace(options, max_stages=3)
        return solve(problem, options, monitor)

    monkeypatch.setattr(regularization_path, "solve", early)
    with pytest.warns(
        ConvergenceWarning,
        match="The regularisation path of a split, which chooses C, stopped at",
    ):
        clf = PathSVC(random_state=0).fit(*cancer)
    assert clf.stop_reason_ == "hard_margin"


def test_a_matrix_that_is_not_symmetric(cancer):
    X, y = cancer
    K = X @ X.T
    K[0, 1] += 1.0
    with pytest.raises(ValueError, match="symmetric"):
        PathSVC(kernel="precomputed").fit(K, y)


def test_errors_are_shares():
    X, y = load_iris(return_X_y=True)
    clf = PathSVC(random_state=0).fit(X[:100], y[:100])
    assert clf.cv_error_ == 0.0
    counts = 100 * clf.cv_results_["error"]
    np.testing.assert_array_equal(counts, np.rint(counts))


def test_memory_limit_is_named_where_it_is_too_small(cancer):
    with pytest.raises(ValueError, match="memory_limit"):
        PathSVC(memory_limit="10kB").fit(*cancer)


def test_conflicting_duplicates_are_valid_input():
    X = np.array([[0.0], [0.0], [1.0], [1.0]] * 3)
    clf = PathSVC("loo").fit(X, [0, 1, 0, 1] * 3)
    assert np.isfinite(clf.decision_function(X)).all()


@pytest.mark.filterwarnings("ignore:A regularisation path stopped early")
def test_an_indefinite_kernel_gives_a_finite_model():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    y = rng.integers(2, size=40)
    model = PathSVC(1.0, kernel="sigmoid", gamma=1.0, coef0=-1.0).fit(X, y)
    assert np.isfinite(model.decision_function(X)).all()


def test_a_path_that_stalls_says_so(cancer, monkeypatch):
    def blocked(*arguments):
        raise Stuck

    monkeypatch.setattr(active_set, "optimise", blocked)
    monkeypatch.setattr(events, "direction", blocked)
    with pytest.warns(ConvergenceWarning, match="positive semi-definite"):
        clf = PathSVC(1.0).fit(*cancer)
    assert clf.stop_reason_ == "stalled"
    assert np.isfinite(clf.decision_function(cancer[0])).all()


def test_a_path_is_printed_in_a_line(fitted):
    n = len(fitted.path_)
    text = f"<RegularizationPath of 140 rows: {n} breakpoints up to C = {fitted.path_.C[-1]:.4g}"
    assert repr(fitted.path_) == f"{text}, hard_margin>"


def test_copies_are_not_fitted(fitted, cancer):
    assert not hasattr(clone(fitted), "path_")
    restored = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(
        restored.at(1.0).predict(cancer[0]), fitted.at(1.0).predict(cancer[0])
    )


def test_probabilities_are_hidden(fitted):
    with pytest.raises(AttributeError) as caught:
        fitted.predict_proba(np.zeros((1, 30)))
    assert "CalibratedClassifierCV" in str(caught.value.__cause__)


def test_the_best_range_is_the_longest():
    curve = ErrorCurve(np.array([0.1, 1.0, 2.0, 20.0, 100.0]), np.array([0.3, 0.1, 0.2, 0.1, 0.1]))
    C, error = curve.best()
    assert error == 0.1
    assert pytest.approx(np.sqrt(20 * 100)) == C


@pytest.mark.filterwarnings("ignore:All rows look the same")
def test_kernel_values_too_large_for_float32_are_predicted_in_float64():
    X, y = np.full((20, 1), -1e9), np.arange(20) % 2
    clf = PathSVC(kernel="poly", gamma=1.0, dtype="float32").fit(X, y)
    assert np.isfinite(clf.decision_function(X)).all()
