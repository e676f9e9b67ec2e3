"""A valid call of every function of the compiled core, and wrong values for each argument."""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from problems.core_arguments import (
    INF,
    NAN,
    Argument,
    D,
    N,
    aligned,
    changed,
    codes,
    count,
    csr,
    dense_rows,
    flag,
    indices,
    kernel,
    machines,
    misaligned,
    misshapen,
    monitor,
    number,
    numbers,
    optional,
    read_only,
    required_kernel,
    rows,
    sparse_rows,
    table_of,
    threads,
    vector,
    word,
    written,
)

from hardmargin import _core


def block(dtype: str) -> dict[str, Argument]:
    Q, S = rows(1), rows(2)[:7]
    own = np.zeros((N, 7), dtype=dtype)
    overlapping = Q.view(dtype)[:7, :D] if dtype == "float64" else S.view(dtype)[:, :D]
    return {
        "kernel": required_kernel(),
        "queries": dense_rows(Q, Q[:, :2], Q[:-1]),
        "support": dense_rows(S, S[:, :2], S[:-1], np.hstack([S, S])),
        "out": written(own, np.zeros((N, 8), dtype), np.zeros((N - 1, 7), dtype), overlapping),
        "n_threads": threads(),
        "check": Argument(None, [3, "x", True]),
    }


def sparse_block() -> dict[str, Argument]:
    case = block("float64")
    return case | {"queries": sparse_rows(rows(1)), "support": sparse_rows(rows(2)[:7])}


def by_support_row(n_support: int, n_machines: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    coef = sp.csc_array(np.random.default_rng(3).normal(size=(n_machines, n_support)))
    return coef.indptr.astype(np.int64), coef.indices.astype(np.int32), coef.data


def falling(starts: np.ndarray) -> np.ndarray:
    starts = starts.copy()
    starts[1] = starts[-1]
    starts[2] = 0
    return starts


def expand() -> dict[str, Argument]:
    starts, ids, values = by_support_row(7, 2)
    case = block("float64")
    del case["out"]
    return case | {
        "starts": vector(starts, starts + 1, falling(starts), -starts),
        "machines": indices(ids, 2),
        "values": vector(values),
        "out": written(np.zeros((N, 2)), np.zeros((N - 1, 2)), np.zeros((N, 1)), np.zeros((0, 2))),
        "dtype": word("float32"),
    }


def expand_decays() -> dict[str, Argument]:
    case = expand()
    del case["kernel"], case["check"]
    parts = [case.pop(name) for name in ("starts", "machines", "values")]
    right = tuple(part.value for part in parts)
    wrong: list[Any] = [[right], [], [right, right[:2]], None, "x", [right, "x"]]
    for k, part in enumerate(parts):
        wrong += [[right, (*right[:k], value, *right[k + 1 :])] for value in part.wrong]
    return case | {
        "metric": word("cityblock"),
        "gammas": Argument([0.5, 1.0], [[0.5], [], [0.5, NAN], [0.5, -1.0], None, "x", ["x", 1]]),
        "coefficients": Argument([right, right], wrong),
    }


def solver() -> dict[str, Argument]:
    X = rows()
    return {
        "matrix": dense_rows(X, X[:-1], X[:0], np.vstack([X, X])),
        "kernel": kernel(),
        "column": Argument(None, [3, "x", lambda i: X[i]]),
        "classes": indices_of_classes(),
        "n_classes": count(2, 1, 2**30),
        "machines": machines([([0], [1])], 2),
        "dtype": word("float64"),
        "max_stages": count(50),
        "memory_bytes": count(2**24),
        "n_threads": threads(),
        "monitor": monitor(),
    }


def indices_of_classes() -> Argument:
    beyond = codes()
    beyond[0] = 2
    huge = codes()
    huge[0] = 2**31 - 1
    return vector(codes(), beyond, huge)


def greedy() -> dict[str, Argument]:
    weights = optional(numbers(np.ones(N), NAN, INF))
    weights.wrong.append(np.zeros(N))
    return solver() | {
        "weights": weights,
        "diagonal": optional(numbers(np.ones(N), INF)),
        "method": word("auto"),
        "max_visits": number(2.0, 0.5, -1.0, INF),
        "step_tol": number(0.02, -1.0, INF),
        "block_rows": count(8, 0),
        "memory_bytes": count(2**24, 0),
        "folder": Argument("", [None, 3]),
        "states": Argument([], [None, 3, ["text"], [b""] * 99]),
        "keep": Argument(None, [3, "text"]),
        "keep_seconds": number(1.0, -1.0, INF),
    }


def sparse_greedy() -> dict[str, Argument]:
    matrix = sparse_rows(rows())
    matrix.wrong.append(csr(rows()[:-1]))
    return greedy() | {"matrix": matrix}


def precomputed_greedy() -> dict[str, Argument]:
    K = rows() @ rows().T
    matrix = dense_rows(K, K[:, :-1], K[:-1], rows())
    matrix.wrong.append(csr(K))
    return greedy() | {"matrix": matrix, "kernel": Argument(None)}


def function_greedy() -> dict[str, Argument]:
    K = rows() @ rows().T
    of_column = Argument(
        lambda i: K[i],
        [
            3,
            lambda i: K[i, :-1],
            lambda i: np.append(K[i], 0.0),
            lambda i: K[i].astype(np.float32),
            lambda i: K,
            lambda i: None,
            lambda: K[0],
        ],
    )
    case = greedy() | {"column": of_column, "kernel": Argument(None, [kernel().value])}
    matrix = case["matrix"]
    matrix.wrong = [wrong for wrong in matrix.wrong if np.shape(wrong) != (N, 0)]  # any width
    return case


def hard_margin() -> dict[str, Argument]:
    return solver() | {
        "diagonal": optional(numbers(np.ones(N), INF, NAN)),
        "bias": flag(True),
        "tol": number(1e-3, -1.0, INF),
        "memory_bytes": count(2**24, 0),
    }


def soft_margin() -> dict[str, Argument]:
    case = hard_margin()
    del case["bias"]
    return case | {
        "weights": optional(numbers(np.ones(N), INF, NAN, 0.0, -1.0)),
        "C": number(1.0, -1.0, INF),
    }


def tilt() -> dict[str, Argument]:
    logs, values = np.zeros(N), np.linspace(-1, 1, N)
    return {
        "logs": vector(logs),
        "values": vector(values),
        "rate": Argument(1.0, ["x", None]),
        "centre": Argument(0.0, ["x", None]),
        "weights": written(np.zeros(N)),
    }


def sparse_staged_vote(dtype: str) -> dict[str, Argument]:
    X, other = rows(dtype=dtype), "float32" if dtype == "float64" else "float64"
    wrong = [[csr(X[:-1])], [csr(X.astype(other))], [csr(X[:, :0])], [X]]
    matrices = sparse_rows(X)
    wrong_kernels = [[[("rows", 1, 1.0)]], [[("rows", 0, NAN)]], [[("factor", 0, 1.0)]]]
    return staged_vote(dtype) | {
        "arrays": Argument([matrices.value], wrong + [[matrix] for matrix in matrices.wrong]),
        "kernels": Argument([[("rows", 0, 1.0)]], wrong_kernels),
    }


def staged_vote(dtype: str) -> dict[str, Argument]:
    distances = np.abs(rows() @ rows().T).astype(dtype)
    factor = rows(dtype=dtype)
    other = "float32" if dtype == "float64" else "float64"
    wrong_arrays = [
        [distances, factor[:-1]],
        [distances[:, :-1], factor],
        [distances.T[::2], factor],
        [distances, np.asfortranarray(factor)],
        [distances.astype(other), factor],
        [distances, factor[:, :0]],
        [distances],
        [distances, None],
        [distances, csr(factor)],
        [],
        None,
        3,
    ]
    points = [("sqeuclidean", 1, 1.0), ("cityblock", 1, 0.5), ("cityblock", 1, 2.0)]
    kernels = [[("distances", 0, 1.0)], [("factor", 1, 0.0)], points]
    wrong_kernels = [
        [],
        [[]],
        [[("unknown", 0, 1.0)]],
        [[("values", 2, 1.0)]],
        [[("values", -1, 1.0)]],
        [[("values", 1, 1.0)]],
        [[("distances", 0, NAN)]],
        [[("distances", 0, -1.0)]],
        [[("distances", 0)]],
        [[("rows", 1, 1.0)]],
        [[("sqeuclidean", 2, 1.0)]],
        [points[:2]],
        [("distances", 0, 1.0)],
        "x",
        None,
    ]
    splits = np.zeros((2, N), dtype=np.uint8)
    splits[0, ::2] = splits[1, 1::2] = 1
    wrong_splits = [
        *misshapen(splits),
        splits[:1],
        splits[:, :-1],
        np.asfortranarray(splits),
        splits.astype(bool),
    ]
    shuffles = np.arange(2 * N, dtype=np.int32).reshape(2, N)  # not beside kernels of splits
    return {
        "arrays": Argument([distances, factor], wrong_arrays),
        "kernels": Argument(kernels, wrong_kernels),
        "classes": vector(codes()),
        "machines": machines([([0], [1])], 7),
        "weights": numbers(np.ones(N), NAN, INF, -1.0),
        "train": Argument(1 - splits, wrong_splits),
        "test": Argument(splits, wrong_splits),
        "shuffles": Argument(
            shuffles[:0],
            [*misshapen(shuffles), shuffles[:, :-1], np.asfortranarray(shuffles)],
        ),
        "loss": word("logistic"),
        "bias": flag(True),
        "all_columns": flag(False),
        "sharpness": number(0.3, -1.0, INF),
        "n_stages": count(0, 21, 200),  # more than max_stages
        "max_stages": count(20),
        "race": flag(True),
        "compact": flag(False),
        "memory_bytes": count(2**24),
        "n_threads": threads(),
        "monitor": monitor(),
    }


def core_set_steps(dtype: str) -> dict[str, Argument]:
    Q = aligned(rows() @ rows().T + np.eye(N), dtype)
    wrong_Q = [
        *misshapen(Q),
        Q[: N - 1],
        Q[:, :N],
        Q[:, ::2],
        Q[::-1],
        misaligned(Q),
        np.ascontiguousarray(np.hstack([Q, Q])[:, :33]),
        np.full_like(Q, NAN),
    ]
    alpha, gradient = numbers(np.zeros(N), NAN, INF, -1.0), numbers(np.zeros(N), NAN, INF)
    alpha.wrong += written(alpha.value).wrong
    gradient.wrong += written(gradient.value).wrong
    longer = [np.zeros(3 * N)]
    alpha.wrong += longer
    return {
        "Q": Argument(Q, wrong_Q),
        "alpha": alpha,
        "gradient": gradient,
        "tol": number(1e-3, -1.0, INF),
        "largest_mass": number(1e9),
        "max_steps": count(100),
        "monitor": monitor(),
    }


def join_core_set(dtype: str) -> dict[str, Argument]:
    values = rows(4) @ rows(4).T
    Q = np.zeros((16, 16), dtype=dtype)
    return {
        "values": Argument(
            values.astype(dtype),
            [*misshapen(values.astype(dtype)), values.astype(dtype)[:3], values.T[::-1]],
        ),
        "slots": indices(np.array([2, 5, 7]), N),
        "places": indices(np.array([0, 3, 2, 5, 7]), N),
        "labels": vector(np.ones(5)),
        "projections": Argument(
            np.ones((5, 2)),
            [*misshapen(np.ones((5, 2))), np.ones((4, 2)), np.asfortranarray(np.ones((5, 2)))],
        ),
        "bias": number(1.0, INF),
        "diagonal": vector(np.ones(3)),
        "Q": Argument(Q, [*misshapen(Q), read_only(Q), Q[:4], Q[:, :4], Q[:, ::2], Q[::-1], Q.T]),
    }


def sum_columns(dtype: str) -> dict[str, Argument]:
    values = aligned(rows(4) @ rows(4).T, dtype)
    wrong = [*misshapen(values), values[:, :18], values[:5], values[::-1], misaligned(values)]
    return {
        "values": Argument(values, wrong),
        "slots": indices(np.array([2, 5, 7]), N),
        "coef": vector(np.ones(3)),
        "rows": optional(indices(np.arange(19), values.shape[1])),
        "out": written(np.zeros(19), np.zeros(1000)),
    }


def route_cells() -> dict[str, Argument]:
    columns = np.array([0, 2, -2, -1], dtype=np.int32)
    directions = rows(5, np.float32)[:2]
    children = np.array([[1, 2], [-1, 3], [-2, -3], [-4, -5]], dtype=np.int32)
    wrong_children = [
        changed(children, place, child)
        for place, child in [
            ((0, 0), 0),
            ((1, 1), 1),
            ((2, 0), 0),
            ((3, 1), 4),
            ((2, 1), -6),
            ((0, 1), 2**31 - 1),
            ((0, 1), -(2**31)),
        ]
    ]
    outside = [changed(columns, 1, c) for c in (-3, D, 2**31 - 1, -(2**31))]
    cells = np.zeros(N, dtype=np.int32)
    return {
        "columns": vector(columns, *outside),
        "directions": Argument(
            directions,
            [
                *misshapen(directions),
                directions[:1],
                directions[:, :2],
                directions[:, ::-1],
                changed(directions, (1, 1), NAN),
                changed(directions, (0, 0), INF),
            ],
        ),
        "thresholds": numbers(np.zeros(4, np.float32), NAN),
        "children": table_of(children, *wrong_children),
        "rows": dense_rows(rows(), rows()[:-1], rows()[:, :2], csr(rows()[:-1])),
        "out": written(cells, np.zeros(N + 1, np.int32)),
        "n_threads": threads(),
    }


def sparse_route_cells() -> dict[str, Argument]:
    return route_cells() | {"rows": sparse_rows(rows())}


def expand_cells() -> dict[str, Argument]:
    Q, S = rows(1, np.float32), rows(2, np.float32)[:7]
    cells = np.resize(np.array([0, 1, -1], dtype=np.int32), N)
    starts = np.array([0, 2, 5], dtype=np.int64)
    of_members = np.array([[0, 1, 3, 3, 4, 5], [5, 6, 7, 8, 9, 10]], dtype=np.int64)
    gammas = np.full((2, 2), 0.5)
    shifts = rows(3, np.float32)[:2]
    not_shifts = [changed(shifts, (1, 2), value) for value in (NAN, INF)]
    return {
        "metrics": Argument(
            ["sqeuclidean", "cityblock"],
            [["rbf", "cityblock"], ["cityblock"], ["cityblock"] * 3, [], [1, 2], None, 3],
        ),
        "gammas": table_of(gammas, *(changed(gammas, (1, 1), g) for g in (NAN, -1.0))),
        "queries": Argument(Q, [*misshapen(Q), Q[:-1], Q[:, :2], Q[:, ::-1], Q[:, :0], csr(Q)]),
        "cells": vector(cells, *(changed(cells, 3, c) for c in (-2, 2, 2**31 - 1))),
        "support": Argument(S, [*misshapen(S), S[:3], S[:, :2], S[:, ::-1], csr(S)]),
        "rows": indices(np.array([0, 6, 3, 3, 1], dtype=np.int32), 7),
        "starts": vector(starts, starts + 1, falling(starts), -starts),
        "means": table_of(shifts, *not_shifts),
        "scales": table_of(shifts, *not_shifts),
        "coefficient_starts": table_of(
            of_members,
            of_members - 1,
            of_members + 1,
            changed(of_members, (1, 3), 0),
            changed(of_members, (0, 5), 10**12),
        ),
        "machines": indices(np.resize(np.array([0, 1], dtype=np.int16), 10), 2),
        "values": vector(np.ones(10, dtype=np.float32)),
        "out": written(np.zeros((N, 2)), np.zeros((N - 1, 2)), np.zeros((N, 1))),
        "n_threads": threads(),
    }


def interpolate_columns() -> dict[str, Argument]:
    starts = np.array([0, 3, 5])
    wrong_starts = [changed(starts, 1, k) for k in (0, 5, -1)] + [changed(starts, 2, 6)]
    values = np.array([0.0, 1.0, 2.0, 5.0, 6.0])
    return {
        "rows": Argument(rows(), [*misshapen(rows()), rows()[:, :2], rows()[:, ::-1]]),
        "columns": indices(np.array([0, 2]), D),
        "starts": vector(starts, *wrong_starts),
        "values": vector(values),
        "scores": vector(values),
    }


TABLE: dict[str, list[Callable[[], dict[str, Argument]]]] = {
    "level": [dict],
    "expand": [expand],
    "expand_decays": [expand_decays],
    "greedy": [greedy, sparse_greedy, precomputed_greedy, function_greedy],
    "hard_margin": [hard_margin],
    "soft_margin": [soft_margin],
    "tilt": [tilt],
    "interpolate_columns": [interpolate_columns],
    "route_cells": [route_cells, sparse_route_cells],
    "expand_cells": [expand_cells],
}
for _dtype in ("float32", "float64"):
    TABLE[f"block_{_dtype}"] = [lambda dtype=_dtype: block(dtype)]
    for _of in (staged_vote, core_set_steps, join_core_set, sum_columns):
        TABLE[f"{_of.__name__}_{_dtype}"] = [lambda of=_of, dtype=_dtype: of(dtype)]
    TABLE[f"staged_vote_{_dtype}"].append(lambda dtype=_dtype: sparse_staged_vote(dtype))
TABLE["block_float64"].append(sparse_block)


def call(name: str, arguments: dict[str, Any]) -> Any:
    return getattr(_core, name)(**arguments)


def values_of(case: dict[str, Argument]) -> dict[str, Any]:
    return {name: argument.value for name, argument in case.items()}
