"""Rows in memory-mapped files: they are not copied to memory as a whole."""

import json
import pickle
import sys
import tempfile
import textwrap

import numpy as np
import pytest
from problems.cells import few_rows_are_many, many_rows
from problems.processes import output_of

from hardmargin import CoreVectorSVC, EnsembleSVC, GreedySVC, ParzenClassifier, io
from hardmargin.kernels import blocks
from hardmargin.kernels.blocks import (
    FileRows,
    Resident,
    as_blocks,
    in_blocks,
)

MODELS = {
    "cells": EnsembleSVC(max_cell_rows=100, n_trees=1),
    # Moments of blocks are rounded differently, and a path at low rank magnifies that.
    "vote": EnsembleSVC(max_cell_rows=None, standardize=False),
    "greedy": GreedySVC(),
    "core vectors": CoreVectorSVC(),
}


def is_in_file(X):
    return isinstance(as_blocks(X), FileRows)


@pytest.fixture(autouse=True)
def _small_files_are_large(monkeypatch):
    few_rows_are_many(monkeypatch)
    monkeypatch.setattr(blocks, "LEAST_FILE_BYTES", 100)
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 8 * 4 * 90)


@pytest.fixture
def in_file(tmp_path):
    def saved(X):
        np.save(tmp_path / "X.npy", X)
        return np.load(tmp_path / "X.npy", mmap_mode="r")

    return saved


def test_some_rows_of_much_memory_go_to_a_file():
    X = np.random.default_rng(0).normal(size=(60, 5))
    rows = np.arange(50)[::-1]
    small, large = as_blocks(X, X.nbytes)[rows], as_blocks(X, 200)[rows]
    assert not is_in_file(small)
    assert is_in_file(large)
    np.testing.assert_array_equal(large, X[rows])
    np.testing.assert_array_equal(small, X[rows])


def test_temporary_files_are_large_sooner_than_others(monkeypatch, in_file):
    monkeypatch.setattr(blocks, "LEAST_FILE_BYTES", 10_000)
    X = np.zeros((200, 4))  # more than a block
    assert not is_in_file(in_file(X))
    assert is_in_file(as_blocks(X, 1_000)[np.arange(199)])


def test_support_rows_of_much_memory_are_in_a_file():
    X, y = many_rows(600)
    model, limited = (ParzenClassifier(memory_limit=limit).fit(X, y) for limit in (None, 1_000))
    assert not is_in_file(model.support_vectors_)
    assert is_in_file(limited.support_vectors_)
    np.testing.assert_array_equal(limited.predict(X), model.predict(X))


@pytest.mark.once_per("model")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("model", MODELS)
def test_the_model_is_that_of_rows_in_memory(model, dtype, in_file):
    X, y = many_rows(600, 3)
    X = X.astype(dtype)
    expected = MODELS[model].fit(X, y).decision_function(X)
    rows = in_file(X)
    found = MODELS[model].fit(rows, y).decision_function(rows)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("model", ["cells", "greedy"])
def test_missing_values_constant_columns_and_weights(model, in_file):
    X, y = many_rows(600)
    X = np.column_stack([X, np.ones(600), X[:, 0] > 0])
    X[::5, 1] = np.nan
    weights = np.random.default_rng(0).integers(0, 3, 600).astype(float)
    expected = MODELS[model].fit(X, y, sample_weight=weights).predict_proba(X)
    rows = in_file(X)
    found = MODELS[model].fit(rows, y, sample_weight=weights).predict_proba(rows)
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_scaled_rows_of_a_file_are_in_a_file(in_file):
    rows = FileRows(in_file(np.arange(4000.0).reshape(1000, 4)))
    doubled = rows.map(lambda block: 2 * block)
    assert is_in_file(doubled)
    np.testing.assert_array_equal(doubled[np.array([999, 0])], 2 * rows.X[[999, 0]])
    assert sum(rows.each(len)) == 1000


def test_rows_in_memory_are_one_block(in_file):
    X = np.ones((50, 4))
    assert type(as_blocks(X)) is Resident
    assert type(as_blocks(in_file(X))) is FileRows


def test_rows_in_memory_are_scaled_a_few_at_a_time(monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 8 * 4 * 30)
    X, sizes = np.arange(400.0).reshape(100, 4), []

    def doubled(block):
        sizes.append(len(block))
        return 2 * block

    np.testing.assert_array_equal(Resident(X).map(doubled), 2 * X)
    assert sizes == [30, 30, 30, 10]


def test_rows_are_found_in_their_blocks():
    rng = np.random.default_rng(0)
    starts = np.array([0, 3, 3, 40, 41])
    rows = rng.permutation(41)
    found = in_blocks(rows, starts)
    for block, at in found:
        assert ((starts[block] <= rows[at]) & (rows[at] < starts[block + 1])).all()
    assert sorted(np.concatenate([at for _, at in found])) == list(range(41))


@pytest.mark.once_per("method")
@pytest.mark.parametrize("max_visits", [1, 4])
@pytest.mark.parametrize("method", ["fused", "lazy", "bits", "lazy-bits"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_greedy_machines_of_packed_files_are_those_of_memory(method, dtype, max_visits, in_file):
    X, y = many_rows(2_000, 3)
    X = np.column_stack([X, np.random.default_rng(0).random((2_000, 6)) < 0.3])
    model = GreedySVC(gamma=4.0, max_visits=max_visits, method=method, dtype=dtype, n_jobs=2)
    expected = model.fit(X, y).stage_indices_
    steps = model.stage_steps_
    found = model.fit(in_file(X), y)
    for machine in range(3):
        np.testing.assert_array_equal(found.stage_indices_[machine], expected[machine])
        np.testing.assert_array_equal(found.stage_steps_[machine], steps[machine])


def test_packed_rows_need_a_folder(in_file, monkeypatch, tmp_path):
    X, y = many_rows(600)
    rows = in_file(X)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "no such folder"))
    with pytest.raises(OSError, match="No such file or directory"):
        GreedySVC(gamma=1.0).fit(rows, y)


def test_some_rows_of_a_file(in_file):
    X = np.arange(4000.0).reshape(1000, 4)
    rows = np.arange(999, 0, -1)
    found = as_blocks(in_file(X))[rows]
    assert is_in_file(found)
    np.testing.assert_array_equal(found, X[rows])
    np.testing.assert_array_equal(as_blocks(in_file(X))[X[:, 0] > 99], X[X[:, 0] > 99])


def test_models_of_files_are_saved_and_copied(in_file, tmp_path):
    X, y = many_rows(600)
    model = GreedySVC(gamma=1.0).fit(in_file(X), y)
    copied = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copied.predict(X), model.predict(X))
    io.dump(model, tmp_path / "model.skops")
    loaded = io.load(tmp_path / "model.skops")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


def test_a_full_disk_is_an_error(in_file, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.posix_fallocate", full, raising=False)
    X, y = many_rows(600)
    with pytest.raises(OSError, match=r"No space left.*TMPDIR.*memory_limit") as caught:
        MODELS["cells"].fit(in_file(X), y)
    assert caught.value.filename == tempfile.gettempdir()


def test_the_folder_of_a_full_disk_is_named_by_the_core_too(in_file, monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    X, y = many_rows(600)
    with pytest.raises(OSError, match="gone") as caught:
        GreedySVC(gamma=1.0, standardize=False).fit(in_file(X), y)
    assert "TMPDIR" in str(caught.value)


CHILD = """
    import json, sys, warnings
    import numpy as np
    import hardmargin
    from hardmargin import CoreVectorSVC, EnsembleSVC, GreedySVC

    def anonymous():
        with open("/proc/self/status") as lines:
            return 1024 * next(int(l.split()[1]) for l in lines if l.startswith("RssAnon"))

    from threading import Event, Thread

    warnings.simplefilter("ignore")
    path, name, limit, parameters = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
    X = np.load(path, mmap_mode="r")
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    model = getattr(hardmargin, name)(memory_limit=limit, **json.loads(parameters))
    small = np.random.default_rng(0).normal(size=(200, 3))
    getattr(hardmargin, name)().fit(small, small[:, 0] > 0).predict(small)
    before, peaks, done = anonymous(), [0], Event()

    def watch():
        while not done.wait(0.005):
            peaks.append(anonymous())

    watcher = Thread(target=watch)
    watcher.start()
    model.fit(X, y)
    score = float((model.predict(X) == y).mean())
    done.set()
    watcher.join()
    print(json.dumps({"taken": max(peaks) - before, "score": score}))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("EnsembleSVC", {"n_trees": 1}),
        ("CoreVectorSVC", {}),
        ("GreedySVC", {"cv": 2, "max_stages": 100}),  # more would take minutes
        ("GreedySVC", {"gamma": 0.001, "max_visits": 4, "max_stages": 300}),
    ],
)
def test_files_may_be_larger_than_the_memory_limit(name, parameters, tmp_path):
    rng = np.random.default_rng(0)
    n, limit = 100_000, 50_000_000
    X = np.lib.format.open_memmap(tmp_path / "X.npy", mode="w+", dtype=np.float64, shape=(n, 100))
    for begin in range(0, n, 1_000):
        X[begin : begin + 1_000] = rng.normal(size=(1_000, 100))
    X.flush()
    assert X.nbytes > 1.5 * limit
    arguments = [str(tmp_path / "X.npy"), name, str(limit), json.dumps(parameters)]
    found = json.loads(output_of(textwrap.dedent(CHILD), *arguments))
    of_rows = 200 * n  # coefficients, classes, weights, orders and cells of the rows
    assert found["taken"] < 1.1 * limit + of_rows
    assert found["score"] > 0.5
