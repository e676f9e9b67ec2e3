"""Generated problems: the two of ESANN-99, on strings of bits, and three of Breiman's."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state

__all__ = [
    "make_majority_rule",
    "make_mirror_symmetry",
    "make_ringnorm",
    "make_twonorm",
    "make_waveform",
]

# Peaks of Breiman's three waves among the columns 1 .. 21, and the two that each class mixes.
_PEAKS = (7, 15, 11)
_MIXED = ((0, 1), (0, 2), (1, 2))


def make_majority_rule(
    n_samples: int = 200,
    n_bits: int = 40,
    random_state: int | np.random.RandomState | None = None,
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Draw bit strings; the label is 1 if most bits are +1.

    Parameters
    ----------
    n_samples : int, default=200
        Number of rows.
    n_bits : int, default=40
        Number of columns.
    random_state : int, RandomState instance or None, default=None
        Draws the bits.

    Returns
    -------
    X : ndarray of shape (n_samples, n_bits)
        Bits -1.0 and 1.0, equally likely.
    y : ndarray of shape (n_samples,)
        1 where more bits are +1 than -1, otherwise (ties included) -1.

    Examples
    --------
    >>> X, y = make_majority_rule(4, n_bits=4, random_state=0)
    >>> X.sum(axis=1), y
    (array([ 0.,  4.,  2., -2.]), array([-1,  1,  1, -1]))
    """
    _require_counts(n_samples=n_samples, n_bits=n_bits)
    X = _bits(check_random_state(random_state), n_samples, n_bits)
    return X, np.where(X.sum(axis=1) > 0, 1, -1).astype(np.int64)


def make_mirror_symmetry(
    n_samples: int = 200,
    n_bits: int = 30,
    random_state: int | np.random.RandomState | None = None,
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Draw bit strings, half of them symmetric about their centre; those have the label 1.

    Parameters
    ----------
    n_samples : int, default=200
        Number of rows, of which ``n_samples // 2``, at random places, are made symmetric.
    n_bits : int, default=30
        Number of columns.
    random_state : int, RandomState instance or None, default=None
        Draws the bits and the places.

    Returns
    -------
    X : ndarray of shape (n_samples, n_bits)
        Bits -1.0 and 1.0.
    y : ndarray of shape (n_samples,)
        1 where the row equals its reverse (even by chance), otherwise -1.

    Examples
    --------
    >>> X, y = make_mirror_symmetry(4, n_bits=6, random_state=4)
    >>> X[y == 1]
    array([[ 1., -1., -1., -1., -1.,  1.],
           [-1., -1., -1., -1., -1., -1.]])
    """
    _require_counts(n_samples=n_samples, n_bits=n_bits)
    rng = check_random_state(random_state)
    X = _bits(rng, n_samples, n_bits)
    half = n_bits // 2
    mirrored = rng.permutation(n_samples)[: n_samples // 2]
    X[mirrored, n_bits - half :] = X[mirrored, :half][:, ::-1]
    return X, np.where((X[:, ::-1] == X).all(axis=1), 1, -1).astype(np.int64)


def make_waveform(
    n_samples: int = 5_000,
    *,
    binary: bool = True,
    random_state: int | np.random.RandomState | None = None,
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Draw Breiman's waveforms: random mixtures of two of three triangular waves, with noise.

    Parameters
    ----------
    n_samples : int, default=5000
        Number of rows.
    binary : bool, default=True
        Whether to label the second class 1 and the other two -1, as the IDA collection does;
        otherwise the labels are 0, 1 and 2.
    random_state : int, RandomState instance or None, default=None
        Draws everything.

    Returns
    -------
    X : ndarray of shape (n_samples, 21)
        The waves, with noise of standard deviation 1.
    y : ndarray of shape (n_samples,)
        The classes, equally likely.

    References
    ----------
    L. Breiman, J. H. Friedman, R. A. Olshen and C. J. Stone, "Classification and Regression Trees",
    Wadsworth, 1984, section 2.6.2.

    Examples
    --------
    >>> X, y = make_waveform(300, random_state=0)
    >>> X.shape, round(float((y == 1).mean()), 2)
    ((300, 21), 0.35)
    """
    _require_counts(n_samples=n_samples)
    rng = check_random_state(random_state)
    columns = np.arange(1, 22)
    waves = np.array([np.maximum(6.0 - np.abs(columns - peak), 0.0) for peak in _PEAKS])
    y = rng.randint(3, size=n_samples)
    share = rng.uniform(size=(n_samples, 1))
    first, second = np.array(_MIXED)[y].T
    X = share * waves[first] + (1 - share) * waves[second] + rng.normal(size=(n_samples, 21))
    return np.asarray(X), (np.where(y == 1, 1, -1) if binary else y).astype(np.int64)


def make_ringnorm(
    n_samples: int = 7_400, *, random_state: int | np.random.RandomState | None = None
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Draw Breiman's ringnorm: a narrow normal class within a wide one.

    Parameters
    ----------
    n_samples : int, default=7400
        Number of rows.
    random_state : int, RandomState instance or None, default=None
        Draws everything.

    Returns
    -------
    X : ndarray of shape (n_samples, 20)
        Features.
    y : ndarray of shape (n_samples,)
        1 for the class around zero with a standard deviation of 2; -1 for the class around
        ``2 / sqrt(20)`` with a standard deviation of 1, as in the DELVE archive.

    References
    ----------
    L. Breiman, "Bias, variance, and arcing classifiers", Technical Report 460, University of
    California at Berkeley, 1996.

    Examples
    --------
    >>> X, y = make_ringnorm(1000, random_state=0)
    >>> [round(float(X[y == label].std())) for label in (-1, 1)]
    [1, 2]
    """
    _require_counts(n_samples=n_samples)
    rng = check_random_state(random_state)
    y = 2 * rng.randint(2, size=n_samples) - 1
    noise = rng.normal(size=(n_samples, 20))
    X = np.where(y[:, None] == 1, 2 * noise, 2 / np.sqrt(20) + noise)
    return X, y.astype(np.int64)


def make_twonorm(
    n_samples: int = 7_400, *, random_state: int | np.random.RandomState | None = None
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Draw Breiman's twonorm: two normal classes side by side.

    Parameters
    ----------
    n_samples : int, default=7400
        Number of rows.
    random_state : int, RandomState instance or None, default=None
        Draws everything.

    Returns
    -------
    X : ndarray of shape (n_samples, 20)
        Features with a standard deviation of 1 in each class.
    y : ndarray of shape (n_samples,)
        1 for the class around ``2 / sqrt(20)``, -1 for the class around ``-2 / sqrt(20)``.

    References
    ----------
    L. Breiman, "Bias, variance, and arcing classifiers", Technical Report 460, University of
    California at Berkeley, 1996.

    Examples
    --------
    >>> X, y = make_twonorm(2000, random_state=0)
    >>> round(float((y[:, None] * X).mean()), 1)
    0.4
    """
    _require_counts(n_samples=n_samples)
    rng = check_random_state(random_state)
    y = 2 * rng.randint(2, size=n_samples) - 1
    X = y[:, None] * 2 / np.sqrt(20) + rng.normal(size=(n_samples, 20))
    return np.asarray(X), y.astype(np.int64)


def _require_counts(**counts: Any) -> None:
    for name, count in counts.items():
        is_whole = isinstance(count, (int, np.integer)) and not isinstance(count, bool)
        if not is_whole or count < 1:
            raise ValueError(f"{name}={count!r} must be a whole number of at least 1")


def _bits(rng: np.random.RandomState, n_samples: int, n_bits: int) -> npt.NDArray[np.float64]:
    return np.asarray(2.0 * rng.randint(2, size=(n_samples, n_bits)) - 1.0)
