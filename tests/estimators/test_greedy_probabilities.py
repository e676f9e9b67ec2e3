"""Decisions, probabilities and the threshold of GreedySVC with nothing to tune."""

import warnings

import numpy as np
import pytest
from problems.greedy import (
    CLASSES,
    MULTI_CLASS,
    QUERIES,
    QUERIES_4,
    four_classes,
    paper,
    queries,
    tuned,
    two_classes,
    unbalanced,
)
from scipy.special import expit
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris, make_classification
from sklearn.metrics import balanced_accuracy_score, log_loss
from sklearn.model_selection import RepeatedStratifiedKFold, StratifiedKFold

from hardmargin import GreedySVC
from hardmargin.estimators import greedy as estimator_module
from hardmargin.selection import folds as folds_module
from hardmargin.selection import greedy as greedy_module
from hardmargin.selection.calibration import HeldOut
from hardmargin.selection.thresholds import cut_machines

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
    [threshold], [slope], _ = cut_machines(held_out, weights, [log_ratio])
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


@pytest.mark.filterwarnings("ignore:The held-out scores say nothing")
@pytest.mark.parametrize("log_ratio", [None, 0.0, np.log(3.0)])
def test_scores_the_wrong_way_round_leave_the_odds_of_the_classes(log_ratio):
    scores, positive = shifted_scores(0.0)
    some = np.flatnonzero(~positive | (np.arange(len(positive)) % 8 == 0))  # few are positive
    scores, positive = -scores[some], positive[some]
    threshold, slope = cut(scores, positive, log_ratio=log_ratio)
    odds = (positive.sum() + 1) / ((~positive).sum() + 1) / np.exp(log_ratio or 0.0)
    np.testing.assert_allclose(slope * (scores - threshold), np.log(odds), atol=1e-3)


@pytest.mark.once_per("seed")
@pytest.mark.filterwarnings("ignore:The held-out scores")
@pytest.mark.parametrize("shares", [(0.9, 0.1), (0.8, 0.1, 0.1)])
@pytest.mark.parametrize("seed", range(3))
def test_rare_classes_without_a_signal_have_the_probabilities_of_their_shares(seed, shares):
    random = np.random.default_rng(seed)
    X, y = random.normal(size=(300, 4)), random.choice(len(shares), p=shares, size=300)
    model, new = GreedySVC().fit(X, y), random.normal(size=(300, 4))
    expected = np.bincount(y) / len(y)
    np.testing.assert_allclose(model.predict_proba(new).mean(axis=0), expected, atol=0.06)
    assert (model.predict(new) > 0).mean() < 0.02


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


def test_weights_count_in_the_threshold():
    X, y, *_ = unbalanced()
    weights = np.where(y == 1, 5.0, 1.0)
    plain, weighted = (
        GreedySVC(0.1, max_visits="cv", random_state=0).fit(X, y, w).predict(X).mean()
        for w in (None, weights)
    )
    assert weighted > plain


# --- little to go by -----------------------------------------------------------------------------


def test_a_tiny_class_among_others_keeps_probabilities():
    X, y = four_classes()
    y = np.where((y == 3) & (np.cumsum(y == 3) > 2), 0, y)
    with pytest.warns(UserWarning, match="fewer than 4 rows"):
        model = GreedySVC(random_state=0).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(QUERIES_4).sum(axis=1), 1.0)


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


@pytest.mark.filterwarnings("ignore:.*look the same to the")
def test_features_that_are_all_constant():
    with pytest.warns(UserWarning, match="say nothing"):
        model = GreedySVC(random_state=0).fit(np.ones((20, 2)), np.arange(20) % 2)
    assert np.isfinite(model.predict_proba(np.ones((2, 2)))).all()


# --- how exact the promise is --------------------------------------------------------------------


def held_out_errors(weights=None, **parameters):
    """Standard errors of a model, and of what its held-out rows say."""
    X, y = noisy_classes(120)
    model = GreedySVC(0.1, max_visits="cv", random_state=0, **parameters).fit(X, y, weights)
    return model.cv_log_loss_std_error_, model.cv_error_std_error_, model


def noisy_classes(n, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 3))
    return X, (X[:, 0] + random.normal(size=n) > 0).astype(int)


def test_the_standard_error_of_the_error_is_that_of_a_share():
    _, of_error, model = held_out_errors()
    share = model.cv_error_
    assert of_error == pytest.approx(np.sqrt(share * (1 - share) / 119), rel=1e-6)


def test_means_of_other_rows_are_as_far_away_as_standard_errors_say():
    fits = [
        GreedySVC(0.1, max_visits="cv", random_state=0).fit(*noisy_classes(150, seed))
        for seed in range(20)
    ]
    for name in ("cv_log_loss_", "cv_error_"):
        found = [getattr(model, name) for model in fits]
        said = np.mean([getattr(model, f"{name[:-1]}_std_error_") for model in fits])
        assert said == pytest.approx(np.std(found), rel=0.5)


def test_splits_that_repeat_rows_say_no_more():
    few = held_out_errors(cv=StratifiedKFold(5))[0]
    many = held_out_errors(cv=RepeatedStratifiedKFold(n_splits=5, n_repeats=8, random_state=0))[0]
    assert many == pytest.approx(few, rel=0.3)


def test_standard_errors_of_weighted_rows_are_those_of_repeated_ones():
    weights = np.full(120, 3.0)
    plain, weighted = held_out_errors()[1], held_out_errors(weights)[1]
    assert weighted == pytest.approx(plain / np.sqrt(3), rel=0.2)


@MULTI_CLASS
def test_many_classes_have_standard_errors(multi_class):
    model = tuned(multi_class)
    share = model.cv_error_
    expected = np.sqrt(share * (1 - share) / (len(four_classes()[1]) - 1))
    assert model.cv_error_std_error_ == pytest.approx(expected, rel=1e-6)
    assert 0 < model.cv_log_loss_std_error_ < model.cv_log_loss_


def test_where_nothing_is_held_out_standard_errors_are_unknown():
    X, y = noisy_classes(120)
    y[:] = 0
    y[0] = 1
    with pytest.warns(UserWarning, match="Nothing could be chosen"):
        model = GreedySVC(random_state=0).fit(X, y)
    assert np.isnan([model.cv_log_loss_std_error_, model.cv_error_std_error_]).all()


def test_the_promise_pays_for_the_choice():
    X, y = noisy_classes(120)
    model = GreedySVC(0.1, max_visits="cv", random_state=0).fit(X, y)
    trust = model.cv_log_loss_ - with_no_cost(X, y).cv_log_loss_
    assert trust == pytest.approx(3 / 120, rel=1e-3)  # clear scores are trusted


def with_no_cost(X, y):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(estimator_module, "COST_OF_CHOICE", 0.0)
        return GreedySVC(0.1, max_visits="cv", random_state=0).fit(X, y)


# --- honesty -------------------------------------------------------------------------------------


def promised_and_true(n, n_columns, effects, seed, n_classes=2, shares=None):
    """Log-losses that a fit promises, and that new rows have."""
    random = np.random.default_rng([seed, n, n_columns])
    X = random.normal(size=(n + 3_000, n_columns))
    if effects is None:
        y = random.choice(n_classes, p=shares, size=len(X))
    else:
        y = (random.random(len(X)) < expit(X[:, : len(effects)] @ effects)).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = GreedySVC(random_state=0).fit(X[:n], y[:n])
    return model.cv_log_loss_, log_loss(y[n:], model.predict_proba(X[n:]))


@pytest.mark.once_per("effects")
@pytest.mark.parametrize("shape", [(100, 50), (60, 10), (300, 290)])
@pytest.mark.parametrize("effects", [None, (0.6, -0.4, 0.3)], ids=["noise", "weak"])
def test_fits_of_little_or_nothing_keep_their_promise(shape, effects):
    promised, true = np.transpose([promised_and_true(*shape, effects, seed) for seed in range(8)])
    assert abs(np.mean(promised - true)) < 0.05
    assert np.abs(promised - true).max() < (0.12 if effects is None else 0.25)
    assert np.mean(true) < 0.72


def test_relevance_to_a_sample_is_not_judged_by_its_rows(monkeypatch):
    """Noise of more rows than are searched: scales that knew held-out labels would look good."""
    monkeypatch.setattr(folds_module, "MAX_SEARCHED_ROWS", 200)
    monkeypatch.setattr(folds_module, "SUBSAMPLE_ROWS", 200)
    monkeypatch.setattr(folds_module, "LEAST_LARGEST_ROWS", 100)
    monkeypatch.setattr(greedy_module, "HANDICAP_SCALED", 0.5)  # take scaled columns
    found = [promised_and_true(400, 390, None, seed) for seed in range(4)]
    promised, true = np.transpose(found)
    assert abs(np.mean(promised - true)) < 0.015
    assert np.mean(true) < 0.71


def test_noise_of_rare_classes_keeps_its_promise():
    found = [promised_and_true(100, 50, None, s, shares=(0.85, 0.15)) for s in range(8)]
    promised, true = np.transpose(found)
    assert abs(np.mean(promised - true)) < 0.05
    assert np.mean(true) < 0.46
