"""A first look at sparse rows, and at rows of common norm: a sample shows how to treat them all.

Columns of tables have units of their own, so they are standardised. Words have none: their
frequencies, and the common norm of the rows, mean something. The held-out loss of a sample,
standardised and as it came, shows what suits the data. On text, the same sample shows whether RBF
kernels are worth their time: mostly, linear kernels do as well, and their paths need no kernel
matrix.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hardmargin.kernels import (
    FloatArray,
    Kernel,
    Rows,
    is_sparse,
)
from hardmargin.monitor import Monitor
from hardmargin.selection.folds import Folds, make_folds, random_ranks, subsample
from hardmargin.selection.relevance import FIRST_SPLITS, FIRST_STAGES
from hardmargin.selection.vote import MANY_COLUMNS, matrix_votes
from hardmargin.solvers.problem import Machine, Problem
from hardmargin.solvers.staged_vote import StagedVoteOptions

#: Rows of the sample. Up to this many rows, there is no sample, and all kernels vote.
SAMPLE_ROWS = 2_000

#: On larger text, RBF kernels vote only if their loss is below that of linear ones by this share.
LEAST_GAIN = 0.02

_TINY = 1e-9


@dataclass(frozen=True)
class Look:
    """What a sample says about all rows.

    Attributes
    ----------
    standardized : bool
        Whether to standardise.
    is_linear : bool
        Whether linear kernels alone should vote.
    """

    standardized: bool
    is_linear: bool


def is_linear_candidate(X: Rows) -> bool:
    """Whether a linear kernel may suit rows: if sparse, or if their many columns outnumber them."""
    return is_sparse(X) or X.shape[1] > max(X.shape[0], MANY_COLUMNS)


@dataclass(frozen=True)
class Sample:
    """Some of the rows, and their splits.

    Attributes
    ----------
    X : rows
        As they came.
    codes, weights : (n,) arrays
        Their classes and weights.
    folds : Folds
        Their splits.
    """

    X: Rows
    codes: NDArray[np.int32]
    weights: FloatArray
    folds: Folds


def sample_rows(
    X: Rows,
    codes: NDArray[np.int32],
    weights: FloatArray | None,
    cv: int | None,
    folds: Folds | None,
    random_state: np.random.RandomState,
) -> Sample:
    """Draw rows of every class, and hold some of them out.

    Parameters
    ----------
    X : rows
        All rows.
    codes : (n,) int array
        Their classes, -1 for rows that take no part.
    weights : (n,) array or None
        Their weights.
    cv : int or None
        Number of folds.
    folds : Folds or None
        Splits of all rows, where they are given.
    random_state : RandomState
        Draws and shuffles.
    """
    some = np.flatnonzero(subsample(codes, random_ranks(codes, random_state), SAMPLE_ROWS))
    own = np.ascontiguousarray(codes[some])
    if folds is None:
        own_folds = make_folds(cv, X[some], own, random_state=random_state)
    else:
        own_folds = Folds(folds.train[:, some], folds.test[:, some])
    few = Folds(own_folds.train[:FIRST_SPLITS], own_folds.test[:FIRST_SPLITS])
    return Sample(X[some], own, np.ones(len(some)) if weights is None else weights[some], few)


def first_look(
    sample: Sample,
    seen: Mapping[bool, Rows],
    make_kernels: Callable[[Rows], list[Kernel]],
    machines: Sequence[Machine],
    options: StagedVoteOptions,
    monitor: Monitor,
) -> Look | None:
    """Compare rows that are standardised with rows as they came; None if nothing is held out.

    Parameters
    ----------
    sample : Sample
        Some of the rows.
    seen : mapping of rows
        The rows as kernels may see them: False as they came, True standardised; or one of these.
    make_kernels : callable
        Makes the kernels that may vote on rows like these.
    machines : sequence of machines
        How classes are divided.
    options : StagedVoteOptions
        How to run.
    monitor : Monitor
        The clock.
    """
    if len(sample.folds.train) == 0:
        return None
    options = replace(options, max_stages=min(options.max_stages, FIRST_STAGES), compact=True)
    least: dict[bool, float] = {}
    gains: dict[bool, float] = {}
    for is_scaled, X in seen.items():
        kernels = make_kernels(X)
        problem = Problem(X, sample.codes, list(machines), sample.weights)
        losses = _losses(kernels, problem, sample.folds, options, monitor)
        least[is_scaled] = float(losses.min())
        are_linear = np.array([kernel.name == "linear" for kernel in kernels])
        linear, other = (losses[are].min(initial=np.inf) for are in (are_linear, ~are_linear))
        gains[is_scaled] = float(1 - other / max(linear, _TINY)) if linear < np.inf else 1.0
    best = min(least, key=lambda is_scaled: least[is_scaled])
    return Look(best, gains[best] < LEAST_GAIN)


def _losses(
    kernels: list[Kernel],
    problem: Problem[Rows],
    folds: Folds,
    options: StagedVoteOptions,
    monitor: Monitor,
) -> FloatArray:
    """Least held-out loss of every kernel, on average over the machines."""
    votes = matrix_votes(kernels, problem, folds, options, monitor, dtype="float32")
    losses = np.array([[path.certificate for path in vote.paths] for vote in votes])
    sizes = np.array([vote.n_rows for vote in votes])
    return np.asarray(sizes @ losses / sizes.sum())


def with_room_for_weights(
    options: StagedVoteOptions, X: Rows, problem: Problem[Any], n_splits: int, limit: int
) -> StagedVoteOptions:
    """Limit the threads of linear paths on sparse rows to what memory allows.

    Parameters
    ----------
    options : StagedVoteOptions
        How to run.
    X : CSR matrix
        The rows.
    problem : Problem
        The machines.
    n_splits : int
        Number of splits.
    limit : int
        The memory, in bytes.
    """
    n, n_columns = X.shape
    rows = 2 * 12 * X.nnz  # in the order of the classes, in either precision
    votes = 48 * n * len(problem.machines)
    each = 4 * (5 * (1 + n_splits) * n + 8 * n_columns)
    if rows + votes + each > limit:
        raise ValueError(
            f"Linear machines on {n:,} sparse rows need {rows + votes + each:,} bytes; raise "
            f"memory_limit (now {limit:,})."
        )
    most = (limit - rows - votes) // each
    return replace(options, n_threads=min(options.n_threads, int(most)))
