"""``hardmargin train``: a table in, a model file out."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import click
import numpy as np

from hardmargin.cli.deadline import NO_TIME, Deadline, deadline_of
from hardmargin.cli.errors import InputError
from hardmargin.cli.inspect import about_model, described
from hardmargin.cli.models import fit_model, make_estimator, make_model
from hardmargin.cli.options import table_options, training_options
from hardmargin.cli.outputs import check_output, show, show_json, spoken_warnings
from hardmargin.cli.tables import Table, kinds_of, training_table
from hardmargin.cli.text_files import TextFormat
from hardmargin.comparison.summary import last_step
from hardmargin.warn import held_back, warn_caller

#: Rows whose prediction is timed, fewer if they have many values.
TIMED_ROWS, TIMED_VALUES = 1_000, 1_000_000


@click.command()
@table_options
@training_options
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    default=Path("model.skops"),
    show_default=True,
    help="The model file.",
)
@click.option("--force", is_flag=True, help="Replace an existing file.")
@click.option("--json", "as_json", is_flag=True, help="Print what was found as JSON.")
def train(
    file: Path,
    target: str | None,
    drop: tuple[str, ...],
    groups: str | None,
    written: TextFormat,
    estimator: str,
    settings: tuple[str, ...],
    max_time: float | None,
    n_jobs: int | None,
    seed: int | None,
    output: Path,
    force: bool,
    as_json: bool,
) -> None:
    """Train a classifier on a table.

    Numbers, categories, dates, text and missing values are taken as they come. The model file
    contains everything that `hardmargin predict` needs for another raw table.
    """
    check_output(output, force=force)
    deadline = deadline_of(max_time)
    classifier = make_estimator(
        estimator,
        settings,
        max_time=max_time,
        n_jobs=n_jobs,
        seed=seed,
        verbose=int(sys.stderr.isatty() and not as_json),
    )
    with spoken_warnings():
        table = training_table(file, written, target, drop, groups)
    table, n_missing = table.without_missing_targets()
    if n_missing:
        click.echo(f"{file}: {n_missing:,} rows without a target are left out", err=True)
    begin = time.monotonic()
    with spoken_warnings():
        model = _fitted(make_model(classifier, table), table, deadline)
    seconds = time.monotonic() - begin
    notes = {
        "file": file.name,
        "rows": len(table.y),
        "target": target,
        "columns": kinds_of(table.X) if table.is_frame else int(table.X.shape[1]),
        "missing": list(written.missing),
        "seconds": round(seconds, 2),
        "predict_us_per_row": _prediction_time(model, table),
    }
    from hardmargin.io import dump

    final = last_step(model)
    if hasattr(final, "verbose"):
        final.set_params(verbose=0)
    try:
        dump(model, output, notes=notes)
    except OSError as error:
        raise InputError(f"{output} cannot be written: {error.strerror or error}.") from error
    about, size = about_model(model, notes), output.stat().st_size
    if as_json:
        show_json({**about, "saved": {"path": str(output), "bytes": size}})
    else:
        show({**described(about), "saved": f"{output} ({size / 1e6:.1f} MB)"})


def _fitted(model: Any, table: Table, deadline: Deadline) -> Any:
    """Fit a pipeline in the time that reading the table has left."""
    seconds, final = deadline.for_fit(table.X), last_step(model)
    if seconds == NO_TIME:
        warn_caller(
            f"Reading {table.path} took longer than --max-time {deadline.seconds:g}, so this is "
            "the simplest model; raise --max-time.",
            UserWarning,
        )
    if seconds is not None:
        final.set_params(max_time=seconds)
    with held_back() as held:
        fit_model(model, table)
    if seconds is not None:
        final.set_params(max_time=deadline.seconds)  # what was asked for
    for message, category in held:
        if "categorical_features" not in message:  # reading has named such columns
            warn_caller(_for_the_terminal(message, seconds, deadline), category)
    return model


def _for_the_terminal(message: str, seconds: float | None, deadline: Deadline) -> str:
    """Write a warning about `max_time` as it was asked for."""
    if seconds is None:
        return message
    asked = message.replace(f"max_time={seconds:g}", f"--max-time {deadline.seconds:g}")
    return asked.replace("max_time", "--max-time")


def _prediction_time(model: Any, table: Table) -> float:
    """Measure microseconds per row, with the table's first rows."""
    n_rows = max(1, min(TIMED_ROWS, TIMED_VALUES // table.X.shape[1]))
    some = table.X.iloc[:n_rows] if table.is_frame else table.X[:n_rows]
    begin = time.perf_counter()
    model.predict(some)
    return float(np.round((time.perf_counter() - begin) / some.shape[0] * 1e6, 1))
