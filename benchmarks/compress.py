"""Compare the time of `compress` with that of the fit, and what it leaves of the model.

    python benchmarks/compress.py [--shapes letters,digits] [--sizes 1000,5000,10000]
                                  [--classes 2,5,10] [--tolerances .1,.01] [--on]

Each line is one EnsembleSVC and one tolerance: processor seconds of the fit and of `compress`,
their ratio, support rows before and after, the change of the decision values, and the share of new
rows that both models predict alike. All support rows are left where `compress` ends because the
search would take longer than about five fits; with `--on`, it searches on. The shapes come first,
then generated rows of every size and number of classes. Everything runs on one thread.
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

import numpy as np
from sklearn.datasets import load_digits, make_classification
from threadpoolctl import threadpool_limits

from hardmargin import EnsembleSVC, compress

N_NEW = 2_000
HEADER = ("tolerance", "fit s", "compress s", "ratio", "before", "after", "change", "agree")

#: Rows for training and new ones, with their labels.
Split = tuple[Any, Any, Any]


def generated(n: int, n_classes: int, **params: float) -> Split:
    X, y = make_classification(
        n + N_NEW,
        n_features=20,
        n_informative=10,
        n_classes=n_classes,
        n_clusters_per_class=2,
        random_state=0,
        **params,
    )
    return X[:n], y[:n], X[n:]


def letters() -> Split:
    """Return 26 classes of three clusters each, 5,000 rows."""
    n, rng = 5_000, np.random.default_rng(0)
    centres = rng.normal(size=(3 * 26, 16))
    cluster = rng.integers(len(centres), size=n + N_NEW)
    X = centres[cluster] + 0.35 * rng.normal(size=(len(cluster), 16))
    return X[:n], (cluster % 26)[:n], X[n:]


def digits() -> Split:
    X, y = load_digits(return_X_y=True)
    order = np.random.RandomState(0).permutation(len(y))
    return X[order[:1200]], y[order[:1200]], X[order[1200:]]


SHAPES = {
    "clean": lambda: generated(5_000, 2, class_sep=2.0, flip_y=0.0),
    "noisy": lambda: generated(5_000, 2, class_sep=0.5, flip_y=0.3),
    "noisy-5": lambda: generated(5_000, 5),
    "digits": digits,
    "letters": letters,
    "cells": lambda: generated(20_000, 2),
}


def measure(name: str, split: Split, tolerances: list[float], max_time: float | None) -> None:
    """Fit once, compress for every tolerance, and print a line for each."""
    X, y, new = split
    begin = time.process_time()
    clf = EnsembleSVC(n_jobs=1).fit(X, y)
    fit_seconds = time.process_time() - begin
    before = clf.predict(new)
    for tolerance in tolerances:
        begin = time.process_time()
        small = compress(clf, tolerance=tolerance, max_time=max_time)
        seconds = time.process_time() - begin
        found = small.compression_
        agreement = (small.predict(new) == before).mean()
        print(
            f"{name:<12} {tolerance:>9} {fit_seconds:>9.2f} {seconds:>10.2f} "
            f"{seconds / fit_seconds:>9.1f} {found.n_support_before:>9,} {found.n_support:>9,} "
            f"{found.relative_change:>9.4f} {agreement:>9.4f}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shapes", default=",".join(SHAPES), help="'' for none")
    parser.add_argument("--sizes", default="1000,5000,10000")
    parser.add_argument("--classes", default="2,5,10")
    parser.add_argument("--tolerances", default=".1,.03,.01")
    parser.add_argument("--on", action="store_true", help="search on, however long it takes")
    arguments = parser.parse_args()
    shapes, sizes, classes = (
        [part for part in text.split(",") if part]
        for text in (arguments.shapes, arguments.sizes, arguments.classes)
    )
    tolerances = [float(text) for text in arguments.tolerances.split(",")]
    max_time = float("inf") if arguments.on else None
    warnings.simplefilter("ignore")
    print(f"{'rows':<12}", *(f"{name:>9}" for name in HEADER))
    with threadpool_limits(1):
        measure("", generated(200, 2), [], None)  # imports and first calls
        for name in shapes:
            measure(name, SHAPES[name](), tolerances, max_time)
        for n in sizes:
            for n_classes in classes:
                split = generated(int(n), int(n_classes))
                measure(f"{int(n):,} of {n_classes}", split, tolerances, max_time)


if __name__ == "__main__":
    main()
