"""The guide and the README work as written."""

from __future__ import annotations

from pathlib import Path

import pytest
from docs.pages import blocks, follow

from tracefork_testkit import ProviderServer


@pytest.mark.many_processes
def test_the_guide_works_as_written(tmp_path: Path) -> None:
    """The crew is recorded, shown, replayed and forked at the task, each in its own process."""
    typed = follow("docs/how-to/find-the-task-that-broke-your-crew.md", tmp_path)
    (shown,) = (printed for command, printed in typed if " show " in command)
    assert "newsroom ▸ analyse ▸ Analyst" in shown


def test_the_twelve_lines_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The README's first example records a crew and replays it, with one live call in all."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    example = next(
        block.text
        for block in blocks("packages/tracefork-crewai/README.md")
        if block.kind == "python"
    )
    with ProviderServer() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        exec(compile(example, "README.md", "exec"), {"__name__": "readme"})
    assert len(server.requests) == 1
