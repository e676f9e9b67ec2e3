"""EnsembleSVC on weighted rows, few rows and odd ones."""

import numpy as np
import pytest
import scipy.sparse as sp
from problems.ensemble import (
    CLASSES,
    MULTI_CLASS,
    QUERIES,
    VARIANTS,
    assert_sensible,
    fit_quietly,
    fitted,
    given_splits,
    rows_of,
    three_classes,
    two_classes,
)
from sklearn.base import clone
from sklearn.model_selection import (
    TimeSeriesSplit,
)

from hardmargin import EnsembleSVC

# --- weights --------------------------------------------------------------------------------------


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
def test_whole_weights_are_copies_in_the_same_splits(multi_class):
    X, y = rows_of(multi_class)
    counts = np.random.default_rng(1).integers(1, 4, size=len(y))
    copies = np.repeat(np.arange(len(y)), counts)
    splits = given_splits(y)
    of_copies = [tuple(np.flatnonzero(np.isin(copies, p)) for p in split) for split in splits]
    # Rounding grows along a path, and the stage it ends at may differ.
    model = EnsembleSVC(10, multi_class=multi_class or "ovo", random_state=0)
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


# --- few rows -------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_small", [1, 2, 3])
def test_a_class_too_small_to_hold_out(n_small):
    X, y = two_classes()
    rows = np.concatenate([np.flatnonzero(y == 1)[:n_small], np.flatnonzero(y == 0)])
    model = EnsembleSVC(random_state=0)
    with pytest.warns(UserWarning, match=rf"too few rows \({n_small}\)"):
        model.fit(X[rows], y[rows])
    assert_sensible(model, QUERIES)
    shares = np.array([len(rows) - n_small + 1, n_small + 1]) / (len(rows) + 2)
    is_first = model.predict(QUERIES) == 0
    probabilities = model.predict_proba(QUERIES)[is_first]
    np.testing.assert_allclose(probabilities, np.tile(shares, (is_first.sum(), 1)), rtol=1e-4)
    assert np.isnan(model.cv_error_)
    [(_, _, name, gamma, share)] = model.kernel_weights_
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
    X = X + 8.0 * (y == 2)[:, None]  # far away: even one row is enough
    rows = np.concatenate([np.flatnonzero(y == 2)[:n_small], np.flatnonzero(y < 2)])
    model = EnsembleSVC(multi_class=multi_class, random_state=0)
    with pytest.warns(UserWarning, match="1 of 3 classes have fewer than 4 rows"):
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
def test_one_row_per_class(multi_class):
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


# --- odd data -------------------------------------------------------------------------------------


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


@pytest.mark.once_per("case")
@pytest.mark.filterwarnings("ignore:.*look the same to the")
@pytest.mark.filterwarnings("ignore:Some values of columns x0, x1, x2, x3 are so large")
@pytest.mark.filterwarnings("ignore:There are more columns")
@pytest.mark.parametrize("case", ODD)
@pytest.mark.parametrize(
    "variant",
    ["default", "float32", "no bias", "low rank", "linear", "fixed stages"],
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
