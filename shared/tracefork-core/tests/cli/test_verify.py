from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tracefork_core import Tape
from tracefork_core.cli.main import main

from .conftest import Shell

STATEFUL = """\
import os, pathlib, sys
import httpx2
count = pathlib.Path("count")
runs = int(count.read_text()) if count.exists() else 0
count.write_text(str(runs + 1))
word = "later" if runs >= int(os.environ.get("CHANGES_AT", "99")) else "early"
httpx2.post(os.environ["PROVIDER"] + "/echo", content=word.encode())
"""


def test_the_receipt_proves_each_replay(recorded: Shell) -> None:
    """--times N replays in N processes. The receipt has both digests in full, and no socket."""
    with Tape.open(recorded.folder / "support.tape") as tape:
        digest = tape.digest
    done = recorded.tracefork("verify", "support.tape", "support.py", "--times", "2")
    assert done.exit == 0
    assert "✓ support.tape · 2 of 2 replays proven" in done.out
    assert done.out.count(digest) == 2
    assert "exchanges      1 of 1" in done.out
    assert "sockets        0" in done.out
    assert "captured 1 of 1 connection" in done.out


def test_one_replay_in_three_that_differs_is_found(shell: Shell) -> None:
    """The control: the third run of the agent differs."""
    shell.write("agent.py", STATEFUL)
    shell.tracefork("record", "agent.py")
    done = shell.tracefork("verify", "--times", "3", "--json", "agent.tape", CHANGES_AT="3")
    found = done.document
    assert (done.exit, found["exit"], found["same"], found["times"]) == (1, 1, 2, 3)
    assert [replay["exit"] for replay in found["replays"]] == [0, 0, 1]
    again = shell.tracefork("verify", "agent.tape", "agent.py", CHANGES_AT="3")
    assert again.exit == 1
    assert "✗ agent.tape · 0 of 1 replay proven" in again.out
    assert "✗ diverged after 0 of 1 exchange" in again.out


def test_the_stderr_of_a_failed_replay_is_shown(taped: Shell) -> None:
    """Escapes in it are spelled out."""
    taped.write("agent.py", "import os\nos.write(2, b'gone \\x1b[31mwrong')\nos.abort()\n")
    done = taped.tracefork("verify", "agent.tape", "agent.py")
    assert done.exit == 3
    assert "status -6" in done.out
    assert r"gone \x1b[31mwrong" in done.out


def integrity(path: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """Return the exit code of `verify --integrity` and its output."""
    code = main(["verify", "--integrity", str(path)])
    return code, capsys.readouterr().out


def test_an_undamaged_tape_passes(recorded: Shell, capsys: pytest.CaptureFixture[str]) -> None:
    """--integrity reads every event and body, and runs nothing."""
    assert main(["verify", "--integrity", "--json", str(recorded.folder / "plain.tape")]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["damage"], found["complete"], found["exchanges"]) == ([], True, 2)
    assert found["digest"] == found["recorded"]
    assert found["blobs"] == 2, "an echo answers with the bytes it was sent"


def replaced(kind: str, old: bytes, new: bytes) -> Callable[[bytes], bytes]:
    """Return a change of the events of a kind."""
    start = f'{{"kind":"{kind}"'.encode()
    return lambda line: line.replace(old, new) if line.startswith(start) else line


def removed(kind: str) -> Callable[[bytes], bytes]:
    """Return a change that drops the events of a kind."""
    return lambda line: b"" if line.startswith(f'{{"kind":"{kind}"'.encode()) else line


@pytest.mark.parametrize(
    ("harm", "named"),
    [
        ({"bodies": lambda data: bytes(len(data))}, "blob "),
        ({"events": removed("blob")}, "exchange 0, request body"),
        ({"events": replaced("exchange", b"completions", b"completionz")}, "digest"),
        ({"events": replaced("exchange", b'"n":0', b'"n":"0"')}, "event "),
        ({"events": replaced("environment", b'"python":', b'"pythons":')}, "event "),
        ({"events": removed("receipt")}, "receipt"),
    ],
)
def test_damage_is_named(
    taped: Shell, harm: Any, named: str, alter: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """--integrity names the damaged part, and ends with 5."""
    path = taped.folder / "support.tape"
    alter(path, **harm)
    code, out = integrity(path, capsys)
    assert code == 5
    assert out.startswith("✗ ")
    assert f"\n  {named}" in out


def test_one_flipped_bit_anywhere_is_found(
    recorded: Shell, capsys: pytest.CaptureFixture[str]
) -> None:
    """The bit may be in a header, an unused page or a body."""
    path = recorded.folder / "support.tape"
    data = path.read_bytes()
    places = {*range(100), *range(100, len(data), 97), len(data) - 1}
    missed = []
    for place in sorted(places):
        path.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        missed += [place] * (main(["verify", "--integrity", str(path)]) != 5)
    assert len(places) > 140
    assert missed == []
    path.write_bytes(data)
    assert main(["verify", "--integrity", str(path)]) == 0


def test_torn_pages_are_reported_as_damage(
    taped: Shell, capsys: pytest.CaptureFixture[str]
) -> None:
    """There is no traceback."""
    path = taped.folder / "agent.tape"
    data = path.read_bytes()
    path.write_bytes(data[:2048] + b"\xff" * (len(data) - 2048))
    assert main(["verify", "--integrity", str(path)]) == 5
    said = capsys.readouterr()
    assert "bug in tracefork" not in said.err
    assert "damaged" in said.out + said.err
