"""Measure how core sets scale, and compare them with dense solvers and other classifiers.

    python benchmarks/core_sets.py --data-dir DIR [--parts scaling,dense,classifiers,directions]
        [--n-jobs 1] [--repeats 3] [--out core_sets.csv]

* `scaling`: the time of CoreVectorSVC against the rows of covtype, by both of its stopping rules;
* `dense`: MarginDiscriminantAnalysis by core sets against its two dense solvers;
* `classifiers`: CoreVectorSVC against SVC and GreedySVC on adult, web and covtype;
* `directions`: five directions per class on pendigits.

Every fit has a process of its own, and the models take turns. To try it in seconds:
``--sizes 1000,2000 --rows 1000 --repeats 1 --out trial.csv``.
"""

from __future__ import annotations

import argparse
import csv
import resource
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import forked
import numpy as np
from data import PROBLEMS
from forked import Row
from measure import peak_rss_mb
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits
from tuning import first_of_each_class

from hardmargin import CoreVectorSVC, GreedySVC, MarginDiscriminantAnalysis
from hardmargin.datasets import load_covtype_binary, load_folder

Split = tuple[Any, Any, Any, Any]

HERE = Path(__file__).resolve().parent
WARM_UP_ROWS = 100
SLOW_CELL_S = 60.0
COVTYPE_SIZES = (20_000, 40_000, 60_000)
LETTER_ROWS = 8_000
SCALING_CLASSES = (7, 2)  # few noisy labels, and many
DIRECTIONS = (1, 3)

MAX_EXPONENT = 1.2
MIN_RATIOS = {"lagrangian": 10.0, "newton": 5.0}
MAX_SECONDS = 60.0

COLUMNS = (
    *("part", "set", "n_train", "n_directions", "model", "repeat", "status", "wall_s", "cpu_s"),
    *("error", "n_support", "core_size", "gap", "stop_reason", "peak_rss_mb", "n_jobs", "note"),
)


@dataclass(frozen=True)
class Cell:
    """A fit to measure; `parts` has no test rows if no error is measured."""

    set: str
    model: str
    make: Callable[[int], Any]
    parts: Split
    n_directions: int | str = ""

    @property
    def n_train(self) -> int:
        return len(self.parts[1])


def main() -> None:
    options = parse()
    for part in options.parts:
        problems, as_text = PARTS[part]
        rows: list[Row] = []
        for cells in problems(options):
            for row in measured(part, cells, options):
                rows.append(row)
                print(progress(row), file=sys.stderr, flush=True)
            merge(options.out, part, rows)
        print(f"{part}\n\n{as_text(rows)}\n", flush=True)


def parse() -> argparse.Namespace:
    def integers(text: str) -> list[int]:
        return sorted(int(size) for size in text.split(","))

    def names(text: str) -> list[str]:
        chosen = text.split(",")
        unknown = sorted(set(chosen) - set(PARTS))
        if unknown:
            raise argparse.ArgumentTypeError(f"unknown: {', '.join(unknown)}")
        return chosen

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", required=True, help="folder of the data files")
    parser.add_argument("--parts", type=names, default=list(PARTS), help="comma-separated")
    parser.add_argument("--n-jobs", type=int, default=1, help="threads per model, BLAS included")
    parser.add_argument("--repeats", type=int, default=3, help="measurements per cell")
    parser.add_argument(
        "--slow-repeats", type=int, default=1, help="the same, for a cell above 60 s"
    )
    parser.add_argument(
        "--sizes",
        type=integers,
        default=[4_000 * 2**i for i in range(6)],
        help="comma-separated numbers of rows for the part scaling",
    )
    parser.add_argument("--rows", type=int, help="most training rows in the other parts")
    parser.add_argument("--cut", type=float, default=600.0, help="seconds until a fit is cut")
    parser.add_argument("--out", type=Path, default=HERE / "core_sets.csv")
    return parser.parse_args()


# What is measured


def scaling(options: argparse.Namespace) -> Iterator[list[Cell]]:
    for positive in SCALING_CLASSES:
        X, y, *test = load_covtype_binary(
            options.data_dir, max(options.sizes), scale=True, positive=positive
        )
        yield [
            Cell(
                f"class {positive}",
                rule,
                partial(core_svc, rule, "pairwise"),
                (X[:n], y[:n], *test),
            )
            for n in options.sizes
            for rule in ("margin", "radius")
        ]


def dense(options: argparse.Namespace) -> Iterator[list[Cell]]:
    letter = load_folder("letter-uci", options.data_dir)
    pendigits = load_folder("pendigits", options.data_dir)
    for name, (X, y) in {
        "letter": (letter.X[:LETTER_ROWS], letter.y[:LETTER_ROWS]),
        "pendigits": pendigits.split()[:2],
    }.items():
        parts = standardized(X[: options.rows], y[: options.rows])
        yield [
            Cell(name, solver, partial(analysis, solver, n), parts, n)
            for n in DIRECTIONS
            for solver in ("core", *MIN_RATIOS)
        ]


def classifiers(options: argparse.Namespace) -> Iterator[list[Cell]]:
    for name in ("adult", "web", "covtype"):
        if name == "covtype":
            gamma = PROBLEMS["covtype-40k"].gamma
            X, y, *test = load_covtype_binary(options.data_dir, max(COVTYPE_SIZES), scale=True)
            sizes = list(COVTYPE_SIZES)
        else:
            gamma = PROBLEMS["a9a"].gamma
            folder_name = {"adult": "a9a", "web": "w8a"}[name]
            X, y, *test = load_folder(folder_name, options.data_dir).split()
            sizes = [len(y)]
        if options.rows:
            sizes = sorted({min(n, options.rows) for n in sizes})
        makers: dict[str, Callable[[int], Any]] = {
            "margin": partial(core_svc, "margin", gamma),
            "radius": partial(core_svc, "radius", gamma),
            "svc": partial(svc, gamma),
            "greedy": partial(published_greedy, gamma),
            "greedy-default": default_greedy,
        }
        yield [
            Cell(name, model, make, (X[:n], y[:n], *test))
            for n in sizes
            for model, make in makers.items()
        ]


def directions(options: argparse.Namespace) -> Iterator[list[Cell]]:
    X, y = load_folder("pendigits", options.data_dir).split()[:2]
    parts = standardized(X[: options.rows], y[: options.rows])
    yield [Cell("pendigits", "core", partial(analysis, "core", 5), parts, 5)]


def standardized(X: Any, y: Any) -> Split:
    return StandardScaler().fit_transform(np.asarray(X, np.float64)), y, None, None


def core_svc(stopping: str, gamma: float | str, n_jobs: int) -> Any:
    return CoreVectorSVC(C=1.0, gamma=gamma, stopping=stopping, n_jobs=n_jobs, random_state=0)


def svc(gamma: float, n_jobs: int) -> Any:
    return SVC(C=1.0, gamma=gamma, cache_size=1000)


def published_greedy(gamma: float, n_jobs: int) -> Any:
    return GreedySVC(gamma, max_visits=1, standardize=False, n_jobs=n_jobs, random_state=0)


def default_greedy(n_jobs: int) -> Any:
    return GreedySVC(n_jobs=n_jobs, random_state=0)


def analysis(solver: Any, n_directions: int, n_jobs: int) -> Any:
    return MarginDiscriminantAnalysis(
        n_directions, C=1.0, gamma="pairwise", solver=solver, n_jobs=n_jobs, random_state=0
    )


# How it is measured


def measured(part: str, cells: list[Cell], options: argparse.Namespace) -> Iterator[Row]:
    """All repeats of some cells, in turns, so that a busy minute affects all models.

    The cells of a model are ordered by their work: if one is cut or fails, the next are not tried,
    and its time is a lower bound for theirs.
    """
    left = dict.fromkeys(range(len(cells)), options.repeats)
    stuck: dict[str, Row] = {}
    for repeat in range(options.repeats):
        for i, cell in enumerate(cells):
            if left[i] <= repeat:
                continue
            if repeat == 0 and cell.model in stuck:
                row = stuck[cell.model]
            else:
                row = measured_once(cell, options)
                if row["status"] != "ok":
                    stuck.setdefault(cell.model, skipped_after(row))
            if row["status"] != "ok":
                left[i] = 0
            elif row["wall_s"] > SLOW_CELL_S:
                left[i] = options.slow_repeats
            yield {
                **{"part": part, "set": cell.set, "n_train": cell.n_train},
                **{"n_directions": cell.n_directions, "model": cell.model, "repeat": repeat},
                **{"n_jobs": options.n_jobs},
                **row,
            }


def measured_once(cell: Cell, options: argparse.Namespace) -> Row:
    before = children_seconds()
    row = forked.run(partial(fit_and_score, cell, options.n_jobs, options.cut), options.cut)
    if row["status"] == "cut":
        # The children's time includes the small fit, so it is limited to the cut.
        cpu = min(children_seconds() - before, options.cut * options.n_jobs)
        row |= {"wall_s": options.cut, "cpu_s": cpu}
    return row


def has_ended(row: Row) -> bool:
    """Whether the fit finished, and was not stopped by the time or memory limit."""
    return row["status"] == "ok" and "core_full" not in row["stop_reason"]


def skipped_after(row: Row) -> Row:
    times = {column: row[column] for column in ("wall_s", "cpu_s") if column in row}
    return {"status": "skipped", "note": f"{row['status']} at less work"} | times


def children_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def fit_and_score(cell: Cell, n_jobs: int, cut: float) -> Row:
    """Time one fit, after a small one that loads the code."""
    X, y, X_test, y_test = cell.parts
    with threadpool_limits(n_jobs):
        small = first_of_each_class(y, WARM_UP_ROWS)
        cell.make(n_jobs).fit(X[small], y[small])
        signal.setitimer(signal.ITIMER_REAL, cut)
        cpu, wall = time.process_time(), time.perf_counter()
        model = cell.make(n_jobs).fit(X, y)
        row = {"cpu_s": time.process_time() - cpu, "wall_s": time.perf_counter() - wall}
        signal.setitimer(signal.ITIMER_REAL, 0)  # the limit is for the fit
        row["peak_rss_mb"] = peak_rss_mb()
        if y_test is not None:
            row["error"] = float(np.mean(model.predict(X_test) != y_test))
    row["n_support"] = len(model.support_)
    row["stop_reason"] = " ".join(sorted(set(np.ravel(getattr(model, "stop_reason_", "")))))
    if hasattr(model, "core_size_"):
        row["core_size"] = float(np.mean(model.core_size_))
        row["gap"] = float(np.max(1 - np.divide(model.lower_bound_, model.objective_)))
    return row


# The file


def merge(path: Path, part: str, rows: list[Row]) -> None:
    """Replace a part's rows of an earlier run."""
    others: list[Row] = []
    if path.exists():
        with path.open(newline="") as file:
            others = [row for row in csv.DictReader(file) if row["part"] != part]
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        for row in [*others, *rows]:
            writer.writerow({k: f"{v:.6g}" if isinstance(v, float) else v for k, v in row.items()})


def progress(row: Row) -> str:
    keys = ("part", "set", "n_train", "n_directions", "model", "repeat")
    what = " ".join(str(row[k]) for k in keys if row[k] != "")
    keys = ("wall_s", "cpu_s", "error", "n_support", "core_size", "stop_reason", "note")
    values = [
        f"{k} {row[k]:.4g}" if isinstance(row[k], float) else f"{k} {row[k]}"
        for k in keys
        if row.get(k, "") != ""
    ]
    return f"{what}: {row['status']} {', '.join(values)}"


# The tables

SCALING = ("set", "rows", "stopping", "CPU s (spread)", "core", "error %", "MB", "stop", "note")


def scaling_text(rows: list[Row]) -> str:
    lines = [SCALING]
    for of_class, n, rule in cell_keys(rows, "set", "n_train", "model"):
        key = of_class, n, rule
        some = [row for row in rows if (row["set"], row["n_train"], row["model"]) == key]
        lines.append(
            (
                *(of_class, f"{n:,}", rule, seconds(some, "cpu_s"), middle(some, "core_size")),
                *(middle(some, "error", 100), middle(some, "peak_rss_mb")),
                *(word(some, "stop_reason"), word(some, "note")),
            )
        )
    texts = []
    for (of_class,) in cell_keys(rows, "set"):
        its = [row for row in rows if row["set"] == of_class]
        texts += [f"{of_class}: {exponent_text(its, rule)}" for rule in ("margin", "radius")]
    return "\n".join([table(lines), "", *texts])


def exponent_text(rows: list[Row], rule: str) -> str:
    """The slope of log time on log rows, over the sizes whose fits finished."""
    sizes = list(dict.fromkeys(row["n_train"] for row in rows))
    ended: list[list[float]] = []
    for n in sizes:
        some = [row for row in rows if (row["n_train"], row["model"]) == (n, rule)]
        ended.append([] if is_bound(some) else [row["cpu_s"] for row in finished(some)])
    used = [n for n, times in zip(sizes, ended, strict=True) if times]
    times = [times for times in ended if times]
    if len(used) < 2:
        return f"exponent, {rule}: unknown, {len(used)} of {len(sizes)} sizes"
    rounds = range(max(map(len, times)))
    # A size that was measured once is used in every round.
    each = [slope(used, [t[min(i, len(t) - 1)] for t in times]) for i in rounds]
    value = slope(used, [median(t) for t in times])
    text = f"exponent, {rule}: {value:.2f} ({min(each):.2f}-{max(each):.2f})"
    text += f", {len(used)} of {len(sizes)} sizes"
    if rule != "radius":
        return text
    verdict = "pass" if value < MAX_EXPONENT else "MISS"
    if verdict == "pass" and len(used) < len(sizes):
        verdict = "open: sizes are missing"
    return f"{text}; bar < {MAX_EXPONENT}: {verdict}"


def slope(sizes: list[int], times: list[float]) -> float:
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])


DENSE = (
    *("set", "rows", "directions", "solver", "CPU s (spread)", "wall s (spread)"),
    *("CPU ratio (spread)", "wall ratio (spread)", "bar", "", "core", "gap %", "MB", "stop"),
    "note",
)


def dense_text(rows: list[Row]) -> str:
    lines = [DENSE]
    for name, n, n_directions, solver in cell_keys(rows, "set", "n_train", "n_directions", "model"):
        same = [row for row in rows if (row["set"], row["n_directions"]) == (name, n_directions)]
        ours = [row for row in same if row["model"] == "core"]
        some = [row for row in same if row["model"] == solver]
        judged: tuple[str, ...] = ("", "", "", "")
        if solver in MIN_RATIOS:
            cpu, wall = ratios(some, ours, "cpu_s"), ratios(some, ours, "wall_s")
            bar = MIN_RATIOS[solver]
            sign = sign_of_ratio(some, ours)
            judged = spread(cpu, sign), spread(wall, sign), f">= {bar:g}"
            judged = (*judged, ratio_verdict(cpu, bar, sign))
        lines.append(
            (
                *(name, f"{n:,}", str(n_directions), solver),
                *(seconds(some, "cpu_s"), seconds(some, "wall_s"), *judged),
                *(middle(some, "core_size"), middle(some, "gap", 100)),
                *(middle(some, "peak_rss_mb"), word(some, "stop_reason"), word(some, "note")),
            )
        )
    return f"{table(lines)}\n\nA ratio is the solver's time over that of core sets; CPU is judged."


def ratio_verdict(values: list[float], bar: float, sign: str) -> str:
    if not values:
        return "open: not measured"
    is_above = median(values) >= bar
    if sign and not (sign == "> " and is_above) and not (sign == "< " and not is_above):
        return "open: stopped too early"
    return "pass" if is_above else "MISS"


CLASSIFIERS = (
    *("set", "rows", "model", "CPU s (spread)", "SVC's over it (spread)", "error %", "support"),
    *("core", "gap %", "MB", "stop", "note"),
)


def classifiers_text(rows: list[Row]) -> str:
    lines = [CLASSIFIERS]
    for name, n, model in cell_keys(rows, "set", "n_train", "model"):
        same = [row for row in rows if (row["set"], row["n_train"]) == (name, n)]
        rival = [row for row in same if row["model"] == "svc"]
        some = [row for row in same if row["model"] == model]
        ratio = ""
        if model != "svc":
            ratio = spread(ratios(rival, some, "cpu_s"), sign_of_ratio(rival, some))
        lines.append(
            (
                *(name, f"{n:,}", model, seconds(some, "cpu_s"), ratio),
                *(middle(some, "error", 100), middle(some, "n_support")),
                *(middle(some, "core_size"), middle(some, "gap", 100)),
                *(middle(some, "peak_rss_mb"), word(some, "stop_reason"), word(some, "note")),
            )
        )
    return f"{table(lines)}\n\n{classifiers_verdict(rows)}"


def classifiers_verdict(rows: list[Row]) -> str:
    """Each set is judged at the most rows for which both errors are known."""
    found: dict[str, bool] = {}
    notes: dict[str, str] = {}
    for name, n in cell_keys(rows, "set", "n_train"):
        found.setdefault(name, False)
        notes.setdefault(name, "not measured")
        same = [row for row in rows if (row["set"], row["n_train"]) == (name, n)]
        ours = finished([row for row in same if row["model"] == "radius"])
        rival = finished([row for row in same if row["model"] == "svc"])
        if ours and rival:
            ratio = median(ratios(rival, ours, "cpu_s"))
            more = median(r["error"] for r in ours) - median(r["error"] for r in rival)
            found[name] = ratio > 1 and more <= 0
            answer = "yes" if found[name] else "no"
            notes[name] = f"{answer}, {n:,} rows, {ratio:.2g} x, error {100 * more:+.2f} points"
    won = f"{sum(found.values())} of {len(found)}"
    lines = [f"radius is faster than SVC at no worse error on {won}:"]
    return "\n".join([*lines, *(f"  {name}: {note}" for name, note in notes.items())])


DIRECTIONS_HEADER = (
    *("set", "rows", "directions", "CPU s (spread)", "wall s (spread)", "bar", "", "core"),
    *("gap %", "MB", "stop", "note"),
)


def directions_text(rows: list[Row]) -> str:
    times = [row["cpu_s"] for row in finished(rows)]
    verdict = "pass" if times and median(times) <= MAX_SECONDS else "MISS"
    row = rows[0]
    line = (
        *(row["set"], f"{row['n_train']:,}", str(row["n_directions"])),
        *(seconds(rows, "cpu_s"), seconds(rows, "wall_s"), f"<= {MAX_SECONDS:g} CPU s", verdict),
        *(middle(rows, "core_size"), middle(rows, "gap", 100), middle(rows, "peak_rss_mb")),
        *(word(rows, "stop_reason"), word(rows, "note")),
    )
    return table([DIRECTIONS_HEADER, line])


def cell_keys(rows: list[Row], *columns: str) -> list[tuple[Any, ...]]:
    return list(dict.fromkeys(tuple(row[c] for c in columns) for row in rows))


def finished(rows: list[Row]) -> list[Row]:
    return [row for row in rows if row["status"] == "ok"]


def is_bound(rows: list[Row]) -> bool:
    """Whether the times are lower bounds."""
    return not all(map(has_ended, rows))


def ratios(rival: list[Row], ours: list[Row], column: str) -> list[float]:
    """Round by round; a model measured once is compared with every round of the other."""
    a = [row[column] for row in rival if column in row]
    b = [row[column] for row in finished(ours)]
    rounds = range(max(len(a), len(b)) if a and b else 0)
    return [a[min(i, len(a) - 1)] / b[min(i, len(b) - 1)] for i in rounds]


def sign_of_ratio(rival: list[Row], ours: list[Row]) -> str:
    """The sign before a ratio of times, of which one or both may be lower bounds."""
    signs = {(False, False): "", (True, False): "> ", (False, True): "< ", (True, True): "? "}
    return signs[is_bound(rival), is_bound(ours)]


def seconds(rows: list[Row], column: str) -> str:
    values = [row[column] for row in rows if column in row]
    return spread(values, "> " if is_bound(rows) else "") or "-"


def spread(values: list[float], sign: str) -> str:
    """The median, with the least and the greatest."""
    if not values:
        return ""
    text = f"{sign}{number(median(values))}"
    if len(values) > 1:
        text += f" ({number(min(values))}-{number(max(values))})"
    return text


def middle(rows: list[Row], column: str, factor: float = 1.0) -> str:
    values = [row[column] * factor for row in rows if column in row]
    return number(median(values)) if values else ""


def word(rows: list[Row], column: str) -> str:
    return ", ".join(dict.fromkeys(row[column] for row in rows if row.get(column)))


def number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def table(lines: list[tuple[str, ...]]) -> str:
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)


Problems = Callable[[argparse.Namespace], Iterator[list[Cell]]]
PARTS: dict[str, tuple[Problems, Callable[[list[Row]], str]]] = {
    "scaling": (scaling, scaling_text),
    "dense": (dense, dense_text),
    "classifiers": (classifiers, classifiers_text),
    "directions": (directions, directions_text),
}


if __name__ == "__main__":
    main()
