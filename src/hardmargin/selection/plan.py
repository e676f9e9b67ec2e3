"""What a fit of EnsembleSVC decides before it trains: once, from its rows, parameters and budget.

1. Rows and parameters say how machines divide the classes, whether linear kernels vote alone, and
   whether there are too many rows for one vote, so that experts share them.
2. On sparse rows, and on rows that all have the same norm, it is open whether to standardise; on
   text, whether RBF kernels are worth their time. A sample settles that (``first_look.py``).
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

import numpy as np
from joblib import effective_n_jobs
from sklearn.utils.extmath import row_norms

from hardmargin.kernels import DISTANCE_KERNELS, RowBlocks, Rows, as_blocks, column_ends, is_sparse
from hardmargin.kernels.kernel import MAX_FLOAT32_FEATURE
from hardmargin.monitor import Monitor
from hardmargin.resources import ROWS_SHARE, memory_bytes, planned_bytes
from hardmargin.scaling import MixedScaling, Scaling, find_mixed_scaling, find_row_scaling
from hardmargin.selection.first_look import (
    SAMPLE_ROWS,
    first_look,
    sample_rows,
)
from hardmargin.selection.folds import MAX_SEARCHED_ROWS, QUICK_ROWS, Folds
from hardmargin.selection.growing import Growth
from hardmargin.selection.kernel_vote import KEPT_MATRICES, KernelVote
from hardmargin.selection.rows import TrainingRows
from hardmargin.selection.vote import MANY_COLUMNS
from hardmargin.solvers.problem import Problem, machines_of
from hardmargin.solvers.staged_vote import MAX_STAGES, StagedVoteOptions
from hardmargin.warn import held_back

#: A machine with more rows is replaced by experts or, if there must be one machine, approximated.
MAX_STORED_ROWS = 10_000

#: Rows of the experts' vote on a sample at first; where it matters, it has as many as a vote can
#: take.
FIRST_SAMPLE_ROWS = 4_000

#: Share of the time left that the first look at a sample may take.
SHARE_OF_LOOK = 0.3

#: Experts on all rows are started if there is time for this share of their predicted time. (The
#: prediction comes from votes on samples, and is several times too high.) Stopped in time, they are
#: better than a single vote that takes as long: in cells that were not reached, the vote on a
#: sample decides.
LEAST_SHARE_OF_EXPERTS = 0.06

#: Up to the first number of rows, a fit takes about the second number of times as long as one whose
#: first vote is quick (measured on 1,000 to 9,000 rows). Where that vote leaves out rows, it also
#: leaves out kernels, which saves time.
COSTS_OF_FIRST_VOTE = (
    (QUICK_ROWS, 1.0),
    (MAX_SEARCHED_ROWS, 2.75),
    (MAX_STORED_ROWS, 1.75),
    (math.inf, 3.5),
)


#: A machine takes about this long, however few rows it has. Pairs that would take longer than a fit
#: may are not trained, even if asked for.
LEAST_SECONDS = 0.0012

#: A machine of a few rows takes about this long, with all kernels of a vote. ``"auto"`` takes one
#: per class where a fit has less time for each pair.
SECONDS_OF_PAIR = 0.004

#: With as many classes and no more rows (per class, and in all), one machine per class is better
#: than one per pair (benchmarks/classes.py). With more rows it takes several times as long.
MANY_CLASSES = 10
FEW_PER_CLASS = 50
FEW_ROWS = 2_500

#: Common norms differ by no more than this share of the typical distance of rows from their mean.
LARGEST_DIFFERENCE = 1e-3

#: Larger numbers, and rows whose numbers are all smaller than one over this, are extreme.
LARGEST_SIZE = 1e15


class Parameters(Protocol):
    """The parameters of `EnsembleSVC` that plans are made from."""

    n_stages: Any
    kernel: Any
    gamma: Any
    degree: float
    coef0: float
    max_stages: Any
    fit_intercept: bool
    standardize: Any
    views: str
    relevance: bool
    rank: Any
    landmarks: Any
    max_cell_rows: int | None
    n_trees: int | str
    cv: Any
    multi_class: str
    dtype: str
    n_jobs: int | None
    max_time: float | None
    checkpoint: Any


@dataclass(frozen=True)
class Budget:
    """The memory of a fit: read once, as free memory changes while fits run.

    Attributes
    ----------
    memory : int
        Bytes.
    is_given : bool
        Whether this is a limit that was asked for, and not a share of the free memory.
    """

    memory: int
    is_given: bool

    @classmethod
    def of(cls, memory_limit: float | str | None) -> Budget:
        """Read a parameter `memory_limit`."""
        return cls(memory_bytes(memory_limit), memory_limit is not None)

    @property
    def planned(self) -> int:
        """Bytes that matrices may take."""
        return planned_bytes(self.memory) if self.is_given else self.memory

    @property
    def most_row_bytes(self) -> float:
        """Copies of rows that take more are put into temporary files."""
        return ROWS_SHARE * self.memory if self.is_given else math.inf


@dataclass(frozen=True)
class Plan:
    """How a fit treats its rows.

    Attributes
    ----------
    standardized : bool
        Whether to standardise them.
    scales : bool
        Whether to scale them at all.
    is_text : bool
        Whether they are treated as text: linear kernels may vote alone, one class against all.
    is_linear : bool
        Whether linear kernels alone vote, through a weight per column.
    multi_class : {"ovo", "ovr"}
        How machines divide the classes.
    largest : int
        Rows of the largest machine.
    has_cells : bool
        Whether trees of cells share the rows, as a machine would have too many.
    is_of_sample : bool
        Whether this is the vote on a sample, beside such trees.
    open_scaling, open_kernels : bool
        Whether a sample may settle `standardized`, and `is_linear`.
    max_cell_rows : int or None
        About how many rows a cell has; None allows no cells.
    n_trees : int or "auto"
        How many trees share the rows.
    cv : int, None or any
        Number of folds, where splits are not given.
    max_stages : int or None
        The limit on stages that was asked for.
    vote : KernelVote
        Which kernels vote, and the memory and threads that they may use.
    budget : Budget
        The memory of the fit.
    """

    standardized: bool
    scales: bool
    is_text: bool
    is_linear: bool
    multi_class: str
    largest: int
    has_cells: bool
    is_of_sample: bool
    open_scaling: bool
    open_kernels: bool
    max_cell_rows: int | None
    n_trees: int | str
    cv: Any
    max_stages: int | None
    vote: KernelVote
    budget: Budget

    @property
    def has_views(self) -> bool:
        """Whether kernels see dense rows through views."""
        vote = self.vote
        return self.standardized and vote.gamma == "cv" and vote.kernel in ("cv", *DISTANCE_KERNELS)

    def scaling(self, rows: TrainingRows) -> Scaling | MixedScaling | None:
        """Find how to scale rows; None if they stay as they came."""
        X, _, _, weights, *_ = rows
        if not self.scales:
            return None
        if self.standardized:
            most_bytes = self.budget.most_row_bytes
            return find_row_scaling(X, weights, rows.feature_names, most_bytes)
        return find_mixed_scaling(X, weights, rows.feature_names, standardized=False)

    def within(self, budget: Budget) -> Plan:
        """Return the same with other memory for the vote."""
        options = replace(self.vote.options, memory_bytes=_kept_bytes(budget))
        vote = replace(self.vote, memory_bytes=budget.planned, options=options)
        return replace(self, vote=vote, budget=budget)

    def growth(self, rows: TrainingRows) -> Growth | None:
        """Say how a fit in limited time may grow to these rows; None if they are few."""
        n_rows = rows.n_rows
        # Of a part with more rows, the kernel would be approximated, which is no better.
        can_take_all = self.vote.rank != "auto" or self.is_text or self.has_cells
        most = n_rows if can_take_all else int(MAX_STORED_ROWS * n_rows / self.largest)
        longer = next(cost for limit, cost in COSTS_OF_FIRST_VOTE if n_rows <= limit)
        if self.is_text or self.has_cells:
            longer = 1.0
        growth = Growth.to(n_rows, len(rows.classes), most, longer * min(1.0, most / n_rows))
        if growth is None:
            return None
        if self.is_linear:
            return growth.linear(SAMPLE_ROWS, SAMPLE_ROWS)
        if self.has_cells:
            return growth.linear(MAX_STORED_ROWS, FIRST_SAMPLE_ROWS, LEAST_SHARE_OF_EXPERTS)
        return growth


def plan(rows: TrainingRows, params: Parameters, budget: Budget) -> Plan:
    """Decide what rows, parameters and budget settle: everything, unless something is open."""
    has_words = is_text(rows.X) and params.kernel in ("cv", "linear")
    # With a checkpoint, another call, perhaps with more time, resumes the fit.
    max_time = params.max_time if params.checkpoint is None else None
    multi_class = divided(
        params.multi_class, len(rows.classes), rows.n_rows, max_time, is_text=has_words
    )
    vote = _vote(params, budget)
    machines = machines_of(len(rows.classes), multi_class)
    largest = Problem(rows.X, rows.codes, machines).n_rows_of_largest
    is_linear = params.kernel == "linear" and is_sparse(rows.X)
    if has_words and params.kernel == params.gamma == "cv":
        is_linear = not vote.room.memory_for(largest).is_enough
    scales = params.standardize is not False and params.kernel != "precomputed"
    has_choice = isinstance(params.gamma, str) and isinstance(params.kernel, str)
    is_small = rows.n_rows <= SAMPLE_ROWS  # all kernels can be tried on all rows
    first = Plan(
        standardized=scales,
        scales=scales,
        is_text=has_words,
        is_linear=is_linear,
        multi_class=multi_class,
        largest=largest,
        has_cells=False,
        is_of_sample=False,
        open_scaling=params.standardize == "auto" and scales and has_choice,
        open_kernels=has_words and params.gamma == "cv" and not (is_linear or is_small),
        max_cell_rows=params.max_cell_rows,
        n_trees=params.n_trees,
        cv=params.cv,
        max_stages=params.max_stages,
        vote=vote,
        budget=budget,
    )
    return replace(first, has_cells=_needs_cells(first, rows.X))


def is_text(X: Rows) -> bool:
    """Whether rows are like text: sparse, with many columns."""
    return is_sparse(X) and X.shape[1] > MANY_COLUMNS


def too_many_pairs(n_classes: int, seconds: float, max_time: float | None) -> bool:
    """Whether there is no time for a machine per pair of classes that takes `seconds` each."""
    n_pairs = n_classes * (n_classes - 1) // 2
    return max_time is not None and n_pairs > n_classes and n_pairs * seconds > max_time


def divided(
    multi_class: str, n_classes: int, n_rows: int, max_time: float | None, *, is_text: bool
) -> str:
    """Choose ``"ovo"`` or ``"ovr"``.

    Parameters
    ----------
    multi_class : {"auto", "ovo", "ovr"}
        What was asked for.
    n_classes, n_rows : int
        Of the training rows.
    max_time : float or None
        Seconds that the fit has.
    is_text : bool
        Whether rows are text, where one machine per class is better.
    """
    if multi_class != "auto":
        return "ovr" if too_many_pairs(n_classes, LEAST_SECONDS, max_time) else multi_class
    # Pairs of small classes have too few rows to learn from.
    is_small = n_rows <= min(FEW_PER_CLASS * n_classes, FEW_ROWS)
    if is_text or (n_classes >= MANY_CLASSES and is_small):
        return "ovr"
    return "ovr" if too_many_pairs(n_classes, SECONDS_OF_PAIR, max_time) else "ovo"


def settled(
    first: Plan,
    rows: TrainingRows,
    folds: Folds | None,
    random: np.random.RandomState,
    monitor: Monitor,
) -> Plan:
    """Settle by a sample what a plan leaves open, where it can be judged.

    Parameters
    ----------
    first : Plan
        The plan.
    rows : TrainingRows
        As they came.
    folds : Folds or None
        Splits of the rows, where they are given.
    random : RandomState
        The look takes nothing from it, so that folds do not depend on the look.
    monitor : Monitor
        The clock.
    """
    chooses_scaling = first.open_scaling and is_open(rows.X)
    if not (chooses_scaling or first.open_kernels):
        return first
    part, own = monitor.part(share=SHARE_OF_LOOK), copy.deepcopy(random)
    sample = sample_rows(rows.X, rows.codes, rows.weights, first.cv, folds, own)
    seen = {}
    for standardized in sorted({first.standardized and not chooses_scaling, first.standardized}):
        with held_back():  # the scaling of all rows warns
            few = rows._replace(X=sample.X, weights=sample.weights)
            scaling = replace(first, standardized=standardized).scaling(few)
        seen[standardized] = (
            sample.X if scaling is None else as_blocks(sample.X).map(scaling.transform)
        )
    vote = replace(first.vote, kernel="linear") if first.is_linear else first.vote
    make_kernels = partial(vote.plain_kernels, with_linear=True)
    machines = machines_of(len(rows.classes), first.multi_class)
    compare = partial(first_look, sample, seen, make_kernels, machines, vote.options, part)
    look = part.once("look at a sample", compare)
    if look is None:
        return first
    is_linear = first.is_linear or (first.open_kernels and look.is_linear)
    found = replace(first, standardized=look.standardized, is_linear=is_linear)
    return replace(found, has_cells=_needs_cells(found, rows.X))


def is_open(X: Rows | RowBlocks) -> bool:
    """Whether rows may be better as they came than standardised: if sparse or of common norm.

    Not if all columns have two values, as standardising changes no distance then, nor if numbers
    have extreme sizes, as they must be standardised.
    """
    blocks = as_blocks(X)
    if is_sparse(X):
        sizes, has_other = zip(*blocks.each(_sparse_sizes), strict=True)
        return 1 / LARGEST_SIZE < max(sizes) < LARGEST_SIZE and any(has_other)
    with np.errstate(over="ignore", invalid="ignore"):
        squares = np.concatenate(blocks.each(partial(row_norms, squared=True)))
        most = float(np.sqrt(squares.max()))
        differ = most - float(np.sqrt(squares.min()))
    if not (0 < most < np.inf and differ <= LARGEST_DIFFERENCE * most):
        return False
    # Far from the origin, any rows have nearly the same norm; but then they are nearly equal, too.
    sums = blocks.each(partial(np.sum, axis=0, dtype=np.float64))
    mean = np.sum(sums, axis=0) / len(squares)
    apart = np.sqrt(max(float(squares.mean(dtype=np.float64) - mean @ mean), 0.0))
    return bool(differ <= LARGEST_DIFFERENCE * apart and column_ends(X).has_others.any())


def _sparse_sizes(X: Rows) -> tuple[float, bool]:
    """Find the largest absolute value in a block, and whether any entry is not 1."""
    return float(np.abs(X.data).max(initial=0.0)), not (X.data == 1).all()


def _needs_cells(plan: Plan, X: Rows) -> bool:
    """Whether some machine has too many rows for a vote without approximation."""
    vote = plan.vote
    if plan.max_cell_rows is None or vote.rank is None or plan.is_linear:
        return False
    if vote.gamma != "cv" or vote.options.n_stages is not None:
        return False
    if vote.kernel not in ("cv", *DISTANCE_KERNELS) or plan.largest <= MAX_STORED_ROWS:
        return False
    if plan.standardized:
        return True
    low, high, _ = column_ends(X)
    return bool(max(high.max(initial=0.0), -low.min(initial=0.0)) <= MAX_FLOAT32_FEATURE)


def _vote(params: Parameters, budget: Budget) -> KernelVote:
    """Which kernels vote, as the parameters say."""
    n_stages = None if params.n_stages == "cv" else int(params.n_stages)
    # A given number of stages needs no other limit.
    most = MAX_STAGES if n_stages is None else n_stages
    options = StagedVoteOptions(
        fit_intercept=params.fit_intercept,
        n_stages=n_stages,
        max_stages=most if params.max_stages is None else int(params.max_stages),
        memory_bytes=_kept_bytes(budget),
        n_threads=effective_n_jobs(params.n_jobs),
    )
    return KernelVote(
        kernel=params.kernel,
        gamma=params.gamma,
        degree=params.degree,
        coef0=params.coef0,
        views=params.views,
        relevance=params.relevance,
        rank=params.rank,
        landmarks=params.landmarks,
        dtype=params.dtype,
        n_jobs=params.n_jobs,
        memory_bytes=budget.planned,
        max_stored_rows=MAX_STORED_ROWS,
        options=options,
    )


def _kept_bytes(budget: Budget) -> int:
    """Memory for kernel matrices that are kept from one round of a vote to the next."""
    return min(budget.planned // 4, KEPT_MATRICES)
