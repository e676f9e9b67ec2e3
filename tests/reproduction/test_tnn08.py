"""Tables I to V of TNN-08, on a small folder of made-up data."""

import lzma
from pathlib import Path

import numpy as np
import pytest
from sklearn.svm import SVC

from hardmargin import CoreVectorSVC
from hardmargin.reproduction.parts import Cell, CutError, Found, Settings
from hardmargin.reproduction.runner import run, tasks_of
from hardmargin.reproduction.tnn08 import tasks as tnn08_tasks
from hardmargin.reproduction.tnn08.parts import PARTS
from hardmargin.reproduction.tnn08.tasks import (
    LOG_CS,
    SUBSETS,
    measure_core,
    measure_svc,
    row_of_c,
)
from hardmargin.reproduction.verdicts import gather

N_ROWS = 400
TABLE_I, TABLE_II, TABLE_III, TABLE_IV, TABLE_V, *_ = PARTS


def write_libsvm(path: Path, width: int, rng: np.random.Generator) -> None:
    lines = []
    for _ in range(N_ROWS):
        columns = np.sort(rng.choice(width, 9, replace=False)) + 1
        label = "+1" if columns[0] < width // 12 else "-1"
        lines.append(" ".join([label, *(f"{column}:1" for column in columns)]))
    with lzma.open(path, "wt") as file:
        file.write("\n".join(lines) + "\n")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files in the format of the real ones."""
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    for name, width in (("a9a", 123), ("w8a", 300)):
        write_libsvm(folder / f"{name}.libsvm.xz", width, rng)
    masks = {name: np.packbits(rng.random(N_ROWS) < 0.5) for name in SUBSETS.values()}
    np.savez_compressed(folder / "adult_web_subsets.npz", **masks)
    n_rows = 70_300
    y = rng.integers(1, 8, n_rows).astype(np.uint8)
    np.savez_compressed(
        folder / "covtype.npz",
        X10=(100 * y[:, None] + rng.integers(0, 90, (n_rows, 10))).astype(np.int16),
        wilderness=rng.integers(0, 4, n_rows).astype(np.uint8),
        soil=rng.integers(0, 40, n_rows).astype(np.uint8),
        y=y,
    )
    return folder


@pytest.fixture
def one_process(monkeypatch):
    """Train rivals in this process, which takes less time."""
    monkeypatch.setattr(tnn08_tasks, "within", lambda seconds, function, *rest: function(*rest))


def measured(part, **settings):
    settings = Settings(**settings)
    return gather(part, tasks_of(part, settings), run([part], settings, quiet=True))


def test_sizes_beside_the_paper(folder):
    its = measured(TABLE_I, data_dir=str(folder))
    assert its.rows == list(SUBSETS)
    assert all(its.cell(row, "columns").holds for row in its.rows)
    assert not any(its.cell(row, "training rows").holds for row in its.rows)
    assert its.cell("Web-4", "gamma of GS-SVMs").ours == 0.1
    assert its.cell("Web-4", "gamma of SVC").holds is None


@pytest.mark.parametrize("full", [False, True])
def test_adult_and_web_beside_the_paper(folder, full, one_process):
    its = measured(TABLE_II, data_dir=str(folder), full=full)
    assert its.rows == ["Adult-1", "Adult-4", "Adult-7", "Web-1", "Web-4", "Web-7"]
    assert all(cell.status == "ok" and cell.paper is not None for cell in its.cells)
    for column in ("support vectors", "support vectors of SVC"):
        support = [its.cell(row, column) for row in its.rows]
        assert not any(cell.holds for cell in support)
        assert all(cell.ours < N_ROWS for cell in support)


def test_svc_is_scored_as_by_itself(folder):
    split = tnn08_tasks._subset("Adult-1", Settings(data_dir=str(folder)))
    result = measure_svc(split, 2.0, 0.05)
    model = SVC(C=2.0, gamma=0.05).fit(split[0], split[1])
    assert result.error == pytest.approx(100 - 100 * model.score(split[2], split[3]))
    assert result.n_support == len(model.support_)
    assert np.isnan(result.n_evaluations)


def test_errors_by_c(folder, one_process):
    its = measured(TABLE_III, data_dir=str(folder), only=("w7a",))
    assert its.rows == [row_of_c("Web-7", log_C) for log_C in (None, *LOG_CS)]
    for row in its.rows:
        assert its.cell(row, "seconds").ours >= 0
        states = "ok" if row.endswith("GS-SVMs") else "missing"
        assert its.cell(row, "kernel evaluations").status == states


def test_claims_on_times():
    def verdicts(greedy, at_one, at_most):
        rows = {None: greedy, 0: at_one, 10: at_most}
        cells = [Cell("t", row_of_c("Adult-7", c), "seconds", s) for c, s in rows.items()]
        return [claim.found(Found(cells)).holds for claim in TABLE_III.claims]

    assert verdicts(1.0, 2.0, 6.0) == [True, True]
    assert verdicts(3.0, 2.0, 5.0) == [False, False]

    def beside(seconds, error):
        cells = [Cell("t", "Web-1", "seconds", seconds), Cell("t", "Web-1", "error", error)]
        cells += [
            Cell("t", "Web-1", "seconds of SVC", 2.0),
            Cell("t", "Web-1", "error of SVC", 2.0),
        ]
        return [claim.found(Found(cells)).holds for claim in TABLE_II.claims]

    assert beside(1.0, 2.6) == [True, True]
    assert beside(2.0, 3.1) == [False, False]
    for part in (TABLE_II, TABLE_III, TABLE_IV):
        assert [claim.found(Found()).holds for claim in part.claims] == [None, None]


def test_forest_has_as_many_rows_as_it_can(folder, monkeypatch):
    # There are 20,000 rows, too few for the larger sizes: a failure, not missing data.
    def cut(*arguments):
        raise CutError("longer than 600 s")

    monkeypatch.setattr(tnn08_tasks, "within", cut)
    its = measured(TABLE_IV, data_dir=str(folder))
    states = {row: its.cell(row, "error").status for row in its.rows}
    assert states == {"20000": "ok"} | dict.fromkeys(list(states)[1:], "failed")
    assert "must lie between 1 and 20300" in its.cell("40000", "error").reason
    # Where one size is cut, so are the larger ones.
    assert {its.cell(row, "error of SVC").status for row in its.rows} == {"cut"}


def test_other_programs_have_the_papers_numbers_only(folder):
    its = measured(TABLE_V, data_dir=str(folder))
    cell = its.cell("Dong et al.", "error")
    assert (cell.status, cell.paper, cell.holds) == ("missing", 10.4, None)
    assert its.cell("Core vector machines", "error").paper == 2.35
    assert len(its.rows) == 4


def test_core_vector_machines_of_table_5(folder):
    split = tnn08_tasks._subset("Adult-1", Settings(data_dir=str(folder)))
    result = measure_core(split, 2.0, 0.05, cut=60.0)
    model = CoreVectorSVC(C=2.0, gamma=0.05, stopping="radius", random_state=0)
    model.fit(split[0], split[1])
    assert result.error == pytest.approx(100 - 100 * model.score(split[2], split[3]))
    assert result.n_support == len(model.support_)
    assert result.n_evaluations == model.n_kernel_evaluations_
    with pytest.raises(CutError, match="longer than"):
        measure_core(split, 2.0, 0.05, cut=1e-9)


def test_missing_files(tmp_path):
    for part in (TABLE_I, TABLE_II, TABLE_III, TABLE_IV, TABLE_V):
        for settings in ({"data_dir": str(tmp_path)}, {"quick": True}, {}):
            its = measured(part, **settings)
            assert {cell.status for cell in its.cells} - {"missing"} == {"no data"}
            assert its.verdict.label == "data not available"
    cell = measured(TABLE_V, data_dir=str(tmp_path)).cell("GS-SVMs", "error")
    assert "has no file 'covtype.npz'" in cell.reason


def test_what_holds():
    for column, ours, paper, holds in (
        ("error", 16.5, 15.0, True),
        ("error", 13.4, 15.0, False),
        ("support vectors", 1_100, 1_000, True),
        ("support vectors", 890, 1_000, False),
        ("error of SVC", 16.5, 15.0, True),
        ("support vectors of SVC", 890, 1_000, False),
        ("seconds of SVC", 1.0, 1_000, None),
        ("seconds", 1.0, 1_000, None),
        ("kernel evaluations", 1.0, None, None),
    ):
        assert TABLE_II.holds(Cell("t", "a", column, ours, paper=paper)) is holds
