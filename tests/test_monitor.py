"""The monitor of a fit: limits, listeners, parts, tasks on threads, and progress."""

import threading

import numpy as np
import pytest
from problems.clock import Clock, set_clock
from problems.two_class import KERNELS, mixed, small, solve

from hardmargin import GreedySVC, progress
from hardmargin.checkpoint import Checkpoint
from hardmargin.monitor import Event, Monitor, Stopped
from hardmargin.progress import progress_lines

# --- limits --------------------------------------------------------------------------------------


def test_without_a_limit_it_goes_on():
    monitor = Monitor()
    assert monitor.seconds_left == np.inf
    assert monitor.go_on(10**9, 0.5)
    monitor.check()


def test_a_limit_counts_from_the_start():
    clock = Clock()
    clock.now = 100.0
    monitor = Monitor(10.0, clock=clock)
    clock.now = 104.0
    assert monitor.seconds_left == 6.0
    assert monitor.go_on(1, 0.5)


@pytest.mark.parametrize("now", [10.0, 11.0, 1e9])
def test_no_time_left(now):
    clock = Clock()
    monitor = Monitor(10.0, clock=clock)
    clock.now = now
    assert monitor.seconds_left == 0.0
    assert not monitor.go_on(1, 0.5)
    assert monitor.stop_reason == "max_time"
    with pytest.raises(Stopped):
        monitor.check()


def test_a_report_does_not_look_at_the_limit():
    clock = Clock()
    monitor = Monitor(1.0, clock=clock)
    clock.now = 2.0
    assert monitor.report(0, 1, 0.5)


def test_the_usual_clock_is_looked_up_by_every_fit(monkeypatch):
    clock = Clock()
    set_clock(monkeypatch, clock)
    monitor = Monitor(1.0)
    clock.now = 0.25
    assert monitor.seconds_left == 0.75


# --- listeners -----------------------------------------------------------------------------------


def test_listeners_hear_every_stage():
    clock, heard = Clock(), []
    monitor = Monitor(listeners=[heard.append], clock=clock).part("loss", n_machines=3)
    clock.now = 1.5
    monitor.go_on(4, 0.25)
    monitor.report(2, 7, 0.125, "gamma 3")
    assert heard == [
        Event("loss", 4, 0.25, 0, 3, 1.5),
        Event("loss", 7, 0.125, 2, 3, 1.5, "gamma 3", seconds_left=0.75),
    ]


def test_a_listener_ends_the_fit():
    monitor = Monitor(listeners=[lambda event: event.stage == 2])
    assert [monitor.go_on(stage, 0.5) for stage in range(4)] == [True, True, False, False]
    assert monitor.stop_reason == "callback"
    assert monitor.seconds_left == 0.0
    with pytest.raises(Stopped):
        monitor.check()


def test_all_listeners_hear_of_the_end():
    heard = []
    monitor = Monitor(listeners=[lambda event: True, heard.append])
    assert not monitor.report(0, 1, 0.5)
    assert len(heard) == 1


def test_a_listener_that_stops_a_fit_is_the_reason_even_out_of_time():
    clock = Clock()
    monitor = Monitor(1.0, [lambda event: True], clock=clock)
    clock.now = 2.0
    assert not monitor.go_on(1, 0.5)
    assert monitor.stop_reason == "callback"


@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt])
def test_what_a_listener_raises_comes_out(error):
    def listener(event):
        raise error

    with pytest.raises(error):
        Monitor(listeners=[listener]).go_on(1, 0.5)


# --- parts ---------------------------------------------------------------------------------------


def test_a_part_has_the_limit_of_the_whole():
    clock = Clock()
    whole = Monitor(10.0, clock=clock)
    clock.now = 4.0
    assert whole.part("loss").seconds_left == 6.0


def test_a_share_is_of_the_time_left():
    clock = Clock()
    whole = Monitor(10.0, clock=clock)
    clock.now = 4.0
    part = whole.part(share=0.5)
    assert part.seconds_left == 3.0
    clock.now = 7.5
    assert (part.seconds_left, whole.seconds_left) == (0.0, 2.5)
    assert not part.go_on(1, 0.5)
    assert part.stop_reason == "max_time"
    assert whole.go_on(1, 0.5)


def test_parts_of_an_undivided_monitor_share_all_of_the_time():
    clock = Clock()
    whole = Monitor(10.0, clock=clock)
    undivided = whole.undivided()
    clock.now = 4.0
    assert undivided.part(share=0.5).part(share=0.1).seconds_left == 6.0
    assert whole.part(share=0.5).seconds_left == 3.0
    clock.now = 10.0
    assert undivided.seconds_left == 0.0


def test_a_share_of_no_limit_is_no_limit():
    assert Monitor().part(share=0.5).seconds_left == np.inf


def test_a_listener_of_a_part_ends_the_whole():
    whole = Monitor(listeners=[lambda event: event.what == "loss"])
    part, other = whole.part("loss"), whole.part("gap")
    assert other.go_on(1, 0.5)
    assert not part.go_on(1, 0.5)
    for monitor in (whole, other, whole.part(), part.part()):
        assert monitor.seconds_left == 0.0
        assert monitor.stop_reason == "callback"


def test_a_part_keeps_the_names_it_is_not_given():
    heard = []
    whole = Monitor(listeners=[heard.append]).part("loss", n_machines=3)
    whole.part(share=0.5).report(0, 1, 0.5)
    assert (heard[0].what, heard[0].n_machines) == ("loss", 3)


# --- tasks ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_threads", [1, 2, 5])
def test_tasks_return_in_order(n_threads):
    assert Monitor().each(lambda task, monitor: task**2, 4, n_threads) == [0, 1, 4, 9]


def test_no_tasks_return_nothing():
    assert Monitor().each(lambda task, monitor: task, 0, 2) == []


def test_tasks_report_how_many_are_done():
    heard = []
    monitor = Monitor(listeners=[heard.append])
    monitor.each(lambda task, tasks: tasks.go_on(1, 0.5), 3)
    assert [event.machine for event in heard] == [0, 1, 2]


def test_no_task_on_threads_is_left_out_of_the_count():
    heard, parts = [], []
    monitor = Monitor(listeners=[heard.append])
    monitor.each(lambda task, tasks: parts.append(tasks), 2_000, 8)
    parts[0].go_on(1, 0.5)
    assert heard[-1].machine == 2_000


@pytest.mark.parametrize("failing", [0, 1])
@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt, Stopped])
def test_a_task_that_fails_ends_the_others(failing, error):
    both_run = threading.Barrier(2, timeout=60)

    def function(task, monitor):
        both_run.wait()
        if task == failing:
            raise error
        while monitor.go_on(1, 0.5):
            pass

    monitor = Monitor()
    with pytest.raises(error):
        monitor.each(function, 2, 2)
    assert monitor.go_on(1, 0.5)  # after catching it, the caller may go on


def test_tasks_that_wait_for_a_thread_are_not_begun_after_a_failure():
    begun = []

    def function(task, monitor):
        begun.append(task)
        if task == 0:
            raise ZeroDivisionError
        while monitor.go_on(1, 0.5):
            pass

    with pytest.raises(ZeroDivisionError):
        Monitor().each(function, 50, 2)
    assert len(begun) < 50


@pytest.mark.parametrize("n_threads", [1, 2])
def test_two_functions_return_both_results(n_threads):
    found = Monitor().both(lambda _: "here", lambda _: "beside", n_threads)
    assert found == ("here", "beside")


def test_the_first_of_two_functions_stays_on_its_thread():
    def thread(_):
        return threading.get_ident()

    here, beside = Monitor().both(thread, thread, 2)
    assert here == threading.get_ident() != beside


def test_a_function_that_fails_ends_the_one_beside():
    has_begun, seen = threading.Event(), []

    def fail(_):
        has_begun.wait(10)
        raise KeyboardInterrupt

    def wait(monitor):
        has_begun.set()
        while not seen:
            if monitor.seconds_left == 0:
                seen.append("ended")

    monitor = Monitor(60.0)
    with pytest.raises(KeyboardInterrupt):
        monitor.both(fail, wait, 2)
    assert seen == ["ended"]
    assert monitor.seconds_left > 0


def test_what_fails_beside_comes_out():
    def fail(_):
        raise OSError("no rows")

    with pytest.raises(OSError, match="no rows"):
        Monitor().both(lambda _: None, fail, 2)


@pytest.mark.parametrize("n_threads", [1, 2])
def test_a_listener_ends_all_tasks(n_threads):
    monitor = Monitor(listeners=[lambda event: event.stage == 3])

    def count(task, tasks):
        stage = 0
        while tasks.go_on(stage, 0.5):
            stage += 1
        return stage

    assert max(monitor.each(count, 2, n_threads)) <= 3
    assert monitor.stop_reason == "callback"


# --- progress lines ------------------------------------------------------------------------------


def printed(capsys, verbose, *events):
    listener = progress_lines("GreedySVC", verbose)
    for event in events:
        listener(event)
    return capsys.readouterr().out.splitlines()


def test_a_line_says_how_far_a_fit_is(capsys):
    [line] = printed(capsys, 1, Event("largest open step", 12_345, 0.01234, 0, 1, 3.2))
    assert line == "[GreedySVC] 3 s: stage 12,345, largest open step 0.0123"


def test_a_line_counts_the_machines(capsys):
    [line] = printed(capsys, 1, Event("gap", 7, 0.5, 1, 3, 3.0))
    assert line == "[GreedySVC] 3 s: machine 2 of 3, stage 7, gap 0.5"


@pytest.mark.parametrize(("verbose", "expected"), [(1, [1, 2, 3, 4, 5, 6]), (0.5, [2, 4, 6])])
def test_lines_come_every_second_or_as_often_as_asked(capsys, verbose, expected):
    events = [Event("gap", 1, 0.5, 0, 1, tenth / 10) for tenth in range(70)]
    lines = printed(capsys, verbose, *events)
    assert [int(line.split()[1]) for line in lines] == expected


def test_short_fits_are_silent(capsys):
    early, first = Event("gap", 5, 0.5, 0, 1, 0.9), Event("gap", 0, 0.5, 0, 1, 5.0)
    assert printed(capsys, 1, early, first) == []


def test_what_is_tried_is_always_printed(capsys):
    [line] = printed(capsys, 1, Event("log-loss", 1, 0.5, 0, 3, 0.1, "choosing gamma 3"))
    assert line == "[GreedySVC] 0 s: choosing gamma 3, log-loss 0.5"


# --- with a compiled solver ----------------------------------------------------------------------


def test_a_solver_says_that_a_listener_stopped_it():
    monitor = Monitor(listeners=[lambda event: True])
    monitor.report(0, 0, 0.0)
    solution = solve(KERNELS["rbf"], *mixed(), monitor=monitor)
    assert solution.stop_reason == "callback"
    assert solution.n_stages < len(mixed()[1]) / 2


def test_a_solver_without_a_listener_is_the_same():
    heard, plain = (
        solve(KERNELS["rbf"], *small(), monitor=monitor)
        for monitor in (Monitor(1000.0, [lambda event: None]), None)
    )
    np.testing.assert_array_equal(heard.history["step"], plain.history["step"])


def test_an_estimator_out_of_time_keeps_what_it_chose(monkeypatch):
    clock = Clock()

    def candidates_take_long(event):
        clock.now += 10.0 if event.detail else 0.0

    set_clock(monkeypatch, clock)
    monkeypatch.setattr(progress, "progress_lines", lambda *_: candidates_take_long)
    X, y = small()
    with pytest.warns(UserWarning, match="ended early, by max_time"):
        model = GreedySVC(max_time=150.0, verbose=1, random_state=0).fit(X, y)
    assert len(model.cv_results_["gamma"]) > 1
    assert np.isfinite(model.predict_proba(X)).all()


def test_once_a_step_was_cut_short_no_later_step_is_kept_or_read(tmp_path):
    def steps(monitor, clock=None):
        monitor.checkpoint = Checkpoint(tmp_path / "steps", "this fit")
        part = monitor.part(share=0.5)
        found = [part.once("first", lambda: clock and setattr(clock, "now", 6.0))]
        found.append(monitor.once("second", lambda: "of a short first" if clock else "whole"))
        monitor.checkpoint.write()
        return found, monitor.was_cut_short

    clock = Clock()
    assert steps(Monitor(10.0, clock=clock), clock) == ([None, "of a short first"], True)
    assert steps(Monitor()) == ([None, "whole"], False)
    assert steps(Monitor(10.0, clock=(clock := Clock())), clock) == ([None, "whole"], False)


def test_a_fit_within_a_fit_keeps_no_steps(tmp_path):
    monitor = Monitor(10.0, clock=(clock := Clock()))
    monitor.checkpoint = Checkpoint(tmp_path / "steps", "this fit")
    some = monitor.without_checkpoint()
    some.part(share=0.5).once("a step", lambda: setattr(clock, "now", 6.0))
    assert not monitor.knows("a step")
    assert not monitor.was_cut_short
    assert some.was_cut_short
