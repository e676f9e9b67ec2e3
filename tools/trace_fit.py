"""Count the functions, files and lines of the package that a fit goes through.

``python tools/trace_fit.py`` prints one line per case; ``--list EnsembleSVC`` prints the functions
called, in the order of their first calls, each below its file. A newcomer must read these files to
understand a fit, so fewer are better. So are fewer switches: functions whose first call comes after
one of another file. Special methods, properties and nested functions are not counted by themselves,
but their lines are.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import threading
import warnings
from collections.abc import Callable
from functools import cached_property, partial
from itertools import groupby
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

from sklearn.base import BaseEstimator, clone
from sklearn.datasets import load_breast_cancer, make_classification

import hardmargin

PACKAGE = Path(hardmargin.__file__).parent

#: Too many rows for one vote of all, so that experts learn parts of them.
MANY_ROWS = 12_000


def few_rows() -> tuple[Any, Any]:
    """Return rows that one machine can take."""
    return load_breast_cancer(return_X_y=True)


def many_rows() -> tuple[Any, Any]:
    """Generate rows that need experts."""
    return make_classification(MANY_ROWS, 8, n_informative=5, random_state=0)


CASES: dict[str, tuple[BaseEstimator, Callable[[], tuple[Any, Any]]]] = {
    "EnsembleSVC": (hardmargin.EnsembleSVC(), few_rows),
    "EnsembleSVC with experts": (hardmargin.EnsembleSVC(), many_rows),
    "GreedySVC": (hardmargin.GreedySVC(), few_rows),
    "MarginDiscriminantAnalysis": (hardmargin.MarginDiscriminantAnalysis(), few_rows),
}


class Way(NamedTuple):
    """What a call goes through."""

    functions: list[tuple[str, str]]  # their files and names, in the order of their first calls
    n_lines: int
    depth: int

    @property
    def by_file(self) -> list[tuple[str, list[str]]]:
        """Functions that follow each other in one file, file after file."""
        runs = groupby(self.functions, key=lambda function: function[0])
        return [(file, [name for _, name in run]) for file, run in runs]

    @property
    def n_switches(self) -> int:
        """How often a function is of another file than the one before."""
        return max(0, len(self.by_file) - 1)


def way_of(call: Callable[[], Any]) -> Way:
    """Run a call, and note what it goes through."""
    entered: dict[CodeType, None] = {}  # in the order of the first calls
    deepest = 0

    def note(frame: FrameType, event: str, _: Any) -> None:
        nonlocal deepest
        if event == "call" and frame.f_code.co_filename.startswith(str(PACKAGE)):
            entered.setdefault(frame.f_code)
            depth, outer = 0, frame
            while outer is not None:
                depth += outer.f_code.co_filename.startswith(str(PACKAGE))
                outer = outer.f_back  # type: ignore[assignment]
            deepest = max(deepest, depth)

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
    named = [(str(Path(c.co_filename).relative_to(PACKAGE)), c.co_qualname) for c in entered]
    n_lines = sum(len({line for *_, line in code.co_lines() if line}) for code in entered)
    return Way([pair for pair in dict.fromkeys(named) if is_counted(*pair)], n_lines, deepest)


def is_counted(file: str, name: str) -> bool:
    """Whether a function counts by itself."""
    *_, last = parts = name.split(".")
    if last.startswith("__") or "<" in name:
        return False
    owner: Any = importlib.import_module(f"hardmargin.{file[:-3].replace('/', '.')}")
    for part in parts:
        owner = getattr(owner, part, None) if part != last else vars(owner).get(part)
    return not isinstance(owner, property | cached_property)


def main() -> None:
    """Trace the fits."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--list", metavar="CASE", help="a case, or an estimator: print its calls")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in [arguments.list] if arguments.list else CASES:
        estimator, rows = CASES[name] if name in CASES else (getattr(hardmargin, name)(), few_rows)
        X, y = rows()
        clone(estimator).fit(X[:50], y[:50])  # loading and caching at a first fit do not count
        way = way_of(partial(clone(estimator).fit, X, y))
        n_files = len({file for file, _ in way.functions})
        print(
            f"{name}: {len(way.functions)} functions in {n_files} files, {way.n_lines} lines of "
            f"code, at most {way.depth} deep, {way.n_switches} switches of file"
        )
        if arguments.list:
            for file, functions in way.by_file:
                print(f"  {file}")
                for function in functions:
                    print(f"    {function}")


if __name__ == "__main__":
    main()
