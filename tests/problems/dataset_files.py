"""Small data files in the formats of the real ones, and a catalogue that expects them."""

import dataclasses
import lzma
import zipfile
from pathlib import Path

import numpy as np

from hardmargin.datasets.catalogue import CATALOGUE


def write_npz(path: Path, **members: np.ndarray) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
        for name, values in members.items():
            with archive.open(f"{name}.npy", "w") as file:
                np.lib.format.write_array(file, np.asanyarray(values))


def write_libsvm(path: Path, text: str) -> None:
    with lzma.open(path, "wt") as file:
        file.write(text)


def write_member(path: Path, name: str, content: bytes) -> None:
    """Replace the content of one member of an archive."""
    with zipfile.ZipFile(path) as archive:
        members = {member: archive.read(member) for member in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for member, old in members.items():
            archive.writestr(member, content if member == name else old)


def enter(monkeypatch, name, **changes):
    """Change the entry of a set until the test ends."""
    monkeypatch.setitem(CATALOGUE, name, dataclasses.replace(CATALOGUE[name], **changes))


def _header(text: str) -> bytes:
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()


def _described(shape: str) -> bytes:
    return _header(f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}}}\n")


#: What numpy reads as bytes, or fails to read with errors of many kinds.
NOT_ARRAYS = {
    "bytes": b"no array",
    "a header without end": _header("{'descr': '<f8', 'shape': (3,\n"),
    "more than all memory": _described(f"({2**50},)"),
    "more than all integers": _described(f"({2**70},)"),
}
