"""Tables of thousands of columns, long lines, and a limit of time for the whole command."""

import json
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from problems.tables import customers
from pyarrow import parquet
from sklearn.ensemble import HistGradientBoostingClassifier
from skrub import TableVectorizer

from hardmargin import EnsembleSVC, GreedySVC
from hardmargin.cli import main, text_files
from hardmargin.cli import train as training
from hardmargin.cli.deadline import NO_TIME, Deadline
from hardmargin.cli.errors import InputError
from hardmargin.cli.rows import open_rows
from hardmargin.cli.tables import kinds_of, read_table
from hardmargin.cli.text_files import TextFormat
from hardmargin.comparison.pipelines import with_categories, with_numbers, with_strings
from hardmargin.comparison.rivals import known_rivals
from hardmargin.comparison.summary import summary_of
from hardmargin.warn import warn_caller

QUICK = ["--estimator", "greedy", "--set", "gamma=spread", "--set", "max_visits=1"]


ALL = pytest.mark.parametrize("pipeline", [with_strings, with_categories, with_numbers])


def genes(n=60, d=300):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(n, d)).round(3), columns=[f"g{j}" for j in range(d)])
    return frame.assign(ill=np.where(frame["g0"] > 0, "yes", "no"))


# --- columns of numbers ---------------------------------------------------------------------------


@pytest.fixture
def vectorized(monkeypatch):
    """The columns that a TableVectorizer was given."""
    found = []
    whole = TableVectorizer.fit_transform

    def fit_transform(self, X, y=None):
        found.extend(X.columns)
        return whole(self, X, y)

    monkeypatch.setattr(TableVectorizer, "fit_transform", fit_transform)
    return found


def quick():
    return GreedySVC(gamma="spread", max_visits=1)


@ALL
def test_numbers_and_truth_values_go_through_no_vectorizer(vectorized, pipeline):
    frame = genes()
    X, y = frame.drop(columns="ill").assign(old=frame["g1"] > 0), frame["ill"]
    pipeline(quick(), X).fit(X, y).predict(X)
    assert vectorized == []


@ALL
def test_only_other_columns_go_through_a_vectorizer(vectorized, pipeline):
    X, y = customers().drop(columns="churn"), customers()["churn"]
    pipeline(quick(), X).fit(X, y).predict(X)
    assert vectorized == ["city", "since"]


@pytest.mark.parametrize("rival", known_rivals(), ids=lambda rival: rival.name)
def test_rivals_get_numbers_without_a_vectorizer(rival):
    X = genes(20, 3).drop(columns="ill")
    steps = getattr(rival.make(X, 0), "steps", [])
    assert "ColumnTransformer" not in [type(step).__name__ for _, step in steps]


@pytest.mark.parametrize("has_others", [False, True])
def test_boosted_trees_take_columns_without_a_value(has_others):
    table = customers() if has_others else genes(60, 3)
    X = table.iloc[:, :-1].assign(empty=np.nan, none=None)
    y = table.iloc[:, -1]
    model = with_categories(HistGradientBoostingClassifier(), X).fit(X, y)
    assert model.score(X, y) > 0.6
    assert model[-1].n_features_in_ >= table.shape[1] - 1


def test_columns_keep_their_order():
    X, y = customers().drop(columns=["since", "churn"]), customers()["churn"]
    model = with_strings(quick(), X).fit(X, y)
    assert model[-1].feature_names_in_.tolist() == ["age", "city", "calls", "household"]


def test_relevance_is_that_of_the_columns_of_the_table():
    # "since_year" is also what the vectorizer makes of "since".
    frame = customers().rename(columns={"calls": "since_year"})
    X = frame.drop(columns="churn")
    found = summary_of(with_strings(EnsembleSVC(n_stages=5), X).fit(X, frame["churn"]))
    assert set(found["relevance"]) == {"age", "city", "since", "since_year", "household"}


def test_texts_that_are_there_twice_are_no_categories():
    rng = np.random.default_rng(0)
    words = np.array([f"word{k}" for k in range(30)])
    notes = [" ".join(rng.choice(words, 6)) for _ in range(240)]
    y = np.array([" word1 " in f" {note} " for note in notes])
    X = pd.DataFrame({"note": notes * 2, "x": rng.normal(size=480)})[:400]  # 60 % are different
    y = np.tile(y, 2)[:400]
    assert "note" not in with_strings(quick(), X).fit(X, y)[-1].feature_names_in_
    X["note"] = X["note"].str.slice(0, 12)
    assert "note" in with_strings(quick(), X).fit(X, y)[-1].feature_names_in_


def test_our_classifiers_encode_many_categories_themselves(tmp_path, capsys):
    n = 400
    shop = np.random.default_rng(0).integers(100, size=n)
    frame = pd.DataFrame(
        {
            "shop": [f"shop {s}" for s in shop],
            "since": [f"{1 + s % 12}/{1 + s // 4}/2024" for s in shop],
            "note": [f"customer {k} said so" for k in range(n)],
            "is_good": np.where(shop % 3 > 0, "yes", "no"),
        }
    )
    X = frame.drop(columns="is_good")
    model = with_strings(quick(), X).fit(X, frame["is_good"])
    known, names = model[-1]._categories_, model[-1].feature_names_in_.tolist()
    assert [names[j] for j in known.columns] == ["shop"]
    assert known.has_effects
    assert "since_month" in names
    assert "note" not in names
    frame[["shop", "is_good"]].to_csv(tmp_path / "a.csv", index=False)
    file, saved = str(tmp_path / "a.csv"), str(tmp_path / "m.skops")
    assert main(["train", file, "--target", "is_good", "-o", saved, *QUICK]) == 0
    assert main(["predict", saved, file, "--labels-only"]) == 0
    wrong = capsys.readouterr().err.splitlines()[-1]
    assert float(wrong.partition(" %")[0]) < 10


# --- reading --------------------------------------------------------------------------------------


def test_wide_files_are_read_as_narrow_ones_are(monkeypatch, tmp_path):
    monkeypatch.setattr(text_files, "SNIFFED", 64)  # shorter than the header
    genes().to_csv(tmp_path / "a.csv", index=False, sep=";")
    found = read_table(tmp_path / "a.csv", TextFormat(decimal=".")).X
    pd.testing.assert_frame_equal(found, genes())


def test_a_line_that_is_longer_than_a_block(monkeypatch, tmp_path):
    monkeypatch.setattr(text_files, "BLOCK", 1_000)
    frame = pd.DataFrame({"text": ["short"] * 300 + ["long " * 40_000], "n": range(301)})
    frame.to_csv(tmp_path / "a.csv", index=False)
    pd.testing.assert_frame_equal(read_table(tmp_path / "a.csv").X, frame)
    parts = open_rows(tmp_path / "a.csv", TextFormat()).parts(["text"])
    texts = [text for part in parts for text in part.columns["text"].to_pylist()]
    assert texts == frame["text"].tolist()


def test_the_line_is_that_of_the_file(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('a,b\n\n"one\ntwo",1\n\n2\n')
    with pytest.raises(InputError, match=r"a\.csv, line 6: it has 1 columns, the header has 2"):
        read_table(path)


def test_times_of_day_are_text(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("at,n\n12:30,1\n07:05,2\n")
    assert kinds_of(read_table(path).X) == {"at": "text", "n": "number"}
    assert read_table(path).X["at"].tolist() == ["12:30", "07:05"]


# --- the limit ------------------------------------------------------------------------------------


def test_a_fit_gets_what_reading_has_left():
    rows = np.zeros((10, 2))
    assert Deadline(None, 0.0).for_fit(rows) is None
    assert Deadline(10, 100.0, clock=lambda: 104.0).for_fit(rows) == pytest.approx(5.8, abs=0.01)
    # A third of the time is the most that saving is given.
    assert Deadline(10, 100.0, clock=lambda: 104.0).for_fit(np.zeros((10_000, 2_000))) == 4
    assert Deadline(10, 100.0, clock=lambda: 111.0).for_fit(rows) == NO_TIME


def late(monkeypatch, seconds):
    """Let reading take this long."""
    monkeypatch.setattr(
        training, "deadline_of", lambda limit: Deadline(limit, 0.0, clock=lambda: seconds)
    )


def test_the_limit_is_for_the_whole_command(capsys, monkeypatch, tmp_path):
    genes().to_csv(tmp_path / "a.csv", index=False)
    given = []
    fit = GreedySVC.fit

    def fit_and_keep(self, *arguments):
        given.append(self.max_time)
        return fit(self, *arguments)

    monkeypatch.setattr(GreedySVC, "fit", fit_and_keep)
    late(monkeypatch, 40)
    arguments = ["train", str(tmp_path / "a.csv"), "--target", "ill", *QUICK, "--max-time", "60"]
    assert main([*arguments, "-o", str(tmp_path / "m.skops"), "--json"]) == 0
    assert 19 < given[0] < 20
    assert json.loads(capsys.readouterr().out)["parameters"]["max_time"] == "60.0"


def test_reading_that_takes_longer_is_said(capsys, monkeypatch, tmp_path):
    genes().to_csv(tmp_path / "a.csv", index=False)
    late(monkeypatch, 61)
    arguments = ["train", str(tmp_path / "a.csv"), "--target", "ill", *QUICK, "--max-time", "60"]
    assert main([*arguments, "-o", str(tmp_path / "m.skops")]) == 0
    printed = capsys.readouterr().err
    assert "a.csv took longer than --max-time 60, so this is the simplest model" in printed
    assert (tmp_path / "m.skops").exists()


def test_warnings_of_the_fit_have_the_limit_that_was_asked_for(capsys, monkeypatch, tmp_path):
    genes().to_csv(tmp_path / "a.csv", index=False)
    fit = GreedySVC.fit

    def fit_and_warn(self, *arguments):
        warn_caller(f"max_time={self.max_time:g} is too short. Raise max_time.")
        return fit(self, *arguments)

    monkeypatch.setattr(GreedySVC, "fit", fit_and_warn)
    late(monkeypatch, 40)
    arguments = ["train", str(tmp_path / "a.csv"), "--target", "ill", *QUICK, "--max-time", "60"]
    assert main([*arguments, "-o", str(tmp_path / "m.skops")]) == 0
    assert "warning: --max-time 60 is too short. Raise --max-time." in capsys.readouterr().err


# --- no traceback ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (KeyError("lost"), 1, "something unexpected happened (KeyError: 'lost'); 'hardmargin --d"),
        (MemoryError(), 1, "too little memory"),
        (RecursionError("too\ndeep"), 1, "(RecursionError: too deep)"),
    ],
)
def test_errors_of_any_kind_are_one_line(capsys, monkeypatch, tmp_path, error, code, message):
    def fail(*_):
        raise error

    genes().to_csv(tmp_path / "a.csv", index=False)
    monkeypatch.setattr(training, "fit_model", fail)
    arguments = ["train", str(tmp_path / "a.csv"), "--target", "ill"]
    arguments += ["-o", str(tmp_path / "m.skops")]
    assert main(arguments) == code
    printed = capsys.readouterr().err
    assert message in printed
    assert printed.count("\n") == 1
    main(["--debug", *arguments])
    assert "Traceback (most recent call last)" in capsys.readouterr().err


def test_columns_without_a_value_are_no_obstacle(capsys, tmp_path):
    genes(60, 3).assign(empty=np.nan).to_csv(tmp_path / "a.csv", index=False)
    arguments = ["train", str(tmp_path / "a.csv"), "--target", "ill", *QUICK]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert main([*arguments, "-o", str(tmp_path / "m.skops")]) == 0
    assert main(["predict", str(tmp_path / "m.skops"), str(tmp_path / "a.csv")]) == 0


@pytest.mark.parametrize("value", [[1, 2], {"x": 1}, b"x"])
def test_columns_of_lists_are_named(capsys, tmp_path, value):
    genes(60, 3).assign(odd=[value] * 60).to_parquet(tmp_path / "a.parquet")
    arguments = ["train", str(tmp_path / "a.parquet"), "--target", "ill", *QUICK]
    arguments += ["-o", str(tmp_path / "m.skops")]
    assert main(arguments) == 2
    assert "column 'odd' has values of type" in capsys.readouterr().err
    assert main([*arguments, "--drop", "odd"]) == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X: X.assign(city=X["city"].str.encode("utf-8")), "'city' has values of type bytes"),
        (lambda X: X.assign(age=np.inf), "row 1, column 'age': inf is infinite"),
        (lambda X: X.rename(columns={"calls": "age"}), "two columns named 'age'"),
    ],
    ids=["bytes", "infinite", "twice"],
)
def test_odd_columns_of_parquet_files_are_named(capsys, tmp_path, change, message):
    known, odd = tmp_path / "a.parquet", tmp_path / "b.parquet"
    customers().to_parquet(known)
    changed = change(customers())
    table = pa.Table.from_arrays([pa.array(values) for _, values in changed.items()], list(changed))
    parquet.write_table(table, odd)
    train = ["train", "--target", "churn", *QUICK, "-o", str(tmp_path / "m.skops")]
    assert main([*train, str(odd)]) == 2
    assert message in capsys.readouterr().err
    assert main([*train, str(known)]) == 0
    assert main(["predict", str(tmp_path / "m.skops"), str(odd)]) == 2
    assert message in capsys.readouterr().err
