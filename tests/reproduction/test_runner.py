"""Tasks run once, are kept when finished, and one that fails does not stop the others."""

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest
from problems.clock import Clock
from problems.reproduction_tasks import (
    NAME,
    broken,
    cut,
    interrupted_once,
    logged,
    number,
    part,
    undeclared,
    without_data,
)

from hardmargin.reproduction import runner
from hardmargin.reproduction.parts import Settings
from hardmargin.reproduction.runner import run, tasks_of


def numbers(outcomes):
    return {
        key: [(cell.place, cell.ours, cell.status) for cell in outcome.cells]
        for key, outcome in outcomes.items()
    }


def run_part(toy, tmp_path, settings=None, **options):
    return run([toy], settings or Settings(), out=tmp_path / "out", quiet=True, **options)


def test_cells_and_curves(tmp_path):
    outcomes = run_part(part(tmp_path, [number]), tmp_path)
    outcome = outcomes["toy/a"]
    assert [cell.place for cell in outcome.cells] == [(NAME, "a", "error"), (NAME, "a", "seconds")]
    assert [(cell.ours, cell.status) for cell in outcome.cells] == [(1.0, "ok"), (None, "missing")]
    assert outcome.curves[0].y == (1.0, 0.5)
    assert (outcome.status, outcome.failure) == ("ok", "")


def test_an_interrupted_run_continues_where_it_stopped(tmp_path):
    toy = part(tmp_path, [number, interrupted_once, number])
    with pytest.raises(KeyboardInterrupt):
        run_part(toy, tmp_path)
    assert logged(tmp_path) == ["a", "b"]
    outcomes = run_part(toy, tmp_path)
    assert logged(tmp_path) == ["a", "b", "b", "c"]
    assert numbers(outcomes) == numbers(run([toy], Settings(), quiet=True))


def test_kept_results_are_equal(tmp_path):
    toy = part(tmp_path, [number, cut])
    first, second = run_part(toy, tmp_path), run_part(toy, tmp_path)
    assert logged(tmp_path) == ["a", "b"]
    assert first == second


def test_nothing_is_kept_without_a_folder(tmp_path):
    toy = part(tmp_path, [number])
    for _ in range(2):
        run([toy], Settings(), quiet=True)
    assert logged(tmp_path) == ["a", "a"]
    assert not list(tmp_path.rglob("*.json"))


@pytest.mark.parametrize("settings", [Settings(quick=True), Settings(full=True), Settings(cut=1.0)])
def test_other_settings_are_measured_again(tmp_path, settings):
    toy = part(tmp_path, [number])
    run_part(toy, tmp_path)
    run_part(toy, tmp_path, settings)
    assert logged(tmp_path) == ["a", "a"]


def test_other_data_are_measured_again(tmp_path):
    toy, settings = part(tmp_path, [number]), Settings(str(tmp_path / "data"))
    (tmp_path / "data").mkdir()
    for text in ("1", "1", "22"):
        if not (file := tmp_path / "data" / "a.npz").exists() or file.read_text() != text:
            file.write_text(text)
        run_part(toy, tmp_path, settings)
    assert logged(tmp_path) == ["a", "a"]


@pytest.mark.parametrize(
    "text",
    ["", "{", "1.5", "[]", '"cells"', '{"cells": []}', json.dumps({"cells": [], "curves": 3})],
)
def test_damaged_results_are_measured_again(tmp_path, text):
    toy = part(tmp_path, [number])
    first = run_part(toy, tmp_path)
    (file,) = (tmp_path / "out" / "cells").iterdir()
    file.write_text(text)
    assert numbers(run_part(toy, tmp_path)) == numbers(first)
    assert logged(tmp_path) == ["a", "a"]


def test_what_fails_lacks_data_or_is_cut(tmp_path):
    toy = part(tmp_path, [broken, without_data, cut, undeclared, number])
    outcomes = run_part(toy, tmp_path)
    states = [outcome.status for outcome in outcomes.values()]
    assert states == ["failed", "no data", "cut", "failed", "ok"]
    # What was measured before the failure stays.
    assert [cell.status for cell in outcomes["toy/a"].cells] == ["ok", "failed"]
    assert outcomes["toy/a"].cells[1].reason.startswith("ZeroDivisionError: <b>nothing")
    assert {cell.status for cell in outcomes["toy/c"].cells} == {"cut"}
    assert "does not declare" in outcomes["toy/d"].failure
    # Those that failed or lacked data are tried again; the cut one took its time already.
    run_part(toy, tmp_path)
    assert sorted(logged(tmp_path)) == ["a", "a", "b", "b", "c", "e"]


def test_two_processes_give_the_same(tmp_path):
    functions = [number, broken, cut, number]
    one = run([part(tmp_path, functions)], Settings(), quiet=True)
    two = run_part(part(tmp_path, functions), tmp_path, n_jobs=2)
    assert numbers(two) == {key: numbers(one)[key] for key in two}
    assert len(two) == 4
    assert len(list((tmp_path / "out" / "cells").iterdir())) == 3


def test_parts_share_tasks(tmp_path):
    toys = [part(tmp_path, [number, number]), part(tmp_path, [number], name="toy-table2")]
    run(toys, Settings(), quiet=True)
    assert logged(tmp_path) == ["a", "b"]


def test_long_tasks_start_first(tmp_path):
    toy = part(tmp_path, [number, number])
    first, second = toy.tasks(Settings())
    toy = replace(toy, tasks=lambda settings: [first, replace(second, is_long=True)])
    run_part(toy, tmp_path)
    assert logged(tmp_path) == ["b", "a"]


def test_only_some_data_sets(tmp_path):
    toy, settings = part(tmp_path, [number, number]), Settings(only=("b",))
    assert [task.key for task in tasks_of(toy, settings)] == ["toy/b"]
    assert list(run([toy], settings, quiet=True)) == ["toy/b"]


@pytest.fixture
def _clock(monkeypatch):
    """Every task takes a second and a half."""
    monkeypatch.setattr(runner, "time", SimpleNamespace(monotonic=Clock(step=1.5)))


@pytest.mark.usefixtures("_clock")
def test_progress_in_lines(tmp_path, capsys):
    toy = part(tmp_path, [number, without_data])
    for remark in ("1.5 s", "kept from an earlier run"):
        run([toy], Settings(), out=tmp_path / "out")
        lines = capsys.readouterr().err.splitlines()
        assert lines == [
            f"[1/2] toy/a: {remark}",
            "[2/2] toy/b: 1.5 s, no data: no file 'x.npz'",
        ]


def test_another_source_of_the_package_is_measured_again(tmp_path, monkeypatch):
    toy = part(tmp_path, [number])
    run_part(toy, tmp_path)
    monkeypatch.setattr(runner, "_package", lambda: "another")
    run_part(toy, tmp_path)
    assert logged(tmp_path) == ["a", "a"]


@pytest.mark.usefixtures("_clock")
def test_quick_runs_do_not_tell_of_every_set_that_they_skip(tmp_path, capsys):
    toy = part(tmp_path, [number, without_data])
    run([toy], Settings(quick=True))
    assert "toy/b" not in capsys.readouterr().err
    run([toy], Settings())
    assert "toy/b: 1.5 s, no data: no file" in capsys.readouterr().err
