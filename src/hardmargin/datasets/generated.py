"""The two generated problems of ESANN-99, on strings of bits -1 and +1."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state

__all__ = ["make_majority_rule", "make_mirror_symmetry"]


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
        Bits -1.0 and 1.0, each as likely as the other.
    y : ndarray of shape (n_samples,)
        1 where more bits are +1 than -1, otherwise -1, ties included.

    Examples
    --------
    >>> X, y = make_majority_rule(4, n_bits=4, random_state=0)
    >>> X.sum(axis=1), y
    (array([ 0.,  4.,  2., -2.]), array([-1,  1,  1, -1]))
    """
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
        1 where the row equals itself reversed (by chance as well), otherwise -1.

    Examples
    --------
    >>> X, y = make_mirror_symmetry(4, n_bits=6, random_state=4)
    >>> X[y == 1]
    array([[ 1., -1., -1., -1., -1.,  1.],
           [-1., -1., -1., -1., -1., -1.]])
    """
    rng = check_random_state(random_state)
    X = _bits(rng, n_samples, n_bits)
    half = n_bits // 2
    mirrored = rng.permutation(n_samples)[: n_samples // 2]
    X[mirrored, n_bits - half :] = X[mirrored, :half][:, ::-1]
    return X, np.where((X[:, ::-1] == X).all(axis=1), 1, -1).astype(np.int64)


def _bits(rng: np.random.RandomState, n_samples: int, n_bits: int) -> npt.NDArray[np.float64]:
    return np.asarray(2.0 * rng.randint(2, size=(n_samples, n_bits)) - 1.0)
