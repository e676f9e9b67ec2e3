r"""The SVM with bias by multiplicative updates: Cristianini, Campbell & Shawe-Taylor, ESANN 1999.

The dual of the hard-margin SVM, eq. (1) of the paper,

.. math:: \max_{\alpha \ge 0,\ y'\alpha = 0} W(\alpha) = 1'\alpha - \tfrac12 \alpha'\tilde K\alpha,
          \qquad \tilde K_{ij} = y_i y_j K_{ij},

is climbed by gradient ascent in :math:`\ln \alpha`. An epoch computes the margins
:math:`\gamma = \tilde K \alpha` (one product with the kernel) and updates all multipliers,

.. math:: \alpha_k \leftarrow \alpha_k \exp(\eta (1 - \gamma_k - \lambda y_k)),

where :math:`\lambda` keeps :math:`y'\alpha = 0`, in closed form:
:math:`2\eta\lambda` is the difference of the log-sum-exps of
:math:`\ln\alpha_k + \eta(1 - \gamma_k)` over the positive and the negative rows. The start is
:math:`1/N_+` and :math:`1/N_-`, so that each class adds up to one.

The paper leaves the rate :math:`\eta` open. It can be fixed, or found on the way: begin with
:math:`1 / \sum_i \alpha_i \|\phi_i - \bar\phi\|^2`, undo an epoch that lowers W and halve the rate,
raise it by a tenth after one that does not. (The trace bounds the curvature of W in
:math:`\ln \alpha`; distances to the mean may stand for :math:`K_{ii}` because
:math:`y'\alpha = 0` makes W independent of the origin.) A start so large that W is negative is
scaled down first, to its best multiple; kernels with values up to one never need that.

Bias: at the optimum :math:`\lambda` is the bias. Before it, the bias that balances the least
margins of the two classes, :math:`b = (\min_- \gamma - \min_+ \gamma)/2`, gives the plane the
largest margin it can have and does not depend on the rate; it is what is returned. A plane that
does not separate the classes would be at the mercy of its worst two rows; it gets the limit of
:math:`\lambda` for small rates, the same with means weighted by alpha in place of the minima.

Certificate: with :math:`m = (\min_+ \gamma + \min_- \gamma)/2` the plane divided by m is feasible
in the primal, and the best multiple of :math:`\alpha` is feasible in the dual, so that

.. math:: \frac{(1'\alpha)^2}{2\|w\|^2} \le \tfrac12\|w^*\|^2 \le \frac{\|w\|^2}{2 m^2},
          \qquad \text{gap} = 1 - \frac{(1'\alpha)^2 m^2}{\|w\|^4}.

Both bounds are free of the scale of :math:`\alpha`. A run has converged when the gap is at most
``tol`` and the scale is right as well: :math:`1'\alpha = \|w\|^2` to the same relative accuracy.
The lower bound also proves that classes overlap: it grows beyond every limit then.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hardmargin.kernels import FloatArray
from hardmargin.kernels.matrix import KernelMatrix
from hardmargin.solvers.solution import MultiplicativeSolution, MultiplicativeStop

#: Classes overlap when the dual proves a margin below 1e-4 of the rows' spread around their mean,
#: that is, multipliers that add up to 1e8 for rows of unit spread: beyond that, rounding of the
#: kernel values decides on the plane.
MAX_SQUARED_NORM = 1e8

#: Squared distances below this part of the values they are differences of are rounding.
ROUNDING = 1e-14

#: Epochs in a row without a new best objective after which a fixed rate is given up: a rate that
#: converges may overshoot at the start, but is back on its way after a few dozen epochs.
PATIENCE = 100

#: Halvings of the rate in a row after which not even rounding separates two epochs.
MAX_HALVINGS = 60

#: Exponentials beyond this, summed, would overflow.
_MAX_EXPONENT = 600.0

#: Objectives that differ by less are equal.
_SAME = 1e-9

KeepGoing = Callable[[int, float], bool]
Side = NDArray[np.intp]


@dataclass(frozen=True)
class MultiplicativeOptions:
    """How to run.

    Attributes
    ----------
    learning_rate : float or "auto"
        The rate eta, fixed as in the paper, or adapted to the objective.
    tol : float
        Relative gap that ends the run.
    max_stages : int
        Limit on the planes, the first included.
    """

    learning_rate: float | Literal["auto"] = "auto"
    tol: float = 1e-3
    max_stages: int = 10_000

    def __post_init__(self) -> None:
        if self.learning_rate != "auto" and not 0 < self.learning_rate < np.inf:
            raise ValueError(
                f"learning_rate must be a positive number or 'auto', got {self.learning_rate!r}."
            )


def solve_multiplicative(
    matrix: KernelMatrix,
    labels: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    options: MultiplicativeOptions | None = None,
    keep_going: KeepGoing | None = None,
    observe: Callable[[FloatArray], None] | None = None,
) -> MultiplicativeSolution:
    """Train one machine.

    Parameters
    ----------
    matrix : KernelMatrix
        Stored, streamed or of low rank.
    labels : (n,) array
        +1 and -1.
    weights : (n,) array, optional
        Weights of the rows, of which the first multipliers are a multiple in each class; a weight
        of two equals the row twice, zero its absence.
    options : MultiplicativeOptions, optional
        How to run.
    keep_going : callable, optional
        Called before every product but the first with (planes, gap); False ends the run.
    observe : callable, optional
        Called with the multipliers times labels of every plane, the first and the last included.

    Returns
    -------
    MultiplicativeSolution
        Of the last plane; where a fixed rate diverged, of that closest to the optimum; where the
        classes overlap, and the last plane is between rows that coincide, of that with the fewest
        errors.
    """
    options = options or MultiplicativeOptions()
    y = np.asarray(labels, dtype=np.float64)
    w = np.ones(len(y)) if weights is None else np.asarray(weights, dtype=np.float64)
    sides = _sides(y, w)
    log_alpha = np.full(len(y), -np.inf)
    for side in sides:
        log_alpha[side] = np.log(w[side]) - np.log(w[side].sum())
    first = _plane(matrix, y, sides, log_alpha)
    if first is None:
        raise ValueError("The kernel's values must be finite; some are NaN or infinite.")
    if options.learning_rate == "auto" and first.objective < 0:
        # Kernel values far above 1: the best multiple of the start saves a long way down.
        log_alpha += np.log(first.total / first.squared_norm)
        first = _plane(matrix, y, sides, log_alpha) or first
    run = _Run(y, sides, options, first, _spread(matrix, first.alpha))
    while True:
        if observe is not None:
            observe(y * run.plane.alpha)
        run.stop_reason = run.end()
        while run.stop_reason is None:
            candidate = run.propose()
            if keep_going is not None and not keep_going(len(run.planes), run.plane.gap):
                run.stop_reason = "max_time"
            elif run.judge(_plane(matrix, y, sides, candidate)):
                break
        if run.stop_reason is not None:
            return run.solution()


@dataclass(frozen=True)
class _Plane:
    """A plane and all that its margins tell."""

    log_alpha: FloatArray
    alpha: FloatArray
    gamma: FloatArray
    total: float  # sum of alpha
    squared_norm: float
    bias: float
    functional_margin: float
    n_errors: int

    @property
    def objective(self) -> float:
        """The dual objective W."""
        return self.total - self.squared_norm / 2

    @property
    def scaled_dual(self) -> float:
        """W of the best multiple of alpha: a lower bound on the optimum."""
        if self.squared_norm <= 0:
            return np.inf
        return (self.total / self.squared_norm) * self.total / 2

    @property
    def margin(self) -> float:
        """Distance of the nearest row at the best bias; negative where none separates."""
        if self.squared_norm <= 0:
            return 0.0
        return self.functional_margin / float(np.sqrt(self.squared_norm))

    @property
    def gap(self) -> float:
        """Relative distance between the two bounds on the optimum; 1 where there is only one."""
        if self.functional_margin <= 0 or self.squared_norm <= 0:
            return 1.0
        ratio = (self.total / self.squared_norm) * self.functional_margin
        # Rounding may raise the lower bound above the upper.
        return min(max(1.0 - ratio * ratio, 0.0), 1.0)

    def better_than(self, other: _Plane) -> bool:
        """Closer to the optimum in direction, or as close and of a better scale."""
        if self.scaled_dual > (1 + _SAME) * other.scaled_dual:
            return True
        same = self.scaled_dual >= (1 - _SAME) * other.scaled_dual
        return same and self.objective > other.objective


def _plane(
    matrix: KernelMatrix, y: FloatArray, sides: list[Side], log_alpha: FloatArray
) -> _Plane | None:
    """Make the plane of some multipliers, with one product; None where it is not finite."""
    top = float(log_alpha.max())
    if not -_MAX_EXPONENT < top < _MAX_EXPONENT:
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        alpha = np.exp(log_alpha)
        # Relative to the largest, so that no precision of the kernel values is too narrow.
        gamma = y * matrix.product(y * np.exp(log_alpha - top)) * np.exp(top)
        least = [float(gamma[side].min()) for side in sides]
        margin = (least[0] + least[1]) / 2
        if margin <= 0:
            least = [float(alpha[side] @ gamma[side] / alpha[side].sum()) for side in sides]
        bias = (least[1] - least[0]) / 2
        total, squared_norm = float(alpha.sum()), float(alpha @ gamma)
    if not np.isfinite([margin, bias, total, squared_norm]).all():
        return None
    n_errors = sum(int((gamma[side] + y[side] * bias <= 0).sum()) for side in sides)
    return _Plane(log_alpha, alpha, gamma, total, squared_norm, bias, margin, n_errors)


@dataclass(frozen=True)
class _Spread:
    """How far the rows are from their mean, in feature space."""

    squared_distances: FloatArray
    zero: float  # a squared norm up to this, where sum(alpha) = 1, is none


def _spread(matrix: KernelMatrix, start: FloatArray) -> _Spread:
    """Measure the spread of the rows, weighted as at the start."""
    weights = start / start.sum()
    diagonal = np.abs(matrix.diagonal)
    product = matrix.product(weights)
    distances = np.maximum(diagonal - 2 * product + weights @ product, 0.0)
    zero = max(weights @ distances / MAX_SQUARED_NORM, ROUNDING * (weights @ diagonal))
    return _Spread(distances, float(zero))


@dataclass
class _Run:
    """The way from plane to plane."""

    y: FloatArray
    sides: list[Side]
    options: MultiplicativeOptions
    plane: _Plane
    spread: _Spread
    stop_reason: MultiplicativeStop | None = None
    planes: list[tuple[float, float, float, int]] = field(default_factory=list)
    rates: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        rate = self.options.learning_rate
        self.adaptive = rate == "auto"
        self.rate = self._safe_rate() if rate == "auto" else float(rate)
        self.lambda_ = 0.0
        self.n_halvings = 0
        self.best, self.n_best = self.plane, 1
        self.most_right, self.n_most_right = self.plane, 1
        self.best_objective, self.n_below = self.plane.objective, 0
        self._record()

    def end(self) -> MultiplicativeStop | None:
        """Give the reason to stop at this plane, if there is one."""
        plane, tol = self.plane, self.options.tol
        if plane.squared_norm <= plane.total * (plane.total * self.spread.zero):
            return "not_separable"
        off_scale = abs(plane.total - plane.squared_norm)
        if plane.gap <= tol and off_scale <= tol * plane.squared_norm:
            return "converged"
        if self.n_below >= PATIENCE:
            return "diverged"
        return "max_stages" if len(self.planes) >= self.options.max_stages else None

    def propose(self) -> FloatArray:
        """Update the multipliers, as logarithms; y' alpha = 0 gives lambda."""
        raised = self.plane.log_alpha + self.rate * (1 - self.plane.gamma)
        masses = [_log_sum_exp(raised[side]) for side in self.sides]
        self.lambda_ = (masses[0] - masses[1]) / (2 * self.rate)
        # Both classes get the mean of the logarithmic masses; - eta lambda y loses digits.
        for side, mass in zip(self.sides, masses, strict=True):
            raised[side] += (masses[0] + masses[1]) / 2 - mass
        return raised

    def judge(self, candidate: _Plane | None) -> bool:
        """Go on to the candidate unless it must be undone; say whether that was done."""
        if candidate is None and not self.adaptive:
            self.stop_reason = "diverged"
            return False
        if candidate is None or (self.adaptive and self._rise(candidate) < 0):
            self.rate /= 2
            self.n_halvings += 1
            if self.n_halvings > MAX_HALVINGS:
                self.stop_reason = "stalled"
            return False
        self.plane = candidate
        self.rates.append(self.rate)
        self._record()
        if self.adaptive:
            self.n_halvings = 0
            self.rate = max(1.1 * self.rate, self._safe_rate())
        return True

    def solution(self) -> MultiplicativeSolution:
        """Everything that is known at the end."""
        plane, n = self.plane, len(self.planes)
        if self.stop_reason == "diverged":
            plane, n = self.best, self.n_best
        elif self.stop_reason == "not_separable":
            plane, n = self.most_right, self.n_most_right
        margins, objectives, biases, errors = zip(*self.planes[:n], strict=True)
        return MultiplicativeSolution(
            alpha=plane.alpha,
            intercept=plane.bias,
            margins=np.array(margins),
            objectives=np.array(objectives),
            biases=np.array(biases),
            errors=np.array(errors, dtype=np.int64),
            rates=np.array(self.rates[: n - 1]),
            last_rate=self.rates[n - 2] if n > 1 else self.rate,
            squared_norm=max(plane.squared_norm, 0.0),
            gap=plane.gap,
            n_tried=len(self.planes),
            stop_reason=self.stop_reason or "max_time",
        )

    def _rise(self, candidate: _Plane) -> float:
        """How much W rises, without the cancellation of a difference between two values of W.

        As y' alpha does not change, lambda may be put in: it takes the rounding out.
        """
        with np.errstate(invalid="ignore"):
            growth = candidate.log_alpha - self.plane.log_alpha
        growth[np.isnan(growth)] = 0.0  # rows without weight
        step = self.plane.alpha * np.expm1(growth)
        mean = (self.plane.gamma + candidate.gamma) / 2
        return float(step @ (1 - mean - self.lambda_ * self.y))

    def _record(self) -> None:
        plane = self.plane
        self.planes.append((plane.margin, plane.objective, plane.bias, plane.n_errors))
        if plane.n_errors < self.most_right.n_errors:
            self.most_right, self.n_most_right = plane, len(self.planes)
        if self.adaptive:
            return
        if plane.better_than(self.best):
            self.best, self.n_best = plane, len(self.planes)
        falls = plane.objective < self.best_objective - _SAME * abs(self.best_objective)
        self.n_below = self.n_below + 1 if falls else 0
        self.best_objective = max(self.best_objective, plane.objective)

    def _safe_rate(self) -> float:
        """One over the trace that bounds the curvature; at most 1, where margins are still 0."""
        return 1.0 / max(1.0, float(self.plane.alpha @ self.spread.squared_distances))


def _sides(y: FloatArray, weights: FloatArray) -> list[Side]:
    """Rows of weight among the positive ones, and among the negative ones."""
    sides = [np.flatnonzero((y > 0) & (weights > 0)), np.flatnonzero((y < 0) & (weights > 0))]
    if not all(len(side) for side in sides):
        raise ValueError("A machine needs rows of both labels.")
    return sides


def _log_sum_exp(values: FloatArray) -> float:
    top = float(values.max())
    return top + float(np.log(np.exp(values - top).sum()))
