"""RhoEnsembleSVC: the vote of the paper, its attributes, and its stages."""

import numpy as np
import pytest
import scipy.sparse as sp
from oracles.rho import algorithm_1
from problems.rho import (
    BIAS,
    CLASSES,
    MULTI_CLASS,
    QUERIES,
    QUERIES_3,
    RANKS,
    cancer,
    dense,
    iris,
    queries,
    rbf,
    spread,
    voted,
)
from sklearn.exceptions import NotFittedError

from hardmargin import RhoEnsembleSVC

# --- the paper ------------------------------------------------------------------------------------


@BIAS
@pytest.mark.parametrize("n_stages", [1, 12])
def test_the_vote_equals_the_oracle(bias, n_stages):
    X, y = cancer()
    signs = np.where(y == 1, 1.0, -1.0)
    path = algorithm_1(rbf(X, X, spread(X)), signs, bias=bias, n_stages=n_stages)
    expected = rbf(QUERIES, X, spread(X)) @ (signs * path.ensemble) + path.intercept
    model = RhoEnsembleSVC(n_stages, fit_intercept=bias, dtype="float64").fit(X, y)
    np.testing.assert_allclose(model.decision_function(QUERIES), expected, rtol=1e-5, atol=1e-8)


def test_the_epsilons_are_the_papers():
    parameters = RhoEnsembleSVC().get_params()
    assert (parameters["eps_start"], parameters["eps_stop"]) == (0.1, 0.005)


def test_the_path_ends_by_epsilon():
    model = RhoEnsembleSVC().fit(*cancer())
    assert model.stop_reason_ == "eps"


def test_held_out_rows_are_classified():
    X, y = cancer(400)
    assert RhoEnsembleSVC().fit(X[:300], y[:300]).score(X[300:], y[300:]) > 0.93


@MULTI_CLASS
@BIAS
def test_many_classes_are_classified(multi_class, bias):
    X, y = iris()
    model = RhoEnsembleSVC(multi_class=multi_class, fit_intercept=bias).fit(X[::2], y[::2])
    assert model.score(X[1::2], y[1::2]) > 0.85


@BIAS
@pytest.mark.parametrize("machine", range(3))
def test_a_machine_of_many_is_that_of_its_pair(machine, bias):
    X, y = iris()
    pair = [(0, 1), (0, 2), (1, 2)][machine]
    rows = np.isin(y, pair)
    many = voted("ovo", gamma=0.3, fit_intercept=bias)
    two = RhoEnsembleSVC(12, gamma=0.3, fit_intercept=bias).fit(X[rows], y[rows])
    np.testing.assert_allclose(dense(many.dual_coef_)[machine, rows], two.dual_coef_[0], rtol=1e-6)


@pytest.mark.parametrize("machine", range(3))
def test_a_machine_against_the_rest_is_that_of_two_classes(machine):
    X, y = iris()
    many = voted("ovr", gamma=0.3)
    two = RhoEnsembleSVC(12, gamma=0.3).fit(X, y == machine)
    np.testing.assert_allclose(dense(many.dual_coef_)[machine], two.dual_coef_[0], rtol=1e-6)


# --- attributes -----------------------------------------------------------------------------------


@RANKS
def test_shapes_for_two_classes(rank):
    model = voted(rank=rank)
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
    model = voted(multi_class, rank=rank)
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
    "cosine_path_": 12,
    "rho_path_": 13,
}
SCALARS = ("rho_lower_bound_", "certificate_", "n_stages_", "n_iter_", "stop_reason_")


@pytest.mark.parametrize("name", PATHS)
def test_a_path_of_two_classes_is_an_array(name):
    assert getattr(voted(), name).shape == (PATHS[name],)


@pytest.mark.parametrize("name", PATHS)
@MULTI_CLASS
def test_paths_of_many_classes_are_a_list(name, multi_class):
    paths = getattr(voted(multi_class), name)
    assert isinstance(paths, list)
    assert [p.shape for p in paths] == [(PATHS[name],)] * 3


@pytest.mark.parametrize("name", SCALARS)
def test_two_classes_have_one_value(name):
    assert np.shape(getattr(voted(), name)) == ()


@pytest.mark.parametrize("name", SCALARS)
@MULTI_CLASS
def test_many_classes_have_a_value_per_machine(name, multi_class):
    assert np.shape(getattr(voted(multi_class), name)) == (3,)


def test_stages_are_counted():
    model = voted()
    assert (model.n_stages_, model.n_iter_, model.stop_reason_) == (12, 12, "n_stages")


def test_public_attributes_are_plain():
    kinds = (np.ndarray, list, int, float, str, bool, type(None), sp.csr_array)
    public = {k: v for k, v in vars(voted("ovo")).items() if not k.startswith("_")}
    assert [k for k, v in public.items() if not isinstance(v, kinds)] == []


@CLASSES
def test_multipliers_of_a_machine_add_up_to_one(multi_class):
    coefficients = dense(voted(multi_class).dual_coef_)
    np.testing.assert_allclose(np.abs(coefficients).sum(axis=1), 1.0, rtol=1e-10)


@CLASSES
def test_the_objective_never_rises(multi_class):
    paths = voted(multi_class, "eps").rho_path_
    for path in [paths] if multi_class is None else paths:
        assert (np.diff(path) <= 0).all()


def test_the_certificate_is_the_gap():
    model = voted()
    assert model.certificate_ == pytest.approx(1 - model.rho_lower_bound_ / model.rho_path_[-1])


def test_without_bias_the_intercept_is_zero():
    assert voted().intercept_.tolist() == [0.0]


def test_coef_is_for_the_linear_kernel():
    model = voted(kernel="linear")
    np.testing.assert_allclose(
        QUERIES @ model.coef_[0] + model.intercept_, model.decision_function(QUERIES), atol=1e-10
    )


def test_other_kernels_have_no_coef():
    with pytest.raises(AttributeError, match="linear"):
        voted().coef_  # noqa: B018


def test_there_are_no_probabilities():
    with pytest.raises(AttributeError) as caught:
        voted().predict_proba  # noqa: B018
    assert "CalibratedClassifierCV" in str(caught.value.__cause__)


@pytest.mark.parametrize("landmarks", ["random", "kmeans++", "cholesky"])
def test_a_share_of_the_trace_settles_the_rank(landmarks):
    model = voted(rank=0.01, landmarks=landmarks)
    assert 0 < model.rank_ <= 120
    np.testing.assert_allclose(
        model.decision_function(QUERIES),
        voted().decision_function(QUERIES),
        atol=0.2 * np.abs(voted().decision_function(QUERIES)).max(),
    )


def test_rank_is_left_out_unless_it_is_asked_for():
    assert (voted().rank_, voted(rank=20).rank_) == (None, 20)


# --- stages ---------------------------------------------------------------------------------------

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
def test_there_is_a_decision_per_stage(multi_class, case):
    model = voted(multi_class, **STAGED[case])
    n = len(list(model.staged_decision_function(queries(multi_class))))
    assert n == np.max(model.n_stages_)


@CLASSES
@STAGED_CASES
def test_the_last_stage_is_the_decision(multi_class, case):
    model, Q = voted(multi_class, **STAGED[case]), queries(multi_class)
    *_, last = model.staged_decision_function(Q)
    rtol = 1e-3 if case == "float32" else 1e-7
    expected = model.decision_function(Q)
    np.testing.assert_allclose(last, expected, rtol=rtol, atol=rtol * np.abs(expected).max())


@CLASSES
@BIAS
def test_a_stage_is_the_decision_after_that_many(multi_class, bias):
    Q = queries(multi_class)
    stages = list(voted(multi_class, fit_intercept=bias).staged_decision_function(Q))
    short = voted(multi_class, 5, fit_intercept=bias)
    np.testing.assert_allclose(stages[4], short.decision_function(Q), rtol=1e-7, atol=1e-10)


@CLASSES
def test_staged_predictions_are_those_of_the_decisions(multi_class):
    model, Q = voted(multi_class), queries(multi_class)
    for scores, predicted in zip(
        model.staged_decision_function(Q), model.staged_predict(Q), strict=True
    ):
        winners = (scores >= 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        np.testing.assert_array_equal(predicted, model.classes_[winners])


def test_machines_that_end_early_stay_at_their_last_stage():
    model = voted("ovo", "eps")
    assert len(set(model.n_stages_)) > 1
    *_, last = model.staged_decision_function(QUERIES_3)
    np.testing.assert_allclose(last, model.decision_function(QUERIES_3), atol=1e-9)


def test_stages_do_not_depend_on_how_many_are_expanded_at_once(monkeypatch):
    model = voted("ovo", fit_intercept=True)
    expected = list(model.staged_decision_function(QUERIES_3))
    monkeypatch.setattr("hardmargin.estimators._base.planes.COEFFICIENTS_AT_ONCE", 1)
    stages = list(model.staged_decision_function(QUERIES_3))
    np.testing.assert_allclose(stages, expected, rtol=1e-12)


def test_without_any_stage_there_is_the_first_plane():
    model = RhoEnsembleSVC(gamma=1e3).fit(np.eye(4), [0, 1, 0, 1])
    assert model.n_stages_ == 0
    [only] = model.staged_decision_function(np.eye(4))
    np.testing.assert_allclose(only, model.decision_function(np.eye(4)))


def test_many_planes_are_kept_in_float32(monkeypatch):
    monkeypatch.setattr("hardmargin.solvers.planes.MAX_FLOAT64_BYTES", 8 * 120 * 6)
    model = RhoEnsembleSVC(12).fit(*cancer())
    *_, last = model.staged_decision_function(QUERIES)
    assert model._stages_[0].coefficients.dtype == np.float32
    np.testing.assert_allclose(last, model.decision_function(QUERIES), rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_planes_that_do_not_fit_are_not_kept(monkeypatch, n_jobs):
    monkeypatch.setattr("hardmargin.estimators._base.planes.PLANES_SHARE", 1e-12)
    model = RhoEnsembleSVC(12, n_jobs=n_jobs).fit(*iris())
    with pytest.raises(AttributeError, match="raise memory_limit"):
        list(model.staged_predict(QUERIES_3))


def test_a_model_without_planes_decides(monkeypatch):
    monkeypatch.setattr("hardmargin.estimators._base.planes.PLANES_SHARE", 1e-12)
    model = RhoEnsembleSVC(12).fit(*cancer())
    np.testing.assert_allclose(
        model.decision_function(QUERIES), voted().decision_function(QUERIES), rtol=1e-10
    )


@pytest.mark.parametrize("method", ["staged_predict", "staged_decision_function", "predict"])
def test_unfitted_models_say_so(method):
    with pytest.raises(NotFittedError):
        list(getattr(RhoEnsembleSVC(), method)(QUERIES))


@pytest.mark.parametrize("method", ["staged_predict", "staged_decision_function", "predict"])
def test_queries_of_the_wrong_width_are_refused(method):
    with pytest.raises(ValueError, match="features"):
        list(getattr(voted(), method)(QUERIES[:, :3]))
