"""What a solver returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

StopReason = Literal["converged", "exhausted", "max_stages", "max_time"]


@dataclass(frozen=True)
class GreedySolution:
    """One machine of the greedy stagewise SVM, with its whole path.

    Attributes
    ----------
    stage_indices : (n_stages,) int array
        Row changed in each stage.
    stage_steps : (n_stages,) float array
        Change of that row's multiplier; negative where a revisit took some of it back.
    support : (n_support,) int array
        Rows visited, in order of their first stage.
    multipliers : (n_support,) float array
        Their multipliers at the end; zero where a row has given everything back.
    losses : (n_stages,) float array
        Dual objective ``a' Kt a / 2 - sum(a)`` after each stage.
    squared_norm : float
        ``||w||^2``, eq. (28) of TNN-08.
    squared_radius : float
        ``max k(x, x)`` over the machine's rows: a sphere around the origin that holds them.
    violation : float
        Certificate: the largest change of its own gradient that a step open to the algorithm would
        still make; at most the tolerance when the solver converged.
    n_kernel_evaluations : int
        Kernel values evaluated.
    stop_reason : {"converged", "exhausted", "max_stages", "max_time"}
        ``"exhausted"``: every row has used up its visits.
    method : {"fused", "lazy", "bits", "lazy-bits"}
        How kernel values were evaluated at the end.
    """

    stage_indices: NDArray[np.int32]
    stage_steps: NDArray[np.float64]
    support: NDArray[np.int32]
    multipliers: NDArray[np.float64]
    losses: NDArray[np.float64]
    squared_norm: float
    squared_radius: float
    violation: float
    n_kernel_evaluations: int
    stop_reason: StopReason
    method: str

    @property
    def n_stages(self) -> int:
        """Number of accepted updates."""
        return len(self.stage_indices)
