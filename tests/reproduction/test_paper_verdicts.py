"""Each paper's own numbers, judged by the rules for ours: all must be reproduced."""

from dataclasses import replace

import pytest

from hardmargin.reproduction.mcs06.tasks import BASES, SIZES, row_of
from hardmargin.reproduction.parts import Cell, Curve, Settings
from hardmargin.reproduction.registry import PARTS
from hardmargin.reproduction.verdicts import Outcome, gather

TABLES = {name: part for name, part in PARTS.items() if part.numbers}


def judged(part, change=lambda number: number, curves=()):
    """Judge the paper's numbers, or a change of them, as if we had measured them."""
    tasks = list(part.tasks(Settings()))
    outcomes = {}
    for task in tasks:
        cells = []
        for place in (p for p in task.fills if p[0] == part.name):
            number = part.numbers.get(place[1:])
            state = "missing" if number is None else "ok"
            ours = None if number is None else change(number)
            cells.append(Cell(*place, ours, status=state))
        outcomes[task.key] = Outcome(tuple(cells))
    first = tasks[0].key
    outcomes[first] = replace(outcomes[first], curves=tuple(curves))
    return gather(part, [replace(task, draws=()) for task in tasks], outcomes)


@pytest.mark.parametrize("part", TABLES.values(), ids=TABLES)
def test_the_papers_own_numbers_are_reproduced(part):
    found = judged(part)
    assert found.verdict.label == "reproduced", found.verdict.why
    assert not any(cell.is_better for cell in found.cells)


@pytest.mark.parametrize(
    "part", [part for part in TABLES.values() if part.holds], ids=lambda part: part.name
)
def test_numbers_that_are_half_as_large_again_are_not(part):
    found = judged(part, lambda number: 1.5 * number)
    verdicts = {cell.holds for cell in found.cells if cell.ours} - {None}
    assert verdicts == {False}
    assert found.verdict.label in ("partly reproduced", "not reproduced")


def test_half_the_error_is_better_and_does_not_hold():
    found = judged(PARTS["ijcai07-table2"], lambda number: number / 2)
    cells = [cell for cell in found.cells if cell.holds is not None]
    assert all(cell.is_better and not cell.holds for cell in cells)
    assert "better than the paper's" in found.verdict.why
    assert found.verdict.label != "reproduced"


def test_the_papers_errors_above_networks_give_its_figure():
    """Figure 1 of MCS-06 plots numbers of which Table 2 has three."""
    numbers = PARTS["mcs06-table2"].numbers
    curves = [
        Curve(
            "mcs06-figure1",
            name,
            base,
            tuple(map(float, SIZES)),
            tuple(numbers[row_of(name, base, "ANN"), column] for column in SIZES.values()),
        )
        for name in ("optdigits", "satimage", "pendigits")
        for base in BASES.values()
    ]
    assert judged(PARTS["mcs06-figure1"], curves=curves).verdict.label == "reproduced"
