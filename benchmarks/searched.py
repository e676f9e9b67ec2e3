"""scikit-learn's SVC with C and gamma from a grid search: the rival of the self-tuning models."""

from __future__ import annotations

from typing import Any

from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

C_GRID = (0.1, 1.0, 10.0, 100.0, 1000.0)
GAMMA_GRID = (1 / 16, 1 / 4, 1.0, 4.0, 16.0)  # divided by the number of features


def standardized_svc(**parameters: Any) -> Any:
    return make_pipeline(StandardScaler(), SVC(**parameters))


def searched_svc(
    n_features: int, *, balanced: bool = False, n_jobs: int | None = None
) -> GridSearchCV:
    """A search over 5 x 5 settings with five folds, the best of them fitted to all rows."""
    grid = {"svc__C": C_GRID, "svc__gamma": [g / n_features for g in GAMMA_GRID]}
    return GridSearchCV(
        standardized_svc(class_weight="balanced" if balanced else None),
        grid,
        scoring="balanced_accuracy" if balanced else "accuracy",
        cv=StratifiedKFold(5, shuffle=True, random_state=0),
        n_jobs=n_jobs,
    )
