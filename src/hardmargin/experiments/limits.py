"""Calls that are given up after some time, even in compiled code that can not be interrupted."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any, TypeVar

from threadpoolctl import threadpool_limits

from .parts import CutError

__all__ = ["within"]

Answer = TypeVar("Answer")


def within(seconds: float | None, function: Callable[..., Answer], *arguments: Any) -> Answer:
    """Call a function in a process of its own, which is ended when the time is over.

    A process takes a second or two to start, which counts. Use it for rivals; the estimators of
    this package have ``max_time``.

    Parameters
    ----------
    seconds : float or None
        The limit; None calls the function right here.
    function : callable
        A function of a module.
    *arguments
        What it is called with; they and the answer must be picklable.

    Returns
    -------
    object
        What the function returns.

    Raises
    ------
    CutError
        If it took longer, or its process was ended by the system, as for want of memory.

    Examples
    --------
    >>> within(None, max, 1, 2)
    2
    """
    if seconds is None:
        return function(*arguments)
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_answer, args=(there, function, arguments), daemon=True)
    process.start()
    # Only the child holds the other end then, so that its death shows as the end of the pipe.
    there.close()
    try:
        if not here.poll(seconds):
            raise CutError(f"longer than {seconds:g} s")
        is_error, answer = here.recv()
    except EOFError:
        raise CutError("its process was ended by the system; memory may be short") from None
    finally:
        process.kill()
        process.join()
        here.close()
    if is_error:
        raise answer
    found: Answer = answer
    return found


def _answer(pipe: Connection, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    try:
        with threadpool_limits(1):
            answer = False, function(*arguments)
    except Exception as error:
        answer = True, error
    pipe.send(answer)
