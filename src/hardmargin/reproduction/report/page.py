"""The report as a page: one HTML file, with figures and CSV files beside it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape

from hardmargin.pages import document, scrolling_table
from hardmargin.reproduction.parts import Cell, Column, Part
from hardmargin.reproduction.report.machine import Conditions
from hardmargin.reproduction.report.wording import (
    NO_DATA,
    claimed,
    compared,
    curve_table,
    head,
    mark,
    mark_of,
    our_number,
    paper_number,
    rows_and_gaps,
    skipped_line,
)
from hardmargin.reproduction.verdicts import Gathered, Verdict

__all__ = ["html_page"]

TITLE = "The papers' tables and figures, reproduced"
LEAD = (
    "Our numbers are above the paper's. A number holds (✓) if it is within 10 % of the paper's, or "
    "within two standard errors of our mean; ↓ is an error that is lower by more than that, ✗ any "
    "other difference, and a number without a mark is not judged. How it was measured is below "
    "each table."
)
KINDS = {
    "reproduced": "good",
    "partly reproduced": "some",
    "not reproduced": "bad",
    "failed": "bad",
    "data not available": "none",
    "not judged": "none",
    "skipped": "none",
}
SHORT = {
    "reproduced": "✓ yes",
    "partly reproduced": "~ partly",
    "not reproduced": "✗ no",
    "failed": "failed",
    "data not available": "no data",
    "not judged": "not judged",
    "skipped": "skipped",
}


def html_page(
    gathered: Sequence[Gathered], conditions: Conditions, names: Mapping[str, Sequence[str]]
) -> str:
    """Write the page.

    Parameters
    ----------
    gathered : sequence of Gathered
        The parts.
    conditions : Conditions
        Computer and run.
    names : mapping
        Names of the files of each part, beside the page.

    Returns
    -------
    str
        All of it, style included.
    """
    skipped = skipped_line(gathered)
    gathered = [its for its in gathered if its.verdict.label != "skipped"]
    tally: Counter[str] = Counter(part.verdict.label for part in gathered)
    badges = "".join(
        f'<span class="badge {KINDS[label]}">{tally[label]} {escape(label)}</span>'
        for label in KINDS
        if tally[label]
    )
    body = "\n".join(_papers(gathered, names, conditions.options))
    quick = ""
    if conditions.settings.quick:
        quick = (
            '<p class="lead"><strong>A quick run:</strong> only data that come with libraries, and '
            f"few rows of them. It shows that everything runs, and judges nothing. {skipped}</p>"
        )
    return document(
        TITLE,
        head=f'<p class="lead">{escape(LEAD)}</p>\n{quick}<p class="tally">{badges}</p>',
        contents="".join(_contents(gathered)),
        body=body,
        facts=conditions.lines(),
    )


def _by_paper(gathered: Iterable[Gathered]) -> dict[str, list[Gathered]]:
    papers: dict[str, list[Gathered]] = {}
    for its in gathered:
        papers.setdefault(its.part.paper, []).append(its)
    return papers


def _contents(gathered: Sequence[Gathered]) -> Iterator[str]:
    for paper, parts in _by_paper(gathered).items():
        yield f"<h2>{escape(paper)}</h2>\n<ul>\n"
        for its in parts:
            short = escape(its.part.title.partition(":")[0])
            label = its.verdict.label
            badge = f'<span class="badge {KINDS[label]}">{escape(SHORT[label])}</span>'
            yield f'<li><a href="#{escape(its.part.name)}">{short} {badge}</a></li>\n'
        yield "</ul>\n"


def _papers(
    gathered: Sequence[Gathered], names: Mapping[str, Sequence[str]], options: str
) -> Iterator[str]:
    for paper, parts in _by_paper(gathered).items():
        yield f"<h2>{escape(paper)}</h2>"
        for its in parts:
            yield from _section(its, names.get(its.part.name, ()), options)


def _section(gathered: Gathered, names: Sequence[str], options: str) -> Iterator[str]:
    part = gathered.part
    yield f'<section id="{escape(part.name)}">'
    yield f"<h3>{escape(part.title)}</h3>"
    yield _verdict(gathered.verdict)
    images = [name for name in names if name.endswith(".png")]
    if images:
        yield _picture(part, gathered, images)
    elif gathered.curves:
        yield "<p>Not drawn: install the extra <code>plot</code>.</p>"
    if part.described:
        text = escape(part.described)
        yield f'<p class="described"><strong>In the paper:</strong> {text}</p>'
    if gathered.cells and part.columns:
        yield _table(gathered)
    if gathered.claims:
        yield _claims(gathered)
    if gathered.curves:
        yield _curve_numbers(gathered)
    yield _details("How it was measured and judged", part.reading)
    if gathered.problems:
        lines = "\n\n".join(f"{key}: {why}" for key, why in gathered.problems)
        yield _details(f"What is missing ({len(gathered.problems)})", lines)
    links = " · ".join(
        f'<a href="{escape(name)}">{escape(name)}</a>'
        for name in names
        if not name.endswith("-dark.png")
    )
    command = f"<code>hardmargin reproduce {escape(part.name + options)}</code>"
    yield f'<p class="files">{command}{" · " + links if links else ""}</p>'
    yield "</section>"


def _verdict(verdict: Verdict) -> str:
    badge = f'<span class="badge {KINDS[verdict.label]}">{escape(verdict.label)}</span>'
    return f'<p class="verdict">{badge} {escape(verdict.why)}</p>'


def _picture(part: Part, gathered: Gathered, images: Sequence[str]) -> str:
    panels = ", ".join(gathered.panels)
    axes = f"{part.axes.y} against {part.axes.x}" if part.axes is not None else ""
    alt = escape(f"{part.title}. {axes}: {panels}. The numbers are in the list below.")
    light = next(name for name in images if not name.endswith("-dark.png"))
    dark = "".join(
        f'<source srcset="{escape(name)}" media="(prefers-color-scheme: dark)">'
        for name in images
        if name.endswith("-dark.png")
    )
    n_columns = min(3, len(gathered.panels))
    # Narrow screens scroll a figure rather than shrink its text; wide ones do not enlarge it.
    size = f"min-width: {15 * n_columns}rem; max-width: {30 * n_columns}rem"
    image = f'<picture>{dark}<img src="{escape(light)}" alt="{alt}" style="{size}"></picture>'
    label = escape(part.title)
    return f'<div class="box figure" tabindex="0" role="region" aria-label="{label}">{image}</div>'


def _table(gathered: Gathered) -> str:
    columns = gathered.part.columns
    heads = "".join(f'<th scope="col">{escape(head(column))}</th>' for column in columns)
    rows = []
    for row, has_data in rows_and_gaps(gathered):
        if not has_data:
            cells = f'<td class="state" colspan="{len(columns)}">{NO_DATA}</td>'
        else:
            cells = "".join(_cell(gathered.cell(row, c.name), c) for c in columns)
        rows.append(f'<tr><th scope="row">{escape(row)}</th>{cells}</tr>')
    return scrolling_table(gathered.part.title, f"<tr><td></td>{heads}</tr>", rows)


def _cell(cell: Cell | None, column: Column) -> str:
    if cell is None:
        return "<td></td>"
    title = f' title="{escape(cell.reason)}"' if cell.reason else ""
    ours, paper = escape(our_number(cell, column)), escape(paper_number(cell))
    if not paper:
        return f"<td{title}><b>{ours}</b></td>"
    kind = "some" if cell.is_better else {True: "good", False: "bad", None: ""}[cell.holds]
    text = f"{mark_of(cell)} {compared(cell, column)}".strip()
    difference = f' <i class="{kind}">{escape(text)}</i>' if text else ""
    return f"<td{title}><b>{ours}</b><small>paper {paper}{difference}</small></td>"


def _claims(gathered: Gathered) -> str:
    kinds = {True: "good", False: "bad", None: "none"}
    said = {True: "holds", False: "does not hold", None: "cannot be judged from these data"}
    lines = (
        f'<li><span class="{kinds[finding.holds]}" aria-hidden="true">'
        f"{mark(finding.holds) or '?'}</span>"
        f"{escape(claimed(claim, finding))} <em>({said[finding.holds]})</em></li>"
        for claim, finding in gathered.claims
    )
    return f'<ul class="claims">{"".join(lines)}</ul>'


def _curve_numbers(gathered: Gathered) -> str:
    heads, rows = curve_table(gathered)
    top = "".join(f'<th scope="col">{escape(text)}</th>' for text in heads[2:])
    lines = [
        f'<tr><th scope="row">{escape(panel)}: {escape(name)}</th>'
        + "".join(f"<td>{escape(text)}</td>" for text in numbers)
        + "</tr>"
        for panel, name, *numbers in rows
    ]
    label = f"{gathered.part.title}: numbers"
    box = scrolling_table(label, f"<tr><td></td>{top}</tr>", lines)
    return f"<details><summary>Numbers of the curves</summary>{box}</details>"


def _details(summary: str, text: str) -> str:
    paragraphs = "".join(f"<p>{escape(p.strip())}</p>" for p in text.split("\n\n") if p.strip())
    return f"<details><summary>{escape(summary)}</summary>{paragraphs}</details>"
