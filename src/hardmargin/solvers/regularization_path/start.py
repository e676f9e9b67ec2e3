r"""Where the regularisation path of the C-SVM begins (sections 3.1 and 3.2 of Hastie et al., 2004).

For small C all rows of the smaller class have a slack, and multipliers are C times the solution of

.. math:: \min_\theta \tfrac12 \Big\| \sum_i \theta_i y_i \varphi(x_i) \Big\|^2
          \quad : \quad 0 \le \theta_i \le w_i, \ \sum_i \theta_i y_i = 0,

where :math:`\theta_i = w_i` in the smaller class. This needs no general solver, only other events:
with all of the larger class at its bounds too, only the sum is wrong. As the sum falls to its
proper value, rows leave their bounds one after another.

Without a bias there is nothing to share: all rows start at their bounds, with f = 0.
"""

from __future__ import annotations

import numpy as np

from hardmargin.monitor import Monitor
from hardmargin.solvers.regularization_path.active_set import solved_anew
from hardmargin.solvers.regularization_path.elbow import Elbow
from hardmargin.solvers.regularization_path.events import Event, next_event
from hardmargin.solvers.regularization_path.state import (
    Conditions,
    Direction,
    MarginState,
    Stuck,
    product,
)

#: Events between evaluations from scratch, and the limit on events per row.
_REFRESH_EVERY, _STAGES_PER_ROW = 100, 20

#: Violations here are multiplied by C later on, so these tolerances are much smaller.
_MAX_VIOLATION, _TOLERANCE = 1e-12, 1e-14


def first_event(conditions: Conditions, room: float, monitor: Monitor) -> tuple[MarginState, Event]:
    """Return the solution at C = 0, and the first event; raise Stopped if time runs out."""
    y = conditions.y
    shared = share_excess(conditions, monitor) if conditions.has_bias else None
    if shared is None:
        state = MarginState(conditions, -np.abs(y), level=0.0)
        return state, next_event(state, room)
    smaller = (y != 0) & (shared.y == 0)
    side, bias = np.where(smaller, -1.0, shared.side), float(np.sign(shared.y.sum()))
    state = MarginState(conditions, side, level=0.0, bias=bias, elbow=shared.elbow)
    if state.elbow.size == 0:
        return state, next_event(state, room)
    rows = state.elbow.rows
    d = Direction(shared.b, shared.alpha[rows] * y[rows], shared.f)
    # Rows of the larger class keep their places; the others start at y f = -1.
    speed = np.where(smaller, y * shared.f, 0.0)
    times = np.full(len(speed), np.inf)
    np.divide(2.0, speed, out=times, where=speed > 0)
    row = int(times.argmin())
    return state, Event(d, min(float(times[row]), room), row if times[row] < room else -1)


def share_excess(conditions: Conditions, monitor: Monitor) -> MarginState | None:
    """Share the weight of the smaller class among the rows of the larger.

    Multipliers of the solution are theta of the larger class, and its labels are zero elsewhere.
    Returns None where both classes weigh the same.
    """
    K, y, w = conditions.K, conditions.y, conditions.w
    excess = float((w * y).sum())
    if abs(excess) <= 1e-12 * float(w.sum()):
        return None
    sign = float(np.sign(excess))
    larger = y == sign
    of_smaller = np.where(larger, 0.0, w * y)
    of_start = Conditions(
        K,
        np.where(larger, sign, 0.0),
        w,
        margin=0.0,
        growth=0.0,
        total_rate=-sign,
        offset=product(K, of_smaller),
        tolerance=_TOLERANCE,
    )
    total = sign * float(w[larger].sum())
    state = MarginState(of_start, np.where(larger, -1.0, 0.0), level=1.0, total=total)
    try:
        _let_sum_fall(state, abs(excess), monitor)
        state.refresh()
        if state.violation() <= _MAX_VIOLATION:
            return state
    except Stuck:
        pass
    state.require_total(-float(of_smaller.sum()))
    guess = _first_guess(of_start, abs(excess))
    both = solved_anew(state, monitor), solved_anew(guess, monitor)
    return min((state, *both), key=MarginState.violation)


def _let_sum_fall(state: MarginState, excess: float, monitor: Monitor) -> None:
    """Let the sum of c fall by the excess, from one event to the next."""
    left = excess
    for stage in range(_STAGES_PER_ROW * np.count_nonzero(state.y)):
        monitor.check()
        if state.elbow.size == 0:
            below = np.flatnonzero(state.is_below)
            if len(below) == 0:
                return
            row = int(below[(state.y * state.f)[below].argmax()])
            state.shift(-float(state.f[row]))
            state.enter(row)
        d, step, row = next_event(state, left)
        state.move(d, step)
        left -= step
        if row < 0:
            return
        state.change_place(row)
        if left <= 1e-13 * excess:
            return
        if stage % _REFRESH_EVERY == _REFRESH_EVERY - 1:
            state.refresh_all()
            state.correct()
    raise Stuck


def _first_guess(conditions: Conditions, excess: float) -> MarginState:
    """Share the sum among the last rows."""
    y, w = conditions.y, conditions.w
    rows = np.flatnonzero(y)
    kept = np.cumsum(w[rows]) > excess
    first = int(rows[kept.argmax()])
    alpha, side = np.zeros(len(y)), np.zeros(len(y))
    alpha[rows], side[rows] = np.where(kept, w[rows], 0.0), np.where(kept, -1.0, 1.0)
    over = float(w[rows][: kept.argmax() + 1].sum()) - excess
    alpha[first], side[first] = min(over, float(w[first])), 0.0
    elbow, total = Elbow.of(conditions.K, np.array([first])), float((alpha * y).sum())
    return MarginState(conditions, side, level=1.0, total=total, alpha=alpha, elbow=elbow)
