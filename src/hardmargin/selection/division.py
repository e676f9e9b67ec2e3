"""How machines divide many classes: one per pair, or one per class against the rest."""

from __future__ import annotations

#: A machine takes about this long, however few rows it has. Pairs that would take longer than a fit
#: may are not trained, even if asked for.
LEAST_SECONDS = 0.0012

#: A machine of a few rows takes about this long, with all kernels of a vote. ``"auto"`` takes one
#: per class where a fit has less time for each pair.
SECONDS_OF_PAIR = 0.004

#: With as many classes and no more rows (per class, and in all), one machine per class is better
#: than one per pair (benchmarks/classes.py). With more rows it takes several times as long.
MANY_CLASSES = 10
FEW_PER_CLASS = 50
FEW_ROWS = 2_500


def too_many_pairs(n_classes: int, seconds: float, max_time: float | None) -> bool:
    """Whether there is no time for a machine per pair of classes that takes `seconds` each."""
    n_pairs = n_classes * (n_classes - 1) // 2
    return max_time is not None and n_pairs > n_classes and n_pairs * seconds > max_time


def divided(
    multi_class: str, n_classes: int, n_rows: int, max_time: float | None, *, is_text: bool
) -> str:
    """Choose ``"ovo"`` or ``"ovr"``.

    Parameters
    ----------
    multi_class : {"auto", "ovo", "ovr"}
        What was asked for.
    n_classes, n_rows : int
        Of the training rows.
    max_time : float or None
        Seconds that the fit has.
    is_text : bool
        Whether rows are text, where one machine per class is better.
    """
    if multi_class != "auto":
        return "ovr" if too_many_pairs(n_classes, LEAST_SECONDS, max_time) else multi_class
    # Pairs of small classes have too few rows to learn from.
    is_small = n_rows <= min(FEW_PER_CLASS * n_classes, FEW_ROWS)
    if is_text or (n_classes >= MANY_CLASSES and is_small):
        return "ovr"
    return "ovr" if too_many_pairs(n_classes, SECONDS_OF_PAIR, max_time) else "ovo"
