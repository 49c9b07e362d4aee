"""The guide works as written."""

from __future__ import annotations

from pathlib import Path

import pytest
from docs.pages import follow


@pytest.mark.many_processes
def test_the_guide_works_as_written(tmp_path: Path) -> None:
    """The desk is recorded, shown, replayed and forked at an agent, each in its own process."""
    typed = follow("docs/how-to/which-agent-gave-the-wrong-handoff.md", tmp_path)
    (shown,) = (printed for command, printed in typed if " show " in command)
    assert "Triage ▸ turn 1 ▸ Shipping" in shown
