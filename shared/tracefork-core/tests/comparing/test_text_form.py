"""A run as text is small, and equal for two recordings of the same run."""

from __future__ import annotations

from pathlib import Path

from tracefork_core import Tape
from tracefork_core.comparing.text_form import text_form

from .runs import Item, Turn, conversation, singles, write

TURNS: list[Turn] = [
    *(("search", {"q": f"city {i}"}, f"found {i}\nand more") for i in range(49)),
    "Booked.",
    "Bye.",
]


def text(tape: Path, items: list[Item]) -> str:
    """Return the text of a run."""
    with Tape.open(write(tape, items)) as opened:
        return "\n".join(text_form(opened))


def test_a_second_recording_has_the_same_text(tape: Path) -> None:
    """Ids and clock are marks, and lanes come by name; another word changes one line."""
    first = text(tape, conversation(TURNS))
    assert text(tape, conversation(TURNS)) == first
    other = text(tape, conversation([*TURNS[:-1], "Bye now."]))
    changed = set(other.splitlines()) ^ set(first.splitlines())
    assert changed == {"  → answer: Bye.", "  → answer: Bye now."}
    items = singles(12)
    assert text(tape, items) == text(tape, sorted(items, key=lambda item: item.lane))


def test_each_message_stands_once(tape: Path) -> None:
    """So the text of 100 exchanges is small, however long their history is."""
    items = conversation(TURNS)
    found = text(tape, items)
    assert len(items) == 100
    assert len(found.encode()) < 40_000
    assert found.count("Book me a flight.") == 1
    assert found.count("found 7") == 2, "as the result of the tool, and as what the model reads"


def test_text_of_a_tape_cannot_drive_a_terminal(tape: Path) -> None:
    """Escapes and bidirectional marks are spelled out."""
    found = text(tape, conversation(["\x1b]0;owned\x07 \u202e red"], lane="\x1b[2J"))
    assert "\x1b" not in found
    assert "\\x1b]0;owned\\x07 \\u202e red" in found
