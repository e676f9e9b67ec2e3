"""Mixtures of experts: trees whose cells have machines of their own, and a vote on a sample.

A row goes down the tree, all rows one level at a time. Then there is a loop over the cells that
have rows: it takes the members of a cell and the rows in it, and evaluates the cell's machines as
``hardmargin.cells.layer`` does. What differs from cell to cell is in tables of the loop.

Cells may know different classes. A class that a cell does not know has a score below all others,
and its share of the cell as its probability.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from hardmargin.cells.cuts import Cuts
from hardmargin.cells.experts import Experts, SampleVote
from hardmargin.cells.layer import Layer
from hardmargin.cells.machines import LEAST_PROBABILITY
from hardmargin.kernels import FloatArray, Rows, is_sparse
from hardmargin.kernels.kernel import MAX_FLOAT32_FEATURE
from hardmargin.onnx.expansion import distances_by_column, squared_distances
from hardmargin.onnx.graph import Body, Graph
from hardmargin.onnx.machines import check_bytes, classified
from hardmargin.onnx.probabilities import (
    in_order_of,
    logs_of_sides,
    machine_probabilities,
    one_minus,
    steep_probabilities,
    sums_over_sides,
)

#: What is added to the logs of classes that a cell does not know.
_NEVER = -1e30


def mixture_logs(
    graph: Graph, rows: str, scaled: str, experts: Experts, class_weights: FloatArray | None
) -> str:
    """Log-probabilities of a mixture of experts.

    Parameters
    ----------
    graph : Graph
        What to add to.
    rows, scaled : str
        Filled rows, and the same scaled.
    experts : Experts
        The mixture.
    class_weights : (n_classes,) array or None
        Factors of the odds.
    """
    _check_size(experts)
    logs = []
    if experts.layers:
        low, high = (graph.number(side * MAX_FLOAT32_FEATURE) for side in (-1.0, 1.0))
        bounded = graph.node("Min", graph.node("Max", scaled, low), high)
        single = graph.cast(bounded, "float32")
        logs = [_layer_logs(graph, single, layer, experts.support) for layer in experts.layers]
    if experts.whole is not None:
        logs.append(_whole_logs(graph, rows, experts.whole, experts.prior))
    weighted = [
        graph.node("Mul", own, graph.number(float(weight)))
        for own, weight in zip(logs, experts.weights, strict=True)
    ]
    total = graph.node("LogSoftmax", graph.add_all(weighted), axis=1)
    if class_weights is None:
        return total
    total = graph.node("Add", total, graph.constant(np.log(class_weights)))
    return graph.node("LogSoftmax", total, axis=1)


def _check_size(experts: Experts) -> None:
    """Refuse cells that no file can hold; every tree has rows of its own."""
    n_bytes = 0
    for layer in experts.layers:  # a coefficient has a value, and numbers of a row and a machine
        n_bytes += 4 * len(layer.members) * experts.support.shape[1] + 12 * len(layer.values)
    check_bytes(n_bytes, experts.support.shape, was_sparse=is_sparse(experts.support))


def _whole_logs(graph: Graph, rows: str, whole: SampleVote, prior: FloatArray) -> str:
    """Log-probabilities of the vote on a sample of all rows."""
    probabilities = classified(graph, rows, whole.model).probabilities
    assert probabilities is not None
    classes = np.asarray(whole.classes)
    placing = (classes[:, None] == np.arange(len(prior))) * prior[classes].sum()
    others = np.where(np.isin(np.arange(len(prior)), classes), 0.0, prior)
    every = graph.node("MatMul", probabilities, graph.constant(placing))
    return _bounded_logs(graph, graph.node("Add", every, graph.constant(others)))


def _bounded_logs(graph: Graph, probabilities: str) -> str:
    return graph.node("Log", graph.node("Max", probabilities, graph.number(LEAST_PROBABILITY)))


def _routed(graph: Graph, rows: str, cuts: Cuts, n_columns: int) -> str:
    """Find the cell of every row, of shape (n,)."""
    n_cuts = len(cuts.columns)
    places = graph.cast(graph.zeros(graph.n_rows(rows)), "int64")
    if n_cuts == 0:
        return places
    values = graph.cast(rows, "float64")
    if len(cuts.directions):
        directions = graph.constant(cuts.directions.T.astype(np.float64))
        values = graph.side_by_side([values, graph.node("MatMul", values, directions)])
    is_direction = cuts.columns < 0
    at = np.where(is_direction, n_columns - 1 - cuts.columns, cuts.columns)
    # Cells follow the cuts, and rows that have arrived in one stay there.
    children = np.where(cuts.children < 0, n_cuts - 1 - cuts.children, cuts.children)
    stay = n_cuts + np.arange(cuts.n_cells)
    columns = graph.constant(np.append(at, np.zeros(cuts.n_cells)).astype(np.int64))
    thresholds = graph.constant(np.append(cuts.thresholds, stay * 0.0).astype(np.float64))
    sides = [graph.constant(np.append(side, stay).astype(np.int64)) for side in children.T]
    for _ in range(_depth(cuts)):
        column = graph.node("Unsqueeze", graph.node("Gather", columns, places), graph.integers(1))
        value = graph.node("GatherElements", values, column, axis=1)
        value = graph.node("Squeeze", value, graph.integers(1))
        is_left = graph.node("LessOrEqual", value, graph.node("Gather", thresholds, places))
        left, right = (graph.node("Gather", side, places) for side in sides)
        places = graph.node("Where", is_left, left, right)
    return graph.node("Sub", places, graph.integers(n_cuts))


def _depth(cuts: Cuts) -> int:
    """Count the cuts on the longest way to a cell."""
    depths = np.zeros(len(cuts.columns), dtype=np.intp)
    for cut in range(len(cuts.columns)):  # children come after their parents
        own = cuts.children[cut]
        depths[own[own >= 0]] = depths[cut] + 1
    return int(depths.max()) + 1


def _layer_logs(graph: Graph, rows: str, layer: Layer, support: Rows) -> str:
    """Log-probabilities of a tree, of shape (n, n_classes); rows are float32."""
    n_classes = layer.shares.shape[1]
    cells = _routed(graph, rows, layer.cuts, support.shape[1])
    [present] = graph.nodes("Unique", cells, n_outputs=1)
    body = Body(f"{present}_cells")
    step, go_on, so_far = body.input("int64", 0), body.input("bool", 0), body.input("float64", 2)
    cell = body.node("Gather", present, body.node("Reshape", step, body.integers(1)))
    inside = body.node("NonZero", body.node("Equal", cells, cell))
    places = body.node("Transpose", inside, perm=[1, 0])
    queries = body.node("Gather", rows, body.node("Squeeze", inside, body.integers(0)), axis=0)
    logs = _CellTables(body, cell, layer, support).logs(queries)
    every = body.node("ScatterND", so_far, places, logs)
    goes_on = body.node("Identity", go_on)
    return graph.node(
        "Loop",
        graph.node("Squeeze", graph.node("Shape", present), graph.integers(0)),
        graph.constant(np.array(True)),
        graph.zeros(graph.n_rows(rows), graph.integers(n_classes)),
        body=body.finished((goes_on, "bool", 0), (every, "float64", 2)),
    )


class _CellTables:
    """A cell's part of the tables of its layer.

    Parameters
    ----------
    graph : Graph
        The body of the loop.
    cell : str
        Number of the cell, a list of one.
    layer : Layer
        The layer.
    support : rows
        Training rows.
    """

    def __init__(self, graph: Graph, cell: str, layer: Layer, support: Rows) -> None:
        self._graph, self._cell, self._layer = graph, cell, layer
        self._next = graph.node("Add", cell, graph.integers(1))
        self._support = support

    def logs(self, queries: str) -> str:
        """Log-probabilities of the rows in the cell."""
        graph, layer = self._graph, self._layer
        margins = graph.node("Add", self._sums(queries), self._row(layer.intercepts))
        shares, is_learned = self._row(layer.shares), self._row(layer.is_learned)
        find = self._of_two if layer.shares.shape[1] == 2 else self._of_many
        found = find(margins, self._row(layer.slopes), is_learned)
        return _bounded_logs(graph, graph.node("Where", is_learned, found, shares))

    def _row(self, table: NDArray[np.generic]) -> str:
        """Return the cell's row of a table, of shape (1, ...)."""
        return self._graph.node("Gather", self._graph.constant(table), self._cell, axis=0)

    def _part(self, values: NDArray[np.generic], starts: NDArray[np.int64], axis: int = 0) -> str:
        """Return the cell's part of values that are stored cell after cell."""
        graph, begins = self._graph, self._graph.constant(starts)
        begin, end = (graph.node("Gather", begins, at) for at in (self._cell, self._next))
        return graph.node("Slice", graph.constant(values), begin, end, graph.integers(axis))

    def _sums(self, queries: str) -> str:
        """Add up kernel values times coefficients, to shape (n, n_machines)."""
        graph, layer = self._graph, self._layer
        # Columns, as older versions of onnxruntime cannot transpose and multiply float64.
        columns = np.ascontiguousarray(_seen_members(layer, self._support).T)
        members = graph.cast(self._part(columns, layer.starts, axis=1), "float64")
        shifted = graph.node("Sub", queries, self._row(layer.means))
        rows = graph.cast(graph.node("Mul", shifted, self._row(layer.scales)), "float64")
        n_members = graph.node("Gather", graph.node("Shape", members), graph.integers(1))
        n_machines = layer.intercepts.shape[1]
        sums = [graph.zeros(graph.n_rows(rows), graph.integers(n_machines))]
        apart: dict[str, str] = {}
        for k, name in enumerate(layer.kernels):
            if name not in apart and name == "rbf":
                apart[name] = squared_distances(graph, rows, members)
            elif name not in apart:
                apart[name] = distances_by_column(graph, rows, members, name)
            decays = graph.node("Mul", apart[name], self._row(-layer.gammas[:, [k]]))
            values = graph.node("Exp", graph.cast(decays, "float32"))  # as the model does
            coefficients = self._coefficients(k, n_members, n_machines)
            sums.append(graph.node("MatMul", graph.cast(values, "float64"), coefficients))
        return graph.add_all(sums)

    def _coefficients(self, kernel: int, n_members: str, n_machines: int) -> str:
        """Coefficients of the members, of shape (n_members, n_machines)."""
        graph, layer = self._graph, self._layer
        begins = layer.coefficient_starts[kernel]
        own = slice(int(begins[0]), int(begins[-1]))
        starts = begins[layer.starts] - begins[0]
        of_member = np.arange(len(layer.members)) - np.repeat(
            layer.starts[:-1], np.diff(layer.starts)
        )
        member = np.repeat(of_member, np.diff(begins)).astype(np.int32)
        places = [
            graph.node(
                "Unsqueeze", graph.cast(self._part(index, starts), "int64"), graph.integers(1)
            )
            for index in (member, layer.machines[own].astype(np.int32))
        ]
        values = graph.cast(self._part(layer.values[own], starts), "float64")
        empty = graph.zeros(n_members, graph.integers(n_machines))
        return graph.node("ScatterND", empty, graph.side_by_side(places), values)

    def _of_two(self, margins: str, slopes: str, is_learned: str) -> str:
        """Probabilities of two classes."""
        likely = machine_probabilities(self._graph, margins, slopes)
        return self._graph.side_by_side([one_minus(self._graph, likely), likely])

    def _of_many(self, margins: str, slopes: str, is_learned: str) -> str:
        """Probabilities of the classes that the cell knows, times their share of the cell."""
        graph, layer = self._graph, self._layer
        n_classes = layer.shares.shape[1]
        known = layer.is_learned.sum(axis=1, keepdims=True)
        sides = [self._side(side) for side in _classes_of_machines(layer)]
        likely = machine_probabilities(graph, margins, slopes)
        steep = likely
        n_machines = np.ones_like(known)
        if layer.multi_class == "ovo":
            steep = steep_probabilities(graph, margins, slopes)
            n_machines = np.maximum(known - 1, 1)
        scores = sums_over_sides(graph, steep, one_minus(graph, steep), *sides)
        scores = graph.node("Where", is_learned, scores, graph.number(-1.0))
        logs = sums_over_sides(graph, *logs_of_sides(graph, likely), *sides)
        sharp = graph.node("Mul", logs, self._row(layer.taus[:, None] / n_machines))
        sharp = graph.node("Where", is_learned, sharp, graph.number(_NEVER))
        values = graph.node("Softmax", sharp, axis=1)
        ordered = in_order_of(graph, scores, values, graph.integers(n_classes))
        share = np.where(layer.is_learned, layer.shares, 0.0).sum(axis=1, keepdims=True)
        return graph.node("Mul", ordered, self._row(share))

    def _side(self, classes: NDArray[np.int32]) -> str:
        """Make the matrix that gives values of machines to the classes on one side."""
        graph, n_classes = self._graph, self._layer.shares.shape[1]
        of_machines = graph.cast(self._row(classes), "int64")
        column = graph.node("Transpose", of_machines, perm=[1, 0])
        is_class = graph.node("Equal", column, graph.integers(*range(n_classes)))
        return graph.cast(is_class, "float64")


def _seen_members(layer: Layer, support: Rows) -> NDArray[np.float32]:
    """Members as the kernels of their cells see them."""
    rows = support[layer.members]
    dense = np.asarray(rows.toarray() if is_sparse(rows) else rows, dtype=np.float32)
    sizes = np.diff(layer.starts)
    return (dense - np.repeat(layer.means, sizes, axis=0)) * np.repeat(layer.scales, sizes, axis=0)


def _classes_of_machines(layer: Layer) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Positive and negative class of every machine of every cell; -1 where there is none."""
    n_cells, most = layer.intercepts.shape
    positive, negative = np.full((2, n_cells, most), -1, dtype=np.int32)
    for c in range(n_cells):
        classes = np.flatnonzero(layer.is_learned[c])
        if len(classes) == 2 or layer.multi_class == "ovo":
            pairs = np.array(list(combinations(classes, 2)), dtype=np.int32).reshape(-1, 2)
            negative[c, : len(pairs)], positive[c, : len(pairs)] = pairs.T
        else:
            positive[c, : len(classes)] = classes
    return positive, negative
