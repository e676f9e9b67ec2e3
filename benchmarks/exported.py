"""Measure files of models: loading them, and their graphs in onnxruntime.

    python benchmarks/exported.py load [--repeats 5]
    python benchmarks/exported.py onnx [--rows 5000]

`load` prints the processor time of loading a model in a fresh process, after `import sklearn`.

`onnx` prints the time per row of `predict_proba` and of the graph, both with one thread and taking
turns, and how much the graph adds to the memory of its process: in MB, and in float64 numbers per
row of the call and support row. Every model has a process of its own.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread
from typing import Any

SINGLE_THREADED = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

LOAD = """
import sys, time
import sklearn
start = time.process_time()
from hardmargin.io import load
load(sys.argv[1])
print(time.process_time() - start)
"""

#: Estimator, its parameters, and how many rows, columns and classes it is fitted to.
MODELS: dict[str, tuple[str, dict[str, Any], tuple[int, int, int]]] = {
    "RBF, float32": ("ParzenClassifier", {"dtype": "float32"}, (10_000, 20, 2)),
    "RBF, float64": ("ParzenClassifier", {"dtype": "float64"}, (10_000, 20, 2)),
    "RBF, float32, wide": ("ParzenClassifier", {"dtype": "float32"}, (10_000, 200, 2)),
    "RBF, float64, wide": ("ParzenClassifier", {"dtype": "float64"}, (10_000, 200, 2)),
    "Laplacian, float32": (
        "ParzenClassifier",
        {"kernel": "laplacian", "dtype": "float32"},
        (10_000, 20, 2),
    ),
    "Laplacian, float64": (
        "ParzenClassifier",
        {"kernel": "laplacian", "dtype": "float64"},
        (10_000, 20, 2),
    ),
    "Laplacian, float32, wide": (
        "ParzenClassifier",
        {"kernel": "laplacian", "dtype": "float32"},
        (10_000, 200, 2),
    ),
    "EnsembleSVC": ("EnsembleSVC", {}, (10_000, 20, 2)),
    "EnsembleSVC, several kernels": ("EnsembleSVC", {}, (3_000, 20, 5)),
    "EnsembleSVC, ten classes": ("EnsembleSVC", {}, (3_000, 20, 10)),
    "EnsembleSVC, mixture": ("EnsembleSVC", {"n_trees": 1}, (20_000, 20, 2)),
    "GreedySVC": ("GreedySVC", {}, (3_000, 20, 2)),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("load", help="the time of loading a model")
    command.add_argument("--repeats", type=int, default=5)
    command = commands.add_parser("onnx", help="time and memory of graphs")
    command.add_argument("--rows", type=int, default=5_000, help="of a call")
    command.add_argument("--only", choices=list(MODELS), help="a single model, in this process")
    options = parser.parse_args()
    if options.command == "load":
        measure_loading(options.repeats)
    elif options.only is not None:
        measure_graph(options.only, options.rows)
    else:
        print(
            f"{'model':<30}{'us/row':>8}{'native':>8}{'ratio':>7}{'MB':>7}{'numbers':>9}",
            flush=True,
        )
        for name in MODELS:
            arguments = ["onnx", "--rows", str(options.rows), "--only", name]
            subprocess.run(
                [sys.executable, __file__, *arguments], env=os.environ | SINGLE_THREADED, check=True
            )


def measure_loading(repeats: int) -> None:
    from sklearn.datasets import load_iris

    from hardmargin import EnsembleSVC
    from hardmargin.io import dump

    with tempfile.TemporaryDirectory() as folder:
        model = EnsembleSVC().fit(*load_iris(return_X_y=True))
        path = dump(model, Path(folder, "model.skops"))
        command = [sys.executable, "-c", LOAD, str(path)]
        seconds = [float(subprocess.check_output(command)) for _ in range(repeats)]
    print(f"load: {statistics.median(seconds):.2f} s after import sklearn")


def measure_graph(name: str, n_rows: int) -> None:
    import numpy as np
    import onnxruntime
    from sklearn.datasets import make_classification

    import hardmargin
    from hardmargin.onnx import to_onnx

    warnings.simplefilter("ignore")
    estimator, parameters, (n, n_columns, n_classes) = MODELS[name]
    X, y = make_classification(
        n + n_rows,
        n_columns,
        n_informative=10,
        n_classes=n_classes,
        n_clusters_per_class=3,
        flip_y=0.02,
        random_state=0,
    )
    model = getattr(hardmargin, estimator)(**parameters).fit(X[:n], y[:n])
    model.set_params(n_jobs=1)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(to_onnx(model, n_columns).SerializeToString(), options)
    queries = X[n:]
    answer = getattr(model, "predict_proba", model.decision_function)

    def graph() -> Any:
        return session.run(None, {"X": queries})[1]

    session.run(None, {"X": queries[:10]})
    added = memory_added(graph)
    assert np.isfinite(graph()).all()
    times = [(seconds(lambda: answer(queries)), seconds(graph)) for _ in range(3)]
    native, ours = (statistics.median(column) / n_rows * 1e6 for column in zip(*times, strict=True))
    n_support = len(model.support_vectors_) if hasattr(model, "support_vectors_") else n
    numbers = added / 8 / n_rows / n_support
    print(
        f"{name:<30}{ours:>8.1f}{native:>8.1f}{ours / native:>7.1f}"
        f"{added / 1e6:>7.0f}{numbers:>9.2f}",
        flush=True,
    )


def seconds(work: Callable[[], Any]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def memory_added(work: Callable[[], Any]) -> int:
    """Return the most anonymous memory that some work adds, in bytes."""
    found, done = [anonymous()], Event()

    def watch() -> None:
        while not done.wait(0.002):
            found.append(anonymous())

    watcher = Thread(target=watch)
    watcher.start()
    work()
    done.set()
    watcher.join()
    return max(found) - found[0]


def anonymous() -> int:
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return 1024 * int(re.search(r"RssAnon:\s+(\d+)", status)[1])


if __name__ == "__main__":
    main()
