"""``hardmargin predict`` reads and writes part by part, with the results of the whole."""

import gzip
import json
from io import StringIO

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from problems.tables import customers, write_customers
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from hardmargin import GreedySVC
from hardmargin.cli import main, rows, text_files
from hardmargin.cli.errors import InputError
from hardmargin.cli.rows import open_rows
from hardmargin.cli.text_files import TextFormat
from hardmargin.io import dump

QUICK = ["--estimator", "greedy", "--set", "gamma=spread", "--set", "max_visits=1"]


def run(capsys, *arguments):
    """Exit code, and what was printed."""
    code = main(list(map(str, arguments)))
    printed = capsys.readouterr()
    return code, printed.out, printed.err


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained")
    table = write_customers(folder)
    path = folder / "model.skops"
    assert main(["train", str(table), "--target", "churn", *QUICK, "-o", str(path)]) == 0
    return path


@pytest.fixture
def in_parts(monkeypatch):
    """Read about seventy rows at a time."""
    monkeypatch.setattr(text_files, "BLOCK", 2_000)
    monkeypatch.setattr(text_files, "LINES_OF_BLOCK", 16)
    monkeypatch.setattr(rows, "ROWS_AT_ONCE", 70)


def n_parts(path, *columns):
    return sum(1 for _ in open_rows(path, TextFormat()).parts(columns))


def written(folder, name):
    path = folder / name
    customers().to_parquet(path) if ".parquet" in name else write_customers(folder, name)
    return path


NAMES = ["a.csv", "a.tsv", "a.csv.gz", "a.csv.bz2", "a.parquet"]


# --- the same as the whole ------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_parts_are_small(in_parts, tmp_path, name):
    assert n_parts(written(tmp_path, name), "age", "city") >= 4


@pytest.mark.parametrize("name", NAMES)
def test_parts_are_predicted_as_the_whole(capsys, monkeypatch, model, tmp_path, name):
    arguments = ("predict", model, written(tmp_path, name), "--keep", "since")
    _, whole, said = run(capsys, *arguments)
    monkeypatch.setattr(text_files, "BLOCK", 2_000)
    monkeypatch.setattr(text_files, "LINES_OF_BLOCK", 16)
    monkeypatch.setattr(rows, "ROWS_AT_ONCE", 70)
    code, parts, err = run(capsys, *arguments)
    assert code == 0
    assert "of 240 rows differ from 'churn'" in err
    assert (parts, err) == (whole, said)


@pytest.mark.parametrize("name", ["s.csv", "s.tsv.gz", "s.parquet", "s.json", "s.json.gz"])
def test_files_of_parts_are_those_of_the_whole(capsys, in_parts, model, tmp_path, name):
    path = write_customers(tmp_path)
    arguments = ("predict", model, path, "--keep", "household", "--keep", "age")
    _, out, _ = run(capsys, *arguments)
    assert run(capsys, *arguments, "-o", tmp_path / name)[0] == 0
    read = {
        "s.csv": pd.read_csv,
        "s.tsv.gz": lambda file: pd.read_csv(file, sep="\t"),
        "s.parquet": pd.read_parquet,
    }.get(name, pd.read_json)
    pd.testing.assert_frame_equal(read(tmp_path / name), pd.read_csv(StringIO(out)))


def test_types_of_kept_columns_are_those_of_all_rows(capsys, in_parts, model, tmp_path):
    frame = customers().assign(
        code=["7"] * 239 + ["A7"], part=[*range(239), 0.5], none=None, day="2024-02-03", ok=True
    )
    frame.to_csv(tmp_path / "a.csv", index=False)
    keep = [word for n in ("code", "part", "none", "day", "ok") for word in ("--keep", n)]
    arguments = ("predict", model, tmp_path / "a.csv", *keep, "-o", tmp_path / "s.parquet")
    assert run(capsys, *arguments)[0] == 0
    found = pq.read_schema(tmp_path / "s.parquet")
    kinds = [str(found.field(name).type) for name in ("code", "part", "none", "day", "ok")]
    assert kinds == ["string", "double", "double", "timestamp[us]", "bool"]


def test_kept_text_is_copied_as_it_is_written(capsys, model, tmp_path):
    ids = [f"{k:05}" for k in range(240)]
    customers().assign(id=ids).to_csv(tmp_path / "a.csv", index=False)
    _, out, _ = run(capsys, "predict", model, tmp_path / "a.csv", "--keep", "id")
    assert [line.split(",")[0] for line in out.splitlines()[1:]] == ids


# --- odd files ------------------------------------------------------------------------------------


def test_odd_lines_do_not_move_rows(capsys, in_parts, model, tmp_path):
    frame = customers().assign(note=[f"line {k},\nand more" for k in range(240)])
    lines = frame.to_csv(index=False).replace('more"\n', 'more"\n\n').removesuffix("\n\n")
    (tmp_path / "odd.csv").write_text(lines)
    frame.drop(columns="note").to_csv(tmp_path / "plain.csv", index=False)
    _, expected, _ = run(capsys, "predict", model, tmp_path / "plain.csv")
    assert run(capsys, "predict", model, tmp_path / "odd.csv")[1] == expected


def test_a_column_is_the_same_in_every_part(capsys, in_parts, model, tmp_path):
    # No age in the first rows, whole ones below; categories that look like numbers.
    frame = customers().copy()
    frame.loc[:60, "age"] = None
    frame.loc[:60, "city"] = "7"
    frame.to_csv(tmp_path / "a.csv", index=False)
    _, whole, _ = run(capsys, "predict", model, tmp_path / "a.csv")
    frame[:40].to_csv(tmp_path / "b.csv", index=False)
    assert whole.startswith(run(capsys, "predict", model, tmp_path / "b.csv")[1])


def test_categories_that_look_like_numbers_stay_text(capsys, tmp_path):
    frame = customers()[["calls", "churn"]].assign(zone=["01", "x", "02"] * 80)
    frame.to_csv(tmp_path / "a.csv", index=False)
    path = tmp_path / "m.skops"
    arguments = ("train", tmp_path / "a.csv", "--target", "churn", *QUICK, "-o", path)
    assert run(capsys, *arguments)[0] == 0
    _, all_rows, _ = run(capsys, "predict", path, tmp_path / "a.csv")
    frame[:1].to_csv(tmp_path / "b.csv", index=False)
    code, one, _ = run(capsys, "predict", path, tmp_path / "b.csv", "--labels-only")
    assert (code, one.split()[1]) == (0, all_rows.splitlines()[1].split(",")[0])


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("calls", "many", "line 203, column 'calls': 'many' is not a number; --missing many"),
        ("calls", "inf", "line 203, column 'calls': inf is infinite"),
        ("since", "soon", "line 203, column 'since': 'soon' is not a date"),
    ],
)
def test_a_wrong_value_late_in_the_file(capsys, in_parts, model, tmp_path, column, value, message):
    if column == "since":  # the customers' dates are a column of dates in Python's table too
        assert "date" in run(capsys, "inspect", model, "--json")[1]
    frame = customers().astype({column: object}).copy()
    frame.loc[200, column] = value
    text = frame.to_csv(index=False).replace("\n", "\n\n", 1)  # a blank line below the header
    (tmp_path / "a.csv").write_text(text)
    target = tmp_path / "s.csv"
    code, _, err = run(capsys, "predict", model, tmp_path / "a.csv", "-o", target)
    assert code == 2
    assert message in err
    assert err.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["a.csv"]  # nothing half-written


def test_text_in_another_encoding_late_in_the_file(capsys, in_parts, model, tmp_path):
    frame = customers().copy()
    frame.loc[200, "city"] = "Zürich"
    frame.to_csv(tmp_path / "a.csv", index=False, encoding="latin-1")
    code, _, err = run(capsys, "predict", model, tmp_path / "a.csv", "-o", tmp_path / "s.csv")
    assert code == 2
    assert "a.csv, line 202, column 'city': the text is not utf-8" in err
    latin = ("predict", model, tmp_path / "a.csv", "--encoding", "latin-1")
    assert run(capsys, *latin)[0] == 0


def test_a_short_line_late_in_the_file(capsys, in_parts, model, tmp_path):
    text = customers().to_csv(index=False)
    (tmp_path / "a.csv").write_text(text + "1,Oslo\n")
    code, _, err = run(capsys, "predict", model, tmp_path / "a.csv", "-o", tmp_path / "s.csv")
    assert code == 2
    assert "a.csv, line 242: it has 2 columns, the header has 6" in err


def test_decimal_commas_are_found_before_the_first_part(capsys, in_parts, model, tmp_path):
    frame = customers().copy()
    frame.loc[:120, "age"] = 40
    frame.to_csv(tmp_path / "a.csv", index=False)
    text = frame.to_csv(index=False, sep=";", decimal=",").replace(";40,0;", ";40;")
    (tmp_path / "b.csv").write_text(text)
    _, expected, _ = run(capsys, "predict", model, tmp_path / "a.csv")
    code, out, err = run(capsys, "predict", model, tmp_path / "b.csv")
    assert (code, out) == (0, expected)
    assert "as in column 'age', are decimal marks" in err


@pytest.mark.parametrize(
    ("text", "message"),
    [("", "is empty"), ("age,city,since,calls,household\n", "has a header and no rows")],
)
def test_files_without_rows(capsys, model, tmp_path, text, message):
    (tmp_path / "a.csv").write_text(text)
    code, _, err = run(capsys, "predict", model, tmp_path / "a.csv", "-o", tmp_path / "s.csv")
    assert code == 2
    assert message in err
    assert not (tmp_path / "s.csv").exists()


@pytest.mark.parametrize("block", [2_000, 1 << 20], ids=["many parts", "one part"])
def test_a_damaged_archive_is_named(capsys, in_parts, monkeypatch, model, tmp_path, block):
    monkeypatch.setattr(text_files, "BLOCK", block)
    path = write_customers(tmp_path, "a.csv.gz")
    path.write_bytes(path.read_bytes()[:-200])
    code, _, err = run(capsys, "predict", model, path, "-o", tmp_path / "s.csv")
    assert code == 2
    assert err == f"hardmargin: {path} cannot be read: Truncated compressed stream.\n"
    assert not (tmp_path / "s.csv").exists()


@pytest.mark.parametrize("name", ["a.csv", "a.parquet"])
def test_times_with_a_zone(capsys, tmp_path, name):
    hours = pd.date_range("2024-03-01T10:00:00Z", periods=240, freq="h")
    frame = customers()[["calls", "churn"]].assign(at=hours)
    frame.to_parquet(tmp_path / "a.parquet")
    frame.assign(at=hours.strftime("%Y-%m-%dT%H:%M:%SZ")).to_csv(tmp_path / "a.csv", index=False)
    path = tmp_path / "m.skops"
    arguments = ("train", tmp_path / name, "--target", "churn", *QUICK, "-o", path)
    assert run(capsys, *arguments)[0] == 0
    _, expected, _ = run(capsys, "predict", path, tmp_path / "a.parquet")
    zoned = hours.tz_convert("Asia/Tokyo").strftime("%Y-%m-%dT%H:%M:%S%z")
    frame.assign(at=zoned).to_csv(tmp_path / "b.csv", index=False)
    for other in ("a.csv", "b.csv"):
        code, out, _ = run(capsys, "predict", path, tmp_path / other)
        assert (code, out) == (0, expected)


# --- known classes, and models of Python ----------------------------------------------------------


@pytest.mark.parametrize("labels", [[0, 1], [False, True], ["0", "x"]])
def test_known_classes_are_counted_in_all_parts(capsys, in_parts, tmp_path, labels):
    frame = customers()[["calls", "age"]].assign(churn=np.where(customers().churn == "no", *labels))
    frame["churn"] = frame["churn"].astype(object)
    frame.loc[:59, "churn"] = None
    frame.to_csv(tmp_path / "a.csv", index=False)
    path = tmp_path / "m.skops"
    arguments = ("train", tmp_path / "a.csv", "--target", "churn", *QUICK, "-o", path)
    assert run(capsys, *arguments)[0] == 0
    _, out, err = run(capsys, "predict", path, tmp_path / "a.csv", "--keep", "churn")
    found = pd.read_csv(StringIO(out), dtype=str).dropna()
    share = 100 * (found["churn"] != found["prediction"]).mean()
    assert f"{share:.2f} % of 180 rows differ from 'churn'" in err
    assert share < 40


def test_columns_of_unknown_kinds_are_found_from_all_rows(capsys, in_parts, tmp_path):
    frame = customers()[["calls", "city"]].assign(city=["1"] * 200 + ["x"] * 40)
    columns = make_column_transformer(
        (OneHotEncoder(sparse_output=False), ["city"]), (StandardScaler(), ["calls"])
    )
    model = make_pipeline(columns, GreedySVC(gamma="spread", max_visits=1))
    path = dump(model.fit(frame, customers()["churn"]), tmp_path / "m.skops")
    frame.to_csv(tmp_path / "a.csv", index=False)
    code, out, _ = run(capsys, "predict", path, tmp_path / "a.csv", "--labels-only")
    assert code == 0
    assert out.split()[1:] == model.predict(frame).tolist()


def test_compressed_predictions(capsys, model, tmp_path):
    path = tmp_path / "s.csv.gz"
    assert run(capsys, "predict", model, write_customers(tmp_path), "-o", path)[0] == 0
    assert gzip.decompress(path.read_bytes()).count(b"\n") == 241


def test_lists_of_records_are_those_of_pandas(capsys, in_parts, model, tmp_path):
    arguments = ("predict", model, write_customers(tmp_path), "-o")
    assert run(capsys, *arguments, tmp_path / "s.json")[0] == 0
    assert run(capsys, *arguments, tmp_path / "s.parquet")[0] == 0
    text = pd.read_parquet(tmp_path / "s.parquet").to_json(orient="records", indent=1)
    assert (tmp_path / "s.json").read_text() == text
    assert len(json.loads(text)) == 240


def test_unknown_types_of_files_are_refused(tmp_path):
    (tmp_path / "a.xlsx").touch()
    with pytest.raises(InputError, match="what kind of table is it"):
        open_rows(tmp_path / "a.xlsx", TextFormat())
