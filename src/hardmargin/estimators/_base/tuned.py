"""The ensemble that chooses its kernels and stages inside ``fit``."""

from __future__ import annotations

import time
from dataclasses import replace
from numbers import Integral

import numpy as np

from hardmargin.estimators._base.matrix import MatrixClassifier, one_or_all
from hardmargin.estimators._base.probabilities import ProbabilityMixin, warn_of_shortage
from hardmargin.estimators._base.problem import Expansion, Problem
from hardmargin.estimators._base.threshold import log_weight_ratio
from hardmargin.estimators._base.warn import warn_caller
from hardmargin.kernels import FloatArray, Kernel, KernelSum, Precision
from hardmargin.memory import memory_bytes, tasks_at_once
from hardmargin.randomness import random_numbers
from hardmargin.selection.calibration import platt_slope
from hardmargin.selection.folds import Folds, make_folds
from hardmargin.selection.held_out import HeldOut
from hardmargin.selection.low_rank_vote import LowRankVotes, low_rank_votes
from hardmargin.selection.vote import Vote, candidate_kernels, exact_votes
from hardmargin.selection.vote_tables import loss_table, share_table
from hardmargin.solvers.problem import finite_diagonal
from hardmargin.solvers.staged_vote import MAX_STAGES, PathOptions

#: ``dtype="auto"`` holds kernel values in float64 up to so many rows, in float32 up to so many,
#: and in 16 bits above.
MAX_FLOAT64_ROWS = 500
MAX_FLOAT32_ROWS = 1_500

#: Up to this many rows, folds are made by several shuffles. They cost little there, and the model
#: depends a third less on how the rows happen to be shuffled (benchmarks/seeds.py).
MAX_SHUFFLED_ROWS = 500
N_SHUFFLES = 3

#: The kernel matrices of all candidates are kept if they take no more bytes than this; larger ones
#: are made anew in every round of the race, which is faster than new memory.
KEPT_MATRICES = 2**27

#: ``rank="auto"`` approximates the kernel of machines with more rows.
MAX_STORED_ROWS = 10_000

#: Distances of all rows are stored for many machines at once up to so many rows.
MAX_SHARED_ROWS = 10_000


class TunedMixin(ProbabilityMixin, MatrixClassifier):
    """Fits by held-out votes; subclasses say when."""

    def _solve_by_votes(self, problem: Problem) -> list[Expansion]:
        finite_diagonal(problem.kernel, problem.X, problem.codes)
        random = random_numbers(self.random_state)
        present = problem.codes >= 0
        folds = make_folds(
            self.cv,
            problem.X,
            problem.codes,
            groups=problem.groups,
            n_shuffles=N_SHUFFLES if present.sum() <= MAX_SHUFFLED_ROWS else 1,
            random_state=random,
        )
        self._warn_of_folds(folds)
        seen = problem.X if present.all() else problem.X[present]
        weights = self._row_weights(replace(problem, class_weights=None))
        kernels = candidate_kernels(
            self.kernel,
            self.gamma,
            seen,
            degree=self.degree,
            coef0=self.coef0,
            sample_weight=None if problem.weights is None else problem.weights[present],
        )
        self.rank_: int | None = None
        if self._approximates(problem):
            found = self._low_rank_votes(problem, kernels, folds, weights, random)
            kernels, votes = found.kernels, found.votes
        else:
            votes = self._exact_votes(problem, kernels, folds, weights)
        total = np.sum([v.shares for v in votes], axis=0)
        used = [int(k) for k in np.argsort(-total, kind="stable") if total[k] > 0]
        slopes = [self._slope(v, problem, m, weights) for m, v in enumerate(votes)]
        self._keep_votes(problem, kernels, used, votes, slopes, folds)
        self._chosen_ = (
            kernels[used[0]] if len(used) == 1 else KernelSum(tuple(kernels[k] for k in used))
        )
        return [
            Expansion(v.rows.astype(np.int32), v.coefficients[used], v.intercept - threshold)
            for v, threshold in zip(votes, self._thresholds(problem, slopes), strict=True)
        ]

    def _exact_votes(
        self, problem: Problem, kernels: list[Kernel], folds: Folds, weights: FloatArray
    ) -> list[Vote]:
        n_rows = int((problem.codes >= 0).sum())
        report = self._reporter(len(problem.machines), "held-out loss")
        start = time.monotonic()
        limit = memory_bytes(self.memory_limit)
        largest = self._largest_machine(problem)
        options = replace(self._path_options(), n_threads=self._threads_within(limit, largest))
        if self._bytes_needed(largest) > limit:
            raise ValueError(
                f"Distances between {largest:,} rows need {self._bytes_needed(largest):,} bytes; "
                f"raise memory_limit (now {limit:,}), or approximate with rank='auto'."
            )
        if n_rows <= MAX_SHARED_ROWS and self._bytes_needed(n_rows) <= limit:
            groups = [list(range(len(problem.machines)))]
        else:
            groups = [[m] for m in range(len(problem.machines))]
        votes: list[Vote] = []
        for done, group in enumerate(groups):
            if self.max_time is not None:
                left = self.max_time - (time.monotonic() - start)
                options = replace(options, max_seconds=max(left / (len(groups) - done), 1e-3))
            rows = np.unique(np.concatenate([problem.rows_of(m) for m in group]))
            codes = np.full(len(problem.codes), -1, dtype=np.int32)
            codes[rows] = problem.codes[rows]
            dtype, compact = self._values(problem, len(rows))
            votes += exact_votes(
                kernels,
                problem.X,
                codes,
                [problem.machines[m] for m in group],
                weights=weights,
                folds=folds,
                dtype=dtype,
                options=replace(options, compact=compact),
                report=report,
            )
        return votes

    def _low_rank_votes(
        self,
        problem: Problem,
        kernels: list[Kernel],
        folds: Folds,
        weights: FloatArray,
        random: np.random.RandomState,
    ) -> LowRankVotes:
        found = low_rank_votes(
            kernels,
            problem.X,
            problem.codes,
            problem.machines,
            weights=weights,
            folds=folds,
            rank=int(self.rank) if isinstance(self.rank, Integral) else self.rank,
            landmarks=self.landmarks,
            dtype="float64" if self.dtype == "float64" else "float32",
            options=self._path_options(),
            memory_bytes=memory_bytes(self.memory_limit),
            n_jobs=self.n_jobs,
            random_state=random,
            report=self._reporter(len(problem.machines), "held-out loss"),
        )
        self.rank_ = found.rank
        if self._is_short_of_memory(problem):
            n_rows = self._largest_machine(problem)
            warn_caller(
                f"The kernel is approximated at rank {found.rank}, which may cost accuracy: the "
                f"distances between {n_rows:,} rows need {self._bytes_needed(n_rows) / 1e6:,.0f} "
                f"MB, and memory_limit leaves {memory_bytes(self.memory_limit) / 1e6:,.0f} MB. "
                "Raise memory_limit; or take GreedySVC, which needs no approximation.",
                UserWarning,
            )
        elif found.is_limited:
            reason = "memory_limit allows no more"
            if len(found.losses) > 1:
                reason = (
                    f"the held-out log-loss still fell from {found.losses[-2]:.4f} to "
                    f"{found.losses[-1]:.4f} when it was last doubled"
                )
            warn_caller(
                f"The rank of {found.rank} limits the accuracy: {reason}. GreedySVC needs no "
                "approximation; or set rank higher, which takes longer and more memory.",
                UserWarning,
            )
        return found

    def _path_options(self) -> PathOptions:
        n_stages = None if self.n_stages == "cv" else int(self.n_stages)
        # A number of stages that was asked for needs no other limit.
        limit = MAX_STAGES if n_stages is None else n_stages
        return PathOptions(
            loss=self.loss,
            fit_intercept=self.fit_intercept,
            n_stages=n_stages,
            max_stages=limit if self.max_stages is None else int(self.max_stages),
            memory_bytes=min(memory_bytes(self.memory_limit) // 4, KEPT_MATRICES),
            max_seconds=self.max_time,
            n_threads=self._threads(),
        )

    def _values(self, problem: Problem, n_rows: int) -> tuple[Precision, bool]:
        """Precision of stored kernel values, and whether they are held in 16 bits."""
        if problem.dtype == "float64" and (self.dtype == "float64" or n_rows <= MAX_FLOAT64_ROWS):
            return "float64", False
        return "float32", self.dtype == "auto" and n_rows > MAX_FLOAT32_ROWS

    def _approximates(self, problem: Problem) -> bool:
        """Whether the kernel matrix is replaced by one of low rank."""
        if self.rank is None:
            return False
        if self.rank != "auto":
            return True
        is_large = self._largest_machine(problem) > MAX_STORED_ROWS
        return is_large or self._is_short_of_memory(problem)

    def _is_short_of_memory(self, problem: Problem) -> bool:
        """Whether the memory alone keeps ``rank="auto"`` from being exact."""
        largest = self._largest_machine(problem)
        return (
            self.rank == "auto"
            and largest <= MAX_STORED_ROWS
            and self._bytes_needed(largest) > memory_bytes(self.memory_limit)
        )

    def _largest_machine(self, problem: Problem) -> int:
        return max(len(problem.rows_of(m)) for m in range(len(problem.machines)))

    def _bytes_needed(self, n_rows: int) -> int:
        """Memory for distances of both kinds, and the matrix of a thread."""
        return n_rows**2 * (2 * 4 + 2)

    def _threads_within(self, limit: int, n_rows: int) -> int:
        """Threads that have the memory for a matrix of their own."""
        return tasks_at_once(self._threads(), self._threads(), 2 * n_rows**2, limit - 8 * n_rows**2)

    def _keep_votes(
        self,
        problem: Problem,
        kernels: list[Kernel],
        used: list[int],
        votes: list[Vote],
        slopes: list[float],
        folds: Folds,
    ) -> None:
        self.kernel_weights_ = share_table(kernels, used, votes)
        self.cv_table_ = loss_table(kernels, votes)
        stages = [max(p.n_stages for p in v.paths) for v in votes]
        reasons = [v.paths[int(v.shares.argmax())].stop_reason for v in votes]
        self.n_stages_ = self.n_iter_ = one_or_all(stages)
        self.stop_reason_ = one_or_all(reasons)
        self._warn_of_limits({p.stop_reason for v in votes for p in v.paths})
        self._warn_of_blind_machines(votes, folds)
        self._held_out_ = self._held_scores(problem, votes)
        self._slopes_ = np.array(slopes) if len(self._held_out_.rows) else None
        self.temperature_ = one_or_all([s / 2 for s in slopes])
        self.cv_log_loss_ = self.cv_error_ = float("nan")

    def _held_scores(self, problem: Problem, votes: list[Vote]) -> HeldOut:
        counts = [len(v.held_rows) for v in votes]
        return HeldOut(
            rows=np.concatenate([v.held_rows for v in votes]).astype(np.intp),
            scores=np.concatenate([v.held_scores - v.intercept for v in votes]),
            positive=np.concatenate(
                [problem.is_positive(m)[problem.codes[v.held_rows]] for m, v in enumerate(votes)]
            ),
            machines=np.repeat(np.arange(len(votes)), counts),
        )

    def _slope(self, vote: Vote, problem: Problem, machine: int, weights: FloatArray) -> float:
        """Slope of the machine's sigmoid; 2 where no rows of both sides were held out."""
        positive = problem.is_positive(machine)[problem.codes[vote.held_rows]]
        if positive.all() or not positive.any():
            return 2.0
        copies = len(vote.held_rows) / len(np.unique(vote.held_rows))
        return platt_slope(vote.held_scores, positive, weights[vote.held_rows], copies)

    def _thresholds(self, problem: Problem, slopes: list[float]) -> list[float]:
        """Where the machines' scores are cut: zero, moved as ``class_weight`` asks for.

        A weight on a class multiplies its odds. Training with it would do more than that: the rows
        of a rare class would drown out the others, and the ranking of the rows would suffer.
        """
        ratios = [log_weight_ratio(problem, m) or 0.0 for m in range(len(slopes))]
        return [ratio / slope for ratio, slope in zip(ratios, slopes, strict=True)]

    def _store(self, problem: Problem, machines: list[Expansion]) -> None:
        super()._store(problem, machines)
        if not self._holds_out():
            return
        self._kernel_, self.gamma_ = self._chosen_, self._chosen_.gamma
        held_out = self._held_out_
        del self._chosen_, self._held_out_
        if self._slopes_ is not None:
            self._fit_probabilities(problem, held_out, random_numbers(self.random_state))

    def _warn_of_folds(self, folds: Folds) -> None:
        if folds.n_splits == 0:
            warn_caller(
                f"Nothing could be chosen by cross-validation: {folds.shortage}. The model has a "
                "kernel of middle width, few stages and no probabilities.",
                UserWarning,
            )
        else:
            warn_of_shortage(folds)

    def _warn_of_blind_machines(self, votes: list[Vote], folds: Folds) -> None:
        n_blind = sum(len(v.held_rows) == 0 for v in votes)
        if n_blind and not folds.shortage:
            warn_caller(
                f"cv holds out no rows of both classes for {n_blind} of {len(votes)} machines, so "
                "that nothing could be chosen for them; take other splits.",
                UserWarning,
            )

    def _warn_of_limits(self, reasons: set[str]) -> None:
        if "max_time" in reasons:
            warn_caller("Training stopped at max_time; the model is that of the stages so far.")
        elif "max_stages" in reasons and self.max_stages is not None:
            what = "while their held-out loss still fell"
            if self.n_stages != "cv":
                what = f"before n_stages={self.n_stages}"
            warn_caller(
                f"Some paths stopped at max_stages={self.max_stages} {what}; to go on, raise "
                "max_stages."
            )
