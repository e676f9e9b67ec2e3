"""Paths that judge themselves by held-out rows, with little to go by, little time or bad input."""

import numpy as np
import pytest
from problems.staged_vote import (
    BIAS,
    LOSS,
    THREE,
    TWO,
    assert_identical,
    assert_identical_paths,
    race_problem,
    rows_and_classes,
    run,
    run_one,
    splits,
    squared_distances,
)
from scipy.spatial.distance import cdist

from hardmargin.monitor import Monitor
from hardmargin.solvers.staged_vote import KernelSource

NO_SPLITS = (np.zeros((0, 60), dtype=bool), np.zeros((0, 60), dtype=bool))


def assert_finite(*paths):
    for path in paths:
        values = [path.coefficients, path.held_scores, path.history["loss"]]
        values += [[path.intercept, path.mass, path.certificate]]
        assert all(np.isfinite(v).all() for v in values)


# --- little to go by -----------------------------------------------------------------------------


@LOSS
@BIAS
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_no_held_out_rows(loss, bias, dtype):
    solve = race_problem(dtype, n=60, folds=NO_SPLITS, loss=loss, fit_intercept=bias)
    [machine] = solve()
    assert_finite(*machine)
    assert {len(p.held_rows) for p in machine} == {0}
    assert {(p.n_stages, p.certificate) for p in machine} == {(13, 0.0)}
    assert all(p.coefficients.any() for p in machine)


@pytest.mark.parametrize("side", [0, 1])
def test_held_out_rows_of_one_side_say_nothing(side):
    D, (_, classes) = squared_distances(), rows_and_classes()
    K, (train, test) = np.exp(-0.3 * D), splits()
    path = run_one(K, classes, folds=(train, test & (classes == side)))
    assert len(path.held_rows) == 0
    assert_identical_paths(path, run_one(K, classes, folds=NO_SPLITS))


def test_splits_that_leave_one_class_are_left_out():
    D, (_, classes) = squared_distances(), rows_and_classes()
    K, (train, test) = np.exp(-0.3 * D), splits()
    poor = (np.insert(train, 2, classes == 1, axis=0), np.insert(test, 2, classes == 0, axis=0))
    path = run_one(K, classes, folds=poor)
    expected = run_one(K, classes)
    assert_identical_paths(path, expected)
    np.testing.assert_array_equal(path.held_rows, expected.held_rows)
    np.testing.assert_array_equal(
        path.held_splits, expected.held_splits + (expected.held_splits >= 2)
    )


def test_a_split_may_lack_a_class_in_one_machine_only():
    X, classes = rows_and_classes(90, 0, 3)
    D = cdist(X, X, "sqeuclidean")
    train, test = (part.copy() for part in splits(90))
    train[0] &= classes != 2
    found = run([D], [KernelSource("distances", 0, 0.3)], classes, THREE, folds=(train, test))
    assert [sorted(set(m[0].held_splits)) for m in found] == [
        [0, 1, 2, 3, 4],
        [1, 2, 3, 4],
        [1, 2, 3, 4],
    ]


@LOSS
@BIAS
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_stages", [None, 10])
def test_rows_in_one_place_give_a_finite_path(loss, bias, dtype, n_stages):
    classes = (np.arange(20) % 2).astype(np.int32)
    path = run_one(
        np.ones((20, 20), dtype=dtype),
        classes,
        folds=splits(20),
        loss=loss,
        fit_intercept=bias,
        n_stages=n_stages,
    )
    assert_finite(path)
    assert path.stop_reason in ("rho_zero", "patience", "n_stages")


@LOSS
@BIAS
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("gamma", [1e-9, 1e9])
def test_kernels_of_extreme_width_give_a_finite_path(loss, bias, dtype, gamma):
    D, (_, classes) = squared_distances(), rows_and_classes()
    path = run_one(
        D.astype(dtype), classes, kind="distances", gamma=gamma, loss=loss, fit_intercept=bias
    )
    assert_finite(path)


@LOSS
@BIAS
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_classes_far_apart_give_a_finite_path(loss, bias, dtype):
    X, classes = rows_and_classes()
    X = X + 100.0 * classes[:, None]
    path = run_one((X @ X.T).astype(dtype), classes, loss=loss, fit_intercept=bias, n_stages=100)
    assert_finite(path)
    if bias:
        assert path.certificate < 0.1


def test_an_indefinite_kernel_gives_a_finite_path():
    X, classes = rows_and_classes()
    path = run_one(np.tanh(X @ X.T - 1), classes)
    assert_finite(path)


# --- limits and errors ---------------------------------------------------------------------------


@pytest.mark.parametrize("machines", [TWO, THREE], ids=["one machine", "three"])
@pytest.mark.parametrize("n_stages", [None, 30])
def test_the_limit_on_time_keeps_a_path(machines, n_stages):
    found = race_problem(n_classes=3, machines=machines, n_stages=n_stages)(
        monitor=Monitor(max_seconds=0.0)
    )
    for machine in found:
        assert_finite(*machine)
        assert {p.stop_reason for p in machine} == {"max_time"}


def test_enough_time_changes_no_bit():
    solve = race_problem()
    assert_identical(*(solve(monitor=Monitor(max_seconds=s))[0] for s in (None, 1000.0)))


def test_a_machine_without_rows_on_a_side_is_refused():
    D, (_, classes) = squared_distances(), rows_and_classes()
    with pytest.raises(ValueError, match="both sides"):
        run([D], [KernelSource("values", 0)], classes, [([0], [7])])


BAD = {
    "square": ({"K": np.ones((60, 59))}, "59 columns"),
    "rows": ({"K": np.ones((59, 59))}, "row"),
    "weights": ({"weights": np.ones(59)}, "weights"),
    "train": ({"folds": (np.ones((5, 59), bool), np.ones((5, 59), bool))}, "train"),
    "test": ({"folds": (np.ones((5, 60), bool), np.ones((4, 60), bool))}, "test"),
    "kind": ({"kind": "cosine"}, "cosine"),
}


@pytest.mark.parametrize("case", BAD)
def test_shapes_that_do_not_fit_are_refused(case):
    changes, words = BAD[case]
    _, classes = rows_and_classes()
    with pytest.raises(ValueError, match=words):
        run_one(**{"K": squared_distances(), "classes": classes, **changes})


def test_an_array_that_does_not_exist_is_refused():
    _, classes = rows_and_classes()
    with pytest.raises(IndexError):
        run([squared_distances()], [KernelSource("values", 1)], classes)


def test_an_exception_of_a_listener_ends_the_run():
    def interrupt(event):
        raise KeyboardInterrupt

    X, classes = rows_and_classes(700)
    with pytest.raises(KeyboardInterrupt):
        run(
            [cdist(X, X, "sqeuclidean")],
            [KernelSource("distances", 0, 0.3)],
            classes,
            n_stages=10_000,
            max_stages=10_000,
            monitor=Monitor(listeners=[interrupt]),
        )
