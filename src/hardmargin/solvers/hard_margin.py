r"""The hard-margin SVM, solved to its optimum by pairwise steps (SMO) at any scale of the kernel.

.. math:: \min_{\alpha \ge 0} \alpha' \tilde K \alpha, \qquad \tilde K_{ij} = y_i y_j K_{ij},

where the multipliers of each group of rows have a fixed sum: all rows together 1 (without bias,
the rho-SVM), or each class 1/2 (with bias: the nearest points of the hulls of the two classes).
There is no C. With :math:`g = \tilde K\alpha` and the objective
:math:`\bar\rho = \alpha'g = \|w\|^2`, and u = 1 without bias or u = y with bias,

1. choose the row i of least :math:`u_i (g_i - c)`, where c is the mean of g weighted by alpha,
   among the rows whose multiplier may move along u (all where u = 1, those with
   :math:`\alpha_i > 0` where u = -1); and, among the rows whose multiplier may move against u, the
   row j of largest gain
   :math:`(u_j (g_j - c) - u_i (g_i - c))^2 / (K_{ii} + K_{jj} - 2 u_i u_j y_i y_j K_{ij})`
   (second-order working set selection: Fan, Chen & Lin, JMLR 2005);
2. change :math:`\alpha_i` by :math:`u_i t` and :math:`\alpha_j` by :math:`-u_j t`, where t leads
   to the minimum on this line, or to where a multiplier becomes 0. Without bias this moves mass
   from j to i. With bias, multipliers of opposite labels may also grow or fall together, and
   scaling restores the fixed sums. (Moves within the classes alone would zigzag between close
   rows of opposite labels. Without bias every other step therefore uses u = y too.)
3. add both columns to g;
4. stop when :math:`\max_{\alpha > 0} g - \min g \le` ``tol`` :math:`\bar\rho` in every group, or
   when :math:`\bar\rho` vanishes: then no plane separates the classes.

At the optimum :math:`\rho^*` is the margin of w too: :math:`\alpha/\rho^*` are the multipliers of
the usual form, and the bias (on the scale of alpha) is :math:`(\min_- g - \min_+ g)/2`.

Returned per machine: the multipliers, and as certificate a lower bound that holds for any alpha,
:math:`\rho^* \ge \max(0, m)^2/\bar\rho` with m the mean over the groups of min g. The loop itself
is in the compiled core (``core/src/hard_margin.cpp``); it takes most steps on a small working set.
"""

from __future__ import annotations

from dataclasses import dataclass

from hardmargin import _core
from hardmargin.kernels import KernelRows
from hardmargin.kernels.diagonal import check_diagonal
from hardmargin.monitor import Monitor
from hardmargin.solvers.problem import (
    Problem,
    Solution,
)

#: Steps allowed by default: the first number, or the second per row if that is more. Without a
#: limit, training would take for ever if rows of huge weight overlap.
MIN_MAX_STAGES, STAGES_PER_ROW = 10_000_000, 100


@dataclass(frozen=True)
class HardMarginOptions:
    """How to run.

    Attributes
    ----------
    fit_intercept : bool
        Whether the plane has a bias.
    tol : float
        Relative difference of margins that ends training.
    max_stages : int or None
        Limit on the steps of a machine; None allows ten million, or 100 per row if that is more.
    memory_bytes : int
        For packed rows and cached columns.
    n_threads : int
        Threads over machines.
    """

    fit_intercept: bool = True
    tol: float = 1e-3
    max_stages: int | None = None
    memory_bytes: int = 2**30
    n_threads: int = 1


@dataclass(frozen=True, kw_only=True)
class HardMarginSolution(Solution):
    """One hard-margin machine.

    Multipliers add up to one, so the margin is `rho` at the optimum; divided by `rho`, coefficients
    and intercept are those of the usual form, whose margin is one. The certificate is the relative
    distance between `rho` and its lower bound; ``stop_reason`` is ``"converged"``, ``"rho_zero"``
    (no plane separates the classes), ``"max_stages"`` or the monitor's.

    Attributes
    ----------
    rho : float
        Objective ``alpha' Kt alpha = ||w||^2``.
    rho_lower_bound : float
        The optimum is between this and `rho`.
    """

    rho: float
    rho_lower_bound: float


def most_steps(max_stages: int | None, n_rows: int) -> int:
    """Limit on the pairwise steps of a machine; None is the default."""
    return max(MIN_MAX_STAGES, STAGES_PER_ROW * n_rows) if max_stages is None else max_stages


def solve(
    problem: Problem[KernelRows],
    options: HardMarginOptions | None = None,
    monitor: Monitor | None = None,
) -> list[HardMarginSolution]:
    """Train all machines of a problem.

    Parameters
    ----------
    problem : Problem of KernelRows
        Any positive semi-definite kernel; weights do not matter.
    options : HardMarginOptions, optional
        How to run.
    monitor : Monitor, optional
        The clock; it receives the largest difference of margins.
    """
    options, monitor = options or HardMarginOptions(), monitor or Monitor()
    rows, codes = problem.values, problem.codes
    try:
        results = _core.hard_margin(
            *rows.core_source,
            classes=codes,
            n_classes=problem.n_classes,
            machines=problem.machines,
            diagonal=check_diagonal(
                rows.kernel, rows.X, codes >= 0, squared=True, dtype=rows.dtype
            ),
            bias=options.fit_intercept,
            tol=options.tol,
            max_stages=most_steps(options.max_stages, len(codes)),
            dtype=rows.dtype,
            memory_bytes=options.memory_bytes,
            n_threads=rows.machines_at_once(options.n_threads, options.memory_bytes),
            monitor=monitor,
        )
    except _core.MemoryTooSmall as error:
        raise rows.core_error(error) from None
    return [
        HardMarginSolution(
            rows=r.support,
            coefficients=problem.labels_of(m)[r.support] * r.multipliers,
            intercept=r.intercept,
            rho=r.rho,
            rho_lower_bound=r.rho_lower_bound,
            certificate=1.0 - r.rho_lower_bound / r.rho if r.rho > 0 else 1.0,
            n_stages=r.n_stages,
            n_kernel_evaluations=r.n_values,
            stop_reason=monitor.stop_reason if r.stop_reason == "max_time" else r.stop_reason,
        )
        for m, r in enumerate(results)
    ]
