"""Every function of the compiled core refuses wrong arguments: none crashes, none is ignored.

The table holds one valid call of every function, and wrong values for each of its arguments.
"""

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from hardmargin import _core

REFUSALS = (ValueError, TypeError, IndexError)

N, D = 20, 3
NAN, INF = math.nan, math.inf
HUGE = 2**70

NOT_COUNTS = [-1, HUGE, 1.5, "x", None]
NOT_BOOLS = ["x", None, 2]
NOT_NUMBERS = [NAN, "x", None]
NOT_ARRAYS = [None, "x", 3, [1.0, 2.0], object()]


@dataclass
class Argument:
    """A value that is right, and values that are wrong."""

    value: Any
    wrong: list[Any] = field(default_factory=list)


def count(value: int, *wrong: Any) -> Argument:
    return Argument(value, [*NOT_COUNTS, *wrong])


def number(value: float, *wrong: Any) -> Argument:
    return Argument(value, [*NOT_NUMBERS, *wrong])


def flag(value: bool) -> Argument:
    return Argument(value, NOT_BOOLS)


def word(value: str) -> Argument:
    return Argument(value, ["unknown", "", None, 3])


def misshapen(a: np.ndarray) -> list[Any]:
    other = np.float32 if a.dtype == np.float64 else np.float64
    return [
        *NOT_ARRAYS,
        a.astype(other),
        a.astype(np.complex128),
        a.astype(">f8"),
        a.astype("S1"),
        a[np.newaxis],
        a.ravel()[0],
    ]


def vector(value: np.ndarray, *wrong: Any, any_length: bool = False) -> Argument:
    lengths = [] if any_length else [value[:-1], value[:0], np.concatenate([value, value[:1]])]
    return Argument(value, [*misshapen(value), *lengths, *wrong])


def indices(value: np.ndarray, end: int, *, any_length: bool = False) -> Argument:
    outside = []
    for index in (-1, end, np.iinfo(value.dtype).max, np.iinfo(value.dtype).min):
        outside.append(value.copy())
        outside[-1][-1] = index
    return vector(value, *outside, any_length=any_length)


def numbers(value: np.ndarray, *bad: float) -> Argument:
    wrong = []
    for number in bad:
        wrong.append(value.copy())
        wrong[-1][-1] = number
    return vector(value, *wrong)


def read_only(a: np.ndarray) -> np.ndarray:
    a = a.copy()
    a.flags.writeable = False
    return a


def written(value: np.ndarray, *wrong: Any) -> Argument:
    wide = np.zeros((*value.shape[:-1], 2 * value.shape[-1]), dtype=value.dtype)
    return Argument(
        value,
        [
            *misshapen(value),
            read_only(value),
            wide[..., ::2],
            value[..., ::-1],
            value[:-1],
            value[..., :-1],
            np.lib.stride_tricks.as_strided(value, strides=(0,) * value.ndim),
            *wrong,
        ],
    )


def dense_rows(value: np.ndarray, *wrong: Any) -> Argument:
    strings = value.astype("S1")
    return Argument(
        value,
        [
            *NOT_ARRAYS,
            value.astype(int),
            value.astype(np.float16),
            value.astype(">f8"),
            strings,
            value[0],
            value[np.newaxis],
            value[:, :0],
            (value,),
            (value, value, value, value),
            *wrong,
        ],
    )


def changed(a: np.ndarray, place: Any, value: Any) -> np.ndarray:
    a = a.copy()
    a[place] = value
    return a


def csr(X: np.ndarray) -> tuple[Any, ...]:
    rows = sp.csr_array(X)
    return rows.data, rows.indices.astype(np.int32), rows.indptr.astype(np.int64), X.shape[1]


def sparse_rows(X: np.ndarray) -> Argument:
    data, ids, starts, n_cols = csr(X)
    return Argument(
        csr(X),
        [
            (data, ids, starts),
            (data[:-1], ids, starts, n_cols),
            (data, ids[:-1], starts, n_cols),
            (data.astype(int), ids, starts, n_cols),
            (np.repeat(data, 2)[::2], ids, starts, n_cols),
            (data, ids.astype(np.int64), starts, n_cols),
            (data, ids, starts.astype(np.int32), n_cols),
            (data, ids, starts[:0], n_cols),
            (data, ids, starts[:-1], n_cols),
            (data, changed(ids, 0, -1), starts, n_cols),
            (data, changed(ids, -1, n_cols), starts, n_cols),
            (data, changed(ids, 3, 2**31 - 1), starts, n_cols),
            (data, ids, changed(starts, 0, 1), n_cols),
            (data, ids, changed(starts, 1, -5), n_cols),
            (data, ids, changed(starts, 1, 10**12), n_cols),
            (data, ids, changed(starts, -1, len(data) + 1), n_cols),
            (data, ids, starts, n_cols - 1),
            (data, ids, starts, -1),
            (data, ids, starts, 2.0),
            (data, ids, starts, None),
            (data, ids, starts, HUGE),
        ],
    )


def kernel() -> Argument:
    wrong = [("unknown", 1.0, 0.0, 3.0), ("rbf", NAN, 0.0, 3.0), ("rbf", -1.0, 0.0, 3.0)]
    wrong += [("poly", 1.0, NAN, 3.0), ("poly", 1.0, 0.0, NAN), ("rbf", 1.0, 0.0), "rbf", 3]
    wrong += [("rbf", "x", 0.0, 3.0), (3, 1.0, 0.0, 3.0)]
    return Argument(("rbf", 0.5, 0.0, 3.0), wrong)


def required_kernel() -> Argument:
    return Argument(kernel().value, [*kernel().wrong, None])


def machines(value: Any, n_classes: int) -> Argument:
    wrong = [[([0], [n_classes])], [([-1], [1])], [([0], [0])], [([0, 0], [1])], [([0.5], [1])]]
    return Argument(value, [*wrong, [([0],)], [0, 1], "x", None, 3, [([HUGE], [1])]])


def monitor() -> Argument:
    def of(seconds_left: Any = INF, report: Any = lambda *_: True) -> SimpleNamespace:
        return SimpleNamespace(seconds_left=seconds_left, report=report)

    wrong = [object(), 3, SimpleNamespace(seconds_left=INF), SimpleNamespace(report=print)]
    return Argument(of(), [*wrong, of(seconds_left=NAN), of(seconds_left="x"), of(report=3)])


def threads() -> Argument:
    return count(2, 0, 10**9)


def rows(seed: int = 0, dtype: Any = np.float64) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(N, D)).astype(dtype)


def codes() -> np.ndarray:
    return np.resize(np.array([0, 1, -1], dtype=np.int32), N)


# --- the table -----------------------------------------------------------------------------------


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


def optional(argument: Argument) -> Argument:
    return Argument(argument.value, [wrong for wrong in argument.wrong if wrong is not None])


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
    wrong_kernels = [[("rows", 1, 1.0)], [("rows", 0, NAN)], [("factor", 0, 1.0)]]
    return staged_vote(dtype) | {
        "arrays": Argument([matrices.value], wrong + [[matrix] for matrix in matrices.wrong]),
        "kernels": Argument([("rows", 0, 1.0)], wrong_kernels),
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
    kernels = [("distances", 0, 1.0), ("factor", 1, 0.0)]
    wrong_kernels = [
        [],
        [("unknown", 0, 1.0)],
        [("values", 2, 1.0)],
        [("values", -1, 1.0)],
        [("values", 1, 1.0)],
        [("distances", 0, NAN)],
        [("distances", 0, -1.0)],
        [("distances", 0)],
        [("rows", 1, 1.0)],
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
    return {
        "arrays": Argument([distances, factor], wrong_arrays),
        "kernels": Argument(kernels, wrong_kernels),
        "classes": vector(codes()),
        "machines": machines([([0], [1])], 7),
        "weights": numbers(np.ones(N), NAN, INF, -1.0),
        "train": Argument(1 - splits, wrong_splits),
        "test": Argument(splits, wrong_splits),
        "loss": word("logistic"),
        "bias": flag(True),
        "sharpness": number(0.3, -1.0, INF),
        "n_stages": count(0, 21, 200),  # more than max_stages
        "max_stages": count(20),
        "race": flag(True),
        "compact": flag(False),
        "memory_bytes": count(2**24),
        "n_threads": threads(),
        "monitor": monitor(),
    }


def aligned_zeros(shape: tuple[int, int], dtype: str) -> np.ndarray:
    """Rows that begin on cache lines."""
    n_bytes = shape[0] * shape[1] * np.dtype(dtype).itemsize
    raw = np.zeros(n_bytes + 64, dtype=np.uint8)
    return raw[-raw.ctypes.data % 64 :][:n_bytes].view(dtype).reshape(shape)


def aligned(A: np.ndarray, dtype: str) -> np.ndarray:
    values = aligned_zeros((len(A), -(-A.shape[1] // 16) * 16), dtype)
    values[:, : A.shape[1]] = A
    return values


def misaligned(A: np.ndarray) -> np.ndarray:
    spare = aligned_zeros((A.shape[0] + 1, A.shape[1]), str(A.dtype))
    return spare.ravel()[1 : A.size + 1].reshape(A.shape)


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


def table_of(value: np.ndarray, *wrong: Any) -> Argument:
    shapes = [value[:-1], value[:, :-1], np.vstack([value, value]), np.hstack([value, value])]
    gaps = np.hstack([value, value])[:, : value.shape[1]]
    return Argument(value, [*misshapen(value), *shapes, gaps, value[:, ::-1], *wrong])


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

CASES = [
    pytest.param(name, make, id=f"{name}-{k}")
    for name, makers in TABLE.items()
    for k, make in enumerate(makers)
]


def call(name: str, arguments: dict[str, Any]) -> Any:
    return getattr(_core, name)(**arguments)


def values_of(case: dict[str, Argument]) -> dict[str, Any]:
    return {name: argument.value for name, argument in case.items()}


def test_the_table_has_every_function():
    functions = {
        name
        for name, thing in vars(_core).items()
        if callable(thing) and not isinstance(thing, type) and not name.startswith("_")
    }
    assert functions == set(TABLE)


@pytest.mark.parametrize(("name", "make"), CASES)
def test_right_arguments_are_accepted(name, make):
    call(name, values_of(make()))


@pytest.mark.parametrize(("name", "make"), CASES)
def test_each_wrong_argument_is_refused(name, make):
    accepted = []
    for argument, of_argument in make().items():
        for k in range(len(of_argument.wrong)):
            case = make()
            wrong = case[argument].wrong[k]
            with suppress(*REFUSALS):
                call(name, values_of(case) | {argument: wrong})
                accepted.append((argument, wrong))
    assert not accepted


@pytest.mark.parametrize(("name", "make"), CASES)
def test_a_missing_argument_is_refused(name, make):
    case = values_of(make())
    for argument in case:
        with pytest.raises(TypeError):
            call(name, {key: value for key, value in case.items() if key != argument})


@pytest.mark.parametrize(
    ("name", "argument", "wrong", "message"),
    [
        ("block_float64", "out", np.zeros((N, 8)), r"out has shape \(20, 8\), expected \(20, 7\)"),
        ("block_float32", "n_threads", 0, "n_threads is 0"),
        ("block_float32", "kernel", ("rfb", 1.0, 0.0, 1.0), "'rfb', expected one of 'rbf'"),
        ("expand", "dtype", "float16", "dtype is 'float16', expected one of 'float32', 'float64'"),
        ("expand", "machines", np.full(14, 2, np.int32), r"machines\[0\] is 2"),
        ("greedy", "classes", np.zeros(3, np.int32), "classes has 3 entries, expected 20"),
        (
            "greedy",
            "weights",
            np.ones(N, np.float32),
            "weights has dtype float32, expected float64",
        ),
        ("greedy", "step_tol", NAN, "step_tol is nan"),
        ("greedy", "machines", [([0], [5])], r"machines\[0\]\[1\]\[0\] is 5"),
        ("hard_margin", "memory_bytes", -3, "memory_bytes is -3"),
        ("staged_vote_float64", "loss", "hinge", "loss is 'hinge'"),
        ("staged_vote_float64", "n_stages", 200, "200, expected at most max_stages, 20"),
        ("sum_columns_float64", "slots", np.array([0, 1, 99]), r"slots\[2\] is 99"),
        ("sum_columns_float64", "out", read_only(np.zeros(19)), "out is read-only"),
        ("tilt", "weights", np.zeros(N + 1), "weights has 21 entries, expected 20"),
        ("route_cells", "columns", np.full(4, 3, np.int32), r"columns\[0\] is 3, expected -2 <="),
        (
            "route_cells",
            "children",
            np.zeros((4, 2), np.int32),
            r"children\[0, 0\] is 0, expected 0 < cut < 4 or -5 <= cell < 0",
        ),
        ("expand_cells", "gammas", np.full((2, 2), -1.0), r"gammas\[0, 0\] is -1, expected"),
        ("expand_cells", "metrics", ["rbf"], r"metrics\[0\] is 'rbf', expected one of"),
    ],
)
def test_messages_name_the_argument_and_its_value(name, argument, wrong, message):
    with pytest.raises(REFUSALS, match=message):
        call(name, values_of(TABLE[name][0]()) | {argument: wrong})


def test_arrays_that_are_written_must_not_be_shared():
    case = values_of(core_set_steps("float64"))
    with pytest.raises(ValueError, match="alpha shares memory with gradient"):
        call("core_set_steps_float64", case | {"gradient": case["alpha"]})
    case = values_of(tilt())
    with pytest.raises(ValueError, match="weights shares memory with logs"):
        call("tilt", case | {"weights": case["logs"]})
    case = values_of(block("float64"))
    X = np.zeros((N, N))
    with pytest.raises(ValueError, match="out shares memory with queries"):
        call("block_float64", case | {"queries": X, "support": X, "out": X})


def test_several_wrong_arguments_at_once_do_not_crash():
    rng = np.random.default_rng(0)
    makers = [(name, make) for name, of_name in TABLE.items() for make in of_name]
    pool = [
        value
        for name, make in makers
        for argument in make().values()
        for value in (argument.value, *argument.wrong)
    ]
    for _ in range(600):
        name, make = makers[rng.integers(len(makers))]
        case = values_of(make())
        for argument in list(case):
            if rng.random() < 0.2:
                case[argument] = pool[rng.integers(len(pool))]
        with suppress(*REFUSALS):
            call(name, case)


# --- monitors ------------------------------------------------------------------------------------

LONG_RUNS = [
    "greedy",
    "hard_margin",
    "soft_margin",
    "staged_vote_float64",
    "core_set_steps_float64",
]


def long_run(name: str) -> dict[str, Any]:
    """Arguments of a call that takes a second or more."""
    rng = np.random.default_rng(0)
    case = values_of(TABLE[name][0]())
    if name == "core_set_steps_float64":
        A = rng.normal(size=(2000, 100))
        alpha, gradient = np.zeros(2000), np.zeros(2000)
        Q = aligned(A @ A.T / 100 + 1e-3 * np.eye(2000), "float64")
        return case | {"Q": Q, "alpha": alpha, "gradient": gradient, "tol": 0.0, "max_steps": 10**9}
    n = 3000
    classes = rng.integers(2, size=n).astype(np.int32)
    if name == "staged_vote_float64":
        # Classes that a plane separates: the loss falls for ever.
        arrays = [rng.normal(size=(n, 200))]
        classes = (arrays[0][:, 0] > 0).astype(np.int32)
        splits = np.zeros((0, n), dtype=np.uint8)
        return case | {
            "arrays": arrays,
            "kernels": [("factor", 0, 0.0)],
            "classes": classes,
            "weights": np.ones(n),
            "train": splits,
            "test": splits,
            "n_stages": 10**6,
            "max_stages": 10**6,
        }
    case |= {"matrix": rng.normal(size=(n, 30)), "classes": classes, "max_stages": 10**8}
    case |= {"diagonal": None, "memory_bytes": 2**30, "kernel": ("rbf", 0.02, 0.0, 3.0)}
    if name == "greedy":
        return case | {"weights": None, "max_visits": 1e6, "step_tol": 0.0}
    if name == "soft_margin":
        case |= {"weights": None, "C": 1e6}
    return case | {"tol": 0.0}


def reason_of(result: Any) -> str:
    if isinstance(result, tuple):
        return result[-1]
    [result] = result
    return getattr(result, "paths", [result])[0].stop_reason


@pytest.mark.parametrize("name", LONG_RUNS)
def test_a_monitor_that_says_no_ends_training_as_the_time_limit_does(name):
    heard = []

    def report(*what):
        heard.append(what)
        return len(heard) < 2

    case = long_run(name) | {"monitor": SimpleNamespace(seconds_left=INF, report=report)}
    assert reason_of(call(name, case)) == "max_time"
    assert len(heard) >= 2
    assert all(len(what) == 3 for what in heard)


@pytest.mark.parametrize("name", LONG_RUNS)
@pytest.mark.parametrize("seconds_left", [0.05, 0.0, -1.0])
def test_a_monitor_limits_the_time(name, seconds_left):
    monitor = SimpleNamespace(seconds_left=seconds_left, report=lambda *_: True)
    assert reason_of(call(name, long_run(name) | {"monitor": monitor})) == "max_time"


@pytest.mark.parametrize("name", LONG_RUNS)
@pytest.mark.parametrize(("answer", "error"), [(None, TypeError), (KeyboardInterrupt(), None)])
def test_a_monitor_that_fails_ends_the_call(name, answer, error):
    def report(*_):
        if error is None:
            raise answer
        return answer

    case = long_run(name) | {"monitor": SimpleNamespace(seconds_left=INF, report=report)}
    with pytest.raises(error or KeyboardInterrupt):
        call(name, case)


@pytest.mark.parametrize("name", ["block_float32", "block_float64", "expand"])
def test_a_check_may_end_an_evaluation(name):
    class Enough(Exception):
        pass

    def check():
        raise Enough

    with pytest.raises(Enough):
        call(name, values_of(TABLE[name][0]()) | {"check": check})
    call(name, values_of(TABLE[name][0]()) | {"check": lambda: None})
