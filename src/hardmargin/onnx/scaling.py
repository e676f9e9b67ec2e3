"""Scaling and views: the rows as the kernels see them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hardmargin.kernels.views import Ranks, View
from hardmargin.onnx.graph import Body, Graph
from hardmargin.scaling import MixedScaling, Scaling


def scaled(graph: Graph, rows: str, scaling: Scaling | MixedScaling | None) -> str:
    """Clip, scale and shift the columns of rows."""
    if scaling is None:
        return rows
    if isinstance(scaling, MixedScaling):
        own = scaled(graph, graph.columns(rows, scaling.columns), scaling.dense)
        own = graph.node("Mul", own, graph.number(scaling.factor))
        n_columns = len(scaling.others.scaler.scale_)
        others = scaled(graph, rows, scaling.others if scaling.standardized else None)
        return _with_columns(graph, others, n_columns, scaling.columns, own)
    if scaling.clip is not None:
        low, high = scaling.clip
        rows = graph.node("Max", rows, graph.constant(low))
        rows = graph.node("Min", rows, graph.constant(high))
    if scaling.exponents is not None:
        half = scaling.exponents // 2  # the power itself may overflow
        for exponents in (half, scaling.exponents - half):
            rows = graph.node("Mul", rows, graph.constant(np.ldexp(1.0, exponents)))
    if scaling.scaler.with_mean:
        rows = graph.node("Sub", rows, graph.constant(scaling.scaler.mean_))
    return graph.node("Div", rows, graph.constant(scaling.scaler.scale_))


def seen(graph: Graph, rows: str, n_columns: int, view: View | None) -> str:
    """Show scaled rows as a view does."""
    if view is None:
        return rows
    if view.ranks is not None and len(view.ranks.columns):
        rows = _ranked(graph, rows, n_columns, view.ranks)
    return rows if view.scales is None else graph.node("Mul", rows, graph.constant(view.scales))


def _ranked(graph: Graph, rows: str, n_columns: int, ranks: Ranks) -> str:
    """Replace values by their scores, column by column.

    The score is that of the first knot, plus the rise of every interval that lies below the value,
    and of a part of the interval that it lies in.
    """
    sizes = np.diff(ranks.starts)
    begins = np.zeros((len(sizes), max(int(sizes.max()) - 1, 1)))
    widths, rises = np.ones_like(begins), np.zeros_like(begins)
    for k, (start, size) in enumerate(zip(ranks.starts[:-1], sizes, strict=True)):
        values, scores = ranks.values[start : start + size], ranks.scores[start : start + size]
        begins[k, : size - 1] = values[:-1]
        widths[k, : size - 1] = np.diff(values)
        rises[k, : size - 1] = np.diff(scores)
    body = Body(f"{rows}_ranks")
    column, begin, width, rise = (body.input("float64", 1) for _ in range(4))
    first = body.input("float64", 0)
    beyond = body.node("Sub", body.node("Unsqueeze", column, body.integers(1)), begin)
    parts = body.node("Div", beyond, width)
    parts = body.node("Min", body.node("Max", parts, body.number(0.0)), body.number(1.0))
    # As matrices: onnxruntime multiplies no rows by a vector.
    risen = body.node("MatMul", parts, body.node("Unsqueeze", rise, body.integers(1)))
    score = body.node("Add", body.node("Squeeze", risen, body.integers(1)), first)
    by_column = graph.node("Transpose", graph.columns(rows, ranks.columns), perm=[1, 0])
    found = graph.node(
        "Scan",
        by_column,
        *(graph.constant(array) for array in (begins, widths, rises)),
        graph.constant(ranks.scores[ranks.starts[:-1]]),
        num_scan_inputs=5,
        body=body.finished((score, "float64", 1)),
    )
    by_row = graph.node("Transpose", found, perm=[1, 0])
    return _with_columns(graph, rows, n_columns, ranks.columns, by_row)


def _with_columns(
    graph: Graph, rows: str, n_columns: int, columns: NDArray[Any], values: str
) -> str:
    """Replace some columns of rows."""
    places = np.arange(n_columns)
    places[columns] = n_columns + np.arange(len(columns))
    return graph.columns(graph.side_by_side([rows, values]), places)
