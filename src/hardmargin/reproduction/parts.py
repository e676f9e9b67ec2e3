"""What a reproduction is made of: parts (tables, figures), tasks, cells, curves and claims.

A `Part` is one table or figure of a paper. Its `Task` objects do the work: each trains on one data
set, alone in a process, and yields `Cell` and `Curve` objects, which name their part; so one
training can serve several parts. The paper's numbers and the rule by which ours are judged belong
to the part. To add one, write in the folder of the paper:

    def _measure(name: str, settings: Settings) -> Iterator[Cell]:
        X, y, X_test, y_test = folder_set(name, settings).split()     # NoDataError if it is missing
        error = 100 * np.mean(SVC().fit(X, y).predict(X_test) != y_test)
        yield Cell("tnn08-table9", name, "error", float(error))

    def _tasks(settings: Settings) -> Iterator[Task]:
        for name in ("a1a", "a4a"):
            fills = (("tnn08-table9", name, "error"),)
            yield Task(f"tnn08/table9/{name}", name, _measure, (name,), fills)

    PARTS = (
        Part(
            name="tnn08-table9", paper="TNN-08", title="Table IX: errors", kind="table",
            reading="How it was measured ...", tasks=_tasks, columns=(Column("error", "%", ".2f"),),
            numbers=read_numbers("tnn08_table9", "problem", {"error_percent": "error"}),
            holds=near,
        ),
    )

Verdicts follow one rule. A number holds if it is within ten percent of the paper's, or within two
standard errors of our mean (`near`); numbers of rows, columns and classes must be the same
(`same`); seconds are judged only as ratios between methods, by claims. An error that is lower by
more than that is better than the paper's: it does not hold, but is reported as better.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

__all__ = [
    "Axes",
    "Cell",
    "Claim",
    "Column",
    "Curve",
    "CutError",
    "Finding",
    "Found",
    "NoDataError",
    "Part",
    "Place",
    "Settings",
    "Task",
    "data_set_of",
    "near",
    "same",
    "share_of",
]

#: How far a number may be from the paper's, as a share of it, if two standard errors are not more.
TOLERANCE = 0.1

Status: TypeAlias = Literal["ok", "cut", "no data", "failed", "missing"]
Place: TypeAlias = tuple[str, str, str]


class NoDataError(Exception):
    """The data set of a task is not available; the message says what is missing."""


class CutError(Exception):
    """A task took longer than `Settings.cut`, or more memory than there is."""


@dataclass(frozen=True)
class Settings:
    """The user's settings, which all tasks receive.

    Parameters
    ----------
    data_dir : str or None
        The folder of the data files.
    quick : bool
        Whether to use only data that come with libraries, and few rows of them.
    full : bool
        Whether to follow the published protocol where the default is coarser.
    only : tuple of str or None
        The data sets wanted; None is all.
    cut : float
        Seconds by the clock after which a rival's training is given up. At four minutes, a whole
        run takes less than two hours on two cores.
    """

    data_dir: str | None = None
    quick: bool = False
    full: bool = False
    only: tuple[str, ...] | None = None
    cut: float = 240.0


@dataclass(frozen=True)
class Cell:
    """One number of a table.

    Parameters
    ----------
    part, row, column : str
        Its place. A row about a data set and something else starts with the set and a comma.
    ours : float or None
        What we measured; None if `status` is not ``"ok"``.
    spread : float or None
        Standard deviation over the runs, with one less than their number in the denominator.
    n_runs : int
        Number of runs that `ours` is the mean of.
    status : {"ok", "cut", "no data", "failed", "missing"}
        Whether there is a number; ``"missing"`` if the task was not expected to give one.
    reason : str
        Why there is no number.
    text : str
        What to show in place of `ours`, such as a range.
    paper : float or None
        The paper's number. Tasks leave it out: it is found in `Part.numbers`.
    holds : bool or None
        Whether the number agrees with the paper's, by `Part.holds`; None if it is not judged.
    is_better : bool
        Whether it does not agree because it is better.
    """

    part: str
    row: str
    column: str
    ours: float | None = None
    spread: float | None = None
    n_runs: int = 1
    status: Status = "ok"
    reason: str = ""
    text: str = ""
    paper: float | None = None
    holds: bool | None = None
    is_better: bool = False

    @property
    def place(self) -> Place:
        """Part, row and column."""
        return self.part, self.row, self.column

    @property
    def difference(self) -> float | None:
        """Ours minus the paper's, where both are known.

        Examples
        --------
        >>> Cell("t", "a1a", "error", ours=15.5, paper=15.0).difference
        0.5
        """
        if self.ours is None or self.paper is None:
            return None
        return self.ours - self.paper


@dataclass(frozen=True)
class Curve:
    """One line of a figure.

    Parameters
    ----------
    part : str
        The figure.
    panel : str
        Which of its plots, usually a data set.
    name : str
        The method, as in the legend.
    x, y : tuple of float
        The points.
    note : str
        A remark, such as why it ends.
    """

    part: str
    panel: str
    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    note: str = ""


@dataclass(frozen=True)
class Task:
    """A unit of work: independent of the others, run in a process of its own, kept when finished.

    Parameters
    ----------
    key : str
        Its name, unique among all parts: parts that give a task with the same key share it.
    data_set : str
        The name that ``--only`` selects it by.
    function : callable
        A module-level function, called as ``function(*arguments, settings)``; yields cells and
        curves. `NoDataError`, `CutError` and any other exception become the state of all cells that
        were not yielded before.
    arguments : tuple
        What else the function needs, of plain types; kept results depend on them.
    fills : tuple of (part, row, column)
        The cells that it gives.
    draws : tuple of (part, panel)
        The plots that it gives curves for.
    is_long : bool
        Whether to start it before the others, so that all processes end at about the same time.
    """

    key: str
    data_set: str
    function: Callable[..., Iterable[Cell | Curve]]
    arguments: tuple[Any, ...] = ()
    fills: tuple[Place, ...] = ()
    draws: tuple[tuple[str, str], ...] = ()
    is_long: bool = False


@dataclass(frozen=True)
class Column:
    """One column of a table.

    Parameters
    ----------
    name : str
        Its heading.
    unit : str
        Printed after the heading.
    form : str
        Format of our numbers; the paper's have the digits that it gives.
    compare : {"difference", "ratio", "none"}
        How the two numbers are compared: a ratio for times, say.
    """

    name: str
    unit: str = ""
    form: str = ".2f"
    compare: Literal["difference", "ratio", "none"] = "difference"

    def is_better(self, cell: Cell) -> bool:
        """Whether ours is an error (all percentages are) and below the paper's.

        Parameters
        ----------
        cell : Cell
            A number of this column.

        Returns
        -------
        bool

        Examples
        --------
        >>> Column("error", "%").is_better(Cell("t", "a", "error", 2.0, paper=5.0))
        True
        """
        return self.unit == "%" and cell.difference is not None and cell.difference < 0


@dataclass(frozen=True)
class Axes:
    """How a figure is drawn.

    Parameters
    ----------
    x, y : str
        Labels.
    log_x, log_y : bool
        Whether the axis is logarithmic.
    shown : tuple of float
        The places where the page and the terminal give numbers; empty for all.
    y_of : mapping
        Labels of panels that have their own.
    """

    x: str
    y: str
    log_x: bool = False
    log_y: bool = False
    shown: tuple[float, ...] = ()
    y_of: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Found:
    """What was measured for a part, as claims see it.

    Parameters
    ----------
    cells : sequence of Cell
        Its cells, with the paper's numbers.
    curves : sequence of Curve
        Its curves.
    """

    cells: Sequence[Cell] = ()
    curves: Sequence[Curve] = ()

    def ours(self, row: str, column: str) -> float | None:
        """Our number at a place; None if there is none.

        Parameters
        ----------
        row, column : str
            Where.

        Returns
        -------
        float or None
        """
        for cell in self.cells:
            if (cell.row, cell.column) == (row, column):
                return cell.ours
        return None

    def curve(self, panel: str, name: str) -> Curve | None:
        """Return the curve of a method; None if there is none.

        Parameters
        ----------
        panel, name : str
            Which.

        Returns
        -------
        Curve or None
        """
        for curve in self.curves:
            if (curve.panel, curve.name) == (panel, name):
                return curve
        return None


@dataclass(frozen=True)
class Finding:
    """What our numbers say about a claim.

    Parameters
    ----------
    holds : bool or None
        Whether they agree; None if they cannot show it.
    detail : str
        Where they do, such as ``"7 of 8 sets"``; it appears in the verdict.
    """

    holds: bool | None
    detail: str = ""


@dataclass(frozen=True)
class Claim:
    """Something that the paper says in words.

    Parameters
    ----------
    text : str
        What it says.
    check : callable
        Takes `Found`; returns what our numbers say about it: a `Finding`, or only whether they
        agree, None if they cannot show it.
    """

    text: str
    check: Callable[[Found], Finding | bool | None]

    def found(self, found: Found) -> Finding:
        """Check it.

        Parameters
        ----------
        found : Found
            What was measured.

        Returns
        -------
        Finding
        """
        finding = self.check(found)
        return finding if isinstance(finding, Finding) else Finding(finding)


@dataclass(frozen=True)
class Part:
    """One table or figure.

    Parameters
    ----------
    name : str
        As in the command: ``"ijcai07-table2"``.
    paper : str
        ``"IJCAI-07"``, ``"MCS-06"``, ``"TNN-08"`` or ``"ESANN-99"``.
    title : str
        What it shows.
    kind : {"table", "figure"}
        Which.
    reading : str
        The protocol, our reading of what the paper leaves open, and the rule of the verdict;
        paragraphs are separated by empty lines.
    tasks : callable
        Takes `Settings` and returns the tasks.
    columns : tuple of Column
        The columns of a table.
    numbers : mapping
        The paper's numbers by (row, column).
    holds : callable or None
        Takes a `Cell` that has a number; returns whether it holds, None if it is not judged. One of
        `near` and `same`, or a function that chooses between them.
    claims : tuple of Claim
        What else is judged.
    axes : Axes or None
        How a figure is drawn.
    described : str
        What the paper's text says about its figure.
    needs_folder : bool
        Whether there is nothing to do without ``--data-dir`` or ``--quick``.
    """

    name: str
    paper: str
    title: str
    kind: Literal["table", "figure"]
    reading: str
    tasks: Callable[[Settings], Iterable[Task]]
    columns: tuple[Column, ...] = ()
    numbers: Mapping[tuple[str, str], float] = field(default_factory=dict)
    holds: Callable[[Cell], bool | None] | None = None
    claims: tuple[Claim, ...] = ()
    axes: Axes | None = None
    described: str = ""
    needs_folder: bool = True


def data_set_of(row: str) -> str:
    """Give the data set of a row.

    Parameters
    ----------
    row : str
        Its name.

    Returns
    -------
    str

    Examples
    --------
    >>> data_set_of("letters, orthogonal CVM, SVM")
    'letters'
    """
    return row.partition(",")[0]


def near(cell: Cell) -> bool | None:
    """Whether a number is within ten percent of the paper's, or within two standard errors.

    Parameters
    ----------
    cell : Cell
        The number; the standard error is that of the mean over our runs, if there are several.

    Returns
    -------
    bool or None
        None if either number is unknown.

    Examples
    --------
    >>> near(Cell("t", "a1a", "error", ours=16.5, paper=15.0))
    True
    >>> near(Cell("t", "german", "error", ours=27.0, spread=4.0, n_runs=4, paper=23.5))
    True
    >>> near(Cell("t", "german", "error", ours=27.0, spread=4.0, n_runs=16, paper=23.5))
    False
    """
    if cell.difference is None or cell.paper is None:
        return None
    chance = 2.0 * (cell.spread or 0.0) / math.sqrt(cell.n_runs)
    # The slack is for the rounding of a difference such as 16.5 - 15.0.
    return abs(cell.difference) <= max(TOLERANCE * abs(cell.paper), chance) + 1e-9


def same(cell: Cell) -> bool | None:
    """Whether a count is the paper's.

    Parameters
    ----------
    cell : Cell
        The count.

    Returns
    -------
    bool or None
        None if either is unknown.

    Examples
    --------
    >>> same(Cell("t", "mnist", "columns", ours=784.0, paper=780.0))
    False
    """
    return None if cell.ours is None or cell.paper is None else cell.ours == cell.paper


def share_of(verdicts: Sequence[bool], noun: str, least: float = 1.0) -> Finding:
    """Find whether something is so in all of some cases, or in a share of them.

    Parameters
    ----------
    verdicts : sequence of bool
        Whether it is so, case by case.
    noun : str
        What the cases are, in the plural.
    least : float, default=1.0
        The share that is enough.

    Returns
    -------
    Finding

    Examples
    --------
    >>> share_of([True, False, True], "sets", least=0.5)
    Finding(holds=True, detail='2 of 3 sets')
    """
    if not verdicts:
        return Finding(None)
    return Finding(
        sum(verdicts) >= least * len(verdicts), f"{sum(verdicts)} of {len(verdicts)} {noun}"
    )
