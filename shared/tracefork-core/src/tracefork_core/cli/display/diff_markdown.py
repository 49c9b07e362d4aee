"""A comparison in Markdown, for a pull request or the summary of a CI job."""

from __future__ import annotations

import json

from tracefork_core.cli.display import screen
from tracefork_core.cli.display.diff_report import counts, place, rows, title
from tracefork_core.cli.display.text import printable
from tracefork_core.comparing.diff import Comparison
from tracefork_core.comparing.words import by_places
from tracefork_core.providers.lenient import Json
from tracefork_core.tape import Tape

_SHOWN = 50
_LONGEST = 4_000


def print_markdown(found: Comparison, tapes: tuple[Tape, Tape], names: tuple[str, str]) -> None:
    """Print a comparison as Markdown on stdout."""
    first = found.first
    result = f"first difference at exchange {first.place}" if first else "no difference"
    one, other = (escaped(name) for name in names)
    lines = [f"### {one} ↔ {other}: {result}", "", *(f"- {line}" for line in counts(found)), ""]
    lines += [f"| | {one} | {other} |", "|---|---|---|"]
    lines += [f"| {' | '.join(map(escaped, row))} |" for row in rows(tapes, whole=False)]
    screen.say_text("\n".join([*lines, *findings_markdown(found)]))


def findings_markdown(found: Comparison) -> list[str]:
    """Return what differs, as lines of Markdown."""
    lines = []
    for finding in found.findings[:_SHOWN]:
        lines += ["", f"**{place(finding)}** {escaped(title(finding))}", ""]
        for section in finding.sections:
            lines += [f"{escaped(section.name)}:", *_changes(section.before, section.after)]
    if len(found.findings) > _SHOWN:
        lines += ["", f"… {len(found.findings) - _SHOWN} more"]
    return lines


def escaped(text: str) -> str:
    """Return a text that Markdown and HTML show as it is."""
    words = printable(text)
    return "".join(f"\\{char}" if char in "\\`*_{}[]<>()#|~!&" else char for char in words)


def _changes(before: Json, after: Json) -> list[str]:
    """Return what changed as a block of a diff, which no text in it can close."""
    removed, added = [], []
    if before is None or after is None or (isinstance(before, str) and isinstance(after, str)):
        removed, added = _text(before).split("\n"), _text(after).split("\n")
        if before is None or after is None:
            removed = [] if before is None else removed
            added = [] if after is None else added
    else:
        for pointer, one, other in by_places(before, after):
            removed += [] if one is None else [f"{pointer} {one}"]
            added += [] if other is None else [f"{pointer} {other}"]
    lines = [f"- {line}" for line in removed] + [f"+ {line}" for line in added]
    return fenced("\n".join(lines), "diff")


def fenced(text: str, language: str) -> list[str]:
    """Return a text as a block of code, which nothing in it can close."""
    text = printable(text[:_LONGEST], lines=True)
    fence = "`" * max(3, 1 + max((len(run) for run in _runs(text)), default=0))
    return [f"{fence}{language}", text, fence]


def _runs(text: str) -> list[str]:
    return [run for run in "".join(c if c == "`" else " " for c in text).split(" ") if run]


def _text(value: Json) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
