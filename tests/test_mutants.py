"""The tool that breaks the code in one place at a time."""

import ast
import importlib.util
from pathlib import Path

import pytest

PATH = Path(__file__).parents[1] / "tools" / "mutants.py"
spec = importlib.util.spec_from_file_location("mutants", PATH)
mutants = importlib.util.module_from_spec(spec)
spec.loader.exec_module(mutants)


@pytest.fixture
def changer(tmp_path, monkeypatch):
    monkeypatch.setattr(mutants, "PACKAGE", tmp_path)

    def change(source, chosen=None):
        (tmp_path / "file.py").write_text(source)
        return mutants.Changer(Path("file.py"), chosen)

    return change


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("a < b", ["a <= b"]),
        ("a >= b", ["a > b"]),
        ("a != b", ["a == b"]),
        ("a is None", ["a is not None"]),
        ("a + b", ["a - b"]),
        ("a /= b", ["a *= b"]),
        ("a and b", ["a or b"]),
        ("not a", ["a"]),
        ("a[-1]", ["a[1]", "a[-2]"]),
        ("a = True", ["a = False"]),
        ("a = 0.5", ["a = 1.5"]),
        ("a if b else c", ["c if b else a"]),
        ("if a:\n    b", ["if not a:\n    b"]),
        ("a.check()", ["pass"]),
    ],
)
def test_one_place_is_changed_at_a_time(changer, source, expected):
    places = range(len(changer(source).places))
    assert [changer(source, place).source for place in places] == expected


@pytest.mark.parametrize(
    "source",
    [
        "a: int | None = b",
        "def f(a: float | None) -> Literal[1, 2]:\n    return a",
        "@dataclass(frozen=True)\nclass A:\n    pass",
        "raise ValueError(f'{a + 1} is too large')",
        "b = zip(a, a, strict=True)",
    ],
)
def test_types_decorators_and_words_stay(changer, source):
    assert changer(source).places == []


def test_there_are_mutants_of_every_folder_and_all_differ_from_their_file():
    found = list(mutants.all_mutants())
    assert {mutant.folder for mutant in found} == set(mutants.FOLDERS)
    for mutant in found[::500]:
        file = (mutants.PACKAGE / mutant.file).read_text(encoding="utf-8")
        mutated = mutants.Changer(mutant.file, mutant.place).source
        assert ast.dump(ast.parse(mutated)) != ast.dump(ast.parse(file))
