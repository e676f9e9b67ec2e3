"""How the greedy stagewise SVM chooses inside ``fit``."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hardmargin.estimators._base.probabilities import ProbabilityMixin, warn_of_shortage
from hardmargin.estimators._base.problem import Problem
from hardmargin.estimators._base.scaling import StandardizeMixin
from hardmargin.estimators._base.validation import MAX_FLOAT32_FEATURE
from hardmargin.estimators._base.warn import warn_caller
from hardmargin.kernels import FloatArray, Rows, is_sparse, resolve_gamma
from hardmargin.memory import memory_bytes
from hardmargin.randomness import random_numbers
from hardmargin.selection.folds import make_folds
from hardmargin.selection.greedy import (
    MAX_FOLDED_ROWS,
    VISITS,
    GreedyChoice,
    Task,
    View,
    choose_greedy,
)
from hardmargin.solvers.greedy import GreedyOptions

#: Share of `max_time` that choosing may take.
CHOOSING_SHARE = 0.5

#: Up to this many rows choosing evaluates kernels in float64.
MAX_EXACT_CHOICE_ROWS = 500

#: Kernels whose gamma can be chosen.
KERNELS_WITH_GAMMA = ("rbf", "laplacian", "poly", "sigmoid")


@dataclass(frozen=True)
class Chosen(Problem):
    """A problem whose kernel is settled, with what that rests on.

    Attributes
    ----------
    max_visits : int
        Visits a row may have.
    choice : GreedyChoice or None
        What was chosen, if anything was to be.
    seconds : float or None
        What is left of `max_time`.
    random_state : RandomState
        Draws subsamples.
    """

    max_visits: int = 1
    choice: GreedyChoice | None = None
    seconds: float | None = None
    random_state: Any = None


class GreedyChooser(StandardizeMixin, ProbabilityMixin):
    """Settles gamma, visits and the scaling of the features before the machines are trained."""

    def _holds_out(self) -> bool:
        return bool(self.gamma == "cv" or self.max_visits == "cv")

    def _standardizes(self) -> bool:
        if self.standardize == "auto":
            return self.gamma == "cv" and not callable(self.kernel) and super()._standardizes()
        return super()._standardizes()

    def _prepare(self, X: Any, y: Any, sample_weight: Any, groups: Any = None) -> Chosen:
        start = time.monotonic()
        problem = super()._prepare(X, y, sample_weight, groups)
        random_state = random_numbers(self.random_state)
        unscaled = self.__dict__.pop("_unscaled_")
        choice = None
        if self._holds_out():
            views = self._views(problem, unscaled)
            choice = self._choose(problem, views, start, random_state)
            if choice.view == 1:
                self._scaling_ = None
            X = views[choice.view].X
            problem = replace(problem, X=X, kernel=choice.kernel, dtype=self._precision(X))
        self.standardized_ = self._scaling_ is not None
        return Chosen(
            **vars(problem),
            max_visits=int(self.max_visits) if choice is None else choice.max_visits,
            choice=choice,
            seconds=self.max_time and max(self.max_time - (time.monotonic() - start), 1e-3),
            random_state=random_state,
        )

    def _fit_scaling(self, X: Rows, sample_weight: FloatArray | None) -> Rows:
        scaled = super()._fit_scaling(X, sample_weight)
        n_rows = X.shape[0] if sample_weight is None else int((sample_weight > 0).sum())
        may_differ = (
            self.standardize == "auto"
            and self._scaling_ is not None
            and n_rows > MAX_FOLDED_ROWS
            and not self._scaling_.is_identity
        )
        self._unscaled_ = X if may_differ else None
        return scaled

    def _views(self, problem: Problem, unscaled: Rows | None) -> list[View]:
        """Return the rows as they were scaled, and as they came where that may be better."""
        views = [View(problem.X, problem.kernel)]
        if unscaled is not None and self._precision(unscaled) == problem.dtype:
            present = problem.codes >= 0
            gamma = resolve_gamma(
                "spread",
                unscaled if present.all() else unscaled[present],
                kernel=problem.kernel.name,
                sample_weight=None if problem.weights is None else problem.weights[present],
            )
            views.append(View(unscaled, replace(problem.kernel, gamma=gamma)))
        return views

    def _choose(
        self,
        problem: Problem,
        views: list[View],
        start: float,
        random_state: np.random.RandomState,
    ) -> GreedyChoice:
        """Choose gamma and the visits, and say so where that was not possible."""
        folds = make_folds(
            self.cv, problem.X, problem.codes, groups=problem.groups, random_state=random_state
        )
        task = Task(
            views,
            problem.codes,
            problem.machines,
            weights=problem.weights,
            options=replace(self._options(problem), method="auto", exact=self._is_exact(problem)),
            tunes_gamma=self.gamma == "cv" and problem.kernel.name in KERNELS_WITH_GAMMA,
            visits=VISITS if self.max_visits == "cv" else (int(self.max_visits),),
            deadline=None if self.max_time is None else start + CHOOSING_SHARE * self.max_time,
            report=self._report_choice if self.verbose else None,
        )
        choice = choose_greedy(task, folds, random_state)
        self.cv_results_ = choice.table
        is_scaled = self._scaling_ is not None
        self.cv_results_["standardized"] = (choice.table.pop("view") == 0) & is_scaled
        self.cv_log_loss_ = self.cv_error_ = float("nan")
        if choice.held_out is None:
            reason = folds.shortage or "no split has rows of two classes to train on and to score"
            if choice.is_cut_short:
                reason = "max_time is too short"
            warn_caller(
                f"Nothing could be chosen by cross-validation: {reason}. The model has gamma "
                f"{choice.kernel.gamma:.3g}, max_visits {choice.max_visits} and no probabilities.",
                UserWarning,
            )
        elif choice.is_cut_short:
            warn_caller(
                f"The choice of gamma and max_visits was ended by max_time, after "
                f"{len(choice.table['gamma'])} candidates; to go on, raise max_time."
            )
        else:
            warn_of_shortage(folds)
        return choice

    def _is_exact(self, problem: Problem) -> bool:
        """Whether choosing needs float64: float32 is faster, and chooses as well."""
        if problem.dtype == "float32":
            return False
        if self.dtype == "float64" or not problem.kernel.has_unit_diagonal:
            return True
        values = problem.X.data if is_sparse(problem.X) else problem.X
        return (
            len(problem.codes) <= MAX_EXACT_CHOICE_ROWS
            or float(np.abs(values).max(initial=0.0)) > MAX_FLOAT32_FEATURE
        )

    def _report_choice(self, gamma: float, max_visits: int, n_rows: int, log_loss: float) -> None:
        print(
            f"[{type(self).__name__}] choosing on {n_rows:,} rows: gamma {gamma:.3g}, max_visits "
            f"{max_visits}, log-loss {log_loss:.4f}",
            flush=True,
        )

    def _options(self, problem: Problem) -> GreedyOptions:
        return GreedyOptions(
            step_tol=self.step_tol,
            max_stages=self.max_stages,
            method=self.method,
            exact=problem.dtype == "float64",
            memory_bytes=memory_bytes(self.memory_limit),
            n_threads=self._threads(),
        )
