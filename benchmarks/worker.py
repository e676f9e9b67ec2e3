"""Fit a rival of `accuracy.py` or `large.py` in its own environment; `separate.py` starts it.

Every line of the input is a JSON object: `split`, an .npz file; `out`, where the labels and
probabilities go; and `cut`, a limit in seconds. Its answer is a line with the status and the times.
The library is imported once, and every fit is a forked child with one thread.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from itertools import product
from typing import Any

import forked
import numpy as np

Row = dict[str, Any]

# The search of xRFM: its defaults are a bandwidth of 10 and a regularisation of 1e-3.
BANDWIDTHS = (2.0, 10.0, 50.0)
REGULARISATIONS = (1e-3, 1e-1)


def main() -> None:
    name = sys.argv[1]
    make = MODELS[name]()
    for line in sys.stdin:
        job = json.loads(line)
        row = forked.run(partial(measure, make, job["split"], job["out"]), job["cut"])
        print(json.dumps(row | {"version": version(name.split("-")[0])}), flush=True)


def measure(make: Callable[[], Any], split: str, out: str) -> Row:
    """Fit, predict, and store what was predicted; only the calls of the library are timed."""
    parts = np.load(split)
    X, y, X_test = parts["X"], parts["y"], parts["X_test"]
    wall, cpu = time.perf_counter(), time.process_time()
    model = make().fit(X, y)
    row = {"fit_wall_s": time.perf_counter() - wall, "fit_cpu_s": time.process_time() - cpu}
    wall = time.perf_counter()
    labels = np.ravel(model.predict(X_test))
    row["predict_s"] = time.perf_counter() - wall
    np.savez(out, labels=labels, probabilities=model.predict_proba(X_test))
    return row


def lightgbm() -> Callable[[], Any]:
    from lightgbm import LGBMClassifier

    return partial(LGBMClassifier, n_jobs=1, random_state=0, verbosity=-1)


def large_lightgbm() -> Callable[[], Any]:
    return partial(lightgbm(), n_estimators=500, num_leaves=63)


def catboost() -> Callable[[], Any]:
    from catboost import CatBoostClassifier

    quiet = {"logging_level": "Silent", "allow_writing_files": False}
    return partial(CatBoostClassifier, thread_count=1, random_seed=0, **quiet)


def xrfm() -> Callable[[], Any]:
    import torch

    torch.set_num_threads(1)
    torch.set_num_interop_threads(1)
    return SearchedXRFM


class SearchedXRFM:
    """xRFM with the best of six settings, judged by the log-loss on a fifth of the rows.

    The package needs these rows to choose the iteration as well, and it does not refit: the model
    has been trained on four fifths. Columns that are not 0 or 1 are standardised, as it recommends.
    """

    def fit(self, X: Any, y: Any) -> SearchedXRFM:
        from sklearn.model_selection import train_test_split

        is_scaled = ~np.isin(X, (0.0, 1.0)).all(axis=0) & (np.ptp(X, axis=0) > 0)
        self.shift = np.where(is_scaled, X.mean(axis=0), 0.0)
        self.scale = np.where(is_scaled, X.std(axis=0), 1.0)
        can_stratify = np.bincount(y).min() >= 2 and np.bincount(y).size <= len(y) // 5
        kept, held = train_test_split(
            np.arange(len(y)), test_size=0.2, random_state=0, stratify=y if can_stratify else None
        )
        Z = self._scaled(X)
        parts = (Z[kept], y[kept], Z[held], y[held])
        models = [_xrfm(b, r).fit(*parts) for b, r in product(BANDWIDTHS, REGULARISATIONS)]
        self.model = min(models, key=lambda m: _log_loss(m.predict_proba(Z[held]), y[held]))
        return self

    def predict(self, X: Any) -> Any:
        return self.model.predict(self._scaled(X))

    def predict_proba(self, X: Any) -> Any:
        return self.model.predict_proba(self._scaled(X))

    def _scaled(self, X: Any) -> Any:
        return ((X - self.shift) / self.scale).astype(np.float32)


def _xrfm(bandwidth: float, regularisation: float) -> Any:
    """The package's default model, but for two numbers."""
    from xrfm import xRFM

    kernel = {"kernel": "l2_high_dim", "exponent": 1.0, "diag": False, "bandwidth_mode": "constant"}
    fit = {"reg": regularisation, "iters": 5, "return_best_params": True, "early_stop_rfm": False}
    return xRFM(
        rfm_params={"model": kernel | {"bandwidth": bandwidth}, "fit": fit},
        **{"device": "cpu", "n_threads": 1, "random_state": 0, "verbose": False},
    )


def _log_loss(P: Any, y: Any) -> float:
    return float(-np.log(np.maximum(P[np.arange(len(y)), y], 1e-6)).mean())


MODELS = {
    "lightgbm": lightgbm,
    "lightgbm-500x63": large_lightgbm,
    "catboost": catboost,
    "xrfm": xrfm,
}


if __name__ == "__main__":
    main()
