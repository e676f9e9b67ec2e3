"""Measure errors and log-losses of self-tuning machines and of their rivals.

    python benchmarks/accuracy.py --data-dir DIR [--models ensemble,svc-grid] [--sets pima,vowel]

Every set has ten seeded splits, the same for every model. One row per set, split and model is
appended to a csv file as soon as it is measured, so a run that was stopped can be resumed;
`accuracy_page.py` makes the page from that file.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import forked
import numpy as np
import numpy.typing as npt
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

HERE = Path(__file__).resolve().parent
MAX_TRAIN, MAX_TEST = 1_000, 5_000
LEAST_PROBABILITY = 1e-6
CUT_S = 600.0
KEY = ("set", "split", "model")
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
    *("version", "note"),
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
MODELS = OURS | RIVALS
UNBALANCED_ONLY = ("ensemble-balanced", "greedy-balanced", "svc-grid-balanced")


def main() -> None:
    options = parse()
    if options.tidy:
        tidy(options.out)
        return
    done = set() if options.again else finished(options.out)
    for name in options.sets:
        models = [m for m in options.models if suits(m, SETS[name])]
        cells = [(split, m) for split in range(options.splits) for m in models]
        cells = [cell for cell in cells if (name, *cell) not in done]
        if cells:
            for row in measured(SETS[name], cells, options.data_dir, options.cut):
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
    parser.add_argument("--splits", type=int, default=10, help="number of splits")
    parser.add_argument("--again", action="store_true", help="measure finished cells again")
    parser.add_argument("--cut", type=float, default=CUT_S, help="seconds until a cell is cut")
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


def suits(model: str, data: DataSet) -> bool:
    return data.group == "unbalanced" or model not in UNBALANCED_ONLY


def measured(
    data: DataSet, cells: Iterable[tuple[int, str]], data_dir: str, cut: float
) -> Iterator[Row]:
    """The rows of some (split, model) pairs of one set."""
    X, y = data.load(data_dir)
    for split, model in cells:
        parts = divided(X, y, seed=split)
        row = forked.run(partial(fit_and_score, model, parts), cut)
        version = hardmargin.__version__ if model in OURS else sklearn.__version__
        yield {
            **{"set": data.name, "group": data.group, "split": split, "model": model},
            **{"n_train": len(parts[1]), "n_test": len(parts[3])},
            **{"n_features": X.shape[1], "n_classes": int(y.max()) + 1, "version": version},
            **row,
        }


def divided(X: Array, y: Array, seed: int) -> Split:
    """`X_train, y_train, X_test, y_test`: a random stratified split of limited size."""
    n_train = min(MAX_TRAIN, round(len(y) * 2 / 3))
    n_test = min(MAX_TEST, len(y) - n_train)
    train, test = train_test_split(
        np.arange(len(y)), train_size=n_train, test_size=n_test, stratify=y, random_state=seed
    )
    return X[train], y[train], X[test], y[test]


def fit_and_score(name: str, parts: Split) -> Row:
    """Fit one model with one thread, and measure it on the test part."""
    X, y, X_test, y_test = parts
    with threadpool_limits(1):
        wall, cpu = time.perf_counter(), time.process_time()
        model = MODELS[name](X.shape[1]).fit(X, y)
        row: Row = {
            "fit_wall_s": time.perf_counter() - wall,
            "fit_cpu_s": time.process_time() - cpu,
        }
        wall = time.perf_counter()
        predicted = model.predict(X_test)
        row["predict_s"] = time.perf_counter() - wall
        cpu = time.process_time()
        if is_calibrated := name.startswith("svc"):
            model = calibrated(model, X, y)
            row["calibrate_cpu_s"] = time.process_time() - cpu
        if is_calibrated or hasattr(model, "predict_proba"):
            probabilities = model.predict_proba(X_test)
            row["log_loss"] = loss(y_test, probabilities)
            if probabilities.shape[1] == 2:
                row["average_precision"] = average_precision_score(y_test, probabilities[:, 1])
    row["error"] = float(np.mean(predicted != y_test))
    row["balanced_error"] = 1.0 - balanced_accuracy_score(y_test, predicted)
    return row


def calibrated(model: Any, X: Array, y: Array) -> CalibratedClassifierCV:
    """SVC with probabilities, as scikit-learn recommends; its labels are not used."""
    best = getattr(model, "best_estimator_", model)
    return CalibratedClassifierCV(best, method="sigmoid", cv=5, ensemble=False).fit(X, y)


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


def cell_of(row: Row) -> tuple[str, int, str]:
    return row["set"], int(row["split"]), row["model"]


def finished(path: Path) -> set[tuple[str, int, str]]:
    """The cells that need no measuring; failed ones are tried again."""
    return {cell_of(row) for row in read(path) if row["status"] != "failed"}


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
        name, split, model = cell_of(row)
        return models.index(model), sets.index(name), split

    rows = sorted(read(path), key=place)
    path.unlink()
    for row in rows:
        append(path, row)


def progress(row: Row) -> str:
    what = f"{row['set']} {row['split']} {row['model']}"
    if row["status"] != "ok":
        return f"{what}: {row['status']} {row.get('note', '')}"
    keys = ("error", "balanced_error", "log_loss", "fit_cpu_s")
    return f"{what}: " + ", ".join(f"{k} {row[k]:.4g}" for k in keys if k in row)


if __name__ == "__main__":
    main()
