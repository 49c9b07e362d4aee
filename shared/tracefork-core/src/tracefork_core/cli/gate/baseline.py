"""`tracefork ci diff`: what changed in a folder of tapes since a commit, or beside another one."""

from __future__ import annotations

import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

from tracefork_core.cli import tape_names
from tracefork_core.comparing.diff import Comparison, diff
from tracefork_core.errors import TraceforkError, UsageError


@dataclass(frozen=True, slots=True)
class Changed:
    """A tape that is in both folders, or in one of them.

    Attributes:
        name: its file name.
        state: "same", "changed", "new", "gone" or "unreadable".
        comparison: the differences of a tape that both folders have.
        reason: why it cannot be read.
    """

    name: str
    state: str
    comparison: Comparison | None = None
    reason: str = ""


def compare(folder: Path, baseline: Path) -> list[Changed]:
    """Compare the tapes of two folders, by their names.

    Raises:
        UsageError: neither folder holds a tape.
    """
    here = {path.name: path for path in tape_names.inside(folder)}
    there = {path.name: path for path in tape_names.inside(baseline)}
    if not here and not there:
        raise UsageError(
            f"tracefork: there is no tape in {tape_names.shown(folder)}, and none in the baseline."
        )
    return [_compare(name, there.get(name), here.get(name)) for name in sorted({*here, *there})]


def _compare(name: str, before: Path | None, after: Path | None) -> Changed:
    if before is None or after is None:
        return Changed(name, "new" if before is None else "gone")
    try:
        comparison = diff(before, after)
    except TraceforkError as error:
        return Changed(name, "unreadable", reason=str(error).removeprefix("tracefork: "))
    return Changed(name, "changed" if comparison else "same", comparison)


@contextmanager
def at(baseline: str, folder: Path) -> Iterator[Path]:
    """Yield the folder that a baseline means: a folder, or this folder at a commit of git.

    Raises:
        UsageError: it is neither.
    """
    if Path(baseline).is_dir():
        yield Path(baseline).absolute()
        return
    done = subprocess.run(  # noqa: S603 - the commit is one argument, and no option
        ["git", "archive", "--format=tar", f"{baseline}", "--", "."],  # noqa: S607
        cwd=folder,
        capture_output=True,
        check=False,
    )
    if baseline.startswith("-") or done.returncode:
        why = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise UsageError(
            f"tracefork: {baseline} is neither a folder nor a commit that has "
            f"{tape_names.shown(folder)}.{f' git: {why[-1]}' if why else ''}"
        )
    with tempfile.TemporaryDirectory(prefix="tracefork-ci-") as place:
        with tarfile.open(fileobj=BytesIO(done.stdout)) as archive:
            archive.extractall(place, filter="data")
        yield Path(place)
