"""Replays that diverge: another prompt, model, tool or agent, or fewer or more calls."""

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
def test_the_card_of_a_changed_request_shows_both_values(
    errs: Errs, name: str, before: str, now: str
) -> None:
    """It also names the place that differs, and the commands to type next."""
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
def test_a_changed_missing_or_extra_call_diverges(errs: Errs, name: str, words: str) -> None:
    """The agent makes other, fewer or more calls than it made in the recording."""
    assert errs.runs(name, "replay", "agent.tape", *words.split()).exit == 1


def test_an_agent_that_fails_only_at_replay_shows_its_traceback(errs: Errs) -> None:
    """tracefork adds one line. An agent that failed in the recording must fail again."""
    errs.shell.write("fails.py", FAILS)
    assert errs.runs("fails-at-replay", "replay", "agent.tape", "fails.py").exit == 3
    errs.shell.tracefork("record", "fails.py")
    errs.shell.write("fails.py", "print('mended')\n")
    assert errs.runs("fails-no-more", "replay", "fails.tape").exit == 1


def test_an_extra_call_past_a_cut_off_recording_is_reported_as_such(errs: Errs) -> None:
    """The tape replays up to its end. So does one whose recording Ctrl-C ended."""
    agent = "import os, signal\n" + (errs.folder / "agent.py").read_text()
    for name, by, says in (("killed", "KILL", "cut-off"), ("stopped", "INT", "interrupted")):
        errs.shell.write(f"{name}.py", f"{agent}os.kill(os.getpid(), signal.SIG{by})\n")
        errs.shell.tracefork("record", f"{name}.py")
        words = ["replay", f"{name}.tape", "agent.py", "--", "one", "two", "three"]
        assert errs.runs(says, *words).exit == 3


@pytest.mark.parametrize("command", ["fork", "try"])
def test_a_fork_that_diverges_before_its_fork_point_leaves_no_branch(
    errs: Errs, command: str
) -> None:
    """It shows the same card as a replay."""
    errs.shell.edit("support.py", "Be brief", "Be kind")
    words = [command, "support.tape", "support.py", "--at=1" if command == "fork" else "--at=0"]
    assert errs.runs(f"{command}-of-another-agent", *words).exit == 1
    assert {path.name for path in errs.folder.glob("*.tape*")} == {"agent.tape", "support.tape"}


@pytest.mark.parametrize("words", [["fork", "--allow-writes"], ["try"]])
def test_a_fork_shows_the_exception_of_a_failing_agent(errs: Errs, words: list[str]) -> None:
    """A card would blame the agent for the calls that it did not get to make."""
    text = (errs.folder / "agent.py").read_text()
    errs.shell.write("agent.py", text.replace("    print(", "    len(3)\n    print("))
    command, *options = words
    words = [command, "agent.tape", "agent.py", "--at=1", *options]
    assert errs.runs(f"a-{command}-of-an-agent-that-fails", *words).exit == 1
    assert {path.name for path in errs.folder.glob("*.tape")} == {"agent.tape", "support.tape"}


def test_a_fork_stops_before_a_side_effect_and_names_the_option(errs: Errs) -> None:
    """It does not change the world a second time unless you allow it."""
    words = ["fork", "agent.tape", "agent.py", "--at=0"]
    assert errs.runs("a-fork-that-writes", *words).exit == 4
