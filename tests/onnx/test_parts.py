"""Parts of the graphs compute what the package computes."""

from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from problems.onnx_sessions import values_of

from hardmargin.estimators._base.missing import find_filling
from hardmargin.kernels import Kernel, KernelSum, View
from hardmargin.kernels.views import Ranks
from hardmargin.onnx import expansion
from hardmargin.onnx.expansion import expanded
from hardmargin.onnx.probabilities import calibrated, uncalibrated
from hardmargin.onnx.scaling import scaled, seen
from hardmargin.onnx.table import filled
from hardmargin.scaling import find_scaling
from hardmargin.selection.calibration import Calibration, class_scores

few_examples = settings(max_examples=20, deadline=None)


def n_machines(n_classes, multi_class):
    if n_classes == 2:
        return 1
    return n_classes if multi_class == "ovr" else n_classes * (n_classes - 1) // 2


@few_examples
@given(
    seed=st.integers(0, 1000),
    n_classes=st.integers(2, 6),
    multi_class=st.sampled_from(["ovo", "ovr"]),
    scale=st.sampled_from([0.01, 1.0, 5.0]),
)
def test_probabilities(seed, n_classes, multi_class, scale):
    rng = np.random.default_rng(seed)
    size = n_machines(n_classes, multi_class)
    margins = scale * rng.normal(size=(50, size))
    calibration = Calibration(rng.uniform(0.1, 3, size), n_classes, multi_class, tau=1.7)
    found = values_of(lambda g, m: calibrated(g, m, calibration).probabilities, margins)
    np.testing.assert_allclose(found, calibration.probabilities(margins), rtol=0, atol=1e-8)


@few_examples
@given(
    seed=st.integers(0, 1000),
    n_classes=st.integers(2, 6),
    multi_class=st.sampled_from(["ovo", "ovr"]),
)
def test_scores_without_probabilities(seed, n_classes, multi_class):
    rng = np.random.default_rng(seed)
    margins = rng.normal(size=(50, n_machines(n_classes, multi_class)))
    found = values_of(lambda g, m: uncalibrated(g, m, n_classes, multi_class).scores, margins)
    np.testing.assert_allclose(found, class_scores(margins, n_classes, multi_class), atol=1e-12)


def test_a_margin_of_zero_is_of_the_second_class():
    calibration = Calibration(np.ones(1), 2, "ovo")
    found = values_of(
        lambda g, m: calibrated(g, m, calibration).probabilities, np.array([[0.0], [-1e-20]])
    )
    assert (found[:, 1] >= 0.5).tolist() == [True, False]


@few_examples
@given(seed=st.integers(0, 1000))
def test_ranks(seed):
    """Between knots, at knots and beyond them, also where knots nearly coincide."""
    rng = np.random.default_rng(seed)
    X = rng.lognormal(size=(400, 4))
    X[:, 1] = X[:, 1].round(1)
    X[:200, 2] = 1 + 1e-15 * rng.integers(0, 9, 200)
    X[:, 3] = X[:, 3] > 1
    view = View("rank", Ranks.of(X), rng.uniform(size=4))
    Q = np.vstack([X, 3 * rng.normal(size=(50, 4))])
    found = values_of(lambda g, q: seen(g, q, 4, view), Q)
    np.testing.assert_allclose(found, view.of(Q), atol=1e-9)


@pytest.mark.filterwarnings("ignore:Some values of")
def test_scaling_of_clipped_and_extreme_columns():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4)) * [1.0, 1e150, 1e-150, 5e-320]
    X[7, 0] = 1e9
    scaling = find_scaling(X, None, lambda: np.array(list("abcd")))
    assert scaling.clip is not None
    assert scaling.exponents is not None
    found = values_of(lambda g, q: scaled(g, q, scaling), X)
    np.testing.assert_allclose(found, scaling.transform(X), rtol=1e-14)


@pytest.mark.filterwarnings("ignore:Columns without any value are ignored")
@pytest.mark.filterwarnings("ignore:Missing values of")
def test_filling():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 4))
    X[3:9, 1], X[:, 2] = np.nan, np.nan
    names = partial(np.array, list("abcd"))
    filling = find_filling(X, None, names)
    Q = rng.normal(size=(30, 4))
    Q[rng.random(Q.shape) < 0.3] = np.nan
    found = values_of(lambda g, q: filled(g, q, filling), Q)
    np.testing.assert_array_equal(found, filling.transform(Q, names))


def sparse_by_class(rng, n_classes, n_kernels, codes):
    """Coefficients of all pairs: a row has some only in the machines of its class."""
    rows = []
    for i in range(n_classes):
        for j in range(i + 1, n_classes):
            rows.append(np.tile(np.isin(codes, [i, j]), n_kernels) * 1.0)
    return sp.csr_array(np.array(rows) * rng.normal(size=(len(rows), n_kernels * len(codes))))


@pytest.mark.parametrize("names", [("rbf",), ("laplacian",), ("rbf", "laplacian", "rbf")])
@pytest.mark.parametrize("is_cut", [False, True])
def test_expansions_in_blocks(names, is_cut):
    rng = np.random.default_rng(0)
    codes = np.sort(rng.integers(6, size=60))
    kernels = [Kernel(name, gamma=0.2 / (k + 1)) for k, name in enumerate(names)]
    kernel = kernels[0] if len(kernels) == 1 else KernelSum(tuple(kernels))
    S, Q = rng.normal(size=(60, 3)), rng.normal(size=(20, 3))
    coef = sparse_by_class(rng, 6, len(kernels), codes)
    blocks = [np.flatnonzero(codes == c) for c in range(6)] if is_cut else [np.arange(60)]
    found = values_of(lambda g, q: expanded(g, q, S, kernels, coef, blocks), Q)
    np.testing.assert_allclose(found, kernel.expand(Q, S, coef), atol=1e-12)


@pytest.mark.parametrize("name", ["poly", "sigmoid"])
def test_kernels_of_inner_products(name):
    rng = np.random.default_rng(0)
    kernel = Kernel(name, gamma=1 / 7, degree=4, coef0=0.3)
    S, Q, coef = rng.normal(size=(30, 5)), rng.normal(size=(20, 5)), rng.normal(size=(2, 30))
    found = values_of(lambda g, q: expanded(g, q, S, [kernel], coef, [np.arange(30)]), Q)
    np.testing.assert_allclose(found, kernel.expand(Q, S, coef), atol=1e-12)


@pytest.mark.parametrize("shift", [0.0, 1e6])
@pytest.mark.parametrize("spread", [1.0, 1e9])
def test_distances_keep_their_digits(shift, spread):
    """Rows far from the origin, and clusters of rows far from each other."""
    rng = np.random.default_rng(0)
    centres = spread * rng.integers(-3, 4, size=(40, 3))
    S = shift + centres + rng.normal(size=(40, 3))
    Q = shift + centres + rng.normal(size=(40, 3))
    kernel, coef = Kernel("rbf", gamma=0.5), rng.normal(size=(1, 40))
    exact = np.exp(-0.5 * np.square(Q[:, None] - S).sum(axis=2)) @ coef.T
    found = values_of(lambda g, q: expanded(g, q, S, [kernel], coef, [np.arange(40)]), Q)
    np.testing.assert_allclose(found, exact, atol=1e-6)


@pytest.mark.parametrize("n_rows", [0, 1, 3, 4, 5, 8, 21])
@pytest.mark.parametrize("names", [("rbf",), ("laplacian", "poly", "rbf")])
def test_blocks_of_rows_give_every_row_its_sum(monkeypatch, n_rows, names):
    monkeypatch.setattr(expansion, "MOST_ROWS", 4)
    rng = np.random.default_rng(0)
    kernels = [Kernel(name, gamma=0.2) for name in names]
    kernel = kernels[0] if len(kernels) == 1 else KernelSum(tuple(kernels))
    S, Q = rng.normal(size=(30, 11)), rng.normal(size=(n_rows, 11))
    coef = rng.normal(size=(2, 30 * len(kernels)))
    found = values_of(lambda g, q: expanded(g, q, S, kernels, coef, [np.arange(30)]), Q)
    assert found.shape == (n_rows, 2)
    if n_rows:
        np.testing.assert_allclose(found, kernel.expand(Q, S, coef), rtol=1e-12, atol=1e-11)


@pytest.mark.parametrize("name", ["rbf", "laplacian"])
def test_kernels_whose_gammas_are_powers_of_two_apart(name):
    rng = np.random.default_rng(0)
    kernels = [Kernel(name, gamma=gamma) for gamma in (0.8, 0.1, 0.3, 0.2, 0.1)]
    S, Q, coef = rng.normal(size=(30, 5)), rng.normal(size=(20, 5)), rng.normal(size=(2, 150))
    found = values_of(lambda g, q: expanded(g, q, S, kernels, coef, [np.arange(30)]), Q)
    np.testing.assert_allclose(found, KernelSum(tuple(kernels)).expand(Q, S, coef), atol=1e-12)


@pytest.mark.parametrize("name", ["rbf", "laplacian"])
@pytest.mark.parametrize("spread", [1.0, 1e5])
def test_float32_is_as_exact_as_kernels_in_float32(name, spread):
    rng = np.random.default_rng(0)
    kernel, coef = Kernel(name, gamma=0.1), rng.uniform(size=(1, 40))
    S = spread * rng.integers(-3, 4, size=(40, 9)) + rng.normal(size=(40, 9))
    Q = np.vstack([S + 0.1 * rng.normal(size=S.shape), np.full((1, 9), 1e200)])
    found = values_of(lambda g, q: expanded(g, q, S, [kernel], coef, [np.arange(40)], "float32"), Q)
    exact = kernel.expand(Q[:-1], S, coef)
    np.testing.assert_allclose(found[:-1], exact, rtol=1e-5)
    assert 0 <= found[-1, 0] < 1e-30
