"""What commands write: files that are complete or absent, and words on the terminal."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from hardmargin.cli.errors import InputError


def check_output(path: Path, *, force: bool) -> None:
    """Refuse, before any work is done, to write over a file or where nothing can be written."""
    if path.is_dir():
        raise InputError(f"{path} is a folder; give the name of a file.")
    if path.exists() and not force:
        raise InputError(f"{path} exists; --force replaces it.")
    folder = path.parent
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder.")
    if not os.access(folder, os.W_OK):
        raise InputError(f"{folder} cannot be written to.")


@contextmanager
def spoken_warnings() -> Iterator[None]:
    """Print warnings as lines, each once."""
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        yield
    quiet = (DeprecationWarning, FutureWarning)
    for text in dict.fromkeys(str(w.message) for w in raised if not issubclass(w.category, quiet)):
        click.echo(f"warning: {' '.join(text.split())}", err=True)


def show_json(facts: Mapping[str, Any]) -> None:
    """Print facts as JSON."""
    click.echo(json.dumps(facts, indent=2, default=str))


def show(facts: Mapping[str, Any]) -> None:
    """Print facts for people, one per line or a few lines each."""
    width = max(map(len, facts), default=0)
    for name, value in facts.items():
        lines = value if isinstance(value, list) else [value]
        for k, line in enumerate(lines):
            click.echo(f"{name if k == 0 else '':<{width}}  {line}")


def table_lines(heads: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[str]:
    """Arrange numbers and words in columns.

    Examples
    --------
    >>> table_lines(["model", "error"], [["SVC", 1.5], ["ours", 0.25]])
    ['model  error', 'SVC      1.5', 'ours    0.25']
    """
    texts = [list(map(str, heads)), *([str(cell) for cell in row] for row in rows)]
    widths = [max(len(row[j]) for row in texts) for j in range(len(heads))]
    return [
        "  ".join(
            [
                row[0].ljust(widths[0]),
                *(t.rjust(w) for t, w in zip(row[1:], widths[1:], strict=True)),
            ]
        ).rstrip()
        for row in texts
    ]
