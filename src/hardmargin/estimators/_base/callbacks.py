"""Callbacks of scikit-learn 1.9 and later, driven by the monitor of a fit.

``clf.set_callbacks(ProgressBar())`` then works as with scikit-learn's own estimators: every report
of the monitor is a task of the fit, and a callback that returns True at its end stops the fit.
"""

from __future__ import annotations

from threading import Lock
from typing import Any

from hardmargin.monitor import Event, Listener

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # before 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Nothing to support."""

    def with_callbacks(method: Any) -> Any:
        """Leave a method alone."""
        return method


class CallbackSupport(CallbackSupportMixin):
    """Base of estimators whose ``fit`` ends what its callbacks began."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "fit" in cls.__dict__:
            cls.fit = with_callbacks(cls.__dict__["fit"])


def callback_listeners(estimator: Any) -> list[Listener]:
    """Make the listener that tells an estimator's callbacks, if it has any."""
    if not getattr(estimator, "_skl_callbacks", None):
        return []
    fit = estimator._init_callback_context(max_subtasks=None)
    fit.call_on_fit_task_begin(estimator=estimator)
    lock = Lock()

    def tell(event: Event) -> bool:
        with lock:  # threads report
            task = fit.subcontext(task_name=event.detail or event.unit)
            task.call_on_fit_task_begin(estimator=estimator)
            about = {"stage": event.stage, event.what: event.value}
            return bool(task.call_on_fit_task_end(estimator=estimator, metadata=about))

    return [tell]
