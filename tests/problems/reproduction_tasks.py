"""Small tasks and parts for the tests of the runner and of the reports.

They are in a module of their own because other processes must be able to import them.
"""

import os
import time
from pathlib import Path

from hardmargin.reproduction.parts import (
    Axes,
    Cell,
    Claim,
    Column,
    Curve,
    CutError,
    NoDataError,
    Part,
    Task,
    near,
)

NAME = "toy-table1"


def log(folder, name):
    with (Path(folder) / "log").open("a") as file:
        file.write(f"{name}\n")


def logged(folder):
    path = Path(folder) / "log"
    return path.read_text().split() if path.exists() else []


def number(folder, name, value, settings):
    log(folder, name)
    yield Cell(NAME, name, "error", value)
    yield Curve(NAME, name, "ours", (1.0, 2.0), (value, value / 2))


def interrupted_once(folder, name, value, settings):
    log(folder, name)
    if logged(folder).count(name) == 1:
        raise KeyboardInterrupt
    yield Cell(NAME, name, "error", value)


def broken(folder, name, value, settings):
    log(folder, name)
    yield Cell(NAME, name, "error", value)
    raise ZeroDivisionError("<b>nothing</b> to divide by")


def cut(folder, name, value, settings):
    log(folder, name)
    raise CutError("longer than 1 s")
    yield


def without_data(folder, name, value, settings):
    log(folder, name)
    raise NoDataError("no file 'x.npz'")
    yield


def endless(folder, name, value, settings):
    log(folder, name)
    time.sleep(600)
    yield Cell(NAME, name, "error", value)


def undeclared(folder, name, value, settings):
    yield Cell(NAME, name, "another", value)


def sleep(seconds):
    time.sleep(seconds)
    return os.getpid()


def die():
    os._exit(1)


def talk():
    print("aside", flush=True)
    return "answer"


def fail():
    raise ValueError("as it should")


def part(folder, functions, name=NAME, title="Table 1: <toys> & more", **options):
    """Make a part with one task per function; task i is named by a letter and measures i + 1."""

    def tasks(settings):
        for i, function in enumerate(functions):
            row = "abcdefgh"[i]
            fills = ((NAME, row, "error"), (NAME, row, "seconds"))
            yield Task(f"toy/{row}", row, function, (str(folder), row, float(i + 1)), fills)

    fields = {
        "columns": (Column("error", "%"), Column("seconds", "s", compare="ratio")),
        "numbers": {("a", "error"): 1.1, ("b", "error"): 0.1, ("e", "error"): 9.0},
        "holds": near,
        "claims": (Claim("a < b & so on", lambda found: found.ours("a", "error") is not None),),
        "axes": Axes("x", "y"),
        "needs_folder": False,
    }
    return Part(
        name=name,
        paper="TOY-26",
        title=title,
        kind="table",
        reading="First <i>paragraph</i>.\n\nSecond.",
        tasks=tasks,
        **fields | options,
    )
