"""EnsembleSVC on text, and on other wide rows."""

import functools
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import normalize

from hardmargin import EnsembleSVC, compress
from hardmargin.kernels import KernelSum
from hardmargin.selection.first_look import SAMPLE_ROWS
from hardmargin.selection.plan import Budget, plan


@functools.cache
def documents(n=240, n_words=1_500, n_classes=3, seed=0):
    """Counts of words, of which each class has some of its own."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    common = 1 / (5 + np.arange(n_words))
    X = np.zeros((n, n_words))
    for i, c in enumerate(y):
        share = common * np.where(np.arange(n_words) % n_classes == c, 3.0, 1.0)
        np.add.at(X[i], rng.choice(n_words, size=40, p=share / share.sum()), 1.0)
    return sp.csr_array(X), y


def tfidf(**settings):
    X, y = documents(**settings)
    return sp.csr_array(normalize(X * np.log(len(y) / (1 + (X > 0).sum(axis=0))))), y


@functools.cache
def fitted(**parameters):
    return EnsembleSVC(**parameters).fit(*tfidf())


def new_documents():
    return tfidf(seed=1)


def test_text_has_a_machine_per_class():
    clf = fitted()
    assert len(clf.intercept_) == 3
    assert clf.score(*new_documents()) > 0.85


def test_pairs_can_be_asked_for():
    X, y = documents(n=200, n_classes=4)
    assert len(EnsembleSVC(multi_class="ovo").fit(X, y).intercept_) == 6


def test_tables_have_pairs():
    X, y = load_iris(return_X_y=True)
    default, pairs = EnsembleSVC().fit(X, y), EnsembleSVC(multi_class="ovo").fit(X, y)
    np.testing.assert_array_equal(default.predict_proba(X), pairs.predict_proba(X))


@pytest.mark.parametrize("standardize", [True, False])
def test_what_is_asked_for_is_not_compared(standardize):
    assert EnsembleSVC(standardize=standardize).fit(*tfidf()).standardized_ is standardize


def test_units_without_meaning_are_standardised_away():
    X, y = documents()
    units = 10.0 ** (np.arange(X.shape[1]) % 3)
    assert EnsembleSVC().fit(sp.csr_array(X * units), y).standardized_


def test_dense_tables_are_standardised():
    assert EnsembleSVC().fit(*load_iris(return_X_y=True)).standardized_


def test_a_dense_row_of_common_norm_may_stay_as_it_is():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 8)) * [3, 3, 1, 1, 0.1, 0.1, 0.1, 0.1]
    X, y = normalize(X), X[:, 0] * X[:, 1] > 0
    assert not EnsembleSVC().fit(X, y).standardized_


def expanded(clf, rows):
    """Decisions from the kernel values of all support rows."""
    kernel = clf._kernel_ if isinstance(clf._kernel_, KernelSum) else KernelSum((clf._kernel_,))
    return kernel.expand(rows, clf.support_vectors_, clf.dual_coef_) + clf.intercept_


def test_linear_kernels_are_weights_in_predictions():
    clf, (Q, _) = fitted(), new_documents()
    assert any(clf.kernel_weights_["kernel"] == "linear")
    rows = clf._scaled(Q)
    np.testing.assert_allclose(clf._margins(rows), expanded(clf, rows), rtol=1e-6, atol=1e-6)


def test_linear_paths_equal_those_on_the_kernel_matrix():
    X, y = tfidf(n_classes=2)
    Q, _ = tfidf(n_classes=2, seed=1)
    sparse = EnsembleSVC(kernel="linear", standardize=False).fit(X, y)
    dense = EnsembleSVC(kernel="linear", standardize=False).fit(X.toarray(), y)
    np.testing.assert_allclose(sparse.predict_proba(Q), dense.predict_proba(Q.toarray()), atol=1e-6)
    np.testing.assert_allclose(sparse.coef_, dense.coef_, atol=1e-6 * np.abs(dense.coef_).max())


def many_documents(n=2_400):
    return tfidf(n=n, n_words=1_100, n_classes=2)


def test_text_is_never_made_dense(monkeypatch):
    X, y = many_documents()
    toarray = sp.csr_array.toarray

    def few(self, *arguments, **settings):
        assert self.shape[0] < 100 or self.shape[1] == 1
        return toarray(self, *arguments, **settings)

    monkeypatch.setattr(sp.csr_array, "toarray", few)
    EnsembleSVC().fit(X, y).predict_proba(X)


def test_many_documents_need_no_kernel_matrix():
    X, y = many_documents()
    clf = EnsembleSVC(memory_limit=20e6).fit(X, y)  # the distances alone would take 23 MB
    assert set(clf.kernel_weights_["kernel"]) == {"linear"}
    assert clf.rank_ is None


def test_documents_of_machines_above_the_limit_are_all_used(monkeypatch):
    monkeypatch.setattr("hardmargin.selection.plan.MAX_STORED_ROWS", 1_000)
    X, y = many_documents()
    clf = EnsembleSVC().fit(X, y)
    assert clf.experts_["kind"].tolist() == ["whole"]
    assert len(clf.support_) == len(y)


def test_the_model_does_not_depend_on_threads():
    X, y = documents()
    one, two = (EnsembleSVC(n_jobs=n).fit(X, y).predict_proba(X) for n in (1, 2))
    np.testing.assert_array_equal(one, two)


def test_a_random_state_moves_on_as_without_a_look():
    X, y = documents()
    state = np.random.RandomState(0)
    first, second = (EnsembleSVC(random_state=state).fit(X, y).cv_log_loss_ for _ in range(2))
    assert first != second


@pytest.mark.filterwarnings("ignore:There are more columns")
def test_wide_dense_rows_have_linear_candidates():
    X, y = tfidf()
    table = EnsembleSVC(standardize=True, multi_class="ovo").fit(X.toarray(), y).cv_table_
    assert "linear" in table["kernel"]


def test_compressed_text_predicts_with_its_own_weights():
    Q, _ = new_documents()
    small = compress(fitted(), n_support=100)
    rows = small._scaled(Q)
    np.testing.assert_allclose(small._margins(rows), expanded(small, rows), rtol=1e-5, atol=1e-5)


def test_time_is_planned_for_the_machines_that_are_trained(monkeypatch):
    """Machines of one class against all have all rows: too many for a kernel matrix here."""
    X, y = documents(n=1_000)
    monkeypatch.setattr("hardmargin.selection.plan.MAX_STORED_ROWS", 900)
    model = EnsembleSVC(max_time=60)
    rows = model._read_table(X, y, None, None, model._new_generator())
    growth = plan(rows, model, Budget.of(None)).growth(rows)
    assert (growth.linear_above, growth.linear_from) == (SAMPLE_ROWS, SAMPLE_ROWS)


def test_little_memory_for_text_says_nothing_of_cells(monkeypatch):
    monkeypatch.setattr("hardmargin.selection.plan.MAX_STORED_ROWS", 1_000)
    monkeypatch.setattr("hardmargin.cells.training.BYTES_PER_ROW", 10_000)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "memory_limit is too small")
        EnsembleSVC(memory_limit="40MB").fit(*many_documents())


def test_splits_that_can_be_read_only_once_are_read_once():
    X, y = documents()
    cv = StratifiedKFold(3)
    once, listed = (EnsembleSVC(cv=splits).fit(X, y) for splits in (cv.split(X, y), cv))
    np.testing.assert_array_equal(once.predict_proba(X), listed.predict_proba(X))
