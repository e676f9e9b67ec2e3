"""Reports of a reproduction: for the terminal, as CSV files, as a page and as Markdown."""

from .markdown import markdown_page, write_docs
from .page import html_page
from .plots import draw_figure
from .tables import write_csv
from .text import text_part
from .write import write_report

__all__ = [
    "draw_figure",
    "html_page",
    "markdown_page",
    "text_part",
    "write_csv",
    "write_docs",
    "write_report",
]
