"""Random numbers that are the same for every fit, unless the user asks for others."""

from __future__ import annotations

import numpy as np
from sklearn.utils import check_random_state


def random_numbers(random_state: int | np.random.RandomState | None) -> np.random.RandomState:
    """Turn ``random_state`` into a generator; None always gives the same one.

    A model that changes from fit to fit, on the same rows, is a surprise and not a feature. How
    much another shuffle would change it is for the user to ask, by a number.

    Parameters
    ----------
    random_state : int, RandomState instance or None
        As scikit-learn takes it, but for None.

    Examples
    --------
    >>> from hardmargin.randomness import random_numbers
    >>> random_numbers(None).randint(10, size=3) == random_numbers(None).randint(10, size=3)
    array([ True,  True,  True])
    """
    generator: np.random.RandomState = check_random_state(
        0 if random_state is None else random_state
    )
    return generator
