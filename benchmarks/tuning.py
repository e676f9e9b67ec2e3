"""Measure how fast models choose their own settings, against a grid search for SVC.

    python benchmarks/tuning.py [--data-dir DIR] [--n-jobs 1] [--repeats 3] [--sizes 1000,5000]

`EnsembleSVC()` and `GreedySVC()`, which choose inside `fit`, and GridSearchCV over 5 x 5 settings
of SVC with five folds take turns on the same rows, each in a process of its own and with the same
`n_jobs`. The rows go to a csv file; the ratios are printed.
"""

from __future__ import annotations

import argparse
import csv
import resource
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import forked
import numpy as np
from accuracy_sets import SETS
from forked import Row
from joblib.externals.loky import get_reusable_executor
from searched import searched_svc
from sklearn.datasets import load_digits, make_classification
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits

from hardmargin import EnsembleSVC, GreedySVC

Split = tuple[Any, Any, Any, Any]

HERE = Path(__file__).resolve().parent
MAX_TEST = 5_000
WARM_UP_ROWS = 100
SLOW_CELL_S = 60.0
RIVAL = "svc-grid"
MODELS: dict[str, Callable[[int, int], Any]] = {
    "ensemble": lambda _, n_jobs: EnsembleSVC(n_jobs=n_jobs, random_state=0),
    "greedy": lambda _, n_jobs: GreedySVC(n_jobs=n_jobs, random_state=0),
    RIVAL: lambda n_features, n_jobs: searched_svc(n_features, n_jobs=n_jobs),
}
COLUMNS = (
    *("set", "n_train", "n_features", "n_classes", "model", "repeat", "status", "wall_s"),
    *("cpu_s", "error", "n_jobs", "note"),
)
FROM_FOLDER = ("a9a", "covtype-2", "optdigits", "letter")


def main() -> None:
    options = parse()
    rows: list[Row] = []
    for name, parts in problems(options.data_dir, options.sizes):
        for row in measured(name, parts, options):
            rows.append(row)
            print(progress(row), file=sys.stderr, flush=True)
        write(options.out, rows)
    print(as_text(rows))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--data-dir", help="folder of the data files; without it, digits are the only real data"
    )
    parser.add_argument("--n-jobs", type=int, default=1, help="n_jobs of every model")
    parser.add_argument("--repeats", type=int, default=3, help="measurements per cell")
    parser.add_argument(
        "--rival-repeats", type=int, default=1, help="the same, for a grid search above 60 s"
    )
    parser.add_argument(
        "--sizes",
        type=lambda text: [int(size) for size in text.split(",")],
        default=[1_000, 5_000],
        help="comma-separated numbers of training rows",
    )
    parser.add_argument("--cut", type=float, default=3_600.0, help="seconds until a cell is cut")
    parser.add_argument("--out", type=Path, default=HERE / "tuning.csv")
    return parser.parse_args()


def problems(data_dir: str | None, sizes: list[int]) -> Iterator[tuple[str, Split]]:
    """Names and parts; a set with too few rows for a size is left out."""
    for name, (X, y) in readers(data_dir):
        for size in sizes:
            if size < 0.9 * len(y):
                n_test = min(MAX_TEST, len(y) - size)
                X_train, X_test, y_train, y_test = train_test_split(
                    X, y, train_size=size, test_size=n_test, stratify=y, random_state=0
                )
                yield name, (X_train, y_train, X_test, y_test)


def readers(data_dir: str | None) -> Iterator[tuple[str, tuple[Any, Any]]]:
    yield "generated", generated()
    if data_dir is None:
        yield "digits", load_digits(return_X_y=True)
        return
    for name in FROM_FOLDER:
        yield name, SETS[name].load(data_dir)


def generated() -> tuple[Any, Any]:
    """Two classes of two clusters each, in 20 features, with 5 % of the labels wrong."""
    return make_classification(
        20_000, 20, n_informative=10, n_clusters_per_class=2, flip_y=0.1, random_state=0
    )


def measured(name: str, parts: Split, options: argparse.Namespace) -> Iterator[Row]:
    """All repeats of one problem, in turns, so that a busy minute affects all models."""
    left = dict.fromkeys(MODELS, options.repeats)
    for repeat in range(options.repeats):
        for model in (m for m in MODELS if left[m] > repeat):
            work = partial(fit_and_score, model, parts, options.n_jobs)
            row = forked.run(work, options.cut)
            if row["status"] == "cut":
                row["wall_s"] = options.cut
            if row["status"] != "ok":
                left[model] = 0
            elif model == RIVAL and row["wall_s"] > SLOW_CELL_S:
                left[model] = options.rival_repeats
            yield {
                **{"set": name, "n_train": len(parts[1]), "n_features": parts[0].shape[1]},
                **{"n_classes": len(np.unique(parts[1])), "model": model, "repeat": repeat},
                **{"n_jobs": options.n_jobs},
                **row,
            }


def fit_and_score(name: str, parts: Split, n_jobs: int) -> Row:
    """Time one fit, after a small one that loads the code and starts the workers."""
    X, y, X_test, y_test = parts
    with threadpool_limits(n_jobs):
        small = first_of_each_class(y, WARM_UP_ROWS)
        MODELS[name](X.shape[1], n_jobs).fit(X[small], y[small])
        cpu, wall = cpu_seconds(), time.perf_counter()
        model = MODELS[name](X.shape[1], n_jobs).fit(X, y)
        wall = time.perf_counter() - wall
        if n_jobs != 1:
            # CPU time counts only workers that have ended, and includes their start and warm-up.
            get_reusable_executor().shutdown(wait=True)
        cpu = cpu_seconds() - cpu
        error = float(np.mean(model.predict(X_test) != y_test))
    return {"wall_s": wall, "cpu_s": cpu, "error": error}


def first_of_each_class(y: Any, n_rows: int) -> Any:
    """About `n_rows` row numbers, the same number of every class and at least five of each."""
    labels = np.unique(y)
    each = max(5, n_rows // len(labels))
    return np.concatenate([np.flatnonzero(y == label)[:each] for label in labels])


def cpu_seconds() -> float:
    """CPU time of this process, its threads and its finished children."""
    usages = [resource.getrusage(w) for w in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def write(path: Path, rows: list[Row]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow({k: f"{v:.6g}" if isinstance(v, float) else v for k, v in row.items()})


def progress(row: Row) -> str:
    what = f"{row['set']} {row['n_train']} {row['model']} {row['repeat']}: {row['status']}"
    keys = [k for k in ("wall_s", "cpu_s", "error", "note") if k in row]
    values = (f"{row[k]:.4g}" if isinstance(row[k], float) else row[k] for k in keys)
    return f"{what} " + ", ".join(f"{k} {v}" for k, v in zip(keys, values, strict=True))


HEADER = (
    *("set", "rows", "classes", "ours", "ours s", "grid s", "wall ratio (spread)"),
    *("CPU ratio (spread)", "error %", "grid's error %"),
)


def as_text(rows: list[Row]) -> str:
    """How many times faster than the grid search: the median over the repeats, and their range."""
    lines: list[tuple[str, ...]] = [HEADER]
    for name, size in dict.fromkeys((row["set"], row["n_train"]) for row in rows):
        problem = [row for row in rows if (row["set"], row["n_train"]) == (name, size)]
        grid = [row for row in problem if row["model"] == RIVAL and "wall_s" in row]
        for model in (m for m in MODELS if m != RIVAL):
            ours = [row for row in problem if row["model"] == model and row["status"] == "ok"]
            if ours and grid:
                lines.append(
                    (
                        *(name, f"{size:,}", str(ours[0]["n_classes"]), model),
                        *(middle(ours, "wall_s"), middle(grid, "wall_s")),
                        *(ratios(ours, grid, "wall_s"), ratios(ours, grid, "cpu_s")),
                        *(middle(ours, "error", 100), middle(grid, "error", 100)),
                    )
                )
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)


def middle(rows: list[Row], column: str, factor: float = 1.0) -> str:
    values = [row[column] * factor for row in rows if column in row]
    more = "> " if column == "wall_s" and any(row["status"] == "cut" for row in rows) else ""
    return f"{more}{median(values):.4g}" if values else ""


def ratios(ours: list[Row], grid: list[Row], column: str) -> str:
    """Round by round; a grid search measured once is compared with every round of ours."""
    theirs = [row[column] for row in grid if column in row]
    if not theirs:
        return ""
    each = [theirs[min(i, len(theirs) - 1)] / row[column] for i, row in enumerate(ours)]
    more = "> " if any(row["status"] == "cut" for row in grid) else ""
    return f"{more}{median(each):.1f} ({min(each):.1f}-{max(each):.1f})"


if __name__ == "__main__":
    main()
