"""`attach` is for sessions with `ambient=False`; another version of AutoGen is refused by name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from autogen_agentchat.agents import BaseChatAgent
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_core import SingleThreadedAgentRuntime

import tracefork_autogen
import tracefork_core as tracefork
from tracefork_autogen import attach, detach

Call = Callable[..., Any]


@pytest.mark.parametrize("kind", ["team", "agent", "client"])
def test_an_attached_team_replays_without_ambient_patching(
    agent: Call, ask: Call, twice: Call, paths: Call, kind: str
) -> None:
    """Its clients are clients of the session, and their own again at the end."""

    def run() -> Any:
        helper = agent("helper", "@say Hello.")
        team = RoundRobinGroupChat([helper], max_turns=1, name="desk")
        client = helper._model_client
        own = client._client
        x: Any = {"team": team, "agent": helper, "client": client}[kind]
        assert attach(x) is x
        attached.append((x, client, own))
        return ask(team)

    attached: list[Any] = []
    try:
        recorded, again = twice(run, ambient=False)
    finally:
        for x, _, _ in attached:
            assert detach(x) is x
    assert recorded == again
    assert paths() == ["team:desk ▸ agent:helper ▸ model:gpt-4o"]
    assert all(client._client is own for _, client, own in attached)


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


def test_only_teams_agents_and_clients_are_accepted() -> None:
    """Anything else is named in the error."""
    with pytest.raises(tracefork.UsageError, match="cannot attach to 3: it is no team, agent or"):
        attach(3)


def test_another_version_of_autogen_is_named_in_one_error(
    tape: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error has its version and the supported ones, and AutoGen is left unchanged."""
    before = SingleThreadedAgentRuntime.send_message, vars(BaseChatAgent)["on_messages_stream"]
    monkeypatch.delattr(SingleThreadedAgentRuntime, "_process_publish")
    with (
        pytest.raises(tracefork.UsageError, match=r"autogen-agentchat 0\.7\.5: .*is made for"),
        tracefork.record(tape),
    ):
        pass
    after = SingleThreadedAgentRuntime.send_message, vars(BaseChatAgent)["on_messages_stream"]
    assert before == after
    monkeypatch.undo()
    with tracefork.record(tape, overwrite=True):
        assert SingleThreadedAgentRuntime.send_message is not before[0]


def test_every_public_name_is_importable() -> None:
    """Each is loaded when it is first used; an unknown name raises."""
    for name in tracefork_autogen.__all__:
        assert getattr(tracefork_autogen, name) is not None
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = tracefork_autogen.no_such_name
