"""Every chat model records and replays: bound, ambient or attached, in every way to call it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest
from langchain.agents import create_agent
from langchain_core.caches import InMemoryCache
from langchain_core.language_models import FakeListChatModel

import tracefork_core as tracefork
from tracefork_langgraph import ADAPTER, attach, bind, detach, unbind
from tracefork_langgraph.clients import held_clients
from tracefork_testkit import ProviderServer, closed_network

# google-genai subclasses aiohttp's session, which aiohttp warns about.
pytestmark = pytest.mark.filterwarnings("ignore:Inheritance class:DeprecationWarning")

WAYS = ["invoke", "ainvoke", "stream", "astream", "astream_events", "stream_events"]


def exchanges(tape: Path) -> int:
    """Count the exchanges on a tape."""
    with tracefork.Tape.open(tape) as opened:
        return len(opened.exchanges)


@pytest.mark.parametrize("binding", [True, False], ids=["bound", "ambient"])
def test_a_model_records_and_replays(
    chat: Any, ask: Any, tape: Path, server: ProviderServer, name: str, binding: bool
) -> None:
    """Each call is an exchange, and replays with the network closed.

    Another model of the kind, which may share the client, is on the tape only if it is ambient.
    """
    model, other = chat(name), chat(name)
    if binding:
        bind(model)
    with tracefork.record(tape, ambient=not binding):
        recorded = [ask(model, way) for way in WAYS]
        ask(other, "invoke")
        ask(other, "ainvoke")
    assert len(server.requests) == len(WAYS) + 2
    assert exchanges(tape) == len(WAYS) + (0 if binding else 2)
    server.stop()
    with closed_network() as network, tracefork.replay(tape, ambient=not binding):
        assert [ask(model, way) for way in WAYS] == recorded
        if not binding:
            ask(other, "invoke")
            ask(other, "ainvoke")
    assert network.attempts == []
    assert all("".join(said) for said in recorded)


def test_an_attached_agent_records_and_replays(
    chat: Any, tape: Path, server: ProviderServer, name: str
) -> None:
    """Its model is found and bound, calls the tool, and each answer belongs to its step."""

    def lookup(order: int) -> str:
        """Look up an order."""
        return f"order {order} was delivered"

    agent = attach(create_agent(chat(name), [lookup], name="support"))
    state = {"messages": [("user", '@call lookup {"order": 17}\n@then\n@say It is there.')]}

    def run() -> list[str]:
        return [str(message.content) for message in agent.invoke(state)["messages"]]

    with tracefork.record(tape, ambient=False):
        recorded = run()
    assert "order 17 was delivered" in recorded
    server.stop()
    with closed_network(), tracefork.replay(tape, ambient=False):
        assert run() == recorded
    detach(agent)
    with tracefork.Tape.open(tape) as opened:
        paths = [opened.step_path(exchange.step) for exchange in opened.exchanges]
    assert [path[:2] for path in paths].count(("support", "model")) == 2


def test_unbind_restores_the_original_clients(chat: Any, ask: Any, tape: Path, name: str) -> None:
    """A second `bind` changes nothing. After `unbind`, nothing is recorded."""
    model = chat(name)
    before = [reference.value for reference in held_clients(model)]
    assert before
    bind(model)
    bound = [reference.value for reference in held_clients(model)]
    assert not {id(client) for client in before} & {id(client) for client in bound}
    bind(model)
    assert [reference.value for reference in held_clients(model)] == bound
    unbind(model)
    assert [reference.value for reference in held_clients(model)] == before
    with tracefork.record(tape, ambient=False):
        ask(model, "invoke")
        ask(model, "ainvoke")
    assert exchanges(tape) == 0


def test_bind_leaves_the_client_of_a_cache_unchanged(chat: Any) -> None:
    """A cache that sends HTTP requests is not part of the model."""

    class RemoteCache(InMemoryCache):
        def __init__(self) -> None:
            super().__init__()
            self.client = httpx.Client()

    cache = RemoteCache()
    client = cache.client
    bind(chat("openai", cache=cache))
    assert cache.client is client
    client.close()


def test_bind_covers_a_model_inside_a_user_class(chat: Any, tape: Path) -> None:
    """The class holds a provider's model and calls it."""

    class Careful(FakeListChatModel):
        inner: Any

        def _call(self, messages: Any, *args: Any, **options: Any) -> str:
            return str(self.inner.invoke(messages).text)

    careful = bind(Careful(responses=[], inner=chat("groq")))
    with tracefork.record(tape, ambient=False):
        careful.invoke("hello")
    assert exchanges(tape) == 1


def test_doctor_names_exactly_the_tested_models(classes: set[str]) -> None:
    """They are in the first seam of the adapter."""
    words = {word.strip("(),") for word in ADAPTER.seams[0].split()}
    assert {word for word in words if "Chat" in word} == classes
