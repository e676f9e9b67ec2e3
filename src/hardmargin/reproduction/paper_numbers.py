"""The numbers that the papers print, shipped with the package as CSV files."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from importlib.resources import files

__all__ = ["read_numbers", "read_rows"]


def read_rows(file: str) -> list[dict[str, str]]:
    """Read one file as it is.

    Parameters
    ----------
    file : str
        Its name without the ending, such as ``"ijcai07_table2"``.

    Returns
    -------
    list of dict
        One per line, by column name; a number that the paper does not give is empty.

    Examples
    --------
    >>> read_rows("ijcai07_table2")[0]["ensemble"]
    '28.2'
    """
    path = files("hardmargin.reproduction") / "numbers" / f"{file}.csv"
    return list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))


def read_numbers(
    file: str, row: str | Sequence[str], columns: Mapping[str, str]
) -> dict[tuple[str, str], float]:
    """Read the numbers of a table by row and column, as `Part.numbers` wants them.

    Parameters
    ----------
    file : str
        Its name without the ending.
    row : str or sequence of str
        The column of the file that names the rows; several are joined by commas.
    columns : mapping
        Names of columns in the file, and in the part.

    Returns
    -------
    dict
        The numbers that the paper gives, by (row, column).

    Examples
    --------
    >>> numbers = read_numbers("ijcai07_table3", "data_set", {"ensemble_seconds": "seconds"})
    >>> numbers["astro", "seconds"]
    9.5
    """
    names = [row] if isinstance(row, str) else list(row)
    return {
        (", ".join(line[name] for name in names), column): float(line[source])
        for line in read_rows(file)
        for source, column in columns.items()
        if line[source]
    }
