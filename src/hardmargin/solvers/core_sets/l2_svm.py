r"""L2-SVMs one after another, each orthogonal to those before it: shared by all their solvers.

.. math:: \min \|w\|^2 + b^2 + C \sum_i w_i \xi_i^2 \quad : \quad
          y_i (w'\varphi(x_i) + b) \ge 1 - \xi_i, \quad u_q'w = 0,

is eq. (1) of Tsang, Kocsor & Kwok (MCS-06) with weights; the orthonormal :math:`u_q` belong to
earlier machines. With F the projections :math:`u_q'\varphi(x_i)`, its dual, eq. (2), is

.. math:: \max_{\alpha \ge 0} 2 \alpha'1 - \alpha'Q\alpha, \qquad
          Q_{ij} = y_i y_j (k_{ij} - F_i'F_j + 1) + [i = j] / (C w_i).

Any :math:`\alpha \ge 0` and its scores :math:`w'\varphi(x_i)` (without the parts of w along the
:math:`u_q`) give two bounds on the optimum :math:`p^*`,

.. math:: \frac{(\sum\alpha)^2}{\alpha'Q\alpha} \le p^* \le
          \min\left(\|w\|^2 + b^2 + C\sum_i w_i\xi_i^2,\
          \frac{\alpha'Q\alpha}{(\min_i (Q\alpha)_i)^2}\right),

the dual and the primal objective at the best multiple of alpha. They also give the direction
w / ||w|| with its projections, which later machines must be orthogonal to.

:func:`train_machines` trains them; ``core_vector.py``, ``newton.py`` and ``lagrangian.py`` train
one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hardmargin.kernels import FloatArray, Precision
from hardmargin.kernels.columns import KernelColumns
from hardmargin.kernels.matrix import DenseKernel
from hardmargin.monitor import Monitor
from hardmargin.solvers.core_sets.linear_span import LinearSpan
from hardmargin.solvers.problem import Problem, Solution

Constraint = Literal["orthogonal", "uncorrelated", "uncorrelated-centred"]

CONSTRAINTS = ("orthogonal", "uncorrelated", "uncorrelated-centred")

Scope = Literal["class", "all"]

#: A machine whose objective is closer than this, relatively, to that of w = 0 vanishes.
VANISHING = 1e-6

#: So does one whose ||w||^2 is not at least this many times its possible rounding error.
_ABOVE_ROUNDING = 10.0

#: Weights below one over this are raised to that.
LARGEST_SLACK = 1e15

#: C times weight is clipped to between one over this and this.
LARGEST_C = 1e100

#: Slacks are clipped to this where Q is held in float32.
_LARGEST_FLOAT32_SLACK = 1e30


@dataclass(frozen=True, kw_only=True)
class L2Options:
    """How to run any solver of L2-SVMs.

    Attributes
    ----------
    C : float
        Weight of the squared slacks.
    tol : float
        How close to its optimum a machine is trained, as defined by the solver.
    max_stages : int or None
        Limit on the stages of a machine; None is the solver's own.
    n_directions : int
        Machines that are trained one after another for each machine of the problem; fewer are
        returned when nothing is left for w.
    constraint : {"orthogonal", "uncorrelated", "uncorrelated-centred"}
        Whether the directions are orthogonal or (section 3.3) the projections of the rows on them
        are: as they are, or minus their means, which makes them uncorrelated.
    scope : {"class", "all"}
        Whether a direction is constrained by the earlier ones of its own machine, or by those of
        all machines. The machines then take turns: the first direction of each, then the second.
    moment_rows : int or None
        Number of rows that estimate the moments of the uncorrelated constraints; None is all.
    seeds : sequence of int or None
        One per machine of the problem, for the rows that are drawn at random; None is 0 for all.
    """

    C: float = 1.0
    tol: float = 1e-6
    max_stages: int | None = None
    n_directions: int = 1
    constraint: Constraint = "orthogonal"
    scope: Scope = "class"
    moment_rows: int | None = None
    seeds: Sequence[int] | None = None


@dataclass(frozen=True, kw_only=True)
class L2Solution(Solution):
    """One L2-SVM: ``f(x) = w'phi(x) + intercept``.

    Without constraints the coefficients, multipliers times labels, are the expansion of w. The
    certificate is the relative gap between `lower_bound` and `objective`.

    Attributes
    ----------
    machine : int
        Number of the machine in its problem.
    lower_bound, objective : float
        The optimum is between these two.
    weight_norm : float
        ``||w||``; 0 where the constraints leave nothing.
    projections : (n,) float array
        ``w'phi(x) / ||w||`` of the machine's rows, 0 for all others.
    direction : (n,) float array
        ``w / ||w||`` as an expansion over all rows, constraints included.
    core_rows : int array
        Rows of the core set, in the order they joined; all rows for solvers without one.
    n_stages : int
        How often the core set grew; iterations of the other solvers.
    n_steps : int
        Steps on two multipliers; factorisations of the other solvers.
    n_kernel_evaluations : int
        Kernel values evaluated; those kept from earlier machines cost nothing.
    stop_reason : str
        ``"certified"`` (a full pass found no row that is too close), ``"optimal"`` (by a dense
        solver: the two bounds meet, to the tolerance), ``"radius"`` (the paper's rule),
        ``"core_full"`` (the memory holds no larger core set), ``"rounding"`` (the tolerance
        is beyond the precision of the kernel values), ``"indefinite"`` (the kernel is not positive
        semi-definite, and the problem has no optimum), ``"stalled"`` (it is so close to singular
        that steps make no progress), ``"max_stages"`` or the monitor's.
    """

    machine: int
    lower_bound: float
    objective: float
    weight_norm: float
    projections: FloatArray
    direction: FloatArray
    core_rows: NDArray[np.int64]
    n_steps: int

    @property
    def core_size(self) -> int:
        """Rows in the core set."""
        return len(self.core_rows)


@dataclass(frozen=True)
class Bounds:
    """Bounds on the optimum.

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


def bounds_of(alpha: FloatArray, margins: FloatArray, slack: FloatArray) -> Bounds:
    """Bound the optimum.

    Parameters
    ----------
    alpha : (n,) array
        Multipliers, at least 0 and not all of them 0.
    margins : (n,) array
        Their ``y f(x)``, the bias included.
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


def slack_of(
    n_rows: int, C: float, weights: FloatArray | None, dtype: Precision = "float64"
) -> FloatArray:
    """Make the diagonal ``1 / (C w_i)`` of Q, which is held in `dtype`."""
    if np.isinf(C):
        return np.zeros(n_rows)
    largest = np.full(n_rows, min(float(C), LARGEST_C))
    if weights is not None:
        # Rows that weigh next to nothing must not overflow Q.
        largest *= np.maximum(weights, 1.0 / LARGEST_SLACK)
    slack = 1.0 / np.clip(largest, 1.0 / LARGEST_C, LARGEST_C)
    return np.asarray(np.minimum(slack, _LARGEST_FLOAT32_SLACK) if dtype == "float32" else slack)


@dataclass(frozen=True)
class L2Problem:
    """One machine to be trained.

    Attributes
    ----------
    labels : (n,) array
        +1 and -1, and 0 for rows that are left out.
    slack : (n,) array
        ``1 / (C w_i)``.
    F : (n, n_directions) array
        Projections of the rows on the directions that the machine must be orthogonal to.
    U : (n, n_directions) array
        These directions, orthonormal, as expansions over the rows.
    machine : int
        Its number in the problem.
    span : LinearSpan or None
        For a linear kernel, where directions are more precise as vectors.
    before : L2Solution or None
        The machine that was trained before this one, with one constraint fewer.
    random : numpy Generator
        Draws rows.
    """

    labels: FloatArray
    slack: FloatArray
    F: FloatArray
    U: FloatArray
    machine: int = 0
    span: LinearSpan | None = None
    before: L2Solution | None = None
    random: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))

    def least_gain(self) -> float:
        """Return an objective that is only just better than that of w = 0.

        With w = 0 it is ``b^2 + sum_i (1 - y_i b)^2 / slack_i``, minimal at a b between -1 and 1.
        """
        rows = np.flatnonzero(self.labels)
        weights = 1.0 / self.slack[rows]
        trivial = weights.sum() - float(weights @ self.labels[rows]) ** 2 / (1.0 + weights.sum())
        return (1.0 - VANISHING) * float(trivial)

    def solution(
        self,
        alpha: FloatArray,
        scores: FloatArray,
        *,
        core_rows: NDArray[np.int64],
        n_stages: int,
        n_steps: int,
        stop_reason: str,
        n_kernel_evaluations: int = 0,
    ) -> L2Solution:
        """Make the machine of some multipliers.

        Parameters
        ----------
        alpha : (n,) array
            Multipliers of all rows, at least 0 and not all of them 0.
        scores : (n,) array
            Their ``w'phi(x)``, without the parts along the constraints.
        core_rows, n_stages, n_steps, stop_reason, n_kernel_evaluations
            As in `L2Solution`.
        """
        c, rows = self.labels * alpha, np.flatnonzero(self.labels)
        margins = self.labels * (scores + c.sum())
        bounds = bounds_of(alpha[rows], margins[rows], self.slack[rows])
        c = c / bounds.scale
        if self.span is not None:
            f, u, norm = self.span.direction(c, self.U)
        else:
            before = self.F.T @ c
            u = c - self.U @ before
            rest = self.F.T @ u  # what rounding has left along the directions
            u -= self.U @ rest
            f = np.where(self.labels != 0, scores / bounds.scale - self.F @ rest, 0.0)
            squared_norm = float(u @ f)
            # Error of the projections on the directions, from which Q was computed.
            rounding = float(np.abs(rest) @ np.abs(before)) + float(rest @ rest)
            norm = 0.0
            if squared_norm > _ABOVE_ROUNDING * rounding:
                norm = float(np.sqrt(squared_norm))
                f, u = f / norm, u / norm
        if self.F.size and bounds.upper >= self.least_gain():
            norm = 0.0
        if norm == 0:
            f, u = np.zeros_like(c), np.zeros_like(c)
        support = np.flatnonzero(c)
        return L2Solution(
            machine=self.machine,
            rows=support.astype(np.int32),
            coefficients=c[support],
            intercept=float(c.sum()),
            lower_bound=bounds.lower,
            objective=bounds.upper,
            certificate=bounds.gap,
            weight_norm=norm,
            projections=np.where(self.labels != 0, f, 0.0),
            direction=u,
            core_rows=core_rows,
            n_stages=n_stages,
            n_steps=n_steps,
            n_kernel_evaluations=n_kernel_evaluations,
            stop_reason=stop_reason,
        )

    def orthogonal_to(self, before: L2Solution, f: FloatArray, u: FloatArray) -> L2Problem:
        """Make the next machine's problem, with one direction more."""
        F, U = np.column_stack([self.F, f]), np.column_stack([self.U, u])
        return replace(self, F=F, U=U, before=before)


#: Multiplies columns of the kernel matrix, given by their indices, by coefficients, for a machine.
Product = Callable[[int, NDArray[np.intp], FloatArray], FloatArray]


def train_machines(
    problem: Problem[DenseKernel] | Problem[KernelColumns],
    options: L2Options,
    slack: FloatArray,
    train: Callable[[L2Problem, Monitor], L2Solution],
    product: Product,
    monitor: Monitor,
    at_once: int,
) -> list[list[L2Solution]]:
    """Train the directions of all machines.

    Parameters
    ----------
    problem : Problem
        The machines, and their rows; `train` and `product` take care of kernel values.
    options : L2Options
        How many directions, and their constraint.
    slack : (n,) array
        ``1 / (C w_i)``.
    train : callable
        Trains one machine.
    product : callable
        Multiplies columns of the kernel matrix, given by their indices, by coefficients. Its first
        argument is the machine that calls it.
    monitor : Monitor
        Ends the training.
    at_once : int
        Machines trained at the same time, where they do not depend on each other.

    Returns
    -------
    list of lists of L2Solution
        For each machine; the first is there even if it vanishes.
    """
    n_machines = len(problem.machines)
    is_constrained = options.n_directions > 1 or (options.scope == "all" and n_machines > 1)
    span = LinearSpan.of(problem.values.kernel, problem.values.X) if is_constrained else None

    def problem_of(machine: int) -> L2Problem:
        random = np.random.default_rng(0 if options.seeds is None else options.seeds[machine])
        nowhere, labels = np.zeros((len(slack), 0)), problem.labels_of(machine)
        return L2Problem(labels, slack, nowhere, nowhere, machine, span, random=random)

    if not is_constrained:  # each machine has one direction, whatever those of the others
        return monitor.each(lambda m, part: [train(problem_of(m), part)], n_machines, at_once)

    def in_turn(machines: Sequence[int], monitor: Monitor) -> list[list[L2Solution]]:
        problems = [problem_of(machine) for machine in machines]
        return _train_in_turn(problems, options, problem.weights, train, product, monitor)

    if options.scope == "all":
        return monitor.each(lambda _, part: in_turn(range(n_machines), part), 1)[0]
    return monitor.each(lambda m, part: in_turn([m], part)[0], n_machines, at_once)


def _train_in_turn(
    problems: list[L2Problem],
    options: L2Options,
    weights: FloatArray | None,
    train: Callable[[L2Problem, Monitor], L2Solution],
    product: Product,
    monitor: Monitor,
) -> list[list[L2Solution]]:
    """Train a direction of each machine, then others, each orthogonal to all of those before it."""
    found: list[list[L2Solution]] = [[] for _ in problems]
    is_ended = [False] * len(problems)
    while not all(is_ended):
        for place in range(len(problems)):
            if is_ended[place]:
                continue
            l2 = problems[place]
            solution = train(l2, monitor)
            its = found[place]
            if solution.weight_norm > 0 or not its:
                its.append(solution)
            is_stopped = solution.stop_reason == monitor.stop_reason
            is_ended[place] = (
                is_stopped or solution.weight_norm == 0 or len(its) >= options.n_directions
            )
            if solution.weight_norm > 0 and not is_stopped and not all(is_ended):
                # 5. (of ``core_vector.py``) The next ones must be orthogonal to this one.
                after = constrained(l2, solution, options, weights, product)
                problems = [replace(other, F=after.F, U=after.U) for other in problems]
                problems[place] = after
    return found


def constrained(
    l2: L2Problem,
    solution: L2Solution,
    options: L2Options,
    weights: FloatArray | None,
    product: Callable[[int, NDArray[np.intp], FloatArray], FloatArray],
) -> L2Problem:
    """Make the problem of the next machine, which must be orthogonal to this one's direction.

    Parameters
    ----------
    l2 : L2Problem
        The machine's problem.
    solution : L2Solution
        The machine.
    options : L2Options
        The constraint between directions.
    weights : (n,) array or None
        Weights of the rows in the moments.
    product : callable
        As for :func:`train_machines`.
    """
    if options.constraint == "orthogonal":
        return l2.orthogonal_to(solution, solution.projections, solution.direction)
    rows = np.flatnonzero(l2.labels)
    if options.moment_rows is not None and options.moment_rows < len(rows):
        rows = np.sort(l2.random.choice(rows, options.moment_rows, replace=False))
    # Only ratios matter, and sums of large weights would overflow float32.
    mass = np.ones(len(rows)) if weights is None else weights[rows] / weights[rows].max()
    moment = solution.projections[rows]
    if options.constraint == "uncorrelated-centred":
        moment = moment - mass @ moment / mass.sum()
    # Phi H Phi' w as an expansion, made orthogonal to the others (twice, against rounding).
    u = np.zeros(len(l2.labels))
    u[rows] = mass * moment
    for _ in range(2):
        u -= l2.U @ (l2.F.T @ u)
    support = np.flatnonzero(u)
    f = product(l2.machine, support, u[support])
    squared_norm = float(u @ f)
    if not squared_norm > 0:
        return replace(l2, before=solution)
    norm = np.sqrt(squared_norm)
    return l2.orthogonal_to(solution, f / norm, u / norm)
