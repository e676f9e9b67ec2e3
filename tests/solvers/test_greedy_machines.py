"""The greedy solver with several machines, and the errors they meet."""

import numpy as np
import pytest
from problems.two_class import KERNELS, mixed, oracle, small, solve

from hardmargin.kernels import Kernel
from hardmargin.monitor import Monitor
from hardmargin.solvers import greedy
from hardmargin.solvers.greedy import GreedyOptions
from hardmargin.solvers.problem import KernelRows, Problem


def three_classes():
    X, _ = small(n=240, seed=3)
    classes = np.digitize(X[:, 0] + np.sin(3 * X[:, 1]), [-0.6, 0.6]).astype(np.int32)
    return X, classes


PAIRS = [([0], [1]), ([0], [2]), ([1], [2]), ([0, 2], [1])]


def test_every_machine_is_its_own_two_class_problem():
    X, classes = three_classes()
    solutions = greedy.solve(Problem(KernelRows(KERNELS["rbf"], X), classes, PAIRS))
    for solution, (negative, positive) in zip(solutions, PAIRS, strict=True):
        rows = np.flatnonzero(np.isin(classes, negative + positive))
        y = np.where(np.isin(classes[rows], positive), 1.0, -1.0)
        path = oracle(KERNELS["rbf"], X[rows], y)
        assert solution.history["row"].tolist() == rows[path.order].tolist()


@pytest.mark.parametrize("name", ["rbf", "linear", "callable"])
def test_threads_change_nothing(name):
    X, classes = three_classes()
    one, two = (
        greedy.solve(
            Problem(KernelRows(KERNELS[name], X), classes, PAIRS), GreedyOptions(n_threads=n)
        )
        for n in (1, 2)
    )
    for a, b in zip(one, two, strict=True):
        np.testing.assert_array_equal(a.history["step"], b.history["step"])


def test_an_error_in_a_callable_comes_out():
    def broken(X, Z):
        if len(X) != len(Z):
            raise ZeroDivisionError("my kernel")
        return np.ones((len(X), len(Z)))

    X, classes = three_classes()
    with pytest.raises(ZeroDivisionError, match="my kernel"):
        greedy.solve(
            Problem(KernelRows(Kernel("callable", function=broken), X), classes, PAIRS),
            GreedyOptions(n_threads=2),
        )


def test_an_error_in_a_listener_comes_out():
    def listener(event):
        raise ZeroDivisionError("my listener")

    with pytest.raises(ZeroDivisionError, match="my listener"):
        solve(KERNELS["rbf"], *mixed(), monitor=Monitor(listeners=[listener]))
