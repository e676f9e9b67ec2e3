"""Which of our two classifiers is faster, on generated tables of many shapes.

    python benchmarks/shapes.py [--shapes 1000x20,100000x20]

Two classes of overlapping clusters, a twentieth of the labels wrong, one thread. Prints processor
seconds of `fit`, processor microseconds per row of `predict_proba`, error in percent and
support rows, in two minutes.
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits

from hardmargin import EnsembleSVC, GreedySVC

SHAPES = (
    *("250x20", "1000x20", "4000x20", "10000x20", "30000x20", "100000x20"),
    *("1000x200", "4000x200", "10000x200", "1000x1000"),
)
N_TEST = 5_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shapes", default=",".join(SHAPES), help="rows x columns")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # of more columns than rows
    print("| rows x columns | model | fit, s | predict, us per row | error, % | support rows |")
    print("|---|---|---|---|---|---|")
    with threadpool_limits(1):
        for shape in options.shapes.split(","):
            n_rows, n_columns = map(int, shape.split("x"))
            split = generated(n_rows, n_columns)
            for model in (EnsembleSVC(), GreedySVC()):
                print(
                    f"| {shape} | {type(model).__name__} | {measured(model, *split)} |", flush=True
                )


def generated(n_rows: int, n_columns: int) -> Any:
    X, y = make_classification(
        n_rows + N_TEST,
        n_columns,
        n_informative=10,
        n_redundant=5,
        n_clusters_per_class=4,
        flip_y=0.1,
        random_state=0,
    )
    return train_test_split(X, y, train_size=n_rows, random_state=0)


def measured(model: Any, X: Any, X_test: Any, y: Any, y_test: Any) -> str:
    start = time.process_time()
    model.fit(X, y)
    fitted = time.process_time()
    model.predict_proba(X_test)
    predict_us = 1e6 * (time.process_time() - fitted) / len(X_test)
    error = 100 * (1 - model.score(X_test, y_test))
    support = f"{len(model.support_):,}" if hasattr(model, "support_") else "experts"
    return f"{fitted - start:.1f} | {predict_us:.0f} | {error:.1f} | {support}"


if __name__ == "__main__":
    main()
