"""Large tables of categories in limited time: rows turn into numbers when a fit needs them."""

import numpy as np
import pandas as pd
import pytest

from hardmargin import EnsembleSVC, GreedySVC
from hardmargin.estimators._base import self_tuning
from hardmargin.estimators._base.categories import find_categories
from hardmargin.selection.rows import TrainingRows

N_ROWS = 600


def table(n_rows=N_ROWS):
    rng = np.random.default_rng(0)
    codes = rng.integers(4, size=n_rows)
    age = np.where(rng.random(n_rows) < 0.1, np.nan, rng.normal(size=n_rows))
    X = pd.DataFrame({"age": age, "colour": np.array(["red", "blue", "green", None])[codes]})
    return X, (codes + rng.normal(size=n_rows) > 1.5).astype(int)


X, Y = table()


@pytest.fixture
def every_table_is_large(monkeypatch):
    monkeypatch.setattr(self_tuning, "LARGE_TABLE", 0)


@pytest.mark.parametrize("rows", [slice(3, 9), np.array([5, 2]), np.arange(N_ROWS) % 7 == 0])
def test_rows_of_a_table_are_those_of_all(rows):
    categories = find_categories(X, "from_dtype")
    np.testing.assert_array_equal(categories.read(X)[rows], categories.transform(X)[rows])


def test_a_table_knows_its_shape_and_size():
    categories = find_categories(X, "from_dtype")
    read, numbers = categories.read(X), categories.transform(X)
    assert (read.shape, read.dtype) == (numbers.shape, numbers.dtype)
    assert read.nbytes == numbers.nbytes


@pytest.mark.usefixtures("every_table_is_large")
@pytest.mark.parametrize("columns", [["colour"], ["age", "colour"]])
def test_the_model_is_that_without_a_limit(columns):
    limited = GreedySVC(max_time=1_000).fit(X[columns], Y)
    unlimited = GreedySVC().fit(X[columns], Y)
    assert limited.n_samples_fit_ == N_ROWS
    np.testing.assert_array_equal(
        limited.predict_proba(X[columns]), unlimited.predict_proba(X[columns])
    )


@pytest.mark.usefixtures("every_table_is_large")
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    "model",
    [EnsembleSVC(max_time=1e-6), GreedySVC(max_time=1e-6), GreedySVC(gamma=0.5, max_time=1e-6)],
)
def test_a_fit_without_time_does_not_make_all_rows(model, monkeypatch):
    def all_made(self):
        raise AssertionError("all rows were made")

    monkeypatch.setattr(TrainingRows, "all_made", all_made)
    model.fit(X[["colour"]], Y)
    assert model.n_samples_fit_ < N_ROWS


@pytest.mark.usefixtures("every_table_is_large")
def test_without_rows_held_out_all_rows_are_fitted():
    model = GreedySVC(gamma=0.5, max_visits=1, max_time=1_000).fit(X, Y)
    assert model.n_samples_fit_ == N_ROWS


@pytest.mark.usefixtures("every_table_is_large")
def test_an_infinite_number_is_an_error_that_names_its_column():
    infinite = X.assign(age=np.where(np.arange(N_ROWS) == 4, np.inf, 0.0))
    with pytest.raises(ValueError, match="age"):
        GreedySVC(max_time=1_000).fit(infinite, Y)
