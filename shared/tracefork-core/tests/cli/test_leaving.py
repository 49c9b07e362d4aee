"""An agent that ends or replaces its process has a complete tape, and a verdict at replay."""

from __future__ import annotations

import pytest

from tracefork_core import Tape
from tracefork_testkit import ProviderServer

from .conftest import PLAIN_AGENT, Shell

LEAVING = PLAIN_AGENT + "sys.stdout.flush()\n"
WAYS = {
    "main thread": "os._exit(STATUS)",
    "an exit handler": "import atexit\natexit.register(os._exit, STATUS)",
    "a task": "import asyncio\nasync def end():\n    os._exit(STATUS)\nasyncio.run(end())",
    "another thread": "import threading\nend = threading.Thread(target=os._exit, args=[STATUS])\n"
    "end.start()\nend.join()",
}


def leaving(shell: Shell, way: str, status: int) -> None:
    """Write an agent that ends in the given way."""
    shell.write("leaving.py", LEAVING + WAYS[way].replace("STATUS", str(status)) + "\n")


@pytest.mark.parametrize("status", [0, 3])
@pytest.mark.parametrize("way", list(WAYS))
def test_the_tape_of_an_agent_that_leaves_is_complete_and_replays(
    way: str, status: int, shell: Shell
) -> None:
    """The summary is printed, and the exit status is the agent's."""
    leaving(shell, way, status)
    recorded = shell.tracefork("record", "leaving.py")
    assert (recorded.exit, recorded.out) == (status, "one\ntwo\n")
    assert "next: tracefork replay leaving.tape leaving.py" in recorded.err
    with Tape.open(shell.folder / "leaving.tape") as tape:
        assert tape.receipt is not None
    replayed = shell.tracefork("replay", "leaving.tape")
    assert (replayed.exit, replayed.out) == (0, "one\ntwo\n")
    assert "replayed 2 of 2 exchanges bit-exact" in replayed.err
    assert shell.tracefork("verify", "leaving.tape").exit == 0


SWALLOWING = """\
import os
import sys

import httpx2

for word in sys.argv[1:]:
    try:
        httpx2.post(os.environ["PROVIDER"] + "/echo", content=word.encode())
    except BaseException:
        pass
os._exit(0)
"""


@pytest.mark.parametrize("asked", [["one", "three"], ["one"], ["one", "two", "three"]])
def test_a_swallowed_divergence_is_reported_when_the_agent_leaves(
    asked: list[str], shell: Shell
) -> None:
    """The status 0 of the agent is no verdict."""
    shell.write("leaving.py", SWALLOWING)
    assert shell.tracefork("record", "leaving.py", "--", "one", "two").exit == 0
    words = ("replay", "leaving.tape", "leaving.py", "--json", "--", *asked)
    replayed = shell.tracefork(*words)
    assert (replayed.exit, replayed.document["result"]) == (1, "different")


def test_a_swallowed_refusal_is_reported_when_the_agent_leaves(
    shell: Shell, provider: ProviderServer
) -> None:
    """The exit code is 4, as everywhere."""
    leaving(shell, "main thread", 0)
    assert shell.tracefork("record", "leaving.py").exit == 0
    calls = "import urllib.request\ntry: urllib.request.urlopen(os.environ['PROVIDER'])\n"
    shell.edit("leaving.py", "os._exit(0)", f"{calls}except BaseException: pass\nos._exit(0)")
    refused = shell.tracefork("replay", "leaving.tape")
    assert refused.exit == 4
    assert "tried to reach" in refused.err


BECOMING = """\
import os
import sys

import httpx2

if "again" not in sys.argv:
    try:
        os.execv("/nowhere/at-all", ["nothing"])
    except FileNotFoundError as error:
        print(error.errno, flush=True)
    if not (child := os.fork()):
        os.execlp("sh", "sh", "-c", "exit 4")
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
    os.execl(sys.executable, sys.executable, *sys.argv, "again")
print(sys.argv, httpx2.post(os.environ["PROVIDER"] + "/echo", content=b"again").text)
sys.exit(3)
"""


def test_a_program_started_by_exec_is_part_of_the_run(shell: Shell) -> None:
    """Its exit status is that of the run."""
    shell.write("becoming.py", BECOMING)
    plain = shell.python("becoming.py")
    assert plain.out == "2\n4\n['becoming.py', 'again'] again\n"
    recorded = shell.tracefork("record", "becoming.py")
    assert (recorded.exit, recorded.out) == (plain.exit, plain.out) == (3, plain.out)
    replayed = shell.tracefork("replay", "becoming.tape")
    assert (replayed.exit, replayed.out) == (0, plain.out)
    assert "replayed 1 of 1 exchange bit-exact" in replayed.err
