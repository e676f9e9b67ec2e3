from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

KernelSpec = tuple[str, float, float, float]
Matrix = NDArray[Any] | tuple[NDArray[Any], NDArray[np.int32], NDArray[np.int64], int]

def level() -> str: ...
def block_float32(
    kernel: KernelSpec, queries: Matrix, support: Matrix, out: NDArray[np.float32], n_threads: int
) -> None: ...
def block_float64(
    kernel: KernelSpec, queries: Matrix, support: Matrix, out: NDArray[np.float64], n_threads: int
) -> None: ...
def expand(
    kernel: KernelSpec,
    queries: Matrix,
    support: Matrix,
    starts: NDArray[np.int64],
    machines: NDArray[np.int32],
    values: NDArray[np.float64],
    out: NDArray[np.float64],
    exact: bool,
    n_threads: int,
) -> None: ...
def expand_decays(
    metric: str,
    gammas: Sequence[float],
    queries: Matrix,
    support: Matrix,
    coefficients: Sequence[tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]]],
    out: NDArray[np.float64],
    exact: bool,
    n_threads: int,
) -> None: ...
def greedy(
    matrix: Matrix,
    kernel: KernelSpec | None,
    column: Callable[[int], NDArray[np.float64]] | None,
    *,
    classes: NDArray[np.int32],
    n_classes: int,
    machines: Sequence[tuple[Sequence[int], Sequence[int]]],
    weights: NDArray[np.float64] | None,
    diagonal: NDArray[np.float64] | None,
    method: str,
    exact: bool,
    max_visits: float,
    step_tol: float,
    max_stages: int,
    memory_bytes: int,
    max_seconds: float,
    block_rows: int,
    n_threads: int,
    report: Callable[[int, int, float], None] | None,
) -> list[dict[str, Any]]: ...
def exact(
    matrix: Matrix,
    kernel: KernelSpec | None,
    column: Callable[[int], NDArray[np.float64]] | None,
    *,
    classes: NDArray[np.int32],
    n_classes: int,
    machines: Sequence[tuple[Sequence[int], Sequence[int]]],
    diagonal: NDArray[np.float64] | None,
    bias: bool,
    tol: float,
    max_stages: int,
    exact: bool,
    memory_bytes: int,
    max_seconds: float,
    n_threads: int,
    report: Callable[[int, int, float], None] | None,
) -> list[dict[str, Any]]: ...
def tilt(
    logs: NDArray[np.float64],
    values: NDArray[np.float64],
    rate: float,
    centre: float,
    weights: NDArray[np.float64],
) -> tuple[float, float, float]: ...

class _RunPaths(Protocol):
    def __call__(
        self,
        arrays: list[NDArray[Any]],
        kernels: list[tuple[str, int, float]],
        *,
        classes: NDArray[np.int32],
        machines: Sequence[tuple[Sequence[int], Sequence[int]]],
        weights: NDArray[np.float64],
        train: NDArray[np.uint8],
        test: NDArray[np.uint8],
        loss: str,
        bias: bool,
        n_stages: int,
        max_stages: int,
        race: bool,
        compact: bool,
        memory_bytes: int,
        max_seconds: float,
        n_threads: int,
        report: Callable[[int, int, float], None] | None,
    ) -> list[dict[str, Any]]: ...

paths_float32: _RunPaths
paths_float64: _RunPaths

class _CoreSetSteps(Protocol):
    def __call__(
        self,
        Q: NDArray[Any],
        alpha: NDArray[np.float64],
        gradient: NDArray[np.float64],
        *,
        tol: float,
        largest_mass: float,
        max_steps: int,
        max_seconds: float,
        report: Callable[[int, int, float], None] | None,
    ) -> tuple[int, float, str]: ...

class _JoinCoreSet(Protocol):
    def __call__(
        self,
        values: NDArray[Any],
        slots: NDArray[np.int64],
        places: NDArray[np.int64],
        *,
        labels: NDArray[np.float64],
        projections: NDArray[np.float64],
        bias: float,
        diagonal: NDArray[np.float64],
        Q: NDArray[Any],
    ) -> None: ...

class _SumColumns(Protocol):
    def __call__(
        self,
        values: NDArray[Any],
        slots: NDArray[np.int64],
        coef: NDArray[np.float64],
        rows: NDArray[np.int64] | None,
        out: NDArray[np.float64],
    ) -> None: ...

core_set_steps_float32: _CoreSetSteps
core_set_steps_float64: _CoreSetSteps
join_core_set_float32: _JoinCoreSet
join_core_set_float64: _JoinCoreSet
sum_columns_float32: _SumColumns
sum_columns_float64: _SumColumns
