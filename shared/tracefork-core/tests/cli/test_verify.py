from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from tracefork_core import Tape

from .conftest import Shell

OTHER = "replace(CAST(payload AS TEXT), 'echo', 'ecco')"
STATEFUL = """\
import os, pathlib, sys
import httpx
count = pathlib.Path("count")
runs = int(count.read_text()) if count.exists() else 0
count.write_text(str(runs + 1))
word = "later" if runs >= int(os.environ.get("CHANGES_AT", "99")) else "early"
httpx.post(os.environ["PROVIDER"] + "/echo", content=word.encode())
"""


def test_the_receipt_proves_each_replay(recorded: Shell) -> None:
    """--times N replays in N processes; the receipt has both digests, in full, and no socket."""
    with Tape.open(recorded.folder / "support.tape") as tape:
        digest = tape.digest
    done = recorded.tracefork("verify", "support.tape", "support.py", "--times", "2")
    assert done.exit == 0
    assert "✓ support.tape · 2 of 2 replays proven" in done.out
    assert done.out.count(digest) == 2
    assert "exchanges      1 of 1" in done.out
    assert "sockets        0" in done.out
    assert "coverage 1 of 1 connection crossed a seam" in done.out


def test_one_replay_in_three_that_differs_is_found(shell: Shell) -> None:
    """The control: an agent whose third run differs is caught by the replay that differs."""
    shell.write("agent.py", STATEFUL)
    shell.tracefork("record", "agent.py")
    done = shell.tracefork("verify", "--times", "3", "--json", "agent.tape", CHANGES_AT="3")
    found = done.document
    assert (done.exit, found["exit"], found["same"], found["times"]) == (1, 1, 2, 3)
    assert [replay["exit"] for replay in found["replays"]] == [0, 0, 1]
    again = shell.tracefork("verify", "agent.tape", "agent.py", CHANGES_AT="3")
    assert again.exit == 1
    assert "✗ agent.tape · 0 of 1 replay proven" in again.out
    assert "✗ diverged at exchange 0 of 1" in again.out


def test_what_a_failed_replay_said_is_shown(shell: Shell) -> None:
    """The end of the agent's own stderr comes with the verdict, escapes spelled out."""
    shell.tracefork("record", "agent.py")
    shell.write("agent.py", "import sys\nsys.exit('gone \\x1b[31mwrong')\n")
    done = shell.tracefork("verify", "agent.tape", "agent.py")
    assert done.exit == 1, "both exchanges are missing"
    shell.write("agent.py", "import os\nos.write(2, b'gone \\x1b[31mwrong')\nos._exit(9)\n")
    done = shell.tracefork("verify", "agent.tape", "agent.py")
    assert done.exit == 3
    assert "ended without a result, with status 9" in done.out
    assert r"gone \x1b[31mwrong" in done.out


def test_an_undamaged_tape_is_undamaged(recorded: Shell) -> None:
    """--integrity reads every event and body, and runs nothing."""
    done = recorded.tracefork("verify", "--integrity", "--json", "plain.tape")
    found = done.document
    assert (done.exit, found["damage"], found["complete"]) == (0, [], True)
    assert found["digest"] == found["recorded"]
    assert found["exchanges"] == 2
    assert found["blobs"] == 2, "an echo answers with the bytes it was sent"


@pytest.mark.parametrize(
    ("harm", "named"),
    [
        ("UPDATE blobs SET data = zeroblob(length(data)) WHERE id = 1", "blob "),
        ("DELETE FROM blobs WHERE id = 1", "exchange 0, request body"),
        (f"UPDATE events SET payload = CAST({OTHER} AS BLOB) WHERE kind = 'exchange'", "digest"),
        (f"UPDATE events SET payload = {OTHER} WHERE kind = 'exchange'", "event "),
        ("UPDATE events SET payload = x'7b' WHERE kind = 'exchange'", "event "),
        ("UPDATE events SET aside = '[]' WHERE kind = 'draws'", "event "),
        ("DELETE FROM events WHERE kind = 'receipt'", "receipt"),
    ],
)
def test_damage_is_named(shell: Shell, harm: str, named: str) -> None:
    """Whatever is changed in a tape, --integrity names it and ends with 5."""
    shell.write("agent.py", "import time\ntime.time()\n" + (shell.folder / "agent.py").read_text())
    shell.tracefork("record", "agent.py")
    with closing(sqlite3.connect(shell.folder / "agent.tape")) as db:
        assert db.execute(harm).rowcount > 0
        db.commit()
    done = shell.tracefork("verify", "--integrity", "agent.tape")
    assert done.exit == 5
    assert "✗ agent.tape" in done.out
    assert f"\n  {named}" in done.out


def test_torn_pages_are_no_traceback(shell: Shell) -> None:
    """A tape whose middle was overwritten is damaged, in words."""
    shell.tracefork("record", "agent.py")
    path = shell.folder / "agent.tape"
    data = bytearray(path.read_bytes())
    data[8192:] = b"\xff" * (len(data) - 8192)
    path.write_bytes(data)
    done = shell.tracefork("verify", "--integrity", "agent.tape")
    assert done.exit == 5
    assert "Traceback" not in done.out + done.err
