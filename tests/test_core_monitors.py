"""Every long call of the compiled core asks its monitor or its check whether to go on."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from problems.core_arguments import INF, aligned
from problems.core_calls import TABLE, call, values_of

LONG_RUNS = [
    "greedy",
    "hard_margin",
    "soft_margin",
    "staged_vote_float64",
    "core_set_steps_float64",
]


def long_run(name: str) -> dict[str, Any]:
    """Arguments of a call that takes a second or more."""
    rng = np.random.default_rng(0)
    case = values_of(TABLE[name][0]())
    if name == "core_set_steps_float64":
        A = rng.normal(size=(2000, 100))
        alpha, gradient = np.zeros(2000), np.zeros(2000)
        Q = aligned(A @ A.T / 100 + 1e-3 * np.eye(2000), "float64")
        return case | {"Q": Q, "alpha": alpha, "gradient": gradient, "tol": 0.0, "max_steps": 10**9}
    n = 3000
    classes = rng.integers(2, size=n).astype(np.int32)
    if name == "staged_vote_float64":
        # Classes that a plane separates: the loss falls for ever.
        arrays = [rng.normal(size=(n, 200))]
        classes = (arrays[0][:, 0] > 0).astype(np.int32)
        splits = np.zeros((0, n), dtype=np.uint8)
        return case | {
            "arrays": arrays,
            "kernels": [[("factor", 0, 0.0)]],
            "classes": classes,
            "weights": np.ones(n),
            "train": splits,
            "test": splits,
            "shuffles": np.zeros((0, n), dtype=np.int32),
            "n_stages": 10**6,
            "max_stages": 10**6,
        }
    case |= {"matrix": rng.normal(size=(n, 30)), "classes": classes, "max_stages": 10**8}
    case |= {"diagonal": None, "memory_bytes": 2**30, "kernel": ("rbf", 0.02, 0.0, 3.0)}
    if name == "greedy":
        return case | {"weights": None, "max_visits": 1e6, "step_tol": 0.0}
    if name == "soft_margin":
        case |= {"weights": None, "C": 1e6}
    return case | {"tol": 0.0}


def reason_of(result: Any) -> str:
    if isinstance(result, tuple):
        return result[-1]
    [result] = result
    return getattr(result, "paths", [result])[0].stop_reason


@pytest.mark.parametrize("name", LONG_RUNS)
def test_a_monitor_that_says_no_ends_training_as_the_time_limit_does(name):
    heard = []

    def report(*what):
        heard.append(what)
        return len(heard) < 2

    case = long_run(name) | {"monitor": SimpleNamespace(seconds_left=INF, report=report)}
    assert reason_of(call(name, case)) == "max_time"
    assert len(heard) >= 2
    assert all(len(what) == 3 for what in heard)


@pytest.mark.parametrize("name", LONG_RUNS)
@pytest.mark.parametrize("seconds_left", [0.05, 0.0, -1.0])
def test_a_monitor_limits_the_time(name, seconds_left):
    monitor = SimpleNamespace(seconds_left=seconds_left, report=lambda *_: True)
    assert reason_of(call(name, long_run(name) | {"monitor": monitor})) == "max_time"


@pytest.mark.parametrize("name", LONG_RUNS)
@pytest.mark.parametrize(("answer", "error"), [(None, TypeError), (KeyboardInterrupt(), None)])
def test_a_monitor_that_fails_ends_the_call(name, answer, error):
    def report(*_):
        if error is None:
            raise answer
        return answer

    case = long_run(name) | {"monitor": SimpleNamespace(seconds_left=INF, report=report)}
    with pytest.raises(error or KeyboardInterrupt):
        call(name, case)


@pytest.mark.parametrize("name", ["block_float32", "block_float64", "expand"])
def test_a_check_may_end_an_evaluation(name):
    class Enough(Exception):
        pass

    def check():
        raise Enough

    with pytest.raises(Enough):
        call(name, values_of(TABLE[name][0]()) | {"check": check})
    call(name, values_of(TABLE[name][0]()) | {"check": lambda: None})
