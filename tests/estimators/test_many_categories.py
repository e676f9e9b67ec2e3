"""Columns of many categories: what they say about the classes takes their place."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.metrics import log_loss
from sklearn.model_selection import GroupKFold, TimeSeriesSplit
from sklearn.pipeline import make_pipeline

from hardmargin import EnsembleSVC, GreedySVC, compress
from hardmargin.estimators._base import effects
from hardmargin.estimators._base.disguise import advice_on
from hardmargin.selection.folds import make_folds

BOTH = pytest.mark.parametrize("estimator", [EnsembleSVC, GreedySVC])
N_TRAIN = 900


def shops(n_classes=2, n_shops=150, effect=2.0, n=1_500):
    """A table in which the shop matters, and another column tells the shop as well."""
    rng = np.random.default_rng(0)
    shop = rng.integers(n_shops, size=n)
    likely = rng.normal(0, effect, (n_shops, n_classes))[shop] + rng.gumbel(size=(n, n_classes))
    frame = pd.DataFrame({"shop": [f"shop {i}" for i in shop], "place": shop / n_shops})
    return frame, np.array(["bad", "fair", "good"])[likely.argmax(axis=1)]


FRAME, Y = shops()
TRAIN, QUERIES = FRAME[:N_TRAIN], FRAME[N_TRAIN:]


def quick(**parameters):
    return GreedySVC(1.0, max_visits=1, random_state=0, **parameters)


@BOTH
def test_held_out_scores_keep_their_promise(estimator):
    clf = estimator(random_state=0).fit(TRAIN, Y[:N_TRAIN])
    found = log_loss(Y[N_TRAIN:], clf.predict_proba(QUERIES))
    assert found < clf.cv_log_loss_ + 0.02
    assert found < 0.6
    assert clf.is_categorical_.tolist() == [True, False]
    assert clf.get_feature_names_out().tolist() == ["shop", "place"]
    if estimator is EnsembleSVC:
        assert clf.relevance_.shape == (2,)


@BOTH
def test_categories_that_tell_nothing_promise_nothing(estimator):
    frame, y = shops(n_shops=600, effect=0.0)
    clf = estimator(random_state=0)
    with pytest.warns(UserWarning, match="say nothing") if estimator is GreedySVC else no_warning():
        clf.fit(frame[:N_TRAIN], y[:N_TRAIN])
    assert clf.cv_log_loss_ > 0.68
    assert len(np.unique(clf._categories_.effects[0])) == 1


class no_warning:
    def __enter__(self):
        return self

    def __exit__(self, *_):
        return False


def test_many_classes_have_a_column_each():
    frame, y = shops(n_classes=3)
    clf = quick().fit(frame, y)
    names = ["shop_bad", "shop_fair", "shop_good", "place"]
    assert clf.get_feature_names_out().tolist() == names
    assert clf.score(frame, y) > 0.6


def test_new_and_missing_categories():
    shop = TRAIN["shop"].where(np.arange(N_TRAIN) % 10 > 0, None)
    clf = quick(standardize=False).fit(TRAIN.assign(shop=shop), Y[:N_TRAIN])
    asked = pd.DataFrame({"shop": ["nobody knows", None], "place": 0.0})
    new, missing = clf._check_rows(asked)[:, 0]
    share = np.mean(Y[:N_TRAIN] == clf.classes_[1])
    assert new == pytest.approx(np.log(share / (1 - share)))
    assert missing != new
    assert np.isfinite(missing)


def test_polars_and_copies_give_the_same_model():
    clf = quick().fit(TRAIN, Y[:N_TRAIN])
    expected = clf.decision_function(QUERIES)
    other = quick().fit(pl.DataFrame(TRAIN.to_dict("list")), Y[:N_TRAIN])
    found = other.decision_function(pl.DataFrame(QUERIES.to_dict("list")))
    np.testing.assert_array_equal(found, expected)
    loaded = pickle.loads(pickle.dumps(clf))
    np.testing.assert_array_equal(loaded.decision_function(QUERIES), expected)
    assert np.mean(compress(clf, n_support=100).predict(QUERIES) == clf.predict(QUERIES)) > 0.9


def test_listed_codes_of_many_values():
    frame = pd.DataFrame({"code": np.arange(2_000) % 400, "x": np.zeros(2_000)})
    y = frame["code"] % 2
    clf = quick(categorical_features=["code"]).fit(frame, y)
    assert clf.get_feature_names_out().tolist() == ["code", "x"]
    assert clf.score(frame, y) == 1.0


DISGUISED = {
    "dates": (
        [f"2024-{k % 12 + 1:02}-{k % 28 + 1:02}" for k in range(200)],
        "dates kept as strings",
    ),
    "days": (
        [f"{k % 28 + 1}.{k % 12 + 1}.2024 10:30" for k in range(200)],
        "dates kept as strings",
    ),
    "prices": (
        [f"€ 1,{k % 99 + 100}.50" for k in range(200)],
        r"numbers .*pd.to_numeric\(X\['a'\]\)",
    ),
    "numbers of Europe": (
        [f"{k % 99},5" for k in range(200)],
        r"numbers .*pd.to_numeric\(X\['a'\].str.replace\(',', '.'\)\) reads them",
    ),
    "numbers": ([f"{k % 99}.5" for k in range(200)], r"numbers .*pd.to_numeric\(X\['a'\]\)"),
}


@pytest.mark.parametrize("kind", DISGUISED)
def test_dates_and_numbers_kept_as_strings_are_named(kind):
    texts, words = DISGUISED[kind]
    frame = pd.DataFrame({"a": texts, "x": np.arange(200) % 2})
    with pytest.warns(UserWarning, match=rf"Column 'a' has \d+ different strings.*{words}"):
        quick().fit(frame, frame["x"])
    quick(categorical_features=["a"]).fit(frame, frame["x"])  # warnings are errors
    with pytest.raises(ValueError, match=rf"its own, .* rows. They are {words}"):
        quick().fit(frame[:75], frame["x"][:75])


def test_the_advice_on_decimal_commas_reads_them():
    texts = pd.Series([f"{k},25" for k in range(200)])
    assert pd.to_numeric(texts.str.replace(",", ".")).tolist() == [k + 0.25 for k in range(200)]
    assert "replace" not in advice_on("a", [f"{k},250" for k in range(1, 200)])  # thousands


@pytest.mark.parametrize(
    ("others", "words"),
    [(["?"], r"but for '\?': correct"), (["False", "n/a", "%"], "but for '%' and 2 more: correct")],
)
def test_what_is_no_number_in_a_column_of_numbers_is_named(others, words):
    texts = [f"{k / 8:.3f}" for k in range(200)]
    frame = pd.DataFrame({"a": texts[: -len(others)] + others, "x": np.arange(200) % 2})
    with pytest.raises(ValueError, match=rf"numbers kept as strings, {words}") as caught:
        quick().fit(frame, frame["x"])
    advised = "pd.to_numeric(X['a'], errors='coerce')"
    assert advised in str(caught.value)
    read = eval(advised, {"pd": pd, "X": frame})
    quick().fit(frame.assign(a=read), frame["x"])
    assert read.isna().sum() == len(others)


def test_text_that_a_vectorizer_passed_on_is_refused_with_advice():
    frame = pd.DataFrame({"a": [f"text number {k} of many" for k in range(90)]})
    with pytest.raises(ValueError, match="passes text through needs a smaller cardinality_thr"):
        quick().fit(frame, np.arange(90) % 2)


def test_codes_are_no_numbers():
    frame = pd.DataFrame({"a": [f"0{k % 99}" for k in range(200)], "x": np.arange(200) % 2})
    quick().fit(frame, frame["x"])  # warnings are errors


def test_splits_that_are_there_once_are_refused():
    splits = iter([(np.arange(500), np.arange(500, N_TRAIN))])
    with pytest.raises(ValueError, match=r"cv=list\(cv\)"):
        GreedySVC(cv=splits).fit(TRAIN, Y[:N_TRAIN])


def test_a_time_limit_and_groups():
    groups = np.arange(N_TRAIN) % 60
    clf = EnsembleSVC(cv=GroupKFold(3), max_time=60, random_state=0)
    assert clf.fit(TRAIN, Y[:N_TRAIN], groups=groups).score(QUERIES, Y[N_TRAIN:]) > 0.65


def test_weights_of_any_size_leave_finite_numbers():
    clf = EnsembleSVC(random_state=0).fit(TRAIN, Y[:N_TRAIN], sample_weight=[1e300] * N_TRAIN)
    assert np.isfinite(clf._categories_.effects[0]).all()
    assert clf.score(QUERIES, Y[N_TRAIN:]) > 0.7


def test_text_is_refused_with_lines_to_copy():
    rng = np.random.default_rng(0)
    words = np.array([f"word{i}" for i in range(50)])
    table = pd.DataFrame(
        {
            "price": np.where(rng.random(300) < 0.1, np.nan, rng.normal(size=300)),
            "review": [" ".join(rng.choice(words, 8)) for _ in range(300)],
            "town": rng.choice(["Oslo", "Rome"], 300),
        }
    )
    y = table["review"].str.contains("word1 ")
    with pytest.raises(ValueError, match="Column 'review' has text") as caught:
        GreedySVC().fit(table, y)
    scope = {}
    exec(IMPORTS + str(caught.value)[str(caught.value).index("to_numbers =") :], scope)
    model = make_pipeline(scope["to_numbers"], GreedySVC(random_state=0)).fit(table[:200], y[:200])
    assert model.score(table[200:], y[200:]) > 0.8
    table["review"] += [f" order 7{k}" for k in range(300)]
    words_of_two_rows = model.fit(table, y)[0].named_transformers_["tfidfvectorizer"].vocabulary_
    assert set(words_of_two_rows) == {"order", *words}


def test_text_that_is_there_twice_is_warned_of():
    frame = pd.DataFrame({"a": [f"text number {k} of many" for k in range(90)] * 2, "x": 0.0})
    y = np.arange(180) % 2
    with pytest.warns(UserWarning, match="(?s)'a' has text, .*no effect.*Tfidf") as caught:
        quick().fit(frame[:150], y[:150])
    assert "(make_pipeline(SimpleImputer(), StandardScaler()), ['x'])" in str(caught[0].message)
    quick().fit(frame[:90].loc[np.arange(180) % 90], y)  # warnings are errors
    quick(categorical_features=["a"]).fit(frame[:150], y[:150])


IMPORTS = """
from sklearn.compose import make_column_transformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
"""


# What the labels of other rows may do


@pytest.fixture
def counted(monkeypatch):
    """Return how many rows of the second class stand behind the encoding of every row."""
    monkeypatch.setattr(effects, "_log_odds", lambda counts, *_: counts[:, 1:])

    def learned(codes, folds=None, weights=None):
        random = np.random.RandomState(0)
        return effects.learn_effects(VALUES, codes, weights, folds, random)[1][0][:, 0]

    return learned


VALUES = np.random.RandomState(1).randint(4, size=(80, 1))
CODES = np.random.RandomState(2).randint(2, size=80).astype(np.int32)


def test_no_row_depends_on_its_own_label(counted):
    expected = counted(CODES)
    for row in range(0, 80, 7):
        other = CODES.copy()
        other[row] = 1 - other[row]
        assert counted(other)[row] == expected[row]
    assert sorted(set(expected)) == list(range(len(set(expected))))


@pytest.mark.parametrize("cv", [GroupKFold(4), TimeSeriesSplit(4)])
def test_no_row_depends_on_labels_that_its_split_holds_out(cv, counted):
    groups = np.arange(80) // 5 if isinstance(cv, GroupKFold) else None
    folds = make_folds(cv, np.zeros((80, 1)), CODES, groups=groups)
    expected = counted(CODES, folds)
    assert expected[folds.test[-1]].min() > 3
    for train, test in zip(folds.train, folds.test, strict=True):
        found = counted(np.where(train, CODES, 1 - CODES).astype(np.int32), folds)
        np.testing.assert_array_equal(found[test], expected[test])


def test_rows_without_weight_tell_nothing(counted):
    weights = np.ones(80)
    weights[:20] = 0.0
    codes = np.where(weights > 0, CODES, -1).astype(np.int32)
    order = np.random.RandomState(0).permutation(80)
    row = np.flatnonzero(weights)[np.argmax(order[20:])]  # the last row that has a weight
    same = (VALUES[row] == VALUES).ravel() & (weights > 0) & (order < order[row])
    assert counted(codes, None, weights)[row] == CODES[same].sum()
