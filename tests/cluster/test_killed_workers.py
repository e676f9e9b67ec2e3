"""Workers and schedulers that die: fits run on to the same result, or say what happened."""

import functools
import os
import random
import signal
import threading
import time

import dask
import dask.array as da
import numpy as np
import pytest
from distributed import Client, LocalCluster, Status
from distributed.comm.core import CommClosedError
from distributed.utils import get_mp_context
from problems.cells import few_rows_are_many, many_rows
from problems.processes import CONTEXT, PRELOADED, start_program

from hardmargin import EnsembleSVC
from hardmargin.dask import DaskEnsembleSVC
from hardmargin.dask.cluster import Cluster

pytestmark = pytest.mark.filterwarnings("ignore:memory_limit:UserWarning")

#: All kinds of work, and several tasks for each worker.
PARAMETERS = {"max_cell_rows": 150, "n_trees": 1, "memory_limit": "10MB"}
N_ROWS, N_ROWS_OF_BLOCK = 900, 300


@pytest.fixture(autouse=True)
def _few_rows_are_many(monkeypatch):
    few_rows_are_many(monkeypatch)


@functools.cache
def local():
    """The model that a fit without trouble gives, and its seconds."""
    begin = time.monotonic()
    return EnsembleSVC(**PARAMETERS).fit(*many_rows(N_ROWS)), time.monotonic() - begin


def fitted(client):
    X, y = many_rows(N_ROWS)
    dX = da.from_array(X, chunks=(N_ROWS_OF_BLOCK, 4))
    dy = da.from_array(y, chunks=N_ROWS_OF_BLOCK)
    return DaskEnsembleSVC(client=client, **PARAMETERS).fit(dX, dy)


@pytest.fixture(scope="module")
def client():
    """A cluster of two processes, which replaces one that is killed by a new fork."""
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with dask.config.set({"distributed.worker.multiprocessing-method": CONTEXT.get_start_method()}):
        get_mp_context().set_forkserver_preload(PRELOADED)  # by itself it would preload less
        with LocalCluster(**options, silence_logs=50) as cluster, Client(cluster) as client:
            yield client


def pids(client):
    """Processes of the workers that have started: Dask gives up those that end before."""
    nannies = client.cluster.workers.values()
    return [n.pid for n in nannies if n.process and n.process.status == Status.running]


FURTHER_SEEDS = [pytest.param(seed, marks=pytest.mark.full) for seed in range(3, 10)]


@pytest.mark.parametrize("seed", [*range(3), *FURTHER_SEEDS])
def test_a_worker_that_is_killed_changes_nothing(seed, client):
    expected, seconds = local()
    rng = random.Random(seed)
    client.wait_for_workers(2, timeout=60)
    victim = rng.choice(sorted(pids(client)))
    # On a cluster, a fit of few rows takes more than four times as long.
    killer = threading.Timer(rng.uniform(0, 4 * seconds), os.kill, (victim, signal.SIGKILL))
    killer.start()
    found = fitted(client).to_local()
    killer.join()
    end = time.monotonic() + 60
    while victim in (known := pids(client)) or len(known) < 2:  # as the other tests need two
        assert time.monotonic() < end
        time.sleep(0.01)
    for own, other in zip(found._experts_.layers, expected._experts_.layers, strict=True):
        np.testing.assert_allclose(own.values, other.values, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(found._experts_.weights, expected._experts_.weights, rtol=1e-6)


SCHEDULER = """
import time
from distributed import LocalCluster

options = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": ":0"}
cluster = LocalCluster(processes=False, protocol="tcp", **options)
print(cluster.scheduler_address, flush=True)
time.sleep(600)
"""


def test_a_scheduler_that_is_killed_is_an_error(tmp_path):
    process, (printed, errors) = start_program(SCHEDULER, (), tmp_path)
    try:
        while not (address := printed.read_text() if printed.exists() else "").endswith("\n"):
            assert process.is_alive(), errors.read_text()
            time.sleep(0.01)
        killer = threading.Timer(0.5, process.kill)
        with Client(address.strip(), timeout=20, set_as_default=False) as client:
            killer.start()
            with pytest.raises(ConnectionError, match="scheduler is lost"):
                fit_for_ever(client)
    finally:
        process.kill()
        process.join()


def fit_for_ever(client):
    while True:
        fitted(client)


def test_a_scheduler_that_goes_while_results_are_fetched_is_an_error(client, monkeypatch):
    def gather(tasks):
        raise CommClosedError("reset by peer")

    cluster = Cluster(client)
    task = cluster.submit(int)
    monkeypatch.setattr(client, "gather", gather)
    with pytest.raises(ConnectionError, match="scheduler is lost"):
        cluster.results([task])
