"""Reports of toys: well-formed, escaped, complete."""

import csv
import re
from html.parser import HTMLParser

import pytest
from problems.reproduction_tasks import broken, cut, number, part, without_data

from hardmargin.reproduction.parts import Settings
from hardmargin.reproduction.report import html_page, plots, text_part, write_docs, write_report
from hardmargin.reproduction.report.machine import Conditions
from hardmargin.reproduction.runner import run, tasks_of
from hardmargin.reproduction.verdicts import gather

VOID = {"meta", "img", "source", "br", "hr", "link"}
FUNCTIONS = [number, number, cut, without_data, broken]
CONDITIONS = Conditions(Settings(quick=True), 2, 61.0, 3661.0)


class Checker(HTMLParser):
    """Collect what is wrong with the nesting of a page, its ids, links and images."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.open, self.errors, self.ids, self.links, self.images = [], [], [], [], []
        self.text = ""

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        if tag not in VOID:
            self.open.append(tag)
        if "id" in attributes:
            self.ids.append(attributes["id"])
        if tag == "a":
            self.links.append(attributes["href"])
        if tag == "img":
            self.images.append(attributes)

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.errors.append((tag, self.getpos()))

    def handle_data(self, data):
        if self.open and self.open[-1] != "style":
            self.text += data


def checked(page):
    checker = Checker()
    checker.feed(page)
    checker.close()
    assert not checker.errors
    assert not checker.open
    return checker


@pytest.fixture
def gathered(tmp_path):
    toys = [part(tmp_path, FUNCTIONS), part(tmp_path, FUNCTIONS, name="toy-figure1", columns=())]
    outcomes = run(toys, Settings(), quiet=True)
    return [gather(toy, tasks_of(toy, Settings()), outcomes) for toy in toys]


def test_the_page_is_well_formed_and_complete(gathered):
    page = html_page(gathered, CONDITIONS, {})
    checker = checked(page)
    for its in gathered:
        assert its.part.name in checker.ids
        assert f"#{its.part.name}" in checker.links
        assert its.verdict.label in checker.text
        assert its.verdict.why in checker.text
    for text in ("hardmargin 0", "Python 3", "cores", "2 process(es)", "1 h 01 min", "A quick run"):
        assert text in checker.text
    assert '<meta name="viewport"' in page
    assert "prefers-color-scheme: dark" in page
    assert "http" not in page


def test_on_narrow_screens_the_title_comes_first(gathered):
    """There the parts of the page have the order of its text."""
    page = html_page(gathered, CONDITIONS, {})
    assert page.index("<h1>") < page.index("<nav") < page.index("<main>")
    narrow = page[page.index("@media (max-width") :]
    assert ".frame { display: block; }" in narrow


def test_the_page_escapes(gathered):
    page = html_page(gathered, CONDITIONS, {"toy-table1": ["a<b>.csv"]})
    for text in ("<toys>", "<b>nothing", "<i>paragraph", "a < b & so", "a<b>"):
        assert text not in page
    assert "Table 1: <toys> & more" in checked(page).text


def test_differences_have_signs_and_marks(gathered):
    page = html_page(gathered, CONDITIONS, {})
    assert '<b>1.00</b><small>paper 1.1 <i class="good">✓ -0.10</i></small>' in page
    assert '<b>2.00</b><small>paper 0.1 <i class="bad">✗ +1.90</i></small>' in page
    # An error below the paper's differs from it, but is not worse.
    assert '<b>5.00</b><small>paper 9 <i class="some">↓ -4.00</i></small>' in page
    assert "<b>&gt;</b>" in page
    assert "data not available" in page


def test_results_of_earlier_runs_are_reported():
    def line(seconds, work):
        return dict(Conditions(Settings(), 2, seconds, work).lines())["Duration"]

    assert line(60.0, 110.0) == "1 min; all tasks together 2 min"
    assert line(60.0, 1100.0) == "1 min (with results of earlier runs); all tasks together 18 min"


def test_all_files_of_a_report(gathered, tmp_path):
    folder = tmp_path / "new" / "report"
    page = write_report(gathered, CONDITIONS, folder)
    checker = checked(page.read_text(encoding="utf-8"))
    names = {path.name for path in folder.iterdir()}
    assert {"index.html", "reproduction.md", "toy-table1.csv", "toy-table1.png"} <= names
    local = {link for link in checker.links if not link.startswith("#")}
    assert local
    assert local <= names
    for image in checker.images:
        assert image["alt"]
        assert (folder / image["src"]).read_bytes().startswith(b"\x89PNG")
    with (folder / "toy-table1.csv").open(newline="") as file:
        rows = {(row["row"], row["column"]): row for row in csv.DictReader(file)}
    first = rows["a", "error"]
    assert [first[k] for k in ("ours", "paper", "difference", "holds")] == [
        "1",
        "1.1",
        "-0.1",
        "yes",
    ]
    states = [rows[row, "error"]["status"] for row in "abcde"]
    assert states == ["ok", "ok", "cut", "no data", "ok"]
    with (folder / "toy-table1-curves.csv").open(newline="") as file:
        assert next(csv.DictReader(file)) == {"panel": "a", "curve": "ours", "x": "1", "y": "1"}


def test_without_matplotlib(gathered, tmp_path, monkeypatch):
    monkeypatch.setattr(plots, "has_matplotlib", lambda: False)
    page = write_report(gathered, CONDITIONS, tmp_path / "report").read_text(encoding="utf-8")
    assert "install the extra" in page
    assert not list((tmp_path / "report").glob("*.png"))


def test_markdown_for_the_documentation(gathered, tmp_path):
    write_report(gathered, CONDITIONS, tmp_path / "report")
    page = write_docs(gathered, CONDITIONS, tmp_path / "report", tmp_path / "docs")
    text = page.read_text(encoding="utf-8")
    for its in gathered:
        assert f"](#{its.part.name}) | {its.verdict.label} |" in text
    for image in re.findall(r"!\[.*?\]\((.*?)\)", text):
        assert (page.parent / image).is_file()
    assert r"\<toys\>" in text
    assert "| a | 1.00 (1.1) -0.10 ✓ | - |" in text
    assert "| d | data not available |  |" in text
    widths = {line.count("|") for line in text.splitlines() if re.match(r"\| [a-e] \|", line)}
    assert widths == {4}
    assert text.count("First \\<i\\>paragraph") == 1
    assert "Otherwise as for [Table 1](#toy-table1)." in text


def test_text_for_the_terminal(gathered):
    lines = text_part(gathered[0]).splitlines()
    assert lines[0] == "TOY-26, Table 1: <toys> & more   [toy-table1]"
    rows = {line.split()[0]: line.split() for line in lines[3:8]}
    assert rows["a"][1:] == ["1.00", "1.1", "-0.10", "✓", "-"]
    assert rows["b"][1:] == ["2.00", "0.1", "+1.90", "✗", "-"]
    assert rows["c"][1:] == [">", ">"]
    assert rows["d"][1:] == ["data", "not", "available"]
    assert rows["e"][1:] == ["5.00", "9", "-4.00", "↓", "failed"]
    assert lines[-1] == f"{gathered[0].verdict.label.upper()}: {gathered[0].verdict.why}"
    assert any("failed: ZeroDivisionError" in line for line in lines)
