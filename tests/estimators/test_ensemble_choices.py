"""What EnsembleSVC chooses, which settings it keeps, and what it reports."""

from collections import Counter

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from problems.ensemble import (
    CLASSES,
    MULTI_CLASS,
    QUERIES,
    assert_sensible,
    fitted,
    given_splits,
    rows_of,
    two_classes,
)
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import (
    load_breast_cancer,
    load_iris,
    load_wine,
    make_blobs,
    make_moons,
)
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    RepeatedStratifiedKFold,
    StratifiedKFold,
    TimeSeriesSplit,
    cross_validate,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from hardmargin import EnsembleSVC

# --- how good it is -------------------------------------------------------------------------------


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


# --- attributes -----------------------------------------------------------------------------------


def test_attributes_of_two_classes():
    model = fitted()
    shares = model.kernel_weights_["share"]
    assert shares.sum() == pytest.approx(1)
    assert (np.diff(shares) <= 0).all()
    assert (shares >= 0.05).all()
    kernels = np.unique(model.cv_table_[["view", "kernel", "gamma"]])
    counts = Counter((view, name) for view, name, _ in kernels.tolist())
    assert counts["standardized", "rbf"] >= 2  # of plain kernels, two of these and one of ranks
    assert counts["rank", "laplacian"] >= 1
    assert 4 <= counts.total() <= 7  # at most four kernels of scaled columns go on
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


def test_machines_of_many_classes_share_a_few_kernels():
    X, y = make_blobs(300, 4, centers=9, cluster_std=4.0, random_state=0)
    table = EnsembleSVC().fit(X, y).kernel_weights_
    assert set(table["machine"]) == set(range(36))
    assert len(np.unique(table[["view", "kernel", "gamma"]])) <= 5


def test_the_curve_has_the_loss_of_the_best_kernel():
    model = fitted()
    best = model.cv_table_[model.cv_table_["log_loss"].argmin()]
    assert best[["kernel", "gamma"]] in model.kernel_weights_[["kernel", "gamma"]]
    assert model.cv_log_loss_ == pytest.approx(best["log_loss"], abs=0.05)


def test_tables_are_data_frames_as_they_are():
    frame = pd.DataFrame(fitted("ovo").cv_table_)
    assert list(frame) == ["machine", "view", "kernel", "gamma", "stage", "log_loss"]
    assert (frame.groupby(["machine", "view", "kernel", "gamma"])["stage"].min() == 1).all()


def test_gammas_are_printed_with_six_digits():
    gammas = fitted(standardize=False).kernel_weights_["gamma"].tolist()
    assert gammas == [float(f"{gamma:.6g}") for gamma in gammas]


def test_the_papers_stopping_rule_is_of_another_class():
    with pytest.raises(ValueError, match=r"n_stages='eps'.*RhoEnsembleSVC"):
        EnsembleSVC("eps").fit(*two_classes())


def test_nothing_fixed_is_the_default():
    parameters = EnsembleSVC().get_params()
    assert {parameters[name] for name in ("n_stages", "kernel", "gamma")} == {"cv"}
    assert (parameters["cv"], parameters["rank"]) == (5, "auto")
    assert parameters["fit_intercept"] is True
    assert parameters["standardize"] == parameters["multi_class"] == "auto"


# --- what is fixed --------------------------------------------------------------------------------


@pytest.mark.parametrize("n_stages", [1, 7, np.int64(7), 200])
def test_a_number_of_stages_is_kept(n_stages):
    model = EnsembleSVC(n_stages, random_state=0).fit(*two_classes())
    assert model.n_stages_ == n_stages
    assert model.stop_reason_ == "n_stages"
    assert set(model.cv_table_["stage"]) == {n_stages}


@pytest.mark.parametrize("gamma", [0.3, "scale", "spread", "pairwise"])
def test_a_gamma_means_one_rbf_kernel(gamma):
    model = fitted(gamma=gamma)
    [(_, view, name, value, _)] = model.kernel_weights_
    assert (view, name) == ("standardized", "rbf")
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
        assert set(model.cv_table_["kernel"]) == {"rbf", "linear"}
        assert sp.issparse(model.support_vectors_)
        assert_sensible(model, X[200:])
        assert model.score(X[200:], y[200:]) > (0.6 if standardize else 0.7)


# --- splits ---------------------------------------------------------------------------------------


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


def test_groups_have_an_entry_per_row():
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


@pytest.mark.once_per("case")
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
def test_invalid_numbers_of_folds_are_refused(cv):
    with pytest.raises(ValueError, match="'cv' parameter of EnsembleSVC must be"):
        EnsembleSVC(cv=cv).fit(*two_classes())
