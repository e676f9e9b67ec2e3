"""Text files: their encoding, delimiter, decimal mark and what stands for missing values."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hardmargin.cli.errors import InputError
from hardmargin.cli.near_numbers import has_decimal_commas, present_texts
from hardmargin.warn import warn_caller

#: What stands for a missing value.
MISSING = ("", "?", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None", "<NA>", "#N/A")

#: Bytes of a file that are read to find its delimiter.
SNIFFED = 65_536

#: What may divide columns; the comma is last, as names and numbers have commas too.
DELIMITERS = "\t;|,"

#: What the first bytes of a file say about its encoding; UTF-32 begins like UTF-16.
BYTE_ORDER_MARKS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}


@dataclass(frozen=True)
class TextFormat:
    """How a text file is written.

    Attributes
    ----------
    delimiter : str or None
        Between columns; None finds it.
    encoding : str
        Of the text; a byte-order mark in the file takes precedence.
    decimal : str or None
        The mark in numbers, a point or a comma; None finds it.
    missing : tuple of str
        What stands for a missing value, besides `MISSING`.
    """

    delimiter: str | None = None
    encoding: str = "utf-8"
    decimal: str | None = None
    missing: tuple[str, ...] = ()

    @property
    def all_missing(self) -> tuple[str, ...]:
        """Everything that stands for a missing value."""
        return (*MISSING, *self.missing)


def read_text(path: Path, written: TextFormat) -> tuple[Any, TextFormat]:
    """Read a text file as an Arrow table; return also how it turned out to be written."""
    import pyarrow as pa

    with pa.input_stream(str(path), compression="detect") as stream:
        start = stream.read(SNIFFED)
    marked = (name for mark, name in BYTE_ORDER_MARKS.items() if start.startswith(mark))
    encoding = next(marked, written.encoding)
    lines = start.decode(encoding, errors="replace").removeprefix("\ufeff")
    found = replace(
        written,
        encoding=encoding,
        delimiter=written.delimiter or _delimiter(lines),
        decimal=written.decimal or ".",
    )
    table = _read(path, found)
    # Programs write ';' between columns where the comma is the decimal mark.
    if written.decimal is None and found.delimiter == ";" and (name := _decimal_commas(table)):
        warn_caller(
            f"{path}: commas in numbers, as in column {name!r}, are decimal marks, as with "
            "--decimal ,; --decimal . leaves them as text.",
            UserWarning,
        )
        found = replace(found, decimal=",")
        table = _read(path, found)
    return table, found


def _delimiter(start: str) -> str:
    """Find what divides the header into as many columns as most of the first lines."""
    best, most = ",", 0.0
    for delimiter in DELIMITERS:
        lines = csv.reader(io.StringIO(start, newline=""), delimiter=delimiter)
        sizes = [len(line) for line in lines if line]
        if sizes and sizes[0] > 1 and (share := sizes.count(sizes[0]) / len(sizes)) > most:
            best, most = delimiter, share
    return best


def _decimal_commas(table: Any) -> str | None:
    """Name the first column of numbers with decimal commas, if there is one."""
    import pyarrow as pa

    for name in table.column_names:
        column = table.column(name)
        if pa.types.is_string(column.type) and has_decimal_commas(
            present_texts(column.to_pandas())
        ):
            return str(name)
    return None


def _read(path: Path, written: TextFormat) -> Any:
    import pyarrow as pa
    from pyarrow import csv as arrow

    encoding = written.encoding
    parse = arrow.ParseOptions(delimiter=written.delimiter, newlines_in_values=True)
    convert = arrow.ConvertOptions(
        null_values=list(written.all_missing),
        strings_can_be_null=True,
        decimal_point=written.decimal,
    )
    try:
        table = arrow.read_csv(path, arrow.ReadOptions(encoding=encoding), parse, convert)
    except (pa.ArrowInvalid, UnicodeError):
        try:  # with a single thread, errors have the number of the row
            single = arrow.ReadOptions(encoding=encoding, use_threads=False)
            table = arrow.read_csv(path, single, parse, convert)
        except (pa.ArrowInvalid, UnicodeError) as error:
            raise InputError(_read_error(path, str(error), written)) from error
    try:
        names = table.column_names
    except UnicodeDecodeError as error:
        raise InputError(_encoding_error(f"{path}, line 1", encoding)) from error
    _check(path, table, names, encoding)
    return table


def _read_error(path: Path, message: str, written: TextFormat) -> str:
    """Turn the reader's message into a line that names the line of the file."""
    if ragged := re.search(r"Row #(\d+): Expected (\d+) columns, got (\d+)", message):
        row, expected, found = ragged.groups()
        return (
            f"{path}, line {row}: it has {found} columns, the header has {expected}, divided by "
            f"{written.delimiter!r}; --delimiter names another mark."
        )
    if "UTF8" in message or "codec" in message:
        return _encoding_error(str(path), written.encoding)
    if "Empty CSV" in message:
        return f"{path} is empty."
    return f"{path}: {message.splitlines()[0]}"


def _encoding_error(place: str, encoding: str) -> str:
    return (
        f"{place}: the text is not {encoding}. If it comes from Excel or an old system, try "
        "--encoding latin-1 or cp1252."
    )


def _check(path: Path, table: Any, names: Sequence[str], encoding: str) -> None:
    """Refuse names that are not unique, and columns that the reader took for bytes."""
    import pyarrow as pa

    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise InputError(f"{path} has two columns named {repeated[0]!r}.")
    if table.num_rows == 0:
        raise InputError(f"{path} has a header and no rows.")
    for name in names:
        if not pa.types.is_binary(table.column(name).type):
            continue
        for k, value in enumerate(table.column(name)):
            try:
                (value.as_py() or b"").decode("utf-8")
            except UnicodeDecodeError:
                place = f"{path}, line {k + 2}, column {name!r}"
                raise InputError(_encoding_error(place, encoding)) from None
