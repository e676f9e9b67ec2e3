"""MarginDiscriminantAnalysis and DiversifiedSVC as transformers in scikit-learn's tools."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from problems.sklearn_tools import TASKS, classifier
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from hardmargin import DiversifiedSVC, EnsembleSVC, GreedySVC, MarginDiscriminantAnalysis

TASK = TASKS["many classes"]
TRANSFORMERS = {
    "MarginDiscriminantAnalysis": MarginDiscriminantAnalysis(2, random_state=0),
    "DiversifiedSVC": DiversifiedSVC(2, random_state=0),
}
FRAMES = {"pandas": pd.DataFrame, "polars": pl.DataFrame}
COLUMNS = ["width", "height", "depth", "age"]
N_FEATURES = 6  # two for each class

every_transformer = pytest.mark.parametrize("name", TRANSFORMERS)
every_frame = pytest.mark.parametrize("frame", FRAMES)


def transformer(name):
    return clone(TRANSFORMERS[name])


def names_of_features(name):
    return [f"{name.lower()}{k}" for k in range(N_FEATURES)]


@every_transformer
def test_features_are_named_after_the_class(name):
    model = transformer(name).fit(TASK.X, TASK.y)
    assert model.get_feature_names_out().tolist() == names_of_features(name)


@every_transformer
def test_fit_transform_is_fit_and_transform(name):
    np.testing.assert_array_equal(
        transformer(name).fit_transform(TASK.X, TASK.y),
        transformer(name).fit(TASK.X, TASK.y).transform(TASK.X),
    )


@every_frame
@every_transformer
def test_set_output_makes_frames(name, frame):
    model = transformer(name).set_output(transform=frame).fit(TASK.X, TASK.y)
    assert isinstance(model.transform(TASK.X_test), FRAMES[frame])


@every_frame
@every_transformer
def test_frames_have_the_names_of_the_features(name, frame):
    model = transformer(name).set_output(transform=frame).fit(TASK.X, TASK.y)
    assert list(model.transform(TASK.X_test).columns) == names_of_features(name)


@every_frame
@every_transformer
def test_frames_have_the_values_of_arrays(name, frame):
    plain = transformer(name).fit(TASK.X, TASK.y).transform(TASK.X_test)
    framed = transformer(name).set_output(transform=frame).fit(TASK.X, TASK.y)
    np.testing.assert_array_equal(framed.transform(TASK.X_test).to_numpy(), plain)


def test_frames_of_pandas_have_the_index_of_the_rows():
    rows = pd.DataFrame(TASK.X_test, index=np.arange(len(TASK.X_test)) + 100)
    model = transformer("MarginDiscriminantAnalysis").set_output(transform="pandas")
    assert model.fit(TASK.X, TASK.y).transform(rows).index.equals(rows.index)


@every_transformer
def test_frames_can_be_the_global_default(name):
    with sklearn.config_context(transform_output="pandas"):
        assert isinstance(transformer(name).fit_transform(TASK.X, TASK.y), pd.DataFrame)


@pytest.mark.parametrize("last", ["SVC", "EnsembleSVC", "GreedySVC", "CoreVectorSVC"])
@pytest.mark.parametrize("frame", ["default", *FRAMES])
@every_transformer
def test_features_serve_a_classifier(name, frame, last):
    final = SVC() if last == "SVC" else classifier(last)
    model = make_pipeline(transformer(name), final).set_output(transform=frame)
    assert model.fit(TASK.X, TASK.y).score(TASK.X_test, TASK.y_test) > 0.9


@every_transformer
def test_a_union_has_the_features_of_both(name):
    union = make_union(StandardScaler(), transformer(name))
    features = union.fit(TASK.X, TASK.y).transform(TASK.X_test)
    assert features.shape == (len(TASK.X_test), TASK.X.shape[1] + N_FEATURES)


@every_transformer
def test_a_union_names_the_features_of_both(name):
    union = make_union(StandardScaler(), transformer(name)).fit(TASK.X, TASK.y)
    expected = [f"{name.lower()}__{feature}" for feature in names_of_features(name)]
    assert union.get_feature_names_out()[-N_FEATURES:].tolist() == expected


@every_frame
@every_transformer
def test_a_column_transformer_transforms_some_columns(name, frame):
    columns = make_column_transformer((transformer(name), ["width", "height"]), remainder="drop")
    X = pd.DataFrame(TASK.X, columns=COLUMNS)
    made = columns.set_output(transform=frame).fit_transform(X, TASK.y)
    assert list(made.columns) == [f"{name.lower()}__{f}" for f in names_of_features(name)]


@every_transformer
def test_a_column_transformer_transforms_as_alone(name):
    columns = make_column_transformer((transformer(name), [0, 1]), remainder="drop")
    np.testing.assert_allclose(
        columns.fit(TASK.X, TASK.y).transform(TASK.X_test),
        transformer(name).fit(TASK.X[:, :2], TASK.y).transform(TASK.X_test[:, :2]),
        atol=1e-9,
    )


@every_transformer
def test_the_number_of_directions_is_searched(name):
    model = make_pipeline(transformer(name), LogisticRegression())
    key = f"{model.steps[0][0]}__n_directions"
    search = GridSearchCV(model, {key: [1, 2]}, cv=2).fit(TASK.X, TASK.y)
    assert search.score(TASK.X_test, TASK.y_test) > 0.9


def test_a_classifier_is_searched_with_its_second_layer():
    search = GridSearchCV(
        DiversifiedSVC(final_estimator=EnsembleSVC(cv=3, random_state=0), random_state=0),
        {"n_directions": [1, 2], "final_estimator__gamma": ["cv", 0.3]},
        cv=2,
    )
    assert search.fit(TASK.X, TASK.y).score(TASK.X_test, TASK.y_test) > 0.9


@pytest.mark.parametrize("final", [EnsembleSVC(cv=3, random_state=0), GreedySVC(cv=3)])
def test_probabilities_of_the_second_layer_are_scored(final):
    model = DiversifiedSVC(final_estimator=final, random_state=0)
    losses = cross_val_score(model, TASK.X, TASK.y, cv=2, scoring="neg_log_loss")
    assert losses.min() > -0.7
