"""Shared by the classifiers that follow the regularisation path of the C-SVM."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from hardmargin.estimators._base.classifier import KernelClassifier, Training
from hardmargin.estimators._base.estimator import COUNT, one_or_all, publish
from hardmargin.estimators._base.one_model import on_one_model
from hardmargin.kernels import FloatArray
from hardmargin.kernels.diagonal import check_diagonal
from hardmargin.kernels.matrix import StoredMatrix, kernel_matrix
from hardmargin.monitor import Monitor, Stopped
from hardmargin.resources import memory_bytes, single_threaded_blas, tasks_at_once
from hardmargin.selection.folds import Folds
from hardmargin.solvers import regularization_path
from hardmargin.solvers.problem import Expansion, Problem
from hardmargin.solvers.regularization_path import (
    RegularizationPath,
    RegularizationPathOptions,
    RegularizationPathSolution,
    ScaledKernel,
)
from hardmargin.warn import warn_caller

#: A regularisation path needs at most this many matrices of the size of the kernel matrix: the
#: matrix itself, a centred copy, the columns of the rows on the margin, and the inverse of their
#: block.
MATRICES = 4

#: There is a warning if the optimality conditions are violated by more.
MAX_CERTIFICATE = 1e-6

#: Attributes of the regularisation path or of the chosen C, which do not apply to any other C.
_OF_THE_PATH = {
    *("path_", "path_rows_", "loo_path_", "_training_"),
    *("cv_error_", "cv_results_", "loo_bound_", "norm_bound_"),
}


class RegularizationPathClassifier(KernelClassifier):
    """Base of the classifiers that follow regularisation paths."""

    fit_intercept: bool

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **KernelClassifier._parameter_constraints,
        "fit_intercept": ["boolean"],
        "C_max": [Interval(Real, 0, None, closed="neither")],
        "max_stages": [COUNT, None],
    }

    @on_one_model
    def at(self, C: float) -> Any:
        """Return the SVM of any C, as a fitted copy without the regularisation path.

        Nothing is trained: between breakpoints, multipliers and intercepts are linear in C. Beyond
        the last breakpoint, the SVM of that breakpoint is returned. That is correct if
        ``stop_reason_`` is ``"hard_margin"``; otherwise there is a warning, as this is not the SVM
        of the given C. ``C_`` of the copy is the C it has. With many classes all machines get the
        same C.

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
        paths = self._all_paths()
        short = [p for p in paths if p.stop_reason != "hard_margin" and p.C[-1] < C]
        if short:
            first = min(short, key=lambda path: float(path.C[-1]))
            warn_caller(
                f"The regularisation path ended at C = {first.C[-1]:.3g} ({first.stop_reason}): "
                f"this is the SVM of that C, not of C = {C:g}.",
                UserWarning,
            )
        model = copy.copy(self)
        model.__dict__ = {k: v for k, v in vars(self).items() if k not in _OF_THE_PATH}
        model._store_at(self._training_, paths, [float(C)] * len(paths))
        return model

    @on_one_model
    def path_error(self, X: Any, y: Any, sample_weight: Any = None) -> FloatArray:
        """Share of rows that the SVM of every breakpoint misclassifies.

        Its minimum on test rows is the SVM(BEST) of IJCAI-07: the best SVM on the regularisation
        path, which can only be known with hindsight. Only for two classes.

        Parameters
        ----------
        X : (n_samples, n_features) array or sparse matrix
            Rows; for a precomputed kernel their values against all training rows.
        y : (n_samples,) array
            Their labels.
        sample_weight : (n_samples,) array, optional
            Weight of each row.

        Returns
        -------
        (n_breakpoints,) array
        """
        rows = self._check_rows(X)
        if len(self.classes_) != 2:
            raise ValueError("path_error is for two classes only; for more use at(C).score(X, y).")
        (path,) = self._all_paths()
        y = np.asarray(y)
        weights = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight)
        wrong = np.zeros(len(path))
        at_once = max(1, memory_bytes(self.memory_limit) // 64 // max(len(path.labels), 1))
        with single_threaded_blas():
            for begin in range(0, len(path), at_once):
                part = range(begin, min(begin + at_once, len(path)))
                coef = np.array([path.multipliers(k) * path.labels for k in part])
                for first in range(0, rows.shape[0], 1024):
                    some = slice(first, first + 1024)
                    scores = self._kernel_values(rows[some]) @ coef.T
                    is_second = scores + path.intercept[part] >= 0
                    missed = is_second != (y[some] == self.classes_[1])[:, np.newaxis]
                    wrong[part] += weights[some] @ missed
        errors: FloatArray = wrong / weights.sum()
        return errors

    def _kernel_values(self, Q: Any) -> FloatArray:
        """Kernel values of queries against the rows of the regularisation path; for two classes."""
        values = self._training_.values
        if values.kernel.name == "precomputed":
            return np.asarray(Q[:, self.path_rows_], dtype=np.float64)
        rows = values.X[self.path_rows_]
        block = values.kernel.block(Q, rows, dtype=values.dtype, n_jobs=self.n_jobs)
        return np.asarray(block, dtype=np.float64)

    def _all_paths(self) -> list[RegularizationPath]:
        if not hasattr(self, "path_"):
            raise AttributeError(
                "This is the SVM of a single C, from at(C), without the regularisation path."
            )
        return self.path_ if isinstance(self.path_, list) else [self.path_]

    def _keep_paths(
        self, training: Training, solutions: Sequence[RegularizationPathSolution]
    ) -> None:
        """Keep the regularisation paths of all machines, and what else `at` needs."""
        paths = [s.path for s in solutions]
        self._training_ = training
        self.path_: Any = paths[0] if len(paths) == 1 else paths
        self.path_rows_ = one_or_all([training.rows_of(m) for m in range(len(paths))])
        publish(self, solutions, loo_path_=lambda s: s.path.loo_bound)

    def _store_at(
        self, training: Training, paths: Sequence[RegularizationPath], Cs: Sequence[float]
    ) -> None:
        """Keep each machine at its C, and its norm and slacks there."""
        Cs = [min(C, float(path.C[-1])) for path, C in zip(paths, Cs, strict=True)]
        pairs = list(zip(paths, Cs, strict=True))
        self.C_ = one_or_all(Cs)
        self.weight_norm_ = one_or_all([float(np.sqrt(p.squared_norm_at(C))) for p, C in pairs])
        self.slack_sum_ = one_or_all([p.slack_sum_at(C) for p, C in pairs])
        machines = []
        for m, (path, C) in enumerate(pairs):
            alpha, intercept = path.at(C)
            support = np.flatnonzero(alpha)
            machines.append(
                Expansion(
                    rows=training.rows_of(m)[support].astype(np.int32),
                    coefficients=alpha[support] * path.labels[support],
                    intercept=intercept,
                )
            )
        self._store(training, machines)


@dataclass(frozen=True)
class MachinePaths:
    """Regularisation paths of one machine: on all its rows, and on those of every split.

    Attributes
    ----------
    whole : RegularizationPathSolution
        The regularisation path on all rows of the machine.
    parts : list of (RegularizationPath, bool array)
        One per split that has rows to train on and to score, with the rows that it scores.
    """

    whole: RegularizationPathSolution
    parts: list[tuple[RegularizationPath, NDArray[np.bool_]]]


def memory_of_path(training: Training, limit: int) -> int:
    """Return the most bytes that a regularisation path needs; an error if they exceed the limit."""
    n_rows = max(len(training.rows_of(m)) for m in range(len(training.machines)))
    needed = MATRICES * 8 * n_rows**2
    if needed > limit:
        raise ValueError(
            f"The regularisation path of {n_rows:,} rows needs up to {needed / 1e9:.3g} GB, and "
            f"memory_limit allows {limit / 1e9:.3g} GB; raise memory_limit, or train on fewer "
            "rows. GreedySVC and CoreVectorSVC need less."
        )
    return needed


def follow_paths(
    classifier: RegularizationPathClassifier,
    training: Training,
    options: Sequence[RegularizationPathOptions],
    monitor: Monitor,
    folds: Folds | None = None,
) -> list[MachinePaths]:
    """Follow the regularisation paths of all machines, on all rows and on those of every split.

    Parameters
    ----------
    classifier : RegularizationPathClassifier
        Its memory limit and threads apply, and whether it has a bias.
    training : Training
        The problem.
    options : sequence of RegularizationPathOptions
        Options of the solver, one per machine.
    monitor : Monitor
        The clock of the fit.
    folds : Folds, optional
        The splits.
    """
    # Here for all machines, as the matrix of the last may be evaluated after hours of training.
    check_diagonal(training.kernel, training.X, training.codes >= 0)
    if training.kernel.name == "precomputed":
        _check_symmetry(training.X)
    limit = memory_bytes(classifier.memory_limit)
    needed = memory_of_path(training, limit)
    n_machines, n_threads = len(training.machines), effective_n_jobs(classifier.n_jobs)

    def follow(machine: int, monitor: Monitor) -> MachinePaths:
        n_jobs = classifier.n_jobs if n_machines == 1 else 1
        kernel = _machine_kernel(training, machine, classifier.fit_intercept, n_jobs, monitor)
        problems, scored = _problems(training, machine, folds, kernel)

        def follow_one(task: int, monitor: Monitor) -> RegularizationPathSolution:
            how = replace(options[machine], keep_multipliers=task == 0)
            return regularization_path.solve(problems[task], how, monitor)[0]

        if n_machines == 1:  # threads over the splits, which share the kernel
            part = monitor.part("C", n_machines=len(problems))
            whole, *parts = part.each(follow_one, len(problems), n_threads)
        else:
            whole, *parts = [follow_one(task, monitor) for task in range(len(problems))]
        return MachinePaths(whole, [(s.path, of_s) for s, of_s in zip(parts, scored, strict=True)])

    if n_machines == 1:
        return [follow(0, monitor)]
    at_once = tasks_at_once(n_threads, n_machines, needed, limit)
    return monitor.part("C", n_machines=n_machines).each(follow, n_machines, at_once)


def _machine_kernel(
    training: Training, machine: int, has_bias: bool, n_jobs: int | None, monitor: Monitor
) -> ScaledKernel:
    """Make the kernel of a machine; without time, the regularisation path will end at C = 0."""
    rows = training.rows_of(machine)
    matrix = kernel_matrix(
        training.kernel,
        training.X,
        None if len(rows) == training.X.shape[0] else rows,
        dtype="float64",  # rounded to float32 it would not be positive semi-definite
        memory_bytes=2**63,
        n_jobs=n_jobs,
        monitor=monitor,
    )
    copies = None if training.weights is None else training.weights[rows]
    try:
        if isinstance(matrix, StoredMatrix):
            return ScaledKernel.of(matrix.values, copies, has_bias=has_bias, monitor=monitor)
    except Stopped:
        pass
    return ScaledKernel.unknown(len(rows), has_bias=has_bias)


def _problems(
    training: Training, machine: int, folds: Folds | None, kernel: ScaledKernel
) -> tuple[list[Problem[ScaledKernel]], list[NDArray[np.bool_]]]:
    """Make a problem of all rows of a machine, and one of the training part of each split.

    Also return the rows that each split scores. Splits that leave nothing to train on or to score
    are omitted.
    """
    rows = training.rows_of(machine)
    labels, weights = training.labels_of(machine)[rows], training.row_weights()[rows]
    problems, scored = [Problem.two_class(kernel, labels, weights)], []
    splits = [] if folds is None else zip(folds.train, folds.test, strict=True)
    for train, test in splits:
        of_split = np.where(train[rows], labels, 0.0)
        if test[rows].any() and (of_split > 0).any() and (of_split < 0).any():
            problems.append(Problem.two_class(kernel, of_split, weights))
            scored.append(test[rows])
    return problems, scored


def warn_of_paths(machines: Sequence[MachinePaths]) -> None:
    """Warn about regularisation paths that ended early, and about inaccurate margins."""
    whole = [machine.whole.path for machine in machines]
    of_splits = [path for machine in machines for path, _ in machine.parts]
    for reason, advice in (
        ("max_stages", "raise max_stages, or lower C_max"),
        ("max_time", "raise max_time, or lower C_max"),
        (
            "stalled",
            "rounding allows no further step, or the kernel is not positive semi-definite; scale "
            "the features, lower C_max, or use another kernel",
        ),
    ):
        ends = [path.C[-1] for path in whole if path.stop_reason == reason]
        which = "A regularisation path"
        if not ends:
            ends = [path.C[-1] for path in of_splits if path.stop_reason == reason]
            which = "The regularisation path of a split, which chooses C,"
        if ends:
            name = "early" if reason == "stalled" else f"at {reason}"
            if min(ends) == 0 and reason != "stalled":
                advice = f"the SVM there always predicts the same class, so raise {reason}"
            warn_caller(f"{which} stopped {name}, at C = {min(ends):.3g}; {advice}.")
    finished = [path for path in whole + of_splits if path.stop_reason != "stalled"]
    worst = max((path.violation for path in finished), default=0.0)
    if worst > MAX_CERTIFICATE:
        warn_caller(
            f"Because of rounding, margins along a regularisation path are up to {worst:.2g} from "
            "the optimum; lower C_max, use a narrower kernel, or make the weights more equal."
        )


def _check_symmetry(K: FloatArray) -> None:
    difference = float(np.abs(K - K.T).max())
    if difference > 1e-6 * float(np.abs(K).max()):
        raise ValueError(
            "With kernel='precomputed', X must be symmetric, but it differs from its transpose by "
            f"up to {difference:.2g}."
        )
