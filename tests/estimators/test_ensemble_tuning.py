"""EnsembleSVC with nothing to tune: what users see of the choices inside fit."""

import functools
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import (
    load_breast_cancer,
    load_iris,
    load_wine,
    make_classification,
    make_moons,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import log_loss
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    RepeatedStratifiedKFold,
    StratifiedKFold,
    TimeSeriesSplit,
    cross_val_score,
    cross_validate,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from hardmargin import EnsembleSVC
from hardmargin.estimators import ensemble
from hardmargin.estimators._base import tuned

MULTI_CLASS = pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
CLASSES = pytest.mark.parametrize("multi_class", [None, "ovo", "ovr"])


@functools.cache
def two_classes(n=150, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    return X, (X[:, 0] * X[:, 1] + 0.5 * X[:, 2] + 0.4 * rng.normal(size=n) > 0).astype(int)


@functools.cache
def three_classes(n=150):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, 4))
    score = X[:, 0] + np.sin(2 * X[:, 1]) + 0.4 * rng.normal(size=n)
    return X, np.searchsorted(np.quantile(score, [0.3, 0.7]), score)


def rows_of(multi_class):
    return two_classes() if multi_class is None else three_classes()


QUERIES = np.random.default_rng(9).normal(size=(41, 4))


@functools.cache
def fitted(multi_class=None, **parameters):
    """A model that several tests look at: of two classes, or of three."""
    model = EnsembleSVC(multi_class=multi_class or "ovo", random_state=0, **parameters)
    return model.fit(*rows_of(multi_class))


def fit_quietly(model, *arguments, **keywords):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return model.fit(*arguments, **keywords)


def assert_sensible(model, X):
    """Finite everywhere, and all methods of one mind."""
    decisions, predicted = model.decision_function(X), model.predict(X)
    assert np.isfinite(decisions).all()
    winners = (decisions >= 0).astype(int) if decisions.ndim == 1 else decisions.argmax(axis=1)
    np.testing.assert_array_equal(predicted, model.classes_[winners])
    if hasattr(model, "predict_proba"):
        probabilities = model.predict_proba(X)
        assert ((probabilities >= 0) & (probabilities <= 1)).all()
        np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, rtol=1e-12)
        largest = probabilities[np.arange(len(winners)), winners]
        np.testing.assert_array_equal(largest, probabilities.max(axis=1))


def given_splits(y, n_splits=4, seed=0):
    return list(StratifiedKFold(n_splits, shuffle=True, random_state=seed).split(y, y))


# --- how good it is ------------------------------------------------------------------------------

DATA = {
    "cancer": (load_breast_cancer, 0.94),
    "iris": (load_iris, 0.9),
    "wine": (load_wine, 0.93),
}


@pytest.mark.parametrize("name", DATA)
def test_the_default_is_as_good_as_a_searched_svc(name):
    load, least = DATA[name]
    X, y = load(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    train, test = order[: len(y) // 2], order[len(y) // 2 :]
    grid = {"svc__C": [0.1, 1, 10, 100], "svc__gamma": [0.003, 0.01, 0.03, 0.1, 0.3]}
    rival = GridSearchCV(make_pipeline(StandardScaler(), SVC()), grid).fit(X[train], y[train])
    score = EnsembleSVC(random_state=0).fit(X[train], y[train]).score(X[test], y[test])
    assert score >= least
    assert score >= rival.score(X[test], y[test]) - 0.03


def test_moons_are_told_apart():
    X, y = make_moons(600, noise=0.2, random_state=0)
    model = EnsembleSVC(random_state=0).fit(X[:200], y[:200])
    assert model.score(X[200:], y[200:]) > 0.94


@pytest.mark.parametrize("seed", range(3))
def test_the_held_out_error_is_close_to_the_error(seed):
    X, y = make_classification(1400, 10, n_informative=5, flip_y=0.1, random_state=seed)
    model = EnsembleSVC(random_state=0).fit(X[:400], y[:400])
    error = 1 - model.score(X[400:], y[400:])
    assert model.cv_error_ == pytest.approx(error, abs=0.05)
    loss = log_loss(y[400:], model.predict_proba(X[400:]))
    assert model.cv_log_loss_ == pytest.approx(loss, abs=0.1)


@MULTI_CLASS
def test_the_held_out_error_of_many_classes(multi_class):
    X, y = make_classification(
        2400, 10, n_informative=6, n_classes=4, flip_y=0.05, class_sep=1.5, random_state=0
    )
    model = EnsembleSVC(multi_class=multi_class, random_state=0).fit(X[:400], y[:400])
    assert model.cv_error_ == pytest.approx(1 - model.score(X[400:], y[400:]), abs=0.06)
    loss = log_loss(y[400:], model.predict_proba(X[400:]))
    assert model.cv_log_loss_ == pytest.approx(loss, abs=0.12)


def test_probabilities_are_frequencies():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(3000, 2))
    chance = 1 / (1 + np.exp(-2 * X[:, 0]))
    y = (rng.uniform(size=3000) < chance).astype(int)
    model = EnsembleSVC(random_state=0).fit(X[:600], y[:600])
    assert np.abs(model.predict_proba(X[600:])[:, 1] - chance[600:]).mean() < 0.06


# --- decisions and probabilities -----------------------------------------------------------------

VARIANTS = {
    "default": {},
    "balanced": {"class_weight": "balanced"},
    "low rank": {"rank": 30},
    "float32": {"dtype": "float32"},
    "paper's loss": {"loss": "exponential"},
    "no bias": {"fit_intercept": False},
    "plain features": {"standardize": False},
    "linear": {"kernel": "linear"},
    "laplacian": {"kernel": "laplacian"},
    "poly": {"kernel": "poly", "coef0": 1.0},
    "sigmoid": {"kernel": "sigmoid"},
    "gamma": {"gamma": 0.3},
    "scale": {"gamma": "scale"},
    "fixed stages": {"n_stages": 10},
    "one stage": {"n_stages": 1},
    "all fixed": {"n_stages": 10, "kernel": "rbf", "gamma": 0.3},
    "two folds": {"cv": 2},
}
EVERY_VARIANT = pytest.mark.parametrize("variant", VARIANTS)


@CLASSES
@EVERY_VARIANT
def test_decisions_probabilities_and_predictions_agree(multi_class, variant):
    model = fitted(multi_class, **VARIANTS[variant])
    assert_sensible(model, QUERIES)
    assert hasattr(model, "predict_proba")


@CLASSES
@EVERY_VARIANT
def test_all_variants_learn(multi_class, variant):
    X, y = rows_of(multi_class)
    model = fitted(multi_class, **VARIANTS[variant])
    hard = variant in ("linear", "sigmoid", "one stage", "no bias")
    assert model.score(X, y) > (0.5 if hard else 0.65)


@EVERY_VARIANT
def test_the_probability_is_the_sigmoid_of_the_decision(variant):
    model = fitted(**VARIANTS[variant])
    expected = 1 / (1 + np.exp(-2 * model.temperature_ * model.decision_function(QUERIES)))
    np.testing.assert_allclose(model.predict_proba(QUERIES)[:, 1], expected, rtol=1e-9)


def test_two_classes_decide_at_zero():
    model = fitted()
    decisions = model.decision_function(QUERIES)
    assert decisions.shape == (41,)
    np.testing.assert_array_equal(model.predict_proba(QUERIES)[:, 1] >= 0.5, decisions >= 0)


def test_one_against_one_decides_by_sums_of_probabilities():
    decisions = fitted("ovo").decision_function(QUERIES)
    np.testing.assert_allclose(decisions.sum(axis=1), 3.0)  # three pairs
    assert ((decisions >= 0) & (decisions <= 2)).all()


def test_one_against_the_rest_decides_by_probabilities():
    decisions = fitted("ovr").decision_function(QUERIES)
    assert ((decisions >= 0) & (decisions <= 1)).all()


def test_the_decision_is_the_sum_of_the_kernels():
    model = fitted(standardize=False)
    assert len(model.kernel_weights_) > 1
    values = [
        np.exp(-gamma * ((QUERIES[:, None] - model.support_vectors_) ** 2).sum(axis=2))
        if name == "rbf"
        else np.exp(-gamma * np.abs(QUERIES[:, None] - model.support_vectors_).sum(axis=2))
        for _, name, gamma, _ in model.kernel_weights_
    ]
    np.testing.assert_allclose(
        np.hstack(values) @ model.dual_coef_[0] + model.intercept_,
        model.decision_function(QUERIES),
        atol=1e-4,  # six digits of gamma
    )


# --- attributes ----------------------------------------------------------------------------------


def test_attributes_of_two_classes():
    model = fitted()
    shares = model.kernel_weights_["share"]
    assert shares.sum() == pytest.approx(1)
    assert (np.diff(shares) <= 0).all()
    assert (shares >= 0.02).all()
    assert len(np.unique(model.cv_table_[["kernel", "gamma"]])) == 8
    assert 0 < model.cv_error_ < 0.5
    assert 0 < model.cv_log_loss_ < 0.7
    assert isinstance(model.temperature_, float)
    assert isinstance(model.n_stages_, int)
    assert model.n_iter_ == model.n_stages_
    assert model.stop_reason_ == "patience"
    assert model.rank_ is None
    assert model.gamma_ == pytest.approx(model.kernel_weights_["gamma"][0], rel=1e-5)
    n = len(model.kernel_weights_)
    assert model.support_.shape == (150,)
    assert model.dual_coef_.shape == (1, 150 * n)
    assert model.intercept_.shape == (1,)
    assert model.n_support_.sum() == 150


@MULTI_CLASS
def test_attributes_of_many_classes(multi_class):
    model = fitted(multi_class)
    table = model.kernel_weights_
    np.testing.assert_allclose(np.bincount(table["machine"], table["share"]), np.ones(3))
    assert set(model.cv_table_["machine"]) == {0, 1, 2}
    for name in ("temperature_", "n_stages_", "stop_reason_", "intercept_"):
        assert np.shape(getattr(model, name)) == (3,)
    assert isinstance(model.cv_error_, float)
    assert model.dual_coef_.shape == (3, 150 * len(np.unique(table[["kernel", "gamma"]])))


def test_the_curve_has_the_loss_of_the_best_kernel():
    model = fitted()
    best = model.cv_table_[model.cv_table_["log_loss"].argmin()]
    assert best[["kernel", "gamma"]] in model.kernel_weights_[["kernel", "gamma"]]
    assert model.cv_log_loss_ == pytest.approx(best["log_loss"], abs=0.05)


def test_tables_are_data_frames_as_they_are():
    frame = pd.DataFrame(fitted("ovo").cv_table_)
    assert list(frame) == ["machine", "kernel", "gamma", "stage", "log_loss"]
    assert (frame.groupby(["machine", "kernel", "gamma"])["stage"].min() == 1).all()


def test_gammas_are_printed_with_six_digits():
    gammas = fitted(standardize=False).kernel_weights_["gamma"].tolist()
    assert gammas == [float(f"{gamma:.6g}") for gamma in gammas]


def test_the_published_path_has_none_of_them():
    model = published().fit(*two_classes())
    for name in ("kernel_weights_", "cv_table_", "cv_error_", "cv_log_loss_", "temperature_"):
        assert not hasattr(model, name)


def test_fitting_again_forgets_the_first_fit():
    model = EnsembleSVC(random_state=0).fit(*two_classes())
    model.set_params(**published().get_params()).fit(*two_classes())
    np.testing.assert_array_equal(
        model.decision_function(QUERIES), published().fit(*two_classes()).decision_function(QUERIES)
    )


# --- published or not ----------------------------------------------------------------------------


def published(n_stages=5, **changes):
    setting = {"kernel": "rbf", "gamma": "spread", "loss": "exponential"}
    return EnsembleSVC(n_stages, **(setting | changes))


@pytest.mark.parametrize("n_stages", [5, "eps"])
def test_the_published_path_has_no_probabilities(n_stages):
    for model in (published(n_stages), fit_quietly(published(n_stages), *two_classes())):
        assert not hasattr(model, "predict_proba")
        with pytest.raises(AttributeError) as caught:
            model.predict_proba  # noqa: B018
        assert "CalibratedClassifierCV" in str(caught.value.__cause__)


CHOOSING = {
    "n_stages": {"n_stages": "cv"},
    "kernel": {"kernel": "cv"},
    "gamma": {"gamma": "cv"},
    "loss": {"loss": "logistic"},
}


@pytest.mark.parametrize("case", CHOOSING)
def test_anything_to_choose_leaves_the_published_path(case):
    model = published(**CHOOSING[case]).set_params(random_state=0).fit(*two_classes())
    assert_sensible(model, QUERIES)
    assert hasattr(model, "kernel_weights_")
    assert hasattr(model, "predict_proba")


@pytest.mark.parametrize("case", CHOOSING)
def test_a_choice_has_no_stages(case):
    model = published(**CHOOSING[case]).fit(*two_classes())
    for method in (model.staged_decision_function, model.staged_predict):
        with pytest.raises(AttributeError, match="published path"):
            list(method(QUERIES))


@pytest.mark.parametrize("case", ["kernel", "gamma", "loss"])
def test_the_papers_stop_needs_the_published_path(case):
    with pytest.raises(ValueError, match=r"n_stages='eps'.*exponential"):
        published("eps", **CHOOSING[case]).fit(*two_classes())


def test_the_papers_stop_alone_is_refused():
    with pytest.raises(ValueError, match=r"n_stages='eps'.*kernel='rbf'"):
        EnsembleSVC("eps").fit(*two_classes())


def test_the_published_path_leaves_auto_rank_exact():
    model = published(random_state=0).fit(*two_classes())
    exact = published(rank=None).fit(*two_classes())
    assert model.rank_ is None
    np.testing.assert_array_equal(model.dual_coef_, exact.dual_coef_)


def test_the_published_path_refuses_greedy_landmarks():
    with pytest.raises(ValueError, match="greedy"):
        published(rank=5, landmarks="greedy").fit(*two_classes())


def test_nothing_fixed_is_the_default():
    parameters = EnsembleSVC().get_params()
    assert {parameters[name] for name in ("n_stages", "kernel", "gamma")} == {"cv"}
    assert (parameters["loss"], parameters["cv"], parameters["rank"]) == ("logistic", 5, "auto")
    assert parameters["fit_intercept"] is parameters["standardize"] is True


# --- what is fixed -------------------------------------------------------------------------------


@pytest.mark.parametrize("n_stages", [1, 7, np.int64(7), 200])
def test_a_number_of_stages_is_kept(n_stages):
    model = EnsembleSVC(n_stages, random_state=0).fit(*two_classes())
    assert model.n_stages_ == n_stages
    assert model.stop_reason_ == "n_stages"
    assert set(model.cv_table_["stage"]) == {n_stages}


@pytest.mark.parametrize("gamma", [0.3, "scale", "spread", "pairwise"])
def test_a_gamma_means_one_rbf_kernel(gamma):
    model = fitted(gamma=gamma)
    [(_, name, value, _)] = model.kernel_weights_
    assert name == "rbf"
    if gamma == 0.3:
        assert value == model.gamma_ == 0.3


def test_gamma_rules_see_standardised_features():
    assert fitted(gamma="spread").gamma_ == pytest.approx(1 / 4)


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "poly", "sigmoid"])
def test_a_kernel_keeps_its_name(kernel):
    assert set(fitted(kernel=kernel).cv_table_["kernel"]) == {kernel}


def test_the_linear_kernel_has_coef():
    model = fitted(kernel="linear", standardize=False)
    np.testing.assert_allclose(
        QUERIES @ model.coef_[0] + model.intercept_, model.decision_function(QUERIES), atol=1e-10
    )


def test_without_bias_the_intercept_is_zero():
    assert fitted(fit_intercept=False).intercept_.tolist() == [0.0]


@CLASSES
def test_precomputed_equals_the_kernel(multi_class):
    X, y = rows_of(multi_class)
    model = EnsembleSVC(kernel="precomputed", multi_class=multi_class or "ovo", random_state=0)
    model.fit(rbf_kernel(X, gamma=0.3), y)
    expected = fitted(multi_class, kernel="rbf", gamma=0.3, standardize=False)
    K = rbf_kernel(QUERIES, X, gamma=0.3)
    assert_sensible(model, K)
    np.testing.assert_allclose(
        model.predict_proba(K), expected.predict_proba(QUERIES), rtol=1e-3, atol=1e-4
    )


@CLASSES
def test_a_callable_equals_the_kernel(multi_class):
    def kernel(A, B):
        return rbf_kernel(A, B, gamma=0.3)

    model = EnsembleSVC(kernel=kernel, multi_class=multi_class or "ovo", random_state=0)
    model.fit(*rows_of(multi_class))
    np.testing.assert_allclose(
        model.predict_proba(QUERIES),
        fitted(multi_class, kernel="rbf", gamma=0.3).predict_proba(QUERIES),
        rtol=1e-3,
        atol=1e-4,
    )


@CLASSES
def test_sparse_rows_are_dense_ones(multi_class):
    X, y = rows_of(multi_class)
    X = X * (np.abs(X) > 0.5)
    dense, sparse = (
        EnsembleSVC(standardize=False, multi_class=multi_class or "ovo", random_state=0)
        .fit(hold(X), y)
        .predict_proba(hold(QUERIES))
        for hold in (np.asarray, sp.csr_array)
    )
    np.testing.assert_allclose(sparse, dense, atol=1e-4)


def test_wide_sparse_text():
    rng = np.random.default_rng(0)
    y = np.arange(300) % 2
    rate = np.where(np.arange(3000) < 40, 0.02 + 0.06 * y[:, None], 0.004)
    X = sp.csr_matrix((rng.uniform(size=(300, 3000)) < rate).astype(np.float32))
    for standardize in (False, True):
        model = EnsembleSVC(standardize=standardize, random_state=0).fit(X[:200], y[:200])
        assert set(model.cv_table_["kernel"]) == {"rbf"}
        assert sp.issparse(model.support_vectors_)
        assert_sensible(model, X[200:])
        assert model.score(X[200:], y[200:]) > (0.6 if standardize else 0.7)


# --- splits --------------------------------------------------------------------------------------


def grouped(n=240, seed=0):
    """Groups of six nearly equal rows that share a label, which is noise."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(n // 6), 6)
    X = rng.normal(size=(n // 6, 4))[groups] + 0.01 * rng.normal(size=(n, 4))
    return X, rng.permutation(np.arange(n // 6) % 2)[groups], groups


def test_groups_are_kept_together():
    X, y, groups = grouped()
    blind = EnsembleSVC(random_state=0).fit(X, y)
    seeing = EnsembleSVC(cv=GroupKFold(5), random_state=0).fit(X, y, groups=groups)
    assert blind.cv_error_ < 0.05
    assert seeing.cv_error_ > 0.3


def test_groups_need_a_splitter():
    X, y, groups = grouped()
    with pytest.raises(ValueError, match=r"GroupKFold"):
        EnsembleSVC().fit(X, y, groups=groups)


def test_a_splitter_of_groups_needs_groups():
    X, y, _ = grouped()
    with pytest.raises(ValueError, match="groups"):
        EnsembleSVC(cv=GroupKFold(5)).fit(X, y)


def test_groups_have_an_entry_a_row():
    X, y, groups = grouped()
    with pytest.raises(ValueError, match="groups"):
        EnsembleSVC(cv=GroupKFold(5)).fit(X, y, groups=groups[:-1])


def test_rows_of_weight_zero_have_no_group():
    X, y, groups = grouped()
    weights = np.where(np.arange(len(y)) % 4, 1.0, 0.0)
    rows, model = weights > 0, EnsembleSVC(cv=GroupKFold(5), random_state=0)
    weighted = clone(model).fit(X, y, sample_weight=weights, groups=groups)
    absent = clone(model).fit(X[rows], y[rows], groups=groups[rows])
    np.testing.assert_allclose(
        weighted.predict_proba(QUERIES), absent.predict_proba(QUERIES), atol=1e-6
    )


def test_groups_are_routed_through_pipelines_and_searches():
    X, y, groups = grouped()
    with config_context(enable_metadata_routing=True):
        model = EnsembleSVC(cv=GroupKFold(3), random_state=0).set_fit_request(
            groups=True, sample_weight=False
        )
        pipeline = make_pipeline(StandardScaler(), model)
        pipeline.fit(X, y, groups=groups)
        assert pipeline[-1].cv_error_ > 0.3
        scores = cross_validate(
            pipeline, X, y, cv=GroupKFold(2), params={"groups": groups}, return_estimator=True
        )
        assert all(e[-1].cv_error_ > 0.2 for e in scores["estimator"])


SPLITTERS = {
    "repeated": RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=0),
    "time series": TimeSeriesSplit(4),
    "stratified": StratifiedKFold(4),
    "two": 2,
    "ten": 10,
    "None": None,
}


@CLASSES
@pytest.mark.parametrize("case", SPLITTERS)
def test_splits_of_any_kind(multi_class, case):
    X, y = rows_of(multi_class)
    model = EnsembleSVC(cv=SPLITTERS[case], multi_class=multi_class or "ovo", random_state=0)
    assert_sensible(model.fit(X, y), QUERIES)
    assert 0 < model.cv_error_ < 0.5
    assert model.score(X, y) > 0.75


@CLASSES
def test_given_splits_are_those_of_the_splitter(multi_class):
    X, y = rows_of(multi_class)
    splitter = StratifiedKFold(4, shuffle=True, random_state=3)
    one, other = (
        EnsembleSVC(cv=cv, multi_class=multi_class or "ovo", random_state=0).fit(X, y)
        for cv in (splitter, list(splitter.split(X, y)))
    )
    np.testing.assert_array_equal(one.predict_proba(QUERIES), other.predict_proba(QUERIES))


def test_a_generator_of_splits():
    X, y = two_classes()
    splits = given_splits(y)
    one, other = (
        EnsembleSVC(cv=cv, random_state=0).fit(X, y) for cv in (splits, (s for s in splits))
    )
    np.testing.assert_array_equal(one.dual_coef_, other.dual_coef_)


def test_no_splits_are_refused():
    with pytest.raises(ValueError, match="splits"):
        EnsembleSVC(cv=[]).fit(*two_classes())


@pytest.mark.parametrize("cv", [0, 1, -3, "five", 2.5])
def test_numbers_of_folds_that_are_none_are_refused(cv):
    with pytest.raises(ValueError, match="'cv' parameter of EnsembleSVC must be"):
        EnsembleSVC(cv=cv).fit(*two_classes())


# --- the same model ------------------------------------------------------------------------------


def assert_same_model(one, other):
    np.testing.assert_array_equal(one.kernel_weights_, other.kernel_weights_)
    np.testing.assert_array_equal(one.predict_proba(QUERIES), other.predict_proba(QUERIES))
    assert one.cv_log_loss_ == other.cv_log_loss_


@CLASSES
@pytest.mark.parametrize("variant", ["default", "float32", "paper's loss", "linear"])
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
    model = EnsembleSVC(7, gamma=0.7, cv=3, rank=3, loss="exponential", max_stages=9)
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
    search = GridSearchCV(EnsembleSVC(random_state=0), {"loss": ["logistic", "exponential"]}, cv=3)
    assert search.fit(X, y).best_score_ > 0.7
    assert cross_val_score(EnsembleSVC(random_state=0), X, y, cv=3, scoring="roc_auc").min() > 0.8


# --- weights -------------------------------------------------------------------------------------


@CLASSES
@pytest.mark.parametrize("variant", ["default", "low rank"])
def test_a_weight_of_zero_is_absence(multi_class, variant):
    X, y = rows_of(multi_class)
    weights = np.random.default_rng(1).integers(0, 3, size=len(y)).astype(float)
    rows = weights > 0
    model = clone(fitted(multi_class, **VARIANTS[variant]))
    weighted = clone(model).fit(X, y, sample_weight=weights)
    absent = clone(model).fit(X[rows], y[rows], sample_weight=weights[rows])
    np.testing.assert_array_equal(weighted.support_, np.flatnonzero(rows)[absent.support_])
    np.testing.assert_allclose(
        weighted.predict_proba(QUERIES), absent.predict_proba(QUERIES), atol=1e-5
    )


@CLASSES
@pytest.mark.parametrize("loss", ["logistic", "exponential"])
def test_whole_weights_are_copies_in_the_same_splits(multi_class, loss):
    X, y = rows_of(multi_class)
    counts = np.random.default_rng(1).integers(1, 4, size=len(y))
    copies = np.repeat(np.arange(len(y)), counts)
    splits = given_splits(y)
    of_copies = [tuple(np.flatnonzero(np.isin(copies, p)) for p in split) for split in splits]
    # Rounding grows along a path, and the stage it ends at may differ.
    model = EnsembleSVC(10, loss=loss, multi_class=multi_class or "ovo", random_state=0)
    weighted = clone(model).set_params(cv=splits).fit(X, y, sample_weight=counts)
    copied = clone(model).set_params(cv=of_copies).fit(X[copies], y[copies])
    np.testing.assert_allclose(
        weighted.predict_proba(QUERIES), copied.predict_proba(QUERIES), atol=1e-6
    )
    assert weighted.cv_log_loss_ == pytest.approx(copied.cv_log_loss_, abs=1e-6)
    assert weighted.cv_error_ == pytest.approx(copied.cv_error_)


@CLASSES
def test_class_weights_multiply_the_odds(multi_class):
    X, y = rows_of(multi_class)
    by_class = np.array([3.0, 0.5, 1.0])
    model = EnsembleSVC(multi_class=multi_class or "ovo", random_state=0)
    plain, weighted = (
        clone(model).set_params(class_weight=w).fit(X, y) for w in (None, dict(enumerate(by_class)))
    )
    coefficients = [sp.csr_array(m.dual_coef_).toarray() for m in (plain, weighted)]
    np.testing.assert_array_equal(*coefficients)
    if multi_class is None:
        odds = [
            m.predict_proba(QUERIES)[:, 1] / m.predict_proba(QUERIES)[:, 0]
            for m in (plain, weighted)
        ]
        np.testing.assert_allclose(odds[1], odds[0] * by_class[1] / by_class[0], rtol=1e-6)
    else:
        shift = weighted.predict_proba(QUERIES) - plain.predict_proba(QUERIES)
        assert shift[:, 0].mean() > 0.05
        assert shift[:, 1].mean() < -0.05


def test_class_weights_leave_the_ranking_as_it_is():
    X, y = two_classes(400)
    rows = np.concatenate([np.flatnonzero(y == 1)[:25], np.flatnonzero(y == 0)])
    plain, balanced = (
        EnsembleSVC(class_weight=w, random_state=0).fit(X[rows], y[rows]).decision_function(QUERIES)
        for w in (None, "balanced")
    )
    np.testing.assert_array_equal(np.argsort(plain), np.argsort(balanced))


def test_balance_shifts_towards_the_minority():
    X, y = two_classes(400)
    rows = np.concatenate([np.flatnonzero(y == 1)[:25], np.flatnonzero(y == 0)])
    plain, balanced = (
        EnsembleSVC(class_weight=w, random_state=0).fit(X[rows], y[rows]).predict_proba(QUERIES)
        for w in (None, "balanced")
    )
    assert balanced[:, 1].mean() > plain[:, 1].mean() + 0.1


@pytest.mark.parametrize("weight", [1e-30, 1e-6, 1e6, 1e30])
def test_weights_of_any_size_give_a_sensible_model(weight):
    X, y = two_classes()
    for weights in (np.full(150, weight), np.where(np.arange(150) % 2, weight, 1.0)):
        model = EnsembleSVC(random_state=0).fit(X, y, sample_weight=weights)
        assert_sensible(model, QUERIES)
        assert model.score(X, y) > 0.7


# --- seeds ---------------------------------------------------------------------------------------


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
    monkeypatch.setattr(tuned, "N_SHUFFLES", 1)
    assert usual < 0.8 * spread()


# --- few rows ------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_small", [1, 2, 3])
def test_a_class_too_small_to_hold_out(n_small):
    X, y = two_classes()
    rows = np.concatenate([np.flatnonzero(y == 1)[:n_small], np.flatnonzero(y == 0)])
    model = EnsembleSVC(random_state=0)
    with pytest.warns(UserWarning, match=rf"too few rows \({n_small}\)"):
        model.fit(X[rows], y[rows])
    assert_sensible(model, QUERIES)
    assert not hasattr(model, "predict_proba")
    assert np.isnan(model.cv_error_)
    [(_, name, gamma, share)] = model.kernel_weights_
    assert (name, gamma, share) == ("rbf", pytest.approx(1 / 4), 1.0)


@pytest.mark.parametrize("n_small", [4, 5, 9])
def test_a_small_class_has_fewer_folds(n_small):
    X, y = two_classes()
    rows = np.concatenate([np.flatnonzero(y == 1)[:n_small], np.flatnonzero(y == 0)])
    model = EnsembleSVC(random_state=0)
    with pytest.warns(UserWarning, match=f"{n_small} rows, which allow {n_small // 2} folds"):
        model.fit(X[rows], y[rows])
    assert_sensible(model, QUERIES)
    assert model.cv_error_ < 0.2


@pytest.mark.parametrize("n_small", [1, 2, 3])
@MULTI_CLASS
def test_a_tiny_class_among_many(n_small, multi_class):
    X, y = three_classes()
    X = X + 8.0 * (y == 2)[:, None]  # far away: even one row tells
    rows = np.concatenate([np.flatnonzero(y == 2)[:n_small], np.flatnonzero(y < 2)])
    model = EnsembleSVC(multi_class=multi_class, random_state=0)
    with pytest.warns(UserWarning, match="1 of 3 classes have less than 4 rows"):
        model.fit(X[rows], y[rows])
    assert_sensible(model, X)
    assert hasattr(model, "predict_proba")
    assert model.score(X[y < 2], y[y < 2]) > 0.75


@pytest.mark.parametrize("n_small", [5, 7])
@MULTI_CLASS
def test_a_small_class_among_many(n_small, multi_class):
    X, y = three_classes()
    rows = np.concatenate([np.flatnonzero(y == 2)[:n_small], np.flatnonzero(y < 2)])
    model = EnsembleSVC(multi_class=multi_class, random_state=0)
    with pytest.warns(UserWarning, match="folds"):
        model.fit(X[rows], y[rows])
    assert_sensible(model, X)
    assert model.score(X[y < 2], y[y < 2]) > 0.75


@MULTI_CLASS
def test_a_row_a_class(multi_class):
    model = fit_quietly(EnsembleSVC(multi_class=multi_class), np.eye(5), list("abcde"))
    assert_sensible(model, np.eye(5))
    assert model.predict(np.eye(5)).tolist() == list("abcde")


def test_two_rows():
    model = fit_quietly(EnsembleSVC(), [[0.0], [1.0]], [0, 1])
    assert model.predict([[0.1], [0.9]]).tolist() == [0, 1]


def test_small_classes_in_given_splits():
    X, y = two_classes()
    rows = np.concatenate([np.flatnonzero(y == 1)[:3], np.flatnonzero(y == 0)])
    model = fit_quietly(EnsembleSVC(cv=TimeSeriesSplit(5), random_state=0), X[rows], y[rows])
    assert_sensible(model, QUERIES)


# --- odd data ------------------------------------------------------------------------------------


@CLASSES
def test_classes_far_apart(multi_class):
    X, y = rows_of(multi_class)
    X = X + 100.0 * y[:, None]
    model = EnsembleSVC(multi_class=multi_class or "ovo", random_state=0).fit(X, y)
    assert_sensible(model, X)
    assert model.score(X, y) == 1.0
    assert model.cv_error_ == 0.0
    own = model.predict_proba(X)[np.arange(len(y)), y]
    assert own.min() > 0.9


@CLASSES
def test_labels_of_noise(multi_class):
    rng = np.random.default_rng(0)
    n_classes = 2 if multi_class is None else 3
    X, y = rng.normal(size=(300, 5)), rng.integers(n_classes, size=300)
    model = EnsembleSVC(multi_class=multi_class or "ovo", random_state=0).fit(X, y)
    chance = 1 - 1 / n_classes
    assert model.cv_error_ == pytest.approx(chance, abs=0.1)
    assert model.cv_log_loss_ == pytest.approx(np.log(n_classes), abs=0.08)
    probabilities = model.predict_proba(rng.normal(size=(200, 5)))
    assert np.abs(probabilities - 1 / n_classes).mean() < 0.12


def test_noise_of_unequal_classes_gives_the_prior():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(400, 5)), (rng.uniform(size=400) < 0.2).astype(int)
    model = EnsembleSVC(random_state=0).fit(X, y)
    assert model.cv_error_ == pytest.approx(0.2, abs=0.05)
    assert model.predict_proba(rng.normal(size=(200, 5)))[:, 1].mean() == pytest.approx(
        0.2, abs=0.1
    )


def odd_rows(case):
    X, y = two_classes()
    if case == "constant features":
        return np.hstack([X, np.full((150, 2), 5.0)]), y
    if case == "all features constant":
        return np.full((150, 2), 3.0), y
    if case == "duplicates with opposite labels":
        return np.vstack([X, X]), np.concatenate([y, 1 - y])
    if case == "some duplicates with opposite labels":
        return np.vstack([X, X[:20]]), np.concatenate([y, 1 - y[:20]])
    if case == "one feature":
        return X[:, :1], (X[:, 0] > 0.3).astype(int)
    if case == "two spots":
        return np.sign(X[:, :1]), y
    if case == "one outlier":
        return np.vstack([X, np.full((1, 4), 1e8)]), np.append(y, 1)
    if case == "tiny features":
        return 1e-150 * X, y
    assert case == "more features than rows"
    return np.hstack([X, np.random.default_rng(0).normal(size=(150, 400))])[:60], y[:60]


ODD = (
    "constant features",
    "all features constant",
    "duplicates with opposite labels",
    "some duplicates with opposite labels",
    "one feature",
    "two spots",
    "one outlier",
    "tiny features",
    "more features than rows",
)


@pytest.mark.filterwarnings("ignore:.*look the same to the")
@pytest.mark.filterwarnings("ignore:Some values of columns 0, 1, 2, 3 are so large")
@pytest.mark.parametrize("case", ODD)
@pytest.mark.parametrize(
    "variant",
    ["default", "float32", "paper's loss", "no bias", "low rank", "linear", "fixed stages"],
)
def test_odd_rows_give_a_finite_model(case, variant):
    X, y = odd_rows(case)
    model = EnsembleSVC(random_state=0, **VARIANTS[variant]).fit(X, y)
    assert_sensible(model, X)
    assert np.isfinite([model.cv_error_, model.cv_log_loss_, model.temperature_]).all()


def test_one_feature_is_enough():
    X, y = odd_rows("one feature")
    assert EnsembleSVC(random_state=0).fit(X, y).score(X, y) > 0.95


def test_constant_features_change_nothing():
    X, y = odd_rows("constant features")
    model = EnsembleSVC(random_state=0).fit(X, y)
    Q = np.hstack([QUERIES, np.full((41, 2), 5.0)])
    np.testing.assert_allclose(model.predict_proba(Q), fitted().predict_proba(QUERIES), atol=1e-6)


# --- limits --------------------------------------------------------------------------------------


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


def test_many_rows_ask_for_low_rank(monkeypatch):
    monkeypatch.setattr(tuned, "MAX_STORED_ROWS", 100)
    X, y = two_classes(400)
    model = fit_quietly(EnsembleSVC(random_state=0), X, y)
    assert model.rank_ <= len(model.support_) == 250
    assert_sensible(model, QUERIES)
    assert model.score(X, y) > 0.8


def test_many_rows_are_exact_where_rank_says_so(monkeypatch):
    monkeypatch.setattr(tuned, "MAX_STORED_ROWS", 100)
    model = EnsembleSVC(rank=None, random_state=0).fit(*two_classes())
    assert_same_model(model, fitted())


def test_a_rank_that_limits_the_accuracy_says_so(monkeypatch):
    monkeypatch.setattr(tuned, "MAX_STORED_ROWS", 100)
    monkeypatch.setattr("hardmargin.selection.low_rank_vote.RANKS", (4, 8, 16))
    X, y = two_classes(400)
    with pytest.warns(UserWarning, match=r"rank of 16 limits.*GreedySVC"):
        EnsembleSVC(random_state=0).fit(X, y)


def test_machines_one_by_one_are_those_together(monkeypatch):
    monkeypatch.setattr(tuned, "MAX_SHARED_ROWS", 100)
    model = EnsembleSVC(random_state=0).fit(*three_classes())
    np.testing.assert_allclose(
        model.predict_proba(QUERIES), fitted("ovo").predict_proba(QUERIES), atol=1e-3
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
    monkeypatch.setattr(tuned, "MAX_FLOAT64_ROWS", 10)
    monkeypatch.setattr(tuned, "MAX_FLOAT32_ROWS", 20)
    model = EnsembleSVC(random_state=0).fit(*two_classes())
    exact = fitted()
    assert model.cv_log_loss_ == pytest.approx(exact.cv_log_loss_, abs=0.02)
    assert np.abs(model.predict_proba(QUERIES) - exact.predict_proba(QUERIES)).max() < 0.1


@pytest.mark.parametrize("interrupted", ["exact_votes", "make_folds", "candidate_kernels"])
def test_an_interrupt_leaves_the_estimator_as_it_was(interrupted, monkeypatch):
    model = EnsembleSVC(random_state=0).fit(*two_classes())
    before = dict(vars(model))

    def interrupt(*arguments, **keywords):
        raise KeyboardInterrupt

    monkeypatch.setattr(tuned, interrupted, interrupt)
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
    for model in (fitted(), published().fit(*two_classes())):
        public = [k for k in vars(model) if k.endswith("_") and not k.startswith("_")]
        assert [k for k in public if k not in ensemble.EnsembleSVC.__doc__] == []
