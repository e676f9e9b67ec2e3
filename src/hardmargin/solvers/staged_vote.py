r"""Paths whose stages are judged on held-out rows: IJCAI-07's partially trained machines.

Column 0 holds the labels y of all rows, and a column for every split those of its training rows,
with 0 for the others. More columns may hold shuffled labels, which show what chance alone can do.
With scores :math:`F = Kc` and bias b of each column, the steps of a stage are:

1. Weigh the rows: :math:`w_i = v_i / (1 + \exp(2 y_i (F_i + b)))`, where v are the sample weights.
   IJCAI-07 has :math:`w_i = v_i \exp(-y_i F_i)`, the weights of the exponential loss; the logistic
   ones do not let single rows outweigh all others.
2. Make signed multipliers of them, half of the mass for each class:
   :math:`a_i = \tfrac12 y_i w_i / \sum_{y_j = y_i} w_j`. A Newton step moves b. (Without bias, b is
   0 and :math:`a_i = y_i w_i / \sum_j w_j`.)
3. Multiply: :math:`G = Ka`. One product serves all columns, and also gives the scores of the rows
   held out. Where every split has found a kernel of its own, each column has its product.
4. Step along G: a damped Newton step of column 0, common to all columns, with Nesterov's momentum
   and restarts.
5. Judge the stage by the logistic loss q of the held-out scores, at the scale that suits them best.
   (Not every later stage is judged.) It votes with the weight
   :math:`\exp(-0.3\, n (q_t - q_{min}))` (exponential weighting).
6. Stop when the loss has not fallen for a while.

With the linear kernel of sparse rows X, G is :math:`X (X'a)`: a product with one weight per column
and one with the rows, without a kernel matrix.

The kernels of a machine are raced: all advance in rounds, and those whose loss can no longer catch
up with the best are stopped; where a machine has many rows, only the best few go on. Kernels of
extreme width start only if their neighbour survived the first round. The loops are in the compiled
core: a path in ``core/src/staged_vote.cpp``, the race in ``core/src/staged_vote_machines.cpp``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hardmargin import _core
from hardmargin.kernels import FloatArray, Rows, as_core_matrix
from hardmargin.monitor import Monitor
from hardmargin.solvers.problem import IntArray, Problem, Solution

LOSSES = ("logistic", "exponential")

#: How sharply a held-out loss, times the number of rows, turns into a weight.
SHARPNESS = 0.3

#: Limit on the stages of a path by default.
MAX_STAGES = 150


@dataclass(frozen=True)
class StagedVoteOptions:
    """How to run.

    Attributes
    ----------
    loss : {"logistic", "exponential"}
        Which weights the rows get.
    fit_intercept : bool
        Train with a bias.
    n_stages : int or None
        Number of stages, of which the last is the model; None lets all vote.
    max_stages : int
        Limit on the stages in any case.
    race : bool
        Stop kernels that fall behind.
    compact : bool
        Store values of distance kernels in 16 bits.
    memory_bytes : int
        For the kernel matrices of all candidates; if they do not fit, they are recomputed in
        every round of the race.
    n_threads : int
        Threads over machines, or over the kernels if there is only one machine.
    all_columns : bool
        Return the coefficients of the splits and of shuffled labels, too.
    """

    loss: str = "logistic"
    fit_intercept: bool = True
    n_stages: int | None = None
    max_stages: int = MAX_STAGES
    race: bool = True
    compact: bool = False
    memory_bytes: int = 2**30
    n_threads: int = 1
    all_columns: bool = False


@dataclass(frozen=True)
class KernelSource:
    """Where the kernel matrix of a candidate comes from.

    Attributes
    ----------
    kind : {"values", "distances", "sqeuclidean", "cityblock", "factor", "rows"}
        The array holds kernel values; distances, of which ``exp(-gamma * distance)`` is the kernel;
        points, whose distances of a metric are computed when the matrix is needed; a factor Z of
        ``ZZ'``; or sparse rows X of ``gamma * XX'``.
    array : int
        Its index among the arrays.
    gamma : float
        The kernel's width, for distances; the factor of the products, for sparse rows.
    """

    kind: Literal["values", "distances", "sqeuclidean", "cityblock", "factor", "rows"]
    array: int
    gamma: float = 0.0


@dataclass(frozen=True)
class Candidates:
    """Kernels to race, and the splits that judge their stages.

    Attributes
    ----------
    arrays : list of (n, n) or (n, rank) arrays, or CSR matrices
        Kernel values, distances or factors of all rows, or the rows, in one float type.
    sources : list of KernelSource, or of lists of them
        The candidates. A list has the kernel of all rows, and then those of the splits.
    train, test : (n_splits, n) bool arrays
        Rows that train and rows that are held out, split by split. A split that leaves a machine
        with one class is left out.
    shuffles : (n_shuffles, n) int array, optional
        Orders in which labels are dealt out to the rows, for columns of shuffled labels; copies of
        a row share a place.
    """

    arrays: Sequence[Rows]
    sources: Sequence[KernelSource | Sequence[KernelSource]]
    train: NDArray[np.bool_]
    test: NDArray[np.bool_]
    shuffles: NDArray[np.int32] | None = None


@dataclass(frozen=True, kw_only=True)
class StagedSolution(Solution):
    """The path of one kernel for one machine: coefficients and bias are those of the stages' vote.

    The certificate is the least held-out loss. ``history`` has the ``"stage"`` of every judgement
    and its ``"loss"``. ``stop_reason`` is ``"patience"`` (the loss has not fallen for a while),
    ``"outrun"`` (by other kernels), ``"n_stages"``, ``"max_stages"``, ``"rho_zero"`` (no step
    helps) or the monitor's.

    Attributes
    ----------
    mass : float
        Sum of the stages' weights, relative to the best stage's.
    held_rows, held_splits : (n_held,) int arrays
        Which row was held out, and in which split.
    held_scores : (n_held,) array
        Held-out scores of the vote, the bias included.
    of_columns : (1 + n_splits + n_shuffles, n) array or None
        With `all_columns`, the coefficients of all rows, of the splits and of shuffled labels;
        those that were left out are 0.
    """

    mass: float
    held_rows: IntArray
    held_splits: IntArray
    held_scores: FloatArray
    of_columns: FloatArray | None = None


def solve(
    problem: Problem[Candidates],
    options: StagedVoteOptions | None = None,
    monitor: Monitor | None = None,
) -> list[list[StagedSolution]]:
    """Run the paths of all kernels for all machines.

    Parameters
    ----------
    problem : Problem of Candidates
        Fastest where the rows of each class are contiguous.
    options : StagedVoteOptions, optional
        How to run.
    monitor : Monitor, optional
        The clock; it receives held-out losses.

    Returns
    -------
    list of lists
        One list per machine, with one solution per kernel.
    """
    options, monitor = options or StagedVoteOptions(), monitor or Monitor()
    candidates = problem.values
    weights = np.ones(len(problem.codes)) if problem.weights is None else problem.weights
    n_stages, is_cut = options.n_stages, False
    if n_stages is not None and n_stages > options.max_stages:
        n_stages, is_cut = options.max_stages, True
    shuffles = candidates.shuffles
    if shuffles is None:
        shuffles = np.empty((0, len(problem.codes)), dtype=np.int32)
    sources = [[one] if isinstance(one, KernelSource) else one for one in candidates.sources]
    is_single = candidates.arrays[0].dtype == np.float32
    results = (_core.staged_vote_float32 if is_single else _core.staged_vote_float64)(
        [as_core_matrix(array) for array in candidates.arrays],
        [[(k.kind, k.array, float(k.gamma)) for k in of_kernel] for of_kernel in sources],
        classes=problem.codes,
        machines=[(list(negative), list(positive)) for negative, positive in problem.machines],
        weights=np.ascontiguousarray(weights, dtype=np.float64),
        train=np.ascontiguousarray(candidates.train, dtype=np.uint8),
        test=np.ascontiguousarray(candidates.test, dtype=np.uint8),
        shuffles=shuffles,
        loss=options.loss,
        bias=options.fit_intercept,
        all_columns=options.all_columns,
        sharpness=SHARPNESS,
        n_stages=n_stages or 0,
        max_stages=options.max_stages,
        race=options.race,
        compact=options.compact,
        memory_bytes=options.memory_bytes,
        n_threads=options.n_threads,
        monitor=monitor,
    )
    reasons = {"max_time": monitor.stop_reason}
    if is_cut:  # the limit was below the number requested
        reasons["n_stages"] = "max_stages"
    solutions = []
    for r in results:
        rows, held_rows, held_splits = r.rows, r.held_rows, r.held_splits
        columns = [path.coefficients.reshape(-1, len(rows)) for path in r.paths]
        of_columns: list[FloatArray | None] = [None] * len(columns)
        if options.all_columns:
            of_columns = []
            for known in columns:
                of_all = np.zeros((1 + len(candidates.train) + len(shuffles), len(rows)))
                of_all[r.splits + 1] = known
                of_columns.append(of_all)
        of_machine = [
            StagedSolution(
                rows=rows,
                coefficients=known[0],
                intercept=path.intercept,
                certificate=path.loss,
                history={"stage": path.stages, "loss": path.losses},
                n_stages=path.n_stages,
                stop_reason=reasons.get(path.stop_reason, path.stop_reason),
                mass=path.mass,
                held_rows=held_rows,
                held_splits=held_splits,
                held_scores=path.held_scores,
                of_columns=of_all,
            )
            for path, known, of_all in zip(r.paths, columns, of_columns, strict=True)
        ]
        solutions.append(of_machine)
    return solutions
