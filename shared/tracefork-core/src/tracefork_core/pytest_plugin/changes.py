"""Say in a few lines what differs between a tape and the one that is to replace it."""

from __future__ import annotations

from itertools import zip_longest
from pathlib import Path

from tracefork_core.run.rerun_changes import asked_live, difference, not_asked
from tracefork_core.tape import Exchange, Tape


def changes(path: Path, now: Tape) -> list[str]:
    """Return what differs from the tape at `path`, which may not exist yet; empty for nothing."""
    count = len(now.exchanges)
    if not path.exists():
        return [f"a new tape of {count} exchange{'' if count == 1 else 's'}"]
    with Tape.open(path) as before:
        pairs = zip_longest(before.exchanges, now.exchanges)
        return [line for old, new in pairs for line in _changes_of(old, new)]


def changes_of_branch(branch: Tape) -> list[str]:
    """Return what a run that was run again asked differently than its parent."""
    left = ", ".join(f"#{one.n}" for one in not_asked(branch))
    return [*asked_live(branch), *([f"not asked again: {left}"] if left else [])]


def _changes_of(old: Exchange | None, new: Exchange | None) -> list[str]:
    if new is None:
        assert old is not None
        return [f"not asked again: #{old.n}"]
    if old is not None and old.request == new.request:
        same = old.payload.response == new.payload.response
        return [] if same else [f"#{new.n} is answered differently"]
    return [difference(new.url, new.request_body if new.has_bodies else b"", old)]
