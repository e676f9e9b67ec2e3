"""What the classifiers share that follow the regularisation path of the C-SVM."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from hardmargin.estimators._base.classifier import KernelClassifier
from hardmargin.estimators._base.matrix import one_or_all
from hardmargin.estimators._base.problem import Expansion, Problem
from hardmargin.estimators._base.run import Run, for_each
from hardmargin.estimators._base.validation import COUNT
from hardmargin.estimators._base.warn import warn_caller
from hardmargin.kernels import FloatArray
from hardmargin.kernels.matrix import StoredMatrix, kernel_matrix
from hardmargin.memory import memory_bytes, tasks_at_once
from hardmargin.parallel import single_threaded_blas
from hardmargin.selection.folds import Folds
from hardmargin.solvers.problem import finite_diagonal
from hardmargin.solvers.regularization_path.record import RegularizationPath
from hardmargin.solvers.regularization_path.tracer import (
    CentredKernel,
    PathOptions,
    centred_kernel,
    trace_path,
)

#: Matrices of the size of the kernel matrix that a path takes at most: it, a centred copy, the
#: columns of the rows on the margin, and the inverse between them.
MATRICES = 4

#: A larger violation of the conditions of optimality is worth a warning.
MAX_CERTIFICATE = 1e-6


@dataclass(frozen=True)
class MachinePaths:
    """The paths of one machine: of all its rows, and of the training part of every split.

    Attributes
    ----------
    whole : RegularizationPath
        Of all rows of the machine.
    parts : list of (RegularizationPath, bool array)
        Of each split, with the rows of the machine that it scores.
    """

    whole: RegularizationPath
    parts: list[tuple[RegularizationPath, NDArray[np.bool_]]]


class PathClassifier(KernelClassifier):
    """Base of the classifiers that trace regularisation paths; they choose C in ``_choose``."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **KernelClassifier._parameter_constraints,
        "C_max": [Interval(Real, 0, None, closed="neither")],
        "max_stages": [COUNT, None],
    }

    def at(self, C: float) -> Any:
        """Return the SVM of any C, as a fitted copy of this estimator without the path.

        Nothing is trained: between breakpoints multipliers and intercepts are linear in C. Beyond
        the last breakpoint it is the SVM of the last one: the hard margin where ``stop_reason_``
        says so, and otherwise another SVM than was asked for, with a warning. ``C_`` of the copy
        tells. With many classes all machines get the same C.

        Parameters
        ----------
        C : float
            Weight of the slacks, positive.

        Returns
        -------
        fitted estimator of the same class
        """
        check_is_fitted(self)
        if not isinstance(C, Real) or not C > 0:
            raise ValueError(f"C must be a positive number, got {C!r}.")
        model = copy.copy(self)
        for name in self._only_of_the_choice:
            model.__dict__.pop(name, None)
        paths = self._all_paths()
        short = [p for p in paths if p.stop_reason != "hard_margin" and p.C[-1] < C]
        if short:
            first = min(short, key=lambda path: float(path.C[-1]))
            warn_caller(
                f"The path ended at C = {first.C[-1]:.3g} ({first.stop_reason}): this is the SVM "
                f"of that C, not of C = {C:g}.",
                UserWarning,
            )
        problem = self._problem_
        model._store(problem, model._expansions(problem, paths, [float(C)] * len(paths)))
        del model.path_, model.path_rows_, model._problem_
        return model

    #: Attributes that speak of the C that was chosen, and not of any other.
    _only_of_the_choice: ClassVar[tuple[str, ...]] = ()

    def path_error(self, X: Any, y: Any, sample_weight: Any = None) -> FloatArray:
        """Share of rows that the SVM of every breakpoint of the path misclassifies.

        Its minimum on test rows is the SVM(BEST) of IJCAI-07: the best there is on the path, known
        only afterwards. For two classes.

        Parameters
        ----------
        X : (n_samples, n_features) array or sparse matrix
            Rows; for a precomputed kernel their values against all training rows.
        y : (n_samples,) array
            Their labels.
        sample_weight : (n_samples,) array, optional
            What each row counts.

        Returns
        -------
        (n_breakpoints,) array
        """
        rows = self._check_rows(X)
        if len(self.classes_) != 2:
            raise ValueError("path_error is for two classes; use at(C).score(X, y) for more.")
        (path,) = self._all_paths()
        problem = self._problem_
        present = problem.rows_of(0)
        labels = problem.labels_of(0)[present]
        y = np.asarray(y)
        weights = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight)
        wrong = np.zeros(len(path))
        at_once = max(1, memory_bytes(self.memory_limit) // 64 // max(len(present), 1))
        with single_threaded_blas():
            for begin in range(0, len(path), at_once):
                part = range(begin, min(begin + at_once, len(path)))
                coef = np.array([path.multipliers(k) * labels for k in part])
                for first in range(0, rows.shape[0], 1024):
                    some = slice(first, first + 1024)
                    scores = self._kernel_values(rows[some], present) @ coef.T
                    is_second = scores + path.intercept[part] >= 0
                    missed = is_second != (y[some] == self.classes_[1])[:, np.newaxis]
                    wrong[part] += weights[some] @ missed
        errors: FloatArray = wrong / weights.sum()
        return errors

    def _kernel_values(self, Q: Any, training_rows: NDArray[np.intp]) -> FloatArray:
        """Kernel values of queries against training rows."""
        problem = self._problem_
        if problem.kernel.name == "precomputed":
            return np.asarray(Q[:, training_rows], dtype=np.float64)
        support = problem.X[training_rows]
        values = problem.kernel.block(Q, support, dtype=problem.dtype, n_jobs=self.n_jobs)
        return np.asarray(values, dtype=np.float64)

    def _trace(
        self,
        problem: Problem,
        options: Callable[[int], PathOptions],
        folds: Folds | None = None,
    ) -> list[MachinePaths]:
        """Follow the paths of all machines, of all rows and of the training rows of every split."""
        finite_diagonal(problem.kernel, problem.X, problem.codes)
        if self.kernel == "precomputed":
            _check_symmetry(problem.X)
        n_machines = len(problem.machines)
        self._check_memory(problem)
        splits: list[int | None] = [None, *range(0 if folds is None else folds.n_splits)]
        if n_machines == 1:  # threads over the splits, which share the kernel
            kernel = self._machine_kernel(problem, 0)

            def of_split(task: int, run: Run) -> RegularizationPath | None:
                return self._one_path(problem, kernel, 0, options(0), folds, splits[task], run)

            of_all = [for_each(self, range(len(splits)), of_split, "C")]
        else:

            def of_machine(machine: int, run: Run) -> list[RegularizationPath | None]:
                kernel = self._machine_kernel(problem, machine, n_jobs=1)
                return [
                    self._one_path(problem, kernel, machine, options(machine), folds, split, run)
                    for split in splits
                ]

            n_threads = tasks_at_once(
                self._threads(),
                n_machines,
                self._bytes_needed(problem),
                memory_bytes(self.memory_limit),
            )
            of_all = for_each(self, range(n_machines), of_machine, "C", n_threads=n_threads)
        traced = []
        for machine, (whole, *others) in enumerate(of_all):
            assert whole is not None
            rows = problem.rows_of(machine)
            parts = [
                (path, folds.test[k][rows])
                for k, path in enumerate(others)
                if path is not None and folds is not None
            ]
            traced.append(MachinePaths(whole, parts))
        self._warn(traced)
        return traced

    def _one_path(
        self,
        problem: Problem,
        kernel: CentredKernel,
        machine: int,
        options: PathOptions,
        folds: Folds | None,
        split: int | None,
        run: Run,
    ) -> RegularizationPath | None:
        """Follow one path; None where a split leaves a machine nothing to train or to score."""
        rows = problem.rows_of(machine)
        labels = problem.labels_of(machine)[rows]
        copies = None if problem.weights is None else problem.weights[rows]
        if split is not None and folds is not None:
            labels = np.where(folds.train[split][rows], labels, 0.0)
            if not ((labels > 0).any() and (labels < 0).any() and folds.test[split][rows].any()):
                return None
            options = replace(options, keep_multipliers=False)
        return trace_path(
            kernel,
            labels,
            self._row_weights(problem)[rows],
            options=options,
            copies=copies,
            keep_going=run.keep_going,
        )

    def _machine_kernel(
        self, problem: Problem, machine: int, n_jobs: int | None = None
    ) -> CentredKernel:
        rows = problem.rows_of(machine)
        matrix = kernel_matrix(
            problem.kernel,
            problem.X,
            None if len(rows) == problem.X.shape[0] else rows,
            dtype="float64",  # rounded to float32 it would not be positive semi-definite
            memory_bytes=2**63,
            n_jobs=n_jobs or self.n_jobs,
        )
        assert isinstance(matrix, StoredMatrix)
        return centred_kernel(matrix.values)

    def _bytes_needed(self, problem: Problem) -> int:
        """Memory that the largest machine takes."""
        return MATRICES * 8 * _largest_machine(problem) ** 2

    def _check_memory(self, problem: Problem) -> None:
        needed, limit = self._bytes_needed(problem), memory_bytes(self.memory_limit)
        if needed > limit:
            raise ValueError(
                f"The path of {_largest_machine(problem):,} rows takes up to {needed / 1e9:.3g} "
                f"GB, and memory_limit allows {limit / 1e9:.3g}; raise memory_limit, or train on "
                "fewer rows. GreedySVC and CoreVectorSVC take less."
            )

    def _warn(self, traced: Sequence[MachinePaths]) -> None:
        whole = [machine.whole for machine in traced]
        of_splits = [path for machine in traced for path, _ in machine.parts]
        for reason, advice in (
            ("max_stages", "raise max_stages, or lower C_max"),
            ("max_time", "raise max_time, or lower C_max"),
            (
                "stalled",
                "rounding leaves no way on, or the kernel is not positive semi-definite; scale the "
                "features, lower C_max, or use another kernel",
            ),
        ):
            ends = [path.C[-1] for path in whole if path.stop_reason == reason]
            which = "A path"
            if not ends:
                ends = [path.C[-1] for path in of_splits if path.stop_reason == reason]
                which = "The path of a split, which chooses C,"
            if ends:
                name = "where it was" if reason == "stalled" else f"at {reason}"
                warn_caller(f"{which} stopped {name}, at C = {min(ends):.3g}; {advice}.")
        paths = whole + of_splits
        worst = max((p.violation for p in paths if p.stop_reason != "stalled"), default=0.0)
        if worst > MAX_CERTIFICATE:
            warn_caller(
                f"Rounding leaves margins along a path up to {worst:.2g} away from the optimum's; "
                "lower C_max, or make the kernel narrower or the weights more alike."
            )

    def _keep(self, problem: Problem, paths: list[RegularizationPath]) -> None:
        """Set what all these estimators have."""
        self._problem_ = replace(problem, groups=None)
        self.path_: Any = paths[0] if len(paths) == 1 else paths
        self.path_rows_ = one_or_all([problem.rows_of(m) for m in range(len(paths))])
        self.loo_path_ = one_or_all([path.loo_bound for path in paths])
        self.certificate_ = one_or_all([path.violation for path in paths])
        self.n_iter_ = one_or_all([path.n_stages for path in paths])
        self.stop_reason_ = one_or_all([path.stop_reason for path in paths])

    def _expansions(
        self, problem: Problem, paths: list[RegularizationPath], Cs: Sequence[float]
    ) -> list[Expansion]:
        """Machines at their C, and the attributes that go with these."""
        Cs = [min(C, float(path.C[-1])) for C, path in zip(Cs, paths, strict=True)]
        pairs = list(zip(paths, Cs, strict=True))
        self.C_ = one_or_all(Cs)
        self.weight_norm_ = one_or_all([float(np.sqrt(p.squared_norm_at(C))) for p, C in pairs])
        self.slack_sum_ = one_or_all([p.slack_sum_at(C) for p, C in pairs])
        expansions = []
        for machine, (path, C) in enumerate(pairs):
            alpha, intercept = path.at(C)
            support = np.flatnonzero(alpha)
            rows = problem.rows_of(machine)[support].astype(np.int32)
            coefficients = alpha[support] * path.labels[support]
            expansions.append(Expansion(rows, coefficients, intercept))
        return expansions

    def _all_paths(self) -> list[RegularizationPath]:
        if not hasattr(self, "path_"):
            raise AttributeError("This is the SVM of one C of a path, without the path.")
        return self.path_ if isinstance(self.path_, list) else [self.path_]


def _largest_machine(problem: Problem) -> int:
    return max(len(problem.rows_of(m)) for m in range(len(problem.machines)))


def _check_symmetry(K: FloatArray) -> None:
    difference = float(np.abs(K - K.T).max())
    if difference > 1e-6 * float(np.abs(K).max()):
        raise ValueError(
            "With kernel='precomputed' X must be symmetric, but it differs from its transpose by "
            f"up to {difference:.2g}."
        )
