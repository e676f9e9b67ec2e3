"""Clocks that tests set, so that no test waits."""

from types import SimpleNamespace


class Clock:
    """A clock that advances by `step` seconds at every call; tests may also set ``now``."""

    def __init__(self, step=0.0):
        self.now, self.step = 0.0, step

    def __call__(self):
        self.now += self.step
        return self.now


def set_clock(monkeypatch, clock):
    """Make all fits of a test use this clock."""
    monkeypatch.setattr("hardmargin.monitor.time", SimpleNamespace(monotonic=clock))
