"""The rows that a choice for the greedy stagewise SVM is made on: some, then more, then most.

A :class:`Level` is a set of rows with splits. It trains candidates on the training parts and scores
them on the rows held out, in as many threads as there may be.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from hardmargin.kernels import FloatArray, Kernel, Rows
from hardmargin.parallel import single_threaded_blas
from hardmargin.selection.calibration import platt_of_machines
from hardmargin.selection.folds import BoolArray, Folds
from hardmargin.selection.held_out import HeldOut
from hardmargin.solvers.greedy import GreedyOptions, solve_greedy
from hardmargin.solvers.problem import Machine, machines_at_once
from hardmargin.solvers.solution import GreedySolution

IntArray = NDArray[np.intp]

#: Visits a row may have, to choose from.
VISITS = (1, 4, 64)

#: Up to so many rows are searched as they are; more are searched on a subsample.
MAX_SEARCHED_ROWS = 2_500
SUBSAMPLE_ROWS = 2_000
SPLITS_TO_COMPARE = 2

#: Up to so many rows are split into folds as a whole.
MAX_FOLDED_ROWS = 20_000

#: Above that: the largest training part, as a share of all rows, how parts grow up to it, and the
#: most rows that are held out.
LARGEST_SHARE = 0.4
GROWTH = 4
MAX_HELD_OUT_ROWS = 10_000

#: Rows of each class that subsamples keep at least.
ROWS_A_CLASS = 20

#: Kernel values between two looks at the clock and at Ctrl-C.
VALUES_AT_ONCE = 50_000_000


class Candidate(NamedTuple):
    """Which view of the rows, the power of two times its gamma, and the visits."""

    view: int
    exponent: int
    visits: int


@dataclass(frozen=True)
class View:
    """Rows as a kernel sees them.

    Attributes
    ----------
    X : rows
        Rows, or the kernel matrix for a precomputed kernel.
    kernel : Kernel
        Its gamma is where the search starts.
    """

    X: Rows
    kernel: Kernel


@dataclass(frozen=True)
class Task:
    """All that a choice is made for.

    Attributes
    ----------
    views : sequence of View
        The same rows in different ways, to choose from; the first is taken where there is no
        choice.
    codes : (n,) int32 array
        Class of each row, -1 for rows that take no part.
    machines : sequence of (negative classes, positive classes)
        The two-class problems.
    weights : (n,) array or None
        Sample weights.
    options : GreedyOptions
        How to run; the visits and the time are set here.
    tunes_gamma : bool
        Whether to choose gamma at all.
    visits : sequence of int
        Visits to choose from, in ascending order.
    deadline : float or None
        When to stop, by ``time.monotonic()``.
    report : callable or None
        Called with gamma, visits, rows and log-loss of everything that was tried.
    """

    views: Sequence[View]
    codes: NDArray[np.int32]
    machines: Sequence[Machine]
    weights: FloatArray | None = None
    options: GreedyOptions = field(default_factory=GreedyOptions)
    tunes_gamma: bool = True
    visits: Sequence[int] = VISITS
    deadline: float | None = None
    report: Callable[[float, int, int, float], None] | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows that take part."""
        return int((self.codes >= 0).sum())

    def kernel_of(self, candidate: Candidate) -> Kernel:
        """Make the kernel with a candidate's gamma."""
        kernel = self.views[candidate.view].kernel
        return replace(kernel, gamma=kernel.gamma * 2.0**candidate.exponent)


class OutOfTimeError(Exception):
    """The deadline of a search has passed."""


@dataclass(frozen=True)
class Trial:
    """One candidate on one level: the scores of its splits one after another."""

    scores: FloatArray
    log_loss: float
    n_stages: int


class Level:
    """Some rows, with splits of them into training and held-out rows.

    Parameters
    ----------
    task : Task
        The choice as a whole.
    splits : list of (train, test) pairs of bool arrays
        Over all rows of the task.
    is_last_word : bool
        Whether only the winner is wanted.
    """

    def __init__(
        self, task: Task, splits: list[tuple[BoolArray, BoolArray]], is_last_word: bool = False
    ) -> None:
        used = np.zeros(len(task.codes), dtype=bool)
        for train, test in splits:
            used |= train | test
        self.task, self.is_last_word = task, is_last_word
        self.rows = np.flatnonzero(used)
        self.n_rows = len(self.rows)
        self._lock = threading.Lock()
        self._X: dict[int, Rows] = {}  # of the views that are looked at
        codes = task.codes[self.rows]
        self.weights = None if task.weights is None else task.weights[self.rows]
        self.train_codes = [
            np.where(train[self.rows], codes, -1).astype(np.int32) for train, _ in splits
        ]
        self.test_rows = [np.flatnonzero(test[self.rows]) for _, test in splits]
        self._index(codes)

    def _index(self, codes: NDArray[np.int32]) -> None:
        """Find, for every machine, where its held-out scores are among all that are evaluated."""
        machines = self.task.machines
        side = np.zeros((len(machines), int(self.task.codes.max()) + 1), dtype=np.int8)
        for of_machine, (negative, positive) in zip(side, machines, strict=True):
            of_machine[list(negative)], of_machine[list(positive)] = -1, 1
        labels = []
        for train, test in zip(self.train_codes, self.test_rows, strict=True):
            present = np.bincount(train[train >= 0], minlength=side.shape[1]) > 0
            # A machine that lacks a side in a split is neither trained nor judged there.
            trains = _has_both_sides(side[:, present])
            labels.append(side[:, codes[test]] * trains[:, None])
        self.side = side
        label = np.hstack(labels)
        self.machines, self.at = np.nonzero(label * _has_both_sides(label)[:, None])
        self.positive = label[self.machines, self.at] > 0
        self.starts = np.flatnonzero(np.diff(self.machines, prepend=-1, append=len(machines)))
        self.held_out_rows = np.concatenate(self.test_rows)[self.at]
        self.is_usable = len(self.machines) > 0

    def X(self, view: int) -> Rows:
        """Return the level's rows in a view."""
        with self._lock:
            if view not in self._X:
                X, rows = self.task.views[view].X, self.rows
                if self.n_rows < len(self.task.codes):
                    is_matrix = self.task.views[view].kernel.name == "precomputed"
                    X = X[np.ix_(rows, rows)] if is_matrix else X[rows]
                self._X[view] = X
            return self._X[view]

    def held_out(self, trial: Trial) -> HeldOut:
        """Return the scores of one trial, with what they belong to."""
        rows = self.rows[self.held_out_rows]
        return HeldOut(rows, trial.scores, self.positive, self.machines)

    def try_out(self, candidates: Sequence[Candidate]) -> list[Trial]:
        """Train and score candidates on all splits."""
        n_splits = len(self.train_codes)
        pieces = self._in_threads([(c, k) for c in candidates for k in range(n_splits)])
        return [
            self._judge(pieces[i * n_splits : (i + 1) * n_splits]) for i in range(len(candidates))
        ]

    def _judge(self, pieces: list[tuple[FloatArray, int]]) -> Trial:
        scores = np.concatenate([of_split for of_split, _ in pieces])[self.at, self.machines]
        n_stages = sum(n for _, n in pieces)
        if not np.isfinite(scores).all():
            return Trial(scores, np.inf, n_stages)
        weights = None if self.weights is None else self.weights[self.held_out_rows]
        fit = platt_of_machines(scores, self.positive, weights, self.starts)
        mass = (
            np.diff(self.starts) if weights is None else np.add.reduceat(weights, self.starts[:-1])
        )
        return Trial(scores, float(np.average(fit.log_losses, weights=mass)), n_stages)

    def _in_threads(self, jobs: list[tuple[Candidate, int]]) -> list[tuple[FloatArray, int]]:
        threads = self.task.options.n_threads
        n_workers = min(threads, len(jobs))
        if n_workers > 1:
            n_workers = self._workers(n_workers, jobs[0][0])
        if n_workers <= 1:
            return [self._score(c, k, threads) for c, k in jobs]
        stop = threading.Event()

        def score(candidate: Candidate, split: int) -> tuple[FloatArray, int]:
            with single_threaded_blas():
                return self._score(candidate, split, 1, n_workers, stop)

        with ThreadPoolExecutor(n_workers) as pool:
            waiting = [pool.submit(score, c, k) for c, k in jobs]
            try:
                return [job.result() for job in waiting]
            finally:
                # After Ctrl-C, or an error in one of them, the others end at their next report.
                stop.set()
                for job in waiting:
                    job.cancel()

    def _workers(self, n_workers: int, candidate: Candidate) -> int:
        """Workers of so many that the memory is enough for."""
        options = self.task.options
        return machines_at_once(
            self.task.kernel_of(candidate),
            self.X(candidate.view),
            exact=options.exact,
            n_threads=n_workers,
            memory_bytes=options.memory_bytes,
            share_rows=False,
        )

    def _score(
        self,
        candidate: Candidate,
        split: int,
        n_threads: int,
        n_workers: int = 1,
        stop: threading.Event | None = None,
    ) -> tuple[FloatArray, int]:
        """Train on a split; return the held-out scores of all machines, and the stages taken."""

        def check(*_: object) -> None:
            if stop is not None and stop.is_set():
                raise OutOfTimeError

        check()
        task, kernel, X = self.task, self.task.kernel_of(candidate), self.X(candidate.view)
        options = replace(
            task.options,
            max_visits=candidate.visits,
            n_threads=n_threads,
            memory_bytes=task.options.memory_bytes // n_workers,
            max_seconds=_seconds_left(task.deadline),
        )
        test = self.test_rows[split]
        if task.tunes_gamma and not np.isfinite(kernel.diagonal(X)).all():
            # A gamma at which the kernel overflows is no choice; if all do, the last fit says so.
            return np.full((len(test), len(task.machines)), np.nan), 0
        solutions = solve_greedy(
            kernel,
            X,
            self.train_codes[split],
            task.machines,
            weights=self.weights,
            options=options,
            report=check,
        )
        if any(s.stop_reason == "max_time" for s in solutions):
            raise OutOfTimeError
        support, coefficients = self._expansion(solutions, self.train_codes[split])
        scores = np.empty((len(test), len(task.machines)))
        step = max(1, VALUES_AT_ONCE // max(len(support), 1))
        S = None if kernel.name == "precomputed" else X[support]
        for begin in range(0, len(test), step):
            check()
            _seconds_left(task.deadline)
            part = slice(begin, begin + step)
            Q = X[test[part]]
            scores[part] = kernel.expand(
                Q[:, support] if S is None else Q,
                S,
                coefficients,
                dtype="float64" if options.exact else "float32",
                n_jobs=n_threads,
            )
        return scores, sum(s.n_stages for s in solutions)

    def _expansion(
        self, solutions: list[GreedySolution], codes: NDArray[np.int32]
    ) -> tuple[IntArray, Any]:
        """Support rows of all machines, sorted by class, and the coefficients on them."""
        signed = [
            of_machine[codes[s.support]] * s.multipliers
            for of_machine, s in zip(self.side, solutions, strict=True)
        ]
        if len(solutions) == 1:
            return solutions[0].support.astype(np.intp), signed[0][None, :]
        support = np.unique(np.concatenate([s.support for s in solutions]))
        support = support[np.argsort(codes[support], kind="stable")]
        position = np.empty(self.n_rows, dtype=np.intp)
        position[support] = np.arange(len(support))
        return support, sp.csr_array(
            (
                np.concatenate(signed),
                position[np.concatenate([s.support for s in solutions])],
                np.cumsum([0, *(len(s.support) for s in solutions)]),
            ),
            shape=(len(solutions), len(support)),
        )


def _has_both_sides(labels: NDArray[np.int8]) -> BoolArray:
    """Tell which rows have a label below zero and one above."""
    return np.asarray((labels < 0).any(axis=1) & (labels > 0).any(axis=1))


def _seconds_left(deadline: float | None) -> float | None:
    if deadline is None:
        return None
    left = deadline - time.monotonic()
    if left <= 0:
        raise OutOfTimeError
    return left


def levels(task: Task, folds: Folds, random_state: np.random.RandomState) -> Iterator[Level]:
    """Split more and more rows; the last splits are what the choice rests on."""
    splits = list(zip(folds.train, folds.test, strict=True))
    n = task.n_rows
    if not splits:
        return
    if n <= MAX_SEARCHED_ROWS:
        yield Level(task, splits)
        return
    rank = _ranks(task.codes, random_state)
    few = _subsample(task.codes, rank, SUBSAMPLE_ROWS)
    yield Level(task, [(train & few, test & few) for train, test in splits])
    if n <= MAX_FOLDED_ROWS:
        yield Level(task, splits[:SPLITS_TO_COMPARE])
        yield Level(task, splits, is_last_word=True)
        return
    train, test = max(splits, key=lambda split: int(split[0].sum()))
    test = test & _subsample(np.where(test, task.codes, -1), rank, MAX_HELD_OUT_ROWS)
    size = int(LARGEST_SHARE * n)
    sizes = [size]
    while (size := size // GROWTH) > 2 * SUBSAMPLE_ROWS:
        sizes.append(size)
    for size in reversed(sizes):
        part = _subsample(np.where(train, task.codes, -1), rank, size)
        yield Level(task, [(train & part, test)])


def _ranks(codes: NDArray[np.int32], random_state: np.random.RandomState) -> IntArray:
    """Put the rows that have a class in a random order, and others last."""
    present = np.flatnonzero(codes >= 0)
    rank = np.full(len(codes), len(codes), dtype=np.intp)
    rank[present] = random_state.permutation(len(present))
    return rank


def _subsample(codes: NDArray[Any], rank: IntArray, n_rows: int) -> BoolArray:
    """Draw rows by class, in proportion but some of each; fewer rows are a part of more."""
    chosen = np.zeros(len(codes), dtype=bool)
    sizes = np.bincount(codes[codes >= 0])
    share = min(1.0, n_rows / max(sizes.sum(), 1))
    for c in np.flatnonzero(sizes):
        of_class = np.flatnonzero(codes == c)
        quota = max(int(np.ceil(share * sizes[c])), min(ROWS_A_CLASS, int(sizes[c])))
        chosen[of_class[np.argsort(rank[of_class])[:quota]]] = True
    return chosen
