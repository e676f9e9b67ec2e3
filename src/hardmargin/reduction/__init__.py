"""Reduced sets: nearly the same function on fewer support rows, for faster prediction.

See ``expansion`` for classifiers that are one expansion, and ``cells`` for mixtures of experts.
"""

from __future__ import annotations

import copy
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from hardmargin.estimators._base.classifier import KernelClassifier
from hardmargin.estimators._base.estimator import check_model
from hardmargin.estimators._base.fitted import checked_rows, is_mixture, machines_in
from hardmargin.estimators._base.one_model import snapshot
from hardmargin.monitor import Monitor
from hardmargin.reduction import cells, expansion
from hardmargin.reduction.expansion import Compression, Found
from hardmargin.resources import single_threaded_blas
from hardmargin.warn import warn_caller

__all__ = ["Compression", "compress"]

#: There is a warning if a larger share of the predictions changes.
MANY_CHANGES = 0.05

#: A share of the rows for which warnings say "nearly all".
NEARLY_ALL = 0.9

#: There is a warning if there are this many times more support rows than asked for.
MANY_MORE = 1.2


def compress(
    clf: Any,
    n_support: int | None = None,
    *,
    tolerance: float | None = None,
    X: Any = None,
    max_time: float | None = None,
    random_state: int | np.random.RandomState | None = None,
) -> Any:
    """Make a classifier that predicts nearly the same from fewer support rows.

    Parameters
    ----------
    clf : fitted classifier of this package, or fitted pipeline that ends in one
        It is not changed.
    n_support : int, optional
        Number of support rows of the result; fewer if fewer give the same function. A mixture of
        experts (:class:`EnsembleSVC` on many rows) has about that many.
    tolerance : float in (0, 1), optional
        The largest relative change of the decision values allowed: root mean square of the change,
        divided by that of the values. Rows are chosen one by one until it is reached; every expert
        of a mixture keeps a sixteenth of its rows, an eighth, a quarter or a half. Where the search
        would take longer than about five fits, as it does if most rows must stay, it ends, and the
        model is unchanged; a warning says how many rows the tolerance probably takes, and what
        fewer change. `max_time` searches on. Give either this or `n_support`.
    X : (n_samples, n_features) array or sparse matrix, optional
        Rows, without labels, on which to keep the function and to measure the change: training
        rows, or rows like those to be predicted. The default is the support rows. (The cells of a
        mixture always keep it on their support rows, and use `X` only to measure.) Required for
        ``kernel="precomputed"``: the kernel values of these rows against all training rows. For a
        pipeline, rows as its ``predict`` takes them; they go through its earlier steps.
    max_time : float, optional
        Seconds that this may take, ``float("inf")`` for no limit. If the search has not ended by
        then, the result is the best model so far, with a ``ConvergenceWarning``: it may change the
        decision values by more than `tolerance`, or have another number of rows than `n_support`.
        `compression_` shows both. With None, the search for a `tolerance` takes at most about five
        times as long as :class:`EnsembleSVC` takes to fit that many rows, and that for `n_support`
        as long as it takes.
    random_state : int, RandomState instance or None, default=None
        Seed for crossing rows, and for drawing them if there are more than about 10,000; None is a
        fixed seed.

    Returns
    -------
    classifier of the same class
        With fewer rows in `support_` and, unless it is a mixture of experts, `support_vectors_`,
        and other `dual_coef_` and `intercept_`. Attributes that describe the path or the plane it
        found (staged predictions, ``stage_..._``, ``..._path_``, ``weight_norm_``,
        ``certificate_`` and the like) are gone.
        ``compression_``, a :class:`Compression`, shows the cost. For a pipeline: a new pipeline
        with copies of the fitted earlier steps, and this classifier as the last.

    Notes
    -----
    With many classes, all machines share the rows, each with a coefficient for every row. Training
    leaves most of these coefficients zero, so models of many classes gain less speed. With the
    linear kernel, prediction needs one vector per machine anyway: only the model becomes smaller.

    A mixture of experts holds all its training rows. When it is compressed, all experts keep the
    same share of their rows, so that the model becomes smaller and faster by about that share. See
    ``hardmargin.reduction.cells``.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from hardmargin import GreedySVC, compress
    >>> X, y = make_moons(600, noise=0.2, random_state=0)
    >>> clf = GreedySVC(gamma=1, max_visits=1).fit(X[:400], y[:400])
    >>> small = compress(clf, tolerance=0.01)
    >>> len(clf.support_) > 2 * len(small.support_), small.compression_.relative_change <= 0.01
    (True, True)
    >>> abs(clf.score(X[400:], y[400:]) - small.score(X[400:], y[400:])) < 0.02
    True
    """
    _check_max_time(max_time)
    monitor = Monitor(max_time)
    return _compress(clf, n_support, tolerance, X, max_time, monitor, random_state)


def _compress(
    clf: Any,
    n_support: Any,
    tolerance: Any,
    X: Any,
    max_time: float | None,
    monitor: Monitor,
    random_state: Any,
) -> Any:
    if isinstance(clf, Pipeline):
        return _compressed_pipeline(clf, n_support, tolerance, X, max_time, monitor, random_state)
    _check(clf, n_support, tolerance, X)
    clf = snapshot(clf)
    n_before = len(clf.support_)
    if n_before <= (1 if n_support is None else n_support):
        return expansion.unchanged(clf)
    random = check_random_state(0 if random_state is None else random_state)
    rows = None if X is None else checked_rows(clf, X)
    kind = cells if is_mixture(clf) else expansion
    with single_threaded_blas():
        if n_support is not None:
            found = kind.compress_to(clf, rows, int(n_support), random, monitor)
        else:
            found = kind.compress_within(
                clf, rows, float(tolerance), random, monitor, max_time is None
            )
    small = found.model
    if not found.in_time:
        return _out_of_time(clf, small, n_support, tolerance)
    if small is not None:
        if n_support is not None:
            _warn_of_cost(small.compression_, n_support)
        return small
    if found.nearest is not None:
        _warn_of_long_search(found, tolerance)
        return expansion.unchanged(clf)
    warn_caller(
        f"tolerance={tolerance} is not reached with fewer than all {n_before:,} support rows "
        "within the memory and the precision available; the model is unchanged. Raise tolerance or "
        "memory_limit, or set n_support.",
        UserWarning,
    )
    return expansion.unchanged(clf)


def _out_of_time(clf: Any, small: Any | None, n_support: Any, tolerance: Any) -> Any:
    """Return the best model so far, with a warning that says what it is."""
    sought = f"n_support={n_support}" if tolerance is None else f"tolerance={tolerance}"
    if small is None:
        small, found = expansion.unchanged(clf), "the model is unchanged"
    else:
        cost = small.compression_
        found = (
            f"the model so far has {cost.n_support:,} of {cost.n_support_before:,} support rows, "
            f"and changes the decision values by {cost.relative_change:.2%}"
        )
    warn_caller(f"max_time ended the search for {sought}: {found}. Raise max_time.")
    return small


def _warn_of_long_search(found: Found, tolerance: Any) -> None:
    """Say what a tolerance takes, and what is to be had for less."""
    assert found.nearest is not None
    cost = found.nearest.compression_
    n_before = cost.n_support_before
    takes = "nearly all"
    if found.n_expected < NEARLY_ALL * n_before:
        takes = f"about {found.n_expected:,} or more"
    warn_caller(
        f"tolerance={tolerance} probably takes {takes} of the {n_before:,} support rows, and a "
        "search longer than five fits, so the model is unchanged. Give that search seconds by "
        f"max_time, raise tolerance, or set n_support: {cost.n_support:,} rows change the decision "
        f"values by {cost.relative_change:.2%}.",
        UserWarning,
    )


def _warn_of_cost(found: Compression, n_support: int) -> None:
    if found.n_support > MANY_MORE * n_support:
        warn_caller(
            f"n_support={n_support} is too few for all cells of this model, which keep at least "
            f"{cells.LEAST_MEMBERS} rows each: the result has {found.n_support:,} support rows.",
            UserWarning,
        )
    if found.changed_predictions > MANY_CHANGES:
        warn_caller(
            f"{n_support} support rows are few for this model: {found.changed_predictions:.0%} of "
            "the predictions changed. Raise n_support, or let tolerance choose it.",
            UserWarning,
        )


def _compressed_pipeline(
    pipeline: Pipeline,
    n_support: Any,
    tolerance: Any,
    X: Any,
    max_time: float | None,
    monitor: Monitor,
    random_state: Any,
) -> Pipeline:
    """Copy a pipeline, with its last step compressed."""
    *earlier, (name, last) = pipeline.steps
    if X is not None and earlier:
        check_is_fitted(last)
        X = pipeline[:-1].transform(X)
    small = _compress(last, n_support, tolerance, X, max_time, monitor, random_state)
    result = copy.copy(pipeline)
    result.steps = [*copy.deepcopy(earlier), (name, small)]
    return result


def _check_max_time(max_time: Any) -> None:
    if max_time is None:
        return
    if not isinstance(max_time, Real) or isinstance(max_time, bool):
        raise TypeError(f"max_time must be a number of seconds or None, got {max_time!r}.")
    if not float(max_time) > 0:
        raise ValueError(f"max_time must be more than 0 seconds, got {max_time!r}.")


def _check(clf: Any, n_support: Any, tolerance: Any, X: Any) -> None:
    if not isinstance(clf, KernelClassifier):
        inside = _attribute_inside(clf)
        raise TypeError(
            "compress takes a fitted classifier of hardmargin, such as GreedySVC, or a pipeline "
            f"that ends in one, got {type(clf).__name__}"
            + (f"; compress what is in its {inside}." if inside else ".")
        )
    check_model(clf)
    meanings = (
        "n_support is the number of support rows to keep, tolerance the largest relative change of "
        "the decision values allowed"
    )
    if n_support is None and tolerance is None:
        raise ValueError(f"Neither n_support nor tolerance was given; give one: {meanings}.")
    if n_support is not None and tolerance is not None:
        raise ValueError(
            f"Both n_support={n_support!r} and tolerance={tolerance!r} were given; give only one: "
            f"{meanings}."
        )
    if n_support is not None:
        if not isinstance(n_support, Integral) or isinstance(n_support, bool):
            raise TypeError(f"n_support must be a whole number, got {n_support!r}.")
        if n_support < 1:
            raise ValueError(f"n_support must be at least 1, got {n_support}.")
    elif not isinstance(tolerance, Real) or not 0 < float(tolerance) < 1:
        raise ValueError(f"tolerance must be between 0 and 1, got {tolerance!r}.")
    if X is None and not is_mixture(clf) and machines_in(clf).kernel.name == "precomputed":
        raise ValueError(
            "A model with kernel='precomputed' holds no rows to evaluate kernels on: pass the "
            "kernel matrix it was trained on (or the kernel values of other rows against the "
            "training rows) as X."
        )


def _attribute_inside(wrapper: Any) -> str | None:
    """Name the attribute in which a wrapper keeps what it fitted."""
    if hasattr(wrapper, "best_estimator_") or hasattr(wrapper, "refit"):
        return "best_estimator_"
    names = ("estimator_", "estimators_", "calibrated_classifiers_", "estimator")
    return next((name for name in names if hasattr(wrapper, name)), None)
