"""Small data files in the formats of the real ones."""

import lzma
import zipfile
from pathlib import Path

import numpy as np


def write_npz(path: Path, **members: np.ndarray) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
        for name, values in members.items():
            with archive.open(f"{name}.npy", "w") as file:
                np.lib.format.write_array(file, np.asanyarray(values))


def write_libsvm(path: Path, text: str) -> None:
    with lzma.open(path, "wt") as file:
        file.write(text)
