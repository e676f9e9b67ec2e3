"""``hardmargin export``: graphs that predict as the models do."""

import numpy as np
import pandas as pd
import pytest
from problems.tables import customers, write_customers
from sklearn.datasets import load_iris

from hardmargin.cli import main
from hardmargin.cli.inspect import load_model

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
    assert "dates and text are turned into numbers before" in capsys.readouterr().err
    new = customers(60, 3).drop(columns="churn")
    encoded = model[:-1].transform(new)
    feed = {
        name: (
            encoded[[name]].astype(object).to_numpy()
            if isinstance(encoded[name].dtype, pd.CategoricalDtype)
            else encoded[[name]].to_numpy(dtype=np.float32)
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
