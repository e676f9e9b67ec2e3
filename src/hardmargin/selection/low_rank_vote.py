"""Votes on many rows: the kernel chosen on a sample, its matrix replaced by one of low rank.

A kernel that suits a sample is too wide for all rows, so one of four times its gamma is tried
as well. The rank grows while that lowers the held-out loss. Greedy landmarks are chosen with the
labels of some rows, so others judge.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain, zip_longest
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hardmargin.kernels import Kernel, Precision, Rows
from hardmargin.kernels.low_rank import Landmarks, LowRankMatrix, low_rank_matrix
from hardmargin.monitor import Monitor
from hardmargin.selection.folds import Folds
from hardmargin.selection.vote import Vote, count_votes, diagonal_scale, matrix_votes
from hardmargin.solvers import greedy, staged_vote
from hardmargin.solvers.greedy import GreedyOptions
from hardmargin.solvers.problem import KernelRows, Problem
from hardmargin.solvers.staged_vote import Candidates, KernelSource, StagedVoteOptions

#: Rows that the kernel is chosen on.
SAMPLE_ROWS = 2_000

#: What the sample's gamma is multiplied by for all rows.
GAMMA_FACTORS = (1.0, 4.0)

#: Ranks that ``"auto"`` tries in turn ...
RANKS = (250, 500, 1_000)

#: ... as long as each lowers the held-out loss by at least this share of it.
LEAST_IMPROVEMENT = 0.01

#: Rows whose labels choose greedy landmarks are at least this share of all. If they leave less than
#: the other share to judge, nearly all rows are landmarks, and their choice tells nothing.
TEACHING_SHARE = 0.5
LEAST_JUDGING_SHARE = 0.2

#: Memory of a row in the path of every kernel and machine: two coefficients, two held-out scores.
BYTES_OF_PATH_ROW = 32

#: Memory of matrices is multiplied by this to account for the paths and copies of the sample.
PATHS = 1.1


@dataclass(frozen=True)
class LowRankVotes:
    """What was chosen for many rows.

    Attributes
    ----------
    kernels : list of Kernel
        The one that was chosen.
    votes : list of Vote
        One per machine; its rows are the landmarks.
    rank : int
        Rank of the approximation.
    losses : list of float
        Held-out loss at every rank tried.
    is_limited : bool
        Whether the loss still fell when the rank could grow no further, or the memory was too
        small for the first of the ranks.
    full_bytes : int
        Memory that is enough for the largest of the ranks.
    """

    kernels: list[Kernel]
    votes: list[Vote]
    rank: int
    losses: list[float]
    is_limited: bool
    full_bytes: int


def low_rank_votes(
    kernels: Sequence[Kernel],
    problem: Problem[Rows],
    folds: Folds,
    options: StagedVoteOptions,
    monitor: Monitor,
    *,
    rank: int | float | str,
    landmarks: Landmarks | Literal["greedy"],
    dtype: Precision,
    memory_bytes: int,
    n_jobs: int | None,
    random_state: np.random.RandomState,
) -> LowRankVotes:
    """Choose a kernel and a rank, and count the votes of every machine.

    Parameters
    ----------
    kernels, problem, folds, options, monitor
        As for `matrix_votes`.
    rank : int, float or "auto"
        A number of landmarks; a share of the trace that may be left over; or "auto", the rank that
        lowers the held-out loss.
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
    """
    if landmarks == "greedy" and isinstance(rank, float):
        raise ValueError("landmarks='greedy' needs an int as rank, or 'auto'.")
    if problem.weights is None:
        problem = replace(problem, weights=np.ones(len(problem.codes)))
    rows = np.flatnonzero(problem.codes >= 0)
    candidates = _candidates(kernels, problem, folds, options, monitor, random_state, memory_bytes)
    order = random_state.permutation(len(rows))
    row_bytes = len(rows) * np.dtype(dtype).itemsize
    rank_bytes = 4 * len(candidates) * row_bytes
    path_bytes = BYTES_OF_PATH_ROW * len(candidates) * problem.n_machine_rows
    ranks: list[Any] = [rank]
    if rank == "auto":
        ranks = _ranks_within(memory_bytes, path_bytes, rank_bytes, len(rows))
        # There must be a landmark, whatever the memory.
        memory_bytes = max(memory_bytes, 4 * row_bytes)

    teachers = problem
    if landmarks == "greedy":
        teachers, folds = _apart(problem, folds, max(ranks))

    def factor(kernel: Kernel, n: Any) -> LowRankMatrix:
        chosen = None
        if isinstance(n, int) and landmarks == "random":
            chosen = rows[order[:n]]  # growing ranks keep the landmarks they have
        elif isinstance(n, int) and landmarks == "greedy":
            chosen = _greedy_landmarks(kernel, teachers, n, options.n_threads)
        return low_rank_matrix(
            kernel,
            problem.values,
            n,
            landmarks="random" if landmarks == "greedy" else landmarks,
            chosen=chosen,
            rows=rows,
            dtype=dtype,
            memory_bytes=memory_bytes,
            n_jobs=n_jobs,
            random_state=random_state,
        )

    losses: list[float] = []
    for n in ranks:
        factors = [factor(kernel, n) for kernel in candidates]
        votes, best_one, loss = _votes_of_factors(factors, rows, problem, folds, options, monitor)
        losses.append(loss)
        candidates, used = [candidates[best_one]], factors[best_one]
        if (len(losses) > 1 and not _falls(losses)) or monitor.seconds_left <= 0:
            break
    still_falls = _falls(losses) and len(losses) == len(ranks) and folds.n_splits > 0
    is_limited = rank == "auto" and (ranks[0] < RANKS[0] <= len(rows) or still_falls)
    full_bytes = min(RANKS[-1], len(rows)) * rank_bytes + path_bytes
    return LowRankVotes(candidates, votes, used.rank, losses, is_limited, full_bytes)


def _ranks_within(memory_bytes: int, path_bytes: int, rank_bytes: int, n_rows: int) -> list[int]:
    """Return the ranks to try, those that memory allows; at least one."""
    room = min(max(memory_bytes - path_bytes, memory_bytes // 4) // rank_bytes, n_rows)
    return [rank for rank in RANKS if rank <= room] or [max(1, room)]


def _falls(losses: list[float]) -> bool:
    """Whether the last rank is better than the one before."""
    return len(losses) > 1 and losses[-1] <= (1 - LEAST_IMPROVEMENT) * losses[-2]


def _votes_of_factors(
    factors: list[LowRankMatrix],
    rows: NDArray[Any],
    problem: Problem[Rows],
    folds: Folds,
    options: StagedVoteOptions,
    monitor: Monitor,
) -> tuple[list[Vote], int, float]:
    """Run all candidates at one rank; return the votes, index and held-out loss of the best."""
    assert problem.weights is not None
    scales = np.array([diagonal_scale(factor.diagonal) for factor in factors])
    candidates = Candidates(
        [_divided(f.factor, np.sqrt(scale)) for f, scale in zip(factors, scales, strict=True)],
        [KernelSource("factor", k) for k in range(len(factors))],
        folds.train[:, rows],
        folds.test[:, rows],
    )
    codes = np.ascontiguousarray(problem.codes[rows])
    found = staged_vote.solve(
        Problem(candidates, codes, problem.machines, problem.weights[rows]), options, monitor
    )
    losses = np.array([[path.certificate for path in paths] for paths in found])
    sizes = np.array([problem.weights[rows[paths[0].rows]].sum() for paths in found])
    totals = sizes @ losses / sizes.sum()
    best = int(totals.argmin())
    chosen = [paths[best] for paths in found]
    del found, candidates  # paths of other kernels, and factors, take more memory than votes
    votes = []
    for m, path in enumerate(chosen):
        own, held = (rows[at].astype(np.int32) for at in (path.rows, path.held_rows))
        vote = count_votes([replace(path, rows=own, held_rows=held)], problem, m, np.ones(1))
        whole = np.zeros(len(rows))
        whole[path.rows] = path.coefficients / scales[best]
        on_landmarks = factors[best].coefficients(whole)[None, :]
        votes.append(replace(vote, rows=factors[best].landmarks, coefficients=on_landmarks))
    return votes, best, float(totals[best])


def _divided(factor: NDArray[Any], scale: float) -> NDArray[Any]:
    return factor if scale == 1.0 else (factor / scale).astype(factor.dtype)


def _apart(problem: Problem[Rows], folds: Folds, rank: int) -> tuple[Problem[Rows], Folds]:
    """Divide the rows into those whose labels choose landmarks, and those that judge.

    Greedy landmarks do not depend on the seed of a fit, so it has no part in this.
    """
    random = np.random.RandomState(0)
    n_rows = int((problem.codes >= 0).sum())
    share = max(TEACHING_SHARE, rank / n_rows)
    if share > 1 - LEAST_JUDGING_SHARE:
        return problem, folds
    codes = np.full(len(problem.codes), -1, dtype=np.int32)
    for c in range(problem.n_classes):
        of_class = random.permutation(np.flatnonzero(problem.codes == c))
        codes[of_class[: int(np.ceil(share * len(of_class)))]] = c
    return replace(problem, codes=codes), replace(folds, test=folds.test & (codes < 0))


def _greedy_landmarks(
    kernel: Kernel, problem: Problem[Rows], n: int, n_threads: int
) -> NDArray[Any]:
    """Rows that greedy stages choose first, from all machines in turn."""
    rows = KernelRows(kernel, problem.values, "float32")
    solutions = greedy.solve(
        Problem(rows, problem.codes, problem.machines),
        GreedyOptions(max_stages=n, n_threads=n_threads),
    )
    in_turn = chain.from_iterable(zip_longest(*(s.history["row"] for s in solutions)))
    return np.array(
        list(dict.fromkeys(int(i) for i in in_turn if i is not None))[:n], dtype=np.intp
    )


def _candidates(
    kernels: Sequence[Kernel],
    problem: Problem[Rows],
    folds: Folds,
    options: StagedVoteOptions,
    monitor: Monitor,
    random_state: np.random.RandomState,
    memory_bytes: int,
) -> list[Kernel]:
    """Take the kernel with the least held-out loss on a sample of every class, in some widths."""
    if len(kernels) == 1:
        return list(kernels)
    assert problem.weights is not None
    # The distances of every kind of kernel, and a matrix of kernel values.
    pair_bytes = 4 * (1 + len({(kernel.name, kernel.view) for kernel in kernels}))
    most = min(SAMPLE_ROWS, int(np.sqrt(memory_bytes / (PATHS * pair_bytes))))
    spare = memory_bytes - int(PATHS * pair_bytes * most**2)
    options = replace(options, memory_bytes=min(options.memory_bytes, spare))
    codes = np.full(len(problem.codes), -1, dtype=np.int32)
    n_rows = int((problem.codes >= 0).sum())
    for c in range(problem.n_classes):
        of_class = np.flatnonzero(problem.codes == c)
        n = min(len(of_class), max(round(most * len(of_class) / n_rows), 20))
        codes[random_state.permutation(of_class)[:n]] = c
    sample = replace(problem, codes=codes)
    votes = matrix_votes(kernels, sample, folds, options, monitor, dtype="float32")
    losses = np.array([[path.certificate for path in vote.paths] for vote in votes])
    sizes = np.array([problem.weights[vote.rows].sum() for vote in votes])
    best = kernels[int((sizes @ losses).argmin())]
    return [replace(best, gamma=factor * best.gamma) for factor in GAMMA_FACTORS]
