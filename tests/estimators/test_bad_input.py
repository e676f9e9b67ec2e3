"""Bad input gets scikit-learn's kind of error, odd input a finite model."""

import functools
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from problems.greedy import paper
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from hardmargin import (
    DiversifiedSVC,
    EnsembleSVC,
    GreedySVC,
    MinimumEnclosingBall,
    ParzenClassifier,
)
from hardmargin.estimators._base.columns import is_data_frame


@functools.cache
def good():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    return X, (X[:, 0] + 0.3 * rng.normal(size=40) > 0).astype(int)


X, Y = good()
WEIGHTS = np.ones(len(Y))


def changed(array, index, value):
    array = array.astype(np.float64)
    array[index] = value
    return array


# name: (X, y, sample_weight), parameters, error, what it says
BAD_FITS = {
    "inf": ((changed(X, (3, 1), np.inf), Y), {}, ValueError, "infinity"),
    "-inf": ((changed(X, (3, 1), -np.inf), Y), {}, ValueError, "infinity"),
    "NaN in sparse rows": ((sp.csr_array(changed(X, (3, 1), np.nan)), Y), {}, ValueError, "NaN"),
    "dates": ((X.astype("datetime64[D]"), Y), {}, ValueError, "dates or times.*skrub"),
    "durations": ((X.astype("timedelta64[D]"), Y), {}, ValueError, "dates or times.*skrub"),
    "no rows": ((X[:0], Y[:0]), {}, ValueError, "0 sample"),
    "no features": ((X[:, :0], Y), {}, ValueError, r"0 feature\(s\)"),
    "one class": ((X, np.ones(len(X))), {}, ValueError, "class"),
    "one row": ((X[:1], Y[:1]), {}, ValueError, "class"),
    "one class of positive weight": ((X, Y, Y.astype(float)), {}, ValueError, "class"),
    "no positive weight": ((X, Y, 0 * WEIGHTS), {}, ValueError, "weight|class"),
    "complex": ((X + 1j, Y), {}, ValueError, "Complex"),
    "text": ((np.array([["a", "b"]] * 20), Y[:20]), {}, ValueError, "string"),
    "objects": ((np.array([[object()]] * 20), Y[:20]), {}, TypeError, "float.* row 0 of column 0"),
    "one dimension": ((X[:, 0], Y), {}, ValueError, "1D array"),
    "three dimensions": ((X[:, :, None], Y), {}, ValueError, "dim 3"),
    "more rows than labels": ((X, Y[:-1]), {}, ValueError, "inconsistent"),
    "labels of two columns": ((X, np.column_stack([Y, Y])), {}, ValueError, "1d array|label"),
    "strings as weights": ((X, Y, ["a"] * 40), {}, ValueError, "sample_weight must have numbers"),
    "lists as weights": ((X, Y, [{}] * 40), {}, TypeError, "sample_weight must have numbers"),
    "labels of two types": (
        (X, np.array([3, "a"] * 20, dtype=object)),
        {},
        ValueError,
        r"type int and str as objects; pass \[str\(label\)",
    ),
    "bytes as objects": (
        (X, np.array([b"normal.", b"smurf."] * 20, dtype=object)),
        {},
        ValueError,
        r"type bytes .*\[label.decode\(\) for label in y\]",
    ),
    "integers as objects": ((X, Y.astype(object)), {}, ValueError, r"type int .*y.astype\(int\)"),
    "continuous labels": ((X, X[:, 0]), {}, ValueError, "continuous"),
    "NaN labels": ((X, changed(Y, 0, np.nan)), {}, ValueError, "no label in 1 of 40"),
    "no labels": ((X, None), {}, ValueError, "y"),
    "negative weight": ((X, Y, changed(WEIGHTS, 2, -1.0)), {}, ValueError, "[Nn]egative"),
    "NaN weight": ((X, Y, changed(WEIGHTS, 2, np.nan)), {}, ValueError, "NaN"),
    "infinite weight": ((X, Y, changed(WEIGHTS, 2, np.inf)), {}, ValueError, "infinity"),
    "too few weights": ((X, Y, WEIGHTS[:-1]), {}, ValueError, "sample_weight"),
    "weights of two columns": ((X, Y, np.ones((len(Y), 2))), {}, ValueError, "1D"),
    "unknown kernel": ((X, Y), {"kernel": "gauss"}, ValueError, "kernel"),
    "unknown method": ((X, Y), {"method": "quick"}, ValueError, "method"),
    "unknown gamma rule": ((X, Y), {"gamma": "auto"}, ValueError, "gamma"),
    "negative gamma": ((X, Y), {"gamma": -1.0}, ValueError, "gamma"),
    "zero gamma": ((X, Y), {"gamma": 0}, ValueError, "gamma"),
    "NaN gamma": ((X, Y), {"gamma": np.nan}, ValueError, "gamma"),
    "unknown memory unit": ((X, Y), {"memory_limit": "2 gallons"}, ValueError, "memory_limit"),
    "empty memory limit": ((X, Y), {"memory_limit": ""}, ValueError, "memory_limit"),
    "negative memory limit": ((X, Y), {"memory_limit": -5}, ValueError, "memory_limit"),
    "no memory": ((X, Y), {"memory_limit": "0GB"}, ValueError, "memory_limit"),
    "unknown dtype": ((X, Y), {"dtype": "float16"}, ValueError, "dtype"),
    "unknown multi_class": ((X, Y), {"multi_class": "all"}, ValueError, "multi_class"),
    "no visits": ((X, Y), {"max_visits": 0}, ValueError, "max_visits"),
    "half a visit": ((X, Y), {"max_visits": 1.5}, ValueError, "max_visits"),
    "no stages": ((X, Y), {"max_stages": 0}, ValueError, "max_stages"),
    "no time": ((X, Y), {"max_time": 0}, ValueError, "max_time"),
    "negative tolerance": ((X, Y), {"step_tol": -0.1}, ValueError, "step_tol"),
    "infinite threshold": ((X, Y), {"threshold": np.inf}, ValueError, "threshold"),
    "unknown class_weight": ((X, Y), {"class_weight": "fair"}, ValueError, "class_weight"),
    "class weight of zero": ((X, Y), {"class_weight": {0: 0.0}}, ValueError, "class_weight"),
    "class weight below zero": ((X, Y), {"class_weight": {0: -1.0}}, ValueError, "class_weight"),
    "NaN class weight": ((X, Y), {"class_weight": {0: np.nan}}, ValueError, "class_weight"),
    "infinite class weight": ((X, Y), {"class_weight": {0: np.inf}}, ValueError, "class_weight"),
    "no jobs": ((X, Y), {"n_jobs": 0}, ValueError, "n_jobs"),
    "bits of continuous columns": ((X, Y), {"method": "bits"}, ValueError, "bit"),
    "lazy linear kernel": ((X, Y), {"method": "lazy", "kernel": "linear"}, ValueError, "method"),
    "kernel matrix that is not square": ((X, Y), {"kernel": "precomputed"}, ValueError, "square"),
    "sparse kernel matrix": (
        (sp.eye_array(40, format="csr"), Y),
        {"kernel": "precomputed"},
        TypeError,
        "[Ss]parse",
    ),
    "callable of the wrong shape": (
        (X, Y),
        {"kernel": lambda A, B: np.ones(len(A))},
        ValueError,
        "shape",
    ),
    "callable of the wrong number of columns": (
        (X, Y),
        {"kernel": lambda A, B: np.ones((len(A), len(B) + 1))},
        ValueError,
        "shape",
    ),
    "callable of NaN": (
        (X, Y),
        {"kernel": lambda A, B: np.full((len(A), len(B)), np.nan)},
        ValueError,
        "finite",
    ),
    "callable of text": (
        (X, Y),
        {"kernel": lambda A, B: np.full((len(A), len(B)), "x")},
        ValueError,
        "could not convert",
    ),
    "poly that overflows": (
        (1e200 * X, Y),
        {"kernel": "poly", "gamma": 1.0, "standardize": False},
        ValueError,
        "overflow|finite|scale",
    ),
    "linear that overflows": (
        (1e200 * X, Y),
        {"kernel": "linear", "standardize": False},
        ValueError,
        "scale",
    ),
    "features too large for float32 kernels": (
        (1e20 * X, Y),
        {"dtype": "float32", "gamma": "scale"},
        ValueError,
        "float32",
    ),
}


@pytest.mark.parametrize("name", BAD_FITS)
def test_bad_fits_are_refused(name):
    arguments, parameters, error, words = BAD_FITS[name]
    with pytest.raises(error, match=words):
        GreedySVC(**parameters).fit(*arguments)


@pytest.mark.parametrize("name", BAD_FITS)
def test_a_refused_fit_leaves_the_earlier_one(name):
    arguments, parameters, error, _ = BAD_FITS[name]
    model = GreedySVC().fit(X, Y).set_params(**parameters)
    before = dict(vars(model))
    with pytest.raises(error):
        model.fit(*arguments)
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[k] is before[k] for k in before)


@pytest.mark.parametrize("name", ["NaN in sparse rows", "one class", "callable of the wrong shape"])
def test_a_refused_first_fit_leaves_no_attributes(name):
    arguments, parameters, error, _ = BAD_FITS[name]
    model = GreedySVC(**parameters)
    with pytest.raises(error):
        model.fit(*arguments)
    assert vars(model).keys() == vars(GreedySVC()).keys()


# Standardised features are not too large.
OF_ENSEMBLES = [
    name
    for name, (_, parameters, _, _) in BAD_FITS.items()
    if parameters.keys() <= EnsembleSVC().get_params().keys()
    and name != "features too large for float32 kernels"
]


@pytest.mark.parametrize("name", OF_ENSEMBLES)
def test_bad_fits_of_ensembles_are_refused(name):
    arguments, parameters, error, words = BAD_FITS[name]
    model = EnsembleSVC().fit(X, Y).set_params(**parameters)
    before = dict(vars(model))
    with pytest.raises(error, match=words):
        model.fit(*arguments)
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[k] is before[k] for k in before)


def notes_of(error):
    return " ".join([str(error), *getattr(error, "__notes__", [])])


def test_missing_values_name_the_imputer():
    with pytest.raises(ValueError, match="NaN") as caught:
        GreedySVC().fit(sp.csr_array(changed(X, (3, 1), np.nan)), Y)
    assert "SimpleImputer" in notes_of(caught.value)


def test_text_names_skrub():
    with pytest.raises(ValueError, match="string") as caught:
        GreedySVC().fit(np.array([["a", "b"]] * 20), Y[:20])
    assert "skrub" in notes_of(caught.value)


# --- where the bad value is ----------------------------------------------------------------------

FRAME = pd.DataFrame(X, columns=["age", "income", "size"])
FLAGS = FRAME.assign(size=np.array([1.0] * 7 + ["False"] * 33, dtype=object))


class Texts(list):
    """A list that knows how long it is, as the other tables do."""

    shape = (40,)


PLACES = {
    "infinity in a column": (
        FRAME.assign(income=changed(X, (7, 1), np.inf)[:, 1]),
        r"infinity.* inf in row 7 of column 'income'.*replace",
    ),
    "infinity in a polars column": (
        pl.DataFrame(changed(X, (7, 1), np.inf), schema=["age", "income", "size"]),
        r"infinity.* inf in row 7 of column 'income'",
    ),
    "infinity in an array": (changed(X, (7, 1), -np.inf), "-inf in row 7 of column 1"),
    "infinity in float32": (changed(X, (7, 1), np.inf).astype(np.float32), "row 7 of column 1"),
    "infinity in sparse rows": (sp.csr_array(changed(X, (7, 1), np.inf)), "row 7 of column 1"),
    "NaN in sparse rows": (sp.csr_array(changed(X, (7, 1), np.nan)), "nan in row 7 of column 1"),
    "text": (FRAME.assign(age="old").to_numpy(), "'old' in row 0 of column 0.* numbers"),
    "False as a string": (FLAGS.to_numpy(), r"'False' in row 7 .* X\[:, 2\] == 'False'"),
    "a column": (FRAME["age"], "1D array.* Series of 40 values, 'age'.*to_frame"),
    "a column without a name": (pd.Series(X[:, 0]), "Series of 40 values. Reshape"),
    "a polars column": (pl.Series("age", X[:, 0]), "1D array.* Series of 40 values, 'age'"),
    "a list of texts": (Texts(f"text {i}" for i in range(40)), r"TfidfVectorizer\("),
    "a column of texts": (pd.Series([f"text {i}" for i in range(40)]), r"TfidfVectorizer\("),
    "a named column of texts": (
        pd.Series(["a", "b"] * 20, name="island"),
        r"categories, .* table\[\['island'\]\]; .*TfidfVectorizer\(",
    ),
    "an array of texts": (np.array(["a", "b"] * 20, dtype=object), r"1D array.*pd.DataFrame\("),
    "an array of strings": (np.array(["a", "b"] * 20), r"1D array.*TfidfVectorizer\("),
    "no rows": (FRAME[:0], "X has 3 columns and no rows"),
    "no rows of strings": (FRAME[:0].astype(str), "X has 3 columns and no rows"),
}
OTHERS = [EnsembleSVC, GreedySVC, ParzenClassifier, MinimumEnclosingBall, DiversifiedSVC]


@pytest.mark.parametrize("estimator", OTHERS)
@pytest.mark.parametrize("name", PLACES)
def test_a_value_that_cannot_be_used_has_a_place(estimator, name):
    rows, words = PLACES[name]
    with pytest.raises(ValueError, match=words):
        estimator().fit(rows, Y[: rows.shape[0]])


@pytest.mark.parametrize("name", PLACES)
def test_such_a_value_has_a_place_in_queries_too(name):
    rows, words = PLACES[name]
    model = GreedySVC(1.0, max_visits=1).fit(FRAME if is_data_frame(rows) else X, Y)
    with pytest.raises(ValueError, match=words):
        model.predict(rows)


NO_TABLES = {
    "a list of dicts": (FRAME.to_dict("records"), r"list of dicts: pass pd.DataFrame\(X\)"),
    "a dict of columns": (FRAME.to_dict("list"), r"pd.DataFrame\(X\) if it has columns"),
    "a structured array": (FRAME.to_records(index=False), r"pass pd.DataFrame\(X\)"),
}


@pytest.mark.parametrize("estimator", OTHERS)
@pytest.mark.parametrize("name", NO_TABLES)
def test_what_is_no_table_names_what_makes_one(estimator, name):
    rows, words = NO_TABLES[name]
    with pytest.raises(TypeError, match=words):
        estimator().fit(rows, Y)


@pytest.mark.parametrize("name", NO_TABLES)
def test_so_do_queries(name):
    rows, words = NO_TABLES[name]
    with pytest.raises(TypeError, match=words):
        GreedySVC(1.0, max_visits=1).fit(FRAME, Y).predict(rows)


@pytest.mark.parametrize("others", [["True", None], [2.5, 7.0]])
@pytest.mark.parametrize("make", [pd.DataFrame, np.asarray])
def test_only_columns_of_truths_are_to_be_booleans(others, make):
    rows = make(np.array([*(["False"] * 38), *others], dtype=object)[:, None])
    with pytest.raises(ValueError, match="'False' in row 0 of column 0") as caught:
        ParzenClassifier().fit(rows, Y)
    assert ("is a column of booleans" in str(caught.value)) == ("True" in others)


def test_a_missing_value_of_pandas_has_a_place_where_none_may_be():
    rows = FRAME.astype(object)
    rows.loc[3, "income"] = pd.NA
    for given, column in ((rows, "'income'"), (rows.to_numpy(), "1")):
        with pytest.raises(ValueError, match=rf"NaN. The first is nan in row 3 of column {column}"):
            ParzenClassifier().fit(given, Y)


def test_a_missing_value_has_a_place_where_none_may_be():
    with pytest.raises(ValueError, match=r"NaN. The first is nan in row 3 of column 'income'"):
        ParzenClassifier().fit(FRAME.assign(income=changed(X, (3, 1), np.nan)[:, 1]), Y)


def test_a_place_is_not_among_the_categories():
    frame = FRAME.assign(name=np.where(Y, "a", "b"), age=changed(X, (9, 0), np.inf)[:, 0])
    with pytest.raises(ValueError, match=r"inf in row 9 of column 'age'"):
        GreedySVC().fit(frame[["name", "age"]], Y)


NAMED = FRAME.assign(name=np.where(Y, "a", "b"))


@functools.cache
def model_of_names():
    return GreedySVC(1.0, max_visits=1).fit(NAMED, Y)


def test_infinity_among_categories_has_a_place_in_queries():
    with pytest.raises(ValueError, match=r"infinity.* inf in row 9 of column 'age'"):
        model_of_names().predict(NAMED.assign(age=changed(X, (9, 0), np.inf)[:, 0]))


def test_columns_in_another_order_are_not_asked_to_be_numbers():
    with pytest.raises(ValueError, match="same order") as caught:
        model_of_names().predict(NAMED[NAMED.columns[::-1]])
    assert "not a number" not in str(caught.value)
    assert "X[model.feature_names_in_]" in caught.value.__notes__[0]


@pytest.mark.parametrize("estimator", [GreedySVC, DiversifiedSVC])
def test_booleans_kept_as_objects_are_labels(estimator):
    labels = pd.Series(Y == 1, dtype=object)
    model = estimator().fit(X, labels)
    assert model.classes_.dtype == bool
    assert model.score(X, labels) == np.mean(model.predict(X) == (Y == 1))


# --- bad queries ---------------------------------------------------------------------------------

METHODS = pytest.mark.parametrize(
    "method", ["predict", "decision_function", "staged_decision_function", "staged_predict"]
)
BAD_QUERIES = {
    "too few features": (X[:, :2], ValueError, "2 features"),
    "too many features": (np.hstack([X, X]), ValueError, "6 features"),
    "NaN in sparse rows": (sp.csr_array(changed(X, (3, 1), np.nan)), ValueError, "NaN"),
    "inf": (changed(X, (3, 1), np.inf), ValueError, "infinity"),
    "no rows": (X[:0], ValueError, "0 sample"),
    "one dimension": (X[0], ValueError, "1D array"),
    "complex": (X + 1j, ValueError, "Complex"),
    "text": (np.array([["a", "b", "c"]]), ValueError, "string"),
    "too few sparse features": (sp.csr_array(X[:, :2]), ValueError, "2 features"),
}


@METHODS
@pytest.mark.parametrize("name", BAD_QUERIES)
def test_bad_queries_are_refused(method, name):
    queries, error, words = BAD_QUERIES[name]
    model = GreedySVC().fit(X, Y)
    with pytest.raises(error, match=words):
        list(getattr(model, method)(queries))


@METHODS
def test_unfitted_models_say_so(method):
    with pytest.raises(NotFittedError):
        list(getattr(GreedySVC(), method)(X))


def test_unfitted_linear_models_have_no_coef():
    with pytest.raises(NotFittedError):
        GreedySVC(kernel="linear").coef_  # noqa: B018


def test_precomputed_queries_need_a_column_per_training_row():
    model = GreedySVC(kernel="precomputed").fit(X @ X.T, Y)
    with pytest.raises(ValueError, match="features"):
        model.predict(X @ X[:5].T)


# --- odd but valid -------------------------------------------------------------------------------


def finite_model(X, y, **parameters):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = paper(**parameters).fit(X, y)
    attributes = [model.dual_coef_, model.weight_norm_, model.vc_bound_, model.decision_function(X)]
    return all(np.isfinite(a).all() for a in attributes)


VISITS = pytest.mark.parametrize("max_visits", [1, 4])


@VISITS
@pytest.mark.parametrize(
    "kernel", ["rbf", "laplacian", "matern32", "matern52", "linear", "cosine", "poly", "sigmoid"]
)
def test_constant_columns(kernel, max_visits):
    columns = np.hstack([X, np.full((len(X), 2), 5.0)])
    assert finite_model(columns, Y, kernel=kernel, max_visits=max_visits)


@VISITS
@pytest.mark.parametrize(
    "kernel", ["rbf", "laplacian", "matern32", "matern52", "linear", "cosine", "poly", "sigmoid"]
)
@pytest.mark.parametrize("value", [0.0, 1.0, 0.1, -1e6])
def test_rows_that_are_all_equal(kernel, value, max_visits):
    rows = np.full((20, 2), value)
    with pytest.warns(UserWarning, match="All rows look the same to the kernel"):
        assert finite_model(rows, Y[:20], kernel=kernel, max_visits=max_visits)


@VISITS
@pytest.mark.parametrize(
    "kernel", ["rbf", "laplacian", "matern32", "matern52", "linear", "cosine", "poly"]
)
def test_duplicates_with_opposite_labels(kernel, max_visits):
    assert finite_model(
        np.vstack([X, X]), np.concatenate([Y, 1 - Y]), kernel=kernel, max_visits=max_visits
    )


def test_conflicting_duplicates_converge_without_a_warning():
    model = paper().fit(np.vstack([X, X]), np.concatenate([Y, 1 - Y]))
    assert model.stop_reason_ in {"converged", "exhausted"}


@pytest.mark.parametrize(
    "kernel", ["rbf", "laplacian", "matern32", "matern52", "linear", "cosine", "poly", "sigmoid"]
)
def test_a_single_feature(kernel):
    assert finite_model(X[:, :1], Y, kernel=kernel)


def test_two_rows():
    assert paper().fit([[0.0], [1.0]], [0, 1]).predict([[0.1], [0.9]]).tolist() == [0, 1]


def test_one_row_per_class():
    model = paper(gamma=1.0).fit(np.eye(5), list("abcde"))
    assert model.predict(np.eye(5)).tolist() == list("abcde")


@pytest.mark.filterwarnings("ignore:.*look the same to the")
@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1e100])
@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
def test_rows_of_extreme_size(kernel, scale):
    assert finite_model(scale * X, Y, kernel=kernel)


@pytest.mark.parametrize("scale", [1e160, 1e300])
@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
def test_rows_beyond_the_range_of_a_width(kernel, scale):
    with pytest.raises(ValueError, match="gamma='scale' cannot be computed for features as large"):
        paper(kernel=kernel).fit(scale * X, Y)
    assert finite_model(scale * X, Y, kernel=kernel, gamma=1.0)


@pytest.mark.filterwarnings("ignore:.*look the same to the")
@pytest.mark.parametrize("scale", [1e19, 1e37])
@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
def test_large_float32_rows(kernel, scale):
    assert finite_model((scale * X).astype(np.float32), Y, kernel=kernel)


def test_large_features_among_many_rows():
    rng = np.random.default_rng(0)
    rows = 1e20 * rng.normal(size=(5100, 2))
    assert finite_model(rows, (rows[:, 0] > 0).astype(int))


@pytest.mark.parametrize("scale", [1e-300, 1e-30, 1e12])
def test_linear_kernel_of_rows_of_extreme_size(scale):
    assert finite_model(scale * X, Y, kernel="linear")


@pytest.mark.parametrize("weight", [1e-300, 1e-12])
def test_tiny_weights(weight):
    model = paper().fit(X, Y, sample_weight=np.where(np.arange(len(Y)) % 2, weight, 1.0))
    assert np.isfinite(model.decision_function(X)).all()


@pytest.mark.filterwarnings("ignore:.*look the same to the")
@pytest.mark.parametrize("gamma", [1e-300, 1e300])
@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
def test_extreme_gammas(kernel, gamma):
    assert finite_model(X, Y, kernel=kernel, gamma=gamma)


NUMBER_TYPES = [
    *(np.dtype(c) for c in "?bBhHiIlLqQefdg"),
    np.dtype(">f8"),
    np.dtype(">f4"),
    np.dtype(">i4"),
    np.dtype(object),
]


@pytest.mark.parametrize("dtype", NUMBER_TYPES, ids=str)
def test_numbers_of_every_type(dtype):
    rows = (np.abs(X) > 0.5).astype(dtype)
    expected = paper(gamma=1.0).fit(rows.astype(np.float64), Y).predict(rows.astype(float))
    assert paper(gamma=1.0).fit(rows, Y).predict(rows).tolist() == expected.tolist()


@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.int64, np.float32, np.float64])
@pytest.mark.parametrize("container", [sp.csr_array, sp.csr_matrix])
def test_sparse_numbers_of_every_type(container, dtype):
    rows = container((np.abs(X) > 0.5).astype(dtype))
    assert finite_model(rows, Y)


@pytest.mark.filterwarnings("ignore:.*look the same to the")
def test_sparse_rows_without_any_entry():
    assert finite_model(sp.csr_array((20, 7)), Y[:20])


@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_sparse_indices_of_either_size(index):
    rows = sp.csr_array(X)
    rows.indices, rows.indptr = rows.indices.astype(index), rows.indptr.astype(index)
    assert finite_model(rows, Y)


def test_a_class_weight_dict_may_name_labels_that_do_not_occur():
    model = GreedySVC(class_weight={0: 1.0, 1: 1.0, 7: 3.0}).fit(X, Y)
    assert model.classes_.tolist() == [0, 1]


def test_no_labels_for_no_rows():
    for dtype in ("str", object):
        with pytest.raises(ValueError, match=r"0 sample\(s\)"):
            EnsembleSVC().fit(FRAME[:0], pd.Series([], dtype=dtype))


def test_an_array_of_numbers_and_strings_names_what_takes_it():
    rows = np.hstack([X.astype(object), np.array([["a"], ["b"]] * 20, dtype=object)])
    with pytest.raises(ValueError, match=r"pass a data frame.*categorical_features=\[3\]"):
        EnsembleSVC().fit(rows, Y)
    EnsembleSVC(categorical_features=[3]).fit(rows, Y)
    with pytest.raises(ValueError, match="Turn the column into numbers"):
        ParzenClassifier().fit(rows, Y)


def test_missing_values_are_refused_in_sparse_rows_alone():
    rows = sp.csr_array(changed(X, (7, 1), np.nan))
    with pytest.raises(ValueError, match=r"not in sparse rows: pass X.toarray\(\)") as caught:
        EnsembleSVC().fit(rows, Y)
    assert "does not accept" not in str(caught.value)
    EnsembleSVC().fit(rows.toarray(), Y)


def test_empty_columns_keep_their_names():
    with pytest.warns(UserWarning, match="ignored: column size. They keep their names"):
        model = GreedySVC(1.0, max_visits=1).fit(FRAME.assign(size=np.nan), Y)
    assert list(model.get_feature_names_out()) == ["age", "income", "size"]
