"""Machines one after another, each under the constraints that those before it make: MCS-06."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hardmargin.kernels import FloatArray, Kernel, Rows, is_sparse
from hardmargin.solvers.solution import BallSolution

Constraint = Literal["orthogonal", "uncorrelated", "uncorrelated-centred"]

CONSTRAINTS = ("orthogonal", "uncorrelated", "uncorrelated-centred")


@dataclass(frozen=True)
class Directions:
    """Orthonormal directions that a machine must be orthogonal to.

    Attributes
    ----------
    projections : (n, n_directions) array
        F: what every row is projected to.
    coefficients : (n, n_directions) array
        Each direction as an expansion over the rows.
    """

    projections: FloatArray
    coefficients: FloatArray

    @classmethod
    def none(cls, n_rows: int) -> Directions:
        """No direction at all."""
        return cls(np.zeros((n_rows, 0)), np.zeros((n_rows, 0)))

    def __len__(self) -> int:
        return int(self.projections.shape[1])

    def followed_by(self, projection: FloatArray, coefficients: FloatArray) -> Directions:
        """One direction more."""
        return Directions(
            np.column_stack([self.projections, projection]),
            np.column_stack([self.coefficients, coefficients]),
        )


class LinearSpan:
    """Directions of a linear kernel as vectors of features.

    There are many more rows than features, so that expansions over the rows have large
    coefficients that cancel; the vectors do not, and lead back to the smallest coefficients.

    Parameters
    ----------
    X : (n, d) array or sparse matrix
        Rows.
    """

    #: More features are not worth their matrix.
    MAX_FEATURES = 2_000

    #: Eigenvalues below this, relative to the largest, are none.
    _RANK_TOL = 1e-12

    #: What projections leave of a vector that has nothing else, relative to it.
    _NOTHING = 1e-11

    def __init__(self, X: Rows) -> None:
        self.X = X
        wide = X.astype(np.float64, copy=False)  # squares may be beyond float32
        gram = wide.T @ wide
        gram = np.asarray(gram.toarray() if is_sparse(gram) else gram)
        values, vectors = np.linalg.eigh(gram)
        has_mass = values > self._RANK_TOL * max(float(values[-1]), 0.0)
        self._back = (vectors[:, has_mass] / values[has_mass]) @ vectors[:, has_mass].T

    @classmethod
    def of(cls, kernel: Kernel, X: Rows) -> LinearSpan | None:
        """Return the span of a linear kernel with few features, and None for any other."""
        if kernel.name != "linear" or X.shape[1] > min(X.shape[0], cls.MAX_FEATURES):
            return None
        return cls(X)

    def direction(
        self, c: FloatArray, directions: Directions
    ) -> tuple[FloatArray, FloatArray, float]:
        """Return the projections on w of length one, its expansion, and its length."""
        w = np.asarray(self.X.T @ c, dtype=np.float64)
        U = np.asarray(self.X.T @ directions.coefficients, dtype=np.float64)
        before = float(np.linalg.norm(w))
        for _ in range(2):  # against rounding
            w -= U @ (U.T @ w)
        norm = float(np.linalg.norm(w))
        if norm <= self._NOTHING * before:
            nothing = np.zeros(len(c))
            return nothing, nothing, 0.0
        u = w / norm
        return np.asarray(self.X @ u), np.asarray(self.X @ (self._back @ u)), norm


def solve_in_turn(
    solve_one: Callable[[Directions], BallSolution],
    constrain: Callable[[Directions, BallSolution], Directions],
    directions: Directions,
    n_machines: int,
) -> list[BallSolution]:
    """Train machines until there are enough, nothing is left for w, or the time is over.

    Parameters
    ----------
    solve_one : callable
        Trains a machine that is orthogonal to some directions.
    constrain : callable
        Adds the direction that a machine makes to those before it.
    directions : Directions
        What the first machine must be orthogonal to, usually nothing.
    n_machines : int
        How many machines.

    Returns
    -------
    list of BallSolution
        Where the first machine vanishes it is returned all the same.
    """
    solutions: list[BallSolution] = []
    while len(solutions) < n_machines:
        solution = solve_one(directions)
        if solution.weight_norm == 0 and solutions:
            break
        solutions.append(solution)
        if solution.weight_norm == 0 or solution.stop_reason == "max_time":
            break
        if len(solutions) < n_machines:
            directions = constrain(directions, solution)
    return solutions


def constrain(
    directions: Directions,
    solution: BallSolution,
    labels: FloatArray,
    product: Callable[[NDArray[np.intp], FloatArray], FloatArray],
    *,
    constraint: Constraint = "orthogonal",
    weights: FloatArray | None = None,
    moment_rows: int | None = None,
    random: np.random.Generator | None = None,
) -> Directions:
    """Add the direction that later machines must be orthogonal to, once there is this machine.

    Parameters
    ----------
    directions : Directions
        Those of the machines before.
    solution : BallSolution
        The machine.
    labels : (n,) array
        +1 and -1, and 0 for rows that are left out.
    product : callable
        The kernel matrix's columns, given by their numbers, times some coefficients.
    constraint : {"orthogonal", "uncorrelated", "uncorrelated-centred"}
        Directions are orthogonal, or (section 3.3) the projections of the rows are: as they are,
        or less their means, which makes them uncorrelated.
    weights : (n,) array, optional
        Weights of the rows in the moments.
    moment_rows : int, optional
        Rows that estimate the moments; all by default.
    random : numpy Generator, optional
        Draws these.
    """
    if constraint == "orthogonal":
        return directions.followed_by(solution.projections, solution.direction)
    rows = np.flatnonzero(labels)
    if moment_rows is not None and moment_rows < len(rows):
        random = np.random.default_rng(0) if random is None else random
        rows = np.sort(random.choice(rows, moment_rows, replace=False))
    # Only ratios matter, and sums of large weights would overflow float32.
    mass = np.ones(len(rows)) if weights is None else weights[rows] / weights[rows].max()
    moment = solution.projections[rows]
    if constraint == "uncorrelated-centred":
        moment = moment - mass @ moment / mass.sum()
    # Phi H Phi' w as an expansion, made orthogonal to the others (twice, against rounding).
    coefficients = np.zeros(len(labels))
    coefficients[rows] = mass * moment
    for _ in range(2):
        along = directions.projections.T @ coefficients
        coefficients -= directions.coefficients @ along
    support = np.flatnonzero(coefficients)
    projection = product(support, coefficients[support])
    squared_norm = float(coefficients @ projection)
    if not squared_norm > 0:
        return directions
    norm = np.sqrt(squared_norm)
    return directions.followed_by(projection / norm, coefficients / norm)
