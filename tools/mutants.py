"""Break the code in one place at a time, and see whether the tests of its folder notice.

``python tools/mutants.py --sample 500 --seed 1`` takes about an hour on two cores. A mutant is a
copy of the package with one operator, number, condition or call changed. It is killed if the tests
of its folder fail, or take far too long; what survives is printed. A survivor that breaks a rule
needs a test; one that moves a bound a little, or changes no result, does not.
"""

from __future__ import annotations

import argparse
import ast
import copy
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple

import hardmargin

PACKAGE = Path(hardmargin.__file__).parent
ROOT = Path(__file__).parents[1]
FOLDERS = ("cells", "kernels", "selection", "solvers")

#: About an hour on two cores.
SAMPLE = 500

#: A mutant that wants more memory than this fails.
MAX_BYTES = 8 * 2**30

#: Operators that take each other's place.
PAIRS = "Lt-LtE Gt-GtE Eq-NotEq Is-IsNot In-NotIn Add-Sub Mult-Div FloorDiv-Mod BitAnd-BitOr And-Or"
OTHER = {a: b for pair in PAIRS.split() for a, b in (pair.split("-"), pair.split("-")[::-1])}

#: Types are not run, and decorators make what the tests look at.
SKIPPED_FIELDS = ("annotation", "returns", "decorator_list")


class Mutant(NamedTuple):
    """One change of one file."""

    file: Path  # within the package
    line: int
    place: int  # among those of the file that can be changed
    change: str

    @property
    def folder(self) -> str:
        return self.file.parts[0]


# --- changes -------------------------------------------------------------------------------------


def changed(node: Any) -> ast.AST | None:
    """Return what takes the place of a node, if anything may."""
    match node:
        case ast.BinOp() | ast.AugAssign() | ast.BoolOp() if type(node.op).__name__ in OTHER:
            node = copy.copy(node)
            node.op = getattr(ast, OTHER[type(node.op).__name__])()
            return node
        case ast.Compare(left, [op, *ops], rights) if type(op).__name__ in OTHER:
            return ast.Compare(left, [getattr(ast, OTHER[type(op).__name__])(), *ops], rights)
        case ast.UnaryOp(ast.Not() | ast.USub(), operand):
            return operand
        case ast.Constant(bool(value)):
            return ast.Constant(not value)
        case ast.Constant(int(value) | float(value)):
            return ast.Constant(value + 1)
        case ast.IfExp(test, first, second):
            return ast.IfExp(test, second, first)
        case ast.If(test, body, orelse):
            return ast.If(ast.UnaryOp(ast.Not(), test), body, orelse)
        case ast.Expr(ast.Call()):
            return ast.Pass()
    return None


class Changer(ast.NodeTransformer):
    """Reads a file, notes the places that can be changed, and changes the chosen one."""

    def __init__(self, file: Path, chosen: int | None = None) -> None:
        self.places: list[tuple[int, str]] = []
        self.chosen = chosen
        tree = ast.parse((PACKAGE / file).read_text(encoding="utf-8"))
        fields = [getattr(n, name, []) for n in ast.walk(tree) for name in SKIPPED_FIELDS]
        self.skipped = {n for field in fields for n in (field if type(field) is list else [field])}
        self.source = ast.unparse(ast.fix_missing_locations(self.visit(tree)))

    def visit(self, node: ast.AST) -> Any:
        # Neither what errors say nor whether `zip` checks lengths is a rule.
        is_no_rule = isinstance(node, ast.JoinedStr) or getattr(node, "arg", "") == "strict"
        if is_no_rule or node in self.skipped:
            return node
        new = changed(node)
        if new is not None:
            self.places.append((node.lineno, f"{brief(node)}  ->  {brief(new)}"))  # type: ignore[attr-defined]
            if len(self.places) - 1 == self.chosen:
                return new
        return self.generic_visit(node)


def brief(node: ast.AST) -> str:
    return ast.unparse(node).splitlines()[0]


def all_mutants() -> Iterator[Mutant]:
    for path in sorted(path for folder in FOLDERS for path in (PACKAGE / folder).rglob("*.py")):
        file = path.relative_to(PACKAGE)
        for place, (line, change) in enumerate(Changer(file).places):
            yield Mutant(file, line, place, change)


# --- trials --------------------------------------------------------------------------------------


def make_copies(n_copies: int) -> SimpleQueue[Path]:
    """Copy the package, once per thread."""
    copies: SimpleQueue[Path] = SimpleQueue()
    shutil.rmtree(ROOT / "build" / "mutants", ignore_errors=True)
    for number in range(n_copies):
        home = ROOT / "build" / "mutants" / str(number)
        shutil.copytree(PACKAGE, home / "hardmargin", ignore=shutil.ignore_patterns("*.pyc"))
        copies.put(home)
    return copies


def passes(home: Path, folder: str, seconds: float | None = None, *, first: str = "") -> bool:
    """Tell whether the tests of a folder pass on a copy, in so much time."""
    tests = ROOT / "tests" / folder
    environment = {
        "PYTHONPATH": str(home),
        "PYTHONDONTWRITEBYTECODE": "1",  # two mutants may be equally long and old
        "HYPOTHESIS_STORAGE_DIRECTORY": str(home / "hypothesis"),
        "OPENBLAS_NUM_THREADS": "1",
    }
    likely = tests.glob(f"test_{first}*.py") if first else ()
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest", "-qx", "-p", "no:cacheprovider", *likely, tests],
        cwd=ROOT,
        env=os.environ | environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # so that what it starts ends with it
    )
    try:
        return process.wait(seconds) == 0
    except subprocess.TimeoutExpired:
        return False
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def main() -> None:
    """Try a sample of mutants."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sample", type=int, default=SAMPLE, metavar="N", help="how many to try")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    options = parser.parse_args()
    candidates = list(all_mutants())
    sample = random.Random(options.seed).sample(candidates, min(options.sample, len(candidates)))
    n_threads = os.cpu_count() or 1
    copies = make_copies(n_threads)
    resource.setrlimit(resource.RLIMIT_AS, (MAX_BYTES, resource.getrlimit(resource.RLIMIT_AS)[1]))

    def seconds_of(folder: str) -> float:
        home, begin = copies.get(), time.monotonic()
        if not passes(home, folder):
            raise SystemExit(f"The tests in tests/{folder} fail without mutants.")
        copies.put(home)
        return time.monotonic() - begin

    def survives(mutant: Mutant) -> bool:
        home = copies.get()
        path = home / "hardmargin" / mutant.file
        path.write_text(Changer(mutant.file, mutant.place).source, encoding="utf-8")
        has_survived = passes(home, mutant.folder, limits[mutant.folder], first=mutant.file.stem)
        shutil.copy(PACKAGE / mutant.file, path)
        copies.put(home)
        return has_survived

    with ThreadPoolExecutor(n_threads) as pool:
        folders = sorted({mutant.folder for mutant in sample})
        times = pool.map(seconds_of, folders)
        limits = {folder: 60 + 3 * seconds for folder, seconds in zip(folders, times, strict=True)}
        survivors = [
            m for m, lives in zip(sample, pool.map(survives, sample), strict=True) if lives
        ]
    for mutant in sorted(survivors):
        print(f"{mutant.file}:{mutant.line}  {mutant.change}")
    n_killed = len(sample) - len(survivors)
    print(f"{n_killed} of {len(sample)} mutants killed; {len(candidates):,} could be made")


if __name__ == "__main__":
    main()
