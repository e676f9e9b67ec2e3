"""Measure what every choice that a fit makes with labels adds to its promises.

    python benchmarks/held_out.py [--cases cells,rank] [--seeds 3] [--out FILE]

Every case is a table, with or without a weak signal, and a model for which one choice matters most.
The promise is `cv_log_loss_` and `cv_error_` (stacking has none); the truth is measured on new rows
of the same law. A line of csv is appended to the file after every fit, and the means of all fits
are printed at the end: the page "What is held out from what" shows them. A measured fit is not
repeated.
"""

from __future__ import annotations

import argparse
import csv
import math
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from zlib import crc32

# Before numpy is imported: one thread for every model.
os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")

import numpy as np
import numpy.typing as npt
import pandas as pd
import scipy.sparse as sp
from scipy.special import expit

from hardmargin import DiversifiedSVC, EnsembleSVC, GreedySVC, MinimumEnclosingBall, PathSVC

Array = npt.NDArray[Any]
Row = dict[str, Any]
Draw = Callable[[np.random.Generator, int], tuple[Any, Array]]

N_NEW = 4_000
COLUMNS = (
    *("case", "seed", "promised_log_loss", "log_loss", "promised_log_loss_std_error"),
    *("promised_error", "error", "promised_error_std_error", "seconds"),
)


@dataclass(frozen=True)
class Case:
    """One choice: rows of one law, and a model that makes the choice."""

    name: str
    n_rows: int
    draw: Draw
    make: Callable[[], Any]
    n_seeds: int = 20


def numbers(rng: np.random.Generator, n: int, *, p: int, signal: float = 0.0) -> tuple[Any, Array]:
    """Normal columns; five of them move the log-odds by a standard deviation of `signal`."""
    X = rng.normal(size=(n, p))
    return X, drawn(rng, signal * X[:, :5].sum(axis=1) / math.sqrt(5))


def rare(rng: np.random.Generator, n: int, *, p: int, share: float) -> tuple[Any, Array]:
    """Noise, and a class that is a share of the rows."""
    return rng.normal(size=(n, p)), drawn(rng, np.full(n, math.log(share / (1 - share))))


def classes(rng: np.random.Generator, n: int, *, p: int, k: int) -> tuple[Any, Array]:
    """Noise and k classes."""
    return rng.normal(size=(n, p)), rng.integers(0, k, n)


def categories(
    rng: np.random.Generator, n: int, *, k: int, p: int, copied: bool = False
) -> tuple[Any, Array]:
    """A column of k categories beside columns of numbers, one of which may tell them too."""
    table = pd.DataFrame(rng.normal(size=(n, p)), columns=[f"x{j}" for j in range(p)])
    found = rng.integers(0, k, n)
    table["place"] = pd.Categorical([f"c{c}" for c in found], [f"c{c}" for c in range(k)])
    if copied:
        table["number"] = found / k
    return table, drawn(rng, np.zeros(n))


def directions(rng: np.random.Generator, n: int, *, p: int) -> tuple[Any, Array]:
    """Rows of norm one, which may be standardised or not."""
    X = rng.normal(size=(n, p))
    return X / np.linalg.norm(X, axis=1, keepdims=True), drawn(rng, np.zeros(n))


def words(rng: np.random.Generator, n: int, *, p: int, per_row: int) -> tuple[Any, Array]:
    """Sparse rows of norm one, like texts of a few words."""
    chosen = (p * rng.random((n, per_row)) ** 3).astype(np.int32)
    ends = np.arange(0, n * per_row + 1, per_row)
    X = sp.csr_array((np.full(n * per_row, per_row**-0.5), chosen.ravel(), ends), shape=(n, p))
    X.sum_duplicates()
    return X, drawn(rng, np.zeros(n))


def drawn(rng: np.random.Generator, log_odds: Array) -> Array:
    return (rng.random(len(log_odds)) < expit(log_odds)).astype(int)


noise = partial(partial, numbers)
ensemble = partial(partial, EnsembleSVC, random_state=0)
greedy = partial(partial, GreedySVC, random_state=0)
path = partial(partial, PathSVC, random_state=0)
stack = partial(partial, DiversifiedSVC, final_estimator="mlp", random_state=0)

CASES = (
    Case("relevance-ensemble", 200, noise(p=50), ensemble()),
    Case("relevance-greedy", 200, noise(p=50), greedy()),
    *(Case(f"cells-{p}", 12_000, noise(p=p), ensemble(), 3) for p in (10, 100, 400)),
    *(Case(f"cells-weak-{p}", 12_000, noise(p=p, signal=0.5), ensemble(), 3) for p in (10, 100)),
    Case("cells-20000", 20_000, noise(p=10), ensemble(), 3),
    Case("cells-three-trees", 12_000, noise(p=10), ensemble(n_trees=3), 3),
    Case("cells-classes", 16_000, partial(classes, p=10, k=3), ensemble(), 2),
    Case("cells-max-time", 12_000, noise(p=100), ensemble(max_time=15), 3),
    Case("categories-ensemble", 1_000, partial(categories, k=500, p=3), ensemble(), 10),
    Case("categories-greedy", 1_000, partial(categories, k=500, p=3), greedy(), 10),
    Case("categories-copied", 1_000, partial(categories, k=500, p=3, copied=True), ensemble(), 10),
    Case("categories-greedy-copied", 1_000, partial(categories, k=500, p=3, copied=True), greedy()),
    Case("categories-few", 1_000, partial(categories, k=60, p=3), ensemble(), 10),
    Case("categories-cells", 12_000, partial(categories, k=3_000, p=3), ensemble(), 2),
    Case("scaling", 300, partial(directions, p=50), ensemble()),
    Case("scaling-greedy", 300, partial(directions, p=50), greedy()),
    Case("text", 400, partial(words, p=3_000, per_row=20), ensemble()),
    Case("text-greedy", 400, partial(words, p=3_000, per_row=20), greedy()),
    Case("text-linear", 3_000, partial(words, p=3_000, per_row=20), ensemble(), 5),
    Case("rank", 500, noise(p=10), ensemble(rank=100)),
    Case("rank-auto", 3_000, noise(p=20), ensemble(rank="auto", memory_limit="40MB"), 5),
    Case("landmarks-greedy", 500, noise(p=10), ensemble(rank=100, landmarks="greedy")),
    Case(
        "weights-ensemble", 300, partial(rare, p=10, share=0.2), ensemble(class_weight="balanced")
    ),
    Case("weights-greedy", 300, partial(rare, p=10, share=0.2), greedy(class_weight="balanced")),
    Case("thresholds-greedy", 300, partial(rare, p=10, share=0.2), greedy()),
    Case("growth-ensemble", 3_000, noise(p=50), ensemble(max_time=1.0), 10),
    Case("growth-greedy", 3_000, noise(p=50), greedy(max_time=0.5), 10),
    Case("path-cv", 100, noise(p=10), path(), 40),
    Case("path-cv-weak", 100, noise(p=10, signal=2.0), path(), 40),
    Case("path-validation", 100, noise(p=10), path(selection="validation"), 40),
    Case("path-loo", 100, noise(p=10), path(selection="loo"), 40),
    Case("stacking", 300, noise(p=10), stack()),
    Case("stacking-cv", 300, noise(p=10), stack(cv=5)),
    Case("ball", 300, noise(p=10), partial(MinimumEnclosingBall, random_state=0)),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", help="beginnings of names, comma-separated")
    parser.add_argument("--seeds", type=int, help="seeds of every case, instead of its own number")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("held_out.csv"))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    wanted = tuple((options.cases or "").split(","))
    done = {(row["case"], int(row["seed"])) for row in read(options.out)}
    for case in CASES:
        for seed in range(options.seeds or case.n_seeds) if case.name.startswith(wanted) else ():
            if (case.name, seed) not in done:
                append(options.out, measured(case, seed))
    print_means(read(options.out))


def measured(case: Case, seed: int) -> Row:
    """What one fit promises, and what is true."""
    rng = np.random.default_rng([crc32(case.name.encode()), seed])
    X, y = case.draw(rng, case.n_rows + N_NEW)
    X, X_new = X[: case.n_rows], X[case.n_rows :]
    y, y_new = y[: case.n_rows], y[case.n_rows :]
    begin = time.perf_counter()
    model = case.make().fit(X, y)
    row: Row = {"case": case.name, "seed": seed, "seconds": time.perf_counter() - begin}
    if isinstance(model, MinimumEnclosingBall):  # the share of rows that it calls outliers
        row["promised_error"] = np.mean(model.predict(X) < 0)
        return row | {"error": np.mean(model.predict(X_new) < 0)}
    for quantity in ("log_loss", "error"):
        row[f"promised_{quantity}"] = getattr(model, f"cv_{quantity}_", math.nan)
        std_error = getattr(model, f"cv_{quantity}_std_error_", math.nan)
        row[f"promised_{quantity}_std_error"] = std_error
    if isinstance(model, PathSVC) and hasattr(model, "loo_bound_"):
        row["promised_error"] = model.loo_bound_
    weights = np.ones(len(y_new))
    if getattr(model, "class_weight", None) == "balanced":
        weights = (len(y) / np.bincount(y) / len(np.unique(y)))[y_new]
    row["error"] = np.average(model.predict(X_new) != y_new, weights=weights)
    if hasattr(model, "predict_proba"):
        own = model.predict_proba(X_new)[np.arange(len(y_new)), y_new]
        row["log_loss"] = np.average(-np.log(np.maximum(own, 1e-15)), weights=weights)
    return row


def read(path: Path) -> list[Row]:
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def append(path: Path, row: Row) -> None:
    is_new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        if is_new:
            writer.writeheader()
        writer.writerow({k: f"{v:.5g}" if isinstance(v, float) else v for k, v in row.items()})
    print(row, file=sys.stderr, flush=True)


def print_means(rows: Iterable[Row]) -> None:
    """Print means over the seeds, and their standard errors."""
    table = pd.DataFrame(rows)
    table[list(COLUMNS[1:])] = table[list(COLUMNS[1:])].apply(pd.to_numeric, errors="coerce")
    head = ("case", "fits", "loss", "promised - true", "worst", "error", "promised - true", "worst")
    print(("{:26}{:>5}" + "{:>8}{:>19}{:>9}" * 2).format(*head))
    for case in CASES:
        own = table[table["case"] == case.name]
        if not len(own):
            continue
        line = f"{case.name:26}{len(own):>5}"
        for quantity in ("log_loss", "error"):
            apart = own[f"promised_{quantity}"] - own[quantity]
            spread = apart.std() / math.sqrt(len(own))
            worst = apart.loc[apart.abs().idxmax()] if apart.notna().any() else math.nan
            between = f"{apart.mean():+.4f} ({spread:.4f})"
            line += f"{own[quantity].mean():>8.4f}{between:>19}{worst:>+9.3f}"
        print(line)


if __name__ == "__main__":
    main()
