"""What the greedy stagewise SVM chooses its kernel values from.

A source is a kernel with the rows of one view: standardised, or as they came. Its columns may be
scaled by their relevance (``relevance.py``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from hardmargin.kernels import (
    DISTANCE_KERNELS,
    KERNELS_WITHOUT_GAMMA,
    NAMED_KERNELS,
    FloatArray,
    KernelRows,
    Rows,
    as_blocks,
    column_ends,
    is_sparse,
    make_kernel,
    resolve_gamma,
)
from hardmargin.kernels.kernel import MAX_FLOAT32_FEATURE, largest_size
from hardmargin.selection.relevance import column_scales
from hardmargin.solvers.problem import Problem

#: Kernels whose gamma can be chosen.
KERNELS_WITH_GAMMA = tuple(name for name in NAMED_KERNELS if name not in KERNELS_WITHOUT_GAMMA)

#: Above this many columns a linear kernel is tried, but no Laplacian kernel and no relevance, which
#: would be slow.
MANY_COLUMNS = 1_000

#: Above this many rows only RBF kernels are tried (and linear ones where rows are wide or sparse):
#: the others take many times as long there.
MANY_ROWS = 100_000

#: Up to this many rows, kernels are evaluated in float64 while choosing.
MAX_EXACT_ROWS = 500

#: Far from all rows, log-odds may be this far from those of the shares of the classes. Kernels
#: whose gamma is given are left alone: they may be so wide that they are no use without an offset.
REACH = 2.0

#: Rows as they came are used if they lower the log-loss by more than this factor.
HANDICAP_AS_THEY_CAME = 1.05


@dataclass(frozen=True)
class Source:
    """Where kernel values come from.

    Attributes
    ----------
    values : KernelRows
        A kernel, whose gamma is where the search starts, and rows, in the precision of the search.
    view : int
        Which view the rows are of; the first is that of standardised rows, if there is one.
    tunes_gamma : bool
        Whether to try other gammas.
    handicap : float
        What its log-loss is multiplied by when it is compared with other sources.
    is_centred : bool
        Whether the mean of the rows is zero. Other kernels than those of distances then see the
        rows of a split relative to the mean of its training rows: held-out rows must have no part
        in the mean, which matters if there are more columns than rows.
    can_scale : bool
        Whether to try columns scaled by their relevance, too.
    relevance : sequence of (d,) arrays
        The relevance that columns are scaled by: one array for each split, or one for all; empty
        where columns stay as they are. The gamma is then that of the rows as scaled.
    """

    values: KernelRows
    view: int = 0
    tunes_gamma: bool = True
    handicap: float = 1.0
    is_centred: bool = False
    can_scale: bool = False
    relevance: Sequence[FloatArray] = ()

    def scaled(
        self,
        rows: KernelRows,
        weights: FloatArray | None = None,
        split: int = 0,
        gamma: float | None = None,
    ) -> KernelRows:
        """Scale the columns of all rows, or of some, by their relevance on a split.

        Parameters
        ----------
        rows : KernelRows
            The rows.
        weights : (n,) array or None
            Their weights.
        split : int
            Which relevance, where every split of all rows has its own.
        gamma : float, optional
            The gamma to start from, where it is known: it is the same for equal rows.
        """
        scales = self.scales[min(split, len(self.scales) - 1)]
        X = as_blocks(rows.X).map(lambda part: part * scales)
        if gamma is None:
            gamma = resolve_gamma("spread", X, kernel=rows.kernel.name, sample_weight=weights)
        return replace(rows, X=X, kernel=replace(rows.kernel, gamma=gamma))

    @property
    def reach(self) -> float:
        """How far log-odds at a score of zero may be from those of the shares of the classes.

        Scores of kernels of distances are zero far from all rows.
        """
        return REACH if self.tunes_gamma and self.values.kernel.has_unit_diagonal else np.inf

    @cached_property
    def scales(self) -> list[FloatArray]:
        """What columns are multiplied by, for each split or for all."""
        if not self.relevance:
            return []
        is_many_valued = column_ends(self.values.X).has_others
        return [column_scales(known, is_many_valued) for known in self.relevance]

    @property
    def for_all(self) -> Source:
        """The source with one relevance: the mean over the splits."""
        if len(self.relevance) < 2:
            return self
        mean = np.mean(self.relevance, axis=0)
        return replace(self, relevance=(mean / mean.max(),))


def greedy_sources(
    problem: Problem[KernelRows],
    views: Sequence[Rows],
    *,
    chooses_kernel: bool,
    tunes_gamma: bool,
    is_centred: bool,
    may_round: bool,
) -> list[Source]:
    """Pair kernels with views of the rows, view after view.

    Parameters
    ----------
    problem : Problem of KernelRows
        What is to be learned, with the first kernel on the first view.
    views : sequence of rows
        The same rows, scaled in several ways.
    chooses_kernel : bool
        Whether to try other kernels.
    tunes_gamma : bool
        Whether to try other gammas.
    is_centred : bool
        Whether the columns of the first view have mean zero and variance one.
    may_round : bool
        Whether float32 may do for the search.
    """
    first, weights = problem.values.kernel, row_weights(problem)
    n_rows, n_columns = int((problem.codes >= 0).sum()), views[0].shape[1]
    has_all_kernels = n_rows <= MANY_ROWS and n_columns <= MANY_COLUMNS
    names = [first.name]
    if chooses_kernel:
        names = list(DISTANCE_KERNELS) if has_all_kernels else ["rbf"]
        if is_sparse(views[0]) or n_columns > min(n_rows, MANY_COLUMNS):
            names.append("linear")
    can_scale = chooses_kernel and has_all_kernels and is_centred and n_columns > 1
    given: dict[str, Any] = {"degree": first.degree, "coef0": first.coef0, "sample_weight": weights}
    sources = []
    for (view, X), name in product(enumerate(views), names):
        is_first, kernel, dtype = view == 0, first, problem.values.dtype
        if not is_first or name != first.name:
            kernel = make_kernel(name, X, gamma="spread", **given)
        # Where float32 is safe, it is faster and gives equally good choices.
        if may_round and kernel.has_unit_diagonal and X.shape[0] > MAX_EXACT_ROWS:
            dtype = "float32" if largest_size(X) <= MAX_FLOAT32_FEATURE else dtype
        source = Source(
            KernelRows(kernel, X, dtype),
            view,
            tunes_gamma=tunes_gamma and name in KERNELS_WITH_GAMMA,
            handicap=1.0 if is_first else HANDICAP_AS_THEY_CAME,
            is_centred=is_centred and is_first,
            can_scale=can_scale and is_first and name in DISTANCE_KERNELS,
        )
        sources.append(source)
    return sources


def row_weights(problem: Problem[Any]) -> FloatArray | None:
    """Weights of the rows, zero for those that take no part; None if all are one."""
    is_present, weights = problem.codes >= 0, problem.weights
    if is_present.all():
        return weights
    return np.where(is_present, 1.0 if weights is None else weights, 0.0)
