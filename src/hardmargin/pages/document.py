"""One template for all reports."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files


def document(
    title: str,
    *,
    head: str,
    contents: str,
    body: str,
    facts: Iterable[tuple[str, str]],
    style: str = "",
) -> str:
    """Write a page, style included.

    Parameters
    ----------
    title : str
        Its heading.
    head : str
        What stands below the heading, in HTML.
    contents : str
        Links to the parts, in HTML.
    body : str
        The parts, in HTML.
    facts : iterable of (str, str)
        What the footer lists: name and value.
    style : str, optional
        CSS beyond that of all reports.
    """
    shared = (files("hardmargin.pages") / "document.css").read_text(encoding="utf-8")
    listed = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in facts)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<style>
{shared}{style}</style>
</head>
<body>
<div class="frame">
<header>
<h1>{escape(title)}</h1>
{head}
</header>
<nav aria-label="Parts">
{contents}</nav>
<main>
{body}
<footer><dl>{listed}</dl></footer>
</main>
</div>
</body>
</html>
"""


def scrolling_table(label: str, heads: str, rows: Sequence[str]) -> str:
    """Make a table that scrolls where it is wider than the screen.

    Parameters
    ----------
    label : str
        What a screen reader says.
    heads : str
        The first row, in HTML.
    rows : sequence of str
        The other rows, in HTML.
    """
    lines = "\n".join(rows)
    # Focus lets the keyboard scroll a table that is wider than the screen.
    return (
        f'<div class="box" tabindex="0" role="region" aria-label="{escape(label)}"><table>'
        f"<thead>{heads}</thead>\n<tbody>\n{lines}\n</tbody></table></div>"
    )
