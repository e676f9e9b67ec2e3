"""Text files: their encoding, delimiter, decimal mark and what stands for missing values."""

from __future__ import annotations

import bz2
import codecs
import csv
import gzip
import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hardmargin.cli.errors import InputError, reading, require_unique
from hardmargin.cli.near_numbers import has_decimal_commas, present_texts
from hardmargin.warn import warn_caller

#: What stands for a missing value.
MISSING = ("", "?", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None", "<NA>", "#N/A")

#: Bytes of a file that are read to find its delimiter, and the most where the header is longer.
SNIFFED, MOST_SNIFFED = 65_536, 1 << 26

#: Bytes of a file that are parsed at a time: of many lines even where these are long, as each
#: column of each block takes time; a line that is longer than a block needs a larger one.
BLOCK, LINES_OF_BLOCK, MOST_OF_BLOCK = 1 << 20, 256, 1 << 30

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
    block : int
        Bytes to parse at a time.
    skipped : int
        Lines below the header that are no rows.
    """

    delimiter: str | None = None
    encoding: str = "utf-8"
    decimal: str | None = None
    missing: tuple[str, ...] = ()
    block: int = BLOCK
    skipped: int = 0

    @property
    def all_missing(self) -> tuple[str, ...]:
        """Everything that stands for a missing value."""
        return (*MISSING, *self.missing)


def found_format(path: Path, written: TextFormat) -> TextFormat:
    """Find how a text file is written, as far as its start says it."""
    import pyarrow as pa

    with reading(path), pa.input_stream(str(path), compression="detect") as stream:
        start = stream.read(SNIFFED)
        while b"\n" not in start and len(start) < MOST_SNIFFED and (more := stream.read(SNIFFED)):
            start += more
    marked = (name for mark, name in BYTE_ORDER_MARKS.items() if start.startswith(mark))
    encoding = next(marked, written.encoding)
    lines = start.decode(encoding, errors="replace").removeprefix("\ufeff")
    long = LINES_OF_BLOCK * len(start.partition(b"\n")[0])
    return replace(
        written,
        encoding=encoding,
        delimiter=written.delimiter or _delimiter(lines),
        block=min(max(BLOCK, long), MOST_OF_BLOCK),
    )


def read_text(path: Path, written: TextFormat) -> tuple[Any, TextFormat]:
    """Read a text file as an Arrow table; return also how it turned out to be written."""
    sniffed = found_format(path, written)
    found = replace(sniffed, decimal=written.decimal or ".")
    table = _read(path, found)
    if may_have_decimal_commas(sniffed) and (name := _decimal_commas(table)):
        found = with_decimal_commas(path, found, name)
        table = _read(path, found)
    return table, found


def may_have_decimal_commas(found: TextFormat) -> bool:
    """Whether programs write files of this kind where the comma is the decimal mark."""
    return found.decimal is None and found.delimiter == ";"


def with_decimal_commas(path: Path, found: TextFormat, name: str) -> TextFormat:
    """Read numbers with decimal commas, with a warning that names a column."""
    warn_caller(
        f"{path}: commas in numbers, as in column {name!r}, are decimal marks, as with "
        "--decimal ,; --decimal . leaves them as text.",
        UserWarning,
    )
    return replace(found, decimal=",")


def header_of(path: Path, found: TextFormat) -> list[str]:
    """Read the names of the columns, which are unique."""
    import pyarrow as pa

    try:
        with reading(path), _opened(path, found, found.block) as reader:
            schema = reader.schema
    except (pa.ArrowInvalid, UnicodeError) as error:
        if _needs_larger_block(error, found.block):
            return header_of(path, replace(found, block=found.block * LINES_OF_BLOCK))
        raise InputError(_read_error(path, str(error), found)) from error
    return _names(path, schema, found)


def text_parts(path: Path, found: TextFormat, columns: Sequence[str]) -> Iterator[Any]:
    """Read columns of a text file part by part: Arrow tables of strings, missing ones as null.

    Parameters
    ----------
    path, found
        The file, and how it is written: see `found_format`.
    columns : sequence of str
        At least one.
    """
    import pyarrow as pa

    done, block = 0, found.block
    while True:
        seen = 0
        try:
            with reading(path), _opened(path, found, block, columns) as reader:
                for batch in reader:
                    fresh = batch.slice(min(max(done - seen, 0), batch.num_rows))
                    seen += batch.num_rows
                    if fresh.num_rows:
                        table = _as_strings(path, found, pa.table(fresh), done)
                        done += fresh.num_rows
                        yield table
            return
        except (pa.ArrowInvalid, UnicodeError) as error:
            if not _needs_larger_block(error, block):
                raise InputError(_read_error(path, str(error), found)) from error
            block *= LINES_OF_BLOCK


def _opened(path: Path, found: TextFormat, block: int, columns: Sequence[str] | None = None) -> Any:
    """Open a file for reading in blocks; given columns are bytes, whatever they look like."""
    import pyarrow as pa
    from pyarrow import csv as arrow

    convert = _conversion(found)
    if columns is not None:
        convert.include_columns = list(columns)
        convert.column_types = dict.fromkeys(columns, pa.binary())
    return arrow.open_csv(
        path,
        _read_options(replace(found, block=block), is_single=True),
        arrow.ParseOptions(delimiter=found.delimiter, newlines_in_values=True),
        convert,
    )


def _read_options(found: TextFormat, *, is_single: bool) -> Any:
    """Say how to read; with a single thread, errors have the number of the row."""
    from pyarrow import csv as arrow

    return arrow.ReadOptions(
        encoding=found.encoding,
        use_threads=not is_single,
        block_size=found.block,
        skip_rows_after_names=found.skipped,
    )


def _conversion(found: TextFormat) -> Any:
    from pyarrow import csv as arrow

    behind_blanks = [f" {text}" for text in found.all_missing]  # where ", " divides columns
    return arrow.ConvertOptions(
        null_values=[*found.all_missing, *behind_blanks],
        strings_can_be_null=True,
        decimal_point=found.decimal or ".",
    )


def _needs_larger_block(error: Exception, block: int) -> bool:
    """Whether a line was longer than a block, and a larger one may be tried."""
    return "straddl" in str(error) and block * LINES_OF_BLOCK <= MOST_OF_BLOCK


def _as_strings(path: Path, found: TextFormat, table: Any, n_before: int) -> Any:
    """Make strings of bytes, or name the first that are none in the encoding."""
    import pyarrow as pa

    _check_texts(path, table, found, n_before)
    return table.cast(pa.schema([(name, pa.string()) for name in table.column_names]))


def line_of_row(path: Path, found: TextFormat, row: int) -> int:
    """Find the line where a row begins; quoted line breaks and blank lines count.

    Parameters
    ----------
    path, found
        The file, and how it is written.
    row : int
        0 is the first row below the header, and below lines that are skipped.
    """
    opened: Any = {".gz": gzip.open, ".bz2": bz2.open}.get(path.suffix.lower(), open)
    with opened(path, "rt", encoding=found.encoding, errors="replace", newline="") as text:
        records = csv.reader(text, delimiter=found.delimiter or ",")
        line, n_before = 1, 0
        try:
            for number, record in enumerate(records):
                is_skipped = 1 <= number <= found.skipped
                n_before += bool(record) and not is_skipped
                if n_before == row + 2:
                    return line
                line = records.line_num + 1
        except (csv.Error, EOFError):  # such as a cell that is too long for this reader
            pass
    return row + 2 + found.skipped


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


def _read(path: Path, written: TextFormat, texts: Sequence[str] = ()) -> Any:
    """Read a file whole; columns that are named as texts stay as they are written."""
    import pyarrow as pa
    from pyarrow import csv as arrow

    parse = arrow.ParseOptions(delimiter=written.delimiter, newlines_in_values=True)
    convert = _conversion(written)
    convert.column_types = dict.fromkeys(texts, pa.string())
    with _refusing(path, written):
        try:
            options = _read_options(written, is_single=False)
            table = arrow.read_csv(path, options, parse, convert)
        except (pa.ArrowInvalid, UnicodeError) as error:
            if _needs_larger_block(error, written.block):
                larger = replace(written, block=written.block * LINES_OF_BLOCK)
                return _read(path, larger, texts)
            options = _read_options(written, is_single=True)
            table = arrow.read_csv(path, options, parse, convert)
    names = _names(path, table.schema, written)
    if table.num_rows == 0:
        raise InputError(f"{path} has a header and no rows.")
    _check_texts(path, table, written)
    if times := [name for name in names if pa.types.is_time(table.schema.field(name).type)]:
        return _read(path, written, times)  # as predictions read them
    return table


@contextmanager
def _refusing(path: Path, written: TextFormat) -> Iterator[None]:
    """Turn the reader's errors into lines that say what is wrong with the file."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowInvalid, UnicodeError) as error:
        raise InputError(_read_error(path, str(error), written)) from error


def _read_error(path: Path, message: str, written: TextFormat) -> str:
    """Turn the reader's message into a line that names the line of the file."""
    if ragged := re.search(r"Row #(\d+): Expected (\d+) columns, got (\d+)", message):
        row, expected, found = ragged.groups()
        line = line_of_row(path, replace(written, skipped=0), int(row) - 2)
        return (
            f"{path}, line {line}: it has {found} columns, the header has {expected}, divided by "
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


def _names(path: Path, schema: Any, written: TextFormat) -> list[str]:
    """Return the names of all columns; each must be there once."""
    try:
        names: list[str] = schema.names
    except UnicodeDecodeError as error:
        raise InputError(_encoding_error(f"{path}, line 1", written.encoding)) from error
    require_unique(path, names)
    return names


def _check_texts(path: Path, table: Any, written: TextFormat, n_before: int = 0) -> None:
    """Refuse columns of bytes that are no text, and name the first."""
    import pyarrow as pa

    for name, column in zip(table.column_names, table.itercolumns(), strict=True):
        if not pa.types.is_binary(column.type):
            continue
        try:
            column.cast(pa.string())
        except pa.ArrowInvalid:
            for k, value in enumerate(column):
                try:
                    (value.as_py() or b"").decode("utf-8")
                except UnicodeDecodeError:
                    place = f"{path}, line {line_of_row(path, written, n_before + k)}, column"
                    raise InputError(
                        _encoding_error(f"{place} {name!r}", written.encoding)
                    ) from None
