"""``hardmargin train``: a table in, a model file out."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import click
import numpy as np

from hardmargin.cli.errors import InputError
from hardmargin.cli.inspect import about_model, described
from hardmargin.cli.models import fit_model, make_estimator, make_model
from hardmargin.cli.options import table_options, training_options
from hardmargin.cli.outputs import check_output, show, show_json, spoken_warnings
from hardmargin.cli.tables import Table, kinds_of, training_table
from hardmargin.cli.text_files import TextFormat
from hardmargin.comparison.summary import last_step

#: Rows whose prediction is timed.
TIMED_ROWS = 1_000


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
        model = fit_model(make_model(classifier, table), table)
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


def _prediction_time(model: Any, table: Table) -> float:
    """Measure microseconds per row, with the table's first rows."""
    some = table.X.iloc[:TIMED_ROWS] if table.is_frame else table.X[:TIMED_ROWS]
    begin = time.perf_counter()
    model.predict(some)
    return float(np.round((time.perf_counter() - begin) / some.shape[0] * 1e6, 1))
