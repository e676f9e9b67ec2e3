"""The command ``hardmargin``."""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Sequence

import hardmargin
from hardmargin.cli.reproduce import add_reproduce

__all__ = ["main"]

INTERRUPTED, BROKEN_PIPE = 130, 141  # a shell's exit codes for commands ended by signals


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Parameters
    ----------
    arguments : sequence of str, optional
        Command-line arguments; those of the process if not given.

    Returns
    -------
    int
        The exit code: 0 on success, 1 if something failed, 130 after Ctrl-C. Wrong arguments exit
        with 2.

    Examples
    --------
    >>> main(["reproduce", "list"])  # doctest: +ELLIPSIS
    IJCAI-07
      ijcai07-table1   Table 1: the data sets
    ...
    """
    parser = argparse.ArgumentParser(
        prog="hardmargin", description="Kernel SVMs with nothing to tune."
    )
    parser.add_argument("--version", action="version", version=hardmargin.__version__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    add_reproduce(commands)
    options = parser.parse_args(arguments)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # not every terminal can print a ✓
    try:
        code: int = options.run(options)
        sys.stdout.flush()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # The reader, such as head, has closed the pipe: discard the rest of the output.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    return code
