"""The fast ways of evaluating give the greedy solver the path of the naive one."""

import functools

import numpy as np
import pytest
import scipy.sparse as sp
from problems.two_class import (
    DISTANCE,
    KERNELS,
    assert_same_path,
    mixed,
    mixed_path,
    noisy_labels,
    oracle,
    small,
    solve,
)

from hardmargin.kernels import Kernel


@functools.cache
def categories(kind, n=600, seed=0):
    """Continuous columns, and two-valued ones that are not all cleanly one-hot encoded."""
    rng = np.random.default_rng(seed)
    if kind == "many":
        columns = np.eye(300)[rng.integers(300, size=n)]
    elif kind == "some missing":
        columns = np.eye(9)[rng.integers(9, size=n)] * (rng.random((n, 1)) < 0.7)
    elif kind == "nearly exclusive":
        columns = np.eye(9)[rng.integers(9, size=n)]
        columns[:5, :2] = 1.0
    elif kind == "independent":
        columns = (rng.random((n, 70)) < 0.5).astype(float)
    elif kind == "two steps":
        columns = np.hstack([2.5 * np.eye(6)[rng.integers(6, size=n)] for _ in range(2)])
        columns = np.hstack([columns, 1 - 2.0 * rng.integers(2, size=(n, 6))])
    elif kind == "one value each":
        columns = np.vstack([np.eye(n)[: n // 2], np.zeros((n - n // 2, n))])[:, : n // 2]
    else:
        raise ValueError(kind)
    X = np.hstack([columns, rng.normal(size=(n, 3))])
    return X, noisy_labels(X[:, ::-1], rng)


CATEGORIES = [
    "many",
    "some missing",
    "nearly exclusive",
    "independent",
    "two steps",
    "one value each",
]


@functools.cache
def clustered(n=2400, seed=0):
    """Clusters far apart: most values of a narrow kernel vanish."""
    rng = np.random.default_rng(seed)
    centres = rng.uniform(-100, 100, size=(30, 2))
    X = centres[rng.integers(30, size=n)] + 2 * rng.normal(size=(n, 2))
    return X, np.where(rng.random(n) < 0.5, 1.0, -1.0)


@functools.cache
def clustered_path(name, max_visits):
    return oracle(KERNELS[name], *clustered(), max_visits=max_visits)


@functools.cache
def recurring(n=2500, seed=0):
    """Categories alone, few enough that most rows recur, some of them with the other label."""
    rng = np.random.default_rng(seed)
    X = np.hstack([np.eye(k)[rng.integers(k, size=n)] for k in (6, 9, 3)])
    score = X @ rng.normal(size=X.shape[1]) + rng.normal(scale=0.3, size=n)
    return X, np.where(score > np.median(score), 1.0, -1.0)


@functools.cache
def recurring_path(name):
    return oracle(KERNELS[name], *recurring())


@pytest.mark.parametrize("method", ["auto", "fused", "lazy", "bits", "lazy-bits"])
@pytest.mark.parametrize("name", DISTANCE)
def test_rows_that_recur_are_chosen_in_order(name, method):
    solution = solve(KERNELS[name], *recurring(), method=method, block_rows=64)
    assert_same_path(solution, recurring_path(name))


@pytest.mark.once_per("method", "block_rows")
@pytest.mark.parametrize("block_rows", [32, 256, 1000])
@pytest.mark.parametrize("method", ["auto", "fused", "lazy", "bits", "lazy-bits"])
@pytest.mark.parametrize("name", DISTANCE)
def test_methods_give_the_same_path_on_mixed_columns(name, method, block_rows):
    solution = solve(KERNELS[name], *mixed(), method=method, block_rows=block_rows)
    assert_same_path(solution, mixed_path(name, 1))


@pytest.mark.once_per("kind", "method")
@pytest.mark.parametrize("method", ["bits", "lazy-bits"])
@pytest.mark.parametrize("kind", CATEGORIES)
@pytest.mark.parametrize("name", DISTANCE)
def test_bits_give_the_path_of_the_numbers(name, kind, method):
    X, y = categories(kind)
    solution = solve(KERNELS[name], X, y, method=method, block_rows=64)
    assert_same_path(solution, oracle(KERNELS[name], X, y))


@pytest.mark.parametrize("kind", CATEGORIES)
def test_bits_of_sparse_rows_give_the_path_of_the_numbers(kind):
    X, y = categories(kind)
    solution = solve(KERNELS["rbf"], sp.csr_array(X), y, method="bits")
    assert_same_path(solution, oracle(KERNELS["rbf"], X, y))


@pytest.mark.parametrize("block_rows", [32, 256])
@pytest.mark.parametrize("method", ["auto", "fused", "lazy"])
@pytest.mark.parametrize("name", DISTANCE)
def test_methods_give_the_same_path_on_clusters(name, method, block_rows):
    solution = solve(KERNELS[name], *clustered(), method=method, block_rows=block_rows)
    assert_same_path(solution, clustered_path(name, 1))


@pytest.mark.parametrize("method", ["auto", "fused", "lazy", "bits", "lazy-bits"])
def test_methods_give_the_same_path_on_sparse_mixed_columns(method):
    X, y = mixed()
    solution = solve(KERNELS["rbf"], sp.csr_array(X), y, method=method)
    assert_same_path(solution, mixed_path("rbf", 1))


@pytest.mark.once_per("method", "memory_bytes")
@pytest.mark.parametrize("memory_bytes", [400_000, 2**30])
@pytest.mark.parametrize("method", ["fused", "lazy", "bits", "lazy-bits", "auto"])
@pytest.mark.parametrize("max_visits", [4, 64])
def test_methods_give_the_same_path_with_revisits(max_visits, method, memory_bytes):
    n = 700
    X, y = (a[:n] for a in mixed())
    solution = solve(
        KERNELS["rbf"], X, y, max_visits=max_visits, method=method, memory_bytes=memory_bytes
    )
    assert_same_path(solution, oracle(KERNELS["rbf"], X, y, max_visits=max_visits))


@pytest.mark.once_per("method", "memory_bytes")
@pytest.mark.parametrize("memory_bytes", [400_000, 2**30])
@pytest.mark.parametrize("method", ["lazy", "auto"])
@pytest.mark.parametrize("name", DISTANCE)
def test_lazy_revisits_on_clusters(name, method, memory_bytes):
    solution = solve(
        KERNELS[name], *clustered(), max_visits=4, method=method, memory_bytes=memory_bytes
    )
    assert_same_path(solution, clustered_path(name, 4))


def test_lazy_evaluates_a_fraction_where_the_kernel_is_narrow():
    lazy = solve(KERNELS["rbf"], *clustered(), method="lazy", block_rows=32)
    fused = solve(KERNELS["rbf"], *clustered(), method="fused")
    assert lazy.n_kernel_evaluations < 0.3 * fused.n_kernel_evaluations


def test_auto_stays_lazy_where_the_kernel_is_narrow():
    assert solve(KERNELS["rbf"], *clustered(), block_rows=32).method == "lazy"


def test_auto_gives_up_laziness_where_the_kernel_is_broad():
    X, _ = clustered()
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    # One block per class, and the classes take turns: no column can be postponed.
    assert solve(Kernel("rbf", gamma=1e-6), X, y, block_rows=4096).method == "fused"


def test_auto_packs_two_valued_columns():
    assert "bits" in solve(KERNELS["rbf"], *mixed()).method


@pytest.mark.parametrize("method", ["fused", "lazy"])
def test_a_named_method_is_kept(method):
    assert solve(KERNELS["rbf"], *mixed(), method=method).method == method


def test_fused_evaluates_no_more_than_one_column_per_stage():
    X, y = small()
    solution = solve(KERNELS["rbf"], X, y, method="fused")
    assert solution.n_kernel_evaluations <= len(X) * solution.n_stages


def test_columns_are_kept_for_revisits():
    X, y = small()
    solution = solve(KERNELS["rbf"], X, y, max_visits=64, method="fused")
    assert solution.n_kernel_evaluations <= len(X) * len(np.unique(solution.history["row"]))


@pytest.mark.parametrize("name", ["linear", "poly", "sigmoid"])
def test_lazy_refuses_kernels_without_bounds(name):
    with pytest.raises(ValueError, match="lazy"):
        solve(KERNELS[name], *small(), method="lazy")


def test_bits_refuse_data_without_two_valued_columns():
    with pytest.raises(ValueError, match="two"):
        solve(KERNELS["rbf"], *small(), method="bits")


def test_lazy_blocks_of_constant_rows():
    y = np.tile([1.0, -1.0], 1200)
    solution = solve(KERNELS["rbf"], np.ones((2400, 2)), y, method="lazy", max_stages=100)
    assert solution.history["row"].tolist() == list(range(100))
