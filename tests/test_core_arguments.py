"""Every function of the compiled core refuses wrong arguments: none crashes, none is ignored.

The table holds one valid call of every function, and wrong values for each of its arguments.
"""

from contextlib import suppress

import numpy as np
import pytest
from problems.core_arguments import NAN, N, read_only
from problems.core_calls import TABLE, block, call, core_set_steps, tilt, values_of

from hardmargin import _core

REFUSALS = (ValueError, TypeError, IndexError)
CASES = [
    pytest.param(name, make, id=f"{name}-{k}")
    for name, makers in TABLE.items()
    for k, make in enumerate(makers)
]


def test_the_table_has_every_function():
    functions = {
        name
        for name, thing in vars(_core).items()
        if callable(thing) and not isinstance(thing, type) and not name.startswith("_")
    }
    assert functions == set(TABLE)


@pytest.mark.parametrize(("name", "make"), CASES)
def test_right_arguments_are_accepted(name, make):
    call(name, values_of(make()))


@pytest.mark.parametrize(("name", "make"), CASES)
def test_each_wrong_argument_is_refused(name, make):
    accepted = []
    for argument, of_argument in make().items():
        for k in range(len(of_argument.wrong)):
            case = make()
            wrong = case[argument].wrong[k]
            with suppress(*REFUSALS):
                call(name, values_of(case) | {argument: wrong})
                accepted.append((argument, wrong))
    assert not accepted


@pytest.mark.parametrize(("name", "make"), CASES)
def test_a_missing_argument_is_refused(name, make):
    case = values_of(make())
    for argument in case:
        with pytest.raises(TypeError):
            call(name, {key: value for key, value in case.items() if key != argument})


@pytest.mark.parametrize(
    ("name", "argument", "wrong", "message"),
    [
        ("block_float64", "out", np.zeros((N, 8)), r"out has shape \(20, 8\), expected \(20, 7\)"),
        ("block_float32", "n_threads", 0, "n_threads is 0"),
        ("block_float32", "kernel", ("rfb", 1.0, 0.0, 1.0), "'rfb', expected one of 'rbf'"),
        ("expand", "dtype", "float16", "dtype is 'float16', expected one of 'float32', 'float64'"),
        ("expand", "machines", np.full(14, 2, np.int32), r"machines\[0\] is 2"),
        ("greedy", "classes", np.zeros(3, np.int32), "classes has 3 entries, expected 20"),
        (
            "greedy",
            "weights",
            np.ones(N, np.float32),
            "weights has dtype float32, expected float64",
        ),
        ("greedy", "step_tol", NAN, "step_tol is nan"),
        ("greedy", "machines", [([0], [5])], r"machines\[0\]\[1\]\[0\] is 5"),
        ("hard_margin", "memory_bytes", -3, "memory_bytes is -3"),
        ("staged_vote_float64", "loss", "hinge", "loss is 'hinge'"),
        ("staged_vote_float64", "n_stages", 200, "200, expected at most max_stages, 20"),
        ("sum_columns_float64", "slots", np.array([0, 1, 99]), r"slots\[2\] is 99"),
        ("sum_columns_float64", "out", read_only(np.zeros(19)), "out is read-only"),
        ("tilt", "weights", np.zeros(N + 1), "weights has 21 entries, expected 20"),
        ("route_cells", "columns", np.full(4, 3, np.int32), r"columns\[0\] is 3, expected -2 <="),
        (
            "route_cells",
            "children",
            np.zeros((4, 2), np.int32),
            r"children\[0, 0\] is 0, expected 0 < cut < 4 or -5 <= cell < 0",
        ),
        ("expand_cells", "gammas", np.full((2, 2), -1.0), r"gammas\[0, 0\] is -1, expected"),
        ("expand_cells", "metrics", ["rbf"], r"metrics\[0\] is 'rbf', expected one of"),
    ],
)
def test_messages_name_the_argument_and_its_value(name, argument, wrong, message):
    with pytest.raises(REFUSALS, match=message):
        call(name, values_of(TABLE[name][0]()) | {argument: wrong})


def test_arrays_that_are_written_must_not_be_shared():
    case = values_of(core_set_steps("float64"))
    with pytest.raises(ValueError, match="alpha shares memory with gradient"):
        call("core_set_steps_float64", case | {"gradient": case["alpha"]})
    case = values_of(tilt())
    with pytest.raises(ValueError, match="weights shares memory with logs"):
        call("tilt", case | {"weights": case["logs"]})
    case = values_of(block("float64"))
    X = np.zeros((N, N))
    with pytest.raises(ValueError, match="out shares memory with queries"):
        call("block_float64", case | {"queries": X, "support": X, "out": X})


def test_several_wrong_arguments_at_once_do_not_crash():
    rng = np.random.default_rng(0)
    makers = [(name, make) for name, of_name in TABLE.items() for make in of_name]
    pool = [
        value
        for name, make in makers
        for argument in make().values()
        for value in (argument.value, *argument.wrong)
    ]
    for _ in range(600):
        name, make = makers[rng.integers(len(makers))]
        case = values_of(make())
        for argument in list(case):
            if rng.random() < 0.2:
                case[argument] = pool[rng.integers(len(pool))]
        with suppress(*REFUSALS):
            call(name, case)
