"""Tables and their columns: what can be read, types, and the different values of columns."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Mapping
from decimal import Decimal
from itertools import count
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from hardmargin.kernels import is_sparse

if TYPE_CHECKING:  # which are found among columns
    from hardmargin.estimators._base.categories import Categories

#: Names of the types of columns in pandas and in polars: declared categories, what may be text, and
#: what is neither of these nor a number.
DECLARED = {"category", "categorical", "enum", "dictionary"}
MAYBE_TEXT = {"object", "str", "string", "large_string", "utf8"}
DATES = ("date", "time", "period", "duration", "timestamp")
STRANGE = {"array", "interval", "list", "large_list", "fixed_size_list", "map", "struct"}
STRANGE |= {"binary", "large_binary", "fixed_size_binary"}

#: Types of values that are numbers.
NUMBERS = (Real, np.bool_, Decimal)

#: Missing values of pandas that are not numbers.
MISSING_TYPES = ("NAType", "NaTType")

#: What to do with columns that are neither numbers nor categories.
ADVICE = (
    "Turn it into numbers first, for instance with skrub: make_pipeline(TableVectorizer(), ...)."
)

#: The warning of columns that are empty in every row.
WITHOUT_VALUE = (
    "Columns without any value are ignored: {}. They keep their names, and have no effect."
)


class Values(NamedTuple):
    """Values of a column.

    Attributes
    ----------
    types : set of type
        Types of those that are not missing.
    strings : list
        Different values as strings, perhaps repeated; None for a missing one.
    codes : (n,) int array
        Which of these every row has.
    """

    types: set[type]
    strings: list[str | None]
    codes: NDArray[np.intp]


def refuse_lazy_frame(X: Any) -> None:
    """Refuse a data frame of polars or Dask that is not computed yet."""
    if type(X).__name__ == "LazyFrame":
        raise TypeError("X is a LazyFrame of polars, which has no rows yet: call X.collect().")
    if is_data_frame(X) and hasattr(X, "compute"):
        raise TypeError(
            "X is a data frame of Dask, which has no rows yet: hardmargin.dask has what takes it, "
            "DaskEnsembleSVC to fit and predict(model, X) for other models; X.compute() is a data "
            "frame in memory."
        )


def readable(X: Any) -> Any:
    """Return a table of pyarrow as a data frame, and others as they are."""
    is_arrow = hasattr(X, "to_pandas") and hasattr(X, "schema") and not is_data_frame(X)
    return X.to_pandas() if is_arrow else X


def refuse_no_table(X: Any) -> None:
    """Refuse dates, what a data frame can be made of, and one of its columns, as a table."""
    if getattr(getattr(X, "dtype", None), "names", None):
        raise TypeError("X is a structured array: pass pd.DataFrame(X), with pandas as pd.")
    if getattr(getattr(X, "dtype", None), "kind", "") in ("M", "m"):
        raise ValueError(f"X has dates or times. {ADVICE}")
    if is_data_frame(X) or is_sparse(X) or getattr(X, "ndim", 1) != 1:
        return
    if isinstance(X, Mapping):
        raise TypeError(
            "X is a dict: pass pd.DataFrame(X) if it has columns, pd.DataFrame([X]) if it is one "
            "row, with pandas as pd."
        )
    first = next(iter(X), None) if hasattr(X, "__iter__") else None
    if isinstance(first, Mapping):
        raise TypeError("X is a list of dicts: pass pd.DataFrame(X), with pandas as pd.")
    if isinstance(first, str):
        raise ValueError(
            "Expected 2D array, got 1D array instead: X is a list of texts. Reshape your data: if "
            f"these are categories, pass a table of one column, {_as_table(X)}; if they are text, "
            "turn it into numbers in a pipeline, make_pipeline(TfidfVectorizer(), ...), with "
            "TfidfVectorizer from sklearn.feature_extraction.text."
        )
    if isinstance(X, np.ndarray):
        return
    if hasattr(X, "to_frame") and len(getattr(X, "shape", ())) == 1:
        name = "" if X.name in (None, "") else f", {X.name!r}"
        raise ValueError(
            f"Expected 2D array, got 1D array instead: X is a Series of {len(X):,} values{name}. "
            "Reshape your data: if it is a column, pass X.to_frame(), a table of one column; if it "
            "is a row, pass a table of one row, such as table[:1]."
        )


def _as_table(column: Any) -> str:
    """Say what makes a table of one column."""
    if not hasattr(column, "to_frame"):
        return "pd.DataFrame({'name': X}), with pandas as pd"
    return "X.to_frame()" if column.name in (None, "") else f"table[[{column.name!r}]]"


def refuse_no_rows(X: Any, estimator: str) -> None:
    """Refuse a table without rows."""
    shape: tuple[int, ...] = getattr(X, "shape", ())
    if len(shape) == 2 and shape[0] == 0 and shape[1] > 0:
        raise ValueError(
            f"Found array with 0 sample(s): X has {shape[1]:,} columns and no rows, while a "
            f"minimum of 1 is required by {estimator}. Look at what selects the rows before."
        )


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
        if kind.startswith("complex"):
            raise ValueError(
                f"Complex data not supported: column {name!r} has type {kind}. Make two columns of "
                "it, of the real and the imaginary parts."
            )
        if kind in STRANGE and j not in categories:
            refuse_type(name, kind)
    return kinds


def is_data_frame(X: Any) -> bool:
    """Whether rows are a data frame of pandas or polars."""
    return hasattr(X, "columns") and hasattr(X, "dtypes")


def is_missing(value: Any) -> bool:
    """Whether a value of a table stands for none: None, NaN, or one of pandas."""
    is_nan = isinstance(value, float | np.floating) and value != value
    return value is None or is_nan or type(value).__name__ in MISSING_TYPES


def columns_of(known: Categories | None) -> list[int]:
    """Numbers of the columns of categories; none where there are no categories."""
    return [] if known is None else known.columns.tolist()


def without_na(X: Any, categories: Collection[int]) -> Any:
    """Return a table in whose objects NaN takes the place of pandas' NA, which is no number.

    Parameters
    ----------
    X : table
        Arrays of objects and pandas' columns of objects are looked at.
    categories : collection of int
        Columns of a data frame that need not be numbers.
    """
    if isinstance(X, np.ndarray):
        return _without_na(X) if X.dtype == object else X
    if not is_data_frame(X) or not hasattr(X, "isetitem"):
        return X
    changed = X
    for j, kind in enumerate(X.dtypes):
        if str(kind) != "object" or j in categories:
            continue
        given = X.iloc[:, j].to_numpy()
        if (values := _without_na(given)) is not given:
            changed = X.copy(deep=False) if changed is X else changed
            changed.isetitem(j, values)
    return changed


def not_numbers(types: set[type]) -> list[type]:
    """Types that are not those of numbers, by name."""
    return sorted((t for t in types if not issubclass(t, NUMBERS)), key=lambda t: t.__name__)


def name_of(X: Any, column: int) -> Any:
    """Name of a column; its number, where columns have no names."""
    return X.columns[column] if hasattr(X, "columns") else int(column)


def read_column(X: Any, column: int) -> Values:
    """Read a column; every different value is looked at once."""
    given = _safe_indexing(X, column, axis=1)
    kind = str(getattr(given, "dtype", "object")).lower()
    if hasattr(given, "replace_strict") and kind.startswith(("str", "cat", "enum")):  # polars
        different = given.unique()
        codes = given.replace_strict(different, np.arange(len(different))).to_numpy()
        values = different.to_list()
    elif hasattr(given, "factorize") and kind != "object":  # pandas
        codes, different = given.factorize(use_na_sentinel=False)
        values = np.asarray(different, dtype=object).tolist()
    else:
        values, codes = _factorised(np.asarray(given, dtype=object))
    strings = [None if is_missing(v) else _as_string(v) for v in values]
    return Values({type(v) for v in values if not is_missing(v)}, strings, codes)


def refuse_type(column: Any, kind: str) -> None:
    """Refuse a column whose values are of a type that is neither a number nor a string."""
    raise ValueError(
        f"Column {column!r} has values of type {kind}, which are neither numbers nor strings. "
        f"{ADVICE}{list_it(column)}"
    )


def list_it(column: Any) -> str:
    """Say how a column is taken as categories."""
    return f" If these are categories, list it: categorical_features=[{column!r}]."


def _without_na(objects: NDArray[Any]) -> NDArray[Any]:
    is_na = np.array([type(value).__name__ == "NAType" for value in objects.ravel().tolist()])
    if not is_na.any():
        return objects
    return np.where(is_na.reshape(objects.shape), np.nan, objects)


def _factorised(objects: NDArray[Any]) -> tuple[list[Any], NDArray[np.intp]]:
    """Different objects, and which of them every row has."""
    given = objects.tolist()
    numbers: defaultdict[Any, int] = defaultdict(count().__next__)
    try:
        codes = np.fromiter(map(numbers.__getitem__, given), dtype=np.intp, count=len(given))
        if all(isinstance(value, str) or is_missing(value) for value in numbers):
            return list(numbers), codes
    except TypeError:
        pass  # lists and the like cannot be looked up
    # Numbers of several types may be equal, but not their names: 1 and True.
    named: dict[tuple[type, str], int] = {}
    codes = np.array(
        [named.setdefault((type(v), str(v)), len(named)) for v in given], dtype=np.intp
    )
    _, firsts = np.unique(codes, return_index=True)
    return [given[row] for row in firsts], codes


def _as_string(value: Any) -> str:
    is_whole = isinstance(value, float | np.floating) and value.is_integer()
    return str(int(value) if is_whole else value)
