"""Tables 2 and 3 and Figure 1 of IJCAI-07 by one command, on a small folder of made-up data."""

import csv
import lzma
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from projection_problems import published

from hardmargin import ParzenClassifier, RhoSVC
from hardmargin.experiments.ijcai07 import DATA_SETS, main, measure, objective_curves

SUBSETS = ("a1a", "a2a", "a3a", "w1a")
IDA = ("breast_cancer", "diabetis", "german", "titanic", "waveform")
N_ROWS = 120


def write_libsvm(path: Path, width: int, rng: np.random.Generator) -> None:
    lines = []
    for _ in range(N_ROWS):
        columns = np.sort(rng.choice(width, 9, replace=False)) + 1
        label = "+1" if columns[0] < width // 12 else "-1"
        lines.append(" ".join([label, *(f"{column}:1" for column in columns)]))
    with lzma.open(path, "wt") as file:
        file.write("\n".join(lines) + "\n")


def two_classes(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    y = np.where(np.arange(60) % 2, 1, -1)
    return rng.normal(size=(60, 3)) + y[:, None], y


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files in the format of the real ones; the IDA sets have two realizations of 40 rows."""
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    for name, width in (("a9a", 123), ("a9a.t", 123), ("w8a", 300)):
        write_libsvm(folder / f"{name}.libsvm.xz", width, rng)
    masks = {name: np.packbits(rng.random(N_ROWS) < 0.5) for name in SUBSETS}
    np.savez_compressed(folder / "adult_web_subsets.npz", **masks)
    members = {}
    for name in IDA:
        X, y = two_classes(rng)
        orders = np.array([rng.permutation(60), rng.permutation(60)])
        members |= {f"{name}_X": X, f"{name}_y": y}
        members |= {f"{name}_train": orders[:, :40], f"{name}_test": orders[:, 40:]}
    np.savez_compressed(folder / "ida_benchmark.npz", **members)
    (X, y), (X_test, y_test) = two_classes(rng), two_classes(rng)
    np.savez_compressed(folder / "svmguide1.npz", Xtr=X, ytr=y, Xte=X_test, yte=y_test)
    return folder


def run(folder: Path, *options: str) -> int:
    return main(["--data-dir", str(folder), *options])


def cells(line: str) -> list[str]:
    return re.split(r"\s{2,}", line)


def test_all_data_sets_beside_the_paper(folder, capsys):
    assert run(folder) == 0
    errors, training, last = capsys.readouterr().out.split("\n\n")
    assert errors.startswith("Table 2")
    assert training.startswith("Table 3")
    for table in (errors, training):
        assert [cells(line)[0] for line in table.splitlines()[3:]] == list(DATA_SETS)
        assert "web2        data not available" in table
    for line in errors.splitlines()[3:]:
        name, *rest = cells(line)
        data_set = DATA_SETS[name]
        if data_set.file is None:
            continue
        ours, paper = rest[4], rest[6]
        assert paper == ("-" if data_set.paper.ensemble is None else f"{data_set.paper.ensemble}")
        if data_set.bar is None:
            assert rest[8:] == ["-", "no bar"]
        else:
            holds = "yes" if float(ours) <= data_set.bar else "no"
            assert rest[8:] == [f"{data_set.bar}", holds]
    assert last.strip() == f"{errors.count('   yes')} of 6 bars hold"


def test_columns_stand_below_each_other(folder, capsys):
    run(folder)
    errors = capsys.readouterr().out.split("\n\n")[0].splitlines()[2:]
    rows = [line for line in errors if "available" not in line]
    assert len({re.search(r"(yes|no|no bar|holds)$", row).start() for row in rows}) == 1
    assert max(map(len, rows)) < 120


def test_realisations_and_their_spread(folder, capsys):
    spreads = []
    for n in ("1", "2"):
        run(folder, "--only", "german,astro", "--realisations", n)
        lines = capsys.readouterr().out.splitlines()
        assert [cells(line)[0] for line in lines[3:5]] == ["german", "astro"]
        spreads.append(cells(lines[3])[6])
    assert spreads[0] == "-"
    assert float(spreads[1]) > 0


def test_one_split_against_the_estimators():
    rng = np.random.default_rng(3)
    (X, y), (X_test, y_test) = two_classes(rng), two_classes(rng)
    result = measure([(X, y, X_test, y_test)], n_iter=4.4)
    for model, error in (
        (ParzenClassifier(), result.parzen),
        (RhoSVC(), result.rho_svm),
        (published(4), result.ensemble_at),
        (published(), result.ensemble),
    ):
        assert error == pytest.approx(100 - 100 * model.fit(X, y).score(X_test, y_test))
    assert result.n_iter == model.n_iter_
    assert result.spread == 0


def test_figure_as_data(folder, tmp_path, capsys):
    out = tmp_path / "figure1.csv"
    assert run(folder, "--figure1", "--out", str(out)) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 + 2 * 5
    with out.open() as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["data_set", "method", "stage", "objective", "overshoots_next"]
    curves = {}
    for row in rows:
        curves.setdefault((row["data_set"], row["method"]), []).append(row)
    assert [cells(line)[0] for line in lines[2:]] == [name for name, _ in curves]
    for line, curve in zip(lines[2:], curves.values(), strict=True):
        assert [int(row["stage"]) for row in curve] == list(range(1, len(curve) + 1))
        assert not any(int(row["overshoots_next"]) for row in curve[:-1])
        overshoots = int(curve[-1]["overshoots_next"])
        assert line.endswith(f"after {len(curve)}" if overshoots else "no")


def test_curves_start_at_the_parzen_window_and_fall():
    X, y = two_classes(np.random.default_rng(5))
    curves = list(objective_curves(X, y))
    gamma = 1 / ((X - X.mean(axis=0)) ** 2).sum(axis=1).mean()
    distances = ((X[:, None] - X) ** 2).sum(axis=2)
    first = y @ np.exp(-gamma * distances) @ y / len(y) ** 2
    for curve in curves:
        assert curve.objectives[0] == pytest.approx(first)
        assert (np.diff(curve.objectives) <= 0).all()
    after_one = [curve.objectives[1] for curve in curves[1:]]
    assert after_one == sorted(after_one, reverse=True)
    assert any(curve.overshoots for curve in curves)


def test_the_module_is_a_command(folder):
    command = [sys.executable, "-W", "error", "-m", "hardmargin.experiments.ijcai07"]
    done = subprocess.run(
        [*command, "--data-dir", str(folder), "--only", "titanic"],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("of 1 bars hold\n")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--only", "titanic,iris"], "'iris' is none of cancer, diabetis, "),
        (["--realisations", "0"], "'0' is no positive number"),
        (["--out", "x.csv"], "--out is the file of --figure1; give both"),
    ],
)
def test_wrong_requests(folder, capsys, options, message):
    with pytest.raises(SystemExit) as exit_:
        run(folder, *options)
    assert exit_.value.code == 2
    assert message in capsys.readouterr().err


def test_missing_folder_and_file(tmp_path, capsys):
    for folder, message in (
        (tmp_path / "nowhere", "nowhere' is not a folder; give the one that"),
        (tmp_path, "has no file 'ida_benchmark.npz'"),
    ):
        with pytest.raises(SystemExit) as exit_:
            run(folder)
        assert exit_.value.code == 2
        assert message in capsys.readouterr().err
