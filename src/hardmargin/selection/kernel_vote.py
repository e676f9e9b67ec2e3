"""Which kernels vote in an EnsembleSVC: on stored distances between rows, or at low rank.

1. Dense rows that are standardised are seen through views: as they are, and as normal scores of
   their ranks. A first vote, of few stages and few rows, shows how much each column matters; the
   views are scaled by that.
2. Where there are many more rows than in the first vote, the scaled kernels vote on the same few
   rows, and only the best of them go on.
3. Where there are so many columns that relevance would tell too much of the rows held out, every
   split finds a relevance of its own (``split_views.py``). A short race, which has seen too much,
   only picks a few kernels. They are judged anew, with matrices of their own for every split,
   beside the plain kernels of the first vote.
4. The candidates vote on all rows (``vote.py``). If the distances between all rows do not fit in
   memory, or a rank is given, kernels are approximated through landmarks (``low_rank_vote.py``).

Other rows have one plain view; a linear kernel that votes alone needs no distances at all.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
from hardmargin.resources import give_back_memory
from hardmargin.selection.first_look import is_linear_candidate, with_room_for_weights
from hardmargin.selection.folds import Folds, growing_splits, shuffled_places
from hardmargin.selection.low_rank_vote import LowRankVotes, low_rank_votes
from hardmargin.selection.relevance import (
    FIRST_SPLITS,
    FIRST_STAGES,
    FIRST_WIDTHS,
    column_scales,
    relevance_of,
)
from hardmargin.selection.sigmoids import as_rows
from hardmargin.selection.split_views import N_SHUFFLES, find_split_views
from hardmargin.selection.vote import (
    SCALED_WIDTHS,
    WIDTHS,
    Vote,
    VoteResult,
    candidate_kernels,
    counted_together,
    leak_of,
    matrix_votes,
    view_kernels,
)
from hardmargin.selection.vote_memory import Room, warn_of_rank
from hardmargin.solvers.problem import Problem
from hardmargin.solvers.staged_vote import SHARPNESS, StagedVoteOptions

#: Up to this many rows, the distances between all of them are stored for all machines at once.
MAX_SHARED_ROWS = 10_000

#: The kernel matrices of all candidates are kept if they take no more bytes than this; larger ones
#: are recomputed in every round of the race, which is faster than allocating more memory.
KEPT_MATRICES = 2**27

#: Matrices of splits that have kernels of their own are kept in at most this many times the memory:
#: their distances would be computed anew in every round.
MORE_MATRICES = 4

#: Splits find relevance of their own where the held-out log-loss, in units of that of a coin or die
#: with as many sides as there are classes, would be too low by more than this.
MOST_LEAK = 0.0043

#: Stages of the race that picks kernels for splits with relevance of their own, the most rows of a
#: machine that count in it, and how many go on: the second number, with more rows than the third.
SCREEN_STAGES = 16
SCREEN_ROWS = 60
SCREENED, SCREENED_OF_MANY, MANY_ROWS = 4, 3, 700

#: Share of the time left that the first vote may take.
FIRST_SHARE = 0.3

#: The most kernels that go on to all rows after a vote on some, and the least share that they need.
MOST_KERNELS = 8
LEAST_CHANCE = 0.01


@dataclass(frozen=True)
class Field:
    """The kernels that take part in a vote.

    Attributes
    ----------
    kernels : list of Kernel
        The candidates.
    relevance : (d,) array or None
        What scales the columns of their views.
    has_seen_all : bool
        Whether it was found with the labels of the rows held out, too.
    of_splits : mapping of Kernel to sequences of Kernel
        What the splits use in their place, where they have found relevance of their own.
    prior : (n_kernels,) array or None
        Their weights before the losses count; None weighs all alike.
    n_splits : int or None
        How many of the splits judge, where there is no memory for all; None is all.
    """

    kernels: list[Kernel]
    relevance: FloatArray | None = None
    has_seen_all: bool = False
    of_splits: Mapping[Kernel, Sequence[Kernel]] = dataclasses.field(default_factory=dict)
    prior: FloatArray | None = None
    n_splits: int | None = None


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

    @property
    def room(self) -> Room:
        """The memory, and what it is spent on."""
        return Room(self.memory_bytes, self.max_stored_rows, self.dtype)

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
        votes = self._vote_on_matrices(problem, dtype, folds, options, monitor, Field([kernel]))
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
        memory = self.room.memory_for(largest, n_columns)
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
        if is_stored and has_views and len(folds.train) and not is_sparse(X):
            field = self._candidates(
                problem, dtype, folds, options, random, monitor, is_quick=is_quick
            )
        else:
            present = problem.codes >= 0
            plain = self.plain_kernels(
                X if present.all() else X[present],
                None if problem.weights is None else problem.weights[present],
                with_linear=is_stored and is_linear_candidate(X),
            )
            field = Field(plain)
        if is_stored:
            votes = self._vote_on_matrices(problem, dtype, folds, options, monitor, field)
            together = counted_together(votes, problem)
            return VoteResult(
                field.kernels, together, field.relevance, has_seen_all=field.has_seen_all
            )
        found = self._at_low_rank(field.kernels, problem, folds, random, monitor, memory.room)
        if self.rank == "auto" and largest <= self.max_stored_rows:
            of_splits = self.room.memory_of_splits(largest, n_columns, folds.n_splits, dtype)
            self.room.warn_of_approximation(found.rank, largest, n_columns, of_splits)
        elif found.is_limited:
            warn_of_rank(found, self.memory_bytes, memory.copies)
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
    ) -> Field:
        """Kernels that see the rows through views, scaled by the relevance of the columns."""
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
        part = replace(problem, codes=codes)
        first_options = replace(options, max_stages=min(options.max_stages, FIRST_STAGES))
        first_part = monitor.part(share=FIRST_SHARE)
        one_each = list(zip(views, names, strict=True)) if len(views) == len(names) else pairs
        first = view_kernels(one_each, X, weights, FIRST_WIDTHS)
        first_vote = partial(
            self._vote_on_matrices,
            part,
            dtype,
            Folds(few.train[:FIRST_SPLITS], few.test[:FIRST_SPLITS]),
            first_options,
            first_part,
        )
        finds_relevance = self.relevance and X.shape[1] > 1
        if finds_relevance and self._may_leak(X, weights, problem.n_classes):
            field = self._judged_by_split(
                first,
                pairs,
                part,
                weights,
                few,
                problem.n_rows_of_largest,
                dtype,
                first_options,
                random,
                first_part,
            )
            if field is not None:  # 3.
                return field
        elif finds_relevance:  # 1.
            votes = first_vote(Field(first))
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
            shares = np.mean([vote.shares for vote in first_vote(Field(kernels))], axis=0)
            order = np.argsort(-shares, kind="stable")[:MOST_KERNELS]
            best = [kernels[k] for k in order if shares[k] >= LEAST_CHANCE]
        best = self.room.families_that_fit(best, problem.n_rows_of_largest, X.shape[1])
        kept = [kernel for kernel in kernels if kernel in best]
        return Field(kept, relevance, has_seen_all=relevance is not None)

    def _may_leak(self, X: NDArray[Any], weights: FloatArray, n_classes: int) -> bool:
        """Whether relevance that has seen the rows held out would tell too much of them."""
        low, high, _ = column_ends(X, weights)
        n_rows = as_rows(weights[weights > 0]).sum()
        leak = leak_of(int((low < high).sum()), float(n_rows))
        return leak > MOST_LEAK * math.log(n_classes)

    def _judged_by_split(
        self,
        first: list[Kernel],
        pairs: list[tuple[View, str]],
        problem: Problem[Rows],
        weights: FloatArray,
        folds: Folds,
        n_largest: int,
        dtype: Precision,
        options: StagedVoteOptions,
        random: np.random.RandomState,
        monitor: Monitor,
    ) -> Field | None:
        """Kernels whose splits have found relevance of their own; None if there is none to find.

        Parameters
        ----------
        first : list of Kernel
            The plain kernels of the first vote.
        pairs : list of (View, str)
            Views without scales, and the names of their kernels.
        problem, folds
            Some of the rows, or all, and their splits.
        weights : (n,) array
            Weights of all rows.
        n_largest : int
            Rows of the largest machine.
        dtype, options, random, monitor
            As for `of_all`; options of the first vote.
        """
        X, n_splits = problem.values, folds.n_splits
        n_rows = float(as_rows(weights[weights > 0]).sum())
        shuffles = shuffled_places(X, problem.codes, N_SHUFFLES, random)
        vote = partial(self._vote_on_matrices, problem, dtype, folds)
        votes = vote(replace(options, all_columns=True), monitor, Field(first), shuffles)
        views = list(dict.fromkeys(view for view, _ in pairs))
        seen = find_split_views(views, first, votes, n_splits, X, weights, n_rows, random)
        if seen is None:
            return None
        n_judging = self.room.splits_that_fit(n_largest, X.shape[1], n_splits, dtype)
        if n_judging == 0:
            plain = view_kernels(pairs, X, weights, WIDTHS)
            return Field(self.room.families_that_fit(plain, n_largest, X.shape[1]), seen.relevance)
        scaled = [(seen.scaled[view], name) for view, name in pairs if view in seen.scaled]
        kernels = view_kernels(scaled, X, weights, SCALED_WIDTHS)
        kernels = self.room.families_that_fit(kernels, problem.n_rows_of_largest, X.shape[1])
        race = replace(options, max_stages=min(options.max_stages, SCREEN_STAGES), race=False)
        kept = _screened(kernels, vote(race, monitor, Field(kernels)), n_rows)
        is_there = weights > 0
        rows = X if is_there.all() else X[is_there]
        of_splits = {
            kernel: seen.kernels_of_splits(kernel, rows, weights[is_there])[:n_judging]
            for kernel in kept
        }
        plain = list(first)
        if self.kernel == "cv" and is_linear_candidate(X):
            plain += [Kernel("linear", view=view) for view in views]
        prior = np.repeat([len(kept) / len(plain), 1.0], [len(plain), len(kept)])
        return Field(
            [*plain, *kept],
            seen.relevance,
            of_splits=of_splits,
            prior=prior,
            n_splits=n_judging,
        )

    def _vote_on_matrices(
        self,
        problem: Problem[Rows],
        dtype: Precision,
        folds: Folds,
        options: StagedVoteOptions,
        monitor: Monitor,
        field: Field,
        shuffles: NDArray[np.int32] | None = None,
    ) -> list[Vote]:
        """Vote on stored kernel matrices: of all rows, or of one machine after another."""
        kernels = field.kernels
        if field.n_splits is not None:
            folds = Folds(folds.train[: field.n_splits], folds.test[: field.n_splits])
        X, machines = problem.values, problem.machines
        n_rows, n_columns = int((problem.codes >= 0).sum()), 0 if is_sparse(X) else int(X.shape[1])
        is_stored = [kernel for kernel in kernels if kernel not in field.of_splits]
        n_families = len({(kernel.name, kernel.view) for kernel in is_stored})
        needed = self.room.memory_for(n_rows, n_columns, n_families).pairs
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
            value_bytes = self.room.value_bytes(n, dtype, have_own=bool(field.of_splits))
            memory = self.room.memory_for(n, n_columns, n_families)
            spare, most_kept, n_threads = memory.room - memory.pairs, options.memory_bytes, None
            if field.of_splits:
                of_thread = self.room.bytes_of_splits(n, folds.n_splits, dtype)
                n_threads = max(min(options.n_threads, spare // of_thread), 1)
                most_kept *= MORE_MATRICES
            kept = max(min(most_kept, spare), 0)
            if spare < most_kept:
                give_back_memory()  # of copies of the rows, and of votes before this one
            part = monitor.part(share=1 / (len(groups) - done))
            vote = partial(
                matrix_votes,
                kernels,
                replace(problem, codes=codes, machines=group),
                folds,
                replace(
                    options,
                    compact=value_bytes == 2,
                    memory_bytes=kept,
                    n_threads=n_threads or options.n_threads,
                ),
                part,
                dtype="float64" if value_bytes == 8 else "float32",
                of_splits=field.of_splits,
                prior=field.prior,
                shuffles=shuffles,
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


def _screened(kernels: list[Kernel], votes: list[Vote], n_rows: float) -> list[Kernel]:
    """Pick the kernels that are judged anew, by losses that have seen the rows held out."""
    total = np.zeros(len(kernels))
    for vote in votes:
        losses = np.array([path.certificate for path in vote.paths])
        evidence = SHARPNESS * min(vote.n_rows, SCREEN_ROWS)
        total += np.exp(-evidence * (losses - losses.min()))
    most = SCREENED_OF_MANY if n_rows > MANY_ROWS else SCREENED
    best = np.sort(np.argsort(-total, kind="stable")[:most])
    return [kernels[k] for k in best]
