"""``on_interrupt="keep"``: Ctrl-C ends a fit with the model so far."""

import os
import pickle
import signal
import threading
import warnings

import numpy as np
import pytest
from problems.cells import few_rows_are_many, many_rows
from sklearn.datasets import make_classification

from hardmargin import EnsembleSVC, GreedySVC
from hardmargin.estimators import greedy
from hardmargin.monitor import Monitor

ESTIMATORS = pytest.mark.parametrize("estimator", [EnsembleSVC, GreedySVC])


@pytest.fixture(autouse=True)
def signals_are_heard():
    """Tests that run in the background would ignore Ctrl-C."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def press_ctrl_c(monkeypatch, at_report):
    """Send the signal while a fit reports for the n-th time."""
    n_reports, report = [0], Monitor.report

    def tell(self, *arguments, **options):
        n_reports[0] += 1
        if n_reports[0] == at_report:
            os.kill(os.getpid(), signal.SIGINT)
        return report(self, *arguments, **options)

    monkeypatch.setattr(Monitor, "report", tell)


def interrupted(model, X, y):
    """Fit; there must be a warning that says so, perhaps among others."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y)
    assert any("Ctrl-C ended the training" in str(w.message) for w in caught)
    return model


@pytest.fixture
def rows():
    return make_classification(400, n_informative=5, flip_y=0.2, random_state=0)


@ESTIMATORS
@pytest.mark.parametrize("at_report", [1, 2])
def test_the_model_so_far_is_valid(estimator, at_report, rows, monkeypatch):
    press_ctrl_c(monkeypatch, at_report)
    model = interrupted(estimator(on_interrupt="keep"), *rows)
    assert np.isfinite(model.decision_function(rows[0])).all()
    assert set(model.predict(rows[0])) <= {0, 1}


def test_a_choice_that_is_ended_leaves_a_good_machine(rows, monkeypatch):
    press_ctrl_c(monkeypatch, 16)  # when some candidates have been tried
    model = interrupted(GreedySVC(on_interrupt="keep"), *rows)
    assert len(model.cv_results_["gamma"]) < len(GreedySVC().fit(*rows).cv_results_["gamma"])
    assert model.score(*rows) > 0.8


def test_a_machine_that_is_ended_is_not_the_one_judged(monkeypatch):
    rows = make_classification(6_000, n_informative=5, flip_y=0.2, random_state=0)
    monkeypatch.setattr(greedy, "SECONDS_TO_FINISH", 1e-9)
    press_ctrl_c(monkeypatch, 16)
    model = interrupted(GreedySVC(on_interrupt="keep"), *rows)
    assert model.stop_reason_ == "interrupt"
    assert np.isnan([model.cv_log_loss_, model.cv_error_]).all()


def test_the_warning_points_at_the_line_that_fits(rows, monkeypatch):
    press_ctrl_c(monkeypatch, 16)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        GreedySVC(on_interrupt="keep").fit(*rows)
    assert len(caught) == 2  # of the choice, and of the end
    assert {w.filename for w in caught} == {__file__}


def test_experts_keep_the_cells_so_far(monkeypatch):
    few_rows_are_many(monkeypatch)
    X, codes = many_rows()
    press_ctrl_c(monkeypatch, 4)
    model = interrupted(EnsembleSVC(on_interrupt="keep"), X, codes)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)


@ESTIMATORS
def test_by_default_it_raises(estimator, rows, monkeypatch):
    press_ctrl_c(monkeypatch, 2)
    model = estimator()
    with pytest.raises(KeyboardInterrupt):
        model.fit(*rows)
    assert not [name for name in vars(model) if name.endswith("_")]


def test_the_signal_is_as_before_afterwards(rows):
    before = signal.getsignal(signal.SIGINT)
    GreedySVC(on_interrupt="keep").fit(*rows)
    assert signal.getsignal(signal.SIGINT) is before


def test_what_ignores_ctrl_c_goes_on_ignoring_it(rows, monkeypatch):
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    press_ctrl_c(monkeypatch, 1)
    assert GreedySVC(on_interrupt="keep").fit(*rows).score(*rows) > 0.7


def test_threads_fit_as_ever(rows):
    model = GreedySVC(on_interrupt="keep")
    thread = threading.Thread(target=model.fit, args=rows)
    thread.start()
    thread.join()
    assert model.score(*rows) > 0.7


def test_models_without_the_parameter_get_its_default(rows):
    model = GreedySVC().fit(*rows)
    del model.on_interrupt
    loaded = pickle.loads(pickle.dumps(model))
    assert loaded.get_params()["on_interrupt"] == "raise"
    np.testing.assert_array_equal(loaded.predict(rows[0]), model.predict(rows[0]))
