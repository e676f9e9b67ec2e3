"""The base machines of MCS-06 and the classifiers above them, as the parts of the paper use them.

For each class some base machines are trained against all other classes, and a second classifier is
trained on their outputs. The base machines are one of

- ``core``, the paper's orthogonal CVM: `MarginDiscriminantAnalysis` by core sets;
- ``lagrangian``, its orthogonal SVM: the same machines by the published fixed point;
- ``newton``: the same optimum by Newton steps, which the paper does not have;
- ``bagged``: scikit-learn's ``SVC`` on bootstraps of the rows (``BaggingClassifier``),

and the second classifier is ``svm`` (``SVC``), ``mlp`` (10 hidden units, on centred inputs),
``cvm`` (`CoreVectorSVC`) or ``vote``.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, replace
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from hardmargin import MarginDiscriminantAnalysis
from hardmargin.estimators._base.second_layer import (
    fit_second_layer,
    second_layer,
    shifts_and_scales,
)
from hardmargin.reproduction.limits import within
from hardmargin.reproduction.mcs06.bagged import BaggedSVC, hard_labels
from hardmargin.reproduction.parts import CutError
from hardmargin.reproduction.sources import Split

__all__ = ["Machines", "error_above", "error_without_machines", "noisy", "train_machines"]

FloatArray: TypeAlias = NDArray[np.float64]

#: Memory for core sets, so that mnist stays below 6 GB in all.
CORE_MEMORY = "4GB"


@dataclass(frozen=True)
class Machines:
    """Trained base machines.

    Parameters
    ----------
    train, test : (n_rows, n_machines) arrays
        Their outputs for the rows.
    intercepts : (n_machines,) array
        Added before the sign is taken.
    classes : (n_machines,) array
        The class that each separates from the others.
    n_support : (n_machines,) array
        Rows with a coefficient.
    n_evaluations : float or None
        Kernel values evaluated in training, mean of all machines; None if they were not counted.
    seconds : float
        Processor seconds of training them all.
    """

    train: FloatArray
    test: FloatArray
    intercepts: FloatArray
    classes: NDArray[Any]
    n_support: NDArray[Any]
    n_evaluations: float | None
    seconds: float

    def labels(self) -> Self:
        """Replace the outputs by the labels that they predict, -1 and 1.

        Returns
        -------
        Machines
        """
        train, test = (hard_labels(scores + self.intercepts) for scores in (self.train, self.test))
        return replace(self, train=train, test=test, intercepts=np.zeros_like(self.intercepts))

    def first(self, size: int) -> Self:
        """Keep the first machines of every class; evaluations and time still cover all.

        Parameters
        ----------
        size : int
            How many per class.

        Returns
        -------
        Machines
        """
        earlier = [int((self.classes[:j] == c).sum()) for j, c in enumerate(self.classes)]
        kept = np.array(earlier) < size
        return replace(
            self,
            train=self.train[:, kept],
            test=self.test[:, kept],
            intercepts=self.intercepts[kept],
            classes=self.classes[kept],
            n_support=self.n_support[kept],
        )


def train_machines(base: str, split: Split, size: int, *, cut: float | None = None) -> Machines:
    """Train base machines for every class.

    Parameters
    ----------
    base : {"lagrangian", "newton", "core", "bagged"}
        Which; bagged machines give their decision values.
    split : tuple
        ``X_train, y_train, X_test, y_test``, scaled.
    size : int
        Machines per class. The first ones are the same for every size.
    cut : float or None, default=None
        Wall-clock seconds after which to give up.

    Returns
    -------
    Machines

    Raises
    ------
    CutError
        If it took longer than `cut`, or more memory than there is.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> train_machines("core", (X, y, X[:9], y[:9]), 2).test.shape
    (9, 6)
    """
    if base == "bagged":
        return within(cut, _bagged, split, size)
    X_train, y_train, X_test, _ = split
    model = MarginDiscriminantAnalysis(
        size, C=1.0, gamma="pairwise", max_time=cut, random_state=0
    ).set_params(solver=base, memory_limit=CORE_MEMORY if base == "core" else None)
    model.set_output(transform="default")
    start = time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(X_train, y_train)
    except MemoryError as error:
        raise CutError("more memory than there is") from error
    except ValueError as error:
        # The dense solvers refuse rows whose kernel matrix is too large.
        if "memory_limit" in str(error):
            raise CutError(str(error)) from error
        raise
    seconds = time.process_time() - start
    if "max_time" in model.stop_reason_:
        raise CutError(f"longer than {cut:g} s")
    return Machines(
        train=model.transform(X_train),
        test=model.transform(X_test),
        intercepts=model.intercepts_,
        classes=model.direction_classes_,
        n_support=np.count_nonzero(model.directions_, axis=1),
        n_evaluations=float(model.n_kernel_evaluations_.mean()),
        seconds=seconds,
    )


def _bagged(split: Split, size: int) -> Machines:
    X_train, y_train, X_test, _ = split
    start = time.process_time()
    model = BaggedSVC(size, outputs="scores", random_state=0).fit_machines(X_train, y_train)
    seconds = time.process_time() - start
    supports = [m.support_ for bag in model.estimators_ for m in bag.estimators_]
    return Machines(
        train=model.transform(X_train),
        test=model.transform(X_test),
        intercepts=np.zeros(len(supports)),
        classes=model.machine_classes_,
        n_support=np.array([len(rows) for rows in supports]),
        n_evaluations=None,
        seconds=seconds,
    )


def error_above(final: str, machines: Machines, split: Split, seed: int = 0) -> float:
    """Train a second classifier on the outputs of base machines, and test it.

    Parameters
    ----------
    final : {"svm", "mlp", "cvm", "vote"}
        Which.
    machines : Machines
        The base machines.
    split : tuple
        ``X_train, y_train, X_test, y_test``.
    seed : int, default=0
        Seed of the second classifier.

    Returns
    -------
    float
        Test error in percent.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> split = X, y, X, y
    >>> error_above("svm", train_machines("core", split, 2), split) < 5
    True
    """
    shifts, by = shifts_and_scales(final, machines.train)
    train, test = (machines.train - shifts) / by, (machines.test - shifts) / by
    layer = second_layer(
        final,
        train,
        machine_classes=machines.classes,
        intercepts=machines.intercepts,
        random_state=seed,
    )
    return _error_of(layer, train, test, split)


def _error_of(layer: Any, train: Any, test: Any, split: Split) -> float:
    with warnings.catch_warnings():
        # The network need not converge within its epochs.
        warnings.simplefilter("ignore", ConvergenceWarning)
        fit_second_layer(layer, train, split[1])
    return _error(layer.predict(test), split[3])


def error_without_machines(
    final: str, split: Split, cut: float | None = None, seed: int = 0
) -> float:
    """Train a second classifier on the features themselves, and test it.

    Parameters
    ----------
    final : {"svm", "mlp", "cvm"}
        Which.
    split : tuple
        ``X_train, y_train, X_test, y_test``, scaled.
    cut : float or None, default=None
        Wall-clock seconds after which to give up.
    seed : int, default=0
        Seed of the classifier.

    Returns
    -------
    float
        Test error in percent.

    Raises
    ------
    CutError
        If it took longer than `cut`.
    """
    return within(cut, _error_without_machines, final, split, seed)


def _error_without_machines(final: str, split: Split, seed: int) -> float:
    X_train, _, X_test, _ = split
    if final == "mlp":  # standardised features are centred already; pixels are not
        mean = X_train.mean(axis=0)
        X_train, X_test = X_train - mean, X_test - mean
    layer = second_layer(final, X_train, random_state=seed)
    return _error_of(layer, X_train, X_test, split)


def _error(predicted: Any, y: Any) -> float:
    return 100.0 * float((predicted != y).mean())


def noisy(split: Split, sigma: float) -> Split:
    """Add Gaussian noise to the features of training and test rows.

    Parameters
    ----------
    split : tuple
        ``X_train, y_train, X_test, y_test``.
    sigma : float
        Standard deviation, which scales one and the same draw.

    Returns
    -------
    tuple
        The noisy split.

    Examples
    --------
    >>> import numpy as np
    >>> X, y = np.zeros((2, 2)), np.array([0, 1])
    >>> noisy((X, y, X, y), 0.0)[0].tolist()
    [[0.0, 0.0], [0.0, 0.0]]
    """
    X_train, y_train, X_test, y_test = split
    rng = np.random.default_rng(0)
    train = X_train + sigma * rng.standard_normal(X_train.shape)
    test = X_test + sigma * rng.standard_normal(X_test.shape)
    return train, y_train, test, y_test
