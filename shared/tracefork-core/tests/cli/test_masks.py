"""Commands report which secrets they masked, and mask more on request."""

from __future__ import annotations

import sqlite3
from contextlib import closing

from .conftest import Shell

KEY = "tk-7Jq0xWmB4c9LrYv2"


def kept(shell: Shell, name: str) -> bytes:
    path = shell.folder / name
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA quick_check").fetchone() == ("ok",)
    return path.read_bytes()


def test_record_reports_the_masked_secrets(shell: Shell) -> None:
    """It shows name and number; the value is in no file."""
    done = shell.tracefork("record", "agent.py", "--", f"use {KEY}", SERVICE_API_KEY=KEY)
    assert done.exit == 0, done.err
    assert "  secrets masked: SERVICE_API_KEY \u00d72\n" in done.err
    assert KEY in done.out
    assert KEY.encode() not in kept(shell, "agent.tape")
    again = shell.tracefork(
        "replay",
        "--json",
        "agent.tape",
        "agent.py",
        "--",
        "use other-key-9",
        SERVICE_API_KEY="other-key-9",
    )
    assert again.document["bit_exact"] is True


def test_documents_name_the_mode_and_the_secrets(shell: Shell) -> None:
    """This holds for record and verify."""
    words = ("agent.py", "--", KEY)
    done = shell.tracefork("record", "--json", *words, SERVICE_API_KEY=KEY)
    assert (done.document["mode"], done.document["secrets"]) == ("safe", {"SERVICE_API_KEY": 2})
    verified = shell.tracefork("verify", "--json", "agent.tape", *words, SERVICE_API_KEY=KEY)
    assert verified.document["secrets"] == {"SERVICE_API_KEY": 2}
    assert verified.exit == 0
    shown = shell.tracefork("verify", "agent.tape", *words, SERVICE_API_KEY=KEY)
    assert "secrets masked" in shown.out


def test_raw_masks_nothing(shell: Shell) -> None:
    """Negative control: the value is in the file, and no masked secret is reported."""
    command = ("record", "--json", "--mode", "raw", "agent.py", "--", KEY)
    done = shell.tracefork(*command, SERVICE_API_KEY=KEY)
    assert (done.document["mode"], done.document["secrets"]) == ("raw", {})
    assert KEY.encode() in kept(shell, "agent.tape")


def test_a_replay_needs_the_patterns_of_its_recording(shell: Shell) -> None:
    """The tape stores only their number."""
    mask = r"--mask=re:ID-\d+"
    assert shell.tracefork("record", mask, "agent.py", "--", "ID-12").exit == 0
    assert b"ID-12" not in kept(shell, "agent.tape")
    without = shell.tracefork("replay", "agent.tape", "agent.py", "--", "ID-13")
    assert without.exit == 2
    assert "1 pattern(s) to mask" in without.err
    assert shell.tracefork("replay", mask, "agent.tape", "agent.py", "--", "ID-13").exit == 0
    assert shell.tracefork("verify", mask, "agent.tape", "agent.py", "--", "ID-14").exit == 0


def test_an_unknown_mode_is_refused(shell: Shell) -> None:
    """The error lists the modes."""
    done = shell.tracefork("record", "--mode", "careful", "agent.py")
    assert done.exit == 2
    assert "safe, metadata, sealed, raw" in done.err
