"""The result of a part: its cells beside the paper's numbers, its claims, and the verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from hardmargin.reproduction.parts import (
    Cell,
    Claim,
    Curve,
    Finding,
    Found,
    Part,
    Task,
    data_set_of,
)

__all__ = ["Gathered", "Outcome", "Verdict", "gather"]

Label: TypeAlias = Literal[
    "reproduced",
    "partly reproduced",
    "not reproduced",
    "failed",
    "data not available",
    "not judged",
    "skipped",
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
        ``"reproduced"`` (everything that is judged holds), ``"partly reproduced"`` (half or more of
        it), ``"not reproduced"``, ``"failed"`` (nothing was measured), ``"data not available"``,
        ``"not judged"`` or ``"skipped"`` (by a quick run).
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
    claims : tuple of (Claim, Finding)
        Its claims, and whether they hold.
    problems : tuple of (str, str)
        Tasks that gave less than they should, and why.
    verdict : Verdict
        The judgement.
    """

    part: Part
    cells: tuple[Cell, ...]
    curves: tuple[Curve, ...]
    claims: tuple[tuple[Claim, Finding], ...]
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
        Whether the run was quick: its few rows say nothing about the paper, so nothing is judged,
        and what it did not measure is left out.

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
        if quick and outcome.status == "no data":
            continue
        its_cells = [cell for cell in outcome.cells if cell.part == part.name]
        cells += [_beside_paper(part, cell) for cell in its_cells]
        its = [curve for curve in outcome.curves if curve.part == part.name]
        curves += its
        drawn = {curve.panel for curve in its}
        undrawn += [p for name, p in task.draws if name == part.name and p not in drawn]
        if outcome.failure:
            problems.append((task.key, f"{outcome.status}: {outcome.failure}"))
    if quick:
        return _quick(part, cells, curves, problems)
    cells = [_judged(part, cell) for cell in cells]
    found = Found(cells, curves)
    claims = tuple((claim, claim.found(found)) for claim in part.claims)
    verdict = _verdict(cells, [finding for _, finding in claims], list(dict.fromkeys(undrawn)))
    return Gathered(part, tuple(cells), tuple(curves), claims, tuple(problems), verdict)


def _quick(
    part: Part, cells: list[Cell], curves: list[Curve], problems: list[tuple[str, str]]
) -> Gathered:
    failed = [cell for cell in cells if cell.status == "failed"]
    if failed or problems:
        verdict = Verdict("failed", _named("failed", failed) or problems[0][1])
    elif any(cell.ours is not None for cell in cells) or curves:
        verdict = Verdict("not judged", "a quick run, on few rows")
    else:
        cells, verdict = [], Verdict("skipped", "not in a quick run")
    return Gathered(part, tuple(cells), tuple(curves), (), tuple(problems), verdict)


def _beside_paper(part: Part, cell: Cell) -> Cell:
    return replace(cell, paper=part.numbers.get((cell.row, cell.column)))


def _judged(part: Part, cell: Cell) -> Cell:
    if part.holds is None or cell.status != "ok" or cell.ours is None:
        return cell
    holds = part.holds(cell)
    columns = [column for column in part.columns if column.name == cell.column]
    is_better = holds is False and any(column.is_better(cell) for column in columns)
    return replace(cell, holds=holds, is_better=is_better)


def _verdict(cells: Sequence[Cell], findings: Sequence[Finding], undrawn: Sequence[str]) -> Verdict:
    judged = [cell for cell in cells if cell.holds is not None]
    known = [finding for finding in findings if finding.holds is not None]
    verdicts = [cell.holds for cell in judged] + [finding.holds for finding in known]
    missing = [cell for cell in cells if cell.status == "no data"]
    failed = [cell for cell in cells if cell.status == "failed"]
    better = [cell for cell in judged if cell.is_better]
    n_cut = sum(cell.status == "cut" for cell in cells)
    details = "; ".join(dict.fromkeys(finding.detail for finding in known if finding.detail))
    why = [
        _count([bool(cell.holds) for cell in judged], "number"),
        _count([bool(finding.holds) for finding in known], "claim")
        + (f" ({details})" if details else ""),
        _named("do not hold", [c for c in judged if not c.holds and not c.is_better]),
        _named(f"{len(better)} better than the paper's", better),
        _named(
            f"{n_cut} rival cells cut" if n_cut > 1 else "1 rival cell cut",
            [cell for cell in cells if cell.status == "cut"],
        ),
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
