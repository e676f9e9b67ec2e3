"""Calls that are given up after some time, even in compiled code that cannot be interrupted."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

from threadpoolctl import threadpool_limits

from hardmargin.reproduction.parts import CutError

__all__ = ["serve", "within"]

Answer = TypeVar("Answer")

# First `sys.path`, which the function's module may need.
CHILD = """\
import pickle, sys
sys.path[:] = pickle.load(sys.stdin.buffer)
from hardmargin.reproduction.limits import serve
serve()
"""


def within(seconds: float | None, function: Callable[..., Answer], *arguments: Any) -> Answer:
    """Call a function in a process of its own, which is ended when time is up.

    Starting the process takes a second or two, which counts. Use it for rivals; the estimators of
    this package have ``max_time``.

    Parameters
    ----------
    seconds : float or None
        The limit; None calls the function in this process.
    function : callable
        A module-level function.
    *arguments
        Its arguments; they and the answer must be picklable.

    Returns
    -------
    object
        What the function returns.

    Raises
    ------
    CutError
        If it took longer, or the system ended its process, perhaps for lack of memory.

    Examples
    --------
    >>> within(None, max, 1, 2)
    2
    """
    if seconds is None:
        return function(*arguments)
    # Not multiprocessing, which cannot start processes from joblib's workers.
    request = pickle.dumps(sys.path) + pickle.dumps((os.getpid(), function, arguments))
    command = [sys.executable, "-c", CHILD]
    try:
        done = subprocess.run(
            command, input=request, stdout=subprocess.PIPE, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired:
        raise CutError(f"longer than {seconds:g} s") from None
    if done.returncode != 0:
        raise CutError("its process was ended by the system; memory may be short")
    is_error, answer = pickle.loads(done.stdout)
    if is_error:
        raise answer
    found: Answer = answer
    return found


def serve() -> None:
    """Answer one request on standard input, in the process that `within` starts."""
    parent, function, arguments = pickle.load(sys.stdin.buffer)
    with os.fdopen(os.dup(1), "wb") as pipe:
        # What the function prints must not mix with the answer.
        os.dup2(2, 1)
        # Ctrl-C reaches all processes of a terminal: the parent ends this one.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
        answer: tuple[bool, Any]
        try:
            with threadpool_limits(1):
                answer = False, function(*arguments)
        except Exception as error:
            answer = True, error
        pickle.dump(answer, pipe)


def _end_with(parent: int) -> None:
    """End this process when its parent is gone, which nothing else reports."""
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)
