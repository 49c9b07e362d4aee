"""Calls of tools are shown on the command line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import tracefork_core as tracefork
from tracefork_core.cli.main import main


@tracefork.tool(effect="read")
def search(query: str, limit: int = 2) -> list[str]:
    if not query:
        raise ValueError("nothing to look for")
    return [f"{query} {n}" for n in range(limit)]


@tracefork.tool
def count(upto: int) -> Iterator[int]:
    yield from range(upto)
    return "\x1b[31m"  # type: ignore[return-value]


@pytest.fixture(autouse=True)
def _recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TRACEFORK_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COLUMNS", "80")
    with tracefork.record("tools.tape"):
        search("cats")
        list(count(3))
        with pytest.raises(ValueError, match="nothing"):
            search("", limit=1)
        search("\x1b[2J")


def shown(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["show", "tools.tape", *words]) == 0
    return capsys.readouterr().out


def test_the_timeline_shows_arguments_and_results(capsys: pytest.CaptureFixture[str]) -> None:
    """Each call with its name, arguments and result has one line of 80 columns."""
    lines = [line for line in shown(capsys).splitlines() if line[:1].isdigit()]
    assert all(len(line) <= 80 for line in lines)
    assert 'search {"limit":2,"query":"cats"} → ["ca' in lines[0]
    assert 'count {"upto":3} → 3 values' in lines[1]
    assert "search" in lines[2]
    assert "✗ ValueError: nothing" in lines[2]
    assert "\x1b" not in shown(capsys)


def test_a_call_is_shown_in_full(capsys: pytest.CaptureFixture[str]) -> None:
    """This covers its effect, arguments and result, and JSON."""
    page = [line.split(maxsplit=1) for line in shown(capsys, "0").splitlines()]
    assert ["CALL", "tool:search"] in page
    assert ["effect", "read"] in page
    assert ["arguments", '{"limit":2,"query":"cats"}'] in page
    assert ["result", '["cats 0","cats 1"]'] in page
    assert "unknown, treated as a write" in shown(capsys, "1")
    document = json.loads(shown(capsys, "0", "--json"))
    assert (document["method"], document["url"], document["seam"], document["effect"]) == (
        "CALL",
        "tool:search",
        "tool",
        "read",
    )
    assert document["request_body"] == {"limit": 2, "query": "cats"}
    assert document["response_body"] == ["cats 0", "cats 1"]
