r"""One expansion on fewer support rows.

A fitted classifier has one function per machine, a sum over N support rows,
:math:`f = \sum_i \alpha_i k(x_i, \cdot) + b`. This looks for m of these rows, and for new
coefficients, that preserve the function:

.. math:: \min_{S, \beta, c} \; \sum_{q} \Bigl( f(q) - \sum_{i \in S} \beta_i k(x_i, q) - c \Bigr)^2

over sample rows q, all machines at once on the same rows S. Burges [1]_ posed the problem. He moves
the rows freely, which has bad local minima and makes no sense for sparse rows or callables;
choosing among the support rows [2]_ needs only kernel values.

*Choosing rows* is forward selection by orthogonal least squares [3]_, known for kernels as matching
pursuit with prefitting [4]_. The next row is the one whose column, made orthogonal to the columns
chosen so far, explains most of the residual of f. With orthonormal columns U of the rows chosen so
far, the residual r of f, and the column k of a candidate,

.. math:: \text{gain} = (k' r)^2 / (\|k\|^2 - \|U'k\|^2),

so that inner products of a chosen column with all others update all gains. Rows are chosen in
batches that grow with the number chosen so far; each batch is selected one row at a time from a
shortlist a few times as long. Several kernels are added up for this, weighted by the size of their
coefficients; the residual is that of a fit with a coefficient for each. Gains need not be exact, so
that all columns are float32, and folded: every few values are added up with random signs, which
nearly keeps inner products. As this uses the function
itself, the change at equal m is 1.5 to 3 times smaller than with random rows, pivoted Cholesky
(which sees only the kernel) or the largest coefficients, all refitted in the same way.

*The sample* is the support rows and crossed rows, which take each feature from one of two support
rows drawn at random; the latter are as many for each kernel, or fewer where there are many. Rows of
both kinds count the same, however small f is there. At a support row, f contains that
row's own term, unlike at any new row. With a narrow kernel these terms are most of f there, and
fitting support rows alone spoils the function everywhere else (by several times its size, as
measured). With crossed rows, the change on new rows is as small as if they had been fitted, and
hardly ever larger than on support rows, where it is measured and reported.

*Refitting* is least squares with a ridge as large as the variance that rounded kernel values add to
predictions. This keeps coefficients from growing so large that predictions lose precision. One
Cholesky factor grows with the rows, and shows the change for every number of them: a tolerance
takes one search, in steps that aim at it by the change so far. Then smaller numbers are tried.

*How long it takes* is limited for a tolerance: unless the caller gives a time, the search has no
more operations than about five fits (`operations_of_fits`, an estimate from the size of the model,
so that the result depends on no clock). It ends before if the change falls too slowly to be small
enough by then. The model stays as it was, and what was found is reported.

Sample and candidates are drawn when there are more than 10,240 support rows. Time and memory then
do not depend on N, except for the decision values of the sample: m rows take about
``2 w p m + s c^2 + c^3 / 3`` operations, the first of them in float32, and
``4 p (w + m) + 8 c (s + 2 c)`` bytes, with at most ``s = max(15360, 3 c)`` sample rows in
``w = max(5120, 2 m)`` sums, ``p = max(10240, 2 m)`` candidates and ``c`` columns, one per row and
kernel. The change is measured on rows that were not fitted, if there are enough.

References
----------
.. [1] C. J. C. Burges, "Simplified support vector decision rules", ICML 1996.
.. [2] B. Schölkopf, S. Mika, C. J. C. Burges, P. Knirsch, K.-R. Müller, G. Rätsch and A. J. Smola,
   "Input space versus feature space in kernel-based methods", IEEE Transactions on Neural
   Networks, 1999.
.. [3] S. Chen, C. F. N. Cowan and P. M. Grant, "Orthogonal least squares learning algorithm for
   radial basis function networks", IEEE Transactions on Neural Networks, 1991.
.. [4] P. Vincent and Y. Bengio, "Kernel matching pursuit", Machine Learning, 2002; compare A. J.
   Smola and B. Schölkopf, "Sparse greedy matrix approximation for machine learning", ICML 2000.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from math import ceil
from typing import Any, NamedTuple, NoReturn

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from hardmargin.estimators._base.fitted import (
    keep_machines,
    machines_in,
    margins_of,
    scores_of,
)
from hardmargin.kernels import (
    NAMED_KERNELS,
    FloatArray,
    Kernel,
    KernelSum,
    Precision,
    Rows,
    is_sparse,
)
from hardmargin.kernels.diagonal import LARGEST_SQUARED_VALUE
from hardmargin.monitor import Monitor, Stopped
from hardmargin.resources import memory_bytes
from hardmargin.selection.calibration import winning_codes
from hardmargin.solvers.forward_selection import NestedLeastSquares, Selection

#: Up to this many support rows, all of them are candidates and in the sample.
MAX_WHOLE = 10_240

#: Rows are chosen by at least this many sums of sample rows.
LEAST_FOLDED = 5_120

#: Rows of the sample for every coefficient to be fitted, if there are enough.
SAMPLE_PER_COLUMN = 3

#: The largest weight of a row where the function is small.
LARGEST_WEIGHT = 100.0

#: The change is measured on rows that were not fitted if there are at least this many.
FEWEST_WITNESSES = 1_024

#: Number of columns, one per row and kernel, with which a tolerance is first sought.
FIRST_SIZE = 2_560

#: Rows that are chosen, at least, before the fit is looked at.
FEWEST_MORE = 8

#: A search goes on while it probably takes this many times the rows that it may choose, at most.
MOST_HOPE = 1.25

#: Numbers of rows that are tried once a tolerance is met, to meet it with fewer.
MOST_TRIES = 3

#: A share of the rows that is not worth a try.
CLOSE_ENOUGH = 0.005

#: Rows whose decisions are evaluated before the clock is asked again.
ROWS_AT_ONCE = 2_048

#: A column whose part beside an intercept is not larger, in units of rounding, is a constant.
LEAST_IN_EPS = 10.0

#: What a search may do in the time of five fits of EnsembleSVC: operations for any fit, for a pair
#: of support rows, for such a pair and kernel, and for a row of a machine. They follow the times of
#: fits of 300 to 20,000 rows of 2 to 26 classes (`benchmarks/compress.py`).
OF_ANY_FITS = 7e9
OF_PAIRS, OF_PAIRS_AND_KERNELS = 450.0, 750.0
OF_MACHINE_ROWS = 2.5e6

#: Cost of applying the kernel's function to a distance or product, in products of features.
COST_OF_FUNCTION = 16

#: Attributes that a smaller expansion sets anew.
_OF_EXPANSION = {
    "support_",
    "support_vectors_",
    "n_support_",
    "dual_coef_",
    "intercept_",
    "gamma_",
    "_kernel_",
    "_weights_",
    "_dtype_",
    "_by_class_",
}

#: What a compressed model no longer has: numbers that describe the trained plane, and its path.
_OF_TRAINED_PLANE = {
    "certificate_",
    "margin_",
    "rho_",
    "rho_lower_bound_",
    "support_bound_",
    "vc_bound_",
    "weight_norm_",
}
_OF_PATH = ("stage_", "_stage", "_plane", "_given_back")

#: Attributes that staged methods read first.
_PATHS = ("stage_indices_", "stage_steps_", "_planes_", "_stages_")


@dataclass(frozen=True, repr=False)
class Compression:
    """What ``compress`` did to a classifier, and what it cost.

    Attributes
    ----------
    n_support_before, n_support : int
        Support rows before and after.
    relative_change : float
        Root mean square (RMS) of the change of the decision values, divided by the RMS of the
        values; with several machines, the RMS over the machines.
    changed_predictions : float
        Share of the measured rows whose predicted class changed.
    n_measured : int
        Number of rows on which both were measured: the support rows (or `X`, if given), or a draw
        of them (one that was not fitted, unless the model is a mixture of experts); 0 if nothing
        changed.
    speedup : float
        Expected speed-up of ``predict``, by counting operations.
    """

    n_support_before: int
    n_support: int
    relative_change: float
    changed_predictions: float
    n_measured: int
    speedup: float

    def __repr__(self) -> str:
        if self.n_support == self.n_support_before:
            return f"Compression(none: all {self.n_support:,} support rows are kept)"
        return (
            f"Compression({self.n_support_before:,} -> {self.n_support:,} support rows, predict "
            f"up to {self.speedup:.3g}x as fast; on {self.n_measured:,} rows the decision values "
            f"changed by {self.relative_change:.2%} (RMS) and {self.changed_predictions:.2%} of "
            "the predictions)"
        )


class TooLargeError(ValueError):
    """The memory limit leaves too little room."""


class Found(NamedTuple):
    """What a search found.

    Attributes
    ----------
    model : classifier or None
        The smaller model, if any.
    in_time : bool
        Whether the search had the time that it needs.
    nearest : classifier or None
        The best model of a search for a tolerance that ended because it would take too long.
    n_expected : int
        Support rows that the tolerance takes then, probably; it may take more.
    """

    model: Any | None
    in_time: bool
    nearest: Any | None = None
    n_expected: int = 0


def compress_to(
    clf: Any, rows: Rows | None, n_support: int, random: np.random.RandomState, monitor: Monitor
) -> Found:
    """Keep `n_support` rows, chosen by the function on `rows` (None: on the support rows)."""
    rows = clf.support_vectors_ if rows is None else rows
    size = _Size.of(clf, rows, n_support)
    size.check()
    fit = None
    try:
        fit = _Fit(clf, rows, size, random, monitor)
        while fit.grow(n_support):
            pass
    except Stopped:
        return Found(fit.smaller(fit.n_fitted) if fit and fit.n_fitted else None, False)
    return Found(fit.smaller(fit.n_fitted), True)


def compress_within(
    clf: Any,
    rows: Rows | None,
    tolerance: float,
    random: np.random.RandomState,
    monitor: Monitor,
    is_short: bool = False,
) -> Found:
    """Keep as few support rows as the tolerance allows.

    Parameters
    ----------
    clf, rows, tolerance, random, monitor
        As for `compress`.
    is_short : bool
        Whether the search ends where it takes longer than about five fits.
    """
    rows = clf.support_vectors_ if rows is None else rows
    most = len(clf.support_) - 1
    if is_short:
        most = _affordable(clf, rows)
    best: list[Any] = []
    fit = None
    for size, is_last in _sizes(clf, rows, most):
        try:
            fit = _Fit(clf, rows, size, random, monitor)
            small = fit.reach(tolerance, is_last)
        except Stopped:
            best += [fit.smaller(fit.n_fitted)] if fit and fit.n_fitted else []
            changes = [small.compression_.relative_change for small in best]
            return Found(best[int(np.argmin(changes))] if best else None, False)
        if small is not None:
            return Found(small, True)
        if monitor.has_limit:
            best = [fit.smaller(fit.n_fitted)]
    if fit is not None and most < len(clf.support_) - 1 and size.most == most:
        return fit.not_reached(tolerance)
    return Found(None, True)


class Nested:
    """Smaller models of one search, whose rows are among those of the larger ones.

    Parameters
    ----------
    clf, rows, random, monitor
        As for `compress`.
    most : int
        The largest number of rows.
    """

    def __init__(
        self,
        clf: Any,
        rows: Rows | None,
        most: int,
        random: np.random.RandomState,
        monitor: Monitor,
    ) -> None:
        rows = clf.support_vectors_ if rows is None else rows
        size = _Size.of(clf, rows, most)
        size.check()
        self._fit = _Fit(clf, rows, size, random, monitor)

    def of(self, n: int) -> Any:
        """Keep n rows, at most as many as the search may choose."""
        while self._fit.n_fitted < n and self._fit.grow(n):
            pass
        return self._fit.smaller(min(n, self._fit.n_fitted))


def operations_of_fits(n: float, n_kernels: float, n_coefficients: int) -> float:
    """Estimate the operations of five fits of a vote, in those of a search.

    Parameters
    ----------
    n : float
        Its support rows.
    n_kernels : float
        Kernels that vote.
    n_coefficients : int
        Coefficients of all machines, for all kernels.
    """
    of_pairs = n**2 * (OF_PAIRS + OF_PAIRS_AND_KERNELS * n_kernels)
    return OF_ANY_FITS + of_pairs + OF_MACHINE_ROWS * n_coefficients / max(n_kernels, 1.0)


def allowed_operations(clf: Any) -> float:
    """How many operations the search for a tolerance may have."""
    coefficients = clf.dual_coef_
    n = coefficients.nnz if is_sparse(coefficients) else np.count_nonzero(coefficients)
    return operations_of_fits(len(clf.support_), len(_kernels(clf)), int(n))


def operations_of_search(clf: Any, rows: Rows | None, most: int) -> float:
    """Count the operations of a search for so many rows."""
    return _Size.of(clf, clf.support_vectors_ if rows is None else rows, most).n_operations


def _affordable(clf: Any, rows: Rows) -> int:
    """Return how many rows a search that ends early may choose."""
    allowed = allowed_operations(clf)
    enough, too_many = 1, len(clf.support_)
    while too_many - enough > 1:
        middle = (enough + too_many) // 2
        if _Size.of(clf, rows, middle).n_operations <= allowed:
            enough = middle
        else:
            too_many = middle
    return enough


@dataclass(frozen=True)
class _Size:
    """Numbers of rows that a fit uses."""

    most: int  # rows to choose
    n_real: int  # in the sample
    n_crossed: int
    n_candidates: int
    n_kernels: int
    n_machines: int
    room: int  # bytes

    @classmethod
    def of(cls, clf: Any, rows: Rows, most: int) -> _Size:
        n, n_support, n_kernels = rows.shape[0], len(clf.support_), len(_kernels(clf))
        n_machines = clf.dual_coef_.shape[0]
        room = memory_bytes(clf.memory_limit)
        n_coefficients = most * n_kernels
        n_real = min(n, max(MAX_WHOLE, 2 * n_coefficients))
        n_crossed = 0
        if machines_in(clf).kernel.name != "precomputed":
            wanted = max(MAX_WHOLE // 2, SAMPLE_PER_COLUMN * n_coefficients - n_real)
            n_crossed = min(wanted, n * n_kernels)
        n_candidates = min(n_support, max(MAX_WHOLE, 2 * most))
        size = cls(most, n_real, n_crossed, n_candidates, n_kernels, n_machines, room)
        # With little memory, halve all while the coefficients are still determined.
        while not size.fits and (n_candidates > most or size.n_sample > 2 * n_coefficients):
            share = max(0.5, min(1.0, 2 * n_coefficients / size.n_sample))
            n_real, n_crossed = ceil(share * size.n_real), ceil(share * size.n_crossed)
            n_candidates = max(n_candidates // 2, most)
            size = cls(most, n_real, n_crossed, n_candidates, n_kernels, n_machines, room)
        return size

    @property
    def n_sample(self) -> int:
        """Number of rows on which the function is fitted."""
        return self.n_real + self.n_crossed

    @property
    def n_folded(self) -> int:
        """Number of sums of sample rows by which rows are chosen."""
        return min(self.n_sample, max(LEAST_FOLDED, 2 * self.most))

    @property
    def n_bytes(self) -> int:
        """What rows are chosen by in float32, columns of the rows chosen, and their factor."""
        n_columns = self.most * self.n_kernels
        choosing = 4 * (self.n_folded + self.most) * self.n_candidates
        return choosing + 8 * (self.n_sample * n_columns + 2 * n_columns**2)

    @property
    def n_operations(self) -> float:
        """Multiplications with an addition in float64; those in float32 are half of one."""
        n_columns = self.most * self.n_kernels
        choosing = self.n_candidates * self.most * (self.n_folded + self.most / 2)
        fitting = n_columns**2 * (self.n_sample + n_columns / 3)
        # What is left of every machine, after each growth by a quarter.
        n_growths = np.log1p(self.most / (4 * FEWEST_MORE)) / np.log(1.25)
        of_rest = n_growths * self.n_candidates * self.n_folded
        of_rest += 2 * 5 * self.n_sample * n_columns
        return float(choosing + fitting + self.n_machines * of_rest)

    @property
    def fits(self) -> bool:
        return self.n_bytes <= self.room

    def is_like(self, other: _Size) -> bool:
        """Whether sample and candidates are the same."""
        return (self.n_sample, self.n_candidates) == (other.n_sample, other.n_candidates)

    def check(self) -> None:
        if not self.fits:
            raise TooLargeError(
                f"n_support={self.most:,} needs about {self.n_bytes / 1e9:.2g} GB; memory_limit "
                f"leaves {self.room / 1e9:.2g} GB. Lower n_support, or raise the classifier's "
                "memory_limit with set_params."
            )


def _sizes(clf: Any, rows: Rows, most: int) -> Iterator[tuple[_Size, bool]]:
    """Sizes of fits that may reach a tolerance, while they fit in memory; and which is the last.

    The last one looks for the tolerance to its end; but if `most` is not all rows, none does.
    """
    whole = _Size.of(clf, rows, most)
    size = _Size.of(clf, rows, min(most, max(1, FIRST_SIZE // len(_kernels(clf)))))
    is_soon = whole.most * whole.n_kernels <= 2 * FIRST_SIZE
    if whole.fits and (is_soon or whole.is_like(size)) and whole.n_folded == size.n_folded:
        size = whole
    while size.fits:
        further = _Size.of(clf, rows, min(2 * size.most, most))
        if whole.fits and whole.is_like(further):
            further = whole
        is_last = size.most == most or not further.fits
        yield size, is_last and not (size.most == most < len(clf.support_) - 1)
        if is_last:
            return
        size = further


class _Fit:
    """The function of a classifier on sample rows, and expansions over fewer rows that fit it."""

    def __init__(
        self,
        clf: Any,
        rows: Rows,
        size: _Size,
        random: np.random.RandomState,
        monitor: Monitor,
    ) -> None:
        self.clf, self._size, self._monitor = clf, size, monitor
        n, n_support = rows.shape[0], len(clf.support_)
        n_real = size.n_real
        drawn = random.permutation(n) if n_real < n else np.arange(n)
        sample = self._witnesses = rows[drawn[:n_real]]
        if size.n_crossed:
            sample = stacked(sample, crossed(sample, size.n_crossed, random))
        target = decisions(clf, sample, monitor)
        self._values = target[:n_real]
        if n - n_real >= FEWEST_WITNESSES:
            self._witnesses = rows[drawn[n_real : n_real + MAX_WHOLE]]
            self._values = decisions(clf, self._witnesses, monitor)
        if not np.isfinite(target).all():
            raise ValueError("The classifier has decision values that are not finite.")
        root = root_mean_square(target)
        self._scale = np.where(root > 0, root, 1.0)
        weights = balancing_weights(target / self._scale, n_real)
        target = weights[:, None] * (target / self._scale)

        self._candidates = np.arange(n_support)
        if size.n_candidates < n_support:
            self._candidates = np.sort(random.permutation(n_support)[: size.n_candidates])
        # The intercept is a column of ones; its part is subtracted first.
        self._sample, self._weights, total = sample, weights, float(weights @ weights)
        self._target_means = weights @ target / total
        target -= np.outer(weights, self._target_means)
        self._folds = _Folds(len(target), size.n_folded, random)
        columns, largest = self._summed()
        precision = (
            10 * float(np.finfo(np.float32).eps) if machines_in(clf).dtype == "float32" else 1e-8
        )
        ridge = total * (precision * largest) ** 2
        most = size.most * size.n_kernels
        self._least_squares = NestedLeastSquares(target, ridge, monitor, most)
        self._column_means = np.empty(0)  # of the columns fitted
        self._selection = Selection(columns, self._folds.of(target.T).T, size.most)

    @property
    def n_fitted(self) -> int:
        """Number of rows chosen and fitted so far."""
        return self._least_squares.n_columns // self._size.n_kernels

    def grow(self, n: int) -> bool:
        """Choose and fit more rows, at most a quarter more and up to n; say whether any were."""
        n_before = self.n_fitted
        if not self._selection.grow(min(n, n_before + n_before // 4 + FEWEST_MORE), self._monitor):
            return False
        self._monitor.check()
        more = self._selection.chosen[n_before:]
        self._least_squares.add(self._columns_of(more))
        residual = self._least_squares.residual()
        self._selection.aim_at(self._folds.of(residual.T).T)
        return True

    def reach(self, tolerance: float, is_last: bool) -> Any | None:
        """Choose rows until the measured change is at most `tolerance`; None if it never is.

        Parameters
        ----------
        tolerance : float
            The largest change.
        is_last : bool
            Whether no larger fit follows; if one does, this is left once it seems too small.
        """
        sought, n = tolerance, 0
        while True:
            changes = self._least_squares.changes()[:: self._size.n_kernels]
            enough = np.flatnonzero(changes[n + 1 :] <= sought)
            if len(enough) == 0:
                if not (is_last or _may_reach(sought, changes, self._size.most)):
                    return None
                if not self.grow(_size_for(sought, changes, self._size.most)):
                    return None
                continue
            too_few, n = n, n + 1 + int(enough[0])
            small = self.smaller(n)
            measured = small.compression_.relative_change
            if measured <= tolerance:
                return self._fewest(small, n, too_few, tolerance)
            # The measured rows are harder than the sample: aim that much lower.
            sought = min(sought, changes[n]) * max(tolerance / measured, 0.5)

    def not_reached(self, tolerance: float) -> Found:
        """Say what is known about a tolerance that this fit does not reach."""
        nearest = self.smaller(self.n_fitted)
        changes = self._least_squares.changes()[:: self._size.n_kernels]
        harder = nearest.compression_.relative_change / max(changes[-1], 1e-300)
        n_all, n_more = len(self.clf.support_), self._size.most + 1
        expected = _soonest(tolerance / max(harder, 1e-300), changes)
        return Found(None, True, nearest, int(min(n_all, max(n_more, expected))))

    def _fewest(self, enough: Any, n: int, too_few: int, tolerance: float) -> Any:
        """Meet a tolerance with as few rows as possible.

        Parameters
        ----------
        enough : classifier
            A smaller model, of n rows, that meets it.
        n, too_few : int
            Numbers of rows that meet it, and that do not.
        tolerance : float
            The largest change.
        """
        changes = self._least_squares.changes()[:: self._size.n_kernels]
        measured = enough.compression_.relative_change
        at = n
        for _ in range(MOST_TRIES):
            # The measured change is a multiple of that of the sample, which hardly varies.
            expected = changes[too_few + 1 : n] * (measured / changes[at])
            fewer = np.flatnonzero(expected <= tolerance)
            if len(fewer) == 0:
                break
            at = too_few + 1 + int(fewer[0])
            if n - at < CLOSE_ENOUGH * n or self._monitor.seconds_left <= 0:
                break
            small = self.smaller(at)
            measured = small.compression_.relative_change
            if measured <= tolerance:
                enough, n = small, at
            else:
                too_few = at
        return enough

    def smaller(self, n: int) -> Any:
        """Copy the classifier with the first n rows chosen."""
        small = _with(self.clf, *self._expansion(n))
        values = margins_of(small, self._witnesses)
        before, after = (winning_codes(scores_of(self.clf, v)) for v in (self._values, values))
        small.compression_ = Compression(
            n_support_before=len(self.clf.support_),
            n_support=len(small.support_),
            relative_change=relative_change(self._values, values),
            changed_predictions=float((before != after).mean()),
            n_measured=len(values),
            speedup=cost(self.clf) / cost(small),
        )
        return small

    def _expansion(self, n: int) -> tuple[NDArray[np.intp], FloatArray, FloatArray]:
        """Return the first n rows chosen, sorted, coefficients of all machines, and intercepts."""
        n_kernels = self._size.n_kernels
        if n == 0:  # a constant
            none = np.zeros((len(self._scale), n_kernels))
            return np.zeros(1, dtype=np.intp), none, self._target_means * self._scale
        chosen = self._selection.chosen[:n]
        found = self._least_squares.solution(n * n_kernels)
        intercept = self._target_means - self._column_means[: len(found)] @ found
        order = np.argsort(chosen)
        by_kernel = found.reshape(n, n_kernels, -1)[order].transpose(2, 1, 0)
        return (
            self._candidates[chosen[order]],
            self._scale[:, None] * by_kernel.reshape(len(self._scale), -1),
            intercept * self._scale,
        )

    def _columns_of(self, chosen: NDArray[np.intp]) -> FloatArray:
        """Columns of some candidates: those of all kernels, candidate after candidate."""
        n_kernels = self._size.n_kernels
        columns = np.empty((len(chosen), n_kernels, len(self._weights)))
        for part in _parts(len(chosen)):
            rows = self._candidates[chosen[part]]
            for k, values in enumerate(self._kernel_values(rows, self._sample)):
                columns[part, k] = values
        by_row = columns.reshape(len(chosen) * n_kernels, -1)
        means = _centre(by_row, self._weights)
        self._column_means = np.concatenate([self._column_means, means])
        return by_row.T

    def _summed(self) -> tuple[NDArray[np.float32], float]:
        """One column of length one per candidate, of all its kernels; the largest kernel value.

        Kernels are weighted by the size of their coefficients.
        """
        n_kernels, n = self._size.n_kernels, len(self._candidates)
        shares = np.ones(1)
        if n_kernels > 1:
            squares = self.clf.dual_coef_ / self._scale[:, None]
            squares = squares.power(2) if is_sparse(squares) else squares**2
            sizes = np.sqrt(np.asarray(squares.sum(axis=0)).reshape(n_kernels, -1).sum(axis=1))
            shares = sizes / (sizes.sum() or 1.0)
        # Other kernels may have values that float32 does not hold, or their differences.
        is_bounded = all(kernel.has_unit_diagonal for kernel in _kernels(self.clf))
        dtype: Precision = "float32" if is_bounded else "float64"
        sample, weights = self._sample, self._weights.astype(dtype)
        summed = np.empty((n, self._folds.n), dtype=np.float32)
        largest = 0.0
        for part in _parts(n):
            self._monitor.check()
            rows = self._candidates[part]
            total = np.zeros((len(rows), len(weights)), dtype=dtype)
            of_kernels = self._kernel_values(rows, sample, dtype)
            for share, values in zip(shares, of_kernels, strict=True):
                largest = max(largest, float(values.max()), -float(values.min()))
                total += share * values
            if not largest <= LARGEST_SQUARED_VALUE:
                raise ValueError(
                    f"Kernel values of this classifier go up to {largest:.2g}; their squares "
                    "overflow. Scale the features and fit it again."
                )
            before = np.einsum("ij,ij->i", total, total)
            _centre(total, weights)
            total = self._folds.of(total)
            lengths = np.einsum("ij,ij->i", total, total)
            is_constant = lengths <= (LEAST_IN_EPS * np.finfo(dtype).eps) ** 2 * before
            total[is_constant] = 0.0
            lengths[is_constant] = 1.0
            summed[part] = total / np.sqrt(lengths)[:, None]
        return summed.T, largest

    def _kernel_values(
        self, rows: NDArray[np.intp], sample: Rows, dtype: Precision = "float64"
    ) -> Iterator[NDArray[Any]]:
        """Yield the values of every kernel between some support rows and a sample."""
        queries, support = machines_in(self.clf).facing(sample, rows)
        for kernel in _kernels(self.clf):
            if kernel.name in NAMED_KERNELS:  # which are symmetric
                yield kernel.block(support, queries, dtype=dtype, n_jobs=self.clf.n_jobs)
            else:
                yield kernel.block(queries, support, n_jobs=self.clf.n_jobs).T


class _Folds:
    """Sums of every few values with random signs, which nearly keep inner products.

    Parameters
    ----------
    n_values, n : int
        Number of values, and of sums.
    random : RandomState
        Draws the signs.
    """

    def __init__(self, n_values: int, n: int, random: np.random.RandomState) -> None:
        self.n = n
        self._signs = random.choice(np.array([-1, 1], dtype=np.float32), size=n_values)

    def of(self, values: NDArray[Any]) -> NDArray[Any]:
        """Fold the columns of a matrix."""
        folded: NDArray[Any] = values[:, : self.n] * self._signs[: self.n]
        for begin in range(self.n, values.shape[1], self.n):
            signs = self._signs[begin : begin + self.n]
            folded[:, : len(signs)] += values[:, begin : begin + self.n] * signs
        return folded


def decisions(clf: Any, rows: Rows, monitor: Monitor) -> FloatArray:
    """Decision values of all machines, with looks at the clock."""
    parts = []
    for part in _parts(rows.shape[0], ROWS_AT_ONCE):
        monitor.check()
        parts.append(margins_of(clf, rows[part]))
    return np.concatenate(parts)


def _centre(values: NDArray[Any], weights: NDArray[Any]) -> NDArray[Any]:
    """Weigh the sample, and subtract and return what an intercept explains of every row."""
    values *= weights
    means: NDArray[Any] = values @ weights / (weights @ weights)
    for own, mean in zip(values, means, strict=True):
        own -= mean * weights
    return means


def _size_for(sought: float, changes: FloatArray, most: int) -> int:
    """How many rows reach a change, if the next rows gain as much as the last half did."""
    n = len(changes) - 1
    doublings = min(_gains_left(sought, changes), 8.0)
    return min(most, n + FEWEST_MORE + int(n * (2**doublings - 1)))


def _soonest(sought: float, changes: FloatArray) -> float:
    """How many rows reach a change, if every row gains as much as those of the last half did."""
    return (len(changes) - 1) * (1 + _gains_left(sought, changes) / 2)


def _may_reach(sought: float, changes: FloatArray, most: int) -> bool:
    """Whether a fit may reach a change with so many rows, or with a few more.

    The estimate of a quarter of the rows is the soonest one, as gains often grow; that of half of
    them is between that and one for which only every doubling gains as much as the last did.
    """
    n = len(changes) - 1
    if n < max(most // 4, 2):
        return True
    expected = _soonest(sought, changes)
    if n >= most // 2:
        latest = n * 2.0 ** min(_gains_left(sought, changes), 30.0)
        expected = float(np.sqrt(expected * latest))
    return expected <= MOST_HOPE * most


def _gains_left(sought: float, changes: FloatArray) -> float:
    """How often the factor that the last half of the rows gained is still to be gained."""
    n = len(changes) - 1
    gain = float(changes[n // 2] / max(changes[n], 1e-300))
    if changes[n] <= sought:
        return 0.0
    if n < 2 or gain <= 1 or not sought > 0:
        return np.inf
    return float(np.log(changes[n] / sought) / np.log(gain))


def root_mean_square(values: FloatArray) -> FloatArray:
    """Root mean square of every column, even where squares would overflow."""
    _, exponent = np.frexp(np.abs(values).max(axis=0))
    unit = np.ldexp(1.0, exponent - 1)  # a power of two, so that division does not round
    roots: FloatArray = unit * np.sqrt(((values / unit) ** 2).mean(axis=0))
    return roots


def relative_change(before: FloatArray, after: FloatArray) -> float:
    """RMS of the change of every column relative to the RMS of the column; RMS over columns."""
    root = root_mean_square(before)
    changes = root_mean_square(after - before) / np.where(root > 0, root, 1)
    return float(np.sqrt((changes**2).mean()))


def balancing_weights(target: FloatArray, n_real: int) -> FloatArray:
    """Make real and crossed rows count the same, however small the function is at crossed rows."""
    weights = np.ones(len(target))
    for part in (slice(0, n_real), slice(n_real, None)):
        mean_square = float((target[part] ** 2).mean()) if len(target[part]) else 1.0
        weights[part] = 1.0 / np.sqrt(max(mean_square, 1.0 / LARGEST_WEIGHT**2))
    return weights


def _parts(n: int, size: int = 64) -> Iterator[slice]:
    """Yield slices of a few rows each, as a copy of all rows would be large."""
    yield from (slice(begin, min(begin + size, n)) for begin in range(0, n, size))


def _kernels(clf: Any) -> tuple[Kernel, ...]:
    kernel = machines_in(clf).kernel
    return kernel.kernels if isinstance(kernel, KernelSum) else (kernel,)


def crossed(rows: Rows, n: int, random: np.random.RandomState) -> Rows:
    """Make rows that take each feature from one of two rows drawn at random."""
    n_rows, n_features = rows.shape
    one, other = rows[random.randint(n_rows, size=n)], rows[random.randint(n_rows, size=n)]
    # Half of the features, rotated differently for every row: cheap for sparse rows too.
    half = random.permutation(n_features) < n_features / 2
    shift = random.randint(n_features, size=n)
    if not is_sparse(rows):
        of_one = half[(np.arange(n_features) + shift[:, None]) % n_features]
        return np.where(of_one, one, other)
    for part, is_kept in ((one, half), (other, ~half)):
        row = np.repeat(np.arange(n), np.diff(part.indptr))
        part.data[~is_kept[(part.indices + shift[row]) % n_features]] = 0
        part.eliminate_zeros()
    return (one + other).tocsr()


def stacked(one: Rows, other: Rows) -> Rows:
    """Put rows below others."""
    if is_sparse(one):
        return sp.vstack([one, other], format="csr", dtype=one.dtype)
    return np.concatenate([one, other])


def unchanged(clf: Any) -> Any:
    """Copy a classifier that keeps all its support rows."""
    same = copy.deepcopy(clf)
    n = len(clf.support_)
    same.compression_ = Compression(n, n, 0.0, 0.0, 0, 1.0)
    return same


def _with(clf: Any, kept: NDArray[np.intp], coefficients: FloatArray, intercept: FloatArray) -> Any:
    """Copy a classifier with another expansion and without its path."""
    small = copy_without(clf, _OF_EXPANSION)
    keep_machines(small, machines_in(clf).keeping(kept, coefficients, intercept))
    if hasattr(clf, "threshold_"):
        small.threshold_ = -float(intercept[0]) if np.ndim(clf.threshold_) == 0 else -intercept
    return small


def copy_without(clf: Any, left_out: Collection[str]) -> Any:
    """Copy a classifier without some attributes, which the caller sets, and without its path."""
    state = {k: v for k, v in vars(clf).items() if k not in left_out and not _is_of_training(k)}
    small = object.__new__(type(clf))
    vars(small).update(copy.deepcopy(state))
    for name in _PATHS:
        if hasattr(clf, name):
            setattr(small, name, _NoPath())
    return small


def _is_of_training(name: str) -> bool:
    is_path = name.endswith("_path_") and not name.startswith("cv_")  # keeps how it was chosen
    return name in _OF_TRAINED_PLANE or is_path or name.startswith(_OF_PATH)


class _NoPath:
    """Takes the place of the path, and raises an error when it is read."""

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise AttributeError(
            "A compressed model has no stages and no path; use the model it was made from."
        )

    __len__ = __iter__ = __getitem__ = __array__ = _refuse

    def __repr__(self) -> str:
        return "<none: the model is compressed>"


def cost(clf: Any) -> float:
    """Operations to predict a row, up to a factor."""
    n, name = len(clf.support_), machines_in(clf).kernel.name
    if name == "linear":
        return 1.0
    coefficients = clf.dual_coef_.nnz if is_sparse(clf.dual_coef_) else clf.dual_coef_.size
    if name == "precomputed":
        return float(coefficients)
    features = clf.support_vectors_
    per_row = features.nnz / n if is_sparse(features) else features.shape[1]
    return float(n * len(_kernels(clf)) * (per_row + COST_OF_FUNCTION) + coefficients)
