"""``hardmargin export``: graphs that predict as the models do."""

import numpy as np
import pandas as pd
import pytest
from problems.tables import customers, write_customers
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from skrub import TableVectorizer

from hardmargin import EnsembleSVC, GreedySVC
from hardmargin.cli import main
from hardmargin.cli.inspect import load_model
from hardmargin.io import dump

onnxruntime = pytest.importorskip("onnxruntime")


def exported(folder, *arguments):
    path = folder / "model.skops"
    assert main(["train", *map(str, arguments), "-o", str(path)]) == 0
    assert main(["export", str(path), "--onnx", str(folder / "model.onnx")]) == 0
    return load_model(path), onnxruntime.InferenceSession(str(folder / "model.onnx"))


def test_a_table_of_numbers_and_categories(tmp_path, capsys):
    frame = customers().drop(columns=["since"])
    frame.to_csv(tmp_path / "a.csv", index=False)
    model, session = exported(tmp_path, tmp_path / "a.csv", "--target", "churn")
    names = [node.name for node in session.get_inputs()]
    assert names == ["age", "city", "calls", "household"]
    new = customers(60, 3)
    feed = {
        name: new[[name]].to_numpy(dtype=object if name == "city" else np.float32) for name in names
    }
    _, chances = session.run(None, feed)
    expected = model.predict_proba(new[names])
    np.testing.assert_allclose(chances, expected, atol=1e-4)


def test_dates_are_encoded_before_the_graph(tmp_path, capsys):
    path = write_customers(tmp_path)
    model, session = exported(tmp_path, path, "--target", "churn")
    names = [node.name for node in session.get_inputs()]
    assert "since_year" in names
    assert "the graph takes dates and text as numbers" in capsys.readouterr().err
    new = customers(60, 3).drop(columns="churn")
    encoded = model[:-1].transform(new)
    feed = {
        name: (
            encoded[[name]].to_numpy(dtype=np.float32)
            if pd.api.types.is_numeric_dtype(encoded[name].dtype)
            else encoded[[name]].astype(object).to_numpy()
        )
        for name in names
    }
    _, chances = session.run(None, feed)
    np.testing.assert_allclose(chances, model.predict_proba(new), atol=1e-4)


def test_arrays(tmp_path):
    X, y = load_iris(return_X_y=True)
    np.savez(tmp_path / "iris.npz", X=X, y=y)
    model, session = exported(tmp_path, tmp_path / "iris.npz", "--estimator", "greedy")
    label, chances = session.run(None, {"X": X})
    np.testing.assert_array_equal(label, model.predict(X))
    np.testing.assert_allclose(chances, model.predict_proba(X), atol=1e-4)


def test_what_has_no_graph_is_refused(tmp_path, capsys):
    path, model = write_customers(tmp_path), str(tmp_path / "m.skops")
    arguments = ["train", str(path), "--target", "churn", "--estimator", "diversified"]
    assert main([*arguments, "-o", model]) == 0
    capsys.readouterr()
    assert main(["export", model, "--onnx", str(tmp_path / "m.onnx")]) == 2
    printed = capsys.readouterr().err
    assert printed.startswith("hardmargin: ")
    assert "DiversifiedSVC" in printed
    assert not (tmp_path / "m.onnx").exists()


# --- models that were fitted and saved in Python --------------------------------------------------


def exported_from_python(folder, model):
    path, graph = dump(model, folder / "m.skops"), folder / "m.onnx"
    assert main(["export", str(path), "--onnx", str(graph)]) == 0
    return onnxruntime.InferenceSession(str(graph))


@pytest.mark.parametrize("first", [[], ["passthrough"]], ids=["bare", "passthrough"])
def test_columns_of_a_data_frame_are_inputs(tmp_path, first):
    frame, y = customers().drop(columns=["since", "churn"]), customers()["churn"]
    model = make_pipeline(*first, EnsembleSVC()) if first else EnsembleSVC()
    session = exported_from_python(tmp_path, model.fit(frame, y))
    assert {node.name: node.type for node in session.get_inputs()} == {
        name: "tensor(string)" if name == "city" else "tensor(double)" for name in frame
    }
    feed = {
        name: frame[[name]].to_numpy(dtype=object if name == "city" else np.float64)
        for name in frame
    }
    np.testing.assert_allclose(session.run(None, feed)[1], model.predict_proba(frame), atol=1e-4)


def test_what_a_vectorizer_makes_of_a_data_frame_is_input(tmp_path, capsys):
    frame = customers().drop(columns="churn")
    model = make_pipeline(TableVectorizer(), GreedySVC()).fit(frame, customers()["churn"])
    session = exported_from_python(tmp_path, model)
    assert "the graph takes dates and text as numbers" in capsys.readouterr().err
    encoded = model[:-1].transform(frame)
    feed = {node.name: encoded[[node.name]].to_numpy() for node in session.get_inputs()}
    np.testing.assert_allclose(session.run(None, feed)[1], model.predict_proba(frame), atol=1e-4)


def test_kinds_of_columns_that_are_not_known(tmp_path, capsys):
    frame = customers()[["calls", "city"]]
    columns = make_column_transformer(
        (OneHotEncoder(sparse_output=False), ["city"]), (StandardScaler(), ["calls"])
    )
    model = make_pipeline(columns, GreedySVC()).fit(frame, customers()["churn"])
    path = dump(model, tmp_path / "m.skops")
    assert main(["export", str(path), "--onnx", str(tmp_path / "m.onnx")]) == 2
    assert "hardmargin.onnx.to_onnx(model, frame)" in capsys.readouterr().err
    assert not (tmp_path / "m.onnx").exists()


def test_all_inputs_are_listed(tmp_path, capsys):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(40, 30)), columns=[f"column{j}" for j in range(30)])
    exported_from_python(tmp_path, GreedySVC(max_visits=1).fit(frame, frame["column0"] > 0))
    assert "column28, column29\n" in capsys.readouterr().out
