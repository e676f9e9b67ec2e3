"""scikit-learn-intelex's SVC (oneDAL): threaded, the same cache."""

from __future__ import annotations

from importlib.metadata import version as installed
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearnex.svm import SVC

NAME = "scikit-learn-intelex SVC"

# Its default of -1 means 10,000 iterations, which would stop before the optimum.
MAX_ITER = 10**8


def version() -> str:
    return installed("scikit-learn-intelex")


def fit(X: Any, y: npt.NDArray[Any], gamma: float, C: float, n_jobs: int) -> SVC:
    return SVC(C=C, gamma=gamma, cache_size=2000, max_iter=MAX_ITER, n_jobs=n_jobs).fit(X, y)


def predict(model: SVC, X: Any) -> npt.NDArray[np.int64]:
    return np.asarray(model.predict(X))


def n_support(model: SVC) -> int:
    return len(model.support_)
