from collections.abc import Callable, Sequence
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

#: Name, gamma, coef0 and degree.
KernelSpec: TypeAlias = tuple[str, float, float, float]

#: A dense array, or data, indices, indptr and number of columns of a CSR matrix.
Matrix: TypeAlias = NDArray[Any] | tuple[NDArray[Any], NDArray[np.int32], NDArray[np.int64], int]

#: Coefficients by support row: starts, machines and values.
_Coefficients: TypeAlias = tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]]

#: Negative and positive classes of every machine.
_Machines: TypeAlias = Sequence[tuple[Sequence[int], Sequence[int]]]

class _Monitor(Protocol):
    @property
    def seconds_left(self) -> float: ...
    def report(self, n_done: int, stage: int, value: float, /) -> bool: ...

class MemoryTooSmall(ValueError):
    """The rows do not fit into the memory; the second argument is the number of bytes needed."""

class NothingToPack(ValueError):
    """Columns were required to be packed as bits, but none can be."""

class NotFinite(ValueError):
    """Values of the kernel, or sums of them, are NaN or infinite."""

class GreedyResult:
    @property
    def rows(self) -> NDArray[np.int32]: ...
    @property
    def steps(self) -> NDArray[np.float64]: ...
    @property
    def losses(self) -> NDArray[np.float64]: ...
    @property
    def support(self) -> NDArray[np.int32]: ...
    @property
    def multipliers(self) -> NDArray[np.float64]: ...
    @property
    def squared_norm(self) -> float: ...
    @property
    def violation(self) -> float: ...
    @property
    def n_values(self) -> int: ...
    @property
    def stop_reason(self) -> Literal["converged", "exhausted", "max_stages", "max_time"]: ...
    @property
    def method(self) -> str: ...

class HardMarginResult:
    @property
    def support(self) -> NDArray[np.int32]: ...
    @property
    def multipliers(self) -> NDArray[np.float64]: ...
    @property
    def intercept(self) -> float: ...
    @property
    def rho(self) -> float: ...
    @property
    def rho_lower_bound(self) -> float: ...
    @property
    def violation(self) -> float: ...
    @property
    def n_stages(self) -> int: ...
    @property
    def n_values(self) -> int: ...
    @property
    def stop_reason(self) -> Literal["converged", "rho_zero", "max_stages", "max_time"]: ...

class SoftMarginResult:
    @property
    def support(self) -> NDArray[np.int32]: ...
    @property
    def multipliers(self) -> NDArray[np.float64]: ...
    @property
    def intercept(self) -> float: ...
    @property
    def violation(self) -> float: ...
    @property
    def n_stages(self) -> int: ...
    @property
    def n_values(self) -> int: ...
    @property
    def stop_reason(self) -> Literal["converged", "max_stages", "max_time"]: ...

class StagedVotePath:
    @property
    def coefficients(self) -> NDArray[np.float64]: ...
    @property
    def held_scores(self) -> NDArray[np.float64]: ...
    @property
    def stages(self) -> NDArray[np.int64]: ...
    @property
    def losses(self) -> NDArray[np.float64]: ...
    @property
    def intercept(self) -> float: ...
    @property
    def mass(self) -> float: ...
    @property
    def loss(self) -> float: ...
    @property
    def n_stages(self) -> int: ...
    @property
    def stop_reason(self) -> str: ...

class StagedVoteResult:
    @property
    def rows(self) -> NDArray[np.int32]: ...
    @property
    def splits(self) -> NDArray[np.int32]: ...
    @property
    def held_rows(self) -> NDArray[np.int32]: ...
    @property
    def held_splits(self) -> NDArray[np.int32]: ...
    @property
    def paths(self) -> list[StagedVotePath]: ...

def level() -> str: ...
def block_float32(
    kernel: KernelSpec,
    queries: Matrix,
    support: Matrix,
    out: NDArray[np.float32],
    n_threads: int,
    check: Callable[[], object] | None,
) -> None: ...
def block_float64(
    kernel: KernelSpec,
    queries: Matrix,
    support: Matrix,
    out: NDArray[np.float64],
    n_threads: int,
    check: Callable[[], object] | None,
) -> None: ...
def expand(
    kernel: KernelSpec,
    queries: Matrix,
    support: Matrix,
    starts: NDArray[np.int64],
    machines: NDArray[np.int32],
    values: NDArray[np.float64],
    out: NDArray[np.float64],
    dtype: str,
    n_threads: int,
    check: Callable[[], object] | None,
) -> None: ...
def expand_decays(
    metric: str,
    gammas: Sequence[float],
    queries: Matrix,
    support: Matrix,
    coefficients: Sequence[_Coefficients],
    out: NDArray[np.float64],
    dtype: str,
    n_threads: int,
) -> None: ...
def interpolate_columns(
    rows: NDArray[np.float64],
    columns: NDArray[np.int64],
    starts: NDArray[np.int64],
    values: NDArray[np.float64],
    scores: NDArray[np.float64],
) -> None: ...
def route_cells(
    columns: NDArray[np.int32],
    directions: NDArray[np.float32],
    thresholds: NDArray[np.float32],
    children: NDArray[np.int32],
    rows: Matrix,
    out: NDArray[np.int32],
    n_threads: int,
) -> None: ...
def expand_cells(
    metrics: Sequence[str],
    gammas: NDArray[np.float64],
    queries: NDArray[np.float32],
    cells: NDArray[np.int32],
    support: NDArray[np.float32],
    rows: NDArray[np.int32],
    starts: NDArray[np.int64],
    means: NDArray[np.float32],
    scales: NDArray[np.float32],
    coefficient_starts: NDArray[np.int64],
    machines: NDArray[np.int16],
    values: NDArray[np.float32],
    out: NDArray[np.float64],
    n_threads: int,
) -> None: ...
def greedy(
    matrix: Matrix,
    kernel: KernelSpec | None,
    column: Callable[[int], NDArray[np.float64]] | None,
    *,
    classes: NDArray[np.int32],
    n_classes: int,
    machines: _Machines,
    weights: NDArray[np.float64] | None,
    diagonal: NDArray[np.float64] | None,
    method: str,
    dtype: str,
    max_visits: float,
    step_tol: float,
    max_stages: int,
    memory_bytes: int,
    block_rows: int,
    n_threads: int,
    folder: str,
    states: Sequence[bytes],
    keep: Callable[[int, bytes], float] | None,
    keep_seconds: float,
    monitor: _Monitor | None,
) -> list[GreedyResult]: ...
def hard_margin(
    matrix: Matrix,
    kernel: KernelSpec | None,
    column: Callable[[int], NDArray[np.float64]] | None,
    *,
    classes: NDArray[np.int32],
    n_classes: int,
    machines: _Machines,
    diagonal: NDArray[np.float64] | None,
    bias: bool,
    tol: float,
    max_stages: int,
    dtype: str,
    memory_bytes: int,
    n_threads: int,
    monitor: _Monitor | None,
) -> list[HardMarginResult]: ...
def soft_margin(
    matrix: Matrix,
    kernel: KernelSpec | None,
    column: Callable[[int], NDArray[np.float64]] | None,
    *,
    classes: NDArray[np.int32],
    n_classes: int,
    machines: _Machines,
    weights: NDArray[np.float64] | None,
    diagonal: NDArray[np.float64] | None,
    C: float,
    tol: float,
    max_stages: int,
    dtype: str,
    memory_bytes: int,
    n_threads: int,
    monitor: _Monitor | None,
) -> list[SoftMarginResult]: ...
def tilt(
    logs: NDArray[np.float64],
    values: NDArray[np.float64],
    rate: float,
    centre: float,
    weights: NDArray[np.float64],
) -> tuple[float, float, float]: ...

class _StagedVote(Protocol):
    def __call__(
        self,
        arrays: Sequence[Matrix],
        kernels: Sequence[Sequence[tuple[str, int, float]]],
        *,
        classes: NDArray[np.int32],
        machines: _Machines,
        weights: NDArray[np.float64],
        train: NDArray[np.uint8],
        test: NDArray[np.uint8],
        shuffles: NDArray[np.int32],
        loss: str,
        bias: bool,
        all_columns: bool,
        sharpness: float,
        n_stages: int,
        max_stages: int,
        race: bool,
        compact: bool,
        memory_bytes: int,
        n_threads: int,
        monitor: _Monitor | None,
    ) -> list[StagedVoteResult]: ...

staged_vote_float32: _StagedVote
staged_vote_float64: _StagedVote

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
        monitor: _Monitor | None,
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
