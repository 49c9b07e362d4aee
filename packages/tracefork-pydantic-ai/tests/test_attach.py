"""`attach` is for sessions with `ambient=False`; another version is refused by name."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai._output import OutputValidator
from pydantic_ai.agent import WrapperAgent

import tracefork_core as tracefork
import tracefork_pydantic_ai
from tracefork_pydantic_ai import attach, detach

Call = Callable[..., Any]


@pytest.mark.parametrize("kind", ["agent", "model", "wrapper"])
def test_what_is_attached_replays_without_ambient_patching(
    agent: Call, ask: Call, twice: Call, paths: Call, kind: str
) -> None:
    """The model gets a client of the session, and its own back at the end."""
    helper = agent("helper", "@say Hello.")
    x: Any = {"agent": helper, "model": helper.model, "wrapper": WrapperAgent(helper)}[kind]
    before = helper.model.client._client
    assert attach(x) is x
    try:
        recorded, again = twice(lambda: ask(helper), ambient=False)
    finally:
        assert detach(x) is x
    assert helper.model.client._client is before
    assert [line.split(" ▸ ")[0] for line in paths()] == ["agent:helper"]
    assert recorded == again


def test_the_agents_of_an_attached_agent_are_attached(
    agent: Call, ask: Call, twice: Call, paths: Call
) -> None:
    """It attaches what is run on its behalf."""
    critic, writer = agent("critic", "@say Fine."), agent("writer", "@say Hello.")

    @writer.output_validator
    async def is_polite(text: str) -> str:
        await critic.run(text)
        return text

    attach(writer)
    try:
        twice(lambda: ask(writer), ambient=False)
    finally:
        detach(writer)
    assert len(paths()) == 2


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


def test_only_agents_and_models_are_accepted() -> None:
    """Anything else is named in the error."""
    with pytest.raises(tracefork.UsageError, match="cannot attach to 3: it is no agent and no"):
        attach(3)


def test_an_unsupported_version_is_named_in_one_error(
    tape: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error has its version and the supported ones, and pydantic-ai is left unchanged."""
    before = Agent.iter
    monkeypatch.delattr(OutputValidator, "validate")
    with (
        pytest.raises(
            tracefork.UsageError, match=r"pydantic-ai-slim 2\..* is made for pydantic-ai-slim"
        ),
        tracefork.record(tape),
    ):
        pass
    assert Agent.iter is before
    monkeypatch.undo()
    with tracefork.record(tape, overwrite=True):
        assert Agent.iter is not before
    assert Agent.iter is before


def test_every_public_name_is_importable() -> None:
    """Each is loaded when it is first used; an unknown name raises."""
    for name in tracefork_pydantic_ai.__all__:
        assert getattr(tracefork_pydantic_ai, name) is not None
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = tracefork_pydantic_ai.no_such_name


def test_an_agent_runs_outside_a_session_as_before(agent: Call, server: Any) -> None:
    """No patch is in place, and none of an ended session is left."""
    helper = agent("helper", "@say Hello.")
    assert asyncio.run(helper.run("Go on.")).output.startswith("Hello.")
    assert len(server.requests) == 1
