"""Tables 2 and 3 and Figures 1 to 3 of MCS-06: ensembles of orthogonal SVMs.

    python -m hardmargin.experiments.mcs06 --data-dir DIR [--only optdigits,letters] [--n-jobs 2]
    python -m hardmargin.experiments.mcs06 --data-dir DIR --tables none --figures 1,2 --out FILE.csv
    python -m hardmargin.experiments.mcs06 --quick

For each class some base machines are trained against all other classes, and a second classifier is
trained on their outputs [1]_. The base machines are one of

- ``core``, the paper's orthogonal CVM: `MarginDiscriminantAnalysis` by core sets;
- ``exact``, its orthogonal SVM: the same machines by ``solver="exact"``;
- ``bagged``: scikit-learn's ``SVC`` on bootstraps of the rows (``BaggingClassifier``);
- ``none``: no base machines, the second classifier is trained on the features themselves,

and the second classifier is ``svm`` (``SVC``), ``mlp`` (10 hidden units), ``cvm``
(`CoreVectorSVC`) or ``vote``. As in the paper C is 1 and the Gaussian kernel is as wide as the mean
squared distance between rows, in both layers. There are 1, 3 or 5 base machines for each class
(Nc, 3Nc and 5Nc in all). Where the paper does not tell, we read it so:

- Features are standardised by the training rows; the pixels of mnist are divided by 255 instead.
- Machines are orthogonal to the earlier ones of their own class.
- The second layer sees the projections of all training rows, also of those that a base machine was
  trained on; bagged machines give their decision values. Both are scaled to a standard deviation of
  one.
- A vote is the sign of a machine's output with its intercept; the class with the largest share of
  its own machines wins, and of several the one with the largest mean output.
- letters are 16,000 training and 4,000 test rows in the order of the UCI file. mnist has 784
  columns here and 780 in the paper, which leaves out some that are always zero. usps and face are
  not among the data.

Table 2 holds the test errors. Bars are set for the orthogonal CVM with an SVM above it: within 0.4
points of what an independent first implementation measured under the same reading (optdigits 2.89
and 2.84 with Nc and 3Nc machines, satimage 10.30 and 9.95, pendigits 2.32 and 2.17), and at most
6.3 for letters with Nc. The numbers of ``none`` stand below Nc. Table 3 holds processor seconds of
the training of the base machines, of all threads together; the paper's are of Matlab on an Athlon
4400+.

Figure 3 is about the kernel evaluations of each base machine: the paper gives it as a plot only.
We count the rows with a coefficient in the expansion of each machine, in which the terms of the
earlier machines are multiplied out: a test row needs that many kernel values. Means over the first
1, 3 or 5 machines of each class; beside them the kernel values evaluated in training, also for each
machine, where as many were trained (with Table 3, or the largest number).

Figure 1 is the error with the network against the number of machines, and Figure 2 the error with
an SVM above 5Nc machines (the largest of ``--sizes``) where features are corrupted by noise; both
on the three small sets, and plots only in the paper. We add the noise to the training and the test
rows, after scaling, the same draw times each sigma.

A base that takes longer than ``--cut`` seconds by the clock, or more memory than there is, is shown
as ``>``, and so are its larger numbers of machines.

References
----------
.. [1] I. W. Tsang, A. Kocsor and J. T. Kwok, "Diversified SVM Ensembles for Large Data Sets", ECML
   2006.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

from hardmargin import MarginDiscriminantAnalysis
from hardmargin.datasets import load_folder
from hardmargin.discriminant.second_layer import fit_second_layer, scales, second_layer
from hardmargin.experiments.bagged import BaggedSVC
from hardmargin.experiments.mcs06_report import (
    BASES,
    CSV_HEAD,
    FINALS,
    PARTS,
    Cell,
    csv_row,
    print_parts,
    progress,
)

__all__ = ["DataSet", "Machines", "error_above", "main", "noisy", "train_machines"]

Split: TypeAlias = tuple[Any, Any, Any, Any]
FloatArray: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True)
class DataSet:
    """One data set.

    Parameters
    ----------
    file : str or None
        Its name in the data folder; None if it is not among the data.
    small : bool
        Whether Figures 1 and 2 have it.
    divide_by : float or None
        What features are divided by; None is to standardise them.
    """

    file: str | None
    small: bool = False
    divide_by: float | None = None


DATA_SETS = {
    "optdigits": DataSet("optdigits", small=True),
    "satimage": DataSet("satimage", small=True),
    "pendigits": DataSet("pendigits", small=True),
    "letters": DataSet("letter-uci"),
    # Standardised, the few rows that use a pixel at the border would be far from all others.
    "mnist": DataSet("mnist", divide_by=255.0),
    "usps": DataSet(None),
    "face": DataSet(None),
}
SLOW_SETS = ("mnist",)  # only on request
QUICK_SET, QUICK_ROWS = "digits", (300, 200)

CORE_MEMORY = "4GB"  # so that mnist stays below 6 GB in all

SIZES = (1, 3, 5)
FIGURE_1_SIZES = (1, 2, 3, 4, 5, 6, 7)
FIGURE_2_BASES = ("none", "bagged", "core")
FIGURE_2_SIGMAS = (0.0, 0.25, 0.5, 1.0, 1.5, 2.0)


@dataclass(frozen=True)
class Machines:
    """Trained base machines.

    Parameters
    ----------
    train, test : (n_rows, n_machines) arrays
        What they give for the rows.
    intercepts : (n_machines,) array
        What to add before the sign is taken.
    classes : (n_machines,) array
        The class that each separates from the others.
    n_support : (n_machines,) array
        Rows with a coefficient.
    n_evaluations : float or None
        Kernel values evaluated in training, mean of all machines; None if they were not counted.
    seconds : float
        Processor seconds of the training of all.
    """

    train: FloatArray
    test: FloatArray
    intercepts: FloatArray
    classes: NDArray[Any]
    n_support: NDArray[Any]
    n_evaluations: float | None
    seconds: float

    def first(self, size: int) -> Self:
        """Keep the first machines of every class; evaluations and time remain those of all.

        Parameters
        ----------
        size : int
            How many.

        Returns
        -------
        Machines
        """
        earlier = [int((self.classes[:j] == c).sum()) for j, c in enumerate(self.classes)]
        kept = np.array(earlier) < size
        return replace(
            self,
            train=self.train[:, kept],
            test=self.test[:, kept],
            intercepts=self.intercepts[kept],
            classes=self.classes[kept],
            n_support=self.n_support[kept],
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Parameters
    ----------
    arguments : sequence of str, optional
        Command-line arguments; those of the process if not given.

    Returns
    -------
    int
        The exit code 0; wrong arguments, missing or damaged data leave with 2.
    """
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.quick == (options.data_dir is not None):
        parser.error("give one of --data-dir and --quick")
    with ExitStack() as stack:
        writer = None
        try:
            # All are read before anything is trained: a missing file shows at once.
            splits = _quick_splits() if options.quick else _splits(options.only, options.data_dir)
            if options.out:
                # By the line, so that what was measured before an interruption is kept.
                file = stack.enter_context(
                    open(options.out, "w", buffering=1, newline="", encoding="utf-8")
                )
                writer = csv.writer(file)
                writer.writerow(CSV_HEAD)
        except (OSError, ValueError) as error:
            parser.error(str(error))
        cells = []
        for name, split in splits.items():
            for cell in _measure(name, split, options) if split else ():
                cells.append(cell)
                print(progress(cell), flush=True)
                if writer is not None:
                    writer.writerow(csv_row(cell))
    wanted = [*(f"Table {n}" for n in options.tables), *(f"Figure {n}" for n in options.figures)]
    parts = [part for part in PARTS if part.split(",")[0] in wanted]
    print_parts(parts, cells, [name for name, split in splits.items() if split is None])
    return 0


def train_machines(
    base: str, split: Split, size: int, *, cut: float | None = None, n_jobs: int | None = None
) -> Machines | None:
    """Train base machines for every class.

    Parameters
    ----------
    base : {"exact", "core", "bagged"}
        Which.
    split : tuple
        ``X_train, y_train, X_test, y_test``, scaled.
    size : int
        Machines of each class. The first ones are the same for every size.
    cut : float or None, default=None
        Seconds by the clock after which to give up.
    n_jobs : int or None, default=None
        Threads.

    Returns
    -------
    Machines or None
        None if it took longer than `cut`, or more memory than there is.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> train_machines("core", (X, y, X[:9], y[:9]), 2).test.shape
    (9, 6)
    """
    if base == "bagged":
        return _bagged(split, size, cut)
    X_train, y_train, X_test, _ = split
    model = MarginDiscriminantAnalysis(
        size, C=1.0, gamma="pairwise", max_time=cut, n_jobs=n_jobs, random_state=0
    ).set_params(solver=base, memory_limit=CORE_MEMORY if base == "core" else None)
    start = time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(X_train, y_train)
    except MemoryError:
        return None
    except ValueError as error:
        # The exact machines refuse rows whose kernel matrix is too large.
        if "memory_limit" in str(error):
            return None
        raise
    seconds = time.process_time() - start
    if "max_time" in model.stop_reason_:
        return None
    return Machines(
        train=model.transform(X_train),
        test=model.transform(X_test),
        intercepts=model.intercepts_,
        classes=model.direction_classes_,
        n_support=np.count_nonzero(model.directions_, axis=1),
        n_evaluations=float(model.n_kernel_evaluations_.mean()),
        seconds=seconds,
    )


def _bagged(split: Split, size: int, cut: float | None) -> Machines | None:
    X_train, y_train, X_test, _ = split
    start, wall = time.process_time(), time.monotonic()
    model = BaggedSVC(size, random_state=0).fit_machines(X_train, y_train)
    seconds = time.process_time() - start
    if cut is not None and time.monotonic() - wall > cut:
        return None
    supports = [m.support_ for bag in model.estimators_ for m in bag.estimators_]
    return Machines(
        train=model.transform(X_train),
        test=model.transform(X_test),
        intercepts=np.zeros(len(supports)),
        classes=model.machine_classes_,
        n_support=np.array([len(rows) for rows in supports]),
        n_evaluations=None,
        seconds=seconds,
    )


def error_above(final: str, machines: Machines, split: Split, n_jobs: int | None = None) -> float:
    """Train a second classifier on what base machines give, and test it.

    Parameters
    ----------
    final : {"svm", "mlp", "cvm", "vote"}
        Which.
    machines : Machines
        The base machines.
    split : tuple
        ``X_train, y_train, X_test, y_test``.
    n_jobs : int or None, default=None
        Threads.

    Returns
    -------
    float
        Test error in percent.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> split = X, y, X, y
    >>> error_above("svm", train_machines("core", split, 2), split) < 5
    True
    """
    by = scales(final, machines.train)
    layer = second_layer(
        final,
        machines.train / by,
        machine_classes=machines.classes,
        intercepts=machines.intercepts,
        n_jobs=n_jobs,
        random_state=0,
    )
    return _error_of(layer, machines.train / by, machines.test / by, split)


def _error_of(layer: Any, train: Any, test: Any, split: Split) -> float:
    with warnings.catch_warnings():
        # The network need not converge within its epochs.
        warnings.simplefilter("ignore", ConvergenceWarning)
        fit_second_layer(layer, train, split[1])
    return _error(layer.predict(test), split[3])


def _error_without_machines(final: str, split: Split, n_jobs: int | None) -> float:
    X_train, _, X_test, _ = split
    layer = second_layer(final, X_train, n_jobs=n_jobs, random_state=0)
    return _error_of(layer, X_train, X_test, split)


def _error(predicted: Any, y: Any) -> float:
    return 100.0 * float((predicted != y).mean())


def noisy(split: Split, sigma: float) -> Split:
    """Add Gaussian noise to the features of training and test rows.

    Parameters
    ----------
    split : tuple
        ``X_train, y_train, X_test, y_test``.
    sigma : float
        Standard deviation; the noise is the same draw, times this.

    Returns
    -------
    tuple
        A split as the one given.

    Examples
    --------
    >>> import numpy as np
    >>> X, y = np.zeros((2, 2)), np.array([0, 1])
    >>> noisy((X, y, X, y), 0.0)[0].tolist()
    [[0.0, 0.0], [0.0, 0.0]]
    """
    X_train, y_train, X_test, y_test = split
    rng = np.random.default_rng(0)
    train = X_train + sigma * rng.standard_normal(X_train.shape)
    test = X_test + sigma * rng.standard_normal(X_test.shape)
    return train, y_train, test, y_test


def _splits(names: Sequence[str], data_dir: str) -> dict[str, Split | None]:
    splits: dict[str, Split | None] = {}
    for name in names:
        file = DATA_SETS[name].file
        splits[name] = None if file is None else load_folder(file, data_dir).split()
    return splits


def _quick_splits() -> dict[str, Split | None]:
    X, y = load_digits(return_X_y=True)
    train, end = QUICK_ROWS[0], sum(QUICK_ROWS)
    return {QUICK_SET: (X[:train], y[:train], X[train:end], y[train:end])}


def _scaled(name: str, split: Split) -> Split:
    X_train, y_train, X_test, y_test = split
    X_train, X_test = X_train.astype(np.float64), X_test.astype(np.float64)
    divide_by = DATA_SETS[name].divide_by if name in DATA_SETS else None
    if divide_by is not None:
        return X_train / divide_by, y_train, X_test / divide_by, y_test
    scaler = StandardScaler().fit(X_train)
    return scaler.transform(X_train), y_train, scaler.transform(X_test), y_test


def _measure(name: str, split: Split, options: argparse.Namespace) -> Iterator[Cell]:
    split = _scaled(name, split)
    small = name == QUICK_SET or DATA_SETS[name].small
    tables, figures = options.tables, options.figures if small else options.figures - {1, 2}
    if "none" in options.base and 2 in tables:
        for final in options.final:
            if final != "vote":
                error = _error_without_machines(final, split, options.n_jobs)
                yield Cell("Table 2", name, "none", final, 0, error)
    if tables or figures - {2}:
        for base in options.base:
            if base != "none":
                yield from _measure_base(name, base, split, options, figures)
    if 2 in figures:
        yield from _measure_noise(name, split, options)


def _measure_base(
    name: str, base: str, split: Split, options: argparse.Namespace, figures: set[int]
) -> Iterator[Cell]:
    """Train once with the most machines, whose first are those of less; more often for Table 3."""
    curve = FIGURE_1_SIZES if 1 in figures else ()
    shown = options.sizes if options.tables or 3 in figures else ()
    timed = options.sizes if 3 in options.tables else ()
    machines, reached, is_cut = None, 0, False
    for size in sorted({*timed, max((*curve, *shown))}):
        fitted = None
        # What has more machines than one that was cut would be cut too.
        if not is_cut:
            fitted = train_machines(base, split, size, cut=options.cut, n_jobs=options.n_jobs)
        if fitted is None:
            is_cut = True
        else:
            machines, reached = fitted, size
        if size in timed:
            seconds = None if fitted is None else fitted.seconds
            yield Cell("Table 3", name, base, "", size, seconds)
        # Of this very fit: machines share columns of the kernel, so the first of more cost less.
        if 3 in figures and fitted is not None and fitted.n_evaluations is not None:
            yield Cell("Figure 3, training", name, base, "", size, fitted.n_evaluations)

    def of(size: int) -> Machines | None:
        return None if machines is None or size > reached else machines.first(size)

    errors: dict[tuple[str, int], float | None] = {}

    def error(final: str, size: int) -> float | None:
        if (final, size) not in errors:
            known = of(size)
            found = None if known is None else error_above(final, known, split, options.n_jobs)
            errors[final, size] = found
        return errors[final, size]

    if 3 in figures:
        for size in options.sizes:
            known = of(size)
            support = None if known is None else float(known.n_support.mean())
            yield Cell("Figure 3", name, base, "", size, support)
    if 2 in options.tables:
        for final in options.final:
            for size in options.sizes:
                yield Cell("Table 2", name, base, final, size, error(final, size))
    for size in curve:
        yield Cell("Figure 1", name, base, "mlp", size, error("mlp", size))


def _measure_noise(name: str, split: Split, options: argparse.Namespace) -> Iterator[Cell]:
    size = max(options.sizes)
    for sigma in FIGURE_2_SIGMAS:
        corrupted = noisy(split, sigma)
        for base in FIGURE_2_BASES:
            if base not in options.base:
                continue
            if base == "none":
                error = _error_without_machines("svm", corrupted, options.n_jobs)
                yield Cell("Figure 2", name, base, "svm", 0, error, sigma=sigma)
                continue
            machines = train_machines(base, corrupted, size, cut=options.cut, n_jobs=options.n_jobs)
            found = None
            if machines is not None:
                found = error_above("svm", machines, corrupted, options.n_jobs)
            yield Cell("Figure 2", name, base, "svm", size, found, sigma=sigma)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m hardmargin.experiments.mcs06",
        description="Tables and figures of MCS-06: our numbers beside the paper's.",
    )
    parser.add_argument(
        "--data-dir", help="folder of the data files (see hardmargin.datasets.folder)"
    )
    parser.add_argument(
        "--quick", action="store_true", help="some rows of scikit-learn's digits, without a folder"
    )
    parser.add_argument(
        "--only",
        type=_choice(DATA_SETS),
        default=[name for name in DATA_SETS if name not in SLOW_SETS],
        help="data sets, comma-separated (default: all but mnist)",
    )
    parser.add_argument(
        "--tables", type=_numbers(2, 3), default={2, 3}, help="2, 3 or none (default: 2,3)"
    )
    parser.add_argument(
        "--figures", type=_numbers(1, 2, 3), default={3}, help="1, 2, 3 or none (default: 3)"
    )
    parser.add_argument(
        "--sizes", type=_sizes, default=SIZES, help="machines of each class (default: 1,3,5)"
    )
    parser.add_argument(
        "--base", type=_choice(BASES), default=list(BASES), help=f"of {','.join(BASES)}"
    )
    parser.add_argument(
        "--final", type=_choice(FINALS), default=list(FINALS), help=f"of {','.join(FINALS)}"
    )
    parser.add_argument("--n-jobs", type=int, help="threads (default: 1)")
    parser.add_argument(
        "--cut", type=_seconds, default=600.0, help="seconds for one base (default: 600)"
    )
    parser.add_argument("--out", metavar="FILE.csv", help="write all numbers here")
    return parser


def _choice(known: Mapping[str, Any]) -> Callable[[str], list[str]]:
    def parse(text: str) -> list[str]:
        names = text.split(",")
        if unknown := [name for name in names if name not in known]:
            raise argparse.ArgumentTypeError(f"{unknown[0]!r} is none of {', '.join(known)}")
        return [name for name in known if name in names]

    return parse


def _numbers(*known: int) -> Callable[[str], set[int]]:
    def parse(text: str) -> set[int]:
        if text == "none":
            return set()
        names = [str(number) for number in known]
        if unknown := [part for part in text.split(",") if part not in names]:
            raise argparse.ArgumentTypeError(f"{unknown[0]!r} is none of {', '.join(names)}")
        return {int(part) for part in text.split(",")}

    return parse


def _sizes(text: str) -> tuple[int, ...]:
    parts = text.split(",")
    if not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise argparse.ArgumentTypeError(f"{text!r} is no list such as 1,3")
    return tuple(sorted({int(part) for part in parts}))


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not seconds > 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no positive number")
    return seconds


if __name__ == "__main__":
    sys.exit(main())
