"""DiversifiedSVC within limits: threads, failures, warnings, time and Ctrl-C."""

import os
import signal
import threading
import time
import warnings

import numpy as np
import pytest
from problems.clock import Clock, set_clock
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier

from hardmargin import DiversifiedSVC
from hardmargin.estimators import diversified
from hardmargin.estimators._base.second_layer import fit_second_layer
from hardmargin.estimators._base.soft_margin import SoftMarginSVC
from hardmargin.monitor import Monitor
from hardmargin.solvers import soft_margin
from hardmargin.warn import warn_caller

# --- failures, warnings and threads --------------------------------------------------------------


def test_threads_change_nothing(iris):
    X, y = iris
    one, two = (
        DiversifiedSVC(2, cv=2, final_estimator="cvm", n_jobs=n, random_state=0).fit(X, y)
        for n in (1, 2)
    )
    np.testing.assert_allclose(one.decision_function(X), two.decision_function(X), atol=1e-8)


def test_a_failing_fit_leaves_the_estimator_as_it_was(iris):
    X, y = iris

    class Failing(LogisticRegression):
        def fit(self, X, y):
            raise RuntimeError("no")

    clf = DiversifiedSVC(1).fit(X, y)
    clf.final_estimator = Failing()
    before = dict(vars(clf))
    with pytest.raises(RuntimeError, match="no"):
        clf.fit(X[:, :2], y)
    assert vars(clf).keys() == before.keys()
    assert all(vars(clf)[name] is before[name] for name in before)


def test_other_warnings_of_the_second_layer_stay_warnings():
    class Warning_(LogisticRegression):
        def fit(self, X, y):
            warnings.warn("look out", UserWarning, stacklevel=1)
            return super().fit(X, y)

    Z, y = [[0.0], [1.0]], [0, 1]
    with pytest.warns(UserWarning, match="look out"):
        fit_second_layer(Warning_(), Z, y)
    with pytest.raises(UserWarning, match="look out"):
        fit_second_layer(Warning_(), Z, y)


def test_fits_beside_the_main_thread_leave_the_filters_of_warnings_alone(iris):
    class Looking(LogisticRegression):
        def fit(self, X, y):
            seen.append(list(warnings.filters))
            return super().fit(X, y)

    seen, before = [], list(warnings.filters)
    thread = threading.Thread(target=DiversifiedSVC(1, final_estimator=Looking()).fit, args=iris)
    thread.start()
    thread.join()
    assert seen == [before]


# --- time ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("cv", [None, 3])
def test_time_limits_the_first_layer(cv):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(3_000, 10)), rng.integers(3, size=3_000)
    clf = DiversifiedSVC(3, cv=cv, max_time=0.05, final_estimator=LogisticRegression())
    with pytest.warns(ConvergenceWarning, match="max_time") as caught:
        clf.fit(X, y)
    assert {w.filename for w in caught} == {__file__}
    assert clf.discriminant_.max_time == 0.05
    assert clf.predict(X).shape == (3_000,)


def test_time_is_shared_out_by_rows():
    seconds = [100.0]
    monitor = Monitor(12.0, clock=lambda: seconds[-1])
    assert diversified._share(monitor, [10, 20, 30]) == pytest.approx(2.0)
    seconds.append(101.0)
    assert diversified._share(monitor, [20, 30]) == pytest.approx(11.0 * 20 / 50)
    seconds.append(200.0)
    assert diversified._share(monitor, [30]) == 1e-3
    assert diversified._share(Monitor(), [1]) is None


def noise(n_rows, n_classes=3):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, 5))
    return X, np.digitize(X[:, 0] + rng.normal(size=n_rows), [0.0, 1.0][: n_classes - 1])


@pytest.fixture
def slow_layers(monkeypatch):
    """Rows of every second layer; the first takes a second, and time grows with their square."""
    clock, sizes, plain = Clock(), [], diversified.fit_second_layer
    set_clock(monkeypatch, clock)

    def fit(layer, Z, y, **params):
        sizes.append(len(Z))
        clock.now += (len(Z) / 200) ** 2
        return plain(layer, Z, y, **params)

    monkeypatch.setattr(diversified, "fit_second_layer", fit)
    monkeypatch.setattr(diversified, "LEAST_LAYER_ROWS", 200)
    return sizes


@pytest.mark.parametrize("final", ["svm", "cvm", "vote", LogisticRegression()])
def test_the_second_layer_grows_as_long_as_there_is_time(final, slow_layers):
    X, y = noise(1_500)
    clf = DiversifiedSVC(1, final_estimator=final, max_time=10.0, random_state=0)
    with pytest.warns(
        ConvergenceWarning, match=r"second layer was trained on \d+ of 1,500\. Raise"
    ):
        clf.fit(X, y)
    assert len(slow_layers) > 1
    assert slow_layers[0] < slow_layers[-1] < 1_500
    assert sum((size / 200) ** 2 for size in slow_layers) <= 10.0
    assert clf.score(X, y) > 0.5


@pytest.mark.parametrize("cv", [None, 2])
@pytest.mark.parametrize("weights", [None, "some"])
def test_time_enough_gives_the_model_without_a_limit(cv, weights, slow_layers):
    X, y = noise(500)
    weights = None if weights is None else np.random.default_rng(0).uniform(0.5, 2, len(y))
    limited, plain = (
        DiversifiedSVC(1, cv=cv, max_time=limit, random_state=0).fit(X, y, weights)
        for limit in (1e6, None)
    )
    np.testing.assert_array_equal(limited.decision_function(X), plain.decision_function(X))
    assert limited.final_estimator_.max_time == 1e6


def test_a_second_layer_that_was_cut_short_is_not_used(slow_layers, monkeypatch):
    X, y = noise(500)
    plain = SoftMarginSVC.fit

    def cut(self, Z, y, sample_weight=None):
        plain(self, Z, y, sample_weight)
        if len(Z) > 250:
            self.stop_reason_ = np.array(["converged", "max_time", "converged"])
            warn_caller("stopped at max_time")
        return self

    monkeypatch.setattr(SoftMarginSVC, "fit", cut)
    with pytest.warns(ConvergenceWarning) as caught:
        clf = DiversifiedSVC(1, max_time=1e6, random_state=0).fit(X, y)
    assert slow_layers[-1] == 500
    assert [str(w.message)[:9] for w in caught] == ["max_time="]
    assert clf.final_estimator_.stop_reason_.tolist() == ["converged"] * 3


@pytest.mark.parametrize("final", ["svm", "cvm"])
def test_huge_weights_of_rows_that_overlap_end_soon(final):
    # Six points, each of both classes: with such weights there is no end to raising multipliers.
    X, y = np.repeat(np.arange(6.0)[:, None], 2, axis=0), np.arange(12) % 2
    weights = np.where(np.arange(12) < 6, 1e300, 1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for given in (weights, np.full(12, 1e300), weights[::-1]):
            clf = DiversifiedSVC(1, final_estimator=final).fit(X, y, given)
            assert np.isfinite(clf.decision_function(X)).all()


# --- Ctrl-C --------------------------------------------------------------------------------------


def test_ctrl_c_ends_networks(iris, monkeypatch):
    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(MLPClassifier, "_backprop", interrupted)
    clf = DiversifiedSVC(1, final_estimator="mlp")
    before = dict(vars(clf))
    with pytest.raises(KeyboardInterrupt):
        clf.fit(*iris)
    assert vars(clf) == before


def test_ctrl_c_is_heard_in_the_second_layer(monkeypatch):
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    solve, delays = soft_margin.solve, []

    def interrupted(*arguments):
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
        start = time.monotonic()
        try:
            return solve(*arguments)
        finally:
            delays.append(time.monotonic() - start)

    monkeypatch.setattr(soft_margin, "solve", interrupted)
    X = np.random.default_rng(0).normal(size=(20_000, 5))
    clf = DiversifiedSVC(1, max_time=None, C=1e-3, tol=0.5)
    try:
        with pytest.raises(KeyboardInterrupt):
            clf.fit(X, np.arange(len(X)) % 2)
    finally:
        signal.signal(signal.SIGINT, before)
    assert delays[0] < 1.1
    assert not hasattr(clf, "final_estimator_")
