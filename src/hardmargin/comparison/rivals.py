"""The classifiers that are compared, each a pipeline that takes the raw table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from hardmargin.comparison.pipelines import with_categories, with_numbers, with_strings

#: A kernel SVM of scikit-learn takes minutes on more rows than this: it is trained on a sample.
MAX_SVC_ROWS = 10_000

#: Packages of boosted trees, which may be installed.
NOT_OURS = ("lightgbm", "xgboost", "catboost")


@dataclass(frozen=True)
class Rival:
    """A classifier.

    Attributes
    ----------
    name : str
        As in the report.
    make : callable
        Returns it, not yet fitted; its arguments are the rows, of which it
        looks at the columns, and a seed.
    is_ours : bool
        Whether it is of this package.
    max_rows : int or None
        It is trained on a sample of this many rows if there are more.
    settings : str
        How it is set.
    """

    name: str
    make: Callable[[Any, int], Any]
    is_ours: bool = False
    max_rows: int | None = None
    settings: str = "defaults"


def known_rivals() -> list[Rival]:
    """List the classifiers that are installed: ours, scikit-learn's, and others' boosted trees."""
    rivals = [
        Rival("EnsembleSVC", _ensemble, is_ours=True),
        Rival("GreedySVC", _greedy, is_ours=True),
        Rival(
            "SVC",
            _svc,
            max_rows=MAX_SVC_ROWS,
            settings="defaults, standardised features, calibrated by a sigmoid in three folds",
        ),
        Rival("logistic regression", _logistic, settings="defaults, standardised features"),
        Rival("random forest", _forest),
        Rival("boosted trees", _boosted, settings="HistGradientBoostingClassifier, defaults"),
    ]
    others = {"LightGBM": _lightgbm, "XGBoost": _xgboost, "CatBoost": _catboost}
    installed = {name: make for name, make in others.items() if find_spec(name.lower())}
    return [*rivals, *(Rival(name, make) for name, make in installed.items())]


def _ensemble(X: Any, seed: int) -> Any:
    from hardmargin import EnsembleSVC

    return with_strings(EnsembleSVC(random_state=seed), X)


def _greedy(X: Any, seed: int) -> Any:
    from hardmargin import GreedySVC

    return with_strings(GreedySVC(random_state=seed), X)


def _svc(X: Any, seed: int) -> Any:
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.svm import SVC

    # One machine, its sigmoid from folds: what SVC(probability=True) was.
    calibrated = CalibratedClassifierCV(SVC(), cv=3, ensemble=False)
    return with_numbers(calibrated, X)


def _logistic(X: Any, seed: int) -> Any:
    from sklearn.linear_model import LogisticRegression

    return with_numbers(LogisticRegression(max_iter=1_000), X)


def _forest(X: Any, seed: int) -> Any:
    from sklearn.ensemble import RandomForestClassifier

    return with_numbers(RandomForestClassifier(random_state=seed), X, is_scaled=False)


def _boosted(X: Any, seed: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    if not hasattr(X, "columns"):
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import FunctionTransformer

        return make_pipeline(
            FunctionTransformer(_dense, accept_sparse=True),
            HistGradientBoostingClassifier(random_state=seed),
        )
    return with_categories(HistGradientBoostingClassifier(random_state=seed), X)


def _dense(X: Any) -> Any:
    return X.toarray() if hasattr(X, "toarray") else X


def _lightgbm(X: Any, seed: int) -> Any:
    from lightgbm import LGBMClassifier

    return with_categories(LGBMClassifier(n_jobs=1, random_state=seed, verbose=-1), X)


def _xgboost(X: Any, seed: int) -> Any:
    from xgboost import XGBClassifier

    return with_numbers(XGBClassifier(n_jobs=1, random_state=seed), X, is_scaled=False)


def _catboost(X: Any, seed: int) -> Any:
    from catboost import CatBoostClassifier

    classifier = CatBoostClassifier(
        thread_count=1, random_seed=seed, verbose=0, allow_writing_files=False
    )
    return with_numbers(classifier, X, is_scaled=False)
