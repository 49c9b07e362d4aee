"""The demo's agent fails, diverges and is repaired as `tracefork demo` shows."""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest
import time_machine

import tracefork_core as tracefork
from tracefork_langgraph import demo

pytestmark = pytest.mark.many_processes


@pytest.fixture(autouse=True)
def in_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stream without the pauses that let people watch."""
    monkeypatch.setattr(demo, "_SECONDS_PER_CHUNK", 0.0)


@pytest.fixture
def told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[[Path, str], str]:
    """Run a script as `python script.py` would, pointed at a provider; return what it printed."""

    def run(script: Path, url: str) -> str:
        monkeypatch.setattr(sys, "argv", [str(script)])
        # Each run finds the same surroundings: a base URL that was not set before differs.
        with monkeypatch.context() as patched:
            for name, value in demo.ENVIRONMENT(url).items():
                patched.setitem(os.environ, name, value)
            runpy.run_path(str(script), run_name="__main__")
        return capsys.readouterr().out

    return run


def test_demo_is_found_by_its_entry_point() -> None:
    """`tracefork demo` finds the module under the name langgraph."""
    (point,) = entry_points(group="tracefork.demos", name="langgraph")
    assert point.load() is demo
    assert demo.AGENT.name == "support_agent.py"


def test_demo_agent_takes_the_wrong_policy_and_replays(told: Any, tape: Path, paths: Any) -> None:
    """It calls two tools in parallel, looks up the wrong policy, then cannot help; all streamed."""
    with demo.provider() as provider:
        url = provider.url
        with tracefork.record(tape):
            printed = told(demo.AGENT, url)
        asked = [request.json() for request in provider.requests]
    assert [len(document["messages"]) for document in asked] == [2, 5, 7]
    assert [call["function"]["name"] for call in asked[1]["messages"][2]["tool_calls"]] == [
        "lookup_order",
        "current_time",
    ]
    assert asked[2]["messages"][-1]["content"] == "There is no policy about that."
    assert all(document["stream"] for document in asked)
    assert printed.startswith("ticket: Where is order 17?\n")
    assert "I cannot promise you anything" in printed
    model = ("support", "model", "ChatOpenAI")
    tools = {("support", "tools", "lookup_order"), ("support", "tools", "current_time")}
    asked_by = paths()
    assert asked_by[::3] == [model, model]
    assert set(asked_by[1:3]) == tools
    assert asked_by[4:] == [("support", "tools", "search_policy"), model]
    with tracefork.replay(tape) as run:
        assert told(demo.AGENT, url) == printed
    assert run.digest == run.tape.digest
    assert run.clock_misses == 0


def test_edit_changes_one_byte_and_the_replay_names_it(
    told: Any, tape: Path, tmp_path: Path
) -> None:
    """The divergence points at the system prompt of exchange 0."""
    before, after = (text.encode() for text in demo.EDIT)
    assert len(before) == len(after)
    assert sum(a != b for a, b in zip(before, after, strict=True)) == 1
    source = demo.AGENT.read_text()
    assert source.count(demo.EDIT[0]) == 1
    edited = tmp_path / "support_agent.py"
    edited.write_text(source.replace(*demo.EDIT))
    with demo.provider() as provider, tracefork.record(tape):
        told(demo.AGENT, url := provider.url)
    with pytest.raises(tracefork.DivergenceError) as caught, tracefork.replay(tape):
        told(edited, url)
    assert caught.value.divergence.pointer == "/messages/0/content"
    assert caught.value.divergence.n == 0


def test_repair_makes_the_agent_find_the_policy(told: Any, tape: Path) -> None:
    """A fork sends the repaired prompt at the exchange of `REPAIR`."""
    at, prompt = (word.partition("=")[2] for word in demo.REPAIR)
    with demo.provider() as provider:
        with tracefork.record(tape):
            told(demo.AGENT, provider.url)
        with tracefork.fork(tape, int(at), tracefork.Edit(prompt=prompt)) as run:
            assert "we send you another one" in told(demo.AGENT, provider.url)
    assert (run.replayed, run.live) == (3, 3)


def test_the_time_in_the_answer_comes_from_the_tape(told: Any, tape: Path, tmp_path: Path) -> None:
    """Its tool is an exchange. Control: without the decorator, the replay diverges."""
    plain = tmp_path / "support_agent.py"
    source = demo.AGENT.read_text()
    assert source.count('@tracefork.tool(effect="read")\n') == 3
    plain.write_text(source.replace('@tracefork.tool(effect="read")\n', ""))
    later = datetime(2031, 5, 4, 3, 2, tzinfo=UTC)
    with demo.provider() as provider, tracefork.record(tape):
        printed = told(demo.AGENT, url := provider.url)
    with time_machine.travel(later), tracefork.replay(tape, clock=False):
        assert told(demo.AGENT, url) == printed
    with demo.provider() as provider, tracefork.record(tape, overwrite=True):
        told(plain, url := provider.url)
    with (
        time_machine.travel(later),
        pytest.raises(tracefork.DivergenceError) as caught,
        tracefork.replay(tape, clock=False),
    ):
        told(plain, url)
    assert "2031-05-04" in (caught.value.divergence.actual or "")
