"""What fit promises about new rows is what new rows get, where few rows meet many columns.

A small version of benchmarks/honesty.py: laws are known, so thousands of new rows show the truth.
Bounds are generous, as a mean over a few seeds is itself uncertain.
"""

from functools import cache
from typing import NamedTuple

import numpy as np
import pytest
from scipy.special import expit

from hardmargin import EnsembleSVC, GreedySVC

pytestmark = pytest.mark.filterwarnings("ignore:The held-out scores say nothing")

N_NEW = 2_000
BOTH = pytest.mark.parametrize("estimator", [EnsembleSVC, GreedySVC])


def noise(rng, n, p):
    """Columns that say nothing: the log-loss cannot be below .693."""
    return rng.normal(size=(n, p)), np.zeros(n)


def weak(rng, n, p):
    """Five columns move the log-odds by a standard deviation of one."""
    X = rng.normal(size=(n, p))
    return X, X[:, :5].sum(axis=1) / np.sqrt(5)


def gene_like(rng, n, p):
    """Blocks of twenty correlated columns; one column in three of them matters."""
    common = np.repeat(rng.normal(size=(n, p // 20)), 20, axis=1)
    X = np.sqrt(0.5) * (common + rng.normal(size=(n, p)))
    return X, 2.8 * X[:, [0, 20, 40]].sum(axis=1) / np.sqrt(3)


def rows(law, n, p, seed):
    """Rows to train, and new ones."""
    rng = np.random.default_rng(seed)
    X, log_odds = law(rng, n + N_NEW, p)
    y = (rng.random(n + N_NEW) < expit(log_odds)).astype(int)
    return X[:n], y[:n], X[n:], y[n:]


class Problem(NamedTuple):
    law: object
    n: int
    p: int
    seeds: tuple[int, ...]


SMALL_NOISE = Problem(noise, 100, 50, (0, 2, 3))
WIDE_NOISE = Problem(noise, 300, 290, (1, 2, 6))
WEAK = Problem(weak, 200, 200, (0, 1, 3))
GENES = Problem(gene_like, 80, 500, (1, 2, 8, 9))


class Truth(NamedTuple):
    """Means over the seeds. A gap is the promise less the truth: below zero, it is too good."""

    log_loss: float
    log_loss_gap: float
    error_gap: float


@cache
def truth(estimator, problem):
    found = []
    for seed in problem.seeds:
        X, y, X_new, y_new = rows(*problem[:3], seed)
        model = estimator(random_state=0).fit(X, y)
        log_loss, error = loss_on(model, X_new, y_new), 1.0 - model.score(X_new, y_new)
        found.append((log_loss, model.cv_log_loss_ - log_loss, model.cv_error_ - error))
    return Truth(*np.mean(found, axis=0).tolist())


def loss_on(model, X, y):
    P = model.predict_proba(X)[np.arange(len(y)), y]
    return -np.log(np.clip(P, 1e-6, 1.0)).mean()


@pytest.mark.parametrize("problem", [SMALL_NOISE, WIDE_NOISE], ids=["100x50", "300x290"])
@BOTH
def test_noise_is_not_mistaken_for_a_signal(estimator, problem):
    found = truth(estimator, problem)
    assert found.log_loss < 0.715  # a constant has 0.693
    assert abs(found.log_loss_gap) < 0.03


@BOTH
def test_weak_signals_give_what_was_promised(estimator):
    found = truth(estimator, WEAK)
    assert found.log_loss < 0.70
    assert abs(found.log_loss_gap) < 0.05


@BOTH
def test_gene_like_rows_give_what_was_promised(estimator):
    found = truth(estimator, GENES)
    assert found.log_loss < 0.70
    assert abs(found.log_loss_gap) < 0.08


@pytest.mark.parametrize("problem", [WIDE_NOISE, WEAK, GENES], ids=["noise", "weak", "gene-like"])
def test_errors_are_promised_as_honestly(problem):
    assert abs(truth(EnsembleSVC, problem).error_gap) < 0.08


def test_a_greedy_machine_is_not_sure_of_rows_between_its_own():
    # A kernel that sees only the nearest row scores new rows with 1e-88, which a sigmoid blew up.
    for seed in range(4):
        X, y, X_new, y_new = rows(noise, 60, 10, seed)
        assert loss_on(GreedySVC(random_state=0).fit(X, y), X_new, y_new) < 0.73


def test_a_greedy_machine_is_not_sure_of_rows_far_from_all():
    for seed in range(4):
        X, y, X_new, _ = rows(noise, 60, 10, seed)
        assert GreedySVC(random_state=0).fit(X, y).predict_proba(1_000 * X_new).max() < 0.8
