"""How many rows to fit in limited time: with a clock of the tests, and costs that they make up."""

import math
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problems.clock import Clock

from hardmargin.monitor import Monitor
from hardmargin.selection import growing
from hardmargin.selection.growing import Growth, growing_sizes, next_size, power

N_ROWS = 100_000
ALL = Growth(N_ROWS, N_ROWS - 2_000)


def grown(cost, max_seconds, growth=ALL):
    """Sizes, whether each was finished, and the time left; fits are stopped at the limit."""
    clock = Clock()
    monitor = Monitor(max_seconds, clock=clock)
    sizes, finished = [], []
    for size in growing_sizes(growth, monitor):
        sizes.append(size)
        finished.append(cost(size) < monitor.seconds_left)
        clock.now = min(clock.now + cost(size), max_seconds)
    return sizes, finished, max_seconds - clock.now


def law(constant, factor, exponent):
    return lambda size: constant + factor * (size / 1_000) ** exponent


LAWS = st.builds(law, st.floats(0, 1), st.floats(1e-3, 1), st.floats(0.3, 2.0))


@settings(deadline=None)
@given(LAWS, st.floats(1e-3, 1e4), st.integers(1, 10**7))
def test_it_ends_in_time(cost, max_seconds, n_rows):
    sizes, finished, left = grown(cost, max_seconds, Growth(n_rows, n_rows))
    assert left >= 0
    assert sizes[0] == min(growing.FIRST_ROWS, n_rows)
    assert all(finished[1:])  # what the first fit takes is not known before
    assert sizes[-1] <= n_rows


@settings(deadline=None)
@given(LAWS, st.floats(1e-3, 1e4))
def test_the_time_is_used(cost, max_seconds):
    sizes, finished, left = grown(cost, max_seconds)
    assert all(b >= 1.2 * a or b == N_ROWS for a, b in pairwise(sizes))
    more = growing.LEAST_GROWTH**growing.MOST_POWER
    enough = growing.SAFETY * more * cost(sizes[-1])
    is_largest = sizes[-1] * growing.LEAST_GROWTH > ALL.largest_part
    assert sizes[-1] == N_ROWS or is_largest or left <= enough or not finished[0]


@given(st.floats(0.5, 4.0))
def test_costs_that_explode_end_in_time(exponent):
    sizes, finished, left = grown(law(0, 1e-3, exponent), 10.0)
    assert left >= 0
    assert finished[0]
    assert sizes == sorted(sizes)


def test_enough_time_takes_the_shortest_way():
    assert grown(law(0.1, 0.1, 2.0), 1e6)[0] == [250, N_ROWS]


def test_no_time_for_the_first_fit_is_the_end():
    assert grown(law(1.0, 0, 1), 0.5)[0] == [250]


def test_few_rows_are_all_there_is():
    assert grown(law(0.1, 0.1, 1), 10.0, Growth(100, 90))[0] == [100]


def test_the_last_fit_has_as_many_rows_as_fit():
    size = next_size([(1_000, 1.0), (3_000, 9.0)], ALL, 9.0 * growing.SAFETY * 2.0**2)
    assert size == pytest.approx(6_000, abs=1)


def test_rows_grow_by_a_factor_while_there_is_time():
    assert next_size([(1_000, 1.0), (3_000, 9.0)], ALL, 1_000.0) == 9_000


def test_all_rows_come_last():
    growth = Growth(8_000, 7_200)
    assert next_size([(1_000, 1.0), (3_000, 9.0)], growth, 90.0) == 8_000
    assert next_size([(1_000, 1.0), (8_000, 9.0)], growth, 90.0) is None


def test_a_small_gain_is_not_worth_a_fit():
    assert next_size([(1_000, 1.0), (3_000, 9.0)], ALL, 10.0) is None


def test_parts_have_a_limit():
    growth = Growth(N_ROWS, 4_000)
    assert next_size([(1_000, 1.0), (3_000, 9.0)], growth, 1_000.0) == 4_000
    assert next_size([(3_000, 9.0), (4_000, 16.0)], growth, 1_000.0) is None
    assert next_size([(3_000, 9.0), (4_000, 16.0)], growth, 16.0 * 1.3 * 26**2) == N_ROWS


def test_all_rows_may_cost_more_than_a_part():
    fits, seconds = [(1_000, 1.0), (3_000, 9.0)], 9.0 * growing.SAFETY * 4.0
    assert next_size(fits, Growth(4_000, 3_800), seconds) == 4_000
    assert next_size(fits, Growth(4_000, 3_800, cost_of_all=5.0), seconds) == 3_800
    assert next_size(fits, Growth(4_000, 3_800, cost_of_all=0.1), 9.0) == 4_000


def test_a_thousand_rows_follow_the_first_fit_where_most_of_its_time_is_constant():
    """What 1,000 rows took: a tenth of a second for 250, and .4 for all."""
    growth = Growth(1_000, 900, fixed_rows=growing.FIXED_ROWS)
    assert grown(law(0.08, 0.32, 2.0), 1.0, growth)[0] == [250, 1_000]
    assert grown(law(0.08, 0.32, 2.0), 0.3, growth)[0][-1] < 1_000


def test_what_a_fit_of_any_size_takes_counts_after_the_first_fit_alone():
    plain, fixed = Growth(8_000, 7_200), Growth(8_000, 7_200, fixed_rows=growing.FIXED_ROWS)
    assert next_size([(250, 0.1)], fixed, 0.5) > next_size([(250, 0.1)], plain, 0.5)
    fits = [(250, 0.1), (750, 0.2)]
    assert next_size(fits, fixed, 1.0) == next_size(fits, plain, 1.0)


def test_all_rows_come_next_if_there_is_no_time_for_them_after_a_part():
    fits, growth = [(1_000, 1.0), (3_000, 9.0)], Growth(12_000, 11_000)
    assert next_size(fits, growth, 9.0 * growing.SAFETY * 4.0**2) == 12_000
    assert next_size(fits, growth, 9.01 * growing.SAFETY * (4.0**2 + 3.0**2)) == 9_000


def test_the_power_is_estimated_with_care():
    assert power([(250, 0.1)]) == growing.USUAL_POWER
    assert power([(250, 0.1), (750, 0.1)]) == growing.LEAST_POWER
    assert power([(1_000, 1.0), (3_000, 3.0)]) == pytest.approx(1.0 + growing.MARGIN)
    assert power([(1_000, 1.0), (3_000, 9.0)]) == pytest.approx(2.0)
    assert power([(1_000, 1.0), (3_000, 3.0**2.2)]) == pytest.approx(2.2)
    assert power([(1_000, 1.0), (3_000, 1e6)]) == growing.MOST_POWER
    assert math.isfinite(power([(1_000, 0.0), (3_000, 0.0)]))


def test_fits_that_take_no_time():
    assert grown(lambda size: 0.0, 1.0)[0][-1] == N_ROWS


def test_fits_whose_time_grows_in_proportion_reach_all_rows_sooner():
    fits = [(750, 0.05), (2_250, 0.3)]
    quadratic = next_size(fits, Growth(100_000, 98_000), 60.0)
    linear = Growth(100_000, 98_000, linear_above=10_000, linear_from=4_000)
    assert quadratic == 6_750
    assert next_size(fits, linear, 60.0) == 100_000
    # As long as 4,000 rows of the usual kind, 25 times: about 24 seconds, and some to be safe.
    assert next_size(fits, linear, 20.0) < 100_000


def test_a_fit_of_all_rows_that_can_be_stopped_needs_time_for_a_share_of_it():
    fits = [(750, 0.05), (2_250, 0.3)]
    linear = Growth(100_000, 98_000, linear_above=10_000, linear_from=4_000, least_share=0.1)
    assert next_size(fits, linear, 4.0) == 100_000
    assert next_size(fits, linear, 2.0) < 100_000
