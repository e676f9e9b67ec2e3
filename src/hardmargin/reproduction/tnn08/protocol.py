"""How TNN-08 trains on its benchmark sets: scaling, folds, and the choice of parameters."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.stats import ttest_rel
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import MinMaxScaler
from sklearn.svm import SVC

from hardmargin import GreedySVC, HardMarginSVC, RigorousSVC
from hardmargin.kernels import Kernel
from hardmargin.reproduction.sources import Split

__all__ = [
    "Errors",
    "Grid",
    "deal_folds",
    "greedy_errors",
    "hard_margin_errors",
    "median_p",
    "p_value",
    "rigorous_errors",
    "scaled",
    "soft_margin_errors",
]

Maker: TypeAlias = Callable[[float], Any]
Fold: TypeAlias = tuple[NDArray[np.intp], NDArray[np.intp]]

#: Pairwise steps of a hard margin while gamma is chosen, and in the final fit: on noisy rows with a
#: wide kernel it would take forever.
MAX_STEPS, MAX_LAST_STEPS = 20_000, 2_000_000
#: Up to this many rows the kernel matrix is computed once for every gamma.
MAX_MATRIX_ROWS = 5_000


@dataclass(frozen=True)
class Grid:
    """What parameters are chosen from, and how.

    Parameters
    ----------
    log_gammas : sequence of int
        Gammas of the greedy SVM and of the hard margin, as powers of two.
    svm_log_gammas, svm_log_Cs : sequence of int
        Gammas and Cs of the soft margin, as powers of two.
    n_folds, n_svm_folds : int
        Folds of the training rows by which they are chosen.
    n_svm_rows : int or None
        Training rows used in the choice for the soft margin; None is all.
    """

    log_gammas: Sequence[int] = tuple(range(-8, 9))
    svm_log_gammas: Sequence[int] = tuple(range(-8, 9, 2))
    svm_log_Cs: Sequence[int] = tuple(range(-1, 11, 2))
    n_folds: int = 10
    n_svm_folds: int = 5
    n_svm_rows: int | None = 2_000


#: The published grid.
FULL_GRID = Grid(
    svm_log_gammas=tuple(range(-8, 9)),
    svm_log_Cs=tuple(range(-1, 11)),
    n_svm_folds=10,
    n_svm_rows=None,
)
QUICK_GRID = Grid((-6, -3, 0, 3), (-6, -3, 0, 3), (-1, 3, 7), 3, 3)


@dataclass(frozen=True)
class Errors:
    """Errors of a method over the splits of a data set.

    Parameters
    ----------
    training, test : tuple of float
        Errors in percent, split by split.
    gammas : tuple of float
        The kernel widths that were chosen.
    """

    training: tuple[float, ...]
    test: tuple[float, ...]
    gammas: tuple[float, ...]


def deal_folds(y: Any, n_folds: int, seed: int = 0) -> list[Fold]:
    """Shuffle the rows and deal them out to folds, class after class.

    Parameters
    ----------
    y : array
        Labels.
    n_folds : int
        How many.
    seed : int, default=0
        Shuffles.

    Returns
    -------
    list of (training rows, test rows)

    Examples
    --------
    >>> import numpy as np
    >>> y = np.array([0, 1, 0, 1, 0, 1])
    >>> [sorted(y[test].tolist()) for _, test in deal_folds(y, 3)]
    [[0, 1], [0, 1], [0, 1]]
    """
    y = np.asarray(y)
    order = np.random.default_rng(seed).permutation(len(y))
    order = order[np.argsort(y[order], kind="stable")]
    fold = np.empty(len(y), dtype=np.intp)
    fold[order] = np.arange(len(y)) % n_folds
    return [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(n_folds)]


def scaled(split: Split) -> Split:
    """Scale training rows to [-1, 1], column by column, and test rows by the same map.

    Parameters
    ----------
    split : tuple
        ``X_train, y_train, X_test, y_test``.

    Returns
    -------
    tuple
        The same with scaled rows.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0], [4.0]])
    >>> scaled((X, [0, 1], X + 1, [0, 1]))[2].tolist()
    [[-0.5], [1.5]]
    """
    X_train, y_train, X_test, y_test = split
    scaler = MinMaxScaler((-1, 1)).set_output(transform="default").fit(X_train)
    return scaler.transform(X_train), y_train, scaler.transform(X_test), y_test


def greedy_errors(splits: Sequence[Split], grid: Grid) -> Errors:
    """Train the greedy SVM on all splits, its gamma chosen by folds.

    Parameters
    ----------
    splits : sequence of tuples
        Scaled rows.
    grid : Grid
        What gamma is chosen from.

    Returns
    -------
    Errors
    """
    return _errors(splits, _greedy, _greedy, grid)


def hard_margin_errors(splits: Sequence[Split], grid: Grid) -> Errors:
    """Train the hard margin on all splits, its gamma chosen by folds.

    Parameters
    ----------
    splits : sequence of tuples
        Scaled rows.
    grid : Grid
        What gamma is chosen from.

    Returns
    -------
    Errors
    """
    return _errors(splits, _hard_margin, _last_hard_margin, grid)


def rigorous_errors(splits: Sequence[Split], gammas: Sequence[float]) -> Errors:
    """Train the rigorous SVM, without a bias, on all splits, with the norms of the greedy SVM.

    Parameters
    ----------
    splits : sequence of tuples
        Scaled rows.
    gammas : sequence of float
        Gammas of the greedy SVM, split by split.

    Returns
    -------
    Errors
    """
    pairs = []
    for split, gamma in zip(splits, gammas, strict=True):
        model = RigorousSVC(gamma=gamma, fit_intercept=False)
        pairs.append(_both_errors(_fitted(model, split[0], split[1]), split))
    training, test = zip(*pairs, strict=True)
    return Errors(training, test, tuple(gammas))


def soft_margin_errors(splits: Sequence[Split], grid: Grid) -> Errors:
    """Train scikit-learn's SVC on all splits, its gamma and C chosen by folds.

    Parameters
    ----------
    splits : sequence of tuples
        Scaled rows.
    grid : Grid
        What they are chosen from.

    Returns
    -------
    Errors
    """
    pairs, gammas = [], []
    for split in splits:
        gamma, C = _choose_svc(split[0], split[1], grid)
        model = SVC(C=C, gamma=gamma, cache_size=500).fit(split[0], split[1])
        pairs.append(_both_errors(model, split))
        gammas.append(gamma)
    training, test = zip(*pairs, strict=True)
    return Errors(training, test, tuple(gammas))


def p_value(a: Sequence[float], b: Sequence[float]) -> float:
    """Test whether two methods have the same error: the paired two-tailed t-test.

    Parameters
    ----------
    a, b : sequence of float
        Errors, split by split.

    Returns
    -------
    float
        Small if they differ.

    Examples
    --------
    >>> p_value([1.0, 2.0], [1.0, 2.0]), p_value([1.0, 2.0], [2.0, 3.0])
    (1.0, 0.0)
    """
    difference = np.subtract(a, b)
    if np.ptp(difference) == 0:
        return 0.0 if difference[0] else 1.0
    return float(ttest_rel(a, b).pvalue)


def median_p(a: Sequence[float], b: Sequence[float], n_deals: int) -> float:
    """Give the median of the p-values of several deals of the rows to folds.

    Parameters
    ----------
    a, b : sequence of float
        Errors, fold by fold, those of the first deal first.
    n_deals : int
        How many deals there are.

    Returns
    -------
    float

    Examples
    --------
    >>> median_p([1.0, 2.0, 1.0, 2.0, 1.0, 2.0], [1.0, 2.0, 1.0, 2.0, 2.0, 3.0], 3)
    1.0
    """
    deals = zip(np.array_split(a, n_deals), np.array_split(b, n_deals), strict=True)
    return float(np.median([p_value(ours.tolist(), theirs.tolist()) for ours, theirs in deals]))


def _greedy(gamma: float) -> GreedySVC:
    return GreedySVC(gamma, max_visits=1, threshold=0.0)


def _hard_margin(gamma: float) -> HardMarginSVC:
    return HardMarginSVC(gamma, fit_intercept=False, max_stages=MAX_STEPS)


def _last_hard_margin(gamma: float) -> HardMarginSVC:
    return HardMarginSVC(gamma, fit_intercept=False, max_stages=MAX_LAST_STEPS)


def _errors(splits: Sequence[Split], make: Maker, make_last: Maker, grid: Grid) -> Errors:
    pairs, gammas = [], []
    for split in splits:
        X, y = split[0], split[1]
        folds = deal_folds(y, grid.n_folds, seed=1)
        candidates = [2.0**log_gamma for log_gamma in grid.log_gammas]
        wrong = [
            sum(
                int((_fitted(make(gamma), X[train], y[train]).predict(X[test]) != y[test]).sum())
                for train, test in folds
            )
            for gamma in candidates
        ]
        gammas.append(candidates[int(np.argmin(wrong))])
        pairs.append(_both_errors(_fitted(make_last(gammas[-1]), X, y), split))
    training, test = zip(*pairs, strict=True)
    return Errors(training, test, tuple(gammas))


def _fitted(model: Any, X: Any, y: Any) -> Any:
    with warnings.catch_warnings():
        # A hard margin need not separate the rows, nor a regularisation path reach the norm.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, y)


def _both_errors(model: Any, split: Split) -> tuple[float, float]:
    X_train, y_train, X_test, y_test = split
    training, test = (
        100.0 * float((model.predict(X) != y).mean())
        for X, y in ((X_train, y_train), (X_test, y_test))
    )
    return training, test


def _choose_svc(X: Any, y: Any, grid: Grid) -> tuple[float, float]:
    """Give the gamma and C with the fewest errors over the folds; ties go to the smallest."""
    if grid.n_svm_rows is not None and len(y) > grid.n_svm_rows:
        # One fold of this many has about that number of rows, of all classes.
        part = deal_folds(y, -(-len(y) // grid.n_svm_rows), seed=2)[0][1]
        X, y = X[part], y[part]
    folds = deal_folds(y, grid.n_svm_folds, seed=1)
    candidates, wrong = [], []
    for log_gamma in grid.svm_log_gammas:
        gamma = 2.0**log_gamma
        K = Kernel("rbf", gamma=gamma).block(X) if len(y) <= MAX_MATRIX_ROWS else None
        Cs = [2.0**log_C for log_C in grid.svm_log_Cs]
        counts = np.zeros(len(Cs), dtype=int)
        for train, test in folds:
            if K is None:
                rows, held_out, kernel = X[train], X[test], "rbf"
            else:
                rows, held_out = K[np.ix_(train, train)], K[np.ix_(test, train)]
                kernel = "precomputed"
            for i, C in enumerate(Cs):
                model = SVC(C=C, kernel=kernel, gamma=gamma, cache_size=500).fit(rows, y[train])
                counts[i] += int((model.predict(held_out) != y[test]).sum())
        candidates += [(gamma, C) for C in Cs]
        wrong += counts.tolist()
    return candidates[int(np.argmin(wrong))]
