"""Trials of the greedy stagewise SVM: its held-out log-loss on some splits, setting by setting.

A setting is a source of kernel values (a kernel, and the rows as it sees them), a power of two
times the source's gamma, and the visits allowed per row. One setting serves all machines. A Platt
sigmoid is fitted to each machine's held-out scores; the setting's loss is the mean of the machines'
losses, weighted by their rows. Settings may be tried on some of the splits first, and on the others
later; nothing is trained twice. Gammas so large that a kernel only looks up the nearest row are
brought back to the largest that does more.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from hardmargin.kernels import FloatArray, KernelRows
from hardmargin.monitor import Monitor, Stopped
from hardmargin.selection.calibration import HeldOut
from hardmargin.selection.folds import Folds
from hardmargin.selection.greedy_sources import Source, row_weights
from hardmargin.selection.nearest import nearest_distance
from hardmargin.selection.relevance import Sensed, relevance_of
from hardmargin.selection.sigmoids import platt
from hardmargin.solvers import greedy
from hardmargin.solvers.greedy import GreedyOptions, GreedySolution
from hardmargin.solvers.problem import Problem

#: Visits allowed per row, to choose from.
VISITS = (1, 4, 64)

#: The range of gamma, as exponents of two relative to the gamma of a source.
EXPONENTS = range(-16, 17)

#: The largest gamma, times the median distance to the nearest row. Gammas of exponents up to zero
#: are allowed in any case.
LARGEST_DECAY = 4.0

#: Held-out scores below this are zero, as training rows have scores of about one: such rows are far
#: from all others, and a sigmoid of tiny scores would be certain wherever a kernel has not decayed.
LEAST_SCORE = 1e-6

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
class GreedyTask:
    """What a choice is made for.

    Attributes
    ----------
    problem : Problem of KernelRows
        The machines; their rows are those of the first view, in the precision of the final fit.
    options : GreedyOptions
        How to run; visits and method are those of the trials.
    visits : sequence of int
        Visits to choose from, in ascending order.
    monitor : Monitor
        The clock; it receives the log-loss of everything that is tried.
    is_part : bool
        Whether these are a part of the rows, as there may be no time for all of them: the search is
        then on half as many rows, and follows one split from a thousand rows on.
    """

    problem: Problem[KernelRows]
    options: GreedyOptions = field(default_factory=GreedyOptions)
    visits: Sequence[int] = VISITS
    monitor: Monitor = field(default_factory=Monitor)
    is_part: bool = False


class Setting(NamedTuple):
    """A source, the exponent of two that multiplies its gamma, and the visits."""

    source: int
    exponent: int
    visits: int


class Trial(NamedTuple):
    """A setting on some splits.

    Attributes
    ----------
    setting : Setting
        What was tried.
    n_splits : int
        On how many splits: the first ones.
    log_loss : float
        Log-loss of their held-out rows; infinite where scores are not finite.
    handicapped : float
        What settings of different sources are compared by.
    """

    setting: Setting
    n_splits: int
    log_loss: float
    handicapped: float


class Judged(NamedTuple):
    """What held-out rows say about a setting.

    Attributes
    ----------
    held_out : HeldOut
        Their scores.
    log_loss : float
        The log-loss of these; infinite where there are none, or some are not finite.
    slopes : (n_judged,) array
        Slopes of the machines' sigmoids; empty where the log-loss is infinite.
    """

    held_out: HeldOut
    log_loss: float
    slopes: FloatArray


class Part(NamedTuple):
    """A setting on one split; checkpoints keep it under this name.

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


class _Split(NamedTuple):
    """Which rows train, and which are held out.

    Attributes
    ----------
    codes : (n_some,) int32 array
        Class of each row that trains, -1 for all others.
    test : (n_test,) int array
        Rows that are held out.
    labels : (n_machines, n_test) array
        Their sides, +1 or -1, in the machines that judge them; 0 elsewhere. A machine that lacks
        rows of a side is neither trained nor judged.
    """

    codes: NDArray[np.int32]
    test: NDArray[np.intp]
    labels: NDArray[np.int8]


class Trials:
    """The settings tried on some rows, with splits into training and held-out rows.

    Parameters
    ----------
    task : GreedyTask
        What a choice is made for.
    splits : Folds
        Which of all rows train, and which are held out.
    sources : iterable of Source
        The sources of all rows.

    Attributes
    ----------
    task : GreedyTask
        As given.
    sources : list of Source
        As given; more can be added.
    rows : (n_some,) int array
        Rows that trials are made on.
    n_splits : int
        Number of splits.
    numbers : tuple of int or None
        Which of the splits of all rows they are; None if they are those.
    tried : dict of Trial
        All trials, by setting and number of splits.
    lines : list of tuples
        One for each trial, in the table of everything that was tried; see `TABLE`.
    """

    def __init__(self, task: GreedyTask, splits: Folds, sources: Iterable[Source]) -> None:
        self.task, self.sources = task, list(sources)
        self.rows = np.flatnonzero((splits.train | splits.test).any(axis=0))
        self._weights, self._row_weights = (
            None if weights is None else weights[self.rows]
            for weights in (task.problem.weights, row_weights(task.problem))
        )
        codes, sides = task.problem.codes[self.rows], task.problem.sides
        self._splits: list[_Split] = []
        for trains, is_held in zip(splits.train, splits.test, strict=True):
            own = np.where(trains[self.rows], codes, -1).astype(np.int32)
            present = sides * (np.bincount(own[own >= 0], minlength=sides.shape[1]) > 0)
            is_trained = present.min(axis=1) * present.max(axis=1) < 0
            test = np.flatnonzero(is_held[self.rows])
            self._splits.append(_Split(own, test, sides[:, codes[test]] * is_trained[:, None]))
        self.n_splits, self.numbers = splits.n_splits, splits.numbers
        self.tried: dict[tuple[Setting, int], Trial] = {}
        self.lines: list[tuple[Any, ...]] = []
        self._parts: dict[tuple[Setting, int], Part] = {}
        self._values: dict[int, KernelRows] = {}  # of columns as they are, by source
        self._gammas: dict[tuple[int, int], float] = {}  # of scaled columns, by source and split
        self._largest: dict[int, int] = {}  # exponents, by source
        self._held_out: dict[int, tuple[HeldOut, NDArray[np.intp]]] = {}  # by number of splits

    @property
    def can_judge(self) -> bool:
        """Whether any machine has rows of both sides to train on and to score."""
        return bool(np.isfinite(self.judge(None, self.n_splits).log_loss))

    def judge(self, setting: Setting | None, n_splits: int) -> Judged:
        """Fit sigmoids to the held-out scores of a setting's machines, on the first splits.

        Machines without scores of both sides are left out. None stands for scores of zero.
        """
        if n_splits not in self._held_out:
            self._held_out[n_splits] = self._without_scores(n_splits)
        held_out, order = self._held_out[n_splits]
        reach = np.inf
        if setting is not None:
            reach = self.sources[setting.source].reach
            parts = [self._parts[setting, split].scores for split in range(n_splits)]
            held_out = replace(held_out, scores=np.concatenate(parts)[order])
        if not len(held_out.scores) or not np.isfinite(held_out.scores).all():
            return Judged(held_out, float("inf"), np.empty(0))
        ends = np.flatnonzero(np.diff(held_out.machines)) + 1
        starts = np.concatenate([[0], ends, [len(held_out.machines)]])
        weights, mass = self.task.problem.weights, np.diff(starts)
        if weights is not None:
            weights = weights[held_out.rows]
            mass = np.add.reduceat(weights, starts[:-1])
        fit = platt(held_out.scores, held_out.positive, weights, starts, reach)
        return Judged(held_out, float(np.average(fit.log_losses, weights=mass)), fit.slopes)

    def _without_scores(self, n_splits: int) -> tuple[HeldOut, NDArray[np.intp]]:
        """Arrange what the first splits hold out by machine; return that, with scores of zero.

        Scores come split by split: the second result says which of them each place has.
        """
        splits = self._splits[:n_splits]
        label = np.hstack([split.labels for split in splits])
        is_judged = label.min(axis=1, initial=0) * label.max(axis=1, initial=0) < 0
        machines, at = np.nonzero(label * is_judged[:, None])
        rows = self.rows[np.concatenate([split.test for split in splits])[at]]
        of_parts = np.concatenate([np.nonzero(split.labels)[0] for split in splits])
        order = np.argsort(of_parts, kind="stable")
        nothing = HeldOut(rows, np.zeros(len(at)), label[machines, at] > 0, machines)
        return nothing, order[is_judged[of_parts[order]]]

    def run(
        self,
        settings: Sequence[Setting],
        shifts: Sequence[int] = (0,),
        n_splits: int | None = None,
    ) -> None:
        """Try settings with shifted exponents, on threads; raise Stopped when time is up.

        Settings that were tried before on these splits, or are out of range, are left out. Kernels
        that would be too narrow are as narrow as they may be.
        """
        n = self.n_splits if n_splits is None else min(n_splits, self.n_splits)
        for k in {s.source for s in settings} - self._values.keys():  # before threads need them
            self._values[k] = self._values_of(self.sources[k])
        shifted = [s._replace(exponent=s.exponent + shift) for s in settings for shift in shifts]
        possible = [
            self._bounded(s)
            for s in shifted
            if (s.exponent in EXPONENTS if self.sources[s.source].tunes_gamma else s.exponent == 0)
        ]
        new = [s for s in dict.fromkeys(possible) if (s, n) not in self.tried]
        if not new:
            return
        jobs = [(s, split) for s in new for split in range(n) if (s, split) not in self._parts]
        options, monitor = self.task.options, self.task.monitor
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
            setting, split = jobs[job]
            name = f"split {split} of {self.n_splits}, {len(self.rows)} rows, {tuple(setting)}"
            return monitor.once_from_state(name, partial(self._score, setting, split, options))

        parts = monitor.each(score, len(jobs), n_workers)
        self._parts.update(zip(jobs, parts, strict=True))
        for setting in new:
            self._note(setting, n)

    def _values_of(self, source: Source) -> KernelRows:
        """Return the rows of trials, with the kernel of a source."""
        values, options = source.values, self.task.options
        if len(self.rows) < len(self.task.problem.codes):
            same = [k for k in self._values if self.sources[k].view == source.view]
            # All kernels of a view share its rows.
            X = self._values[same[0]].X if same else values.some(self.rows).X
            values = replace(values, X=X)
        if source.relevance:
            return values
        # All gammas, splits and machines use the same distances.
        memory = options.memory_bytes // 2 // len(self.sources)
        check = self.task.monitor.check
        return values.with_metric(memory, n_jobs=options.n_threads, check=check)

    def _bounded(self, setting: Setting) -> Setting:
        """Bring an exponent back to the largest at which the kernel does more than look rows up."""
        k = setting.source
        if setting.exponent <= 0:
            return setting
        if k not in self._largest:
            self._largest[k] = EXPONENTS[-1]
            source, weights, rows = self.sources[k].for_all, self._row_weights, self._values[k]
            if source.relevance:
                rows = source.scaled(rows, weights)
            nearest = nearest_distance(rows.kernel.name, rows.X, weights)
            if nearest is not None:
                exponent = np.log2(LARGEST_DECAY / nearest) - np.log2(rows.kernel.gamma)
                self._largest[k] = int(np.clip(np.floor(exponent), 0, EXPONENTS[-1]))
        return setting._replace(exponent=min(setting.exponent, self._largest[k]))

    def _score(
        self, setting: Setting, split: int, options: GreedyOptions, monitor: Monitor
    ) -> Part:
        """Train on a split, and score its held-out rows in all machines."""
        codes, test, labels = self._splits[split]
        is_own = labels != 0  # a row is judged by the machines of its class
        rows, solutions = self._train(setting, split, options, monitor)
        gamma, n_stages = rows.kernel.gamma, sum(s.n_stages for s in solutions)
        if not solutions:  # if all kernels overflow, the final fit raises
            return Part(np.full(int(is_own.sum()), np.nan), n_stages, gamma)
        if len(solutions) == 1:
            support, coefficients = solutions[0].rows, solutions[0].coefficients[None, :]
        else:
            support, coefficients = _side_by_side(solutions, codes)
        scores = np.empty((len(test), len(solutions)))
        step = max(1, VALUES_AT_ONCE // max(len(support), 1))
        for begin in range(0, len(test), step):
            monitor.check()
            part = slice(begin, begin + step)
            scores[part] = rows.expand(test[part], support, coefficients, n_jobs=options.n_threads)
        scores[np.abs(scores) < LEAST_SCORE] = 0.0
        return Part(scores.T[is_own], n_stages, gamma)

    def _train(
        self, setting: Setting, split: int, options: GreedyOptions, monitor: Monitor
    ) -> tuple[KernelRows, list[GreedySolution]]:
        """Train on a split; return what the kernel sees, and no machines if it overflows."""
        monitor.check()
        codes, machines = self._splits[split].codes, self.task.problem.machines
        source, rows = self.sources[setting.source], self._values[setting.source]
        if source.relevance:
            at = setting.source, split
            number = split if self.numbers is None else self.numbers[split]
            rows = source.scaled(rows, self._row_weights, number, self._gammas.get(at))
            self._gammas[at] = rows.kernel.gamma
        kernel = replace(rows.kernel, gamma=rows.kernel.gamma * 2.0**setting.exponent)
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
                Problem(rows, codes, machines, self._weights),
                replace(options, max_visits=setting.visits, method="auto", may_store=False),
                monitor.part("largest open step", n_machines=len(machines)),
            )
        except greedy.NotFinite:
            return rows, []
        if monitor.stop_reason in {s.stop_reason for s in solutions}:
            raise Stopped
        return rows, solutions

    def _weights_of(self, codes: NDArray[np.int32]) -> FloatArray:
        """Weights of the rows that have a class; zero for the others."""
        return np.where(codes >= 0, 1.0 if self._weights is None else self._weights, 0.0)

    def _note(self, setting: Setting, n_splits: int) -> None:
        """Add a setting whose splits are scored to what was tried, and report it."""
        log_loss, source = self.judge(setting, n_splits).log_loss, self.sources[setting.source]
        trial = Trial(setting, n_splits, log_loss, source.handicap * log_loss)
        self.tried[setting, n_splits] = trial
        gamma, visits, n_rows = self._parts[setting, 0].gamma, setting.visits, len(self.rows)
        name, is_scaled = source.values.kernel.name, bool(source.relevance)
        line = (source.view, name, is_scaled, gamma, visits, n_rows, n_splits, log_loss)
        self.lines.append(line)
        what = f"choosing on {n_rows:,} rows: {name}, gamma {gamma:.3g}, max_visits {visits}"
        self.task.monitor.report(0, len(self.tried), log_loss, what)

    def ranked(
        self, source: int | None = None, visits: int | None = None, n_splits: int | None = None
    ) -> list[Trial]:
        """Return the trials on a given number of splits, or on all, best first.

        Only those of a source or with a number of visits, if given.
        """
        n = self.n_splits if n_splits is None else n_splits
        among = [
            trial
            for (s, of), trial in self.tried.items()
            if of == n and source in (None, s.source) and visits in (None, s.visits)
        ]

        def rank(trial: Trial) -> tuple[Any, ...]:
            s = trial.setting
            return trial.handicapped, s.source, s.visits, abs(s.exponent), s

        return sorted(among, key=rank)

    def climb(self, source: int, visits: int, step: int, n_splits: int | None = None) -> None:
        """Try the neighbours of the best gamma until both are worse."""
        for _ in EXPONENTS:
            n_tried = len(self.tried)
            best = self.ranked(source, visits, n_splits)[0]
            self.run([best.setting], (-step, step), n_splits)
            if len(self.tried) == n_tried:
                break

    def relevance(self, setting: Setting, random_state: np.random.RandomState) -> list[FloatArray]:
        """Relevance of the columns to the machines of a setting that was tried on all splits.

        Each split has its own, that of its training rows, so that held-out rows have no part in
        it. The list is empty where nothing moves the log-odds.
        """
        held_out, log_loss, fitted = self.judge(setting, self.n_splits)
        if not np.isfinite(log_loss):
            return []
        slopes = dict(zip(np.unique(held_out.machines), np.abs(fitted), strict=True))
        found = []
        for split, (codes, *_) in enumerate(self._splits):
            rows, solutions = self._train(setting, split, self.task.options, self.task.monitor)
            machines = [
                Sensed(s.rows, s.coefficients[None], slopes[m])
                for m, s in enumerate(solutions)
                if m in slopes
            ]
            weights = self._weights_of(codes)
            known = relevance_of(None, [rows.kernel], machines, rows.X, weights, random_state)
            if known is None:
                return []
            found.append(known)
        return found

    def n_stages(self, setting: Setting) -> float:
        """Mean number of stages of a setting, per split."""
        found = [part.n_stages for (s, _), part in self._parts.items() if s == setting]
        return float(np.mean(found))

    @property
    def n_trained(self) -> float:
        """Mean number of rows that splits train on."""
        return float(np.mean([(split.codes >= 0).sum() for split in self._splits]))


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
