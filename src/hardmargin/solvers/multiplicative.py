r"""The SVM with bias by multiplicative updates: Cristianini, Campbell & Shawe-Taylor (ESANN-99).

The dual of the hard-margin SVM, eq. (1) of the paper,

.. math:: \max_{\alpha \ge 0,\ y'\alpha = 0} W(\alpha) = 1'\alpha - \tfrac12 \alpha'\tilde K\alpha,
          \qquad \tilde K_{ij} = y_i y_j K_{ij},

is climbed by gradient ascent in :math:`\ln \alpha`, the algorithm of section 3:

1. Initialise :math:`\alpha` to :math:`1/N_+` and :math:`1/N_-`: each class adds up to one. This
   plane is the start, not an epoch.
2. Every epoch computes the margins :math:`\gamma = \tilde K \alpha`, one product with the kernel;
3. the :math:`\lambda` that keeps :math:`y'\alpha = 0`, where :math:`2\eta\lambda` is the difference
   of the log-sum-exps of :math:`\ln\alpha_k + \eta(1 - \gamma_k)` over the positive and the
   negative rows;
4. and the update :math:`\alpha_k \leftarrow \alpha_k \exp(\eta (1 - \gamma_k - \lambda y_k))`.

The paper leaves the rate :math:`\eta` open. It can be fixed, or found on the way: begin with
:math:`1 / \sum_i \alpha_i \|\phi_i - \bar\phi\|^2`, undo an epoch that lowers W and halve the rate,
raise it by a tenth after one that does not. (The trace bounds the curvature of W in
:math:`\ln \alpha`; distances to the mean may replace :math:`K_{ii}` because
:math:`y'\alpha = 0` makes W independent of the origin.) A start so large that W is negative is
scaled down first, to its best multiple; kernels with values up to one never need that.

Bias: at the optimum :math:`\lambda` is the bias. The bias that is returned balances the least
margins of the two classes, :math:`b = (\min_- \gamma - \min_+ \gamma)/2`: it gives any plane the
largest margin it can have and does not depend on the rate. For a plane that does not separate the
classes it would depend on the two worst rows alone. Such a plane gets the limit of :math:`\lambda`
for small rates: the same formula, with means weighted by alpha in place of the minima.

Certificate: with :math:`m = (\min_+ \gamma + \min_- \gamma)/2` the plane divided by m is feasible
in the primal, and the best multiple of :math:`\alpha` is feasible in the dual, so that

.. math:: \frac{(1'\alpha)^2}{2\|w\|^2} \le \tfrac12\|w^*\|^2 \le \frac{\|w\|^2}{2 m^2},
          \qquad \text{gap} = 1 - \frac{(1'\alpha)^2 m^2}{\|w\|^4}.

Neither bound depends on the scale of :math:`\alpha`. A run has converged when the gap is at most
``tol`` and the scale is right as well: :math:`1'\alpha = \|w\|^2` to the same relative accuracy.
The lower bound also proves that classes overlap: it then grows beyond every limit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from hardmargin.kernels import FloatArray
from hardmargin.kernels.matrix import KernelMatrix
from hardmargin.monitor import Monitor, Stopped
from hardmargin.solvers.planes import SparsePlanes
from hardmargin.solvers.problem import Problem, Solution

#: Classes overlap when the dual proves a margin below 1e-4 of the rows' spread around their mean,
#: that is, multipliers that add up to 1e8 for rows of unit spread: beyond that, rounding of the
#: kernel values determines the plane.
MAX_SQUARED_NORM = 1e8

#: Squared distances are differences of kernel values; below this part of the values, they are
#: rounding errors.
ROUNDING = 1e-14

#: A fixed rate is given up after this many epochs in a row without a new best objective: a rate
#: that converges may overshoot at the start, but recovers within a few dozen epochs.
PATIENCE = 100

#: After this many halvings of the rate in a row, two epochs no longer differ even by rounding.
MAX_HALVINGS = 60

#: Sums of exponentials of more than this would overflow.
_MAX_EXPONENT = 600.0

#: Objectives that differ by less, relatively, count as equal.
_SAME = 1e-9

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
        Limit on the epochs.
    keep_planes : int
        Bytes that the planes of a machine may take in its solution; 0 keeps none.
    smallest_kept : float
        Planes are kept without multipliers up to this part of their largest.
    """

    learning_rate: float | Literal["auto"] = "auto"
    tol: float = 1e-3
    max_stages: int = 10_000
    keep_planes: int = 0
    smallest_kept: float = 0.0

    def __post_init__(self) -> None:
        if self.learning_rate != "auto" and not 0 < self.learning_rate < np.inf:
            raise ValueError(
                f"learning_rate must be a positive number or 'auto', got {self.learning_rate!r}."
            )


@dataclass(frozen=True, kw_only=True)
class MultiplicativeSolution(Solution):
    """One machine, with its path from the start through the planes of the epochs 1 .. T.

    The machine is the last plane, with two exceptions. Where a fixed rate diverged, it is the plane
    closest to the optimum. Where the classes overlap, the last plane lies between rows that
    coincide, and the machine is the plane with the fewest errors. The path ends at that plane.

    Attributes
    ----------
    coefficients : (n_support,) array
        On the scale of the standard SVM, whose margin is 1.
    intercept : float
        The bias that balances the least margins of the two classes or, where the plane does not
        separate them, their mean margins weighted by alpha.
    certificate : float
        The relative gap between the bounds on the optimum; 1 where the plane does not separate the
        classes.
    stop_reason : str
        ``"converged"``, ``"not_separable"`` (the dual proves that the margin is practically 0),
        ``"diverged"`` (a fixed rate that is too large), ``"stalled"`` (rounding allows no
        further rise of the objective), ``"max_stages"`` or the monitor's.
    n_stages : int
        T, the number of epochs.
    history : dict of arrays
        For the start and the plane of each epoch: ``"margin"``, the distance of the nearest row at
        the bias that balances the margins (negative where the plane does not separate the classes);
        ``"objective"`` of the dual; ``"bias"``; ``"error"``, the number of training rows
        misclassified. For each epoch: its ``"rate"``. If there was no time to judge the start, its
        bias is 0, and its other entries are NaN.
    last_rate : float
        The last rate or, without any epoch, the rate that would have been tried first.
    squared_norm : float
        ``||w||^2``.
    n_tried : int
        Number of epochs made; more than T where an earlier plane is returned.
    planes : (T + 1, n_support) CSR array or None
        Coefficients of every plane; None where they did not fit in `keep_planes`.
    """

    last_rate: float
    squared_norm: float
    n_tried: int
    planes: sp.csr_array | None = None


def solve(
    problem: Problem[KernelMatrix],
    options: MultiplicativeOptions | None = None,
    monitor: Monitor | None = None,
) -> list[MultiplicativeSolution]:
    """Train the machines one after another.

    Parameters
    ----------
    problem : Problem of a KernelMatrix
        Stored, streamed or of low rank. The first multipliers of each class are a multiple of the
        weights: a weight of two equals having the row twice, zero equals leaving it out.
    options : MultiplicativeOptions, optional
        How to run.
    monitor : Monitor, optional
        Receives the number of epochs so far and the gap before every product but the first.

    Returns
    -------
    list of MultiplicativeSolution
    """
    options, monitor = options or MultiplicativeOptions(), monitor or Monitor()
    return [_train(problem, m, options, monitor) for m in range(len(problem.machines))]


def _train(
    problem: Problem[KernelMatrix], machine: int, options: MultiplicativeOptions, monitor: Monitor
) -> MultiplicativeSolution:
    matrix, y = problem.values, problem.labels_of(machine)
    w = np.ones(len(y)) if problem.weights is None else problem.weights
    sides = _sides(y, w)
    # 1.
    log_alpha = np.full(len(y), -np.inf)
    for side in sides:
        log_alpha[side] = np.log(w[side]) - np.log(w[side].sum())
    try:
        run = _begin(matrix, y, sides, log_alpha, options)
    except Stopped:
        return _start_alone(y, sides, log_alpha, options, monitor.stop_reason)
    while run.stop_reason is None:
        candidate = run.propose()  # 3. and 4.
        if not monitor.go_on(len(run.rates), run.plane.gap):
            run.stop_reason = monitor.stop_reason
            break
        try:
            run.judge(_plane(matrix, y, sides, candidate))  # 2.
        except Stopped:
            run.stop_reason = monitor.stop_reason
    return run.solution()


def _begin(
    matrix: KernelMatrix,
    y: FloatArray,
    sides: list[Side],
    log_alpha: FloatArray,
    options: MultiplicativeOptions,
) -> _Run:
    """Judge the start, which may be scaled down first; raise Stopped if there is no time for it."""
    first = _plane(matrix, y, sides, log_alpha)  # 2.
    if first is None:
        raise ValueError("The kernel's values must be finite; some are NaN or infinite.")
    if options.learning_rate == "auto" and first.objective < 0:
        # Kernel values far above 1: starting from the best multiple saves many epochs.
        log_alpha = log_alpha + np.log(first.total / first.squared_norm)
        first = _plane(matrix, y, sides, log_alpha) or first
    return _Run(y, sides, options, first, _spread(matrix, first.alpha))


def _start_alone(
    y: FloatArray,
    sides: list[Side],
    log_alpha: FloatArray,
    options: MultiplicativeOptions,
    reason: str,
) -> MultiplicativeSolution:
    """Return the start, of which only the multipliers are known."""
    rows = np.sort(np.concatenate(sides))
    coefficients = (y * np.exp(log_alpha))[rows]
    kept = SparsePlanes(options.keep_planes, options.smallest_kept)
    kept.add(coefficients)
    unknown = np.array([np.nan])
    return MultiplicativeSolution(
        rows=rows.astype(np.int32),
        coefficients=coefficients,
        certificate=1.0,
        stop_reason=reason,
        n_stages=0,
        history={
            **dict.fromkeys(("margin", "objective", "error"), unknown),
            "bias": np.zeros(1),
            "rate": np.empty(0),
        },
        last_rate=np.nan,
        squared_norm=np.nan,
        n_tried=0,
        planes=kept.matrix(1),
    )


@dataclass(frozen=True)
class _Plane:
    """A plane and all that follows from its margins."""

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
        """Distance of the nearest row at the best bias; negative where no bias separates."""
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
        """Whether it is closer to the optimum in direction, or as close with a better scale."""
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
        # Relative to the largest, so that the product stays within the range of any precision.
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
    zero: float  # squared norms up to this count as zero, where sum(alpha) = 1


def _spread(matrix: KernelMatrix, start: FloatArray) -> _Spread:
    """Measure the spread of the rows, weighted as at the start."""
    weights = start / start.sum()
    diagonal = np.abs(matrix.diagonal)
    product = matrix.product(weights)
    distances = np.maximum(diagonal - 2 * product + weights @ product, 0.0)
    zero = max(weights @ distances / MAX_SQUARED_NORM, ROUNDING * (weights @ diagonal))
    return _Spread(distances, float(zero))


class _Run:
    """One machine's run from plane to plane."""

    def __init__(
        self,
        y: FloatArray,
        sides: list[Side],
        options: MultiplicativeOptions,
        first: _Plane,
        spread: _Spread,
    ) -> None:
        self.y, self.sides, self.options, self.spread = y, sides, options, spread
        self.rows = np.sort(np.concatenate(sides))
        self.plane = self.best = self.most_right = first
        self.n_best = self.n_most_right = 1
        self.best_objective, self.n_below = first.objective, 0
        self.path: list[tuple[float, float, float, int]] = []
        self.rates: list[float] = []
        self.kept = SparsePlanes(options.keep_planes, options.smallest_kept)
        rate = options.learning_rate
        self.adaptive = rate == "auto"
        self.rate = self._safe_rate() if rate == "auto" else float(rate)
        self.lambda_ = 0.0
        self.n_halvings = 0
        self.stop_reason: str | None = None
        self._pass(first)

    def propose(self) -> FloatArray:
        """Update the multipliers, as logarithms."""
        raised = self.plane.log_alpha + self.rate * (1 - self.plane.gamma)
        masses = [_log_sum_exp(raised[side]) for side in self.sides]
        self.lambda_ = (masses[0] - masses[1]) / (2 * self.rate)
        # Both classes get the mean of the logarithmic masses: adding -eta lambda y loses digits.
        for side, mass in zip(self.sides, masses, strict=True):
            raised[side] += (masses[0] + masses[1]) / 2 - mass
        return raised

    def judge(self, candidate: _Plane | None) -> None:
        """Accept the candidate, or reject it and halve the rate; None if it is not finite."""
        if candidate is None and not self.adaptive:
            self.stop_reason = "diverged"
        elif candidate is None or (self.adaptive and self._rise(candidate) < 0):
            self.rate /= 2
            self.n_halvings += 1
            if self.n_halvings > MAX_HALVINGS:
                self.stop_reason = "stalled"
        else:
            self.rates.append(self.rate)
            self._pass(candidate)
            if self.adaptive:
                self.n_halvings = 0
                self.rate = max(1.1 * self.rate, self._safe_rate())

    def solution(self) -> MultiplicativeSolution:
        """Everything that is known at the end."""
        plane, n = self.plane, len(self.path)
        if self.stop_reason == "diverged":
            plane, n = self.best, self.n_best
        elif self.stop_reason == "not_separable":
            plane, n = self.most_right, self.n_most_right
        names = ("margin", "objective", "bias", "error")
        of_planes = map(np.array, zip(*self.path[:n], strict=True))
        return MultiplicativeSolution(
            rows=self.rows.astype(np.int32),
            coefficients=(self.y * plane.alpha)[self.rows],
            intercept=plane.bias,
            certificate=plane.gap,
            stop_reason=self.stop_reason or "",
            n_stages=n - 1,
            history={
                **dict(zip(names, of_planes, strict=True)),
                "rate": np.array(self.rates[: n - 1]),
            },
            last_rate=self.rates[n - 2] if n > 1 else self.rate,
            squared_norm=max(plane.squared_norm, 0.0),
            n_tried=len(self.rates),
            planes=self.kept.matrix(n),
        )

    def _rise(self, candidate: _Plane) -> float:
        """How much W rises, without the cancellation of a difference between two values of W.

        As y' alpha does not change, lambda may be subtracted, which reduces rounding.
        """
        with np.errstate(invalid="ignore"):
            growth = candidate.log_alpha - self.plane.log_alpha
        growth[np.isnan(growth)] = 0.0  # rows without weight
        step = self.plane.alpha * np.expm1(growth)
        mean = (self.plane.gamma + candidate.gamma) / 2
        return float(step @ (1 - mean - self.lambda_ * self.y))

    def _pass(self, plane: _Plane) -> None:
        """Move to a plane, and decide whether to stop there."""
        self.plane = plane
        self.path.append((plane.margin, plane.objective, plane.bias, plane.n_errors))
        self.kept.add((self.y * plane.alpha)[self.rows])
        if plane.n_errors < self.most_right.n_errors:
            self.most_right, self.n_most_right = plane, len(self.path)
        if not self.adaptive:
            if plane.better_than(self.best):
                self.best, self.n_best = plane, len(self.path)
            falls = plane.objective < self.best_objective - _SAME * abs(self.best_objective)
            self.n_below = self.n_below + 1 if falls else 0
            self.best_objective = max(self.best_objective, plane.objective)
        self.stop_reason = self._end()

    def _end(self) -> str | None:
        plane, tol = self.plane, self.options.tol
        if plane.squared_norm <= plane.total * (plane.total * self.spread.zero):
            return "not_separable"
        off_scale = abs(plane.total - plane.squared_norm)
        if plane.gap <= tol and off_scale <= tol * plane.squared_norm:
            return "converged"
        if self.n_below >= PATIENCE:
            return "diverged"
        return "max_stages" if len(self.rates) >= self.options.max_stages else None

    def _safe_rate(self) -> float:
        """One over the trace that bounds the curvature; at most 1, for margins that are still 0."""
        return 1.0 / max(1.0, float(self.plane.alpha @ self.spread.squared_distances))


def _sides(y: FloatArray, weights: FloatArray) -> list[Side]:
    """Return the positive and the negative rows that have a weight."""
    sides = [np.flatnonzero((y > 0) & (weights > 0)), np.flatnonzero((y < 0) & (weights > 0))]
    if not all(len(side) for side in sides):
        raise ValueError("A machine needs rows of both labels.")
    return sides


def _log_sum_exp(values: FloatArray) -> float:
    top = float(values.max())
    return top + float(np.log(np.exp(values - top).sum()))
