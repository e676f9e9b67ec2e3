"""The work of Tables I to V of TNN-08: adult, web and forest cover type, beside LIBSVM."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

from hardmargin import CoreVectorSVC, GreedySVC
from hardmargin.datasets import load_covtype_binary
from hardmargin.kernels import Kernel, canonical
from hardmargin.reproduction.limits import within
from hardmargin.reproduction.paper_numbers import read_rows
from hardmargin.reproduction.parts import Cell, CutError, NoDataError, Settings, Task
from hardmargin.reproduction.sources import Split, folder_set, require_folder

__all__ = [
    "Result",
    "measure",
    "measure_core",
    "measure_svc",
    "table_1_tasks",
    "table_2_tasks",
    "table_3_tasks",
    "table_4_tasks",
    "table_5_tasks",
]

TABLE_I, TABLE_II, TABLE_III = "tnn08-table1", "tnn08-table2", "tnn08-table3"
TABLE_IV, TABLE_V = "tnn08-table4", "tnn08-table5"

# Names of the paper's subsets, and of their files.
SUBSETS = {
    f"{long}-{i}": f"{short}{i}a"
    for long, short in (("Adult", "a"), ("Web", "w"))
    for i in (1, 4, 7)
}
SETTINGS = {line["problem"]: line for line in read_rows("tnn08_table2")}
GAMMAS = {problem: float(line["gamma_gs"]) for problem, line in SETTINGS.items()}
FOREST_GAMMA, FOREST_C = 1e-4, 10.0
FOREST_SIZES = tuple(line["n_train"] for line in read_rows("tnn08_table4"))
CACHE = 1_000  # in MB, as in the paper
GREEDY, CORE = "GS-SVMs", "Core vector machines"
# Of Table III, in powers of two.
LOG_CS = (-6, -4, -2, 0, 2, 4, 6, 8, 10)

COLUMNS_I = ("gamma of SVC", "gamma of GS-SVMs", "columns", "training rows")
COLUMNS = ("error", "support vectors", "kernel evaluations", "seconds")
SVC_COLUMNS = ("error of SVC", "support vectors of SVC", "seconds of SVC")

Trained: TypeAlias = tuple[Any, Any, float, float]


@dataclass(frozen=True)
class Result:
    """What one training run gave.

    Parameters
    ----------
    error : float
        Test error in percent.
    n_support : int
        Number of support vectors.
    n_evaluations : float
        Kernel evaluations of the training; NaN if they are not counted.
    seconds : float
        Processor seconds of the training.
    """

    error: float
    n_support: int
    n_evaluations: float
    seconds: float


def measure(split: Split, gamma: float, dtype: str = "auto") -> Result:
    """Train and test the greedy SVM once.

    Parameters
    ----------
    split : tuple
        ``X_train, y_train, X_test, y_test``.
    gamma : float
        Kernel width.
    dtype : {"auto", "float32", "float64"}, default="auto"
        Precision of the kernel values.

    Returns
    -------
    Result
        Error, support vectors, kernel evaluations and processor seconds of ``fit``.

    Examples
    --------
    >>> import numpy as np
    >>> X, y = np.array([[0.0], [1.0], [9.0]]), np.array([1, 1, -1])
    >>> result = measure((X, y, X, y), gamma=1.0)
    >>> result.error, result.n_support
    (0.0, 3)
    """
    X_train, y_train, X_test, y_test = split
    model = GreedySVC(gamma, max_visits=1, threshold=0.0, dtype=dtype)
    start = time.process_time()
    model.fit(X_train, y_train)
    seconds = time.process_time() - start
    error = 100.0 * float((model.predict(X_test) != y_test).mean())
    return Result(error, len(model.support_), float(model.n_kernel_evaluations_), seconds)


def measure_svc(
    split: Split, C: float, gamma: float, *, shrinking: bool = True, cut: float | None = None
) -> Result:
    """Train and test scikit-learn's SVC, which is LIBSVM, once.

    Parameters
    ----------
    split : tuple
        ``X_train, y_train, X_test, y_test`` of two classes.
    C, gamma : float
        Its parameters.
    shrinking : bool, default=True
        Whether it may set rows aside while it trains.
    cut : float or None, default=None
        Wall-clock seconds after which training is given up; None trains in this process.

    Returns
    -------
    Result
        Without kernel evaluations, which it does not count.

    Raises
    ------
    CutError
        If training took longer than `cut`.

    Examples
    --------
    >>> import numpy as np
    >>> X, y = np.array([[0.0], [1.0], [9.0]]), np.array([1, 1, -1])
    >>> result = measure_svc((X, y, X, y), C=10.0, gamma=1.0)
    >>> result.error, result.n_support
    (0.0, 3)
    """
    X_train, y_train, X_test, y_test = split
    rows, coefficients, intercept, seconds = within(
        cut, train_svc, X_train, y_train, C, gamma, shrinking
    )
    # On large sets its own predictions take as long as its training; the scores are the same.
    kernel = Kernel("rbf", gamma=gamma)
    scores = kernel.expand(canonical(X_test), canonical(X_train[rows]), coefficients)
    predicted = np.unique(y_train)[(scores[:, 0] + intercept > 0).astype(int)]
    return Result(100.0 * float((predicted != y_test).mean()), len(rows), float("nan"), seconds)


def measure_core(split: Split, C: float, gamma: float, cut: float) -> Result:
    """Train and test the core vector machine by the rule that it was published with.

    Parameters
    ----------
    split : tuple
        ``X_train, y_train, X_test, y_test`` of two classes.
    C, gamma : float
        Its parameters.
    cut : float
        Wall-clock seconds after which training is given up.

    Returns
    -------
    Result

    Raises
    ------
    CutError
        If training took longer than `cut`, or its core set more memory than there is.

    Examples
    --------
    >>> import numpy as np
    >>> X, y = np.array([[0.0], [1.0], [9.0]]), np.array([1, 1, -1])
    >>> measure_core((X, y, X, y), C=10.0, gamma=1.0, cut=60.0).error
    0.0
    """
    X_train, y_train, X_test, y_test = split
    model = CoreVectorSVC(C=C, gamma=gamma, stopping="radius", max_time=cut, random_state=0)
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the cell reports it
        model.fit(X_train, y_train)
    seconds = time.process_time() - start
    if model.stop_reason_ == "max_time":
        raise CutError(f"longer than {cut:g} s")
    if model.stop_reason_ == "core_full":
        raise CutError("a core set larger than the memory")
    error = 100.0 * float((model.predict(X_test) != y_test).mean())
    return Result(error, len(model.support_), float(model.n_kernel_evaluations_), seconds)


def train_svc(X: Any, y: Any, C: float, gamma: float, shrinking: bool) -> Trained:
    """Train scikit-learn's SVC and return what can be sent between processes.

    Parameters
    ----------
    X, y : arrays
        Training rows of two classes.
    C, gamma, shrinking
        Its parameters.

    Returns
    -------
    rows, coefficients, intercept, seconds
        Support rows, their coefficients as one row, the bias and processor seconds.
    """
    model = SVC(C=C, gamma=gamma, shrinking=shrinking, cache_size=CACHE)
    start = time.process_time()
    model.fit(X, y)
    seconds = time.process_time() - start
    dual = model.dual_coef_
    dual = dual.toarray() if hasattr(dual, "toarray") else np.asarray(dual)
    return model.support_, dual, float(model.intercept_[0]), seconds


def _subset(problem: str, settings: Settings) -> Split:
    return folder_set(SUBSETS[problem], settings).split()


def _forest(n_train: int, settings: Settings) -> Split:
    require_folder(settings)
    try:
        return load_covtype_binary(settings.data_dir or "", n_train)
    except FileNotFoundError as error:
        raise NoDataError(str(error)) from error


def _size_cells(problem: str, settings: Settings) -> Iterator[Cell]:
    X_train = _subset(problem, settings)[0]
    gammas = (float(SETTINGS[problem]["gamma_svm"]), GAMMAS[problem])
    for column, value in zip(COLUMNS_I, (*gammas, X_train.shape[1], X_train.shape[0]), strict=True):
        yield Cell(TABLE_I, problem, column, float(value))


def _subset_cells(problem: str, settings: Settings) -> Iterator[Cell]:
    ours = _greedy(_subset(problem, settings), GAMMAS[problem], settings)
    yield from _cells(TABLE_II, problem, ours, 1e6)


def _subset_svc_cells(problem: str, settings: Settings) -> Iterator[Cell]:
    line = SETTINGS[problem]
    C, gamma = float(line["C"]), float(line["gamma_svm"])
    result = measure_svc(_subset(problem, settings), C, gamma, cut=settings.cut)
    yield from _svc_cells(TABLE_II, problem, result)


def _various_c_cells(
    problem: str, row: str, log_C: int | None, settings: Settings
) -> Iterator[Cell]:
    split = _subset(problem, settings)
    if log_C is None:
        result = _greedy(split, GAMMAS[problem], settings)
        yield Cell(TABLE_III, row, "kernel evaluations", result.n_evaluations / 1e6)
    else:
        gamma = float(SETTINGS[problem]["gamma_svm"])
        result = measure_svc(split, 2.0**log_C, gamma, cut=settings.cut)
    yield Cell(TABLE_III, row, "error", result.error)
    yield Cell(TABLE_III, row, "seconds", result.seconds)


def _forest_cells(part: str, row: str, n_train: int, settings: Settings) -> Iterator[Cell]:
    ours = _greedy(_forest(n_train, settings), FOREST_GAMMA, settings)
    yield from _cells(part, row, ours, 1e9)


def _forest_svc_cells(settings: Settings) -> Iterator[Cell]:
    """Go from few rows to many: once a size is cut, the larger ones are too."""
    for row in FOREST_SIZES:
        split = _forest(int(row), settings)
        result = measure_svc(split, FOREST_C, FOREST_GAMMA, shrinking=False, cut=settings.cut)
        yield from _svc_cells(TABLE_IV, row, result)


def _forest_core_cells(row: str, n_train: int, settings: Settings) -> Iterator[Cell]:
    result = measure_core(_forest(n_train, settings), FOREST_C, FOREST_GAMMA, settings.cut)
    yield from _cells(TABLE_V, row, result, 1e9)


def _not_ours(settings: Settings) -> Iterator[Cell]:
    """Give no numbers: these rows have only the paper's."""
    yield from ()


def _greedy(split: Split, gamma: float, settings: Settings) -> Result:
    return measure(split, gamma, "float64" if settings.full else "auto")


def _cells(part: str, row: str, result: Result, unit: float) -> Iterator[Cell]:
    values = (result.error, result.n_support, result.n_evaluations / unit, result.seconds)
    for column, value in zip(COLUMNS, values, strict=True):
        yield Cell(part, row, column, float(value))


def _svc_cells(part: str, row: str, result: Result) -> Iterator[Cell]:
    values = (result.error, result.n_support, result.seconds)
    for column, value in zip(SVC_COLUMNS, values, strict=True):
        yield Cell(part, row, column, float(value))


def table_1_tasks(settings: Settings) -> Iterator[Task]:
    """Give the tasks of Table I.

    Parameters
    ----------
    settings : Settings
        The user's settings.

    Yields
    ------
    Task
    """
    for problem, name in SUBSETS.items():
        fills = tuple((TABLE_I, problem, column) for column in COLUMNS_I)
        yield Task(f"tnn08/table1/{name}", name, _size_cells, (problem,), fills)


def table_2_tasks(settings: Settings) -> Iterator[Task]:
    """Give the tasks of Table II: two for every subset, the greedy SVM's and SVC's.

    Parameters
    ----------
    settings : Settings
        The user's settings.

    Yields
    ------
    Task
    """
    for problem, name in SUBSETS.items():
        fills = tuple((TABLE_II, problem, column) for column in COLUMNS)
        yield Task(f"tnn08/table2/{name}", name, _subset_cells, (problem,), fills)
        fills = tuple((TABLE_II, problem, column) for column in SVC_COLUMNS)
        yield Task(f"tnn08/table2/{name}/svc", name, _subset_svc_cells, (problem,), fills)


def row_of_c(problem: str, log_C: int | None) -> str:
    """Name a row of Table III.

    Parameters
    ----------
    problem : str
        The subset.
    log_C : int or None
        Base-2 logarithm of C; None is the greedy SVM.

    Returns
    -------
    str

    Examples
    --------
    >>> row_of_c("Web-7", -2)
    'Web-7, SVC with C=2^-2'
    """
    return f"{problem}, {GREEDY}" if log_C is None else f"{problem}, SVC with C=2^{log_C}"


def table_3_tasks(settings: Settings) -> Iterator[Task]:
    """Give the tasks of Table III, one per row.

    Parameters
    ----------
    settings : Settings
        The user's settings.

    Yields
    ------
    Task
    """
    for problem in ("Adult-7", "Web-7"):
        name = SUBSETS[problem]
        for log_C in (None, *LOG_CS):
            row = row_of_c(problem, log_C)
            columns = ("error", "kernel evaluations", "seconds")
            fills = tuple((TABLE_III, row, column) for column in columns)
            key = f"tnn08/table3/{name}/{GREEDY if log_C is None else log_C}"
            yield Task(key, name, _various_c_cells, (problem, row, log_C), fills)


def table_4_tasks(settings: Settings) -> Iterator[Task]:
    """Give the tasks of Table IV: one per size for the greedy SVM, and one for SVC.

    Parameters
    ----------
    settings : Settings
        The user's settings.

    Yields
    ------
    Task
    """
    for row in FOREST_SIZES:
        fills = tuple((TABLE_IV, row, column) for column in COLUMNS)
        arguments = (TABLE_IV, row, int(row))
        yield Task(f"tnn08/table4/{row}", "covtype", _forest_cells, arguments, fills)
    fills = tuple((TABLE_IV, row, column) for row in FOREST_SIZES for column in SVC_COLUMNS)
    yield Task("tnn08/table4/svc", "covtype", _forest_svc_cells, (), fills, is_long=True)


def table_5_tasks(settings: Settings) -> Iterator[Task]:
    """Give the tasks of Table V: two rows are measured, two have only the paper's numbers.

    Parameters
    ----------
    settings : Settings
        The user's settings.

    Yields
    ------
    Task
    """
    names = [line["algorithm"] for line in read_rows("tnn08_table5")]
    others = [name for name in names if name not in (CORE, GREEDY)]
    fills = tuple((TABLE_V, row, column) for row in others for column in ("error", "seconds"))
    fills += tuple((TABLE_V, row, "support vectors") for row in others)
    yield Task("tnn08/table5/others", "covtype", _not_ours, (), fills)
    fills = tuple((TABLE_V, CORE, column) for column in COLUMNS)
    yield Task("tnn08/table5/cvm", "covtype", _forest_core_cells, (CORE, 400_000), fills)
    fills = tuple((TABLE_V, GREEDY, column) for column in COLUMNS)
    arguments = (TABLE_V, GREEDY, 400_000)
    yield Task("tnn08/table5/400000", "covtype", _forest_cells, arguments, fills)
