"""A fit reads the free memory once, and decides once how to treat its rows."""

from itertools import chain, repeat

import numpy as np
import pytest
import scipy.sparse as sp
from problems.cells import few_rows_are_many, many_rows

from hardmargin import EnsembleSVC, resources
from hardmargin.estimators import ensemble

PLENTY = 2**33


def documents(n=300):
    rng = np.random.default_rng(0)
    X = sp.random_array((n, 1_200), density=0.02, format="csr", rng=rng)
    return X, (np.asarray(X[:, :400].sum(axis=1)).ravel() > 4).astype(int)


def free_memory_is(monkeypatch, *sizes):
    """The memory that is free, one time after another; the last one stays."""
    following = chain(sizes, repeat(sizes[-1]))
    monkeypatch.setattr(resources, "free_memory", lambda: next(following))


@pytest.mark.filterwarnings("ignore:There are more columns", "ignore:The kernel is approximated")
@pytest.mark.parametrize("first", [3_000_000, PLENTY])
@pytest.mark.parametrize("rows", [documents, lambda: many_rows(400)], ids=["text", "table"])
def test_memory_that_comes_and_goes_changes_nothing(rows, first, monkeypatch):
    few_rows_are_many(monkeypatch, 10_000)
    free_memory_is(monkeypatch, first)
    steady = EnsembleSVC(random_state=0).fit(*rows())
    free_memory_is(monkeypatch, first, *10 * (PLENTY, 3_000_000))
    model = EnsembleSVC(random_state=0).fit(*rows())
    np.testing.assert_array_equal(model.dual_coef_.shape, steady.dual_coef_.shape)
    np.testing.assert_array_equal(model.kernel_weights_, steady.kernel_weights_)
    np.testing.assert_array_equal(model.predict_proba(rows()[0]), steady.predict_proba(rows()[0]))


@pytest.mark.parametrize("n", [200, 700])
def test_a_fit_has_one_plan(n, monkeypatch):
    few_rows_are_many(monkeypatch)
    made, plan = [], ensemble.plan
    monkeypatch.setattr(ensemble, "plan", lambda *given: made.append(plan(*given)) or made[-1])
    EnsembleSVC(max_cell_rows=150, n_trees=1).fit(*many_rows(n))
    assert [own.has_cells for own in made] == [n > 300]
