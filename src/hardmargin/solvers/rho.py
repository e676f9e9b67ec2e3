r"""The rho-SVM by adaptive multiplicative updates: Tsang & Kwok, IJCAI 2007 (IJCAI-07).

The dual of the hard-margin SVM without bias, on the simplex,

.. math:: \rho^* = \min_{\alpha \ge 0,\ 1'\alpha = 1} \alpha' \tilde K \alpha,
          \qquad \tilde K_{ij} = y_i y_j K_{ij},

is solved by entropy projections. Algorithm 1 of the paper, with its step numbers:

2. Start with equal :math:`\alpha_1` and the objective
   :math:`\bar\rho_1 = \alpha_1'\tilde K\alpha_1`.
3. Compute the margins :math:`g = \tilde K \alpha_t` of the plane :math:`f_t`, eq. (3).
4. Set the level :math:`\rho_t = \bar\rho_t / (1 + \epsilon_t)`.
5. Find the rate :math:`\eta_t > 0` that puts the mean margin on the level, eq. (9). Where the
   simplex does not reach the level (infeasible), halve :math:`\epsilon_t` and go to step 8; where
   no rate moves the plane, end.
6. Project on the half-space :math:`\alpha' g \le \rho_t`, eq. (8):
   :math:`\alpha_{t+1,i} \propto \alpha_{t,i} \exp(-\eta_t g_i)`; compute
   :math:`\bar\rho_{t+1}`.
7. Where the objective has not risen, go on to step 3 with t + 1; else (overshoot) halve
   :math:`\epsilon_t`.
8. While :math:`\epsilon_t` is at least ``eps_stop``, go to step 4; else end.

The last plane :math:`f_{T+1}` is the rho-SVM, the first is a Parzen window, and the planes that
were passed on the way, weighted by their rates :math:`\eta_t`, are the paper's ensemble. Since

.. math:: \textstyle\sum_t \eta_t\, y_i f_t(x_i) = \mathrm{const} - \ln \alpha_{T+1,i},

that ensemble descends on the exponential loss, and the number of stages is its regulariser.

Other constraints: for a known optimum (section 2.2), the printed equality
:math:`\alpha' g = \rho^*` or :math:`\alpha' g \le (\rho^* + \bar\rho)/2`, which the optimum
always satisfies; and a fixed rate in place of any constraint (ESANN-99).

With bias, each class holds half of the mass, and a stage also moves
:math:`b_t = (\ln Z_+ - \ln Z_-) / 2\eta_t`; the least and the mean margin are then
averages over the two classes.

All weights are kept as logarithms. The optimum has the lower bound
:math:`\rho^* \ge (\min g)_+^2 / \bar\rho`; the certificate is its relative distance from the last
:math:`\bar\rho`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hardmargin.kernels import FloatArray
from hardmargin.kernels.low_rank import LowRankMatrix
from hardmargin.kernels.matrix import KernelMatrix
from hardmargin.monitor import Monitor, Stopped
from hardmargin.solvers.entropy_projection import groups_of, rate_to_level, tilt
from hardmargin.solvers.planes import DensePlanes
from hardmargin.solvers.problem import Expansion, IntArray, Problem, Solution

#: An objective below this part of the diagonal's mean counts as zero: the classes overlap.
ZERO_RHO = 1e-10


@dataclass(frozen=True)
class RhoOptions:
    """How to run: Algorithm 1 of the paper by default.

    Attributes
    ----------
    constraint : {"adaptive", "equality", "midpoint", "rate"}
        What a stage projects on: Algorithm 1; ``alpha' g = rho`` or
        ``alpha' g <= (rho + rho_bar) / 2`` for a known `rho`; or nothing, at a fixed `rate`.
    eps_start, eps_stop : float
        The first epsilon of Algorithm 1, and the one below which it ends.
    n_stages : int or None
        End after this many stages; epsilon may then fall as far as needed.
    max_stages : int
        Limit on the stages; reaching it causes a warning.
    fit_intercept : bool
        Whether to train the form with bias.
    rho : float or None
        The optimum, where the constraint needs it.
    rate : float or None
        The fixed rate.
    rate_scale : {"simplex", "margin"}
        Whether `rate` applies to multipliers that add up to one, or (as in Fig. 1 of the paper) to
        those of the standard SVM, which add up to ``1 / rho_bar``.
    tol : float
        With a known `rho`, end when the objective is within this relative distance.
    keep_planes : int
        Bytes that the planes of a machine may take in its solution; 0 keeps none.
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
    keep_planes: int = 0

    def __post_init__(self) -> None:
        if self.constraint in ("equality", "midpoint") and not (self.rho and self.rho > 0):
            raise ValueError(f"constraint={self.constraint!r} needs rho > 0, got {self.rho!r}.")
        if self.constraint == "rate" and not (self.rate and self.rate > 0):
            raise ValueError(f"constraint='rate' needs rate > 0, got {self.rate!r}.")


@dataclass(frozen=True, kw_only=True)
class RhoSolution(Solution):
    """One machine: the last plane, the vote of all planes before it, and the path.

    T stages lead through the planes ``f_t = sum_i alpha_t,i y_i k(x_i, .)``, t = 1 .. T + 1.

    Attributes
    ----------
    rows : (n,) int array
        All rows of the machine that have a weight.
    coefficients : (n,) array
        Of the last plane; their absolute values add up to one.
    intercept : float
        Of the last plane.
    certificate : float
        Relative distance of the last objective from `rho_lower_bound`.
    stop_reason : str
        ``"eps"`` (epsilon fell below its limit), ``"n_stages"`` (as many as requested),
        ``"rho_zero"`` (the classes overlap), ``"eta_zero"`` (no rate moves the plane),
        ``"infeasible"``, ``"overshoot"``, ``"converged"`` (forms with a known optimum or a fixed
        rate), ``"max_stages"`` or the monitor's.
    history : dict of arrays
        For each of the T + 1 planes: ``"rho"``, its objective, and ``"intercept"``, the bias that
        gives both classes the same least margin (0 in the form without bias). If there was no time
        for a single product, they are NaN and 0. For each of the T stages: ``"rate"``, ``"bias"``
        (0 in the form without bias), ``"epsilon"`` and ``"cosine"``, that of the angle between the
        planes before and after the stage, eq. (17): near 1 when the path converges (NaN where a
        plane has no length).
    ensemble : Expansion
        The vote: the mean of the planes 1 .. T, weighted by the rates.
    rho_lower_bound : float
        The optimum is between this and the last objective. With a low-rank kernel, that is the
        optimum of the approximation.
    planes : (T + 1, n) array or None
        Coefficients of every plane, over the landmarks for a low-rank kernel. None where they did
        not fit in `keep_planes`.
    """

    ensemble: Expansion
    rho_lower_bound: float
    planes: NDArray[Any] | None = None


def solve(
    problem: Problem[KernelMatrix],
    options: RhoOptions | None = None,
    monitor: Monitor | None = None,
) -> list[RhoSolution]:
    """Train all machines together: one product with the kernel per stage serves them all.

    Parameters
    ----------
    problem : Problem of a KernelMatrix
        Stored, streamed or of low rank. A weight of two equals having the row twice, zero
        equals leaving it out.
    options : RhoOptions, optional
        How to run.
    monitor : Monitor, optional
        Receives the furthest machine's stage and objective before every product but the first.

    Returns
    -------
    list of RhoSolution
    """
    options, monitor = options or RhoOptions(), monitor or Monitor()
    matrix, diagonal = problem.values, problem.values.diagonal
    machines = [_Machine(problem, m, diagonal, options) for m in range(len(problem.machines))]
    running = machines  # 2.
    while running:
        try:
            products = matrix.product(np.column_stack([m.signed() for m in running]))  # 3. and 6.
        except Stopped:
            for machine in running:
                machine.stop(monitor.stop_reason)
            break
        for machine, product in zip(running, products.T, strict=True):
            machine.judge(product)  # 7.
        running = [m for m in running if m.propose()]  # 4., 5., 6. and 8.
        if running:
            furthest = max(running, key=lambda m: len(m.rates))
            if not monitor.go_on(len(furthest.rates), furthest.rho):
                for machine in running:
                    machine.stop(monitor.stop_reason)
                break
    return [machine.solution() for machine in machines]


class _Machine:
    """One machine during training; arrays are over the rows that take part in it."""

    def __init__(
        self,
        problem: Problem[KernelMatrix],
        machine: int,
        diagonal: FloatArray,
        options: RhoOptions,
    ) -> None:
        labels = problem.labels_of(machine)
        weights = np.ones(len(labels)) if problem.weights is None else problem.weights
        self.n_rows, self.options = len(labels), options
        self.rows = np.flatnonzero((labels != 0) & (weights > 0))
        self.y, self.weights = labels[self.rows], weights[self.rows]
        if not ((self.y > 0).any() and (self.y < 0).any()):
            raise ValueError("Every machine needs rows of both labels.")
        self.groups = groups_of(self.y, options.fit_intercept)
        self.zero = ZERO_RHO * float(np.abs(diagonal[self.rows]).mean())
        self.alpha = np.empty(len(self.rows))
        for group in self.groups:
            self.alpha[group] = self.weights[group] / (len(self.groups) * self.weights[group].sum())
        # The share of a tiny weight may underflow to zero; its logarithm must stay finite.
        self.log_alpha = np.log(np.maximum(self.alpha, np.finfo(np.float64).tiny))
        self.candidate: tuple[FloatArray, FloatArray] = self.log_alpha, self.alpha
        self.margins: FloatArray | None = None
        self.rho = np.inf
        self.lower_bound = 0.0
        self.epsilon = options.eps_start
        self.vote: FloatArray = np.zeros(len(self.y))  # sum of rate * alpha over the stages
        self.rate = self.bias = 0.0
        self.rates: list[float] = []
        self.biases: list[float] = []
        self.epsilons: list[float] = []
        self.cosines: list[float] = []
        self.rhos: list[float] = []
        self.intercepts: list[float] = []
        matrix = problem.values
        self.is_collapsed = isinstance(matrix, LowRankMatrix)
        self.kept = DensePlanes(
            options.keep_planes,
            matrix.coefficients if isinstance(matrix, LowRankMatrix) else None,
        )
        self.stop_reason: str | None = None

    def propose(self) -> bool:
        """Find the next plane's multipliers; return whether there are any."""
        assert self.margins is not None
        while self.stop_reason is None:
            self.stop_reason = self._end()
            if self.stop_reason is not None:
                break
            if self.options.constraint == "rate":
                assert self.options.rate is not None
                scale = self.rho if self.options.rate_scale == "margin" else 1.0
                self.rate = self.options.rate / scale
            else:
                level = self._level()  # 4.
                if self._least(self.margins) >= level:  # 5.
                    self._fail("infeasible")
                    continue
                start = self.rates[-1] if self.rates else None
                self.rate = rate_to_level(self.log_alpha, self.margins, level, self.groups, start)
                if not 0 < self.rate < np.inf:
                    self.stop_reason = "eta_zero"
                    break
            # 6.
            log_alpha, alpha, self.bias = tilt(self.log_alpha, self.margins, self.rate, self.groups)
            self.candidate = log_alpha, alpha
            return True
        return False

    def signed(self) -> FloatArray:
        """Multipliers times labels of the candidate, over all rows."""
        signed: FloatArray = self.y * self.candidate[1]
        if len(self.rows) == self.n_rows:
            return signed
        column = np.zeros(self.n_rows)
        column[self.rows] = signed
        return column

    def judge(self, product: FloatArray) -> None:
        """Accept the candidate's plane unless it raises the objective."""
        margins = self.y * (product if len(self.rows) == len(product) else product[self.rows])
        log_alpha, alpha = self.candidate
        rho = float(alpha @ margins)
        if not np.isfinite(rho):
            raise ValueError("The kernel's values must be finite; some are NaN or infinite.")
        if self.margins is not None:
            # A known optimum bounds the whole path, so the paper accepts every projection there.
            if rho > self.rho and self.options.constraint in ("adaptive", "rate"):
                self._fail("overshoot")
                return
            self.vote += self.rate * self.alpha
            self.rates.append(self.rate)
            self.biases.append(self.bias)
            self.epsilons.append(self.epsilon)
            self.cosines.append(_cosine(float(alpha @ self.margins), self.rho, rho))
        self.log_alpha, self.alpha, self.margins = log_alpha, alpha, margins
        self._pass(rho, self._middle(margins))
        if rho > 0:
            least = max(self._least(margins), 0.0)
            self.lower_bound = max(self.lower_bound, least * (least / rho))

    def stop(self, reason: str) -> None:
        """End with the planes so far; the first is known even if there was no time to judge it."""
        self.stop_reason = reason
        if self.margins is None:
            self._pass(np.nan, 0.0)

    def _pass(self, rho: float, intercept: float) -> None:
        """Keep a plane."""
        self.rho = rho
        self.rhos.append(rho)
        self.intercepts.append(intercept)
        self.kept.add(self.signed() if self.is_collapsed else self.y * self.alpha)

    def solution(self) -> RhoSolution:
        """Everything that is known at the end."""
        rows = self.rows.astype(np.int32)
        lower_bound = min(self.lower_bound, self.rho)
        return RhoSolution(
            rows=rows,
            coefficients=self.y * self.alpha,
            intercept=self.intercepts[-1],
            certificate=1.0 - lower_bound / self.rho if self.rho > 0 else 1.0,
            stop_reason=self.stop_reason or "",
            n_stages=len(self.rates),
            history={
                "rho": np.array(self.rhos),
                "intercept": np.array(self.intercepts),
                "rate": np.array(self.rates),
                "bias": np.array(self.biases),
                "epsilon": np.array(self.epsilons),
                "cosine": np.array(self.cosines),
            },
            ensemble=self._ensemble(rows),
            rho_lower_bound=lower_bound,
            planes=self.kept.matrix(),
        )

    def _ensemble(self, rows: IntArray) -> Expansion:
        rates, biases = np.array(self.rates), np.array(self.biases)
        if len(rates) == 0:
            return Expansion(rows=rows, coefficients=self.y * self.alpha)
        intercept = 0.0
        if self.options.fit_intercept:
            masses = [self.weights[side].sum() for side in (self.y > 0, self.y < 0)]
            first = 0.5 * np.log(masses[0] / masses[1])
            intercept = float((first + rates @ biases) / rates.sum())
        coefficients = self.y * (self.vote / rates.sum())
        return Expansion(rows=rows, coefficients=coefficients, intercept=intercept)

    def _end(self) -> str | None:
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
        """Return the level that bounds this stage's half-space."""
        if self.options.constraint == "adaptive":
            return self.rho / (1 + self.epsilon)
        assert self.options.rho is not None
        if self.options.constraint == "equality":
            return self.options.rho
        return (self.options.rho + self.rho) / 2

    def _fail(self, reason: str) -> None:
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


def _cosine(product: float, before: float, after: float) -> float:
    """Divide an inner product by two lengths, given as squares."""
    if not (before > 0 and after > 0):
        return float("nan")
    return product / float(np.sqrt(before) * np.sqrt(after))
