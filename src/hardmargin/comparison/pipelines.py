"""Pipelines that take raw tables: dates become numbers, and so does long text."""

from __future__ import annotations

from typing import Any


def with_categories(classifier: Any, is_frame: bool) -> Any:
    """Leave categories and missing values to the classifier."""
    from sklearn.pipeline import make_pipeline

    if not is_frame:
        return classifier
    from skrub import StringEncoder, TableVectorizer, ToCategorical

    vectorizer = TableVectorizer(
        low_cardinality=ToCategorical(), high_cardinality=StringEncoder(random_state=0)
    )
    return make_pipeline(vectorizer, classifier)


def with_numbers(classifier: Any, is_frame: bool, *, is_scaled: bool = True) -> Any:
    """Encode categories, fill what is missing and, if asked, standardise."""
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MaxAbsScaler, StandardScaler

    if not is_frame:
        return make_pipeline(MaxAbsScaler(), classifier) if is_scaled else classifier
    from skrub import StringEncoder, TableVectorizer

    steps = [
        TableVectorizer(high_cardinality=StringEncoder(random_state=0)),
        SimpleImputer(strategy="median", add_indicator=True),
        *([StandardScaler()] if is_scaled else []),
    ]
    return make_pipeline(*steps, classifier)
