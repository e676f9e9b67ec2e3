"""What Ctrl-C does to a fit."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from hardmargin.monitor import Monitor
from hardmargin.warn import warn_caller

#: Why a fit may end early, besides its limits.
ENDED_BY = {
    "callback": "A callback ended the training",
    "interrupt": "Ctrl-C ended the training (on_interrupt='keep')",
}


@contextmanager
def watched(monitor: Monitor, on_interrupt: str) -> Iterator[None]:
    """Let Ctrl-C raise, or end a fit with the model so far; warn of fits that were ended.

    The second Ctrl-C always raises. Threads other than the main one never hear it.

    Parameters
    ----------
    monitor : Monitor
        Of the fit.
    on_interrupt : {"raise", "keep"}
        What the first Ctrl-C does.
    """
    if on_interrupt == "keep" and threading.current_thread() is threading.main_thread():
        with _first_interrupt_ends(monitor):
            yield
    else:
        yield
    if monitor.stop_reason in ENDED_BY:
        warn_caller(f"{ENDED_BY[monitor.stop_reason]}: the model is the one found so far.")


@contextmanager
def _first_interrupt_ends(monitor: Monitor) -> Iterator[None]:
    before = signal.getsignal(signal.SIGINT)
    if before in (None, signal.SIG_IGN):  # not of Python, or a program in the background
        yield
        return

    def end(*_: Any) -> None:
        signal.signal(signal.SIGINT, before)
        monitor.end("interrupt")

    signal.signal(signal.SIGINT, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
