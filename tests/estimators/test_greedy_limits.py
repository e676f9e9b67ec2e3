"""GreedySVC within limits: threads, memory, stages, time, and what it prints."""

import functools
import time

import numpy as np
import pytest
from oracles.kernels import kernel_matrix
from problems.clock import Clock, set_clock
from problems.greedy import (
    MULTI_CLASS,
    QUERIES_4,
    RBF,
    fit_quietly,
    fitted,
    four_classes,
    paper,
    stage_problem,
    two_classes,
)
from sklearn.exceptions import ConvergenceWarning


@MULTI_CLASS
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_threads_change_nothing(multi_class, kernel):
    one, two = (
        paper(kernel=kernel, multi_class=multi_class, n_jobs=n).fit(*four_classes()) for n in (1, 2)
    )
    np.testing.assert_array_equal(
        one.decision_function(QUERIES_4), two.decision_function(QUERIES_4)
    )


@pytest.mark.parametrize("memory_limit", ["100 KB", "64 MB", "2GB", 1e6])
@pytest.mark.parametrize("multi_class", [None, "ovo"])
def test_memory_limit_changes_nothing(multi_class, memory_limit):
    model = fitted(multi_class, max_visits=4, memory_limit=memory_limit)
    _, Q = stage_problem(multi_class)
    np.testing.assert_array_equal(
        model.decision_function(Q), fitted(multi_class, max_visits=4).decision_function(Q)
    )


def test_a_memory_limit_too_small_for_the_rows_is_refused():
    with pytest.raises(ValueError, match="memory_limit is too small"):
        paper(memory_limit="1KB").fit(*two_classes())


def test_max_stages_warns():
    with pytest.warns(ConvergenceWarning, match="max_stages"):
        paper(max_stages=3).fit(*two_classes())


def test_max_stages_keeps_the_model_so_far():
    model = fit_quietly(paper(max_stages=3), *two_classes())
    assert (model.n_iter_, model.stop_reason_) == (3, "max_stages")


@functools.cache
def larger_problem():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 10))
    return X, rng.integers(3, size=3000)


def test_max_time_warns():
    X, y = larger_problem()
    with pytest.warns(ConvergenceWarning, match="max_time"):
        paper(max_time=1e-6).fit(X, y > 0)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_max_time_keeps_a_model_of_every_machine(n_jobs):
    X, y = larger_problem()
    model = fit_quietly(paper(max_time=1e-6, n_jobs=n_jobs), X, y)
    assert (model.n_iter_ > 0).all()


def test_max_time_ends_slow_callables():
    n_columns = 0

    def kernel(X, Z):
        nonlocal n_columns
        n_columns += len(X) != len(Z)
        return kernel_matrix(RBF, X, Z)

    X, y = two_classes()
    model = fit_quietly(paper(kernel=kernel, max_time=1e-6), X[:60], y[:60])
    assert model.stop_reason_ == "max_time"
    assert n_columns < 5


def test_enough_time_changes_nothing():
    np.testing.assert_array_equal(fitted(max_time=1000).dual_coef_, fitted().dual_coef_)


def test_verbose_shows_progress_of_long_fits(capsys, monkeypatch):
    set_clock(monkeypatch, Clock(step=3.0))
    naps = iter([0.1])

    def kernel(X, Z):
        if len(X) != len(Z):
            time.sleep(next(naps, 0))  # stages are reported a few times per second
        return kernel_matrix(RBF, X, Z)

    X, y = four_classes()
    paper(kernel=kernel, verbose=1, n_jobs=2).fit(X[:40], y[:40])
    assert "GreedySVC" in capsys.readouterr().out


@pytest.mark.parametrize("verbose", [0, 1])
def test_short_fits_are_silent(capsys, verbose):
    paper(verbose=verbose).fit(*two_classes())
    assert capsys.readouterr().out == ""


def test_a_kernel_without_any_row_to_choose_warns():
    K = -np.eye(6)
    with pytest.warns(ConvergenceWarning, match="constant"):
        paper(kernel="precomputed").fit(K, [0, 1, 0, 1, 0, 1])
