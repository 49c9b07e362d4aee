"""With `--boundary`, `record` and `replay` report draws that are not on the tape."""

from __future__ import annotations

import pytest

from .conftest import PLAIN_AGENT, Shell

LEAKY = PLAIN_AGENT + "import ssl\nssl.RAND_bytes(4)\nprint('drawn')\n"
LEAK = "agent.py:9: ssl.RAND_bytes() draws in native code, which is not on the tape."


@pytest.fixture
def leaky(shell: Shell) -> Shell:
    """Return a shell with an agent that draws in native code."""
    shell.write("agent.py", LEAKY)
    return shell


def test_warn_reports_a_draw_at_once_and_in_the_summary(leaky: Shell) -> None:
    """The warning has its line of code, and the agent continues."""
    done = leaky.tracefork("record", "--boundary", "warn", "agent.py")
    assert done.exit == 0
    assert "agent.py:9: BoundaryWarning: ssl.RAND_bytes() draws in native code" in done.err
    assert LEAK in done.err
    assert "drawn" in done.out


def test_raise_stops_the_agent_with_exit_code_7(leaky: Shell) -> None:
    """The agent does not get past the line."""
    done = leaky.tracefork("record", "--boundary", "raise", "agent.py")
    assert done.exit == 7
    assert f"✗ {LEAK}" in done.err
    assert "drawn" not in done.out
    found = leaky.tracefork("record", "--json", "--boundary", "raise", "agent.py").document
    assert (found["result"], found["error"]["kind"]) == ("boundary", "BoundaryError")


def test_note_lists_the_draws_in_the_documents(leaky: Shell) -> None:
    """No warning is printed while the agent runs."""
    recorded = leaky.tracefork("record", "--json", "--boundary", "note", "agent.py")
    replayed = leaky.tracefork("replay", "--json", "--boundary", "note", "agent.tape", "agent.py")
    for done in (recorded, replayed):
        (leak,) = done.document["leaks"]
        assert leak.startswith(LEAK)
        assert "BoundaryWarning" not in done.err


def test_without_the_option_no_draw_is_reported(leaky: Shell) -> None:
    """The control. An unknown value is refused."""
    done = leaky.tracefork("record", "--json", "agent.py")
    assert (done.exit, done.document["leaks"]) == (0, [])
    wrong = leaky.tracefork("record", "--boundary", "loud", "agent.py")
    assert (wrong.exit, "'loud'" in wrong.err) == (2, True)
