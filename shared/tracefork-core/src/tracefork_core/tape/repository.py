"""Describe the repository that a recording is made in: commit, local changes, lockfile.

Files of git are read here. A git process would count as a subprocess of the agent.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import lru_cache
from hashlib import sha1, sha256
from pathlib import Path
from typing import Any

_LOCKFILES = (
    "uv.lock",
    "pylock.toml",
    "poetry.lock",
    "pdm.lock",
    "Pipfile.lock",
    "requirements.txt",
)
_MOST_ENTRIES, _LARGEST = 20_000, 16 * 2**20
"""A larger index is not read, and a larger file is not hashed: whether it changed is unknown."""
_ENTRY = struct.Struct(">10I20sH")


def commit() -> str | None:
    """Return the commit that is checked out here; None outside of a repository."""
    try:
        root = _root()
        return None if root is None else _head(_git_folder(root / ".git"))
    except OSError:
        return None  # .git is not readable, or the current folder is gone.


def is_dirty() -> bool | None:
    """Return whether files that git tracks differ from the commit; None if that is not known.

    Files that git does not track make no difference. A process looks once in each folder: a service
    records every request.
    """
    try:
        return _is_dirty(str(Path.cwd()))
    except OSError:
        return None


@lru_cache(32)
def _is_dirty(_folder: str) -> bool | None:
    try:
        root = _root()
        if root is None:
            return None
        index = (_git_folder(root / ".git") / "index").read_bytes()
        return _differs(root, index)
    except (OSError, ValueError, struct.error):
        return None


def lockfile() -> tuple[str, str] | None:
    """Return the nearest file that pins packages, as its name and SHA-256.

    It is looked for from the current folder up to the root of the repository, once in a process.
    """
    try:
        return _lockfile(str(Path.cwd()))
    except OSError:
        return None


@lru_cache(32)
def _lockfile(_folder: str) -> tuple[str, str] | None:
    try:
        root, folder = _root(), Path.cwd()
        for place in (folder, *folder.parents):
            for name in _LOCKFILES:
                if (file := place / name).is_file() and file.stat().st_size <= _LARGEST:
                    return name, sha256(file.read_bytes()).hexdigest()
            if place == root or root is None:
                break
    except OSError:
        pass
    return None


def _root() -> Path | None:
    folder = Path.cwd()
    places = (folder, *folder.parents)
    return next((place for place in places if (place / ".git").exists()), None)


def _git_folder(git: Path) -> Path:
    """Return the folder that `.git` stands for; in worktrees and submodules it is a file."""
    if git.is_dir():
        return git
    return git.parent / _text(git).removeprefix("gitdir: ")


def _head(git: Path) -> str | None:
    head = _text(git / "HEAD")
    if not head.startswith("ref: "):
        return head or None
    ref = head.removeprefix("ref: ")
    common = git / _text(git / "commondir") if (git / "commondir").is_file() else git
    if (common / ref).is_file():
        return _text(common / ref)
    packed = common / "packed-refs"
    if packed.is_file():
        for line in _text(packed).splitlines():
            if line.endswith(f" {ref}"):
                return line.split()[0]
    return None


def _differs(root: Path, index: bytes) -> bool | None:
    """Compare the files of a repository with its index, and the index with the commit.

    An index keeps the hash of each tree since the last commit, and git drops the hash of the root
    when a file is staged.
    """
    signature, version, count = struct.unpack(">4sII", index[:12])
    if signature != b"DIRC" or version not in (2, 3) or count > _MOST_ENTRIES:
        return None
    end = 12
    for _ in range(count):
        entry = _ENTRY.unpack_from(index, end)
        start = end + _ENTRY.size + (2 if entry[11] & 0x4000 else 0)
        stop = index.index(b"\0", start)
        end += (stop - end) // 8 * 8 + 8
        if not entry[11] & 0x8000 and _changed(root, index[start:stop], entry):
            return True
    trees = dict(_extensions(index[end:-20]))
    if b"TREE" not in trees:
        return None
    return trees[b"TREE"].partition(b"\0")[2].startswith(b"-")


def _changed(root: Path, name: bytes, entry: tuple[Any, ...]) -> bool:
    seconds, mode, size, wanted = entry[2], entry[6], entry[9], entry[10]
    path = root / name.decode("utf-8", "surrogateescape")
    if mode & 0o170000 != 0o100000:
        return False  # A link or a submodule.
    try:
        status = path.lstat()
    except OSError:
        return True
    if status.st_size != size:
        return True
    if int(status.st_mtime) == seconds or size > _LARGEST:
        return False
    content = path.read_bytes()
    found = sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).digest()
    return bool(found != wanted)


def _extensions(rest: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = 0
    while at + 8 <= len(rest):
        name, size = struct.unpack_from(">4sI", rest, at)
        yield name, rest[at + 8 : at + 8 + size]
        at += 8 + size


def _text(file: Path) -> str:
    return file.read_text(errors="replace").strip()
