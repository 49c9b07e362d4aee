"""`tracefork import` writes a tape for a file, and for each file in a folder."""

from __future__ import annotations

import json
from typing import Any

from .conftest import Shell

CALL: dict[str, Any] = {
    "request": {"method": "GET", "uri": "http://example.test/a", "headers": {}, "body": None},
    "response": {
        "status": {"code": 200, "message": "OK"},
        "headers": {"Content-Length": ["5"]},
        "body": {"string": "hello"},
    },
}


def cassette(length: str = "5") -> str:
    """Return a cassette with one call, whose response has this recorded length."""
    response = CALL["response"] | {"headers": {"Content-Length": [length]}}
    return json.dumps({"interactions": [CALL | {"response": response}], "version": 1})


def test_a_file_becomes_a_tape_that_can_be_shown(shell: Shell) -> None:
    """The first lines say what it was, and how much of it is there."""
    shell.write("old.json", cassette())
    done = shell.tracefork("import", "old.json", "-o", "new")
    assert done.exit == 0
    assert done.out.splitlines() == [
        "✓ imported new.tape · VCR cassette · 1 exchange",
        "  replayable (bodies proven)",
        "  next: tracefork show new.tape",
    ]
    assert "http://example.test/a" in shell.tracefork("show", "new.tape", "0").out


def test_the_document_says_what_is_missing(shell: Shell) -> None:
    """And has the digest of the tape."""
    shell.write("old.json", cassette("9"))
    document = shell.tracefork("import", "old.json", "-o", "new.tape", "--json").document
    assert document["grade"] == "unproven"
    assert len(document["missing"]) == 1
    assert document["digest"] == shell.tracefork("show", "new.tape", "--json").document["digest"]


AGENT = """
import httpx2

with httpx2.Client(verify=False) as http:
    print(http.get("http://example.test/a").text)
"""


def test_an_agent_replays_against_an_imported_tape(shell: Shell) -> None:
    """The verdict says what was not proven, and claims no captured connection."""
    shell.write("old.json", cassette())
    shell.write("ask.py", AGENT)
    shell.tracefork("import", "old.json", "-o", "new.tape")
    replayed = shell.tracefork("replay", "new.tape", "ask.py")
    assert replayed.exit == 0
    assert replayed.out == "hello\n"
    assert "replayed 1 of 1 exchange alike" in replayed.err
    assert (
        "not proven, as this was imported: the order of requests, request headers" in replayed.err
    )
    verified = shell.tracefork("verify", "new.tape", "ask.py")
    assert "1 of 1 replay proven" in verified.out
    origin = "imported from old.json (VCR cassette): replayable (bodies proven)"
    assert origin in verified.out
    assert "captured" not in verified.out


def test_a_tape_of_a_grade_that_does_not_replay_is_refused(shell: Shell) -> None:
    """By every command that would answer from it."""
    without = CALL | {"response": CALL["response"] | {"body": None}}
    shell.write("old.json", json.dumps({"interactions": [without]}))
    shell.write("ask.py", AGENT)
    shell.tracefork("import", "old.json", "-o", "new.tape")
    for command in ("replay", "fork --at 0", "blame --oracle exit"):
        verb, *words = command.split()
        done = shell.tracefork(verb, *words, "new.tape", "ask.py")
        assert done.exit == 3, done.err
        assert "grade is `structure`" in done.err


def test_reports_and_documents_say_the_grade(shell: Shell) -> None:
    """An import must not pass for a recording."""
    shell.write("old.json", cassette("9"))
    shell.tracefork("import", "old.json", "-o", "new.tape")
    shown = shell.tracefork("show", "new.tape", "--json").document
    assert shown["imported"]["grade"] == "unproven"
    assert shown["imported"]["lower"] == {"unproven": [0]}
    assert "replayable without proof of the request" in shell.tracefork("show", "new.tape").out
    assert shell.tracefork("show", "new.tape", "0", "--json").document["grade"] == "unproven"
    assert "imported     replayable without proof" in shell.tracefork("show", "new.tape", "0").out
    checked = shell.tracefork("verify", "--integrity", "new.tape")
    assert checked.exit == 0
    assert "imported from old.json (VCR cassette)" in checked.out
    assert shell.tracefork("diff", "new.tape", "new.tape").exit == 0
    page = shell.folder / "new.html"
    shell.tracefork("report", "new.tape", "-o", str(page))
    assert "imported from old.json" in page.read_text()


def test_a_tape_is_never_overwritten(shell: Shell) -> None:
    """Neither is any other file."""
    shell.write("old.json", cassette())
    kept = shell.write("new.tape", "mine")
    assert shell.tracefork("import", "old.json", "-o", "new.tape").exit == 2
    assert kept.read_text() == "mine"


def test_each_file_of_a_folder_becomes_a_tape(shell: Shell) -> None:
    """A file that cannot be read is a line, and hides no other."""
    shell.write("old/a.json", cassette())
    shell.write("old/b/c.json", cassette("9"))
    shell.write("old/b/d.json", "{")
    shell.write("old/README.md", "no recording")
    done = shell.tracefork("import", "old", "-o", "new")
    assert done.exit == 2
    assert [line for line in done.out.splitlines() if " of 3" in line] == [
        "VCR cassette  replayable (bodies proven)               1 of 3",
        "VCR cassette  replayable without proof of the request  1 of 3",
        "              not imported                             1 of 3",
    ]
    assert "! b/d.json: " in done.out
    tapes = sorted(str(path.relative_to(shell.folder)) for path in shell.folder.rglob("*.tape"))
    assert tapes == ["new/a.tape", "new/b/c.tape"]


def test_two_files_of_one_stem_become_two_tapes(shell: Shell) -> None:
    """The second keeps its suffix."""
    shell.write("old/a.json", cassette())
    shell.write("old/a.yaml", cassette("9"))
    files = shell.tracefork("import", "old", "-o", "new", "--json").document["files"]
    assert [file["grade"] for file in files] == ["proven", "unproven"]
    assert (shell.folder / "new" / "a.yaml.tape").is_file()


def test_without_a_source_it_says_what_to_name(shell: Shell) -> None:
    """One of both, and a name for the tape."""
    assert shell.tracefork("import", "-o", "new.tape").exit == 2
    assert "-o new.tape" in shell.tracefork("import", "old.json").err
