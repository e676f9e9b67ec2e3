"""Compare what a fit promises about new rows with what new rows get.

    python benchmarks/honesty.py [--data-dir DIR] [--kinds noise,weak] [--models ensemble,lightgbm]

Promised are the held-out log-loss and error: `cv_log_loss_` and `cv_error_` of ours, those of a
cross-validation of the others. The truth is measured on thousands of new rows of the same law
(`honesty_kinds.py`). One row per problem and model is appended to a csv file as soon as it is
measured, so a run that was stopped can be resumed; at its end `honesty_page.py` writes the page.
"""

from __future__ import annotations

import argparse
import csv
import math
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

# Before numpy is imported: one thread for every model.
os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")

import forked
import honesty_page
import numpy as np
import numpy.typing as npt
import separate
import sklearn
from accuracy import LEAST_PROBABILITY, names, rounded
from forked import Row
from honesty_kinds import KINDS, N_SPLITS, Cell, Problem, Skipped
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import hardmargin
from hardmargin import EnsembleSVC, GreedySVC

Array = npt.NDArray[Any]
Key = tuple[str, str, int, str]  # kind, cell, seed, model
Predict = Callable[[Array, Array, Array], Row]  # training rows, classes, new rows: `probabilities`

HERE = Path(__file__).resolve().parent
CUT_S = 900.0
N_BINS = 10  # of the calibration error
COLUMNS = (
    *("kind", "cell", "seed", "model", "status", "log_loss", "promised_log_loss"),
    *("promised_log_loss_std_error", "error", "promised_error", "promised_error_std_error"),
    *("calibration_error", "test_log_loss_std_error", "best_log_loss", "constant_log_loss"),
    *("constant_error", "fit_cpu_s", "promise_cpu_s", "n_train", "n_test", "n_features"),
    *("n_classes", "version", "note"),
)
OURS: dict[str, Callable[..., Any]] = {"ensemble": EnsembleSVC, "greedy": GreedySVC}
LOGISTIC = ("logistic", "logistic-cv")
SEPARATE = ("lightgbm", "catboost")  # in environments of their own
MODELS = (*OURS, *LOGISTIC, *SEPARATE)
MOST_SEEDS = {"catboost": 1}  # it takes as long as all others together


def main() -> None:
    options = parse()
    if options.tidy:
        tidy(options.out)
    elif not options.page:
        measure(options)
    rows = read(options.out)
    if not rows:
        sys.exit(f"{options.out} has no rows")
    page = options.out.with_name("HONESTY.md")
    page.write_text(honesty_page.page(rows, KINDS, MODELS), encoding="utf-8")
    print(page, file=sys.stderr)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", help="folder of the data files of the real tables")
    parser.add_argument(
        "--kinds",
        type=partial(names, known=KINDS),
        default=list(KINDS),
        help=f"comma-separated: {', '.join(KINDS)}",
    )
    parser.add_argument(
        "--models",
        type=partial(names, known=MODELS),
        default=list(MODELS),
        help=f"comma-separated: {', '.join(MODELS)}",
    )
    parser.add_argument("--cells", help="semicolon-separated names of cells, such as '100 x 50'")
    parser.add_argument("--seeds", type=int, help="seeds of every cell, instead of its own number")
    parser.add_argument("--first-seed", type=int, default=0, help="other problems of the same laws")
    parser.add_argument("--quick", action="store_true", help="small cells only, a seed each")
    parser.add_argument("--again", action="store_true", help="measure finished problems again")
    parser.add_argument("--cut", type=float, default=CUT_S, help="seconds until a fit is cut")
    parser.add_argument(
        "--env-dir",
        type=Path,
        default=HERE / ".venv-rivals",
        help=f"folder of the environments of {', '.join(SEPARATE)}, made if they are not there",
    )
    parser.add_argument("--out", type=Path, default=HERE / "honesty.csv")
    parser.add_argument("--page", action="store_true", help="only write the page")
    parser.add_argument(
        "--tidy", action="store_true", help="only sort the file, drop old rows, write the page"
    )
    return parser.parse_args()


def measure(options: argparse.Namespace) -> None:
    worker = cache(partial(separate.start, env_dir=options.env_dir))
    done = set() if options.again else finished(options.out)
    for kind, cell in chosen(options):
        n_seeds = options.seeds or (1 if options.quick else cell.n_seeds)
        for seed in range(options.first_seed, options.first_seed + n_seeds):
            models = [
                model
                for model in options.models
                if (kind, cell.name, seed, model) not in done
                and seed - options.first_seed < MOST_SEEDS.get(model, n_seeds)
            ]
            for row in measured(cell, seed, models, options, worker):
                row = {"kind": kind, "cell": cell.name, "seed": seed} | row
                append(options.out, row)
                print(progress(row), file=sys.stderr, flush=True)


def chosen(options: argparse.Namespace) -> Iterator[tuple[str, Cell]]:
    wanted = options.cells.split(";") if options.cells else None
    for kind in options.kinds:
        for cell in KINDS[kind].cells:
            if (not wanted or cell.name in wanted) and (cell.is_quick or not options.quick):
                yield kind, cell


def measured(
    cell: Cell,
    seed: int,
    models: Sequence[str],
    options: argparse.Namespace,
    worker: Callable[[str], separate.Worker | separate.Missing],
) -> Iterator[Row]:
    """The rows of some models of one problem."""
    if not models:
        return
    try:
        problem = cell.make(seed, options.data_dir)
    except Skipped as reason:
        yield from ({"model": m, "status": "missing", "note": str(reason)} for m in models)
        return
    if problem is None:
        return
    about = {
        **{"n_train": len(problem.y), "n_test": len(problem.y_test)},
        **{"n_features": problem.X.shape[1], "n_classes": n_classes(problem)},
        **of_constants(problem),
    }
    for model in models:
        if model in SEPARATE:
            row = cross_validated(partial(ask, worker(model), options.cut), problem)
        elif model in LOGISTIC:
            row = forked.run(partial(of_logistic, model, problem), options.cut)
        else:
            row = forked.run(partial(of_ours, model, problem), options.cut)
        row.setdefault("version", (hardmargin if model in OURS else sklearn).__version__)
        yield about | {"model": model} | row


def of_ours(name: str, problem: Problem) -> Row:
    """What a fit of ours promises, and what is true."""
    cv = N_SPLITS if problem.cv is None else problem.cv
    begin = time.process_time()
    model = OURS[name](cv=cv, random_state=0).fit(problem.X, problem.y, groups=problem.groups)
    row: Row = {"fit_cpu_s": time.process_time() - begin}
    for quantity in ("log_loss", "error"):
        row[f"promised_{quantity}"] = float(getattr(model, f"cv_{quantity}_", math.nan))
        std_error = getattr(model, f"cv_{quantity}_std_error_", math.nan)
        row[f"promised_{quantity}_std_error"] = float(std_error)
    return row | truth(problem, model.predict_proba(problem.X_test), model.predict(problem.X_test))


def of_logistic(name: str, problem: Problem) -> Row:
    return cross_validated(partial(logistic, name, problem.cv), problem)


def logistic(name: str, cv: Any, X: Array, y: Array, X_new: Array, groups: Array | None) -> Row:
    """Standardised columns; with its default C, or with the best of ten."""
    if name == "logistic":
        last: Any = LogisticRegression(max_iter=1_000)
    else:
        inner = splits(cv, X, y, groups)
        last = LogisticRegressionCV(cv=inner, scoring="neg_log_loss", max_iter=1_000)
    begin = time.process_time()
    model = make_pipeline(StandardScaler(), last).fit(X, y)
    row: Row = {"fit_cpu_s": time.process_time() - begin}
    return row | {"status": "ok", "probabilities": model.predict_proba(X_new)}


def ask(
    worker: separate.Worker | separate.Missing,
    cut: float,
    X: Array,
    y: Array,
    X_new: Array,
    _: Array | None,
) -> Row:
    return worker.run(X, y, X_new, cut)


def cross_validated(fit_and_predict: Callable[..., Row], problem: Problem) -> Row:
    """A model without a promise of its own: what its cross-validation says, and what is true."""
    X, y, groups, k = problem.X, problem.y, problem.groups, n_classes(problem)
    losses, wrong, cpu = [], [], 0.0
    for train, held in splits(problem.cv, X, y, groups):
        some = None if groups is None else groups[train]
        row = fit_and_predict(X[train], y[train], X[held], some)
        if row["status"] != "ok":
            return row
        P = whole(row["probabilities"], y[train], k)
        losses.append(losses_of(y[held], P))
        wrong.append(P.argmax(axis=1) != y[held])
        cpu += row["fit_cpu_s"]
    row = fit_and_predict(X, y, problem.X_test, groups)
    if row["status"] != "ok":
        return row
    result = {"status": "ok", "fit_cpu_s": row["fit_cpu_s"], "promise_cpu_s": cpu}
    if "version" in row:
        result["version"] = row["version"]
    for quantity, values in (("log_loss", losses), ("error", wrong)):
        every = np.concatenate(values)
        result[f"promised_{quantity}"] = float(every.mean())
        result[f"promised_{quantity}_std_error"] = std_error(every)
    P = row["probabilities"]
    return result | truth(problem, P, np.unique(y)[P.argmax(axis=1)])


def splits(cv: Any, X: Array, y: Array, groups: Array | None) -> list[tuple[Array, Array]]:
    """The splits that a user would make: those of the problem, or shuffled stratified folds."""
    if cv is None:
        cv = StratifiedKFold(N_SPLITS, shuffle=True, random_state=0)
    return list(cv.split(X, y, groups))


def whole(P: Array, y: Array, k: int) -> Array:
    """Probabilities of all classes: none for those that a fold has no rows of."""
    result = np.zeros((len(P), k))
    result[:, np.unique(y)] = P
    return result


def truth(problem: Problem, P: Array, labels: Array) -> Row:
    """What new rows get."""
    y = problem.y_test
    P = whole(P, problem.y, n_classes(problem))
    losses = losses_of(y, P)
    return {
        **{"log_loss": float(losses.mean()), "test_log_loss_std_error": std_error(losses)},
        **{"error": float(np.mean(labels != y)), "calibration_error": calibration_error(y, P)},
    }


def of_constants(problem: Problem) -> Row:
    """What the true probabilities get, and what the classes' shares in the training rows do."""
    y, k = problem.y_test, n_classes(problem)
    shares = np.bincount(problem.y, minlength=k) / len(problem.y)
    row: Row = {
        "constant_log_loss": float(losses_of(y, np.tile(shares, (len(y), 1))).mean()),
        "constant_error": float(np.mean(y != shares.argmax())),
    }
    if problem.best is not None:
        row["best_log_loss"] = float(losses_of(y, problem.best).mean())
    return row


def n_classes(problem: Problem) -> int:
    return int(max(problem.y.max(), problem.y_test.max())) + 1


def losses_of(y: Array, P: Array) -> Array:
    """Log-loss of every row, with the probabilities held away from zero as in `accuracy.py`."""
    P = np.clip(P, LEAST_PROBABILITY, 1.0)
    return -np.log(P[np.arange(len(y)), y] / P.sum(axis=1))


def std_error(values: Array) -> float:
    return float(np.std(values, ddof=1) / np.sqrt(len(values)))


def calibration_error(y: Array, P: Array) -> float:
    """How far the probability of a class is from its share, on average over rows and classes.

    Rows are compared with those that have about the same probability: bins of equal width.
    """
    errors = []
    for c in range(1 if P.shape[1] == 2 else 0, P.shape[1]):
        bins = np.minimum((P[:, c] * N_BINS).astype(int), N_BINS - 1)
        gaps = np.bincount(bins, P[:, c] - (y == c), minlength=N_BINS)
        errors.append(np.abs(gaps).sum() / len(y))
    return float(np.mean(errors))


def read(path: Path) -> list[Row]:
    """The rows of a file, the last one for every problem and model."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list({key_of(row): row for row in csv.DictReader(file)}.values())


def key_of(row: Row) -> Key:
    return row["kind"], row["cell"], int(row["seed"]), row["model"]


def finished(path: Path) -> set[Key]:
    """What needs no measuring; failed and missing ones are tried again."""
    return {key_of(row) for row in read(path) if row["status"] in ("ok", "cut")}


def append(path: Path, row: Row) -> None:
    is_new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        if is_new:
            writer.writeheader()
        writer.writerow({k: "" if v == "nan" else v for k, v in rounded(row).items()})


def tidy(path: Path) -> None:
    """Sort the rows, and keep the last one for every problem and model."""
    cells = {kind: [cell.name for cell in KINDS[kind].cells] for kind in KINDS}

    def place(row: Row) -> tuple[int, ...]:
        kind, cell, seed, model = key_of(row)
        return list(KINDS).index(kind), cells[kind].index(cell), seed, MODELS.index(model)

    rows = sorted(read(path), key=place)
    path.unlink(missing_ok=True)
    for row in rows:
        append(path, row)


def progress(row: Row) -> str:
    what = f"{row['kind']} {row['cell']} {row['seed']} {row['model']}"
    if row["status"] != "ok":
        return f"{what}: {row['status']} {row.get('note', '')}"
    return (
        f"{what}: log-loss {row['log_loss']:.4f} ({row['promised_log_loss']:.4f} promised), "
        f"error {row['error']:.3f} ({row['promised_error']:.3f}), {row['fit_cpu_s']:.2f} s"
    )


if __name__ == "__main__":
    main()
