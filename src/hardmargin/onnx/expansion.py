"""Expansions: sums of kernel values times coefficients.

Squared distances come from inner products, which is fast but loses digits where rows are far apart
compared to the width of the kernel. So rows are shifted by the mean of the support rows first, and
where that is not enough, differences are squared column by column, as absolute ones always are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hardmargin.kernels import (
    DISTANCE_KERNELS,
    FloatArray,
    Kernel,
    Precision,
    Rows,
    View,
    is_sparse,
)
from hardmargin.onnx.graph import Body, Graph
from hardmargin.onnx.scaling import seen

#: Exponents of kernels may be wrong by this because of rounding.
LARGEST_ERROR = 1e-8

#: Kernels do not decay any further: a row far from all others is then decided by the sum of the
#: coefficients, and not by whichever value vanishes last.
LEAST_EXPONENTS = {"float32": -126 * float(np.log(2.0)), "float64": -1022 * float(np.log(2.0))}

#: Coefficients are cut into blocks if that leaves less than this share of them.
SHARE_OF_BLOCKS = 0.6


def linear(graph: Graph, rows: str, weights: NDArray[Any]) -> str:
    """Products of rows with weights of shape (n_machines, n_columns)."""
    columns = np.ascontiguousarray(weights.T, dtype=np.float64)
    return graph.node("MatMul", rows, graph.constant(columns))


def expanded(
    graph: Graph,
    rows: str,
    support: Rows,
    kernels: Sequence[Kernel],
    coefficients: Any,
    blocks: Sequence[NDArray[np.intp]],
    dtype: Precision = "float64",
) -> str:
    """Sum up kernel values of rows times coefficients, for all machines.

    Parameters
    ----------
    graph : Graph
        What to add to.
    rows : str
        Scaled rows.
    support : rows
        Support rows, scaled as well.
    kernels : sequence of Kernel
        Each has coefficients of its own.
    coefficients : (n_machines, n_kernels * n_support) array or CSR matrix
        Of all support rows with the first kernel, then with the next one, and so on.
    blocks : sequence of int arrays
        Support rows that take part in the same machines; every row is in some block. If these are
        few of the machines, the others need no zeros.
    dtype : {"float32", "float64"}
        Precision in which the model evaluates kernels.
    """
    n = support.shape[0]
    dense = support.toarray() if is_sparse(support) else np.asarray(support)
    of_kernels = [coefficients[:, k * n : (k + 1) * n] for k in range(len(kernels))]
    cut = _Cut.of(of_kernels, blocks)
    order = np.concatenate(cut.blocks)
    families: dict[tuple[str, View | None], list[int]] = {}
    for k, kernel in enumerate(kernels):
        alike = kernel.name if kernel.name in DISTANCE_KERNELS else f"{kernel.name} {k}"
        families.setdefault((alike, kernel.view), []).append(k)
    views: dict[View | None, tuple[str, str, float]] = {}
    products = []
    for (_, view), members in families.items():
        first = kernels[members[0]]
        if first.name not in DISTANCE_KERNELS:
            values = _of_products(graph, rows, dense[order], first)
            products += cut.products(graph, values, of_kernels[members[0]])
            continue
        if view not in views:
            as_seen = dense[order] if view is None else view.of(dense[order])
            queries = seen(graph, rows, dense.shape[1], view)
            views[view] = _about_the_mean(graph, queries, np.asarray(as_seen, dtype=np.float64))
        gamma = max(kernels[k].gamma for k in members)
        apart = _distances(graph, *views[view], first.name, gamma)
        for k in members:
            decays = graph.node("Mul", apart, graph.number(-kernels[k].gamma))
            if len(kernels) == 1:
                decays = graph.node("Max", decays, graph.number(LEAST_EXPONENTS[dtype]))
            products += cut.products(graph, graph.node("Exp", decays), of_kernels[k])
    return cut.placed(graph, products, len(kernels))


class _Cut(NamedTuple):
    """How coefficients are cut into blocks of support rows that take part in some machines.

    Attributes
    ----------
    blocks : list of int arrays
        The support rows of each block.
    machines : list of int arrays
        The machines that they take part in.
    n_machines : int
        Number of all machines.
    """

    blocks: list[NDArray[np.intp]]
    machines: list[NDArray[np.intp]]
    n_machines: int

    @classmethod
    def of(cls, of_kernels: Sequence[Any], blocks: Sequence[NDArray[np.intp]]) -> _Cut:
        """Cut, unless that would leave nearly all coefficients."""
        n_machines, n = of_kernels[0].shape
        blocks = [block for block in blocks if len(block)]
        machines = []
        for block in blocks:
            parts = (_dense(coefficients[:, block]) != 0 for coefficients in of_kernels)
            machines.append(np.flatnonzero(sum(part.any(axis=1) for part in parts)))
        n_left = sum(len(b) * len(m) for b, m in zip(blocks, machines, strict=True))
        if n_left > SHARE_OF_BLOCKS * n_machines * n:
            return cls([np.arange(n)], [np.arange(n_machines)], n_machines)
        return cls(blocks, machines, n_machines)

    def products(self, graph: Graph, values: str, coefficients: Any) -> list[str]:
        """Multiply kernel values, block by block, by the coefficients."""
        parts = [values]
        if len(self.blocks) > 1:
            sizes = graph.integers(*(len(block) for block in self.blocks))
            parts = graph.nodes("Split", values, sizes, axis=1, n_outputs=len(self.blocks))
        return [
            graph.node(
                "MatMul",
                part,
                graph.constant(np.ascontiguousarray(_dense(coefficients[machines][:, block]).T)),
            )
            for part, block, machines in zip(parts, self.blocks, self.machines, strict=True)
        ]

    def placed(self, graph: Graph, products: list[str], n_kernels: int) -> str:
        """Add the products of all kernels and blocks up, machine by machine."""
        if len(self.blocks) == 1 and len(self.machines[0]) == self.n_machines:
            return graph.add_all(products)
        machines = np.tile(np.concatenate(self.machines), n_kernels)
        placing = (machines[:, None] == np.arange(self.n_machines)).astype(np.float64)
        return graph.node("MatMul", graph.side_by_side(products), graph.constant(placing))


def _dense(matrix: Any) -> NDArray[Any]:
    return np.asarray(matrix.toarray() if is_sparse(matrix) else matrix, dtype=np.float64)


def _about_the_mean(graph: Graph, queries: str, support: FloatArray) -> tuple[str, str, float]:
    """Shift rows by the mean of the support rows.

    Returns
    -------
    queries, support : str
        The first as rows, the second as columns.
    largest : float
        Largest squared norm of a support row.
    """
    mean = support.mean(axis=0) if len(support) else np.zeros(support.shape[1])
    centred = support - mean
    largest = float(np.square(centred).sum(axis=1).max(initial=0.0))
    queries = graph.node("Sub", queries, graph.constant(mean))
    return queries, graph.constant(np.ascontiguousarray(centred.T)), largest


def _distances(
    graph: Graph, queries: str, support: str, largest: float, kernel: str, gamma: float
) -> str:
    """Distances that a kernel decays with, of shape (n, n_support)."""
    if kernel == "rbf" and gamma * largest * np.finfo(np.float64).eps < LARGEST_ERROR:
        return squared_distances(graph, queries, support)
    return distances_by_column(graph, queries, support, kernel)


def squared_distances(graph: Graph, queries: str, support: str) -> str:
    """Squared distances of rows to columns, by inner products."""
    of_queries = graph.node("Mul", queries, queries)
    of_support = graph.node("Mul", support, support)
    norms = graph.node("ReduceSum", of_queries, graph.integers(1), keepdims=1)
    norms = graph.node(
        "Add", norms, graph.node("ReduceSum", of_support, graph.integers(0), keepdims=1)
    )
    inner = graph.node("MatMul", queries, support)
    twice = graph.node("Add", inner, inner)
    return graph.node("Max", graph.node("Sub", norms, twice), graph.number(0.0))


def distances_by_column(graph: Graph, queries: str, support: str, kernel: str) -> str:
    """Add up the distances of rows to columns, one coordinate after another."""
    body = Body(f"{support}_{kernel}")
    so_far, column, of_support = (body.input("float64", k) for k in (2, 1, 1))
    apart = body.node("Sub", body.node("Unsqueeze", column, body.integers(1)), of_support)
    apart = body.node("Mul", apart, apart) if kernel == "rbf" else body.node("Abs", apart)
    total = body.node("Add", so_far, apart)
    n_support = graph.node("Gather", graph.node("Shape", support), graph.integers(1))
    return graph.node(
        "Scan",
        graph.zeros(graph.n_rows(queries), n_support),
        graph.node("Transpose", queries, perm=[1, 0]),
        support,
        num_scan_inputs=2,
        body=body.finished((total, "float64", 2)),
    )


def _of_products(graph: Graph, rows: str, support: FloatArray, kernel: Kernel) -> str:
    """Values of a kernel that is a function of inner products."""
    # Gamma is not a factor of its own: onnxruntime would round it to float32.
    inner = linear(graph, rows, kernel.gamma * np.asarray(support, dtype=np.float64))
    inner = graph.node("Add", inner, graph.number(kernel.coef0))
    if kernel.name == "sigmoid":
        return graph.node("Tanh", inner)
    return graph.node("Pow", inner, graph.number(kernel.degree))
