"""Measure what limits of time and memory leave of the accuracy, and whether fits keep them.

    python benchmarks/budgets.py accuracy [--sizes 8000,30000,100000] [--limits 0.5,1,2,5,30]
    python benchmarks/budgets.py time [--limits 1] [--models PathSVC] [--cases "8,000 rows"]
    python benchmarks/budgets.py memory [--limits 100] [--models PathSVC] [--cases "8,000 rows"]

`accuracy`: EnsembleSVC and GreedySVC with `max_time` on generated rows: seconds of `fit`, rows that
the model was trained on, and accuracy and log-loss on 10,000 new rows.

`time`: every estimator with `max_time`, on rows that take longer without one: seconds of `fit`
beyond the limit, and whether they are at most a tenth of it and half a second.

`memory`: every estimator with `memory_limit`, in MB, on rows whose kernel matrix is larger: the
most anonymous memory that `fit` took in ten seconds, beyond what the process had before it, and
whether it is at most the limit and a tenth.

Each fit has a process of its own and comes after a small one, so that imports do not count.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import re
import time
import warnings
from dataclasses import dataclass
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Any

import forked
import numpy as np
import pandas as pd
import scipy.sparse as sp
from forked import Row
from sklearn.datasets import load_diabetes, make_classification
from sklearn.metrics import log_loss
from threadpoolctl import threadpool_limits

import hardmargin
from hardmargin.resources import give_back_memory

GROWING = ("EnsembleSVC", "GreedySVC")
ALL = tuple(
    name
    for name in hardmargin.__all__
    if name[0].isupper() and "max_time" in signature(getattr(hardmargin, name)).parameters
)

#: Other ways to fit, whose time is measured too.
SETTINGS: dict[str, tuple[str, dict[str, Any]]] = {
    "EnsembleSVC, 20 stages": ("EnsembleSVC", {"n_stages": 20}),
    "GreedySVC, given gamma": ("GreedySVC", {"gamma": 0.05}),
    "RhoEnsembleSVC, low rank": ("RhoEnsembleSVC", {"rank": "auto"}),
    "DiversifiedSVC, 3 splits": ("DiversifiedSVC", {"cv": 3}),
    "DiversifiedSVC, network": ("DiversifiedSVC", {"final_estimator": "mlp"}),
    "Discriminants, Newton": ("MarginDiscriminantAnalysis", {"solver": "newton"}),
    "Discriminants, Nystroem": ("MarginDiscriminantAnalysis", {"solver": "nystroem"}),
    "PathSVC, leave one out": ("PathSVC", {"selection": "loo"}),
}
N_TEST = 10_000
WARM_UP_ROWS = 200
CUT_S = 1_800.0

#: Fits that memory is measured of end after this many seconds.
MEMORY_S = 10.0

#: What a fit may take beyond its limit: this share of it, and for time some seconds more.
EXCESS, EXCESS_S = 0.1, 0.5


@dataclass(frozen=True)
class Case:
    """Rows, and how they are fitted.

    Attributes
    ----------
    n_rows, n_columns, n_classes : int
        What is generated.
    kernel : str or None
        The kernel; None is the estimator's own.
    is_sparse : bool
        Whether rows are sparse, with one entry in a hundred.
    is_table : bool
        Whether columns are strings in a data frame, with fifty values each.
    is_quantity : bool
        Whether the rows are those of `load_diabetes`, with every value of its target as a class.
    """

    n_rows: int
    n_columns: int = 20
    n_classes: int = 2
    kernel: str | None = None
    is_sparse: bool = False
    is_table: bool = False
    is_quantity: bool = False

    def rows(self) -> tuple[Any, Any]:
        """Generate them."""
        rng = np.random.default_rng(0)
        if self.is_quantity:
            return load_diabetes(return_X_y=True)
        if self.is_table:
            return string_table(self.n_rows, self.n_columns, rng)
        if self.is_sparse:
            shape = self.n_rows, self.n_columns
            X = sp.random_array(shape, density=0.01, format="csr", rng=rng)
            y = np.asarray(X @ rng.normal(size=self.n_columns)) > 0
            return X, y.astype(int) ^ (rng.random(self.n_rows) < 0.1)
        X, y = generated(self.n_rows, self.n_columns, self.n_classes)
        return (X @ X.T, y) if self.kernel == "precomputed" else (X, y)


TIME_CASES = {
    "3,000 rows": Case(3_000),
    "8,000 rows": Case(8_000),
    "8,000 rows, laplacian": Case(8_000, kernel="laplacian"),
    "8,000 rows, linear": Case(8_000, kernel="linear"),
    "5,000 rows, precomputed": Case(5_000, kernel="precomputed"),
    "8,000 rows, 500 columns": Case(8_000, 500),
    "20,000 rows, 8 classes": Case(20_000, n_classes=8),
    "10,000 sparse rows": Case(10_000, 5_000, is_sparse=True),
    "30,000 rows": Case(30_000),
    "100,000 rows": Case(100_000),
    "1,000 rows": Case(1_000),
    "214 classes": Case(442, 10, 214, is_quantity=True),
    "200,000 rows of strings": Case(200_000, 10, is_table=True),
}
MEMORY_CASES = {
    "3,000 rows": Case(3_000),
    "20,000 rows": Case(20_000),
    "20,000 rows, 400 columns": Case(20_000, 400),
    "20,000 rows, 8 classes": Case(20_000, n_classes=8),
    "20,000 rows, linear": Case(20_000, kernel="linear"),
    "10,000 sparse rows": Case(10_000, 5_000, is_sparse=True),
    "100,000 rows": Case(100_000),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("accuracy", help="what time limits leave of the accuracy")
    command.add_argument("--sizes", default="8000,30000,100000", help="rows to train on")
    command.add_argument("--limits", default="0.5,1,2,5,30", help="seconds; 0 is no limit")
    command.add_argument("--models", default=",".join(GROWING))
    command.set_defaults(run=accuracies)
    for name, cases, limits, unit, run in (
        ("time", TIME_CASES, "1", "seconds", times),
        ("memory", MEMORY_CASES, "100", "MB", memories),
    ):
        command = commands.add_parser(name, help=f"whether fits keep limits on {name}")
        command.add_argument("--limits", default=limits, help=unit)
        models = (*ALL, *SETTINGS) if name == "time" else ALL
        for what, known in (("models", models), ("cases", cases)):
            command.add_argument(f"--{what}", default=";".join(known), help="between semicolons")
        command.set_defaults(run=run)
    for command in commands.choices.values():
        command.add_argument("--n-jobs", type=int, default=1)
    options = parser.parse_args()
    options.run(options)


# --- what time limits leave of the accuracy ------------------------------------------------------


def accuracies(options: Any) -> None:
    sizes = [int(size) for size in options.sizes.split(",")]
    limits = [float(limit) or None for limit in options.limits.split(",")]
    X, y = generated(max(sizes) + N_TEST)
    show("model", "rows", "max_time", "seconds", "rows used", "accuracy", "log-loss")
    for name in options.models.split(","):
        for size in sizes:
            for limit in limits:
                model = made(name, max_time=limit, n_jobs=options.n_jobs)
                row = forked.run(partial(accuracy, model, X, y, size, options.n_jobs), CUT_S)
                first = (name, f"{size:,}", "none" if limit is None else f"{limit:g}")
                if row["status"] != "ok":
                    show(*first, f"{row['status']} {row.get('note', '')}")
                    continue
                used = (f"{row['seconds']:.2f}", f"{row['rows_used']:,}")
                show(*first, *used, f"{row['accuracy']:.3f}", f"{row['log_loss']:.3f}")


def accuracy(model: Any, X: Any, y: Any, size: int, n_jobs: int) -> Row:
    """Train on the first rows, and test on the last."""
    train, test = slice(size), slice(len(y) - N_TEST, None)
    row = seconds_of(model, X[train], y[train], n_jobs)
    probabilities = np.clip(model.predict_proba(X[test]), 1e-6, 1.0)
    return row | {
        "rows_used": model.n_samples_fit_,
        "accuracy": float(model.score(X[test], y[test])),
        "log_loss": float(log_loss(y[test], probabilities)),
    }


# --- whether limits are kept ---------------------------------------------------------------------


def times(options: Any) -> None:
    show("model", "rows", "max_time", "beyond", "kept", "warnings")
    for name, limit, case, X, y in grid(options, TIME_CASES):
        model = made(name, kernel=TIME_CASES[case].kernel, max_time=limit, n_jobs=options.n_jobs)
        row = forked.run(partial(seconds_of, model, X, y, options.n_jobs), CUT_S)
        beyond = row.get("seconds", np.inf) - limit
        is_kept = beyond <= EXCESS * limit + EXCESS_S
        found = outcome(row, f"{beyond:+.2f} s", is_kept)
        show(name, case, f"{limit:g}", *found)


def memories(options: Any) -> None:
    show("model", "rows", "MB", "taken", "kept", "warnings")
    for name, limit, case, X, y in grid(options, MEMORY_CASES):
        kernel = MEMORY_CASES[case].kernel
        limits = {"memory_limit": 1e6 * limit, "max_time": MEMORY_S}
        model = made(name, kernel=kernel, n_jobs=options.n_jobs, **limits)
        row = forked.run(partial(memory_of, model, X, y, options.n_jobs), CUT_S)
        taken = row.get("taken", np.inf) / 1e6
        found = outcome(row, f"{taken:.0f} MB", taken <= (1 + EXCESS) * limit)
        show(name, case, f"{limit:g}", *found)


def grid(options: Any, cases: dict[str, Case]) -> Any:
    """Go through all cases, limits and models; rows are generated once."""
    for case in options.cases.split(";"):
        X, y = cases[case].rows()
        for limit in map(float, options.limits.split(",")):
            for name in options.models.split(";"):
                yield name, limit, case, X, y


def outcome(row: Row, taken: str, is_kept: bool) -> tuple[str, ...]:
    """What a fit took, whether the limit was kept, and what it said."""
    if row["status"] == "failed" and "seconds" not in row:
        return "-", "-", f"failed: {row['note']}"
    if row["status"] == "cut":
        return "-", "NO", f"did not end in {CUT_S:g} s"
    return taken, "yes" if is_kept else "NO", row["said"]


def seconds_of(model: Any, X: Any, y: Any, n_jobs: int) -> Row:
    """Time a fit, and keep what it said, also if it raised."""
    with threadpool_limits(n_jobs):
        warm_up(model)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            start = time.perf_counter()
            try:
                model.fit(X, y)
            except (TimeoutError, ValueError) as error:
                warnings.warn(f"{type(error).__name__}: {error}", stacklevel=1)
            seconds = time.perf_counter() - start
    said = "; ".join(str(w.message)[:60] for w in caught)
    return {"status": "ok", "seconds": seconds, "said": said}


def memory_of(model: Any, X: Any, y: Any, n_jobs: int) -> Row:
    """Measure the most anonymous memory that a fit has beyond what there was before it.

    Pages of temporary files do not count: the system can write them back whenever it needs memory.
    """
    with threadpool_limits(n_jobs):
        warm_up(model)
        give_back_memory()
        before = anonymous(os.getpid())
        done, peak = multiprocessing.Event(), multiprocessing.Value("q", 0)
        watcher = multiprocessing.Process(target=watch, args=(os.getpid(), done, peak))
        watcher.start()
        row = seconds_of(model, X, y, n_jobs)
        done.set()
        watcher.join()
    return row | {"taken": peak.value - before}


def watch(pid: int, done: Any, peak: Any) -> None:
    """Look at the memory of a process every few milliseconds."""
    while not done.wait(0.002):
        peak.value = max(peak.value, anonymous(pid))


def warm_up(model: Any) -> None:
    """Fit few rows, so that everything is imported."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        type(model)().fit(*generated(WARM_UP_ROWS))


def anonymous(pid: int) -> int:
    """Read how much memory of a process is not that of files, in bytes."""
    text = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    found = re.search(r"^RssAnon:\s+(\d+) kB", text, re.MULTILINE)
    assert found is not None
    return 1024 * int(found[1])


# --- rows, models and tables ---------------------------------------------------------------------


def string_table(n_rows: int, n_columns: int, rng: np.random.Generator) -> tuple[Any, Any]:
    """Columns of fifty strings each, whose effects add up; a tenth of the labels is random."""
    codes = rng.integers(50, size=(n_rows, n_columns))
    effects = rng.normal(size=(50, n_columns))
    scores = effects[codes, np.arange(n_columns)].sum(axis=1)
    y = (scores > 0).astype(int) ^ (rng.random(n_rows) < 0.1)
    names = np.array([f"value {code}" for code in range(50)], dtype=object)
    return pd.DataFrame({f"column {j}": names[codes[:, j]] for j in range(n_columns)}), y


def generated(n_rows: int, n_columns: int = 20, n_classes: int = 2) -> tuple[Any, Any]:
    """Eight of the columns matter, and a tenth of the labels is random."""
    return make_classification(
        n_rows,
        n_columns,
        n_informative=8,
        n_classes=n_classes,
        n_clusters_per_class=4,
        flip_y=0.1,
        random_state=0,
    )


def made(name: str, kernel: str | None = None, **parameters: Any) -> Any:
    """Make an estimator, or one with other settings; None is its own kernel."""
    if kernel is not None:
        parameters["kernel"] = kernel
    name, settings = SETTINGS.get(name, (name, {}))
    return getattr(hardmargin, name)(random_state=0, **settings, **parameters)


def show(*texts: str) -> None:
    print(
        "  ".join(
            f"{text:<26}" if k < 2 else f"{text:<9}" for k, text in enumerate(texts)
        ).rstrip(),
        flush=True,
    )


if __name__ == "__main__":
    main()
