"""The C-SVM that combines the machines of an ensemble."""

from __future__ import annotations

from dataclasses import replace
from numbers import Real
from typing import Any, ClassVar, Self

from joblib import effective_n_jobs
from sklearn.utils._param_validation import Interval

from hardmargin.estimators._base.classifier import KernelClassifier
from hardmargin.estimators._base.estimator import publish
from hardmargin.resources import memory_bytes
from hardmargin.solvers import soft_margin
from hardmargin.solvers.soft_margin import SoftMarginOptions
from hardmargin.warn import warn_caller


class SoftMarginSVC(KernelClassifier):
    """The SVM of scikit-learn's ``SVC``, within limits on time and memory.

    It is the ``"svm"`` of `DiversifiedSVC`, and has the same multipliers as ``SVC`` up to `tol`.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the slacks.
    gamma : float or {"scale", "spread", "pairwise"}, default="scale"
        Width of the RBF kernel.
    tol : float, default=1e-3
        Training ends when margins violate the optimality conditions by at most this.
    dtype : {"auto", "float32", "float64"}, default="auto"
        Precision of kernel values.
    memory_limit : str, number or None, default=None
        Memory limit of a fit.
    n_jobs : int or None, default=None
        Number of threads, over pairs of classes.
    max_time : float or None, default=None
        Seconds after which ``fit`` returns the model so far, with a warning.

    Attributes
    ----------
    certificate_ : float or array
        By how much margins violate the optimality conditions.
    n_iter_ : int or array
        Number of steps.
    stop_reason_ : str or array
        ``"converged"``, ``"max_stages"`` or ``"max_time"``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from hardmargin.estimators._base.soft_margin import SoftMarginSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> SoftMarginSVC().fit(X, y).score(X, y) > 0.95
    True
    """

    _seconds_of_machine = 0.0001

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **KernelClassifier._parameter_constraints,
        "C": [Interval(Real, 0, None, closed="neither")],
        "tol": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        C: float = 1.0,
        *,
        gamma: float | str = "scale",
        tol: float = 1e-3,
        dtype: str = "auto",
        memory_limit: str | float | None = None,
        n_jobs: int | None = None,
        max_time: float | None = None,
    ) -> None:
        super().__init__(
            gamma, dtype=dtype, memory_limit=memory_limit, n_jobs=n_jobs, max_time=max_time
        )
        self.C = C
        self.tol = tol

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train on rows X with labels y.

        Parameters
        ----------
        X : (n_samples, n_features) array or sparse matrix
            Training rows.
        y : (n_samples,) array
            Labels.
        sample_weight : (n_samples,) array, optional
            Row weights, which multiply C.

        Returns
        -------
        self
        """
        with self._fitting() as monitor:
            training = self._training(self._check_training(X, y, sample_weight))
            options = SoftMarginOptions(
                C=self.C,
                tol=self.tol,
                memory_bytes=memory_bytes(self.memory_limit),
                n_threads=effective_n_jobs(self.n_jobs),
            )
            weighted = replace(training, weights=training.row_weights())
            part = monitor.part("violation", n_machines=len(training.machines))
            solutions = soft_margin.solve(weighted, options, part)
            reasons = {s.stop_reason for s in solutions}
            if "max_stages" in reasons:
                warn_caller(
                    "The SVM of the second layer has not converged, perhaps because some weights "
                    "are many times as large as others; make them more equal."
                )
            if "max_time" in reasons:
                warn_caller("The SVM of the second layer stopped at max_time; raise it.")
            publish(self, solutions)
            self._store(training, solutions)
        return self
