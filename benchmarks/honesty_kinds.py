"""The kinds of problems of `honesty.py`.

A problem is drawn from a seed, together with so many new rows of the same law that what a model
promises can be compared with what is true. The law is known, and with it the loss of the true
probabilities. Only the sets of `accuracy_sets.py` are real: their new rows are what is left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any
from zlib import crc32

import numpy as np
import numpy.typing as npt
from accuracy import differs, divided
from accuracy_sets import SETS
from scipy.special import expit, softmax
from sklearn.model_selection import GroupKFold, TimeSeriesSplit

Array = npt.NDArray[Any]
Rows = tuple[Array, Array, Array]  # rows, their classes, the true probabilities of all classes
Law = Callable[[np.random.Generator, int], Rows]

MOST_TEST_ROWS, LEAST_TEST_ROWS = 10_000, 4_000
TEST_VALUES = 5_000_000  # between these two, so many numbers
N_SPLITS = 5
QUICK_VALUES = 100 * 100  # --quick takes the cells that have at most so many numbers


class Skipped(Exception):
    """A real set that is not on this computer."""


@dataclass(frozen=True)
class Problem:
    """Rows to train and new rows; what a user would tell a model about how they came about."""

    X: Array
    y: Array
    X_test: Array
    y_test: Array
    best: Array | None = None  # the true probabilities of the new rows
    cv: Any = None
    groups: Array | None = None


@dataclass(frozen=True)
class Cell:
    """Problems that differ in nothing but the seed."""

    name: str
    n_seeds: int
    is_quick: bool
    make: Callable[[int, str | None], Problem | None]  # from a seed and the folder of the data


@dataclass(frozen=True)
class Kind:
    """A table of the page: what is said about it, and its cells."""

    title: str
    text: str
    cells: tuple[Cell, ...]


def noise(rng: np.random.Generator, n: int, *, p: int) -> Rows:
    """Columns that say nothing about the classes."""
    return rng.normal(size=(n, p)), rng.integers(0, 2, n), np.full((n, 2), 0.5)


def weak_signal(rng: np.random.Generator, n: int, *, p: int) -> Rows:
    """Five columns move the log-odds, which have a standard deviation of one."""
    X = rng.normal(size=(n, p))
    return X, *drawn(rng, X[:, :5].sum(axis=1) / np.sqrt(5))


def gene_like(rng: np.random.Generator, n: int, *, p: int, block: int = 20) -> Rows:
    """Blocks of columns with correlations of 1/2; a column in three of them moves the log-odds."""
    common = np.repeat(rng.normal(size=(n, -(-p // block))), block, axis=1)[:, :p]
    X = np.sqrt(0.5) * (common + rng.normal(size=(n, p)))
    return X, *drawn(rng, 2.8 * X[:, [0, block, 2 * block]].sum(axis=1) / np.sqrt(3))


def shifted(
    rng: np.random.Generator, n: int, *, p: int, n_informative: int, shift: float, share: float
) -> Rows:
    """Class 1 is a share of the rows; in it, some columns have other means."""
    y = (rng.random(n) < share).astype(int)
    X = rng.normal(size=(n, p))
    X[:, :n_informative] += np.where(y, shift, -shift)[:, np.newaxis]
    log_odds = np.log(share / (1 - share)) + 2 * shift * X[:, :n_informative].sum(axis=1)
    return X, y, two(expit(log_odds))


def six_classes(rng: np.random.Generator, n: int, *, p: int, strength: float) -> Rows:
    """Six classes; five columns move their log-odds."""
    X = rng.normal(size=(n, p))
    directions = np.random.default_rng(0).normal(size=(5, 6)) / np.sqrt(5)
    P = softmax(strength * X[:, :5] @ directions, axis=1)
    return X, (P.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(max=5), P


def near_copies(rng: np.random.Generator, n: int, *, law: Law, copies: int, spread: float) -> Rows:
    """Every row several times, all but equal, with its class."""
    X, y, P = (np.repeat(part, copies, axis=0) for part in law(rng, n // copies))
    order = rng.permutation(len(y))
    return (X + spread * rng.normal(size=X.shape))[order], y[order], P[order]


def drawn(rng: np.random.Generator, log_odds: Array) -> tuple[Array, Array]:
    p = expit(log_odds)
    return (rng.random(len(p)) < p).astype(int), two(p)


def two(p: Array) -> Array:
    return np.column_stack([1 - p, p])


def groups_problem(
    seed: int, _: str | None, *, groups: int, size: int, p: int, told: bool
) -> Problem:
    """Rows of a group are alike, and so are their classes, for reasons that no column shows.

    New rows belong to new groups: what a model remembers of a group is of no use for them.
    """
    rng = generator(f"groups {groups} x {size} x {p}", seed)

    def rows(n: int) -> Rows:
        centres, effects = rng.normal(size=(n, p)), 1.5 * rng.normal(size=n)
        X = 0.8 * np.repeat(centres, size, axis=0) + 0.6 * rng.normal(size=(n * size, p))
        signal = X[:, :5].sum(axis=1) / np.sqrt(5)
        y, _ = drawn(rng, signal + np.repeat(effects, size))
        nodes, weights = np.polynomial.hermite_e.hermegauss(20)
        chances = expit(signal[:, np.newaxis] + 1.5 * nodes) @ (weights / weights.sum())
        return X, y, two(chances)

    X, y, _ = rows(groups)
    X_test, y_test, best = rows(test_rows(p) // size)
    return Problem(
        *(X, y, X_test, y_test, best),
        cv=GroupKFold(N_SPLITS) if told else None,
        groups=np.repeat(np.arange(groups), size) if told else None,
    )


def drift_problem(seed: int, _: str | None, *, n: int, p: int, told: bool) -> Problem:
    """What the first two columns mean turns with time; new rows come after those to train."""
    rng = generator(f"drift {n} x {p}", seed)

    def rows(n: int, begin: float, end: float) -> Rows:
        times = np.sort(rng.uniform(begin, end, n))
        X = rng.normal(size=(n, p))
        X[:, 2] += 2 * times  # the time can be seen
        angle = 0.75 * np.pi * times
        return X, *drawn(rng, 2 * (np.cos(angle) * X[:, 0] + np.sin(angle) * X[:, 1]))

    X, y, _ = rows(n, 0.0, 1.0)
    X_test, y_test, best = rows(test_rows(p), 1.0, 1.2)
    cv = TimeSeriesSplit(N_SPLITS) if told else None
    return Problem(X, y, X_test, y_test, best, cv=cv)


def drawn_problem(
    seed: int, _: str | None, *, key: str, n: int, p: int, train: Law, test: Law
) -> Problem:
    rng = generator(key, seed)
    X, y, _ = train(rng, n)
    X_test, y_test, best = test(rng, test_rows(p))
    return Problem(X, y, X_test, y_test, best)


def real_problem(seed: int, data_dir: str | None, *, name: str, size: int) -> Problem | None:
    """A split of a set of `accuracy.py`: the same rows as there."""
    try:
        X, y = SETS[name].load(data_dir or "")
    except Exception as error:  # a package or a file that is not there
        raise Skipped(f"{type(error).__name__}: {error}".splitlines()[0]) from error
    if not differs(len(y), size):
        return None  # it has the same splits at 1,000 rows
    X_train, y_train, X_test, y_test = divided(X, y, seed=seed, size=size)
    return Problem(X_train, y_train, X_test, y_test)


def test_rows(p: int) -> int:
    return int(np.clip(TEST_VALUES // p, LEAST_TEST_ROWS, MOST_TEST_ROWS))


def generator(key: str, seed: int) -> np.random.Generator:
    return np.random.default_rng([crc32(key.encode()), seed])


def cell(
    kind: str, n: int, p: int, n_seeds: int, train: Law, test: Law | None = None, *, what: str = ""
) -> Cell:
    name = f"{n:,} x {p:,}{what}"
    make = partial(drawn_problem, key=f"{kind} {name}", n=n, p=p, train=train, test=test or train)
    return Cell(name, n_seeds, n * p <= QUICK_VALUES, make)


# Rows, columns and seeds: 44 fits.
SHAPES = (
    *((60, 10, 6), (60, 60, 6), (80, 400, 6), (100, 50, 6), (200, 200, 5), (300, 290, 4)),
    *((500, 100, 4), (1000, 100, 3), (1000, 300, 2), (1000, 1000, 2)),
)
RARE = ((300, 10, 0.05), (300, 50, 0.05), (1000, 20, 0.02), (1000, 200, 0.05))
COPIED = ((150, 20, 3, 1e-3), (300, 100, 3, 1e-3), (1000, 50, 2, 1e-3), (1000, 50, 2, 0.0))
GROUPED = ((40, 6, 20), (30, 10, 50), (100, 5, 20), (200, 5, 100))
DRIFTING = ((100, 10), (300, 10), (300, 50), (1000, 10))
REAL_SPLITS = 2


def _shapes(kind: str, law: Callable[..., Rows]) -> tuple[Cell, ...]:
    return tuple(cell(kind, n, p, n_seeds, partial(law, p=p)) for n, p, n_seeds in SHAPES)


def _genes(n: int, p: int) -> Cell:
    return cell("genes", n, p, 6, partial(gene_like, p=p))


def _sparse(n: int, n_seeds: int) -> Cell:
    law = partial(shifted, p=1000, n_informative=30, shift=0.18, share=0.5)
    return cell("sparse", n, 1000, n_seeds, law)


def _rare(kind: str, n_informative: int) -> tuple[Cell, ...]:
    return tuple(
        cell(
            kind,
            *(n, p, 4),
            partial(shifted, p=p, n_informative=n_informative, shift=0.5, share=share),
            what=f", {share:.0%} rare",
        )
        for n, p, share in RARE
    )


def _copied(kind: str, law: Callable[..., Rows]) -> tuple[Cell, ...]:
    return tuple(
        cell(
            kind,
            *(n, p, 4),
            partial(near_copies, law=partial(law, p=p), copies=copies, spread=spread),
            partial(law, p=p),
            what=f", {copies} copies" + ("" if spread else " (exact)"),
        )
        for n, p, copies, spread in COPIED
    )


def _grouped(told: bool) -> tuple[Cell, ...]:
    return tuple(
        Cell(
            f"{groups} groups of {size}, {p} columns",
            *(4, groups * size * p <= QUICK_VALUES),
            partial(groups_problem, groups=groups, size=size, p=p, told=told),
        )
        for groups, size, p in GROUPED
    )


def _drifting(told: bool) -> tuple[Cell, ...]:
    return tuple(
        Cell(f"{n:,} x {p}", 4, n * p <= QUICK_VALUES, partial(drift_problem, n=n, p=p, told=told))
        for n, p in DRIFTING
    )


def _classes(kind: str, strength: float) -> tuple[Cell, ...]:
    law = partial(six_classes, strength=strength)
    shapes = ((200, 20, 4), (300, 150, 3), (1000, 100, 2))
    return tuple(cell(kind, n, p, n_seeds, partial(law, p=p)) for n, p, n_seeds in shapes)


def _real(size: int, quick: Iterable[str] = ("iris", "pima", "sonar", "vowel", "wine")) -> Kind:
    return Kind(
        f"Real tables, at most {size:,} rows to train",
        "The sets and splits of `accuracy.py`. New rows are what is left of a set, so the truth is "
        "uncertain where a set is small.",
        tuple(
            Cell(name, REAL_SPLITS, name in quick, partial(real_problem, name=name, size=size))
            for name in SETS
        ),
    )


_NEW_GROUPS = "A group's rows are alike, and so are their classes; new rows belong to new groups. "
_LATER = "What two columns mean turns with time; new rows come after those to train. "
KINDS: dict[str, Kind] = {
    "noise": Kind(
        "Noise",
        "No column says anything about the two classes. No model can do better than .6931.",
        _shapes("noise", noise),
    ),
    "weak": Kind(
        "Weak signals",
        "Five columns move the log-odds, by a standard deviation of one; the others are noise.",
        _shapes("weak", weak_signal),
    ),
    "genes": Kind(
        "Gene-like",
        "Blocks of twenty columns with correlations of 1/2; one column in three of the blocks "
        "moves the log-odds, by a standard deviation of 2.8 together.",
        (_genes(80, 500), _genes(80, 2000), _genes(200, 500)),
    ),
    "sparse": Kind(
        "30 of 1,000",
        "Thirty of 1,000 columns have slightly other means in one of the classes.",
        (_sparse(300, 4), _sparse(1000, 3)),
    ),
    "rare": Kind(
        "A rare class",
        "2 or 5 % of the rows are of the rare class, which has other means in three columns.",
        _rare("rare", 3),
    ),
    "rare-noise": Kind(
        "A rare class and noise",
        "The same shares, and columns that say nothing.",
        _rare("rare-noise", 0),
    ),
    "copies": Kind(
        "Near-copies of weak signals",
        "Every row two or three times, all but equal (in one cell, exactly so), with its class; "
        "new rows are no copies.",
        _copied("copies", weak_signal),
    ),
    "copies-noise": Kind(
        "Near-copies of noise",
        "The same, and columns that say nothing.",
        _copied("copies-noise", noise),
    ),
    "groups": Kind(
        "Groups, and the model is told",
        _NEW_GROUPS + "`cv=GroupKFold(5)` and `groups=`.",
        _grouped(told=True),
    ),
    "groups-untold": Kind(
        "Groups, and the model is not told",
        _NEW_GROUPS + "Default folds, which nobody should use here.",
        _grouped(told=False),
    ),
    "drift": Kind(
        "Time drift, and the model is told",
        _LATER + "`cv=TimeSeriesSplit(5)`.",
        _drifting(told=True),
    ),
    "drift-untold": Kind(
        "Time drift, and the model is not told",
        _LATER + "Default folds, which nobody should use here.",
        _drifting(told=False),
    ),
    "classes": Kind(
        "Six classes, weak signals",
        "Five columns move the log-odds of six classes; the others are noise.",
        _classes("classes", 2.0),
    ),
    "classes-noise": Kind(
        "Six classes, noise",
        "No column says anything about the six classes.",
        _classes("classes-noise", 0.0),
    ),
    "tables-250": _real(250),
    "tables-1000": _real(1000),
}
