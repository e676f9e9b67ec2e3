"""Groups for `cv` and for an outer splitter work as the notes of ``fit`` say."""

import numpy as np
import pytest
import sklearn
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    StratifiedGroupKFold,
    cross_val_predict,
    cross_val_score,
    cross_validate,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from hardmargin import EnsembleSVC, GreedySVC

N = 72
GROUPS = np.arange(N) // 4
X = np.random.default_rng(0).normal(size=(N, 2))
Y = (X[:, 0] > 0).astype(int)

seen = []


class Recorded(GroupKFold):
    """Folds inside ``fit``; `seen` collects the groups that they are made of."""

    def split(self, X=None, y=None, groups=None):
        seen.append(groups)
        return super().split(X, y, groups)


@pytest.fixture(autouse=True)
def nothing_seen():
    seen.clear()


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.fixture(params=[EnsembleSVC, GreedySVC])
def clf(request):
    return request.param(cv=Recorded(2), random_state=0)


def groups_of_outer_folds():
    """The groups of the training rows in each of three folds."""
    splits = GroupKFold(3).split(X, Y, GROUPS)
    return [list(GROUPS[train]) for train, _ in splits]


def seen_groups():
    return [list(groups) for groups in seen]


CROSS_VALIDATIONS = [cross_val_score, cross_validate, cross_val_predict]


# --- without metadata routing --------------------------------------------------------------------


@pytest.mark.parametrize("cross_validation", CROSS_VALIDATIONS)
def test_cross_validation(clf, cross_validation):
    cross_validation(clf, X, Y, cv=GroupKFold(3), groups=GROUPS, params={"groups": GROUPS})
    assert seen_groups() == groups_of_outer_folds()


def test_cross_validation_of_a_pipeline(clf):
    name = f"{type(clf).__name__.lower()}__groups"
    pipeline = make_pipeline(StandardScaler(), clf)
    cross_val_score(
        pipeline, X, Y, cv=GroupKFold(3), groups=GROUPS, params={name: GROUPS}, error_score="raise"
    )
    assert seen_groups() == groups_of_outer_folds()


def test_search_of_a_pipeline(clf):
    name = type(clf).__name__.lower()
    grid = {f"{name}__max_time": [100]}
    search = GridSearchCV(make_pipeline(clf), grid, cv=GroupKFold(3), error_score="raise")
    search.fit(X, Y, groups=GROUPS, **{f"{name}__groups": GROUPS})
    assert seen_groups() == [*groups_of_outer_folds(), list(GROUPS)]


def test_a_search_alone_says_what_to_do(clf):
    search = GridSearchCV(clf, {"max_time": [100]}, cv=GroupKFold(3))
    with pytest.raises(ValueError, match="All the 3 fits failed") as caught:
        search.fit(X, Y, groups=GROUPS)
    assert "search.fit(X, y, groups=groups, <step>__groups=groups)" in str(caught.value)


@pytest.mark.parametrize("splitter", [GroupKFold(5), StratifiedGroupKFold(5)])
def test_a_splitter_without_groups_says_where_they_go(splitter, clf):
    message = rf"cv={type(splitter).__name__}\(...\) needs groups.* fit\(X, y, groups=groups\)"
    with pytest.raises(ValueError, match=message):
        clf.set_params(cv=splitter).fit(X, Y)


def test_cross_validation_with_groups_for_the_splitter_only_says_what_to_do(clf):
    with pytest.raises(ValueError, match="groups") as caught:
        cross_val_score(clf, X, Y, cv=GroupKFold(3), groups=GROUPS, error_score="raise")
    assert "params={'groups': groups}" in " ".join(caught.value.__notes__)


# --- with metadata routing -----------------------------------------------------------------------


@pytest.mark.parametrize("cross_validation", CROSS_VALIDATIONS)
def test_routed_cross_validation(routing, clf, cross_validation):
    clf.set_fit_request(groups=True)
    cross_validation(clf, X, Y, cv=GroupKFold(3), params={"groups": GROUPS})
    assert seen_groups() == groups_of_outer_folds()


def test_routed_cross_validation_of_a_pipeline(routing, clf):
    pipeline = make_pipeline(StandardScaler(), clf.set_fit_request(groups=True))
    cross_val_score(
        pipeline, X, Y, cv=GroupKFold(3), params={"groups": GROUPS}, error_score="raise"
    )
    assert seen_groups() == groups_of_outer_folds()


def test_routed_search(routing, clf):
    clf.set_fit_request(groups=True)
    search = GridSearchCV(clf, {"max_time": [100]}, cv=GroupKFold(3), error_score="raise")
    search.fit(X, Y, groups=GROUPS)
    assert seen_groups() == [*groups_of_outer_folds(), list(GROUPS)]


def test_routed_search_of_a_pipeline(routing, clf):
    grid = {f"{type(clf).__name__.lower()}__max_time": [100]}
    pipeline = make_pipeline(StandardScaler(), clf.set_fit_request(groups=True))
    search = GridSearchCV(pipeline, grid, cv=GroupKFold(3), error_score="raise")
    search.fit(X, Y, groups=GROUPS)
    assert seen_groups() == [*groups_of_outer_folds(), list(GROUPS)]
