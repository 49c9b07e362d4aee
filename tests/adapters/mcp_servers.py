"""Tests that every adapter passes whose framework connects to MCP servers.

A subclass has a fixture `ask_server`: a function that runs an agent and returns its result as text.
The agent calls the tool of a server twice at once, as `WORDS` script it. `command` starts it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tracefork_core as tracefork

Call = Callable[..., Any]
WORDS = '@call forecast {"city": "Rome"}\n@call forecast {"city": "Oslo"}\n@then\n@say Done.'


class McpServersOfAgents:
    """MCP servers of an agent are neither started nor called by a replay, and late by a fork."""

    @pytest.fixture
    def notes(self, tmp_path: Path) -> Path:
        """What the server writes down."""
        return tmp_path / "notes.txt"

    @pytest.fixture
    def command(self, notes: Path) -> dict[str, Any]:
        """What starts the server."""
        script = Path(__file__).with_name("mcp_server.py")
        return {"command": sys.executable, "args": [str(script), str(notes)]}

    def test_a_replay_starts_no_server(
        self, ask_server: Callable[[], str], notes: Path, twice: Call, tape: Path, paths: Call
    ) -> None:
        """Each call is one exchange in the step of its tool, recorded at its connection."""
        recorded, again = twice(ask_server)
        assert recorded == again
        assert notes.read_text().splitlines()[0] == "started"
        assert sorted(notes.read_text().split()[1:]) == ["Oslo", "Rome"]
        tools = [path for path in paths() if "tool:forecast" in path]
        assert len(tools) == 2
        with tracefork.Tape.open(tape) as opened:
            assert not [one for one in opened.exchanges if one.aside.seam == "tool"]

    def test_a_fork_connects_when_its_first_live_call_needs_the_server(
        self, ask_server: Callable[[], str], notes: Path, tape: Path, paths: Call
    ) -> None:
        """Behind the last model call nothing is started; before the tools, the server is."""
        with tracefork.record(tape):
            ask_server()
        notes.unlink()
        last = len(paths()) - 1
        with tracefork.fork(tape, last, tracefork.Replace(text="Bye.")):
            ask_server()
        assert not notes.exists()
        first = next(n for n, path in enumerate(paths()) if "tool:forecast" in path)
        with tracefork.fork(tape, first, writes="allow"):
            ask_server()
        assert notes.read_text().splitlines()[0] == "started"
        assert sorted(notes.read_text().split()[1:]) == ["Oslo", "Rome"]
