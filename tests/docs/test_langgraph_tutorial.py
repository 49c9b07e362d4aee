"""The tutorial on a failed LangGraph run works as written, with the example it uses."""

from __future__ import annotations

from pathlib import Path

import pytest
from docs.pages import follow

pytestmark = pytest.mark.with_langgraph


def test_the_tutorial_works_as_written(tmp_path: Path) -> None:
    """Each command prints what the page shows after it; with the old prompt the test fails."""
    follow("docs/tutorial/debug-a-langgraph-run.md", tmp_path)
