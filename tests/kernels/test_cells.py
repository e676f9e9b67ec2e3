"""Routing to cells, and the sums of their machines, against naive numpy."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from oracles.cells import expand_oracle, route_oracle

from hardmargin import _core
from hardmargin.kernels.kernel import as_core_matrix

# --- routing -------------------------------------------------------------------------------------


@dataclass
class Tree:
    """Cuts in the order of their levels, some of them along directions."""

    columns: np.ndarray
    directions: np.ndarray
    thresholds: np.ndarray
    children: np.ndarray

    @classmethod
    def full(cls, n_cuts: int, n_features: int, seed: int = 0) -> "Tree":
        generator = np.random.default_rng(seed)
        children = 1 + np.arange(2 * n_cuts, dtype=np.int32).reshape(n_cuts, 2)
        children[children >= n_cuts] = -(children[children >= n_cuts] - n_cuts) - 1
        columns = generator.integers(-3, n_features, size=n_cuts, dtype=np.int32)
        return cls(
            columns,
            generator.normal(size=(3, n_features)).astype(np.float32),
            (generator.normal(size=n_cuts) / 4).astype(np.float32),
            children,
        )

    def route(self, X: Any, n_threads: int = 1) -> np.ndarray:
        cells = np.full(X.shape[0], -7, dtype=np.int32)
        _core.route_cells(
            self.columns,
            self.directions,
            self.thresholds,
            self.children,
            as_core_matrix(X),
            cells,
            n_threads,
        )
        return cells

    def oracle(self, X: np.ndarray) -> np.ndarray:
        return route_oracle(self.columns, self.directions, self.thresholds, self.children, X)


def some_rows(n: int, n_features: int, seed: int = 1) -> np.ndarray:
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(n, n_features))
    return np.where(generator.random(X.shape) < 0.4, 0.0, X)


@pytest.mark.parametrize(("n_cuts", "n_features"), [(0, 3), (1, 1), (2, 4), (31, 6), (100, 40)])
def test_rows_go_where_the_oracle_sends_them(n_cuts, n_features):
    tree, X = Tree.full(n_cuts, n_features), some_rows(400, n_features)
    expected = tree.oracle(X)
    assert len(np.unique(expected)) > n_cuts // 5
    for dtype in (np.float32, np.float64):
        for rows in (
            X.astype(dtype),
            np.asfortranarray(X, dtype=dtype),
            sp.csr_array(X.astype(dtype)),
        ):
            np.testing.assert_array_equal(tree.route(rows), expected)


def test_the_number_of_threads_and_the_other_rows_do_not_matter():
    tree, X = Tree.full(60, 9), some_rows(20_000, 9)
    cells = tree.route(X)
    np.testing.assert_array_equal(tree.route(X, n_threads=2), cells)
    np.testing.assert_array_equal(tree.route(sp.csr_array(X), n_threads=2), cells)
    np.testing.assert_array_equal(tree.route(X[5000:5003]), cells[5000:5003])


def test_values_are_compared_in_float32():
    tree = Tree.full(1, 1)
    tree.columns[:] = 0
    tree.thresholds[:] = 0.1
    just_above = np.array([[np.nextafter(float(np.float32(0.1)), 1.0)]])
    assert just_above[0, 0] > tree.thresholds[0]
    assert tree.route(just_above) == tree.route(sp.csr_array(just_above)) == 0


@pytest.mark.parametrize("column", [0, -1])
def test_equal_values_go_left_and_nan_goes_right(column):
    tree = Tree.full(1, 2)
    tree.columns[:] = column
    tree.directions[:] = [1.0, 0.0]
    tree.thresholds[:] = 0.5
    X = np.array([[0.5, 1.0], [np.nan, 1.0], [-np.inf, 1.0], [np.inf, 1.0], [0.0, 1.0]])
    X = X if column == 0 else X[[0, 1, 4, 1, 4]]
    expected = [0, 1, 0, 1, 0]
    np.testing.assert_array_equal(tree.route(X), expected)
    np.testing.assert_array_equal(tree.route(sp.csr_array(X)), expected)


# --- machines ------------------------------------------------------------------------------------


@dataclass
class Model:
    """Cells of 0, 40, 80, .. members, with machines that some members are not part of."""

    metrics: list[str]
    gammas: np.ndarray
    support: np.ndarray
    rows: np.ndarray
    starts: np.ndarray
    means: np.ndarray
    scales: np.ndarray
    coef: list[np.ndarray]

    @classmethod
    def some(cls, n_machines: int, n_cells: int = 5, n_features: int = 6) -> "Model":
        generator = np.random.default_rng(2)
        starts = np.cumsum([0, *range(0, 40 * n_cells, 40)])
        metrics = ["sqeuclidean", "cityblock", "sqeuclidean"]
        support = generator.normal(size=(300, n_features)).astype(np.float32)
        support[:, -2:] = generator.integers(0, 2, size=(300, 2))
        coef = generator.normal(size=(len(metrics), starts[-1], n_machines))
        coef[generator.random(coef.shape) < 0.4] = 0.0
        coef[1, starts[2] : starts[3]] = 0.0  # a kernel without coefficients in a cell
        if n_machines > 1:
            coef[:, starts[2] : starts[3], -1] = 0.0  # a cell without this machine
        gammas = generator.uniform(0.05, 0.4, size=(n_cells, len(metrics)))
        gammas[3, 0] = 0.0
        return cls(
            metrics,
            gammas,
            support,
            generator.integers(0, 300, size=starts[-1], dtype=np.int32),
            starts,
            generator.normal(size=(n_cells, n_features)).astype(np.float32),
            generator.uniform(0.2, 1.5, size=(n_cells, n_features)).astype(np.float32),
            [part.astype(np.float32) for part in coef],
        )

    def expand(self, queries: np.ndarray, cells: np.ndarray, n_threads: int = 1) -> np.ndarray:
        parts = [sp.csr_array(part) for part in self.coef]
        begins = np.cumsum([0, *(part.nnz for part in parts)])
        out = np.full((len(queries), self.coef[0].shape[1]), -7.0)
        _core.expand_cells(
            self.metrics,
            self.gammas,
            queries,
            cells.astype(np.int32),
            self.support,
            self.rows,
            self.starts,
            self.means,
            self.scales,
            np.array([part.indptr + b for part, b in zip(parts, begins, strict=False)], np.int64),
            np.concatenate([part.indices for part in parts]).astype(np.int16),
            np.concatenate([part.data for part in parts]),
            out,
            n_threads,
        )
        return out

    def oracle(self, queries: np.ndarray, cells: np.ndarray) -> np.ndarray:
        out = np.full((len(queries), self.coef[0].shape[1]), -7.0)
        for cell in range(len(self.gammas)):
            out[cells == cell] = expand_oracle(
                self.metrics,
                self.gammas,
                queries[cells == cell],
                self.support,
                self.rows,
                self.starts,
                self.means,
                self.scales,
                self.coef,
                cell,
            )
        return out


def some_queries(n: int, n_cells: int = 5) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(3)
    queries = generator.normal(size=(n, 6)).astype(np.float32)
    queries[:, -2:] = generator.integers(0, 2, size=(n, 2))
    return queries, generator.integers(-1, n_cells, size=n)


@pytest.mark.parametrize("n_machines", [1, 2, 7])
@pytest.mark.parametrize("n_queries", [0, 1, 17, 900])
def test_sums_are_those_of_the_oracle(n_machines, n_queries):
    model, (queries, cells) = Model.some(n_machines), some_queries(n_queries)
    sums = model.expand(queries, cells)
    np.testing.assert_allclose(sums, model.oracle(queries, cells), rtol=1e-5, atol=2e-5)


def test_a_query_gets_the_same_whatever_the_threads_and_the_others():
    model, (queries, cells) = Model.some(2), some_queries(4000)
    sums = model.expand(queries, cells)
    np.testing.assert_array_equal(model.expand(queries, cells, n_threads=2), sums)
    some = np.random.default_rng(4).permutation(4000)[:50]
    np.testing.assert_array_equal(model.expand(queries[some], cells[some]), sums[some])
    np.testing.assert_array_equal(model.expand(queries[7:8], cells[7:8]), sums[7:8])


def test_rows_of_queries_and_support_may_lie_apart():
    model, (queries, cells) = Model.some(1), some_queries(50)
    expected = model.expand(queries, cells)
    model.support = np.hstack([model.support, model.support])[:, :6]
    apart = np.hstack([queries, queries])[:, :6]
    assert not apart.flags.c_contiguous
    np.testing.assert_array_equal(model.expand(apart, cells), expected)


def test_no_cell_is_needed_if_no_query_has_one():
    model, (queries, _) = Model.some(2), some_queries(5)
    model.gammas, model.means, model.scales = model.gammas[:0], model.means[:0], model.scales[:0]
    model.starts = np.zeros(1, dtype=np.int64)
    assert (model.expand(queries, np.full(5, -1)) == -7.0).all()
