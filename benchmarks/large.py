"""Measure fits of many rows with nothing to tune.

    python benchmarks/large.py --data-dir DIR [--jobs covtype,sets,growth,threads,step]

One thread, if nothing else is said. The rows go to `large.csv`, and tables to `LARGE.md`.

- `covtype`: 50,000 and 400,000 rows of two classes, and 50,000 of seven; with LightGBM's defaults,
  LightGBM with 500 trees of 63 leaves, and GreedySVC.
- `adult`: all rows, as CSR.
- `sets`: ten sets of 16,000 rows, with LightGBM's defaults.
- `growth`: covtype from 20,000 to 400,000 rows.
- `threads`: covtype, 100,000 rows, with one thread and with two, in turn.
- `step`: 9,900 and 10,100 rows, on both sides of the limit above which experts take over.
"""

from __future__ import annotations

import argparse
import csv
import resource
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import forked
import numpy as np
import separate
from threadpoolctl import threadpool_limits

from hardmargin import EnsembleSVC, GreedySVC
from hardmargin.datasets import load_covtype_binary, load_folder

HERE = Path(__file__).resolve().parent
CUT_S = 1_800.0
N_TEST = 20_000
COLUMNS = (
    *("job", "set", "rows", "model", "status", "fit_cpu_s", "fit_wall_s", "predict_us"),
    *("error", "log_loss", "cv_log_loss", "memory_mb", "experts", "note"),
)

Row = dict[str, Any]
Split = tuple[Any, Any, Any, Any]
OURS = {"ensemble": EnsembleSVC, "greedy": GreedySVC}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", required=True, help="folder of the data files")
    parser.add_argument("--env-dir", type=Path, default=HERE / "envs", help="rivals' environments")
    parser.add_argument("--jobs", default=",".join(JOBS), help="which to measure")
    parser.add_argument("--out", type=Path, default=HERE / "large.csv")
    options = parser.parse_args()
    rows = read(options.out)
    for job in options.jobs.split(","):
        rows = [row for row in rows if row["job"] != job]
        for row in JOBS[job](options.data_dir, options.env_dir):
            rows.append({"job": job} | row)
            print({key: value for key, value in rows[-1].items() if value != ""}, flush=True)
            write(options.out, rows)
    options.out.with_suffix(".md").with_name("LARGE.md").write_text(page(rows), encoding="utf-8")


def covtype(data_dir: str, env_dir: Path) -> Iterator[Row]:
    sets = {
        "covtype, 2 classes, 50k": lambda: _covtype(data_dir, 50_000),
        "covtype, 7 classes, 50k": lambda: _seven(data_dir, 50_000),
        "covtype, 2 classes, 400k": lambda: _covtype(data_dir, 400_000),
    }
    models = ("ensemble", "greedy", "lightgbm", "lightgbm-500x63")
    yield from _compared(sets, models, env_dir)


def adult(data_dir: str, env_dir: Path) -> Iterator[Row]:
    sets = {"adult, 32,561 rows": lambda: load_folder("a9a", data_dir).split()}
    yield from _compared(sets, ("ensemble", "greedy"), env_dir)


def sets(data_dir: str, env_dir: Path) -> Iterator[Row]:
    found = {name: partial(read, data_dir) for name, read in SETS.items()}
    yield from _compared(found, ("ensemble", "lightgbm"), env_dir)


def growth(data_dir: str, env_dir: Path) -> Iterator[Row]:
    sizes = (20_000, 50_000, 100_000, 200_000, 400_000)
    found = {f"covtype, {n // 1000}k": partial(_covtype, data_dir, n) for n in sizes}
    yield from _compared(found, ("ensemble",), env_dir)


def threads(data_dir: str, _: Path) -> Iterator[Row]:
    split = _covtype(data_dir, 100_000)
    for _ in range(9):
        for n_jobs in (1, 2):
            row = forked.run(partial(measured, EnsembleSVC, split, n_jobs), CUT_S)
            yield {"set": "covtype, 100k", "rows": 100_000, "model": f"{n_jobs} threads"} | row


def step(data_dir: str, _: Path) -> Iterator[Row]:
    for name in ("covtype-2", "adult", "friedman", "sin"):
        for seed in range(3):
            for n in (9_900, 10_100):
                split = SETS[name](data_dir, n_rows=n, seed=seed)
                row = forked.run(partial(measured, EnsembleSVC, split, 1), CUT_S)
                yield {"set": name, "rows": n, "model": "ensemble"} | row


JOBS = {
    **{"covtype": covtype, "adult": adult, "sets": sets, "growth": growth},
    **{"threads": threads, "step": step},
}


def _compared(
    found: dict[str, Callable[[], Split]], models: tuple[str, ...], env_dir: Path
) -> Iterator[Row]:
    """Fit several models to each set, one after another."""
    workers = {name: separate.start(name, env_dir) for name in models if name not in OURS}
    for name, read in found.items():
        split = read()
        for model in models:
            if model in OURS:
                row = forked.run(partial(measured, OURS[model], split, 1), CUT_S)
            else:
                row = _of_rival(workers[model], split)
            yield {"set": name, "rows": len(split[1]), "model": model} | row


def measured(model: Any, split: Split, n_jobs: int) -> Row:
    X, y, X_test, y_test = split
    before = _memory_mb()
    with threadpool_limits(n_jobs):
        clf = model(n_jobs=n_jobs, random_state=0)
        cpu, wall = time.process_time(), time.perf_counter()
        clf.fit(X, y)
        row = {"fit_cpu_s": time.process_time() - cpu, "fit_wall_s": time.perf_counter() - wall}
        row["memory_mb"] = _memory_mb() - before
        cpu = time.process_time()
        P = clf.predict_proba(X_test)
        row["predict_us"] = 1e6 * (time.process_time() - cpu) / len(y_test)
    row["cv_log_loss"] = getattr(clf, "cv_log_loss_", "")
    if isinstance(clf, EnsembleSVC):
        row["experts"] = "; ".join(
            f"{e['kind']} {e['rows']} {e['cells']} {e['weight']:.2f}" for e in clf.experts_
        )
    return row | _scores(P, clf.classes_, y_test)


def _of_rival(worker: Any, split: Split) -> Row:
    X, y, X_test, y_test = split
    classes, codes = np.unique(y, return_inverse=True)
    dense = (A.toarray() if hasattr(A, "toarray") else A for A in (X, X_test))
    X, X_test = dense
    row = worker.run(X, codes, X_test, CUT_S)
    if row["status"] != "ok":
        return {key: row[key] for key in ("status", "note") if key in row}
    times = {key: row[key] for key in ("fit_cpu_s", "fit_wall_s")}
    times["predict_us"] = 1e6 * row["predict_s"] / len(y_test)
    return {"status": "ok"} | times | _scores(row["probabilities"], classes, y_test)


def _scores(P: Any, classes: Any, y: Any) -> Row:
    codes = np.searchsorted(classes, y)
    own = np.clip(P[np.arange(len(y)), codes], 1e-5, 1)
    wrong = 100 * float(np.mean(P.argmax(axis=1) != codes))
    return {"error": wrong, "log_loss": float(-np.log(own).mean())}


def _memory_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


# The sets


def _covtype(data_dir: str, n_rows: int = 16_000, seed: int = 0) -> Split:
    X, y, X_test, y_test = load_covtype_binary(data_dir, n_rows if seed == 0 else 100_000)
    some = np.random.default_rng(seed).permutation(len(y))[:n_rows]
    return X[some], y[some], X_test[:N_TEST], y_test[:N_TEST]


def _seven(data_dir: str, n_rows: int = 16_000, seed: int = 0) -> Split:
    data = load_folder("covtype", data_dir)
    return _divided(np.asarray(data.X, dtype=np.float64), data.y, n_rows, seed)


def _of_folder(name: str, data_dir: str, n_rows: int = 16_000, seed: int = 0) -> Split:
    """Training rows alone: test rows of some of these sets recur among them."""
    X, y, *_ = load_folder(name, data_dir).split()
    X = X.toarray() if hasattr(X, "toarray") else np.asarray(X, dtype=np.float64)
    return _divided(X, y, n_rows, seed)


def _letter(data_dir: str, n_rows: int = 13_000, seed: int = 0) -> Split:
    X, y, X_test, y_test = load_folder("letter", data_dir).split()
    both = np.vstack([X, X_test]).astype(np.float64), np.concatenate([y, y_test])
    return _divided(*both, n_rows, seed)


def _divided(X: Any, y: Any, n_rows: int, seed: int) -> Split:
    order = np.random.default_rng(seed).permutation(len(y))
    train, test = order[:n_rows], order[n_rows : n_rows + N_TEST]
    return X[train], y[train], X[test], y[test]


def _friedman(_: str, n_rows: int = 16_000, seed: int = 0) -> Split:
    random, n = np.random.default_rng(seed), n_rows + N_TEST
    X = random.random((n, 10))
    f = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2
    y = f + 10 * X[:, 3] + 5 * X[:, 4] + random.normal(size=n) > 14.4
    return X[:n_rows], y[:n_rows], X[n_rows:], y[n_rows:]


def _ringnorm(_: str, n_rows: int = 16_000, seed: int = 0) -> Split:
    random, n = np.random.default_rng(seed), n_rows + N_TEST
    y = random.integers(0, 2, n)
    normal = random.normal(size=(n, 20))
    X = np.where(y[:, None] == 1, 2 * normal, normal + 2 / np.sqrt(20))
    return X[:n_rows], y[:n_rows], X[n_rows:], y[n_rows:]


def _waveform(_: str, n_rows: int = 16_000, seed: int = 0) -> Split:
    random, n, at = np.random.default_rng(seed), n_rows + N_TEST, np.arange(1, 22)
    waves = np.array([np.maximum(6 - np.abs(at - peak), 0) for peak in (7, 15, 11)])
    y, u = random.integers(0, 3, n), random.random((n, 1))
    pairs = np.array([(0, 1), (0, 2), (1, 2)])[y]
    X = u * waves[pairs[:, 0]] + (1 - u) * waves[pairs[:, 1]] + random.normal(size=(n, 21))
    return X[:n_rows], y[:n_rows], X[n_rows:], y[n_rows:]


def _sin(_: str, n_rows: int = 16_000, seed: int = 0) -> Split:
    random, n = np.random.default_rng(seed), n_rows + N_TEST
    X = random.normal(size=(n, 20))
    y = np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * random.normal(size=n) > 0
    return X[:n_rows], y[:n_rows], X[n_rows:], y[n_rows:]


SETS: dict[str, Callable[..., Split]] = {
    "covtype-2": _covtype,
    "covtype-7": _seven,
    "adult": partial(_of_folder, "a9a"),
    "web": partial(_of_folder, "w8a"),
    "shuttle": partial(_of_folder, "shuttle"),
    "letter": _letter,
    "friedman": _friedman,
    "ringnorm": _ringnorm,
    "waveform": _waveform,
    "sin": _sin,
}


# The page


def page(rows: list[Row]) -> str:
    parts = [
        "# Many rows",
        "Made by `large.py`, see `README.md`. Errors in %, CPU seconds of one thread, microseconds "
        "of prediction per row, memory above that of the data. Experts: kind, rows, cells, weight. "
        "Constants of the cells were chosen on covtype and on some of the sets of 16,000 rows "
        "(friedman, ringnorm, sin), so that ours has an advantage there.",
    ]
    for job, text in (
        ("covtype", "## covtype"),
        ("adult", "## adult"),
        ("sets", "## Ten sets of 16,000 rows (letter: 13,000)"),
        ("growth", "## Growth"),
    ):
        own = [row for row in rows if row["job"] == job]
        if own:
            parts += [text, table(own)]
        if job == "growth" and len(own) > 1:
            n, s = (np.log([float(row[key]) for row in own]) for key in ("rows", "fit_cpu_s"))
            parts.append(f"Slope of log time on log rows: {np.polyfit(n, s, 1)[0]:.2f}.")
    own = [row for row in rows if row["job"] == "threads"]
    if own:
        one, two = (
            np.array([float(row["fit_wall_s"]) for row in own if row["model"][0] == n])
            for n in "12"
        )
        parts += [
            "## Two threads",
            f"100,000 rows of covtype, time of one thread over that of two: "
            f"{np.median(one / two):.2f} ({(one / two).min():.2f} to {(one / two).max():.2f}).",
        ]
    own = [row for row in rows if row["job"] == "step"]
    if own:
        parts += ["## 9,900 and 10,100 rows", "Means over three seeds.", _step_table(own)]
    return "\n\n".join(parts) + "\n"


def table(rows: list[Row]) -> str:
    keys = {
        "set": "set",
        "model": "model",
        "error": "error %",
        "log_loss": "log-loss",
        "fit_cpu_s": "fit CPU s",
        "predict_us": "predict us",
        "memory_mb": "memory MB",
        "experts": "experts",
    }
    digits = {"error": 2, "log_loss": 4, "fit_cpu_s": 1, "predict_us": 0, "memory_mb": 0}
    lines = ["| " + " | ".join(keys.values()) + " |", "|" + " --- |" * len(keys)]
    for row in rows:
        texts = []
        for key in keys:
            value = row.get(key, "")
            is_number = key in digits and value not in ("", None)
            texts.append(f"{float(value):.{digits[key]}f}" if is_number else str(value))
        if row["status"] != "ok":
            texts[-1] = f"{row['status']} {row.get('note', '')}"
        lines.append("| " + " | ".join(texts) + " |")
    return "\n".join(lines)


def _step_table(rows: list[Row]) -> str:
    lines = ["| set | 9,900 rows: error, log-loss | 10,100 rows |", "| --- | --- | --- |"]
    for name in dict.fromkeys(row["set"] for row in rows):
        texts = []
        for n in (9_900, 10_100):
            own = [row for row in rows if row["set"] == name and int(row["rows"]) == n]
            error, loss = (
                np.mean([float(row[key]) for row in own]) for key in ("error", "log_loss")
            )
            texts.append(f"{error:.2f}, {loss:.4f}")
        lines.append(f"| {name} | {' | '.join(texts)} |")
    return "\n".join(lines)


def read(path: Path) -> list[Row]:
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def write(path: Path, rows: list[Row]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(
            file, COLUMNS, restval="", extrasaction="ignore", lineterminator="\n"
        )
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
