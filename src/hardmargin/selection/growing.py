"""How many rows to fit when time is limited: few at first, then more.

1. The first fit is of few rows.
2. The time of the fits so far predicts the time of a larger one: seconds grow as a power of the
   rows. The power is estimated from the last two fits, with a margin; after one fit it is assumed
   to be two, on top of what a fit of any size takes.
3. All rows come next if they fit in the time left even at the highest power, or if they fit at the
   estimated one but not after another part, or if a fit of all rows is worth having even when it is
   cut short, and there is time for a share of it. Otherwise the rows grow by a factor. If there
   would be no time for another fit after that, the next fit has as many rows as the time allows, or
   all.
4. It ends with a fit of all rows, or when the time left does not allow clearly more rows.

A prediction can be wrong: the caller then stops the fit at the limit, and keeps an earlier one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from hardmargin.monitor import Monitor
from hardmargin.selection.folds import ROWS_PER_CLASS

#: Rows of the first fit.
FIRST_ROWS = 250

#: How the rows grow, and the least growth that is worth another fit.
FACTOR = 3.0
LEAST_GROWTH = 1.25

#: The power of the rows by which seconds grow: the usual one of large fits, and the range.
USUAL_POWER = 2.0
LEAST_POWER = 1.3
MOST_POWER = 2.5

#: What is added to an estimated power below the usual one. Small fits have a large constant part,
#: which hides how steeply the rest grows: this covers the sum of a constant and a square.
MARGIN = 0.7

#: What a fit of any size takes, in rows: as long as the rest of a fit of about this many. (By fits:
#: 1,000 rows of 20 to 100 columns and two to four classes take 1.7 to 5 times as long as 250.)
FIXED_ROWS = 500

#: Share of the rows that is set aside to compare models, and the most rows.
SHARE_ASIDE = 0.1
MAX_ROWS_ASIDE = 2_000

#: A first fit of more than this share of the rows would save too little time.
LARGEST_FIRST_SHARE = 0.5

#: The time left must be this many times the prediction.
SAFETY = 1.3

#: Shorter times count as this, in seconds.
LEAST_SECONDS = 1e-6

#: More fits than any number of rows needs.
MAX_FITS = 64


@dataclass(frozen=True)
class Growth:
    """What a fit can grow to.

    Attributes
    ----------
    n_rows : int
        All rows.
    largest_part : int
        The most rows of a fit that is not of all rows.
    first : int
        Rows of the first fit.
    cost_of_all : float
        All rows may be fitted in another way than a part: the time that this takes, relative to
        that of a part with as many rows.
    linear_above : int or None
        Fits of more rows than this take time in proportion to their rows.
    linear_from : int
        Such a fit takes as long per row as a fit of this many rows.
    least_share : float
        A linear fit of all rows is worth beginning if there is time for this share of it.
    fixed_rows : int
        What a fit of any size takes, as long as only one fit is known: see `FIXED_ROWS`.
    """

    n_rows: int
    largest_part: int
    first: int = FIRST_ROWS
    cost_of_all: float = 1.0
    linear_above: int | None = None
    linear_from: int = 1
    least_share: float = 1.0
    fixed_rows: int = 0

    @classmethod
    def to(
        cls, n_rows: int, n_classes: int, most_of_part: int | None = None, cost_of_all: float = 1.0
    ) -> Growth | None:
        """Say how to grow to all rows of a table; None if they are too few to begin with less.

        Parameters
        ----------
        n_rows, n_classes : int
            Of the table.
        most_of_part : int, optional
            The most rows that are worth fitting if not all are.
        cost_of_all : float
            As in `Growth`.
        """
        first = max(FIRST_ROWS, ROWS_PER_CLASS * n_classes)
        if first > LARGEST_FIRST_SHARE * n_rows:
            return None
        most = n_rows - min(math.ceil(SHARE_ASIDE * n_rows), MAX_ROWS_ASIDE)
        most = max(min(most, n_rows if most_of_part is None else most_of_part), first)
        return cls(n_rows, most, first, cost_of_all, fixed_rows=FIXED_ROWS)

    def linear(self, above: int, like: int, least_share: float = 1.0) -> Growth:
        """Return the same where time is in proportion to the rows, above some number of them."""
        return replace(
            self, linear_above=above, linear_from=like, least_share=least_share, fixed_rows=0
        )

    def work(self, size: float, power: float) -> float:
        """Return what a fit takes, in units of a fit of one row."""
        if self.linear_above is None or size <= self.linear_above:
            return math.pow(size, power) + math.pow(self.fixed_rows, power)
        return math.pow(self.linear_from, power - 1) * size

    def affordable(self, work: float, power: float) -> float:
        """Return the most rows whose fit takes no more than `work`."""
        size = math.pow(max(work - math.pow(self.fixed_rows, power), 0.0), 1 / power)
        if self.linear_above is None:
            return size
        linear = work / math.pow(self.linear_from, power - 1)
        return linear if linear > self.linear_above else min(size, self.linear_above)


def growing_sizes(growth: Growth, monitor: Monitor) -> Iterator[int]:
    """Yield numbers of rows to fit; the time until the next request counts as the time of a fit.

    Parameters
    ----------
    growth : Growth
        What to fit.
    monitor : Monitor
        The clock, with a time limit.

    Examples
    --------
    >>> from hardmargin.monitor import Monitor
    >>> from hardmargin.selection.growing import Growth, growing_sizes
    >>> now = [0.0]
    >>> sizes = []
    >>> for size in growing_sizes(Growth(100_000, 98_000), Monitor(10.0, clock=lambda: now[0])):
    ...     sizes.append(size)
    ...     now[0] += (size / 5_000) ** 2  # seconds
    >>> sizes
    [250, 750, 2250, 6750, 12364]
    """
    size: int | None = min(growth.first, growth.n_rows)
    fits: list[tuple[int, float]] = []
    for _ in range(MAX_FITS):
        if size is None:
            break
        before = monitor.seconds_left
        yield size
        left = monitor.seconds_left
        fits.append((size, before - left))
        size = next_size(fits, growth, left)
    if monitor.checkpoint is not None and fits[-1][0] < growth.n_rows and monitor.seconds_left > 0:
        yield growth.n_rows  # what there is time for is kept for the next call


def next_size(fits: Sequence[tuple[int, float]], growth: Growth, seconds_left: float) -> int | None:
    """Return the rows of the next fit; None if there is nothing more to do, or no time for it.

    Parameters
    ----------
    fits : sequence of (int, float)
        Rows and seconds of the fits so far.
    growth : Growth
        What to fit.
    seconds_left : float
        The time left.
    """
    n_rows, (size, seconds) = growth.n_rows, fits[-1]
    if size >= n_rows or seconds_left <= 0:
        return None
    if len(fits) > 1:  # the power that they show includes it
        growth = replace(growth, fixed_rows=0)
    times = seconds_left / (SAFETY * max(seconds, LEAST_SECONDS))
    at_most = growth.work(n_rows, MOST_POWER) / growth.work(size, MOST_POWER)
    if growth.cost_of_all * at_most <= times:
        return n_rows
    exponent = power(fits)
    work = times * growth.work(size, exponent)
    affordable = growth.affordable(work, exponent)
    work_of_all = growth.cost_of_all * growth.work(n_rows, exponent)
    all_fit = work_of_all <= work
    is_linear = growth.linear_above is not None and n_rows > growth.linear_above
    if is_linear and growth.least_share * work_of_all <= work:
        return n_rows  # smaller fits that are not linear would take as long
    near = LEAST_GROWTH * FACTOR * size
    part = min(affordable if affordable <= near else FACTOR * size, growth.largest_part)
    both_fit = growth.work(part, exponent) + work_of_all <= work
    if all_fit and (n_rows <= near or not both_fit):
        return n_rows
    if part >= LEAST_GROWTH * size:
        return math.floor(part)
    return n_rows if all_fit else None


def power(fits: Sequence[tuple[int, float]]) -> float:
    """Estimate the power of the rows by which seconds grow, erring on the high side."""
    if len(fits) < 2:
        return USUAL_POWER
    (few, before), (many, after) = fits[-2:]
    ratio = max(after, LEAST_SECONDS) / max(before, LEAST_SECONDS)
    estimate = math.log(ratio) / math.log(many / few)
    careful = max(min(estimate + MARGIN, USUAL_POWER), estimate)
    return min(max(careful, LEAST_POWER), MOST_POWER)
