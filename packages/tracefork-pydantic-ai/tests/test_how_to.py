"""The guide works as written."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from docs.pages import follow

IS_NIGHT = "TRACEFORK_EXAMPLES" in os.environ
FEWER = {} if IS_NIGHT else {"is_right --yes": 'is_right --budget "50 calls" --yes || true'}
"""At night blame proves its verdict; in CI it only has to find the place."""


@pytest.mark.many_processes
def test_the_guide_works_as_written(tmp_path: Path) -> None:
    """The agents are recorded, shown, replayed, blamed and forked, each in a process of its own."""
    typed = follow("docs/how-to/debug-a-pydantic-ai-agent.md", tmp_path, instead=FEWER)
    (shown,) = (printed for command, printed in typed if " show " in command)
    assert "ask_clerk ▸ clerk ▸" in shown
