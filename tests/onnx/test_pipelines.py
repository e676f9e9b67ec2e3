"""Pipelines, meta-estimators, and skl2onnx's own functions and options."""

import numpy as np
import pandas as pd
import pytest
import skl2onnx
from problems.onnx_sessions import TOLERANCE, assert_same_classes, run
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_wine
from sklearn.decomposition import PCA
from sklearn.ensemble import StackingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, StandardScaler

from hardmargin import CoreVectorSVC, EnsembleSVC, GreedySVC, MarginDiscriminantAnalysis
from hardmargin.onnx import register_converters, to_onnx

X, Y = load_wine(return_X_y=True)


@pytest.mark.parametrize("step", [StandardScaler(), MinMaxScaler(), PCA(4)], ids=repr)
@pytest.mark.parametrize("estimator", [EnsembleSVC, GreedySVC])
def test_steps(step, estimator):
    assert_same_classes(make_pipeline(step, estimator()).fit(X[::2], Y[::2]), X)


def test_steps_that_pass_rows_on():
    pipe = make_pipeline("passthrough", StandardScaler(), "passthrough", GreedySVC())
    assert_same_classes(pipe.fit(X, Y), X)


def test_an_imputer_takes_float32():
    """In onnxruntime; our own filling takes both."""
    rows = X.astype(np.float32)
    rows[::7, 2] = np.nan
    clf = make_pipeline(SimpleImputer(), GreedySVC()).fit(rows, Y)
    assert_same_classes(clf, rows)
    with pytest.raises(RuntimeError, match=r"cannot run .* give X.astype\(np.float32\)"):
        to_onnx(clf, rows.astype(np.float64))


def test_encoded_columns():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": rng.choice(["x", "y", "z"], len(X))})
    encode = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    columns = make_column_transformer((encode, ["c"]), (StandardScaler(), ["a", "b"]))
    assert_same_classes(make_pipeline(columns, GreedySVC()).fit(frame, Y), frame)


def test_features_for_another_classifier():
    steps = [
        StandardScaler(),
        MarginDiscriminantAnalysis(2),
        StandardScaler(),
        LogisticRegression(),
    ]
    assert_same_classes(make_pipeline(*steps).fit(X, Y), X)


def test_a_search():
    search = GridSearchCV(GreedySVC(), {"max_visits": [1, 4]}).fit(X, Y)
    assert_same_classes(search, X)


@pytest.mark.parametrize(
    "inner", [make_pipeline(StandardScaler(), CoreVectorSVC()), GreedySVC()], ids=["core", "greedy"]
)
def test_calibrated_scores(inner):
    assert_same_classes(CalibratedClassifierCV(inner).fit(X, Y), X)


def test_what_skl2onnx_does_not_convert_as_it_should():
    """It takes probabilities of pipelines for scores, whatever the classifier."""
    inner = make_pipeline(StandardScaler(), LogisticRegression())
    clf = CalibratedClassifierCV(inner).fit(X, Y)
    with pytest.warns(UserWarning, match="The ONNX model differs from this CalibratedClassifierCV"):
        to_onnx(clf, X)


def test_a_stack():
    parts = [("ensemble", EnsembleSVC()), ("greedy", GreedySVC())]
    assert_same_classes(StackingClassifier(parts, cv=3).fit(X, Y), X)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_skl2onnx_makes_dictionaries(dtype):
    rows = X.astype(dtype)
    clf = make_pipeline(StandardScaler(), EnsembleSVC()).fit(X, Y)
    register_converters()
    label, dictionaries = run(skl2onnx.to_onnx(clf, rows), rows)
    found = [[row[c] for c in (0, 1, 2)] for row in dictionaries]
    np.testing.assert_allclose(found, clf.predict_proba(rows), rtol=0, atol=TOLERANCE)
    np.testing.assert_array_equal(label, clf.predict(rows))


def test_skl2onnx_makes_columns():
    clf = GreedySVC().fit(X, Y)
    register_converters()
    model = skl2onnx.to_onnx(clf, X, options={"zipmap": "columns"})
    _, *columns = run(model, X)
    found = np.column_stack(columns)
    np.testing.assert_allclose(found, clf.predict_proba(X), rtol=0, atol=TOLERANCE)


def test_raw_scores():
    clf = EnsembleSVC().fit(X, Y)
    _, scores = run(to_onnx(clf, X, options={"raw_scores": True}), X)
    np.testing.assert_allclose(scores, clf.decision_function(X), atol=1e-9)


def test_numbers_of_classes_instead_of_labels():
    names = np.array(["a", "b", "c"])
    clf = GreedySVC().fit(X, names[Y])
    label, _ = run(to_onnx(clf, X, options={"nocl": True}), X)
    np.testing.assert_array_equal(names[label], clf.predict(X))


@pytest.mark.parametrize("target_opset", [15, 17, 21])
def test_versions_of_operators(target_opset):
    clf = EnsembleSVC().fit(X, Y)
    assert_same_classes(clf, X, to_onnx(clf, X, target_opset=target_opset))


def test_old_operators():
    with pytest.raises(ValueError, match="target_opset=14 is too old for GreedySVC; use at least"):
        to_onnx(GreedySVC().fit(X, Y), X, target_opset=14)


def test_indicators_of_an_imputer_are_refused():
    rows = X.copy()
    rows[::9, 1] = np.nan
    steps = SimpleImputer(add_indicator=True), StandardScaler(), GreedySVC(1.0, max_visits=1)
    with pytest.raises(ValueError, match="indicators of missing values that the step 'simpleimp"):
        to_onnx(make_pipeline(*steps).fit(rows, Y), rows)


def test_one_input_for_all_columns_is_named():
    frame = pd.DataFrame(X[:, :3], columns=["a", "b", "c"])
    clf = CalibratedClassifierCV(GreedySVC(1.0, max_visits=1), cv=2).fit(frame, Y)
    with pytest.raises(ValueError, match=r"CalibratedClassifierCV one input .*X\.to_numpy\(\)"):
        to_onnx(clf, frame)
    assert [value.name for value in to_onnx(clf, frame.to_numpy()).graph.input] == ["X"]
