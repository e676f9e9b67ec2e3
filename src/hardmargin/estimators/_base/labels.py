"""Labels and weights: which are refused, and how rows are numbered by them."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight

from hardmargin.estimators._base.columns import is_missing
from hardmargin.kernels import FloatArray, Rows
from hardmargin.selection.rows import TrainingRows
from hardmargin.selection.weights import moderate
from hardmargin.warn import warn_caller

#: What to use for quantities instead.
REGRESSORS = "a regressor, such as scikit-learn's SVR or HistGradientBoostingRegressor"

#: Up to this many numbers are taken for classes, unless most rows have a number of their own.
MANY_NUMBERS = 30

#: More numbers than this, with gaps between them, are hardly classes.
TOO_MANY_NUMBERS = 200

#: Fewer of them are taken for quantities if this share occurs in a single row each.
SHARE_ONCE = 0.1

#: In fewer rows, anything may be a class.
LEAST_ROWS = 20

#: Types of booleans.
BOOLEANS = {bool, np.bool_}


class _Classifier(Protocol):
    """What predicts labels."""

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the class of every row."""


# A method of the classifiers that name it in their body.
def score(self: _Classifier, X: Any, y: Any, sample_weight: Any = None) -> float:
    """Share of rows whose class is predicted.

    Parameters
    ----------
    X : (n_samples, n_features) array, data frame or sparse matrix
        Rows.
    y : (n_samples,) array
        Their labels.
    sample_weight : (n_samples,) array, optional
        Row weights.

    Returns
    -------
    float
    """
    return float(ClassifierMixin.score(self, X, plain_labels(y), sample_weight))


def plain_labels(y: Any) -> Any:
    """Return labels that are booleans kept as objects as booleans, and others as they are."""
    if str(getattr(y, "dtype", "")).lower() != "object":  # of NumPy, pandas or polars
        return y
    labels = np.asarray(y)
    are_booleans = labels.size > 0 and set(map(type, labels.ravel().tolist())) <= BOOLEANS
    return labels.astype(bool) if are_booleans else y


def refuse_missing_labels(y: Any) -> None:
    """Refuse labels that are None, NaN, or one of pandas' missing values."""
    given = np.asarray(y, dtype=object if isinstance(y, list | tuple) else None)
    if given.ndim == 0 or given.size != len(given):
        return  # validation explains it better
    if given.dtype == object:
        rows = [row for row, label in enumerate(given.ravel()) if is_missing(label)]
    else:
        rows = np.flatnonzero(given != given).tolist()  # NaN, also of dates
    if rows:
        raise ValueError(
            f"y has no label in {len(rows):,} of {len(given):,} rows, the first of them row "
            f"{rows[0]:,}; drop these rows."
        ) from None


def refuse_mixed_labels(y: Any) -> None:
    """Refuse labels kept as objects that are neither all strings nor all booleans."""
    if isinstance(y, list | tuple) or str(getattr(y, "dtype", "")).lower() != "object":
        return
    kinds = sorted({type(label).__name__ for label in np.asarray(y).ravel().tolist()})
    if kinds in ([], ["str"], ["bool"]):
        return
    cures = {"int": "y.astype(int)", "bytes": "[label.decode() for label in y]"}
    labels = cures.get(" ".join(kinds), "[str(label) for label in y]")
    raise ValueError(
        f"Unknown label type: y keeps labels of type {' and '.join(kinds)} as objects; pass "
        f"{labels}."
    ) from None


def check_label_type(y: NDArray[Any]) -> None:
    """Refuse labels that are no classes, as scikit-learn does.

    They are shown to it twice, so that it does not warn of many labels as well.
    """
    check_classification_targets(np.tile(y, 2))


def check_weights(X: Rows, sample_weight: Any) -> FloatArray:
    """Validate sample weights, and scale extreme ones so that they can be added up."""
    try:
        with np.errstate(over="ignore"):
            weights: FloatArray = _check_sample_weight(
                sample_weight, X, dtype=np.float64, ensure_non_negative=True
            )
    except (TypeError, ValueError) as error:
        if "weight" not in str(error):
            raise type(error)(f"sample_weight must have numbers: {error}") from None
        raise
    return moderate(weights)


def labelled(
    X: Rows, labels: NDArray[Any], codes: NDArray[Any], sample_weight: Any, estimator: str
) -> TrainingRows:
    """Validate weights, and number the classes that have rows of positive weight.

    Parameters
    ----------
    X : rows or RowBlocks
        Validated.
    labels : (n_labels,) array
        All labels, ascending.
    codes : (n,) int array
        Which of them every row has.
    sample_weight : (n,) array or None
        Weights of the rows.
    estimator : str
        Who needs two classes.
    """
    weights = None if sample_weight is None else check_weights(X, sample_weight)
    is_used = np.zeros(len(labels), dtype=bool)
    is_used[codes if weights is None else codes[weights > 0]] = True
    classes = labels[is_used]
    if len(classes) < 2:
        found = "no class" if len(classes) == 0 else f"only one class ({classes[0]})"
        raise ValueError(
            f"{estimator} needs rows of positive weight from at least two classes; y has {found}."
        )
    codes = (np.cumsum(is_used) - 1)[codes].astype(np.int32)
    if weights is not None:
        codes[weights == 0] = -1
    warn_of_quantities(classes, codes)
    return TrainingRows(X, codes, classes, None).with_weights(weights)


def warn_of_quantities(classes: NDArray[Any], codes: NDArray[Any]) -> None:
    """Warn of labels that look like quantities rather than classes, or like names of the rows.

    Codes of classes mostly leave no number out, and few of them occur only once; quantities have
    gaps and rare values. Strings are never quantities, but names where most rows have their own.

    Parameters
    ----------
    classes : (n_classes,) array
        The labels, ascending.
    codes : (n,) int array
        Class of every row, -1 for rows that take no part.
    """
    numbers = np.asarray(classes.tolist())  # objects may be numbers
    sizes = np.bincount(codes[codes >= 0], minlength=len(classes))
    n_rows, n_classes, n_once = int(sizes.sum()), len(classes), int((sizes == 1).sum())
    once = f", {n_once:,} of them once" if n_once else ""
    if numbers.dtype.kind not in "iuf":
        if n_rows > LEAST_ROWS and n_classes > 0.5 * n_rows:
            warn_caller(
                f"y has {n_classes:,} different labels in {n_rows:,} rows{once}: are they names of "
                "the rows, or text? Each is learned as a class of its own here, which takes long; "
                "max_time limits the time of fit.",
                UserWarning,
            )
        return
    if not _are_quantities(numbers, n_rows, n_once):
        return
    warn_caller(
        f"y has {n_classes:,} different numbers in {n_rows:,} rows{once}: are they quantities? "
        f"Each is learned as a class of its own here, which takes long. For quantities, use "
        f"{REGRESSORS}; for classes, max_time limits the time of fit.",
        UserWarning,
    )


def _are_quantities(numbers: NDArray[Any], n_rows: int, n_once: int) -> bool:
    """Whether numbers, ascending, look like quantities."""
    n_numbers = len(numbers)
    if n_rows > LEAST_ROWS and n_numbers > 0.5 * n_rows:
        return True
    has_gaps = float(numbers[-1]) - float(numbers[0]) >= n_numbers
    is_ragged = n_once >= SHARE_ONCE * n_numbers
    return has_gaps and n_numbers > (MANY_NUMBERS if is_ragged else TOO_MANY_NUMBERS)
