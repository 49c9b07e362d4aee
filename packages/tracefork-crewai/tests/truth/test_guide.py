"""The guide works from its first line to its last, blame included."""

from __future__ import annotations

from pathlib import Path

from docs.pages import follow


def test_the_guide_blames_the_task(tmp_path: Path) -> None:
    """The command line and Python name the task that was made to fail."""
    follow("docs/how-to/find-the-task-that-broke-your-crew.md", tmp_path, whole=True)
