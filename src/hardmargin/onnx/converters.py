"""Converters: what skl2onnx needs to know about our estimators."""

from __future__ import annotations

import re
from numbers import Integral
from typing import Any

import numpy as np
import skl2onnx
from numpy.typing import NDArray
from skl2onnx import update_registered_converter
from skl2onnx.common.data_types import (
    BooleanTensorType,
    DoubleTensorType,
    FloatTensorType,
    Int64TensorType,
    StringTensorType,
)
from skl2onnx.common.exceptions import MissingConverter, MissingShapeCalculator
from skl2onnx.common.utils import InvalidInputLengthException
from sklearn.base import is_classifier
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from hardmargin.estimators._base.classifier import KernelClassifier
from hardmargin.estimators._base.columns import is_data_frame, readable
from hardmargin.estimators._base.estimator import check_model
from hardmargin.estimators._base.fitted import (
    categories_of,
    experts_in,
    filling_of,
    is_mixture,
    kernel_of,
)
from hardmargin.estimators.core_vector import CoreVectorSVC
from hardmargin.estimators.discriminant import MarginDiscriminantAnalysis
from hardmargin.estimators.diversified import DiversifiedSVC
from hardmargin.estimators.enclosing_ball import MinimumEnclosingBall
from hardmargin.estimators.ensemble import EnsembleSVC
from hardmargin.estimators.greedy import GreedySVC
from hardmargin.estimators.hard_margin import HardMarginSVC
from hardmargin.estimators.multiplicative import MultiplicativeSVC
from hardmargin.estimators.parzen import ParzenClassifier
from hardmargin.estimators.path import PathSVC
from hardmargin.estimators.rho import RhoSVC
from hardmargin.estimators.rho_ensemble import RhoEnsembleSVC
from hardmargin.estimators.rigorous import RigorousSVC
from hardmargin.onnx.agreement import check_agreement
from hardmargin.onnx.cells import mixture_logs
from hardmargin.onnx.expansion import expanded, linear
from hardmargin.onnx.graph import LEAST_OPSET, MainGraph
from hardmargin.onnx.machines import check_size, classified, kernels_of
from hardmargin.onnx.probabilities import Outcome, of_logs
from hardmargin.onnx.scaling import scaled
from hardmargin.onnx.table import Input, as_matrix, column_values, filled

CLASSIFIERS: tuple[type[KernelClassifier], ...] = (
    CoreVectorSVC,
    EnsembleSVC,
    GreedySVC,
    HardMarginSVC,
    MultiplicativeSVC,
    ParzenClassifier,
    PathSVC,
    RhoEnsembleSVC,
    RhoSVC,
    RigorousSVC,
)

#: Estimators that have no graph, and what to use instead.
INSTEAD = {
    "DiversifiedSVC": "use MarginDiscriminantAnalysis, StandardScaler and SVC in a pipeline",
    "MinimumEnclosingBall": "use an outlier detector that skl2onnx knows, such as OneClassSVM",
}

#: Options of skl2onnx that classifiers have.
OPTIONS = {
    "zipmap": [True, False, "columns"],
    "nocl": [True, False],
    "output_class_labels": [False, True],
    "raw_scores": [True, False],
}


def register() -> None:
    """Register the converters of all estimators."""
    for estimator in CLASSIFIERS:
        update_registered_converter(
            estimator,
            f"Hardmargin{estimator.__name__}",
            _classifier_shapes,
            _convert_classifier,
            options=OPTIONS,
        )
    update_registered_converter(
        MarginDiscriminantAnalysis,
        "HardmarginMarginDiscriminantAnalysis",
        _transformer_shapes,
        _convert_discriminant,
    )
    for other, options in ((DiversifiedSVC, OPTIONS), (MinimumEnclosingBall, None)):
        alias = f"Hardmargin{other.__name__}"
        update_registered_converter(other, alias, _refuse, _convert_classifier, options=options)


def convert(model: Any, X: Any, *, target_opset: int | dict[str, int] | None, options: Any) -> Any:
    """Convert a model: see ``hardmargin.onnx.to_onnx``."""
    register()
    _refuse_indicators(model)
    X = readable(X)
    _refuse_texts(model, X)
    types, is_plain = _input_types(X), options is None
    if all(isinstance(key, str) for key in options or {}):
        plain = {"zipmap": False} if is_classifier(model) else {}
        options = {id(_last_step(model)): {**plain, **(options or {})}}
    try:
        graph = skl2onnx.to_onnx(
            _without_passing(model),
            initial_types=types,
            target_opset=target_opset,
            options=options,
        )
    except (MissingShapeCalculator, MissingConverter) as error:
        raise ValueError(_advice(model, str(error))) from error
    except InvalidInputLengthException as error:
        raise ValueError(
            f"skl2onnx gives {type(_last_step(model)).__name__} one input for all columns: give "
            "X.to_numpy() if all are numbers; categories need a pipeline that turns them into "
            "numbers, such as make_pipeline(make_column_transformer(...), ...)."
        ) from error
    _name_inputs(graph, [name for name, _ in types])
    if is_plain and not isinstance(X, Integral):
        check_agreement(model, X, graph)
    return graph


def _last_step(model: Any) -> Any:
    return _last_step(model.steps[-1][1]) if hasattr(model, "steps") else model


def _without_passing(model: Any) -> Any:
    """Leave out the steps of a pipeline that pass rows on, as skl2onnx does not know them."""
    steps = getattr(model, "steps", [])
    kept = [(name, step) for name, step in steps if not isinstance(step, str | None)]
    return Pipeline(kept) if 0 < len(kept) < len(steps) else model


def _refuse_indicators(model: Any) -> None:
    """Refuse an imputer that appends indicators, which skl2onnx leaves out."""
    for name, step in getattr(model, "steps", []):
        if getattr(step, "indicator_", None) is not None and len(step.indicator_.features_) > 0:
            raise ValueError(
                f"skl2onnx cannot convert the indicators of missing values that the step {name!r} "
                "appends (add_indicator=True); transform rows before the graph: "
                "Z = pipe[:-1].transform(X); to_onnx(pipe[-1], Z). EnsembleSVC and GreedySVC take "
                "missing values without an imputer."
            )


def _refuse_texts(model: Any, X: Any) -> None:
    """Refuse texts, which vectorizers take, for a pipeline."""
    is_flat = hasattr(X, "__iter__") and not is_data_frame(X) and getattr(X, "ndim", 1) == 1
    if hasattr(model, "steps") and is_flat and isinstance(next(iter(X), None), str):
        raise ValueError(
            "X is a list of texts, not rows: transform texts before the graph: "
            "Z = pipe[:-1].transform(X); to_onnx(pipe[-1], Z)."
        )


def _briefly(X: Any) -> str:
    """Show what was given, without its values where there are many."""
    shape = getattr(X, "shape", (len(X),) if hasattr(X, "__len__") else None)
    return repr(X) if shape is None else f"{type(X).__name__} of shape {shape}"


def _advice(model: Any, message: str) -> str:
    """Say which estimator skl2onnx does not know, and what can be done without it."""
    found = re.search(r"<class '(?:.*\.)?(\w+)'>", message)
    unknown = found[1] if found else "a part of this model"
    steps, final = getattr(model, "steps", []), _last_step(model)
    labels = [f"the step {name!r} ({unknown})" for name, s in steps if type(s).__name__ == unknown]
    inner = (
        ".estimator_" if type(final).__name__ == unknown and hasattr(final, "estimator_") else ""
    )
    todo = "use an estimator that it knows."
    if steps:
        todo = (
            "transform rows before the graph: Z = pipe[:-1].transform(X); "
            f"to_onnx(pipe[-1]{inner}, Z)."
        )
    elif inner:
        todo = "convert the model in it: to_onnx(model.estimator_, X)."
    after = f" What {unknown} does with its probabilities comes after the graph." if inner else ""
    return f"skl2onnx cannot convert {labels[0] if labels else unknown}; {todo}{after}"


def _input_types(X: Any) -> list[tuple[str, Any]]:
    """Name the inputs of a graph, and tell their types."""
    if isinstance(X, Integral) and not isinstance(X, bool):
        return [("X", DoubleTensorType([None, int(X)]))]
    if is_data_frame(X):
        return [(str(name), _tensor_type(column_values(X, name))([None, 1])) for name in X.columns]
    if len(getattr(X, "shape", ())) != 2:
        raise ValueError(
            "X must be rows (an array of two dimensions or a data frame) or the number of "
            f"columns, got {_briefly(X)}."
        )
    return [("X", _tensor_type(X)([None, X.shape[1]]))]


def _name_inputs(graph: Any, names: list[str]) -> None:
    """Give inputs the names of the columns: skl2onnx replaces spaces and the like in them."""
    inputs = graph.graph.input
    new = {value.name: name for value, name in zip(inputs, names, strict=True)}
    for value in inputs:
        value.name = new[value.name]
    for node in graph.graph.node:
        node.input[:] = [new.get(name, name) for name in node.input]


def _tensor_type(values: Any) -> Any:
    kind = np.dtype(values.dtype).kind
    if values.dtype == np.float32:
        return FloatTensorType
    return {
        "f": DoubleTensorType,
        "i": Int64TensorType,
        "u": Int64TensorType,
        "b": BooleanTensorType,
    }.get(kind, StringTensorType)


def _classifier_shapes(operator: Any) -> None:
    """Tell the types and shapes of a classifier's outputs."""
    check_is_fitted(operator.raw_operator)
    labels = _labels(operator)
    n_rows = operator.inputs[0].get_first_dimension()
    label_type = StringTensorType if labels.dtype.kind in "OU" else Int64TensorType
    operator.outputs[0].set_type(label_type([n_rows]))
    operator.outputs[1].set_type(_float_type(operator, 1)([n_rows, len(labels)]))


def _transformer_shapes(operator: Any) -> None:
    """Tell the type and shape of the projections."""
    check_is_fitted(operator.raw_operator)
    n_rows = operator.inputs[0].get_first_dimension()
    n_components = len(operator.raw_operator.directions_)
    operator.outputs[0].set_type(_float_type(operator, 0)([n_rows, n_components]))


def _refuse(operator: Any) -> None:
    """Say that an estimator has no graph, and what to use instead."""
    name = type(operator.raw_operator).__name__
    raise NotImplementedError(f"{name} cannot be exported to ONNX; {INSTEAD[name]}.")


def _float_type(operator: Any, output: int) -> Any:
    """Return the type of a float output: as it was declared, for instance by a meta-estimator.

    Only float32 fits into dictionaries of probabilities.
    """
    variable = operator.outputs[output]
    for other in operator.scope_inst.operators.values():
        if other.type == "SklearnZipMap" and variable in other.inputs:
            return FloatTensorType
    is_double = isinstance(variable.type, DoubleTensorType)
    return DoubleTensorType if is_double else FloatTensorType


def _labels(operator: Any) -> NDArray[Any]:
    """Return the labels of the classes: strings or whole numbers, as others are not possible."""
    model = operator.raw_operator
    options = operator.scope_inst.get_options(model, {"nocl": False})
    classes = np.arange(len(model.classes_)) if options["nocl"] else np.asarray(model.classes_)
    if classes.dtype.kind in "iub":
        return classes.astype(np.int64)
    if all(isinstance(label, str) for label in classes):
        return classes.astype(object)
    if classes.dtype.kind == "f" and (classes == np.round(classes)).all():
        return classes.astype(np.int64)
    raise ValueError(
        "Labels in ONNX are strings or whole numbers; this model has "
        f"{', '.join(map(repr, classes[:3].tolist()))}. Encode them before fit, or use the option "
        "'nocl', which gives the numbers of the classes."
    )


def _convert_classifier(scope: Any, operator: Any, container: Any) -> None:
    """Add the graph of a classifier."""
    model = operator.raw_operator
    graph, rows = _begun(scope, operator, container)
    rows = filled(graph, rows, filling_of(model))
    outcome = _outcome(graph, rows, model)
    options = scope.get_options(model, {"raw_scores": False})
    shown = outcome.scores if options["raw_scores"] else outcome.probabilities
    labels = graph.node("Gather", graph.constant(_labels(operator)), outcome.codes)
    graph.result(labels, operator.outputs[0].full_name)
    _result(graph, operator.outputs[1], outcome.scores if shown is None else shown)


def _outcome(graph: MainGraph, rows: str, model: Any) -> Outcome:
    if not is_mixture(model):
        return classified(graph, rows, model)
    experts = experts_in(model)
    as_seen = scaled(graph, rows, experts.scaling)
    logs = mixture_logs(graph, rows, as_seen, experts, experts.class_weights)
    return of_logs(graph, logs, len(model.classes_))


def _convert_discriminant(scope: Any, operator: Any, container: Any) -> None:
    """Add the graph of the projections."""
    model = operator.raw_operator
    graph, rows = _begun(scope, operator, container)
    kernel, support = kernel_of(model), model.support_vectors_
    assert kernel is not None  # it is no mixture
    kernels = kernels_of(kernel)
    if kernel.name == "linear":
        projections = linear(graph, rows, np.asarray(model.directions_ @ support))
    else:
        check_size(support, kernels, model.directions_)
        every = [np.arange(support.shape[0])]
        projections = expanded(graph, rows, support, kernels, model.directions_, every)
    _result(graph, operator.outputs[0], projections)


def _begun(scope: Any, operator: Any, container: Any) -> tuple[MainGraph, str]:
    """Begin the graph of a fitted model, with its inputs as one matrix."""
    model = operator.raw_operator
    check_model(model)
    kernel = kernel_of(model)
    if kernel is not None:
        kernels_of(kernel)
    if container.target_opset < LEAST_OPSET:
        raise ValueError(
            f"target_opset={container.target_opset} is too old for {type(model).__name__}; use at "
            f"least {LEAST_OPSET}."
        )
    graph = MainGraph(scope, container, type(model).__name__)
    inputs = [Input(part.full_name, part.type) for part in operator.inputs]
    return graph, as_matrix(graph, inputs, model.n_features_in_, categories_of(model))


def _result(graph: MainGraph, output: Any, tensor: str) -> None:
    """Give a tensor the name and the type of an output."""
    dtype = "float64" if isinstance(output.type, DoubleTensorType) else "float32"
    graph.result(graph.cast(tensor, dtype), output.full_name)
