"""Downloads that are checked, kept, and never half written."""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import urllib.request
from collections.abc import Iterator
from http.client import HTTPException
from pathlib import Path
from typing import BinaryIO

__all__ = ["DataUnavailableError", "fetch_file", "forget_file"]

_BLOCK = 1 << 16
_AGENT = {"User-Agent": "hardmargin"}  # some servers refuse urllib's own name


class DataUnavailableError(OSError):
    """No source has the data set."""


def fetch_file(
    url: str,
    folder: Path,
    *,
    sha256: str | None = None,
    download: bool = True,
    timeout: float = 30.0,
) -> Path:
    """Return a local copy of a file, downloaded only if there is no intact copy.

    A copy is intact if it has the checksum `sha256` or, where that is not known, the checksum it
    had when it was downloaded, which is kept beside it. A copy that was cut short or changed is
    downloaded again.

    Parameters
    ----------
    url : str
        Address of the file.
    folder : Path
        Where copies are kept; created if it does not exist.
    sha256 : str or None, default=None
        Checksum, in hexadecimal digits.
    download : bool, default=True
        Whether to download; if not, there must be an intact copy.
    timeout : float, default=30.0
        Seconds to wait for the response, and for each further block of it.

    Returns
    -------
    Path
        The copy.
    """
    path = folder / url.rsplit("/", 1)[-1]
    expected = sha256 or _kept_checksum(path)
    if path.is_file() and expected is not None and _checksum(path) == expected:
        return path
    if not download:
        raise DataUnavailableError(f"{url} has not been downloaded before, and download=False")
    folder.mkdir(parents=True, exist_ok=True)
    with _replacement(path) as file:
        found = _copy(url, file, timeout)
        if sha256 is not None and found != sha256:
            raise DataUnavailableError(
                f"{url} has the sha256 {found}, not {sha256}: it was changed or damaged"
            )
        # Written first: an interruption in between leaves a copy that fails the check.
        with _replacement(_note(path)) as note:
            note.write(found.encode())
    return path


def forget_file(path: Path) -> None:
    """Remove a copy, so that the next call downloads it.

    Parameters
    ----------
    path : Path
        What `fetch_file` returned.
    """
    path.unlink(missing_ok=True)
    _note(path).unlink(missing_ok=True)


def _copy(url: str, file: BinaryIO, timeout: float) -> str:
    """Write the file at `url` and return its checksum."""
    digest, size = hashlib.sha256(), 0
    request = urllib.request.Request(url, headers=_AGENT)
    try:
        with urllib.request.urlopen(request, timeout=timeout) as response:
            announced = response.headers.get("Content-Length")
            while block := response.read(_BLOCK):
                file.write(block)
                digest.update(block)
                size += len(block)
    except (OSError, HTTPException) as error:
        raise DataUnavailableError(f"{url} cannot be downloaded ({error})") from error
    if announced is not None and size != int(announced):
        raise DataUnavailableError(f"{url} was cut short: {size} of {announced} bytes arrived")
    return digest.hexdigest()


@contextlib.contextmanager
def _replacement(path: Path) -> Iterator[BinaryIO]:
    """Open a file that replaces `path` at the end, unless there is an error."""
    # Not `tempfile`: others could not read its files, and the folder may be shared.
    draft = path.with_name(f".{path.name}-{secrets.token_hex(4)}")
    try:
        with draft.open("xb") as file:
            yield file
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)


def _note(path: Path) -> Path:
    return path.with_name(f"{path.name}.sha256")


def _kept_checksum(path: Path) -> str | None:
    note = _note(path)
    return note.read_text(encoding="ascii", errors="replace") if note.is_file() else None


def _checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
