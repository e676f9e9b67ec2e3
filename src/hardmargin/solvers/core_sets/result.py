r"""What an L2-SVM under constraints comes to, whichever solver found its multipliers.

From :math:`\alpha \ge 0` and the scores :math:`w'\varphi(x_i)` that it makes (the parts of w along
the constraints left out) follow two bounds on the optimum :math:`p^*` of eq. (1) of MCS-06,

.. math:: \frac{(\sum\alpha)^2}{\alpha'Q\alpha} \le p^* \le
          \min\left(\|w\|^2 + b^2 + C\sum_i w_i\xi_i^2,\
          \frac{\alpha'Q\alpha}{(\min_i (Q\alpha)_i)^2}\right),

the dual and the primal objective at the best multiple of alpha, and the direction w / ||w|| with
its projections, which later machines must be orthogonal to.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hardmargin.kernels import FloatArray
from hardmargin.solvers.core_sets.directions import Directions, LinearSpan
from hardmargin.solvers.solution import BallSolution, BallStop

#: A machine whose objective is closer than this, relatively, to that of w = 0 vanishes.
VANISHING = 1e-6

#: And so does one whose ||w||^2 is not so many times what rounding may have made of it.
_ABOVE_ROUNDING = 10.0

#: Smaller weights than one over this count as that.
LARGEST_SLACK = 1e15

#: So does a C times weight that is larger than this, or smaller than one over it.
LARGEST_C = 1e100


@dataclass(frozen=True)
class Bounds:
    """Where the optimum is.

    Attributes
    ----------
    scale : float
        Alpha divided by this is the best multiple of it.
    lower, upper : float
        The optimum is between these two; 0 and infinity where the kernel is not positive
        semi-definite.
    """

    scale: float
    lower: float
    upper: float

    @property
    def gap(self) -> float:
        """Relative distance between the two."""
        return 1.0 - self.lower / self.upper if self.upper > 0 else 1.0


def slack_of(n_rows: int, C: float, weights: FloatArray | None) -> FloatArray:
    """Make the diagonal ``1 / (C w_i)`` of Q."""
    if np.isinf(C):
        return np.zeros(n_rows)
    largest = np.full(n_rows, min(C, LARGEST_C))
    if weights is not None:
        # Rows that weigh next to nothing must not overflow Q.
        largest *= np.maximum(weights, 1.0 / LARGEST_SLACK)
    return np.asarray(1.0 / np.clip(largest, 1.0 / LARGEST_C, LARGEST_C))


def bounds_of(alpha: FloatArray, margins: FloatArray, slack: FloatArray) -> Bounds:
    """Bound the optimum.

    Parameters
    ----------
    alpha : (n,) array
        Multipliers, at least 0 and not all of them 0.
    margins : (n,) array
        ``y f(x)`` that they make, the bias included.
    slack : (n,) array
        ``1 / (C w_i)``.
    """
    g = margins + slack * alpha
    product, mass = float(alpha @ g), float(alpha.sum())
    if not product > 0:
        return Bounds(1.0, 0.0, np.inf)
    mu = product / mass
    missing = np.maximum(1.0 - margins / mu, 0.0)
    upper = float(alpha @ margins) / mu / mu + float((missing**2 / slack).sum())
    least = float(g.min())
    if least > 0:
        upper = min(upper, product / least / least)  # whose square may vanish
    lower = mass**2 / product
    return Bounds(mu, lower, max(upper, lower))


def least_gain(labels: FloatArray, slack: FloatArray) -> float:
    """Return an objective that is better than that of w = 0 by next to nothing.

    With w = 0 it is ``b^2 + sum_i (1 - y_i b)^2 / slack_i``, least at some b between -1 and 1.
    """
    weights = 1.0 / slack
    trivial = weights.sum() - float(weights @ labels) ** 2 / (1.0 + weights.sum())
    return (1.0 - VANISHING) * float(trivial)


def machine_result(
    alpha: FloatArray,
    scores: FloatArray,
    labels: FloatArray,
    slack: FloatArray,
    directions: Directions,
    span: LinearSpan | None = None,
    *,
    core_size: int,
    n_stages: int,
    n_steps: int,
    n_kernel_evaluations: int,
    stop_reason: BallStop,
) -> BallSolution:
    """Make the machine of some multipliers.

    Parameters
    ----------
    alpha : (n,) array
        Multipliers of all rows, at least 0 and not all of them 0.
    scores : (n,) array
        ``w'phi(x)`` that they make, without what is along the constraints.
    labels : (n,) array
        +1 and -1, and 0 for rows that are left out.
    slack : (n,) array
        ``1 / (C w_i)``.
    directions : Directions
        The constraints.
    span : LinearSpan, optional
        For a linear kernel, whose directions are more exact as vectors.
    core_size, n_stages, n_steps, n_kernel_evaluations, stop_reason
        As in `BallSolution`.
    """
    c = labels * alpha
    rows = np.flatnonzero(labels)
    margins = labels * (scores + c.sum())
    bounds = bounds_of(alpha[rows], margins[rows], slack[rows])
    c = c / bounds.scale
    f = np.where(labels != 0, scores / bounds.scale, 0.0)
    if span is None:
        f, direction, norm = _direction(c, f, labels, directions)
    else:
        f, direction, norm = span.direction(c, directions)
        f = np.where(labels != 0, f, 0.0)
    if len(directions) and bounds.upper >= least_gain(labels[rows], slack[rows]):
        f, direction, norm = np.zeros_like(f), np.zeros_like(f), 0.0
    support = np.flatnonzero(c)
    return BallSolution(
        rows=support.astype(np.int32),
        coefficients=c[support],
        intercept=float(c.sum()),
        lower_bound=bounds.lower,
        objective=bounds.upper,
        weight_norm=norm,
        projections=f,
        direction=direction,
        core_size=core_size,
        n_stages=n_stages,
        n_steps=n_steps,
        n_kernel_evaluations=n_kernel_evaluations,
        stop_reason=stop_reason,
    )


def _direction(
    c: FloatArray, f: FloatArray, labels: FloatArray, directions: Directions
) -> tuple[FloatArray, FloatArray, float]:
    """Return the projections on w of length one, its expansion, and its length."""
    F, U = directions.projections, directions.coefficients
    before = F.T @ c
    expansion = c - U @ before
    # What rounding has left along the directions.
    rest = F.T @ expansion
    expansion -= U @ rest
    f = f - np.where(labels != 0, F @ rest, 0.0)
    squared_norm = float(expansion @ f)
    # How wrong the projections on the directions are, and so what Q was made of.
    rounding = float(np.abs(rest) @ np.abs(before)) + float(rest @ rest)
    if squared_norm <= _ABOVE_ROUNDING * rounding:
        return np.zeros_like(f), np.zeros_like(f), 0.0
    norm = float(np.sqrt(squared_norm))
    return f / norm, expansion / norm, norm
