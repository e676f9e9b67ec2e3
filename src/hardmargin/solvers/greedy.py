r"""Greedy stagewise SVM: Bo, Wang & Jiao, IEEE Transactions on Neural Networks, 2008 (TNN-08).

The dual of the hard-margin SVM without bias,

.. math:: \min_{\alpha \ge 0} L(\alpha) = \tfrac12 \alpha' \tilde K \alpha - \sum_i \alpha_i,
          \qquad \tilde K_{ij} = y_i y_j K_{ij},

is lowered one multiplier at a time, from 0. With the gradient :math:`g = \tilde K\alpha - 1`,

1. choose the row b whose step lowers L most: the largest :math:`g_b^2 / 2 K_{bb}` among the rows
   with :math:`g_b < 0`, eqs. (20) and (21) (ties go to the lowest row);
2. set :math:`\alpha_b = -g_b / K_{bb}`, eq. (22);
3. add its column: :math:`g_j \mathrel{+}= \alpha_b \tilde K_{jb}`;
4. stop when no row is left with :math:`g < 0`; otherwise go to step 1.

In the paper each row is visited at most once; stopping there is what regularises. With
``max_visits`` > 1 a row may be visited again and its multiplier may shrink: the step is
:math:`\max(-g_i/K_{ii}, -\alpha_i)`, the row with the longest step is chosen (the largest gain
where the diagonal is not constant), and the path ends at steps below ``step_tol``.

Returned per machine: the path, and as certificate the largest step still open. The loop itself is
in the compiled core (``core/src/greedy.cpp``); it evaluates a kernel value only when the next
choice can depend on it. For wide or sparse rows alone, all distances are evaluated at once where
memory allows: a product of matrices is many times as fast as column after column.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hardmargin import _core
from hardmargin.kernels import METRICS, FloatArray, KernelRows
from hardmargin.kernels.blocks import FileRows, as_blocks, no_room
from hardmargin.kernels.diagonal import check_diagonal
from hardmargin.monitor import Monitor
from hardmargin.resources import give_back_if_limited
from hardmargin.solvers.problem import (
    Problem,
    Solution,
)

#: Raised where values of the kernel, or sums of them, are NaN or infinite.
NotFinite = _core.NotFinite

METHODS = ("auto", "fused", "lazy", "bits", "lazy-bits")

#: Stages allowed per row, with revisits.
STAGES_PER_ROW = 8

#: Mean weights above this do not raise the limit on stages any further.
MAX_MEAN_WEIGHT = 100


@dataclass(frozen=True)
class GreedyOptions:
    """How to run: the paper by default.

    Attributes
    ----------
    max_visits : int
        Visits allowed per row (times its weight); 1 is the paper's algorithm.
    step_tol : float
        With revisits, stop when no step would change its row's gradient by more than this.
    max_stages : int or None
        Limit on the stages of a machine; None allows one per row (times its weight), or 8 with
        revisits.
    method : {"auto", "fused", "lazy", "bits", "lazy-bits"}
        How to evaluate kernel values; the result does not depend on it.
    memory_bytes : int
        For packed rows, cached columns and deferred columns.
    n_threads : int
        Threads over machines.
    block_rows : int
        Rows evaluated together.
    may_store : bool
        Whether "auto" may evaluate and store all distances of wide or sparse rows, if that costs
        less than the columns that are needed and takes at most half of the memory.
    """

    max_visits: int = 1
    step_tol: float = 0.02
    max_stages: int | None = None
    method: str = "auto"
    memory_bytes: int = 2**30
    n_threads: int = 1
    block_rows: int = 512
    may_store: bool = True


@dataclass(frozen=True, kw_only=True)
class GreedySolution(Solution):
    """One machine of the greedy stagewise SVM, with its whole path.

    Its rows are in the order of their first stage. The certificate is the largest change that an
    open step would still make to the gradient of its row; it is at most the tolerance when the
    solver converged. ``history`` has the ``"row"`` changed in each stage, the ``"step"`` of its
    multiplier (negative where a revisit took some of it back) and the ``"loss"``, the dual
    objective ``a' Kt a / 2 - sum(a)`` after the stage. ``stop_reason`` is ``"converged"``,
    ``"exhausted"`` (every row has used up its visits), ``"max_stages"`` or the
    monitor's.

    Attributes
    ----------
    squared_norm : float
        ``||w||^2``, eq. (28) of TNN-08.
    squared_radius : float
        ``max k(x, x)`` over the machine's rows: a sphere around the origin that holds them.
    method : {"fused", "lazy", "bits", "lazy-bits"}
        How kernel values were evaluated at the end.
    """

    squared_norm: float
    squared_radius: float
    method: str


def solve(
    problem: Problem[KernelRows],
    options: GreedyOptions | None = None,
    monitor: Monitor | None = None,
) -> list[GreedySolution]:
    """Train all machines of a problem.

    Parameters
    ----------
    problem : Problem of KernelRows
        Any symmetric kernel.
    options : GreedyOptions, optional
        How to run.
    monitor : Monitor, optional
        The clock; it receives the largest step still open, and may hold states to resume from.
    """
    options, monitor = options or GreedyOptions(), monitor or Monitor()
    rows, weights, codes = problem.values, problem.weights, problem.codes
    unfinished = monitor.unfinished
    kernel = rows.kernel
    if weights is not None:
        codes = np.where(weights > 0, codes, -1).astype(np.int32)
    diagonal = check_diagonal(kernel, rows.X, codes >= 0, dtype=rows.dtype)
    if options.method.startswith("lazy") and not kernel.has_unit_diagonal:
        raise ValueError(
            f"method={options.method!r} needs a kernel with bounds, one of {tuple(METRICS)}, not "
            f"{kernel.name!r}; method='auto' works with any kernel."
        )
    max_stages, n_rows = _most_stages(options, codes, weights), int((codes >= 0).sum())
    memory_bytes = options.memory_bytes
    if options.method == "auto" and options.may_store and 2 * n_rows >= len(codes):
        rows = rows.with_metric(memory_bytes // 2, max_stages, options.n_threads, monitor.check)
    if rows.metric is not None:
        memory_bytes //= 2
    n_threads = options.n_threads
    if n_threads > 1:
        n_threads = rows.machines_at_once(n_threads, memory_bytes)
    folder = tempfile.gettempdir() if isinstance(as_blocks(rows.X), FileRows) else ""
    try:
        results = _core.greedy(
            *rows.core_source,
            classes=codes,
            n_classes=problem.n_classes,
            machines=problem.machines,
            weights=weights,
            diagonal=diagonal,
            method=options.method,
            dtype=rows.dtype,
            max_visits=float(options.max_visits),
            step_tol=options.step_tol if options.max_visits > 1 else 0.0,
            max_stages=max_stages,
            memory_bytes=memory_bytes,
            block_rows=options.block_rows,
            n_threads=n_threads,
            folder=folder,
            states=[] if unfinished is None else unfinished.states(len(problem.machines)),
            keep=None if unfinished is None else unfinished.keep,
            keep_seconds=0.0 if unfinished is None else unfinished.seconds,
            monitor=monitor,
        )
    except (_core.MemoryTooSmall, _core.NothingToPack) as error:
        raise rows.core_error(error, options.method) from None
    except OSError as error:
        if folder and error.filename == folder:
            raise no_room(error, folder) from error
        raise
    give_back_if_limited()  # cached columns would add to the memory of what follows
    solutions = _solutions(problem, codes, diagonal, results, monitor)
    del results
    give_back_if_limited()
    return solutions


def _most_stages(
    options: GreedyOptions, codes: NDArray[np.int32], weights: FloatArray | None
) -> int:
    """Return the limit on stages: by default what all visits of the rows may need."""
    if options.max_stages is not None:
        return options.max_stages
    n_rows = n_visits = int((codes >= 0).sum())
    if weights is not None:
        n_visits = int(min(np.ceil(weights[codes >= 0]).sum(), MAX_MEAN_WEIGHT * n_rows))
    return n_visits if options.max_visits == 1 else STAGES_PER_ROW * n_visits


def _solutions(
    problem: Problem[KernelRows],
    codes: NDArray[np.int32],
    diagonal: FloatArray | None,
    results: Sequence[Any],
    monitor: Monitor,
) -> list[GreedySolution]:
    """Read what the core has found; rows of weight zero have no code."""
    # All machines at once, as there may be many small ones.
    sides, supports = problem.sides, [r.support for r in results]
    machine = np.repeat(np.arange(len(results)), [len(rows) for rows in supports])
    support, alpha = np.concatenate(supports), np.concatenate([r.multipliers for r in results])
    if not alpha.all():  # some multipliers are back at zero
        machine, support, alpha = machine[alpha != 0], support[alpha != 0], alpha[alpha != 0]
    coefficients = sides[machine, codes[support]] * alpha
    starts = np.searchsorted(machine, np.arange(len(results) + 1)).tolist()
    largest = np.ones(problem.n_classes)
    if diagonal is not None:
        largest[:] = [diagonal[codes == c].max(initial=0.0) for c in range(problem.n_classes)]
    squared_radii = np.where(sides != 0, largest, 0.0).max(axis=1).tolist()
    return [
        GreedySolution(
            rows=support[begin:end],
            coefficients=coefficients[begin:end],
            certificate=r.violation,
            history={"row": (stages := r.rows), "step": r.steps, "loss": r.losses},
            squared_norm=max(r.squared_norm, 0.0),
            squared_radius=squared_radius,
            n_stages=len(stages),
            n_kernel_evaluations=r.n_values,
            stop_reason=monitor.stop_reason if r.stop_reason == "max_time" else r.stop_reason,
            method=r.method,
        )
        for r, (begin, end), squared_radius in zip(
            results, pairwise(starts), squared_radii, strict=True
        )
    ]
