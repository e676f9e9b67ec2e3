"""How numbers are written, the same in all reports."""

from __future__ import annotations

import bisect
from collections.abc import Sequence

from hardmargin.reproduction.parts import Cell, Claim, Column, Curve, Finding, data_set_of
from hardmargin.reproduction.verdicts import Gathered

__all__ = [
    "NO_DATA",
    "claimed",
    "compared",
    "curve_table",
    "head",
    "mark",
    "mark_of",
    "our_number",
    "paper_number",
    "rows_and_gaps",
    "skipped_line",
]

STATES = {"cut": ">", "no data": "no data", "failed": "failed", "missing": "-"}
NO_DATA = "data not available"


def head(column: Column) -> str:
    """Write the heading of a column.

    Parameters
    ----------
    column : Column
        Which.

    Returns
    -------
    str

    Examples
    --------
    >>> head(Column("error", "%"))
    'error, %'
    """
    return f"{column.name}, {column.unit}" if column.unit else column.name


def our_number(cell: Cell | None, column: Column) -> str:
    """Write our number, with its spread, or why there is none.

    Parameters
    ----------
    cell : Cell or None
        The number.
    column : Column
        Its format.

    Returns
    -------
    str

    Examples
    --------
    >>> our_number(Cell("t", "a", "error", 23.456, 1.5), Column("error"))
    '23.46 ±1.50'
    >>> our_number(Cell("t", "a", "error", status="cut"), Column("error"))
    '>'
    """
    if cell is None:
        return ""
    if cell.status != "ok" or cell.ours is None:
        return STATES.get(cell.status, "-")
    if cell.text:
        return cell.text
    spread = f" ±{cell.spread:{column.form}}" if cell.spread else ""
    return f"{cell.ours:{column.form}}{spread}"


def paper_number(cell: Cell | None) -> str:
    """Write the paper's number with the digits that it gives.

    Parameters
    ----------
    cell : Cell or None
        The number.

    Returns
    -------
    str

    Examples
    --------
    >>> paper_number(Cell("t", "a", "support vectors", paper=103658.0))
    '103,658'
    """
    return "" if cell is None or cell.paper is None else f"{cell.paper:,.10g}"


def compared(cell: Cell | None, column: Column) -> str:
    """Write the difference, with its sign, or the ratio.

    Parameters
    ----------
    cell : Cell or None
        The number.
    column : Column
        Which of the two.

    Returns
    -------
    str

    Examples
    --------
    >>> compared(Cell("t", "a", "error", 2.5, paper=2.0), Column("error"))
    '+0.50'
    >>> compared(Cell("t", "a", "s", 0.5, paper=2.0), Column("s", compare="ratio"))
    '0.25x'
    """
    if cell is None or cell.difference is None or column.compare == "none":
        return ""
    if column.compare == "ratio":
        return f"{cell.ours / cell.paper:.2g}x" if cell.ours and cell.paper else ""
    return f"{cell.difference:+{column.form}}"


def mark(holds: bool | None, is_better: bool = False) -> str:
    """Write a verdict on one number or claim.

    Parameters
    ----------
    holds : bool or None
        The verdict; None if there is none.
    is_better : bool, default=False
        Whether it does not hold because it is better.

    Returns
    -------
    str

    Examples
    --------
    >>> mark(True), mark(False), mark(False, is_better=True), mark(None)
    ('✓', '✗', '↓', '')
    """
    if is_better:
        return "↓"
    return "" if holds is None else ("✓" if holds else "✗")


def mark_of(cell: Cell | None) -> str:
    """Write the verdict on a number.

    Parameters
    ----------
    cell : Cell or None
        The number.

    Returns
    -------
    str
    """
    return "" if cell is None else mark(cell.holds, cell.is_better)


def claimed(claim: Claim, finding: Finding) -> str:
    """Write a claim, and where it was checked.

    Parameters
    ----------
    claim : Claim
        What the paper says.
    finding : Finding
        What our numbers say.

    Returns
    -------
    str

    Examples
    --------
    >>> claimed(Claim("It is fast.", bool), Finding(True, "3 of 4 sets"))
    'It is fast. (3 of 4 sets)'
    """
    return f"{claim.text} ({finding.detail})" if finding.detail else claim.text


def skipped_line(gathered: Sequence[Gathered]) -> str:
    """Say once what a quick run skipped.

    Parameters
    ----------
    gathered : sequence of Gathered
        All parts that were asked for.

    Returns
    -------
    str
        Empty if nothing was.
    """
    names = [its.part.name for its in gathered if its.verdict.label == "skipped"]
    if not names:
        return ""
    return f"Skipped, as their data do not come with libraries: {', '.join(names)}."


def rows_and_gaps(gathered: Gathered) -> list[tuple[str, bool]]:
    """Name the rows of a table; rows without data are merged into one per data set.

    Parameters
    ----------
    gathered : Gathered
        The part.

    Returns
    -------
    list of (str, bool)
        Names, and whether there are data.
    """
    known = {cell.row for cell in gathered.cells if cell.status != "no data"}
    found = ((row, True) if row in known else (data_set_of(row), False) for row in gathered.rows)
    return list(dict.fromkeys(found))


def curve_table(gathered: Gathered) -> tuple[list[str], list[list[str]]]:
    """Give the numbers of a figure at the places that its axes name.

    Parameters
    ----------
    gathered : Gathered
        The part.

    Returns
    -------
    heads : list of str
        Headings of the columns.
    rows : list of list of str
        One per curve.
    """
    axes = gathered.part.axes
    every = sorted({x for curve in gathered.curves for x in curve.x})
    shown = list(axes.shown) if axes is not None and axes.shown else every
    heads = ["", "", *(f"{x:,g}" for x in shown), "end", ""]
    rows = []
    for curve in gathered.curves:
        numbers = [_at(curve, x) for x in shown]
        end = f"{curve.y[-1]:.4g} at {curve.x[-1]:,g}" if curve.x else "-"
        rows.append([curve.panel, curve.name, *numbers, end, curve.note])
    return heads, rows


def _at(curve: Curve, x: float) -> str:
    at = bisect.bisect_left(curve.x, x)
    return f"{curve.y[at]:.4g}" if at < len(curve.x) and curve.x[at] == x else "-"
