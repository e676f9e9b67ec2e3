"""Arguments of the compiled core's functions: of each kind a right value, and wrong ones."""

import math
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import scipy.sparse as sp

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


def optional(argument: Argument) -> Argument:
    return Argument(argument.value, [wrong for wrong in argument.wrong if wrong is not None])


def table_of(value: np.ndarray, *wrong: Any) -> Argument:
    shapes = [value[:-1], value[:, :-1], np.vstack([value, value]), np.hstack([value, value])]
    gaps = np.hstack([value, value])[:, : value.shape[1]]
    return Argument(value, [*misshapen(value), *shapes, gaps, value[:, ::-1], *wrong])


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
