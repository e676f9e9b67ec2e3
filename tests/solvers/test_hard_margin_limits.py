"""How the hard-margin solver ends early, what it refuses, and Ctrl-C."""

import functools
import json

import numpy as np
import pytest
from problems.hard_margin import (
    BIAS,
    alpha_of,
    gradient_of,
    large,
    multipliers,
    optimum,
    problem,
    solve,
)
from problems.processes import output_of
from problems.two_class import KERNELS, gram, mixed, small

from hardmargin.kernels import Kernel
from hardmargin.monitor import Monitor
from hardmargin.solvers import hard_margin
from hardmargin.solvers.problem import KernelRows, Problem

# --- ends ----------------------------------------------------------------------------------------


@BIAS
def test_opposite_labels_on_one_spot_end_at_rho_zero(bias):
    X, y = small(n=60)
    X, y = np.vstack([X, X[:1]]), np.append(y, -y[0])
    solution = solve(KERNELS["rbf"], X, y, bias=bias)
    assert solution.stop_reason == "rho_zero"
    assert solution.rho <= 1e-10
    assert solution.rho_lower_bound == 0
    assert np.isfinite([*multipliers(solution), solution.intercept, solution.certificate]).all()


@BIAS
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_overlapping_classes_end_at_rho_zero(bias, dtype):
    solution = solve(KERNELS["linear"], *small(), bias=bias, dtype=dtype)
    assert solution.stop_reason == "rho_zero"
    assert multipliers(solution).sum() == pytest.approx(1.0)


@pytest.mark.parametrize("name", [name for name in KERNELS if "indefinite" in name])
def test_indefinite_kernels_end_in_something_finite(name):
    solution = solve(KERNELS[name], *small(), tol=1e-3, max_stages=100_000)
    assert np.isfinite([*multipliers(solution), solution.intercept, solution.rho]).all()
    assert multipliers(solution).sum() == pytest.approx(1.0)


@BIAS
def test_max_stages_cuts_the_path(bias):
    kernel, X, y = problem("rbf")
    solution = solve(kernel, X, y, bias=bias, max_stages=17)
    assert solution.stop_reason == "max_stages"
    assert solution.n_stages == 17
    best = optimum("rbf", bias).rho
    assert solution.rho_lower_bound <= best <= solution.rho


def test_no_stages_leave_two_rows():
    solution = solve(*problem("rbf"), max_stages=0)
    assert multipliers(solution).tolist() == [0.5, 0.5]


def test_each_stage_lowers_the_objective():
    rhos = [solve(*problem("rbf"), max_stages=n).rho for n in range(0, 60, 3)]
    assert (np.diff(rhos) < 0).all()


def test_max_seconds_cuts_the_path():
    kernel, X, y = large()
    solution = solve(kernel, X, y, monitor=Monitor(max_seconds=0.0))
    assert solution.stop_reason == "max_time"
    g = gradient_of(solution, gram(kernel, X), y)
    assert solution.rho == pytest.approx(alpha_of(solution, len(y)) @ g)


def test_enough_seconds_change_nothing():
    timed, free = (solve(*problem("rbf"), monitor=Monitor(s)) for s in (1000.0, None))
    np.testing.assert_array_equal(multipliers(timed), multipliers(free))


# --- errors --------------------------------------------------------------------------------------


def test_a_machine_without_rows_on_one_side_is_refused():
    X, y = small()
    with pytest.raises(ValueError, match="both of its sides"):
        hard_margin.solve(
            Problem(KernelRows(KERNELS["rbf"], X), (y > 0).astype(np.int32) * 2, [([0], [1])])
        )


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
def test_a_kernel_that_overflows_is_named():
    X, y = small()
    with pytest.raises(ValueError, match="kernel='poly' overflows"):
        solve(Kernel("poly", gamma=1e200, degree=3), X, y)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_bad_values_beside_the_diagonal_are_refused(bad):
    kernel, K, y = problem("precomputed")
    K = K.copy()
    K[3] = K[:, 3] = bad
    K[3, 3] = 1.0
    with pytest.raises(ValueError, match="must be finite"):
        solve(kernel, K, y)


def test_an_error_in_a_callable_comes_out():
    def broken(X, Z):
        if len(X) != len(Z):
            raise ZeroDivisionError("my kernel")
        return np.ones((len(X), len(Z)))

    with pytest.raises(ZeroDivisionError, match="my kernel"):
        solve(Kernel("callable", function=broken), *small())


def test_an_error_in_a_listener_comes_out():
    def listener(event):
        raise ZeroDivisionError("my listener")

    with pytest.raises(ZeroDivisionError, match="my listener"):
        solve(KERNELS["rbf"], *mixed(), monitor=Monitor(listeners=[listener]))


# --- Ctrl-C --------------------------------------------------------------------------------------

CHILD = """
import json, os, signal, threading, time
import numpy as np
from hardmargin.kernels import Kernel
from hardmargin.solvers.hard_margin import HardMarginOptions, solve
from hardmargin.solvers.problem import KernelRows, Problem

signal.signal(signal.SIGINT, signal.default_int_handler)
rng = np.random.default_rng(0)

def slow(X, Z):
    if len(X) != len(Z):
        time.sleep(0.005)
    return np.exp(-((X[:, None] - Z) ** 2).sum(axis=2))

CASES = {
    "one machine": (Kernel("rbf", gamma=0.02), 20_000, [([0], [1])], 1),
    "two threads": (Kernel("rbf", gamma=0.02), 20_000, [([0], [1]), ([2], [1]), ([0], [2])], 2),
    "callable": (Kernel("callable", function=slow), 2000, [([0], [1])], 1),
}
for name, (kernel, n, machines, n_threads) in CASES.items():
    X = rng.normal(size=(n, 20))
    classes = rng.integers(3, size=n).astype(np.int32)
    sent = []
    def interrupt():
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)
    timer = threading.Timer(0.3, interrupt)
    timer.start()
    delay = None
    try:
        options = HardMarginOptions(tol=1e-9, n_threads=n_threads)
        solve(Problem(KernelRows(kernel, X), classes, machines), options)
    except KeyboardInterrupt:
        delay = time.monotonic() - sent[0]
    finally:
        timer.cancel()
    print(json.dumps([name, delay]), flush=True)
"""


@functools.cache
def delays():
    return dict(json.loads(line) for line in output_of(CHILD).splitlines())


@pytest.mark.parametrize("case", ["one machine", "two threads", "callable"])
def test_ctrl_c_raises_within_a_second(case):
    delay = delays()[case]
    assert delay is not None, "the solver was done before it could be interrupted"
    assert delay < 1.0
