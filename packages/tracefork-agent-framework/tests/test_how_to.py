"""The guide works as written."""

from __future__ import annotations

from pathlib import Path

import pytest
from docs.pages import follow


@pytest.mark.many_processes
def test_the_guide_works_as_written(tmp_path: Path) -> None:
    """The workflow is recorded, shown, replayed and forked, each in its own process."""
    typed = follow("docs/how-to/debug-an-agent-framework-workflow.md", tmp_path)
    (shown,) = (printed for command, printed in typed if " show " in command)
    assert "desk ▸ income ▸ find_income" in shown
