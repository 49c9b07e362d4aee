"""Text on a stranger's tape cannot drive the terminal of a user who looks at it."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tracefork_core import Tape, record
from tracefork_core.adapters import begin_step, current_step
from tracefork_testkit import ProviderServer

EVIL = "\x1b]0;owned\x07\x1b[2J\x9b2J\u202e\u200b\r\n✓ fine"
AGENT = """\
import sys
import httpx2

with httpx2.Client(verify=False) as http:
    http.get(sys.argv[1] + "/bytes/2")
"""


def is_plain(text: str) -> bool:
    forged = any(line.startswith("✓ fine") for line in text.splitlines())
    return not forged and all(char.isprintable() or char == "\n" for char in text)


def hostile(value: Any, name: str = "") -> Any:
    """Put escapes into each text of a document that nothing else depends on."""
    if isinstance(value, dict):
        return {key: hostile(item, key) for key, item in value.items()}
    if isinstance(value, list):
        return [hostile(item, name) for item in value]
    kept = name in ("body", "digest", "end", "id", "parent", "sha", "base") or value == "main"
    return value if kept or not isinstance(value, str) else f"{value}{EVIL}"


@pytest.fixture
def evil(tape: Path, provider: ProviderServer, alter: Any) -> Path:
    """Record an exchange and a failure, and put escapes into every name and text of the tape."""
    with record(tape), httpx2.Client(verify=False) as http:
        before = current_step.set(begin_step("node", "plan"))
        http.get(f"{provider.url}/bytes/1")
        http.get(f"{provider.url}/bytes/2")
        current_step.reset(before)

    def change(line: bytes) -> bytes:
        event = json.loads(line)
        if event["kind"] == "blob":
            return line
        if event["kind"] == "exchange" and event["payload"]["n"] == 1:
            event["payload"] |= {"response": None, "failure": {"kind": "E", "message": "m"}}
            event["aside"] |= {"sizes": [], "turns": [], "end": "failed"}
        parts = {part: hostile(event[part]) for part in ("payload", "aside")}
        return json.dumps({"kind": event["kind"], **parts}).encode() + b"\n"

    alter(tape, events=change)
    return tape


@pytest.mark.parametrize("as_json", [[], ["--json"]])
@pytest.mark.parametrize(
    "words",
    [
        ["ls", "."],
        ["show", "run.tape"],
        ["show", "run.tape", "0"],
        ["show", "run.tape", "1"],
        ["verify", "--integrity", "run.tape"],
        ["replay", "run.tape", "agent.py", "http://x"],
        ["verify", "run.tape", "agent.py", "http://x"],
    ],
    ids=" ".join,
)
def test_no_command_prints_an_escape(evil: Path, words: list[str], as_json: list[str]) -> None:
    """Methods, URLs, headers, reasons, failures, lanes, steps and packages are spelled out."""
    (evil.parent / "agent.py").write_text(AGENT)
    command = [sys.executable, "-m", "tracefork_core.cli.main", words[0], *as_json, *words[1:]]
    environment = {**os.environ, "TRACEFORK_HOME": str(evil.parent / "home"), "COLUMNS": "300"}
    done = subprocess.run(
        command, cwd=evil.parent, env=environment, capture_output=True, check=False
    )
    for text in (done.stdout.decode(), done.stderr.decode()):
        assert is_plain(text), text
    assert "bug in tracefork" not in done.stderr.decode()
    assert done.stdout or done.stderr


def test_the_hostile_tape_holds_escapes(evil: Path) -> None:
    """Negative control: the Python API returns them."""
    with Tape.open(evil) as tape:
        first, second = tape.exchanges
        assert second.failure is not None
        assert tape.environment is not None
        places = [first.method, first.url, first.reason, first.response_headers[0][1]]
        places += [second.failure.kind, second.failure.message, tape.steps[0].name]
        places += [*tape.environment.packages.values(), tape.environment.python]
        assert all(EVIL in place for place in places)
        assert not is_plain(first.method)


def test_on_a_terminal_even_raw_bodies_are_spelled_out(
    tape: Path, provider: ProviderServer, http: httpx2.Client
) -> None:
    """`show N --raw` writes bytes into a pipe, and escapes on a terminal."""
    with record(tape):
        http.post(f"{provider.url}/echo", content=EVIL.encode())
    words = [sys.executable, "-m", "tracefork_core.cli.main", "show", str(tape), "0", "--raw"]
    assert subprocess.run(words, capture_output=True, check=True).stdout == EVIL.encode()
    ours, theirs = pty.openpty()
    done = subprocess.run(words, stdout=theirs, env={**os.environ, "NO_COLOR": "1"}, check=True)
    os.close(theirs)
    seen = os.read(ours, 65536).decode()
    os.close(ours)
    assert done.returncode == 0
    assert "\x1b" not in seen
    assert "\\x1b]0;owned" in seen
