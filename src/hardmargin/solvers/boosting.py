r"""Boosting weighted Parzen windows: section 3.1 of Tsang & Kwok, IJCAI 2007 (IJCAI-07).

Boosting keeps a distribution :math:`d_t` over the rows. Here its base hypothesis is the Parzen
window weighted by that distribution,

.. math:: h_t(x) = \sum_i d_{t,i}\, y_i\, k(x_i, x), \qquad g_i = y_i h_t(x_i),

whose edge :math:`\gamma_t = d_t' g = d_t' \tilde K d_t` is the objective of the rho-SVM.
Algorithm 2 of the paper, with its step numbers:

2. Start with equal :math:`d_1`.
4. Train the base hypothesis: weight the Parzen window by :math:`d_t`.
5. Take the step :math:`c_t = \arg\min_{c \ge 0} N_t(c)\, e^{\varrho_t c}` with
   :math:`N_t(c) = \sum_i d_{t,i} e^{-c g_i}`, eq. (20).
6. Update the distribution, :math:`d_{t+1,i} = d_{t,i}\, e^{-c_t g_i} / N_t(c_t)`, eq. (21).

The vote is :math:`\sum_t c_t h_t / \sum_t c_t`. The algorithms differ in the target
:math:`\varrho_t` alone:

============================  ===============================================================
AdaBoost                      :math:`\varrho_t = 0`
AdaBoost with a target        :math:`\varrho_t = \varrho`
AdaBoost*_nu                  :math:`\varrho_t = \min_{r \le t} \gamma_r - \nu`
relative precision            :math:`\varrho_t = \min_{r \le t} \gamma_r - \nu_t`, with
                              :math:`\nu_t = \gamma_t\, \epsilon_t / (1 + \epsilon_t)`
============================  ===============================================================

Two of them equal the rho-SVM by multiplicative updates (``rho.py``) stage by stage, with
:math:`d_t = \alpha_t`, :math:`c_t = \eta_t` and the same vote:

- a target of :math:`\varrho = \rho^*` is section 2.2 (``constraint="equality"``). The rate there
  may have any sign, but is never negative, since no edge is below :math:`\rho^*`. AdaBoost itself
  is the case of overlapping classes, :math:`\rho^* = 0`;
- relative precision is Algorithm 1, if a stage whose edge rises, or whose target no distribution
  reaches, is undone and :math:`\epsilon_t` halved, as it is there. The edges of the remaining
  stages then never rise, so the least edge is the last one and
  :math:`\varrho_t = \gamma_t / (1 + \epsilon_t)`, the paper's :math:`\rho_t`. The least
  :math:`\nu_t` is the nu of its section 2.4, which bounds the stages by :math:`2 \ln n / \nu^2`
  for n rows.

AdaBoost*_nu itself, with a constant nu, therefore equals Algorithm 1 only while nu is
:math:`\nu_t`, that is, for one stage. As the edges fall, a constant nu becomes an ever larger part
of them and finally exceeds them. The equality also needs the minimum of eq. (20) itself
(``step="line_search"``); the closed form that is usual for AdaBoost (``step="bound"``),

.. math:: c_t = \tfrac12 \ln \tfrac{1 + \gamma_t}{1 - \gamma_t}
              - \tfrac12 \ln \tfrac{1 + \varrho_t}{1 - \varrho_t},

minimises an upper bound of it that holds for hypotheses within [-1, 1], that is, for kernels with
values within [-1, 1]; its steps are never longer.

No estimator needs this module. It is for comparisons, such as the gallery's
``examples/published/plot_2_adaboost.py``, and shares no code with ``rho.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.optimize import brentq
from scipy.special import logsumexp, softmax

from hardmargin.kernels import FloatArray
from hardmargin.kernels.matrix import KernelMatrix
from hardmargin.monitor import Monitor, Stopped
from hardmargin.solvers.problem import Expansion, Problem, Solution

__all__ = ["BoostingOptions", "BoostingSolution", "solve"]


@dataclass(frozen=True)
class BoostingOptions:
    """Which algorithm to run: AdaBoost by default.

    Attributes
    ----------
    n_stages : int
        End after this many stages.
    target : float
        AdaBoost's target for the edge; 0 is AdaBoost itself.
    nu : float or None
        AdaBoost*_nu with this precision, in place of `target`.
    eps : (float, float) or None
        Relative precision in place of `target`: the first epsilon, and the one below which it ends.
    step : {"line_search", "bound"}
        The minimum of eq. (20) of the paper, or the closed form for hypotheses within [-1, 1].
    """

    n_stages: int = 100
    target: float = 0.0
    nu: float | None = None
    eps: tuple[float, float] | None = None
    step: Literal["line_search", "bound"] = "line_search"

    def __post_init__(self) -> None:
        if self.nu is not None and self.eps is not None:
            raise ValueError(
                f"nu={self.nu!r} and eps={self.eps!r} are two targets; give one of them."
            )
        if self.step not in _STEPS:
            raise ValueError(f"step={self.step!r} must be 'line_search' or 'bound'.")


@dataclass(frozen=True, kw_only=True)
class BoostingSolution(Solution):
    """Boosted Parzen windows: the last window, the vote of those before it, and the path.

    Attributes
    ----------
    certificate : float
        That of the rho-SVM whose multipliers are the last distribution.
    stop_reason : str
        ``"n_stages"``; ``"no_edge"`` (no window is above its target); ``"unreachable"`` (every
        row's margin is above the target, so the last window alone reaches it);
        ``"eps"`` (the relative precision fell below its limit); or the monitor's.
    history : dict of arrays
        For each of the T + 1 windows: ``"edge"``, NaN without time for a product. For each of the T
        stages: ``"step"``, which is ``c_t``; ``"target"``; ``"precision"``, which is ``nu_t``, the
        distance of the target below the least edge so far.
    ensemble : Expansion
        The vote as one weighted window: the mean of the windows 1 .. T, weighted by the steps.
    distributions : (T + 1, n) array
        The weights of the rows before every stage, and after the last.
    """

    ensemble: Expansion
    distributions: FloatArray


def solve(
    problem: Problem[KernelMatrix],
    options: BoostingOptions | None = None,
    monitor: Monitor | None = None,
) -> list[BoostingSolution]:
    """Boost weighted Parzen windows, machine by machine.

    Parameters
    ----------
    problem : Problem of a KernelMatrix
        Its weights are the first distribution, up to their sum.
    options : BoostingOptions, optional
        Which algorithm to run.
    monitor : Monitor, optional
        Receives the number of stages and the edge before every stage.

    Returns
    -------
    list of BoostingSolution

    Examples
    --------
    >>> import numpy as np
    >>> from hardmargin.kernels.matrix import StoredMatrix
    >>> from hardmargin.solvers import boosting
    >>> from hardmargin.solvers.problem import Problem
    >>> X, y = np.array([0.0, 1.0, 2.0, 3.0]), np.array([1, -1, -1, 1])
    >>> K = np.exp(-((X[:, None] - X) ** 2))
    >>> problem = Problem.two_class(StoredMatrix(K), y)
    >>> options = boosting.BoostingOptions(eps=(0.1, 0.005), n_stages=2)
    >>> [solution] = boosting.solve(problem, options)
    >>> solution.history["edge"].round(4)
    array([0.1995, 0.1972, 0.195 ])
    """
    options, monitor = options or BoostingOptions(), monitor or Monitor()
    return [_boost(problem, m, options, monitor) for m in range(len(problem.machines))]


def _boost(
    problem: Problem[KernelMatrix], machine: int, options: BoostingOptions, monitor: Monitor
) -> BoostingSolution:
    windows = _Windows(problem, machine)
    try:
        window = windows.weighted(windows.log_start)  # 2. and 4.
    except Stopped:
        return windows.start_alone(monitor.stop_reason)
    passed, least = [window], window.edge
    steps: list[float] = []
    precisions: list[float] = []
    epsilon, smallest = options.eps or (0.0, 0.0)
    stop_reason = "n_stages"
    while len(steps) < options.n_stages:
        if not monitor.go_on(len(steps), window.edge):
            stop_reason = monitor.stop_reason
            break
        if options.eps is not None:
            precision = window.edge * epsilon / (1 + epsilon)
        else:
            precision = least - options.target if options.nu is None else options.nu
        if window.edge <= least - precision:
            stop_reason = "no_edge"
            break
        c = _STEPS[options.step](window, least - precision)  # 5.
        following = window
        if np.isfinite(c):
            try:
                following = windows.weighted(window.log_d - c * window.margins)  # 6. and 4.
            except Stopped:
                stop_reason = monitor.stop_reason
                break
        elif options.eps is None:
            stop_reason = "unreachable"
            break
        if options.eps is not None and (following is window or following.edge > window.edge):
            epsilon /= 2  # undo the stage
            if epsilon < smallest:
                stop_reason = "eps"
                break
            continue
        steps.append(c)
        precisions.append(precision)
        window = following
        passed.append(window)
        least = min(least, window.edge)
    return windows.solution(passed, steps, precisions, stop_reason)


@dataclass(frozen=True)
class _Window:
    """A weighted Parzen window: logarithms of the weights, margins on the rows, and its edge."""

    log_d: FloatArray
    margins: FloatArray
    edge: float


class _Windows:
    """Makes the windows of one machine, and its solution from them."""

    def __init__(self, problem: Problem[KernelMatrix], machine: int) -> None:
        labels = problem.labels_of(machine)
        weights = np.ones(len(labels)) if problem.weights is None else problem.weights
        self.rows = np.flatnonzero((labels != 0) & (weights > 0))
        self.matrix, self.y, weights = problem.values, labels[self.rows], weights[self.rows]
        if not ((self.y > 0).any() and (self.y < 0).any()):
            raise ValueError("Every machine needs rows of both labels.")
        self.log_start: FloatArray = np.log(weights) - np.log(weights.sum())

    def weighted(self, log_d: FloatArray) -> _Window:
        log_d = log_d - logsumexp(log_d)
        d = np.exp(log_d)
        signed = np.zeros((self.matrix.n_rows, 1))
        signed[self.rows, 0] = self.y * d
        margins = self.y * self.matrix.product(signed)[self.rows, 0]
        return _Window(log_d, margins, float(d @ margins))

    def start_alone(self, stop_reason: str) -> BoostingSolution:
        """Return the first window, without time to judge it."""
        unknown = np.full(len(self.rows), np.nan)
        return self.solution([_Window(self.log_start, unknown, np.nan)], [], [], stop_reason)

    def solution(
        self,
        windows: list[_Window],
        steps: list[float],
        precisions: list[float],
        stop_reason: str,
    ) -> BoostingSolution:
        distributions = np.exp(np.array([window.log_d for window in windows]))
        edges = np.array([window.edge for window in windows])
        c, rows = np.array(steps), self.rows.astype(np.int32)
        vote = c @ distributions[:-1] / c.sum() if steps else distributions[0]
        bounds = [max(w.margins.min(), 0.0) ** 2 / w.edge for w in windows if w.edge > 0]
        last = edges[-1]
        return BoostingSolution(
            rows=rows,
            coefficients=self.y * distributions[-1],
            certificate=1.0 - min(max(bounds), last) / last if last > 0 else 1.0,
            stop_reason=stop_reason,
            n_stages=len(steps),
            history={
                "edge": edges,
                "step": c,
                "target": np.minimum.accumulate(edges)[:-1] - np.array(precisions),
                "precision": np.array(precisions),
            },
            ensemble=Expansion(rows=rows, coefficients=self.y * vote),
            distributions=distributions,
        )


def _line_search(window: _Window, level: float) -> float:
    """Eq. (20): the step after which the mean margin is `level`; infinite if there is none."""
    log_d, margins = window.log_d, window.margins
    if margins.min() >= level:
        return np.inf

    def slope(c: float) -> float:
        return level - float(softmax(log_d - c * margins) @ margins)

    high = 1.0 / float(np.ptp(margins))
    while slope(high) < 0:
        high *= 2
    return float(brentq(slope, 0.0, high, xtol=1e-300, rtol=8.9e-16))


def _bound_step(window: _Window, level: float) -> float:
    """Minimise the bound of eq. (20) that holds for all hypotheses of this edge within [-1, 1]."""
    largest = float(np.abs(window.margins).max())
    if largest > 1:
        raise ValueError(
            f"step='bound' needs a kernel with values within [-1, 1], but a window reaches "
            f"{largest:.3g}; use step='line_search' or scale the kernel down."
        )
    if level <= -1 or window.edge >= 1:
        return np.inf
    return float(np.arctanh(window.edge) - np.arctanh(level))


_STEPS = {"line_search": _line_search, "bound": _bound_step}
