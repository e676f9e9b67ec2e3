"""Options that several commands share."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from hardmargin.cli.errors import InputError
from hardmargin.cli.text_files import TextFormat

Command = Callable[..., Any]


def _apply(options: list[Callable[[Command], Command]], command: Command) -> Command:
    for option in reversed(options):
        command = option(command)
    return command


def _character(context: click.Context, parameter: click.Parameter, text: str | None) -> str | None:
    character = "\t" if text == "\\t" else text
    if character is not None and not (len(character) == 1 and character.isascii()):
        raise InputError(f"--delimiter {text}: it must be a single character, or \\t for tabs.")
    return character


def _known_encoding(context: click.Context, parameter: click.Parameter, name: str) -> str:
    try:
        "a".encode(name)
    except (LookupError, UnicodeError) as error:
        raise InputError(f"--encoding {name}: there is no such encoding.") from error
    return name


def reading_options(command: Command) -> Command:
    """How text files are written; the command gets it as one argument, ``written``."""

    @functools.wraps(command)
    def with_format(
        *,
        delimiter: str | None,
        encoding: str,
        decimal: str | None,
        missing: tuple[str, ...],
        skip_lines: int,
        **others: Any,
    ) -> Any:
        written = TextFormat(delimiter, encoding, decimal, missing, skipped=skip_lines)
        return command(written=written, **others)

    return _apply(
        [
            click.option(
                "--delimiter",
                callback=_character,
                help="Between columns of a text file; found if not given.",
            ),
            click.option(
                "--encoding",
                default="utf-8",
                show_default=True,
                callback=_known_encoding,
                help="Of a text file without a byte-order mark.",
            ),
            click.option(
                "--decimal",
                type=click.Choice([".", ","]),
                help="In numbers of a text file; a point if not given, unless ';' divides columns "
                "and numbers have decimal commas.",
            ),
            click.option(
                "--missing",
                multiple=True,
                metavar="TEXT",
                help="Stands for a missing value in a text file, as an empty cell and NA do; "
                "repeatable.",
            ),
            click.option(
                "--skip-lines",
                type=click.IntRange(min=0),
                default=0,
                metavar="N",
                help="Leave out so many lines below the header of a text file, such as a second "
                "header.",
            ),
        ],
        with_format,
    )


def table_options(command: Command) -> Command:
    """Which table to learn from."""
    return _apply(
        [
            click.argument("file", type=click.Path(path_type=Path)),
            click.option("--target", metavar="COLUMN", help="The column to predict."),
            click.option(
                "--drop", multiple=True, metavar="COLUMN", help="Leave a column out; repeatable."
            ),
            click.option(
                "--groups",
                metavar="COLUMN",
                help="Rows with the same value belong together, as those of one patient: none of "
                "them is held out while others train.",
            ),
            reading_options,
        ],
        command,
    )


def max_bytes_option(command: Command) -> Command:
    """How much memory a model may take."""
    option = click.option(
        "--max-bytes",
        type=click.IntRange(min=1),
        metavar="BYTES",
        help="The most memory that the model may take.  [default: 512 MB, or 100 times its file]",
    )
    return option(command)


def training_options(command: Command) -> Command:
    """How to train."""
    return _apply(
        [
            click.option(
                "--estimator", default="EnsembleSVC", show_default=True, help="The classifier."
            ),
            click.option(
                "--set",
                "settings",
                multiple=True,
                metavar="NAME=VALUE",
                help="A parameter of the classifier; repeatable.",
            ),
            *shared_options(),
        ],
        command,
    )


def shared_options() -> list[Callable[[Command], Command]]:
    """Time, threads and seed."""
    return [
        click.option(
            "--max-time",
            type=click.FloatRange(min=0, min_open=True),
            metavar="SECONDS",
            help="The best model that this time allows, from the start of the command to its end.",
        ),
        click.option("--n-jobs", type=int, metavar="N", help="Threads; -1 is one per core."),
        click.option("--seed", type=click.IntRange(min=0), help="For folds and subsamples."),
    ]
