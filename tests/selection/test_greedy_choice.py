"""Choosing gamma and visits for the greedy stagewise SVM."""

import functools

import numpy as np
import pytest
from oracles.greedy_choice import held_out_scores, mean_log_loss
from problems.greedy import four_classes, two_classes
from sklearn.model_selection import RepeatedStratifiedKFold, TimeSeriesSplit

from hardmargin.estimators._base.estimator import machines_of
from hardmargin.kernels import Kernel, make_kernel
from hardmargin.monitor import Monitor
from hardmargin.selection import folds as folds_module
from hardmargin.selection import greedy as module
from hardmargin.selection.folds import Folds, make_folds
from hardmargin.selection.greedy import VISITS, Task, choose_greedy
from hardmargin.solvers.greedy import GreedyOptions
from hardmargin.solvers.problem import KernelRows

PAIRS = {"two classes": (two_classes, 2), "four classes": (four_classes, 4)}


def problem(name, n=90):
    source, n_classes = PAIRS[name]
    X, y = source()
    return X[:n], y[:n].astype(np.int32), machines_of(n_classes, "ovo")


def choose(X, codes, machines, cv=5, kernel="rbf", **parameters):
    folds = make_folds(cv, X, codes, random_state=np.random.RandomState(0))
    base = make_kernel(kernel, X, gamma="spread")
    task = Task([KernelRows(base, X)], codes, machines, **parameters)
    return choose_greedy(task, folds, np.random.RandomState(0)), folds


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
            splits_of(folds),
            table["max_visits"][i],
        )
        for i in some
    ]
    np.testing.assert_allclose(table["log_loss"][some], expected, rtol=1e-5)


@pytest.mark.parametrize("name", PAIRS)
def test_the_choice_is_the_least_log_loss_tried(name):
    choice, _ = chosen(name)
    best = choice.table["log_loss"].argmin()
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
    base = make_kernel("rbf", X, gamma="spread")
    task = Task([KernelRows(base, X)], codes, machines)
    search = module._Search(task, folds)
    search.run([module.Candidate(0, e, v) for e in range(-8, 7) for v in VISITS])
    assert choice.table["log_loss"].min() <= 1.02 * search.losses[search.best()]


# --- what is searched ----------------------------------------------------------------------------


def test_every_number_of_visits_is_tried():
    assert set(chosen("two classes")[0].table["max_visits"]) == set(VISITS)


def test_fixed_visits_are_kept():
    choice, _ = choose(*problem("two classes"), visits=(3,))
    assert set(choice.table["max_visits"]) == {3} == {choice.max_visits}


def test_a_fixed_gamma_is_kept():
    choice, _ = choose(*problem("two classes"), tunes_gamma=False)
    assert set(choice.table["gamma"]) == {choice.kernel.gamma}


@pytest.mark.parametrize("factor", [2.0**-12, 2.0**11])
def test_gamma_is_followed_beyond_the_grid(factor):
    X, codes, machines = problem("two classes")
    gamma = chosen("two classes")[0].kernel.gamma * factor
    folds = make_folds(5, X, codes, random_state=np.random.RandomState(0))
    task = Task([KernelRows(Kernel("rbf", gamma), X)], codes, machines)
    found = choose_greedy(task, folds, np.random.RandomState(0)).kernel.gamma
    assert found == pytest.approx(gamma / factor, rel=0.75)


@pytest.mark.parametrize("kernel", ["laplacian", "poly", "sigmoid"])
def test_gamma_of_other_kernels_is_chosen(kernel):
    choice, _ = choose(*problem("two classes"), kernel=kernel)
    assert len(set(choice.table["gamma"])) > 3


def test_nothing_can_be_chosen_without_splits():
    X, codes, machines = problem("two classes")
    none = np.zeros((0, len(codes)), dtype=bool)
    task = Task([KernelRows(Kernel("rbf", 0.5), X)], codes, machines)
    choice = choose_greedy(task, Folds(none, none), np.random.RandomState(0))
    assert choice.held_out is None
    assert (choice.kernel.gamma, choice.max_visits) == (0.5, 1)


def test_splits_of_one_class_are_of_no_use():
    X, codes, machines = problem("two classes")
    one = np.flatnonzero(codes == 0)
    choice, _ = choose(X, codes, machines, cv=[(one[:20], one[20:])])
    assert choice.held_out is None


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


# --- weights, threads, time ----------------------------------------------------------------------


def test_rows_of_weight_zero_are_absent():
    X, codes, machines = problem("two classes")
    weights = np.where(np.arange(len(codes)) % 5 == 0, 0.0, 1.0)
    kept = weights > 0
    absent, _ = choose(X[kept], codes[kept], machines)
    base = make_kernel("rbf", X[kept], gamma="spread")
    hidden = np.where(kept, codes, -1).astype(np.int32)
    folds = make_folds(5, X, hidden, random_state=np.random.RandomState(0))
    task = Task([KernelRows(base, X)], hidden, machines, weights=weights)
    present = choose_greedy(task, folds, np.random.RandomState(0))
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
    solve, heard = module.greedy.solve, []

    def solve_aloud(problem, options, monitor):
        monitor.report(0, 1, 0.5)
        return solve(problem, options, monitor)

    monkeypatch.setattr(module.greedy, "solve", solve_aloud)
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
    monkeypatch.setattr(folds_module, "SUBSAMPLE_ROWS", 50)
    for part in (folds_module, module):
        monkeypatch.setattr(part, "MAX_FOLDED_ROWS", 300)
    monkeypatch.setattr(folds_module, "MAX_HELD_OUT_ROWS", 100)


def large(n=1500, seed=0):
    """A narrow pattern: the more rows, the narrower the best kernel."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, 2))
    noise = rng.random(n) < 0.05
    return X, ((np.floor(6 * X).sum(axis=1) % 2 > 0) ^ noise).astype(np.int32)


def test_some_rows_are_searched_and_all_decide(small_limits):
    X, codes = large(250)
    choice, folds = choose(X, codes, [([0], [1])])
    assert choice.table["n_rows"].tolist() == sorted(choice.table["n_rows"])
    assert choice.table["n_rows"][0] < 100
    assert choice.table["n_rows"][-1] == 250
    assert len(choice.held_out.rows) == folds.test.sum()


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
    X, codes = large()
    choice, _ = choose(X, codes, [([0], [1])])
    assert choice.max_visits == 1
    assert set(choice.table["max_visits"][choice.table["n_rows"] > 100]) == {1}


def test_views_are_compared_on_many_rows(small_limits):
    X, codes = large()
    rng = np.random.default_rng(1)
    views = [
        KernelRows(make_kernel("rbf", V, gamma="spread"), V)
        for V in (np.hstack([X, rng.uniform(size=(len(X), 3))]), X)
    ]
    folds = make_folds(5, X, codes, random_state=np.random.RandomState(0))
    choice = choose_greedy(Task(views, codes, [([0], [1])]), folds, np.random.RandomState(0))
    assert choice.view == 1
    assert set(choice.table["view"]) == {0, 1}


def test_subsamples_keep_rows_of_every_class():
    codes = np.repeat([0, 1, 2], [5000, 60, 3]).astype(np.int32)
    rank = folds_module.random_ranks(codes, np.random.RandomState(0))
    few, more = (folds_module.subsample(codes, rank, n) for n in (200, 1000))
    assert np.bincount(codes[few]).tolist() == [198, 20, 3]
    assert not (few & ~more).any()
