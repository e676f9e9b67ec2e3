"""``hardmargin predict``: a model and a table in, labels and probabilities out."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
import numpy as np

from hardmargin.cli.errors import InputError, did_you_mean
from hardmargin.cli.inspect import (
    UNKNOWN,
    columns_known,
    first_step,
    load_model,
    notes_of_model,
    working,
)
from hardmargin.cli.models import labels_of
from hardmargin.cli.near_numbers import as_numbers
from hardmargin.cli.options import max_bytes_option, reading_options
from hardmargin.cli.outputs import check_output, spoken_warnings
from hardmargin.cli.rows import ParquetRows, TextRows, open_rows
from hardmargin.cli.scores import (
    FORMATS,
    SEPARATORS,
    counted,
    kind_of_scores,
    write_scores,
    write_text,
)
from hardmargin.cli.tables import TRUTH, Table, columns_of_model, require_columns
from hardmargin.cli.text_files import TextFormat

#: Rows predicted at a time, of the parts that are read.
ROWS_AT_ONCE = 20_000


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="A file: .csv, .tsv or .json, also with .gz, or .parquet. Otherwise CSV is printed.",
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
    if output is not None:
        if kind_of_scores(output) is None:
            raise InputError(f"{output}: the file name must end in {', '.join(FORMATS)}.")
        check_output(output, force=force)
    loaded, notes = load_model(model, max_bytes), notes_of_model(model)
    if not hasattr(loaded, "predict"):
        raise InputError(f"{model} contains {type(loaded).__name__}, which predicts no classes.")
    rows = open_rows(file, _with_missing_of_model(written, model, notes))
    with spoken_warnings():
        with working(model):
            wanted = _wanted(rows, loaded, notes, keep, output)
        tally = Tally()
        parts = _scored_parts(wanted, loaded, model, labels_only=labels_only, tally=tally)
        if output is None:
            write_text(parts, sys.stdout)
        else:
            write_scores(counted(parts), output)
    if output is not None:
        click.echo(f"{tally.n_rows:,} rows written to {output}", err=True)
    if tally.n_known:
        share, target = tally.n_wrong / tally.n_known, notes.get("target") or "y"
        click.echo(
            f"{100 * share:.2f} % of {tally.n_known:,} rows differ from {target!r}", err=True
        )


@dataclass
class Tally:
    """Numbers of rows: all, those whose class is known, and those where the model says another."""

    n_rows: int = 0
    n_known: int = 0
    n_wrong: int = 0

    def add(self, labels: Any, known: Any, decimal: str) -> None:
        """Count rows; of the known classes, some may be missing."""
        self.n_rows += len(labels)
        if known is None:
            return
        is_known = np.asarray(
            known.notna() if hasattr(known, "notna") else np.ones(len(known), bool)
        )
        self.n_known += int(is_known.sum())
        if is_known.any():
            truth = np.asarray(known)[is_known]
            self.n_wrong += int(np.sum(_differ(np.asarray(labels)[is_known], truth, decimal)))


@dataclass(frozen=True)
class Wanted:
    """What is read from a file.

    Attributes
    ----------
    rows : TextRows, ParquetRows or Table
        The file.
    kinds : dict or None
        Columns of the model, and what they are; None if they have no names.
    kept : dict
        Columns that are copied, and what they are.
    target : str or None
        The column of known classes, if there is one.
    """

    rows: TextRows | ParquetRows | Table
    kinds: dict[str, str] | None
    kept: dict[str, str]
    target: str | None = None


def _wanted(
    rows: TextRows | ParquetRows | Table,
    model: Any,
    notes: Mapping[str, Any],
    keep: Sequence[str],
    output: Path | None,
) -> Wanted:
    """Check that a file has the columns that are wanted, and find out what they are."""
    kinds, is_noted = columns_known(model, notes), isinstance(notes.get("columns"), Mapping)
    if isinstance(rows, Table):
        if keep:
            raise InputError(f"--keep {keep[0]}: {rows.path} has no column names.")
        if is_noted:
            raise InputError(f"{rows.path} has no column names, but the model needs some.")
        return Wanted(rows, None, {})
    for name in keep:
        if name not in rows.names:
            hint = did_you_mean(name, rows.names)
            raise InputError(f"--keep {name}: {rows.path} has no such column{hint or '.'}")
    if kinds is None:
        reason = "has named columns, but the model was trained without names"
        if getattr(first_step(model), "n_features_in_", None) is None:
            reason = "is a table, but the model was not trained on one"
        raise InputError(f"{rows.path} {reason}.")
    require_columns(rows.path, rows.names, kinds)
    target = notes.get("target") if notes.get("target") in rows.names else None
    kept = dict.fromkeys(keep, "text")
    if isinstance(rows, TextRows):
        rows = rows.with_decimal_mark([n for n, kind in kinds.items() if kind == "number"])
        # Text is copied to text as it is written; other files have values of a type.
        has_types = output is not None and kind_of_scores(output) not in SEPARATORS
        asked = {n for n, kind in kinds.items() if kind == UNKNOWN} | set(keep if has_types else ())
        found = rows.kinds(sorted(asked))
        kept = {name: found.get(name, "text") for name in keep}
        types = {name: "number" if k == "integer" else k for name, k in found.items()}
        kinds = {n: types[n] if kind == UNKNOWN else kind for n, kind in kinds.items()}
    return Wanted(rows, kinds, kept, target)


def _scored_parts(
    wanted: Wanted, model: Any, path: Path, *, labels_only: bool, tally: Tally
) -> Iterator[Any]:
    """Predict part by part: Arrow tables of copied columns, labels and probabilities."""
    import pyarrow as pa

    for part, table, known in _parts(wanted, model):
        with working(path):
            try:
                found = _scored(model, table.X, labels_only=labels_only)
            except (ValueError, TypeError) as error:
                raise InputError(f"{table.path}: {error}") from error
        if both := sorted(wanted.kept.keys() & found.keys()):
            raise InputError(f"--keep {both[0]}: predictions have a column of this name too.")
        decimal = "," if table.written is not None and table.written.decimal == "," else "."
        tally.add(found["prediction"], known, decimal)
        kept = {name: part.values(name, kind) for name, kind in wanted.kept.items()}
        yield pa.table(kept | {name: pa.array(values) for name, values in found.items()})


def _parts(wanted: Wanted, model: Any) -> Iterator[tuple[Any, Table, Any]]:
    """Read the file: parts with copied columns, the model's columns, and the known classes."""
    rows = wanted.rows
    if isinstance(rows, Table):
        yield None, _as_wide(rows, model), rows.y
        return
    assert wanted.kinds is not None  # only arrays have no names
    target = [] if wanted.target is None else [wanted.target]
    columns = list(dict.fromkeys([*wanted.kinds, *wanted.kept, *target]))
    for part in rows.parts(columns):
        known = None if wanted.target is None else part.columns[wanted.target].to_pandas()
        yield part, columns_of_model(part.table(wanted.kinds), wanted.kinds), known


def _with_missing_of_model(
    written: TextFormat, model: Path, notes: Mapping[str, Any]
) -> TextFormat:
    """Let what was a missing value in training be one here too."""
    with working(model):
        return replace(written, missing=(*written.missing, *map(str, notes.get("missing", ()))))


def _scored(model: Any, X: Any, *, labels_only: bool) -> dict[str, Any]:
    """Predict labels and, unless only labels are wanted, probabilities."""
    parts = []
    for start in range(0, max(X.shape[0], 1), ROWS_AT_ONCE):
        rows = slice(start, start + ROWS_AT_ONCE)
        some = X.iloc[rows] if hasattr(X, "iloc") else X[rows]
        found = {"prediction": model.predict(some)}
        if not labels_only and hasattr(model, "predict_proba"):
            chances = model.predict_proba(some)
            for k, label in enumerate(model.classes_):
                found[f"probability_{label}"] = chances[:, k]
        parts.append(found)
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _as_wide(table: Table, model: Any) -> Table:
    """Check the number of columns; sparse files may leave out the last ones."""
    X, n_features = table.X, getattr(first_step(model), "n_features_in_", None)
    if n_features is None:
        raise InputError(f"{table.path} is a table, but the model was not trained on one.")
    if X.shape[1] < n_features and hasattr(X, "tocsr"):
        X.resize(X.shape[0], n_features)
    if X.shape[1] != n_features:
        raise InputError(
            f"{table.path} has {X.shape[1]} columns, the model was trained on {n_features}."
        )
    return Table(table.path, X, table.y)


def _differ(labels: Any, truth: Any, decimal: str) -> Any:
    """Compare labels with classes of a file, whose text may be numbers or truth values."""
    import pandas as pd

    if labels.dtype.kind in "biuf" and truth.dtype.kind == "O":
        texts = pd.Series(truth).astype(str).str.strip()
        numbers = as_numbers(texts, decimal).fillna(texts.str.lower().map(TRUTH))
        return numbers.to_numpy() != labels.astype(float)
    return labels.astype(str) != labels_of(truth).astype(str)
