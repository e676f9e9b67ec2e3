"""Scores of rows that took no part in training."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class HeldOut:
    """Held-out scores, machine after machine.

    Attributes
    ----------
    rows : (n_scores,) int array
        Which rows; one that was held out several times is there as often.
    scores : (n_scores,) array
        Their scores, without any threshold.
    positive : (n_scores,) bool array
        Whether they are of the machine's positive side.
    machines : (n_scores,) int array
        Their machine, in ascending order. Machines without held-out rows of both sides are missing.
    """

    rows: NDArray[np.intp]
    scores: NDArray[np.float64]
    positive: NDArray[np.bool_]
    machines: NDArray[np.intp]
