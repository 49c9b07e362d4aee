"""`tracefork ci` when something ends before its time, or a system refuses something."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tracefork_testkit import ProviderServer

from .conftest import PLAIN_AGENT, Shell

STOPS = """\
if "KILLS" in os.environ:
    os.kill(os.getppid(), 9)
if "HANGS" in os.environ:
    with open("pid.new", "w") as file:
        file.write(str(os.getpid()))
    os.rename("pid.new", "pid")
    import time
    time.sleep(300)
"""
CLOSES = """\
import socket, sys
from tracefork_core.cli.gate import namespace

def refuse():
    raise PermissionError(1, "Operation not permitted")

if sys.argv[3] == "refused":
    namespace._bring_loopback_up = refuse
print(namespace.close_network())
socket.create_connection((sys.argv[1], int(sys.argv[2])), 5).close()
"""


@pytest.fixture
def gated(shell: Shell) -> Shell:
    """Return a shell with two agents on tape; the first one can be told to stop."""
    shell.write("agent.py", PLAIN_AGENT + STOPS)
    shell.write("other.py", PLAIN_AGENT)
    for agent in ("agent.py", "other.py"):
        assert shell.tracefork("ci", "record", agent).exit == 0
    return shell


def _waits_for(file: Path) -> int:
    for _ in range(600):
        if file.is_file():
            return int(file.read_text())
        time.sleep(0.1)
    raise AssertionError(file)


def _is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_killed_worker_leaves_one_tape_undecided(gated: Shell) -> None:
    """The other tape gets a worker of its own, and passes."""
    done = gated.tracefork("ci", "check", "-n", "1", KILLS="1")
    assert done.exit == 125, done.out + done.err
    assert "? agent.tape · undecided" in done.out
    assert "✓ other.tape" in done.out


@pytest.mark.skipif(
    sys.platform != "linux", reason="only Linux ends the agents of a check that was killed"
)
@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGKILL, -signal.SIGKILL)]
)
def test_no_agent_outlives_a_check_that_is_stopped(
    gated: Shell, number: signal.Signals, status: int
) -> None:
    """The signal reaches the check alone, as from a server that cancels a job."""
    with subprocess.Popen(
        [sys.executable, "-m", "tracefork_core", "ci", "check"],
        cwd=gated.folder,
        env=gated.full_environment(HANGS="1"),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as check:
        agent = _waits_for(gated.folder / "pid")
        assert _is_running(agent)
        check.send_signal(number)
        assert check.wait(60) == status
    for _ in range(100):
        if not _is_running(agent):
            return
        time.sleep(0.1)
    os.kill(agent, signal.SIGKILL)
    raise AssertionError("the agent still runs")


def test_a_system_that_refuses_a_namespace_half_way_keeps_its_network(
    shell: Shell, provider: ProviderServer
) -> None:
    """The control is a system that grants it: there, the server is out of reach."""
    host, port = provider.url.removeprefix("http://").split(":")
    refused = shell.python("-c", CLOSES, host, port, "refused")
    assert (refused.exit, refused.out) == (0, "False\n"), refused.err
    granted = shell.python("-c", CLOSES, host, port, "granted")
    assert (granted.exit, granted.out) == (1, "True\n"), granted.err


def test_a_corrupt_manifest_is_refused_before_the_agent_runs(
    gated: Shell, provider: ProviderServer
) -> None:
    """A merge that git could not do leaves marks in it. The tape stays as it was."""
    tape = gated.folder / "tapes/other.tape"
    asked, before = len(provider.requests), tape.read_bytes()
    gated.write("tapes/tracefork-ci.json", "<<<<<<< ours\n")
    done = gated.tracefork("ci", "record", "other.py")
    assert done.exit == 5
    assert "is not a manifest" in done.err
    assert (len(provider.requests), tape.read_bytes()) == (asked, before)


def test_a_folder_of_tapes_may_be_a_symlink(shell: Shell, tmp_path: Path) -> None:
    """The way from the tapes to the agent starts where they really are."""
    (tmp_path / "far/away").mkdir(parents=True)
    (shell.folder / "tapes").symlink_to(tmp_path / "far/away")
    shell.write("other.py", PLAIN_AGENT)
    assert shell.tracefork("ci", "record", "other.py").exit == 0
    assert shell.tracefork("ci", "check").exit == 0
    assert shell.tracefork("ci", "check", str(tmp_path / "far/away")).exit == 0
