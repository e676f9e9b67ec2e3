"""The results of ESANN-99 by one command, on small problems in place of the paper's."""

import csv
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hardmargin import MultiplicativeSVC
from hardmargin.experiments import esann99
from hardmargin.experiments.esann99 import PROBLEMS, main, measure

SIZES = {"majority rule": (30, 40), "mirror symmetry": (30, 40), "sonar": (20, 20)}
SIZES["wisconsin"] = (40, 20)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few rows of every problem."""
    for name, (n_train, n_test) in SIZES.items():
        small = replace(PROBLEMS[name], n_train=n_train, n_test=n_test)
        monkeypatch.setitem(PROBLEMS, name, small)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files in the format of the real ones, class last: letters in sonar, numbers in wisconsin."""
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    for name, n_rows, classes, comma in (("sonar", 208, "RM", ", "), ("wisconsin", 683, "24", ",")):
        lines = []
        for i in range(n_rows):
            row = [f"{value:.3f}" for value in rng.normal(3 * (i % 2), 1.0, 5)]
            lines.append(comma.join([*row, classes[i % 2]]))
        (folder / f"{name}.dat").write_text("\n".join(lines) + "\n")
    return folder


def cells(line: str) -> list[str]:
    return re.split(r"\s{2,}", line)


def test_results_beside_the_paper(small, folder, capsys):
    assert main(["--data-dir", str(folder), "--seeds", "2"]) == 0
    results, margins, errors, _ = capsys.readouterr().out.rstrip("\n").split("\n\n")
    rows = [cells(line) for line in results.splitlines()[3:]]
    assert [row[0] for row in rows] == list(PROBLEMS)
    assert [row[3] for row in rows] == ["-", "4.55", "7.69", "4.44"]
    assert [row[5] for row in rows] == ["2", "-", "-", "1"]
    ours = [float(row[1].split(" +- ")[0]) for row in rows]
    for curve, error in zip(errors.splitlines()[2:], ours, strict=True):
        assert float(cells(curve)[-1]) == pytest.approx(error, abs=0.01)
    for curve in margins.splitlines()[2:]:
        assert float(cells(curve)[-1]) > 0


def test_curves_as_data(small, folder, tmp_path, capsys):
    out = tmp_path / "curves.csv"
    assert main(["--data-dir", str(folder), "--seeds", "2", "--out", str(out)]) == 0
    with out.open() as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["problem", "seed", "epoch", "margin", "test_error_percent"]
    curves = {}
    for row in rows:
        curves.setdefault((row["problem"], int(row["seed"])), []).append(row)
    assert list(curves) == [(name, seed) for name in PROBLEMS for seed in (0, 1)]
    for curve in curves.values():
        assert [int(row["epoch"]) for row in curve] == list(range(1, len(curve) + 1))


def test_one_run_against_the_estimator():
    rng = np.random.default_rng(1)
    y = np.where(np.arange(80) % 2, 1, -1)
    X = rng.normal(size=(80, 3)) + y[:, None]
    split = X[:40], y[:40], X[40:], y[40:]
    run = measure(split, sigma=0.5)
    model = MultiplicativeSVC(gamma=2.0).fit(*split[:2])
    assert len(run.errors) == len(run.margins) == model.n_iter_
    np.testing.assert_array_equal(run.margins, model.margin_path_)
    assert run.errors[-1] == pytest.approx(100 - 100 * model.score(*split[2:]))
    assert abs(run.errors[-1] - run.exact_error) <= 2.5
    assert run.separates is not None
    wrong = [(p != split[1]).sum() for p in model.staged_predict(split[0])]
    assert wrong[run.separates - 1] == 0
    assert all(wrong[: run.separates - 1])


def test_missing_data(small, tmp_path, monkeypatch, capsys):
    def missing(name: str) -> None:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(esann99.importlib, "import_module", missing)
    for options in (["--data-dir", str(tmp_path)], []):
        assert main(["--seeds", "1", *options]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert lines[5:7] == [f"{name:<16} data not available" for name in ("sonar", "wisconsin")]


@pytest.mark.parametrize(
    ("text", "message"),
    [("1,2,R\n3,4,M\n", "sonar has 2 rows; the paper's split needs 208"), ("1,?,R\n", "'?'")],
)
def test_damaged_data(tmp_path, monkeypatch, capsys, text, message):
    for name in ("majority rule", "mirror symmetry"):
        monkeypatch.delitem(PROBLEMS, name)
    (tmp_path / "sonar.dat").write_text(text)
    with pytest.raises(SystemExit) as exit_:
        main(["--data-dir", str(tmp_path)])
    assert exit_.value.code == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(("name", "shape"), [("sonar", (208, 60)), ("wisconsin", (683, 9))])
def test_real_data(name, shape):
    X, y = esann99._read(name, None)
    assert X.shape == shape
    assert set(y) == {-1, 1}


def test_the_module_is_a_command(folder):
    # The real sizes, once.
    command = [sys.executable, "-W", "error", "-m", "hardmargin.experiments.esann99"]
    done = subprocess.run(
        [*command, "--data-dir", str(folder), "--seeds", "1"],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Means over 1 draws\n")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--seeds", "none"], "'none' is no positive number"),
        (["--data-dir", "nowhere"], "data_dir='nowhere' is not a folder"),
    ],
)
def test_wrong_requests(capsys, options, message):
    with pytest.raises(SystemExit) as exit_:
        main(options)
    assert exit_.value.code == 2
    assert message in capsys.readouterr().err
