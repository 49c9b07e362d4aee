"""The guide works as written."""

from __future__ import annotations

from pathlib import Path

import pytest
from adapters.desks import IS_NIGHT
from docs.pages import follow


@pytest.mark.many_processes
def test_the_guide_works_as_written(tmp_path: Path) -> None:
    """The agents are recorded, shown, replayed and forked, each in a process of its own.

    At night they are blamed, too, until the verdict is proven.
    """
    typed = follow("docs/how-to/debug-a-pydantic-ai-agent.md", tmp_path, whole=IS_NIGHT)
    (shown,) = (printed for command, printed in typed if " show " in command)
    assert "ask_clerk ▸ clerk ▸" in shown
