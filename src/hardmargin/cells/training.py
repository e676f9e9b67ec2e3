"""How EnsembleSVC trains experts, where one vote cannot take all rows.

The plan of the fit says what ``experts.py`` needs to know: how cells see the rows, how many rows
the vote on a sample may have, and how cells are learned. A :class:`Workplace` does the work that
depends on where the rows live.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hardmargin.cells import CellRows, CellRules, Cuts, LayerInTraining
from hardmargin.cells.experts import (
    LARGEST_CELL,
    LEAST_SCALE,
    ExpertOptions,
    ExpertRows,
    Mixture,
    SampleVote,
    fit_experts,
)
from hardmargin.cells.seen import seen_by_cells
from hardmargin.kernels import DISTANCE_KERNELS, FloatArray, is_sparse
from hardmargin.monitor import Monitor
from hardmargin.resources import BESIDE_BYTES, give_back_memory
from hardmargin.selection.fitted_vote import FittedVote, fit_vote
from hardmargin.selection.folds import DEFAULT_FOLDS, Folds, first_copies, given_folds, make_folds
from hardmargin.selection.kernel_vote import KEPT_MATRICES, KernelVote
from hardmargin.selection.plan import FIRST_SAMPLE_ROWS, Budget, Plan
from hardmargin.selection.rows import TrainingRows
from hardmargin.warn import warn_caller

#: The most rows of that vote where a rank is given.
MOST_LOW_RANK_ROWS = 30_000

#: Share of the memory for the rows that cuts are found on, and the least number of them.
CUT_MEMORY = 0.125
LEAST_CUT_ROOM = 2_000

#: Memory that experts need per row, for coefficients, classes, weights, orders and cells. It may
#: take this share of `memory_limit` before there is a warning.
BYTES_PER_ROW = 200
MOST_FOR_ROWS = 0.5


class Workplace(Protocol):
    """Where experts are trained."""

    def begin_layer(self, seen: CellRows, cuts: Cuts, rules: CellRules) -> LayerInTraining:
        """Begin a tree whose cells are learned where the rows are."""

    def fit_vote(
        self,
        rows: TrainingRows,
        plan: Plan,
        folds: Folds | None,
        random: np.random.RandomState,
        monitor: Monitor,
    ) -> FittedVote:
        """Train one vote on all rows."""

    def fit_sample(
        self, rows: TrainingRows, plan: Plan, folds: Folds | None, seed: int, monitor: Monitor
    ) -> FittedVote:
        """Train the vote on a sample."""


@dataclass(frozen=True)
class Here:
    """The workplace of rows in memory or in files: this process.

    Attributes
    ----------
    n_jobs : int or None
        Threads.
    """

    n_jobs: int | None

    fit_vote = staticmethod(fit_vote)

    def begin_layer(self, seen: CellRows, cuts: Cuts, rules: CellRules) -> LayerInTraining:
        """Begin a tree."""
        return LayerInTraining(cuts, seen, rules, self.n_jobs)

    def fit_sample(
        self, rows: TrainingRows, plan: Plan, folds: Folds | None, seed: int, monitor: Monitor
    ) -> FittedVote:
        """Train the vote on a sample."""
        return fit_vote(rows, plan, folds, np.random.RandomState(seed), monitor)


def train_experts(
    rows: TrainingRows,
    plan: Plan,
    folds: Folds | None,
    as_model: Callable[[FittedVote], Any],
    workplace: Workplace,
    random: np.random.RandomState,
    monitor: Monitor,
) -> Mixture | None:
    """Train experts on parts of the rows; None if no rows of a sample can be held out.

    Parameters
    ----------
    rows : TrainingRows
        As they came.
    plan : Plan
        How to treat them.
    folds : Folds or None
        Splits of the rows, where they are given.
    as_model : callable
        Makes a classifier of the vote on a sample.
    workplace : Workplace
        Where the rows live.
    random : RandomState
        Draws the seed of all parts, and folds.
    monitor : Monitor
        The clock.
    """
    X, codes, classes, weights, *_ = rows
    monitor = monitor.part("held-out loss")
    scaling = plan.scaling(rows)
    seed = int(random.randint(2**31 - 1))
    if folds is None and (first_copies(X, codes) != np.arange(len(codes))).any():
        # A cell or a sample does not see the copies of its rows elsewhere.
        folds = make_folds(plan.cv, X, codes, random_state=random)
    seen, units, is_two_valued = seen_by_cells(rows, scaling, plan.budget.most_row_bytes)
    prior = np.bincount(codes[codes >= 0], seen.weights[codes >= 0], minlength=len(classes))
    n_columns = 0 if is_sparse(X) else X.shape[1]
    of_sample = replace(plan, has_cells=False, is_of_sample=True)
    of_sample = of_sample.within(_beside(plan.budget, len(codes)))
    vote, most = of_sample.vote, MOST_LOW_RANK_ROWS
    if vote.rank == "auto":
        most = _most_stored_rows(vote, n_columns)

    def fit_whole(some: NDArray[np.intp], part: Monitor) -> SampleVote:
        give_back_memory()  # of what has scaled the rows
        known, own_codes = np.unique(codes[some], return_inverse=True)
        own_weights = None if weights is None else weights[some]
        sample = TrainingRows(
            X[some],
            own_codes.astype(np.int32),
            known,
            own_weights,
            feature_names=rows.feature_names,
        )
        own_folds = None
        if folds is not None:
            own_folds = given_folds(folds.among(some), sample.X, sample.codes)
        voted = workplace.fit_sample(sample, of_sample, own_folds, seed, part)
        held = voted.judged
        return SampleVote(as_model(voted), voted.classes, some, some[held.rows], held.probabilities)

    mixture = fit_experts(
        ExpertRows(X, seen, units, partial(workplace.begin_layer, seen), fit_whole),
        partial(_cell_rules, plan, prior / prior.sum(), is_two_valued, folds, seed),
        folds,
        _options(plan, rows, vote, most, seed),
        monitor,
    )
    if mixture is None:
        return None
    if monitor.seconds_left <= 0 and monitor.stop_reason == "max_time":
        _warn_of_max_time(*mixture.n_cells)
    if mixture.whole is not None and most < vote.max_stored_rows:
        _warn_of_small_sample(vote, most, len(codes), n_columns)
    return replace(mixture, scaling=scaling, class_weights=rows.class_weights)


def _options(
    plan: Plan, rows: TrainingRows, vote: KernelVote, most: int, seed: int
) -> ExpertOptions:
    """Say how experts are trained, where the vote on a sample takes at most so many rows."""
    return ExpertOptions(
        max_cell_rows=_cell_rows(plan),
        n_trees=None if plan.n_trees == "auto" else int(plan.n_trees),
        kernels=DISTANCE_KERNELS if vote.kernel == "cv" else (str(vote.kernel),),
        first_rows=min(FIRST_SAMPLE_ROWS, most) if vote.rank == "auto" else most,
        most_rows=most,
        most_cut_rows=_most_cut_rows(plan.budget.memory, rows.X.shape[1]),
        class_weights=rows.class_weights,
        seed=seed,
        n_threads=vote.options.n_threads,
    )


def _cell_rules(
    plan: Plan,
    prior: FloatArray,
    is_two_valued: NDArray[np.bool_],
    folds: Folds | None,
    seed: int,
    whole: SampleVote,
) -> CellRules:
    """Say how cells are learned, once the vote on a sample is known."""
    known = getattr(whole.model, "encoded_relevance_", np.ones(len(is_two_valued)))
    budget = plan.budget
    return CellRules(
        prior,
        np.maximum(known, LEAST_SCALE),
        is_two_valued if plan.standardized else np.ones(len(known), dtype=bool),
        plan.multi_class,
        int(plan.cv) if isinstance(plan.cv, Integral) else DEFAULT_FOLDS,
        folds,
        replace(
            plan.vote.options,
            compact=True,
            memory_bytes=min(budget.memory // 8, KEPT_MATRICES),
            n_threads=1,
        ),
        seed,
        LARGEST_CELL * _cell_rows(plan),
        budget.is_given,
    )


def _cell_rows(plan: Plan) -> int:
    """About how many rows a cell has."""
    assert plan.max_cell_rows is not None  # there would be no cells
    return int(plan.max_cell_rows)


def _beside(budget: Budget, n_rows: int) -> Budget:
    """Memory for training, besides the bookkeeping of all rows."""
    if not budget.is_given:
        return budget
    bookkeeping = min(BYTES_PER_ROW * n_rows, int(MOST_FOR_ROWS * budget.memory))
    return replace(budget, memory=budget.memory - bookkeeping)


def _most_stored_rows(vote: KernelVote, n_columns: int) -> int:
    """Rows of the vote on a sample: as many as its memory can take."""
    # The larger root of pairs * n**2 + own * n = room.
    own, pairs, _, _ = vote.room.memory_for(1, n_columns)
    fits = (math.sqrt(own**2 + 4 * pairs * vote.memory_bytes) - own) / (2 * pairs)
    return min(vote.max_stored_rows, int(fits))


def _most_cut_rows(limit: int, n_columns: int) -> int:
    """Rows of a sample that cuts are found on: they are copied a few times, in float32."""
    return max(LEAST_CUT_ROOM, int(CUT_MEMORY * limit) // (4 * n_columns))


def warn_of_little_memory(plan: Plan, rows: TrainingRows) -> None:
    """Warn if the bookkeeping of experts leaves little memory for training."""
    n_rows, n_columns = rows.X.shape
    needed = BYTES_PER_ROW * n_rows
    if not is_sparse(rows.X):
        needed += plan.vote.room.memory_for(_cell_rows(plan), n_columns).copies
    if needed > MOST_FOR_ROWS * plan.budget.memory:
        enough = (needed + BESIDE_BYTES) / MOST_FOR_ROWS
        warn_caller(
            f"memory_limit is too small for {n_rows:,} rows: bookkeeping and copies of a cell's "
            f"rows take about {needed / 1e6:,.0f} MB, which leaves little for training, so the fit "
            f"may exceed the limit. Raise memory_limit: {enough / 1e6:,.0f} MB are enough.",
            UserWarning,
        )


def _warn_of_max_time(n_learned: int, n_cells: int) -> None:
    cells = f"{n_learned:,} of {n_cells:,} cells" if n_cells else "a vote on a sample"
    warn_caller(
        f"Training stopped at max_time; the model is that of {cells}. Raise max_time to learn more "
        "cells."
    )


def _warn_of_small_sample(vote: KernelVote, most: int, n_rows: int, n_columns: int) -> None:
    """Warn that memory allows only some of the rows that a vote can take."""
    whole = vote.room.memory_for(vote.max_stored_rows, n_columns)
    enough = whole.pairs + whole.copies + BYTES_PER_ROW * n_rows + BESIDE_BYTES
    warn_caller(
        f"memory_limit has room for the distances between only {most:,} rows, so the expert on a "
        f"sample of all rows was trained on {most:,} rows, which may cost accuracy. Raise "
        f"memory_limit; {enough / 1e6:,.0f} MB are enough.",
        UserWarning,
    )
