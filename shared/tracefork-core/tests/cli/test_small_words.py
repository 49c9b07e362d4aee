"""Small things that a person types in the first hour, and what the command makes of them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import tracefork_core as tracefork
from tracefork_core.blaming.oracles.oracles import read_oracle

from .conftest import OPENAI_AGENT, Shell


def test_a_tape_without_a_suffix_gets_one(shell: Shell) -> None:
    """`record -o NAME` and `show NAME.tape` mean the same file."""
    shell.tracefork("record", "-o", "first", "agent.py")
    assert (shell.folder / "first.tape").is_file()
    assert not (shell.folder / "first").exists()
    assert shell.tracefork("show", "first.tape").exit == 0
    shell.tracefork("record", "-o", "first.db", "agent.py")
    assert (shell.folder / "first.db").is_file(), "a suffix of one's own is kept"


def test_last_is_the_recording_and_not_its_fork(shell: Shell) -> None:
    """`fork last` typed twice forks the recording twice."""
    shell.write("support.py", OPENAI_AGENT)
    shell.tracefork("record", "support.py")
    first = shell.tracefork("fork", "last", "--at", "0", "--text", "0=other", "--json")
    second = shell.tracefork("fork", "last", "--at", "0", "--text", "0=another", "--json")
    assert (first.exit, second.exit) == (0, 0)
    for fork in (first, second):
        with tracefork.Tape.open(fork.document["tape"]) as branch:
            assert branch.origin is not None
            assert branch.parent is not None
            assert branch.parent.origin is None, "it forks the recording itself"


def test_last_prefers_the_folder_where_it_is_typed(shell: Shell, tmp_path: Path) -> None:
    """A later recording of another project is not what a person means here."""
    shell.tracefork("record", "agent.py")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "other.py").write_text("print('other')\n")
    shell.tracefork("record", str(elsewhere / "other.py"), "-o", str(elsewhere / "other.tape"))
    shown = shell.tracefork("show", "last", "--json").document
    assert Path(shown["tape"]).name == "agent.tape"


@pytest.mark.parametrize(
    ("typed", "remedy"),
    [
        (["python", "agent.py"], "Leave python out: agent.py"),
        (["python3.12", "-m", "app.main", "x"], "Leave python3.12 out: -m app.main x"),
    ],
)
def test_python_is_not_the_agent(shell: Shell, typed: list[str], remedy: str) -> None:
    """People type the command that they know with `tracefork record` before it."""
    done = shell.tracefork("record", *typed)
    assert done.exit == 2
    assert remedy in done.err


def test_an_oracle_may_ask_for_a_text() -> None:
    """No pattern: a dot is a dot."""
    oracle = read_oracle("contains:$4.20")
    assert oracle("it costs $4.20 now") is True
    assert oracle("it costs $4920 now") is False


def test_a_tape_and_an_exchange_say_what_they_are(shell: Shell) -> None:
    """In a notebook and in a debugger an address says nothing."""
    shell.tracefork("record", "agent.py")
    with tracefork.Tape.open(shell.folder / "agent.tape") as tape:
        assert repr(tape) == f"<Tape {shell.folder / 'agent.tape'}: 2 exchanges>"
        assert repr(tape.exchanges[0]).startswith("<Exchange 0: POST http://127.0.0.1:")


def test_the_module_is_the_command() -> None:
    """For where scripts are not on the path."""
    command = [sys.executable, "-m", "tracefork_core", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("tracefork ")


def test_a_shell_completes_commands_and_options() -> None:
    """The script that bash loads asks like this."""

    def completed(words: str, place: str) -> list[str]:
        asks = {"COMP_WORDS": words, "COMP_CWORD": place, "_TRACEFORK_COMPLETE": "complete_bash"}
        command = [sys.executable, "-m", "tracefork_core"]
        done = subprocess.run(
            command, capture_output=True, text=True, check=True, env={**os.environ, **asks}
        )
        return done.stdout.split()

    assert {"record", "replay", "rerun"} <= set(completed("tracefork re", "1"))
    assert completed("tracefork replay --st", "2") == ["--strict"]


@pytest.mark.parametrize("shell_name", ["bash", "zsh", "fish"])
def test_the_script_for_a_shell_is_printed(shell: Shell, shell_name: str) -> None:
    """It goes into the shell's start file."""
    assert "_TRACEFORK_COMPLETE" in shell.tracefork("completion", shell_name).out


def test_another_shell_is_refused(shell: Shell) -> None:
    """The sentence names those that there are."""
    done = shell.tracefork("completion", "tcsh")
    assert (done.exit, "bash, zsh, fish" in done.err) == (2, True)
