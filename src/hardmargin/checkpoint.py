"""Checkpoints: the finished steps of a fit in a file, so that the same fit can resume later.

A fit is a sequence of steps that depend only on its rows and parameters: votes, cells, trials of
gammas, machines. A step that is finished is kept; when the same fit runs again, its result is read
instead of computed, and the model is the same, bit for bit. Machines of long steps also keep their
states, from which they resume.

A temporary file is written first, which then replaces the old one: whatever happens, there is a
whole checkpoint. It holds pickled objects, so never read one that others could have written.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from threading import Lock
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hardmargin.warn import warn_caller

#: The file is written again after this many seconds or, if writing takes long, after this many
#: times as long as it took.
SECONDS_BETWEEN = 5.0
REST = 20.0

#: Its number changes with what the steps are made of.
_MAGIC = b"hardmargin checkpoint 5\n"
_DIGEST_BYTES = 32

_Key: TypeAlias = tuple[str, int]  # the name of a step, and which one of that name it is


class Checkpoint:
    """Finished steps of one fit.

    Parameters
    ----------
    path : str or path
        The file. If it is there, its steps are used.
    fit : str
        What distinguishes this fit from others: see `fingerprint`.
    clock : callable, optional
        Returns the time in seconds; None is ``time.monotonic``.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from hardmargin.checkpoint import Checkpoint
    >>> path = Path(tempfile.mkdtemp()) / "fit.checkpoint"
    >>> first = Checkpoint(path, "this fit")
    >>> first.step("a sum", lambda: 1 + 1)
    2
    >>> first.write()
    >>> Checkpoint(path, "this fit").step("a sum", lambda: 1 / 0)
    2
    """

    def __init__(
        self, path: str | os.PathLike[str], fit: str, clock: Callable[[], float] | None = None
    ) -> None:
        self._path, self._fit, self._clock = Path(path), fit, clock or time.monotonic
        self._steps: dict[_Key, bytes] = {}
        self._states: dict[_Key, dict[int, bytes]] = {}
        self._uses: Counter[str] = Counter()
        self._lock, self._is_new = Lock(), False
        _check_place(self._path)
        if self._path.exists():
            self._steps, self._states = _read(self._path, fit)
        else:
            self._begin()
        self._next = self._clock() + SECONDS_BETWEEN

    def step(
        self, name: str, compute: Callable[[], Any], is_finished: Callable[[], bool] = lambda: True
    ) -> Any:
        """Return the result of a step, and keep it.

        Parameters
        ----------
        name : str
            Name of the step. Steps of the same name must always come in the same order.
        compute : callable
            Called if the result is not known.
        is_finished : callable
            Called afterwards; a result that is not finished is not kept.
        """
        with self._lock:
            key = name, self._uses[name]
            self._uses[name] += 1
        if key in self._steps:
            return pickle.loads(self._steps[key])
        result = compute()
        if is_finished():
            pickled = pickle.dumps(result, protocol=5)
            with self._lock:
                self._steps[key], self._is_new = pickled, True
                self._states.pop(key, None)
                if self._clock() >= self._next:
                    self._try_to_write()
        return result

    def knows(self, name: str) -> bool:
        """Whether the result of the next step of that name is known."""
        with self._lock:
            return (name, self._uses[name]) in self._steps

    def unfinished(self, name: str) -> Unfinished:
        """Return the states of the machines of the next step of that name."""
        with self._lock:
            return Unfinished(self, (name, self._uses[name]))

    def states(self, key: _Key) -> dict[int, bytes]:
        """Return the states of a step's machines."""
        return self._states.get(key, {})

    def keep(self, key: _Key, machine: int, state: bytes) -> None:
        """Keep the state of a machine, in place of an earlier one."""
        with self._lock:
            self._states.setdefault(key, {})[machine] = state
            self._is_new = True
            if self._clock() >= self._next:
                self._try_to_write()

    def write(self) -> None:
        """Write what is new; a file that cannot be written is a warning."""
        with self._lock:
            if self._is_new:
                self._try_to_write()

    def remove(self) -> None:
        """Delete the file: the fit is finished."""
        self._path.unlink(missing_ok=True)

    def _begin(self) -> None:
        """Write the first file, and fail now if it cannot be written."""
        try:
            self._write()
        except OSError as error:
            message = f"checkpoint={str(self._path)!r} cannot be written: {error.strerror}"
            raise OSError(error.errno, message) from None

    def _try_to_write(self) -> None:
        begin = self._clock()
        try:
            self._write()
        except OSError as error:
            warn_caller(
                f"The checkpoint {str(self._path)!r} could not be written ({error.strerror}): the "
                "fit goes on, and the last checkpoint is still there.",
                UserWarning,
            )
        took = self._clock() - begin
        self._next, self._is_new = begin + took + max(SECONDS_BETWEEN, REST * took), False

    def _write(self) -> None:
        """Write a whole new file, and replace the old one with it."""
        payload = pickle.dumps((self._fit, self._steps, self._states), protocol=5)
        temporary = self._path.with_name(f"{self._path.name}.{os.getpid()}.tmp")
        try:
            with open(temporary, "wb") as file:
                file.write(_MAGIC + hashlib.sha256(payload).digest() + payload)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, self._path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


class Unfinished:
    """The machines of a step that is not finished.

    Parameters
    ----------
    checkpoint : Checkpoint
        Where their states are kept.
    key : (str, int)
        The step.
    """

    def __init__(self, checkpoint: Checkpoint, key: _Key) -> None:
        self._checkpoint, self._key = checkpoint, key

    @property
    def seconds(self) -> float:
        """After how many seconds machines should keep their states."""
        return SECONDS_BETWEEN

    def states(self, n_machines: int) -> list[bytes]:
        """Return the states to resume from; empty for machines that have not begun."""
        known = self._checkpoint.states(self._key)
        return [known.get(machine, b"") for machine in range(n_machines)]

    def keep(self, machine: int, state: bytes) -> float:
        """Keep the state of a machine; return the seconds until it should be kept again."""
        begin = time.monotonic()
        self._checkpoint.keep(self._key, machine, state)
        return max(SECONDS_BETWEEN, REST * (time.monotonic() - begin))


def _check_place(path: Path) -> None:
    """Refuse a path at which there can be no file."""
    if path.is_dir():
        raise IsADirectoryError(f"checkpoint={str(path)!r} is a folder; give the name of a file.")
    if not path.parent.is_dir():
        raise FileNotFoundError(
            f"checkpoint={str(path)!r}: there is no folder {str(path.parent)!r}; create it first, "
            "or choose another."
        )


def _read(path: Path, fit: str) -> tuple[dict[_Key, bytes], dict[_Key, dict[int, bytes]]]:
    """Read the steps and states of a fit, and refuse those of others."""
    content = path.read_bytes()
    if not content.startswith(_MAGIC):
        raise ValueError(f"{str(path)!r} is not a checkpoint of this version; choose another name.")
    digest, payload = content[len(_MAGIC) :][:_DIGEST_BYTES], content[len(_MAGIC) + _DIGEST_BYTES :]
    if hashlib.sha256(payload).digest() != digest:
        raise ValueError(f"The checkpoint {str(path)!r} is damaged; delete it to begin again.")
    of_fit, steps, states = pickle.loads(payload)
    if of_fit != fit:
        raise ValueError(
            f"The checkpoint {str(path)!r} belongs to a different fit (other rows, labels, weights "
            "or parameters, or another version); delete it to begin again, or choose another name."
        )
    return steps, states


def fingerprint(parts: Iterable[Any]) -> str:
    """Tell fits apart: a hash of arrays, and of the text of everything else.

    Examples
    --------
    >>> import numpy as np
    >>> from hardmargin.checkpoint import fingerprint
    >>> fingerprint([np.ones(3), "a"]) == fingerprint([np.ones(3), "a"])
    True
    >>> fingerprint([np.ones(3), "a"]) == fingerprint([np.ones(3), "b"])
    False
    """
    found = hashlib.sha256()
    for part in parts:
        if isinstance(part, np.ndarray) and part.dtype != object:
            found.update(f"{part.dtype} {part.shape}".encode())
            for block in np.array_split(part, max(1, part.nbytes // 2**24)):
                found.update(np.ascontiguousarray(block).data)
        elif isinstance(part, np.ndarray):
            found.update(repr(part.tolist()).encode())
        else:
            found.update(repr(part).encode())
        found.update(b"\n")
    return found.hexdigest()


def arrays_of(X: Any) -> list[NDArray[Any]]:
    """Arrays that rows consist of; of rows in blocks, the blocks' hashes, in order."""
    if hasattr(X, "each"):  # they may live elsewhere, and are hashed there
        return [np.array(X.each(_fingerprint_of_rows))]
    return [X.data, X.indices, X.indptr] if hasattr(X, "indptr") else [np.asarray(X)]


def _fingerprint_of_rows(X: Any) -> str:
    return fingerprint([X.shape, *arrays_of(X)])
