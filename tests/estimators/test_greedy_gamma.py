"""The gamma that GreedySVC chooses."""

import numpy as np
import pytest
from oracles.kernels import gamma_rule
from problems.greedy import four_classes, paper, two_classes


@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
@pytest.mark.parametrize("rule", ["scale", "spread", "pairwise"])
def test_gamma_rules_become_numbers(rule, kernel):
    X, y = (a[:60] for a in two_classes())
    model = paper(rule, kernel=kernel).fit(X, y)
    assert model.gamma_ == pytest.approx(gamma_rule(rule, X, kernel=kernel))


def test_gamma_rules_use_sample_weights():
    X, y = (a[:60] for a in two_classes())
    weights = np.random.default_rng(0).uniform(size=60)
    model = paper("spread").fit(X, y, weights)
    assert model.gamma_ == pytest.approx(gamma_rule("spread", X, sample_weight=weights))


@pytest.mark.filterwarnings("ignore:.*look the same to the")
def test_gamma_of_constant_rows_is_one():
    assert paper().fit(np.ones((6, 2)), [0, 1, 0, 1, 0, 1]).gamma_ == 1.0


def test_gamma_of_pairs_is_that_of_all_rows():
    X, y = four_classes()
    assert paper("spread").fit(X, y).gamma_ == pytest.approx(gamma_rule("spread", X))
