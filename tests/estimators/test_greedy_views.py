"""Relevance and standardisation in GreedySVC with nothing to tune."""

import functools
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from problems.greedy import QUERIES, paper, tuned, two_classes
from sklearn.preprocessing import StandardScaler

from hardmargin import GreedySVC, compress

# --- relevance -----------------------------------------------------------------------------------


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


def test_other_choices_have_no_weights_of_features():
    with pytest.raises(AttributeError, match="kernel='linear' only"):
        _ = with_relevance().coef_


# --- standardisation -----------------------------------------------------------------------------


def test_views_of_many_rows_are_tried_with_all_kernels(monkeypatch):
    monkeypatch.setattr("hardmargin.selection.greedy.MAX_FOLDED_ROWS", 50)
    X, y = two_classes()
    tried = GreedySVC().fit(X * [1.0, 3.0, 1.0, 2.0], y).cv_results_
    found = set(zip(tried["kernel"].tolist(), tried["standardized"].tolist(), strict=True))
    assert found == {(name, view) for name in ("rbf", "laplacian") for view in (False, True)}


def test_rows_as_they_came_are_used_where_they_are_better():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 30)) * np.r_[1.0, 1.0, np.full(28, 0.05)]
    y = X[:, 0] * X[:, 1] > 0
    model = GreedySVC(kernel="rbf", random_state=0).fit(X, y)
    assert not model.standardized_
    assert set(model.cv_results_["standardized"]) == {True, False}


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


@pytest.mark.parametrize("scale", [2.0**-1000, 2.0**600])
def test_features_of_any_size_are_standardised(scale):
    X, y = two_classes()
    plain, scaled = (GreedySVC(random_state=0).fit(k * X, y) for k in (1.0, scale))
    np.testing.assert_allclose(plain.decision_function(X), scaled.decision_function(scale * X))


def test_sparse_text_like_rows():
    rng = np.random.default_rng(0)
    counts = sp.random_array((200, 3000), density=0.01, format="csr", random_state=rng)
    y = (counts[:, :300].sum(axis=1) > counts[:, 300:600].sum(axis=1)).astype(int)
    model = GreedySVC(random_state=0).fit(counts[:150], y[:150])
    assert sp.issparse(model.support_vectors_)
    assert model.predict_proba(counts[150:]).shape == (50, 2)


@pytest.mark.parametrize("seed", range(3))
def test_a_linear_kernel_on_few_rows_of_many_columns_is_judged_fairly(seed):
    """Held-out rows have no part in the mean that training rows are centred by."""
    random = np.random.default_rng(seed)
    y = random.random(500) < 0.7
    X = random.normal(size=(500, 3_000)) + np.where(np.arange(3_000) < 30, y[:, None], 0)
    model = GreedySVC(kernel="linear", standardize=True).fit(X[:150], y[:150])
    assert model.score(X[150:], y[150:]) > 0.8
    assert 1 - model.score(X[150:], y[150:]) == pytest.approx(model.cv_error_, abs=0.08)
