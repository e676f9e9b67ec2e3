"""Bagged SVMs, the baseline of MCS-06."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from hardmargin.estimators._base.second_layer import MachineVote
from hardmargin.reproduction.mcs06.bagged import BaggedSVC


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return StandardScaler().fit_transform(X), y


@pytest.mark.parametrize("final", ["svm", "mlp", "cvm", "vote", LogisticRegression()])
def test_every_second_layer(iris, final):
    clf = BaggedSVC(2, final_estimator=final, random_state=0)
    assert cross_val_score(clf, *iris, cv=3).mean() > 0.9


def test_machines_are_svms_of_one_class_against_the_rest(iris):
    X, y = iris
    clf = BaggedSVC(3, outputs="scores", random_state=0).fit(X, y)
    Z = clf.transform(X)
    assert Z.shape == (150, 9)
    assert clf.gamma_ == pytest.approx(1 / ((X[:, None] - X) ** 2).sum(axis=2).mean())
    for c in range(3):
        alone = SVC(gamma=clf.gamma_).fit(X, y == c).decision_function(X)
        for column in Z[:, 3 * c : 3 * c + 3].T:
            assert np.mean((column > 0) == (alone > 0)) > 0.9
            assert not np.allclose(column, alone)  # each has its own sample


def test_labels_are_those_that_the_machines_predict(iris):
    X, y = iris
    clf = BaggedSVC(2, random_state=0).fit(X, y)
    machines = [machine for bag in clf.estimators_ for machine in bag.estimators_]
    expected = [np.where(machine.predict(X), 1, -1) for machine in machines]
    np.testing.assert_array_equal(clf.transform(X), np.column_stack(expected))


def test_a_vote_is_the_majority_of_a_class(iris):
    X, y = iris
    clf = BaggedSVC(3, final_estimator="vote", random_state=0).fit(X, y)
    assert isinstance(clf.final_estimator_, MachineVote)
    shares = (clf.transform(X).reshape(150, 3, 3) > 0).mean(axis=2)
    ordered = np.sort(shares, axis=1)
    clear = ordered[:, 2] > ordered[:, 1]
    np.testing.assert_array_equal(clf.predict(X)[clear], shares.argmax(axis=1)[clear])


def test_two_classes_share_their_machines(iris):
    X, y = iris[0], np.where(iris[1] == 2, "yes", "no")
    for final in ("svm", "vote"):
        clf = BaggedSVC(2, final_estimator=final, random_state=0).fit(X, y)
        assert clf.transform(X).shape == (150, 2)
        assert clf.score(X, y) > 0.9


def test_the_same_seed_gives_the_same_model(iris):
    X, y = iris
    clf = BaggedSVC(2, random_state=0)
    np.testing.assert_array_equal(
        clone(clf).fit(X, y).transform(X), clone(clf).fit(X, y).transform(X)
    )
