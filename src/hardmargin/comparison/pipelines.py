"""Pipelines that take raw tables: dates become numbers, and so does long text."""

from __future__ import annotations

from collections.abc import Collection
from itertools import groupby
from typing import Any

import numpy as np

from hardmargin.comparison.summary import last_step
from hardmargin.estimators._base.categories import (
    MAX_STRINGS,
    MOST_CATEGORIES,
    SHARE_OF_TEXTS,
    are_texts,
)

#: Up to this share of different values, strings of few words are categories for our estimators,
#: and text if there are more. They refuse more than 0.95, but a fold may have another share.
SHARE_OF_CATEGORIES = 0.8

#: Folds of grouped rows, where there are as many groups.
N_FOLDS = 5


def with_strings(classifier: Any, X: Any) -> Any:
    """Leave numbers, categories, however many, and missing values to a classifier of ours."""
    from sklearn.pipeline import make_pipeline

    if not has_others(X):
        return classifier
    vectorizer = _vectorizer(X, SHARE_OF_CATEGORIES, low_cardinality="passthrough")
    return make_pipeline(vectorizer, classifier)


def with_categories(classifier: Any, X: Any) -> Any:
    """Leave numbers, categories, if these are few, and missing values to the classifier."""
    from sklearn.pipeline import make_pipeline

    # scikit-learn's boosted trees (1.9) fail on columns without any value.
    empty = [name for name in getattr(X, "columns", ()) if X[name].count() == 0]
    if not empty and not has_others(X):
        return classifier
    from skrub import ToCategorical

    vectorizer = _vectorizer(X, dropped=empty, low_cardinality=ToCategorical())
    return make_pipeline(vectorizer, classifier)


def with_numbers(classifier: Any, X: Any, *, is_scaled: bool = True) -> Any:
    """Encode categories, fill what is missing and, if asked, standardise."""
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MaxAbsScaler, StandardScaler

    if not hasattr(X, "columns"):
        # Data frames, which scikit-learn may be configured to output, cannot be sparse.
        scaler = MaxAbsScaler().set_output(transform="default")
        return make_pipeline(scaler, classifier) if is_scaled else classifier
    steps = [
        *([_vectorizer(X)] if has_others(X) else []),
        SimpleImputer(strategy="median", add_indicator=True),
        *([StandardScaler()] if is_scaled else []),
    ]
    return make_pipeline(*steps, classifier)


def _is_number(dtype: Any) -> bool:
    import pandas as pd

    return bool(pd.api.types.is_numeric_dtype(dtype))


def has_others(X: Any) -> bool:
    """Whether rows have columns other than numbers, as only frames may have."""
    return hasattr(X, "columns") and not all(map(_is_number, X.dtypes))


def _most_categories(column: Any, share: float) -> int:
    """Return how many different values of a column are categories, and not text; 0 for numbers."""
    if _is_number(column.dtype):
        return 0
    if share > SHARE_OF_TEXTS and are_texts([v for v in set(column) if isinstance(v, str)]):
        share = SHARE_OF_TEXTS
    return MOST_CATEGORIES if column.nunique() <= share * column.count() else MAX_STRINGS


def _vectorizer(
    X: Any, share_of_categories: float = 0.0, *, dropped: Collection[str] = (), **options: Any
) -> Any:
    """Make numbers or categories of all columns but numbers, which pass: a step each takes long."""
    from sklearn.compose import ColumnTransformer
    from skrub import StringEncoder, TableVectorizer

    steps: list[tuple[str, Any, list[str]]] = []
    others: list[str] = []
    most = {name: _most_categories(X[name], share_of_categories) for name in X.columns}
    most |= dict.fromkeys(dropped, -1)
    for most_of_run, run in groupby(X.columns, key=most.__getitem__):
        names = list(run)
        step: Any = "passthrough" if most_of_run == 0 else "drop"
        if most_of_run > 0:
            step = TableVectorizer(
                cardinality_threshold=most_of_run + 1,
                high_cardinality=StringEncoder(random_state=0),
                **options,
            )
            others += names
        steps.append((str(len(steps)), step, names))
    # What is made of column "since" is named "since_year", as another column may be.
    starts = tuple(f"{name}_" for name in others)
    may_clash = any(str(name).startswith(starts) for name in X.columns)
    transformer = ColumnTransformer(steps, verbose_feature_names_out=may_clash)
    return transformer.set_output(transform="pandas")


def chooses_on_folds(model: Any) -> bool:
    """Whether a classifier, or the last step of a pipeline, holds out rows itself."""
    return "cv" in last_step(model).get_params(deep=False)


def fit_in_groups(model: Any, X: Any, y: Any, groups: Any) -> Any:
    """Fit a pipeline whose classifier never has rows of a group in different folds."""
    from sklearn.model_selection import StratifiedGroupKFold

    n_folds = min(N_FOLDS, len(np.unique(groups)))
    if n_folds < 2:
        raise ValueError(
            "the rows to learn from are a single group, so that none can be held out: there must "
            "be two, and a third one if one is tested"
        )
    folds = StratifiedGroupKFold(n_folds, shuffle=True, random_state=0)
    last_step(model).set_params(cv=folds)
    prefix = f"{model.steps[-1][0]}__" if hasattr(model, "steps") else ""
    return model.fit(X, y, **{f"{prefix}groups": groups})
