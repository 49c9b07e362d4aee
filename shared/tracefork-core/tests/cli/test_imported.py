"""What is shown of a run that was imported says no more than its file does."""

from __future__ import annotations

import json

import pytest

from .conftest import Shell
from .pages import Read

LOG = {
    "question": "How many?",
    "history": [
        {"role": "human", "content": "How many?"},
        {"role": "Orchestrator (thought)", "content": "Let me see."},
        {"role": "user", "name": "Verification_Expert", "content": "Three."},
        {"role": "Orchestrator (thought)", "content": "So it is three."},
    ],
    "mistake_agent": "Verification_Expert",
    "mistake_step": "2",
    "mistake_reason": "It is four.",
}
SPAN = {
    "traceId": "0" * 31 + "1",
    "spanId": "0" * 15 + "1",
    "name": "chat m",
    "startTimeUnixNano": "1700000000000000000",
    "endTimeUnixNano": "1700000001000000000",
    "attributes": [
        {"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}},
        {"key": "gen_ai.request.model", "value": {"stringValue": "m"}},
    ],
}
TRACE = {"resourceSpans": [{"scopeSpans": [{"spans": [SPAN]}]}]}


@pytest.fixture
def imported(shell: Shell) -> Shell:
    """Return a shell in a folder with an imported log and an imported trace."""
    for name, document in (("log", LOG), ("trace", TRACE)):
        shell.write(f"{name}.json", json.dumps(document))
        assert shell.tracefork("import", f"{name}.json", "-o", f"{name}.tape").exit == 0
    return shell


def test_what_people_blamed_is_shown(imported: Shell) -> None:
    """In the terminal, in the document, and as the finding of the page."""
    shown = imported.tracefork("show", "log.tape")
    blamed = "people blamed exchange 2 (Verification_Expert): It is four."
    assert blamed in shown.out
    assert "the agent ended with failed" in shown.out
    document = imported.tracefork("show", "log.tape", "--json").document
    assert document["imported"]["blamed"] == {
        "exchange": 2,
        "agent": "Verification_Expert",
        "reason": "It is four.",
    }
    done = imported.tracefork("report", "log.tape")
    assert "People blamed exchange 2 (Verification_Expert)." in done.out
    finding = Read(imported.folder / "log.html").report["runs"][0]["finding"]
    assert (finding["sure"], finding["exchanges"]) == ("not enough evidence", [2])


def test_an_end_that_the_file_does_not_tell_is_not_known(imported: Shell) -> None:
    """It is neither good nor bad: not in the terminal, nor on the page."""
    shown = imported.tracefork("show", "trace.tape")
    assert "structure" in shown.out
    assert "the agent ended with" not in shown.out
    done = imported.tracefork("report", "trace.tape")
    assert "How the run ended is not known." in done.out
    outcome = Read(imported.folder / "trace.html").report["runs"][0]["outcome"]
    assert outcome == {"ok": None, "words": "how it ended is not known"}


def test_a_page_without_content_does_not_say_why_people_blamed(imported: Shell) -> None:
    """The exchange is structure, the reason and the agent's name are content."""
    done = imported.tracefork("report", "log.tape", "--no-content")
    assert "People blamed exchange 2." in done.out
    assert "It is four" not in (imported.folder / "log.html").read_text()


@pytest.mark.parametrize("words", [["replay"], ["rerun"], ["fork", "--at", "1", "--text", "x"]])
def test_what_has_no_bytes_does_not_run(imported: Shell, words: list[str]) -> None:
    """It says what was imported, its grade, and what shows it."""
    imported.write("agent.py", "print('nothing')\n")
    command, *options = words
    done = imported.tracefork(command, "log.tape", "agent.py", *options)
    assert done.exit == 3
    assert "was imported from a Who&When log, and its grade is `structure and content`" in done.err
    assert "`tracefork show" in done.err


def test_a_long_name_of_an_agent_has_a_line_of_its_own(imported: Shell) -> None:
    """It does not run into what the agent said."""
    lines = imported.tracefork("show", "log.tape", "3").out.splitlines()
    at = lines.index("  Verification_Expert")
    assert lines[at + 1].strip() == "Three."
