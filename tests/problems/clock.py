"""Clocks that tests set, so that no test waits."""

from types import SimpleNamespace


class Clock:
    """A clock that every look moves on by `step` seconds; others set ``now``."""

    def __init__(self, step=0.0):
        self.now, self.step = 0.0, step

    def __call__(self):
        self.now += self.step
        return self.now


def set_clock(monkeypatch, clock):
    """Let all fits of a test go by this clock."""
    monkeypatch.setattr("hardmargin.monitor.time", SimpleNamespace(monotonic=clock))
