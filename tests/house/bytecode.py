"""Compile a library once for all environments of a run of CI, not once in each of thirty.

uv links files of equal distributions from its cache: a file in several environments is one inode.
Its bytecode is linked too, by way of a folder in which it is named after that inode. Python itself
checks that bytecode belongs to its source, by the time and the size of it.

Precompiling with uv costs more: most of what frameworks bring along is never imported.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

_ENDS = f".{sys.implementation.cache_tag}.pyc"


def take(shared: Path, libraries: Path) -> int:
    """Link bytecode that other environments have compiled, and return how many files."""
    if not shared.is_dir():
        return 0
    known = set(os.listdir(shared))  # noqa: PTH208 - names
    taken = 0
    for folder, names in _sources(str(libraries)):
        compiled = [name for name, inode in names.items() if f"{inode}{_ENDS}" in known]
        if compiled:
            os.makedirs(f"{folder}/__pycache__", exist_ok=True)  # noqa: PTH103 - 10,000 of them
        for name in compiled:
            taken += _link(f"{shared}/{names[name]}{_ENDS}", f"{folder}/__pycache__/{name}{_ENDS}")
    return taken


def give(shared: Path, libraries: Path) -> int:
    """Link what this environment has compiled for others, and return how many files."""
    shared.mkdir(parents=True, exist_ok=True)
    known = set(os.listdir(shared))  # noqa: PTH208 - names
    given = 0
    for folder, names in _sources(str(libraries)):
        if not os.path.isdir(f"{folder}/__pycache__"):  # noqa: PTH112
            continue
        for compiled in os.listdir(f"{folder}/__pycache__"):  # noqa: PTH208
            inode = names.get(compiled.removesuffix(_ENDS))
            if inode and compiled.endswith(_ENDS) and f"{inode}{_ENDS}" not in known:
                given += _link(f"{folder}/__pycache__/{compiled}", f"{shared}/{inode}{_ENDS}")
    return given


def _sources(folder: str) -> Iterator[tuple[str, dict[str, int]]]:
    """Yield each folder with the inodes of its modules, by their names without `.py`."""
    names: dict[str, int] = {}
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(".py"):
                names[entry.name[:-3]] = entry.inode()
            elif entry.name != "__pycache__" and entry.is_dir(follow_symlinks=False):
                yield from _sources(entry.path)
    yield folder, names


def _link(source: str, target: str) -> bool:
    """Link a file, and return whether that was possible: another process may have been first."""
    try:
        os.link(source, target)
    except OSError:
        return False
    return True
