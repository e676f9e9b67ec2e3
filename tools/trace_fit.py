"""Count the functions, files and lines of the package that a fit goes through.

``python tools/trace_fit.py`` prints one line per estimator; ``--list EnsembleSVC`` prints the
functions called, file by file. A newcomer must read these files to understand a fit, so fewer are
better. Special methods, properties and nested functions are not counted by themselves, but their
lines are.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import threading
import warnings
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from sklearn.datasets import load_breast_cancer

import hardmargin

PACKAGE = Path(hardmargin.__file__).parent

ESTIMATORS = ("EnsembleSVC", "GreedySVC", "MarginDiscriminantAnalysis")


def functions_on_the_way(call: Callable[[], Any]) -> tuple[set[tuple[str, str]], int, int]:
    """Run a call; return the functions that count, the depth of the calls and the lines of code."""
    entered: set[CodeType] = set()
    deepest = 0

    def note(frame: FrameType, event: str, _: Any) -> None:
        nonlocal deepest
        if event == "call" and frame.f_code.co_filename.startswith(str(PACKAGE)):
            entered.add(frame.f_code)
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
    named = {(str(Path(c.co_filename).relative_to(PACKAGE)), c.co_qualname) for c in entered}
    n_lines = sum(len({line for *_, line in code.co_lines() if line}) for code in entered)
    return {pair for pair in named if is_counted(*pair)}, deepest, n_lines


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
    parser.add_argument("--list", metavar="ESTIMATOR", help="print what it calls")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    X, y = load_breast_cancer(return_X_y=True)
    for name in [arguments.list] if arguments.list else ESTIMATORS:
        fit = getattr(hardmargin, name)().fit
        fit(X[:50], y[:50])  # so that loading and caching at a first fit are not counted
        named, depth, n_lines = functions_on_the_way(lambda fit=fit: fit(X, y))
        files = sorted({file for file, _ in named})
        print(
            f"{name}: {len(named)} functions in {len(files)} files, {n_lines} lines of code, "
            f"at most {depth} deep"
        )
        if arguments.list:
            for file in files:
                print(f"  {file}")
                for function in sorted(function for f, function in named if f == file):
                    print(f"    {function}")


if __name__ == "__main__":
    main()
