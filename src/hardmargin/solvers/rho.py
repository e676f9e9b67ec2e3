r"""The rho-SVM by adaptive multiplicative updates: Tsang & Kwok, IJCAI 2007 (IJCAI-07).

The dual of the hard-margin SVM without bias, on the simplex,

.. math:: \rho^* = \min_{\alpha \ge 0,\ 1'\alpha = 1} \alpha' \tilde K \alpha,
          \qquad \tilde K_{ij} = y_i y_j K_{ij},

is solved by entropy projections. With the margins :math:`g = \tilde K \alpha_t` and the objective
:math:`\bar\rho_t = \alpha_t' g`, Algorithm 1 projects on the half-space
:math:`\alpha' g \le \bar\rho_t / (1 + \epsilon)`:

.. math:: \alpha_{t+1,i} \propto \alpha_{t,i} \exp(-\eta_t g_i),

where :math:`\eta_t > 0` makes the constraint an equality. A half-space that the simplex does not
meet (infeasible) and a stage that raises the objective (overshoot) are answered by halving
:math:`\epsilon`; the path ends when it falls below ``eps_stop``. The last plane
:math:`f_{T+1}` is the rho-SVM, the first is a Parzen window, and the planes that were passed on the
way, weighted by their rates :math:`\eta_t`, are the paper's ensemble. Since

.. math:: \textstyle\sum_t \eta_t\, y_i f_t(x_i) = \mathrm{const} - \ln \alpha_{T+1,i},

that ensemble descends on the exponential loss, and the number of stages is its regulariser.

Other constraints: the optimum known (section 2.2), as the printed equality
:math:`\alpha' g = \rho^*` or as :math:`\alpha' g \le (\rho^* + \bar\rho)/2`, which the optimum
always satisfies; and a fixed rate in place of any constraint (Cristianini et al., ESANN 1999).

With bias, each class holds half of the mass, and a stage also moves
:math:`b_t = (\ln Z_+ - \ln Z_-) / 2\eta_t`; least and mean margins are then means of the two
classes' own.

All weights are kept as logarithms. The certificate is :math:`\rho^* \ge (\min g)_+^2 / \bar\rho`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hardmargin import _core
from hardmargin.kernels import FloatArray
from hardmargin.kernels.matrix import KernelMatrix
from hardmargin.solvers.solution import ProjectionSolution, ProjectionStop

#: An objective this far below the mean of the diagonal counts as zero: the classes overlap.
ZERO_RHO = 1e-10

_RATE_TOL = 1e-6
_MAX_RATE_STEPS = 200

KeepGoing = Callable[[int, float], bool]


@dataclass(frozen=True)
class ProjectionOptions:
    """How to run: Algorithm 1 of the paper by default.

    Attributes
    ----------
    constraint : {"adaptive", "equality", "midpoint", "rate"}
        What a stage projects on: Algorithm 1; ``alpha' g = rho`` or
        ``alpha' g <= (rho + rho_bar) / 2`` for a known `rho`; or nothing, at a fixed `rate`.
    eps_start, eps_stop : float
        The first epsilon of Algorithm 1, and the one below which it ends.
    n_stages : int or None
        End after so many stages; epsilon may then fall as far as it takes.
    max_stages : int
        Limit on the stages; reaching it is a reason to warn.
    fit_intercept : bool
        The form with bias.
    rho : float or None
        The optimum, where the constraint needs it.
    rate : float or None
        The fixed rate.
    rate_scale : {"simplex", "margin"}
        Whether `rate` applies to multipliers that add up to one, or (as in Fig. 1 of the paper) to
        those of the standard SVM, which add up to ``1 / rho_bar``.
    tol : float
        With a known `rho`, end when the objective is within this relative distance.
    """

    constraint: Literal["adaptive", "equality", "midpoint", "rate"] = "adaptive"
    eps_start: float = 0.1
    eps_stop: float = 0.005
    n_stages: int | None = None
    max_stages: int = 10_000
    fit_intercept: bool = False
    rho: float | None = None
    rate: float | None = None
    rate_scale: Literal["simplex", "margin"] = "simplex"
    tol: float = 1e-3

    def __post_init__(self) -> None:
        if self.constraint in ("equality", "midpoint") and not (self.rho and self.rho > 0):
            raise ValueError(f"constraint={self.constraint!r} needs rho > 0, got {self.rho!r}.")
        if self.constraint == "rate" and not (self.rate and self.rate > 0):
            raise ValueError(f"constraint='rate' needs rate > 0, got {self.rate!r}.")


def solve_projection(
    matrix: KernelMatrix,
    labels: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    options: ProjectionOptions | None = None,
    keep_going: KeepGoing | None = None,
    observe: Callable[[int, FloatArray], None] | None = None,
) -> list[ProjectionSolution]:
    """Train one machine a column of labels; all share one product with the kernel a stage.

    Parameters
    ----------
    matrix : KernelMatrix
        Stored, streamed or of low rank.
    labels : (n,) or (n, n_machines) array
        +1 and -1; 0 leaves a row out of a machine.
    weights : (n,) or (n, n_machines) array, optional
        Weights of the rows; a weight of two equals the row twice.
    options : ProjectionOptions, optional
        How to run.
    keep_going : callable, optional
        Called before every stage's product with (stages, objective); False ends the run.
    observe : callable, optional
        Called with (machine, multipliers times labels of its rows) at every plane passed, the first
        and the last included.

    Returns
    -------
    list of ProjectionSolution
        One a machine.
    """
    options = options or ProjectionOptions()
    y = np.asarray(labels, dtype=np.float64)
    y = y[:, None] if y.ndim == 1 else y
    w = np.ones(y.shape) if weights is None else np.asarray(weights, dtype=np.float64)
    w = np.broadcast_to(w[:, None] if w.ndim == 1 else w, y.shape)
    diagonal = matrix.diagonal
    paths = [_Path(m, y[:, m], w[:, m], diagonal, options) for m in range(y.shape[1])]
    running = paths
    while running:
        for path in running:
            path.propose()
        running = [path for path in running if path.stop_reason is None]
        has_begun = running and running[0].margins is not None
        if has_begun and keep_going is not None:
            furthest = max(running, key=lambda path: len(path.rates))
            if not keep_going(len(furthest.rates), furthest.rho):
                for path in running:
                    path.stop_reason = "max_time"
                break
        if running:
            products = matrix.product(np.column_stack([path.signed() for path in running]))
            for path, product in zip(running, products.T, strict=True):
                if path.judge(product) and observe is not None:
                    observe(path.machine, path.y * path.alpha)
    return [path.solution() for path in paths]


@dataclass
class _Path:
    """One machine on its way; arrays are over the rows that take part in it."""

    machine: int
    all_labels: FloatArray
    all_weights: FloatArray
    all_diagonal: FloatArray
    options: ProjectionOptions
    stop_reason: ProjectionStop | None = None
    rates: list[float] = field(default_factory=list)
    biases: list[float] = field(default_factory=list)
    rhos: list[float] = field(default_factory=list)
    epsilons: list[float] = field(default_factory=list)
    plane_intercepts: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        present = (self.all_labels != 0) & (self.all_weights > 0)
        self.rows = np.flatnonzero(present)
        self.y = self.all_labels[present]
        if not ((self.y > 0).any() and (self.y < 0).any()):
            raise ValueError("Every machine needs rows of both labels.")
        self.groups = _groups(self.y, self.options.fit_intercept)
        self.zero = ZERO_RHO * float(np.abs(self.all_diagonal[present]).mean())
        weights = self.all_weights[present]
        self.start = np.empty(len(weights))
        for group in self.groups:
            self.start[group] = weights[group] / (len(self.groups) * weights[group].sum())
        # The share of a tiny weight may be too small for a number; its logarithm must not be.
        self.log_alpha = np.log(np.maximum(self.start, np.finfo(np.float64).tiny))
        self.alpha = self.start
        self.margins: FloatArray | None = None
        self.rho = np.inf
        self.lower_bound = 0.0
        self.epsilon = self.options.eps_start
        self.total: FloatArray = np.zeros(len(self.y))  # sum of rate * alpha over the stages
        self.candidate: tuple[FloatArray, FloatArray] = self.log_alpha, self.alpha
        self.rate = self.bias = 0.0

    def propose(self) -> None:
        """Find the next stage's multipliers, or a reason to stop."""
        if self.margins is None:  # the first plane
            return
        while self.stop_reason is None:
            self.stop_reason = self._end()
            if self.stop_reason is not None:
                return
            if self.options.constraint == "rate":
                assert self.options.rate is not None
                scale = self.rho if self.options.rate_scale == "margin" else 1.0
                self.rate = self.options.rate / scale
            else:
                level = self._level()
                if self._least(self.margins) >= level:
                    self._fail("infeasible")
                    continue
                start = self.rates[-1] if self.rates else None
                self.rate = _rate(self.log_alpha, self.margins, level, self.groups, start)
                if not 0 < self.rate < np.inf:
                    self.stop_reason = "eta_zero"
                    return
            log_alpha, alpha, self.bias = _tilt(
                self.log_alpha, self.margins, self.rate, self.groups
            )
            self.candidate = log_alpha, alpha
            return

    def signed(self) -> FloatArray:
        """Multipliers times labels of the candidate, over all rows."""
        signed: FloatArray = self.y * self.candidate[1]
        if len(self.rows) == len(self.all_labels):
            return signed
        column = np.zeros(len(self.all_labels))
        column[self.rows] = signed
        return column

    def judge(self, product: FloatArray) -> bool:
        """Take the candidate's plane if it lowers the objective; say whether it was taken."""
        margins = self.y * (product if len(self.rows) == len(product) else product[self.rows])
        log_alpha, alpha = self.candidate
        rho = float(alpha @ margins)
        if not np.isfinite(rho):
            raise ValueError("The kernel's values must be finite; some are NaN or infinite.")
        if self.margins is not None:
            # A known optimum bounds the whole path: there the paper takes every projection.
            if rho > self.rho and self.options.constraint in ("adaptive", "rate"):
                self._fail("overshoot")
                return False
            self.total += self.rate * self.alpha
            self.rates.append(self.rate)
            self.biases.append(self.bias)
            self.epsilons.append(self.epsilon)
        self.log_alpha, self.alpha, self.margins, self.rho = log_alpha, alpha, margins, rho
        self.rhos.append(rho)
        self.plane_intercepts.append(self._middle(margins))
        if rho > 0:
            least = max(self._least(margins), 0.0)
            self.lower_bound = max(self.lower_bound, least * (least / rho))
        return True

    def solution(self) -> ProjectionSolution:
        """Everything that is known at the end."""
        rates, biases = np.array(self.rates), np.array(self.biases)
        if len(rates):
            ensemble, intercept = self.total / rates.sum(), 0.0
            if self.options.fit_intercept:
                first = 0.5 * np.log(self._mass(self.y > 0) / self._mass(self.y < 0))
                intercept = float((first + rates @ biases) / rates.sum())
        else:
            ensemble, intercept = self.start, 0.0
        return ProjectionSolution(
            rows=self.rows.astype(np.int32),
            labels=self.y,
            start=self.start,
            alpha=self.alpha,
            ensemble=ensemble,
            intercept=intercept,
            plane_intercepts=np.array(self.plane_intercepts),
            rates=rates,
            biases=biases,
            epsilons=np.array(self.epsilons),
            rhos=np.array(self.rhos),
            rho_lower_bound=min(self.lower_bound, self.rho),
            stop_reason=self.stop_reason or "max_time",
        )

    def _end(self) -> ProjectionStop | None:
        if self.rho <= self.zero:
            return "rho_zero"
        if self.options.n_stages is not None and len(self.rates) >= self.options.n_stages:
            return "n_stages"
        if len(self.rates) >= self.options.max_stages:
            return "max_stages"
        if self.options.rho is not None and self.rho <= (1 + self.options.tol) * self.options.rho:
            return "converged"
        return None

    def _level(self) -> float:
        """Where the half-space of this stage begins."""
        if self.options.constraint == "adaptive":
            return self.rho / (1 + self.epsilon)
        assert self.options.rho is not None
        if self.options.constraint == "equality":
            return self.options.rho
        return (self.options.rho + self.rho) / 2

    def _fail(self, reason: ProjectionStop) -> None:
        if self.options.constraint != "adaptive":
            self.stop_reason = reason
            return
        self.epsilon /= 2
        smallest = self.options.eps_stop if self.options.n_stages is None else 1e-12
        if self.epsilon < smallest:
            self.stop_reason = "eps"

    def _least(self, margins: FloatArray) -> float:
        return sum(float(margins[group].min()) for group in self.groups) / len(self.groups)

    def _middle(self, margins: FloatArray) -> float:
        """Find the bias that gives both classes the same least margin."""
        if not self.options.fit_intercept:
            return 0.0
        positive, negative = (float(margins[group].min()) for group in self.groups)
        return (negative - positive) / 2

    def _mass(self, side: NDArray[np.bool_]) -> float:
        return float(self.all_weights[self.rows][side].sum())


def _groups(y: FloatArray, fit_intercept: bool) -> list[slice | NDArray[np.intp]]:
    """Return the sets of rows whose multipliers have a sum of their own."""
    if not fit_intercept:
        return [slice(None)]
    return [np.flatnonzero(y > 0), np.flatnonzero(y < 0)]


def _tilt(
    log_alpha: FloatArray,
    margins: FloatArray,
    rate: float,
    groups: list[slice | NDArray[np.intp]],
) -> tuple[FloatArray, FloatArray, float]:
    """Eq. (8): the multipliers after a stage, as logarithms and as they are, and its bias."""
    tilted = log_alpha - rate * margins
    alpha = np.empty_like(tilted)
    log_masses = []
    for group in groups:
        part = np.empty_like(tilted[group])
        log_mass, _, _ = _core.tilt(log_alpha[group], margins[group], rate, 0.0, part)
        tilted[group] -= log_mass + np.log(len(groups))
        alpha[group] = part / len(groups)
        log_masses.append(log_mass)
    bias = (log_masses[0] - log_masses[1]) / (2 * rate) if len(groups) == 2 else 0.0
    return tilted, alpha, bias


@np.errstate(over="ignore", invalid="ignore")  # a rate that is not finite ends the path
def _rate(
    log_alpha: FloatArray,
    margins: FloatArray,
    level: float,
    groups: list[slice | NDArray[np.intp]],
    start: float | None = None,
) -> float:
    """Eq. (9): the rate after which the margins have the mean `level`.

    The mean falls with the rate, at the speed of the margins' variance, from `rho_bar` towards
    their minimum: Newton's method, kept within a bracket that grows until it holds the root.
    """
    parts = [(log_alpha[g], margins[g], np.empty_like(margins[g])) for g in groups]

    def mean_and_variance(rate: float) -> tuple[float, float]:
        mean = variance = 0.0
        for logs, values, weights in parts:
            _, mean_of_part, variance_of_part = _core.tilt(logs, values, rate, level, weights)
            mean += mean_of_part / len(parts)
            variance += variance_of_part / len(parts)
        return mean, variance

    low, high = 0.0, np.inf
    if start is None:
        mean, variance = mean_and_variance(0.0)
        start = (mean - level) / variance if variance > 0 else 1.0 / max(abs(level), 1e-300)
    rate = start
    for _ in range(_MAX_RATE_STEPS):
        mean, variance = mean_and_variance(rate)
        if mean == level:
            return float(rate)
        if mean > level:
            low = rate
        else:
            high = rate
        # From the safe side of the root the step may be too long by far, or not finite.
        step = (mean - level) / variance if variance > 0 else np.inf
        following = rate + step
        if np.isinf(high):
            following = min(max(following, 1.5 * rate), 16 * rate)
        elif not low < following < high:
            following = (low + high) / 2
        if abs(following - rate) <= _RATE_TOL * rate:
            return float(following)
        rate = following
    return float(rate)
