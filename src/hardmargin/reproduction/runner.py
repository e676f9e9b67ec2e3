"""Runs tasks: several at a time, keeping finished ones, carrying on when one fails."""

from __future__ import annotations

import hashlib
import inspect
import json
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed, parallel_config
from threadpoolctl import threadpool_limits

import hardmargin
from hardmargin.io import write_whole
from hardmargin.reproduction.parts import Cell, Curve, CutError, NoDataError, Part, Settings, Task
from hardmargin.reproduction.progress import Progress
from hardmargin.reproduction.verdicts import Outcome

__all__ = ["run", "tasks_of"]


def tasks_of(part: Part, settings: Settings) -> list[Task]:
    """Give the tasks of a part on the wanted data sets.

    Parameters
    ----------
    part : Part
        Which.
    settings : Settings
        Which data sets.

    Returns
    -------
    list of Task
    """
    only = settings.only
    return [task for task in part.tasks(settings) if only is None or task.data_set in only]


def run(
    parts: Iterable[Part],
    settings: Settings,
    *,
    out: Path | None = None,
    n_jobs: int = 1,
    quiet: bool = False,
) -> dict[str, Outcome]:
    """Run all tasks of some parts, each task once.

    Parameters
    ----------
    parts : iterable of Part
        Which.
    settings : Settings
        The user's settings.
    out : Path or None, default=None
        A folder: finished tasks are kept in its folder ``cells`` and not run again unless the
        package or the data files changed. Tasks that failed or lacked their data are run again.
    n_jobs : int, default=1
        Number of processes, with one BLAS thread each.
    quiet : bool, default=False
        Whether to report no progress.

    Returns
    -------
    dict
        What every task gave, by its key.
    """
    tasks = {task.key: task for part in parts for task in tasks_of(part, settings)}
    data = _data_files(settings.data_dir)
    files = {key: _file(task, settings, data, out) for key, task in tasks.items()}
    outcomes: dict[str, Outcome] = {}
    with Progress(len(tasks), quiet=quiet) as progress:
        for key, file in files.items():
            kept = None if file is None else _kept(file)
            if kept is not None:
                outcomes[key] = kept
                progress.done(key, "kept from an earlier run")
        waiting = [task for key, task in tasks.items() if key not in outcomes]
        waiting.sort(key=lambda task: not task.is_long)
        for key, outcome in _run(waiting, settings, files, n_jobs):
            outcomes[key] = outcome
            remark: str | None = f"{outcome.seconds:.1f} s"
            if settings.quick and outcome.status == "no data":
                remark = None  # the report says once what a quick run skips
            elif outcome.failure:
                remark = f"{remark}, {outcome.status}: {outcome.failure}"
            progress.done(key, remark)
    return outcomes


def _run(
    tasks: Sequence[Task], settings: Settings, files: dict[str, Path | None], n_jobs: int
) -> Iterator[tuple[str, Outcome]]:
    if n_jobs == 1 or len(tasks) < 2:
        for task in tasks:
            yield _execute(task, settings, files[task.key])
        return
    calls = (delayed(_execute)(task, settings, files[task.key]) for task in tasks)
    with parallel_config("loky", inner_max_num_threads=1):
        yield from Parallel(n_jobs, return_as="generator_unordered", pre_dispatch=n_jobs)(calls)


def _execute(task: Task, settings: Settings, file: Path | None) -> tuple[str, Outcome]:
    """Run one task, and keep what it gave unless it should be tried again."""
    start = time.monotonic()
    found: list[Cell | Curve] = []
    status, failure = "ok", ""
    try:
        with threadpool_limits(1):
            for item in task.function(*task.arguments, settings):
                if isinstance(item, Cell) and item.place not in task.fills:
                    raise ValueError(f"the task does not declare {item.place} among its fills")
                found.append(item)
    except NoDataError as error:
        status, failure = "no data", str(error)
    except (CutError, MemoryError) as error:
        status, failure = "cut", str(error) or "more memory than there is"
    except Exception as error:
        status, failure = "failed", f"{type(error).__name__}: {error}"
    cells = {item.place: item for item in found if isinstance(item, Cell)}
    absent: Any = "missing" if status == "ok" else status
    filled = [cells.get(p) or Cell(*p, status=absent, reason=failure) for p in task.fills]
    curves = tuple(item for item in found if isinstance(item, Curve))
    seconds = time.monotonic() - start
    state: Any = status
    outcome = Outcome(tuple(filled), curves, seconds, failure, state)
    if file is not None and status in ("ok", "cut"):
        _keep(outcome, file)
    return task.key, outcome


def _file(task: Task, settings: Settings, data: object, out: Path | None) -> Path | None:
    """Name the file of a task by what its numbers depend on: any change to the package counts."""
    if out is None:
        return None
    source = inspect.getsource(inspect.getmodule(task.function) or task.function)
    asked = (settings.quick, settings.full, settings.cut, data)
    what = (task.key, task.arguments, task.fills, task.draws, asked, _package(), source)
    digest = hashlib.sha256(repr(what).encode()).hexdigest()[:12]
    name = re.sub(r"[^\w.-]+", "_", task.key)
    return out / "cells" / f"{name}-{digest}.json"


@cache
def _package() -> str:
    """Return a digest of the package's modules, the compiled one included."""
    folder = Path(hardmargin.__file__).parent
    digest = hashlib.sha256()
    for file in sorted([*folder.rglob("*.py"), *folder.glob("_core*.so")]):
        digest.update(file.relative_to(folder).as_posix().encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()


def _data_files(folder: str | None) -> tuple[tuple[str, int, int], ...]:
    """List the data files with sizes and times: other data are measured again."""
    if folder is None:
        return ()
    found = [(path.name, path.stat()) for path in sorted(Path(folder).iterdir()) if path.is_file()]
    return tuple((name, about.st_size, about.st_mtime_ns) for name, about in found)


def _keep(outcome: Outcome, file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(asdict(outcome))
    write_whole(file, lambda path: path.write_text(text, encoding="utf-8"))


def _kept(file: Path) -> Outcome | None:
    try:
        fields = json.loads(file.read_text(encoding="utf-8"))
        cells = tuple(Cell(**cell) for cell in fields.pop("cells"))
        curves = tuple(
            Curve(**curve | {"x": tuple(curve["x"]), "y": tuple(curve["y"])})
            for curve in fields.pop("curves")
        )
        return Outcome(cells, curves, **fields)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        # Absent, or from another version: it is measured again.
        return None
