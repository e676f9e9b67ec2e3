"""The greedy solver with several machines, and the errors they meet."""

import numpy as np
import pytest
from problems.two_class import KERNELS, mixed, oracle, small

from hardmargin.kernels import Kernel
from hardmargin.solvers.greedy import GreedyOptions, solve_greedy


def three_classes():
    X, _ = small(n=240, seed=3)
    classes = np.digitize(X[:, 0] + np.sin(3 * X[:, 1]), [-0.6, 0.6]).astype(np.int32)
    return X, classes


PAIRS = [([0], [1]), ([0], [2]), ([1], [2]), ([0, 2], [1])]


def test_every_machine_is_its_own_two_class_problem():
    X, classes = three_classes()
    solutions = solve_greedy(KERNELS["rbf"], X, classes, PAIRS)
    for solution, (negative, positive) in zip(solutions, PAIRS, strict=True):
        rows = np.flatnonzero(np.isin(classes, negative + positive))
        y = np.where(np.isin(classes[rows], positive), 1.0, -1.0)
        path = oracle(KERNELS["rbf"], X[rows], y)
        assert solution.stage_indices.tolist() == rows[path.order].tolist()


@pytest.mark.parametrize("name", ["rbf", "linear", "callable"])
def test_threads_change_nothing(name):
    X, classes = three_classes()
    one, two = (
        solve_greedy(KERNELS[name], X, classes, PAIRS, options=GreedyOptions(n_threads=n))
        for n in (1, 2)
    )
    for a, b in zip(one, two, strict=True):
        np.testing.assert_array_equal(a.stage_steps, b.stage_steps)


def test_an_error_in_a_callable_comes_out():
    def broken(X, Z):
        if len(X) != len(Z):
            raise ZeroDivisionError("my kernel")
        return np.ones((len(X), len(Z)))

    X, classes = three_classes()
    with pytest.raises(ZeroDivisionError, match="my kernel"):
        solve_greedy(
            Kernel("callable", function=broken),
            X,
            classes,
            PAIRS,
            options=GreedyOptions(n_threads=2),
        )


def test_an_error_in_the_report_comes_out():
    def report(machines_done, stage, largest_step):
        raise ZeroDivisionError("my report")

    X, y = mixed()
    classes = (y > 0).astype(np.int32)
    with pytest.raises(ZeroDivisionError, match="my report"):
        solve_greedy(KERNELS["rbf"], X, classes, [([0], [1])], report=report)
