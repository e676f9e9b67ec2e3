"""One measurement in a process of its own, with a limit on its time."""

from __future__ import annotations

import multiprocessing
import signal
import warnings
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

Row = dict[str, Any]

# A forked child shares the data and the imported modules, so thousands of cells load nothing again.
_FORK = multiprocessing.get_context("fork")


def run(work: Callable[[], Row], cut: float) -> Row:
    """The row that `work` returns, with its `status`: ok, cut (after `cut` seconds) or failed."""
    receiver, sender = _FORK.Pipe(duplex=False)
    process = _FORK.Process(target=_child, args=(work, cut, sender))
    process.start()
    sender.close()
    try:
        row: Row = receiver.recv()
    except EOFError:
        row = {}
    process.join()
    if row:
        return row
    if process.exitcode == -signal.SIGALRM:
        return {"status": "cut"}
    return {"status": "failed", "note": f"exit code {process.exitcode}"}


def _child(work: Callable[[], Row], cut: float, sender: Connection) -> None:
    # The signal's default action ends the process, inside compiled loops too.
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, cut)
    warnings.simplefilter("ignore")
    try:
        row = {"status": "ok"} | work()
    except Exception as error:
        row = {"status": "failed", "note": f"{type(error).__name__}: {error}".splitlines()[0]}
    sender.send(row)
