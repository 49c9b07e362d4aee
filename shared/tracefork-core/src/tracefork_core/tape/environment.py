"""Describe where a recording is made: python, platform, packages, git commit, command."""

from __future__ import annotations

import platform
import re
import sys
import time
from pathlib import Path

from tracefork_core.tape.event import Environment
from tracefork_core.version import __version__

_DIST_INFO = re.compile(r"(?P<name>.+)-(?P<version>[^-]+)\.dist-info$")


def describe() -> Environment:
    """Return the environment of this process, without starting another one."""
    return Environment(
        python=platform.python_version(),
        platform=platform.platform(),
        tracefork=__version__,
        packages=_packages(),
        git_commit=_git_commit(Path.cwd()),
        started=time.time_ns(),
    )


def _packages() -> dict[str, str]:
    """Read names and versions off folder names: parsing each METADATA costs 100 times more."""
    found: dict[str, str] = {}
    for folder in dict.fromkeys(sys.path):
        if not folder.endswith("-packages"):
            continue
        for entry in Path(folder).glob("*.dist-info"):
            if match := _DIST_INFO.match(entry.name):
                found.setdefault(match["name"].replace("_", "-").lower(), match["version"])
    return dict(sorted(found.items()))


def _git_commit(folder: Path) -> str | None:
    """Read the commit from .git by hand: a git process would count as a subprocess."""
    for parent in (folder, *folder.parents):
        head = parent / ".git" / "HEAD"
        if head.is_file():
            return _resolve(parent / ".git", head.read_text(errors="replace").strip())
    return None


def _resolve(git: Path, head: str) -> str | None:
    if not head.startswith("ref: "):
        return head or None
    ref = head.removeprefix("ref: ")
    if (git / ref).is_file():
        return (git / ref).read_text(errors="replace").strip()
    packed = git / "packed-refs"
    if packed.is_file():
        for line in packed.read_text(errors="replace").splitlines():
            if line.endswith(f" {ref}"):
                return line.split()[0]
    return None
