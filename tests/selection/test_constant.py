"""How far sigmoids are trusted beside the shares of the classes."""

import numpy as np
import pytest
from sklearn.metrics import log_loss

from hardmargin.selection.constant import LEAST_TRUST, loss_of_shares, trust
from hardmargin.selection.sigmoids import as_rows


def naive_trust(loss, labels, weights, cost):
    """Write the evidence of both row by row."""
    rows = as_rows(weights)
    p = (rows[labels].sum() + 0.5) / (rows.sum() + 1)
    of_shares = log_loss(labels, np.full(len(labels), p), sample_weight=rows)
    return 1 / (1 + np.exp(-0.3 * (rows.sum() * (of_shares - loss) - cost)))


@pytest.mark.parametrize("cost", [2.0, 4.0])
def test_it_is_the_share_of_the_evidence(cost):
    rng = np.random.default_rng(0)
    losses, counts, expected = [], [], []
    for n in (20, 90, 400):
        labels, weights = rng.random(n) < 0.3, rng.uniform(0.2, 3, n)
        rows = as_rows(weights)
        losses.append(0.55)
        counts.append([rows[labels].sum(), rows[~labels].sum()])
        expected.append(naive_trust(0.55, labels, weights, cost))
    found = trust(losses, *np.transpose(counts), cost=cost)
    np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_weights_count_rows():
    labels, weights = np.array([True, False, False]), np.array([3.0, 2.0, 1.0])
    repeated = np.repeat(labels, weights.astype(int))
    rows = as_rows(weights)
    weighted = trust(0.4, rows[labels].sum(), rows[~labels].sum(), cost=2.0)
    assert weighted == trust(0.4, repeated.sum(), (~repeated).sum(), cost=2.0)


def test_it_grows_with_the_gain_and_falls_with_the_cost():
    found = trust(np.linspace(0.9, 0.1, 20), 30, 40, cost=4.0)
    assert (np.diff(found) > 0).all()
    assert (trust(0.6, 30, 40, cost=2.0) > trust(0.6, 30, 40, cost=4.0)).all()


def test_at_its_cost_it_is_one_half():
    assert trust(loss_of_shares(30, 70) - 4.0 / 100, 30, 70, cost=4.0) == pytest.approx(0.5)


@pytest.mark.parametrize("loss", [1e3, np.inf])
def test_slopes_stay_positive_however_bad_the_scores(loss):
    assert trust(loss, 50, 50, cost=4.0) == LEAST_TRUST


def test_one_side_alone_is_nearly_certain():
    assert 0 < loss_of_shares(0, 1_000) < 1e-3
