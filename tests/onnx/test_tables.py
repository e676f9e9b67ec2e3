"""Missing values and categories in graphs."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from problems.onnx_sessions import assert_same_classes, run
from sklearn.datasets import load_wine
from sklearn.pipeline import make_pipeline

from hardmargin import EnsembleSVC, GreedySVC
from hardmargin.onnx import to_onnx

X, Y = load_wine(return_X_y=True)
BOTH = pytest.mark.parametrize("estimator", [EnsembleSVC, GreedySVC])


def table():
    """Numbers with gaps, strings, two categories, categories with gaps, integers, booleans."""
    rng = np.random.default_rng(0)
    n = len(X)
    frame = pd.DataFrame(X[:, :3].copy(), columns=["a", "b", "c"])
    frame.loc[rng.random(n) < 0.1, "a"] = np.nan
    frame["colour"] = np.array(["red", "green", "blue"])[(Y + (rng.random(n) < 0.3)) % 3]
    frame["size"] = pd.Categorical(rng.choice(["S", "L"], n))
    frame["shape"] = rng.choice(["round", "square", None], n)
    frame["count"] = rng.integers(0, 4, n)
    frame["flag"] = rng.random(n) < 0.5
    return frame


@BOTH
def test_missing_numbers(estimator):
    rng = np.random.default_rng(0)
    gaps = X.copy()
    gaps[rng.random(X.shape) < 0.1] = np.nan
    clf = estimator().fit(gaps[::2], Y[::2])
    assert_same_classes(clf, gaps)


@BOTH
def test_data_frames(estimator):
    frame = table()
    clf = estimator().fit(frame[:120], Y[:120])
    assert clf.is_categorical_.sum() == 3
    model = to_onnx(clf, frame)
    assert [value.name for value in model.graph.input] == list(frame.columns)
    assert_same_classes(clf, frame, model)


@pytest.mark.parametrize("names", [["a b", "c"], ["a/b", "a_b"], ["size (cm)", "é"]])
def test_inputs_have_the_names_of_the_columns(names):
    frame = pd.DataFrame(X[:, :2], columns=names)
    clf = GreedySVC().fit(frame, Y)
    assert [value.name for value in to_onnx(clf, frame).graph.input] == names
    assert_same_classes(clf, frame)


def test_data_frames_in_a_pipeline():
    frame = table()
    assert_same_classes(make_pipeline(GreedySVC()).fit(frame[:120], Y[:120]), frame)


def test_listed_categories_of_integers_and_booleans():
    frame = table()
    clf = GreedySVC(categorical_features=["count", "flag"]).fit(frame[:120], Y[:120])
    assert_same_classes(clf, frame)


def test_categories_that_fit_did_not_see():
    frame = table()
    clf = GreedySVC().fit(frame, Y)
    strange = frame.assign(colour="pink", shape="flat", size="XL")
    with pytest.warns(UserWarning, match="was seen in fit"):
        assert_same_classes(clf, strange)


@pytest.mark.parametrize("kind", [str, int])
def test_many_categories(kind):
    code = np.random.default_rng(0).integers(300, size=1_500)
    frame = pd.DataFrame({"code": code.astype(kind), "x": np.arange(1_500.0) % 7})
    clf = GreedySVC(categorical_features=["code"], random_state=0).fit(frame, code % 3)
    model = to_onnx(clf, frame)
    asked = pd.concat([frame[:50], pd.DataFrame({"code": [kind(999)], "x": 0.0})])
    assert_same_classes(clf, asked, model)


@pytest.mark.parametrize("n_codes", [2, 300])
def test_whole_numbers_are_looked_up(n_codes):
    """Neighbours of 2**53 are one number in float64, and a comparison of each with all is large."""
    code = 2**53 + np.random.default_rng(0).integers(n_codes, size=1_500)
    frame = pd.DataFrame({"code": code, "x": np.arange(1_500.0) % 7})
    clf = GreedySVC(categorical_features=["code"], random_state=0).fit(frame, code % 2)
    asked = pd.concat([frame[:50], pd.DataFrame({"code": [-1], "x": 0.0})])
    assert_same_classes(clf, asked, to_onnx(clf, frame))


def test_nullable_numbers():
    frame = table()[["a", "b", "count", "flag"]].convert_dtypes()
    frame.loc[::9, "count"] = pd.NA
    clf = GreedySVC().fit(frame, Y)
    model = to_onnx(clf, frame)
    numbers = frame.astype(np.float64)
    np.testing.assert_allclose(run(model, numbers)[1], clf.predict_proba(frame), rtol=0, atol=1e-4)


GAPS = {
    "nullable": lambda frame: frame.astype({"flag": "boolean", "name": "string"}),
    "objects": lambda frame: frame,
    "arrow": lambda frame: frame.convert_dtypes(dtype_backend="pyarrow"),
    "polars": pl.from_pandas,
    "pyarrow": pa.Table.from_pandas,
}


@pytest.mark.parametrize("kind", GAPS)
def test_gaps_in_booleans_and_strings(kind):
    rng = np.random.default_rng(0)
    flag, name = rng.choice([True, False, None], len(X)), rng.choice(["a", "b", None], len(X))
    plain = pd.DataFrame({"a": X[:, 0], "flag": flag, "name": name})
    frame = GAPS[kind](plain)
    clf = EnsembleSVC().fit(frame, Y)
    fed = plain.astype({"flag": np.float64})
    found = run(to_onnx(clf, frame), fed)[1]
    np.testing.assert_allclose(found, clf.predict_proba(frame), rtol=0, atol=1e-4)


def test_listed_categories_of_booleans_with_gaps():
    rng = np.random.default_rng(0)
    flag = rng.choice([True, False, None], len(X))
    frame = pd.DataFrame({"a": X[:, 0], "flag": flag})
    clf = GreedySVC(categorical_features=["flag"]).fit(frame, Y)
    found = run(to_onnx(clf, frame), frame.astype({"flag": np.float64}))[1]
    np.testing.assert_allclose(found, clf.predict_proba(frame), rtol=0, atol=1e-4)


def test_polars():
    frame = pl.DataFrame({"a": X[:, 0], "b": X[:, 1], "colour": table()["colour"].to_list()})
    assert_same_classes(GreedySVC().fit(frame, Y), frame)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_categories_in_an_array(dtype):
    rng = np.random.default_rng(0)
    codes = rng.choice([0.1, 0.5, np.nan], len(X))
    rows = np.column_stack([X[:, :3], rng.integers(0, 5, len(X)), codes]).astype(dtype)
    clf = GreedySVC(categorical_features=[3, 4]).fit(rows, Y)
    assert_same_classes(clf, rows)


def test_empty_strings_and_missing_ones_are_the_same():
    frame = table()
    frame.loc[:9, "shape"] = ""
    clf = GreedySVC().fit(frame, Y)
    with pytest.raises(ValueError, match="missing values and empty strings"):
        to_onnx(clf, frame)


def test_strings_where_numbers_were():
    clf = GreedySVC().fit(X[:, :3], Y)
    with pytest.raises(ValueError, match="'a' has strings, but the model was fitted to numbers"):
        to_onnx(clf, table()[["a", "b", "c"]].astype(str))


def test_the_number_of_columns_is_checked():
    clf = GreedySVC().fit(X, Y)
    with pytest.raises(ValueError, match="have 4 columns, but the model was fitted to 13"):
        to_onnx(clf, 4)


def test_missing_strings_are_empty_ones():
    frame = table()
    clf = GreedySVC().fit(frame, Y)
    gone = frame.assign(shape=None)
    np.testing.assert_allclose(
        run(to_onnx(clf, frame), gone)[1], clf.predict_proba(gone), rtol=0, atol=1e-4
    )
