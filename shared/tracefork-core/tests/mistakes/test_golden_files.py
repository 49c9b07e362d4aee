"""What golden files are worth: one other word is noticed, and nothing is written unasked."""

from __future__ import annotations

from pathlib import Path

import pytest

import tracefork_core as tracefork
from tracefork_testkit.golden import hold_to, refused


def test_one_other_word_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is compared to the byte; a file that is not there is no agreement either."""
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


def test_what_is_not_refused_is_no_mistake(tmp_path: Path) -> None:
    """What passes fails the test of it; what is refused is told with its class."""

    def harmless(here: Path) -> None:
        here.touch()

    def gone(here: Path) -> None:
        tracefork.Tape.open(here / "gone.tape")

    with pytest.raises(pytest.fail.Exception):
        refused(harmless, tmp_path)
    assert refused(gone, tmp_path).startswith("gone\nUsageError: tracefork: HERE/gone.tape ")
