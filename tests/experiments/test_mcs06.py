"""Tables and figures of MCS-06 by one command, on few rows of scikit-learn's digits."""

import csv
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_iris
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from hardmargin import CoreVectorSVC, MarginDiscriminantAnalysis
from hardmargin.experiments import mcs06
from hardmargin.experiments.bagged import BaggedSVC
from hardmargin.experiments.mcs06 import Machines, error_above, main, noisy, train_machines
from hardmargin.experiments.mcs06_report import PARTS, TABLE_2, TABLE_3, Cell, print_parts


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few rows and short figures."""
    monkeypatch.setattr(mcs06, "QUICK_ROWS", (120, 80))
    monkeypatch.setattr(mcs06, "FIGURE_1_SIZES", (1, 2, 3))
    monkeypatch.setattr(mcs06, "FIGURE_2_SIGMAS", (0.0, 1.0))


@pytest.fixture(scope="module")
def digits() -> tuple:
    X, y = load_digits(n_class=4, return_X_y=True)
    scaler = StandardScaler().fit(X[:150])
    return scaler.transform(X[:150]), y[:150], scaler.transform(X[150:250]), y[150:250]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files in the format of the real ones, each with other rows of the digits."""
    folder = tmp_path_factory.mktemp("data")
    X, y = load_digits(return_X_y=True)
    for i, name in enumerate(("optdigits", "satimage", "pendigits", "letter", "mnist")):
        rows = slice(150 * i, 150 * i + 150)
        its, labels = X[rows], y[rows]
        split = {"Xtr": its[:100], "ytr": labels[:100], "Xte": its[100:], "yte": labels[100:]}
        np.savez(folder / f"{name}.npz", X=its, y=labels, **split)
    return folder


def cells(line: str) -> list[str]:
    return re.split(r"\s{2,}", line)


def parts_of(output: str) -> dict[str, list[str]]:
    """Split into the progress and the lines of every part, by its title."""
    blocks = output.rstrip("\n").split("\n\n")
    parts = {"progress": blocks[0].splitlines()}
    for block in blocks[1:]:
        title, *lines = block.splitlines()
        parts[title.split(":")[0]] = lines
    return parts


def test_all_parts_on_few_rows(tmp_path, capsys):
    out = tmp_path / "cells.csv"
    options = ["--quick", "--sizes", "1,2", "--figures", "1,2,3", "--out", str(out)]
    assert main([*options, "--final", "svm,mlp,vote"]) == 0
    parts = parts_of(capsys.readouterr().out)
    assert list(parts) == ["progress", *PARTS]
    with out.open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(parts["progress"])

    n_lines = {"Table 2": 2 + 3 * 3, "Table 3": 3, "Figure 1": 3, "Figure 2": 3, "Figure 3": 3}
    for part, n in n_lines.items():
        assert sum(line.startswith("digits") for line in parts[part]) == n, part
    by_line = {}
    for row in rows:
        by_line.setdefault((row["part"], row["base"], row["final"]), []).append(row)
    # The table's line of the same numbers.
    (line,) = (line for line in parts["Table 2"] if re.match("digits +orthogonal CVM +SVM", line))
    numbers = [f"{float(row['ours']):.2f}" for row in by_line["Table 2", "core", "svm"]]
    assert line.split()[4::3][:2] == numbers
    # Figure 1 and Table 2 have the same network, and no noise is the same as none.
    curve = {row["n_per_class"]: row["ours"] for row in by_line["Figure 1", "core", "mlp"]}
    assert list(curve) == ["1", "2", "3"]
    for row in by_line["Table 2", "core", "mlp"]:
        assert curve[row["n_per_class"]] == row["ours"]
    for base in ("none", "bagged", "core"):
        noise = by_line["Figure 2", base, "svm"]
        assert [row["sigma"] for row in noise] == ["0", "1"]
        assert noise[0]["ours"] == by_line["Table 2", base, "svm"][-1]["ours"]
        assert float(noise[1]["ours"]) > float(noise[0]["ours"])
    assert [row["n_per_class"] for row in by_line["Figure 3, training", "core", ""]] == list("123")
    assert all(row["paper"] == "" for row in rows)
    assert "0 of 0 bars hold" in parts["Table 2"][-2]


@pytest.mark.parametrize("base", ["core", "bagged"])
def test_the_first_machines_are_those_of_a_smaller_size(digits, base):
    many, few = train_machines(base, digits, 3), train_machines(base, digits, 2)
    kept = many.first(2)
    assert kept.train.shape == (150, 8)
    np.testing.assert_allclose(kept.train, few.train, atol=1e-9)
    np.testing.assert_allclose(kept.test, few.test, atol=1e-9)
    np.testing.assert_allclose(kept.intercepts, few.intercepts, atol=1e-9)
    for name in ("classes", "n_support"):
        np.testing.assert_array_equal(getattr(kept, name), getattr(few, name))
    for c in range(4):
        assert (kept.classes == c).sum() == 2


def test_machines_against_the_estimators(digits):
    X, y, X_test, y_test = digits
    machines = train_machines("core", digits, 2)
    model = MarginDiscriminantAnalysis(2, random_state=0).fit(X, y)
    np.testing.assert_allclose(machines.test, model.transform(X_test))
    assert machines.n_support.tolist() == [np.count_nonzero(row) for row in model.directions_]
    assert machines.n_evaluations == model.n_kernel_evaluations_.mean()
    assert machines.seconds > 0

    deviations = machines.train.std(axis=0)
    Z, Z_test = machines.train / deviations, machines.test / deviations
    distances = ((Z[:, None] - Z[None]) ** 2).sum(axis=2)
    svm = SVC(C=1, gamma=1 / distances.mean()).fit(Z, y)
    assert error_above("svm", machines, digits) == pytest.approx(
        100 - 100 * svm.score(Z_test, y_test)
    )
    cvm = CoreVectorSVC(random_state=0).fit(Z, y)
    assert error_above("cvm", machines, digits) == pytest.approx(
        100 - 100 * cvm.score(Z_test, y_test)
    )
    # Few rows are few steps in an epoch: chance is 75 %.
    assert error_above("mlp", machines, digits) < 50


def test_bagged_machines_are_decision_values(digits):
    X, y, X_test, _ = digits
    machines = train_machines("bagged", digits, 2)
    bag = BaggedSVC(2, random_state=0).fit_machines(X, y)
    np.testing.assert_array_equal(machines.test, bag.transform(X_test))
    assert machines.n_support[5] == len(bag.estimators_[2].estimators_[1].support_)
    np.testing.assert_array_equal(machines.first(1).test, train_machines("bagged", digits, 1).test)


def test_majority_vote():
    # Three classes of two machines: 1 wins by votes, then 2 and 0 by their mean outputs.
    outputs = np.array(
        [
            [9.0, -1, 1, 1, -1, -1],
            [-1.0, -1, -1, -2, -0.1, -1],
            [3.0, 1, 1, 1, -1, 1],
        ]
    )
    machines = Machines(
        *(outputs, outputs - 1, np.ones(6), np.repeat([0, 1, 2], 2), np.ones(6), None, 0.0)
    )
    split = None, np.array([0, 1, 2]), None, np.array([1, 2, 0])
    assert error_above("vote", machines, split) == 0


def test_vote_of_two_classes():
    X, y = load_iris(return_X_y=True)
    X, y = X[:100], y[:100]
    for base in ("core", "bagged"):
        machines = train_machines(base, (X, y, X, y), 1)
        assert machines.test.shape == (100, 1)
        assert error_above("vote", machines, (X, y, X, y)) == 0


def test_noise_is_on_all_rows(digits):
    once, twice = noisy(digits, 1.0), noisy(digits, 2.0)
    for i in (0, 2):
        noise = once[i] - digits[i]
        np.testing.assert_allclose(twice[i] - digits[i], 2 * noise)
        assert abs(noise.std() - 1) < 0.05
        assert abs(noise.mean()) < 0.05
        np.testing.assert_array_equal(noisy(digits, 0.0)[i], digits[i])
    assert not np.allclose(once[0][:100] - digits[0][:100], once[2] - digits[2])


@pytest.mark.parametrize("base", ["core", "bagged"])
def test_what_takes_too_long_is_cut(tmp_path, capsys, base):
    out = tmp_path / "cells.csv"
    options = ["--quick", "--base", base, "--final", "svm", "--cut", "1e-9"]
    assert main([*options, "--figures", "1,2,3", "--out", str(out)]) == 0
    parts = parts_of(capsys.readouterr().out)
    for part in ("Table 2", "Table 3", "Figure 1", "Figure 2", "Figure 3"):
        (line,) = (line for line in parts[part] if line.startswith("digits"))
        shown = {mcs06.BASES[base], ">"} | ({"SVM"} if part == "Table 2" else set())
        assert set(cells(line)[1:]) - {"no bar", "-"} == shown, part
    with out.open() as file:
        assert {row["ours"] for row in csv.DictReader(file)} == {">"}


def test_sizes_up_to_the_cut_are_shown(monkeypatch, capsys):
    def slow(base, split, size, **options):
        tried.append(size)
        return train_machines(base, split, size, **options) if size < 3 else None

    tried = []
    monkeypatch.setattr(mcs06, "train_machines", slow)
    options = ["--quick", "--base", "core", "--final", "svm", "--sizes", "1,2,3,4"]
    assert main(options) == 0
    parts = parts_of(capsys.readouterr().out)
    assert tried == [1, 2, 3]
    for part, first, step in (("Table 2", 4, 3), ("Table 3", 3, 2), ("Figure 3", 3, 1)):
        (line,) = (line for line in parts[part] if line.startswith("digits"))
        ours = line.split()[first::step]
        assert [number == ">" for number in ours[:4]] == [False, False, True, True], part


@pytest.mark.parametrize(
    ("error", "is_cut"),
    [
        (MemoryError(), True),
        (ValueError("memory_limit leaves 1 GB"), True),
        (ValueError("y has 1 class"), False),
    ],
)
def test_too_little_memory_is_a_cut(monkeypatch, digits, error, is_cut):
    def fit(*_):
        raise error

    monkeypatch.setattr(MarginDiscriminantAnalysis, "fit", fit)
    if is_cut:
        assert train_machines("core", digits, 1) is None
    else:
        with pytest.raises(ValueError, match="1 class"):
            train_machines("core", digits, 1)


def test_one_training_without_table_3(monkeypatch, capsys):
    def counted(base, split, size, **options):
        sizes.append(size)
        return train_machines(base, split, size, **options)

    sizes = []
    monkeypatch.setattr(mcs06, "train_machines", counted)
    options = ["--quick", "--base", "core", "--final", "vote", "--tables", "2"]
    main([*options, "--sizes", "1,2", "--figures", "none"])
    assert sizes == [2]
    assert list(parts_of(capsys.readouterr().out)) == ["progress", "Table 2"]


def test_data_of_a_folder(folder, capsys):
    options = ["--data-dir", str(folder), "--final", "svm", "--sizes", "1", "--base", "core,none"]
    assert main(options) == 0
    parts = parts_of(capsys.readouterr().out)
    for part, n in (("Table 2", 2), ("Table 3", 1), ("Figure 3", 1)):
        lines = [line for line in parts[part] if "data not available" not in line]
        for name in ("optdigits", "satimage", "pendigits", "letters"):
            assert sum(line.startswith(name) for line in lines) == n
        for name in ("usps", "face"):
            assert f"{name:<10}data not available" in parts[part]
    # mnist is on request only.
    assert not any("mnist" in line for lines in parts.values() for line in lines)
    assert "of 4 bars hold" in parts["Table 2"][-2]
    assert len({len(line) for line in parts["Table 3"] if "orthogonal" in line}) == 1


def test_missing_data_only(folder, capsys):
    assert main(["--data-dir", str(folder), "--only", "usps", "--figures", "1"]) == 0
    parts = parts_of("\n" + capsys.readouterr().out)
    for part in ("Table 2", "Table 3", "Figure 1"):
        assert parts[part][0] == "usps      data not available"


@pytest.mark.parametrize(
    ("name", "n_train", "std"), [("letters", 120, 1.0), ("mnist", 100, 6 / 255)]
)
def test_splits_and_scales(folder, name, n_train, std):
    split = mcs06._splits([name], folder)[name]
    X, _, X_test, _ = mcs06._scaled(name, split)
    assert len(X) == n_train
    varying = X[:, X.std(axis=0) > 0] if name == "letters" else X
    assert varying.std() == pytest.approx(std, rel=0.05)
    assert len(X_test) == 150 - n_train


def test_small_sets_only_in_figures_1_and_2(folder, capsys):
    options = ["--data-dir", str(folder), "--only", "satimage,letters", "--base", "core,none"]
    assert main([*options, "--tables", "none", "--figures", "1,2", "--sizes", "1"]) == 0
    parts = parts_of(capsys.readouterr().out)
    assert list(parts) == ["progress", "Figure 1", "Figure 2"]
    for lines in parts.values():
        assert not any(line.startswith("letters") for line in lines)
        assert any(line.startswith("satimage") for line in lines)


@pytest.mark.parametrize(
    ("name", "base", "final", "size", "error", "holds"),
    [
        ("optdigits", "core", "svm", 1, 3.29, True),
        ("optdigits", "core", "svm", 1, 3.3, False),
        ("optdigits", "core", "svm", 1, 2.48, False),
        ("optdigits", "core", "svm", 5, 2.9, None),
        ("satimage", "core", "svm", 3, 9.55, True),
        ("pendigits", "core", "svm", 3, 2.58, False),
        ("pendigits", "exact", "svm", 3, 2.58, None),
        ("pendigits", "core", "cvm", 3, 2.58, None),
        ("letters", "core", "svm", 1, 0.1, True),
        ("letters", "core", "svm", 1, None, False),
        ("letters", "core", "svm", 3, 9.0, None),
        ("digits", "core", "svm", 1, 9.0, None),
    ],
)
def test_bars(name, base, final, size, error, holds):
    assert Cell("Table 2", name, base, final, size, error).holds is holds


def test_verdicts_of_lines(capsys):
    errors = {"optdigits": (2.9, 2.9), "satimage": (11.0, 9.9), "letters": (7.0, 7.0)}
    its = [
        Cell("Table 2", name, "core", "svm", size, error)
        for name, pair in errors.items()
        for size, error in zip((1, 3), pair, strict=True)
    ]
    its.append(Cell("Table 2", "letters", "none", "svm", 0, 9.05))
    print_parts(["Table 2"], its, [])
    lines = parts_of("\n" + capsys.readouterr().out)["Table 2"][2:]
    assert [cells(line)[-1] for line in lines[:4]] == ["yes", "no: Nc", "no: Nc", "no bar"]
    assert lines[0].split()[4:10] == ["2.90", "2.84", "+0.06", "2.90", "2.90", "+0.00"]
    assert lines[3].split()[4:7] == ["9.05", "9.05", "+0.00"]
    assert lines[4].startswith("3 of 5 bars hold")


def test_numbers_of_the_paper():
    for numbers in (*TABLE_2.values(), *TABLE_3.values()):
        assert all(len(columns) == 7 for columns in numbers.values())
    for name, base, final, size, paper in (
        ("optdigits", "none", "mlp", 0, 5.63),
        ("letters", "exact", "cvm", 5, 5.78),
        ("mnist", "core", "svm", 5, 4.08),
        ("face", "core", "mlp", 3, 1.61),
        ("pendigits", "bagged", "vote", 1, 4.18),
        ("usps", "bagged", "vote", 1, None),
        ("letters", "core", "vote", 1, None),
        ("letters", "core", "svm", 2, None),
    ):
        assert Cell("Table 2", name, base, final, size, 0.0).paper == paper
    assert Cell("Table 3", "letters", "exact", "", 3, 0.0).paper == 9_646
    assert Cell("Figure 3", "letters", "exact", "", 3, 0.0).paper is None


def test_the_module_is_a_command():
    command = [sys.executable, "-W", "error", "-m", "hardmargin.experiments.mcs06", "--quick"]
    done = subprocess.run(
        [*command, "--base", "core,none", "--final", "svm", "--sizes", "1"],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("digits, Table 2, no base, SVM: ")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "give one of --data-dir and --quick"),
        (["--quick", "--data-dir", "x"], "give one of --data-dir and --quick"),
        (["--data-dir", "nowhere"], "data_dir='nowhere' is not a folder"),
        (["--quick", "--only", "digits"], "'digits' is none of optdigits, "),
        (["--quick", "--base", "core,cvm"], "'cvm' is none of none, exact, core, bagged"),
        (["--quick", "--final", "ann"], "'ann' is none of svm, mlp, cvm, vote"),
        (["--quick", "--tables", "1"], "'1' is none of 2, 3"),
        (["--quick", "--figures", "4"], "'4' is none of 1, 2, 3"),
        (["--quick", "--sizes", "0"], "'0' is no list such as 1,3"),
        (["--quick", "--cut", "soon"], "'soon' is no positive number"),
        (["--quick", "--out", "nowhere/cells.csv"], "nowhere/cells.csv"),
    ],
)
def test_wrong_requests(capsys, options, message):
    with pytest.raises(SystemExit) as exit_:
        main(options)
    assert exit_.value.code == 2
    assert message in capsys.readouterr().err


def test_a_missing_file_shows_at_once(folder, tmp_path, capsys):
    (tmp_path / "optdigits.npz").write_bytes((folder / "optdigits.npz").read_bytes())
    with pytest.raises(SystemExit):
        main(["--data-dir", str(tmp_path)])
    printed = capsys.readouterr()
    assert "has no file 'satimage.npz'" in printed.err
    assert printed.out == ""
