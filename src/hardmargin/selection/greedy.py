"""Choosing the kernel, gamma and the visits allowed per row for the greedy stagewise SVM.

One setting serves all machines: the one of least held-out log-loss (``greedy_trials.py``).

1. Kernels and views of the rows are compared on two splits, with the fewest visits and a coarse
   search of gamma. Rows as they came must be clearly better than standardised ones.
2. The columns are scaled by their relevance to the best of these, and the kernels are tried again.
   Each split's relevance is that of its training rows, so that held-out rows have no part in it,
   neither here nor in the splits of more rows that follow.
3. What is near the best so far is tried with more visits.
4. The best of all climbs along gamma on all splits, then with more visits, then in finer steps.

Kernels that are so narrow that they only look up the nearest row are never tried.

Above 2,500 rows, all this is done on a subsample of 2,000. What came near the best is followed on
one split, with training parts that grow fourfold up to four tenths of the rows. Larger gammas are
tried on the way, as the best gamma grows with the rows. More visits survive only where they clearly
pay and are not expected to cost as much as many plain fits. Up to 20,000 rows, three splits of all
rows then score the winner.

Nothing here depends on the number of threads or, unless there is a time limit, on the clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hardmargin.kernels import FloatArray, Kernel, KernelRows, View, is_sparse
from hardmargin.monitor import Stopped
from hardmargin.selection.calibration import HeldOut
from hardmargin.selection.folds import MAX_FOLDED_ROWS, Folds, growing_splits
from hardmargin.selection.greedy_sources import Source, row_weights
from hardmargin.selection.greedy_trials import TABLE, GreedyTask, Setting, Trial, Trials
from hardmargin.solvers.problem import Problem

#: Gammas to begin with, as exponents of two relative to the source's gamma, and those to go on with
#: if the least log-loss so far is above this share of a constant's.
GRID = (-4, 0, 4)
WIDE_GRID = (-12, -8, 8, 12)
NOTHING_LEARNED = 0.97

#: Splits that sources are compared on.
FIRST_SPLITS = 2

#: How near to the best, as a factor of the log-loss, another source must come to be tried with more
#: visits or on more rows, and the most sources that are tried.
NEAR_SOURCE = 1.05
MOST_SOURCES = 4

#: The same for another view, on more rows: which view is best may show only on many.
NEAR_VIEW = 1.15

#: Scaled columns must lower the log-loss by this factor: relevance may be due to chance.
HANDICAP_SCALED = 1.01

#: How near to the best another number of visits must come to be tried again.
NEAR = 1.02

#: On growing parts, more visits must lower the log-loss by this factor. They may cost at most
#: this many plain fits, or this many multiplications in a fit of all rows (a few seconds).
CLEAR_GAIN = 0.98
MAX_COST = 6.0
MAX_WORK = 3e10

#: A choice of more visits is scored on splits of all rows if its fit takes at most this many
#: multiplications.
MAX_JUDGED_WORK = 2e10

#: A kernel value costs as much as this many multiplications, besides one for each column.
COST_OF_VALUE = 8

#: A stage with revisits takes about this many times as long as one without.
COST_OF_REVISITS = 2.0


@dataclass(frozen=True)
class GreedyChoice:
    """What was chosen, and on what basis.

    Attributes
    ----------
    values : KernelRows
        The rows of a view, and the kernel with its gamma. If columns are scaled by their relevance,
        the kernel does so.
    seen : KernelRows
        The rows as the kernel sees them, their columns scaled if they are to be; its kernel does
        not scale them again.
    max_visits : int
        Visits allowed per row.
    view : int
        Which view the rows are of.
    relevance : (d,) array or None
        Relevance of the columns, if they are scaled by it.
    held_out : HeldOut or None
        Scores of the choice, on the last rows that it was tried on; None where nothing could be
        compared.
    table : dict of arrays
        Everything that was tried: ``view``, ``kernel``, ``has_relevance``, ``gamma``,
        ``max_visits``, ``n_rows`` and ``n_splits`` that it was tried on, and ``log_loss``. Empty
        where there was nothing to choose.
    is_cut_short : bool
        Whether the time limit ended the search.
    reach : float
        How far log-odds at a score of zero may be from those of the shares of the classes.
    """

    values: KernelRows
    seen: KernelRows
    max_visits: int
    view: int = 0
    relevance: FloatArray | None = None
    held_out: HeldOut | None = None
    table: dict[str, NDArray[Any]] = field(default_factory=dict)
    is_cut_short: bool = False
    reach: float = np.inf

    @property
    def kernel(self) -> Kernel:
        """The kernel."""
        return self.values.kernel


class _Found(NamedTuple):
    """The best trial so far, and those that it was compared with."""

    trials: Trials
    trial: Trial


def choose_greedy(
    task: GreedyTask, sources: Sequence[Source], folds: Folds, random_state: np.random.RandomState
) -> GreedyChoice:
    """Choose the source, gamma and the visits.

    Parameters
    ----------
    task : GreedyTask
        What to choose for.
    sources : sequence of Source
        Kernels and views of the rows to choose from, view after view; the first is used where
        nothing can be compared.
    folds : Folds
        The splits, over all rows.
    random_state : RandomState
        Draws subsamples.
    """
    codes = task.problem.codes
    levels: list[list[tuple[Any, ...]]] = []  # without the scores of trials, which take more memory
    trials: Trials | None = None
    found: _Found | None = None
    is_cut_short = False
    try:
        for splits in growing_splits(folds, codes, random_state, is_quick=task.is_part):
            trials = Trials(task, splits, sources)
            if not trials.can_judge:  # no split has two classes to train on and to score
                continue
            levels.append(trials.lines)
            if found is None:
                found = _Found(trials, _search(trials, random_state, is_last=splits is folds))
                sources = [replace(source, handicap=1.0) for source in trials.sources]
            elif trials.n_splits == 1:
                _follow(trials, _survivors(found))
                found = _Found(trials, trials.ranked()[0])
            elif _is_cheap(found):  # the last splits score the winner alone
                trials.run([found.trial.setting])
                found = _Found(trials, trials.ranked()[0])
    except Stopped:
        is_cut_short = True
        found = _so_far(trials if found is None else found.trials)
    lines = np.array([line for level in levels for line in level], dtype=TABLE)
    table = {name: lines[name].copy() for name in lines.dtype.names or ()}
    source, setting, held_out = sources[0], Setting(0, 0, task.visits[0]), None
    if found is not None and np.isfinite(found.trial.log_loss):
        trials, setting = found.trials, found.trial.setting
        source = trials.sources[setting.source].for_all
        held_out = trials.judge(setting, found.trial.n_splits).held_out
    relevance = source.relevance[0] if source.relevance else None
    values, seen = _settled(source, setting, task.problem)
    return GreedyChoice(
        values,
        seen,
        setting.visits,
        source.view,
        relevance,
        held_out,
        table,
        is_cut_short,
        source.reach,
    )


def _search(trials: Trials, random_state: np.random.RandomState, *, is_last: bool) -> Trial:
    """Search from scratch; `is_last` if no more rows follow, so that all splits decide."""
    few, *more = trials.task.visits
    first = min(FIRST_SPLITS, trials.n_splits)
    # 1. Compare kernels and views, gammas from coarse to fine. Further views have the best kernel
    # alone, unless there are many rows: another kernel may then be best there.
    of_constant = trials.judge(None, first).log_loss
    in_all_views = (trials.task.problem.codes >= 0).sum() > MAX_FOLDED_ROWS
    names = [source.values.kernel.name for source in trials.sources]
    for k, source in enumerate(trials.sources):
        if source.view > 0 and not in_all_views:
            best = trials.ranked(n_splits=first)[0].setting
            if names[k] != names[best.source]:
                continue
        plain = Setting(k, 0, few)
        trials.run([plain], GRID, first)
        if trials.ranked(k, few, first)[0].log_loss > NOTHING_LEARNED * of_constant:
            trials.run([plain], WIDE_GRID, first)
        for step in (4, 2):
            trials.climb(k, few, step, first)
    # 2. Scale the columns by relevance to the best, if that is a distance kernel on the first view.
    # Splits that follow need the relevance of their number.
    best = trials.ranked(visits=few, n_splits=first)[0].setting
    if trials.sources[best.source].can_scale and trials.numbers is None:
        trials.run([best])
        relevance = trials.relevance(best, random_state)
        can_scale = [k for k, source in enumerate(trials.sources) if source.can_scale]
        for k in can_scale if relevance else []:
            scaled = replace(trials.sources[k], relevance=relevance, handicap=HANDICAP_SCALED)
            trials.sources.append(scaled)
            plain, last = trials.ranked(k, few, first)[0].setting, len(trials.sources) - 1
            trials.run([plain._replace(source=last)], (0, 2), first)
            trials.climb(last, few, 2, first)
    # 3. Try what is near with more visits; then the source is settled.
    if more:
        near = [trial.setting._replace(visits=more[0]) for trial in _near(trials, few, first)]
        trials.run(near, (-2, 0), first)
    n_splits = trials.n_splits if is_last else first
    trials.run([trial.setting for trial in _near(trials, None, first)], n_splits=n_splits)
    k = trials.ranked(n_splits=n_splits)[0].setting.source
    # 4. Climb, with more and more visits, then in finer steps. Many visits take the longest: one
    # try shows whether more tries are worthwhile.
    for before, visits in pairwise(trials.task.visits):
        start = trials.ranked(k, before, first)[0]
        trials.run([start.setting._replace(visits=visits)], n_splits=first)
        after = trials.ranked(k, visits, first)[0]
        if before == few or after.log_loss < NEAR * start.log_loss:
            trials.climb(k, visits, 2, first)
    least = NEAR * trials.ranked(k, n_splits=first)[0].log_loss
    of_visits = [trials.ranked(k, visits, first)[0] for visits in trials.task.visits]
    trials.run([t.setting for t in of_visits if t.log_loss < least], n_splits=n_splits)
    trials.run([trials.ranked(k, n_splits=n_splits)[0].setting], (-1, 1), n_splits)
    return trials.ranked(k, n_splits=n_splits)[0]


def _near(trials: Trials, visits: int | None, n_splits: int) -> list[Trial]:
    """Return the best trials of the sources that come near the best of all, which is the first.

    There are only a few, but at least one of every view that comes near.
    """
    bests: dict[int, Trial] = {}
    for trial in trials.ranked(visits=visits, n_splits=n_splits):
        bests.setdefault(trial.setting.source, trial)
    least = min(trial.handicapped for trial in bests.values())
    near = [t for t in bests.values() if t.handicapped <= NEAR_SOURCE * least][:MOST_SOURCES]
    others = [t for t in bests.values() if t.log_loss <= NEAR_SOURCE * least]
    return near + _of_other_views(trials, near, others)


def _of_other_views(trials: Trials, near: list[Trial], others: list[Trial]) -> list[Trial]:
    """Return the first of the other trials of every view that those near lack."""
    firsts: dict[int, Trial] = {}
    for trial in others:
        firsts.setdefault(trials.sources[trial.setting.source].view, trial)
    known = {trials.sources[trial.setting.source].view for trial in near}
    return [trial for view, trial in firsts.items() if view not in known]


def _survivors(found: _Found) -> list[Setting]:
    """Choose what to try on more rows: the best of near sources, and more visits if they pay."""
    trials, n_splits = found.trials, found.trial.n_splits
    few, *more = trials.task.visits
    survivors = []
    for near in _in_all_views(trials, n_splits):
        source = near.setting.source
        plain = trials.ranked(source, few, n_splits)[0]
        with_more = [t for visits in more for t in trials.ranked(source, visits, n_splits)[:1]]
        survivors += [plain.setting] + [
            trial.setting
            for trial in with_more
            if trial.log_loss < CLEAR_GAIN * plain.log_loss
            and _is_affordable(trials, trial.setting, plain.setting)
        ]
    return survivors


def _in_all_views(trials: Trials, n_splits: int) -> list[Trial]:
    """Near trials, and the best of every other view that is not clearly worse.

    Which view is best may only show on many rows. Views are compared by plain settings: of columns
    as they are, with the fewest visits.
    """
    near = _near(trials, None, n_splits)
    plain = [
        trial
        for trial in trials.ranked(visits=trials.task.visits[0], n_splits=n_splits)
        if not trials.sources[trial.setting.source].relevance
    ]
    plain.sort(key=lambda trial: trial.log_loss)
    others = [trial for trial in plain if trial.log_loss <= NEAR_VIEW * plain[0].log_loss]
    return near + _of_other_views(trials, near, others)


def _is_affordable(trials: Trials, setting: Setting, plain: Setting) -> bool:
    """Whether revisits cost no more than a few plain fits, or little in any case."""
    n_stages, n_plain = trials.n_stages(setting), trials.n_stages(plain)
    is_cheap = COST_OF_REVISITS * n_stages <= MAX_COST * n_plain
    return is_cheap or _work(trials, setting) <= MAX_WORK


def _work(trials: Trials, setting: Setting) -> float:
    """Estimate the multiplications in a fit of all rows, from the stages that fewer rows took."""
    problem, X = trials.task.problem, trials.sources[setting.source].values.X
    sizes = np.bincount(problem.codes[problem.codes >= 0])
    n_columns = X.nnz / X.shape[0] if is_sparse(X) else X.shape[1]
    n_machine_rows = np.mean([sizes[[*one, *other]].sum() for one, other in problem.machines])
    n_stages = trials.n_stages(setting) * sizes.sum() / trials.n_trained
    return float(n_stages * n_machine_rows * (n_columns + COST_OF_VALUE))


def _follow(trials: Trials, survivors: list[Setting]) -> None:
    """Search around what was best on fewer rows: the best gamma can only grow with the rows."""
    trials.run(survivors)
    for trial in _in_all_views(trials, trials.n_splits):
        near = trial.setting
        trials.run([near], (1,))
        if trials.ranked(near.source)[0].setting != near:
            trials.climb(near.source, near.visits, step=1)
        elif near.visits == trials.task.visits[0]:  # more visits take long
            trials.run([near], (-1,))


def _is_cheap(found: _Found) -> bool:
    """Whether the best so far has the fewest visits, or takes little work on all rows."""
    trials, setting = found.trials, found.trial.setting
    is_plain = setting.visits == trials.task.visits[0]
    return is_plain or _work(trials, setting) <= MAX_JUDGED_WORK


def _so_far(trials: Trials | None) -> _Found | None:
    """Return the best that was tried before time was up, with the fewest visits.

    More visits take long on all rows: when time is up, the fewest are the safe choice.
    """
    if trials is None or not trials.tried:
        return None
    n_splits = min(trial.n_splits for trial in trials.tried.values())
    fewest = min(trial.setting.visits for trial in trials.ranked(n_splits=n_splits))
    return _Found(trials, trials.ranked(visits=fewest, n_splits=n_splits)[0])


def _settled(
    source: Source, setting: Setting, problem: Problem[KernelRows]
) -> tuple[KernelRows, KernelRows]:
    """Return the rows of a source with its kernel, and the rows as that kernel sees them."""
    values = seen = replace(source.values, dtype=problem.values.dtype)
    view = None
    if source.relevance:
        seen = source.scaled(values, row_weights(problem))
        view = View("standardized", scales=source.scales[0])
    kernel = replace(seen.kernel, gamma=seen.kernel.gamma * 2.0**setting.exponent)
    return replace(values, kernel=replace(kernel, view=view)), replace(seen, kernel=kernel)
