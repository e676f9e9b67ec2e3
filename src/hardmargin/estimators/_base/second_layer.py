"""Classifiers that combine the machines of an ensemble: the second layers of MCS-06."""

from __future__ import annotations

import threading
import warnings
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone, is_classifier
from sklearn.utils.validation import check_is_fitted, validate_data

from hardmargin.estimators._base.soft_margin import SoftMarginSVC
from hardmargin.estimators.core_vector import CoreVectorSVC
from hardmargin.kernels import FloatArray, resolve_gamma

#: What the named second layers provide besides ``predict``.
RESPONSES = {
    "svm": "decision_function",
    "mlp": "predict_proba",
    "cvm": "decision_function",
    "vote": "decision_function",
}

#: Units of the network's hidden layer, as in the paper.
HIDDEN_UNITS = 10


def shifts_and_scales(
    final_estimator: Any, Z: FloatArray, sample_weight: FloatArray | None = None
) -> tuple[FloatArray, FloatArray]:
    """Return what to subtract from the projections for a second layer, and what to divide them by.

    Projections onto different machines differ widely in scale, and the largest need not be the most
    informative: they are divided by their standard deviations. The network sees them centred as
    well; otherwise its units may never be active, as machines of one class against all others have
    mostly negative projections. The means do not matter to the other layers, whose kernels see only
    differences. ``"vote"`` and classifiers given as objects get the projections as they are.

    Parameters
    ----------
    final_estimator : {"svm", "mlp", "cvm", "vote"} or classifier
        The second layer.
    Z : (n_samples, n_machines) array
        Projections.
    sample_weight : (n_samples,) array, optional
        Weights of the rows.

    Returns
    -------
    shifts, scales : (n_machines,) arrays
    """
    nothing = np.zeros(Z.shape[1])
    if not isinstance(final_estimator, str) or final_estimator == "vote":
        return nothing, np.ones(Z.shape[1])
    mean = np.average(Z, axis=0, weights=sample_weight)
    deviations = np.sqrt(np.average((Z - mean) ** 2, axis=0, weights=sample_weight))
    scales = np.where(deviations > 0, deviations, 1.0)
    return mean if final_estimator == "mlp" else nothing, scales


def second_layer(
    final_estimator: Any,
    Z: FloatArray | None = None,
    *,
    sample_weight: FloatArray | None = None,
    machine_classes: NDArray[Any] | None = None,
    intercepts: FloatArray | None = None,
    memory_limit: str | float | None = None,
    n_jobs: int | None = None,
    max_time: float | None = None,
    random_state: int | None = None,
) -> Any:
    """Make a second layer, not yet fitted.

    Parameters
    ----------
    final_estimator : {"svm", "mlp", "cvm", "vote"} or classifier
        ``"svm"`` is a `SoftMarginSVC` with C = 1 and 1 / gamma the mean squared distance between
        rows of Z, ``"mlp"`` a network with ten hidden units, ``"cvm"`` `CoreVectorSVC` with the C
        and the gamma of ``"svm"``, ``"vote"`` a `MachineVote`; a classifier is cloned.
    Z : (n_samples, n_machines) array, optional
        The rows it will be fitted to, which determine gamma.
    sample_weight : (n_samples,) array, optional
        Weights of these rows.
    machine_classes, intercepts : (n_machines,) arrays, optional
        For ``"vote"``, as in `MachineVote`.
    memory_limit, n_jobs, max_time, random_state
        Passed on to the named layers that have them.
    """
    if not isinstance(final_estimator, str):
        if not is_classifier(final_estimator):
            raise ValueError(
                f"final_estimator must be one of {sorted(RESPONSES)} or a classifier, got "
                f"{final_estimator!r}."
            )
        return clone(final_estimator)
    if final_estimator == "svm":
        layer = SoftMarginSVC(memory_limit=memory_limit, n_jobs=n_jobs, max_time=max_time)
        if Z is not None:
            layer.set_params(gamma=resolve_gamma("pairwise", Z, sample_weight=sample_weight))
        return layer
    if final_estimator == "mlp":
        # Imported here, as it is rarely needed and `import hardmargin` should be fast.
        from sklearn.neural_network import MLPClassifier

        # With this few units, the default learning rate would take very long.
        return MLPClassifier(
            (HIDDEN_UNITS,), learning_rate_init=0.01, max_iter=2_000, random_state=random_state
        )
    if final_estimator == "cvm":
        return CoreVectorSVC(
            memory_limit=memory_limit, n_jobs=n_jobs, max_time=max_time, random_state=random_state
        )
    if final_estimator == "vote":
        return MachineVote(machine_classes, intercepts)
    raise ValueError(
        f"final_estimator must be one of {sorted(RESPONSES)} or a classifier, got "
        f"{final_estimator!r}."
    )


def fit_second_layer(layer: Any, Z: FloatArray, y: NDArray[Any], **fit_params: Any) -> Any:
    """Fit a second layer such that Ctrl-C raises KeyboardInterrupt.

    On Ctrl-C, networks of scikit-learn only warn and return the model so far.
    """
    if threading.current_thread() is not threading.main_thread():
        return layer.fit(Z, y, **fit_params)  # only the main thread hears Ctrl-C
    interrupted = "Training interrupted by user"
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=interrupted)
        try:
            return layer.fit(Z, y, **fit_params)
        except UserWarning as warning:
            if interrupted in str(warning):
                raise KeyboardInterrupt from None
            raise


class MachineVote(ClassifierMixin, BaseEstimator):
    """Majority vote of one-vs-all machines, from their scores as features.

    The class with the largest share of votes from its own machines wins; two classes share their
    machines. Mean scores settle ties.

    Parameters
    ----------
    machine_classes : (n_machines,) array
        The class that each machine votes for if its feature is positive.
    intercepts : (n_machines,) array or None, default=None
        Added to the features before their signs are used.

    Attributes
    ----------
    classes_ : (n_classes,) array
        The labels.
    n_features_in_ : int
        Number of machines.

    Examples
    --------
    >>> from hardmargin.estimators._base.second_layer import MachineVote
    >>> scores = [[1.0, 2.0, -1.0, -1.0], [-3.0, 1.0, 0.5, 2.0]]
    >>> MachineVote(["a", "a", "b", "b"]).fit(scores, ["a", "b"]).predict(scores).tolist()
    ['a', 'b']
    """

    def __init__(self, machine_classes: Any, intercepts: Any = None) -> None:
        self.machine_classes = machine_classes
        self.intercepts = intercepts

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Store the labels; there is nothing else to learn.

        Parameters
        ----------
        X : (n_samples, n_machines) array
            Scores of the machines.
        y : (n_samples,) array
            Labels.
        sample_weight : (n_samples,) array, optional
            Has no effect.

        Returns
        -------
        self
        """
        X, y = validate_data(self, X, y)
        self.classes_ = np.unique(y)
        return self

    def decision_function(self, X: Any) -> FloatArray:
        """Shares of the votes.

        For two classes: the share for ``classes_[1]`` minus the share against it. A term that is
        smaller than any difference between shares settles ties.

        Returns
        -------
        (n_samples,) array, or (n_samples, n_classes) for more than two classes
        """
        check_is_fitted(self)
        scores = np.array(validate_data(self, X, reset=False), dtype=np.float64)
        if self.intercepts is not None:
            scores += self.intercepts
        machine_classes = np.asarray(self.machine_classes)
        of_class = [machine_classes == c for c in self.classes_]
        # Shares of n and of m machines differ by at least 1 / (n m).
        least = 1.0 / max(int(mine.sum()) for mine in of_class) ** 2
        if len(self.classes_) == 2:
            # A score of zero is a vote for classes_[1], as with every two-class machine.
            scores = scores[:, of_class[1]]
            shares: FloatArray = (scores >= 0).mean(axis=1)
            return 2.0 * shares - 1.0 + least * _squeezed_means(scores)
        return np.column_stack(
            [
                (scores[:, mine] > 0).mean(axis=1) + least * _squeezed_means(scores[:, mine])
                for mine in of_class
            ]
        )

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the class with the largest share.

        Returns
        -------
        (n_samples,) array
        """
        votes = self.decision_function(X)
        winners = (votes >= 0).astype(np.intp) if votes.ndim == 1 else votes.argmax(axis=1)
        predicted: NDArray[Any] = self.classes_[winners]
        return predicted


def _squeezed_means(scores: FloatArray) -> FloatArray:
    """Mean scores, squeezed into (-1/3, 1/3)."""
    means = scores.mean(axis=1)
    squeezed: FloatArray = means / (3.0 * (1.0 + np.abs(means)))
    return squeezed
