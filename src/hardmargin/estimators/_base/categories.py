"""Categories: columns of names, such as colours, turned into columns of numbers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_array

from hardmargin.kernels import is_sparse

#: A column of strings is taken for text rather than for categories if it has more different ones.
MAX_STRINGS = 64

#: Every category has a column of its own, so there are limits even for declared ones.
MAX_CATEGORIES = 255

#: Names of the types of columns in pandas and in polars: declared categories, and what may be text.
DECLARED = {"category", "categorical", "enum", "dictionary"}
MAYBE_TEXT = {"object", "str", "string", "large_string", "utf8"}
DATES = ("date", "time", "period", "duration", "timestamp")

#: What to do with columns that are neither numbers nor categories.
ADVICE = (
    "Turn it into numbers first, for instance with skrub: make_pipeline(TableVectorizer(), ...)."
)

#: Missing values of pandas that are not numbers.
MISSING_TYPES = ("NAType", "NaTType")


@dataclass(frozen=True, eq=False)
class Categories:
    """How columns of categories turn into numbers: one column per category.

    Two categories share one column of zeros and ones. A missing value is a category if ``fit`` saw
    one. A category that ``fit`` did not see is as far from one known category as from any other.

    Attributes
    ----------
    columns : (n_categorical,) int array
        The columns of categories, in ascending order.
    are_strings : (n_categorical,) bool array
        Those whose categories are compared as strings.
    n_columns : int
        Number of columns of the table.
    encoder : OneHotEncoder
        Knows their categories.
    """

    columns: NDArray[np.intp]
    are_strings: NDArray[np.bool_]
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
        values = [
            _as_strings(_values(X, j)) if is_string else _values(X, j)
            for j, is_string in zip(self.columns, self.are_strings, strict=True)
        ]
        indicators = self.encoder.transform(np.column_stack(values))
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
        Which columns: those that the types of a data frame's columns tell, those with these names,
        numbers or True values, or none.
    """
    is_frame = hasattr(X, "columns") and hasattr(X, "dtypes")
    if features is None or (not is_frame and isinstance(features, str)):
        return None
    if is_sparse(X):
        raise ValueError(
            "Sparse rows have no columns of categories; encode them first, and leave "
            "categorical_features at 'from_dtype'."
        )
    if not is_frame:
        X = np.asarray(X, dtype=object)
        if X.ndim != 2:
            return None  # validation explains it better
    if isinstance(features, str):
        declared, maybe = _columns_by_type(X)
    else:
        declared, maybe = _chosen(features, X.shape[1], list(X.columns) if is_frame else []), []
    columns, are_strings, values = [], [], []
    for j in sorted(declared + maybe):
        found = _values(X, j)
        is_string = any(not isinstance(v, Real | np.bool_ | None) for v in found)
        if j in maybe and not is_string:
            continue  # numbers, kept as objects
        columns.append(j)
        are_strings.append(is_string)
        values.append(_as_strings(found) if is_string else found)
        n_different = len(set(values[-1]) - {None})
        if n_different > (MAX_STRINGS if j in maybe else MAX_CATEGORIES):
            _refuse(X.columns[j] if is_frame else j, n_different, is_declared=j in declared)
    if not columns:
        return None
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    encoder.fit(np.column_stack(values))
    return Categories(np.array(columns), np.array(are_strings), X.shape[1], encoder)


def _columns_by_type(X: Any) -> tuple[list[int], list[int]]:
    """Columns of a data frame that are declared categories, and those that may have strings."""
    kinds = [re.split(r"[(\[<]", str(kind))[0].lower() for kind in X.dtypes]
    for name, kind in zip(X.columns, kinds, strict=True):
        if kind.startswith(DATES):
            raise ValueError(f"Column {name!r} has dates or times. {ADVICE}")
    declared = [j for j, kind in enumerate(kinds) if kind in DECLARED]
    return declared, [j for j, kind in enumerate(kinds) if kind in MAYBE_TEXT]


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
            raise ValueError(f"categorical_features lists {feature!r}, which is no column of X.")
    return sorted(columns)


def _values(X: Any, column: int) -> NDArray[Any]:
    """Values of one column as objects, None where one is missing."""
    values = np.asarray(_safe_indexing(X, column, axis=1), dtype=object)
    known = (None if _is_missing(v) else v for v in values)
    return np.fromiter(known, dtype=object, count=len(values))


def _as_strings(values: NDArray[Any]) -> NDArray[Any]:
    strings = (v if v is None else str(v) for v in values)
    return np.fromiter(strings, dtype=object, count=len(values))


def _is_missing(value: Any) -> bool:
    is_nan = isinstance(value, float | np.floating) and value != value
    return value is None or is_nan or type(value).__name__ in MISSING_TYPES


def _refuse(column: Any, n_different: int, *, is_declared: bool) -> None:
    what, limit = "different strings", MAX_STRINGS
    advice = f"If these are categories, list it: categorical_features=[{column!r}, ...]."
    if is_declared:
        what, limit, advice = "categories", MAX_CATEGORIES, "Or merge rare categories."
    raise ValueError(
        f"Column {column!r} has {n_different:,} {what}, more than {limit}. {ADVICE} {advice}"
    )
