"""The tool that counts what a fit goes through."""

import importlib.util
from pathlib import Path

import numpy as np

from hardmargin import ParzenClassifier

PATH = Path(__file__).parents[1] / "tools" / "trace_fit.py"
spec = importlib.util.spec_from_file_location("trace_fit", PATH)
trace_fit = importlib.util.module_from_spec(spec)
spec.loader.exec_module(trace_fit)


def test_a_switch_is_where_the_file_differs_from_the_one_before():
    calls = [("a.py", "f"), ("a.py", "g"), ("b.py", "h"), ("a.py", "k")]
    way = trace_fit.Way(calls, n_lines=9, depth=2)
    assert way.n_switches == 2
    assert way.by_file == [("a.py", ["f", "g"]), ("b.py", ["h"]), ("a.py", ["k"])]


def test_nothing_called_is_no_switch():
    assert trace_fit.way_of(lambda: None) == ([], 0, 0)
    assert trace_fit.way_of(lambda: None).n_switches == 0


def test_functions_are_in_the_order_of_their_first_calls():
    X = np.random.default_rng(0).normal(size=(20, 2))
    y = (X[:, 0] > 0).astype(int)
    way = trace_fit.way_of(lambda: [ParzenClassifier().fit(X, y) for _ in range(2)])
    names = [name for _, name in way.functions]
    assert len(set(way.functions)) == len(way.functions)
    assert names.index("ParzenClassifier.fit") < names.index("KernelEstimator._check_training")
    assert not any("__" in name or "<" in name for name in names)
    assert way.depth > 2
    assert way.n_lines > len(names)


def test_a_list_has_functions_below_their_files(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["trace_fit.py", "--list", "ParzenClassifier"])
    trace_fit.main()
    summary, *lines = capsys.readouterr().out.splitlines()
    assert summary.startswith("ParzenClassifier: ")
    files = [line for line in lines if not line.startswith("    ")]
    assert summary.endswith(f" {len(files) - 1} switches of file")
    assert lines.index("  estimators/parzen.py") < lines.index("    ParzenClassifier.fit")
