"""Compare the time of `compress` with that of the fit, and what it leaves of the model.

    python benchmarks/compress.py [--sizes 1000,5000,10000] [--classes 2,5,10] [--tolerances .1,.01]

Each line is one EnsembleSVC on generated rows and one tolerance: processor seconds of the fit and
of `compress`, their ratio, support rows before and after, the change of the decision values, and
the share of 2,000 new rows that both models predict alike. Everything runs on one thread.
"""

from __future__ import annotations

import argparse
import time
import warnings

from sklearn.datasets import make_classification
from threadpoolctl import threadpool_limits

from hardmargin import EnsembleSVC, compress

N_NEW = 2_000
HEADER = ("rows", "classes", "tolerance", "fit s", "compress s", "ratio", "before", "after")


def measure(n: int, n_classes: int, tolerances: list[float]) -> None:
    """Fit once, compress for every tolerance, and print a line for each."""
    X, y = make_classification(
        n + N_NEW,
        n_features=20,
        n_informative=10,
        n_classes=n_classes,
        n_clusters_per_class=2,
        random_state=0,
    )
    begin = time.process_time()
    clf = EnsembleSVC(n_jobs=1).fit(X[:n], y[:n])
    fit_seconds = time.process_time() - begin
    before = clf.predict(X[n:])
    for tolerance in tolerances:
        begin = time.process_time()
        small = compress(clf, tolerance=tolerance)
        seconds = time.process_time() - begin
        found = small.compression_
        agreement = (small.predict(X[n:]) == before).mean()
        print(
            f"{n:>9,} {n_classes:>9} {tolerance:>9} {fit_seconds:>9.2f} {seconds:>10.2f} "
            f"{seconds / fit_seconds:>9.1f} {found.n_support_before:>9,} {found.n_support:>9,} "
            f"{found.relative_change:>9.4f} {agreement:>9.4f}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", default="1000,5000,10000")
    parser.add_argument("--classes", default="2,5,10")
    parser.add_argument("--tolerances", default=".1,.03,.01")
    arguments = parser.parse_args()
    sizes, classes = (
        [int(n) for n in text.split(",")] for text in (arguments.sizes, arguments.classes)
    )
    tolerances = [float(text) for text in arguments.tolerances.split(",")]
    warnings.simplefilter("ignore")
    print(*(f"{name:>9}" for name in (*HEADER, "change", "agree")))
    with threadpool_limits(1):
        measure(200, 2, [])  # imports and first calls
        for n in sizes:
            for n_classes in classes:
                measure(n, n_classes, tolerances)


if __name__ == "__main__":
    main()
