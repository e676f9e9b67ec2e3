"""AdaBoost's first machine, which gives every row a weight of 1 / n, is the plain one."""

import pytest
from problems.sklearn_tools import CLASSIFIERS, PROBABILISTIC, TASKS, classifier
from sklearn.ensemble import AdaBoostClassifier
from sklearn.metrics import log_loss

# The scale of the weights matters to a soft margin, as it multiplies C; this is so for SVC too.
SCALE_FREE = [name for name in CLASSIFIERS if name not in ("CoreVectorSVC", "DiversifiedSVC")]


def plain_and_boosted(name, task):
    boosted = AdaBoostClassifier(classifier(name), n_estimators=1, random_state=0)
    return classifier(name).fit(task.X, task.y), boosted.fit(task.X, task.y).estimators_[0]


@pytest.mark.once_per("name")
@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
@pytest.mark.parametrize("name", SCALE_FREE)
def test_the_first_machine_scores_as_the_plain_one(name, task):
    plain, boosted = plain_and_boosted(name, task)
    expected = plain.score(task.X_test, task.y_test)
    assert boosted.score(task.X_test, task.y_test) == pytest.approx(expected, abs=0.03)


@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
@pytest.mark.parametrize("name", PROBABILISTIC)
def test_the_first_machine_has_the_log_loss_of_the_plain_one(name, task):
    plain, boosted = (m.predict_proba(task.X_test) for m in plain_and_boosted(name, task))
    expected = log_loss(task.y_test, plain)
    assert log_loss(task.y_test, boosted) == pytest.approx(expected, abs=0.02)
