"""The machines of one cell: a vote of kernels on the rows of the cell, judged on rows held out.

The columns are standardised within the cell, and scaled by their relevance. Classes with a handful
of rows are not learned: their probability is their share of the cell.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hardmargin.kernels import FloatArray, Kernel, KernelSum, Rows, is_sparse
from hardmargin.monitor import Monitor
from hardmargin.selection.calibration import Calibration
from hardmargin.selection.folds import Folds, even_folds
from hardmargin.selection.judging import judge
from hardmargin.selection.vote import (
    Vote,
    VoteResult,
    counted_together,
    matrix_votes,
    unit_gamma,
)
from hardmargin.solvers.problem import Problem, machines_of
from hardmargin.solvers.staged_vote import StagedVoteOptions

#: A class with fewer rows in a cell is not learned there.
LEAST_ROWS = 5

#: A cell tells apart its most frequent classes, up to this many: its machines are numbered in 16
#: bits, and there is one per pair of classes.
MOST_CLASSES = 256

#: A cell has fewer folds where its second largest class would have fewer rows than this in a fold:
#: there is little to learn, and it takes less time.
ROWS_PER_FOLD = 2

#: Smaller probabilities count as this: no expert is ever sure.
LEAST_PROBABILITY = 1e-5

#: A kernel that may vote: its name, and its width as a factor of the usual gamma.
Candidate: TypeAlias = tuple[str, float]


class CellRows(NamedTuple):
    """Training rows: of one cell, or of all.

    Attributes
    ----------
    X : (n, d) float32 array or CSR matrix; of all rows, also RowBlocks
        The rows.
    codes : (n,) int32 array
        Their classes; -1 for rows that take no part.
    weights : (n,) array
        Their weights.
    """

    X: Rows
    codes: NDArray[np.int32]
    weights: FloatArray

    def some(self, rows: NDArray[Any]) -> CellRows:
        """Return some of the rows."""
        return CellRows(self.X[rows], self.codes[rows], self.weights[rows])


@dataclass(frozen=True)
class CellRules:
    """How every cell is learned.

    Attributes
    ----------
    prior : (n_classes,) array
        Shares of the classes among all rows.
    relevance : (d,) array
        What columns are multiplied by, once they are standardised.
    is_two_valued : (d,) bool array
        Columns of two values, which keep their scale.
    multi_class : {"ovo", "ovr"}
        How machines divide the classes.
    n_folds : int
        Folds of the rows of a cell, where `folds` is None.
    folds : Folds or None
        Splits of all rows.
    options : StagedVoteOptions
        How paths are run.
    seed : int
        Seeds what is drawn in a cell, together with the cell's number.
    max_rows : int
        A cell that cuts could not divide is learned from this many of its rows.
    is_limited : bool
        Whether memory is limited: memory that a cell has freed is then given back at once.
    """

    prior: FloatArray
    relevance: FloatArray
    is_two_valued: NDArray[np.bool_]
    multi_class: str
    n_folds: int
    folds: Folds | None
    options: StagedVoteOptions
    seed: int
    max_rows: int
    is_limited: bool = False


@dataclass(frozen=True)
class Learned:
    """What the machines of a cell are.

    Attributes
    ----------
    members : (n_members,) int array
        Rows of the cell that have coefficients.
    classes : (n_learned,) int array
        Classes that the machines tell apart.
    mean, scale : (d,) arrays
        A row x is seen as ``(x - mean) * scale``.
    gammas : dict of Candidate to float
        The kernels that vote.
    coefficients : dict of Candidate to (n_machines, n_members) array
        Their coefficients.
    shares : (n_candidates,) array
        Mean share of every candidate in the votes of the machines.
    intercepts : (n_machines,) array
        Biases of the machines.
    calibration : Calibration
        How margins turn into probabilities.
    n_stages : int
        Stages of the longest path.
    held_rows : (n_held,) int array
        Rows of the cell that were held out.
    held_probabilities : (n_held, n_learned) array
        Their held-out probabilities.
    log_loss : float
        Their log-loss.
    """

    members: NDArray[np.intp]
    classes: NDArray[np.intp]
    mean: NDArray[np.float32]
    scale: NDArray[np.float32]
    gammas: dict[Candidate, float]
    coefficients: dict[Candidate, NDArray[np.float32]]
    shares: FloatArray
    intercepts: FloatArray
    calibration: Calibration
    n_stages: int
    held_rows: NDArray[np.intp]
    held_probabilities: FloatArray
    log_loss: float


def shares_of_classes(
    cells: NDArray[np.int32], n_cells: int, rows: CellRows, prior: FloatArray
) -> FloatArray:
    """Share of every class in every cell, to which one row of the prior shares is added."""
    present, n_classes = rows.codes >= 0, len(prior)
    places = cells[present].astype(np.int64) * n_classes + rows.codes[present]
    counts = np.bincount(places, rows.weights[present], minlength=n_cells * n_classes)
    counts = counts.reshape(n_cells, n_classes)
    return np.asarray((counts + prior) / (counts.sum(axis=1, keepdims=True) + 1))


def log_probabilities(
    classes: NDArray[np.intp], probabilities: FloatArray, shares: FloatArray
) -> NDArray[np.float32]:
    """Log-probabilities of all classes, some of which an expert tells apart.

    Parameters
    ----------
    classes : (n_learned,) int array
        The classes that it knows.
    probabilities : (n, n_learned) array
        Their probabilities among themselves.
    shares : (n_classes,) array
        Shares of all classes, where nothing else is known.
    """
    every = np.tile(shares, (len(probabilities), 1))
    every[:, classes] = probabilities * shares[classes].sum()
    return np.log(np.maximum(every, LEAST_PROBABILITY)).astype(np.float32)


def found_among(
    rows: NDArray[np.intp], others: NDArray[np.intp]
) -> tuple[NDArray[np.bool_], NDArray[np.intp]]:
    """Find which rows are among others, and where; the last place, if there are several.

    Examples
    --------
    >>> import numpy as np
    >>> from hardmargin.cells.machines import found_among
    >>> found_among(np.array([7, 2, 5]), np.array([5, 9, 7, 5]))
    (array([ True, False,  True]), array([2, 3]))
    """
    order = np.argsort(others, kind="stable")
    at = (np.searchsorted(others[order], rows, side="right") - 1).clip(min=0)
    is_there = others[order[at]] == rows if len(others) else np.zeros(len(rows), dtype=bool)
    return is_there, order[at[is_there]]


def learn(
    cell: CellRows,
    number: int,
    candidates: Sequence[Candidate],
    rules: CellRules,
    folds: Folds | None,
    monitor: Monitor,
) -> Learned | None:
    """Train the machines of a cell; None where fewer than two classes can be learned.

    Parameters
    ----------
    cell : CellRows
        The rows.
    number : int
        Of the cell.
    candidates : sequence of Candidate
        Kernels that may vote.
    rules : CellRules
        How cells are learned.
    folds : Folds or None
        Splits of these rows, if they are given.
    monitor : Monitor
        The clock.
    """
    random = np.random.RandomState([rules.seed, number])
    members, classes = _members(cell, rules, random)
    if len(classes) < 2 or monitor.seconds_left <= 0:
        return None
    X, codes, weights = cell.some(members)
    codes = np.searchsorted(classes, codes).astype(np.int32)
    folds = _folds_of(codes, members, rules, folds, random)
    mean, scale = _standardizing(X, weights, rules)
    seen = seen_rows(X, mean, scale)
    unit_of = {name: unit_gamma(name, seen, weights) for name in dict(candidates)}
    kernels = [Kernel(name, gamma=width * unit_of[name]) for name, width in candidates]
    problem = Problem(seen, codes, machines_of(len(classes), rules.multi_class), weights)
    votes = matrix_votes(kernels, problem, folds, rules.options, monitor, dtype="float32")
    votes = counted_together(votes, problem)
    held_out = VoteResult(kernels, votes).held_out
    if len(held_out.rows) == 0:
        return None
    intercepts = np.array([vote.intercept for vote in votes])
    shares = np.mean([vote.shares for vote in votes], axis=0)
    used = [int(k) for k in np.flatnonzero(shares)]
    coefficients = {candidates[k]: _of_members(votes, k, len(members)) for k in used}
    vote = KernelSum(tuple(kernels[k] for k in used))
    side_by_side = np.hstack(list(coefficients.values()))
    judged = judge(
        held_out,
        np.array([vote.slope for vote in votes]),
        intercepts,
        lambda some: vote.expand(seen[some], seen, side_by_side, dtype="float32") + intercepts,
        problem,
        rules.multi_class,
        None,
        random,
    )
    assert isinstance(judged.calibration, Calibration)  # rows were held out
    return Learned(
        members,
        classes,
        mean,
        scale,
        {candidates[k]: kernels[k].gamma for k in used},
        coefficients,
        shares,
        intercepts,
        judged.calibration,
        max(path.n_stages for vote in votes for path in vote.paths),
        members[judged.rows],
        judged.probabilities,
        judged.log_loss,
    )


def _members(
    cell: CellRows, rules: CellRules, random: np.random.RandomState
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the rows of a cell that are learned, and their classes: the frequent ones."""
    present = (cell.codes >= 0) & (cell.weights > 0)
    if present.sum() > rules.max_rows:
        present[random.permutation(np.flatnonzero(present))[rules.max_rows :]] = False
    counts = np.bincount(cell.codes[present], minlength=1)
    frequent = np.argsort(-counts, kind="stable")[:MOST_CLASSES]
    classes = np.sort(frequent[counts[frequent] >= LEAST_ROWS])
    return np.flatnonzero(present & np.isin(cell.codes, classes)), classes


def _folds_of(
    codes: NDArray[np.int32],
    members: NDArray[np.intp],
    rules: CellRules,
    given: Folds | None,
    random: np.random.RandomState,
) -> Folds:
    """Divide the rows that are learned, if their splits are not given."""
    if given is not None:
        return Folds(given.train[:, members], given.test[:, members])
    second = int(np.sort(np.bincount(codes))[-2])
    return even_folds(codes, min(rules.n_folds, second // ROWS_PER_FOLD), random)


def seen_rows(X: Rows, mean: NDArray[np.float32], scale: NDArray[np.float32]) -> Rows:
    """Rows as the kernels of a cell see them; sparse ones are only scaled."""
    return X.multiply(scale).tocsr() if is_sparse(X) else (X - mean) * scale


def _standardizing(
    X: Rows, weights: FloatArray, rules: CellRules
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Mean of a cell's columns, and what they are multiplied by."""
    if is_sparse(X):
        return np.zeros(X.shape[1], dtype=np.float32), rules.relevance.astype(np.float32)
    share = (weights / weights.sum()).astype(np.float32)
    mean = share @ X
    deviation = np.sqrt(share @ np.square(X - mean))
    deviation[rules.is_two_valued | (deviation == 0)] = 1.0
    return mean, (rules.relevance / deviation).astype(np.float32)


def _of_members(votes: Sequence[Vote], kernel: int, n_members: int) -> NDArray[np.float32]:
    """Coefficients of one kernel, of shape (n_machines, n_members)."""
    found = np.zeros((len(votes), n_members), dtype=np.float32)
    for machine, vote in enumerate(votes):
        found[machine, vote.rows] = vote.coefficients[kernel]
    return found
