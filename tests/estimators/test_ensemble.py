"""EnsembleSVC on the published path: the paper's vote, its attributes, and its stages."""

import copy
import functools
import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from oracles.rho import algorithm_1
from problems.rho import (
    QUERIES,
    QUERIES_3,
    cancer,
    fit_quietly,
    iris,
    published,
    rbf,
    spread,
)
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from hardmargin import EnsembleSVC
from hardmargin.kernels import resolve_gamma

BIAS = pytest.mark.parametrize("bias", [False, True], ids=["no bias", "bias"])
MULTI_CLASS = pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
CLASSES = pytest.mark.parametrize("multi_class", [None, "ovo", "ovr"])
RANKS = pytest.mark.parametrize("rank", [None, 20])


@functools.cache
def fitted(multi_class=None, n_stages=12, **parameters):
    """A model that several tests look at: of two classes, or of three."""
    X, y = cancer() if multi_class is None else iris()
    model = published(n_stages, multi_class=multi_class or "ovo", random_state=0, **parameters)
    return fit_quietly(model, X, y)


def queries(multi_class):
    return QUERIES if multi_class is None else QUERIES_3


def dense(coefficients):
    return coefficients.toarray() if sp.issparse(coefficients) else np.asarray(coefficients)


# --- the paper -----------------------------------------------------------------------------------


@BIAS
@pytest.mark.parametrize("n_stages", [1, 12])
def test_the_vote_equals_the_oracle(bias, n_stages):
    X, y = cancer()
    signs = np.where(y == 1, 1.0, -1.0)
    path = algorithm_1(rbf(X, X, spread(X)), signs, bias=bias, n_stages=n_stages)
    expected = rbf(QUERIES, X, spread(X)) @ (signs * path.ensemble) + path.intercept
    model = published(n_stages, fit_intercept=bias, dtype="float64").fit(X, y)
    np.testing.assert_allclose(model.decision_function(QUERIES), expected, rtol=1e-5, atol=1e-8)


def test_the_epsilons_are_the_papers():
    parameters = EnsembleSVC().get_params()
    assert (parameters["eps_start"], parameters["eps_stop"]) == (0.1, 0.005)


def test_the_path_ends_by_epsilon():
    model = published().fit(*cancer())
    assert model.stop_reason_ == "eps"


def test_held_out_rows_are_classified():
    X, y = cancer(400)
    assert published().fit(X[:300], y[:300]).score(X[300:], y[300:]) > 0.93


@MULTI_CLASS
@BIAS
def test_many_classes_are_classified(multi_class, bias):
    X, y = iris()
    model = published(multi_class=multi_class, fit_intercept=bias).fit(X[::2], y[::2])
    assert model.score(X[1::2], y[1::2]) > 0.85


@BIAS
@pytest.mark.parametrize("machine", range(3))
def test_a_machine_of_many_is_that_of_its_pair(machine, bias):
    X, y = iris()
    pair = [(0, 1), (0, 2), (1, 2)][machine]
    rows = np.isin(y, pair)
    many = fitted("ovo", gamma=0.3, fit_intercept=bias)
    two = published(12, gamma=0.3, fit_intercept=bias).fit(X[rows], y[rows])
    np.testing.assert_allclose(dense(many.dual_coef_)[machine, rows], two.dual_coef_[0], rtol=1e-6)


@pytest.mark.parametrize("machine", range(3))
def test_a_machine_against_the_rest_is_that_of_two_classes(machine):
    X, y = iris()
    many = fitted("ovr", gamma=0.3)
    two = published(12, gamma=0.3).fit(X, y == machine)
    np.testing.assert_allclose(dense(many.dual_coef_)[machine], two.dual_coef_[0], rtol=1e-6)


# --- attributes ----------------------------------------------------------------------------------


@RANKS
def test_shapes_for_two_classes(rank):
    model = fitted(rank=rank)
    n = 120 if rank is None else len(model.support_)
    shapes = {
        name: np.shape(getattr(model, name))
        for name in ("support_", "dual_coef_", "intercept_", "n_support_", "support_vectors_")
    }
    assert shapes == {
        "support_": (n,),
        "dual_coef_": (1, n),
        "intercept_": (1,),
        "n_support_": (2,),
        "support_vectors_": (n, 30),
    }


@MULTI_CLASS
@RANKS
def test_shapes_for_many_classes(multi_class, rank):
    model = fitted(multi_class, rank=rank)
    n = len(iris()[1]) if rank is None else len(model.support_)
    shapes = {
        name: np.shape(getattr(model, name))
        for name in ("support_", "intercept_", "n_support_", "support_vectors_")
    }
    assert shapes == {
        "support_": (n,),
        "intercept_": (3,),
        "n_support_": (3,),
        "support_vectors_": (n, 4),
    }
    assert model.dual_coef_.shape == (3, n)


PATHS = {
    "stage_weights_": 12,
    "stage_intercepts_": 12,
    "eps_path_": 12,
    "rho_path_": 13,
}
SCALARS = ("rho_lower_bound_", "certificate_", "n_stages_", "n_iter_", "stop_reason_")


@pytest.mark.parametrize("name", PATHS)
def test_a_path_of_two_classes_is_an_array(name):
    assert getattr(fitted(), name).shape == (PATHS[name],)


@pytest.mark.parametrize("name", PATHS)
@MULTI_CLASS
def test_paths_of_many_classes_are_a_list(name, multi_class):
    paths = getattr(fitted(multi_class), name)
    assert isinstance(paths, list)
    assert [p.shape for p in paths] == [(PATHS[name],)] * 3


@pytest.mark.parametrize("name", SCALARS)
def test_two_classes_have_one_value(name):
    assert np.shape(getattr(fitted(), name)) == ()


@pytest.mark.parametrize("name", SCALARS)
@MULTI_CLASS
def test_many_classes_have_a_value_a_machine(name, multi_class):
    assert np.shape(getattr(fitted(multi_class), name)) == (3,)


def test_stages_are_counted():
    model = fitted()
    assert (model.n_stages_, model.n_iter_, model.stop_reason_) == (12, 12, "n_stages")


def test_public_attributes_are_plain():
    kinds = (np.ndarray, list, int, float, str, bool, type(None), sp.csr_array)
    public = {k: v for k, v in vars(fitted("ovo")).items() if not k.startswith("_")}
    assert [k for k, v in public.items() if not isinstance(v, kinds)] == []


@CLASSES
def test_multipliers_of_a_machine_add_up_to_one(multi_class):
    coefficients = dense(fitted(multi_class).dual_coef_)
    np.testing.assert_allclose(np.abs(coefficients).sum(axis=1), 1.0, rtol=1e-10)


@CLASSES
def test_the_objective_never_rises(multi_class):
    paths = fitted(multi_class, "eps").rho_path_
    for path in [paths] if multi_class is None else paths:
        assert (np.diff(path) <= 0).all()


def test_the_certificate_is_the_gap():
    model = fitted()
    assert model.certificate_ == pytest.approx(1 - model.rho_lower_bound_ / model.rho_path_[-1])


def test_without_bias_the_intercept_is_zero():
    assert fitted().intercept_.tolist() == [0.0]


def test_coef_is_for_the_linear_kernel():
    model = fitted(kernel="linear")
    np.testing.assert_allclose(
        QUERIES @ model.coef_[0] + model.intercept_, model.decision_function(QUERIES), atol=1e-10
    )


def test_other_kernels_have_no_coef():
    with pytest.raises(AttributeError, match="linear"):
        fitted().coef_  # noqa: B018


def test_there_are_no_probabilities():
    with pytest.raises(AttributeError) as caught:
        fitted().predict_proba  # noqa: B018
    assert "CalibratedClassifierCV" in str(caught.value.__cause__)


@pytest.mark.parametrize("landmarks", ["random", "kmeans++", "cholesky"])
def test_a_share_of_the_trace_settles_the_rank(landmarks):
    model = fitted(rank=0.01, landmarks=landmarks)
    assert 0 < model.rank_ <= 120
    np.testing.assert_allclose(
        model.decision_function(QUERIES),
        fitted().decision_function(QUERIES),
        atol=0.2 * np.abs(fitted().decision_function(QUERIES)).max(),
    )


def test_rank_is_left_out_unless_it_is_asked_for():
    assert (fitted().rank_, fitted(rank=20).rank_) == (None, 20)


# --- stages --------------------------------------------------------------------------------------

STAGED = {
    "plain": {},
    "bias": {"fit_intercept": True},
    "low rank": {"rank": 20},
    "low rank, bias": {"rank": 20, "fit_intercept": True},
    "pivots": {"rank": 20, "landmarks": "cholesky"},
    "standardised": {"standardize": True},
    "linear": {"kernel": "linear"},
    "float32": {"dtype": "float32"},
}
STAGED_CASES = pytest.mark.parametrize("case", STAGED)


@CLASSES
@STAGED_CASES
def test_there_is_a_decision_a_stage(multi_class, case):
    model = fitted(multi_class, **STAGED[case])
    n = len(list(model.staged_decision_function(queries(multi_class))))
    assert n == np.max(model.n_stages_)


@CLASSES
@STAGED_CASES
def test_the_last_stage_is_the_decision(multi_class, case):
    model, Q = fitted(multi_class, **STAGED[case]), queries(multi_class)
    *_, last = model.staged_decision_function(Q)
    rtol = 1e-3 if case == "float32" else 1e-7
    expected = model.decision_function(Q)
    np.testing.assert_allclose(last, expected, rtol=rtol, atol=rtol * np.abs(expected).max())


@CLASSES
@BIAS
def test_a_stage_is_the_decision_after_so_many(multi_class, bias):
    Q = queries(multi_class)
    stages = list(fitted(multi_class, fit_intercept=bias).staged_decision_function(Q))
    short = fitted(multi_class, 5, fit_intercept=bias)
    np.testing.assert_allclose(stages[4], short.decision_function(Q), rtol=1e-7, atol=1e-10)


@CLASSES
def test_staged_predictions_are_those_of_the_decisions(multi_class):
    model, Q = fitted(multi_class), queries(multi_class)
    for scores, predicted in zip(
        model.staged_decision_function(Q), model.staged_predict(Q), strict=True
    ):
        winners = (scores >= 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        np.testing.assert_array_equal(predicted, model.classes_[winners])


def test_machines_that_end_early_stay_at_their_last_stage():
    model = fitted("ovo", "eps")
    assert len(set(model.n_stages_)) > 1
    *_, last = model.staged_decision_function(QUERIES_3)
    np.testing.assert_allclose(last, model.decision_function(QUERIES_3), atol=1e-9)


def test_stages_do_not_depend_on_how_many_are_expanded_at_once(monkeypatch):
    model = fitted("ovo", fit_intercept=True)
    expected = list(model.staged_decision_function(QUERIES_3))
    monkeypatch.setattr("hardmargin.estimators._base.planes._COEFFICIENTS_AT_ONCE", 1)
    stages = list(model.staged_decision_function(QUERIES_3))
    np.testing.assert_allclose(stages, expected, rtol=1e-12)


def test_without_any_stage_there_is_the_first_plane():
    model = published(gamma=1e3).fit(np.eye(4), [0, 1, 0, 1])
    assert model.n_stages_ == 0
    [only] = model.staged_decision_function(np.eye(4))
    np.testing.assert_allclose(only, model.decision_function(np.eye(4)))


def test_many_planes_are_kept_in_float32(monkeypatch):
    monkeypatch.setattr("hardmargin.estimators._base.planes.MAX_EXACT_PLANES", 8 * 120 * 6)
    model = published(12).fit(*cancer())
    *_, last = model.staged_decision_function(QUERIES)
    assert model._planes_[0].dtype == np.float32
    np.testing.assert_allclose(last, model.decision_function(QUERIES), rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_planes_that_do_not_fit_are_not_kept(monkeypatch, n_jobs):
    monkeypatch.setattr("hardmargin.estimators._base.planes.PLANES_SHARE", 1e-12)
    model = published(12, n_jobs=n_jobs).fit(*iris())
    with pytest.raises(AttributeError, match="raise memory_limit"):
        list(model.staged_predict(QUERIES_3))


def test_a_model_without_planes_decides(monkeypatch):
    monkeypatch.setattr("hardmargin.estimators._base.planes.PLANES_SHARE", 1e-12)
    model = published(12).fit(*cancer())
    np.testing.assert_allclose(
        model.decision_function(QUERIES), fitted().decision_function(QUERIES), rtol=1e-10
    )


@pytest.mark.parametrize("method", ["staged_predict", "staged_decision_function", "predict"])
def test_unfitted_models_say_so(method):
    with pytest.raises(NotFittedError):
        list(getattr(published(), method)(QUERIES))


@pytest.mark.parametrize("method", ["staged_predict", "staged_decision_function", "predict"])
def test_queries_of_the_wrong_width_are_refused(method):
    with pytest.raises(ValueError, match="features"):
        list(getattr(fitted(), method)(QUERIES[:, :3]))


# --- precomputed, callable, sparse ---------------------------------------------------------------


@CLASSES
@RANKS
@BIAS
def test_precomputed_equals_the_kernel(multi_class, rank, bias):
    X, y = cancer() if multi_class is None else iris()
    Q = queries(multi_class)
    model = published(
        12,
        kernel="precomputed",
        rank=rank,
        multi_class=multi_class or "ovo",
        random_state=0,
        fit_intercept=bias,
    ).fit(rbf(X, X, 0.1), y)
    expected = fitted(multi_class, gamma=0.1, rank=rank, fit_intercept=bias).decision_function(Q)
    np.testing.assert_allclose(
        model.decision_function(rbf(Q, X, 0.1)), expected, rtol=1e-5, atol=1e-7
    )


@CLASSES
@RANKS
def test_precomputed_stages(multi_class, rank):
    X, y = cancer() if multi_class is None else iris()
    Q = rbf(queries(multi_class), X, 0.1)
    model = published(
        6, kernel="precomputed", rank=rank, multi_class=multi_class or "ovo", random_state=0
    ).fit(rbf(X, X, 0.1), y)
    *_, last = model.staged_decision_function(Q)
    np.testing.assert_allclose(last, model.decision_function(Q), rtol=1e-6, atol=1e-9)


def test_precomputed_ignores_standardize():
    X, y = cancer()
    plain, standardised = (
        published(5, kernel="precomputed", standardize=s).fit(rbf(X, X, 0.1), y)
        for s in (False, True)
    )
    np.testing.assert_array_equal(plain.dual_coef_, standardised.dual_coef_)


def narrow_rbf(A, B):
    return rbf(A, B, 0.1)


def test_callable_equals_the_kernel():
    model = fitted(kernel=narrow_rbf)
    np.testing.assert_allclose(
        model.decision_function(QUERIES),
        fitted(gamma=0.1).decision_function(QUERIES),
        rtol=1e-6,
    )


@CLASSES
@RANKS
@pytest.mark.parametrize("container", [sp.csr_array, sp.csr_matrix, sp.csc_array])
def test_sparse_equals_dense(multi_class, rank, container):
    X, y = cancer() if multi_class is None else iris()
    model = published(12, multi_class=multi_class or "ovo", rank=rank, random_state=0)
    model.fit(container(X), y)
    Q = queries(multi_class)
    np.testing.assert_allclose(
        model.decision_function(container(Q)),
        fitted(multi_class, rank=rank).decision_function(Q),
        rtol=1e-5,
        atol=1e-7,
    )


# --- standardize, gamma --------------------------------------------------------------------------


@CLASSES
@BIAS
def test_standardize_equals_a_pipeline(multi_class, bias):
    X, y = iris()
    X, Q = X * [1.0, 100.0, 1e-3, 1.0] + [0.0, 5.0, 0.0, -3.0], QUERIES_3 * [1, 100, 1e-3, 1]
    if multi_class is None:
        y = y == 1
    parameters = {"multi_class": multi_class or "ovo", "fit_intercept": bias}
    inside = published(12, standardize=True, **parameters).fit(X, y)
    outside = make_pipeline(StandardScaler(), published(12, **parameters)).fit(X, y)
    np.testing.assert_allclose(
        inside.decision_function(Q), outside.decision_function(Q), rtol=1e-6, atol=1e-9
    )


def test_standardize_of_sparse_rows_scales_only():
    X, y = iris()
    X = sp.csr_array(X * (X > 1.0))
    inside = published(12, standardize=True).fit(X, y)
    outside = make_pipeline(StandardScaler(with_mean=False), published(12)).fit(X, y)
    np.testing.assert_allclose(
        inside.decision_function(X), outside.decision_function(X), rtol=1e-6, atol=1e-9
    )


def test_standardize_uses_the_weights():
    X, y = iris()
    weights = np.random.default_rng(0).integers(0, 3, size=len(y))
    weighted = published(12, standardize=True).fit(X, y, sample_weight=weights)
    copied = published(12, standardize=True).fit(
        np.repeat(X, weights, axis=0), np.repeat(y, weights)
    )
    np.testing.assert_allclose(
        weighted.decision_function(QUERIES_3), copied.decision_function(QUERIES_3), rtol=1e-5
    )


def test_standardize_leaves_the_input():
    X, y = iris()
    rows = X.copy()
    published(3, standardize=True).fit(rows, y).predict(rows)
    np.testing.assert_array_equal(rows, X)


@pytest.mark.parametrize("rule", ["scale", "spread", "pairwise"])
@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
def test_gamma_rules(rule, kernel):
    X, y = cancer()
    model = published(1, gamma=rule, kernel=kernel).fit(X, y)
    assert model.gamma_ == resolve_gamma(rule, X, kernel=kernel)


def test_gamma_rules_see_standardised_features():
    X, y = iris()
    assert published(1, standardize=True).fit(X, y).gamma_ == pytest.approx(1 / 4)


def test_gamma_rules_see_weights():
    X, y = iris()
    weights = np.arange(len(y), dtype=float)
    expected = resolve_gamma("spread", X, sample_weight=weights)
    model = published(1).fit(X, y, sample_weight=weights)
    assert model.gamma_ == pytest.approx(expected, rel=1e-12)


# --- weights -------------------------------------------------------------------------------------


def whole_weights(n):
    return np.random.default_rng(1).integers(0, 4, size=n)


@CLASSES
@BIAS
def test_whole_weights_are_copies(multi_class, bias):
    X, y = cancer() if multi_class is None else iris()
    weights = whole_weights(len(y))
    model = published(12, multi_class=multi_class or "ovo", fit_intercept=bias)
    weighted = clone(model).fit(X, y, sample_weight=weights)
    copied = clone(model).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    Q = queries(multi_class)
    np.testing.assert_allclose(
        weighted.decision_function(Q), copied.decision_function(Q), rtol=1e-5, atol=1e-8
    )


@CLASSES
@RANKS
def test_weights_of_zero_are_absence(multi_class, rank):
    X, y = cancer() if multi_class is None else iris()
    weights = whole_weights(len(y)).astype(float)
    rows = weights > 0
    model = published(12, multi_class=multi_class or "ovo", rank=rank, random_state=0)
    weighted = clone(model).fit(X, y, sample_weight=weights)
    absent = clone(model).fit(X[rows], y[rows], sample_weight=weights[rows])
    Q = queries(multi_class)
    np.testing.assert_allclose(
        weighted.decision_function(Q), absent.decision_function(Q), rtol=1e-6, atol=1e-9
    )


def test_rows_of_weight_zero_are_no_support():
    X, y = cancer()
    weights = whole_weights(len(y))
    model = published(3).fit(X, y, sample_weight=weights)
    np.testing.assert_array_equal(model.support_, np.flatnonzero(weights))


@CLASSES
def test_stages_of_a_weighted_fit(multi_class):
    X, y = cancer() if multi_class is None else iris()
    model = published(6, multi_class=multi_class or "ovo", fit_intercept=True)
    model.fit(X, y, sample_weight=whole_weights(len(y)))
    *_, last = model.staged_decision_function(queries(multi_class))
    np.testing.assert_allclose(last, model.decision_function(queries(multi_class)), atol=1e-9)


@CLASSES
def test_class_weights_multiply_sample_weights(multi_class):
    X, y = cancer() if multi_class is None else iris()
    by_class = {0: 3.0, 1: 0.5, 2: 1.0}
    model = published(12, multi_class=multi_class or "ovo", gamma=0.1)
    in_classes = clone(model).set_params(class_weight=by_class).fit(X, y)
    in_samples = model.fit(X, y, sample_weight=np.vectorize(by_class.get)(y))
    Q = queries(multi_class)
    np.testing.assert_allclose(
        in_classes.decision_function(Q), in_samples.decision_function(Q), rtol=1e-8, atol=1e-11
    )


def test_balanced_classes_have_the_same_mass():
    X, y = cancer()
    model = fit_quietly(published(class_weight="balanced", max_time=1e-9), X, y)  # no stage
    masses = [np.abs(model.dual_coef_[0, y == c]).sum() for c in (0, 1)]
    assert masses == pytest.approx([0.5, 0.5])


def test_balance_moves_decisions_towards_the_smaller_class():
    X, y = cancer()
    rows = np.concatenate([np.flatnonzero(y == 1)[:8], np.flatnonzero(y == 0)])
    plain, balanced = (
        published(3, class_weight=w).fit(X[rows], y[rows]).decision_function(QUERIES)
        for w in (None, "balanced")
    )
    assert (balanced > plain).all()


# --- odd input -----------------------------------------------------------------------------------


def assert_finite(model, X):
    values = [dense(model.dual_coef_), model.intercept_, model.decision_function(X)]
    values += list(model.staged_decision_function(X))
    assert all(np.isfinite(v).all() for v in values)


ODD = {
    "plain": {},
    "bias": {"fit_intercept": True},
    "standardised": {"standardize": True},
    "low rank": {"rank": 5},
    "float32": {"dtype": "float32"},
    "linear": {"kernel": "linear"},
    "ovr": {"multi_class": "ovr"},
}
ODD_CASES = pytest.mark.parametrize("case", ODD)


def odd_fit(case, X, y, **parameters):
    model = published(random_state=0, max_stages=300, **ODD[case], **parameters)
    assert_finite(fit_quietly(model, X, y), X)


@ODD_CASES
def test_conflicting_duplicates(case):
    X, y = cancer(40)
    odd_fit(case, np.vstack([X, X]), np.concatenate([y, 1 - y]))


@ODD_CASES
def test_some_conflicting_duplicates(case):
    X, y = cancer(40)
    odd_fit(case, np.vstack([X, X[:3]]), np.concatenate([y, 1 - y[:3]]))


@ODD_CASES
def test_few_spots_with_both_labels(case):
    # Three binary features: rows of both labels on each of eight spots, like the titanic data.
    rng = np.random.default_rng(0)
    X = rng.integers(2, size=(200, 3)).astype(float)
    y = (rng.uniform(size=200) < 0.2 + 0.5 * X[:, 0]).astype(int)
    odd_fit(case, X, y)


def test_few_spots_with_both_labels_are_decided_by_majority():
    rng = np.random.default_rng(0)
    X = rng.integers(2, size=(400, 3)).astype(float)
    y = (rng.uniform(size=400) < 0.1 + 0.8 * X[:, 0]).astype(int)
    model = fit_quietly(published(), X, y)
    assert (model.predict(X) == X[:, 0]).mean() > 0.95


@ODD_CASES
def test_a_row_a_class(case):
    odd_fit(case, np.array([[0.0, 1.0], [1.0, 0.0]]), [0, 1])


@ODD_CASES
def test_a_row_a_class_of_many(case):
    odd_fit(case, np.eye(5), list("abcde"))


@ODD_CASES
@pytest.mark.parametrize("scale", [1e-12, 1e12])
def test_features_of_any_scale(case, scale):
    X, y = cancer(40)
    odd_fit(case, scale * X, y)


@pytest.mark.parametrize("scale", [1e-12, 1e12])
@pytest.mark.parametrize("standardize", [False, True])
def test_the_scale_of_the_features_changes_nothing(scale, standardize):
    X, y = cancer(40)
    scaled, plain = (
        published(5, standardize=standardize).fit(s * X, y).decision_function(s * QUERIES)
        for s in (scale, 1.0)
    )
    np.testing.assert_allclose(scaled, plain, rtol=1e-4, atol=1e-7)


@ODD_CASES
def test_a_thousand_to_one(case):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1001, 3))
    y = np.zeros(1001, dtype=int)
    y[250] = 1
    odd_fit(case, X, y, n_stages=20)


@ODD_CASES
def test_constant_columns(case):
    X, y = cancer(40)
    odd_fit(case, np.hstack([X, np.full((40, 2), 5.0)]), y)


@pytest.mark.filterwarnings("ignore:.*look the same to the")
@ODD_CASES
def test_rows_that_are_all_equal(case):
    odd_fit(case, np.full((10, 2), 3.0), [0, 1] * 5)


@pytest.mark.parametrize("weight", [1e-300, 1e-12, 1e12, 1e300])
@BIAS
def test_weights_of_any_size(weight, bias):
    X, y = cancer(40)
    model = published(12, fit_intercept=bias)
    model.fit(X, y, sample_weight=np.where(np.arange(40) % 2, weight, 1.0))
    assert_finite(model, X)


def test_class_weights_of_any_size():
    X, y = cancer(40)
    model = published(12, class_weight={0: 1e-200, 1: 1e-200})
    model.fit(X, y, sample_weight=np.where(np.arange(40) % 2, 1e-200, 1.0))
    assert_finite(model, X)


BAD = {
    "no stages": {"n_stages": 0},
    "half a stage": {"n_stages": 1.5},
    "unknown stages": {"n_stages": "all"},
    "unknown kernel": {"kernel": "gauss"},
    "unknown gamma": {"gamma": "auto"},
    "zero gamma": {"gamma": 0.0},
    "no first epsilon": {"eps_start": 0.0},
    "no last epsilon": {"eps_stop": 0.0},
    "unknown loss": {"loss": "hinge"},
    "no rank": {"rank": 0},
    "negative rank": {"rank": -3},
    "rank above one": {"rank": 1.5},
    "unknown rank": {"rank": "full"},
    "unknown landmarks": {"landmarks": "first"},
    "no limit on stages": {"max_stages": 0},
    "no time": {"max_time": 0},
    "unknown multi_class": {"multi_class": "all"},
    "unknown dtype": {"dtype": "float16"},
    "unknown memory": {"memory_limit": "2 gallons"},
    "no jobs": {"n_jobs": 0},
    "negative class weight": {"class_weight": {0: -1.0}},
    "standardize by word": {"standardize": "yes"},
}


@pytest.mark.parametrize("case", BAD)
def test_bad_parameters_are_refused_by_name(case):
    [name] = BAD[case]
    with pytest.raises(ValueError, match=name):
        published(**BAD[case]).fit(*cancer(20))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_rows_that_are_not_finite_are_refused(value):
    X, y = cancer(20)
    X = X.copy()
    X[3, 1] = value
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        published().fit(X, y)


@RANKS
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_kernels_that_are_not_finite_are_refused(value, rank):
    with pytest.raises(ValueError, match="finite"):
        published(kernel=lambda A, B: np.full((len(A), len(B)), value), rank=rank).fit(*iris())


@pytest.mark.parametrize("scale", [2.0**-1000, 2.0**600])
def test_features_of_any_size_are_standardised(scale):
    X, y = iris()
    plain, scaled = (published(standardize=True).fit(k * X, y) for k in (1.0, scale))
    np.testing.assert_allclose(plain.decision_function(X), scaled.decision_function(scale * X))


def test_a_rank_beyond_the_memory_names_both():
    with pytest.raises(ValueError, match=r"rank=.*memory_limit"):
        published(rank=100, memory_limit="10KB").fit(*cancer())


def test_a_refused_fit_leaves_the_earlier_one():
    model = published(3).fit(*cancer(20)).set_params(rank=15, memory_limit=10)
    before = dict(vars(model))
    with pytest.raises(ValueError, match="memory_limit"):
        model.fit(*cancer())
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[k] is before[k] for k in before)


# --- limits --------------------------------------------------------------------------------------


@CLASSES
def test_the_limit_on_the_stages_warns(multi_class):
    X, y = cancer() if multi_class is None else iris()
    with pytest.warns(ConvergenceWarning, match="max_stages"):
        published(max_stages=3, multi_class=multi_class or "ovo").fit(X, y)


def test_the_limit_on_the_stages_keeps_the_model_so_far():
    model = fit_quietly(published(max_stages=3), *cancer())
    np.testing.assert_allclose(model.dual_coef_, fitted(None, 3).dual_coef_, rtol=1e-12)


@CLASSES
def test_the_limit_on_time_warns(multi_class):
    X, y = cancer() if multi_class is None else iris()
    with pytest.warns(ConvergenceWarning, match="max_time"):
        published(max_time=1e-9, multi_class=multi_class or "ovo").fit(X, y)


@CLASSES
@BIAS
def test_the_limit_on_time_keeps_a_model(multi_class, bias):
    X, y = cancer() if multi_class is None else iris()
    model = published(max_time=1e-9, multi_class=multi_class or "ovo", fit_intercept=bias)
    assert_finite(fit_quietly(model, X, y), X)


def test_enough_time_changes_nothing():
    np.testing.assert_array_equal(fitted(max_time=1000).dual_coef_, fitted().dual_coef_)


def test_an_ordinary_fit_does_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        published().fit(*cancer())


@pytest.mark.filterwarnings("ignore:.*look the same to the")
def test_overlapping_classes_warn_of_what_happened():
    with pytest.warns(ConvergenceWarning, match="no margin is left.*larger gamma"):
        published().fit(np.ones((6, 2)), [0, 1] * 3)


def test_a_kernel_too_narrow_for_any_stage_warns():
    X, y = cancer()
    with pytest.warns(ConvergenceWarning, match="Lower gamma"):
        clf = published(gamma=1e6).fit(X, y)
    assert clf.n_stages_ == 0


def test_a_number_of_stages_needs_no_other_limit():
    X, y = cancer()
    assert published(5).fit(X, y).n_stages_ == 5


def test_eps_stop_above_eps_start_is_refused():
    X, y = cancer()
    with pytest.raises(ValueError, match="eps_start"):
        published(eps_stop=0.2).fit(X, y)


def test_at_low_rank_overlapping_classes_are_nothing_to_warn_of():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message="All rows look the same to the kernel")
        clf = published(rank=1).fit(np.ones((6, 2)), [0, 1] * 3)
    assert clf.stop_reason_ == "rho_zero"


SMALL = 8 * 120 * 120  # the matrix may take half of it


@CLASSES
def test_a_matrix_that_does_not_fit_warns(multi_class):
    X, y = cancer() if multi_class is None else iris()
    with pytest.warns(UserWarning, match="memory_limit"):
        published(3, memory_limit=4000, multi_class=multi_class or "ovo").fit(X, y)


@CLASSES
@pytest.mark.parametrize("kernel", ["rbf", narrow_rbf])
def test_a_matrix_that_does_not_fit_changes_nothing(multi_class, kernel):
    X, y = cancer() if multi_class is None else iris()
    model = published(12, kernel=kernel, memory_limit=4000, multi_class=multi_class or "ovo")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model.fit(X, y)
    Q = queries(multi_class)
    np.testing.assert_allclose(
        model.decision_function(Q),
        fitted(multi_class, kernel=kernel).decision_function(Q),
        rtol=1e-6,
        atol=1e-9,
    )


def test_a_warning_of_memory_names_the_rank():
    with pytest.warns(UserWarning, match="rank"):
        published(3, memory_limit=SMALL).fit(*cancer())


@MULTI_CLASS
@RANKS
@BIAS
def test_threads_change_nothing(multi_class, rank, bias):
    one, two = (
        fitted(multi_class, rank=rank, fit_intercept=bias, n_jobs=n).decision_function(QUERIES_3)
        for n in (1, 2)
    )
    np.testing.assert_allclose(one, two, rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize("n_jobs", [1, 2])
@CLASSES
@RANKS
def test_an_interrupt_leaves_the_estimator_unfitted(multi_class, n_jobs, rank):
    def interrupt(A, B):
        if len(A) != len(B):
            return np.ones((len(A), len(B)))
        raise KeyboardInterrupt

    X, y = cancer() if multi_class is None else iris()
    model = published(kernel=interrupt, multi_class=multi_class or "ovo", n_jobs=n_jobs, rank=rank)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert vars(model).keys() == vars(published()).keys()


@pytest.mark.parametrize("n_jobs", [1, 2])
@CLASSES
def test_an_interrupt_between_stages_leaves_the_estimator_unfitted(
    multi_class, n_jobs, monkeypatch
):
    def interrupt(run, stage, value):
        raise KeyboardInterrupt

    monkeypatch.setattr("hardmargin.estimators._base.run.Run.keep_going", interrupt)
    X, y = cancer() if multi_class is None else iris()
    model = published(multi_class=multi_class or "ovo", n_jobs=n_jobs)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert vars(model).keys() == vars(published()).keys()


# --- copies --------------------------------------------------------------------------------------


@CLASSES
@pytest.mark.parametrize(
    "round_trip", [lambda m: pickle.loads(pickle.dumps(m)), copy.copy, copy.deepcopy]
)
def test_copies_decide_alike(round_trip, multi_class):
    model, Q = fitted(multi_class, standardize=True), queries(multi_class)
    np.testing.assert_array_equal(
        round_trip(model).decision_function(Q), model.decision_function(Q)
    )


def test_copies_have_the_stages():
    model = fitted(rank=20)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(
        list(again.staged_decision_function(QUERIES)), list(model.staged_decision_function(QUERIES))
    )


def test_a_clone_has_the_parameters():
    model = published(7, gamma=0.7, rank=3, class_weight={0: 2.0}, n_jobs=2)
    assert clone(model).get_params() == model.get_params()


def test_a_clone_is_not_fitted():
    assert not hasattr(clone(fitted()), "classes_")


def test_fitting_again_forgets_the_first_fit():
    model = published(12, standardize=True, rank=5).fit(*iris())
    model.set_params(standardize=False, rank=None).fit(*cancer())
    np.testing.assert_array_equal(
        model.decision_function(QUERIES), fitted().decision_function(QUERIES)
    )


def test_the_seed_draws_the_landmarks():
    one, same, other = (
        published(3, rank=10, random_state=s).fit(*cancer()).support_.tolist() for s in (1, 1, 2)
    )
    assert one == same != other


def test_verbose_is_silent_on_short_fits(capsys):
    published(3, verbose=1).fit(*cancer())
    assert capsys.readouterr().out == ""


def test_labels_of_any_type():
    X, y = iris()
    names = np.array(["setosa", "versicolor", "virginica"], dtype=object)[y]
    model = published(12).fit(X, names)
    assert set(model.predict(QUERIES_3)) <= set(names)
