"""Choosing the kernel, gamma and the visits allowed per row for the greedy stagewise SVM.

One candidate serves all machines: the one of least held-out log-loss (``greedy_trials.py``).

1. Kernels and views of the rows are compared on two splits, with the fewest visits and a coarse
   search of gamma. Rows as they came must be clearly better than standardised ones.
2. The columns are scaled by their relevance to the best of these, by that of each split's training
   rows alone, so that held-out rows have no part in it; the kernels are tried again.
3. What is near the best so far is tried with more visits.
4. The best of all climbs along gamma on all splits, then with more visits, then in finer steps.

Above 2,500 rows, that is done on a subsample of 2,000. What came near the best is followed on one
split, with training parts that grow fourfold up to four tenths of the rows, gamma with them: the
best gamma grows with the rows. More visits survive only where they clearly pay and are not expected
to cost many plain fits. Up to 20,000 rows, two splits of all rows then score the winner.

Nothing here depends on a clock unless there is a time limit, nor on the number of threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hardmargin.kernels import DISTANCE_KERNELS, FloatArray, Kernel, View, is_sparse
from hardmargin.monitor import Monitor, Stopped
from hardmargin.selection.calibration import HeldOut
from hardmargin.selection.folds import MAX_FOLDED_ROWS, Folds, growing_splits
from hardmargin.selection.greedy_trials import Candidate, Record, Source, TrialOptions, Trials
from hardmargin.solvers.greedy import GreedyOptions
from hardmargin.solvers.problem import Machine

#: Visits allowed per row, to choose from.
VISITS = (1, 4, 64)

#: Gammas to begin with, as exponents of two relative to the source's gamma, and those to go on with
#: where none of these has less than this share of the log-loss of a constant.
GRID = (-4, 0, 4)
WIDE_GRID = (-12, -8, 8, 12)
NOTHING_LEARNED = 0.97

#: Splits that sources are compared on.
FIRST_SPLITS = 2

#: How near to the best, as a factor of the log-loss, another source must come to be tried with more
#: visits or on more rows, and how many of them.
NEAR_SOURCE = 1.05
MOST_SOURCES = 4

#: The same for another view, on more rows: which view is best may only show on many.
NEAR_VIEW = 1.15

#: Scaled columns must lower the log-loss by this factor: relevance may be an accident.
HANDICAP_SCALED = 1.01

#: How near to the best other visits must come to be tried again.
NEAR = 1.02

#: On growing parts, more visits must lower the log-loss by this factor. They may cost so many plain
#: fits, or so many multiplications in a fit of all rows (a few seconds).
CLEAR_GAIN = 0.98
MAX_COST = 6.0
MAX_WORK = 3e10

#: Splits of all rows score a choice of more visits if its fit takes no more multiplications.
MAX_JUDGED_WORK = 2e10

#: A kernel value costs as much as this many multiplications, besides one for each column.
COST_OF_VALUE = 8

#: About how many times as long a stage with revisits takes as one without.
COST_OF_REVISITS = 2.0


@dataclass(frozen=True)
class Task:
    """The problem that a choice is made for.

    Attributes
    ----------
    sources : sequence of Source
        Kernels and views of the rows to choose from; the first is used where nothing can be
        compared. Those of the first view may be scaled by relevance.
    codes : (n,) int32 array
        Class of each row, -1 for rows that take no part.
    machines : sequence of (negative classes, positive classes)
        The two-class problems.
    weights : (n,) array or None
        Sample weights.
    options : GreedyOptions
        How to run; the visits are set here.
    visits : sequence of int
        Visits to choose from, in ascending order.
    has_relevance : bool
        Whether columns may be scaled by their relevance.
    monitor : Monitor
        The clock; it receives the log-loss of everything that is tried.
    is_quick : bool
        Search on half as many rows, and follow one split from a thousand rows on.
    """

    sources: Sequence[Source]
    codes: NDArray[np.int32]
    machines: Sequence[Machine]
    weights: FloatArray | None = None
    options: GreedyOptions = field(default_factory=GreedyOptions)
    visits: Sequence[int] = VISITS
    has_relevance: bool = False
    monitor: Monitor = field(default_factory=Monitor)
    is_quick: bool = False


@dataclass(frozen=True)
class GreedyChoice:
    """What was chosen, and on what basis.

    Attributes
    ----------
    source : Source
        Which rows, and the relevance of their columns if they are scaled by it.
    kernel : Kernel
        The kernel, with the gamma of the choice; it has a view if columns are scaled.
    max_visits : int
        Visits allowed per row.
    held_out : HeldOut or None
        Scores of the choice, on the last rows that it was tried on; None where nothing could be
        compared.
    table : dict of arrays
        Everything that was tried: ``view``, ``kernel``, ``has_relevance``, ``gamma``,
        ``max_visits``, ``n_rows`` and ``n_splits`` that it was tried on, and ``log_loss``.
    is_cut_short : bool
        Whether the time limit ended the search.
    """

    source: Source
    kernel: Kernel
    max_visits: int
    held_out: HeldOut | None
    table: dict[str, NDArray[Any]]
    is_cut_short: bool


class _Found(NamedTuple):
    """The best candidate so far, and the trials that say so."""

    trials: Trials
    candidate: Candidate
    n_splits: int


def choose_greedy(task: Task, folds: Folds, random_state: np.random.RandomState) -> GreedyChoice:
    """Choose the source, gamma and the visits.

    Parameters
    ----------
    task : Task
        What for.
    folds : Folds
        The splits, over all rows.
    random_state : RandomState
        Draws subsamples.
    """
    sources = list(task.sources)
    levels: list[tuple[list[Source], list[Record]]] = []  # the scores of trials take more memory
    trials: Trials | None = None
    found: _Found | None = None
    is_cut_short = False
    try:
        for splits in growing_splits(folds, task.codes, random_state, is_quick=task.is_quick):
            keeps = found is None and task.has_relevance
            options = TrialOptions(task.options, task.monitor, keeps_machines=keeps)
            trials = Trials(sources, task.codes, task.machines, task.weights, splits, options)
            if not trials.can_judge:  # no split has two classes to train on and to score
                continue
            levels.append((trials.sources, trials.records))
            if found is None:
                found = _search(trials, task, random_state, is_last=splits is folds)
                sources = [replace(source.for_all, handicap=1.0) for source in trials.sources]
            elif splits.n_splits > 1:  # the last splits score the winner alone, if that is quick
                is_plain = found.candidate.visits == task.visits[0]
                if is_plain or _work(found.trials, found.candidate, task) <= MAX_JUDGED_WORK:
                    trials.run([found.candidate])
                    found = _Found(trials, found.candidate, trials.n_splits)
            else:
                _follow(trials, _survivors(found, task), task.visits[0])
                found = _Found(trials, trials.best(), trials.n_splits)
    except Stopped:
        is_cut_short = True
        found = _so_far(trials if found is None else found.trials)
    table = _table(levels)
    if found is None or not np.isfinite(found.trials.loss(found.candidate, found.n_splits)):
        first = task.sources[0]
        return GreedyChoice(first, first.values.kernel, task.visits[0], None, table, is_cut_short)
    trials, best, n_splits = found
    source, places = trials.sources[best.source].for_all, trials.places(n_splits)
    kernel = source.of(None, 0).kernel
    view = View("standardized", scales=source.scales[0]) if source.relevance else None
    return GreedyChoice(
        source,
        replace(kernel, gamma=kernel.gamma * 2.0**best.exponent, view=view),
        best.visits,
        HeldOut(
            trials.rows[places.rows],
            trials.scores(best, places, n_splits),
            places.positive,
            places.machines,
        ),
        table,
        is_cut_short,
    )


def _search(
    trials: Trials, task: Task, random_state: np.random.RandomState, *, is_last: bool
) -> _Found:
    """Search from scratch; `is_last` if no more rows follow, so that all splits decide."""
    few, *more = task.visits
    first = min(FIRST_SPLITS, trials.n_splits)
    is_large = (task.codes >= 0).sum() > MAX_FOLDED_ROWS
    _try_sources(trials, few, first, in_all_views=bool(is_large))  # 1.
    if task.has_relevance:
        _try_relevance(trials, few, first, random_state)  # 2.
        trials.drop_machines()
    if more:  # 3.
        near = [c._replace(visits=more[0]) for c in _near(trials, few, first)]
        trials.run(near, (-2, 0), first)
    n_splits = trials.n_splits if is_last else first
    trials.run(_near(trials, None, first), n_splits=n_splits)
    source = trials.best(n_splits=n_splits).source
    for before, visits in pairwise(task.visits):  # 4.
        start = trials.best(source, before, first)
        trials.run([start._replace(visits=visits)], n_splits=first)
        # Many visits take the longest: one try shows whether more tries are worthwhile.
        after = trials.loss(trials.best(source, visits, first), first)
        if before == few or after < NEAR * trials.loss(start, first):
            trials.climb(source, visits, 2, first)
    least = NEAR * trials.loss(trials.best(source, n_splits=first), first)
    of_visits = [trials.best(source, visits, first) for visits in task.visits]
    trials.run([c for c in of_visits if trials.loss(c, first) < least], n_splits=n_splits)
    trials.run([trials.best(source, n_splits=n_splits)], (-1, 1), n_splits)
    return _Found(trials, trials.best(source, n_splits=n_splits), n_splits)


def _try_sources(trials: Trials, visits: int, n_splits: int, *, in_all_views: bool) -> None:
    """Try all kernels on the first view of the rows, and all or the best of them on the others."""
    names = [source.values.kernel.name for source in trials.sources]
    views = [source.view for source in trials.sources]
    best = ""
    for view in sorted(set(views)):
        for k, name in enumerate(names):
            if views[k] == view and (in_all_views or best in ("", name)):
                _try_gammas(trials, Candidate(k, 0, visits), n_splits)
        best = names[trials.best(n_splits=n_splits).source]


def _try_gammas(trials: Trials, start: Candidate, n_splits: int) -> None:
    """Try the gammas of a source, from coarse to fine."""
    trials.run([start], GRID, n_splits)
    least = trials.loss(trials.best(start.source, n_splits=n_splits), n_splits)
    if least > NOTHING_LEARNED * trials.loss_of_constant(n_splits):
        trials.run([start], WIDE_GRID, n_splits)
    for step in (4, 2):
        trials.climb(start.source, start.visits, step, n_splits)


def _try_relevance(
    trials: Trials, visits: int, n_splits: int, random_state: np.random.RandomState
) -> None:
    """Scale the columns by their relevance to the best candidate, and try the kernels again."""
    best = trials.best(visits=visits, n_splits=n_splits)
    starts = [
        trials.best(k, visits, n_splits)
        for k, source in enumerate(trials.sources)
        if source.view == 0 and source.values.kernel.name in DISTANCE_KERNELS
    ]
    if best not in starts:
        return
    trials.run([best])
    relevance = trials.relevance(best, random_state)
    if relevance is None:
        return
    for start in starts:
        plain = trials.sources[start.source]
        trials.sources.append(replace(plain, relevance=relevance, handicap=HANDICAP_SCALED))
        k = len(trials.sources) - 1
        trials.run([start._replace(source=k)], (0, 2), n_splits)
        trials.climb(k, visits, 2, n_splits)


def _near(trials: Trials, visits: int | None, n_splits: int) -> list[Candidate]:
    """Best candidates of the sources that come near the best of all, which is the first.

    There are not many of them, and one of every view that comes near.
    """
    sources = dict.fromkeys(c.source for c in trials.tried(n_splits))
    bests = [trials.best(k, visits, n_splits) for k in sources if trials.has(k, visits, n_splits)]
    bests.sort(key=lambda c: trials.handicapped(c, n_splits))
    least = trials.handicapped(bests[0], n_splits)
    near = [c for c in bests if trials.handicapped(c, n_splits) <= NEAR_SOURCE * least]
    near = near[:MOST_SOURCES]
    for c in bests:
        views = {trials.sources[k.source].view for k in near}
        is_another = trials.sources[c.source].view not in views
        if is_another and trials.loss(c, n_splits) <= NEAR_SOURCE * least:
            near.append(c)
    return near


def _in_all_views(trials: Trials, few: int, n_splits: int) -> list[Candidate]:
    """Near candidates, and the best of every other view that is not clearly worse.

    Which view is best may only show on many rows. Views are compared by plain candidates: of
    columns as they are, with the fewest visits.
    """
    near = _near(trials, None, n_splits)
    plain = [
        trials.best(k, few, n_splits)
        for k, source in enumerate(trials.sources)
        if not source.relevance and trials.has(k, few, n_splits)
    ]
    plain.sort(key=lambda c: trials.loss(c, n_splits))
    for c in plain:
        views = {trials.sources[k.source].view for k in near}
        is_another = trials.sources[c.source].view not in views
        if is_another and trials.loss(c, n_splits) <= NEAR_VIEW * trials.loss(plain[0], n_splits):
            near.append(c)
    return near


def _survivors(found: _Found, task: Task) -> list[Candidate]:
    """Choose what to try on more rows: the best of near sources, and more visits if they pay."""
    trials, _, n_splits = found
    few, *more = task.visits
    survivors = []
    for near in _in_all_views(trials, few, n_splits):
        plain = trials.best(near.source, few, n_splits)
        least = CLEAR_GAIN * trials.loss(plain, n_splits)
        with_more = [
            trials.best(near.source, visits, n_splits)
            for visits in more
            if trials.has(near.source, visits, n_splits)
        ]
        survivors += [plain] + [
            c
            for c in with_more
            if trials.loss(c, n_splits) < least and _is_affordable(trials, c, plain, task)
        ]
    return survivors


def _is_affordable(trials: Trials, candidate: Candidate, plain: Candidate, task: Task) -> bool:
    """Whether revisits cost no more than some plain fits, or little anyway."""
    n_stages, n_plain = trials.n_stages(candidate), trials.n_stages(plain)
    is_cheap = COST_OF_REVISITS * n_stages <= MAX_COST * n_plain
    return is_cheap or _work(trials, candidate, task) <= MAX_WORK


def _work(trials: Trials, candidate: Candidate, task: Task) -> float:
    """Estimate the multiplications in a fit of all rows, from the stages that fewer rows took."""
    X, sizes = trials.sources[candidate.source].values.X, np.bincount(task.codes[task.codes >= 0])
    n_columns = X.nnz / X.shape[0] if is_sparse(X) else X.shape[1]
    n_machine_rows = np.mean([sizes[[*one, *other]].sum() for one, other in task.machines])
    n_stages = trials.n_stages(candidate) * sizes.sum() / trials.n_trained
    return float(n_stages * n_machine_rows * (n_columns + COST_OF_VALUE))


def _follow(trials: Trials, survivors: list[Candidate], few: int) -> None:
    """Search around what was best on fewer rows: the best gamma can only grow with the rows."""
    trials.run(survivors)
    for near in _in_all_views(trials, few, trials.n_splits):
        trials.run([near], (1,))
        if trials.best(near.source) != near:
            trials.climb(near.source, near.visits, step=1)
        elif near.visits == few:  # more visits take long
            trials.run([near], (-1,))


def _so_far(trials: Trials | None) -> _Found | None:
    """Return the best that was tried before time was up, with the fewest visits.

    More visits take long on all rows: out of time, the fewest are the safe choice.
    """
    if trials is None or not trials.records:
        return None
    n_splits = min(record.n_splits for record in trials.records)
    fewest = min(c.visits for c in trials.tried(n_splits))
    return _Found(trials, trials.best(visits=fewest, n_splits=n_splits), n_splits)


def _table(levels: list[tuple[list[Source], list[Record]]]) -> dict[str, NDArray[Any]]:
    tried = [(sources[r.candidate.source], r) for sources, records in levels for r in records]
    return {
        "view": np.array([source.view for source, _ in tried], dtype=np.intp),
        "kernel": np.array([source.values.kernel.name for source, _ in tried], dtype="U11"),
        "has_relevance": np.array([bool(source.relevance) for source, _ in tried], dtype=bool),
        "gamma": np.array([r.gamma for _, r in tried], dtype=np.float64),
        "max_visits": np.array([r.candidate.visits for _, r in tried], dtype=np.intp),
        "n_rows": np.array([r.n_rows for _, r in tried], dtype=np.intp),
        "n_splits": np.array([r.n_splits for _, r in tried], dtype=np.intp),
        "log_loss": np.array([r.log_loss for _, r in tried], dtype=np.float64),
    }
