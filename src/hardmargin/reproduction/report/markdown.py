"""The report as Markdown, for the documentation."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from hardmargin.reproduction.parts import Part
from hardmargin.reproduction.report.machine import Conditions
from hardmargin.reproduction.report.wording import (
    NO_DATA,
    claimed,
    compared,
    head,
    mark,
    mark_of,
    our_number,
    paper_number,
    rows_and_gaps,
)
from hardmargin.reproduction.verdicts import Gathered

__all__ = ["markdown_page", "write_docs"]

LEAD = """\
Made by `{command}`. Verdicts are computed by one rule. A number holds (✓) if it is
within 10 % of the paper's, or within two standard errors of our mean. Numbers of rows, columns and
classes must be the same; seconds are judged only as ratios between methods. ↓ is an error that is
lower than the paper's by more than that: it is better, but does not count as reproduced; ✗ is any
other difference. A cell has our number, then the paper's in brackets and the difference; without a
mark it is not judged. > is a rival's training that was cut.

A part is reproduced if all that is judged holds, partly if at least half of it does."""


def markdown_page(
    gathered: Sequence[Gathered], conditions: Conditions, images: Mapping[str, str]
) -> str:
    """Write the page.

    Parameters
    ----------
    gathered : sequence of Gathered
        The parts.
    conditions : Conditions
        Computer and run.
    images : mapping
        Paths of the figures, by the name of the part.

    Returns
    -------
    str
    """
    lead = LEAD.format(command=conditions.command)
    lines = ["# The papers' tables and figures, reproduced", "", lead, ""]
    lines += ["| part | verdict | why |", "|---|---|---|"]
    gathered = [its for its in gathered if its.verdict.label != "skipped"]
    for its in gathered:
        title = f"{its.part.paper}, {its.part.title}"
        lines.append(
            f"| [{_plain(title)}](#{its.part.name}) | {its.verdict.label} | "
            f"{_plain(its.verdict.why)} |"
        )
    written: dict[str, Part] = {}
    for its in gathered:
        lines += ["", *_section(its, images, written)]
    lines += ["", "## Machine and versions", ""]
    lines += [f"- {topic}: {text}" for topic, text in conditions.lines()]
    return "\n".join(lines) + "\n"


def write_docs(
    gathered: Sequence[Gathered], conditions: Conditions, source: Path, folder: Path
) -> Path:
    """Write ``reproduction.md`` into the documentation, with its figures.

    Parameters
    ----------
    gathered : sequence of Gathered
        The parts.
    conditions : Conditions
        Computer and run.
    source : Path
        The folder that has the figures.
    folder : Path
        The documentation.

    Returns
    -------
    Path
        The page.
    """
    place = folder / "images" / "reproduction"
    images = {}
    for its in gathered:
        drawn = source / f"{its.part.name}.png"
        if drawn.is_file() and its.curves:
            place.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(drawn, place / drawn.name)
            images[its.part.name] = f"images/reproduction/{drawn.name}"
    folder.mkdir(parents=True, exist_ok=True)
    page = folder / "reproduction.md"
    page.write_text(markdown_page(gathered, conditions, images), encoding="utf-8")
    return page


def _section(
    gathered: Gathered, images: Mapping[str, str], written: dict[str, Part]
) -> Iterator[str]:
    part = gathered.part
    yield f'<a id="{part.name}"></a>'
    yield ""
    yield f"## {part.paper}, {_plain(part.title)}"
    yield ""
    yield f"**{gathered.verdict.label}**: {_plain(gathered.verdict.why)}"
    yield ""
    if part.name in images:
        yield f"![{_plain(part.title)}]({images[part.name]})"
        yield ""
    if part.described:
        yield f"The paper's figure: {_plain(part.described)}"
        yield ""
    if gathered.cells and part.columns:
        yield from _table(gathered)
        yield ""
    for claim, finding in gathered.claims:
        yield f"- {mark(finding.holds) or '?'} {_plain(claimed(claim, finding))}"
    if gathered.claims:
        yield ""
    yield from _reading(part, written)


def _reading(part: Part, written: dict[str, Part]) -> Iterator[str]:
    """Describe how a part was measured; link to an earlier part that says the same."""
    earlier: dict[str, Part] = {}
    for paragraph in part.reading.strip().split("\n\n"):
        text = paragraph.strip()
        if text in written:
            earlier[written[text].name] = written[text]
            continue
        written[text] = part
        yield from (_plain(line) for line in text.splitlines())
        yield ""
    if earlier:
        links = (
            f"[{_plain(its.title.partition(':')[0])}](#{name})" for name, its in earlier.items()
        )
        yield f"Otherwise as for {', '.join(links)}."


def _table(gathered: Gathered) -> Iterator[str]:
    columns = gathered.part.columns
    yield "| | " + " | ".join(_plain(head(column)) for column in columns) + " |"
    yield "|---|" + "---|" * len(columns)
    for row, has_data in rows_and_gaps(gathered):
        cells = [NO_DATA] + [""] * (len(columns) - 1)
        if has_data:
            cells = []
            for column in columns:
                cell = gathered.cell(row, column.name)
                ours, paper = our_number(cell, column), paper_number(cell)
                rest = f"({paper}) {compared(cell, column)} " if paper else ""
                cells.append(f"{ours} {rest}{mark_of(cell)}".strip())
        yield f"| {_plain(row)} | " + " | ".join(_plain(cell) for cell in cells) + " |"


def _plain(text: str) -> str:
    """Escape the characters that Markdown would interpret."""
    for sign in "\\|*_<>`":
        text = text.replace(sign, f"\\{sign}")
    return text
