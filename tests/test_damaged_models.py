"""Fitted models whose attributes were damaged, on disk or by hand: an error, never a crash."""

import copy
import functools

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris

from hardmargin import (
    CoreVectorSVC,
    EnsembleSVC,
    GreedySVC,
    MarginDiscriminantAnalysis,
    MinimumEnclosingBall,
    MultiplicativeSVC,
    ParzenClassifier,
    RhoEnsembleSVC,
    compress,
)

X, Y = load_iris(return_X_y=True)
SPARSE = sp.csr_array(np.where(np.median(X, axis=0) < X, X, 0.0))
MODELS = {
    "EnsembleSVC": (EnsembleSVC(), X),
    "EnsembleSVC, sparse rows": (EnsembleSVC(), SPARSE),
    "GreedySVC": (GreedySVC(), X),
    "GreedySVC, sparse rows": (GreedySVC(kernel="rbf", max_visits=64), SPARSE),
    "RhoEnsembleSVC": (RhoEnsembleSVC(5), X),
    "CoreVectorSVC": (CoreVectorSVC(), X),
    "ParzenClassifier": (ParzenClassifier(), X),
    "MarginDiscriminantAnalysis": (MarginDiscriminantAnalysis(2), X),
    "MinimumEnclosingBall": (MinimumEnclosingBall(), X),
}


@functools.cache
def fitted(name):
    model, rows = MODELS[name]
    return copy.copy(model).fit(rows, Y)


def sparse_attributes():
    return [
        pytest.param(name, attribute, id=f"{name}-{attribute}")
        for name in MODELS
        for attribute, value in vars(fitted(name)).items()
        if sp.issparse(value)
    ]


def changed(values, place, value):
    values = values.copy()
    values[place] = value
    return values


def damaged(values, what):
    """Some sparse matrix with wrong parts, which SciPy believes."""
    values = values.copy()
    match what:
        case "an index too large":
            values.indices = changed(values.indices, 0, 2**30)
        case "a negative index":
            values.indices = changed(values.indices, -1, -7)
        case "a row that ends too late":
            values.indptr = changed(values.indptr, -1, 2**30)
        case "a row that ends before it begins":
            values.indptr = changed(values.indptr, 1, 2**20)
        case "a last row that ends before all":
            values.indptr = changed(values.indptr, -1, -5)
        case "a last row that ends before all numbers":
            values.indptr = changed(values.indptr, -1, np.iinfo(values.indptr.dtype).min)
        case "too few values":
            values.data = values.data[: len(values.data) // 2]
    return values


every_damage = pytest.mark.parametrize(
    "what",
    [
        "an index too large",
        "a negative index",
        "a row that ends too late",
        "a row that ends before it begins",
        "a last row that ends before all",
        "a last row that ends before all numbers",
        "too few values",
    ],
)


@every_damage
@pytest.mark.parametrize(("name", "attribute"), sparse_attributes())
def test_damaged_sparse_attributes_are_refused(name, attribute, what):
    model, rows = copy.copy(fitted(name)), MODELS[name][1]
    setattr(model, attribute, damaged(getattr(model, attribute), what))
    with pytest.raises(ValueError, match=rf"^{attribute} of this .* is damaged"):
        model.predict(rows[:5])


@every_damage
def test_damaged_stages_are_refused(what):
    model = MultiplicativeSVC(gamma=4.0, tol=0.5).fit(X[:100], Y[:100])
    model._stages_ = [*model._stages_[:-1], damaged(model._stages_[-1], what)]
    with pytest.raises(ValueError, match=r"^_stages_ of this MultiplicativeSVC is damaged"):
        list(model.staged_predict(X[:5]))


def test_compress_refuses_a_damaged_model():
    model = copy.copy(fitted("GreedySVC, sparse rows"))
    model.support_vectors_ = damaged(model.support_vectors_, "an index too large")
    with pytest.raises(ValueError, match="support_vectors_ of this GreedySVC is damaged"):
        compress(model, n_support=5)


def wrong(values, rng):
    """Other values in the place of an array: fewer, more, of another type, beyond all bounds."""
    last = np.iinfo(values.dtype).max if values.dtype.kind == "i" else np.nan
    of_shape = [values[: len(values) // 2], values[..., :0], values.ravel(), values.T]
    of_type = [values.astype(t) for t in (np.float32, np.int8, np.int64)]
    beyond = [changed(values, (-1,) * values.ndim, v) for v in (last, -5)]
    choices = [*of_shape, *of_type, *beyond, np.concatenate([values, values]), values[::-1]]
    return choices[rng.integers(len(choices))]


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.filterwarnings("ignore")
def test_damaged_arrays_do_not_crash(name):
    model, rows = fitted(name), MODELS[name][1]
    arrays = [
        attribute
        for attribute, value in vars(model).items()
        if isinstance(value, np.ndarray) and value.size and value.dtype.kind in "if"
    ]
    rng = np.random.default_rng(0)
    for _ in range(60):
        damaged_model = copy.copy(model)
        for attribute in rng.choice(arrays, 2):
            setattr(damaged_model, attribute, wrong(getattr(model, attribute), rng))
        for method in ("predict", "decision_function", "predict_proba", "transform"):
            try:
                ask = getattr(damaged_model, method)
                ask(rows[:5])
            except (ValueError, TypeError, IndexError, AttributeError, OverflowError):
                continue
