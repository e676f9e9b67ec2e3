"""Make ACCURACY.md and its figure from accuracy.csv: `python benchmarks/accuracy_page.py`."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from accuracy import MAIN_SIZE, MODELS, OURS, RIVALS, SEPARATE, SIZES, UNBALANCED_ONLY, read
from accuracy_sets import GROUPS, SETS
from page import table
from scipy.stats import friedmanchisquare, studentized_range, wilcoxon

HERE = Path(__file__).resolve().parent
FIGURE = "ranks.svg"
NUMBERS = (
    *("rows", "split", "error", "balanced_error", "log_loss", "average_precision", "fit_cpu_s"),
    *("calibrate_cpu_s", "predict_s", "n_train", "n_test", "n_features", "n_classes"),
    "cv_log_loss",
)
# For each quantity: a title, the factor of the printed numbers, and their decimals.
QUANTITIES = {
    "error": ("error %", 100.0, 2),
    "log_loss": ("log-loss", 1.0, 4),
    "balanced_error": ("balanced error %", 100.0, 2),
    "average_precision": ("average precision", 1.0, 4),
}
JUDGED = ("error", "log_loss")
OF_UNBALANCED = ("balanced_error", "average_precision")
LARGEST_IS_BEST = ("average_precision",)
MARKS = {"ok": "", "cut": ">", "failed": "failed", "missing": "missing"}  # if there is no number
GENERAL = [m for m in MODELS if m not in UNBALANCED_ONLY]
FIRST = "ensemble"  # of ours: it is shown set by set, and times are relative to its own
PAIRS = [(a, b) for a, b in product(OURS, (*RIVALS, *SEPARATE)) if {a, b} <= set(GENERAL)]
BALANCED_PAIRS = [(a, b) for a in OURS for b in ("svc-grid", "svc-grid-balanced")]
SIGNIFICANCE = 0.05


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=Path, default=HERE / "accuracy.csv")
    parser.add_argument("--out", type=Path, default=HERE / "ACCURACY.md")
    options = parser.parse_args()
    rows = read(options.results)
    if not rows:
        parser.error(f"{options.results} has no rows: run accuracy.py first")
    frame = frame_of(rows)
    draw(frame, options.out.with_name(FIGURE))
    options.out.write_text(page(frame), encoding="utf-8")


def frame_of(rows: list[dict[str, Any]]) -> pd.DataFrame:
    frame = pd.DataFrame(rows)
    for name in NUMBERS:
        frame[name] = pd.to_numeric(frame[name])
    return frame


def page(frame: pd.DataFrame) -> str:
    parts = [
        "# Accuracy without tuning, against tuned rivals",
        "Made from `accuracy.csv` by `accuracy_page.py`; `README.md` describes the measurements.",
        "\n".join(environment(frame)),
        seen_note(),
        f"![Mean ranks at every size, with critical differences]({FIGURE})",
        "A dot is the mean rank of a model over the sets (left is better). Two models differ "
        f"significantly (Nemenyi, {SIGNIFICANCE:.0%}) where their bars, one critical difference "
        "long, do not overlap.",
    ]
    for size in SIZES:
        part = frame[frame["rows"] == size]
        if not part.empty:
            parts += [f"## At most {size:,} rows to train", *size_parts(part, size)]
    parts += [
        "## What fit expects, and what new rows show",
        "`cv_log_loss_` less the log-loss on the test part, the mean over the sets.",
        expectations(frame),
    ]
    main = frame[(frame["rows"] == MAIN_SIZE) & ~frame["model"].isin(SEPARATE)]
    if not main.empty:
        parts += [
            f"## At most {MAIN_SIZE:,} rows: the models of this environment, on all their splits",
            "### All splits: set by set",
            *set_tables(main, list(QUANTITIES), [*OURS, *RIVALS]),
            "Balanced error (the mean over the classes of their error) on the unbalanced sets:",
            differences(main, ("balanced_error",), ("unbalanced",), BALANCED_PAIRS),
            "Seconds for one split of every set, with one thread: the sums of the sets' means. "
            "The time for probabilities is that of the extra fits of CalibratedClassifierCV; the "
            "other models need none.",
            times(main),
        ]
    return "\n\n".join([*parts, "## The sets", sets_table(frame)]) + "\n"


def seen_note() -> str:
    unseen = [name for name in SETS if name in members("unseen")]
    return (
        f"**Seen and unseen sets.** Constants of hardmargin were chosen on all splits of "
        f"{len(SETS) - len(unseen)} of the {len(SETS)} sets (*seen*), with at most 1,000 rows to "
        "train, and two of them with more: how many kernels go on above 2,500 rows, and where many "
        "classes have a machine each (on other splits of letter, optdigits, pendigits and vowel). "
        "On these sets ours has an advantage that the rivals do not have; other sizes of the same "
        "sets are independent of that choice only in part. Nothing was ever chosen on the "
        f"{len(unseen)} *unseen* sets: {', '.join(unseen)}."
    )


def size_parts(frame: pd.DataFrame, size: int) -> list[str]:
    groups = ("all", "unseen", *(GROUPS if size == MAIN_SIZE else ()))
    return [
        f"### {size:,} rows: means and ranks",
        "Over the splits that all these models share, and the sets on which all have numbers.",
        summary(frame, "all"),
        "The same over the unseen sets:",
        summary(frame, "unseen"),
        f"### {size:,} rows: ours against each rival",
        "Our mean less the rival's over the splits that both have, so that **ours is better below "
        "zero**; errors in percentage points. The standard error and Wilcoxon's p (two-sided) are "
        "over the sets. A win is a set with a lower mean. CPU: the rival's time to fit over ours.",
        differences(frame, JUDGED, groups, PAIRS),
        f"### {size:,} rows: where a rival is ahead",
        "The best rival of a set is the one with the lowest mean on its test parts.",
        *(ahead(frame, quantity) for quantity in JUDGED),
        f"### {size:,} rows: set by set",
        *set_tables(frame, JUDGED, GENERAL),
    ]


def expectations(frame: pd.DataFrame) -> str:
    """How far the held-out loss of ours is from that on new rows."""
    known = frame[frame["model"].isin(GENERAL) & frame["cv_log_loss"].notna()]
    lines = []
    for (model, size), part in known.groupby(["model", "rows"], sort=False):
        for group in ("seen", "unseen"):
            chosen = part[part["set"].isin(members(group))]
            gaps = (chosen["cv_log_loss"] - chosen["log_loss"]).groupby(chosen["set"]).mean()
            if len(gaps) > 1:
                error = gaps.std() / np.sqrt(len(gaps))
                lines.append(
                    [
                        model,
                        f"{size:,}",
                        group,
                        str(len(gaps)),
                        f"{gaps.mean():+.4f}",
                        f"{error:.4f}",
                    ]
                )
    return table(
        ("model", "rows", "sets of", "sets", "expected less found", "standard error"), lines
    )


def environment(frame: pd.DataFrame) -> Iterable[str]:
    libraries = {"hardmargin": list(OURS), "scikit-learn": list(RIVALS)}
    for name, models in (libraries | {m: [m] for m in SEPARATE}).items():
        if versions := sorted(filter(None, frame["version"][frame["model"].isin(models)].unique())):
            yield f"- {name} {', '.join(versions)}"
    for size, part in frame[frame["status"] == "ok"].groupby("rows"):
        counts = part.groupby("model")["set"].agg(["size", "nunique"])
        listed = (f"{m} {'/'.join(map(str, counts.loc[m]))}" for m in MODELS if m in counts.index)
        yield f"- fits/sets at {size:,} rows: {', '.join(listed)}"
    is_silent = (frame["status"] == "ok") & frame["log_loss"].isna()
    reasons = frame["status"].mask(is_silent, "no probabilities")
    for (why, model, size, note), part in frame.groupby([reasons, "model", "rows", "note"]):
        if why != "ok":
            names = ", ".join(part["set"].unique())
            yield f"- {why}: {model} at {size:,} rows on {names} {note and f'({note})'}".rstrip()


def members(group: str) -> set[str]:
    """The names of the sets of a group: one of GROUPS, seen, unseen or all."""
    return {
        name
        for name, data in SETS.items()
        if group in ("all", data.group, "seen" if data.is_seen else "unseen")
    }


def means_of(frame: pd.DataFrame, quantity: str, models: Sequence[str]) -> pd.DataFrame:
    """Sets by models: the means over the splits on which all models of a set have a number."""
    wide = frame.pivot(index=["set", "split"], columns="model", values=quantity)
    wide = wide[[m for m in models if m in wide and wide[m].notna().any()]]
    # A model without any number for a set does not keep the others from having theirs.
    is_absent = ~wide.notna().groupby("set").transform("any")
    means = wide[(wide.notna() | is_absent).all(axis=1)].groupby("set").mean()
    return means.loc[[s for s in SETS if s in means.index]].dropna(how="all")


def whole(frame: pd.DataFrame, quantity: str, group: str = "all") -> pd.DataFrame:
    """The means of the models that were measured on all sets, where all have numbers."""
    part = frame[frame["set"].isin(members(group)) & frame["model"].isin(GENERAL)]
    n_sets = part.groupby("model")["set"].nunique()
    return means_of(part, quantity, [m for m in GENERAL if n_sets.get(m) == n_sets.max()]).dropna()


def critical_difference(n_models: int, n_sets: int) -> float:
    """The distance of two mean ranks that Nemenyi's test finds significant."""
    q = studentized_range.ppf(1 - SIGNIFICANCE, n_models, np.inf) / np.sqrt(2)
    return float(q * np.sqrt(n_models * (n_models + 1) / (6 * n_sets)))


def summary(frame: pd.DataFrame, group: str) -> str:
    """Means, mean ranks and times of all models, and how far apart ranks have to be."""
    error, log_loss = (whole(frame, quantity, group) for quantity in JUDGED)
    if len(error) < 2 or error.shape[1] < 3:
        return "Fewer than three models, or two sets, have been measured."
    cpu = means_of(frame, "fit_cpu_s", list(error)).loc[error.index].sum()
    ranks = [means.rank(axis=1).mean() for means in (error, log_loss)]
    columns = zip(
        bold_best((100 * error.mean()).to_numpy(), 2),
        bold_best(ranks[0].to_numpy(), 2),
        bold_best(log_loss.mean().to_numpy(), 4),
        bold_best(ranks[1].to_numpy(), 2),
        (f"{seconds:,.1f}" for seconds in cpu),
        (f"{ratio:.2f}" for ratio in cpu / cpu.get(FIRST, np.nan)),
        strict=True,
    )
    lines = [[model, *line] for model, line in zip(error, columns, strict=True)]
    heads = ("error %", "mean rank", "log-loss", "mean rank", "fit CPU s", f"x {FIRST}")
    note = "; ".join(
        f"{QUANTITIES[quantity][0].removesuffix(' %')}: {len(means)} sets, critical difference of "
        f"the mean ranks {critical_difference(means.shape[1], len(means)):.2f}, "
        f"Friedman's p {friedmanchisquare(*means.to_numpy().T).pvalue:.2g}"
        for quantity, means in zip(JUDGED, (error, log_loss), strict=True)
    )
    return table(("model", *heads), lines) + f"\n\n{note}."


def draw(frame: pd.DataFrame, path: Path) -> None:
    """A panel for every size and quantity: mean ranks with bars of one critical difference."""
    import matplotlib

    matplotlib.use("svg")
    # Fixed ids and no date, so that the same rows give the same file.
    matplotlib.rcParams["svg.hashsalt"] = "hardmargin"
    import matplotlib.pyplot as plt

    sizes = [size for size in SIZES if (frame["rows"] == size).any()]
    figure, grid = plt.subplots(
        len(sizes), len(JUDGED), figsize=(9, 2.4 * len(sizes)), layout="constrained", squeeze=False
    )
    for (size, quantity), axes in zip(product(sizes, JUDGED), grid.flat, strict=True):
        means = whole(frame[frame["rows"] == size], quantity)
        ranks = means.rank(axis=1).mean().sort_values(ascending=False)
        half = critical_difference(len(ranks), len(means)) / 2
        for place, (model, rank) in enumerate(ranks.items()):
            colour = "tab:blue" if model in OURS else "tab:gray"
            axes.errorbar(rank, place, xerr=half, fmt="o", color=colour, capsize=3)
        axes.set_yticks(range(len(ranks)), ranks.index)
        axes.set_title(
            f"{QUANTITIES[quantity][0].removesuffix(' %')}, {size:,} rows, {len(means)} sets"
        )
    figure.supxlabel("mean rank (left is better)")
    figure.savefig(path, metadata={"Date": None})


def ahead(frame: pd.DataFrame, quantity: str) -> str:
    """The sets on which the best rival has a lower mean than ours, the widest gap first."""
    title, factor, decimals = QUANTITIES[quantity]
    means = means_of(frame, quantity, [FIRST, *(m for m in GENERAL if m not in OURS)]) * factor
    if FIRST not in means or means.shape[1] < 2:
        return "Ours have not been measured yet."
    means = means.dropna(subset=FIRST)
    rivals = means.drop(columns=FIRST)
    best, gaps = rivals.idxmin(axis=1), (means[FIRST] - rivals.min(axis=1)).round(decimals + 1)
    lines = [
        [
            name,
            seen_mark(name),
            *(f"{v:.{decimals}f}" for v in (means[FIRST][name], gap)),
            best[name],
        ]
        for name, gap in gaps[gaps > 0].sort_values(ascending=False).items()
    ]
    head = (
        f"{title}: the best rival is ahead of `{FIRST}` on {len(lines)} of {len(means)} sets, and "
        f"`{FIRST}` of all rivals on {int((gaps < 0).sum())}."
    )
    return head + "\n\n" + table(("set", "", FIRST, "behind by", "best rival"), lines)


def seen_mark(name: str) -> str:
    return "" if SETS[name].is_seen else "unseen"


def set_tables(frame: pd.DataFrame, quantities: Iterable[str], models: Sequence[str]) -> list[str]:
    parts = []
    for group, quantity in product(GROUPS, quantities):
        chosen = frame[frame["group"] == group]
        if not chosen.empty and (quantity not in OF_UNBALANCED or group == "unbalanced"):
            title = f"{group}: {QUANTITIES[quantity][0]}"
            parts += [f"#### {title}", means_table(chosen, quantity, models)]
    return parts


def means_table(frame: pd.DataFrame, quantity: str, models: Sequence[str]) -> str:
    """The best of every line in bold, and the mean over the sets with numbers for all models."""
    _, factor, decimals = QUANTITIES[quantity]
    means = means_of(frame, quantity, models) * factor
    best = np.max if quantity in LARGEST_IS_BEST else np.min
    gone = frame[frame["status"] != "ok"]
    reasons = dict(zip(zip(gone["set"], gone["model"], strict=True), gone["status"], strict=True))
    lines = []
    for name, line in means.iterrows():
        marks = [MARKS[reasons.get((name, model), "ok")] for model in means.columns]
        label = f"{name} {seen_mark(name) and '(unseen)'}".rstrip()
        lines.append([label, *bold_best(line.to_numpy(), decimals, marks, best)])
    complete = means.dropna()
    if not complete.empty:
        label = f"mean of {len(complete)} sets"
        lines.append([label, *bold_best(complete.mean().to_numpy(), decimals, best=best)])
    return table(["set", *means.columns], lines)


def bold_best(
    values: np.ndarray,
    decimals: int,
    marks: Sequence[str] | None = None,
    best: Callable[[np.ndarray], float] = np.min,
) -> list[str]:
    """Printed numbers, or the `marks` of those that are not finite."""
    texts = [f"{v:.{decimals}f}" if np.isfinite(v) else "" for v in values]
    finite = values[np.isfinite(values)]
    most = f"{best(finite):.{decimals}f}" if len(finite) else ""
    bold = [f"**{text}**" if text and text == most else text for text in texts]
    return [text or mark for text, mark in zip(bold, marks or [""] * len(bold), strict=True)]


DIFFERENCES = (
    *("ours", "rival", "quantity", "sets of", "sets", "ours less rival", "standard error"),
    *("wins", "ties", "losses", "wins %", "p", "CPU"),
)


def differences(
    frame: pd.DataFrame,
    quantities: Iterable[str],
    groups: Iterable[str],
    pairs: Iterable[tuple[str, str]],
) -> str:
    lines = []
    for pair, quantity, group in product(pairs, quantities, groups):
        chosen = frame[frame["set"].isin(members(group)) & frame["model"].isin(pair)]
        means = means_of(chosen, quantity, pair).dropna()
        if means.shape[1] == 2 and not means.empty:
            title, factor, decimals = QUANTITIES[quantity]
            # The file has six digits: without rounding, ties would become wins or losses.
            gaps = ((means[pair[0]] - means[pair[1]]) * factor).round(decimals + 1)
            cpu = means_of(chosen, "fit_cpu_s", pair).dropna().sum()
            ratio = f"{cpu[pair[1]] / cpu[pair[0]]:.2g}"
            lines.append([*pair, title, group, *paired(gaps.to_numpy(), decimals), ratio])
    return table(DIFFERENCES, lines) if lines else "Ours have not been measured yet."


def paired(gaps: np.ndarray, decimals: int) -> list[str]:
    """How many sets, mean, standard error, wins, ties, losses, share of wins and p."""
    mean, error, p = f"{gaps.mean():+.{decimals}f}", "", ""
    if len(gaps) > 1 and gaps.any():
        error = f"{gaps.std(ddof=1) / np.sqrt(len(gaps)):.{decimals}f}"
        p = f"{wilcoxon(gaps).pvalue:.2g}"
    counts = (np.sum(gaps < 0), np.sum(gaps == 0), np.sum(gaps > 0))
    return [str(len(gaps)), mean, error, *map(str, counts), f"{100 * np.mean(gaps < 0):.0f}", p]


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
    train = frame.pivot_table(index="set", columns="rows", values="n_train", aggfunc="first")
    first = frame.groupby("set")[["n_features", "n_classes"]].first()
    lines = (
        [
            *(name, data.group, data.source, "yes" if data.is_seen else "**no**"),
            *("" if np.isnan(n) else f"{n:,.0f}" for n in train.loc[name]),
            *(f"{v:,}" for v in first.loc[name]),
        ]
        for name, data in SETS.items()
        if name in first.index
    )
    heads = (*(f"train, of {size:,}" for size in train), "features", "classes")
    return table(("set", "group", "source", "constants chosen on it", *heads), lines)


if __name__ == "__main__":
    main()
