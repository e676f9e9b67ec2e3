"""Classifiers made of the planes that multiplicative updates pass: their fit and staged methods."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from threading import Lock
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval, Real
from sklearn.utils.validation import check_is_fitted

from hardmargin.estimators._base.matrix import MatrixClassifier, one_or_all
from hardmargin.estimators._base.problem import Expansion, Problem
from hardmargin.estimators._base.run import Run, for_each
from hardmargin.estimators._base.staged import StagedMixin
from hardmargin.estimators._base.warn import warn_caller
from hardmargin.kernels import FloatArray
from hardmargin.kernels.low_rank import LowRankMatrix
from hardmargin.memory import memory_bytes
from hardmargin.parallel import single_threaded_blas
from hardmargin.solvers.rho import ProjectionOptions, solve_projection
from hardmargin.solvers.solution import ProjectionSolution

#: Planes are kept for the staged methods while they take at most this share of the memory limit,
#: in float64 up to so many bytes and in float32 beyond.
PLANES_SHARE = 0.125
MAX_EXACT_PLANES = 2**26

#: Coefficients of planes, and their scores, that the staged methods hold at once.
_COEFFICIENTS_AT_ONCE = 4_000_000

#: So few rows need not have a stage at all.
FEW_ROWS = 20

#: Planes that are collapsed into landmarks at once: one pass over the factor serves them all.
_COLLAPSED_AT_ONCE = 16


class PlanesClassifier(StagedMixin, MatrixClassifier):
    """Base of the classifiers on the path of the rho-SVM (IJCAI-07)."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **MatrixClassifier._parameter_constraints,
        "eps_start": [Interval(Real, 0, 1, closed="neither")],
        "eps_stop": [Interval(Real, 0, 1, closed="neither")],
        "fit_intercept": ["boolean"],
    }

    def staged_decision_function(self, X: Any) -> Iterator[FloatArray]:
        """Scores after every stage, as `decision_function` gives them at the end.

        Stage t of several machines is stage t of each, or its last: for many classes that is not
        the model of ``n_stages=t``, whose machines all go on to stage t.

        Yields
        ------
        (n_samples,) array, or (n_samples, n_classes) for more than two classes
        """
        check_is_fitted(self)
        planes = self._all_planes()
        rows = self._check_rows(X)
        n_machines = len(planes)
        largest = n_machines * max(len(self.support_), rows.shape[0], 1)
        at_once = max(1, _COEFFICIENTS_AT_ONCE // largest)
        coefficients = [self._staged_coefficients(planes[m], m) for m in range(n_machines)]
        n_stages = max(len(c) for c, _ in coefficients)
        queries, support = self._support_rows(rows)
        for begin in range(0, n_stages, at_once):
            stages = range(begin, min(begin + at_once, n_stages))
            block = np.empty((len(stages), n_machines, len(self.support_)))
            intercepts = np.empty((len(stages), n_machines))
            for m, (of_machine, intercept) in enumerate(coefficients):
                for i, t in enumerate(stages):
                    t = min(t, len(of_machine) - 1)
                    block[i, m], intercepts[i, m] = of_machine[t], intercept[t]
            with single_threaded_blas():
                margins = self._kernel_.expand(
                    queries,
                    support,
                    block.reshape(-1, len(self.support_)),
                    dtype=self._dtype_,
                    n_jobs=self.n_jobs,
                ).reshape(-1, len(stages), n_machines)
            for i in range(len(stages)):
                scores = self._scores(margins[:, i] + intercepts[i])
                yield scores[:, 1] if len(self.classes_) == 2 else scores

    @abstractmethod
    def _staged_coefficients(self, planes: Any, machine: int) -> tuple[Any, Any]:
        """Coefficients (n_stages, n_support) and intercepts of a machine after every stage."""

    def _all_planes(self) -> list[NDArray[Any]]:
        if self._planes_ is None:
            raise AttributeError(
                "The planes of all stages did not fit memory_limit and were not kept: there are no "
                "staged predictions; raise memory_limit and fit again."
            )
        return self._planes_

    def _expansions(
        self, problem: Problem, options: ProjectionOptions, *, last: bool
    ) -> list[Expansion]:
        """Train all machines, and take the last plane of each or the ensemble of all."""
        if self.eps_stop > self.eps_start:
            raise ValueError(
                f"eps_stop={self.eps_stop} must not be above eps_start={self.eps_start}: the path "
                "goes from the one down to the other."
            )
        low_rank = self._low_rank(problem)
        support = np.flatnonzero(problem.codes >= 0) if low_rank is None else low_rank.landmarks
        store = _PlaneStore(
            len(problem.machines),
            len(support),
            int(PLANES_SHARE * memory_bytes(self.memory_limit)),
        )
        solutions = self._paths(problem, options, low_rank, support, store)
        self._planes_: list[NDArray[Any]] | None = store.planes()
        self._plane_intercepts_ = [s.plane_intercepts for s in solutions]
        self._keep(problem, solutions)
        return [
            self._expansion(problem, low_rank, support, s, m, last=last)
            for m, s in enumerate(solutions)
        ]

    def _paths(
        self,
        problem: Problem,
        options: ProjectionOptions,
        low_rank: LowRankMatrix | None,
        support: NDArray[Any],
        store: _PlaneStore,
    ) -> list[ProjectionSolution]:
        weights = self._row_weights(problem)
        every = np.flatnonzero(problem.codes >= 0)

        def train(machines: list[int], run: Run, n_jobs: int | None) -> list[ProjectionSolution]:
            rows = problem.rows_of(machines[0])
            labels = np.column_stack([problem.labels_of(m)[rows] for m in machines])
            matrix = self._matrix(problem, rows, low_rank, n_jobs=n_jobs)

            waiting: list[tuple[int, FloatArray]] = []

            def observe(machine: int, signed: FloatArray) -> None:
                waiting.append((machines[machine], signed))
                if not isinstance(matrix, LowRankMatrix) or len(waiting) == _COLLAPSED_AT_ONCE:
                    keep()

            def keep() -> None:
                if isinstance(matrix, LowRankMatrix) and waiting:
                    collapsed = matrix.coefficients(np.column_stack([s for _, s in waiting]))
                    for (machine, _), plane in zip(waiting, collapsed.T, strict=True):
                        store.add(machine, plane)
                else:
                    for machine, signed in waiting:
                        plane = np.zeros(len(support))
                        plane[np.searchsorted(support, rows)] = signed
                        store.add(machine, plane)
                waiting.clear()

            solutions = solve_projection(
                matrix,
                labels,
                weights=weights[rows],
                options=options,
                keep_going=run.keep_going,
                observe=observe,
            )
            keep()
            return solutions

        n_machines = len(problem.machines)
        if all(len(problem.rows_of(m)) == len(every) for m in range(n_machines)):
            # All machines see the same rows: one product serves them all.
            together = for_each(
                self,
                [0],
                lambda _, run: train(list(range(n_machines)), run, self.n_jobs),
                "objective",
            )
            return together[0]
        n_at_once = self._machines_at_once(problem, low_rank)
        n_jobs = self.n_jobs if n_at_once == 1 else 1
        return for_each(
            self,
            range(n_machines),
            lambda m, run: train([m], run, n_jobs)[0],
            "objective",
            n_threads=n_at_once,
        )

    def _expansion(
        self,
        problem: Problem,
        low_rank: LowRankMatrix | None,
        support: NDArray[Any],
        solution: ProjectionSolution,
        machine: int,
        *,
        last: bool,
    ) -> Expansion:
        signed = solution.labels * (solution.alpha if last else solution.ensemble)
        intercept = float(solution.plane_intercepts[-1]) if last else solution.intercept
        rows = problem.rows_of(machine)
        if low_rank is None:
            return Expansion(rows.astype(np.int32), signed, intercept)
        every = np.flatnonzero(problem.codes >= 0)
        whole = np.zeros(len(every))
        whole[np.searchsorted(every, rows)] = signed
        return Expansion(support.astype(np.int32), low_rank.coefficients(whole), intercept)

    def _keep(self, problem: Problem, solutions: list[ProjectionSolution]) -> None:
        self.n_stages_ = one_or_all([s.n_stages for s in solutions])
        self.n_iter_ = self.n_stages_
        self.stage_weights_ = one_or_all([s.rates for s in solutions])
        self.stage_intercepts_ = one_or_all([s.biases for s in solutions])
        self.rho_path_ = one_or_all([s.rhos for s in solutions])
        self.eps_path_ = one_or_all([s.epsilons for s in solutions])
        self.rho_lower_bound_ = one_or_all([s.rho_lower_bound for s in solutions])
        self.certificate_ = one_or_all([s.gap for s in solutions])
        self.stop_reason_ = one_or_all([s.stop_reason for s in solutions])
        self._warn_of(solutions)

    def _warn_of(self, solutions: list[ProjectionSolution]) -> None:
        reasons = [s.stop_reason for s in solutions]
        for limit in ("max_stages", "max_time"):
            if limit in reasons:
                n = min(s.n_stages for s in solutions if s.stop_reason == limit)
                so_far = f"that of {n} stages" if n else "the Parzen window, before any stage"
                warn_caller(
                    f"Training stopped at {limit}; the model is {so_far}. Raise {limit} to go on, "
                    "or make stages quicker with a (lower) rank."
                )
        # A handful of rows may be at the optimum from the start.
        if any(
            s.n_stages == 0 and s.stop_reason == "eps" and len(s.rows) > FEW_ROWS for s in solutions
        ):
            warn_caller(
                "No stage was possible, and the model is the Parzen window: for this kernel all "
                "rows are nearly as far from each other. Lower gamma, or standardise the features."
            )
        # At low rank classes overlap as a rule, and nothing is wrong.
        if "rho_zero" in reasons and self.rank_ is None:
            warn_caller(
                "Training stopped because no margin is left: in the feature space of this kernel "
                "the classes overlap. The model is that of the stages so far; a larger gamma may "
                "tell them apart."
            )


class _PlaneStore:
    """Coefficients of all planes of all machines, as long as there is room.

    They are float32 where all together are many.
    """

    def __init__(self, n_machines: int, n_support: int, most_bytes: int) -> None:
        self._of_machine: list[list[NDArray[Any]]] = [[] for _ in range(n_machines)]
        self._n_support, self._most_bytes, self._n_planes = n_support, most_bytes, 0
        self._is_full = False
        self._lock = Lock()  # machines may be trained in several threads

    def add(self, machine: int, plane: FloatArray) -> None:
        with self._lock:
            if self._is_full:
                return
            self._n_planes += 1
            if self._dtype.itemsize * self._n_planes * self._n_support > self._most_bytes:
                self._is_full = True
                self._of_machine.clear()
                return
            self._of_machine[machine].append(plane.astype(self._dtype))

    @property
    def _dtype(self) -> np.dtype[Any]:
        is_large = 8 * self._n_planes * self._n_support > MAX_EXACT_PLANES
        return np.dtype(np.float32 if is_large else np.float64)

    def planes(self) -> list[NDArray[Any]] | None:
        if self._is_full:
            return None
        return [np.array(planes, dtype=self._dtype) for planes in self._of_machine]
