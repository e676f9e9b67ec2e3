"""Choosing gamma and the visits allowed per row for the greedy stagewise SVM.

One gamma and one number of visits serve all machines: those whose held-out scores have the least
log-loss once a Platt sigmoid is fitted to them, averaged over the machines by their rows. The
search is a coarse grid of gamma for one visit, then climbs from its best for more visits, then one
finer step around the winner. On 50 data sets that does as well as the full grid, at a fifth of its
cost.

Above 2,500 rows the search runs on a subsample of 2,000; two splits of all rows compare its winner
with the neighbours, and all splits score what wins. Above 20,000 rows there are no folds of all
rows: one split is followed on training parts that grow fourfold, gamma with them (the best gamma
grows with the rows), up to four tenths of the rows. More visits than the fewest survive there only
where they clearly pay and are not expected to cost many plain fits. Where the rows come in several
views (standardised, and as they came), all that are not clearly worse are followed: which one is
best may only show on many rows.

Nothing here depends on a clock unless there is a time limit, nor on the number of threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from hardmargin.kernels import FloatArray, Kernel, KernelRows
from hardmargin.monitor import Monitor, Stopped
from hardmargin.selection.calibration import HeldOut
from hardmargin.selection.folds import (
    MAX_FOLDED_ROWS,
    QUICK_ROWS,
    Folds,
    growing_splits,
)
from hardmargin.selection.sigmoids import platt
from hardmargin.solvers import greedy
from hardmargin.solvers.greedy import GreedyOptions, GreedySolution
from hardmargin.solvers.problem import Machine, Problem

#: Visits allowed per row, to choose from.
VISITS = (1, 4, 64)

#: Gammas to begin with, and their range, as exponents of two relative to the kernel's gamma.
GRID = range(-8, 7, 2)
EXPONENTS = range(-16, 17)

#: How near to the best, as a factor of the log-loss, other visits and other views of the rows must
#: come to be tried again on more rows.
NEAR = 1.02
NEAR_VIEW = 1.15

#: Above `MAX_FOLDED_ROWS`: the largest cost of more visits, in plain fits, and the factor by which
#: they must lower the log-loss.
MAX_COST = 6.0
CLEAR_GAIN = 0.98

#: About how many times as long a stage with revisits takes as one without.
COST_OF_REVISITS = 2.0

#: Kernel values between two checks of the clock and of Ctrl-C.
VALUES_AT_ONCE = 50_000_000


class Candidate(NamedTuple):
    """Which view of the rows, the power of two times its gamma, and the visits."""

    view: int
    exponent: int
    visits: int


@dataclass(frozen=True)
class Task:
    """The problem that a choice is made for.

    Attributes
    ----------
    views : sequence of KernelRows
        The same rows under different scalings, to choose from; the first is used where nothing
        can be compared. The gamma of a view's kernel is where the search starts, its dtype the
        precision of kernel values while choosing.
    codes : (n,) int32 array
        Class of each row, -1 for rows that take no part.
    machines : sequence of (negative classes, positive classes)
        The two-class problems.
    weights : (n,) array or None
        Sample weights.
    options : GreedyOptions
        How to run; the visits are set here.
    tunes_gamma : bool
        Whether to choose gamma at all.
    visits : sequence of int
        Visits to choose from, in ascending order.
    monitor : Monitor
        The clock; it receives the log-loss of everything that is tried.
    is_quick : bool
        Choose as for more than 20,000 rows, and search on half as many.
    """

    views: Sequence[KernelRows]
    codes: NDArray[np.int32]
    machines: Sequence[Machine]
    weights: FloatArray | None = None
    options: GreedyOptions = field(default_factory=GreedyOptions)
    tunes_gamma: bool = True
    visits: Sequence[int] = VISITS
    monitor: Monitor = field(default_factory=Monitor)
    is_quick: bool = False

    @property
    def is_large(self) -> bool:
        """Whether there are no folds of all rows."""
        most = QUICK_ROWS if self.is_quick else MAX_FOLDED_ROWS
        return bool((self.codes >= 0).sum() > most)


@dataclass(frozen=True)
class GreedyChoice:
    """What was chosen, and on what basis.

    Attributes
    ----------
    view : int
        Which view of the rows.
    kernel : Kernel
        Its kernel, with the gamma of the choice.
    max_visits : int
        Visits allowed per row.
    held_out : HeldOut or None
        Scores of the choice, on the last rows that it was tried on; None where nothing could be
        compared.
    table : dict of arrays
        Everything that was tried: ``view``, ``gamma``, ``max_visits``, ``n_rows`` that it was tried
        on, and ``log_loss``.
    is_cut_short : bool
        Whether the time limit ended the search.
    """

    view: int
    kernel: Kernel
    max_visits: int
    held_out: HeldOut | None
    table: dict[str, NDArray[Any]]
    is_cut_short: bool


def choose_greedy(task: Task, folds: Folds, random_state: np.random.RandomState) -> GreedyChoice:
    """Choose gamma and the visits.

    Parameters
    ----------
    task : Task
        What for.
    folds : Folds
        The splits, over all rows.
    random_state : RandomState
        Draws subsamples.
    """
    searches: list[_Search] = []
    choice: tuple[_Search, Candidate] | None = None
    is_cut_short = False
    try:
        for splits in growing_splits(folds, task.codes, random_state, is_quick=task.is_quick):
            search = _Search(task, splits)
            if not len(search.machines):  # no split has two classes to train on and to score
                continue
            searches.append(search)
            if choice is None:
                _search(search)
            elif splits is folds:  # the last splits score the winner alone
                search.run([choice[1]])
            else:
                _follow(search, _survivors(choice[0]))
            choice = (search, search.best())
    except Stopped:
        is_cut_short = True
        tried = [search for search in searches if search.trials]
        if tried:
            # More visits take long on all rows: out of time, the fewest are the safe choice.
            search = tried[-1] if choice is None else choice[0]
            fewest = min(c.visits for c in search.trials)
            choice = (search, search.best(visits=fewest))
    tried_all = [(s, c) for s in searches for c in s.trials]
    table: dict[str, NDArray[Any]] = {
        "view": np.array([c.view for _, c in tried_all], dtype=np.intp),
        "gamma": np.array([s.trials[c].kernel.gamma for s, c in tried_all], dtype=np.float64),
        "max_visits": np.array([c.visits for _, c in tried_all], dtype=np.intp),
        "n_rows": np.array([len(s.rows) for s, _ in tried_all], dtype=np.intp),
        "log_loss": np.array([s.losses[c] for s, c in tried_all], dtype=np.float64),
    }
    if choice is None or not np.isfinite(choice[0].losses[choice[1]]):
        kernel = task.views[0].kernel
        return GreedyChoice(0, kernel, task.visits[0], None, table, is_cut_short)
    search, best = choice
    trial = search.trials[best]
    rows = search.rows[search.held_out_rows]
    held_out = HeldOut(rows, trial.scores, search.positive, search.machines)
    return GreedyChoice(best.view, trial.kernel, best.visits, held_out, table, is_cut_short)


def _search(search: _Search) -> None:
    """Search from scratch: all gammas for the fewest visits, then climbs from the best of them."""
    task = search.task
    few, *more = task.visits
    views = range(len(task.views))
    search.run([Candidate(view, 0, few) for view in views], GRID)
    for view in views:
        search.climb(view, few, step=2)
    view = search.best().view
    before = few
    for visits in more:
        first = Candidate(view, search.best(view, before).exponent, visits)
        search.run([first])
        if task.is_large and not _is_affordable(search, first):
            break
        # Many visits take the longest: one try shows whether more tries are worthwhile.
        if before == few or search.losses[first] < NEAR * search.losses[search.best(view, before)]:
            search.climb(view, visits, step=2)
        before = visits
    search.run([search.best()], (-1, 1))


def _follow(search: _Search, survivors: list[Candidate]) -> None:
    """Search around what was best on fewer rows: the best gamma can only grow with the rows."""
    search.run(survivors)
    least = search.losses[search.best()]
    for view in sorted({c.view for c in search.trials}):
        best = search.best(view)
        if search.losses[best] > NEAR_VIEW * least:
            continue
        search.run([best], (1,))
        if search.best(view) == best:
            search.run([best], (-1,))
        else:
            search.climb(view, best.visits, step=1)


def _survivors(search: _Search) -> list[Candidate]:
    """Choose what to try on more rows: the best candidates, and those near them."""
    best, few = search.best(), search.task.visits[0]
    of_visits = {
        visits: search.best(best.view, visits)
        for visits in sorted({c.visits for c in search.trials if c.view == best.view})
    }
    if not search.task.is_large:
        return [c for c in of_visits.values() if search.losses[c] < NEAR * search.losses[best]]
    plain = of_visits.pop(few)
    affordable = [
        c
        for c in of_visits.values()
        if _is_affordable(search, c) and search.losses[c] < CLEAR_GAIN * search.losses[plain]
    ]
    others = [
        search.best(v, few) for v in sorted({c.view for c in search.trials}) if v != best.view
    ]
    near = [c for c in others if search.losses[c] < NEAR_VIEW * search.losses[plain]]
    return [plain, *affordable, *near]


def _is_affordable(search: _Search, candidate: Candidate) -> bool:
    """Whether revisits cost no more than some plain fits, by the number of their stages."""
    plain = search.best(candidate.view, search.task.visits[0])
    n_plain, n_stages = search.trials[plain].n_stages, search.trials[candidate].n_stages
    return COST_OF_REVISITS * n_stages <= MAX_COST * n_plain


class Trial(NamedTuple):
    """One candidate on some rows: its kernel, and the scores of its splits, concatenated."""

    kernel: Kernel
    scores: FloatArray
    n_stages: int


class _Search:
    """The candidates tried on some rows, with splits into training and held-out rows."""

    def __init__(self, task: Task, splits: Folds) -> None:
        self.task = task
        self.trials: dict[Candidate, Trial] = {}
        self.losses: dict[Candidate, float] = {}
        self.rows = np.flatnonzero((splits.train | splits.test).any(axis=0))
        self.weights = None if task.weights is None else task.weights[self.rows]
        memory = task.options.memory_bytes // (2 * len(task.views))
        self.views = [  # all gammas, splits and machines use the same distances
            (view if len(self.rows) == len(task.codes) else view.some(self.rows)).with_metric(
                memory, n_jobs=task.options.n_threads
            )
            for view in task.views
        ]
        codes = task.codes[self.rows]
        self.train_codes = [
            np.where(train[self.rows], codes, -1).astype(np.int32) for train in splits.train
        ]
        self.test_rows = [np.flatnonzero(test[self.rows]) for test in splits.test]
        # The places of every machine's held-out scores among all that are evaluated.
        side = Problem(task.views[0], task.codes, task.machines).sides

        def has_both_sides(labels: NDArray[np.int8]) -> NDArray[np.bool_]:
            return np.asarray((labels < 0).any(axis=1) & (labels > 0).any(axis=1))

        labels = []
        for train, test in zip(self.train_codes, self.test_rows, strict=True):
            present = np.bincount(train[train >= 0], minlength=side.shape[1]) > 0
            # A machine that lacks a side in a split is neither trained nor judged there.
            labels.append(side[:, codes[test]] * has_both_sides(side[:, present])[:, None])
        label = np.hstack(labels)
        self.machines, self.at = np.nonzero(label * has_both_sides(label)[:, None])
        self.positive = label[self.machines, self.at] > 0
        self.starts = np.flatnonzero(np.diff(self.machines, prepend=-1, append=len(side)))
        self.held_out_rows = np.concatenate(self.test_rows)[self.at]

    def best(self, view: int | None = None, visits: int | None = None) -> Candidate:
        """Return the candidate of least loss, of a view and number of visits if given."""
        among = [c for c in self.trials if view in (None, c.view) and visits in (None, c.visits)]
        return min(among, key=lambda c: (self.losses[c], c.view, c.visits, abs(c.exponent), c))

    def climb(self, view: int, visits: int, step: int) -> None:
        """Try the neighbours of the best gamma until both are worse."""
        for _ in EXPONENTS:
            n_tried = len(self.trials)
            self.run([self.best(view, visits)], (-step, step))
            if len(self.trials) == n_tried:
                break

    def run(self, candidates: Sequence[Candidate], shifts: Sequence[int] = (0,)) -> None:
        """Try candidates, their exponents shifted, on threads; raises Stopped when time is up.

        Those that were tried before, or are out of range, are left out.
        """
        task, n_splits = self.task, len(self.train_codes)
        exponents = EXPONENTS if task.tunes_gamma else (0,)
        shifted = [c._replace(exponent=c.exponent + s) for c in candidates for s in shifts]
        new = [c for c in shifted if c not in self.trials and c.exponent in exponents]
        values = []
        for candidate in new:
            rows = self.views[candidate.view]
            gamma = rows.kernel.gamma * 2.0**candidate.exponent
            values.append(replace(rows, kernel=replace(rows.kernel, gamma=gamma)))
        options, n_workers = task.options, min(task.options.n_threads, n_splits * len(new))
        if n_workers > 1:
            n_workers = values[0].machines_at_once(
                n_workers, options.memory_bytes, share_rows=False
            )
            options = replace(
                options,
                n_threads=options.n_threads if n_workers == 1 else 1,
                memory_bytes=options.memory_bytes // n_workers,
            )

        def score(job: int, monitor: Monitor) -> tuple[FloatArray, int]:
            k, split = divmod(job, n_splits)
            with_visits = replace(options, max_visits=new[k].visits, may_store=False)
            return self._score(values[k], split, with_visits, monitor)

        scored = task.monitor.each(score, n_splits * len(new), n_workers)
        for k, candidate in enumerate(new):
            of_splits = scored[k * n_splits : (k + 1) * n_splits]
            scores = np.concatenate([scores for scores, _ in of_splits])[self.at, self.machines]
            log_loss = np.inf
            if np.isfinite(scores).all():
                weights = None if self.weights is None else self.weights[self.held_out_rows]
                fit = platt(scores, self.positive, weights, self.starts)
                mass = np.diff(self.starts)
                if weights is not None:
                    mass = np.add.reduceat(weights, self.starts[:-1])
                log_loss = float(np.average(fit.log_losses, weights=mass))
            kernel, n_stages = values[k].kernel, sum(n for _, n in of_splits)
            self.trials[candidate] = Trial(kernel, scores, n_stages)
            self.losses[candidate] = log_loss
            tried = f"gamma {kernel.gamma:.3g}, max_visits {candidate.visits}"
            where = f"choosing on {len(self.rows):,} rows: {tried}"
            task.monitor.report(0, len(self.trials), log_loss, where)

    def _score(
        self, rows: KernelRows, split: int, options: GreedyOptions, monitor: Monitor
    ) -> tuple[FloatArray, int]:
        """Train on a split; return the held-out scores of all machines, and the stages taken."""
        monitor.check()
        task, codes, test = self.task, self.train_codes[split], self.test_rows[split]
        kernel, X = rows.kernel, rows.X
        may_overflow = task.tunes_gamma and not kernel.has_unit_diagonal
        if may_overflow and not np.isfinite(kernel.diagonal(X)).all():
            # Reject a gamma at which the kernel overflows; if all do, the final fit raises.
            return np.full((len(test), len(task.machines)), np.nan), 0
        solutions = greedy.solve(
            Problem(rows, codes, task.machines, self.weights),
            options,
            monitor.part("largest open step", n_machines=len(task.machines)),
        )
        if monitor.stop_reason in {s.stop_reason for s in solutions}:
            raise Stopped
        if len(solutions) == 1:
            support, coefficients = solutions[0].rows, solutions[0].coefficients[None, :]
        else:
            support, coefficients = _side_by_side(solutions, codes)
        scores = np.empty((len(test), len(task.machines)))
        step = max(1, VALUES_AT_ONCE // max(len(support), 1))
        for begin in range(0, len(test), step):
            monitor.check()
            part = slice(begin, begin + step)
            scores[part] = rows.expand(test[part], support, coefficients, n_jobs=options.n_threads)
        return scores, sum(s.n_stages for s in solutions)


def _side_by_side(
    solutions: list[GreedySolution], codes: NDArray[np.int32]
) -> tuple[NDArray[np.int32], Any]:
    """Support rows of several machines, sorted by class, and the coefficients on them."""
    rows = np.concatenate([s.rows for s in solutions])
    support = np.unique(rows)
    support = support[np.argsort(codes[support], kind="stable")]
    position = np.empty(len(codes), dtype=np.intp)
    position[support] = np.arange(len(support))
    return support, sp.csr_array(
        (
            np.concatenate([s.coefficients for s in solutions]),
            position[rows],
            np.cumsum([0, *(len(s.rows) for s in solutions)]),
        ),
        shape=(len(solutions), len(support)),
    )
