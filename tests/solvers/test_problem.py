"""Problems: the rows of their machines."""

import numpy as np
import pytest

from hardmargin.solvers.problem import Problem

PAIRS = [([0], [1]), ([0], [2]), ([1], [2])]
REST = [([1, 2], [0]), ([0, 2], [1]), ([0, 1], [2])]


@pytest.mark.parametrize("machines", [PAIRS, REST], ids=["pairs", "rest"])
@pytest.mark.parametrize(
    "codes", [[0, 0, 1, 2, -1], [0, 0, 1, -1, -1], [0, 0, 0], [-1, -1], []], ids=str
)
def test_sizes_are_the_rows_of_the_machines(codes, machines):
    problem = Problem(None, np.array(codes, dtype=np.int32), machines)
    sizes = [len(problem.rows_of(m)) for m in range(len(machines))]
    assert problem.machine_sizes.tolist() == sizes
    assert (problem.n_machine_rows, problem.n_rows_of_largest) == (sum(sizes), max(sizes))
