"""Mixtures of experts on fewer support rows.

All experts keep the same share of their rows, so that predictions become faster by about that
share. Layers choose different rows: if the share is s and each of N support rows takes part in c
experts on average, about ``N (1 - (1 - s)**c)`` rows are left. This gives the share for a number of
rows. For a tolerance, the shares 1/16, 1/8, 1/4 and 1/2 are tried until one is good enough, or
until all so far and the next have more operations than about five fits. The search ends before if
the change falls too slowly.

The vote on a sample of all rows is a classifier like any other, see ``expansion``. A cell has few
rows, but there are many cells, so that cells take a shorter way to the same end:

1. The sample is the members of the cell and at least as many crossed rows, as in ``expansion``.
2. The kernels that vote in the cell are added up, weighted by the size of their coefficients. Each
   member then has one column for all of them, and forward selection needs only inner products of
   the columns. (Measured: the change is as small as with a column for every kernel.)
3. The coefficients of all kernels and machines are refitted by least squares with a ridge, by the
   normal equations.

Cells of 900 members with two kernels and one machine take about 40 ms each if up to a quarter is
kept, and 120 ms for a half. Compared to members drawn at random and refitted in the same way, the
change of a cell's function is half as large for one machine, and a quarter smaller for fifteen;
pivoted Cholesky and the largest coefficients are no better than members drawn at random.

The change is measured on log-odds (for many classes, log-probabilities) of the mixture.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.linalg
from joblib import effective_n_jobs
from numpy.typing import NDArray

from hardmargin.cells.experts import Experts, SampleVote
from hardmargin.cells.layer import Layer, packed
from hardmargin.cells.machines import seen_rows
from hardmargin.estimators._base.fitted import (
    OF_EXPERTS,
    by_class_of,
    checked_rows,
    experts_in,
    keep_experts,
    machines_in,
    scores_of,
)
from hardmargin.kernels import FloatArray, Kernel, Rows, is_sparse
from hardmargin.monitor import Monitor, Stopped
from hardmargin.prediction.machines import some_of
from hardmargin.reduction import expansion
from hardmargin.reduction.expansion import (
    COST_OF_FUNCTION,
    Compression,
    Found,
    TooLargeError,
    balancing_weights,
    copy_without,
    crossed,
    decisions,
    relative_change,
    root_mean_square,
    stacked,
)
from hardmargin.resources import memory_bytes
from hardmargin.selection.calibration import winning_codes
from hardmargin.solvers.forward_selection import columns_of, forward_order

#: Every cell, and the vote on a sample, keeps at least this many rows.
LEAST_MEMBERS = 8

#: Shares that may reach a tolerance.
SHARES = (1 / 16, 1 / 8, 1 / 4, 1 / 2)

#: The change is measured on no more rows than this.
MAX_MEASURED = 4_096

#: Crossed rows for each coefficient that is refitted.
CROSSED_PER_COEFFICIENT = 2

#: Operations of a search that take as long as one kernel value.
OPERATIONS_OF_VALUE = 60

#: Root of the ridge, relative to kernel values: cells predict in float32.
RIDGE_ROOT = 1e-5


def compress_to(
    clf: Any, rows: Rows | None, n_support: int, random: np.random.RandomState, monitor: Monitor
) -> Found:
    """Keep about `n_support` rows; the change is measured on `rows` (None: on training rows)."""
    experts, n_before = experts_in(clf), len(clf.support_)
    share = 1 - (1 - n_support / n_before) ** (n_before / _n_held(experts))
    try:
        measure = _Measure(clf, rows, random, monitor)
        vote = _Vote(experts.whole, rows, share, random, monitor)
        return Found(measure.of(_smaller(clf, vote, share, random, monitor)), True)
    except Stopped:
        return Found(None, False)


def compress_within(
    clf: Any,
    rows: Rows | None,
    tolerance: float,
    random: np.random.RandomState,
    monitor: Monitor,
    is_short: bool = False,
) -> Found:
    """Keep the least share of the rows that the tolerance allows.

    Parameters
    ----------
    clf, rows, tolerance, random, monitor
        As for `compress`.
    is_short : bool
        Whether the search ends where it takes longer than about five fits.
    """
    shares = _affordable(experts_in(clf), rows) if is_short else SHARES
    are_all = len(shares) == len(SHARES)
    changes: list[float] = []
    best = vote = None
    try:
        measure = _Measure(clf, rows, random, monitor)
        for share in shares:
            if not (are_all or _may_reach(tolerance, changes, len(shares))):
                break
            if vote is None or share > vote.share:
                most = shares[-1] if is_short else share
                vote = _Vote(experts_in(clf).whole, rows, most, random, monitor)
            best = measure.of(_smaller(clf, vote, share, random, monitor))
            changes.append(best.compression_.relative_change)
            if changes[-1] <= tolerance:
                return Found(best, True)
    except TooLargeError:  # larger shares need even more
        return Found(None, True)
    except Stopped:
        return Found(best, False)
    if are_all:
        return Found(None, True)
    return Found(None, True, best, _n_expected(clf, tolerance, changes))


def _affordable(experts: Experts, rows: Rows | None) -> tuple[float, ...]:
    """Shares that take no longer than about five fits, one after the other; at least the first."""
    whole = None if experts.whole is None else experts.whole.model
    allowed = 0.0 if whole is None else expansion.allowed_operations(whole)
    for layer in experts.layers:
        sizes, n_kernels = np.diff(layer.starts), (layer.gammas > 0).sum(axis=1)
        allowed += expansion.operations_of_fits(
            float(np.sqrt(sizes @ sizes)), float(n_kernels.mean()), len(layer.values)
        )
    taken, shares = 0.0, list[float]()
    for share in SHARES:
        taken += sum(_operations(layer, share) for layer in experts.layers)
        of_whole = 0.0  # one search for all shares
        if whole is not None:
            n = _n_kept(share, len(whole.support_))
            own = None if rows is None else checked_rows(whole, rows)
            of_whole = expansion.operations_of_search(whole, own, n)
        if shares and taken + of_whole > allowed:
            break
        shares.append(share)
    return tuple(shares)


def _operations(layer: Layer, share: float) -> float:
    """Count the operations that all cells of a layer take, as a search in float64 counts them."""
    total = 0.0
    for n, n_kernels in zip(np.diff(layer.starts), (layer.gammas > 0).sum(axis=1), strict=True):
        n_columns = int(n_kernels) * _n_kept(share, int(n))
        n_sample = n + _n_crossed(int(n), n_columns)
        values = OPERATIONS_OF_VALUE * n_kernels * n
        total += float(n_sample * (values + n**2 / 2 + n_columns**2) + n_columns**3 / 3)
    return total


def _may_reach(sought: float, changes: list[float], n_shares: int) -> bool:
    """Whether one of so many shares may reach a change, if they gain a little more than so far."""
    if len(changes) < 2:
        return True
    gain = max(changes[-2] / max(changes[-1], 1e-300), 1.0)
    return bool(changes[-1] <= sought * gain ** (1.25 * (n_shares - len(changes))))


def _n_expected(clf: Any, tolerance: float, changes: list[float]) -> int:
    """How many support rows a tolerance takes if every doubling gains as the last one did."""
    gain = changes[-2] / max(changes[-1], 1e-300) if len(changes) > 1 else 1.0
    doublings = np.log(changes[-1] / tolerance) / np.log(gain) if gain > 1 else np.inf
    share = min(SHARES[len(changes) - 1] * 2 ** min(float(doublings), 8.0), 1.0)
    n_before = len(clf.support_)
    return int(n_before * (1 - (1 - share) ** (_n_held(experts_in(clf)) / n_before)))


def _n_held(experts: Experts) -> int:
    """Count the rows of all experts."""
    n_held = sum(len(layer.members) for layer in experts.layers)
    return n_held if experts.whole is None else n_held + len(experts.whole.model.support_)


class _Measure:
    """The decisions of a mixture on some rows, and how those of a smaller one differ."""

    def __init__(
        self, clf: Any, rows: Rows | None, random: np.random.RandomState, monitor: Monitor
    ) -> None:
        self._clf, self._monitor = clf, monitor
        self._rows = _training_rows(clf, random) if rows is None else _some(rows, random)
        self._scores = scores_of(clf, decisions(clf, self._rows, monitor))

    def of(self, small: Any) -> Any:
        """Say what a smaller mixture costs."""
        scores = scores_of(small, decisions(small, self._rows, self._monitor))
        before, after = winning_codes(self._scores), winning_codes(scores)
        small.compression_ = Compression(
            n_support_before=len(self._clf.support_),
            n_support=len(small.support_),
            relative_change=relative_change(self._scores, scores),
            changed_predictions=float((before != after).mean()),
            n_measured=len(scores),
            speedup=_cost(experts_in(self._clf)) / _cost(experts_in(small)),
        )
        return small


def _some(rows: Rows, random: np.random.RandomState) -> Rows:
    n = rows.shape[0]
    return rows if n <= MAX_MEASURED else rows[np.sort(random.permutation(n)[:MAX_MEASURED])]


def _training_rows(clf: Any, random: np.random.RandomState) -> Rows:
    """Draw training rows as they came, which takes their scaling back."""
    experts = experts_in(clf)
    rows, scaling = experts.support, experts.scaling
    if not experts.layers:
        assert experts.whole is not None  # there are experts
        whole = machines_in(experts.whole.model)
        rows, scaling = whole.support_vectors, whole.scaling
    rows = _some(rows, random).astype(np.float64)
    return rows if scaling is None else scaling.inverse(rows)


def _smaller(
    clf: Any, vote: _Vote, share: float, random: np.random.RandomState, monitor: Monitor
) -> Any:
    """Copy a mixture whose experts keep a share of their rows."""
    experts = experts_in(clf)
    layers = [
        _smaller_layer(layer, experts.support, share, random.randint(2**31 - 1), clf, monitor)
        for layer in experts.layers
    ]
    whole = vote.of(share)
    used = np.unique(np.concatenate([np.empty(0, np.int32), *(own.members for own in layers)]))
    found = replace(
        experts,
        support=experts.support[used],
        layers=[
            replace(own, members=np.searchsorted(used, own.members).astype(np.int32))
            for own in layers
        ],
        whole=whole,
        rows=used if experts.rows is None else experts.rows[used],
    )
    kept = np.searchsorted(experts.support_rows(), found.support_rows())
    small = copy_without(clf, OF_EXPERTS)
    keep_experts(small, found, some_of(kept, clf.support_, clf.n_support_, by_class_of(clf)))
    return small


class _Vote:
    """The vote on a sample, and smaller ones that one search finds.

    Parameters
    ----------
    whole : SampleVote or None
        The vote, if the mixture has one.
    rows : rows or None
        On which to keep the function (None: on the support rows).
    share : float
        The largest share of its rows to be kept.
    random, monitor
        As for `compress`.
    """

    def __init__(
        self,
        whole: SampleVote | None,
        rows: Rows | None,
        share: float,
        random: np.random.RandomState,
        monitor: Monitor,
    ) -> None:
        self.share, self._whole, self._rows = share, whole, rows
        self._random, self._monitor = random, monitor
        self._search: expansion.Nested | None = None

    def of(self, share: float) -> SampleVote | None:
        """Keep a share of the rows, and forget those that it had held out."""
        whole = self._whole
        if whole is None:
            return None
        n = _n_kept(share, len(whole.model.support_))
        if n < len(whole.model.support_):
            if self._search is None:
                self._search = self._begun(whole)
            model = self._search.of(n)
        else:
            model = expansion.unchanged(whole.model)
        return replace(
            whole,
            model=model,
            held_rows=whole.held_rows[:0],
            held_probabilities=whole.held_probabilities[:0],
            is_new=None,
        )

    def _begun(self, whole: SampleVote) -> expansion.Nested:
        """Begin the search."""
        own = None if self._rows is None else checked_rows(whole.model, self._rows)
        most = _n_kept(self.share, len(whole.model.support_))
        try:
            return expansion.Nested(whole.model, own, most, self._random, self._monitor)
        except TooLargeError as error:
            raise TooLargeError(f"For the vote on a sample of all rows, {error}") from None


def _n_kept(share: float, n: int) -> int:
    return min(n, max(LEAST_MEMBERS, round(share * n)))


@dataclass(frozen=True)
class _Kept:
    """What is left of a cell.

    Attributes
    ----------
    members : (n_kept,) int array
        Which members are left.
    coefficients : (n_kernels, n_machines, n_kept) float32 array
        Their coefficients, with all kernels of the layer.
    intercepts : (n_machines,) array
        Biases of the machines.
    """

    members: NDArray[np.intp]
    coefficients: NDArray[np.float32]
    intercepts: FloatArray


def _smaller_layer(
    layer: Layer, support: Rows, share: float, seed: int, clf: Any, monitor: Monitor
) -> Layer:
    """Compress all cells of a layer; members keep their numbers."""

    def keep(c: int, cells: Monitor) -> _Kept:
        cells.check()
        return _keep(layer, c, support, share, np.random.RandomState([seed, c]))

    kept = monitor.each(keep, layer.n_cells, _n_threads(layer, share, clf))
    pairs = zip(layer.starts[:-1], kept, strict=True)
    coefficient_starts, machines, values = packed(
        [[own.coefficients[k] for own in kept] for k in range(len(layer.kernels))]
    )
    return replace(
        layer,
        starts=np.cumsum([0, *(len(own.members) for own in kept)], dtype=np.int64),
        members=np.concatenate([layer.members[start + own.members] for start, own in pairs]),
        coefficient_starts=coefficient_starts,
        machines=machines,
        values=values,
        intercepts=np.array([own.intercepts for own in kept]),
    )


def _n_threads(layer: Layer, share: float, clf: Any) -> int:
    """Threads over cells, as many as memory allows."""
    n, n_kernels = int(np.diff(layer.starts).max()), len(layer.kernels)
    n_columns = n_kernels * _n_kept(share, n)
    # The kernels, their sum and its inner products in float32, and what is refitted in float64.
    n_sample = n + _n_crossed(n, n_columns)
    needed = 4 * n * (n_sample * (n_kernels + 1) + 2 * n) + 16 * n_columns * (n_sample + n_columns)
    room = memory_bytes(clf.memory_limit)
    if needed > room:
        raise TooLargeError(
            f"A cell of {n:,} rows needs about {needed / 1e9:.2g} GB; memory_limit leaves "
            f"{room / 1e9:.2g} GB. Lower n_support, or raise the classifier's memory_limit with "
            "set_params."
        )
    return min(int(effective_n_jobs(clf.n_jobs)), room // max(needed, 1))


def _n_crossed(n: int, n_columns: int) -> int:
    return max(n, CROSSED_PER_COEFFICIENT * n_columns)


def _keep(
    layer: Layer, c: int, support: Rows, share: float, random: np.random.RandomState
) -> _Kept:
    """Choose members of a cell, and refit their coefficients."""
    own = slice(int(layer.starts[c]), int(layer.starts[c + 1]))
    n, used = own.stop - own.start, np.flatnonzero(layer.gammas[c] > 0)
    n_kept = _n_kept(share, n)
    coefficients = np.array(
        [layer.coefficients(k, own).toarray() for k in range(len(layer.kernels))], dtype=np.float32
    ).reshape(len(layer.kernels), layer.intercepts.shape[1], n)
    if n_kept == n or len(used) == 0:
        return _Kept(np.arange(n), coefficients, layer.intercepts[c])

    rows = seen_rows(support[layer.members[own]], layer.means[c], layer.scales[c])
    sample = stacked(rows, crossed(rows, _n_crossed(n, len(used) * n_kept), random))  # 1.
    columns = np.empty((sample.shape[0], len(used) * n), dtype=np.float32)
    for i, k in enumerate(used):
        kernel = Kernel(layer.kernels[k], gamma=float(layer.gammas[c, k]))
        columns[:, i * n : (i + 1) * n] = kernel.block(sample, rows, dtype="float32")
    chosen, refitted, intercepts = _fit(columns, coefficients[used], n_kept)
    coefficients = np.zeros((*coefficients.shape[:2], len(chosen)), dtype=np.float32)
    coefficients[used] = refitted
    return _Kept(chosen, coefficients, layer.intercepts[c] + intercepts)


def _fit(
    columns: NDArray[np.float32], coefficients: NDArray[np.float32], n_kept: int
) -> tuple[NDArray[np.intp], FloatArray, FloatArray]:
    """Choose members, and refit coefficients and biases.

    Parameters
    ----------
    columns : (n_sample, n_kernels * n) array
        Kernel values of the sample, which begins with the members.
    coefficients : (n_kernels, n_machines, n) array
        Coefficients of all members.
    n_kept : int
        How many members to choose.
    """
    n_kernels, n_machines, n = coefficients.shape
    by_column = coefficients.transpose(0, 2, 1).reshape(n_kernels * n, n_machines)
    target = (columns @ by_column).astype(np.float64)
    root = root_mean_square(target)
    scale = np.where(root > 0, root, 1.0)
    weights = balancing_weights(target / scale, n)
    target, target_means = _centred(target / scale, weights)

    sizes = np.sqrt(np.square(coefficients, dtype=np.float64).sum(axis=(1, 2)))  # 2.
    shares = (sizes / (sizes.sum() or 1.0)).astype(np.float32)
    mixed = sum(shares[k] * columns[:, k * n : (k + 1) * n] for k in range(n_kernels))
    mixed, _ = _centred(mixed, weights.astype(np.float32))
    chosen = np.sort(forward_order(mixed.T @ mixed, mixed.T @ target.astype(np.float32), n_kept))
    if len(chosen) == 0:  # the function is a constant
        chosen = np.zeros(1, dtype=np.intp)

    at = columns_of(chosen, n, columns.shape[1])  # 3.
    kept, kept_means = _centred(columns[:, at].astype(np.float64), weights)
    gram = kept.T @ kept
    gram.flat[:: len(gram) + 1] += RIDGE_ROOT**2 * float(weights @ weights)
    found = scipy.linalg.cho_solve(scipy.linalg.cho_factor(gram), kept.T @ target)
    by_kernel = (found * scale).reshape(n_kernels, len(chosen), n_machines).transpose(0, 2, 1)
    return chosen, by_kernel, (target_means - kept_means @ found) * scale


def _centred(values: NDArray[Any], weights: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Weight rows, take off what an intercept explains, and return its values."""
    values = values * weights[:, None]
    means = weights @ values / (weights @ weights)
    values -= np.outer(weights, means)
    return values, means


def _cost(experts: Experts) -> float:
    """Operations to predict a row, up to a factor."""
    support = experts.support
    n_rows = max(support.shape[0], 1)
    per_row = support.nnz / n_rows if is_sparse(support) else support.shape[1]
    total = 0.0 if experts.whole is None else expansion.cost(experts.whole.model)
    for layer in experts.layers:
        n_values = float(np.diff(layer.starts) @ (layer.gammas > 0).sum(axis=1))
        total += (n_values * (per_row + COST_OF_FUNCTION) + len(layer.values)) / layer.n_cells
    return total
