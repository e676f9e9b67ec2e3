"""``hardmargin compare``: classifiers side by side, and a report that a browser shows."""

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from problems.browser import overflow, screenshot
from problems.processes import CONTEXT, output_of
from problems.rivals import Broken, Grouped, Slow
from problems.tables import customers, write_customers

from hardmargin.cli import compare as comparing
from hardmargin.cli import main
from hardmargin.comparison import measure as measuring
from hardmargin.comparison import memory, rivals
from hardmargin.comparison.measure import (
    Measured,
    error_of,
    log_loss_of,
    make_splits,
    measure,
    prepare,
    reliability,
)
from hardmargin.comparison.page import html_report
from hardmargin.comparison.rivals import Rival, known_rivals

#: Takes the place of multiprocessing.
FORKED = SimpleNamespace(get_context=lambda _: CONTEXT)

TWO = ["--model", "EnsembleSVC", "--model", "logistic regression"]


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    """A folder with a table and its report, and what was measured, by name."""
    folder = tmp_path_factory.mktemp("compared")
    path = write_customers(folder)
    arguments = ["compare", str(path), "--target", "churn", *TWO]
    found = {}

    def measure_and_keep(rival, *rest, **options):
        found[rival.name] = measure(rival, *rest, **options)
        return found[rival.name]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(measuring, "multiprocessing", FORKED)
        patch.setattr(comparing, "measure", measure_and_keep)
        assert main([*arguments, "-o", str(folder / "report.html")]) == 0
    return folder, found


@pytest.fixture(scope="module")
def report(compared):
    return compared[0] / "report.html"


@pytest.fixture
def forked(monkeypatch):
    """Measure in forks: new processes would import all packages again."""
    monkeypatch.setattr(measuring, "multiprocessing", FORKED)


def measured(codes, right=0.9, name="some", is_ours=False, n_classes=2):
    rng = np.random.default_rng(0)
    chances = np.full((len(codes), n_classes), (1 - right) / (n_classes - 1))
    chances[np.arange(len(codes)), codes] = right
    wrong = rng.random(len(codes)) > right
    chances[wrong] = np.roll(chances[wrong], 1, axis=1)
    return Measured(
        name, is_ours, np.arange(len(codes)), chances.argmax(axis=1), chances, 1.0, 0.01, 10.0
    )


def test_the_report_has_every_part(report):
    page = report.read_text(encoding="utf-8")
    for text in (
        "EnsembleSVC",
        "logistic regression",
        "log-loss",
        "95 % intervals",
        "Are the probabilities honest?",
        "Which classes are confused",
        "Which columns move the decision",
        "What voted",
    ):
        assert text in page


def test_the_report_needs_no_other_file(report):
    page = report.read_text(encoding="utf-8")
    for text in ("http://", "https://", "<script", " src=", "<link"):
        assert text not in page


@pytest.mark.parametrize("width", [360, 1280])
def test_the_page_is_as_wide_as_its_window(report, tmp_path, width):
    assert overflow(tmp_path, report, width) <= 0


def test_the_page_follows_the_colours_of_the_system(report, tmp_path):
    for width in (420, 1280):
        light = screenshot(tmp_path, report, width)
        dark = screenshot(tmp_path, report, width, is_dark=True)
        assert light[:, :4].mean() > 0.9
        assert dark[:, :4].mean() < 0.2
        for picture in (light, dark):
            assert picture.std() > 0.03  # there is something on it


def test_machines_read_json(capsys, monkeypatch, tmp_path, compared):
    folder, known = compared
    # The same as for the report, which need not be measured again.
    monkeypatch.setattr(comparing, "measure", lambda rival, *_, **__: known[rival.name])
    arguments = ["compare", str(folder / "customers.csv"), "--target", "churn"]
    arguments += ["--model", "logistic regression"]
    assert main([*arguments, "-o", str(tmp_path / "r.html"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["models"][0]["model"] == "logistic regression"
    assert found["models"][0]["error"] < 0.4
    low, high = found["models"][0]["error_interval"]
    assert low < found["models"][0]["error"] < high


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--model", "ensemblesv"], "did you mean 'EnsembleSVC'"),
        (["--model", "tree of trees"], "there are EnsembleSVC, GreedySVC, SVC, logistic regr"),
        (["--target", "nothing"], "no column 'nothing'"),
    ],
)
def test_wrong_requests(capsys, tmp_path, arguments, message):
    path = write_customers(tmp_path)
    given = ["compare", str(path), "-o", str(tmp_path / "r.html"), "--target", "churn"]
    assert main([*given, *arguments]) == 2
    assert message in capsys.readouterr().err


def test_a_classifier_that_is_not_installed(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(rivals, "find_spec", lambda _: None)
    path = write_customers(tmp_path)
    arguments = ["--target", "churn", "--model", "LightGBM", "-o", str(tmp_path / "r.html")]
    assert main(["compare", str(path), *arguments]) == 2
    assert "LightGBM is not installed; pip install lightgbm." in capsys.readouterr().err


def test_imports_are_made_before_the_time_of_classifiers_begins(monkeypatch):
    asked = []
    monkeypatch.setattr(measuring, "multiprocessing", FORKED)
    monkeypatch.setattr(CONTEXT, "set_forkserver_preload", asked.append, raising=False)
    prepare(customers())
    prepare(customers()[["age"]])
    assert [("skrub" in modules) for modules in asked] == [True, False]


TAKES = """
import sys
import numpy as np
from hardmargin.comparison.memory import PeakMemory
large = np.ones(30_000_000)  # what this process had before does not count
del large
memory = PeakMemory()
taken = np.ones(int(sys.argv[1]))
del taken
print(memory.megabytes())
"""


def test_memory_is_what_a_process_takes_from_then_on():
    assert 75 < float(output_of(TAKES, "10000000")) < 100


def test_a_peak_that_is_not_known_is_no_number(monkeypatch):
    monkeypatch.setattr(memory, "FORGET", Path("/no/where"))
    monkeypatch.setattr(memory, "_of_usage", lambda: 100.0)
    assert memory.PeakMemory().megabytes() is None


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (["one"] * 240, "column 'household' puts all rows into one group"),
        (["one", None] * 120, "line 3, column 'household': it is empty"),
    ],
)
def test_groups_that_are_none(capsys, tmp_path, groups, message):
    path = tmp_path / "a.csv"
    customers()[:240].assign(household=groups).to_csv(path, index=False)
    arguments = ["--target", "churn", "--groups", "household", "-o", str(tmp_path / "r.html")]
    assert main(["compare", str(path), *arguments]) == 2
    assert message in capsys.readouterr().err


def test_a_report_is_not_replaced(capsys, report):
    path = report.parent / "customers.csv"
    assert main(["compare", str(path), "--target", "churn", "-o", str(report)]) == 2
    assert "exists; --force" in capsys.readouterr().err


def test_a_class_with_one_row(capsys, tmp_path):
    frame = customers().copy()
    frame.loc[0, "churn"] = "perhaps"
    frame.to_csv(tmp_path / "a.csv", index=False)
    arguments = ["compare", str(tmp_path / "a.csv"), "--target", "churn"]
    assert main([*arguments, "-o", str(tmp_path / "r.html")]) == 2
    assert "class 'perhaps' has a single row" in capsys.readouterr().err


# --- measuring ------------------------------------------------------------------------------------


CODES = np.tile([0, 1], 40)
ROWS = np.random.default_rng(0).normal(size=(80, 2)) + CODES[:, None]


def test_a_slow_rival_is_given_up(forked):
    found = measure(
        Rival("slow", Slow), ROWS, CODES, make_splits(CODES, None, 0), seed=0, max_seconds=1
    )
    assert not found.is_measured
    assert found.note == "longer than 1 s"


def test_a_broken_rival_says_why():
    # Here in a new process, as users have it.
    found = measure(
        Rival("broken", Broken), ROWS, CODES, make_splits(CODES, None, 0), seed=0, max_seconds=60
    )
    assert found.note == "ValueError: cannot do that"


def test_a_rival_on_a_sample_says_so(forked):
    logistic = next(r for r in known_rivals() if r.name == "logistic regression")
    rival = Rival("some", logistic.make, max_rows=30)
    found = measure(rival, ROWS, CODES, make_splits(CODES, None, 0), seed=0, max_seconds=60)
    assert found.note == "trained on 30 of 64 rows"
    assert sorted(found.rows) == list(range(80))


def test_many_rows_are_tested_once(monkeypatch):
    monkeypatch.setattr(measuring, "MAX_FOLDED_ROWS", 50)
    ((train, test),) = make_splits(CODES, None, 0)
    assert (len(train), len(test)) == (60, 20)


@pytest.mark.parametrize("most", [50, 500])
def test_groups_are_on_one_side(monkeypatch, most):
    monkeypatch.setattr(measuring, "MAX_FOLDED_ROWS", most)
    groups = np.arange(80) // 4
    for train, test in make_splits(CODES, groups, 0):
        assert not set(groups[train]) & set(groups[test])


def test_two_groups_are_too_few(capsys, forked, tmp_path):
    path = tmp_path / "a.csv"
    customers().assign(household=["one", "two"] * 120).to_csv(path, index=False)
    arguments = ["--target", "churn", "--groups", "household", "-o", str(tmp_path / "r.html")]
    assert main(["compare", str(path), *arguments, "--model", "GreedySVC"]) == 2
    assert "are a single group, so that none can be held out" in capsys.readouterr().err


def test_fewer_groups_than_folds(forked):
    groups = np.arange(80) // 30
    assert len(make_splits(CODES, groups, 0)) == 3
    ours = next(r for r in known_rivals() if r.name == "GreedySVC")
    splits = make_splits(CODES, groups, 0)
    found = measure(ours, ROWS, CODES, splits, groups=groups, seed=0, max_seconds=60)
    assert found.note == ""
    assert sorted(found.rows) == list(range(80))


def test_groups_reach_classifiers_of_ours(forked):
    groups = np.arange(80) // 20
    splits = make_splits(CODES, groups, 0)[:1]
    rival = Rival("grouped", Grouped, is_ours=True)
    found = measure(rival, ROWS, CODES, splits, groups=groups, seed=0, max_seconds=60)
    assert found.note.startswith("ValueError: 3 folds of groups [")


def test_intervals_contain_the_error():
    share, low, high = error_of(measured(CODES), CODES)
    assert 0 <= low < share < high <= 1


def test_the_loss_of_known_probabilities():
    sure = Measured("a", False, np.arange(80), CODES, np.eye(2)[CODES] * 0.5 + 0.25)
    assert log_loss_of(sure, CODES) == pytest.approx(-np.log(0.75))


def test_honest_probabilities_are_on_the_diagonal():
    rng = np.random.default_rng(0)
    chance = rng.random(20_000)
    codes = (rng.random(20_000) < chance).astype(int)
    chances = np.column_stack([1 - chance, chance])
    found = reliability(Measured("a", False, np.arange(20_000), codes, chances), codes)
    assert len(found) == 10
    for said, came_true, n in found:
        assert abs(said - came_true) < 4 * np.sqrt(0.25 / n)


def test_names_are_escaped():
    page = html_report("<b>", {"a": "<i>"}, [measured(CODES, name="<u>")], CODES, ["<x>", "y"])
    for name in "biux":
        assert f"<{name}>" not in page
        assert f"&lt;{name}&gt;" in page


def test_many_classes_have_a_page():
    codes = np.arange(300) % 30
    page = html_report(
        "many", {}, [measured(codes, n_classes=30)], codes, list(map(str, range(30)))
    )
    assert "The 12 most frequent of 30 classes" in page


def test_nothing_measured_has_a_page():
    page = html_report("none", {}, [Measured("a", True, note="longer than 1 s")], CODES, ["a", "b"])
    assert "No classifier could be measured" in page
    assert "longer than 1 s" in page
