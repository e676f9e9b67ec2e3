"""Measure one cell in a process of its own and print the results as JSON lines.

The first line is printed just before the clock starts, so that a cell that is cut still shows how
much processor time had gone into loading; the last holds the measurements.
"""

from __future__ import annotations

import json
import pickle
import resource
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

# Calls are repeated for this many seconds, as single times vary on a shared machine.
FILL_S = 1.0

Request = dict[str, Any]
Result = dict[str, Any]


def main() -> None:
    request: Request = json.loads(sys.argv[1])
    tasks = {"fit": fit, "predict": predict, "expand": expand, "small": small, "import": imports}
    result = tasks[request["task"]](request)
    result["peak_rss_mb"] = peak_rss_mb()
    print(json.dumps(result))


def fit(request: Request) -> Result:
    """Time a fit; also measure the test error and the time of the model's own prediction."""
    import data
    import rivals

    adapter = rivals.load(request["adapter"])
    problem = data.PROBLEMS[request["set"]]
    X_train, y_train, X_test, y_test = problem.read(request["data_dir"])
    model, result = clock(
        lambda: adapter.fit(X_train, y_train, problem.gamma, problem.C, request["n_jobs"]),
        cut=request["cut"],
        at_least=FILL_S,
    )
    if request["model"]:
        Path(request["model"]).write_bytes(pickle.dumps(model))
    predicted, prediction = clock(lambda: adapter.predict(model, X_test))
    return result | {
        "predict_wall_s": prediction["wall_s"],
        "predict_cpu_s": prediction["cpu_s"],
        "error": float((predicted != y_test).mean()),
        "n_support": adapter.n_support(model),
        "version": adapter.version(),
        "level": level(),
    }


def predict(request: Request) -> Result:
    """A rival's own prediction with the model that it fitted."""
    import data
    import numpy as np
    import rivals

    adapter = rivals.load(request["adapter"])
    model = pickle.loads(Path(request["model"]).read_bytes())
    _, _, X_test, y_test = data.PROBLEMS[request["set"]].read(request["data_dir"])
    adapter.predict(model, X_test[:256])
    predicted, result = clock(
        lambda: adapter.predict(model, X_test), cut=request["cut"], at_least=FILL_S
    )
    np.save(labels_file(request), predicted)
    return result | {
        "error": float((predicted != y_test).mean()),
        "n_support": adapter.n_support(model),
        "version": adapter.version(),
    }


def expand(request: Request) -> Result:
    """Our prediction with the support vectors, coefficients and intercepts of a rival's model."""
    import data
    import expansion
    import numpy as np
    import rivals

    from hardmargin.kernels import Kernel

    problem = data.PROBLEMS[request["set"]]
    model = expansion.of_model(pickle.loads(Path(request["model"]).read_bytes()))
    _, _, X_test, y_test = problem.read(request["data_dir"])
    kernel = Kernel("rbf", gamma=problem.gamma)

    def ours(X: Any) -> Any:
        decisions = kernel.expand(
            X, model.vectors, model.coef, dtype=request["dtype"], n_jobs=request["n_jobs"]
        )
        return expansion.labels(model, decisions)

    ours(X_test[:256])
    predicted, result = clock(lambda: ours(X_test), cut=request["cut"], at_least=FILL_S)
    theirs = np.load(labels_file(request))
    return result | {
        "error": float((predicted != y_test).mean()),
        "n_support": model.vectors.shape[0],
        "agreement": float((predicted == theirs).mean()),
        "version": rivals.load(request["adapter"]).version(),
        "level": level(),
    }


def small(request: Request) -> Result:
    """Many fits of a small set, after the first one has warmed everything up."""
    import data
    import rivals

    adapter = rivals.load(request["adapter"])
    problem = data.PROBLEMS[request["set"]]
    X_train, y_train, X_test, y_test = problem.read(request["data_dir"])

    def once() -> Any:
        return adapter.fit(X_train, y_train, problem.gamma, problem.C, request["n_jobs"])

    once()
    model, result = clock(once, cut=request["cut"], at_least=1.0)
    return result | {
        "error": float((adapter.predict(model, X_test) != y_test).mean()),
        "n_support": adapter.n_support(model),
        "version": adapter.version(),
        "level": level(),
    }


def imports(request: Request) -> Result:
    """What importing hardmargin adds for a user of scikit-learn's SVC."""
    import sklearn.svm  # noqa: F401

    def first_use() -> Any:
        import hardmargin

        return hardmargin.GreedySVC  # a lazy import would hide its cost until here

    _, result = clock(first_use)
    import rivals

    return result | {"version": rivals.load(request["adapter"]).version(), "level": level()}


def clock(
    call: Callable[[], Any], *, cut: float = 0.0, at_least: float = 0.0
) -> tuple[Any, Result]:
    """Time a call, or the mean of as many calls as fill `at_least` seconds.

    After `cut` seconds the alarm ends the process, which works inside compiled code too.
    """
    print(json.dumps({"cpu_before_s": time.process_time()}), flush=True)
    signal.setitimer(signal.ITIMER_REAL, cut)
    wall, cpu, calls = time.perf_counter(), time.process_time(), 0
    while calls == 0 or time.perf_counter() - wall < at_least:
        value = call()
        calls += 1
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    signal.setitimer(signal.ITIMER_REAL, 0.0)
    return value, {"wall_s": wall / calls, "cpu_s": cpu / calls}


def labels_file(request: Request) -> Path:
    return Path(request["model"]).with_suffix(".labels.npy")


def level() -> str:
    """Name the instruction set that hardmargin's core uses; empty if it is not loaded."""
    name = getattr(sys.modules.get("hardmargin._core"), "level", None)
    return str(name()) if callable(name) else ""


def peak_rss_mb() -> float:
    """Peak resident memory of this process in units of 1e6 bytes."""
    status = Path("/proc/self/status")
    if status.exists():  # ru_maxrss would count the parent's memory from before exec
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024 / 1e6
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


if __name__ == "__main__":
    main()
