"""Say in lines what differs between a tape and the one that is to replace it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from tracefork_core.comparing.diff import Comparison, diff
from tracefork_core.comparing.finding import Section
from tracefork_core.comparing.words import by_places, by_words, near
from tracefork_core.tape import Tape

_AROUND = 24
"""Characters of equal text that are shown beside a change."""
_LONGEST = 300


def changes(path: Path, now: Tape) -> list[str]:
    """Return what differs from the tape at `path`, which may not exist yet; empty for nothing.

    As `tracefork diff` compares: clock and ids are no differences.
    """
    count = len(now.exchanges)
    if not path.exists():
        return [f"a new tape of {count} exchange{'' if count == 1 else 's'}"]
    with Tape.open(path) as before:
        if not count and not before.exchanges:
            return []
        return list(_lines(diff(before, now)))


def changes_of_branch(branch: Tape) -> list[str]:
    """Return what a run that was run again said differently than its parent."""
    return list(_lines(diff(branch)))


def _lines(found: Comparison) -> Iterator[str]:
    for one in found.findings:
        kind = f"{one.count} moved" if one.is_moved else one.kind
        yield f"#{one.place} {one.operation}: {kind}"
        for section in one.sections:
            yield from _lines_of(section)


def _lines_of(section: Section) -> Iterator[str]:
    before, after = section.before, section.after
    if isinstance(before, str) and isinstance(after, str):
        yield _cut(f"  {section.name}: {_marked(before, after)}")
    elif before is None or after is None:
        mark, value = ("+", after) if before is None else ("-", before)
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        yield _cut(f"  {section.name}: {mark} {' '.join(text.split())}")
    else:
        for pointer, old, new in by_places(before, after):
            yield _cut(f"  {section.name} {pointer}: {old or 'nothing'} → {new or 'nothing'}")


def _marked(before: str, after: str) -> str:
    """Return both texts as one, with `[-what is gone-]` and `{+what is new+}`."""
    pieces = near(by_words(before, after), _AROUND)
    return "".join(piece.around(" ".join(piece.text.split("\n"))) for piece in pieces)


def _cut(line: str) -> str:
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}…"
