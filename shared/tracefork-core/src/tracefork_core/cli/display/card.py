"""The divergence card: where the run left its tape, what differs, what to type next."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import asdict
from itertools import zip_longest
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING

from tracefork_core.cli import tape_names
from tracefork_core.cli.display import screen
from tracefork_core.cli.display.text import printable, shortened
from tracefork_core.errors import Divergence

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

_LABEL = 10
_INDENT = 4


def print_card(
    console: Console,
    divergence: Divergence,
    *,
    agent: str | None = None,
    is_proxied: bool = False,
) -> None:
    """Print a divergence for people.

    Args:
        console: the console to print on.
        divergence: the divergence.
        agent: the replayed command, as typed after `tracefork replay TAPE`; empty where the tape
            is enough, None where it is not known.
        is_proxied: whether that was `tracefork proxy replay TAPE`.
    """
    from rich.text import Text

    console.print(Text("✗ diverged ", screen.BAD).append(printable(divergence.where), "default"))
    if divergence.kind != "request":
        console.print(f"  {printable(divergence.summary)}")
    if divergence.request:
        console.print(f"  {_request(divergence.request)}", style=screen.DIM, soft_wrap=True)
    if divergence.pointer:
        for line in _difference(divergence, console.width):
            console.print(line, soft_wrap=True)
    for hint in divergence.hints:
        for i, words in enumerate(wrap(printable(hint), console.width - _INDENT - 2)):
            console.print(f"{' ' * _INDENT}{' ' if i else '─'} {words}")
    for i, candidate in enumerate(divergence.candidates):
        label = "nearest" if i == 0 else ""
        words = shortened(printable(candidate.reason), console.width - _INDENT - _LABEL)
        line = Text(f"  {label:<8}", screen.DIM).append(f"#{candidate.n} {words}", "default")
        console.print(line, soft_wrap=True)
    for verb, command in commands(divergence, agent, is_proxied=is_proxied).items():
        line = Text(f"  {verb:<8}", screen.DIM).append(command, "default")
        console.print(line, soft_wrap=True)


def print_differences(console: Console, differences: Sequence[str]) -> None:
    """Print how the agent's environment differs from the recording."""
    for difference in differences:
        words = wrap(printable(difference), console.width - _INDENT)
        for i, line in enumerate(words):
            console.print(f"  {' ' if i else '!'} {line}", style=screen.WARN)


def card_document(
    divergence: Divergence, agent: str | None = None, *, is_proxied: bool = False
) -> dict[str, object]:
    """Return a divergence as JSON-able values, with the commands to type next."""
    following = commands(divergence, agent, is_proxied=is_proxied)
    return {**asdict(divergence), "commands": following}


def commands(
    divergence: Divergence, agent: str | None, *, is_proxied: bool = False
) -> dict[str, str]:
    """Return what to type next: go on live, compare that, see the recorded exchange, keep, ignore.

    The tape is evidence, so a new recording gets a name of its own.
    """
    tape = shlex.quote(divergence.tape)
    number = f" {divergence.n}" if divergence.n is not None else ""
    found = {"see": f"tracefork show {tape}{number}"}
    if agent is not None:
        words = f" {agent}" if agent else ""
        stem = str(Path(divergence.tape).with_suffix(""))
        branch = shlex.quote(str(tape_names.free_name(f"{stem}.rerun")))
        again = {"rerun": f"tracefork rerun {tape}{words}", "diff": f"tracefork diff {branch}"}
        found = found if is_proxied else {**again, **found}
        if agent:
            free = shlex.quote(str(tape_names.free_name(stem)))
            option = f"proxy record {free}" if is_proxied else f"record -o {free}"
            found["keep"] = f"tracefork {option} {agent}"
        if divergence.pointer and divergence.pointer.startswith("/"):
            pointer, verb = (
                shlex.quote(divergence.pointer),
                "proxy replay" if is_proxied else "replay",
            )
            found["ignore"] = f"tracefork {verb} --ignore {pointer} {tape}{words}"
    return {verb: printable(command) for verb, command in found.items()}


def _request(request: str) -> str:
    return printable(request.replace(" https://", " ", 1))


def _difference(divergence: Divergence, width: int) -> list[Text]:
    """Return the pointer, both values around their first difference, and a mark below it."""
    from rich.cells import cell_len
    from rich.text import Text

    room = width - _INDENT - _LABEL
    before, now, first = _cut(divergence.recorded or "", divergence.actual or "", room)
    lines = [Text(f"  {printable(divergence.pointer or '')}", screen.STRONG)]
    for label, pieces, style in (("recorded", before, screen.GOOD), ("now", now, screen.BAD)):
        line = Text(" " * _INDENT).append(f"{label:<{_LABEL}}", screen.DIM)
        for i, piece in enumerate(pieces):
            line.append(piece, f"{style} bold" if i == first else style)
        lines.append(line)
    if first is not None:
        left = _INDENT + _LABEL + cell_len("".join(now[:first]))
        lines.append(Text(" " * left + "▲", screen.DIM))
    return lines


def _cut(recorded: str, actual: str, room: int) -> tuple[list[str], list[str], int | None]:
    """Return both texts as printable characters around their first difference, and its index."""
    before, now = list(recorded), list(actual)
    if (first := _first_difference(recorded, actual)) is None:
        return [printable(recorded)], [printable(actual)], None
    start = max(0, first - room // 2) if max(map(len, (before, now))) > room else 0
    pieces = [_window(text, start, room) for text in (before, now)]
    return pieces[0], pieces[1], first - start + (1 if start else 0)


def _window(text: list[str], start: int, room: int) -> list[str]:
    shown = [printable(char) for char in text[start:]]
    if start:
        shown.insert(0, "…")
    used = 0
    for i, piece in enumerate(shown):
        used += len(piece)
        if used > room - 1 and i < len(shown) - 1:
            return [*shown[:i], "…"]
    return shown


def _first_difference(recorded: str, actual: str) -> int | None:
    pairs = enumerate(zip_longest(recorded, actual))
    return next((i for i, (a, b) in pairs if a != b), None)
