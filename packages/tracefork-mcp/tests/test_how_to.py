"""The guide and the README work as written."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest
from docs.pages import blocks, follow

EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.mark.many_processes
def test_the_guide_works_as_written(tmp_path: Path) -> None:
    """The server is moved away and back, and the run is replayed and forked without it and with."""
    # How much of a call a table has room for depends on how long the others took.
    typed = follow(
        "docs/how-to/replay-mcp-tools-without-their-servers.md",
        tmp_path,
        varies=r"(?<=issues▸)\w+\{?…",
    )
    assert len([command for command, _ in typed if " fork " in command]) == 3


def test_the_example_of_the_readme_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The README's example records a call and replays it."""
    monkeypatch.chdir(tmp_path)
    example = next(
        block.text for block in blocks("packages/tracefork-mcp/README.md") if block.kind == "python"
    )
    server = f"command={sys.executable!r}, args=[{str(EXAMPLES / 'mcp_issues' / 'server.py')!r}]"
    example = example.replace('command="github-mcp-server", args=["stdio"]', server)
    names: dict[str, Any] = {"__name__": "readme"}
    exec(compile(example, "README.md", "exec"), names)
    asyncio.run(names["main"]())
    assert (tmp_path / "issues.txt").read_text().count("\n") == 1
