"""The numbers of a part as CSV files."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

from hardmargin.reproduction.parts import Cell
from hardmargin.reproduction.verdicts import Gathered

__all__ = ["write_csv"]

CELL_HEAD = ("row", "column", "ours", "spread", "n_runs", "paper", "difference", "holds", "status")


def write_csv(gathered: Gathered, folder: Path) -> list[str]:
    """Write ``NAME.csv`` with the cells of a part, and ``NAME-curves.csv`` with its curves.

    Parameters
    ----------
    gathered : Gathered
        The part.
    folder : Path
        Where to write.

    Returns
    -------
    list of str
        Names of the files written.
    """
    written = []
    name = gathered.part.name
    if gathered.cells:
        rows = [
            (
                *(cell.row, cell.column, _number(cell.ours), _number(cell.spread), cell.n_runs),
                *(_number(cell.paper), _number(cell.difference), _flag(cell), cell.status),
            )
            for cell in gathered.cells
        ]
        written.append(_write(folder / f"{name}.csv", CELL_HEAD, rows))
    if gathered.curves:
        points = [
            (curve.panel, curve.name, _number(x), _number(y))
            for curve in gathered.curves
            for x, y in zip(curve.x, curve.y, strict=True)
        ]
        heads = ("panel", "curve", "x", "y")
        written.append(_write(folder / f"{name}-curves.csv", heads, points))
    return written


def _write(path: Path, heads: tuple[str, ...], rows: Sequence[Sequence[object]]) -> str:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(heads)
        writer.writerows(rows)
    return path.name


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.10g}"


def _flag(cell: Cell) -> str:
    if cell.is_better:
        return "better"
    return "" if cell.holds is None else ("yes" if cell.holds else "no")
