"""scikit-learn's SVC (LIBSVM): single-threaded, a kernel cache of 2 GB."""

from __future__ import annotations

from importlib.metadata import version as installed
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.svm import SVC

NAME = "scikit-learn SVC"


def version() -> str:
    return installed("scikit-learn")


def fit(X: Any, y: npt.NDArray[Any], gamma: float, C: float, n_jobs: int) -> SVC:
    return SVC(C=C, gamma=gamma, cache_size=2000).fit(X, y)


def predict(model: SVC, X: Any) -> npt.NDArray[np.int64]:
    return np.asarray(model.predict(X))


def n_support(model: SVC) -> int:
    return len(model.support_)
