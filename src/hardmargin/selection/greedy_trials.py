"""Trials of the greedy stagewise SVM: its held-out log-loss on some splits, candidate by candidate.

A candidate is a source of kernel values (a kernel, and the rows as it sees them), a power of two
times the source's gamma, and the visits allowed per row. One candidate serves all machines. A Platt
sigmoid is fitted to each machine's held-out scores; the candidate's loss is the mean of the
machines' losses, weighted by their rows. Candidates may be tried on some of the splits first, and
on the others later; nothing is trained twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from hardmargin.kernels import (
    FloatArray,
    KernelRows,
    Rows,
    View,
    as_blocks,
    resolve_gamma,
)
from hardmargin.monitor import Monitor, Stopped
from hardmargin.selection.calibration import HeldOut
from hardmargin.selection.folds import Folds
from hardmargin.selection.relevance import Sensed, column_scales, relevance_of
from hardmargin.selection.sigmoids import platt
from hardmargin.solvers import greedy
from hardmargin.solvers.greedy import GreedyOptions, GreedySolution
from hardmargin.solvers.problem import Machine, Problem

#: The range of gamma, as exponents of two relative to the gamma of a source.
EXPONENTS = range(-16, 17)

#: Columns of the table of everything that was tried.
TABLE = np.dtype(
    [
        ("view", np.intp),
        ("kernel", "U11"),
        ("has_relevance", np.bool_),
        ("gamma", np.float64),
        ("max_visits", np.intp),
        ("n_rows", np.intp),
        ("n_splits", np.intp),
        ("log_loss", np.float64),
    ]
)

#: Kernel values between two checks of the clock and of Ctrl-C.
VALUES_AT_ONCE = 50_000_000


@dataclass(frozen=True)
class Source:
    """Where kernel values come from.

    Attributes
    ----------
    values : KernelRows
        A kernel, whose gamma is where the search starts, and rows, in the precision of the search.
    weights : (n,) array or None
        Weights of the rows, zero for those that take no part; None if all are one.
    view : int
        Which view of the rows: standardised, or as they came.
    tunes_gamma : bool
        Whether to try other gammas.
    handicap : float
        What its log-loss is multiplied by when it is compared with other sources.
    is_centred : bool
        Whether the mean of the rows is zero. Other kernels than those of distances then see the
        rows of a split relative to the mean of its training rows: held-out rows must have no part
        in the mean, which matters if there are more columns than rows.
    relevance : sequence of (d,) arrays
        The relevance that columns are scaled by: one array for each split, or one for all; empty
        where columns stay as they are. The gamma is then that of the rows as scaled.
    """

    values: KernelRows
    weights: FloatArray | None = None
    view: int = 0
    tunes_gamma: bool = True
    handicap: float = 1.0
    is_centred: bool = False
    relevance: Sequence[FloatArray] = ()

    @cached_property
    def scales(self) -> list[FloatArray]:
        """What columns are multiplied by, for each split or for all."""
        return [column_scales(known, self.values.X) for known in self.relevance]

    @property
    def for_all(self) -> Source:
        """The source with one relevance: the mean over the splits."""
        if len(self.relevance) < 2:
            return self
        mean = np.mean(self.relevance, axis=0)
        return replace(self, relevance=(mean / mean.max(),))

    def scaled(
        self,
        rows: KernelRows,
        weights: FloatArray | None = None,
        split: int = 0,
        gamma: float | None = None,
    ) -> KernelRows:
        """Scale the columns of all rows, or of some, by their relevance on a split.

        Parameters
        ----------
        rows : KernelRows
            The rows.
        weights : (n,) array or None
            Their weights.
        split : int
            Which relevance, where every split has its own.
        gamma : float, optional
            The gamma to start from, where it is known: it is the same for equal rows.
        """
        scales = self.scales[min(split, len(self.scales) - 1)]
        X = as_blocks(rows.X).map(lambda part: part * scales)
        if gamma is None:
            gamma = resolve_gamma("spread", X, kernel=rows.kernel.name, sample_weight=weights)
        return replace(rows, X=X, kernel=replace(rows.kernel, gamma=gamma))


class Candidate(NamedTuple):
    """A source, the exponent of two that multiplies its gamma, and the visits."""

    source: int
    exponent: int
    visits: int


class Part(NamedTuple):
    """A candidate on one split.

    Attributes
    ----------
    scores : (n,) array
        Scores of the held-out rows of every machine, one machine after another.
    n_stages : int
        Stages of all machines.
    gamma : float
        Gamma of the kernel.
    """

    scores: FloatArray
    n_stages: int
    gamma: float


class Trial(NamedTuple):
    """A candidate on some splits.

    Attributes
    ----------
    candidate : Candidate
        What was tried.
    n_splits : int
        On how many splits: the first ones.
    log_loss : float
        Log-loss of their held-out rows; infinite where scores are not finite.
    handicapped : float
        What candidates of different sources are compared by.
    """

    candidate: Candidate
    n_splits: int
    log_loss: float
    handicapped: float


class Trials:
    """The candidates tried on some rows, with splits into training and held-out rows.

    Parameters
    ----------
    sources : list of Source
        The sources of all rows; more can be added.
    codes : (n,) int32 array
        Class of each row, -1 for rows that take no part.
    machines : sequence of (negative classes, positive classes)
        The two-class problems.
    weights : (n,) array or None
        Sample weights.
    splits : Folds
        Which rows train, and which are held out.
    options : GreedyOptions
        How to run; the visits are those of the candidates.
    monitor : Monitor
        The clock; it receives the log-loss of everything that is tried.

    Attributes
    ----------
    tried : dict of Trial
        All trials, by candidate and number of splits.
    lines : list of tuples
        One for each trial, in the table of everything that was tried; see `TABLE`.
    rows : (n_some,) int array
        Rows that trials are made on.
    """

    def __init__(
        self,
        sources: list[Source],
        codes: NDArray[np.int32],
        machines: Sequence[Machine],
        weights: FloatArray | None,
        splits: Folds,
        options: GreedyOptions,
        monitor: Monitor,
    ) -> None:
        self.sources, self._options, self._monitor = sources, options, monitor
        self.tried: dict[tuple[Candidate, int], Trial] = {}
        self.lines: list[tuple[Any, ...]] = []
        self._parts: dict[tuple[Candidate, int], Part] = {}
        self._views: dict[int, Rows] = {}  # rows of trials, by view
        self._values: dict[int, KernelRows] = {}  # of columns as they are, by source
        self._gammas: dict[tuple[int, int], float] = {}  # of scaled columns, by source and split
        self._places: dict[int, tuple[NDArray[np.intp], HeldOut]] = {}
        self._machines = machines
        self.rows = np.flatnonzero((splits.train | splits.test).any(axis=0))
        self._is_part = len(self.rows) < len(codes)
        self._weights = weights  # of all rows
        self.weights = None if weights is None else weights[self.rows]
        codes = codes[self.rows]
        self.train_codes = [
            np.where(train[self.rows], codes, -1).astype(np.int32) for train in splits.train
        ]
        self.test_rows = [np.flatnonzero(test[self.rows]) for test in splits.test]
        self.n_splits = len(self.test_rows)
        side = Problem(sources[0].values, codes, machines).sides
        self._labels = []
        for train, test in zip(self.train_codes, self.test_rows, strict=True):
            present = np.bincount(train[train >= 0], minlength=side.shape[1]) > 0
            # A machine that lacks a side in a split is neither trained nor judged there.
            own = side * present
            is_trained = own.min(axis=1) * own.max(axis=1) < 0
            self._labels.append(side[:, codes[test]] * is_trained[:, None])

    @property
    def can_judge(self) -> bool:
        """Whether any machine has rows of both sides to train on and to score."""
        _, of_constant, _ = self.judge(None, self.n_splits)
        return bool(np.isfinite(of_constant))

    @property
    def n_trained(self) -> float:
        """Mean number of rows that splits train on."""
        return float(np.mean([(codes >= 0).sum() for codes in self.train_codes]))

    def n_stages(self, candidate: Candidate) -> float:
        """Mean number of stages of a candidate, per split."""
        found = [part.n_stages for (c, _), part in self._parts.items() if c == candidate]
        return float(np.mean(found))

    def ranked(
        self, source: int | None = None, visits: int | None = None, n_splits: int | None = None
    ) -> list[Trial]:
        """Return the trials on a given number of splits, or on all, best first.

        Only those of a source or with a number of visits, if given.
        """
        n = self.n_splits if n_splits is None else n_splits
        among = [
            trial
            for (c, of), trial in self.tried.items()
            if of == n and source in (None, c.source) and visits in (None, c.visits)
        ]

        def rank(trial: Trial) -> tuple[Any, ...]:
            c = trial.candidate
            return trial.handicapped, c.source, c.visits, abs(c.exponent), c

        return sorted(among, key=rank)

    def climb(self, source: int, visits: int, step: int, n_splits: int | None = None) -> None:
        """Try the neighbours of the best gamma until both are worse."""
        for _ in EXPONENTS:
            n_tried = len(self.tried)
            best = self.ranked(source, visits, n_splits)[0]
            self.run([best.candidate], (-step, step), n_splits)
            if len(self.tried) == n_tried:
                break

    def run(
        self,
        candidates: Sequence[Candidate],
        shifts: Sequence[int] = (0,),
        n_splits: int | None = None,
    ) -> None:
        """Try candidates with shifted exponents, on threads; raise Stopped when time is up.

        Candidates that were tried before on these splits, or are out of range, are left out.
        """
        n = self.n_splits if n_splits is None else min(n_splits, self.n_splits)
        shifted = [c._replace(exponent=c.exponent + s) for c in candidates for s in shifts]
        new = [
            c
            for c in dict.fromkeys(shifted)
            if (c, n) not in self.tried
            and (c.exponent in EXPONENTS if self.sources[c.source].tunes_gamma else c.exponent == 0)
        ]
        if not new:
            return
        options, monitor = self._options, self._monitor
        for k in {c.source for c in new} - self._values.keys():  # before threads need them
            source, values = self.sources[k], self.sources[k].values
            if source.view not in self._views:  # all kernels of a view share its rows
                self._views[source.view] = (values.some(self.rows) if self._is_part else values).X
            values = replace(values, X=self._views[source.view])
            if not source.relevance:  # all gammas, splits and machines use the same distances
                memory = options.memory_bytes // 2 // len(self.sources)
                values = values.with_metric(memory, n_jobs=options.n_threads, check=monitor.check)
            self._values[k] = values
        jobs = [(c, split) for c in new for split in range(n) if (c, split) not in self._parts]
        n_workers = min(options.n_threads, len(jobs))
        if n_workers > 1:
            values = self._values[new[0].source]
            n_workers = values.machines_at_once(n_workers, options.memory_bytes, share_rows=False)
            options = replace(
                options,
                n_threads=options.n_threads if n_workers == 1 else 1,
                memory_bytes=options.memory_bytes // n_workers,
            )

        def score(job: int, monitor: Monitor) -> Part:
            c, split = jobs[job]
            if monitor.checkpoint is None:
                return self._score(c, split, options, monitor)
            name = f"split {split} of {self.n_splits}, {len(self.rows)} rows, {tuple(c)}"
            return monitor.once_from_state(name, partial(self._score, c, split, options))

        for at, part in zip(jobs, monitor.each(score, len(jobs), n_workers), strict=True):
            self._parts[at] = part
        for c in new:
            _, log_loss, _ = self.judge(c, n)
            source, gamma, n_rows = self.sources[c.source], self._parts[c, 0].gamma, len(self.rows)
            self.tried[c, n] = Trial(c, n, log_loss, source.handicap * log_loss)
            name, is_scaled = source.values.kernel.name, bool(source.relevance)
            line = (source.view, name, is_scaled, gamma, c.visits, n_rows, n, log_loss)
            self.lines.append(line)
            what = f"{name}, gamma {gamma:.3g}, max_visits {c.visits}"
            monitor.report(0, len(self.tried), log_loss, f"choosing on {n_rows:,} rows: {what}")

    def _train(
        self, candidate: Candidate, split: int, options: GreedyOptions, monitor: Monitor
    ) -> tuple[KernelRows, list[GreedySolution]]:
        """Train on a split; return what the kernel sees, and no machines if it overflows."""
        monitor.check()
        codes = self.train_codes[split]
        source, rows = self.sources[candidate.source], self._values[candidate.source]
        if source.relevance:
            weights, at = source.weights, (candidate.source, split)
            if weights is not None:
                weights = weights[self.rows]
            rows = source.scaled(rows, weights, split, self._gammas.get(at))
            self._gammas[at] = rows.kernel.gamma
        kernel = replace(rows.kernel, gamma=rows.kernel.gamma * 2.0**candidate.exponent)
        rows = replace(rows, kernel=kernel)
        if source.is_centred and not kernel.has_unit_diagonal:
            rows = rows.about_mean(self._weights_of(codes))
        is_tuned = source.tunes_gamma and not kernel.has_unit_diagonal
        if is_tuned or (kernel.name == "linear" and len(self.sources) > 1):
            with np.errstate(over="ignore"):
                diagonal = kernel.diagonal(rows.X).astype(rows.dtype)
            if not np.isfinite(diagonal).all():
                return rows, []
        try:
            solutions = greedy.solve(
                Problem(rows, codes, self._machines, self.weights),
                replace(options, max_visits=candidate.visits, may_store=False),
                monitor.part("largest open step", n_machines=len(self._machines)),
            )
        except greedy.NotFinite:
            return rows, []
        if monitor.stop_reason in {s.stop_reason for s in solutions}:
            raise Stopped
        return rows, solutions

    def _score(
        self, candidate: Candidate, split: int, options: GreedyOptions, monitor: Monitor
    ) -> Part:
        """Train on a split, and score its held-out rows in all machines."""
        codes, test = self.train_codes[split], self.test_rows[split]
        is_own = self._labels[split] != 0  # a row is judged by the machines of its class
        rows, solutions = self._train(candidate, split, options, monitor)
        gamma, n_stages = rows.kernel.gamma, sum(s.n_stages for s in solutions)
        if not solutions:  # if all kernels overflow, the final fit raises
            return Part(np.full(int(is_own.sum()), np.nan), n_stages, gamma)
        if len(solutions) == 1:
            support, coefficients = solutions[0].rows, solutions[0].coefficients[None, :]
        else:
            support, coefficients = _side_by_side(solutions, codes)
        scores = np.empty((len(test), len(self._machines)))
        step = max(1, VALUES_AT_ONCE // max(len(support), 1))
        for begin in range(0, len(test), step):
            monitor.check()
            part = slice(begin, begin + step)
            scores[part] = rows.expand(test[part], support, coefficients, n_jobs=options.n_threads)
        return Part(scores.T[is_own], n_stages, gamma)

    def _weights_of(self, codes: NDArray[np.int32]) -> FloatArray:
        """Weights of the rows that have a class; zero for the others."""
        return np.where(codes >= 0, 1.0 if self.weights is None else self.weights, 0.0)

    def judge(
        self, candidate: Candidate | None, n_splits: int
    ) -> tuple[HeldOut, float, FloatArray]:
        """Fit sigmoids to the held-out scores of a candidate's machines, on the first splits.

        Machines without scores of both sides are left out. None stands for scores of zero.

        Returns
        -------
        held_out : HeldOut
            The scores.
        log_loss : float
            Their log-loss; infinite where there are none, or some are not finite.
        slopes : (n_judged,) array
            Slopes of the sigmoids; empty where the log-loss is infinite.
        """
        if n_splits not in self._places:
            label = np.hstack(self._labels[:n_splits])
            is_judged = label.min(axis=1, initial=0) * label.max(axis=1, initial=0) < 0
            machines, at = np.nonzero(label * is_judged[:, None])
            rows = self.rows[np.concatenate(self.test_rows[:n_splits])[at]]
            nothing = HeldOut(rows, np.zeros(len(at)), label[machines, at] > 0, machines)
            # Every split has its scores machine after machine.
            of_parts = np.concatenate([np.nonzero(part)[0] for part in self._labels[:n_splits]])
            order = np.argsort(of_parts, kind="stable")
            self._places[n_splits] = order[is_judged[of_parts[order]]], nothing
        order, held_out = self._places[n_splits]
        if candidate is not None:
            parts = [self._parts[candidate, split].scores for split in range(n_splits)]
            held_out = replace(held_out, scores=np.concatenate(parts)[order])
        if not len(held_out.scores) or not np.isfinite(held_out.scores).all():
            return held_out, float("inf"), np.empty(0)
        ends = np.flatnonzero(np.diff(held_out.machines)) + 1
        starts = np.concatenate([[0], ends, [len(held_out.machines)]])
        weights, mass = None, np.diff(starts)
        if self._weights is not None:
            weights = self._weights[held_out.rows]
            mass = np.add.reduceat(weights, starts[:-1])
        fit = platt(held_out.scores, held_out.positive, weights, starts)
        return held_out, float(np.average(fit.log_losses, weights=mass)), fit.slopes

    def relevance(
        self, candidate: Candidate, random_state: np.random.RandomState
    ) -> list[FloatArray]:
        """Relevance of the columns to the machines of a candidate that was tried on all splits.

        Each split has its own, that of its training rows, so that held-out rows have no part in
        it. The list is empty where nothing moves the log-odds.
        """
        view = View("standardized")
        held_out, log_loss, fitted = self.judge(candidate, self.n_splits)
        if not np.isfinite(log_loss):
            return []
        slopes = dict(zip(np.unique(held_out.machines), np.abs(fitted), strict=True))
        found = []
        for split, codes in enumerate(self.train_codes):
            rows, solutions = self._train(candidate, split, self._options, self._monitor)
            kernel = replace(rows.kernel, view=view)
            machines = [
                Sensed(s.rows, s.coefficients[None], slopes[m])
                for m, s in enumerate(solutions)
                if m in slopes
            ]
            weights = self._weights_of(codes)
            known = relevance_of(view, [kernel], machines, rows.X, weights, random_state)
            if known is None:
                return []
            found.append(known)
        return found


def _side_by_side(
    solutions: list[GreedySolution], codes: NDArray[np.int32]
) -> tuple[NDArray[np.int32], Any]:
    """Support rows of several machines, sorted by class, and the coefficients on them."""
    rows = np.concatenate([s.rows for s in solutions])
    support = np.unique(rows)
    support = support[np.argsort(codes[support], kind="stable")]
    position = np.empty(len(codes), dtype=np.int32)
    position[support] = np.arange(len(support), dtype=np.int32)
    places = position[rows]
    # By support row, as kernels need them: a conversion would take longer than small fits.
    order = np.argsort(places, kind="stable")
    sizes = [len(s.rows) for s in solutions]
    machines = np.repeat(np.arange(len(solutions), dtype=np.int32), sizes)
    coefficients = np.concatenate([s.coefficients for s in solutions])
    starts = np.searchsorted(places[order], np.arange(len(support) + 1)).astype(np.int32)
    return support, sp.csc_array(
        (coefficients[order], machines[order], starts), shape=(len(solutions), len(support))
    )
