"""All our classifiers behave as users of scikit-learn's SVC expect."""

import functools
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from problems.sklearn_tools import CLASSIFIERS, PROBABILISTIC, TASKS, make
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.metrics.pairwise import linear_kernel, rbf_kernel
from sklearn.preprocessing import StandardScaler

TWO, MANY = TASKS["two classes"], TASKS["many classes"]
# Test rows where the two classes meet.
BETWEEN = TWO.X_test[np.abs(TWO.X_test[:, 0] - 1.6) < 1.0]

# A hard margin is the same for all positive weights, up to where training stops.
CLASS_WEIGHT_BLIND = {"HardMarginSVC", "RhoSVC", "MultiplicativeSVC"}
WEIGHING = [name for name in CLASSIFIERS if name not in CLASS_WEIGHT_BLIND]
# A second layer has no coefficients or class weights of its own.
SINGLE_LAYER = [name for name in CLASSIFIERS if name != "DiversifiedSVC"]

every_classifier = pytest.mark.parametrize("name", CLASSIFIERS)
every_task = pytest.mark.parametrize("task", TASKS)


def precise(name, **parameters):
    """Make a classifier whose decisions depend on rounding as little as possible."""
    if name in ("HardMarginSVC", "CoreVectorSVC", "DiversifiedSVC"):
        parameters["tol"] = 1e-6
    if name == "RhoSVC":
        parameters |= {"solver": "smo", "tol": 1e-6}
    return make(name, max_visits=1, standardize=False, **parameters)


def assert_close(found, expected):
    np.testing.assert_allclose(found, expected, atol=5e-3 * np.abs(expected).max())


def module_kernel(A, B):
    return rbf_kernel(A, B, gamma=0.3)


def decisions(model, task, X=None, y=None, **metadata):
    model.fit(task.X if X is None else X, task.y if y is None else y, **metadata)
    return model.decision_function(task.X_test)


@functools.cache
def fitted(name, task="two classes", **parameters):
    """Fit once what many tests compare with; they only read it."""
    return make(name, **parameters).fit(TASKS[task].X, TASKS[task].y)


@functools.cache
def named_kernel_decisions(name, task):
    return decisions(precise(name, kernel="rbf", gamma=0.3), TASKS[task])


# Weights of rows and of classes


@pytest.mark.once_per("name")
@every_task
@every_classifier
def test_weights_of_one_change_nothing(name, task):
    rows = TASKS[task]
    weighted = decisions(make(name), rows, sample_weight=np.ones(len(rows.y)))
    plain = fitted(name, task).decision_function(rows.X_test)
    np.testing.assert_allclose(weighted, plain, atol=1e-9)


@pytest.mark.once_per("name")
@every_task
@every_classifier
def test_a_weight_of_zero_is_absence(name, task):
    rows = TASKS[task]
    weights = np.ones(len(rows.y))
    weights[::4] = 0.0
    there = weights > 0
    weighted = decisions(precise(name), rows, sample_weight=weights)
    assert_close(weighted, decisions(precise(name), rows, rows.X[there], rows.y[there]))


@every_classifier
def test_a_class_of_weight_zero_is_absent(name):
    there = MANY.y != "oak"
    model = make(name).fit(MANY.X, MANY.y, sample_weight=there.astype(float))
    assert model.classes_.tolist() == ["ash", "beech"]


@pytest.mark.once_per("name")
@pytest.mark.parametrize("label", [0, 1])
@pytest.mark.parametrize("name", WEIGHING)
def test_weights_move_decisions_to_the_heavy_rows(name, label):
    plain = fitted(name).predict(BETWEEN)
    weights = np.where(label == TWO.y, 5.0, 1.0)
    weighted = make(name).fit(TWO.X, TWO.y, sample_weight=weights).predict(BETWEEN)
    assert np.sum(weighted == label) > np.sum(plain == label)


def test_weights_multiply_the_c_of_a_soft_margin():
    of_rows = make("CoreVectorSVC", tol=1e-9)
    of_all = make("CoreVectorSVC", tol=1e-9, C=3.0)
    weighted = decisions(of_rows, TWO, sample_weight=np.full(len(TWO.y), 3.0))
    np.testing.assert_allclose(weighted, decisions(of_all, TWO), atol=1e-5)


BAD_WEIGHTS = {
    "all zero": np.zeros(len(TWO.y)),
    "negative": np.where(np.arange(len(TWO.y)) == 3, -1.0, 1.0),
    "all negative": np.full(len(TWO.y), -1.0),
    "one class left": (TWO.y == 1).astype(float),
    "NaN": np.where(np.arange(len(TWO.y)) == 3, np.nan, 1.0),
    "too few": np.ones(len(TWO.y) - 1),
    "a column": np.ones((len(TWO.y), 1)),
}


@pytest.mark.once_per("name")
@every_classifier
@pytest.mark.parametrize("weights", BAD_WEIGHTS.values(), ids=BAD_WEIGHTS)
def test_bad_weights_are_refused(weights, name):
    with pytest.raises(ValueError, match=r"[Ww]eight"):
        make(name).fit(TWO.X, TWO.y, sample_weight=weights)


@pytest.mark.once_per("name")
@pytest.mark.parametrize("label", [0, 1])
@pytest.mark.parametrize("name", [n for n in WEIGHING if n in SINGLE_LAYER])
def test_class_weights_move_decisions_to_the_class(name, label):
    plain = fitted(name).predict(BETWEEN)
    weighted = make(name, class_weight={label: 5.0}).fit(TWO.X, TWO.y).predict(BETWEEN)
    assert np.sum(weighted == label) > np.sum(plain == label)


@pytest.mark.parametrize("name", [n for n in WEIGHING if n in SINGLE_LAYER])
def test_balanced_classes_find_more_of_the_rare_one(name):
    kept = (TWO.y == 0) | (np.arange(len(TWO.y)) % 10 == 1)
    X, y = TWO.X[kept], TWO.y[kept]
    rare = TWO.X_test[TWO.y_test == 1]
    plain = make(name).fit(X, y).predict(rare)
    balanced = make(name, class_weight="balanced").fit(X, y).predict(rare)
    assert balanced.sum() >= plain.sum() > 0


# Kernels


@pytest.mark.once_per("name")
@every_task
@every_classifier
def test_a_precomputed_kernel_is_the_named_one(name, task):
    rows = TASKS[task]
    given = precise(name, kernel="precomputed", gamma=0.3)
    given.fit(module_kernel(rows.X, rows.X), rows.y)
    found = given.decision_function(module_kernel(rows.X_test, rows.X))
    assert_close(found, named_kernel_decisions(name, task))


@pytest.mark.once_per("name")
@every_task
@every_classifier
def test_a_callable_kernel_is_the_named_one(name, task):
    found = decisions(precise(name, kernel=module_kernel, gamma=0.3), TASKS[task])
    assert_close(found, named_kernel_decisions(name, task))


@every_classifier
def test_a_callable_kernel_takes_sparse_rows(name):
    model = precise(name, kernel=module_kernel, gamma=0.3)
    found = model.fit(sp.csr_array(TWO.X), TWO.y).decision_function(sp.csr_array(TWO.X_test))
    assert_close(found, named_kernel_decisions(name, "two classes"))


@every_classifier
def test_a_pickle_has_its_callable_kernel(name):
    model = make(name, kernel=module_kernel).fit(TWO.X, TWO.y)
    copied = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(
        copied.decision_function(TWO.X_test), model.decision_function(TWO.X_test)
    )


@every_classifier
def test_a_clone_has_its_callable_kernel(name):
    model = make(name, kernel=lambda A, B: linear_kernel(A, B) + 1.0)
    assert clone(model).kernel is model.kernel


@every_classifier
def test_a_precomputed_kernel_is_asked_for_support_rows_alone(name):
    model = make(name, kernel="precomputed").fit(module_kernel(TWO.X, TWO.X), TWO.y)
    values = module_kernel(TWO.X_test, TWO.X)
    support = getattr(model, "discriminant_", model).support_
    only = np.zeros_like(values)
    only[:, support] = values[:, support]
    np.testing.assert_array_equal(model.predict(only), model.predict(values))


@pytest.mark.parametrize("name", SINGLE_LAYER)
def test_gamma_scale_is_that_of_svc(name):
    X = TWO.X * [1.0, 2.0, 3.0, 4.0]
    model = make(name, gamma="scale", kernel="rbf", standardize=False).fit(X, TWO.y)
    assert model.gamma_ == pytest.approx(1 / (X.shape[1] * X.var()))


# Decisions


@pytest.mark.once_per("name", "multi_class")
@every_classifier
@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
@pytest.mark.parametrize("n_classes", [3, 5])
def test_many_classes_have_a_score_each(n_classes, multi_class, name):
    X, y = make_blobs(20 * n_classes, centers=n_classes, cluster_std=0.5, random_state=0)
    scores = make(name, multi_class=multi_class).fit(X, y).decision_function(X)
    assert scores.shape == (len(X), n_classes)


@pytest.mark.once_per("name")
@every_classifier
@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
def test_the_class_of_the_largest_score_is_predicted(multi_class, name):
    model = fitted(name, "many classes", multi_class=multi_class)
    winners = model.decision_function(MANY.X_test).argmax(axis=1)
    np.testing.assert_array_equal(model.predict(MANY.X_test), model.classes_[winners])


@every_classifier
def test_the_second_of_two_classes_is_predicted_where_scores_are_positive(name):
    model = fitted(name)
    is_second = model.decision_function(TWO.X_test) > 0
    np.testing.assert_array_equal(model.predict(TWO.X_test), model.classes_[is_second.astype(int)])


@every_classifier
def test_a_second_fit_gives_the_decisions_of_a_first_one(name):
    model = make(name)
    first = fitted(name, "many classes").decision_function(MANY.X_test)
    np.testing.assert_array_equal(decisions(model.fit(TWO.X, TWO.y), MANY), first)


@pytest.mark.parametrize("name", [n for n in SINGLE_LAYER if n not in PROBABILISTIC])
def test_decisions_are_sums_over_the_support_rows(name):
    model = make(name, gamma=0.3).fit(TWO.X, TWO.y)
    values = rbf_kernel(TWO.X_test, model.support_vectors_, gamma=0.3)
    np.testing.assert_allclose(
        model.decision_function(TWO.X_test),
        (values @ model.dual_coef_.T + model.intercept_).ravel(),
        atol=1e-9,
    )


@every_task
@pytest.mark.parametrize("name", SINGLE_LAYER)
def test_support_rows_are_counted_by_class(name, task):
    model = fitted(name, task)
    expected = [np.sum(TASKS[task].y[model.support_] == label) for label in model.classes_]
    assert model.n_support_.tolist() == expected


@every_task
@pytest.mark.parametrize("name", PROBABILISTIC)
def test_the_most_probable_class_is_predicted(name, task):
    model, rows = fitted(name, task), TASKS[task].X_test
    winners = model.predict_proba(rows).argmax(axis=1)
    np.testing.assert_array_equal(model.predict(rows), model.classes_[winners])


@every_task
@pytest.mark.parametrize("name", PROBABILISTIC)
def test_probabilities_sum_to_one(name, task):
    probabilities = fitted(name, task).predict_proba(TASKS[task].X_test)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)


@every_task
@pytest.mark.parametrize("name", PROBABILISTIC)
def test_log_probabilities_are_their_logarithms(name, task):
    model, rows = fitted(name, task), TASKS[task].X_test
    np.testing.assert_allclose(np.exp(model.predict_log_proba(rows)), model.predict_proba(rows))


# Weights of the features with a linear kernel


# Far apart for the hard margins, and on both sides of the origin for machines without a bias.
APART = TWO._replace(X=TWO.X + 6.0 * TWO.y[:, None] - 3.0)


@functools.cache
def linear(name, is_scaled=False):
    return make(name, kernel="linear", standardize=is_scaled).fit(APART.X, APART.y)


@pytest.mark.parametrize("name", SINGLE_LAYER)
def test_linear_decisions_are_sums_over_the_features(name):
    model = linear(name)
    expected = APART.X @ model.coef_.ravel() + model.intercept_
    np.testing.assert_allclose(model.decision_function(APART.X), expected, atol=1e-9)


@pytest.mark.parametrize("name", PROBABILISTIC)
def test_weights_belong_to_standardised_features_if_there_are_any(name):
    model = linear(name, is_scaled=True)
    scaled = StandardScaler().fit(APART.X).transform(APART.X)
    expected = scaled @ model.coef_.ravel() + model.intercept_
    np.testing.assert_allclose(model.decision_function(APART.X), expected, atol=1e-9)


@pytest.mark.parametrize("name", SINGLE_LAYER)
def test_weights_of_sparse_rows_are_an_array(name):
    model = make(name, kernel="linear").fit(sp.csr_array(APART.X), APART.y)
    assert isinstance(model.coef_, np.ndarray)


@pytest.mark.parametrize("name", SINGLE_LAYER)
def test_weights_cannot_be_set(name):
    with pytest.raises(AttributeError):
        linear(name).coef_ = np.zeros(4)


@pytest.mark.parametrize("name", SINGLE_LAYER)
def test_weights_are_read_only(name):
    with pytest.raises(ValueError, match="read-only"):
        linear(name).coef_[0, 0] = 1.0


@every_classifier
def test_other_kernels_have_no_weights_of_features(name):
    assert not hasattr(fitted(name), "coef_")
