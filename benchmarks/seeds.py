"""Measure how much models depend on the seed that shuffles their folds.

    python benchmarks/seeds.py --data-dir DIR [--rows 300] [--sets breast,dna]

Every set is fitted with several seeds on the same rows. For one shuffle of the folds and for three,
it prints the standard deviation of a probability between the seeds, the largest difference, the
share of new rows whose label changes, log-loss and error on new rows, and the seconds of a fit.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
from accuracy import divided, loss
from accuracy_sets import SETS

from hardmargin import EnsembleSVC
from hardmargin.estimators import ensemble

DEFAULT_SETS = "a9a,australian,banana,breast,bupa,chess,covtype-2,contraceptive,dna,hayes-roth"
SHUFFLES = (1, 3)
QUANTITIES = ("deviation", "largest", "labels", "log-loss", "error", "seconds")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", required=True, help="folder of the data files")
    parser.add_argument("--sets", default=DEFAULT_SETS, help="comma-separated")
    parser.add_argument("--rows", type=int, default=300, help="training rows at most")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--splits", type=int, default=2)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print(f"{'set':16}{'shuffles':>9}" + "".join(f"{name:>11}" for name in QUANTITIES))
    means: dict[int, list[np.ndarray]] = {n: [] for n in SHUFFLES}
    for name in options.sets.split(","):
        X, y = SETS[name].load(options.data_dir)
        for n_shuffles in SHUFFLES:
            rows = [
                measured(X, y, split, n_shuffles, options.rows, options.seeds)
                for split in range(options.splits)
            ]
            means[n_shuffles].append(np.mean(rows, axis=0))
            print_row(name, n_shuffles, means[n_shuffles][-1])
    for n_shuffles, of_sets in means.items():
        print_row("mean", n_shuffles, np.mean(of_sets, axis=0))


def measured(
    X: np.ndarray, y: np.ndarray, split: int, n_shuffles: int, n_rows: int, n_seeds: int
) -> list[float]:
    """`QUANTITIES` of one split of one set."""
    X_train, y_train, X_test, y_test = divided(X, y, seed=split)
    X_train, y_train = X_train[:n_rows], y_train[:n_rows]
    ensemble.N_SHUFFLES = n_shuffles
    start = time.perf_counter()
    models = [EnsembleSVC(random_state=seed).fit(X_train, y_train) for seed in range(n_seeds)]
    seconds = (time.perf_counter() - start) / n_seeds
    P = np.array([model.predict_proba(X_test[:1000]) for model in models])
    labels, truth = P.argmax(axis=2), y_test[:1000]
    return [
        P.std(axis=0).mean(),
        np.ptp(P, axis=0).max(),
        (labels != labels[0]).any(axis=0).mean(),
        float(np.mean([loss(truth, p) for p in P])),
        float(np.mean(labels != truth)),
        seconds,
    ]


def print_row(name: str, n_shuffles: int, values: np.ndarray) -> None:
    print(f"{name:16}{n_shuffles:>9}" + "".join(f"{v:>11.4f}" for v in values), flush=True)


if __name__ == "__main__":
    main()
