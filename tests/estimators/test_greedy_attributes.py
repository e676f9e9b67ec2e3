"""What a fitted GreedySVC publishes."""

from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp
from oracles.greedy import algorithm_1
from oracles.kernels import kernel_matrix
from problems.greedy import (
    GAMMA,
    MULTI_CLASS,
    N_MACHINES,
    QUERIES,
    RBF,
    dense,
    fitted,
    four_classes,
    paper,
    two_classes,
)

from hardmargin.kernels import Kernel

# --- two classes ---------------------------------------------------------------------------------


def test_classes_are_the_labels():
    assert fitted().classes_.tolist() == [0, 1]


def test_support_is_in_order_of_selection():
    X, y = two_classes()
    order = algorithm_1(kernel_matrix(RBF, X), 2.0 * y - 1).order
    assert fitted().support_.tolist() == order.tolist()


def test_dual_coef_is_multiplier_times_label():
    X, y = two_classes()
    path = algorithm_1(kernel_matrix(RBF, X), 2.0 * y - 1)
    np.testing.assert_allclose(fitted().dual_coef_, [path.steps * (2 * y - 1)[path.order]])


def test_support_vectors_are_rows_of_x():
    X, _ = two_classes()
    np.testing.assert_array_equal(fitted().support_vectors_, X[fitted().support_])


def test_n_support_counts_support_rows_of_each_class():
    _, y = two_classes()
    assert fitted().n_support_.tolist() == np.bincount(y[fitted().support_]).tolist()


def test_intercept_is_zero_without_threshold():
    assert fitted().intercept_.tolist() == [0.0]


def test_intercept_is_minus_the_threshold():
    assert fitted(threshold=0.25).intercept_.tolist() == [-0.25]


def test_n_iter_is_an_int():
    assert isinstance(fitted().n_iter_, int)


def test_paths_have_one_entry_per_stage():
    model = fitted()
    shapes = {a.shape for a in (model.loss_path_, model.stage_indices_, model.stage_steps_)}
    assert shapes == {(model.n_iter_,)}


def test_paths_of_revisits_add_up_to_the_coefficients():
    model = fitted(max_visits=8)
    _, y = two_classes()
    alpha = np.zeros(len(y))
    np.add.at(alpha, model.stage_indices_, model.stage_steps_)
    np.testing.assert_allclose(
        (alpha * (2 * y - 1))[model.support_], model.dual_coef_[0], rtol=1e-12
    )


@pytest.mark.parametrize("max_visits", [1, 8])
def test_loss_path_ends_at_the_dual_objective(max_visits):
    model = fitted(max_visits=max_visits)
    X, _ = two_classes()
    signed = model.dual_coef_[0]
    K = kernel_matrix(RBF, X[model.support_])
    expected = signed @ K @ signed / 2 - np.abs(signed).sum()
    assert model.loss_path_[-1] == pytest.approx(expected)


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
def test_weight_norm_is_that_of_the_expansion(kernel):
    model = fitted(kernel=kernel)
    X, _ = two_classes()
    signed = model.dual_coef_[0]
    K = kernel_matrix(Kernel(kernel, gamma=GAMMA), X[model.support_])
    assert model.weight_norm_ == pytest.approx(np.sqrt(signed @ K @ signed))


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
def test_vc_bound_is_equation_26(kernel):
    model = fitted(kernel=kernel)
    X, y = two_classes()
    radius = kernel_matrix(Kernel(kernel, gamma=GAMMA), X).diagonal().max()
    expected = min(radius * model.weight_norm_**2, len(y)) + 1
    assert model.vc_bound_ == pytest.approx(expected)


def test_certificate_of_one_visit_is_zero():
    assert fitted().certificate_ == 0.0


def test_certificate_of_revisits_is_within_the_tolerance():
    assert 0 < fitted(max_visits=4, step_tol=0.1).certificate_ <= 0.1


def test_stop_reason_is_a_word():
    assert fitted().stop_reason_ == "converged"


def test_kernel_evaluations_are_at_most_one_column_per_stage():
    model = fitted()
    assert 0 < model.n_kernel_evaluations_ <= model.n_iter_ * len(two_classes()[1])


def test_method_is_one_of_the_documented():
    assert fitted().method_ in {"fused", "lazy", "bits", "lazy-bits"}


# --- many classes --------------------------------------------------------------------------------


@MULTI_CLASS
def test_support_of_many_classes_is_the_sorted_union(multi_class):
    model = fitted(multi_class)
    assert model.support_.tolist() == sorted(set(np.concatenate(model.stage_indices_).tolist()))


@MULTI_CLASS
def test_dual_coef_of_many_classes_is_csr(multi_class):
    coefficients = fitted(multi_class).dual_coef_
    assert sp.issparse(coefficients)
    assert coefficients.format == "csr"


@MULTI_CLASS
def test_dual_coef_has_one_row_per_machine(multi_class):
    model = fitted(multi_class)
    assert model.dual_coef_.shape == (N_MACHINES[multi_class], len(model.support_))


@MULTI_CLASS
def test_support_vectors_of_many_classes_are_rows_of_x(multi_class):
    X, _ = four_classes()
    model = fitted(multi_class)
    np.testing.assert_array_equal(model.support_vectors_, X[model.support_])


@MULTI_CLASS
@pytest.mark.parametrize("name", ["loss_path_", "stage_indices_", "stage_steps_"])
def test_paths_of_many_classes_are_lists(multi_class, name):
    paths = getattr(fitted(multi_class), name)
    assert isinstance(paths, list)
    assert len(paths) == N_MACHINES[multi_class]


@MULTI_CLASS
@pytest.mark.parametrize(
    "name",
    [
        "intercept_",
        "n_iter_",
        "weight_norm_",
        "vc_bound_",
        "certificate_",
        "n_kernel_evaluations_",
        "stop_reason_",
        "method_",
    ],
)
def test_scalars_of_many_classes_are_arrays(multi_class, name):
    assert np.shape(getattr(fitted(multi_class), name)) == (N_MACHINES[multi_class],)


def test_machines_are_in_pair_order_with_the_later_class_positive():
    model = fitted("ovo")
    _, y = four_classes()
    signs = np.sign(dense(model.dual_coef_))
    for row, (i, j) in zip(signs, combinations(range(4), 2), strict=True):
        expected = np.select([y[model.support_] == j, y[model.support_] == i], [1, -1])
        assert (row[row != 0] == expected[row != 0]).all()


def test_machines_one_against_the_rest_have_their_class_positive():
    model = fitted("ovr")
    _, y = four_classes()
    for c, row in enumerate(np.sign(dense(model.dual_coef_))):
        expected = np.where(y[model.support_] == c, 1, -1)
        assert (row[row != 0] == expected[row != 0]).all()


# --- the linear kernel ---------------------------------------------------------------------------


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array, sp.csr_matrix])
def test_coef_gives_the_decision(container):
    X, y = two_classes()
    model = paper(kernel="linear").fit(container(X), y)
    expected = QUERIES @ model.coef_[0] + model.intercept_[0]
    np.testing.assert_allclose(model.decision_function(QUERIES), expected, rtol=1e-9, atol=1e-12)


@MULTI_CLASS
def test_coef_of_many_classes_has_one_row_per_machine(multi_class):
    model = paper(kernel="linear", multi_class=multi_class).fit(*four_classes())
    assert model.coef_.shape == (N_MACHINES[multi_class], 3)


def test_other_kernels_have_no_coef():
    assert not hasattr(fitted(), "coef_")
