"""What went wrong, in one line."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

import click

WRONG_INPUT = 2


class InputError(click.ClickException):
    """Something that the user can fix: the message names the file, the row and the column."""

    exit_code = WRONG_INPUT

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(message.split()))

    def show(self, file: object = None) -> None:
        """Print the line."""
        click.echo(f"hardmargin: {self.message}", err=True)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a hint that lists similar names, or nothing."""
    close = difflib.get_close_matches(name, list(known), n=2, cutoff=0.6)
    return f"; did you mean {' or '.join(map(repr, close))}?" if close else ""
