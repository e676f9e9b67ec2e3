"""Extreme numbers get a clear error or a finite model: never an internal error, never NaN."""

import functools
import re
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GroupKFold

from hardmargin import (
    CoreVectorSVC,
    DiversifiedSVC,
    EnsembleSVC,
    GreedySVC,
    HardMarginSVC,
    MarginDiscriminantAnalysis,
    MinimumEnclosingBall,
    MultiplicativeSVC,
    ParzenClassifier,
    PathSVC,
    RhoEnsembleSVC,
    RhoSVC,
    RigorousSVC,
    compress,
)
from hardmargin.selection.weights import MAX_WEIGHT, moderate

LARGEST, LEAST = float(np.finfo(np.float64).max), 5e-324

#: Every estimator, and the ways of training that have code of their own.
MODELS = {
    "EnsembleSVC": EnsembleSVC(),
    "RhoEnsembleSVC": RhoEnsembleSVC(max_stages=100, fit_intercept=True, standardize=True),
    "GreedySVC": GreedySVC(),
    "GreedySVC, published": GreedySVC("scale", max_visits=1, standardize=False),
    "RhoSVC": RhoSVC(max_stages=100),
    "RhoSVC, smo": RhoSVC(solver="smo", max_stages=1_000),
    "ParzenClassifier": ParzenClassifier(),
    "HardMarginSVC": HardMarginSVC(max_stages=10_000),
    "MultiplicativeSVC": MultiplicativeSVC(max_stages=100),
    "CoreVectorSVC": CoreVectorSVC(),
    "CoreVectorSVC, radius": CoreVectorSVC(stopping="radius", eps=0.01),
    "PathSVC": PathSVC(),
    "PathSVC, one C": PathSVC(1.0),
    "RigorousSVC": RigorousSVC(),
    "RigorousSVC, bound": RigorousSVC(5.0),
    "MarginDiscriminantAnalysis": MarginDiscriminantAnalysis(2, constraint="uncorrelated"),
    "MarginDiscriminantAnalysis, Newton": MarginDiscriminantAnalysis(2, solver="newton"),
    "DiversifiedSVC": DiversifiedSVC(final_estimator="vote"),
    "MinimumEnclosingBall": MinimumEnclosingBall(),
    "MinimumEnclosingBall, slacks": MinimumEnclosingBall(C=1.0),
}

every_model = pytest.mark.parametrize("model", MODELS)


@functools.cache
def two_classes():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3))
    return X, (X[:, 0] + 0.3 * rng.normal(size=30) > 0).astype(int)


@functools.cache
def three_classes():
    X, _ = two_classes()
    return X, np.searchsorted([-0.5, 0.5], X[:, 0])


X, Y = two_classes()
QUERIES = np.vstack([np.zeros(3), np.random.default_rng(1).normal(size=(4, 3))])
METHODS = ("decision_function", "predict_proba", "transform", "score_samples")

#: An error that users can act on names a parameter with its value, or says what would work.
CLEAR = re.compile(r"\w=|must (be|not be)|scale |lower |raise |n_jobs|groups")


def outcome(model, X, y, queries=(), **fit_params):
    """Fit and predict: the error if the input is refused, or None if all results are finite.

    Warnings of the package are allowed, those of numpy are not.
    """
    model = type(model)(**{**model.get_params(deep=False), "random_state": 0})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        warnings.simplefilter("error", RuntimeWarning)
        try:
            model.fit(X, y, **fit_params)
        except (TypeError, ValueError) as error:
            words = str(error)
        else:
            words = None
        assert words is None or CLEAR.search(words), words
        if words is not None:
            return words
        for rows in (X, *queries):
            for name in METHODS:
                if hasattr(model, name):
                    assert np.isfinite(getattr(model, name)(rows)).all(), name
    return None


def changed(model, **changes):
    return type(MODELS[model])(**MODELS[model].get_params(deep=False) | changes)


def refused(model, X, y, **fit_params):
    """Return the message of an error that must be raised."""
    words = outcome(model, X, y, **fit_params)
    assert words is not None
    return words


# --- weights -------------------------------------------------------------------------------------

#: The radius rule of core sets accepts no other weights.
ONLY_EQUAL_WEIGHTS = "stopping='radius' needs"

EVERY_OTHER = np.arange(30) % 2 == 0
FIRST = np.arange(30) == 0

WEIGHTS = {
    "all huge": np.full(30, 1e300),
    "all as large as can be": np.full(30, LARGEST),
    "all tiny": np.full(30, 1e-300),
    "all as small as can be": np.full(30, LEAST),
    "huge and tiny": np.where(EVERY_OTHER, 1e300, 1e-300),
    "one has all": np.where(FIRST, 1e300, 1e-300),
    "one has nearly all": np.where(FIRST, LARGEST, 1.0),
    "one has nearly none": np.where(FIRST, LEAST, 1.0),
    "one class has all": np.where(Y, 1e300, 1e-300),
    "of all sizes": 10.0 ** np.linspace(-300, 300, 30),
    "huge and absent": np.where(np.arange(30) % 3 == 0, 0.0, 1e300),
}


@pytest.mark.once_per("model")
@every_model
@pytest.mark.parametrize("weights", WEIGHTS)
def test_weights_of_any_size_are_accepted(model, weights):
    refusal = outcome(MODELS[model], X, Y, [QUERIES], sample_weight=WEIGHTS[weights])
    assert refusal is None or ONLY_EQUAL_WEIGHTS in refusal


@pytest.mark.once_per("weights")
@pytest.mark.parametrize("model", ["PathSVC, one C", "RigorousSVC, bound", "CoreVectorSVC"])
@pytest.mark.parametrize("weights", WEIGHTS)
def test_weights_of_any_size_with_many_classes(model, weights):
    given = WEIGHTS[weights]
    assert outcome(MODELS[model], *three_classes(), [QUERIES], sample_weight=given) is None


CLASS_WEIGHTS = {
    "huge": {0: 1e300},
    "as large as can be": {0: LARGEST},
    "tiny": {0: 1e-300},
    "as small as can be": {0: LEAST},
    "both ends": {0: 1e300, 1: 1e-300},
    "all huge": {0: 1e300, 1: 1e300},
    "all tiny": {0: LEAST, 1: LEAST},
}


@pytest.mark.once_per("model")
@pytest.mark.parametrize("model", [n for n, m in MODELS.items() if hasattr(m, "class_weight")])
@pytest.mark.parametrize("class_weight", CLASS_WEIGHTS)
@pytest.mark.parametrize("sample_weight", [1.0, 1e300, 1e-300])
def test_class_weights_of_any_size_are_accepted(model, class_weight, sample_weight):
    weighted = changed(model, class_weight=CLASS_WEIGHTS[class_weight])
    refusal = outcome(weighted, X, Y, [QUERIES], sample_weight=np.full(30, sample_weight))
    assert refusal is None or ONLY_EQUAL_WEIGHTS in refusal


def test_moderate_weights_stay_as_they_are():
    weights = np.array([0.0, 1e-60, 1.0, 1e10])
    np.testing.assert_array_equal(moderate(weights), weights)


@pytest.mark.parametrize("factor", [1e-320, 1e-200, 1e200, 1e307])
def test_ratios_of_extreme_weights_stay_as_they_are(factor):
    weights = moderate(factor * np.array([1.0, 2.0, 4.0]))
    np.testing.assert_allclose(weights / weights[0], [1.0, 2.0, 4.0], rtol=1e-3)


@given(st.lists(st.floats(0, LARGEST), min_size=1, max_size=8).map(np.array))
@settings(max_examples=100, deadline=None)
def test_sums_of_weights_and_of_their_squares_are_positive_and_finite(weights):
    made = moderate(weights)
    np.testing.assert_array_equal(made > 0, weights > 0)
    present = made[made > 0]
    for sums in (present, present**2):
        assert np.isfinite(sums.sum())
        assert (sums > 0).all()


def test_absence_is_absence_beside_huge_weights():
    there = np.arange(30) % 3 > 0
    weighted = PathSVC(1.0).fit(X, Y, sample_weight=np.where(there, 1e300, 0.0))
    alone = PathSVC(1.0).fit(X[there], Y[there], sample_weight=np.full(there.sum(), MAX_WEIGHT))
    np.testing.assert_allclose(
        weighted.decision_function(X), alone.decision_function(X), rtol=1e-6, atol=1e-6
    )


# --- features ------------------------------------------------------------------------------------


def beside_small(size):
    return X * [1.0, size, 1.0]


ROWS = {
    **{f"of size {size:g}": size * X for size in (1e-320, 1e-300, 1e-160, 1e150, 1e200, 1e300)},
    **{f"one column of {size:g}": beside_small(size) for size in (1e-320, 1e-160, 1e150, 1e300)},
    "as large as can be": np.sign(X) * LARGEST,
    "all equal": np.ones((30, 3)),
    "all equal and huge": np.full((30, 3), 1e300),
    "all equal and tiny": np.full((30, 3), 1e-320),
    "one outlier": np.vstack([X[:-1], np.full(3, 1e150)]),
    "far away": X + 1e16,
    "one feature": X[:, :1],
    "sparse and empty": sp.csr_array((30, 3)),
    "sparse and tiny": sp.csr_array(np.where(X > 0, 1e-160 * X, 0.0)),
    "sparse and huge": sp.csr_array(np.where(X > 0, 1e150 * X, 0.0)),
    "huge in float32": (1e30 * X).astype(np.float32),
}

#: Estimators that can standardise, so that rows of any size have the same size.
STANDARDIZED = {"EnsembleSVC", "RhoEnsembleSVC", "GreedySVC"}


@pytest.mark.once_per("model")
@every_model
@pytest.mark.parametrize("rows", ROWS)
def test_rows_of_any_size(model, rows):
    outcome(MODELS[model], ROWS[rows], Y)


@pytest.mark.once_per("model")
@pytest.mark.parametrize("model", [name for name in MODELS if name not in STANDARDIZED])
@pytest.mark.parametrize("kernel", ["linear", "poly"])
@pytest.mark.parametrize("size", [1e-160, 1e-100, 1e100, 1e150])
def test_rows_of_any_size_with_kernels_that_grow(model, kernel, size):
    outcome(changed(model, kernel=kernel), size * X, Y)


@pytest.mark.parametrize("size", [1e-25, 1e20])
def test_a_linear_kernel_on_sparse_float32_rows_of_any_size(size):
    rows = (size * X).astype(np.float32)
    y = (X[:, 0] > 0).astype(int)
    dense, sparse = (HardMarginSVC(kernel="linear").fit(A, y) for A in (rows, sp.csr_array(rows)))
    assert sparse.score(rows, y) == dense.score(rows, y) == 1.0


@every_model
def test_copies_with_other_labels(model):
    outcome(MODELS[model], np.repeat(X[:15], 2, axis=0), np.tile([0, 1], 15))


@every_model
@pytest.mark.parametrize("rows", [X[:2], np.ones((2, 3))], ids=["two", "two equal"])
def test_two_rows(model, rows):
    outcome(MODELS[model], rows, np.array([0, 1]))


@every_model
def test_more_classes_than_rows_of_a_class(model):
    outcome(MODELS[model], X, np.arange(30) % 11)


@pytest.mark.parametrize("model", sorted(STANDARDIZED))
def test_constant_columns_with_weights_far_apart(model):
    # Rounding makes the variance that scikit-learn finds negative.
    rows, weights = np.column_stack([X[:17], np.full(17, 0.1)]), 10.0 ** np.linspace(-12, 12, 17)
    assert outcome(MODELS[model], rows, Y[:17], sample_weight=weights) is None


# --- parameters ----------------------------------------------------------------------------------

SIZES = (LEAST, 1e-300, 1e-20, 1e20, 1e300, np.finfo(np.float64).max)
SHARES = (LEAST, 1e-300, 0.999)
PARAMETERS = {
    "C": SIZES,
    "C_max": SIZES,
    "C_min": SIZES,
    "coef0": (-1e300, LEAST, 1e16, 1e100, 1e300),
    "degree": (0, 1e-300, 0.5, 10, 1e300),
    "eps": SIZES,
    "eps_start": SHARES,
    "eps_stop": SHARES,
    "gamma": SIZES,
    "learning_rate": SIZES,
    "max_stages": (1, 10**12, 10**30),
    "max_time": (LEAST, 1e300),
    "max_visits": (1, 10**12, 10**30),
    "memory_limit": (1, LEAST, 1e300, 2**63 - 1, "1B"),
    "moment_rows": (1, 10**30),
    "n_directions": (10**30,),
    "n_jobs": (-(10**6), -1, 0, 10**12),
    "n_stages": (10**30,),
    "norm_bound": SIZES,
    "rank": (1, 10**12, 10**30, LEAST),
    "selection": SIZES,
    "step_tol": (0.0, LEAST, 1e300),
    "threshold": (-1e300, LEAST, 1e300),
    "tol": (1e-300, 0.999),
    "validation_fraction": (LEAST, 0.999),
}


def parameter_cases():
    for model in MODELS:
        for name, values in PARAMETERS.items():
            if name in MODELS[model].get_params(deep=False):
                for value in values:
                    yield pytest.param(model, {name: value}, id=f"{model}-{name}-{value!r}")


@pytest.mark.once_per("changes")
@pytest.mark.parametrize(("model", "changes"), list(parameter_cases()))
def test_parameters_at_the_ends_of_their_ranges(model, changes):
    if {"degree", "coef0"} & changes.keys():
        changes = {"kernel": "poly", **changes}
    outcome(changed(model, **changes), X, Y)


@pytest.mark.parametrize("degree", [0.5, 2.5, 1e-300])
def test_powers_of_negative_numbers_are_refused_in_fit(degree):
    words = refused(ParzenClassifier(kernel="poly", degree=degree), X, Y)
    assert f"degree={degree}" in words


def test_powers_of_positive_numbers_may_be_fractional():
    assert outcome(ParzenClassifier(kernel="poly", degree=2.5), np.abs(X), Y) is None


def test_powers_of_numbers_that_coef0_keeps_positive_may_be_fractional():
    model = ParzenClassifier(kernel="poly", gamma=1.0, degree=2.5, coef0=1e3)
    assert outcome(model, X, Y) is None


@pytest.mark.parametrize("name", ["max_stages", "n_stages"])
def test_counts_beyond_the_integers_of_the_core_are_refused(name):
    assert name in refused(EnsembleSVC(**{name: 10**30}), X, Y)


def test_threads_beyond_the_integers_of_the_core_are_refused():
    assert "n_jobs" in refused(ParzenClassifier(n_jobs=10**12), X, Y)


def test_a_path_without_end_goes_as_far_as_rounding_lets_it():
    with pytest.warns(ConvergenceWarning, match="rounding"):
        model = PathSVC(1.0, C_max=LARGEST, kernel="linear").fit(X[:, 1:], Y)
    assert 1e8 < model.path_.C[-1] < np.inf


def test_a_bound_whose_square_overflows_is_no_bound():
    with pytest.warns(ConvergenceWarning, match="norm_bound"):
        model = RigorousSVC(1e300, C_max=1.0).fit(X, Y)
    assert pytest.approx(1.0) == model.C_


def test_huge_coefficients_are_not_rounded_to_float32():
    rows = np.repeat(X[:15], 2, axis=0)
    model = PathSVC(1e300, C_max=1e300, gamma=1e-160, dtype="float32")
    assert outcome(model, rows, np.tile([0, 1], 15)) is None


IN_FLOAT32 = {
    "CoreVectorSVC": CoreVectorSVC(dtype="float32"),
    "MarginDiscriminantAnalysis": MarginDiscriminantAnalysis(
        2, constraint="uncorrelated", dtype="float32"
    ),
    "MinimumEnclosingBall": MinimumEnclosingBall(C=1.0, dtype="float32"),
}


@pytest.mark.parametrize("model", IN_FLOAT32)
@pytest.mark.parametrize("C", [LEAST, 1e-60, 1e60, LARGEST])
def test_core_sets_in_float32_accept_any_C(model, C):
    model = type(IN_FLOAT32[model])(**IN_FLOAT32[model].get_params(deep=False) | {"C": C})
    assert outcome(model, X, Y) is None


@pytest.mark.once_per("weights")
@pytest.mark.parametrize("model", IN_FLOAT32)
@pytest.mark.parametrize("weights", WEIGHTS)
def test_core_sets_in_float32_accept_any_weights(model, weights):
    assert outcome(IN_FLOAT32[model], X, Y, sample_weight=WEIGHTS[weights]) is None


@pytest.mark.parametrize("kernel", ["precomputed", lambda A, B: 1e60 * (A @ B.T)])
@pytest.mark.parametrize(
    "model",
    [
        "GreedySVC",
        "HardMarginSVC",
        "RhoSVC",
        "MultiplicativeSVC",
        "CoreVectorSVC",
        "MarginDiscriminantAnalysis",
    ],
)
def test_kernel_values_beyond_float32_are_refused_by_name(model, kernel):
    rows = 1e60 * X @ X.T if kernel == "precomputed" else X
    assert "dtype='float32'" in refused(changed(model, kernel=kernel, dtype="float32"), rows, Y)


@pytest.mark.parametrize("size", [1e9, 1e15])
@pytest.mark.parametrize(
    "model",
    [
        ParzenClassifier(),
        GreedySVC(max_visits=1, standardize=False),
        GreedySVC(standardize=False),
        HardMarginSVC(),
        RhoSVC(),
        RhoSVC(rank=10, landmarks="kmeans++"),
        RhoSVC(rank=10, landmarks="cholesky"),
        MultiplicativeSVC(),
        CoreVectorSVC(),
        MarginDiscriminantAnalysis(),
        MinimumEnclosingBall(C=1.0),
    ],
    ids=str,
)
def test_powers_beyond_float32_are_refused_in_fit(model, size):
    model = clone(model).set_params(kernel="poly", gamma=1.0, dtype="float32")
    with pytest.raises(ValueError, match=r"dtype='float32' .* use dtype='float64'"):
        model.fit(size * X, Y)


@pytest.mark.parametrize("kernel", ["linear", "poly"])
def test_auto_is_float64_where_float32_cannot_hold_the_kernel(kernel, monkeypatch):
    monkeypatch.setattr("hardmargin.kernels.precision.MAX_FLOAT64_ROWS", 10)
    size = {"linear": 2e17, "poly": 1e9}[kernel]
    rows, y = size * np.tile(X, 4_000 if kernel == "linear" else 1), (X[:, 0] > 0).astype(int)
    models = [
        GreedySVC(1.0, kernel=kernel, max_visits=1, standardize=False, dtype=dtype).fit(rows, y)
        for dtype in ("auto", "float64")
    ]
    assert models[0]._dtype_ == "float64"
    np.testing.assert_array_equal(models[0].dual_coef_, models[1].dual_coef_)


def test_a_kernel_that_float32_cannot_hold_is_not_chosen():
    rows, y = 2e17 * np.tile(X, 4_000), (X[:, 0] > 0).astype(int)
    model = GreedySVC(standardize=False, dtype="float32").fit(rows, y)
    assert set(model.cv_results_["kernel"]) == {"linear", "rbf"}
    assert model.kernel_ == "rbf"


def test_the_greedy_machines_of_a_bound_are_trained_in_float64():
    found = [
        RigorousSVC(kernel="poly", gamma=1.0, dtype=dtype).fit(1e9 * X, Y).norm_bound_
        for dtype in ("float32", "float64")
    ]
    assert found[0] == found[1]


# --- predictions ---------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1e120, 1e300])
@pytest.mark.parametrize("kernel", ["linear", "poly"])
def test_queries_on_which_a_kernel_overflows_are_refused(kernel, size):
    model = ParzenClassifier(kernel=kernel, gamma=1.0).fit(1e10 * X, Y)
    if kernel == "linear" and size < 1e300:
        assert np.isfinite(model.decision_function(size * X)).all()
    else:
        with pytest.raises(ValueError, match=f"kernel='{kernel}' is not finite"):
            model.predict(size * X)


def test_a_ball_refuses_rows_at_an_infinite_distance():
    model = MinimumEnclosingBall(kernel="poly", gamma=1.0, tol=0.1).fit(X)
    with pytest.raises(ValueError, match="no finite score"):
        model.score_samples(1e200 * X)


def test_projections_that_overflow_are_refused():
    model = MarginDiscriminantAnalysis(kernel="poly", gamma=1.0).fit(X, Y)
    with pytest.raises(ValueError, match="no finite score"):
        model.transform(1e200 * X)


@pytest.mark.filterwarnings("ignore:Nearly all rows look the same")
@pytest.mark.parametrize(("kernel", "size"), [("rbf", 1e-160), ("rbf", 1e100), ("linear", 1e50)])
def test_compressed_models_are_finite(kernel, size):
    model = ParzenClassifier(kernel=kernel).fit(size * X, Y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        warnings.simplefilter("error", RuntimeWarning)
        small = compress(model, n_support=5, random_state=0)
    assert np.isfinite(small.decision_function(size * X)).all()


def test_models_whose_squared_values_overflow_are_not_compressed():
    model = ParzenClassifier(kernel="linear").fit(1e100 * X, Y)
    with pytest.raises(ValueError, match="Scale the features"):
        compress(model, n_support=5)


# --- splits --------------------------------------------------------------------------------------

ODD, EVEN = np.arange(1, 30, 2), np.arange(0, 30, 2)


class Splitter:
    """Yields what it is given."""

    def __init__(self, *splits):
        self.splits = splits

    def split(self, X, y=None, groups=None):
        return iter(self.splits)

    def get_n_splits(self, X=None, y=None, groups=None):
        return len(self.splits)


BAD_SPLITS = {
    "beyond the last row": ([(EVEN, [30])], "row 30, but the 30 rows are 0 to 29"),
    "far beyond": ([(EVEN, [10**12])], "row 1000000000000"),
    "no index at all": ([(EVEN, [10**30])], "integers"),
    "before the first row": ([(EVEN, [-31])], "row -31"),
    "floats": ([(EVEN.astype(float), ODD)], "float64"),
    "NaN": ([([np.nan], ODD)], "integers"),
    "strings": ([(["a"], ["b"])], "integers"),
    "objects": ([(np.array([None, 1]), ODD)], "integers"),
    "a set": ([(set(EVEN), set(ODD))], "one-dimensional"),
    "a number": ([(0, 1)], "one-dimensional"),
    "columns": ([(EVEN[:, None], ODD[:, None])], r"shape \(15, 1\)"),
    "a mask of other length": ([(np.ones(29, dtype=bool), ODD)], "each of the 30 rows, got 29"),
    "not pairs": ([1, 2, 3], "pairs"),
    "three parts": ([(EVEN, ODD, ODD)], "pairs"),
    "none": ([], "no splits"),
    "a splitter of none": (Splitter(), "no splits"),
    "a splitter beyond the last row": (Splitter((EVEN, [30])), "row 30"),
    "a splitter of floats": (Splitter((EVEN + 0.5, ODD)), "float64"),
    "a splitter without pairs": (Splitter(EVEN), "pairs"),
}
GOOD_SPLITS = {
    "from the end": [(EVEN, [-1, -2])],
    "masks": [(np.arange(30) % 2 == 0, np.arange(30) % 2 == 1)],
    "small unsigned integers": [(EVEN.astype(np.uint64), ODD.astype(np.uint8))],
    "ranges": [(range(0, 30, 2), range(1, 30, 2))],
    "copies": [(np.repeat(EVEN, 3), np.repeat(ODD, 2))],
    "nothing to train on": [([], ODD)],
    "nothing to hold out": [(EVEN, [])],
    "nothing": [([], [])],
}
CHOOSERS = {"EnsembleSVC": EnsembleSVC, "GreedySVC": GreedySVC, "PathSVC": PathSVC}

every_chooser = pytest.mark.parametrize("chooser", CHOOSERS)


@pytest.mark.once_per("splits")
@every_chooser
@pytest.mark.parametrize("splits", BAD_SPLITS)
def test_bad_splits_are_refused(chooser, splits):
    cv, words = BAD_SPLITS[splits]
    with pytest.raises(ValueError, match=words):
        CHOOSERS[chooser](cv=cv).fit(X, Y)


@pytest.mark.once_per("splits")
@every_chooser
@pytest.mark.parametrize("splits", GOOD_SPLITS)
def test_odd_splits_are_accepted(chooser, splits):
    assert outcome(CHOOSERS[chooser](cv=GOOD_SPLITS[splits]), X, Y) is None


BAD_GROUPS = {
    "too few": (np.arange(29), "one entry per row"),
    "of several lengths": ([[1], [1, 2]] * 15, "one entry per row"),
    "a number": (3, "one entry per row"),
    "NaN": (np.where(EVERY_OTHER, np.nan, 1.0), "NaN"),
}


@every_chooser
@pytest.mark.parametrize("groups", BAD_GROUPS)
def test_bad_groups_are_refused(chooser, groups):
    given, words = BAD_GROUPS[groups]
    with pytest.raises(ValueError, match=words):
        CHOOSERS[chooser](cv=GroupKFold(2)).fit(X, Y, groups=given)


def test_groups_that_cannot_be_sorted_are_named_in_the_error():
    with pytest.raises(TypeError) as caught:
        PathSVC(cv=GroupKFold(2)).fit(X, Y, groups=np.array([1, "a", None] * 10, dtype=object))
    assert "groups" in " ".join(caught.value.__notes__)


# --- stages --------------------------------------------------------------------------------------

PATHS = {"chosen": EnsembleSVC(), "at low rank": EnsembleSVC(rank=5), "rho": RhoEnsembleSVC()}

every_path = pytest.mark.parametrize("path", PATHS)


@every_path
def test_max_stages_ends_a_longer_n_stages(path):
    model = clone(PATHS[path]).set_params(n_stages=10**12, max_stages=3)
    with pytest.warns(ConvergenceWarning, match="max_stages"):
        model.fit(X, Y)
    assert (model.n_stages_, model.stop_reason_) == (3, "max_stages")


@every_path
@pytest.mark.parametrize("max_stages", ["default", 5, 10**12])
def test_n_stages_within_max_stages_are_run(path, max_stages):
    model = clone(PATHS[path]).set_params(n_stages=5)
    if max_stages != "default":
        model.set_params(max_stages=max_stages)
    model.fit(X, Y)
    assert (model.n_stages_, model.stop_reason_) == (5, "n_stages")


def test_n_stages_beyond_the_default_limit_are_run():
    assert EnsembleSVC(n_stages=160, gamma=0.1, kernel="rbf").fit(X, Y).n_stages_ == 160


# --- all at once ---------------------------------------------------------------------------------

NUMBERS = st.sampled_from([LEAST, 1e-300, 1e-100, 1e-8, 1.0, 1e8, 1e100, 1e300])


@pytest.mark.parametrize(
    "model", [CoreVectorSVC, MarginDiscriminantAnalysis, MinimumEnclosingBall, PathSVC]
)
@given(
    C=NUMBERS,
    gamma=NUMBERS,
    size=NUMBERS,
    weights=st.lists(NUMBERS, min_size=30, max_size=30).map(np.array),
    kernel=st.sampled_from(
        ["rbf", "laplacian", "matern32", "matern52", "linear", "cosine", "poly", "sigmoid"]
    ),
)
@settings(max_examples=15, deadline=None, derandomize=True)
def test_any_numbers_together(model, C, gamma, size, weights, kernel):
    given = {"C_max": C, "selection": C} if model is PathSVC else {"C": C}
    outcome(model(**given, gamma=gamma, kernel=kernel), size * X, Y, sample_weight=weights)
