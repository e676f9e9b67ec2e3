"""Views and relevance in EnsembleSVC."""

from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from problems.ensemble import QUERIES, two_classes
from sklearn.datasets import make_classification
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import SelectFromModel
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline

from hardmargin import EnsembleSVC, compress
from hardmargin.selection import fitted_vote, kernel_vote
from hardmargin.selection import folds as folds_module


def noisy_columns(n=300, seed=0, n_columns=8):
    """Two columns that matter, one of them very skewed, and others that do not."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_columns))
    y = (X[:, 0] + X[:, 1] + 0.3 * rng.normal(size=n) > 0).astype(int)
    X[:, 1] = np.exp(3 * X[:, 1])
    return X, y


NOISY = noisy_columns()
NEW = noisy_columns(2_000, seed=1)


def views_of(model):
    return set(model.cv_table_["view"].tolist())


def loss_on_new_rows(n_columns=8, **parameters):
    model = EnsembleSVC(**parameters).fit(*noisy_columns(n_columns=n_columns))
    X, y = noisy_columns(2_000, seed=1, n_columns=n_columns)
    return log_loss(y, model.predict_proba(X))


def test_kernels_of_both_kinds_see_both_views():
    table = EnsembleSVC().fit(*noisy_columns(1_200)).cv_table_
    pairs = {(view, kernel) for _, view, kernel, *_ in table.tolist()}
    assert pairs == set(product(("standardized", "rank"), ("rbf", "laplacian")))


@pytest.mark.parametrize(
    ("parameters", "views"),
    [
        ({"views": "standardized"}, {"standardized"}),
        ({"views": "rank"}, {"rank"}),
        ({"relevance": False}, {"standardized", "rank"}),
        ({"kernel": "rbf"}, {"standardized", "rank"}),
        ({"gamma": "spread"}, {"standardized"}),
        ({"kernel": "linear"}, {"standardized"}),
        ({"standardize": False}, {"raw"}),
        ({"rank": 20}, {"standardized"}),
    ],
)
def test_which_views_vote(parameters, views):
    assert views_of(EnsembleSVC(**parameters).fit(*NOISY)) == views


def test_columns_of_two_values_have_no_ranks():
    X = (NOISY[0] > 0.5).astype(float)
    assert views_of(EnsembleSVC().fit(X, NOISY[1])) == {"standardized"}


def test_an_unknown_view_is_refused():
    with pytest.raises(ValueError, match=r"'views' parameter .* must be .*'rank'"):
        EnsembleSVC(views="ranks").fit(*NOISY)


def test_columns_that_matter_are_the_most_relevant():
    relevance = EnsembleSVC().fit(*NOISY).relevance_
    assert set(np.argsort(-relevance)[:2]) == {0, 1}
    assert relevance.max() == 1.0
    assert (relevance >= 0).all()


def test_importances_add_up_to_one():
    model = EnsembleSVC().fit(*NOISY)
    assert model.feature_importances_.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(
        model.feature_importances_ / model.feature_importances_.max(), model.relevance_
    )


def test_the_best_columns_can_be_selected():
    chosen = SelectFromModel(EnsembleSVC(), threshold="mean").fit(*NOISY).get_support()
    assert chosen[:2].all()
    assert chosen.sum() < 8


@pytest.mark.parametrize(
    "parameters",
    [
        {"relevance": False},
        {"gamma": 0.1},
        {"standardize": False},
        {"kernel": "poly"},
        {"rank": 20},
    ],
)
def test_without_relevance_there_are_no_importances(parameters):
    model = EnsembleSVC(**parameters).fit(*NOISY)
    assert not hasattr(model, "relevance_")
    with pytest.raises(AttributeError, match="relevance=True"):
        _ = model.feature_importances_


def test_importances_need_a_fit():
    with pytest.raises(NotFittedError):
        _ = EnsembleSVC().feature_importances_


def test_relevance_of_an_earlier_fit_is_gone():
    model = EnsembleSVC().fit(*NOISY).set_params(relevance=False).fit(*NOISY)
    assert not hasattr(model, "relevance_")


def test_sparse_rows_have_one_plain_view():
    model = EnsembleSVC(standardize=True).fit(sp.csr_array(NOISY[0]), NOISY[1])
    assert views_of(model) == {"standardized"}
    assert not hasattr(model, "relevance_")


def test_one_column_needs_no_relevance():
    model = EnsembleSVC().fit(NOISY[0][:, :1], NOISY[1])
    assert not hasattr(model, "relevance_")
    assert views_of(model) == {"standardized", "rank"}


def test_relevance_helps_where_columns_do_not_matter():
    assert loss_on_new_rows(20) < 0.9 * loss_on_new_rows(20, relevance=False)


def test_ranks_help_where_columns_are_skewed():
    assert loss_on_new_rows(relevance=False) < 0.9 * loss_on_new_rows(
        views="standardized", relevance=False
    )


def test_monotone_changes_of_columns_leave_ranks_alone():
    X, y = two_classes()
    of_rank = EnsembleSVC(10, views="rank", random_state=0)
    plain = of_rank.fit(X, y).predict_proba(X)
    np.testing.assert_allclose(of_rank.fit(np.exp(X), y).predict_proba(np.exp(X)), plain, atol=1e-6)


def test_decisions_are_those_of_the_views_added_up():
    model = EnsembleSVC(dtype="float64").fit(*NOISY)
    rows = model._scaling_.transform(NEW[0][:20])
    support = model.support_vectors_
    sums = model.intercept_[0] + sum(
        kernel.block(rows, support) @ model.dual_coef_[0, k * len(support) : (k + 1) * len(support)]
        for k, kernel in enumerate(model._kernel_.kernels)
    )
    np.testing.assert_allclose(model.decision_function(NEW[0][:20]), sums, atol=1e-9)


def test_many_rows_have_the_relevance_of_some(monkeypatch):
    X, y = noisy_columns(600)
    whole = EnsembleSVC().fit(X, y).relevance_
    monkeypatch.setattr(folds_module, "MAX_SEARCHED_ROWS", 500)
    monkeypatch.setattr(folds_module, "SUBSAMPLE_ROWS", 400)
    some = EnsembleSVC().fit(X, y).relevance_
    assert np.any(some != whole)
    np.testing.assert_allclose(some, whole, atol=0.15)


@pytest.mark.parametrize("relevance", [True, False])
def test_a_vote_of_some_rows_chooses_the_kernels_for_many(monkeypatch, relevance):
    X, y = noisy_columns(600)
    monkeypatch.setattr(folds_module, "MAX_SEARCHED_ROWS", 500)
    monkeypatch.setattr(folds_module, "SUBSAMPLE_ROWS", 400)
    model = EnsembleSVC(relevance=relevance).fit(X, y)
    assert len(np.unique(model.cv_table_[["view", "kernel", "gamma"]])) <= 8
    assert log_loss(NEW[1], model.predict_proba(NEW[0])) < 0.2


def losses_before_allowance(monkeypatch):
    """Log-losses of fits to come, as they are counted on held-out rows."""
    counted = []
    judge = fitted_vote.judge

    def noted(*arguments):
        counted.append(judge(*arguments).log_loss)
        return judge(*arguments)

    monkeypatch.setattr(fitted_vote, "judge", noted)
    return counted


@pytest.mark.parametrize("relevance", [True, False])
def test_the_held_out_loss_allows_for_the_labels_that_relevance_has_seen(relevance, monkeypatch):
    X, y = make_classification(150, 40, n_informative=3, flip_y=0.3, random_state=0)
    counted = losses_before_allowance(monkeypatch)
    monkeypatch.setattr(kernel_vote, "MOST_LEAK", 1.0)
    model = EnsembleSVC(relevance=relevance).fit(X, y)
    allowance = model.cv_log_loss_ - counted[0]
    if relevance:
        assert allowance == pytest.approx(0.9 * np.sqrt(40) / 150)
    else:
        assert 0 < allowance < 2 / 150


def test_splits_with_relevance_of_their_own_allow_only_for_the_choice(monkeypatch):
    X, y = make_classification(150, 40, n_informative=3, flip_y=0.3, random_state=0)
    counted = losses_before_allowance(monkeypatch)
    assert 0 < EnsembleSVC().fit(X, y).cv_log_loss_ - counted[0] < 2 / 150


def test_views_are_compressed():
    model = EnsembleSVC().fit(*NOISY)
    small = compress(model, n_support=60)
    assert np.abs(small.predict_proba(NEW[0]) - model.predict_proba(NEW[0])).mean() < 0.05


def test_a_pipeline_of_views_and_queries_of_one_row():
    model = make_pipeline(EnsembleSVC()).fit(*two_classes())
    one_by_one = np.vstack([model.predict_proba(QUERIES[[i]]) for i in range(5)])
    np.testing.assert_allclose(one_by_one, model.predict_proba(QUERIES[:5]), atol=1e-12)
