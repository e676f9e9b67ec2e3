"""Votes on many rows: the kernel chosen on a sample, its matrix replaced by one of low rank.

A kernel that suits a sample is too wide for all rows, so one of four times its gamma is tried
beside it. The rank grows while that lowers the held-out loss.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain, zip_longest
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hardmargin.kernels import FloatArray, Kernel, Precision, Rows
from hardmargin.kernels.low_rank import Landmarks, LowRankMatrix, low_rank_matrix
from hardmargin.selection.folds import Folds
from hardmargin.selection.vote import Vote, count_votes, diagonal_scale, exact_votes
from hardmargin.solvers.greedy import GreedyOptions, solve_greedy
from hardmargin.solvers.problem import Machine
from hardmargin.solvers.staged_vote import KernelSource, PathOptions, Report, solve_paths

#: Rows that the kernel is chosen on.
SAMPLE_ROWS = 2_000

#: What the sample's gamma is multiplied by for all rows.
GAMMA_FACTORS = (1.0, 4.0)

#: Ranks that ``"auto"`` tries in turn ..
RANKS = (250, 500, 1_000)

#: .. as long as each lowers the held-out loss by this share of it.
LEAST_IMPROVEMENT = 0.01


@dataclass(frozen=True)
class LowRankVotes:
    """What was chosen for many rows.

    Attributes
    ----------
    kernels : list of Kernel
        The one that was chosen.
    votes : list of Vote
        One a machine; its rows are the landmarks.
    rank : int
        Rank of the approximation.
    losses : list of float
        Held-out loss at every rank tried.
    is_limited : bool
        Whether the loss still fell when the rank could not grow any more, or the memory was too
        short for any rank worth having.
    """

    kernels: list[Kernel]
    votes: list[Vote]
    rank: int
    losses: list[float]
    is_limited: bool


def low_rank_votes(
    kernels: Sequence[Kernel],
    X: Rows,
    codes: NDArray[np.int32],
    machines: Sequence[Machine],
    *,
    weights: FloatArray,
    folds: Folds,
    rank: int | float | str,
    landmarks: Landmarks | Literal["greedy"],
    dtype: Precision,
    options: PathOptions,
    memory_bytes: int,
    n_jobs: int | None,
    random_state: np.random.RandomState,
    report: Report | None = None,
) -> LowRankVotes:
    """Choose a kernel and a rank, and count the votes of every machine.

    Parameters
    ----------
    kernels, X, codes, machines, weights, folds, options
        As for `exact_votes`.
    rank : int, float or "auto"
        A number of landmarks, a share of the trace that may be left over, or what lowers the
        held-out loss.
    landmarks : {"random", "kmeans++", "cholesky", "greedy"}
        How landmarks are found.
    dtype : {"float32", "float64"}
        Precision of the factor.
    memory_bytes : int
        For the factors.
    n_jobs : int or None
        Threads that evaluate kernel values.
    random_state : RandomState
        Draws the sample and the landmarks.
    report : callable, optional
        Called now and then with (machines done, stage, held-out loss).
    """
    if landmarks == "greedy" and isinstance(rank, float):
        raise ValueError("landmarks='greedy' needs a number of them: an int as rank, or 'auto'.")
    rows = np.flatnonzero(codes >= 0)
    deadline = time.monotonic() + (options.max_seconds or np.inf)
    task = _Task(
        X,
        codes,
        machines,
        weights,
        folds,
        landmarks,
        dtype,
        options,
        rows,
        n_jobs,
        deadline,
        report,
    )
    candidates = list(kernels)
    if len(kernels) > 1:
        best = _best_on_sample(task, kernels, random_state)
        candidates = [replace(best, gamma=factor * best.gamma) for factor in GAMMA_FACTORS]
    order = random_state.permutation(len(rows))
    room = memory_bytes // (4 * len(candidates) * len(rows) * np.dtype(dtype).itemsize)
    if rank == "auto":
        ranks: list[Any] = [r for r in RANKS if r <= min(room, len(rows))] or [
            min(max(1, room), len(rows))
        ]
        # A landmark there must be, whatever the memory.
        memory_bytes = max(memory_bytes, 4 * len(rows) * np.dtype(dtype).itemsize)
    else:
        ranks = [rank]
    losses: list[float] = []
    for n in ranks:
        found = task.run(candidates, n, order, memory_bytes, random_state)
        losses.append(found.loss)
        candidates = [found.kernel]
        if len(losses) > 1 and losses[-1] > (1 - LEAST_IMPROVEMENT) * losses[-2]:
            break
        if time.monotonic() >= deadline:
            break
    is_limited = rank == "auto" and (
        ranks[0] < RANKS[0] <= len(rows)
        or (len(losses) == len(ranks) > 1 and losses[-1] <= (1 - LEAST_IMPROVEMENT) * losses[-2])
    )
    return LowRankVotes([found.kernel], found.votes, found.rank, losses, is_limited)


@dataclass(frozen=True)
class _Found:
    kernel: Kernel
    votes: list[Vote]
    rank: int
    loss: float


@dataclass(frozen=True)
class _Task:
    X: Rows
    codes: NDArray[np.int32]
    machines: Sequence[Machine]
    weights: FloatArray
    folds: Folds
    landmarks: Landmarks | Literal["greedy"]
    dtype: Precision
    options: PathOptions
    rows: NDArray[Any]
    n_jobs: int | None
    deadline: float
    report: Report | None

    def in_time(self) -> PathOptions:
        """Return the options, with the time that is left."""
        if self.options.max_seconds is None:
            return self.options
        return replace(self.options, max_seconds=max(self.deadline - time.monotonic(), 1e-3))

    def run(
        self,
        candidates: Sequence[Kernel],
        rank: Any,
        order: NDArray[Any],
        memory_bytes: int,
        random_state: np.random.RandomState,
    ) -> _Found:
        """Run all candidates at one rank, and take the best of them."""
        factors = [
            self._factor(kernel, rank, order, memory_bytes, random_state) for kernel in candidates
        ]
        scales = np.array([diagonal_scale(factor.diagonal) for factor in factors])
        found = solve_paths(
            [_divided(f.factor, np.sqrt(scale)) for f, scale in zip(factors, scales, strict=True)],
            [KernelSource("factor", k) for k in range(len(factors))],
            np.ascontiguousarray(self.codes[self.rows]),
            self.machines,
            weights=self.weights[self.rows],
            train=self.folds.train[:, self.rows],
            test=self.folds.test[:, self.rows],
            options=self.in_time(),
            report=self.report,
        )
        losses = np.array([[p.loss for p in machine.paths] for machine in found])
        sizes = np.array([self.weights[self.rows[m.rows]].sum() for m in found])
        totals = sizes @ losses / sizes.sum()
        best = int(totals.argmin())
        votes = []
        for machine in found:
            alone = replace(machine, paths=[machine.paths[best]])
            vote = count_votes(alone, self.rows, self.weights, scales[[best]])
            votes.append(self._on_landmarks(vote, factors[best]))
        return _Found(candidates[best], votes, factors[best].rank, float(totals[best]))

    def _factor(
        self,
        kernel: Kernel,
        rank: Any,
        order: NDArray[Any],
        memory_bytes: int,
        random_state: np.random.RandomState,
    ) -> LowRankMatrix:
        chosen = None
        if isinstance(rank, int) and self.landmarks == "random":
            chosen = self.rows[order[:rank]]  # growing ranks keep the landmarks they have
        elif isinstance(rank, int) and self.landmarks == "greedy":
            chosen = self._greedy_landmarks(kernel, rank)
        return low_rank_matrix(
            kernel,
            self.X,
            rank,
            landmarks="random" if self.landmarks == "greedy" else self.landmarks,
            chosen=chosen,
            rows=self.rows,
            dtype=self.dtype,
            memory_bytes=memory_bytes,
            n_jobs=self.n_jobs,
            random_state=random_state,
        )

    def _greedy_landmarks(self, kernel: Kernel, rank: int) -> NDArray[Any]:
        """Rows that greedy stages choose first, from all machines in turn."""
        solutions = solve_greedy(
            kernel,
            self.X,
            self.codes,
            self.machines,
            options=GreedyOptions(max_stages=rank, exact=False, n_threads=self.options.n_threads),
        )
        in_turn = chain.from_iterable(zip_longest(*(s.stage_indices for s in solutions)))
        return np.array(
            list(dict.fromkeys(int(i) for i in in_turn if i is not None))[:rank], dtype=np.intp
        )

    def _on_landmarks(self, vote: Vote, factor: LowRankMatrix) -> Vote:
        whole = np.zeros(len(self.rows))
        whole[np.searchsorted(self.rows, vote.rows)] = vote.coefficients[0]
        return replace(
            vote, rows=factor.landmarks, coefficients=factor.coefficients(whole)[None, :]
        )


def _divided(factor: NDArray[Any], scale: float) -> NDArray[Any]:
    return factor if scale == 1.0 else (factor / scale).astype(factor.dtype)


def _best_on_sample(
    task: _Task, kernels: Sequence[Kernel], random_state: np.random.RandomState
) -> Kernel:
    """Choose the kernel with the least held-out loss on a sample of every class."""
    n_classes = int(task.codes.max()) + 1
    codes = np.full(len(task.codes), -1, dtype=np.int32)
    for c in range(n_classes):
        of_class = np.flatnonzero(task.codes == c)
        share = len(of_class) / len(task.rows)
        n = min(len(of_class), max(round(SAMPLE_ROWS * share), 20))
        drawn = random_state.permutation(of_class)[:n]
        codes[drawn] = c
    votes = exact_votes(
        kernels,
        task.X,
        codes,
        task.machines,
        weights=task.weights,
        folds=task.folds,
        dtype="float32",
        options=task.in_time(),
        report=task.report,
    )
    losses = np.array([[p.loss for p in vote.paths] for vote in votes])
    sizes = np.array([task.weights[vote.rows].sum() for vote in votes])
    return kernels[int((sizes @ losses).argmin())]
