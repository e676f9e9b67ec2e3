"""The parts of a model file, which is a zip archive, unpacked up to a number of bytes.

A small archive can unpack to any size, and an archive within it to much more. So what a part says
of its size is added up before it is unpacked, it is unpacked piece by piece and never beyond that
size, and what is inside must agree: an array with the bytes that follow its header. JSON becomes
objects that are larger than its text, and counts as much as they may take.
"""

from __future__ import annotations

import io
import json
import math
import re
import zipfile
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

#: A file may unpack to this many bytes, or to this many times its size. Models of one-hot columns
#: unpack to a hundred times theirs, padding to a thousand.
LEAST_LIMIT, FILE_SIZES = 512 << 20, 100

#: Bytes that are unpacked at a time.
PIECE = 1 << 20

#: Bytes of an object for every sign that makes one, and of text for every character in JSON.
BYTES_OF_SIGN, BYTES_OF_CHARACTER = 60, 4

#: What begins a line, and takes nothing once it is read.
INDENT = re.compile(rb"\n *")

#: Bytes of an array's header, and how to read it.
LONGEST_HEADER = 1 << 16
HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}

#: How parts may be packed: the others unpack a piece to any number of bytes.
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


class TooLargeError(Exception):
    """A file that unpacks to more than it may; the argument is the number of bytes."""


class ByteLimit:
    """Bytes that a file may unpack to.

    Parameters
    ----------
    n_bytes : int
        As many.
    """

    def __init__(self, n_bytes: int) -> None:
        self.n_bytes, self.taken = n_bytes, 0

    def take(self, n_bytes: int) -> None:
        """Count bytes, and raise an error if these are too many."""
        self.taken += n_bytes
        if self.taken > self.n_bytes:
            raise TooLargeError(self.taken)


class Parts(AbstractContextManager["Parts"]):
    """An archive that is open.

    Parameters
    ----------
    file : path or file
        The archive.
    limit : ByteLimit
        What its parts together are taken from, before any of them is unpacked.
    only : str, optional
        The one part that will be read.
    """

    def __init__(self, file: Path | io.BytesIO, limit: ByteLimit, only: str | None = None) -> None:
        self._limit = limit
        self._archive = zipfile.ZipFile(file)
        try:
            self._check(only)
        except BaseException:
            self._archive.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._archive.close()

    def _check(self, only: str | None) -> None:
        infos = self._archive.infolist()
        if only is not None:
            infos = [info for info in infos if info.filename == only]
        self._limit.take(sum(info.file_size for info in infos))
        if len({info.filename for info in infos}) < len(infos):
            raise ValueError("two parts have the same name")
        for info in infos:
            if info.compress_type not in METHODS:
                raise ValueError(f"{info.filename} is packed as no model is")

    @property
    def names(self) -> list[str]:
        """The names of all parts."""
        return self._archive.namelist()

    def read(self, name: str) -> bytearray:
        """Unpack a part; it must be as long as it says."""
        info = self._archive.getinfo(name)
        unpacked = bytearray()
        with self._archive.open(info) as file:
            while piece := file.read(PIECE):  # never beyond the size that the archive gives
                unpacked += piece
        if len(unpacked) != info.file_size:
            raise ValueError(f"{name} is not as long as it says")
        return unpacked

    def json(self, name: str) -> Any:
        """Read a part of JSON."""
        data = self.read(name)
        n_signs = sum(map(data.count, (b",", b"[", b"]", b"{", b"}")))
        n_characters = sum(
            len(INDENT.sub(b"", data[start : start + PIECE]))
            for start in range(0, len(data), PIECE)
        )
        if not data.isascii():  # a character may widen all others of a text
            n_characters += len(data)
        self._limit.take(BYTES_OF_SIGN * n_signs + BYTES_OF_CHARACTER * n_characters)
        return json.loads(data)

    def array(self, name: str) -> NDArray[Any]:
        """Read an array."""
        return _array(self.read(name), name)

    def sparse(self, name: str) -> Any:
        """Read a sparse matrix, which is an archive of arrays."""
        from scipy.sparse import load_npz

        packed = io.BytesIO(self.read(name))
        with Parts(packed, self._limit) as parts:
            for inner in parts.names:
                parts.array(inner)
        packed.seek(0)
        return load_npz(packed)

    def stored(self) -> bytes:
        """Pack all parts into an archive that is not compressed, so that any reader is safe."""
        whole = io.BytesIO()
        with zipfile.ZipFile(whole, "w") as archive:
            for name in self.names:
                archive.writestr(name, bytes(self.read(name)))
        return whole.getvalue()


def limit_of(path: Path) -> int:
    """Return the bytes that a file may unpack to if nobody says otherwise."""
    return max(LEAST_LIMIT, FILE_SIZES * path.stat().st_size)


def _array(data: bytearray, name: str) -> NDArray[Any]:
    """Read an array, unless its header promises other bytes than there are."""
    file = io.BytesIO(memoryview(data)[:LONGEST_HEADER])
    read = HEADERS[np.lib.format.read_magic(file)]
    shape, is_by_columns, dtype = read(file)
    n_bytes = math.prod(shape) * max(dtype.itemsize, 1)
    if min(shape, default=0) < 0 or n_bytes != len(data) - file.tell() or dtype.hasobject:
        raise ValueError(
            f"{name} is an array of shape {shape} and type {dtype}, and has other bytes"
        )
    array = np.frombuffer(data, dtype, offset=file.tell())
    if not array.flags.aligned:
        array = array.copy()
    return array.reshape(shape, order="F" if is_by_columns else "C")
