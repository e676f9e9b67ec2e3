"""``hardmargin export``: a model file in, an ONNX graph out."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from hardmargin.cli.errors import InputError
from hardmargin.cli.inspect import load_model, notes_of_model
from hardmargin.cli.outputs import check_output
from hardmargin.io import write_whole

#: A value of each kind of column, for a row that shows what the graph takes.
EXAMPLES = {"number": 0.0, "boolean": True, "date": "2024-01-01", "text": "text"}


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.option(
    "--onnx", "output", required=True, type=click.Path(path_type=Path), help="The ONNX file."
)
@click.option("--force", is_flag=True, help="Replace an existing file.")
def export(model: Path, output: Path, force: bool) -> None:
    """Convert a model to ONNX, which runs without Python.

    Every column of the table is an input of the graph. Dates and long text are turned into numbers
    before it; these are its inputs then, and they are listed.
    """
    try:
        from hardmargin.onnx import to_onnx
    except ImportError as error:
        raise InputError(f"{error} pip install 'hardmargin[onnx]'") from error
    check_output(output, force=force)
    loaded, columns = load_model(model), notes_of_model(model).get("columns")
    classifier, example = loaded, int(getattr(loaded, "n_features_in_", 0))
    if isinstance(columns, Mapping):
        classifier, example = loaded[-1], _encoded(loaded, columns)
        if len(loaded) > 2:
            raise InputError(
                f"{model}: of a table, EnsembleSVC and GreedySVC have a graph; "
                f"{type(classifier).__name__} has one if it is trained on an array of numbers."
            )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the row is no real one
            graph = to_onnx(classifier, example)
    except (ImportError, NotImplementedError, ValueError, TypeError, RuntimeError) as error:
        raise InputError(f"{model}: {error}") from error
    data = graph.SerializeToString()
    write_whole(output, lambda path: path.write_bytes(data))
    inputs = [node.name for node in graph.graph.input]
    click.echo(f"saved   {output} ({len(data) / 1e6:.1f} MB)")
    click.echo(f"inputs  {', '.join(inputs[:20])}" + (" ..." if len(inputs) > 20 else ""))
    if isinstance(columns, Mapping) and set(inputs) - set(columns):
        click.echo(
            "note: dates and text are turned into numbers before the graph, as the first step of "
            "the model does.",
            err=True,
        )


def _encoded(pipeline: Any, columns: Mapping[str, str]) -> Any:
    """Make a row as the classifier sees it."""
    import pandas as pd

    row = {name: [EXAMPLES[kind]] for name, kind in columns.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pipeline[:1].transform(pd.DataFrame(row))
