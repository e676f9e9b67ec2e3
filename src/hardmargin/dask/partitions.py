"""Partitions of collections: those of several collections together, with the same columns.

Dask fuses partitions of a read of few columns, so that X and y of one data frame may be divided in
different ways. Collections that come from the same source are therefore made by the same tasks,
which also read every file once. Others are put side by side by the numbers of their rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
from dask.delayed import Delayed
from numpy.typing import NDArray
from sklearn.utils.validation import column_or_1d

from hardmargin.dask.expressions import have_one_source
from hardmargin.estimators._base.labels import plain_labels

#: What users call the values of a column, by the names that pandas has for them.
WORDS = {
    **dict.fromkeys(["integer", "floating", "mixed-integer-float", "boolean"], "numbers"),
    **dict.fromkeys(["decimal", "complex"], "numbers"),
    **dict.fromkeys(["string", "mixed", "mixed-integer"], "strings"),
    "categorical": "categories",
    **dict.fromkeys(
        ["datetime64", "datetime", "date", "timedelta64", "timedelta"], "dates or times"
    ),
    **dict.fromkeys(["time", "period"], "dates or times"),
}

#: Odd numbers that mix the bits of a position (Steele, Lea and Flood, 2014).
_MIX = np.array([0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB], dtype=np.uint64)


def partitions(X: Any, *, is_optimized: bool = False) -> list[Delayed]:
    """Partitions of a collection, each of all columns."""
    if isinstance(X, da.Array) and X.ndim == 2:
        X = X.rechunk({1: -1})
    parts = X.to_delayed(optimize_graph=not is_optimized)
    return list(parts.ravel()) if isinstance(parts, np.ndarray) else list(parts)


def partitions_of_all(
    X: Any, others: Mapping[str, Any]
) -> tuple[list[Delayed], dict[str, list[Delayed]]]:
    """Partitions of rows, and of other collections with an entry per row.

    To be computed together: what is needed by several of them is then made once.
    """
    if isinstance(X, da.Array):
        arrays = {name: own for name, own in others.items() if isinstance(own, da.Array)}
        parts = {name: partitions(own) for name, own in others.items() if name not in arrays}
        whole_rows = X.rechunk({1: -1})
        whole_rows, *found = dask.optimize(whole_rows, *arrays.values())
        tables = partitions(whole_rows, is_optimized=True)
        of_arrays = [partitions(own, is_optimized=True) for own in found]
        return tables, parts | dict(zip(arrays, of_arrays, strict=True))
    near = {name: own for name, own in others.items() if have_one_source(X, own)}
    parts = {name: partitions(own) for name, own in others.items() if name not in near}
    if not near:
        return partitions(X), parts
    options = {"meta": X._meta, "align_dataframes": False, "enforce_metadata": False}
    both = partitions(dd.map_partitions(_as_tuple, X, *near.values(), **options))
    tables, *of_near = ([_pick(k)(part) for part in both] for k in range(len(near) + 1))
    return tables, parts | dict(zip(near, of_near, strict=True))


def _as_tuple(*parts: Any) -> tuple[Any, ...]:
    return parts


def _pick(number: int) -> Any:
    return dask.delayed(itemgetter(number))


class ColumnKind(NamedTuple):
    """What a column has, in a user's words, or None if nothing is known; and its type."""

    words: str | None
    dtype: str

    def goes_with(self, other: ColumnKind) -> bool:
        """Whether both may be in one column: categories are compared as strings.

        Objects may be of several kinds.
        """
        known = {"strings" if kind.words == "categories" else kind.words for kind in (self, other)}
        return len(known) == 1 or self.dtype == other.dtype


class Facts(NamedTuple):
    """What is known of a partition: its rows, and the kinds of its columns, if it is a frame."""

    n_rows: int
    kinds: list[ColumnKind]


def facts_of(part: Any) -> Facts:
    """Look at a partition."""
    kinds = []
    if isinstance(part, pd.DataFrame):
        kinds = [kind_of(part.iloc[:, j]) for j in range(part.shape[1])]
    return Facts(int(part.shape[0]), kinds)


def kind_of(values: Any) -> ColumnKind:
    """Say what values are; those that are all missing may be anything."""
    column = pd.Series(values)
    dtype = str(column.dtype)
    if len(column) and pd.isna(column.iloc[0]) and column.isna().all():
        return ColumnKind(None, dtype)
    found = pd.api.types.infer_dtype(column, skipna=True)
    return ColumnKind(None if found == "empty" else WORDS.get(found, found), dtype)


def refuse_other_kinds(what: str, found: Iterable[tuple[str, ColumnKind]]) -> None:
    """Refuse values that are of another kind in some places."""
    known: tuple[str, ColumnKind] | None = None
    for where, kind in found:
        if kind.words is None:
            continue
        if known is None:
            known = where, kind
        elif not kind.goes_with(known[1]):
            place, first = known
            raise ValueError(
                f"{what} has {first.words} ({first.dtype}) {place}, but {kind.words} "
                f"({kind.dtype}) {where}. Give it one type everywhere, with dtype= where files are "
                "read, or with astype."
            )


def refuse_other_columns(meta: pd.DataFrame, found: Sequence[tuple[int, Facts]]) -> None:
    """Refuse partitions of a data frame with a column of another kind than elsewhere.

    Parameters
    ----------
    meta : data frame
        Without rows, of the types that the collection declares.
    found : sequence of (int, Facts)
        Numbers of partitions, and what is known of them.
    """
    for j, column in enumerate(meta.columns):
        declared = ("by its declared type", _declared(meta.iloc[:, j]))
        of_parts = [(f"in partition {b}", facts.kinds[j]) for b, facts in found]
        refuse_other_kinds(f"Column {column!r}", [declared, *of_parts])


def _declared(column: pd.Series) -> ColumnKind:
    """Kind of a column without rows, by its type."""
    if column.dtype == object:
        return ColumnKind(None, "object")
    is_text = pd.api.types.is_string_dtype(column.dtype)
    return ColumnKind("strings", str(column.dtype)) if is_text else kind_of(column)


def in_order(part: Any, columns: Sequence[Any] | None, where: str) -> Any:
    """Put the columns of a partition in order, and refuse others.

    Parameters
    ----------
    part : partition
        Of a collection.
    columns : sequence or None
        Names of the columns of a data frame; None for arrays.
    where : str
        Which partition this is, for errors.
    """
    if columns is None or list(part.columns) == list(columns):
        return part
    missing = [column for column in columns if column not in part.columns]
    others = [column for column in part.columns if column not in columns]
    if missing or others:
        lacks = f"lacks the columns {missing}" if missing else ""
        has = f"has the columns {others}, which others lack" if others else ""
        raise ValueError(
            f"{where} {' and '.join(filter(None, [lacks, has]))}; all partitions must have the "
            f"columns {list(columns)}."
        )
    if len(part.columns) != len(columns):
        twice = part.columns[part.columns.duplicated()].unique().tolist()
        raise ValueError(f"{where} has columns of the same name: {twice}.")
    return part[list(columns)]


class Labels(NamedTuple):
    """Labels of a partition: the different labels, and which of them each row has; their kind."""

    classes: NDArray[Any]
    codes: NDArray[np.int32]
    kind: ColumnKind


def labels_of(part: Any, number: int) -> Labels:
    """Read the labels of a partition, which errors call by its number."""
    values = column_or_1d(np.asarray(part), warn=False)
    n_missing = int(np.asarray(pd.isna(values)).sum())
    if n_missing:
        raise ValueError(
            f"y has {n_missing:,} missing labels in partition {number}; drop these rows."
        )
    values = plain_labels(values)
    kind = kind_of(values)
    try:
        classes, codes = np.unique(values, return_inverse=True)
    except TypeError:
        raise ValueError(
            "y has labels that cannot be compared, such as numbers among strings; turn all of them "
            "into strings, y.astype(str)."
        ) from None
    return Labels(classes, codes.astype(np.int32), kind)


def or_refusal(function: Callable[..., Any], *args: Any) -> Any:
    """Call a function; an error in what it was given is returned, as workers log what is raised."""
    try:
        return function(*args)
    except (TypeError, ValueError) as error:
        return error


def values_of(part: Any, name: str) -> NDArray[Any]:
    """Values with an entry per row."""
    array = np.asarray(part)
    if array.ndim != 1:
        raise ValueError(f"{name} must have one dimension, got shape {array.shape}.")
    return array


class Print(NamedTuple):
    """Hashes of the index of some rows: of its labels, and of them in their order."""

    labels: int
    in_order: int


def print_of(part: Any, start: int) -> Print:
    """Hash the index of a partition, whose first row has the number `start`."""
    hashes = np.asarray(pd.util.hash_pandas_object(part.index, index=False), dtype=np.uint64)
    places = np.arange(start, start + len(hashes), dtype=np.uint64) * _MIX[0]
    for shift, factor in ((30, _MIX[1]), (27, _MIX[2])):
        places = (places ^ (places >> np.uint64(shift))) * factor
    return Print(int(hashes.sum()), int((hashes * (places | np.uint64(1))).sum()))


def merged(prints: Iterable[Print]) -> Print:
    """Put hashes of partitions together, however these are divided."""
    labels, in_order = zip(*prints, strict=True)
    return Print(sum(labels) % 2**64, sum(in_order) % 2**64)
