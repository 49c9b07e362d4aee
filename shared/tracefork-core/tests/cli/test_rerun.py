"""`tracefork rerun` runs an edited agent again, and asks before it pays."""

from __future__ import annotations

import pytest

from .conftest import Shell
from .test_fork import AGENT, ok

pytestmark = pytest.mark.many_processes


@pytest.fixture
def edited(shell: Shell) -> Shell:
    """Return a shell with a recorded agent whose second question has changed since."""
    shell.write("agent.py", AGENT)
    ok(shell.tracefork("record", "agent.py"))
    shell.write("agent.py", AGENT.replace("Who delivers it?", "Who has it?"))
    return shell


def test_an_edited_agent_pays_for_what_it_asks_anew(edited: Shell) -> None:
    """The first answer is the recorded one. The report says what was asked, and in what it differs.

    The branch replays by itself, and the recording is untouched.
    """
    before = (edited.folder / "agent.tape").read_bytes()
    done = ok(edited.tracefork("rerun", "agent.tape", "--yes"))
    assert "● rerun agent.rerun.tape · 1 reused · 2 asked" in done.err
    assert (
        "instead of exchange 1: /messages/2/content was 'Who delivers it?', is 'Who has it?'"
        in done.err
    )
    assert ok(edited.tracefork("replay", "agent.rerun.tape")).out == done.out
    assert (edited.folder / "agent.tape").read_bytes() == before
    tree = ok(edited.tracefork("tree", "agent.tape", COLUMNS="120")).out
    assert "run again" in tree


def test_an_unchanged_agent_costs_nothing(shell: Shell) -> None:
    """It needs no confirmation, because nothing is live."""
    shell.write("agent.py", AGENT)
    ok(shell.tracefork("record", "agent.py"))
    done = ok(shell.tracefork("rerun", "agent.tape", "--json"))
    found = done.document
    assert (found["reused"], found["live"], found["asked"]) == (3, 0, [])
    assert (found["not_asked_again"], found["stopped"]) == ([], None)


def test_nothing_is_asked_without_a_confirmation(edited: Shell) -> None:
    """No terminal, no --yes: it refuses and names the request. --offline shows it and ends well."""
    refused = edited.tracefork("rerun", "agent.tape")
    assert refused.exit == 2
    assert "was 'Who delivers it?', is 'Who has it?'" in refused.err
    assert "--yes" in refused.err
    offline = ok(edited.tracefork("rerun", "agent.tape", "--offline", "--json", "--overwrite"))
    assert (offline.document["reused"], offline.document["live"]) == (1, 0)
    assert "instead of exchange 1" in str(offline.document["stopped"])
    assert "Traceback" not in offline.err


def test_a_budget_ends_it(edited: Shell) -> None:
    """One live call is made, and not the second. A budget that it cannot keep is refused."""
    done = edited.tracefork("rerun", "agent.tape", "--yes", "--budget=1 call", "--json")
    assert done.exit == 3
    assert (done.document["live"], done.document["reused"]) == (1, 1)
    assert "Traceback" not in done.err
    refused = edited.tracefork("rerun", "agent.tape", "--budget=$1")
    assert refused.exit == 2
    assert "20 calls" in refused.err
