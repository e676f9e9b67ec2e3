"""What ends a fit besides its clock: callbacks of scikit-learn 1.9 and later, and Ctrl-C.

``clf.set_callbacks(ProgressBar())`` works as with scikit-learn's own estimators: every report of
the monitor is a task of the fit, and a callback that returns True at its end stops the fit. A fit
that fails is torn down without the end of its own task, as there.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from hardmargin.monitor import Event, Listener, Monitor

try:
    from sklearn.callback import CallbackSupportMixin as CallbackSupportMixin
    from sklearn.callback import with_callbacks as with_callbacks
except ImportError:  # before 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Nothing to support."""

    def with_callbacks(method: Any) -> Any:
        """Leave a method alone."""
        return method


#: Why a fit may end early, besides its limits.
ENDED_BY = {
    "callback": "A callback ended the training",
    "interrupt": "Ctrl-C ended the training (on_interrupt='keep')",
}


def callback_listener(estimator: Any) -> Listener:
    """Make the listener that tells an estimator's callbacks."""
    fit = estimator._init_callback_context(max_subtasks=None)
    fit.call_on_fit_task_begin(estimator=estimator)
    lock = threading.Lock()

    def tell(event: Event) -> bool:
        with lock:  # threads report
            task = fit.subcontext(task_name=event.detail or event.unit)
            task.call_on_fit_task_begin(estimator=estimator)
            about = {"stage": event.stage, event.what: event.value}
            return bool(task.call_on_fit_task_end(estimator=estimator, metadata=about))

    return tell


@contextmanager
def first_interrupt_ends(monitor: Monitor) -> Iterator[None]:
    """Let the first Ctrl-C end a fit with the model so far; the second raises.

    Threads other than the main one never hear it.

    Parameters
    ----------
    monitor : Monitor
        Of the fit.
    """
    before = signal.getsignal(signal.SIGINT)
    is_main = threading.current_thread() is threading.main_thread()
    # Signals may be handled by something else than Python, or ignored in the background.
    if not is_main or before in (None, signal.SIG_IGN):
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
