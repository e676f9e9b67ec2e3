"""Train and test a classifier in a process of its own, so that its memory is its own too."""

from __future__ import annotations

import multiprocessing
import signal
import sys
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hardmargin.comparison.memory import PeakMemory
from hardmargin.comparison.pipelines import fit_in_groups, has_others
from hardmargin.comparison.rivals import Rival
from hardmargin.comparison.summary import last_step, summary_of

#: Up to this many rows, every row is tested once, in five folds; above, a quarter of them is.
MAX_FOLDED_ROWS, N_FOLDS, TEST_SHARE = 2_000, 5, 0.25
MAX_TEST_ROWS = 25_000

#: Share of a limit that is for fits; starting a process and predicting take the rest.
SHARE_OF_FITS = 0.6

#: How processes start. Where a fork is safe, they are forked from one that has done the imports.
START = "forkserver" if sys.platform == "linux" else "spawn"

#: What nearly all classifiers import, and what is imported for columns other than numbers.
IMPORTS = ("hardmargin", "sklearn.ensemble", "sklearn.impute", "sklearn.linear_model")
IMPORTS_OF_OTHERS = "skrub"

#: Probabilities below this count as this.
LEAST_PROBABILITY = 1e-15

Split = tuple[NDArray[np.intp], NDArray[np.intp]]


@dataclass(frozen=True)
class Measured:
    """What a classifier did.

    Attributes
    ----------
    name : str
        Which.
    is_ours : bool
        Whether it is of this package.
    rows : (n_test,) int array
        The rows it was tested on, in the order of the other arrays.
    predicted : (n_test,) int array
        Codes of the classes that it predicted.
    probabilities : (n_test, n_classes) array
        Its probabilities.
    fit_seconds, predict_seconds : float
        Per training, and per thousand rows.
    memory : float or None
        Megabytes above those of the data.
    note : str
        What to know about it, such as why there are no numbers.
    facts : dict
        Of a model of ours: see `summary_of`.
    """

    name: str
    is_ours: bool
    rows: NDArray[np.intp] = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    predicted: NDArray[np.intp] = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    probabilities: NDArray[np.float64] = field(default_factory=lambda: np.empty((0, 0)))
    fit_seconds: float = float("nan")
    predict_seconds: float = float("nan")
    memory: float | None = None
    note: str = ""
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def is_measured(self) -> bool:
        """Whether there are numbers."""
        return len(self.rows) > 0


def make_splits(codes: NDArray[np.intp], groups: Any, seed: int) -> list[Split]:
    """Split the rows into training and test rows.

    Parameters
    ----------
    codes : (n,) int array
        Classes.
    groups : (n,) array or None
        Rows that belong together are never on both sides.
    seed : int
        For the shuffle.
    """
    from sklearn.model_selection import (
        GroupShuffleSplit,
        StratifiedGroupKFold,
        StratifiedKFold,
        StratifiedShuffleSplit,
    )

    X = np.empty((len(codes), 0))
    smallest = int(np.bincount(codes).min())
    if groups is not None:
        smallest = min(smallest, len(np.unique(groups)))
    splitter: Any
    if len(codes) <= MAX_FOLDED_ROWS:
        n_folds = max(2, min(N_FOLDS, smallest))
        kind = StratifiedKFold if groups is None else StratifiedGroupKFold
        splitter = kind(n_folds, shuffle=True, random_state=seed)
    else:
        n_test = min(MAX_TEST_ROWS, int(TEST_SHARE * len(codes)))
        if groups is not None:
            splitter = GroupShuffleSplit(1, test_size=n_test / len(codes), random_state=seed)
        else:
            splitter = StratifiedShuffleSplit(1, test_size=n_test, random_state=seed)
    return list(splitter.split(X, codes, groups))


def prepare(X: Any) -> None:
    """Import once what classifiers need for a table, so that no process of theirs waits for it."""
    context = multiprocessing.get_context(START)
    context.set_forkserver_preload([*IMPORTS, *([IMPORTS_OF_OTHERS] if has_others(X) else [])])
    if START != "forkserver":
        return
    with ProcessPoolExecutor(1, mp_context=context) as pool, _deaf_to_ctrl_c():
        running = pool.submit(int)
    running.result()


def measure(
    rival: Rival,
    X: Any,
    codes: NDArray[np.intp],
    splits: Sequence[Split],
    *,
    groups: Any = None,
    seed: int,
    max_seconds: float,
    is_limited: bool = False,
) -> Measured:
    """Train and test a classifier on all splits, or give up after a while.

    Parameters
    ----------
    rival : Rival
        Which.
    X, codes
        All rows, and their classes as 0, 1, ...
    splits : sequence of (training, test) row numbers
        As `make_splits` gives them.
    groups : (n,) array, optional
        Rows that belong together, for classifiers of ours, which hold out rows inside fit.
    seed : int
        Of the classifier.
    max_seconds : float
        For all splits.
    is_limited : bool, default=False
        Whether classifiers of ours are told the time, in which they find the best model they can.
    """
    context = multiprocessing.get_context(START)
    max_time = SHARE_OF_FITS * max_seconds / len(splits) if is_limited and rival.is_ours else None
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        with _deaf_to_ctrl_c():
            running = pool.submit(_measure, rival, X, codes, splits, groups, seed, max_time)
        try:
            return running.result(timeout=max_seconds)
        except TimeoutError:
            _end(pool)
            return Measured(rival.name, rival.is_ours, note=f"longer than {max_seconds:.3g} s")
        except BrokenProcessPool:
            return Measured(rival.name, rival.is_ours, note="its process ended: too little memory?")
        except KeyboardInterrupt:
            _end(pool)
            raise
        except Exception as error:
            text = " ".join(str(error).split())[:200]
            return Measured(rival.name, rival.is_ours, note=f"{type(error).__name__}: {text}")


@contextmanager
def _deaf_to_ctrl_c() -> Iterator[None]:
    """Let processes that start here leave Ctrl-C to this one, which ends them without a traceback.

    A process that starts with the signal ignored stays so.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread sets signals
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _end(pool: ProcessPoolExecutor) -> None:
    for process in list((pool._processes or {}).values()):
        process.kill()


def _measure(
    rival: Rival,
    X: Any,
    codes: NDArray[np.intp],
    splits: Sequence[Split],
    groups: Any,
    seed: int,
    max_time: float | None,
) -> Measured:
    from threadpoolctl import threadpool_limits

    warnings.simplefilter("ignore")
    n_classes = int(codes.max()) + 1
    rows, predicted, chances, fit_seconds, predict_seconds = [], [], [], [], []
    note, model = "", None
    rival.make(X, seed)  # imports what it needs
    memory = PeakMemory()
    with threadpool_limits(1):
        for train, test in splits:
            if rival.max_rows is not None and len(train) > rival.max_rows:
                note = f"trained on {rival.max_rows:,} of {len(train):,} rows"
                train = np.random.RandomState(seed).permutation(train)[: rival.max_rows]
            model = rival.make(X, seed)
            if max_time is not None:
                note = f"max_time={max_time:.3g} for each fit"
                last_step(model).set_params(max_time=max_time)
            begin = time.process_time()
            if rival.is_ours and groups is not None:
                fit_in_groups(model, _some(X, train), codes[train], np.asarray(groups)[train])
            else:
                model.fit(_some(X, train), codes[train])
            fit_seconds.append(time.process_time() - begin)
            begin = time.process_time()
            own = np.asarray(model.predict_proba(_some(X, test)))
            predict_seconds.append((time.process_time() - begin) / len(test) * 1_000)
            full = np.zeros((len(test), n_classes))
            full[:, np.asarray(model.classes_, dtype=np.intp)] = own
            rows.append(test)
            chances.append(full)
            predicted.append(np.asarray(model.predict(_some(X, test)), dtype=np.intp).ravel())
    return Measured(
        rival.name,
        rival.is_ours,
        np.concatenate(rows),
        np.concatenate(predicted),
        np.vstack(chances),
        float(np.mean(fit_seconds)),
        float(np.mean(predict_seconds)),
        memory.megabytes(),
        note,
        summary_of(model) if rival.is_ours else {},
    )


def _some(X: Any, rows: NDArray[np.intp]) -> Any:
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


def error_of(measured: Measured, codes: NDArray[np.intp]) -> tuple[float, float, float]:
    """Share of errors, and the ends of its 95 % interval (Wilson's)."""
    n = len(measured.rows)
    share = float(np.mean(measured.predicted != codes[measured.rows]))
    z2 = 1.96**2
    middle = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = 1.96 * np.sqrt(share * (1 - share) / n + z2 / (4 * n * n)) / (1 + z2 / n)
    return share, float(max(middle - half, 0.0)), float(min(middle + half, 1.0))


def log_loss_of(measured: Measured, codes: NDArray[np.intp]) -> float:
    """Mean of minus the logarithm of the true classes' probabilities."""
    truth = measured.probabilities[np.arange(len(measured.rows)), codes[measured.rows]]
    return float(-np.log(np.clip(truth, LEAST_PROBABILITY, 1.0)).mean())


def reliability(
    measured: Measured, codes: NDArray[np.intp], n_bins: int = 10
) -> list[tuple[float, float, int]]:
    """Mean probability, share of rows for which it came true, and number of rows, bin by bin.

    For two classes the probability is that of the second class; for more, that of the class
    predicted. Bins have equal numbers of rows.
    """
    truth = codes[measured.rows]
    if measured.probabilities.shape[1] == 2:
        chance, came_true = measured.probabilities[:, 1], truth == 1
    else:
        chance = measured.probabilities.max(axis=1)
        came_true = measured.probabilities.argmax(axis=1) == truth
    order = np.argsort(chance, kind="stable")
    return [
        (float(chance[part].mean()), float(came_true[part].mean()), len(part))
        for part in np.array_split(order, min(n_bins, max(len(order) // 20, 1)))
        if len(part)
    ]
