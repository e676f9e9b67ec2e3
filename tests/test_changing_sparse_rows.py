"""Threads that write into the indices of sparse rows must not crash a call that reads them."""

from __future__ import annotations

import pytest
from problems.processes import output_of

# While the core is at work it calls a function now and then. Here that function lets another thread
# write wild values into the arrays that the core was given, and waits for it.
PROGRAM = """
import sys
from threading import Thread
from types import SimpleNamespace
from unittest import mock

import numpy as np
import scipy.sparse as sp

from hardmargin import GreedySVC, HardMarginSVC, _core
from hardmargin.kernels import Kernel

CALLS = 0


def disturbed(function):
    def call(*arguments, **options):
        global CALLS
        rows = [a for a in arguments if isinstance(a, tuple) and isinstance(a[0], np.ndarray)]
        arrays = [array for parts in rows for array in parts[1:3]]
        before = [array.copy() for array in arrays]

        def write():
            for array in arrays:
                array.fill(2**30)

        def meanwhile(*_):
            thread = Thread(target=write)
            thread.start()
            thread.join()
            return True

        if "monitor" in options:
            options["monitor"] = SimpleNamespace(seconds_left=np.inf, report=meanwhile)
        else:
            arguments = (*arguments[:-1], meanwhile)
        CALLS += bool(rows)
        try:
            return function(*arguments, **options)
        finally:
            for array, values in zip(arrays, before, strict=True):
                array[:] = values
    return call


def fitted(estimator):
    return estimator.fit(X, y).dual_coef_


def outcome(what):
    kernel = Kernel("rbf", gamma=1.0 / X.shape[1])
    if what == "block":
        return kernel.block(X, n_jobs=1)
    if what == "expand":
        return kernel.product(X, y, n_jobs=1)
    if what == "greedy":
        return fitted(GreedySVC(1.0 / X.shape[1], max_visits=1, n_jobs=1))
    return fitted(HardMarginSVC(gamma=1.0 / X.shape[1], max_stages=300, n_jobs=1))


what, n_columns = sys.argv[1], int(sys.argv[2])
rng = np.random.default_rng(0)
X = sp.random_array((2_000, n_columns), density=20 / n_columns, format="csr", rng=rng)
y = np.arange(2_000) % 2
expected = outcome(what)
names = ("block_float64", "expand", "greedy", "hard_margin")
with mock.patch.multiple(_core, **{name: disturbed(getattr(_core, name)) for name in names}):
    found = outcome(what)
assert CALLS > 0
assert abs(found - expected).max() == 0
print("alive")
"""


@pytest.mark.parametrize("what", ["block", "expand", "greedy", "hard_margin"])
@pytest.mark.parametrize("n_columns", [100, 10_000])
def test_core_reads_its_own_indices(what, n_columns):
    assert output_of(PROGRAM, what, str(n_columns)).strip() == "alive"
