"""``hardmargin reproduce``: the papers' tables and figures."""

from __future__ import annotations

import argparse
import difflib
import os
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hardmargin.reproduction.parts import Part, Settings

INTERRUPTED = 130  # a shell's exit code for a command ended by Ctrl-C
MOST_JOBS = 4  # by default: with more, the longest task alone would determine the time


def add_reproduce(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to a parser."""
    parser = commands.add_parser(
        "reproduce",
        help="reproduce the papers' tables and figures",
        description="Reproduce tables and figures of the four papers and print ours beside theirs.",
        epilog="Finished work is kept in the --out folder: the same command continues from there.",
    )
    parser.add_argument(
        "names",
        nargs="+",
        metavar="NAME",
        help="parts, papers (such as tnn08) or all; 'list' shows the parts",
    )
    parser.add_argument(
        "--data-dir",
        metavar="DIR",
        help="folder of the data files (default: the environment variable HARDMARGIN_DATA, if "
        'set); help("hardmargin.datasets.folder") describes them',
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="folder for index.html and the CSV and PNG files of this run",
    )
    parser.add_argument(
        "--docs", type=Path, metavar="DIR", help="folder for reproduction.md and its figures"
    )
    parser.add_argument(
        "--quick", action="store_true", help="takes about a minute, on data bundled with libraries"
    )
    parser.add_argument(
        "--full", action="store_true", help="the published protocol where the default is coarser"
    )
    parser.add_argument("--only", type=_names, metavar="SETS", help="data sets, comma-separated")
    parser.add_argument(
        "--n-jobs",
        type=_n_jobs,
        default=min(os.cpu_count() or 1, MOST_JOBS),
        help=f"processes, -1 for one per core (default: one per core, at most {MOST_JOBS}; each "
        "may need 5 GB)",
    )
    parser.add_argument(
        "--cut",
        type=_seconds,
        default=240.0,
        metavar="SECONDS",
        help="seconds after which a rival's training is stopped and printed as > (default: 240)",
    )
    parser.set_defaults(run=lambda options: _reproduce(parser, options))


def _reproduce(parser: argparse.ArgumentParser, options: argparse.Namespace) -> int:
    # Imported here, so that other commands need not wait for them.
    from hardmargin.reproduction.parts import Settings
    from hardmargin.reproduction.registry import PARTS
    from hardmargin.reproduction.report import text_part, write_docs, write_report
    from hardmargin.reproduction.report.machine import Conditions
    from hardmargin.reproduction.report.wording import skipped_line
    from hardmargin.reproduction.runner import run, tasks_of
    from hardmargin.reproduction.verdicts import gather

    if "list" in options.names:
        _list(PARTS.values())
        return 0
    data_dir = options.data_dir
    if data_dir is None and not options.quick:
        data_dir = os.environ.get("HARDMARGIN_DATA")
    settings = Settings(
        data_dir=data_dir,
        quick=options.quick,
        full=options.full,
        only=options.only,
        cut=options.cut,
    )
    parts = _chosen(parser, options.names, PARTS)
    _check(parser, parts, settings, options)
    start = time.monotonic()
    try:
        outcomes = run(parts, settings, out=options.out, n_jobs=options.n_jobs)
    except KeyboardInterrupt:
        kept = "nothing is kept without --out"
        if options.out is not None:
            kept = f"finished work is kept in {options.out}: the same command continues"
        print(f"interrupted; {kept}", file=sys.stderr)
        return INTERRUPTED
    gathered = [
        gather(part, tasks_of(part, settings), outcomes, quick=settings.quick) for part in parts
    ]
    work = sum(outcome.seconds for outcome in outcomes.values())
    elapsed = time.monotonic() - start
    conditions = Conditions(settings, options.n_jobs, elapsed, work, tuple(options.names))
    written = []
    if options.out is not None:
        written.append(f"The report: {write_report(gathered, conditions, options.out)}")
        if options.docs is not None:
            page = write_docs(gathered, conditions, options.out, options.docs)
            written.append(f"The documentation page: {page}")
    measured = [text_part(its) for its in gathered if its.verdict.label != "skipped"]
    print("\n".join([*measured, *filter(None, [skipped_line(gathered)]), *written]))
    failed = [key for key, outcome in outcomes.items() if outcome.status == "failed"]
    if failed:
        print(
            f"{len(failed)} of {len(outcomes)} tasks failed: {', '.join(failed)}", file=sys.stderr
        )
    if not settings.quick and all(outcome.status == "no data" for outcome in outcomes.values()):
        print(f"Nothing was measured: there are no data in {settings.data_dir!r}", file=sys.stderr)
        return 1
    return 1 if failed else 0


def _list(parts: Iterable[Part]) -> None:
    paper = ""
    for part in parts:
        if part.paper != paper:
            print(part.paper)
            paper = part.paper
        print(f"  {part.name:<16} {part.title}")


def _chosen(
    parser: argparse.ArgumentParser, names: Sequence[str], known: dict[str, Part]
) -> list[Part]:
    groups = {"all": set(known)}
    for part in known:
        groups.setdefault(part.partition("-")[0], set()).add(part)
    chosen: set[str] = set()
    for name in names:
        if name not in known and name not in groups:
            close = difflib.get_close_matches(name, [*known, *groups], n=3, cutoff=0.5)
            hint = f"did you mean {', '.join(close)}?" if close else "see hardmargin reproduce list"
            parser.error(f"{name!r} is not a part; {hint}")
        chosen |= groups.get(name, {name})
    return [part for name, part in known.items() if name in chosen]


def _check(
    parser: argparse.ArgumentParser,
    parts: Sequence[Part],
    settings: Settings,
    options: argparse.Namespace,
) -> None:
    from hardmargin.reproduction.runner import tasks_of

    if settings.quick and settings.data_dir is not None:
        parser.error("--quick reads no folder; leave out --data-dir or --quick")
    if settings.quick and settings.full:
        parser.error("--quick and --full exclude each other")
    if settings.data_dir is not None and not Path(settings.data_dir).is_dir():
        parser.error(f"data_dir={settings.data_dir!r} is not a folder")
    if options.docs is not None and options.out is None:
        parser.error("--docs uses the figures of the report; give --out too")
    needing = [part.name for part in parts if part.needs_folder]
    if needing and settings.data_dir is None and not settings.quick:
        parser.error(
            f"{needing[0]} reads its data from files: give their folder with --data-dir "
            '(help("hardmargin.datasets.folder") describes them), or use --quick, which needs none'
        )
    if settings.only is not None:
        everything = replace(settings, full=True, only=None)
        sets = {task.data_set: None for part in parts for task in tasks_of(part, everything)}
        if unknown := [name for name in settings.only if name not in sets]:
            parser.error(f"--only: {unknown[0]!r} is not one of {', '.join(sets)}")
    for option, folder in (("--out", options.out), ("--docs", options.docs)):
        if folder is not None:
            _make_folder(parser, option, folder)


def _make_folder(parser: argparse.ArgumentParser, option: str, folder: Path) -> None:
    """Check, before hours of work, that a folder can be written to."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        parser.error(f"{option}: cannot write to {str(folder)!r}: {error.strerror or error}")


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip().lower() for name in text.split(","))


def _n_jobs(text: str) -> int:
    if text == "-1":
        return os.cpu_count() or 1
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not seconds > 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number")
    return seconds
