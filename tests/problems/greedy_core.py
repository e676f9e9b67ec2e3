"""Small greedy machines of the core: by every rule, from states, or on stored values."""

import struct

import numpy as np

from hardmargin import _core

N = 60
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 2))
CODES = (X[:, 0] + 0.3 * RNG.normal(size=N) > 0).astype(np.int32)


def run(state=b"", keep=None, **options):
    """Train one machine on the rows, from a state."""
    kernel = ("rbf", 1.0, 0.0, 1.0)
    return _trained(X, kernel, {"states": [state], "keep": keep} | options)


def run_values(K, **options):
    """Train one machine on stored kernel values."""
    return _trained(K, None, {"states": [], "keep": None} | options)


def _trained(matrix, kernel, options):
    arguments = {
        "classes": CODES,
        "n_classes": 2,
        "machines": [([0], [1])],
        "weights": None,
        "diagonal": None,
        "method": "fused",
        "dtype": "float64",
        "max_visits": 1.0,
        "step_tol": 0.0,
        "max_stages": 100,
        "memory_bytes": 2**24,
        "block_rows": 16,
        "n_threads": 1,
        "folder": "",
        "keep_seconds": 0.0,
        "monitor": None,
    }
    [result] = _core.greedy(matrix, kernel, None, **(arguments | options))
    return result


def state_after(n_stages, **options):
    kept = []

    def keep(machine, state):
        kept.append(state)
        return 0.0

    run(keep=keep, **(options | {"max_stages": n_stages}))
    return kept[-1]


def signed(content):
    """Add the hash of a state, so that only its contents can be wrong."""
    found = 14695981039346656037
    for byte in content:
        found = (found ^ byte) * 1099511628211 % 2**64
    return content + struct.pack("<Q", found)


WAYS = {
    "once": {},
    "again": {"max_visits": 3.0, "step_tol": 0.02},
    "lazy": {"method": "lazy"},
    "lazy, again": {"method": "lazy", "max_visits": 3.0, "step_tol": 0.02},
    "weighted": {"weights": np.full(N, 2.0)},
    "of any diagonal": {"diagonal": np.ones(N)},
}
