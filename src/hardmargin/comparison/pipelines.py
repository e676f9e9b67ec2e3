"""Pipelines that take raw tables: dates become numbers, and so does long text."""

from __future__ import annotations

from typing import Any

import numpy as np

from hardmargin.comparison.summary import last_step

#: Text columns with fewer different values are categories, as in the estimators; others are text.
CATEGORIES = 65

#: Folds of grouped rows, where there are as many groups.
N_FOLDS = 5


def with_categories(classifier: Any, is_frame: bool) -> Any:
    """Leave categories and missing values to the classifier."""
    from sklearn.pipeline import make_pipeline

    if not is_frame:
        return classifier
    from skrub import StringEncoder, TableVectorizer, ToCategorical

    vectorizer = TableVectorizer(
        cardinality_threshold=CATEGORIES,
        low_cardinality=ToCategorical(),
        high_cardinality=StringEncoder(random_state=0),
    )
    return make_pipeline(vectorizer, classifier)


def with_numbers(classifier: Any, is_frame: bool, *, is_scaled: bool = True) -> Any:
    """Encode categories, fill what is missing and, if asked, standardise."""
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MaxAbsScaler, StandardScaler

    if not is_frame:
        # Data frames, which scikit-learn may be configured to output, cannot be sparse.
        scaler = MaxAbsScaler().set_output(transform="default")
        return make_pipeline(scaler, classifier) if is_scaled else classifier
    from skrub import StringEncoder, TableVectorizer

    steps = [
        TableVectorizer(
            cardinality_threshold=CATEGORIES, high_cardinality=StringEncoder(random_state=0)
        ),
        SimpleImputer(strategy="median", add_indicator=True),
        *([StandardScaler()] if is_scaled else []),
    ]
    return make_pipeline(*steps, classifier)


def chooses_on_folds(model: Any) -> bool:
    """Whether a classifier, or the last step of a pipeline, holds out rows itself."""
    return "cv" in last_step(model).get_params(deep=False)


def fit_in_groups(model: Any, X: Any, y: Any, groups: Any) -> Any:
    """Fit a pipeline whose classifier never has rows of a group in different folds."""
    from sklearn.model_selection import StratifiedGroupKFold

    n_folds = min(N_FOLDS, len(np.unique(groups)))
    folds = StratifiedGroupKFold(n_folds, shuffle=True, random_state=0)
    last_step(model).set_params(cv=folds)
    prefix = f"{model.steps[-1][0]}__" if hasattr(model, "steps") else ""
    return model.fit(X, y, **{f"{prefix}groups": groups})
