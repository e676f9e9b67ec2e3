"""What a solver returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

StopReason = Literal["converged", "exhausted", "max_stages", "max_time"]


@dataclass(frozen=True)
class GreedySolution:
    """One machine of the greedy stagewise SVM, with its whole path.

    Attributes
    ----------
    stage_indices : (n_stages,) int array
        Row changed in each stage.
    stage_steps : (n_stages,) float array
        Change of that row's multiplier; negative where a revisit took some of it back.
    support : (n_support,) int array
        Rows visited, in order of their first stage.
    multipliers : (n_support,) float array
        Their multipliers at the end; zero where a row has given everything back.
    losses : (n_stages,) float array
        Dual objective ``a' Kt a / 2 - sum(a)`` after each stage.
    squared_norm : float
        ``||w||^2``, eq. (28) of TNN-08.
    squared_radius : float
        ``max k(x, x)`` over the machine's rows: a sphere around the origin that holds them.
    violation : float
        Certificate: the largest change of its own gradient that a step open to the algorithm would
        still make; at most the tolerance when the solver converged.
    n_kernel_evaluations : int
        Kernel values evaluated.
    stop_reason : {"converged", "exhausted", "max_stages", "max_time"}
        ``"exhausted"``: every row has used up its visits.
    method : {"fused", "lazy", "bits", "lazy-bits"}
        How kernel values were evaluated at the end.
    """

    stage_indices: NDArray[np.int32]
    stage_steps: NDArray[np.float64]
    support: NDArray[np.int32]
    multipliers: NDArray[np.float64]
    losses: NDArray[np.float64]
    squared_norm: float
    squared_radius: float
    violation: float
    n_kernel_evaluations: int
    stop_reason: StopReason
    method: str

    @property
    def n_stages(self) -> int:
        """Number of accepted updates."""
        return len(self.stage_indices)


ProjectionStop = Literal[
    "eps",
    "n_stages",
    "rho_zero",
    "eta_zero",
    "infeasible",
    "overshoot",
    "converged",
    "max_stages",
    "max_time",
]


@dataclass(frozen=True)
class ProjectionSolution:
    """One machine of the rho-SVM by multiplicative updates, with its path.

    T stages lead through the planes ``f_t = sum_i alpha_t,i y_i k(x_i, .)``, t = 1 .. T + 1.

    Attributes
    ----------
    rows : (n,) int array
        Rows that take part in the machine.
    labels : (n,) float array
        Their labels, +1 and -1.
    start, alpha : (n,) float arrays
        Multipliers of the first and of the last plane; they add up to one.
    ensemble : (n,) float array
        Multipliers of the ensemble: the mean over the planes 1 .. T, weighted by the rates.
    intercept : float
        Of the ensemble.
    plane_intercepts : (T + 1,) float array
        Of each plane: where both classes have the same least margin (0 in the form without bias).
    rates, biases, epsilons : (T,) float arrays
        The rate of each stage, its bias (0 in the form without), and epsilon.
    rhos : (T + 1,) float array
        Objective of each plane.
    rho_lower_bound : float
        Certificate: the optimum is between this and the last objective. Of a low-rank kernel it is
        that kernel's optimum.
    stop_reason : str
        ``"eps"`` (epsilon fell below its limit), ``"n_stages"`` (as many as asked for),
        ``"rho_zero"`` (the classes overlap), ``"eta_zero"`` (no rate moves the plane),
        ``"infeasible"``, ``"overshoot"``, ``"converged"`` (forms with a known optimum or a fixed
        rate), ``"max_stages"`` or ``"max_time"``.
    """

    rows: NDArray[np.int32]
    labels: NDArray[np.float64]
    start: NDArray[np.float64]
    alpha: NDArray[np.float64]
    ensemble: NDArray[np.float64]
    intercept: float
    plane_intercepts: NDArray[np.float64]
    rates: NDArray[np.float64]
    biases: NDArray[np.float64]
    epsilons: NDArray[np.float64]
    rhos: NDArray[np.float64]
    rho_lower_bound: float
    stop_reason: ProjectionStop

    @property
    def n_stages(self) -> int:
        """Number of accepted updates."""
        return len(self.rates)

    @property
    def gap(self) -> float:
        """Relative distance between the objective and its lower bound."""
        last = float(self.rhos[-1]) if len(self.rhos) else 0.0
        return 1.0 - self.rho_lower_bound / last if last > 0 else 1.0


ExactStop = Literal["converged", "rho_zero", "max_stages", "max_time"]


@dataclass(frozen=True)
class ExactSolution:
    """One exact hard-margin machine: ``f(x) = sum_i alpha_i y_i k(x_i, x) + intercept``.

    Multipliers add up to one, so the margin is `rho` at the optimum; divided by `rho`, multipliers
    and intercept are those of the usual form, whose margin is one.

    Attributes
    ----------
    rows : (n_support,) int array
        Rows with a multiplier, ascending.
    multipliers : (n_support,) float array
        Their multipliers, all positive.
    intercept : float
        On the scale of the multipliers; 0 in the form without bias.
    rho : float
        Objective ``alpha' Kt alpha = ||w||^2``.
    rho_lower_bound : float
        Certificate: the optimum is between this and `rho`.
    n_stages : int
        Steps taken.
    n_kernel_evaluations : int
        Kernel values evaluated.
    stop_reason : {"converged", "rho_zero", "max_stages", "max_time"}
        ``"rho_zero"``: no plane separates the classes.
    """

    rows: NDArray[np.int32]
    multipliers: NDArray[np.float64]
    intercept: float
    rho: float
    rho_lower_bound: float
    n_stages: int
    n_kernel_evaluations: int
    stop_reason: ExactStop

    @property
    def gap(self) -> float:
        """Relative distance between the objective and its lower bound."""
        return 1.0 - self.rho_lower_bound / self.rho if self.rho > 0 else 1.0


MultiplicativeStop = Literal[
    "converged", "not_separable", "diverged", "stalled", "max_stages", "max_time"
]


@dataclass(frozen=True)
class MultiplicativeSolution:
    """One machine of the SVM with bias by multiplicative updates, with its path.

    The path leads through the planes 1 .. T, of which the first is the start.

    Attributes
    ----------
    alpha : (n,) float array
        Multipliers of the standard SVM, whose margin is 1; rows without weight have 0.
    intercept : float
        The bias that balances the least margins of the two classes; where the plane does not
        separate them, their means weighted by alpha.
    margins, objectives, biases : (T,) float arrays
        Of each plane: the distance of the nearest row at the bias that balances the margins
        (negative where the plane does not separate the classes), the dual objective, and the bias.
    errors : (T,) int array
        Training rows that each plane misclassifies.
    rates : (T - 1,) float array
        The rate that led to each plane but the first.
    last_rate : float
        The last of them, or the one that the second plane would have been tried with.
    squared_norm : float
        ``||w||^2``.
    gap : float
        Certificate: the relative distance between the bounds
        ``sum(alpha)^2 / (2 ||w||^2)`` and ``||w||^2 / (2 m^2)`` on the optimum, where m is the
        least margin; 1 where the plane does not separate the classes.
    n_tried : int
        Planes that were passed; more than T where an earlier plane was kept, with the path that led
        to it: the best of a fixed rate that diverged, or the one with the fewest errors where the
        classes overlap.
    stop_reason : str
        ``"converged"``, ``"not_separable"`` (the dual proves a margin of practically nothing),
        ``"diverged"`` (a fixed rate that is too large), ``"stalled"`` (rounding allows no
        further rise of the objective), ``"max_stages"`` or ``"max_time"``.
    """

    alpha: NDArray[np.float64]
    intercept: float
    margins: NDArray[np.float64]
    objectives: NDArray[np.float64]
    biases: NDArray[np.float64]
    errors: NDArray[np.int64]
    rates: NDArray[np.float64]
    last_rate: float
    squared_norm: float
    gap: float
    n_tried: int
    stop_reason: MultiplicativeStop

    @property
    def n_stages(self) -> int:
        """Number of planes, the start included."""
        return len(self.margins)


BallStop = Literal[
    "certified",
    "optimal",
    "radius",
    "core_full",
    "rounding",
    "indefinite",
    "stalled",
    "max_stages",
    "max_time",
]


@dataclass(frozen=True)
class BallSolution:
    """One L2-SVM, by core sets or exact: ``f(x) = w'phi(x) + intercept``.

    Attributes
    ----------
    rows : (n_support,) int array
        Rows with a multiplier, ascending.
    coefficients : (n_support,) float array
        Their multipliers times their labels. Without constraints they are the expansion of w.
    intercept : float
        The bias.
    lower_bound, objective : float
        Certificate: the optimum is between these two.
    weight_norm : float
        ``||w||``; 0 where the constraints leave nothing.
    projections : (n,) float array
        ``w'phi(x) / ||w||`` of the machine's rows, 0 for all others.
    direction : (n,) float array
        ``w / ||w||`` as an expansion over all rows, constraints included.
    core_size : int
        Rows in the core set; all rows for the exact solvers.
    n_stages : int
        Times that it grew; iterations of the exact solvers.
    n_steps : int
        Steps on two multipliers; factorisations of the exact solvers.
    n_kernel_evaluations : int
        Kernel values evaluated; those kept from earlier machines cost nothing.
    stop_reason : str
        ``"certified"`` (a full pass found no row that is too close), ``"optimal"`` (of the exact
        solvers: the two bounds meet, to the tolerance), ``"radius"`` (the paper's rule),
        ``"core_full"`` (the memory holds no larger core set), ``"rounding"`` (the tolerance
        is beyond the precision of the kernel values), ``"indefinite"`` (the kernel is not positive
        semi-definite, and the problem has no optimum), ``"stalled"`` (it is so close to singular
        that steps get nowhere), ``"max_stages"`` or ``"max_time"``.
    """

    rows: NDArray[np.int32]
    coefficients: NDArray[np.float64]
    intercept: float
    lower_bound: float
    objective: float
    weight_norm: float
    projections: NDArray[np.float64]
    direction: NDArray[np.float64]
    core_size: int
    n_stages: int
    n_steps: int
    n_kernel_evaluations: int
    stop_reason: BallStop

    @property
    def gap(self) -> float:
        """Relative distance between the objective and its lower bound."""
        return 1.0 - self.lower_bound / self.objective if self.objective > 0 else 1.0


@dataclass(frozen=True)
class EnclosingSolution:
    """A ball around rows, by core sets: its centre is ``sum_i coefficients_i phi(x_i)``.

    Attributes
    ----------
    rows : (n_support,) int array
        Rows with a coefficient, ascending.
    coefficients : (n_support,) float array
        Positive, and one in all.
    squared_radius : float
        Of the ball around this centre: the largest squared distance of a row if the ball is hard,
        else the best for this centre, which a very small C makes negative.
    furthest : float
        The largest squared distance of a row.
    squared_norm : float
        ``||centre||^2``.
    lower_bound, objective : float
        Certificate: the optimum is between these two.
    rounding : float
        What squared distances may be wrong by.
    core_size, n_stages, n_steps, n_kernel_evaluations : int
        As for :class:`BallSolution`.
    stop_reason : str
        As for :class:`BallSolution`.
    """

    rows: NDArray[np.int32]
    coefficients: NDArray[np.float64]
    squared_radius: float
    furthest: float
    squared_norm: float
    lower_bound: float
    objective: float
    rounding: float
    core_size: int
    n_stages: int
    n_steps: int
    n_kernel_evaluations: int
    stop_reason: BallStop

    @property
    def gap(self) -> float:
        """Relative distance between the objective and its lower bound."""
        scale = max(abs(self.objective), abs(self.lower_bound))
        return (self.objective - self.lower_bound) / scale if scale > self.rounding else 0.0
