"""What a release must agree on: the version, the changelog, the recipe."""

import re
import tomllib
from pathlib import Path

import pytest

import hardmargin

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def text_of(name):
    path = ROOT / name
    if not path.exists():
        pytest.skip("a source release has only a part of the repository")
    return path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "pattern"),
    [
        ("CITATION.cff", r"^version: (.*)$"),
        ("CHANGELOG.md", r"^## \[(\d.*?)\]"),
        ("packaging/conda/recipe.yaml", r'^  version: "(.*)"$'),
    ],
)
def test_the_version_is_the_same_everywhere(name, pattern):
    assert re.search(pattern, text_of(name), re.MULTILINE)[1] == PROJECT["version"]


def test_the_package_knows_its_version():
    assert hardmargin.__version__ == PROJECT["version"]


def test_the_recipe_needs_what_the_package_needs():
    recipe = text_of("packaging/conda/recipe.yaml")
    run = recipe[recipe.index("  run:") : recipe.index("tests:")]
    listed = set(re.findall(r"^    - (\S+ >=\S+)$", run, re.MULTILINE))
    assert listed == {need.replace(">=", " >=") for need in PROJECT["dependencies"]}


def test_every_version_of_the_changelog_has_a_date():
    heads = re.findall(r"^## (.*)$", text_of("CHANGELOG.md"), re.MULTILINE)
    assert heads[0] == "[Unreleased]"
    for head in heads[1:]:
        assert re.fullmatch(r"\[\d+\.\d+\.\d+\] - \d{4}-\d{2}-\d{2}", head)
