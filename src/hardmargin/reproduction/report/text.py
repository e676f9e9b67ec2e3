"""Tables for the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from hardmargin.reproduction.parts import Column
from hardmargin.reproduction.report.wording import (
    NO_DATA,
    claimed,
    compared,
    curve_table,
    head,
    mark,
    mark_of,
    our_number,
    paper_number,
    rows_and_gaps,
)
from hardmargin.reproduction.verdicts import Gathered

__all__ = ["text_part"]


def text_part(gathered: Gathered) -> str:
    """Write a part: its numbers beside the paper's, its claims and the verdict.

    Parameters
    ----------
    gathered : Gathered
        The part.

    Returns
    -------
    str
        Lines, each with its newline.
    """
    part = gathered.part
    lines = [f"{part.paper}, {part.title}   [{part.name}]"]
    if gathered.cells and part.columns:
        lines += _table(gathered)
    if gathered.curves:
        heads, rows = curve_table(gathered)
        lines += _aligned([heads, *rows], n_left=2)
    lines += [
        f"  {mark(finding.holds) or '?'} {claimed(claim, finding)}"
        for claim, finding in gathered.claims
    ]
    lines += [f"  {key}: {why}" for key, why in gathered.problems if not why.startswith("no data")]
    lines.append(f"{gathered.verdict.label.upper()}: {gathered.verdict.why}")
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _table(gathered: Gathered) -> list[str]:
    rows = [row for row, has_data in rows_and_gaps(gathered) if has_data]
    missing = [row for row, has_data in rows_and_gaps(gathered) if not has_data]
    width = max(len(row) for row in (*rows, *missing))
    lines = ["".ljust(width), "".ljust(width), *(row.ljust(width) for row in rows)]
    for column in gathered.part.columns if rows else ():
        block = _block(gathered, column, rows)
        lines = [f"{line}   {cells}" for line, cells in zip(lines, block, strict=True)]
    return [*(lines if rows else ()), *(f"{row:<{width}}   {NO_DATA}" for row in missing)]


def _block(gathered: Gathered, column: Column, rows: Sequence[str]) -> list[str]:
    """Write one column below its heading: our numbers, beside what they are compared with."""
    cells = [gathered.cell(row, column.name) for row in rows]
    parts = [["ours", *(our_number(cell, column) for cell in cells)]]
    if any(cell is not None and cell.paper is not None for cell in cells):
        parts.append(["paper", *(paper_number(cell) for cell in cells)])
        differences = [compared(cell, column) for cell in cells]
        if any(differences):
            parts.append([column.compare, *differences])
    marks = ["", *map(mark_of, cells)]
    lines = _aligned(list(zip(*parts, strict=True)), n_left=0)
    title = head(column)
    width = max(len(title), *map(len, lines))
    if any(marks):
        lines = [f"{line.rjust(width)} {sign:1}" for line, sign in zip(lines, marks, strict=True)]
        return [f"{title.rjust(width)}  ", *lines]
    return [title.rjust(width), *(line.rjust(width) for line in lines)]


def _aligned(table: Sequence[Sequence[str]], n_left: int) -> list[str]:
    widths = [max(len(line[i]) for line in table) for i in range(len(table[0]))]
    lines = []
    for line in table:
        pairs = enumerate(zip(line, widths, strict=True))
        lines.append("  ".join(t.ljust(w) if i < n_left else t.rjust(w) for i, (t, w) in pairs))
    return lines
