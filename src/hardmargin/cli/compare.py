"""``hardmargin compare``: classifiers side by side on your own table."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from hardmargin.cli.deadline import Deadline, deadline_of
from hardmargin.cli.errors import InputError, did_you_mean
from hardmargin.cli.models import labels_of
from hardmargin.cli.options import table_options
from hardmargin.cli.outputs import check_output, show_json, spoken_warnings, table_lines
from hardmargin.cli.tables import kinds_of, training_table
from hardmargin.cli.text_files import TextFormat
from hardmargin.comparison.measure import (
    Measured,
    error_of,
    log_loss_of,
    make_splits,
    measure,
    prepare,
)
from hardmargin.io import write_whole
from hardmargin.reproduction.progress import Progress

if TYPE_CHECKING:
    from hardmargin.comparison.rivals import Rival

#: Seconds for each classifier if there is no limit for all.
MAX_SECONDS = 300


@click.command()
@table_options
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    default=Path("report.html"),
    show_default=True,
    help="The report.",
)
@click.option(
    "--model",
    "names",
    multiple=True,
    metavar="NAME",
    help="Compare only these; repeatable: EnsembleSVC, GreedySVC, SVC, 'logistic regression', "
    "'random forest', 'boosted trees', LightGBM, XGBoost, CatBoost. All that are installed by "
    "default.",
)
@click.option(
    "--max-time",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="For the whole command, divided among the classifiers: what one leaves is for the others. "
    f"If not given, each has {MAX_SECONDS} seconds. Those that take longer are abandoned.",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option("--force", is_flag=True, help="Replace an existing report.")
@click.option("--json", "as_json", is_flag=True, help="Print the numbers as JSON.")
def compare(
    file: Path,
    target: str | None,
    drop: tuple[str, ...],
    groups: str | None,
    written: TextFormat,
    output: Path,
    names: tuple[str, ...],
    max_time: float | None,
    seed: int,
    force: bool,
    as_json: bool,
) -> None:
    """Compare classifiers on a table: error, log-loss, time and memory, in a report.

    Up to 2,000 rows, each row is tested once, in five folds; above that, a quarter of the rows is
    tested.
    """
    from hardmargin.comparison.page import html_report

    check_output(output, force=force)
    deadline = deadline_of(max_time)
    rivals = _chosen(names)
    with spoken_warnings():
        table = training_table(file, written, target, drop, groups)
    table, n_missing = table.without_missing_targets()
    classes, codes = np.unique(labels_of(table.y), return_inverse=True)
    rare = np.flatnonzero(np.bincount(codes) < 2)
    if len(rare):
        raise InputError(
            f"{file}: class {str(classes[rare[0]])!r} has a single row, which cannot both be "
            "learned from and tested."
        )
    splits = make_splits(codes, table.groups, seed)
    begin = time.monotonic()
    quiet = as_json or not sys.stderr.isatty()
    measured = _measured(rivals, table, codes, splits, seed, deadline, quiet)
    known = sorted((m for m in measured if m.is_measured), key=lambda m: log_loss_of(m, codes))
    if not known:
        advice = "" if max_time is None else "; raise --max-time, or name fewer with --model"
        raise InputError(f"{file}: nothing could be measured ({measured[0].note}){advice}.")
    facts = _facts(table, n_missing, target, codes, classes, splits, time.monotonic() - begin)
    facts["settings"] = "; ".join(f"{rival.name}: {rival.settings}" for rival in rivals)
    name = f"Classifiers on {file.name}"
    page = html_report(name, facts, measured, codes, [str(c) for c in classes])
    write_whole(output, lambda path: path.write_text(page, encoding="utf-8"))
    if as_json:
        records = [_record(m, codes) for m in (*known, *(m for m in measured if not m.is_measured))]
        show_json({"models": records, "report": str(output)})
        return
    rows = [_row(m, codes) for m in known]
    rows += [[m.name, "", "", "", "", m.note] for m in measured if not m.is_measured]
    heads = ["model", "error %", "log-loss", "fit s", "MB", "note"]
    tested = f"tested on {len(known[0].rows):,} rows; intervals and more are in {output}"
    click.echo("\n".join([*table_lines(heads, rows), "", tested]))


def _chosen(names: Sequence[str]) -> list[Rival]:
    """Return the classifiers of these names, or all that are installed."""
    from hardmargin.comparison.rivals import NOT_OURS, known_rivals

    rivals = known_rivals()
    by_name = {rival.name.lower(): rival for rival in rivals}
    for name in names:
        if name.lower() in NOT_OURS and name.lower() not in by_name:
            raise InputError(f"--model: {name} is not installed; pip install {name.lower()}.")
        if name.lower() not in by_name:
            installed = [rival.name for rival in rivals]
            hint = did_you_mean(name, installed) or f"; there are {', '.join(installed)}."
            raise InputError(f"--model: there is no {name!r}{hint}")
    return [by_name[name.lower()] for name in dict.fromkeys(names)] or rivals


def _measured(
    rivals: Sequence[Rival],
    table: Any,
    codes: Any,
    splits: Any,
    seed: int,
    deadline: Deadline,
    quiet: bool,
) -> list[Measured]:
    """Measure one classifier after another; what one leaves of the time is for the others."""
    measured = []
    prepare(table.X)
    with Progress(len(rivals), quiet=quiet) as progress:
        for k, rival in enumerate(rivals):
            left = deadline.left()
            progress.now(rival.name)
            found = measure(
                rival,
                table.X,
                codes,
                splits,
                groups=table.groups,
                seed=seed,
                max_seconds=MAX_SECONDS if left is None else max(left, 0.0) / (len(rivals) - k),
                is_limited=left is not None,
            )
            measured.append(found)
            progress.done(rival.name, _remark(found, codes))
    return measured


def _row(measured: Measured, codes: Any) -> list[str]:
    """Return the numbers of a classifier, for people."""
    return [
        measured.name,
        f"{100 * error_of(measured, codes)[0]:.2f}",
        f"{log_loss_of(measured, codes):.4f}",
        f"{measured.fit_seconds:.2f}",
        "not measured" if measured.memory is None else f"{measured.memory:.0f}",
        measured.note,
    ]


def _record(measured: Measured, codes: Any) -> dict[str, Any]:
    """Return the numbers of a classifier, for JSON."""
    if not measured.is_measured:
        return {"model": measured.name, "note": measured.note}
    share, low, high = error_of(measured, codes)
    return {
        "model": measured.name,
        "error": share,
        "error_interval": [low, high],
        "log_loss": log_loss_of(measured, codes),
        "fit_cpu_s": measured.fit_seconds,
        "predict_cpu_s_per_1000_rows": measured.predict_seconds,
        "memory_mb": measured.memory,
        "note": measured.note,
    }


def _remark(measured: Measured, codes: Any) -> str:
    """Say in one line what a classifier did."""
    if not measured.is_measured:
        return measured.note
    loss = log_loss_of(measured, codes)
    return f"log-loss {loss:.4f}, {measured.fit_seconds:.2f} s to fit"


def _facts(
    table: Any,
    n_missing: int,
    target: str | None,
    codes: Any,
    classes: Any,
    splits: Any,
    seconds: float,
) -> dict[str, str]:
    n_train, n_test = len(splits[0][0]), len(splits[0][1])
    how = f"{len(splits)} folds" if len(splits) > 1 else f"{n_train:,} to train, {n_test:,} to test"
    facts = {
        "table": str(table.path),
        "rows": f"{len(codes):,}"
        + (f" ({n_missing:,} without a target left out)" if n_missing else ""),
        "target": f"{target or 'y'}: {len(classes)} classes, the largest with "
        f"{100 * np.bincount(codes).max() / len(codes):.1f} % of the rows",
        "split": how,
    }
    if table.is_frame:
        kinds = list(kinds_of(table.X).values())
        share = float(table.X.isna().to_numpy().mean())
        facts["columns"] = ", ".join(
            f"{kinds.count(kind)} of {kind}"
            for kind in ("number", "text", "date", "boolean")
            if kinds.count(kind)
        ) + (f"; {100 * share:.1f} % of the values are missing" if share else "")
    else:
        facts["columns"] = f"{table.X.shape[1]:,}"
    facts["time"] = f"{seconds:.0f} s for everything"
    return facts
