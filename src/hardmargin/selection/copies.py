"""Rows that are there more than once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hardmargin.kernels import Rows, is_sparse

IntArray = NDArray[np.intp]

#: A smaller share of copies is none.
LEAST_SHARE = 0.25

#: A feature of fewer values does not tell rows apart.
LEAST_VALUES = 20

#: Numbers that are hashed at a time.
_NUMBERS_AT_ONCE = 1_000_000


def first_copies(X: Rows, codes: NDArray[np.int32]) -> IntArray:
    """Find the first copy of every row: the same features and the same class.

    Rows of few possible values are equal by chance, and none is then a copy of another. Copies are
    looked for where a feature takes at least half as many values as there are different rows, and
    at least twenty. They must be a quarter of the rows, as where rows were drawn again: the rows to
    come repeat a few as well, and these do no harm.

    Parameters
    ----------
    X : rows
        Dense or CSR.
    codes : (n,) int array
        Class of each row, -1 for rows that take no part: they are no copies.

    Returns
    -------
    (n,) int array
        The number of the first row that each is equal to; its own, where there is none before it.
    """
    itself = np.arange(len(codes))
    present = np.flatnonzero(codes >= 0)
    some = X if len(present) == len(codes) else X[present]
    hashes = _hashes(some) + codes[present].astype(np.uint64)
    _, firsts, inverse = np.unique(hashes, return_index=True, return_inverse=True)
    n_copies = len(present) - len(firsts)
    if n_copies < LEAST_SHARE * len(present) or not _has_many_values(some[np.sort(firsts)]):
        return itself
    itself[present] = present[firsts[inverse]]
    return itself


def _hashes(X: Rows) -> NDArray[np.uint64]:
    """Sum random multiples of the features' bits, which wrap around: equal for equal rows."""
    factors = np.random.default_rng(0).integers(2**63, size=X.shape[1], dtype=np.uint64)
    factors = 2 * factors + np.uint64(1)
    if is_sparse(X):
        sums = np.zeros(len(X.data) + 1, dtype=np.uint64)
        np.cumsum(_bits(X.data) * factors[X.indices], out=sums[1:])
        return np.asarray(sums[X.indptr[1:]] - sums[X.indptr[:-1]])
    hashes = np.empty(X.shape[0], dtype=np.uint64)
    step = max(1, _NUMBERS_AT_ONCE // max(X.shape[1], 1))
    for begin in range(0, X.shape[0], step):
        part = slice(begin, begin + step)
        hashes[part] = (_bits(X[part]) * factors).sum(axis=1, dtype=np.uint64)
    return hashes


def _bits(values: NDArray[Any]) -> NDArray[np.uint64]:
    numbers = np.ascontiguousarray(values, dtype=np.float64) + 0.0  # no zero is negative
    bits = numbers.view(np.uint64)
    return bits ^ (bits >> np.uint64(32))  # the last bits of most numbers are zeros


def _has_many_values(X: Rows) -> bool:
    """Whether a feature takes enough values to tell rows apart."""
    least = max(X.shape[0] / 2, LEAST_VALUES)
    columns = X.tocsc() if is_sparse(X) else X
    for j in range(X.shape[1]):
        values = columns[:, [j]].data if is_sparse(X) else columns[:, j]
        if len(values) >= least and len(np.unique(values)) >= least:
            return True
    return False
