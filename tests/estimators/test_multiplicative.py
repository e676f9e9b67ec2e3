"""MultiplicativeSVC: attributes, limits, input of all kinds, and stages."""

import functools
import pickle
import warnings
from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from problems.clock import Clock, set_clock
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

from hardmargin import MultiplicativeSVC
from hardmargin.estimators import multiplicative

GAMMA = 0.3
MULTI_CLASS = pytest.mark.parametrize("multi_class", ["ovo", "ovr"])


@functools.cache
def two_classes(n=60):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    X[:, 0] += np.where(X[:, 0] > 0, 0.5, -0.5)
    return X, (X[:, 0] > 0).astype(int)


@functools.cache
def three_classes():
    X, y = load_iris(return_X_y=True)
    return X[::2], y[::2]


QUERIES = np.random.default_rng(9).normal(size=(37, 3))


def quietly(model, *arguments):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(*arguments)


@functools.cache
def fitted(multi_class=None, **parameters):
    if multi_class is None:
        return MultiplicativeSVC(gamma=GAMMA, **parameters).fit(*two_classes())
    parameters = {"tol": 0.2, **parameters}
    return MultiplicativeSVC(gamma=2.0, multi_class=multi_class, **parameters).fit(*three_classes())


def problem_of(multi_class):
    return two_classes() if multi_class is None else three_classes()


def is_finite(model, X):
    numbers = [
        model.dual_coef_,
        model.intercept_,
        model.margin_path_,
        model.objective_path_,
        model.learning_rate_,
        model.certificate_,
        model.weight_norm_,
        model.support_bound_,
        model.decision_function(X),
    ]
    return all(np.isfinite(values).all() for values in numbers)


# --- attributes ----------------------------------------------------------------------------------


def test_the_model_is_the_hard_margin_svm():
    X, y = two_classes()
    by_pairs = SVC(C=1e8, gamma=GAMMA, tol=1e-8).fit(X, y)
    model = fitted(tol=1e-6)
    coefficients = np.zeros(len(y))
    coefficients[by_pairs.support_] = by_pairs.dual_coef_[0]
    largest = np.abs(coefficients).max()
    np.testing.assert_allclose(
        model.dual_coef_[0], coefficients[model.support_], atol=1e-3 * largest
    )
    np.testing.assert_allclose(model.intercept_, by_pairs.intercept_, atol=1e-4)
    np.testing.assert_allclose(
        model.decision_function(QUERIES), by_pairs.decision_function(QUERIES), atol=1e-3
    )


def test_support_rows_are_on_the_margin():
    X, y = two_classes()
    model = fitted(tol=1e-6)
    large = np.abs(model.dual_coef_[0]) > 1e-3 * np.abs(model.dual_coef_).max()
    scores = model.decision_function(X[model.support_[large]])
    np.testing.assert_allclose(scores, 2 * y[model.support_[large]] - 1, atol=1e-3)


def test_support_is_sorted_and_above_its_threshold():
    model = fitted()
    alpha = np.abs(model.dual_coef_[0])
    assert (np.diff(model.support_) > 0).all()
    assert alpha.min() > multiplicative.SMALLEST_SUPPORT * alpha.max()
    assert 0 < len(model.support_) < len(two_classes()[1])


def test_scalars_of_two_classes():
    model = fitted()
    assert isinstance(model.n_iter_, int)
    assert isinstance(model.stop_reason_, str)
    for name in ("margin_", "weight_norm_", "certificate_", "learning_rate_", "support_bound_"):
        assert isinstance(getattr(model, name), float)


def test_paths_have_one_entry_per_epoch():
    model = fitted()
    paths = (model.margin_path_, model.objective_path_, model.error_path_)
    assert {path.shape for path in paths} == {(model.n_iter_ + 1,)}


def test_converged_models_are_certified():
    model = fitted()
    assert (model.stop_reason_, model.certificate_ <= 1e-3) == ("converged", True)
    assert (
        model.margin_ == model.margin_path_[-1] == pytest.approx(1 / model.weight_norm_, rel=0.01)
    )
    assert model.error_path_[-1] == 0


def test_weight_norm_is_that_of_the_linear_plane():
    X, y = two_classes()
    model = MultiplicativeSVC(kernel="linear", tol=0.05).fit(X, y)
    assert model.weight_norm_ == pytest.approx(np.linalg.norm(model.coef_), rel=1e-4)
    distances = np.abs(model.decision_function(X)) / model.weight_norm_
    assert model.margin_ == pytest.approx(distances.min(), rel=1e-3)


def test_support_bound_is_that_of_the_paper():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 2)) + np.where(np.arange(1000) % 2, 10.0, -10.0)[:, None]
    model = MultiplicativeSVC(tol=1e-4).fit(X, X[:, 0] > 0)
    d, p = len(model.support_), 1000
    expected = (d * np.log2(np.e * p / d) + np.log2(p / 0.05)) / (p - d)
    assert 0 < expected < 1
    assert model.support_bound_ == pytest.approx(expected)


def test_there_is_no_support_bound_for_inconsistent_machines():
    X, y = two_classes()
    model = quietly(MultiplicativeSVC(), np.vstack([X, X]), np.concatenate([y, 1 - y]))
    assert model.error_path_[-1] > 0
    assert model.support_bound_ == 1.0


@MULTI_CLASS
def test_many_classes(multi_class):
    X, y = three_classes()
    model = fitted(multi_class)
    assert model.score(X, y) == 1.0
    assert model.dual_coef_.shape == (3, len(model.support_))
    for name in ("margin_path_", "objective_path_", "error_path_"):
        assert [len(path) for path in getattr(model, name)] == (model.n_iter_ + 1).tolist()
    for name in ("margin_", "weight_norm_", "certificate_", "support_bound_", "stop_reason_"):
        assert getattr(model, name).shape == (3,)


def test_machines_of_pairs_are_the_two_class_models():
    X, y = three_classes()
    model = fitted("ovo")
    for m, pair in enumerate(combinations(range(3), 2)):
        of_pair = np.isin(y, pair)
        alone = MultiplicativeSVC(gamma=2.0, tol=0.2).fit(X[of_pair], y[of_pair])
        np.testing.assert_allclose(model.margin_path_[m], alone.margin_path_, rtol=1e-6)
        assert model.intercept_[m] == pytest.approx(alone.intercept_[0])


@MULTI_CLASS
def test_threads_change_nothing(multi_class):
    X, _ = three_classes()
    np.testing.assert_allclose(
        fitted(multi_class, n_jobs=2).decision_function(X),
        fitted(multi_class).decision_function(X),
        rtol=1e-9,
    )


# --- rates, limits and warnings ------------------------------------------------------------------


def test_rates_agree():
    auto, fixed = fitted(tol=1e-5), fitted(tol=1e-5, learning_rate=0.2)
    assert fixed.learning_rate_ == 0.2
    assert auto.n_iter_ < fixed.n_iter_
    np.testing.assert_allclose(
        auto.decision_function(QUERIES), fixed.decision_function(QUERIES), atol=1e-3
    )


@pytest.mark.parametrize("learning_rate", [3, 20.0, 1e6])
def test_a_rate_that_is_too_large_warns_and_leaves_a_finite_model(learning_rate):
    X, y = two_classes()
    model = MultiplicativeSVC(gamma=GAMMA, learning_rate=learning_rate)
    with pytest.warns(ConvergenceWarning, match="learning_rate"):
        model.fit(X, y)
    assert model.stop_reason_ == "diverged"
    assert is_finite(model, X)
    *_, last = model.staged_decision_function(X)
    np.testing.assert_allclose(last, model.decision_function(X), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("learning_rate", ["auto", 0.05])
def test_conflicting_duplicates_warn_and_leave_a_finite_model(learning_rate):
    X, y = two_classes()
    X, y = np.vstack([X, X[:1]]), np.append(y, 1 - y[0])
    model = MultiplicativeSVC(gamma=GAMMA, learning_rate=learning_rate)
    with pytest.warns(ConvergenceWarning, match="overlap"):
        model.fit(X, y)
    assert model.stop_reason_ == "not_separable"
    assert is_finite(model, X)
    assert model.score(X, y) > 0.9


def test_max_stages_warns():
    with pytest.warns(ConvergenceWarning, match="max_stages"):
        model = MultiplicativeSVC(max_stages=3).fit(*two_classes())
    assert (model.stop_reason_, model.n_iter_) == ("max_stages", 3)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_max_time_warns_and_keeps_a_model_of_every_machine(n_jobs):
    X, y = three_classes()
    with pytest.warns(ConvergenceWarning, match="max_time"):
        model = MultiplicativeSVC(tol=0.0, max_time=1e-6, n_jobs=n_jobs).fit(X, y)
    assert (model.n_iter_ >= 0).all()
    assert np.isfinite(model.decision_function(X)).all()


def test_max_time_is_kept(monkeypatch):
    clock = Clock(step=0.01)
    set_clock(monkeypatch, clock)
    model = quietly(MultiplicativeSVC(tol=0.0, max_time=0.2, max_stages=10**9), *two_classes())
    assert model.stop_reason_ == "max_time"
    assert clock.now < 0.3


def test_a_matrix_beyond_the_memory_limit_is_streamed():
    X, y = two_classes()
    with pytest.warns(UserWarning, match="memory_limit"):
        streamed = MultiplicativeSVC(gamma=GAMMA, memory_limit="50KB").fit(X, y)
    np.testing.assert_allclose(
        streamed.decision_function(QUERIES), fitted().decision_function(QUERIES), rtol=1e-6
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [("learning_rate", 0.0), ("learning_rate", "fast"), ("tol", -1.0), ("max_stages", 0)],
)
def test_bad_parameters_are_named(name, value):
    with pytest.raises(ValueError, match=name):
        MultiplicativeSVC(**{name: value}).fit(*two_classes())


# --- input ---------------------------------------------------------------------------------------


def test_one_row_per_class():
    model = MultiplicativeSVC(gamma=1.0).fit(np.eye(4), list("abcd"))
    assert model.predict(np.eye(4)).tolist() == list("abcd")


def test_two_rows():
    model = MultiplicativeSVC(kernel="linear").fit([[0.0], [4.0]], [0, 1])
    assert model.coef_[0, 0] == pytest.approx(0.5, rel=2e-3)
    assert model.intercept_[0] == pytest.approx(-1.0, rel=2e-3)


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize("scale", [1e-12, 1e12])
def test_features_of_any_size(kernel, scale):
    X, y = two_classes()
    model, scaled = (MultiplicativeSVC(kernel=kernel, tol=1e-2).fit(s * X, y) for s in (1.0, scale))
    assert scaled.stop_reason_ == "converged"
    np.testing.assert_allclose(
        scaled.decision_function(scale * X), model.decision_function(X), atol=0.1
    )


def test_one_row_against_a_thousand():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(1000, 2)), [[6.0, 6.0]]])
    y = np.arange(1001) == 1000
    model = MultiplicativeSVC(tol=1e-2).fit(X, y)
    assert (model.stop_reason_, model.score(X, y)) == ("converged", 1.0)


@pytest.mark.parametrize("container", [sp.csr_array, sp.csr_matrix])
def test_sparse_rows(container):
    X, y = two_classes()
    model = MultiplicativeSVC(gamma=GAMMA).fit(container(X), y)
    np.testing.assert_allclose(
        model.decision_function(container(QUERIES)),
        fitted().decision_function(QUERIES),
        rtol=1e-6,
        atol=1e-9,
    )
    assert len(list(model.staged_predict(container(QUERIES)))) == model.n_iter_ + 1


def rbf(X, Z):
    return np.exp(-GAMMA * ((X[:, None, :] - Z[None, :, :]) ** 2).sum(axis=2))


def test_precomputed_and_callable_kernels():
    X, y = two_classes()
    expected = fitted().decision_function(QUERIES)
    by_call = MultiplicativeSVC(kernel=rbf).fit(X, y)
    by_matrix = MultiplicativeSVC(kernel="precomputed").fit(rbf(X, X), y)
    for model, Q in ((by_call, QUERIES), (by_matrix, rbf(QUERIES, X))):
        np.testing.assert_allclose(model.decision_function(Q), expected, rtol=1e-6, atol=1e-9)
        *_, last = model.staged_decision_function(Q)
        np.testing.assert_allclose(last, expected, rtol=1e-6, atol=1e-9)


def test_float32():
    X, _ = two_classes()
    model = fitted(dtype="float32")
    assert model.stop_reason_ == "converged"
    np.testing.assert_allclose(model.decision_function(X), fitted().decision_function(X), atol=2e-3)


@given(st.lists(st.integers(0, 3), min_size=60, max_size=60))
@settings(deadline=None, max_examples=15)
def test_whole_weights_are_repeated_rows(times):
    X, y = two_classes()
    times = np.array(times)
    times[[0, 1, 2, 3, *np.flatnonzero(y == 0)[:1], *np.flatnonzero(y == 1)[:1]]] = 1
    rows = np.repeat(np.arange(len(y)), times)
    model = MultiplicativeSVC(gamma=GAMMA, max_stages=40)
    weighted = quietly(clone(model), X, y, times)
    repeated = quietly(clone(model), X[rows], y[rows])
    np.testing.assert_allclose(
        weighted.decision_function(QUERIES), repeated.decision_function(QUERIES), atol=1e-4
    )


@pytest.mark.parametrize("class_weight", ["balanced", {0: 5.0}])
def test_class_weights_do_not_move_the_optimum(class_weight):
    model = MultiplicativeSVC(gamma=GAMMA, tol=1e-6, class_weight=class_weight)
    np.testing.assert_allclose(
        model.fit(*two_classes()).decision_function(QUERIES),
        fitted(tol=1e-6).decision_function(QUERIES),
        atol=1e-3,
    )


# --- stages --------------------------------------------------------------------------------------

STAGED = pytest.mark.parametrize("multi_class", [None, "ovo", "ovr"])


@STAGED
def test_the_last_stage_is_the_decision(multi_class):
    X, _ = problem_of(multi_class)
    model = fitted(multi_class)
    stages = list(model.staged_decision_function(X))
    assert len(stages) == np.max(model.n_iter_) + 1
    np.testing.assert_allclose(stages[-1], model.decision_function(X), rtol=1e-9, atol=1e-9)
    *_, last = model.staged_predict(X)
    assert last.tolist() == model.predict(X).tolist()


@STAGED
@pytest.mark.parametrize("stage", [1, 7, 20])
def test_a_stage_is_the_fit_that_stops_there(multi_class, stage):
    X, y = problem_of(multi_class)
    model = fitted(multi_class)
    stopped = quietly(clone(model).set_params(max_stages=stage), X, y)
    stages = list(model.staged_decision_function(X))
    np.testing.assert_allclose(stages[stage], stopped.decision_function(X), atol=1e-8)


def test_stages_in_parts(monkeypatch):
    X, _ = two_classes()
    expected = list(fitted().staged_decision_function(X))
    monkeypatch.setattr(multiplicative, "COEFFICIENTS_AT_ONCE", 700)
    np.testing.assert_allclose(list(fitted().staged_decision_function(X)), expected, atol=1e-12)


def test_large_histories_are_kept_in_float32(monkeypatch):
    monkeypatch.setattr("hardmargin.solvers.planes.MAX_FLOAT64_BYTES", 20_000)
    X, y = two_classes()
    model = MultiplicativeSVC(gamma=GAMMA).fit(X, y)
    *_, last = model.staged_decision_function(X)
    np.testing.assert_allclose(last, model.decision_function(X), atol=1e-4)


def test_histories_beyond_the_memory_limit_are_not_kept():
    model = MultiplicativeSVC(gamma=GAMMA, memory_limit="100KB").fit(*two_classes())
    with pytest.raises(AttributeError, match="memory_limit"):
        next(model.staged_decision_function(QUERIES))


def test_pickles_keep_the_stages():
    model = pickle.loads(pickle.dumps(fitted()))
    np.testing.assert_array_equal(
        list(model.staged_decision_function(QUERIES)),
        list(fitted().staged_decision_function(QUERIES)),
    )
