"""From measured rows to ratios, spreads and verdicts."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any

from jobs import TARGETS, Cell, Target
from rivals import OURS

COLUMNS = (
    *("job", "set", "task", "adapter", "model", "dtype", "repeat", "status", "wall_s", "cpu_s"),
    *("error", "n_support", "agreement", "predict_wall_s", "predict_cpu_s", "peak_rss_mb"),
    *("n_jobs", "version", "level", "cpu", "run", "note"),
)
NUMBERS = (
    *("wall_s", "cpu_s", "error", "n_support", "agreement"),
    *("predict_wall_s", "predict_cpu_s", "peak_rss_mb"),
)
UNITS = {"cpu_s": "CPU s", "wall_s": "wall s", "peak_rss_mb": "peak MB"}

Row = dict[str, Any]


@dataclass(frozen=True)
class Comparison:
    """Our own value (no `rival`), or a rival's over ours, with its spread over the repeats."""

    job: str
    set: str
    rival: str
    quantity: str
    dtype: str
    ours: float
    theirs: float
    low: float
    middle: float
    high: float
    is_cut: bool
    target: str
    verdict: str


def read(path: Path) -> list[Row]:
    if not path.exists():
        return []
    with path.open(newline="") as file:
        rows: list[Row] = list(csv.DictReader(file))
    for row in rows:
        row.update({name: float(row[name]) for name in NUMBERS if row[name]})
    return rows


def merge(path: Path, job: str, rows: Iterable[Row]) -> None:
    """Replace a job's rows of an earlier run."""
    others = [row for row in read(path) if row["job"] != job]
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rounded(row) for row in [*others, *rows])


def rounded(row: Row) -> Row:
    return {k: f"{v:.6g}" if isinstance(v, float) else v for k, v in row.items()}


def comparisons(rows: list[Row]) -> list[Comparison]:
    """Every ratio that the rows allow, and our own values where a target bounds them."""
    found: list[Comparison] = []
    keys = list(dict.fromkeys((r["job"], r["set"], r["model"]) for r in rows))
    for job, name, model in keys:
        group = [r for r in rows if (r["job"], r["set"], r["model"]) == (job, name, model)]
        for dtype in dict.fromkeys(r["dtype"] for r in group if r["adapter"] == OURS):
            ours = [r for r in group if (r["adapter"], r["dtype"]) == (OURS, dtype)]
            ours = [r for r in ours if r["status"] == "ok"]
            if ours:
                found += _own_values(job, name, ours)
                found += _ratios(job, name, dtype, ours, group)
    return found + _means(found)


def _own_values(job: str, name: str, ours: list[Row]) -> list[Comparison]:
    quantities = dict.fromkeys(t.quantity for t in TARGETS if t.job == job and not t.rival)
    found = []
    for quantity in quantities:
        values = [float(r[quantity]) for r in ours]
        found.append(_compare(job, name, "", quantity, "", values, values, values, False))
    return found


def _ratios(job: str, name: str, dtype: str, ours: list[Row], group: list[Row]) -> list[Comparison]:
    found = []
    for rival in dict.fromkeys(r["adapter"] for r in group if r["adapter"] != OURS):
        theirs = [r for r in group if r["adapter"] == rival and r["status"] in ("ok", "cut")]
        for quantity in ("cpu_s", "wall_s") if theirs else ():
            a = [r[quantity] for r in ours]
            b = [r[quantity] for r in theirs]
            # Round by round; the last time of a rival measured less often serves the other rounds.
            ratios = [b[min(i, len(b) - 1)] / value for i, value in enumerate(a)]
            is_cut = any(r["status"] == "cut" for r in theirs)
            found.append(_compare(job, name, rival, quantity, dtype, a, b, ratios, is_cut))
    return found


def _means(found: list[Comparison]) -> list[Comparison]:
    """Geometric means over the sets, for the targets that ask for one."""
    means = []
    for target in (t for t in TARGETS if t.over_sets == "mean"):
        for dtype in ("float32", "float64"):
            key = (target.job, target.rival, target.quantity, dtype)
            parts = [c for c in found if (c.job, c.rival, c.quantity, c.dtype) == key]
            if parts:
                lists = [[getattr(c, k) for c in parts] for k in ("low", "middle", "high")]
                ratios = [geometric_mean(values) for values in lists]
                name = f"geometric mean of {len(parts)}"
                is_cut = any(c.is_cut for c in parts)
                means.append(_compare(key[0], name, *key[1:], [], [], ratios, is_cut))
    return means


def _compare(
    job: str,
    name: str,
    rival: str,
    quantity: str,
    dtype: str,
    ours: list[float],
    theirs: list[float],
    ratios: list[float],
    is_cut: bool,
) -> Comparison:
    middle = median(ratios)
    kind = "each" if ours else "mean"
    # The float64 predictions are shown for information; float32 is what GreedySVC uses there.
    target = None if dtype == "float64" else _target(job, rival, quantity, kind)
    return Comparison(
        job=job,
        set=name,
        rival=rival,
        quantity=quantity,
        dtype=dtype,
        ours=median(ours) if ours else math.nan,
        theirs=median(theirs) if theirs else math.nan,
        low=min(ratios),
        middle=middle,
        high=max(ratios),
        is_cut=is_cut,
        target=_bounds(target),
        verdict=_verdict(target, middle, is_cut),
    )


def _target(job: str, rival: str, quantity: str, over_sets: str) -> Target | None:
    key = (job, rival, quantity, over_sets)
    return next((t for t in TARGETS if (t.job, t.rival, t.quantity, t.over_sets) == key), None)


def _bounds(target: Target | None) -> str:
    if target is None:
        return ""
    parts = []
    if target.at_least > -math.inf:
        parts.append(f"≥ {target.at_least:g}")
    if target.at_most < math.inf:
        parts.append(f"≤ {target.at_most:g}")
    return " and ".join(parts)


def _verdict(target: Target | None, value: float, is_cut: bool) -> str:
    if target is None:
        return ""
    if target.at_least <= value <= target.at_most:
        return "pass"
    return "open: cut too early" if is_cut else "MISS"


def number(value: float) -> str:
    return "" if math.isnan(value) else f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def cells_of(c: Comparison) -> tuple[str, ...]:
    """One printed line: both values and their ratio, or our own value alone."""
    more = "> " if c.is_cut else ""
    unit = UNITS.get(c.quantity, c.quantity) + (f", {c.dtype}" if c.dtype else "")
    spread = f"{more}{number(c.middle)} ({number(c.low)}-{number(c.high)})"
    ours, theirs = number(c.ours), f"{more}{number(c.theirs)}" if c.theirs == c.theirs else ""
    if not c.rival:
        ours, theirs, spread = f"{ours} ({number(c.low)}-{number(c.high)})", "", ""
    return (c.job, c.set, c.rival, unit, ours, theirs, spread, c.target, c.verdict)


HEADER = ("job", "set", "against", "quantity", "ours", "theirs", "ratio (spread)", "target", "")


def as_text(found: list[Comparison]) -> str:
    table = [HEADER, *(cells_of(c) for c in found)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = ("  ".join(map(str.ljust, line, widths)).rstrip() for line in table)
    return "\n".join(lines)


def progress(cell: Cell, row: Row) -> str:
    what = " ".join(filter(None, (cell.job, cell.set, cell.adapter, cell.model, cell.dtype)))
    if row["status"] in ("missing", "failed"):
        return f"{what}: {row['status']}, {row['note']}"
    more = "> " if row["status"] == "cut" else ""
    keys = ("wall_s", "cpu_s", "error", "n_support", "peak_rss_mb", "agreement")
    return f"{what}: {more}" + ", ".join(f"{k} {row[k]:.4g}" for k in keys if k in row)
