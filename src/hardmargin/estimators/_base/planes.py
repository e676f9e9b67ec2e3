"""Shared by RhoSVC and RhoEnsembleSVC: the path of IJCAI-07, and decisions after its stages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval, Real

from hardmargin.estimators._base.classifier import KernelClassifier, Training
from hardmargin.estimators._base.estimator import COUNT, publish
from hardmargin.estimators._base.matrix import (
    LOW_RANK_CONSTRAINTS,
    low_rank_of,
    solve_on_matrices,
)
from hardmargin.kernels import FloatArray
from hardmargin.kernels.low_rank import LowRankMatrix
from hardmargin.monitor import Monitor
from hardmargin.resources import memory_bytes, single_threaded_blas
from hardmargin.solvers import rho
from hardmargin.solvers.problem import Expansion
from hardmargin.solvers.rho import RhoOptions, RhoSolution
from hardmargin.warn import warn_caller

#: Valid parameters of the path.
PATH_CONSTRAINTS: dict[str, list[Any]] = {
    **LOW_RANK_CONSTRAINTS,
    "eps_start": [Interval(Real, 0, 1, closed="neither")],
    "eps_stop": [Interval(Real, 0, 1, closed="neither")],
    "max_stages": [COUNT],
    "fit_intercept": ["boolean"],
}

#: Planes are kept for the staged methods if they take at most this share of the memory limit.
PLANES_SHARE = 0.125

#: Number of coefficients, and of scores, that the staged methods hold at once.
COEFFICIENTS_AT_ONCE = 4_000_000

#: Up to this many rows, a machine without any stage is normal.
FEW_ROWS = 20


@dataclass(frozen=True)
class Stages:
    """One machine after every stage.

    Attributes
    ----------
    coefficients : (n_stages, n_rows) array
        One row per stage.
    places : (n_rows,) int array
        Positions of their rows among the support rows.
    intercepts : (n_stages,) array
        The biases.
    """

    coefficients: NDArray[Any]
    places: NDArray[np.intp]
    intercepts: FloatArray


def train_planes(
    classifier: KernelClassifier, training: Training, monitor: Monitor, n_stages: int | None = None
) -> tuple[list[RhoSolution], int | None]:
    """Train the machines of a classifier, and warn about early ends.

    Parameters
    ----------
    classifier : RhoSVC or RhoEnsembleSVC
        Its parameters apply.
    training : Training
        The machines.
    monitor : Monitor
        The clock of the fit.
    n_stages : int, optional
        End after this many stages.

    Returns
    -------
    solutions : list of RhoSolution
        Over the rows of `training`; at low rank, over the landmarks.
    rank : int or None
        Rank of the kernel; None for the kernel itself.
    """
    if classifier.eps_stop > classifier.eps_start:
        raise ValueError(
            f"eps_stop={classifier.eps_stop} must not be above eps_start={classifier.eps_start}: "
            "the path goes from eps_start down to eps_stop."
        )
    low_rank = low_rank_of(classifier, training, monitor)
    n_machines = len(training.machines)
    room = int(PLANES_SHARE * memory_bytes(classifier.memory_limit))
    options = RhoOptions(
        eps_start=classifier.eps_start,
        eps_stop=classifier.eps_stop,
        n_stages=n_stages,
        max_stages=classifier.max_stages,
        fit_intercept=classifier.fit_intercept,
        keep_planes=room // n_machines,
    )
    part = monitor.part("objective", n_machines=n_machines)
    solutions = solve_on_matrices(
        rho.solve, classifier, training, options, part, low_rank=low_rank, together=True
    )
    _warn_of(solutions, is_low_rank=low_rank is not None)
    every = np.flatnonzero(training.codes >= 0)
    solutions = [_over_support(solution, low_rank, every) for solution in solutions]
    return solutions, None if low_rank is None else low_rank.rank


def publish_path(
    classifier: KernelClassifier,
    solutions: Sequence[RhoSolution],
    **values: Callable[[RhoSolution], Any],
) -> None:
    """Set the attributes of the path, and those of `values` (see `publish`)."""
    publish(
        classifier,
        solutions,
        "n_stages",
        "rho_lower_bound",
        stage_weights_=lambda s: s.history["rate"],
        stage_intercepts_=lambda s: s.history["bias"],
        rho_path_=lambda s: s.history["rho"],
        eps_path_=lambda s: s.history["epsilon"],
        cosine_path_=lambda s: s.history["cosine"],
        **values,
    )


def plane_stages(solutions: Sequence[RhoSolution], support: NDArray[Any]) -> list[Stages] | None:
    """Stages of the planes themselves; None if they were not kept."""
    stages = []
    for s in solutions:
        if s.planes is None:
            return None
        first = min(1, s.n_stages)  # the first plane is the Parzen window, before any stage
        places = np.searchsorted(support, s.rows)
        stages.append(Stages(s.planes[first:], places, s.history["intercept"][first:]))
    return stages


def vote_stages(solutions: Sequence[RhoSolution], support: NDArray[Any]) -> list[Stages] | None:
    """Stages of the votes of the planes so far; None if the planes were not kept."""
    stages = []
    for s in solutions:
        if s.planes is None:
            return None
        rates, biases = s.history["rate"], s.history["bias"]
        coefficients, intercepts = s.planes[:1], np.array([s.ensemble.intercept])
        if len(rates):
            total = np.cumsum(rates)
            votes = np.cumsum(rates[:, None] * s.planes[: len(rates)], axis=0) / total[:, None]
            coefficients = votes.astype(s.planes.dtype, copy=False)
            # The first bias, due to the sizes of the classes, is the rest of the intercept.
            first = s.ensemble.intercept * total[-1] - rates @ biases
            intercepts = (first + np.cumsum(rates * biases)) / total
        stages.append(Stages(coefficients, np.searchsorted(support, s.rows), intercepts))
    return stages


def staged_decisions(classifier: KernelClassifier, X: Any) -> Iterator[FloatArray]:
    """Scores of rows after every stage; machines that have ended stay at their last."""
    rows = classifier._check_rows(X)
    machines: list[Stages] | None = classifier._stages_
    if machines is None:
        raise AttributeError(
            "There are no staged predictions: the planes of all stages did not fit in an eighth of "
            "memory_limit and were not kept; raise memory_limit and fit again."
        )
    n_machines, n_support = len(machines), len(classifier.support_)
    n_stages = max(len(m.coefficients) for m in machines)
    at_once = max(1, COEFFICIENTS_AT_ONCE // (n_machines * max(n_support, rows.shape[0], 1)))
    queries, support = classifier._machines.facing(rows)
    for begin in range(0, n_stages, at_once):
        stages = np.arange(begin, min(begin + at_once, n_stages))
        block = np.zeros((len(stages), n_machines, n_support))
        intercepts = np.empty((len(stages), n_machines))
        for m, machine in enumerate(machines):
            own = np.minimum(stages, len(machine.coefficients) - 1)
            block[:, m, machine.places] = machine.coefficients[own]
            intercepts[:, m] = machine.intercepts[own]
        with single_threaded_blas():
            margins = classifier._kernel_.expand(
                queries,
                support,
                block.reshape(-1, n_support),
                dtype=classifier._dtype_,
                n_jobs=classifier.n_jobs,
            ).reshape(-1, len(stages), n_machines)
        for i in range(len(stages)):
            scores = classifier._scores(margins[:, i] + intercepts[i])
            yield scores[:, 1] if len(classifier.classes_) == 2 else scores


def _over_support(
    solution: RhoSolution, low_rank: LowRankMatrix | None, every: NDArray[Any]
) -> RhoSolution:
    """Give the vote the rows of the plane; at low rank, express both by the landmarks."""
    if low_rank is None:
        return replace(solution, ensemble=replace(solution.ensemble, rows=solution.rows))
    places, landmarks = np.searchsorted(every, solution.rows), low_rank.landmarks

    def collapsed(expansion: Expansion) -> FloatArray:
        whole = np.zeros(len(every))
        whole[places] = expansion.coefficients
        return low_rank.coefficients(whole)

    return replace(
        solution,
        rows=landmarks,
        coefficients=collapsed(solution),
        ensemble=replace(
            solution.ensemble, rows=landmarks, coefficients=collapsed(solution.ensemble)
        ),
    )


def _warn_of(solutions: Sequence[RhoSolution], *, is_low_rank: bool) -> None:
    reasons = [s.stop_reason for s in solutions]
    for limit in ("max_stages", "max_time"):
        if limit in reasons:
            n = min(s.n_stages for s in solutions if s.stop_reason == limit)
            so_far = f"that of {n} stages" if n else "the Parzen window, before any stage"
            warn_caller(
                f"Training stopped at {limit}; the model is {so_far}. Raise {limit} to continue, "
                "or set a (lower) rank for faster stages."
            )
    # A handful of rows may be at the optimum from the start.
    if any(
        s.n_stages == 0 and s.stop_reason == "eps" and len(s.rows) > FEW_ROWS for s in solutions
    ):
        warn_caller(
            "No stage was possible, and the model is the Parzen window: for this kernel all "
            "rows are nearly equally far apart. Lower gamma, or standardise the features."
        )
    # At low rank, overlapping classes are normal.
    if "rho_zero" in reasons and not is_low_rank:
        warn_caller(
            "Training stopped because no margin is left: in the feature space of this kernel "
            "the classes overlap. The model is that of the stages so far. Use EnsembleSVC, which "
            "chooses the kernel; a larger gamma may separate them, but also fits the noise in the "
            "labels."
        )
