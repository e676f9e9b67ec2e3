"""The tables of TNN-08 by one command, on a small folder of made-up data."""

import lzma
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from hardmargin.experiments.tnn08 import TABLE_2, Result, main, misses

N_ROWS = 400


def write_libsvm(path: Path, width: int, rng: np.random.Generator) -> None:
    lines = []
    for _ in range(N_ROWS):
        columns = np.sort(rng.choice(width, 9, replace=False)) + 1
        label = "+1" if columns[0] < width // 12 else "-1"
        lines.append(" ".join([label, *(f"{column}:1" for column in columns)]))
    with lzma.open(path, "wt") as file:
        file.write("\n".join(lines) + "\n")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files in the format of the real ones; covtype has 300 rows beyond the 50,000 of the test."""
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    for name, width in (("a9a", 123), ("w8a", 300)):
        write_libsvm(folder / f"{name}.libsvm.xz", width, rng)
    masks = {name: np.packbits(rng.random(N_ROWS) < 0.5) for name in TABLE_2}
    np.savez_compressed(folder / "adult_web_subsets.npz", **masks)
    n_rows = 50_300
    y = rng.integers(1, 8, n_rows).astype(np.uint8)
    np.savez_compressed(
        folder / "covtype.npz",
        X10=(100 * y[:, None] + rng.integers(0, 90, (n_rows, 10))).astype(np.int16),
        wilderness=rng.integers(0, 4, n_rows).astype(np.uint8),
        soil=rng.integers(0, 40, n_rows).astype(np.uint8),
        y=y,
    )
    return folder


def run(folder: Path, *options: str) -> int:
    return main(["--data-dir", str(folder), *options])


def test_adult_and_web_beside_the_paper(folder, capsys):
    assert run(folder, "--tables", "2") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Table II: adult and web"
    rows = {line.split()[0]: line for line in lines[3:9]}
    assert set(rows) == set(TABLE_2)
    for name, (_, paper) in TABLE_2.items():
        cells = re.split(r"\s{2,}", rows[name])
        assert cells[2] == f"{paper.error:.1f}"
        assert cells[4] == f"{paper.n_support:,}"
        assert cells[-1].startswith("no: ")
    assert lines[-1].startswith("0 of 6 rows hold")


def test_columns_stand_below_each_other(folder, capsys):
    run(folder, "--tables", "2")
    rows = capsys.readouterr().out.splitlines()[3:9]
    assert len({re.search(r"(yes|no: )", row).start() for row in rows}) == 1
    assert max(map(len, rows)) < 120


def test_a_size_that_the_paper_does_not_have(folder, capsys):
    assert run(folder, "--tables", "4", "--sizes", "200,300", "--dtype", "float64") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[3:5]] == ["200", "300"]
    assert all(line.endswith("not in the paper") for line in lines[3:5])
    assert lines[-1].startswith("0 of 0 rows hold")


def test_the_module_is_a_command(folder):
    command = [sys.executable, "-W", "error", "-m", "hardmargin.experiments.tnn08"]
    done = subprocess.run(
        [*command, "--data-dir", str(folder), "--tables", "4", "--sizes", "100"],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "100 rows" in done.stdout


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--tables", "3"], "3 is none of 2, 4, 5"),
        (["--sizes", "many"], "'many' is no list such as 2,4"),
        (["--tables", "5"], "n_train=400000 must lie between 1 and 300"),
    ],
)
def test_wrong_requests(folder, capsys, options, message):
    with pytest.raises(SystemExit) as exit_:
        run(folder, *options)
    assert exit_.value.code == 2
    assert message in capsys.readouterr().err


def test_missing_folder(tmp_path, capsys):
    with pytest.raises(SystemExit) as exit_:
        run(tmp_path / "nowhere")
    assert exit_.value.code == 2
    assert "nowhere' is not a folder; give the one that" in capsys.readouterr().err


def test_missing_file(tmp_path, capsys):
    with pytest.raises(SystemExit) as exit_:
        run(tmp_path, "--tables", "4")
    assert exit_.value.code == 2
    assert "has no file 'covtype.npz'" in capsys.readouterr().err


def test_what_holds():
    paper = Result(15.0, 1_000, None, 1.0)
    assert misses(Result(15.3, 1_015, None, 1.0), paper) == []
    assert misses(Result(14.6, 1_000, None, 1.0), paper) == ["error"]
    assert misses(Result(15.4, 980, None, 1.0), paper) == ["error", "support vectors"]
