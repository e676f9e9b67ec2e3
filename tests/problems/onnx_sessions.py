"""Models run by onnxruntime, and graphs of single parts."""

import numpy as np
import onnx
from onnxruntime import InferenceSession, SessionOptions

from hardmargin.onnx import to_onnx
from hardmargin.onnx.graph import Body

#: How far probabilities may be from ours.
TOLERANCE = 1e-4


def session(model):
    """Load a model; it must be valid, and leave no constant unused, which would cause a warning."""
    onnx.checker.check_model(model)
    options = SessionOptions()
    options.intra_op_num_threads = 1
    return InferenceSession(model.SerializeToString(), options)


def feed(model, X):
    """Rows as the inputs of a model take them; missing strings are empty."""
    if not hasattr(X, "columns"):
        return {"X": X}
    types = {value.name: value.type.tensor_type.elem_type for value in model.graph.input}
    columns = {name: np.asarray(X[name]) for name in X.columns}
    for name, values in columns.items():
        if types[name] == onnx.TensorProto.STRING:
            columns[name] = np.array(
                ["" if v is None or v != v else str(v) for v in values.tolist()], dtype=object
            )
    return {name: values[:, None] for name, values in columns.items()}


def run(model, X):
    """Outputs of a model."""
    return session(model).run(None, feed(model, X))


def assert_same_classes(clf, X, model=None):
    """Labels and probabilities in onnxruntime are ours, except labels of close calls."""
    model = to_onnx(clf, X) if model is None else model
    label, probabilities = run(model, X)
    expected = clf.predict_proba(X)
    np.testing.assert_allclose(probabilities, expected, rtol=0, atol=TOLERANCE)
    best = np.sort(expected, axis=1)
    is_clear = best[:, -1] - best[:, -2] > 2 * TOLERANCE
    assert is_clear.mean() > 0.5  # otherwise this would show little
    np.testing.assert_array_equal(label[is_clear], clf.predict(X)[is_clear])


def values_of(build, *arrays):
    """Evaluate a part: `build(graph, *tensors)` returns the name of a tensor."""
    body = Body("part")
    inputs = [body.input("float64", array.ndim) for array in arrays]
    output = build(body, *inputs)
    graph = body.finished((output, "float64", 2))
    opsets = [onnx.helper.make_opsetid("", 17), onnx.helper.make_opsetid("ai.onnx.ml", 2)]
    model = onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8)
    return session(model).run(None, dict(zip(inputs, arrays, strict=True)))[0]
