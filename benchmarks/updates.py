"""Measure the multiplicative updates and the hard margin in one run.

    python benchmarks/updates.py --data-dir DIR [--repeats 3] [--large]

Three comparisons, all on one thread and by CPU time, the two sides taking turns:

* adult (a9a): RhoEnsembleSVC at low rank against one fit of scikit-learn's SVC, with both errors;
* one stage of Algorithm 1 of IJCAI-07 on a stored kernel of 4,000 rows against one symmetric
  matrix-vector product in float32;
* HardMarginSVC against SVC(C=1e8) on separable problems.

With ``--large`` it fits RhoEnsembleSVC at rank 400 to 400,000 rows of covtype instead.
"""

from __future__ import annotations

import argparse
import resource
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from data import PROBLEMS
from scipy.linalg import blas
from sklearn.datasets import load_breast_cancer, load_digits, make_classification, make_moons
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from hardmargin import HardMarginSVC, RhoEnsembleSVC
from hardmargin.datasets import load_covtype_binary
from hardmargin.kernels import make_kernel
from hardmargin.kernels.matrix import kernel_matrix
from hardmargin.solvers import rho
from hardmargin.solvers.problem import Problem
from hardmargin.solvers.rho import RhoOptions

STAGES = 40


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", required=True, help="folder of the data files")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--large", action="store_true", help="only 400,000 rows of covtype")
    options = parser.parse_args()
    with threadpool_limits(1):
        if options.large:
            return covtype(options.data_dir)
        hard_margins(options.repeats)
        stage(options.repeats)
        adult(options.data_dir, options.repeats)


def adult(data_dir: str, repeats: int) -> None:
    """RhoEnsembleSVC at low rank against one SVC fit at its usual setting."""
    X, y, X_test, y_test = PROBLEMS["a9a"].read(data_dir)
    print("\nadult a9a, 32,561 rows; target: 10x at an error within 0.3 points")
    svc = SVC(C=2.0, gamma=0.05, cache_size=2000)
    theirs = [clock(svc.fit, X, y)]
    error = 100 * (1 - svc.score(X_test, y_test))
    print(f"  SVC(C=2, gamma=0.05)       {theirs[0]:7.2f} s   error {error:.2f} %")
    for rank in (100, 200, 400):
        clf = RhoEnsembleSVC(rank=rank, random_state=0)
        ours = [clock(clf.fit, X, y) for _ in range(repeats)]
        ours_error = 100 * (1 - clf.score(X_test, y_test))
        print(
            f"  RhoEnsembleSVC(rank={rank})   {np.median(ours):7.2f} s   error {ours_error:.2f} %  "
            f" {clf.n_stages_} stages   {ratios(theirs * repeats, ours)}"
        )


def covtype(data_dir: str) -> None:
    """Hundreds of thousands of rows, which must fit in memory."""
    X, y, X_test, y_test = load_covtype_binary(data_dir, 400_000, scale=True)
    clf = RhoEnsembleSVC(rank=400, random_state=0)
    seconds = clock(clf.fit, X, y)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(
        f"covtype, 400,000 rows, rank 400: {seconds:.0f} s, {clf.n_stages_} stages, "
        f"peak {peak:.2f} GB, error {100 * (1 - clf.score(X_test, y_test)):.1f} %"
    )


def stage(repeats: int) -> None:
    """A stage on a stored kernel against the one product that it needs."""
    X, y = make_classification(4_000, 20, n_informative=10, random_state=0)
    kernel = make_kernel("rbf", X, gamma="spread")
    matrix = kernel_matrix(kernel, X, dtype="float32")
    labels = 2.0 * y - 1.0
    v = labels.astype(np.float32) / len(labels)

    def products() -> None:
        for _ in range(STAGES + 1):
            blas.ssymv(1.0, matrix.values.T, v)

    def stages() -> None:
        rho.solve(Problem.two_class(matrix, labels), RhoOptions(n_stages=STAGES))

    ours, theirs = [], []
    for _ in range(max(repeats, 5)):
        theirs.append(clock(products))
        ours.append(clock(stages))
    print(
        f"\nstage at 4,000 rows, float32: {1e3 * np.median(ours) / (STAGES + 1):.2f} ms; product "
        f"{1e3 * np.median(theirs) / (STAGES + 1):.2f} ms; {ratios(ours, theirs)} of one product "
        "(target: at most 1.5)"
    )


def hard_margins(repeats: int) -> None:
    """HardMarginSVC against SVC(C=1e8), both at tol=1e-3."""
    print("\nHardMarginSVC against SVC(C=1e8); target: no slower")
    for name, X, y, gamma in separable_problems():
        ours, theirs = [], []
        fast, slow = HardMarginSVC(gamma), SVC(C=1e8, gamma=gamma, cache_size=2000)
        for _ in range(max(repeats, 5)):
            ours.append(clock(fast.fit, X, y))
            theirs.append(clock(slow.fit, X, y))
        print(
            f"  {name:28s} {1e3 * np.median(ours):9.1f} ms  SVC {1e3 * np.median(theirs):9.1f} ms  "
            f"{ratios(theirs, ours)} faster   {norms(fast, slow, X)}"
        )


def separable_problems() -> list[tuple[str, Any, Any, float]]:
    X, y = load_breast_cancer(return_X_y=True)
    cancer = StandardScaler().fit_transform(X)
    digits, digit = load_digits(return_X_y=True)
    moons = make_moons(2_000, noise=0.15, random_state=0)
    wide = make_classification(4_000, 30, n_informative=15, class_sep=1.5, random_state=0)
    return [
        ("breast-cancer, 569 x 30", cancer, y, 1 / 30),
        ("digits, 10 classes", digits / 16.0, digit, 0.1),
        ("digits, odd or even", digits / 16.0, digit % 2, 0.1),
        ("moons, 2,000 x 2", *moons, 100.0),
        ("generated, 4,000 x 30", *wide, 0.02),
        ("breast-cancer, first 200", cancer[:200], y[:200], 1 / 30),
    ]


def norms(fast: Any, slow: Any, X: Any) -> str:
    """How close both come to the optimum, for two classes."""
    if len(fast.classes_) > 2:
        return ""
    kernel = make_kernel("rbf", X, gamma=fast.gamma)
    squares = []
    for model in (fast, slow):
        coef = np.asarray(model.dual_coef_)[0]
        squares.append(coef @ kernel.product(model.support_vectors_, coef))
    return f"||w||^2 {squares[0]:.6g} / {squares[1]:.6g}"


def clock(work: Callable[..., Any], *arguments: Any) -> float:
    """CPU seconds of a call; short ones are repeated to fill a fifth of a second."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        n, start = 0, time.process_time()
        while n == 0 or time.process_time() - start < 0.2:
            work(*arguments)
            n += 1
        return (time.process_time() - start) / n


def ratios(above: list[float], below: list[float]) -> str:
    each = [a / b for a, b in zip(above, below, strict=True)]
    return f"{np.median(each):.2f}x ({min(each):.2f}-{max(each):.2f})"


if __name__ == "__main__":
    main()
