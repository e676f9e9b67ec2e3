"""Tables: the inputs of a graph as one float64 matrix, without categories and missing values."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from skl2onnx.common.data_types import (
    BooleanTensorType,
    DataType,
    FloatTensorType,
    Int64TensorType,
    StringTensorType,
)

from hardmargin.estimators._base.categories import Categories
from hardmargin.estimators._base.columns import NUMBERS, is_missing
from hardmargin.estimators._base.missing import Filling
from hardmargin.onnx.graph import Graph

#: A missing value among strings.
MISSING = ""

#: Columns of these types are looked up in a table of categories; others are compared with each.
ENCODED = (StringTensorType, Int64TensorType)

#: How whole numbers are written as categories.
WHOLE = re.compile(r"0|-?[1-9]\d*", re.ASCII)

#: Categories that are booleans, and the numbers that these are.
TRUTH = {"False": 0.0, "True": 1.0}


class Input(NamedTuple):
    """An input of the graph.

    Attributes
    ----------
    name : str
        The tensor.
    type : DataType
        skl2onnx's type.
    """

    name: str
    type: DataType

    @property
    def n_columns(self) -> int | None:
        """Number of columns, if it is known."""
        shape = self.type.shape
        return int(shape[1]) if len(shape) == 2 and isinstance(shape[1], int) else None


def column_values(frame: Any, name: Any) -> NDArray[Any]:
    """Values of a column of a data frame; numbers with gaps are floats, also if kept as objects."""
    column = frame[name]
    is_nullable = not isinstance(column.dtype, np.dtype)
    if is_nullable and getattr(column.dtype, "kind", "O") in "biuf":
        return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
    values = np.asarray(column)
    if values.dtype != object:
        return values
    known = [value for value in values.tolist() if not is_missing(value)]
    if not known or not all(isinstance(value, NUMBERS) for value in known):
        return values
    return np.array([np.nan if is_missing(v) else float(v) for v in values.tolist()])


def as_matrix(
    graph: Graph, inputs: Sequence[Input], n_columns: int, categories: Categories | None
) -> str:
    """Put the columns of all inputs beside each other, categories as numbers."""
    widths = [part.n_columns for part in inputs]
    if len(inputs) == 1 and widths[0] is None:
        widths = [n_columns]
    if None in widths or sum(w or 0 for w in widths) != n_columns:
        shown = ", ".join("an unknown number" if w is None else str(w) for w in widths)
        raise ValueError(
            f"The inputs of the graph have {shown} columns, but the model was fitted to "
            f"{n_columns}; give rows like those passed to fit."
        )
    known: dict[int, tuple[NDArray[Any], NDArray[Any] | None]] = {}
    if categories is not None:
        pairs = zip(categories.known, categories.effects, strict=True)
        known = dict(zip(categories.columns.tolist(), pairs, strict=True))
    parts, begin = [], 0
    for part, width in zip(inputs, widths, strict=True):
        own = range(begin, begin + (width or 0))
        begin = own.stop
        if not known.keys() & set(own):
            parts.append(_numbers(graph, part))
            continue
        for j in own:
            one = part.name
            if len(own) > 1:
                one = graph.columns(part.name, np.array([j - own.start]))
            column = Input(one, type(part.type)([None, 1]))
            parts.append(
                _of_categories(graph, column, *known[j]) if j in known else _numbers(graph, column)
            )
    return graph.side_by_side(parts)


def filled(graph: Graph, rows: str, filling: Filling | None) -> str:
    """Fill missing values, and append indicators, as `Filling` does."""
    if filling is None:
        return rows
    is_empty = np.isnan(filling.medians)
    missing = graph.node("IsNaN", rows)
    medians = graph.constant(np.where(is_empty, 0.0, filling.medians))
    complete = graph.node("Where", missing, medians, rows)
    if is_empty.any():
        complete = graph.node("Where", graph.constant(is_empty), graph.number(0.0), complete)
    if len(filling.indicated) == 0:
        return complete
    indicators = graph.cast(graph.columns(missing, filling.indicated), "float64")
    return graph.side_by_side([complete, indicators])


def _numbers(graph: Graph, part: Input) -> str:
    if isinstance(part.type, StringTensorType):
        raise ValueError(
            f"Input {part.name!r} has strings, but the model was fitted to numbers there; give "
            "rows like those passed to fit."
        )
    return graph.cast(part.name, "float64")


def _of_categories(
    graph: Graph, column: Input, known: NDArray[Any], effects: NDArray[Any] | None
) -> str:
    """Turn categories into numbers, as `Categories` does."""
    if effects is None:
        return _indicators(graph, column, known)
    if isinstance(column.type, ENCODED):  # -1 is the last row, for those not known
        rows = graph.node("Gather", graph.constant(effects), _codes(graph, column, known), axis=0)
        return graph.node("Reshape", rows, graph.integers(-1, effects.shape[1]))
    found = graph.cast(_find_numbers(graph, column, known), "float64")
    more = graph.node("MatMul", found, graph.constant(effects[:-1] - effects[-1]))
    return graph.node("Add", more, graph.constant(effects[-1]))


def _indicators(graph: Graph, column: Input, known: NDArray[Any]) -> str:
    """One column per category; of two categories, one for both, as `Categories` has it."""
    if isinstance(column.type, ENCODED):
        codes = _codes(graph, column, known)
        found = graph.node("Equal", codes, graph.integers(*range(len(known))))
    else:
        found = _find_numbers(graph, column, known)
    found = graph.cast(found, "float64")
    if len(known) != 2:
        return found
    first, second = (graph.columns(found, np.array([k])) for k in (0, 1))
    more = graph.node("Sub", second, first)
    return graph.node("Div", graph.node("Add", more, graph.number(1.0)), graph.number(2.0))


def _codes(graph: Graph, column: Input, known: NDArray[Any]) -> str:
    """Numbers of the categories, which are strings or whole numbers; -1 for unknown ones."""
    if isinstance(column.type, Int64TensorType):
        whole = {int(c): k for k, c in enumerate(known) if c is not None and WHOLE.fullmatch(c)}
        whole = {c: k for c, k in whole.items() if abs(c) < 2**63} or {0: -1}
        return _encoded(graph, column, keys_int64s=list(whole), values_int64s=list(whole.values()))
    names = [MISSING if category is None else str(category) for category in known]
    if len(set(names)) < len(names):
        raise ValueError(
            "A column has missing values and empty strings as categories, which are the same in "
            "ONNX; replace one of them before fit."
        )
    keys = [name.encode() for name in names]
    return _encoded(graph, column, keys_strings=keys, values_int64s=list(range(len(names))))


def _encoded(graph: Graph, column: Input, **table: list[Any]) -> str:
    return graph.node("LabelEncoder", column.name, domain="ai.onnx.ml", default_int64=-1, **table)


def _find_numbers(graph: Graph, column: Input, known: NDArray[Any]) -> str:
    """Compare numbers with categories that are numbers; in float32, if that is what they are."""
    dtype = "float32" if isinstance(column.type, FloatTensorType) else "float64"
    is_boolean = isinstance(column.type, BooleanTensorType)
    values = np.array([_as_number(category, is_boolean) for category in known], dtype=dtype)
    numbers = graph.cast(column.name, dtype)
    found = graph.node("Equal", numbers, graph.constant(values))
    is_missing = np.array([category is None for category in known])
    if is_missing.any():
        gaps = graph.node("And", graph.node("IsNaN", numbers), graph.constant(is_missing))
        found = graph.node("Or", found, gaps)
    return found


def _as_number(category: Any, is_boolean: bool) -> float:
    """Return the number that a category stands for; NaN, which equals nothing, if there is none."""
    if is_boolean or category in TRUTH:
        return TRUTH.get(category, np.nan)
    try:
        return float(category)
    except (TypeError, ValueError):
        return np.nan
