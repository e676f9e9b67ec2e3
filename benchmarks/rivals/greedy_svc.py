"""hardmargin's GreedySVC, which has no C."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

import hardmargin
from hardmargin import GreedySVC

NAME = "hardmargin GreedySVC"


def version() -> str:
    return str(hardmargin.__version__)


def fit(X: Any, y: npt.NDArray[Any], gamma: float, C: float, n_jobs: int) -> GreedySVC:
    return GreedySVC(gamma, max_visits=1, threshold=0.0, n_jobs=n_jobs).fit(X, y)


def predict(model: GreedySVC, X: Any) -> npt.NDArray[np.int64]:
    return np.asarray(model.predict(X))


def n_support(model: GreedySVC) -> int:
    return len(model.support_)
