"""Machines of cells: probabilities, rows held out, and cells where little can be learned."""

import numpy as np
import pytest
import scipy.sparse as sp
from oracles.cells import expand_oracle
from problems.cells import cell_rows, cell_rules, halves, many_rows, one_cell
from problems.clock import Clock
from scipy.special import expit

from hardmargin.cells import LayerInTraining
from hardmargin.cells.experts import CANDIDATES
from hardmargin.cells.machines import LEAST_PROBABILITY, LEAST_ROWS, learn
from hardmargin.kernels import Kernel
from hardmargin.monitor import Monitor
from hardmargin.selection.folds import make_folds
from hardmargin.selection.vote import VoteResult, matrix_votes
from hardmargin.solvers.problem import Problem
from hardmargin.solvers.staged_vote import StagedVoteOptions

FEW = (("rbf", 1.0), ("laplacian", 1.0))
MULTI_CLASS = pytest.mark.parametrize("multi_class", ["ovo", "ovr"])


def learned(rows, cuts=None, candidates=FEW, n_jobs=None, n_classes=None, **rules):
    """A layer of which all cells are learned."""
    n_features = rows.X.shape[1]
    n_classes = int(rows.codes.max()) + 1 if n_classes is None else n_classes
    cuts = one_cell(n_features) if cuts is None else cuts
    layer = LayerInTraining(cuts, rows, cell_rules(n_classes, n_features, **rules), n_jobs)
    layer.learn(range(cuts.n_cells), candidates, Monitor())
    return layer


def probabilities(layer, rows, queries=None):
    logs = layer.finished().log_probabilities(rows.X if queries is None else queries, rows.X)
    return np.exp(logs)


def all_held_logs(layer, n_rows):
    return layer.held_logs(np.arange(n_rows))


def held_out_loss(layer, codes):
    return -all_held_logs(layer, len(codes))[np.arange(len(codes)), codes].mean()


def far_apart(n_classes, n_each=30, seed=0):
    random = np.random.default_rng(seed)
    codes = np.repeat(np.arange(n_classes), n_each)
    centers = 6.0 * np.column_stack([np.arange(n_classes) % 4, np.arange(n_classes) // 4])
    return centers[codes] + random.normal(size=(len(codes), 2)), codes


# --- probabilities --------------------------------------------------------------------------------


@MULTI_CLASS
@pytest.mark.parametrize("n_classes", [2, 3, 9])
def test_probabilities_sum_to_one(n_classes, multi_class):
    rows = cell_rows(*far_apart(n_classes))
    layer = learned(rows, halves(2, 4.0), multi_class=multi_class)
    for found in (probabilities(layer, rows), np.exp(all_held_logs(layer, len(rows.codes)))):
        atol = 2 * n_classes * LEAST_PROBABILITY
        np.testing.assert_allclose(found.sum(axis=1), 1.0, atol=atol)
        assert found.min() > 0.99 * LEAST_PROBABILITY


@MULTI_CLASS
@pytest.mark.parametrize("n_classes", [2, 3, 12])
def test_classes_are_told_apart(n_classes, multi_class):
    rows = cell_rows(*far_apart(n_classes))
    new, codes = far_apart(n_classes, seed=1)
    found = probabilities(learned(rows, multi_class=multi_class), rows, new.astype(np.float32))
    assert (found.argmax(axis=1) == codes).mean() > 0.97


@MULTI_CLASS
def test_a_cell_tells_its_most_frequent_classes_apart(monkeypatch, multi_class):
    monkeypatch.setattr("hardmargin.cells.machines.MOST_CLASSES", 3)
    X, codes = far_apart(5)
    kept = (codes % 2 == 0) | (np.arange(len(codes)) % 3 == 0)
    rows = cell_rows(X[kept], codes[kept])
    layer = learned(rows, multi_class=multi_class)
    assert np.flatnonzero(layer.finished().is_learned[0]).tolist() == [0, 2, 4]
    np.testing.assert_allclose(probabilities(layer, rows).sum(axis=1), 1.0, atol=1e-3)


def test_two_classes_are_those_of_a_vote_on_the_same_kernel_matrices():
    X, codes = many_rows(200)
    rows, folds = cell_rows(X, codes), make_folds(5, None, codes.astype(np.int32), random_state=0)
    layer = learned(rows, folds=folds)
    own = layer.finished()
    seen = (rows.X - rows.X.mean(axis=0)) / rows.X.std(axis=0)
    kernels = [
        Kernel(name, gamma=float(own.gammas[0, own.kernels.index(name)])) for name in own.kernels
    ]
    [vote] = matrix_votes(
        kernels,
        Problem(seen, rows.codes, [([0], [1])], rows.weights),
        folds,
        StagedVoteOptions(compact=True),
        Monitor(),
        dtype="float32",
    )
    scores = VoteResult(kernels, [vote]).held_out
    margins = scores.scores + vote.intercept
    expected = np.empty(200)
    expected[scores.rows] = expit(vote.slope * margins)
    np.testing.assert_allclose(np.exp(all_held_logs(layer, len(codes))[:, 1]), expected, atol=2e-3)


def test_new_rows_get_the_sums_of_the_oracle():
    X, codes = many_rows(300)
    rows, queries = cell_rows(X, codes), many_rows(50, seed=1)[0].astype(np.float32)
    layer = learned(rows, halves(4)).finished()
    cells = layer.cuts.route(queries)
    metrics = {"rbf": "sqeuclidean", "laplacian": "cityblock"}
    members = [slice(*layer.starts[c : c + 2]) for c in range(2)]
    coefficients = [
        np.vstack([layer.coefficients(k, own).toarray().T for own in members])
        for k in range(len(layer.kernels))
    ]
    expected = np.empty(50)
    for c in range(2):
        sums = expand_oracle(
            [metrics[name] for name in layer.kernels],
            layer.gammas,
            queries[cells == c],
            rows.X,
            layer.members,
            layer.starts,
            layer.means,
            layer.scales,
            coefficients,
            c,
        )
        expected[cells == c] = expit(layer.slopes[c, 0] * (sums[:, 0] + layer.intercepts[c, 0]))
    found = np.exp(layer.log_probabilities(queries, rows.X)[:, 1])
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_the_scales_of_columns_do_not_matter_within_a_cell():
    X, codes = many_rows(200)
    scale = 2.0 ** np.array([-6, 0, 5, 2])
    plain, scaled = cell_rows(X, codes), cell_rows(X * scale, codes)
    np.testing.assert_allclose(
        probabilities(learned(scaled), scaled), probabilities(learned(plain), plain), atol=1e-4
    )


# --- rows held out --------------------------------------------------------------------------------


@MULTI_CLASS
@pytest.mark.parametrize("n_classes", [2, 3])
def test_labels_of_noise_cannot_be_learned(n_classes, multi_class):
    random = np.random.default_rng(0)
    X, codes = random.normal(size=(800, 4)), random.integers(n_classes, size=800)
    layer = learned(cell_rows(X, codes), halves(4), CANDIDATES, multi_class=multi_class)
    assert held_out_loss(layer, codes) == pytest.approx(np.log(n_classes), abs=0.03)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_held_out_loss_is_that_of_new_rows(n_classes):
    X, codes = many_rows(900, n_classes)
    new, new_codes = many_rows(3000, n_classes, seed=1)
    rows = cell_rows(X, codes)
    layer = learned(rows, halves(4), CANDIDATES)
    own = probabilities(layer, rows, new.astype(np.float32))[np.arange(3000), new_codes]
    assert held_out_loss(layer, codes) == pytest.approx(-np.log(own).mean(), abs=0.06)


def test_given_splits_hold_groups_out_together():
    random = np.random.default_rng(0)
    centers, labels = random.normal(size=(150, 3)), random.integers(2, size=150)
    X = np.repeat(centers, 4, axis=0) + 1e-3 * random.normal(size=(600, 3))
    codes, fold = np.repeat(labels, 4).astype(np.int32), np.repeat(np.arange(150) % 4, 4)
    splits = [(np.flatnonzero(fold != f), np.flatnonzero(fold == f)) for f in range(4)]
    folds = make_folds(splits, X, codes)
    alone, together = (
        held_out_loss(learned(cell_rows(X, codes), None, CANDIDATES, folds=f), codes)
        for f in (None, folds)
    )
    assert alone < 0.2
    assert together > 0.6


def test_rows_that_are_never_held_out_have_the_shares_of_their_cell():
    X, codes = many_rows(200)
    folds = make_folds([(np.arange(100), np.arange(100, 200))], X, codes.astype(np.int32))
    held = np.exp(all_held_logs(learned(cell_rows(X, codes), folds=folds), len(codes)))
    counts = np.bincount(codes)
    np.testing.assert_allclose(held[:100], np.tile((counts + 0.5) / 201, (100, 1)), rtol=1e-5)
    assert len(np.unique(held[100:, 1])) > 90


# --- cells with little to learn -------------------------------------------------------------------


def test_a_cell_of_one_class_has_its_share():
    X, codes = many_rows(200)
    codes = np.where(X[:, 0] > 0, 1, codes)
    rows = cell_rows(X, codes)
    found = probabilities(learned(rows, halves(4)), rows)
    n = (X[:, 0] > 0).sum()
    np.testing.assert_allclose(found[X[:, 0] > 0, 1], (n + 0.5) / (n + 1), rtol=1e-5)


@pytest.mark.parametrize("n_rare", [1, LEAST_ROWS - 1])
def test_a_rare_class_has_its_share_of_a_cell(n_rare):
    X, codes = many_rows(200)
    codes = np.where(np.arange(200) < n_rare, 2, codes)
    rows = cell_rows(X, codes)
    found = probabilities(learned(rows), rows)
    np.testing.assert_allclose(found[:, 2], (n_rare + 1 / 3) / 201, rtol=1e-4)
    assert (found.argmax(axis=1) == codes).mean() > 0.7


def test_a_class_that_a_cell_has_not_seen_is_possible_there():
    X, codes = far_apart(3)
    rows = cell_rows(X, codes)
    found = probabilities(learned(rows, halves(2, 9.0)), rows)
    assert (found[codes < 2, 2] > 1e-4).all()
    assert (found[codes < 2, 2] < 0.02).all()


@pytest.mark.parametrize("n_rare", [LEAST_ROWS, LEAST_ROWS + 1])
def test_a_class_of_equal_rows_is_no_obstacle(n_rare):
    X, codes = many_rows(200)
    X, codes = X.copy(), np.where(np.arange(200) < n_rare, 1, 0)
    X[:n_rare] = 1.5
    rows = cell_rows(X, codes)
    found = probabilities(learned(rows), rows)
    assert np.isfinite(found).all()


def test_equal_rows_have_the_shares_of_the_classes():
    rows = cell_rows(np.full((200, 3), 2.0), np.arange(200) % 4 == 0)
    found = probabilities(learned(rows), rows)
    np.testing.assert_allclose(found[:, 1], 0.25, atol=0.02)


def test_a_cell_that_is_not_learned_has_shares():
    X, codes = many_rows(200)
    rows = cell_rows(X, codes)
    layer = LayerInTraining(halves(4), rows, cell_rules(2, 4))
    layer.learn([0], FEW, Monitor())
    found = probabilities(layer, rows)[:, 1]
    assert len(np.unique(found[X[:, 0] > 0])) == 1
    assert len(np.unique(found[X[:, 0] <= 0])) > 50


def test_without_time_nothing_is_learned():
    X, codes = many_rows(200)
    rows = cell_rows(X, codes)
    spent = Monitor(1e-9)
    assert learn(rows, 0, FEW, cell_rules(2, 4), None, spent) is None


def test_a_cell_that_could_not_be_divided_is_learned_from_some_rows():
    X, codes = many_rows(600)
    rows = cell_rows(X, codes)
    layer = learned(rows, max_rows=150)
    assert len(layer.finished().members) <= 150
    assert (probabilities(layer, rows).argmax(axis=1) == codes).mean() > 0.75


# --- weights --------------------------------------------------------------------------------------


def test_rows_of_weight_zero_or_without_a_class_do_not_matter():
    X, codes = many_rows(240)
    weights = np.where(np.arange(240) % 4 == 1, 0.0, 1.0)
    kept = weights > 0
    weighted = cell_rows(X, np.where(kept, codes, -1), weights)
    absent = cell_rows(X[kept], codes[kept])
    queries = many_rows(50, seed=1)[0].astype(np.float32)
    np.testing.assert_allclose(
        probabilities(learned(weighted, halves(4)), weighted, queries),
        probabilities(learned(absent, halves(4)), absent, queries),
        atol=1e-5,
    )


def test_weights_move_probabilities():
    random = np.random.default_rng(0)
    X, codes = random.normal(size=(300, 3)), np.arange(300) % 2
    rows = cell_rows(X, codes, np.where(codes == 1, 3.0, 1.0))
    found = probabilities(learned(rows), rows)
    assert found[:, 1].mean() == pytest.approx(0.75, abs=0.05)


# --- threads, and sparse rows ---------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [2, 3])
def test_threads_change_nothing(n_classes):
    rows = cell_rows(*many_rows(400, n_classes))
    one, two = (learned(rows, halves(4), n_jobs=n) for n in (1, 2))
    np.testing.assert_array_equal(*(all_held_logs(layer, len(rows.codes)) for layer in (one, two)))
    np.testing.assert_array_equal(probabilities(one, rows), probabilities(two, rows))


@MULTI_CLASS
@pytest.mark.parametrize("n_classes", [2, 3])
def test_sparse_rows_are_like_dense_ones_that_keep_their_scale(n_classes, multi_class):
    X, codes = many_rows(400, n_classes)
    dense = cell_rows(np.maximum(X, 0), codes)
    sparse = dense._replace(X=sp.csr_array(dense.X))
    kept = {"is_two_valued": np.ones(4, dtype=bool), "multi_class": multi_class}
    np.testing.assert_allclose(
        probabilities(learned(sparse, halves(4, 0.1), **kept), sparse),
        probabilities(learned(dense, halves(4, 0.1), **kept), dense),
        atol=0.03,  # rounding grows along a path
    )


def test_members_are_rows_that_take_part():
    X, codes = many_rows(300)
    codes = np.where(np.arange(300) % 3 == 0, -1, codes)
    rows = cell_rows(X, codes)
    members = learned(rows, halves(4)).finished().members
    assert (codes[members] >= 0).all()
    assert len(np.unique(members)) == len(members)


@pytest.mark.parametrize("is_late", [True, False])
def test_cells_for_which_there_is_no_time_are_skipped(is_late):
    X, codes = many_rows(200)
    X = np.column_stack(
        [np.where(np.arange(200) < 5, 1.0, -1.0), X[:, 1:]]
    )  # a cell of too few rows for a machine
    rows, cuts = cell_rows(X, codes), halves(4)
    layer = LayerInTraining(cuts, rows, cell_rules(2, 4), None)
    clock = Clock()
    learn_in_time = layer._learn

    def learn_and_wait(*arguments):
        found = learn_in_time(*arguments)
        clock.now = 200.0 if is_late else 0.0
        return found

    layer._learn = learn_and_wait
    layer.learn(range(2), FEW, Monitor(100.0, clock=clock))
    assert layer.skipped == ({1} if is_late else set())
