"""Moving a machine's threshold for the sake of unequal class weights."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from hardmargin.kernels import FloatArray

#: A slope below this says that the scores tell nothing of the classes.
LEAST_SLOPE = 1e-3


def platt(scores: FloatArray, positive: np.ndarray, weights: FloatArray) -> tuple[float, float]:
    """Fit ``P(positive) = sigmoid(A * score + B)`` by Newton's method.

    The targets are Platt's, drawn in by one row a class so that separated scores keep a finite
    slope (Platt 1999; Lin, Lin & Weng 2007).
    """
    n_positive = weights[positive].sum()
    n_negative = weights[~positive].sum()
    target = np.where(positive, (n_positive + 1) / (n_positive + 2), 1 / (n_negative + 2))
    scale = max(float(np.abs(scores).max(initial=0.0)), 1e-300)
    design = np.column_stack([scores / scale, np.ones_like(scores)])
    theta = np.array([0.0, np.log((n_positive + 1) / (n_negative + 1))])

    def loss(t: FloatArray) -> float:
        z = design @ t
        return float(weights @ (np.logaddexp(0, z) - target * z))

    value = loss(theta)
    for _ in range(100):
        p = expit(design @ theta)
        gradient = design.T @ (weights * (p - target))
        hessian = design.T @ (design * (weights * p * (1 - p))[:, None])
        step = np.linalg.solve(hessian + 1e-10 * np.trace(hessian) * np.eye(2), gradient)
        length = 1.0
        while length > 1e-10 and loss(theta - length * step) > value:
            length /= 2
        theta = theta - length * step
        previous, value = value, loss(theta)
        if previous - value <= 1e-12 * abs(value):
            break
    return float(theta[0] / scale), float(theta[1])


def threshold_shift(slope: float, weight_ratio: float) -> float:
    """How far class weights move the threshold.

    With ``P = sigmoid(slope * f + B)``, weighing the negative class `weight_ratio` times as much as
    the positive one moves the best threshold by ``log(weight_ratio) / slope``.
    """
    return float(np.log(weight_ratio) / max(slope, LEAST_SLOPE))
