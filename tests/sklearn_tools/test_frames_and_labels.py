"""Data frames, and labels of every type."""

import functools

import numpy as np
import pandas as pd
import polars as pl
import pytest
from problems.sklearn_tools import (
    CLASSIFIERS,
    PROBABILISTIC,
    TASKS,
    classifier,
    described,
    reference,
)
from sklearn.compose import make_column_transformer
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

NAMES = ["width", "height", "depth", "age"]
FRAMES = {
    "pandas": functools.partial(pd.DataFrame, columns=NAMES),
    "polars": functools.partial(pl.DataFrame, schema=NAMES),
}
SERIES = {"pandas": pd.Series, "polars": pl.Series}
TASK = TASKS["many classes"]

every_classifier = pytest.mark.parametrize("name", CLASSIFIERS)
every_frame = pytest.mark.parametrize("frame", FRAMES)


@functools.cache
def fitted_to_arrays(name):
    return classifier(name).fit(TASK.X, TASK.y)


@functools.cache
def fitted_to_frames(name, frame):
    return classifier(name).fit(FRAMES[frame](TASK.X), SERIES[frame](TASK.y))


@pytest.mark.once_per("name")
@every_frame
@every_classifier
def test_frames_give_the_decisions_of_arrays(name, frame):
    # Frames store columns apart from each other, so that sums are rounded in another order.
    np.testing.assert_allclose(
        fitted_to_frames(name, frame).decision_function(FRAMES[frame](TASK.X_test)),
        fitted_to_arrays(name).decision_function(TASK.X_test),
        atol=1e-9,
    )


@pytest.mark.once_per("name")
@every_frame
@every_classifier
def test_predictions_have_the_type_of_those_of_svc(name, frame):
    svc = reference(False).fit(FRAMES[frame](TASK.X), SERIES[frame](TASK.y))
    rows = FRAMES[frame](TASK.X_test)
    assert described(fitted_to_frames(name, frame).predict(rows)) == described(svc.predict(rows))


@every_frame
@every_classifier
def test_names_of_columns_are_kept(name, frame):
    assert fitted_to_frames(name, frame).feature_names_in_.tolist() == NAMES


@every_frame
@every_classifier
def test_columns_in_another_order_are_refused(name, frame):
    with pytest.raises(ValueError, match="feature names should match"):
        fitted_to_frames(name, frame).predict(FRAMES[frame](TASK.X_test)[NAMES[::-1]])


@every_frame
@every_classifier
def test_arrays_after_frames_give_a_warning(name, frame):
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        fitted_to_frames(name, frame).predict(TASK.X_test)


@every_frame
@every_classifier
def test_frames_after_arrays_give_a_warning(name, frame):
    with pytest.warns(UserWarning, match="was fitted without feature names"):
        fitted_to_arrays(name).predict(FRAMES[frame](TASK.X_test))


@pytest.mark.once_per("name")
@every_frame
@every_classifier
def test_frames_pass_between_the_steps_of_a_pipeline(name, frame):
    """If names were lost between the steps, a warning about them would fail this test."""
    scaled = make_column_transformer(
        (StandardScaler(), ["height", "width"]), remainder="passthrough"
    )
    model = make_pipeline(scaled, classifier(name)).set_output(transform=frame)
    model.fit(FRAMES[frame](TASK.X), TASK.y)
    assert model.score(FRAMES[frame](TASK.X_test), TASK.y_test) > 0.8


@every_frame
@pytest.mark.parametrize("name", PROBABILISTIC)
def test_frames_are_searched_and_cut_into_folds(name, frame):
    model = GridSearchCV(classifier(name), {"gamma": [0.1, 0.3]}, cv=2)
    found = cross_val_predict(model, FRAMES[frame](TASK.X), SERIES[frame](TASK.y), cv=2)
    assert np.mean(found == TASK.y) > 0.8


def test_nullable_columns_are_numbers():
    X = pd.DataFrame(TASK.X.round(), columns=NAMES).convert_dtypes()
    model = classifier("EnsembleSVC").fit(X, TASK.y)
    assert model.score(X, TASK.y) > 0.8


def test_columns_of_several_types_are_numbers():
    X = pd.DataFrame(TASK.X, columns=NAMES).astype({"depth": "float32", "age": "int64"})
    X["is_tall"] = X["height"] > 1
    model = classifier("EnsembleSVC").fit(X, TASK.y)
    assert model.score(X, TASK.y) > 0.8


LABELS = {
    "strings": ["ash", "oak"],
    "strings as objects": np.array(["ash", "oak"], dtype=object),
    "bools": [False, True],
    "minus and plus one": [-1, 1],
    "int8": np.array([0, 1], dtype=np.int8),
    "uint8": np.array([3, 7], dtype=np.uint8),
    "floats": [1.0, 2.0],
    "float32": np.array([1.0, 2.0], dtype=np.float32),
}


@functools.cache
def predicted(name, labels):
    """Predictions for labels, and those of SVC."""
    task = TASKS["two classes"]
    y = np.asarray(LABELS[labels])[task.y]
    models = classifier(name), reference(False)
    return [model.fit(task.X, y).predict(task.X_test) for model in models]


@pytest.mark.once_per("labels")
@every_classifier
@pytest.mark.parametrize("labels", LABELS)
def test_predictions_have_the_type_of_the_labels(labels, name):
    found, expected = predicted(name, labels)
    assert described(found) == described(expected)


@pytest.mark.once_per("labels")
@every_classifier
@pytest.mark.parametrize("labels", LABELS)
def test_labels_of_any_type_are_learned(labels, name):
    found, expected = predicted(name, labels)
    assert np.mean(found == expected) > 0.85


@every_classifier
def test_categories_of_pandas_are_learned(name):
    y = pd.Series(pd.Categorical(TASK.y, categories=["oak", "beech", "ash"]))
    assert classifier(name).fit(TASK.X, y).score(TASK.X_test, TASK.y_test) > 0.8
