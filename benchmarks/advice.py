"""Check that the advice of warnings helps, on two sets where each of them fires.

    python benchmarks/advice.py [--only rank,clip]

Every case is a fit that warns, and what its warning recommends. One line per set and recommendation
has the warning's first words, the test error, log-loss (or what else the advice promises) and
processor seconds before and after, and whether the warning is gone. Nothing but scikit-learn's and
generated data is needed.
"""

from __future__ import annotations

import argparse
import re
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.datasets import load_breast_cancer, load_digits, make_classification, make_moons
from sklearn.metrics import log_loss
from sklearn.preprocessing import StandardScaler

from hardmargin import (
    CoreVectorSVC,
    EnsembleSVC,
    GreedySVC,
    HardMarginSVC,
    MinimumEnclosingBall,
    MultiplicativeSVC,
    PathSVC,
    RhoEnsembleSVC,
    RhoSVC,
    RigorousSVC,
    compress,
)

Array = npt.NDArray[Any]
Split = tuple[Array, Array, Array, Array]
Fit = Callable[[Array, Array], Any]


def noisy(n: int = 1_200, n_test: int = 2_000) -> Split:
    X, y = make_classification(
        n + n_test, 10, n_informative=5, flip_y=0.15, class_sep=0.8, random_state=0
    )
    return X[:n], y[:n], X[n:], y[n:]


def moons(n: int = 1_200, n_test: int = 2_000, noise: float = 0.3) -> Split:
    X, y = make_moons(n + n_test, noise=noise, random_state=0)
    return X[:n], y[:n], X[n:], y[n:]


def cancer() -> Split:
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    order = np.random.default_rng(0).permutation(len(y))
    X, y = X[order], y[order]
    return X[:380], y[:380], X[380:], y[380:]


def digits() -> Split:
    X, y = load_digits(return_X_y=True)
    X, y = X / 16, y % 2
    return X[:1_000], y[:1_000], X[1_000:], y[1_000:]


def far_rows(split: Split) -> Split:
    """The same rows, of which three are very far from the others."""
    X, y, X_test, y_test = split
    X = X.copy()
    X[:3] *= 1e5
    return X, y, X_test, y_test


def checked(split: Split) -> Split:
    """The rows, and labels of a narrow pattern of two columns, without noise."""
    X, _, X_test, _ = split

    def labels(rows: Array) -> Array:
        return (np.floor(2 * rows[:, :2]).sum(axis=1) % 2).astype(int)

    return X, labels(X), X_test, labels(X_test)


def quality(model: Any, X: Array, y: Array) -> str:
    error = float(np.mean(model.predict(X) != y))
    if not hasattr(model, "predict_proba"):
        return f"error {error:.4f}"
    return f"error {error:.4f}, log-loss {log_loss(y, model.predict_proba(X)):.4f}"


def certificate(model: Any, X: Array, y: Array) -> str:
    return f"gap {np.max(model.certificate_):.2g}, {quality(model, X, y)}"


def ball(model: Any, X: Array, y: Array) -> str:
    return f"objective {model.objective_:.4f}, outliers {np.mean(model.predict(X) < 0):.4f}"


def fidelity(model: Any, X: Array, y: Array) -> str:
    changed = model.compression_.changed_predictions
    return f"{len(model.support_)} rows, changed {changed:.4f}, {quality(model, X, y)}"


@dataclass(frozen=True)
class Case:
    """A fit that warns, and fits as the warning advises."""

    match: str
    sets: Mapping[str, Split]
    fit: Fit
    advised: Mapping[str, Fit]
    measure: Callable[[Any, Array, Array], str] = quality
    supervised: bool = True


def of(estimator: Callable[..., Any], **parameters: Any) -> Fit:
    return lambda X, y: estimator(**parameters).fit(X, y)


def cases() -> dict[str, Case]:
    two = {"noisy": noisy(), "moons": moons()}
    both = {"cancer": cancer(), "digits": digits()}
    large = {"noisy": noisy(6_000), "moons": moons(6_000)}
    huge = {"noisy": noisy(11_000), "moons": moons(11_000)}
    wild = {name: far_rows(split) for name, split in (("noisy", noisy()), ("cancer", cancer()))}
    narrow = {"moons": checked(moons()), "few moons": checked(moons(400))}

    def small(n_support: int | None, tolerance: float | None = None) -> Fit:
        def fit(X: Array, y: Array) -> Any:
            model = GreedySVC(random_state=0).fit(X, y)
            return compress(model, n_support, tolerance=tolerance)

        return fit

    return {
        "memory-rank": Case(
            "approximated at rank",
            large,
            of(EnsembleSVC, memory_limit="20MB"),
            {
                "raise memory_limit": of(EnsembleSVC, memory_limit="2GB"),
                "GreedySVC": of(GreedySVC, memory_limit="20MB"),
            },
        ),
        "rank": Case(
            "limits the accuracy",
            {
                "moons": checked(moons(10_500)),
                "wide": checked(moons(10_500, noise=1.0)),
            },
            of(EnsembleSVC, max_cell_rows=None),
            {
                "a higher rank": of(EnsembleSVC, max_cell_rows=None, rank=1_500),
                "defaults": of(EnsembleSVC),
            },
        ),
        "memory-sample": Case(
            "memory_limit has room for the distances",
            huge,
            of(EnsembleSVC, memory_limit="30MB"),
            {"raise memory_limit": of(EnsembleSVC, memory_limit="2GB")},
        ),
        "matrix": Case(
            "recomputed at every stage",
            large,
            of(RhoEnsembleSVC, memory_limit="20MB"),
            {
                "raise memory_limit": of(RhoEnsembleSVC, memory_limit="2GB"),
                "rank='auto'": of(RhoEnsembleSVC, memory_limit="20MB", rank="auto"),
                "GreedySVC": of(GreedySVC, memory_limit="20MB"),
            },
        ),
        "separate": Case(
            "does not separate the classes: there is no margin",
            two,
            of(HardMarginSVC, kernel="linear"),
            {
                "EnsembleSVC": of(EnsembleSVC),
                "GreedySVC": of(GreedySVC),
                "a narrower kernel": of(HardMarginSVC, gamma=1.0),
            },
        ),
        "no-margin": Case(
            "no margin is left",
            two,
            of(RhoSVC, kernel="poly", degree=1),
            {"EnsembleSVC": of(EnsembleSVC), "a larger gamma": of(RhoSVC, gamma=1.0)},
        ),
        "no-stage": Case(
            "No stage was possible",
            both,
            of(RhoSVC, gamma=1e4),
            {"lower gamma": of(RhoSVC, gamma=0.02)},
        ),
        "overlap": Case(
            "the classes overlap for this kernel",
            two,
            of(MultiplicativeSVC, kernel="linear"),
            {
                "EnsembleSVC": of(EnsembleSVC),
                "GreedySVC": of(GreedySVC),
                "a larger gamma": of(MultiplicativeSVC, gamma=1.0),
            },
        ),
        "epochs": Case(
            "does not separate the classes yet",
            narrow,
            of(MultiplicativeSVC, gamma=1.0, max_stages=20),
            {
                "raise gamma": of(MultiplicativeSVC, gamma=30.0, max_stages=20),
                "HardMarginSVC": of(HardMarginSVC, gamma=1.0),
                "EnsembleSVC": of(EnsembleSVC),
            },
        ),
        "learning-rate": Case(
            "is too large",
            both,
            of(MultiplicativeSVC, gamma=0.05, learning_rate=1e4),
            {"'auto'": of(MultiplicativeSVC, gamma=0.05)},
            certificate,
        ),
        "flat": Case(
            "look the same to the",
            wild,
            of(GreedySVC, gamma="spread"),
            {
                "raise gamma": of(GreedySVC, gamma=0.05),
                "standardise (GreedySVC())": of(GreedySVC),
            },
        ),
        "clip": Case(
            "they are clipped",
            wild,
            of(EnsembleSVC),
            {"standardize=False": of(EnsembleSVC, standardize=False)},
        ),
        "core-radius": Case(
            "stopping='radius' stopped",
            both,
            of(CoreVectorSVC, C=1e4, stopping="radius", eps=1e-3),
            {"stopping='margin'": of(CoreVectorSVC, C=1e4, stopping="margin")},
            certificate,
        ),
        "ball-radius": Case(
            "stopping='radius' missed rows",
            {"noisy": noisy(4_000), "moons": moons(4_000)},
            of(MinimumEnclosingBall, gamma="pairwise", C=None, stopping="radius"),
            {"'certified'": of(MinimumEnclosingBall, gamma="pairwise", C=None)},
            ball,
            supervised=False,
        ),
        "ball-C": Case(
            "so small that slacks exceed",
            both,
            of(MinimumEnclosingBall, C=1e-5),
            {"raise C": of(MinimumEnclosingBall, C=0.1)},
            ball,
            supervised=False,
        ),
        "contamination": Case(
            "tie on the ball's surface",
            both,
            of(MinimumEnclosingBall, C=None, gamma=100.0, contamination=0.1),
            {"lower gamma": of(MinimumEnclosingBall, C=None, gamma=0.01, contamination=0.1)},
            ball,
            supervised=False,
        ),
        "stages": Case(
            "stopped at max_stages",
            two,
            of(GreedySVC, gamma=0.1, max_visits=4, max_stages=100),
            {"raise max_stages": of(GreedySVC, gamma=0.1, max_visits=4)},
        ),
        "path-stages": Case(
            "stopped at max_stages",
            {"noisy": noisy(300), "moons": moons(300)},
            of(PathSVC, max_stages=50),
            {"raise max_stages": of(PathSVC)},
        ),
        "norm": Case(
            "gives a norm as large as",
            {"noisy": noisy(300), "moons": moons(300)},
            of(RigorousSVC, C_max=0.01),
            {"raise C_max": of(RigorousSVC)},
        ),
        "time": Case(
            "is too short for all rows",
            huge,
            of(EnsembleSVC, max_time=0.5),
            {"raise max_time": of(EnsembleSVC, max_time=600)},
        ),
        "few-rows": Case(
            "support rows are few for this model",
            two,
            small(3),
            {"raise n_support": small(60), "tolerance": small(None, 0.02)},
            fidelity,
        ),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    known = cases()
    parser.add_argument("--only", help=f"comma-separated: {', '.join(known)}")
    options = parser.parse_args()
    for name in options.only.split(",") if options.only else known:
        case = known[name]
        print(f"\n{name}: '.. {case.match} ..'")
        for data, split in case.sets.items():
            print(f"  {data:8} {'before':28}{measured(case, case.fit, split)}", flush=True)
            for advice, fit in case.advised.items():
                print(f"  {data:8} {advice:28}{measured(case, fit, split)}", flush=True)


def measured(case: Case, fit: Fit, split: Split) -> str:
    """What a fit is worth and takes, and whether the warning fires."""
    X, y, X_test, y_test = split
    begin = time.process_time()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = fit(X, y if case.supervised else None)  # type: ignore[arg-type]
    seconds = time.process_time() - begin
    fires = any(re.search(re.escape(case.match), str(w.message)) for w in caught)
    return f"{case.measure(model, X_test, y_test):48} {seconds:7.2f} s  {'warns' if fires else '-'}"


if __name__ == "__main__":
    main()
