"""Predictions in files, written part by part."""

from __future__ import annotations

import gzip
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

from hardmargin.io import write_whole

#: What divides columns of text, by the end of the file's name.
SEPARATORS = {".csv": ",", ".tsv": "\t"}

#: Ends of names; text may also be compressed.
FORMATS = (*SEPARATORS, ".parquet", ".json", ".csv.gz", ".tsv.gz", ".json.gz")


def kind_of_scores(path: Path) -> str | None:
    """Return the end of a name that says what to write, without that of compression; or None."""
    name = path.name.lower()
    found = next((kind for kind in FORMATS if name.endswith(kind)), None)
    return None if found is None else found.removesuffix(".gz")


def write_scores(parts: Iterator[Any], output: Path) -> None:
    """Write a file, complete or not at all.

    Parameters
    ----------
    parts : iterator of Arrow tables
        At least one.
    output : Path
        Of a name that `kind_of_scores` knows.
    """
    kind = kind_of_scores(output)

    def write(path: Path) -> None:
        if kind == ".parquet":
            _write_parquet(parts, path)
            return
        opened: Any = gzip.open if output.suffix.lower() == ".gz" else open
        with opened(path, "wt", encoding="utf-8", newline="") as stream:
            if kind == ".json":
                _write_json(parts, stream)
            else:
                write_text(parts, stream, SEPARATORS[kind or ""])

    write_whole(output, write)


def write_text(parts: Iterator[Any], stream: IO[str], separator: str = ",") -> None:
    """Write lines below a header."""
    for k, part in enumerate(parts):
        # Python's streams turn line feeds into what the system has; files have line feeds.
        part.to_pandas().to_csv(stream, index=False, header=k == 0, sep=separator)


def counted(parts: Iterator[Any]) -> Iterator[Any]:
    """Show on a terminal how many rows are done."""
    n_rows, is_shown = 0, sys.stderr.isatty()
    for part in parts:
        yield part
        n_rows += part.num_rows
        if is_shown:
            print(f"\r{n_rows:,} rows ", end="", file=sys.stderr, flush=True)
    if is_shown:
        print("\r", end="", file=sys.stderr)


def _write_parquet(parts: Iterator[Any], path: Path) -> None:
    from pyarrow import parquet

    with ExitStack() as stack:
        writer = None
        for part in parts:
            if writer is None:
                writer = stack.enter_context(parquet.ParquetWriter(path, part.schema))
            writer.write_table(part)


def _write_json(parts: Iterator[Any], stream: IO[str]) -> None:
    """Write a list of records, as pandas does."""
    before = "["
    for part in parts:
        text = part.to_pandas().to_json(orient="records", indent=1)
        stream.write(before + text.removeprefix("[").removesuffix("]").rstrip("\n"))
        before = ","
    stream.write("\n]")
