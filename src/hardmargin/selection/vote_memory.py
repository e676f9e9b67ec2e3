"""What a vote takes of memory, and what it leaves out where there is too little."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from hardmargin.kernels import Kernel, Precision
from hardmargin.resources import enough_memory
from hardmargin.selection.folds import DEFAULT_FOLDS
from hardmargin.selection.low_rank_vote import LowRankVotes
from hardmargin.warn import warn_caller

#: ``dtype="auto"`` stores kernel values in float64 up to the first number of rows, in float32 up to
#: the second, and in 16 bits above.
MAX_FLOAT64_VOTE_ROWS = 500
MAX_FLOAT32_VOTE_ROWS = 700

#: The same for float64 where every split has kernel matrices of its own.
MAX_FLOAT64_ROWS_OF_SPLITS = 350

#: The most distances of a split that are in memory at once, unless a few rows have more; as in the
#: compiled core.
DISTANCES_AT_ONCE = 2**22

#: How often the rows of a machine are copied, in float64: sampled, scaled, and through views.
COPIES_OF_ROWS = 4

#: Families of kernels that must fit in memory; others are left out if they do not.
LEAST_FAMILIES = 2

#: The most families whose distances are stored: two kernels in two views.
MOST_FAMILIES = 4


class VoteMemory(NamedTuple):
    """Memory of a vote on stored distances, in bytes.

    Attributes
    ----------
    copies : int
        What copies of dense rows take.
    pairs : int
        What pairs of rows take: distances of families of kernels, and a thread's matrix, plus a
        tenth for copies of the rows and for paths.
    room : int
        What copies leave for pairs.
    is_enough : bool
        Whether the distances between all rows may be stored.
    """

    copies: int
    pairs: int
    room: int
    is_enough: bool


@dataclass(frozen=True)
class Room:
    """The memory of a vote.

    Attributes
    ----------
    memory_bytes : int
        Memory for distances, matrices and paths.
    max_stored_rows : int
        Distances between more rows are not stored.
    dtype : str
        The parameter of `EnsembleSVC`.
    """

    memory_bytes: int
    max_stored_rows: int
    dtype: str

    def memory_for(
        self, n_rows: int, n_columns: int = 0, n_families: int = LEAST_FAMILIES
    ) -> VoteMemory:
        """Memory of a vote on `n_rows` rows; columns of sparse rows are not copied."""
        copies = 8 * COPIES_OF_ROWS * n_rows * n_columns
        pairs = math.ceil(1.1 * (4 * n_families + 2)) * n_rows**2
        room = self.memory_bytes - min(copies, self.memory_bytes // 2)
        is_enough = n_rows <= self.max_stored_rows and pairs <= room
        return VoteMemory(copies, pairs, room, is_enough)

    def value_bytes(self, n_rows: int, dtype: Precision, *, have_own: bool) -> int:
        """Bytes of a kernel value: of many rows fewer, and where splits have their own matrices."""
        most_rows = MAX_FLOAT64_ROWS_OF_SPLITS if have_own else MAX_FLOAT64_VOTE_ROWS
        if dtype == "float64" and (self.dtype == "float64" or n_rows <= most_rows):
            return 8
        return 2 if self.dtype == "auto" and n_rows > MAX_FLOAT32_VOTE_ROWS else 4

    def bytes_of_splits(self, n_rows: int, n_splits: int, dtype: Precision) -> int:
        """Memory of a thread that has a kernel matrix for every split."""
        matrices = (n_splits + 1) * self.value_bytes(n_rows, dtype, have_own=True) * n_rows**2
        return matrices + 8 * min(n_rows**2, DISTANCES_AT_ONCE)

    def memory_of_splits(self, n_rows: int, n_columns: int, n_splits: int, dtype: Precision) -> int:
        """Memory of a vote whose splits have kernel matrices of their own, in bytes."""
        memory = self.memory_for(n_rows, n_columns)
        return memory.copies + memory.pairs + self.bytes_of_splits(n_rows, n_splits, dtype)

    def splits_that_fit(self, n_rows: int, n_columns: int, n_splits: int, dtype: Precision) -> int:
        """How many splits may have kernel matrices of their own; say so if these are few.

        One split alone says too little, so that there are two or none.
        """
        memory = self.memory_for(n_rows, n_columns)
        fit = [
            n
            for n in range(min(2, n_splits), n_splits + 1)
            if self.bytes_of_splits(n_rows, n, dtype) <= memory.room - memory.pairs
        ]
        most = max(fit, default=0)
        if most < min(n_splits, DEFAULT_FOLDS):
            needed = self.memory_of_splits(n_rows, n_columns, n_splits, dtype)
            instead = "columns are not scaled by their relevance, as nothing could judge that"
            if most:
                instead = f"only {most} of {n_splits} splits judge kernels and stages"
            warn_caller(
                f"memory_limit leaves no room for a kernel matrix of {n_rows:,} rows for every "
                f"split, so {instead}, which may cost accuracy. Raise memory_limit; "
                f"{enough_memory(needed)}.",
                UserWarning,
            )
        return most

    def families_that_fit(self, kernels: list[Kernel], n_rows: int, n_columns: int) -> list[Kernel]:
        """Leave out the last families of kernels if memory is too small for them, and say so."""
        families = list(dict.fromkeys((kernel.name, kernel.view) for kernel in kernels))
        copies, needed, room, _ = self.memory_for(n_rows, n_columns, len(families))
        n_kept = len(families)
        while n_kept > LEAST_FAMILIES and self.memory_for(n_rows, n_columns, n_kept).pairs > room:
            n_kept -= 1
        if n_kept < len(families):
            warn_caller(
                f"memory_limit leaves {room / 1e6:,.0f} MB for the distances between {n_rows:,} "
                f"rows, which need {needed / 1e6:,.0f} MB: {n_kept} of {len(families)} families of "
                "kernels were tried, which may cost accuracy. Raise memory_limit; "
                f"{enough_memory(needed + copies)}.",
                UserWarning,
            )
        return [kernel for kernel in kernels if (kernel.name, kernel.view) in families[:n_kept]]

    def warn_of_approximation(self, rank: int, n_rows: int, n_columns: int, of_splits: int) -> None:
        """Warn that distances between that many rows do not fit in memory."""
        needed = self.memory_for(n_rows, n_columns).pairs
        most = self.memory_for(n_rows, n_columns, MOST_FAMILIES)
        enough = enough_memory(max(most.pairs + most.copies, of_splits))
        warn_caller(
            f"The kernel is approximated at rank {rank}, which may cost accuracy: the distances "
            f"between {n_rows:,} rows need {needed / 1e6:,.0f} MB, and memory_limit leaves "
            f"{self.memory_bytes / 1e6:,.0f} MB. Raise memory_limit; "
            f"{enough}. GreedySVC needs no approximation, and may be better.",
            UserWarning,
        )


def warn_of_rank(found: LowRankVotes, limit: int, copies: int) -> None:
    """Warn that a higher rank would be better.

    Parameters
    ----------
    found : LowRankVotes
        The votes.
    limit : int
        The memory limit, in bytes.
    copies : int
        Bytes that copies of the rows take.
    """
    enough = enough_memory(found.full_bytes + copies)
    reason, advice = "memory_limit allows no more", f"Raise memory_limit ({enough})"
    if len(found.losses) > 1:
        reason = (
            f"the held-out log-loss still fell from {found.losses[-2]:.4f} to "
            f"{found.losses[-1]:.4f} when the rank was last doubled"
        )
        if found.full_bytes <= limit:
            advice = "Set a higher rank, which takes more time and memory"
    warn_caller(
        f"The rank of {found.rank} limits the accuracy: {reason}. {advice}, or leave rank and "
        "max_cell_rows at their defaults, which need no approximation.",
        UserWarning,
    )
