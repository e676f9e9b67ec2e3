"""``checkpoint``: a fit that was broken off goes on where it was, to the same model."""

import errno
import os
import pickle
import time
import warnings
from collections import Counter

import numpy as np
import pytest
from problems.cells import few_rows_are_many, many_rows
from problems.clock import Clock, set_clock
from problems.processes import CONTEXT
from sklearn.base import clone
from sklearn.datasets import make_classification

from hardmargin import EnsembleSVC, GreedySVC, checkpoint
from hardmargin.checkpoint import Checkpoint
from hardmargin.kernels import Kernel, KernelRows
from hardmargin.monitor import Monitor
from hardmargin.selection import calibration
from hardmargin.solvers import greedy
from hardmargin.solvers.greedy import GreedyOptions
from hardmargin.solvers.problem import Problem


def two_classes():
    return make_classification(300, n_informative=5, flip_y=0.2, random_state=0)


def three_classes():
    return make_classification(400, n_informative=5, n_classes=3, flip_y=0.2, random_state=0)


#: What is fitted: a vote, a vote per machine, one at low rank, trees of cells, and greedy machines.
FITS = {
    "vote": (EnsembleSVC(), two_classes),
    "many rows": (EnsembleSVC(random_state=np.random.RandomState(3)), lambda: many_rows(290)),
    "low rank": (EnsembleSVC(rank=20), three_classes),
    "generator": (EnsembleSVC(rank=20, random_state=np.random.RandomState(3)), three_classes),
    "cells": (EnsembleSVC(max_cell_rows=100, n_trees=2), lambda: many_rows(700, 3)),
    "cells of two threads": (EnsembleSVC(max_cell_rows=100, n_jobs=2), lambda: many_rows(700)),
    "greedy": (GreedySVC(), three_classes),
    "greedy of one gamma": (GreedySVC(gamma=0.1), two_classes),
}
ALL_FITS = pytest.mark.parametrize("fit", FITS)


@pytest.fixture(autouse=True)
def _few_rows_are_many(monkeypatch):
    few_rows_are_many(monkeypatch)
    monkeypatch.setattr(calibration, "MAX_SCALED_ROWS", 100)  # of rows drawn after the vote


@pytest.fixture
def path(tmp_path):
    return tmp_path / "fit.checkpoint"


class Broken(BaseException):
    """What ends a fit, like KeyboardInterrupt."""


@pytest.fixture
def steps(monkeypatch):
    """Counts the steps that are computed, and breaks the fit off after `limit` of them."""

    class Steps(Counter):
        limit = None

    counted, step = Steps(), Checkpoint.step

    def counting(self, name, compute, is_finished=lambda: True):
        def computed():
            if sum(counted.values()) == counted.limit:
                raise Broken
            counted[name] += 1
            return compute()

        return step(self, name, computed, is_finished)

    monkeypatch.setattr(Checkpoint, "step", counting)
    return counted


def fitted(fit, path=None, **parameters):
    model, data = FITS[fit]
    model = pickle.loads(pickle.dumps(model))  # its random state moves on
    return model.set_params(checkpoint=path, **parameters).fit(*data())


@ALL_FITS
def test_a_fit_that_was_broken_off_goes_on_to_the_same_model(fit, path, steps):
    expected = fitted(fit)
    fitted(fit, path)
    n_steps = sum(steps.values())
    assert n_steps > 0
    for limit in {0, n_steps // 2, n_steps - 1}:
        steps.clear()
        steps.limit = limit
        with pytest.raises(Broken):
            fitted(fit, path)
        assert path.exists()
        steps.limit = None
        found = fitted(fit, path)
        # No step is made twice, but for one that was cut short on another thread.
        assert sum(steps.values()) - n_steps in (0, (found.n_jobs or 1) - 1)
        assert not path.exists()
        queries = FITS[fit][1]()[0]
        np.testing.assert_array_equal(
            found.decision_function(queries), expected.decision_function(queries)
        )
        np.testing.assert_equal(found.cv_log_loss_, expected.cv_log_loss_)


def test_broken_off_again_and_again(path, steps):
    expected = fitted("cells")
    for _ in range(200):
        steps.limit = sum(steps.values()) + 3
        try:
            found = fitted("cells", path)
            break
        except Broken:
            continue
    queries = many_rows(700, 3)[0]
    np.testing.assert_array_equal(found.predict_proba(queries), expected.predict_proba(queries))


#: Fits that try some of the rows first if time is limited, and one that does not.
IN_TIME = {
    "vote on a sample": EnsembleSVC(max_cell_rows=100, n_trees=1),
    "vote on all": EnsembleSVC(kernel="linear"),
    "greedy": GreedySVC(kernel="rbf"),
    "greedy of one gamma": GreedySVC(gamma=0.1),
}


@pytest.mark.parametrize("fit", IN_TIME)
def test_a_fit_that_ran_out_of_time_goes_on_to_the_same_model(fit, path, monkeypatch):
    X, y = many_rows(700)
    clock = Clock(step=1.0)
    set_clock(monkeypatch, clock)
    plain = clone(IN_TIME[fit]).fit(X, y)
    expected, seconds = plain.decision_function(X), clock.now
    for share in (0.05, 0.2, 0.4, 0.6, 0.8, 0.95, 1.2, 1.5):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            limited = clone(IN_TIME[fit]).set_params(checkpoint=path, max_time=share * seconds)
            is_same = (limited.fit(X, y).decision_function(X) == expected).all()
        assert path.exists() or is_same
        found = clone(IN_TIME[fit]).set_params(checkpoint=path).fit(X, y)
        np.testing.assert_array_equal(found.decision_function(X), expected)
        assert not path.exists()


def test_calls_of_little_time_come_to_the_end(path, monkeypatch):
    X, y = many_rows(700)
    set_clock(monkeypatch, clock := Clock(step=1.0))
    expected = GreedySVC().fit(X, y)
    seconds = 0.7 * clock.now
    n_calls = 0
    while path.exists() or n_calls == 0:
        n_calls += 1
        assert n_calls < 30
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = GreedySVC(checkpoint=path, max_time=seconds).fit(X, y)
    assert n_calls > 1
    np.testing.assert_array_equal(found.decision_function(X), expected.decision_function(X))


def broken_off(fit, path, steps, limit=1):
    steps.limit = limit
    with pytest.raises(Broken):
        fitted(fit, path)
    steps.limit = None


def test_another_number_of_threads_goes_on(path, steps):
    broken_off("cells", path, steps)
    fitted("cells", path, n_jobs=2)
    assert not path.exists()


@pytest.mark.parametrize("change", [{"max_stages": 20}, {"random_state": 1}, {"cv": 3}])
def test_other_parameters_are_another_fit(path, steps, change):
    broken_off("cells", path, steps)
    before = path.read_bytes()
    with pytest.raises(ValueError, match="belongs to a different fit"):
        fitted("cells", path, **change)
    assert path.read_bytes() == before


def test_other_rows_are_another_fit(path, steps):
    broken_off("vote", path, steps, limit=0)
    X, y = two_classes()
    X[7, 1] += 1e-9
    with pytest.raises(ValueError, match="belongs to a different fit"):
        EnsembleSVC(checkpoint=path).fit(X, y)


def test_damage_is_noticed(path, steps):
    broken_off("cells", path, steps)
    content = bytearray(path.read_bytes())
    content[-5] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match="damaged; delete it"):
        fitted("cells", path)


@pytest.mark.parametrize("content", [b"", b"a letter"])
def test_other_files_are_left_alone(path, content):
    path.write_bytes(content)
    with pytest.raises(ValueError, match="not a checkpoint"):
        fitted("vote", path)
    assert path.read_bytes() == content


def test_splits_that_cannot_be_read_again(path):
    splits = iter([(np.arange(100), np.arange(100, 300))])
    with pytest.raises(ValueError, match=r"cv=list\(cv\)"):
        EnsembleSVC(cv=splits, checkpoint=path).fit(*two_classes())


# --- disks that are full --------------------------------------------------------------------------


@pytest.fixture
def full_disk(monkeypatch):
    def fill():
        def fsync(_):
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(os, "fsync", fsync)

    return fill


def test_a_disk_that_is_full_at_the_start_is_an_error(path, full_disk):
    full_disk()
    with pytest.raises(OSError, match=r"fit.checkpoint' cannot be written: No space left"):
        fitted("vote", path)
    assert list(path.parent.iterdir()) == []


PLACES = {
    "no folder": ("nowhere/fit.checkpoint", FileNotFoundError, "no folder .*nowhere';"),
    "a file as folder": ("file/fit.checkpoint", FileNotFoundError, "no folder .*file';"),
    "a folder": ("", IsADirectoryError, "is a folder; give the name of a file"),
}


@pytest.mark.parametrize("fit", ["vote", "greedy"])
@pytest.mark.parametrize("place", PLACES)
def test_a_place_where_there_can_be_no_file_is_named(place, fit, tmp_path, steps):
    where, error, message = PLACES[place]
    (tmp_path / "file").touch()
    with pytest.raises(error, match=f"^checkpoint=.*{message}"):
        fitted(fit, tmp_path / where)
    assert not steps


def test_a_disk_that_fills_up_costs_neither_the_fit_nor_the_last_checkpoint(
    path, steps, full_disk, monkeypatch
):
    expected = fitted("cells")
    broken_off("cells", path, steps, limit=5)
    before = path.read_bytes()
    monkeypatch.setattr(checkpoint, "SECONDS_BETWEEN", 0.0)
    monkeypatch.setattr(checkpoint, "REST", 0.0)
    monkeypatch.setattr(Checkpoint, "remove", lambda self: None)
    full_disk()
    with pytest.warns(UserWarning, match=r"could not be written \(No space left on device\)"):
        found = fitted("cells", path)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]
    queries = many_rows(700, 3)[0]
    np.testing.assert_array_equal(found.predict_proba(queries), expected.predict_proba(queries))


# --- processes that are killed --------------------------------------------------------------------

KILLED = """
from sklearn.datasets import make_classification
from hardmargin import GreedySVC, checkpoint

checkpoint.SECONDS_BETWEEN = checkpoint.REST = 0.0  # it writes all the time
X, y = make_classification(1500, n_informative=5, n_classes=3, flip_y=0.2, random_state=0)
begun.set()
GreedySVC(checkpoint=path).fit(X, y)
"""


def test_a_process_that_is_killed_leaves_a_whole_checkpoint(path):
    X, y = make_classification(1500, n_informative=5, n_classes=3, flip_y=0.2, random_state=0)
    rng, n_read = np.random.default_rng(0), 0
    for _ in range(5):
        begun = CONTEXT.Event()
        process = CONTEXT.Process(target=exec, args=(KILLED, {"begun": begun, "path": path}))
        process.start()
        assert begun.wait(60)
        time.sleep(rng.uniform(0.02, 0.5))
        process.kill()
        process.join()
        if path.exists():
            name = pickle.loads(path.read_bytes()[len(checkpoint._MAGIC) + 32 :])[0]
            Checkpoint(path, name)  # is whole
            n_read += 1
    assert n_read > 0
    found, expected = GreedySVC(checkpoint=path).fit(X, y), GreedySVC().fit(X, y)
    np.testing.assert_array_equal(found.decision_function(X), expected.decision_function(X))


# --- machines that are not finished --------------------------------------------------------------

#: One machine each, of enough stages to be broken off within it.
MACHINES = {
    "one visit": {"gamma": 0.5, "max_visits": 1},
    "lazy": {"gamma": 2.0, "max_visits": 1, "method": "lazy"},
    "revisits": {"gamma": 0.05, "max_visits": 4},
    "lazy revisits": {"gamma": 1.0, "max_visits": 4, "method": "lazy"},
    "bits": {"gamma": 0.5, "max_visits": 1, "method": "lazy-bits"},
    "poly": {"gamma": 0.02, "kernel": "poly", "max_visits": 4, "max_stages": 800},
    "float32": {"gamma": 0.5, "max_visits": 1, "dtype": "float32"},
}


def rows_of(machine, n_classes=2):
    n = 20_000 if machine == "bits" else 2_500
    X, y = make_classification(n, n_informative=5, n_classes=n_classes, flip_y=0.2, random_state=0)
    if machine == "bits":
        X = (X[:, :12] > 0).astype(float)  # with copies
    return X, y


@pytest.fixture
def kept(monkeypatch):
    """Lets machines keep every state, and breaks the fit off after `limit` of them."""

    class Kept:
        limit, n, stages = None, 0, []

    monkeypatch.setattr(checkpoint, "SECONDS_BETWEEN", 0.0)
    monkeypatch.setattr(checkpoint, "REST", 0.0)
    counted, keep = Kept(), Checkpoint.keep

    def counting(self, key, machine, state):
        keep(self, key, machine, state)
        counted.n += 1
        counted.stages.append(int(np.frombuffer(state[8:16], np.uint64)[0]))
        if counted.n == counted.limit:
            raise Broken

    monkeypatch.setattr(Checkpoint, "keep", counting)
    return counted


def fitted_machine(machine, path=None, n_classes=2, **parameters):
    model = GreedySVC(checkpoint=path, **MACHINES[machine], **parameters)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # stages are few for some
        return model.fit(*rows_of(machine, n_classes))


def as_array(value):
    return value.toarray() if hasattr(value, "toarray") else value


def assert_same_paths(found, expected):
    for name in ("stage_indices_", "stage_steps_", "loss_path_", "dual_coef_", "certificate_"):
        a, b = (as_array(getattr(model, name)) for model in (found, expected))
        np.testing.assert_equal(a, b)


@pytest.mark.parametrize("machine", MACHINES)
def test_a_machine_that_was_broken_off_goes_on_to_the_same_path(machine, path, kept):
    expected = fitted_machine(machine)
    fitted_machine(machine, path)
    n_kept = kept.n
    assert n_kept > 3
    for limit in {1, n_kept // 2, n_kept - 2}:
        kept.n, kept.limit, kept.stages = 0, limit, []
        with pytest.raises(Broken):
            fitted_machine(machine, path)
        n_stages, kept.limit, kept.stages = kept.stages[-1], None, []
        assert 0 < n_stages < len(expected.stage_indices_)
        assert_same_paths(fitted_machine(machine, path), expected)
        assert kept.stages[0] > n_stages  # no stage was made again


@pytest.mark.parametrize("machine", ["one visit", "lazy revisits"])
def test_a_machine_is_broken_off_again_and_again(machine, path, kept):
    expected = fitted_machine(machine)
    for _ in range(300):
        kept.n, kept.limit = 0, 2
        try:
            found = fitted_machine(machine, path)
            break
        except Broken:
            continue
    assert_same_paths(found, expected)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_several_machines_go_on(path, kept, n_jobs):
    expected = fitted_machine("one visit", n_classes=3)
    for _ in range(100):
        kept.n, kept.limit = 0, 7
        try:
            found = fitted_machine("one visit", path, n_classes=3, n_jobs=n_jobs)
            break
        except Broken:
            continue
    assert_same_paths(found, expected)


def test_a_machine_that_ran_out_of_time_goes_on(path, monkeypatch):
    monkeypatch.setattr(checkpoint, "SECONDS_BETWEEN", 1_000.0)  # kept at the end alone
    expected = fitted_machine("revisits")
    first = fitted_machine("revisits", path, max_time=1e-3)
    assert first.stop_reason_ == "max_time"
    assert path.exists()
    assert_same_paths(fitted_machine("revisits", path), expected)


def test_choosing_goes_on_within_a_trial(path, kept, monkeypatch):
    X, y = rows_of("one visit")
    expected = GreedySVC(kernel="rbf").fit(X, y)
    for limit in (3, 20):
        kept.n, kept.limit = 0, limit
        with pytest.raises(Broken):
            GreedySVC(kernel="rbf", checkpoint=path).fit(X, y)
    kept.limit = None
    monkeypatch.setattr(checkpoint, "SECONDS_BETWEEN", 5.0)
    assert_same_paths(GreedySVC(kernel="rbf", checkpoint=path).fit(X, y), expected)


def test_the_state_of_other_blocks_is_not_used(path, kept):
    problem = Problem.two_class(
        KernelRows(Kernel("rbf", gamma=0.5), rows_of("one visit")[0]),
        np.where(rows_of("one visit")[1] > 0, 1.0, -1.0),
    )
    states = {}

    class States:
        seconds = 0.0

        def __init__(self, state):
            self.state = state

        def states(self, n_machines):
            return [self.state] * n_machines

        def keep(self, machine, state):
            states[machine] = state
            return 0.0

    def solve(state, **options):
        monitor = Monitor()
        monitor.unfinished = States(state)
        [found] = greedy.solve(problem, GreedyOptions(max_stages=200, **options), monitor)
        return found

    expected = solve(b"")
    damaged = states[0][:-9] + b"?" + states[0][-8:]
    for state, options in (
        (states[0], {"block_rows": 64}),
        (damaged, {}),
        (b"short", {}),
    ):
        found = solve(state, **options)
        np.testing.assert_array_equal(found.history["row"], expected.history["row"])


def linear(A, B):
    return A @ B.T


def test_functions_that_cannot_be_told_apart_are_refused(path):
    with pytest.raises(ValueError, match="define the kernel at the top of a module"):
        GreedySVC(kernel=lambda A, B: A @ B.T, checkpoint=path).fit(*two_classes())
    assert not path.exists()


def test_a_function_that_was_edited_is_another_fit(path, monkeypatch):
    model, (X, y) = GreedySVC(kernel=linear, checkpoint=path), two_classes()
    rows = model._read_table(X, y, None, None, model._new_generator())
    names = [model._name_of_fit(rows, None)]
    monkeypatch.setattr(linear, "__code__", (lambda A, B: 2 * A @ B.T).__code__)
    names.append(model._name_of_fit(rows, None))
    assert names[0] != names[1]
