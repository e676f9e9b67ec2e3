"""RhoSVC by multiplicative updates: the last plane of the path."""

import functools
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from oracles.rho import algorithm_1, optimum
from problems.rho import (
    BIAS,
    CLASSES,
    MULTI_CLASS,
    QUERIES,
    QUERIES_3,
    RANKS,
    assert_finite,
    cancer,
    dense,
    fit_quietly,
    iris,
    queries,
    rbf,
    spread,
)
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from hardmargin import RhoEnsembleSVC, RhoSVC


@functools.cache
def fitted(multi_class=None, **parameters):
    """A model of two or three classes that several tests share."""
    X, y = cancer() if multi_class is None else iris()
    parameters = {"random_state": 0, "eps_stop": 0.02, **parameters}
    return fit_quietly(RhoSVC(multi_class=multi_class or "ovo", **parameters), X, y)


@functools.cache
def oracle(bias, n_stages):
    X, y = cancer()
    signs = np.where(y == 1, 1.0, -1.0)
    return signs, algorithm_1(rbf(X, X, spread(X)), signs, bias=bias, n_stages=n_stages)


@BIAS
def test_the_plane_equals_the_oracle(bias):
    signs, path = oracle(bias, 12)
    model = fitted(max_stages=12, fit_intercept=bias)
    np.testing.assert_allclose(model.dual_coef_[0], signs * path.planes[-1], rtol=1e-5, atol=1e-12)


@BIAS
def test_the_intercept_evens_out_the_least_margins(bias):
    X, y = cancer()
    model = fitted(fit_intercept=bias)
    scores = model.decision_function(X)
    if bias:
        assert scores[y == 1].min() == pytest.approx(-scores[y == 0].max(), rel=1e-8)
    else:
        assert model.intercept_.tolist() == [0.0]


@BIAS
def test_the_optimum_is_within_the_certificate(bias):
    X, y = cancer()
    best, _ = optimum(rbf(X, X, spread(X)), np.where(y == 1, 1.0, -1.0), bias=bias, tol=1e-8)
    model = fitted(fit_intercept=bias, eps_stop=0.001)
    assert model.rho_lower_bound_ <= best * (1 + 1e-9)
    assert best <= model.rho_ * (1 + 1e-9)


@BIAS
def test_rho_is_the_squared_norm(bias):
    X, _ = cancer()
    model = fitted(fit_intercept=bias)
    signed = model.dual_coef_[0]
    assert model.rho_ == pytest.approx(signed @ rbf(X, X, spread(X)) @ signed, rel=1e-9)


def test_rho_is_the_end_of_the_path():
    model = fitted()
    assert model.rho_ == model.rho_path_[-1]


def test_separable_rows_are_separated():
    X, y = cancer()
    assert fitted(eps_stop=0.001).score(X, y) == 1.0


@CLASSES
def test_multipliers_of_a_machine_add_up_to_one(multi_class):
    coefficients = dense(fitted(multi_class).dual_coef_)
    np.testing.assert_allclose(np.abs(coefficients).sum(axis=1), 1.0, rtol=1e-10)


@MULTI_CLASS
@pytest.mark.parametrize("name", ["rho_", "rho_lower_bound_", "certificate_", "n_iter_"])
def test_many_classes_have_a_value_per_machine(multi_class, name):
    assert getattr(fitted(multi_class), name).shape == (3,)


@pytest.mark.parametrize("name", ["rho_", "rho_lower_bound_", "certificate_", "n_iter_"])
def test_two_classes_have_one_value(name):
    assert np.shape(getattr(fitted(), name)) == ()


def test_the_path_is_that_of_the_ensemble():
    vote = RhoEnsembleSVC(eps_stop=0.02).fit(*cancer())
    np.testing.assert_array_equal(fitted().rho_path_, vote.rho_path_)


@CLASSES
@RANKS
@BIAS
def test_the_last_stage_is_the_decision(multi_class, rank, bias):
    model = fitted(multi_class, rank=rank, fit_intercept=bias, max_stages=15)
    *_, last = model.staged_decision_function(queries(multi_class))
    expected = model.decision_function(queries(multi_class))
    np.testing.assert_allclose(last, expected, rtol=1e-7, atol=1e-7 * np.abs(expected).max())


@CLASSES
def test_there_is_a_decision_per_stage(multi_class):
    model = fitted(multi_class)
    stages = list(model.staged_predict(queries(multi_class)))
    assert len(stages) == np.max(model.n_stages_)


@BIAS
def test_a_stage_is_the_plane_after_that_many(bias):
    stages = list(fitted(fit_intercept=bias).staged_decision_function(QUERIES))
    short = fitted(fit_intercept=bias, max_stages=5)
    np.testing.assert_allclose(stages[4], short.decision_function(QUERIES), atol=1e-9)


def test_without_any_stage_there_is_the_first_plane():
    model = RhoSVC(gamma=1e3).fit(np.eye(4), [0, 1, 0, 1])
    [only] = model.staged_decision_function(np.eye(4))
    np.testing.assert_allclose(only, model.decision_function(np.eye(4)))


@CLASSES
def test_sparse_equals_dense(multi_class):
    X, y = cancer() if multi_class is None else iris()
    model = RhoSVC(multi_class=multi_class or "ovo", max_stages=12)
    Q = queries(multi_class)
    sparse = fit_quietly(clone(model), sp.csr_array(X), y)
    np.testing.assert_allclose(
        sparse.decision_function(sp.csr_array(Q)),
        fit_quietly(model, X, y).decision_function(Q),
        rtol=1e-5,
        atol=1e-7,
    )


@CLASSES
def test_precomputed_equals_the_kernel(multi_class):
    X, y = cancer() if multi_class is None else iris()
    Q = queries(multi_class)
    model = RhoSVC(kernel="precomputed", multi_class=multi_class or "ovo")
    model.set_params(max_stages=12, eps_stop=0.02)
    expected = fitted(multi_class, gamma=0.1, max_stages=12).decision_function(Q)
    scores = fit_quietly(model, rbf(X, X, 0.1), y).decision_function(rbf(Q, X, 0.1))
    np.testing.assert_allclose(scores, expected, rtol=1e-5, atol=1e-7)


def test_whole_weights_are_copies():
    X, y = cancer()
    weights = np.random.default_rng(1).integers(0, 4, size=len(y))
    model = RhoSVC(max_stages=12)
    weighted = fit_quietly(clone(model), X, y, weights)
    copied = fit_quietly(model, np.repeat(X, weights, axis=0), np.repeat(y, weights))
    np.testing.assert_allclose(
        weighted.decision_function(QUERIES), copied.decision_function(QUERIES), rtol=1e-5
    )


@MULTI_CLASS
def test_threads_change_nothing(multi_class):
    one, two = (
        fitted(multi_class, n_jobs=n, max_stages=12).decision_function(QUERIES_3) for n in (1, 2)
    )
    np.testing.assert_allclose(one, two, rtol=1e-7, atol=1e-10)


ODD = {
    "conflicting duplicates": lambda X, y: (np.vstack([X, X]), np.concatenate([y, 1 - y])),
    "some conflicting duplicates": lambda X, y: (np.vstack([X, X[:3]]), [*y, *(1 - y[:3])]),
    "one row per class": lambda X, y: (np.eye(4), [0, 1, 2, 3]),
    "small features": lambda X, y: (1e-12 * X, y),
    "large features": lambda X, y: (1e12 * X, y),
    "equal rows": lambda X, y: (np.ones((8, 2)), [0, 1] * 4),
    "one row against all": lambda X, y: (X, np.arange(len(X)) == 7),
}


@pytest.mark.filterwarnings("ignore:.*look the same to the")
@pytest.mark.parametrize("case", ODD)
@BIAS
@pytest.mark.parametrize("rank", [None, 3])
def test_odd_input_gives_a_finite_model(case, bias, rank):
    X, y = ODD[case](*cancer(40))
    model = RhoSVC(fit_intercept=bias, rank=rank, max_stages=100, random_state=0)
    assert_finite(fit_quietly(model, X, y), X)


@CLASSES
@pytest.mark.parametrize("limit", [{"max_stages": 2}, {"max_time": 1e-9}])
def test_limits_warn_by_name(multi_class, limit):
    X, y = cancer() if multi_class is None else iris()
    with pytest.warns(ConvergenceWarning, match=next(iter(limit))):
        RhoSVC(multi_class=multi_class or "ovo", **limit).fit(X, y)


@CLASSES
@BIAS
def test_the_limit_on_time_keeps_a_model(multi_class, bias):
    X, y = cancer() if multi_class is None else iris()
    model = RhoSVC(max_time=1e-9, multi_class=multi_class or "ovo", fit_intercept=bias)
    assert_finite(fit_quietly(model, X, y), X)


def test_a_matrix_that_does_not_fit_warns():
    with pytest.warns(UserWarning, match="memory_limit"):
        fit_quietly(RhoSVC(max_stages=2, memory_limit=1000), *cancer())


BAD = [{"tol": 0.0}, {"solver": "newton"}, {"eps_stop": 1.5}, {"rank": 0}, {"fit_intercept": 3}]


@pytest.mark.parametrize("parameters", BAD, ids=lambda p: next(iter(p)))
def test_bad_parameters_are_refused_by_name(parameters):
    [name] = parameters
    with pytest.raises(ValueError, match=name):
        RhoSVC(**parameters).fit(*cancer(20))


def test_an_interrupt_leaves_the_estimator_unfitted(monkeypatch):
    def interrupt(run, stage, value):
        raise KeyboardInterrupt

    monkeypatch.setattr("hardmargin.monitor.Monitor.go_on", interrupt)
    model = RhoSVC()
    with pytest.raises(KeyboardInterrupt):
        model.fit(*cancer())
    assert vars(model).keys() == vars(RhoSVC()).keys()


@CLASSES
def test_copies_have_the_stages(multi_class):
    model, Q = fitted(multi_class), queries(multi_class)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(list(again.staged_predict(Q)), list(model.staged_predict(Q)))


def test_a_clone_has_the_parameters():
    model = RhoSVC(0.7, eps_stop=0.1, rank=3, class_weight={0: 2.0})
    assert clone(model).get_params() == model.get_params()
