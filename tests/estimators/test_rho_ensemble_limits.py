"""RhoEnsembleSVC: parameters that are refused, limits, and copies."""

import copy
import pickle
import warnings

import numpy as np
import pytest
from problems.rho import (
    BIAS,
    CLASSES,
    MULTI_CLASS,
    QUERIES,
    QUERIES_3,
    RANKS,
    assert_finite,
    cancer,
    fit_quietly,
    iris,
    narrow_rbf,
    queries,
    voted,
)
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from hardmargin import RhoEnsembleSVC

# --- bad parameters -------------------------------------------------------------------------------

BAD = {
    "no stages": {"n_stages": 0},
    "half a stage": {"n_stages": 1.5},
    "unknown stages": {"n_stages": "all"},
    "unknown kernel": {"kernel": "gauss"},
    "unknown gamma": {"gamma": "auto"},
    "zero gamma": {"gamma": 0.0},
    "no first epsilon": {"eps_start": 0.0},
    "no last epsilon": {"eps_stop": 0.0},
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
        RhoEnsembleSVC(**BAD[case]).fit(*cancer(20))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_rows_that_are_not_finite_are_refused(value):
    X, y = cancer(20)
    X = X.copy()
    X[3, 1] = value
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        RhoEnsembleSVC().fit(X, y)


@RANKS
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_kernels_that_are_not_finite_are_refused(value, rank):
    with pytest.raises(ValueError, match="finite"):
        RhoEnsembleSVC(kernel=lambda A, B: np.full((len(A), len(B)), value), rank=rank).fit(*iris())


@pytest.mark.parametrize("scale", [2.0**-1000, 2.0**600])
def test_features_of_any_size_are_standardised(scale):
    X, y = iris()
    plain, scaled = (RhoEnsembleSVC(standardize=True).fit(k * X, y) for k in (1.0, scale))
    np.testing.assert_allclose(plain.decision_function(X), scaled.decision_function(scale * X))


def test_a_rank_beyond_the_memory_names_both():
    with pytest.raises(ValueError, match=r"rank=.*memory_limit"):
        RhoEnsembleSVC(rank=100, memory_limit="10KB").fit(*cancer())


def test_a_refused_fit_leaves_the_earlier_one():
    model = RhoEnsembleSVC(3).fit(*cancer(20)).set_params(rank=15, memory_limit=10)
    before = dict(vars(model))
    with pytest.raises(ValueError, match="memory_limit"):
        model.fit(*cancer())
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[k] is before[k] for k in before)


# --- limits ---------------------------------------------------------------------------------------


@CLASSES
def test_the_limit_on_the_stages_warns(multi_class):
    X, y = cancer() if multi_class is None else iris()
    with pytest.warns(ConvergenceWarning, match="max_stages"):
        RhoEnsembleSVC(max_stages=3, multi_class=multi_class or "ovo").fit(X, y)


def test_the_limit_on_the_stages_keeps_the_model_so_far():
    model = fit_quietly(RhoEnsembleSVC(max_stages=3), *cancer())
    np.testing.assert_allclose(model.dual_coef_, voted(None, 3).dual_coef_, rtol=1e-12)


@CLASSES
def test_the_limit_on_time_warns(multi_class):
    X, y = cancer() if multi_class is None else iris()
    with pytest.warns(ConvergenceWarning, match="max_time"):
        RhoEnsembleSVC(max_time=1e-9, multi_class=multi_class or "ovo").fit(X, y)


@CLASSES
@BIAS
def test_the_limit_on_time_keeps_a_model(multi_class, bias):
    X, y = cancer() if multi_class is None else iris()
    model = RhoEnsembleSVC(max_time=1e-9, multi_class=multi_class or "ovo", fit_intercept=bias)
    assert_finite(fit_quietly(model, X, y), X)


def test_enough_time_changes_nothing():
    np.testing.assert_array_equal(voted(max_time=1000).dual_coef_, voted().dual_coef_)


def test_an_ordinary_fit_does_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        RhoEnsembleSVC().fit(*cancer())


@pytest.mark.filterwarnings("ignore:.*look the same to the")
def test_overlapping_classes_warn_of_what_happened():
    with pytest.warns(ConvergenceWarning, match="no margin is left.*larger gamma"):
        RhoEnsembleSVC().fit(np.ones((6, 2)), [0, 1] * 3)


def test_a_kernel_too_narrow_for_any_stage_warns():
    X, y = cancer()
    with pytest.warns(ConvergenceWarning, match="Lower gamma"):
        clf = RhoEnsembleSVC(gamma=1e6).fit(X, y)
    assert clf.n_stages_ == 0


def test_a_number_of_stages_needs_no_other_limit():
    X, y = cancer()
    assert RhoEnsembleSVC(5).fit(X, y).n_stages_ == 5


def test_eps_stop_above_eps_start_is_refused():
    X, y = cancer()
    with pytest.raises(ValueError, match="eps_start"):
        RhoEnsembleSVC(eps_stop=0.2).fit(X, y)


def test_at_low_rank_overlapping_classes_give_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message="All rows look the same to the kernel")
        clf = RhoEnsembleSVC(rank=1).fit(np.ones((6, 2)), [0, 1] * 3)
    assert clf.stop_reason_ == "rho_zero"


SMALL = 8 * 120 * 120  # the matrix may take half of it


@CLASSES
def test_a_matrix_that_does_not_fit_warns(multi_class):
    X, y = cancer() if multi_class is None else iris()
    with pytest.warns(UserWarning, match="memory_limit"):
        RhoEnsembleSVC(3, memory_limit=4000, multi_class=multi_class or "ovo").fit(X, y)


@CLASSES
@pytest.mark.parametrize("kernel", ["rbf", narrow_rbf])
def test_a_matrix_that_does_not_fit_changes_nothing(multi_class, kernel):
    X, y = cancer() if multi_class is None else iris()
    model = RhoEnsembleSVC(12, kernel=kernel, memory_limit=4000, multi_class=multi_class or "ovo")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model.fit(X, y)
    Q = queries(multi_class)
    np.testing.assert_allclose(
        model.decision_function(Q),
        voted(multi_class, kernel=kernel).decision_function(Q),
        rtol=1e-6,
        atol=1e-9,
    )


def test_a_warning_of_memory_names_the_rank():
    with pytest.warns(UserWarning, match="rank"):
        RhoEnsembleSVC(3, memory_limit=SMALL).fit(*cancer())


@MULTI_CLASS
@RANKS
@BIAS
def test_threads_change_nothing(multi_class, rank, bias):
    one, two = (
        voted(multi_class, rank=rank, fit_intercept=bias, n_jobs=n).decision_function(QUERIES_3)
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
    model = RhoEnsembleSVC(
        kernel=interrupt, multi_class=multi_class or "ovo", n_jobs=n_jobs, rank=rank
    )
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert vars(model).keys() == vars(RhoEnsembleSVC()).keys()


@pytest.mark.parametrize("n_jobs", [1, 2])
@CLASSES
def test_an_interrupt_between_stages_leaves_the_estimator_unfitted(
    multi_class, n_jobs, monkeypatch
):
    def interrupt(run, stage, value):
        raise KeyboardInterrupt

    monkeypatch.setattr("hardmargin.monitor.Monitor.go_on", interrupt)
    X, y = cancer() if multi_class is None else iris()
    model = RhoEnsembleSVC(multi_class=multi_class or "ovo", n_jobs=n_jobs)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert vars(model).keys() == vars(RhoEnsembleSVC()).keys()


# --- copies ---------------------------------------------------------------------------------------


@CLASSES
@pytest.mark.parametrize(
    "round_trip", [lambda m: pickle.loads(pickle.dumps(m)), copy.copy, copy.deepcopy]
)
def test_copies_decide_alike(round_trip, multi_class):
    model, Q = voted(multi_class, standardize=True), queries(multi_class)
    np.testing.assert_array_equal(
        round_trip(model).decision_function(Q), model.decision_function(Q)
    )


def test_copies_have_the_stages():
    model = voted(rank=20)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(
        list(again.staged_decision_function(QUERIES)), list(model.staged_decision_function(QUERIES))
    )


def test_a_clone_has_the_parameters():
    model = RhoEnsembleSVC(7, gamma=0.7, rank=3, class_weight={0: 2.0}, n_jobs=2)
    assert clone(model).get_params() == model.get_params()


def test_a_clone_is_not_fitted():
    assert not hasattr(clone(voted()), "classes_")


def test_fitting_again_forgets_the_first_fit():
    model = RhoEnsembleSVC(12, standardize=True, rank=5).fit(*iris())
    model.set_params(standardize=False, rank=None).fit(*cancer())
    np.testing.assert_array_equal(
        model.decision_function(QUERIES), voted().decision_function(QUERIES)
    )


def test_the_seed_draws_the_landmarks():
    one, same, other = (
        RhoEnsembleSVC(3, rank=10, random_state=s).fit(*cancer()).support_.tolist()
        for s in (1, 1, 2)
    )
    assert one == same != other


def test_verbose_is_silent_on_short_fits(capsys):
    RhoEnsembleSVC(3, verbose=1).fit(*cancer())
    assert capsys.readouterr().out == ""


def test_labels_of_any_type():
    X, y = iris()
    names = np.array(["setosa", "versicolor", "virginica"], dtype=object)[y]
    model = RhoEnsembleSVC(12).fit(X, names)
    assert set(model.predict(QUERIES_3)) <= set(names)
