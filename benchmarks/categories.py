"""Measure tables with columns of many categories: ours, and CatBoost, which is made for these.

    python benchmarks/categories.py --data-dir DIR [--models ensemble,greedy] [--out FILE]

DIR has `<table>.csv.gz` with the target last. Targets that are numbers are cut at their median.
CatBoost runs in an environment of its own (`rivals/catboost.txt`), with this same program and
`--models catboost`. Every measurement is printed, and appended to the file, as a line of csv.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

SIZES = (4_000, 10_000)
N_SPLITS = 3
MAX_TEST = 5_000
LEAST_PROBABILITY = 1e-6

#: Tables, and the columns of names that are left out.
TABLES: dict[str, list[str]] = {
    "flight_delays": [],
    "bank_churn": [],
    "video_games": ["Name"],
    "taxis": ["pickup", "dropoff"],
}


def read(folder: Path, name: str) -> tuple[pd.DataFrame, np.ndarray[Any, Any]]:
    """Read a table; strings that are numbers in most rows become numbers."""
    table = pd.read_csv(folder / f"{name}.csv.gz")
    target = table.iloc[:, -1]
    X = table.iloc[:, :-1].drop(columns=TABLES[name])
    for column in X.columns:
        numbers = pd.to_numeric(X[column], errors="coerce")
        if numbers.notna().sum() > 0.5 * X[column].notna().sum() > 0:
            X[column] = numbers
    if target.nunique() > 2:
        target = target > target.median()
    return X, np.unique(target, return_inverse=True)[1]


def ensemble(X: pd.DataFrame, y: Any, X_test: pd.DataFrame) -> Any:
    """EnsembleSVC with its defaults."""
    from hardmargin import EnsembleSVC

    return EnsembleSVC(random_state=0).fit(X, y).predict_proba(X_test)[:, 1]


def greedy(X: pd.DataFrame, y: Any, X_test: pd.DataFrame) -> Any:
    """GreedySVC with its defaults."""
    from hardmargin import GreedySVC

    return GreedySVC(random_state=0).fit(X, y).predict_proba(X_test)[:, 1]


def catboost(X: pd.DataFrame, y: Any, X_test: pd.DataFrame) -> Any:
    """CatBoost with its defaults, told which columns are categories."""
    from catboost import CatBoostClassifier

    names = [c for c in X.columns if X[c].dtype.kind not in "biuf"]
    parts = [
        part.assign(**{c: part[c].astype(object).fillna("missing").astype(str) for c in names})
        for part in (X, X_test)
    ]
    model = CatBoostClassifier(
        cat_features=names, random_seed=0, verbose=False, thread_count=1, allow_writing_files=False
    )
    return model.fit(parts[0], y).predict_proba(parts[1])[:, 1]


MODELS: dict[str, Callable[..., Any]] = {
    "ensemble": ensemble,
    "greedy": greedy,
    "catboost": catboost,
}


def measured(model: str, X: pd.DataFrame, y: Any, n_rows: int, split: int) -> str | None:
    """Fit one model on one split; None if the table has too few rows."""
    if n_rows > 0.8 * len(y):
        return None
    order = np.random.default_rng(split).permutation(len(y))
    train, test = order[:n_rows], order[n_rows : n_rows + MAX_TEST]
    begin = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        chance = MODELS[model](X.iloc[train], y[train], X.iloc[test])
    seconds = time.process_time() - begin
    error = np.mean((chance > 0.5) != y[test])
    of_truth = np.where(y[test] == 1, chance, 1 - chance)
    loss = -np.log(np.clip(of_truth, LEAST_PROBABILITY, 1)).mean()
    return f"{n_rows},{split},{model},{loss:.4f},{100 * error:.2f},{seconds:.1f}"


def main() -> None:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--models", default="ensemble,greedy")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    for name in TABLES:
        X, y = read(options.data_dir, name)
        for n_rows in SIZES:
            for model in options.models.split(","):
                for split in range(N_SPLITS):
                    found = measured(model, X, y, n_rows, split)
                    if found is None:
                        continue
                    print(f"{name},{found}", flush=True)
                    if options.out is not None:
                        with options.out.open("a") as file:
                            file.write(f"{name},{found}\n")


if __name__ == "__main__":
    main()
