"""`tracefork gc`: remove leftover files in a folder of tapes, and old runs if asked."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from tracefork_core.cli import options, tape_names
from tracefork_core.cli.display import figures, screen
from tracefork_core.cli.display.text import printable
from tracefork_core.errors import TraceforkError, UsageError
from tracefork_core.service import limits
from tracefork_core.service.folder import Bounds, leftovers, surplus
from tracefork_core.tape.creation import SCRATCH, is_abandoned
from tracefork_core.tape.marks import label_of
from tracefork_core.tape.schema import BESIDE

app = typer.Typer(add_completion=False, rich_markup_mode=None)

_AGE = re.compile(r"(\d+)([hdw])")
_ABANDONED = 86_400
"""Seconds without a write after which a folder belongs to no running command."""
_BEGUN = 1
"""Seconds after which the folder of a draft is locked, if its command still runs."""
_SECONDS = {"h": 3600, "d": 86_400, "w": 604_800}


@app.command()
def gc(
    folder: Annotated[
        Path, typer.Argument(metavar="[DIR]", help="The folder (default: the current one).")
    ] = Path(),
    older: Annotated[
        str | None,
        typer.Option(
            "--older-than", metavar="AGE", help="Also remove runs older than this: 12h, 30d, 8w."
        ),
    ] = None,
    keep: Annotated[
        int | None,
        typer.Option("--keep", metavar="N", help="Also remove all but the N newest runs."),
    ] = None,
    max_bytes: Annotated[
        str | None,
        typer.Option(
            "--max-bytes",
            metavar="SIZE",
            help="Also remove the oldest tapes of a service until the rest fits: 500MB, 2GB.",
        ),
    ] = None,
    max_age: Annotated[
        str | None,
        typer.Option(
            "--max-age", metavar="AGE", help="Also remove tapes of a service older than this: 7d."
        ),
    ] = None,
    max_tapes: Annotated[
        int | None,
        typer.Option(
            "--max-tapes", metavar="N", help="Also remove all but the N newest tapes of a service."
        ),
    ] = None,
    orphans: Annotated[
        bool, typer.Option("--orphans", help="Also remove branches whose parent is gone.")
    ] = False,
    dry: Annotated[
        bool, typer.Option("--dry-run", help="Only list what would be removed.")
    ] = False,
    as_json: options.AsJson = False,
) -> int:
    """Remove leftover files, and old runs if you ask for it.

    Without options this removes files that no tape needs: logs and journals without their tape,
    recordings that were killed before their first byte, and temporary folders of killed commands
    (at once if it was a draft, else after a day). Runs that are being recorded, runs that a branch
    needs and marked tapes are never removed. The bounds --max-… are those of a `Recorder`, and
    concern its tapes alone.
    """
    if not folder.is_dir():
        raise UsageError(
            f"tracefork: there is no folder {folder.absolute()}.{tape_names.is_file(folder)}"
        )
    if keep is not None and keep < 0:
        raise UsageError(f"tracefork: --keep must be at least 0 (got {keep}).")
    bounds = Bounds(
        None if max_bytes is None else limits.bytes_of(max_bytes, "--max-bytes"),
        None if max_age is None else limits.seconds_of(max_age, "--max-age"),
        None if max_tapes is None else limits.count_of(max_tapes, "--max-tapes"),
    )
    limit = None if older is None else time.time_ns() - _nanoseconds(older)
    runs = [run for path in tape_names.inside(folder) if (run := _read(path))]
    gone = _left_over(folder) + _unneeded(runs, limit, keep, orphans=orphans)
    gone += _too_much(folder, bounds, {waste.name for waste in gone})
    freed = sum(waste.bytes for waste in gone)
    if not dry:
        for waste in gone:
            waste.remove()
    _say(folder, gone, freed, dry=dry, as_json=as_json)
    return 0


@dataclass(frozen=True, slots=True)
class _Run:
    """A readable tape; `needs` holds the names of its parents."""

    path: Path
    recorded: int
    needs: list[str]


@dataclass(frozen=True, slots=True)
class _Waste:
    """Something to remove, and why: some files, or a whole folder."""

    name: str
    why: str
    files: tuple[Path, ...]
    folder: Path | None = None

    @property
    def bytes(self) -> int:
        """The size of all files."""
        return sum(file.stat().st_size for file in self.files if file.is_file())

    def remove(self) -> None:
        """Remove the files, or the folder."""
        for file in self.files:
            file.unlink(missing_ok=True)
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)


def _nanoseconds(age: str) -> int:
    match = _AGE.fullmatch(age)
    if match is None:
        raise UsageError(f"tracefork: --older-than must be an age (12h, 30d, 8w), got {age!r}.")
    return int(match[1]) * _SECONDS[match[2]] * 10**9


def _read(path: Path) -> _Run | None:
    """Read what gc must know of a tape; None for a tape to leave alone."""
    from tracefork_core.tape import Tape

    if label_of(path) is not None:
        return None  # Its owner wants to keep it.
    if path.with_name(path.name + "-wal").exists():
        return None  # It is being recorded, or the recording was killed: keep that to look at.
    try:
        with Tape.open(path) as tape:
            return _Run(path, path.stat().st_mtime_ns, tape.needs)
    except TraceforkError:
        return None


def _left_over(folder: Path) -> list[_Waste]:
    alone = [
        _Waste(file.name, "its tape is gone", (file,))
        for suffix in BESIDE
        for file in sorted(folder.glob(f"*{tape_names.SUFFIX}{suffix}"))
        if not file.with_name(file.name.removesuffix(suffix)).exists()
    ]
    empty = [
        _Waste(path.name, "killed before its first byte", _files(path))
        for path in sorted(folder.glob(f"*{tape_names.SUFFIX}"))
        if path.is_file() and path.stat().st_size == 0
    ]
    drafts = [
        _Waste(path.name, "half written by a killed process", (path,)) for path in leftovers(folder)
    ]
    return alone + empty + drafts + list(_scratch(folder))


def _too_much(folder: Path, bounds: Bounds, gone: set[str]) -> list[_Waste]:
    """Return the tapes of a service that the bounds leave no room for."""
    return [
        _Waste(tape.name, "more than the bounds allow", _files(folder / tape.name))
        for tape in surplus(folder, bounds)
        if tape.name not in gone
    ]


def _scratch(folder: Path) -> Iterator[_Waste]:
    """Yield the temporary folders of killed commands.

    A running command holds a lock on the folder of a draft. Other folders are young while they are
    in use.
    """
    for scratch in sorted(folder.glob(f"{SCRATCH}*")):
        if not scratch.is_dir() or scratch.is_symlink():
            continue
        files = tuple(file for file in scratch.rglob("*") if file.is_file())
        written = max(file.stat().st_mtime for file in (scratch, *files))
        age = time.time() - written
        if age > _ABANDONED or (age > _BEGUN and is_abandoned(scratch)):
            yield _Waste(scratch.name, "its command was killed", files, scratch)


def _unneeded(
    runs: list[_Run], limit: int | None, keep: int | None, *, orphans: bool
) -> list[_Waste]:
    """Return the runs to remove, except those that a remaining run needs."""
    newest = sorted(runs, key=lambda run: run.recorded, reverse=True)
    reasons: dict[str, str] = {}
    for rank, run in enumerate(newest):
        if limit is not None and run.recorded < limit:
            reasons[run.path.name] = "older than --older-than"
        elif keep is not None and rank >= keep:
            reasons[run.path.name] = f"not among the {keep} newest runs"
        missing = [name for name in run.needs if not run.path.with_name(name).is_file()]
        if orphans and missing:
            reasons[run.path.name] = f"its parent {missing[0]} is gone"
    needed = {name for run in runs if run.path.name not in reasons for name in run.needs}
    return [
        _Waste(run.path.name, reasons[run.path.name], _files(run.path))
        for run in newest
        if run.path.name in reasons and run.path.name not in needed
    ]


def _files(path: Path) -> tuple[Path, ...]:
    beside = (path.with_name(path.name + suffix) for suffix in BESIDE)
    return (path, *(file for file in beside if file.exists()))


def _say(folder: Path, gone: list[_Waste], freed: int, *, dry: bool, as_json: bool) -> None:
    if as_json:
        removed = [{"name": waste.name, "why": waste.why} for waste in gone]
        screen.say_json(
            {
                "command": "gc",
                "exit": 0,
                "folder": str(folder.absolute()),
                "removed": removed,
                "bytes": freed,
                "dry_run": dry,
            }
        )
        return
    console = screen.stdout()
    if not gone:
        console.print(f"nothing to remove in {folder.absolute()}", soft_wrap=True)
        return
    verb = "would remove" if dry else "removed"
    for waste in gone:
        console.print(f"  {verb} {printable(waste.name)}: {waste.why}", soft_wrap=True)
    console.print(f"{verb} {figures.several(len(gone), 'item')}, {figures.size(freed)}")
