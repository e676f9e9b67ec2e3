"""Forward selection by inner products: the columns that least squares would choose."""

import numpy as np
import pytest

from hardmargin.monitor import Monitor, Stopped
from hardmargin.solvers.forward_selection import NestedLeastSquares, Selection, forward_order


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


@pytest.mark.parametrize("n_machines", [1, 3])
def test_the_selection_chooses_the_same(n_machines):
    rng = np.random.default_rng(0)
    A, T = rng.normal(size=(60, 20)), rng.normal(size=(60, n_machines))
    selection = Selection(A, T, 8)
    assert selection.grow(3, Monitor())
    assert selection.grow(20, Monitor())
    np.testing.assert_array_equal(selection.chosen, forward_order(A.T @ A, A.T @ T, 8))
    assert not selection.grow(20, Monitor())


def test_the_selection_stops_with_the_clock():
    rng = np.random.default_rng(0)
    seconds = iter(range(100))
    monitor = Monitor(3.5, clock=lambda: next(seconds))
    selection = Selection(rng.normal(size=(60, 20)), rng.normal(size=(60, 1)), 20)
    with pytest.raises(Stopped):
        selection.grow(20, monitor)
    assert 0 < len(selection.chosen) < 20


def test_float32_does_not_hide_what_is_new():
    rng = np.random.default_rng(0)
    common = rng.normal(size=(60, 3)) @ rng.normal(size=(3, 40))
    A = np.asfortranarray(common + 1e-3 * rng.normal(size=(60, 40)))
    T = A @ rng.normal(size=(40, 1))
    left = []
    for columns in (A.copy(), A.astype(np.float32)):
        selection = Selection(columns, T, 20)
        for n in (4, 8, 12):
            assert selection.grow(n, Monitor())
            own = A[:, selection.chosen]
            residual = T - own @ np.linalg.lstsq(own, T)[0]
            selection.aim_at(residual)
        assert len(selection.chosen) == 12
        left.append(np.linalg.norm(residual))
    assert left[1] < 1.1 * left[0]


def test_what_a_residual_has_of_the_chosen_does_not_count():
    rng = np.random.default_rng(0)
    A, T = rng.normal(size=(60, 20)), rng.normal(size=(60, 2))
    one, other = Selection(A, T, 8), Selection(A, T, 8)
    for selection in (one, other):
        selection.grow(4, Monitor())
    other.aim_at(T + 100 * A[:, other.chosen] @ rng.normal(size=(4, 2)))
    for selection in (one, other):
        selection.grow(8, Monitor())
    np.testing.assert_array_equal(one.chosen, other.chosen)


def test_least_squares_of_many_columns():
    rng = np.random.default_rng(2)
    A, T = rng.normal(size=(700, 600)), rng.normal(size=(700, 2))
    nested = NestedLeastSquares(T, ridge=0.0)
    for part in (slice(0, 50), slice(50, 400), slice(400, 600)):
        nested.add(A[:, part])
    for n in (300, 600):
        np.testing.assert_allclose(nested.solution(n), np.linalg.lstsq(A[:, :n], T)[0], atol=1e-9)


def test_columns_are_left_out_when_time_is_over():
    rng = np.random.default_rng(1)
    A, T = rng.normal(size=(60, 20)), rng.normal(size=(60, 2))
    seconds = iter([0.0, 0.0, 2.0])
    nested = NestedLeastSquares(T, 0.0, Monitor(1.0, clock=lambda: next(seconds)))
    nested.add(A[:, :5])
    nested.add(A[:, 5:9])
    with pytest.raises(Stopped):
        nested.add(A[:, 9:])
    assert nested.n_columns == 9
    np.testing.assert_allclose(nested.solution(9), np.linalg.lstsq(A[:, :9], T)[0])


def test_least_squares_for_any_number_of_columns():
    rng = np.random.default_rng(1)
    A, T = rng.normal(size=(60, 20)), rng.normal(size=(60, 2))
    nested = NestedLeastSquares(T, ridge=0.0)
    for part in (slice(0, 5), slice(5, 6), slice(6, 20)):
        nested.add(A[:, part])
    changes = nested.changes()
    for n in (1, 5, 6, 13, 20):
        found, left = np.linalg.lstsq(A[:, :n], T)[:2]
        np.testing.assert_allclose(nested.solution(n), found)
        assert changes[n] == pytest.approx(np.sqrt(left.mean() / 60))
    np.testing.assert_allclose(nested.residual(), T - A @ np.linalg.lstsq(A, T)[0], atol=1e-12)


def test_columns_that_are_the_same_share_a_coefficient():
    column = np.arange(1.0, 6.0)[:, None]
    nested = NestedLeastSquares(2 * column, ridge=1e-12)
    nested.add(np.hstack([column, column]))
    assert nested.solution(2).sum() == pytest.approx(2.0)
