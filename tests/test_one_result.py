"""A fit has one result, whatever `n_jobs` is."""

import warnings
from contextlib import suppress
from dataclasses import fields, is_dataclass

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, clone
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.neural_network import MLPClassifier
from threadpoolctl import threadpool_info, threadpool_limits

from hardmargin import (
    CoreVectorSVC,
    DiversifiedSVC,
    EnsembleSVC,
    GreedySVC,
    HardMarginSVC,
    MarginDiscriminantAnalysis,
    MinimumEnclosingBall,
    MultiplicativeSVC,
    ParzenClassifier,
    PathSVC,
    RhoEnsembleSVC,
    RhoSVC,
    RigorousSVC,
    compress,
)

OUTPUTS = ("decision_function", "predict_proba", "predict", "transform", "score_samples")


def two_classes(n=400, n_features=30, overlap=1.0, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, n_features)) * np.logspace(-1, 1, n_features)
    y = (X[:, -1] / 10 + np.sin(X[:, 0] * 20) + overlap * random.normal(size=n) > 0).astype(int)
    return X, y


def cancer(n=500, n_features=20):
    X, y = load_breast_cancer(return_X_y=True)
    return X[:n, :n_features], y[:n]


def digits(n=400):
    X, y = load_digits(return_X_y=True)
    return X[:n], y[:n]


def four_classes(n=360):
    X, y = digits(2 * n)
    few = y < 4
    return X[few][:n], y[few][:n]


def kernel_of_two(X, Z):
    return (X @ Z.T + 1.0) ** 2


#: What is fitted, and the rows.
CASES = {
    "RhoSVC, unscaled breast cancer": (RhoSVC(random_state=0), lambda: cancer(200, 7)),
    "RhoSVC, many rows": (RhoSVC(max_stages=15), lambda: two_classes(1_500, 10)),
    "RhoSVC, many classes": (RhoSVC(max_stages=20), four_classes),
    "RhoSVC, one against the rest": (
        RhoSVC(max_stages=10, multi_class="ovr"),
        lambda: digits(700),
    ),
    "RhoSVC, low rank": (RhoSVC(rank=100, max_stages=50, random_state=0), two_classes),
    "RhoSVC, pairwise": (RhoSVC(solver="smo", tol=0.1), four_classes),
    "EnsembleSVC": (EnsembleSVC(random_state=0), lambda: cancer()),
    "EnsembleSVC, many classes": (EnsembleSVC(random_state=0), four_classes),
    "EnsembleSVC, low rank": (EnsembleSVC(rank=60, random_state=0), two_classes),
    "EnsembleSVC, linear": (EnsembleSVC(kernel="linear", random_state=0), two_classes),
    "RhoEnsembleSVC": (RhoEnsembleSVC(max_stages=40, fit_intercept=True), lambda: cancer()),
    "RhoEnsembleSVC, linear": (
        RhoEnsembleSVC(max_stages=20, fit_intercept=True, kernel="linear"),
        four_classes,
    ),
    "GreedySVC": (GreedySVC(random_state=0), lambda: cancer()),
    "GreedySVC, many classes": (GreedySVC(random_state=0), four_classes),
    "GreedySVC, given gamma": (GreedySVC(0.01, max_visits=4), lambda: two_classes(1_500, 10)),
    "GreedySVC, callable": (GreedySVC(kernel=kernel_of_two, random_state=0), two_classes),
    "ParzenClassifier": (ParzenClassifier(), four_classes),
    "HardMarginSVC": (HardMarginSVC(), four_classes),
    "MultiplicativeSVC": (MultiplicativeSVC(gamma=1.0, max_stages=30), lambda: cancer(300)),
    "MultiplicativeSVC, many classes": (MultiplicativeSVC(max_stages=20), four_classes),
    "CoreVectorSVC": (CoreVectorSVC(random_state=0), two_classes),
    "CoreVectorSVC, many classes": (CoreVectorSVC(random_state=0), lambda: digits()),
    "PathSVC": (PathSVC(random_state=0, C_max=1.0), lambda: two_classes(150)),
    "PathSVC, many classes": (PathSVC("loo", C_max=0.1), lambda: four_classes(200)),
    "RigorousSVC": (RigorousSVC(0.5), lambda: two_classes(200)),
    "MarginDiscriminantAnalysis": (MarginDiscriminantAnalysis(random_state=0), lambda: digits()),
    "MarginDiscriminantAnalysis, uncorrelated": (
        MarginDiscriminantAnalysis(2, constraint="uncorrelated", random_state=0),
        lambda: digits(),
    ),
    "MarginDiscriminantAnalysis, linear": (
        MarginDiscriminantAnalysis(2, kernel="linear", random_state=0),
        lambda: cancer(),
    ),
    "MarginDiscriminantAnalysis, Newton": (
        MarginDiscriminantAnalysis(2, solver="newton"),
        lambda: digits(300),
    ),
    "MarginDiscriminantAnalysis, Newton, many rows": (
        MarginDiscriminantAnalysis(solver="newton"),
        lambda: two_classes(1_500, 10),
    ),
    "MarginDiscriminantAnalysis, Lagrangian": (
        MarginDiscriminantAnalysis(solver="lagrangian", tol=1e-2),
        lambda: four_classes(200),
    ),
    "MarginDiscriminantAnalysis, Nystroem": (
        MarginDiscriminantAnalysis(solver="nystroem", rank=60, random_state=0),
        lambda: digits(),
    ),
    "DiversifiedSVC": (DiversifiedSVC(2, random_state=0), four_classes),
    "DiversifiedSVC, network": (
        DiversifiedSVC(
            2,
            final_estimator=MLPClassifier((40,), max_iter=20, random_state=0),
            cv=2,
            random_state=0,
        ),
        four_classes,
    ),
    "DiversifiedSVC, core sets": (
        DiversifiedSVC(2, final_estimator="cvm", random_state=0),
        four_classes,
    ),
    "MinimumEnclosingBall": (MinimumEnclosingBall(random_state=0), lambda: two_classes(700)),
    "MinimumEnclosingBall, linear": (
        MinimumEnclosingBall(kernel="linear", C=0.1, random_state=0),
        lambda: two_classes(700, 40),
    ),
}


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about the limits that keep the fits short
        yield


def fitted_state(model):
    """Public attributes of a fit."""
    names = (name for name in vars(model) if name.endswith("_") and not name.startswith("_"))
    return {name: getattr(model, name) for name in names}


def assert_same(one, other, where):
    """Compare everything, bit by bit."""
    assert type(one) is type(other), where
    if sp.issparse(one):
        one, other = one.toarray(), other.toarray()
    if isinstance(one, BaseEstimator):
        assert_same(fitted_state(one), fitted_state(other), where)
    elif isinstance(one, dict):
        assert list(one) == list(other), where
        for name in one:
            assert_same(one[name], other[name], f"{where}, {name}")
    elif isinstance(one, list | tuple):
        assert len(one) == len(other), where
        for i, (a, b) in enumerate(zip(one, other, strict=True)):
            assert_same(a, b, f"{where}[{i}]")
    elif is_dataclass(one):
        for field in fields(one):
            assert_same(
                getattr(one, field.name), getattr(other, field.name), f"{where}.{field.name}"
            )
    elif isinstance(one, np.ndarray | np.generic | float | int | str | bool | None):
        np.testing.assert_array_equal(one, other, err_msg=where, strict=True)


def result(estimator, X, y, n_jobs):
    """Fit, and return all public attributes and outputs."""
    model = clone(estimator).set_params(n_jobs=n_jobs).fit(X, y)
    outputs = {name: getattr(model, name)(X) for name in OUTPUTS if hasattr(model, name)}
    if hasattr(model, "coef_"):
        outputs["coef_"] = model.coef_
    with suppress(AttributeError):  # not all have stages, or the memory for them
        outputs["stages"] = list(model.staged_decision_function(X[:50]))
    return {**fitted_state(model), **outputs}


@pytest.mark.parametrize("name", CASES)
def test_n_jobs_changes_nothing(name):
    estimator, rows = CASES[name]
    X, y = rows()
    one = result(estimator, X, y, n_jobs=None)
    for n_jobs in (3, -1):
        assert_same(one, result(estimator, X, y, n_jobs), f"n_jobs={n_jobs}")


@pytest.mark.parametrize("constraint", ["orthogonal", "uncorrelated"])
def test_repeated_fits_on_all_cores(constraint):
    X, y = digits(300)
    estimator = MarginDiscriminantAnalysis(2, constraint=constraint, random_state=0)
    one = result(estimator, X, y, n_jobs=-1)
    for _ in range(6):
        assert_same(one, result(estimator, X, y, n_jobs=-1), "once more")


def test_the_threads_of_blas_change_nothing():
    X, y = cancer(200, 7)
    results = []
    for n_threads in (1, 3):
        with threadpool_limits(n_threads, user_api="blas"):
            results.append(result(RhoSVC(), X, y, n_jobs=None))
    assert_same(*results, "BLAS threads")


@pytest.mark.parametrize("kernel", ["precomputed", "linear"])
def test_wide_products_do_not_depend_on_n_jobs(kernel):
    X, y = two_classes(700, 40)
    seen = X @ X.T if kernel == "precomputed" else X
    results = [
        result(RhoEnsembleSVC(max_stages=5, fit_intercept=True, kernel=kernel), seen, y, n)
        for n in (1, 2, 3)
    ]
    for other in results[1:]:
        assert_same(results[0], other, kernel)


def test_compressed_models_do_not_depend_on_n_jobs():
    X, y = two_classes()
    models = [
        compress(GreedySVC(0.01, max_visits=1, n_jobs=n).fit(X, y), n_support=40) for n in (1, 2, 3)
    ]
    for other in models[1:]:
        assert_same(models[0], other, "compress")


@pytest.mark.once_per("estimator")
@pytest.mark.parametrize(
    "estimator",
    [
        MarginDiscriminantAnalysis(2, random_state=0),
        CoreVectorSVC(random_state=0),
        RhoSVC(max_stages=5),
        MultiplicativeSVC(max_stages=5),
        PathSVC("loo", C_max=0.01, random_state=0),
        EnsembleSVC(random_state=0),
        GreedySVC(random_state=0),
    ],
    ids=lambda e: type(e).__name__,
)
@pytest.mark.parametrize("memory_limit", [400_000, 1_500_000])
def test_little_memory_does_not_make_it_depend_on_n_jobs(estimator, memory_limit):
    X, y = four_classes(240)
    estimator = clone(estimator).set_params(memory_limit=memory_limit)
    results = []
    for n_jobs in (1, 2, 3):
        try:
            results.append(result(estimator, X, y, n_jobs))
        except ValueError as error:
            results.append(str(error))
    for other in results[1:]:
        assert_same(results[0], other, "little memory")


@pytest.mark.parametrize("memory_limit", [600_000, 1_500_000, 2_000_000])
def test_room_to_sort_rows_does_not_depend_on_n_jobs(memory_limit):
    X, _ = two_classes(6_000, 20)
    y = np.digitize(X[:, -1], [-6, 0, 6])
    model = GreedySVC(0.05, max_visits=1, max_stages=60, memory_limit=memory_limit)
    found = []
    for n_jobs in (1, 3):
        try:
            found.append(clone(model).set_params(n_jobs=n_jobs).fit(X, y).dual_coef_.toarray())
        except ValueError as error:  # the limit is too small
            found.append(str(error))
    np.testing.assert_array_equal(*found)


def test_blas_has_its_threads_back():
    X, y = cancer(100, 5)
    with threadpool_limits(3, user_api="blas"):
        before = [library["num_threads"] for library in threadpool_info()]
        RhoSVC(max_stages=3, n_jobs=2).fit(X, y).predict(X)
        assert [library["num_threads"] for library in threadpool_info()] == before
