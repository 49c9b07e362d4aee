"""Changes in what the agent reads from its surroundings are reported."""

from __future__ import annotations

import json

import pytest

from tracefork_core import Tape

from .conftest import OPENAI_AGENT, PLAIN_AGENT, Shell

READING = f"""\
import os
model = os.environ.get("MODEL", "none")
key = os.getenv("MY_API_KEY")
{PLAIN_AGENT}"""
SENDING = READING.replace("content=word.encode()", "content=model.encode()")
SAID = "MODEL was 'gpt-4o' when this was recorded and is 'gpt-5' now (agent.py:2)"


@pytest.fixture
def reading(shell: Shell) -> Shell:
    """Return a shell with a tape of an agent that reads a variable and does not send it."""
    shell.write("agent.py", READING)
    assert (
        shell.tracefork("record", "agent.py", MODEL="gpt-4o", MY_API_KEY="sk-x-1234567").exit == 0
    )
    return shell


def joined(text: str) -> str:
    """Return printed text as one line."""
    return " ".join(text.split())


def test_a_difference_is_reported_once_after_a_proven_replay(reading: Shell) -> None:
    """There is no Python warning."""
    done = reading.tracefork("replay", "agent.tape", "agent.py", MODEL="gpt-5")
    assert done.exit == 0
    assert f"! {SAID}" in joined(done.err)
    assert done.err.count("MODEL was") == 1
    assert "Warning" not in done.err
    found = reading.tracefork("replay", "--json", "agent.tape", "agent.py", MODEL="gpt-5").document
    assert (found["exit"], found["differences"]) == (0, [SAID])
    verified = reading.tracefork("verify", "agent.tape", "agent.py", MODEL="gpt-5")
    assert (verified.exit, f"! {SAID}" in joined(verified.out)) == (0, True)


def test_equal_surroundings_report_nothing(reading: Shell) -> None:
    """The control: the key and variables that the agent does not read may differ."""
    same = {"MODEL": "gpt-4o", "SHLVL": "7", "COLUMNS": "80", "LS_COLORS": "none"}
    done = reading.tracefork("replay", "--json", "agent.tape", "agent.py", **same)
    assert (done.exit, done.document["differences"]) == (0, [])
    assert "!" not in reading.tracefork("replay", "agent.tape", "agent.py", **same).err


def test_the_command_line_replays_without_the_key(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control: without the key, the SDK refuses to start in a recording."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    shell.write("agent.py", OPENAI_AGENT.replace(', api_key="sk-none"', ""))
    refused = shell.tracefork("record", "-o", "refused.tape", "agent.py")
    assert (refused.exit, "OPENAI_API_KEY" in refused.err) == (1, True)
    done = shell.tracefork("record", "-o", "key.tape", "agent.py", OPENAI_API_KEY="sk-x-1234567")
    assert done.exit == 0, done.err
    for command in ("replay", "verify"):
        done = shell.tracefork(command, "--json", "key.tape", "agent.py")
        assert (done.exit, done.document["exchanges"]) == (0, 1), done.err


def test_warnings_made_errors_do_not_fail_a_replay(reading: Shell) -> None:
    """`-W error` does not change the result of the command."""
    words = ["-W", "error", "-m", "tracefork_core.cli.main", "replay", "agent.tape", "agent.py"]
    done = reading.python(*words, MODEL="gpt-5")
    assert done.exit == 0, done.err
    assert f"! {SAID}" in joined(done.err)


def test_the_card_names_a_changed_variable_as_a_likely_cause(shell: Shell) -> None:
    """The variable is in the request; in JSON it is a hint."""
    shell.write("agent.py", SENDING)
    shell.tracefork("record", "agent.py", MODEL="gpt-4o")
    done = shell.tracefork("replay", "agent.tape", "agent.py", MODEL="gpt-5")
    assert done.exit == 1
    assert f"─ {SAID}" in joined(done.err)
    found = shell.tracefork("replay", "--json", "agent.tape", "agent.py", MODEL="gpt-5").document
    assert found["divergence"]["hints"] == [SAID]


def test_escapes_in_a_variable_are_spelled_out(shell: Shell, reading: Shell) -> None:
    """Its value must not drive the terminal."""
    done = reading.tracefork("replay", "agent.tape", "agent.py", MODEL="\x1b[2Jgone")
    assert "\x1b" not in done.err
    assert r"\x1b[2Jgone" in joined(done.err)


def test_redact_replaces_the_value_of_a_variable(reading: Shell) -> None:
    """Its name remains."""
    done = reading.tracefork("redact", "--mask", "re:gpt-4o", "agent.tape")
    assert done.exit == 0, done.err
    assert reading.tracefork("scan", "--mask", "re:gpt-4o", "agent.tape").exit == 1
    assert reading.tracefork("scan", "--mask", "re:gpt-4o", "agent-redacted.tape").exit == 0
    with Tape.open(reading.folder / "agent-redacted.tape") as tape:
        (model,) = (seen for seen in tape.surroundings if seen.name == "MODEL")
    assert model.value == "tracefork-secret-PATTERN_1"


def test_no_entropy_does_not_record_randomness(shell: Shell) -> None:
    """A random prompt diverges, and the card says why. Control: without the option it replays."""
    shell.write("agent.py", PLAIN_AGENT.replace("word.encode()", "uuid.uuid4().hex.encode()"))
    shell.edit("agent.py", "import os\n", "import os, uuid\n")
    assert shell.tracefork("record", "-o", "off.tape", "--no-entropy", "agent.py").exit == 0
    off = shell.tracefork("replay", "--json", "off.tape", "agent.py")
    assert off.exit == 1
    assert "--no-entropy" in json.dumps(off.document["divergence"])
    assert shell.tracefork("record", "-o", "on.tape", "agent.py").exit == 0
    assert shell.tracefork("replay", "on.tape", "agent.py").exit == 0
    assert shell.tracefork("replay", "--no-entropy", "on.tape", "agent.py").exit == 1
    assert shell.tracefork("verify", "--no-entropy", "on.tape", "agent.py").exit == 1
