"""The guide and the README work as written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import claude_agent_sdk
import pytest
from docs.pages import blocks, follow

import tracefork_core as tracefork


@pytest.mark.many_processes
def test_the_guide_works_as_written(tmp_path: Path) -> None:
    """The desk is recorded, replayed and forked, each in a process of its own."""
    follow("docs/how-to/replay-a-claude-agent.md", tmp_path)
    assert (tmp_path / "hotel_desk" / "bookings.txt").read_text() == "room 12\nroom 14\n"


def test_the_example_of_the_readme_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: Any
) -> None:
    """The README's example records an agent and replays it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(claude_agent_sdk, "ClaudeAgentOptions", options)
    example = next(
        block.text
        for block in blocks("packages/tracefork-claude-agent-sdk/README.md")
        if block.kind == "python"
    )
    names: dict[str, Any] = {"__name__": "readme"}
    exec(compile(example, "README.md", "exec"), names)
    assert names["messages"]
    with tracefork.Tape.open(tmp_path / "size.tape") as opened:
        assert "prompt" in {exchange.method for exchange in opened.exchanges}
