"""Bars and callbacks: what long fits show, and what ends them."""

import io

import numpy as np
import pytest
import rich.console
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from hardmargin import (
    DiversifiedSVC,
    EnsembleSVC,
    GreedySVC,
    MinimumEnclosingBall,
    MultiplicativeSVC,
    ParzenClassifier,
)
from hardmargin.monitor import Event
from hardmargin.progress import shown

X, Y = load_iris(return_X_y=True)


@pytest.fixture
def terminal(monkeypatch):
    """A terminal that keeps what is drawn on it."""
    drawn, make = io.StringIO(), rich.console.Console

    def console(**_):
        return make(file=drawn, force_terminal=True, width=100, _environ={"TERM": "xterm"})

    monkeypatch.setattr(rich.console, "Console", console)
    return drawn


def test_a_bar_says_how_far_a_fit_is(terminal):
    with shown("EnsembleSVC", 1) as tell:
        tell(Event("held-out loss", 12, 0.234, 3, 40, 5.0, unit="cell", seconds_left=42.0))
    text = "EnsembleSVC: cell 4 of 40, stage 12, held-out loss 0.234, about 42 s left"
    assert text in terminal.getvalue()


def test_a_short_fit_has_no_bar(terminal):
    with shown("EnsembleSVC", 1) as tell:
        tell(Event("held-out loss", 12, 0.234, 0, 1, 0.5))
    assert terminal.getvalue() == ""


def test_a_bar_disappears_if_the_fit_fails(terminal):
    def fail():
        with shown("GreedySVC", 1) as tell:
            tell(Event("gap", 12, 0.234, 0, 1, 5.0))
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert terminal.getvalue().rstrip().endswith("\x1b[2K")


def test_lines_where_nothing_can_be_drawn(capsys):
    with shown("GreedySVC", 1) as tell:
        tell(Event("gap", 12, 0.234, 0, 1, 5.0))
    assert capsys.readouterr().out == "[GreedySVC] 5 s: stage 12, gap 0.234\n"


def test_more_than_a_bar_is_lines(terminal, capsys):
    with shown("GreedySVC", 2) as tell:
        tell(Event("gap", 12, 0.234, 0, 1, 5.0))
    assert terminal.getvalue() == ""
    assert "stage 12" in capsys.readouterr().out


# --- scikit-learn's callbacks ---------------------------------------------------------------------

callbacks = pytest.importorskip("sklearn.callback", reason="scikit-learn before 1.9")


class Recorder:
    """Remembers what it is told, and stops a fit after some tasks."""

    def __init__(self, most=None):
        self.most, self.told, self.stages = most, [], []

    def setup(self, estimator, context):
        self.told.append("setup")

    def teardown(self, estimator, context):
        self.told.append("teardown")

    def on_fit_task_begin(self, estimator, context):
        if context.task_name == "fit":
            self.told.append("begin")

    def on_fit_task_end(self, estimator, context, *, metadata=None):
        if context.task_name == "fit":
            self.told.append("end")
            return False
        self.stages.append(metadata)
        return self.most is not None and len(self.stages) >= self.most


WHOLE = ["setup", "begin", "end", "teardown"]


def updates(**given):
    return MultiplicativeSVC("scale", max_stages=200, **given)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_callbacks_hear_every_report():
    recorder = Recorder()
    updates().set_callbacks(recorder).fit(X, Y == 1)
    assert recorder.told == WHOLE
    assert len(recorder.stages) > 10
    assert all("stage" in metadata for metadata in recorder.stages)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_callback_ends_a_fit():
    recorder = Recorder(most=5)
    model = updates().set_callbacks(recorder).fit(X, Y == 1)
    assert recorder.told == WHOLE
    assert model.stop_reason_ == "callback"
    assert model.n_iter_ < updates().fit(X, Y == 1).n_iter_


def test_callbacks_do_not_change_the_model():
    plain, heard = GreedySVC().fit(X, Y), GreedySVC().set_callbacks(Recorder()).fit(X, Y)
    np.testing.assert_array_equal(plain.predict_proba(X), heard.predict_proba(X))


def test_callbacks_are_told_of_a_fit_that_fails():
    recorder = Recorder()
    with pytest.raises(ValueError, match="NaN"):
        updates().set_callbacks(recorder).fit(np.full_like(X, np.nan), Y == 1)
    assert recorder.told == ["setup", "begin", "teardown"]


class Failing(Recorder):
    """Fails at the end of a task of a given name."""

    def __init__(self, name, error):
        super().__init__()
        self.name, self.error = name, error

    def on_fit_task_end(self, estimator, context):
        if context.task_name == self.name or self.name is None:
            raise self.error


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
@pytest.mark.parametrize("name", [None, "fit"], ids=["within", "at the end"])
def test_a_fit_that_a_callback_breaks_off_leaves_no_trace(name, error):
    model = GreedySVC(gamma=1.0, max_visits=1).fit(X, Y)
    before, recorder = set(vars(model)), Failing(name, error)
    with pytest.raises(error):
        model.set_callbacks(recorder).fit(X[:, :2], Y)
    assert recorder.told == ["setup", "begin", "teardown"]
    assert set(vars(model)) == before | {"_skl_callbacks"}
    assert model.n_features_in_ == 4


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "estimator",
    [EnsembleSVC(max_time=0.05), GreedySVC(max_time=0.05), DiversifiedSVC(), ParzenClassifier()],
    ids=["EnsembleSVC", "GreedySVC", "DiversifiedSVC", "ParzenClassifier"],
)
def test_a_fit_is_one_task_whatever_it_fits_inside(estimator):
    recorder = Recorder()
    estimator.set_callbacks(recorder).fit(np.tile(X, (4, 1)), np.tile(Y, 4))
    assert recorder.told == WHOLE


BARS = {
    "EnsembleSVC": lambda: EnsembleSVC(),
    "GreedySVC": lambda: GreedySVC(),
    "MinimumEnclosingBall": lambda: MinimumEnclosingBall(),
    "pipeline": lambda: make_pipeline(StandardScaler(), GreedySVC()),
    "search": lambda: GridSearchCV(GreedySVC(max_visits=1), {"gamma": [0.1, 1.0]}, cv=2),
}


@pytest.mark.parametrize("name", BARS)
def test_progress_bars_of_scikit_learn_end_at_100_percent(name, capsys):
    BARS[name]().set_callbacks(callbacks.ProgressBar()).fit(X, Y)
    lines = capsys.readouterr().out.splitlines()
    assert lines
    assert all("100%" in line for line in lines)
