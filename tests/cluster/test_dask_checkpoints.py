"""``checkpoint`` on a cluster: a fit that was broken off goes on to the same model."""

import time

import dask.array as da
import numpy as np
import pytest
from distributed import Client
from problems.cells import few_rows_are_many, many_rows

from hardmargin.checkpoint import Checkpoint, arrays_of
from hardmargin.dask import DaskEnsembleSVC, layer
from hardmargin.dask.cluster import Cluster, side_by_side


@pytest.fixture(autouse=True)
def _few_rows_are_many(monkeypatch):
    few_rows_are_many(monkeypatch)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "fit.checkpoint"


class Broken(BaseException):
    """What ends a fit, like KeyboardInterrupt."""


def end_after(n_steps, monkeypatch, end):
    """Call a function once that many steps have been taken and, as far as possible, kept."""
    step, taken = Checkpoint.step, []

    def counting(self, name, compute, is_finished=lambda: True):
        result = step(self, name, compute, is_finished)
        taken.append(name)
        if len(taken) == n_steps:
            self.write()
            end()
        return result

    monkeypatch.setattr(Checkpoint, "step", counting)
    return taken


@pytest.fixture
def learned(monkeypatch):
    """Cells that workers have learned; they are threads of this process."""
    cells, learn = [], layer.learn

    def counting(rows, cell, *rest):
        cells.append(cell)
        return learn(rows, cell, *rest)

    monkeypatch.setattr(layer, "learn", counting)
    return cells


def fitted(client, path=None, n=700, change=0.0, **parameters):
    X, y = many_rows(n)
    X = X.copy()
    X[-1, 0] += change
    dX, dy = da.from_array(X, chunks=(250, 4)), da.from_array(y, chunks=250)
    options = {"max_cell_rows": 100, "n_trees": 1, **parameters}
    return DaskEnsembleSVC(client=client, checkpoint=path, **options).fit(dX, dy)


def assert_same(found, expected):
    X, _ = many_rows(300, seed=1)
    np.testing.assert_array_equal(
        *(model.to_local().decision_function(X) for model in (found, expected))
    )
    assert found.cv_log_loss_ == expected.cv_log_loss_


def break_off(client, path, n_steps, monkeypatch, **parameters):
    """Begin a fit that ends after some steps."""

    def end():
        raise Broken

    with monkeypatch.context() as patch:
        end_after(n_steps, patch, end)
        with pytest.raises(Broken):
            fitted(client, path, **parameters)


@pytest.mark.parametrize("n_steps", [1, 7])
def test_a_fit_that_was_broken_off_learns_the_other_cells(
    n_steps, path, client, learned, monkeypatch
):
    expected = fitted(client)
    n_cells = len(learned)
    break_off(client, path, n_steps, monkeypatch)
    assert path.exists()
    while any(client.processing().values()):  # cells that were begun
        time.sleep(0.01)
    learned.clear()
    found = fitted(client, path)
    assert n_cells - len(learned) >= n_steps - 1  # the other step is the vote on a sample
    assert not path.exists()
    assert_same(found, expected)


def test_one_vote_is_one_step(path, client, monkeypatch):
    expected = fitted(client, n=200)
    break_off(client, path, 1, monkeypatch, n=200)
    monkeypatch.setattr("hardmargin.dask.estimator._fit_vote_of", None)  # it is not made again
    assert_same(fitted(client, path, n=200), expected)
    assert not path.exists()


def test_another_cluster_goes_on_after_the_first_is_lost(path, client, learned, monkeypatch):
    expected = fitted(client)
    n_cells = len(learned)
    options = {"processes": False, "n_workers": 1, "threads_per_worker": 1, "silence_logs": 50}
    with (
        Client(**options, dashboard_address=":0", set_as_default=False) as lost,
        monkeypatch.context() as patch,
    ):
        end_after(6, patch, lost.close)
        with pytest.raises(ConnectionError, match="scheduler is lost"):
            fitted(lost, path)
    learned.clear()
    assert_same(fitted(client, path), expected)
    assert len(learned) <= n_cells - 5


def test_other_fits_do_not_resume(path, client, monkeypatch):
    break_off(client, path, 1, monkeypatch)
    for other in ({"change": 1e-9}, {"max_cell_rows": 120}, {"n": 690}):
        with pytest.raises(ValueError, match="belongs to a different fit"):
            fitted(client, path, **other)
    assert path.exists()


def test_rows_are_hashed_where_they_are(client):
    X, y = da.ones((60, 3), chunks=(20, 3)), da.from_array(np.arange(60) % 2, chunks=20)
    rows, _ = side_by_side(X, y, Cluster(client))
    [hashes] = arrays_of(rows)
    assert hashes.shape == (3,)
    assert hashes.dtype.kind == "U"


def test_a_file_that_cannot_be_written_is_an_error(tmp_path, client):
    with pytest.raises(FileNotFoundError, match="create it first"):
        fitted(client, tmp_path / "none" / "fit.checkpoint", n=200)


@pytest.mark.filterwarnings("ignore:.*max_time")
def test_a_fit_that_ran_out_of_time_goes_on_to_the_same_model(client, path):
    expected = fitted(client)
    for seconds in (0.1, 0.4, 1.0):
        fitted(client, path, max_time=seconds)
        assert_same(fitted(client, path), expected)
        assert not path.exists()
