"""``random_state``: every fit makes one generator, so that a seed is the same as its generator."""

import numpy as np
import pytest
from problems.cells import few_rows_are_many, many_rows
from problems.every_estimator import MODELS, answers, three_classes
from sklearn.base import clone

from hardmargin import EnsembleSVC
from hardmargin.estimators._base.estimator import KernelEstimator
from hardmargin.selection import calibration

# Limits keep the fits short.
pytestmark = pytest.mark.filterwarnings("ignore:Training stopped at max_stages")


@pytest.fixture(autouse=True)
def _few_rows_are_scaled(monkeypatch):
    """Probabilities of many classes are fitted to a few rows, drawn at random."""
    monkeypatch.setattr(calibration, "MAX_SCALED_ROWS", 30)


def assert_seed_is_its_generator(model, X, y):
    by_seed = clone(model).set_params(random_state=3).fit(X, y)
    by_generator = clone(model).set_params(random_state=np.random.RandomState(3)).fit(X, y)
    for ours, theirs in zip(answers(by_seed, X), answers(by_generator, X), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert getattr(by_seed, "cv_log_loss_", 0) == getattr(by_generator, "cv_log_loss_", 0)


@pytest.mark.parametrize("name", MODELS)
def test_a_seed_is_the_same_as_its_generator(name):
    assert_seed_is_its_generator(MODELS[name], *three_classes(60))


@pytest.mark.parametrize("n_rows", [290, 700])
def test_a_seed_is_the_same_as_its_generator_for_experts(n_rows, monkeypatch):
    few_rows_are_many(monkeypatch)
    model = EnsembleSVC(max_cell_rows=100, n_trees=1)
    assert_seed_is_its_generator(model, *many_rows(n_rows, 3))


@pytest.mark.parametrize("name", MODELS)
def test_every_fit_makes_one_generator(name, monkeypatch):
    plain, fits = KernelEstimator._new_generator, []

    def counted(self):
        fits.append(self)
        return plain(self)

    monkeypatch.setattr(KernelEstimator, "_new_generator", counted)
    clone(MODELS[name]).fit(*three_classes(60))
    assert len({id(fit) for fit in fits}) == len(fits)


@pytest.mark.parametrize("name", ["CoreVectorSVC", "EnsembleSVC", "GreedySVC", "DiversifiedSVC"])
def test_a_generator_moves_on_with_every_fit(name):
    generator = np.random.RandomState(3)
    model = clone(MODELS[name]).set_params(random_state=generator)
    states = []
    for _ in range(2):
        model.fit(*three_classes(60))
        states.append(generator.get_state()[2])
    assert model.random_state is generator
    assert states[0] != states[1]
