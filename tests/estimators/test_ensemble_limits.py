"""EnsembleSVC: the same model every time, and limits on time, stages and memory."""

import pickle
import re
import warnings

import numpy as np
import pytest
from problems.ensemble import (
    CLASSES,
    QUERIES,
    VARIANTS,
    assert_same_model,
    assert_sensible,
    fit_quietly,
    fitted,
    rows_of,
    three_classes,
    two_classes,
)
from sklearn.base import clone
from sklearn.datasets import (
    load_breast_cancer,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import (
    GridSearchCV,
    cross_val_score,
)

from hardmargin import EnsembleSVC, resources
from hardmargin.estimators import ensemble
from hardmargin.selection import fitted_vote, kernel_vote, plan, vote_memory

# --- the same model -------------------------------------------------------------------------------


@CLASSES
@pytest.mark.parametrize("variant", ["default", "float32", "linear"])
def test_threads_change_nothing(multi_class, variant):
    X, y = rows_of(multi_class)
    model = clone(fitted(multi_class, **VARIANTS[variant])).set_params(n_jobs=2)
    assert_same_model(model.fit(X, y), fitted(multi_class, **VARIANTS[variant]))


def test_threads_change_nothing_at_low_rank():
    model = clone(fitted(rank=30)).set_params(n_jobs=2).fit(*two_classes())
    np.testing.assert_allclose(
        model.predict_proba(QUERIES), fitted(rank=30).predict_proba(QUERIES), atol=1e-3
    )


@CLASSES
def test_the_seed_makes_the_model(multi_class):
    X, y = rows_of(multi_class)
    assert_same_model(clone(fitted(multi_class)).fit(X, y), fitted(multi_class))
    other = clone(fitted(multi_class)).set_params(random_state=1).fit(X, y)
    assert (other.predict_proba(QUERIES) != fitted(multi_class).predict_proba(QUERIES)).any()


def test_a_random_state_moves_on():
    random = np.random.RandomState(0)
    first = EnsembleSVC(random_state=random).fit(*two_classes())
    second = EnsembleSVC(random_state=random).fit(*two_classes())
    assert first.cv_log_loss_ != second.cv_log_loss_


@CLASSES
def test_copies_decide_alike(multi_class):
    model = fitted(multi_class)
    assert_same_model(pickle.loads(pickle.dumps(model)), model)


def test_a_clone_has_the_parameters_and_no_fit():
    model = EnsembleSVC(7, gamma=0.7, cv=3, rank=3, max_stages=9)
    assert clone(model).get_params() == model.get_params()
    assert not hasattr(clone(fitted()), "classes_")


def test_labels_of_any_type():
    X, y = three_classes()
    names = np.array(["low", "middle", "top"], dtype=object)[y]
    model = EnsembleSVC(random_state=0).fit(X, names)
    assert model.classes_.tolist() == ["low", "middle", "top"]
    np.testing.assert_array_equal(
        model.predict(QUERIES), model.classes_[fitted("ovo").predict(QUERIES)]
    )


def test_the_scale_of_the_features_changes_nothing():
    X, y = two_classes()
    scale, shift = [1e-6, 1.0, 1e6, 3.0], [5.0, 0.0, -1e6, 1.0]
    model = EnsembleSVC(n_stages=10)  # later stages amplify rounding
    plain, scaled = (clone(model).fit(Z, y) for Z in (X, X * scale + shift))
    np.testing.assert_allclose(
        scaled.predict_proba(QUERIES * scale + shift), plain.predict_proba(QUERIES), atol=1e-6
    )


def test_it_can_be_searched_and_validated():
    X, y = two_classes()
    search = GridSearchCV(EnsembleSVC(random_state=0), {"fit_intercept": [True, False]}, cv=3)
    assert search.fit(X, y).best_score_ > 0.7
    assert cross_val_score(EnsembleSVC(random_state=0), X, y, cv=3, scoring="roc_auc").min() > 0.8


# --- seeds ----------------------------------------------------------------------------------------


def test_fits_without_a_seed_are_the_same():
    first, second = (EnsembleSVC().fit(*two_classes()).predict_proba(QUERIES) for _ in range(2))
    np.testing.assert_array_equal(first, second)


def test_a_seed_shuffles_the_folds():
    first, second = (
        EnsembleSVC(random_state=seed).fit(*two_classes()).predict_proba(QUERIES) for seed in (1, 2)
    )
    assert not np.array_equal(first, second)


def test_several_shuffles_make_the_seed_matter_less(monkeypatch):
    X, y = load_breast_cancer(return_X_y=True)

    def spread():
        fits = (EnsembleSVC(random_state=seed).fit(X[:150], y[:150]) for seed in range(6))
        return np.std([model.predict_proba(X[150:]) for model in fits], axis=0).mean()

    usual = spread()
    monkeypatch.setattr(fitted_vote, "N_SHUFFLES", 1)
    assert usual < 0.8 * spread()


# --- limits ---------------------------------------------------------------------------------------


@CLASSES
def test_the_limit_on_time_keeps_a_model(multi_class):
    X, y = rows_of(multi_class)
    model = EnsembleSVC(max_time=1e-9, multi_class=multi_class or "ovo", random_state=0)
    with pytest.warns(ConvergenceWarning, match="max_time"):
        model.fit(X, y)
    assert_sensible(model, QUERIES)
    assert np.isfinite([model.cv_error_, model.cv_log_loss_]).all()


def test_enough_time_changes_nothing():
    assert_same_model(fitted(max_time=1000), fitted())


@CLASSES
def test_the_limit_on_stages_keeps_a_model(multi_class):
    X, y = rows_of(multi_class)
    model = EnsembleSVC(max_stages=3, multi_class=multi_class or "ovo", random_state=0)
    with pytest.warns(ConvergenceWarning, match="max_stages"):
        model.fit(X, y)
    assert_sensible(model, QUERIES)
    assert np.all(model.n_stages_ == 3)


def test_an_ordinary_fit_does_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        EnsembleSVC().fit(*two_classes())


def test_the_memory_asks_for_low_rank():
    X, y = two_classes(400)
    model = fit_quietly(EnsembleSVC(memory_limit="1MB", random_state=0), X, y)
    assert model.rank_ is not None
    assert model.rank_ < 400
    assert len(model.support_) < 400
    assert_sensible(model, QUERIES)
    assert model.score(X, y) > 0.7


def test_memory_for_two_families_of_kernels_leaves_the_others_out(monkeypatch):
    monkeypatch.setattr(resources, "BESIDE_BYTES", 0)
    monkeypatch.setattr(kernel_vote, "MOST_LEAK", 1.0)
    X, y = two_classes(400)
    copies = 8 * vote_memory.COPIES_OF_ROWS * X.size
    with pytest.warns(UserWarning, match="2 of 4 families of kernels.*Raise memory_limit"):
        model = EnsembleSVC(memory_limit=11 * 400**2 + copies, random_state=0).fit(X, y)
    table = model.kernel_weights_
    assert len(set(zip(table["view"], table["kernel"], strict=True))) <= 2
    assert model.rank_ is None


@pytest.mark.parametrize(("n_matrices", "n_judging"), [(2, 0), (6, 5), (4, 3), (16, 15)])
def test_as_many_splits_judge_as_memory_has_matrices_for(n_matrices, n_judging, monkeypatch):
    monkeypatch.setattr(resources, "BESIDE_BYTES", 0)
    X, y = two_classes(400)
    copies = 8 * vote_memory.COPIES_OF_ROWS * X.size
    distances = (11 + 8) * 400**2
    says = f"only {n_judging} of 15 splits judge" if n_judging else "not scaled by their relevance"
    model = EnsembleSVC(memory_limit=copies + distances + n_matrices * 4 * 400**2, random_state=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y)
    told = [str(w.message) for w in caught if re.search(f"{says}.* are enough", str(w.message))]
    assert len(told) == (n_judging < 5)
    assert model.rank_ is None
    assert_sensible(model, QUERIES)


def test_one_machine_of_many_rows_has_low_rank(monkeypatch):
    monkeypatch.setattr(plan, "MAX_STORED_ROWS", 100)
    X, y = two_classes(400)
    model = fit_quietly(EnsembleSVC(max_cell_rows=None, random_state=0), X, y)
    assert model.rank_ <= len(model.support_) == 250
    assert_sensible(model, QUERIES)
    assert model.score(X, y) > 0.8


def test_many_rows_are_exact_where_rank_says_so(monkeypatch):
    monkeypatch.setattr(plan, "MAX_STORED_ROWS", 100)
    model = EnsembleSVC(rank=None, random_state=0).fit(*two_classes())
    assert_same_model(model, fitted())


def test_a_rank_that_limits_the_accuracy_says_so(monkeypatch):
    monkeypatch.setattr(plan, "MAX_STORED_ROWS", 100)
    monkeypatch.setattr("hardmargin.selection.low_rank_vote.RANKS", (4, 8, 16))
    X, y = two_classes(400)
    with pytest.warns(UserWarning, match=r"rank of 16 limits.*max_cell_rows"):
        EnsembleSVC(max_cell_rows=None, random_state=0).fit(X, y)


def test_machines_one_by_one_are_those_together(monkeypatch):
    monkeypatch.setattr(kernel_vote, "MAX_SHARED_ROWS", 100)
    # Relevance would carry the rounding of single machines to all of them.
    model = EnsembleSVC(random_state=0, relevance=False).fit(*three_classes())
    together = fitted("ovo", relevance=False)
    np.testing.assert_allclose(
        model.predict_proba(QUERIES), together.predict_proba(QUERIES), atol=1e-3
    )


@pytest.mark.parametrize("landmarks", ["random", "kmeans++", "cholesky", "greedy"])
@CLASSES
def test_landmarks_of_every_kind(landmarks, multi_class):
    X, y = rows_of(multi_class)
    model = fitted(multi_class, rank=40, landmarks=landmarks)
    assert_sensible(model, QUERIES)
    assert model.rank_ <= 40
    assert len(model.support_) <= 40
    assert model.score(X, y) > 0.7


def test_large_models_are_close_to_exact_ones(monkeypatch):
    monkeypatch.setattr(vote_memory, "MAX_FLOAT64_VOTE_ROWS", 10)
    monkeypatch.setattr(vote_memory, "MAX_FLOAT32_VOTE_ROWS", 20)
    model = EnsembleSVC(random_state=0).fit(*two_classes())
    exact = fitted()
    assert model.cv_log_loss_ == pytest.approx(exact.cv_log_loss_, abs=0.02)
    assert np.abs(model.predict_proba(QUERIES) - exact.predict_proba(QUERIES)).max() < 0.1


@pytest.mark.parametrize(
    ("module", "interrupted"),
    [(kernel_vote, "matrix_votes"), (fitted_vote, "make_folds"), (kernel_vote, "view_kernels")],
)
def test_an_interrupt_leaves_the_estimator_as_it_was(module, interrupted, monkeypatch):
    model = EnsembleSVC(random_state=0).fit(*two_classes())
    before = dict(vars(model))

    def interrupt(*arguments, **keywords):
        raise KeyboardInterrupt

    monkeypatch.setattr(module, interrupted, interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.fit(*three_classes())
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[k] is before[k] for k in before)


def test_a_fit_leaves_the_input():
    X, y = two_classes()
    rows, labels, weights = X.copy(), y.copy(), np.ones(150)
    EnsembleSVC(random_state=0).fit(rows, labels, sample_weight=weights).predict(rows)
    np.testing.assert_array_equal(rows, X)
    np.testing.assert_array_equal(labels, y)
    assert (weights == 1).all()


def test_docs_name_all_attributes():
    public = [k for k in vars(fitted()) if k.endswith("_") and not k.startswith("_")]
    assert [k for k in public if k not in ensemble.EnsembleSVC.__doc__] == []
