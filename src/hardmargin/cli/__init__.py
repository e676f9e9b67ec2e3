"""The command ``hardmargin``."""

from __future__ import annotations

import io
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

__all__ = ["main"]

INTERRUPTED, BROKEN_PIPE = 130, 141  # a shell's exit codes for commands ended by signals
FAILED, NOT_INSTALLED = 1, 2

#: Commands by name, with the line that ``hardmargin --help`` shows; each has a module of its own,
#: which is imported when it is used.
COMMANDS = {
    "train": "Train a classifier on a table.",
    "predict": "Predict the classes of a table's rows, with probabilities.",
    "inspect": "Show what a model is and how it was trained.",
    "compare": "Compare classifiers on a table, in a report.",
    "export": "Convert a model to ONNX.",
    "reproduce": "Reproduce the papers' tables and figures.",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Parameters
    ----------
    arguments : sequence of str, optional
        Command-line arguments; those of the process if not given.

    Returns
    -------
    int
        The exit code: 0 on success, 1 if something failed, 2 if the arguments or the data are
        wrong, 130 after Ctrl-C.

    Examples
    --------
    >>> main(["reproduce", "list"])  # doctest: +ELLIPSIS
    IJCAI-07
      ijcai07-table1   Table 1: the data sets
    ...
    """
    begin = time.monotonic()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # not every terminal can print a ✓
    try:
        from hardmargin.cli.group import run
    except ImportError as error:
        print(
            f"hardmargin: the command needs more packages ({error}): pip install 'hardmargin[cli]'",
            file=sys.stderr,
        )
        return NOT_INSTALLED
    try:
        with _ended_like_ctrl_c():
            code = run(arguments, begin)
        sys.stdout.flush()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # The reader, such as head, has closed the pipe: discard the rest of the output.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    return code


@contextmanager
def _ended_like_ctrl_c() -> Iterator[None]:
    """Let SIGTERM end a command as Ctrl-C does: worker processes end too, and files are whole."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread hears signals
        return

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
