"""The first ten minutes: what the tutorial says comes true, up to a script of the reader's own."""

from __future__ import annotations

from pathlib import Path

from docs.pages import follow


def test_the_first_ten_minutes(tmp_path: Path) -> None:
    """Each command prints what is shown; a script of one's own is blamed at the end."""
    typed = follow("docs/tutorial/first-tape.md", tmp_path)
    commands = [command.partition(" ")[2] for command, _ in typed if "mine" in command]
    assert [command.split()[0] for command in commands] == ["record", "replay", "blame", "fork"]
