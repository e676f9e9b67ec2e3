r"""Exact hard-margin SVM, free of scale, by pairwise steps (SMO).

.. math:: \min_{\alpha \ge 0} \alpha' \tilde K \alpha, \qquad \tilde K_{ij} = y_i y_j K_{ij},

where the multipliers of each group of rows have a fixed sum: all rows together 1 (without bias,
the rho-SVM), or each class 1/2 (with bias: the nearest points of the hulls of the two classes).
There is no C. With :math:`g = \tilde K\alpha` and the objective
:math:`\bar\rho = \alpha'g = \|w\|^2`, and u = 1 without bias or u = y with bias,

1. take the row i of least :math:`u_i (g_i - c)`, c the mean of g weighted by alpha, among the rows
   whose multiplier may move along u (all where u = 1, those with :math:`\alpha_i > 0` where
   u = -1); and of the rows j whose multiplier may move against u the one of largest gain
   :math:`(u_j (g_j - c) - u_i (g_i - c))^2 / (K_{ii} + K_{jj} - 2 u_i u_j y_i y_j K_{ij})`
   (second-order working set selection: Fan, Chen & Lin, JMLR 2005);
2. change :math:`\alpha_i` by :math:`u_i t` and :math:`\alpha_j` by :math:`-u_j t`, t the minimum
   along the way or where a multiplier becomes 0. Without bias that moves mass from j to i; with
   bias multipliers of opposite labels may also grow or fall together, and the fixed sums follow
   by scaling. (Moves within the classes alone would zigzag between close rows of opposite
   labels. Without bias every other step therefore takes u = y too.)
3. add both columns to g;
4. stop when :math:`\max_{\alpha > 0} g - \min g \le` ``tol`` :math:`\bar\rho` in every group, or
   when :math:`\bar\rho` vanishes: then no plane separates the classes.

At the optimum :math:`\rho^*` is the margin of w too: :math:`\alpha/\rho^*` are the multipliers of
the usual form, and the bias (on the scale of alpha) is :math:`(\min_- g - \min_+ g)/2`.

Returned per machine: the multipliers, and as certificate a lower bound that holds for any alpha,
:math:`\rho^* \ge \max(0, m)^2/\bar\rho` with m the mean over the groups of min g. The loop itself
is in the compiled core (``core/src/exact.cpp``); it takes most steps on a small working set.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hardmargin import _core
from hardmargin.kernels import Kernel, Rows
from hardmargin.solvers.problem import (
    Machine,
    core_source,
    finite_diagonal,
    machines_at_once,
)
from hardmargin.solvers.solution import ExactSolution

#: Steps allowed by default: so many in any case, and so many a row.
MIN_MAX_STAGES, STAGES_A_ROW = 10_000_000, 100


@dataclass(frozen=True)
class ExactOptions:
    """How to run.

    Attributes
    ----------
    fit_intercept : bool
        With bias: each class has half of the mass.
    tol : float
        Largest difference of g that may be left open in a group, relative to the objective; the
        relative gap is at most twice as large.
    max_stages : int or None
        Limit on the steps of a machine; None stands for ten million, or 100 a row if that is more.
    exact : bool
        Kernel values in float64 (True) or float32; everything else is float64 in both.
    memory_bytes : int
        For packed rows and cached columns.
    max_seconds : float or None
        Time for all machines together; a machine cut short is valid as far as it got.
    n_threads : int
        Threads over machines.
    """

    fit_intercept: bool = True
    tol: float = 1e-3
    max_stages: int | None = None
    exact: bool = True
    memory_bytes: int = 2**30
    max_seconds: float | None = None
    n_threads: int = 1


def solve_exact(
    kernel: Kernel,
    X: Rows,
    classes: NDArray[np.int32],
    machines: Sequence[Machine],
    *,
    options: ExactOptions | None = None,
    report: Callable[[int, int, float], None] | None = None,
) -> list[ExactSolution]:
    """Train one machine for every pair of sets of classes.

    Parameters
    ----------
    kernel : Kernel
        Any kernel; where it is indefinite the result is a stationary point, if there is one.
    X : rows
        Rows, or the kernel matrix for a precomputed kernel.
    classes : (n,) int32 array
        Class of every row, from 0; negative leaves the row out. Weights have no place here: any
        positive weight of a row leads to the same optimum.
    machines : sequence of (negative classes, positive classes)
        The two sides of each machine; both need rows.
    options : ExactOptions, optional
        How to run.
    report : callable, optional
        Called with (machines done, steps, relative difference still open) about 20 times a second.

    Returns
    -------
    list of ExactSolution
        One a machine.
    """
    options = options or ExactOptions()
    max_stages = options.max_stages
    if max_stages is None:
        max_stages = max(MIN_MAX_STAGES, STAGES_A_ROW * len(classes))
    results = _core.exact(
        *core_source(kernel, X),
        classes=classes,
        n_classes=int(classes.max()) + 1,
        machines=machines,
        diagonal=finite_diagonal(kernel, X, classes, squared=True),
        bias=options.fit_intercept,
        tol=options.tol,
        max_stages=max_stages,
        exact=options.exact,
        memory_bytes=options.memory_bytes,
        max_seconds=options.max_seconds or 0.0,
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
        ExactSolution(
            rows=r["support"],
            multipliers=r["multipliers"],
            intercept=r["intercept"],
            rho=r["rho"],
            rho_lower_bound=r["rho_lower_bound"],
            n_stages=r["n_stages"],
            n_kernel_evaluations=r["n_values"],
            stop_reason=r["stop_reason"],
        )
        for r in results
    ]
