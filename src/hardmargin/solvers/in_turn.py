"""Machines one after another, each under the constraints that those before it make."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hardmargin.solvers.ball import Directions
    from hardmargin.solvers.solution import BallSolution


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
