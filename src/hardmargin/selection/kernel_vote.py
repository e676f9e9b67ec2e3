"""Which kernels vote in an EnsembleSVC: on stored distances between rows, or at low rank.

1. Dense rows that are standardised are seen through views: as they are, and as normal scores of
   their ranks. A first vote, of few stages and few rows, shows how much each column matters; the
   views are scaled by that.
2. Where there are many more rows than in the first vote, the scaled kernels vote on the same few
   rows, and only the best of them go on.
3. The candidates vote on all rows (``vote.py``). If the distances between all rows do not fit in
   memory, or a rank is given, kernels are approximated through landmarks (``low_rank_vote.py``).

Other rows have one plain view; a linear kernel that votes alone needs no distances at all.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np

from hardmargin.kernels import (
    DISTANCE_KERNELS,
    FloatArray,
    Kernel,
    KernelFunction,
    Precision,
    Ranks,
    Rows,
    View,
    column_ends,
    is_sparse,
)
from hardmargin.monitor import Monitor
from hardmargin.resources import enough_memory, give_back_memory
from hardmargin.selection.first_look import is_linear_candidate, with_room_for_weights
from hardmargin.selection.folds import Folds, growing_splits
from hardmargin.selection.low_rank_vote import LowRankVotes, low_rank_votes
from hardmargin.selection.relevance import (
    FIRST_SPLITS,
    FIRST_STAGES,
    FIRST_WIDTHS,
    column_scales,
    relevance_of,
)
from hardmargin.selection.vote import (
    SCALED_WIDTHS,
    WIDTHS,
    Vote,
    VoteResult,
    candidate_kernels,
    counted_together,
    matrix_votes,
    view_kernels,
)
from hardmargin.solvers.problem import Problem
from hardmargin.solvers.staged_vote import StagedVoteOptions
from hardmargin.warn import warn_caller

#: ``dtype="auto"`` stores kernel values in float64 up to the first number of rows, in float32 up to
#: the second, and in 16 bits above.
MAX_FLOAT64_VOTE_ROWS = 500
MAX_FLOAT32_VOTE_ROWS = 700

#: Up to this many rows, the distances between all of them are stored for all machines at once.
MAX_SHARED_ROWS = 10_000

#: The kernel matrices of all candidates are kept if they take no more bytes than this; larger ones
#: are recomputed in every round of the race, which is faster than allocating more memory.
KEPT_MATRICES = 2**27

#: How often the rows of a machine are copied, in float64: sampled, scaled, and through views.
COPIES_OF_ROWS = 4

#: Families of kernels that must fit in memory; others are left out if they do not.
LEAST_FAMILIES = 2

#: The most families whose distances are stored: two kernels in two views.
MOST_FAMILIES = 4

#: Share of the time left that the first vote may take.
FIRST_SHARE = 0.3

#: The most kernels that go on to all rows after a vote on some, and the least share that they need.
MOST_KERNELS = 8
LEAST_CHANCE = 0.01


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
class KernelVote:
    """A vote of kernels, as an estimator's parameters define it.

    Attributes
    ----------
    kernel, gamma, degree, coef0, views, relevance, rank, landmarks, dtype, n_jobs
        Parameters of `EnsembleSVC`.
    memory_bytes : int
        Memory for distances, matrices and paths.
    max_stored_rows : int
        With ``rank="auto"``, kernels of larger machines are approximated.
    options : StagedVoteOptions
        How paths are run.
    """

    kernel: str | KernelFunction
    gamma: float | str
    degree: float
    coef0: float
    views: str
    relevance: bool
    rank: Any
    landmarks: Any
    dtype: str
    n_jobs: int | None
    memory_bytes: int
    max_stored_rows: int
    options: StagedVoteOptions

    def memory_for(
        self, n_rows: int, n_columns: int = 0, n_families: int = LEAST_FAMILIES
    ) -> VoteMemory:
        """Memory of a vote on `n_rows` rows; columns of sparse rows are not copied."""
        copies = 8 * COPIES_OF_ROWS * n_rows * n_columns
        pairs = math.ceil(1.1 * (4 * n_families + 2)) * n_rows**2
        room = self.memory_bytes - min(copies, self.memory_bytes // 2)
        is_enough = n_rows <= self.max_stored_rows and pairs <= room
        return VoteMemory(copies, pairs, room, is_enough)

    def plain_kernels(
        self, X: Rows, weights: FloatArray | None = None, *, with_linear: bool
    ) -> list[Kernel]:
        """Kernels that see the rows as they are."""
        return candidate_kernels(
            self.kernel,
            self.gamma,
            X,
            degree=self.degree,
            coef0=self.coef0,
            sample_weight=weights,
            with_linear=with_linear,
        )

    def of_one_kernel(
        self,
        kernel: Kernel,
        problem: Problem[Rows],
        dtype: Precision,
        folds: Folds,
        monitor: Monitor,
    ) -> VoteResult:
        """Let a linear kernel vote alone, through a weight per column."""
        options = with_room_for_weights(
            self.options, problem.values, problem, folds.n_splits, self.memory_bytes
        )
        votes = self._vote_on_matrices(problem, dtype, folds, options, monitor, kernels=[kernel])
        return VoteResult([kernel], votes)

    def of_all(
        self,
        problem: Problem[Rows],
        dtype: Precision,
        folds: Folds,
        random: np.random.RandomState,
        monitor: Monitor,
        *,
        has_views: bool,
        is_quick: bool,
    ) -> VoteResult:
        """Let all candidates vote.

        Parameters
        ----------
        problem : Problem
            Rows, machines and weights; rows of weight zero have the code -1.
        dtype : {"float32", "float64"}
            Precision that the rows allow.
        folds : Folds
            Which rows are held out.
        random : RandomState
            Draws rows and landmarks.
        monitor : Monitor
            The clock.
        has_views : bool
            Whether kernels may see the rows through views.
        is_quick : bool
            Whether the first vote is to be shorter.
        """
        X, options = problem.values, self.options
        largest = problem.n_rows_of_largest
        n_columns = 0 if is_sparse(X) else int(X.shape[1])
        memory = self.memory_for(largest, n_columns)
        if self.rank is None and memory.pairs > self.memory_bytes:
            raise ValueError(
                f"Distances between {largest:,} rows need {memory.pairs:,} bytes; raise "
                f"memory_limit (it leaves {self.memory_bytes:,}), or approximate the kernel with "
                "rank='auto'."
            )
        is_stored = self.rank is None or (self.rank == "auto" and memory.is_enough)
        if is_stored:  # every thread has a matrix of its own
            most = max((self.memory_bytes - memory.pairs) // (2 * largest**2) + 1, 1)
            options = replace(options, n_threads=min(options.n_threads, most))
        relevance = None
        if is_stored and has_views and len(folds.train) and not is_sparse(X):
            kernels, relevance = self._candidates(
                problem, dtype, folds, options, random, monitor, is_quick=is_quick
            )
        else:
            present = problem.codes >= 0
            kernels = self.plain_kernels(
                X if present.all() else X[present],
                None if problem.weights is None else problem.weights[present],
                with_linear=is_stored and is_linear_candidate(X),
            )
        if is_stored:
            votes = self._vote_on_matrices(problem, dtype, folds, options, monitor, kernels=kernels)
            return VoteResult(kernels, counted_together(votes, problem), relevance)
        found = self._at_low_rank(kernels, problem, folds, random, monitor, memory.room)
        if self.rank == "auto" and largest <= self.max_stored_rows:
            self._warn_of_approximation(found.rank, largest, n_columns)
        elif found.is_limited:
            _warn_of_rank(found, self.memory_bytes, memory.copies)
        return VoteResult(found.kernels, found.votes, rank=found.rank)

    def _candidates(
        self,
        problem: Problem[Rows],
        dtype: Precision,
        folds: Folds,
        options: StagedVoteOptions,
        random: np.random.RandomState,
        monitor: Monitor,
        *,
        is_quick: bool,
    ) -> tuple[list[Kernel], FloatArray | None]:
        """Kernels that see the rows through views, and the relevance that scales the columns."""
        X, codes = problem.values, problem.codes
        weights = (codes >= 0).astype(np.float64) if problem.weights is None else problem.weights
        views = [View("standardized")]
        ranks = None if self.views == "standardized" else Ranks.of(X, weights)
        if ranks is not None and len(ranks.columns):  # columns of two values have no ranks
            rank = View("rank", ranks)
            views = [rank] if self.views == "rank" else [*views, rank]
        names = DISTANCE_KERNELS if self.kernel == "cv" else (str(self.kernel),)
        pairs, widths, relevance = list(product(views, names)), WIDTHS, None
        # Votes of few splits, stages and rows show how much each column matters and, where there
        # are many more rows, which kernels have a chance.
        few, is_sampled = next(growing_splits(folds, codes, random, is_quick=is_quick)), False
        if few is not folds:
            some = np.where((few.train | few.test).any(axis=0), codes, np.int32(-1))
            is_sampled = len(np.unique(some)) == codes.max() + 2  # it has rows of all classes
            codes = some if is_sampled else codes
        first_vote = partial(
            self._vote_on_matrices,
            replace(problem, codes=codes),
            dtype,
            Folds(few.train[:FIRST_SPLITS], few.test[:FIRST_SPLITS]),
            replace(options, max_stages=min(options.max_stages, FIRST_STAGES)),
            monitor.part(share=FIRST_SHARE),
        )
        if self.relevance and X.shape[1] > 1:  # 1.
            one_each = list(zip(views, names, strict=True)) if len(views) == len(names) else pairs
            first = view_kernels(one_each, X, weights, FIRST_WIDTHS)
            votes = first_vote(kernels=first)
            found = {view: relevance_of(view, first, votes, X, weights, random) for view in views}
            known = {view: own for view, own in found.items() if own is not None}
            if known:
                is_many_valued = column_ends(X).has_others
                scaled = {
                    view: replace(view, scales=column_scales(own, is_many_valued))
                    for view, own in known.items()
                }
                pairs = [(scaled.get(view, view), name) for view, name in pairs]
                widths, mean = SCALED_WIDTHS, np.mean(list(known.values()), axis=0)
                relevance = mean / mean.max()
        kernels = view_kernels(pairs, X, weights, widths)
        if self.kernel == "cv" and is_linear_candidate(X):
            kernels += [Kernel("linear", view=view) for view in dict.fromkeys(v for v, _ in pairs)]
        best = kernels
        if is_sampled:  # 2.
            shares = np.mean([vote.shares for vote in first_vote(kernels=kernels)], axis=0)
            order = np.argsort(-shares, kind="stable")[:MOST_KERNELS]
            best = [kernels[k] for k in order if shares[k] >= LEAST_CHANCE]
        best = self._that_fit(best, problem.n_rows_of_largest, X.shape[1])
        return [kernel for kernel in kernels if kernel in best], relevance

    def _vote_on_matrices(
        self,
        problem: Problem[Rows],
        dtype: Precision,
        folds: Folds,
        options: StagedVoteOptions,
        monitor: Monitor,
        *,
        kernels: list[Kernel],
    ) -> list[Vote]:
        """Vote on stored kernel matrices: of all rows, or of one machine after another."""
        X, machines = problem.values, problem.machines
        n_rows, n_columns = int((problem.codes >= 0).sum()), 0 if is_sparse(X) else int(X.shape[1])
        n_families = len({(kernel.name, kernel.view) for kernel in kernels})
        needed = self.memory_for(n_rows, n_columns, n_families).pairs
        # Linear kernels of sparse rows need no matrix.
        needs_none = is_sparse(X) and all(kernel.name == "linear" for kernel in kernels)
        is_shared = n_rows <= MAX_SHARED_ROWS and needed <= self.memory_bytes
        groups = [machines] if needs_none or is_shared else [[m] for m in machines]
        votes: list[Vote] = []
        for done, group in enumerate(groups):
            codes = problem.codes
            if len(group) < len(machines):
                codes = np.where(np.isin(codes, np.concatenate(group[0])), codes, np.int32(-1))
            n = int((codes >= 0).sum())
            is_double = dtype == "float64" and (
                self.dtype == "float64" or n <= MAX_FLOAT64_VOTE_ROWS
            )
            compact = not is_double and self.dtype == "auto" and n > MAX_FLOAT32_VOTE_ROWS
            memory = self.memory_for(n, n_columns, n_families)
            spare = memory.room - memory.pairs
            kept = max(min(options.memory_bytes, spare), 0)
            if spare < options.memory_bytes:
                give_back_memory()  # of copies of the rows, and of votes before this one
            part = monitor.part(share=1 / (len(groups) - done))
            vote = partial(
                matrix_votes,
                kernels,
                replace(problem, codes=codes, machines=group),
                folds,
                replace(options, compact=compact, memory_bytes=kept),
                part,
                dtype="float64" if is_double else "float32",
            )
            votes += part.once("votes", vote)
        return votes

    def _at_low_rank(
        self,
        kernels: list[Kernel],
        problem: Problem[Rows],
        folds: Folds,
        random: np.random.RandomState,
        monitor: Monitor,
        room: int,
    ) -> LowRankVotes:
        """Vote with kernels that are approximated through landmarks, in `room` bytes."""

        def vote() -> tuple[LowRankVotes, Any]:
            votes = low_rank_votes(
                kernels,
                problem,
                folds,
                self.options,
                monitor,
                rank=int(self.rank) if isinstance(self.rank, Integral) else self.rank,
                landmarks=self.landmarks,
                dtype="float64" if self.dtype == "float64" else "float32",
                memory_bytes=room,
                n_jobs=self.n_jobs,
                random_state=random,
            )
            return votes, random.get_state()

        found, state = monitor.once("low-rank votes", vote)
        random.set_state(state)
        return found

    def _that_fit(self, kernels: list[Kernel], n_rows: int, n_columns: int) -> list[Kernel]:
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

    def _warn_of_approximation(self, rank: int, n_rows: int, n_columns: int) -> None:
        """Warn that distances between that many rows do not fit in memory."""
        needed = self.memory_for(n_rows, n_columns).pairs
        most = self.memory_for(n_rows, n_columns, MOST_FAMILIES)
        warn_caller(
            f"The kernel is approximated at rank {rank}, which may cost accuracy: the distances "
            f"between {n_rows:,} rows need {needed / 1e6:,.0f} MB, and memory_limit leaves "
            f"{self.memory_bytes / 1e6:,.0f} MB. Raise memory_limit; "
            f"{enough_memory(most.pairs + most.copies)}. GreedySVC needs no approximation, and may "
            "be better.",
            UserWarning,
        )


def _warn_of_rank(found: LowRankVotes, limit: int, copies: int) -> None:
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
