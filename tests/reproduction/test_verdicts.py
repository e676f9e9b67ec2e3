"""Verdicts from cells and claims."""

import pytest
from problems.reproduction_tasks import NAME, part

from hardmargin.reproduction.parts import Cell, Claim, Curve, Task
from hardmargin.reproduction.verdicts import Outcome, gather

HOLDS, FAILS, UNKNOWN = (Claim("c", lambda found, v=v: v) for v in (True, False, None))


def verdict(cells, claims=(), draws=(), curves=()):
    toy = part(".", [], claims=claims)
    outcome = Outcome(tuple(Cell(NAME, *cell[:2], **cell[2]) for cell in cells), tuple(curves))
    return gather(toy, [Task("t", "a", list, draws=draws)], {"t": outcome}).verdict


GOOD, BAD = ("a", "error", {"ours": 1.0}), ("b", "error", {"ours": 1.0})
BETTER = ("e", "error", {"ours": 8.0})
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
            "1 of 2 numbers hold; do not hold: e (error); 1 of these better than the paper's",
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


def test_quick_runs_are_not_judged():
    found = gather(part(".", [], claims=()), [Task("t", "a", list)], OUTCOMES, quick=True).verdict
    assert (found.label, found.why) == (
        "not judged",
        "a quick run on few rows; 1 of 1 numbers hold",
    )


def test_cells_have_the_papers_numbers():
    toy = part(".", [])
    outcome = Outcome((Cell(NAME, "a", "error", 1.0), Cell("other", "a", "error", 1.0)))
    (cell,) = gather(toy, [Task("t", "a", list)], {"t": outcome}).cells
    assert (cell.paper, cell.holds) == (1.2, True)
    assert cell.difference == pytest.approx(-0.2)
