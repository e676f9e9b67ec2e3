"""GreedySVC and EnsembleSVC beside scikit-learn's SVC, with and without a grid search.

    make demo        (or: python examples/demo.py)

Two data sets come with scikit-learn, one is generated. Half of the rows are used for training, the
other half for testing. EnsembleSVC() and GreedySVC() choose everything themselves, by 5-fold
cross-validation inside fit, and standardise the features; the others are given standardised ones.
The search is 5-fold and uses all cores; a single fit uses one.
"""

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median
from typing import Any

import sklearn
from joblib import parallel_config
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, make_classification
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import hardmargin
from hardmargin import EnsembleSVC, GreedySVC, RhoEnsembleSVC

Cs = [0.1, 1.0, 10.0, 100.0, 1000.0]
GAMMA_FACTORS = [1 / 16, 1 / 4, 1, 4, 16]  # times 1 / n_features, which gamma="scale" gives here
QUICK_S = 0.5  # faster fits are repeated

HEAD = (
    f"{'data':<15}{'classifier':<28}{'test error %':>14}{'fit seconds':>13}"
    f"{'support vectors':>17}{'speed-up':>10}"
)


@dataclass(frozen=True)
class Measured:
    """One classifier on one data set."""

    error: float
    standard_error: float
    seconds: float
    n_support: int


def main() -> None:
    print(
        f"hardmargin {hardmargin.__version__}, scikit-learn {sklearn.__version__}, "
        f"{os.cpu_count()} cores\n\n{HEAD}\n{'-' * len(HEAD)}"
    )
    tables = []
    for name, X, y in data_sets():
        results = {}
        for label, model in classifiers(X.shape[1]).items():
            results[label] = measure(model, X, y)
        print_block(name, X.shape, results)
        tables.append(results)
    print(
        "speed-up: fit seconds of SVC with C and gamma searched, divided by those of the line.\n"
        "±: standard error of an error on that many test rows.\n"
    )
    for ours in ("EnsembleSVC", "GreedySVC"):
        print(verdict(tables, ours, "SVC, C and gamma searched"))


def data_sets() -> Iterator[tuple[str, Any, Any]]:
    yield "breast cancer", *load_breast_cancer(return_X_y=True)
    yield "digits", *load_digits(return_X_y=True)
    X, y = make_classification(
        5_000,
        n_features=10,
        n_informative=10,
        n_redundant=0,
        n_clusters_per_class=8,
        flip_y=0.02,
        random_state=0,
    )
    yield "generated", X, y


def classifiers(n_features: int) -> dict[str, Any]:
    gammas = [factor / n_features for factor in GAMMA_FACTORS]
    return {
        "EnsembleSVC": EnsembleSVC(random_state=0),
        "GreedySVC": GreedySVC(random_state=0),
        "RhoEnsembleSVC": pipeline(RhoEnsembleSVC()),
        "GreedySVC, as published": pipeline(GreedySVC("scale", max_visits=1)),
        "SVC": pipeline(SVC()),
        "SVC, C and gamma searched": GridSearchCV(
            pipeline(SVC()), {"classify__C": Cs, "classify__gamma": gammas}
        ),
    }


def pipeline(classifier: Any) -> Pipeline:
    return Pipeline([("scale", StandardScaler()), ("classify", classifier)])


def measure(model: Any, X: Any, y: Any) -> Measured:
    X_train, X_test, y_train, y_test = train_test_split(
        X, y, test_size=0.5, stratify=y, random_state=0
    )
    times: list[float] = []
    while not times or (sum(times) < QUICK_S and len(times) < 20):
        model = clone(model)
        times.append(fit_seconds(model, X_train, y_train))
    error = 1 - model.score(X_test, y_test)
    fitted = getattr(model, "best_estimator_", model)
    fitted = fitted["classify"] if isinstance(fitted, Pipeline) else fitted
    standard_error = (error * (1 - error) / len(y_test)) ** 0.5
    return Measured(100 * error, 100 * standard_error, median(times), len(fitted.support_))


def fit_seconds(model: Any, X: Any, y: Any) -> float:
    cores = -1 if isinstance(model, GridSearchCV) else 1
    with parallel_config(backend="threading", n_jobs=cores):
        start = time.perf_counter()
        model.fit(X, y)
        return time.perf_counter() - start


def print_block(name: str, shape: tuple[int, int], results: dict[str, Measured]) -> None:
    slowest = results["SVC, C and gamma searched"].seconds
    left = [name, f"{shape[0]:,} x {shape[1]}"]
    for i, (label, measured) in enumerate(results.items()):
        error = f"{measured.error:.2f} ± {measured.standard_error:.2f}"
        print(
            f"{left[i] if i < len(left) else '':<15}{label:<28}{error:>14}"
            f"{measured.seconds:>13.3f}{measured.n_support:>17,}"
            f"{slowest / measured.seconds:>9,.0f}x"
        )
    print(flush=True)


def verdict(tables: list[dict[str, Measured]], ours: str, theirs: str) -> str:
    pairs = [(results[ours], results[theirs]) for results in tables]
    better = sum(a.error < b.error for a, b in pairs)
    worse = sum(a.error > b.error for a, b in pairs)
    faster = sum(a.seconds < b.seconds for a, b in pairs)
    return (
        f"{ours} against {theirs}: lower error on {better} of {len(pairs)} sets, "
        f"higher on {worse}; faster on {faster}."
    )


if __name__ == "__main__":
    main()
