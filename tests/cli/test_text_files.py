"""Text files as programs and people write them: delimiters, encodings, decimal marks and gaps."""

import json
from io import StringIO

import numpy as np
import pandas as pd
import pytest
from problems.tables import customers

from hardmargin.cli import main
from hardmargin.cli.near_numbers import has_decimal_commas, odd_text
from hardmargin.cli.tables import read_table, training_table
from hardmargin.cli.text_files import TextFormat
from hardmargin.comparison.measure import Measured

QUICK = ["--estimator", "greedy", "--set", "gamma=spread", "--set", "max_visits=1"]


def run(capsys, *arguments):
    """Exit code, and what was printed."""
    code = main(list(map(str, arguments)))
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def train(capsys, path, *options, target="churn"):
    """Exit code and output of training a model beside the table."""
    arguments = ("train", path, "--target", target, *QUICK, "--force", *options)
    return run(capsys, *arguments, "-o", path.parent / "m.skops")


def write(folder, text, name="a.csv", encoding="utf-8"):
    path = folder / name
    path.write_bytes(text.encode(encoding))
    return path


def written_ages(folder, change, name="a.csv", **options):
    """A table of customers whose ages are text, changed by a function of the rows' numbers."""
    frame = customers().copy()
    ages = frame["age"].fillna(40.5)
    frame["age"] = [change(k, age) for k, age in enumerate(ages)]
    frame.to_csv(folder / name, index=False, **options)
    return folder / name, ages


# --- text among numbers ---------------------------------------------------------------------------


def test_a_word_among_numbers_is_named(capsys, tmp_path):
    path, _ = written_ages(tmp_path, lambda k, age: "unknown" if k == 7 else age)
    code, _, err = train(capsys, path)
    assert code == 0
    assert (
        f"warning: {path}, column 'age': 239 of 240 values are numbers, but line 9 has 'unknown', "
        "so it is read as text; --missing unknown makes it a missing value.\n"
    ) == err


def test_comparisons_name_it_too(capsys, monkeypatch, tmp_path):
    path, _ = written_ages(tmp_path, lambda k, age: "unknown" if k == 7 else age)
    unmeasured = Measured("SVC", is_ours=False, note="not tried")
    monkeypatch.setattr("hardmargin.cli.compare.measure", lambda *_, **__: unmeasured)
    arguments = ("compare", path, "--target", "churn", "--model", "SVC", "-o", tmp_path / "r.html")
    assert "line 9 has 'unknown', so it is read as text" in run(capsys, *arguments)[2]


def test_text_that_stands_for_missing_values(capsys, tmp_path):
    path, _ = written_ages(tmp_path, lambda k, age: ["not known", "-"][k % 2] if k < 9 else age)
    code, out, err = train(capsys, path, "--missing", "not known", "--missing", "-", "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["columns"]["age"] == "number"


def test_a_model_keeps_what_stands_for_missing_values(capsys, tmp_path):
    path, _ = written_ages(tmp_path, lambda k, age: "unknown" if k < 9 else age)
    assert train(capsys, path, "--missing", "unknown")[0] == 0
    code, out, err = run(capsys, "predict", tmp_path / "m.skops", path, "--keep", "age")
    assert code == 0
    assert "warning" not in err
    assert pd.read_csv(StringIO(out))["age"].isna().sum() == 9


@pytest.mark.parametrize(
    ("change", "first", "advice"),
    [
        (lambda k, age: f"${age}", "$40.2", "no currency, % or marks between thousands"),
        (lambda k, age: f"{age} €", "40.2 €", "no currency, % or marks between thousands"),
        (lambda k, age: f"{age:.0f} %", "40 %", "no currency, % or marks between thousands"),
        (lambda k, age: f"{1e5 * age:,.2f}", "4,020,000.00", "marks between thousands"),
        (lambda k, age: f"{1e3 * age:,.0f}", "40,200", "if it divides thousands, remove it"),
        (lambda k, age: f"{age}".replace(".", ","), "40,2", "--decimal , reads such numbers."),
    ],
    ids=["dollar", "euro", "percent", "thousands", "perhaps thousands", "decimal commas"],
)
def test_numbers_as_people_write_them(tmp_path, change, first, advice):
    path, _ = written_ages(tmp_path, lambda k, age: change(k, 40.2 if k == 0 else age))
    with pytest.warns(UserWarning, match="0 of 240 values are numbers") as raised:
        training_table(path, TextFormat(), "churn", (), None)
    [message] = [str(w.message) for w in raised]
    assert f"line 2 has {first!r}" in message
    assert advice in message


@pytest.mark.parametrize(
    "texts",
    [
        ["red", "green", "7"] * 10,
        ["A12", "B7", "C3"] * 10,
        ["2024-01-01", "2024-02-03"] * 10,
        ["12", "unknown"] * 10,
        ["1", "2", "3.5", "4e3"] * 10,
        [],
    ],
    ids=["words", "codes", "dates", "half", "numbers", "nothing"],
)
def test_other_text_is_not_doubted(texts):
    assert odd_text(pd.Series(texts, dtype=object), ".") is None


def test_identifiers_that_look_like_huge_numbers(tmp_path):
    """On such text pandas' `to_numeric` ends the process, so that a failure shows no traceback."""
    path, _ = written_ages(tmp_path, lambda k, age: "134e337717832074" if k % 2 else f"{k}c0ffee")
    training_table(path, TextFormat(), "churn", (), None)  # warnings are errors


@pytest.mark.parametrize("name", ["a.csv", "a.parquet"])
@pytest.mark.parametrize("first", [0, 1])
def test_columns_that_number_the_rows_are_named(capsys, tmp_path, name, first):
    path = tmp_path / name
    frame = customers()[["age", "calls", "churn"]].fillna(1.0)
    frame.insert(0, "", np.arange(first, first + len(frame)))
    frame.loc[7, "churn"] = None
    frame.to_csv(path, index=False) if name == "a.csv" else frame.to_parquet(path)
    assert "a.csv: column '' numbers" in train(capsys, path)[2].replace("parquet", "csv")
    assert "numbers the rows" not in train(capsys, path, "--drop", "")[2]
    frame[""] += 2
    frame.to_csv(path, index=False) if name == "a.csv" else frame.to_parquet(path)
    assert "numbers the rows" not in train(capsys, path)[2]


def test_other_columns_are_not_doubted(tmp_path):
    path, _ = written_ages(tmp_path, lambda k, age: "unknown" if k == 7 else age)
    training_table(path, TextFormat(), "churn", ("age",), None)  # warnings are errors


def with_second_header(folder, lines):
    """A table of numbers with more lines below the header."""
    numbers = customers()[["age", "calls"]].fillna(1.0).assign(churn=customers()["churn"])
    header, *rows = numbers.to_csv(index=False).splitlines()
    return write(folder, "\n".join([header, *lines, *rows, ""]))


def test_currencies_are_no_second_header(capsys, tmp_path):
    frame = customers()[["age", "calls", "churn"]].fillna(1.0)
    frame["age"], frame["calls"] = "$" + frame["age"].astype(str), frame["calls"].astype(str) + "%"
    frame.to_csv(tmp_path / "a.csv", index=False)
    _, _, err = train(capsys, tmp_path / "a.csv")
    assert "second header" not in err
    assert "column 'age': 0 of 240 values are numbers" in err
    assert "numbers have no currency" in err


def test_a_second_header_is_named_once(capsys, tmp_path):
    path = with_second_header(tmp_path, ["continuous,discrete,yes"])
    _, _, err = train(capsys, path)
    assert err == (
        f"warning: {path}: line 2 looks like a second header, with 'continuous', 'discrete' in 2 "
        "columns that have numbers below, which are read as text; --skip-lines 1 leaves it out.\n"
    )


def test_lines_below_the_header_can_be_left_out(capsys, tmp_path):
    path = with_second_header(tmp_path, ["continuous,discrete,yes", ""])
    found = read_table(path, TextFormat(skipped=2)).X
    assert len(found) == 240
    assert found["age"].dtype == float
    code, _, err = train(capsys, path, "--skip-lines", "2")
    assert (code, err) == (0, "")
    model = tmp_path / "m.skops"
    found = tmp_path / "p.csv"
    assert run(capsys, "predict", model, path, "--skip-lines", "2", "-o", found)[0] == 0
    assert len(pd.read_csv(found)) == 240
    bad = write(tmp_path, path.read_text() + "many,1,yes\n", "b.csv")
    _, _, err = run(capsys, "predict", model, bad, "--skip-lines", "2", "-o", tmp_path / "q.csv")
    assert "line 244, column 'age': 'many' is not a number" in err
    ragged = write(tmp_path, path.read_text() + "1,2,yes,4\n", "c.csv")
    _, _, err = train(capsys, ragged, "--skip-lines", "2")
    assert "c.csv, line 244: it has 4 columns" in err


def test_blank_cells_are_missing_numbers(capsys, tmp_path):
    path, _ = written_ages(tmp_path, lambda k, age: "  " if k < 9 else age)
    assert train(capsys, path)[2] == ""
    customers().to_csv(tmp_path / "clean.csv", index=False)
    assert train(capsys, tmp_path / "clean.csv")[0] == 0
    assert run(capsys, "predict", tmp_path / "m.skops", path)[0] == 0


def test_what_is_missing_may_stand_behind_a_blank(capsys, tmp_path):
    frame = customers()[["city", "age", "calls", "churn"]]
    frame.to_csv(tmp_path / "known.csv", index=False, na_rep="?")
    header, rows = (tmp_path / "known.csv").read_text().split("\n", 1)
    assert ",?," in rows
    path = write(tmp_path, f"{header}\n{rows.replace(',', ', ')}")
    found, expected = read_table(path).X, read_table(tmp_path / "known.csv").X
    pd.testing.assert_frame_equal(found.isna(), expected.isna())
    pd.testing.assert_series_equal(found["age"], expected["age"])
    assert train(capsys, path, target="churn")[2] == ""
    code, _, err = run(capsys, "predict", tmp_path / "m.skops", path, "-o", tmp_path / "s.csv")
    assert (code, "warning" in err) == (0, False)


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        (
            lambda k, age: "unknown",
            [],
            "line 2, column 'age': 'unknown' is not a number; --missing unknown",
        ),
        (
            lambda k, age: str(age).replace(".", ","),
            [],
            "'41,3' is not a number; --decimal , reads such numbers",
        ),
        (
            lambda k, age: "12.5" if k == 3 else str(age).replace(".", ","),
            ["--decimal", ","],
            "line 5, column 'age': '12.5' is not a number",
        ),
    ],
    ids=["word", "decimal comma", "decimal point"],
)
def test_predictions_say_what_would_make_numbers(capsys, tmp_path, change, options, message):
    customers().to_csv(tmp_path / "clean.csv", index=False)
    assert train(capsys, tmp_path / "clean.csv")[0] == 0
    path, _ = written_ages(tmp_path, lambda k, age: change(k, 41.3 if k == 0 else age), "b.csv")
    code, _, err = run(capsys, "predict", tmp_path / "m.skops", path, *options)
    assert code == 2
    assert message in err
    assert err.count("\n") == 1


def test_tables_whose_rows_have_names(tmp_path):
    frame = customers().set_index(np.repeat(["a", "b"], 120)).astype({"age": str})
    frame.to_parquet(tmp_path / "a.parquet")
    assert read_table(tmp_path / "a.parquet").X.index.tolist() == list(range(240))


# --- decimal marks --------------------------------------------------------------------------------


def test_decimal_commas_are_read_if_asked(tmp_path):
    path, ages = written_ages(tmp_path, lambda k, age: str(age).replace(".", ","))
    found = training_table(path, TextFormat(decimal=","), "churn", (), None)
    np.testing.assert_array_equal(found.X["age"], ages)


def test_decimal_commas_between_semicolons_are_found(capsys, tmp_path):
    path, ages = written_ages(tmp_path, lambda k, age: age, sep=";", decimal=",")
    with pytest.warns(UserWarning, match="--decimal ,; --decimal . leaves them as text"):
        found = read_table(path)
    np.testing.assert_array_equal(found.X["age"], ages)
    code, out, err = train(capsys, path, "--json")
    assert code == 0
    assert "as in column 'age', are decimal marks" in err
    assert json.loads(out)["columns"]["age"] == "number"
    assert train(capsys, path, "--decimal", ",")[2] == ""
    assert "--decimal , reads such numbers" in train(capsys, path, "--decimal", ".")[2]


def test_decimal_commas_beside_a_word(tmp_path):
    def change(k, age):
        return "unknown" if k == 7 else str(age).replace(".", ",")

    path, _ = written_ages(tmp_path, change, sep=";")
    with pytest.warns(UserWarning, match="decimal marks|are numbers") as raised:
        training_table(path, TextFormat(), "churn", (), None)
    assert len(raised) == 2
    assert "239 of 240 values are numbers, but line 9 has 'unknown'" in str(raised[1].message)


def test_points_between_thousands_are_not_decimal_points(tmp_path):
    text = "a;b;churn\n" + "1.234;38,7;yes\n5.678;40,25;no\n" * 20
    with pytest.warns(UserWarning, match="decimal marks|are numbers") as raised:
        found = training_table(write(tmp_path, text), TextFormat(), "churn", (), None)
    assert found.X["b"].iloc[0] == 38.7
    assert found.X["a"].iloc[0] == "1.234"
    assert "column 'a': 0 of 40 values are numbers" in str(raised[1].message)


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["38,7", "12"], True),
        (["38,700", "0,125"], True),
        (["1234,567"], True),
        (["38,700", "1,250"], False),
        (["1,250", "38,700,000"], False),
        (["38.7", "12"], False),
        (["a,b", "c,d"], False),
        (["1,250"] * 20 + ["no, thanks"], False),
    ],
)
def test_decimal_commas_that_cannot_divide_thousands(texts, expected):
    assert has_decimal_commas(pd.Series(texts)) == expected


def test_other_decimal_marks_are_refused(capsys, tmp_path):
    path = write(tmp_path, "a,churn\n1,yes\n2,no\n")
    code, _, err = train(capsys, path, "--decimal", "x")
    assert code == 2
    assert "'x' is not one of '.', ','" in err


# --- delimiters -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        '"age, years";city;churn\n1;Graz;yes\n2;Oslo;no\n',
        "age, years;city;churn\n1;Graz;yes\n2;Oslo;no\n",
        '\ufeff"age, years, all";city;churn\n1;Graz;yes\n2;Oslo;no\n',
        '"age; years",city,churn\n1,"Graz; Oslo",yes\n2,Oslo,no\n',
        '"age, years"\tcity\tchurn\n1\tGraz, Oslo\tyes\n2\tOslo\tno\n',
        "age|city|churn\n1|Graz, Oslo|yes\n2|Oslo;Lima|no\n",
        'age;city;churn\n1;"Graz\nOslo";yes\n38,7;Oslo;no\n',
        "\n\nage;city;churn\r\n1,5;Graz;yes\r\n2;Oslo;no\r\n",
    ],
)
def test_delimiters_in_names_and_values_do_not_count(tmp_path, text):
    found = read_table(write(tmp_path, text), TextFormat(decimal="."))
    assert found.X.shape == (2, 3)
    assert found.X.columns[1:].tolist() == ["city", "churn"]


def test_lines_of_other_lengths_name_the_delimiter(capsys, tmp_path):
    path = write(tmp_path, "a:b:churn\n1,2:3:yes\n4:5:no\n")
    code, _, err = train(capsys, path)
    assert code == 2
    assert "line 2: it has 2 columns, the header has 1, divided by ','; --delimiter" in err
    assert read_table(path, TextFormat(delimiter=":")).X.shape == (2, 3)


def test_tabs_may_be_written_with_a_backslash(capsys, tmp_path):
    customers().to_csv(tmp_path / "a.csv", index=False, sep="\t")
    assert train(capsys, tmp_path / "a.csv", "--delimiter", "\\t")[0] == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--delimiter", "ab"], "--delimiter ab: it must be a single character"),
        (["--delimiter", "§"], "--delimiter §: it must be a single character"),
        (["--encoding", "utf-99"], "--encoding utf-99: there is no such encoding"),
        (["--encoding", "base64"], "--encoding base64: there is no such encoding"),
    ],
)
def test_options_that_no_file_can_have(capsys, tmp_path, options, message):
    code, _, err = train(capsys, write(tmp_path, "a,churn\n1,yes\n2,no\n"), *options)
    assert code == 2
    assert err.startswith(f"hardmargin: {message}")
    assert err.count("\n") == 1


# --- encodings ------------------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
@pytest.mark.parametrize(("name", "sep"), [("a.csv", ","), ("a.txt", "\t"), ("a.csv.gz", ";")])
def test_byte_order_marks_say_the_encoding(tmp_path, encoding, name, sep):
    frame = customers().assign(city="Zürich").rename(columns={"age": "âge"})
    frame.to_csv(tmp_path / name, index=False, sep=sep, encoding=encoding)
    pd.testing.assert_frame_equal(
        read_table(tmp_path / name).X[["âge", "city"]], frame[["âge", "city"]]
    )


@pytest.mark.parametrize("encoding", ["utf-16-be", "utf-32-be"])
def test_marks_of_the_other_byte_order(tmp_path, encoding):
    path = write(tmp_path, "\ufeffâge,churn\n1,yes\n2,no\n", encoding=encoding)
    assert read_table(path).X.columns.tolist() == ["âge", "churn"]


# --- targets --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a.csv", "a.parquet"])
def test_truth_values_stay_classes_where_some_are_missing(capsys, tmp_path, name):
    frame = customers()[["calls", "churn"]].copy()
    frame["churn"] = (frame["churn"] == "yes").astype("boolean")
    frame["member"] = frame["churn"]
    frame.loc[:9, ["churn", "member"]] = pd.NA
    path = tmp_path / name
    frame.to_csv(path, index=False) if name == "a.csv" else frame.to_parquet(path)
    code, out, _ = train(capsys, path, "--json")
    assert code == 0
    found = json.loads(out)
    assert found["classes"] == [False, True]
    assert found["columns"]["member"] == "number"
    arguments = ("predict", tmp_path / "m.skops", path, "--keep", "churn")
    _, out, err = run(capsys, *arguments)
    assert "0.00 % of 230 rows differ from 'churn'" in err
    assert out.splitlines()[0] == "churn,prediction"
    assert {line.split(",")[0] for line in out.splitlines()[1:]} == {"", "False", "True"}
    assert set(pd.read_csv(StringIO(out))["prediction"]) == {False, True}
    frame.dropna().to_csv(tmp_path / "full.csv", index=False)
    _, _, err = run(capsys, "predict", tmp_path / "m.skops", tmp_path / "full.csv")
    assert "0.00 % of 230 rows differ from 'churn'" in err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "a,churn\n1,None\n2,basic\n3,NA\n",
            "the same value, so there is nothing to learn; 2 of 3",
        ),
        ("a,churn\n1,None\n2,basic\n3,NA\n", "labels are missing: empty, or one of ?, NA, N/A"),
        ("a,churn\n1,None\n2,\n3,NA\n", "no row has a label, so there is nothing to learn; 3 of 3"),
    ],
)
def test_labels_that_count_as_missing_are_named(capsys, tmp_path, text, message):
    code, _, err = train(capsys, write(tmp_path, text))
    assert code == 2
    assert message in err


@pytest.mark.parametrize("option", ["--drop", "--groups"])
def test_the_target_is_nothing_else(capsys, tmp_path, option):
    path = tmp_path / "a.csv"
    customers().to_csv(path, index=False)
    code, _, err = train(capsys, path, option, "churn")
    assert code == 2
    assert f"{option} churn: it is the target, which --target names" in err
