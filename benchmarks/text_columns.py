"""Measure what a column of numbers beside text does, by the share of the distance that it gets.

    python benchmarks/text_columns.py [--sets "4 packages;2 packages"] [--shares .03,.1,.3,1]

Beside TF-IDF stands one column with a mean of 50,000 and a standard deviation of 10,000: `tells`
moves with the class by as much as the numbers of a class differ among themselves, `useless` knows
nothing. Lines are errors and log-losses on test documents, means over the seeds: of the text alone,
with the column as it came (share 0), and with it brought to a share of the text's size.
`SHARE_OF_TEXT` is the share that the package uses. One thread, and no data files.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.metrics import log_loss
from text_sets import SETS
from threadpoolctl import threadpool_limits

from hardmargin import EnsembleSVC, GreedySVC
from hardmargin.estimators._base import mixed_scaling

MODELS = {"ensemble": EnsembleSVC, "greedy": GreedySVC}
NEVER_DENSE = 1.0


def columns(y: Any, y_test: Any, seed: int) -> Iterator[tuple[str, Any, Any]]:
    """Yield each column's name, and its values in training and test documents."""
    rng = np.random.default_rng(seed)
    classes, codes = np.unique(np.concatenate([y, y_test]), return_inverse=True)
    noise = rng.normal(size=len(codes))
    told = rng.permutation(len(classes))[codes]
    for name, values in (("tells", noise + told), ("useless", noise)):
        raw = 50_000 + 10_000 * (values - values.mean()) / values.std()
        yield name, raw[: len(y)], raw[len(y) :]


def beside(X: Any, column: Any) -> Any:
    return sp.csr_array(sp.hstack([X, sp.csr_array(column[:, None])]))


def measured(model: str, X: Any, y: Any, X_test: Any, y_test: Any) -> tuple[float, float]:
    """Error and log-loss on the test documents."""
    clf = MODELS[model](random_state=0, n_jobs=1).fit(X, y)
    shares = clf.predict_proba(X_test)
    error = (clf.classes_[shares.argmax(axis=1)] != y_test).mean()
    return float(error), float(log_loss(y_test, shares, labels=clf.classes_))


def lines(name: str, model: str, shares: list[float], n_seeds: int) -> Iterator[tuple[str, Any]]:
    """Yield what each line of the table says, and its means over the seeds."""
    found: dict[str, list[tuple[float, float]]] = {}
    least_density = mixed_scaling.LEAST_DENSITY
    for seed in range(n_seeds):
        X, y, X_test, y_test = SETS[name](seed=seed)  # type: ignore[call-arg]
        found.setdefault("text alone", []).append(measured(model, X, y, X_test, y_test))
        for column, own, own_test in columns(y, y_test, seed):
            rows = beside(X, own), y, beside(X_test, own_test), y_test
            for share in (0.0, *shares):
                mixed_scaling.LEAST_DENSITY = least_density if share else NEVER_DENSE
                mixed_scaling.SHARE_OF_TEXT = share
                found.setdefault(f"{column}, share {share:g}", []).append(measured(model, *rows))
        mixed_scaling.LEAST_DENSITY = least_density
    for label, values in found.items():
        yield label, np.mean(values, axis=0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", default="4 packages;2 packages;9 packages")
    parser.add_argument("--models", default="ensemble,greedy")
    parser.add_argument("--shares", default=".03,.1,.3,1")
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    shares = [float(share) for share in options.shares.split(",")]
    with threadpool_limits(1):
        for name in options.sets.split(";"):
            for model in options.models.split(","):
                print(f"{name}, {model}")
                for label, (error, loss) in lines(name, model, shares, options.seeds):
                    print(f"  {label:<22} error {error:.4f}  log-loss {loss:.4f}", flush=True)


if __name__ == "__main__":
    main()
