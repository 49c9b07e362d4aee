"""The mode of a tape is shown, and determines what can be done with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Shell

PASSPHRASE = {"TRACEFORK_PASSPHRASE": "correct horse battery staple"}


def test_a_metadata_tape_is_shown_and_not_replayed(taped: Shell) -> None:
    """It has no bodies to answer with."""
    done = taped.tracefork("record", "-o", "m.tape", "--mode", "metadata", "agent.py")
    assert "· metadata\n" in done.err
    assert "next: tracefork show m.tape" in done.err
    assert "metadata" in taped.tracefork("ls").out
    page = taped.tracefork("show", "m.tape", "0")
    assert "bodies: hashes only (mode metadata)" in page.out
    kept = taped.tracefork("record", "-o", "kept.tape", "agent.py")
    assert kept.exit == 0
    assert "one" in taped.tracefork("show", "kept.tape", "0").out, "the control"
    assert "one" not in page.out
    body = taped.tracefork("show", "m.tape", "0", "--raw")
    assert (body.exit, "m.tape" in body.err, "metadata" in body.err) == (5, True, True), body.err
    replayed = taped.tracefork("replay", "m.tape")
    assert (replayed.exit, "nothing to answer with" in replayed.err) == (3, True)
    assert taped.tracefork("verify", "--integrity", "m.tape").exit == 0


def test_a_sealed_tape_is_listed_without_its_key_and_replays_with_it(taped: Shell) -> None:
    """Without the key, each command names what is missing."""
    done = taped.tracefork("record", "-o", "s.tape", "--mode", "sealed", "agent.py", **PASSPHRASE)
    assert done.exit == 0
    assert "· sealed\n" in done.err
    (line,) = [one for one in taped.tracefork("ls").out.splitlines() if one.startswith("s.tape")]
    assert line.split()[2:3] == ["2"], "its structure shows: two exchanges"
    for words in (["show", "s.tape"], ["replay", "s.tape"], ["pack", "s.tape"]):
        refused = taped.tracefork(*words)
        assert (refused.exit, "TRACEFORK_IDENTITY" in refused.err) == (5, True), words
    checked = taped.tracefork("verify", "--integrity", "s.tape")
    assert (checked.exit, "sealed: " in checked.out) == (0, True)
    assert taped.tracefork("replay", "s.tape", **PASSPHRASE).exit == 0
    assert "2 exchanges" in taped.tracefork("show", "s.tape", **PASSPHRASE).out


@pytest.mark.parametrize(
    ("words", "fact"),
    [
        (["--mode", "sealed"], "TRACEFORK_PASSPHRASE"),
        (["--mode", "sealed", "--to", "bob"], "age1"),
        (["--to", "age1x"], "sealed"),
    ],
)
def test_sealing_without_a_valid_recipient_is_refused(
    taped: Shell, words: list[str], fact: str
) -> None:
    """Nothing is recorded, and the agent does not run."""
    done = taped.tracefork("record", "-o", "s.tape", *words, "agent.py")
    assert (done.exit, fact in done.err) == (2, True), done.err
    assert done.out == ""
    assert not Path(taped.folder, "s.tape").exists()
