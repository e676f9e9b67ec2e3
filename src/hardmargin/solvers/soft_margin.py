r"""The C-SVM with bias by pairwise steps (SMO): Platt, 1998; Fan, Chen & Lin, JMLR 2005.

.. math:: \min_\alpha \tfrac12 \alpha' \tilde K \alpha - 1'\alpha
          \quad : \quad 0 \le \alpha_i \le C w_i, \ y'\alpha = 0,
          \qquad \tilde K_{ij} = y_i y_j K_{ij},

for row weights w. With :math:`f = K (\alpha y)` and the errors :math:`e = y - f`,

1. choose the row i of largest error among those whose :math:`\alpha_i y_i` may grow, and, among
   those whose :math:`\alpha_j y_j` may fall, the row j of largest gain
   :math:`(e_i - e_j)^2 / (K_{ii} + K_{jj} - 2 K_{ij})`;
2. let :math:`\alpha y` grow at i and fall at j by the same amount, to the minimum on this line or
   until one of them reaches a bound;
3. add both columns to f;
4. stop when the largest error of a row that may grow exceeds the least error of one that may fall
   by at most ``tol``, or by no more than rounding. This difference is the certificate.

The bias is the mean error of the rows between their bounds. All of this is as in libsvm, but the
loop, in the compiled core (``core/src/soft_margin.cpp``), reacts to Ctrl-C and keeps within limits
on time and memory; multipliers are feasible whenever it stops.
"""

from __future__ import annotations

from dataclasses import dataclass

from hardmargin import _core
from hardmargin.kernels import KernelRows
from hardmargin.kernels.diagonal import check_diagonal
from hardmargin.monitor import Monitor
from hardmargin.solvers.hard_margin import most_steps
from hardmargin.solvers.problem import Problem, Solution


@dataclass(frozen=True)
class SoftMarginOptions:
    """How to run.

    Attributes
    ----------
    C : float
        Weight of the slacks.
    tol : float
        Difference of errors that ends training.
    max_stages : int or None
        Limit on the steps of a machine; None allows ten million, or 100 per row if that is more.
    memory_bytes : int
        For packed rows and cached columns.
    n_threads : int
        Threads over machines.
    """

    C: float = 1.0
    tol: float = 1e-3
    max_stages: int | None = None
    memory_bytes: int = 2**30
    n_threads: int = 1


def solve(
    problem: Problem[KernelRows],
    options: SoftMarginOptions | None = None,
    monitor: Monitor | None = None,
) -> list[Solution]:
    """Train all machines of a problem.

    Parameters
    ----------
    problem : Problem of KernelRows
        Any positive semi-definite kernel. A weight of two equals having the row twice.
    options : SoftMarginOptions, optional
        How to run.
    monitor : Monitor, optional
        The clock; it receives the difference of errors.
    """
    options, monitor = options or SoftMarginOptions(), monitor or Monitor()
    rows, codes = problem.values, problem.codes
    try:
        results = _core.soft_margin(
            *rows.core_source,
            classes=codes,
            n_classes=problem.n_classes,
            machines=problem.machines,
            weights=problem.weights,
            diagonal=check_diagonal(
                rows.kernel, rows.X, codes >= 0, squared=True, dtype=rows.dtype
            ),
            C=options.C,
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
        Solution(
            rows=r.support,
            coefficients=problem.labels_of(m)[r.support] * r.multipliers,
            intercept=r.intercept,
            certificate=r.violation,
            n_stages=r.n_stages,
            n_kernel_evaluations=r.n_values,
            stop_reason=monitor.stop_reason if r.stop_reason == "max_time" else r.stop_reason,
        )
        for m, r in enumerate(results)
    ]
