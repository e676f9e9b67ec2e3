"""How EnsembleSVC trains experts, where one vote cannot take all rows.

The estimator's parameters say what ``experts.py`` needs to know: how cells see the rows, how many
rows the vote on a sample may have, and how cells are learned. A :class:`Workplace` does the work
that depends on where the rows live.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from numbers import Integral
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray

from hardmargin.cells import CellRows, CellRules, Cuts, LayerInTraining
from hardmargin.estimators._base.estimator import TrainingRows
from hardmargin.estimators.experts import (
    LARGEST_CELL,
    LEAST_SCALE,
    ExpertOptions,
    ExpertRows,
    Mixture,
    Whole,
    as_cells_see,
    fit_experts,
    scaled_for_cells,
    units_of,
)
from hardmargin.kernels import DISTANCE_KERNELS, FloatArray, Rows, as_blocks, column_ends, is_sparse
from hardmargin.monitor import Monitor
from hardmargin.resources import BESIDE_BYTES, give_back_memory, memory_bytes, planned_bytes
from hardmargin.selection.folds import DEFAULT_FOLDS, Folds, first_copies, make_folds
from hardmargin.selection.kernel_vote import KEPT_MATRICES, KernelVote
from hardmargin.solvers.staged_vote import MAX_STAGES, StagedVoteOptions
from hardmargin.warn import warn_caller

if TYPE_CHECKING:
    from hardmargin.estimators.ensemble import EnsembleSVC

#: Rows of the vote on a sample at first; where it matters, it has as many as a vote can take.
FIRST_ROWS = 4_000

#: The most rows of that vote where a rank is given.
MOST_LOW_RANK_ROWS = 30_000

#: Share of the memory for the rows that cuts are found on, and the least number of them.
CUT_MEMORY = 0.125
LEAST_CUT_ROWS = 2_000

#: Memory that experts need per row, for coefficients, classes, weights, orders and cells. It may
#: take this share of `memory_limit` before there is a warning.
BYTES_PER_ROW = 200
MOST_FOR_ROWS = 0.5


class Workplace(Protocol):
    """Where experts are trained."""

    def begin_layer(self, seen: CellRows, cuts: Cuts, rules: CellRules) -> LayerInTraining:
        """Begin a tree whose cells are learned where the rows are."""

    def fit_sample(
        self, model: EnsembleSVC, sample: TrainingRows, monitor: Monitor
    ) -> tuple[EnsembleSVC, NDArray[np.intp], FloatArray]:
        """Train a model on a sample; return it, the rows held out, and their probabilities."""


class Here(NamedTuple):
    """The workplace of rows in memory or in files: this process.

    Attributes
    ----------
    n_jobs : int or None
        Threads.
    """

    n_jobs: int | None

    def begin_layer(self, seen: CellRows, cuts: Cuts, rules: CellRules) -> LayerInTraining:
        """Begin a tree."""
        return LayerInTraining(cuts, seen, rules, self.n_jobs)

    def fit_sample(
        self, model: EnsembleSVC, sample: TrainingRows, monitor: Monitor
    ) -> tuple[EnsembleSVC, NDArray[np.intp], FloatArray]:
        """Train a model on a sample."""
        return model, *model._fit_part(sample, monitor)


def train_experts(
    estimator: EnsembleSVC,
    rows: TrainingRows,
    folds: Folds | None,
    class_weights: FloatArray | None,
    random: np.random.RandomState,
    monitor: Monitor,
    workplace: Workplace,
) -> Mixture | None:
    """Train experts on parts of the rows; None if no rows of a sample can be held out.

    Parameters
    ----------
    estimator : EnsembleSVC
        Its parameters; it knows how to scale the rows.
    rows : TrainingRows
        As they came.
    folds : Folds or None
        Splits of the rows, where they are given.
    class_weights : (n_classes,) array or None
        Factors of the classes' odds.
    random : RandomState
        Draws the seed of all parts, and folds.
    monitor : Monitor
        The clock.
    workplace : Workplace
        Where the rows live.
    """
    X, codes, classes, weights, _ = rows
    seed = int(random.randint(2**31 - 1))
    if folds is None and (first_copies(X, codes) != np.arange(len(codes))).any():
        # A cell or a sample does not see the copies of its rows elsewhere.
        folds = make_folds(estimator.cv, X, codes, random_state=random)
    seen, units, is_two_valued = _seen_by_cells(estimator, rows)
    prior = np.bincount(codes[codes >= 0], seen.weights[codes >= 0], minlength=len(classes))
    vote, n_columns = estimator._vote, 0 if is_sparse(X) else X.shape[1]
    limit, most = estimator.memory_limit, MOST_LOW_RANK_ROWS
    if limit is not None:
        limit = _room_beside(len(codes), memory_bytes(limit))
    if estimator.rank == "auto":
        most = _most_stored_rows(vote, planned_bytes(limit), n_columns)

    def fit_whole(some: NDArray[np.intp], part: Monitor) -> Whole:
        give_back_memory()  # of what has scaled the rows
        model = type(estimator)(
            **{
                **estimator.get_params(deep=False),
                "max_cell_rows": None,
                "standardize": estimator.standardized_,
                "class_weight": None,
                "verbose": 0,
                "checkpoint": None,
                "memory_limit": limit,
                "random_state": seed,
                "cv": estimator.cv if folds is None else folds.among(some),
            }
        )
        known, own_codes = np.unique(codes[some], return_inverse=True)
        own_weights = None if weights is None else weights[some]
        sample = TrainingRows(X[some], own_codes.astype(np.int32), known, own_weights)
        model, held, probabilities = workplace.fit_sample(model, sample, part)
        return Whole(model, model.classes_, some, some[held], probabilities)

    mixture = fit_experts(
        ExpertRows(X, seen, units, partial(workplace.begin_layer, seen), fit_whole),
        partial(_cell_rules, estimator, prior / prior.sum(), is_two_valued, folds, seed),
        folds,
        ExpertOptions(
            max_cell_rows=estimator.max_cell_rows or vote.max_stored_rows,
            n_trees=None if estimator.n_trees == "auto" else int(estimator.n_trees),
            kernels=DISTANCE_KERNELS if estimator.kernel == "cv" else (str(estimator.kernel),),
            first_rows=min(FIRST_ROWS, most) if estimator.rank == "auto" else most,
            most_rows=most,
            most_cut_rows=_most_cut_rows(memory_bytes(estimator.memory_limit), X.shape[1]),
            class_weights=class_weights,
            seed=seed,
            n_threads=effective_n_jobs(estimator.n_jobs),
        ),
        monitor,
    )
    if mixture is not None:
        if monitor.seconds_left <= 0 and monitor.stop_reason == "max_time":
            _warn_of_max_time(*mixture.n_cells)
        if mixture.whole is not None and most < vote.max_stored_rows:
            _warn_of_small_sample(vote, most, len(codes), n_columns)
    return mixture


def _seen_by_cells(
    estimator: EnsembleSVC, rows: TrainingRows
) -> tuple[CellRows, FloatArray, NDArray[np.bool_]]:
    """Return the rows as cells see them, the units of the columns, and which have two values.

    Columns times their units have their original scale.
    """
    X, codes, _, weights, _ = rows
    most_bytes = estimator._most_row_bytes
    scale: Callable[[Rows], Rows] = as_cells_see
    if estimator._scaling_ is not None:
        scale = partial(scaled_for_cells, scaling=estimator._scaling_)
    scaled = as_blocks(X, most_bytes).map(scale)
    seen = CellRows(scaled, codes, np.ones(len(codes)) if weights is None else weights)
    if is_sparse(X):
        return seen, np.ones(X.shape[1]), np.ones(X.shape[1], dtype=bool)
    low, high, _ = column_ends(as_blocks(X, most_bytes), weights)
    ends = np.array([low, high], dtype=X.dtype)
    low, high, has_others = column_ends(as_blocks(scaled, most_bytes), weights)
    return seen, units_of(ends, scale(ends)), ~has_others & (low < high)


def _cell_rules(
    estimator: EnsembleSVC,
    prior: FloatArray,
    is_two_valued: NDArray[np.bool_],
    folds: Folds | None,
    seed: int,
    whole: Whole,
) -> CellRules:
    """Say how cells are learned, once the vote on a sample is known."""
    known = getattr(whole.model, "encoded_relevance_", np.ones(len(is_two_valued)))
    max_stages, cv = estimator.max_stages, estimator.cv
    max_cell_rows = estimator.max_cell_rows or estimator._vote.max_stored_rows
    return CellRules(
        prior,
        np.maximum(known, LEAST_SCALE),
        is_two_valued if estimator.standardized_ else np.ones(len(known), dtype=bool),
        estimator._division,
        int(cv) if isinstance(cv, Integral) else DEFAULT_FOLDS,
        folds,
        StagedVoteOptions(
            fit_intercept=estimator.fit_intercept,
            max_stages=MAX_STAGES if max_stages is None else int(max_stages),
            compact=True,
            memory_bytes=min(memory_bytes(estimator.memory_limit) // 8, KEPT_MATRICES),
        ),
        seed,
        LARGEST_CELL * int(max_cell_rows),
        estimator.memory_limit is not None,
    )


def _room_beside(n_rows: int, limit: int) -> int:
    """Memory for training, besides the bookkeeping of all rows."""
    return limit - min(BYTES_PER_ROW * n_rows, int(MOST_FOR_ROWS * limit))


def _most_stored_rows(vote: KernelVote, room: int, n_columns: int) -> int:
    """Rows of the vote on a sample: as many as it can take, in `room` bytes."""
    # The larger root of pairs * n**2 + own * n = room.
    own, pairs, _, _ = vote.memory_for(1, n_columns)
    fits = (math.sqrt(own**2 + 4 * pairs * room) - own) / (2 * pairs)
    return min(vote.max_stored_rows, int(fits))


def _most_cut_rows(limit: int, n_columns: int) -> int:
    """Rows of a sample that cuts are found on: they are copied a few times, in float32."""
    return max(LEAST_CUT_ROWS, int(CUT_MEMORY * limit) // (4 * n_columns))


def warn_of_little_memory(estimator: EnsembleSVC, rows: TrainingRows) -> None:
    """Warn if the bookkeeping of experts leaves little memory for training."""
    n_rows, n_columns = rows.X.shape
    needed, vote = BYTES_PER_ROW * n_rows, estimator._vote
    if not is_sparse(rows.X):
        cell = int(estimator.max_cell_rows or vote.max_stored_rows)
        needed += vote.memory_for(cell, n_columns).copies
    if needed > MOST_FOR_ROWS * memory_bytes(estimator.memory_limit):
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
    whole = vote.memory_for(vote.max_stored_rows, n_columns)
    enough = whole.pairs + whole.copies + BYTES_PER_ROW * n_rows + BESIDE_BYTES
    warn_caller(
        f"memory_limit has room for the distances between only {most:,} rows, so the expert on a "
        f"sample of all rows was trained on {most:,} rows, which may cost accuracy. Raise "
        f"memory_limit; {enough / 1e6:,.0f} MB are enough.",
        UserWarning,
    )
