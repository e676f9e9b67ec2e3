"""Rows of every kind, good and bad, as users of scikit-learn's SVC know them."""

import functools

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from problems.sklearn_tools import CLASSIFIERS, TASKS, make
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics.pairwise import rbf_kernel

TASK = "two classes"
TWO = TASKS[TASK]

every_classifier = pytest.mark.parametrize("name", CLASSIFIERS)
every_task = pytest.mark.parametrize("task", TASKS)


def precise(name):
    """Make a classifier trained so far that the order of its sums does not matter."""
    is_hard = name in ("HardMarginSVC", "RhoSVC")
    return make(name, solver="smo", tol=1e-6) if is_hard else make(name)


@functools.cache
def fitted(name, task=TASK, is_sparse=False, is_precise=False):
    """Fit once what many tests compare with; they only read it."""
    model = precise(name) if is_precise else make(name)
    X = TASKS[task].X
    return model.fit(sp.csr_array(X) if is_sparse else X, TASKS[task].y)


def assert_close(found, expected):
    np.testing.assert_allclose(found, expected, atol=1e-3 * np.abs(expected).max())


# Sparse rows, and rows of any layout


SPARSE = [sp.csr_array, sp.csr_matrix, sp.csc_array, sp.coo_array, sp.lil_array, sp.dok_array]


@pytest.mark.once_per("name")
@every_task
@every_classifier
def test_sparse_rows_give_the_decisions_of_dense_ones(name, task):
    dense = fitted(name, task, is_precise=True)
    sparse = fitted(name, task, is_sparse=True, is_precise=True)
    if name == "EnsembleSVC":  # which tries other views and kernels on sparse rows
        settings = {"views": "standardized", "relevance": False, "kernel": "rbf"}
        plain = precise(name).set_params(standardize=True, **settings)
        X, y = TASKS[task].X, TASKS[task].y
        dense, sparse = (clone(plain).fit(rows, y) for rows in (X, sp.csr_array(X)))
    rows = TASKS[task].X_test
    assert_close(sparse.decision_function(sp.csr_array(rows)), dense.decision_function(rows))


@pytest.mark.once_per("name")
@every_classifier
@pytest.mark.parametrize("container", SPARSE)
def test_every_sparse_format_is_accepted(container, name):
    expected = fitted(name, is_sparse=True).predict(sp.csr_array(TWO.X_test))
    found = make(name).fit(container(TWO.X), TWO.y).predict(container(TWO.X_test))
    np.testing.assert_array_equal(found, expected)


@every_classifier
def test_indices_of_sparse_rows_may_be_in_any_order(name):
    rows = sp.csr_array(TWO.X)
    backwards = rows.copy()
    for begin, end in zip(rows.indptr[:-1], rows.indptr[1:], strict=True):
        backwards.indices[begin:end] = rows.indices[begin:end][::-1]
        backwards.data[begin:end] = rows.data[begin:end][::-1]
    backwards.has_sorted_indices = False
    backwards.has_canonical_format = False
    found = make(name).fit(backwards, TWO.y).decision_function(TWO.X_test)
    expected = fitted(name, is_sparse=True).decision_function(TWO.X_test)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.once_per("name")
@every_task
@every_classifier
def test_sparse_queries_of_a_dense_fit(name, task):
    model, rows = fitted(name, task), TASKS[task].X_test
    np.testing.assert_allclose(
        model.decision_function(sp.csr_array(rows)), model.decision_function(rows), atol=1e-9
    )


@pytest.mark.once_per("name")
@every_task
@every_classifier
def test_dense_queries_of_a_sparse_fit(name, task):
    model, rows = fitted(name, task, is_sparse=True), TASKS[task].X_test
    np.testing.assert_allclose(
        model.decision_function(rows), model.decision_function(sp.csr_array(rows)), atol=1e-9
    )


def read_only(X):
    X = X.copy()
    X.flags.writeable = False
    return X


LAYOUTS = {
    "Fortran order": np.asfortranarray,
    "every second column": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "every second row": lambda X: np.repeat(X, 2, axis=0)[::2],
    "backwards": lambda X: X[::-1, ::-1].copy()[::-1, ::-1],
    "read-only": read_only,
    "another byte order": lambda X: X.astype(X.dtype.newbyteorder()),
    "nested lists": lambda X: X.tolist(),
}


@pytest.mark.once_per("name")
@every_classifier
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_rows_of_any_layout_give_the_same_decisions(layout, name):
    model = precise(name).fit(layout(TWO.X), np.repeat(TWO.y, 2)[::2])
    plain = fitted(name, is_precise=True)
    assert_close(model.decision_function(layout(TWO.X_test)), plain.decision_function(TWO.X_test))


@every_classifier
def test_fit_leaves_its_input_alone(name):
    X, y, weights = TWO.X.copy(), TWO.y.copy(), np.linspace(1, 2, len(TWO.y))
    make(name).fit(X, y, sample_weight=weights)
    np.testing.assert_array_equal(X, TWO.X)


# Labels of every kind, as the docstrings of fit list them


NAMES = np.array(["no", "yes"])[(TWO.y == TWO.y[0]).astype(int)]
LABELS = {
    "strings": NAMES,
    "strings as objects": NAMES.astype(object),
    "strings in a list": NAMES.tolist(),
    "strings of pandas": pd.Series(NAMES, dtype="string"),
    "strings of polars": pl.Series(NAMES.tolist()),
    "integers": np.where(NAMES == "yes", 7, -3),
    "nullable integers": pd.Series(np.where(NAMES == "yes", 7, -3), dtype="Int64"),
    "booleans": NAMES == "yes",
    "booleans kept as objects": (NAMES == "yes").astype(object),
    "categories": pd.Series(NAMES, dtype="category"),
    "categories of integers": pd.Series(np.where(NAMES == "yes", 7, -3), dtype="category"),
    "categories of polars": pl.Series(NAMES.tolist(), dtype=pl.Categorical),
}


@pytest.mark.once_per("y")
@every_classifier
@pytest.mark.parametrize("y", LABELS.values(), ids=LABELS)
def test_labels_of_every_kind(y, name):
    expected = make(name).fit(TWO.X, NAMES).predict(TWO.X_test)
    found = make(name).fit(TWO.X, y)
    np.testing.assert_array_equal(found.predict(TWO.X_test) == found.classes_[1], expected == "yes")
    assert set(found.classes_) == set(y)


@every_classifier
def test_labels_are_documented(name):
    kinds = "Labels: strings, integers, booleans or categories."
    assert kinds in type(make(name)).fit.__doc__


# Input that is refused


def with_value(value):
    X = TWO.X.copy()
    X[3, 1] = value
    return X


BAD_ROWS = {
    "NaN in sparse rows": ((sp.csr_array(with_value(np.nan)), TWO.y), "NaN"),
    "infinity": ((with_value(np.inf), TWO.y), "infinity"),
    "one dimension": ((TWO.X[:, 0], TWO.y), "1D array"),
    "three dimensions": ((TWO.X[:, :, None], TWO.y), "dim 3"),
    "no rows": ((TWO.X[:0], TWO.y[:0]), "0 sample"),
    "no columns": ((TWO.X[:, :0], TWO.y), r"0 feature\(s\)"),
    "complex numbers": ((TWO.X + 1j, TWO.y), "Complex"),
    "fewer labels": ((TWO.X, TWO.y[:-1]), "inconsistent"),
    "one class": ((TWO.X, np.zeros(len(TWO.y))), "class"),
    "labels of a regression": ((TWO.X, TWO.X[:, 0]), "continuous"),
    "labels with decimals": ((TWO.X, TWO.y + 0.5), "continuous"),
    "integers kept as objects": ((TWO.X, TWO.y.astype(object)), "Unknown label type"),
    "labels of two columns": ((TWO.X, np.column_stack([TWO.y, TWO.y])), "1d array"),
    "no labels": ((TWO.X, None), "y"),
}


def labels_without(missing, kind=None):
    """Labels of TWO as strings, without the second."""
    names = TWO.y.astype(str).tolist()
    return pd.Series([names[0], missing, *names[2:]], dtype=kind)


MISSING_LABELS = {
    "None": labels_without(None, object).to_numpy(),
    "NaN": labels_without(np.nan, object).to_numpy(),
    "NaN in a list": labels_without(np.nan, object).tolist(),
    "NaN in a column": labels_without(np.nan, object).to_frame(),
    "NaN among numbers": labels_without(np.nan, float),
    "NaT": labels_without(pd.NaT, object),
    "NA": labels_without(pd.NA, object),
    "NA among strings": labels_without(pd.NA, "string"),
    "NA among integers": labels_without(np.nan, float).astype("Int64"),
    "category": labels_without(None, "category"),
}


@pytest.mark.once_per("bad")
@every_classifier
@pytest.mark.parametrize("bad", BAD_ROWS.values(), ids=BAD_ROWS)
def test_bad_rows_are_refused(bad, name):
    arguments, words = bad
    with pytest.raises(ValueError, match=words):
        make(name).fit(*arguments)


@pytest.mark.once_per("y")
@every_classifier
@pytest.mark.filterwarnings("ignore:A column-vector y")
@pytest.mark.parametrize("y", MISSING_LABELS.values(), ids=MISSING_LABELS)
def test_missing_labels_are_refused(y, name):
    with pytest.raises(ValueError, match=r"y has no label in 1 of .* the first of them row 1;"):
        make(name).fit(TWO.X, y)


@every_classifier
def test_missing_values_are_refused_or_filled(name):
    rows, model = with_value(np.nan), make(name)
    if name in ("EnsembleSVC", "GreedySVC"):
        assert np.isfinite(model.fit(rows, TWO.y).decision_function(rows)).all()
        return
    with pytest.raises(ValueError, match="NaN"):
        model.fit(rows, TWO.y)
    with pytest.raises(ValueError, match="NaN"):
        fitted(name).predict(rows)


@pytest.mark.once_per("name")
@every_classifier
@pytest.mark.parametrize("parameters", [{"kernel": "gauss"}, {"gamma": -1.0}, {"gamma": "wide"}])
def test_bad_kernels_are_refused(parameters, name):
    with pytest.raises(ValueError, match=next(iter(parameters))):
        make(name, **parameters).fit(TWO.X, TWO.y)


@every_classifier
def test_a_callable_kernel_of_the_wrong_shape_is_refused(name):
    with pytest.raises(ValueError, match="shape"):
        make(name, kernel=lambda A, B: A).fit(TWO.X, TWO.y)


@every_classifier
def test_a_precomputed_kernel_is_square(name):
    with pytest.raises(ValueError, match="square"):
        make(name, kernel="precomputed").fit(TWO.X, TWO.y)


@every_classifier
def test_a_precomputed_kernel_is_not_sparse(name):
    values = sp.csr_array(rbf_kernel(TWO.X))
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        make(name, kernel="precomputed").fit(values, TWO.y)


METHODS = ("predict", "decision_function", "predict_proba", "predict_log_proba", "score")


def methods_of(name):
    return [method for method in METHODS if hasattr(make(name), method)]


METHODS_OF_ALL = [(name, method) for name in CLASSIFIERS for method in methods_of(name)]
every_method = pytest.mark.parametrize(("name", "method"), METHODS_OF_ALL)


def ask(model, method, X):
    arguments = (X, TWO.y_test[: np.shape(X)[0]]) if method == "score" else (X,)
    return getattr(model, method)(*arguments)


@every_method
def test_an_unfitted_classifier_says_so(name, method):
    with pytest.raises(NotFittedError, match=f"This {name} instance is not fitted yet"):
        ask(make(name), method, TWO.X_test)


@every_classifier
def test_an_unfitted_classifier_looks_at_no_rows(name):
    with pytest.raises(NotFittedError):
        make(name).predict("rows")


BAD_QUERIES = {
    "more columns": (np.hstack([TWO.X_test, TWO.X_test]), "8 features"),
    "fewer columns": (TWO.X_test[:, :3], "3 features"),
    "one dimension": (TWO.X_test[0], "1D array"),
    "no rows": (TWO.X_test[:0], "0 sample"),
    "NaN in sparse rows": (sp.csr_array(with_value(np.nan)), "NaN"),
}


@pytest.mark.once_per("name", "method")
@every_method
@pytest.mark.parametrize("bad", BAD_QUERIES.values(), ids=BAD_QUERIES)
def test_bad_queries_are_refused(bad, name, method):
    rows, words = bad
    with pytest.raises(ValueError, match=words):
        ask(fitted(name), method, rows)


@every_classifier
def test_kernel_values_against_some_training_rows_are_refused(name):
    model = make(name, kernel="precomputed").fit(rbf_kernel(TWO.X), TWO.y)
    with pytest.raises(ValueError, match="89 features"):
        model.predict(rbf_kernel(TWO.X_test, TWO.X[:-1]))


@every_classifier
def test_another_fit_may_have_other_columns(name):
    model = make(name).fit(TWO.X, TWO.y).fit(np.hstack([TWO.X, TWO.X]), TWO.y)
    assert model.n_features_in_ == 8
