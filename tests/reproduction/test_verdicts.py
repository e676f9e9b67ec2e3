"""Verdicts from cells and claims."""

import pytest
from problems.reproduction_tasks import NAME, part

from hardmargin.reproduction.parts import Cell, Claim, Curve, Finding, Task, near, same
from hardmargin.reproduction.report.wording import skipped_line
from hardmargin.reproduction.verdicts import Outcome, gather

HOLDS, FAILS, UNKNOWN = (Claim("c", lambda found, v=v: v) for v in (True, False, None))


def verdict(cells, claims=(), draws=(), curves=()):
    toy = part(".", [], claims=claims)
    outcome = Outcome(tuple(Cell(NAME, *cell[:2], **cell[2]) for cell in cells), tuple(curves))
    return gather(toy, [Task("t", "a", list, draws=draws)], {"t": outcome}).verdict


GOOD, BAD = ("a", "error", {"ours": 1.0}), ("b", "error", {"ours": 1.0})
BETTER = ("e", "error", {"ours": 8.0})
CUT = ("d", "error", {"status": "cut"})
UNJUDGED = ("c", "error", {"ours": 1.0})
NO_DATA = ("b", "error", {"status": "no data"})
FAILED = ("b", "error", {"status": "failed", "reason": "x"})


OUTCOMES = {"t": Outcome((Cell(NAME, "a", "error", 1.0),))}


@pytest.mark.parametrize(
    ("cells", "claims", "label", "why"),
    [
        ([GOOD], [], "reproduced", "1 of 1 numbers hold"),
        ([GOOD, UNJUDGED], [HOLDS], "reproduced", "1 of 1 numbers hold; 1 of 1 claims hold"),
        ([GOOD, NO_DATA], [], "reproduced", "1 of 1 numbers hold; no data: b"),
        ([GOOD, BAD], [], "partly reproduced", "1 of 2 numbers hold; do not hold: b (error)"),
        (
            [GOOD, BETTER],
            [],
            "partly reproduced",
            "1 of 2 numbers hold; 1 better than the paper's: e (error)",
        ),
        ([GOOD, CUT], [], "reproduced", "1 of 1 numbers hold; 1 rival cell cut: d (error)"),
        (
            [CUT, ("c", "error", {"status": "cut"})],
            [Claim("c", lambda found: Finding(True, "3 of 4 sets"))],
            "reproduced",
            "1 of 1 claims hold (3 of 4 sets); 2 rival cells cut: d (error), c (error)",
        ),
        ([GOOD, FAILED], [], "partly reproduced", "1 of 1 numbers hold; failed: b (error)"),
        ([BAD], [UNKNOWN], "not reproduced", "0 of 1 numbers hold; do not hold: b (error)"),
        ([BAD], [FAILS, HOLDS], "not reproduced", None),
        ([NO_DATA, UNJUDGED], [UNKNOWN], "data not available", "no data: b"),
        ([FAILED], [], "failed", "failed: b (error)"),
        ([UNJUDGED], [], "not judged", None),
    ],
)
def test_labels(cells, claims, label, why):
    found = verdict(cells, tuple(claims))
    assert found.label == label
    assert why is None or found.why == why


def test_figures_that_lack_their_data():
    draws = ((NAME, "a"), (NAME, "b"))
    assert verdict([], draws=draws).why == "not drawn: a and b"
    assert verdict([], draws=draws).label == "data not available"
    curves = [Curve(NAME, "a", "ours", (1.0,), (1.0,))]
    assert verdict([], (HOLDS,), draws, curves).why == "1 of 1 claims hold; not drawn: b"


def test_many_rows_are_not_all_named():
    cells = [(f"{row}, x", "error", {"status": "no data"}) for row in "abcdefg"]
    assert verdict(cells).why == "no data: a, b, c, d and 3 more"


def test_many_numbers_that_do_not_hold():
    cells = [(f"{row}, {i}", "error", {"status": "failed"}) for row in "ab" for i in range(2)]
    assert verdict(cells).why == "failed: a (2 numbers), b (2 numbers)"


def test_quick_runs_judge_nothing():
    tasks, toy = [Task("t", "a", list), Task("u", "b", list)], part(".", [])
    missing = Outcome((Cell(NAME, "b", "error", status="no data"),), status="no data", failure="x")
    found = gather(toy, tasks, OUTCOMES | {"u": missing}, quick=True)
    assert (found.verdict.label, found.verdict.why) == ("not judged", "a quick run, on few rows")
    # No marks, and nothing about data that it does not read.
    assert [(cell.row, cell.holds) for cell in found.cells] == [("a", None)]
    assert found.claims == found.problems == ()


def test_what_a_quick_run_skips():
    missing = Outcome((Cell(NAME, "b", "error", status="no data"),), status="no data", failure="x")
    toy = part(".", [])
    found = gather(toy, [Task("t", "a", list)], {"t": missing}, quick=True)
    assert found.verdict.label == "skipped"
    assert skipped_line([found, found]).endswith(f": {NAME}, {NAME}.")
    broken = Outcome((Cell(NAME, "b", "error", status="failed"),), status="failed", failure="x")
    assert gather(toy, [Task("t", "a", list)], {"t": broken}, quick=True).verdict.label == "failed"


@pytest.mark.parametrize(
    ("ours", "spread", "n_runs", "holds"),
    [(22.0, None, 1, True), (22.1, None, 1, False), (23.0, 3.0, 4, True), (23.1, 3.0, 4, False)],
)
def test_a_number_holds_within_a_tenth_or_two_standard_errors(ours, spread, n_runs, holds):
    for value in (ours, 40.0 - ours):
        cell = Cell(NAME, "a", "error", value, spread, n_runs, paper=20.0)
        assert near(cell) is holds


def test_counts_must_be_the_same():
    assert same(Cell(NAME, "a", "rows", 400.0, paper=400.0)) is True
    assert same(Cell(NAME, "a", "rows", 401.0, paper=400.0)) is False
    assert same(Cell(NAME, "a", "rows", 401.0)) is None


def test_cells_have_the_papers_numbers():
    toy = part(".", [])
    outcome = Outcome((Cell(NAME, "a", "error", 1.0), Cell("other", "a", "error", 1.0)))
    (cell,) = gather(toy, [Task("t", "a", list)], {"t": outcome}).cells
    assert (cell.paper, cell.holds) == (1.1, True)
    assert cell.difference == pytest.approx(-0.1)
