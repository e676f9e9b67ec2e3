"""No setting of scikit-learn changes a result, whether it is in force in fits or in predictions."""

import functools

import numpy as np
import pandas as pd
import pytest
from problems.every_estimator import MODELS, answers, fit_and_answer, three_classes
from problems.sklearn_tools import TASKS
from sklearn import config_context
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from hardmargin import EnsembleSVC, GreedySVC, MarginDiscriminantAnalysis, compress
from hardmargin.displays import DiscriminantDisplay

SETTINGS = {
    "pandas": {"transform_output": "pandas"},
    "polars": {"transform_output": "polars"},
    "others": {
        "assume_finite": True,
        "enable_metadata_routing": True,
        "skip_parameter_validation": True,
        "working_memory": 1,
    },
}
FLAGSHIPS = {"EnsembleSVC": EnsembleSVC(cv=3), "GreedySVC": GreedySVC(cv=3)}

# The epochs of MultiplicativeSVC are limited.
pytestmark = pytest.mark.filterwarnings("ignore:Training stopped at max_stages")

every_setting = pytest.mark.parametrize("setting", SETTINGS)


@functools.cache
def usual_answers(name):
    return fit_and_answer(name)


def assert_equal(found, expected):
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(np.asarray(ours), theirs)


def table(n=60):
    """Numbers, of which some are missing, and categories."""
    rng = np.random.default_rng(0)
    height = np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n))
    colour = np.array(["red", "green", "blue"])[np.arange(n) % 3]
    y = (height + (colour == "red") > 0.5).astype(int)
    return pd.DataFrame({"height": height, "colour": colour, "age": rng.normal(size=n)}), y


@pytest.mark.once_per("name")
@every_setting
@pytest.mark.parametrize("name", MODELS)
def test_fits_and_answers_are_the_same(name, setting):
    with config_context(**SETTINGS[setting]):
        found = fit_and_answer(name)
    assert_equal(found, usual_answers(name))


@pytest.mark.parametrize("name", MODELS)
def test_rows_may_be_ordered_by_columns_as_those_of_polars_are(name):
    X, y = three_classes()
    X = np.asfortranarray(X)
    assert_equal(answers(clone(MODELS[name]).fit(X, y), X), usual_answers(name))


@every_setting
@pytest.mark.parametrize("name", FLAGSHIPS)
def test_models_of_tables_are_the_same(name, setting):
    X, y = table()
    model = clone(FLAGSHIPS[name]).fit(X, y)
    expected = answers(model, X)
    with config_context(**SETTINGS[setting]):
        assert_equal(answers(model, X), expected)  # fitted before
        assert_equal(answers(model.fit(X, y), X), expected)
    assert_equal(answers(model, X), expected)


@every_setting
def test_compressed_pipelines_are_the_same(setting):
    X, y = three_classes()

    def compressed():
        pipeline = make_pipeline(StandardScaler(), clone(MODELS["GreedySVC, published"]))
        return compress(pipeline.fit(X, y), 9, X=X).decision_function(X)

    expected = compressed()
    with config_context(**SETTINGS[setting]):
        np.testing.assert_array_equal(compressed(), expected)


@pytest.mark.parametrize("setting", ["pandas", "polars"])
def test_directions_are_drawn_from_data_frames(setting):
    task = TASKS["many classes"]
    model = MarginDiscriminantAnalysis().fit(task.X, task.y)
    with config_context(**SETTINGS[setting]):
        display = DiscriminantDisplay.from_estimator(model, task.X, task.y)
    np.testing.assert_array_equal(display.projections, model.transform(task.X)[:, :2])
