"""Warnings point at the line that called the package, and can be held back."""

import warnings
from threading import Event, Thread

import numpy as np
import pytest

from hardmargin import GreedySVC, HardMarginSVC, MultiplicativeSVC, RhoEnsembleSVC, RhoSVC
from hardmargin.monitor import Monitor
from hardmargin.warn import held_back, warn_caller

SEPARATE = np.arange(6.0)[:, None]
MIXED = [0, 1, 0, 1, 0, 1]


@pytest.mark.parametrize(
    "estimator",
    [
        GreedySVC("scale", max_visits=1, max_stages=1),
        RhoEnsembleSVC(max_stages=1),
        RhoSVC(max_stages=1),
        HardMarginSVC(max_stages=1),
        MultiplicativeSVC(max_stages=1),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_a_warning_names_the_file_of_the_caller(estimator):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        estimator.fit(SEPARATE, MIXED)
    assert [warning.filename for warning in caught] == [__file__]


def test_a_plane_that_separates_nothing_is_not_blamed_on_tol():
    with pytest.warns(UserWarning, match="HardMarginSVC gets there faster"):
        MultiplicativeSVC(max_stages=1).fit(SEPARATE, MIXED)


# --- warnings that are held back -----------------------------------------------------------------


def test_warnings_are_held_back_until_the_end_of_the_block():
    with held_back() as held:
        warn_caller("first", UserWarning)
    assert held == [("first", UserWarning)]
    with pytest.warns(UserWarning, match="second"):
        warn_caller("second", UserWarning)


def test_a_block_within_another_holds_back_its_own():
    with held_back() as outer:
        with held_back() as inner:
            warn_caller("inner")
        warn_caller("outer")
    assert [[w.message for w in held] for held in (outer, inner)] == [["outer"], ["inner"]]


def test_an_error_ends_the_block():
    with pytest.raises(ZeroDivisionError), held_back():
        raise ZeroDivisionError
    with pytest.warns(UserWarning, match="after"):
        warn_caller("after", UserWarning)


def test_a_block_leaves_other_threads_and_the_filters_alone():
    is_open = Event()

    def warn_beside():
        is_open.wait(60)
        warn_caller("beside", UserWarning)

    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        filters, thread = list(warnings.filters), Thread(target=warn_beside)
        thread.start()
        with held_back() as held:
            is_open.set()
            thread.join()
            assert warnings.filters == filters
    assert [str(w.message) for w in shown] == ["beside"]
    assert held == []


def test_threads_of_a_monitor_hold_back_what_their_caller_does():
    def warn(_):
        warn_caller("beside")

    with held_back() as held:
        Monitor().each(lambda task, _: warn_caller(f"task {task}"), 2, 2)
        Monitor().both(lambda _: None, warn, 2)
    assert sorted(w.message for w in held) == ["beside", "task 0", "task 1"]
