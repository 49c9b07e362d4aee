"""Each chat client is recorded as it asks: its own formats, streams and stored conversations."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from agent_framework import Agent, AgentSession, ChatContext, Message, chat_middleware
from agent_framework_anthropic import AnthropicClient
from agent_framework_openai import OpenAIChatClient, OpenAIChatCompletionClient
from anthropic import AsyncAnthropic

import tracefork_core as tracefork
from tracefork_testkit import ProviderServer

Call = Callable[..., Any]


def look() -> str:
    ran.append("look")
    return "sunny"


ran: list[str] = []
WORDS = "@call look {}\n@then\n@say Done."


def anthropic(agent: Call, url: str) -> Any:
    """Return an agent that asks Claude."""
    sdk = AsyncAnthropic(base_url=url.removesuffix("/v1"), api_key="none", max_retries=0)
    client = AnthropicClient(model="claude-opus-5", anthropic_client=sdk)
    return Agent(client=client, name="helper", instructions=WORDS, tools=[look])


def responses(agent: Call, url: str) -> Any:
    """Return an agent that asks OpenAI, which stores the conversation."""
    return agent("helper", WORDS, tools=[look], default_options={})


def completions(agent: Call, url: str) -> Any:
    """Return an agent that asks a server with the older interface."""
    return agent("helper", WORDS, tools=[look], chat=True)


def azure(agent: Call, url: str) -> Any:
    """Return an agent that asks a deployment of Azure."""
    host = url.removesuffix("/v1")
    client = OpenAIChatClient(model="gpt-5-mini", azure_endpoint=host, api_key="none")
    return Agent(client=client, name="helper", instructions=WORDS, tools=[look])


def azure_completions(agent: Call, url: str) -> Any:
    """Return an agent that asks it by the older interface, whose path names the deployment."""
    host = url.removesuffix("/v1")
    client = OpenAIChatCompletionClient(
        model="gpt-5-mini", azure_endpoint=host, api_key="none", api_version="2024-10-21"
    )
    return Agent(client=client, name="helper", instructions=WORDS, tools=[look])


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("make", [anthropic, responses, completions, azure, azure_completions])
def test_an_agent_replays_with_each_client(
    agent: Call, ask: Call, twice: Call, paths: Call, url: str, make: Any, stream: bool
) -> None:
    """The tool runs once, and the answers are equal, with all that the provider told."""
    ran.clear()
    recorded, again = twice(lambda: ask(make(agent, url), stream=stream).to_dict())
    assert recorded == again
    assert ran == ["look"]
    model = "claude-opus-5" if make is anthropic else "gpt-5-mini"
    assert paths() == [
        f"agent:helper ▸ model:{model}",
        "agent:helper ▸ tool:look",
        f"agent:helper ▸ model:{model}",
    ]


def test_a_credential_is_asked_again_in_a_replay(ask: Call, twice: Call, url: str) -> None:
    """It is a function of the program, or runs Azure's command line. The token is on no tape."""
    asked: list[str] = []

    def token() -> str:
        asked.append("token")
        return "secret-token"

    def run() -> str:
        host = url.removesuffix("/v1")
        client = OpenAIChatClient(model="gpt-5-mini", azure_endpoint=host, credential=token)
        return str(ask(Agent(client=client, name="helper")).text)

    recorded, again = twice(run)
    assert recorded == again
    assert asked == ["token"] * 2


def test_a_session_of_two_turns_replays(agent: Call, twice: Call) -> None:
    """Its history is in the session, and its JSON is the same."""

    async def run() -> Any:
        session = AgentSession(session_id="s")
        helper = agent("helper", "@say Hi.")
        for question in ("One.", "Two."):
            await helper.run(question, session=session)
        return session.to_dict()

    recorded, again = twice(lambda: asyncio.run(run()))
    assert recorded == again
    assert "Two." in str(recorded)


def test_chat_middleware_runs_again_and_may_ask_twice(
    agent: Call, ask: Call, twice: Call, paths: Call
) -> None:
    """What it changes in a request is what the tape has."""
    asked: list[int] = []

    @chat_middleware
    async def twice_over(context: ChatContext, call_next: Any) -> None:
        asked.append(len(context.messages))
        context.messages = [*context.messages, Message("user", ["Be short."])]
        await call_next()
        await call_next()

    recorded, again = twice(lambda: ask(agent("helper", "@say Hi.", middleware=[twice_over])).text)
    assert recorded == again
    assert len(asked) == 2
    assert paths() == ["agent:helper ▸ model:gpt-5-mini"] * 2


def test_a_fork_changes_the_instructions_and_the_model(
    agent: Call, ask: Call, tape: Path, server: ProviderServer
) -> None:
    """At the name of an agent, as a person writes it."""
    with tracefork.record(tape):
        ask(agent("writer", "@say Hi."))
    for change in (tracefork.Edit(system="@say Bye."), tracefork.Edit(model="gpt-5-nano")):
        with tracefork.fork(tape, "agent:writer", change):
            said = ask(agent("writer", "@say Hi.")).text
        assert said.startswith("Bye." if change.system else "Hi.")
    assert "gpt-5-nano" in str(server.requests[-1].body)
    with tracefork.fork(tape, "agent:writer", tracefork.Replace(text="Something else.")):
        assert ask(agent("writer", "@say Hi.")).text == "Something else."
