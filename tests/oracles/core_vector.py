"""Naive L2-SVMs under constraints, and the minimum enclosing ball, on the whole matrix."""

from typing import NamedTuple

import numpy as np
import scipy.linalg
from scipy.optimize import minimize, nnls


class Machine(NamedTuple):
    alpha: np.ndarray
    objective: float  # of the dual
    primal: float
    intercept: float
    scores: np.ndarray  # w'phi(x) of all rows
    norm: float


def l2_svm(K, y, C=1.0, weights=None, constraints=None):
    """Solve eq. (1) of MCS-06 by non-negative least squares.

    `constraints`, of shape (n, s), are the expansions that w must be orthogonal to.
    """
    w = np.ones(len(y)) if weights is None else weights
    projected = K
    if constraints is not None and constraints.shape[1]:
        KU = K @ constraints
        projected = K - KU @ np.linalg.solve(constraints.T @ KU, KU.T)
    Q = np.outer(y, y) * (projected + 1.0) + np.diag(1 / (C * w))
    L = np.linalg.cholesky(Q)
    alpha, _ = nnls(L.T, scipy.linalg.solve_triangular(L, np.ones(len(y)), lower=True))
    c = y * alpha
    scores, b = projected @ c, c.sum()
    squared_norm = max(c @ scores, 0.0)
    slacks = np.maximum(1 - y * (scores + b), 0.0)
    primal = squared_norm + b**2 + C * w @ slacks**2
    return Machine(alpha, 2 * alpha.sum() - alpha @ Q @ alpha, primal, b, scores, squared_norm**0.5)


def l2_svms(K, y, n_machines, constraint, C=1.0, weights=None):
    """Machines one after another, as in MCS-06."""
    w = np.ones(len(y)) if weights is None else weights
    constraints = np.zeros((len(y), 0))
    expansions = np.zeros((len(y), 0))
    machines = []
    for _ in range(n_machines):
        machine = l2_svm(K, y, C, weights, constraints)
        machines.append(machine)
        KU = K @ constraints
        along = np.linalg.solve(constraints.T @ KU, KU.T @ (y * machine.alpha))
        expansion = y * machine.alpha - constraints @ along
        expansions = np.column_stack([expansions, expansion])
        if constraint == "orthogonal":
            new = expansion / machine.norm
        else:
            mean = w @ machine.scores / w.sum() if constraint.endswith("centred") else 0.0
            new = w * (machine.scores - mean) / machine.norm
        constraints = np.column_stack([constraints, new])
    return machines


def on_simplex(Q, linear):
    """Minimise ``a'Qa - linear'a`` on the simplex: guess which weights are above zero.

    The guess is corrected until the optimality conditions hold; None if they never do.
    """
    is_above = np.ones(len(Q), dtype=bool)
    for _ in range(100):
        n, a = int(is_above.sum()), np.zeros(len(Q))
        one = np.ones((n, 1))
        system = np.block([[2 * Q[np.ix_(is_above, is_above)], -one], [one.T, np.zeros((1, 1))]])
        *a[is_above], shift = np.linalg.solve(system, np.append(linear[is_above], 1.0))
        slope = 2 * Q @ a - linear - shift
        is_wrong = np.where(is_above, a < 0, slope < -1e-12 * np.abs(linear).max())
        if not is_wrong.any():
            return a
        is_above ^= is_wrong
    return None


def enclosing_ball(K, C=np.inf, weights=1.0):
    """``R^2 + C sum(w xi^2)`` of the smallest ball, and the weights of its centre."""
    n = len(K)
    Q = K + np.diag(np.full(n, 0.25 / C) / weights)
    a = on_simplex(Q, K.diagonal()) if np.linalg.cond(Q) < 1e10 else None
    if a is not None:
        return a @ K.diagonal() - a @ Q @ a, a
    found = minimize(
        lambda a: a @ Q @ a - a @ K.diagonal(),
        np.full(n, 1 / n),
        jac=lambda a: 2 * Q @ a - K.diagonal(),
        bounds=[(0, None)] * n,
        constraints={"type": "eq", "fun": lambda a: a.sum() - 1, "jac": lambda a: np.ones(n)},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    return -found.fun, found.x


def core_set_steps(Q, alpha, gradient, *, tol, max_steps):
    """Change two multipliers per step, in place, as in core/src/core_set.cpp."""
    for step in range(max_steps + 1):
        slope = 1 - gradient
        violation = np.where(alpha > 0, np.abs(slope), slope)
        i = violation.argmax()
        if violation[i] <= tol or step == max_steps:
            break
        q, diagonal = Q[i], Q.diagonal()
        determinant = np.maximum(diagonal[i] * diagonal - q * q, 1e-12 * diagonal[i] * diagonal)
        change = diagonal[i] * slope - q * slope[i]
        gain = np.where((change > 0) | (alpha > 0), change**2 / determinant, 0.0)
        gain[i] = 0.0
        two = [i, gain.argmax()]
        target, _ = nnls(
            np.linalg.cholesky(Q[np.ix_(two, two)]).T,
            np.linalg.solve(
                np.linalg.cholesky(Q[np.ix_(two, two)]),
                slope[two] + Q[np.ix_(two, two)] @ alpha[two],
            ),
        )
        gradient += (target - alpha[two]) @ Q[two]
        alpha[two] = target
    return step, max(violation[i], 0.0)
