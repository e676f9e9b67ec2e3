"""Bagged SVMs under the second layers of the diversified ensemble: the baseline of MCS-06."""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import BaggingClassifier
from sklearn.svm import SVC
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from hardmargin.estimators._base.second_layer import (
    fit_second_layer,
    second_layer,
    shifts_and_scales,
)
from hardmargin.kernels import FloatArray, canonical, resolve_gamma


class BaggedSVC(ClassifierMixin, BaseEstimator):
    """SVMs on bootstrap samples, one class against the rest, and a classifier on their outputs.

    Parameters
    ----------
    n_bags : int, default=3
        Machines per class (two classes share theirs), each on its own sample of the rows.
    final_estimator : {"svm", "mlp", "cvm", "vote"} or classifier, default="svm"
        The second layer, as in `DiversifiedSVC`; it is trained in sample.
    outputs : {"labels", "scores"}, default="labels"
        What the machines give to the second layer: their predicted labels as -1 and 1, which
        comes closest to the paper's numbers, or their decision values.
    C : float, default=1.0
        Weight of the slacks of every machine.
    gamma : float or {"scale", "spread", "pairwise"}, default="pairwise"
        Width of the machines' RBF kernel, computed from all rows.
    n_jobs : int or None, default=None
        Number of processes, over machines.
    random_state : int, RandomState instance or None, default=None
        Draws the samples.

    Attributes
    ----------
    classes_ : (n_classes,) array
        The labels.
    estimators_ : list of BaggingClassifier
        The machines of each class.
    machine_classes_ : (n_machines,) array
        The class of each machine.
    final_estimator_ : classifier
        The second layer.
    gamma_ : float
        The kernel's gamma as a number.
    n_features_in_ : int
        Number of features.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from hardmargin.reproduction.mcs06.bagged import BaggedSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> BaggedSVC(random_state=0).fit(X, y).transform(X).shape
    (150, 9)
    """

    def __init__(
        self,
        n_bags: int = 3,
        *,
        final_estimator: Any = "svm",
        outputs: Literal["labels", "scores"] = "labels",
        C: float = 1.0,
        gamma: float | str = "pairwise",
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_bags = n_bags
        self.final_estimator = final_estimator
        self.outputs = outputs
        self.C = C
        self.gamma = gamma
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Train both layers.

        Parameters
        ----------
        X : (n_samples, n_features) array or sparse matrix
            Training rows.
        y : (n_samples,) array
            Labels: strings, integers, booleans or categories.

        Returns
        -------
        self
        """
        self.fit_machines(X, y)
        Z = self.transform(X)
        self._shifts_, self._scales_ = shifts_and_scales(self.final_estimator, Z)
        Z = (Z - self._shifts_) / self._scales_
        layer = second_layer(
            self.final_estimator, Z, machine_classes=self.machine_classes_, random_state=0
        )
        self.final_estimator_ = fit_second_layer(layer, Z, y)
        return self

    def fit_machines(self, X: Any, y: Any) -> Self:
        """Train the first layer alone.

        Parameters
        ----------
        X, y
            As for ``fit``.

        Returns
        -------
        self
        """
        X, y = validate_data(self, X, y, accept_sparse="csr")
        check_classification_targets(y)
        self.classes_ = np.unique(y)
        self.gamma_ = resolve_gamma(self.gamma, canonical(X))
        random = check_random_state(self.random_state)
        against_rest = self.classes_[1:] if len(self.classes_) == 2 else self.classes_
        self.machine_classes_ = np.repeat(against_rest, self.n_bags)
        self.estimators_ = [
            BaggingClassifier(
                SVC(C=self.C, gamma=self.gamma_),
                self.n_bags,
                n_jobs=self.n_jobs,
                random_state=random.randint(2**31 - 1),
            ).fit(X, y == label)
            for label in against_rest
        ]
        return self

    def transform(self, X: Any) -> FloatArray:
        """Return the outputs of all machines, which the second layer sees.

        Parameters
        ----------
        X : (n_samples, n_features) array or sparse matrix
            Rows.

        Returns
        -------
        (n_samples, n_machines) array
        """
        check_is_fitted(self, "estimators_")
        X = validate_data(self, X, reset=False, accept_sparse="csr")
        machines = [machine for bag in self.estimators_ for machine in bag.estimators_]
        scores = np.column_stack([machine.decision_function(X) for machine in machines])
        return scores if self.outputs == "scores" else hard_labels(scores)

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the class of every row.

        Parameters
        ----------
        X : (n_samples, n_features) array or sparse matrix
            Rows.

        Returns
        -------
        (n_samples,) array
        """
        Z = (self.transform(X) - self._shifts_) / self._scales_
        predicted: NDArray[Any] = self.final_estimator_.predict(Z)
        return predicted


def hard_labels(scores: FloatArray) -> FloatArray:
    """Give the labels that SVMs predict.

    Parameters
    ----------
    scores : array
        Their decision values.

    Returns
    -------
    array
        1 where they are positive and -1 elsewhere, as scikit-learn's SVC has it.

    Examples
    --------
    >>> import numpy as np
    >>> hard_labels(np.array([0.3, -2.0])).tolist()
    [1.0, -1.0]
    """
    return np.where(scores > 0, 1.0, -1.0)
