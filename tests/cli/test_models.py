"""``hardmargin train``, ``predict`` and ``inspect``: from a raw table to scored rows."""

import json
import os
from io import StringIO

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
import skops.io
from problems.dataset_files import NOT_ARRAYS, write_member
from problems.tables import customers, write_customers
from sklearn.datasets import dump_svmlight_file, load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import FixedThresholdClassifier, TunedThresholdClassifierCV
from sklearn.pipeline import make_pipeline
from skrub import TableVectorizer

from hardmargin import EnsembleSVC, GreedySVC
from hardmargin.cli import main
from hardmargin.cli.inspect import about_model, described
from hardmargin.io import dump

QUICK = ["--estimator", "greedy", "--set", "gamma=spread", "--set", "max_visits=1"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A folder with a table and a model of it."""
    folder = tmp_path_factory.mktemp("trained")
    write_customers(folder)
    arguments = ["train", str(folder / "customers.csv"), "--target", "churn"]
    assert main([*arguments, "-o", str(folder / "model.skops")]) == 0
    return folder


def run(capsys, *arguments):
    """Exit code, and what was printed."""
    code = main(list(map(str, arguments)))
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def refused(capsys, *arguments):
    """The one line that says why."""
    code, out, err = run(capsys, *arguments)
    assert code == 2
    assert out == ""
    assert err.startswith("hardmargin: ")
    assert err.count("\n") == 1
    return err


# --- the way through ------------------------------------------------------------------------------


def test_training_says_what_it_found(capsys, tmp_path):
    path = write_customers(tmp_path)
    code, out, _ = run(capsys, "train", path, "--target", "churn", "-o", tmp_path / "m.skops")
    assert code == 0
    for text in ("EnsembleSVC", "240 rows, 5 columns of customers.csv", "no, yes", "log-loss"):
        assert text in out


def test_predictions_are_good_and_complete(capsys, trained, tmp_path):
    new = write_customers(tmp_path, "new.csv", n=300, seed=1)
    scored = tmp_path / "scored.csv"
    code, _, err = run(capsys, "predict", trained / "model.skops", new, "-o", scored)
    assert code == 0
    assert f"300 rows written to {scored}" in err
    assert "rows differ from 'churn'" in err
    found = pd.read_csv(scored)
    assert list(found) == ["prediction", "probability_no", "probability_yes"]
    assert (found["prediction"] == customers(300, 1)["churn"]).mean() > 0.7
    np.testing.assert_allclose(found.iloc[:, 1:].sum(axis=1), 1.0, atol=1e-6)


def test_labels_alone_on_the_terminal(capsys, trained):
    arguments = ("predict", trained / "model.skops", trained / "customers.csv", "--labels-only")
    code, out, _ = run(capsys, *arguments)
    assert code == 0
    assert out.splitlines()[0] == "prediction"
    assert set(out.splitlines()[1:]) == {"yes", "no"}


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("scored.parquet", pd.read_parquet),
        ("scored.json", pd.read_json),
        ("scored.tsv", lambda path: pd.read_csv(path, sep="\t")),
    ],
)
def test_formats_of_predictions(capsys, trained, tmp_path, name, read):
    arguments = ("predict", trained / "model.skops", trained / "customers.csv")
    assert run(capsys, *arguments, "-o", tmp_path / name)[0] == 0
    assert len(read(tmp_path / name)) == 240


def test_parts_of_a_table_are_predicted_as_the_whole(capsys, monkeypatch, trained):
    arguments = ("predict", trained / "model.skops", trained / "customers.csv")
    _, whole, _ = run(capsys, *arguments)
    monkeypatch.setattr("hardmargin.cli.predict.ROWS_AT_ONCE", 50)
    _, parts, _ = run(capsys, *arguments)
    pd.testing.assert_frame_equal(pd.read_csv(StringIO(parts)), pd.read_csv(StringIO(whole)))


def test_inspection_shows_loss_and_relevance(capsys, trained):
    code, out, _ = run(capsys, "inspect", trained / "model.skops")
    assert code == 0
    for text in ("held-out", "relevance", "calls", "microseconds per row", "model.skops"):
        assert text in out


def test_machines_read_json(capsys, trained):
    _, out, _ = run(capsys, "inspect", trained / "model.skops", "--json")
    found = json.loads(out)
    assert found["model"] == "EnsembleSVC"
    assert found["rows"] == 240
    assert 0 < found["held_out"]["log_loss"] < 1
    assert set(found["relevance"]) >= {"calls", "city", "age"}


def test_columns_may_be_reordered_and_more(capsys, trained, tmp_path):
    frame = customers()
    arguments = ("predict", trained / "model.skops")
    _, expected, _ = run(capsys, *arguments, trained / "customers.csv")
    frame[frame.columns[::-1]].assign(more=1).to_csv(tmp_path / "other.csv", index=False)
    _, out, _ = run(capsys, *arguments, tmp_path / "other.csv")
    assert out == expected


def test_categories_may_be_new(capsys, trained, tmp_path):
    customers().assign(city="Paris").to_csv(tmp_path / "new.csv", index=False)
    assert run(capsys, "predict", trained / "model.skops", tmp_path / "new.csv")[0] == 0


def test_rows_without_a_target_are_left_out(capsys, tmp_path):
    frame = customers().copy()
    frame.loc[:9, "churn"] = None
    frame.to_csv(tmp_path / "some.csv", index=False)
    arguments = ("train", tmp_path / "some.csv", "--target", "churn", *QUICK)
    code, out, err = run(capsys, *arguments, "-o", tmp_path / "m.skops")
    assert code == 0
    assert "10 rows without a target are left out" in err
    assert "230 rows" in out


def test_options_reach_the_classifier(capsys, tmp_path):
    path = write_customers(tmp_path)
    arguments = ("train", path, "--target", "churn", "--seed", 3, "--n-jobs", 2, *QUICK)
    code, out, _ = run(capsys, *arguments, "-o", tmp_path / "m.skops")
    assert code == 0
    for text in ("GreedySVC", "gamma='spread'", "max_visits=1", "n_jobs=2", "random_state=3"):
        assert text in out


def test_dropped_columns_are_not_needed(capsys, tmp_path):
    path = write_customers(tmp_path)
    arguments = ("train", path, "--target", "churn", "--drop", "since", "--drop", "age", *QUICK)
    assert run(capsys, *arguments, "-o", tmp_path / "m.skops")[0] == 0
    customers().drop(columns=["since", "age", "churn"]).to_csv(tmp_path / "new.csv", index=False)
    assert run(capsys, "predict", tmp_path / "m.skops", tmp_path / "new.csv")[0] == 0


def test_groups_are_held_out_together(capsys, tmp_path):
    path = write_customers(tmp_path)
    arguments = ("train", path, "--target", "churn", "--groups", "household")
    code, out, _ = run(capsys, *arguments, "-o", tmp_path / "m.skops")
    assert code == 0
    assert "StratifiedGroupKFold" in out
    assert "4 columns" in out


def test_a_model_of_groups_predicts(capsys, tmp_path):
    path, model = write_customers(tmp_path), tmp_path / "m.skops"
    run(capsys, "train", path, "--target", "churn", "--groups", "household", *QUICK, "-o", model)
    code, out, _ = run(capsys, "predict", model, path)
    assert code == 0
    assert out.startswith("prediction")


@pytest.mark.parametrize("estimator", ["CoreVectorSVC", "parzen"])
def test_other_classifiers_get_numbers(capsys, tmp_path, estimator):
    path = write_customers(tmp_path)
    arguments = ("train", path, "--target", "churn", "--estimator", estimator)
    assert run(capsys, *arguments, "-o", tmp_path / "m.skops")[0] == 0
    assert run(capsys, "predict", tmp_path / "m.skops", path)[0] == 0


def test_columns_are_kept_in_front_of_predictions(capsys, trained, tmp_path):
    customers().assign(id=np.arange(240) + 7).to_csv(tmp_path / "new.csv", index=False)
    arguments = ("predict", trained / "model.skops", tmp_path / "new.csv", "--labels-only")
    code, out, err = run(capsys, *arguments, "--keep", "id", "--keep", "city")
    assert code == 0
    assert "written" not in err
    found = pd.read_csv(StringIO(out))
    assert list(found) == ["id", "city", "prediction"]
    assert found["id"].tolist() == list(range(7, 247))
    line = refused(capsys, *arguments, "--keep", "citi")
    assert "--keep citi" in line
    assert "did you mean 'city'?" in line


def test_a_kept_column_must_not_be_called_like_a_prediction(capsys, trained, tmp_path):
    customers().assign(prediction=1).to_csv(tmp_path / "new.csv", index=False)
    arguments = ("predict", trained / "model.skops", tmp_path / "new.csv", "--keep", "prediction")
    assert "predictions have a column of this name too" in refused(capsys, *arguments)


# --- models that were fitted and saved in Python --------------------------------------------------

TABLE = customers().drop(columns=["since", "churn"])
LABELS = customers()["churn"]


def quick(**parameters):
    return GreedySVC(gamma="spread", max_visits=1, **parameters)


@pytest.mark.parametrize(
    "model",
    [
        quick(),
        make_pipeline(TableVectorizer(), quick()),
        make_pipeline("passthrough", quick()),
        FixedThresholdClassifier(
            make_pipeline("passthrough", quick()), threshold=0.1, pos_label="yes"
        ),
    ],
    ids=["bare", "vectorizer", "passthrough", "threshold"],
)
def test_columns_of_a_data_frame_are_found_by_name(capsys, tmp_path, model):
    path = dump(model.fit(TABLE, LABELS), tmp_path / "m.skops")
    new = customers(60, 3)
    new[new.columns[::-1]].to_csv(tmp_path / "new.csv", index=False)
    code, out, _ = run(capsys, "predict", path, tmp_path / "new.csv", "--labels-only")
    assert code == 0
    assert out.split()[1:] == model.predict(new[TABLE.columns]).tolist()
    new.drop(columns="calls").to_csv(tmp_path / "less.csv", index=False)
    line = refused(capsys, "predict", path, tmp_path / "less.csv")
    assert "lacks columns that the model was trained on: 'calls'" in line


def test_models_of_arrays_take_no_names(capsys, tmp_path):
    numbers = TABLE.drop(columns="city")
    path = dump(quick().fit(numbers.to_numpy(), LABELS), tmp_path / "m.skops")
    numbers.to_csv(tmp_path / "new.csv", index=False)
    line = refused(capsys, "predict", path, tmp_path / "new.csv")
    assert "has named columns, but the model was trained without names" in line


def test_rows_of_a_data_frame_may_come_without_names(capsys, tmp_path):
    numbers = TABLE.drop(columns="city")
    path = dump(quick().fit(numbers, LABELS), tmp_path / "m.skops")
    np.savez(tmp_path / "new.npz", X=numbers.to_numpy())
    assert run(capsys, "predict", path, tmp_path / "new.npz")[0] == 0


def test_inspection_shows_what_is_inside_another_estimator(capsys, tmp_path):
    model = FixedThresholdClassifier(EnsembleSVC(random_state=3), threshold=0.1, pos_label="yes")
    path = dump(model.fit(TABLE, LABELS), tmp_path / "m.skops")
    code, out, _ = run(capsys, "inspect", path)
    assert code == 0
    for text in (
        "FixedThresholdClassifier",
        "threshold=0.1",
        "EnsembleSVC (random_state=3)",
        "relevance",
    ):
        assert text in out


def test_a_tuned_threshold_is_shown():
    model = TunedThresholdClassifierCV(quick(), cv=2).fit(TABLE, LABELS == "yes")
    facts = described(about_model(model, {}))
    assert facts["threshold"] == f"{model.best_threshold_:.4g}"
    assert facts["inside"].startswith("GreedySVC")


def test_inspection_of_a_model_without_notes(capsys, tmp_path):
    model = make_pipeline(TableVectorizer(), EnsembleSVC(class_weight="balanced"))
    path = dump(model.fit(customers().drop(columns="churn"), LABELS), tmp_path / "m.skops")
    _, out, _ = run(capsys, "inspect", path)
    assert "240 rows, 5 columns" in out
    assert "(weighted by class_weight)" in out


# --- files ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.csv.gz", "a.parquet", "a.csv.bz2"])
def test_kinds_of_tables(capsys, tmp_path, name):
    path = tmp_path / name
    if name == "a.parquet":
        customers().to_parquet(path)
    else:
        write_customers(tmp_path, name)
    arguments = ("train", path, "--target", "churn", *QUICK, "-o", tmp_path / "m.skops")
    code, out, _ = run(capsys, *arguments)
    assert code == 0
    assert "240 rows, 5 columns" in out


def test_semicolons_are_found(capsys, tmp_path):
    path = tmp_path / "a.csv"
    customers().to_csv(path, index=False, sep=";")
    arguments = ("train", path, "--target", "churn", *QUICK, "-o", tmp_path / "m.skops")
    assert "5 columns" in run(capsys, *arguments)[1]


def test_svmlight_files(capsys, tmp_path):
    X, y = load_iris(return_X_y=True)
    dump_svmlight_file(X, y, str(tmp_path / "iris.svm"))
    model = tmp_path / "m.skops"
    assert run(capsys, "train", tmp_path / "iris.svm", *QUICK, "-o", model)[0] == 0
    code, _, err = run(capsys, "predict", model, tmp_path / "iris.svm")
    assert code == 0
    assert "rows differ" in err


@pytest.mark.parametrize("is_sparse", [False, True])
def test_npz_files(capsys, tmp_path, is_sparse):
    X, y = load_iris(return_X_y=True)
    np.savez(tmp_path / "iris.npz", X=X, y=y)
    assert run(capsys, "train", tmp_path / "iris.npz", *QUICK, "-o", tmp_path / "m.skops")[0] == 0
    new = tmp_path / "new.npz"
    sp.save_npz(new, sp.csr_array(X)) if is_sparse else np.savez(new, X=X)
    code, out, _ = run(capsys, "predict", tmp_path / "m.skops", new, "--labels-only")
    assert code == 0
    assert np.mean(np.array(out.split()[1:], dtype=int) == y) > 0.9


def test_nothing_is_replaced_unless_forced(capsys, trained):
    model = trained / "model.skops"
    arguments = ("train", trained / "customers.csv", "--target", "churn", *QUICK, "-o", model)
    before = model.read_bytes()
    assert "exists; --force" in refused(capsys, *arguments)
    assert model.read_bytes() == before


def test_forced_files_are_replaced(capsys, tmp_path):
    path, model = write_customers(tmp_path), tmp_path / "m.skops"
    model.write_text("old")
    arguments = ("train", path, "--target", "churn", *QUICK, "-o", model, "--force")
    assert run(capsys, *arguments)[0] == 0
    assert run(capsys, "inspect", model)[0] == 0
    assert sorted(os.listdir(tmp_path)) == ["customers.csv", "m.skops"]


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b,churn\n1,2,yes\n3,no\n", "line 3: it has 2 columns, the header has 3"),
        ("a,b,churn\n1,2,yes\n3,4,5,no\n", "line 3: it has 4 columns, the header has 3"),
        ("", "is empty"),
        ("a,b,churn\n", "has a header and no rows"),
        ("a,a,churn\n1,2,yes\n3,4,no\n", "two columns named 'a'"),
        ("churn\nyes\nno\n", "no column besides the target"),
        ("a,churn\n1,yes\n2,yes\n", "all rows have the same value"),
    ],
)
def test_tables_that_cannot_be_learned(capsys, tmp_path, text, message):
    path = tmp_path / "bad.csv"
    path.write_text(text)
    line = refused(capsys, "train", path, "--target", "churn", "-o", tmp_path / "m.skops")
    assert "bad.csv" in line
    assert message in line
    assert not (tmp_path / "m.skops").exists()


def test_other_encodings_are_named(capsys, tmp_path):
    path = tmp_path / "latin.csv"
    path.write_bytes("name,churn\nZoë,yes\nJörg,no\n".encode("latin-1"))
    line = refused(capsys, "train", path, "--target", "churn", "-o", tmp_path / "m.skops")
    assert "latin.csv" in line
    assert "not utf-8" in line
    assert "--encoding latin-1" in line


def test_a_target_of_numbers(capsys, tmp_path):
    frame = customers().assign(price=np.linspace(0, 1, 240))
    frame.to_csv(tmp_path / "a.csv", index=False)
    line = refused(capsys, "train", tmp_path / "a.csv", "--target", "price", "-o", "m.skops")
    assert "240 different values" in line


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--target", "chrun"], "no column 'chrun'; did you mean 'churn'?"),
        ([], "which column is the target?"),
        (["--target", "churn", "--drop", "agee"], "no column 'agee'; did you mean 'age'?"),
        (["--target", "churn", "--groups", "x"], "no column 'x'; it has 'age'"),
        (["--target", "churn", "--estimator", "gredy"], "did you mean 'greedy'"),
        (["--target", "churn", "--set", "gama=1"], "did you mean 'gamma'?"),
        (["--target", "churn", "--set", "gamma"], "write it as name=value"),
        (["--target", "churn", "--set", "gamma=-1"], "gamma"),
    ],
)
def test_wrong_options(capsys, tmp_path, arguments, message):
    path = write_customers(tmp_path)
    line = refused(capsys, "train", path, *arguments, "-o", tmp_path / "m.skops")
    assert message in line


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("missing.csv", "cannot be read: No such file"),
        ("table.xlsx", "what kind of table is it?"),
        ("folder.csv", "is a folder"),
    ],
)
def test_files_that_are_no_tables(capsys, tmp_path, name, message):
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "table.xlsx").touch()
    path = tmp_path / name
    line = refused(capsys, "train", path, "--target", "churn", "-o", tmp_path / "m.skops")
    assert name in line
    assert message in line


def test_names_of_columns_in_another_encoding(capsys, tmp_path):
    path = tmp_path / "latin.csv"
    path.write_bytes("größe,churn\n1,yes\n2,no\n".encode("latin-1"))
    line = refused(capsys, "train", path, "--target", "churn", "-o", tmp_path / "m.skops")
    assert "latin.csv, line 1: the text is not utf-8" in line


def test_a_column_number_that_is_too_large(capsys, tmp_path):
    path = tmp_path / "rows.svm"
    path.write_text(f"1 {2**70}:1\n")
    assert "not in svmlight format" in refused(capsys, "train", path, "-o", tmp_path / "m.skops")


def test_parquet_whose_notes_of_pandas_are_damaged(capsys, tmp_path):
    path = tmp_path / "t.parquet"
    table = pa.Table.from_pandas(customers()).replace_schema_metadata({"pandas": "{}"})
    pq.write_table(table, path)
    line = refused(capsys, "train", path, "--target", "churn", "-o", tmp_path / "m.skops")
    assert "t.parquet is damaged" in line


@pytest.mark.parametrize("command", ["train", "predict"])
def test_parquet_whose_names_of_columns_are_damaged(capsys, trained, tmp_path, command):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table(customers()).replace_schema_metadata(), path, store_schema=False)
    path.write_bytes(path.read_bytes().replace(b"churn", b"ch\xe9rn"))
    given = (path, "--target", "churn", "-o", tmp_path / "m.skops")
    given = given if command == "train" else (trained / "model.skops", path)
    assert "t.parquet is not a Parquet file: 'utf-8'" in refused(capsys, command, *given)


@pytest.mark.parametrize("content", NOT_ARRAYS.values(), ids=NOT_ARRAYS)
def test_npz_files_whose_members_are_no_arrays(capsys, tmp_path, content):
    path = tmp_path / "rows.npz"
    np.savez(path, X=np.eye(3), y=np.arange(3))
    write_member(path, "X.npy", content)
    assert "array" in refused(capsys, "train", path, "-o", tmp_path / "m.skops")


def test_npz_files_with_labels_of_another_shape(capsys, tmp_path):
    path = tmp_path / "rows.npz"
    np.savez(path, X=np.eye(4), y=np.array([0, 1]))
    line = refused(capsys, "train", path, "-o", tmp_path / "m.skops")
    assert "'y' has the shape (2,), not one label per row" in line


@pytest.mark.parametrize("command", ["inspect", "predict"])
def test_a_model_that_was_changed_and_does_not_work(capsys, tmp_path, command):
    X, y = load_iris(return_X_y=True)
    np.savez(tmp_path / "iris.npz", X=X, y=y)
    model = GreedySVC(1.0, max_visits=1).fit(X, y)
    model.relevance_, model._filling_ = np.ones((2, 3)), "nothing"
    path = dump(model, tmp_path / "m.skops")
    table = [tmp_path / "iris.npz"] if command == "predict" else []
    assert "m.skops was loaded but does not work" in refused(capsys, command, path, *table)


@pytest.mark.parametrize("name", ["bad.parquet", "bad.npz", "bad.svm"])
def test_files_that_are_not_what_they_say(capsys, tmp_path, name):
    path = tmp_path / name
    path.write_text("no such thing\n" * 10)
    assert name in refused(capsys, "train", path, "-o", tmp_path / "m.skops")


def test_missing_columns_are_named(capsys, trained, tmp_path):
    customers().drop(columns=["age", "calls"]).to_csv(tmp_path / "new.csv", index=False)
    line = refused(capsys, "predict", trained / "model.skops", tmp_path / "new.csv")
    assert "new.csv lacks columns that the model was trained on: 'age', 'calls'" in line


def test_text_where_numbers_were_is_named_by_its_place(capsys, trained, tmp_path):
    frame = customers().astype({"calls": object}).copy()
    frame.loc[4, "calls"] = "many"
    frame.to_csv(tmp_path / "new.csv", index=False)
    line = refused(capsys, "predict", trained / "model.skops", tmp_path / "new.csv")
    assert "new.csv, line 6, column 'calls': 'many' is not a number" in line


def test_a_model_of_another_package(capsys, trained, tmp_path):
    X, y = load_iris(return_X_y=True)
    path = tmp_path / "forest.skops"
    skops.io.dump(RandomForestClassifier(n_estimators=2).fit(X, y), path)
    for command in (["predict", path, trained / "customers.csv"], ["inspect", path]):
        assert "forest.skops was not saved by hardmargin" in refused(capsys, *command)


def test_a_model_that_is_missing(capsys, tmp_path):
    assert "m.skops does not exist" in refused(capsys, "inspect", tmp_path / "m.skops")


def test_outputs_of_unknown_kinds(capsys, trained):
    arguments = ("predict", trained / "model.skops", trained / "customers.csv", "-o", "a.xlsx")
    assert "the file name must end in .csv" in refused(capsys, *arguments)


@pytest.mark.parametrize("command", ["predict", "inspect", "export"])
def test_a_model_takes_no_more_memory_than_it_may(capsys, tmp_path, trained, command):
    rest = {"predict": [trained / "customers.csv"], "inspect": []}
    rest["export"] = ["--onnx", tmp_path / "m.onnx"]
    err = refused(capsys, command, trained / "model.skops", *rest[command], "--max-bytes", 1000)
    assert "--max-bytes" in err


def test_names_are_not_called_numbers(capsys, tmp_path):
    path = tmp_path / "a.csv"
    customers().assign(name=[f"name {k}" for k in range(240)]).to_csv(path, index=False)
    assert main(["train", str(path), "--target", "name", "-o", str(tmp_path / "m.skops")]) == 2
    line = capsys.readouterr().err
    assert "learns at most 120 classes from 240 rows. Are they names of the rows?" in line


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (["--set", "gamma=abc"], "hardmargin: --set gamma=abc: The 'gamma' parameter"),
        (["--n-jobs", "0"], "hardmargin: --n-jobs: The 'n_jobs' parameter"),
    ],
)
def test_a_wrong_value_is_blamed_on_its_option(capsys, tmp_path, option, message):
    path = write_customers(tmp_path)
    arguments = ["--target", "churn", "-o", str(tmp_path / "m.skops"), *option]
    assert main(["train", str(path), *arguments]) == 2
    assert capsys.readouterr().err.startswith(message)
