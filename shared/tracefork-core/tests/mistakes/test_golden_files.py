"""Golden files are compared exactly, and written only on request."""

from __future__ import annotations

from pathlib import Path

import pytest

import tracefork_core as tracefork
from tracefork_testkit.golden import hold_to, refused


def test_one_changed_word_fails_the_comparison(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A missing golden file fails too."""
    monkeypatch.delenv("TRACEFORK_GOLDEN", raising=False)
    path = tmp_path / "said.txt"
    with pytest.raises(AssertionError, match="TRACEFORK_GOLDEN=write"):
        hold_to(path, "no tape\n")
    assert not path.exists()
    path.write_text("no tape\n")
    hold_to(path, "no tape\n")
    with pytest.raises(AssertionError, match=r"said\.txt"):
        hold_to(path, "no tapes\n")
    monkeypatch.setenv("TRACEFORK_GOLDEN", "write")
    hold_to(path, "no tapes\n")
    assert path.read_text() == "no tapes\n"


def test_refused_fails_if_nothing_is_raised(tmp_path: Path) -> None:
    """It returns the error with its class."""

    def harmless(here: Path) -> None:
        here.touch()

    def gone(here: Path) -> None:
        tracefork.Tape.open(here / "gone.tape")

    with pytest.raises(pytest.fail.Exception):
        refused(harmless, tmp_path)
    assert refused(gone, tmp_path).startswith("gone\nUsageError: tracefork: HERE/gone.tape ")
