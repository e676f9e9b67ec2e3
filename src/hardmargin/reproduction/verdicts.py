"""The result of a part: its cells beside the paper's numbers, its claims, and the verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from hardmargin.reproduction.parts import Cell, Claim, Curve, Found, Part, Task, data_set_of

__all__ = ["Gathered", "Outcome", "Verdict", "gather"]

Label: TypeAlias = Literal[
    "reproduced",
    "partly reproduced",
    "not reproduced",
    "failed",
    "data not available",
    "not judged",
]


@dataclass(frozen=True)
class Outcome:
    """What one task gave.

    Parameters
    ----------
    cells : tuple of Cell
        All cells that it fills.
    curves : tuple of Curve
        Its curves.
    seconds : float
        How long it took, in wall-clock time.
    failure : str
        Why it gave less than it should: the message of an exception; empty if all is well.
    status : {"ok", "no data", "cut", "failed"}
        What kind of failure that was.
    """

    cells: tuple[Cell, ...] = ()
    curves: tuple[Curve, ...] = ()
    seconds: float = 0.0
    failure: str = ""
    status: Literal["ok", "no data", "cut", "failed"] = "ok"


@dataclass(frozen=True)
class Verdict:
    """The judgement of a part.

    Parameters
    ----------
    label : str
        ``"reproduced"``, ``"partly reproduced"``, ``"not reproduced"``, ``"failed"`` (nothing was
        measured), ``"data not available"`` or ``"not judged"``.
    why : str
        The reason, in one line.
    """

    label: Label
    why: str


@dataclass(frozen=True)
class Gathered:
    """Everything about a part that a report shows.

    Parameters
    ----------
    part : Part
        The part.
    cells : tuple of Cell
        Its cells, with the paper's numbers and whether they hold.
    curves : tuple of Curve
        Its curves.
    claims : tuple of (Claim, bool or None)
        Its claims, and whether they hold.
    problems : tuple of (str, str)
        Tasks that gave less than they should, and why.
    verdict : Verdict
        The judgement.
    """

    part: Part
    cells: tuple[Cell, ...]
    curves: tuple[Curve, ...]
    claims: tuple[tuple[Claim, bool | None], ...]
    problems: tuple[tuple[str, str], ...]
    verdict: Verdict

    @property
    def rows(self) -> list[str]:
        """Names of the rows, in order."""
        return list(dict.fromkeys(cell.row for cell in self.cells))

    @property
    def panels(self) -> list[str]:
        """Names of the plots of a figure, in order."""
        return list(dict.fromkeys(curve.panel for curve in self.curves))

    def cell(self, row: str, column: str) -> Cell | None:
        """Return the cell at a place; None if there is none.

        Parameters
        ----------
        row, column : str
            Where.

        Returns
        -------
        Cell or None
        """
        found = (c for c in self.cells if (c.row, c.column) == (row, column))
        return next(found, None)


def gather(
    part: Part, tasks: Iterable[Task], outcomes: Mapping[str, Outcome], *, quick: bool = False
) -> Gathered:
    """Collect what tasks gave for a part.

    Parameters
    ----------
    part : Part
        Which.
    tasks : iterable of Task
        Its tasks.
    outcomes : mapping
        What they gave, by the key of the task.
    quick : bool, default=False
        Whether the run was quick: its few rows say nothing about the paper.

    Returns
    -------
    Gathered

    Examples
    --------
    >>> part = Part("t", "P", "T", "table", "", tasks=lambda settings: [],
    ...             numbers={("a", "error"): 2.0}, holds=lambda cell: cell.ours < 3)
    >>> outcome = Outcome((Cell("t", "a", "error", 2.5),))
    >>> gather(part, [Task("t/a", "a", list)], {"t/a": outcome}).verdict
    Verdict(label='reproduced', why='1 of 1 numbers hold')
    """
    cells, curves, problems, undrawn = [], [], [], []
    for task in tasks:
        outcome = outcomes[task.key]
        cells += [_judged(part, cell) for cell in outcome.cells if cell.part == part.name]
        its = [curve for curve in outcome.curves if curve.part == part.name]
        curves += its
        drawn = {curve.panel for curve in its}
        undrawn += [p for name, p in task.draws if name == part.name and p not in drawn]
        if outcome.failure:
            problems.append((task.key, f"{outcome.status}: {outcome.failure}"))
    found = Found(cells, curves)
    claims = tuple((claim, claim.check(found)) for claim in part.claims)
    n_better = sum(
        cell.holds is False and column.name == cell.column and column.is_better(cell)
        for column in part.columns
        for cell in cells
    )
    verdict = _verdict(cells, n_better, claims, list(dict.fromkeys(undrawn)))
    if quick and verdict.label in ("reproduced", "partly reproduced", "not reproduced"):
        verdict = Verdict("not judged", f"a quick run on few rows; {verdict.why}")
    return Gathered(part, tuple(cells), tuple(curves), claims, tuple(problems), verdict)


def _judged(part: Part, cell: Cell) -> Cell:
    cell = replace(cell, paper=part.numbers.get((cell.row, cell.column)))
    if part.holds is None or cell.status != "ok" or cell.ours is None:
        return cell
    return replace(cell, holds=part.holds(cell))


def _verdict(
    cells: Sequence[Cell],
    n_better: int,
    claims: Sequence[tuple[Claim, bool | None]],
    undrawn: Sequence[str],
) -> Verdict:
    judged = [cell for cell in cells if cell.holds is not None]
    verdicts = [cell.holds for cell in judged] + [v for _, v in claims if v is not None]
    missing = [cell for cell in cells if cell.status == "no data"]
    failed = [cell for cell in cells if cell.status == "failed"]
    why = [
        _count([bool(cell.holds) for cell in judged], "number"),
        _count([bool(v) for _, v in claims if v is not None], "claim"),
        _named("do not hold", [cell for cell in judged if not cell.holds]),
        f"{n_better} of these better than the paper's" if n_better else "",
        _named("no data", missing),
        _named("failed", failed),
        f"not drawn: {' and '.join(undrawn)}" if undrawn else "",
    ]
    line = "; ".join(text for text in why if text)
    if not verdicts:
        if failed:
            return Verdict("failed", line)
        if missing or undrawn:
            return Verdict("data not available", line)
        return Verdict("not judged", line or "the paper has no number to compare these with")
    share = sum(map(bool, verdicts)) / len(verdicts)
    if share == 1 and not failed:
        return Verdict("reproduced", line)
    return Verdict("partly reproduced" if share >= 0.5 else "not reproduced", line)


def _count(verdicts: Sequence[bool], noun: str) -> str:
    if not verdicts:
        return ""
    return f"{sum(verdicts)} of {len(verdicts)} {noun}s hold"


def _named(what: str, cells: Sequence[Cell]) -> str:
    """Name rows with their columns; if there are many, only the first data sets."""
    columns: dict[str, list[str]] = {}
    for cell in cells:
        row = data_set_of(cell.row) if what == "no data" else cell.row
        columns.setdefault(row, []).append(cell.column)
    if not columns:
        return ""
    names = list(columns)
    if what != "no data" and len(columns) <= 3:
        names = [f"{row} ({', '.join(its)})" for row, its in columns.items()]
    elif what != "no data":
        sets = Counter(data_set_of(cell.row) for cell in cells)
        names = [f"{name} ({n} numbers)" if n > 1 else name for name, n in sets.items()]
    more = f" and {len(names) - 4} more" if len(names) > 4 else ""
    return f"{what}: {', '.join(names[:4])}{more}"
