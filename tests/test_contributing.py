"""The worked example of CONTRIBUTING.md: its files work as they stand on the page."""

import re
import sys
import textwrap
from pathlib import Path
from types import ModuleType

import pytest

import hardmargin.solvers

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
