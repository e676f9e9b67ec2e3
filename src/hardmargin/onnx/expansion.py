"""Expansions: sums of kernel values times coefficients.

Rows go through in blocks, so that what is computed between them stays in the processor's cache, and
memory does not grow with their number. The exponents of an RBF kernel are one product of matrices,
which is fast but loses digits where rows are far apart compared to the width of the kernel. So
rows are shifted by the mean of the support rows first, and where that is not enough, differences
are squared column by column, as absolute ones always are. Kernels of one kind and view share this.

Where the model evaluates kernels in float32, so does the graph: onnxruntime takes five times as
long for exponentials in float64. Inner products and sums are float64 all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hardmargin.kernels import (
    METRICS,
    FloatArray,
    Kernel,
    Precision,
    Rows,
    View,
    is_sparse,
)
from hardmargin.onnx.graph import Body, Graph
from hardmargin.onnx.scaling import seen

#: Exponents of kernels may be wrong by this because of rounding, and those of Laplacian kernels in
#: float32 by more, as those of the model are.
LARGEST_ERROR, LARGEST_ERROR_FLOAT32 = 1e-8, 2e-5

#: Rows are cut off beyond this where their sums must be finite in float32.
LARGEST_QUERY = 1e30

#: Kernels do not decay any further: a row far from all others is then decided by the sum of the
#: coefficients, and not by whichever value vanishes last.
LEAST_EXPONENTS = {"float32": -126 * float(np.log(2.0)), "float64": -1022 * float(np.log(2.0))}

#: Numbers of a block of rows that are computed at a time, rows of a block, and columns whose
#: differences are added up at a time.
NUMBERS_OF_BLOCK, LEAST_ROWS, MOST_ROWS, COLUMNS_AT_ONCE = 1 << 18, 4, 1 << 10, 10

#: What rows of zeros are divided by, in place of their length.
LEAST_LENGTH = 1e-150

#: Twice the smoothness of Matern kernels.
TWICE_NU = {"matern32": 3.0, "matern52": 5.0}

#: A kernel whose gamma is at most so many times another's, a power of two, is a power of it.
LARGEST_POWER = 8

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
        alike = kernel.name if kernel.name in METRICS else f"{kernel.name} {k}"
        families.setdefault((alike, kernel.view), []).append(k)
    shown: dict[View | None, int] = {}
    inputs: list[str] = []
    of_views: list[FloatArray] = []
    parts: list[tuple[_Family | None, int, list[int]]] = []
    for (_, view), members in families.items():
        own = [kernels[k] for k in members]
        if own[0].name not in METRICS:
            inputs.append(rows)
            of_views.append(dense[order])
            parts.append((None, len(inputs) - 1, members))
            continue
        if view not in shown:
            as_seen = dense[order] if view is None else view.of(dense[order])
            queries = seen(graph, rows, dense.shape[1], view)
            queries, centred = _about_the_mean(graph, queries, as_seen)
            shown[view] = len(inputs)
            inputs.append(queries)
            of_views.append(centred)
        at = shown[view]
        family = _Family(own, of_views[at], dtype, is_alone=len(kernels) == 1)
        parts.append((family, at, members))

    def sums(body: Body, block: str) -> str:
        queries = [block]
        if len(inputs) > 1:
            widths = body.integers(*[dense.shape[1]] * len(inputs))
            queries = body.nodes("Split", block, widths, axis=1, n_outputs=len(inputs))
        products = []
        for family, at, members in parts:
            if family is None:
                values = [_of_products(body, queries[at], of_views[at], kernels[members[0]])]
            else:
                values = family.values(body, queries[at])
            for k, value in zip(members, values, strict=True):
                products += cut.products(body, value, of_kernels[k])
        return cut.placed(body, products, len(kernels))

    is_wide = any(family is not None and family.is_by_column for family, _, _ in parts)
    width = max(n, 1) * (COLUMNS_AT_ONCE if is_wide else 1)
    size = int(np.clip(NUMBERS_OF_BLOCK // width, LEAST_ROWS, MOST_ROWS))
    return _by_blocks(graph, graph.side_by_side(inputs), size, coefficients.shape[0], sums)


def _by_blocks(
    graph: Graph, rows: str, size: int, n_columns: int, compute: Callable[[Body, str], str]
) -> str:
    """Compute something for rows, block by block, and put it together.

    Parameters
    ----------
    graph : Graph
        What to add to.
    rows : str
        The rows. The body uses no other tensor of the graph: skl2onnx puts nodes in order by their
        own inputs, and that of the loop is the number of these rows.
    size : int
        Rows of a block. All blocks have as many, so the last one may begin within the one before.
    n_columns : int
        Columns of the result.
    compute : callable
        Adds to the body; it is given that and the block, and returns the result.
    """
    n, most = graph.n_rows(rows), graph.integers(size)
    length = graph.node("Min", n, most)
    n_full = graph.node("Div", graph.node("Sub", n, graph.integers(1)), most)
    n_full = graph.node("Max", n_full, graph.integers(0))
    body = Body(f"{n}_blocks")
    step, go_on = body.input("int64", 0), body.input("bool", 0)
    of_body = body.n_rows(rows)
    most_of_body = body.node("Min", of_body, body.integers(size))
    begin = body.node("Mul", body.node("Reshape", step, body.integers(1)), body.integers(size))
    begin = body.node("Min", begin, body.node("Sub", of_body, most_of_body))
    end = body.node("Add", begin, most_of_body)
    found = compute(body, body.node("Slice", rows, begin, end, body.integers(0)))
    goes_on = body.node("Identity", go_on)
    blocks = graph.node(
        "Loop",
        graph.node("Squeeze", graph.node("Add", n_full, graph.integers(1)), graph.integers(0)),
        graph.constant(np.array(True)),
        body=body.finished((goes_on, "bool", 0), (found, "float64", 2)),
    )
    stacked = graph.node("Reshape", blocks, graph.integers(-1, n_columns))
    n_before = graph.node("Mul", n_full, most)
    n_stacked = graph.node("Add", n_before, length)
    begin_of_rest = graph.node("Sub", n_stacked, graph.node("Sub", n, n_before))
    before = graph.node("Slice", stacked, graph.integers(0), n_before, graph.integers(0))
    rest = graph.node("Slice", stacked, begin_of_rest, n_stacked, graph.integers(0))
    return graph.node("Concat", before, rest, axis=0)


class _Family:
    """Kernels of distances of one kind, in one view.

    Parameters
    ----------
    kernels : sequence of Kernel
        The kernels.
    support : array
        Support rows as they see them, about their mean.
    dtype : {"float32", "float64"}
        Precision of kernel values.
    is_alone : bool
        Whether the expansion has a single kernel, which then decays only so far.
    """

    def __init__(
        self, kernels: Sequence[Kernel], support: FloatArray, dtype: Precision, *, is_alone: bool
    ) -> None:
        self._name, self._support, self._dtype = kernels[0].name, support, dtype
        self._gammas, self._is_alone = [kernel.gamma for kernel in kernels], is_alone
        self._precision = self._precision_of_sums()
        self.is_by_column = self._name == "laplacian" or self._precision is None

    def _precision_of_sums(self) -> Precision | None:
        """Precision in which sums of what rows have leave enough digits of their differences."""
        sizes = np.square(self._support) if self._is_squared else np.abs(self._support)
        largest = max(self._gammas) * float(sizes.sum(axis=1).max(initial=0.0))
        is_single = self._name == "laplacian" and self._dtype == "float32"
        if is_single and largest * np.finfo(np.float32).eps < LARGEST_ERROR_FLOAT32:
            return "float32"
        return "float64" if largest * np.finfo(np.float64).eps < LARGEST_ERROR else None

    def values(self, graph: Graph, queries: str) -> list[str]:
        """Values of the kernels, in float64."""
        least = int(np.argmin(self._gammas))
        exponents = self._exponents(graph, queries, self._gammas[least])
        if self._is_alone and self._name not in TWICE_NU:
            exponents = graph.node("Max", exponents, self._number(graph, self._lowest))
        found: dict[int, str] = {}
        for k in sorted(range(len(self._gammas)), key=self._gammas.__getitem__):
            found[k] = self._value(graph, exponents, found, k, self._gammas[least])
        return [graph.cast(found[k], "float64") for k in range(len(self._gammas))]

    @property
    def _is_squared(self) -> bool:
        return METRICS[self._name] == "sqeuclidean"

    @property
    def _lowest(self) -> float:
        return LEAST_EXPONENTS[self._dtype]

    def _value(
        self, graph: Graph, exponents: str, found: dict[int, str], k: int, of_exponents: float
    ) -> str:
        """Find the values of a kernel, where possible as a power of those of another."""
        gamma = self._gammas[k]
        if self._name in TWICE_NU:
            return self._matern(graph, exponents, TWICE_NU[self._name] * gamma / of_exponents)
        for other, value in found.items() if self._dtype == "float64" else ():
            power = gamma / self._gammas[other]
            if power in (1, 2, 4, LARGEST_POWER):
                for _ in range(int(np.log2(power))):
                    value = graph.node("Mul", value, value)
                return value
        if gamma != of_exponents:
            exponents = graph.node("Mul", exponents, self._number(graph, gamma / of_exponents))
        return graph.node("Exp", exponents)

    def _matern(self, graph: Graph, exponents: str, factor: float) -> str:
        """Values of a Matern kernel; `factor` makes squares of s of the negative exponents."""
        squares = graph.node("Mul", exponents, self._number(graph, -factor))
        s = graph.node("Sqrt", graph.node("Max", squares, self._number(graph, 0.0)))
        s = graph.node("Min", s, self._number(graph, -self._lowest))
        terms = [self._number(graph, 1.0), s]
        if self._name == "matern52":
            square = graph.node("Mul", s, s)
            terms.append(graph.node("Mul", square, self._number(graph, 1.0 / 3.0)))
        return graph.node("Mul", graph.add_all(terms), graph.node("Exp", graph.node("Neg", s)))

    def _exponents(self, graph: Graph, queries: str, gamma: float) -> str:
        """Distances times -gamma."""
        precision = self._precision
        if precision is not None and self._is_squared:
            exponents = _exponents_of_products(graph, queries, self._support, gamma)
        elif precision is not None:
            exponents = _exponents_of_maxima(graph, queries, self._support, gamma, precision)
        else:
            columns = graph.constant(np.ascontiguousarray(self._support.T))
            apart = distances_by_column(graph, queries, columns, self._name)
            exponents = graph.node("Mul", apart, graph.number(-gamma))
        return exponents if precision == self._dtype else graph.cast(exponents, self._dtype)

    def _number(self, graph: Graph, value: float) -> str:
        return graph.constant(np.array(value, dtype=self._dtype))


def _exponents_of_products(graph: Graph, queries: str, support: FloatArray, gamma: float) -> str:
    """Squared distances times -gamma: one product, in which squared norms are two more columns."""
    squares = graph.node("Mul", queries, queries)
    norms = graph.node("ReduceSum", squares, graph.integers(1), keepdims=1)
    ones = graph.node(
        "Add", graph.zeros(graph.n_rows(queries), graph.integers(1)), graph.number(1.0)
    )
    of_support = np.square(support).sum(axis=1)
    columns = np.vstack(
        [2.0 * gamma * support.T, np.full_like(of_support, -gamma), -gamma * of_support]
    )
    return graph.node("MatMul", graph.side_by_side([queries, norms, ones]), graph.constant(columns))


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


def _exponents_of_maxima(
    graph: Graph, queries: str, support: FloatArray, gamma: float, dtype: Precision
) -> str:
    """Manhattan distances times -gamma: half of them are sums of maxima less half of all sums.

    Maxima take one step less than absolute differences.
    """
    n_columns = support.shape[1]
    n_groups = -(-n_columns // COLUMNS_AT_ONCE)
    at_once = -(-n_columns // n_groups)
    n_missing = n_groups * at_once - n_columns  # zeros on both sides change nothing
    columns = np.pad(support.T, ((0, n_missing), (0, 0))).astype(dtype)
    bounds = [graph.number(side * LARGEST_QUERY) for side in (-1.0, 1.0)]
    bounded = graph.node("Min", graph.node("Max", queries, bounds[0]), bounds[1])
    halves = graph.node("ReduceSum", bounded, graph.integers(1), keepdims=1)
    halves = graph.cast(graph.node("Mul", halves, graph.number(-0.5)), dtype)
    of_support = graph.constant((-0.5 * support.sum(axis=1)).astype(dtype))
    body = Body(f"{halves}_maxima")
    so_far, own, others = (body.input(dtype, 2) for _ in range(3))
    largest = body.node("Max", body.node("Unsqueeze", own, body.integers(2)), others)
    sums = body.node("ReduceSum", largest, body.integers(1), keepdims=0)
    total = body.node("Add", so_far, sums)
    padded = graph.node("Pad", graph.cast(bounded, dtype), graph.integers(0, 0, 0, n_missing))
    groups = graph.node("Reshape", padded, graph.integers(-1, n_groups, at_once))
    found = graph.node(
        "Scan",
        graph.node("Add", halves, of_support),
        graph.node("Transpose", groups, perm=[1, 0, 2]),
        graph.constant(columns.reshape(n_groups, at_once, len(support))),
        num_scan_inputs=2,
        body=body.finished((total, dtype, 2)),
    )
    return graph.node("Mul", found, graph.constant(np.array(-2.0 * gamma, dtype=dtype)))


def _about_the_mean(graph: Graph, queries: str, support: Any) -> tuple[str, FloatArray]:
    """Shift rows, and support rows, by the mean of the support rows."""
    support = np.asarray(support, dtype=np.float64)
    mean = support.mean(axis=0) if len(support) else np.zeros(support.shape[1])
    return graph.node("Sub", queries, graph.constant(mean)), support - mean


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
    is_squared = METRICS[kernel] == "sqeuclidean"
    apart = body.node("Mul", apart, apart) if is_squared else body.node("Abs", apart)
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
    if kernel.name == "cosine":
        lengths = np.linalg.norm(support, axis=1, keepdims=True)
        return linear(graph, _unit_rows(graph, rows), support / np.where(lengths > 0, lengths, 1.0))
    # Gamma is not a factor of its own: onnxruntime would round it to float32.
    inner = linear(graph, rows, kernel.gamma * np.asarray(support, dtype=np.float64))
    inner = graph.node("Add", inner, graph.number(kernel.coef0))
    if kernel.name == "sigmoid":
        return graph.node("Tanh", inner)
    return graph.node("Pow", inner, graph.number(kernel.degree))


def _unit_rows(graph: Graph, rows: str) -> str:
    """Divide rows by their lengths; rows of zeros stay as they are."""
    squares = graph.node("ReduceSum", graph.node("Mul", rows, rows), graph.integers(1), keepdims=1)
    lengths = graph.node("Max", graph.node("Sqrt", squares), graph.number(LEAST_LENGTH))
    return graph.node("Div", rows, lengths)
