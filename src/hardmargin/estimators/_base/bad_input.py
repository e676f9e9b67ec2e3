"""What is wrong with rows, in words: the column, the row, the value, and what to do."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from hardmargin.estimators._base.categories import Categories, columns_without_numbers
from hardmargin.estimators._base.columns import columns_of, is_data_frame, is_missing
from hardmargin.kernels import is_sparse


class Place(NamedTuple):
    """Where a table has a value that cannot be used.

    Attributes
    ----------
    column : object
        Name of the column, or its number if it has none.
    row : int
        The first such row of that column, from 0.
    value : object
        What is there.
    """

    column: Any
    row: int
    value: Any

    def __str__(self) -> str:
        return f"{self.value!r} in row {self.row:,} of column {self.column!r}"


def explain(
    error: TypeError | ValueError, X: Any, categories: Categories | None, *, fills: bool
) -> None:
    """Add to an error of scikit-learn where the value is, and what to do.

    Parameters
    ----------
    error : TypeError or ValueError
        What validation raised. It gets another message.
    X : table
        What was to be read.
    categories : Categories or None
        Columns that need not be numbers.
    fills : bool
        Whether the estimator takes missing values and categories.
    """
    message, skipped = str(error), columns_of(categories)
    if "feature names should match" in message:
        if "same order" in message:
            error.add_note("X[model.feature_names_in_] has the columns in the order of fit.")
    elif "Input X contains infinity" in message:
        if place := _find(X, _is_infinite, skipped):
            instead = "NaN, a missing value" if fills and not is_sparse(X) else "a large number"
            _say(error, f"The first is {place}. Correct it, or replace it by {instead}.")
    elif "Input X contains NaN" in message:
        place = _find(X, _is_nan, skipped)
        _say(error, f"The first is {place}." if place else "")
        if fills and is_sparse(X):  # what scikit-learn says next is of estimators that take none
            first, *_ = str(error).split("\n")
            error.args = (
                f"{first} Missing values are taken in dense rows, not in sparse rows: pass "
                "X.toarray(), or fill them, for instance with SimpleImputer().",
            )
            return
        error.add_note(
            "Missing values can be filled in a pipeline: "
            "make_pipeline(SimpleImputer(), StandardScaler(), ...)."
        )
    elif strange := columns_without_numbers(X, categories) if fills else []:
        _say_what_is_no_number(error, X, skipped, fills=fills)
        error.add_note(
            f"Not all values are numbers in {', '.join(map(repr, strange))}: these columns had "
            "numbers in fit, or categorical_features=None says that there are no categories."
        )
    elif "could not convert string" in message or "float() argument" in message:
        _say_what_is_no_number(error, X, skipped, fills=fills)
        error.add_note(
            "Columns of text or categories can be encoded in a pipeline, for instance with skrub: "
            "make_pipeline(TableVectorizer(), ...). EnsembleSVC and GreedySVC take categories as "
            "they are in data frames, or in the columns that categorical_features lists."
        )


def _say_what_is_no_number(
    error: Exception, X: Any, skipped: Collection[int], *, fills: bool
) -> None:
    place = _find(X, _is_no_number, skipped)
    if place is None:
        return
    advice = "Turn the column into numbers, or correct the value."
    if str(place.value).lower() in ("true", "false") and _has_two_values(X, place.column):
        column = f"X[{place.column!r}]" if is_data_frame(X) else f"X[:, {place.column!r}]"
        advice = f"{column} == {place.value!r} is a column of booleans, which are numbers."
    elif fills and not is_data_frame(X):
        strange = [
            int(column)
            for column, _, values in _columns(X)
            if column not in skipped and any(map(_is_no_number, values.tolist()))
        ]
        advice = (
            "If the values are categories, pass a data frame, whose columns have types, or list "
            f"the columns: categorical_features={strange}. Otherwise turn them into numbers."
        )
    _say(error, f"This is {place}, which is not a number. {advice}")


def _say(error: Exception, more: str) -> None:
    """Put a sentence behind the first line of an error."""
    first, *others = str(error).split("\n")
    first = first if first.endswith(".") else f"{first}."
    error.args = ("\n".join([f"{first} {more}".strip(), *others]),)


def _find(X: Any, is_bad: Callable[[Any], bool], skipped: Collection[int]) -> Place | None:
    """Find the first value of the first column that has one of a kind."""
    for column, name, values in _columns(X):
        if column in skipped:
            continue
        if values.dtype.kind in "biuf":
            known = np.flatnonzero(~np.isfinite(values.astype(np.float64, copy=False)))
        else:
            known = np.arange(len(values))
        for row in known.tolist():
            if is_bad(values[row]):
                value = values[row]
                return Place(name, row, value.item() if isinstance(value, np.generic) else value)
    return None


def _columns(X: Any) -> Iterator[tuple[int, Any, NDArray[Any]]]:
    """Go through the columns of a table: number, name and values."""
    if is_sparse(X):
        by_column = X.tocsc()
        for j in np.unique(X.tocoo().col[~np.isfinite(X.tocoo().data)]).tolist():
            yield j, j, by_column[:, [j]].toarray().ravel()
        return
    if is_data_frame(X):
        for j, name in enumerate(X.columns):
            yield j, name, np.asarray(_safe_indexing(X, j, axis=1))
        return
    array = X if isinstance(X, np.ndarray) else np.asarray(X, dtype=object)
    if array.ndim == 2:
        for j in range(array.shape[1]):
            yield j, j, array[:, j]


def _has_two_values(X: Any, column: Any) -> bool:
    """Whether a column, given by its name or number, has two different values at most."""
    values = next(values.tolist() for _, name, values in _columns(X) if name == column)
    return len({str(value).lower() for value in values if not is_missing(value)}) <= 2


def _number(value: Any) -> float | None:
    """Return a value as a number: NaN where it is missing, None where it is none."""
    try:
        return math.nan if is_missing(value) else float(value)
    except (TypeError, ValueError):
        return None
    except OverflowError:  # a whole number of hundreds of digits
        return math.inf


def _is_infinite(value: Any) -> bool:
    number = _number(value)
    return number is not None and math.isinf(number)


def _is_nan(value: Any) -> bool:
    number = _number(value)
    return number is not None and math.isnan(number)


def _is_no_number(value: Any) -> bool:
    return _number(value) is None
