"""What an agent reads from standard input is replayed without a terminal and without a pipe."""

from __future__ import annotations

import os
import pty
import subprocess
import sys

import pytest

from .conftest import Shell

ASKING = """\
import os
import sys

import httpx2

word = input("word? ")
while word:
    print(httpx2.post(os.environ["PROVIDER"] + "/echo", content=word.encode()).text)
    word = sys.stdin.readline().strip()
"""
MAIN = [sys.executable, "-m", "tracefork_core.cli.main"]


def piped(shell: Shell, text: bytes, *words: str) -> tuple[int, bytes]:
    """Run a command with a text piped into it; return its exit code and output."""
    done = subprocess.run(
        [*MAIN, *words],
        cwd=shell.folder,
        env=shell.full_environment(),
        input=text,
        capture_output=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def typed(shell: Shell, text: bytes, *words: str) -> tuple[int, bytes]:
    """Run a command on a terminal where somebody types; return its exit code and output."""
    ours, theirs = pty.openpty()
    os.write(ours, text)
    process = subprocess.Popen(
        [*MAIN, *words],
        cwd=shell.folder,
        env=shell.full_environment(),
        stdin=theirs,
        stdout=theirs,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    os.close(theirs)
    _, err = process.communicate()
    out = b""
    try:
        while data := os.read(ours, 4096):
            out += data
    except OSError:
        pass  # The other end is closed: there is no more.
    os.close(ours)
    return process.returncode, out + err


@pytest.fixture
def asked(shell: Shell) -> Shell:
    """Return a shell with a tape of an agent that got two words through a pipe."""
    shell.write("agent.py", ASKING)
    code, out = piped(shell, b"ann\nbob\n", "record", "agent.py")
    assert code == 0, out
    return shell


def test_a_piped_input_replays_and_verifies_without_a_pipe(asked: Shell) -> None:
    """The output is the same, the prompt too."""
    replayed = asked.tracefork("replay", "agent.tape", "agent.py")
    assert (replayed.exit, replayed.out) == (0, "word? ann\nbob\n")
    verified = asked.tracefork("verify", "--json", "agent.tape", "agent.py")
    assert (verified.exit, verified.document["same"]) == (0, 1)


def test_a_replay_says_that_the_agent_asked_more_often(shell: Shell) -> None:
    """Below its verdict, with the line."""
    shell.write("agent.py", ASKING.partition("while")[0] + "print(word)\n")
    assert piped(shell, b"ann\nbob\n", "record", "agent.py")[0] == 0
    shell.edit("agent.py", "print(word)", "print(word + sys.stdin.readline())")
    done = shell.tracefork("replay", "--json", "agent.tape", "agent.py")
    (difference,) = done.document["differences"]
    assert "agent.py:7: the tape holds no more" in difference


def test_a_terminal_is_asked_while_recording_and_past_a_fork_point_alone(shell: Shell) -> None:
    """A fork without one reads on from the tape."""
    shell.write("agent.py", ASKING.replace("sys.stdin.readline().strip()", "input('next? ')"))
    code, out = typed(shell, b"ann\nbob\n\n", "record", "agent.py")
    assert code == 0, out
    fork = ("fork", "agent.tape", "agent.py", "--at", "0", "--text", "hello", "--allow-writes")
    code, out = typed(shell, b"carl\n\n", *fork, "-o", "live.tape")
    assert code == 0, out
    assert b"carl" in out.partition(b"hello")[2]
    assert b"bob" not in out
    without = shell.tracefork(*fork, "-o", "alone.tape")
    assert (without.exit, without.out.split()[-1]) == (0, "next?")
    assert "bob" in without.out
    for tape, word in (("live.tape", "carl"), ("alone.tape", "bob")):
        replayed = shell.tracefork("replay", tape, "agent.py")
        assert (replayed.exit, word in replayed.out) == (0, True)


def test_calibrate_gives_the_first_runs_input_to_the_other_runs(shell: Shell) -> None:
    """An agent that got none would make no request, and be found repeatable for that."""
    shell.write("agent.py", ASKING)
    code, out = piped(shell, b"ann\nbob\n", "calibrate", "agent.py")
    assert code == 0, out
    assert b"equal in 2 exchanges" in out
