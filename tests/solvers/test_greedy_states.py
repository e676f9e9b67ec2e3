"""States of greedy machines: bytes that do not fit are not taken, whatever they say."""

import numpy as np
import pytest
from problems.greedy_core import WAYS, run, signed, state_after
from problems.processes import output_of


@pytest.mark.parametrize("way", WAYS)
def test_a_state_is_taken_by_the_machine_that_kept_it(way):
    whole, state = run(**WAYS[way]), state_after(9, **WAYS[way])
    assert signed(state[:-8]) == state
    assert len(run(state, **(WAYS[way] | {"max_stages": 0})).rows) == 9  # it does not begin anew
    resumed = run(state, **WAYS[way])
    np.testing.assert_array_equal(resumed.rows, whole.rows)
    np.testing.assert_array_equal(resumed.steps, whole.steps)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("other", WAYS)
def test_states_of_other_rules_are_not_taken(way, other):
    if way == other:
        return
    result, expected = run(state_after(9, **WAYS[other]), **WAYS[way]), run(**WAYS[way])
    np.testing.assert_array_equal(result.rows, expected.rows)
    np.testing.assert_array_equal(result.multipliers, expected.multipliers)


@pytest.mark.parametrize("n_missing", [1, 8, 100])
def test_a_state_without_its_end_is_not_taken(n_missing):
    state = state_after(9)
    for wrong in (signed(state[: -8 - n_missing]), signed(state[:-8] + bytes(n_missing))):
        np.testing.assert_array_equal(run(wrong).rows, run().rows)
        assert len(run(wrong, max_stages=0).rows) == 0


DAMAGE = """
import struct
from problems.greedy_core import WAYS, run, signed, state_after

for way, n_stages in [(way, n) for way in WAYS for n in (9, 30)]:
    content = state_after(n_stages, **WAYS[way])[:-8]
    for at in range(8, len(content) - 7, 4):
        for number in (b"\\xff" * 8, struct.pack("<Q", 10**12), struct.pack("<ii", 61, -7)):
            damaged = signed(content[:at] + number + content[at + 8 :])
            try:
                run(damaged, **WAYS[way])
            except ValueError as error:  # only what is said about kernels with such gradients
                assert "finite" in str(error), error
print("alive")
"""


def test_no_damage_crashes_the_interpreter():
    assert output_of(DAMAGE).strip() == "alive"
