"""Mixtures of experts: sums of their log-probabilities, with weights from held-out rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import log_softmax

from hardmargin.kernels import FloatArray

#: Weights are no larger than this.
LARGEST_WEIGHT = 3.0

#: The weights are expected to add up to one, give or take this. It keeps experts that hardly ever
#: err from becoming too sure.
SPREAD_OF_SUM = 0.5

#: The search for weights begins again, at most this often, where it ended on a steeper slope.
MOST_STARTS = 5
FLAT = 1e-3


class LogProbabilities:
    """How log-probabilities of the classes turn into decisions and probabilities."""

    def scores(self, logs: FloatArray) -> FloatArray:
        """Decisions of shape (n, n_classes); of two classes, the log-odds and their opposite."""
        if logs.shape[1] > 2:
            return logs
        odds = logs[:, 1] - logs[:, 0]
        return np.column_stack([-odds, odds])

    def probabilities(self, logs: FloatArray) -> FloatArray:
        """Probabilities of shape (n, n_classes)."""
        return np.asarray(np.exp(logs))


def mixture_weights(
    logs: Sequence[NDArray[Any]],
    codes: NDArray[np.int32],
    weights: FloatArray,
    costs: Sequence[float] | None = None,
) -> tuple[FloatArray, float]:
    """Find the weights of experts, and the log-loss of their mixture on the same rows.

    What experts have chosen to suit these rows makes their losses too low. In a mixture, that
    counts as often as the expert does.

    Parameters
    ----------
    logs : sequence of (n, n_classes) arrays
        Log-probabilities that each expert gives to rows it has not seen.
    codes : (n,) int array
        Classes of these rows.
    weights : (n,) array
        Weights of these rows.
    costs : sequence of float, optional
        By how much the loss of each expert is too low on these rows; None is nothing.
    """
    cost = np.zeros(len(logs)) if costs is None else np.array(costs)
    every = np.stack(logs).astype(np.float64)
    is_own = np.arange(every.shape[2]) == codes[:, None]
    n_experts, n_rows = every.shape[:2]
    # How far each expert puts the other classes ahead of the right one.
    ahead = every[:, ~is_own].reshape(n_experts, n_rows, -1) - every[:, is_own][:, :, None]
    shares = weights / weights.sum()
    stiffness = 1 / (SPREAD_OF_SUM**2 * weights.sum())

    def loss(at: FloatArray) -> tuple[float, FloatArray]:
        """Log-loss and the prior of the sum, and their derivatives."""
        logits = np.tensordot(at, ahead, 1)
        largest = logits.max(axis=1, initial=0.0)
        odds = np.exp(logits - largest[:, None])
        total = odds.sum(axis=1) + np.exp(-largest)
        slopes = np.einsum("nk,enk->e", odds * (shares / total)[:, None], ahead)
        excess = at.sum() - 1
        value = shares @ (np.log(total) + largest) + stiffness * excess**2 / 2 + cost @ at
        return float(value), slopes + stiffness * excess + cost

    at, bounds = np.full(n_experts, 1 / n_experts), [(0.0, LARGEST_WEIGHT)] * n_experts
    for _ in range(MOST_STARTS):
        found = minimize(loss, at, jac=True, method="L-BFGS-B", bounds=bounds)
        at = np.asarray(found.x)
        # What the gradient allows within the bounds: L-BFGS-B can end where a step failed.
        if np.abs(at - np.clip(at - found.jac, 0.0, LARGEST_WEIGHT)).max() < FLAT:
            break
    return at, float(-shares @ mixed(logs, at)[is_own] + cost @ at)


def mixed(logs: Sequence[NDArray[Any]], weights: FloatArray) -> FloatArray:
    """Log-probabilities of a mixture of experts."""
    total = np.zeros(logs[0].shape)
    for expert, weight in zip(logs, weights, strict=True):
        total += weight * expert
    return np.asarray(log_softmax(total, axis=1))
