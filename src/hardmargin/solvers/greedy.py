r"""Greedy stagewise SVM: Bo, Wang & Jiao, IEEE Transactions on Neural Networks, 2008 (TNN-08).

The dual of the hard-margin SVM without bias,

.. math:: \min_{\alpha \ge 0} L(\alpha) = \tfrac12 \alpha' \tilde K \alpha - \sum_i \alpha_i,
          \qquad \tilde K_{ij} = y_i y_j K_{ij},

is lowered one multiplier at a time. With the gradient :math:`g = \tilde K\alpha - 1`,

1. choose the row b whose step lowers L most: the largest :math:`g_b^2 / 2 K_{bb}` among the rows
   with :math:`g_b < 0` (ties go to the lowest row);
2. set :math:`\alpha_b = -g_b / K_{bb}`, eq. (16);
3. add its column: :math:`g_j \mathrel{+}= \alpha_b \tilde K_{jb}`;
4. stop when no row is left with :math:`g < 0`.

In the paper each row is visited at most once; stopping there is what regularises. With
``max_visits`` > 1 a row may be visited again and may give back what it has: the step is
:math:`\max(-g_i/K_{ii}, -\alpha_i)`, the row with the longest step is taken (with the largest gain
where the diagonal is not constant), and the path ends at steps below ``step_tol``.

Returned per machine: the path, and as certificate the largest step still open. The loop itself is
in the compiled core (``core/src/greedy.cpp``); it evaluates a kernel value only when the next
choice can depend on it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hardmargin import _core
from hardmargin.kernels import FloatArray, Kernel, Rows
from hardmargin.solvers.problem import (
    Machine,
    core_source,
    finite_diagonal,
    machines_at_once,
)
from hardmargin.solvers.solution import GreedySolution

METHODS = ("auto", "fused", "lazy", "bits", "lazy-bits")

#: With revisits, stages allowed for each row.
STAGES_A_VISIT = 8

#: Larger weights than this, on average, do not raise the limit on stages any more.
MAX_MEAN_WEIGHT = 100


@dataclass(frozen=True)
class GreedyOptions:
    """How to run: the paper by default.

    Attributes
    ----------
    max_visits : int
        Visits allowed per row (times its weight); 1 is the paper's algorithm.
    step_tol : float
        With revisits, stop when no step changes its own gradient by more.
    max_stages : int or None
        Limit on the stages of a machine; None stands for one a row (times its weight), with
        revisits for 8.
    method : {"auto", "fused", "lazy", "bits", "lazy-bits"}
        How to evaluate kernel values; the result does not depend on it.
    exact : bool
        Kernel values in float64 (True) or float32; everything else is float64 in both.
    memory_bytes : int
        For packed rows, cached columns and columns put off.
    max_seconds : float or None
        Time for all machines together; a machine cut short is valid as far as it got.
    n_threads : int
        Threads over machines.
    block_rows : int
        Rows evaluated together.
    """

    max_visits: int = 1
    step_tol: float = 0.02
    max_stages: int | None = None
    method: str = "auto"
    exact: bool = True
    memory_bytes: int = 2**30
    max_seconds: float | None = None
    n_threads: int = 1
    block_rows: int = 512


def solve_greedy(
    kernel: Kernel,
    X: Rows,
    classes: NDArray[np.int32],
    machines: Sequence[Machine],
    *,
    weights: FloatArray | None = None,
    options: GreedyOptions | None = None,
    report: Callable[[int, int, float], None] | None = None,
) -> list[GreedySolution]:
    """Train one machine for every pair of sets of classes.

    Parameters
    ----------
    kernel : Kernel
        Any kernel; rows with ``k(x, x) <= 0`` (indefinite kernels) are never chosen.
    X : rows
        Rows, or the kernel matrix for a precomputed kernel.
    classes : (n,) int32 array
        Class of every row, from 0; negative leaves the row out.
    machines : sequence of (negative classes, positive classes)
        The two sides of each machine.
    weights : (n,) array, optional
        A row of weight w may be visited w times as often; a fraction left over scales the last
        step. For whole numbers and one visit this equals repeating the rows.
    options : GreedyOptions, optional
        How to run.
    report : callable, optional
        Called with (machines done, stage, largest step) about 20 times a second.

    Returns
    -------
    list of GreedySolution
        One a machine.
    """
    options = options or GreedyOptions()
    if weights is not None:
        classes = np.where(weights > 0, classes, -1).astype(np.int32)
    diagonal = finite_diagonal(kernel, X, classes)
    if options.method.startswith("lazy") and not kernel.has_unit_diagonal:
        raise ValueError(
            f"method={options.method!r} needs a kernel with bounds: 'rbf' or 'laplacian', not "
            f"{kernel.name!r}; method='auto' works with any kernel."
        )

    results = _core.greedy(
        *core_source(kernel, X),
        classes=classes,
        n_classes=int(classes.max()) + 1,
        machines=machines,
        weights=weights,
        diagonal=diagonal,
        method=options.method,
        exact=options.exact,
        max_visits=float(options.max_visits),
        step_tol=options.step_tol if options.max_visits > 1 else 0.0,
        max_stages=_stage_limit(options, classes, weights),
        memory_bytes=options.memory_bytes,
        max_seconds=options.max_seconds or 0.0,
        block_rows=options.block_rows,
        n_threads=machines_at_once(
            kernel,
            X,
            exact=options.exact,
            n_threads=options.n_threads,
            memory_bytes=options.memory_bytes,
        ),
        report=report,
    )
    return [
        GreedySolution(
            stage_indices=r["rows"],
            stage_steps=r["steps"],
            support=r["support"],
            multipliers=r["multipliers"],
            losses=r["losses"],
            squared_norm=max(r["squared_norm"], 0.0),
            squared_radius=radius,
            violation=r["violation"],
            n_kernel_evaluations=r["n_values"],
            stop_reason=r["stop_reason"],
            method=r["method"],
        )
        for r, radius in zip(results, _squared_radii(diagonal, classes, machines), strict=True)
    ]


def _stage_limit(
    options: GreedyOptions, classes: NDArray[np.int32], weights: FloatArray | None
) -> int:
    if options.max_stages is not None:
        return options.max_stages
    n_rows = int((classes >= 0).sum())
    n_visits = n_rows
    if weights is not None:
        n_visits = int(min(np.ceil(weights[classes >= 0]).sum(), MAX_MEAN_WEIGHT * n_rows))
    return n_visits if options.max_visits == 1 else STAGES_A_VISIT * n_visits


def _squared_radii(
    diagonal: FloatArray | None, classes: NDArray[np.int32], machines: Sequence[Machine]
) -> list[float]:
    if diagonal is None:
        return [1.0] * len(machines)
    of_class = np.zeros(int(classes.max()) + 1)
    present = classes >= 0
    np.maximum.at(of_class, classes[present], diagonal[present])
    return [float(of_class[[*negative, *positive]].max()) for negative, positive in machines]
