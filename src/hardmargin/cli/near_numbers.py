"""Text among numbers: where it is, and which option or change makes numbers of a column."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, NamedTuple

from hardmargin.estimators._base.disguise import DECORATED

if TYPE_CHECKING:
    import pandas as pd

#: A column of text that has this share of numbers was probably meant to have nothing else.
NEARLY_ALL = 0.9

#: Values of a column that are looked at first, to be done soon with columns of words.
FIRST_LOOK = 1_000

#: Decimal marks, each with the other one.
OTHER_MARK = {".": ",", ",": "."}

#: Identifiers in hexadecimal may look like it; pandas' `to_numeric` (2.3) ends the process there.
HUGE_EXPONENT = re.compile(r"[eE][+-]?\d{10}")


class OddText(NamedTuple):
    """The first text among numbers: its row, and what would help."""

    row: int
    text: str
    advice: str


def as_numbers(column: pd.Series, decimal: str) -> pd.Series:
    """Read text as numbers; text that is not a number becomes a missing value.

    Examples
    --------
    >>> import pandas as pd
    >>> as_numbers(pd.Series(["38,7", "12", "1.5"]), ",").tolist()
    [38.7, 12.0, nan]
    """
    import pandas as pd

    if decimal == ",":  # the marks are swapped: a point is no decimal mark then
        column = column.astype(str).str.translate(str.maketrans(",.", ".,"))
    if not pd.api.types.is_numeric_dtype(column):
        column = column.mask(column.astype(str).str.contains(HUGE_EXPONENT))
    numbers: pd.Series = pd.to_numeric(column, errors="coerce")
    if numbers.dtype.kind == "f" and not pd.api.types.is_numeric_dtype(column):
        found = numbers.notna()  # the float next to the text, as where the reader makes numbers
        numbers[found] = column[found].map(float)
    return numbers


def present_texts(column: pd.Series) -> pd.Series:
    """Return the values that are not missing; blank cells are, as in skrub."""
    texts = column.dropna().astype(str)
    return texts[texts.str.strip() != ""]


def has_decimal_commas(texts: pd.Series) -> bool:
    """Whether nearly all values are numbers, and their commas cannot divide thousands."""
    return (
        _has_digits(texts)
        and _reads_more(texts, ",", than=".")
        and not _may_divide_thousands(texts, ",")
    )


def odd_text(texts: pd.Series, decimal: str) -> OddText | None:
    """Find the first text in a column that has nearly only numbers; None if it is not such a one.

    Parameters
    ----------
    texts : Series
        What `present_texts` returns; the index counts the rows.
    decimal : str
        The mark in numbers.

    Examples
    --------
    >>> import pandas as pd
    >>> odd_text(pd.Series(["38,7", "40,2"]), ".").advice
    '--decimal , reads such numbers'
    >>> odd_text(pd.Series(["1"] * 20 + ["not known"]), ".").advice
    "--missing 'not known' makes it a missing value"
    """
    if not _has_digits(texts):
        return None
    is_number = as_numbers(texts, decimal).notna()
    is_decorated = texts.str.fullmatch(DECORATED)
    other = OTHER_MARK[decimal]
    if is_number.all():  # text of numbers alone is converted later
        return None
    if _reads_more(texts, other, than=decimal):
        odd = texts[~is_number & as_numbers(texts, other).notna()]
        advice = f"--decimal {other} reads such numbers"
        if _may_divide_thousands(texts, other):
            advice += f" if {other!r} is a decimal mark; if it divides thousands, remove it"
    elif _nearly_all(is_number | is_decorated):
        odd = texts[~is_number]
        advice = as_missing(odd.iloc[0])
        if is_decorated[odd.index[0]]:
            advice = "numbers have no currency, % or marks between thousands: remove these"
    else:
        return None
    return OddText(int(odd.index[0]), odd.iloc[0], advice)


def as_missing(text: str) -> str:
    """Name the option that makes text a missing value."""
    return f"--missing {shlex.quote(text)} makes it a missing value"


def _has_digits(texts: pd.Series) -> bool:
    """Whether at least half of some evenly spaced values have digits."""
    some = texts.iloc[:: max(len(texts) // FIRST_LOOK, 1)]
    return bool(some.str.contains(r"\d").mean() >= 0.5)


def _nearly_all(found: pd.Series) -> bool:
    return bool(found.mean() >= NEARLY_ALL)


def _reads_more(texts: pd.Series, mark: str, than: str) -> bool:
    """Whether nearly all values are numbers with one decimal mark, and fewer with the other."""
    is_number = as_numbers(texts, mark).notna()
    return _nearly_all(is_number) and bool(is_number.sum() > as_numbers(texts, than).notna().sum())


def _may_divide_thousands(texts: pd.Series, mark: str) -> bool:
    """Whether all numbers with the mark may be whole ones, as 38,700 but neither 0,700 nor 38,7."""
    numbers = texts[as_numbers(texts, mark).notna()]
    with_mark = numbers[numbers.str.contains(mark, regex=False)]
    whole = rf"\s*[+-]?[1-9]\d{{0,2}}{re.escape(mark)}\d{{3}}\s*"
    return bool(with_mark.str.fullmatch(whole).all())
