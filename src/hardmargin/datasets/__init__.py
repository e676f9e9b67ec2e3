"""The papers' data sets."""

from .covtype import load_covtype_binary
from .folder import FOLDER_NAMES, FolderSet, load_folder

__all__ = ["FOLDER_NAMES", "FolderSet", "load_covtype_binary", "load_folder"]
