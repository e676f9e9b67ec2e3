"""The papers' data sets."""

from .covtype import load_covtype_binary
from .folder import FOLDER_NAMES, FolderSet, load_folder
from .generated import make_majority_rule, make_mirror_symmetry

__all__ = [
    "FOLDER_NAMES",
    "FolderSet",
    "load_covtype_binary",
    "load_folder",
    "make_majority_rule",
    "make_mirror_symmetry",
]
