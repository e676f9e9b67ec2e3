"""Measure kernels of wide and sparse rows against products of matrices.

    python benchmarks/products.py [--repeats 9]

All on one thread and by CPU time, the two sides taking turns; ratios above 1 mean that we are
faster. A minute in all.

* ``Kernel.expand`` of the RBF kernel in float32, exponentials and sums included, against BLAS's
  product ``Q @ S.T`` alone, at 20, 200 and 1,000 columns, into new memory and into memory that is
  there already (which favours BLAS, as the kernel values are never stored);
* ``Kernel.block`` of 2,000 documents in CSR, of the same rows dense, and their ``expand``, against
  scikit-learn's ``rbf_kernel``;
* ``HardMarginSVC`` on 4,000 x 784 and 10,000 x 50 numbers, all its steps included, against
  scikit-learn's ``rbf_kernel`` of all rows;
* ``GreedySVC()`` on 2,000 dense rows of 5,000 columns.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.datasets import make_classification
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.metrics.pairwise import rbf_kernel
from threadpoolctl import threadpool_limits

from hardmargin import GreedySVC, HardMarginSVC, _core
from hardmargin.kernels import Kernel

ROWS = 3_072


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=9)
    options = parser.parse_args()
    print(f"level of the core: {_core.level()}; medians [least, largest]")
    with threadpool_limits(1):
        for n_columns in (20, 200, 1_000):
            expansion(n_columns, options.repeats)
        documents(min(options.repeats, 5))
        columns(min(options.repeats, 5))
        wide_fit()


def expansion(n_columns: int, repeats: int) -> None:
    """Queries against support rows, as in predictions."""
    rng = np.random.default_rng(0)
    Q, S = (rng.standard_normal((ROWS, n_columns), dtype=np.float32) for _ in range(2))
    coef, out = rng.standard_normal((1, ROWS)), np.zeros((ROWS, ROWS), dtype=np.float32)
    kernel = Kernel("rbf", gamma=0.5 / n_columns)
    for memory, product in {
        "": lambda: Q @ S.T,
        ", into memory that is there": lambda: np.matmul(Q, S.T, out=out),
    }.items():
        compare(
            f"expand at d = {n_columns:,} against BLAS's product{memory}",
            lambda: kernel.expand(Q, S, coef, dtype="float32", n_jobs=1),
            product,
            repeats,
        )


def documents(repeats: int) -> None:
    """2,000 documents of 26,000 words, by TF-IDF."""
    X = tf_idf(2_000, 26_000)
    kernel, coef = Kernel("rbf", gamma=1.0), np.ones((1, 2_000))
    X32, dense = X.astype(np.float32), X.toarray()
    for name, ours in {
        "float64": lambda: kernel.block(X, n_jobs=1),
        "float32": lambda: kernel.block(X32, dtype="float32", n_jobs=1),
        "expand, float32": lambda: kernel.expand(X32, X32, coef, dtype="float32", n_jobs=1),
    }.items():
        compare(
            f"documents in CSR, {name}, against rbf_kernel",
            ours,
            lambda: rbf_kernel(X, gamma=1.0),
            repeats,
        )
    compare(
        "the same rows dense, float64, against rbf_kernel",
        lambda: kernel.block(dense, n_jobs=1),
        lambda: rbf_kernel(dense, gamma=1.0),
        1,
    )


def columns(repeats: int) -> None:
    """Training makes the kernel columns that it needs, a few at once."""
    for n_rows, n_columns in ((4_000, 784), (10_000, 50)):
        X, y = make_classification(n_rows, n_columns, n_informative=30, random_state=0)
        gamma = 0.3 / n_columns
        compare(
            f"HardMarginSVC on {n_rows:,} x {n_columns}, against rbf_kernel of its rows",
            lambda X=X, y=y, gamma=gamma: HardMarginSVC(gamma, dtype="float64", n_jobs=1).fit(X, y),
            lambda X=X, gamma=gamma: rbf_kernel(X, gamma=gamma),
            repeats,
        )


def wide_fit() -> None:
    """Choosing everything on wide rows."""
    X, y = make_classification(2_000, 5_000, n_informative=50, random_state=0)
    seconds = cpu_seconds(lambda: GreedySVC(n_jobs=1).fit(X, y))
    print(f"GreedySVC() on 2,000 x 5,000 dense rows: {seconds:.1f} s; target: 5 s")


def tf_idf(n_rows: int, n_words: int) -> sp.csr_matrix:
    """Documents of about 150 words, drawn by Zipf's law."""
    rng = np.random.default_rng(0)
    share = 1.0 / (np.arange(n_words) + 10.0)
    lengths = np.maximum(rng.lognormal(np.log(180), 0.6, n_rows).astype(int), 5)
    words = rng.choice(n_words, size=lengths.sum(), p=share / share.sum())
    rows = np.repeat(np.arange(n_rows), lengths)
    counts = sp.coo_matrix((np.ones(len(rows)), (rows, words)), shape=(n_rows, n_words))
    return TfidfTransformer().fit_transform(counts.tocsr())


def compare(
    what: str, ours: Callable[[], object], theirs: Callable[[], object], repeats: int
) -> None:
    """Print how many times as fast we are, and the seconds of both sides."""
    times: NDArray[np.float64] = np.array(
        [(cpu_seconds(ours), cpu_seconds(theirs)) for _ in range(repeats)]
    )
    ratios = times[:, 1] / times[:, 0]
    us, them = np.median(times, axis=0)
    print(
        f"{what}: {np.median(ratios):.2f} [{ratios.min():.2f}, {ratios.max():.2f}]"
        f" ({1e3 * us:.1f} ms, {1e3 * them:.1f} ms)",
        flush=True,
    )


def cpu_seconds(call: Callable[[], object]) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


if __name__ == "__main__":
    main()
