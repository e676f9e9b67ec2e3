"""``hardmargin predict``: a model and a table in, labels and probabilities out."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import numpy as np

from hardmargin.cli.errors import InputError, did_you_mean
from hardmargin.cli.inspect import (
    columns_known,
    first_step,
    load_model,
    notes_of_model,
    working,
)
from hardmargin.cli.models import labels_of
from hardmargin.cli.options import max_bytes_option, reading_options
from hardmargin.cli.outputs import check_output, spoken_warnings
from hardmargin.cli.tables import Table, columns_of_model, read_table
from hardmargin.cli.text_files import TextFormat
from hardmargin.io import write_whole
from hardmargin.reproduction.progress import Progress

#: Rows predicted at a time, so that a bar can show the progress.
ROWS_AT_ONCE = 20_000

FORMATS = (".csv", ".tsv", ".parquet", ".json")


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="A file: .csv, .tsv, .parquet or .json. Otherwise CSV is printed.",
)
@click.option(
    "--keep",
    multiple=True,
    metavar="COLUMN",
    help="Copy a column, such as an id, in front of the predictions; repeatable.",
)
@click.option("--labels-only", is_flag=True, help="No probabilities.")
@click.option("--force", is_flag=True, help="Replace an existing file.")
@max_bytes_option
@reading_options
def predict(
    model: Path,
    file: Path,
    output: Path | None,
    keep: tuple[str, ...],
    labels_only: bool,
    force: bool,
    max_bytes: int | None,
    written: TextFormat,
) -> None:
    """Predict the classes of a table's rows, with probabilities.

    The columns are those of the training table, in any order. Others are ignored; if the target is
    among them, the error is printed too.
    """
    import pandas as pd

    if output is not None:
        if output.suffix.lower() not in FORMATS:
            raise InputError(f"{output}: the file name must end in {', '.join(FORMATS)}.")
        check_output(output, force=force)
    loaded, notes = load_model(model, max_bytes), notes_of_model(model)
    if not hasattr(loaded, "predict"):
        raise InputError(f"{model} contains {type(loaded).__name__}, which predicts no classes.")
    with spoken_warnings():
        table = read_table(file, _with_missing_of_model(written, model, notes))
    kept = _kept(table, keep)
    with working(model):
        table, known = _as_trained(table, loaded, notes)
        try:
            with spoken_warnings():
                found = _scored(loaded, table.X, labels_only=labels_only)
        except (ValueError, TypeError) as error:
            raise InputError(f"{file}: {error}") from error
    if both := sorted(kept.keys() & found.keys()):
        raise InputError(f"--keep {both[0]}: predictions have a column of this name too.")
    scored = pd.DataFrame(kept | found)
    if output is None:
        scored.to_csv(sys.stdout, index=False)
    else:
        write_whole(output, lambda path: _write(scored, path, output.suffix.lower()))
        click.echo(f"{len(scored):,} rows written to {output}", err=True)
    if known is not None:
        _report_error(found["prediction"], known, notes.get("target") or "y")


def _with_missing_of_model(
    written: TextFormat, model: Path, notes: Mapping[str, Any]
) -> TextFormat:
    """Let what was a missing value in training be one here too."""
    with working(model):
        return replace(written, missing=(*written.missing, *map(str, notes.get("missing", ()))))


def _kept(table: Table, names: Sequence[str]) -> dict[str, Any]:
    """Take columns that are copied, by name."""
    if names and not table.is_frame:
        raise InputError(f"--keep {names[0]}: {table.path} has no column names.")
    for name in names:
        if name not in table.X.columns:
            hint = did_you_mean(name, map(str, table.X.columns))
            raise InputError(f"--keep {name}: {table.path} has no such column{hint or '.'}")
    return {name: table.X[name].array for name in names}


def _as_trained(table: Table, model: Any, notes: Mapping[str, Any]) -> tuple[Table, Any]:
    """Choose the columns that the model takes; return the target too, or None if it is unknown."""
    columns, is_noted = columns_known(model, notes), isinstance(notes.get("columns"), Mapping)
    if columns is None or not (table.is_frame or is_noted):
        return _as_wide(table, model), table.y
    known = None
    if table.is_frame and notes.get("target") in table.X.columns:
        known = table.X[notes["target"]]
    return columns_of_model(table, columns), known


def _scored(model: Any, X: Any, *, labels_only: bool) -> dict[str, Any]:
    """Predict labels and, unless only labels are wanted, probabilities; show the progress."""
    parts = []
    starts = range(0, max(X.shape[0], 1), ROWS_AT_ONCE)
    with Progress(len(starts), quiet=len(starts) == 1 or not sys.stderr.isatty()) as progress:
        for start in starts:
            rows = slice(start, start + ROWS_AT_ONCE)
            some = X.iloc[rows] if hasattr(X, "iloc") else X[rows]
            found = {"prediction": model.predict(some)}
            if not labels_only and hasattr(model, "predict_proba"):
                chances = model.predict_proba(some)
                for k, label in enumerate(model.classes_):
                    found[f"probability_{label}"] = chances[:, k]
            parts.append(found)
            progress.done("rows", None)
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _as_wide(table: Table, model: Any) -> Table:
    """Check the number of columns; sparse files may leave out the last ones."""
    X, n_features = table.X, getattr(first_step(model), "n_features_in_", None)
    if n_features is None:
        raise InputError(f"{table.path} is a table, but the model was not trained on one.")
    if hasattr(X, "columns"):
        raise InputError(
            f"{table.path} has named columns, but the model was trained without names."
        )
    if X.shape[1] < n_features and hasattr(X, "tocsr"):
        X.resize(X.shape[0], n_features)
    if X.shape[1] != n_features:
        raise InputError(
            f"{table.path} has {X.shape[1]} columns, the model was trained on {n_features}."
        )
    return Table(table.path, X, table.y)


def _write(scored: Any, path: Path, kind: str) -> None:
    if kind == ".parquet":
        scored.to_parquet(path, index=False)
    elif kind == ".json":
        scored.to_json(path, orient="records", indent=1)
    else:
        scored.to_csv(path, index=False, sep="\t" if kind == ".tsv" else ",")


def _report_error(labels: Any, known: Any, target: str) -> None:
    is_known = np.asarray(known.notna()) if hasattr(known, "notna") else np.ones(len(known), bool)
    if not is_known.any():
        return
    truth = labels_of(np.asarray(known)[is_known])
    wrong = np.mean(np.asarray(labels)[is_known].astype(str) != truth.astype(str))
    click.echo(f"{100 * wrong:.2f} % of {is_known.sum():,} rows differ from {target!r}", err=True)
