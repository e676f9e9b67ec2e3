"""Programs in processes of their own, as forks of a process that has imported the package.

Importing it with all that it needs takes longer than most programs of tests do.
"""

import multiprocessing
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

#: What the parent of the forks imports.
PRELOADED = [
    "problems.every_estimator",
    "hardmargin.dask",
    "hardmargin.reproduction.registry",
    "sklearn.datasets",
]

# Forks of a process with loaded libraries are unsafe on macOS.
CONTEXT = multiprocessing.get_context("spawn" if sys.platform == "darwin" else "forkserver")
CONTEXT.set_forkserver_preload(PRELOADED)


def run_program(program, *arguments, seconds=300, **environment):
    """Run a program; variables of the environment that are None are removed from it."""
    with TemporaryDirectory() as folder:
        process, printed = start_program(program, arguments, folder, **environment)
        process.join(seconds)
        if process.exitcode is None:
            process.kill()
            raise subprocess.TimeoutExpired(program, seconds)
        texts = [path.read_text(encoding="utf-8") for path in printed]
        return subprocess.CompletedProcess(program, process.exitcode, *texts)


def start_program(program, arguments, folder, **environment):
    """Start a program; what it prints goes to two files in a folder."""
    printed = [Path(folder) / name for name in ("stdout", "stderr")]
    process = CONTEXT.Process(
        target=_execute, args=(program, arguments, environment, list(map(str, printed)))
    )
    process.start()
    return process, printed


def output_of(program, *arguments, **options):
    """What a program prints; it must not fail."""
    done = run_program(program, *arguments, **options)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _execute(program, arguments, environment, printed):
    for number, path in enumerate(printed, start=1):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), number)
    for name, value in environment.items():
        os.environ.pop(name, None)
        if value is not None:
            os.environ[name] = value
    sys.argv[1:] = arguments
    exec(program, {"__name__": "__main__"})
