"""What GreedySVC chooses with nothing to tune, by which splits, and within which limits."""

import numpy as np
import pytest
import scipy.sparse as sp
from problems.greedy import (
    CLASSES,
    QUERIES,
    four_classes,
    paper,
    queries,
    tuned,
    two_classes,
    unbalanced,
)
from sklearn import config_context
from sklearn.base import clone
from sklearn.model_selection import (
    GroupKFold,
    LeaveOneGroupOut,
    RepeatedStratifiedKFold,
    TimeSeriesSplit,
    cross_validate,
)
from sklearn.preprocessing import StandardScaler

from hardmargin import GreedySVC

# --- what is chosen ------------------------------------------------------------------------------


def test_nothing_to_tune_is_better_than_the_paper_by_rule():
    X, y, Q, truth = unbalanced()
    assert GreedySVC(random_state=0).fit(X, y).score(Q, truth) > paper().fit(X, y).score(Q, truth)


@CLASSES
def test_the_choice_is_the_least_log_loss(multi_class):
    model = tuned(multi_class)
    results = model.cv_results_
    decided = (
        (results["n_splits"] == 5)
        & (results["has_relevance"] == hasattr(model, "relevance_"))
        & (results["standardized"] == model.standardized_)
    )
    best = np.where(decided, results["log_loss"], np.inf).argmin()
    assert (model.kernel_, model.max_visits_) == (
        results["kernel"][best],
        results["max_visits"][best],
    )
    if not hasattr(model, "relevance_"):  # the gamma of scaled columns differs between splits
        assert model.gamma_ == results["gamma"][best]


def test_results_have_a_row_for_everything_that_was_tried():
    results = tuned().cv_results_
    assert set(results) == {
        *("kernel", "gamma", "max_visits", "standardized", "has_relevance"),
        *("n_rows", "n_splits", "log_loss"),
    }
    assert len({len(column) for column in results.values()}) == 1


@CLASSES
def test_the_model_is_the_machine_of_the_choice(multi_class):
    model = tuned(multi_class)
    X, y = two_classes() if multi_class is None else four_classes()
    scales = getattr(model._kernel_.view, "scales", 1.0)
    same = paper(
        model.gamma_,
        kernel=model.kernel_,
        max_visits=model.max_visits_,
        multi_class=multi_class or "ovo",
    ).fit(StandardScaler().fit_transform(X) * scales, y)
    assert model.support_.tolist() == same.support_.tolist()
    np.testing.assert_allclose(abs(model.dual_coef_ - same.dual_coef_).max(), 0, atol=1e-9)


@pytest.mark.parametrize("fixed", [{"gamma": 0.3}, {"gamma": "scale"}, {"max_visits": 4}])
def test_what_is_given_is_not_chosen(fixed):
    model = GreedySVC(**fixed, random_state=0).fit(*two_classes())
    for name, value in fixed.items():
        column = model.cv_results_[name]
        assert len(set(column)) == 1
        assert value in ("scale", column[0])


def test_the_paper_chooses_nothing():
    model = GreedySVC(gamma=0.3, max_visits=1, threshold=0).fit(*two_classes())
    assert not hasattr(model, "cv_results_")
    assert (model.max_visits_, model.threshold_, model.standardized_) == (1, 0.0, False)


def test_a_fit_that_chooses_nothing_forgets_an_earlier_choice():
    model = GreedySVC(random_state=0).fit(*two_classes())
    model.set_params(gamma=0.3, max_visits=1).fit(*two_classes())
    assert not any(name.startswith("cv_") for name in vars(model))


@pytest.mark.parametrize("kernel", ["laplacian", "linear", "poly"])
def test_other_kernels_are_tuned(kernel):
    model = GreedySVC(kernel=kernel, coef0=1.0, random_state=0).fit(*two_classes())
    n_gammas = len(set(model.cv_results_["gamma"]))
    assert n_gammas == 1 if kernel == "linear" else n_gammas > 3
    assert model.predict_proba(QUERIES).shape == (len(QUERIES), 2)


def test_gammas_at_which_the_kernel_overflows_are_rejected():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    model = GreedySVC(kernel="poly", degree=25, coef0=1, standardize=False, dtype="float32")
    model.fit(X, X[:, 0] > 0)
    tried = model.cv_results_
    largest = (tried["gamma"] * (X**2).sum(axis=1).max() + 1) ** 25
    overflows = largest > np.finfo(np.float32).max
    np.testing.assert_array_equal(np.isinf(tried["log_loss"]), overflows)
    assert overflows.any()
    assert np.isfinite(model.cv_log_loss_)


def not_finite(A, B):
    K = np.exp(-((A[:, None] - B) ** 2).sum(axis=2))
    return np.where(np.abs(A[:, None, 0] - B[:, 0]) > 1.0, np.inf, K)


@pytest.mark.parametrize("max_visits", ["cv", 1, 3])
def test_a_kernel_that_is_not_finite_is_refused(max_visits):
    X = np.random.default_rng(0).normal(size=(80, 3))
    with (
        pytest.warns(UserWarning, match="no candidate has finite scores"),
        pytest.raises(ValueError, match="must be finite"),
    ):
        GreedySVC(kernel=not_finite, max_visits=max_visits).fit(X, X[:, 0] > 0)


def test_visits_of_a_precomputed_kernel_are_chosen():
    X, y = two_classes()
    model = GreedySVC(kernel="precomputed", random_state=0).fit(X @ X.T + 1, y)
    assert set(model.cv_results_["max_visits"]) == {1, 4, 64}
    assert not model.standardized_
    assert model.predict_proba(QUERIES @ X.T + 1).shape == (len(QUERIES), 2)


def test_a_callable_sees_rows_as_they_are():
    X, y = two_classes()
    seen = []

    def linear(A, B):
        seen.append(A)
        return A @ B.T + 1

    GreedySVC(kernel=linear, random_state=0).fit(X[:60], y[:60])
    assert all(np.isin(A, X).all() for A in seen)


# --- the kernel ----------------------------------------------------------------------------------


def test_kernels_are_compared():
    assert set(tuned().cv_results_["kernel"]) == {"rbf", "laplacian"}


def test_a_given_gamma_means_rbf():
    model = GreedySVC(gamma=0.3, random_state=0).fit(*two_classes())
    assert set(model.cv_results_["kernel"]) == {"rbf"} == {model.kernel_}
    same = GreedySVC(gamma=0.3, kernel="rbf", random_state=0).fit(*two_classes())
    np.testing.assert_array_equal(model.dual_coef_, same.dual_coef_)


def test_many_rows_have_rbf_kernels_alone(monkeypatch):
    monkeypatch.setattr("hardmargin.selection.greedy_sources.MANY_ROWS", 50)
    tried = GreedySVC().fit(*two_classes()).cv_results_
    assert set(tried["kernel"]) == {"rbf"}
    assert not tried["has_relevance"].any()


def test_a_given_kernel_is_kept():
    model = GreedySVC(kernel="laplacian", random_state=0).fit(*two_classes())
    assert set(model.cv_results_["kernel"]) == {"laplacian"} == {model.kernel_}
    assert not model.cv_results_["has_relevance"].any()


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
def test_wide_or_sparse_rows_have_a_linear_candidate(container):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 80 if container is np.asarray else 5))
    model = GreedySVC(random_state=0).fit(container(X), X[:, 0] > 0)
    assert "linear" in model.cv_results_["kernel"]


def test_a_linear_choice_has_weights_of_features():
    rng = np.random.default_rng(0)
    X = sp.random_array((300, 1200), density=0.05, rng=rng, format="csr")
    y = X @ rng.normal(size=1200) > 0
    model = GreedySVC(random_state=0).fit(X, y)
    assert model.kernel_ == "linear"
    expected = model._scaled(X) @ model.coef_[0] + model.intercept_[0]
    np.testing.assert_allclose(model.decision_function(X), expected, rtol=1e-9, atol=1e-12)


# --- splits --------------------------------------------------------------------------------------


def test_groups_reach_the_splitter():
    X, y = two_classes()
    groups = np.arange(len(y)) // 10
    model = GreedySVC(cv=GroupKFold(4), random_state=0).fit(X, y, groups=groups)
    assert model.cv_error_ < 0.4


def test_groups_are_routed():
    X, y = two_classes()
    groups = np.arange(len(y)) // 10
    with config_context(enable_metadata_routing=True):
        model = GreedySVC(cv=LeaveOneGroupOut(), max_visits=1, random_state=0)
        model.set_fit_request(groups=True)
        scores = cross_validate(
            model, X, y, cv=GroupKFold(3), params={"groups": groups}, error_score="raise"
        )
    assert scores["test_score"].mean() > 0.6


def test_groups_without_a_splitter_are_refused():
    X, y = two_classes()
    with pytest.raises(ValueError, match="GroupKFold"):
        GreedySVC().fit(X, y, groups=np.zeros(len(y)))


@pytest.mark.parametrize(
    "cv",
    [TimeSeriesSplit(3), RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=0), 2],
    ids=str,
)
def test_any_splitter_will_do(cv):
    model = GreedySVC(cv=cv, random_state=0).fit(*two_classes())
    assert model.cv_error_ < 0.45


def test_an_iterable_of_splits_can_be_used_again():
    X, y = two_classes()
    splits = [(np.arange(100), np.arange(100, 160)), (np.arange(60, 160), np.arange(60))]
    first, second = (GreedySVC(cv=splits).fit(X, y).gamma_ for _ in range(2))
    assert first == second


def test_a_class_of_one_row_warns_and_gives_a_model():
    X, y = two_classes()
    y = np.where(np.arange(len(y)) == 3, 1, 0)
    with pytest.warns(UserWarning, match="Nothing could be chosen"):
        model = GreedySVC().fit(X, y)
    is_first = model.predict(X) == 0
    expected = np.tile([160 / 162, 2 / 162], (is_first.sum(), 1))
    np.testing.assert_allclose(model.predict_proba(X)[is_first], expected, rtol=1e-4)
    assert (model.max_visits_, model.threshold_) == (1, 0.0)
    assert np.isfinite(model.decision_function(X)).all()
    assert np.isnan(model.cv_error_)


def test_fewer_folds_than_asked_for_warn():
    X, y = two_classes()
    y = (X[:, 0].argsort().argsort() < 7).astype(int)
    with pytest.warns(UserWarning, match="3 folds"):
        GreedySVC(random_state=0).fit(X, y)


# --- the same model every time -------------------------------------------------------------------


@CLASSES
def test_threads_change_nothing(multi_class):
    X, y = two_classes() if multi_class is None else four_classes()
    model = clone(tuned(multi_class)).set_params(n_jobs=2).fit(X, y)
    np.testing.assert_array_equal(
        model.decision_function(queries(multi_class)),
        tuned(multi_class).decision_function(queries(multi_class)),
    )


def test_the_random_state_settles_the_model():
    one, two = (
        GreedySVC(random_state=5).fit(*two_classes()).decision_function(QUERIES) for _ in range(2)
    )
    np.testing.assert_array_equal(one, two)


def test_a_weight_of_zero_is_absence():
    X, y = two_classes()
    kept = np.arange(len(y)) % 4 > 0
    hidden = GreedySVC(random_state=0).fit(X, y, sample_weight=kept.astype(float))
    absent = GreedySVC(random_state=0).fit(X[kept], y[kept])
    assert (hidden.gamma_, hidden.max_visits_) == pytest.approx((absent.gamma_, absent.max_visits_))
    np.testing.assert_allclose(
        hidden.decision_function(QUERIES), absent.decision_function(QUERIES), atol=1e-9
    )


# --- limits --------------------------------------------------------------------------------------


def test_too_little_time_to_choose_warns():
    X, y = two_classes()
    with pytest.warns(UserWarning, match="max_time"):
        model = GreedySVC(max_time=1e-6).fit(X, y)
    assert model.n_iter_ > 0


def test_verbose_prints_what_is_tried(capsys):
    GreedySVC(verbose=1, random_state=0).fit(*two_classes())
    assert "max_visits 64" in capsys.readouterr().out


def test_chosen_visits_do_not_warn_of_their_own_limit():
    X, y = two_classes()
    model = GreedySVC(1e-3, random_state=0, standardize=True).fit(X, y)  # warnings are errors here
    assert model.max_visits_ > 1
