"""Agreement: whether onnxruntime gives what the model gives, on some rows.

Graphs of pipelines also have parts that others converted. Not every step has a graph that
onnxruntime can run, and not every combination of estimators is converted as it should be.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto
from onnxruntime import InferenceSession, SessionOptions
from sklearn.base import is_classifier

from hardmargin.estimators._base.columns import is_data_frame, is_missing
from hardmargin.kernels import is_sparse
from hardmargin.onnx.table import MISSING, column_values
from hardmargin.warn import warn_caller

#: Rows that are compared, and how far probabilities (or features, relative to the largest) may be
#: apart.
MAX_ROWS = 100
TOLERANCE = 1e-4


def check_agreement(model: Any, X: Any, graph: ModelProto) -> None:
    """Run a graph on the first rows; warn if it differs from the model.

    Parameters
    ----------
    model : fitted estimator or pipeline
        The model; of a classifier, the graph has arrays of labels and probabilities.
    X : array, data frame or sparse matrix
        Rows.
    graph : ModelProto
        The same in ONNX.
    """
    rows = X[:MAX_ROWS]
    if rows.shape[0] == 0:
        return
    outputs = _run(graph, _feed(graph, rows))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they are about the rows, and predictions will repeat them
        apart = _apart(model, rows, outputs)
    if not apart <= TOLERANCE:
        warn_caller(
            f"The ONNX model differs from this {type(model).__name__} by up to {apart:.2g} on the "
            "rows given. If they are float32, give float64 rows; otherwise skl2onnx may not "
            "convert this combination of estimators as it should.",
            UserWarning,
        )


def _run(graph: ModelProto, feed: dict[str, NDArray[Any]]) -> list[NDArray[Any]]:
    """Run a graph in onnxruntime."""
    options = SessionOptions()
    options.intra_op_num_threads = 1
    try:
        outputs = InferenceSession(graph.SerializeToString(), options).run(None, feed)
    except Exception as error:  # those of onnxruntime have no class in common
        hint = ""
        if _is_about_types(graph, str(error)):
            hint = (
                " Some steps of pipelines, such as SimpleImputer, take only float32 there: give "
                "X.astype(np.float32), or so the columns of numbers of a data frame."
            )
        raise RuntimeError(
            f"onnxruntime cannot run the graph of this model: {str(error).rstrip('. ')}.{hint}"
        ) from error
    return list(outputs)


def _is_about_types(graph: ModelProto, message: str) -> bool:
    """Whether float32 may help: an operator has no code for float64, or refuses it."""
    is_double = any(
        value.type.tensor_type.elem_type == TensorProto.DOUBLE for value in graph.graph.input
    )
    return is_double and ("NOT_IMPLEMENTED" in message or "type" in message.lower())


def _feed(graph: ModelProto, rows: Any) -> dict[str, NDArray[Any]]:
    """Rows as the inputs of a graph take them."""
    if not is_data_frame(rows):
        dense = rows.toarray() if is_sparse(rows) else np.asarray(rows)
        columns = {"X": dense}
    else:
        columns = {str(name): column_values(rows, name)[:, None] for name in rows.columns}
    for value in graph.graph.input:
        tensor = columns[value.name]
        if value.type.tensor_type.elem_type == TensorProto.STRING:
            strings = [MISSING if is_missing(v) else str(v) for v in tensor.ravel().tolist()]
            columns[value.name] = np.array(strings, dtype=object).reshape(tensor.shape)
        elif value.type.tensor_type.elem_type == TensorProto.INT64:
            columns[value.name] = tensor.astype(np.int64)
        elif value.type.tensor_type.elem_type == TensorProto.DOUBLE:
            columns[value.name] = tensor.astype(np.float64)
    return columns


def _apart(model: Any, rows: Any, outputs: list[NDArray[Any]]) -> float:
    """Largest difference; without probabilities, the share of labels that differ."""
    if not is_classifier(model):
        expected = np.asarray(model.transform(rows))
        return float(np.abs(outputs[0] - expected).max() / max(np.abs(expected).max(), 1.0))
    if not hasattr(model, "predict_proba"):
        return float(np.mean(outputs[0] != model.predict(rows)))
    return float(np.abs(outputs[1] - model.predict_proba(rows)).max())
