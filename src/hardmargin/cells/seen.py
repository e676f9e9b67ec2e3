"""Rows as trees of cells see them: scaled, in float32, each column in its unit."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hardmargin.cells.machines import CellRows
from hardmargin.kernels import FloatArray, Rows, as_blocks, column_ends, is_sparse
from hardmargin.kernels.kernel import MAX_FLOAT32_FEATURE
from hardmargin.scaling import MixedScaling, Scaling
from hardmargin.selection.rows import TrainingRows


def seen_by_cells(
    rows: TrainingRows, scaling: Scaling | MixedScaling | None, most_bytes: float
) -> tuple[CellRows, FloatArray, NDArray[np.bool_]]:
    """Return the rows as cells see them, the units of the columns, and which have two values.

    Columns times their units have their original scale.
    """
    X, codes, _, weights, *_ = rows
    scale: Callable[[Rows], Rows] = as_cells_see
    if scaling is not None:
        scale = partial(scaled_for_cells, scaling=scaling)
    scaled = as_blocks(X, most_bytes).map(scale)
    seen = CellRows(scaled, codes, np.ones(len(codes)) if weights is None else weights)
    if is_sparse(X):
        return seen, np.ones(X.shape[1]), np.ones(X.shape[1], dtype=bool)
    low, high, _ = column_ends(as_blocks(X, most_bytes), weights)
    ends = np.array([low, high], dtype=X.dtype)
    low, high, has_others = column_ends(as_blocks(scaled, most_bytes), weights)
    return seen, units_of(ends, scale(ends)), ~has_others & (low < high)


def as_cells_see(X: Rows) -> Rows:
    """Rows in the precision of cells, where distances overflow for larger numbers."""
    with np.errstate(over="ignore"):
        seen = np.array(X.data if is_sparse(X) else X, dtype=np.float32, order="C")
    np.clip(seen, -MAX_FLOAT32_FEATURE, MAX_FLOAT32_FEATURE, out=seen)
    return type(X)((seen, X.indices, X.indptr), shape=X.shape) if is_sparse(X) else seen


def scaled_for_cells(X: Rows, scaling: Scaling | MixedScaling) -> Rows:
    """Rows scaled, in the precision of cells."""
    return as_cells_see(scaling.transform(X))


def units_of(ends: NDArray[Any], scaled_ends: NDArray[Any]) -> FloatArray:
    """Find the factors that give scaled columns their original units.

    Parameters
    ----------
    ends, scaled_ends : (2, d) arrays
        Least and largest values of the columns, as they came and scaled.
    """
    apart, scaled_apart = np.ptp(ends, axis=0).astype(np.float64), np.ptp(scaled_ends, axis=0)
    units = np.divide(apart, scaled_apart, out=np.zeros_like(apart), where=scaled_apart > 0)
    return np.asarray(units / (units.max(initial=0.0) or 1.0))
