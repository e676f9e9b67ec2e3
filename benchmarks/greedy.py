"""Measure GreedySVC and its rivals in one run.

    python benchmarks/greedy.py --data-dir DIR [--jobs fit-covtype,predict] [--repeats 3]

Every measurement has a fresh process; ours and the rivals' take turns. The rows go to a csv file,
from which `page.py` makes the page; the ratios and the targets are printed at the end.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import signal
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import report
from data import PROBLEMS
from jobs import JOBS, SINGLE_THREADED, Cell

HERE = Path(__file__).resolve().parent
SLOW_CELL_S = 60.0


def main() -> None:
    options = parse()
    machine = {"run": datetime.now(UTC).isoformat(timespec="seconds"), "cpu": cpu_model()}
    with tempfile.TemporaryDirectory() as scratch:
        models = Path(options.model_dir or scratch)
        models.mkdir(parents=True, exist_ok=True)
        for job in options.jobs:
            rows = [row | machine for row in run_job(JOBS[job], options, models)]
            report.merge(options.out, job, rows)
    rows = [row for row in report.read(options.out) if row["job"] in options.jobs]
    print(report.as_text(report.comparisons(rows)))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", required=True, help="folder of the data files")
    parser.add_argument(
        "--jobs", type=job_names, default=list(JOBS), help=f"comma-separated: {', '.join(JOBS)}"
    )
    parser.add_argument("--repeats", type=int, default=3, help="measurements per cell")
    parser.add_argument(
        "--rival-repeats", type=int, default=1, help="the same, for a rival's cell above 60 s"
    )
    parser.add_argument("--n-jobs", type=int, default=os.cpu_count(), help="threads for everyone")
    parser.add_argument("--cut", type=float, default=600.0, help="seconds until a cell is cut")
    parser.add_argument("--model-dir", help="keep the rivals' fitted models here for other runs")
    parser.add_argument("--out", type=Path, default=HERE / "results.csv")
    return parser.parse_args()


def job_names(text: str) -> list[str]:
    names = text.split(",")
    if unknown := [name for name in names if name not in JOBS]:
        raise argparse.ArgumentTypeError(f"{unknown[0]!r} is none of {', '.join(JOBS)}")
    return names


def run_job(cells: list[Cell], options: argparse.Namespace, models: Path) -> list[dict[str, Any]]:
    """All repeats of a job, round by round, so that a busy minute affects all models."""
    rows: list[dict[str, Any]] = []
    left = dict.fromkeys(cells, options.repeats)
    while any(left.values()):
        for cell in cells:
            if left[cell] <= 0:
                continue
            repeat = sum(row["cell"] == cell for row in rows)
            row = measure(cell, options, models)
            rows.append({"cell": cell, "repeat": repeat} | row)
            left[cell] -= 1
            if row["status"] != "ok":
                left[cell] = 0
            elif not cell.is_ours and row["wall_s"] > SLOW_CELL_S:
                left[cell] = min(left[cell], options.rival_repeats - repeat - 1)
            print(report.progress(cell, row), file=sys.stderr, flush=True)
    return [{**vars(row.pop("cell")), **row} for row in rows]


def measure(cell: Cell, options: argparse.Namespace, models: Path) -> dict[str, Any]:
    """Measure one cell in a child process; first fit the rival's model if it is needed."""
    model = ""
    owner = cell.model or (cell.adapter if cell.task == "fit" and not cell.is_ours else "")
    if owner:
        problem = PROBLEMS[cell.set]
        model = str(models / f"{cell.set}-{problem.gamma:g}-{problem.C:g}-{owner}.pickle")
    if cell.task in ("predict", "expand") and not Path(model).exists():
        fitted = measure(Cell(cell.job, cell.set, "fit", owner), options, models)
        if fitted["status"] != "ok":
            return fitted | {"note": f"no model: {fitted.get('note', fitted['status'])}"}
    n_jobs = 1 if cell.model in SINGLE_THREADED else options.n_jobs
    request = {
        **vars(cell),
        "model": model,
        "data_dir": str(options.data_dir),
        "n_jobs": n_jobs,
        "cut": options.cut,
    }
    return child(request) | {"n_jobs": n_jobs}


def child(request: dict[str, Any]) -> dict[str, Any]:
    cpu_before = children_cpu()
    command = [sys.executable, str(HERE / "measure.py"), json.dumps(request)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode == 0:
        return {"status": "ok", **lines[-1]}
    if done.returncode == -signal.SIGALRM:
        cpu = children_cpu() - cpu_before - lines[-1]["cpu_before_s"]
        return {"status": "cut", "wall_s": request["cut"], "cpu_s": cpu}
    reason = (done.stderr.strip() or f"exit code {done.returncode}").splitlines()[-1]
    missing = "ModuleNotFoundError" in reason or "ImportError" in reason
    return {"status": "missing" if missing else "failed", "note": reason}


def children_cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def cpu_model() -> str:
    info = Path("/proc/cpuinfo")
    names = info.read_text().splitlines() if info.exists() else []
    name = next((line.split(":", 1)[1].strip() for line in names if "model name" in line), "")
    return f"{name or platform.processor()}, {os.cpu_count()} cores"


if __name__ == "__main__":
    main()
