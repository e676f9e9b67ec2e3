"""Tables as they come: missing values, categories, and data frames of pandas and polars."""

import pickle
import warnings
from datetime import date, datetime
from decimal import Decimal
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.compose import make_column_transformer
from sklearn.feature_selection import SelectFromModel
from sklearn.impute import SimpleImputer
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from hardmargin import EnsembleSVC, GreedySVC, RhoEnsembleSVC, compress
from hardmargin.estimators._base import categories, columns
from hardmargin.estimators._base.missing import find_filling

NAMED = {pd.DataFrame: {"columns": ["a", "b"]}, pl.DataFrame: {"orient": "row"}}
BOTH = pytest.mark.parametrize("estimator", [EnsembleSVC, GreedySVC])
N_TRAIN = 151


def table(n=221):
    """A table with every kind of column, in which colour and age matter."""
    rng = np.random.default_rng(0)
    colour = rng.choice(["red", "green", "blue"], n)
    age, is_member = rng.normal(40, 10, n), rng.random(n) < 0.3
    score = 2.0 * (colour == "red") + (age - 40) / 10 + is_member + rng.normal(0, 0.5, n)
    age[rng.random(n) < 0.2] = np.nan
    frame = pd.DataFrame(
        {
            "colour": pd.Categorical(colour),
            "age": age,
            "member": is_member,
            "size": rng.choice(["S", "L"], n),
            "noise": rng.normal(size=n),
        }
    )
    return frame, np.where(score > 1, "buys", "leaves")


FRAME, Y = table()
TRAIN, QUERIES = FRAME[:N_TRAIN], FRAME[N_TRAIN:]
Y_TRAIN = Y[:N_TRAIN]


def as_polars(frame):
    return pl.DataFrame(
        {
            "colour": pl.Series(frame["colour"].astype(str).tolist(), dtype=pl.Categorical),
            "age": pl.Series(frame["age"].to_numpy(), nan_to_null=True),
            "member": frame["member"].to_numpy(),
            "size": frame["size"].tolist(),
            "noise": frame["noise"].to_numpy(),
        }
    )


@pytest.fixture(scope="module", params=[EnsembleSVC, GreedySVC])
def fitted(request):
    return request.param().fit(TRAIN, Y_TRAIN)


def test_a_table_is_encoded_as_by_scikit_learn(fitted):
    encoder = make_column_transformer(
        (OneHotEncoder(sparse_output=False), ["colour"]),
        (SimpleImputer(strategy="median"), ["age"]),
        ("passthrough", ["member"]),
        (OneHotEncoder(drop="first", sparse_output=False), ["size"]),
        ("passthrough", ["noise"]),
        (SimpleImputer(strategy="median", add_indicator=True), ["age"]),
    )
    encoded = encoder.fit(TRAIN).transform(TRAIN)
    columns = [0, 1, 2, 3, 4, 5, 6, 8]
    # Their median of an even number of values is between two of them.
    assert TRAIN["age"].notna().sum() % 2 == 1
    queries = encoder.transform(QUERIES)[:, columns].astype(float)
    plain = type(fitted)().fit(encoded[:, columns].astype(float), Y_TRAIN)
    np.testing.assert_allclose(
        fitted.decision_function(QUERIES), plain.decision_function(queries), rtol=1e-7, atol=1e-9
    )


def test_polars_and_pandas_give_the_same_model(fitted):
    other = type(fitted)().fit(as_polars(TRAIN), Y_TRAIN)
    expected = fitted.predict_proba(QUERIES)
    np.testing.assert_array_equal(other.predict_proba(as_polars(QUERIES)), expected)


def test_names_of_the_columns_that_kernels_see(fitted):
    assert fitted.get_feature_names_out().tolist() == [
        *("colour_blue", "colour_green", "colour_red", "age", "member", "size_S", "noise"),
        "age_missing",
    ]
    assert fitted.support_vectors_.shape[1] == 8
    assert fitted.n_features_in_ == 5
    assert fitted.feature_names_in_.tolist() == list(FRAME.columns)
    assert fitted.is_categorical_.tolist() == [True, False, False, True, False]


def test_names_of_columns_without_names():
    X = TRAIN[["age", "noise"]].to_numpy()
    clf = GreedySVC(1.0, max_visits=1).fit(X, Y_TRAIN)
    assert clf.get_feature_names_out().tolist() == ["x0", "x1", "x0_missing"]
    assert clf.get_feature_names_out(["a", "b"]).tolist() == ["a", "b", "a_missing"]
    assert clf.is_categorical_ is None


def test_relevance_belongs_to_the_columns_of_the_table():
    clf = EnsembleSVC().fit(TRAIN, Y_TRAIN)
    assert clf.relevance_.shape == clf.feature_importances_.shape == (5,)
    by_name = dict(zip(clf.get_feature_names_out(), clf.encoded_relevance_, strict=True))
    expected = [
        max(by_name[f"colour_{name}"] for name in ("red", "green", "blue")),
        max(by_name["age"], by_name["age_missing"]),
        *(by_name[name] for name in ("member", "size_S", "noise")),
    ]
    np.testing.assert_array_equal(clf.relevance_, expected)
    assert set(np.argsort(clf.relevance_)[-2:]) == {0, 1}


def test_features_can_be_selected_by_their_relevance():
    selector = SelectFromModel(EnsembleSVC(), max_features=2).fit(TRAIN, Y_TRAIN)
    assert list(selector.get_feature_names_out()) == ["colour", "age"]


# Categories


def test_an_unseen_category_is_like_no_other():
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"kind": rng.choice(["a", "b", "c"], 200), "x": rng.normal(size=200)})
    clf = GreedySVC(1.0, max_visits=1, standardize=False).fit(frame, frame["kind"] == "a")
    new = pd.DataFrame({"kind": ["a", "b", "c", "d"], "x": 0.0})
    encoded = clf._check_rows(new)
    np.testing.assert_array_equal(encoded[:, :3], [*np.eye(3), np.zeros(3)])


def test_an_unseen_category_is_between_two_known_ones():
    frame = pd.DataFrame({"kind": ["a", "b"] * 20, "x": np.arange(40.0)})
    clf = GreedySVC(1.0, max_visits=1, standardize=False).fit(frame, frame["kind"])
    new = pd.DataFrame({"kind": ["a", "b", "d"], "x": 0.0})
    np.testing.assert_array_equal(clf._check_rows(new)[:, 0], [0.0, 1.0, 0.5])


@BOTH
@pytest.mark.parametrize("missing", [None, np.nan, pd.NA], ids=["None", "NaN", "NA"])
def test_a_missing_category_is_a_category(estimator, missing):
    kind = ["a", "b", missing] * 30
    frame = pd.DataFrame({"kind": pd.Series(kind, dtype=object), "x": np.arange(90.0) % 7})
    y = np.array([0, 0, 1] * 30)
    clf = estimator().fit(frame, y)
    assert "kind_missing" in clf.get_feature_names_out()
    assert clf.score(frame, y) == 1.0


SERIES = {
    "category": lambda v: pd.Series(v, dtype="category"),
    "category of numbers": lambda v: pd.Series([ord(c) for c in v], dtype="category"),
    "object": lambda v: pd.Series(v, dtype=object),
    "string": lambda v: pd.Series(v, dtype="string"),
    "polars string": lambda v: pl.Series(v),
    "polars categorical": lambda v: pl.Series(v, dtype=pl.Categorical),
    "polars enum": lambda v: pl.Series(v, dtype=pl.Enum(["a", "b", "c"])),
}


@pytest.mark.parametrize("kind", SERIES)
def test_types_of_columns_tell_the_categories(kind):
    values = ["a", "b", "c", "a"] * 10
    module = pl if kind.startswith("polars") else pd
    frame = module.DataFrame({"kind": SERIES[kind](values), "x": np.arange(40.0)})
    clf = GreedySVC(1.0, max_visits=1).fit(frame, np.array(values) == "a")
    assert clf.is_categorical_.tolist() == [True, False]
    assert clf.support_vectors_.shape[1] == 4


NUMBERS = {
    "bool": pd.Series([True, False] * 20),
    "nullable bool": pd.Series([True, None] * 20, dtype="boolean"),
    "nullable int": pd.Series([1, None, 2, 3] * 10, dtype="Int64"),
    "numbers as objects": pd.Series([1.5, 2, None, 3] * 10, dtype=object),
    "booleans as objects": pd.Series([True, None, False, pd.NA] * 10, dtype=object),
    "pandas' NA": pd.Series([1.5, 2, pd.NA, 3] * 10, dtype=object),
    "decimals": pd.Series([Decimal("1.5"), Decimal(2), None, Decimal(3)] * 10),
    "float32": pd.Series(np.arange(40), dtype=np.float32),
}


@pytest.mark.parametrize("kind", NUMBERS)
def test_numbers_are_no_categories(kind):
    frame = pd.DataFrame({"x": NUMBERS[kind], "z": np.arange(40.0) % 3})
    clf = GreedySVC(1.0, max_visits=1).fit(frame, np.arange(40) % 3 > 0)
    assert clf.is_categorical_ is None
    assert clf.score(frame, np.arange(40) % 3 > 0) == 1.0


def test_missing_values_of_pandas_in_arrays_are_missing():
    rows, y = np.array([[1, pd.NA], [2, 0.5]] * 20, dtype=object), [0, 1] * 20
    clf = GreedySVC(1.0, max_visits=1).fit(rows, y)
    assert clf.get_feature_names_out().tolist() == ["x0", "x1", "x1_missing"]
    expected = clf.decision_function([[1, np.nan], [2, 0.5]])
    np.testing.assert_array_equal(clf.decision_function(rows[:2]), expected)


@BOTH
def test_a_table_of_pyarrow_is_read_as_a_data_frame(estimator):
    clf = estimator().fit(pa.Table.from_pandas(TRAIN.reset_index(drop=True)), Y_TRAIN)
    expected = estimator().fit(TRAIN, Y_TRAIN).decision_function(QUERIES)
    for queries in (QUERIES, pa.Table.from_pandas(QUERIES), pa.RecordBatch.from_pandas(QUERIES)):
        np.testing.assert_array_equal(clf.decision_function(queries), expected)


CHOSEN = {
    "names": ["code"],
    "numbers": [0],
    "negative numbers": [-2],
    "booleans": [True, False],
    "array": np.array(["code"]),
}


@pytest.mark.parametrize("kind", CHOSEN)
def test_columns_of_categories_can_be_listed(kind):
    frame = pd.DataFrame({"code": [7, 8, 9, 7] * 10, "x": np.arange(40.0)})
    clf = GreedySVC(1.0, max_visits=1, categorical_features=CHOSEN[kind])
    clf.fit(frame, frame["code"] == 7)
    assert clf.get_feature_names_out().tolist() == ["code_7", "code_8", "code_9", "x"]


def test_columns_of_an_array_can_be_categories():
    X = np.array([["a", 1.0], ["b", 2.0], ["c", 3.0], ["a", np.nan]] * 10, dtype=object)
    clf = GreedySVC(1.0, max_visits=1, categorical_features=[0]).fit(X, X[:, 0] == "a")
    names = ["x0_a", "x0_b", "x0_c", "x1", "x1_missing"]
    assert clf.get_feature_names_out().tolist() == names
    assert clf.score(X.tolist(), X[:, 0] == "a") == 1.0


def test_one_dimension_is_refused_as_ever():
    with pytest.raises(ValueError, match="1D array"):
        GreedySVC(categorical_features=[0]).fit([1.0, 2.0], [0, 1])


BAD = {
    "unknown name": (
        {"categorical_features": ["colours"]},
        FRAME,
        "'colours', which is not a column",
    ),
    "number too large": ({"categorical_features": [5]}, FRAME, "5, which is not a column"),
    "too few booleans": ({"categorical_features": [True]}, FRAME, "1 booleans, but X has 5"),
    "unknown rule": ({"categorical_features": "auto"}, FRAME, "categorical_features"),
    "sparse": ({"categorical_features": [0]}, sp.eye_array(len(Y)).tocsr(), "Sparse rows"),
    "none": ({"categorical_features": None}, FRAME, "convert string|cast object"),
    "text": ({}, FRAME.assign(note=[f"note {i}" for i in range(len(Y))]), "skrub"),
    "dates": ({}, FRAME.assign(day=pd.Timestamp("2020-02-02")), "dates or times.*skrub"),
    "polars dates": ({}, pl.DataFrame({"day": [date(2020, 2, 2)] * len(Y)}), "skrub"),
    "complex numbers": (
        {},
        pd.DataFrame({"z": np.arange(40) * 1j, "flag": pd.array([True, None] * 20, "boolean")}),
        "Complex data not supported: column 'z'",
    ),
    "too many categories": (
        {"categorical_features": ["code"]},
        pd.DataFrame({"code": np.arange(300)}),
        "300 categories.*skrub",
    ),
}


@BOTH
@pytest.mark.parametrize("name", BAD)
def test_tables_that_cannot_be_read(estimator, name):
    parameters, X, message = BAD[name]
    y = np.resize(Y, len(X) if isinstance(X, pd.DataFrame | pl.DataFrame) else X.shape[0])
    with pytest.raises(ValueError, match=message):
        estimator(**parameters).fit(X, y)


INTERVALS = pd.interval_range(0, 4).repeat(10)
STRANGE = {
    "lists": (pd.Series([[1, 2]] * 40), "list"),
    "lists among strings": (pd.Series(["a", [1, 2]] * 20), "list"),
    "dictionaries": (pd.Series([{"a": 1}] * 40), "dict"),
    "bytes": (pd.Series([b"a", b"b"] * 20), "bytes"),
    "intervals": (pd.Series(INTERVALS), "interval"),
    "intervals as objects": (pd.Series(INTERVALS, dtype=object), "Interval"),
    "dates as objects": (pd.Series([date(2020, 2, 2)] * 40, dtype=object), "date"),
    "polars list": (pl.Series([[1, 2]] * 40), "list"),
    "polars array": (pl.Series([[1, 2]] * 40, dtype=pl.Array(pl.Int64, 2)), "array"),
    "polars struct": (pl.Series([{"a": 1}] * 40), "struct"),
    "polars binary": (pl.Series([b"a", b"b"] * 20), "binary"),
}


def with_column(values):
    module = pl if isinstance(values, pl.Series) else pd
    return module.DataFrame({"x": np.arange(40.0) % 7, "odd": values})


@BOTH
@pytest.mark.parametrize("name", STRANGE)
def test_values_that_are_neither_numbers_nor_strings_are_named(estimator, name):
    values, kind = STRANGE[name]
    with pytest.raises(ValueError, match=f"^Column 'odd' has values of type {kind}, .*skrub"):
        estimator().fit(with_column(values), np.arange(40) % 2)


@pytest.mark.parametrize("name", STRANGE)
def test_such_values_are_named_in_predictions_too(name):
    values = STRANGE[name][0]
    numbers = with_column(type(values)(np.arange(40.0)))
    clf = GreedySVC(1.0, max_visits=1).fit(numbers, np.arange(40) % 2)
    with pytest.raises((TypeError, ValueError)) as caught:
        clf.predict(with_column(values))
    assert "'odd'" in "".join([str(caught.value), *getattr(caught.value, "__notes__", [])])


@pytest.mark.parametrize("name", ["intervals", "intervals as objects", "bytes"])
def test_such_values_may_be_listed_as_categories(name):
    frame, y = with_column(STRANGE[name][0]), np.arange(40) % 2
    clf = GreedySVC(1.0, max_visits=1, categorical_features=["odd"]).fit(frame, y)
    assert clf.is_categorical_.tolist() == [False, True]
    assert np.isfinite(clf.decision_function(frame)).all()


@pytest.mark.parametrize("estimator", [EnsembleSVC, GreedySVC, RhoEnsembleSVC])
def test_a_lazy_frame_must_be_collected(estimator):
    frame, y = pl.DataFrame({"x": np.arange(40.0) % 7}), np.arange(40) % 7 > 3
    with pytest.raises(TypeError, match=r"LazyFrame .* call X\.collect\(\)"):
        estimator().fit(frame.lazy(), y)
    with pytest.raises(TypeError, match=r"LazyFrame .* call X\.collect\(\)"):
        estimator().fit(frame, y).predict(frame.lazy())


def test_columns_that_are_no_numbers_can_be_categories():
    with pytest.raises(ValueError, match=r"convert string|cast object") as caught:
        GreedySVC(categorical_features=None).fit(FRAME, Y)
    assert "categorical_features" in caught.value.__notes__[0]


def test_a_failed_fit_keeps_the_categories_of_the_last_one():
    clf = GreedySVC(1.0, max_visits=1).fit(TRAIN, Y_TRAIN)
    before = clf.decision_function(QUERIES)
    with pytest.raises(ValueError, match="skrub"):
        clf.fit(BAD["text"][1], Y)
    np.testing.assert_array_equal(clf.decision_function(QUERIES), before)


def test_columns_must_be_those_of_fit(fitted):
    with pytest.raises(ValueError, match="feature names should match"):
        fitted.predict(QUERIES.drop(columns="size"))


CODES = [7, 8, 9, 7] * 10
SPELLINGS = {
    "int": CODES,
    "float": [float(code) for code in CODES],
    "string": [str(code) for code in CODES],
    "category": pd.Categorical(CODES),
}


@pytest.mark.parametrize("trained", SPELLINGS)
@pytest.mark.parametrize("asked", SPELLINGS)
def test_codes_may_be_numbers_or_strings(trained, asked):
    frames = [
        pd.DataFrame({"code": SPELLINGS[kind], "x": np.arange(40.0)}) for kind in (trained, asked)
    ]
    y = np.array(CODES) == 7
    clf = GreedySVC(1.0, max_visits=1, categorical_features=["code"]).fit(frames[0], y)
    assert clf.score(frames[1], y) == 1.0


def test_infinity_may_be_a_category():
    frame = pd.DataFrame({"level": [1.0, 2.0, np.inf, 1.0] * 10})
    clf = GreedySVC(1.0, max_visits=1, categorical_features=["level"])
    clf.fit(frame, np.isinf(frame["level"]))
    assert clf.get_feature_names_out().tolist() == ["level_1", "level_2", "level_inf"]


def test_a_column_of_strangers_raises_a_warning():
    clf = GreedySVC(1.0, max_visits=1).fit(TRAIN, Y_TRAIN)
    shouted = QUERIES.assign(colour=QUERIES["colour"].astype(str).str.upper())
    with pytest.warns(
        UserWarning, match="None of the values in column 'colour' .* was seen in fit"
    ):
        clf.predict(shouted)


def test_columns_that_are_listed_add_to_those_that_types_tell():
    frame = TRAIN.assign(code=np.arange(N_TRAIN) % 3)
    clf = GreedySVC(1.0, max_visits=1, categorical_features=["code"]).fit(frame, Y_TRAIN)
    assert clf.is_categorical_.tolist() == [True, False, False, True, False, True]


@pytest.mark.parametrize("module", [pd, pl])
def test_dates_are_refused_in_predictions_too(module):
    clf = GreedySVC(1.0, max_visits=1).fit(module.DataFrame({"x": np.arange(20.0)}), [0, 1] * 10)
    days = {"x": [datetime(2020, 2, 2)] * 2}
    with pytest.raises(ValueError, match="Column 'x' has dates or times"):
        clf.predict(module.DataFrame(days))


def test_strings_where_fit_had_numbers_are_named():
    clf = GreedySVC(1.0, max_visits=1).fit(TRAIN, Y_TRAIN)
    with pytest.raises(ValueError, match="string") as caught:
        clf.predict(QUERIES.assign(age="old"))
    assert "'age'" in caught.value.__notes__[0]


def test_more_strings_than_categories_may_be_are_not_to_be_listed():
    frame = pd.DataFrame({"name": [f"name {i}" for i in range(300)]})
    with pytest.raises(ValueError, match="300 different strings") as caught:
        GreedySVC().fit(frame, np.arange(300) % 2)
    assert "categorical_features" not in str(caught.value)


def test_categories_mixed_of_strings_and_numbers_are_compared_as_strings():
    frame = pd.DataFrame({"kind": pd.Series([1, "1", "b", "c"] * 10, dtype=object)})
    clf = GreedySVC(1.0, max_visits=1).fit(frame, np.array([0, 0, 1, 1] * 10))
    assert clf.get_feature_names_out().tolist() == ["kind_1", "kind_b", "kind_c"]


def test_equal_numbers_with_other_names_are_other_categories():
    frame = pd.DataFrame({"kind": pd.Series([1, True, 1.0, "b"] * 10, dtype=object)})
    clf = GreedySVC(1.0, max_visits=1).fit(frame, np.array([0, 1, 0, 1] * 10))
    assert clf.get_feature_names_out().tolist() == ["kind_1", "kind_True", "kind_b"]


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, np.array], ids=["pd", "pl", "array"])
def test_every_category_is_looked_at_once(make, monkeypatch):
    looks = []
    is_missing = columns.is_missing
    monkeypatch.setattr(columns, "is_missing", lambda v: looks.append(v) or is_missing(v))
    rows = [["a", "x"], ["b", "y"], [None, "x"]] * 1000
    X = np.array(rows, dtype=object) if make is np.array else make(rows, **NAMED[make])
    known = categories.find_categories(X, [0, 1])
    assert known.transform(X)[:4].tolist() == [
        [1, 0, 0, 0],
        [0, 1, 0, 1],
        [0, 0, 1, 0],
        [1, 0, 0, 0],
    ]
    assert len(looks) < 40


def test_categories_of_models_of_version_0_2():
    encoder = OneHotEncoder().fit(np.array([["a"], ["b"], [None]], dtype=object))
    old = categories.Categories.__new__(categories.Categories)
    old.__setstate__({"columns": np.array([0]), "n_columns": 1, "encoder": encoder})
    frame = pd.DataFrame({"kind": ["b", None]})
    np.testing.assert_array_equal(old.transform(frame), [[0, 1, 0], [0, 0, 1]])


# Missing numbers


@BOTH
def test_missing_values_can_tell_the_classes(estimator):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(120, 2))
    y = rng.random(120) < 0.5
    X[y, 1] = np.nan
    assert estimator().fit(X, y).score(X, y) == 1.0


@BOTH
def test_a_column_complete_in_fit_is_filled_with_a_warning(estimator):
    clf = estimator().fit(TRAIN, Y_TRAIN)
    incomplete = QUERIES.assign(noise=np.nan)
    median = TRAIN["noise"].quantile(0.5, interpolation="lower")
    with pytest.warns(UserWarning, match="column noise are filled with the median"):
        found = clf.decision_function(incomplete)
    np.testing.assert_array_equal(found, clf.decision_function(QUERIES.assign(noise=median)))


@BOTH
def test_a_column_without_values_is_ignored(estimator):
    with pytest.warns(UserWarning, match="Columns without any value are ignored: column noise"):
        clf = estimator().fit(TRAIN.assign(noise=np.nan), Y_TRAIN)
    expected = clf.decision_function(QUERIES.assign(noise=np.nan))
    np.testing.assert_array_equal(clf.decision_function(QUERIES.assign(noise=1e6)), expected)


@pytest.mark.parametrize("values", [pd.Categorical([None] * 40, ["a", "b"]), [None] * 40])
def test_categories_without_values_are_ignored_aloud(values):
    frame = pd.DataFrame({"empty": values, "x": np.arange(40) % 2})
    clf = GreedySVC(1.0, max_visits=1, categorical_features=["empty"])
    with pytest.warns(UserWarning, match="Columns without any value are ignored: column empty"):
        clf.fit(frame, frame["x"])


@BOTH
def test_infinite_values_are_refused(estimator):
    X = np.where(np.arange(80).reshape(40, 2) == 5, np.inf, 1.0)
    with pytest.raises(ValueError, match="infinity"):
        estimator().fit(X, np.arange(40) % 2)


@BOTH
def test_missing_values_of_sparse_rows_are_refused(estimator):
    X = sp.csr_array([[np.nan, 1.0], [1.0, 0.0]] * 10)
    with pytest.raises(ValueError, match="NaN"):
        estimator().fit(X, [0, 1] * 10)


def test_other_estimators_refuse_missing_values():
    with pytest.raises(ValueError, match="NaN"):
        RhoEnsembleSVC().fit(TRAIN[["age"]], Y_TRAIN)
    assert not RhoEnsembleSVC().__sklearn_tags__().input_tags.allow_nan
    assert EnsembleSVC().__sklearn_tags__().input_tags.allow_nan
    assert not EnsembleSVC(kernel="precomputed").__sklearn_tags__().input_tags.allow_nan


FLOATS = st.floats(-1e3, 1e3) | st.just(np.nan)


@given(
    X=arrays(np.float64, st.tuples(st.integers(1, 12), st.integers(1, 3)), elements=FLOATS),
    data=st.data(),
)
@settings(deadline=None)
@pytest.mark.filterwarnings("ignore:Columns without any value are ignored")
def test_weights_fill_like_repeated_rows(X, data):
    repeats = data.draw(arrays(np.int64, len(X), elements=st.integers(0, 3)))
    repeats[0] += 1
    names = partial(np.arange, X.shape[1])
    weighted = find_filling(X, repeats.astype(float), names)
    repeated = find_filling(np.repeat(X, repeats, axis=0), None, names)
    np.testing.assert_array_equal(weighted.medians, repeated.medians)
    np.testing.assert_array_equal(weighted.indicated, repeated.indicated)


@given(X=arrays(np.float64, st.tuples(st.integers(1, 9), st.just(2)), elements=FLOATS))
@settings(deadline=None)
@pytest.mark.filterwarnings("ignore:Columns without any value are ignored")
def test_filled_rows_are_finite_and_keep_what_was_known(X):
    names = partial(np.array, ["a", "b"])
    filling = find_filling(X, None, names)
    filled = filling.transform(X, names)
    assert np.isfinite(filled).all()
    known = ~np.isnan(X)
    np.testing.assert_array_equal(filled[:, :2][known], X[known])
    np.testing.assert_array_equal(filled[:, 2:], np.isnan(X)[:, filling.indicated])


# The tools around


def test_a_saved_model_reads_tables(fitted):
    loaded = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(loaded.predict_proba(QUERIES), fitted.predict_proba(QUERIES))


def test_a_compressed_model_reads_tables(fitted):
    small = compress(fitted, n_support=40)
    agree = np.mean(small.predict(QUERIES) == fitted.predict(QUERIES))
    assert agree > 0.9


@BOTH
def test_tables_in_cross_validation(estimator):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a fold may lack missing values
        scores = cross_val_score(make_pipeline(estimator()), FRAME, Y, cv=3)
    assert scores.mean() > 0.8


@BOTH
def test_a_gap_in_a_row_without_weight_changes_nothing(estimator):
    rng = np.random.default_rng(0)
    X, weights = rng.normal(size=(150, 4)), np.ones(150)
    y, weights[0] = X[:, 0] + X[:, 1] > 0, 0.0
    X[:, 1] = np.exp(3 * X[:, 1])  # ranks matter
    found = []
    for value in (0.0, np.nan):
        X[0, 1] = value
        model = estimator(random_state=0).fit(X, y, sample_weight=weights)
        found.append(model.predict_proba(X[1:50]))
    np.testing.assert_array_equal(*found)
