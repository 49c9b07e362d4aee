"""Text on a stranger's tape cannot drive the terminal of a user who looks at it."""

from __future__ import annotations

import ast
import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import pytest

import tracefork_core
from tracefork_core import DivergenceError, Tape, record
from tracefork_core.adapters import (
    SavedCheckpoint,
    SavedValue,
    begin_step,
    checkpoints,
    current_step,
)
from tracefork_core.cli.command_table import SUMMARIES
from tracefork_core.cli.main import main
from tracefork_core.tape.digest import sha256
from tracefork_testkit import ProviderServer

from ..conftest import alter_tape
from .conftest import Done, Shell
from .test_sign import key_pair

EVIL = "\x1b]0;owned\x07\x1b[2J\x9b2J\x7f\u202e\u200b[bold red]x[/]\r\n✓ fine"
AGENT = """\
import sys
import httpx2

with httpx2.Client(verify=False) as http:
    http.get(sys.argv[1] + "/bytes/2")
"""
AGENT_WORDS = ("agent.py", "http://x")
COMMANDS: dict[str, list[tuple[str, ...]]] = {
    "replay": [("run.tape", *AGENT_WORDS), ("run.tape", "--strict", *AGENT_WORDS), ("run.tape",)],
    "proxy": [("replay", "run.tape", "--", "true")],
    "verify": [("--integrity", "run.tape"), ("run.tape", *AGENT_WORDS), ("--integrity", "gone")],
    "ci": [("diff", ".", "--against", "."), ("check", "."), ("normalize", ".")],
    "show": [
        ("run.tape",),
        ("run.tape", "0"),
        ("run.tape", "1"),
        ("run.tape", "9"),
        ("run.tape", "--checkpoints"),
        ("run.tape", "--checkpoint", "1"),
        ("run.tape", "--checkpoint", "none"),
        ("run.tape", "--text"),
        ("run.tape", "1", "--against", "0"),
        ("run.tape", "0", "--html", "--overwrite"),
    ],
    "report": [("run.tape", "-o", "run.html", "--overwrite"), ("gone",)],
    "view": [("gone",)],
    "tui": [("run.tape",), (".",)],
    "diff": [
        ("run.tape", "run.tape"),
        ("run.tape", "other.tape"),
        ("run.tape",),
        ("run.tape", "other.tape", "--html", "--overwrite"),
    ],
    "ls": [(".",)],
    "tree": [("run.tape",)],
    "rerun": [("run.tape", "--offline", *AGENT_WORDS), ("run.tape", *AGENT_WORDS)],
    "fork": [("run.tape", "--at=1", "--allow-writes", "-o", "forked.tape", *AGENT_WORDS)],
    "try": [("run.tape", "--at=0", "--model=other")],
    "blame": [("run.tape", "--oracle=regex:x", "--yes", *AGENT_WORDS), ("run.tape", "--status")],
    "bisect": [("run.tape", "--oracle=regex:x", *AGENT_WORDS)],
    "shrink": [("run.tape", "--oracle=regex:x", *AGENT_WORDS)],
    "calibrate": [("--no-live", "--tape", "run.tape", *AGENT_WORDS)],
    "race": [("--seeds=1", "run.tape", *AGENT_WORDS)],
    "pack": [("run.tape", "-o", "packed.tape"), ("run.tape", "-o", "packed.tape")],
    "unpack": [("run.tape", "--into", "unpacked"), ("run.tape", "--into", "unpacked")],
    "sign": [("run.tape", "--key", "key")],
    "scan": [("run.tape",)],
    "redact": [("run.tape", "-o", "redacted.tape")],
    "export": [
        ("run.tape", "--content", "-o", "run.json", "--overwrite"),
        ("run.tape", "--atif", "--content", "-o", "run.json"),
        ("run.tape",),
    ],
    "gc": [("--older-than", "1h", "--dry-run", ".")],
    "validate": [("run.tape", *AGENT_WORDS)],
}
"""The words of each command that reads a tape, and of some that fail on it."""
IN_THIS_PROCESS = {
    "show",
    "report",
    "view",
    "diff",
    "ls",
    "tree",
    "tui",
    "pack",
    "unpack",
    "sign",
    "scan",
    "redact",
    "export",
    "gc",
}
"""Commands that start no agent: they need no process of their own."""
SLOW = {"blame", "bisect", "shrink", "calibrate", "race", "validate"}
"""Commands with several processes: their documents are written like those of the others."""
READS_NONE = {"demo", "record", "doctor", "bench", "import"}


def is_plain(text: str) -> bool:
    forged = any(line.startswith("✓ fine") for line in text.splitlines())
    return not forged and all(char.isprintable() or char == "\n" for char in text)


def hostile(value: Any, name: str = "") -> Any:
    """Put escapes into each text of a document that nothing else depends on."""
    if isinstance(value, dict):
        return {key: hostile(item, key) for key, item in value.items()}
    if isinstance(value, list):
        return [hostile(item, name) for item in value]
    kept = name in ("body", "digest", "end", "sha", "base", "tag", "seed") or value == "main"
    return value if kept or not isinstance(value, str) else f"{value}{EVIL}"


@pytest.fixture(scope="module")
def evil(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    """Record exchanges, steps and a state, and put escapes into every text of the tape."""
    folder = tmp_path_factory.mktemp("evil")
    tape = folder / "run.tape"
    with ProviderServer() as provider, httpx2.Client(verify=False) as http, record(tape):
        before = current_step.set(begin_step("node", "plan"))
        http.get(f"{provider.url}/bytes/1")
        http.get(f"{provider.url}/bytes/2")
        current_step.reset(before)
        body = msgspec.msgpack.encode({EVIL: EVIL})
        value = SavedValue("msgpack", sha256(body))
        state = SavedCheckpoint("T", "", "1", value, {"said": value}, {"by": "me"}, None, 10**18)
        checkpoints(folder / "threads.tape").put(state, {value.sha: body})

    def change(line: bytes) -> bytes:
        event = json.loads(line)
        if event["kind"] == "blob":
            return line
        if event["kind"] == "exchange" and event["payload"]["n"] == 1:
            event["payload"] |= {"response": None, "failure": {"kind": "E", "message": "m"}}
            event["aside"] |= {"sizes": [], "turns": [], "end": "failed"}
        if event["kind"] == "receipt":
            lists = ("strays", "subprocesses", "unused_tools")
            event["payload"] |= {"secrets": {EVIL: 1}, **{key: ["x"] for key in lists}}
        parts = {part: hostile(event[part]) for part in ("payload", "aside")}
        return json.dumps({"kind": event["kind"], **parts}).encode() + b"\n"

    alter_tape(tape, events=change)
    key_pair(folder / "key")
    (folder / "agent.py").write_text(AGENT)
    return Shell(folder, {"TRACEFORK_HOME": str(folder / "home"), "COLUMNS": "300"})


LINES = [(name, *words) for name, lines in COMMANDS.items() for words in lines]


@pytest.mark.parametrize(
    ("words", "as_json"),
    [
        *((words, []) for words in LINES),
        *((words, ["--json"]) for words in LINES if words[0] not in SLOW),
    ],
    ids=lambda words: " ".join(words) or "text",
)
def test_no_command_prints_an_escape(
    evil: Shell,
    words: tuple[str, ...],
    as_json: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Methods, URLs, headers, failures, lanes, steps, states and packages are spelled out."""
    for made in ("forked", "redacted"):
        (evil.folder / f"{made}.tape").unlink(missing_ok=True)
    verbs = 2 if words[0] == "ci" else 1
    command = (*words[:verbs], *as_json, *words[verbs:])
    if words[0] in IN_THIS_PROCESS:
        for name, value in evil.environment.items():
            monkeypatch.setenv(name, value)
        monkeypatch.chdir(evil.folder)
        main(command)
        done = Done(0, *capfd.readouterr())
    else:
        done = evil.tracefork(*command)
    for text in (done.out, done.err):
        assert is_plain(text), text
    assert "bug in tracefork" not in done.err
    assert "has no option" not in done.err
    assert done.out or done.err


def test_every_command_that_reads_a_tape_is_run() -> None:
    """A new command is added to the table above."""
    assert set(COMMANDS) | READS_NONE == set(SUMMARIES)
    assert not set(COMMANDS) & READS_NONE


def test_an_error_of_the_library_holds_no_escape(evil: Shell) -> None:
    """Python prints it with a traceback, past the command line."""
    with (
        pytest.raises(DivergenceError) as raised,
        tracefork_core.replay(evil.folder / "run.tape"),
        httpx2.Client(verify=False) as http,
    ):
        http.get("http://127.0.0.1:50000/bytes/2")
    assert any(EVIL in hint for hint in raised.value.divergence.hints)
    assert is_plain(str(raised.value))


def test_only_the_console_prints() -> None:
    """The command line has one way to a terminal; what else writes there is listed."""
    found = set()
    package = Path(tracefork_core.__file__).parent
    for file in sorted(package.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if writes_past_the_console(node):
                found.add(str(file.relative_to(package)))
    assert found == WRITERS


WRITERS = {
    "cli/agent/ending.py",  # the agent's own last words
    "cli/commands/show.py",  # --raw into a pipe
    "cli/main.py",  # the help and the version
    "inputs/stdin_stream.py",  # the prompt of the agent's input()
}


def writes_past_the_console(node: ast.AST) -> bool:
    """Return whether code prints, makes a console, or writes to a standard stream."""
    match node:
        case ast.Call(func=ast.Name(id="print" | "Console")):
            return True
        case ast.Call(func=ast.Attribute(attr="write" | "writelines", value=ast.Attribute() as to)):
            return ast.unparse(to).startswith(("sys.stdout", "sys.stderr", "sys.__std"))
        case ast.Call(func=ast.Attribute(attr="echo" | "secho", value=ast.Name(id="typer"))):
            return True
    return False


def test_the_hostile_tape_holds_escapes(evil: Shell) -> None:
    """Negative control: the Python API returns them."""
    with Tape.open(evil.folder / "run.tape") as tape:
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
