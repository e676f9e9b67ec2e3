"""The labels and the forms of rows that GreedySVC accepts."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from problems.greedy import GAMMA, QUERIES, fitted, four_classes, paper, stage_problem, two_classes

# --- labels --------------------------------------------------------------------------------------

LABELS = {
    "str": np.array(["no", "yes"]),
    "object": np.array(["no", "yes"], dtype=object),
    "bool": np.array([False, True]),
    "negative": np.array([-7, -3]),
    "float": np.array([0.0, 1.0]),
    "uint8": np.array([3, 250], dtype=np.uint8),
}


@pytest.mark.parametrize("kind", LABELS)
def test_predictions_are_labels_as_they_came(kind):
    X, y = two_classes()
    predicted = paper(gamma=GAMMA).fit(X, LABELS[kind][y]).predict(QUERIES)
    assert predicted.tolist() == LABELS[kind][fitted().predict(QUERIES)].tolist()


@pytest.mark.parametrize("kind", LABELS)
def test_predictions_have_the_type_of_the_labels(kind):
    X, y = two_classes()
    predicted = paper(gamma=GAMMA).fit(X, LABELS[kind][y]).predict(QUERIES)
    assert predicted.dtype == LABELS[kind].dtype


def test_labels_may_be_a_list():
    X, y = two_classes()
    model = paper(gamma=GAMMA).fit(X.tolist(), ["ab"[c] for c in y])
    assert model.classes_.tolist() == ["a", "b"]


def test_labels_of_many_classes_may_be_strings():
    X, y = four_classes()
    names = np.array(["d", "c", "b", "a"])
    predicted = paper(gamma=GAMMA).fit(X, names[y]).predict(X)
    assert np.mean(predicted == names[y]) > 0.7


# --- forms of input ------------------------------------------------------------------------------


@pytest.mark.parametrize("container", [sp.csr_array, sp.csr_matrix, sp.csc_array, sp.coo_array])
@pytest.mark.parametrize("multi_class", [None, "ovo"])
def test_sparse_rows_give_the_dense_model(multi_class, container):
    (X, y), Q = stage_problem(multi_class)
    model = paper(gamma=GAMMA).fit(container(X), y)
    np.testing.assert_allclose(
        model.decision_function(container(Q)),
        fitted(multi_class).decision_function(Q),
        rtol=1e-9,
        atol=1e-9,
    )


def test_sparse_support_vectors_stay_sparse():
    X, y = two_classes()
    assert sp.issparse(paper().fit(sp.csr_array(X), y).support_vectors_)


def test_sparse_entries_stored_twice_are_added():
    X, y = two_classes()
    once = sp.coo_array(X)
    twice = sp.csr_array(
        (
            np.concatenate([once.data / 2, once.data / 2]),
            (np.tile(once.coords[0], 2), np.tile(once.coords[1], 2)),
        ),
        shape=X.shape,
    )
    np.testing.assert_allclose(
        paper(gamma=GAMMA).fit(twice, y).decision_function(QUERIES),
        fitted().decision_function(QUERIES),
        rtol=1e-9,
    )


def test_fortran_order_gives_the_same_model():
    X, y = two_classes()
    model = paper(gamma=GAMMA).fit(np.asfortranarray(X), y)
    np.testing.assert_array_equal(model.dual_coef_, fitted().dual_coef_)


def test_read_only_memmap_gives_the_same_model(tmp_path):
    X, y = two_classes()
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    model = paper(gamma=GAMMA).fit(mapped, y)
    np.testing.assert_array_equal(model.dual_coef_, fitted().dual_coef_)


def test_input_is_left_alone():
    X, y = two_classes()
    before = X.copy()
    paper(gamma=GAMMA).fit(X, y).predict(X)
    np.testing.assert_array_equal(X, before)


def test_float32_rows_are_kept_as_they_are():
    X, y = two_classes()
    model = paper(gamma=GAMMA).fit(X.astype(np.float32), y)
    assert model.support_vectors_.dtype == np.float32


def test_float32_rows_give_nearly_the_same_decisions():
    X, y = two_classes()
    model = paper(gamma=GAMMA).fit(X.astype(np.float32), y)
    np.testing.assert_allclose(
        model.decision_function(QUERIES), fitted().decision_function(QUERIES), atol=1e-4
    )


def test_float32_kernels_give_nearly_the_same_decisions():
    np.testing.assert_allclose(
        fitted(dtype="float32").decision_function(QUERIES),
        fitted().decision_function(QUERIES),
        atol=1e-3,
    )


def test_few_rows_are_trained_in_float64():
    np.testing.assert_array_equal(fitted(dtype="float64").dual_coef_, fitted().dual_coef_)


def test_feature_names_are_kept():
    X, y = two_classes()
    model = paper().fit(pd.DataFrame(X, columns=list("abcd")), y)
    assert model.feature_names_in_.tolist() == list("abcd")


def test_feature_names_must_match():
    X, y = two_classes()
    model = paper().fit(pd.DataFrame(X, columns=list("abcd")), y)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(pd.DataFrame(X, columns=list("abce")))


def test_labels_may_be_a_pandas_series():
    X, y = two_classes()
    series = pd.Series(np.array(["no", "yes"])[y])
    assert paper().fit(pd.DataFrame(X), series).classes_.tolist() == ["no", "yes"]
