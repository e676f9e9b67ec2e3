"""compress: the same function from fewer support rows."""

import copy
import pickle
import re
import warnings
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

import hardmargin.reduction
import hardmargin.reduction.expansion as reduction
from hardmargin import (
    GreedySVC,
    HardMarginSVC,
    MultiplicativeSVC,
    ParzenClassifier,
    RhoEnsembleSVC,
    RhoSVC,
    compress,
)
from hardmargin.kernels import Kernel, KernelSum
from hardmargin.monitor import Monitor
from hardmargin.solvers.forward_selection import NestedLeastSquares

# Most tests compress further than is sensible.
pytestmark = pytest.mark.filterwarnings("ignore:.* support rows are few for this model")

ALL = [RhoEnsembleSVC, GreedySVC, HardMarginSVC, MultiplicativeSVC, ParzenClassifier, RhoSVC]
PATHS = [GreedySVC, MultiplicativeSVC, RhoSVC]


def problem(n=300, n_classes=2, seed=0):
    X, y = make_classification(
        n + 500,
        n_features=6,
        n_informative=5,
        n_redundant=0,
        n_classes=n_classes,
        n_clusters_per_class=2,
        class_sep=1.5,
        flip_y=0.02,
        random_state=seed,
    )
    return X[:n], y[:n], X[n:]


X, Y, NEW = problem()
X3, Y3, NEW3 = problem(n_classes=3, seed=1)


def fitted(estimator, X=X, y=Y, **params):
    if estimator is MultiplicativeSVC:
        params = {"max_stages": 50, **params}
    # The papers' machines, where nothing is chosen.
    if estimator is GreedySVC:
        params = {"max_visits": 1, "threshold": 0.0, **params}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return estimator(**params).fit(X, y)


def greedy(**params):
    return fitted(GreedySVC, **{"gamma": 0.3, **params})


def many(**params):
    return fitted(GreedySVC, X3, Y3, **{"gamma": 0.3, **params})


def wide():
    return greedy(gamma=0.1)


def wide_many():
    return many(gamma=0.1)


def kernel_sum():
    """Add up two machines: two kernels on the same support rows."""
    one, other = (
        fitted(RhoEnsembleSVC, gamma=0.1),
        fitted(RhoEnsembleSVC, kernel="laplacian", gamma=0.2),
    )
    both = copy.deepcopy(one)
    both._kernel_ = KernelSum((one._kernel_, other._kernel_))
    both.dual_coef_ = np.hstack([one.dual_coef_, other.dual_coef_])
    return both


def relative(values, true):
    """RMS over machines of the relative RMS change."""
    values, true = values.reshape(len(values), -1), true.reshape(len(true), -1)
    squares = ((values - true) ** 2).mean(axis=0) / (true**2).mean(axis=0)
    return np.sqrt(squares.mean())


def change(small, clf, rows):
    return relative(small._margins(rows), clf._margins(rows))


def with_random_rows(clf, n, seed, monkeypatch):
    """The same fit on rows drawn at random."""
    drawn = np.random.default_rng(seed).permutation(len(clf.support_))

    def grow(self, size, _):
        is_new = len(self.chosen) < size
        self.chosen = drawn[:size]
        return is_new

    with monkeypatch.context() as patch:
        patch.setattr(reduction.Selection, "grow", grow)
        return compress(clf, n_support=n)


# --- what comes out ------------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", ALL)
@pytest.mark.parametrize("rows", [(X, Y, NEW), (X3, Y3, NEW3)], ids=["2", "3"])
def test_every_classifier_predicts_nearly_the_same(estimator, rows):
    clf = fitted(estimator, *rows[:2], gamma=0.1)
    small = compress(clf, tolerance=0.1)
    assert type(small) is estimator
    assert len(small.support_) < len(clf.support_)
    assert (small.predict(rows[2]) == clf.predict(rows[2])).mean() > 0.93


@pytest.mark.parametrize("make", [greedy, many])
def test_attributes_belong_together(make):
    clf = make()
    small = compress(clf, n_support=40)
    at = np.searchsorted(np.sort(clf.support_), small.support_)
    at = np.argsort(clf.support_)[at]
    y = Y if make is greedy else Y3
    np.testing.assert_array_equal(clf.support_[at], small.support_)
    np.testing.assert_array_equal(clf.support_vectors_[at], small.support_vectors_)
    np.testing.assert_array_equal(np.bincount(y[small.support_]), small.n_support_)
    assert (np.diff(y[small.support_][small._by_class_]) >= 0).all()
    assert small.dual_coef_.shape == (len(clf.intercept_), 40)
    assert small.intercept_.shape == clf.intercept_.shape
    assert small.support_.dtype == clf.support_.dtype


@pytest.mark.parametrize("estimator", ALL)
def test_the_original_is_left_alone(estimator):
    clf = fitted(estimator, gamma=0.3)
    before = pickle.dumps(clf)
    compress(clf, n_support=20)
    assert pickle.dumps(clf) == before


def test_parameters_and_pickles_and_clones():
    small = compress(greedy(), n_support=20)
    again = pickle.loads(pickle.dumps(small))
    np.testing.assert_array_equal(again.decision_function(NEW), small.decision_function(NEW))
    assert again.compression_ == small.compression_
    assert clone(small).get_params() == greedy().get_params()
    assert not hasattr(clone(small), "support_")
    assert small.score(X, Y) > 0.8
    assert small._repr_html_()


def test_a_compressed_model_can_be_compressed_and_fitted():
    small = compress(greedy(), n_support=60)
    smaller = compress(small, n_support=20)
    assert (smaller.compression_.n_support_before, len(smaller.support_)) == (60, 20)
    np.testing.assert_array_equal(smaller.fit(X, Y).dual_coef_, greedy().dual_coef_)


def test_the_same_every_time():
    one, other = (compress(greedy(), n_support=20) for _ in range(2))
    np.testing.assert_array_equal(one.dual_coef_, other.dual_coef_)


# --- how good it is ------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [greedy, many, kernel_sum])
def test_the_change_is_what_one_measures(make):
    clf = make()
    small = compress(clf, n_support=30)
    rows = clf.support_vectors_
    cost = small.compression_
    assert cost.relative_change == pytest.approx(change(small, clf, rows), rel=1e-9)
    assert cost.changed_predictions == (small.predict(rows) != clf.predict(rows)).mean()
    assert cost.n_measured == len(rows)
    assert (cost.n_support_before, cost.n_support) == (len(clf.support_), 30)


@pytest.mark.parametrize("make", [greedy, many, kernel_sum])
def test_the_change_on_new_rows_is_no_surprise(make):
    clf = make()
    new = NEW3 if make is many else NEW
    for n in (30, 60, 120):
        small = compress(clf, n_support=n)
        assert change(small, clf, new) < 1.1 * small.compression_.relative_change


def test_narrow_kernels_are_not_overfitted():
    clf = fitted(RhoEnsembleSVC, gamma=5.0)
    changes = [change(compress(clf, n_support=n), clf, NEW) for n in (100, 200, 280)]
    assert max(changes) < 0.8
    assert changes[-1] < 0.2


@pytest.mark.parametrize("make", [wide, wide_many, kernel_sum])
def test_chosen_rows_are_better_than_random_ones(make, monkeypatch):
    clf = make()
    chosen = compress(clf, n_support=30).compression_.relative_change
    drawn = [
        with_random_rows(clf, 30, seed, monkeypatch).compression_.relative_change
        for seed in range(5)
    ]
    assert chosen < 0.75 * min(drawn)


def test_more_rows_change_less():
    clf = greedy()
    changes = [compress(clf, n_support=n).compression_.relative_change for n in (5, 15, 45, 90)]
    assert (np.diff(changes) < 0).all()


@pytest.mark.parametrize("make", [greedy, many, kernel_sum])
@pytest.mark.parametrize("tolerance", [0.5, 0.2])
def test_tolerance_is_met_with_few_rows(make, tolerance):
    clf = make()
    small = compress(clf, tolerance=tolerance)
    n = len(small.support_)
    assert small.compression_.relative_change <= tolerance
    fewer = compress(clf, n_support=max(1, int(0.85 * n) - 1))
    assert fewer.compression_.relative_change > tolerance


def test_a_constant_needs_one_row():
    clf = greedy()
    clf.dual_coef_ = np.zeros_like(clf.dual_coef_)
    clf.intercept_ = np.array([-2.0])
    small = compress(clf, n_support=10)
    assert len(small.support_) == 1
    np.testing.assert_allclose(small.decision_function(NEW), -2.0)


def test_machines_of_any_scale_count_the_same():
    clf = fitted(ParzenClassifier, X3, Y3, gamma=0.3, multi_class="ovr")
    scaled = copy.deepcopy(clf)
    scales = np.array([1e-6, 1.0, 1e6])
    scaled.dual_coef_ = sp.csr_array(sp.diags_array(scales) @ clf.dual_coef_)
    one, other = compress(clf, n_support=30), compress(scaled, n_support=30)
    np.testing.assert_array_equal(one.support_, other.support_)
    np.testing.assert_allclose(other.dual_coef_, scales[:, None] * one.dual_coef_, rtol=1e-6)


# --- kernels and rows ----------------------------------------------------------------------------


def test_sparse_rows_as_dense_ones():
    rows = np.where(np.abs(X) > 0.5, X, 0.0)
    dense, sparse = (greedy(X=rows), greedy(X=sp.csr_array(rows)))
    one, other = compress(dense, n_support=25), compress(sparse, n_support=25)
    assert sp.issparse(other.support_vectors_)
    np.testing.assert_array_equal(one.support_, other.support_)
    np.testing.assert_allclose(one.decision_function(NEW), other.decision_function(NEW), rtol=1e-6)


def test_crossed_rows_combine_features_of_two():
    rows = np.arange(1.0, 31.0).reshape(5, 6)
    crossed = reduction.crossed(rows, 40, np.random.RandomState(0))
    same = reduction.crossed(sp.csr_array(rows), 40, np.random.RandomState(0)).toarray()
    np.testing.assert_array_equal(crossed, same)
    np.testing.assert_array_equal((crossed - 1) % 6, np.tile(np.arange(6), (40, 1)))
    assert max(len(set(r)) for r in (crossed - 1) // 6) == 2


@pytest.mark.parametrize("kernel", ["laplacian", "poly", "sigmoid"])
def test_other_kernels(kernel):
    clf = fitted(ParzenClassifier, gamma=0.1, kernel=kernel, coef0=1.0)
    small = compress(clf, n_support=100)
    assert change(small, clf, NEW) < 0.1


def test_a_callable_is_the_named_kernel():
    def rbf(A, B):
        return Kernel("rbf", gamma=0.3).block(A, B)

    named, called = greedy(), greedy(kernel=rbf)
    one, other = compress(named, n_support=20), compress(called, n_support=20)
    np.testing.assert_array_equal(one.support_, other.support_)
    np.testing.assert_allclose(one.dual_coef_, other.dual_coef_, rtol=1e-5)


def test_linear_needs_as_many_rows_as_features():
    clf = fitted(ParzenClassifier, kernel="linear")
    small = compress(clf, n_support=50)
    assert len(small.support_) <= X.shape[1]
    assert small.compression_.speedup == 1.0
    np.testing.assert_allclose(small.coef_, clf.coef_, rtol=1e-5)


def test_precomputed_takes_the_kernel_matrix():
    kernel = Kernel("rbf", gamma=0.3)
    clf = greedy(X=kernel.block(X), kernel="precomputed")
    with pytest.raises(ValueError, match="kernel matrix it was trained on"):
        compress(clf, n_support=20)
    small = compress(clf, n_support=60, X=kernel.block(X))
    assert small.compression_.n_measured == len(X)
    assert change(small, clf, kernel.block(NEW, X)) < 0.5


def test_rows_to_keep_the_function_on():
    clf = greedy()
    small = compress(clf, n_support=20, X=NEW)
    assert small.compression_.n_measured == len(NEW)
    assert small.compression_.relative_change == pytest.approx(change(small, clf, NEW))


def test_standardised_rows_are_scaled():
    clf = fitted(RhoEnsembleSVC, X * [1, 10, 100, 1, 1, 1], Y, standardize=True)
    rows = NEW * [1, 10, 100, 1, 1, 1]
    small = compress(clf, tolerance=0.1, X=rows)
    measured = relative(small.decision_function(rows), clf.decision_function(rows))
    assert small.compression_.relative_change == pytest.approx(measured)


def test_sums_of_kernels_keep_all_kernels():
    clf = kernel_sum()
    small = compress(clf, n_support=50)
    assert small.dual_coef_.shape == (1, 100)
    assert small._kernel_ == clf._kernel_


def test_float32_models_are_measured_as_they_predict():
    clf = greedy(dtype="float32")
    small = compress(clf, n_support=150)
    measured = change(small, clf, clf.support_vectors_)
    assert small.compression_.relative_change == pytest.approx(measured, rel=1e-12)
    assert small._dtype_ == "float32"


# --- many support rows ---------------------------------------------------------------------------


@pytest.fixture
def little_is_many(monkeypatch):
    monkeypatch.setattr(reduction, "MAX_WHOLE", 64)
    monkeypatch.setattr(reduction, "FIRST_SIZE", 8)
    monkeypatch.setattr(reduction, "FEWEST_WITNESSES", 16)


@pytest.mark.usefixtures("little_is_many")
def test_many_rows_are_measured_where_they_were_not_fitted():
    clf = fitted(RhoEnsembleSVC, gamma=0.1)
    small = compress(clf, n_support=15, random_state=3)
    assert small.compression_.n_measured == 64
    assert 0.5 < change(small, clf, NEW) / small.compression_.relative_change < 1.2


@pytest.mark.usefixtures("little_is_many")
@pytest.mark.parametrize("tolerance", [0.3, 0.1])
def test_a_tolerance_over_many_rows(tolerance):
    clf = fitted(RhoEnsembleSVC, gamma=0.1)
    small = compress(clf, tolerance=tolerance)
    assert small.compression_.relative_change <= tolerance
    assert len(small.support_) < 150


# --- time ----------------------------------------------------------------------------------------


def limited(clf, n_looks, monkeypatch, **sizes):
    """Compress with a clock that lets it look that many times."""
    looks = iter([0.0] * n_looks)
    with monkeypatch.context() as patch:
        clock = partial(Monitor, clock=lambda: next(looks, 2.0))
        patch.setattr(hardmargin.reduction, "Monitor", clock)
        return compress(clf, max_time=1.0, **sizes)


@pytest.mark.parametrize("sizes", [{"tolerance": 1e-4}, {"n_support": 200}])
def test_out_of_time_it_is_the_best_model_so_far(sizes, monkeypatch):
    clf = fitted(RhoEnsembleSVC, gamma=0.1)
    with pytest.warns(ConvergenceWarning, match=r"max_time ended .* so far has \d+ of 300 support"):
        small = limited(clf, 32, monkeypatch, **sizes)
    assert 8 <= len(small.support_) < 80
    assert change(small, clf, NEW) < 0.5


def test_without_time_the_model_stays(monkeypatch):
    clf = greedy()
    with pytest.warns(ConvergenceWarning, match="max_time ended .* the model is unchanged"):
        same = limited(clf, 6, monkeypatch, tolerance=0.1)
    np.testing.assert_array_equal(same.decision_function(NEW), clf.decision_function(NEW))


def test_enough_time_changes_nothing():
    clf = greedy()
    one, other = compress(clf, tolerance=0.1), compress(clf, tolerance=0.1, max_time=1e6)
    np.testing.assert_array_equal(one.dual_coef_, other.dual_coef_)


@pytest.fixture
def little_is_affordable(monkeypatch):
    """As for many rows: a search may choose 80 of 300."""
    monkeypatch.setattr(reduction, "allowed_operations", lambda _: 2e7)


@pytest.mark.usefixtures("little_is_affordable")
def test_a_search_that_takes_longer_than_the_fit_is_worth_ends():
    clf = fitted(RhoEnsembleSVC, gamma=1.0)
    with pytest.warns(UserWarning, match="and a search longer than five fits") as caught:
        same = compress(clf, tolerance=0.01)
    np.testing.assert_array_equal(same.decision_function(NEW), clf.decision_function(NEW))
    found = re.match(
        r"tolerance=0.01 probably takes nearly all of the 300 support rows, .* model is unchanged."
        r" Give that search seconds by max_time, .* set n_support: (\d+) rows change .* by (.*)%",
        str(caught[0].message),
    )
    n, percent = int(found[1]), float(found[2])
    assert 15 < n < 100
    fewer = compress(clf, n_support=n).compression_
    assert fewer.relative_change == pytest.approx(percent / 100, rel=0.1)


@pytest.mark.usefixtures("little_is_affordable")
def test_what_is_affordable_is_found_as_ever():
    clf = fitted(RhoEnsembleSVC, gamma=0.1)
    one, other = compress(clf, tolerance=0.1), compress(clf, tolerance=0.1, max_time=1e6)
    assert one.compression_.relative_change <= 0.1
    assert len(one.support_) == pytest.approx(len(other.support_), rel=0.05)


@pytest.mark.usefixtures("little_is_affordable")
@pytest.mark.parametrize("max_time", [1e6, float("inf")])
def test_a_time_of_ones_own_searches_on(max_time):
    clf = fitted(RhoEnsembleSVC, gamma=1.0)
    small = compress(clf, tolerance=0.01, max_time=max_time)
    assert 150 < len(small.support_) < 300
    assert small.compression_.relative_change <= 0.01


@pytest.mark.usefixtures("little_is_affordable")
def test_a_hopeless_search_ends_before_it_has_done_all_it_may(monkeypatch):
    sizes = []
    add = NestedLeastSquares.add

    def count(self, columns):
        add(self, columns)
        sizes.append(self.n_columns)

    monkeypatch.setattr(NestedLeastSquares, "add", count)
    clf = fitted(RhoEnsembleSVC, gamma=5.0)
    with pytest.warns(UserWarning, match="probably takes nearly all"):
        compress(clf, tolerance=1e-4)
    most = reduction._affordable(clf, clf.support_vectors_)
    assert most // 4 <= sizes[-1] < most // 2


@pytest.mark.parametrize("make", [greedy, many, kernel_sum])
def test_small_models_are_searched_to_the_end(make):
    clf = make()
    n = len(clf.support_)
    assert reduction._affordable(clf, clf.support_vectors_) == n - 1
    with pytest.warns(UserWarning, match="is not reached with fewer than all .* and the precision"):
        compress(clf, tolerance=1e-12)


def test_rows_kernels_and_machines_make_fits_take_longer():
    fits = reduction.operations_of_fits
    assert fits(600, 1, 600) > fits(300, 1, 600) > fits(300, 1, 300) > 0
    assert fits(300, 3, 900) > fits(300, 1, 300)
    clf = kernel_sum()
    cost = partial(reduction.operations_of_search, clf, None)
    assert cost(40) < cost(80) < cost(160)
    assert cost(160) > (2 * 160) ** 2 * 300  # inner products of all columns, on the support rows


def test_a_tolerance_takes_one_search(monkeypatch):
    sizes = []
    add = NestedLeastSquares.add

    def count(self, columns):
        add(self, columns)
        sizes.append(self.n_columns)

    monkeypatch.setattr(NestedLeastSquares, "add", count)
    clf = fitted(RhoEnsembleSVC, gamma=0.1)
    small = compress(clf, tolerance=0.01)
    assert sizes == sorted(set(sizes))  # rows are added, and nothing starts again
    assert sizes[-1] < 1.4 * len(small.support_)


@pytest.mark.parametrize("max_time", [0, -1.0, float("nan")])
def test_a_time_that_is_no_time(max_time):
    with pytest.raises(ValueError, match="max_time must be more than 0 seconds, got"):
        compress(greedy(), n_support=5, max_time=max_time)
    with pytest.raises(TypeError, match="max_time must be a number of seconds or None, got '1s'"):
        compress(greedy(), n_support=5, max_time="1s")


def test_memory_is_limited():
    clf = fitted(RhoEnsembleSVC, gamma=0.1, memory_limit="200KB")
    small = compress(clf, n_support=20)
    assert len(small.support_) == 20
    with pytest.raises(
        ValueError, match=r"n_support=250 needs about .* raise the classifier's mem"
    ):
        compress(clf, n_support=250)
    with pytest.warns(UserWarning, match="tolerance=1e-08 is not reached"):
        assert len(compress(clf, tolerance=1e-8).support_) == len(clf.support_)


# --- what it says --------------------------------------------------------------------------------


def test_the_cost_in_words():
    text = repr(compress(greedy(), n_support=20).compression_)
    pattern = r"Compression\(\d+ -> 20 support rows, predict up to [\d.]+x as fast; on \d+ rows .*"
    assert re.fullmatch(pattern, text)


def test_the_speedup_counts_support_rows():
    clf = greedy()
    cost = compress(clf, n_support=20).compression_
    assert cost.speedup == pytest.approx(len(clf.support_) / 20)


def test_the_cost_is_frozen():
    cost = compress(greedy(), n_support=20).compression_
    with pytest.raises(AttributeError):
        cost.n_support = 3


@pytest.mark.parametrize("n_support", [None, 10**6])
def test_nothing_to_do(n_support):
    clf = greedy()
    n = len(clf.support_) if n_support is None else n_support
    same = compress(clf, n_support=n)
    assert same is not clf
    np.testing.assert_array_equal(same.dual_coef_, clf.dual_coef_)
    assert same.compression_.relative_change == 0.0
    assert "none: all" in repr(same.compression_)
    assert list(same.staged_predict(NEW[:3]))


def test_thresholds_follow_the_intercepts():
    clf = greedy()
    clf.threshold_ = 0.5
    small = compress(clf, n_support=20)
    assert small.threshold_ == -small.intercept_[0]


@pytest.mark.parametrize("estimator", PATHS)
def test_staged_methods_say_why_not(estimator):
    small = compress(fitted(estimator, gamma=0.3), n_support=20)
    for method in (small.staged_decision_function, small.staged_predict):
        with pytest.raises(AttributeError, match="compressed model has no stages"):
            list(method(NEW))


@pytest.mark.parametrize("estimator", ALL)
def test_attributes_that_describe_training_are_gone(estimator):
    small = compress(fitted(estimator, gamma=0.3), n_support=20)
    left = {name for name in vars(small) if "path" in name or name.startswith("stage_")}
    assert left <= {"stage_indices_", "stage_steps_"}  # these raise the error
    assert not {"weight_norm_", "certificate_", "vc_bound_", "rho_", "margin_"} & set(vars(small))


# --- errors --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kwargs", "error", "message"),
    [
        ({}, ValueError, "Neither n_support nor tolerance was given; give one: n_support is the"),
        (
            {"n_support": 5, "tolerance": 0.1},
            ValueError,
            "Both n_support=5 and tolerance=0.1 were given; give only one: n_support is the",
        ),
        ({"n_support": 0}, ValueError, "at least 1, got 0"),
        ({"n_support": 2.5}, TypeError, "whole number, got 2.5"),
        ({"n_support": True}, TypeError, "whole number, got True"),
        ({"tolerance": 0.0}, ValueError, "between 0 and 1, got 0.0"),
        ({"tolerance": 1.0}, ValueError, "between 0 and 1, got 1.0"),
        ({"tolerance": "1%"}, ValueError, "between 0 and 1, got '1%'"),
        ({"n_support": 5, "X": NEW[:, :2]}, ValueError, "features"),
    ],
)
def test_wrong_arguments(kwargs, error, message):
    with pytest.raises(error, match=message):
        compress(greedy(), **kwargs)


def test_not_fitted():
    with pytest.raises(NotFittedError):
        compress(GreedySVC(), n_support=5)


@pytest.mark.parametrize("other", [LogisticRegression(), None])
def test_not_a_classifier_of_ours(other):
    with pytest.raises(TypeError, match=f"a pipeline that ends in one, got {type(other).__name__}"):
        compress(other, n_support=5)


SMALL = GreedySVC(0.3, max_visits=1)


@pytest.mark.parametrize(
    ("wrapper", "attribute"),
    [
        (GridSearchCV(SMALL, {"gamma": [0.1]}, cv=2), "best_estimator_"),
        (RandomizedSearchCV(SMALL, {"gamma": [0.1]}, n_iter=1, cv=2), "best_estimator_"),
        (OneVsRestClassifier(SMALL), "estimators_"),
        (CalibratedClassifierCV(SMALL, cv=2), "calibrated_classifiers_"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_error_for_a_wrapper_says_what_to_compress(wrapper, attribute):
    fitted_wrapper = wrapper.fit(X, Y)
    with pytest.raises(TypeError, match=f"compress what is in its {attribute}"):
        compress(fitted_wrapper, n_support=5)


def test_the_error_for_an_unfitted_search_is_the_same():
    with pytest.raises(TypeError, match="best_estimator_"):
        compress(GridSearchCV(SMALL, {"gamma": [0.1]}), n_support=5)


# --- pipelines -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def scaled():
    return make_pipeline(StandardScaler(), GreedySVC(0.1, max_visits=1)).fit(X, Y)


def test_the_last_step_of_a_pipeline_is_compressed(scaled):
    small = compress(scaled, n_support=15)
    expected = compress(scaled[-1], n_support=15)
    np.testing.assert_array_equal(small[-1].dual_coef_, expected.dual_coef_)


def test_a_compressed_pipeline_predicts_raw_rows(scaled):
    small = compress(scaled, n_support=15)
    expected = small[-1].decision_function(scaled[:-1].transform(NEW))
    np.testing.assert_array_equal(small.decision_function(NEW), expected)


def test_a_compressed_pipeline_keeps_names_and_options():
    steps = [("scale", StandardScaler()), ("svm", GreedySVC(0.1, max_visits=1))]
    small = compress(Pipeline(steps, verbose=False, memory=None).fit(X, Y), n_support=15)
    assert isinstance(small, Pipeline)
    assert list(small.named_steps) == ["scale", "svm"]


def test_rows_for_a_pipeline_go_through_its_earlier_steps(scaled):
    small = compress(scaled, n_support=15, X=NEW)
    expected = compress(scaled[-1], n_support=15, X=scaled[:-1].transform(NEW))
    np.testing.assert_array_equal(small[-1].dual_coef_, expected.dual_coef_)


def test_the_pipeline_stays_as_it_was(scaled):
    before = pickle.dumps(scaled)
    compress(scaled, n_support=15, X=NEW)
    assert pickle.dumps(scaled) == before


def test_another_fit_of_the_compressed_leaves_the_pipeline_as_it_was(scaled):
    before = scaled[0].mean_.copy()
    compress(scaled, n_support=15).fit(X + 1, Y)
    np.testing.assert_array_equal(scaled[0].mean_, before)


def test_a_pipeline_in_a_pipeline(scaled):
    outer = make_pipeline("passthrough", make_pipeline(StandardScaler(), clone(scaled[-1])))
    small = compress(outer.fit(X, Y), n_support=15, X=X)
    assert len(small[-1][-1].support_) == 15


def test_a_pipeline_of_one_step():
    small = compress(make_pipeline(GreedySVC(0.1, max_visits=1)).fit(X, Y), n_support=15, X=X)
    assert len(small[-1].support_) == 15


def test_a_pipeline_that_ends_in_another_classifier():
    with pytest.raises(TypeError, match="got LogisticRegression"):
        compress(make_pipeline(StandardScaler(), LogisticRegression()).fit(X, Y), n_support=5)


@pytest.mark.parametrize("rows", [None, X])
def test_a_pipeline_that_is_not_fitted(rows):
    with pytest.raises(NotFittedError, match="GreedySVC"):
        compress(make_pipeline(StandardScaler(), GreedySVC()), n_support=5, X=rows)


def test_too_few_rows_are_worth_a_warning():
    X, y = make_classification(400, n_informative=8, n_clusters_per_class=4, random_state=0)
    model = GreedySVC(0.1, max_visits=1).fit(X, y)
    with pytest.warns(UserWarning, match=r"3 support rows are few .* let tolerance choose it"):
        compress(model, 3)
