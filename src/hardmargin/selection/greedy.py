"""Choosing gamma and the visits a row may have for the greedy stagewise SVM.

One gamma and one number of visits serve all machines: those whose held-out scores have the least
log-loss once a Platt sigmoid is fitted to them, averaged over the machines by their rows. The
search is a coarse grid of gamma for one visit, climbs from its best for more visits, and one finer
step around the winner; on 50 data sets that finds what the full grid does, at a fifth of its cost.

Above 2,500 rows the search runs on a subsample of 2,000; two splits of all rows compare its winner
with the neighbours, and all splits score what wins. Above 20,000 rows there are no folds of all
rows: one split is followed on training parts that grow fourfold, gamma with them (the best gamma
grows with the rows), up to four tenths of the rows. More visits than the fewest survive there only
where they clearly pay and are not expected to cost many plain fits. Where the rows come in several
views (standardised, and as they came), all that are not clearly worse are followed: which one is
best may only show on many rows.

Nothing here depends on a clock unless there is a deadline, nor on the number of threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hardmargin.kernels import Kernel
from hardmargin.selection.folds import Folds
from hardmargin.selection.greedy_levels import (
    MAX_FOLDED_ROWS,
    VISITS,
    Candidate,
    Level,
    OutOfTimeError,
    Task,
    Trial,
    View,
    levels,
)
from hardmargin.selection.held_out import HeldOut

__all__ = [
    "MAX_FOLDED_ROWS",
    "VISITS",
    "GreedyChoice",
    "Task",
    "View",
    "choose_greedy",
]

#: Gammas to begin with, as powers of two times where the kernel stands, and how far they may go.
GRID = range(-8, 7, 2)
EXPONENTS = range(-16, 17)

#: How near to the best, as a factor of the log-loss, other visits and other views of the rows must
#: come to be looked at again on more rows.
NEAR = 1.02
NEAR_VIEW = 1.15

#: Above `MAX_FOLDED_ROWS`: what more visits may cost, in plain fits, and the factor they must
#: lower the log-loss by.
MAX_COST = 6.0
CLEAR_GAIN = 0.98

#: A stage with revisits takes about so many times as long as one without.
COST_OF_REVISITS = 2.0


@dataclass(frozen=True)
class GreedyChoice:
    """What was chosen, and by what.

    Attributes
    ----------
    view : int
        Which view of the rows.
    kernel : Kernel
        Its kernel, with the gamma of the choice.
    max_visits : int
        Visits a row may have.
    held_out : HeldOut or None
        Scores under the choice, on the last rows it was made with; None where nothing could be
        compared.
    table : dict of arrays
        All that was tried: ``view``, ``gamma``, ``max_visits``, ``n_rows`` that it was tried on,
        and ``log_loss``.
    is_cut_short : bool
        Whether the deadline ended the search.
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
        for level in levels(task, folds, random_state):
            if not level.is_usable:
                continue
            search = _Search(level)
            searches.append(search)
            if choice is None:
                _search(search)
            elif level.is_last_word:
                search.run([choice[1]])
            else:
                _follow(search, _survivors(choice[0]))
            choice = (search, search.best())
    except OutOfTimeError:
        is_cut_short = True
        tried = [search for search in searches if search.trials]
        if tried:
            # More visits take long on all rows: in a hurry the fewest are the safe choice.
            search = tried[-1] if choice is None else choice[0]
            fewest = min(c.visits for c in search.trials)
            choice = (search, search.best(visits=fewest))
    table = _table(task, searches)
    if choice is None or not np.isfinite(choice[0].loss(choice[1])):
        kernel = task.views[0].kernel
        return GreedyChoice(0, kernel, task.visits[0], None, table, is_cut_short)
    search, best = choice
    return GreedyChoice(
        best.view,
        task.kernel_of(best),
        best.visits,
        search.level.held_out(search.trials[best]),
        table,
        is_cut_short,
    )


def _table(task: Task, searches: list[_Search]) -> dict[str, NDArray[Any]]:
    tried = [(s.level.n_rows, c, t) for s in searches for c, t in s.trials.items()]
    return {
        "view": np.array([c.view for _, c, _ in tried], dtype=np.intp),
        "gamma": np.array([task.kernel_of(c).gamma for _, c, _ in tried], dtype=np.float64),
        "max_visits": np.array([c.visits for _, c, _ in tried], dtype=np.intp),
        "n_rows": np.array([n for n, _, _ in tried], dtype=np.intp),
        "log_loss": np.array([t.log_loss for _, _, t in tried], dtype=np.float64),
    }


def _search(search: _Search) -> None:
    """Search from scratch: all gammas for the fewest visits, then climbs from the best of them."""
    task = search.level.task
    few, *more = task.visits
    exponents = GRID if task.tunes_gamma else [0]
    views = range(len(task.views))
    search.run([Candidate(view, e, few) for view in views for e in exponents])
    for view in views:
        search.climb(view, few, step=2)
    view = search.best().view
    is_large = task.n_rows > MAX_FOLDED_ROWS
    before = few
    for visits in more:
        first = Candidate(view, search.best(view, before).exponent, visits)
        search.run([first])
        if is_large and not _is_affordable(search, first):
            break
        # Many visits take the longest: one try shows whether they are worth more.
        if before == few or search.loss(first) < NEAR * search.loss(search.best(view, before)):
            search.climb(view, visits, step=2)
        before = visits
    search.run(_neighbours(search.best(), step=1))


def _follow(search: _Search, survivors: list[Candidate]) -> None:
    """Search around what was best on fewer rows: the best gamma grows with the rows, if at all."""
    search.run(survivors)
    least = search.loss(search.best())
    for view in search.views():
        best = search.best(view)
        if search.loss(best) > NEAR_VIEW * least:
            continue
        below, above = _neighbours(best, step=1)
        search.run([above])
        if search.best(view) == best:
            search.run([below])
        else:
            search.climb(view, best.visits, step=1)


def _survivors(search: _Search) -> list[Candidate]:
    """Choose what is tried on more rows: the best, and what comes near."""
    best, few = search.best(), search.level.task.visits[0]
    of_visits = {visits: search.best(best.view, visits) for visits in search.visits(best.view)}
    if search.level.task.n_rows <= MAX_FOLDED_ROWS:
        return [c for c in of_visits.values() if search.loss(c) < NEAR * search.loss(best)]
    plain = of_visits.pop(few)
    affordable = [
        c
        for c in of_visits.values()
        if _is_affordable(search, c) and search.loss(c) < CLEAR_GAIN * search.loss(plain)
    ]
    others = [search.best(v, few) for v in search.views() if v != best.view]
    near = [c for c in others if search.loss(c) < NEAR_VIEW * search.loss(plain)]
    return [plain, *affordable, *near]


def _is_affordable(search: _Search, candidate: Candidate) -> bool:
    """Tell whether revisits cost no more than some plain fits, by the stages that they take."""
    plain = search.best(candidate.view, search.level.task.visits[0])
    n_plain, n_stages = search.trials[plain].n_stages, search.trials[candidate].n_stages
    return COST_OF_REVISITS * n_stages <= MAX_COST * n_plain


def _neighbours(candidate: Candidate, step: int) -> list[Candidate]:
    return [candidate._replace(exponent=candidate.exponent + d) for d in (-step, step)]


class _Search:
    """The candidates tried on one level."""

    def __init__(self, level: Level) -> None:
        self.level = level
        self.trials: dict[Candidate, Trial] = {}

    def loss(self, candidate: Candidate) -> float:
        return self.trials[candidate].log_loss

    def views(self) -> list[int]:
        """Return the views that were tried."""
        return sorted({c.view for c in self.trials})

    def visits(self, view: int) -> list[int]:
        """Return the visits that were tried in a view."""
        return sorted({c.visits for c in self.trials if c.view == view})

    def best(self, view: int | None = None, visits: int | None = None) -> Candidate:
        """Return the candidate of least loss, among those of a view, and of so many visits."""
        among = [c for c in self.trials if view in (None, c.view) and visits in (None, c.visits)]
        return min(among, key=lambda c: (self.loss(c), c.view, c.visits, abs(c.exponent), c))

    def run(self, candidates: Sequence[Candidate]) -> None:
        """Try candidates that were not, all of them at once where there are threads."""
        task = self.level.task
        exponents = EXPONENTS if task.tunes_gamma else (0,)
        new = [c for c in candidates if c not in self.trials and c.exponent in exponents]
        for candidate, trial in zip(new, self.level.try_out(new), strict=True):
            self.trials[candidate] = trial
            if task.report is not None:
                gamma = task.kernel_of(candidate).gamma
                task.report(gamma, candidate.visits, self.level.n_rows, trial.log_loss)

    def climb(self, view: int, visits: int, step: int) -> None:
        """Try the neighbours of the best gamma until both are worse."""
        for _ in EXPONENTS:
            n_tried = len(self.trials)
            self.run(_neighbours(self.best(view, visits), step))
            if len(self.trials) == n_tried:
                break
