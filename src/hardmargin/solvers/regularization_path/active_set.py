"""The SVM of one C by an active set: used where the regularisation path is blocked.

From any multipliers within their bounds, with E the rows that should be on the margin:

1. If there is a bias and E is empty, stop if some b puts all rows on the right side. Otherwise the
   row with the largest lower limit on b joins E, and b moves to that limit.
2. Go to where E is on the margin. If a multiplier reaches a bound on the way, its row leaves E; go
   to step 1.
3. Stop when no row is on the wrong side by more than the tolerance, which grows with the steps.
   Otherwise the row that is furthest on it joins E; go to step 1.
"""

from __future__ import annotations

from contextlib import suppress

import numpy as np

from hardmargin.monitor import Monitor
from hardmargin.solvers.regularization_path.state import MarginState, Stuck


def solved_anew(state: MarginState, monitor: Monitor, ratio: float = 1.0) -> MarginState:
    """Return the solution at `ratio` times the C of a state, as accurate as rounding allows.

    Raises Stopped if time runs out.
    """
    start = state.rescaled(ratio, monitor)
    with suppress(Stuck):
        optimise(start, max(200, 4 * len(start.y)), monitor)
    start.refresh()
    return start


def optimise(state: MarginState, max_steps: int, monitor: Monitor) -> None:
    """Improve a state until no row is on the wrong side; the tolerance grows with the steps."""
    for step in range(max_steps):
        monitor.check()
        # 1. A first row.
        if state.elbow.size == 0 and state.conditions.has_bias and not _seed_elbow(state):
            return
        # 2. Towards the margin.
        blocked = state.towards_margin()
        if blocked is not None:
            state.leave(blocked)
            continue
        # 3. The row that is furthest on the wrong side.
        slack = state.slack()
        worst = int(slack.argmin())
        if slack[worst] >= -state.conditions.tolerance * 10.0 ** (4 * step // max_steps - 1):
            return
        state.enter(worst)
    raise Stuck


def _seed_elbow(state: MarginState) -> bool:
    """Put a row into an empty elbow; False if a bias suits all rows without one."""
    lower, upper = state.bias_limits()
    least, largest = lower.max(initial=-np.inf), upper.min(initial=np.inf)
    if least <= largest:
        state.shift(min(max(state.b, least), largest) - state.b)
        return False
    state.shift(float(least) - state.b)
    state.enter(int(lower.argmax()))
    return True
