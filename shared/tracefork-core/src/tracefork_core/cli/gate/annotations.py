"""The check of a folder as GitHub's annotations: a line of the log that shows up at a line of code.

GitHub reads commands from the log of a job. Everything that a tape or an agent wrote is escaped, so
that it cannot be one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from tracefork_core.cli.display.text import printable
from tracefork_core.cli.gate.verdict import Checked, Gate, Verdict

_LEVELS = {Verdict.FAIL: "error", Verdict.UNDECIDED: "warning"}
_LONGEST = 400


def is_on_github(environment: Mapping[str, str] = os.environ) -> bool:
    """Return whether this is a job of GitHub Actions."""
    return environment.get("GITHUB_ACTIONS") == "true"


def commands(gate: Gate) -> Iterator[str]:
    """Yield one command for each tape that did not pass, and for each orphan."""
    for one in gate.checks:
        if one.verdict in _LEVELS:
            title = f"{one.name}: {one.verdict}"
            yield _command(_LEVELS[one.verdict], title, _message(one), one.place)
    for name in gate.orphans:
        yield _command("notice", name, "is in no entry of the manifest, so it is not checked", None)


def _message(one: Checked) -> str:
    card = one.divergence
    if card is None or not card.pointer:
        return one.reason
    return f"{one.reason} {card.pointer}: recorded {card.recorded}, now {card.actual}"


def _command(level: str, title: str, message: str, place: tuple[str, int] | None) -> str:
    fields = [f"title={_property(title)}"]
    if place is not None:
        file = Path(place[0])
        here = Path.cwd()
        named = file.relative_to(here) if file.is_relative_to(here) else file
        fields = [f"file={_property(named.as_posix())}", f"line={place[1]}", *fields]
    return f"::{level} {','.join(fields)}::{_data(message)}"


def _data(text: str) -> str:
    return printable(text[:_LONGEST]).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
