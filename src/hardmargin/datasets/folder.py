r"""Data sets read from a folder of files: which files, and what is in them.

The package ships no data. Any folder will do, and only the files of the sets you ask for are
needed. Below, n and p are the numbers of rows and columns; a member of an npz file is an array
written by `numpy.savez_compressed` (members compressed with LZMA are read as well). Numbers may be
of any type, labels are whole numbers.

``a9a.libsvm.xz``, ``w8a.libsvm.xz``, ``usps.libsvm.xz``, ``face.libsvm.xz``
    Training rows in LIBSVM's text format, one row per line: ``LABEL COLUMN:VALUE COLUMN:VALUE ...``
    with columns counted from 1, compressed by ``xz``. The test rows are in ``a9a.t.libsvm.xz``,
    ``w8a.t.libsvm.xz``, ``usps.t.libsvm.xz`` and ``face.t.libsvm.xz``. Labels are -1 and 1 (any two
    for usps and face). Training + test rows x columns: a9a 32561 + 16281 x 123, w8a 49749 + 14951 x
    300, usps 266079 + 75383 x 676, face 346260 + 24045 x 361. Read by ``load_folder("a9a")``,
    ``"w8a"``, ``"usps"``, ``"face"``, and by ``load("adult")``, ``"web"``, ``"usps"``, ``"face"``.
``adult_web_subsets.npz``
    The rows of a9a that make up a1a to a8a, and the rows of w8a that make up w1a to w7a: members
    ``a1a``, ``w1a`` and so on, any number of them, each ``numpy.packbits`` of n ones and zeros.
    Also needs ``a9a.libsvm.xz`` or ``w8a.libsvm.xz``. Read by ``load_folder("a1a")`` and
    ``load("adult", subset=1)``; ``load_folder("w4a")`` and ``load("web", subset=4)``.
``dna.npz``, ``letter.npz``, ``mnist.npz``, ``optdigits.npz``, ``pendigits.npz``,
``satimage.npz``, ``shuttle.npz``, ``sonar.npz``, ``svmguide1.npz``, ``vowel.npz``
    Members ``Xtr`` (n, p), ``ytr`` (n,), ``Xte``, ``yte``: training and test rows, raw values.
    Training + test rows x columns: dna 2000 + 1186 x 180, letter 15000 + 5000 x 16, mnist 60000 +
    10000 x 784, optdigits 3823 + 1797 x 64, pendigits 7494 + 3498 x 16, satimage 4435 + 2000 x 36,
    shuttle 43500 + 14500 x 9, sonar 104 + 104 x 60 (the halves by aspect angle; -1 is a rock, 1 a
    mine), svmguide1 3089 + 4000 x 4, vowel 528 + 462 x 10. Both functions use these names, except
    that ``load("astro")`` reads svmguide1 and ``load("letters", split="tnn08")`` reads letter.
``letter.npz``
    Also has members ``X`` (20000, 16) and ``y``: the rows in the order of the UCI file, the first
    four fifths for training. Read by ``load_folder("letter-uci")`` and ``load("letters")``. Labels
    are 1 to 26 for A to Z, features are 0 to 15: 7.5 (v + 1) for the value v of the LIBSVM site.
``page-blocks.npz``, ``segment.npz``, ``splice.npz``, ``zoo.npz``
    Members ``X`` (n, p) and ``y`` (n,), raw values; no split. Shapes: page-blocks (5473, 10),
    segment (2310, 19), splice (3175, 60), zoo (101, 16). Both functions use these names, except
    that only ``load_folder`` reads this splice, which has two classes and letters as 1 to 4.
``covtype.npz``
    581012 rows. Members ``X10`` (n, 10): the measured columns; ``wilderness`` (n,): the area, 0 to
    3; ``soil`` (n,): its type, 0 to 39; ``y`` (n,): the class, 1 to 7. Read by
    ``load_folder("covtype")``, ``load("covtype")`` and `load_covtype_binary`.
``ida_benchmark.npz``
    Sets of the IDA collection. For each, say banana, the members ``banana_X`` (n, p), ``banana_y``
    (n,) with labels -1 and 1 and, if realizations are known, ``banana_train`` and ``banana_test``:
    one line of row numbers per realization, counted from 0. The names are banana, breast_cancer,
    diabetis, flare_solar, german, heart, image, ringnorm, splice, thyroid, titanic, twonorm and
    waveform; `list_sets` has their n and p. Read by ``load_folder("ida-banana")``,
    ``"ida-breast-cancer"`` and so on, and by ``load("banana")`` and so on, except that
    ``load("cancer")`` reads breast_cancer and ``load("ida-splice")`` reads splice.
``sonar.dat``, ``wisconsin.dat``
    Text, one row per line, columns separated by commas, the class last, no missing values:
    (208, 60) features, classes R and M; (683, 9) features, classes 2 and 4, without the column of
    identity numbers. Lines that begin with ``@`` or ``#`` are skipped. Read by ``load("sonar")``,
    ``load("wisconsin")`` and, the second one, ``hardmargin reproduce``. ``sonar.npz``, which has
    the split, is used if both are there.

The other sets of `load` do not come from a folder.

Where such data come from: a1a to a9a, w1a to w8a, svmguide1, dna, letter and splice from the LIBSVM
site (https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/); covtype, letter in UCI's order,
optdigits, page-blocks, pendigits, satimage, shuttle, segment, sonar, vowel and wisconsin from the
UCI archive (https://archive.ics.uci.edu), the last four also as files of KEEL (without sonar's
split); zoo from the R package mlbench; the IDA collection
from https://github.com/tdiethe/gunnar_raetsch_benchmark_datasets; MNIST from OpenML (number 554).
For usps and face, the extended sets of http://www.cs.ust.hk/~ivor/cvm.html, no copy is known.
Features are on the scale of their source; `load` checks the numbers of rows, columns and classes.
"""

from __future__ import annotations

import lzma
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

__all__ = ["FOLDER_NAMES", "FolderSet", "files_of", "load_folder", "read_dat"]

Features: TypeAlias = "npt.NDArray[Any] | sp.csr_matrix[Any]"
Labels: TypeAlias = "npt.NDArray[np.int64]"
Rows: TypeAlias = "npt.NDArray[np.intp]"

_WIDTHS = {"a9a": 123, "face": 361, "usps": 676, "w8a": 300}
_SUBSETS = (*(f"a{i}a" for i in range(1, 9)), *(f"w{i}a" for i in range(1, 8)))
_MASKS = "adult_web_subsets.npz"
_WITH_SPLIT = (
    *("dna", "letter", "mnist", "optdigits", "pendigits"),
    *("satimage", "shuttle", "sonar", "svmguide1", "vowel"),
)
_WITHOUT_SPLIT = ("covtype", "page-blocks", "segment", "splice", "zoo")
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


@dataclass(frozen=True)
class FolderSet:
    """One data set, on its source's own scale.

    Parameters
    ----------
    name : str
        The name passed to `load_folder`.
    X : ndarray or csr_matrix of shape (n_samples, n_features)
        All rows, the published training rows first if there are any. Dense rows keep the dtype of
        the file, often a small integer whose sums and squares overflow: convert them with
        ``X.astype(float)`` before doing arithmetic.
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
        Features, labels and the published splits as the file has them: nothing is scaled, converted
        or checked against the expected size (`load` does that).

    Raises
    ------
    ValueError
        If there is no such name, or its file is damaged or has another layout.
    FileNotFoundError
        If there is no such folder, or the set's file is not in it.

    See Also
    --------
    hardmargin.datasets.folder : The files, and what is in them.

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
    if data_dir == "":  # `Path` would take the working folder, hardly what the caller meant
        raise ValueError("data_dir='' is empty; give the folder that holds the data files")
    folder = Path(data_dir)
    if not folder.is_dir():
        raise FileNotFoundError(
            f"data_dir={str(data_dir)!r} is not a folder; give the one that holds the data files"
        )
    if name in _WIDTHS:
        data = _libsvm_pair(name, folder)
    elif name in _SUBSETS:
        data = _subset(name, folder)
    elif name.startswith("ida-"):
        data = _ida(name, folder)
    else:
        data = _archive(name, folder)
    if data.X.ndim != 2 or data.X.shape[:1] != data.y.shape:
        path = str(folder / files_of(name)[0])
        raise ValueError(f"{path!r} has features {data.X.shape} but labels {data.y.shape}")
    return data


def files_of(name: str) -> tuple[str, ...]:
    """Name the files that `load_folder` reads for a data set.

    Parameters
    ----------
    name : str
        One of `FOLDER_NAMES`.

    Returns
    -------
    tuple of str
        Names without the folder.

    Examples
    --------
    >>> files_of("a1a")
    ('adult_web_subsets.npz', 'a9a.libsvm.xz')
    """
    if name in _WIDTHS:
        return f"{name}.libsvm.xz", f"{name}.t.libsvm.xz"
    if name in _SUBSETS:
        return _MASKS, f"{_whole_of(name)}.libsvm.xz"
    if name.startswith("ida-"):
        return ("ida_benchmark.npz",)
    return (f"{name.removesuffix('-uci')}.npz",)


def read_dat(name: str, data_dir: str | Path) -> tuple[npt.NDArray[np.float64], npt.NDArray[Any]]:
    """Read a text file from a folder, with the class in its last column.

    Parameters
    ----------
    name : str
        The file's name, without ``.dat``.
    data_dir : str or Path
        The folder.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        Features.
    labels : ndarray of shape (n_samples,)
        Names of the classes.
    """
    path = Path(data_dir) / f"{name}.dat"
    _require(path)
    rows: list[list[float]] = []
    labels: list[str] = []
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.startswith(("@", "#")):
            continue
        *cells, label = (cell.strip() for cell in line.split(","))
        where = f"{str(path)!r}, line {number}"
        n_columns = len(rows[0]) if rows else max(1, len(cells))
        if len(cells) != n_columns:
            expected = f"{n_columns} as before" if rows else "one or more"
            raise ValueError(f"{where}: {len(cells)} features and a class, not {expected}")
        rows.append([_number(cell, where) for cell in cells])
        labels.append(label)
    if not rows:
        raise ValueError(f"{str(path)!r} has no rows")
    return np.array(rows), np.array(labels)


def _number(cell: str, where: str) -> float:
    try:
        value = float(cell)
    except ValueError:
        value = np.nan
    if not np.isfinite(value):
        raise ValueError(f"{where}: {cell!r} is not a number")
    return value


def _libsvm_pair(name: str, folder: Path) -> FolderSet:
    X_train, y_train = _read_libsvm(folder / f"{name}.libsvm.xz", _WIDTHS[name])
    X_test, y_test = _read_libsvm(folder / f"{name}.t.libsvm.xz", _WIDTHS[name])
    return _stacked(name, X_train, y_train, X_test, y_test)


def _whole_of(name: str) -> str:
    return "a9a" if name.startswith("a") else "w8a"


def _subset(name: str, folder: Path) -> FolderSet:
    path, whole = folder / _MASKS, _whole_of(name)
    known = [member for member in _member_names(path) if member in _SUBSETS]
    if name not in known:
        # Treated as a missing file: another source may have this part.
        found = ", ".join(known) or "none"
        raise FileNotFoundError(f"{str(path)!r} has no rows of {name!r}, only of {found}")
    X, y = _read_libsvm(folder / f"{whole}.libsvm.xz", _WIDTHS[whole])
    (bits,) = _read_members(path, name)
    if len(bits) != -(-len(y) // 8):
        raise ValueError(
            f"{str(path)!r}: {name!r} has {len(bits)} bytes, not one for every 8 of the {len(y)} "
            f"rows of {whole!r}"
        )
    chosen = np.unpackbits(bits, count=len(y)).astype(bool)
    # The LIBSVM site tests these subsets on the other rows of the same file.
    return FolderSet(name, X, y, ((np.flatnonzero(chosen), np.flatnonzero(~chosen)),))


def _ida(name: str, folder: Path) -> FolderSet:
    key = name.removeprefix("ida-").replace("-", "_")
    path = folder / files_of(name)[0]
    members = _member_names(path)
    known = [member.removesuffix("_X") for member in members if member.endswith("_X")]
    if known and key not in known:
        # Treated as a missing file: another source may have this set.
        found = ", ".join(known)
        raise FileNotFoundError(f"{str(path)!r} has no member '{key}_X', only sets {found}")
    X, y = _read_members(path, f"{key}_X", f"{key}_y")
    if f"{key}_train" not in members:
        return FolderSet(name, X, _whole(y, path))
    trains, tests = _read_members(path, f"{key}_train", f"{key}_test")
    for rows in (trains, tests):
        if rows.ndim != 2 or not np.isin(rows, np.arange(len(y))).all():
            raise ValueError(f"{str(path)!r}: realizations of {key!r} have rows that do not exist")
    pairs = zip(trains.astype(np.intp), tests.astype(np.intp), strict=True)
    return FolderSet(name, X, _whole(y, path), tuple(pairs))


def _archive(name: str, folder: Path) -> FolderSet:
    path = folder / files_of(name)[0]
    if name == "covtype":
        numbers, wilderness, soil, y = _read_members(path, "X10", "wilderness", "soil", "y")
        are_types = _are_types(wilderness, 4, len(y)) and _are_types(soil, 40, len(y))
        if numbers.shape != (len(y), 10) or not are_types:
            raise ValueError(
                f"{str(path)!r}: every row needs ten numbers, an area (0 to 3) and a soil (0 to 39)"
            )
        X = _covtype_features(numbers, wilderness, soil)
        return FolderSet(name, X, _whole(y, path))
    if name == "letter-uci":
        X, y = _read_members(path, "X", "y")
        n_train = len(y) * 4 // 5
        y = _whole(y, path)
        return _stacked(name, X[:n_train], y[:n_train], X[n_train:], y[n_train:])
    if name in _WITH_SPLIT:
        X_train, y_train, X_test, y_test = _read_members(path, "Xtr", "ytr", "Xte", "yte")
        return _stacked(name, X_train, _whole(y_train, path), X_test, _whole(y_test, path))
    X, y = _read_members(path, "X", "y")
    return FolderSet(name, X, _whole(y, path))


def _whole(labels: npt.NDArray[Any], path: Path) -> Labels:
    with np.errstate(invalid="ignore"):  # for infinite and missing labels
        whole = labels.astype(np.int64)
    if not np.array_equal(whole, labels):
        raise ValueError(f"{str(path)!r} has labels that are not whole numbers")
    return whole


def _are_types(values: npt.NDArray[Any], n_types: int, n_rows: int) -> bool:
    return values.shape == (n_rows,) and bool(np.isin(values, np.arange(n_types)).all())


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
    return FolderSet(name, X, np.concatenate([y_train, y_test]), (split,))


def _read_libsvm(path: Path, width: int) -> tuple[sp.csr_matrix[Any], Labels]:
    from sklearn.datasets import load_svmlight_file

    _require(path)
    try:
        with lzma.open(path) as text:
            X, y = load_svmlight_file(text, n_features=width)
    except Exception as error:
        if isinstance(error, lzma.LZMAError) and not path.read_bytes().startswith(b"\xfd7zXZ"):
            raise ValueError(f"{str(path)!r} is not an xz file") from error
        raise _damaged(path, error) from error
    # Many estimators, scikit-learn's SVC among them, refuse the reader's 64-bit indices.
    indices, indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return sp.csr_matrix((X.data, indices, indptr), shape=X.shape), _whole(y, path)


def _member_names(path: Path) -> list[str]:
    _require_npz(path)
    try:
        with path.open("rb") as file, np.load(file) as archive:
            return list(archive.files)
    except Exception as error:
        raise _damaged(path, error) from error


def _read_members(path: Path, *names: str) -> list[npt.NDArray[Any]]:
    found = _member_names(path)
    if not set(names) <= set(found):
        raise ValueError(
            f"{str(path)!r} has another layout: expected the members {', '.join(names)}, "
            f'found {", ".join(found) or "none"}; see help("hardmargin.datasets.folder")'
        )
    try:
        with path.open("rb") as file, np.load(file) as archive:
            members = [archive[name] for name in names]
    except Exception as error:  # numpy's reader raises nearly anything
        raise _damaged(path, error) from error
    for name, member in zip(names, members, strict=True):
        # Members that are not arrays are read as bytes.
        if not isinstance(member, np.ndarray) or member.dtype.kind not in "biuf" or not member.ndim:
            raise ValueError(
                f"{str(path)!r} has another layout: {name!r} is not an array of numbers"
            )
    return members


def _require(path: Path) -> None:
    if not path.is_file():
        raise FileNotFoundError(f"data_dir={str(path.parent)!r} has no file {path.name!r}")


def _require_npz(path: Path) -> None:
    """Refuse a file that is not npz: `numpy.load` would take it for a pickle."""
    _require(path)
    with path.open("rb") as file:
        start = file.read(2)
    if start not in (b"PK", b""):
        raise ValueError(f"{str(path)!r} is not an npz file")


def _damaged(path: Path, error: Exception) -> ValueError:
    reason = f"{type(error).__name__}: {error}"
    return ValueError(f"{str(path)!r} is damaged or cut short ({reason}); copy it again")
