"""Categories: columns of names, such as colours, turned into columns of numbers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_array

from hardmargin.estimators._base.columns import (
    ADVICE,
    DECLARED,
    MAYBE_TEXT,
    WITHOUT_VALUE,
    Values,
    column_kinds,
    columns_of,
    is_data_frame,
    list_it,
    name_of,
    not_numbers,
    read_column,
    readable,
    refuse_lazy_frame,
    refuse_type,
)
from hardmargin.estimators._base.disguise import advice_on
from hardmargin.kernels import is_sparse
from hardmargin.scaling.columns import listed
from hardmargin.warn import warn_caller

#: Up to this many different strings have a column each, and so have as many declared categories.
#: Of more, only what they say about the classes is kept.
MAX_STRINGS = 64
MAX_CATEGORIES = 255

#: Values of as many words or more are text.
WORDS_OF_TEXT = 4

#: If more different texts than this share of the rows are there, they are hardly categories.
SHARE_OF_TEXTS = 0.5

#: The most categories of a column.
MOST_CATEGORIES = 100_000

#: If there are more different values than this share of the rows, they are no categories.
UNIQUE_SHARE = 0.95

#: A column of at least this many rows, none of which has a known category, raises a warning.
MANY_STRANGERS = 10


class Found(NamedTuple):
    """What a column of a part has: types and strings, and the number of rows that are not missing.

    Attributes
    ----------
    types : set of type
        Types of values that are not missing.
    strings : set
        Different values as strings; None for a missing one.
    n_present : int
        Number of values that are not missing.
    """

    types: set[type]
    strings: set[str | None]
    n_present: int


#: Advice to those who have followed it.
_PASSED = " (one that passes text through needs a smaller cardinality_threshold)"

#: What some columns have, by their numbers.
ColumnValues: TypeAlias = dict[int, Found]


@dataclass(frozen=True, eq=False)
class Categories:
    """How columns of categories turn into numbers: one column per category, if these are few.

    Categories are compared as strings: 10, 10.0 and "10" are the same. Two categories share one
    column of zeros and ones. A missing value is a category if ``fit`` saw one. A category that
    ``fit`` did not see is as far from one known category as from any other.

    Many categories turn into what they say about the classes (see ``effects.py``). Until that is
    learned, they are numbered.

    Attributes
    ----------
    columns : (n_categorical,) int array
        The columns of categories, in ascending order.
    n_columns : int
        Number of columns of the table.
    known : tuple of (n_known,) arrays of str and None
        Their categories, in ascending order; None stands for a missing value, and comes last.
    effects : tuple of (n_known + 1, n_outputs) arrays and None
        For columns of many categories, the numbers that stand for each; the last row is for those
        that ``fit`` did not see.
    outputs : tuple of str
        Names of the classes that the effects refer to, if there are more than two.
    """

    columns: NDArray[np.intp]
    n_columns: int
    known: tuple[NDArray[Any], ...]
    effects: tuple[NDArray[np.float64] | None, ...]
    outputs: tuple[str, ...] = ()

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Load them; in models of 0.2, an encoder of scikit-learn knows the categories."""
        if (encoder := state.pop("encoder", None)) is not None:
            state["known"] = tuple(encoder.categories_)
            state["effects"] = (None,) * len(state["known"])
        self.__dict__.update(state)

    @property
    def _widths(self) -> list[int]:
        """How many columns of numbers every column of categories has."""
        return [
            effects.shape[1] if effects is not None else 1 if len(known) == 2 else len(known)
            for known, effects in zip(self.known, self.effects, strict=True)
        ]

    @property
    def has_effects(self) -> bool:
        """Whether a column has many categories."""
        return any(effects is not None for effects in self.effects)

    @property
    def of_effects(self) -> NDArray[np.bool_]:
        """Which columns of numbers stand for columns of many categories."""
        many = [effects is not None for effects in self.effects]
        return np.isin(self.origins, self.columns[many])

    def with_effects(
        self, tables: Sequence[NDArray[np.float64]], outputs: Sequence[str]
    ) -> Categories:
        """Return the same with the effects of the columns of many categories."""
        new = iter(tables)
        effects = tuple(None if old is None else next(new) for old in self.effects)
        return replace(self, effects=effects, outputs=tuple(outputs))

    @property
    def origins(self) -> NDArray[np.intp]:
        """The column of the table that each column of numbers comes from."""
        widths = np.ones(self.n_columns, dtype=np.intp)
        widths[self.columns] = self._widths
        return np.repeat(np.arange(self.n_columns), widths)

    def transform(self, X: Any) -> NDArray[Any]:
        """Turn a table into numbers; missing numbers stay missing."""
        return self.read(X)[:]

    def read(self, X: Any) -> EncodedTable:
        """Read a table, whose rows turn into numbers when they are asked for."""
        X = X if hasattr(X, "columns") else np.asarray(X, dtype=object)
        numeric = np.setdiff1d(np.arange(self.n_columns), self.columns)
        numbers = None
        if len(numeric) > 0:
            numbers = check_array(
                _safe_indexing(X, numeric, axis=1),
                dtype=[np.float64, np.float32],
                ensure_all_finite=False,
            )
        found = []
        for j, known in zip(self.columns.tolist(), self.known, strict=True):
            values = read_column(X, j)
            _warn_of_strangers(X, j, values, known)
            numbers_of = {category: k for k, category in enumerate(known)}
            of_strings = np.array([numbers_of.get(s, -1) for s in values.strings], dtype=np.intp)
            found.append(of_strings[values.codes])
        return EncodedTable(self, numbers, found)

    def names(self, columns: Sequence[str]) -> list[str]:
        """Names of the columns of numbers, from those of the table."""
        pairs = zip(self.known, self.effects, strict=True)
        known = dict(zip(self.columns.tolist(), pairs, strict=True))
        names = []
        for j, column in enumerate(columns):
            if j not in known:
                names.append(column)
                continue
            categories, effects = known[j]
            labels = ["missing" if c is None else str(c) for c in categories][
                len(categories) == 2 :
            ]
            if effects is not None:
                labels = list(self.outputs)
            names += [f"{column}_{label}" for label in labels] or [column]
        return names


@dataclass(frozen=True, eq=False)
class EncodedTable:
    """A table that was read, whose rows turn into numbers when they are asked for.

    Attributes
    ----------
    categories : Categories
        How they do.
    numbers : (n, n_numeric) array or None
        The columns of numbers; None if there are none.
    found : list of (n,) int arrays
        For each column of categories, the known ones by their numbers; -1 for others.
    """

    categories: Categories
    numbers: NDArray[Any] | None
    found: list[NDArray[np.intp]]

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of columns of numbers."""
        return len(self), len(self.categories.origins)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the numbers."""
        return np.dtype(np.float64) if self.numbers is None else self.numbers.dtype

    @property
    def nbytes(self) -> int:
        """Bytes that all rows take as numbers."""
        n_rows, n_columns = self.shape
        return n_rows * n_columns * self.dtype.itemsize

    @property
    def are_numbers(self) -> NDArray[np.bool_]:
        """Which columns of numbers were columns of numbers in the table."""
        return ~np.isin(self.categories.origins, self.categories.columns)

    def __len__(self) -> int:
        return len(self.found[0])

    def __getitem__(self, rows: NDArray[Any] | slice) -> NDArray[Any]:
        """Return some rows as numbers, by their numbers, a mask of all rows or a slice."""
        categories, origins = self.categories, self.categories.origins
        found = [numbers[rows] for numbers in self.found]
        out = np.zeros((len(found[0]), len(origins)), dtype=self.dtype)
        if self.numbers is not None:
            out[:, self.are_numbers] = self.numbers[rows]
        parts = zip(categories.columns, categories.known, categories.effects, found, strict=True)
        for j, known, effects, own in parts:
            begin, end = np.searchsorted(origins, [j, j + 1])
            if effects is None:
                _indicate(out[:, begin:end], own, len(known))
            else:
                out[:, begin:end] = effects[own]  # the last row for those that are not known
        return out


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
    X = readable(X)
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
    chosen = set()
    if not isinstance(features, str):
        chosen = set(_chosen(features, len(names), names if is_frame else []))
    kinds = column_kinds(X, chosen) if is_frame else []
    declared = {j for j, kind in enumerate(kinds) if kind in DECLARED} | chosen
    maybe = {j for j, kind in enumerate(kinds) if kind in MAYBE_TEXT} - declared
    if not (columns := sorted(declared | maybe)):
        return None
    found: dict[int, set[str | None]] = {}
    effects: list[NDArray[np.float64] | None] = []
    parts = each(partial(_values, columns=columns))
    for j in columns:
        others = not_numbers(set().union(*(part[j].types for part in parts)))
        if j in maybe and not others:
            continue  # numbers, kept as objects
        if j in maybe and (strange := [kind for kind in others if not issubclass(kind, str)]):
            refuse_type(names[j], strange[0].__name__)
        found[j] = set().union(*(part[j].strings for part in parts))
        n_different = len(found[j] - {None})
        is_many = n_different > (MAX_STRINGS if j in maybe else MAX_CATEGORIES)
        effects.append(np.arange(len(found[j]) + 1.0)[:, None] if is_many else None)
        if is_many:
            n_present = sum(part[j].n_present for part in parts)
            is_text = n_different > SHARE_OF_TEXTS * n_present and are_texts(found[j])
            if is_text and (j in maybe or n_different > UNIQUE_SHARE * n_present):
                _speak_of_text(
                    names[j],
                    [names[k] for k in columns if k != j],
                    [name for k, name in enumerate(names) if k not in columns],
                    is_refused=n_different > UNIQUE_SHARE * n_present,
                )
            advice = "" if j in declared else advice_on(names[j], found[j])
            _check_many(names[j], n_different, n_present, advice, is_declared=j in declared)
            if advice:
                warn_caller(
                    f"Column {names[j]!r} has {n_different:,} different strings, which are read as "
                    f"categories. {advice}{list_it(names[j])}",
                    UserWarning,
                )
    if not found:
        return None
    if empty := [names[j] for j, values in found.items() if values <= {None}]:
        warn_caller(WITHOUT_VALUE.format(listed(empty)), UserWarning)
    known = tuple(_in_order(values) for values in found.values())
    return Categories(np.array(list(found)), len(names), known, tuple(effects))


def _values(X: Any, columns: Sequence[int]) -> ColumnValues:
    """Different values of some columns of a part."""
    X = X if is_data_frame(X) else np.asarray(X, dtype=object)
    return {j: _found(read_column(X, j)) for j in columns}


def _found(values: Values) -> Found:
    is_present = np.array([string is not None for string in values.strings], dtype=bool)
    n_present = int(is_present[values.codes].sum()) if len(values.codes) else 0
    return Found(values.types, set(values.strings), n_present)


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
        and (kind in DECLARED or (kind in MAYBE_TEXT and not_numbers(read_column(X, j).types)))
    ]


def _chosen(features: Any, n_columns: int, names: Sequence[Any]) -> list[int]:
    """Numbers of the columns that `categorical_features` lists, in ascending order."""
    given = np.asarray(features)
    if given.ndim != 1:
        raise ValueError(
            "categorical_features must be 'from_dtype', None, or a list of column names, column "
            f"numbers or booleans, got {features!r}."
        )
    if given.dtype == bool:
        if len(given) != n_columns:
            raise ValueError(
                f"categorical_features has {len(given)} booleans, but X has {n_columns} columns."
            )
        return np.flatnonzero(given).tolist()
    columns = set()
    for feature in features:
        if feature in names:
            columns.add(names.index(feature))
        elif isinstance(feature, int | np.integer) and -n_columns <= feature < n_columns:
            columns.add(int(feature) % n_columns)
        else:
            raise ValueError(f"categorical_features lists {feature!r}, which is not a column of X.")
    return sorted(columns)


def _in_order(values: set[str | None]) -> NDArray[Any]:
    """Categories in ascending order; None, a missing value, comes last."""
    ordered = [*sorted(value for value in values if value is not None), *values & {None}]
    return np.array(ordered, dtype=object)


def _indicate(indicators: NDArray[Any], found: NDArray[np.intp], n_known: int) -> None:
    """Set the columns of numbers, which are zero, that stand for one column of categories."""
    if n_known == 2:  # one column for both: 0, 1, and 1/2 for those that fit did not see
        indicators[:, 0] = np.array([0.0, 1.0, 0.5])[found]
        return
    rows = np.flatnonzero(found >= 0)
    indicators[rows, found[rows]] = 1.0


def _warn_of_strangers(X: Any, column: int, values: Values, known: NDArray[Any]) -> None:
    """Warn of a column in which every category is new: they may be spelled in another way."""
    strangers = [string for string in values.strings if string is not None]
    if not strangers or set(strangers) & set(known):
        return
    is_present = np.array([string is not None for string in values.strings])
    if is_present[values.codes].sum() >= MANY_STRANGERS:
        warn_caller(
            f"None of the values in column {name_of(X, column)!r} (for instance {strangers[0]!r}) "
            "was seen in fit; check that it is the same column with the same spelling.",
            UserWarning,
        )


def are_texts(values: Collection[str | None]) -> bool:
    """Whether most values have several words."""
    n_texts = sum(value is not None and value.count(" ") >= WORDS_OF_TEXT - 1 for value in values)
    return n_texts > len(values) / 2


def _speak_of_text(
    column: Any, strings: list[Any], numbers: list[Any], *, is_refused: bool
) -> None:
    """Say how a column of text becomes numbers beside the other columns."""
    steps = [f"(TfidfVectorizer(min_df=2), {column!r})"]
    if strings:
        steps.append(f"(OneHotEncoder(handle_unknown='ignore'), {strings!r})")
    if numbers:
        steps.append(f"(make_pipeline(SimpleImputer(), StandardScaler()), {numbers!r})")
    lines = "".join(f"    {step},\n" for step in steps)
    advice = (
        "Turn it into numbers in a pipeline, for instance with skrub, "
        f"make_pipeline(TableVectorizer(), ...){_PASSED}, or with scikit-learn, "
        f"make_pipeline(to_numbers, ...), where\n\nto_numbers = make_column_transformer(\n{lines})"
    )
    if is_refused:
        raise ValueError(f"Column {column!r} has text, another one in nearly every row. {advice}")
    warn_caller(
        f"Column {column!r} has text, another one in most rows, which is read as categories: its "
        f"words have no effect.{list_it(column)} {advice}",
        UserWarning,
    )


def _check_many(
    column: Any, n_different: int, n_present: int, advice: str, *, is_declared: bool
) -> None:
    """Refuse a column whose values are no categories: nearly all different, or too many."""
    advice = advice or (
        "If these are numbers of rows, or names, drop the column. If it is text, turn it into "
        f"numbers first, for instance with skrub: make_pipeline(TableVectorizer(), ...){_PASSED}."
    )
    what = "categories" if is_declared else "different strings"
    if n_different > UNIQUE_SHARE * n_present:
        raise ValueError(
            f"Column {column!r} has {n_different:,} {what} in {n_present:,} rows: nearly every row "
            f"has its own, so that they say nothing about other rows. {advice}"
        )
    if n_different > MOST_CATEGORIES:
        raise ValueError(
            f"Column {column!r} has {n_different:,} {what}, more than {MOST_CATEGORIES:,}. Merge "
            f"rare ones, or drop the column. {ADVICE}"
        )
