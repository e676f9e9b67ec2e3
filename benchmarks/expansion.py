"""A fitted rival's decision functions as one expansion, which our prediction code evaluates.

scikit-learn stores k > 2 classes in LIBSVM's layout: `dual_coef_` has k - 1 rows, and a support
vector of class i keeps its coefficient of machine (i, j) in row j - 1 for j > i, in row j for
j < i. Here every machine has its own row, and is positive for the later class.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from hardmargin.selection.calibration import class_scores


@dataclass(frozen=True)
class Expansion:
    """Machine m decides by ``coef[m] @ K(vectors, x) + intercept[m]``."""

    vectors: Any
    coef: Any
    intercept: npt.NDArray[np.float64]
    classes: npt.NDArray[np.int64]


def of_model(model: Any) -> Expansion:
    """Read the expansion out of a fitted SVC."""
    dual = sp.csr_matrix(model.dual_coef_).toarray()
    intercept = np.asarray(model.intercept_, np.float64).ravel()
    classes, vectors = model.classes_, model.support_vectors_
    if not isinstance(
        vectors, np.ndarray
    ):  # scikit-learn-intelex drops columns that no support vector uses
        vectors = vectors.tocsr(copy=True)
        vectors.resize(vectors.shape[0], model.n_features_in_)
    if len(classes) == 2:
        return Expansion(vectors, dual, intercept, classes)
    ends = np.cumsum(model.n_support_)
    starts = ends - model.n_support_
    pairs = list(combinations(range(len(classes)), 2))
    coef = sp.lil_matrix((len(pairs), dual.shape[1]))
    for machine, (i, j) in enumerate(pairs):
        coef[machine, starts[i] : ends[i]] = -dual[j - 1, starts[i] : ends[i]]
        coef[machine, starts[j] : ends[j]] = -dual[i, starts[j] : ends[j]]
    return Expansion(vectors, coef.tocsr(), -intercept, classes)


def labels(expansion: Expansion, decisions: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Classes as GreedySVC decides them: by sign, or by one-vs-one votes."""
    margins = decisions + expansion.intercept
    if len(expansion.classes) == 2:
        return expansion.classes[(margins[:, 0] >= 0).astype(np.intp)]
    scores = class_scores(margins, len(expansion.classes), "ovo")
    return np.asarray(expansion.classes[scores.argmax(axis=1)])
