"""`--boundary`: what draws past the tape, said by `record` and `replay`."""

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


def test_a_warning_comes_as_it_happens_and_again_at_the_end(leaky: Shell) -> None:
    """warn: Python's warning with its line of code, a line of the summary, the agent's own exit."""
    done = leaky.tracefork("record", "--boundary", "warn", "agent.py")
    assert done.exit == 0
    assert "agent.py:9: BoundaryWarning: ssl.RAND_bytes() draws in native code" in done.err
    assert LEAK in done.err
    assert "drawn" in done.out


def test_an_error_ends_the_agent_with_a_code_of_its_own(leaky: Shell) -> None:
    """raise: the agent does not get past the line, and the exit code is 7."""
    done = leaky.tracefork("record", "--boundary", "raise", "agent.py")
    assert done.exit == 7
    assert f"✗ {LEAK}" in done.err
    assert "drawn" not in done.out
    found = leaky.tracefork("record", "--json", "--boundary", "raise", "agent.py").document
    assert (found["result"], found["error"]["kind"]) == ("boundary", "BoundaryError")


def test_documents_list_what_was_found(leaky: Shell) -> None:
    """note: nothing is said while the agent runs; both documents have the list."""
    recorded = leaky.tracefork("record", "--json", "--boundary", "note", "agent.py")
    replayed = leaky.tracefork("replay", "--json", "--boundary", "note", "agent.tape", "agent.py")
    for done in (recorded, replayed):
        (leak,) = done.document["leaks"]
        assert leak.startswith(LEAK)
        assert "BoundaryWarning" not in done.err


def test_without_the_option_nothing_is_said(leaky: Shell) -> None:
    """The control: guarding is asked for, never a surprise; and a mode must exist."""
    done = leaky.tracefork("record", "--json", "agent.py")
    assert (done.exit, done.document["leaks"]) == (0, [])
    wrong = leaky.tracefork("record", "--boundary", "loud", "agent.py")
    assert (wrong.exit, "'loud'" in wrong.err) == (2, True)
