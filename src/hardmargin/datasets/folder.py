"""Data sets read from a folder of files.

Three kinds of file are understood: ``NAME.npz`` (members compressed with LZMA or deflate),
``NAME.libsvm.xz`` with its test rows in ``NAME.t.libsvm.xz``, and two archives that hold several
sets: ``adult_web_subsets.npz`` (bit masks over the rows of a9a and w8a) and ``ida_benchmark.npz``
(patterns of the IDA collection, with the row numbers of its published realizations).
"""

from __future__ import annotations

import lzma
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

__all__ = ["FOLDER_NAMES", "FolderSet", "load_folder"]

Features: TypeAlias = "npt.NDArray[Any] | sp.csr_matrix[Any]"
Labels: TypeAlias = "npt.NDArray[np.int64]"
Rows: TypeAlias = "npt.NDArray[np.intp]"

_WIDTHS = {"a9a": 123, "face": 361, "usps": 676, "w8a": 300}
_SUBSETS = ("a1a", "a2a", "a3a", "a4a", "a7a", "a8a", "w1a", "w4a", "w6a", "w7a")
_WITH_SPLIT = (
    *("dna", "letter", "mnist", "optdigits", "pendigits"),
    *("satimage", "shuttle", "svmguide1", "vowel"),
)
_WITHOUT_SPLIT = ("covtype", "page-blocks", "segment", "splice")
_IDA = (
    *("banana", "breast-cancer", "diabetis", "flare-solar", "german", "heart", "image"),
    *("ringnorm", "splice", "thyroid", "titanic", "twonorm", "waveform"),
)
FOLDER_NAMES: tuple[str, ...] = tuple(
    sorted(
        (
            *(*_WIDTHS, *_SUBSETS, *_WITH_SPLIT, "letter-uci", *_WITHOUT_SPLIT),
            *(f"ida-{n}" for n in _IDA),
        )
    )
)

_DAMAGE = (EOFError, KeyError, OSError, ValueError, zipfile.BadZipFile, zlib.error, lzma.LZMAError)


@dataclass(frozen=True)
class FolderSet:
    """One data set, on its source's own scale.

    Parameters
    ----------
    name : str
        The name it was asked for by.
    X : ndarray or csr_matrix of shape (n_samples, n_features)
        All rows: those of the published training part first, if there is one.
    y : ndarray of shape (n_samples,)
        The labels as in the source, in int64.
    splits : tuple of (train, test) pairs
        Row numbers of every published split, empty if there is none.

    Examples
    --------
    >>> import numpy as np
    >>> rows = np.arange(4)
    >>> FolderSet("toy", np.eye(4), np.array([0, 1, 0, 1]), ((rows[:3], rows[3:]),)).split()[3]
    array([1])
    """

    name: str
    X: Features
    y: Labels
    splits: tuple[tuple[Rows, Rows], ...] = ()

    def split(self, realization: int = 0) -> tuple[Features, Labels, Features, Labels]:
        """Return ``X_train, y_train, X_test, y_test`` of one published split.

        Parameters
        ----------
        realization : int, default=0
            Which of `splits`.

        Returns
        -------
        tuple
            The training rows and labels, then the test rows and labels.
        """
        if not 0 <= realization < len(self.splits):
            raise ValueError(
                f"realization={realization}, but {self.name!r} has {len(self.splits)} published "
                "splits; draw one with sklearn.model_selection.train_test_split(data.X, data.y)"
            )
        train, test = self.splits[realization]
        return self.X[train], self.y[train], self.X[test], self.y[test]


def load_folder(name: str, data_dir: str | Path) -> FolderSet:
    """Read one data set from a folder.

    Parameters
    ----------
    name : str
        One of `FOLDER_NAMES`; sets of the IDA collection are called ``"ida-banana"`` and so on.
        ``"letter"`` has the 15,000 training rows of the LIBSVM site, ``"letter-uci"`` the first
        16,000 in the order of the UCI file.
    data_dir : str or Path
        The folder that holds the files.

    Returns
    -------
    FolderSet
        Features, labels and the published splits.

    Examples
    --------
    >>> load_folder("a10a", ".")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    ValueError: name='a10a' is not a known data set; use one of a1a, a2a, ...
    """
    if name not in FOLDER_NAMES:
        known = ", ".join(FOLDER_NAMES)
        raise ValueError(f"name={name!r} is not a known data set; use one of {known}")
    folder = Path(data_dir)
    if not folder.is_dir():
        raise FileNotFoundError(
            f"data_dir={str(data_dir)!r} is not a folder; give the one that holds the data files"
        )
    if name in _WIDTHS:
        return _libsvm_pair(name, folder)
    if name in _SUBSETS:
        return _subset(name, folder)
    if name.startswith("ida-"):
        return _ida(name, folder)
    return _archive(name, folder)


def _libsvm_pair(name: str, folder: Path) -> FolderSet:
    X_train, y_train = _read_libsvm(folder / f"{name}.libsvm.xz", _WIDTHS[name])
    X_test, y_test = _read_libsvm(folder / f"{name}.t.libsvm.xz", _WIDTHS[name])
    return _stacked(name, X_train, y_train, X_test, y_test)


def _subset(name: str, folder: Path) -> FolderSet:
    whole = "a9a" if name.startswith("a") else "w8a"
    X, y = _read_libsvm(folder / f"{whole}.libsvm.xz", _WIDTHS[whole])
    (bits,) = _read_members(folder / "adult_web_subsets.npz", name)
    chosen = np.unpackbits(bits, count=len(y)).astype(bool)
    # The LIBSVM site tests these subsets on the other rows of the same file.
    return FolderSet(name, X, y, ((np.flatnonzero(chosen), np.flatnonzero(~chosen)),))


def _ida(name: str, folder: Path) -> FolderSet:
    key = name.removeprefix("ida-").replace("-", "_")
    path = folder / "ida_benchmark.npz"
    X, y = _read_members(path, f"{key}_X", f"{key}_y")
    if f"{key}_train" not in _member_names(path):
        return FolderSet(name, X, y.astype(np.int64))
    trains, tests = _read_members(path, f"{key}_train", f"{key}_test")
    pairs = zip(trains.astype(np.intp), tests.astype(np.intp), strict=True)
    return FolderSet(name, X, y.astype(np.int64), tuple(pairs))


def _archive(name: str, folder: Path) -> FolderSet:
    path = folder / f"{name}.npz"
    if name == "covtype":
        numbers, wilderness, soil, y = _read_members(path, "X10", "wilderness", "soil", "y")
        X = _covtype_features(numbers, wilderness, soil)
        return FolderSet(name, X, y.astype(np.int64))
    if name == "letter-uci":
        X, y = _read_members(folder / "letter.npz", "X", "y")
        n_train = len(y) * 4 // 5
        return _stacked(name, X[:n_train], y[:n_train], X[n_train:], y[n_train:])
    if name in _WITH_SPLIT:
        return _stacked(name, *_read_members(path, "Xtr", "ytr", "Xte", "yte"))
    X, y = _read_members(path, "X", "y")
    return FolderSet(name, X, y.astype(np.int64))


def _covtype_features(
    numbers: npt.NDArray[Any], wilderness: npt.NDArray[Any], soil: npt.NDArray[Any]
) -> npt.NDArray[np.int16]:
    """Ten measured columns, then the one-hot columns of the area (4) and of the soil (40)."""
    X = np.zeros((len(numbers), 54), np.int16)
    rows = np.arange(len(numbers))
    X[:, :10] = numbers
    X[rows, 10 + wilderness.astype(np.intp)] = 1
    X[rows, 14 + soil.astype(np.intp)] = 1
    return X


def _stacked(name: str, X_train: Any, y_train: Labels, X_test: Any, y_test: Labels) -> FolderSet:
    parts: list[Any] = [X_train, X_test]
    dense = isinstance(X_train, np.ndarray)
    X: Any = np.concatenate(parts) if dense else sp.vstack(parts, format="csr")
    rows = np.arange(len(y_train) + len(y_test))
    split = rows[: len(y_train)], rows[len(y_train) :]
    y = np.concatenate([y_train, y_test]).astype(np.int64)
    return FolderSet(name, X, y, (split,))


def _read_libsvm(path: Path, width: int) -> tuple[sp.csr_matrix[Any], Labels]:
    from sklearn.datasets import load_svmlight_file

    _require(path)
    try:
        with lzma.open(path) as text:
            X, y = load_svmlight_file(text, n_features=width)
    except _DAMAGE as error:
        raise _damaged(path, error) from error
    # The reader's 64-bit indices are refused by many estimators, scikit-learn's SVC among them.
    indices, indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return sp.csr_matrix((X.data, indices, indptr), shape=X.shape), y.astype(np.int64)


def _member_names(path: Path) -> list[str]:
    _require(path)
    try:
        with path.open("rb") as file, np.load(file) as archive:
            return list(archive.files)
    except _DAMAGE as error:
        raise _damaged(path, error) from error


def _read_members(path: Path, *names: str) -> list[npt.NDArray[Any]]:
    _require(path)
    try:
        with path.open("rb") as file, np.load(file) as archive:
            return [archive[name] for name in names]
    except _DAMAGE as error:
        raise _damaged(path, error) from error


def _require(path: Path) -> None:
    if not path.is_file():
        raise FileNotFoundError(f"data_dir={str(path.parent)!r} has no file {path.name!r}")


def _damaged(path: Path, error: Exception) -> ValueError:
    reason = f"{type(error).__name__}: {error}"
    return ValueError(f"{str(path)!r} is damaged or cut short ({reason}); copy it afresh")
