"""How a run differs from another, or a branch from its parent: by exchange, and in words."""

from __future__ import annotations

import json

from tracefork_core.cli.commands.tree import change_words
from tracefork_core.cli.display.text import printable
from tracefork_core.cli.report.document import Branch, Cell, Change, Difference
from tracefork_core.comparing.diff import Comparison, diff
from tracefork_core.comparing.finding import Finding, Section
from tracefork_core.providers import Json
from tracefork_core.tape import Tape


def strip(tape: Tape, *, content: bool) -> Branch | None:
    """Return what makes a tape a branch; None for a run of its own."""
    origin = tape.origin
    if origin is None:
        return None
    return _branch(tape, origin.at, diff(tape), content=content)


def compared(tape: Tape, name: str, found: Comparison, *, is_branch: bool) -> Branch:
    """Return how a run differs from the run `name`, which is its parent or any other."""
    if is_branch and tape.origin is not None:
        return _branch(tape, tape.origin.at, found, content=True)
    differing = {one.second for one in found.findings}
    cells: list[Cell] = [
        "DIFFERS" if n in differing else "SAME" for n in range(len(tape.exchanges))
    ]
    differences = [_difference(one, content=True) for one in found.findings]
    return Branch(0, f"compared with {printable(name)}", cells, differences)


def _branch(tape: Tape, at: int, found: Comparison, *, content: bool) -> Branch:
    return Branch(
        at,
        change_words(tape) if content else f"forked at {at}",
        cells(tape, at),
        [_difference(one, content=content) for one in found.findings],
    )


def cells(tape: Tape, at: int) -> list[Cell]:
    """Return one word for each exchange of the branch.

    DIVERGED is the first live exchange that asks something else than the parent did in its place.
    """
    before = tape.parent.exchanges if tape.parent else []
    edited = {change.n for change in tape.branch.changes} if tape.branch else set()
    found: list[Cell] = []
    for exchange in tape.exchanges:
        place = exchange.aside.place if exchange.aside.place is not None else exchange.n
        if exchange.n < at or exchange.aside.answered == "recorded":
            found.append("FREE")
        elif exchange.aside.answered or place in edited:
            found.append("EDITED")
        elif "DIVERGED" in found or (
            place < len(before) and before[place].request == exchange.request
        ):
            found.append("LIVE")
        else:
            found.append("DIVERGED")
    return found


def _difference(finding: Finding, *, content: bool) -> Difference:
    where = f" at {finding.pointer}" if finding.pointer and content else ""
    changes = [_change(section) for section in finding.sections] if content else []
    words = f"{finding.operation}{where}"
    return Difference(finding.kind, finding.first, finding.second, words, changes)


def _change(section: Section) -> Change:
    return Change(section.name, _text(section.before), _text(section.after))


def _text(value: Json) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, indent=2, ensure_ascii=False)
