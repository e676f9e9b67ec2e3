"""Forward selection by inner products: the columns that least squares would choose."""

import numpy as np
import pytest

from hardmargin.solvers.forward_selection import forward_order


def next_best(A, T, chosen):
    """The column that leaves the least residual."""

    def left(j):
        own = A[:, [*chosen, j]]
        return ((T - own @ np.linalg.lstsq(own, T)[0]) ** 2).sum()

    return min((j for j in range(A.shape[1]) if j not in chosen), key=left)


@pytest.mark.parametrize("n_machines", [1, 3])
def test_it_chooses_what_explains_most(n_machines):
    rng = np.random.default_rng(0)
    A, T = rng.normal(size=(60, 20)), rng.normal(size=(60, n_machines))
    order = forward_order(A.T @ A, A.T @ T, 8)
    expected = []
    for _ in range(8):
        expected.append(next_best(A, T, expected))
    np.testing.assert_array_equal(order, expected)


def test_it_stops_when_nothing_is_new():
    A = np.eye(5)[:, [0, 1, 0, 1]]
    assert set(forward_order(A.T @ A, A.T @ np.ones((5, 1)), 4)) == {0, 1}
    assert len(forward_order(A.T @ A, np.zeros((4, 1)), 4)) == 0
