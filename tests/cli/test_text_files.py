"""Text files as programs and people write them: delimiters and encodings."""

import pandas as pd
import pytest
from problems.tables import customers

from hardmargin.cli import main
from hardmargin.cli.tables import read_table
from hardmargin.cli.text_files import TextFormat

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
        'age;city;churn\n1;"Graz\nOslo";yes\n38;Oslo;no\n',
        "\n\nage;city;churn\r\n1;Graz;yes\r\n2;Oslo;no\r\n",
    ],
)
def test_delimiters_in_names_and_values_do_not_count(tmp_path, text):
    found = read_table(write(tmp_path, text))
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
