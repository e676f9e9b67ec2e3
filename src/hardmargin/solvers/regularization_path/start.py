r"""Where the regularisation path of the C-SVM begins (section 3.2 of Hastie et al., JMLR 2004).

For small C all rows of the smaller class have a slack, and multipliers are C times the solution of

.. math:: \min_\theta \tfrac12 \Big\| \sum_i \theta_i y_i \varphi(x_i) \Big\|^2
          \quad : \quad 0 \le \theta_i \le w_i, \ \sum_i \theta_i y_i = 0,

where :math:`\theta_i = w_i` in the smaller class. This takes no general solver, but another path:
with all of the larger class at its bounds too, only the sum is wrong, and while that falls to what
it should be, rows leave their bounds one after another.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import numpy as np

from hardmargin.kernels import FloatArray
from hardmargin.solvers.regularization_path.state import MarginState, Stuck, product

#: Events between evaluations from scratch, and the events that should do, a row.
_REFRESH_EVERY, _STAGES_A_ROW = 100, 20

#: Violations here grow with C along the path.
_MAX_VIOLATION = 1e-12


class OutOfTime(Exception):
    """There was no time to find the start."""


def share_excess(
    K: FloatArray,
    y: FloatArray,
    w: FloatArray,
    keep_going: Callable[[int, float], bool],
) -> MarginState | None:
    """Share the weight of the smaller class among the rows of the larger.

    Parameters
    ----------
    K : (n, n) array
        Kernel matrix.
    y : (n,) array
        +1, -1, and 0 for rows that take no part.
    w : (n,) array
        Weights.
    keep_going : callable
        Called with (0, 0.0) at every event; OutOfTime is raised when it says no.

    Returns
    -------
    MarginState or None
        Its multipliers are theta of the larger class, its labels zero elsewhere; None where both
        classes weigh the same.
    """
    excess = float((w * y).sum())
    if abs(excess) <= 1e-12 * float(w.sum()):
        return None
    sign = float(np.sign(excess))
    larger = y == sign
    offset = product(K, np.where(larger, 0.0, w * y))
    state = MarginState(K, np.where(larger, sign, 0.0), w, offset)
    state.side = np.where(larger, -1.0, 0.0)
    state.total, state.total_rate = sign * float(w[larger].sum()), -sign
    state.refresh()
    left = abs(excess)
    try:
        for stage in range(_STAGES_A_ROW * int(larger.sum())):
            if not keep_going(0, 0.0):
                raise OutOfTime
            if state.elbow.size == 0:
                below = np.flatnonzero(state.is_below)
                if len(below) == 0:
                    break
                row = int(below[(sign * state.f[below]).argmax()])
                state.shift(-float(state.f[row]))
                state.enter(row)
            d = state.direction()
            step, row = state.next_event(d, left)
            state.move(d, step)
            left -= step
            if row < 0:
                break
            state.change_place(row)
            if left <= 1e-13 * abs(excess):
                break
            if stage % _REFRESH_EVERY == _REFRESH_EVERY - 1:
                state.refresh()
                state.elbow.refresh()
                state.correct()
        else:
            raise Stuck
        state.refresh()
        if state.violation() <= _MAX_VIOLATION:
            return state
    except Stuck:
        pass
    state.total = -float(np.where(larger, 0.0, w * y).sum())
    guess = _first_guess(state, offset, abs(excess))
    return min((state, _improved(state), _improved(guess)), key=MarginState.violation)


def _first_guess(state: MarginState, offset: FloatArray, excess: float) -> MarginState:
    """Share the sum among the last rows."""
    state = MarginState(state.K, state.y, state.w, offset)
    rows = np.flatnonzero(state.y)
    kept = np.cumsum(state.w[rows]) > excess
    state.side[rows] = np.where(kept, -1.0, 1.0)
    first = int(rows[kept.argmax()])
    over = float(state.w[rows][: kept.argmax() + 1].sum()) - excess
    state.enter(first)
    state.alpha[first] = min(over, float(state.w[first]))
    state.total = float(state.coefficients().sum())
    state.refresh()
    return state


def _improved(start: MarginState) -> MarginState:
    """Go on with an active set, as far as rounding lets it."""
    state = MarginState(start.K, start.y, start.w, start.offset)
    state.copy_of(start)
    with suppress(Stuck):
        state.rebuild()
        state.optimise(max(200, 4 * len(state.y)))
    state.refresh()
    return state
