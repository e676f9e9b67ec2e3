"""A vote of EnsembleSVC, from rows as they came to calibrated probabilities.

1. The rows are scaled, and some are held out.
2. Kernels vote (``kernel_vote.py``), and the shares of the classes beside them.
3. Class weights multiply the odds, which moves the thresholds of the machines.
4. Held-out scores give the probabilities, and judge them. Without such rows, probabilities are the
   frequencies of the classes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hardmargin.kernels import FloatArray, Kernel, Precision, Rows, as_blocks, make_kernel
from hardmargin.kernels.diagonal import check_diagonal
from hardmargin.kernels.precision import precision, warn_if_flat
from hardmargin.monitor import Monitor
from hardmargin.prediction import Machines
from hardmargin.prediction.machines import finite_scores
from hardmargin.selection.folds import Folds, make_folds, warn_of_shortage
from hardmargin.selection.judging import Judged, judge
from hardmargin.selection.optimism import (
    error_of_choices,
    errors_of_constant,
    gain_of_trust,
    honest_error,
)
from hardmargin.selection.plan import Plan
from hardmargin.selection.rows import TrainingRows
from hardmargin.selection.vote import COST_OF_VOTE, Losses, VoteResult
from hardmargin.selection.weights import log_weight_ratio, row_weights
from hardmargin.solvers.problem import Problem, machines_of
from hardmargin.warn import warn_caller

#: Up to this many rows, folds are made from several shuffles. That costs little there, and makes
#: the model depend a third less on how the rows happen to be shuffled (benchmarks/seeds.py). Parts
#: of more rows are shuffled once, as larger ones are: their time tells how long those take.
MAX_SHUFFLED_ROWS = 500
N_SHUFFLES = 3


@dataclass(frozen=True)
class FittedVote:
    """A vote that can predict.

    Attributes
    ----------
    plan : Plan
        How the rows were treated.
    classes : (n_classes,) array
        Labels of the classes.
    n_columns : int
        Columns of the rows as they came.
    machines : Machines
        What predicts.
    judged : Judged
        Probabilities, and what rows held out say about them.
    shares : structured array
        The kernels that vote.
    losses : Losses
        Held-out loss of every stage that was judged.
    relevance : (d,) array or None
        How much each column matters, where that was looked for.
    rank : int or None
        Rank of the kernels, if they are approximated.
    n_stages : list of int
        Stages of the longest path of each machine.
    stop_reasons : list of str
        Why the path of each machine's first kernel ended.
    slopes : (n_machines,) array
        Slopes of the machines' sigmoids.
    """

    plan: Plan
    classes: NDArray[Any]
    n_columns: int
    machines: Machines
    judged: Judged
    shares: NDArray[Any]
    losses: Losses
    relevance: FloatArray | None
    rank: int | None
    n_stages: list[int]
    stop_reasons: list[str]
    slopes: FloatArray


def fit_vote(
    rows: TrainingRows,
    plan: Plan,
    folds: Folds | None,
    random: np.random.RandomState,
    monitor: Monitor,
) -> FittedVote:
    """Train a vote on rows as they came.

    Parameters
    ----------
    rows : TrainingRows
        The rows.
    plan : Plan
        How to treat them.
    folds : Folds or None
        Their splits, where they are given.
    random : RandomState
        Draws folds, rows and landmarks.
    monitor : Monitor
        The clock.
    """
    vote, most_row_bytes, classes = plan.vote, plan.budget.most_row_bytes, rows.classes
    scaling = plan.scaling(rows)  # 1.
    if scaling is not None:
        rows = rows._replace(X=as_blocks(rows.X, most_row_bytes).map(scaling.transform))
    X, codes, is_part, class_weights = rows.X, rows.codes, rows.is_part, rows.class_weights
    problem, dtype = _problem(rows, plan)
    if folds is None:
        folds = _folds(rows, plan.cv, random)
    if folds.shortage:
        _warn_of_folds(folds)
    monitor = monitor.part("held-out loss", n_machines=len(problem.machines))
    if plan.is_linear and vote.rank in (None, "auto"):  # 2.
        voted = vote.of_one_kernel(Kernel("linear"), problem, dtype, folds, monitor)
    else:
        voted = vote.of_all(
            problem, dtype, folds, random, monitor, has_views=plan.has_views, is_quick=is_part
        )
    voted = voted.beside_constants()
    slopes = np.array([own.slope for own in voted.votes])
    ratios = [log_weight_ratio(problem, class_weights, m) for m in range(len(slopes))]  # 3.
    thresholds = [(ratio or 0.0) / slope for ratio, slope in zip(ratios, slopes, strict=True)]
    kernel, blocks = voted.kernel, as_blocks(X, most_row_bytes)
    found = voted.machines(thresholds)
    machines = Machines.of(found, kernel, blocks, codes, len(classes), dtype, scaling)
    judged = judge(  # 4.
        voted.held_out,
        slopes,
        machines.intercepts,
        lambda some: finite_scores(machines.margins(X[some], vote.n_jobs), vote.kernel),
        problem,
        plan.multi_class,
        class_weights,
        random,
    )
    mass = (codes >= 0).sum() if problem.weights is None else problem.weights.sum()
    judged = judged.after_choice(voted.optimism(float(mass)))
    if len(classes) == 2:
        of_rows = row_weights(codes, problem.weights, class_weights)
        judged = judged._replace(error=_raised(judged.error, voted, codes, of_rows, float(mass)))
    losses = Losses.of(voted.kernels, voted.votes, "standardized" if plan.standardized else "raw")
    _warn_of_stops(voted, plan)
    n_blind = sum(len(own.held_rows) == 0 for own in voted.votes)
    if n_blind and not folds.shortage:
        _warn_of_blind_machines(n_blind, len(voted.votes))
    return FittedVote(
        plan,
        classes,
        X.shape[1],
        machines,
        judged,
        losses.shares(voted),
        losses,
        voted.relevance,
        voted.rank,
        [max(path.n_stages for path in own.paths) for own in voted.votes],
        [own.paths[int(own.shares.argmax())].stop_reason for own in voted.votes],
        slopes,
    )


def _raised(
    error: float,
    voted: VoteResult,
    codes: NDArray[np.int32],
    weights: FloatArray,
    n_rows: float,
) -> float:
    """Raise the error of two classes by what choices took off: of kernels, and of the majority."""
    [own] = voted.votes
    if not own.is_judged:
        return error
    counts = n_rows * np.bincount(codes[codes >= 0], weights[codes >= 0]) / weights.sum()
    counted, of_constant = errors_of_constant(*counts.tolist())
    gain = gain_of_trust(own.trust, COST_OF_VOTE)
    of_choices = error_of_choices(gain / n_rows, COST_OF_VOTE / n_rows)
    of_majority = (1.0 - own.trust) * (of_constant - counted)
    return honest_error(error, of_choices + of_majority, of_constant)


def _problem(rows: TrainingRows, plan: Plan) -> tuple[Problem[Rows], Precision]:
    """Return the machines on scaled rows, and a precision; refuse rows that no kernel can use."""
    vote, X = plan.vote, rows.X
    usual = make_kernel(  # of medium width
        "rbf" if vote.kernel == "cv" else vote.kernel,
        X,
        gamma="spread" if vote.gamma == "cv" else vote.gamma,
        degree=vote.degree,
        coef0=vote.coef0,
        sample_weight=rows.weights,
    )
    warn_if_flat(usual, X, rows.weights)
    dtype = precision(X, vote.dtype, usual)
    check_diagonal(usual, X, rows.codes >= 0)
    machines = machines_of(len(rows.classes), plan.multi_class)
    return Problem(X, rows.codes, machines, rows.positive_weights), dtype


def _folds(rows: TrainingRows, cv: int | None, random: np.random.RandomState) -> Folds:
    """Hold rows out, in several shuffles where they are few."""
    is_shuffled = not rows.is_part and rows.n_rows <= MAX_SHUFFLED_ROWS
    n_shuffles = N_SHUFFLES if is_shuffled else 1
    return make_folds(cv, rows.X, rows.codes, n_shuffles=n_shuffles, random_state=random)


def _warn_of_stops(voted: VoteResult, plan: Plan) -> None:
    """Warn of paths that a limit has cut short."""
    reasons = {path.stop_reason for own in voted.votes for path in own.paths}
    if "max_time" in reasons:
        warn_caller(
            "max_time ended the vote on a sample early."
            if plan.is_of_sample
            else "Training stopped at max_time; the model is that of the stages so far."
        )
    elif "max_stages" in reasons and plan.max_stages is not None:
        n_stages, what = plan.vote.options.n_stages, "while their held-out loss still fell"
        if n_stages is not None:
            what = f"before n_stages={n_stages}"
        warn_caller(
            f"Some paths stopped at max_stages={plan.max_stages} {what}; raise max_stages to "
            "continue."
        )


def _warn_of_blind_machines(n_blind: int, n_machines: int) -> None:
    warn_caller(
        f"cv holds out no rows of both classes for {n_blind} of {n_machines} machines, so "
        "nothing could be chosen for them; use other splits.",
        UserWarning,
    )


def _warn_of_folds(folds: Folds) -> None:
    if len(folds.train) == 0:
        warn_caller(
            f"Nothing could be chosen by cross-validation: {folds.shortage}. The model has a "
            "kernel of medium width and few stages, and its probabilities are the "
            "frequencies of the classes, moved by the decision.",
            UserWarning,
        )
    else:
        warn_of_shortage(folds)
