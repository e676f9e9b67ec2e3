"""Kernels that vote, weighted by their loss on held-out rows.

The candidates are RBF and Laplacian kernels of widths around the spread of the rows and, where
columns are many or rows sparse, a linear one. Each runs a path of stages
(``solvers/staged_vote.py``). Its weight in the vote is in proportion to its path's mass, and falls
as its held-out loss exceeds the least of all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hardmargin.kernels import (
    DISTANCE_KERNELS,
    KERNELS_WITHOUT_GAMMA,
    METRICS,
    FloatArray,
    Kernel,
    KernelFunction,
    KernelSum,
    Precision,
    Rows,
    View,
    is_sparse,
    make_kernel,
    resolve_gamma,
)
from hardmargin.monitor import Monitor
from hardmargin.selection.calibration import HeldOut
from hardmargin.selection.constant import log_odds_of_shares, trust
from hardmargin.selection.folds import Folds
from hardmargin.selection.sigmoids import as_rows, platt_slope
from hardmargin.solvers import staged_vote
from hardmargin.solvers.problem import Expansion, Problem
from hardmargin.solvers.staged_vote import (
    SHARPNESS,
    Candidates,
    KernelSource,
    StagedSolution,
    StagedVoteOptions,
)

#: Candidate gammas, as factors of the gamma by `_UNIT_RULES`.
WIDTHS = {"rbf": (1 / 16, 1 / 4, 1.0, 4.0, 16.0), "laplacian": (1 / 4, 1.0, 4.0)}
_OTHER_WIDTHS = (1 / 4, 1.0, 4.0)

#: The same for columns that are scaled by their relevance.
SCALED_WIDTHS = {"rbf": (1 / 16, 1 / 4, 1.0, 4.0, 16.0), "laplacian": (1 / 4, 1.0, 4.0, 16.0)}

#: The rule for the gamma that a factor of one stands for.
_UNIT_RULES = {"rbf": "spread", "laplacian": "pairwise"}

#: Sparse rows of more columns than this have no Laplacian candidates, which would be slow.
MANY_COLUMNS = 1_000

#: A kernel with a smaller share of the vote is left out.
LEAST_SHARE = 0.05

#: Log-likelihood that a machine must gain on held-out rows to be trusted as much as the shares of
#: the classes: what the choice of kernels, stages and a slope gains where nothing can be learned.
COST_OF_VOTE = 2.0

#: Relevance that has seen the labels of the rows held out makes their log-loss too low by about
#: this times the root of the number of different scales, divided by the number of rows. (Measured:
#: with this correction it is right on average over the sets of benchmarks/accuracy.py.)
LEAK = 0.9

#: The most kernels that several machines share: each makes predictions slower.
MOST_SHARED = 5

_KERNEL = [("view", "U12"), ("kernel", "U11"), ("gamma", np.float64)]

#: Fields of the table of kernels that vote.
SHARES = np.dtype([("machine", np.int32), *_KERNEL, ("share", np.float64)])


@dataclass(frozen=True, kw_only=True)
class Vote(Expansion):
    """The vote of one machine's kernels; coefficients have one row per kernel.

    Attributes
    ----------
    n_rows : float
        Number of the machine's rows, or the sum of their weights.
    shares : (n_kernels,) array
        Weight of every candidate: they add up to one, and most are zero.
    held_rows : (n_held,) int array
        Rows that were held out, repeated if held out several times.
    held_positive : (n_held,) bool array
        Whether they are on the machine's positive side.
    held_weights : (n_held,) array or None
        Their weights; None weighs all alike.
    held_scores : (n_held,) array
        Their scores, the bias included.
    paths : list of StagedSolution
        The paths of all candidates.
    trust : float
        How far the machine is trusted beside the shares of the classes.
    shrunk_slope : float or None
        The slope that is left of its sigmoid, if the shares vote too.
    """

    n_rows: float
    shares: FloatArray
    held_rows: NDArray[Any]
    held_positive: NDArray[np.bool_]
    held_weights: FloatArray | None
    held_scores: FloatArray
    paths: list[StagedSolution]
    trust: float = 1.0
    shrunk_slope: float | None = None

    @cached_property
    def slope(self) -> float:
        """Slope of the machine's sigmoid; 2 where no rows of both sides were held out."""
        if self.shrunk_slope is not None:
            return self.shrunk_slope
        if not self.is_judged:
            return 2.0
        copies = len(self.held_rows) / len(np.unique(self.held_rows))
        return platt_slope(self.held_scores, self.held_positive, self.held_weights, copies)

    @property
    def is_judged(self) -> bool:
        """Whether rows of both sides were held out."""
        return bool(self.held_positive.any() and not self.held_positive.all())

    def beside_constant(self) -> Vote:
        """Let the shares of the classes vote too: they have more of the log-odds the less is known.

        The log-odds become their own, times the machine's trust, and those of the shares, times
        what is left of it. The bias moves by that.
        """
        if not self.is_judged:
            return self
        times_held = len(self.held_rows) / len(np.unique(self.held_rows))
        w = np.ones(len(self.held_rows)) if self.held_weights is None else self.held_weights
        w = as_rows(w)
        log_odds, is_positive = self.slope * self.held_scores, self.held_positive
        loss = float(w @ (np.logaddexp(0, log_odds) - is_positive * log_odds) / w.sum())
        positive = float(w[is_positive].sum()) / times_held
        negative = float(w[~is_positive].sum()) / times_held
        known = float(trust(loss, positive, negative, cost=COST_OF_VOTE))
        shrunk = known * self.slope
        shift = (1 - known) * log_odds_of_shares(positive, negative) / shrunk
        return replace(
            self,
            trust=known,
            shrunk_slope=shrunk,
            intercept=self.intercept + shift,
            held_scores=self.held_scores + shift,
        )


@dataclass(frozen=True)
class VoteResult:
    """What a vote found.

    Attributes
    ----------
    kernels : list of Kernel
        The candidates.
    votes : list of Vote
        One per machine.
    relevance : (d,) array or None
        How much each column matters, if the views were scaled by it.
    rank : int or None
        The rank of the kernels, if they are approximated.
    has_seen_all : bool
        Whether relevance was found with the labels of the rows held out, too.
    """

    kernels: list[Kernel]
    votes: list[Vote]
    relevance: FloatArray | None = None
    rank: int | None = None
    has_seen_all: bool = False

    def beside_constants(self) -> VoteResult:
        """Let the shares of the classes vote too, in every machine."""
        return replace(self, votes=[vote.beside_constant() for vote in self.votes])

    def optimism(self, n_rows: float) -> float:
        """By how much the held-out log-loss of so many rows is too low."""
        of_choice = COST_OF_VOTE * float(np.mean([vote.trust for vote in self.votes])) / n_rows
        if self.relevance is None or not self.has_seen_all:
            return of_choice
        return leak_of(len(np.unique(self.relevance)), n_rows)

    @cached_property
    def used(self) -> list[int]:
        """The kernels that vote, in the order of their shares."""
        total = np.sum([vote.shares for vote in self.votes], axis=0)
        return [int(k) for k in np.argsort(-total, kind="stable") if total[k] > 0]

    @property
    def kernel(self) -> Kernel | KernelSum:
        """The kernels that vote."""
        used = tuple(self.kernels[k] for k in self.used)
        return used[0] if len(used) == 1 else KernelSum(used)

    def machines(self, thresholds: Sequence[float]) -> list[Vote]:
        """Return the machines, with the kernels that vote, above thresholds of their own."""
        return [
            replace(
                vote,
                coefficients=vote.coefficients[self.used],
                intercept=vote.intercept - threshold,
            )
            for vote, threshold in zip(self.votes, thresholds, strict=True)
        ]

    @property
    def held_out(self) -> HeldOut:
        """Scores of the rows that were held out, of all machines, without the biases."""
        sizes = [len(vote.held_rows) for vote in self.votes]
        return HeldOut(
            rows=np.concatenate([vote.held_rows for vote in self.votes]).astype(np.intp),
            scores=np.concatenate([vote.held_scores - vote.intercept for vote in self.votes]),
            positive=np.concatenate([vote.held_positive for vote in self.votes]),
            machines=np.repeat(np.arange(len(self.votes)), sizes),
        )


def leak_of(n_scales: int, n_rows: float) -> float:
    """How much too low the held-out log-loss is if relevance has seen the rows held out."""
    return LEAK * float(np.sqrt(n_scales)) / n_rows


def candidate_kernels(
    kernel: str | KernelFunction,
    gamma: float | str,
    X: Rows,
    *,
    degree: float = 3,
    coef0: float = 0.0,
    sample_weight: FloatArray | None = None,
    with_linear: bool = False,
) -> list[Kernel]:
    """Kernels to choose from; a single one if kernel and gamma are given.

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
    with_linear : bool
        Whether ``"cv"`` stands for a linear kernel too.
    """
    if gamma != "cv" or callable(kernel) or kernel in ("precomputed", *KERNELS_WITHOUT_GAMMA):
        named = "rbf" if kernel == "cv" else kernel
        rule = "spread" if gamma == "cv" else gamma
        return [
            make_kernel(
                named, X, gamma=rule, degree=degree, coef0=coef0, sample_weight=sample_weight
            )
        ]
    names = list(DISTANCE_KERNELS) if kernel == "cv" else [kernel]
    if kernel == "cv" and is_sparse(X) and X.shape[1] > MANY_COLUMNS:
        names.remove("laplacian")
    found = []
    for name in names:
        unit = unit_gamma(name, X, sample_weight)
        widths = WIDTHS.get(name, _OTHER_WIDTHS)
        if name == "poly" and coef0 == 0:
            widths = (1.0,)  # other gammas only multiply its values
        for width in widths:
            found.append(Kernel(name, gamma=width * unit, degree=degree, coef0=coef0))
    if kernel == "cv" and with_linear:
        found.append(Kernel("linear"))
    return found


def unit_gamma(name: str, X: Rows, weights: FloatArray | None) -> float:
    """Gamma of the usual width; the gammas of candidates are multiples of it."""
    rule = _UNIT_RULES.get(name, "spread")
    return resolve_gamma(rule, X, kernel=name, sample_weight=weights)


def view_kernels(
    pairs: Sequence[tuple[View, str]],
    X: Rows,
    weights: FloatArray,
    widths: Mapping[str, Sequence[float]] = WIDTHS,
) -> list[Kernel]:
    """Kernels of several widths that see the rows through views.

    Parameters
    ----------
    pairs : sequence of (View, str)
        The view of every kernel, and its name: RBF or Laplacian.
    X : rows
        The rows before the view.
    weights : (n,) array
        Their weights; rows of weight zero are ignored.
    widths : mapping of sequences
        Factors of the usual width, by the name of the kernel.
    """
    is_there = weights > 0
    if not is_there.all():
        X, weights = X[is_there], weights[is_there]
    found: list[Kernel] = []
    seen = {view: view.of(X) for view, _ in pairs}
    for view, name in pairs:
        unit = unit_gamma(name, seen[view], weights)
        found += [Kernel(name, gamma=width * unit, view=view) for width in widths[name]]
    return found


def matrix_votes(
    kernels: Sequence[Kernel],
    problem: Problem[Rows],
    folds: Folds,
    options: StagedVoteOptions,
    monitor: Monitor,
    *,
    dtype: Precision,
    of_splits: Mapping[Kernel, Sequence[Kernel]] | None = None,
    prior: FloatArray | None = None,
    shuffles: NDArray[np.int32] | None = None,
) -> list[Vote]:
    """Run all candidates on stored kernel matrices, and count the votes of every machine.

    Distances are computed once for all kernels of a kind and all machines.

    Parameters
    ----------
    kernels : sequence of Kernel
        The candidates.
    problem : Problem of rows
        Machines on rows X.
    folds : Folds
        The splits.
    options : StagedVoteOptions
        How to run.
    monitor : Monitor
        The clock.
    dtype : {"float32", "float64"}
        Precision of distances and kernel values.
    of_splits : mapping of Kernel to sequences of Kernel, optional
        What every split uses in place of a candidate, where views have not seen the labels of the
        rows held out.
    prior : (n_kernels,) array, optional
        Weights of the candidates before their losses count.
    shuffles : (n_shuffles, n) int array, optional
        Orders of the rows, for columns of shuffled labels.
    """
    # Rows of a class are contiguous, so that a machine's rows form a few runs.
    rows = np.flatnonzero(problem.codes >= 0)
    rows = rows[np.argsort(problem.codes[rows], kind="stable")]
    arrays, sources, scales = _arrays(
        kernels, problem.values, rows, dtype, options.n_threads, of_splits or {}
    )
    candidates = Candidates(
        arrays,
        sources,
        folds.train[:, rows],
        folds.test[:, rows],
        None if shuffles is None else np.ascontiguousarray(shuffles[:, rows]),
    )
    found = staged_vote.solve(
        Problem(
            candidates,
            np.ascontiguousarray(problem.codes[rows]),
            problem.machines,
            None if problem.weights is None else problem.weights[rows],
        ),
        options,
        monitor,
    )
    # The kernel of middle width, of the first kind, is used where nothing is held out.
    middle = sum(kernel.name == kernels[0].name for kernel in kernels) // 2
    votes = []
    for m, paths in enumerate(found):
        # The solver had the rows in another order, and kernels divided by their scales.
        own, held = (rows[at].astype(np.int32) for at in (paths[0].rows, paths[0].held_rows))
        on_rows = [
            replace(path, rows=own, held_rows=held, coefficients=path.coefficients / scale)
            for path, scale in zip(paths, scales, strict=True)
        ]
        given = np.ones(len(kernels)) if prior is None else prior
        own_prior = given if len(held) else np.eye(len(kernels))[middle]
        votes.append(count_votes(on_rows, problem, m, own_prior))
    return votes


def count_votes(
    paths: list[StagedSolution], problem: Problem[Any], machine: int, prior: FloatArray
) -> Vote:
    """Weigh the kernels of a machine by their held-out losses, and add up their votes.

    Parameters
    ----------
    paths : list of StagedSolution
        The paths of all candidates.
    problem : Problem
        Weights and classes of all rows.
    machine : int
        Which machine of the problem.
    prior : (n_kernels,) array
        Weight of every kernel before the losses count; its share if no rows were held out.
    """
    rows, held_rows = paths[0].rows, paths[0].held_rows
    n_rows, held_weights = float(len(rows)), None
    if problem.weights is not None:
        n_rows = float(as_rows(problem.weights[rows]).sum())
        held_weights = problem.weights[held_rows]
    shares = prior
    if len(held_rows):
        losses = np.where(prior > 0, [path.certificate for path in paths], np.inf)
        masses = np.array([path.mass for path in paths])
        shares = prior * masses * np.exp(-SHARPNESS * n_rows * (losses - losses.min()))
        shares /= shares.sum()
        shares[shares < LEAST_SHARE] = 0.0
        shares = shares / shares.sum()
    return Vote(
        rows=rows,
        coefficients=shares[:, None] * np.array([path.coefficients for path in paths]),
        intercept=float(shares @ [path.intercept for path in paths]),
        n_rows=n_rows,
        shares=shares,
        held_rows=held_rows,
        held_positive=problem.sides[machine, problem.codes[held_rows]] > 0,
        held_weights=held_weights,
        held_scores=shares @ np.array([path.held_scores for path in paths]),
        paths=paths,
    )


def counted_together(votes: Sequence[Vote], problem: Problem[Any]) -> list[Vote]:
    """Count the votes of several machines again: what helps all is likely to help each of them.

    The mean shares of all machines are the prior shares of each (empirical Bayes): what one machine
    finds in its few rows alone is mostly chance.

    Parameters
    ----------
    votes : sequence of Vote
        One per machine, each counted alone.
    problem : Problem
        The machines.
    """
    if len(votes) == 1:
        return list(votes)
    prior = np.mean([vote.shares for vote in votes], axis=0)
    prior[np.argsort(-prior, kind="stable")[MOST_SHARED:]] = 0.0
    return [
        count_votes(vote.paths, problem, m, prior) if len(vote.held_rows) else vote
        for m, vote in enumerate(votes)
    ]


def _arrays(
    kernels: Sequence[Kernel],
    X: Rows,
    rows: NDArray[Any],
    dtype: Precision,
    n_jobs: int,
    of_splits: Mapping[Kernel, Sequence[Kernel]],
) -> tuple[list[Rows], list[KernelSource | list[KernelSource]], FloatArray]:
    """Distances, values or rows to compute kernels from, and the kernels' divisors."""
    arrays: list[Rows] = []
    sources: list[KernelSource | list[KernelSource]] = []
    of_distance: dict[tuple[str, View | None], int] = {}
    seen: dict[View | None, Rows] = {}
    scales = np.ones(len(kernels))
    chosen = X if np.array_equal(rows, np.arange(X.shape[0])) else X[rows]
    points: dict[View | None, int] = {}
    for k, kernel in enumerate(kernels):
        if kernel in of_splits:
            of_columns = []
            for own in (kernel, *of_splits[kernel]):
                if own.view not in points:
                    points[own.view] = len(arrays)
                    shown = chosen if own.view is None else own.view.of(chosen)
                    arrays.append(np.ascontiguousarray(shown, dtype=dtype))
                kind: Any = METRICS[own.name]
                of_columns.append(KernelSource(kind, points[own.view], own.gamma))
            sources.append(of_columns)
            continue
        if kernel.name in DISTANCE_KERNELS:
            key = (kernel.name, kernel.view)
            if key not in of_distance:
                of_distance[key] = len(arrays)
                if kernel.view not in seen:
                    seen[kernel.view] = chosen if kernel.view is None else kernel.view.of(chosen)
                metric = Kernel(METRICS[kernel.name])
                arrays.append(metric.block(seen[kernel.view], dtype=dtype, n_jobs=n_jobs))
            sources.append(KernelSource("distances", of_distance[key], kernel.gamma))
            continue
        if kernel.name == "linear" and is_sparse(chosen):
            scales[k] = diagonal_scale(_finite(kernel, kernel.diagonal(chosen)))
            sources.append(KernelSource("rows", len(arrays), 1.0))
            arrays.append((chosen / np.sqrt(scales[k])).astype(dtype, copy=False))
            continue
        if kernel.name == "precomputed":
            values = X[np.ix_(rows, rows)]
        else:
            values = kernel.block(chosen, dtype=dtype, n_jobs=n_jobs)
        scales[k] = diagonal_scale(_finite(kernel, values).diagonal())
        values = np.asarray((values + values.T) / (2 * scales[k]), dtype=dtype, order="C")
        sources.append(KernelSource("values", len(arrays)))
        arrays.append(values)
    return arrays, sources, scales


def _finite(kernel: Kernel, values: NDArray[Any]) -> NDArray[Any]:
    if not np.isfinite(values).all():
        raise ValueError(
            f"kernel={kernel.name!r} has values that are not finite on these rows; scale the "
            "features, or lower degree, gamma or coef0."
        )
    return values


def diagonal_scale(diagonal: NDArray[Any]) -> float:
    """Mean size of ``k(x, x)``: kernels are divided by it, as steps have a minimum length."""
    size = float(np.abs(diagonal).mean(dtype=np.float64))
    return size if size > 0 else 1.0


@dataclass(frozen=True)
class Losses:
    """The held-out loss of every stage that was judged, of every kernel and machine.

    Attributes
    ----------
    candidates : structured array
        View, name and gamma of the kernels.
    machines, kernels, stages : (n_judged,) int arrays
        Which machine, kernel and stage each loss belongs to.
    losses : (n_judged,) array
        The losses.
    n_rows : (n_machines,) array or None
        Rows of every machine, as the weights count them; None in models saved by version 0.2.0
        or before.
    """

    candidates: NDArray[Any]
    machines: NDArray[np.int32]
    kernels: NDArray[np.int16]
    stages: NDArray[np.int32]
    losses: FloatArray
    n_rows: FloatArray | None = None

    @classmethod
    def of(cls, kernels: Sequence[Kernel], votes: Sequence[Vote], rows_are: str) -> Losses:
        """Collect the losses from votes; `rows_are` is the view of kernels that have none."""
        judged = [
            (m, k, path.history["stage"], path.history["loss"])
            for m, vote in enumerate(votes)
            if len(vote.held_rows)
            for k, path in enumerate(vote.paths)
        ]
        sizes = [len(stages) for _, _, stages, _ in judged]
        stages = np.concatenate([np.empty(0, np.int32), *(stages for _, _, stages, _ in judged)])
        losses = np.concatenate([np.empty(0), *(losses for _, _, _, losses in judged)])
        is_stage = stages > 0
        views = [kernel.view.name if kernel.view else rows_are for kernel in kernels]
        gammas = [float(f"{kernel.gamma:.6g}") for kernel in kernels]  # enough to tell all apart
        names = [kernel.name for kernel in kernels]
        return cls(
            np.array(list(zip(views, names, gammas, strict=True)), dtype=_KERNEL),
            np.repeat(np.array([m for m, *_ in judged], dtype=np.int32), sizes)[is_stage],
            np.repeat(np.array([k for _, k, *_ in judged], dtype=np.int16), sizes)[is_stage],
            stages[is_stage].astype(np.int32),
            losses[is_stage],
            np.array([vote.n_rows for vote in votes]),
        )

    def shares(self, voted: VoteResult) -> NDArray[Any]:
        """Table of the kernels that vote, in the order of their shares."""
        found = [
            (m, *self.candidates[k], vote.shares[k])
            for k in voted.used
            for m, vote in enumerate(voted.votes)
            if vote.shares[k] > 0
        ]
        return np.array(found, dtype=SHARES)

    def table(self) -> NDArray[Any]:
        """Table for pandas."""
        fields = [("machine", np.int32), *_KERNEL, ("stage", np.int64), ("log_loss", np.float64)]
        found = np.empty(len(self.losses), dtype=fields)
        found["machine"], found["stage"] = self.machines, self.stages
        found["log_loss"] = self.losses
        for name, _ in _KERNEL:
            found[name] = self.candidates[name][self.kernels]
        return found
