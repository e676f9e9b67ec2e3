"""Kernels that are weighed by held-out rows, and vote.

The candidates are RBF and Laplacian kernels of widths around the spread of the rows. Each runs a
path of stages (``solvers/staged_vote.py``); its weight in the vote is its path's mass, faded by
how much worse its held-out loss is than the best of all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hardmargin.kernels import (
    DISTANCE_KERNELS,
    FloatArray,
    Kernel,
    KernelFunction,
    Precision,
    Rows,
    distances,
    is_sparse,
    make_kernel,
    resolve_gamma,
)
from hardmargin.selection.evidence import as_rows
from hardmargin.selection.folds import Folds
from hardmargin.solvers.problem import Machine
from hardmargin.solvers.staged_vote import (
    SHARPNESS,
    HeldOutPath,
    KernelSource,
    MachinePaths,
    PathOptions,
    Report,
    solve_paths,
)

#: Candidate widths, as factors of what `_UNIT_RULES` gives.
WIDTHS = {"rbf": (1 / 16, 1 / 4, 1.0, 4.0, 16.0), "laplacian": (1 / 4, 1.0, 4.0)}
_OTHER_WIDTHS = (1 / 4, 1.0, 4.0)

#: The width that a factor of one stands for.
_UNIT_RULES = {"rbf": "spread", "laplacian": "pairwise"}

#: Sparse rows of more columns than this have no Laplacian candidates: they would be slow.
MAX_SPARSE_LAPLACIAN = 1_000

#: A kernel with a smaller share of the vote is left out.
LEAST_SHARE = 0.02


@dataclass(frozen=True)
class Vote:
    """What the kernels of one machine vote.

    Attributes
    ----------
    rows : (n_rows,) int array
        Rows with a coefficient.
    shares : (n_kernels,) array
        Weight of every candidate: they add up to one, and most are zero.
    coefficients : (n_kernels, n_rows) array
        Of the vote, signed.
    intercept : float
        Its bias.
    held_rows : (n_held,) int array
        Rows that were held out, each as often as it was.
    held_scores : (n_held,) array
        Their scores, the bias included.
    paths : list of HeldOutPath
        Of every candidate.
    """

    rows: NDArray[Any]
    shares: FloatArray
    coefficients: FloatArray
    intercept: float
    held_rows: NDArray[Any]
    held_scores: FloatArray
    paths: list[HeldOutPath]


def candidate_kernels(
    kernel: str | KernelFunction,
    gamma: float | str,
    X: Rows,
    *,
    degree: float = 3,
    coef0: float = 0.0,
    sample_weight: FloatArray | None = None,
) -> list[Kernel]:
    """Kernels to choose from: one, where kernel and gamma are given.

    Parameters
    ----------
    kernel : str or callable
        ``"cv"`` stands for RBF and Laplacian; with a given gamma, for RBF alone.
    gamma : float or str
        ``"cv"`` stands for several widths.
    X : rows
        What the kernel will see.
    degree, coef0 : float
        Of poly and sigmoid kernels.
    sample_weight : array, optional
        Weights of the rows.
    """
    if gamma != "cv" or callable(kernel) or kernel in ("linear", "precomputed"):
        named = "rbf" if kernel == "cv" else kernel
        rule = "spread" if gamma == "cv" else gamma
        return [
            make_kernel(
                named, X, gamma=rule, degree=degree, coef0=coef0, sample_weight=sample_weight
            )
        ]
    names = list(DISTANCE_KERNELS) if kernel == "cv" else [kernel]
    if kernel == "cv" and is_sparse(X) and X.shape[1] > MAX_SPARSE_LAPLACIAN:
        names.remove("laplacian")
    found = []
    for name in names:
        rule = _UNIT_RULES.get(name, "spread")
        unit = resolve_gamma(rule, X, kernel=name, sample_weight=sample_weight)
        widths = WIDTHS.get(name, _OTHER_WIDTHS)
        if name == "poly" and coef0 == 0:
            widths = (1.0,)  # all others are multiples of it
        for width in widths:
            found.append(Kernel(name, gamma=width * unit, degree=degree, coef0=coef0))
    return found


def exact_votes(
    kernels: Sequence[Kernel],
    X: Rows,
    codes: NDArray[np.int32],
    machines: Sequence[Machine],
    *,
    weights: FloatArray,
    folds: Folds,
    dtype: Precision,
    options: PathOptions,
    report: Report | None = None,
) -> list[Vote]:
    """Run all candidates on stored kernel matrices, and count the votes of every machine.

    Distances are computed once for all kernels of a kind and all machines. Parameters are those of
    `solve_paths`; rows with a negative code take no part, and need not be in `X`'s classes.
    """
    # Rows of a class side by side: those of a machine are then few runs.
    rows = np.flatnonzero(codes >= 0)
    rows = rows[np.argsort(codes[rows], kind="stable")]
    arrays, sources, scales = _arrays(kernels, X, rows, dtype, options.n_threads)
    found = solve_paths(
        arrays,
        sources,
        np.ascontiguousarray(codes[rows]),
        machines,
        weights=weights[rows],
        train=folds.train[:, rows],
        test=folds.test[:, rows],
        options=options,
        report=report,
    )
    return [count_votes(paths, rows, weights, scales, _middle(kernels)) for paths in found]


def count_votes(
    paths: MachinePaths,
    rows: NDArray[Any],
    weights: FloatArray,
    scales: FloatArray,
    unchosen: int = 0,
) -> Vote:
    """Weigh the kernels of a machine, and add up what they say.

    Parameters
    ----------
    paths : MachinePaths
        Of all candidates.
    rows : int array
        The row that each number in `paths` stands for.
    weights : array
        Sample weights of all rows.
    scales : (n_kernels,) array
        What the values of each kernel were divided by.
    unchosen : int
        The kernel to take where no rows were held out.
    """
    of_machine = rows[paths.rows]
    losses = np.array([p.loss for p in paths.paths])
    masses = np.array([p.mass for p in paths.paths])
    n = as_rows(weights[of_machine]).sum()
    shares = masses * np.exp(-SHARPNESS * n * (losses - losses.min()))
    shares /= shares.sum()
    shares[shares < LEAST_SHARE] = 0.0
    shares /= shares.sum()
    if len(paths.held_rows) == 0:  # nothing to choose by
        shares = (np.arange(len(shares)) == unchosen).astype(np.float64)
    return Vote(
        rows=of_machine,
        shares=shares,
        coefficients=np.array(
            [
                share / scale * p.coefficients
                for share, scale, p in zip(shares, scales, paths.paths, strict=True)
            ]
        ),
        intercept=float(shares @ [p.intercept for p in paths.paths]),
        held_rows=rows[paths.held_rows],
        held_scores=shares @ np.array([p.held_scores for p in paths.paths]),
        paths=paths.paths,
    )


def _arrays(
    kernels: Sequence[Kernel], X: Rows, rows: NDArray[Any], dtype: Precision, n_jobs: int
) -> tuple[list[NDArray[Any]], list[KernelSource], FloatArray]:
    """Distances or values that the kernels are made of, each once, and what they are divided by."""
    arrays: list[NDArray[Any]] = []
    sources: list[KernelSource] = []
    of_distance: dict[str, int] = {}
    scales = np.ones(len(kernels))
    chosen = X if np.array_equal(rows, np.arange(X.shape[0])) else X[rows]
    for k, kernel in enumerate(kernels):
        if kernel.name in DISTANCE_KERNELS:
            if kernel.name not in of_distance:
                of_distance[kernel.name] = len(arrays)
                arrays.append(distances(chosen, kernel.name, dtype=dtype, n_jobs=n_jobs))
            sources.append(KernelSource("distances", of_distance[kernel.name], kernel.gamma))
            continue
        if kernel.name == "precomputed":
            values = X[np.ix_(rows, rows)]
        else:
            values = kernel.block(chosen, dtype=dtype, n_jobs=n_jobs)
        if not np.isfinite(values).all():
            raise ValueError(
                f"kernel={kernel.name!r} has values that are not finite on these rows; scale the "
                "features, or lower degree, gamma or coef0."
            )
        scales[k] = diagonal_scale(values.diagonal())
        values = np.asarray((values + values.T) / (2 * scales[k]), dtype=dtype, order="C")
        sources.append(KernelSource("values", len(arrays)))
        arrays.append(values)
    return arrays, sources, scales


def diagonal_scale(diagonal: NDArray[Any]) -> float:
    """Mean size of ``k(x, x)``: kernels are divided by it, as steps have a least length."""
    size = float(np.abs(diagonal).mean(dtype=np.float64))
    return size if size > 0 else 1.0


def _middle(kernels: Sequence[Kernel]) -> int:
    """Return the kernel of middle width, of the first kind."""
    return sum(kernel.name == kernels[0].name for kernel in kernels) // 2
