r"""The direction of a regularisation path at a solution, and the next event along it.

While C grows and no row changes its place, the solution is linear in C: rows below the margin pull
with :math:`h = \sum_{below} w_i y_i K_i`, and the elbow answers with

.. math:: K_{EE}\,\dot c_E + \dot b = -h_E, \qquad \sum \dot c_E = -\sum_{below} w_i y_i.

Ties make steps of length zero. They are broken by Harris's rule: among the events within the
tolerance, that of the fastest row is chosen.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hardmargin.solvers.regularization_path.state import Direction, MarginState

_EPS = float(np.finfo(np.float64).eps)


class Event(NamedTuple):
    """Where the way leads, how far, and the row that changes its place there; -1 for none."""

    direction: Direction
    step: float
    row: int


def next_event(state: MarginState, room: float) -> Event:
    """Find the next event, up to the end of the room; with an empty elbow b may change at once."""
    if state.elbow.size == 0 and state.conditions.has_bias:
        return _free_bias(state, room)
    d, noise = direction(state)
    rows, n, growth = state.elbow.rows, len(state.y), state.conditions.growth
    w, alpha = state.w[rows], state.alpha[rows]
    rates = d.elbow * state.y[rows]
    # One kind of event each: rows reach the margin; elbow rows reach zero, or their upper bound.
    slack = np.concatenate([state.slack(), alpha, state.level * w - alpha])
    speed = np.concatenate([-state.side * state.y * d.f, -rates, rates - growth * w])
    least = np.concatenate([np.full(n, noise), 64 * _EPS * w, 64 * _EPS * w])
    unit = np.concatenate([np.full(n, 1.0 / (state.level or 1.0)), w, w])
    moving = np.flatnonzero(speed > least)
    slack, speed, unit = np.maximum(slack[moving], 0.0), speed[moving], unit[moving]
    times = slack / speed
    if times.min(initial=np.inf) >= room:
        return Event(d, room, -1)
    allowed = slack + state.conditions.tolerance * state.level * unit
    near = np.flatnonzero(times <= (allowed / speed).min())
    chosen = near[(speed[near] / unit[near]).argmax()]
    index = moving[chosen] - n
    row = moving[chosen] if index < 0 else rows[index % len(rows)]
    return Event(d, min(float(times[chosen]), room), int(row))


def direction(state: MarginState) -> tuple[Direction, float]:
    """How the solution moves while every row keeps its place, and the rounding of its rates.

    With a bias, the elbow must not be empty.
    """
    rows, elbow, pull = state.elbow.rows, state.elbow, state.pull
    total = state.conditions.total_rate - state.pull_total
    has_bias = state.conditions.has_bias
    db, dc = elbow.solve(total, -pull[rows])
    df = elbow.expand(dc) + pull + db
    noise = 64 * _EPS * float(np.abs(pull).max() + abs(db) + np.abs(dc).sum())
    for _ in range(3):
        residual = df[rows]
        is_balanced = not has_bias or abs(dc.sum() - total) <= noise
        if np.abs(residual).max(initial=0.0) <= noise and is_balanced:
            break
        more_b, more_c = elbow.solve(total - dc.sum(), -residual)
        db, dc = db + more_b, dc + more_c
        df = elbow.expand(dc) + pull + db
    df[rows] = 0.0
    return Direction(db, dc, df), noise


def _free_bias(state: MarginState, room: float) -> Event:
    """Go to where the limits that the rows set on b meet; a new elbow begins there.

    Limits from above are concave in C, those from below convex: so b may go straight there. If the
    room ends before, any b between the limits is optimal, and the middle is taken.
    """
    lower, upper = state.bias_limits()
    # f without bias grows by the pull, and the limits fall by it.
    pull, step, largest = state.pull, room, float(np.abs(state.pull).max())
    for _ in range(len(lower)):
        low, high = lower - step * pull, upper - step * pull
        i, j = int(low.argmax()), int(high.argmin())
        rounding = 1e-14 * (1.0 + step * largest)
        if not low[i] > high[j] + rounding:
            break
        closing = pull[j] - pull[i]
        sooner = max((upper[j] - lower[i]) / closing, 0.0) if closing > 0 else 0.0
        if sooner >= step:
            break
        step = sooner
    low_end, high_end = lower[i] - step * pull[i], upper[j] - step * pull[j]
    meets = step < room
    middle = (low_end + high_end) / 2
    if not np.isfinite(middle):  # only one side has limits
        middle = min(max(state.b, low_end), high_end)
    change = float(low_end if meets else middle) - state.b
    if step == 0.0:
        state.shift(change)
    rate = change / step if step else 0.0
    return Event(Direction(rate, np.zeros(0), pull + rate), step, i if meets else -1)
