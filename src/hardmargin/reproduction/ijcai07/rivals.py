"""The rivals of IJCAI-07: the C-SVM along its regularisation path, and the nu-SVM of Figure 2."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sklearn.svm import NuSVC

from hardmargin import PathSVC
from hardmargin.kernels import resolve_gamma
from hardmargin.reproduction.ijcai07.tasks import (
    DATA_SETS,
    FIGURE_2,
    FIGURE_2_SET,
    KERNEL,
    QUICK_FIGURE_2_SET,
    TABLE_2,
    TABLE_3,
    error_task,
    error_tasks,
    mean_cell,
    nus_of,
    panels_of,
    row_of,
    rows_of,
    splits_of,
)
from hardmargin.reproduction.limits import within
from hardmargin.reproduction.paper_numbers import read_numbers
from hardmargin.reproduction.parts import Cell, Curve, CutError, Settings, Task
from hardmargin.reproduction.sources import Split

__all__ = ["PathResult", "figure_2_tasks", "measure_path", "nu_errors", "table_tasks"]

BEST, LOO, PATH_SECONDS = "SVM (BEST)", "SVM (LOO)", "seconds of the regularisation path"
NU_SVM = "nu-SVM"
CACHE = 500  # MB of kernel values that the nu-SVM keeps

RIVAL_NUMBERS_2 = read_numbers("ijcai07_table2", "data_set", {"svm_best": BEST, "svm_loo": LOO})
RIVAL_NUMBERS_3 = read_numbers("ijcai07_table3", "data_set", {"path_seconds": PATH_SECONDS})


@dataclass(frozen=True)
class PathResult:
    """Results of the regularisation paths of one data set, one entry per realization.

    Parameters
    ----------
    best, loo : tuple of float
        Test errors in percent: the smallest along the regularisation path, and the one where the
        leave-one-out bound is smallest.
    seconds : tuple of float
        Processor seconds of the regularisation path.
    """

    best: tuple[float, ...]
    loo: tuple[float, ...]
    seconds: tuple[float, ...]


def measure_path(splits: Sequence[Split], cut: float | None = None) -> PathResult:
    """Follow the regularisation path on every split, and test the SVMs along it.

    Parameters
    ----------
    splits : sequence of tuples
        ``X_train, y_train, X_test, y_test`` of every realization.
    cut : float or None, default=None
        Wall-clock seconds after which to give up a regularisation path.

    Returns
    -------
    PathResult

    Raises
    ------
    CutError
        If a regularisation path took longer than `cut`, or more memory than there is.

    Examples
    --------
    >>> import numpy as np
    >>> X, y = np.array([[0.0], [1.0], [8.0], [9.0]]), np.array([1, 1, -1, -1])
    >>> result = measure_path([(X, y, X, y)])
    >>> result.best, result.loo
    ((0.0,), (0.0,))
    """
    best, loo, seconds = zip(*(_follow(split, cut) for split in splits), strict=True)
    return PathResult(best, loo, seconds)


def _follow(split: Split, cut: float | None) -> tuple[float, float, float]:
    X_train, y_train, X_test, y_test = split
    model = PathSVC("loo", max_time=cut, **KERNEL)
    start = time.process_time()
    try:
        with warnings.catch_warnings():
            # The cell reports it.
            warnings.filterwarnings("ignore", "A regularisation path stopped at max_time")
            model.fit(X_train, y_train)
    except ValueError as error:
        if "memory_limit" in str(error):
            raise CutError("more memory than there is") from error
        raise
    seconds = time.process_time() - start
    if model.stop_reason_ == "max_time":
        raise CutError(f"longer than {cut:g} s")
    errors = model.path_error(X_test, y_test)
    # The first breakpoint is C = 0, where there is no SVM yet.
    best = float(errors[1:].min(initial=errors[-1]))
    loo = float((model.predict(X_test) != y_test).mean())
    return 100 * best, 100 * loo, seconds


def nu_errors(
    split: Split, nus: Sequence[float], cut: float | None = None
) -> list[tuple[float, float, float]]:
    """Train and test a nu-SVM for every nu.

    Parameters
    ----------
    split : tuple
        ``X_train, y_train, X_test, y_test``.
    nus : sequence of float
        Upper bounds on the share of margin errors.
    cut : float or None, default=None
        Wall-clock seconds after which to give up one of them.

    Returns
    -------
    list of tuples
        nu, test error in percent and processor seconds of training, where not given up.

    Raises
    ------
    CutError
        If all were given up.

    Examples
    --------
    >>> import numpy as np
    >>> X, y = np.array([[0.0], [1.0], [8.0], [9.0]]), np.array([1, 1, -1, -1])
    >>> [(nu, error) for nu, error, _ in nu_errors((X, y, X, y), [0.1, 0.5])]
    [(0.1, 0.0), (0.5, 0.0)]
    """
    points, reason = [], ""
    for nu in nus:
        try:
            points.append((nu, *within(cut, _nu_error, split, nu)))
        except CutError as error:
            reason = str(error)
    if not points:
        raise CutError(reason)
    return points


def _nu_error(split: Split, nu: float) -> tuple[float, float]:
    X_train, y_train, X_test, y_test = split
    start = time.process_time()
    gamma = resolve_gamma("spread", X_train)
    model = NuSVC(nu=nu, gamma=gamma, cache_size=CACHE).fit(X_train, y_train)
    seconds = time.process_time() - start
    return 100 * float((model.predict(X_test) != y_test).mean()), seconds


def _path_cells(name: str, is_drawn: bool, settings: Settings) -> Iterator[Cell]:
    row = row_of(name, is_drawn)
    result = measure_path(splits_of(name, settings, is_drawn), _cut(settings))
    yield mean_cell(TABLE_2, row, BEST, result.best)
    yield mean_cell(TABLE_2, row, LOO, result.loo)
    yield mean_cell(TABLE_3, row, PATH_SECONDS, result.seconds)


def _nu_curves(name: str, settings: Settings) -> Iterator[Curve]:
    nus = nus_of(settings)
    points = nu_errors(splits_of(name, settings)[0], nus, _cut(settings))
    done, errors, seconds = zip(*points, strict=True)
    given_up = [f"{nu:g}" for nu in nus if nu not in done]
    note = f"given up after {settings.cut:g} s: nu = {', '.join(given_up)}" if given_up else ""
    for panel, values in zip(panels_of(name, settings), (errors, seconds), strict=True):
        yield Curve(FIGURE_2, panel, NU_SVM, done, values, note)


def _cut(settings: Settings) -> float | None:
    """Give the limit; a quick run is too short to need one."""
    return None if settings.quick else settings.cut


def table_tasks(settings: Settings) -> Iterator[Task]:
    """Give the tasks of Tables 2 and 3.

    Parameters
    ----------
    settings : Settings
        The user's settings.

    Returns
    -------
    iterator of Task
    """
    yield from error_tasks(settings)
    for name, is_drawn in rows_of(settings):
        if DATA_SETS[name].rank is None:  # the regularisation path needs the whole kernel matrix
            row = row_of(name, is_drawn)
            fills = ((TABLE_2, row, BEST), (TABLE_2, row, LOO), (TABLE_3, row, PATH_SECONDS))
            yield Task(f"ijcai07/path/{row}", name, _path_cells, (name, is_drawn), fills)


def figure_2_tasks(settings: Settings) -> Iterator[Task]:
    """Give the tasks of Figure 2.

    Parameters
    ----------
    settings : Settings
        The user's settings.

    Returns
    -------
    iterator of Task
    """
    for name in (QUICK_FIGURE_2_SET, FIGURE_2_SET) if settings.quick else (FIGURE_2_SET,):
        yield error_task(name, settings)
        draws = tuple((FIGURE_2, panel) for panel in panels_of(name, settings))
        yield Task(f"ijcai07/nu-svm/{name}", name, _nu_curves, (name,), draws=draws)
