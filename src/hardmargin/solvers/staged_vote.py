r"""Paths of stages that judge themselves: IJCAI-07's partially trained machines with held-out rows.

Every stage moves the scores :math:`F = Kc` of a machine along :math:`G = K a`, where the signed
multipliers a are the rows' weights, shared out evenly to both classes:

.. math:: a_i = \tfrac12 y_i w_i / \sum_{y_j = y_i} w_j, \qquad
          w_i = v_i / (1 + \exp(2 y_i (F_i + b))).

IJCAI-07 has :math:`w_i = v_i \exp(-y_i F_i)`, the weights of the exponential loss; the logistic
ones above do not let single rows outweigh all others. The step along G is a damped Newton step,
with Nesterov's momentum and restarts; the bias b follows by Newton steps of its own.

The machine of every split takes the same steps on the same kernel matrix: one product serves all,
and gives the scores of the rows held out. A stage is judged by the logistic loss of those scores,
at the scale that suits them best. All stages of a path vote with the weight
:math:`\exp(-0.3\, n (q_t - q_{min}))`, q their held-out losses (exponential weighting), and the
path ends once the loss has not fallen for a while.

The kernels of a machine are raced: all advance in rounds, and those whose loss can not catch up
with the best any more are stopped. The loops are in the compiled core (``core/src/path.cpp``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hardmargin import _core
from hardmargin.kernels import FloatArray
from hardmargin.solvers.problem import Machine

#: What is told of the progress: machines done, stage, held-out loss.
Report: TypeAlias = Callable[[int, int, float], None]

LOSSES = ("logistic", "exponential")

#: How sharply a held-out loss, times the number of rows, turns into a weight.
SHARPNESS = 0.3

#: Stages of a path at most, where their number is chosen.
MAX_STAGES = 150


@dataclass(frozen=True)
class PathOptions:
    """How to run.

    Attributes
    ----------
    loss : {"logistic", "exponential"}
        Which weights the rows get.
    fit_intercept : bool
        Train with a bias.
    n_stages : int or None
        So many stages, of which the last is the model; None lets all vote.
    max_stages : int
        Limit on the stages in any case.
    race : bool
        Stop kernels that fall behind.
    compact : bool
        Hold values of distance kernels in 16 bits.
    memory_bytes : int
        For the kernel matrices of all candidates; if they do not fit, they are made anew in every
        round of the race.
    max_seconds : float or None
        Time for all machines together.
    n_threads : int
        Threads over machines, or over the kernels of the only one.
    """

    loss: str = "logistic"
    fit_intercept: bool = True
    n_stages: int | None = None
    max_stages: int = MAX_STAGES
    race: bool = True
    compact: bool = False
    memory_bytes: int = 2**30
    max_seconds: float | None = None
    n_threads: int = 1


@dataclass(frozen=True)
class KernelSource:
    """Where the kernel matrix of a candidate comes from.

    Attributes
    ----------
    kind : {"values", "distances", "factor"}
        The array holds kernel values; distances, of which ``exp(-gamma * distance)`` is the kernel;
        or a factor Z of ``ZZ'``.
    array : int
        Its number among the arrays.
    gamma : float
        Of distances.
    """

    kind: Literal["values", "distances", "factor"]
    array: int
    gamma: float = 0.0


@dataclass(frozen=True)
class HeldOutPath:
    """The path of one kernel.

    Attributes
    ----------
    coefficients : (n_rows,) array
        Of the vote of all stages, signed.
    intercept : float
        Its bias.
    held_scores : (n_held,) array
        Held-out scores of the vote, the bias included.
    mass : float
        Sum of the stages' weights, where the best has one.
    loss : float
        The least held-out loss.
    stages, losses : arrays
        Stages that were judged, and their held-out losses.
    n_stages : int
        Stages in all.
    stop_reason : str
        ``"patience"`` (the loss has not fallen for a while), ``"outrun"`` (by other kernels),
        ``"n_stages"``, ``"max_stages"``, ``"rho_zero"`` (no step helps) or ``"max_time"``.
    """

    coefficients: FloatArray
    intercept: float
    held_scores: FloatArray
    mass: float
    loss: float
    stages: NDArray[np.int64]
    losses: FloatArray
    n_stages: int
    stop_reason: str


@dataclass(frozen=True)
class MachinePaths:
    """The paths of all kernels for one machine.

    Attributes
    ----------
    rows : (n_rows,) int array
        Rows that take part.
    held_rows, held_splits : (n_held,) int arrays
        Which row was held out, and in which split.
    paths : list of HeldOutPath
        One a kernel.
    """

    rows: NDArray[np.int32]
    held_rows: NDArray[np.int32]
    held_splits: NDArray[np.int32]
    paths: list[HeldOutPath]


def solve_paths(
    arrays: Sequence[NDArray[Any]],
    kernels: Sequence[KernelSource],
    classes: NDArray[np.int32],
    machines: Sequence[Machine],
    *,
    weights: FloatArray,
    train: NDArray[np.bool_],
    test: NDArray[np.bool_],
    options: PathOptions,
    report: Report | None = None,
) -> list[MachinePaths]:
    """Run the paths of all kernels for all machines.

    Parameters
    ----------
    arrays : list of (n, n) or (n, rank) arrays
        Kernel values, distances or factors of all rows, in one float type.
    kernels : list of KernelSource
        The candidates.
    classes : (n,) int32 array
        Class of each row, negative for rows that take no part; fastest where rows of a class stand
        together.
    machines : list of (negative classes, positive classes)
        The two-class problems.
    weights : (n,) array
        Sample weights.
    train, test : (n_splits, n) bool arrays
        Rows that train and rows that are held out, split by split. A split that leaves a machine
        with one class is left out.
    options : PathOptions
        How to run.
    report : callable, optional
        Called now and then with (machines done, stage, held-out loss).
    """
    n_stages = options.n_stages
    if n_stages is not None:
        n_stages = min(n_stages, options.max_stages)
    is_cut = n_stages != options.n_stages
    run = _core.paths_float32 if arrays[0].dtype == np.float32 else _core.paths_float64
    results = run(
        list(arrays),
        [(k.kind, k.array, float(k.gamma)) for k in kernels],
        classes=classes,
        machines=[(list(negative), list(positive)) for negative, positive in machines],
        weights=np.ascontiguousarray(weights, dtype=np.float64),
        train=np.ascontiguousarray(train, dtype=np.uint8),
        test=np.ascontiguousarray(test, dtype=np.uint8),
        loss=options.loss,
        bias=options.fit_intercept,
        n_stages=n_stages or 0,
        max_stages=options.max_stages,
        race=options.race,
        compact=options.compact,
        memory_bytes=options.memory_bytes,
        max_seconds=options.max_seconds or 0.0,
        n_threads=options.n_threads,
        report=report,
    )
    return [
        MachinePaths(
            r["rows"],
            r["held_rows"],
            r["held_splits"],
            [_with_reason(HeldOutPath(**p), is_cut) for p in r["paths"]],
        )
        for r in results
    ]


def _with_reason(path: HeldOutPath, is_cut: bool) -> HeldOutPath:
    """Say which limit ended a path, where `max_stages` was less than `n_stages`."""
    if is_cut and path.stop_reason == "n_stages":
        return replace(path, stop_reason="max_stages")
    return path
