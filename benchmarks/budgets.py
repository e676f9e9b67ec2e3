"""Measure what a time limit leaves of the accuracy.

    python benchmarks/budgets.py [--sizes 8000,30000,100000] [--limits 0.5,1,2,5,30] [--n-jobs 1]

EnsembleSVC and GreedySVC with `max_time` on generated rows: seconds of `fit`, rows that the model
was trained on, and accuracy and log-loss on 10,000 new rows. Each fit has a process of its own and
comes after a small one, so that its time does not include imports.
"""

from __future__ import annotations

import argparse
import time
import warnings
from functools import partial
from typing import Any

import forked
import numpy as np
from forked import Row
from sklearn.datasets import make_classification
from sklearn.metrics import log_loss
from threadpoolctl import threadpool_limits

from hardmargin import EnsembleSVC, GreedySVC

MODELS = {"EnsembleSVC": EnsembleSVC, "GreedySVC": GreedySVC}
N_TEST = 10_000
WARM_UP_ROWS = 200
CUT_S = 1_800.0
HEADER = ("model", "rows", "max_time", "seconds", "rows used", "accuracy", "log-loss")
WIDTH = max(map(len, (*MODELS, *HEADER)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", default="8000,30000,100000", help="rows to train on")
    parser.add_argument("--limits", default="0.5,1,2,5,30", help="seconds; 0 is no limit")
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--n-jobs", type=int, default=1)
    options = parser.parse_args()
    sizes = [int(size) for size in options.sizes.split(",")]
    limits = [float(limit) or None for limit in options.limits.split(",")]
    X, y = generated(max(sizes) + N_TEST)
    print(line(HEADER), flush=True)
    for name in options.models.split(","):
        for size in sizes:
            for limit in limits:
                model = MODELS[name](max_time=limit, n_jobs=options.n_jobs, random_state=0)
                row = forked.run(partial(measured, model, X, y, size, options.n_jobs), CUT_S)
                print(line(cells(name, size, limit, row)), flush=True)


def generated(n_rows: int) -> tuple[Any, Any]:
    """Eight of twenty columns matter, and a tenth of the labels is random."""
    return make_classification(
        n_rows, 20, n_informative=8, n_clusters_per_class=4, flip_y=0.1, random_state=0
    )


def measured(model: Any, X: Any, y: Any, size: int, n_jobs: int) -> Row:
    """Train on the first rows, and test on the last."""
    train, test = slice(size), slice(len(y) - N_TEST, None)
    with threadpool_limits(n_jobs), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        type(model)().fit(X[:WARM_UP_ROWS], y[:WARM_UP_ROWS])
        start = time.perf_counter()
        model.fit(X[train], y[train])
        seconds = time.perf_counter() - start
    probabilities = np.clip(model.predict_proba(X[test]), 1e-6, 1.0)
    return {
        "status": "ok",
        "seconds": seconds,
        "rows_used": model.n_samples_fit_,
        "accuracy": float(model.score(X[test], y[test])),
        "log_loss": float(log_loss(y[test], probabilities)),
    }


def cells(name: str, size: int, limit: float | None, row: Row) -> tuple[str, ...]:
    first = (name, f"{size:,}", "none" if limit is None else f"{limit:g}")
    if row["status"] != "ok":
        return (*first, f"{row['status']} {row.get('note', '')}")
    used = (f"{row['seconds']:.2f}", f"{row['rows_used']:,}")
    return (*first, *used, f"{row['accuracy']:.3f}", f"{row['log_loss']:.3f}")


def line(texts: tuple[str, ...]) -> str:
    return "  ".join(f"{text:<{WIDTH}}" for text in texts).rstrip()


if __name__ == "__main__":
    main()
