"""compress on mixtures of experts: every cell keeps a share of its members."""

import functools
import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import hardmargin.cells.experts as experts
import hardmargin.cells.training as training
import hardmargin.reduction as reduction
import hardmargin.selection.plan as plan
from hardmargin import EnsembleSVC, compress
from hardmargin.monitor import Monitor
from hardmargin.reduction import cells, expansion

# Some tests compress further than is sensible.
pytestmark = pytest.mark.filterwarnings("ignore:.* support rows are few for this model")

N_TRAIN = 900


@functools.cache
def problem(n_classes=2):
    """Many clusters, each of one class: smooth enough to be compressed."""
    rng = np.random.default_rng(n_classes)
    centres = 2 * rng.normal(size=(6 * n_classes, 4))
    cluster = rng.integers(len(centres), size=N_TRAIN + 400)
    X = centres[cluster] + 0.7 * rng.normal(size=(len(cluster), 4))
    y = np.array(["a", "b", "c", "d"])[cluster % n_classes]
    return 100 * X[:N_TRAIN] + 7, y[:N_TRAIN], 100 * X[N_TRAIN:] + 7


def fitted(X, y, **params):
    params = {"max_cell_rows": 150, "n_trees": 2, "cv": 3, **params}
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        patch.setattr(plan, "MAX_STORED_ROWS", 180)
        patch.setattr(training, "FIRST_SAMPLE_ROWS", 130)
        patch.setattr(experts, "LEAST_CUT_ROWS", 200)
        return EnsembleSVC(**params).fit(X, y)


@functools.cache
def model(n_classes=2):
    clf = fitted(*problem(n_classes)[:2])
    assert len(clf._experts_.layers) == 2  # otherwise these tests would show little
    assert clf._experts_.whole is not None
    return clf


@functools.cache
def compressed(n_classes=2, **sizes):
    return compress(model(n_classes), **sizes)


def change(small, clf, rows):
    before, after = (c._scores(c._margins(c._check_rows(rows))) for c in (clf, small))
    return np.sqrt((((after - before) ** 2).mean(axis=0) / (before**2).mean(axis=0)).mean())


BOTH = pytest.mark.parametrize("n_classes", [2, 4])


@BOTH
def test_about_as_many_rows_as_asked_for(n_classes):
    clf, (X, y, new) = model(n_classes), problem(n_classes)
    small = compressed(n_classes, n_support=400)
    assert type(small) is EnsembleSVC
    assert 280 < len(small.support_) <= 480
    assert np.isin(small.support_, clf.support_).all()
    counts = [(y[small.support_] == label).sum() for label in clf.classes_]
    np.testing.assert_array_equal(small.n_support_, counts)
    assert (small.predict(new) == clf.predict(new)).mean() > 0.93
    np.testing.assert_allclose(small.predict_proba(X).sum(axis=1), 1.0)


@BOTH
@pytest.mark.parametrize("tolerance", [0.15, 0.05])
def test_a_tolerance_is_kept_on_new_rows_too(n_classes, tolerance):
    clf, new = model(n_classes), problem(n_classes)[2]
    small = compressed(n_classes, tolerance=tolerance)
    assert small.compression_.relative_change <= tolerance
    assert change(small, clf, new) < 1.5 * tolerance
    assert len(small.support_) < len(clf.support_)
    assert (small.predict(new) == clf.predict(new)).mean() > 0.9


def test_chosen_members_are_better_than_random_ones(monkeypatch):
    clf, new = model(), problem()[2]
    chosen = change(compressed(n_support=200), clf, new)
    monkeypatch.setattr(
        cells,
        "forward_order",
        lambda gram, _, n: np.random.default_rng(0).permutation(len(gram))[:n],
    )
    assert chosen < 0.8 * change(compress(clf, n_support=200), clf, new)


def test_a_smaller_tolerance_keeps_more_rows():
    sizes = [len(compressed(tolerance=t).support_) for t in (0.15, 0.05)]
    assert sizes[0] < sizes[1]


def test_a_tolerance_that_is_not_reached():
    n = len(model().support_)
    message = f"tolerance=1e-06 is not reached with fewer than all {n}"
    with pytest.warns(UserWarning, match=message):
        same = compress(model(), tolerance=1e-6)
    new = problem()[2]
    np.testing.assert_array_equal(same.decision_function(new), model().decision_function(new))


@pytest.fixture
def little_is_affordable(monkeypatch):
    """As for many rows: experts may keep a sixteenth and an eighth."""
    monkeypatch.setattr(cells, "_affordable", lambda *_: cells.SHARES[:2])


@pytest.mark.usefixtures("little_is_affordable")
def test_shares_that_take_longer_than_the_fit_are_left_out():
    new, n = problem()[2], len(model().support_)
    message = rf"tolerance=0.03 probably takes about \d+ or more of the {n} .* \d+ rows change .*%"
    with pytest.warns(UserWarning, match=message):
        same = compress(model(), tolerance=0.03)
    np.testing.assert_array_equal(same.decision_function(new), model().decision_function(new))
    assert f"none: all {n}" in repr(same.compression_)
    assert len(compress(model(), tolerance=0.03, max_time=1e6).support_) < n


def test_larger_shares_take_longer_and_the_first_is_always_tried(monkeypatch):
    mixture = model()._experts_
    costs = [cells._operations(mixture.layers[0], share) for share in cells.SHARES]
    assert costs == sorted(costs)
    assert cells._affordable(mixture, None) == cells.SHARES  # of few rows
    monkeypatch.setattr(expansion, "operations_of_fits", lambda *_: 0.0)
    monkeypatch.setattr(expansion, "allowed_operations", lambda _: 0.0)
    assert cells._affordable(mixture, None) == cells.SHARES[:1]


def test_one_search_of_the_vote_on_a_sample_serves_all_shares(monkeypatch):
    begun = []
    search = expansion.Nested
    monkeypatch.setattr(expansion, "Nested", lambda *args: begun.append(1) or search(*args))
    small = compress(model(), tolerance=0.05)
    assert len(small.support_) > 900 / 16
    assert len(begun) == 1


@BOTH
def test_the_original_is_not_changed(n_classes):
    clf, new = model(n_classes), problem(n_classes)[2]
    before = clf.decision_function(new)
    compress(clf, n_support=300)  # SciPy notes in sparse arrays what it has found out about them
    state = pickle.dumps(clf)
    compress(clf, n_support=300)
    assert pickle.dumps(clf) == state
    np.testing.assert_array_equal(clf.decision_function(new), before)


@BOTH
def test_it_is_smaller_and_can_be_saved(n_classes):
    clf, new = model(n_classes), problem(n_classes)[2]
    small = compress(clf, n_support=200)
    saved = pickle.dumps(small)
    assert len(saved) < 0.6 * len(pickle.dumps(clf))
    np.testing.assert_array_equal(
        pickle.loads(saved).decision_function(new), small.decision_function(new)
    )


def test_what_it_costs():
    clf, (X, _, _) = model(), problem()
    cost = compressed(n_support=300).compression_
    assert cost.n_support_before == len(clf.support_) > 890
    assert cost.n_measured == 900
    assert cost.speedup > 2
    given = compress(clf, n_support=300, X=X[:123]).compression_
    assert given.n_measured == 123


def test_training_rows_are_found_from_scaled_ones():
    clf, (X, _, _) = model(), problem()
    found = cells._training_rows(clf, np.random.RandomState(0))
    np.testing.assert_allclose(found, X, atol=1e-3)


def test_it_can_be_compressed_again():
    clf, (_, y, new) = model(), problem()
    once = compressed(n_support=400)
    twice = compress(once, n_support=300)
    assert np.isin(twice.support_, once.support_).all()
    assert len(twice.support_) < len(once.support_)
    assert twice.n_support_[0] == (y[twice.support_] == "a").sum()
    assert (twice.predict(new) == clf.predict(new)).mean() > 0.9


def test_nothing_to_do():
    n = len(model().support_)
    assert f"none: all {n}" in repr(compress(model(), n_support=n).compression_)


def test_too_few_rows_for_all_cells():
    with pytest.warns(UserWarning, match="n_support=10 is too few for all cells"):
        small = compress(model(), n_support=10)
    assert len(small.support_) > 10
    assert np.diff(small._experts_.layers[0].starts).min() <= cells.LEAST_MEMBERS


@pytest.mark.filterwarnings("default:.* support rows are few for this model")
def test_changed_predictions_warn(monkeypatch):
    monkeypatch.setattr(reduction, "MANY_CHANGES", 0.01)
    with pytest.warns(UserWarning, match="200 support rows are few for this model: .*% of the pre"):
        compress(model(4), n_support=200)


def test_one_result_for_any_number_of_threads():
    clf, new = model(), problem()[2]
    one, other = (
        compress(pickle.loads(pickle.dumps(clf)).set_params(n_jobs=n_jobs), n_support=300)
        for n_jobs in (1, 2)
    )
    np.testing.assert_array_equal(one.support_, other.support_)
    np.testing.assert_array_equal(one.decision_function(new), other.decision_function(new))


def test_sparse_rows():
    X, y, new = (np.where(np.abs(a) > 60, a, 0) if a.ndim > 1 else a for a in problem())
    clf = fitted(sp.csr_array(X), y)
    small = compress(clf, n_support=450)
    assert sp.issparse(small._experts_.support)
    assert len(small.support_) < 600
    new = sp.csr_array(new)
    assert change(small, clf, new) < 0.05
    assert (small.predict(new) == clf.predict(new)).mean() > 0.9


def test_experts_without_trees():
    clf, new = pickle.loads(pickle.dumps(model())), problem()[2]
    mixture = clf._experts_
    clf._experts_ = experts.replace(mixture, layers=[], weights=mixture.weights[-1:])
    at = np.searchsorted(clf.support_, clf._experts_.support_rows())
    codes = (problem()[1] == "b").astype(int)[clf.support_[at]]
    clf.support_, clf.n_support_ = clf.support_[at], np.bincount(codes)
    clf._by_class_ = np.argsort(codes, kind="stable")
    small = compress(compress(clf, n_support=75), n_support=50)
    assert len(small.support_) == 50
    assert change(small, clf, new) < 0.2


@pytest.mark.parametrize(("n_looks", "found"), [(1, "is unchanged"), (40, "has .* of .* rows")])
def test_out_of_time_it_is_the_best_model_so_far(n_looks, found, monkeypatch):
    looks = iter([0.0] * n_looks)
    clock = functools.partial(Monitor, clock=lambda: next(looks, 2.0))
    monkeypatch.setattr(reduction, "Monitor", clock)
    monkeypatch.setattr(cells._Vote, "of", lambda vote, _: vote._whole)
    with pytest.warns(ConvergenceWarning, match=f"max_time ended the search .* {found}"):
        small = compress(model(), tolerance=1e-8, max_time=1.0)
    n_before = len(model().support_)
    assert (len(small.support_) < n_before) == (n_looks > 1)


def test_in_a_pipeline():
    X, y, new = problem()
    pipeline = make_pipeline(StandardScaler(), fitted(StandardScaler().fit_transform(X), y))
    pipeline[0].fit(X)
    small = compress(pipeline, n_support=400, X=new)
    assert small[-1].compression_.n_measured == 400
    assert (small.predict(new) == pipeline.predict(new)).mean() > 0.93


def test_memory_is_limited():
    clf = pickle.loads(pickle.dumps(model())).set_params(memory_limit="200KB")
    with pytest.raises(ValueError, match=r"A cell of \d+ rows needs .* raise the classifier's mem"):
        compress(clf, n_support=300)
    with pytest.warns(UserWarning, match="is not reached"):
        compress(clf, tolerance=0.2)
