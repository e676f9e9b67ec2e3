"""Tables in files: CSV and TSV (also compressed), Parquet, svmlight and npz."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from hardmargin.cli.errors import InputError, did_you_mean, reading, require_unique
from hardmargin.cli.near_numbers import OddText, as_missing, as_numbers, odd_text, present_texts
from hardmargin.cli.text_files import TextFormat, line_of_row, read_text
from hardmargin.estimators._base.disguise import DECORATED
from hardmargin.warn import warn_caller

if TYPE_CHECKING:
    import pandas as pd

TABS, PARQUET = (".tsv", ".tab"), (".parquet", ".pq")
TEXT = (".csv", ".txt", *TABS)
SVMLIGHT, ARRAYS = (".svm", ".svmlight", ".libsvm"), (".npz",)
COMPRESSED = (".gz", ".bz2")

#: Words that are read as truth values, in any case, and the numbers that they are.
TRUTH = {"false": 0.0, "true": 1.0}

#: A target with more different values than this is not a class.
MOST_CLASSES = 1_000

#: If so many columns of numbers begin with text, that is a second header.
LEAST_OF_HEADER = 2

#: A column that numbers at least so many rows is not there by chance.
LEAST_NUMBERED = 50

#: Names of arrays in npz files.
ROW_NAMES, TARGET_NAMES = ("X", "data", "rows"), ("y", "target", "labels")


@dataclass(frozen=True)
class Table:
    """Rows from a file.

    Attributes
    ----------
    path : Path
        The file.
    X : data frame, array or CSR matrix
        The columns.
    y : array or None
        The target, where it is known.
    groups : array or None
        What belongs together, where it is known.
    written : TextFormat or None
        How the text is written, if it is a text file.
    """

    path: Path
    X: Any
    y: Any = None
    groups: Any = None
    written: TextFormat | None = None

    @property
    def is_frame(self) -> bool:
        """Whether columns have names and types."""
        return hasattr(self.X, "columns")

    def without_missing_targets(self) -> tuple[Table, int]:
        """Leave out rows without a target; return their number too."""
        missing = self.y.isna() if hasattr(self.y, "isna") else np.zeros(len(self.y), dtype=bool)
        missing = np.asarray(missing)
        if not missing.any():
            return self, 0
        kept = np.flatnonzero(~missing)
        X = self.X.iloc[kept] if self.is_frame else self.X[kept]
        groups = None if self.groups is None else self.groups[kept]
        y = np.asarray(self.y.iloc[kept].infer_objects())
        return replace(self, X=X, y=y, groups=groups), int(missing.sum())


def read_table(path: Path, written: TextFormat | None = None) -> Table:
    """Read a file; what it is follows from its name.

    Parameters
    ----------
    path : Path
        The file.
    written : TextFormat, optional
        How the text is written, if it is a text file.
    """
    kind = kind_of_file(path)
    with reading(path):
        if kind in TEXT:
            return _text(path, kind, written or TextFormat())
        if kind in PARQUET:
            return Table(path, _parquet(path))
        return _svmlight(path) if kind in SVMLIGHT else _arrays(path)


def kind_of_file(path: Path) -> str:
    """Return the end of a name that says what a table is; refuse what cannot be read."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    kind = next((s for s in reversed(suffixes) if s not in COMPRESSED), "")
    with reading(path):
        if path.is_dir():
            raise InputError(f"{path} is a folder, not a table.")
        with path.open("rb"):
            pass
    if kind not in (*TEXT, *PARQUET, *SVMLIGHT, *ARRAYS):
        raise InputError(
            f"{path}: what kind of table is it? Names end in {', '.join(TEXT + PARQUET + SVMLIGHT)}"
            f" or {ARRAYS[0]}; text files may also be compressed ({', '.join(COMPRESSED)})."
        )
    return kind


def training_table(
    path: Path,
    written: TextFormat,
    target: str | None,
    drop: Sequence[str],
    groups: str | None,
) -> Table:
    """Read a table to learn from; warn of columns that were probably not meant as they are.

    Parameters
    ----------
    path, written
        As in `read_table`.
    target, drop, groups
        As in `with_target`.
    """
    raw = read_table(path, written)
    table = with_target(raw, target, drop, groups)
    if table.is_frame:
        _warn_of_row_numbers(raw, table.X.columns)
    if table.written is not None:
        texts = [name for name, kind in kinds_of(table.X).items() if kind == "text"]
        _warn_of_odd_texts(table, {n: o for n in texts if (o := _odd_text(table, n)) is not None})
    return table


def place_of(table: Table, row: int, name: str) -> str:
    """Say where a value is: in which line of a text file, in which row of another one."""
    if table.written is None:
        return f"{table.path}, row {row + 1}, column {name!r}"
    return f"{table.path}, line {line_of_row(table.path, table.written, row)}, column {name!r}"


def _odd_text(table: Table, name: str) -> OddText | None:
    return odd_text(present_texts(table.X[name]), _decimal(table))


def _warn_of_row_numbers(table: Table, names: Sequence[str]) -> None:
    """Warn of columns that number the rows, such as the index that pandas writes."""
    for name in names:
        column = table.X[name]
        if len(column) < LEAST_NUMBERED or column.dtype.kind not in "iu":
            continue
        first = int(column.iloc[0])
        if first in (0, 1) and (column.to_numpy() == np.arange(first, first + len(column))).all():
            warn_caller(
                f"{table.path}: column {name!r} numbers the rows, which says nothing about new "
                f"ones; --drop {shlex.quote(name)} leaves it out.",
                UserWarning,
            )


def _warn_of_odd_texts(table: Table, odd: Mapping[str, OddText]) -> None:
    """Warn of the first text in columns of numbers; once if a line seems to be a second header."""
    assert table.written is not None  # others have no text that may be meant as numbers
    header = [
        name
        for name, found in odd.items()
        if found.row == 0 and not DECORATED.fullmatch(found.text)  # but not $ and % everywhere
    ]
    if len(header) >= LEAST_OF_HEADER and len(header) > len(odd) / 2:
        line = line_of_row(table.path, table.written, 0)
        texts = list(dict.fromkeys(odd[name].text for name in header))
        warn_caller(
            f"{table.path}: line {line} looks like a second header, with {_listed(texts)} in "
            f"{len(header):,} columns that have numbers below, which are read as text; "
            f"--skip-lines {table.written.skipped + 1} leaves it out.",
            UserWarning,
        )
        odd = {name: found for name, found in odd.items() if name not in header}
    for name, found in odd.items():
        texts = present_texts(table.X[name])
        n_numbers = as_numbers(texts, _decimal(table)).count()
        line = line_of_row(table.path, table.written, found.row)
        warn_caller(
            f"{table.path}, column {name!r}: {n_numbers:,} of {len(texts):,} values are numbers, "
            f"but line {line} has {found.text!r}, so it is read as text; {found.advice}.",
            UserWarning,
        )


def _decimal(table: Table) -> str:
    """Return the mark in numbers that are text."""
    return "." if table.written is None or table.written.decimal is None else table.written.decimal


def with_target(table: Table, target: str | None, drop: Sequence[str], groups: str | None) -> Table:
    """Take the target and the groups out of the columns, and drop others.

    Parameters
    ----------
    table : Table
        As it was read.
    target : str or None
        Name of a column; files of arrays have a target of their own.
    drop : sequence of str
        Columns to leave out.
    groups : str or None
        Column that says which rows belong together.
    """
    if not table.is_frame:
        if target is not None or drop or groups is not None:
            raise InputError(f"{table.path} has no column names to choose from.")
        if table.y is None:
            raise InputError(f"{table.path} has no target: it needs an array named 'y'.")
        return _with_classes(table)
    if target is None:
        raise InputError(f"{table.path}: which column is the target? Name it with --target.")
    for option, names in (("--drop", drop), ("--groups", [groups])):
        if target in names:
            raise InputError(f"{option} {target}: it is the target, which --target names.")
    frame = table.X
    for name in (target, *drop, *([] if groups is None else [groups])):
        _require(table, name)
    found = replace(
        table,
        X=_with_gaps_as_numbers(
            frame.drop(columns=list({target, *drop, *([] if groups is None else [groups])}))
        ),
        y=frame[target],
        groups=None if groups is None else _groups(table, groups),
    )
    _require_single_values(
        found, "make columns of single values of it, or leave it out with --drop"
    )
    _require_finite(found)
    if found.X.shape[1] == 0:
        raise InputError(f"{table.path} has no column besides the target.")
    return _with_classes(found)


def _require_finite(table: Table) -> None:
    """Refuse infinite numbers, and say where the first is."""
    for name, column in table.X.select_dtypes("floating").items():
        infinite = column.index[np.isinf(column.to_numpy())]
        if len(infinite):
            raise InputError(
                f"{place_of(table, infinite[0], name)}: {column[infinite[0]]} is infinite; correct "
                "it, or leave it empty, as a missing value is."
            )


def _require_single_values(table: Table, advice: str) -> None:
    """Refuse columns of lists and the like, which Parquet files may have."""
    for name, dtype in table.X.dtypes.items():
        values = table.X[name].dropna().iloc[:1] if dtype.kind == "O" else ()
        for value in values:
            if isinstance(value, (list, tuple, dict, bytes, np.ndarray)):
                raise InputError(
                    f"{table.path}, column {name!r} has values of type {type(value).__name__}; "
                    f"{advice}."
                )


def _groups(table: Table, name: str) -> Any:
    """Return a number for every group; every row needs one, and there must be at least two."""
    codes, found = table.X[name].factorize()
    missing = np.flatnonzero(codes < 0)
    if len(missing):
        place = place_of(table, int(missing[0]), name)
        raise InputError(f"{place}: it is empty, but --groups needs a group for every row.")
    if len(found) < 2:
        raise InputError(f"{table.path}: column {name!r} puts all rows into one group.")
    return codes


def require_columns(path: Path, names: Sequence[str], wanted: Collection[str]) -> None:
    """Refuse a file that lacks columns of a model."""
    present = set(names)
    if missing := [name for name in wanted if name not in present]:
        hint = did_you_mean(missing[0], [name for name in names if name not in wanted])
        raise InputError(
            f"{path} lacks columns that the model was trained on: {_listed(missing)}{hint}"
        )


def columns_of_model(table: Table, kinds: dict[str, str]) -> Table:
    """Arrange columns as a model has seen them.

    Parameters
    ----------
    table : Table
        New rows, with all these columns; its index counts the rows of the file.
    kinds : dict
        The model's columns, and what they are: see `kinds_of`.
    """
    import pandas as pd

    frame = _with_gaps_as_numbers(table.X[list(kinds)])
    changed = {}
    for (name, kind), dtype in zip(kinds.items(), frame.dtypes, strict=True):
        if kind in ("number", "boolean") and not pd.api.types.is_numeric_dtype(dtype):
            changed[name] = _as_numbers(table, name)
        elif kind == "date" and not pd.api.types.is_datetime64_any_dtype(dtype):
            changed[name] = _as_dates(table, name)
    found = replace(table, X=frame.assign(**changed) if changed else frame)
    _require_single_values(found, "write them as the model was trained on them")
    _require_finite(found)
    return found


def _as_numbers(table: Table, name: str) -> pd.Series:
    """Read text as numbers or truth values, or name the first that is neither."""
    column = table.X[name]
    texts = present_texts(column)
    numbers = as_numbers(texts, _decimal(table)).astype(float)
    numbers = numbers.fillna(texts.str.strip().str.lower().map(TRUTH))
    wrong = texts[numbers.isna()]
    if len(wrong):
        raise InputError(_not_a_number(table, name, texts, wrong))
    return numbers.reindex(column.index)


def _as_dates(table: Table, name: str) -> pd.Series:
    """Read text as dates; the error names the first text that is not a date."""
    import pandas as pd

    column = table.X[name]
    texts = present_texts(column)
    dates = pd.to_datetime(texts, format="ISO8601", errors="coerce", utc=True).dt.tz_convert(None)
    wrong = texts[dates.isna()]
    if len(wrong):
        raise InputError(
            f"{place_of(table, wrong.index[0], name)}: {wrong.iloc[0]!r} is not a date, as those "
            f"are that the model was trained on; write it as 2024-12-31, or "
            f"{as_missing(wrong.iloc[0])}."
        )
    return dates.reindex(column.index)


def _not_a_number(table: Table, name: str, texts: pd.Series, wrong: pd.Series) -> str:
    """Say where the first text among numbers is and, for text files, what would help."""
    first = OddText(wrong.index[0], wrong.iloc[0], as_missing(wrong.iloc[0]))
    if table.written is None:
        advice = ""
    else:
        first = odd_text(texts, _decimal(table)) or first
        advice = f"; {first.advice}"
    place = place_of(table, first.row, name)
    return f"{place}: {first.text!r} is not a number{advice}."


def kinds_of(frame: pd.DataFrame) -> dict[str, str]:
    """Say what the columns of a frame are: numbers, dates or something else."""
    import pandas as pd

    def kind(dtype: Any) -> str:
        if pd.api.types.is_bool_dtype(dtype):
            return "boolean"
        if pd.api.types.is_numeric_dtype(dtype):
            return "number"
        return "date" if pd.api.types.is_datetime64_any_dtype(dtype) else "text"

    return {str(name): kind(dtype) for name, dtype in frame.dtypes.items()}


def _require(table: Table, name: str) -> None:
    if name not in table.X.columns:
        hint = did_you_mean(name, map(str, table.X.columns)) or (
            f"; it has {_listed(list(map(str, table.X.columns)))}."
        )
        raise InputError(f"{table.path} has no column {name!r}{hint}")


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(map(repr, names[:8]))
    return shown if len(names) <= 8 else f"{shown} and {len(names) - 8} more"


def _with_classes(table: Table) -> Table:
    """Check that the target has classes."""
    known = table.y
    if hasattr(known, "dropna"):
        known = np.asarray(known.dropna()).astype(str)
    n_classes = len(np.unique(known))
    name = getattr(table.y, "name", "y")
    if n_classes < 2:
        same = "all rows have the same value" if n_classes else "no row has a label"
        raise InputError(
            f"{table.path}, column {name!r}: {same}, so there is nothing to "
            f"learn{_missing_labels(table, len(table.y) - len(known))}."
        )
    most = min(MOST_CLASSES, max(len(table.y) // 2, 2))
    if n_classes > most:
        is_text = getattr(getattr(table.y, "dtype", None), "kind", "O") not in "biufMm"
        advice = "predicts classes, not numbers. Cut it into classes first"
        if is_text:
            advice = f"learns at most {most:,} classes from {len(table.y):,} rows. Are they names "
            advice += "of the rows? Otherwise merge rare ones"
        raise InputError(
            f"{table.path}, column {name!r} has {n_classes:,} different values: hardmargin "
            f"{advice}."
        )
    return table


def _missing_labels(table: Table, n_missing: int) -> str:
    """Say how many labels are missing and, for text files, what stands for a missing one."""
    if n_missing == 0:
        return ""
    said = f"; {n_missing:,} of {len(table.y):,} labels are missing"
    if table.written is None:
        return said
    texts = ", ".join(filter(None, table.written.all_missing))
    return f"{said}: empty, or one of {texts}"


def _text(path: Path, kind: str, written: TextFormat) -> Table:
    if written.delimiter is None and kind in TABS:
        written = replace(written, delimiter="\t")
    table, written = read_text(path, written)
    return Table(path, frame_of(table), written=written)


def _parquet(path: Path) -> pd.DataFrame:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        require_unique(path, parquet.read_schema(path).names)
        table = parquet.read_table(path)
    except (pa.ArrowInvalid, UnicodeError) as error:  # names may be damaged, too
        raise InputError(f"{path} is not a Parquet file: {error}") from error
    if table.num_rows == 0:
        raise InputError(f"{path} has no rows.")
    try:
        return frame_of(table)
    except Exception as error:  # such as a KeyError, if what pandas wrote about itself is damaged
        raise InputError(f"{path} is damaged ({type(error).__name__}: {error}).") from error


def frame_of(table: Any) -> pd.DataFrame:
    """Make a data frame, in which truth values may be missing; times are in UTC."""
    import pyarrow as pa

    for i, field in enumerate(table.schema):
        if pa.types.is_null(field.type) or pa.types.is_decimal(field.type):
            table = table.set_column(i, field.name, table.column(i).cast(pa.float64()))
    frame: pd.DataFrame = table.to_pandas(date_as_object=False)
    for field in table.schema:
        if pa.types.is_boolean(field.type) and table.column(field.name).null_count:
            frame[field.name] = frame[field.name].astype("boolean")
        has_zone = pa.types.is_timestamp(field.type) and field.type.tz is not None
        if has_zone and field.name in frame:  # model files have no time zones
            frame[field.name] = frame[field.name].dt.tz_convert(None)
    return frame.reset_index(drop=True)  # rows are counted, also where Parquet names them


def _with_gaps_as_numbers(frame: pd.DataFrame) -> pd.DataFrame:
    """Make numbers of truth values of which some are missing, as classifiers take these."""
    with_gaps = [name for name, dtype in frame.dtypes.items() if dtype == "boolean"]
    return frame.astype(dict.fromkeys(with_gaps, "float64")) if with_gaps else frame


def _svmlight(path: Path) -> Table:
    from sklearn.datasets import load_svmlight_file

    try:
        X, y = load_svmlight_file(str(path))
    except (ValueError, OverflowError) as error:
        raise InputError(f"{path} is not in svmlight format: {error}") from error
    return Table(path, sp.csr_array(X), y)


def _arrays(path: Path) -> Table:
    try:
        with np.load(path) as stored:
            if {"data", "indices", "indptr", "shape"} <= set(stored.files):
                return Table(path, sp.csr_array(sp.load_npz(path)))
            names = [
                next((n for n in known if n in stored.files), None)
                for known in (ROW_NAMES, TARGET_NAMES)
            ]
            if names[0] is None:
                raise InputError(f"{path} has no array named 'X'; it has {_listed(stored.files)}.")
            y = None if names[1] is None else stored[names[1]]
            X = stored[names[0]]
    except InputError:
        raise
    except Exception as error:  # numpy's reader raises nearly anything
        reason = f"{type(error).__name__}: {error}"
        raise InputError(f"{path} is not a file of numpy arrays ({reason}).") from error
    for name, member in zip(names, (X, y), strict=True):
        if name is not None and not isinstance(member, np.ndarray):
            raise InputError(f"{path}: {name!r} is not an array.")
    if y is not None and y.shape != X.shape[:1]:
        raise InputError(f"{path}: {names[1]!r} has the shape {y.shape}, not one label per row.")
    if X.ndim != 2:
        raise InputError(f"{path}: {names[0]!r} has {X.ndim} dimensions, not rows and columns.")
    return Table(path, X, y)
