"""Time limits of all estimators: kernel matrices and first products count, and a model is left.

No test waits: the clock is theirs.
"""

import inspect
import warnings

import numpy as np
import pytest
from problems.clock import Clock, set_clock
from sklearn.datasets import make_classification

import hardmargin
from hardmargin import (
    MarginDiscriminantAnalysis,
    MultiplicativeSVC,
    PathSVC,
    RhoEnsembleSVC,
    RhoSVC,
    RigorousSVC,
)
from hardmargin.kernels import Kernel, KernelRows
from hardmargin.kernels.matrix import StreamedMatrix, kernel_matrix
from hardmargin.monitor import Monitor, Stopped
from hardmargin.solvers import multiplicative, regularization_path, rho
from hardmargin.solvers.problem import Problem
from hardmargin.solvers.regularization_path import ScaledKernel, tracer
from hardmargin.solvers.regularization_path.state import Stuck

X, Y = make_classification(120, 5, n_informative=4, n_redundant=0, n_classes=3, random_state=0)
ESTIMATORS = [
    getattr(hardmargin, name)
    for name in hardmargin.__all__
    if name[0].isupper() and "max_time" in inspect.signature(getattr(hardmargin, name)).parameters
]
KERNELS = ["rbf", "linear", "precomputed", lambda X, Z: np.exp(-((X[:, None] - Z) ** 2).sum(2))]
RBF = Kernel("rbf", gamma=0.3)


def some(n_classes):
    """Rows of the first classes."""
    is_one = np.isin(Y, range(n_classes))
    return X[is_one], Y[is_one]


def late():
    """A monitor whose time is up."""
    return Monitor(1.0, clock=Clock(step=2.0))


@pytest.mark.once_per("estimator", "n_looks")
@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("kernel", KERNELS, ids=["rbf", "linear", "precomputed", "callable"])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("n_looks", [0, 1, 3, 10])
def test_time_may_be_up_at_any_moment(estimator, kernel, n_classes, n_looks, monkeypatch):
    set_clock(monkeypatch, Clock(step=1.0))
    rows, y = some(n_classes)
    rows = RBF.block(rows) if kernel == "precomputed" else rows
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = estimator(kernel=kernel, max_time=n_looks + 0.5).fit(rows, y)
        found = model.predict(rows) if hasattr(model, "predict") else model.transform(rows)
    assert len(found) == len(rows)


# --- kernel matrices -----------------------------------------------------------------------------


@pytest.mark.parametrize("memory_bytes", [0, 2**30], ids=["streamed", "stored"])
def test_a_kernel_matrix_without_time_has_no_products(memory_bytes):
    matrix = kernel_matrix(RBF, X, memory_bytes=memory_bytes, monitor=late())
    assert isinstance(matrix, StreamedMatrix)
    with pytest.raises(Stopped):
        matrix.product(np.ones(len(X)))


@pytest.mark.parametrize("memory_bytes", [0, 2**30], ids=["streamed", "stored"])
def test_a_kernel_matrix_with_time_is_as_ever(memory_bytes):
    limited, plain = (
        kernel_matrix(RBF, X, memory_bytes=memory_bytes, monitor=monitor)
        for monitor in (Monitor(1e6), None)
    )
    assert type(limited) is type(plain)
    np.testing.assert_array_equal(limited.product(X), plain.product(X))


def test_a_kernel_function_is_stopped_between_blocks():
    kernel = Kernel("callable", function=lambda X, Z: X @ Z.T)
    with pytest.raises(Stopped):
        kernel.expand(X, X, np.ones((1, len(X))), check=late().check)


def test_the_kernel_of_a_path_takes_time():
    K = RBF.block(X)
    with pytest.raises(Stopped):
        ScaledKernel.of(K, monitor=late())
    np.testing.assert_array_equal(
        ScaledKernel.of(K, monitor=Monitor(1e6)).values, ScaledKernel.of(K).values
    )


# --- what is left --------------------------------------------------------------------------------


@pytest.fixture
def no_time(monkeypatch):
    set_clock(monkeypatch, Clock(step=1.0))


def fitted(model, n_classes=2):
    with pytest.warns(UserWarning, match="max_time"):
        return model.fit(*some(n_classes))


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("estimator", [RhoSVC, RhoEnsembleSVC])
@pytest.mark.parametrize("rank", [None, 10])
def test_rho_is_a_parzen_window(estimator, n_classes, rank, no_time):
    model = fitted(estimator(max_time=0.5, rank=rank), n_classes)
    assert (np.atleast_1d(model.stop_reason_) == "max_time").all()
    assert (np.atleast_1d(model.n_iter_) == 0).all()
    assert (np.atleast_1d(model.certificate_) == 1.0).all()
    path = model.rho_path_ if n_classes > 2 else [model.rho_path_]
    assert np.isnan(path).all()
    assert len(list(model.staged_predict(X[:5]))) == 1


def test_the_start_of_the_multiplicative_updates(no_time):
    model = fitted(MultiplicativeSVC(max_time=0.5))
    first = MultiplicativeSVC(max_stages=1, learning_rate=1e-12)
    with pytest.warns(UserWarning, match="max_stages"):
        first.fit(*some(2))
    assert (model.stop_reason_, model.n_iter_, model.certificate_) == ("max_time", 0, 1.0)
    np.testing.assert_allclose(model.dual_coef_, first.dual_coef_, rtol=1e-9)
    assert np.isnan(model.margin_path_).all()
    assert np.isnan(model.weight_norm_)
    assert model.support_bound_ == 1.0
    [scores] = model.staged_decision_function(X[:5])
    np.testing.assert_allclose(scores, model.decision_function(X[:5]))


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("model", [PathSVC("loo"), PathSVC(), RigorousSVC(2.0), RigorousSVC()])
def test_a_path_ends_where_it_begins(model, n_classes, no_time):
    model = fitted(model.set_params(max_time=0.5), n_classes)
    assert (np.atleast_1d(model.stop_reason_) == "max_time").all()
    assert (np.atleast_1d(model.C_) == 0).all()
    assert len(model.support_) == 0
    assert len(set(model.predict(X))) == 1


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("solver", ["newton", "lagrangian", "nystroem"])
def test_discriminants_are_those_of_a_few_rows(solver, n_classes, no_time):
    model = MarginDiscriminantAnalysis(2, solver=solver, max_time=0.5)
    with pytest.warns(UserWarning, match="max_time"):
        Z = model.fit_transform(*some(n_classes))
    assert 0 < len(model.support_) < 10
    assert np.isfinite(Z).all()


def test_distances_of_wide_rows_are_given_up():
    wide = np.random.default_rng(0).normal(size=(50, 200))
    rows = KernelRows(Kernel("rbf", gamma=0.01), wide)
    assert rows.with_metric(2**30, check=late().check).metric is None
    assert rows.with_metric(2**30, check=Monitor(1e6).check).metric is not None


class Slow:
    """A kernel matrix with time for some products."""

    def __init__(self, n_products):
        self.values, self.n_left = RBF.block(some(2)[0]), n_products
        self.n_rows, self.diagonal = len(self.values), np.ones(len(self.values))

    def product(self, V):
        self.n_left -= 1
        if self.n_left < 0:
            raise Stopped
        return self.values @ V


@pytest.mark.parametrize("n_products", range(6))
@pytest.mark.parametrize("solver", [rho, multiplicative])
def test_a_product_that_is_given_up_leaves_the_stages_before_it(solver, n_products):
    signs = np.where(some(2)[1] > 0, 1.0, -1.0)
    [found] = solver.solve(Problem.two_class(Slow(n_products), signs))
    [whole] = solver.solve(Problem.two_class(Slow(10**9), signs))
    assert found.stop_reason == "max_time"
    assert found.n_stages <= n_products
    assert np.isfinite(found.coefficients).all()
    if n_products > 1:
        name = "rho" if solver is rho else "objective"
        path = found.history[name]
        if solver is rho or n_products > 2:
            np.testing.assert_array_equal(path, whole.history[name][: len(path)])


@pytest.mark.parametrize("n_steps", [0, 1, 5])
def test_a_path_that_is_blocked_when_time_is_up_ends_before(n_steps, monkeypatch):
    rows, y = some(2)
    problem = Problem.two_class(ScaledKernel.of(RBF.block(rows)), np.where(y > 0, 1.0, -1.0))
    now, n_events, go = [0.0], [0], tracer._Tracer._go

    def blocked(self, event):
        n_events[0] += 1
        if n_events[0] > n_steps + 1:
            now[0] = 9.0
            raise Stuck
        go(self, event)

    monkeypatch.setattr(tracer._Tracer, "_go", blocked)
    [found] = regularization_path.solve(problem, None, Monitor(1.0, clock=lambda: now[0]))
    assert found.stop_reason == "max_time"
    assert found.path.violation <= 1e-8
