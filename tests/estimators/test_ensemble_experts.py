"""EnsembleSVC with experts: a mixture of one vote on a sample, and of trees of cells."""

import functools
import pickle
from dataclasses import replace

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
import skops.io
from problems.cells import experts, few_rows_are_many, log_loss, many_rows
from problems.ensemble import assert_sensible
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from hardmargin import EnsembleSVC, resources
from hardmargin.cells import experts as cells_experts
from hardmargin.cells import layer, training
from hardmargin.cells.experts import TABLE
from hardmargin.monitor import Monitor
from hardmargin.selection.plan import Plan
from hardmargin.selection.vote_memory import COPIES_OF_ROWS

CLASSES = pytest.mark.parametrize("n_classes", [2, 3])
QUERIES = np.random.default_rng(9).normal(size=(60, 4))

ATTRIBUTES_OF_ONE_MACHINE = [
    "dual_coef_",
    "support_vectors_",
    "intercept_",
    "gamma_",
    "kernel_weights_",
    "temperature_",
    "n_stages_",
    "n_iter_",
    "stop_reason_",
    "cv_table_",
]


@pytest.fixture(autouse=True)
def _few_rows_are_many(monkeypatch):
    few_rows_are_many(monkeypatch)


@functools.cache
def fitted(n_classes=2, **parameters):
    """A model that several tests share; they must not change it."""
    return experts(**parameters).fit(*many_rows(n_classes=n_classes))


def is_mixture(model):
    return "column" in model.experts_["kind"] or "direction" in model.experts_["kind"]


def assert_same(one, other, Q=QUERIES):
    np.testing.assert_array_equal(one.experts_, other.experts_)
    np.testing.assert_array_equal(one.predict_proba(Q), other.predict_proba(Q))
    assert one.cv_log_loss_ == other.cv_log_loss_


# --- predictions ----------------------------------------------------------------------------------


@CLASSES
@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
def test_methods_agree(n_classes, multi_class):
    model = fitted(n_classes, multi_class=multi_class)
    assert is_mixture(model)
    assert_sensible(model, QUERIES)
    np.testing.assert_allclose(
        model.predict_log_proba(QUERIES), np.log(model.predict_proba(QUERIES))
    )


@CLASSES
def test_new_rows_are_told_apart(n_classes):
    new, codes = many_rows(2000, n_classes, seed=1)
    assert fitted(n_classes).score(new, codes) > (0.8 if n_classes == 2 else 0.65)


@CLASSES
def test_rows_do_not_depend_on_the_others(n_classes):
    model = fitted(n_classes)
    every = model.predict_proba(QUERIES)
    np.testing.assert_allclose(model.predict_proba(QUERIES[7:9]), every[7:9], rtol=1e-12)


def test_labels_can_be_strings():
    X, y = many_rows(n_classes=3)
    names = np.array(["low", "middle", "top"], dtype=object)
    model = experts().fit(X, names[y])
    np.testing.assert_array_equal(model.predict(QUERIES), names[fitted(3).predict(QUERIES)])


@pytest.mark.parametrize("size", [1e10, 1e19, 1e40, 1e300])
@pytest.mark.parametrize("standardize", [True, False])
def test_rows_far_away_have_predictions(size, standardize):
    Q = size * np.array([[1, 1, 1, 1], [-1, -1, -1, -1], [1, -1, 1, -1]])
    assert_sensible(fitted(standardize=standardize), Q)


# --- what is reported -----------------------------------------------------------------------------


@pytest.mark.parametrize("n_trees", [1, 2, 4])
def test_the_table_shows_all_experts(n_trees):
    table = fitted(n_trees=n_trees).experts_
    assert table.dtype == TABLE
    assert len(table) == n_trees + 1
    assert table["kind"][-1] == "whole"
    assert set(table["kind"][:-1]) <= {"column", "direction"}
    assert (table["rows"][:-1] == 700).all()
    assert table["rows"][-1] <= 300
    assert (table["cells"][:-1] >= 700 / 150).all()
    assert (table["weight"] >= 0).all()


@CLASSES
def test_no_expert_alone_is_better(n_classes):
    model = fitted(n_classes, n_trees=2)
    assert model.cv_log_loss_ <= model.experts_["log_loss"].min() + 1e-3


def test_rows_that_have_found_cuts_do_not_judge(monkeypatch):
    found, judges = [], []
    find_cuts, logs_of = cells_experts.find_cuts, cells_experts._Judge.logs

    def watched(X, *rest, **keywords):
        found.append(np.asarray(X))
        return find_cuts(X, *rest, **keywords)

    def logs(self, at, layers):
        rows, logs = logs_of(self, at, layers)
        judges.append(self.rows.X[rows])
        return rows, logs

    monkeypatch.setattr(cells_experts, "find_cuts", watched)
    monkeypatch.setattr(cells_experts._Judge, "logs", logs)
    experts().fit(*many_rows())
    assert len(found) > 0
    assert len(judges[-1]) >= 100
    cutters = {row.tobytes() for X in found for row in X}
    assert not any(row.tobytes() in cutters for X in judges for row in np.asarray(X))


def test_standard_errors_of_the_promise():
    X, y = many_rows()
    model = experts().fit(X, y)
    n_judges = 700 // 2
    share = model.cv_error_
    assert model.cv_error_std_error_ == pytest.approx(
        (share * (1 - share) / n_judges) ** 0.5, rel=0.2
    )
    assert 0 < model.cv_log_loss_std_error_ < 0.1
    one = EnsembleSVC(random_state=0).fit(X[:200], y[:200])
    assert 0 < one.cv_log_loss_std_error_ < 0.1
    assert 0 < one.cv_error_std_error_ < 0.1


@pytest.mark.parametrize("kind", ["column", "direction"])
def test_trees_on_noise_promise_no_more_than_new_rows_get(monkeypatch, kind):
    monkeypatch.setattr(cells_experts, "KINDS", (kind,))
    apart = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(1700, 10)), rng.integers(0, 2, 1700)
        model = experts(random_state=seed).fit(X[:700], y[:700])
        apart.append(model.cv_log_loss_ - log_loss(model, X[700:], y[700:]))
    assert np.mean(apart) > -0.02


def test_few_rows_have_one_expert():
    X, y = many_rows(200)
    model = experts().fit(X, y)
    assert model.experts_.tolist() == [("whole", 200, 1, 1.0, model.cv_log_loss_)]


@CLASSES
def test_the_held_out_loss_is_that_of_new_rows(n_classes):
    new = many_rows(3000, n_classes, seed=1)
    losses = []
    for seed in range(2, 5):
        model = experts(max_cell_rows=250).fit(*many_rows(1000, n_classes, seed=seed))
        losses.append((model.cv_log_loss_, log_loss(model, *new)))
    held_out, of_new = np.mean(losses, axis=0)
    assert held_out == pytest.approx(of_new, abs=0.04)


@CLASSES
def test_the_held_out_error_is_that_of_new_rows(n_classes):
    new, codes = many_rows(3000, n_classes, seed=1)
    model = experts(max_cell_rows=250).fit(*many_rows(1000, n_classes, seed=2))
    assert model.cv_error_ == pytest.approx(1 - model.score(new, codes), abs=0.06)


@pytest.mark.once_per("seed")
@CLASSES
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_labels_of_noise_cannot_be_learned(n_classes, seed):
    random = np.random.default_rng(seed)
    X, y = random.normal(size=(1500, 3)), random.integers(n_classes, size=1500)
    model = experts(max_cell_rows=500).fit(X, y)
    assert model.cv_log_loss_ == pytest.approx(np.log(n_classes), abs=0.03)
    assert_sensible(model, X)


def test_a_mixture_in_which_nothing_helps_knows_nothing(monkeypatch):
    monkeypatch.setattr(
        "hardmargin.cells.experts.mixture_weights",
        lambda logs, codes, weights, costs: (np.zeros(len(logs)), 0.0),
    )
    model = experts().fit(*many_rows())
    np.testing.assert_allclose(model.predict_proba(QUERIES), 0.5)
    assert len(model.support_) > 0


@CLASSES
def test_support_rows_are_counted_by_class(n_classes):
    _, y = many_rows(n_classes=n_classes)
    model = fitted(n_classes)
    assert (np.diff(model.support_) > 0).all()
    np.testing.assert_array_equal(model.n_support_, np.bincount(y[model.support_]))


def test_relevance_is_that_of_the_columns():
    relevance = fitted().relevance_
    assert relevance.shape == (4,)
    assert relevance.argmin() == 3  # it has nothing to do with the classes
    np.testing.assert_allclose(fitted().feature_importances_.sum(), 1.0)


@pytest.mark.parametrize("name", ATTRIBUTES_OF_ONE_MACHINE)
def test_attributes_of_one_machine_say_why_they_are_missing(name):
    model = fitted()
    assert not hasattr(model, name)
    with pytest.raises(AttributeError, match=rf"no {name}: .* mixture of experts .* experts_"):
        getattr(model, name)


def test_other_attributes_are_missing_as_usual():
    with pytest.raises(AttributeError, match="no attribute 'nonsense_'"):
        _ = fitted().nonsense_
    with pytest.raises(AttributeError, match="kernel='linear' only"):
        _ = fitted().coef_


def test_the_docs_name_all_attributes():
    public = [k for k in vars(fitted()) if k.endswith("_") and not k.startswith("_")]
    assert [k for k in public if k not in EnsembleSVC.__doc__] == []


# --- copies and other fits ------------------------------------------------------------------------


def by_pickle(model, _):
    return pickle.loads(pickle.dumps(model))


def by_joblib(model, folder):
    joblib.dump(model, folder / "model.joblib")
    return joblib.load(folder / "model.joblib")


def by_skops(model, _):
    saved = skops.io.dumps(model)
    return skops.io.loads(saved, trusted=skops.io.get_untrusted_types(data=saved))


@CLASSES
@pytest.mark.parametrize("saved", [by_pickle, by_joblib, by_skops])
def test_saved_models_predict_the_same(saved, n_classes, tmp_path):
    model = fitted(n_classes)
    assert_same(saved(model, tmp_path), model)


@pytest.mark.parametrize("saved", [by_pickle, by_skops])
def test_saved_models_of_sparse_rows_predict_the_same(saved, tmp_path):
    X, y = many_rows()
    rows = sp.csr_array(np.maximum(X, 0))
    model = experts().fit(rows, y)
    assert_same(saved(model, tmp_path), model, rows[:50])


def test_a_clone_has_the_parameters_and_no_fit():
    model = experts(n_trees=3, max_cell_rows=77)
    assert clone(model).get_params() == model.get_params()
    assert not hasattr(clone(fitted()), "experts_")


def test_a_fit_of_few_rows_removes_all_traces_of_experts():
    X, y = many_rows(200)
    again = experts().fit(*many_rows()).fit(X, y)
    once = experts().fit(X, y)
    assert vars(again).keys() == vars(once).keys()
    np.testing.assert_array_equal(again.predict_proba(QUERIES), once.predict_proba(QUERIES))


def test_a_fit_of_many_rows_removes_all_traces_of_one_machine():
    again = experts().fit(*many_rows(200)).fit(*many_rows())
    assert vars(again).keys() == vars(fitted()).keys()
    assert_same(again, fitted())


@pytest.mark.parametrize(
    "where",
    [
        "cells.training.fit_experts",
        "selection.plan.find_row_scaling",
        "selection.fitted_vote.make_folds",
    ],
)
def test_a_fit_that_is_interrupted_leaves_the_estimator_as_it_was(where, monkeypatch):
    model = experts().fit(*many_rows())
    before = dict(vars(model))

    def interrupt(*arguments, **keywords):
        raise KeyboardInterrupt

    monkeypatch.setattr(f"hardmargin.{where}", interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.fit(*many_rows(n_classes=3))
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[k] is before[k] for k in before)


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("cell", [0, 3])
def test_cells_that_are_interrupted_leave_the_estimator_as_it_was(n_jobs, cell, monkeypatch):
    model = experts(n_jobs=n_jobs)
    learn = layer.learn

    def interrupt(rows, number, *rest):
        if number == cell:
            raise KeyboardInterrupt
        return learn(rows, number, *rest)

    monkeypatch.setattr(layer, "learn", interrupt)
    before = dict(vars(model))
    with pytest.raises(KeyboardInterrupt):
        model.fit(*many_rows())
    assert vars(model) == before


# --- the same model -------------------------------------------------------------------------------


@CLASSES
def test_threads_change_nothing(n_classes):
    model = experts(n_jobs=2).fit(*many_rows(n_classes=n_classes))
    assert_same(model, fitted(n_classes))


@pytest.mark.parametrize("random_state", [None, 3])
def test_the_seed_makes_the_model(random_state):
    one, same = (experts(random_state=random_state).fit(*many_rows()) for _ in range(2))
    assert_same(one, same)


def test_another_seed_makes_another_model():
    other = experts(random_state=1).fit(*many_rows())
    assert not np.array_equal(other.predict_proba(QUERIES), fitted().predict_proba(QUERIES))


def test_a_random_state_moves_on():
    random = np.random.RandomState(0)
    losses = [experts(random_state=random).fit(*many_rows()).cv_log_loss_ for _ in range(2)]
    assert losses[0] != losses[1]


def test_a_fit_leaves_the_input():
    X, y = many_rows()
    rows, labels, weights = X.copy(), y.copy(), np.ones(700)
    experts().fit(rows, labels, sample_weight=weights).predict(rows)
    np.testing.assert_array_equal(rows, X)
    np.testing.assert_array_equal(labels, y)
    assert (weights == 1).all()


# --- scikit-learn's tools -------------------------------------------------------------------------


def test_it_can_be_searched():
    search = GridSearchCV(experts(), {"max_cell_rows": [100, 200]}, cv=2).fit(*many_rows())
    assert is_mixture(search.best_estimator_)
    assert search.best_score_ > 0.8


def test_it_can_be_validated():
    scores = cross_val_score(experts(), *many_rows(), cv=2, scoring="neg_log_loss")
    assert scores.min() > -0.55


def test_it_can_end_a_pipeline():
    pipeline = make_pipeline(StandardScaler(), experts()).fit(*many_rows())
    assert is_mixture(pipeline[-1])
    assert pipeline.score(*many_rows(1000, seed=1)) > 0.8


# --- parameters -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "parameters",
    [
        {"kernel": "rbf"},
        {"kernel": "laplacian"},
        {"standardize": False},
        {"relevance": False},
        {"fit_intercept": False},
        {"views": "rank"},
        {"dtype": "float64"},
        {"rank": 50},
        {"rank": 0.1},
        {"cv": 3},
        {"cv": None},
        {"n_trees": "auto"},
        {"n_trees": 5},
        {"max_cell_rows": 50},
    ],
    ids=str,
)
def test_parameters_give_a_good_mixture(parameters):
    model = fitted(3, **parameters)
    assert is_mixture(model)
    assert_sensible(model, QUERIES)
    new, codes = many_rows(1000, 3, seed=1)
    assert model.score(new, codes) > 0.6


@pytest.mark.parametrize(
    "parameters",
    [
        {"max_cell_rows": None},
        {"rank": None},
        {"gamma": 0.5},
        {"n_stages": 5},
        {"kernel": "linear"},
        {"kernel": "poly"},
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore:The rank of")
def test_parameters_that_ask_for_one_machine(parameters):
    model = fitted(**parameters)
    assert model.experts_["kind"].tolist() == ["whole"]
    assert hasattr(model, "dual_coef_")


@pytest.mark.parametrize("max_cell_rows", [0, 49, 100.5, "many"])
def test_cells_of_too_few_rows_are_refused(max_cell_rows):
    with pytest.raises(ValueError, match="max_cell_rows"):
        experts(max_cell_rows=max_cell_rows).fit(*many_rows())


@pytest.mark.parametrize("n_trees", [0, 1.5, "many"])
def test_odd_numbers_of_trees_are_refused(n_trees):
    with pytest.raises(ValueError, match="n_trees"):
        experts(n_trees=n_trees).fit(*many_rows())


def test_a_rank_is_that_of_the_machine_on_a_sample():
    assert fitted(rank=50).experts_["rows"][-1] == 700


def test_a_limit_on_stages_holds_in_cells():
    with pytest.warns(ConvergenceWarning, match="max_stages=1"):
        model = experts(max_stages=1).fit(*many_rows())
    of_tree = model.experts_["log_loss"][0]
    assert of_tree > fitted().experts_["log_loss"][0] + 0.02


def test_little_memory_warns(monkeypatch):
    monkeypatch.setattr(training, "BYTES_PER_ROW", 0)
    monkeypatch.setattr(resources, "BESIDE_BYTES", 0)
    X, y = many_rows()
    copies = 8 * COPIES_OF_ROWS * 100 * X.shape[1]
    with (
        pytest.warns(UserWarning, match="distances between only 100 rows,.* 6 MB are enough"),
        pytest.warns(UserWarning, match="no room for a kernel matrix of 100 rows for every split"),
        pytest.warns(UserWarning, match="100 rows, which need 0 MB: 2 of 4 families of kernels"),
    ):
        model = experts(memory_limit=11 * 100**2 + copies + 100).fit(X, y)
    assert model.experts_["rows"][-1] == 100
    assert_sensible(model, QUERIES)


# --- time -----------------------------------------------------------------------------------------


@CLASSES
def test_no_time_at_all_leaves_the_machine_on_a_sample(n_classes):
    model = experts(max_time=1e-9)
    with pytest.warns(ConvergenceWarning, match="max_time"):
        model.fit(*many_rows(n_classes=n_classes))
    assert model.experts_["kind"].tolist() == ["whole"]
    assert_sensible(model, QUERIES)


def test_time_that_ends_among_cells_warns(monkeypatch):
    learn, seen = layer.learn, []

    def learn_one(*arguments):
        seen.append(None)
        return learn(*arguments)

    def seconds_left(_):
        return 10.0 if len(seen) < 6 else 0.0

    monkeypatch.setattr(Plan, "growth", lambda *_: None)  # no smaller fits before this one
    monkeypatch.setattr(layer, "learn", learn_one)
    monkeypatch.setattr(Monitor, "seconds_left", property(seconds_left))
    with pytest.warns(ConvergenceWarning, match=r"max_time; the model is that of \d of \d+ cells"):
        model = experts(max_time=1000, n_trees=3).fit(*many_rows())
    assert_sensible(model, QUERIES)
    assert model.n_samples_fit_ < len(many_rows()[0])


def test_mixtures_of_earlier_versions_predict_the_same():
    """They kept scaling and weights of classes beside the experts."""
    model = experts(class_weight="balanced").fit(*many_rows())
    own = model._experts_
    before = replace(own, scaling=None, class_weights=None)
    state = {**model.__getstate__(), "_experts_": before, "_class_weights_": own.class_weights}
    loaded = EnsembleSVC.__new__(EnsembleSVC)
    loaded.__setstate__(state)
    np.testing.assert_array_equal(loaded.predict_proba(QUERIES), model.predict_proba(QUERIES))


def test_all_rows_count_where_there_was_time():
    assert fitted().n_samples_fit_ == len(many_rows()[0])


def test_enough_time_changes_nothing():
    assert_same(fitted(max_time=1000), fitted())


@pytest.mark.filterwarnings("ignore:Training stopped at max_time")
@pytest.mark.parametrize("is_over", [False, True])
def test_a_larger_machine_that_was_stopped_in_time_must_be_better(monkeypatch, is_over):
    fit_sample, sizes = training.Here.fit_sample, []

    def worse_and_worse(self, sample, *rest):
        voted = fit_sample(self, sample, *rest)
        sizes.append(len(sample.codes))
        worse = voted.judged._replace(probabilities=1 - voted.judged.probabilities)
        return voted if len(sizes) == 1 else replace(voted, judged=worse)

    def seconds_left(_):
        return 0.0 if is_over and len(sizes) == 2 else 10.0

    monkeypatch.setattr(Plan, "growth", lambda *_: None)  # no smaller fits before this one
    # Rows that were held out judge, too: only they are worse.
    monkeypatch.setattr("hardmargin.cells.experts.LEAST_JUDGES", 1_000)
    monkeypatch.setattr(training.Here, "fit_sample", worse_and_worse)
    monkeypatch.setattr("hardmargin.cells.experts._Judge.needs_whole", lambda *_: True)
    monkeypatch.setattr(Monitor, "seconds_left", property(seconds_left))
    model = experts(max_time=1000, n_trees=1).fit(*many_rows())
    assert sizes == [150, 300]
    assert model.experts_["rows"][-1] == (150 if is_over else 300)
