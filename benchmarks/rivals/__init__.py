"""One adapter per file: the same few functions for every library that is measured."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Protocol, cast

import numpy as np
import numpy.typing as npt

OURS = "greedy_svc"
RIVALS = ("sklearn_svc", "intelex_svc")


class Adapter(Protocol):
    """The interface of a module in this folder."""

    NAME: str

    def version(self) -> str: ...

    def fit(self, X: Any, y: npt.NDArray[Any], gamma: float, C: float, n_jobs: int) -> Any: ...

    def predict(self, model: Any, X: Any) -> npt.NDArray[np.int64]: ...

    def n_support(self, model: Any) -> int: ...


def load(name: str) -> Adapter:
    """Import an adapter; an ImportError means that its library is not installed."""
    return cast("Adapter", import_module(f"{__name__}.{name}"))
