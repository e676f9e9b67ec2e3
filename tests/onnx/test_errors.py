"""What cannot be exported, and what is said about it."""

import json
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_wine
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.kernel_approximation import Nystroem
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from hardmargin import (
    DiversifiedSVC,
    EnsembleSVC,
    GreedySVC,
    MarginDiscriminantAnalysis,
    MinimumEnclosingBall,
)
from hardmargin.onnx import machines, to_onnx
from hardmargin.onnx.agreement import check_agreement

X, Y = load_wine(return_X_y=True)
BOTH = pytest.mark.parametrize("estimator", [GreedySVC, MarginDiscriminantAnalysis])


@BOTH
def test_kernels_that_are_functions(estimator):
    model = estimator(kernel=lambda A, B: A @ B.T).fit(X, Y)
    with pytest.raises(ValueError, match=r"callable kernel cannot be exported to ONNX.* rbf"):
        to_onnx(model, X)


@BOTH
def test_precomputed_kernels(estimator):
    model = estimator(kernel="precomputed").fit(X @ X.T, Y)
    with pytest.raises(ValueError, match=r"precomputed kernel cannot be exported to ONNX.* rbf"):
        to_onnx(model, X @ X.T)


@pytest.mark.parametrize("estimator", [EnsembleSVC, MarginDiscriminantAnalysis])
def test_models_that_are_not_fitted(estimator):
    with pytest.raises(NotFittedError, match="not fitted yet"):
        to_onnx(estimator(), X)


@pytest.mark.parametrize("estimator", [DiversifiedSVC, MinimumEnclosingBall])
def test_estimators_without_a_graph(estimator):
    model = estimator().fit(X, Y)
    with pytest.raises(NotImplementedError, match=f"{estimator.__name__} cannot be exported.*use"):
        to_onnx(model, X)


def test_labels_that_onnx_does_not_have():
    labels = np.array([(1,), "a", "b"], dtype=object)
    clf = GreedySVC().fit(X, Y)
    clf.classes_ = labels
    with pytest.raises(ValueError, match="Labels in ONNX are strings or whole numbers"):
        to_onnx(clf, X)


def test_steps_that_skl2onnx_does_not_know():
    steps = [StandardScaler(), Nystroem(n_components=5, random_state=0), GreedySVC(max_visits=1)]
    pipe = make_pipeline(*steps).fit(X, Y)
    with pytest.raises(ValueError, match="'nystroem'") as raised:
        to_onnx(pipe, X)
    assert "\n" not in str(raised.value)
    assert "Z = pipe[:-1].transform(X); to_onnx(pipe[-1], Z)" in str(raised.value)
    Z = pipe[:-1].transform(X)
    to_onnx(pipe[-1], Z)


def test_estimators_around_a_classifier():
    clf = FixedThresholdClassifier(GreedySVC(max_visits=1), threshold=0.1).fit(X, Y > 0)
    message = r"cannot convert FixedThresholdClassifier; .* to_onnx\(model.estimator_, X\)"
    with pytest.raises(ValueError, match=message):
        to_onnx(clf, X)
    to_onnx(clf.estimator_, X)


def test_float32_is_only_advised_where_it_may_help():
    clf = GreedySVC(max_visits=1).fit(X, Y)
    with pytest.raises(RuntimeError, match="onnxruntime cannot run") as raised:
        check_agreement(clf, X[:, :5], to_onnx(clf, X))
    assert "float32" not in str(raised.value)


@pytest.mark.parametrize("rows", [X[0], "13", True, X.tolist()])
def test_what_the_graph_takes_must_be_rows(rows):
    with pytest.raises(ValueError, match="X must be rows"):
        to_onnx(GreedySVC().fit(X, Y), rows)


def test_texts_are_transformed_before_the_graph():
    texts = [f"{'good' if k % 2 else 'bad'} text {k % 7}" for k in range(60)]
    pipe = make_pipeline(TfidfVectorizer(), GreedySVC(max_visits=1)).fit(texts, np.arange(60) % 2)
    for rows in (texts, np.array(texts), np.array(texts, dtype=object)):
        with pytest.raises(ValueError, match=r"Z = pipe\[:-1\].transform\(X\)") as raised:
            to_onnx(pipe, rows)
        assert "text 3" not in str(raised.value)


def test_too_large(monkeypatch):
    monkeypatch.setattr(machines, "MAX_BYTES", 1000)
    with pytest.raises(ValueError, match=r"which holds at most 2 GB.* hardmargin.compress"):
        to_onnx(GreedySVC().fit(X, Y), X)


def test_sparse_rows_that_become_large(monkeypatch):
    monkeypatch.setattr(machines, "MANY_BYTES", 1000)
    clf = GreedySVC().fit(sp.csr_array(X), Y)
    with pytest.warns(UserWarning, match=r"support rows are dense in ONNX.* hardmargin.compress"):
        to_onnx(clf, X)


CHILD = """
import json, sys
import hardmargin.onnx
before = sorted({"onnx", "skl2onnx"} & set(sys.modules))
sys.modules["skl2onnx"] = None
try:
    hardmargin.onnx.register_converters()
except ImportError as error:
    json.dump([before, str(error)], sys.stdout)
"""


def test_the_extra_is_loaded_on_first_use_and_named_if_it_is_missing():
    child = subprocess.run(
        [sys.executable, "-c", CHILD], capture_output=True, text=True, check=False, timeout=60
    )
    before, message = json.loads(child.stdout)
    assert before == []
    assert "pip install 'hardmargin[onnx]'" in message
