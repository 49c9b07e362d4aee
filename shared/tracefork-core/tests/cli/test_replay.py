from __future__ import annotations

from pathlib import Path

import pytest

from tracefork_core import Tape
from tracefork_testkit import ProviderServer

from .conftest import FAILING_AGENT, OPENAI_AGENT, PLAIN_AGENT, Shell

SWALLOWING = """\
import os, sys
import httpx2
try:
    for word in sys.argv[1:]:
        httpx2.post(os.environ["PROVIDER"] + "/echo", content=word.encode())
except BaseException:
    pass
sys.exit(0)
"""


def test_a_replay_needs_no_provider(shell: Shell) -> None:
    """The agent prints the same, and the digest is that of the tape."""
    shell.write("agent.py", OPENAI_AGENT)
    with ProviderServer() as server:
        recorded = shell.tracefork("record", "agent.py", PROVIDER=server.url)
        environment = {"PROVIDER": server.url}
    done = shell.tracefork("replay", "agent.tape", "agent.py", **environment)
    assert (done.exit, done.out) == (0, recorded.out)
    with Tape.open(shell.folder / "agent.tape") as tape:
        digest = tape.digest
    assert "✓ replayed 1 of 1 exchange bit-exact · 0 sockets · $0 (saved " in done.err
    assert " tokens) · " in done.err
    assert f"digest {digest[:4]}…{digest[-4:]}" in done.err


def test_a_replay_reports_as_a_document(taped: Shell) -> None:
    """With --json, the agent's output goes to stderr."""
    done = taped.tracefork("replay", "agent.tape", "agent.py", "--json")
    found = done.document
    assert (found["exit"], found["result"], found["bit_exact"]) == (0, "same", True)
    assert (found["exchanges"], found["of"], found["sockets"]) == (2, 2, 0)
    assert found["digest"] == found["tape_digest"]
    assert found["outcome"] == {"recorded": "ok", "now": "ok"}
    assert "one\ntwo\n" in done.err


def test_a_replay_names_programs_that_it_cannot_watch(shell: Shell) -> None:
    """Their requests would be live, and are not among the counted sockets."""
    asks = "import os, httpx2, subprocess\nhttpx2.post(os.environ['PROVIDER'] + '/echo')\n"
    shell.write("starts.py", f"{asks}subprocess.run(['true'])\n")
    shell.write("quiet.py", asks)
    assert shell.tracefork("record", "-o", "run.tape", "starts.py").exit == 0
    done = shell.tracefork("replay", "run.tape", "starts.py")
    assert "--no-subprocess" in done.err
    quiet = shell.tracefork("replay", "run.tape", "quiet.py")
    assert "not watched" not in quiet.err


@pytest.mark.parametrize(
    ("words", "kind", "said"),
    [
        (["one", "TWO"], "request", "/echo"),
        (["one", "two", "three"], "extra", "one more request than was recorded"),
        (["one"], "leftover", "1 recorded exchange was never asked for: #1"),
    ],
    ids=["other", "extra", "missing"],
)
def test_a_swallowed_divergence_is_reported(
    taped: Shell, words: list[str], kind: str, said: str
) -> None:
    """The agent exits with 0, but the replay with 1 and a card."""
    taped.write("agent.py", SWALLOWING)
    done = taped.tracefork("replay", "agent.tape", "agent.py", "--", *words)
    assert done.exit == 1
    assert "✗ diverged" in done.err
    assert said in done.err
    found = taped.tracefork("replay", "agent.tape", "--json", "agent.py", "--", *words)
    assert (found.exit, found.document["divergence"]["kind"]) == (1, kind)


def test_an_agent_that_swallows_errors_can_replay(taped: Shell) -> None:
    """The control: its requests are the recorded ones."""
    taped.write("agent.py", SWALLOWING)
    assert taped.tracefork("replay", "agent.tape", "agent.py", "--", "one", "two").exit == 0


def test_an_ignored_place_may_differ(shell: Shell) -> None:
    """The report says that it was not compared."""
    shell.edit("agent.py", "content=word.encode()", 'json={"word": word, "kept": 1}')
    shell.tracefork("record", "agent.py", "--", "a")
    assert shell.tracefork("replay", "agent.tape", "agent.py", "--", "b").exit == 1
    done = shell.tracefork("replay", "--ignore", "/word", "agent.tape", "agent.py", "--", "b")
    assert done.exit == 0
    assert "replayed 1 of 1 exchange alike" in done.err
    assert "not compared: ignore:/word" in done.err
    shell.edit("agent.py", '"kept": 1', '"kept": 2')
    assert shell.tracefork("replay", "--ignore=/word", "agent.tape", "agent.py").exit == 1


def test_a_recorded_failure_replays(taped: Shell) -> None:
    """The exit code is 0, and the agent's traceback is printed."""
    taped.write("agent.py", FAILING_AGENT)
    done = taped.tracefork("replay", "failing.tape", "agent.py")
    assert done.exit == 0
    assert "KeyError: 'x'" in done.err
    assert "KeyError" in done.err


@pytest.mark.parametrize("line", ["raise KeyError('x')", "import sys; sys.exit(4)"])
def test_an_agent_that_fails_by_itself_fails_the_replay(taped: Shell, line: str) -> None:
    """It made every recorded request, and did not fail when it was recorded."""
    taped.write("agent.py", f"{PLAIN_AGENT}{line}\n")
    done = taped.tracefork("replay", "agent.tape", "agent.py")
    assert done.exit == 3
    assert "✗ the agent failed by itself" in done.err


def test_an_agent_that_fails_earlier_fails_the_replay(taped: Shell) -> None:
    """The exception is the recorded one, but requests are missing."""
    taped.write("agent.py", "raise KeyError('x')\n")
    done = taped.tracefork("replay", "failing.tape", "agent.py")
    assert done.exit == 3
    assert "0 of 2 exchanges" in done.err


def test_an_agent_that_no_longer_fails_is_different(taped: Shell) -> None:
    """The recorded one ended with an exception."""
    done = taped.tracefork("replay", "failing.tape", "agent.py")
    assert done.exit == 1
    assert "KeyError" in done.err


def test_a_connection_past_the_seams_is_refused(shell: Shell, provider: ProviderServer) -> None:
    """It does not matter if the agent swallows the error; --allow permits the connection."""
    shell.write(
        "door.py",
        "import os, httpx2, urllib.request\n"
        "try:\n"
        "    urllib.request.urlopen(os.environ['PROVIDER'] + '/echo')\n"
        "except BaseException as error:\n"
        "    print(type(error).__name__)\n"
        "httpx2.post(os.environ['PROVIDER'] + '/echo')\n",
    )
    assert shell.tracefork("record", "door.py").exit == 0
    before = len(provider.requests)
    done = shell.tracefork("replay", "door.tape", "door.py")
    assert done.exit == 4
    assert "door.py:3 tried to reach 127.0.0.1" in done.err
    assert len(provider.requests) == before
    allowed = shell.tracefork("replay", "--allow", "127.0.0.1", "--json", "door.tape", "door.py")
    assert (allowed.exit, allowed.document["sockets"]) == (0, 1)


def test_a_bad_tape_is_refused(shell: Shell) -> None:
    """Nothing of the agent runs."""
    shell.write("agent.py", "print('ran')\n")
    shell.write("bad.tape", "not a database at all" * 100)
    done = shell.tracefork("replay", "bad.tape", "agent.py")
    assert (done.exit, done.out) == (5, "")
    assert "is not a tape" in done.err
    assert "Traceback" not in done.err


def test_a_replay_without_an_agent_runs_the_stored_command(shell: Shell, tmp_path: Path) -> None:
    """It works in any folder."""
    shell.tracefork("record", "-o", "mine.tape", "agent.py", "--", "a b")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for name in ("last", "mine", str(shell.folder / "mine.tape")):
        done = shell.at(elsewhere).tracefork("replay", name)
        assert (done.exit, done.out) == (0, "a b\n"), done.err
    assert f"agent.py -- 'a b' (in {shell.folder})" in done.err


def test_a_strangers_tape_runs_nothing(shell: Shell) -> None:
    """The stored command of the path has another digest."""
    shell.tracefork("record", "-o", "mine.tape", "agent.py", "--", "a")
    shell.tracefork("record", "-o", "other.tape", "agent.py", "--", "b")
    (shell.folder / "other.tape").replace(shell.folder / "mine.tape")
    done = shell.tracefork("replay", "mine.tape")
    assert (done.exit, done.out) == (2, "")
    assert "`agent.py -- a`" in done.err
    assert "agent.py -- b" not in done.err


def test_a_tape_from_another_machine_needs_the_agent(taped: Shell) -> None:
    """The error shows the command to type."""
    done = taped.tracefork("replay", "agent.tape")
    assert (done.exit, done.out) == (2, "")
    assert "agent.tape SCRIPT.py" in done.err


WATCHDOG = PLAIN_AGENT + "raise KeyboardInterrupt\n"


def test_an_agent_that_interrupts_itself_is_proven(shell: Shell) -> None:
    """A watchdog may do so in every run. An interrupt midway proves nothing."""
    shell.write("agent.py", WATCHDOG)
    with ProviderServer() as server:
        recorded = shell.tracefork("record", "agent.py", PROVIDER=server.url)
        environment = {"PROVIDER": server.url}
    assert recorded.exit == 130
    done = shell.tracefork("replay", "agent.tape", "agent.py", **environment)
    assert (done.exit, "bit-exact" in done.err) == (0, True)
    shell.write("agent.py", WATCHDOG.replace('["one", "two"]', '["one"]'))
    cut = shell.tracefork("replay", "agent.tape", "agent.py", **environment)
    assert (cut.exit, "bit-exact" in cut.err) == (130, False)


# Not with `print`: Python aborts if a daemon thread holds the lock of stdout at the end.
TICKING = """\
import os, threading, time

def tick():
    while True:
        os.write(1, b"working...\\n")

threading.Thread(target=tick, daemon=True).start()
time.sleep(0.05)
"""


@pytest.mark.parametrize("command", ["record", "replay", "verify"])
def test_output_of_a_daemon_thread_is_not_in_the_document(shell: Shell, command: str) -> None:
    """It prints until the process ends."""
    shell.write("agent.py", TICKING)
    shell.tracefork("record", "-o", "run.tape", "agent.py")
    words = {
        "record": ["record", "-o", "other.tape", "agent.py", "--json"],
        "replay": ["replay", "run.tape", "agent.py", "--json"],
        "verify": ["verify", "run.tape", "agent.py", "--times", "3", "--json"],
    }
    for _ in range(3 if command != "verify" else 1):
        done = shell.tracefork(*words[command])
        assert done.document["exit"] == done.exit == 0
        (shell.folder / "other.tape").unlink(missing_ok=True)
