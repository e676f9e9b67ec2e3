"""GreedySVC with nothing to tune: what it chooses, its threshold and its probabilities."""

import functools
import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from problems.greedy import MULTI_CLASS, QUERIES, QUERIES_4, four_classes, paper, two_classes
from scipy.special import expit
from sklearn import config_context
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris, make_classification
from sklearn.metrics import balanced_accuracy_score, log_loss
from sklearn.model_selection import (
    GroupKFold,
    LeaveOneGroupOut,
    RepeatedStratifiedKFold,
    TimeSeriesSplit,
    cross_validate,
)
from sklearn.preprocessing import StandardScaler

from hardmargin import GreedySVC, compress
from hardmargin.selection.calibration import HeldOut, cut_machines


@functools.cache
def tuned(multi_class=None, **parameters):
    X, y = two_classes() if multi_class is None else four_classes()
    model = GreedySVC(multi_class=multi_class or "ovo", random_state=0, **parameters)
    return model.fit(X, y)


def queries(multi_class):
    return QUERIES if multi_class is None else QUERIES_4


CLASSES = pytest.mark.parametrize("multi_class", [None, "ovo", "ovr"])


@functools.cache
def unbalanced():
    X, y = make_classification(
        1500, 8, n_informative=4, weights=[0.9], flip_y=0.02, class_sep=0.9, random_state=0
    )
    return X[:500], y[:500], X[500:], y[500:]


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


# --- the kernel and relevance --------------------------------------------------------------------


@functools.cache
def two_of_many():
    """Two columns of twelve matter."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 12))
    y = (X[:, 3] * X[:, 7] > 0).astype(int)
    return X[:400], y[:400], X[400:], y[400:]


@functools.cache
def with_relevance():
    X, y, *_ = two_of_many()
    return GreedySVC(random_state=0).fit(X, y)


def test_kernels_are_compared():
    assert set(tuned().cv_results_["kernel"]) == {"rbf", "laplacian"}


def test_a_given_gamma_means_rbf():
    model = GreedySVC(gamma=0.3, random_state=0).fit(*two_classes())
    assert set(model.cv_results_["kernel"]) == {"rbf"} == {model.kernel_}
    same = GreedySVC(gamma=0.3, kernel="rbf", random_state=0).fit(*two_classes())
    np.testing.assert_array_equal(model.dual_coef_, same.dual_coef_)


def test_many_rows_have_rbf_kernels_alone(monkeypatch):
    monkeypatch.setattr("hardmargin.estimators.greedy.MANY_ROWS", 50)
    tried = GreedySVC().fit(*two_classes()).cv_results_
    assert set(tried["kernel"]) == {"rbf"}
    assert not tried["has_relevance"].any()


def test_views_of_many_rows_are_tried_with_all_kernels(monkeypatch):
    monkeypatch.setattr("hardmargin.selection.greedy.MAX_FOLDED_ROWS", 50)
    X, y = two_classes()
    tried = GreedySVC().fit(X * [1.0, 3.0, 1.0, 2.0], y).cv_results_
    found = set(zip(tried["kernel"].tolist(), tried["standardized"].tolist(), strict=True))
    assert found == {(name, view) for name in ("rbf", "laplacian") for view in (False, True)}


def test_a_given_kernel_is_kept():
    model = GreedySVC(kernel="laplacian", random_state=0).fit(*two_classes())
    assert set(model.cv_results_["kernel"]) == {"laplacian"} == {model.kernel_}
    assert not model.cv_results_["has_relevance"].any()


def test_relevance_is_found_where_it_helps():
    X, y, Q, truth = two_of_many()
    model = with_relevance()
    assert set(np.argsort(-model.relevance_)[:2]) == {3, 7}
    plain = GreedySVC(kernel="rbf", random_state=0).fit(X, y)
    assert model.score(Q, truth) > plain.score(Q, truth)
    assert model.cv_log_loss_ < 0.9 * plain.cv_log_loss_


def test_importances_are_shares_of_relevance():
    model = with_relevance()
    np.testing.assert_allclose(
        model.feature_importances_, model.relevance_ / model.relevance_.sum()
    )
    np.testing.assert_array_equal(model.relevance_, model.encoded_relevance_)


def test_without_relevance_the_error_says_what_it_needs():
    with pytest.raises(AttributeError, match="That needs kernel='cv'"):
        _ = paper().fit(*two_classes()).feature_importances_


def test_support_vectors_are_not_scaled_by_relevance():
    X, *_ = two_of_many()
    model = with_relevance()
    expected = StandardScaler().fit_transform(X)[model.support_]
    np.testing.assert_allclose(model.support_vectors_, expected)


def test_staged_decisions_of_scaled_columns_end_at_the_decision():
    _, _, Q, _ = two_of_many()
    *_, last = with_relevance().staged_decision_function(Q[:20])
    np.testing.assert_allclose(last, with_relevance().decision_function(Q[:20]), rtol=1e-9)


def test_scaled_columns_can_be_compressed_and_pickled():
    _, _, Q, _ = two_of_many()
    model = pickle.loads(pickle.dumps(with_relevance()))
    np.testing.assert_array_equal(model.predict(Q), with_relevance().predict(Q))
    small = compress(model, tolerance=0.05)
    assert len(small.support_) < len(model.support_)
    assert np.mean(small.predict(Q) != model.predict(Q)) < 0.05


def test_relevance_of_a_feature_is_that_of_its_largest_column():
    X, y, *_ = two_of_many()
    missing = X.copy()
    missing[::7, 3] = np.nan
    model = GreedySVC(random_state=0).fit(missing, y)
    assert model.relevance_.shape == (12,)
    assert len(model.encoded_relevance_) == 13
    assert model.relevance_[3] == max(model.encoded_relevance_[[3, 12]])


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


def test_other_choices_have_no_weights_of_features():
    with pytest.raises(AttributeError, match="kernel='linear' only"):
        _ = with_relevance().coef_


def test_rows_as_they_came_are_used_where_they_are_better():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 30)) * np.r_[1.0, 1.0, np.full(28, 0.05)]
    y = X[:, 0] * X[:, 1] > 0
    model = GreedySVC(kernel="rbf", random_state=0).fit(X, y)
    assert not model.standardized_
    assert set(model.cv_results_["standardized"]) == {True, False}


# --- standardisation -----------------------------------------------------------------------------


def test_the_unit_of_a_feature_does_not_matter():
    X, y = two_classes()
    units = np.array([1e-6, 1.0, 1e3, 1e9])
    scaled = GreedySVC(random_state=0).fit(X * units, y)
    np.testing.assert_allclose(
        scaled.decision_function(QUERIES * units), tuned().decision_function(QUERIES), rtol=1e-4
    )


def test_columns_of_two_values_get_a_unit_step():
    rng = np.random.default_rng(0)
    X = np.hstack([rng.normal(size=(60, 2)), 7.0 * (rng.random((60, 2)) < 0.1)])
    model = GreedySVC(random_state=0).fit(X, X[:, 0] > 0)
    steps = np.ptp(model._check_rows(X)[:, 2:], axis=0)
    np.testing.assert_allclose(steps, 1.0)


@pytest.mark.parametrize("container", [sp.csr_array, sp.csr_matrix])
def test_sparse_columns_of_two_values_get_a_unit_step(container):
    rng = np.random.default_rng(0)
    X = 7.0 * (rng.random((60, 5)) < 0.5)
    X[:, 0] *= rng.uniform(1, 2, 60)
    model = GreedySVC(random_state=0).fit(container(X), X[:, 0] > 0)
    scaled = model._check_rows(sp.csr_array(X)).toarray()
    np.testing.assert_allclose(np.ptp(scaled[:, 1:], axis=0), 1.0)
    assert scaled[:, 0].std() == pytest.approx(1.0)


def test_weightless_rows_do_not_say_how_many_values_a_column_has():
    rng = np.random.default_rng(0)
    X = np.hstack([rng.normal(size=(60, 2)), 3.0 * rng.integers(2, size=(60, 1))])
    X[-1, 2] = 100.0
    weights = np.r_[np.ones(59), 0.0]
    model = GreedySVC(random_state=0).fit(X, X[:, 0] > 0, weights)
    assert np.ptp(model._check_rows(X)[:59, 2]) == pytest.approx(1.0)


@pytest.mark.parametrize("standardize", [True, False])
def test_standardize_can_be_set(standardize):
    model = GreedySVC(0.3, max_visits=1, standardize=standardize).fit(*two_classes())
    assert model.standardized_ == standardize


# --- decisions and probabilities -----------------------------------------------------------------


@CLASSES
def test_probabilities_sum_to_one(multi_class):
    P = tuned(multi_class).predict_proba(queries(multi_class))
    assert (P >= 0).all()
    np.testing.assert_allclose(P.sum(axis=1), 1.0)


@MULTI_CLASS
def test_probabilities_are_in_the_order_of_the_decisions(multi_class):
    model = tuned(multi_class)
    P, decisions = model.predict_proba(QUERIES_4), model.decision_function(QUERIES_4)
    np.testing.assert_array_equal(P.argsort(axis=1), decisions.argsort(axis=1))
    assert model.predict(QUERIES_4).tolist() == P.argmax(axis=1).tolist()


def test_the_probability_is_a_half_where_the_decision_is_zero():
    model = tuned()
    decisions = model.decision_function(QUERIES)
    P = model.predict_proba(QUERIES)[:, 1]
    np.testing.assert_array_equal(P >= 0.5, decisions >= 0)
    np.testing.assert_array_equal(np.argsort(P), np.argsort(decisions))


def test_decisions_of_pairs_are_sums_of_probabilities():
    decisions = tuned("ovo").decision_function(QUERIES_4)
    np.testing.assert_allclose(decisions.sum(axis=1), 6.0)
    assert ((decisions >= 0) & (decisions <= 3)).all()


@CLASSES
def test_the_last_stage_is_the_decision(multi_class):
    model = tuned(multi_class)
    *_, last = model.staged_decision_function(queries(multi_class))
    np.testing.assert_allclose(
        last, model.decision_function(queries(multi_class)), rtol=1e-9, atol=1e-9
    )


def test_probabilities_are_calibrated():
    X, y = make_classification(3000, 6, n_informative=4, flip_y=0.2, random_state=0)
    model = GreedySVC(random_state=0).fit(X[:600], y[:600])
    P = model.predict_proba(X[600:])[:, 1]
    log_odds = np.log(P / (1 - P))
    for factor in (0.6, 1.6):
        assert log_loss(y[600:], P) < log_loss(y[600:], expit(factor * log_odds))


def test_probabilities_of_many_classes_are_no_worse_than_calibration_outside():
    X, y = load_iris(return_X_y=True)
    inside = GreedySVC(random_state=0).fit(X[::2], y[::2])
    outside = CalibratedClassifierCV(paper(standardize=True), cv=5).fit(X[::2], y[::2])
    ours, theirs = (log_loss(y[1::2], m.predict_proba(X[1::2])) for m in (inside, outside))
    assert ours < theirs + 0.05


def test_held_out_scores_judge_the_model():
    model = tuned()
    assert 0 < model.cv_error_ < 0.4
    assert 0 < model.cv_log_loss_ < np.log(2)


def test_predict_proba_is_there_if_rows_would_be_held_out():
    assert hasattr(GreedySVC(), "predict_proba")
    assert hasattr(GreedySVC(max_visits=1), "predict_proba")
    assert not hasattr(paper(), "predict_proba")


def test_predict_proba_after_fit_is_that_of_the_fit():
    model = clone(tuned()).fit(*two_classes()).set_params(gamma=1.0, max_visits=1)
    assert model.predict_proba(QUERIES).shape == (len(QUERIES), 2)


# --- the threshold -------------------------------------------------------------------------------


def test_the_threshold_is_minus_the_intercept():
    X, y, *_ = unbalanced()
    model = GreedySVC(random_state=0).fit(X, y)
    assert model.threshold_ == -model.intercept_[0]
    many = tuned("ovo")
    np.testing.assert_array_equal(many.threshold_, -many.intercept_)


def test_a_threshold_that_gains_little_is_not_used():
    assert tuned().threshold_ == 0.0


def shifted_scores(shift):
    rng = np.random.default_rng(0)
    positive = np.arange(400) % 2 == 0
    return np.where(positive, 1.0, -1.0) + 0.7 * rng.normal(size=400) + shift, positive


def cut(scores, positive, weights=None, log_ratio=None):
    """Threshold and slope of one machine."""
    rows, machines = np.arange(len(scores)), np.zeros(len(scores), dtype=np.intp)
    held_out = HeldOut(rows, scores, positive, machines)
    [threshold], [slope] = cut_machines(held_out, weights, [log_ratio])
    return threshold, slope


def test_a_threshold_that_gains_much_is_used():
    scores, positive = shifted_scores(0.8)
    threshold, _ = cut(scores, positive)
    assert threshold == pytest.approx(0.8, abs=0.1)


def test_a_threshold_that_adds_errors_is_used_unless_there_are_several_machines():
    positive = np.arange(400) % 2 == 0
    scores = np.where(positive, 3.0, -1.0)  # a sigmoid that suits both sides is cut near 1
    scores[:20:2], scores[20:30:2], scores[1:6:2] = 0.3, -1.0, 3.0
    threshold, _ = cut(scores, positive)
    n_errors, n_before = (np.sum((scores >= at) != positive) for at in (threshold, 0.0))
    assert threshold > 0.3
    assert n_errors > n_before
    twice = HeldOut(
        np.tile(np.arange(400), 2),
        np.tile(scores, 2),
        np.tile(positive, 2),
        np.repeat(np.arange(2), 400),
    )
    np.testing.assert_array_equal(cut_machines(twice, None, [None, None])[0], 0.0)


def test_a_threshold_is_judged_by_the_weights():
    scores, positive = shifted_scores(0.3)
    few = np.where(np.arange(400) < 6, 1.0, 1e-6)
    assert cut(scores, positive, few)[0] == 0.0
    assert cut(scores, positive, np.full(400, 1e3))[0] > 0.2


def test_a_threshold_does_not_depend_on_the_scale_of_small_weights():
    scores, positive = shifted_scores(0.3)
    assert cut(scores, positive, np.full(400, 1e-3)) == cut(scores, positive)


def test_class_weights_always_move_the_threshold():
    scores, positive = shifted_scores(0.03)
    plain, even, tilted = (cut(scores, positive, log_ratio=r) for r in (None, 0.0, np.log(10.0)))
    assert plain[0] == 0.0
    assert even[0] == pytest.approx(0.02, abs=0.01)
    assert tilted[0] == pytest.approx(even[0] + np.log(10.0) / even[1])


def test_scores_the_wrong_way_round_are_cut_at_zero_and_flat():
    scores, positive = shifted_scores(0.0)
    with pytest.warns(UserWarning, match="say nothing about the classes"):
        threshold, slope = cut(-scores, positive)
    assert threshold == 0.0
    assert 0 < slope < 0.01


def test_a_fixed_threshold_stays():
    model = GreedySVC(threshold=0.25, random_state=0).fit(*two_classes())
    assert model.threshold_ == 0.25
    decisions, P = model.decision_function(QUERIES), model.predict_proba(QUERIES)[:, 1]
    np.testing.assert_array_equal(P >= 0.5, decisions >= 0)


def test_balanced_weights_improve_balanced_accuracy():
    X, y, Q, truth = unbalanced()
    plain, balanced = (
        balanced_accuracy_score(
            truth, GreedySVC(class_weight=w, random_state=0).fit(X, y).predict(Q)
        )
        for w in (None, "balanced")
    )
    assert balanced > plain + 0.05


@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
def test_class_weights_leave_training_and_choice_alone(multi_class):
    weighted = tuned(multi_class, class_weight="balanced")
    plain = tuned(multi_class)
    assert weighted.gamma_ == plain.gamma_
    np.testing.assert_array_equal(weighted.dual_coef_.data, plain.dual_coef_.data)


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


def test_weights_count_in_the_threshold():
    X, y, *_ = unbalanced()
    weights = np.where(y == 1, 5.0, 1.0)
    plain, weighted = (
        GreedySVC(0.1, max_visits="cv", random_state=0).fit(X, y, w).predict(X).mean()
        for w in (None, weights)
    )
    assert weighted > plain


# --- odd data ------------------------------------------------------------------------------------


def test_a_class_of_one_row_warns_and_gives_a_model():
    X, y = two_classes()
    y = np.where(np.arange(len(y)) == 3, 1, 0)
    with pytest.warns(UserWarning, match="Nothing could be chosen"):
        model = GreedySVC().fit(X, y)
    assert not hasattr(model, "predict_proba")
    assert (model.max_visits_, model.threshold_) == (1, 0.0)
    assert np.isfinite(model.decision_function(X)).all()
    assert np.isnan(model.cv_error_)


def test_a_tiny_class_among_others_keeps_probabilities():
    X, y = four_classes()
    y = np.where((y == 3) & (np.cumsum(y == 3) > 2), 0, y)
    with pytest.warns(UserWarning, match="fewer than 4 rows"):
        model = GreedySVC(random_state=0).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(QUERIES_4).sum(axis=1), 1.0)


def test_fewer_folds_than_asked_for_warn():
    X, y = two_classes()
    y = (X[:, 0].argsort().argsort() < 7).astype(int)
    with pytest.warns(UserWarning, match="3 folds"):
        GreedySVC(random_state=0).fit(X, y)


def test_separable_classes_have_finite_probabilities():
    rng = np.random.default_rng(0)
    y = np.arange(100) % 2
    X = rng.normal(size=(100, 3)) + 20 * y[:, None]
    model = GreedySVC(random_state=0).fit(X, y)
    P = model.predict_proba(X)
    assert model.cv_error_ == 0
    assert 0.9 < P[np.arange(100), y].min() < 1


def test_noise_has_probabilities_of_about_a_half():
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(200, 5)), rng.integers(2, size=200)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = GreedySVC(random_state=0).fit(X, y)
    P = model.predict_proba(rng.normal(size=(200, 5)))
    assert abs(P[:, 1] - 0.5).max() < 0.35


def test_scores_that_say_nothing_warn():
    X = np.repeat(np.arange(30.0), 2)[:, None]
    y = np.tile([0, 1], 30)  # each place has a row of each class
    with pytest.warns(UserWarning, match="say nothing"):
        model = GreedySVC(random_state=0).fit(X, y)
    assert np.isfinite(model.predict_proba(X)).all()


def test_constant_features_do_not_matter():
    X, y = two_classes()
    wider = np.hstack([X, np.full((len(X), 2), 3.0)])
    model = GreedySVC(random_state=0).fit(wider, y)
    np.testing.assert_allclose(
        model.decision_function(np.hstack([QUERIES, np.full((len(QUERIES), 2), 3.0)])),
        tuned().decision_function(QUERIES),
        rtol=1e-6,
        atol=1e-9,
    )


@pytest.mark.filterwarnings("ignore:.*look the same to the")
def test_features_that_are_all_constant():
    with pytest.warns(UserWarning, match="say nothing"):
        model = GreedySVC(random_state=0).fit(np.ones((20, 2)), np.arange(20) % 2)
    assert np.isfinite(model.predict_proba(np.ones((2, 2)))).all()


def test_sparse_text_like_rows():
    rng = np.random.default_rng(0)
    counts = sp.random_array((200, 3000), density=0.01, format="csr", random_state=rng)
    y = (counts[:, :300].sum(axis=1) > counts[:, 300:600].sum(axis=1)).astype(int)
    model = GreedySVC(random_state=0).fit(counts[:150], y[:150])
    assert sp.issparse(model.support_vectors_)
    assert model.predict_proba(counts[150:]).shape == (50, 2)


@pytest.mark.parametrize("scale", [2.0**-1000, 2.0**600])
def test_features_of_any_size_are_standardised(scale):
    X, y = two_classes()
    plain, scaled = (GreedySVC(random_state=0).fit(k * X, y) for k in (1.0, scale))
    np.testing.assert_allclose(plain.decision_function(X), scaled.decision_function(scale * X))


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
