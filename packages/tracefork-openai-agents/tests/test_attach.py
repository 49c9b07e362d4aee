"""`attach` is for sessions with `ambient=False`; another version of the SDK is refused by name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from agents.run_internal import tool_execution
from agents.tracing import create

import tracefork_core as tracefork
import tracefork_openai_agents
from tracefork_openai_agents import attach, detach

Call = Callable[..., Any]


@pytest.mark.parametrize("chat", [False, True])
def test_an_attached_agent_replays_without_ambient_patching(
    agent: Call, ask: Call, twice: Call, paths: Call, chat: bool
) -> None:
    """Its model gets a client of the session, and its own back at the end."""
    made = attach(agent("Helper", "@say Hello.", chat=chat))
    client = made.model._client
    try:
        recorded, again = twice(lambda: ask(made, "Hello.").final_output, ambient=False)
    finally:
        assert detach(made) is made
    assert recorded == again
    assert paths() == ["run:Agent workflow ▸ agent:Helper ▸ turn:turn 1 ▸ model:gpt-5-mini"]
    assert made.model._client is client


def test_a_detached_agent_is_not_on_a_tape_without_ambient_patching(
    agent: Call, ask: Call, tape: Path, server: Any
) -> None:
    """The control: only `attach` puts its requests and steps on the tape."""
    made = detach(attach(agent("Helper", "@say Hello.")))
    with tracefork.record(tape, ambient=False):
        ask(made, "Hello.")
    assert len(server.requests) == 1
    with tracefork.Tape.open(tape) as opened:
        assert (len(opened.exchanges), len(opened.steps)) == (0, 0)


def test_only_agents_and_tools_are_accepted() -> None:
    """Anything else is named in the error."""
    with pytest.raises(tracefork.UsageError, match="cannot attach to 3: it is no Agent"):
        attach(3)
    with pytest.raises(tracefork.UsageError, match="3 is neither a function tool nor a function"):
        tracefork_openai_agents.leave_live(3)


def test_an_unsupported_version_is_named_in_one_error(
    tape: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error has its version and the supported ones, and the SDK is left unchanged."""
    before = create.get_trace_provider
    monkeypatch.delattr(tool_execution, "_invoke_function_tool_with_metadata")
    with (
        pytest.raises(
            tracefork.UsageError, match=r"openai-agents 0\..* is made for openai-agents<0\.25"
        ),
        tracefork.record(tape),
    ):
        pass
    assert create.get_trace_provider is before
    monkeypatch.undo()
    with tracefork.record(tape, overwrite=True):
        assert create.get_trace_provider is not before


def test_every_public_name_is_importable() -> None:
    """Each is loaded when it is first used; an unknown name raises."""
    for name in tracefork_openai_agents.__all__:
        assert getattr(tracefork_openai_agents, name) is not None
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = tracefork_openai_agents.no_such_name
