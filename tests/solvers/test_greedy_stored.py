"""The greedy solver on stored distances gives the path of its other ways of evaluating."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from hardmargin.kernels import Kernel, KernelRows
from hardmargin.solvers import greedy
from hardmargin.solvers.greedy import GreedyOptions
from hardmargin.solvers.problem import Problem

N = 300
RNG = np.random.default_rng(0)
WIDE = RNG.normal(size=(N, 120))
TEXT = sp.random_array((N, 6000), density=0.01, format="csr", rng=RNG)
CODES = np.arange(N, dtype=np.int32) % 3
MACHINES = [([0], [1]), ([0], [2]), ([1, 0], [2])]
KERNELS = (Kernel("rbf", gamma=0.01), Kernel("laplacian", gamma=0.01), Kernel("linear"))


def solve(kernel, X, weights=None, *, dtype="float64", **options):
    problem = Problem(KernelRows(kernel, X, dtype), CODES, MACHINES, weights)
    return greedy.solve(problem, GreedyOptions(**options))


@pytest.fixture
def calls(monkeypatch):
    """Kernels that all distances were evaluated for."""
    found = []
    of = greedy.KernelRows.with_metric

    def spy(rows, *arguments, **named):
        result = of(rows, *arguments, **named)
        found.extend([result.kernel.name] if result.metric is not None else [])
        return result

    monkeypatch.setattr(greedy.KernelRows, "with_metric", spy)
    return found


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
@pytest.mark.parametrize("X", [WIDE, TEXT], ids=["wide", "text"])
@pytest.mark.parametrize("max_visits", [1, 4])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_the_path_is_that_of_columns(calls, kernel, X, max_visits, is_weighted):
    weights = RNG.permutation(N) % 3.0 if is_weighted else None
    stored = solve(kernel, X, weights, max_visits=max_visits)
    assert calls == [kernel.name]
    columns = solve(kernel, X, weights, max_visits=max_visits, method="fused")
    assert calls == [kernel.name]
    for one, other in zip(stored, columns, strict=True):
        np.testing.assert_array_equal(one.history["row"], other.history["row"])
        np.testing.assert_allclose(one.coefficients, other.coefficients, rtol=1e-6, atol=1e-9)
        assert one.squared_norm == pytest.approx(other.squared_norm)
        assert one.squared_radius == pytest.approx(other.squared_radius)
        assert (one.stop_reason, one.method) == (other.stop_reason, "fused")


def test_copies_are_chosen_in_their_order():
    X = np.vstack([WIDE, WIDE])
    codes = np.append(CODES, CODES)
    problem = Problem(KernelRows(KERNELS[0], X), codes, MACHINES)
    stored, columns = (
        greedy.solve(problem, GreedyOptions(method=method)) for method in ("auto", "fused")
    )
    for one, other in zip(stored, columns, strict=True):
        np.testing.assert_array_equal(one.history["row"], other.history["row"])


def test_the_first_stages_of_float32_are_those_of_float64():
    double, single = (solve(KERNELS[0], WIDE, dtype=d) for d in ("float64", "float32"))
    for one, other in zip(double, single, strict=True):
        np.testing.assert_array_equal(one.history["row"][:5], other.history["row"][:5])
        np.testing.assert_allclose(one.history["loss"][:50], other.history["loss"][:50], rtol=1e-4)


@pytest.mark.parametrize(
    "options",
    [{"memory_bytes": 10 * N * 120}, {"may_store": False}, {"max_stages": 5}],
    ids=lambda options: next(iter(options)),
)
def test_nothing_is_stored(calls, options):
    solve(KERNELS[0], WIDE, **options)
    assert calls == []


@pytest.mark.parametrize("method", ["fused", "lazy"])
def test_a_method_means_what_it_says(calls, method):
    solutions = solve(KERNELS[0], WIDE, method=method)
    assert {s.method for s in solutions} == {method}
    assert calls == []
