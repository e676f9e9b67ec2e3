"""Categories: columns of names, such as colours, turned into columns of numbers."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from numbers import Real
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_array

from hardmargin.kernels import is_sparse
from hardmargin.warn import warn_caller

#: A column with more different strings than this is taken for text rather than for categories.
MAX_STRINGS = 64

#: Every category has a column of its own, so there is a limit even for declared categories.
MAX_CATEGORIES = 255

#: Names of the types of columns in pandas and in polars: declared categories, what may be text, and
#: what is neither of these nor a number.
DECLARED = {"category", "categorical", "enum", "dictionary"}
MAYBE_TEXT = {"object", "str", "string", "large_string", "utf8"}
DATES = ("date", "time", "period", "duration", "timestamp")
STRANGE = {"array", "interval", "list", "large_list", "fixed_size_list", "map", "struct"}
STRANGE |= {"binary", "large_binary", "fixed_size_binary"}

#: Types of values that are numbers.
NUMBERS = (Real, np.bool_, Decimal)

#: What to do with columns that are neither numbers nor categories.
ADVICE = (
    "Turn it into numbers first, for instance with skrub: make_pipeline(TableVectorizer(), ...)."
)

#: A column of at least this many rows, none of which has a known category, raises a warning.
MANY_STRANGERS = 10

#: Missing values of pandas that are not numbers.
MISSING_TYPES = ("NAType", "NaTType")


class _Values(NamedTuple):
    """Values of a column: their types, and all of them as strings."""

    types: set[type]
    strings: set[str | None]


#: Values of some columns, by their numbers.
ColumnValues: TypeAlias = dict[int, _Values]


@dataclass(frozen=True, eq=False)
class Categories:
    """How columns of categories turn into numbers: one column per category.

    Categories are compared as strings: 10, 10.0 and "10" are the same. Two categories share one
    column of zeros and ones. A missing value is a category if ``fit`` saw one. A category that
    ``fit`` did not see is as far from one known category as from any other.

    Attributes
    ----------
    columns : (n_categorical,) int array
        The columns of categories, in ascending order.
    n_columns : int
        Number of columns of the table.
    encoder : OneHotEncoder
        Knows their categories.
    """

    columns: NDArray[np.intp]
    n_columns: int
    encoder: OneHotEncoder

    @property
    def origins(self) -> NDArray[np.intp]:
        """The column of the table that each column of numbers comes from."""
        widths = np.ones(self.n_columns, dtype=np.intp)
        sizes = np.array([len(known) for known in self.encoder.categories_])
        widths[self.columns] = np.where(sizes == 2, 1, sizes)
        return np.repeat(np.arange(self.n_columns), widths)

    def transform(self, X: Any) -> NDArray[Any]:
        """Turn a table into numbers; missing numbers stay missing."""
        X = X if hasattr(X, "columns") else np.asarray(X, dtype=object)
        numeric = np.setdiff1d(np.arange(self.n_columns), self.columns)
        origins = self.origins
        values = np.column_stack([_strings(X, j) for j in self.columns])
        indicators = self.encoder.transform(values)
        self._warn_of_strangers(X, values)
        ends = np.cumsum([len(known) for known in self.encoder.categories_])
        seconds = ends[np.diff(ends, prepend=0) == 2] - 1
        # One column for two categories: 0, 1, and 1/2 for those that fit did not see.
        indicators[:, seconds] = (1 + indicators[:, seconds] - indicators[:, seconds - 1]) / 2
        indicators = np.delete(indicators, seconds - 1, axis=1)
        if len(numeric) == 0:
            return np.asarray(indicators)
        numbers = check_array(
            _safe_indexing(X, numeric, axis=1),
            dtype=[np.float64, np.float32],
            ensure_all_finite=False,
        )
        rows = np.empty((len(numbers), len(origins)), dtype=numbers.dtype)
        is_category = np.isin(origins, self.columns)
        rows[:, is_category], rows[:, ~is_category] = indicators, numbers
        return rows

    def _warn_of_strangers(self, X: Any, values: NDArray[Any]) -> None:
        """Warn of columns in which every category is new: they may be spelled in another way."""
        for k, known in enumerate(self.encoder.categories_):
            found = [v for v in values[:, k] if v is not None]
            if len(found) >= MANY_STRANGERS and not set(found) & set(known):
                j = self.columns[k]
                warn_caller(
                    f"None of the values in column {_name(X, j)!r} (for instance {found[0]!r}) was "
                    "seen in fit; check that it is the same column with the same spelling.",
                    UserWarning,
                )

    def names(self, columns: Sequence[str]) -> list[str]:
        """Names of the columns of numbers, from those of the table."""
        known = dict(zip(self.columns.tolist(), self.encoder.categories_, strict=True))
        names = []
        for j, column in enumerate(columns):
            if j not in known:
                names.append(column)
                continue
            labels = ["missing" if c is None else str(c) for c in known[j]]
            names += [f"{column}_{label}" for label in labels[len(labels) == 2 :]]
        return names


def find_categories(X: Any, features: Any) -> Categories | None:
    """Find the columns of categories and what they contain; None if there are no such columns.

    Parameters
    ----------
    X : array, data frame or sparse matrix
        Training rows.
    features : "from_dtype", array-like or None
        Which columns: those that a data frame's types mark; those and the ones listed by name,
        number or True; or none.
    """
    return find_categories_in_parts(X, features, lambda function: [function(X)])


def find_categories_in_parts(
    X: Any, features: Any, each: Callable[[Callable[[Any], ColumnValues]], list[ColumnValues]]
) -> Categories | None:
    """Find the columns of categories of a table whose parts live elsewhere.

    Parameters
    ----------
    X : array, data frame or sparse matrix
        A part, perhaps without rows, whose columns have the types of all parts.
    features : "from_dtype", array-like or None
        As for `find_categories`.
    each : callable
        Calls a function with every part, where it lives, and returns the results.
    """
    refuse_lazy_frame(X)
    is_frame = is_data_frame(X)
    if features is None or (not is_frame and isinstance(features, str)):
        return None
    if is_sparse(X):
        raise ValueError(
            "Sparse rows have no columns of categories; encode them first, and leave "
            "categorical_features at 'from_dtype'."
        )
    if not is_frame and np.asarray(X, dtype=object).ndim != 2:
        return None  # validation explains it better
    names = list(X.columns) if is_frame else range(np.asarray(X, dtype=object).shape[1])
    listed = set()
    if not isinstance(features, str):
        listed = set(_chosen(features, len(names), names if is_frame else []))
    kinds = column_kinds(X, listed) if is_frame else []
    declared = {j for j, kind in enumerate(kinds) if kind in DECLARED} | listed
    maybe = {j for j, kind in enumerate(kinds) if kind in MAYBE_TEXT} - declared
    if not (columns := sorted(declared | maybe)):
        return None
    found: dict[int, set[str | None]] = {}
    parts = each(partial(_values, columns=columns))
    for j in columns:
        others = _not_numbers(set().union(*(part[j].types for part in parts)))
        if j in maybe and not others:
            continue  # numbers, kept as objects
        if j in maybe and (strange := [kind for kind in others if not issubclass(kind, str)]):
            _refuse_type(names[j], strange[0].__name__)
        found[j] = set().union(*(part[j].strings for part in parts))
        n_different = len(found[j] - {None})
        if n_different > (MAX_STRINGS if j in maybe else MAX_CATEGORIES):
            _refuse(names[j], n_different, is_declared=j in declared)
    if not found:
        return None
    # The encoder learns from a table that has every value at least once.
    longest = max(map(len, found.values()))
    table = np.empty((longest, len(found)), dtype=object)
    for k, values in enumerate(found.values()):
        table[:, k] = [*values, *[next(iter(values))] * (longest - len(values))]
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False).fit(table)
    return Categories(np.array(list(found)), len(names), encoder)


def _values(X: Any, columns: Sequence[int]) -> ColumnValues:
    """Different values of some columns of a part."""
    X = X if is_data_frame(X) else np.asarray(X, dtype=object)
    return {j: _Values(_types(X, j), set(_strings(X, j))) for j in columns}


def column_kinds(X: Any, categories: Collection[int] = ()) -> list[str]:
    """Types of the columns of a pandas or polars data frame, in short.

    Dates and times are refused, and so are lists and the like.

    Parameters
    ----------
    X : data frame
        Of pandas or polars.
    categories : collection of int
        Columns whose values may be of any type but dates, as their text is all that matters.
    """
    kinds = [re.split(r"[(\[<]", str(kind))[0].lower() for kind in X.dtypes]
    for j, (name, kind) in enumerate(zip(X.columns, kinds, strict=True)):
        if kind.startswith(DATES):
            raise ValueError(f"Column {name!r} has dates or times. {ADVICE}")
        if kind in STRANGE and j not in categories:
            _refuse_type(name, kind)
    return kinds


def columns_without_numbers(X: Any, known: Categories | None) -> list[Any]:
    """Names of the columns of a data frame that have strings but are not known as categories."""
    if not is_data_frame(X):
        return []
    categories = columns_of(known)
    kinds = column_kinds(X, categories)
    return [
        X.columns[j]
        for j, kind in enumerate(kinds)
        if j not in categories
        and (kind in DECLARED or (kind in MAYBE_TEXT and _not_numbers(_types(X, j))))
    ]


def columns_of(known: Categories | None) -> list[int]:
    """Numbers of the columns of categories; none where there are no categories."""
    return [] if known is None else known.columns.tolist()


def refuse_lazy_frame(X: Any) -> None:
    """Refuse a table of polars that is not computed yet."""
    if type(X).__name__ == "LazyFrame":
        raise TypeError("X is a LazyFrame of polars, which has no rows yet: call X.collect().")


def is_data_frame(X: Any) -> bool:
    """Whether rows are a data frame of pandas or polars."""
    return hasattr(X, "columns") and hasattr(X, "dtypes")


def is_missing(value: Any) -> bool:
    """Whether a value of a table stands for none: None, NaN, or one of pandas."""
    is_nan = isinstance(value, float | np.floating) and value != value
    return value is None or is_nan or type(value).__name__ in MISSING_TYPES


def _chosen(features: Any, n_columns: int, names: Sequence[Any]) -> list[int]:
    """Numbers of the columns that `categorical_features` lists, in ascending order."""
    listed = np.asarray(features)
    if listed.ndim != 1:
        raise ValueError(
            "categorical_features must be 'from_dtype', None, or a list of column names, column "
            f"numbers or booleans, got {features!r}."
        )
    if listed.dtype == bool:
        if len(listed) != n_columns:
            raise ValueError(
                f"categorical_features has {len(listed)} booleans, but X has {n_columns} columns."
            )
        return np.flatnonzero(listed).tolist()
    columns = set()
    for feature in features:
        if feature in names:
            columns.add(names.index(feature))
        elif isinstance(feature, int | np.integer) and -n_columns <= feature < n_columns:
            columns.add(int(feature) % n_columns)
        else:
            raise ValueError(f"categorical_features lists {feature!r}, which is not a column of X.")
    return sorted(columns)


def _objects(X: Any, column: int) -> NDArray[Any]:
    return np.asarray(_safe_indexing(X, column, axis=1), dtype=object)


def _types(X: Any, column: int) -> set[type]:
    """Types of the values of one column that are not missing."""
    return {type(v) for v in _objects(X, column) if not is_missing(v)}


def _not_numbers(types: set[type]) -> list[type]:
    """Types that are not those of numbers, by name."""
    return sorted((t for t in types if not issubclass(t, NUMBERS)), key=lambda t: t.__name__)


def _strings(X: Any, column: int) -> NDArray[Any]:
    """Values of one column as strings, None where one is missing."""
    values = _objects(X, column)
    strings = (None if is_missing(v) else _as_string(v) for v in values)
    return np.fromiter(strings, dtype=object, count=len(values))


def _as_string(value: Any) -> str:
    is_whole = isinstance(value, float | np.floating) and value.is_integer()
    return str(int(value) if is_whole else value)


def _name(X: Any, column: int) -> Any:
    return X.columns[column] if hasattr(X, "columns") else int(column)


def _refuse(column: Any, n_different: int, *, is_declared: bool) -> None:
    what, limit, advice = "different strings", MAX_STRINGS, ""
    if is_declared:
        what, limit, advice = "categories", MAX_CATEGORIES, " Or merge rare categories."
    elif n_different <= MAX_CATEGORIES:
        advice = _list_it(column)
    raise ValueError(
        f"Column {column!r} has {n_different:,} {what}, more than {limit}. {ADVICE}{advice}"
    )


def _refuse_type(column: Any, kind: str) -> None:
    raise ValueError(
        f"Column {column!r} has values of type {kind}, which are neither numbers nor strings. "
        f"{ADVICE}{_list_it(column)}"
    )


def _list_it(column: Any) -> str:
    return f" If these are categories, list it: categorical_features=[{column!r}]."
