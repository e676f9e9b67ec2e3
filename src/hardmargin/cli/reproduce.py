"""``hardmargin reproduce``: the papers' tables and figures."""

from __future__ import annotations

import difflib
import os
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from hardmargin.reproduction.parts import Part, Settings
    from hardmargin.reproduction.verdicts import Outcome

INTERRUPTED = 130  # a shell's exit code for a command ended by Ctrl-C
MOST_JOBS = 4  # by default: with more, the longest task alone would determine the time


def _names(
    context: click.Context, parameter: click.Parameter, text: str | None
) -> tuple[str, ...] | None:
    return None if text is None else tuple(name.strip().lower() for name in text.split(","))


class _Jobs(click.ParamType):  # type: ignore[type-arg]
    """A number of processes."""

    name = "N"

    def convert(
        self, value: Any, parameter: click.Parameter | None, context: click.Context | None
    ) -> int:
        if str(value) == "-1":
            return os.cpu_count() or 1
        if not str(value).isdecimal() or int(value) < 1:
            self.fail(f"{value!r} is not a positive number", parameter, context)
        return int(value)


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option(
    "--data-dir",
    metavar="DIR",
    help="Folder of the data files (default: the environment variable HARDMARGIN_DATA, if set); "
    'help("hardmargin.datasets.folder") describes them.',
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Folder for index.html and the CSV and PNG files of this run.",
)
@click.option(
    "--docs",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Folder for reproduction.md and its figures.",
)
@click.option("--quick", is_flag=True, help="Takes about a minute, on data bundled with libraries.")
@click.option("--full", is_flag=True, help="The published protocol where the default is coarser.")
@click.option("--only", callback=_names, metavar="SETS", help="Data sets, comma-separated.")
@click.option(
    "--n-jobs",
    type=_Jobs(),
    default=min(os.cpu_count() or 1, MOST_JOBS),
    help=f"Processes, -1 for one per core (default: one per core, at most {MOST_JOBS}; each may "
    "need 5 GB).",
)
@click.option(
    "--cut",
    type=click.FloatRange(min=0, min_open=True),
    default=240.0,
    metavar="SECONDS",
    help="After this many seconds a rival's training is stopped and printed as > (default: 240).",
)
def reproduce(
    names: tuple[str, ...],
    data_dir: str | None,
    out: Path | None,
    docs: Path | None,
    quick: bool,
    full: bool,
    only: tuple[str, ...] | None,
    n_jobs: int,
    cut: float,
) -> int:
    """Reproduce tables and figures of the four papers and print ours beside theirs.

    NAME is a part, a paper (such as tnn08) or all; 'list' shows the parts. Finished work is kept in
    the --out folder: the same command continues from there.
    """
    # Imported here, so that other commands need not wait for them.
    from hardmargin.reproduction.parts import Settings
    from hardmargin.reproduction.registry import PARTS
    from hardmargin.reproduction.report import text_part, write_docs, write_report
    from hardmargin.reproduction.report.machine import Conditions
    from hardmargin.reproduction.report.wording import skipped_line
    from hardmargin.reproduction.runner import run, tasks_of
    from hardmargin.reproduction.verdicts import gather

    if "list" in names:
        _list(PARTS.values())
        return 0
    if data_dir is None and not quick:
        data_dir = os.environ.get("HARDMARGIN_DATA")
    settings = Settings(data_dir=data_dir, quick=quick, full=full, only=only, cut=cut)
    parts = _chosen(names, PARTS)
    _check(parts, settings, out, docs)
    start = time.monotonic()
    try:
        outcomes = run(parts, settings, out=out, n_jobs=n_jobs)
    except KeyboardInterrupt:
        print(f"interrupted; {_kept(out)}", file=sys.stderr)
        return INTERRUPTED
    except OSError as error:
        print(f"hardmargin: {error.strerror or error}; {_kept(out)}", file=sys.stderr)
        return 1
    gathered = [
        gather(part, tasks_of(part, settings), outcomes, quick=settings.quick) for part in parts
    ]
    work = sum(outcome.seconds for outcome in outcomes.values())
    elapsed = time.monotonic() - start
    conditions = Conditions(settings, n_jobs, elapsed, work, tuple(names))
    written = []
    if out is not None:
        written.append(f"The report: {write_report(gathered, conditions, out)}")
        if docs is not None:
            page = write_docs(gathered, conditions, out, docs)
            written.append(f"The documentation page: {page}")
    measured = [text_part(its) for its in gathered if its.verdict.label != "skipped"]
    print("\n".join([*measured, *filter(None, [skipped_line(gathered)]), *written]))
    return _said_failures(outcomes, settings)


def _said_failures(outcomes: dict[str, Outcome], settings: Settings) -> int:
    """Say which tasks failed; return the exit code."""
    failed = [key for key, outcome in outcomes.items() if outcome.status == "failed"]
    if failed:
        print(
            f"{len(failed)} of {len(outcomes)} tasks failed: {', '.join(failed)}", file=sys.stderr
        )
    if not settings.quick and all(outcome.status == "no data" for outcome in outcomes.values()):
        print(f"Nothing was measured: there are no data in {settings.data_dir!r}", file=sys.stderr)
        return 1
    return 1 if failed else 0


def _kept(out: Path | None) -> str:
    if out is None:
        return "nothing is kept without --out"
    return f"finished work is kept in {out}: the same command continues"


def _list(parts: Iterable[Part]) -> None:
    paper = ""
    for part in parts:
        if part.paper != paper:
            print(part.paper)
            paper = part.paper
        print(f"  {part.name:<16} {part.title}")


def _chosen(names: Sequence[str], known: dict[str, Part]) -> list[Part]:
    groups = {"all": set(known)}
    for part in known:
        groups.setdefault(part.partition("-")[0], set()).add(part)
    chosen: set[str] = set()
    for name in names:
        if name not in known and name not in groups:
            close = difflib.get_close_matches(name, [*known, *groups], n=3, cutoff=0.5)
            hint = f"did you mean {', '.join(close)}?" if close else "see hardmargin reproduce list"
            raise click.UsageError(f"{name!r} is not a part; {hint}")
        chosen |= groups.get(name, {name})
    return [part for name, part in known.items() if name in chosen]


def _check(parts: Sequence[Part], settings: Settings, out: Path | None, docs: Path | None) -> None:
    from hardmargin.reproduction.runner import tasks_of

    if settings.quick and settings.data_dir is not None:
        raise click.UsageError("--quick reads no folder; leave out --data-dir or --quick")
    if settings.quick and settings.full:
        raise click.UsageError("--quick and --full exclude each other")
    if settings.data_dir is not None and not Path(settings.data_dir).is_dir():
        raise click.UsageError(f"data_dir={settings.data_dir!r} is not a folder")
    if docs is not None and out is None:
        raise click.UsageError("--docs uses the figures of the report; give --out too")
    needing = [part.name for part in parts if part.needs_folder]
    if needing and settings.data_dir is None and not settings.quick:
        raise click.UsageError(
            f"{needing[0]} reads its data from files: give their folder with --data-dir "
            '(help("hardmargin.datasets.folder") describes them), or use --quick, which needs none'
        )
    if settings.only is not None:
        everything = replace(settings, full=True, only=None)
        sets = {task.data_set: None for part in parts for task in tasks_of(part, everything)}
        if unknown := [name for name in settings.only if name not in sets]:
            raise click.UsageError(f"--only: {unknown[0]!r} is not one of {', '.join(sets)}")
    for option, folder in (("--out", out), ("--docs", docs)):
        if folder is not None:
            _make_folder(option, folder)


def _make_folder(option: str, folder: Path) -> None:
    """Check, before hours of work, that a folder can be written to."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        why = error.strerror or error
        raise click.UsageError(f"{option}: cannot write to {str(folder)!r}: {why}") from error
