"""Reports of a reproduction: for the terminal, as CSV files, as a page and as Markdown."""

from hardmargin.reproduction.report.markdown import markdown_page, write_docs
from hardmargin.reproduction.report.page import html_page
from hardmargin.reproduction.report.plots import draw_figure
from hardmargin.reproduction.report.tables import write_csv
from hardmargin.reproduction.report.text import text_part
from hardmargin.reproduction.report.write import write_report

__all__ = [
    "draw_figure",
    "html_page",
    "markdown_page",
    "text_part",
    "write_csv",
    "write_docs",
    "write_report",
]
