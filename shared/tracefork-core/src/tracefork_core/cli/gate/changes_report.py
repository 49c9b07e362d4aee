"""What changed in a folder of tapes, for people and in Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.text import Text

from tracefork_core.cli.display import figures, screen
from tracefork_core.cli.display.diff_markdown import escaped, findings_markdown
from tracefork_core.cli.display.diff_report import COUNTED
from tracefork_core.cli.display.text import printable
from tracefork_core.cli.gate.baseline import Changed

_STATES = {
    "changed": ("✗", screen.BAD),
    "new": ("+", screen.GOOD),
    "gone": ("-", screen.BAD),
    "unreadable": ("!", screen.BAD),
    "same": ("✓", screen.GOOD),
}


def summary(changes: Sequence[Changed]) -> str:
    """Return how many tapes are in which state."""
    counts = Counter(one.state for one in changes)
    listed = ", ".join(f"{counts[state]} {state}" for state in _STATES if counts[state])
    return f"{figures.several(len(changes), 'tape')}: {listed}"


def words(one: Changed) -> str:
    """Return how a tape changed, by the kinds of differences."""
    if one.comparison is None:
        return (
            one.reason or {"new": "not in the baseline", "gone": "only in the baseline"}[one.state]
        )
    if not one.comparison:
        return f"{figures.several(one.comparison.kinds.get('exact', 0), 'exchange')} the same"
    kinds = one.comparison.kinds
    parts = [f"{kinds[kind]} {label}" for kind, label in COUNTED.items() if kinds.get(kind)]
    moved = sum(finding.count for finding in one.comparison.findings if finding.is_moved)
    parts += [f"{moved} moved"] if moved else []
    first = one.comparison.first
    where = f"first at exchange {first.place} · " if first else ""
    return where + ", ".join(parts)


def print_changes(console: Console, changes: Sequence[Changed], shown: str, baseline: str) -> None:
    """Print one line per tape that is not the same, and the counts."""
    console.print(
        f"{printable(baseline)} ↔ {printable(shown)} · {summary(changes)}", soft_wrap=True
    )
    for one in changes:
        if one.state != "same":
            mark, style = _STATES[one.state]
            line = Text(f"{mark} ", style).append(f"{one.name} · {words(one)}", "default")
            console.print(line, soft_wrap=True)


def markdown(changes: Sequence[Changed], shown: str, baseline: str) -> Iterator[str]:
    """Yield the lines of a report for a pull request."""
    yield f"### {escaped(baseline)} ↔ {escaped(shown)}: {escaped(summary(changes))}"
    yield ""
    yield "| | tape | what changed |"
    yield "|---|---|---|"
    for one in changes:
        yield f"| {_STATES[one.state][0]} | {escaped(one.name)} | {escaped(words(one))} |"
    for one in changes:
        if one.comparison:
            yield ""
            yield f"#### {escaped(one.name)}"
            yield from findings_markdown(one.comparison)


def document(changes: Sequence[Changed]) -> list[dict[str, object]]:
    """Return the changes as JSON-able values."""
    return [
        {
            "name": one.name,
            "state": one.state,
            "reason": one.reason or None,
            **(one.comparison.document() if one.comparison is not None else {}),
        }
        for one in changes
    ]
