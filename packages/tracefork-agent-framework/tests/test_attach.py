"""`attach` is for sessions with `ambient=False`; other versions are refused by name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from agent_framework import FunctionTool, ResponseStream
from agent_framework.orchestrations import SequentialBuilder

import tracefork_agent_framework
import tracefork_core as tracefork
from tracefork_agent_framework import attach, detach

Call = Callable[..., Any]


@pytest.mark.parametrize("kind", ["agent", "workflow", "client"])
def test_an_attached_agent_replays_without_ambient_patching(
    agent: Call, ask: Call, twice: Call, paths: Call, kind: str
) -> None:
    """Its model gets a client of the session, and its own back at the end."""
    made: list[Any] = []

    def run() -> str:
        helper = agent("helper", "@say Hello.")
        workflow = SequentialBuilder(participants=[helper]).build()
        x = {"agent": helper, "workflow": workflow, "client": helper.client}[kind]
        made.append((x, helper.client, helper.client.client))
        assert attach(attach(x)) is x
        return _texts(ask(workflow if kind == "workflow" else helper))

    try:
        recorded, again = twice(run, ambient=False)
    finally:
        for x, _, _ in made:
            assert detach(x) is x
    assert recorded == again
    assert "Hello." in recorded
    assert paths()[0].endswith("agent:helper ▸ model:gpt-5-mini")
    assert all(chat.client is client for _, chat, client in made)


def _texts(result: Any) -> str:
    if hasattr(result, "get_outputs"):
        return str([_text(output) for output in result.get_outputs()])
    return str(result.text)


def _text(output: Any) -> str:
    return "".join(map(_text, output)) if isinstance(output, list) else str(output.text)


def test_a_detached_agent_is_not_on_a_tape_without_ambient_patching(
    agent: Call, ask: Call, tape: Path, server: Any
) -> None:
    """The control: only `attach` puts its requests and steps on the tape."""
    helper = detach(attach(agent("helper", "@say Hello.")))
    with tracefork.record(tape, ambient=False):
        ask(helper)
    assert len(server.requests) == 1
    with tracefork.Tape.open(tape) as opened:
        assert (len(opened.exchanges), len(opened.steps)) == (0, 0)


def test_only_agents_workflows_clients_and_tools_are_accepted() -> None:
    """Anything else is named in the error."""
    with pytest.raises(tracefork.UsageError, match="cannot attach to 3: it is no agent, workflow"):
        attach(3)
    with pytest.raises(tracefork.UsageError, match="3 is neither a FunctionTool nor a function"):
        tracefork_agent_framework.leave_live(3)


def test_an_unsupported_version_is_named_in_one_error(
    tape: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error has its version and the supported ones, and the framework is left unchanged."""
    before = ResponseStream.__anext__
    monkeypatch.delattr(FunctionTool, "invoke")
    with (
        pytest.raises(tracefork.UsageError, match=r"agent-framework-core 1\..* is made for agent-"),
        tracefork.record(tape),
    ):
        pass
    assert ResponseStream.__anext__ is before
    monkeypatch.undo()
    with tracefork.record(tape, overwrite=True):
        assert ResponseStream.__anext__ is not before


def test_every_public_name_is_importable() -> None:
    """Each is loaded when it is first used; an unknown name raises."""
    for name in tracefork_agent_framework.__all__:
        assert getattr(tracefork_agent_framework, name) is not None
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = tracefork_agent_framework.no_such_name
