"""Measure DaskEnsembleSVC on one and two workers, and predict what more workers would do.

    python benchmarks/cluster.py [--sizes 50000,100000,200000] [--workers 1,2] [--page FILE]

Generated rows, a cluster of processes on this machine with one thread each. Every fit comes after a
small one on the same workers. Seconds of tasks are added up over the workers, as the scheduler
counts them; the client and the scheduler use the same cores, so that two workers on two cores are
slower here than on two machines. A model of the seconds, `a + b n + c n / workers`, is fitted to
them. What it says of other sizes is a prediction, not a measurement.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path
from typing import Any, NamedTuple

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster
from scipy.optimize import nnls
from sklearn.datasets import make_classification
from threadpoolctl import threadpool_limits

from hardmargin import EnsembleSVC
from hardmargin.dask import DaskEnsembleSVC

N_COLUMNS = 20
N_PARTITIONS = 10
WARM_UP_ROWS = 12_000

#: Tasks of every phase, by the names that the scheduler gives them.
PHASES = {
    "read, scale, route": ("labels", "n_rows", "on_block"),
    "machine of a sample": ("fit_sample_of",),
    "shuffle": ("split", "getitem", "joined"),
    "cells": ("learn_cell",),
    "judge, pack": ("shares", "held_logs", "packed"),
}

#: What the model is asked for.
PREDICTED_ROWS = 10**8
PREDICTED_WORKERS = (16, 64, 256)


class Run(NamedTuple):
    """One fit."""

    rows: int
    workers: int
    seconds: float
    phases: dict[str, float]
    shuffled: float
    cells: int


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", default="50000,100000,200000", help="rows to train on")
    parser.add_argument("--workers", default="1,2", help="numbers of workers")
    parser.add_argument("--page", type=Path, help="write the tables to this file, too")
    options = parser.parse_args()
    sizes = [int(size) for size in options.sizes.split(",")]
    X, y = generated(max(sizes))
    local = {size: seconds_of_local(X[:size], y[:size]) for size in sizes}
    runs = []
    for n_workers in map(int, options.workers.split(",")):
        for size in sizes:
            runs.append(measured(X[:size], y[:size], n_workers))
            print(line(runs[-1], local[size]), flush=True)
    text = page(runs, local)
    print("\n" + text)
    if options.page:
        options.page.write_text(text, encoding="utf-8")


def generated(n_rows: int) -> tuple[Any, Any]:
    """Eight of twenty columns matter, and a tenth of the labels is random."""
    return make_classification(
        n_rows, N_COLUMNS, n_informative=8, n_clusters_per_class=4, flip_y=0.1, random_state=0
    )


def seconds_of_local(X: Any, y: Any) -> float:
    """Seconds of the local estimator, on one thread."""
    begin = time.perf_counter()
    with threadpool_limits(1):
        EnsembleSVC(n_jobs=1).fit(X, y)
    return time.perf_counter() - begin


def measured(X: Any, y: Any, n_workers: int) -> Run:
    """Fit on a cluster of its own."""
    with (
        LocalCluster(
            n_workers=n_workers, threads_per_worker=1, dashboard_address=":0", silence_logs=50
        ) as cluster,
        Client(cluster) as client,
    ):
        fit(client, X[:WARM_UP_ROWS], y[:WARM_UP_ROWS])
        before, bytes_before = durations(client), received(client)
        begin = time.perf_counter()
        model = fit(client, X, y)
        seconds = time.perf_counter() - begin
        after, bytes_after = durations(client), received(client)
    phases = {
        phase: sum(after.get(name, 0.0) - before.get(name, 0.0) for name in names)
        for phase, names in PHASES.items()
    }
    n_cells = int(model.experts_["cells"].sum()) - 1
    return Run(len(X), n_workers, seconds, phases, bytes_after - bytes_before, n_cells)


def fit(client: Client, X: Any, y: Any) -> DaskEnsembleSVC:
    rows = -(-len(X) // N_PARTITIONS)
    dX, dy = da.from_array(X, chunks=(rows, N_COLUMNS)), da.from_array(y, chunks=rows)
    return DaskEnsembleSVC(client=client).fit(dX, dy)


def durations(client: Client) -> dict[str, float]:
    """Seconds that tasks of each name have run."""

    def of_scheduler(dask_scheduler: Any) -> dict[str, float]:
        prefixes = dask_scheduler.task_prefixes.items()
        return {name: float(own.all_durations["compute"]) for name, own in prefixes}

    return client.run_on_scheduler(of_scheduler)


def received(client: Client) -> float:
    """Bytes that workers have received from each other."""

    def of_worker(dask_worker: Any) -> float:
        return float(sum(one["total"] for one in dask_worker.transfer_incoming_log))

    return sum(client.run(of_worker).values())


def page(runs: list[Run], local: dict[int, float]) -> str:
    """Tables of the measurements and of the predictions, in Markdown."""
    phases = list(PHASES)
    head = ["rows", "workers", "seconds", "local, 1 thread", *phases, "MB moved", "cells"]
    table = [head, ["---:"] * len(head), *(row(run, local[run.rows]) for run in runs)]
    a, b, c = fitted(runs)
    error = max(abs(a + b * r.rows + c * r.rows / r.workers - r.seconds) / r.seconds for r in runs)
    lines = ["| " + " | ".join(cells) + " |" for cells in table]
    lines += [
        "",
        f"Model: seconds = {a:.1f} + {1e6 * b:.1f} n / 10⁶ + {1e6 * c:.1f} n / (10⁶ workers), at "
        f"most {100 * error:.0f} % off these measurements.",
        "",
        "| workers | predicted seconds for 10⁸ rows | hours |",
        "|---:|---:|---:|",
    ]
    for workers in PREDICTED_WORKERS:
        seconds = a + b * PREDICTED_ROWS + c * PREDICTED_ROWS / workers
        lines.append(f"| {workers} | {seconds:,.0f} | {seconds / 3600:.1f} |")
    return "\n".join(lines) + "\n"


def fitted(runs: list[Run]) -> tuple[float, float, float]:
    """Fit the model to relative errors; no coefficient is negative."""
    terms = np.array([[1.0, r.rows, r.rows / r.workers] for r in runs])
    seconds = np.array([r.seconds for r in runs])
    scales = terms.max(axis=0)
    found, _ = nnls(terms / scales / seconds[:, None], np.ones(len(runs)))
    a, b, c = found / scales
    return float(a), float(b), float(c)


def row(run: Run, local: float) -> list[str]:
    return [
        f"{run.rows:,}",
        str(run.workers),
        f"{run.seconds:.1f}",
        f"{local:.1f}",
        *(f"{seconds:.1f}" for seconds in run.phases.values()),
        f"{run.shuffled / 1e6:.0f}",
        str(run.cells),
    ]


def line(run: Run, local: float) -> str:
    return "  ".join(f"{cell:>9}" for cell in row(run, local))


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
