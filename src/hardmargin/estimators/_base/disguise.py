"""Numbers and dates that are kept as strings."""

from __future__ import annotations

import re
from collections.abc import Collection
from itertools import islice
from typing import Any

#: Numbers as people write them: with a currency, a percent sign or marks between thousands.
DECORATED = re.compile(
    r"\s*[+-]?\s*[$€£¥]?\s*[+-]?(?:\d+|\d{1,3}(?:[.,'\u2019\s]\d{3})+)(?:[.,]\d+)?\s*[$€£¥%]?\s*"
)

#: Numbers with decimal commas, and those among them that cannot divide thousands instead.
WITH_COMMA = re.compile(r"\s*[+-]?\d+(?:,\d+)?\s*")
DECIMAL_COMMA = re.compile(r"\s*[+-]?(?:\d+,(?!\d{3}\s*$)|0,)\d+\s*")

#: Dates as 2024-12-31 or 31.12.2024, perhaps with a time.
DATE = re.compile(r"\s*(?:\d{4}([-/.])\d{1,2}\1\d{1,2}|\d{1,2}([-/.])\d{1,2}\2\d{4})(?:[T\s].*)?")

#: Strings of digits alone may be codes, which are categories.
CODE = re.compile(r"\s*\d+\s*")

#: So many strings are looked at, and so large a share of them must be of one kind.
FIRST_LOOK, NEARLY_ALL = 1_000, 0.9


def advice_on(column: Any, values: Collection[str | None]) -> str:
    """Say what turns the different strings of a column into numbers; nothing if they are others.

    Examples
    --------
    >>> advice_on("day", ["2024-12-30", "2024-12-31", None])[:34]
    'They are dates kept as strings: sk'
    >>> advice_on("size", ["S", "L", "12"])
    ''
    >>> advice_on("eu", ["38,7", "40,25", "12"])[34:]
    "pd.to_numeric(X['eu'].str.replace(',', '.')) reads them."
    """
    some = list(islice((value for value in values if value is not None), FIRST_LOOK))

    def are(pattern: re.Pattern[str]) -> bool:
        return sum(pattern.fullmatch(value) is not None for value in some) >= NEARLY_ALL * len(some)

    if are(DATE):
        return (
            "They are dates kept as strings: skrub turns them into numbers, "
            "make_pipeline(TableVectorizer(), ...)."
        )
    if are(WITH_COMMA) and any(DECIMAL_COMMA.fullmatch(value) for value in some):
        return (
            "They are numbers kept as strings: "
            f"pd.to_numeric(X[{column!r}].str.replace(',', '.')) reads them."
        )
    if are(DECORATED) and not are(CODE):
        if others := sorted(value for value in values if value and not _is_number(value)):
            more = f" and {len(others) - 1:,} more" if len(others) > 1 else ""
            return (
                f"They are numbers kept as strings, but for {others[0]!r}{more}: correct this, or "
                f"pd.to_numeric(X[{column!r}], errors='coerce') makes a missing value of it, and "
                "of numbers with currency, % and marks between thousands."
            )
        return (
            f"They are numbers kept as strings: pd.to_numeric(X[{column!r}]) reads those without "
            "currency, % and marks between thousands."
        )
    return ""


def _is_number(text: str) -> bool:
    """Whether a string is a number, perhaps as people write it."""
    try:
        float(text)
    except ValueError:
        return DECORATED.fullmatch(text) is not None
    return True
