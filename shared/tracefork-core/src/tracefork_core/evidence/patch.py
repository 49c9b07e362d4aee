"""Identify what a run changed: two runs that leave the same files changed alike made one patch."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256

import msgspec

from tracefork_core.evidence.actions import Action
from tracefork_core.tape.event import FileChange


class Patch(msgspec.Struct, frozen=True):
    """The files that the tools of a run changed.

    Attributes:
        identity: a hash over the files with their states before and after.
        files: the files, by their paths.
        unseen: what may have changed others.
    """

    identity: str
    files: list[FileChange]
    unseen: list[str]


def patch_of(actions: Iterable[Action]) -> Patch:
    """Return the changes of all actions together; a file that ends as it began is left out."""
    before: dict[str, str | None] = {}
    after: dict[str, str | None] = {}
    unseen: dict[str, None] = {}
    for action in actions:
        if action.side_effects is None:
            if action.kind == "tool":
                unseen.setdefault(f"{action.tool}, which was not watched")
            continue
        unseen.update(dict.fromkeys(action.side_effects.unseen))
        for file in action.side_effects.files:
            before.setdefault(file.path, file.before)
            after[file.path] = file.after
    files = [
        FileChange(path, before[path], after[path])
        for path in sorted(after)
        if before[path] != after[path]
    ]
    identity = sha256(msgspec.json.encode(files)).hexdigest()
    return Patch(identity, files, list(unseen))
