"""The command ``hardmargin``: what it prints, writes and refuses."""

import io
import os
import pickle
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from problems.processes import start_program
from problems.reproduction_tasks import broken, interrupted_once, logged, number, part

import hardmargin
from hardmargin.cli import main
from hardmargin.reproduction import registry, runner, verdicts
from hardmargin.reproduction.esann99 import parts as esann99
from hardmargin.reproduction.ijcai07 import tasks as ijcai07_tasks
from hardmargin.reproduction.mcs06 import tasks as mcs06_tasks
from hardmargin.reproduction.parts import Settings
from hardmargin.reproduction.registry import PARTS
from hardmargin.reproduction.tnn08 import benchmarks as tnn08_benchmarks

COMMAND = [sys.executable, "-W", "error", "-m", "hardmargin"]

#: The command as a process of its own, as users start it, but with toys in place of the parts.
TOY_COMMAND = [*COMMAND[:-1], "problems.toy_command"]
WITH_TOYS = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}


@pytest.fixture
def toys(monkeypatch, tmp_path):
    """Parts that take no time in place of the real ones."""

    def replace(*functions):
        toy = part(tmp_path, functions)
        monkeypatch.setattr(registry, "PARTS", {toy.name: toy})

    return replace


def test_the_list_has_every_part(capsys):
    assert main(["reproduce", "list"]) == 0
    printed = capsys.readouterr().out
    for name, its in PARTS.items():
        assert f"  {name} " in printed
        assert its.title in printed


def test_one_part(toys, capsys, tmp_path):
    toys(number, number)
    assert main(["reproduce", "toy-table1", "--n-jobs", "1"]) == 0
    printed = capsys.readouterr()
    assert printed.out.startswith("TOY-26, Table 1")
    assert "PARTLY REPRODUCED: 1 of 2 numbers hold" in printed.out
    assert printed.err.startswith("[1/2] toy/a: ")
    assert {path.name for path in tmp_path.iterdir()} == {"log"}


def test_a_report_and_a_page_of_the_documentation(toys, capsys, tmp_path):
    toys(number)
    out, docs = tmp_path / "report", tmp_path / "docs"
    options = ["--out", str(out), "--docs", str(docs)]
    assert main(["reproduce", "all", *options]) == 0
    assert f"The report: {out / 'index.html'}" in capsys.readouterr().out
    assert (out / "index.html").is_file()
    assert (docs / "reproduction.md").is_file()
    assert (docs / "images" / "reproduction" / "toy-table1.png").is_file()


def test_the_folder_of_the_environment(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("HARDMARGIN_DATA", str(tmp_path))
    assert main(["reproduce", "mcs06-table1", "--n-jobs", "1"]) == 1
    printed = capsys.readouterr()
    assert "DATA NOT AVAILABLE: no data: optdigits" in printed.out
    assert f"Nothing was measured: there are no data in '{tmp_path}'" in printed.err


@pytest.mark.parametrize(
    ("names", "chosen"),
    [
        (
            ["esann99"],
            {f"esann99-{what}" for what in ("results", "figure1", "figure2", "section3")},
        ),
        (["mcs06-table1", "all"], set(PARTS)),
        (["mcs06-table1", "mcs06-table1", "tnn08-table1"], {"mcs06-table1", "tnn08-table1"}),
    ],
)
def test_names_of_parts_and_papers(monkeypatch, names, chosen):
    asked = []
    monkeypatch.setattr(runner, "run", lambda parts, *_, **__: asked.extend(parts) or {})
    nothing = verdicts.Verdict("skipped", "")
    monkeypatch.setattr(
        verdicts, "gather", lambda part, *_, **__: verdicts.Gathered(part, (), (), (), (), nothing)
    )
    main(["reproduce", *names, "--quick"])
    assert {part.name for part in asked} == chosen
    assert len(asked) == len(chosen)


def test_sets_are_named_in_any_case(toys, tmp_path):
    toys(number, number)
    assert main(["reproduce", "all", "--only", "B"]) == 0
    assert (tmp_path / "log").read_text().split() == ["b"]


def test_a_folder_that_cannot_be_written_is_reported_first(toys, capsys, tmp_path):
    toys(number)
    (tmp_path / "file").touch()
    assert main(["reproduce", "all", "--out", str(tmp_path / "file")]) == 2
    assert "--out: cannot write to" in capsys.readouterr().err
    assert not (tmp_path / "log").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="pipes")
def test_a_reader_that_closed_the_pipe(tmp_path):
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [*TOY_COMMAND, str(tmp_path), "number", "reproduce", "list"],
            env=WITH_TOYS,
            stdout=writer,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=60,
        )
    finally:
        os.close(writer)
    assert (done.returncode, done.stderr) == (141, "")


def test_a_terminal_without_ticks(toys, monkeypatch):
    toys(number)
    printed = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(printed, encoding="ascii"))
    assert main(["reproduce", "all", "--n-jobs", "1"]) == 0
    assert b"[toy-table1]" in printed.getvalue()
    assert b"  ? a < b & so on" in printed.getvalue()


def test_a_failure_is_reported_at_the_end(toys, capsys):
    toys(broken, number)
    assert main(["reproduce", "toy-table1"]) == 1
    printed = capsys.readouterr()
    assert "1 of 2 tasks failed: toy/a" in printed.err
    assert "2.00" in printed.out


def test_ctrl_c_keeps_what_is_finished(toys, capsys, tmp_path):
    toys(number, interrupted_once)
    out = tmp_path / "report"
    command = ["reproduce", "all", "--n-jobs", "1", "--out", str(out)]
    assert main(command) == 130
    assert f"kept in {out}: the same command continues" in capsys.readouterr().err
    assert main(command) == 0
    assert "toy/a: kept from an earlier run" in capsys.readouterr().err


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("n_jobs", ["1", "2"])
def test_a_real_interruption(tmp_path, n_jobs, sent):
    out = tmp_path / "report"
    command = [*TOY_COMMAND, str(tmp_path), "number,endless,endless"]
    command += ["reproduce", "all", "--n-jobs", n_jobs, "--out", str(out)]
    # If the tests run in the background, a child would inherit that Ctrl-C is ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        process = subprocess.Popen(
            command, stderr=subprocess.PIPE, text=True, start_new_session=True, env=WITH_TOYS
        )
    finally:
        signal.signal(signal.SIGINT, before)
    wait_for_a_cell(out)
    while "b" not in logged(tmp_path) and process.poll() is None:  # a task that does not end
        time.sleep(0.01)
    process.send_signal(sent)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert ended(process.pid)
    assert_interrupted(errors, out)


#: A command that Ctrl-C interrupts even if the tests run in the background.
PROGRAM = """
import signal, sys, warnings
warnings.simplefilter("error")
signal.signal(signal.SIGINT, signal.default_int_handler)
from hardmargin.cli import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_a_real_interruption_of_a_fit(tmp_path, sent):
    out = tmp_path / "report"
    command = ["reproduce", "esann99-results", "--quick", "--n-jobs", "1"]
    command += ["--only", "majority rule,sonar,mirror symmetry", "--out", str(out)]
    process, (_, errors) = start_program(PROGRAM, command, tmp_path)
    wait_for_a_cell(out)
    os.kill(process.pid, sent)
    process.join(60)
    assert process.exitcode == 130
    assert_interrupted(errors.read_text(), out)


def wait_for_a_cell(folder):
    end = time.monotonic() + 60
    while not finished_cells(folder) and time.monotonic() < end:
        time.sleep(0.01)


def assert_interrupted(errors, folder):
    # The last line is ours; a library's callback that the signal hits may print a traceback first.
    assert errors.rstrip().splitlines()[-1].startswith("interrupted; finished work is kept")
    assert 1 <= len(finished_cells(folder)) < 3
    assert not (folder / "index.html").exists()


def finished_cells(folder):
    """Files of cells; those that are still being written are hidden."""
    return [file for file in folder.glob("cells/*.json") if not file.name.startswith(".")]


def ended(session, seconds=20):
    """Whether all processes of a session end."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if not any(is_running(process, session) for process in psutil.process_iter()):
            return True
        time.sleep(0.05)
    os.killpg(session, signal.SIGKILL)
    return False


def is_running(process, session):
    try:  # a zombie has ended; when the system forgets it is not up to us
        return os.getsid(process.pid) == session and process.status() != psutil.STATUS_ZOMBIE
    except (OSError, psutil.Error):
        return False


@pytest.mark.skipif(sys.platform == "win32", reason="limits of files")
@pytest.mark.parametrize("n_jobs", ["1", "2"])
def test_a_full_disk(tmp_path, n_jobs):
    import resource

    logs, out = tmp_path / "logs", tmp_path / "report"
    logs.mkdir()
    command = [*TOY_COMMAND, str(logs), "number,number"]
    command += ["reproduce", "all", "--n-jobs", n_jobs, "--out", str(out)]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        env=WITH_TOYS,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100)),
    )
    assert done.returncode == 1
    assert "the same command continues" in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr
    assert out.is_dir()
    assert not [path for path in out.rglob("*") if path.is_file()]


#: Parts whose data do not come with libraries.
NOT_QUICK = {"ijcai07-table1", "mcs06-table1", *(f"tnn08-table{i}" for i in range(1, 6))}


@pytest.mark.parametrize("name", PARTS)
def test_every_part_runs_quickly(name, capsys, monkeypatch, tmp_path_factory):
    # Fewer rows, draws and epochs than in a quick run.
    monkeypatch.setattr(mcs06_tasks, "QUICK_ROWS", (80, 40))
    monkeypatch.setattr(mcs06_tasks, "NETWORK_SEEDS", (0, 1))
    monkeypatch.setattr(mcs06_tasks, "FIGURE_1_SIZES", (1, 2, 7))
    monkeypatch.setattr(mcs06_tasks, "FIGURE_2_SIGMAS", (0.0, 1.0))
    monkeypatch.setattr(ijcai07_tasks, "QUICK_DRAWS", 2)
    monkeypatch.setattr(tnn08_benchmarks, "QUICK_ROWS", 60)
    monkeypatch.setattr(esann99, "QUICK_DRAWS", 1)
    monkeypatch.setattr(esann99, "N_ADDITIVE", 100)
    for problem, its in esann99.PROBLEMS.items():
        fewer = replace(its, n_train=min(its.n_train, 100), n_test=min(its.n_test, 100))
        monkeypatch.setitem(esann99.PROBLEMS, problem, fewer)
    # What is replaced here would not be in other processes, which must be able to run tasks too.
    for task in runner.tasks_of(PARTS[name], Settings(quick=True)):
        assert pickle.loads(pickle.dumps(task)) == task
    # Parts of a paper share their work, so they share a folder.
    out = tmp_path_factory.getbasetemp() / f"quick-{name.partition('-')[0]}"
    assert main(["reproduce", name, "--quick", "--n-jobs", "1", "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    page = (out / "index.html").read_text(encoding="utf-8")
    assert "✗" not in printed
    assert "data not available" not in printed + page
    if name in NOT_QUICK:
        assert f"Skipped, as their data do not come with libraries: {name}." in printed
        assert f'id="{name}"' not in page
        return
    assert PARTS[name].title in printed
    assert "NOT JUDGED" in printed
    assert f'id="{name}"' in page
    assert list(out.glob(f"{name}*.csv"))


def test_the_module_is_a_command():
    done = subprocess.run(
        [*COMMAND, "--version"], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{hardmargin.__version__}\n", "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "COMMAND"),
        (["reproduce"], "NAME"),
        (["reproduce", "ijcai-table2"], "'ijcai-table2' is not a part; did you mean ijcai07-tab"),
        (["reproduce", "xyz"], "'xyz' is not a part; see hardmargin reproduce list"),
        (["reproduce", "all"], "ijcai07-table1 reads its data from files: give their folder with"),
        (["reproduce", "tnn08-table2", "--data-dir", "nowhere"], "'nowhere' is not a folder"),
        (["reproduce", "all", "--quick", "--data-dir", "."], "--quick reads no folder"),
        (["reproduce", "all", "--quick", "--full"], "exclude each other"),
        (["reproduce", "all", "--quick", "--docs", "x"], "give --out too"),
        (["reproduce", "mcs06-table1", "--quick", "--only", "a,mnist"], "'a' is not one of optd"),
        (["reproduce", "all", "--n-jobs", "0"], "'0' is not a positive number"),
        (["reproduce", "all", "--cut", "soon"], "'soon' is not a valid float"),
    ],
)
def test_wrong_requests(capsys, monkeypatch, arguments, message):
    monkeypatch.delenv("HARDMARGIN_DATA", raising=False)
    assert main(arguments) == 2
    assert message in capsys.readouterr().err.replace("\n", " ")
