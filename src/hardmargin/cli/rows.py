"""Rows of a file, part by part, so that predictions take little memory however many there are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from hardmargin.cli.errors import InputError, require_unique
from hardmargin.cli.near_numbers import has_decimal_commas, present_texts
from hardmargin.cli.tables import PARQUET, TABS, TEXT, Table, frame_of, kind_of_file, read_table
from hardmargin.cli.text_files import (
    TextFormat,
    found_format,
    header_of,
    may_have_decimal_commas,
    text_parts,
    with_decimal_commas,
)

#: Most rows and most values of a part of a Parquet file.
ROWS_AT_ONCE, VALUES_AT_ONCE = 20_000, 1 << 22

#: Arrow's types that text is tried as, in this order, by what it is then.
TRIED = {"integer": "int64", "boolean": "bool", "date": "timestamp[us]", "number": "float64"}


@dataclass(frozen=True)
class Batch:
    """Some rows: Arrow columns, the number of rows before them, and the file that they are from."""

    columns: Any
    n_before: int
    path: Path
    written: TextFormat | None = None

    def table(self, kinds: Mapping[str, str]) -> Table:
        """Make a table of the columns that are named, which has numbers where these are wanted."""
        columns = self.columns.select(list(kinds))
        if self.written is not None:
            for k, (name, kind) in enumerate(kinds.items()):
                if kind in ("number", "boolean"):
                    texts = columns.column(k)
                    columns = columns.set_column(k, name, _numbers(texts, self.written))
        frame = frame_of(columns.replace_schema_metadata(None))
        frame.index = range(self.n_before, self.n_before + len(frame))
        return Table(self.path, frame, written=self.written)

    def values(self, name: str, kind: str) -> Any:
        """Return a column, its text as values of a kind that `TextRows.kinds` has found."""
        values = self.columns[name]
        if self.written is None or kind == "text":
            return values
        return _with_points(values, self.written).cast(TRIED[kind])


@dataclass(frozen=True)
class TextRows:
    """A text file."""

    path: Path
    written: TextFormat

    @cached_property
    def names(self) -> list[str]:
        """Names of the columns."""
        return header_of(self.path, self.written)

    def parts(self, columns: Sequence[str]) -> Iterator[Batch]:
        """Read columns, as text."""
        n_before = 0
        for table in text_parts(self.path, self.written, columns):
            yield Batch(table, n_before, self.path, self.written)
            n_before += table.num_rows
        if n_before == 0:
            raise InputError(f"{self.path} has a header and no rows.")

    def with_decimal_mark(self, numbers: Sequence[str]) -> TextRows:
        """Find out whether columns of numbers have decimal commas, where these are usual."""
        if may_have_decimal_commas(self.written) and numbers:
            for part in self.parts(numbers):
                for name in numbers:
                    if has_decimal_commas(present_texts(part.columns[name].to_pandas())):
                        found = with_decimal_commas(self.path, self.written, name)
                        return replace(self, written=found)
        return self

    def kinds(self, columns: Sequence[str]) -> dict[str, str]:
        """Find out what columns are, from all rows: those of `TRIED`, or text."""
        found: dict[str, str | None] = {}
        for part in self.parts(columns) if columns else ():
            for name in columns:
                if found.get(name) != "text":
                    kind = _kind_of(part.columns[name], self.written)
                    found[name] = _both(found.get(name, kind), kind)
        return {name: kind or "number" for name, kind in found.items()}


@dataclass(frozen=True)
class ParquetRows:
    """A Parquet file."""

    path: Path

    @cached_property
    def names(self) -> list[str]:
        """Names of the columns."""
        names = [str(name) for name in self._file().schema_arrow.names]
        require_unique(self.path, names)
        return names

    def parts(self, columns: Sequence[str]) -> Iterator[Batch]:
        """Read columns."""
        import pyarrow as pa

        size = max(1, min(ROWS_AT_ONCE, VALUES_AT_ONCE // len(columns)))
        n_before = 0
        file = self._file()
        try:
            for batch in file.iter_batches(size, columns=list(columns), use_threads=False):
                yield Batch(pa.table(batch), n_before, self.path)
                n_before += batch.num_rows
        except (pa.ArrowException, OSError) as error:
            raise InputError(f"{self.path} is damaged ({error}).") from error
        if n_before == 0:
            raise InputError(f"{self.path} has no rows.")

    def _file(self) -> Any:
        import pyarrow as pa
        from pyarrow import parquet

        try:
            return parquet.ParquetFile(self.path)
        except (pa.ArrowException, UnicodeError) as error:
            raise InputError(f"{self.path} is not a Parquet file: {error}") from error


def open_rows(path: Path, written: TextFormat) -> TextRows | ParquetRows | Table:
    """Open a file to read its rows part by part; those of arrays are read as a whole."""
    kind = kind_of_file(path)
    if kind in PARQUET:
        return ParquetRows(path)
    if kind not in TEXT:
        return read_table(path)
    if written.delimiter is None and kind in TABS:
        written = replace(written, delimiter="\t")
    return TextRows(path, found_format(path, written))


def _numbers(texts: Any, written: TextFormat) -> Any:
    """Turn text into numbers if all of it is; if not, an error can name the first that is not."""
    import pyarrow as pa

    for name in ("float64", "int64", "bool"):  # also hexadecimal numbers, and truth values
        try:
            return _with_points(texts, written).cast(name).cast("float64")
        except pa.ArrowInvalid:
            pass
    return texts


def _kind_of(texts: Any, written: TextFormat) -> str | None:
    import pyarrow as pa

    if texts.null_count == len(texts):
        return None
    for kind, name in TRIED.items():
        try:
            _with_points(texts, written).cast(name)
        except pa.ArrowInvalid:
            continue
        return kind
    return "text"


def _both(one: str | None, other: str | None) -> str | None:
    """Say what a column is that is one thing in some rows and another in others."""
    if one is None or other is None or one == other:
        return one or other
    return "number" if {one, other} == {"integer", "number"} else "text"


def _with_points(texts: Any, written: TextFormat) -> Any:
    """Write numbers with decimal points, and without the spaces around them."""
    import pyarrow.compute as pc

    texts = pc.utf8_trim_whitespace(texts)
    if written.decimal == ",":  # a point is no decimal mark then
        texts = pc.replace_substring(pc.replace_substring(texts, ".", "'"), ",", ".")
    return texts
