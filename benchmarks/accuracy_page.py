"""Make ACCURACY.md from accuracy.csv: `python benchmarks/accuracy_page.py`."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from accuracy import MODELS, OURS, RIVALS, UNBALANCED_ONLY, read
from accuracy_sets import GROUPS, SETS
from page import table
from scipy.stats import wilcoxon

HERE = Path(__file__).resolve().parent
NUMBERS = (
    *("split", "error", "balanced_error", "log_loss", "average_precision", "fit_cpu_s"),
    *("calibrate_cpu_s", "predict_s", "n_train", "n_test", "n_features", "n_classes"),
)
# For each quantity: a title, the factor of the printed numbers, and their decimals.
QUANTITIES = {
    "error": ("error %", 100.0, 2),
    "balanced_error": ("balanced error %", 100.0, 2),
    "log_loss": ("log-loss", 1.0, 4),
    "average_precision": ("average precision", 1.0, 4),
}
OF_UNBALANCED = ("balanced_error", "average_precision")
LARGEST_IS_BEST = ("average_precision",)
MARKS = {"ok": "", "cut": ">", "failed": "failed"}  # printed if there is no number
PAIRS = [(a, b) for a in OURS for b in RIVALS if not {a, b} & set(UNBALANCED_ONLY)]
BALANCED_PAIRS = [(a, b) for a in OURS for b in ("svc-grid", "svc-grid-balanced")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=Path, default=HERE / "accuracy.csv")
    parser.add_argument("--out", type=Path, default=HERE / "ACCURACY.md")
    options = parser.parse_args()
    rows = read(options.results)
    if not rows:
        parser.error(f"{options.results} has no rows: run accuracy.py first")
    options.out.write_text(page(frame_of(rows)), encoding="utf-8")


def frame_of(rows: list[dict[str, Any]]) -> pd.DataFrame:
    """The rows of the splits on which every model of their set has been measured."""
    frame = pd.DataFrame(rows)
    for name in NUMBERS:
        frame[name] = pd.to_numeric(frame[name])
    models = frame.groupby("set")["model"].transform("nunique")
    measured = frame.groupby(["set", "split"])["model"].transform("nunique")
    return frame[measured == models]


def page(frame: pd.DataFrame) -> str:
    parts = [
        "# Accuracy without tuning, against tuned rivals",
        "Made from `accuracy.csv` by `accuracy_page.py`; `README.md` describes the measurements.",
        "\n".join(environment(frame)),
        "## Differences",
        "Our mean less the rival's on each set, so that **ours is better below zero**; errors in "
        "percentage points. The standard error and Wilcoxon's p (two-sided) are over the sets; "
        "a win is a set with a lower mean.",
        differences(frame, ("error", "log_loss"), (*GROUPS, "all"), PAIRS),
        "Balanced error (the mean over the classes of their error) on the unbalanced sets:",
        differences(frame, ("balanced_error",), ("unbalanced",), BALANCED_PAIRS),
    ]
    for group in GROUPS:
        chosen = frame[frame["group"] == group]
        for quantity in QUANTITIES:
            if not chosen.empty and (quantity not in OF_UNBALANCED or group == "unbalanced"):
                parts += [f"## {group}: {QUANTITIES[quantity][0]}", means_table(chosen, quantity)]
    parts += [
        "## Time",
        "Seconds for one split of every set, with one thread: the sums of the sets' means. "
        "The time for probabilities is that of the extra fits of CalibratedClassifierCV; the other "
        "models need none.",
        times(frame),
        "## The sets",
        sets_table(frame),
    ]
    return "\n\n".join(parts) + "\n"


def environment(frame: pd.DataFrame) -> Iterable[str]:
    is_ours = frame["model"].isin(list(OURS))
    for name, part in (("hardmargin", frame[is_ours]), ("scikit-learn", frame[~is_ours])):
        if not part.empty:
            yield f"- {name} {', '.join(sorted(part['version'].unique()))}"
    for status in ("cut", "failed"):
        cells = frame[frame["status"] == status]
        if not cells.empty:
            counts = cells.groupby(["set", "model"]).size()
            listed = ", ".join(f"{m} on {s} ({n} splits)" for (s, m), n in counts.items())
            yield f"- {status}: {listed}"


def means_of(frame: pd.DataFrame, quantity: str) -> pd.DataFrame:
    """Sets by models; NaN if one of the splits has no number."""
    means = frame.groupby(["set", "model"])[quantity].agg(lambda values: values.mean(skipna=False))
    means = means.unstack("model")
    known = [m for m in MODELS if m in means and means[m].notna().any()]
    return means.loc[[s for s in SETS if s in means.index], known]


def means_table(frame: pd.DataFrame, quantity: str) -> str:
    """The best of every line in bold, and the mean over the sets with numbers for all models."""
    _, factor, decimals = QUANTITIES[quantity]
    means = means_of(frame, quantity) * factor
    best = np.max if quantity in LARGEST_IS_BEST else np.min
    gone = frame[frame["status"] != "ok"]
    reasons = dict(zip(zip(gone["set"], gone["model"], strict=True), gone["status"], strict=True))
    lines = []
    for name, line in means.iterrows():
        marks = [MARKS[reasons.get((name, model), "ok")] for model in means.columns]
        lines.append([str(name), *bold_best(line.to_numpy(), decimals, marks, best)])
    whole = means.dropna()
    label = f"mean of {len(whole)} sets"
    unmarked = [""] * len(means.columns)
    lines.append([label, *bold_best(whole.mean().to_numpy(), decimals, unmarked, best)])
    return table(["set", *means.columns], lines)


def bold_best(
    values: np.ndarray, decimals: int, marks: list[str], best: Callable[[np.ndarray], float]
) -> list[str]:
    """Printed numbers, or the `marks` of those that are not finite."""
    texts = [f"{v:.{decimals}f}" if np.isfinite(v) else "" for v in values]
    finite = values[np.isfinite(values)]
    most = f"{best(finite):.{decimals}f}" if len(finite) else ""
    bold = [f"**{text}**" if text and text == most else text for text in texts]
    return [text or mark for text, mark in zip(bold, marks, strict=True)]


DIFFERENCES = (
    *("ours", "rival", "quantity", "group", "sets", "ours less rival", "standard error"),
    *("wins", "ties", "losses", "p"),
)


def differences(
    frame: pd.DataFrame,
    quantities: Iterable[str],
    groups: Iterable[str],
    pairs: Iterable[tuple[str, str]],
) -> str:
    lines = []
    for (ours, rival), quantity, group in product(pairs, quantities, groups):
        chosen = frame if group == "all" else frame[frame["group"] == group]
        means = means_of(chosen, quantity)
        if ours in means and rival in means:
            title, factor, decimals = QUANTITIES[quantity]
            gaps = ((means[ours] - means[rival]).dropna() * factor).round(9)
            lines.append([ours, rival, title, group, *paired(gaps.to_numpy(), decimals)])
    return table(DIFFERENCES, lines) if lines else "Ours have not been measured yet."


def paired(gaps: np.ndarray, decimals: int) -> list[str]:
    """How many sets, mean, standard error, wins, ties, losses and p."""
    if len(gaps) < 2 or not gaps.any():
        mean, error, p = (f"{gaps.mean():+.{decimals}f}" if len(gaps) else ""), "", ""
    else:
        mean = f"{gaps.mean():+.{decimals}f}"
        error = f"{gaps.std(ddof=1) / np.sqrt(len(gaps)):.{decimals}f}"
        p = f"{wilcoxon(gaps).pvalue:.2g}"
    counts = (np.sum(gaps < 0), np.sum(gaps == 0), np.sum(gaps > 0))
    return [str(len(gaps)), mean, error, *map(str, counts), p]


def times(frame: pd.DataFrame) -> str:
    means = frame.groupby(["model", "group", "set"])[
        ["fit_cpu_s", "calibrate_cpu_s", "predict_s"]
    ].mean()
    lines = []
    for model in (m for m in MODELS if m in means.index):
        part = means.loc[model]
        fits = part["fit_cpu_s"].groupby("group").sum()
        lines.append(
            [
                *(model, str(len(part))),
                *(f"{fits[group]:,.1f}" if group in fits else "" for group in GROUPS),
                f"{fits.sum():,.1f}",
                *(f"{part[name].sum():,.1f}" for name in ("calibrate_cpu_s", "predict_s")),
            ]
        )
    heads = [*(f"fit CPU s, {group}" for group in GROUPS), "fit CPU s, all"]
    return table(["model", "sets", *heads, "probabilities CPU s", "predict s"], lines)


def sets_table(frame: pd.DataFrame) -> str:
    names = ["n_train", "n_test", "n_features", "n_classes"]
    first = frame.groupby("set")[names].first()
    splits = frame.groupby("set")["split"].nunique()
    lines = (
        [name, data.group, data.source, *(f"{v:,}" for v in first.loc[name]), str(splits[name])]
        for name, data in SETS.items()
        if name in first.index
    )
    heads = ("train", "test", "features", "classes", "splits")
    return table(("set", "group", "source", *heads), lines)


if __name__ == "__main__":
    main()
