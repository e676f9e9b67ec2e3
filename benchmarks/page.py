"""Make RESULTS.md and its figure from results.csv: `python benchmarks/page.py`."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path
from statistics import median

import report
from data import PROBLEMS
from report import Comparison, Row

HERE = Path(__file__).resolve().parent
FIGURE = "ratios.svg"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=Path, default=HERE / "results.csv")
    parser.add_argument("--out", type=Path, default=HERE / "RESULTS.md")
    options = parser.parse_args()
    rows = report.read(options.results)
    if not rows:
        parser.error(f"{options.results} has no rows: run greedy.py first")
    found = report.comparisons(rows)
    has_figure = draw(found, options.out.with_name(FIGURE))
    options.out.write_text(page(rows, found, has_figure), encoding="utf-8")


def page(rows: list[Row], found: list[Comparison], has_figure: bool) -> str:
    parts = [
        "# GreedySVC against other kernel SVMs",
        "Made from `results.csv` by `page.py`; `README.md` describes the measurements.",
        environment(rows),
        f"![How many times faster, with the targets as marks]({FIGURE})" if has_figure else "",
        "## Ratios and targets",
        "A ratio is the rival's time over ours: the median over the repeats, and their range. "
        "In the job `predict` both evaluate the rival's own support vectors. `>` means cut.",
        table(report.HEADER, (report.cells_of(c) for c in found)),
        "## Measurements",
        "Medians over the repeats; `predict` is the time for the test part.",
        table(MEASURED, measurements(rows)),
        "## The sets",
        table(
            ("set", "what", "gamma", "C (rivals)"),
            ((k, p.text, f"{p.gamma:.4g}", f"{p.C:g}") for k, p in PROBLEMS.items()),
        ),
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def environment(rows: list[Row]) -> str:
    versions = sorted({f"{r['adapter']} {r['version']}" for r in rows if r["version"]})
    lines = {
        "processor": sorted({r["cpu"] for r in rows}),
        "dispatch level": sorted({r["level"] for r in rows if r["level"]}),
        "threads for everyone": sorted({r["n_jobs"] for r in rows}),
        "versions": versions,
        "measured": sorted({r["run"] for r in rows}),
        "not measured": sorted({f"{r['adapter']} ({r['note']})" for r in rows if r["note"]}),
    }
    return "\n".join(f"- {key}: {', '.join(values)}" for key, values in lines.items() if values)


MEASURED = (
    *("job", "set", "who", "model of", "repeats", "wall s", "CPU s", "error %"),
    *("support vectors", "predict wall s", "peak MB", "same labels %"),
)


def measurements(rows: list[Row]) -> Iterable[tuple[str, ...]]:
    keys = ("job", "set", "adapter", "model", "dtype")
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[key] for key in keys), []).append(row)
    for (job, name, who, model, dtype), group in groups.items():
        status = group[0]["status"]
        more = "> " if status == "cut" else ""
        if status not in ("ok", "cut"):
            more = status
        yield (
            *(job, name, f"{who} {dtype}".strip(), model, str(len(group))),
            *(more + middle(group, "wall_s"), more + middle(group, "cpu_s")),
            *(middle(group, "error", 100), middle(group, "n_support")),
            *(middle(group, "predict_wall_s"), middle(group, "peak_rss_mb")),
            middle(group, "agreement", 100),
        )


def middle(group: list[Row], column: str, factor: float = 1.0) -> str:
    values = [row[column] * factor for row in group if row[column] != ""]
    return f"{median(values):,.5g}" if values else ""


def table(header: Iterable[str], lines: Iterable[Iterable[str]]) -> str:
    head = list(header)
    body = [head, ["---"] * len(head), *lines]
    return "\n".join("| " + " | ".join(line) + " |" for line in body)


def draw(found: list[Comparison], path: Path) -> bool:
    """Bars of the ratios that have a target, on a logarithmic axis."""
    try:
        import matplotlib
    except ImportError:
        return False
    matplotlib.use("svg")
    # Fixed ids and no date, so that the same rows give the same file.
    matplotlib.rcParams["svg.hashsalt"] = "hardmargin"
    import matplotlib.pyplot as plt

    bars = [c for c in found if c.rival and c.target]
    if not bars:
        return False
    figure, axes = plt.subplots(figsize=(8, 0.5 + 0.35 * len(bars)), layout="constrained")
    places = range(len(bars))
    colours = ["tab:blue" if c.verdict == "pass" else "tab:orange" for c in bars]
    axes.barh(places, [c.middle for c in bars], color=colours)
    axes.plot([float(c.target.split()[1]) for c in bars], places, "k|", ms=14, mew=2)
    axes.set_yticks(places, [f"{c.job}, {c.set}: {c.rival} ({c.quantity[:-2]})" for c in bars])
    axes.invert_yaxis()
    axes.set(xscale="log", xlabel="times faster than the rival (marks: targets)")
    figure.savefig(path, metadata={"Date": None})
    return True


if __name__ == "__main__":
    main()
