"""The guide from its first line to its last, blame included."""

from __future__ import annotations

from pathlib import Path

import pytest

from ..test_how_to import follow_in


def test_the_guide_blames_the_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The task that was made to fail is named on the command line, and from Python."""
    printed = follow_in(tmp_path, monkeypatch, blame=True)
    assert "write" in next(text for text in printed if "doomed" in text)
