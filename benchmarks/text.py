"""Measure text and other wide rows with nothing to tune, and calibrated LinearSVC.

    python benchmarks/text.py [--sets "9 packages;2 packages"] [--models ensemble,greedy,linear]

One thread, and no data files: `text_sets.py` makes the sets. The rows go to `text.csv`, and a table
to `TEXT.md`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import forked
import large
from large import Row, Split
from sklearn.calibration import CalibratedClassifierCV
from sklearn.svm import LinearSVC
from text_sets import SETS

from hardmargin import EnsembleSVC, GreedySVC

HERE = Path(__file__).resolve().parent
CUT_S = 1_800.0
MODELS: dict[str, Callable[..., Any]] = {
    "ensemble": EnsembleSVC,
    "greedy": GreedySVC,
    "linear": lambda n_jobs, random_state: CalibratedClassifierCV(
        LinearSVC(random_state=random_state), n_jobs=n_jobs
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", default=";".join(SETS), help="which to measure, with ; between")
    parser.add_argument("--models", default="ensemble,linear", help=f"of {', '.join(MODELS)}")
    parser.add_argument("--out", type=Path, default=HERE / "text.csv")
    options = parser.parse_args()
    rows = large.read(options.out)
    for name in options.sets.split(";"):
        split = SETS[name]()
        for model in options.models.split(","):
            rows = [row for row in rows if (_name(row), row["model"]) != (name, model)]
            rows.append(_measured(name, split, model))
            print({key: value for key, value in rows[-1].items() if value != ""}, flush=True)
            large.write(options.out, rows)
            options.out.with_name("TEXT.md").write_text(page(rows), encoding="utf-8")


def _measured(name: str, split: Split, model: str) -> Row:
    n_rows, n_columns = split[0].shape
    row = forked.run(partial(large.measured, MODELS[model], split, 1), CUT_S)
    shape = f"{name} ({n_rows:,} x {n_columns:,})"
    return {"job": "text", "set": shape, "rows": n_rows, "model": model} | row


def page(rows: list[Row]) -> str:
    order = {name: place for place, name in enumerate(SETS)}
    parts = [
        "# Text and wide rows",
        "Made by `text.py`, see `README.md`. Errors in %, CPU seconds of one thread, microseconds "
        "of prediction per row, memory above that of the data. `linear` is "
        "`CalibratedClassifierCV(LinearSVC())`.",
        large.table(sorted(rows, key=lambda row: order[_name(row)])),
    ]
    return "\n\n".join(parts) + "\n"


def _name(row: Row) -> str:
    return row["set"].split(" (")[0]


if __name__ == "__main__":
    main()
