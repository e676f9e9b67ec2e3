"""Rivals in environments of their own: made by pip, and asked through a worker program.

Nothing of them is imported here, and none can change the versions that another one runs with.
"""

from __future__ import annotations

import json
import os
import subprocess
import venv
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt
from forked import Row

Array = npt.NDArray[Any]

HERE = Path(__file__).resolve().parent
NAMES = ("lightgbm", "catboost", "xrfm")  # rivals/NAME.txt has the versions
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")


class Worker:
    """A running `worker.py` of one rival."""

    def __init__(self, name: str, env_dir: Path) -> None:
        self._folder = TemporaryDirectory()
        self._process = subprocess.Popen(
            [python_of(name.split("-")[0], env_dir), str(HERE / "worker.py"), name],
            **{"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True},
            env=os.environ | ONE_THREAD,
        )

    def run(self, X: Array, y: Array, X_test: Array, cut: float) -> Row:
        """Times, `labels` and `probabilities` of the test rows, or why there are none."""
        split, out = (str(Path(self._folder.name, name)) for name in ("split.npz", "out.npz"))
        np.savez(split, X=X, y=y, X_test=X_test)
        try:
            print(json.dumps({"split": split, "out": out, "cut": cut}), file=self._process.stdin)
            self._process.stdin.flush()
            row = json.loads(self._process.stdout.readline())
        except (BrokenPipeError, ValueError):
            return {"status": "failed", "note": "the worker has ended"}
        return row | dict(np.load(out)) if row["status"] == "ok" else row


class Missing:
    """Takes the place of a worker that cannot be started."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def run(self, *_: Any) -> Row:
        return {"status": "missing", "note": self._reason}


def start(name: str, env_dir: Path) -> Worker | Missing:
    try:
        return Worker(name, env_dir)
    except (OSError, subprocess.CalledProcessError) as error:
        lines = (getattr(error, "stderr", "") or str(error)).strip().splitlines()
        return Missing(lines[-1])


def python_of(name: str, env_dir: Path) -> str:
    """The interpreter of an environment, which is made first if the versions have changed."""
    versions = (HERE / "rivals" / f"{name}.txt").read_text()
    folder = env_dir / name
    stamp, python = folder / "installed.txt", str(folder / "bin" / "python")
    if not stamp.exists() or stamp.read_text() != versions:
        venv.create(folder, clear=True, with_pip=True)
        listed = str(HERE / "rivals" / f"{name}.txt")
        subprocess.run(
            [python, "-m", "pip", "install", "--quiet", "-r", listed],
            **{"check": True, "capture_output": True, "text": True},
        )
        stamp.write_text(versions)
    return python
