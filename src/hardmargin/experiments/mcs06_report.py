"""The paper's numbers of MCS-06, and the tables that stand ours beside them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

__all__ = ["BASES", "CSV_HEAD", "FINALS", "PARTS", "Cell", "csv_row", "print_parts", "progress"]

COLUMNS = ("optdigits", "satimage", "pendigits", "letters", "mnist", "usps", "face")
BASES = {
    "none": "no base",
    "exact": "orthogonal SVM",
    "core": "orthogonal CVM",
    "bagged": "bagged SVM",
}
FINALS = {"svm": "SVM", "mlp": "ANN", "cvm": "CVM", "vote": "voting"}

Columns: TypeAlias = tuple[float | None, ...]


def _four(*errors: float) -> Columns:
    return *errors, None, None, None


# Base and second classifier: machines of each class: test errors in the order of COLUMNS.
TABLE_2: dict[tuple[str, str], dict[int, Columns]] = {
    ("none", "svm"): {0: (3.34, 10.4, 3.26, 9.05, 4.88, None, None)},
    ("none", "mlp"): {0: (5.63, 12.6, 4.81, 29.05, 9.61, 0.88, 2.6)},
    ("exact", "svm"): {
        1: _four(3.07, 10.55, 2.18, 7.15),
        3: _four(3.07, 11.45, 2.15, 6.05),
        5: _four(3.07, 10.35, 2.09, 5.98),
    },
    ("exact", "mlp"): {
        1: _four(4.35, 11.05, 2.81, 19.8),
        3: _four(2.91, 10.35, 2.2, 17.98),
        5: _four(3.52, 11.3, 2.26, 17.35),
    },
    ("exact", "cvm"): {
        1: _four(3.07, 10.55, 2.18, 7.1),
        3: _four(3.07, 10.45, 2.12, 6.05),
        5: _four(3.07, 10.35, 2.09, 5.78),
    },
    ("core", "svm"): {
        1: (2.84, 10.25, 2.29, 5.15, 5.46, None, None),
        3: (2.9, 10.5, 2.26, 5.4, 4.27, None, None),
        5: (2.95, 10.7, 2.21, 5.65, 4.08, None, None),
    },
    ("core", "mlp"): {
        1: (3.73, 10.25, 2.78, 19.03, 7.01, 0.7, 1.72),
        3: (2.23, 10.7, 2.15, 17.55, 6.72, 0.67, 1.61),
        5: (2.64, 10.05, 1.92, 17.33, 6.66, 0.66, 1.66),
    },
    ("core", "cvm"): {
        1: (2.84, 10.25, 2.29, 5.18, 5.46, 0.69, 1.9),
        3: (2.84, 10.5, 2.26, 5.43, 4.28, 0.67, 1.66),
        5: (2.95, 10.7, 2.21, 5.7, 4.09, 0.7, 1.65),
    },
    ("bagged", "svm"): {
        1: _four(6.35, 16.0, 3.98, 29.6),
        3: _four(6.07, 14.8, 3.61, 25.8),
        5: _four(5.63, 14.85, 3.72, 24.83),
    },
    ("bagged", "mlp"): {
        1: _four(6.57, 16.04, 3.34, 30.22),
        3: _four(5.75, 15.22, 3.51, 26.36),
        5: _four(4.8, 15.19, 3.19, 25.21),
    },
    ("bagged", "cvm"): {
        1: _four(6.4, 15.75, 3.66, 29.7),
        3: _four(5.79, 14.6, 3.44, 25.95),
        5: _four(5.51, 14.65, 4.61, 25.25),
    },
    ("bagged", "vote"): {
        1: _four(7.8, 20.5, 4.18, 32.2),
        3: _four(6.52, 19.3, 3.75, 28.15),
        5: _four(5.29, 18.45, 3.35, 26.8),
    },
}
# Base: machines of each class: seconds.
TABLE_3: dict[str, dict[int, Columns]] = {
    "exact": {
        1: _four(84, 121, 127, 1_911),
        3: _four(476, 421, 570, 9_646),
        5: _four(1_495, 900, 1_674, 20_860),
    },
    "core": {
        1: (41, 23, 20, 92, 1_610, 2_359, 105),
        3: (181, 78, 95, 301, 4_928, 6_585, 337),
        5: (332, 136, 174, 512, 8_179, 10_630, 556),
    },
}

# Orthogonal CVM with an SVM above it: machines of each class: least and greatest error that holds.
BARS: dict[str, dict[int, tuple[float, float]]] = {
    "optdigits": {1: (2.49, 3.29), 3: (2.44, 3.24)},
    "satimage": {1: (9.90, 10.70), 3: (9.55, 10.35)},
    "pendigits": {1: (1.92, 2.72), 3: (1.77, 2.57)},
    "letters": {1: (0.0, 6.3)},
}

PARTS = {
    "Table 2": "test error in %",
    "Table 3": "processor seconds of the training of the base machines",
    "Figure 1": "test error in % with a network above, by the number of machines",
    "Figure 2": "test error in % with an SVM above, by the noise on the features",
    "Figure 3": "rows with a coefficient, mean of the base machines (the paper has a plot only)",
    "Figure 3, training": "kernel values evaluated in training, mean of the base machines",
}
BAR_NOTE = """\
orthogonal CVM below an SVM, within 0.4 points of optdigits 2.89
(Nc) and 2.84 (3Nc), satimage 10.30 and 9.95, pendigits 2.32 and 2.17; letters at most 6.3 (Nc)"""
CSV_HEAD = ("part", "data_set", "base", "final", "n_per_class", "sigma", "ours", "paper")


@dataclass(frozen=True)
class Cell:
    """One measured number, and the paper's.

    Parameters
    ----------
    part : str
        One of `PARTS`.
    data_set, base, final : str
        What was measured; `final` is empty where there is no second classifier.
    size : int
        Base machines of each class; 0 is none.
    ours : float or None
        The number; None if it was cut.
    sigma : float
        The noise on the features.
    """

    part: str
    data_set: str
    base: str
    final: str
    size: int
    ours: float | None
    sigma: float = 0.0

    @property
    def paper(self) -> float | None:
        """The paper's number; None if it has none.

        Examples
        --------
        >>> Cell("Table 3", "letters", "core", "", 5, 70.0).paper
        512
        """
        numbers: dict[int, Columns] = {}
        if self.part == "Table 2":
            numbers = TABLE_2.get((self.base, self.final), {})
        elif self.part == "Table 3":
            numbers = TABLE_3.get(self.base, {})
        if self.data_set not in COLUMNS or self.size not in numbers:
            return None
        return numbers[self.size][COLUMNS.index(self.data_set)]

    @property
    def holds(self) -> bool | None:
        """Whether the number is within its bar; None if it has no bar.

        Examples
        --------
        >>> Cell("Table 2", "letters", "core", "svm", 1, 6.31).holds
        False
        """
        if (self.part, self.base, self.final) != ("Table 2", "core", "svm"):
            return None
        bar = BARS.get(self.data_set, {}).get(self.size)
        if bar is None:
            return None
        # The slack is for the rounding of the measured number.
        return self.ours is not None and bar[0] - 1e-9 <= self.ours <= bar[1] + 1e-9


def print_parts(parts: Iterable[str], cells: Sequence[Cell], missing: Sequence[str]) -> None:
    """Print tables and figures.

    Parameters
    ----------
    parts : iterable of str
        Which of `PARTS`.
    cells : sequence of Cell
        What was measured.
    missing : sequence of str
        Data sets that are not among the data.

    Examples
    --------
    >>> print_parts(["Table 3"], [Cell("Table 3", "letters", "core", "", 5, 70.0)], ["face"])
    <BLANKLINE>
    Table 3: processor seconds of the training of the base machines
                                                 5Nc
                                     ours      paper
    letters   orthogonal CVM        70.00        512
    face      data not available
    """
    for part in parts:
        print(f"\n{part}: {PARTS[part]}")
        its = [cell for cell in cells if cell.part == part]
        if part == "Table 2":
            lines = _lines_2(its)
        else:
            lines = _lines_curve(its) if part in ("Figure 1", "Figure 2") else _lines_3(its)
        for line in lines if its else ():
            print(line.rstrip())
        for name in missing:
            print(f"{name:<10}data not available")
        if part == "Table 2":
            verdicts = [cell.holds for cell in its if cell.holds is not None]
            print(f"{sum(verdicts)} of {len(verdicts)} bars hold: {BAR_NOTE}")


def _lines_2(cells: Sequence[Cell]) -> Iterator[str]:
    sizes = _in_order(cell.size or 1 for cell in cells)
    yield f"{'':<34}" + "".join(_machines(size).center(24) for size in sizes)
    yield f"{'':<34}" + "    ours   paper differs" * len(sizes) + "   holds"
    for (name, base, final), its in _grouped(cells).items():
        line = f"{name:<10}{BASES[base]:<16}{FINALS[final]:<8}"
        for size in sizes:
            cell = its.get((size, 0.0))
            if cell is None and size == sizes[0]:
                cell = its.get((0, 0.0))
            line += _compared(cell)
        verdicts = {cell.size: cell.holds for cell in its.values()}
        failed = [_machines(size) for size, verdict in verdicts.items() if verdict is False]
        verdict = "yes" if True in verdicts.values() else "no bar"
        yield f"{line}   {'no: ' + ', '.join(failed) if failed else verdict}"


def _compared(cell: Cell | None) -> str:
    if cell is None:
        return f"{'-':>8}{'-':>8}{'-':>8}"
    ours, paper = cell.ours, cell.paper
    differs = None if ours is None or paper is None else ours - paper
    return f"{_number(ours, '.2f'):>8}{_cell(paper, '.2f'):>8}{_cell(differs, '+.2f'):>8}"


def _lines_3(cells: Sequence[Cell]) -> Iterator[str]:
    """Write numbers by size, beside the paper's if it has them."""
    sizes = _in_order(cell.size for cell in cells)
    paper = any(cell.part == "Table 3" for cell in cells)
    width = 22 if paper else 14
    yield f"{'':<26}" + "".join(_machines(size).rjust(width) for size in sizes)
    if paper:
        yield f"{'':<26}" + "       ours      paper" * len(sizes)
    for (name, base, _), its in _grouped(cells).items():
        line = f"{name:<10}{BASES[base]:<16}"
        for size in sizes:
            cell = its.get((size, 0.0))
            ours = "-" if cell is None else _number(cell.ours, ",.2f" if paper else ",.0f")
            line += ours.rjust(11 if paper else width)
            if paper:
                line += _cell(None if cell is None else cell.paper, ",g").rjust(11)
        yield line


def _lines_curve(cells: Sequence[Cell]) -> Iterator[str]:
    """Write numbers by size (Figure 1) or by noise (Figure 2)."""
    by_noise = any(cell.part == "Figure 2" for cell in cells)
    points = _in_order(cell.sigma if by_noise else cell.size for cell in cells)
    heads = (f"{point:g}" if by_noise else _machines(int(point)) for point in points)
    yield f"{'':<26}" + "".join(head.rjust(9) for head in heads)
    for (name, base, _), its in _grouped(cells).items():
        found = {cell.sigma if by_noise else cell.size: cell.ours for cell in its.values()}
        numbers = (_number(found[point], ".2f").rjust(9) for point in points)
        yield f"{name:<10}{BASES[base]:<16}{''.join(numbers)}"


def _grouped(cells: Sequence[Cell]) -> dict[tuple[str, str, str], dict[tuple[int, float], Cell]]:
    """Put the cells of one line together, by size and noise."""
    lines: dict[tuple[str, str, str], dict[tuple[int, float], Cell]] = {}
    for cell in cells:
        line = lines.setdefault((cell.data_set, cell.base, cell.final), {})
        line[cell.size, cell.sigma] = cell
    return lines


def _in_order(values: Iterable[float]) -> list[Any]:
    return sorted(set(values))


def _machines(size: int) -> str:
    return "Nc" if size == 1 else f"{size}Nc"


def _number(value: float | None, form: str) -> str:
    """Write a number of ours; one that was cut is more than can be told."""
    return ">" if value is None else format(value, form)


def _cell(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


def progress(cell: Cell) -> str:
    """Say in a line what was measured.

    Parameters
    ----------
    cell : Cell
        The number.

    Returns
    -------
    str

    Examples
    --------
    >>> progress(Cell("Table 2", "letters", "core", "svm", 3, 5.5))
    'letters, Table 2, orthogonal CVM, 3Nc, SVM: 5.50 (paper 5.4)'
    """
    what = [cell.data_set, cell.part, BASES[cell.base]]
    if cell.size:
        what.append(_machines(cell.size))
    if cell.final:
        what.append(FINALS[cell.final])
    if cell.part == "Figure 2":
        what.append(f"sigma {cell.sigma:g}")
    paper = "" if cell.paper is None else f" (paper {cell.paper:,g})"
    return f"{', '.join(what)}: {_number(cell.ours, ',.2f')}{paper}"


def csv_row(cell: Cell) -> list[str]:
    """Write a number in the columns of `CSV_HEAD`.

    Parameters
    ----------
    cell : Cell
        The number.

    Returns
    -------
    list of str

    Examples
    --------
    >>> csv_row(Cell("Table 3", "letters", "exact", "", 5, None))
    ['Table 3', 'letters', 'exact', '', '5', '0', '>', '20860']
    """
    ours = ">" if cell.ours is None else f"{cell.ours:.10g}"
    paper = "" if cell.paper is None else f"{cell.paper:g}"
    what = (cell.part, cell.data_set, cell.base, cell.final)
    return [*what, str(cell.size), f"{cell.sigma:g}", ours, paper]
