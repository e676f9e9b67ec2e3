"""Every CPU level of the compiled core gives the same float64 results.

The level is chosen when the core is first used, so each one gets a process of its own.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from problems.processes import run_program

# Continuous columns keep the gradients clear of near-ties, which rounding could decide.
CHILD = """
import sys
import numpy as np
import scipy.sparse as sp
from hardmargin import GreedySVC, _core
from hardmargin.kernels import Kernel, KernelSum

generator = np.random.default_rng(0)
X = np.hstack([generator.normal(size=(300, 5)), generator.integers(0, 2, size=(300, 40))])
y = (X[:, 0] + X[:, 1] ** 2 + X[:, 5:10].sum(axis=1) > 3.5).astype(int)
wide = sp.random_array((80, 5000), density=0.01, format="csr", random_state=generator)
coef = generator.normal(size=(7, 70))
results = {"level": np.array(_core.level())}

for kernel in (
    Kernel("rbf", gamma=0.05),
    Kernel("laplacian", gamma=0.05),
    Kernel("linear"),
    Kernel("poly", gamma=0.05, degree=3, coef0=1.0),
    Kernel("sigmoid", gamma=0.02),
):
    results[f"block {kernel.name}"] = kernel.block(X, X[:70])
    results[f"block of wide rows {kernel.name}"] = kernel.block(wide)
    results[f"expand {kernel.name}"] = kernel.expand(X, X[:70], coef)

for name in ("rbf", "laplacian"):
    powers = KernelSum(tuple(Kernel(name, gamma=0.05 * ratio) for ratio in (4, 1, 16)))
    results[f"expand powers {name}"] = powers.expand(X, X[:70], np.hstack([coef, -coef, coef]))

def fit(name, y, X=X, **parameters):
    model = GreedySVC(**{"max_visits": 1, **parameters}, dtype="float64").fit(X, y)
    results[f"support {name}"] = model.support_
    coef = model.dual_coef_
    results[f"dual_coef {name}"] = coef.toarray() if sp.issparse(coef) else coef
    results[f"decision {name}"] = model.decision_function(X)

for method in ("fused", "lazy", "bits", "lazy-bits"):
    fit(method, y, gamma=0.05, method=method)
    fit(f"{method} with revisits", y, gamma=0.05, method=method, max_visits=4)
fit("laplacian", y, gamma=0.05, kernel="laplacian")
fit("poly", y, gamma=0.05, kernel="poly", coef0=1.0)
fit("three classes", y + (X[:, 2] > 0.5), gamma=0.05)
fit("wide rows", np.arange(80) % 2, wide, gamma=1.0)
np.savez(sys.argv[1], **results)
"""
LEVELS = ("baseline", "avx2", "avx512")


@cache
def run_at(level: str | None) -> tuple[str, dict[str, np.ndarray]]:
    """Return the reason if there are no results, and the results."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "results.npz"
        child = run_program(CHILD, str(path), HARDMARGIN_LEVEL=level)
        if f"HARDMARGIN_LEVEL={level} is not a level of this CPU" in child.stderr:
            return child.stderr.strip().splitlines()[-1], {}
        assert child.returncode == 0, child.stderr
        with np.load(path) as file:
            return "", dict(file)


def results_at(level: str | None) -> dict[str, np.ndarray]:
    why_not, results = run_at(level)
    if why_not:
        pytest.skip(why_not)
    return results


@pytest.mark.parametrize("level", LEVELS)
def test_named_level_is_used(level):
    assert results_at(level)["level"] == level


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("kind", ["block", "expand", "dual_coef", "decision"])
def test_numbers_are_those_of_the_default_level(level, kind):
    expected, actual = results_at(None), results_at(level)
    for name in filter(lambda name: name.startswith(kind), expected):
        np.testing.assert_allclose(
            actual[name], expected[name], rtol=1e-10, atol=1e-10, err_msg=name
        )


@pytest.mark.parametrize("level", LEVELS)
def test_support_rows_are_those_of_the_default_level(level):
    expected, actual = results_at(None), results_at(level)
    for name in filter(lambda name: name.startswith("support"), expected):
        np.testing.assert_array_equal(actual[name], expected[name], err_msg=name)


def test_unknown_level_is_refused_and_the_known_ones_are_listed():
    code = "import numpy; from hardmargin.kernels import Kernel; Kernel('rbf').block(numpy.eye(2))"
    child = run_program(code, HARDMARGIN_LEVEL="sse9")
    assert child.returncode != 0
    message = child.stderr.strip().splitlines()[-1]
    assert message.startswith("RuntimeError: HARDMARGIN_LEVEL=sse9 is not a level of this CPU")
    assert "baseline" in message
