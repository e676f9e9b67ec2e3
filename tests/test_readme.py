"""The README and the pages of the documentation: their examples run and print what they say."""

import contextlib
import importlib.util
import io
import re
from itertools import pairwise
from pathlib import Path

import pytest
from sklearn.datasets import load_breast_cancer

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def written_pages():
    """The README, and all pages that are written by hand (a source release has the first only)."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    for folder in ("guide", "howto"):
        pages += sorted((ROOT / "docs" / folder).glob("*.md"))
    return [str(page.relative_to(ROOT)) for page in pages]


def blocks_of(page):
    return BLOCK.findall((ROOT / page).read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "page", [page for page in written_pages() if "python" in dict(blocks_of(page))]
)
def test_examples_print_what_they_say(page):
    """In one namespace, as a reader would type them."""
    namespace = {}
    for (language, text), (next_language, expected) in pairwise([*blocks_of(page), ("", "")]):
        if language != "python":
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(text, page, "exec"), namespace)
        if next_language == "text":
            assert printed.getvalue() == expected


def test_there_are_examples():
    assert [language for language, _ in blocks_of("README.md")].count("python") >= 2


def test_the_readme_is_short():
    assert len(README.splitlines()) <= 150


def test_two_commands_of_make():
    code = " ".join(re.findall(r"`+[^`]+`+", README))
    assert set(re.findall(r"\bmake [\w-]+", code)) == {"make demo", "make test"}


@pytest.mark.skipif(not (ROOT / "docs").exists(), reason="a source release has no docs folder")
def test_linked_files_exist():
    links = re.findall(r"\]\(([^)]+)\)", README)
    # benchmarks/RESULTS.md is made by a long run, which the tests do not include.
    local = [link for link in links if "://" not in link and not link.endswith("/RESULTS.md")]
    assert local
    assert not [link for link in local if not (ROOT / link).exists()]


@pytest.fixture
def demo():
    spec = importlib.util.spec_from_file_location("demo", ROOT / "examples" / "demo.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_demo_on_a_small_set(demo, monkeypatch, capsys):
    X, y = load_breast_cancer(return_X_y=True)
    monkeypatch.setattr(demo, "data_sets", lambda: [("small", X[:120], y[:120])])
    demo.main()
    lines = capsys.readouterr().out.splitlines()
    head = next(i for i, line in enumerate(lines) if line.startswith("data "))
    rows = lines[head + 2 : head + 8]
    assert rows[0].startswith("small ")
    assert all(line.endswith("x") and "±" in line for line in rows)
    assert {len(line) for line in rows} == {len(lines[head])}
    assert lines[-1].endswith(("faster on 0.", "faster on 1."))
