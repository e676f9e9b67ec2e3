"""Measure the command ``hardmargin`` on long and on wide tables of generated numbers.

    python benchmarks/terminal.py predict [--rows 100000,1000000]
    python benchmarks/terminal.py train [--columns 2000,20000] [--max-time 10]

``predict`` scores files with a model of 1,000 rows and 10 columns, all of them numbers or with one
column of names, with one thread. It prints rows per second of processor time and the most anonymous
memory, which does not grow with the file. ``train`` prints the seconds that a whole command takes
on 600 rows.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd

COMMAND = [sys.executable, "-c", "import sys; from hardmargin.cli import main; sys.exit(main())"]
ENDS = (".csv", ".csv.gz", ".parquet")
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("predict", "train"))
    parser.add_argument("--rows", default="100000,1000000")
    parser.add_argument("--columns", default="2000,20000")
    parser.add_argument("--max-time", type=float, default=10)
    options = parser.parse_args()
    with TemporaryDirectory() as folder:
        if options.what == "predict":
            predictions(Path(folder), numbers_of(options.rows))
        else:
            trainings(Path(folder), numbers_of(options.columns), options.max_time)


def predictions(folder: Path, sizes: list[int]) -> None:
    print(f"{'table':28}{'rows':>10}{'rows per second':>17}{'MB':>6}")
    for kind in ("numbers", "numbers and names"):
        table(1_000, 10, "names" in kind).to_csv(folder / "train.csv", index=False)
        model = folder / "model.skops"
        train = ["train", folder / "train.csv", "--target", "y", "--n-jobs", 1, "--force"]
        measured([*train, "-o", model])
        for end in ENDS:
            for n_rows in sizes:
                path = folder / f"new{end}"
                new = table(n_rows, 10, "names" in kind, seed=1)
                new.to_parquet(path) if end == ".parquet" else new.to_csv(path, index=False)
                del new
                arguments = ["predict", model, path, "--force", "-o", folder / "scored.csv"]
                _, seconds, megabytes = measured(arguments)
                print(f"{kind + end:28}{n_rows:10,}{n_rows / seconds:17,.0f}{megabytes:6.0f}")


def trainings(folder: Path, widths: list[int], max_time: float) -> None:
    print(f"{'columns':>8}{'max_time':>10}{'seconds':>9}{'processor':>11}")
    for width in widths:
        table(600, width).to_csv(folder / "wide.csv", index=False)
        arguments = ["train", folder / "wide.csv", "--target", "y", "--max-time", max_time]
        wall, cpu, _ = measured([*arguments, "--force", "-o", folder / "wide.skops"])
        print(f"{width:8,}{max_time:10g}{wall:9.1f}{cpu:11.1f}")


def table(n_rows: int, n_columns: int, has_names: bool = False, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_columns)).round(4)
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(n_columns)])
    if has_names:
        frame["x9"] = rng.choice(["red", "green", "blue"], n_rows)
    is_yes = frame["x0"] + frame["x1"] ** 2 + rng.normal(scale=0.5, size=n_rows) > 0.5
    return frame.assign(y=np.where(is_yes, "yes", "no"))


def measured(arguments: list[object]) -> tuple[float, float, float]:
    """Run a command: its seconds, those of the processor, and the most anonymous megabytes."""
    begin = time.perf_counter()
    process = subprocess.Popen(
        [*COMMAND, *map(str, arguments)],
        env=os.environ | ONE_THREAD,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    status, peak = Path(f"/proc/{process.pid}/status"), 0
    while True:
        found = re.search(r"^RssAnon:\s+(\d+) kB", status.read_text(encoding="ascii"), re.MULTILINE)
        peak = max(peak, int(found[1]) if found else 0)
        ended, code, used = os.wait4(process.pid, os.WNOHANG)
        if ended:
            break
        time.sleep(0.01)
    if code:
        sys.exit(f"hardmargin {' '.join(map(str, arguments))} failed")
    return time.perf_counter() - begin, used.ru_utime + used.ru_stime, peak / 1e3


def numbers_of(text: str) -> list[int]:
    return [int(number) for number in text.split(",")]


if __name__ == "__main__":
    main()
