r"""Boosting weighted Parzen windows: section 3.1 of Tsang & Kwok, IJCAI 2007 (IJCAI-07).

Boosting keeps a distribution :math:`d_t` over the rows. Here its base hypothesis is the Parzen
window weighted by that distribution,

.. math:: h_t(x) = \sum_i d_{t,i}\, y_i\, k(x_i, x), \qquad g_i = y_i h_t(x_i),

whose edge :math:`\gamma_t = d_t' g = d_t' \tilde K d_t` is the objective of the rho-SVM. A stage
(Algorithm 2 of the paper, eqs. 20 and 21) takes

.. math:: c_t = \arg\min_{c \ge 0} N_t(c)\, e^{\varrho_t c}, \quad
          N_t(c) = \sum_i d_{t,i} e^{-c g_i}, \qquad
          d_{t+1,i} = d_{t,i}\, e^{-c_t g_i} / N_t(c_t),

and the vote is :math:`\sum_t c_t h_t / \sum_t c_t`. The algorithms differ in the target
:math:`\varrho_t` alone:

============================  ===============================================================
AdaBoost                      :math:`\varrho_t = 0`
AdaBoost with a target        :math:`\varrho_t = \varrho`
AdaBoost*_nu                  :math:`\varrho_t = \min_{r \le t} \gamma_r - \nu`
relative precision            :math:`\varrho_t = \min_{r \le t} \gamma_r - \nu_t`, with
                              :math:`\nu_t = \gamma_t\, \epsilon_t / (1 + \epsilon_t)`
============================  ===============================================================

What equals the rho-SVM by multiplicative updates (`solve_projection`), stage by stage, with
:math:`d_t = \alpha_t`, :math:`c_t = \eta_t` and the same vote:

- a target of :math:`\varrho = \rho^*` is section 2.2 (``constraint="equality"``). The rate there
  may have any sign, but is never negative, since no edge is below :math:`\rho^*`. AdaBoost itself
  is the case of overlapping classes, :math:`\rho^* = 0`;
- relative precision is Algorithm 1, if like there a stage whose edge rises, or whose target no
  distribution reaches, is taken back and :math:`\epsilon_t` halved. The edges of the stages that
  stay then never rise, so that the least edge is the last one and
  :math:`\varrho_t = \gamma_t / (1 + \epsilon_t)`, the paper's :math:`\rho_t`. The least
  :math:`\nu_t` is the nu of its section 2.4, which bounds the stages by :math:`2 \ln n / \nu^2`
  for n rows.

So AdaBoost*_nu itself, with a constant nu, equals Algorithm 1 only while nu is
:math:`\nu_t`: for one stage. As the edges fall a constant nu is an ever larger part of them, and
in the end more than all of them. And the equality needs the exact minimum of eq. (20)
(``step="exact"``); the closed form that is usual for AdaBoost (``step="bound"``),

.. math:: c_t = \tfrac12 \ln \tfrac{1 + \gamma_t}{1 - \gamma_t}
              - \tfrac12 \ln \tfrac{1 + \varrho_t}{1 - \varrho_t},

minimises an upper bound of it that holds for hypotheses within [-1, 1], which are those of a kernel
with values within [-1, 1]; its steps are never longer.

This module is for comparisons and shares no code with `solve_projection`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import logsumexp, softmax

from hardmargin.kernels import FloatArray
from hardmargin.kernels.matrix import KernelMatrix

__all__ = ["BoostingSolution", "BoostingStop", "boost_parzen_windows"]

BoostingStop = Literal["n_stages", "no_edge", "unreachable", "eps"]


@dataclass(frozen=True)
class BoostingSolution:
    """Boosted Parzen windows, with their path.

    Attributes
    ----------
    distributions : (T + 1, n) array
        The weights of the rows before every stage, and after the last.
    edges : (T + 1,) array
        The edge of the window that each of them weights.
    steps, targets : (T,) arrays
        ``c_t`` and the target of every stage.
    precisions : (T,) array
        ``nu_t``: how far the target was below the least edge until then.
    ensemble : (n,) array
        The vote as one weighted window: the mean of the distributions 1 .. T, weighted by the
        steps.
    stop_reason : str
        ``"n_stages"``; ``"no_edge"`` (no window is above its target); ``"unreachable"`` (every
        row's margin is above the target: a single window is as good as was asked for);
        ``"eps"`` (the relative precision fell below its limit).
    """

    distributions: FloatArray
    edges: FloatArray
    steps: FloatArray
    targets: FloatArray
    precisions: FloatArray
    ensemble: FloatArray
    stop_reason: BoostingStop


def boost_parzen_windows(
    matrix: KernelMatrix,
    labels: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    n_stages: int = 100,
    target: float = 0.0,
    nu: float | None = None,
    eps: tuple[float, float] | None = None,
    step: Literal["exact", "bound"] = "exact",
) -> BoostingSolution:
    """Boost weighted Parzen windows.

    Parameters
    ----------
    matrix : KernelMatrix
        The kernel between the rows.
    labels : (n,) array
        +1 and -1.
    weights : (n,) array or None, default=None
        The first distribution, up to its sum; None weighs all rows alike.
    n_stages : int, default=100
        End after so many stages.
    target : float, default=0.0
        AdaBoost's target for the edge; 0 is AdaBoost itself.
    nu : float or None, default=None
        AdaBoost*_nu with this precision, in place of `target`.
    eps : (float, float) or None, default=None
        Relative precision in place of `target`: the first epsilon, and the one below which to end.
    step : {"exact", "bound"}, default="exact"
        Eq. (20) of the paper, or the closed form for hypotheses within [-1, 1].

    Returns
    -------
    BoostingSolution
        Distributions, edges and steps of all stages.

    Examples
    --------
    >>> import numpy as np
    >>> from hardmargin.kernels.matrix import StoredMatrix
    >>> X, y = np.array([0.0, 1.0, 2.0, 3.0]), np.array([1, -1, -1, 1])
    >>> K = np.exp(-((X[:, None] - X) ** 2))
    >>> boost_parzen_windows(StoredMatrix(K), y, eps=(0.1, 0.005), n_stages=2).edges.round(4)
    array([0.1995, 0.1972, 0.195 ])
    """
    if nu is not None and eps is not None:
        raise ValueError(f"nu={nu!r} and eps={eps!r} are two targets; give one of them.")
    if step not in ("exact", "bound"):
        raise ValueError(f"step={step!r} must be 'exact' or 'bound'.")
    y = np.asarray(labels, dtype=np.float64)
    w = np.ones(len(y)) if weights is None else np.asarray(weights, dtype=np.float64)
    epsilon, smallest = eps if eps is not None else (0.0, 0.0)
    window = _Window.weighted(matrix, y, np.log(w) - np.log(w.sum()))
    windows, least = [window], window.edge
    steps: list[float] = []
    precisions: list[float] = []
    stop_reason: BoostingStop = "n_stages"
    while len(steps) < n_stages:
        if eps is not None:
            precision = window.edge * epsilon / (1 + epsilon)
        else:
            precision = least - target if nu is None else nu
        if window.edge <= least - precision:
            stop_reason = "no_edge"
            break
        c = _STEPS[step](window, least - precision)
        following = window
        if np.isfinite(c):
            following = _Window.weighted(matrix, y, window.log_d - c * window.margins)  # eq. (21)
        elif eps is None:
            stop_reason = "unreachable"
            break
        if eps is not None and (following is window or following.edge > window.edge):
            epsilon /= 2  # take the stage back
            if epsilon < smallest:
                stop_reason = "eps"
                break
            continue
        steps.append(c)
        precisions.append(precision)
        window = following
        windows.append(window)
        least = min(least, window.edge)
    return _solution(windows, steps, precisions, stop_reason)


@dataclass(frozen=True)
class _Window:
    """A weighted Parzen window: logarithms of the weights, margins on the rows, and its edge."""

    log_d: FloatArray
    margins: FloatArray
    edge: float

    @classmethod
    def weighted(cls, matrix: KernelMatrix, y: FloatArray, log_d: FloatArray) -> _Window:
        log_d = log_d - logsumexp(log_d)
        d = np.exp(log_d)
        margins = y * matrix.product((y * d)[:, None])[:, 0]
        return cls(log_d, margins, float(d @ margins))


def _exact_step(window: _Window, level: float) -> float:
    """Eq. (20): the step after which the margins have the mean `level`; infinite if none does."""
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
    """Minimise the bound of eq. (20) that all hypotheses within [-1, 1] of this edge share."""
    largest = float(np.abs(window.margins).max())
    if largest > 1:
        raise ValueError(
            f"step='bound' needs a kernel with values within [-1, 1], but a window reaches "
            f"{largest:.3g}; use step='exact' or divide the kernel."
        )
    if level <= -1 or window.edge >= 1:
        return np.inf
    return float(np.arctanh(window.edge) - np.arctanh(level))


_STEPS = {"exact": _exact_step, "bound": _bound_step}


def _solution(
    windows: list[_Window], steps: list[float], precisions: list[float], stop_reason: BoostingStop
) -> BoostingSolution:
    distributions = np.exp(np.array([window.log_d for window in windows]))
    edges = np.array([window.edge for window in windows])
    c = np.array(steps)
    ensemble = c @ distributions[:-1] / c.sum() if steps else distributions[0]
    return BoostingSolution(
        distributions=distributions,
        edges=edges,
        steps=c,
        targets=np.minimum.accumulate(edges)[:-1] - np.array(precisions),
        precisions=np.array(precisions),
        ensemble=ensemble,
        stop_reason=stop_reason,
    )
