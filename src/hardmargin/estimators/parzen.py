"""The Parzen window classifier."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from hardmargin.estimators._base.classifier import KernelClassifier
from hardmargin.kernels import KernelFunction
from hardmargin.kernels.diagonal import check_diagonal
from hardmargin.kernels.kernel import in_precision
from hardmargin.solvers.problem import Expansion


class ParzenClassifier(KernelClassifier):
    """Parzen window: the class whose rows have the larger sum of kernel values.

    Every row has the same multiplier. This is the first plane of the path that ends at the
    hard-margin SVM (`RhoSVC`), and whose planes vote in `RhoEnsembleSVC`. There is nothing to
    train: it is the baseline of IJCAI-07 [1]_.

    Parameters
    ----------
    gamma : float or {"scale", "spread", "pairwise"}, default="spread"
        Width of the kernel: ``"spread"``, the paper's, is 1 / mean squared distance to the mean,
        ``"scale"`` scikit-learn's, ``"pairwise"`` 1 / mean squared distance between rows.
    kernel : {"rbf", "laplacian", "matern32", "matern52", "linear", "cosine", "poly", \
"sigmoid", "precomputed"} or callable, default="rbf"
        The kernel.
    degree : float, default=3
        Degree of the ``"poly"`` kernel.
    coef0 : float, default=0.0
        Constant in the ``"poly"`` and ``"sigmoid"`` kernels.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, which multiply the sample weights. ``"balanced"`` compares mean
        kernel values instead of sums.
    multi_class : {"ovo", "ovr"}, default="ovo"
        One machine per pair of classes, or one per class against the rest; the second also where
        `max_time` is below 0.1 ms per pair, with a warning.
    dtype : {"auto", "float32", "float64"}, default="auto"
        Precision of kernel values. ``"auto"`` is float64 up to 5,000 rows and float32 above.
    memory_limit : str, number or None, default=None
        Memory limit of a prediction, such as ``"2GB"`` or a number of bytes; None is half the free
        memory.
    n_jobs : int or None, default=None
        Number of threads, over rows in ``predict``.
    max_time : float or None, default=None
        Has no effect, as there is nothing to train; all estimators accept it.
    verbose : int, default=0
        Has no effect, as there is nothing to train; all estimators accept it.
    random_state : int, RandomState instance or None, default=None
        Has no effect, as nothing is random; all estimators accept it.

    Attributes
    ----------
    classes_ : (n_classes,) array
        The labels.
    support_ : (n_support,) array
        All rows of positive weight.
    support_vectors_ : (n_support, n_features) array or CSR matrix
        Those rows; empty for a precomputed kernel.
    n_support_ : (n_classes,) array
        Rows of each class.
    dual_coef_ : (n_machines, n_support) array, or CSR array for many classes
        Multiplier times label; the multipliers of a machine add up to one.
    intercept_ : (n_machines,) array
        Zeros.
    coef_ : (n_machines, n_features) array
        Weights of the features, for the linear kernel only.
    gamma_ : float
        The kernel's gamma as a number.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : array
        Names of the features, if X has them.

    References
    ----------
    .. [1] I. W. Tsang and J. T. Kwok, "Ensembles of Partially Trained SVMs with Multiplicative
       Updates", IJCAI 2007.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from hardmargin import ParzenClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> round(ParzenClassifier().fit(X, y).score(X, y), 3)
    0.933
    """

    _seconds_of_machine = 0.0001

    def __init__(
        self,
        gamma: float | str = "spread",
        *,
        kernel: str | KernelFunction = "rbf",
        degree: float = 3,
        coef0: float = 0.0,
        class_weight: dict[Any, float] | str | None = None,
        multi_class: str = "ovo",
        dtype: str = "auto",
        memory_limit: str | float | None = None,
        n_jobs: int | None = None,
        max_time: float | None = None,
        verbose: int = 0,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.gamma = gamma
        self.kernel = kernel
        self.degree = degree
        self.coef0 = coef0
        self.class_weight = class_weight
        self.multi_class = multi_class
        self.dtype = dtype
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.max_time = max_time
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train on rows X with labels y.

        Parameters
        ----------
        X : (n_samples, n_features) array or sparse matrix
            Training rows; for ``kernel="precomputed"`` the (n_samples, n_samples) kernel matrix.
        y : (n_samples,) array
            Labels: strings, integers, booleans or categories.
        sample_weight : (n_samples,) array, optional
            Row weights: a weight of two counts the row twice, a weight of zero leaves it out.

        Returns
        -------
        self
        """
        with self._fitting():
            training = self._training(self._check_training(X, y, sample_weight))
            diagonal = check_diagonal(training.kernel, training.X, training.codes >= 0)
            if diagonal is not None and training.kernel.name == "poly":
                in_precision(diagonal, training.dtype)  # predictions would overflow
            weights = training.row_weights()
            machines = []
            for m in range(len(training.machines)):
                labels = training.labels_of(m)
                rows = np.flatnonzero(labels)
                shares = weights[rows] / weights[rows].sum()
                machines.append(
                    Expansion(rows=rows.astype(np.int32), coefficients=labels[rows] * shares)
                )
            self._store(training, machines)
        return self
