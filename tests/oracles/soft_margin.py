"""Naive C-SVM: a duality gap that proves an answer, and a general optimiser that finds one."""

import numpy as np
from scipy.optimize import minimize


def duality_gap(K, y, w, C, alpha, intercept):
    """Primal minus dual objective, zero at the optimum only; infinite if not feasible."""
    if (np.abs(alpha - C * w / 2) > C * w * (0.5 + 1e-9)).any():
        return np.inf
    if abs(alpha @ y) > 1e-9 * max(alpha.sum(), 1e-300):
        return np.inf
    f = K @ (alpha * y) + intercept
    norm = (alpha * y) @ K @ (alpha * y)
    slacks = np.maximum(0.0, 1.0 - y * f)
    return norm / 2 + C * (w @ slacks) - (alpha.sum() - norm / 2)


def soft_margin(K, y, w, C):
    """Multipliers by sequential quadratic programming: few digits, and few rows."""
    Kt = np.outer(y, y) * K
    found = minimize(
        lambda a: C * (a @ Kt @ a / 2) - a.sum(),  # of alpha / C, so that steps have one scale
        np.zeros(len(y)),
        jac=lambda a: C * (Kt @ a) - 1,
        bounds=[(0.0, weight) for weight in w],
        constraints={"type": "eq", "fun": lambda a: a @ y, "jac": lambda a: y},
        method="SLSQP",
        options={"maxiter": 1000, "ftol": 1e-14},
    )
    return C * np.clip(found.x, 0.0, w)


def dual_objective(K, y, alpha):
    return alpha.sum() - (alpha * y) @ K @ (alpha * y) / 2


def leave_one_out_bound(K, y, alpha, intercept):
    """Share of rows whose score has the wrong sign, or none, without their own term."""
    f = K @ (alpha * y) + intercept
    return np.mean(y * f <= alpha * K.diagonal())
