"""The commands, each imported when it is used."""

from __future__ import annotations

import importlib
import sys
import traceback
from collections.abc import Sequence

import click

import hardmargin
from hardmargin.cli import COMMANDS, FAILED, INTERRUPTED
from hardmargin.cli.errors import InputError


class _Commands(click.Group):
    """Finds a command in the module of its name."""

    def list_commands(self, context: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        try:
            module = importlib.import_module(f"hardmargin.cli.{name}")
        except ImportError as error:
            raise InputError(
                f"hardmargin {name} needs a package that is not installed ({error}): "
                "pip install 'hardmargin[cli]'"
            ) from error
        command: click.Command = getattr(module, name)
        return command

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.command(cls=_Commands)
@click.version_option(hardmargin.__version__, message="%(version)s")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
def group(debug: bool) -> None:
    """Kernel SVMs with nothing to tune."""


def run(arguments: Sequence[str] | None, begin: float) -> int:
    """Run a command that began at a time of the clock, and return its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    context = None
    try:
        # Not group.main, which has its own way with pipes that the reader has closed.
        with group.make_context("hardmargin", given, obj=begin) as context:
            code = group.invoke(context)
    except click.exceptions.Exit as finished:  # after --help
        return finished.exit_code
    except Exception as error:
        if context is not None and context.params.get("debug"):
            traceback.print_exc()
        return _told(error)
    return code if isinstance(code, int) else 0


def _told(failure: Exception) -> int:
    """Say in one line what went wrong, and return the exit code."""
    try:
        raise failure
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except click.Abort:
        click.echo("interrupted", err=True)
        return INTERRUPTED
    except BrokenPipeError:
        raise
    except OSError as error:  # such as a full disk
        where = f"{error.filename}: " if error.filename else ""
        click.echo(f"hardmargin: {where}{error.strerror or error}", err=True)
        return FAILED
    except ModuleNotFoundError as error:
        click.echo(
            f"hardmargin: {error.name} is not installed: pip install 'hardmargin[cli]'", err=True
        )
        return InputError.exit_code
    except MemoryError:
        click.echo("hardmargin: there is too little memory for this table.", err=True)
        return FAILED
    except Exception as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        click.echo(
            f"hardmargin: something unexpected happened ({reason}); "
            "'hardmargin --debug' before the same command shows where.",
            err=True,
        )
        return FAILED
