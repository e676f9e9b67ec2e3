"""Choosing kernel, gamma and visits for the greedy stagewise SVM."""

import functools
from dataclasses import replace

import numpy as np
import pytest
from oracles.greedy_choice import held_out_scores, mean_log_loss
from problems.greedy import four_classes, two_classes
from scipy.spatial.distance import cdist
from sklearn.model_selection import RepeatedStratifiedKFold, TimeSeriesSplit

from hardmargin.kernels import Kernel, column_ends, make_kernel
from hardmargin.monitor import Monitor
from hardmargin.selection import folds as folds_module
from hardmargin.selection import greedy as module
from hardmargin.selection import greedy_trials as trials_module
from hardmargin.selection.folds import Folds, growing_splits, make_folds
from hardmargin.selection.greedy import choose_greedy
from hardmargin.selection.greedy_sources import Source
from hardmargin.selection.greedy_trials import LARGEST_DECAY, VISITS, GreedyTask, Setting, Trials
from hardmargin.selection.relevance import column_scales
from hardmargin.solvers.greedy import GreedyOptions
from hardmargin.solvers.problem import KernelRows, Problem, machines_of

PAIRS = {"two classes": (two_classes, 2), "four classes": (four_classes, 4)}


def problem(name, n=90):
    source, n_classes = PAIRS[name]
    X, y = source()
    return X[:n], y[:n].astype(np.int32), machines_of(n_classes, "ovo")


def source(X, kernel="rbf", **parameters):
    return Source(KernelRows(make_kernel(kernel, X, gamma="spread"), X), **parameters)


def task_of(source, codes, machines, weights=None, **parameters):
    return GreedyTask(Problem(source.values, codes, machines, weights), **parameters)


def choose(X, codes, machines, cv=5, sources=None, **parameters):
    folds = make_folds(cv, X, codes, random_state=np.random.RandomState(0))
    sources = sources or [source(X)]
    task = task_of(sources[0], codes, machines, **parameters)
    return choose_greedy(task, sources, folds, np.random.RandomState(0)), folds


def trials_of(source, codes, machines, folds):
    return Trials(task_of(source, codes, machines), folds, [source])


@functools.cache
def chosen(name):
    return choose(*problem(name))


def splits_of(folds):
    return [
        (np.flatnonzero(train), np.flatnonzero(test))
        for train, test in zip(folds.train, folds.test, strict=True)
    ]


# --- against the oracle --------------------------------------------------------------------------


@pytest.mark.parametrize("name", PAIRS)
def test_log_losses_are_those_of_the_oracle(name):
    X, codes, machines = problem(name)
    choice, folds = chosen(name)
    table = choice.table
    some = np.linspace(0, len(table["gamma"]) - 1, 6).astype(int)
    expected = [
        mean_log_loss(
            Kernel("rbf", table["gamma"][i]),
            X,
            codes,
            machines,
            splits_of(folds)[: table["n_splits"][i]],
            table["max_visits"][i],
        )
        for i in some
    ]
    np.testing.assert_allclose(table["log_loss"][some], expected, rtol=1e-5)


@pytest.mark.parametrize("name", PAIRS)
def test_the_choice_is_the_least_log_loss_tried(name):
    choice, _ = chosen(name)
    best = np.where(choice.table["n_splits"] == 5, choice.table["log_loss"], np.inf).argmin()
    assert choice.kernel.gamma == choice.table["gamma"][best]
    assert choice.max_visits == choice.table["max_visits"][best]


@pytest.mark.parametrize("name", PAIRS)
def test_held_out_scores_are_those_of_the_oracle(name):
    X, codes, machines = problem(name)
    choice, folds = chosen(name)
    held_out = choice.held_out
    for m, (negative, positive) in enumerate(machines):
        expected, labels = held_out_scores(
            choice.kernel, X, codes, negative, positive, splits_of(folds), choice.max_visits
        )
        of_machine = held_out.machines == m
        np.testing.assert_allclose(held_out.scores[of_machine], expected, rtol=1e-6, atol=1e-8)
        np.testing.assert_array_equal(held_out.positive[of_machine], labels)


@pytest.mark.parametrize("name", PAIRS)
def test_the_search_comes_close_to_the_full_grid(name):
    X, codes, machines = problem(name)
    choice, folds = chosen(name)
    trials = trials_of(source(X), codes, machines, folds)
    trials.run([Setting(0, e, v) for e in range(-8, 7) for v in VISITS])
    of_all = choice.table["log_loss"][choice.table["n_splits"] == 5]
    assert of_all.min() <= 1.02 * trials.ranked()[0].log_loss


# --- what is searched ----------------------------------------------------------------------------


def test_every_number_of_visits_is_tried():
    assert set(chosen("two classes")[0].table["max_visits"]) == set(VISITS)


def test_fixed_visits_are_kept():
    choice, _ = choose(*problem("two classes"), visits=(3,))
    assert set(choice.table["max_visits"]) == {3} == {choice.max_visits}


def test_a_fixed_gamma_is_kept():
    X, codes, machines = problem("two classes")
    choice, _ = choose(X, codes, machines, sources=[source(X, tunes_gamma=False)])
    assert set(choice.table["gamma"]) == {choice.kernel.gamma}


@pytest.mark.parametrize("factor", [2.0**-12, 2.0**11])
def test_gamma_is_followed_beyond_the_grid(factor):
    X, codes, machines = problem("two classes")
    gamma = chosen("two classes")[0].kernel.gamma * factor
    folds = make_folds(5, X, codes, random_state=np.random.RandomState(0))
    narrow = Source(KernelRows(Kernel("rbf", gamma), X))
    task = task_of(narrow, codes, machines)
    found = choose_greedy(task, [narrow], folds, np.random.RandomState(0)).kernel.gamma
    assert found == pytest.approx(gamma / factor, rel=0.75)


@pytest.mark.parametrize("kernel", ["laplacian", "poly", "sigmoid"])
def test_gamma_of_other_kernels_is_chosen(kernel):
    X, codes, machines = problem("two classes")
    choice, _ = choose(X, codes, machines, sources=[source(X, kernel)])
    assert len(set(choice.table["gamma"])) > 3


def test_nothing_can_be_chosen_without_splits():
    X, codes, machines = problem("two classes")
    none = np.zeros((0, len(codes)), dtype=bool)
    only = Source(KernelRows(Kernel("rbf", 0.5), X))
    task = task_of(only, codes, machines)
    choice = choose_greedy(task, [only], Folds(none, none), np.random.RandomState(0))
    assert choice.held_out is None
    assert (choice.kernel.gamma, choice.max_visits) == (0.5, 1)


def test_splits_of_one_class_are_of_no_use():
    X, codes, machines = problem("two classes")
    one = np.flatnonzero(codes == 0)
    choice, _ = choose(X, codes, machines, cv=[(one[:20], one[20:])])
    assert choice.held_out is None


def test_first_splits_of_one_class_leave_the_choice_to_the_others():
    X, codes, machines = problem("two classes")
    one, every = np.flatnonzero(codes == 0), np.arange(len(codes))
    of_no_use = [(one[:20], one[20:]), (one[20:], one[:20])]
    choice, _ = choose(X, codes, machines, cv=[*of_no_use, (every[::2], every[1::2])])
    is_judged = np.isfinite(choice.table["log_loss"])
    np.testing.assert_array_equal(is_judged, choice.table["n_splits"] == 3)
    assert set(choice.held_out.rows) == set(every[1::2])


def test_a_machine_without_held_out_rows_of_both_sides_is_left_out():
    X, codes, machines = problem("four classes")
    codes = codes.copy()
    codes[np.flatnonzero(codes == 3)[2:]] = -1  # two rows: never held out
    choice, _ = choose(X, codes, machines)
    judged = {tuple(map(tuple, machines[m])) for m in set(choice.held_out.machines)}
    assert judged == {((0,), (1,)), ((0,), (2,)), ((1,), (2,))}


@pytest.mark.parametrize(
    ("cv", "times"),
    [(RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=0), 2), (4, 1)],
    ids=str,
)
def test_rows_are_held_out_as_often_as_the_splits_say(cv, times):
    X, codes, machines = problem("two classes")
    choice, _ = choose(X, codes, machines, cv=cv)
    assert (np.bincount(choice.held_out.rows, minlength=len(codes)) == times).all()


def test_the_first_rows_of_a_time_series_are_never_held_out():
    X, codes, machines = problem("two classes")
    choice, folds = choose(X, codes, machines, cv=TimeSeriesSplit(3))
    assert set(choice.held_out.rows) == set(np.flatnonzero(folds.test.any(axis=0)))


# --- kernels, views and relevance ----------------------------------------------------------------


def three_of_many(n=240, n_columns=12, seed=0):
    """Two columns matter, the others do not."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_columns))
    return X, (X[:, 0] * X[:, 1] > 0).astype(np.int32), [([0], [1])]


@functools.cache
def scaled_choice():
    X, codes, machines = three_of_many()
    sources = [source(X, name, can_scale=True) for name in ("rbf", "laplacian")]
    return choose(X, codes, machines, sources=sources)


def test_the_better_kernel_is_chosen():
    X, _, machines = problem("two classes")
    distance = np.linalg.norm(X, axis=1)
    outside = (distance > np.median(distance)).astype(np.int32)
    choice, _ = choose(X, outside, machines, sources=[source(X, "linear"), source(X, "rbf")])
    assert choice.kernel.name == "rbf"
    assert set(choice.table["kernel"]) == {"linear", "rbf"}


def test_columns_that_matter_are_found():
    choice, _ = scaled_choice()
    assert set(np.argsort(-choice.relevance)[:2]) == {0, 1}
    scales = column_scales(choice.relevance, column_ends(choice.values.X).has_others)
    np.testing.assert_array_equal(choice.kernel.view.scales, scales)


def test_relevance_is_that_of_the_training_rows_of_a_split():
    X, codes, machines = three_of_many()
    folds = make_folds(5, X, codes, random_state=np.random.RandomState(0))
    found = []
    for test_labels in (codes, 1 - codes):
        labels = np.where(folds.test[0], test_labels, codes).astype(np.int32)
        trials = trials_of(source(X), labels, machines, folds)
        trials.run([Setting(0, 0, 1)])
        found.append(trials.relevance(Setting(0, 0, 1), np.random.RandomState(0)))
    # Other labels of its held-out rows change what its machine is multiplied by, and nothing else.
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-9)
    assert not np.allclose(found[0][1], found[1][1])


def test_trials_keep_only_the_scores_that_are_judged():
    X, codes, machines = problem("four classes")
    folds = make_folds(2, X, codes, random_state=np.random.RandomState(0))
    trials = trials_of(source(X), codes, machines, folds)
    trials.run([Setting(0, 0, 1)])
    # Each row is judged by the machines of its class and each of the others.
    n_scores = sum(len(part.scores) for part in trials._parts.values())
    assert n_scores == len(codes) * codes.max()


def test_held_out_scores_of_scaled_columns_are_those_of_the_oracle():
    X, codes, machines = three_of_many()
    folds = make_folds(5, X, codes, random_state=np.random.RandomState(0))
    relevance = [np.linspace(1.0, 0.1, X.shape[1]), *[np.ones(X.shape[1])] * 4]
    scaled = source(X, relevance=relevance)
    trials = trials_of(scaled, codes, machines, folds)
    trials.run([Setting(0, 1, 1)])
    Z = X * relevance[0]
    gamma = 2 * make_kernel("rbf", Z, gamma="spread").gamma
    [first, *_] = splits_of(folds)
    expected, _ = held_out_scores(Kernel("rbf", gamma), Z, codes, [0], [1], [first], 1)
    found = trials.judge(Setting(0, 1, 1), 1)[0].scores
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-8)


def test_a_handicap_counts_between_sources():
    X, codes, machines = problem("two classes")
    same = [source(X), source(X, view=1)]
    tilted = [source(X, handicap=1.01), source(X, view=1)]
    assert choose(X, codes, machines, sources=same)[0].view == 0
    assert choose(X, codes, machines, sources=tilted)[0].view == 1


# --- weights, threads, time ----------------------------------------------------------------------


def test_rows_of_weight_zero_are_absent():
    X, codes, machines = problem("two classes")
    weights = np.where(np.arange(len(codes)) % 5 == 0, 0.0, 1.0)
    kept = weights > 0
    absent, _ = choose(X[kept], codes[kept], machines)
    base = make_kernel("rbf", X[kept], gamma="spread")
    hidden = np.where(kept, codes, -1).astype(np.int32)
    folds = make_folds(5, X, hidden, random_state=np.random.RandomState(0))
    every = Source(KernelRows(base, X))
    task = task_of(every, hidden, machines, weights)
    present = choose_greedy(task, [every], folds, np.random.RandomState(0))
    np.testing.assert_allclose(present.table["log_loss"], absent.table["log_loss"], rtol=1e-9)


@pytest.mark.parametrize("name", PAIRS)
def test_threads_change_nothing(name):
    one, _ = chosen(name)
    two, _ = choose(*problem(name), options=GreedyOptions(n_threads=2))
    for key in one.table:
        np.testing.assert_array_equal(one.table[key], two.table[key])
    np.testing.assert_array_equal(one.held_out.scores, two.held_out.scores)


@pytest.mark.parametrize("n_threads", [1, 2])
def test_no_time_leaves_no_choice(n_threads):
    choice, _ = choose(
        *problem("two classes"),
        monitor=Monitor(max_seconds=0.0),
        options=GreedyOptions(n_threads=n_threads),
    )
    assert choice.is_cut_short
    assert choice.held_out is None


def test_a_time_limit_keeps_what_was_found():
    heard = []
    monitor = Monitor(60.0, [tried_into(heard)], clock=lambda: 10.0 * len(heard))
    choice, _ = choose(*problem("two classes"), monitor=monitor)
    assert choice.is_cut_short
    assert choice.held_out is not None


def test_listeners_hear_what_was_tried():
    heard = []
    monitor = Monitor(listeners=[tried_into(heard)])
    choice, _ = choose(*problem("two classes"), monitor=monitor)
    assert [event.value for event in heard] == choice.table["log_loss"].tolist()


def test_listeners_can_tell_stages_from_what_was_tried(monkeypatch):
    solve, heard = trials_module.greedy.solve, []

    def solve_aloud(problem, options, monitor):
        monitor.report(0, 1, 0.5)
        return solve(problem, options, monitor)

    monkeypatch.setattr(trials_module.greedy, "solve", solve_aloud)
    monitor = Monitor(listeners=[heard.append]).part("log-loss")
    choose(*problem("two classes"), monitor=monitor)
    names = {bool(event.detail): event.what for event in heard}
    assert names == {True: "log-loss", False: "largest open step"}


def test_a_listener_that_ends_the_search_keeps_what_was_found():
    choice, _ = choose(*problem("two classes"), monitor=Monitor(listeners=[ends_choosing]))
    assert choice.is_cut_short
    assert choice.held_out is not None


def tried_into(heard):
    """Make a listener that notes what was tried, but not the stages on the way."""
    return lambda event: heard.append(event) if event.detail else None


def ends_choosing(event):
    return bool(event.detail)


# --- many rows -----------------------------------------------------------------------------------


@pytest.fixture
def small_limits(monkeypatch):
    """Levels as they are for many rows, at a hundredth of the size."""
    monkeypatch.setattr(folds_module, "MAX_SEARCHED_ROWS", 60)
    monkeypatch.setattr(folds_module, "SUBSAMPLE_ROWS", 60)
    monkeypatch.setattr(folds_module, "MAX_FOLDED_ROWS", 300)
    monkeypatch.setattr(folds_module, "LEAST_LARGEST_ROWS", 100)
    monkeypatch.setattr(folds_module, "MAX_HELD_OUT_ROWS", 100)


def large(n=1500, seed=0):
    """A narrow pattern: the more rows, the narrower the best kernel."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, 2))
    noise = rng.random(n) < 0.05
    return X, ((np.floor(4 * X).sum(axis=1) % 2 > 0) ^ noise).astype(np.int32)


def test_some_rows_are_searched_and_all_decide(small_limits):
    X, codes = large(250)
    choice, folds = choose(X, codes, [([0], [1])])
    assert choice.table["n_rows"].tolist() == sorted(choice.table["n_rows"])
    assert choice.table["n_rows"][0] < 100
    assert choice.table["n_rows"][-1] == 250
    assert len(choice.held_out.rows) == folds.test[: folds_module.SPLITS_TO_JUDGE].sum()


def test_many_rows_are_followed_on_growing_parts(small_limits):
    X, codes = large()
    choice, _ = choose(X, codes, [([0], [1])])
    sizes = np.unique(choice.table["n_rows"])
    assert len(sizes) == 3
    assert sizes[-1] <= 0.4 * len(codes) + 102  # and what is held out
    assert len(choice.held_out.rows) <= 102


def test_gamma_grows_with_the_rows(small_limits):
    X, codes = large()
    table = choose(X, codes, [([0], [1])])[0].table
    best = {
        n: table["gamma"][table["n_rows"] == n][table["log_loss"][table["n_rows"] == n].argmin()]
        for n in np.unique(table["n_rows"])
    }
    first, *_, last = best.values()
    assert last > first


def test_more_visits_are_dropped_where_they_are_slow(small_limits, monkeypatch):
    monkeypatch.setattr(module, "MAX_COST", 0.0)
    monkeypatch.setattr(module, "MAX_WORK", 0.0)
    X, codes = large()
    choice, _ = choose(X, codes, [([0], [1])])
    assert choice.max_visits == 1
    assert set(choice.table["max_visits"][choice.table["n_rows"] > 100]) == {1}


def test_views_are_compared_on_many_rows(small_limits):
    X, codes = large()
    rng = np.random.default_rng(1)
    wide = np.hstack([X, rng.uniform(size=(len(X), 3))])
    choice, _ = choose(X, codes, [([0], [1])], sources=[source(wide), source(X, view=1)])
    assert choice.view == 1
    assert set(choice.table["view"]) == {0, 1}


def test_subsamples_keep_rows_of_every_class():
    codes = np.repeat([0, 1, 2], [5000, 60, 3]).astype(np.int32)
    rank = folds_module.random_ranks(codes, np.random.RandomState(0))
    few, more = (folds_module.subsample(codes, rank, n) for n in (200, 1000))
    assert np.bincount(codes[few]).tolist() == [198, 20, 3]
    assert not (few & ~more).any()


# --- narrow kernels ------------------------------------------------------------------------------


def noise(n, n_columns, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, n_columns))
    return X, random.integers(0, 2, n).astype(np.int32), machines_of(2, "ovo")


def nearest(kernel, X):
    """Median distance to the nearest other row."""
    D = cdist(X, X, "cityblock" if kernel == "laplacian" else "sqeuclidean")
    return np.median(np.where(D > 0, D, np.inf).min(axis=1))


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "matern32", "matern52"])
@pytest.mark.parametrize("n_columns", [2, 20, 200])
def test_no_gamma_only_looks_up_the_nearest_row(kernel, n_columns):
    X, codes, machines = noise(60, n_columns)
    sources = [source(X, kernel)]
    choice, _ = choose(X, codes, machines, sources=sources)
    gammas, first = choice.table["gamma"], sources[0].values.kernel.gamma
    allowed = max(LARGEST_DECAY / nearest(kernel, X), first)
    assert gammas.max() <= allowed
    assert 2 * gammas.max() > min(allowed, 16 * first)  # those below are tried


def test_scaled_columns_have_a_bound_of_their_own():
    X, codes, machines = noise(60, 20)
    relevance = np.where(np.arange(20) < 2, 1.0, 0.02)
    folds = make_folds(5, X, codes, random_state=np.random.RandomState(0))
    gammas = []
    for scaled in (source(X), source(X, relevance=[relevance])):
        trials = trials_of(scaled, codes, machines, folds)
        trials.run([Setting(0, 16, 1)], n_splits=1)
        gammas.append(trials.lines[0][3])
    plain, of_scaled = gammas
    assert LARGEST_DECAY / 2 < plain * nearest("rbf", X) <= LARGEST_DECAY
    assert LARGEST_DECAY / 2 < of_scaled * nearest("rbf", X * relevance) <= LARGEST_DECAY


def test_a_gamma_that_is_too_narrow_to_begin_with_may_only_grow_wider():
    X, codes, machines = problem("two classes")
    first = source(X)
    kernel = replace(first.values.kernel, gamma=1e3 * first.values.kernel.gamma)
    narrow = replace(first, values=replace(first.values, kernel=kernel))
    choice, _ = choose(X, codes, machines, sources=[narrow])
    assert choice.table["gamma"].max() == kernel.gamma
    assert choice.kernel.gamma < kernel.gamma


def test_relevance_above_the_sample_is_that_of_the_same_split(small_limits):
    X, codes, _ = noise(250, 2)
    folds = make_folds(5, X, codes, random_state=np.random.RandomState(0))
    random = np.random.RandomState(0)
    levels = list(growing_splits(folds, codes, random))
    assert len(levels) > 2
    for splits in levels:
        numbers = splits.numbers or range(folds.n_splits)
        for number, test in zip(numbers, splits.test, strict=True):
            assert not (test & folds.train[number]).any()
            assert not (test & levels[0].train[number]).any()


def test_scales_above_the_sample_are_those_of_the_number_of_the_split():
    X, codes, machines = noise(60, 3)
    relevance = [np.roll([1.0, 0.5, 0.1], k) for k in range(5)]
    folds = make_folds(5, X, codes, random_state=np.random.RandomState(0))
    scaled = source(X, relevance=relevance)
    later = Folds(folds.train[[3, 1]], folds.test[[3, 1]], numbers=(3, 1))
    found = trials_of(scaled, codes, machines, later)
    of_all = trials_of(scaled, codes, machines, folds)
    setting = Setting(0, 0, 1)
    found.run([setting])
    of_all.run([setting])
    scores = of_all.judge(setting, 5).held_out
    for split in (3, 1):
        rows = np.flatnonzero(folds.test[split])
        expected = [scores.scores[scores.rows == row] for row in rows]
        held = found.judge(setting, 2).held_out
        np.testing.assert_array_equal([held.scores[held.rows == row] for row in rows], expected)
