"""The work of MCS-06: its data sets, and the tasks that its parts share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.datasets import load_digits
from sklearn.preprocessing import StandardScaler

from hardmargin.reproduction.mcs06.machines import (
    Machines,
    error_above,
    error_without_machines,
    noisy,
    train_machines,
)
from hardmargin.reproduction.parts import Cell, Curve, CutError, Settings, Task
from hardmargin.reproduction.sources import Split, folder_set

__all__ = [
    "Mcs06Set",
    "base_tasks",
    "figure_1_tasks",
    "noise_tasks",
    "row_of",
    "size_tasks",
    "table_2_tasks",
    "table_3_tasks",
]

TABLE_1, TABLE_2, TABLE_3 = "mcs06-table1", "mcs06-table2", "mcs06-table3"
FIGURE_1, FIGURE_2, FIGURE_3 = "mcs06-figure1", "mcs06-figure2", "mcs06-figure3"


@dataclass(frozen=True)
class Mcs06Set:
    """A data set of the paper, and how it is used.

    Parameters
    ----------
    file : str or None
        Its name in the data folder; None if it is not among the data.
    small : bool
        Whether Figures 1 and 2 have it.
    divide_by : float or None
        What features are divided by; None standardises them.
    is_large : bool
        Whether the paper trained only the orthogonal CVM on it.
    """

    file: str | None
    small: bool = False
    divide_by: float | None = None
    is_large: bool = False


DATA_SETS = {
    "optdigits": Mcs06Set("optdigits", small=True),
    "satimage": Mcs06Set("satimage", small=True),
    "pendigits": Mcs06Set("pendigits", small=True),
    "letters": Mcs06Set("letter-uci"),
    # Standardised, the few rows that use a pixel at the border would be far from all others.
    "mnist": Mcs06Set("mnist", divide_by=255.0, is_large=True),
    "usps": Mcs06Set(None, is_large=True),
    "face": Mcs06Set(None, is_large=True),
}
QUICK_SET, QUICK_ROWS = "digits", (300, 200)

# Names as in the files of the paper's numbers; "none" is no base machine at all.
BASES = {"newton": "orthogonal SVM", "core": "orthogonal CVM", "bagged": "bagged SVM"}
# The same machines with their scores; and another way to the optimum, which is timed as well.
BY_SCORES, NEWTON = "bagged SVM by scores", "orthogonal SVM by Newton"
TIMED = {
    "lagrangian": "orthogonal SVM",
    "newton": NEWTON,
    "core": "orthogonal CVM",
    "bagged": "bagged SVM",
}
NETWORK_SEEDS = (0, 1, 2)
FINALS = {"svm": "SVM", "mlp": "ANN", "cvm": "CVM", "vote": "voting"}
NO_BASE = "no base"
SIZES = {1: "Nc", 3: "3Nc", 5: "5Nc"}
COLUMNS_1 = ("classes", "columns", "training rows", "test rows")
FIGURE_1_SIZES = (1, 2, 3, 4, 5, 6, 7)
FIGURE_2_SIGMAS = (0.0, 0.25, 0.5, 1.0, 1.5, 2.0)


def row_of(name: str, base: str, final: str = "") -> str:
    """Name the row of a data set, a base and a second classifier.

    Parameters
    ----------
    name, base, final : str
        As they are printed.

    Returns
    -------
    str

    Examples
    --------
    >>> row_of("letters", "orthogonal CVM", "SVM")
    'letters, orthogonal CVM, SVM'
    """
    return ", ".join(part for part in (name, base, final) if part)


def _names(settings: Settings, small: bool = False) -> list[str]:
    """Name the data sets of a run; a quick run starts with its own."""
    names = [QUICK_SET] if settings.quick else []
    return names + [name for name, data_set in DATA_SETS.items() if data_set.small or not small]


def _bases(name: str, settings: Settings) -> list[str]:
    return ["core"] if _is_large(name) and not settings.full else list(BASES)


def _split(name: str, settings: Settings) -> Split:
    if name == QUICK_SET:
        X, y = load_digits(return_X_y=True)
        train, end = QUICK_ROWS[0], sum(QUICK_ROWS)
        return X[:train], y[:train], X[train:end], y[train:end]
    split: Split = folder_set(DATA_SETS[name].file, settings).split()
    X_train, y_train, X_test, y_test = split
    if name == "mnist":
        # The paper's columns, as on the LIBSVM site: up to the last that a training row uses.
        used = int(np.flatnonzero(X_train.any(axis=0))[-1]) + 1
        X_train, X_test = X_train[:, :used], X_test[:, :used]
    return X_train, y_train, X_test, y_test


def _scaled(name: str, split: Split) -> Split:
    X_train, y_train, X_test, y_test = split
    X_train, X_test = X_train.astype(np.float64), X_test.astype(np.float64)
    divide_by = DATA_SETS[name].divide_by if name in DATA_SETS else None
    if divide_by is not None:
        return X_train / divide_by, y_train, X_test / divide_by, y_test
    scaler = StandardScaler().set_output(transform="default").fit(X_train)
    return scaler.transform(X_train), y_train, scaler.transform(X_test), y_test


def _cut(settings: Settings) -> float | None:
    # A process for each rival would take most of the time of a quick run.
    return None if settings.quick else settings.cut


def _cut_of(base: str, settings: Settings) -> float | None:
    """Give the limit for a rival; the paper's own orthogonal CVM has none."""
    return None if base == "core" else _cut(settings)


def _is_small(name: str) -> bool:
    return name == QUICK_SET or DATA_SETS[name].small


def _is_large(name: str) -> bool:
    return name != QUICK_SET and DATA_SETS[name].is_large


def _size_cells(name: str, settings: Settings) -> Iterator[Cell]:
    X_train, y_train, X_test, _ = _split(name, settings)
    sizes = (len(np.unique(y_train)), X_train.shape[1], X_train.shape[0], X_test.shape[0])
    for column, size in zip(COLUMNS_1, sizes, strict=True):
        yield Cell(TABLE_1, name, column, float(size))


def _plain_cells(name: str, settings: Settings) -> Iterator[Cell]:
    """Measure the second classifiers on the features themselves."""
    split = _scaled(name, _split(name, settings))
    for final, title in FINALS.items():
        if final == "vote":
            continue
        place = TABLE_2, row_of(name, NO_BASE, title), "Nc"
        try:
            errors = [
                error_without_machines(final, split, _cut(settings), seed) for seed in _seeds(final)
            ]
            yield _mean_cell(*place, errors)
        except CutError as error:
            yield Cell(*place, status="cut", reason=str(error))


def _seeds(final: str) -> tuple[int, ...]:
    """Give the seeds of a second classifier: several for the network, which depends on them."""
    return NETWORK_SEEDS if final == "mlp" else NETWORK_SEEDS[:1]


def _mean_cell(part: str, row: str, column: str, errors: Sequence[float]) -> Cell:
    spread = float(np.std(errors, ddof=1)) if len(errors) > 1 else None
    return Cell(part, row, column, float(np.mean(errors)), spread, len(errors))


def _base_cells(name: str, base: str, settings: Settings) -> Iterator[Cell | Curve]:
    """Train more and more machines until a training is cut; all parts share them."""
    split = _scaled(name, _split(name, settings))
    row = row_of(name, TIMED[base])
    sizes = sorted({*SIZES, *(FIGURE_1_SIZES[-1:] if _is_small(name) else ())})
    if _is_large(name) and not settings.full:  # the first machines serve the smaller sizes
        sizes = sizes[-1:]
    machines: Machines | None = None
    reached, reason = 0, ""
    for size in sizes:
        try:
            machines = train_machines(base, split, size, cut=_cut_of(base, settings))
        except CutError as error:
            # Larger sizes would be cut too.
            reason = str(error)
            break
        reached = size
        if size in SIZES:
            yield Cell(TABLE_3, row, SIZES[size], machines.seconds)
            # Counted per size: machines share kernel columns, so the first of more cost less.
            if machines.n_evaluations is not None:
                place = FIGURE_3, row_of(name, BASES[base]), SIZES[size]
                yield Cell(*place, machines.n_evaluations)
    known = {size: machines.first(size) for size in range(1, reached + 1)} if machines else {}
    for size in SIZES:
        if size > reached:
            yield Cell(TABLE_3, row, SIZES[size], status="cut", reason=reason)
    readings = {BASES[base]: known}
    if base == "bagged":
        labels = {size: its.labels() for size, its in known.items()}
        readings = {BASES[base]: labels, BY_SCORES: known}
    for title, its_machines in readings.items():
        yield from _error_cells(name, title, split, its_machines, reason)
    support = {size: float(known[size].n_support.mean()) for size in SIZES if size in known}
    yield Curve(FIGURE_3, name, BASES[base], tuple(map(float, support)), tuple(support.values()))


def _time_cells(name: str, base: str, settings: Settings) -> Iterator[Cell]:
    """Train machines only to know how long that takes."""
    split = _scaled(name, _split(name, settings))
    for size, column in SIZES.items():
        machines = train_machines(base, split, size, cut=_cut_of(base, settings))
        yield Cell(TABLE_3, row_of(name, TIMED[base]), column, machines.seconds)


def _error_cells(
    name: str, base: str, split: Split, known: Mapping[int, Machines], reason: str
) -> Iterator[Cell | Curve]:
    curve = {}
    for final, title in FINALS.items():
        sizes = {*SIZES, *(FIGURE_1_SIZES if final == "mlp" and _is_small(name) else ())}
        for size in sorted(sizes):
            errors = (
                [error_above(final, known[size], split, seed) for seed in _seeds(final)]
                if size in known
                else []
            )
            if errors and final == "mlp":
                curve[float(size)] = float(np.mean(errors))
            if size not in SIZES:
                continue
            place = TABLE_2, row_of(name, base, title), SIZES[size]
            if not errors:
                yield Cell(*place, status="cut", reason=reason)
            else:
                yield _mean_cell(*place, errors)
    if _is_small(name):
        yield Curve(FIGURE_1, name, base, tuple(curve), tuple(curve.values()))


def _noise_curve(name: str, base: str, settings: Settings) -> Iterator[Curve]:
    split = _scaled(name, _split(name, settings))
    errors: dict[str, dict[float, float]] = {}
    for sigma in FIGURE_2_SIGMAS:
        corrupted = noisy(split, sigma)
        if base == "none":
            error = error_without_machines("svm", corrupted, _cut(settings))
            errors.setdefault("single SVM", {})[sigma] = error
            continue
        cut = _cut_of(base, settings)
        machines = train_machines(base, corrupted, max(SIZES), cut=cut)
        readings = {BASES[base]: machines}
        if base == "bagged":
            readings = {BASES[base]: machines.labels(), BY_SCORES: machines}
        for title, its in readings.items():
            errors.setdefault(title, {})[sigma] = error_above("svm", its, corrupted)
    for title, curve in errors.items():
        yield Curve(FIGURE_2, name, title, tuple(curve), tuple(curve.values()))


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
        yield Task(f"mcs06/sizes/{name}", name, _size_cells, (name,), fills)


def _plain_tasks(settings: Settings) -> Iterator[Task]:
    for name in _names(settings):
        titles = (title for final, title in FINALS.items() if final != "vote")
        fills = tuple((TABLE_2, row_of(name, NO_BASE, title), "Nc") for title in titles)
        key = f"mcs06/plain/{name}"
        yield Task(key, name, _plain_cells, (name,), fills, is_long=_is_large(name))


def base_tasks(settings: Settings) -> Iterator[Task]:
    """Give the tasks that train base machines, for all parts except Table 1 and Figure 2.

    Parameters
    ----------
    settings : Settings
        The user's settings.

    Returns
    -------
    iterator of Task
    """
    for name in _names(settings):
        for base in _bases(name, settings):
            titles = [BASES[base]]
            fills = [(TABLE_3, row_of(name, TIMED[base]), column) for column in SIZES.values()]
            if base == "bagged":  # whose kernel values are not counted
                titles.append(BY_SCORES)
            else:
                fills += [(FIGURE_3, row_of(name, BASES[base]), c) for c in SIZES.values()]
            for title in titles:
                for final in FINALS.values():
                    row = row_of(name, title, final)
                    fills += [(TABLE_2, row, column) for column in SIZES.values()]
            draws = [(FIGURE_1, name)] if _is_small(name) else []
            draws.append((FIGURE_3, name))
            key = f"mcs06/machines/{name}/{base}"
            yield Task(
                key,
                name,
                _base_cells,
                (name, base),
                tuple(fills),
                tuple(draws),
                is_long=_is_large(name),
            )


def table_3_tasks(settings: Settings) -> Iterator[Task]:
    """Give the tasks of Table 3: base machines, and the published solver, which is only timed.

    Parameters
    ----------
    settings : Settings
        The user's settings.

    Returns
    -------
    iterator of Task
    """
    for task in base_tasks(settings):
        if task.key.endswith("/newton"):
            name = task.data_set
            row = row_of(name, TIMED["lagrangian"])
            fills = tuple((TABLE_3, row, column) for column in SIZES.values())
            key = f"mcs06/seconds/{name}/lagrangian"
            yield Task(key, name, _time_cells, (name, "lagrangian"), fills, is_long=True)
        yield task


def table_2_tasks(settings: Settings) -> Iterator[Task]:
    """Give the tasks of Table 2: base machines, and the features themselves.

    Parameters
    ----------
    settings : Settings
        The user's settings.

    Returns
    -------
    iterator of Task
    """
    plain = {task.data_set: task for task in _plain_tasks(settings)}
    for task in base_tasks(settings):
        if task.data_set in plain:
            yield plain.pop(task.data_set)
        yield task


def figure_1_tasks(settings: Settings) -> Iterator[Task]:
    """Give the tasks of Figure 1: base machines on the small sets.

    Parameters
    ----------
    settings : Settings
        The user's settings.

    Returns
    -------
    iterator of Task
    """
    return (task for task in base_tasks(settings) if _is_small(task.data_set))


def noise_tasks(settings: Settings) -> Iterator[Task]:
    """Give the tasks of Figure 2.

    Parameters
    ----------
    settings : Settings
        The user's settings.

    Returns
    -------
    iterator of Task
    """
    for name in _names(settings, small=True):
        for base in ("none", "bagged", "core"):
            draws = ((FIGURE_2, name),)
            key = f"mcs06/noise/{name}/{base}"
            yield Task(key, name, _noise_curve, (name, base), draws=draws)
