"""The bar of rich, in a terminal only."""

import io

from hardmargin.reproduction import progress
from hardmargin.reproduction.progress import Progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


def shown(stream, **options):
    with Progress(2, stream, **options) as bar:
        bar.done("a", "0.1 s [not markup]")
        bar.done("b", "0.2 s")
    return stream.getvalue()


def test_a_bar_in_a_terminal():
    text = shown(Terminal())
    assert "a: 0.1 s [not markup]" in text
    assert "2/2" in text
    assert "[1/2]" not in text


def test_lines_elsewhere(monkeypatch):
    lines = "[1/2] a: 0.1 s [not markup]\n[2/2] b: 0.2 s\n"
    assert shown(io.StringIO()) == lines
    monkeypatch.setattr(progress, "has_rich", lambda: False)
    assert shown(Terminal()) == lines


def test_quiet():
    assert shown(Terminal(), quiet=True) == ""


def test_a_task_that_is_only_counted():
    stream = io.StringIO()
    with Progress(2, stream) as bar:
        bar.done("a", None)
        bar.done("b", "0.2 s")
    assert stream.getvalue() == "[2/2] b: 0.2 s\n"
