"""What voted, and how every stage was judged, as tables: structured arrays that pandas reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hardmargin.kernels import Kernel
from hardmargin.selection.vote import Vote

_KERNEL = [("machine", np.int32), ("kernel", "U11"), ("gamma", np.float64)]

#: Fields of the two tables.
SHARES = np.dtype([*_KERNEL, ("share", np.float64)])
LOSSES = np.dtype([*_KERNEL, ("stage", np.int64), ("log_loss", np.float64)])


def share_table(
    kernels: Sequence[Kernel], used: Sequence[int], votes: Sequence[Vote]
) -> NDArray[Any]:
    """One record for every kernel with a share of a machine's vote.

    Parameters
    ----------
    kernels : sequence of Kernel
        All candidates.
    used : sequence of int
        Those with any share, in the order of the table.
    votes : sequence of Vote
        One per machine.
    """
    return np.array(
        [
            (m, *_name(kernels[k]), vote.shares[k])
            for k in used
            for m, vote in enumerate(votes)
            if vote.shares[k] > 0
        ],
        dtype=SHARES,
    )


def loss_table(kernels: Sequence[Kernel], votes: Sequence[Vote]) -> NDArray[Any]:
    """One record for every stage that held-out rows judged, of every kernel and machine.

    Parameters
    ----------
    kernels, votes
        As for `share_table`.
    """
    return np.array(
        [
            (m, *_name(kernel), stage, loss)
            for m, vote in enumerate(votes)
            if len(vote.held_rows)
            for kernel, path in zip(kernels, vote.paths, strict=True)
            for stage, loss in zip(path.stages, path.losses, strict=True)
        ],
        dtype=LOSSES,
    )


def _name(kernel: Kernel) -> tuple[str, float]:
    """Name and gamma of a kernel; six digits tell all candidates apart."""
    return kernel.name, float(f"{kernel.gamma:.6g}")
