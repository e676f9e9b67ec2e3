"""``hardmargin export``: a model file in, an ONNX graph out."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import numpy as np

from hardmargin.cli.errors import InputError
from hardmargin.cli.inspect import UNKNOWN, columns_known, first_step, load_model, notes_of_model
from hardmargin.cli.options import max_bytes_option
from hardmargin.cli.outputs import check_output
from hardmargin.comparison.summary import vectorizers_of
from hardmargin.io import write_whole

#: A value of each kind of column but numbers, for a row that shows what the graph takes.
EXAMPLES = {"boolean": True, "date": "2024-01-01", "text": "text"}


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.option(
    "--onnx", "output", required=True, type=click.Path(path_type=Path), help="The ONNX file."
)
@click.option("--force", is_flag=True, help="Replace an existing file.")
@max_bytes_option
def export(model: Path, output: Path, force: bool, max_bytes: int | None) -> None:
    """Convert a model to ONNX, which runs without Python.

    Every column of the table is an input of the graph. Dates and long text are converted to numbers
    outside the graph; the graph then takes those numbers as inputs, and the command lists them.
    """
    try:
        from hardmargin.onnx import to_onnx
    except ImportError as error:
        raise InputError(f"{error} pip install 'hardmargin[onnx]'") from error
    check_output(output, force=force)
    loaded = load_model(model, max_bytes)
    notes = notes_of_model(model)
    columns = columns_known(loaded, notes)
    # Numbers of tables in files are inputs in single precision, as other runtimes have them.
    number = np.float32 if isinstance(notes.get("columns"), Mapping) else np.float64
    classifier, example = _with_example(loaded, columns, model, number)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it is not a real row
            graph = to_onnx(classifier, example)
    except (ImportError, NotImplementedError, ValueError, TypeError, RuntimeError) as error:
        raise InputError(f"{model}: {error}") from error
    data = graph.SerializeToString()
    write_whole(output, lambda path: path.write_bytes(data))
    inputs = [node.name for node in graph.graph.input]
    click.echo(f"saved   {output} ({len(data) / 1e6:.1f} MB)")
    click.echo(f"inputs  {', '.join(inputs)}")
    if classifier is not loaded and columns is not None and set(inputs) - set(columns):
        click.echo(
            "note: the graph takes dates and text as numbers; convert them first, as the first "
            "step of the model does.",
            err=True,
        )


def _with_example(
    loaded: Any, columns: Mapping[str, str] | None, path: Path, number: type[np.floating[Any]]
) -> tuple[Any, Any]:
    """Return what becomes a graph, and what shows its inputs: a row, or their number."""
    import pandas as pd

    first = first_step(loaded)
    n_columns = getattr(first, "n_features_in_", None)
    if n_columns is not None and (columns is None or _takes_numbers(first)):
        return loaded, int(n_columns)
    if columns is None:
        raise InputError(
            f"{path} does not say what its columns are; in Python, "
            "hardmargin.onnx.to_onnx(model, X) takes rows that show it."
        )
    examples = EXAMPLES | {"number": number(0)}
    row = pd.DataFrame({name: [examples.get(kind)] for name, kind in columns.items()})
    if vectorizers_of(first):  # skrub's, which has no graph
        return _after_vectorizer(loaded, row, path)
    if UNKNOWN in columns.values():
        raise InputError(
            f"{path} does not say which columns are numbers; in Python, "
            "hardmargin.onnx.to_onnx(model, frame) takes a data frame that shows it."
        )
    return loaded, row


def _after_vectorizer(loaded: Any, row: Any, path: Path) -> tuple[Any, Any]:
    """Return the classifier of a table, and a row as it sees it."""
    steps = [step for _, step in getattr(loaded, "steps", ()) if not isinstance(step, str | None)]
    if len(steps) < 2:  # the whole is within another estimator, which to_onnx names
        return loaded, row
    if len(steps) > 2:
        raise InputError(
            f"{path}: only EnsembleSVC and GreedySVC have a graph for tables; "
            f"{type(steps[-1]).__name__} has one if it is trained on an array of numbers."
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return steps[-1], steps[0].transform(row)


def _takes_numbers(step: Any) -> bool:
    """Whether the first step of a pipeline takes numbers only, as scalers do."""
    from sklearn.utils import get_tags

    if any(hasattr(step, name) for name in ("_categories_", "column_to_kind_", "transformers_")):
        return False
    tags = get_tags(step).input_tags
    return not (tags.categorical or tags.string)
