"""What went wrong, in one line."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

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


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Name a file that the system cannot read, or that is compressed and was cut short."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}.") from error


def require_unique(path: Path, names: Iterable[str]) -> None:
    """Refuse a file with two columns of one name."""
    if repeated := sorted(name for name, count in Counter(names).items() if count > 1):
        raise InputError(f"{path} has two columns named {repeated[0]!r}.")


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a hint that lists similar names, in any case, or nothing."""
    by_lower = {each.lower(): each for each in known}
    close = difflib.get_close_matches(name.lower(), by_lower, n=2, cutoff=0.6)
    return f"; did you mean {' or '.join(repr(by_lower[c]) for c in close)}?" if close else ""
