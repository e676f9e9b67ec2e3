"""CONTRIBUTING.md: its worked example works as it stands, and its lists are complete."""

import re
import sys
import textwrap
from pathlib import Path
from types import ModuleType

import pytest
from problems.every_estimator import PUBLIC
from sklearn.base import is_classifier

import hardmargin.solvers
from hardmargin.dask import DaskEnsembleSVC

PAGE = Path(__file__).parents[1] / "CONTRIBUTING.md"
FILES = (
    "oracles.perceptron",
    "hardmargin.solvers.perceptron",
    "hardmargin.estimators.perceptron",
    "test_perceptron",
)


@pytest.fixture
def tests_of_the_example(monkeypatch):
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    for name, block in zip(FILES, blocks, strict=True):
        module = ModuleType(name)
        monkeypatch.setitem(sys.modules, name, module)
        exec(compile(textwrap.dedent(block), name, "exec"), vars(module))
        if name == "hardmargin.solvers.perceptron":
            monkeypatch.setattr(hardmargin.solvers, "perceptron", module, raising=False)
    return [value for key, value in vars(module).items() if key.startswith("test_")]


def test_the_example_of_an_algorithm_works(tests_of_the_example):
    assert len(tests_of_the_example) == 3
    for test in tests_of_the_example:
        test()


#: Where CONTRIBUTING.md says that every estimator, or every classifier, is listed.
LISTS = {
    "README.md": PUBLIC,
    "docs/which.md": PUBLIC,
    "docs/api/index.rst": PUBLIC,
    "docs/guide/kernels.md": PUBLIC,
    "tests/problems/every_estimator.py": PUBLIC,
    "tests/problems/sklearn_tools.py": [public for public in PUBLIC if is_classifier(public())],
    "tests/test_saving.py": PUBLIC,
    "tests/test_one_result.py": PUBLIC,
    "tests/test_extreme_numbers.py": PUBLIC,
}


@pytest.mark.parametrize("file", LISTS)
def test_lists_have_every_estimator(file):
    words = re.findall(r"\w+", (PAGE.parent / file).read_text(encoding="utf-8"))
    assert {public.__name__ for public in LISTS[file]} - set(words) == set()


@pytest.mark.parametrize("estimator", [*PUBLIC, DaskEnsembleSVC])
def test_no_class_has_more_than_three_bases_of_our_own(estimator):
    own = [base for base in estimator.__mro__[1:] if base.__module__.startswith("hardmargin")]
    assert len(own) <= 3
