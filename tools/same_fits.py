"""Tell whether a change of the code changes fits, bit for bit.

    python tools/same_fits.py freeze build/fits.pkl        before the change
    python tools/same_fits.py compare build/fits.pkl       after it

Every estimator is fitted to rows of many kinds. What is compared is all that users see: fitted
attributes, predictions and warnings. ``--only NAME`` takes the cases whose names contain NAME. The
file holds pickled arrays: do not read one that others could have written.

Two machines, or two versions of NumPy, round differently: freeze and compare in one place.
"""

from __future__ import annotations

import argparse
import pickle
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.base import BaseEstimator, clone
from sklearn.datasets import make_classification

import hardmargin
from hardmargin.solvers import greedy, staged_vote

#: Rows of most cases: enough for all choices of the self-tuning classifiers.
N_ROWS = 160

#: Rows of the last kind, which one vote cannot take.
MANY_ROWS = 12_000

#: What fits are asked to predict.
METHODS = ("predict", "decision_function", "predict_proba", "transform", "score_samples")

SELF_TUNING = ("EnsembleSVC", "GreedySVC")

#: Estimators, with limits that keep a fit short. Those that take seconds on many rows are not
#: fitted to them.
ESTIMATORS: dict[str, tuple[BaseEstimator, bool]] = {
    "CoreVectorSVC": (hardmargin.CoreVectorSVC(), True),
    "DiversifiedSVC": (hardmargin.DiversifiedSVC(2), True),
    "EnsembleSVC": (hardmargin.EnsembleSVC(), True),
    "EnsembleSVC, given stages": (hardmargin.EnsembleSVC(20), False),
    "EnsembleSVC, one against the rest": (hardmargin.EnsembleSVC(multi_class="ovr"), False),
    "EnsembleSVC, low rank": (hardmargin.EnsembleSVC(rank=30), False),
    "EnsembleSVC, one machine": (hardmargin.EnsembleSVC(max_cell_rows=None, rank=50), True),
    "EnsembleSVC, balanced": (hardmargin.EnsembleSVC(class_weight="balanced"), False),
    "GreedySVC": (hardmargin.GreedySVC(), True),
    "GreedySVC, balanced": (hardmargin.GreedySVC(class_weight="balanced"), False),
    "GreedySVC, published": (hardmargin.GreedySVC(0.1, max_visits=1, threshold=0.0), True),
    "HardMarginSVC": (hardmargin.HardMarginSVC(max_stages=3_000), False),
    "MarginDiscriminantAnalysis": (hardmargin.MarginDiscriminantAnalysis(2), True),
    "MinimumEnclosingBall": (hardmargin.MinimumEnclosingBall(), True),
    "MultiplicativeSVC": (hardmargin.MultiplicativeSVC(max_stages=100), False),
    "ParzenClassifier": (hardmargin.ParzenClassifier(), True),
    "PathSVC, folds": (hardmargin.PathSVC(C_max=1.0, max_stages=300), False),
    "PathSVC, leave one out": (hardmargin.PathSVC("loo", C_max=10.0, max_stages=300), False),
    "RhoEnsembleSVC": (hardmargin.RhoEnsembleSVC(max_stages=30), False),
    "RhoSVC": (hardmargin.RhoSVC(max_stages=30), False),
    "RigorousSVC": (hardmargin.RigorousSVC(C_max=100.0, max_stages=300), False),
}

#: Rows and what else ``fit`` takes, and rows to predict.
Data = tuple[tuple[Any, ...], Any]


def main() -> int:
    """Freeze or compare."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("what", choices=("freeze", "compare"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--only", default="", metavar="NAME", help="cases whose names contain this")
    options = parser.parse_args()
    if options.what == "freeze":
        frozen = {name: seen_by_users(*case) for name, case in cases(options.only)}
        options.file.parent.mkdir(parents=True, exist_ok=True)
        options.file.write_bytes(pickle.dumps(frozen))
        print(f"{len(frozen)} fits")
        return 0
    frozen = pickle.loads(options.file.read_bytes())
    n_changed = n_compared = 0
    for name, case in cases(options.only):
        if name not in frozen:
            print(f"{name}: not in the file")
            continue
        differences = list(compared(frozen[name], seen_by_users(*case)))
        n_compared += 1
        n_changed += bool(differences)
        for difference in differences:
            print(f"{name}: {difference}")
    print(f"{n_changed} of {n_compared} fits changed")
    return int(n_changed > 0)


# --- what is fitted ------------------------------------------------------------------------------


def cases(only: str) -> Iterator[tuple[str, tuple[BaseEstimator, Callable[[], Data]]]]:
    """Yield names, estimators and rows."""
    for kind, make in KINDS.items():
        for name, (estimator, takes_many) in ESTIMATORS.items():
            self_tunes = name.startswith(SELF_TUNING)
            if kind == "many rows" and not takes_many:
                continue
            if kind in ("categories and gaps", "little time") and not self_tunes:
                continue
            if kind == "precomputed" and "low rank" in name:
                continue
            model = clone(estimator)
            known = model.get_params()
            if kind == "precomputed":
                model.set_params(kernel="precomputed")
            if kind == "little time":
                model.set_params(max_time=1_000.0)
            if "random_state" in known:
                model.set_params(random_state=0)
            if only in (case := f"{name} on {kind}"):
                yield case, (model, make)


def generated(n_rows: int = N_ROWS, n_classes: int = 2) -> tuple[Any, Any, Any]:
    """Make rows of overlapping classes, and rows to predict."""
    X, y = make_classification(
        n_rows + 50,
        8,
        n_informative=5,
        n_redundant=1,
        n_classes=n_classes,
        n_clusters_per_class=1 if n_classes > 2 else 3,
        flip_y=0.1,
        random_state=0,
    )
    return X[:n_rows], y[:n_rows], X[n_rows:]


def dense() -> Data:
    X, y, new = generated()
    return (X, y), new


def sparse() -> Data:
    X, y, new = generated()
    return (sp.csr_array(np.where(X > 0, X, 0.0)), y), sp.csr_array(np.where(new > 0, new, 0.0))


def weighted() -> Data:
    X, y, new = generated()
    return (X, y, np.random.default_rng(0).integers(0, 4, size=len(y)) / 2), new


def three_classes() -> Data:
    X, y, new = generated(n_classes=3)
    return (X, np.array(["ash", "beech", "oak"])[y]), new


def precomputed() -> Data:
    X, y, new = generated()
    return (gaussian(X, X), y), gaussian(new, X)


def gaussian(A: Any, B: Any) -> Any:
    return np.exp(-0.1 * np.square(A[:, None] - B).sum(axis=2))


def categories_and_gaps() -> Data:
    X, y, new = generated()
    tables = []
    for rows in (X, new):
        table = pd.DataFrame(rows, columns=[f"x{j}" for j in range(rows.shape[1])])
        table["colour"] = pd.Categorical(np.array(["red", "green", "blue"])[(rows[:, 0] > 0) * 2])
        table["town"] = np.array(["Bonn", "Rome", "Oslo", "Lima"])[
            np.abs(rows[:, 1]).astype(int) % 4
        ]
        table.loc[rows[:, 2] > 1.5, "x3"] = np.nan
        tables.append(table)
    return (tables[0], y), tables[1]


def many_rows() -> Data:
    X, y, new = generated(MANY_ROWS)
    return (X, y), new


def little_time() -> Data:
    X, y, new = generated(3_000)
    return (X, y), new


KINDS: dict[str, Callable[[], Data]] = {
    "dense rows": dense,
    "sparse rows": sparse,
    "weighted rows": weighted,
    "three classes": three_classes,
    "precomputed": precomputed,
    "categories and gaps": categories_and_gaps,
    "many rows": many_rows,
    "little time": little_time,
}


# --- what users see of a fit ---------------------------------------------------------------------


def seen_by_users(model: BaseEstimator, make: Callable[[], Data]) -> dict[str, Any]:
    """Fit; return attributes, predictions and warnings, or the error."""
    arguments, new = make()
    seen: dict[str, Any] = {}
    with warnings.catch_warnings(record=True) as caught, steady_clock(model):
        warnings.simplefilter("always")
        try:
            model.fit(*arguments)
        except (TypeError, ValueError) as error:
            return {"error": str(error)}
    seen["warnings"] = sorted(str(warning.message) for warning in caught)
    for name in dir(model):
        if name.endswith("_") and not name.startswith("_") and hasattr(model, name):
            collect(name, getattr(model, name), seen)
    for name in METHODS:
        if hasattr(model, name):
            collect(f"{name}()", getattr(model, name)(new), seen)
    return seen


def collect(name: str, value: Any, seen: dict[str, Any]) -> None:
    """Put the arrays and numbers of a value under their names."""
    if sp.issparse(value):
        value = [value.data, value.indices, value.indptr, np.array(value.shape)]
    if isinstance(value, BaseEstimator):
        value = vars(value)
    if isinstance(value, dict):
        for key, part in value.items():
            collect(f"{name}[{key!r}]", part, seen)
    elif isinstance(value, list | tuple):
        for k, part in enumerate(value):
            collect(f"{name}[{k}]", part, seen)
    elif isinstance(value, np.ndarray | np.generic | str | int | float | bool | None):
        seen[name] = value
    else:
        seen[name] = type(value).__name__


@contextmanager
def steady_clock(model: BaseEstimator) -> Iterator[None]:
    """Where time is limited, let it pass with the work of the solvers instead of the seconds."""
    if getattr(model, "max_time", None) is None:
        yield
        return
    now = 0.0

    def seconds() -> float:
        return now

    def passing(module: ModuleType) -> Callable[..., Any]:
        solve = module.solve

        def solve_and_wait(problem: Any, *rest: Any, **options: Any) -> Any:
            nonlocal now
            found = solve(problem, *rest, **options)
            # Solvers have a clock of their own, so these seconds are worth a thousand of them; and
            # how often they look at the clock depends on the computer, so they pass at the end.
            now += 2e-5 * len(problem.codes) ** 2 * len(problem.machines)
            return found

        return solve_and_wait

    with (
        mock.patch.object(staged_vote, "solve", passing(staged_vote)),
        mock.patch.object(greedy, "solve", passing(greedy)),
        mock.patch.object(time, "monotonic", seconds),
    ):
        yield


# --- how two fits differ -------------------------------------------------------------------------


def compared(before: dict[str, Any], after: dict[str, Any]) -> Iterator[str]:
    """Yield what differs, in words."""
    yield from (f"{name} is gone" for name in before.keys() - after.keys())
    yield from (f"{name} is new" for name in after.keys() - before.keys())
    for name in sorted(before.keys() & after.keys()):
        old, new = before[name], after[name]
        if pickle.dumps(old) == pickle.dumps(new) or same(old, new):
            continue
        if is_numeric(old) and is_numeric(new) and np.shape(old) == np.shape(new):
            distance = np.max(np.abs(np.subtract(old, new, dtype=float)), initial=0.0)
            yield f"{name} differs by {distance:.3g}"
        else:
            yield f"{name} was {brief(old)}, is {brief(new)}"


def same(old: Any, new: Any) -> bool:
    """Whether two values are equal, missing ones included, and of one type."""
    one, other = np.asarray(old), np.asarray(new)
    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    return bool(np.array_equal(one, other, equal_nan=one.dtype.kind == "f"))


def is_numeric(value: Any) -> bool:
    return np.asarray(value).dtype.kind in "biuf"


def brief(value: Any) -> str:
    text = repr(value) if np.size(value) < 10 else f"an array of shape {np.shape(value)}"
    return text if len(text) < 200 else f"{text[:200]}..."


if __name__ == "__main__":
    sys.exit(main())
