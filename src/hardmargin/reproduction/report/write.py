"""Write a whole report into a folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hardmargin.reproduction.report.machine import Conditions
from hardmargin.reproduction.report.markdown import markdown_page
from hardmargin.reproduction.report.page import html_page
from hardmargin.reproduction.report.plots import draw_figure
from hardmargin.reproduction.report.tables import write_csv
from hardmargin.reproduction.verdicts import Gathered

__all__ = ["write_report"]


def write_report(gathered: Sequence[Gathered], conditions: Conditions, folder: Path) -> Path:
    """Write ``index.html``, ``reproduction.md``, a CSV file per part and a PNG file per figure.

    Parameters
    ----------
    gathered : sequence of Gathered
        The parts.
    conditions : Conditions
        Computer and run.
    folder : Path
        Where to write; created if it does not exist.

    Returns
    -------
    Path
        The page.
    """
    folder.mkdir(parents=True, exist_ok=True)
    names, images = {}, {}
    for its in gathered:
        name = its.part.name
        drawn = draw_figure(its, folder)
        names[name] = [*drawn, *write_csv(its, folder)]
        if drawn:
            images[name] = drawn[0]
    page = folder / "index.html"
    page.write_text(html_page(gathered, conditions, names), encoding="utf-8")
    markdown = markdown_page(gathered, conditions, images)
    (folder / "reproduction.md").write_text(markdown, encoding="utf-8")
    return page
