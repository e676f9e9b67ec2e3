"""The papers' data sets."""

from .covtype import load_covtype_binary
from .download import DataUnavailableError
from .folder import FOLDER_NAMES, FolderSet, load_folder
from .generated import (
    make_majority_rule,
    make_mirror_symmetry,
    make_ringnorm,
    make_twonorm,
    make_waveform,
)
from .loading import load
from .lookup import Summary, list_sets

__all__ = [
    "FOLDER_NAMES",
    "DataUnavailableError",
    "FolderSet",
    "Summary",
    "list_sets",
    "load",
    "load_covtype_binary",
    "load_folder",
    "make_majority_rule",
    "make_mirror_symmetry",
    "make_ringnorm",
    "make_twonorm",
    "make_waveform",
]
