"""What every fitted model can do, whatever it is made of."""

from __future__ import annotations

from typing import Protocol

from hardmargin.kernels import FloatArray, Rows


class Model(Protocol):
    """What predicts."""

    def seen(self, rows: Rows) -> Rows:
        """Return rows, without gaps, in the form that `margins` takes."""

    def margins(self, Q: Rows, n_jobs: int | None) -> FloatArray:
        """Scores of all machines or, for a mixture, log-probabilities of all classes."""

    @property
    def query_bytes(self) -> int:
        """Memory that a prediction takes, per query."""
