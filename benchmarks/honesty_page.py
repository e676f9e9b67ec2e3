"""The page HONESTY.md of `honesty.py`, which calls this."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd
from honesty_kinds import Kind
from page import table

TEXTS = ("kind", "cell", "model", "status", "version", "note")
NAMES = {
    **{"ensemble": "EnsembleSVC", "greedy": "GreedySVC", "logistic": "LogisticRegression"},
    **{"logistic-cv": "LogisticRegressionCV", "lightgbm": "LightGBM", "catboost": "CatBoost"},
}
OURS = ("ensemble", "greedy")
HEAD = (
    *("model", "fits", "true log-loss", "promised - true", "absolute", "worst cell", "worst fit"),
    *("within 2 se %", "true error", "promised - true", "absolute", "worst fit"),
    *("calibration error", "CPU s"),
)
N_WORST = 10
LEAST_SHARE = 0.75  # of a kind's problems: a model with fewer is not compared at a glance
INTRODUCTION = """\
A fit promises a log-loss and an error for new rows: ours `cv_log_loss_` and `cv_error_`, the others
the means over the rows that a cross-validation of five folds (or what the model is told) holds out.
The truth is what thousands of new rows of the same law get.

- **Below zero, a promise is too good.** *Absolute* is the mean of the absolute differences. A
  *cell* is the mean over the seeds of one size; *worst* is the one furthest from the truth.
- *Within 2 se* is the share of the fits whose true log-loss is within two standard errors of the
  promise: `cv_log_loss_std_error_` of ours; of the others, the standard deviation of the losses of
  the rows held out, over the root of their number.
- The calibration error is the mean distance of probabilities from shares, in ten bins.
- CPU seconds are those of a fit with its promise, so they include a cross-validation of the others.
- CatBoost takes long and has the first seed of a cell at most, so its means are over fewer fits.
- `LogisticRegression` has its default C, `LogisticRegressionCV` the best of ten by the log-loss of
  five inner folds; an outer cross-validation makes its promise. Both have standardised columns."""


def page(rows: list[dict[str, Any]], kinds: Mapping[str, Kind], models: Sequence[str]) -> str:
    every = frame_of(rows, kinds, models)
    frame = every[every["status"] == "ok"]
    parts = [
        "# What fits promise, and what new rows get",
        "Made from `honesty.csv` by `honesty.py`; `README.md` describes the measurements.",
        "\n".join(environment(every)),
        INTRODUCTION,
        "## All kinds at a glance",
        "Mean absolute difference of the promised and the true log-loss, and in brackets the true "
        "one, over the problems that all models of a line have. The smallest of each are bold. A "
        "model with fewer than three quarters of a kind's problems is only in the table below.",
        glance(frame, kinds),
    ]
    for name, kind in kinds.items():
        part = frame[frame["kind"] == name]
        if not part.empty:
            parts += [f"## {kind.title}", kind.text, *of_kind(part)]
    parts += ["## The worst promises of ours", *worst(frame)]
    return "\n\n".join(parts) + "\n"


def frame_of(
    rows: list[dict[str, Any]], kinds: Mapping[str, Kind], models: Sequence[str]
) -> pd.DataFrame:
    frame = pd.DataFrame(rows)
    for column in frame.columns.difference(TEXTS):
        frame[column] = pd.to_numeric(frame[column])
    frame["kind"] = pd.Categorical(frame["kind"], list(kinds), ordered=True)
    frame["model"] = pd.Categorical(frame["model"], list(models), ordered=True)
    for quantity in ("log_loss", "error"):
        frame[f"{quantity}_gap"] = frame[f"promised_{quantity}"] - frame[quantity]
    error = frame["promised_log_loss_std_error"]
    frame["is_within"] = (frame["log_loss_gap"].abs() <= 2 * error).where(error.notna())
    frame["cpu_s"] = frame["fit_cpu_s"] + frame["promise_cpu_s"].fillna(0.0)
    return frame


def environment(every: pd.DataFrame) -> Iterable[str]:
    versions = every[every["status"] == "ok"].groupby("model", observed=True)["version"]
    listed = (f"{NAMES[m]} {', '.join(sorted(v.unique()))}" for m, v in versions)
    yield f"- versions: {'; '.join(listed)} (the logistic regressions are scikit-learn's)"
    counts = every[every["status"] == "ok"].groupby("model", observed=True).size()
    yield "- fits: " + ", ".join(f"{NAMES[m]} {n}" for m, n in counts.items())
    left_out = every[~every["status"].isin(["ok"])]
    for (status, note), part in left_out.groupby(["status", "note"]):
        models = ", ".join(NAMES[m] for m in part["model"].unique())
        cells = ", ".join(
            f"{k}: {c}" for k, c in dict.fromkeys(zip(part["kind"], part["cell"], strict=True))
        )
        yield f"- {status}: {models} on {cells} {note and f'({note})'}".rstrip()


def glance(frame: pd.DataFrame, kinds: Mapping[str, Kind]) -> str:
    """Kinds by models, over the problems that all models of a kind have."""
    models = list(frame["model"].cat.categories.intersection(frame["model"].unique(), sort=False))
    lines = []
    for name, kind in kinds.items():
        part = shared(frame[frame["kind"] == name])
        if part.empty:
            continue
        means = part.assign(gap=part["log_loss_gap"].abs()).groupby("model", observed=True)
        gaps, losses = means["gap"].mean(), means["log_loss"].mean()
        n = part.groupby("model", observed=True).size().max()
        cells = []
        for model in models:
            if model not in losses:
                cells.append("")
                continue
            gap = bold(f"{gaps[model]:.3f}", gaps[model] == gaps.min())
            cells.append(f"{gap} ({bold(f'{losses[model]:.3f}', losses[model] == losses.min())})")
        lines.append([kind.title, str(n), *cells])
    return table(("kind", "fits", *(NAMES[m] for m in models)), lines)


def shared(part: pd.DataFrame) -> pd.DataFrame:
    """The problems on which all models that have most of them have a promise and a truth."""
    part = part[part["log_loss_gap"].notna()]
    counts = part.groupby("model", observed=True).size()
    part = part[part["model"].isin(counts.index[counts >= LEAST_SHARE * counts.max()])]
    n_models = part["model"].nunique()
    has_all = part.groupby(["cell", "seed"])["model"].transform("nunique") == n_models
    return part[has_all]


def bold(text: str, is_best: bool) -> str:
    return f"**{text}**" if is_best else text


def of_kind(part: pd.DataFrame) -> list[str]:
    """The models of a kind, and their cells."""
    lines = [[NAMES[model], *summary(own)] for model, own in part.groupby("model", observed=True)]
    problems = part.drop_duplicates(["cell", "seed"])
    known = f"The shares of the classes get {problems['constant_log_loss'].mean():.3f}"
    if problems["best_log_loss"].notna().all():
        known += f", the true probabilities {problems['best_log_loss'].mean():.3f}"
    return [
        f"{known} (means over {len(problems)} problems).",
        table(HEAD, lines),
        "Cell by cell: true log-loss (promised).",
        by_cell(part),
    ]


def summary(own: pd.DataFrame) -> list[str]:
    gaps, errors = own["log_loss_gap"], own["error_gap"]
    cells = own.groupby("cell", sort=False)["log_loss_gap"].mean()
    within = own["is_within"].dropna()
    return [
        str(len(own)),
        f"{own['log_loss'].mean():.3f}",
        signed(gaps.mean()),
        number(gaps.abs().mean()),
        signed(furthest(cells)),
        signed(furthest(gaps)),
        f"{100 * within.astype(float).mean():.0f}" if len(within) else "",
        f"{own['error'].mean():.3f}",
        signed(errors.mean()),
        number(errors.abs().mean()),
        signed(furthest(errors)),
        f"{own['calibration_error'].mean():.3f}",
        f"{own['cpu_s'].mean():.2f}",
    ]


def by_cell(part: pd.DataFrame) -> str:
    models = [m for m, _ in part.groupby("model", observed=True)]
    lines = []
    for cell, own in part.groupby("cell", sort=False):
        means = own.groupby("model", observed=True)[["log_loss", "promised_log_loss"]].mean()
        problems = own.drop_duplicates("seed")
        texts = [
            f"{means['log_loss'][m]:.3f} ({number(means['promised_log_loss'][m])})"
            if m in means.index
            else ""
            for m in models
        ]
        bounds = (problems["best_log_loss"].mean(), problems["constant_log_loss"].mean())
        lines.append([str(cell), str(len(problems)), *map(number, bounds), *texts])
    heads = ("cell", "seeds", "true probabilities", "shares", *(NAMES[m] for m in models))
    return table(heads, lines)


def worst(frame: pd.DataFrame) -> Iterable[str]:
    """The fits of ours whose promise is furthest from the truth."""
    ours = frame[frame["model"].isin(OURS) & frame["log_loss_gap"].notna()]
    order = ours["log_loss_gap"].abs().sort_values(ascending=False, kind="stable").index
    lines = [
        [
            *(NAMES[row["model"]], str(row["kind"]), row["cell"], str(row["seed"])),
            *(f"{row[k]:.3f}" for k in ("log_loss", "promised_log_loss")),
            *(f"{row[k]:.3f}" for k in ("error", "promised_error")),
        ]
        for _, row in ours.loc[order[:N_WORST]].iterrows()
    ]
    heads = ("true log-loss", "promised", "true error", "promised")
    yield table(("model", "kind", "cell", "seed", *heads), lines)
    none = frame[frame["model"].isin(OURS) & frame["log_loss_gap"].isna()]
    if not none.empty:
        counts = none.groupby(["model", "kind"], observed=True).size()
        listed = (f"{NAMES[m]} on {n} of {kind}" for (m, kind), n in counts.items())
        yield f"No promise (the rows were too few to judge): {', '.join(listed)}."


def furthest(values: pd.Series) -> float:
    """The value furthest from zero."""
    known = values.dropna()
    return float(known.loc[known.abs().idxmax()]) if len(known) else float("nan")


def signed(value: float) -> str:
    return f"{value:+.3f}" if value == value else ""


def number(value: float) -> str:
    return f"{value:.3f}" if value == value else ""
