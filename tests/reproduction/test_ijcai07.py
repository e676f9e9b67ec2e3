"""The parts of IJCAI-07, on a small folder of made-up data."""

import lzma
from pathlib import Path

import numpy as np
import pytest

from hardmargin import ParzenClassifier, PathSVC, RhoEnsembleSVC, RhoSVC
from hardmargin.datasets import load_folder
from hardmargin.reproduction.ijcai07 import rivals as ijcai07_rivals
from hardmargin.reproduction.ijcai07 import tasks as ijcai07_tasks
from hardmargin.reproduction.ijcai07.parts import PARTS
from hardmargin.reproduction.ijcai07.rivals import measure_path, nu_errors
from hardmargin.reproduction.ijcai07.tasks import (
    AT_HAND,
    DATA_SETS,
    mean_cell,
    measure,
    objective_curves,
    splits_of,
)
from hardmargin.reproduction.parts import Cell, Curve, CutError, Found, Settings
from hardmargin.reproduction.runner import run, tasks_of
from hardmargin.reproduction.verdicts import gather

SUBSETS = ("a1a", "a2a", "a3a", "w1a")
IDA = ("breast_cancer", "diabetis", "german", "titanic", "waveform")
POOLS = ("cancer", "diabetis", "german", "titanic", "waveform")
N_ROWS = 120
TABLE_1, TABLE_2, TABLE_3, FIGURE_1, FIGURE_2 = PARTS


def write_libsvm(path: Path, width: int, rng: np.random.Generator) -> None:
    lines = []
    for _ in range(N_ROWS):
        columns = np.sort(rng.choice(width, 9, replace=False)) + 1
        label = "+1" if columns[0] < width // 12 else "-1"
        lines.append(" ".join([label, *(f"{column}:1" for column in columns)]))
    with lzma.open(path, "wt") as file:
        file.write("\n".join(lines) + "\n")


def two_classes(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    y = np.where(np.arange(60) % 2, 1, -1)
    return rng.normal(size=(60, 3)) + y[:, None], y


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files in the format of the real ones; the IDA sets have two realizations of 40 rows."""
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    for name, width in (("a9a", 123), ("a9a.t", 123), ("w8a", 300)):
        write_libsvm(folder / f"{name}.libsvm.xz", width, rng)
    masks = {name: np.packbits(rng.random(N_ROWS) < 0.5) for name in SUBSETS}
    np.savez_compressed(folder / "adult_web_subsets.npz", **masks)
    members = {}
    for name in IDA:
        X, y = two_classes(rng)
        orders = np.array([rng.permutation(60), rng.permutation(60)])
        members |= {f"{name}_X": X, f"{name}_y": y}
        members |= {f"{name}_train": orders[:, :40], f"{name}_test": orders[:, 40:]}
    np.savez_compressed(folder / "ida_benchmark.npz", **members)
    (X, y), (X_test, y_test) = two_classes(rng), two_classes(rng)
    np.savez_compressed(folder / "svmguide1.npz", Xtr=X, ytr=y, Xte=X_test, yte=y_test)
    return folder


@pytest.fixture(scope="module")
def gathered(folder):
    settings = Settings(data_dir=str(folder))
    with pytest.MonkeyPatch.context() as patch:
        # Starting a process takes longer than all of this.
        patch.setattr(ijcai07_rivals, "within", lambda cut, function, *a: function(*a))
        patch.setattr(ijcai07_tasks, "N_DRAWS", 3)
        outcomes = run(PARTS, settings, quiet=True)
    return {part.name: gather(part, tasks_of(part, settings), outcomes) for part in PARTS}


def test_all_data_sets_beside_the_paper(gathered):
    for part in (TABLE_1, TABLE_2, TABLE_3):
        its = gathered[part.name]
        at_hand = [] if part is TABLE_1 else [f"{name}, {AT_HAND}" for name in POOLS]
        assert sorted(its.rows) == sorted([*DATA_SETS, *at_hand])
        states = {cell.status for cell in its.cells if cell.row == "web2"}
        assert states == {"no data"}
        assert {cell.status for cell in its.cells} == {
            *("ok", "no data"),
            *(("missing",) if part is TABLE_3 else ()),
        }


def test_realizations_and_their_spread(gathered):
    drawn = gathered["ijcai07-table2"].cell("german", "ensemble")
    at_hand = gathered["ijcai07-table2"].cell(f"german, {AT_HAND}", "ensemble")
    assert (drawn.n_runs, at_hand.n_runs) == (3, 2)
    assert drawn.paper == at_hand.paper == 23.7
    assert drawn.holds is not None
    assert at_hand.holds is None
    assert gathered["ijcai07-table2"].cell("astro", "ensemble").spread is None
    sizes = [gathered["ijcai07-table1"].cell("german", c.name).ours for c in TABLE_1.columns]
    assert sizes == [3, 40, 20, 3]


def test_drawn_splits_are_partitions_of_the_pool(folder, monkeypatch):
    monkeypatch.setattr(ijcai07_tasks, "N_DRAWS", 4)
    settings = Settings(data_dir=str(folder))
    X = load_folder("ida-german", folder).X
    splits = splits_of("german", settings, is_drawn=True)
    assert len(splits) == 4
    for X_train, _, X_test, _ in splits:
        assert (len(X_train), len(X_test)) == (40, 20)
        rows = np.concatenate([X_train, X_test])
        np.testing.assert_array_equal(rows[np.lexsort(rows.T)], X[np.lexsort(X.T)])
    assert not np.array_equal(splits[0][0], splits[1][0])
    # Sets that are no pool have the split of their files.
    assert len(splits_of("astro", settings, is_drawn=True)) == 1


def test_spreads_have_one_less_than_the_runs_below():
    assert mean_cell("t", "a", "error", [1.0, 3.0]).spread == pytest.approx(np.sqrt(2))


def test_one_split_against_the_estimators():
    rng = np.random.default_rng(3)
    (X, y), (X_test, y_test) = two_classes(rng), two_classes(rng)
    result = measure([(X, y, X_test, y_test)], n_iter=4.4)
    for model, errors in (
        (ParzenClassifier(), result.parzen),
        (RhoSVC(), result.rho_svm),
        (RhoEnsembleSVC(4), result.ensemble_at),
        (RhoEnsembleSVC(), result.ensemble),
    ):
        assert errors == (pytest.approx(100 - 100 * model.fit(X, y).score(X_test, y_test)),)
    assert result.n_iter == (model.n_iter_,)


def test_regularisation_paths_against_the_estimator():
    rng = np.random.default_rng(4)
    (X, y), (X_test, y_test) = two_classes(rng), two_classes(rng)
    result = measure_path([(X, y, X_test, y_test)] * 2)
    model = PathSVC("loo", gamma="spread").fit(X, y)
    errors = [np.mean(model.at(C).predict(X_test) != y_test) for C in model.path_.C[1:]]
    assert result.best == (pytest.approx(100 * min(errors)),) * 2
    assert result.loo == (pytest.approx(100 - 100 * model.score(X_test, y_test)),) * 2
    assert result.best[0] < result.loo[0]  # equal errors could hide a mix-up
    assert min(result.seconds) > 0


def test_best_is_not_at_c_zero():
    # At C = 0 every row is in the larger class, as are all test rows.
    X, y = np.array([[0.0], [1.0], [2.0], [10.0]]), np.array([1, 1, 1, -1])
    result = measure_path([(X, y, np.array([[10.0]]), np.array([1]))])
    assert result.best[0] == 100.0


def test_regularisation_paths_that_are_given_up(gathered, folder, monkeypatch):
    name = "ijcai07-table2"
    assert gathered[name].cell("adult", "SVM (BEST)") is None  # the paper has none either
    settings = Settings(data_dir=str(folder), only=("german",), cut=1e-9)
    tasks = tasks_of(TABLE_2, settings)
    its = gather(TABLE_2, tasks, run([TABLE_2], settings, quiet=True))
    for column in ("SVM (BEST)", "SVM (LOO)"):
        assert its.cell("german", column).status == "cut"
        assert its.cell("german", column).reason == "longer than 1e-09 s"
    assert its.cell("german", "ensemble").status == "ok"
    X, y = two_classes(np.random.default_rng(0))
    monkeypatch.setattr(
        "hardmargin.estimators._base.regularization_paths.memory_bytes", lambda limit: 1
    )
    with pytest.raises(CutError, match="more memory than there is"):
        measure_path([(X, y, X, y)])


def test_nu_that_are_given_up(monkeypatch):
    def within(cut, function, split, nu):
        if nu > cut:
            raise CutError("longer")
        return function(split, nu)

    X, y = two_classes(np.random.default_rng(0))
    monkeypatch.setattr(ijcai07_rivals, "within", within)
    points = nu_errors((X, y, X, y), [0.1, 0.3, 0.5], cut=0.4)
    assert [nu for nu, _, _ in points] == [0.1, 0.3]
    with pytest.raises(CutError, match="longer"):
        nu_errors((X, y, X, y), [0.1, 0.3], cut=0.0)


@pytest.mark.parametrize(
    ("row", "column", "ours", "holds"),
    [
        ("german", "ensemble", 26.0, True),
        ("german", "ensemble", 26.1, False),
        ("web1", "ensemble", 2.5, False),
        ("web1", "Parzen window", 3.3, True),
        ("astro", "rho-SVM", 17.5, False),
        ("adult", "ensemble", 17.5, None),
        ("german", "SVM (BEST)", 20.4, True),
        (f"german, {AT_HAND}", "ensemble", 23.7, None),
        ("waveform", "SVM (LOO)", 12.0, False),
    ],
)
def test_what_holds_of_table_2(row, column, ours, holds):
    cell = Cell(TABLE_2.name, row, column, ours, paper=TABLE_2.numbers.get((row, column)))
    assert TABLE_2.holds(cell) is holds


def test_what_holds_of_table_3():
    numbers = TABLE_3.numbers
    for column, ours, holds in (
        ("iterations", 341.0, True),
        ("iterations", 342.0, False),
        ("seconds", 99.0, None),
        ("seconds of the regularisation path", 99.0, None),
        ("error at the paper's iterations", 3.7, True),
        ("error at the paper's iterations", 3.8, False),
    ):
        cell = Cell(TABLE_3.name, "astro", column, ours, paper=numbers["astro", column])
        assert TABLE_3.holds(cell) is holds


def test_curves_start_at_the_parzen_window_and_fall():
    X, y = two_classes(np.random.default_rng(5))
    curves = list(objective_curves(X, y))
    gamma = 1 / ((X - X.mean(axis=0)) ** 2).sum(axis=1).mean()
    distances = ((X[:, None] - X) ** 2).sum(axis=2)
    first = y @ np.exp(-gamma * distances) @ y / len(y) ** 2
    for _, objectives, _ in curves:
        assert objectives[0] == pytest.approx(first)
        assert (np.diff(objectives) <= 0).all()
    after_one = [objectives[1] for _, objectives, _ in curves[1:]]
    assert after_one == sorted(after_one, reverse=True)
    assert any(overshoots for _, _, overshoots in curves)


def test_figure_1(gathered):
    its = gathered["ijcai07-figure1"]
    assert its.panels == ["cancer", "waveform"]
    assert len(its.curves) == 2 * 5
    for curve in its.curves:
        assert curve.x == tuple(range(1, len(curve.y) + 1))
        assert curve.note in ("", f"overshoots after {len(curve.y)}")


def test_claims_of_figure_1():
    def claims(notes, adaptive):
        curves = [Curve("f", "waveform", "adaptive", (1, 2), (1.0, adaptive))]
        places, values = (1, 2, 3, 4), (1.0, 0.8, 0.5, 0.1)
        for rate, note in notes.items():
            curves.append(Curve("f", "waveform", f"eta={rate}", places, values, note))
        return [claim.found(Found(curves=curves)).holds for claim in FIGURE_1.claims]

    assert claims({0.005: "", 0.02: "overshoots"}, 0.4) == [True, True, True]
    assert claims({0.01: "overshoots", 0.04: ""}, 0.6) == [False, False, False]
    assert [claim.found(Found()).holds for claim in FIGURE_1.claims] == [None, None, None]


def test_figure_2(gathered):
    its = gathered["ijcai07-figure2"]
    assert its.panels == ["adult, error", "adult, seconds"]
    nus = (0.05, 0.15, 0.25, 0.35, 0.45)
    assert [(curve.name, curve.x) for curve in its.curves] == [
        *[("ensemble", nus)] * 2,
        *[("nu-SVM", nus)] * 2,
    ]
    error = gathered["ijcai07-table2"].cell("adult", "ensemble").ours
    assert set(its.curves[0].y) == {error}
    assert None not in [finding.holds for _, finding in its.claims]
    full = tasks_of(FIGURE_2, Settings(full=True))
    assert [task.key for task in full] == ["ijcai07/errors/adult", "ijcai07/nu-svm/adult"]


def test_claims_of_figure_2():
    def claims(error, seconds, rival_seconds):
        curves = []
        for panel, ours, rival in (
            ("adult, error", error, (16.0, 15.0)),
            ("adult, seconds", seconds, rival_seconds),
        ):
            curves.append(Curve("f", panel, "ensemble", (0.1, 0.2), (ours, ours)))
            curves.append(Curve("f", panel, "nu-SVM", (0.1, 0.2), rival))
        return [claim.found(Found(curves=curves)).holds for claim in FIGURE_2.claims]

    assert claims(15.9, 15.0, (10.0, 20.0)) == [True, True, True]
    assert claims(16.1, 15.6, (11.0, 20.0)) == [False, False, False]
    assert [claim.found(Found()).holds for claim in FIGURE_2.claims] == [None, None, None]


@pytest.mark.parametrize(
    ("part", "column", "other", "gaps", "holds"),
    [
        (TABLE_2, "ensemble", "SVM (BEST)", (0.9, 0.9, 1.1), True),
        (TABLE_2, "ensemble", "SVM (BEST)", (0.9, 1.1), False),
        (TABLE_2, "ensemble", "SVM (BEST)", (), None),
        (TABLE_3, "seconds", "seconds of the regularisation path", (-7.2, -8.0, -7.1), True),
        (TABLE_3, "seconds", "seconds of the regularisation path", (-7.2, -7.1), False),
        (TABLE_3, "seconds", "seconds of the regularisation path", (), None),
    ],
)
def test_claims_about_the_regularisation_path(part, column, other, gaps, holds):
    cells = [Cell(part.name, "web1", other, 1.0)]
    for row, gap in zip(("german", "astro", "adult1"), gaps, strict=False):
        cells += [Cell(part.name, row, other, 9.0), Cell(part.name, row, column, 9.0 + gap)]
    assert part.claims[-1].found(Found(cells)).holds is holds


@pytest.mark.parametrize(("rho", "holds"), [(12.5, True), (12.4, False)])
def test_much_better_is_a_quarter_more(rho, holds):
    cells = [
        Cell(TABLE_2.name, row, column, error)
        for row in ("german", "astro")
        for column, error in (("rho-SVM", rho), ("ensemble", 10.0))
    ]
    assert TABLE_2.claims[0].found(Found(cells)).holds is holds
