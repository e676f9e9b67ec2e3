"""Measure errors and log-losses of self-tuning machines and of their rivals.

    python benchmarks/accuracy.py --data-dir DIR [--models ensemble,catboost] [--sets pima,vowel]

Every set has seeded splits, the same for every model, with at most 250, 1,000 and 4,000 rows to
train. One row per size, set, split and model is appended to a csv file as soon as it is measured,
so a run that was stopped can be resumed; `accuracy_page.py` makes the page from that file.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import forked
import numpy as np
import numpy.typing as npt
import separate
import sklearn
from accuracy_sets import SETS, DataSet
from forked import Row
from searched import searched_svc, standardized_svc
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.metrics import average_precision_score, balanced_accuracy_score, log_loss
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits

import hardmargin
from hardmargin import EnsembleSVC, GreedySVC

Array = npt.NDArray[Any]
Split = tuple[Array, Array, Array, Array]
Cell = tuple[int, str, int, str]  # size, set, split, model

HERE = Path(__file__).resolve().parent
SIZES = (250, 1_000, 4_000)  # rows to train
MAIN_SIZE = 1_000  # every set is measured at this one; at the others, if they differ from it
MAX_TEST = 5_000
LEAST_PROBABILITY = 1e-6
CALIBRATION_FOLDS = 5  # every class needs as many rows
CUT_S = 600.0
KEY = ("rows", "set", "split", "model")
COLUMNS = (
    *(*KEY, "group", "status", "error", "balanced_error", "log_loss", "average_precision"),
    *(
        "fit_wall_s",
        "fit_cpu_s",
        "calibrate_cpu_s",
        "predict_s",
        "n_train",
        "n_test",
        "n_features",
        "n_classes",
    ),
    *("version", "note", "cv_log_loss"),
)

# Each function is given the number of features. Ours have defaults and are fitted to raw features.
OURS: dict[str, Callable[[int], Any]] = {
    "ensemble": lambda _: EnsembleSVC(random_state=0),
    "ensemble-balanced": lambda _: EnsembleSVC(class_weight="balanced", random_state=0),
    "greedy": lambda _: GreedySVC(random_state=0),
    "greedy-balanced": lambda _: GreedySVC(class_weight="balanced", random_state=0),
}
RIVALS: dict[str, Callable[[int], Any]] = {
    "svc-grid": lambda n_features: searched_svc(n_features),
    "svc-grid-balanced": lambda n_features: searched_svc(n_features, balanced=True),
    "svc": lambda _: standardized_svc(),
    "random-forest": lambda _: RandomForestClassifier(300, random_state=0),
    "hist-gradient-boosting": lambda _: HistGradientBoostingClassifier(random_state=0),
}
SEPARATE = separate.NAMES  # rivals in environments of their own
MODELS = (*OURS, *RIVALS, *SEPARATE)
UNBALANCED_ONLY = ("ensemble-balanced", "greedy-balanced", "svc-grid-balanced")

SPLITS = {250: 2, 1_000: 10, 4_000: 1}  # by size
SEPARATE_SPLITS = 2  # at most: CatBoost and xRFM take long


def main() -> None:
    options = parse()
    if options.tidy:
        tidy(options.out)
        return
    worker = cache(partial(separate.start, env_dir=options.env_dir))
    done = set() if options.again else finished(options.out)
    # All sets of a split before the next split: a run that is stopped early has seen every set.
    for split, name in product(range(options.splits or max(SPLITS.values())), options.sets):
        cells = [
            (size, split, model)
            for size, model in product(options.rows, options.models)
            if suits(model, SETS[name], size)
            and (options.splits or split < splits_of(model, size))
            and (size, name, split, model) not in done
        ]
        if cells:
            for row in measured(SETS[name], cells, options.data_dir, options.cut, worker):
                append(options.out, row)
                print(progress(row), file=sys.stderr, flush=True)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", required=True, help="folder of the data files")
    parser.add_argument(
        "--models",
        type=partial(names, known=MODELS),
        default=list(MODELS),
        help=f"comma-separated: {', '.join(MODELS)}",
    )
    parser.add_argument(
        "--sets",
        type=partial(names, known=SETS),
        default=list(SETS),
        help="comma-separated; accuracy_sets.py lists them",
    )
    parser.add_argument(
        "--rows",
        type=sizes,
        default=list(SIZES),
        help=f"most rows to train, comma-separated: {', '.join(map(str, SIZES))}",
    )
    parser.add_argument("--splits", type=int, help="number of splits, instead of that of SPLITS")
    parser.add_argument("--again", action="store_true", help="measure finished cells again")
    parser.add_argument("--cut", type=float, default=CUT_S, help="seconds until a cell is cut")
    parser.add_argument(
        "--env-dir",
        type=Path,
        default=HERE / ".venv-rivals",
        help=f"folder of the environments of {', '.join(SEPARATE)}, made if they are not there",
    )
    parser.add_argument("--out", type=Path, default=HERE / "accuracy.csv")
    parser.add_argument(
        "--tidy", action="store_true", help="only sort the file and drop rows measured again"
    )
    return parser.parse_args()


def names(text: str, known: Iterable[str]) -> list[str]:
    chosen = text.split(",")
    if unknown := [name for name in chosen if name not in known]:
        raise argparse.ArgumentTypeError(f"{unknown[0]!r} is none of {', '.join(known)}")
    return chosen


def sizes(text: str) -> list[int]:
    return [int(name) for name in names(text, known=[str(size) for size in SIZES])]


def suits(model: str, data: DataSet, size: int) -> bool:
    is_special = model in UNBALANCED_ONLY
    return not is_special or (data.group == "unbalanced" and size == MAIN_SIZE)


def splits_of(model: str, size: int) -> int:
    return min(SPLITS[size], SEPARATE_SPLITS) if model in SEPARATE else SPLITS[size]


def measured(
    data: DataSet,
    cells: Iterable[tuple[int, int, str]],
    data_dir: str,
    cut: float,
    worker: Callable[[str], separate.Worker | separate.Missing],
) -> Iterator[Row]:
    """The rows of some (size, split, model) triples of one set."""
    X, y = data.load(data_dir)
    for size, split, model in cells:
        if not differs(len(y), size):
            continue
        parts = divided(X, y, seed=split, size=size)
        if model in SEPARATE:
            row = scored(parts[3], worker(model).run(*parts[:3], cut))
        else:
            row = forked.run(partial(fit_and_score, model, parts), cut)
            row["version"] = hardmargin.__version__ if model in OURS else sklearn.__version__
        yield {
            **{"rows": size, "set": data.name, "group": data.group, "split": split},
            **{"model": model, "n_train": len(parts[1]), "n_test": len(parts[3])},
            **{"n_features": X.shape[1], "n_classes": int(y.max()) + 1},
            **row,
        }


def n_train(n_rows: int, size: int) -> int:
    return min(size, round(n_rows * 2 / 3))


def differs(n_rows: int, size: int) -> bool:
    """Whether a set is measured at this size: it has other splits than at the main size."""
    return size == MAIN_SIZE or n_train(n_rows, size) != n_train(n_rows, MAIN_SIZE)


def divided(X: Array, y: Array, seed: int, size: int) -> Split:
    """`X_train, y_train, X_test, y_test`: a random stratified split of limited size."""
    n = n_train(len(y), size)
    train, test = train_test_split(
        np.arange(len(y)),
        train_size=n,
        test_size=min(MAX_TEST, len(y) - n),
        stratify=y,
        random_state=seed,
    )
    return X[train], y[train], X[test], y[test]


def fit_and_score(name: str, parts: Split) -> Row:
    """Fit one model with one thread, and measure it on the test part."""
    X, y, X_test, y_test = parts
    with threadpool_limits(1):
        wall, cpu = time.perf_counter(), time.process_time()
        model = (OURS | RIVALS)[name](X.shape[1]).fit(X, y)
        row: Row = {
            "fit_wall_s": time.perf_counter() - wall,
            "fit_cpu_s": time.process_time() - cpu,
        }
        wall = time.perf_counter()
        row["labels"] = model.predict(X_test)
        row["predict_s"] = time.perf_counter() - wall
        if name in OURS and np.isfinite(model.cv_log_loss_):  # what fit expects of new rows
            row["cv_log_loss"] = model.cv_log_loss_
        if name.startswith("svc") and np.bincount(y).min() >= CALIBRATION_FOLDS:
            cpu = time.process_time()
            model = calibrated(model, X, y)
            row["calibrate_cpu_s"] = time.process_time() - cpu
        if hasattr(model, "predict_proba"):
            row["probabilities"] = model.predict_proba(X_test)
    return scored(y_test, row)


def scored(y: Array, row: Row) -> Row:
    """A row with the quality of its labels and probabilities in their place, if it has any."""
    labels, P = row.pop("labels", None), row.pop("probabilities", None)
    if labels is not None:
        row["error"] = float(np.mean(labels != y))
        row["balanced_error"] = 1.0 - balanced_accuracy_score(y, labels)
    if P is not None:
        row["log_loss"] = loss(y, P)
        if P.shape[1] == 2:
            row["average_precision"] = average_precision_score(y, P[:, 1])
    return row


def calibrated(model: Any, X: Array, y: Array) -> CalibratedClassifierCV:
    """SVC with probabilities, as scikit-learn recommends; its labels are not used."""
    best = getattr(model, "best_estimator_", model)
    folds = CALIBRATION_FOLDS
    return CalibratedClassifierCV(best, method="sigmoid", cv=folds, ensemble=False).fit(X, y)


def loss(y: Array, probabilities: Array) -> float:
    """Log-loss, with the probabilities held away from zero."""
    P = np.clip(probabilities, LEAST_PROBABILITY, 1.0)
    P /= P.sum(axis=1, keepdims=True)
    return float(log_loss(y, P, labels=np.arange(P.shape[1])))


def read(path: Path) -> list[Row]:
    """The rows of a file, the last one for every cell."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list({cell_of(row): row for row in csv.DictReader(file)}.values())


def cell_of(row: Row) -> Cell:
    return int(row["rows"]), row["set"], int(row["split"]), row["model"]


def finished(path: Path) -> set[Cell]:
    """The cells that need no measuring; failed and missing ones are tried again."""
    return {cell_of(row) for row in read(path) if row["status"] in ("ok", "cut")}


def append(path: Path, row: Row) -> None:
    is_new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        if is_new:
            writer.writeheader()
        writer.writerow(rounded(row))


def rounded(row: Row) -> Row:
    return {k: f"{v:.6g}" if isinstance(v, float) else v for k, v in row.items()}


def tidy(path: Path) -> None:
    """Sort the rows, and keep the last one for every cell."""
    sets, models = list(SETS), list(MODELS)

    def place(row: Row) -> tuple[int, ...]:
        size, name, split, model = cell_of(row)
        return size, models.index(model), sets.index(name), split

    rows = sorted(read(path), key=place)
    path.unlink()
    for row in rows:
        append(path, row)


def progress(row: Row) -> str:
    what = f"{row['rows']} {row['set']} {row['split']} {row['model']}"
    if row["status"] != "ok":
        return f"{what}: {row['status']} {row.get('note', '')}"
    keys = ("error", "balanced_error", "log_loss", "fit_cpu_s")
    return f"{what}: " + ", ".join(f"{k} {row[k]:.4g}" for k in keys if k in row)


if __name__ == "__main__":
    main()
