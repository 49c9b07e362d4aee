"""Mistakes of replays: another prompt, another model, a new tool, less, more, another agent."""

from __future__ import annotations

import pytest

from .conftest import Errs

FAILS = "raise KeyError('order')\n"


@pytest.mark.parametrize(
    ("name", "before", "now"),
    [
        ("a-changed-prompt", "Be brief", "Be kind"),
        ("a-model-swap", "gpt-5-mini", "gpt-6"),
        ("a-new-tool", '"messages"', '"tools": [{"type": "function"}], "messages"'),
        ("streaming-switched-on", '"messages"', '"stream": True, "messages"'),
    ],
)
def test_another_question(errs: Errs, name: str, before: str, now: str) -> None:
    """The card has the place that differs, both values, and the commands that go on from there."""
    errs.shell.edit("support.py", before, now)
    assert errs.runs(name, "replay", "support.tape", "support.py").exit == 1


@pytest.mark.parametrize(
    ("name", "words"),
    {
        "another-agent": "support.py",
        "a-question-less": "agent.py -- one",
        "a-question-more": "agent.py -- one two three",
        "another-word": "agent.py -- one three",
    }.items(),
)
def test_another_run(errs: Errs, name: str, words: str) -> None:
    """What the agent asks otherwise, more or less than when it was recorded."""
    assert errs.runs(name, "replay", "agent.tape", *words.split()).exit == 1


def test_an_agent_that_fails_at_replay(errs: Errs) -> None:
    """Its own traceback, and one line of ours; an agent that failed before has to fail again."""
    errs.shell.write("fails.py", FAILS)
    assert errs.runs("fails-at-replay", "replay", "agent.tape", "fails.py").exit == 3
    errs.shell.tracefork("record", "fails.py")
    errs.shell.write("fails.py", "print('mended')\n")
    assert errs.runs("fails-no-more", "replay", "fails.tape").exit == 1


def test_a_recording_that_was_cut_off(errs: Errs) -> None:
    """It replays to its end; who asks for more is told that there is no more."""
    killed = "import os, signal\n" + (errs.folder / "agent.py").read_text()
    errs.shell.write("killed.py", killed + "os.kill(os.getpid(), signal.SIGKILL)\n")
    errs.shell.tracefork("record", "killed.py")
    words = ["replay", "killed.tape", "agent.py", "--", "one", "two", "three"]
    assert errs.runs("cut-off", *words).exit == 3


@pytest.mark.parametrize("command", ["fork", "try"])
def test_a_fork_of_another_agent(errs: Errs, command: str) -> None:
    """What was never forked leaves no branch; what it shows is the same card."""
    errs.shell.edit("support.py", "Be brief", "Be kind")
    words = [command, "support.tape", "support.py", "--at=1" if command == "fork" else "--at=0"]
    assert errs.runs(f"{command}-of-another-agent", *words).exit == 1
    assert {path.name for path in errs.folder.glob("*.tape*")} == {"agent.tape", "support.tape"}


@pytest.mark.parametrize("words", [["fork", "--allow-writes"], ["try"]])
def test_a_fork_of_an_agent_that_fails_by_itself(errs: Errs, words: list[str]) -> None:
    """Its own exception is shown: the card would blame it for what it did not come to ask."""
    text = (errs.folder / "agent.py").read_text()
    errs.shell.write("agent.py", text.replace("    print(", "    len(3)\n    print("))
    command, *options = words
    words = [command, "agent.tape", "agent.py", "--at=1", *options]
    assert errs.runs(f"a-{command}-of-an-agent-that-fails", *words).exit == 1
    assert {path.name for path in errs.folder.glob("*.tape")} == {"agent.tape", "support.tape"}


def test_a_fork_that_would_write(errs: Errs) -> None:
    """It stops before it changes the world a second time, and says how that is allowed."""
    words = ["fork", "agent.tape", "agent.py", "--at=0"]
    assert errs.runs("a-fork-that-writes", *words).exit == 4
