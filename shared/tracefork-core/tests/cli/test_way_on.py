"""What a command prints as the next one runs as printed, and an error is said once."""

from __future__ import annotations

import os
import pty
import shlex
import subprocess
import sys

import pytest

from tracefork_core.cli.fork_options import WriteOptions

from .conftest import OPENAI_AGENT, PLAIN_AGENT, Shell

pytestmark = pytest.mark.many_processes


def following(text: str) -> list[str]:
    """Return the words of the command that an output names last, without `tracefork`."""
    command = text.rpartition("next: ")[2].splitlines()[0]
    program, *words = shlex.split(command)
    assert program == "tracefork"
    return words


def test_an_agent_that_fails_before_its_first_call_is_recorded_again(shell: Shell) -> None:
    """There is nothing to replay. The next command replaces the empty tape, and names the tool."""
    shell.write("agent.py", f"import a_missing_module\n\ndef find():\n    pass\n\n{OPENAI_AGENT}")
    done = shell.tracefork("record", "--tool=agent:find=read", "agent.py")
    assert done.exit == 1
    assert "! the agent ended with ModuleNotFoundError before its first call" in done.err
    assert "next:" not in shell.tracefork("show", "agent.tape").out
    assert "next:" not in shell.tracefork("show", "agent.tape", "--transcript").out
    shell.edit("agent.py", "import a_missing_module\n", "")
    again = shell.tracefork(*following(done.err))
    assert (again.exit, "--tool=agent:find=read" in following(done.err)) == (0, True), again.err
    assert shell.tracefork(*following(again.err)).exit == 0


def test_a_divergence_is_said_once(shell: Shell) -> None:
    """The SDK raises it as its own error, with 30 lines of its frames and the card's words."""
    shell.write("agent.py", OPENAI_AGENT)
    assert shell.tracefork("record", "agent.py").exit == 0
    shell.edit("agent.py", "Be brief.", "Be kind.")
    done = shell.tracefork("replay", "agent.tape", "agent.py")
    assert done.exit == 1
    assert done.err.startswith("✗ diverged after 0 of 1 exchange · agent.py:9\n")
    assert done.err.count("Be kind.") == 1
    shell.edit("agent.py", "client = ", "raise KeyError('mine')\nclient = ")
    own = shell.tracefork("replay", "agent.tape", "agent.py")
    assert "KeyError: 'mine'" in own.err  # The agent's own error keeps its traceback.


def test_a_recording_that_was_interrupted_replays_up_to_there(shell: Shell) -> None:
    """The agent would go on where it was interrupted. That is no difference; a rerun goes on."""
    shell.write("stopped.py", PLAIN_AGENT + "raise KeyboardInterrupt\n")
    done = shell.tracefork("record", "-o", "agent.tape", "stopped.py")
    assert (done.exit, "interrupted by Ctrl-C; a replay goes up to here" in done.err) == (130, True)
    shell.write("stopped.py", PLAIN_AGENT.replace('"two"', '"two", "three"'))
    again = shell.tracefork(*following(done.err))
    assert again.exit == 3, again.err
    assert "interrupted by Ctrl-C after 2 exchanges, and POST" in again.err
    assert "diverged" not in again.err
    shell.write("stopped.py", PLAIN_AGENT.replace('"two"', '"twice"'))
    assert shell.tracefork(*following(done.err)).exit == 1  # Another request is a difference.
    shell.write("stopped.py", PLAIN_AGENT.replace('"two"', '"two", "three"'))
    rerun = shell.tracefork("rerun", "agent.tape", "--yes", "--allow-writes")
    assert (rerun.exit, "2 reused · 1 asked" in rerun.err) == (0, True), rerun.err


def test_what_offline_showed_is_asked_by_the_next_command(shell: Shell) -> None:
    """It repeats what was typed, and stops at nothing."""
    shell.write("agent.py", OPENAI_AGENT)
    assert shell.tracefork("record", "agent.py").exit == 0
    shell.edit("agent.py", "Be brief.", "Be kind.")
    shown = shell.tracefork("rerun", "agent.tape", "--offline", "agent.py")
    assert following(shown.err) == ["rerun", "agent.tape", "agent.py", "--yes"]
    done = shell.tracefork(*following(shown.err))
    assert (done.exit, "1 asked" in done.err) == (0, True), done.err
    assert WriteOptions(stub_writes=True, reads=["a b"]).words == " --stub-writes --reads 'a b'"


def test_errors_name_the_whole_command(shell: Shell) -> None:
    """A fork point outside of the run is refused before anything is asked."""
    shell.write("agent.py", OPENAI_AGENT)
    assert shell.tracefork("record", "agent.py").exit == 0
    done = shell.tracefork("verify", "agent.tape", TRACEFORK_HOME=str(shell.folder))
    assert "tracefork verify agent.tape SCRIPT.py [-- ARGS]" in done.err
    for command in ("fork", "try"):
        outside = shell.tracefork(command, "agent.tape", "--at=7")
        assert outside.exit == 2
        assert f"tracefork show {shell.folder}/agent.tape" in outside.err


def test_a_note_on_a_terminal_breaks_between_words(shell: Shell) -> None:
    """A pipe gets one line, to search in."""
    shell.write("agent.py", "print(1)\n")
    piped = shell.tracefork("record", "agent.py").err
    assert "the agent made no call. A replay of this proves nothing\n" in piped
    controller, terminal = pty.openpty()
    done = subprocess.Popen(
        [sys.executable, "-m", "tracefork_core.cli.main", "record", "agent.py"],
        cwd=shell.folder,
        env=shell.full_environment(COLUMNS="60", NO_COLOR="1"),
        stdout=subprocess.DEVNULL,
        stderr=terminal,
    )
    assert done.wait(60) == 0
    os.close(terminal)
    lines = os.read(controller, 65536).decode().splitlines()
    os.close(controller)
    place = next(i for i, line in enumerate(lines) if line.startswith("  ! nothing"))
    assert lines[place].rstrip() == "  ! nothing was captured: the agent made no call. A replay"
    assert lines[place + 1].rstrip() == "    of this proves nothing"
